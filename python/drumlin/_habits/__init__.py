"""Names that people know from elsewhere, and what they are called here.

Nothing is in the API twice: a name that is not here is looked up in a table, and the error has the line to type.
"""

import datetime as dt
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from drumlin._habits.names import NAMES
from drumlin._habits.words import WORDS

__all__ = ["Habits", "argument", "instead", "lead_on", "missing", "table"]

#: By class, and for the arguments of all: code, and below it the names by which people know it. Messages show it as it
#: stands.
_TABLE = NAMES + WORDS

_UNEXPECTED = re.compile(r"(?:\w+\.)*(\w+)\(\) got an unexpected keyword argument '(\w+)'")


_found: dict[str, dict[str, str]] = {}


def table() -> dict[str, dict[str, str]]:
    """Code by class and name."""
    if _found:
        return _found
    found: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    code = ""
    for line in _TABLE.strip().splitlines():
        if re.fullmatch(r"\[\w+\]", line):
            names = found.setdefault(line[1:-1], {})
        elif line.startswith(" "):
            names |= dict.fromkeys(line.split(), code)
        else:
            code = line
    _found.update(found)
    return _found


def _near(name: str, known: Iterable[str], least: float) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(name, known, 1, least)), None)


def missing(kinds: list[str], name: str, known: list[str]) -> AttributeError:
    """The error for a name that a class lacks: what it is called here, or what is spelt like it. The first of ``kinds``
    is the class, the others are those in whose place it can be used."""
    code = next((names[name] for kind in kinds if name in (names := table().get(kind, {}))), None)
    near = None if code is not None else _near(name, known, 0.75)
    hint = f"; here: {code}" if code is not None else f"; did you mean {near!r}?" if near else ""
    owner = f"module {kinds[0]!r}" if kinds[0] == "drumlin" else f"{kinds[0]!r} object"
    return AttributeError(f"{owner} has no attribute {name!r}{hint}", name=name)


def argument(error: TypeError, known: tuple[str, ...]) -> TypeError | None:
    """The error for an argument that a method lacks, with what it is called here or what is spelt like it; None for
    others."""
    if (match := _UNEXPECTED.match(str(error))) is None:
        return None
    method, name = match.groups()
    codes = table()["arguments"]
    if (code := codes.get(f"{method}.{name}") or codes.get(name)) is not None:
        hint = f"; here: {code}"
    elif near := _near(name, known, 0.8):
        hint = f"; did you mean {near!r}?"
    elif (code := table()["calls"].get(method)) is not None:
        hint = f"; here: {code}"
    else:
        hint = f"; it has {', '.join(known)}" if known else ""
    return TypeError(f"{method}() has no argument {name!r}{hint}")


def lead_on(error: Exception, method: str, given: Iterable[Any]) -> None:
    """Adds to the message of an error of ``method`` with arguments ``given`` the call that may be meant."""
    told = str(error)
    codes = table()
    # Rows with other keys stand in the way of these.
    by_key = "unique index" not in told
    hints = [codes["errors"].get(f"{method}:{type(error).__name__}") if by_key else None]
    hints += [code for part, code in codes["messages"].items() if part.replace("_", " ") in told]
    if kind := re.search(r"(\w+) is not a JSON value", told):
        hints.append(codes["json"].get(kind[1], codes["json"]["other"]))
    for value in given:
        naive = isinstance(value, dt.datetime) and value.tzinfo is None
        if (naive or type(value).__name__ == "datetime64") and (
            "no version existed at" in told or "at that time" in told
        ):
            hints.append("when.astimezone() for local time; a datetime without a zone is taken as UTC")
        elif isinstance(value, str) and told.startswith(f"snapshot {value!r} does not exist"):
            number = re.fullmatch(r"\s*(-?[0-9]+)\s*", value)
            hints.append(f"as_of={number[1]}" if number else codes["as_of"].get((value.lower().split() or [""])[-1]))
        elif isinstance(value, str) and "{" in value and told.startswith("no table"):
            hints.append("store.read_many(paths); in a pattern, only * and ? stand for others")
    for code in filter(None, hints):
        if code not in told:
            told += f"; here: {code}"
            error.args = (told,)


def instead(section: str, name: str) -> str:
    """What is written in place of ``name``, as the end of a message; nothing if it is not in the table."""
    code = table().get(section, {}).get(name)
    return "" if code is None else f"; here: {code}"


class Habits:
    """A class whose missing names are explained."""

    __slots__ = ()

    # Not for type checkers, for which any name would then be there.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            kinds = [kind.__name__ for kind in type(self).__mro__]
            if "Tables" in kinds:
                # A transaction, or tables whose commits carry a message.
                kinds.append("Store")
            known = [] if name.startswith("_") else [name for name in dir(type(self)) if not name.startswith("_")]
            raise missing(kinds, name, known)
