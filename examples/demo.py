"""The main job, on real input: TPC-H lineitem is imported, read, halved, looked at as it was, checkpointed, dropped,
reclaimed and verified. Prints what each step did, how long it took, and how much is on disk after it.

    python examples/demo.py [--scale 1] [--folder demo-data]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import drumlin


def bytes_under(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


class Steps:
    """Prints a line for each step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        print(f"{'step':<44}{'seconds':>9}{'rows':>13}{'MB on disk':>12}")

    @contextmanager
    def step(self, name: str) -> Iterator[dict[str, int]]:
        told: dict[str, int] = {}
        start = time.perf_counter()
        yield told
        seconds = time.perf_counter() - start
        rows = f"{told['rows']:,}" if "rows" in told else ""
        print(f"{name:<44}{seconds:>9.2f}{rows:>13}{bytes_under(self.folder) / 1e6:>12.1f}", flush=True)


def generate(folder: Path, scale: float) -> Path:
    """TPC-H lineitem as Parquet, made once."""
    target = folder / f"lineitem-{scale:g}.parquet"
    if not target.exists():
        made = folder / "generated"
        tool = Path(sys.executable).parent / "tpchgen-cli"
        subprocess.run([tool, "parquet", "-s", f"{scale:g}", "--tables=lineitem", "-o", made], check=True)
        (made / "lineitem.parquet").rename(target)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--folder", type=Path, default=Path("demo-data"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    parquet = generate(arguments.folder, arguments.scale)
    path = arguments.folder / "demo.drumlin"
    shutil.rmtree(path, ignore_errors=True)
    rows = pq.read_metadata(parquet).num_rows
    print(f"{parquet}: {rows:,} rows, {parquet.stat().st_size / 1e6:.1f} MB of Parquet\n")

    store = drumlin.open(str(path))
    steps = Steps(path)
    with steps.step("import the Parquet file") as told:
        source = pq.ParquetFile(parquet)
        stream = pa.RecordBatchReader.from_batches(source.schema_arrow, source.iter_batches(batch_size=122_880))
        version = store.write("tpch/lineitem", stream, metadata={"source": parquet.name})
        told["rows"] = version.rows
    with steps.step("read all of it") as told:
        told["rows"] = sum(batch.num_rows for batch in store.read("tpch/lineitem", native=True))
    with steps.step("read two columns where l_quantity > 49") as told:
        result = store.read("tpch/lineitem", columns=["l_orderkey", "l_shipdate"], where="l_quantity > 49")
        told["rows"] = result.to_arrow().num_rows
    store.snapshot("before", "tpch/**")
    with steps.step("delete the even orders") as told:
        told["rows"] = store.table("tpch/lineitem").delete("l_orderkey % 2 = 0").rows
    with steps.step("read what is left") as told:
        left = store.read("tpch/lineitem", columns=["l_orderkey"]).to_arrow().num_rows
        told["rows"] = left
    with steps.step("read it as it was (snapshot 'before')") as told:
        whole = store.read("tpch/lineitem", columns=["l_orderkey"], as_of="before").to_arrow().num_rows
        told["rows"] = whole
    assert whole == rows
    assert left < rows
    with steps.step("keep the last version only, checkpoint"):
        store.drop_snapshot("before")
        store.set_retention("tpch/**", keep_last=1)
        print(f"  {store.checkpoint()}")
    with steps.step("reclaim"):
        print(f"  {store.reclaim()}")
    with steps.step("verify every byte") as told:
        report = store.verify()
        told["rows"] = left
    assert not report.faults
    with steps.step("drop the table"):
        store.drop("tpch/lineitem")
    with steps.step("reclaim"):
        print(f"  {store.reclaim()}")
    with steps.step("verify"):
        report = store.verify()
    assert not report.faults
    assert not report.orphans
    assert store.stat().blocks == 0
    store.close()
    print("\nNothing is left but the log and the catalog.")


if __name__ == "__main__":
    main()
