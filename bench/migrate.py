"""How quickly tables are migrated: from ArcticDB, many small symbols and a few large ones, and out to Parquet.

Everything is on local disk. Times are those of whole calls: reading, digests, writing, reading back, commits.

    PYTHONPATH=.venv/migrate python bench/migrate.py [--symbols 1000] [--rows 1000000]
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

import arcticdb
import numpy as np
import pandas as pd
import raw

import drumlin
from drumlin import migrate


def small(n: int, version: int) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    days = pd.date_range("2024-01-01", periods=100 + 10 * version, tz="UTC", name="day")
    return pd.DataFrame({"x": rng.random(200)[: len(days)], "s": [f"text {n % 7}"] * len(days)}, index=days)


def large(rows: int, n: int) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    numbers = {f"x{column}": rng.random(rows) for column in range(5)}
    return pd.DataFrame(numbers, index=pd.date_range("2024-01-01", periods=rows, freq="s", name="time"))


def show(what: str, report: migrate.Report) -> None:
    seconds = report.seconds
    raw.keep(what, {"Drumlin": [seconds]})
    rates = f"{report.versions / seconds:,.0f}/s | {report.bytes / 1e6 / seconds:,.1f} MB/s"
    print(f"| {what} | {report.versions:,} | {rates} | {seconds:.1f} s |", flush=True)
    assert report.ok, report


def main(symbols: int, rows: int, folder: Path) -> None:
    arctic: Any = arcticdb.Arctic(f"lmdb://{folder / 'arctic'}?map_size=20GB")
    print("| what | versions or files | each | bytes | in all |\n|---|---|---|---|---|")
    library = arctic.create_library("small")
    for version in range(5):
        library.write_batch([arcticdb.WritePayload(f"s{n}", small(n, version)) for n in range(symbols)])
    with drumlin.open(folder / "store") as store:
        report = migrate.from_arctic(library, store, prefix="small")
        show(f"{symbols:,} symbols, 5 versions of 100 rows and more", report)
        show("the same again: nothing to do", migrate.from_arctic(library, store, prefix="small"))
        library = arctic.create_library("large")
        for n in range(4):
            library.write(f"s{n}", large(rows, n))
        show(f"4 symbols of {rows:,} rows", migrate.from_arctic(library, store, prefix="large"))
        show("large symbols to Parquet", migrate.to_parquet(store, "large/*", folder / "out"))
        with drumlin.open(folder / "other") as other:
            show("large symbols from Parquet", migrate.from_parquet(folder / "out", other))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--symbols", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        main(asked.symbols, asked.rows, Path(place))
