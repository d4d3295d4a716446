"""Reading and writing tables with Daft: ``pip install 'drumlin[daft]'``.

>>> import drumlin.daft
>>> frame = drumlin.daft.read("s3://bucket/store", "prices/us/*")  # doctest: +SKIP
>>> drumlin.daft.write(frame, "s3://bucket/store", "prices/all", mode="overwrite")  # doctest: +SKIP
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
    import daft as _daft  # type: ignore[import-not-found, unused-ignore]


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
) -> "_daft.DataFrame":
    """Reads the table at ``path``, or all tables that match a pattern, as a Daft DataFrame, as of this instant. What an
    execution reads is kept until the frame is gone; an execution that begins after its versions are gone raises
    :class:`SnapshotExpired`. Columns, limits and filters are pushed down, except filters on floats; Daft applies its
    own filter to what is read. Each task reads a split of about ``split_bytes`` (default 128 MiB, encoded). For
    ``store`` and ``storage_options``, see :func:`drumlin.ray.read`."""
    need("daft", "drumlin.daft", "daft")
    from drumlin._clusters.daft_source import DrumlinSource

    driver = Driver(store, storage_options, "write")
    dataset = driver.store.scan(path, as_of=as_of, columns=columns, where=where, path_columns=path_columns)
    return DrumlinSource(driver, dataset, split_bytes).read()


def write(
    frame: "_daft.DataFrame",
    store: Store | str,
    path: str,
    *,
    mode: Literal["append", "overwrite", "upsert"] = "append",
    sort: Iterable[str] = (),
    job: str | None = None,
    expected_version: int | None = None,
    metadata: Any = None,
    storage_options: Mapping[str, str] | None = None,
) -> StagedReport:
    """Writes a Daft DataFrame to the table at ``path``, in one commit, or not at all. Rows are in the order in which
    Daft's tasks finish. For the arguments, see :func:`drumlin.ray.write`."""
    need("daft", "drumlin.daft", "daft")
    from drumlin._clusters.daft_source import DrumlinSink

    def stage_all(ticket: Ticket, given: dict[str, str]) -> list[bytes]:
        return list(frame.write_sink(DrumlinSink(ticket, path, given)).to_pydict()["token"])

    return write_job(
        store,
        path,
        lambda: frame.schema().to_pyarrow_schema(),
        stage_all,
        mode=mode,
        sort=sort,
        job=job,
        expected_version=expected_version,
        metadata=metadata,
        storage_options=storage_options,
    )
