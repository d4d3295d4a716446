"""Reads an ArcticDB library: its versions, and the frame of each."""

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from drumlin import InvalidArgument
from drumlin.migrate.arguments import a_type
from drumlin.migrate.packages import need
from drumlin.migrate.record import iso

#: The approximate size of a value in a frame, text or number.
_VALUE_BYTES = 16


class SourceVersion(NamedTuple):
    """A version of a symbol."""

    number: int
    time: str
    #: Whether it is deleted, so that only snapshots show it.
    deleted: bool
    snapshots: tuple[str, ...]

    @property
    def as_of(self) -> int | str:
        """The ``as_of`` with which ArcticDB reads it."""
        return self.snapshots[0] if self.deleted else self.number


class SourceFrame(NamedTuple):
    """The data of a version."""

    frame: Any
    metadata: Any
    #: What ArcticDB returned: a "frame", a "series" or an "array".
    kind: str


class Refused(Exception):
    """The data of a version are not a table."""


def symbols_of(
    library: Any, pattern: str | None, symbols: Iterable[str] | None, versions: bool, snapshots: bool
) -> dict[str, list[SourceVersion]]:
    """The versions of each symbol to import, the oldest first."""
    wanted = _wanted(pattern, symbols)
    found: dict[str, list[SourceVersion]] = {}
    for symbol_version, info in library.list_versions().items():
        symbol = symbol_version.symbol
        if not wanted(symbol) or (info.deleted and not (snapshots and info.snapshots)):
            continue
        held = tuple(sorted(info.snapshots)) if snapshots else ()
        version = SourceVersion(symbol_version.version, iso(info.date), bool(info.deleted), held)
        found.setdefault(symbol, []).append(version)
    for listed in found.values():
        listed.sort()
    if not versions:
        found = {symbol: _newest_and_held(listed) for symbol, listed in found.items()}
    if symbols is not None:
        missing = sorted(set(_names(symbols)) - set(found))
        if missing:
            raise InvalidArgument(f"the library has no symbol {', '.join(map(repr, missing[:5]))}")
    return dict(sorted(found.items()))


def _wanted(pattern: str | None, symbols: Iterable[str] | None) -> Callable[[str], bool]:
    if symbols is not None:
        if pattern is not None:
            raise InvalidArgument("give a pattern or symbols, not both")
        names = frozenset(_names(symbols))
        return lambda symbol: symbol in names
    if pattern is None:
        return lambda symbol: True
    if not isinstance(pattern, str):
        raise TypeError(f"pattern must be a str, not {a_type(pattern)}")
    return lambda symbol: fnmatchcase(symbol, pattern)


def _names(symbols: Iterable[str]) -> list[str]:
    if isinstance(symbols, str):
        raise TypeError("symbols must be a list of str, not a str")
    return list(symbols)


def _newest_and_held(versions: list[SourceVersion]) -> list[SourceVersion]:
    live = [version for version in versions if not version.deleted]
    return [version for version in versions if version.snapshots or version in live[-1:]]


def size_of(library: Any, symbol: str, version: SourceVersion) -> int:
    """The approximate size in bytes of a version's frame. Pickled data are refused here, because reading them would run
    code that they contain."""
    told = library.get_description(symbol, as_of=version.as_of)
    if told.row_count is None:
        raise Refused("it is pickled, so it cannot be read as a table; read it in ArcticDB, and write its contents")
    return int(told.row_count) * (len(told.columns) + max(len(told.index), 1)) * _VALUE_BYTES


def frame_of(library: Any, symbol: str, version: SourceVersion) -> SourceFrame:
    """The data of a version, as a pandas frame."""
    pandas, numpy = need("pandas", "an ArcticDB library", "pandas"), need("numpy", "an ArcticDB library", "pandas")
    item = library.read(symbol, as_of=version.as_of, output_format="pandas")
    if item.version != version.number:
        raise Refused(f"ArcticDB read version {item.version} in its place: the library changed")
    data = item.data
    if isinstance(data, pandas.DataFrame):
        return SourceFrame(data, item.metadata, "frame")
    if isinstance(data, pandas.Series):
        return SourceFrame(data.to_frame(), item.metadata, "series")
    if isinstance(data, numpy.ndarray) and data.ndim in (1, 2):
        return SourceFrame(pandas.DataFrame(data), item.metadata, "array")
    shape = f" of {data.ndim} dimensions" if isinstance(data, numpy.ndarray) else ""
    raise Refused(f"it is {a_type(data)}{shape}, which is not a table")
