"""How a pandas frame becomes rows of a table, and what of the table that depends on."""

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from drumlin._drumlin import Schema, Table
from drumlin._errors import NotFound

#: What a table's rows are ordered by: its sort columns, its key, or nothing.
Order: TypeAlias = Literal["sort", "key"] | None


def order_of(table: Table) -> Order:
    """What orders the rows of a table, if it is there."""
    try:
        sort, key = table.order()
    except NotFound:
        return None
    return "key" if key else "sort" if sort else None


def schema_of(table: Table) -> Schema | None:
    """The schema of a table, if it is there."""
    try:
        return table.schema(None)
    except NotFound:
        return None


class Fit(NamedTuple):
    """How a pandas frame becomes rows of a table."""

    #: Whether values that would not come back are stored as pyarrow converts them.
    coerce: bool = False
    #: What orders the rows of the table, if they do not stay in the order in which they were written. For writes.
    ordered: Callable[[], Order] | None = None
    #: The columns to sort by, if they are given. For writes.
    sort: tuple[str, ...] = ()
    #: The schema of the table, if it is there. For what adds rows.
    onto: Callable[[], Schema | None] | None = None
