"""Stores in Azure's blob storage, on Microsoft's emulator, and in Google Cloud Storage, on a double of our own."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import azure, gcs

import drumlin

NOW = dt.timedelta(0)
WORK = """
import json, sys, drumlin
uri, options, number = json.loads(sys.argv[1])
with drumlin.open(uri, storage_options=options) as store:
    for n in range(20):
        store.transact(lambda tx: tx.tree.put("count", (tx.tree.get("count") or 0) + 1))
        store.table("k").upsert([{"id": number * 100 + n, "by": number}])
"""


@pytest.fixture(scope="module", params=["azure", "gcs"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a bucket, and the options to open what is in it."""
    if request.param == "gcs":
        with gcs.serve() as port:
            yield "gs://test", gcs.options(port)
        return
    if azure.build() is None:
        message = "NO NODE: stores in Azure's blob storage are not tested"
        print(f"\n*** {message} ***", file=sys.__stderr__, flush=True)
        pytest.skip(message)
    with azure.serve(tmp_path_factory.mktemp("azure") / "data") as port:
        yield "az://test", azure.options(port)


@pytest.fixture
def place(server: tuple[str, dict[str, str]], request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """A separate prefix there."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return f"{server[0]}/{name}", server[1]


def test_a_store_does_what_others_do(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    with drumlin.open(uri, storage_options=options, block_grace=NOW) as store:
        store.write("prices/AAPL", {"day": [1, 2], "close": [187.5, 190.0]}, sort=["day"])
        store.append("prices/AAPL", {"day": [3], "close": [191.0]})
        store.write_many({f"many/{n}": {"n": list(range(n, n + 50))} for n in range(100)})
        store.snapshot("eod", "**")
        store.tree.put("config/a", {"x": 1})
        store.table("prices/AAPL").delete("day = 2")
        store.drop("many/*")
        store.checkpoint()
        assert not store.reclaim(grace=NOW).failures
        assert store.verify(deep=True).ok
    with drumlin.open(uri, storage_options=options, mode="read") as store:
        assert store.read("prices/AAPL").to_arrow().to_pydict() == {"day": [1, 3], "close": [187.5, 191.0]}
        assert store.read("many/7", as_of="eod").to_arrow().to_pydict() == {"n": list(range(7, 57))}
        assert store.tree.get("config/a") == {"x": 1}
        assert "many/7" not in store


def test_processes_that_race_lose_nothing(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    pa = pytest.importorskip("pyarrow")
    with drumlin.open(uri, storage_options=options) as store:
        store.table("k").create(pa.schema([("id", pa.int64()), ("by", pa.int64())]), key=["id"])
        command = [sys.executable, "-c", WORK]
        workers = [subprocess.Popen([*command, json.dumps([uri, options, n])]) for n in range(4)]
        assert [worker.wait(timeout=300) for worker in workers] == [0] * 4
        store.refresh()
        assert store.tree.get("count") == 80
        assert sorted(store.read("k").to_arrow().to_pydict()["id"]) == [
            n * 100 + k for n in range(4) for k in range(20)
        ]


def test_a_replica_in_a_folder_has_every_commit(place: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    uri, options = place
    target = str(tmp_path / "replica")
    with drumlin.open(uri, storage_options=options) as store:
        store.write("t", {"n": [0]})
        for n in range(1, 30):
            store.append("t", {"n": [n]})
        store.checkpoint()
        store.append("t", {"n": [30]})
        store.follow_to(target, once=True)
    with drumlin.open(target, mode="read") as replica:
        assert replica.read("t").to_arrow().to_pydict() == {"n": list(range(31))}


def test_a_wrong_key_is_said_and_not_told(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    if not uri.startswith("az:"):
        pytest.skip("the double knows no accounts")
    wrong = "Y2FuYXJ5LWtleQ=="
    with pytest.raises(drumlin.Error) as refused:
        drumlin.open(uri, storage_options=options | {"azure_storage_account_key": wrong})
    assert wrong not in str(refused.value)
