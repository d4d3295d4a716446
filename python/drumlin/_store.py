"""The store and its tables."""

import datetime as dt
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from drumlin import _drumlin
from drumlin._drumlin import (
    CheckpointReport,
    DeleteReport,
    DropReport,
    Node,
    ReclaimReport,
    Schema,
    Snapshot,
    StoreStat,
    TableStat,
    TrashItem,
    VacuumPlan,
    VerifyReport,
    Version,
)
from drumlin._errors import InvalidArgument, NotFound
from drumlin._expr import Expr
from drumlin._input import FrameLike, SchemaLike, to_schema, to_stream
from drumlin._json import to_json
from drumlin._result import Result

__all__ = ["AsOf", "Progress", "Retention", "Store", "Table", "open"]

#: Which state of a table to read: a version's number, a snapshot's name, or a time, at which it was the newest (a
#: datetime without zone is UTC).
AsOf: TypeAlias = int | str | dt.datetime
#: Is told of each step of a long call: steps done, steps in all (0 while unknown), rows and bytes handled. What it
#: raises stops the call.
Progress: TypeAlias = Callable[[int, int, int, int], object]

# Within a class that has a method of the name.
_List: TypeAlias = list
_MODES = ("create", "write", "read")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def open(
    uri: str | os.PathLike[str],
    *,
    mode: Literal["create", "write", "read"] = "create",
    memory_bytes: int | None = None,
    cache_bytes: int | None = None,
    cpu_threads: int | None = None,
) -> "Store":
    """Opens the store at ``uri``: a folder's path, ``file://`` and a path, or ``memory://`` for one that lives in
    memory.

    ``mode`` is ``"create"`` (read and write; the store is made if it is not there), ``"write"`` (it must be there) or
    ``"read"`` (beside whoever writes; see :meth:`Store.refresh`). One process writes at a time.

    ``memory_bytes`` bounds the memory of writes and rewrites (default 1 GiB), ``cache_bytes`` that of data kept after
    reading (default 256 MiB), ``cpu_threads`` the threads (default: one a core).

    >>> import drumlin
    >>> with drumlin.open("memory://") as store:
    ...     store.write("prices/us/AAPL", {"day": [1, 2], "close": [187.5, 190.0]}).version
    0
    """
    if mode not in _MODES:
        raise InvalidArgument(f"mode {mode!r} is not known; expected one of {', '.join(map(repr, _MODES))}")
    return Store(
        _drumlin.open(
            os.fspath(uri),
            mode,
            _count(memory_bytes, "memory_bytes"),
            _count(cache_bytes, "cache_bytes"),
            _count(cpu_threads, "cpu_threads"),
        )
    )


class Retention(NamedTuple):
    """How many versions a table keeps; all of them if both are None."""

    keep_last: int | None = None
    keep_for: dt.timedelta | None = None


class Store:
    """An open store; made by :func:`drumlin.open`. It closes at the end of a ``with`` block.

    Threads may share it. A forked process must open the store anew.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> store.write("prices/us/AAPL", {"day": [1, 2], "close": [187.5, 190.0]}).rows
    2
    >>> store.append("prices/us/AAPL", {"day": [3], "close": [189.0]}).version
    1
    >>> store.read("prices/us/AAPL", where="close > 188", columns=["day"]).to_arrow().to_pydict()
    {'day': [2, 3]}
    """

    __slots__ = ("_core",)

    def __init__(self, core: _drumlin.Store) -> None:
        self._core = core

    @property
    def uri(self) -> str:
        """Where the store is."""
        return self._core.uri

    def __repr__(self) -> str:
        return f"Store({self._core.uri!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store: it answers no more. Results that are being read may be read to their end."""
        self._core.close()

    def refresh(self) -> int:
        """In a store opened with ``mode="read"``: takes in what the writer has committed since. Returns the number of
        the last commit seen."""
        return self._core.refresh()

    # Rows.

    def create(self, path: str, schema: SchemaLike, *, sort: Iterable[str] = ()) -> Version:
        """Makes an empty table, ordered by the columns ``sort`` when read.

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> store.create("ticks", pyarrow.schema([("time", pyarrow.int64())]), sort=["time"]).rows
        0
        """
        return self._core.create(path, to_schema(schema), _names(sort, "sort"))

    def write(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        progress: Progress | None = None,
    ) -> Version:
        """Makes a version of the table at ``path`` that holds exactly the rows of ``data``; makes the table if needed,
        ordered by the columns ``sort`` when read (by default rows keep their order).

        ``metadata`` is a JSON value noted with the version.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> store.write("numbers", {"n": [3, 1, 2]}, sort=["n"], metadata={"by": "me"}).metadata
        {'by': 'me'}
        >>> store.read("numbers").to_arrow()["n"].to_pylist()
        [1, 2, 3]
        """
        return self._core.write_many([(path, to_stream(data))], _note(metadata), _sort(sort), progress)[0]

    def append(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> Version:
        """Makes a version of the table at ``path`` with the rows of ``data`` behind those there are. The columns must
        be the table's, in any order."""
        return self._core.append_many([(path, to_stream(data))], _note(metadata), progress)[0]

    def update(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> Version:
        """Makes a version in which the rows of ``data`` stand in the place of all rows between its least and its
        greatest sort key, both included. The table needs a sort order.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("ticks", {"time": [1, 2, 3, 4], "n": [0, 0, 0, 0]}, sort=["time"])
        >>> _ = store.update("ticks", {"time": [2, 3], "n": [7, 7]})
        >>> store.read("ticks").to_arrow()["n"].to_pylist()
        [0, 7, 7, 0]
        """
        return self._core.update(path, to_stream(data), _note(metadata), progress)

    def write_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Version]:
        """Writes many tables in one commit: all of them or none. See :meth:`write`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> versions = store.write_many({"a": {"n": [1]}, "b": {"n": [1, 2]}})
        >>> versions["b"].rows
        2
        """
        paths = _frames(frames)
        versions = self._core.write_many(paths, _note(metadata), _sort(sort), progress)
        return {path: version for (path, _), version in zip(paths, versions, strict=True)}

    def append_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> dict[str, Version]:
        """Appends to many tables in one commit: all of them or none. See :meth:`append`."""
        paths = _frames(frames)
        versions = self._core.append_many(paths, _note(metadata), progress)
        return {path: version for (path, _), version in zip(paths, versions, strict=True)}

    def delete_rows(
        self,
        path: str,
        where: str | Expr,
        *,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> DeleteReport:
        """Makes a version without the rows for which ``where`` is true. If none is, no version is made.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> store.delete_rows("numbers", "n <= 2").rows
        2
        """
        if where is None:
            raise InvalidArgument("where is None; to delete all rows, write an empty frame")
        return self._core.delete_rows(path, _filter(where) or "", _note(metadata), progress)

    def read(
        self,
        path: str,
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
        head: int | None = None,
        tail: int | None = None,
        native: bool = False,
    ) -> Result:
        """A version of the table at ``path``, by default the newest. Nothing is read before the result is asked for
        rows, and what is committed later does not change it.

        ``columns`` are the columns, in the order wanted. ``where`` keeps the rows for which it is true: text in the
        filter language, or an expression made with :func:`drumlin.col`. ``head`` (or ``limit``) keeps so many of the
        first rows, ``tail`` so many of the last. ``native`` hands out the Arrow types that are cheapest to decode
        instead of the table's own: string views, dictionaries, narrower decimals.

        >>> import drumlin
        >>> from drumlin import col
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> _ = store.append("numbers", {"n": [4]})
        >>> store.read("numbers", where=col("n") >= 2, tail=2).to_arrow()["n"].to_pylist()
        [3, 4]
        >>> store.read("numbers", as_of=0).to_arrow()["n"].to_pylist()
        [1, 2, 3]
        """
        return self._results([path], as_of, columns, where, limit, head, tail, native)[0]

    def read_many(
        self,
        paths: Iterable[str],
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
        head: int | None = None,
        tail: int | None = None,
        native: bool = False,
    ) -> dict[str, Result]:
        """Many tables as of the same instant. See :meth:`read`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a": {"n": [1]}, "b": {"n": [1, 2]}})
        >>> {path: result.to_arrow().num_rows for path, result in store.read_many(["a", "b"]).items()}
        {'a': 1, 'b': 2}
        """
        results = self._results(_names(paths, "paths"), as_of, columns, where, limit, head, tail, native)
        return {result.path: result for result in results}

    def _results(
        self,
        paths: list[str],
        as_of: AsOf | None,
        columns: Iterable[Any] | None,
        where: str | Expr | None,
        limit: int | None,
        head: int | None,
        tail: int | None,
        native: bool,
    ) -> list[Result]:
        if limit is not None and head is not None:
            raise InvalidArgument("head and limit are the same; give one of them")
        first = _count(limit, "limit") if head is None else _count(head, "head")
        when = _as_of(as_of)
        readings = self._core.read_many(
            paths,
            when,
            # Names that are no text were written as their text.
            None if columns is None else [str(name) for name in _listed(columns, "columns")],
            _filter(where),
            first,
            _count(tail, "tail"),
            native,
        )
        selects = where is not None or first is not None or tail is not None

        def result(path: str, reading: _drumlin.Reading) -> Result:
            def written_whole(seq: int) -> bool:
                return self._written_whole(path, when, seq)

            return Result(reading, path, selects=selects, written_whole=written_whole)

        return [result(path, reading) for path, reading in zip(paths, readings, strict=True)]

    def _written_whole(self, path: str, when: AsOf | None, seq: int) -> bool:
        """Whether the version read at ``seq`` as of ``when`` is as a single write left it."""
        versions = {version.version: version for version in self.versions(path)}
        match when:
            case int():
                version = versions.get(when)
            case str():
                snapshot = next((snapshot for snapshot in self.snapshots() if snapshot.name == when), None)
                version = None if snapshot is None else versions.get(snapshot.versions[path])
            case dt.datetime():
                version = max((v for v in versions.values() if v.time <= when), key=_number, default=None)
            case None:
                version = max((v for v in versions.values() if v.seq <= seq), key=_number, default=None)
        return version is not None and version.kind == "write"

    def table(self, path: str) -> "Table":
        """A handle on the table at ``path``; whether it is there shows when it is used."""
        return Table(self, path)

    def schema(self, path: str, *, as_of: AsOf | None = None) -> Schema:
        """The columns of a version of a table: names and Arrow types.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> store.schema("numbers")
        Schema(n: Int64)
        """
        return self._core.schema(path, _as_of(as_of))

    # Versions.

    def versions(self, path: str) -> list[Version]:
        """The versions of a table, the oldest first.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]}, metadata="first")
        >>> _ = store.delete_rows("numbers", "n = 2")
        >>> [(v.version, v.kind, v.rows, v.metadata) for v in store.versions("numbers")]
        [(0, 'write', 3, 'first'), (1, 'delete', 2, None)]
        """
        return self._core.versions(path)

    def delete_versions(self, versions: Mapping[str, Iterable[int]]) -> None:
        """Deletes versions of tables, all of them in one commit or none; a table keeps at least one. What snapshots
        hold stays readable by them.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1]})
        >>> _ = store.write("numbers", {"n": [2]})
        >>> store.delete_versions({"numbers": [0]})
        >>> [v.version for v in store.versions("numbers")]
        [1]
        """
        if not isinstance(versions, Mapping):
            raise TypeError(f"versions is a dict of paths and lists of versions, not a {type(versions).__name__}")
        self._core.delete_versions({path: [_number_of(v) for v in _listed(vs, path)] for path, vs in versions.items()})

    def snapshot(self, name: str, pattern: str = "**") -> Snapshot:
        """Names the newest versions of all tables that match ``pattern``; they stay readable until the snapshot is
        dropped.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("prices/A", {"n": [1]})
        >>> store.snapshot("eod", "prices/**").versions
        {'prices/A': 0}
        >>> _ = store.write("prices/A", {"n": [2]})
        >>> store.read("prices/A", as_of="eod").to_arrow()["n"].to_pylist()
        [1]
        """
        return self._core.snapshot(name, pattern)

    def drop_snapshot(self, name: str) -> None:
        """Drops a snapshot. What it alone held becomes reclaimable."""
        self._core.drop_snapshot(name)

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, by name."""
        return self._core.snapshots()

    def set_retention(
        self,
        path: str,
        *,
        keep_last: int | None = None,
        keep_for: dt.timedelta | None = None,
        keep_all: bool = False,
        inherit: bool = False,
    ) -> None:
        """Sets how many versions the tables at ``path`` and below it keep: the last ``keep_last``, those that were the
        newest within ``keep_for``, all of them, or (``inherit``) as the node above says. Snapshots always hold.

        Takes hold of each table with its next version, and of all of them with the next checkpoint.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> store.set_retention("prices/**", keep_last=2)
        >>> for n in range(4):
        ...     _ = store.write("prices/A", {"n": [n]})
        >>> [v.version for v in store.versions("prices/A")]
        [2, 3]
        """
        if [keep_last is not None, keep_for is not None, keep_all, inherit].count(True) != 1:
            raise InvalidArgument("give one of keep_last, keep_for, keep_all and inherit")
        if keep_last is not None and _count(keep_last, "keep_last") == 0:
            raise InvalidArgument("keep_last=0: a table keeps at least one version")
        self._core.set_retention(
            path,
            keep_last,
            None if keep_for is None else _micros(keep_for, "keep_for"),
            keep_all,
        )

    def retention(self, path: str) -> Retention:
        """The retention that holds at ``path``."""
        keep_last, keep_micros = self._core.retention(path)
        return Retention(keep_last, None if keep_micros is None else dt.timedelta(microseconds=keep_micros))

    # Dropping.

    def drop(self, paths: str | Iterable[str], *, missing_ok: bool = False) -> DropReport:
        """Drops the tables that ``paths`` (paths or patterns) name: one commit for all of them, all or none. They go to
        the trash, from which :meth:`undrop` takes them back until :meth:`reclaim` frees their space.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a/x": {"n": [1]}, "a/y": {"n": [1]}, "b": {"n": [1]}})
        >>> store.drop("a/**").paths
        ['a/x', 'a/y']
        >>> store.undrop("a/x")
        >>> store.tables()
        ['a/x', 'b']
        """
        return self._core.drop([paths] if isinstance(paths, str) else _listed(paths, "paths"), missing_ok)

    def trash(self) -> list[TrashItem]:
        """Dropped tables that can be taken back, the oldest drop first."""
        return self._core.trash()

    def undrop(self, path: str, *, to: str | None = None) -> None:
        """Takes the table most recently dropped from ``path`` out of the trash, with all its versions, and puts it
        ``to`` a path that holds no table; by default where it was."""
        self._core.undrop(path, to)

    # Nodes.

    def put(self, path: str, payload: Any) -> None:
        """Sets what the node at ``path`` carries: a JSON value or bytes. The node and its parents are made if they
        are not there.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> store.put("config/feeds/a", {"url": "https://example.org", "retries": 3})
        >>> store.get("config/feeds/a")["retries"]
        3
        """
        binary = isinstance(payload, (bytes, bytearray, memoryview))
        self._core.put(path, bytes(payload) if binary else to_json(payload, "payload"))

    def get(self, path: str, default: Any = None) -> Any:
        """What the node at ``path`` carries; ``default`` if it carries nothing or is not there."""
        import json

        payload = self._core.get(path)
        if payload is None:
            return default
        return payload if isinstance(payload, bytes) else json.loads(payload)

    def exists(self, path: str) -> bool:
        """Whether there is a node at ``path``; parents of tables are nodes too."""
        return self._core.exists(path)

    def delete(self, pattern: str) -> int:
        """Removes the nodes that match ``pattern``, with all below them; none of them may hold a table (see
        :meth:`drop`). Returns how many."""
        return self._core.delete(pattern)

    def list(self, pattern: str = "**") -> "_List[Node]":
        """The nodes that match ``pattern``, in path order. In a name, ``*`` stands for any characters and ``?`` for
        one; a name ``**`` stands for any number of names.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> store.put("config/feeds/a", 1)
        >>> [node.path for node in store.list()]
        ['config', 'config/feeds', 'config/feeds/a']
        """
        return self._core.list(pattern)

    def tables(self, pattern: str = "**") -> "_List[str]":
        """The paths that match ``pattern`` and hold tables, in order."""
        return [node.path for node in self._core.list(pattern) if node.is_table]

    # Maintenance.

    def vacuum_plan(self, *, dead_share_min: float | None = None, budget: float | None = None) -> "_List[VacuumPlan]":
        """What a checkpoint now would rewrite, table by table, and why. See :meth:`checkpoint`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> for n in range(3):
        ...     _ = store.write("numbers", {"n": [n]}) if n == 0 else store.append("numbers", {"n": [n]})
        >>> [plan] = store.vacuum_plan()
        >>> plan.row_groups_before, plan.row_groups_after
        (3, 1)
        """
        return self._core.vacuum_plan(dead_share_min, budget)

    def checkpoint(
        self,
        *,
        dead_share_min: float | None = None,
        budget: float | None = None,
        progress: Progress | None = None,
    ) -> CheckpointReport:
        """Removes deleted rows from storage, merges small row groups, and shortens the log. Free space shows after
        :meth:`reclaim`.

        ``dead_share_min`` is the least share of deleted rows for which row groups are folded (default 0.1),
        ``budget`` the greatest share of the tables' bytes to rewrite, the most worthwhile first (default 1).
        """
        return self._core.checkpoint(dead_share_min, budget, progress)

    def reclaim(self, *, grace: dt.timedelta = dt.timedelta(0), progress: Progress | None = None) -> ReclaimReport:
        """Frees the space of dropped tables, expired versions and rewritten row groups. Tables dropped less than
        ``grace`` ago stay in the trash."""
        return self._core.reclaim(_micros(grace, "grace"), progress)

    def verify(self, *, progress: Progress | None = None) -> VerifyReport:
        """Reads every byte that the store refers to and checks it. What is wrong is reported, not raised.

        >>> import drumlin
        >>> drumlin.open("memory://").verify().ok
        True
        """
        return self._core.verify(progress)

    def stat(self) -> StoreStat:
        """Figures about the store."""
        return self._core.stat()


class Table:
    """A handle on one table; made by :meth:`Store.table`. Its methods are the store's for that path.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> table = store.table("numbers")
    >>> _ = table.write({"n": [1, 2, 3]})
    >>> table.delete("n = 2").rows
    1
    >>> table.stat().rows, table.exists()
    (2, True)
    """

    __slots__ = ("_path", "_store")

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path

    @property
    def path(self) -> str:
        """The path of the table."""
        return self._path

    @property
    def store(self) -> Store:
        """The store that it is in."""
        return self._store

    def __repr__(self) -> str:
        return f"Table({self._path!r} in {self._store.uri!r})"

    def exists(self) -> bool:
        """Whether there is a table at the path."""
        try:
            self._store.schema(self._path)
        except NotFound:
            return False
        return True

    def create(self, schema: SchemaLike, *, sort: Iterable[str] = ()) -> Version:
        """See :meth:`Store.create`."""
        return self._store.create(self._path, schema, sort=sort)

    def write(
        self,
        data: FrameLike,
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        progress: Progress | None = None,
    ) -> Version:
        """See :meth:`Store.write`."""
        return self._store.write(self._path, data, metadata=metadata, sort=sort, progress=progress)

    def append(self, data: FrameLike, *, metadata: Any = None, progress: Progress | None = None) -> Version:
        """See :meth:`Store.append`."""
        return self._store.append(self._path, data, metadata=metadata, progress=progress)

    def update(self, data: FrameLike, *, metadata: Any = None, progress: Progress | None = None) -> Version:
        """See :meth:`Store.update`."""
        return self._store.update(self._path, data, metadata=metadata, progress=progress)

    def delete(self, where: str | Expr, *, metadata: Any = None, progress: Progress | None = None) -> DeleteReport:
        """See :meth:`Store.delete_rows`."""
        return self._store.delete_rows(self._path, where, metadata=metadata, progress=progress)

    def read(
        self,
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
        head: int | None = None,
        tail: int | None = None,
        native: bool = False,
    ) -> Result:
        """See :meth:`Store.read`."""
        return self._store.read(
            self._path, as_of=as_of, columns=columns, where=where, limit=limit, head=head, tail=tail, native=native
        )

    def schema(self, *, as_of: AsOf | None = None) -> Schema:
        """See :meth:`Store.schema`."""
        return self._store.schema(self._path, as_of=as_of)

    def versions(self) -> list[Version]:
        """See :meth:`Store.versions`."""
        return self._store.versions(self._path)

    def stat(self) -> TableStat:
        """Figures about the table."""
        return self._store._core.table_stat(self._path)

    def drop(self, *, missing_ok: bool = False) -> DropReport:
        """See :meth:`Store.drop`."""
        return self._store.drop(self._path, missing_ok=missing_ok)


def _number(version: Version) -> int:
    return version.version


def _count(value: int | None, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool):
        raise TypeError(f"{name} is a number, not a bool")
    number = operator.index(value)
    if not 0 <= number < 2**63:
        raise InvalidArgument(f"{name}={number} is out of range; expected 0 or more")
    return number


def _number_of(version: Any) -> int:
    number = _count(version, "version")
    if number is None:
        raise TypeError("a version is a number, not None")
    return number


def _as_of(when: AsOf | None) -> AsOf | None:
    match when:
        case None | str():
            return when
        case dt.datetime():
            # A subclass of datetime may hold more than one.
            moment = when if when.tzinfo is not None else when.replace(tzinfo=dt.UTC)
            micros = (moment - _EPOCH) // dt.timedelta(microseconds=1)
            if micros < 0:
                raise NotFound(f"no version is as old as {when}")
            return _EPOCH + dt.timedelta(microseconds=micros)
        case bool():
            pass
        case _ if hasattr(when, "__index__"):
            number = operator.index(when)
            if number < 0:
                raise InvalidArgument(f"as_of={number}: versions count from 0; without as_of the newest is read")
            return _count(number, "as_of")
    raise TypeError(f"as_of is a version's number, a snapshot's name or a datetime, not a {type(when).__name__}")


def _filter(where: str | Expr | None) -> str | None:
    if where is None or isinstance(where, str):
        return where
    if isinstance(where, Expr):
        return str(where)
    raise TypeError(
        f"where is text in the filter language or an expression made with drumlin.col, not a "
        f"{type(where).__module__}.{type(where).__qualname__}"
    )


def _note(metadata: Any) -> str | None:
    return None if metadata is None else to_json(metadata, "metadata")


def _listed(values: Iterable[Any], name: str) -> list[Any]:
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name} is a list of names, not one name: write [{values!r}]")
    return list(values)


def _names(values: Iterable[str], name: str) -> list[str]:
    return _listed(values, name)


def _sort(columns: Iterable[str] | None) -> list[str] | None:
    return None if columns is None else _names(columns, "sort")


def _micros(span: dt.timedelta, name: str) -> int:
    if not isinstance(span, dt.timedelta):
        raise TypeError(f"{name} is a timedelta, not a {type(span).__name__}")
    if span < dt.timedelta(0):
        raise InvalidArgument(f"{name}={span} lies in the future; expected 0 or more")
    return span // dt.timedelta(microseconds=1)


def _frames(frames: Mapping[str, FrameLike]) -> list[tuple[str, Any]]:
    if not isinstance(frames, Mapping):
        raise TypeError(f"frames is a dict of paths and frames, not a {type(frames).__name__}")
    converted = []
    for path, data in frames.items():
        try:
            converted.append((path, to_stream(data)))
        except (InvalidArgument, TypeError) as error:
            raise type(error)(f"{path!r}: {error}") from error
    return converted
