"""What a layout gives: filters on columns in no order, before and after, beside the Z-order of Delta of the same rows.

Both get the same frames, in the same order, into one table. Drumlin lays it out in a checkpoint, Delta by `optimize`;
it is asked through a pyarrow data set, which uses its statistics of files and those of Parquet. Ratios below 1 mean
that Drumlin took less.

    python bench/layouts.py [--rows 5000000] [--runs 51] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import raw
from deltalake import DeltaTable, write_deltalake

import drumlin

USERS, ITEMS, FRAMES = 50_000, 10_000, 10


def frames(rows: int) -> list[pa.Table]:
    draw = np.random.default_rng(1)
    each = rows // FRAMES
    return [
        pa.table(
            {
                "id": np.arange(at * each, (at + 1) * each),
                "user": draw.integers(0, USERS, each),
                "item": draw.integers(0, ITEMS, each),
                "price": draw.normal(size=each),
                "tag": pa.array(draw.integers(0, 30, each).astype(str)),
            }
        )
        for at in range(FRAMES)
    ]


def milliseconds(work: Callable[[int], Any], runs: int) -> list[float]:
    taken = []
    work(runs)
    for run in range(runs):
        began = time.perf_counter()
        work(run)
        taken.append((time.perf_counter() - began) * 1e3)
    return taken


def seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=51)
    parser.add_argument("--folder")
    given = parser.parse_args()
    measured: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        store, delta = drumlin.open(Path(folder) / "drumlin"), str(Path(folder) / "delta")
        for at, frame in enumerate(frames(given.rows)):
            write = store.append if at else store.write
            write("events", frame)
            write_deltalake(delta, frame, mode="append" if at else "error")
        store.checkpoint()
        events = store.table("events")

        def asked(column: str, last: int) -> tuple[Callable[[int], Any], Callable[[int], Any]]:
            value = lambda run: (run * 7919 + 17) % last  # noqa: E731
            dataset = DeltaTable(delta).to_pyarrow_dataset()
            own = lambda run: events.read(where=f"{column} = {value(run)}").to_arrow()  # noqa: E731
            other = lambda run: dataset.to_table(filter=pc.field(column) == value(run))  # noqa: E731
            for run in range(2):
                order = lambda table: table.sort_by("id").to_pydict()  # noqa: E731
                assert order(own(run)) == order(other(run)), column
            return own, other

        def measure(state: str) -> None:
            for column, last in (("user", USERS), ("item", ITEMS)):
                own, other = asked(column, last)
                measured[f"{state}: {column} = X, ms"] = [
                    milliseconds(own, given.runs),
                    milliseconds(other, given.runs),
                ]

        measure("as written")
        whole = lambda _: events.read().to_arrow()  # noqa: E731
        sums = lambda _: events.group_by("tag").agg(sum=("price", "sum")).to_arrow()  # noqa: E731
        measured["as written: all rows, ms"] = [milliseconds(whole, 3)]
        measured["as written: a sum by tag, ms"] = [milliseconds(sums, 3)]
        for name, layout in (("user", {"sort_by": ["user"]}), ("both", {"z_order": ["user", "item"]})):
            events.set_layout(**layout)
            own = seconds(store.checkpoint)
            other = seconds(
                lambda name=name: DeltaTable(delta).optimize.z_order(["user"] if name == "user" else ["user", "item"])
            )
            measured[f"laid out by {name}: writing, s"] = [[own], [other]]
            measure(f"laid out by {name}")
            measured[f"laid out by {name}: all rows, ms"] = [milliseconds(whole, 3)]
            measured[f"laid out by {name}: a sum by tag, ms"] = [milliseconds(sums, 3)]
            measured[f"laid out by {name}: overlap"] = [[events.stat().layout.overlap]]
    for what, sides in measured.items():
        if not what.endswith("overlap"):
            unit = 1e3 if what.endswith("ms") else 1
            named = zip(("Drumlin", "Delta"), sides, strict=False)
            raw.keep(what.rsplit(",", 1)[0], {side: [taken / unit for taken in times] for side, times in named})
        own, *other = (statistics.median(taken) for taken in sides)
        beside = f", Delta {other[0]:.2f}: {own / other[0]:.2f}" if other else ""
        print(f"{what}: {own:.2f}{beside}")


if __name__ == "__main__":
    main()
