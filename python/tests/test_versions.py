"""Versions: every past one can be read, by number, name and time; metadata; retention; snapshots."""

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import drumlin


def numbers(store: drumlin.Store, path: str = "t", **options: object) -> list[int]:
    return store.read(path, **options).to_arrow()["n"].to_pylist()  # type: ignore[arg-type]


def fill(store: drumlin.Store, versions: int = 3, path: str = "t") -> None:
    for n in range(versions):
        store.write(path, {"n": [n]})


def test_each_kind_of_change_makes_a_version(store: drumlin.Store) -> None:
    store.table("t").create(pa.schema([("n", pa.int64())]), sort=["n"])
    store.write("t", {"n": [1, 2, 3]})
    store.append("t", {"n": [4]})
    store.replace("t", {"n": [2]})
    store.table("t").delete("n = 1")
    found = [(v.version, v.kind, v.rows) for v in store.table("t").versions()]
    assert found == [(0, "create", 0), (1, "write", 3), (2, "append", 4), (3, "replace", 4), (4, "delete", 3)]
    assert [numbers(store, as_of=n) for n in range(5)] == [[], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4], [2, 3, 4]]


def test_as_of_a_time(store: drumlin.Store) -> None:
    fill(store)
    first, second, third = (version.time for version in store.table("t").versions())
    assert first.tzinfo == dt.UTC
    assert numbers(store, as_of=second) == [1]
    assert numbers(store, as_of=third - dt.timedelta(microseconds=1)) == [1]
    # Without a zone, it is UTC; with one, it is the same instant.
    assert numbers(store, as_of=second.replace(tzinfo=None)) == [1]
    assert numbers(store, as_of=second.astimezone(dt.timezone(dt.timedelta(hours=5)))) == [1]
    assert numbers(store, as_of=dt.datetime(9999, 1, 1)) == [2]
    for early in (first - dt.timedelta(days=1), dt.datetime(1900, 1, 1)):
        with pytest.raises(drumlin.NotFound, match="no version existed at"):
            store.read("t", as_of=early)


def test_as_of_what_is_not_there(store: drumlin.Store) -> None:
    fill(store)
    with pytest.raises(drumlin.NotFound, match="'t' has no version 7; it has 3 versions, the newest is 2"):
        store.read("t", as_of=7)
    with pytest.raises(drumlin.NotFound, match="snapshot 'eod' does not exist"):
        store.read("t", as_of="eod")
    with pytest.raises(drumlin.NotFound, match="'t' has no version -4; it has 3 versions, the newest is -1"):
        store.read("t", as_of=-4)
    for wrong in (True, 1.5, dt.time(20, 1), [0]):
        with pytest.raises(TypeError, match="as_of must be a version's number, a snapshot's name or a time"):
            store.read("t", as_of=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        True,
        0,
        -(2**63),
        2**64 - 1,
        0.1,
        123456789.123456789,
        "",
        "ü日\n\0'\"",
        [],
        {},
        {"a": [1, {"b": None}]},
        [[[]]],
    ],
    ids=repr,
)
def test_metadata_comes_back_as_it_was(folder: str, metadata: object) -> None:
    with drumlin.open(folder) as store:
        assert store.write("t", {"n": [1]}, metadata=metadata).metadata == metadata
        store.append("t", {"n": [2]}, metadata=metadata)
        store.table("t").delete("n = 2", metadata=metadata)
    with drumlin.open(folder) as store:
        for version in store.table("t").versions():
            assert version.metadata == metadata
            assert type(version.metadata) is type(metadata)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (float("nan"), "metadata: JSON has no nan"),
        ({"a": [0, float("inf")]}, r"metadata\['a'\]\[1\]: JSON has no inf"),
        ({1: 2}, "metadata: key 1 is not a str"),
        ((1, 2), "metadata: tuple is not a JSON value"),
        ({"t": dt.date(2020, 1, 1)}, r"metadata\['t'\]: date is not a JSON value"),
        (2**64, "out of range"),
        ("\ud800", "surrogate"),
        (b"", "bytes is not a JSON value"),
    ],
    ids=repr,
)
def test_metadata_that_would_not_come_back_is_refused(store: drumlin.Store, metadata: object, message: str) -> None:
    with pytest.raises(drumlin.InvalidArgument, match=message):
        store.write("t", {"n": [1]}, metadata=metadata)
    assert not store.tree.exists("t")


def test_a_snapshot_of_given_versions(store: drumlin.Store) -> None:
    for n in range(3):
        store.write_many({"a": {"n": [n]}, "b": {"n": [n]}})
    assert store.snapshot("mixed", versions={"b": 2, "a": 0}).versions == {"a": 0, "b": 2}
    store.delete_versions({"a": [0]})
    store.drop("b")
    store.reclaim()
    shown = [store.read(path, as_of="mixed").to_arrow()["n"].to_pylist() for path in ("a", "b")]
    assert shown == [[0], [2]]
    # What a snapshot alone holds can be held by another; what is not there cannot.
    assert store.snapshot("more", versions={"a": 0}).versions == {"a": 0}
    with pytest.raises(drumlin.NotFound, match="'a': version 7"):
        store.snapshot("none", versions={"a": 7})
    with pytest.raises(drumlin.NotFound, match="no table at 'b'"):
        store.snapshot("none", versions={"b": 2})
    with pytest.raises(drumlin.AlreadyExists, match="'mixed'"):
        store.snapshot("mixed", versions={"a": 1})
    with pytest.raises(drumlin.InvalidArgument, match="not both"):
        store.snapshot("none", "a/*", versions={"a": 1})
    with pytest.raises(drumlin.InvalidArgument, match="no versions"):
        store.snapshot("none", versions={})
    for wrong in (["a"], {"a": "1"}, {1: 1}, {"a": None}):
        with pytest.raises(TypeError):
            store.snapshot("none", versions=wrong)  # type: ignore[arg-type]
    assert [snapshot.name for snapshot in store.snapshots()] == ["mixed", "more"]


def test_snapshots_hold_versions(store: drumlin.Store) -> None:
    fill(store, path="a/x")
    fill(store, 1, path="b")
    snapshot = store.snapshot("eod", "a/**")
    assert (snapshot.name, snapshot.versions) == ("eod", {"a/x": 2})
    store.write("a/x", {"n": [9]})
    assert numbers(store, "a/x", as_of="eod") == [2]
    assert [v.snapshots for v in store.table("a/x").versions()] == [[], [], ["eod"], []]
    # They outlive deletes, drops and reclaims.
    store.delete_versions({"a/x": [2]})
    store.drop("a/x")
    store.checkpoint()
    store.reclaim()
    assert numbers(store, "a/x", as_of="eod") == [2]
    with pytest.raises(drumlin.NotFound, match="snapshot 'eod' has no table at 'b'"):
        store.read("b", as_of="eod")
    with pytest.raises(drumlin.AlreadyExists, match="eod"):
        store.snapshot("eod")
    assert [s.name for s in store.snapshots()] == ["eod"]
    store.drop_snapshot("eod")
    assert store.snapshots() == []
    with pytest.raises(drumlin.NotFound, match="eod"):
        store.drop_snapshot("eod")
    with pytest.raises(drumlin.NotFound, match="no table matches"):
        store.snapshot("none", "zzz/**")


def test_deleting_versions_is_all_or_none(store: drumlin.Store) -> None:
    fill(store, path="a")
    fill(store, path="b")
    with pytest.raises(drumlin.NotFound, match="'a' version 7, 'c'"):
        store.delete_versions({"a": [0, 7], "b": [0], "c": [1]})
    assert len(store.table("a").versions()) == 3
    with pytest.raises(drumlin.InvalidArgument, match="'a': the list of versions is empty"):
        store.delete_versions({"a": []})
    with pytest.raises(drumlin.InvalidArgument, match="all its versions.*drop it instead"):
        store.delete_versions({"a": [0, 1, 2]})
    store.delete_versions({"a": (2,), "b": {0, 1}})
    assert [v.version for v in store.table("a").versions()] == [0, 1]
    assert numbers(store, "a") == [1]
    # Numbers are not reused.
    assert store.write("a", {"n": [5]}).version == 3
    for wrong, error in ((["a"], TypeError), ({"a": "0"}, TypeError), ({"a": [-1]}, drumlin.InvalidArgument)):
        with pytest.raises(error):
            store.delete_versions(wrong)  # type: ignore[arg-type]


def test_retention_is_inherited(store: drumlin.Store) -> None:
    assert store.retention("a/x") == drumlin.Retention(None, None)
    store.set_retention("a/**", keep_last=2)
    assert store.retention("a/x") == drumlin.Retention(keep_last=2)
    fill(store, 4, path="a/x")
    fill(store, 4, path="b")
    assert [v.version for v in store.table("a/x").versions()] == [2, 3]
    assert len(store.table("b").versions()) == 4
    store.set_retention("a/x", keep_all=True)
    fill(store, 4, path="a/x")
    assert len(store.table("a/x").versions()) == 6
    store.set_retention("a/x", inherit=True)
    # The next checkpoint applies it.
    assert store.checkpoint().versions_expired == 4
    assert len(store.table("a/x").versions()) == 2


def test_retention_by_time(store: drumlin.Store) -> None:
    span = dt.timedelta(microseconds=1)
    store.set_retention("t", keep_for=span)
    assert store.retention("t") == drumlin.Retention(keep_for=span)
    fill(store, 3)
    time.sleep(0.01)
    store.checkpoint()
    assert [v.version for v in store.table("t").versions()] == [2]


@pytest.mark.parametrize(
    "options",
    [{}, {"keep_last": 1, "keep_all": True}, {"keep_last": 0}, {"keep_last": -1}, {"keep_for": dt.timedelta(-1)}],
    ids=repr,
)
def test_retention_that_says_nothing_or_two_things_is_refused(store: drumlin.Store, options: dict[str, object]) -> None:
    with pytest.raises(drumlin.InvalidArgument):
        store.set_retention("t", **options)  # type: ignore[arg-type]


def test_a_result_stays_at_its_version(store: drumlin.Store) -> None:
    fill(store, 1)
    result = store.read("t")
    unread = store.read("t")
    store.write("t", {"n": [7]})
    for _ in range(3):
        assert result.to_arrow()["n"].to_pylist() == [0]
    store.drop("t")
    store.write("t", {"n": [8]})
    store.reclaim()
    # An unread result is pinned.
    assert unread.to_arrow()["n"].to_pylist() == [0]
    with pytest.raises(drumlin.SnapshotExpired, match="'t': version 0 no longer exists"):
        result.to_arrow()


def test_a_result_is_of_the_table_that_was_read(store: drumlin.Store) -> None:
    store.write("t", {"n": [1]})
    old = store.read("t", as_of=0)
    newest = store.read("t")
    for result in (old, newest):
        assert result.to_arrow()["n"].to_pylist() == [1]
    store.drop("t")
    store.write("t", {"n": [2]})
    # Dropped tables exist until they are reclaimed; a new one at the same path is another table.
    for result in (old, newest):
        assert result.to_arrow()["n"].to_pylist() == [1]
    store.undrop("t", to="u")
    assert old.to_arrow()["n"].to_pylist() == [1]


def test_a_result_of_rows_by_key_stays_as_it_was(store: drumlin.Store) -> None:
    store.table("k").create(pa.schema([("id", pa.int64()), ("n", pa.int64())]), key=["id"])
    store.table("k").upsert({"id": [1, 2], "n": [1, 2]})
    store.checkpoint()
    store.table("k").upsert({"id": [2, 3], "n": [20, 30]})
    result = store.read("k")
    expected = {"id": [1, 2, 3], "n": [1, 20, 30]}
    assert result.to_arrow().to_pydict() == expected
    # Rows that are in no version yet.
    assert result.to_arrow().to_pydict() == expected
    store.table("k").upsert({"id": [1], "n": [10]})
    assert result.to_arrow().to_pydict() == expected
    store.checkpoint()
    store.table("k").upsert({"id": [4], "n": [40]})
    store.checkpoint()
    store.reclaim()
    assert result.to_arrow().to_pydict() == expected
    assert store.read("k").to_arrow()["n"].to_pylist() == [10, 20, 30, 40]


def test_read_many_is_of_one_instant(store: drumlin.Store) -> None:
    store.write_many({"a": {"n": [1]}, "b": {"n": [1]}})
    results = store.read_many(["b", "a"])
    store.write_many({"a": {"n": [2]}, "b": {"n": [2]}})
    assert list(results) == ["b", "a"]
    assert [result.to_arrow()["n"].to_pylist() for result in results.values()] == [[1], [1]]
    with pytest.raises(drumlin.NotFound, match="no table at 'c'"):
        store.read_many(["a", "c"])
    with pytest.raises(TypeError, match="paths must be a list of names"):
        store.read_many(5)  # type: ignore[call-overload]


def test_write_many_is_all_or_none(store: drumlin.Store) -> None:
    versions = store.write_many({"a": {"n": [1]}, "b": pa.table({"n": [1, 2]})}, metadata="both")
    assert {path: (v.version, v.rows, v.metadata) for path, v in versions.items()} == {
        "a": (0, 1, "both"),
        "b": (0, 2, "both"),
    }
    assert len({version.seq for version in versions.values()}) == 1
    with pytest.raises(drumlin.SchemaMismatch):
        store.append_many({"a": {"n": [1]}, "b": {"other": [1]}})
    with pytest.raises(drumlin.NotFound, match="no table at 'c'"):
        store.append_many({"a": {"n": [1]}, "c": {"n": [1]}})
    with pytest.raises(TypeError, match="'b': a Polars|'b': expected a table .*, got an int"):
        store.write_many({"a": {"n": [1]}, "b": 3})  # type: ignore[dict-item]
    assert [len(store.table(path).versions()) for path in ("a", "b")] == [1, 1]
    assert store.append_many({"b": {"n": [3]}, "a": {"n": [2]}})["b"].rows == 3


def test_many_tables_in_one_commit(store: drumlin.Store) -> None:
    frames = {f"many/{n:04}": {"n": [n]} for n in range(2000)}
    store.write_many(frames)
    assert len(store.tables("many/*")) == 2000
    results = store.read_many(list(frames))
    assert results["many/1999"].to_arrow()["n"].to_pylist() == [1999]
    assert len(store.drop("many/**").paths) == 2000


def read_of(store: drumlin.Store, work: Callable[[], object]) -> int:
    """How many pieces of encoded data were looked up."""
    before = store.stat()
    work()
    after = store.stat()
    return after.cache_hits + after.cache_misses - before.cache_hits - before.cache_misses


def test_a_result_tells_which_version_it_is(store: drumlin.Store) -> None:
    store.write("t", {"n": list(range(10))}, metadata={"by": "me"})
    store.snapshot("then")
    at = store.append("t", {"n": [10, 11]}).time
    store.table("t").delete("n = 0")

    def told(**named: Any) -> tuple[Any, ...]:
        result = store.read("t", **named)
        assert isinstance(result, drumlin.Result)
        assert result.num_rows == result.to_arrow().num_rows
        return result.version, result.metadata, result.num_rows

    assert told() == (2, None, 11)
    assert told(as_of=0) == told(as_of="then") == (0, {"by": "me"}, 10)
    assert told(as_of=at) == (1, None, 12)
    assert told(limit=3)[2] == told(tail=3)[2] == 3
    assert told(limit=30)[2] == told(tail=30)[2] == 11
    assert told(rows=slice(4, 6))[2] == 2
    assert told(rows=slice(10, 20))[2] == told(rows=slice(-1, None))[2] == 1
    assert told(rows=slice(20, 30))[2] == 0
    assert told(where="n >= 9")[2] == 3
    assert told(where="n >= 9", limit=2)[2] == told(where="n >= 9", tail=2)[2] == 2
    assert told(where="n > 99")[2] == 0
    whole = store.read("t")
    assert isinstance(whole, drumlin.Result)
    # What was noted later is not seen by a result that was made before.
    store.table("t").set_metadata("later")
    assert (whole.metadata, store.read("t").metadata) == (None, "later")
    assert read_of(store, lambda: (whole.version, whole.metadata, whole.num_rows, whole.schema)) == 0
    assert read_of(store, lambda: store.read("t", where="n > 99").num_rows) <= 3
    assert store.scan("t").group_by().agg(rows="count").version is None


def test_a_data_set_tells_which_versions_it_has(store: drumlin.Store) -> None:
    store.write_many({"p/a": {"n": [1]}, "p/b": {"n": [1, 2]}}, metadata="first")
    store.append("p/b", {"n": [3]}, metadata=[1])
    store.snapshot("then")
    store.write("p/b", {"n": [9]})
    ds = store.scan("p/*", as_of="then")
    assert ds.versions == {"p/a": 0, "p/b": 1}
    assert ds.metadata == {"p/a": "first", "p/b": [1]}
    assert (ds.num_rows, store.read("p/*").num_rows, ds.limit(2).num_rows) == (4, 2, 2)
    assert ds.where("n > 1").num_rows == 2
    assert read_of(store, lambda: (ds.versions, ds.metadata, ds.num_rows)) == 0


def test_rows_in_memory_and_rows_of_a_transaction_have_no_number(people: drumlin.Table, store: drumlin.Store) -> None:
    rows = {"id": 1, **{name: None for name in people.schema().names if name != "id"}}
    people.upsert(rows)
    result = people.read()
    assert (result.version, result.num_rows) == (0, 1)
    people.upsert({**rows, "id": 2})
    assert (result.num_rows, people.read().num_rows) == (1, 2)
    store.checkpoint()
    assert people.read().version == 1
    with store.transaction() as tx:
        assert tx.read("people").version == 1
        tx.table("people").delete("id = 1")
        assert (tx.read("people").version, tx.read("people").metadata, tx.read("people").num_rows) == (None, None, 1)
        assert tx.scan("people").versions == {"people": None}
        assert tx.read("people", as_of=1).version == 1
    assert store.read("people").version == 2
