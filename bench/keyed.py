"""Keyed tables compared with DuckDB and ArcticDB: look-ups of 10,000 keys in row groups, an upsert of a tenth of the
rows.

All run in this process with two threads each, in turn, on the same disk; medians and ratios are printed. A ratio
below 1 means that Drumlin took less. ArcticDB takes part if it is installed, as `make bench` has it.

    python bench/keyed.py [--million 50] [--runs 7] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import raw

import drumlin

try:
    import arcticdb
except ImportError:
    arcticdb = None

THREADS = 2
PART = 1_000_000
KEYS = 10_000
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def rows(keys: np.ndarray[Any, Any], factor: int = 7919) -> pa.Table:
    return pa.table({"k": keys, "v": (keys * factor) % 1_000_003}, schema=SCHEMA)


def timed(work: Callable[[], Any]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(name: str, ours: list[float], theirs: list[float], peer: str) -> None:
    raw.keep(f"{name}, {peer}", {"Drumlin": ours, peer: theirs})
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    mine, other = statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3
    print(f"| {name} | {mine:.1f} ms | {peer} {other:.1f} ms | {ratio:.3f} | {1 / ratio:.1f} |", flush=True)


def fill(folder: Path, million: int) -> tuple[drumlin.Store, duckdb.DuckDBPyConnection, Any]:
    n = million * PART

    def parts() -> Any:
        return (rows(np.arange(at, at + PART)) for at in range(0, n, PART))

    store = drumlin.open(folder / "drumlin", cpu_threads=THREADS, cache_bytes=2 << 30)
    store.table("t").create(SCHEMA, key=["k"])
    store.append("t", pa.RecordBatchReader.from_batches(SCHEMA, (b for part in parts() for b in part.to_batches())))
    duck = duckdb.connect(str(folder / "duck.db"))
    duck.execute(f"SET threads = {THREADS}")
    duck.execute("CREATE TABLE t (k BIGINT, v BIGINT)")
    for part in parts():  # noqa: B007 - DuckDB finds it by its name.
        duck.execute("INSERT INTO t SELECT * FROM part")
    duck.execute("CHECKPOINT")
    library = None
    if arcticdb is not None:
        library = arcticdb.Arctic(f"lmdb://{folder / 'arctic'}?map_size=20GB").get_library("l", create_if_missing=True)
        for part in parts():
            library.append("t", part.to_pandas())
    return store, duck, library


def look_up(folder: Path, million: int, runs: int) -> None:
    store, duck, library = fill(folder, million)
    table = store.table("t")
    n, rng = million * PART, np.random.default_rng(1)

    def ours(keys: pa.Table) -> pa.Table:
        return table.get_many(keys).rows.to_arrow()

    def ducks(keys: pa.Table) -> pa.Table:
        duck.register("keys", keys)
        return duck.execute("SELECT k, v FROM keys JOIN t USING (k)").to_arrow_table()

    def arctics(keys: pa.Table) -> Any:
        wanted = keys["k"].to_numpy()
        query = arcticdb.QueryBuilder()
        query = query[query["k"].isin(wanted)]
        return library.read("t", query_builder=query).data

    def random() -> pa.Table:
        return pa.table({"k": rng.integers(0, n, KEYS)})

    def clustered() -> pa.Table:
        starts = rng.integers(0, n - 100, KEYS // 100)
        return pa.table({"k": (starts[:, None] + np.arange(100)).ravel()})

    for name, draw in [("random keys", random), ("keys in 100 ranges", clustered)]:
        mine, theirs, others = [], [], []
        for run in range(runs + 1):
            keys = draw()
            times = timed(lambda: ours(keys)), timed(lambda: ducks(keys))  # noqa: B023
            found, expected = ours(keys), ducks(keys)
            assert sorted(found["v"].to_pylist()) == sorted(expected["v"].to_pylist())
            third = timed(lambda: arctics(keys)) if library is not None and run < 3 else None  # noqa: B023
            if run > 0:  # The first run warms up.
                mine.append(times[0])
                theirs.append(times[1])
                others.extend([third] if third is not None else [])
        show(f"{KEYS:,} {name} of {million:,} million rows", mine, theirs, "DuckDB")
        if others:
            show(f"{KEYS:,} {name} of {million:,} million rows", mine[: len(others)], others, "ArcticDB")
    store.close()
    duck.close()


def upsert(folder: Path, million: int, runs: int) -> None:
    n = million * PART
    mine, theirs, peaks = [], [], []
    for run in range(runs):
        fresh = rows(np.random.default_rng(run).permutation(n)[: n // 10], 31)
        with drumlin.open(folder / f"u{run}", cpu_threads=THREADS) as store:
            store.table("t").create(SCHEMA, key=["k"])
            store.append("t", rows(np.arange(n)))

            def ours() -> None:
                store.table("t").upsert(fresh)  # noqa: B023
                store.checkpoint()

            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            mine.append(timed(ours))
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        with duckdb.connect(str(folder / f"u{run}.db")) as duck:
            duck.execute(f"SET threads = {THREADS}")
            duck.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
            base = rows(np.arange(n))
            duck.execute("INSERT INTO t SELECT * FROM base")
            duck.execute("CHECKPOINT")

            duck.register("fresh", fresh)

            def ducks() -> None:
                duck.execute("INSERT OR REPLACE INTO t SELECT * FROM fresh")
                duck.execute("CHECKPOINT")

            theirs.append(timed(ducks))
            del base
        shutil.rmtree(folder / f"u{run}")
    show(f"upsert {n // 10:,} of {n:,} rows, checkpoint", mine, theirs, "DuckDB")
    print(f"\npeak memory grew by at most {max(peaks) / 1024:.0f} MiB in a run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--million", type=int, default=50)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=chosen.folder))
    peer = "absent" if arcticdb is None else arcticdb.__version__
    print(f"{date.today()}, {os.cpu_count()} cores, drumlin {drumlin.__version__}")
    print(f"duckdb {duckdb.__version__}, arcticdb {peer}\n")
    print("| what | Drumlin | peer | ratio | times as fast |\n|---|---|---|---|---|")
    try:
        upsert(folder, max(1, chosen.million // 5), min(chosen.runs, 5))
        look_up(folder, chosen.million, chosen.runs)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
