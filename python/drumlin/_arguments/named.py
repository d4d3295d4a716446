"""Calls whose errors name the argument of a wrong type."""

import functools
import re
import types
from collections.abc import Callable
from typing import Any, TypeVar, cast

from drumlin._habits import argument
from drumlin._values.evidence import a_type

_Class = TypeVar("_Class", bound=type)
_Method = TypeVar("_Method", bound=Callable[..., Any])

#: The start of the note that the binding adds to an exception, with the name of the argument.
_NOTE = "while processing '"
_FLAGS = (
    "audit",
    "bag",
    "coerce",
    "deep",
    "each_version",
    "exist_ok",
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


def bound_wrongly(error: TypeError, method: Callable[..., Any]) -> TypeError | None:
    """The error for a call of ``method`` with arguments that it does not have, in words that lead on; None if the error
    comes from within it."""
    if error.__traceback__ is None or error.__traceback__.tb_next is not None:
        return None
    import inspect

    parameters = inspect.signature(method).parameters
    known = tuple(parameters)[1:]
    if (wrong := argument(error, known)) is not None:
        return wrong
    if not re.search(r"argument.* (was|were) given|missing \d+ required", str(error)):
        return None
    shown = [f"{name}=..." if one.kind is one.KEYWORD_ONLY else name for name, one in parameters.items()]
    what = str(error).partition("() ")[2] or str(error)
    return TypeError(f"{method.__name__}({', '.join(shown[1:])}) {what}")


def explained(method: _Method) -> _Method:
    """Decorates a method that must be quick: only calls with arguments that it does not have are explained."""

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except TypeError as error:
            if (wrong := bound_wrongly(error, method)) is None:
                raise
            raise wrong from None

    return cast(_Method, functools.wraps(method)(call))


def _named(method: Callable[..., Any]) -> Callable[..., Any]:
    checks, tell, explain = _CHECKS, told, bound_wrongly

    def call(self: Any, /, *arguments: Any, **named: Any) -> Any:
        for name in named:
            if name in checks:
                checks[name](named[name], name)
        try:
            return method(self, *arguments, **named)
        except TypeError as error:
            if (error_told := tell(error) or explain(error, method)) is None:
                raise
            raise error_told from None

    # With the globals of its own module, by which doctest determines the module of a function.
    made = types.FunctionType(call.__code__, method.__globals__, method.__name__, None, call.__closure__)
    return functools.wraps(method)(made)
