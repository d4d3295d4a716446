"""What a view costs the commits that it follows: one symbol of many gets rows, with a view of bars and without one.

Two stores hold the same tables, one for each symbol, sorted by time; one of them has a view of bars of five minutes.
Appends to a symbol drawn at random are timed in pairs, in turns. Beside it: what computing all bars again takes, which
is what the view spares. Ratios below 1 mean that the store with the view took less.

    python bench/views.py [--symbols 5000] [--rows 20000] [--batch 1000] [--pairs 300] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import drumlin

BARS = {
    "open": ("px", "first"),
    "high": ("px", "max"),
    "low": ("px", "min"),
    "close": ("px", "last"),
    "volume": ("size", "sum"),
    "n": "count",
}


def trades(draw: np.random.Generator, rows: int, since: int, seconds: int) -> pa.Table:
    ts = np.sort(draw.integers(since * 1_000_000, (since + seconds) * 1_000_000, rows)).astype("datetime64[us]")
    return pa.table({"ts": ts, "px": draw.integers(9_000, 11_000, rows) / 100, "size": draw.integers(1, 500, rows)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--symbols", type=int, default=5000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--folder")
    given = parser.parse_args()
    draw = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        stores = {kind: drumlin.open(Path(folder) / kind) for kind in ("plain", "viewed")}
        day = 23_400
        for first in range(0, given.symbols, 500):
            frames = {
                f"trades/S{n:05}": trades(draw, given.rows, 0, day)
                for n in range(first, min(first + 500, given.symbols))
            }
            for store in stores.values():
                for path, frame in frames.items():
                    store.table(path).create(frame.schema, sort=["ts"])
                store.append_many(frames)
        viewed = stores["viewed"]
        began = time.perf_counter()
        viewed.view("bars", "trades/*", BARS, path_columns="sym", every="5m", on="ts")
        made = time.perf_counter() - began
        for store in stores.values():
            store.checkpoint()
        taken: dict[str, list[float]] = {kind: [] for kind in stores}
        until = dict.fromkeys(range(given.symbols), day)
        for pair in range(given.pairs):
            symbol = int(draw.integers(given.symbols))
            frame = trades(draw, given.batch, until[symbol], 60)
            until[symbol] += 60
            for kind in sorted(stores, reverse=pair % 2 == 0):
                began = time.perf_counter()
                stores[kind].append(f"trades/S{symbol:05}", frame)
                taken[kind].append(time.perf_counter() - began)
        began = time.perf_counter()
        again = viewed.scan("trades/*", path_columns=["sym"]).resample("5m", on="ts", by="sym").agg(**BARS).to_arrow()
        whole = time.perf_counter() - began
        assert viewed.read("bars").to_arrow().cast(again.schema).equals(again)
        medians = {kind: statistics.median(times) for kind, times in taken.items()}
        ratio = statistics.median(b / a for a, b in zip(taken["plain"], taken["viewed"], strict=True))
        print(f"{given.symbols} symbols x {given.rows} rows; {given.pairs} appends of {given.batch} rows to one symbol")
        print(f"made in {made:.2f} s; all bars computed again {whole:.2f} s, {again.num_rows} bars")
        print(f"append {medians['plain'] * 1e3:.2f} ms, with the view {medians['viewed'] * 1e3:.2f} ms: {ratio:.2f}")
        print(json.dumps({"bench": "views", **vars(given), "made": made, "again": whole, **medians, "ratio": ratio}))


if __name__ == "__main__":
    main()
