"""Views: bars beside pandas, other processes, workers, engines, asyncio, and what is refused."""

import asyncio
import datetime as dt
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import drumlin
from drumlin import aio

BARS = {
    "open": ("px", "first"),
    "high": ("px", "max"),
    "low": ("px", "min"),
    "close": ("px", "last"),
    "volume": ("size", "sum"),
    "vwap": ("px", "weighted_mean", "size"),
    "n": "count",
}


def _trades(draw: np.random.Generator, rows: int, since: int = 0) -> pd.DataFrame:
    seconds = np.sort(draw.integers(since, since + 3600, rows))
    ts = np.datetime64("2026-01-02T09:00:00", "us") + seconds.astype("timedelta64[s]")
    return pd.DataFrame({"ts": ts, "px": draw.integers(1000, 2000, rows) / 100, "size": draw.integers(1, 500, rows)})


def _bars(store: drumlin.Store) -> pd.DataFrame:
    return store.read("bars").to_pandas()


def _again(store: drumlin.Store) -> pd.DataFrame:
    trades = store.scan("trades/*", path_columns=["sym"])
    frame: pd.DataFrame = trades.resample("5m", on="ts", by="sym").agg(**BARS).to_pandas()
    return frame


def _view(store: drumlin.Store, **more: Any) -> drumlin.View:
    return store.view("bars", "trades/*", BARS, path_columns="sym", every="5m", on="ts", **more)


@pytest.mark.parametrize("sort", [None, ["ts"]])
def test_bars_equal_those_of_pandas(store: drumlin.Store, sort: list[str] | None) -> None:
    draw = np.random.default_rng(1)
    for symbol in "ABC":
        store.write(f"trades/{symbol}", _trades(draw, 500), sort=sort)
    made = _view(store)
    assert (made.over, made.every, made.behind, made.agg["high"]) == ("trades/*", ("ts", "5m"), [], ("max", "px"))
    for step in range(40):
        symbol = "ABC"[step % 3]
        store.append(f"trades/{symbol}", _trades(draw, 20, 60 * step))
        if step % 7 == 3:
            store.table(f"trades/{symbol}").delete("size < 20")
        pd.testing.assert_frame_equal(_bars(store), _again(store))
    frame = store.read("trades/A").to_pandas()
    bins = frame.groupby(frame["ts"].dt.floor("5min"))
    mine = _bars(store).query("sym == 'A'").set_index("ts")
    np.testing.assert_array_equal(mine["high"], bins["px"].max())
    np.testing.assert_array_equal(mine["open"], bins["px"].first())
    np.testing.assert_array_equal(mine["volume"], bins["size"].sum())
    assert store.sql("select count(*) from bars").to_dicts()[0].popitem()[1] == len(_again(store))
    store.drop("trades/A")
    pd.testing.assert_frame_equal(_bars(store), _again(store))


def test_one_commit_for_both(store: drumlin.Store) -> None:
    store.write("trades/A", _trades(np.random.default_rng(1), 50))
    _view(store)
    seen = store.seq
    store.append("trades/A", _trades(np.random.default_rng(2), 50))
    assert store.seq == seen + 1
    with store.transaction() as tx:
        tx.append("trades/A", _trades(np.random.default_rng(3), 5))
        tx.write("trades/B", _trades(np.random.default_rng(4), 5))
    assert store.seq == seen + 2
    pd.testing.assert_frame_equal(_bars(store), _again(store))


def test_staged_rows_and_restores(tmp_path: Path) -> None:
    store = drumlin.open(str(tmp_path / "s"), shared=True)
    draw = np.random.default_rng(3)
    store.write("trades/A", _trades(draw, 100))
    _view(store)
    store.commit([store.stage("trades/A", _trades(draw, 30), mode="append") for _ in range(3)])
    pd.testing.assert_frame_equal(_bars(store), _again(store))
    store.write("trades/A", _trades(draw, 10))
    store.restore("trades/*", as_of=0)
    pd.testing.assert_frame_equal(_bars(store), _again(store))
    store.copy("trades/A", "trades/C")
    store.move("trades/C", "trades/D")
    store.checkpoint()
    assert store.verify().ok
    pd.testing.assert_frame_equal(_bars(store), _again(store))


def test_large_changes_are_caught_up_with(store: drumlin.Store) -> None:
    rows = 1_300_000
    table = {"k": np.arange(rows), "n": np.ones(rows, dtype="int64")}
    store.write("big/a", table)
    store.view("all", "big/*", {"sum": ("n", "sum")}, path_columns="name")
    # More than is read before a commit, and more groups than fit into a small write.
    store.copy("big/a", "big/b")
    assert store.read("all").to_dicts() == [{"name": "a", "sum": rows}, {"name": "b", "sum": rows}]
    store.view("each", "big/*", {"sum": ("n", "sum")}, path_columns="name", by="k")
    store.append("big/a", {"k": np.arange(200_000), "n": np.ones(200_000, dtype="int64")})
    assert store.scan("each").where("name = 'a' and sum = 2").count_rows() == 200_000
    assert [view.behind for view in store.views()] == [[], []]


WRITER = """
import sys, numpy as np, drumlin
store = drumlin.open(sys.argv[1], shared=True)
draw = np.random.default_rng(int(sys.argv[2]))
print("ready", flush=True)
while True:
    symbol = "ABCD"[draw.integers(4)]
    table = store.table(f"trades/{symbol}")
    n = draw.integers(0, 1000, draw.integers(1, 20))
    what = draw.integers(8)
    if what == 0:
        table.delete(f"n % 5 = {draw.integers(5)}")
    elif what == 1:
        store.checkpoint()
    else:
        table.append({"n": n, "x": n / 7})
"""


@pytest.mark.parametrize("seed", range(3))
def test_processes_that_are_killed_leave_no_difference(tmp_path: Path, seed: int) -> None:
    draw, path = random.Random(seed), str(tmp_path / "s")
    store = drumlin.open(path, shared=True)
    for symbol in "ABCD":
        store.write(f"trades/{symbol}", {"n": [1], "x": [0.5]})
    aggregates = {"sum": ("x", "sum"), "top": ("n", "max"), "last": ("n", "last"), "rows": "count", "std": ("x", "std")}
    store.view("sums", "trades/*", aggregates, path_columns="sym")
    for _ in range(4):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, path, str(draw.randrange(10**6))], stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
        for _ in range(draw.randrange(5, 40)):
            store.append("trades/A", {"n": [draw.randrange(1000)], "x": [draw.random()]})
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
            writer.communicate()
        store.refresh()
        again = store.scan("trades/*", path_columns=["sym"]).group_by("sym").agg(**aggregates).to_dicts()
        assert store.read("sums").to_dicts() == again


def test_asyncio(tmp_path: Path) -> None:
    async def run() -> None:
        async with await aio.open(str(tmp_path / "s")) as store:
            await store.write("t/a", {"n": [1, 2]})
            made = await store.view("sums", "t/*", {"n": ("n", "sum")}, path_columns="name")
            assert made == (await store.views())[0] == await store.table("sums").as_view()
            await store.append("t/a", {"n": [4]})
            assert await store.read("sums").to_dicts() == [{"name": "a", "n": 7}]
            assert await store.table("sums").catch_up() == 0

    asyncio.run(run())


def test_refused(store: drumlin.Store) -> None:
    store.write("t/a", {"n": [1], "ts": [dt.datetime(2026, 1, 1)]})
    with pytest.raises(TypeError, match="both every"):
        store.view("v", "t/*", {"n": "count"}, path_columns="x", every="1h")
    with pytest.raises(TypeError, match="agg must have aggregates by name"):
        store.view("v", "t/*", "count", path_columns="x")  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument, match="stale"):
        store.view("v", "t/*", {"n": "count"}, path_columns="x", stale="never")  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument, match="cannot be kept in step"):
        store.view("v", "t/*", {"n": ("n", "median")}, path_columns="x")
    with pytest.raises(drumlin.NotFound, match="no table matches"):
        store.view("v", "none/*", {"n": "count"}, path_columns="x")
    store.view("v", "t/*", {"n": "count"}, path_columns="x")
    with pytest.raises(drumlin.InvalidArgument, match="'v' is a view"):
        store.append("v", {"x": ["b"], "n": [1]})
    with pytest.raises(drumlin.InvalidArgument, match="'t/a' is no view|is no view"):
        store.table("t/a").catch_up()
    with pytest.raises(drumlin.InvalidArgument, match="expire"):
        store.table("t/a").set_ttl("ts", after=dt.timedelta(days=1))
    assert store.table("t/a").as_view() is None
    with pytest.raises(drumlin.NotFound):
        store.table("none").as_view()
