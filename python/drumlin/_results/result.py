"""The result of a read, and groups of its rows, which are read as another."""

import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from drumlin import _drumlin
from drumlin._arguments.checks import FilterLike, Params, column_names, count, names
from drumlin._arguments.named import names_arguments
from drumlin._engines.predicates import predicate
from drumlin._errors import InvalidArgument
from drumlin._habits import Habits
from drumlin._optional import have, need
from drumlin._results.collected import collect, to_pandas
from drumlin._results.groups import Buckets, asked, buckets, key_names
from drumlin._results.lines import first_lines
from drumlin._results.rows import Rows
from drumlin._results.scanned import PinnedRows, Scanned, ScannedReading
from drumlin._values.numpy import structured
from drumlin._values.polars import polars_frame

if TYPE_CHECKING:
    import numpy as _np
    import pandas as _pd  # type: ignore[import-untyped, unused-ignore]
    import polars as _pl
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["Groupable", "Groups", "Result", "Results"]


@names_arguments("agg")
class Groups(Habits):
    """Rows in groups; made by :meth:`Dataset.group_by <drumlin.Dataset.group_by>` and :meth:`Dataset.resample
    <drumlin.Dataset.resample>`. No data is read until :meth:`agg` is called."""

    __slots__ = ("_dataset", "_every", "_keys")

    def __init__(self, dataset: Scanned, keys: list[str], every: Buckets | None) -> None:
        self._dataset = dataset
        self._keys = keys
        self._every = every

    def agg(self, by_column: Mapping[str, str | list[str]] | None = None, /, **aggregates: Any) -> "Result":
        """Returns one row for each group: its keys, the label of its bucket, then the columns named here. Each of these
        is a pair of a column and a function, or ``"count"`` for the number of rows. In place of a column, it can be a
        calculation on columns (text, or made with :func:`drumlin.col`): exact if it has only integers and decimals,
        otherwise in doubles. Rows are ordered by keys and buckets, nulls first. Without keys and buckets, there is one
        row. ``by_column`` maps columns to a function, whose result keeps the name of the column, or to a list of
        functions: ``{"px": ["min", "max"]}`` makes ``px_min`` and ``px_max``.

        ============================================ =====================================================
        ``count``, ``count_distinct``                the number of values, or of different ones; never null
        ``sum``                                      int64, uint64 or decimal128; an error on overflow. A double
                                                     if the column has floats
        ``mean``, ``std``, ``var``                   doubles; the last two are of a sample
        ``median``, ``("x", "quantile", 0.9)``       doubles, interpolated between the two nearest values
        ``("x", "weighted_mean", "weight")``         a double; null if the weights add up to zero
        ``min``, ``max``                             NaN is greater than all numbers; dictionary columns are
                                                     compared by value
        ``first``, ``last``                          in the order of the rows
        ``any``, ``all``                             of booleans
        ============================================ =====================================================

        Nulls are ignored; an aggregate of no values is null. Sums are exact and rounded once, so the result is the same
        bit for bit with any number of threads, and before and after a checkpoint. All threads compute. Memory is used
        for the groups; if they take more than half of ``memory_bytes``, the rows are read again for each part of the
        groups that fits.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("trades", {"sym": ["A", "B", "A"], "px": [10.0, 20.0, 12.0], "size": [1, 1, 3]})
        >>> groups = store.scan("trades").group_by("sym")
        >>> groups.agg(n="count", px=("px", "mean"), vwap=("px", "weighted_mean", "size")).to_arrow().to_pylist()
        [{'sym': 'A', 'n': 2, 'px': 11.0, 'vwap': 11.5}, {'sym': 'B', 'n': 1, 'px': 20.0, 'vwap': 20.0}]
        >>> store.scan("trades").group_by().agg(value=("px * size", "sum")).to_arrow().to_pylist()
        [{'value': 66.0}]
        """
        dataset = self._dataset
        wanted = asked(by_column, aggregates)
        batches = dataset._exact.aggregate(self._keys, self._every, wanted, dataset._filters)
        return Result(batches, dataset._core.pattern, selects=True)

    def __repr__(self) -> str:
        every = "" if self._every is None else f", every={self._every[:2]!r}"
        return f"Groups({self._dataset._core.pattern!r}, by {self._keys!r}{every})"


@names_arguments()
class Groupable:
    """An object whose rows can be grouped."""

    __slots__ = ()

    def _to_group(self, what: str, where: FilterLike | None) -> Scanned:
        """The rows for which ``where`` is true, for the operation ``what``."""
        raise NotImplementedError

    def group_by(
        self, *keys: str | list[str], every: tuple[str, str] | None = None, where: FilterLike | None = None
    ) -> Groups:
        """Groups the rows for which ``where`` is true (default: all) by equal values in the columns ``keys``, names or
        one list of names. Nulls are equal to each other, NaN to NaN, and -0.0 to 0.0. With ``every``, a pair of a time
        column and a length such as ``"5m"`` (see :meth:`resample`), each bucket of time is a separate group, and its
        start is a column with the name of the time column. See :meth:`Groups.agg <drumlin.Groups.agg>`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"prices/AAPL": {"px": [1.0, 2.0]}, "prices/MSFT": {"px": [3.0]}})
        >>> prices = store.scan("prices/*", path_columns=["symbol"])
        >>> prices.group_by("symbol").agg(n="count", mean=("px", "mean")).to_arrow().to_pylist()
        [{'symbol': 'AAPL', 'n': 2, 'mean': 1.5}, {'symbol': 'MSFT', 'n': 1, 'mean': 3.0}]
        """
        if every is not None and (not isinstance(every, tuple) or len(every) != 2):
            raise TypeError(f"every must be a pair of a column and a length, such as ('ts', '5m'), not {every!r}")
        made = None if every is None else buckets(*every)
        return Groups(self._to_group("group_by", where), key_names(keys), made)

    def resample(
        self,
        every: str,
        *,
        on: str,
        by: Iterable[str] | str = (),
        origin: dt.date | None = None,
        closed: str = "left",
        label: str = "left",
        where: FilterLike | None = None,
    ) -> Groups:
        """Groups the rows for which ``where`` is true (default: all) into buckets of time, by the time or date column
        ``on``, and by the columns ``by``. ``every`` is a number and a unit: ``ns``, ``us``, ``ms``, ``s``, ``m``,
        ``h``; or of the calendar: ``d``, ``w`` (from Monday), ``mo``, ``q`` and ``y``, in the time zone of the column,
        where a day may have 23 or 25 hours. Buckets without rows are not in the result.

        A bucket begins at ``origin``; the default is the start of 1970, which for days and longer units is in the
        column's time zone. If the column has a time zone, ``origin`` must have one too. Hours and shorter units are
        counted through clock changes. ``closed`` says which end of a bucket, ``"left"`` or ``"right"``, belongs to it,
        ``label`` which end is its label.

        >>> import datetime, drumlin
        >>> store = drumlin.open("memory://")
        >>> at = [datetime.datetime(2026, 1, 2, 9, minute) for minute in (0, 2, 7)]
        >>> _ = store.write("trades", {"ts": at, "px": [10.0, 12.0, 11.0]})
        >>> bars = store.scan("trades").resample("5m", on="ts").agg(open=("px", "first"), close=("px", "last"))
        >>> [(bar["ts"].minute, bar["open"], bar["close"]) for bar in bars.to_arrow().to_pylist()]
        [(0, 10.0, 12.0), (5, 11.0, 11.0)]
        """
        made = buckets(on, every, origin, closed, label)
        return Groups(self._to_group("resample", where), names(by, "by"), made)


@names_arguments()
class Result(Rows, Groupable, Habits):
    """Columns and rows of one version of a table. No data is read until rows are requested.

    A result can be read any number of times, and always shows the same version. It is an Arrow stream
    (``__arrow_c_stream__``): ``pyarrow.table(result)``, ``polars.DataFrame(result)``, a DuckDB query that names it, and
    :meth:`Store.write <drumlin.Store.write>` take it directly.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> _ = store.write("numbers", {"n": [1, 2, 3], "s": ["a", "b", "c"]})
    >>> result = store.read("numbers", where="n > 1")
    >>> result
    Result('numbers', n: int64, s: string)
      n  s
      2  b
      3  c
    >>> len(result), result.tail(1).to_dicts()
    (2, [{'n': 3, 's': 'c'}])
    >>> result.where("s <> 'c'").to_arrow().to_pydict()
    {'n': [2], 's': ['b']}
    """

    __slots__ = ("_path", "_reading", "_selects")

    def __init__(
        self,
        reading: _drumlin.Reading | _drumlin.Batches | ScannedReading,
        path: str,
        *,
        selects: bool,
    ) -> None:
        self._reading = reading
        self._path = path
        self._selects = selects

    @property
    def path(self) -> str:
        """The path of the table."""
        return self._path

    @property
    def schema(self) -> _drumlin.Schema:
        """The columns: names and Arrow types. Reads no data."""
        return self._reading.schema

    @property
    def version(self) -> int | None:
        """The number of the version that is read, however it was selected: by number, snapshot or time, or as the
        newest. The rows may include rows written by key since, which belong to no version yet. None for uncommitted
        writes of a transaction, and for computed rows, such as groups. Reads no data.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2]}, metadata={"by": "me"})
        >>> _ = store.snapshot("then"), store.append("numbers", {"n": [3]})
        >>> result = store.read("numbers", as_of="then")
        >>> result.version, result.metadata, result.num_rows
        (0, {'by': 'me'}, 2)
        """
        told = self._told()
        return None if told is None else told[0]

    @property
    def metadata(self) -> Any:
        """The metadata of that version (see :meth:`Store.write <drumlin.Store.write>`), as it was when this result was
        made; None if there is none. Reads no data."""
        told = self._told()
        return None if told is None or told[1] is None else json.loads(told[1])

    @property
    def num_rows(self) -> int:
        """The number of rows. It is known without reading, unless there is a ``where`` or rows written by key are in
        memory. Then rows are counted: the filter's columns are read, in the row groups whose statistics do not decide
        it.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> store.read("numbers", limit=2).num_rows, store.read("numbers", where="n > 2").num_rows
        (2, 1)
        """
        reading = self._reading
        return reading.num_rows if isinstance(reading, _drumlin.Batches) else reading.count_rows()

    def head(self, rows: int = 5) -> "Result":
        """The same result, limited to its first ``rows`` rows. No more is read than they need."""
        return self._narrowed(first=count(rows, "rows") or 0)

    def tail(self, rows: int = 5) -> "Result":
        """The same result, limited to its last ``rows`` rows. No more is read than they need; of a result with a
        ``limit`` or ``rows``, its rows are counted first, as for :attr:`num_rows`."""
        return self._narrowed(last=count(rows, "rows") or 0)

    def where(self, where: FilterLike, *, params: Params | None = None) -> "Result":
        """The same result, limited further to the rows for which ``where`` is true.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> store.read("numbers").where("n > 1").where(drumlin.col("n") < 3).to_dicts()
        [{'n': 2}]
        """
        text = predicate(where, lambda: self._to_group("where", None), params)
        if text is None:
            raise InvalidArgument("where is None; expected a filter")
        return self._narrowed(filter=text)

    def select(self, columns: Iterable[Any] | str) -> "Result":
        """The same result with only ``columns``, in that order."""
        chosen = column_names(columns) or []
        known = self.schema.names
        for name in chosen:
            if name not in known:
                raise InvalidArgument(f"{self._path!r}: column {name!r} does not exist; the columns are {known}")
        return self._narrowed(columns=chosen)

    def _narrowed(self, **changes: Any) -> "Result":
        selects = self._selects or set(changes) != {"columns"}
        return Result(self._reading.narrowed(**changes), self._path, selects=selects)

    def _to_group(self, what: str, where: FilterLike | None) -> Scanned:
        reading = self._reading
        if isinstance(reading, _drumlin.Batches):
            raise InvalidArgument(f"{what}: these rows are computed already; write them to a table to group them again")
        if isinstance(reading, ScannedReading):
            core, filters = reading.dataset()
        else:
            core, text = _drumlin.Dataset.of(reading)
            filters = [] if text is None else [text]
        text = predicate(where, lambda: PinnedRows(core, filters))
        return PinnedRows(core, filters if text is None else [*filters, text])

    def to_arrow(self) -> "_pa.Table":
        """All rows as a pyarrow Table, decoded by all threads."""
        pyarrow = need("pyarrow", "to_arrow()", "pyarrow")
        return pyarrow.table(self._reading.collect())

    def to_pandas(self, **options: Any) -> "_pd.DataFrame":
        """All rows as a pandas DataFrame.

        A frame that pandas wrote comes back unchanged: index, names and types. With ``columns=[...]``, the index is
        included. A RangeIndex comes back as it was if the table has exactly the rows of one write and the read returns
        them all; after appends and deletes, and with ``where``, ``limit`` or ``tail``, rows are numbered from 0. In
        columns of Python objects, missing values come back as None.

        ``options`` are passed to ``pyarrow.Table.to_pandas``.

        >>> import drumlin, pandas
        >>> store = drumlin.open("memory://")
        >>> frame = pandas.DataFrame({"close": [1.5, 2.5]}, index=pandas.Index(["A", "B"], name="sym"))
        >>> _ = store.write("prices", frame)
        >>> store.read("prices").to_pandas()  # doctest: +ELLIPSIS
             close
        sym...
        A      1.5
        B      2.5
        """
        [frame] = to_pandas([self], options)
        return frame

    def to_series(self, **options: Any) -> "_pd.Series[Any]":
        """The only column as a pandas Series, with its index. See :meth:`to_pandas`.

        >>> import drumlin, pandas
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("closes", pandas.Series([1.5, 2.5], name="close"))
        >>> store.read("closes").to_series().tolist()
        [1.5, 2.5]
        """
        frame = self.to_pandas(**options)
        if frame.shape[1] != 1:
            raise InvalidArgument(f"'{self._path}' has {frame.shape[1]} columns beside its index; a Series has one")
        return frame.iloc[:, 0]

    def to_numpy(self) -> "_np.ndarray[Any, Any]":
        """All rows as a structured NumPy array with a field for each column, as :meth:`Store.write
        <drumlin.Store.write>` takes it. A missing float is NaN, a missing time NaT; strings, bytes, decimals and nested
        values are Python objects. Raises :class:`drumlin.InvalidArgument` for what NumPy cannot represent: missing
        integers and booleans, and time zones.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2], "x": [0.5, None]})
        >>> store.read("numbers").to_numpy()
        array([(1, 0.5), (2, nan)], dtype=[('n', '<i8'), ('x', '<f8')])
        """
        return structured(self.to_arrow(), self._path)

    def to_polars(self) -> "_pl.DataFrame":
        """All rows as a Polars DataFrame, decoded by all threads.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> store.read("numbers").to_polars()["n"].sum()
        6
        """
        return polars_frame(self._reading.collect())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._reading.stream().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._reading.schema.__arrow_c_schema__()

    def __iter__(self) -> Iterator[Any]:
        """The batches, each read when it is asked for: pyarrow RecordBatches, or without pyarrow, objects with
        ``__arrow_c_array__``.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> [batch.num_rows for batch in store.read("numbers")]
        [3]
        """
        stream = self._reading.stream()
        if not have("pyarrow"):
            return iter(stream)
        return map(need("pyarrow", "", "").record_batch, stream)

    def __getitem__(self, what: Any) -> Any:
        raise TypeError(
            "a result is no frame: columns are result.select(['a']), the first rows result.head(10), others "
            "store.read(path, rows=slice(10, 20)), a Series result.to_pandas()['a']"
        )

    def __repr__(self) -> str:
        schema = self._reading.schema
        columns = ", ".join(f"{name}: {type_}" for name, type_ in zip(schema.names, schema.types, strict=True))
        return "\n".join([f"Result({self._path!r}, {columns})", *first_lines(self._reading, self._known_rows)])

    def __copy__(self) -> "Result":
        return self

    def __deepcopy__(self, memo: Any) -> "Result":
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"the result of reading {self._path!r} is not pickled; pickle the data set (store.scan), which reads the "
            "same rows in another process, or the rows (to_arrow(), to_pandas() ...)"
        )

    def _all(self) -> _drumlin.Batches:
        return self._reading.collect()

    def _told(self) -> tuple[int, str | None] | None:
        return self._reading.version if isinstance(self._reading, _drumlin.Reading) else None

    @property
    def _known_rows(self) -> int | None:
        """The number of rows, if it is known without reading; otherwise None."""
        reading = self._reading
        return reading.num_rows if isinstance(reading, _drumlin.Batches) else reading.known_rows

    def _is_whole(self, written: range | None) -> bool:
        """Whether the rows are exactly those of one write; only checked if their index depends on it."""
        return (
            not self._selects
            and written is not None
            and isinstance(self._reading, _drumlin.Reading)
            # A numbering from 0 is the same for any rows.
            and (written == range(len(written)) or self._reading.written_whole)
        )


def returned(batches: _drumlin.Batches, path: str) -> Result:
    """Rows that a write to the table at ``path`` returns."""
    return Result(batches, path, selects=True)


class Results(dict[str, Any]):
    """The results of :meth:`Store.read_many <drumlin.Store.read_many>`, a dict by path. All of their rows can be read
    at once; all threads decode them, across tables.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> _ = store.write_many({"a": {"n": [1]}, "b": {"n": [1, 2]}})
    >>> frames = store.read_many(["a", "b"]).to_pandas()
    >>> frames["b"]["n"].sum()
    np.int64(3)
    """

    __slots__ = ()

    def _made(self, make: Callable[[list[Result]], list[Any]]) -> dict[str, Any]:
        results = [result for result in self.values() if isinstance(result, Result)]
        made = iter(make(results))
        return {path: next(made) if isinstance(result, Result) else result for path, result in self.items()}

    def to_arrow(self) -> "dict[str, _pa.Table]":
        """All rows as pyarrow Tables, by path. Exceptions stay as they are."""
        pyarrow = need("pyarrow", "to_arrow()", "pyarrow")
        return self._made(lambda results: list(map(pyarrow.table, collect(results))))

    def to_pandas(self, **options: Any) -> "dict[str, _pd.DataFrame]":
        """All rows as pandas DataFrames, by path: see :meth:`Result.to_pandas`. Exceptions stay as they are."""
        return self._made(lambda results: to_pandas(results, options))

    def to_polars(self) -> "dict[str, _pl.DataFrame]":
        """All rows as Polars DataFrames, by path. Exceptions stay as they are."""
        need("polars", "to_polars()", "polars")
        return self._made(lambda results: list(map(polars_frame, collect(results))))
