"""What rows must be for a table to take them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from drumlin._arguments.checks import plain
from drumlin._arguments.expr import Expr
from drumlin._errors import InvalidArgument

__all__ = ["Constraints"]


class Constraints(NamedTuple):
    """What rows must be for a table to take them, and what they have in columns that they lack; made by
    :meth:`Table.constraints <drumlin.Table.constraints>`."""

    #: Predicates by name; no row makes one false.
    checks: dict[str, str]
    #: Columns that take no nulls, in the table's order.
    not_null: list[str]
    #: What rows that lack a column have in it.
    defaults: dict[str, Any]


def checks_of(checks: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Names and predicates."""
    if checks is None:
        return []
    if not isinstance(checks, Mapping):
        raise TypeError(f"checks is a dict of names and predicates, not a {type(checks).__name__}")
    found = []
    for name, check in checks.items():
        if not isinstance(name, str):
            raise TypeError(f"checks has a name that is no text: {name!r}")
        if not isinstance(check, (str, Expr)):
            raise TypeError(f"checks[{name!r}] is text or an expression made with drumlin.col, not {check!r}")
        found.append((name, str(check)))
    return found


def defaults_of(defaults: Mapping[str, Any] | None) -> Any:
    """The defaults, as the core takes them; `None` without any."""
    if defaults is None:
        return None
    if not isinstance(defaults, Mapping):
        raise TypeError(f"defaults is a dict of columns and values, not a {type(defaults).__name__}")
    for name, value in defaults.items():
        if not isinstance(name, str):
            raise TypeError(f"defaults has a column that is no text: {name!r}")
        if value is None:
            raise InvalidArgument(f"column {name!r}: a default is a value; without one, rows that lack it have null")
    return {name: plain(value) for name, value in defaults.items()} or None
