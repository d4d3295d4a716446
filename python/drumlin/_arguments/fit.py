"""How a pandas frame becomes rows of a table, and the properties of the table that this depends on."""

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from drumlin._drumlin import Schema, Table
from drumlin._errors import NotFound

#: What the rows of a table are ordered by: its sort columns, its key, or nothing.
Order: TypeAlias = Literal["sort", "key"] | None


def order_of(table: Table) -> Order:
    """What the rows of a table are ordered by, if the table exists."""
    try:
        sort, key = table.order()
    except NotFound:
        return None
    return "key" if key else "sort" if sort else None


def schema_of(table: Table) -> Schema | None:
    """The schema of a table, if it exists."""
    try:
        return table.schema(None)
    except NotFound:
        return None


class Fit(NamedTuple):
    """How a pandas frame becomes rows of a table."""

    #: Whether values that would not come back equal are stored as pyarrow converts them.
    coerce: bool = False
    #: For writes: what the rows of the table are ordered by, unless they stay in the order in which they were written.
    ordered: Callable[[], Order] | None = None
    #: For writes: the columns to sort by, if given.
    sort: tuple[str, ...] = ()
    #: For calls that add rows: the schema of the table, if it exists.
    onto: Callable[[], Schema | None] | None = None
