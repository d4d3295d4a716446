"""Parameters of filters: values in the place of ``?``, ``$1``, ``:name`` and ``$name``, written as literals, so that no
value can be taken for anything else."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drumlin._arguments.expr import literal
from drumlin._errors import InvalidArgument
from drumlin._values.evidence import a_type

__all__ = ["Parameters", "with_params"]

#: Texts and names in quotes, in which nothing is replaced; casts (::); and the places of parameters.
_PLACES = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|::|(?P<next>\?)|[$](?P<number>[0-9]+)|[:$](?P<name>[A-Za-z_]\w*)"
)


class Parameters:
    """Values for the parameters of one or more texts, which take those without a name in turn."""

    def __init__(self, params: Any) -> None:
        if isinstance(params, (str, bytes)) or not isinstance(params, (Mapping, Sequence)):
            raise TypeError(f"params must be a list of values, or a dict by name, not {a_type(params)}")
        self._named = params if isinstance(params, Mapping) else None
        self._listed = [] if isinstance(params, Mapping) else list(params)
        self._rest: Iterator[int] = iter(range(len(self._listed)))
        self._used: set[Any] = set()

    def fill(self, text: str) -> str:
        """The text with values in the place of its parameters."""
        return _PLACES.sub(self._value, text)

    def check_used(self) -> None:
        """Fails if a value was given for nothing."""
        given = range(len(self._listed)) if self._named is None else self._named
        if left := [which for which in given if which not in self._used]:
            what = f"params[{left[0]}]" if self._named is None else f"params[{left[0]!r}]"
            raise InvalidArgument(f"{what} is not used: a parameter is written ? or $1, in a dict :name or $name")

    def _value(self, match: "re.Match[str]") -> str:
        if match["next"]:
            which: Any = next(self._rest, None) if self._named is None else None
            if which is None:
                told = "a dict, which has no order" if self._named is not None else f"only {len(self._listed)} values"
                raise InvalidArgument(f"params has nothing for a ?: it is {told}")
            value = self._listed[which]
        elif match["number"]:
            which = int(match["number"]) - 1
            if self._named is not None or not 0 <= which < len(self._listed):
                raise InvalidArgument(f"params has no value for ${match['number']}")
            value = self._listed[which]
        elif match["name"]:
            which = match["name"]
            if self._named is None or which not in self._named:
                raise InvalidArgument(f"params has no value for {match[0]}; named parameters are given as a dict")
            value = self._named[which]
        else:
            return match[0]
        self._used.add(which)
        return literal_text(value, f"params: {match[0]}")


def literal_text(value: Any, what: str) -> str:
    """A value as a literal of the filter language. A list becomes a list in parentheses, for ``in``."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return "null"
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return f"({', '.join(literal_text(one, what) for one in value)})"
    return f"({literal(value, what)})" if isinstance(value, (int, float)) and value < 0 else str(literal(value, what))


def with_params(text: str, params: Any) -> str:
    """The text with values in the place of its parameters."""
    given = Parameters(params)
    filled = given.fill(text)
    given.check_used()
    return filled
