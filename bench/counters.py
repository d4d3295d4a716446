"""Counters and sinks, beside SQLite and DuckDB.

Counters: one table of 1,000 rows; threads add 1 to a random row, each call durable. SQLite writes ahead (WAL) and syncs
each commit, as Drumlin does; DuckDB syncs too. Sinks: batches of 1,000 ticks, each in a commit with the offset of its
source, from one thread; unsynced (a sync each 100 ms, SQLite at its checkpoints) and synced. In this process, in turn,
on the same disk; medians of the runs, in calls or rows a second, and ratios: above 1 means that Drumlin did more.

    python bench/counters.py [--seconds 3] [--runs 3] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa

import drumlin

ROWS = 1000


def per_second(threads: int, seconds: float, make: Callable[[], Callable[[], None]]) -> float:
    """How often `make()`, in each of some threads, is called a second."""
    counts, until = [0] * threads, time.monotonic() + seconds

    def run(at: int) -> None:
        call = make()
        while time.monotonic() < until:
            call()
            counts[at] += 1

    running = [threading.Thread(target=run, args=(at,)) for at in range(threads)]
    began = time.monotonic()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(counts) / (time.monotonic() - began)


def drumlin_counters(folder: Path, threads: int, seconds: float) -> float:
    with drumlin.open(folder / "drumlin") as store:
        table = store.table("hits")
        table.create({"id": int, "n": int}, key="id", exist_ok=True)
        table.upsert({"id": list(range(ROWS)), "n": [0] * ROWS})

        def make() -> Callable[[], None]:
            return lambda: table.increment({"n": 1}, random.randrange(ROWS), returning=False) and None

        return per_second(threads, seconds, make)


def sqlite_counters(folder: Path, threads: int, seconds: float) -> float:
    file = folder / "sqlite.db"
    with sqlite3.connect(file) as setup:
        setup.execute("pragma journal_mode=wal")
        setup.execute("create table if not exists hits (id integer primary key, n integer)")
        setup.executemany("insert or replace into hits values (?, 0)", [(n,) for n in range(ROWS)])

    def make() -> Callable[[], None]:
        own = sqlite3.connect(file, isolation_level=None, timeout=60, check_same_thread=False)
        own.execute("pragma synchronous=full")
        text = "insert into hits values (?, 1) on conflict (id) do update set n = n + 1"
        return lambda: own.execute(text, (random.randrange(ROWS),)) and None

    return per_second(threads, seconds, make)


def duckdb_counters(folder: Path, threads: int, seconds: float) -> float:
    database = duckdb.connect(folder / "duck.db")
    database.execute("create table if not exists hits (id bigint primary key, n bigint)")
    database.execute(f"insert or replace into hits select range, 0 from range({ROWS})")

    def make() -> Callable[[], None]:
        own = database.cursor()

        def call() -> None:
            # A conflict is tried again, as its users do.
            while True:
                try:
                    own.execute("update hits set n = n + 1 where id = ?", [random.randrange(ROWS)])
                    return
                except duckdb.TransactionException:
                    continue

        return call

    rate = per_second(threads, seconds, make)
    database.close()
    return rate


def ticks() -> pa.Table:
    rng = random.Random(7)
    return pa.table(
        {
            "ts": pa.array(range(ROWS), pa.timestamp("us")),
            "sym": [f"S{rng.randrange(100)}" for _ in range(ROWS)],
            "price": [round(rng.uniform(10, 20), 2) for _ in range(ROWS)],
            "size": [rng.randrange(1, 500) for _ in range(ROWS)],
        }
    )


def drumlin_sink(folder: Path, seconds: float, synced: bool) -> float:
    with drumlin.open(folder / f"sink-{synced}", sync="commit" if synced else "interval") as store:
        rows, table = ticks(), store.table("ticks")
        if not table.exists():
            table.create(rows.schema)
            store.set_retention("ticks", keep_last=1)
        sink = store.sink("ticks", source="feed")
        at = sink.offset or 0

        def call() -> None:
            nonlocal at
            at += ROWS
            sink.write(rows, at)

        return per_second(1, seconds, lambda: call) * ROWS


def sqlite_sink(folder: Path, seconds: float, synced: bool) -> float:
    own = sqlite3.connect(folder / f"sink-{synced}.db", isolation_level=None, check_same_thread=False)
    own.execute("pragma journal_mode=wal")
    own.execute(f"pragma synchronous={'full' if synced else 'normal'}")
    own.execute("create table if not exists ticks (ts integer, sym text, price real, size integer)")
    own.execute("create table if not exists offsets (source text primary key, at integer)")
    rows = [tuple(row.values()) for row in ticks().cast(ticks().schema.set(0, pa.field("ts", pa.int64()))).to_pylist()]
    at = 0

    def call() -> None:
        nonlocal at
        at += ROWS
        own.execute("begin")
        own.executemany("insert into ticks values (?, ?, ?, ?)", rows)
        own.execute("insert or replace into offsets values ('feed', ?)", (at,))
        own.execute("commit")

    return per_second(1, seconds, lambda: call) * ROWS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as made:
        folder, seconds = Path(made), chosen.seconds
        print(f"drumlin {drumlin.__version__}, SQLite {sqlite3.sqlite_version}, DuckDB {duckdb.__version__}")
        for threads in (1, 4, 16):
            kinds = {"drumlin": drumlin_counters, "sqlite": sqlite_counters, "duckdb": duckdb_counters}
            rates: dict[str, list[float]] = {name: [] for name in kinds}
            for _ in range(chosen.runs):
                for name, run in kinds.items():
                    rates[name].append(run(folder, threads, seconds))
            own, *others = (statistics.median(of) for of in rates.values())
            told = ", ".join(
                f"{name} {rate:,.0f} ({own / rate:.2f})" for name, rate in zip(list(kinds)[1:], others, strict=True)
            )
            print(f"counters, {threads} threads: drumlin {own:,.0f} a second, {told}", flush=True)
        for synced in (False, True):
            mine, others = [], []
            for _ in range(chosen.runs):
                mine.append(drumlin_sink(folder, seconds, synced))
                others.append(sqlite_sink(folder, seconds, synced))
            own, other = statistics.median(mine), statistics.median(others)
            what = "synced" if synced else "unsynced"
            print(
                f"sink, {what}: drumlin {own:,.0f} rows a second, sqlite {other:,.0f} ({own / other:.2f})", flush=True
            )


if __name__ == "__main__":
    main()
