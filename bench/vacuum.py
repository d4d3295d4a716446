"""Drumlin compared with DuckDB when rows are deleted: vacuum, the chain of loads and deletes, queries over what is
left.

Both run in this process with two threads each, in turn, on the same disk; medians and ratios are printed. A ratio
below 1 means that Drumlin took less. Only the newest version is retained.

    python bench/vacuum.py [--scale 1] [--runs 5] [--folder FOLDER]
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import raw
from duckdb_compare import (
    Q1_COLUMNS,
    THREADS,
    Report,
    bytes_under,
    duckdb_open,
    import_drumlin,
    import_duckdb,
    remove,
    timed,
    workplace,
)

import drumlin

HALF = "l_orderkey % 2 = 0"
Q1 = """
    SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
        sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
        avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
    FROM {} WHERE l_shipdate <= DATE '1998-09-02'
    GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus"""


def opened(path: Path, threads: int = THREADS) -> drumlin.Store:
    return drumlin.open(str(path), cpu_threads=threads)


def forget(path: Path) -> None:
    """Makes the system drop its cached pages of these files."""
    for file in [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]:
        handle = os.open(file, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def ours_q1(store: drumlin.Store, engine: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    engine.register("lineitem", store.read("lineitem", columns=Q1_COLUMNS, native=True))
    return engine.execute(Q1.format("lineitem")).fetchall()


def in_memory() -> duckdb.DuckDBPyConnection:
    return duckdb_open(Path(":memory:"))


@contextmanager
def copied(ours: Path, work: Path, threads: int = THREADS) -> Iterator[drumlin.Store]:
    """A copy of a store, opened, that keeps only the newest version."""
    remove(work)
    shutil.copytree(ours, work)
    with opened(work, threads) as store:
        store.set_retention("lineitem", keep_last=1)
        yield store


def pairs(runs: int, ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[list[float], list[float]]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        times[0].append(ours())
        times[1].append(theirs())
    return times


def delete_half(report: Report, folder: Path, ours: Path, theirs: Path, runs: int) -> None:
    work, other = folder / "work.drumlin", folder / "work.duckdb"

    def mine() -> float:
        with copied(ours, work) as store:

            def half() -> None:
                store.table("lineitem").delete(HALF)
                store.checkpoint()
                store.reclaim()

            return timed(half)

    def duck() -> float:
        remove(other)
        shutil.copyfile(theirs, other)
        with duckdb_open(other) as connection:

            def half() -> None:
                connection.execute(f"DELETE FROM lineitem WHERE {HALF}")
                connection.execute("CHECKPOINT")

            return timed(half)

    report.pair("delete even orders, checkpoint, reclaim", *pairs(runs, mine, duck))
    report.sizes("size after it", bytes_under(work), bytes_under(other))


def chain(report: Report, folder: Path, parquet: Path, runs: int) -> tuple[Path, Path]:
    ours, theirs = folder / "chain.drumlin", folder / "chain.duckdb"

    def mine() -> float:
        remove(ours)

        def work() -> None:
            with opened(ours) as store:
                store.set_retention("**", keep_last=1)
                for at in range(6):
                    rows = pq.ParquetFile(parquet)
                    stream = pa.RecordBatchReader.from_batches(rows.schema_arrow, rows.iter_batches(122_880))
                    (store.write if at == 0 else store.append)("lineitem", stream)
                    store.table("lineitem").delete(HALF)
                store.checkpoint()
                store.reclaim()

        return timed(work)

    def duck() -> float:
        remove(theirs)

        def work() -> None:
            with duckdb_open(theirs) as connection:
                for at in range(6):
                    verb = "CREATE TABLE lineitem AS" if at == 0 else "INSERT INTO lineitem"
                    connection.execute(f"{verb} FROM read_parquet('{parquet}')")
                    connection.execute(f"DELETE FROM lineitem WHERE {HALF}")
                connection.execute("CHECKPOINT")

        return timed(work)

    report.pair("six times load and delete half, checkpoint", *pairs(runs, mine, duck))
    report.sizes("size after it", bytes_under(ours), bytes_under(theirs))
    return ours, theirs


def queries(report: Report, name: str, ours: Path, theirs: Path, runs: int) -> None:
    def cold_mine() -> float:
        forget(ours)

        def work() -> None:
            with opened(ours) as store, in_memory() as engine:
                ours_q1(store, engine)

        return timed(work)

    def cold_duck() -> float:
        forget(theirs)

        def work() -> None:
            with duckdb_open(theirs) as connection:
                connection.execute(Q1.format("lineitem")).fetchall()

        return timed(work)

    report.pair(f"Q1 {name}, cold", *pairs(runs, cold_mine, cold_duck))
    with opened(ours) as store, in_memory() as engine, duckdb_open(theirs) as connection:
        mine, duck = ours_q1(store, engine), connection.execute(Q1.format("lineitem")).fetchall()
        assert [row[:6] for row in mine] == [row[:6] for row in duck], "the two disagree"
        times = pairs(
            2 * runs,
            lambda: timed(lambda: ours_q1(store, engine)),
            lambda: timed(lambda: connection.execute(Q1.format("lineitem")).fetchall()),
        )
    report.pair(f"Q1 {name}, hot", *times)


def before_and_after(folder: Path, ours: Path, runs: int) -> None:
    work = folder / "work.drumlin"
    with copied(ours, work) as store, in_memory() as engine:
        store.table("lineitem").delete(HALF)
        before = statistics.median([timed(lambda: ours_q1(store, engine)) for _ in range(runs + 1)][1:])
        store.checkpoint()
        store.reclaim()
        after = statistics.median([timed(lambda: ours_q1(store, engine)) for _ in range(runs + 1)][1:])
    print(f"Q1 with half deleted: {before:.3f} s before the vacuum, {after:.3f} s after it: {after / before:.2f}")


def threads(folder: Path, ours: Path, runs: int) -> None:
    work = folder / "work.drumlin"

    def vacuum(n: int) -> float:
        with copied(ours, work, n) as store:
            store.table("lineitem").delete(HALF)
            return timed(store.checkpoint)

    one, two = pairs(runs, lambda: vacuum(1), lambda: vacuum(2))
    raw.keep("vacuum of lineitem", {"one thread": one, "two threads": two})
    ratio = statistics.median(a / b for a, b in zip(one, two, strict=True))
    print(
        f"vacuum of lineitem: one thread {statistics.median(one):.3f} s, "
        f"two {statistics.median(two):.3f} s: {ratio:.2f}"
    )


def many_small(folder: Path, runs: int) -> None:
    many, one = folder / "many.drumlin", folder / "one.drumlin"
    tables, rows = 1000, 10_000

    def frame(n: int) -> pa.Table:
        ids = pa.array(range(n))
        return pa.table({"id": ids, "price": pa.array([(i * 7919 % 100_003) / 100 for i in range(n)])})

    def run(path: Path, frames: dict[str, pa.Table]) -> float:
        remove(path)
        with opened(path) as store:
            store.set_retention("**", keep_last=1)
            store.write_many(frames)
            for name in frames:
                store.table(name).delete("id % 2 = 0")
            return timed(store.checkpoint)

    small, large = frame(rows), frame(tables * rows)
    each = {f"t/{n}": small for n in range(tables)}
    times = pairs(
        runs,
        lambda: run(many, each),
        lambda: run(one, {"t": large}),
    )
    raw.keep("vacuum of as many rows", {"1,000 tables": times[0], "one table": times[1]})
    ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
    a, b = (statistics.median(side) for side in times)
    print(f"vacuum of 1,000 tables of 10,000 rows {a:.3f} s, of one of 10,000,000 {b:.3f} s: {ratio:.2f}")
    remove(many)
    remove(one)


def main() -> None:
    with workplace(__doc__) as (folder, parquet, runs):
        compare(folder, parquet, runs)


def compare(folder: Path, parquet: Path, runs: int) -> None:
    report = Report()
    ours, theirs = folder / "whole.drumlin", folder / "whole.duckdb"
    remove(ours)
    remove(theirs)
    import_drumlin(ours, parquet)
    import_duckdb(theirs, parquet)

    delete_half(report, folder, ours, theirs, runs)
    queries(report, "of lineitem", ours, theirs, runs)
    before_and_after(folder, ours, runs)
    threads(folder, ours, runs)
    many_small(folder, max(3, runs // 2))
    chained = chain(report, folder, parquet, max(3, runs // 2))
    queries(report, "after the chain", *chained, runs)

    report.show()
    for leftover in ("whole", "work", "chain"):
        for kind in ("drumlin", "duckdb"):
            remove(folder / f"{leftover}.{kind}")


if __name__ == "__main__":
    main()
