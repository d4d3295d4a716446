"""How tables are compressed: what is asked for, what is kept, and that nothing else depends on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import drumlin

LEVELS = ("balanced", "small", "fast")


def rows(seed: int, count: int = 20_000) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(count) + seed * count,
            "noise": rng.normal(0, 1, count),
            "cents": np.round(rng.uniform(1, 1000, count), 2),
            "text": [f"a text that is number {n}" for n in rng.integers(0, 10**6, count)],
            "nulls": pa.array(rng.normal(0, 1, count), mask=rng.random(count) < 0.1),
        }
    )


@pytest.mark.parametrize("level", LEVELS)
def test_rows_come_back(level: str, tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "store", inline_bytes=0) as store:
        store.write("t", rows(0), compression=level)
        store.append("t", rows(1))
        store.table("t").update({"cents": "cents + 1"}, where="id % 7 = 0")
        store.table("t").delete("id % 5 = 3")
        before = store.read("t").to_arrow()
        store.checkpoint()
        assert store.read("t").to_arrow() == before
        people = store.table("keyed")
        people.create(rows(0).schema, key=["id"], compression=level)
        people.upsert(rows(2))
        store.checkpoint()
        people.upsert(rows(2).slice(0, 10))
        assert people.read().to_arrow().sort_by("id").cast(rows(2).schema) == rows(2)
        assert store.verify().faults == []


def test_each_does_what_it_is_for(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "store", inline_bytes=0) as store:

        def size(name: str, level: Any) -> int:
            store.write(f"{level}/{name}", rows(0, 100_000).select([name]), compression=level)
            return store.table(f"{level}/{name}").stat().bytes

        size_of = {(name, level): size(name, level) for name in rows(0, 1).column_names for level in (*LEVELS, None)}
        for name in rows(0, 1).column_names:
            assert size_of[name, None] == size_of[name, "balanced"]
            # Of a few bytes, one is a number in the directory that may take one or two.
            assert size_of[name, "small"] <= size_of[name, "balanced"] + 1 <= size_of[name, "fast"] * 1.01 + 2
        # Doubles that hardly compress are as they are; cents are integers.
        assert 800_000 <= size_of["noise", "balanced"] < 802_000
        assert size_of["noise", "small"] < 0.9 * 800_000
        assert size_of["cents", "balanced"] < 300_000
        assert size_of["text", "balanced"] < size_of["text", "fast"] < 3_000_000
        assert size_of["id", "fast"] < 300_000


def test_a_table_stays_as_it_was_made(tmp_path: Path) -> None:
    def noise(seed: int) -> pa.Table:
        return rows(seed, 50_000).select(["noise"])

    def small(store: drumlin.Store) -> bool:
        stat = store.table("t").stat()
        return stat.bytes < 0.9 * 8 * stat.stored_rows * stat.columns

    with drumlin.open(tmp_path / "store", inline_bytes=0) as store:
        store.write("t", noise(0), compression="small")
    with drumlin.open(tmp_path / "store", inline_bytes=0) as store:
        store.append("t", noise(1))
        assert small(store)
        # Another schema, which says nothing of it.
        store.write("t", noise(2).append_column("more", noise(5)["noise"]))
        store.table("t").rename_columns({"more": "other"})
        store.append("t", noise(3).append_column("other", noise(6)["noise"]))
        store.delete_versions({"t": [0, 1]})
        store.checkpoint()
        assert small(store)
        assert store.read("t").to_arrow().schema.metadata[b"drumlin.compression"] == b"small"
        store.write("t", noise(4), compression="balanced")
        store.delete_versions({"t": [2, 3, 4]})
        store.checkpoint()
        assert not small(store)


def test_a_store_says_it_of_new_tables(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "store", compression="small") as store:
        store.write("one", {"n": [1.5]})
        store.write_many({"two": {"n": [1.5]}}, compression="fast")
        store.table("three").create(pa.schema([("n", pa.float64())]))
        store.write("four", pa.table({"n": [1.5]}).replace_schema_metadata({"drumlin.compression": "balanced"}))
        said = [store.read(path).to_arrow().schema.metadata for path in ("one", "two", "three", "four")]
        assert [metadata[b"drumlin.compression"] for metadata in said] == [b"small", b"fast", b"small", b"balanced"]
    with drumlin.open(tmp_path / "store") as store:
        store.write("five", {"n": [1.5]})
        assert store.read("five").to_arrow().schema.metadata is None


def test_what_is_not_known_is_refused() -> None:
    store = drumlin.open("memory://")
    for call, kind in (
        (lambda: store.write("t", {"n": [1]}, compression="zip"), drumlin.InvalidArgument),  # type: ignore[arg-type]
        (lambda: store.write("t", {"n": [1]}, compression=9), TypeError),  # type: ignore[arg-type]
        (lambda: drumlin.open("memory://", compression="best"), drumlin.InvalidArgument),  # type: ignore[arg-type]
        (
            lambda: store.write("t", pa.table({"n": [1]}).replace_schema_metadata({"drumlin.compression": "x"})),
            drumlin.InvalidArgument,
        ),
    ):
        with pytest.raises(kind, match="compression"):
            call()
    assert store.tables() == []


@pytest.mark.parametrize("seed", range(20))
def test_few_rows_are_read_one_by_one(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    store = drumlin.open(tmp_path / "store")
    rows_there = int(rng.choice([100, 5_000, 130_000, 260_000]))
    table = pa.table({"n": np.arange(rows_there), "x": rng.normal(0, 1, rows_there)})
    half = int(rng.integers(1, rows_there))
    store.write("t", table.slice(0, half), sort=["n"] if seed % 3 == 0 else None)
    store.append("t", table.slice(half))
    if seed % 2:
        store.table("t").delete("n % 10 = 4")
    there = store.read("t").to_arrow()
    for _ in range(20):
        limit = int(rng.choice([0, 1, 3, 700, half, half + 2, there.num_rows - 2, there.num_rows + 1]))
        assert store.read("t", limit=limit).to_arrow() == there.slice(0, limit), limit
        tail = int(rng.choice([1, 5, 900]))
        assert store.read("t", tail=tail).to_arrow() == there.slice(max(0, there.num_rows - tail))
