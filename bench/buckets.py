"""Rows changed in a bucket at 20 ms a request: an update, a delete and a merge of a large table, beside reading as much
of it.

The table is lineitem of TPC-H. Each round copies it, which shares its data, and changes the copy by a new handle, which
has read nothing: one per cent of the rows updated, one per cent deleted, 10,000 rows merged by two columns. The read
takes the columns that the update looks at, by a new handle too. The server is versitygw, built by Go as for the tests;
a proxy adds the latency. Medians; requests are counted by the store.

    python bench/buckets.py [--scale 1] [--runs 5] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import raw
from scale import s3, slow

import drumlin
import engines

LATENCY = 0.02
MERGED = 10_000


def requests(store: drumlin.Store) -> int:
    return int(
        sum(value for name, value in store.metrics().items() if name.startswith("drumlin_storage_requests_total"))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    if s3.build("versitygw") is None:
        print("NO GO: nothing was measured in a bucket")
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=chosen.folder)))
        rows = engines.generate(chosen.scale, folder)["lineitem"]
        port = stack.enter_context(s3.serve("versitygw", folder / "s3"))
        front = stack.enter_context(slow(port, LATENCY))
        with drumlin.open("s3://test/rows", storage_options=s3.options(port)) as store:
            store.write("t", rows)
            store.checkpoint()
        measure(rows, s3.options(front), chosen.runs)


def measure(rows: pa.Table, options: dict[str, Any], runs: int) -> None:
    step = rows.num_rows // MERGED
    source = rows.take(list(range(0, step * MERGED, step))).select(["l_orderkey", "l_linenumber", "l_quantity"])

    def merge(store: drumlin.Store) -> None:
        store.table("c").merge(source, on=["l_orderkey", "l_linenumber"]).when_matched(update=True).execute()

    works: dict[str, Callable[[drumlin.Store], Any]] = {
        "read two columns": lambda store: store.read("c", columns=["l_orderkey", "l_quantity"]).to_arrow(),
        "update 1 %": lambda store: store.table("c").update({"l_quantity": 1}, where="l_orderkey % 100 = 7"),
        "delete 1 %": lambda store: store.table("c").delete("l_orderkey % 100 = 7"),
        f"merge {MERGED:,} rows": merge,
    }
    print(f"lineitem, {rows.num_rows:,} rows, {LATENCY * 1000:.0f} ms a request")
    for what, work in works.items():
        times, counts = [], []
        for _ in range(runs):
            with drumlin.open("s3://test/rows", storage_options=options) as store:
                store.copy("t", "c")
                before, begun = requests(store), time.perf_counter()
                work(store)
                times.append(time.perf_counter() - begun)
                counts.append(requests(store) - before)
                store.drop("c")
        raw.keep(what, {"Drumlin": times})
        print(f"| {what} | {statistics.median(times):.2f} s | {statistics.median(counts):.0f} requests |", flush=True)


if __name__ == "__main__":
    main()
