"""Joins in time of many tables, beside DuckDB and Polars: trades with the last quote before each, by symbol.

Each symbol has a table of trades and one of quotes in Drumlin's store, sorted by time; DuckDB has one table of each
kind in its own database, Polars a Parquet file of each kind for each symbol, or one file of each kind sorted by symbol
and time (`polars one file`). Each join runs in a process of its own, whose peak memory is measured, and gives the
number of rows and a sum, which must be equal. Ratios below 1 mean that Drumlin took less.

    python bench/joins.py [--symbols 5000] [--trades 10000] [--quotes 30000] [--runs 3] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

#: Seconds of a day of trading, in microseconds.
DAY = 23_400_000_000


def tables(symbols: int, rows: int, column: str, seed: int) -> Iterator[tuple[str, pa.Table]]:
    draw = np.random.default_rng(seed)
    for symbol in range(symbols):
        ts = np.sort(draw.integers(0, DAY, rows)).astype("datetime64[us]")
        yield f"S{symbol:05}", pa.table({"ts": ts, column: (draw.integers(9_000, 11_000, rows) / 100)})


def write(folder: Path, symbols: int, trades: int, quotes: int) -> None:
    import duckdb
    import pyarrow.parquet as pq

    import drumlin

    store = drumlin.open(folder / "drumlin")
    db = duckdb.connect(str(folder / "t.db"))
    for kind, rows, column, seed in (("trades", trades, "px", 1), ("quotes", quotes, "bid", 2)):
        db.execute(f"create table {kind} (sym varchar, ts timestamp, {column} double)")
        (folder / kind).mkdir()
        whole = None
        some: list[tuple[str, pa.Table]] = []

        def flush(kind: str, some: list[tuple[str, pa.Table]]) -> None:
            for symbol, frame in some:
                store.table(f"{kind}/{symbol}").create(frame.schema, sort=["ts"])
            store.append_many({f"{kind}/{symbol}": frame for symbol, frame in some})

        for symbol, frame in tables(symbols, rows, column, seed):
            some.append((symbol, frame))
            named = frame.add_column(0, "sym", pa.array([symbol] * len(frame)))
            pq.write_table(named, folder / kind / f"{symbol}.parquet")
            whole = whole or pq.ParquetWriter(folder / f"{kind}.parquet", named.schema)
            whole.write_table(named)
            if len(some) == 200:
                flush(kind, some)
                some = []
        flush(kind, some)
        assert whole is not None
        whole.close()
        db.execute(f"insert into {kind} select * from read_parquet('{folder}/{kind}.parquet')")
    store.checkpoint()
    store.close()
    db.close()


def drumlin_join(folder: Path) -> tuple[int, float]:
    import pyarrow.compute as pc

    import drumlin

    with drumlin.open(folder / "drumlin", cache_bytes=128 << 20) as store:
        trades, quotes = (store.scan(f"{kind}/*", path_columns=["sym"]) for kind in ("trades", "quotes"))
        rows, total = 0, 0.0
        for batch in trades.join_asof(quotes, on="ts", by="sym"):
            rows += batch.num_rows
            total += pc.sum(batch["bid"]).as_py() or 0.0
    return rows, total


def duckdb_join(folder: Path) -> tuple[int, float]:
    import duckdb

    db = duckdb.connect(str(folder / "t.db"), read_only=True)
    found = db.execute(
        "select count(*), sum(bid) from trades t asof left join quotes q on t.sym = q.sym and t.ts >= q.ts"
    ).fetchone()
    assert found is not None
    return found[0], found[1]


def _polars(trades: str, quotes: str) -> tuple[int, float]:
    import polars as pl

    # Sorted by time within each symbol, which is all that it needs, and what it cannot check.
    left, right = pl.scan_parquet(trades), pl.scan_parquet(quotes)
    joined = left.join_asof(right, on="ts", by="sym", check_sortedness=False)
    found = joined.select(pl.len(), pl.col("bid").sum()).collect(engine="streaming").row(0)
    return found[0], found[1]


def polars_join(folder: Path) -> tuple[int, float]:
    return _polars(f"{folder}/trades/*.parquet", f"{folder}/quotes/*.parquet")


def polars_one_file_join(folder: Path) -> tuple[int, float]:
    return _polars(f"{folder}/trades.parquet", f"{folder}/quotes.parquet")


JOINS = {
    "drumlin": drumlin_join,
    "duckdb": duckdb_join,
    "polars": polars_join,
    "polars one file": polars_one_file_join,
}


def run(name: str, folder: Path) -> dict[str, float]:
    made = subprocess.run(
        [sys.executable, __file__, "--run", name, "--folder", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise SystemExit(f"{name}: {made.stderr[-2000:] or made.returncode}")
    found: dict[str, float] = json.loads(made.stdout.splitlines()[-1])
    return found


def run_here(name: str, folder: Path) -> None:
    import resource

    began = time.perf_counter()
    rows, total = JOINS[name](folder)
    took = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": took, "MB": peak, "rows": rows, "sum": round(total, 2)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--symbols", type=int, default=5000)
    parser.add_argument("--trades", type=int, default=10_000)
    parser.add_argument("--quotes", type=int, default=30_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--run")
    options = parser.parse_args()
    if options.run:
        return run_here(options.run, options.folder)
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        write(folder, options.symbols, options.trades, options.quotes)
        found: dict[str, list[dict[str, float]]] = {}
        for _ in range(options.runs):
            for name in options.only or JOINS:
                one = run(name, folder)
                print(name, one, flush=True)
                found.setdefault(name, []).append(one)
        first = next(iter(found.values()))[0]
        every = [one for ones in found.values() for one in ones]
        assert all(one["rows"] == first["rows"] and abs(one["sum"] - first["sum"]) < 1 for one in every)
        own = statistics.median(one["seconds"] for one in found["drumlin"])
        for name, ones in found.items():
            seconds = statistics.median(one["seconds"] for one in ones)
            print(f"{name}: {seconds:.2f} s, {max(one['MB'] for one in ones):,.0f} MB, ratio {own / seconds:.2f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
