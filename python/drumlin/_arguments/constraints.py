"""Constraints on the rows of a table, and when they expire."""

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple

from drumlin._arguments.checks import plain
from drumlin._arguments.expr import Expr
from drumlin._arguments.generated import Generated, now, sequence, uuid
from drumlin._errors import InvalidArgument
from drumlin._values.evidence import a_type

__all__ = ["Constraints", "TimeToLive"]


class Constraints(NamedTuple):
    """The constraints on a table's rows, and the defaults of columns that rows lack; made by :meth:`Table.constraints
    <drumlin.Table.constraints>`."""

    #: Predicates by name; none is false for any row.
    checks: dict[str, str]
    #: Columns that take no nulls, in the table's order.
    not_null: list[str]
    #: The values of columns that rows lack, or what makes them: :func:`drumlin.now`, :func:`drumlin.uuid` or
    #: :func:`drumlin.sequence`.
    defaults: dict[str, Any]


class TimeToLive(NamedTuple):
    """When the rows of a table expire; made by :meth:`Table.ttl <drumlin.Table.ttl>`."""

    #: The column with their times.
    column: str
    #: How long after these times rows are still seen.
    after: dt.timedelta


def checks_of(checks: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Pairs of a check's name and its predicate."""
    if checks is None:
        return []
    if not isinstance(checks, Mapping):
        raise TypeError(f"checks must be a dict of names and predicates, not {a_type(checks)}")
    found = []
    for name, check in checks.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of checks must be str, not {name!r}")
        if not isinstance(check, (str, Expr)):
            raise TypeError(f"checks[{name!r}] must be text or an expression made with drumlin.col, not {check!r}")
        found.append((name, str(check)))
    return found


def defaults_of(defaults: Mapping[str, Any] | None) -> tuple[dict[str, Any] | None, list[tuple[str, str]]]:
    """The defaults, in the core's form: values, `None` without any, and what makes the others."""
    if defaults is None:
        return None, []
    if not isinstance(defaults, Mapping):
        raise TypeError(f"defaults must be a dict of columns and values, not {a_type(defaults)}")
    for name, value in defaults.items():
        if not isinstance(name, str):
            raise TypeError(f"the columns of defaults must be str, not {name!r}")
        if any(value is function for function in (now, sequence, uuid)):
            called = f"drumlin.{value.__name__}()"
            raise InvalidArgument(f"column {name!r}: the default is a function; call it: {called}")
        if value is None:
            raise InvalidArgument(f"column {name!r}: a default must not be None, which rows without one have")
    values = {name: plain(value) for name, value in defaults.items() if not isinstance(value, Generated)}
    return values or None, [(name, str(made)) for name, made in defaults.items() if isinstance(made, Generated)]
