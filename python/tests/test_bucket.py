"""Stores in buckets, on real servers on loopback, and shared folders: several processes write, the network fails."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import s3
from servers.faulty import proxy

import drumlin

HERE = Path(__file__).resolve().parent
NOW = dt.timedelta(0)


@pytest.fixture(scope="module", params=sorted(s3.PACKAGES))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    if s3.build(request.param) is None:
        message = f"NO GO: stores in buckets are not tested against {request.param}"
        print(f"\n*** {message} ***", file=sys.__stderr__, flush=True)
        pytest.skip(message)
    with s3.serve(request.param, tmp_path_factory.mktemp(request.param) / "data") as port:
        yield port


@pytest.fixture
def place(server: int, request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """A separate prefix in the server's bucket, and the options to open it."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return f"s3://test/{name}", s3.options(server)


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from drumlin._cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


def test_a_store_in_a_bucket_does_what_others_do(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    with drumlin.open(uri, storage_options=options, block_grace=NOW) as store:
        store.write("prices/AAPL", {"day": [1, 2], "close": [187.5, 190.0]}, sort=["day"])
        store.append("prices/AAPL", {"day": [3], "close": [191.0]})
        store.write_many({f"many/{n}": {"n": list(range(n, n + 50))} for n in range(100)})
        pa = pytest.importorskip("pyarrow")
        store.table("t").create(pa.schema([("id", pa.int64()), ("name", pa.string())]), key=["id"])
        store.table("t").upsert([{"id": n, "name": f"n{n}"} for n in range(100)])
        store.snapshot("eod", "**")
        store.tree.put("config/a", {"x": 1})
        store.table("t").delete_keys([5])
        with store.transaction() as tx:
            tx.tree.put("config/b", 2)
            tx.append("prices/AAPL", {"day": [4], "close": [1.0]})
    with drumlin.open(uri, storage_options=options, mode="read") as store:
        assert store.read("prices/AAPL").to_arrow()["day"].to_pylist() == [1, 2, 3, 4]
        assert store.read("prices/AAPL", as_of=0).to_arrow()["day"].to_pylist() == [1, 2]
        assert store.read("t", as_of="eod").to_arrow().num_rows == 100
        assert store.table("t").get_many([4, 5]).found.to_pylist() == [True, False]
        assert store.tree.get("config/b") == 2
        assert all(
            result.to_arrow().num_rows == 50 for result in store.read_many([f"many/{n}" for n in range(100)]).values()
        )
    with drumlin.open(uri, storage_options=options, block_grace=NOW) as store:
        store.checkpoint()
        dropped, reclaimed = store.drop_and_reclaim("many/*")
        assert len(dropped.paths) == 100
        assert reclaimed.failures == []
        assert store.verify().ok
        store.drop_snapshot("eod")
        store.drop("**")
        assert store.reclaim(audit=True).failures == []
        assert store.stat().blocks == 0
        assert store.verify().orphans == []


@pytest.mark.parametrize("whole", [False, True], ids=["below a prefix", "all of a bucket"])
def test_a_purge_examines_every_object(place: tuple[str, dict[str, str]], whole: bool) -> None:
    uri, options = place
    uri = "s3://whole" if whole else uri
    with drumlin.open(uri, storage_options=options) as store:
        store.write("t", {"id": [1, 2, 3]})
        store.tree.put("n", 1)
        receipt = store.purge("t", "id = 2")
        assert receipt.complete, receipt
        stat = store.stat()
        # The root, too, which is in no folder.
        assert receipt.proof.bytes > stat.log_bytes + stat.block_bytes
        assert store.read("t").to_arrow()["id"].to_pylist() == [1, 3]
        assert store.verify(deep=True).ok


# faults: secrets x open
def test_the_doctor_finds_the_bucket_fit(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    told = cli("doctor", uri, "--json", *(f"--storage-option={name}={value}" for name, value in options.items()))
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert found["fit"]
    assert len(found["findings"]) >= 6
    assert abs(found["clock_ahead_micros"]) < 10_000_000
    wrong = {**options, "aws_secret_access_key": "canary-wrong-9876"}
    told = cli("doctor", uri, *(f"--storage-option={name}={value}" for name, value in wrong.items()))
    assert told.returncode != 0
    assert "canary" not in told.stdout + told.stderr


# faults: secrets x open, nodes
def test_credentials_are_never_told(place: tuple[str, dict[str, str]], capfd: pytest.CaptureFixture[str]) -> None:
    uri, options = place
    told = []
    for wrong in (
        {"aws_secret_access_key": "canary-wrong-9876"},
        {"endpoint": "http://127.0.0.1:1"},
        {"colour": "canary-blue-1234"},
        {"region": ""},
    ):
        try:
            drumlin.open(uri + "/elsewhere", storage_options={**options, **wrong}).close()
        except drumlin.Error as error:
            told += [str(error), repr(error), repr(error.__cause__)]
    with drumlin.open(uri + "/here", storage_options=options) as store:
        told += [repr(store), str(store.stat())]
        store.tree.put("a", 1)
    out = capfd.readouterr()
    assert len(told) > 4
    assert "canary" not in "".join(told) + out.out + out.err


def test_a_bucket_that_is_not_there_is_reported(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    with pytest.raises(drumlin.Error):
        drumlin.open("s3://nowhere/x", storage_options=options)
    with pytest.raises(drumlin.NotFound, match="there is no store at"):
        drumlin.open(uri, storage_options=options, mode="read")
    with pytest.raises(drumlin.InvalidArgument, match="durable at once"):
        drumlin.open(uri, storage_options=options, sync="interval")


# Several processes.


def prepare(uri: str, options: dict[str, Any]) -> None:
    pa = pytest.importorskip("pyarrow")
    with drumlin.open(uri, **options) as store:
        store.tree.put_many({"seq": 0, **{f"k/{n}": 0 for n in range(5)}})
        store.table("t").create(pa.schema([("id", pa.int64()), ("seq", pa.int64())]), key=["id"])
        store.write_many({f"rows/{n}": {"who": [0], "n": [0]} for n in range(4)})


def start(uri: str, options: dict[str, Any], who: int, count: int, folder: Path) -> subprocess.Popen[bytes]:
    journal = folder / f"{who}.journal"
    command = [sys.executable, str(HERE / "servers" / "worker.py"), uri, json.dumps(options)]
    with open(folder / f"{who}.out", "wb") as out:
        return subprocess.Popen([*command, str(who), str(count), str(journal)], stdout=out, stderr=out)


def check_history(uri: str, options: dict[str, Any], folder: Path, workers: int) -> Counter[str]:
    """The journals show one order of all operations, in which each that ended before another began comes first; what
    was acknowledged is there, and each of the others is there as a whole or not at all."""
    done: dict[int, tuple[float, float, int]] = {}
    unsure: set[int] = set()
    counts: Counter[str] = Counter()
    for who in range(1, workers + 1):
        begun: dict[int, float] = {}
        journal = folder / f"{who}.journal"
        # One that was killed before it began has none.
        lines = journal.read_text().splitlines() if journal.exists() else []
        for what, n, at, seq in (json.loads(line) for line in lines if line.endswith("]")):
            counts[what] += 1
            operation = who * 100_000 + n
            if what == "start":
                begun[n] = at
                unsure.add(operation)
            elif what in ("done", "failed"):
                unsure.discard(operation)
                if what == "done":
                    done[operation] = (begun[n], at, seq)
    with drumlin.open(uri, **options) as store:
        total = store.tree.get("seq")
        rows = store.read("t").to_arrow().to_pydict()
        per_key = sum(store.tree.get(f"k/{n}") for n in range(5))
        appended = store.read_many([f"rows/{n}" for n in range(4)])
        batches = Counter(
            (w, n) for table in appended.values() for w, n in zip(*table.to_arrow().to_pydict().values(), strict=True)
        )
        assert store.verify().ok
    order = dict(zip(rows["id"], rows["seq"], strict=True))
    assert per_key == total == len(order), "each operation counted once, everywhere"
    assert sorted(order.values()) == list(range(total)), "one order"
    for operation, (_, _, seq) in done.items():
        assert order.get(operation) == seq, f"operation {operation} was acknowledged"
    assert set(order) - set(done) <= unsure, "nothing is there that failed"
    for operation in order:
        who, n = divmod(operation, 100_000)
        assert batches[who, n] == (50 if n % 10 == 3 else 0), "whole"
    latest = -1.0
    for _, (begin, end, _) in sorted(done.items(), key=lambda item: item[1][2]):
        assert end >= latest, "what ended before another began comes first"
        latest = max(latest, begin)
    return counts


def work_together(
    uri: str,
    options: dict[str, Any],
    folder: Path,
    processes: int,
    count: int,
    kills: int,
) -> Counter[str]:
    """Runs processes, some of which are stopped for a while, or killed and replaced."""
    rng = random.Random(7)
    running = {who: start(uri, options, who, count, folder) for who in range(1, processes + 1)}
    workers, deadline = processes, time.monotonic() + 240
    while any(process.poll() is None for process in running.values()):
        assert time.monotonic() < deadline, [(folder / f"{who}.out").read_text()[-2000:] for who in running]
        time.sleep(0.25)
        alive = [who for who, process in running.items() if process.poll() is None]
        if not alive:
            break
        who = rng.choice(alive)
        if kills and rng.random() < 0.4:
            kills -= 1
            victim = running.pop(who)
            victim.kill()
            victim.wait()
            workers += 1
            running[workers] = start(uri, options, workers, count // 2, folder)
        elif rng.random() < 0.4:
            os.kill(running[who].pid, signal.SIGSTOP)
            time.sleep(rng.random() / 2)
            os.kill(running[who].pid, signal.SIGCONT)
    for who, process in running.items():
        assert process.wait() == 0, (folder / f"{who}.out").read_text()[-3000:]
    return check_history(uri, options, folder, workers)


def no_orphans(uri: str, options: dict[str, Any]) -> None:
    with drumlin.open(uri, **options) as store:
        assert store.reclaim(fence_idle=NOW, audit=True).failures == []
        assert store.verify().orphans == []
        assert store.reclaim(audit=True).orphans == 0


def test_processes_share_a_bucket(server: int, place: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    uri, storage = place
    options = {"storage_options": storage}
    prepare(uri, options)
    counts = work_together(uri, options, tmp_path, 4, 40, 0)
    assert counts["done"] == 160
    no_orphans(uri, {**options, "block_grace": NOW})


def test_processes_share_a_folder(tmp_path: Path) -> None:
    uri, options = str(tmp_path / "store"), {"shared": True}
    prepare(uri, options)
    (tmp_path / "journals").mkdir()
    counts = work_together(uri, options, tmp_path / "journals", 4, 60, 2)
    assert counts["done"] > 200
    assert counts["failed"] == 0
    no_orphans(uri, {**options, "block_grace": NOW})


# faults: lost answer, paused process, crash, secrets x write, upsert, nodes, transaction
def test_processes_killed_and_paused_on_a_network_that_fails(
    server: int, place: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    uri, storage = place
    prepare(uri, {"storage_options": storage})
    with proxy(server, 3) as faulty:
        faulty.set(refuse=0.02, cut=0.01, lose=0.02, error=0.01, late=0.02, truncate=0.01, partial=0.1)
        options = {"storage_options": {**storage, "endpoint": f"http://127.0.0.1:{faulty.port}"}}
        counts = work_together(uri, options, tmp_path, 4, 420, 4)
        faulty.settle()
    assert counts["done"] > 500
    assert counts["start"] > 900
    no_orphans(uri, {"storage_options": storage, "block_grace": NOW})
    for out in tmp_path.glob("*.out"):
        assert s3.SECRET not in out.read_text()


def test_requests_are_few(server: int, place: tuple[str, dict[str, str]]) -> None:
    uri, storage = place
    with proxy(server) as counting:
        options = {"storage_options": {**storage, "endpoint": f"http://127.0.0.1:{counting.port}"}, "block_grace": NOW}

        def requests(work: Any) -> Counter[str]:
            before = Counter(counting.count())
            work()
            return Counter(counting.count()) - before

        with drumlin.open(uri, **options) as store:
            store.write("warm", {"n": [1]})
            rng = random.Random(1)
            tables = {f"many/{n}": {"n": [rng.random() for _ in range(100)]} for n in range(1000)}
            assert requests(lambda: store.write_many(tables))["PUT"] <= 20
            dropped = requests(lambda: store.drop_and_reclaim("many/*"))
            assert dropped["PUT"] == 2
            assert dropped["POST?delete"] + dropped["DELETE"] == 1
            store.write("one", {"n": [rng.random() for _ in range(20_000)]})
            assert requests(lambda: store.tree.put("n", 1))["PUT"] == 1
        with drumlin.open(uri, **options) as store:
            assert requests(lambda: store.read("one").to_arrow())["GET"] == 1


# faults: partial deletion x drop, reclaim
def test_deletions_that_fail_in_part_are_told_and_done_again(server: int, place: tuple[str, dict[str, str]]) -> None:
    uri, storage = place
    with proxy(server) as faulty:
        options = {"storage_options": {**storage, "endpoint": f"http://127.0.0.1:{faulty.port}"}, "block_grace": NOW}
        # Blocks of their own.
        with drumlin.open(uri, inline_bytes=0, **options) as store:
            for n in range(50):
                store.write(f"t/{n}", {"n": [n]})
            faulty.set(partial=1.0)
            dropped, reclaimed = store.drop_and_reclaim("t/*")
            assert len(dropped.paths) == 50
            assert (reclaimed.blocks, len(reclaimed.failures)) == (45, 5)
            assert all(name.startswith("blocks/") for name, _ in reclaimed.failures)
            assert store.stat().condemned == 5
            again = store.reclaim()
            assert (again.blocks, len(again.failures)) == (4, 1)
            faulty.heal()
            last = store.reclaim()
            assert (last.blocks, last.failures) == (1, [])
            assert store.stat().condemned == 0
    no_orphans(uri, {"storage_options": storage, "block_grace": NOW})


# faults: one thread x write, read, delete, checkpoint, drop, reclaim, verify
def test_one_thread_of_each_kind_is_enough(place: tuple[str, dict[str, str]]) -> None:
    uri, storage = place
    with drumlin.open(uri, storage_options=storage, io_threads=1, cpu_threads=1, block_grace=NOW) as store:
        store.write_many({f"t/{n}": {"n": list(range(1000))} for n in range(50)})
        assert [r.to_arrow().num_rows for r in store.read_many([f"t/{n}" for n in range(50)]).values()] == [1000] * 50
        store.table("t/1").delete("n < 900")
        store.checkpoint()
        assert store.drop_and_reclaim("t/*")[1].failures == []
        assert store.verify().ok


def test_answers_that_break_off_are_asked_for_again(server: int, place: tuple[str, dict[str, str]]) -> None:
    uri, storage = place
    with drumlin.open(uri, storage_options=storage, inline_bytes=0) as store:
        store.write_many({f"t/{n}": {"n": list(range(100))} for n in range(20)})
    with proxy(server, 5) as faulty:
        faulty.set(truncate=0.4)
        options = {"storage_options": {**storage, "endpoint": f"http://127.0.0.1:{faulty.port}"}, "block_grace": NOW}
        with drumlin.open(uri, **options) as store:
            for _ in range(3):
                assert store.verify().orphans == []
                assert store.reclaim(audit=True).failures == []
            tables = store.read_many(store.tables("t/*")).to_arrow()
            assert [table.num_rows for table in tables.values()] == [100] * 20


def test_an_endpoint_of_the_environment(place: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    uri, options = place
    for variable in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3"):
        with monkeypatch.context() as environment:
            environment.setenv(variable, options["endpoint"])
            environment.setenv("AWS_REGION", options["region"])
            environment.setenv("AWS_ACCESS_KEY_ID", options["aws_access_key_id"])
            environment.setenv("AWS_SECRET_ACCESS_KEY", options["aws_secret_access_key"])
            with drumlin.open(uri) as store:
                store.tree.put("n", variable)
                assert store.tree.get("n") == variable


def test_a_profile_gives_credentials(
    place: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Keys in a file and those that a program prints, named by an option, a variable, or not at all."""
    uri, options = place
    key, secret = options["aws_access_key_id"], options["aws_secret_access_key"]
    folder = tmp_path / ".aws"
    folder.mkdir()
    printed = json.dumps({"Version": 1, "AccessKeyId": key, "SecretAccessKey": secret})
    (tmp_path / "printed.json").write_text(printed)
    where = f"region = {options['region']}\nendpoint_url = {options['endpoint']}\n"
    (folder / "credentials").write_text(
        f"[kept]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
        f"[wrong]\naws_access_key_id = {key}\naws_secret_access_key = canary-wrong-9876\n"
    )
    (folder / "config").write_text(
        f"[default]\ncredential_process = cat '{tmp_path}/printed.json'\n{where}"
        f"[profile kept]\n{where}[profile wrong]\n{where}"
    )
    for variable in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))
    with drumlin.open(uri) as store:
        store.write("t", {"n": [1]})
    for named, profile in ((True, "kept"), (False, "kept"), (True, "default")):
        with monkeypatch.context() as environment:
            if not named:
                environment.setenv("AWS_PROFILE", profile)
            with drumlin.open(uri, storage_options={"aws_profile": profile} if named else None) as store:
                store.append("t", {"n": [1]})
    with drumlin.open(uri, storage_options=options) as store:
        assert store.read("t").to_dicts() == [{"n": 1}] * 4
    with pytest.raises(drumlin.InvalidArgument, match="no profile 'nobody'; profiles there: default, kept, wrong"):
        drumlin.open(uri, storage_options={"aws_profile": "nobody"})
    with pytest.raises(drumlin.InvalidArgument, match="leave out one of both"):
        drumlin.open(uri, storage_options={**options, "aws_profile": "kept"})
    with pytest.raises(drumlin.Error) as refused:
        drumlin.open(uri, storage_options={"aws_profile": "wrong"}).read("t")
    assert "canary" not in str(refused.value) + repr(refused.value.__cause__)
