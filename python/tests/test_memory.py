"""The memory used by a write stays within the budget, however much is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BUDGET = 256 << 20

# The most memory that this process has used. `ru_maxrss` would not do: it begins with what the parent has used, here
# all tests that ran before.
PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
"""

IMPORT = (
    PEAK
    + """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
import drumlin

# Without the reader's read-ahead of the whole file.
source = pq.ParquetFile(sys.argv[1], pre_buffer=False)
store = drumlin.open(sys.argv[2], memory_bytes=int(sys.argv[3]))
# The libraries take their memory before the measurement begins.
store.write("warm", pa.table({"n": range(10)}))
next(source.iter_batches(batch_size=65_536))
before = peak()
stream = pa.RecordBatchReader.from_batches(source.schema_arrow, source.iter_batches(batch_size=65_536))
rows = store.write("t", stream).rows
after = peak()
print(rows, after - before)
"""
)


# faults: hostile sizes x write
@pytest.mark.parametrize("budget", [BUDGET])
def test_an_import_larger_than_the_budget_stays_within_it(tmp_path: Path, budget: int) -> None:
    np = pytest.importorskip("numpy")
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    # 400 MB that do not compress.
    random = np.random.default_rng(1)
    schema = pa.schema([(f"c{at}", pa.float64()) for at in range(8)])
    rows, parts = 0, 100
    with pq.ParquetWriter(tmp_path / "large.parquet", schema, compression="none", use_dictionary=False) as writer:
        for _ in range(parts):
            part = pa.table([random.random(62_500) for _ in range(8)], schema=schema)
            writer.write_table(part)
            rows += part.num_rows
    assert (tmp_path / "large.parquet").stat().st_size > 1.4 * budget
    command = [sys.executable, "-c", IMPORT, str(tmp_path / "large.parquet"), str(tmp_path / "s"), str(budget)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert int(answer[0]) == rows
    assert int(answer[1]) <= budget, f"{int(answer[1]) / 1e6:.0f} MB of a budget of {budget / 1e6:.0f} MB"


UPSERT = (
    PEAK
    + """
import sys
import numpy as np, pyarrow as pa
import drumlin

rows, parts = 62_500, 100
schema = pa.schema([("k", pa.int64())] + [(f"c{at}", pa.float64()) for at in range(7)])

def batches(seed):
    random = np.random.default_rng(seed)
    # Every row of the table again, in an order unrelated to that of the keys.
    for part in range(parts):
        keys = (np.arange(part * rows, (part + 1) * rows, dtype=np.int64) * 2_654_435_761) % (rows * parts * 4)
        yield pa.record_batch([keys] + [random.random(rows) for _ in range(7)], schema=schema)

store = drumlin.open(sys.argv[1], memory_bytes=int(sys.argv[2]))
table = store.table("t").create(schema, key=["k"])
table = store.table("t")
table.upsert(pa.RecordBatchReader.from_batches(schema, batches(1)))
store.checkpoint()
table.upsert(pa.RecordBatchReader.from_batches(schema, batches(2)))
store.checkpoint()
print(store.read("t", columns=["k"]).to_arrow().num_rows, peak())
"""
)


# faults: hostile sizes x upsert
def test_an_upsert_larger_than_the_budget_stays_within_it(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("pyarrow")
    command = [sys.executable, "-c", UPSERT, str(tmp_path / "s"), str(BUDGET)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert int(answer[0]) == 6_250_000
    # The keys of the call and of the row groups searched, the caches, the interpreter and its libraries come on top.
    assert int(answer[1]) <= BUDGET + (640 << 20), f"{int(answer[1]) / 1e6:.0f} MB"
