"""Calls on threads, awaited by a task, and stopped when the task is cancelled.

A long call of the store checks every 50 ms whether it should stop, as it does for Ctrl-C. So its change is made as a
whole or not at all. The task waits for that, up to a limit.
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

#: The number of threads for calls; further calls wait for one.
THREADS = 32
#: How long a cancelled task waits for its call to stop, in seconds. A call may take longer, for example if it waits for
#: rows from other code; it then stops by itself.
PATIENCE = 5.0

_pools: dict[int, concurrent.futures.ThreadPoolExecutor] = {}
_alone: "weakref.WeakSet[threading.Thread]" = weakref.WeakSet()
#: Calls that have not ended; each is removed before its result is seen.
_under_way: "set[Stop]" = set()


class Stop:
    """Whether a call should stop."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked = False

    def check(self) -> None:
        """Raises the exception that ends the call."""
        if self.asked:
            raise asyncio.CancelledError


async def run(function: Callable[[], _T], *, waits: bool = False) -> _T:
    """The result of ``function``, called on a thread of the pool; on a separate thread if it ``waits`` for what others
    do, so that it does not take a thread from other calls."""
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
    """Drops the result of a call that no task waits for. There is no one to raise its exception to, and a store that it
    opened would stay open as long as something keeps the error of the cancelled task."""
    if not ended.cancelled() and ended.exception() is None:
        ended.result().clear()


def _pool() -> concurrent.futures.ThreadPoolExecutor:
    """The pool of this process; a forked process has none of its parent's threads."""
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
