"""Calls on threads, awaited by a task, and stopped when that is cancelled.

A call of the store's that takes long looks every 50 ms whether it is to stop, as it does for Ctrl-C; so what it was to
change is changed or is not. The task waits for that, but not for ever.
"""

import asyncio
import atexit
import concurrent.futures
import contextvars
import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

from drumlin import _drumlin

_T = TypeVar("_T")

#: Threads for calls; more calls wait for one.
THREADS = 32
#: How long a task that was cancelled waits for its call to stop, in seconds. A call that waits for rows of somebody
#: else's, say, may take longer; it stops by itself then.
PATIENCE = 5.0

_pools: dict[int, concurrent.futures.ThreadPoolExecutor] = {}
_alone: "weakref.WeakSet[threading.Thread]" = weakref.WeakSet()
#: Calls that have not ended: each is taken out before its answer is seen.
_under_way: "set[Stop]" = set()


class Stop:
    """Whether a call is to stop."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked = False

    def check(self) -> None:
        """Raises what ends the call."""
        if self.asked:
            raise asyncio.CancelledError


async def run(function: Callable[[], _T], *, waits: bool = False) -> _T:
    """What ``function`` gives, called on a thread of the pool; on one of its own if it ``waits`` for what others do, so
    that it keeps no other call from its turn."""
    stop, context = Stop(), contextvars.copy_context()

    def call() -> list[_T]:
        try:
            stop.check()
            made: list[_T] = [context.run(_drumlin.stoppable, function, stop.check)]
            if stop.asked:
                made.clear()
            return made
        finally:
            _under_way.discard(stop)

    _under_way.add(stop)
    future = _on_own_thread(call) if waits else _pool().submit(call)
    ended = asyncio.wrap_future(future)
    try:
        return (await asyncio.shield(ended)).pop()
    except asyncio.CancelledError:
        stop.asked = True
        ended.add_done_callback(_forget)
        if future.cancel():
            _under_way.discard(stop)
        else:
            await asyncio.wait([ended], timeout=PATIENCE)
        raise


def _forget(ended: "asyncio.Future[list[_T]]") -> None:
    """Lets go of what a call gives that nobody waits for: what it raises has nobody to be told to, and a store that it
    opened would stay open as long as anybody keeps the error of the task that was cancelled."""
    if not ended.cancelled() and ended.exception() is None:
        ended.result().clear()


def _pool() -> concurrent.futures.ThreadPoolExecutor:
    """The pool of this process; a forked one has none of the threads of the other."""
    process = os.getpid()
    if process not in _pools:
        _pools[process] = concurrent.futures.ThreadPoolExecutor(THREADS, thread_name_prefix="drumlin-aio")
    return _pools[process]


def _on_own_thread(call: Callable[[], _T]) -> "concurrent.futures.Future[_T]":
    future: concurrent.futures.Future[_T] = concurrent.futures.Future()

    def work() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=work, name="drumlin-aio-wait", daemon=True)
    _alone.add(thread)
    thread.start()
    return future


@atexit.register
def _end() -> None:
    for stop in list(_under_way):
        stop.asked = True
    for thread in list(_alone):
        thread.join(timeout=1)
