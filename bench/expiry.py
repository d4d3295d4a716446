"""What it costs that rows expire: the same rows in two tables with a key, one of which has a time to live.

Of one pair of tables no row has expired, of the other every second one. Reads in this process, in turn; medians, and
ratios: 1 means that the time to live costs nothing.

    python bench/expiry.py [--rows 4000000]
"""

from __future__ import annotations

import argparse
import datetime as dt
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import drumlin

RUNS = 9
READS: dict[str, Callable[[Any, list[int]], object]] = {
    "a column": lambda table, _: table.read(columns="v").to_arrow(),
    "a filter, one row in 1,000": lambda table, _: table.read(columns="v", where="v > 0.999").to_arrow(),
    "counted": lambda table, _: table.scan_count(),
    "1,000 rows by key": lambda table, keys: table.get_many(keys, columns=["v"]),
    "one row by key": lambda table, _: table.get(77),
}


class Counted:
    """A table whose rows are also counted."""

    def __init__(self, store: drumlin.Store, path: str) -> None:
        self._store, self._table = store, store.table(path)

    def scan_count(self) -> int:
        return self._store.scan(self._table.path).count_rows()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


def rows(count: int, expired: bool) -> pa.Table:
    draw = np.random.default_rng(1)
    now = np.datetime64(dt.datetime.now(dt.UTC).replace(tzinfo=None), "us")
    times = now + draw.integers(-(10**9) if expired else 10**7, 10**9, count).astype("timedelta64[ms]")
    return pa.table({"id": np.arange(count), "v": draw.random(count), "t": pa.array(times, pa.timestamp("us", "UTC"))})


def medians(read: Callable[[Any, list[int]], object], pair: list[Any], keys: list[int]) -> list[float]:
    """The median time of a read in each table of a pair, in turn, in milliseconds."""
    times: list[list[float]] = [[] for _ in pair]
    for _ in range(RUNS):
        for own, table in zip(times, pair, strict=True):
            began = time.perf_counter()
            read(table, keys)
            own.append((time.perf_counter() - began) * 1000)
    return [statistics.median(own) for own in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    count = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder, drumlin.open(f"{folder}/store") as store:
        for expired in (False, True):
            frame, pair = rows(count, expired), []
            for path in ("plain", "expiring"):
                table = store.table(f"{path}/{expired}")
                table.create(frame.schema, key=["id"])
                table.append(frame)
                pair.append(Counted(store, table.path))
            pair[1].set_ttl("t")
            keys = list(range(0, count, max(count // 1000, 1)))
            for name, read in READS.items():
                plain, expiring = medians(read, pair, keys)
                half = "every second row has expired" if expired else "none has expired"
                print(f"{half:30} {name:28} {plain:8.2f} ms {expiring:8.2f} ms  {expiring / plain:5.2f}")
        for _ in range(2):
            began = time.perf_counter()
            report = store.checkpoint()
            print(f"a checkpoint: {(time.perf_counter() - began) * 1000:.0f} ms, {report.rows_expired} rows deleted")


if __name__ == "__main__":
    main()
