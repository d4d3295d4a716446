"""Finds the tables of an export, as of one instant, and the folder of each."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from drumlin import AsOf, InvalidArgument, NotFound, Result, Store, Transaction
from drumlin.migrate.arguments import a_type, as_of_argument
from drumlin.migrate.report import Tally


class Leaving(NamedTuple):
    """A table to be exported."""

    path: str
    #: The folder to which it is written.
    folder: Path
    result: Result


@contextmanager
def leaving(
    store: Store,
    pattern: str,
    directory: Path,
    as_of: AsOf | None,
    tally: Tally,
    path_columns: Iterable[str] | None = None,
) -> Iterator[list[Leaving]]:
    """The tables that ``pattern`` matches, all as of one instant."""
    if not isinstance(pattern, str):
        raise TypeError(f"pattern must be a str, not {a_type(pattern)}")
    when = as_of_argument(as_of)
    named = _named_parts(pattern, path_columns)
    with store.transaction(read_only=True) as tx:
        found = []
        for path in _paths(store, tx, pattern, when):
            try:
                result = tx.table(path).read(as_of=when)
            except NotFound as error:
                if isinstance(when, int):
                    tally.fail(path, when, error)
                # The table was made after that time.
                continue
            found.append(Leaving(path, _folder(directory, path, named), result))
        if not found:
            raise NotFound(f"no table matches '{pattern}'{'' if when is None else f' as of {when!r}'}")
        tally.expect(len(found))
        yield found


def _paths(store: Store, tx: Transaction, pattern: str, when: AsOf | None) -> list[str]:
    if not isinstance(when, str):
        return tx.tables(pattern)
    # A snapshot also shows tables that have been dropped since.
    held = [snapshot.versions for snapshot in store.snapshots() if snapshot.name == when]
    if not held:
        raise NotFound(f"snapshot '{when}' does not exist")
    # The store raises an error if the pattern is invalid.
    tx.tables(pattern)
    matches = matcher(pattern)
    return [path for path in held[0] if matches.fullmatch(path)]


def matcher(pattern: str) -> re.Pattern[str]:
    """A pattern over paths as a regular expression: ``**`` is any number of names, ``*`` and ``?`` are within one."""
    names = pattern.split("/")
    parts = []
    for at, name in enumerate(names):
        last = at == len(names) - 1
        if name == "**":
            # At the end it matches at least one name.
            parts.append("[^/]+(?:/[^/]+)*" if last else "(?:[^/]+/)*")
        else:
            parts.append("".join({"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)) for char in name))
            parts.append("" if last else "/")
    return re.compile("".join(parts), re.DOTALL)


def _named_parts(pattern: str, path_columns: Iterable[str] | None) -> dict[int, str]:
    """The names of path columns, by the index of their part of the path."""
    if path_columns is None:
        return {}
    if isinstance(path_columns, str):
        raise TypeError("path_columns must be a list of names, not a str")
    names, parts = list(path_columns), pattern.split("/")
    if "**" in parts:
        raise InvalidArgument(f"'{pattern}' has '**', which matches any number of names, so it has no path columns")
    wild = [at for at, part in enumerate(parts) if "*" in part or "?" in part]
    if len(wild) != len(names):
        raise InvalidArgument(f"'{pattern}' has {len(wild)} wildcards, but path_columns names {len(names)}")
    return dict(zip(wild, names, strict=True))


def _folder(directory: Path, path: str, named: dict[int, str]) -> Path:
    names = path.split("/")
    if not named:
        return directory.joinpath(*names)
    return directory.joinpath(*(f"{column}={quote(names[at], safe='')}" for at, column in sorted(named.items())))
