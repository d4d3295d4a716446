"""Restores, copies and moves of tables and subtrees, and differences of versions."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pyarrow as pa
import pytest

import drumlin


def numbers(store: drumlin.Store | drumlin.Transaction, path: str, as_of: drumlin.AsOf | None = None) -> list[int]:
    found: list[int] = store.read(path, as_of=as_of).to_arrow()["n"].to_pylist()
    return found


def test_a_bad_day_is_taken_back(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write_many({f"prices/{n}": {"n": list(range(n, 200 + n))} for n in range(3)})
        store.snapshot("eod", "prices/**")
        good = dt.datetime.now(dt.UTC)
        time.sleep(0.01)
        store.table("prices/0").delete("n % 7 = 1")
        store.write("prices/1", {"other": ["x"]})
        store.drop("prices/2")
        assert store.restore("prices/*", "eod") == ["prices/0", "prices/1", "prices/2"]
        for n in range(3):
            assert numbers(store, f"prices/{n}") == list(range(n, 200 + n))
        [*_, last] = store.table("prices/0").versions()
        assert (last.kind, last.rows, last.version) == ("restore", 200, 2)
        assert len(numbers(store, "prices/0", 1)) < 200, "the version in between stays"
        store.write("prices/0", {"n": [1]})
        store.write("new", {"n": [1]})
        assert store.restore("prices/0", good) == ["prices/0"]
        assert store.restore("**", good) == ["prices/0", "prices/1", "prices/2"], "not what is new"
        assert store.restore("prices/0", 0) == ["prices/0"]
        assert store.verify().ok
    with drumlin.open(folder) as store:
        assert numbers(store, "prices/0") == list(range(200))


def test_a_branch_is_a_copy_and_comes_back_as_a_move(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("main/t", {"n": [1, 2, 3]}, metadata={"by": "me"})
        store.tree.put("main/config", {"x": 1})
        report = store.copy("main", "branch")
        assert (report.tables, report.payloads) == ({"main/t": "branch/t"}, 1)
        store.append("branch/t", {"n": [4]})
        store.tree.put("branch/config", {"x": 2})
        assert numbers(store, "main/t") == [1, 2, 3]
        assert store.table("branch/t").versions()[0].metadata == {"by": "me"}
        store.drop("main/**")
        store.tree.delete("main/config")
        assert store.move("branch", "main").tables == {"branch/t": "main/t"}
        assert numbers(store, "main/t") == [1, 2, 3, 4]
        assert store.tree.get("main/config") == {"x": 2}
        store.checkpoint()
        store.reclaim()
        assert store.verify().ok
        assert store.verify().orphans == []


def test_a_branch_comes_back_over_its_origin(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("main/t", {"n": [1]})
        store.write("main/t", {"n": [2]})
        store.copy("main", "branch")
        store.append("branch/t", {"n": [3]})
        with pytest.raises(drumlin.AlreadyExists, match="'main/t'"):
            store.move("branch", "main")
        assert store.move("branch", "main", replace=True).tables == {"branch/t": "main/t"}
        assert numbers(store, "main/t") == [2, 3]
        assert [version.version for version in store.table("main/t").versions()] == [0, 1, 2]
        assert [item.path for item in store.trash()] == ["branch/t"]
        store.copy("main/t", "main2", as_of=0)
        store.copy("main/t", "main2", as_of=1, replace=True)
        assert numbers(store, "main2") == [2]


def test_patterns_and_versions(folder: str) -> None:
    with drumlin.open(folder) as store:
        for day in range(3):
            store.write_many({f"us/{symbol}/close": {"n": [day]} for symbol in "AB"})
        store.write("us/A/open", {"n": [9]})
        report = store.copy("us/*/close", "eod/*", as_of=1)
        assert report.tables == {"us/A/close": "eod/A", "us/B/close": "eod/B"}
        assert numbers(store, "eod/A") == [1]
        assert [version.version for version in store.table("eod/A").versions()] == [1]
        store.write("eod/A", {"n": [5]})
        assert [version.version for version in store.table("eod/A").versions()] == [1, 2]
        assert store.move("us/*/*", "*/us/*").tables == {
            "us/A/close": "A/us/close",
            "us/A/open": "A/us/open",
            "us/B/close": "B/us/close",
        }
        assert store.tables("us/**") == []


def test_in_a_transaction(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("a/t", {"n": [1]})
        store.write("a/t", {"n": [2]})
        with store.transaction() as tx:
            tx.copy("a", "b")
            tx.restore("b/t", 0)
            tx.append("b/t", {"n": [3]})
            tx.move("a", "c")
            assert numbers(tx, "b/t") == [1, 3]
            assert tx.tables() == ["b/t", "c/t"]
        assert numbers(store, "b/t") == [1, 3]
        assert numbers(store, "c/t") == [2]
        tx = store.transaction()
        tx.move("c", "d")
        with pytest.raises(drumlin.Abort):
            tx.abort()
        assert store.tables() == ["b/t", "c/t"]


def test_tables_with_a_key(folder: str) -> None:
    with drumlin.open(folder) as store:
        table = store.table("k")
        table.create({"id": pa.int64(), "n": pa.int64()}, key=["id"])
        table.upsert({"id": [1, 2], "n": [1, 2]})
        store.snapshot("s", "k")
        table.upsert({"id": [2, 3], "n": [20, 30]})
        store.copy("k", "copy")
        store.restore("k", "s")
        table.insert({"id": [3], "n": [3]})
        store.table("copy").upsert({"id": [1], "n": [10]})
        assert numbers(store, "k") == [1, 2, 3]
        assert numbers(store, "copy") == [10, 20, 30]
        tx = store.transaction()
        tx.table("copy").upsert({"id": [7], "n": [7]})
        with pytest.raises(drumlin.Conflict, match="again"):
            tx.copy("copy", "other")
        with pytest.raises(drumlin.Abort):
            tx.abort()
        # What was there before is in row groups now.
        with store.transaction() as tx:
            tx.copy("copy", "other")
        assert numbers(store, "other") == [10, 20, 30]


def test_no_data_is_written(folder: str) -> None:
    with drumlin.open(folder, inline_bytes=0) as store:
        store.write("t", {"n": list(range(100_000))})
        for part in range(20):
            store.append("t", {"n": list(range(part))})
        blocks = sorted(path.name for path in Path(folder, "blocks").rglob("*"))
        store.copy("t", "copy")
        store.move("copy", "moved")
        store.restore("t", 3)
        assert sorted(path.name for path in Path(folder, "blocks").rglob("*")) == blocks


def test_what_is_refused_is_named(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("a/t", {"n": [1]})
        store.write("b/t", {"n": [1]})
        seq = store.seq
        with pytest.raises(drumlin.AlreadyExists, match="'b/t'"):
            store.copy("a", "b")
        with pytest.raises(drumlin.InvalidArgument, match="overlap"):
            store.move("a", "a/x")
        with pytest.raises(drumlin.InvalidArgument, match="as_of"):
            store.restore("a/t", None)  # type: ignore[arg-type]
        with pytest.raises(drumlin.NotFound, match="no version 4"):
            store.restore("a/t", 4)
        with pytest.raises(drumlin.NotFound, match="nope"):
            store.copy("nope", "x")
        with pytest.raises(TypeError, match="src"):
            store.move(1, "x")  # type: ignore[arg-type]
        assert store.seq == seq


def test_differences_go_everywhere(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("t", {"n": [1, 2, 3], "s": ["a", "b", "c"]})
        store.table("t").delete("n = 2")
        store.append("t", {"n": [4], "s": ["d"]})
        diff = store.table("t").diff(0)
        rows = [("b", "delete", 2), ("d", "insert", 2)]
        assert [(r["s"], r["_change"], r["_version"]) for r in diff.to_arrow().to_pylist()] == rows
        assert list(diff.to_pandas()["_change"]) == ["delete", "insert"]
        assert diff.to_polars().rows() == [(2, "b", "delete", 2), (4, "d", "insert", 2)]
        assert pa.table(diff).num_rows == 2, "again each time"
        assert sum(batch.num_rows for batch in diff) == 2
        each = store.table("t").diff(0, each_version=True, columns=["n"]).to_arrow()
        assert each["_version"].to_pylist() == [1, 2]
        assert each.column_names == ["n", "_change", "_version"]
        assert store.table("t").diff(2, 0).to_arrow()["_change"].to_pylist() == ["delete", "insert"]
        assert store.table("t").diff(1, 1).to_arrow().num_rows == 0
        assert "each_version=False" in repr(diff)
        with store.transaction() as tx:
            tx.append("t", {"n": [5], "s": ["e"]})
            assert tx.table("t").diff(2).to_arrow()["n"].to_pylist() == [5]
        with pytest.raises(drumlin.NotFound, match="no version 9"):
            store.table("t").diff(9)
        with pytest.raises(drumlin.InvalidArgument, match="in order"):
            store.table("t").diff(2, 0, each_version=True)
        store.write("odd", {"_change": [1]})
        store.write("odd", {"_change": [2]})
        with pytest.raises(drumlin.InvalidArgument, match="_change"):
            store.table("odd").diff(0)


def test_rows_of_a_key_are_told_before_and_after(folder: str) -> None:
    with drumlin.open(folder) as store:
        table = store.table("k")
        table.create({"id": "int64", "name": "string", "tags": pa.list_(pa.string())}, key=["id"])
        table.upsert({"id": [1, 2, 3], "name": ["a", "b", "c"], "tags": [["x"], None, []]})
        store.snapshot("then")
        table.upsert({"id": [1, 2, 4], "name": ["a", "B", None], "tags": [["x", "y"], None, ["z"]]})
        table.delete_keys([3])
        diff = table.diff("then").to_arrow().to_pylist()
        assert [(row["id"], row["_change"], row["tags"]) for row in diff] == [
            (1, "update_before", ["x"]),
            (1, "update_after", ["x", "y"]),
            (2, "update_before", None),
            (2, "update_after", None),
            (3, "delete", []),
            (4, "insert", ["z"]),
        ]
        assert [row["name"] for row in table.diff("then", columns=["name"]).to_arrow().to_pylist()] == [
            "b",
            "B",
            "c",
            None,
        ]
