"""The reading side of a data set, for everything that reads it: groups, engines, splits."""

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
