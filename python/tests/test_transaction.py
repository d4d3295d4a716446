"""Transactions."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable

import pandas as pd
import pyarrow as pa
import pytest
from waiting import until

import drumlin
from drumlin import P
from drumlin.tree import children, exists, payload


def test_it_happens_together(store: drumlin.Store) -> None:
    store.tree.put("old", 1)
    with store.transaction() as tx:
        assert tx.seq == store.seq
        assert repr(tx) == f"Transaction(open, seq={tx.seq})"
        assert tx.tree.put("a/b", {"n": 1}).before is None
        assert tx.tree.create("a/c", 2).after.payload == 2  # type: ignore[union-attr]
        assert tx.tree.update("a/c", 3).before.payload == 2  # type: ignore[union-attr]
        assert tx.tree.compare_and_swap("a/c", 3, 4).after.payload_version == 3  # type: ignore[union-attr]
        assert tx.tree.delete("old").before.payload == 1  # type: ignore[union-attr]
        assert [change.path for change in tx.tree.put_many({"m/1": 1, "m/2": 2})] == ["m/1", "m/2"]
        assert len(tx.tree.update_many("m/*", 3)) == 2
        assert len(tx.tree.delete_many(P("m", "1"))) == 1
        assert len(tx.tree.clear_payloads("m/2")) == 1
        assert tx.tree.clear_payload("a/c").after is None
        tx.write("t", {"n": [1, 2]})
        # It sees its own changes, and nobody else does.
        assert (tx.tree.get("a/b"), tx.tree.get("old"), tx.tree.get("old", 5)) == ({"n": 1}, None, 5)
        assert tx.tree.node("a").children == 1  # type: ignore[union-attr]
        assert (tx.tree.exists("a/b"), tx.tree.exists("m"), tx.tree.has_payload("a"), tx.tree.node("m")) == (
            True,
            False,
            False,
            None,
        )
        assert tx.tree.get_many("**") == {"a/b": {"n": 1}}
        assert list(tx.tree.nodes("**")) == ["a", "a/b", "t"]
        assert tx.tree.count(P(children() == 0)) == 1
        assert tx.tree.map("*", lambda path, node: node.has_table) == [False, True]
        assert tx.tree.fold("**", lambda names, path, node: [*names, path], []) == ["a", "a/b", "t"]  # type: ignore[arg-type]
        assert list(tx.tree.filter("**", lambda path, node: node.payload)) == ["a/b"]
        # A function may use it.
        tx.tree.for_each("a/*", lambda path, node: tx.tree.put(f"copy/{path}", node.payload))
        assert tx.read("t").to_arrow().to_pydict() == {"n": [1, 2]}
        assert store.tree.get_many("**") == {"old": 1}
        assert store.tables() == []
        seq = store.seq
    assert store.seq == seq + 1 or store.seq == seq + 2
    assert store.tree.get_many("**") == {"a/b": {"n": 1}, "copy/a/b": {"n": 1}}
    assert store.read("t").to_arrow().to_pydict() == {"n": [1, 2]}
    assert tx.ended
    assert repr(tx) == f"Transaction(committed, seq={tx.seq})"


def test_an_exception_leaves_nothing(store: drumlin.Store) -> None:
    left: list[drumlin.Transaction] = []

    def leave(by: Callable[[drumlin.Transaction], object]) -> None:
        with store.transaction() as tx:
            left.append(tx)
            tx.tree.put("a", 1)
            tx.write("t", {"n": [1]})
            by(tx)

    def throw(error: BaseException) -> None:
        raise error

    for error in (ZeroDivisionError("why"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            leave(lambda tx: throw(error))  # noqa: B023
        assert left[-1].ended
        assert repr(left[-1]).startswith("Transaction(aborted")
    with pytest.raises(drumlin.Abort, match="the transaction was aborted: reason") as raised:
        leave(lambda tx: tx.abort("reason"))
    assert raised.value.value == "reason"
    with pytest.raises(drumlin.Abort, match="the transaction was aborted$") as raised:
        leave(lambda tx: throw(drumlin.Abort()))
    assert raised.value.value is None
    with store.transaction() as tx:
        tx.tree.put("a", 1)
        with pytest.raises(drumlin.Abort):
            tx.abort()
        assert tx.ended
    # Dropped without a commit.
    store.transaction().tree.put("a", 1)
    assert store.tree.list() == []
    assert store.reclaim().orphans == 0


def test_one_that_has_ended_is_of_no_use(store: drumlin.Store) -> None:
    store.write("t", {"n": [1]})
    with store.transaction() as committed:
        committed.tree.put("a", 1)
        committed.commit()
        assert store.tree.get("a") == 1
    aborted = store.transaction()
    with pytest.raises(drumlin.Abort):
        aborted.abort()
    for tx in (committed, aborted):
        calls: list[Callable[[], object]] = [
            lambda: tx.tree.put("a", 1),  # noqa: B023
            lambda: tx.tree.get("a"),  # noqa: B023
            lambda: tx.tree.delete("a"),  # noqa: B023
            lambda: tx.tree.count("**"),  # noqa: B023
            lambda: tx.tree.projection("p"),  # noqa: B023
            lambda: tx.write("t", {"n": [1]}),  # noqa: B023
            lambda: tx.read("t"),  # noqa: B023
            tx.commit,
        ]
        for call in calls:
            with pytest.raises(drumlin.InvalidArgument, match="the transaction has ended"):
                call()
        with pytest.raises(drumlin.Abort):
            tx.abort()
    assert committed.ended


def test_reading_only(store: drumlin.Store) -> None:
    store.write("t", {"n": [1]})
    store.tree.put("a", 1)
    with store.transaction(read_only=True) as tx:
        store.tree.put("a", 2)
        store.append("t", {"n": [2]})
        assert (tx.tree.get("a"), store.tree.get("a")) == (1, 2)
        assert tx.read("t").to_arrow().num_rows == 1
        for write in (
            lambda: tx.tree.put("a", 3),
            lambda: tx.write("t", {"n": [1]}),
            lambda: tx.tree.delete_many("**"),
        ):
            with pytest.raises(drumlin.InvalidArgument, match="for reading only"):
                write()
        store.tree.put("a", 3)
        assert tx.tree.count("**") == 2


def test_puts_on_conditions(store: drumlin.Store) -> None:
    with store.transaction() as tx:
        tx.tree.put("a", 1)
        with pytest.raises(drumlin.AlreadyExists):
            tx.tree.put("a", 2, mode="create")
        with pytest.raises(drumlin.ConditionFailed):
            tx.tree.put("a", 2, when=payload() == 2)
        with pytest.raises(drumlin.ConditionFailed):
            tx.tree.delete("a", when=payload() == 2)
        with pytest.raises(drumlin.InvalidArgument, match="path"):
            tx.tree.put("a//b", 1)
        with pytest.raises(drumlin.InvalidArgument, match="payload: set"):
            tx.tree.put("a", {1})
        tx.tree.put("b", 1, keep_while={"a": exists()})
        assert [change.path for change in tx.tree.delete("a").indirect] == ["b"]
    assert store.tree.list() == []


def test_conflicts(store: drumlin.Store) -> None:
    store.tree.put("stock", 3)
    tx = store.transaction()
    tx.tree.put("stock", tx.tree.get("stock") - 1)
    store.tree.put("stock", 10)
    with pytest.raises(drumlin.Conflict), tx:
        pass
    assert tx.ended
    assert store.tree.get("stock") == 10
    runs: list[int] = []

    def sell(tx: drumlin.Transaction) -> int:
        runs.append(tx.tree.get("stock"))
        if len(runs) < 3:
            store.tree.put("stock", 10 + len(runs))
        tx.tree.put("stock", runs[-1] - 1)
        return len(runs)

    assert store.transact(sell) == 3
    assert (runs, store.tree.get("stock")) == ([10, 11, 12], 11)

    def fail(tx: drumlin.Transaction) -> None:
        tx.tree.put("stock", 0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.transact(fail)
    with pytest.raises(drumlin.Abort) as raised:
        store.transact(lambda tx: tx.abort(tx.tree.put("stock", 0).after))
    assert raised.value.value.payload == 0
    assert store.tree.get("stock") == 11

    def never(tx: drumlin.Transaction) -> None:
        store.tree.put("stock", tx.tree.get("stock") + 1)
        tx.tree.put("stock", 0)

    with pytest.raises(drumlin.Conflict):
        store.transact(never)
    assert store.tree.get("stock") == 1011


# Tables.


def test_tables(store: drumlin.Store) -> None:
    store.write_many({"sorted": {"k": [1, 2, 3], "v": [0, 0, 0]}, "gone": {"n": [1]}})
    store.write("ticks", {"k": [1, 2, 3], "v": [0, 0, 0]}, sort=["k"])
    steps: list[object] = []
    with store.transaction() as tx:
        tx.table("made").create(pa.schema([("n", pa.int64())]), sort=["n"])
        tx.append("made", {"n": [2, 1]}, metadata={"by": "me"}, progress=lambda *step: steps.append(step))
        tx.replace("ticks", {"k": [2], "v": [7]})
        assert tx.table("ticks").delete(drumlin.col("k") == 3).rows == 1
        with pytest.raises(drumlin.InvalidArgument, match="where is None"):
            tx.table("ticks").delete(None)  # type: ignore[arg-type]
        tx.write_many({"x": {"n": [1]}, "y": pd.DataFrame({"n": [1]})}, metadata="both")
        tx.append_many({"x": {"n": [2]}, "y": {"n": [2]}})
        assert tx.drop(["gone", P("sor*")]).paths == ["gone", "sorted"]
        assert tx.read("ticks", columns=["v"], where="k > 1").to_arrow().to_pydict() == {"v": [7]}
        assert tx.read("x", tail=1).to_polars()["n"].to_list() == [2]
        assert tx.read("made").schema.names == ["n"]
        with pytest.raises(drumlin.NotFound):
            tx.read("gone")
        assert store.read("ticks").to_arrow()["v"].to_pylist() == [0, 0, 0]
    assert steps
    assert store.tables() == ["made", "ticks", "x", "y"]
    assert store.read("made").to_arrow()["n"].to_pylist() == [1, 2]
    assert store.table("made").versions()[-1].metadata == {"by": "me"}
    assert store.read("ticks").to_arrow()["v"].to_pylist() == [0, 7]
    assert [v.metadata for v in store.table("x").versions()] == ["both", None]
    with store.transaction() as tx:
        tx.delete_versions({"x": [0]})
        assert tx.read("ticks", as_of=0).to_arrow().num_rows == 3
    assert [v.version for v in store.table("x").versions()] == [1]
    assert store.verify().ok


def test_results_of_a_transaction(store: drumlin.Store) -> None:
    store.write("t", {"n": [1]})
    with store.transaction() as tx:
        tx.append("t", {"n": [2]})
        result = tx.read("t")
        for _ in range(3):
            assert result.to_arrow()["n"].to_pylist() == [1, 2]
        first, again = tx.read("t"), tx.read("t")
        again.to_arrow()
        # A transaction's result can be written in it.
        tx.write("copy", tx.read("t", where="n > 1"))
        tx.append("t", {"n": [3]})
        # A prepared result is unchanged; one that would be read again is refused.
        assert first.to_arrow()["n"].to_pylist() == [1, 2]
        for stale in (first, again):
            with pytest.raises(drumlin.InvalidArgument, match="has written to tables since 't' was read"):
                stale.to_arrow()
        last, late, unread = tx.read("t"), tx.read("t"), tx.read("t")
        late.to_arrow()
    assert last.to_arrow()["n"].to_pylist() == [1, 2, 3]
    with pytest.raises(drumlin.InvalidArgument, match="the transaction has ended"):
        late.to_arrow()
    assert unread.to_pandas()["n"].tolist() == [1, 2, 3]
    aborted = store.transaction()
    aborted.append("t", {"n": [4]})
    lost = aborted.read("t")
    with pytest.raises(drumlin.Abort):
        aborted.abort()
    with pytest.raises(drumlin.InvalidArgument, match="the transaction has ended"):
        lost.to_arrow()


def test_frames_come_back_with_their_index(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"n": [1, 2]}, index=pd.RangeIndex(5, 7))
    store.write("old", frame)
    with store.transaction() as tx:
        tx.write("new", frame)
        for path in ("old", "new"):
            pd.testing.assert_frame_equal(tx.read(path).to_pandas(), frame)
        pd.testing.assert_frame_equal(tx.read("old", as_of=0).to_pandas(), frame)
        for path in ("old", "new"):
            tx.append(path, frame)
            assert tx.read(path).to_pandas().index.tolist() == [0, 1, 2, 3]
        pd.testing.assert_frame_equal(tx.read("old", as_of=0).to_pandas(), frame)


def test_a_write_that_fails_leaves_the_rest(store: drumlin.Store) -> None:
    def refuse(*_: object) -> None:
        raise ZeroDivisionError("stop here")

    with store.transaction() as tx:
        tx.tree.put("a", 1)
        tx.write("t", {"n": [1]})
        with pytest.raises(drumlin.SchemaMismatch):
            tx.append("t", {"x": [1]})
        with pytest.raises(ZeroDivisionError, match="stop here"):
            tx.write("u", {"n": [1]}, progress=refuse)
        with pytest.raises(drumlin.InvalidArgument, match="'u': cannot make a table of the dict of columns"):
            tx.write_many({"u": {"n": [1], "m": [1, 2]}})
        tx.tree.put("b", 1)
    assert store.tree.get_many("**") == {"a": 1, "b": 1}
    assert store.tables() == ["t"]
    assert store.verify().ok


def test_what_a_call_calls_learns_that_it_is_in_use(store: drumlin.Store) -> None:
    said: list[str] = []

    def meddle(*_: object) -> None:
        for call in (lambda: tx.tree.put("b", 1), lambda: tx.tree.count("**"), tx.commit):
            try:
                call()
            except drumlin.InvalidArgument as error:
                said.append(str(error))

    with store.transaction() as tx:
        tx.tree.put("a", 1)
        tx.write("t", {"n": [1]}, progress=meddle)
        tx.tree.put("c", 1)
    assert set(said) == {"the transaction is in use by another call"}
    assert store.tree.get_many("**") == {"a": 1, "c": 1}


# Threads, processes, and the end.


def test_threads_share_one(store: drumlin.Store) -> None:
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for at in range(500):
                tx.tree.put(f"{thread}/{at}", at)
                if at % 50 == 0:
                    assert tx.tree.count(f"{thread}/*") == at + 1
                    assert len(tx.tree.get_many("**")) > at
        except BaseException as error:
            failures.append(error)

    with store.transaction() as tx:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert failures == []
    assert store.tree.count("*/*") == 4000


def test_threads_commit_beside_each_other(store: drumlin.Store) -> None:
    store.tree.put("sum", 0)

    def add(tx: drumlin.Transaction) -> None:
        tx.tree.put("sum", tx.tree.get("sum") + 1)

    def work() -> None:
        for _ in range(50):
            store.transact(add)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert store.tree.get("sum") == 400


def test_a_store_that_is_closed(store: drumlin.Store) -> None:
    tx = store.transaction()
    tx.tree.put("a", 1)
    store.close()
    for call in (
        lambda: tx.tree.put("b", 1),
        lambda: tx.tree.get("a"),
        tx.commit,
        store.transaction,
        lambda: store.transaction(read_only=True),
    ):
        with pytest.raises(drumlin.Closed):
            call()


def test_a_transaction_outlives_the_name_of_its_store(folder: str) -> None:
    tx = drumlin.open(folder).transaction()
    tx.tree.put("a", 1)
    tx.commit()
    del tx
    gc.collect()
    with drumlin.open(folder) as store:
        assert store.tree.get("a") == 1


def test_circles_are_collected(folder: str) -> None:
    class Holder:
        tx: drumlin.Transaction
        read: drumlin.Result

    def make() -> weakref.ref[Holder]:
        holder = Holder()
        store = drumlin.open(folder)
        store.write("t", {"n": [1]})
        holder.tx = store.transaction()
        holder.tx.tree.put("a", 1)
        holder.read = holder.tx.read("t")
        store.tree.on("**", lambda event: holder.tx)
        return weakref.ref(holder)

    gone = make()
    assert until(lambda: gc.collect() >= 0 and gone() is None)
    # The last reference closed the store.
    drumlin.open(folder).close()


# faults: fork x transaction
def test_a_forked_child_leaves_it_alone(folder: str) -> None:
    with drumlin.open(folder) as store:
        tx = store.transaction()
        tx.tree.put("a", 1)
        tx.write("t", {"n": range(1000)})
        held = [tx]
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            code = 1
            try:
                for call in (
                    lambda: tx.tree.count("**"),
                    lambda: tx.read("t"),
                    lambda: tx.write("t", {"n": [1]}),
                    tx.commit,
                ):
                    try:
                        call()
                    except drumlin.Closed as error:
                        assert "fork" in str(error)  # noqa: PT017
                    else:
                        raise AssertionError("a call was answered")
                held.clear()
                del tx
                gc.collect()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        held[0].commit()
        assert store.tree.get("a") == 1
        assert store.read("t").to_arrow().num_rows == 1000
        assert store.verify().ok


def test_what_the_function_raises_is_raised_once() -> None:
    store = drumlin.open("memory://")
    calls: list[str] = []

    def conflicts(tx: drumlin.Transaction) -> None:
        calls.append("sync")
        tx.tree.put("a", 1)
        raise drumlin.Conflict("mine")

    with pytest.raises(drumlin.Conflict, match="mine"):
        store.transact(conflicts)

    async def main() -> None:
        async def fails(tx: drumlin.aio.Transaction) -> None:
            calls.append("aio")
            await tx.tree.put("a", 1)
            raise drumlin.Conflict("mine")

        async with drumlin.aio.open("memory://") as other:
            with pytest.raises(drumlin.Conflict, match="mine"):
                await other.transact(fails)
            assert await other.tree.list("**") == []

    asyncio.run(main())
    assert calls == ["sync", "aio"]
    assert store.tree.list("**") == []
