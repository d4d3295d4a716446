"""Parts of a data set for other processes to read."""

import contextlib
import datetime as dt
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast, overload

from drumlin import _drumlin
from drumlin._arguments.checks import column_names, filter_text, optional_micros, storage_settings
from drumlin._arguments.expr import Expr
from drumlin._errors import Error, InvalidArgument, SnapshotExpired
from drumlin._optional import have, need
from drumlin._results.scanned import Scanned
from drumlin._values.polars import polars_frame

if TYPE_CHECKING:
    import pandas as _pd  # type: ignore[import-untyped, unused-ignore]
    import polars as _pl
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["Split", "Splits"]


class Split:
    """Part of a data set; made by :meth:`Dataset.splits <drumlin.Dataset.splits>`. It can be pickled, to about 200
    bytes, and read by any process that can reach the store's folder or bucket, without the log and the catalog. A
    bucket's credentials come from the environment of the reading process or from ``storage_options``; the pickle has
    none.

    >>> import drumlin, pickle, tempfile
    >>> store = drumlin.open(tempfile.mkdtemp() + "/store")
    >>> _ = store.write("t", {"n": [1, 2, 3]})
    >>> with store.scan("t").splits() as splits:
    ...     pickle.loads(pickle.dumps(splits[0])).to_arrow()["n"].to_pylist()
    [1, 2, 3]
    """

    __slots__ = ("_core", "_near", "_options", "_process")

    #: The reader of the store that made it, in the same process.
    _near: "_drumlin.SplitReader | None"

    def __init__(self, encoded: bytes, storage_options: Mapping[str, str] | None = None) -> None:
        self._core = _drumlin.Split(encoded)
        self._options, self._near, self._process = dict(storage_options or {}), None, os.getpid()

    @property
    def rows(self) -> int | None:
        """The number of rows; None if it is not known before they are read."""
        return self._core.rows

    @property
    def bytes(self) -> int:
        """The encoded bytes of the split's row groups."""
        return self._core.bytes

    def to_arrow(
        self,
        *,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> "_pa.Table":
        """The rows for which ``where`` is true (default: all) as a pyarrow Table, with ``columns`` (default: all)."""
        pyarrow = need("pyarrow", "to_arrow()", "pyarrow")
        return pyarrow.table(self._collect(columns, where, storage_options))

    def to_pandas(
        self,
        *,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> "_pd.DataFrame":
        """The rows as a pandas DataFrame; an index of the tables becomes the index."""
        need("pandas", "to_pandas()", "pandas")
        from drumlin import _pandas

        rows = self.to_arrow(columns=columns, where=where, storage_options=storage_options)
        return _pandas.from_arrow(rows, whole=False, options={})

    def to_polars(
        self,
        *,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> "_pl.DataFrame":
        """The rows as a Polars DataFrame."""
        return polars_frame(self._collect(columns, where, storage_options))

    def batches(
        self,
        *,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Iterator[Any]:
        """The batches, each read when it is asked for: pyarrow RecordBatches, or without pyarrow, objects with
        ``__arrow_c_array__``."""
        stream = self._reader(storage_options).stream(self._core, column_names(columns), filter_text(where))
        return map(need("pyarrow", "", "").record_batch, stream) if have("pyarrow") else iter(stream)

    def __iter__(self) -> Iterator[Any]:
        return self.batches()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._reader(None).stream(self._core, None, None).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"Split({self._core.uri!r}, rows={self.rows}, bytes={self.bytes})"

    def __reduce__(self) -> Any:
        return (Split, (self._core.encode(), self._options))

    def _collect(
        self, columns: Iterable[Any] | None, where: str | Expr | None, storage_options: Mapping[str, str] | None
    ) -> Any:
        return self._reader(storage_options).collect(self._core, column_names(columns), filter_text(where))

    def _reader(self, storage_options: Mapping[str, str] | None) -> "_drumlin.SplitReader":
        if self._near is not None and not storage_options and self._process == os.getpid():
            return self._near
        options = {**self._options, **(storage_options or {})}
        return cast(_drumlin.SplitReader, of_place(_drumlin.SplitReader, self._core.uri, options))


class Splits(Sequence[Split]):
    """Parts of a data set; in order, they are its rows. They hold a lease: what they show stays readable, whatever
    other processes do to the store, until :meth:`close`, the end of a ``with`` block, or the end of this object. Until
    then, a thread renews the lease. If the process dies, the lease ends after its life, and readers get
    :class:`SnapshotExpired`."""

    def __init__(self, splits: list[Split], lease: "_drumlin.Lease", schema: Any) -> None:
        self._splits = splits
        #: The schema of all splits.
        self.schema = schema
        self._beats = Beats(lease.beat, lease.end, lease.life_micros)
        self._end = weakref.finalize(self, self._beats.end)

    @overload
    def __getitem__(self, index: int) -> Split: ...
    @overload
    def __getitem__(self, index: slice) -> list[Split]: ...
    def __getitem__(self, index: int | slice) -> Split | list[Split]:
        return self._splits[index]

    def __len__(self) -> int:
        return len(self._splits)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the lease."""
        self._end()

    def __repr__(self) -> str:
        return f"Splits({len(self)} splits, {sum(split.bytes for split in self)} bytes)"


class Beats:
    """Renews a hold every third of its life, on a separate thread, until it is ended."""

    def __init__(self, beat: Callable[[], object], end: Callable[[], object] | None, life_micros: int) -> None:
        self._end, self._over = end, threading.Event()
        self._process = os.getpid()
        # The thread must not keep this object alive.
        threading.Thread(
            target=_beat, args=(beat, self._over, life_micros / 3e6), name="drumlin-beat", daemon=True
        ).start()

    def end(self) -> None:
        """Stops the renewals and ends the hold."""
        self._over.set()
        # A forked process has a copy, which must not end the hold. If ending the hold fails, it expires.
        if self._end is not None and os.getpid() == self._process:
            with contextlib.suppress(Error):
                self._end()


def _beat(beat: Callable[[], object], over: threading.Event, seconds: float) -> None:
    while not over.wait(min(seconds, threading.TIMEOUT_MAX)):
        try:
            beat()
        except SnapshotExpired:
            return
        except Error:
            # It is tried again. If it fails for the whole life of the hold, the hold expires.
            continue


#: The readers and writers that this process has opened, by class and place.
_opened: dict[tuple[Any, ...], Any] = {}


def of_place(kind: Any, uri: str, options: Mapping[str, str]) -> Any:
    """This process's reader or writer for a place; opened once, since opening it starts threads."""
    place = (os.getpid(), kind, uri, tuple(sorted(options.items())))
    if place not in _opened:
        _opened[place] = kind(uri, storage_settings(options))
    return _opened[place]


def life_micros(life: dt.timedelta | None) -> int | None:
    """How long a hold lives without being renewed, in microseconds; None for the default."""
    span = optional_micros(life, "life")
    if span is not None and span < 1_000_000:
        raise InvalidArgument(f"life={life} is too short; expected a second or more")
    return span


def splits_of(
    dataset: Scanned, schema: Any, split_bytes: int | None, at_least: int | None, life: dt.timedelta | None
) -> Splits:
    """The parts of a data set, with the schema ``schema``."""
    span = life_micros(life)
    found, lease = dataset._core.splits(
        dataset._columns, dataset._filters, dataset._limit, split_bytes or 128 << 20, at_least or 1, span or 600_000_000
    )
    near, options = _drumlin.SplitReader.of(dataset._store), dataset._store.storage_options()
    splits = []
    for one in found:
        split = Split.__new__(Split)
        split._core, split._options, split._near = one, options, near
        split._process = os.getpid()
        splits.append(split)
    return Splits(splits, lease, schema)
