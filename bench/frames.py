"""Frames of doubles, and wide and small ones, beside ArcticDB on LMDB: written, and read whole, by columns, by range
and by filter.

Both run in this process with two threads each, in turn, on the same disk; medians, and the median of the ratios round
by round. A ratio above 1 means that Drumlin was as many times faster. ArcticDB's LMDB does not wait for the disk, and
neither does Drumlin's store here (`sync="interval"`), but where it says "both durable": there Drumlin syncs each
commit, and the file of LMDB is synced after each write. Cold is a store, or library, just opened, whose files the
system has in memory.

    python bench/frames.py [--scale 1] [--runs 7] [--folder FOLDER] [--only normal,cents,shapes]
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREADS = 2
# ArcticDB reads these when it is loaded.
os.environ.update({f"ARCTICDB_VersionStore_Num{kind}Threads_int": str(THREADS) for kind in ("CPU", "IO")})

import arcticdb  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import raw  # noqa: E402
from duckdb_compare import timed  # noqa: E402

import drumlin  # noqa: E402

COLUMNS = [f"c{at}" for at in range(6)]


class Drumlin:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "drumlin"
        self.open()

    def open(self) -> None:
        self.store = drumlin.open(str(self.folder), cpu_threads=THREADS, sync="interval")
        self.durable = drumlin.open(f"{self.folder}-durable", cpu_threads=THREADS)

    def close(self) -> None:
        self.store.close()
        self.durable.close()

    def write(self, name: str, frame: pd.DataFrame) -> None:
        self.store.write(name, frame)

    def write_durably(self, name: str, frame: pd.DataFrame) -> None:
        self.durable.write(name, frame)

    def read(self, name: str, **how: Any) -> pd.DataFrame:
        between = how.pop("between", None)
        if between is not None:
            how["where"] = f"ts >= '{between[0]}' and ts <= '{between[1]}'"
        if "above" in how:
            column, value = how.pop("above")
            how["where"] = f"{column} > {value}"
        return self.store.read(name, **how).to_pandas()

    def head(self, name: str) -> pd.DataFrame:
        return self.store.read(name, limit=5).to_pandas()


class Arctic:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "arctic"
        self.uri = f"lmdb://{self.folder}?map_size=20GB"
        self.open()

    def open(self) -> None:
        self.library = arcticdb.Arctic(self.uri).get_library("l", create_if_missing=True)

    def close(self) -> None:
        del self.library
        gc.collect()

    def write(self, name: str, frame: pd.DataFrame) -> None:
        self.library.write(name, frame)

    def write_durably(self, name: str, frame: pd.DataFrame) -> None:
        self.write(name, frame)
        for file in self.folder.rglob("data.mdb"):
            handle = os.open(file, os.O_RDWR)
            os.fsync(handle)
            os.close(handle)

    def read(self, name: str, **how: Any) -> pd.DataFrame:
        if "between" in how:
            how["date_range"] = how.pop("between")
        if "above" in how:
            column, value = how.pop("above")
            query = arcticdb.QueryBuilder()
            how["query_builder"] = query[query[column] > value]
        return self.library.read(name, **how).data

    def head(self, name: str) -> pd.DataFrame:
        return self.library.head(name, n=5).data


def report(what: str, ours: list[float], theirs: list[float], wanted: str = "") -> None:
    raw.keep(what, {"Drumlin": ours, "ArcticDB": theirs})
    mine, other = statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    print(f"| {what} | {mine:.1f} ms | {other:.1f} ms | {ratio:.2f} | {wanted} |", flush=True)


def pair(
    what: str, runs: int, peers: list[Any], work: Callable[[Any], object], wanted: str = "", cold: bool = False
) -> None:
    times: list[list[float]] = [[], []]
    for round_ in range(runs + 1):
        for peer, taken in zip(peers, times, strict=True):
            if cold:
                peer.close()
                peer.open()
            seconds = timed(lambda peer=peer: work(peer))
            # The first round warms up.
            if round_ > 0:
                taken.append(seconds)
    report(what, *times, wanted)


def written(what: str, runs: int, peers: list[Any], name: str, frame: pd.DataFrame, wanted: str) -> None:
    pair(f"{what}: write", runs, peers, lambda peer: peer.write(name, frame), wanted)
    pair(f"{what}: write, both durable", runs, peers, lambda peer: peer.write_durably(name, frame), wanted)


def doubles(folder: Path, kind: str, scale: float, runs: int, wanted: dict[str, str]) -> None:
    rng = np.random.default_rng(1)
    rows = int(3_000_000 * scale)
    index = pd.date_range("2026-01-01", periods=rows, freq="s", name="ts")
    values = rng.normal(100, 15, (rows, len(COLUMNS)))
    frame = pd.DataFrame(values if kind == "normal" else np.round(values, 2), index=index, columns=COLUMNS)
    peers: list[Any] = [Drumlin(folder), Arctic(folder)]
    written(kind, runs, peers, kind, frame, wanted["write"])
    pair(f"{kind}: read, cold", runs, peers, lambda peer: peer.read(kind), wanted["cold"], cold=True)
    pair(f"{kind}: read, warm", runs, peers, lambda peer: peer.read(kind), wanted["warm"])
    pair(f"{kind}: two columns", runs, peers, lambda peer: peer.read(kind, columns=["c1", "c4"]), wanted["columns"])
    between = (index[rows // 2], index[rows // 2 + rows // 100])
    pair(f"{kind}: 1 % range", runs, peers, lambda peer: peer.read(kind, between=between), wanted["range"])
    pair(f"{kind}: filter", runs, peers, lambda peer: peer.read(kind, above=("c2", 125.0)), wanted["filter"])
    size = sum(file.stat().st_size for file in (folder / "drumlin").rglob("*") if file.is_file())
    print(f"{kind}: {size / 1e6:.1f} MB for {runs + 1} versions and more")
    for peer in peers:
        peer.close()
    for name in ("drumlin", "drumlin-durable"):
        shutil.rmtree(folder / name)


def shapes(folder: Path, scale: float, runs: int) -> None:
    rng = np.random.default_rng(2)
    peers: list[Any] = [Drumlin(folder), Arctic(folder)]
    wide = pd.DataFrame(rng.normal(size=(10, 3000)), columns=[f"column_{at}" for at in range(3000)])
    written("10 rows x 3,000 columns", runs, peers, "wide", wide, "1")
    pair("10 rows x 3,000 columns: read", runs, peers, lambda peer: peer.read("wide"), "1")
    rows = int(200_000 * scale)
    middle = pd.DataFrame(rng.normal(size=(rows, 6)), columns=COLUMNS)
    written(f"{rows:,} rows", runs, peers, "middle", middle, "1")
    pair(f"{rows:,} rows: read", runs, peers, lambda peer: peer.read("middle"), "1")
    pair(f"{rows:,} rows: head(5)", 5 * runs, peers, lambda peer: peer.head("middle"), "1")
    texts = pd.DataFrame({"s": [f"text number {n}" for n in rng.integers(0, 10**9, int(100_000 * scale))]})
    texts["s"] = texts["s"].astype(object)
    written("100,000 strings", runs, peers, "texts", texts, "1")
    pair("100,000 strings: read", runs, peers, lambda peer: peer.read("texts"), "1")
    for peer in peers:
        peer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="normal,cents,shapes")
    options = parser.parse_args()
    print(
        f"{dt.date.today()}, {os.cpu_count()} cores, drumlin {drumlin.__version__}, arcticdb {arcticdb.__version__}, "
        f"pandas {pd.__version__}\n"
    )
    print("| what | Drumlin | ArcticDB | times as fast | wanted |\n|---|---|---|---|---|")
    limits = {
        "normal": {"write": "1", "cold": "1.2", "warm": "2", "columns": "1.2", "range": "1.2", "filter": "1.2"},
        "cents": {"write": "1.2", "cold": "1.5", "warm": "2.5", "columns": "", "range": "2", "filter": ""},
    }
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
            if name == "shapes":
                shapes(Path(temporary), options.scale, options.runs)
            else:
                doubles(Path(temporary), name, options.scale, options.runs, limits[name])


if __name__ == "__main__":
    main()
