"""What a read gives."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from drumlin import _drumlin
from drumlin._optional import have, need

if TYPE_CHECKING:
    import pandas as _pd  # type: ignore[import-untyped, unused-ignore]
    import polars as _pl
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["Result"]


class Result:
    """Columns and rows of one version of a table, not read before they are asked for.

    It can be read any number of times, each time anew and of the same version, and it is an Arrow stream
    (``__arrow_c_stream__``): ``pyarrow.table(result)``, ``polars.DataFrame(result)``, a DuckDB query that names it, and
    :meth:`Store.write <drumlin.Store.write>` take it as it is.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> _ = store.write("numbers", {"n": [1, 2, 3], "s": ["a", "b", "c"]})
    >>> result = store.read("numbers", where="n > 1")
    >>> result
    Result('numbers', n: Int64, s: Utf8)
    >>> result.to_arrow().to_pydict()
    {'n': [2, 3], 's': ['b', 'c']}
    """

    __slots__ = ("_path", "_reading", "_selects", "_written_whole")

    def __init__(
        self,
        reading: _drumlin.Reading | _drumlin.Batches,
        path: str,
        *,
        selects: bool,
        written_whole: Callable[[int], bool],
    ) -> None:
        self._reading = reading
        self._path = path
        self._selects = selects
        self._written_whole = written_whole

    @property
    def path(self) -> str:
        """The path of the table."""
        return self._path

    @property
    def schema(self) -> _drumlin.Schema:
        """The columns: names and Arrow types. Nothing is read."""
        return self._reading.schema

    def to_arrow(self) -> "_pa.Table":
        """All rows as a pyarrow Table, decoded by all threads."""
        pyarrow = need("pyarrow", "to_arrow()", "pyarrow")
        return pyarrow.table(self._reading.collect())

    def to_pandas(self, **options: Any) -> "_pd.DataFrame":
        """All rows as a pandas DataFrame.

        A frame that was written by pandas comes back as it was: index, names and types. With ``columns=[...]`` the
        index comes along. A RangeIndex comes back as it was if the table has just the rows that one write wrote and
        the read takes them all; after appends and deletes, and with ``where``, ``head``, ``limit`` or ``tail``, rows
        are numbered from 0. In columns of Python objects, missing values come back as None.

        ``options`` go to ``pyarrow.Table.to_pandas``.

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
        from drumlin import _pandas

        pyarrow = need("pyarrow", "to_pandas()", "pandas")
        need("pandas", "to_pandas()", "pandas")
        schema = self._reading.schema
        names = schema.names
        missing = [name for name in _pandas.index_columns(schema.metadata) if name not in names]
        table = pyarrow.table(self._reading.collect([*names, *missing] if missing else None))
        written = _pandas.range_index(table.schema.metadata or {})
        whole = (
            not self._selects
            and written is not None
            and isinstance(self._reading, _drumlin.Reading)
            # Numbering from 0 says nothing about which rows they are.
            and (written == range(len(written)) or self._written_whole(self._reading.seq))
        )
        return _pandas.from_arrow(table, whole=whole, options=options)

    def to_polars(self) -> "_pl.DataFrame":
        """All rows as a Polars DataFrame, decoded by all threads.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> store.read("numbers").to_polars()["n"].sum()
        6
        """
        polars = need("polars", "to_polars()", "polars")
        return polars.DataFrame(self._reading.collect())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._reading.stream().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._reading.schema.__arrow_c_schema__()

    def __iter__(self) -> Iterator[Any]:
        """The batches, read as they are asked for: pyarrow RecordBatches, or without pyarrow objects with
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
