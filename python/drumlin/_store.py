"""The store and its tables."""

import datetime as dt
import io
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, BinaryIO, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

from drumlin import _drumlin
from drumlin._arguments import (
    AsOf,
    Progress,
    Selection,
    as_of_argument,
    column_names,
    count,
    listed,
    micros,
    names,
    note,
    optional_micros,
    path_argument,
    paths_to_drop,
    rows_filter,
    selection,
    sort_columns,
    to_streams,
    version_lists,
)
from drumlin._drumlin import (
    Change,
    ChangeFeed,
    Changes,
    CheckpointReport,
    DeleteReport,
    DropReport,
    Event,
    ImportReport,
    ListEntry,
    Node,
    ProjectionView,
    ReclaimReport,
    RepackPlan,
    RowsReport,
    SalvageReport,
    Schema,
    Snapshot,
    StoreStat,
    TableStat,
    TrashItem,
    TriggerFailure,
    VacuumPlan,
    VerifyReport,
    Version,
    VersionsReport,
)
from drumlin._errors import Conflict, InvalidArgument, NotFound
from drumlin._expr import Expr
from drumlin._input import Fit, FrameLike, SchemaLike, order_of, schema_of, to_schema, to_stream
from drumlin._lookup import Lookup
from drumlin._result import Result, Results
from drumlin._rows import KeysLike, RowsLike, to_keys, to_rows
from drumlin._transaction import Transaction
from drumlin._walks import Walks
from drumlin.tree import Condition, PatternLike, plain_text

__all__ = ["Retention", "Store", "Table", "open"]

# Within a class that has a method of the name.
_List: TypeAlias = list
_MODES = ("create", "write", "read")
_SYNCS = ("commit", "interval")
#: How often a function is run in a transaction before a conflict is told.
_ATTEMPTS_MAX = 1000

_T = TypeVar("_T")

#: What a node lives on: conditions on the nodes at paths.
KeepWhile: TypeAlias = Mapping[str, Condition] | Iterable[tuple[str, Condition]]


_SETTINGS = (
    "memory_bytes",
    "cache_bytes",
    "cpu_threads",
    "checkpoint_log_bytes",
    "inline_bytes",
    "memtable_bytes",
    "row_write_bytes",
    "io_threads",
    "rest_micros",
    "sync_micros",
)


def open(
    uri: str | os.PathLike[str],
    *,
    mode: Literal["create", "write", "read"] = "create",
    memory_bytes: int | None = None,
    cache_bytes: int | None = None,
    cpu_threads: int | None = None,
    checkpoint_log_bytes: int | None = None,
    inline_bytes: int | None = None,
    memtable_bytes: int | None = None,
    row_write_bytes: int | None = None,
    sync: Literal["commit", "interval"] = "commit",
    sync_interval: dt.timedelta = dt.timedelta(milliseconds=100),
    shared: bool = False,
    fresh: bool = False,
    storage_options: Mapping[str, str] | None = None,
    io_threads: int | None = None,
    block_rest: dt.timedelta | None = None,
    accept_loss: bool = False,
    retry_for: dt.timedelta | None = None,
) -> "Store":
    """Opens the store at ``uri``: a folder's path (``~`` is the home folder; folders above it are made), ``file://``
    and a path, ``s3://bucket/prefix`` (or ``gs://``, ``az://``) for one in a bucket, or ``memory://`` for one that
    lives in memory.

    ``mode`` is ``"create"`` (read and write; the store is made if it is not there), ``"write"`` (it must be there) or
    ``"read"`` (beside whoever writes; see :meth:`Store.refresh`). One process writes a store in a folder at a time,
    unless it was made with ``shared=True``; any number write one in a bucket.

    In a store that others write too, a call that writes rests on all that was committed before it; one that reads does
    with ``fresh=True``, which costs a look at the bucket each, and else sees what :meth:`Store.refresh` and writes have
    brought. Blocks that are no longer needed stay for ``block_rest`` (default 10 minutes) for readers of other
    processes. Where the bucket refuses a commit because there are too many requests, it is tried again for
    ``retry_for`` (default 1 minute), after pauses that are random and grow; then it raises :class:`Unavailable`, and
    nothing was done.
    :class:`InDoubt` says that no answer tells whether it was done.

    A bucket's credentials come from the environment, or from ``storage_options``, as the ``object_store`` crate calls
    them: ``{"endpoint": "http://localhost:9000", "region": "us-east-1", "aws_access_key_id": ..., ...}``.
    ``io_threads`` (default 2) wait for its answers. A bucket must keep conditional writes; one is tried before a store
    is made in it.

    ``memory_bytes`` bounds the memory of writes and rewrites (default 1 GiB), ``cache_bytes`` that of data kept after
    reading (default 256 MiB), ``cpu_threads`` the threads (default: one a core). Once the log has grown past
    ``checkpoint_log_bytes`` (default 64 MiB; 0 for never), a checkpoint is made in the background; if it fails, the
    next call that would write raises its error. What a call adds travels in its commit, without a block of its own,
    if it takes at most ``inline_bytes`` (default 64 KiB; 0 for never).

    A log from which commits are missing that were synced is ``Corrupt``, unless ``accept_loss`` says to go on without
    them: what could not be read then is lost for good.

    Rows written by key lie in memory, and in the log, until a checkpoint; one is made in the background once they take
    ``memtable_bytes`` (default 64 MiB; 0 for never). A call with more than ``row_write_bytes`` of rows (default 1 MiB)
    writes row groups and makes a version instead.

    With ``sync="commit"`` what a call has written is durable when it returns. With ``sync="interval"`` it is so within
    about ``sync_interval``: if the machine fails the last commits may be lost, though none from between others; if just
    the process fails none are.

    >>> import drumlin
    >>> with drumlin.open("memory://") as store:
    ...     store.write("prices/us/AAPL", {"day": [1, 2], "close": [187.5, 190.0]}).version
    0
    """
    if mode not in _MODES:
        raise InvalidArgument(f"mode {mode!r} is not known; expected one of {', '.join(map(repr, _MODES))}")
    settings = {
        "memory_bytes": memory_bytes,
        "cache_bytes": cache_bytes,
        "cpu_threads": cpu_threads,
        "checkpoint_log_bytes": checkpoint_log_bytes,
        "inline_bytes": inline_bytes,
        "memtable_bytes": memtable_bytes,
        "row_write_bytes": row_write_bytes,
        "io_threads": io_threads,
    }
    checked: dict[str, Any] = {name: count(value, name) for name, value in settings.items()}
    checked["rest_micros"] = optional_micros(block_rest, "block_rest")
    checked["retry_micros"] = optional_micros(retry_for, "retry_for")
    checked["shared"], checked["fresh"], checked["accept_loss"] = bool(shared), bool(fresh), bool(accept_loss)
    checked["storage_options"] = _storage_options(storage_options)
    checked["sync_micros"] = _sync_micros(sync, sync_interval)
    return Store(_drumlin.open(os.path.expanduser(os.fspath(uri)), mode, checked))


def salvage(
    store: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    shared: bool = False,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> SalvageReport:
    """Copies all that can be read of the damaged store at ``store`` into a new one at ``new``, which must not exist, or
    be empty, and says what could not be read: commits, nodes, tables, and rows by version. ``store`` is left as it is;
    nobody should write it meanwhile. ``shared`` makes a folder that many processes write; ``storage_options`` are those
    of buckets, as for :func:`open`.

    >>> import drumlin, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with drumlin.open(os.path.join(folder, "old")) as store:
    ...     _ = store.write("a", {"n": [1, 2]})
    >>> drumlin.salvage(os.path.join(folder, "old"), os.path.join(folder, "new")).losses
    []
    """
    settings: dict[str, Any] = dict.fromkeys(_SETTINGS)
    settings |= {"shared": bool(shared), "fresh": False, "accept_loss": False, "retry_micros": None}
    settings["storage_options"] = _storage_options(storage_options)
    places = [os.path.expanduser(os.fspath(place)) for place in (store, new)]
    return _drumlin.salvage(places[0], places[1], settings, progress)


def _storage_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """Settings of a bucket's client; an error tells names, never values."""
    checked = dict(options or {})
    for name, value in checked.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidArgument(f"storage_options: {name!r} is not a text for a text")
    return checked


def _sync_micros(sync: str, interval: dt.timedelta) -> int | None:
    """The time between syncs; None if each commit is synced."""
    if sync not in _SYNCS:
        raise InvalidArgument(f"sync {sync!r} is not known; expected one of {', '.join(map(repr, _SYNCS))}")
    span = micros(interval, "sync_interval")
    if span == 0:
        raise InvalidArgument("sync_interval is 0; to sync each commit, give sync='commit'")
    return span if sync == "interval" else None


class Retention(NamedTuple):
    """How many versions a table keeps; all of them if both are None."""

    keep_last: int | None = None
    keep_for: dt.timedelta | None = None


class Store(Walks):
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
        """Closes the store: it answers no more. Results that are being read may be read to their end. Triggers are
        called no more; for what they have missed, those that last are called when the store is open again."""
        self._core.close()

    @property
    def seq(self) -> int:
        """The number of the last commit that is seen here."""
        return self._core.seq()

    def refresh(self) -> int:
        """In a store opened with ``mode="read"``: takes in what the writer has committed since. Returns the number of
        the last commit seen."""
        return self._core.refresh()

    # Rows.

    def create(self, path: str, schema: SchemaLike, *, sort: Iterable[str] = (), key: Iterable[str] = ()) -> Version:
        """Makes an empty table, ordered by the columns ``sort`` when read; or one with a key: no two rows are equal in
        the columns ``key``, by which they are ordered, and rows are written and looked up by it (:meth:`upsert`,
        :meth:`insert`, :meth:`delete_keys`, :meth:`get_rows`).

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> store.create("ticks", pyarrow.schema([("time", pyarrow.int64())]), sort=["time"]).rows
        0
        >>> schema = pyarrow.schema([("id", pyarrow.int64()), ("name", pyarrow.string())])
        >>> _ = store.create("people", schema, key=["id"])
        >>> store.table("people").stat().key
        ['id']
        """
        return self._core.create(path, to_schema(schema), names(sort, "sort"), names(key, "key"))

    def write(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> Version:
        """Makes a version of the table at ``path`` that holds exactly the rows of ``data``; makes the table if needed,
        ordered by the columns ``sort`` when read (by default rows keep their order).

        ``metadata`` is a JSON value noted with the version.

        A pandas frame that would not come back equal is refused with :class:`drumlin.InvalidArgument`, which names
        column, row and type; with ``coerce`` such values are stored as pyarrow converts them.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> store.write("numbers", {"n": [3, 1, 2]}, sort=["n"], metadata={"by": "me"}).metadata
        {'by': 'me'}
        >>> store.read("numbers").to_arrow()["n"].to_pylist()
        [1, 2, 3]
        """
        version: Version
        order = sort_columns(sort)
        stream = to_stream(data, self._fit_to_write(path_argument(path), order, coerce))
        [version] = self._core.write_many([(path, stream)], note(metadata), order, progress)
        return version

    def append(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> Version:
        """Makes a version of the table at ``path`` with the rows of ``data`` behind those there are. The columns must
        be the table's, in any order."""
        version: Version
        [version] = self._core.append_many(
            [(path, to_stream(data, self._fit_to_add(path, coerce)))], note(metadata), progress
        )
        return version

    def update(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        coerce: bool = False,
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
        return self._core.update(path, to_stream(data, self._fit_to_add(path, coerce)), note(metadata), progress)

    @overload
    def write_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        return_exceptions: Literal[False] = False,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Version]: ...
    @overload
    def write_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        return_exceptions: bool,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Version | Exception]: ...
    def write_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        return_exceptions: bool = False,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> Any:
        """Writes many tables in one commit: all of them or none. See :meth:`write`.

        With ``return_exceptions`` a table that cannot be written does not keep the others from it: what is wrong with
        it stands in the place of its version. What fails the call as a whole (storage, Ctrl-C) is raised all the same,
        and then nothing was written.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> versions = store.write_many({"a": {"n": [1]}, "b": {"n": [1, 2]}})
        >>> versions["b"].rows
        2
        >>> answers = store.write_many({"a": {"n": [2]}, "b": {"n": [2]}}, sort=["n"], return_exceptions=True)
        >>> [type(answer).__name__ for answer in answers.values()]
        ['InvalidArgument', 'InvalidArgument']
        """
        wrong: dict[str, Any] | None = {} if return_exceptions else None
        order = sort_columns(sort)
        streams = to_streams(frames, wrong, lambda path: self._fit_to_write(path, order, coerce))
        answers = self._core.write_many(streams, note(metadata), order, progress, return_exceptions)
        return _by_path(frames, streams, answers, wrong)

    @overload
    def append_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        return_exceptions: Literal[False] = False,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Version]: ...
    @overload
    def append_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        return_exceptions: bool,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Version | Exception]: ...
    def append_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        return_exceptions: bool = False,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> Any:
        """Appends to many tables in one commit: all of them or none, or with ``return_exceptions`` those that can be
        appended to. See :meth:`append` and :meth:`write_many`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("a", {"n": [1]})
        >>> answers = store.append_many({"a": {"n": [2]}, "b": {"n": [1]}}, return_exceptions=True)
        >>> answers["a"].rows, answers["b"]
        (2, NotFound("no table at 'b'"))
        """
        wrong: dict[str, Any] | None = {} if return_exceptions else None
        streams = to_streams(frames, wrong, lambda path: self._fit_to_add(path, coerce))
        answers = self._core.append_many(streams, note(metadata), progress, return_exceptions)
        return _by_path(frames, streams, answers, wrong)

    def _fit_to_write(self, path: str, order: _List[str] | None, coerce: bool) -> Fit:
        # An order that is given is that of the table, which a key may have made.
        return Fit(coerce, ordered=lambda: order_of(self._core, path) or ("sort" if order else None))

    def _fit_to_add(self, path: str, coerce: bool) -> Fit:
        return Fit(coerce, onto=lambda: schema_of(self._core, path))

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
        return self._core.delete_rows(path, rows_filter(where), note(metadata), progress)

    # Rows by key.

    def upsert(
        self,
        path: str,
        rows: RowsLike,
        *,
        metadata: Any = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> RowsReport:
        """Puts rows into a table with a key, each in the place of the row with its key if there is one. Of rows with
        the same key the last counts.

        ``rows`` are a frame, a list of dicts or a dict of one row; values without a type take that of their column. A
        call with few rows is one write of the log and makes no version: its rows belong to the version that the next
        checkpoint, snapshot or large write makes. One with many, or with ``metadata``, makes one.

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> schema = pyarrow.schema([("id", pyarrow.int32()), ("name", pyarrow.string())])
        >>> _ = store.create("people", schema, key=["id"])
        >>> store.upsert("people", {"id": [1, 2], "name": ["Ada", "Grace"]}).rows
        2
        >>> _ = store.upsert("people", {"id": 2, "name": "Grace H."})
        >>> store.read("people").to_arrow()["name"].to_pylist()
        ['Ada', 'Grace H.']
        """
        return self._core.upsert(path, to_rows(rows, self._fit_to_add(path, coerce)), note(metadata), progress)

    def insert(
        self,
        path: str,
        rows: RowsLike,
        *,
        metadata: Any = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> RowsReport:
        """Puts rows into a table with a key that has none with their keys. :class:`drumlin.AlreadyExists`, naming keys,
        if it has, or if two rows have the same one; then nothing is written. See :meth:`upsert`.

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> _ = store.create("names", pyarrow.schema([("id", pyarrow.int64())]), key=["id"])
        >>> _ = store.insert("names", {"id": 1})
        >>> try:
        ...     store.insert("names", {"id": [2, 1]})
        ... except drumlin.AlreadyExists as error:
        ...     print(error)
        'names' has rows with the key 1; nothing was written
        """
        return self._core.insert(path, to_rows(rows, self._fit_to_add(path, coerce)), note(metadata), progress)

    def delete_keys(
        self,
        path: str,
        keys: KeysLike,
        *,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> RowsReport:
        """Deletes the rows of a table with a key that have any of ``keys``; keys that are not there are passed over.
        See :meth:`get_rows` for what keys are, :meth:`upsert` for the rest.

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> _ = store.create("names", pyarrow.schema([("id", pyarrow.int64())]), key=["id"])
        >>> _ = store.insert("names", {"id": [1, 2, 3]})
        >>> _ = store.delete_keys("names", [1, 3, 5])
        >>> store.read("names").to_arrow()["id"].to_pylist()
        [2]
        """
        return self._core.delete_keys(path, to_keys(keys), note(metadata), progress)

    def get_row(
        self, path: str, key: Any, *, columns: Iterable[Any] | None = None, as_of: AsOf | None = None
    ) -> dict[str, Any] | None:
        """The row of a table with a key that has ``key``: a value if the key is one column, else a tuple of values or a
        dict. None if there is no such row. See :meth:`read` for ``columns`` and ``as_of``.

        >>> import datetime, drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> columns = {"sym": pyarrow.string(), "day": pyarrow.date32(), "close": pyarrow.float64()}
        >>> _ = store.create("prices", columns, key=["sym", "day"])
        >>> day = datetime.date(2026, 1, 2)
        >>> _ = store.upsert("prices", {"sym": "AAPL", "day": day, "close": 187.5})
        >>> store.get_row("prices", ("AAPL", day), columns=["close"])
        {'close': 187.5}
        >>> store.get_row("prices", {"sym": "MSFT", "day": day}) is None
        True
        """
        return self._core.get_row(path, key, as_of_argument(as_of), column_names(columns))

    def get_rows(
        self, path: str, keys: KeysLike, *, columns: Iterable[Any] | None = None, as_of: AsOf | None = None
    ) -> Lookup:
        """The rows of a table with a key that have the keys in ``keys``, in the order of the question.

        ``keys`` are a list of keys as :meth:`get_row` takes them, an array or series of values, or a frame with the key
        columns, maybe among others. Only ``columns`` are read.

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> schema = pyarrow.schema([("id", pyarrow.int64()), ("name", pyarrow.string())])
        >>> _ = store.create("people", schema, key=["id"])
        >>> _ = store.upsert("people", {"id": [1, 2], "name": ["Ada", "Grace"]})
        >>> answer = store.get_rows("people", [2, 5], columns=["name"])
        >>> answer.rows.to_arrow()["name"].to_pylist(), answer.found.to_pylist()
        (['Grace', None], [True, False])
        """
        return Lookup(self._core.get_rows(path, to_keys(keys), as_of_argument(as_of), column_names(columns)), path)

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
        result: Result
        [result] = self._results([path_argument(path)], selection(as_of, columns, where, limit, head, tail, native))
        return result

    @overload
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
        return_exceptions: Literal[False] = False,
    ) -> Results: ...
    @overload
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
        return_exceptions: bool,
    ) -> Results: ...
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
        return_exceptions: bool = False,
    ) -> Any:
        """Many tables as of the same instant. See :meth:`read`.

        With ``return_exceptions`` what is wrong with a table, say that it is not there, stands in the place of its
        result; else it is raised.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a": {"n": [1]}, "b": {"n": [1, 2]}})
        >>> {path: result.to_arrow().num_rows for path, result in store.read_many(["a", "b"]).items()}
        {'a': 1, 'b': 2}
        """
        selected = selection(as_of, columns, where, limit, head, tail, native)
        asked = names(paths, "paths")
        return Results(zip(asked, self._results(asked, selected, return_exceptions), strict=True))

    def _results(self, paths: list[str], selected: Selection, each: bool = False) -> list[Any]:
        def result(path: str, reading: Any) -> Any:
            if isinstance(reading, Exception):
                return reading
            return Result(reading, path, selects=selected.selects)

        return list(map(result, paths, self._core.read_many(paths, *selected, each)))

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
        return self._core.schema(path, as_of_argument(as_of))

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

    def delete_versions(self, versions: Mapping[str, Iterable[int]], *, missing_ok: bool = False) -> VersionsReport:
        """Deletes versions of tables, all of them in one commit or none; a table keeps at least one. What snapshots
        hold stays readable by them. With ``missing_ok`` paths and versions that are not there are passed over, and
        reported.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1]})
        >>> _ = store.write("numbers", {"n": [2]})
        >>> store.delete_versions({"numbers": [0]}).versions
        {'numbers': [0]}
        >>> [v.version for v in store.versions("numbers")]
        [1]
        """
        return self._core.delete_versions(version_lists(versions), missing_ok)

    def snapshot(self, name: str, pattern: PatternLike = "**") -> Snapshot:
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
        return self._core.snapshot(name, plain_text(pattern))

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
        if keep_last is not None and count(keep_last, "keep_last") == 0:
            raise InvalidArgument("keep_last=0: a table keeps at least one version")
        self._core.set_retention(
            path,
            keep_last,
            optional_micros(keep_for, "keep_for"),
            keep_all,
        )

    def retention(self, path: str) -> Retention:
        """The retention that holds at ``path``."""
        keep_last, keep_micros = self._core.retention(path)
        return Retention(keep_last, None if keep_micros is None else dt.timedelta(microseconds=keep_micros))

    # Dropping.

    def drop_and_reclaim(
        self,
        paths: PatternLike | Iterable[PatternLike],
        *,
        missing_ok: bool = False,
        block_rest: dt.timedelta | None = None,
        progress: Progress | None = None,
    ) -> tuple[DropReport, ReclaimReport]:
        """Drops tables as :meth:`drop` does, gives them up for good in the same commit, and frees their space at once.
        In a store that others write too, blocks let go of less than ``block_rest`` ago stay (default: as the store was
        opened).

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a/x": {"n": [1]}, "a/y": {"n": [1]}})
        >>> dropped, reclaimed = store.drop_and_reclaim("a/**")
        >>> dropped.paths, store.trash()
        (['a/x', 'a/y'], [])
        """
        rest = optional_micros(block_rest, "block_rest")
        return self._core.drop_and_reclaim(paths_to_drop(paths), missing_ok, rest, progress)

    def drop(self, paths: PatternLike | Iterable[PatternLike], *, missing_ok: bool = False) -> DropReport:
        """Drops the tables that ``paths`` (paths or patterns) name: one commit for all of them, all or none. They go to
        the trash, from which :meth:`undrop` takes them back until :meth:`reclaim` frees their space. With
        ``missing_ok`` those that name none are passed over, and reported.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a/x": {"n": [1]}, "a/y": {"n": [1]}, "b": {"n": [1]}})
        >>> store.drop("a/**").paths
        ['a/x', 'a/y']
        >>> store.undrop("a/x")
        >>> store.tables()
        ['a/x', 'b']
        """
        return self._core.drop(paths_to_drop(paths), missing_ok)

    def trash(self) -> list[TrashItem]:
        """Dropped tables that can be taken back, the oldest drop first."""
        return self._core.trash()

    def undrop(self, path: str, *, to: str | None = None) -> None:
        """Takes the table most recently dropped from ``path`` out of the trash, with all its versions, and puts it
        ``to`` a path that holds no table; by default where it was."""
        self._core.undrop(path, to)

    # Nodes.

    def put(
        self,
        path: str,
        value: Any,
        *,
        only: Literal["new", "there"] | None = None,
        when: Condition | None = None,
        keep_while: KeepWhile | None = None,
    ) -> Change:
        """Sets what the node at ``path`` carries: a JSON value or bytes. The node and its parents are made if they are
        not there. Gives what the node was and became.

        ``only="new"`` is meant for a node that is not there (else :class:`drumlin.AlreadyExists`), ``only="there"`` for
        one that is (else :class:`drumlin.NotFound`); ``when`` must hold of the node as it is (else
        :class:`drumlin.ConditionFailed`). With ``keep_while`` the node lives only as long as conditions on the nodes at
        paths hold, and is deleted with the change by which one no longer does; none of them takes that back.

        >>> import drumlin
        >>> from drumlin.tree import exists, payload
        >>> store = drumlin.open("memory://")
        >>> change = store.put("config/feeds/a", {"url": "https://example.org", "retries": 3})
        >>> change.before is None, change.after.payload_version
        (True, 1)
        >>> store.get("config/feeds/a")["retries"]
        3
        >>> _ = store.put("config/feeds/a", {"retries": 4}, when=payload("retries") == 3)
        >>> _ = store.put("locks/a", "mine", only="new", keep_while={"config/feeds/a": exists()})
        >>> [change.path for change in store.delete("config/feeds/a").indirect]
        ['locks/a']
        """
        return self._core.put(path, value, only, when, keep_while)

    def create_node(self, path: str, value: Any) -> Change:
        """Makes a node that is not there: ``put`` with ``only="new"``."""
        return self._core.put(path, value, "new", None, None)

    def update_node(self, path: str, value: Any) -> Change:
        """Sets what a node carries that is there: ``put`` with ``only="there"``."""
        return self._core.put(path, value, "there", None, None)

    def compare_and_swap(self, path: str, expected: Any, value: Any) -> Change:
        """Sets what the node at ``path`` carries if it is ``expected``, else :class:`drumlin.ConditionFailed`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.put("leader", "a")
        >>> store.compare_and_swap("leader", "a", "b").after.payload
        'b'
        """
        return self._core.compare_and_swap(path, expected, value)

    def put_many(self, payloads: Mapping[str, Any]) -> Changes:
        """Sets what many nodes carry, in one commit.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> store.put_many({"a": 1, "b/c": 2})
        Changes(2: 'a', 'b/c')
        """
        return self._core.put_many(payloads)

    def update_many(self, pattern: PatternLike, value: Any) -> Changes:
        """Sets what all nodes carry that match ``pattern``, in one commit."""
        return self._core.update_many(pattern, value)

    def clear_payload(self, path: str, *, when: Condition | None = None) -> Change:
        """Takes off what the node at ``path`` carries. A node that nothing is left of goes."""
        return self._core.clear_payload(path, when)

    def clear_payloads(self, pattern: PatternLike) -> Changes:
        """Takes off what all nodes carry that match ``pattern``, in one commit."""
        return self._core.clear_payloads(pattern)

    def delete(self, path: str, *, when: Condition | None = None) -> Change:
        """Deletes the node at ``path`` with all below it, none of which may hold a table (see :meth:`drop`);
        :class:`drumlin.NotFound` if it is not there, :class:`drumlin.ConditionFailed` if ``when`` does not hold of it.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.put_many({"a": 1, "a/b": 2})
        >>> change = store.delete("a")
        >>> change.before.payload, [below.path for below in change.indirect]
        (1, ['a/b'])
        """
        return self._core.delete(path, when)

    def delete_many(self, pattern: PatternLike) -> Changes:
        """Deletes the nodes that match ``pattern``, with all below them, in one commit; none of them may hold a table.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.put_many({"a/x": 1, "a/y": 2, "b/x": 3})
        >>> [(change.path, change.cause) for change in store.delete_many("*/x")]
        [('a/x', 'asked'), ('b/x', 'asked')]
        """
        return self._core.delete_many(pattern)

    def get(self, path: str, default: Any = None) -> Any:
        """What the node at ``path`` carries; ``default`` if it carries nothing or is not there."""
        return self._core.get(path, default)

    def node(self, path: str) -> Node | None:
        """The node at ``path``; None if there is none."""
        return self._core.node(path)

    def exists(self, path: str) -> bool:
        """Whether there is a node at ``path``; parents of tables are nodes too."""
        return self._core.exists(path)

    def has_payload(self, path: str) -> bool:
        """Whether the node at ``path`` is there and carries something."""
        return self._core.has_payload(path)

    def get_many(self, pattern: PatternLike) -> dict[str, Any]:
        """What the nodes carry that match ``pattern``, by path; without those that carry nothing.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.put_many({"a/x": 1, "a/y": 2, "b/x": 3})
        >>> store.get_many("a/**")
        {'a/x': 1, 'a/y': 2}
        """
        return self._core.get_many(pattern)

    def nodes(self, pattern: PatternLike) -> dict[str, Node]:
        """The nodes that match ``pattern``, by path."""
        return self._core.nodes(pattern)

    def count(self, pattern: PatternLike) -> int:
        """How many nodes match ``pattern``."""
        return self._core.count(pattern)

    def _walk(self, pattern: PatternLike) -> Iterable[tuple[str, Node]]:
        return self._core.walk(pattern)

    def list(self, pattern: PatternLike = "**") -> "_List[ListEntry]":
        """The nodes that match ``pattern``, in path order, with figures of their tables. In a name, ``*`` stands for
        any characters and ``?`` for one; a name ``**`` stands for any number of names.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.put("config/feeds/a", 1)
        >>> [entry.path for entry in store.list()]
        ['config', 'config/feeds', 'config/feeds/a']
        """
        return self._core.list(pattern)

    def tables(self, pattern: PatternLike = "**") -> "_List[str]":
        """The paths that match ``pattern`` and hold tables, in order."""
        return self._core.tables(pattern)

    def export_nodes(
        self,
        pattern: PatternLike,
        file: str | os.PathLike[str] | BinaryIO,
        *,
        progress: Progress | None = None,
    ) -> int:
        """Writes the nodes that match ``pattern`` and carry something to a file (its path, or one that is open for
        bytes), a line of JSON each, in path order and as of one instant. Gives how many.

        >>> import drumlin, io
        >>> store, file = drumlin.open("memory://"), io.BytesIO()
        >>> _ = store.put("a", {"n": 1})
        >>> store.export_nodes("**", file)
        1
        >>> file.getvalue()
        b'{"path":"a","payload":{"n":1}}\\n'
        """
        with _file(file, "wb") as opened:
            return self._core.export_nodes(pattern, opened, progress)

    def import_nodes(
        self,
        file: str | os.PathLike[str] | BinaryIO,
        *,
        under: str | None = None,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Puts the nodes that :meth:`export_nodes` wrote, below the path ``under`` if one is given: all in one commit,
        or none."""
        with _file(file, "rb") as opened:
            return self._core.import_nodes(opened, under, progress)

    # Transactions.

    def transaction(self) -> Transaction:
        """Begins a transaction, to be committed at the end of a ``with`` block. It holds nobody up.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> with store.transaction() as tx:
        ...     _ = tx.put("a", 1)
        ...     _ = tx.put("b", tx.get("a") + 1)
        >>> store.get("b")
        2
        """
        return Transaction(self._core, False)

    def read_transaction(self) -> Transaction:
        """Begins a transaction that only reads, of the store as it is now: what is committed later does not change what
        it sees."""
        return Transaction(self._core, True)

    def transact(self, function: Callable[[Transaction], _T]) -> _T:
        """Calls ``function`` with a transaction and commits that; again from the beginning where others have touched
        meanwhile what it has read or written. Gives what ``function`` gave; what it raises leaves nothing.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.put("stock", 3)
        >>> store.transact(lambda tx: tx.put("stock", tx.get("stock") - 1)).after.payload
        2
        """
        attempt = 1
        while True:
            transaction = self.transaction()
            try:
                answer = function(transaction)
            except BaseException:
                transaction._end()
                raise
            try:
                transaction.commit()
            except Conflict:
                if attempt == _ATTEMPTS_MAX:
                    raise
                attempt += 1
            else:
                return answer

    # Projections.

    def projection(
        self,
        name: str,
        pattern: PatternLike | None = None,
        *,
        key: str | Iterable[str] | Callable[[str, Any], Any] | None = None,
        value: str | Iterable[str] | Callable[[str, Any], Any] = "payload",
        bag: bool = False,
    ) -> ProjectionView:
        """A map that is kept in step with the nodes of a pattern: with a name only as it is now; with a ``pattern`` it
        is made first, in the place of the one with its name.

        Each node that matches and carries something gives an entry, under ``key`` with ``value``. These are fields of
        the node: ``"path"``, ``"name"``, ``"path.0"`` (a name of the path; ``"path.-1"`` is the last), ``"payload"`` or
        ``"payload.a.b"``; or lists of fields. A node that lacks a field gives no entry. Where several nodes give one
        key, it has the value of the first in path order, or with ``bag`` one for each. Such a projection is part of the
        store.

        ``key`` and ``value`` may also be functions of path and payload: then the projection lives as long as the store
        is open. A key is a value, a tuple for several fields, or None for no entry. The functions are called within
        commits, so they should be quick; they must give the same for the same and must not use the store. What they
        raise goes to ``sys.unraisablehook``, and the node has no entry.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.put_many({"users/a": {"team": "x"}, "users/b": {"team": "y"}, "users/c": {"team": "x"}})
        >>> store.projection("teams", "users/*", key="payload.team", value="name", bag=True).items()
        [('x', 'a'), ('x', 'c'), ('y', 'b')]
        >>> _ = store.delete("users/a")
        >>> store.projection("teams").get_all("x")
        ['c']
        >>> lengths = store.projection("lengths", "users/*", key=lambda path, payload: len(path))
        >>> lengths.get(7)
        {'team': 'y'}
        """
        if pattern is None:
            if key is not None or value != "payload" or bag:
                raise InvalidArgument(f"projection {name!r}: which nodes? give a pattern to make it")
        elif callable(key):
            self._core.put_projection_fn(name, pattern, _entry_function(key, value), bag)
        elif key is None:
            raise InvalidArgument(
                f"projection {name!r}: key is missing; expected a field, a list of them, or a function"
            )
        elif callable(value):
            raise InvalidArgument(f"projection {name!r}: value is a function, so key must be one too")
        else:
            self._core.put_projection(name, pattern, _fields(key), _fields(value), bag)
        return self._core.projection(name)

    def drop_projection(self, name: str) -> None:
        """Removes a projection."""
        self._core.drop_projection(name)

    def projections(self) -> "_List[str]":
        """The names of all projections."""
        return self._core.projections()

    # Triggers and changes.

    def on(
        self,
        pattern: PatternLike,
        callback: Callable[[Event], object],
        *,
        actions: Iterable[Literal["create", "update", "delete"]] | None = None,
        priority: int = 0,
        name: str | None = None,
    ) -> str:
        """Calls ``callback`` with an :class:`drumlin.Event` for what happens to nodes that match ``pattern`` from now
        on, after each commit and in order. Gives the trigger's name, by which :meth:`off` ends it.

        ``actions`` are the actions to be told of, by default all; triggers with a higher ``priority`` are called first
        for an event. With a ``name`` the trigger lasts: the callback is called at least once for each event since the
        trigger was first made, whenever a process has registered it again, over restarts and crashes. If that can no
        longer be told, it is called with the action ``"resync"``.

        All triggers are called on one thread of their own: a slow one delays the others but no commit, and a callback
        may use the store. What a callback raises goes to ``sys.unraisablehook`` and to :meth:`trigger_failures`.

        >>> import drumlin
        >>> store, seen = drumlin.open("memory://"), []
        >>> name = store.on("config/**", lambda event: seen.append((event.action, event.path)))
        >>> _ = store.put("config/a", 1)
        >>> store.wait_for_triggers()
        True
        >>> seen
        [('create', 'config/a')]
        >>> store.off(name)
        """
        if not callable(callback):
            raise TypeError(f"a callback is a function of an event, not a {type(callback).__name__}")
        chosen = [] if actions is None else listed(actions, "actions")
        return self._core.on(pattern, callback, chosen, priority, name)

    def off(self, name: str) -> None:
        """Ends a trigger; one with a name of its own for good."""
        self._core.off(name)

    def triggers(self) -> "_List[str]":
        """The names of the triggers: those registered here, and those that last."""
        return self._core.triggers()

    def wait_for_triggers(self, timeout: float | dt.timedelta | None = None) -> bool:
        """Waits until the triggers have been called for all commits up to now. Says whether they have been within
        ``timeout``: seconds or a timedelta, None for as long as it takes."""
        return self._core.wait_for_triggers(timeout)

    def trigger_failures(self) -> "_List[TriggerFailure]":
        """Takes the calls of triggers that failed, the oldest first; beyond the last 1,000 they are lost."""
        return self._core.trigger_failures()

    def changes(self, since: int | None = None) -> ChangeFeed:
        """The commits behind the one with the number ``since``, those to come too: an iterator that waits for the next.
        0 is the beginning, None is now. :class:`drumlin.SnapshotExpired` if a checkpoint has cut the log behind a later
        commit.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> feed = store.changes()
        >>> _ = store.put("config/x", 1)
        >>> commit = next(feed)
        >>> [(event.action, event.path, event.payload) for event in commit.events]
        [('create', 'config/x', 1)]
        >>> feed.next(timeout=0) is None
        True
        """
        return self._core.changes(count(since, "since"))

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

    def repack_plan(self, *, dead_share_min: float | None = None, budget: float | None = None) -> RepackPlan:
        """The blocks that a checkpoint now would empty into others beside that: those mostly dead, and small ones if
        there are many. See :meth:`checkpoint`."""
        return self._core.repack_plan(dead_share_min, budget)

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

    def reclaim(
        self,
        *,
        grace: dt.timedelta = dt.timedelta(0),
        block_rest: dt.timedelta | None = None,
        fence_idle: dt.timedelta | None = None,
        audit: bool = False,
        progress: Progress | None = None,
    ) -> ReclaimReport:
        """Frees the space of dropped tables, expired versions and rewritten row groups. Tables dropped less than
        ``grace`` ago stay in the trash.

        In a store that others write too, blocks let go of less than ``block_rest`` ago stay (default: as the store was
        opened). With ``fence_idle`` processes that have not committed for so long are taken for dead, and what they
        left is swept; one that lives goes on, though a write that was on its way fails. ``audit`` lists all objects and
        deletes those that nothing will ever refer to; it is always done where no other process writes.
        """
        rest = optional_micros(block_rest, "block_rest")
        idle = optional_micros(fence_idle, "fence_idle")
        return self._core.reclaim(micros(grace, "grace"), rest, idle, audit, progress)

    def verify(self, *, deep: bool = False, progress: Progress | None = None) -> VerifyReport:
        """Reads every byte that the store refers to and checks it. What is wrong is reported, not raised.

        :param deep: Also decodes every row group and compares its statistics with its values; takes as long as reading
            all rows.

        >>> import drumlin
        >>> drumlin.open("memory://").verify(deep=True).ok
        True
        """
        return self._core.verify(deep, progress)

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

    With a key:

    >>> import pyarrow
    >>> people = store.table("people")
    >>> schema = pyarrow.schema([("id", pyarrow.int64()), ("name", pyarrow.string())])
    >>> _ = people.create(schema, key=["id"])
    >>> _ = people.upsert([{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}])
    >>> people.get(2)
    {'id': 2, 'name': 'Grace'}
    >>> people.get_many([2, 5]).found.to_pylist()
    [True, False]
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

    def create(self, schema: SchemaLike, *, sort: Iterable[str] = (), key: Iterable[str] = ()) -> Version:
        """See :meth:`Store.create`."""
        return self._store.create(self._path, schema, sort=sort, key=key)

    def write(
        self,
        data: FrameLike,
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> Version:
        """See :meth:`Store.write`."""
        return self._store.write(self._path, data, metadata=metadata, sort=sort, coerce=coerce, progress=progress)

    def append(
        self, data: FrameLike, *, metadata: Any = None, coerce: bool = False, progress: Progress | None = None
    ) -> Version:
        """See :meth:`Store.append`."""
        return self._store.append(self._path, data, metadata=metadata, coerce=coerce, progress=progress)

    def update(
        self, data: FrameLike, *, metadata: Any = None, coerce: bool = False, progress: Progress | None = None
    ) -> Version:
        """See :meth:`Store.update`."""
        return self._store.update(self._path, data, metadata=metadata, coerce=coerce, progress=progress)

    def delete(self, where: str | Expr, *, metadata: Any = None, progress: Progress | None = None) -> DeleteReport:
        """See :meth:`Store.delete_rows`."""
        return self._store.delete_rows(self._path, where, metadata=metadata, progress=progress)

    def upsert(
        self, rows: RowsLike, *, metadata: Any = None, coerce: bool = False, progress: Progress | None = None
    ) -> RowsReport:
        """See :meth:`Store.upsert`."""
        return self._store.upsert(self._path, rows, metadata=metadata, coerce=coerce, progress=progress)

    def insert(
        self, rows: RowsLike, *, metadata: Any = None, coerce: bool = False, progress: Progress | None = None
    ) -> RowsReport:
        """See :meth:`Store.insert`."""
        return self._store.insert(self._path, rows, metadata=metadata, coerce=coerce, progress=progress)

    def delete_keys(self, keys: KeysLike, *, metadata: Any = None, progress: Progress | None = None) -> RowsReport:
        """See :meth:`Store.delete_keys`."""
        return self._store.delete_keys(self._path, keys, metadata=metadata, progress=progress)

    def get(
        self, key: Any, *, columns: Iterable[Any] | None = None, as_of: AsOf | None = None
    ) -> dict[str, Any] | None:
        """See :meth:`Store.get_row`."""
        return self._store.get_row(self._path, key, columns=columns, as_of=as_of)

    def get_many(self, keys: KeysLike, *, columns: Iterable[Any] | None = None, as_of: AsOf | None = None) -> Lookup:
        """See :meth:`Store.get_rows`."""
        return self._store.get_rows(self._path, keys, columns=columns, as_of=as_of)

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


def _by_path(
    frames: Mapping[str, Any], streams: list[tuple[str, Any]], answers: list[Any], wrong: dict[str, Any] | None
) -> dict[str, Any]:
    """Answers to a call, in its order."""
    found = {path: answer for (path, _), answer in zip(streams, answers, strict=True)} | (wrong or {})
    return {path: found[path] for path in frames}


def _file(file: str | os.PathLike[str] | BinaryIO, mode: Literal["rb", "wb"]) -> AbstractContextManager[BinaryIO]:
    """A file to be closed after use if it is opened here."""
    if isinstance(file, (str, os.PathLike)):
        return io.open(file, mode)  # noqa: UP020
    return nullcontext(file)


def _fields(fields: str | Iterable[str]) -> list[str]:
    return [fields] if isinstance(fields, str) else list(fields)


def _entry_function(
    key: Callable[[str, Any], Any],
    value: str | Iterable[str] | Callable[[str, Any], Any],
) -> Callable[[str, Any], tuple[Any, Any] | None]:
    """The key and value of a node's entry, as one function."""
    if not callable(value) and value != "payload":
        raise InvalidArgument(f"key is a function, so value must be one too, not {value!r}")

    def entry(path: str, payload: Any) -> tuple[Any, Any] | None:
        found = key(path, payload)
        if found is None:
            return None
        return found, value(path, payload) if callable(value) else payload

    return entry
