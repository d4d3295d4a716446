"""What it costs that a rewrite is read back before the old rows are released (``verify_rewrites``): processor time of
the same checkpoint with and without it, in turn. Lineitem whose every other order is deleted; a keyed table of numbers
and texts whose rows are flushed from memory.

    python bench/proof.py [--scale 1] [--runs 5] [--folder FOLDER]
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import raw
from duckdb_compare import THREADS, import_drumlin, remove, workplace

import drumlin

KEYED_ROWS = 1_000_000


def processor_seconds(work: Callable[[], object]) -> float:
    before = os.times()
    work()
    after = os.times()
    return after.user + after.system - before.user - before.system


def halved(folder: Path) -> None:
    with drumlin.open(str(folder)) as store:
        store.set_retention("lineitem", keep_last=1)
        store.table("lineitem").delete("l_orderkey % 2 = 0")


def keyed(folder: Path) -> None:
    random = np.random.default_rng(1)
    rows = {
        "id": random.permutation(KEYED_ROWS),
        "price": random.integers(0, 1_000_000, KEYED_ROWS) / 100,
        "name": [f"name {n}" for n in random.integers(0, 200_000, KEYED_ROWS)],
    }
    schema = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("name", pa.string())])
    with drumlin.open(str(folder), memtable_bytes=1 << 30) as store:
        store.table("k").create(schema, key=["id"])
        for at in range(0, KEYED_ROWS, 10_000):
            store.table("k").upsert({name: column[at : at + 10_000] for name, column in rows.items()})


def checkpoint(folder: Path, work: Path, verify: bool) -> float:
    remove(work)
    shutil.copytree(folder, work)
    with drumlin.open(str(work), cpu_threads=THREADS, memtable_bytes=1 << 30, verify_rewrites=verify) as store:
        return processor_seconds(store.checkpoint)


def main() -> None:
    with workplace(__doc__) as (folder, parquet, runs):
        lineitem, rows = folder / "lineitem.drumlin", folder / "keyed.drumlin"
        import_drumlin(lineitem, parquet)
        halved(lineitem)
        keyed(rows)
        for name, source in (("vacuum of lineitem", lineitem), ("flush of keyed rows", rows)):
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(runs):
                times[0].append(checkpoint(source, folder / "work", True))
                times[1].append(checkpoint(source, folder / "work", False))
            raw.keep(name, {"with the proof": times[0], "without": times[1]})
            ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
            medians = [statistics.median(side) for side in times]
            print(
                f"{name}: {medians[0]:.2f} s of processor time, {medians[1]:.2f} s without the proof, ratio {ratio:.3f}"
            )


if __name__ == "__main__":
    main()
