"""What versions tell: messages, writers, rows added and removed, in the order of time."""

import datetime as dt
import re
import time
from pathlib import Path
from typing import Any

import pytest

import drumlin
from drumlin import Store


def told(store: Store, pattern: str = "**") -> list[tuple[str, str, int | None, int | None, str | None]]:
    history = store.history(pattern)
    return [(path, v.kind, v.rows_added, v.rows_removed, v.message) for path, v in history]


def test_everything_done_with_a_message_says_it(folder: str) -> None:
    with drumlin.open(folder, writer="etl") as store:
        seen = store.seq
        nightly = store.with_message("nightly")
        nightly.write("a", {"n": [1, 2, 3]})
        nightly.table("a").update({"n": "n + 1"}, where="n > 1")
        nightly.tree.put("done", True)
        store.append("a", {"n": [9]})
        with store.transaction(message="both") as tx:
            tx.write("b", {"n": [1]})
            tx.table("a").delete("n = 9")
        store.transact(lambda tx: tx.append("b", {"n": [2]}), message="again")
        feed = store.changes(since=seen)
        expected = [
            ("b", "append", 1, 0, "again"),
            ("a", "delete", 0, 1, "both"),
            ("b", "write", 1, 0, "both"),
            ("a", "append", 1, 0, None),
            ("a", "update", 2, 2, "nightly"),
            ("a", "write", 3, 0, "nightly"),
        ]
        assert told(store) == expected
        messages = []
        while (commit := feed.next(timeout=0)) is not None:
            messages += commit.messages
        assert messages == ["nightly", "nightly", "nightly", "both", "again"]
        store.copy("a", "c")
    with drumlin.open(folder) as store:
        assert told(store, "a") == [line for line in expected if line[0] == "a"]
        assert [line[1:] for line in told(store, "c")] == [line[1:] for line in told(store, "a")]
        versions = store.table("a").versions()
        assert {v.writer for v in versions} == {"etl"}
        assert "message='nightly'" in repr(versions[0])
        assert [path for path, _ in store.history(limit=2)] == ["b", "a"]
        assert store.append("a", {"n": [0]}).writer is None


def test_a_duration_is_that_of_the_call() -> None:
    store = drumlin.open("memory://")

    def slowly():
        import pyarrow as pa

        schema = pa.schema([("n", pa.int64())])

        def batches():
            time.sleep(0.2)
            yield pa.record_batch({"n": [1]}, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    version = store.write("t", slowly())
    assert version.duration is not None
    assert dt.timedelta(seconds=0.2) <= version.duration < dt.timedelta(seconds=20)
    assert store.restore("t", as_of=0) == ["t"]
    assert store.table("t").versions()[1].duration is None


def test_what_is_no_message() -> None:
    store = drumlin.open("memory://")
    with pytest.raises(TypeError, match="message must be a str, not an int"):
        store.with_message(3)  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument, match="4097 bytes; expected at most 4096"):
        store.with_message("x" * 4097)
    with pytest.raises(TypeError, match="writer must be a str"):
        drumlin.open("memory://", writer=3)  # type: ignore[arg-type]
    odd = "\u00e4\0\n<script>\U0001f600"
    assert store.with_message(odd).write("t", {"n": [1]}).message == odd


def test_the_consumer_of_the_page_on_following_takes_in_each_change_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "following.md").read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(block, names)
    assert names["store"].read("totals").num_rows == 3
    for n in range(3):
        names["orders"].upsert({"id": [1, 10 + n], "customer": ["Ada", "Ada"], "amount": [float(n), 1.0]})
        names["store"].transact(names["take_in"])
    wanted: dict[str, float] = {"Ada": 0.0, "Alan": 0.0, "Grace": 0.0}
    for row in names["store"].read("orders").to_dicts():
        wanted[row["customer"]] += row["amount"]
    assert {row["customer"]: row["amount"] for row in names["store"].read("totals").to_dicts()} == wanted
    names["store"].close()


def test_what_a_difference_fails_with_is_its_own_exception() -> None:
    store = drumlin.open("memory://")
    people = store.table("people")
    people.create({"id": "int64", "n": "int64"}, key=["id"])
    people.upsert({"id": 1, "n": 1})
    store.snapshot("one", "people")
    with store.transaction() as tx, pytest.raises(drumlin.Conflict, match="rows written by key"):
        tx.table("people").diff(0, 1).to_arrow()
