"""Tables, the nodes of the tree, and merges, awaited."""

import asyncio
import concurrent.futures
import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import drumlin
from drumlin.aio._calls import run
from drumlin.aio._handles import Block, Handle, awaits
from drumlin.aio._rows import Diff, Groups, Lookup, Result, RowFeed

__all__ = ["Merge", "Presence", "ProjectionView", "Table", "Tree"]

#: The version that a call made.
_V = TypeVar("_V")


def _noted(name: str) -> Callable[..., Any]:
    """A method that records a clause, for the call that executes the merge."""

    @functools.wraps(getattr(drumlin.Merge, name))
    def note(self: "Merge", /, **named: Any) -> "Merge":
        # Errors in the clause are raised now.
        getattr(drumlin.Merge(lambda *_: None), name)(**named)  # type: ignore[arg-type, return-value]
        self._clauses.append((name, named))
        return self

    return note


@awaits(drumlin.Merge)
class Merge(Handle):
    """See :class:`drumlin.Merge`. Its clauses are only recorded; :meth:`execute` is awaited."""

    __slots__ = ("_clauses",)

    def __init__(self, make: Any) -> None:
        super().__init__(make)
        self._clauses: list[tuple[str, dict[str, Any]]] = []

    when_matched = _noted("when_matched")
    when_not_matched = _noted("when_not_matched")
    when_not_matched_by_source = _noted("when_not_matched_by_source")

    @functools.wraps(drumlin.Merge.execute)
    async def execute(self) -> Any:
        made, clauses = await self._get(), list(self._clauses)
        self._clauses.clear()

        def merge() -> Any:
            for name, named in clauses:
                getattr(made, name)(**named)
            return made.execute()

        return await run(merge)


@awaits(
    drumlin.Table,
    read=Result,
    diff=Diff,
    follow=RowFeed,
    merge=Merge,
    get_many=Lookup,
    group_by=Groups,
    resample=Groups,
)
class Table(Handle, Generic[_V]):
    """See :class:`drumlin.Table`. The callback of :meth:`on` may be a coroutine function, which runs on the event
    loop."""

    @functools.wraps(drumlin.Table.on)
    async def on(self, callback: Any, **named: Any) -> Any:
        return await self._call("on", (_on_loop(callback),), named)


@awaits(drumlin.ProjectionView)
class ProjectionView(Handle):
    """See :class:`drumlin.ProjectionView`."""


@awaits(drumlin.Presence)
class Presence(Block):
    """See :class:`drumlin.Presence`: ``async with store.tree.presence("worker 7") as presence``."""


@awaits(drumlin.Tree, presence=Presence, projection=ProjectionView)
class Tree(Handle):
    """See :class:`drumlin.Tree`. Functions that it calls for nodes run on a thread. The callback of :meth:`on` may be a
    coroutine function, which runs on the event loop."""

    @functools.wraps(drumlin.Tree.on)
    async def on(self, pattern: Any, callback: Any, **named: Any) -> Any:
        return await self._call("on", (pattern, _on_loop(callback)), named)


def _on_loop(callback: Any) -> Any:
    """A callback; if it is a coroutine function, one that runs it on the event loop."""
    return _by_loop(callback, asyncio.get_running_loop()) if inspect.iscoroutinefunction(callback) else callback


def _by_loop(callback: Callable[[Any], Any], loop: asyncio.AbstractEventLoop) -> Callable[[Any], Any]:
    """A callback that runs ``callback`` on the event loop and waits for it."""

    @functools.wraps(callback)
    def call(event: Any) -> Any:
        if not loop.is_running():
            raise RuntimeError("the event loop that was to run this callback has ended; call off() before it does")
        future = asyncio.run_coroutine_threadsafe(callback(event), loop)
        while True:
            try:
                return future.result(timeout=0.5)
            except concurrent.futures.TimeoutError:
                if future.done() or not loop.is_running():
                    raise

    # It runs on the trigger's thread, so it must not look like a coroutine function.
    del call.__wrapped__  # type: ignore[attr-defined]
    return call
