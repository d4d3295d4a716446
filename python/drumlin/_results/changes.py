"""The rows that commits change in a table, as they are made."""

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, final

from drumlin import _drumlin
from drumlin._habits import Habits
from drumlin._results.result import Result
from drumlin._results.rows import NoArray

if TYPE_CHECKING:
    import pandas as _pd  # type: ignore[import-untyped, unused-ignore]
    import polars as _pl
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["RowChanges", "RowFeed"]


@final
class RowChanges(NoArray, Habits):
    """Rows that one commit changed in a table; :class:`RowFeed` returns them. Iterating over it gives dicts; it can
    also be had as a frame, and any library that takes Arrow streams can read it.

    Its columns are those of the table, and three more: ``_change`` (``insert``, ``delete``, or ``update_before`` and
    ``update_after``, one after the other), ``_version`` and ``_time``."""

    __slots__ = ("_core", "_path")

    def __init__(self, core: _drumlin.RowChanges, path: str) -> None:
        self._core, self._path = core, path

    @property
    def version(self) -> int:
        """The version that the commit made. Rows written by key that are still in memory have no version yet: then it
        is the one that they will get."""
        return self._core.version

    @property
    def kind(self) -> str:
        """What made the version: see ``Version.kind``."""
        return self._core.kind

    @property
    def time(self) -> dt.datetime:
        """The time of the commit, in UTC."""
        return self._core.time

    @property
    def place(self) -> str:
        """Where a feed goes on after these rows: ``table.follow(since=changes.place)``."""
        return self._core.place

    @property
    def rows(self) -> Result:
        """The rows."""
        return Result(self._core.rows, self._path, selects=True)

    def to_arrow(self) -> "_pa.Table":
        """The rows as a pyarrow Table."""
        return self.rows.to_arrow()

    def to_pandas(self, **options: Any) -> "_pd.DataFrame":
        """The rows as a pandas DataFrame. See :meth:`Result.to_pandas <drumlin.Result.to_pandas>`."""
        return self.rows.to_pandas(**options)

    def to_polars(self) -> "_pl.DataFrame":
        """The rows as a Polars DataFrame."""
        return self.rows.to_polars()

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as a list of dicts, with Python values."""
        return self.rows.to_dicts()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.rows.num_rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())

    def __repr__(self) -> str:
        return f"RowChanges({self._path!r}, version={self.version}, kind={self.kind!r}, {len(self)} rows)"


@final
class RowFeed(Habits):
    """The rows that commits change in a table, in order, including those of future commits: an iterator that waits for
    the next :class:`RowChanges`. Made by :meth:`Table.follow <drumlin.Table.follow>`.

    After an error, the next call goes on where this one was. While one thread waits, another one gets an error that
    the feed is in use."""

    __slots__ = ("_core", "_path")

    def __init__(self, core: _drumlin.RowFeed, path: str) -> None:
        self._core, self._path = core, path

    @property
    def path(self) -> str:
        """The path of the table."""
        return self._path

    @property
    def place(self) -> str:
        """Where it is, as text: ``table.follow(since=feed.place)`` goes on with what this feed would return next, also
        in another process."""
        return self._core.place

    def next(self, timeout: float | dt.timedelta | None = None) -> RowChanges | None:
        """The next rows, or None if none come within ``timeout``: seconds or a timedelta; None waits without limit.
        They are of one commit, and some thousands at most at a time, except for rows written by key."""
        came = self._core.next(timeout)
        return None if came is None else RowChanges(came, self._path)

    def acknowledge(self) -> None:
        """Notes that all that this feed has returned was dealt with: the next consumer of its follower goes on after
        it, and versions before it are no longer kept for it. One commit; none if nothing came since.

        Raises :class:`drumlin.ConditionFailed` if another consumer has taken the follower up since, or if it was
        dropped: then this one must stop."""
        self._core.acknowledge()

    def __iter__(self) -> "RowFeed":
        return self

    def __next__(self) -> RowChanges:
        came = self.next()
        assert came is not None
        return came

    def __repr__(self) -> str:
        return f"RowFeed({self._path!r}, place={self.place!r})"
