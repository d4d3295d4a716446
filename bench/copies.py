"""Copies of tables in another store, beside what a file system takes to copy the bytes.

A store holds lineitem of TPC-H with ten versions. Timed, in turn, on the same disk, with two threads: `copy_to` of all
of them to an empty store, which checks every byte that it reads and reads again what it has written; the same of the
newest version alone; `cp -r` of the folder and a sync; and the newest version read as Arrow and written. Medians.

    python bench/copies.py [--scale 1] [--runs 5] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# Sets how many threads there are, so it comes first.
import engines  # isort: skip

import raw

import drumlin

THREADS = 2
VERSIONS = 10


def timed(run: Callable[[], object]) -> float:
    os.sync()
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def copied(store: drumlin.Store, folder: Path, versions: str) -> None:
    with drumlin.open(folder, cpu_threads=THREADS) as other:
        report = store.copy_to(other, versions=versions)  # type: ignore[arg-type]
        assert report.tables == ["lineitem"], report


def written(store: drumlin.Store, folder: Path) -> None:
    with drumlin.open(folder, cpu_threads=THREADS) as other:
        other.write("lineitem", store.read("lineitem"))


def by_files(store: Path, folder: Path) -> None:
    shutil.copytree(store, folder)
    subprocess.run(["sync", "-f", str(folder)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        rows = engines.generate(chosen.scale, folder)["lineitem"]
        store = drumlin.open(folder / "store", cpu_threads=THREADS)
        part = rows.num_rows // VERSIONS
        for at in range(VERSIONS):
            new = rows.slice(at * part, part if at < VERSIONS - 1 else None)
            store.write("lineitem", new) if at == 0 else store.append("lineitem", new)
        size = store.stat().block_bytes
        print(f"lineitem, {rows.num_rows} rows, {VERSIONS} versions, {size / 1e6:.0f} MB in blocks")
        ways: dict[str, Callable[[Path], None]] = {
            "copy_to, all versions": lambda to: copied(store, to, "all"),
            "copy_to, the newest": lambda to: copied(store, to, "newest"),
            "cp -r and sync": lambda to: by_files(folder / "store", to),
            "read and written": lambda to: written(store, to),
        }
        times: dict[str, list[float]] = {what: [] for what in ways}
        for run in range(chosen.runs):
            for at, (what, way) in enumerate(ways.items()):
                to = folder / f"other-{run}-{at}"
                times[what].append(timed(lambda way=way, to=to: way(to)))
                shutil.rmtree(to)
        for what, taken in times.items():
            raw.keep(what, {"cp" if what.startswith("cp ") else "Drumlin": taken})
        least = statistics.median(times["cp -r and sync"])
        for what, taken in times.items():
            median = statistics.median(taken)
            print(f"{what:24} {median * 1000:8.0f} ms  {median / least:5.2f} of cp -r")


if __name__ == "__main__":
    main()
