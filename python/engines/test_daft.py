"""Daft over tables: splits, push-down, a write in one commit."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import daft
import numpy as np
import pyarrow as pa
import pytest
from questions import COLUMNS, asked, check_page, fill, name_of, pushed_into_splits

import drumlin
import drumlin.daft

NOW = dt.timedelta(0)


def numbers(start: int, count: int) -> pa.Table:
    ids = list(range(start, start + count))
    floats = [math.nan if n % 5 == 0 else n / 2 for n in ids]
    return pa.table({"id": ids, "f": floats, "s": [None if n % 4 == 0 else f"n{n}" for n in ids]})


def test_a_pattern_is_read(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    with drumlin.open(uri, storage_options=options, block_grace=NOW) as store:
        for table in "ab":
            store.write(f"t/{table}", numbers(0, 1000))
            store.append(f"t/{table}", numbers(1000, 1000))
        frame = drumlin.daft.read(store, "t/*", path_columns=["t"], split_bytes=1, storage_options=options)
        assert frame.column_names == ["id", "f", "s", "t"]
        assert frame.count_rows() == 4000
        found = frame.where((daft.col("id") >= 1990) & (daft.col("t") == "b")).select("id").to_pydict()
        assert found == {"id": list(range(1990, 2000))}
        reading = frame.select("id").iter_partitions()
        first = next(reading).to_pydict()["id"]
        store.checkpoint(dead_share_min=0)
        store.drop_and_reclaim(["t/a", "t/b"])
        rest = [n for part in reading for n in part.to_pydict()["id"]]
        assert sorted([*first, *rest]) == sorted([*range(2000), *range(2000)])
        with pytest.raises(drumlin.SnapshotExpired):
            frame.select("s").collect()


@pytest.mark.parametrize(
    "predicate",
    [
        daft.col("id") > 1500,
        (daft.col("id") > 1500) | (daft.col("s") == "n3"),
        daft.col("s").is_null(),
        ~(daft.col("s") == "n7"),
        daft.col("f") > 3,
        daft.col("f") <= 3,
        daft.col("id").is_in([4, 9, 12_000]),
        (daft.col("id") % 7 == 3) & (daft.col("f") > 10),
    ],
    ids=str,
)
def test_filters_mean_what_daft_means(place: tuple[str, dict[str, str]], predicate: Any) -> None:
    uri, options = place
    with drumlin.open(uri, storage_options=options) as store:
        whole = numbers(0, 2000)
        store.write("t", whole)
        expected = daft.from_arrow(whole).where(predicate).select("id").to_pydict()
        frame = drumlin.daft.read(store, "t", storage_options=options)
        assert frame.where(predicate).select("id").to_pydict() == expected
        assert frame.where(predicate).limit(3).count_rows() == min(3, len(expected["id"]))


def test_the_page_says_what_is_pushed_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with drumlin.open(str(tmp_path / "store")) as store:
        fill(store, "t")

        def ask(column: str, question: str) -> int:
            name = daft.col(name_of(column))
            values = daft.Series.from_arrow(pa.array([COLUMNS[column](at) for at in (3, 6)]))
            value, other = values.to_pylist()
            if column == "timestamp, ns":
                # Python's own times have no nanoseconds.
                value, other = (daft.lit(np.datetime64(COLUMNS[column](at).value, "ns")) for at in (3, 6))
            expr = asked(question, name, value, other, name.is_in(values))
            return int(drumlin.daft.read(store, "t", split_bytes=1).where(expr).select("id").count_rows())

        check_page("Daft", pushed_into_splits(store, ask, monkeypatch))


def test_nanoseconds_are_compared_by_daft(tmp_path: Path) -> None:
    """Daft's translation of filters for others rounds literals to microseconds."""
    whole = pa.table(
        {
            "ns": pa.array([0, 1, 999, 1000, 1001, 5000], pa.int64()).cast(pa.timestamp("ns")),
            "us": pa.array([0, 1, 2, 3, 4, 5], pa.int64()).cast(pa.timestamp("us")),
        }
    )
    with drumlin.open(str(tmp_path / "store")) as store:
        for at in range(6):
            row = whole.slice(at, 1)
            store.append("t", row) if at else store.write("t", row)
        frame, memory = drumlin.daft.read(store, "t"), daft.from_arrow(whole)
        fine = daft.Series.from_arrow(pa.array([1, 1001, 1500], pa.int64()).cast(pa.timestamp("ns")))
        for name in ("ns", "us"):
            column = daft.col(name)
            literals = [daft.lit(np.datetime64(n, "ns")) for n in (1, 1500)]
            predicates = [op for value in literals for op in (column < value, column == value, ~(column >= value))]
            for predicate in [*predicates, column.is_in(fine), (column < literals[1]) | column.is_in(fine)]:
                expected = memory.where(predicate).to_pydict()
                assert frame.where(predicate).to_pydict() == expected, str(predicate)


def test_a_write_is_one_commit(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    frame = daft.from_arrow(numbers(0, 5000))
    assert drumlin.daft.write(frame, uri, "t", job="one", sort=["id"], storage_options=options).versions == {"t": 0}
    with drumlin.open(uri, storage_options=options, block_grace=NOW) as store:
        assert store.read("t").to_arrow()["id"].to_pylist() == list(range(5000))
        with pytest.raises(drumlin.AlreadyExists, match="one"):
            drumlin.daft.write(frame, store, "t", job="one", storage_options=options)
        drumlin.daft.write(frame.limit(10), store, "t", mode="overwrite", storage_options=options)
        assert store.read("t").to_arrow().num_rows == 10
        store.reclaim(grace=NOW, block_grace=NOW, audit=True)
        assert store.verify().orphans == []
        assert store.stat().holds == 0
