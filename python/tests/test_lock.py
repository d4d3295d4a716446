"""The interpreter's lock: a thread that waits for a turn or a lock of the store has released it, so nothing blocks."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import faulthandler, sys, threading, time
    import pyarrow as pa
    import drumlin

    # A blocked thread is shown, and the process ends.
    faulthandler.dump_traceback_later(60, exit=True)
    options = {"shared": True, "fresh": True} if sys.argv[2] == "shared" else {}
    store = drumlin.open(sys.argv[1], checkpoint_log_bytes=20_000, **options)
    SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
    store.table("k").create(SCHEMA, key=["id"])
    store.table("t").create(SCHEMA)
    called = {"projection": 0, "trigger": 0, "progress": 0}

    def key(path, payload):
        called["projection"] += 1
        # Python code takes some time, in which others take the lock.
        time.sleep(0.0001)
        return [payload, path[-1]]

    def hear(event):
        called["trigger"] += 1
        store.tree.get("n/0")

    def tell(*step):
        called["progress"] += 1
        store.tree.get("n/0")

    def rows(n):
        def batches():
            for at in range(3):
                # Pulled during the call; it uses the store too.
                store.tree.exists("n/0")
                yield pa.record_batch({"id": [n, n + 1000 + at], "name": ["a", "b"]}, schema=SCHEMA)
        return pa.RecordBatchReader.from_batches(SCHEMA, batches())

    store.tree.put("n/0", 0)
    store.tree.projection("by payload", "n/*", key=key, value=lambda path, payload: path[-1], bag=True)
    store.tree.on("n/*", hear)
    calls = [
        lambda n: store.tree.put(f"n/{n % 7}", n),
        lambda n: store.write(f"w/{n % 3}", rows(n), progress=tell),
        lambda n: store.append("t", rows(n)),
        lambda n: store.table("t").delete(f"id = {n}"),
        lambda n: store.table("k").upsert([{"id": n % 50, "name": "x"}]),
        lambda n: store.table("k").delete_keys([n % 50]),
        lambda n: store.table("k").get_many([1, 2, 3]).found,
        lambda n: store.table("k").get(n % 50),
        lambda n: store.read("t").to_arrow(),
        lambda n: [batch.num_rows for batch in store.read("t")],
        lambda n: store.tree.projection("by payload").items(),
        lambda n: transact(n),
        lambda n: store.snapshot(f"s{n}"),
        lambda n: store.checkpoint(progress=tell),
        lambda n: store.reclaim(progress=tell),
        lambda n: store.verify(progress=tell),
        lambda n: drop(n),
        lambda n: store.changes(max(0, store.refresh() - 1)).next(0),
        lambda n: store.tree.list("**"),
        lambda n: store.stat(),
    ]

    def transact(n):
        with store.transaction() as tx:
            tx.tree.put(f"n/{n % 7}", n)
            tx.tree.projection("by payload").items()
            tx.append("t", {"id": [n], "name": ["tx"]})
            tx.table("k").upsert([{"id": n % 50, "name": "tx"}])

    def drop(n):
        store.write(f"d/{n}", {"id": [n]})
        store.drop(f"d/{n}")
        store.undrop(f"d/{n}")
        store.drop_and_reclaim(f"d/{n}")

    failures = []

    def work(thread):
        for at in range(60):
            n = thread * 1000 + at
            try:
                calls[(at * 7 + thread * 3) % len(calls)](n)
            except (drumlin.Conflict, drumlin.AlreadyExists, drumlin.NotFound, drumlin.SnapshotExpired):
                pass
            except BaseException as error:
                failures.append(f"{at}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures, failures[:5]
    assert all(called.values()), called
    assert store.verify().ok
    store.close()
    print("done")
"""


# faults: interpreter lock x write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, read, look-up, nodes
# faults: interpreter lock x transaction, feed, verify
@pytest.mark.parametrize("kind", ["alone", "shared"])
def test_nothing_stands_still_beside_python_functions(tmp_path: os.PathLike[str], kind: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), os.fspath(tmp_path) + "/s", kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-3000:]
