"""Splits and staged writes: what other processes read and write for a job."""

from __future__ import annotations

import datetime as dt
import gc
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drumlin

NOW = dt.timedelta(0)
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(start: int, count: int) -> dict[str, list[Any]]:
    return {"id": list(range(start, start + count)), "name": [f"n{n}" for n in range(start, start + count)]}


#: Reads pickled splits, or stages parts, in another process.
WORKER = """
import pickle, sys
what, argument = pickle.load(sys.stdin.buffer)
if what == "read":
    answer = [split.to_arrow().to_pydict() for split in argument]
else:
    ticket, parts = argument
    answer = [ticket.stage(path, data, part=part) for path, data, part in parts]
pickle.dump(answer, sys.stdout.buffer)
"""


def elsewhere(what: str, argument: Any) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", WORKER], input=pickle.dumps((what, argument)), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)


def test_splits_are_read_by_other_processes_while_the_store_goes_on(folder: str) -> None:
    with drumlin.open(folder, shared=True, block_grace=NOW) as store:
        store.table("k").create(SCHEMA, key=["id"])
        for at in range(5):
            store.table("k").upsert(pa.table(rows(at * 100, 150), schema=SCHEMA))
            store.checkpoint()
        # In memory.
        store.table("k").upsert([{"id": 7, "name": "new"}, {"id": 900, "name": "last"}])
        expected = store.read("k").to_arrow().to_pydict()
        with store.scan("k").splits(split_bytes=2000, at_least=3) as splits:
            assert len(splits) >= 2
            assert all(len(pickle.dumps(split)) < 2048 for split in splits)
            store.table("k").delete("id % 2 = 0")
            store.checkpoint(dead_share_min=0)
            store.drop("k")
            [hold] = store.reclaim(grace=NOW).holds
            assert hold.job is None
            assert hold.life == dt.timedelta(minutes=10)
            found = elsewhere("read", list(splits))
            for name in ("id", "name"):
                assert [value for part in found for value in part[name]] == expected[name]
            carried = pickle.loads(pickle.dumps(splits[0]))
            assert carried.to_arrow(columns=["name"]).column_names == ["name"]
            assert carried.to_polars()["id"].to_list() == found[0]["id"]
            assert list(carried.to_pandas()["id"]) == found[0]["id"]
            assert sum(batch.num_rows for batch in carried) == len(found[0]["id"])
            assert pa.table(carried).num_rows == len(found[0]["id"])
            with pytest.raises(drumlin.InvalidArgument, match="nowhere"):
                carried.to_arrow(columns=["nowhere"])
        assert store.reclaim(grace=NOW).holds == []
        with pytest.raises(drumlin.SnapshotExpired, match="has ended"):
            carried.to_arrow()
        assert store.verify().orphans == []


def test_splits_of_a_folder_that_one_process_writes(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write_many({f"p/{n}": rows(n * 10, 10) for n in range(4)})
        dataset = store.scan("p/*", path_columns=["p"], where="id >= 5 and p != '2'")
        with dataset.splits() as splits:
            assert [split.rows for split in splits] == [None]
            [found] = elsewhere("read", list(splits))
            assert found["id"] == [*range(5, 20), *range(30, 40)]
            assert set(found["p"]) == {"0", "1", "3"}
        store.reclaim()
        assert store.stat().holds == 0


def test_a_lease_is_renewed_while_its_splits_live_and_ends_with_them(folder: str) -> None:
    with drumlin.open(folder, shared=True) as store:
        store.write("t", rows(0, 10))
        # A busy machine may be late with what renews it, by less than that.
        splits = store.scan("t").splits(life=dt.timedelta(seconds=4))
        for _ in range(6):
            time.sleep(1)
            assert len(store.reclaim().holds) == 1
        assert splits[0].to_arrow().num_rows == 10
        del splits
        gc.collect()
        assert store.reclaim().holds == []
        with pytest.raises(drumlin.InvalidArgument, match="too short"):
            store.scan("t").splits(life=dt.timedelta(microseconds=1))


def test_rows_staged_by_other_processes_are_committed_at_once(folder: str) -> None:
    with drumlin.open(folder, block_grace=NOW) as store:
        store.table("k").create(SCHEMA, key=["id"])
        with store.ticket({"k": None, "new": SCHEMA}, job="fill") as ticket:
            parts = [("k", rows(n * 10, 10), (n, 0)) for n in range(4)]
            parts += [("new", rows(n * 10, 10), (3 - n, 1)) for n in range(4)]
            with ThreadPoolExecutor(2) as pool:
                answers = list(pool.map(lambda some: elsewhere("stage", (ticket, some)), [parts[:4], parts[4:]]))
            tokens = [token for answer in answers for token in answer]
            assert store.verify().orphans == []
            assert [hold.job for hold in store.reclaim().holds] == ["fill"]
            assert not store.table("new").exists()
            report = store.commit(tokens, ticket=ticket, metadata={"by": "workers"})
            assert report.versions == {"k": 1, "new": 0}
            assert report.job == "fill"
            assert store.commit(reversed(tokens), ticket=ticket) == report
        assert store.read("k").to_arrow()["id"].to_pylist() == list(range(40))
        # In the order of their parts.
        expected = [n for task in range(4) for n in range((3 - task) * 10, (3 - task) * 10 + 10)]
        assert store.read("new").to_arrow()["id"].to_pylist() == expected
        assert store.table("new").versions()[0].metadata == {"by": "workers"}
        with pytest.raises(drumlin.AlreadyExists, match="fill"):
            store.ticket(["k"], job="fill")
        store.reclaim()
        assert store.verify().orphans == []
        assert store.stat().holds == 0


def test_what_is_not_committed_leaves_nothing(folder: str) -> None:
    with drumlin.open(folder) as store:
        before = store.write("t", rows(0, 5)).version
        with store.ticket(["t"]) as ticket:
            ticket.stage("t", rows(5, 5000))
        token = store.stage("t", rows(5, 5000))
        assert pickle.loads(pickle.dumps(token)) == token
        assert token.rows == 5000
        assert store.abort([token]) is True
        with pytest.raises(drumlin.SnapshotExpired):
            store.commit([token])
        assert store.reclaim().orphans == 2
        assert store.table("t").versions()[-1].version == before
        tokens = [store.stage("t", rows(n, 1)) for n in (7, 3)]
        report = store.commit(tokens, expected_version=before)
        assert store.commit(tokens, expected_version=before) == report
        assert store.abort(tokens) is False
        assert store.read("t").to_arrow()["id"].to_pylist() == [0, 1, 2, 3, 4, 7, 3]
        with pytest.raises(drumlin.Conflict, match="version"):
            store.commit([store.stage("t", rows(0, 1))], expected_version=before)
        with pytest.raises(drumlin.SchemaMismatch):
            store.stage("t", {"id": ["text"], "name": ["x"]})


def test_modes(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.table("k").create(SCHEMA, key=["id"])
        store.table("k").upsert(pa.table(rows(0, 10), schema=SCHEMA))
        store.commit([store.stage("k", {"id": [3, 11], "name": ["x", "y"]}, mode="upsert")])
        assert store.table("k").get(3) == {"id": 3, "name": "x"}
        with pytest.raises(drumlin.AlreadyExists, match="3"):
            store.commit([store.stage("k", {"id": [3], "name": ["x"]})])
        with pytest.raises(drumlin.AlreadyExists, match="more than one"):
            store.commit([store.stage("k", {"id": [50], "name": [name]}) for name in "ab"])
        wide = pa.schema([*SCHEMA, ("more", pa.float64())])
        with store.ticket({"k": wide}, mode="overwrite") as ticket:
            tokens = [ticket.stage("k", {"id": [1], "name": ["a"], "more": [0.5]})]
            store.commit(tokens, ticket=ticket)
        assert store.read("k").to_arrow().to_pylist() == [{"id": 1, "name": "a", "more": 0.5}]
        with store.ticket(["k"], mode="overwrite") as ticket:
            store.commit([], ticket=ticket)
        assert store.read("k").to_arrow().num_rows == 0
        store.write("t", rows(0, 1))
        with pytest.raises(drumlin.InvalidArgument, match="no key"):
            store.ticket(["t"], mode="upsert")
        with pytest.raises(drumlin.InvalidArgument, match="'merge'"):
            store.ticket(["t"], mode="merge")  # type: ignore[arg-type]


def test_what_no_other_process_can_reach_is_refused(store: drumlin.Store) -> None:
    store.write("t", rows(0, 5))
    with pytest.raises(drumlin.InvalidArgument, match="memory://"):
        store.scan("t").splits()
    with pytest.raises(drumlin.InvalidArgument, match="memory://"):
        store.ticket(["t"])
    with pytest.raises(drumlin.Corrupt, match="not a split"):
        drumlin.Split(b"nothing")


def test_a_copied_folder_is_another_place_but_the_same_store(folder: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    with drumlin.open(folder) as store, drumlin.open(other) as another:
        token = store.stage("t", rows(0, 5))
        another.abort([another.stage("t", rows(0, 5))])
        with pytest.raises(drumlin.InvalidArgument, match="another store"):
            another.commit([token])


@pytest.mark.filterwarnings("ignore")
def test_a_forked_process_reads_and_stages_by_itself(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("t", rows(0, 1000))
        with store.scan("t").splits() as splits, store.ticket(["t"]) as ticket:
            answer, told = os.pipe()
            child = os.fork()
            if child == 0:
                # Threads of the parent are not here: what waited for them would wait for ever.
                found = splits[0].to_arrow().num_rows + ticket.stage("t", rows(0, 5)).rows
                os.write(told, str(found).encode())
                os._exit(0)
            for _ in range(200):
                if os.waitpid(child, os.WNOHANG)[0]:
                    break
                time.sleep(0.1)
            else:
                os.kill(child, signal.SIGKILL)
                pytest.fail("a forked process hangs")
            assert os.read(answer, 100) == b"1005"
