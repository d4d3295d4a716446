"""Forked and spawned processes."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pyarrow as pa
import pytest

import drumlin


def in_fork(work: Callable[[], None]) -> None:
    """Runs `work` in a forked child, which must end by itself after a while."""
    child = os.fork()
    if child == 0:
        # A hanging child is killed by its alarm.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with status {status:#x}"


# faults: fork x write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, open, read, look-up, nodes
# faults: fork x transaction, feed, verify
def test_a_forked_child_gets_closed(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("t", pa.table({"n": range(300_000)}))
        store.table("k").create(pa.schema([("id", pa.int64()), ("n", pa.int64())]), key=["id"])
        store.table("k").upsert([{"id": 1, "n": 1}])
        feed = store.changes()
        result, batches = store.read("t"), iter(store.read("t"))
        next(batches)

        def child() -> None:
            calls: list[Callable[[], object]] = [
                lambda: store.read("t"),
                lambda: store.write("t", {"n": [1]}),
                lambda: store.append("t", {"n": [1]}),
                lambda: store.table("t").delete("n = 1"),
                lambda: store.tree.put("a", 1),
                lambda: store.tree.get("a"),
                lambda: store.tree.list(),
                lambda: store.table("t").versions(),
                store.checkpoint,
                store.reclaim,
                store.verify,
                store.stat,
                store.snapshots,
                lambda: store.table("k").upsert([{"id": 2, "n": 2}]),
                lambda: store.table("k").insert([{"id": 3, "n": 3}]),
                lambda: store.table("k").delete_keys([1]),
                lambda: store.table("k").get_many([1]),
                lambda: store.drop("t"),
                lambda: store.drop_and_reclaim("t"),
                lambda: store.undrop("t"),
                lambda: store.snapshot("s"),
                lambda: store.delete_versions({"t": [0]}),
                lambda: store.transact(lambda tx: tx.tree.put("a", 1)),
                store.changes,
                lambda: feed.next(0),
                lambda: store.tree.on("*", print),
                lambda: store.tree.projection("p", "*", key="name"),
                result.to_arrow,
                lambda: list(result),
                lambda: next(batches),
            ]
            for call in calls:
                try:
                    call()
                except drumlin.Closed as error:
                    assert str(os.getppid()) in str(error), error  # noqa: PT017
                else:
                    raise AssertionError("a call was answered")
            # The consumer of the stream gets an error too.
            try:
                pa.table(result)
            except Exception as error:
                assert "forked" in str(error), error  # noqa: PT017
            store.close()
            # The lock is the parent's.
            try:
                drumlin.open(folder)
            except drumlin.Locked:
                pass
            else:
                raise AssertionError("the lock was lost")
            with drumlin.open(folder, mode="read") as reader:
                assert reader.read("t").to_arrow().num_rows == 300_000

        in_fork(child)
        # The parent continues.
        assert store.append("t", {"n": [1]}).rows == 300_001
        assert result.to_arrow().num_rows == 300_000
        assert next(batches).num_rows > 0
        other = subprocess.run(
            [sys.executable, "-c", f"import drumlin; drumlin.open({folder!r})"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Locked" in other.stderr
        assert str(os.getpid()) in other.stderr


def test_a_forked_child_may_drop_everything(folder: str) -> None:
    store = drumlin.open(folder)
    store.write("t", {"n": [1]})
    held = {"store": store, "result": store.read("t"), "batches": iter(store.read("t"))}
    del store
    in_fork(held.clear)
    assert held["store"].read("t").to_arrow().num_rows == 1  # type: ignore[attr-defined]
    held["store"].close()  # type: ignore[attr-defined]


# faults: fork x write, read
def test_a_fork_during_a_write(folder: str) -> None:
    with drumlin.open(folder) as store:
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                store.write("t", pa.table({"n": range(50_000)}))

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for _ in range(10):

                def child() -> None:
                    with pytest.raises(drumlin.Closed):
                        store.read("t")

                in_fork(child)
        finally:
            stop.set()
            thread.join(60)
        assert not thread.is_alive()
        assert store.verify().ok


def test_a_forked_child_opens_its_own(tmp_path: object) -> None:
    with drumlin.open("memory://") as store:
        store.write("t", {"n": [1]})

        def child() -> None:
            with drumlin.open("memory://") as own:
                own.write("t", {"n": range(1000)})
                assert own.read("t").to_arrow().num_rows == 1000

        in_fork(child)


def read_and_write(folder: str, out: str, start: int) -> int:
    with drumlin.open(folder, mode="read") as store:
        rows = store.read("t").to_arrow().num_rows
    try:
        drumlin.open(folder).close()
        raise AssertionError("two processes write")
    except drumlin.Locked:
        pass
    with drumlin.open(out) as store:
        store.write("t", {"n": range(start, start + rows)})
        return store.read("t", tail=1).to_arrow()["n"].to_pylist()[0]  # type: ignore[no-any-return]


# faults: second process, fork x open
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_other_processes_open_the_store_again(folder: str, tmp_path: os.PathLike[str], method: str) -> None:
    with drumlin.open(folder) as store:
        store.write("t", {"n": range(1000)})
        with multiprocessing.get_context(method).Pool(2) as pool:
            jobs = [(folder, os.fspath(tmp_path) + f"/out{n}", n) for n in range(4)]
            assert pool.starmap(read_and_write, jobs) == [999, 1000, 1001, 1002]
