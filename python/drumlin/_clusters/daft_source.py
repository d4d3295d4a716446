"""Daft's classes for reading and writing; imported only if Daft is used."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import daft  # type: ignore[import-not-found, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
from daft.expressions import ExpressionVisitor  # type: ignore[import-not-found, unused-ignore]
from daft.io import DataSink, DataSource, DataSourceTask  # type: ignore[import-not-found, unused-ignore]
from daft.io.sink import WriteResult  # type: ignore[import-not-found, unused-ignore]
from daft.recordbatch import MicroPartition, RecordBatch  # type: ignore[import-not-found, unused-ignore]

from drumlin._clusters.jobs import Driver, bare
from drumlin._engines.arrow_filter import columns_of, split
from drumlin._nouns.dataset import Dataset
from drumlin._processes.staged import Ticket

__all__ = ["DrumlinSink", "DrumlinSource"]


class DrumlinSource(DataSource):  # type: ignore[misc, unused-ignore]
    """A data set, read split by split."""

    def __init__(self, driver: Driver, dataset: Dataset, split_bytes: int | None) -> None:
        self._driver, self._dataset, self._split_bytes = driver, dataset, split_bytes
        self._schema = daft.Schema.from_pyarrow_schema(_known(pa.schema(dataset.schema)))
        #: The splits of each plan; their leases live as long as this object.
        self._held: list[Any] = []

    @property
    def name(self) -> str:
        return "drumlin"

    @property
    def schema(self) -> Any:
        return self._schema

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[Any]:
        dataset, columns = self._dataset, pushdowns.columns
        if pushdowns.filters is not None:
            dataset = _filtered(dataset, pushdowns.filters)
        names = list(self._dataset.schema.names)
        if columns is not None:
            wanted = set(columns) | pushdowns.filter_required_column_names()
            # Rows without columns are counted by reading one column.
            columns = [name for name in names if name in wanted] or names[-1:]
            dataset = dataset.select(columns)
        if pushdowns.limit is not None and pushdowns.filters is None:
            dataset = dataset.limit(pushdowns.limit)
        splits = dataset.splits(split_bytes=self._split_bytes)
        self._held.append(splits)
        schema = daft.Schema.from_pyarrow_schema(_known(pa.schema(splits.schema)))
        for one in splits:
            yield _Task(bare(one), self._driver.options, schema, pushdowns.filters)


def _known(schema: Any) -> Any:
    """A schema in types that Daft has: without dictionaries and views."""
    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}

    def known(data_type: Any) -> Any:
        return known(data_type.value_type) if pa.types.is_dictionary(data_type) else plain.get(data_type, data_type)

    return pa.schema([field.with_type(known(field.type)) for field in schema], schema.metadata)


def _filtered(dataset: Dataset, expression: Any) -> Dataset:
    """The data set with filters that hold for every row that Daft's filter keeps; Daft applies its own filter too. Daft
    compares floats differently, and passes nanoseconds as microseconds."""
    try:
        arrow = expression.to_arrow_expr()
        if _Nanoseconds().visit(expression):
            return dataset
    except Exception:
        return dataset
    schema = pa.schema(dataset.schema)
    names = columns_of(arrow)
    if names is None or any(_compares_otherwise(schema.field(name).type) for name in names):
        return dataset
    for text in split(arrow, schema)[0]:
        dataset = dataset.where(text)
    return dataset


class _Nanoseconds(ExpressionVisitor[bool]):  # type: ignore[misc, unused-ignore]
    """Whether an expression has a literal with nanoseconds, which Daft's translation cuts to microseconds."""

    def __init__(self) -> None:
        self._visited: Any = None

    def visit(self, expr: Any) -> bool:
        self._visited = expr
        return bool(super().visit(expr))

    def visit_(self, name: str, args: Any) -> bool:
        return any(self.visit_(name, arg) if isinstance(arg, list) else self.visit(arg) for arg in args)

    def visit_col(self, name: str) -> bool:
        return False

    def visit_lit(self, value: Any) -> bool:
        literal = daft.from_pydict({"row": [0]}).select(self._visited.alias("literal"))
        return "ns" in str(literal.schema().to_pyarrow_schema().field("literal").type)

    def visit_alias(self, expr: Any, alias: str) -> bool:
        return self.visit(expr)

    def visit_cast(self, expr: Any, dtype: Any) -> bool:
        return self.visit(expr)

    def visit_function(self, name: str, args: Any) -> bool:
        return self.visit_(name, args)

    def visit_coalesce(self, args: Any) -> bool:
        return self.visit_("coalesce", args)


def _compares_otherwise(data_type: Any) -> bool:
    """Whether Daft compares values of a type differently: floats, and nanoseconds with microseconds."""
    if pa.types.is_dictionary(data_type):
        return _compares_otherwise(data_type.value_type)
    if pa.types.is_floating(data_type) or pa.types.is_nested(data_type):
        return True
    return getattr(data_type, "unit", None) == "ns"


class _Task(DataSourceTask):  # type: ignore[misc, unused-ignore]
    """Reads one split."""

    def __init__(self, one: Any, options: dict[str, str], schema: Any, predicate: Any) -> None:
        self._split, self._options, self._schema, self._filter = one, options, schema, predicate

    @property
    def schema(self) -> Any:
        return self._schema

    async def read(self) -> AsyncIterator[Any]:
        for batch in self._split.batches(storage_options=self._options):
            batch = batch.cast(_known(batch.schema))
            found = RecordBatch.from_arrow_record_batches([batch], batch.schema)
            yield found if self._filter is None else found.filter([self._filter])


class DrumlinSink(DataSink[bytes]):  # type: ignore[misc, unused-ignore]
    """Stages the rows of tasks for one table of a job."""

    def __init__(self, ticket: Ticket, path: str, options: dict[str, str]) -> None:
        self._ticket, self._path, self._options = ticket, path, options

    def name(self) -> str:
        return "drumlin"

    def schema(self) -> Any:
        return daft.Schema.from_pyarrow_schema(pa.schema([("token", pa.binary())]))

    def write(self, micropartitions: Iterator[Any]) -> Iterator[Any]:
        for partition in micropartitions:
            table = partition.to_arrow()
            if table.num_rows > 0:
                token = self._ticket.stage(self._path, table, storage_options=self._options)
                yield WriteResult(result=token._core.encode(), bytes_written=token.bytes, rows_written=token.rows)

    def finalize(self, write_results: list[Any]) -> Any:
        tokens = pa.table({"token": pa.array([result.result for result in write_results], pa.binary())})
        return MicroPartition.from_arrow(tokens)
