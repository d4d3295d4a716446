"""Imports from ArcticDB: symbols, their versions, metadata and snapshots.

Each version is one commit, whose message says where it comes from, and which is made only if the rows read back equal.
So every version in the store is complete and checked, and the next run continues after it. Snapshots are made after all
versions. Versions that only snapshots show in ArcticDB are deleted from the list of versions after that.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from drumlin import AlreadyExists, Error, InvalidArgument, NotFound, Progress, SchemaMismatch, Store, Transaction
from drumlin.migrate.digest import FrameDigest, converted_digest, frame_digest
from drumlin.migrate.metadata import as_json, refusal
from drumlin.migrate.names import path_of
from drumlin.migrate.record import FATAL, Found, Mismatch, commit, found, message, record_of
from drumlin.migrate.report import Report, Tally, halts
from drumlin.migrate.sources.arctic_source import Refused, SourceFrame, SourceVersion, frame_of, size_of, symbols_of
from drumlin.migrate.threads import Crew, Stopped

__all__ = ["from_arctic"]


class _Before(NamedTuple):
    """The version that precedes another one."""

    rows: int
    sha256: str


@halts
def from_arctic(
    library: Any,
    store: Store,
    *,
    pattern: str | None = None,
    symbols: Iterable[str] | None = None,
    prefix: str = "",
    versions: bool = True,
    snapshots: bool = True,
    snapshot_prefix: str = "",
    coerce: bool = False,
    strict: bool = False,
    threads: int = 4,
    memory_bytes: int = 1 << 30,
    progress: Progress | None = None,
) -> Report:
    """Imports the symbols of an ArcticDB library into ``store``. Each symbol becomes a table at ``prefix`` and its name
    (:func:`path_of`). Its versions become versions of the table, in order, with their metadata. Their numbers differ
    where ArcticDB has deleted versions; the message of each version has its number and time in ArcticDB. ``symbols``
    selects symbols by name, ``pattern`` by a pattern in which ``*`` matches anything. With ``versions=False``, only the
    newest version of each symbol is imported, and the versions that snapshots show.

    Snapshots are named ``snapshot_prefix`` and their name, and show the same versions as in ArcticDB. A version that
    ArcticDB has deleted, and that only snapshots show, is shown only by snapshots in the store, too.

    Call it again after an interruption, or to import what is new in the library: versions that are in the store are not
    written again. A version is committed only if the store reads back rows with the digest of the source's frame; see
    ``docs/migrating.md``.

    Data that cannot be migrated, such as pickled data, are listed in the report, and do not stop the migration; with
    ``strict``, :class:`Incomplete` is raised at the end. With ``coerce``, frames and metadata that would not come back
    equal are stored as pyarrow and JSON convert them, each with a note in the report. ``threads`` is the number of
    threads, and ``memory_bytes`` the limit for all frames in memory; a frame above the limit is migrated alone.

    >>> import arcticdb, drumlin, pandas, tempfile
    >>> from drumlin.migrate import from_arctic
    >>> library = arcticdb.Arctic("lmdb://" + tempfile.mkdtemp()).create_library("prices")
    >>> _ = library.write("AAPL", pandas.DataFrame({"close": [187.5, 190.0]}), metadata={"source": "feed"})
    >>> library.snapshot("eod")
    >>> store = drumlin.open("memory://")
    >>> report = from_arctic(library, store, prefix="us")
    >>> report.versions, report.snapshots, report.failures
    (1, ['eod'], [])
    >>> store.read("us/AAPL", as_of="eod").to_pandas()["close"].tolist()
    [187.5, 190.0]
    """
    tally, crew = Tally("arcticdb", progress), Crew(threads, memory_bytes)
    plan = symbols_of(library, pattern, symbols, versions, snapshots)
    tally.expect(sum(map(len, plan.values())))
    run = _Run(library, store, prefix, snapshot_prefix, coerce, tally, crew)
    crew.run(run.symbol, plan.items())
    if snapshots:
        run.snapshots()
        run.delete()
    return tally.report(strict)


class _Run:
    """A running migration."""

    def __init__(
        self, library: Any, store: Store, prefix: str, snapshot_prefix: str, coerce: bool, tally: Tally, crew: Crew
    ) -> None:
        self._library = library
        self._store = store
        self._prefix = prefix
        self._snapshot_prefix = snapshot_prefix
        self._coerce = coerce
        self._tally = tally
        self._crew = crew
        self._held = {snapshot.name: snapshot.versions for snapshot in store.snapshots()}
        #: What each snapshot shows: by its name in ArcticDB, the version in the store of each path.
        self._shown: dict[str, dict[str, int]] = {}
        #: What each snapshot lacks because it was not migrated.
        self._lacks: dict[str, list[str]] = {}
        #: For each path, the versions in the store that ArcticDB has deleted, and the snapshots that show them.
        self._deleted: dict[str, dict[int, tuple[str, ...]]] = {}
        #: Versions in the store of tables that have been dropped since: paths, and numbers in ArcticDB.
        self._dropped: set[tuple[str, int]] = set()
        #: Versions that were not migrated.
        self._failed: set[tuple[str, int]] = set()
        #: Snapshots that could not be made.
        self._unmade: set[str] = set()

    def symbol(self, item: tuple[str, list[SourceVersion]]) -> None:
        """Imports the versions of one symbol, the oldest first."""
        symbol, versions = item
        self._crew.check()
        try:
            path = path_of(symbol, self._prefix)
            origin = {"from": "arcticdb", "library": self._library.name, "symbol": symbol}
            there = self._there(path, origin, versions)
        except FATAL:
            raise
        except Error as error:
            self._tally.fail(symbol, None, error, len(versions))
            self._lack(symbol, versions)
            return
        todo = self._todo(symbol, versions, there)
        before = self._newest(path) if todo else None
        for version in todo:
            self._crew.check()
            try:
                before = self._version(symbol, path, origin, version, before)
            except (*FATAL, Stopped):
                raise
            except Exception as error:
                self._fail(symbol, version, str(error) if isinstance(error, Refused) else error)
        if todo:
            there = self._there(path, origin, versions)
        self._note_numbers(symbol, path, versions, there.numbers)

    def _there(self, path: str, origin: dict[str, Any], versions: list[SourceVersion]) -> Found:
        """What earlier runs have migrated, including versions that only snapshots show."""
        there = found(self._store, path, origin, {version.number: version.time for version in versions})
        numbers = dict(there.numbers)
        for version in versions:
            for name in version.snapshots:
                for made in self._names(name):
                    number = self._held.get(made, {}).get(path)
                    if number is None or made in there.held.get(number, ()):
                        continue
                    if version.number not in numbers and (number in there.held or not there.held):
                        # It belongs to a table that was dropped; there may be another one at its path.
                        self._dropped.add((path, version.number))
                    numbers.setdefault(version.number, number)
        return Found(numbers, max(numbers) if numbers else None, there.deleted, there.held)

    def _todo(self, symbol: str, versions: list[SourceVersion], there: Found) -> list[SourceVersion]:
        """The versions that remain to be written. A version that is older than one in the store cannot be written: it
        was there and has been deleted, or it was refused."""
        todo = [version for version in versions if version.number not in there.numbers]
        later = [version for version in todo if there.newest is None or version.number > there.newest]
        older = todo[: len(todo) - len(later)]
        lost = older if len(older) > there.deleted else []
        for version in lost:
            said = "an earlier run did not bring it, and later versions are there: drop the table, and run again"
            self._fail(symbol, version, said)
        skipped = len(versions) - len(later) - len(lost)
        if skipped:
            self._tally.skip(skipped)
        return later

    def _newest(self, path: str) -> _Before | None:
        """The newest version in the store, if an earlier run migrated it."""
        try:
            newest = self._store.table(path).versions()[-1]
        except NotFound:
            return None
        sha256 = (record_of(newest) or {}).get("sha256")
        return None if sha256 is None else _Before(newest.rows, sha256)

    def _version(
        self, symbol: str, path: str, origin: dict[str, Any], version: SourceVersion, before: _Before | None
    ) -> _Before | None:
        """Imports one version; ``before`` is the one that precedes it."""
        with self._crew.memory(size_of(self._library, symbol, version)):
            source = frame_of(self._library, symbol, version)
            what = f"{symbol} version {version.number}"
            metadata = self._metadata(what, source.metadata)
            digest = frame_digest(source.frame)
            kind = {} if source.kind == "frame" else {"kind": source.kind}
            said = message(origin, version.number, version.time, sha256=digest.sha256, **kind)
            after: _Before | None = _Before(len(source.frame), digest.sha256)
            try:
                if not self._append(path, said, source, metadata, digest, before):
                    self._write(path, said, source, metadata, digest, what)
            except InvalidArgument as error:
                if not self._coerce:
                    raise
                after = None
                self._write_coerced(path, message(origin, version.number, version.time, **kind), source, metadata)
                self._tally.note(f"{what}: stored as pyarrow converts it ({error})")
            size = int(source.frame.memory_usage(index=True, deep=False).sum())
            self._tally.brought(symbol, len(source.frame), size)
            return after

    def _append(
        self, path: str, said: str, source: SourceFrame, metadata: Any, digest: FrameDigest, before: _Before | None
    ) -> bool:
        """Appends the new rows of a version, if it begins with the rows of the one before. Returns whether it did."""
        if before is None or before.rows == 0 or len(source.frame) <= before.rows:
            return False
        if frame_digest(source.frame.iloc[: before.rows]).sha256 != before.sha256:
            return False
        more = source.frame.iloc[before.rows :]

        def append(tx: Transaction) -> None:
            table = tx.table(path)
            table.append(more, metadata=metadata)
            if frame_digest(table.read().to_pandas()) != digest:
                raise Mismatch

        try:
            commit(self._store, said, append)
        except (Mismatch, InvalidArgument, SchemaMismatch):
            # Such as a RangeIndex that does not continue: the caller writes all rows.
            return False
        return True

    def _write(self, path: str, said: str, source: SourceFrame, metadata: Any, digest: FrameDigest, what: str) -> None:
        back = digest

        def write(tx: Transaction) -> None:
            nonlocal back
            table = tx.table(path)
            table.write(source.frame, metadata=metadata)
            back = frame_digest(table.read().to_pandas())
            if back.sha256 != digest.sha256:
                raise Mismatch(f"the store reads back other rows than were written to '{path}'; nothing was committed")

        commit(self._store, said, write)
        for column in sorted(digest.missing):
            if digest.missing[column] != back.missing.get(column):
                kinds = " and ".join(sorted(digest.missing[column]))
                self._tally.note(f"{what}: missing values of column {column!r} are None (they were {kinds})")

    def _write_coerced(self, path: str, said: str, source: SourceFrame, metadata: Any) -> None:
        def write(tx: Transaction) -> None:
            table = tx.table(path)
            table.write(source.frame, metadata=metadata, coerce=True)
            if converted_digest(table.read().to_pandas()) != converted_digest(source.frame):
                raise Mismatch(f"the store reads back other rows than were written to '{path}'; nothing was committed")

        commit(self._store, said, write)

    def _metadata(self, what: str, metadata: Any) -> Any:
        """The metadata to write. Without ``coerce``, the store refuses what is not JSON when it is written."""
        if not self._coerce or (error := refusal(metadata)) is None:
            return metadata
        self._tally.note(f"{what}: {error}: it is stored as JSON has it")
        return as_json(metadata)

    def _note_numbers(self, symbol: str, path: str, versions: list[SourceVersion], numbers: Mapping[int, int]) -> None:
        for version in versions:
            number = numbers.get(version.number)
            if number is None:
                self._lack(symbol, [version])
                if version.snapshots and (symbol, version.number) not in self._failed:
                    said = "it was deleted here, and snapshots show it: lift the retention, drop the table, run again"
                    self._tally.fail(symbol, version.number, said)
                continue
            for name in version.snapshots:
                self._shown.setdefault(name, {})[path] = number
            if version.deleted and (path, version.number) not in self._dropped:
                self._deleted.setdefault(path, {})[number] = version.snapshots

    def _fail(self, symbol: str, version: SourceVersion, reason: object) -> None:
        self._failed.add((symbol, version.number))
        self._tally.fail(symbol, version.number, reason, 1)

    def _lack(self, symbol: str, versions: list[SourceVersion]) -> None:
        for version in versions:
            for name in version.snapshots:
                self._lacks.setdefault(name, []).append(f"{symbol} version {version.number}")

    def _names(self, name: str) -> tuple[str, str]:
        """The name of a snapshot in the store, and its temporary name while more tables are added."""
        made = f"{self._snapshot_prefix}{name}"
        return made, f"{made}~"

    def snapshots(self) -> None:
        """Makes the snapshots. A snapshot of an earlier run that lacks some tables is made again."""
        for name in sorted(self._lacks):
            lacking = sorted(self._lacks[name])
            self._tally.note(f"the snapshot {name!r} lacks {', '.join(lacking[:5])}{' ...' if lacking[5:] else ''}")
        for name, shown in sorted(self._shown.items()):
            made, between = self._names(name)
            try:
                if self._make(made, between, shown):
                    self._tally.snapshots.append(made)
            except FATAL:
                raise
            except Error as error:
                self._unmade.add(name)
                self._tally.fail(f"snapshot {name!r}", None, error)

    def _make(self, made: str, between: str, shown: dict[str, int]) -> bool:
        store, old, half = self._store, self._held.get(made), self._held.get(between)
        other = {path: n for held in (old, half) if held for path, n in held.items() if shown.get(path, n) != n}
        if other:
            path, n = min(other.items())
            raise AlreadyExists(
                f"there is a snapshot '{made}', and it shows version {n} of '{path}' instead of {shown[path]}; take "
                "another snapshot_prefix, or drop it"
            )
        shown = {**shown, **(old or {}), **(half or {})}
        if old == shown:
            if half is not None:
                store.drop_snapshot(between)
            return False
        if old is None and half is None:
            store.snapshot(made, versions=shown)
            return True

        def grow(name: str, of: str, held: Mapping[str, int]) -> None:
            # The snapshot may hold tables that have been dropped since.
            more = {path: n for path, n in shown.items() if path not in held}
            store.snapshot(name, versions=more, including=of)

        # At each moment one of the two holds everything that was held before, so nothing is lost.
        if old is not None:
            if half != shown:
                if half is not None:
                    store.drop_snapshot(between)
                grow(between, made, old)
                half = shown
            store.drop_snapshot(made)
        grow(made, between, half or {})
        store.drop_snapshot(between)
        return True

    def delete(self) -> None:
        """Deletes the versions that ArcticDB has deleted, and drops the tables of which it lists none."""
        for path, numbers in sorted(self._deleted.items()):
            try:
                listed = {version.version for version in self._store.table(path).versions()}
            except NotFound:
                continue
            # A later run may make a snapshot that could not be made, so its versions stay.
            gone = {n for n, held in numbers.items() if n in listed and self._unmade.isdisjoint(held)}
            if gone == listed:
                self._store.drop(path)
            elif gone:
                self._store.delete_versions({path: sorted(gone)})
