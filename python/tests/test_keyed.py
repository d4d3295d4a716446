"""Tables with a key."""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from people import ADA, GRACE, PEOPLE, rows_of

import drumlin


def in_parallel(*works: Callable[[], object]) -> list[object]:
    """What each returns or raises."""
    ended: list[object] = [None] * len(works)
    start = threading.Barrier(len(works))

    def run(at: int) -> None:
        start.wait()
        try:
            ended[at] = works[at]()
        except Exception as error:
            ended[at] = error

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ended


# Writing and reading.


def test_rows_are_put_replaced_looked_up_and_deleted(people: drumlin.Table, store: drumlin.Store) -> None:
    assert people.versions()[-1].rows == 0
    report = people.upsert([ADA, GRACE])
    assert (report.rows, report.version, report.seq) == (2, None, store.seq)
    assert people.get(1) == ADA
    assert people.get(2) == GRACE
    assert people.get(3) is None
    people.upsert({"id": 2, "name": "Grace H.", "born": dt.date(1906, 12, 9)})
    assert people.get(2, columns=["name"]) == {"name": "Grace H."}
    assert people.insert({"id": 7, "name": "Eve", "born": None}).rows == 1
    assert people.delete_keys([1, 9]).rows == 2
    assert [row["id"] for row in rows_of(people)] == [2, 7]
    assert people.read(where="id > 2").to_arrow().num_rows == 1


def test_what_the_table_says_of_itself(people: drumlin.Table, store: drumlin.Store) -> None:
    people.upsert([ADA, GRACE])
    stat = people.stat()
    assert (stat.key, stat.sort, stat.rows, stat.memory_keys) == (["id"], ["id"], 2, 2)
    assert stat.memory_bytes > 0
    assert store.stat().memtable_bytes >= stat.memory_bytes
    report = store.checkpoint()
    assert report.rows_flushed == 2
    assert "2 rows flushed" in str(report)
    assert (people.stat().memory_keys, people.stat().stored_rows) == (0, 2)
    assert people.versions()[-1].kind == "rows"
    plain = store.table("plain")
    plain.create({"id": pa.int32()}, sort=["id"])
    assert (plain.stat().key, plain.stat().sort, plain.stat().memory_keys) == ([], ["id"], 0)


def test_metadata_makes_a_version(people: drumlin.Table) -> None:
    report = people.upsert([ADA, GRACE], metadata={"by": "me"})
    assert report.version is not None
    assert (report.version.kind, report.version.rows, report.version.metadata) == ("upsert", 2, {"by": "me"})
    assert people.versions()[-1] == report.version
    added = people.insert({"id": 3, "name": None, "born": None}, metadata=1).version
    assert added is not None
    assert (added.kind, added.rows) == ("append", 3)
    deleted = people.delete_keys([1], metadata="gone")
    assert deleted.version is not None
    assert (deleted.rows, deleted.version.kind, deleted.version.rows) == (1, "delete", 2)


def test_large_calls_make_a_version() -> None:
    with drumlin.open("memory://", row_write_bytes=1000) as store:
        table = store.table("t")
        table.create({"id": pa.int64(), "n": pa.int64()}, key=["id"])
        assert table.upsert({"id": [1, 2], "n": [1, 2]}).version is None
        told: list[int] = []
        report = table.upsert(
            {"id": range(1000), "n": range(1000)}, progress=lambda done, total, rows, size, left: told.append(rows)
        )
        assert report.version is not None
        assert (report.rows, report.version.rows, told[-1]) == (1000, 1000, 1000)
        assert table.get(1) == {"id": 1, "n": 1}
        added = table.insert(pa.table({"id": range(1000, 3000), "n": range(2000)}))
        assert (added.rows, table.versions()[-1], table.stat().rows) == (2000, added.version, 3000)
        with pytest.raises(drumlin.AlreadyExists, match="2999"):
            table.insert(pa.table({"id": range(2999, 5000), "n": range(2001)}))
        assert table.delete_keys(range(3000)).version.rows == 0  # type: ignore[union-attr]


def test_what_progress_raises_stops_the_call() -> None:
    with drumlin.open("memory://", row_write_bytes=1000) as store:
        store.table("t").create({"id": pa.int64()}, key=["id"])

        def stop(*_: object) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.table("t").upsert({"id": range(1000)}, progress=stop)
        assert store.table("t").read().to_arrow().num_rows == 0


def test_inserting_what_is_there_writes_nothing(people: drumlin.Table, store: drumlin.Store) -> None:
    people.insert([ADA, GRACE])
    for flushed in (False, True):
        if flushed:
            store.checkpoint()
        seq = store.seq
        with pytest.raises(
            drumlin.AlreadyExists, match=r"'people' already has rows with the keys 1, 2; nothing was written"
        ):
            people.insert([{**ADA, "id": 5}, GRACE, ADA])
        with pytest.raises(drumlin.AlreadyExists, match="more than one row with the key 8"):
            people.insert([{**ADA, "id": 8}, {**ADA, "id": 8}])
        assert store.seq == seq
        assert rows_of(people) == [ADA, GRACE]
    people.delete_keys([1])
    people.insert(ADA)
    assert rows_of(people) == [ADA, GRACE]


def test_of_equal_keys_the_last_counts(people: drumlin.Table) -> None:
    people.upsert([{**ADA, "name": name} for name in "xyz"] + [GRACE])
    assert rows_of(people) == [{**ADA, "name": "z"}, GRACE]
    people.delete_keys([1, 1])
    assert rows_of(people) == [GRACE]


def test_nothing_is_nothing(people: drumlin.Table, store: drumlin.Store) -> None:
    people.upsert(ADA)
    seq = store.seq
    assert people.upsert(PEOPLE.empty_table()).rows == 0
    assert people.delete_keys([]).rows == 0
    assert store.seq == seq
    answer = people.get_many([])
    assert (len(answer), answer.found.to_pylist(), answer.rows.to_arrow().num_rows) == (0, [], 0)
    assert answer.rows.schema.names == ["id", "name", "born"]


# Transactions.


def test_a_transaction_sees_its_rows_and_nobody_else(people: drumlin.Table, store: drumlin.Store) -> None:
    people.upsert([ADA, GRACE])
    with store.transaction() as tx:
        assert tx.table("people").upsert({**ADA, "name": "mine"}).rows == 1
        assert tx.table("people").insert([{"id": 3, "name": "new", "born": None}]).rows == 1
        assert tx.table("people").delete_keys([2, 9]).rows == 2
        assert tx.table("people").get(1) == {**ADA, "name": "mine"}
        assert tx.table("people").get(2) is None
        answer = tx.table("people").get_many([3, 2, 1], columns=["name"])
        assert answer.found.to_pylist() == [True, False, True]
        assert answer.rows.to_arrow().to_pydict() == {"name": ["new", None, "mine"]}
        assert tx.read("people").to_arrow()["id"].to_pylist() == [1, 3]
        assert tx.table("people").get_many(pa.table({"id": [3]})).found.to_pylist() == [True]
        with pytest.raises(drumlin.AlreadyExists, match="the key 3"):
            tx.table("people").insert({"id": 3, "name": "again", "born": None})
        tx.table("made").create({"a": pa.int8(), "b": pa.string(), "n": pa.int64()}, key=["a", "b"])
        tx.table("made").upsert({"a": 1, "b": "x", "n": 5})
        assert tx.table("made").get((1, "x")) == {"a": 1, "b": "x", "n": 5}
        assert tx.table("made").get((1, "y"), columns=["n"]) is None
        assert people.get(1) == ADA
        assert people.get(2) == GRACE
        assert not store.table("made").exists()
    assert people.get_many([1, 2, 3], columns=["name"]).rows.to_arrow()["name"].to_pylist() == ["mine", None, "new"]
    assert store.table("made").get((1, "x")) == {"a": 1, "b": "x", "n": 5}


def test_a_transaction_that_ends_otherwise_leaves_nothing(people: drumlin.Table, store: drumlin.Store) -> None:
    people.upsert([ADA, GRACE])

    def leave() -> None:
        with store.transaction() as tx:
            tx.table("people").upsert({**ADA, "name": "mine"})
            tx.table("people").delete_keys([2])
            tx.table("people").insert(
                pa.table({"id": pa.array([5], pa.int32()), "name": ["x"], "born": [None]}), metadata=1
            )
            tx.abort()

    with pytest.raises(drumlin.Abort):
        leave()
    assert rows_of(people) == [ADA, GRACE]
    tx = store.transaction()
    tx.commit()
    for call in (lambda: tx.table("people").get(1), lambda: tx.table("people").upsert(ADA)):
        with pytest.raises(drumlin.InvalidArgument, match="ended"):
            call()


def test_a_transaction_reads_what_was_there_when_it_began(people: drumlin.Table, store: drumlin.Store) -> None:
    people.upsert(ADA)
    with store.transaction(read_only=True) as tx:
        people.upsert([{**ADA, "name": "later"}, GRACE])
        assert tx.table("people").get(1) == ADA
        assert tx.table("people").get_many([1, 2]).found.to_pylist() == [True, False]
        with pytest.raises(drumlin.InvalidArgument, match="reading only"):
            tx.table("people").upsert(GRACE)


def test_transactions_conflict_over_keys_alone(people: drumlin.Table, store: drumlin.Store) -> None:
    people.upsert([ADA, GRACE])
    tx = store.transaction()
    assert tx.table("people").get(1) == ADA
    tx.table("people").upsert({"id": 10, "name": "x", "born": None})
    people.upsert({**GRACE, "name": "other"})
    tx.commit()
    tx = store.transaction()
    assert tx.table("people").get(1) == ADA
    tx.table("people").upsert({"id": 11, "name": "x", "born": None})
    people.upsert({**ADA, "name": "other"})
    with pytest.raises(drumlin.Conflict):
        tx.commit()
    assert (people.get(10) is None, people.get(11) is None) == (False, True)


def test_counting_up_in_transactions_loses_nothing(store: drumlin.Store) -> None:
    store.table("counts").create({"id": pa.int64(), "n": pa.int64()}, key=["id"])
    store.table("counts").insert({"id": 1, "n": 0})

    def count_up(tx: drumlin.Transaction) -> None:
        row = tx.table("counts").get(1)
        assert row is not None
        tx.table("counts").upsert({"id": 1, "n": row["n"] + 1})

    ended = in_parallel(*[lambda: [store.transact(count_up) for _ in range(10)]] * 4)
    assert not [error for error in ended if isinstance(error, Exception)]
    assert store.table("counts").get(1) == {"id": 1, "n": 40}


# Concurrent calls, and the end of the process.


def test_rows_are_there_after_reopening(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.table("people").create(PEOPLE, key=["id"])
        store.table("people").upsert([ADA, GRACE])
        store.table("people").delete_keys([2])
    with drumlin.open(folder) as store:
        table = store.table("people")
        assert (table.stat().memory_keys, rows_of(table)) == (2, [ADA])
        assert (table.get(1), table.get(2)) == (ADA, None)
        assert store.checkpoint().rows_flushed == 1
        table.upsert(GRACE)
    with drumlin.open(folder, mode="read") as store:
        assert rows_of(store.table("people")) == [ADA, GRACE]
        with pytest.raises(drumlin.InvalidArgument, match="reading only"):
            store.table("people").upsert(ADA)


def test_of_many_that_insert_a_key_one_does(folder: str) -> None:
    with drumlin.open(folder) as store:
        table = store.table("t")
        table.create({"id": pa.int64(), "by": pa.int64()}, key=["id"])

        def insert(by: int) -> int:
            done = 0
            for key in range(20):
                try:
                    table.insert({"id": key, "by": by})
                    done += 1
                except drumlin.AlreadyExists:
                    pass
                table.insert({"id": 1000 + by * 100 + key, "by": by})
            return done

        ended = in_parallel(*[lambda by=by: insert(by) for by in range(8)])  # type: ignore[misc]
        assert sum(ended) == 20  # type: ignore[arg-type]
        rows = rows_of(table)
        assert len(rows) == 20 + 8 * 20
        assert [sum(row["by"] == by for row in rows[:20]) for by in range(8)] == ended


def test_many_threads_write_durably(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.table("t").create({"id": pa.int64(), "by": pa.int64(), "text": pa.string()}, key=["id"])

        def write(by: int) -> None:
            for n in range(25):
                assert store.table("t").upsert({"id": by * 1000 + n, "by": by, "text": "x" * by}).rows == 1
                assert store.table("t").get(by * 1000 + n, columns=["by"]) == {"by": by}
                store.table("t").upsert({"id": -1, "by": by, "text": None})

        ended = in_parallel(*[lambda by=by: write(by) for by in range(16)], store.checkpoint)  # type: ignore[misc]
        assert not [error for error in ended if isinstance(error, Exception)]
    with drumlin.open(folder) as store:
        answer = store.table("t").get_many([by * 1000 + n for by in range(16) for n in range(25)], columns=["by"])
        assert answer.found.count() == 400
        assert answer.rows.to_arrow()["by"].to_pylist() == [by for by in range(16) for _ in range(25)]
        assert store.table("t").stat().rows == 401
        assert store.verify().ok


@pytest.mark.parametrize("seed", range(4))
def test_random_operations_agree_with_a_dict(folder: str, seed: int) -> None:
    rng = random.Random(seed)
    options: dict[str, Any] = {"row_write_bytes": 2000, "sync": rng.choice(["commit", "interval"])}
    store = drumlin.open(folder, **options)
    store.table("t").create({"a": pa.string(), "b": pa.int16(), "v": pa.float64(), "s": pa.string()}, key=["a", "b"])
    keys = [(text, number) for text in ("", "a", "bb", "c\0c") for number in range(-10, 10)]
    model: dict[tuple[str, int], dict[str, Any]] = {}
    kept: dict[str, dict[tuple[str, int], dict[str, Any]]] = {}

    def row(key: tuple[str, int]) -> dict[str, Any]:
        text = rng.choice([None, "x" * rng.randrange(50)])
        return {"a": key[0], "b": key[1], "v": rng.choice([None, rng.random()]), "s": text}

    def check(expected: dict[tuple[str, int], dict[str, Any]], as_of: str | None) -> None:
        rows = store.read("t", as_of=as_of).to_arrow().to_pylist()
        assert rows == [expected[key] for key in sorted(expected)]
        asked = rng.choices(keys, k=30)
        answer = store.table("t").get_many(asked, as_of=as_of)
        assert answer.found.to_pylist() == [key in expected for key in asked]
        nothing = {"v": None, "s": None}
        for key, given in zip(asked, answer.rows.to_arrow().to_pylist(), strict=True):
            assert given == expected.get(key, {"a": key[0], "b": key[1], **nothing})
        assert store.table("t").get(asked[0], as_of=as_of) == expected.get(asked[0])

    for step in range(200):
        chosen = rng.choices(keys, k=rng.choice([1, 1, 2, 5, 60]))
        metadata = rng.choice([None, None, None, step])
        match rng.randrange(10):
            case 0 | 1 | 2:
                rows = [row(key) for key in chosen]
                store.table("t").upsert(rows, metadata=metadata)
                model |= dict(zip(chosen, rows, strict=True))
            case 3 | 4:
                rows = [row(key) for key in chosen]
                fits = len(set(chosen)) == len(chosen) and not model.keys() & set(chosen)
                try:
                    store.table("t").insert(rows, metadata=metadata)
                except drumlin.AlreadyExists:
                    assert not fits
                else:
                    assert fits
                    model |= dict(zip(chosen, rows, strict=True))
            case 5 | 6:
                store.table("t").delete_keys(chosen, metadata=metadata)
                model = {key: value for key, value in model.items() if key not in chosen}
            case 7:
                commit = rng.random() < 0.7
                with store.transaction() as tx:
                    rows = [row(key) for key in chosen]
                    tx.table("t").upsert(rows)
                    tx.table("t").delete_keys(chosen[:1])
                    assert tx.table("t").get(chosen[0]) is None
                    if not commit:
                        tx._core.abort()
                if commit:
                    model |= dict(zip(chosen, rows, strict=True))
                    model.pop(chosen[0])
            case 8:
                store.checkpoint()
            case 9:
                if rng.random() < 0.5:
                    name = f"s{step}"
                    store.snapshot(name)
                    kept[name] = dict(model)
                else:
                    store.close()
                    store = drumlin.open(folder, **options)
        check(model, None)
        if kept:
            name = rng.choice(list(kept))
            check(kept[name], name)
    assert store.verify().ok
    store.close()


# Options.


def test_options_are_checked(folder: str) -> None:
    refused: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"sync": "never"}, drumlin.InvalidArgument, "sync 'never' is not known; expected one of 'commit', 'interval'"),
        ({"sync_interval": dt.timedelta(0)}, drumlin.InvalidArgument, "sync_interval is 0"),
        ({"sync_interval": -dt.timedelta(1)}, drumlin.InvalidArgument, "sync_interval="),
        ({"sync_interval": 0.1}, TypeError, "sync_interval must be a timedelta, not a float"),
        ({"memtable_bytes": -1}, drumlin.InvalidArgument, "memtable_bytes=-1"),
        ({"row_write_bytes": -1}, drumlin.InvalidArgument, "row_write_bytes=-1"),
        ({"memtable_bytes": "1"}, TypeError, "str"),
    ]
    for options, kind, why in refused:
        with pytest.raises(kind, match=why):
            drumlin.open(folder, **options)
    for options in ({"sync": "interval"}, {"sync": "interval", "sync_interval": dt.timedelta(milliseconds=5)}):
        with drumlin.open(folder, **options) as store:  # type: ignore[arg-type]
            if not store.tree.exists("t"):
                store.table("t").create({"id": pa.int64()}, key=["id"])
            store.table("t").upsert({"id": [1, 2, 3]})
            assert store.table("t").get(2) == {"id": 2}
    with drumlin.open(folder) as store:
        assert store.table("t").stat().rows == 3


def test_memory_is_flushed_when_it_is_much(folder: str) -> None:
    with drumlin.open(folder, memtable_bytes=50_000) as store:
        store.table("t").create({"id": pa.int64(), "text": pa.string()}, key=["id"])
        for n in range(200):
            store.table("t").upsert({"id": n, "text": "x" * 2000})
        assert store.stat().memtable_bytes < 400_000
        assert store.table("t").stat().rows == 200


def test_the_feed_tells_of_rows(people: drumlin.Table, store: drumlin.Store) -> None:
    feed = store.changes()
    people.upsert(ADA)
    [event] = next(feed).events
    assert (event.path, event.action, event.kind) == ("people", "rows", None)
    report = people.upsert(GRACE, metadata=1)
    told = next(commit for commit in feed if commit.seq == report.seq)
    assert [(event.action, event.kind) for event in told.events] == [("version", "upsert")]
