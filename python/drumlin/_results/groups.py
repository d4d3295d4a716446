"""Groups and aggregates in the form of the core."""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from drumlin._arguments.checks import one_of, since_epoch, text
from drumlin._arguments.expr import Expr
from drumlin._errors import InvalidArgument
from drumlin._values.evidence import a_type, shown

__all__ = ["Buckets", "asked", "buckets", "key_names"]

#: Functions, and what they need besides a column.
_FUNCTIONS: dict[str, str | None] = {
    **dict.fromkeys(("count", "count_distinct", "sum", "mean", "min", "max", "first", "last")),
    **dict.fromkeys(("std", "var", "median", "any", "all")),
    "quantile": "a share from 0 to 1",
    "weighted_mean": "the column of weights",
}

#: The time column, length, origin (microseconds, the nanoseconds beyond them, whether it has a zone), whether buckets
#: are closed on the right, whether they are labelled by their end.
Buckets = tuple[str, str, tuple[int, int, bool] | None, bool, bool]


def _column(value: Any, name: str) -> str:
    if isinstance(value, (str, Expr)):
        return str(value)
    raise TypeError(f"{name}: a column must be a name, or a calculation made with drumlin.col, not {a_type(value)}")


#: The name of an aggregate, its function, its column, a number that it needs, and another column.
Asked = tuple[str, str, str | None, float | None, str | None]


def asked(by_column: Any, aggregates: Mapping[str, Any]) -> list[Asked]:
    """Aggregates: functions by column, which keep the column's name, then others by their own."""
    if by_column is None:
        return [_asked(name, how) for name, how in aggregates.items()]
    if not isinstance(by_column, Mapping):
        raise TypeError(
            "aggregates are given by name, such as agg(n='count', mean=('price', 'mean')), or by column, such as "
            f"agg({{'price': 'mean'}}), not as {a_type(by_column)}"
        )
    named: dict[str, Any] = {}
    for column, functions in by_column.items():
        if isinstance(functions, str):
            named[_column(column, "agg")] = (column, functions)
        elif isinstance(functions, list):
            named |= {f"{_column(column, 'agg')}_{function}": (column, function) for function in functions}
        else:
            raise TypeError(f"agg: {column!r} needs a function such as 'mean', or a list of them, not {functions!r}")
    if twice := [name for name in named if name in aggregates]:
        raise InvalidArgument(f"agg: {twice[0]!r} is given twice, by column and by name")
    return [_asked(name, how) for name, how in (named | dict(aggregates)).items()]


def _asked(name: str, how: Any) -> Asked:
    if isinstance(how, str) and how == "count":
        return (name, "count", None, None, None)
    if isinstance(how, str) or not isinstance(how, (tuple, list)) or not 2 <= len(how) <= 3:
        raise TypeError(
            f"{name} must be 'count', or a pair of a column and a function such as ('price', 'mean'), not {shown(how)}"
        )
    column, function, *more = how
    if not isinstance(function, str) or function not in _FUNCTIONS:
        raise InvalidArgument(f"{name}: {shown(function)} is not a function; expected one of {', '.join(_FUNCTIONS)}")
    needs = _FUNCTIONS[function]
    if (needs is not None) != bool(more):
        raise InvalidArgument(f"{name}: {function} needs {'only a column' if needs is None else needs}")
    of = _column(column, name)
    if function == "weighted_mean":
        return (name, function, of, None, _column(more[0], name))
    if not more:
        return (name, function, of, None, None)
    if isinstance(more[0], bool) or not isinstance(more[0], (int, float)):
        raise TypeError(f"{name}: a quantile must be a number from 0 to 1, not {more[0]!r}")
    return (name, function, of, float(more[0]), None)


def buckets(column: Any, length: Any, origin: Any = None, closed: Any = "left", label: Any = "left") -> Buckets:
    """Buckets of time, in the core's form."""
    for value, name in ((closed, "closed"), (label, "label")):
        one_of(value, name, ("left", "right"))
    since = None
    if origin is not None:
        # NaT of pandas is a datetime that is not equal to itself.
        if not isinstance(origin, dt.date) or origin != origin:
            raise TypeError(f"origin must be a date or a datetime, not {origin!r}")
        at = origin if isinstance(origin, dt.datetime) else dt.datetime(origin.year, origin.month, origin.day)
        since = (since_epoch(at), getattr(at, "nanosecond", 0), at.tzinfo is not None)
    return (text(column, "on"), text(length, "every"), since, closed == "right", label == "right")


def key_names(keys: Iterable[Any]) -> list[str]:
    """The names of the columns to group by."""
    names = list(keys)
    if len(names) == 1 and isinstance(names[0], (list, tuple)):
        names = list(names[0])
    for key in names:
        if not isinstance(key, str):
            raise TypeError(f"a key must be the name of a column, not {a_type(key)}")
    return names
