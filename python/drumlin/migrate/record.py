"""How a migration knows what it has done: each version says where it is from, in the message of the commit that made
it. So the note is there if and only if the rows are."""

import datetime as dt
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from drumlin import (
    AlreadyExists,
    Closed,
    Corrupt,
    InDoubt,
    Internal,
    Locked,
    NotFound,
    SnapshotExpired,
    Store,
    Transaction,
    Unavailable,
    Version,
)

_BEGIN = "migrated "
#: What fails with these is no fault of the table at hand: the migration ends.
FATAL = (Closed, Corrupt, InDoubt, Internal, Locked, SnapshotExpired, Unavailable)


class Mismatch(Exception):
    """What was read back is not what was written."""


def message(origin: dict[str, Any], version: int, time: str, **more: Any) -> str:
    """What a version says of where it is from."""
    told = {**origin, "version": version, "time": time, **more}
    return _BEGIN + json.dumps(told, ensure_ascii=False)


def record_of(version: Version) -> dict[str, Any] | None:
    """What a version says of where it is from, if a migration made it."""
    said = version.message
    if said is None or not said.startswith(_BEGIN):
        return None
    try:
        told = json.loads(said[len(_BEGIN) :])
    except ValueError:
        return None
    return told if isinstance(told, dict) and isinstance(told.get("version"), int) else None


class Found(NamedTuple):
    """What earlier runs have left of one table."""

    #: The number here of each version of the source.
    numbers: dict[int, int]
    #: The greatest version of the source that is here; None if there is none.
    newest: int | None
    #: How many versions were here and are deleted.
    deleted: int
    #: The snapshots that hold each version here, by its number.
    held: dict[int, frozenset[str]]


def found(store: Store, path: str, origin: dict[str, Any], times: dict[int, str]) -> Found:
    """What is at ``path``. :class:`drumlin.AlreadyExists` if it is anything else than what earlier runs have brought of
    the same source; ``times`` are those of the versions of the source."""
    try:
        versions = store.table(path).versions()
    except NotFound:
        return Found({}, None, 0, {})
    numbers: dict[int, int] = {}
    for version in versions:
        record = record_of(version)
        if record is None or any(record.get(key) != value for key, value in origin.items()):
            said = "no migration made it" if record is None else f"it is of {_source(record)}"
            raise AlreadyExists(
                f"'{path}' has a version {version.version}, and {said}; take another prefix or path, or drop the table"
            )
        number = record["version"]
        if number in times and record.get("time") != times[number]:
            raise AlreadyExists(
                f"'{path}' has version {number} of {record.get('time')}, and the source has one of {times[number]}: "
                "these are two sources; take another prefix or path, or drop the table"
            )
        numbers[number] = version.version
    held = {version.version: frozenset(version.snapshots) for version in versions}
    return Found(numbers, max(numbers), versions[-1].version + 1 - len(versions), held)


def _source(record: dict[str, Any]) -> str:
    told = [f"{key} {value!r}" for key, value in record.items() if key not in ("from", "version", "time")]
    return f"{record.get('from')} ({', '.join(told)})"


def commit(store: Store, said: str, write: Callable[[Transaction], None]) -> None:
    """One commit that says ``said``, unless ``write`` finds that it does not read back what it has written."""
    store.transact(write, message=said)


def iso(moment: dt.datetime) -> str:
    """A time as text; one without a zone is in UTC."""
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)).isoformat()
