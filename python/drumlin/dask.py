"""Reading and writing tables with Dask: ``pip install 'drumlin[dask]'``.

>>> import drumlin, drumlin.dask, tempfile
>>> store = drumlin.open(tempfile.mkdtemp() + "/store")
>>> _ = store.write("t", {"n": [1, 2, 3]})
>>> frame = drumlin.dask.read(store, "t")
>>> int(frame["n"].sum().compute(scheduler="sync"))
6
"""

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from drumlin._arguments.checks import AsOf
from drumlin._arguments.expr import Expr
from drumlin._clusters.jobs import Driver, stage, write_job
from drumlin._drumlin import StagedReport
from drumlin._errors import InvalidArgument
from drumlin._nouns.store import Store
from drumlin._optional import need
from drumlin._processes.splits import Split, Splits
from drumlin._processes.staged import Ticket
from drumlin.tree import PatternLike

if TYPE_CHECKING:
    import dask.dataframe as _dd  # type: ignore[import-not-found, unused-ignore]


__all__ = ["read", "write"]


class _Read:
    """Reads a split on a worker. In the driver, it holds the lease."""

    #: Dask's name for the task.
    __name__ = "read-drumlin"

    def __init__(self, options: Mapping[str, str], index: str | None, kept: list[str], splits: Splits | None) -> None:
        self._options, self._index, self._kept, self._splits = dict(options), index, kept, splits

    def __call__(self, split: Split, columns: list[str] | None = None) -> Any:
        # The columns of the index are always read.
        wanted = None if columns is None else [*self._kept, *(name for name in columns if name not in self._kept)]
        frame = _indexed(split.to_pandas(columns=wanted, storage_options=self._options), self._index)
        return frame if columns is None else frame[columns]

    def __reduce__(self) -> Any:
        return (_Read, (self._options, self._index, self._kept, None))

    def __dask_tokenize__(self) -> Any:
        return (type(self).__name__, self._index)


def read(
    store: Store | str,
    path: PatternLike,
    *,
    columns: Iterable[Any] | None = None,
    where: str | Expr | None = None,
    as_of: AsOf | None = None,
    path_columns: Iterable[str] = (),
    index: str | None = None,
    split_bytes: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "_dd.DataFrame":
    """Reads the table at ``path``, or all tables that match a pattern, as a Dask DataFrame with one partition for each
    split of about ``split_bytes`` (default 128 MiB, encoded); what it shows is kept as long as it lives. Columns that
    Dask selects are pushed down. Dask does not push filters down: give ``where``.

    ``index`` is the column by which a table is sorted. It becomes the index, with known divisions if statistics provide
    them (no nulls, no rows in memory, no value in two partitions).
    """
    frames = need("dask.dataframe", "drumlin.dask", "dask")
    driver = Driver(store, storage_options, "write")
    dataset = driver.store.scan(path, as_of=as_of, columns=columns, where=where, path_columns=path_columns)
    if index is not None and index not in dataset.schema.names:
        raise InvalidArgument(f"index={index!r} is not a column; the columns are {list(dataset.schema.names)}")
    splits = dataset.splits(split_bytes=split_bytes)
    meta = dataset.limit(0).to_pandas()
    shown = {str(name) for name in meta.columns} - {index}
    kept = [name for name in dataset.schema.names if name not in shown]
    divisions = None
    if index is not None:
        divisions = _divisions(splits, dataset, index)
        meta = _indexed(meta, index)
    if len(splits) == 0:
        empty: _dd.DataFrame = frames.from_pandas(meta, npartitions=1)
        return empty
    known = {} if divisions is None else {"divisions": divisions}
    found: _dd.DataFrame = frames.from_map(
        _Read(driver.options, index, kept, splits), list(splits), meta=meta, enforce_metadata=False, **known
    )
    return found


def _indexed(frame: Any, index: str | None) -> Any:
    """The frame with the column ``index`` as its index, which it may already be."""
    if index is None or list(frame.index.names) == [index]:
        return frame
    return (frame if index in frame.columns else frame.reset_index()).set_index(index)


def _divisions(splits: Splits, dataset: Any, index: str) -> tuple[Any, ...] | None:
    """The smallest value of each partition, and the largest of the last; None if they are not known."""
    pa = need("pyarrow", "drumlin.dask", "pyarrow")
    [*paths] = dataset.paths
    if len(paths) != 1 or dataset._store.tables().table(paths[0]).order()[0] not in ([index], (index,)):
        return None
    bounds = [split._core.bounds for split in splits]
    if not bounds or any(bound is None for bound in bounds):
        return None
    if any(before[1] >= after[0] for before, after in itertools.pairwise(bounds)):  # type: ignore[index]
        return None
    data_type = pa.schema(dataset.schema).field(index).type
    values = [bound[0] for bound in bounds] + [bounds[-1][1]]  # type: ignore[index]
    if pa.types.is_decimal(data_type) or pa.types.is_dictionary(data_type):
        return None
    if isinstance(values[0], bytes):
        try:
            texts = [value.decode() for value in values]
        except UnicodeDecodeError:
            return None
        return tuple(texts) if pa.types.is_string(data_type) or pa.types.is_large_string(data_type) else None
    if pa.types.is_temporal(data_type):
        width = pa.int32() if data_type.bit_width == 32 else pa.int64()
        return tuple(pa.array(values, width).cast(data_type).to_pandas())
    return tuple(values)


def write(
    frame: "_dd.DataFrame",
    store: Store | str,
    path: str,
    *,
    mode: Literal["append", "overwrite", "upsert"] = "append",
    sort: Iterable[str] = (),
    job: str | None = None,
    expected_version: int | None = None,
    metadata: Any = None,
    storage_options: Mapping[str, str] | None = None,
    compute: Mapping[str, Any] | None = None,
) -> StagedReport:
    """Writes a Dask DataFrame to the table at ``path``: each partition is staged by a task, and one commit at the end
    makes all of them part of the table, in order, or none. Indexes are not written: reset them first. ``compute`` has
    arguments for ``dask.compute``, such as the scheduler. For ``job``, see :func:`drumlin.ray.write`.
    """
    dask = need("dask", "drumlin.dask", "dask")
    pa = need("pyarrow", "drumlin.dask", "pyarrow")

    def schema() -> Any:
        return pa.Schema.from_pandas(_plain(frame._meta_nonempty), preserve_index=False).remove_metadata()

    def stage_all(ticket: Ticket, given: dict[str, str]) -> list[bytes]:
        parts = frame.to_delayed()  # type: ignore[no-untyped-call, unused-ignore]
        tasks = [dask.delayed(_stage)(part, ticket, path, at, given) for at, part in enumerate(parts)]
        return [token for tokens in dask.compute(*tasks, **(compute or {})) for token in tokens]

    return write_job(
        store,
        path,
        schema,
        stage_all,
        mode=mode,
        sort=sort,
        job=job,
        expected_version=expected_version,
        metadata=metadata,
        storage_options=storage_options,
    )


def _plain(frame: Any) -> Any:
    """The frame without its index."""
    return frame.reset_index(drop=True)


def _stage(frame: Any, ticket: Ticket, path: str, at: int, options: Mapping[str, str]) -> list[bytes]:
    pa = need("pyarrow", "drumlin.dask", "pyarrow")
    table = pa.Table.from_pandas(_plain(frame), preserve_index=False).replace_schema_metadata(None)
    return stage(ticket, path, [table], at, options)
