"""Erasing a user's rows from every version, beside what it takes with Delta and Lance.

A table of the rows of many users, with twenty versions; each user has one row in each append. Timed, in turn, on the
same disk: one user's rows leave all versions and storage. Drumlin: `purge`, which ends with an examination of all that
is left. The peers have no such call: Delta deletes the rows, and vacuums with a retention of zero, by which all older
versions are lost; Lance deletes, compacts, and cleans up, by which they are lost too. So theirs is the less, and
Drumlin keeps twenty versions.

    python bench/purge.py [--rows 2000000] [--runs 3] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

THREADS = 2
os.environ.update({"RAYON_NUM_THREADS": str(THREADS), "TOKIO_WORKER_THREADS": str(THREADS)})

import deltalake  # noqa: E402
import lance  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import raw  # noqa: E402

import drumlin  # noqa: E402

VERSIONS = 20


def part(rows: int, version: int) -> pa.Table:
    random = np.random.default_rng(version)
    users = random.permutation(rows)
    names = pa.array([f"user{user}@example.org" for user in users.tolist()])
    return pa.table({"user": users, "mail": names, "value": random.random(rows)})


class Drumlin:
    def __init__(self, folder: Path, parts: list[pa.Table]) -> None:
        self.store = drumlin.open(folder / "store", cpu_threads=THREADS)
        self.store.write("events", parts[0])
        for rows in parts[1:]:
            self.store.append("events", rows)

    def purge(self, user: int) -> None:
        receipt = self.store.purge("events", f"user = {user}")
        assert receipt.complete
        assert receipt.erased.rows == VERSIONS, receipt


class Delta:
    def __init__(self, folder: Path, parts: list[pa.Table]) -> None:
        self.path = str(folder / "delta")
        for rows in parts:
            deltalake.write_deltalake(self.path, rows, mode="append")

    def purge(self, user: int) -> None:
        table = deltalake.DeltaTable(self.path)
        table.delete(f"user = {user}")
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


class Lance:
    def __init__(self, folder: Path, parts: list[pa.Table]) -> None:
        self.path = str(folder / "lance")
        for rows in parts:
            lance.write_dataset(rows, self.path, mode="append" if Path(self.path).exists() else "create")

    def purge(self, user: int) -> None:
        table = lance.dataset(self.path)
        table.delete(f"user = {user}")
        table.optimize.compact_files(materialize_deletions_threshold=0.0)
        lance.dataset(self.path).cleanup_old_versions(dt.timedelta(0), delete_unverified=True)


def timed(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder")
    options = parser.parse_args()
    rows = options.rows // VERSIONS
    parts = [part(rows, version) for version in range(VERSIONS)]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        systems = [kind(Path(folder), parts) for kind in (Drumlin, Delta, Lance)]
        times: dict[str, list[float]] = {type(system).__name__: [] for system in systems}
        for run in range(options.runs):
            for system in systems:
                took = timed(lambda system=system, run=run: system.purge(run * 7 + 3))  # type: ignore[misc]
                times[type(system).__name__].append(took)
    raw.keep(f"one user of {options.rows:,} rows", times)
    ours = statistics.median(times["Drumlin"])
    print(f"one user of {options.rows:,} rows in {VERSIONS} versions, medians of {options.runs}:")
    for name, took in times.items():
        median = statistics.median(took)
        print(f"  {name:8} {median * 1000:8.0f} ms, Drumlin takes {ours / median:.2f} of it")


if __name__ == "__main__":
    main()
