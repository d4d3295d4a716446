"""What is read of a data set, for whatever reads it: groups, engines, splits."""

from collections.abc import Iterable
from typing import Any

from drumlin import _drumlin
from drumlin._errors import InvalidArgument


class Scanned:
    """Tables with the columns, the filters and the limit that they are read with."""

    __slots__ = ()

    _core: _drumlin.Dataset
    #: The same in the types that the tables have.
    _exact: _drumlin.Dataset
    #: The store that they are in; None in a transaction.
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
