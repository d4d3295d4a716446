"""Views."""

from typing import Any, ClassVar, final

from drumlin._drumlin import Store, Table

__all__ = ["View", "catch_up", "create_view", "view_of", "views"]

@final
class View:
    """What a view is of, and whether it is in step."""

    @property
    def path(self) -> str:
        """The path of its table."""
    @property
    def over(self) -> str:
        """The pattern of the tables that it is over, its sources."""
    @property
    def path_columns(self) -> list[str]:
        """The columns that hold the names in their paths."""
    @property
    def by(self) -> list[str]:
        """The other columns that are grouped by."""
    @property
    def every(self) -> tuple[str, str] | None:
        """The column of times and the length of buckets, if there are any."""
    @property
    def agg(self) -> dict[str, tuple[str, str | None]]:
        """The aggregates, by name: the function, and what of."""
    @property
    def where(self) -> str | None:
        """Only rows for which this is true."""
    @property
    def stale(self) -> str:
        """What a read does if the view is behind: `wait`, `error` or `read`."""
    @property
    def behind(self) -> list[str]:
        """The paths of the sources with which it is behind; none if it is in step."""
    def __eq__(self, value: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

def create_view(
    store: Store,
    path: str,
    over: str,
    path_columns: list[str],
    condition: str | None,
    keys: list[str],
    every: Any,
    aggregates: list[Any],
    stale: str,
    progress: Any,
) -> View:
    """Makes a view at the path of a table."""

def views(store: Store) -> list[View]:
    """All views."""

def view_of(table: Table) -> View | None:
    """What a table is a view of."""

def catch_up(table: Table, progress: Any) -> int:
    """Brings a view up to date; returns with how many sources it was behind."""
