"""DuckDB over Drumlin, over Parquet and over Lance: TPC-H queries, and one order.

All run in this process with two threads, in turn, on the same rows and the same disk; medians, and the median of the
ratios round by
round. A ratio below 1 means that Drumlin took less. Cold is the first query of a connection on a store (file, data
set) just opened, whose files the system has in memory.

    python bench/engines.py [--scale 1] [--runs 7] [--folder FOLDER] [--only Q1,Q6]
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import raw

import drumlin

THREADS = 2
TABLES = ("lineitem", "orders", "customer")
SORTED = {"lineitem": ["l_orderkey"], "orders": ["o_orderkey"], "customer": ["c_custkey"]}
QUERIES = {
    "Q1": """
        select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
               sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
               avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
        from lineitem where l_shipdate <= date '1998-09-02'
        group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""",
    "Q3": """
        select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
        from customer, orders, lineitem
        where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
          and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
        group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10""",
    "Q6": """
        select sum(l_extendedprice * l_discount) from lineitem
        where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
          and l_discount between 0.05 and 0.07 and l_quantity < 24""",
    "Q12": """
        select l_shipmode, sum(case when o_orderpriority in ('1-URGENT', '2-HIGH') then 1 else 0 end),
               sum(case when o_orderpriority not in ('1-URGENT', '2-HIGH') then 1 else 0 end)
        from orders, lineitem
        where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate
          and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01' and l_receiptdate < date '1995-01-01'
        group by l_shipmode order by l_shipmode""",
    "one order": "select * from lineitem where l_orderkey = 3000001",
}


class Parquet:
    """DuckDB's own reader."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, rows: pa.Table) -> None:
        pq.write_table(rows, self.folder / f"{name}.parquet", row_group_size=122_880)

    def connect(self) -> Any:
        connection = duckdb.connect()
        for name in TABLES:
            connection.execute(f"create view {name} as from '{self.folder / name}.parquet'")
        return connection


class Lance:
    """Lance's data sets, as DuckDB reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, rows: pa.Table) -> None:
        import lance

        lance.write_dataset(rows, str(self.folder / f"{name}.lance"))

    def connect(self) -> Any:
        import lance

        connection = duckdb.connect()
        for name in TABLES:
            connection.register(name, lance.dataset(str(self.folder / f"{name}.lance")))
        return connection


class Drumlin:
    """Data sets of a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store: drumlin.Store | None = None

    def write(self, name: str, rows: pa.Table) -> None:
        with drumlin.open(self.folder / "store") as store:
            store.write(name, rows, sort=SORTED[name])

    def connect(self) -> Any:
        if self.store is not None:
            self.store.close()
        self.store = drumlin.open(self.folder / "store", mode="read", cpu_threads=THREADS, cache_bytes=1 << 30)
        connection = duckdb.connect()
        for name in TABLES:
            connection.register(name, self.store.scan(name))
        return connection


def generate(scale: float, folder: Path) -> dict[str, pa.Table]:
    tool = Path(sys.executable).parent / "tpchgen-cli"
    for name in TABLES:
        if not (folder / f"{name}.parquet").exists():
            command = [str(tool), "parquet", "-s", f"{scale:g}", f"--tables={name}", "-o", str(folder)]
            subprocess.run(command, check=True, capture_output=True)
    rows = {}
    for name in TABLES:
        table = pq.read_table(folder / f"{name}.parquet")
        plain = [pa.field(f.name, pa.string() if pa.types.is_string_view(f.type) else f.type) for f in table.schema]
        rows[name] = table.cast(pa.schema(plain))
    return rows


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compared(times: dict[str, list[float]]) -> str:
    """The medians, and those of the ratios of Drumlin's to the others' round by round."""
    told = [f"{kind} {statistics.median(t) * 1e3:.1f} ms" for kind, t in times.items()]
    ratios = [
        f"{kind} {statistics.median(a / b for a, b in zip(times['drumlin'], t, strict=True)):.2f}"
        for kind, t in times.items()
        if kind != "drumlin"
    ]
    return f"{', '.join(told)}; ratio to {', '.join(ratios)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default=",".join(QUERIES))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        run(options.scale, options.runs, options.folder or Path(temporary), options.only.split(","))


def run(scale: float, runs: int, folder: Path, only: list[str]) -> None:
    kinds: dict[str, type[Any]] = {"drumlin": Drumlin, "parquet": Parquet, "lance": Lance}
    try:
        import lance  # noqa: F401
    except ImportError:
        print("lance is not installed: left out")
        del kinds["lance"]
    generated = folder / f"tpch-{scale:g}"
    generated.mkdir(parents=True, exist_ok=True)
    made = {}
    for kind, of in kinds.items():
        place = folder / f"{kind}-{scale:g}"
        made[kind] = of(place)
        if not place.exists():
            place.mkdir()
            for name, rows in generate(scale, generated).items():
                made[kind].write(name, rows)
    for name in only:
        query = QUERIES[name]
        warm: dict[str, list[float]] = {kind: [] for kind in made}
        cold: dict[str, list[float]] = {kind: [] for kind in made}
        answers = {}
        for _ in range(runs):
            for kind, of in made.items():
                connection = of.connect()
                connection.execute(f"set threads = {THREADS}")
                cold[kind].append(timed(lambda c=connection, q=query: c.execute(q).fetchall()))
                answers[kind] = connection.execute(query).fetchall()
                warm[kind].append(min(timed(lambda c=connection, q=query: c.execute(q).fetchall()) for _ in range(3)))
                connection.close()
        assert all(answer == answers["drumlin"] for answer in answers.values()), answers
        for how, times in (("warm", warm), ("cold", cold)):
            raw.keep(f"{name} {how}", times)
            print(f"{name:10} {how}: {compared(times)}", flush=True)


if __name__ == "__main__":
    main()
