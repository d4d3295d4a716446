"""What calls that change rows return, and feeds of such changes, as the core defines them."""

import datetime as dt
from collections.abc import Callable
from typing import Any, ClassVar, final

from drumlin._drumlin import Batches, Table
from drumlin._drumlin import _When as _When
from drumlin._drumlin.arrays import Mask
from drumlin._drumlin.reports import Version
from drumlin._results.result import Result

__all__ = [
    "DeleteReport",
    "Follower",
    "Lookup",
    "MergeReport",
    "RowChanges",
    "RowFeed",
    "RowsReport",
    "UpdateReport",
    "drop_follower",
    "follow",
    "followers",
    "off_rows",
    "on_rows",
]

@final
class DeleteReport:
    """The result of a delete of rows."""

    @property
    def rows(self) -> int:
        """The number of deleted rows."""
    @property
    def version(self) -> Version | None:
        """The version that it made, or the unchanged newest one if no row matched. None in a transaction."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class MergeReport:
    """The result of a merge."""

    @property
    def updated(self) -> int:
        """The number of rows that got new values."""
    @property
    def deleted(self) -> int:
        """The number of deleted rows."""
    @property
    def inserted(self) -> int:
        """The number of added rows."""
    @property
    def version(self) -> Version | None:
        """The version that it made, or the unchanged newest one if nothing changed. None in a transaction."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class RowsReport:
    """The result of a write by key."""

    @property
    def seq(self) -> int | None:
        """The number of the commit; None in a transaction."""
    @property
    def rows(self) -> int:
        """The number of written rows, or of keys to delete, whether they existed or not."""
    @property
    def version(self) -> Version | None:
        """The version that it made, if it was large or had metadata. Otherwise, its rows belong to the version that the
        next checkpoint, snapshot or large write makes."""
    @property
    def returned(self) -> Result:
        """The rows as they are after the call, or were before it if it deleted them: what ``returning`` asked for, in
        the order in which the keys were given. It has the methods of the result of a read. Raises
        :class:`drumlin.InvalidArgument` if no rows were asked for."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class UpdateReport:
    """The result of an update."""

    @property
    def rows(self) -> int:
        """The number of updated rows."""
    @property
    def version(self) -> Version | None:
        """The version that it made, or the unchanged newest one if no row matched. None in a transaction."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Lookup:
    """The result of a look-up by key."""

    def row(self, at: int) -> dict[str, Any] | None:
        """The row of the key at position `at`, or None."""
    @property
    def keys(self) -> Batches: ...
    @property
    def rows(self) -> Batches: ...
    @property
    def found(self) -> Mask: ...
    def __len__(self) -> int: ...

@final
class RowFeed:
    """What commits change in a table: see `drumlin.RowFeed`."""

    @property
    def place(self) -> str: ...
    def acknowledge(self) -> None:
        """Notes that all that was returned has been dealt with."""
    def next(self, timeout: float | dt.timedelta | None = None) -> RowChanges | None: ...

@final
class RowChanges:
    """Rows that one commit changed: see `drumlin.RowChanges`."""

    @property
    def version(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def time(self) -> dt.datetime: ...
    @property
    def place(self) -> str: ...
    @property
    def rows(self) -> Batches: ...

@final
class Follower:
    """A follower of a table."""

    @property
    def name(self) -> str:
        """Its name."""
    @property
    def place(self) -> str:
        """Up to where it is done."""
    @property
    def version(self) -> int | None:
        """The last version of which it has all; None if it has none."""
    @property
    def keep(self) -> dt.timedelta:
        """How long versions that it has not read are kept for it."""
    def __eq__(self, value: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

def follow(table: Table, since: _When | None, filter: str | None, name: str | None, keep: int | None) -> RowFeed:
    """Follows a table from `since` on: now, if it is not given. With a `name`, as a follower for which versions are
    kept for `keep` microseconds."""

def followers(table: Table) -> list[Follower]:
    """The followers of a table."""

def on_rows(
    table: Table, callback: Callable[[RowChanges], object], filter: str | None, name: str | None, keep: int | None
) -> str:
    """Calls `callback` for what commits change in a table; with a `name`, durably. Returns the trigger's name."""

def off_rows(table: Table, name: str) -> None:
    """Ends a trigger on rows of a table; a durable one for good."""

def drop_follower(table: Table, name: str) -> None:
    """Removes a follower of a table."""
