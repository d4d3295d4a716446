"""Stores whose log is kept by PostgreSQL or etcd."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from servers import cells, s3

import drumlin

NO_POSTGRES = cells.find("postgresql") is None
NO_ETCD = cells.find("etcd-server") is None
needs_postgres = pytest.mark.skipif(NO_POSTGRES, reason="PostgreSQL is not installed: make servers")


@pytest.fixture(scope="module")
def postgres() -> Iterator[cells.Postgres]:
    with cells.postgres() as server:
        yield server


@pytest.fixture(scope="module", params=["postgresql", "etcd"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "postgresql":
        if NO_POSTGRES:
            pytest.skip("PostgreSQL is not installed: make servers")
        yield request.getfixturevalue("postgres").address
        return
    if NO_ETCD:
        pytest.skip("etcd is not installed: make servers")
    with cells.etcd() as server:
        yield server.address


def add(store: drumlin.Store) -> int:
    def step(tx: drumlin.Transaction) -> int:
        count = (tx.tree.get("count") or 0) + 1
        tx.tree.put("count", count)
        return count

    return store.transact(step)


def test_a_new_store_has_its_log_on_the_server_and_moves_it_back(address: str, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with drumlin.open(folder, shared=True, log=address) as one, drumlin.open(folder, log=address) as other:
        one.write("a", {"n": [1, 2]})
        other.append("a", {"n": [3]})
        one.refresh()
        assert one.read("a").to_arrow().to_pydict() == {"n": [1, 2, 3]}
        assert [add(one), add(other), add(one)] == [1, 2, 3]
        for n in ([0], range(5000), [2]):
            one.append("a", {"n": list(n)})
        one.checkpoint()
        other.append("a", {"n": [9]})
        assert one.verify().faults == []
        # Neither the address of the user nor the password is in the store.
        for file in folder.rglob("*"):
            if file.is_file():
                assert b"canary" not in file.read_bytes()
    drumlin.move_log(folder, None, log=address)
    with drumlin.open(folder) as store:
        assert store.tree.get("count") == 3
        assert store.read("a").to_arrow()["n"].to_pylist()[-1] == 9
        drumlin.move_log(folder, address)
        with pytest.raises(drumlin.Closed, match="moved to"):
            add(store)
    with drumlin.open(folder, log=address) as store:
        assert add(store) == 4
        assert "canary" not in repr(store)


@pytest.mark.skipif(s3.build("versitygw") is None, reason="no Go to build an S3 server with")
def test_the_doctor_reads_the_log_and_says_what_the_server_lacks(address: str, tmp_path: Path) -> None:
    program = "import sys; from drumlin._cli import main; sys.exit(main())"
    with s3.serve("versitygw", tmp_path / "s3") as port:
        uri, options = "s3://test/doctor", s3.options(port)
        given = [f"--storage-option={name}={value}" for name, value in options.items()]
        command = [sys.executable, "-c", program, "doctor", uri, "--json", *given]
        parts = urlsplit(address)
        named = {"PGUSER": parts.username or "", "PGPASSWORD": parts.password or ""}

        def found() -> dict[str, Any]:
            told: dict[str, Any] = json.loads(
                subprocess.run(command, capture_output=True, check=True, env=os.environ | named).stdout
            )
            return told

        assert found()["advice"] == []
        with drumlin.open(uri, storage_options=options, log=address) as store:
            store.write("a", {"n": [1]})
        after = found()
        assert after["fit"]
        assert any(finding["what"].startswith("read the log at ") for finding in after["findings"])
        [advice] = after["advice"]
        assert "standby" in advice or "one member" in advice
        assert "canary" not in json.dumps(after)
        drumlin.move_log(uri, None, log=address, storage_options=options)
        assert found()["advice"] == []


@needs_postgres
def test_what_the_environment_says_reaches_the_server(
    postgres: cells.Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, bare = tmp_path / "store", f"postgresql://127.0.0.1:{postgres.port}/postgres"
    monkeypatch.setenv("PGUSER", "drumlin")
    with pytest.raises(drumlin.Unavailable, match="password"):
        drumlin.open(folder, shared=True, log=bare)
    assert not (folder / "root").exists()
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"127.0.0.1:{postgres.port}:*:drumlin:{cells.PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    with drumlin.open(folder, shared=True, log=bare) as store:
        add(store)
    # Found without an address; and by another process.
    with drumlin.open(folder) as store:
        assert add(store) == 2
    command = [str(Path(sys.executable).with_name("drumlin")), "move-log", str(folder), "--back"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout == "the log is with the store now\n"
    )


def test_the_receipt_of_a_purge_tells_of_the_server(address: str, tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "store", shared=True, log=address) as store:
        store.write("t", {"n": [1, 2, 3]})
        store.append("t", {"n": [2]})
        receipt = json.loads(store.purge("t", where="n = 2").to_json())
        assert receipt["erased"]["rows"] == 2
        assert receipt["held"] == []
        told = [what for what in receipt["not_examined"] if "which keeps the log" in what]
        assert len(told) == 1
        assert "127.0.0.1" in told[0]
        assert "canary" not in json.dumps(receipt)
        assert store.read("t").to_arrow()["n"].to_pylist() == [1, 3]


@needs_postgres
def test_a_purge_finds_rows_that_the_server_still_has(postgres: cells.Postgres, tmp_path: Path) -> None:
    # The server deletes nothing for this user.
    postgres.sql("CREATE ROLE keeper LOGIN PASSWORD 'x'")
    address = f"postgresql://keeper:x@127.0.0.1:{postgres.port}/postgres"
    with drumlin.open(tmp_path / "store", shared=True, log=postgres.address) as store:
        store.write("t", {"n": [1, 2, 3]})
    postgres.sql("GRANT SELECT, INSERT ON drumlin_log, drumlin_offers TO keeper; GRANT UPDATE ON drumlin_log TO keeper")
    with drumlin.open(tmp_path / "store", log=address) as store:
        held = json.loads(store.purge("t", where="n = 2").to_json())["held"]
        assert any("from before the newest catalog" in item["why"] for item in held)
    with drumlin.open(tmp_path / "store", log=postgres.address) as store:
        assert json.loads(store.purge("t", where="n = 2").to_json())["held"] == []


@needs_postgres
@pytest.mark.skipif(cells.find("pgbouncer") is None, reason="PgBouncer is not installed: make servers")
@pytest.mark.parametrize("pooling", ["session", "transaction"])
def test_a_pooler_may_lie_between(postgres: cells.Postgres, tmp_path: Path, pooling: str) -> None:
    with cells.bouncer(postgres, pooling) as address:
        folder = tmp_path / "store"
        with drumlin.open(folder, shared=True, log=address, fresh=True) as store:
            program = "import sys, drumlin; store = drumlin.open(sys.argv[1], log=sys.argv[2])\n"
            program += (
                "for _ in range(20): store.transact(lambda tx: tx.tree.put('count', tx.tree.get('count', 0) + 1))"
            )
            command = [sys.executable, "-c", program, str(folder), address]
            workers = [subprocess.Popen(command) for _ in range(4)]
            assert [worker.wait() for worker in workers] == [0] * 4
            assert store.tree.get("count") == 80
            assert store.verify().faults == []


@needs_postgres
def test_a_server_that_makes_nothing_durable_is_refused(postgres: cells.Postgres, tmp_path: Path) -> None:
    postgres.sql("CREATE ROLE hasty LOGIN PASSWORD 'x'")
    postgres.sql("ALTER ROLE hasty SET synchronous_commit = off")
    address = f"postgresql://hasty:x@127.0.0.1:{postgres.port}/postgres"
    with pytest.raises(drumlin.InvalidArgument, match="synchronous_commit"):
        drumlin.open(tmp_path / "store", shared=True, log=address)


def test_addresses_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    for bad in ["mysql://host/db", "host", "postgresql://u:canary@h/db?nonsense=1", "etcd://h:2379/?a=b"]:
        with pytest.raises(drumlin.InvalidArgument) as raised:
            drumlin.open(tmp_path / "store", shared=True, log=bad)
        assert "canary" not in str(raised.value)
    with pytest.raises(drumlin.InvalidArgument, match="many processes write"):
        drumlin.open(tmp_path / "single", log="postgresql://h/db")
    drumlin.open(tmp_path / "single").close()
    with pytest.raises(drumlin.InvalidArgument, match="drumlin share"):
        drumlin.move_log(tmp_path / "single", "postgresql://h/db")
    with pytest.raises(drumlin.NotFound):
        drumlin.move_log(tmp_path / "none", None)
    with pytest.raises(TypeError, match="log must be"):
        drumlin.open(tmp_path / "single", log=3)  # type: ignore[arg-type]


@needs_postgres
def test_a_database_that_was_put_back_is_noticed(postgres: cells.Postgres, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with drumlin.open(folder, shared=True, log=postgres.address) as store:
        for _ in range(5):
            add(store)
        store.checkpoint()
        postgres.sql("CREATE TABLE backup AS SELECT * FROM drumlin_log")
        for _ in range(5):
            add(store)
        store.checkpoint()
        add(store)
        postgres.sql("DELETE FROM drumlin_log; INSERT INTO drumlin_log SELECT * FROM backup")
        with pytest.raises((drumlin.Corrupt, drumlin.Closed)):
            add(store)
    with pytest.raises(drumlin.Corrupt):
        drumlin.open(folder, log=postgres.address)
    postgres.sql("DELETE FROM drumlin_log")
    with pytest.raises(drumlin.Corrupt, match="is not at"):
        drumlin.open(folder, log=postgres.address)


def test_a_salvage_keeps_what_is_on_the_server(address: str, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with drumlin.open(folder, shared=True, log=address) as store:
        add(store)
        store.checkpoint()
        assert [add(store) for _ in range(5)] == [2, 3, 4, 5, 6]
    report = drumlin.salvage(folder, tmp_path / "new", log=address)
    assert report.losses == []
    with drumlin.open(tmp_path / "new") as store:
        assert store.tree.get("count") == 6
    # Nobody listens there.
    elsewhere = f"{address.split(':')[0]}://127.0.0.1:1/postgres"
    report = drumlin.salvage(folder, tmp_path / "less", log=elsewhere)
    assert {loss.kind for loss in report.losses} == {"log", "commits"}
    assert "the log after commit" in str(report.losses)
    assert "canary" not in str(report.losses)
    with drumlin.open(tmp_path / "less") as store:
        assert store.tree.get("count") == 1


@needs_postgres
def test_a_row_is_not_put_in_the_place_of_one_that_was_deleted_after_the_statement_began(
    postgres: cells.Postgres, tmp_path: Path
) -> None:
    """Each statement sees the rows that were there when it began. While one waits, others may add rows, and delete
    these and the one that it saw as the last."""
    folder = tmp_path / "store"
    with drumlin.open(folder, shared=True, log=postgres.address, fresh=True) as store:
        assert [add(store), add(store)] == [1, 2]
        store.checkpoint()
        cell, number = postgres.sql(
            "SELECT cell, number FROM drumlin_log WHERE head ORDER BY xmin::text::bigint DESC LIMIT 1"
        ).split("|")
        assert postgres.sql(f"SELECT count(*) FROM drumlin_log WHERE cell = '{cell}'") == "1"
        head = "SELECT cell, number + %d, gen_random_uuid(), true, payload FROM drumlin_log"
        head += f" WHERE cell = '{cell}' AND head"
        other = "; ".join(
            [
                f"INSERT INTO drumlin_log {head % 1}",
                f"INSERT INTO drumlin_log {head % 2} AND number = {number}",
                f"DELETE FROM drumlin_log WHERE cell = '{cell}' AND number < {int(number) + 2}",
                "SELECT pg_sleep(2)",
            ]
        )
        beside = threading.Thread(target=postgres.sql, args=(other,))
        beside.start()
        waits = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(2)%' AND wait_event = 'PgSleep'"
        while postgres.sql(waits) != "1":
            time.sleep(0.01)
        assert add(store) == 3
        beside.join()
        assert add(store) == 4
        assert store.tree.get("count") == 4
    with drumlin.open(folder, log=postgres.address) as store:
        assert store.tree.get("count") == 4
        assert store.verify().faults == []


WORKER = """
import sys, drumlin
folder, address, name = sys.argv[1:]
store = drumlin.open(folder, log=address)
while True:
    try:
        def step(tx):
            value = (tx.tree.get("register") or 0) + 1
            tx.tree.put("register", value)
            return value
        value = store.transact(step)
    except drumlin.InDoubt:
        print("?", flush=True)
    except (drumlin.Unavailable, drumlin.Closed):
        try:
            store = drumlin.open(folder, log=address)
        except drumlin.Error:
            pass
    else:
        print(value, flush=True)
"""


@needs_postgres
def test_processes_and_the_database_are_killed_and_nothing_is_lost_or_done_twice(
    postgres: cells.Postgres, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    drumlin.open(folder, shared=True, log=postgres.address).close()
    command = [sys.executable, "-c", WORKER, str(folder), postgres.address]
    logs: list[Path] = []

    def start() -> subprocess.Popen[bytes]:
        logs.append(tmp_path / f"log-{len(logs)}")
        with open(logs[-1], "wb") as log:
            return subprocess.Popen([*command, str(len(logs))], stdout=log, stderr=subprocess.DEVNULL)

    workers = [start() for _ in range(3)]
    try:
        for round in range(8):
            time.sleep(0.6)
            victim = workers[round % 3]
            if round % 4 == 3:
                postgres.kill()
                postgres.start()
            elif round % 4 == 1:
                os.kill(victim.pid, signal.SIGSTOP)
                time.sleep(0.4)
                os.kill(victim.pid, signal.SIGCONT)
            else:
                victim.kill()
                victim.wait()
                workers[round % 3] = start()
        time.sleep(1.0)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    told = [int(line) for log in logs for line in log.read_text().split() if line != "?"]
    doubts = sum(log.read_text().count("?") for log in logs)
    with drumlin.open(folder, log=postgres.address) as store:
        last = store.tree.get("register")
        assert store.verify().faults == []
    assert len(told) > 20
    assert len(set(told)) == len(told), "two processes were told the same value"
    assert last >= max(told)
    # A process that was killed had at most one commit whose value it could not tell.
    assert last - len(told) <= doubts + len(logs)
