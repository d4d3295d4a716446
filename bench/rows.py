"""Rows and columns that change: updates, merges and added columns, beside Delta, Lance and DuckDB.

Each holds lineitem of TPC-H. Timed, in this process with two threads, in turn, on the same disk: one per cent of the
rows updated by predicate; 100,000 rows merged by their key, half of them updates and half inserts; a column of integers
added, the same in all rows. Each run changes what the run before has left. Medians, and the median of the ratios round
by round; a ratio below 1 means that Drumlin took less. At the end all must hold the same sums.

    python bench/rows.py [--scale 1] [--runs 5] [--rows 100000] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Sets how many threads there are, so it comes first.
from changes import THREADS, timed  # isort: skip
import deltalake
import duckdb
import lance
import pyarrow as pa
import pyarrow.compute as pc
import raw

import drumlin
import engines

#: Every hundredth order.
UPDATED = "l_orderkey % 100 = 7"
KEY = ["l_orderkey", "l_linenumber"]
SUMS = ["l_quantity", "l_extendedprice", "l_orderkey"]


def merged(rows: pa.Table, count: int, run: int) -> pa.Table:
    """Half of the rows are there, scattered; the others are new."""
    step = rows.num_rows // (count // 2)
    there = rows.take(pa.array(range(run, rows.num_rows, step))[: count // 2])
    new = rows.slice(0, count // 2)
    last = pc.max(rows["l_orderkey"]).as_py() + 1 + run * count
    keys = pa.array(range(last, last + new.num_rows), rows.schema.field("l_orderkey").type)
    new = new.set_column(new.schema.get_field_index("l_orderkey"), "l_orderkey", keys)
    return pa.concat_tables([there, new]).combine_chunks()


class Drumlin:
    def __init__(self, folder: Path, rows: pa.Table) -> None:
        self.store = drumlin.open(folder / "store", cpu_threads=THREADS)
        self.store.write("t", rows)
        self.table = self.store.table("t")

    def update(self, _run: int, _rows: pa.Table) -> None:
        self.table.update({"l_quantity": "l_quantity + 1"}, where=UPDATED)

    def merge(self, _run: int, rows: pa.Table) -> None:
        self.table.merge(rows, on=KEY).when_matched(update=True).when_not_matched(insert=True).execute()

    def add(self, run: int, _rows: pa.Table) -> None:
        self.table.add_columns({f"added{run}": (pa.int64(), run)})

    def sums(self) -> list[Any]:
        table = self.store.read("t", columns=SUMS).to_arrow()
        return [table.num_rows, *(pc.sum(table[name]).as_py() for name in SUMS)]


class Delta:
    def __init__(self, folder: Path, rows: pa.Table) -> None:
        self.path = str(folder / "delta")
        deltalake.write_deltalake(self.path, rows)

    def update(self, _run: int, _rows: pa.Table) -> None:
        deltalake.DeltaTable(self.path).update(updates={"l_quantity": "l_quantity + 1"}, predicate=UPDATED)

    def merge(self, _run: int, rows: pa.Table) -> None:
        on = " and ".join(f"t.{name} = s.{name}" for name in KEY)
        table = deltalake.DeltaTable(self.path)
        merge = table.merge(rows, on, source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    add: Callable[[int, pa.Table], None] | None = None

    def sums(self) -> list[Any]:
        table = deltalake.DeltaTable(self.path).to_pyarrow_table(columns=SUMS)
        return [table.num_rows, *(pc.sum(table[name]).as_py() for name in SUMS)]


class Lance:
    def __init__(self, folder: Path, rows: pa.Table) -> None:
        self.path = str(folder / "t.lance")
        lance.write_dataset(rows, self.path)

    def update(self, _run: int, _rows: pa.Table) -> None:
        lance.dataset(self.path).update({"l_quantity": "l_quantity + 1"}, where=UPDATED)

    def merge(self, _run: int, rows: pa.Table) -> None:
        merge = lance.dataset(self.path).merge_insert(KEY)
        merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def add(self, run: int, _rows: pa.Table) -> None:
        lance.dataset(self.path).add_columns({f"added{run}": f"cast({run} as bigint)"})

    def sums(self) -> list[Any]:
        table = lance.dataset(self.path).to_table(columns=SUMS)
        return [table.num_rows, *(pc.sum(table[name]).as_py() for name in SUMS)]


class DuckDB:
    def __init__(self, folder: Path, rows: pa.Table) -> None:
        self.con = duckdb.connect(str(folder / "duck.db"), config={"threads": THREADS})
        self.con.register("rows", rows)
        self.con.execute("create table t as from rows; checkpoint")

    def update(self, _run: int, _rows: pa.Table) -> None:
        self.con.execute(f"update t set l_quantity = l_quantity + 1 where {UPDATED}; checkpoint")

    def merge(self, _run: int, rows: pa.Table) -> None:
        self.con.register("news", rows)
        using = ", ".join(KEY)
        # The columns that were added to it have no values.
        self.con.execute(
            f"merge into t using news using ({using}) when matched then update by name "
            "when not matched then insert by name; checkpoint"
        )

    def add(self, run: int, _rows: pa.Table) -> None:
        self.con.execute(f"alter table t add column added{run} bigint default {run}; checkpoint")

    def sums(self) -> list[Any]:
        sums = ", ".join(f"sum({name})" for name in SUMS)
        return list(self.con.execute(f"select count(*), {sums} from t").fetchall()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
        folder = Path(scratch)
        rows = engines.generate(chosen.scale, folder)["lineitem"]
        sides: dict[str, Any] = {kind.__name__: kind(folder, rows) for kind in (Drumlin, Delta, Lance, DuckDB)}
        print(f"lineitem, {rows.num_rows} rows; {chosen.rows} merged")
        for what in ("update", "merge", "add"):
            times: dict[str, list[float]] = {}
            for run in range(chosen.runs):
                source = merged(rows, chosen.rows, run) if what == "merge" else rows
                for name, side in sides.items():
                    if (work := getattr(side, what)) is not None:
                        times.setdefault(name, []).append(timed(lambda w=work, r=run, s=source: w(r, s))[0])
            raw.keep(what, times)
            for name, took in times.items():
                ratio = statistics.median(own / other for own, other in zip(times["Drumlin"], took, strict=True))
                told = f"{statistics.median(took) * 1000:9.1f} ms"
                print(f"{what:8} {name:8} {told}" + ("" if name == "Drumlin" else f"   ratio {ratio:.3f}"))
        sums = {name: [str(value) for value in side.sums()] for name, side in sides.items()}
        assert len({tuple(values) for values in sums.values()}) == 1, sums


if __name__ == "__main__":
    main()
