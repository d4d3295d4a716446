"""Many threads on one store, its tables, results and transactions: also by an interpreter without the interpreter lock,
where they run at the same time. `make wheel FOR=python3.14t` makes a package for that."""

import sys
import sysconfig
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import drumlin

THREADS, ROUNDS = 8, 30


def together(work: Callable[[int], None]) -> None:
    """Runs a function in many threads at once, each with its number; raises what one of them raised."""
    begin, failed = threading.Barrier(THREADS), []

    def run(at: int) -> None:
        begin.wait()
        try:
            work(at)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(at,)) for at in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in failed:
        raise error


def test_threads_write_and_read_rows_by_key(store: drumlin.Store) -> None:
    table = store.table("rows")
    table.create({"id": int, "by": int, "text": str}, key="id")

    def work(at: int) -> None:
        for round_ in range(ROUNDS):
            ids = range(at * 1000 + round_ * 3, at * 1000 + round_ * 3 + 3)
            table.upsert([{"id": id, "by": at, "text": f"{at} {round_}"} for id in ids])
            assert [row and row["by"] for row in table.get_many(list(ids))] == [at] * 3
            assert table.get(ids[0]) == {"id": ids[0], "by": at, "text": f"{at} {round_}"}
            table.delete_keys(ids[2])
            if round_ % 10 == 0:
                store.checkpoint()

    together(work)
    assert len(table) == THREADS * ROUNDS * 2
    assert table.group_by("by").agg(n="count").to_arrow()["n"].to_pylist() == [ROUNDS * 2] * THREADS
    assert store.verify().faults == []


def test_threads_append_and_read_frames(store: drumlin.Store) -> None:
    store.write("frame", {"n": [-1], "by": [-1]})

    def work(at: int) -> None:
        for round_ in range(ROUNDS):
            store.append("frame", pa.table({"n": [round_] * 100, "by": [at] * 100}))
            mine = store.read("frame", where="by = ?", params=[at])
            assert (len(mine), mine.head(1).to_dicts()) == ((round_ + 1) * 100, [{"n": 0, "by": at}])
            assert repr(mine).startswith("Result('frame'")

    together(work)
    assert len(store.read("frame")) == THREADS * ROUNDS * 100 + 1


def test_threads_share_objects(store: drumlin.Store) -> None:
    store.write("shared", {"n": range(10_000)})
    result, scan, tree = store.read("shared"), store.scan("shared"), store.tree

    def add(tx: Any) -> None:
        tx.tree.put("count", tx.tree.get("count", 0) + 1)

    def work(at: int) -> None:
        for round_ in range(ROUNDS):
            assert sum(batch.num_rows for batch in result) == 10_000
            assert scan.where("n < 10").count_rows() == 10
            tree.put(f"nodes/{at}/{round_}", {"at": at})
            assert tree.get(f"nodes/{at}/{round_}") == {"at": at}
            store.transact(add)

    together(work)
    assert tree.get("count") == THREADS * ROUNDS
    assert tree.count("nodes/**") == THREADS * ROUNDS + THREADS


def test_the_module_needs_no_interpreter_lock() -> None:
    # Else the interpreter would have switched it on at the import.
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled()  # type: ignore[attr-defined]
