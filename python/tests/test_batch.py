"""Calls on many tables, with one result per table."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drumlin


def outcome(answers: dict[str, Any]) -> dict[str, Any]:
    """The rows of a version, or what is wrong."""
    return {path: a if isinstance(a, Exception) else a.rows for path, a in answers.items()}


def names(answers: dict[str, Any]) -> dict[str, Any]:
    return {path: type(a).__name__ if isinstance(a, Exception) else a for path, a in outcome(answers).items()}


def breaking() -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for n in range(20):
            yield pa.record_batch({"n": list(range(n, n + 1000))})
        raise ValueError("it broke")

    return pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())


def test_write_many(store: drumlin.Store) -> None:
    frames = {
        "c": {"n": [1]},
        "no frame": 7,
        "broken": breaking(),
        "": {"n": [1]},
        "a": {"n": [1, 2]},
    }
    before = store.seq
    answers = store.write_many(frames, return_exceptions=True)  # type: ignore[dict-item, arg-type]
    assert list(answers) == list(frames)
    assert names(answers) == {
        "c": 1, "no frame": "TypeError", "broken": "InvalidArgument", "": "InvalidArgument", "a": 2,
    }  # fmt: skip
    assert "it broke" in str(answers["broken"])
    assert store.tables() == ["a", "c"]
    assert len({answers[path].seq for path in ("a", "c")}) == 1  # type: ignore[union-attr]
    with pytest.raises(TypeError, match="'no frame': "):
        store.write_many(frames)  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument, match="it broke"):
        store.write_many({"x": {"n": [1]}, "broken": breaking()})
    assert store.tables() == ["a", "c"]
    # A session, and the commit.
    assert store.seq <= before + 2
    assert outcome(store.write_many({}, return_exceptions=True)) == {}
    assert store.verify().ok


def test_frames_that_cannot_be_handed_over(store: drumlin.Store) -> None:
    class Raises:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ValueError("no stream today")

    class Stops:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise KeyboardInterrupt

    frames: dict[str, Any] = {"x": Raises(), "a": {"n": [1]}, "y": Raises(), "b": {"n": [1, 2]}}
    answers = store.write_many(frames, return_exceptions=True)
    assert names(answers) == {"x": "ValueError", "a": 1, "y": "ValueError", "b": 2}
    assert names(store.append_many(frames, return_exceptions=True)) == {
        "x": "ValueError",
        "a": 2,
        "y": "ValueError",
        "b": 4,
    }
    with pytest.raises(ValueError, match="no stream today"):
        store.write_many(frames)
    with pytest.raises(KeyboardInterrupt):
        store.write_many({"a": {"n": [1]}, "x": Stops()}, return_exceptions=True)
    assert store.tables() == ["a", "b"]


def test_append_many(store: drumlin.Store) -> None:
    store.write_many({"a": {"n": [1]}, "b": {"s": ["x"]}})
    answers = store.append_many({"b": {"n": [1]}, "a": {"n": [2]}, "z": {"n": [1]}}, return_exceptions=True)
    assert names(answers) == {"b": "SchemaMismatch", "a": 2, "z": "NotFound"}
    with pytest.raises(drumlin.SchemaMismatch):
        store.append_many({"a": {"n": [3]}, "b": {"n": [1]}})
    assert store.read("a").to_arrow()["n"].to_pylist() == [1, 2]


def test_read_many(store: drumlin.Store) -> None:
    store.write_many({"a": {"n": [1]}, "b": {"n": [1, 2]}})
    answers = store.read_many(["b", "none", "a"], return_exceptions=True)
    assert list(answers) == ["b", "none", "a"]
    assert isinstance(answers["none"], drumlin.NotFound)
    results = [answer for answer in answers.values() if isinstance(answer, drumlin.Result)]
    assert [result.to_arrow().num_rows for result in results] == [2, 1]
    with pytest.raises(drumlin.NotFound, match="'none'"):
        store.read_many(["b", "none", "a"])


def test_delete_versions(store: drumlin.Store) -> None:
    for n in range(4):
        store.write_many({"a": {"n": list(range(n, 1000))}, "b": {"n": [n]}})
    asked = {"a": [0, 1, 9], "z": [3, 1], "b": [1]}
    with pytest.raises(drumlin.NotFound, match="'a' version 9, 'z'; nothing was deleted"):
        store.delete_versions(asked)
    report = store.delete_versions(asked, missing_ok=True)
    assert (report.versions, report.missing) == ({"a": [0, 1], "b": [1]}, {"a": [9], "z": [1, 3]})
    assert report.bytes > 0
    with pytest.raises(drumlin.InvalidArgument, match="drop it instead"):
        store.delete_versions({"a": [2, 3, 5]}, missing_ok=True)
    assert [version.version for version in store.table("a").versions()] == [2, 3]
    with store.transaction() as tx:
        report = tx.delete_versions({"a": [2], "y": [0]}, missing_ok=True)
        assert (report.versions, report.missing) == ({"a": [2]}, {"y": [0]})
        assert report.bytes > 0
    assert [version.version for version in store.table("a").versions()] == [3]


def test_drop(store: drumlin.Store) -> None:
    store.write_many({"a/x": {"n": [1]}, "a/y": {"n": [1]}})
    report = store.drop(["b", "a/*", "c/**", "a/x"], missing_ok=True)
    assert (report.paths, report.missing) == (["a/x", "a/y"], ["b", "c/**"])
    assert store.drop("b", missing_ok=True).missing == ["b"]


def test_a_table_whose_unique_index_would_break_is_left_out(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "s") as store:
        for path in ("a", "b", "c"):
            store.write(path, {"u": [1, 2]})
            store.table(path).create_index("u", "u", unique=True)
        with pytest.raises(drumlin.AlreadyExists, match="'b'"):
            store.append_many({"a": {"u": [3]}, "b": {"u": [2]}})
        answers = store.append_many({"a": {"u": [3]}, "b": {"u": [2]}, "c": {"u": [4, 4]}}, return_exceptions=True)
        kinds = {path: type(answer).__name__ for path, answer in answers.items()}
        assert kinds == {"a": "Version", "b": "AlreadyExists", "c": "AlreadyExists"}
        assert [store.table(path).stat().rows for path in ("a", "b", "c")] == [3, 2, 2]
        assert len(store.table("b").versions()) == 1
        answers = store.write_many({"b": {"u": [5, 5]}, "c": {"u": [6, 6]}}, return_exceptions=True)
        assert {type(answer).__name__ for answer in answers.values()} == {"AlreadyExists"}
        assert store.verify().faults == []
