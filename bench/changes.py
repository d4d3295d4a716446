"""Versions as things to work with: differences, restores and copies, beside Delta's and Lance's.

Each peer and Drumlin hold lineitem of TPC-H; then one per cent of its rows is deleted by predicate, and as many added.
Timed, in this process with two threads, in turn, on the same disk: the rows in which the newest version differs from
the first (Delta: its change data feed, switched on from the start), the first version restored, and a copy of the
table that shares its data (Lance: a shallow clone; Delta has none). Medians, and the median of the ratios round by
round; a ratio below 1 means that Drumlin took less.

    python bench/changes.py [--scale 1] [--runs 7] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREADS = 2
os.environ.update({"RAYON_NUM_THREADS": str(THREADS), "TOKIO_WORKER_THREADS": str(THREADS)})

import deltalake  # noqa: E402
import lance  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402
import raw  # noqa: E402

import drumlin  # noqa: E402
import engines  # noqa: E402

#: Every hundredth order.
DELETED = "l_orderkey % 100 = 7"


class Drumlin:
    def __init__(self, folder: Path, rows: pa.Table, more: pa.Table) -> None:
        self.store = drumlin.open(folder / "store", cpu_threads=THREADS)
        self.store.write("t", rows)
        self.store.table("t").delete(DELETED)
        self.store.append("t", more)
        self.copies = 0

    def diff(self) -> int:
        return self.store.table("t").diff(0, 2).to_arrow().num_rows

    def restore(self) -> None:
        self.store.restore("t", 0)

    def copy(self) -> None:
        self.copies += 1
        self.store.copy("t", f"copies/{self.copies}")


class Delta:
    def __init__(self, folder: Path, rows: pa.Table, more: pa.Table) -> None:
        self.path = str(folder / "delta")
        deltalake.write_deltalake(self.path, rows, configuration={"delta.enableChangeDataFeed": "true"})
        deltalake.DeltaTable(self.path).delete(DELETED)
        deltalake.write_deltalake(self.path, more, mode="append")

    def diff(self) -> int:
        feed = deltalake.DeltaTable(self.path).load_cdf(starting_version=1, ending_version=2)
        return pa.table(feed).num_rows

    def restore(self) -> None:
        deltalake.DeltaTable(self.path).restore(0)

    copy: Callable[[], None] | None = None


class Lance:
    def __init__(self, folder: Path, rows: pa.Table, more: pa.Table) -> None:
        self.path, self.folder, self.copies = str(folder / "t.lance"), folder, 0
        lance.write_dataset(rows, self.path)
        lance.dataset(self.path).delete(DELETED)
        lance.write_dataset(more, self.path, mode="append")

    diff: Callable[[], int] | None = None

    def restore(self) -> None:
        lance.dataset(self.path, version=1).restore()

    def copy(self) -> None:
        self.copies += 1
        lance.dataset(self.path).shallow_clone(str(self.folder / f"clone{self.copies}.lance"), 3)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
        folder = Path(scratch)
        rows = engines.generate(chosen.scale, folder)["lineitem"]
        # Others than those that are deleted: a row that goes and comes back is no difference, but two in Delta's feed.
        stay = pc.not_equal(pc.subtract(rows["l_orderkey"], pc.multiply(pc.divide(rows["l_orderkey"], 100), 100)), 7)
        more = rows.filter(stay).slice(0, rows.num_rows // 100)
        sides: dict[str, Any] = {kind.__name__: kind(folder, rows, more) for kind in (Drumlin, Delta, Lance)}
        print(f"lineitem, {rows.num_rows} rows; {more.num_rows} appended, about as many deleted")
        for what in ("diff", "restore", "copy"):
            times: dict[str, list[float]] = {}
            answers = set()
            for _ in range(chosen.runs):
                for name, side in sides.items():
                    if (work := getattr(side, what)) is not None:
                        took, answer = timed(work)
                        times.setdefault(name, []).append(took)
                        answers.add(answer)
            assert len(answers) == 1, answers
            raw.keep(what, times)
            for name, took in times.items():
                ratio = statistics.median(own / other for own, other in zip(times["Drumlin"], took, strict=True))
                told = f"{statistics.median(took) * 1000:9.1f} ms"
                print(f"{what:8} {name:8} {told}" + ("" if name == "Drumlin" else f"   ratio {ratio:.3f}"))


if __name__ == "__main__":
    main()
