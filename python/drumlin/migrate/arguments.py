"""Checks of arguments, and values as messages show them."""

import datetime as dt
import operator
from collections.abc import Iterable
from typing import Any

from drumlin import AsOf

#: Libraries whose types users know by the name of the library, not by that of the module that defines them.
_SHORTENED = ("drumlin", "numpy", "pandas", "polars", "pyarrow")


def a_type(value: Any) -> str:
    """The type of a value with an article: ``a str``, ``an int``, ``a numpy.ndarray``; ``None`` for None."""
    if value is None:
        return "None"
    name, module = type(value).__qualname__, type(value).__module__
    if module != "builtins":
        library = module.partition(".")[0]
        name = f"{library if library in _SHORTENED else module}.{name}"
    return f"{'an' if name[0] in 'aeiouAEIO' else 'a'} {name}"


def flag(value: Any, name: str) -> None:
    """Checks that ``value`` is a bool."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name} must be True or False, not {a_type(value)}")


def names(values: Iterable[str], name: str) -> list[str]:
    """Checks that ``values`` are a list of names, and not one name."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name} must be a list of names, not one name; write [{values!r}]")
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of names, not {a_type(values)}")
    checked = list(values)
    for value in checked:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a list of names, each a str; {value!r} is {a_type(value)}")
    return checked


def as_of_argument(as_of: AsOf | None) -> AsOf | None:
    """Checks the type of ``as_of``, and makes a number an int. The store checks the rest when it reads."""
    if as_of is None or isinstance(as_of, (str, dt.date)):
        return as_of
    if isinstance(as_of, bool) or not hasattr(as_of, "__index__"):
        raise TypeError(f"as_of must be a version's number, a snapshot's name or a time, not {a_type(as_of)}")
    return operator.index(as_of)
