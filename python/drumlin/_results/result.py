"""The result of a read."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from drumlin import _drumlin
from drumlin._errors import InvalidArgument
from drumlin._optional import have, need
from drumlin._values.numpy import structured
from drumlin._values.polars import polars_frame

if TYPE_CHECKING:
    import numpy as _np
    import pandas as _pd  # type: ignore[import-untyped, unused-ignore]
    import polars as _pl
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["Result"]


class Result:
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
    >>> result.to_arrow().to_pydict()
    {'n': [2, 3], 's': ['b', 'c']}
    """

    __slots__ = ("_path", "_reading", "_selects")

    def __init__(
        self,
        reading: _drumlin.Reading | _drumlin.Batches,
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

    def __repr__(self) -> str:
        schema = self._reading.schema
        columns = ", ".join(f"{name}: {type_}" for name, type_ in zip(schema.names, schema.types, strict=True))
        return f"Result({self._path!r}, {columns})"

    def __copy__(self) -> "Result":
        return self

    def __deepcopy__(self, memo: Any) -> "Result":
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"the result of reading {self._path!r} is not pickled; pickle the data set (store.scan), which reads the "
            "same rows in another process, or the rows (to_arrow(), to_pandas() ...)"
        )

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


#: For each result: the columns to read (None: its own), and whether they may be returned as arrays.
_Asked: TypeAlias = tuple[list[str] | None, bool]


def collect(
    results: list[Result], asked: list[_Asked] | None = None, make: Callable[[int, Any], Any] | None = None
) -> list[Any]:
    """All rows of the results, decoded at once: as batches, or as what ``make`` returns for a result's position and its
    arrays, called while others are being decoded."""
    asked = [(None, False)] * len(results) if asked is None else asked
    places, readings = [], []
    collected: list[Any] = []
    for at, (result, (columns, arrays)) in enumerate(zip(results, asked, strict=True)):
        if isinstance(result._reading, _drumlin.Reading):
            places.append(at)
            readings.append((result._reading, columns, arrays))
            collected.append(None)
        else:
            collected.append(result._reading.collect(columns))

    def made(at: int, groups: Any) -> Any:
        return None if make is None else make(places[at], groups)

    for at, rows in zip(places, _drumlin.collect_many(readings, made), strict=True):
        collected[at] = rows
    return collected


def to_pandas(results: list[Result], options: dict[str, Any]) -> "list[_pd.DataFrame]":
    """The frames of the results: numeric ones directly from the store, others through pyarrow."""
    pyarrow = need("pyarrow", "to_pandas()", "pandas")
    need("pandas", "to_pandas()", "pandas")
    from drumlin import _pandas

    plans: list[_pandas.Plain | None] = []
    asked: list[_Asked] = []
    for result in results:
        schema = result.schema
        plan = None if options else _pandas.plain(schema)
        plans.append(plan)
        if plan is not None:
            asked.append((None, True))
            continue
        names = schema.names
        missing = [name for name in _pandas.index_columns(schema.metadata) if name not in names]
        asked.append(([*names, *missing] if missing else None, False))

    def frame_of_arrays(at: int, groups: Any) -> "_pd.DataFrame":
        plan = plans[at]
        assert plan is not None
        return _pandas.from_numpy(groups, plan, whole=results[at]._is_whole(plan.range))

    def frame_of_batches(result: Result, batches: _drumlin.Batches) -> "_pd.DataFrame":
        table = pyarrow.table(batches)
        whole = result._is_whole(_pandas.range_index(table.schema.metadata or {}))
        return _pandas.from_arrow(table, whole=whole, options=options)

    made = zip(results, collect(results, asked, frame_of_arrays), strict=True)
    return [frame_of_batches(result, rows) if isinstance(rows, _drumlin.Batches) else rows for result, rows in made]
