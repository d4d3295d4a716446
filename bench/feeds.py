"""What commits change in a table, followed: how many rows a second come, and how long a row takes after its commit.

Beside it the outbox that is usual elsewhere: SQLite with a trigger that copies each change into a table, which the
consumer reads from the last number on. Each system after the other, on the same disk, both synced once at the end.

    python bench/feeds.py [--commits 500] [--rows 1000]
"""

from __future__ import annotations

import argparse
import contextlib
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import drumlin

RUNS = 25


@contextlib.contextmanager
def timed(times: dict[str, float], name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    times[name] = time.perf_counter() - began


def batches(commits: int, rows: int) -> list[pa.Table]:
    draw = np.random.default_rng(1)
    made = []
    for _ in range(commits):
        # Four fifths of the keys are there already after a while: updates, of which both rows come.
        keys = draw.choice(commits * rows // 5, rows, replace=False)
        made.append(pa.table({"id": keys, "v": draw.random(rows), "name": [f"name {key % 1000}" for key in keys]}))
    return made


def follow_all(folder: str, frames: list[pa.Table]) -> dict[str, float]:
    times: dict[str, float] = {}
    with drumlin.open(f"{folder}/store", sync="interval") as store:
        for path in ("alone", "followed"):
            table = store.table(path)
            table.create(frames[0].schema, key=["id"])
            feed = table.follow("beginning", name="consumer") if path == "followed" else None
            with timed(times, f"written {path}"):
                for frame in frames:
                    table.upsert(frame)
            if feed is not None:
                told = 0
                with timed(times, "followed"):
                    while (changes := feed.next(0)) is not None:
                        told += len(changes)
                times["rows followed"] = told
                with timed(times, "acknowledged"):
                    feed.acknowledge()
    return times


def outbox(folder: str, frames: list[pa.Table]) -> dict[str, float]:
    times: dict[str, float] = {}
    store = sqlite3.connect(f"{folder}/outbox.db", isolation_level=None)
    store.executescript(
        "pragma journal_mode = wal; pragma synchronous = off;"
        "create table t (id integer primary key, v real, name text);"
        "create table log (n integer primary key, what text, id integer, v real, name text);"
        "create trigger i after insert on t begin"
        " insert into log (what, id, v, name) values ('insert', new.id, new.v, new.name); end;"
        "create trigger u after update on t begin"
        " insert into log (what, id, v, name) values ('before', old.id, old.v, old.name);"
        " insert into log (what, id, v, name) values ('after', new.id, new.v, new.name); end;"
    )
    put = "insert into t values (?, ?, ?) on conflict (id) do update set v = excluded.v, name = excluded.name"
    with timed(times, "written followed"):
        for frame in frames:
            store.execute("begin")
            store.executemany(put, zip(*(column.to_pylist() for column in frame.columns), strict=True))
            store.execute("commit")
    told = last = 0
    with timed(times, "followed"):
        while rows := store.execute("select * from log where n > ? order by n limit 10000", (last,)).fetchall():
            told, last = told + len(rows), rows[-1][0]
    times["rows followed"] = told
    with timed(times, "acknowledged"):
        store.execute("delete from log where n <= ?", (last,))
    store.close()
    return times


def latencies(folder: str, in_memory: int) -> float:
    """The median time from the call that commits one row to its row in a feed of another thread, in milliseconds."""
    with drumlin.open(f"{folder}/latency-{in_memory}", sync="interval") as store:
        table = store.table("t")
        table.create({"id": int, "v": float}, key=["id"])
        for first in range(0, in_memory, 50_000):
            count = min(50_000, in_memory - first)
            table.upsert(pa.table({"id": np.arange(first, first + count), "v": np.zeros(count)}))
        feed, came = table.follow(), threading.Semaphore(0)

        def consume() -> None:
            for _ in range(RUNS):
                assert feed.next(60) is not None
                came.release()

        consumer = threading.Thread(target=consume)
        consumer.start()
        took = []
        for n in range(RUNS):
            time.sleep(0.02)
            began = time.perf_counter()
            table.upsert([{"id": n, "v": float(n + 1)}])
            came.acquire()
            took.append((time.perf_counter() - began) * 1000)
        consumer.join()
        return statistics.median(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=500)
    parser.add_argument("--rows", type=int, default=1000)
    given = parser.parse_args()
    frames = batches(given.commits, given.rows)
    with tempfile.TemporaryDirectory() as folder:
        own, other = follow_all(folder, frames), outbox(folder, frames)
        for name, took in own.items():
            peer = other.get(name)
            print(f"{name:20} {took:14,.3f}", "" if peer is None else f"{peer:14,.3f}  ratio {took / peer:.2f}")
        for rows in (0, 100_000, 500_000):
            print(f"one row, {rows:9,} in memory: {latencies(folder, rows):.2f} ms")


if __name__ == "__main__":
    main()
