"""The package for asyncio: the same names, an event loop that is never held up, and cancellation that stops calls."""

import asyncio
import contextlib
import inspect
import itertools
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drumlin
from drumlin import _drumlin, aio
from drumlin._nouns.tables import Tables
from drumlin.aio import _calls, _handles

PYTHON = Path(__file__).parents[1]
#: The classes whose names are there, and those of asyncio.
PAIRS = {
    drumlin.ChangeFeed: aio.ChangeFeed,
    drumlin.Dataset: aio.Dataset,
    drumlin.Diff: aio.Diff,
    drumlin.Groups: aio.Groups,
    drumlin.Lookup: aio.Lookup,
    drumlin.Merge: aio.Merge,
    drumlin.ProjectionView: aio.ProjectionView,
    drumlin.Result: aio.Result,
    drumlin.Results: aio.Results,
    drumlin.RowFeed: aio.RowFeed,
    drumlin.Joined: aio.Joined,
    drumlin.Windows: aio.Windows,
    drumlin.Store: aio.Store,
    Tables: aio.Tables,
    drumlin.Table: aio.Table,
    drumlin.Ticket: aio.Ticket,
    drumlin.Transaction: aio.Transaction,
    drumlin.Tree: aio.Tree,
}
#: Methods that give a handle, so that what it is asked for is awaited.
GIVING = {
    "Dataset": {"where", "select", "limit", "group_by", "resample", "join_asof", "join_window", "to_batches"},
    "Joined": {"to_batches"},
    "Result": {"where", "select", "head", "tail", "group_by", "resample", "to_batches"},
    **{key: {"agg"} for key in ("Groups", "Windows")},
    "Lookup": {"rows", "keys"},
    "Merge": {"when_matched", "when_not_matched", "when_not_matched_by_source"},
    "Diff": {"batches"},
    "Table": {"read", "diff", "follow", "merge", "get_many", "group_by", "resample"},
    "Tables": {"table", "tree", "scan", "read", "read_many"},
    "Tree": {"presence", "projection"},
    "Store": {"changes", "sink", "ticket", "transaction", "with_message"},
}

Main = Callable[[], Coroutine[Any, Any, None]]


def run(main: Main) -> None:
    asyncio.run(asyncio.wait_for(main(), 120))


#: How many batches a slow frame has: far more than any call draws that is stopped.
BATCHES = 100


class Slow:
    """Rows that take ``seconds`` to come, and how many batches of them were drawn."""

    def __init__(self, seconds: float, batches: int = BATCHES) -> None:
        self.seconds, self.batches, self.drawn = seconds, batches, 0
        #: Set once some were drawn.
        self.begun = threading.Event()

    def reader(self) -> pa.RecordBatchReader:
        batch = pa.record_batch({"n": range(20_000)})

        def make() -> Iterator[pa.RecordBatch]:
            for _ in range(self.batches):
                time.sleep(self.seconds / self.batches)
                self.drawn += 1
                if self.drawn > 1:
                    self.begun.set()
                yield batch

        return pa.RecordBatchReader.from_batches(batch.schema, make())


def slow(seconds: float, batches: int = BATCHES) -> pa.RecordBatchReader:
    return Slow(seconds, batches).reader()


@contextlib.asynccontextmanager
async def heartbeat(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Checks that the event loop is held up by no call: each waits, on its thread, until the loop has gone on, which
    would then be in vain."""
    beats, calls, loop = itertools.count(), itertools.count(), threading.get_ident()
    seen, moved = [0], threading.Condition()

    async def beat() -> None:
        while True:
            with moved:
                seen[0] = next(beats)
                moved.notify_all()
            await asyncio.sleep(0.001)

    def goes_on() -> None:
        with moved:
            until = seen[0] + 2
            assert moved.wait_for(lambda: seen[0] >= until, 60), "a call holds up the event loop"

    stoppable = _drumlin.stoppable

    def watched(function: Callable[[], object], check: Callable[[], None]) -> object:
        next(calls)
        assert threading.get_ident() != loop
        goes_on()
        answer = stoppable(function, check)
        goes_on()
        return answer

    monkeypatch.setattr(_drumlin, "stoppable", watched)
    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
    assert next(calls) > 0


def test_a_call_on_the_threads_of_the_loop_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with heartbeat(monkeypatch):
            with pytest.raises(AssertionError):
                _drumlin.stoppable(lambda: None, lambda: None)

    run(main)


def test_every_name_is_there_with_its_arguments() -> None:
    for sync, awaited in PAIRS.items():
        names = set(_handles.public(sync))
        assert names, sync
        mine = {name for name in dir(awaited) if not name.startswith("_")} - {"of", "giving"}
        assert mine == names, sync
        for name in names:
            one, other = inspect.getattr_static(sync, name), inspect.getattr_static(awaited, name)
            if not callable(one):
                assert isinstance(other, property), (sync, name)
                continue
            assert inspect.signature(one).parameters.keys() == inspect.signature(other).parameters.keys(), name
            assert (other.__doc__ or "").split("\n")[0] == (one.__doc__ or "").split("\n")[0]
            shared = GIVING["Tables"] if issubclass(awaited, aio.Tables) else set()
            giving = GIVING.get(awaited.__name__, set()) | shared
            assert inspect.iscoroutinefunction(other) == (name not in giving), (awaited, name)
    # What has no class of its own here is a value: it does no work.
    values = {"Batch", "Changes", "Change", "Options", "RowChanges", "Split", "Splits", "Token"}
    kinds = {
        getattr(drumlin, name)
        for name in set(drumlin.__all__) - values
        if isinstance(getattr(drumlin, name), type) and hasattr(getattr(drumlin, name), "to_arrow")
    }
    assert kinds <= set(PAIRS)
    assert set(inspect.signature(aio.open).parameters) == set(inspect.signature(drumlin.open).parameters)
    assert set(inspect.signature(aio.salvage).parameters) == set(inspect.signature(drumlin.salvage).parameters)


def test_the_stubs_are_those_of_the_classes() -> None:
    command = [sys.executable, str(PYTHON / "aio_stubs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run make build, or python/aio_stubs.py: {done.stderr}"


USER = """
import asyncio
import datetime as dt
import drumlin
import drumlin.aio


async def main() -> None:
    async with drumlin.aio.open("memory://", mode="create") as store:
        version: drumlin.Version = await store.write("t", {"n": [1]}, metadata={"by": "me"})
        count: int = await store.read("t", where="n > 0").num_rows
        result = await store.table("t").read(as_of=version.version)
        seq: int = await store.seq
        async for batch in result:
            print(batch)
        async with store.transaction(message="m") as tx:
            await tx.table("t").append(result)
        feed = await store.changes(0)
        commit: drumlin.Commit = await anext(feed)
        changes: drumlin.RowChanges = await anext(await store.table("t").follow("beginning"))
        report = await store.table("t").merge({"n": [1]}, on=["n"]).when_matched(update=True).execute()
        deleted: int = report.deleted
        answer: str = await store.transact(work)
        versions: dict[str, int | None] = await store.scan("*").where("n > 1").versions
        store.write("t", 5)  # error: a coroutine that is not awaited, and no frame
        (await store.table("t").stat()).nothing  # error: there is no such figure
        print(count, seq, commit, changes, deleted, answer, versions)


async def work(tx: drumlin.aio.Transaction) -> str:
    await tx.tree.put("a", 1)
    return "done"


asyncio.run(main())
"""


def test_code_of_users_is_checked(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(tmp_path / "cache"),
        str(tmp_path / "user.py"),
    ]
    environment = {"MYPYPATH": str(PYTHON), "PATH": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False)
    lines = [at for at, line in enumerate(USER.split("\n"), 1) if "# error" in line]
    told = [line for line in done.stdout.splitlines() if "user.py:" in line and ": error:" in line]
    assert {int(line.split(":")[1]) for line in told} == set(lines), done.stdout + done.stderr


def test_the_same_is_done(folder: str) -> None:
    async def main() -> None:
        async with aio.open(folder, writer="me") as store:
            assert (await store.write("t", {"n": [1, 2, 3]})).rows == 3
            assert (await store.read("t").to_arrow())["n"].to_pylist() == [1, 2, 3]
            assert (await store.read("t", where="n > 1").to_pandas())["n"].tolist() == [2, 3]
            assert await store.uri == folder
            result = await store.read("t")
            await store.append("t", {"n": [4]})
            # A result that was awaited stays as it was; one that was not is read when it is.
            assert (await result.num_rows, await store.read("t").num_rows) == (3, 4)
            assert [batch.num_rows async for batch in result] == [3]
            assert await store.scan("*").versions == {"t": 1}
            groups = store.scan("*").where("n > 1").group_by("n").agg(rows="count")
            assert (await groups.to_arrow()).num_rows == 3
            assert (await store.read_many(["t"]).to_arrow())["t"].num_rows == 4
            many = await store.read_many(["t"])
            assert await many["t"].num_rows == 4
            await store.write_many({"copy": store.read("t"), "more": {"n": [1]}})
            assert (await store.table("copy").stat()).rows == 4
            people = store.table("people")
            await people.create({"id": "int64", "name": "string"}, key=["id"])
            await people.upsert({"id": [1, 2], "name": ["Ada", "Grace"]})
            assert await people.get(2) == {"id": 2, "name": "Grace"}
            lookup = people.get_many([2, 5])
            assert (await lookup.found).to_pylist() == [True, False]
            assert [row async for row in lookup] == [{"id": 2, "name": "Grace"}, None]
            assert await lookup.rows.num_rows == 2
            merge = people.merge({"id": [2, 3], "name": ["Grace H.", "Alan"]})
            merge.when_matched(update=True)
            merge.when_not_matched(insert=True)
            report = await merge.execute()
            assert (report.updated, report.inserted) == (1, 1)
            assert [row.num_rows async for row in store.table("t").diff(0)] == [1]
            assert [row.num_rows async for row in store.table("t").diff(0).batches()] == [1]
            backup = aio.open("memory://")
            assert (await store.copy_to(backup, "t")).tables == ["t"]
            assert await backup.tables() == ["t"]
            await store.tree.put_many({"a/x": 1, "a/y": 2})
            assert await store.tree.fold("a/*", lambda total, _, node: total + node.payload, 0) == 3
            assert await store.tree.projection("p", "a/*", key="name").keys() == ["x", "y"]
            async with store.ticket(["t"]) as ticket:
                tokens = [await ticket.stage("t", {"n": [5]})]
                assert (await store.commit(tokens, ticket=ticket)).versions == {"t": 2}
            assert (await store.verify(deep=True)).ok
        with pytest.raises(drumlin.Closed):
            await store.tables()

    run(main)


def test_transactions() -> None:
    async def main() -> None:
        async with aio.open("memory://") as store:
            async with store.transaction() as tx:
                await tx.write("t", {"n": [1]})
                await tx.tree.put("a", 1)
                assert await tx.read("t").version is None
                assert await store.tables() == []
            assert await store.tables() == ["t"]

            async def fails(end: Callable[[aio.Transaction], Awaitable[object]]) -> None:
                async with store.transaction() as tx:
                    await tx.tree.put("a", await tx.tree.get("a"))
                    await tx.append("t", {"n": [2]})
                    await end(tx)

            async def divide(_: aio.Transaction) -> None:
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await fails(divide)
            with pytest.raises(drumlin.Abort):
                await fails(lambda tx: tx.abort("no"))
            with pytest.raises(drumlin.Conflict):
                await fails(lambda _: store.tree.put("a", 1))
            assert await store.read("t").num_rows == 1
            attempts = []

            async def count(tx: aio.Transaction) -> int:
                attempts.append(await tx.tree.get("a"))
                if len(attempts) == 1:
                    await store.tree.put("a", 5)
                await tx.tree.put("a", attempts[-1] + 1)
                return attempts[-1]

            assert await store.transact(count) == 5
            assert (attempts, await store.tree.get("a")) == ([1, 5], 6)

    run(main)


def test_errors_are_raised_where_it_is_awaited() -> None:
    async def main() -> None:
        store = aio.open("memory://")
        missing = store.read("nothing")
        assert "not awaited yet" in repr(missing)
        with pytest.raises(drumlin.NotFound):
            await missing
        with pytest.raises(TypeError, match="(n|path) must be a"):
            await store.write(5, {"n": [1]})  # type: ignore[arg-type]
        with pytest.raises(drumlin.InvalidArgument):
            store.table("t").merge({"n": [1]}).when_matched(update=True, delete=True)
        with pytest.raises(drumlin.InvalidArgument, match="await"):
            store.read_many(["t"])["t"]
        with pytest.raises(drumlin.NotFound):
            await aio.open("/nowhere/at/all", mode="write")
        await store.close()

    run(main)


def test_the_event_loop_is_never_held_up(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with heartbeat(monkeypatch), aio.open(folder) as store:
            await store.write("t", slow(0.3))
            await store.read("t").to_arrow()
            await asyncio.gather(*(store.table("t").delete(f"n = {n}") for n in range(5)))
            await store.checkpoint()
            await store.reclaim()
            await store.verify(deep=True)

    run(main)


def test_more_calls_than_threads(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with heartbeat(monkeypatch), aio.open(folder) as store:
            await store.tree.put("n", 0)
            feeds = [await store.changes() for _ in range(2 * _calls.THREADS)]
            # Those that wait for others take no thread from the pool.
            waiting = [asyncio.create_task(anext(feed)) for feed in feeds]
            await asyncio.sleep(0.2)
            calls = [store.tree.put(f"a/{n}", n) for n in range(5 * _calls.THREADS)]
            await asyncio.gather(*calls)
            assert await store.tree.count("a/*") == 5 * _calls.THREADS
            assert {commit.seq for commit in await asyncio.gather(*waiting)} == {waiting[0].result().seq}
            pool = [thread for thread in threading.enumerate() if thread.name.startswith("drumlin-aio_")]
            assert 1 <= len(pool) <= _calls.THREADS

    run(main)


def test_feeds(folder: str) -> None:
    async def main() -> None:
        async with aio.open(folder) as store:
            feed = await store.changes()
            seen = []

            async def follow() -> None:
                async for commit in feed:
                    seen.extend(event.path for event in commit.events)

            following = asyncio.create_task(follow())
            for name in "abc":
                await store.tree.put(name, 1)
            while len(seen) < 3:
                await asyncio.sleep(0.01)
            assert seen == ["a", "b", "c"]
            assert not following.done()
            following.cancel()
            with pytest.raises(asyncio.CancelledError):
                await following
            assert await ended()
            assert await (await store.changes()).next(timeout=0.05) is None

    run(main)


def test_callbacks_of_triggers_run_in_the_loop(folder: str) -> None:
    async def main() -> None:
        async with aio.open(folder) as store:
            seen = []

            async def callback(event: drumlin.Event) -> None:
                seen.append((event.path, await store.tree.get(event.path), threading.get_ident()))

            name = await store.tree.on("c/**", callback)
            await store.tree.put("c/x", 7)
            assert await store.tree.wait_for_triggers()
            assert seen == [("c/x", 7, threading.get_ident())]
            await store.tree.off(name)

    run(main)


async def ended() -> bool:
    """Waits until no call is under way, whether or not somebody waits for it; ``run`` says for how long."""
    while _calls._under_way:
        await asyncio.sleep(0.005)
    return True


async def stopped(call: Awaitable[object], begun: Callable[[], bool]) -> None:
    """Cancels a call once it has ``begun``."""
    task = asyncio.ensure_future(call)
    while not begun():
        assert not task.done()
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def stopped_drawing(call: Callable[[pa.RecordBatchReader], Awaitable[object]]) -> None:
    """Cancels a call that draws rows: it ends long before they do."""
    rows = Slow(60)
    await stopped(call(rows.reader()), rows.begun.is_set)
    assert await ended()
    assert rows.drawn < BATCHES / 2


def test_cancelling_stops_what_is_under_way(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with heartbeat(monkeypatch), aio.open(folder) as store:
            await store.write("t", {"n": [1]})
            await stopped_drawing(lambda rows: store.write("t", rows))
            await stopped_drawing(lambda rows: store.append("t", rows))
            await stopped_drawing(lambda rows: store.write_many({"a": rows, "b": slow(60)}))
            await stopped_drawing(lambda rows: store.transact(lambda tx: tx.write("t", rows)))
            feed = await store.changes()
            await stopped(feed.next(), lambda: len(_calls._under_way) > 0)
            assert await ended()
            # Nothing is left of them.
            assert await store.tables() == ["t"]
            assert await store.read("t").num_rows == 1
            assert [version.version for version in await store.table("t").versions()] == [0]
            assert (await store.verify(deep=True)).ok

    run(main)


def test_a_long_read_is_stopped(folder: str) -> None:
    async def main() -> None:
        async with aio.open(folder) as store:
            await store.write("t", slow(0.0, 500))
            for call in (
                lambda: store.table("t").update({"n": "n * 2 + 1"}),
                lambda: store.verify(deep=True),
                lambda: store.scan("t").group_by("n").agg(rows="count").to_arrow(),
            ):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.02):
                        await call()
            versions = await store.table("t").versions()
            expected = 10_000_000 if len(versions) in (1, 2) else -1
            assert await store.read("t").num_rows == expected

    run(main)


def test_a_timeout_is_a_timeout(folder: str) -> None:
    async def main() -> None:
        async with aio.open(folder) as store:
            rows = Slow(60)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await store.write("t", rows.reader())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(store.write("t", slow(60)), 0.3)
            assert await ended()
            assert rows.drawn < BATCHES
            assert await store.tables() == []

    run(main)


@pytest.mark.parametrize("after", [0.0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08])
def test_a_cancelled_write_is_whole_or_not_at_all(folder: str, after: float) -> None:
    async def main() -> None:
        rows = pa.table({"n": range(300_000)})
        async with aio.open(folder) as store:
            await store.write("t", {"n": [0]})
            for _ in range(5):
                before = await store.read("t").num_rows
                task = asyncio.create_task(store.append("t", rows))
                await asyncio.sleep(after)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                assert await store.read("t").num_rows in (before, before + 300_000)
            assert (await store.verify(deep=True)).ok

    run(main)


def test_a_call_that_cannot_be_stopped_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_calls, "PATIENCE", 0.1)
    hold, begun = threading.Event(), threading.Event()

    def held() -> None:
        begun.set()
        assert hold.wait(100)

    async def main() -> None:
        await stopped(_calls.run(held), begun.is_set)
        # Nobody waits for it any more, and it is still there.
        assert len(_calls._under_way) == 1
        hold.set()
        assert await ended()

    run(main)


def test_a_cancelled_transaction_leaves_nothing(folder: str) -> None:
    async def main() -> None:
        async with aio.open(folder) as store:

            async def work(rows: pa.RecordBatchReader) -> None:
                async with store.transaction() as tx:
                    await tx.tree.put("a", 1)
                    await tx.write("t", rows)

            await stopped_drawing(work)
            assert (await store.tree.exists("a"), await store.tables()) == (False, [])

    run(main)


def test_a_task_that_is_cancelled_while_it_opens(folder: str) -> None:
    async def main() -> None:
        store = aio.open(folder)
        tasks = [asyncio.create_task(store.tables()) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert answers[1:] == [[], []]
        await store.close()
        # The same is opened in another loop.

    run(main)
    run(main)


def test_ctrl_c_ends_the_loop_and_the_call(tmp_path: Path) -> None:
    program = """
import asyncio, sys, threading
sys.path.insert(0, sys.argv[2])
import drumlin.aio, test_aio

rows = test_aio.Slow(60)
threading.Thread(target=lambda: (rows.begun.wait(), print("begun", flush=True)), daemon=True).start()

async def main():
    async with drumlin.aio.open(sys.argv[1]) as store:
        await asyncio.gather(store.write("t", rows.reader()), (await store.changes()).next())

try:
    asyncio.run(main())
except KeyboardInterrupt:
    with drumlin.open(sys.argv[1]) as store:
        print("stopped", store.tables(), rows.drawn < rows.batches)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "s"), str(PYTHON / "tests")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        running.send_signal(signal.SIGINT)
        assert running.stdout.read() == "stopped [] True\n"
        assert running.wait() == 0


def test_handles_are_not_pickled() -> None:
    with pytest.raises(TypeError, match="pickle that of drumlin"):
        pickle.dumps(aio.open("memory://"))
