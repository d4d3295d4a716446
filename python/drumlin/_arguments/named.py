"""Calls whose errors name the argument of a wrong type."""

import functools
import types
from collections.abc import Callable
from typing import Any, TypeVar

from drumlin._values.evidence import a_type

_Class = TypeVar("_Class", bound=type)

#: The start of the note that the binding adds to an exception, with the name of the argument.
_NOTE = "while processing '"
_FLAGS = (
    "audit",
    "bag",
    "coerce",
    "deep",
    "each_version",
    "inherit",
    "keep_all",
    "missing_ok",
    "native",
    "open_browser",
    "replace",
    "return_exceptions",
    "write",
)
_FUNCTIONS = ("progress",)


def flag(value: Any, name: str) -> bool:
    """A bool; values that are merely truthy or falsy are refused."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"{name} must be True or False, not {a_type(value)}")


def function(value: Any, name: str) -> Any:
    """A callable."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, not {a_type(value)}")
    return value


def _function_or_none(value: Any, name: str) -> Any:
    return None if value is None else function(value, name)


#: Arguments that are given by name only, and the checks on them.
_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(_FLAGS, flag),
    **dict.fromkeys(_FUNCTIONS, _function_or_none),
}


def told(error: TypeError) -> TypeError | None:
    """The exception with the argument's name in its message, if the core has noted the name; otherwise None."""
    for note in getattr(error, "__notes__", ()):
        if note.startswith(_NOTE):
            return TypeError(f"{note[len(_NOTE) : -1]}: {error}")
    return None


def names_arguments(*but: str) -> Callable[[_Class], _Class]:
    """Decorates a class so that its public methods check arguments given by name, and errors name the argument that the
    core refuses. Methods in ``but`` are left as they are, because they must be quick."""

    def decorate(kind: _Class) -> _Class:
        for name, method in list(vars(kind).items()):
            if not name.startswith("_") and name not in but and isinstance(method, types.FunctionType):
                setattr(kind, name, _named(method))
        return kind

    return decorate


def _named(method: Callable[..., Any]) -> Callable[..., Any]:
    checks, tell = _CHECKS, told

    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        for name in named:
            if name in checks:
                checks[name](named[name], name)
        try:
            return method(self, *arguments, **named)
        except TypeError as error:
            if (error_told := tell(error)) is None:
                raise
            raise error_told from None

    # With the globals of its own module, by which doctest determines the module of a function.
    made = types.FunctionType(call.__code__, method.__globals__, method.__name__, None, call.__closure__)
    return functools.wraps(method)(made)
