"""Secondary indexes, beside DuckDB (ART), SQLite (B-tree) and Lance (BTREE): the same rows, in a folder of each.

A table `id, v, a, b, s`: `v` is a permutation of the ids, in no order, so statistics rule nothing out. Each system
makes an index over `v`, and then finds one row, 1,000 rows at once, and ranges of 1,000 values, each as an Arrow table
or rows in Python; and 1,000 rows are merged by `v`. In this process, each system after the other, on the same disk;
medians, and ratios: below 1 means that Drumlin took less.

    python bench/indexes.py [--rows 10_000_000] [--looks 300] [--folder FOLDER] [--busy]

With `--busy`, the table has a key, too, the id, and 10,000 rows are upserted at a time, 9 of 10 of which are there,
while eight threads look rows up by `v`.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import drumlin

STEP = 1_000_000
#: Enough for all rows: what is measured is hot.
CACHE_BYTES = 8 << 30


def frames(rows: int) -> Iterator[pa.Table]:
    """The rows, a million at a time."""
    for start in range(0, rows, STEP):
        ids = np.arange(start, min(start + STEP, rows), dtype=np.int64)
        # 2654435761 is prime, so this is a permutation for any other number of rows.
        v = (ids * 2654435761) % rows
        texts = pa.array([f"note {n}" for n in range(997)]).take(pa.array(v % 997))
        yield pa.table({"id": ids, "v": v, "a": v / 7, "b": (ids % 1000).astype(np.int32), "s": texts})


def timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def folder_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


#: Rows of an upsert, how many upserts are timed, and the threads that look rows up during them.
UPSERT_ROWS, UPSERTS, READERS = 10_000, 20, 8


class Drumlin:
    name = "drumlin"

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "drumlin"
        self.store = drumlin.open(self.folder, cache_bytes=CACHE_BYTES)
        self.table = self.store.table("t")

    def load(self, rows: int) -> None:
        for at, frame in enumerate(frames(rows)):
            self.table.write(frame) if at == 0 else self.table.append(frame)
        self.store.checkpoint()

    def index(self) -> None:
        self.table.create_index("v", "v")

    def load_keyed(self, rows: int) -> None:
        self.table.create(next(frames(1)).schema, key=["id"])
        for frame in frames(rows):
            self.table.append(frame)
        self.table.create_index("v", "v")
        self.store.checkpoint()

    def upsert(self, frame: pa.Table) -> None:
        self.table.upsert(frame)

    def reader(self) -> Callable[[int], int]:
        return self.one

    def index_bytes(self) -> int:
        return self.table.indexes()[0].bytes

    def one(self, key: int) -> int:
        return len(self.table.read(where=f"v = {key}").to_arrow())

    def many(self, keys: list[int]) -> int:
        return len(self.table.read(where=drumlin.col("v").isin(keys)).to_arrow())

    def span(self, low: int) -> int:
        return len(self.table.read(where=f"v >= {low} and v < {low + 1000}").to_arrow())

    def merge(self, frame: pa.Table) -> None:
        merge = self.table.merge(frame, on="v")
        merge.when_matched(update={"a": "source.a", "b": "source.b", "s": "source.s"})
        merge.when_not_matched(insert=True).execute()

    def close(self) -> None:
        self.store.close()


class DuckDB:
    name = "duckdb"

    def __init__(self, folder: Path) -> None:
        import duckdb

        self.folder = folder / "duckdb"
        self.folder.mkdir()
        self.db = duckdb.connect(str(self.folder / "t.db"))

    def load(self, rows: int) -> None:
        for at, frame in enumerate(frames(rows)):
            self.db.register("frame", frame)
            self.db.execute("create table t as select * from frame" if at == 0 else "insert into t select * from frame")
        self.db.execute("checkpoint")

    def index(self) -> None:
        self.before = folder_bytes(self.folder)
        self.db.execute("create index v on t (v)")
        self.db.execute("checkpoint")

    def load_keyed(self, rows: int) -> None:
        self.db.execute("create table t (id bigint primary key, v bigint, a double, b integer, s varchar)")
        for frame in frames(rows):
            self.db.register("frame", frame)
            self.db.execute("insert into t select * from frame")
        self.db.execute("create index v on t (v)")
        self.db.execute("checkpoint")

    def upsert(self, frame: pa.Table) -> None:
        self.db.register("frame", frame)
        self.db.execute("insert or replace into t select * from frame")

    def reader(self) -> Callable[[int], int]:
        own = self.db.cursor()
        return lambda key: len(own.execute("select * from t where v = ?", [key]).to_arrow_table())

    def index_bytes(self) -> int:
        return folder_bytes(self.folder) - self.before

    def one(self, key: int) -> int:
        return len(self.db.execute("select * from t where v = ?", [key]).to_arrow_table())

    def many(self, keys: list[int]) -> int:
        listed = ", ".join(map(str, keys))
        return len(self.db.execute(f"select * from t where v in ({listed})").to_arrow_table())

    def span(self, low: int) -> int:
        return len(self.db.execute("select * from t where v >= ? and v < ?", [low, low + 1000]).to_arrow_table())

    def merge(self, frame: pa.Table) -> None:
        self.db.register("frame", frame)
        self.db.execute(
            "merge into t using frame on t.v = frame.v "
            "when matched then update set a = frame.a, b = frame.b, s = frame.s "
            "when not matched then insert values (frame.id, frame.v, frame.a, frame.b, frame.s)"
        )

    def close(self) -> None:
        self.db.close()


class SQLite:
    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "sqlite"
        self.folder.mkdir()
        self.db = sqlite3.connect(self.folder / "t.db")
        self.db.execute("pragma journal_mode = wal")
        self.db.execute("pragma cache_size = -1000000")

    def load(self, rows: int) -> None:
        self.db.execute("create table t (id integer, v integer, a real, b integer, s text)")
        for frame in frames(rows):
            columns = [column.to_pylist() for column in frame.columns]
            self.db.executemany("insert into t values (?, ?, ?, ?, ?)", zip(*columns, strict=True))
            self.db.commit()

    def load_keyed(self, rows: int) -> None:
        self.db.execute("pragma journal_mode = wal")
        self.db.execute("pragma cache_size = -1000000")
        self.db.execute("create table t (id integer primary key, v integer, a real, b integer, s text)")
        for frame in frames(rows):
            self.upsert(frame)
        self.db.execute("create index v on t (v)")
        self.db.commit()

    def upsert(self, frame: pa.Table) -> None:
        columns = [column.to_pylist() for column in frame.columns]
        self.db.executemany("insert or replace into t values (?, ?, ?, ?, ?)", zip(*columns, strict=True))
        self.db.commit()

    def reader(self) -> Callable[[int], int]:
        own = sqlite3.connect(self.folder / "t.db", check_same_thread=False)
        own.execute("pragma cache_size = -100000")
        return lambda key: len(own.execute("select * from t where v = ?", [key]).fetchall())

    def index(self) -> None:
        self.db.execute("pragma wal_checkpoint(truncate)")
        self.before = folder_bytes(self.folder)
        self.db.execute("create index v on t (v)")
        self.db.commit()
        self.db.execute("pragma wal_checkpoint(truncate)")

    def index_bytes(self) -> int:
        return folder_bytes(self.folder) - self.before

    def one(self, key: int) -> int:
        return len(self.db.execute("select * from t where v = ?", [key]).fetchall())

    def many(self, keys: list[int]) -> int:
        marks = ", ".join("?" * len(keys))
        return len(self.db.execute(f"select * from t where v in ({marks})", keys).fetchall())

    def span(self, low: int) -> int:
        return len(self.db.execute("select * from t where v >= ? and v < ?", [low, low + 1000]).fetchall())

    def merge(self, frame: pa.Table) -> None:
        for row in frame.to_pylist():
            changed = self.db.execute("update t set a = :a, b = :b, s = :s where v = :v", row)
            if changed.rowcount == 0:
                self.db.execute("insert into t values (:id, :v, :a, :b, :s)", row)
        self.db.commit()

    def close(self) -> None:
        self.db.close()


class Lance:
    name = "lance"

    def __init__(self, folder: Path) -> None:
        import lance

        self.lance, self.folder = lance, folder / "lance"

    def load(self, rows: int) -> None:
        for at, frame in enumerate(frames(rows)):
            self.lance.write_dataset(frame, self.folder, mode="create" if at == 0 else "append")
        self.open()

    def open(self) -> None:
        self.data = self.lance.dataset(self.folder)

    def index(self) -> None:
        self.before = folder_bytes(self.folder)
        self.data.create_scalar_index("v", "BTREE")
        self.open()

    def load_keyed(self, rows: int) -> None:
        self.load(rows)
        self.data.create_scalar_index("id", "BTREE")
        self.open()
        self.data.create_scalar_index("v", "BTREE")
        self.open()

    def upsert(self, frame: pa.Table) -> None:
        self.data.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(frame)
        self.open()

    def reader(self) -> Callable[[int], int]:
        return self.one

    def index_bytes(self) -> int:
        return folder_bytes(self.folder) - self.before

    def one(self, key: int) -> int:
        return len(self.data.to_table(filter=f"v = {key}"))

    def many(self, keys: list[int]) -> int:
        return len(self.data.to_table(filter=f"v in ({', '.join(map(str, keys))})"))

    def span(self, low: int) -> int:
        return len(self.data.to_table(filter=f"v >= {low} and v < {low + 1000}"))

    def merge(self, frame: pa.Table) -> None:
        self.data.merge_insert("v").when_matched_update_all().when_not_matched_insert_all().execute(frame)
        self.open()

    def close(self) -> None:
        pass


def measured(system: Any, rows: int, looks: int) -> dict[str, float]:
    """What one system takes, in seconds and bytes."""
    draw = random.Random(7)
    keys = [draw.randrange(rows) for _ in range(looks)]
    many = [draw.sample(range(rows), 1000) for _ in range(7)]
    lows = [draw.randrange(rows - 1000) for _ in range(21)]
    took = {
        "load": timed(lambda: system.load(rows)),
        "index": timed(system.index),
        "bytes": float(system.index_bytes()),
    }
    assert system.one(keys[0]) == 1
    assert system.many(many[0]) == system.span(lows[0]) == 1000
    took["one row"] = statistics.median(timed(lambda key=key: system.one(key)) for key in keys)
    took["1,000 rows"] = statistics.median(timed(lambda keys=keys: system.many(keys)) for keys in many)
    took["a range of 1,000"] = statistics.median(timed(lambda low=low: system.span(low)) for low in lows)
    merges = []
    for at in range(3):
        v = np.array(
            draw.sample(range(rows), 900) + list(range(rows + at * 100, rows + at * 100 + 100)), dtype=np.int64
        )
        frame = pa.table(
            {
                "id": v,
                "v": v,
                "a": v / 3,
                "b": (v % 7).astype(np.int32),
                "s": pa.array([f"merged {n}" for n in v]),
            }
        )
        merges.append(timed(lambda frame=frame: system.merge(frame)))
    took["merge of 1,000"] = statistics.median(merges)
    system.close()
    return took


def busy(system: Any, rows: int) -> dict[str, float]:
    """What upserts take while others look rows up, and what a look-up takes then, in seconds."""
    system.load_keyed(rows)
    draw, stop = np.random.default_rng(7), threading.Event()
    looks: list[list[float]] = [[] for _ in range(READERS)]

    def look(of: int) -> None:
        own, find = random.Random(of), system.reader()
        while not stop.is_set():
            looks[of].append(timed(lambda: find(own.randrange(rows))))

    def frame(at: int) -> pa.Table:
        there = draw.choice(rows, UPSERT_ROWS * 9 // 10, replace=False)
        ids = np.concatenate([there, rows + np.arange(UPSERT_ROWS // 10) + at * UPSERT_ROWS])
        v = draw.integers(0, rows, len(ids))
        texts = pa.array([f"upserted {n}" for n in ids])
        return pa.table({"id": ids, "v": v, "a": ids / 3, "b": (ids % 7).astype(np.int32), "s": texts})

    threads = [threading.Thread(target=look, args=(of,)) for of in range(READERS)]
    for thread in threads:
        thread.start()
    try:
        upserts = [timed(lambda one=one: system.upsert(one)) for one in [frame(at) for at in range(UPSERTS)]]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    system.close()
    all_looks = sorted(took for own in looks for took in own)
    return {
        "upsert of 10,000": statistics.median(upserts),
        "slowest upsert": max(upserts),
        "look-up": statistics.median(all_looks),
        "look-up, 99 %": all_looks[len(all_looks) * 99 // 100],
        "time a look-up": sum(upserts) / len(all_looks),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--looks", type=int, default=300)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--busy", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        found = {}
        for kind in (Drumlin, DuckDB, SQLite, Lance):
            if options.only and kind.name not in options.only:
                continue
            try:
                system = kind(folder)
            except ImportError:
                print(f"{kind.name} is not installed")
                continue
            found[kind.name] = (
                busy(system, options.rows) if options.busy else measured(system, options.rows, options.looks)
            )
            print(kind.name, {what: round(much, 6) for what, much in found[kind.name].items()}, flush=True)
        own = found["drumlin"]
        for what, much in own.items():
            ratios = ", ".join(
                f"{much / took[what]:.2f} of {name}" for name, took in found.items() if name != "drumlin"
            )
            print(f"{what}: {much:,.0f}" if what == "bytes" else f"{what}: {much * 1e3:,.3f} ms", ratios, sep="; ")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
