"""Results and data sets, and what is made from them, awaited."""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import drumlin
from drumlin.aio._handles import Handle, Iterated, awaits

__all__ = ["Dataset", "Diff", "Groups", "Joined", "Lookup", "Result", "Results", "RowFeed", "Windows"]


class _Rows(Iterated):
    @functools.wraps(drumlin.Result.to_batches)
    def to_batches(self) -> AsyncIterator[Any]:
        return self._each(lambda made: made.to_batches())


def _result(make: Callable[[], Awaitable[Any]]) -> Handle:
    return Result(make)


@awaits(drumlin.Groups, agg=_result)
class Groups(Handle):
    """See :class:`drumlin.Groups`."""


@awaits(drumlin.Result, where=_result, select=_result, head=_result, tail=_result, group_by=Groups, resample=Groups)
class Result(_Rows):
    """See :class:`drumlin.Result`. ``async for`` iterates over its batches."""


def _dataset(make: Callable[[], Awaitable[Any]]) -> Handle:
    return Dataset(make)


@awaits(drumlin.Joined)
class Joined(_Rows):
    """See :class:`drumlin.Joined`. ``async for`` iterates over its batches."""


@awaits(drumlin.Windows, agg=Joined)
class Windows(Handle):
    """See :class:`drumlin.Windows`."""


@awaits(
    drumlin.Dataset,
    where=_dataset,
    select=_dataset,
    limit=_dataset,
    group_by=Groups,
    resample=Groups,
    join_asof=Joined,
    join_window=Windows,
)
class Dataset(_Rows):
    """See :class:`drumlin.Dataset`. ``async for`` iterates over its batches."""


@awaits(drumlin.Lookup, rows=Result, keys=Result)
class Lookup(Iterated):
    """See :class:`drumlin.Lookup`. ``async for`` iterates over its rows, each a dict or None."""


@awaits(drumlin.Diff)
class Diff(Iterated):
    """See :class:`drumlin.Diff`. ``async for`` iterates over its batches."""

    @functools.wraps(drumlin.Diff.batches)
    def batches(self) -> AsyncIterator[Any]:
        return self._each(lambda made: made.batches())


@awaits(drumlin.RowFeed)
class RowFeed(Handle):
    """See :class:`drumlin.RowFeed`: ``async for changes in await table.follow()``. It begins when it is awaited."""

    def __aiter__(self) -> AsyncIterator[drumlin.RowChanges]:
        return self

    async def __anext__(self) -> drumlin.RowChanges:
        changes: drumlin.RowChanges = await self._call("next", (), {})
        return changes


@awaits(drumlin.Results)
class Results(Handle):
    """See :class:`drumlin.Results`. Once awaited, it is a mapping of paths to results."""

    def _made(self) -> "drumlin.Results":
        if self._object is None:
            raise drumlin.InvalidArgument("these results have not been read yet; await them first")
        made: drumlin.Results = self._object
        return made

    def __getitem__(self, path: str) -> Any:
        found = self._made()[path]

        async def make() -> Any:
            return found

        return Result(make) if isinstance(found, drumlin.Result) else found

    def __iter__(self) -> Any:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())
