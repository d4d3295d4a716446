"""Spark over tables: splits, push-down, a write in one commit."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import drumlin
import drumlin.spark

NOW = dt.timedelta(0)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


def numbers(start: int, count: int) -> pa.Table:
    ids = list(range(start, start + count))
    times = [dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=n) for n in ids]
    return pa.table(
        {
            "id": ids,
            "u": pa.array(ids, pa.uint64()),
            "t": pa.array(times, pa.timestamp("ns", "UTC")),
            "s": pa.array([None if n % 4 == 0 else f"n{n}" for n in ids], pa.large_string()),
        }
    )


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def test_a_pattern_is_read(spark: SparkSession, place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    with drumlin.open(uri, storage_options=options, block_grace=NOW) as store:
        for table in "ab":
            store.write(f"t/{table}", numbers(0, 1000))
            store.append(f"t/{table}", numbers(1000, 1000))
        frame = drumlin.spark.read(spark, store, "t/*", path_columns=["p"], split_bytes=1, storage_options=options)
        assert frame.count() == 4000
        row = frame.where("id = 7 and p = 'a'").collect()[0]
        assert (row["u"], row["s"]) == (Decimal(7), "n7")
        assert row["t"].second == 7
        assert ids(frame.where("id >= 1990 and p = 'b'")) == list(range(1990, 2000))
        assert ids(frame.where("s is null and id in (4, 5, 8) and p = 'a'")) == [4, 8]
        assert ids(frame.where("not (s = 'n7') and id < 10 and p = 'a'")) == [1, 2, 3, 5, 6, 9]
        store.checkpoint(dead_share_min=0)
        store.drop_and_reclaim(["t/a", "t/b"])
        assert ids(frame) == sorted([*range(2000), *range(2000)])


def test_a_write_is_one_commit(spark: SparkSession, place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    frame = spark.range(0, 5000, numPartitions=4).selectExpr("id", "cast(id as string) as s")
    report = drumlin.spark.write(frame, uri, "t", job="one", storage_options=options)
    assert report.versions == {"t": 0}
    with drumlin.open(uri, storage_options=options, block_grace=NOW) as store:
        assert store.read("t").to_arrow()["id"].to_pylist() == list(range(5000))
        with pytest.raises(drumlin.AlreadyExists, match="one"):
            drumlin.spark.write(frame, store, "t", job="one", storage_options=options)
        drumlin.spark.write(frame.limit(10), store, "t", mode="overwrite", storage_options=options)
        assert store.read("t").to_arrow().num_rows == 10
        broken = frame.selectExpr("id", "cast(raise_error('broken') as string) as s")
        with pytest.raises(Exception, match="broken"):
            drumlin.spark.write(broken, store, "t", storage_options=options)
        assert store.read("t").to_arrow().num_rows == 10
        store.reclaim(grace=NOW, block_grace=NOW, audit=True)
        assert store.verify().orphans == []
        assert store.stat().holds == 0
