"""Replicas, promotion and copies of whole stores, from Python."""

import asyncio
import datetime as dt
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import drumlin
import drumlin.aio

DAY = dt.timedelta(days=1)


def rows(store: drumlin.Store, path: str = "a") -> list[int]:
    return sorted(store.read(path).to_arrow()["n"].to_pylist())


def test_a_replica_takes_the_place_of_its_source(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    with drumlin.open(here) as store:
        store.write("a", {"n": [1, 2]})
        store.tree.put("note", {"x": 1})
        store.snapshot("first")
        steps: list[object] = []
        report = store.follow_to(there, once=True, progress=lambda *step: steps.append(step))
        # The end of the lease comes after that.
        assert store.seq - 1 <= report.seq <= store.seq
        assert report.blocks + report.commits + report.whole > 0
        with drumlin.open(there, mode="read") as replica:
            assert rows(replica) == [1, 2]
            assert replica.tree.get("note") == {"x": 1}
            assert [snapshot.name for snapshot in replica.snapshots()] == ["first"]
            store.append("a", {"n": [3]})
            assert drumlin.follow(here, there, once=True).commits >= 1
            replica.refresh()
            assert rows(replica) == [1, 2, 3]
            with pytest.raises(drumlin.InvalidArgument):
                replica.append("a", {"n": [9]})
        with pytest.raises(drumlin.InvalidArgument, match="drumlin promote"):
            drumlin.open(there)
        with pytest.raises(drumlin.Locked):
            drumlin.promote(there)
        store.append("a", {"n": [4]})
    done = drumlin.promote(there)
    assert (done.ended, len(done.store)) == (str(here), 32)
    with drumlin.open(there) as store:
        assert rows(store) == [1, 2, 3, 4]
        store.append("a", {"n": [5]})
    with pytest.raises(drumlin.InvalidArgument, match="was ended"):
        drumlin.open(here)
    with drumlin.open(here, mode="read") as store:
        assert rows(store) == [1, 2, 3, 4]


def test_it_goes_on_beside_a_process_that_writes(tmp_path: Path) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    code = """
import datetime as dt, sys, drumlin
class Enough(Exception): pass
def caught_up(report):
    print(report.seq, flush=True)
try:
    drumlin.follow(sys.argv[1], sys.argv[2], poll=dt.timedelta(milliseconds=10), caught_up=caught_up)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with drumlin.open(here) as store:
        store.write("a", {"n": [0]})
        process = subprocess.Popen([sys.executable, "-c", code, here, there], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            seen = int(process.stdout.readline())
            for n in range(1, 30):
                store.append("a", {"n": [n]})
                if n % 10 == 0:
                    store.checkpoint()
                    store.reclaim()
            while seen < store.seq:
                seen = int(process.stdout.readline())
            process.send_signal(2)
            assert process.stdout.readline() == "interrupted\n"
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        with drumlin.open(there, mode="read") as replica:
            assert rows(replica) == list(range(30))
            assert replica.verify(deep=True).faults == []


def test_each_moment_is_restored(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    times, commits = [], []
    with drumlin.open(here) as store:
        for n in range(5):
            store.write("a", {"n": [n]})
            commits.append(store.seq)
            store.follow_to(there, once=True, keep_log=DAY)
            times.append(dt.datetime.now(dt.UTC))
            time.sleep(0.002)
        store.write("a", {"n": [99]})
        store.follow_to(there, once=True)
        store.set_retention("a", keep_last=1)
        store.drop("a")
        store.checkpoint()
        store.reclaim()
        store.follow_to(there, once=True)
    for n, (moment, commit) in enumerate(zip(times, commits, strict=True)):
        for name, as_of in (("time", moment), ("text", moment.isoformat()), ("commit", commit)):
            copy = tmp_path / f"{name}{n}"
            assert drumlin.clone(there, copy, as_of=as_of).copied.seq >= commit
            with drumlin.open(copy) as store:
                assert rows(store) == [n]
    with pytest.raises(drumlin.SnapshotExpired):
        drumlin.clone(here, tmp_path / "no", as_of=1)
    with pytest.raises(drumlin.NotFound, match="has no commit"):
        drumlin.clone(there, tmp_path / "no", as_of=10**9)
    for odd in (-1, "yesterday", 1.5):
        with pytest.raises((drumlin.InvalidArgument, TypeError, ValueError)):
            drumlin.clone(there, tmp_path / "no", as_of=odd)  # type: ignore[arg-type]


def test_an_exception_from_a_callback_ends_it(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "here") as store:
        store.write("a", {"n": [0]})

        def caught_up(report: drumlin.ReplicateReport) -> None:
            raise ZeroDivisionError(report.seq)

        with pytest.raises(ZeroDivisionError):
            store.follow_to(tmp_path / "there", caught_up=caught_up)


def test_without_blocking(tmp_path: Path) -> None:
    async def turn() -> None:
        here, there = tmp_path / "here", tmp_path / "there"
        async with drumlin.aio.open(here) as store:
            await store.write("a", {"n": [1]})
            await store.follow_to(there, once=True)
            await drumlin.aio.follow(here, there, once=True)
            going = asyncio.create_task(store.follow_to(there, poll=dt.timedelta(milliseconds=5)))
            await asyncio.sleep(0.1)
            going.cancel()
            with pytest.raises(asyncio.CancelledError):
                await going
        await drumlin.aio.clone(here, tmp_path / "copy")
        assert (await drumlin.aio.promote(there)).ended == str(here)

    asyncio.run(turn())


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with drumlin.open(place) as store:
        store.write("a", {"n": [1]})
        with pytest.raises(drumlin.InvalidArgument, match="no other process can open"):
            drumlin.open("memory://").follow_to(tmp_path / "r", once=True)
        with pytest.raises(drumlin.InvalidArgument, match="no other process can open"):
            store.follow_to("memory://", once=True)
        with pytest.raises(drumlin.AlreadyExists):
            store.follow_to(place, once=True)
    with pytest.raises(drumlin.NotFound):
        drumlin.follow(tmp_path / "none", tmp_path / "r", once=True)
    with pytest.raises(drumlin.NotFound):
        drumlin.promote(tmp_path / "none")
    with pytest.raises(TypeError, match="poll must be a timedelta"):
        drumlin.follow(place, tmp_path / "r", poll=5)  # type: ignore[arg-type]
    assert not (tmp_path / "r" / "root").exists()


def test_two_that_keep_one_replica(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    with drumlin.open(here) as store:
        store.write("a", {"n": [1]})
        store.follow_to(there, once=True)
        begun, failed = threading.Event(), []

        def first() -> None:
            try:
                store.follow_to(there, poll=dt.timedelta(milliseconds=5), caught_up=lambda _: begun.set())
            except drumlin.Conflict as error:
                failed.append(error)

        thread = threading.Thread(target=first)
        thread.start()
        store.append("a", {"n": [2]})
        assert begun.wait(60)
        # The later one takes it over; the earlier one notices it with the next commit.
        store.follow_to(there, once=True, lease=False)
        store.append("a", {"n": [3]})
        thread.join(60)
        assert len(failed) == 1
        store.follow_to(there, once=True)
    with drumlin.open(there, mode="read") as replica:
        assert rows(replica) == [1, 2, 3]
