"""The reading side of a data set, for everything that reads it: groups, engines, splits, results."""

from collections.abc import Iterable
from typing import Any

from drumlin import _drumlin
from drumlin._errors import InvalidArgument


class Scanned:
    """Tables, with the columns, filters and limit of the read."""

    __slots__ = ()

    _core: _drumlin.Dataset
    #: The same data set with the types of its tables.
    _exact: _drumlin.Dataset
    #: The store of the tables; None in a transaction.
    _store: Any
    _columns: list[str] | None
    _filters: list[str]
    _limit: int | None

    def _stream(
        self, columns: list[str] | None, filters: Iterable[str] = (), limit: int | None = None
    ) -> "_drumlin.Stream":
        limits = [rows for rows in (limit, self._limit) if rows is not None]
        return self._core.stream(columns, [*self._filters, *filters], min(limits, default=None))

    def _unlimited(self, what: str) -> None:
        if self._limit is not None:
            raise InvalidArgument(f"{what} must come before limit: which rows a limit keeps is not defined")


class PinnedRows(Scanned):
    """The rows of a data set of the core for which filters are true."""

    __slots__ = ("_columns", "_core", "_exact", "_filters", "_limit", "_store")

    def __init__(self, core: _drumlin.Dataset, filters: list[str]) -> None:
        self._core = self._exact = core
        self._filters = filters
        self._store = self._columns = self._limit = None


class ScannedReading:
    """Tables that are read as one, in the way in which a result reads one table."""

    __slots__ = ("_columns", "_filters", "_limit", "_of")

    def __init__(self, of: _drumlin.Dataset, columns: list[str] | None, filters: list[str], limit: int | None) -> None:
        self._of = of
        self._columns, self._filters, self._limit = columns, filters, limit

    @property
    def schema(self) -> _drumlin.Schema:
        """The columns that are read."""
        return self._of.stream(self._columns, self._filters, 0).schema

    @property
    def known_rows(self) -> int | None:
        """The number of rows, if it is known without reading: it is not."""
        return None

    def count_rows(self) -> int:
        """The number of rows."""
        return self._of.count_rows(self._filters, self._limit)

    def stream(self, columns: list[str] | None = None) -> _drumlin.Stream:
        """The rows, batch by batch."""
        return self._of.stream(self._columns if columns is None else columns, self._filters, self._limit)

    def collect(self, columns: list[str] | None = None) -> _drumlin.Batches:
        """All rows."""
        return self._of.collect(self._columns if columns is None else columns, self._filters, self._limit)

    def head(self, rows: int, columns: list[str] | None = None) -> _drumlin.Batches:
        """At most ``rows`` of the first rows."""
        return self._of.collect(columns or self._columns, self._filters, min(rows, self._least(rows)))

    def narrowed(
        self,
        columns: list[str] | None = None,
        filter: str | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> "ScannedReading":
        """The same with fewer columns or rows."""
        if last is not None:
            raise InvalidArgument("tail is for one table, because the rows of many tables have no common order")
        if filter is not None and self._limit is not None:
            raise InvalidArgument("where comes before limit and head: which rows a limit keeps is not defined")
        filters = self._filters if filter is None else [*self._filters, filter]
        limit = self._limit if first is None else self._least(first)
        made = ScannedReading(self._of, self._columns if columns is None else columns, filters, limit)
        # A filter that does not fit the columns is refused here.
        _ = made.schema
        return made

    def dataset(self) -> tuple[_drumlin.Dataset, list[str]]:
        """The tables, and the filters."""
        if self._limit is not None:
            raise InvalidArgument("groups come before limit and head: which rows a limit keeps is not defined")
        return self._of, self._filters

    def _least(self, rows: int) -> int:
        return rows if self._limit is None else min(rows, self._limit)
