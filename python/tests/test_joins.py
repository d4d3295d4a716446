"""Joins in time: beside pandas and Polars, in all their forms, and what is refused."""

import asyncio
import datetime as dt
import gc
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import drumlin
from drumlin import aio


def _write(store: drumlin.Store, kind: str, rows: int, columns: list[str], seed: int) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    frames = {}
    for symbol in ("A", "B", "C"):
        ts = np.sort(draw.integers(0, 10**7, rows)).astype("datetime64[us]")
        frames[symbol] = pd.DataFrame({"ts": ts, **{name: draw.normal(size=rows) for name in columns}})
    store.write_many({f"{kind}/{symbol}": frame for symbol, frame in frames.items()})
    return pd.concat([frame.assign(sym=symbol) for symbol, frame in frames.items()], ignore_index=True)


def _scans(store: drumlin.Store) -> tuple[drumlin.Dataset, drumlin.Dataset]:
    trades, quotes = (store.scan(f"{kind}/*", path_columns=["sym"]) for kind in ("trades", "quotes"))
    return trades, quotes


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("tolerance", [None, dt.timedelta(milliseconds=3)])
def test_equal_to_pandas(store: drumlin.Store, direction: str, exact: bool, tolerance: dt.timedelta | None) -> None:
    left, right = _write(store, "trades", 400, ["px"], 1), _write(store, "quotes", 900, ["bid", "ask"], 2)
    trades, quotes = _scans(store)
    joined = trades.join_asof(
        quotes, on="ts", by="sym", direction=direction, allow_exact=exact, tolerance=tolerance
    ).to_pandas()
    wanted = pd.merge_asof(
        left.sort_values("ts", kind="stable"),
        right.sort_values("ts", kind="stable"),
        on="ts",
        by="sym",
        direction=direction,
        allow_exact_matches=exact,
        tolerance=tolerance and pd.Timedelta(tolerance),
    )
    wanted = wanted.sort_values(["sym", "ts"], kind="stable").reset_index(drop=True)
    assert list(joined.columns) == ["ts", "px", "sym", "bid", "ask"]
    assert joined["px"].tolist() == wanted["px"].tolist()
    for name in ("bid", "ask"):
        assert joined[name].fillna(-99).tolist() == wanted[name].fillna(-99).tolist()


def test_windows_equal_to_duckdb(store: drumlin.Store) -> None:
    import duckdb

    _write(store, "trades", 200, ["px"], 3)
    _write(store, "quotes", 700, ["bid"], 4)
    trades, quotes = _scans(store)
    windows = trades.join_window(quotes, on="ts", by="sym", before="20ms", after=np.timedelta64(5, "ms"))
    found = windows.agg(n="count", high=("bid", "max"), mean=("bid", "mean")).to_arrow()
    t, q = trades.to_arrow(), quotes.to_arrow()
    wanted = duckdb.sql(
        """select t.ts, t.px, t.sym, count(q.ts) n, max(bid) high, avg(bid) mean from t left join q
           on t.sym = q.sym and q.ts between t.ts - interval 20 millisecond and t.ts + interval 5 millisecond
           group by all order by t.sym, t.ts, t.px"""
    ).to_arrow_table()
    found = found.set_column(2, "sym", found["sym"].cast(pa.string())).sort_by(
        [("sym", "ascending"), ("ts", "ascending"), ("px", "ascending")]
    )
    assert (t.num_rows, q.num_rows) == (600, 2100)
    assert found["n"].to_pylist() == wanted["n"].to_pylist()
    assert found["high"].to_pylist() == wanted["high"].to_pylist()
    assert found["mean"].to_pylist() == pytest.approx(wanted["mean"].to_pylist())


def test_all_forms(store: drumlin.Store) -> None:
    _write(store, "trades", 300, ["px"], 5)
    _write(store, "quotes", 300, ["px"], 6)
    trades, quotes = _scans(store)
    joined = trades.where("px > 0").select(["ts", "sym"]).join_asof(quotes.where("px < 0"), on="ts", by="sym")
    rows = joined.to_dicts()
    assert joined.schema.names == ["ts", "sym", "px"]
    assert joined.num_rows == len(joined) == len(rows) == trades.count_rows("px > 0")
    assert all(row["px"] is None or row["px"] < 0 for row in rows)
    assert pl.DataFrame(joined).to_dicts() == joined.to_polars().to_dicts() == rows
    assert pa.Table.from_batches(list(joined)).to_pylist() == pa.table(joined).to_pylist() == rows
    store.write("joined", joined)
    assert store.read("joined").to_dicts() == rows
    assert repr(joined) == "Joined('trades/*', 'quotes/*', ts: timestamp[us], sym: string, px: double)"
    again = quotes.join_asof(quotes, left_on="ts", right_on="ts", by=["sym"], suffix="_2")
    assert again.schema.names == ["ts", "px", "sym", "px_2"]
    # What is committed later does not change it.
    before = joined.to_dicts()
    store.append("quotes/A", {"ts": [dt.datetime(1970, 1, 1, 1)], "px": [-5.0]})
    assert joined.to_dicts() == before
    del trades, quotes
    gc.collect()
    assert joined.to_dicts() == before


def test_sorted_tables_of_many_row_groups(folder: str) -> None:
    """Both sides of a table that is too large for one task pass each other."""
    draw = random.Random(7)
    with drumlin.open(folder) as store:
        for path, count in (("l", 300_000), ("r", 700_000)):
            store.table(path).create({"t": int, "v": int, "pad": str}, sort=["t"])
            for part in range(3):
                t = sorted(draw.randrange(10**9) for _ in range(count // 3))
                pad = [f"{value:x}{value * 7919:x}" for value in t]
                store.append(path, {"t": t, "v": list(range(part * count, part * count + count // 3)), "pad": pad})
        store.checkpoint()
        left, right = store.scan("l"), store.scan("r")
        found = left.join_asof(right, on="t", tolerance=2000).to_arrow()
        frames = [scan.to_pandas() for scan in (left, right)]
    wanted = pd.merge_asof(*frames, on="t", tolerance=2000, suffixes=("", "_right"))
    assert found["t"].to_pylist() == wanted["t"].tolist()
    assert found["v_right"].fill_null(-1).to_pylist() == wanted["v_right"].fillna(-1).astype(int).tolist()


def test_asyncio() -> None:
    async def run() -> None:
        async with aio.open("memory://") as store:
            await store.write("t", {"n": [1, 5]})
            await store.write("u", {"n": [0, 4], "v": [1, 2]})
            joined = store.scan("t").join_asof(store.scan("u"), on="n")
            assert await joined.to_dicts() == [{"n": 1, "v": 1}, {"n": 5, "v": 2}]
            windows = store.scan("t").join_window(store.scan("u"), on="n", before=1)
            assert [row["k"] for row in await windows.agg(k="count").to_dicts()] == [1, 1]

    asyncio.run(run())


def test_refused(store: drumlin.Store) -> None:
    store.write("t", {"ts": [dt.datetime(2026, 1, 1)], "n": [1]})
    scan = store.scan("t")
    refused: list[tuple[dict[str, object], type[Exception], str]] = [
        ({}, drumlin.InvalidArgument, "give on, a column of both sides, or left_on and right_on"),
        ({"on": "ts", "left_on": "ts"}, drumlin.InvalidArgument, "give on"),
        ({"on": "ts", "tolerance": "5 parsecs"}, drumlin.InvalidArgument, "'5s', '500ms'"),
        ({"on": "ts", "tolerance": 5}, drumlin.InvalidArgument, "give a length of time"),
        ({"on": "n", "tolerance": "5s"}, drumlin.InvalidArgument, "give a number"),
        ({"on": "n", "tolerance": -1}, drumlin.InvalidArgument, "expected 0 or more"),
        ({"on": "n", "tolerance": 1.5}, TypeError, "not a float"),
        ({"on": "ts", "direction": "back"}, drumlin.InvalidArgument, "'backward', 'forward' or 'nearest'"),
        ({"on": "ts", "strategy": "backward"}, TypeError, "direction='backward'"),
        ({"on": "ts", "allow_exact_matches": False}, TypeError, "allow_exact=False"),
        ({"on": "x"}, drumlin.Error, "'x'"),
    ]
    for arguments, kind, text in refused:
        with pytest.raises(kind) as error:
            scan.join_asof(scan, **arguments)  # type: ignore[arg-type]
        assert text in str(error.value), (arguments, error.value)
    with pytest.raises(TypeError, match="right must be a data set"):
        scan.join_asof(store.table("t"), on="ts")  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument, match="before limit"):
        scan.limit(1).join_asof(scan, on="ts")
    with pytest.raises(drumlin.InvalidArgument, match="without aggregates"):
        scan.join_window(scan, on="ts").agg()
    assert scan.join_window(scan, on="ts").agg(k="count").to_dicts()[0]["k"] == 1
    with pytest.raises(AttributeError, match="join_asof"):
        store.scan("t").merge_asof
