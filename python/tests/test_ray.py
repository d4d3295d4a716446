"""Ray Data over tables: real splits, columns and filters pushed down, a write in two phases; workers are killed, and
others vacuum and reclaim beside them."""

from __future__ import annotations

import datetime as dt
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from questions import COLUMNS, asked, check_page, fill, name_of, pushed_into_splits
from servers import places

import drumlin

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")


import drumlin.ray  # noqa: E402

NOW = dt.timedelta(0)

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="Ray needs a Unix"),
]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    os.environ["RAY_TRAIN_V2_ENABLED"] = "0"
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(params=places.KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with places.place(request.param, tmp_path) as found:
        yield found


def numbers(start: int, count: int) -> pa.Table:
    ids = list(range(start, start + count))
    return pa.table({"id": ids, "part": [n % 5 for n in ids], "s": [f"n{n}" for n in ids]})


def ids(ds: Any) -> list[int]:
    return sorted(int(row["id"]) for row in ds.take_all())


def test_a_table_is_read_with_columns_and_filters_pushed_down(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    with drumlin.open(uri, storage_options=options, block_grace=NOW) as store:
        for table in ("a", "b"):
            store.write(f"t/{table}", numbers(0, 1000))
            for at in range(1000, 4000, 1000):
                store.append(f"t/{table}", numbers(at, 1000))
        ds = drumlin.ray.read(store, "t/*", path_columns=["t"], storage_options=options)
        assert ds.schema().names == ["id", "part", "s", "t"]
        assert ds.count() == 8000
        assert ids(ds.select_columns(["id"])) == sorted([*range(4000), *range(4000)])
        found = ds.filter(expr="id >= 3990 and part == 2").select_columns(["id", "t"])
        assert sorted((row["id"], row["t"]) for row in found.take_all()) == [
            (3992, "a"),
            (3992, "b"),
            (3997, "a"),
            (3997, "b"),
        ]
        # What our filters do not say is applied by pyarrow on the workers.
        odd = drumlin.ray.read(store, "t/a", where="id < 10", columns=["id"], storage_options=options)
        assert ids(odd.map_batches(lambda batch: {"id": batch["id"] * 2})) == list(range(0, 20, 2))
        # By its address, as another process would.
        assert drumlin.ray.read(uri, "t/b", storage_options=options, where="id < 7").count() == 7


def test_the_page_says_what_is_pushed_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.data.expressions import col, lit

    with drumlin.open(str(tmp_path / "store")) as store:
        fill(store, "t")

        def ask(column: str, question: str) -> int:
            name, (value, other) = col(name_of(column)), (COLUMNS[column](at) for at in (3, 6))
            expr = asked(question, name, lit(value), lit(other), name.is_in([value, other]))
            return int(drumlin.ray.read(store, "t", split_bytes=1).filter(expr=expr).select_columns(["id"]).count())

        check_page("Ray", pushed_into_splits(store, ask, monkeypatch))


def test_a_read_is_exact_while_another_process_vacuums_and_reclaims(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    with drumlin.open(uri, storage_options=options, block_grace=NOW) as store:
        store.write("t", numbers(0, 1000))
        for at in range(1000, 8000, 1000):
            store.append("t", numbers(at, 1000))
        ds = drumlin.ray.read(store, "t", split_bytes=1, storage_options=options)

        def slow(batch: dict[str, Any]) -> dict[str, Any]:
            time.sleep(0.1)
            return batch

        found: list[int] = []
        for batch in ds.map_batches(slow, batch_size=None).iter_batches(batch_size=None):
            found.extend(int(n) for n in batch["id"])
            store.table("t").delete(f"id % 7 = {len(found) % 7}")
            store.checkpoint(dead_share_min=0)
            store.reclaim(grace=NOW, block_grace=NOW, audit=True)
        assert sorted(found) == list(range(8000))
        store.drop_and_reclaim("t")
        assert ds.count() == 8000


@ray.remote(max_retries=0)
def _pid() -> int:
    return os.getpid()


def kill_a_worker() -> bool:
    """Kills a process that works on a task of ours."""
    own = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            title = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
        except OSError:
            continue
        # Not Ray's own actors and agents, without which its node ends.
        if title.startswith("ray::") and ("MapBatches" in title or "Write" in title):
            own.append(int(entry))
    if own:
        os.kill(random.choice(own), signal.SIGKILL)
    return bool(own)


def test_a_write_of_many_blocks_is_done_once_though_workers_are_killed(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place
    blocks = 200

    def work(batch: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.02)
        return {"id": batch["id"], "s": batch["id"].astype(str)}

    source = ray.data.range(blocks * 50, override_num_blocks=blocks).map_batches(work, batch_size=None)
    import threading

    over, kills = threading.Event(), []

    def attack() -> None:
        while not over.wait(0.7):
            if len(kills) < 5 and kill_a_worker():
                kills.append(time.monotonic())

    attacker = threading.Thread(target=attack)
    attacker.start()
    try:
        report = drumlin.ray.write(source, uri, "t", job="fill", storage_options=options)
    finally:
        over.set()
        attacker.join()
    assert kills
    assert report.versions == {"t": 0}
    with drumlin.open(uri, storage_options=options, block_grace=NOW) as store:
        rows = store.read("t").to_arrow()
        assert sorted(rows["id"].to_pylist()) == list(range(blocks * 50))
        assert len(store.table("t").versions()) == 1
        with pytest.raises(drumlin.AlreadyExists, match="fill"):
            drumlin.ray.write(source, store, "t", job="fill", storage_options=options)
        store.reclaim(grace=NOW, block_grace=NOW, audit=True)
        assert store.verify().orphans == []
        assert store.stat().holds == 0
        # What was staged and not committed is gone with the audit.
        assert store.reclaim(audit=True).orphans == 0


def test_a_write_that_fails_leaves_nothing(place: tuple[str, dict[str, str]]) -> None:
    uri, options = place

    def work(batch: dict[str, Any]) -> dict[str, Any]:
        if (batch["id"] == 777).any():
            raise ValueError("broken")
        return batch

    source = ray.data.range(1000, override_num_blocks=10).map_batches(work, batch_size=None)
    with drumlin.open(uri, storage_options=options, block_grace=NOW) as store:
        with pytest.raises(Exception, match="broken"):
            drumlin.ray.write(source, store, "t", storage_options=options)
        assert not store.table("t").exists()
        assert store.stat().holds == 0
        store.write("t", {"id": [5]})
        drumlin.ray.write(ray.data.range(3), store, "t", mode="overwrite", storage_options=options)
        assert store.read("t").to_arrow()["id"].to_pylist() == [0, 1, 2]
        with pytest.raises(drumlin.Conflict, match="version"):
            drumlin.ray.write(ray.data.range(3), store, "t", expected_version=0, storage_options=options)
        store.reclaim(grace=NOW, block_grace=NOW, audit=True)
        assert store.verify().orphans == []
