"""The rows in which two versions of a table differ."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from drumlin import _drumlin
from drumlin._optional import have, need
from drumlin._results.rows import NoArray
from drumlin._values.polars import polars_frame

if TYPE_CHECKING:
    import pandas as _pd  # type: ignore[import-untyped, unused-ignore]
    import polars as _pl
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["Diff"]


class Diff(NoArray):
    """The rows in which two versions of a table differ; made by :meth:`Table.diff <drumlin.Table.diff>`. They are
    compared each time that rows are requested. Any library that takes Arrow streams can read it.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> people = store.table("people")
    >>> _ = people.create({"id": "int64", "name": "string"}, key=["id"])
    >>> _ = people.upsert({"id": [1, 2], "name": ["Ada", "Grace"]})
    >>> _ = store.snapshot("then")
    >>> _ = people.upsert({"id": [2], "name": ["Grace H."]})
    >>> [(row["_change"], row["name"]) for row in people.diff("then").to_arrow().to_pylist()]
    [('update_before', 'Grace'), ('update_after', 'Grace H.')]
    """

    __slots__ = ("_asked", "_first", "_table")

    def __init__(self, table: "_drumlin.Table", asked: tuple[Any, Any, list[str] | None, bool]) -> None:
        self._table, self._asked = table, asked
        # Errors in the arguments are raised now. This stream is the first that is returned: making it may give rows in
        # memory a version, after which retention may expire the versions that are compared.
        self._first: _drumlin.Stream | None = self._made()

    def to_arrow(self) -> "_pa.Table":
        """The rows as a pyarrow Table."""
        pyarrow, stream = need("pyarrow", "to_arrow()", "pyarrow"), self._stream()
        # Read here, so that an error is raised as its own exception.
        batches = [pyarrow.record_batch(batch) for batch in stream]
        return pyarrow.Table.from_batches(batches, schema=pyarrow.schema(stream.schema))

    def to_pandas(self) -> "_pd.DataFrame":
        """The rows as a pandas DataFrame."""
        need("pandas", "to_pandas()", "pandas")
        from drumlin import _pandas

        return _pandas.from_arrow(self.to_arrow(), whole=False, options={})

    def to_polars(self) -> "_pl.DataFrame":
        """The rows as a Polars DataFrame."""
        return polars_frame(self._stream())

    def batches(self) -> Iterator[Any]:
        """The batches, each read when it is asked for: pyarrow RecordBatches, or without pyarrow, objects with
        ``__arrow_c_array__``."""
        stream = self._stream()
        return map(need("pyarrow", "", "").record_batch, stream) if have("pyarrow") else iter(stream)

    def __iter__(self) -> Iterator[Any]:
        return self.batches()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._stream().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        since, until, columns, each_version = self._asked
        return f"Diff({self._table.path!r}, {since!r}, {until!r}, columns={columns!r}, each_version={each_version})"

    def _stream(self) -> "_drumlin.Stream":
        first, self._first = self._first, None
        return self._made() if first is None else first

    def _made(self) -> "_drumlin.Stream":
        return self._table.diff(*self._asked)
