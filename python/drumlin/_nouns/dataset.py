"""Data sets: one table, or all tables that match a pattern, read as one."""

import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from drumlin import _drumlin
from drumlin._arguments.checks import FilterLike, Params, column_names, count
from drumlin._arguments.named import names_arguments
from drumlin._drumlin import DatasetPlan
from drumlin._engines.predicates import predicate
from drumlin._errors import InvalidArgument, SchemaMismatch
from drumlin._habits import Habits
from drumlin._optional import have, need
from drumlin._processes.places import Address, Addressed, address_of
from drumlin._processes.splits import Splits, splits_of
from drumlin._results.joins import Joinable
from drumlin._results.result import Groupable
from drumlin._results.rows import Rows
from drumlin._values.polars import polars_frame

if TYPE_CHECKING:
    import pandas as _pd  # type: ignore[import-untyped, unused-ignore]
    import polars as _pl
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["Dataset"]

_D = TypeVar("_D", bound="Dataset")
#: Makes the data set again from a pickle: the store's address, the core's description, columns, filters and limit.
Again: TypeAlias = Callable[[Address, bytes, list[str] | None, list[str], int | None], "Dataset"]


@names_arguments()
class Dataset(Rows, Joinable, Groupable, Addressed, Habits):
    """A table, or all tables that match a pattern, as of one instant; made by :meth:`Store.scan <drumlin.Store.scan>`.
    No data is read until rows are requested, and it can be read any number of times.

    It is an Arrow stream and, if pyarrow is installed, a :class:`pyarrow.dataset.Dataset`: DuckDB, Polars, DataFusion
    and pyarrow read only the columns that they need, and only row groups that may have matching rows.

    It can be pickled: another process that opens the same store reads the same rows. The pickle has no secrets; a
    bucket's credentials come from the environment of the process. ``copy.copy`` returns the same object.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> _ = store.write_many({"prices/AAPL": {"day": [1, 2]}, "prices/MSFT": {"day": [2, 3]}})
    >>> ds = store.scan("prices/*", path_columns=["symbol"], where="day > 1")
    >>> ds.to_arrow().to_pydict()
    {'day': [2, 2, 3], 'symbol': ['AAPL', 'MSFT', 'MSFT']}
    >>> ds.count_rows()
    3
    """

    _again: Again

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("a data set is made with store.scan(pattern)")

    def _set(
        self,
        core: _drumlin.Dataset,
        store: Any,
        columns: list[str] | None,
        filters: list[str],
        limit: int | None,
        again: Again,
    ) -> None:
        self._core = self._exact = core
        self._store = store
        self._columns, self._filters, self._limit = columns, filters, limit
        self._again = again

    @property
    def pattern(self) -> str:
        """The path or pattern."""
        return self._core.pattern

    @property
    def paths(self) -> list[str]:
        """The paths of the tables, in the order of their rows."""
        return self._core.paths

    @property
    def path_columns(self) -> list[str]:
        """The columns that hold names from the tables' paths."""
        return self._core.path_columns

    @property
    def schema(self) -> Any:
        """The columns: a pyarrow Schema if pyarrow is installed, otherwise a :class:`drumlin.Schema`."""
        return self._stream(self._columns, limit=0).schema

    @property
    def versions(self) -> dict[str, int | None]:
        """The version that is read of each table, by path; None for a table that the transaction has written. See
        :attr:`Result.version <drumlin.Result.version>`. Reads no data.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a": {"n": [1]}, "b": {"n": [1, 2]}}, metadata="first")
        >>> _ = store.append("b", {"n": [3]})
        >>> ds = store.scan("*")
        >>> ds.versions, ds.metadata, ds.num_rows
        ({'a': 0, 'b': 1}, {'a': 'first', 'b': None}, 4)
        """
        return {path: None if told is None else told[0] for path, told in self._told()}

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of those versions, by path, as it was when the data set was made; None where there is none.
        Reads no data."""
        return {path: None if told is None or told[1] is None else json.loads(told[1]) for path, told in self._told()}

    @property
    def num_rows(self) -> int:
        """The number of rows: :meth:`count_rows`, at the same cost."""
        return self.count_rows()

    def _told(self) -> Iterable[tuple[str, tuple[int, str | None] | None]]:
        return zip(self._core.paths, self._core.versions, strict=True)

    def where(self, where: FilterLike, *, params: Params | None = None) -> Self:
        """The same data set, limited further to the rows for which ``where`` is true.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> store.scan("numbers").where("n > 1").where(drumlin.col("n") < 3).to_arrow()["n"].to_pylist()
        [2]
        """
        text = predicate(where, lambda: self, params)
        if text is None:
            raise InvalidArgument("where is None; expected a filter")
        self._unlimited("where")
        return self._changed(filters=[*self._filters, text])

    def select(self, columns: Iterable[Any] | str) -> Self:
        """The same data set with only ``columns``, in that order."""
        chosen = column_names(columns) or []
        self._core.check_readable(chosen)
        self._stream(chosen, limit=0)
        return self._changed(columns=chosen)

    def limit(self, rows: int) -> Self:
        """The same data set, limited to the first ``rows`` rows."""
        wanted = count(rows, "rows")
        if wanted is None:
            raise TypeError("rows must be a number, not None")
        return self._changed(limit=wanted if self._limit is None else min(wanted, self._limit))

    def to_arrow(self) -> "_pa.Table":
        """All rows as a pyarrow Table, decoded by all threads."""
        pyarrow = need("pyarrow", "to_arrow()", "pyarrow")
        return pyarrow.table(self._core.collect(self._columns, self._filters, self._limit))

    def _all(self) -> _drumlin.Batches:
        return self._exact.collect(self._columns, self._filters, self._limit)

    def to_pandas(self, **options: Any) -> "_pd.DataFrame":
        """All rows as a pandas DataFrame. An index that all tables share becomes the index; without one, rows are
        numbered from 0. ``options`` are passed to ``pyarrow.Table.to_pandas``."""
        need("pandas", "to_pandas()", "pandas")
        from drumlin import _pandas

        return _pandas.from_arrow(self.to_arrow(), whole=False, options=options)

    def to_polars(self) -> "_pl.DataFrame":
        """All rows as a Polars DataFrame, decoded by all threads."""
        return polars_frame(self._exact.collect(self._columns, self._filters, self._limit))

    def to_lazy(self) -> "_pl.LazyFrame":
        """A Polars LazyFrame. A query on it reads only the columns that it needs, and only row groups that may have
        matching rows.

        >>> import drumlin, polars
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3], "s": ["a", "b", "c"]})
        >>> store.scan("numbers").to_lazy().filter(polars.col("n") > 2).select("s").collect().item()
        'c'
        """
        from drumlin._engines.lazy import lazy_frame

        return lazy_frame(self)

    def count_rows(self, where: FilterLike | None = None, *, params: Params | None = None) -> int:
        """The number of rows. Without a filter, or where statistics decide it, no rows are read.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> store.scan("numbers").count_rows("n > 1")
        2
        """
        text = predicate(where, lambda: self, params)
        if text is not None:
            self._unlimited("where")
        return self._core.count_rows(self._filters + ([] if text is None else [text]), self._limit)

    def explain(self) -> DatasetPlan:
        """The cost of a read, and what the filter saves: tables, row groups and bytes. Reads no rows.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"prices/AAPL": {"day": [1, 2]}, "prices/MSFT": {"day": [2, 3]}})
        >>> plan = store.scan("prices/*", path_columns=["symbol"], where="symbol = 'MSFT'").explain()
        >>> plan.tables, plan.pruned_tables
        (['prices/MSFT'], ['prices/AAPL'])
        """
        return self._core.plan(self._columns, self._filters)

    def splits(
        self, *, split_bytes: int | None = None, at_least: int | None = None, life: dt.timedelta | None = None
    ) -> Splits:
        """Parts for other processes, each of about ``split_bytes`` encoded bytes (default 128 MiB; less if there would
        be fewer than ``at_least``). Each part is small, can be pickled, and is read without the log and the catalog.
        Together, in order, they are the rows of the data set, including rows in memory. They hold a lease, which this
        process renews, so that nothing that they show is deleted; if this process dies, the lease ends after ``life``
        (default 10 minutes). The store must be where other processes can reach it: in a folder or a bucket.

        >>> import drumlin, tempfile
        >>> store = drumlin.open(tempfile.mkdtemp() + "/store")
        >>> _ = store.write("t", {"n": [1, 2, 3]})
        >>> with store.scan("t", where="n > 1").splits() as splits:
        ...     [split.to_arrow()["n"].to_pylist() for split in splits]
        [[2, 3]]
        """
        return splits_of(self, self.schema, count(split_bytes, "split_bytes"), count(at_least, "at_least"), life)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._stream(self._columns).__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Any]:
        """The batches, each read when it is asked for: pyarrow RecordBatches, or without pyarrow, objects with
        ``__arrow_c_array__``."""
        stream = self._stream(self._columns)
        if not have("pyarrow"):
            return iter(stream)
        return map(need("pyarrow", "", "").record_batch, stream)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {type_}" for name, type_ in zip(*self._described_columns(), strict=True))
        tables = len(self.paths)
        return f"Dataset({self.pattern!r}, {tables} {'table' if tables == 1 else 'tables'}, {columns})"

    def _reduced(self) -> Any:
        described = self._core.describe()
        return (self._again, (address_of(self._store), described, self._columns, self._filters, self._limit))

    def _described_columns(self) -> tuple[list[str], list[str]]:
        """The names of the columns, and their types as text. Reads no data."""
        schema = self._core.schema
        types = dict(zip(schema.names, schema.types, strict=True))
        names = schema.names if self._columns is None else [name for name in self._columns if name in types]
        return names, [types[name] for name in names]

    def _to_group(self, what: str, where: FilterLike | None) -> "Dataset":
        self._unlimited(what)
        # If tables have incompatible columns, others must be selected before they can be scanned at all.
        if self._columns is not None and self._is_readable():
            raise InvalidArgument(f"{what} comes before select: it reads the columns that it needs")
        return self if where is None else self.where(where)

    def _is_readable(self) -> bool:
        """Whether the columns of all tables can be read together."""
        try:
            self._core.check_readable(None)
        except SchemaMismatch:
            return False
        return True

    def _changed(self, core: _drumlin.Dataset | None = None, **changes: Any) -> Self:
        """The same data set with other tables or other read settings."""
        state = {"columns": self._columns, "filters": self._filters, "limit": self._limit} | changes
        return made(type(self), self._exact if core is None else core, self._store, again=self._again, **state)


def made(
    kind: type[_D],
    core: _drumlin.Dataset,
    store: Any,
    columns: list[str] | None,
    filters: list[str],
    limit: int | None,
    again: Again,
) -> _D:
    """A new data set of the class ``kind``."""
    dataset = kind.__new__(kind)
    dataset._set(core, store, columns, filters, limit, again)
    return dataset
