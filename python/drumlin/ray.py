"""Reading and writing tables with Ray Data: ``pip install 'drumlin[ray]'``.

>>> import drumlin.ray
>>> ds = drumlin.ray.read("s3://bucket/store", "prices/us/*", where="day > 3")  # doctest: +SKIP
>>> drumlin.ray.write(ds, "s3://bucket/store", "prices/all", mode="overwrite")  # doctest: +SKIP
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from drumlin._arguments.checks import AsOf
from drumlin._arguments.expr import Expr
from drumlin._clusters.jobs import Driver, write_job
from drumlin._drumlin import StagedReport
from drumlin._nouns.store import Store
from drumlin._optional import need
from drumlin._processes.staged import Ticket
from drumlin.tree import PatternLike

if TYPE_CHECKING:
    import ray.data as _data  # type: ignore[import-not-found, unused-ignore]


__all__ = ["read", "write"]


def read(
    store: Store | str,
    path: PatternLike,
    *,
    columns: Iterable[Any] | None = None,
    where: str | Expr | None = None,
    as_of: AsOf | None = None,
    path_columns: Iterable[str] = (),
    split_bytes: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> "_data.Dataset":
    """Reads the table at ``path``, or all tables that match a pattern, as a Ray Dataset, as of this instant. What an
    execution reads is kept until the dataset is gone, whatever other processes do to the store; an execution that
    begins after its versions are gone raises :class:`SnapshotExpired`.

    Ray's column selection and its filter expressions are pushed down; pyarrow applies the rest on the workers, where
    Drumlin's filters are not exact. Each task reads a split of about ``split_bytes`` (default 128 MiB, encoded; less if
    there would be fewer than two for each CPU of the cluster). ``store`` is an open store or its address.
    ``storage_options`` are passed to the workers, which otherwise take a bucket's credentials from their environment.
    Other ``options`` are passed to ``ray.data.read_datasource``.
    """
    data = need("ray.data", "drumlin.ray", "ray")
    from drumlin._clusters.ray_source import DrumlinDatasource

    driver = Driver(store, storage_options, "write")
    dataset = driver.store.scan(path, as_of=as_of, columns=columns, where=where, path_columns=path_columns)
    found: _data.Dataset = data.read_datasource(DrumlinDatasource(driver, dataset, split_bytes), **options)
    return found


def write(
    dataset: "_data.Dataset",
    store: Store | str,
    path: str,
    *,
    mode: Literal["append", "overwrite", "upsert"] = "append",
    sort: Iterable[str] = (),
    job: str | None = None,
    expected_version: int | None = None,
    metadata: Any = None,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> StagedReport:
    """Writes a Ray Dataset to the table at ``path``: each task stages its blocks, and one commit at the end makes all
    of them part of the table, or none. Tasks that fail or are repeated leave nothing visible; :meth:`Store.reclaim
    <drumlin.Store.reclaim>` deletes what they left on storage.

    With a ``job``, the write is done once: if it is repeated after an error or a restart and was already committed, it
    raises :class:`AlreadyExists`. A table that does not exist gets the schema of the dataset, and is ordered by
    ``sort`` when read. Other ``options`` are passed to ``Dataset.write_datasink``.
    """
    need("ray.data", "drumlin.ray", "ray")
    from drumlin._clusters.ray_source import DrumlinDatasink, schema_of

    def stage_all(ticket: Ticket, given: dict[str, str]) -> list[bytes]:
        sink = DrumlinDatasink(ticket, path, given)
        dataset.write_datasink(sink, **options)
        return sink.tokens

    return write_job(
        store,
        path,
        lambda: schema_of(dataset),
        stage_all,
        mode=mode,
        sort=sort,
        job=job,
        expected_version=expected_version,
        metadata=metadata,
        storage_options=storage_options,
    )
