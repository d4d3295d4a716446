"""Defaults that the store makes: the time, UUIDs, the numbers of a sequence."""

import re
from typing import final

from drumlin._errors import InvalidArgument
from drumlin._values.evidence import a_type

__all__ = ["Generated", "now", "sequence", "uuid"]


@final
class Generated:
    """A default that is made for each row or call, by :func:`now`, :func:`uuid` or :func:`sequence`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"drumlin.{self._text}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Generated) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def now() -> Generated:
    """As a default in :meth:`Table.add_constraints <drumlin.Table.add_constraints>`: the time of the call that writes
    the row, one for all of its rows, by the clock that versions have. The column is of timestamps or dates.

    >>> import drumlin
    >>> table = drumlin.open("memory://").table("log")
    >>> _ = table.create({"id": "int64", "at": "timestamptz"}, key="id")
    >>> _ = table.add_constraints(defaults={"at": drumlin.now()})
    >>> table.insert({"id": 1}, returning=["at"]).returned.to_dicts()[0]["at"] == table.get(1)["at"]
    True
    """
    return Generated("now()")


def uuid() -> Generated:
    """As a default: a UUID of version 7 for each row, which begins with the time, so that later rows come after earlier
    ones. The column is of UUIDs (16 bytes) or of text.

    >>> import drumlin
    >>> table = drumlin.open("memory://").table("log")
    >>> _ = table.create({"id": "string", "n": "int64"}, key="id")
    >>> _ = table.add_constraints(defaults={"id": drumlin.uuid()})
    >>> len(table.insert({"n": [1, 2]}, returning="id").returned.to_dicts()[0]["id"])
    36
    """
    return Generated("uuid()")


def sequence(start: int = 1) -> Generated:
    """As a default: numbers from ``start`` on, none of them twice, whatever becomes of the rows: not after a restore,
    and not from another process. Some are never used, since a process takes 64 at once. The column is of integers of 32
    or 64 bits. A value that a row brings along does not move the sequence on.

    >>> import drumlin
    >>> table = drumlin.open("memory://").table("people")
    >>> _ = table.create({"id": "int64", "name": "string"}, key="id")
    >>> _ = table.add_constraints(defaults={"id": drumlin.sequence()})
    >>> table.insert({"name": ["Ada", "Grace"]}, returning="id").returned.to_dicts()
    [{'id': 1}, {'id': 2}]
    """
    if not isinstance(start, int) or isinstance(start, bool):
        raise TypeError(f"start must be an int, not {a_type(start)}")
    if not 0 <= start < 2**63:
        raise InvalidArgument(f"a sequence begins at a number from 0 to 2**63 - 1, not at {start}")
    return Generated("sequence()" if start == 1 else f"sequence({start})")


_NOW = "now|current_timestamp|localtimestamp|get_current_timestamp|current_date|today|transaction_timestamp"
#: What SQL calls the same.
_IN_SQL = {
    rf"({_NOW})(\s*\(\s*\))?": "now()",
    r"(uuid|gen_random_uuid|uuidv7|generate_uuid|newid|uuid_generate_v4|uuid_generate_v7)\s*\(\s*\)": "uuid()",
    r"nextval\s*\(.*\)": "sequence()",
}


def from_sql(text: str) -> Generated | None:
    """What makes a default that SQL writes so; None if it is a value."""
    if found := re.fullmatch(r"sequence\s*\(\s*(\d*)\s*\)", text.strip(), re.IGNORECASE):
        return sequence(int(found[1] or 1))
    same = (made for pattern, made in _IN_SQL.items() if re.fullmatch(pattern, text.strip(), re.IGNORECASE))
    made = next(same, None)
    return None if made is None else Generated(made)
