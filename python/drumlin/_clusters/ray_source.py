"""Ray's classes for reading and writing; imported only if Ray is used."""

import functools
from collections.abc import Iterable
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import ray  # type: ignore[import-not-found, unused-ignore]
from ray.data import Datasink, Datasource  # type: ignore[import-not-found, unused-ignore]
from ray.data.block import BlockAccessor, BlockMetadata  # type: ignore[import-not-found, unused-ignore]
from ray.data.datasource import ReadTask  # type: ignore[import-not-found, unused-ignore]

from drumlin._clusters.jobs import Driver, bare, read_split, stage
from drumlin._engines.arrow_filter import columns_of, split
from drumlin._nouns.dataset import Dataset
from drumlin._processes.staged import Ticket

__all__ = ["DrumlinDatasink", "DrumlinDatasource", "schema_of"]

#: About how many bytes in memory one encoded byte becomes.
_EXPANSION = 3


class DrumlinDatasource(Datasource):  # type: ignore[misc, unused-ignore]
    """A data set, read split by split."""

    def __init__(self, driver: Driver, dataset: Dataset, split_bytes: int | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._projection_map = None
        self._driver, self._dataset, self._split_bytes = driver, dataset, split_bytes
        #: The splits of each plan; their leases live as long as this object and its copies.
        self._held: dict[Any, Any] = {}

    def get_name(self) -> str:
        return "Drumlin"

    def supports_projection_pushdown(self) -> bool:
        return True

    def supports_predicate_pushdown(self) -> bool:
        return True

    def estimate_inmemory_data_size(self) -> int:
        # Ray splits what tasks read into more blocks than there are tasks if it overestimates the size of the data.
        splits: list[Any] = list(self._plan()[0])
        return _EXPANSION * sum(int(one.bytes) for one in splits)

    def _plan(self) -> tuple[Any, Any, list[str] | None]:
        """The splits, the part of the predicate that is left for pyarrow, and the columns to return. Ray asks for them
        several times, with different numbers of blocks."""
        dataset, rest = self._dataset, None
        wanted = self._get_data_columns()
        if self._predicate_expr is not None:
            mine, rest = split(self._predicate_expr.to_pyarrow(), pa.schema(dataset.schema))
            for text in mine:
                dataset = dataset.where(text)
        selected = None
        if wanted is not None:
            # Blocks without columns have no rows, so one column is read to count them. Columns that pyarrow still needs
            # for filtering are read too.
            names = list(dataset.schema.names)
            selected = list(wanted) or names[-1:]
            needed = columns_of(rest) if rest is not None else []
            if needed is not None:
                dataset = dataset.select([name for name in names if name in selected or name in needed])
        key = (tuple(dataset._columns or ()), tuple(dataset._filters))
        if key not in self._held:
            resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call, unused-ignore]
            at_least = 2 * int(resources.get("CPU", 1))
            self._held[key] = dataset.splits(split_bytes=self._split_bytes, at_least=at_least)
        return self._held[key], rest, selected

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[Any]:
        splits, rest, selected = self._plan()
        options = self._driver.options
        schema = pa.schema(splits.schema)
        if selected is not None:
            schema = pa.schema([schema.field(name) for name in selected])
        tasks = []
        for one in splits:
            rows = one.rows if rest is None else None
            size = one.bytes * _EXPANSION
            metadata = BlockMetadata(num_rows=rows, size_bytes=size, exec_stats=None, input_files=None)
            read = functools.partial(read_split, bare(one), options, rest, selected)
            tasks.append(ReadTask(read, metadata, schema=schema, per_task_row_limit=per_task_row_limit))
        return tasks

    def __copy__(self) -> "DrumlinDatasource":
        # Ray copies it for push-down; the copies share the leases.
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __reduce__(self) -> Any:
        # Ray pickles plans to name them; only a driver reads with one.
        return (str, (f"drumlin {self._dataset.pattern}",))


class DrumlinDatasink(Datasink[list[bytes]]):  # type: ignore[misc, unused-ignore]
    """Stages blocks for one table of a job."""

    def __init__(self, ticket: Ticket, path: str, options: dict[str, str]) -> None:
        self._ticket, self._path, self._options = ticket, path, options
        self.tokens: list[bytes] = []

    def get_name(self) -> str:
        return "Drumlin"

    def write(self, blocks: Iterable[Any], ctx: Any) -> list[bytes]:
        tables = (BlockAccessor.for_block(block).to_arrow() for block in blocks)
        return stage(self._ticket, self._path, tables, ctx.task_idx, self._options)

    def on_write_complete(self, write_result: Any) -> None:
        self.tokens = [token for tokens in write_result.write_returns for token in tokens]


def schema_of(dataset: Any) -> Any:
    """The Arrow schema of a Ray Dataset."""
    schema = dataset.schema()
    found = getattr(schema, "base_schema", schema)
    if isinstance(found, pa.Schema):
        return found
    # Blocks are pandas frames.
    return pa.schema(list(zip(schema.names, schema.types, strict=True)))
