"""Records what a migration has done: the message of each commit says which version of which source it holds. So the
record exists if and only if the rows do."""

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
#: Errors that are not about one table: they end the migration.
FATAL = (Closed, Corrupt, InDoubt, Internal, Locked, SnapshotExpired, Unavailable)


class Mismatch(Exception):
    """The rows that were read back differ from those that were written."""


def message(origin: dict[str, Any], version: int, time: str, **more: Any) -> str:
    """The message of a version: where it comes from."""
    told = {**origin, "version": version, "time": time, **more}
    return _BEGIN + json.dumps(told, ensure_ascii=False)


def record_of(version: Version) -> dict[str, Any] | None:
    """What the message of a version says, if a migration made it; else None."""
    said = version.message
    if said is None or not said.startswith(_BEGIN):
        return None
    try:
        told = json.loads(said[len(_BEGIN) :])
    except ValueError:
        return None
    return told if isinstance(told, dict) and isinstance(told.get("version"), int) else None


class Found(NamedTuple):
    """What earlier runs have migrated of one table."""

    #: The number in the store of each version of the source.
    numbers: dict[int, int]
    #: The greatest version of the source that is in the store; None if there is none.
    newest: int | None
    #: The number of versions that were in the store and have been deleted.
    deleted: int
    #: For each version in the store, by its number, the snapshots that hold it.
    held: dict[int, frozenset[str]]


def found(store: Store, path: str, origin: dict[str, Any], times: dict[int, str]) -> Found:
    """Finds what earlier runs have migrated to ``path``. Raises :class:`drumlin.AlreadyExists` if the table has a
    version that does not come from this source. ``times`` are the times of the source's versions, by number."""
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
    """Makes one commit with the message ``said``. Nothing is committed if ``write`` raises, such as a Mismatch."""
    store.transact(write, message=said)


def iso(moment: dt.datetime) -> str:
    """A time in ISO 8601; one without a zone is in UTC."""
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)).isoformat()
