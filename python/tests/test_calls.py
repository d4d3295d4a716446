"""Long calls: progress, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import drumlin

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string())])


def batches(count: int, seconds: float = 0.0, drawn: list[int] | None = None) -> pa.RecordBatchReader:
    """Batches of 10,000 rows, each of which takes a while to arrive; ``drawn`` gets the numbers of those that did."""

    def make() -> Iterator[pa.RecordBatch]:
        for at in range(count):
            time.sleep(seconds)
            if drawn is not None:
                drawn.append(at)
            yield pa.record_batch({"n": range(10_000), "s": [f"{at} {n}" for n in range(10_000)]}, schema=SCHEMA)

    return pa.RecordBatchReader.from_batches(SCHEMA, make())


def test_progress_is_reported(store: drumlin.Store) -> None:
    steps: list[tuple[int, int, int, int, float | None]] = []

    def tell(*step: int) -> None:
        steps.append(step)  # type: ignore[arg-type]

    store.write("t", batches(40), progress=tell)
    assert steps[-1][0] == 4
    assert steps[-1][2] == 400_000
    assert [step[0] for step in steps] == sorted(step[0] for step in steps)
    for call in (
        lambda: store.append("t", batches(1), progress=tell),
        lambda: store.write_many({"u": batches(1)}, progress=tell),
        lambda: store.append_many({"u": batches(1)}, progress=tell),
        lambda: store.verify(progress=tell),
        lambda: store.checkpoint(progress=tell),
        lambda: store.reclaim(progress=tell),
    ):
        steps.clear()
        call()
        assert steps, "nothing was reported"
        assert all(len(step) == 5 for step in steps)
    assert steps[-1][0] == steps[-1][1]


def test_a_progress_callback_may_use_the_store(store: drumlin.Store) -> None:
    seen: list[int] = []
    store.write("t", {"n": [1]})
    store.write("u", batches(30), progress=lambda *_: seen.append(store.read("t").to_arrow().num_rows))
    assert set(seen) == {1}


# faults: stopped call x write, checkpoint, reclaim, verify
def test_what_a_progress_callback_raises_stops_the_call(store: drumlin.Store) -> None:
    def refuse(done: int, total: int, rows: int, size: int, left: float | None) -> None:
        raise ZeroDivisionError("stop here")

    for call in (
        lambda: store.write("t", batches(30), progress=refuse),
        lambda: store.write_many({"t": batches(30)}, progress=refuse),
    ):
        with pytest.raises(ZeroDivisionError, match="stop here"):
            call()
        assert store.tree.list() == []
    store.write("t", batches(2))
    store.append("t", batches(2))
    for maintain in (store.verify, store.checkpoint, store.reclaim):
        with pytest.raises(ZeroDivisionError, match="stop here"):
            maintain(progress=refuse)
    assert store.checkpoint().row_groups_after == 1
    assert store.read("t").to_arrow().num_rows == 40_000


class Alarm(Exception):
    """The exception raised by the handler of a timer."""


@pytest.fixture
def alarm() -> Iterator[Callable[[float, Callable[[], object]], None]]:
    """Makes a call, and sets a timer before, whose signal handler raises."""

    def handle(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, handle)

    def armed(seconds: float, call: Callable[[], object]) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()

    def stops(seconds: float, call: Callable[[], object]) -> None:
        with pytest.raises(Alarm):
            armed(seconds, call)

    yield stops
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


# faults: stopped call x write
def test_a_signal_stops_a_write(store: drumlin.Store, alarm: Callable[[float, Callable[[], object]], None]) -> None:
    for write in (store.write, lambda path, data: store.write_many({path: data})):
        drawn: list[int] = []
        alarm(0.2, partial(write, "t", batches(1000, 0.02, drawn)))
        assert len(drawn) < 500
        assert store.tree.list() == []
    assert store.write("t", {"n": [1]}).version == 0


def test_a_signal_stops_an_update(store: drumlin.Store, alarm: Callable[[float, Callable[[], object]], None]) -> None:
    store.table("t").create(SCHEMA, sort=["n"])
    alarm(0.2, lambda: store.replace("t", batches(100, 0.02)))
    assert len(store.table("t").versions()) == 1


# faults: stopped call x upsert, look-up
def test_a_signal_stops_what_is_done_by_key(
    store: drumlin.Store, alarm: Callable[[float, Callable[[], object]], None]
) -> None:
    store.table("t").create(SCHEMA, key=["n"])
    store.table("t").upsert({"n": 1, "s": "x"})
    table = store.table("t")
    for call in (table.upsert, table.insert, table.delete_keys, table.get_many):
        drawn: list[int] = []
        alarm(0.2, partial(call, batches(1000, 0.02, drawn)))
        assert len(drawn) < 500
        assert store.read("t").to_arrow().to_pylist() == [{"n": 1, "s": "x"}]
        assert len(store.table("t").versions()) == 1


# faults: stopped call x read, delete
def test_a_signal_stops_a_read(store: drumlin.Store, alarm: Callable[[float, Callable[[], object]], None]) -> None:
    store.write("t", batches(100))
    for _ in range(4):
        store.append("t", store.read("t"))
    assert store.table("t").stat().rows == 16_000_000
    where = " and ".join(f"s not like '%{n}x%'" for n in range(50))
    for read in (
        lambda: store.read("t", where=where).to_arrow(),
        lambda: sum(batch.num_rows for batch in store.read("t", where=f"not ({where})")),
        lambda: store.table("t").delete(f"not ({where})"),
    ):
        start = time.monotonic()
        alarm(0.1, read)
        assert time.monotonic() - start < 3
    assert len(store.table("t").versions()) == 5
    assert store.read("t", limit=1).to_arrow().num_rows == 1


# faults: stopped call x write
def test_ctrl_c(folder: str, tmp_path: Path) -> None:
    program = """
        import sys, time, drumlin, pyarrow as pa
        store = drumlin.open(sys.argv[1])
        store.write("before", {"n": [1]})
        schema = pa.schema([("n", pa.int64())])
        def batches():
            for at in range(10_000):
                if at == 3:
                    print("started", flush=True)
                time.sleep(0.01)
                yield pa.record_batch({"n": range(at * 50_000, at * 50_000 + 50_000)}, schema=schema)
        try:
            store.write("t", pa.RecordBatchReader.from_batches(schema, batches()))
        except KeyboardInterrupt:
            # The store is usable, and nothing was committed.
            assert not store.tree.exists("t")
            assert store.write("after", {"n": [1]}).version == 0
            report = store.verify()
            assert report.ok, report
            store.close()
            print("interrupted", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "started\n"
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (output, process.returncode) == ("interrupted\n", 0)
    with drumlin.open(folder) as store:
        assert store.tables() == ["after", "before"]
        assert store.reclaim().failures == []
        assert store.verify().orphans == []
