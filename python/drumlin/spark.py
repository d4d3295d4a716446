"""Reading and writing tables with Spark 4 through its Python data sources: ``pip install 'drumlin[spark]'``.

>>> import drumlin.spark
>>> frame = drumlin.spark.read(spark, "s3://bucket/store", "prices/us/*")  # doctest: +SKIP
>>> drumlin.spark.write(frame, "s3://bucket/store", "prices/all", mode="overwrite")  # doctest: +SKIP
"""

import base64
import json
import os
import pickle
import tempfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from drumlin._arguments.checks import AsOf
from drumlin._arguments.expr import Expr
from drumlin._clusters.jobs import Driver, write_job
from drumlin._drumlin import StagedReport
from drumlin._nouns.store import Store
from drumlin._optional import need
from drumlin._processes.splits import Splits
from drumlin._processes.staged import Ticket
from drumlin.tree import PatternLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as _DataFrame  # type: ignore[import-not-found, unused-ignore]
    from pyspark.sql import SparkSession as _SparkSession  # type: ignore[import-not-found, unused-ignore]


__all__ = ["read", "write"]

#: The splits that a session reads; their leases live as long as the session.
_held: "WeakKeyDictionary[Any, list[Splits]]" = WeakKeyDictionary()


def read(
    spark: "_SparkSession",
    store: Store | str,
    path: PatternLike,
    *,
    columns: Iterable[Any] | None = None,
    where: str | Expr | None = None,
    as_of: AsOf | None = None,
    path_columns: Iterable[str] = (),
    split_bytes: int | None = None,
    at_least: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "_DataFrame":
    """Reads the table at ``path``, or all tables that match a pattern, as a Spark DataFrame; what it shows is kept as
    long as the session lives. Each partition reads a split of about ``split_bytes`` (default 128 MiB, encoded; less if
    there would be fewer than ``at_least``). Spark has no safe way to push columns or filters down to Python data
    sources: give ``columns`` and ``where``, which prune. Unsigned integers become wider signed ones, and times have
    microseconds. For ``store`` and ``storage_options``, see :func:`drumlin.ray.read`."""
    need("pyspark.sql", "drumlin.spark", "spark")
    from drumlin._clusters.spark_source import DrumlinSparkSource, given, spark_schema

    driver = Driver(store, storage_options, "write")
    dataset = driver.store.scan(path, as_of=as_of, columns=columns, where=where, path_columns=path_columns)
    splits = dataset.splits(split_bytes=split_bytes, at_least=at_least)
    _held.setdefault(spark, []).append(splits)
    spark.dataSource.register(DrumlinSparkSource)
    options = {"splits": _text([pickle.dumps(one) for one in splits]), **given(driver.options)}
    return spark.read.format("drumlin").schema(spark_schema(splits.schema)).options(**options).load()


def write(
    frame: "_DataFrame",
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
    """Writes a Spark DataFrame to the table at ``path``: each partition is staged by its task, and one commit at the
    end makes all of them part of the table, in the order of the partitions, or none. For the arguments, see
    :func:`drumlin.ray.write`."""
    need("pyspark.sql", "drumlin.spark", "spark")
    from pyspark.sql.pandas.types import to_arrow_schema  # type: ignore[import-not-found, unused-ignore]

    from drumlin._clusters.spark_source import DrumlinSparkSource, given

    frame.sparkSession.dataSource.register(DrumlinSparkSource)

    def stage_all(ticket: Ticket, settings: dict[str, str]) -> list[bytes]:
        # Spark commits in a separate process on the driver's machine, so the tokens come back through a file.
        with tempfile.TemporaryDirectory(prefix="drumlin-spark-") as folder:
            answer = os.path.join(folder, "tokens")
            options = {"ticket": _text([pickle.dumps(ticket)]), "table": path, "answer": answer, **given(settings)}
            frame.write.format("drumlin").options(**options).mode("append").save()
            with open(answer, encoding="ascii") as file:
                return [base64.b64decode(token) for token in json.load(file)]

    return write_job(
        store,
        path,
        lambda: to_arrow_schema(frame.schema, timezone="UTC"),
        stage_all,
        mode=mode,
        sort=sort,
        job=job,
        expected_version=expected_version,
        metadata=metadata,
        storage_options=storage_options,
    )


def _text(parts: list[bytes]) -> str:
    return json.dumps([base64.b64encode(part).decode() for part in parts])
