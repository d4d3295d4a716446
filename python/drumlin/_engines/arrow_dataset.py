"""Data sets as pyarrow datasets, for DuckDB, DataFusion and pyarrow itself.

What pyarrow would do in C++ with its own datasets is overridden here, with streams into which columns and filters are
pushed down. What the filter language cannot express exactly, pyarrow filters batch by batch.
"""

import contextlib
import inspect
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.dataset as pads  # type: ignore[import-untyped, unused-ignore]
import pyarrow.fs as fs  # type: ignore[import-untyped, unused-ignore]

from drumlin import _drumlin
from drumlin._arguments.checks import Params
from drumlin._arguments.checks import count as count_argument
from drumlin._arguments.expr import Expr
from drumlin._engines import arrow_filter
from drumlin._engines.names import renamed
from drumlin._errors import InvalidArgument
from drumlin._nouns.dataset import Again, Dataset

__all__ = ["ArrowDataset", "Fragment", "Scanner"]


class ArrowDataset(Dataset, pads.UnionDataset):  # type: ignore[misc, unused-ignore]
    """A Drumlin data set that is also a pyarrow dataset."""

    def _set(
        self,
        core: _drumlin.Dataset,
        store: Any,
        columns: list[str] | None,
        filters: list[str],
        limit: int | None,
        again: Again,
    ) -> None:
        super()._set(core, store, columns, filters, limit, again)
        # pyarrow cannot filter, sort, take or join views, in which Polars writes its strings.
        self._core = core = core.without_views() or core
        self._narrowed: tuple[ArrowDataset, ArrowDataset] | None = None
        #: Whether DuckDB was told that it reads decimals of fewer bits than it filters.
        self._reads_narrow = False
        self._rows: int | None = None
        self._schema: Any = pa.schema(core.stream(columns, filters, 0).schema)
        # C++ code that gets the data set does not call the methods below: it fails, instead of finding no rows.
        pads.UnionDataset.__init__(self, self._schema, [_unreadable(self._schema)])

    @property
    def children(self) -> list[Any]:
        """The tables one by one."""
        return self._tables([])

    def _tables(self, filters: list[str]) -> "list[ArrowDataset]":
        """The tables one by one, without those that the filters rule out."""
        if self._limit is not None:
            raise InvalidArgument("a data set with a limit has no tables of its own: take them before limit")
        tables = self._exact.split_by_table([*self._filters, *filters])
        return [self._changed(table) for table in tables]

    @property
    def schema(self) -> Any:
        """The columns, as a pyarrow Schema.

        DuckDB sees other types of the same values, which it has, reads faster, or for which it pushes down more:
        dictionaries, plain strings instead of views, wider half floats, decimals of as few bits as they need.
        """
        caller = _caller_in("duckdb._sources")
        if caller is None:
            return self._schema
        if reason := renamed(self._schema.names, "..."):
            raise InvalidArgument(f"a table has {reason}, or select one of them")
        self._tell_rows(caller.f_locals.get("self"))
        filtered, read = self._for_duckdb()
        return read._schema if self._asks_what_is_read(caller) else filtered._schema

    def _tell_rows(self, source: Any) -> None:
        """Tells DuckDB the number of rows, by which it orders joins. DuckDB asks its own source for the data set, whose
        method ``rows`` knows no number, so that is replaced; a version of DuckDB that does not ask ignores this."""
        if getattr(source, "obj", None) is self and callable(getattr(source, "rows", None)):
            with contextlib.suppress(AttributeError):
                source.rows = self._rows_at_most

    def _rows_at_most(self) -> int:
        if self._rows is None:
            self._rows = self._core.rows_at_most(self._filters, self._limit)
        return self._rows

    def _for_duckdb(self) -> "tuple[ArrowDataset, ArrowDataset]":
        """The types by which DuckDB decides which filters it pushes down, and those in which it reads the rows."""
        if self._narrowed is None:
            filtered = self._exact.for_engines()
            read = filtered.with_narrow_decimals() if hasattr(pa, "decimal64") else None
            self._narrowed = (self._changed(filtered), self._changed(read or filtered))
        return self._narrowed

    def _asks_what_is_read(self, caller: FrameType) -> bool:
        """Whether DuckDB asks for the types of what it reads, not for those by which it decides which filters it pushes
        down: none of decimals in fewer than 128 bits, which it reads twice as fast. Its own source asks for both by the
        one method, which is replaced. A version of DuckDB in which that cannot be done reads decimals
        of 128 bits."""
        source, asks = caller.f_locals.get("self"), caller.f_back
        if source is None or asks is None:
            return False
        if (caller.f_code.co_name, asks.f_code.co_name) != ("declared_schema", "__arrow_c_schema__"):
            return False
        filtered, read = (types._schema for types in self._for_duckdb())
        try:
            source.declared_schema = lambda: filtered
            source.__arrow_c_schema__ = lambda: read.__arrow_c_schema__()
        except AttributeError:
            return self._reads_narrow
        self._reads_narrow = True
        return True

    @property
    def partition_expression(self) -> Any:
        """A condition that holds for all rows: none in particular."""
        return _TRUE

    def scanner(
        self, columns: Any = None, filter: Any = None, batch_size: int | None = None, **options: Any
    ) -> "Scanner | pads.Scanner":
        """Reads ``columns`` (names, or a dict of names and expressions) of the rows for which ``filter`` is true."""
        if _caller_in("duckdb._sources"):
            filtered, read = self._for_duckdb()
            return Scanner(filtered, columns, filter, batch_size, shown=read if self._reads_narrow else None)
        scanner = Scanner(self, columns, filter, batch_size)
        # C++ code of pyarrow's functions, such as the one that writes datasets, only reads pyarrow's own Scanner.
        return pads.Scanner.from_batches(scanner.to_reader()) if _caller_in("pyarrow") else scanner

    def to_batches(self, columns: Any = None, filter: Any = None, **options: Any) -> Iterator[Any]:
        """The batches, as they are read."""
        return Scanner(self, columns, filter, options.get("batch_size")).to_batches()

    def to_table(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """All rows."""
        return Scanner(self, columns, filter, None).to_table()

    def head(self, num_rows: int, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """The first rows; no more is read than they need."""
        return Scanner(self, columns, filter, None).head(num_rows)

    def take(self, indices: Any, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """The rows at these positions."""
        return Scanner(self, columns, filter, None).take(indices)

    def count_rows(self, where: Any = None, *, params: Params | None = None, filter: Any = None, **options: Any) -> int:
        """The number of rows: see :meth:`Dataset.count_rows`. ``filter`` is a pyarrow expression, which can also be
        given as ``where``."""
        if isinstance(where, pads.Expression):
            where, filter = None, where if filter is None else where & filter
        if filter is None:
            return super().count_rows(where, params=params)
        of = self if where is None else self.where(where, params=params)
        return Scanner(of, None, filter, None).count_rows()

    def filter(self, expression: Any) -> "Dataset | pads.Dataset":
        """The same data set, limited further to the rows for which a pyarrow expression is true. If the filter language
        cannot express it exactly, pyarrow applies it to the rows in memory."""
        if not isinstance(expression, pads.Expression):
            return self.where(expression)
        if self._limit is None:
            mine, rest = arrow_filter.split(expression, self._schema_of_all())
            if rest is None:
                return self._changed(filters=[*self._filters, *mine])
        return _in_memory(self.to_table(filter=expression))

    def get_fragments(self, filter: Any = None) -> Iterator["Fragment"]:
        """The tables one by one. With ``filter``, only those that may have rows for which it is true; if there are
        none, one part without rows, because DataFusion can plan some joins only with at least one part."""
        if self._limit is not None:
            # A limit is for the rows of all tables together.
            return iter([Fragment(self)])
        mine = [] if filter is None else arrow_filter.split(filter, self._schema_of_all())[0]
        return map(Fragment, self._tables(mine) or [self.limit(0)])

    def replace_schema(self, schema: Any) -> Any:
        """Rows in memory with another schema."""
        return _in_memory(self.to_table().cast(schema))

    def sort_by(self, sorting: Any, **options: Any) -> Any:
        """Rows in memory, sorted."""
        return _in_memory(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: Any, *arguments: Any, **options: Any) -> Any:
        """Rows in memory, joined with those of another data set."""
        right = _in_memory(right_dataset.to_table())
        return _in_memory(self.to_table()).join(right, *arguments, **options)

    def join_asof(self, right: Any, *arguments: Any, **options: Any) -> Any:
        """Joined with the nearest rows of another data set of drumlin, as :meth:`Dataset.join_asof
        <drumlin.Dataset.join_asof>` says; or rows in memory, in the form of pyarrow: with one of pyarrow, or with
        arguments in its order."""
        if not arguments and (isinstance(right, Dataset) or not hasattr(right, "to_table")):
            ours: Any = super()
            return ours.join_asof(right, **options)
        right = _in_memory((right).to_table())
        return _in_memory(self.to_table()).join_asof(right, *arguments, **options)

    def __reduce__(self) -> Any:
        return Dataset.__reduce__(self)

    def _schema_of_all(self) -> Any:
        """All columns, including those that are not selected, since filters may use them, in the types that filters
        use."""
        return pa.schema(self._core.filter_schema)


_TRUE = pa.compute.scalar(True)


def _caller_in(package: str) -> FrameType | None:
    """The frame that calls the current method, if its module is in ``package``. Calling C code has no module."""
    caller = inspect.currentframe()
    for _ in range(2):
        caller = None if caller is None else caller.f_back
    module = "" if caller is None else str(caller.f_globals.get("__name__"))
    return caller if module == package or module.startswith(f"{package}.") else None


def _unreadable(schema: Any) -> Any:
    """A pyarrow dataset that cannot be read, with a message that says why."""
    fragment = pads.IpcFileFormat().make_fragment(_TOLD, fs.LocalFileSystem())
    return pads.FileSystemDataset([fragment], schema, pads.IpcFileFormat(), fs.LocalFileSystem())


_TOLD = "a data set of drumlin is read by its own methods: give pyarrow its scanner(), or its to_table()"


def _with_one_dictionary(table: Any) -> Any:
    """Rows with one dictionary for each column, instead of one for each row group, which pyarrow cannot sort or
    join."""
    if not any(pa.types.is_dictionary(field.type) for field in table.schema):
        return table
    batches = [batch for batch in table.to_batches() if batch.num_rows > 0]
    return pa.Table.from_batches(batches, table.schema).unify_dictionaries()


def _in_memory(table: Any) -> Any:
    return pads.InMemoryDataset(table, table.schema)


class Scanner:
    """Selected columns and rows of a data set, to be read any number of times, like pyarrow's Scanner."""

    __slots__ = ("_batch_size", "_columns", "_dataset", "_filter", "_keys", "_mine", "_projected", "_rest", "_shown")

    def __init__(
        self,
        dataset: ArrowDataset,
        columns: Any,
        filter: Any,
        batch_size: int | None,
        *,
        for_datafusion: bool = False,
        shown: ArrowDataset | None = None,
    ) -> None:
        self._dataset = dataset
        #: The same data set in the types in which rows are handed out, though they are filtered in those of the other.
        self._shown = shown or dataset
        #: Columns of integers that are compared in place of floats.
        self._keys: dict[str, str] = {}
        self._batch_size = count_argument(batch_size, "batch_size")
        if self._batch_size == 0:
            raise InvalidArgument("batch_size=0; expected 1 or more")
        if isinstance(filter, Expr):
            filter = str(filter)
        elif isinstance(filter, pa.Scalar):
            # This is how DataFusion passes a filter that is true for no row.
            filter = pa.compute.scalar(filter)
        self._filter = filter
        self._mine: list[str] = []
        self._rest: Any = None
        if isinstance(filter, str):
            dataset._unlimited("filter")
            self._mine = [filter]
        elif filter is not None and for_datafusion:
            # With a limit, it is not known before reading which rows the filter would keep.
            push, schema = dataset._limit is None, dataset._schema_of_all()
            self._mine, self._rest, self._keys = arrow_filter.split_for_datafusion(filter, schema, push=push)
        elif filter is not None and dataset._limit is None:
            self._mine, self._rest = arrow_filter.split(filter, dataset._schema_of_all())
        elif filter is not None:
            self._rest = filter
        # We project names; pyarrow projects expressions.
        self._projected: Any = columns if isinstance(columns, dict) else None
        self._columns = dataset._columns if columns is None or self._projected is not None else list(columns)
        if self._columns is not None and self._projected is None:
            for name in self._columns:
                if name not in dataset.schema.names:
                    raise InvalidArgument(f"column {name!r} does not exist; the columns are {dataset.schema.names}")

    @property
    def dataset_schema(self) -> Any:
        """The columns of the data set."""
        return self._dataset.schema

    @property
    def projected_schema(self) -> Any:
        """The columns that are read."""
        if self._projected is not None:
            return self._by_pyarrow(pa.RecordBatchReader.from_batches(self._dataset.schema, [])).projected_schema
        return pa.schema(self._stream(limit=0).schema)

    def to_reader(self) -> Any:
        """The rows, as a reader that reads each batch when it is asked for."""
        if self._projected is None and self._rest is None:
            reader = pa.RecordBatchReader.from_stream(self._stream())
        else:
            reader = self._filtered()
        size = self._batch_size
        if size is None:
            return reader
        cut = (batch.slice(at, size) for batch in reader for at in range(0, batch.num_rows, size))
        return pa.RecordBatchReader.from_batches(reader.schema, cut)

    def to_batches(self) -> Iterator[Any]:
        """The batches, as they are read."""
        return iter(self.to_reader())

    def scan_batches(self) -> Iterator[Any]:
        """The batches, each with its fragment."""
        for fragment in self._dataset.get_fragments():
            for batch in fragment.scanner(columns=self._projected or self._columns, filter=self._filter).to_batches():
                yield pads.TaggedRecordBatch(batch, fragment)

    def to_table(self) -> Any:
        """All rows, decoded by all threads."""
        if self._projected is not None or self._rest is not None:
            return _with_one_dictionary(self.to_reader().read_all())
        of = self._dataset
        return _with_one_dictionary(pa.table(of._core.collect(self._columns, [*of._filters, *self._mine], of._limit)))

    def head(self, num_rows: int) -> Any:
        """The first rows; no more is read than they need."""
        wanted = count_argument(num_rows, "num_rows") or 0
        if self._projected is None and self._rest is None:
            return _with_one_dictionary(pa.RecordBatchReader.from_stream(self._stream(limit=wanted)).read_all())
        batches, left = [], wanted
        with self.to_reader() as reader:
            schema = reader.schema
            while left > 0 and (batch := next(reader, None)) is not None:
                batches.append(batch.slice(0, left))
                left -= batches[-1].num_rows
        return _with_one_dictionary(pa.Table.from_batches(batches, schema))

    def take(self, indices: Any) -> Any:
        """The rows at these positions, counted from 0."""
        places = pa.array(indices, pa.int64()) if not isinstance(indices, (pa.Array, pa.ChunkedArray)) else indices
        if len(places) == 0:
            return self.head(0)
        last = pa.compute.max(places).as_py()
        return self.head(last + 1).take(places)

    def count_rows(self) -> int:
        """The number of rows."""
        if self._rest is not None:
            return sum(batch.num_rows for batch in self._by_pyarrow(self._source(counts=True), counts=True).to_reader())
        of = self._dataset
        return of._core.count_rows([*of._filters, *self._mine], of._limit)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def _stream(self, limit: int | None = None) -> "_drumlin.Stream":
        return self._shown._stream(self._columns, self._mine, limit)

    def _source(self, *, counts: bool = False) -> Any:
        """The source that pyarrow filters and projects."""
        of = self._dataset
        if self._projected is not None:
            shown = arrow_filter.columns_of_all(self._projected.values())
        else:
            shown = [] if counts else self.dataset_schema.names if self._columns is None else self._columns
        needed = [] if self._rest is None else arrow_filter.columns_of(self._rest)
        columns = of._columns
        if shown is not None and needed is not None:
            needed = [name for name in needed if name not in self._keys]
            columns = list(dict.fromkeys([*shown, *needed, *self._keys.values()]))
        source = pa.RecordBatchReader.from_stream(of._stream(columns, self._mine))
        if not self._keys:
            return source
        prepared = (arrow_filter.with_order_keys(batch, self._keys) for batch in source)
        empty = pa.RecordBatch.from_pylist([], source.schema)
        return pa.RecordBatchReader.from_batches(arrow_filter.with_order_keys(empty, self._keys).schema, prepared)

    def _by_pyarrow(self, source: Any, *, counts: bool = False) -> Any:
        shown = self._columns if self._columns is not None else self.dataset_schema.names
        columns = [] if counts else self._projected if self._projected is not None else shown
        return pads.Scanner.from_batches(source, columns=columns, filter=self._rest)

    def _filtered(self) -> Any:
        """What pyarrow has filtered and projected, in the types of the data set."""
        reader = self._by_pyarrow(self._source()).to_reader()
        if self._projected is not None:
            return reader
        wanted = pa.schema(self._stream(limit=0).schema)
        if reader.schema.equals(wanted):
            return reader
        return pa.RecordBatchReader.from_batches(wanted, (batch.cast(wanted) for batch in reader))


class Fragment:
    """One table of a data set, like pyarrow's Fragment, which is a part of a dataset."""

    __slots__ = ("_dataset",)

    def __init__(self, dataset: ArrowDataset) -> None:
        self._dataset = dataset

    @property
    def path(self) -> str:
        """The path of the table."""
        return next(iter(self._dataset.paths), "")

    @property
    def physical_schema(self) -> Any:
        """The columns."""
        return self._dataset.schema

    @property
    def partition_expression(self) -> Any:
        """A condition that holds for all of its rows."""
        return self._dataset.partition_expression

    def scanner(self, schema: Any = None, **options: Any) -> Any:
        """Reads selected columns and rows. ``schema``, the common schema of all parts of a data set, is ignored, since
        it is also the schema of each part."""
        columns, filter, batch_size = (options.get(name) for name in ("columns", "filter", "batch_size"))
        # Only DataFusion passes a schema.
        return Scanner(self._dataset, columns, filter, batch_size, for_datafusion=schema is not None)

    def to_batches(self, **options: Any) -> Iterator[Any]:
        """The batches, as they are read."""
        return iter(self.scanner(**options).to_batches())

    def to_table(self, **options: Any) -> Any:
        """All rows."""
        return self.scanner(**options).to_table()

    def head(self, num_rows: int, **options: Any) -> Any:
        """The first rows."""
        return self.scanner(**options).head(num_rows)

    def take(self, indices: Any, **options: Any) -> Any:
        """The rows at these positions."""
        return self.scanner(**options).take(indices)

    def count_rows(self, **options: Any) -> int:
        """The number of rows."""
        return int(self.scanner(**options).count_rows())

    def __repr__(self) -> str:
        return f"Fragment({self.path!r})"
