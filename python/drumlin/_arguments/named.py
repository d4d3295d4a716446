"""Calls whose errors name the argument of a wrong type."""

import functools
import re
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from drumlin._errors import Error, InvalidArgument
from drumlin._habits import argument, instead, lead_on
from drumlin._values.evidence import a_type, shown

_Class = TypeVar("_Class", bound=type)
_Method = TypeVar("_Method", bound=Callable[..., Any])

#: The start of the note that the binding adds to an exception, with the name of the argument.
_NOTE = "while processing '"
_FLAGS = (
    "audit",
    "bag",
    "coerce",
    "deep",
    "deferred",
    "each_version",
    "exist_ok",
    "inherit",
    "keep_all",
    "missing_ok",
    "native",
    "nulls_equal",
    "open_browser",
    "replace",
    "return_exceptions",
    "unique",
    "write",
)
_FUNCTIONS = ("progress",)


def flag(value: Any, name: str) -> bool:
    """A bool; values that are merely truthy or falsy are refused."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"{name} must be True or False, not {a_type(value)}")


def function(value: Any, name: str) -> Any:
    """A callable; a class is none that is meant."""
    if not callable(value) or isinstance(value, type):
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
    known = tuple(name for name in parameters if name != "self")
    if (wrong := argument(error, known)) is not None:
        return wrong
    if not re.search(r"argument.* (was|were) given|missing \d+ required", str(error)):
        return None
    shown = [f"{name}=..." if parameters[name].kind is inspect.Parameter.KEYWORD_ONLY else name for name in known]
    what = str(error).partition("() ")[2] or str(error)
    return TypeError(f"{method.__name__}({', '.join(shown)}) {what}{instead('calls', method.__name__)}")


def not_text(error: UnicodeEncodeError, method: Callable[..., Any], given: Iterable[Any]) -> InvalidArgument | None:
    """The error for text of the call of ``method`` that cannot be encoded; None if the error is of other code."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not last.tb_frame.f_globals.get("__name__", "").startswith("drumlin"):
        return None
    import inspect

    known = inspect.signature(method).parameters
    which = next((f"{name}: " for name, value in zip(known, given, strict=False) if value is error.object), "")
    return InvalidArgument(f"{which}{shown(error.object)} has half a surrogate pair, which is not valid text")


def explained(method: _Method) -> _Method:
    """Decorates a method that must be quick: only calls with arguments that it does not have are explained."""

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except TypeError as error:
            if (wrong := bound_wrongly(error, method)) is None:
                raise
            raise wrong from None
        except UnicodeEncodeError as error:
            raise not_text(error, method, arguments) or error from None
        except Error as error:
            lead_on(error, method.__qualname__, (*arguments, *named.values()))
            raise

    return cast(_Method, functools.wraps(method)(call))


def _named(method: Callable[..., Any]) -> Callable[..., Any]:
    checks, tell, explain, lead, errors, no_text = _CHECKS, told, bound_wrongly, lead_on, Error, not_text

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
        except UnicodeEncodeError as error:
            raise no_text(error, method, (self, *arguments)) or error from None
        except errors as error:
            lead(error, method.__qualname__, (*arguments, *named.values()))
            raise

    # With the globals of its own module, by which doctest determines the module of a function.
    made = types.FunctionType(call.__code__, method.__globals__, method.__name__, None, call.__closure__)
    return functools.wraps(method)(made)
