"""Drumlin compared with DuckDB on TPC-H lineitem: import, size, reading Q1's columns.

Both run in this process with two threads each, in turn, on the same disk; medians and ratios are printed. A ratio
below 1 means that Drumlin took less.

    python bench/duckdb_compare.py [--scale 1] [--runs 5] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import raw

import drumlin
from drumlin import _drumlin

THREADS = 2
Q1_COLUMNS = [
    "l_returnflag",
    "l_linestatus",
    "l_quantity",
    "l_extendedprice",
    "l_discount",
    "l_tax",
    "l_shipdate",
]


def bytes_under(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Report:
    """Collects pairs of times and prints a table of medians."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, str]] = []

    def pair(self, name: str, ours: list[float], theirs: list[float]) -> None:
        raw.keep(name, {"Drumlin": ours, "DuckDB": theirs})
        mine, other = statistics.median(ours), statistics.median(theirs)
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        self.rows.append((name, f"{mine:.3f} s", f"{other:.3f} s", f"{ratio:.2f}"))
        print(
            f"{name}: drumlin {mine:.3f} s, duckdb {other:.3f} s, ratio {ratio:.2f}",
            flush=True,
        )

    def sizes(self, name: str, ours: int, theirs: int) -> None:
        self.rows.append(
            (
                name,
                f"{ours / 1e6:.1f} MB",
                f"{theirs / 1e6:.1f} MB",
                f"{ours / theirs:.2f}",
            )
        )
        print(
            f"{name}: drumlin {ours / 1e6:.1f} MB, duckdb {theirs / 1e6:.1f} MB",
            flush=True,
        )

    def show(self) -> None:
        print(f"\n{date.today()}, {os.cpu_count()} cores, drumlin {drumlin.__version__}, duckdb {duckdb.__version__}\n")
        print(self.markdown())

    def markdown(self) -> str:
        head = "| what | Drumlin | DuckDB | ratio |\n|---|---|---|---|\n"
        return head + "\n".join("| " + " | ".join(row) + " |" for row in self.rows)


def lineitem(folder: Path, scale: float) -> Path:
    """The Parquet file, generated once."""
    target = folder / f"lineitem-{scale:g}-plain.parquet"
    if not target.exists():
        made = folder / "generated"
        command = [str(Path(sys.executable).parent / "tpchgen-cli"), "parquet"]
        subprocess.run(
            [*command, "-s", f"{scale:g}", "--tables=lineitem", "-o", str(made)],
            check=True,
        )
        # As plain strings, as in DuckDB: so both return the same Arrow types.
        rows = pq.read_table(made / "lineitem.parquet")
        plain = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in rows.schema]
        pq.write_table(rows.cast(pa.schema(plain)), target, compression="snappy")
        shutil.rmtree(made)
    return target


def duckdb_open(path: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(str(path))
    connection.execute(f"SET threads = {THREADS}")
    return connection


def import_drumlin(path: Path, parquet: Path) -> None:
    code = _drumlin.main(["drumlin", "import", str(path), str(parquet), "--table", "lineitem"])
    assert code == 0, code


def import_duckdb(path: Path, parquet: Path) -> None:
    with duckdb_open(path) as connection:
        connection.execute(f"CREATE TABLE lineitem AS FROM read_parquet('{parquet}')")
        connection.execute("CHECKPOINT")


def exact(table: pa.Table) -> pa.Schema:
    return pa.schema([field.remove_metadata() for field in table.schema])


@contextmanager
def workplace(description: str | None) -> Iterator[tuple[Path, Path, int]]:
    """From the arguments: a folder to work in, which is deleted if it was not named; the rows; how many runs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="drumlin-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    yield folder, lineitem(folder, arguments.scale), arguments.runs
    if arguments.folder is None:
        shutil.rmtree(folder)


def main() -> None:
    with workplace(__doc__) as (folder, parquet, runs):
        compare(folder, parquet, runs)


def compare(folder: Path, parquet: Path, runs: int) -> None:
    report = Report()
    ours, theirs = folder / "bench.drumlin", folder / "bench.duckdb"

    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        remove(ours)
        remove(theirs)
        times[0].append(timed(lambda: import_drumlin(ours, parquet)))
        times[1].append(timed(lambda: import_duckdb(theirs, parquet)))
    report.pair("import Parquet to durable", *times)
    report.sizes("size on disk", bytes_under(ours), bytes_under(theirs))

    store = drumlin.open(str(ours), cpu_threads=THREADS)
    connection = duckdb_open(theirs)
    query = f"SELECT {', '.join(Q1_COLUMNS)} FROM lineitem"
    wanted = connection.sql(query).to_arrow_table()
    found = store.read("lineitem", columns=Q1_COLUMNS).to_arrow()
    assert found.num_rows == wanted.num_rows
    assert exact(found).types == exact(wanted).types, exact(found).types
    for name, native in (("same types", False), ("Drumlin's own types", True)):
        read = partial(store.read, "lineitem", columns=Q1_COLUMNS, native=native)
        times = ([], [])
        for _ in range(runs * 2 + 1):
            times[0].append(timed(lambda read=read: read().to_arrow()))
            times[1].append(timed(lambda: connection.sql(query).to_arrow_table()))
        # The first pair warms both up.
        report.pair(f"Q1's seven columns to Arrow, {name}", times[0][1:], times[1][1:])
    store.close()
    connection.close()

    many = folder / "many.drumlin"
    remove(many)
    small = pa.table({"n": pa.array(range(10))})
    with drumlin.open(str(many)) as store:
        store.write_many({f"t/{i:05}": small for i in range(10_000)})
        store.checkpoint()
    opened = [timed(lambda: drumlin.open(str(many)).close()) for _ in range(runs)]
    print(f"open a store of 10,000 tables: {statistics.median(opened):.3f} s")

    report.show()
    for leftover in (
        "bench.drumlin",
        "bench.duckdb",
        "many.drumlin",
    ):
        remove(folder / leftover)


if __name__ == "__main__":
    main()
