"""A few threads that share work and a memory budget."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

from drumlin import InvalidArgument
from drumlin.migrate.arguments import a_type

_Item = TypeVar("_Item")


class Stopped(Exception):
    """Ends a thread after another one has failed or the caller has been interrupted."""


class Crew:
    """Threads, and what they share: whether to stop, and how much memory is in use."""

    def __init__(self, threads: int, memory_bytes: int) -> None:
        for name, value in (("threads", threads), ("memory_bytes", memory_bytes)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be a number, not {a_type(value)}")
            if value < 1:
                raise InvalidArgument(f"{name}={value}; expected 1 or more")
        self._threads = threads
        self._limit = memory_bytes
        self._used = 0
        self._changed = threading.Condition()
        self._stopped = False

    def run(self, work: Callable[[_Item], None], items: Iterable[_Item]) -> None:
        """Calls ``work`` on each item. An exception stops all threads, and is raised here once they have ended."""
        waiting: set[Future[None]] = set()
        with ThreadPoolExecutor(self._threads, thread_name_prefix="migrate") as pool:
            try:
                for item in items:
                    waiting.add(pool.submit(work, item))
                    # The queue holds only what the threads will do soon.
                    if len(waiting) >= 4 * self._threads:
                        waiting = self._ended(waiting)
                while waiting:
                    waiting = self._ended(waiting)
            except BaseException:
                with self._changed:
                    self._stopped = True
                    self._changed.notify_all()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    @staticmethod
    def _ended(waiting: set[Future[None]]) -> set[Future[None]]:
        done, rest = wait(waiting, return_when=FIRST_COMPLETED)
        for one in done:
            one.result()
        return rest

    def check(self) -> None:
        """Raises Stopped if another thread has failed."""
        if self._stopped:
            raise Stopped

    @contextmanager
    def memory(self, size: int) -> Iterator[None]:
        """Takes ``size`` bytes of the budget, and waits until they are available. What exceeds the whole budget waits
        until no other thread uses memory."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or not self._used or self._used + size <= self._limit)
            self.check()
            self._used += size
        try:
            yield
        finally:
            with self._changed:
                self._used -= size
                self._changed.notify_all()
