"""A few threads that do pieces of work, within a budget of memory."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

from drumlin import InvalidArgument
from drumlin.migrate.arguments import a_type

_Item = TypeVar("_Item")


class Stopped(Exception):
    """Another thread has failed, or the caller has given up: this one ends."""


class Crew:
    """Threads, and what they share: whether to stop, and the memory in use."""

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
        """Does ``work`` on each item. What it raises ends all, and is raised here once all threads have ended."""
        waiting: set[Future[None]] = set()
        with ThreadPoolExecutor(self._threads, thread_name_prefix="migrate") as pool:
            try:
                for item in items:
                    waiting.add(pool.submit(work, item))
                    # No more are waiting than threads have to do soon.
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
        """Ends this thread's work if another has failed."""
        if self._stopped:
            raise Stopped

    @contextmanager
    def memory(self, size: int) -> Iterator[None]:
        """Waits until ``size`` bytes are within the budget, or nobody else uses any: a piece that is larger than the
        budget is alone."""
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
