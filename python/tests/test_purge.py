"""Purges with their receipts; rows by their places; metadata that change alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import drumlin
from drumlin import col

SECRET = "jane.roe@secret.example"


def places(folder: str) -> list[str]:
    """The files that hold the secret."""
    files = [file for file in Path(folder).rglob("*") if file.is_file()]
    return [file.name for file in files if SECRET.encode() in file.read_bytes()]


def ids(store: drumlin.Store, path: str, as_of: drumlin.AsOf | None = None) -> list[int]:
    found: list[int] = store.read(path, as_of=as_of).to_arrow()["id"].to_pylist()
    return found


def test_a_purge_leaves_nothing(folder: str) -> None:
    with drumlin.open(folder, inline_bytes=0) as store:
        frame = pd.DataFrame(
            {
                "id": range(1000),
                "mail": [SECRET if n % 100 == 7 else f"user{n}@example.org" for n in range(1000)],
            }
        )
        frame["tag"] = frame["mail"].astype("category")
        store.write("users/a", frame)
        store.copy("users/a", "elsewhere")
        store.snapshot("eod", "users/*")
        store.table("users/a").delete("id < 50")
        store.write("users/gone", frame)
        store.drop("users/gone")
        assert places(folder) != []
        plan = store.purge("users/**", col("mail") == SECRET, explain=True)
        assert plan.rows == 20
        assert {(table.path, table.named, table.rows) for table in plan.tables} == {
            ("users/a", True, 10),
            ("elsewhere", False, 10),
            ("users/gone", True, 10),
        }
        assert ids(store, "users/a", 0) == list(range(1000))
        steps: list[int] = []
        receipt = store.purge("users/**", col("mail") == SECRET, progress=lambda done, *_rest: steps.append(done))
        assert receipt.complete, receipt.held
        assert receipt.erased == plan
        assert steps != []
        assert places(folder) == []
        left = [n for n in range(1000) if n % 100 != 7]
        assert ids(store, "users/a", 0) == ids(store, "elsewhere") == ids(store, "users/a", "eod") == left
        assert ids(store, "users/a") == [n for n in left if n >= 50]
        store.undrop("users/gone")
        assert ids(store, "users/gone") == left
        assert [version.rows for version in store.table("users/a").versions()] == [990, 941]
        assert not store.verify(deep=True).faults
        told = json.loads(receipt.to_json())
        assert told["where"] == f"mail = '{SECRET}'"
        assert told["proof"]["matching"] == receipt.proof.matching == 0
        assert {item["name"] for item in told["deleted"]} == {item.name for item in receipt.deleted}
        assert all(not (Path(folder) / item.name).exists() for item in receipt.deleted)
        assert str(receipt).startswith("20 rows erased from 3 tables")
        assert all(item.crc32c > 0 for item in receipt.deleted if item.bytes)


def test_a_reader_is_reported_and_not_broken(folder: str) -> None:
    with drumlin.open(folder, inline_bytes=0) as store:
        store.write("t", {"id": list(range(100))})
        result = store.read("t")
        stream = pa.RecordBatchReader.from_stream(result)
        receipt = store.purge("t", "id = 42")
        assert not receipt.complete
        assert "reader" in receipt.held[0][1]
        assert stream.read_all().num_rows == 100
        del stream, result
        assert store.purge("t", "id = 42").complete


def test_what_is_wrong_is_named(store: drumlin.Store) -> None:
    store.write("t", {"id": [1]})
    with pytest.raises(drumlin.NotFound, match="nothing/"):
        store.purge("nothing/**", "id = 1")
    with pytest.raises(drumlin.InvalidArgument, match="postcode"):
        store.purge("t", "postcode = 1")
    with pytest.raises(drumlin.InvalidArgument, match="filter"):
        store.purge("t", "id = = 1")
    assert ids(store, "t") == [1]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (slice(2, 5), [2, 3, 4]),
        (slice(None, 2), [0, 1]),
        (slice(97, None), [97, 98, 99]),
        (slice(-2, None), [98, 99]),
        (slice(90, 1000), list(range(90, 100))),
        (slice(5, 5), []),
        (slice(7, 3), []),
        (slice(200, 210), []),
        (slice(None), list(range(100))),
    ],
)
def test_rows_are_read_by_place(store: drumlin.Store, rows: slice, expected: list[int]) -> None:
    store.write("t", {"id": list(range(60))})
    store.append("t", {"id": list(range(60, 100))})
    assert store.read("t", rows=rows).to_arrow()["id"].to_pylist() == expected
    assert store.read("t", rows=rows).to_pandas()["id"].tolist() == expected
    assert store.read("t", rows=rows, where="id >= 0").to_arrow()["id"].to_pylist() == expected
    found = store.read_many(["t"], rows=rows)["t"].to_arrow()["id"].to_pylist()
    assert found == expected


@pytest.mark.parametrize("wrong", [slice(0, 10, 2), slice(-5, -2), slice(-5, 2), slice(2, -1)])
def test_slices_that_need_the_end_are_refused(store: drumlin.Store, wrong: slice) -> None:
    store.write("t", {"id": [1]})
    with pytest.raises(drumlin.InvalidArgument, match="rows"):
        store.read("t", rows=wrong)
    with pytest.raises(drumlin.InvalidArgument, match="limit"):
        store.read("t", rows=slice(1), limit=1)
    with pytest.raises(drumlin.InvalidArgument, match="rows"):
        store.read("*", rows=slice(1))


def test_metadata_change_alone(store: drumlin.Store) -> None:
    store.write("t", {"id": [1]}, metadata={"by": "ada"})
    store.append("t", {"id": [2]})
    table = store.table("t")

    def noted() -> list[Any]:
        return [version.metadata for version in table.versions()]

    table.set_metadata([1, "two"])
    table.set_metadata({"by": "grace"}, as_of=0)
    assert noted() == [{"by": "grace"}, [1, "two"]]
    store.transact(lambda tx: tx.table("t").set_metadata(None))
    assert noted() == [{"by": "grace"}, None]
    with pytest.raises(drumlin.NotFound):
        table.set_metadata(1, as_of=9)
