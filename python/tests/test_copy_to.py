"""Copies in other stores, and columns that are computed."""

import datetime as dt
import os

import pyarrow as pa
import pytest

import drumlin
from drumlin import Store, col


def versions(store: Store, path: str) -> list[tuple[int, str, int, dt.datetime, list[dict[str, object]]]]:
    found = []
    for v in store.table(path).versions():
        found.append((v.version, v.kind, v.rows, v.time, store.read(path, as_of=v.version).to_arrow().to_pylist()))
    return found


def test_a_backup_has_every_version(folder: str) -> None:
    other = os.path.join(folder, "other")
    with drumlin.open(os.path.join(folder, "s")) as store, drumlin.open(other) as backup:
        store.write("a/x", {"n": range(100), "s": [f"text {n}" for n in range(100)]}, metadata={"by": "me"})
        store.append("a/x", {"n": [100], "s": ["more"]})
        store.table("a/x").delete("n < 10")
        store.table("a/k").create({"id": pa.int64(), "v": pa.string()}, key=["id"])
        store.table("a/k").upsert({"id": [1, 2], "v": ["one", "two"]})
        store.write("b", {"n": [1]})
        steps: list[tuple[int, int]] = []
        report = store.copy_to(backup, "a/*", progress=lambda done, total, *_: steps.append((done, total)))
        assert (report.tables, report.present) == (["a/k", "a/x"], [])
        assert report.row_groups > 0
        assert report.bytes > 0
        assert steps[-1] == (report.row_groups, report.row_groups)
        for path in ("a/k", "a/x"):
            assert versions(backup, path) == versions(store, path)
        assert backup.table("a/k").get(2) == {"id": 2, "v": "two"}
        again = store.copy_to(backup)
        assert (again.tables, again.present) == (["b"], ["a/k", "a/x"])
        assert store.table("a/x").versions()[0].metadata == {"by": "me"}
        # Each goes its own way.
        store.append("a/x", {"n": [7], "s": ["seven"]})
        with pytest.raises(drumlin.AlreadyExists, match="'a/x' already exists in .*other"):
            store.copy_to(backup)
        assert store.copy_to(backup, "a/x", versions="newest", replace=True).tables == ["a/x"]
        assert len(backup.table("a/x").versions()) == 1
        assert [item.path for item in backup.trash()] == ["a/x"]
    with drumlin.open(other) as backup:
        assert backup.read("a/x").to_arrow().num_rows == 92
        assert backup.verify().faults == []


def test_what_cannot_be_copied(folder: str) -> None:
    store = drumlin.open("memory://")
    with pytest.raises(drumlin.InvalidArgument, match="same store"):
        store.copy_to(store)
    with pytest.raises(TypeError, match="other must be a Store, not a str"):
        store.copy_to("elsewhere")  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument, match="'all', 'newest'"):
        store.copy_to(drumlin.open("memory://"), versions="last")  # type: ignore[arg-type]
    with drumlin.open(folder) as other:
        other.table("k").create({"id": pa.int64()}, key=["id"])
        other.table("k").upsert({"id": [1]})
        with (
            drumlin.open(folder, mode="read") as reader,
            pytest.raises(
                drumlin.InvalidArgument, match="'k' that were written by key are still in memory; checkpoint"
            ),
        ):
            reader.copy_to(store)
        with (
            drumlin.open(folder, mode="read") as reader,
            pytest.raises(drumlin.InvalidArgument, match="open for reading only"),
        ):
            store.copy_to(reader)


def test_columns_are_computed() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"px": [1.5, 2.0, None], "n": [10, 20, 30]})
    table = store.table("t")
    version = table.add_columns(
        {
            "value": (pa.float64(), col("px") * col("n")),
            "big": (pa.bool_(), col("n") > 15),
            "unit": (pa.string(), "EUR"),
            "note": pa.string(),
        }
    )
    assert (version.kind, version.rows, version.rows_added) == ("update", 3, 3)
    assert store.read("t").to_arrow().to_pydict() == {
        "px": [1.5, 2.0, None],
        "n": [10, 20, 30],
        "value": [15.0, 40.0, None],
        "big": [False, True, True],
        "unit": ["EUR"] * 3,
        "note": [None] * 3,
    }
    assert [v.kind for v in table.versions()] == ["write", "alter", "update"]
    with pytest.raises(drumlin.InvalidArgument, match="without a type; give both"):
        table.add_columns({"x": col("n") + 1})
    with pytest.raises(drumlin.InvalidArgument, match="no column m"):
        table.add_columns({"x": (pa.int64(), col("m") + 1)})
    with pytest.raises(drumlin.InvalidArgument, match="is not a valid int8"):
        table.add_columns({"x": (pa.int8(), col("n") * 10)})
    assert len(table.versions()) == 3
    with store.transaction() as tx:
        tx.append("t", {"px": [1.0], "n": [1]}, schema="evolve")
        tx.table("t").add_columns({"twice": (pa.int64(), col("n") * 2)})
    assert store.read("t", columns=["twice"]).to_arrow()["twice"].to_pylist() == [20, 40, 60, 2]
