"""How far a replica is behind a store that is written all the time, and what a copy of a whole store costs.

Commits come from several threads at a given rate; a process keeps the replica, and another one looks how far it is. The
copy is compared with ``cp -r``, which neither reads again what it wrote nor knows what belongs to the store.

    python bench/replicas.py [--seconds 15] [--rate 1000] [--megabytes 400]
"""

from __future__ import annotations

import argparse
import bisect
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import drumlin

RUNS = 5
KEEP = """
import datetime as dt, sys, drumlin
drumlin.follow(sys.argv[1], sys.argv[2], poll=dt.timedelta(milliseconds=int(sys.argv[3])))
"""


def written(store: drumlin.Store, seconds: float, rate: float, threads: int) -> list[tuple[float, int]]:
    """Commits at a rate; the times at which commits were acknowledged, with their numbers."""
    done: list[tuple[float, int]] = []
    until, lock = time.monotonic() + seconds, threading.Lock()

    def work(number: int) -> None:
        table, next_at, n = store.table(f"t{number}"), time.monotonic(), 0
        while (now := time.monotonic()) < until:
            if now < next_at:
                time.sleep(next_at - now)
            next_at += threads / rate
            table.upsert({"id": [n % 5000], "v": [float(n)]})
            n += 1
            if n % 20 == 0:
                with lock:
                    done.append((time.monotonic(), store.seq))

    for number in range(threads):
        store.table(f"t{number}").create(pa.schema([("id", pa.int64()), ("v", pa.float64())]), key=["id"])
    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    return done


def lags(seconds: float, rate: float, poll: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        here, there = f"{folder}/here", f"{folder}/there"
        with drumlin.open(here, sync="interval") as store:
            store.write("first", {"n": [1]})
            store.follow_to(there, once=True, lease=False)
            process = subprocess.Popen([sys.executable, "-c", KEEP, here, there, str(poll)])
            seen: list[tuple[float, int]] = []
            stop = threading.Event()

            def look() -> None:
                with drumlin.open(there, mode="read") as replica:
                    while not stop.is_set():
                        seen.append((time.monotonic(), replica.refresh()))
                        time.sleep(0.01)

            looker = threading.Thread(target=look)
            looker.start()
            began = time.monotonic()
            acknowledged = written(store, seconds, rate, 8)
            took, commits = time.monotonic() - began, store.seq
            while seen[-1][1] < commits and time.monotonic() < began + seconds + 60:
                time.sleep(0.02)
            stop.set()
            looker.join()
            process.kill()
            process.wait()
        numbers = [seq for _, seq in seen]
        behind = []
        for at, seq in acknowledged:
            there_at = bisect.bisect_left(numbers, seq)
            if there_at < len(seen):
                behind.append(max(seen[there_at][0] - at, 0.0))
        behind.sort()
        middle, late = statistics.median(behind), behind[len(behind) * 99 // 100]
        print(f"looks every {poll} ms, {commits / took:,.0f} commits/s: behind by {middle:.3f} s, ", end="")
        print(f"{late:.3f} s (p99), {behind[-1]:.3f} s (most)")


def copies(megabytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = f"{folder}/here"
        rows = megabytes * 1_000_000 // 16 // 40
        draw = np.random.default_rng(1)
        with drumlin.open(here) as store:
            for n in range(40):
                store.write(f"t/{n}", pa.table({"a": draw.random(rows), "b": draw.integers(0, 2**62, rows)}))
            store.checkpoint()
        times: dict[str, list[float]] = {"clone": [], "cp": []}
        for run in range(RUNS):
            for name in ("clone", "cp"):
                subprocess.run(["sync"], check=True)
                began = time.perf_counter()
                if name == "clone":
                    drumlin.clone(here, f"{folder}/{name}{run}")
                else:
                    # Durable, as the other one is.
                    subprocess.run(
                        ["sh", "-c", f"cp -r {here} {folder}/cp{run} && sync -f {folder}/cp{run}"], check=True
                    )
                times[name].append(time.perf_counter() - began)
                subprocess.run(["rm", "-r", f"{folder}/{name}{run}"], check=True)
        size = sum(file.stat().st_size for file in Path(here).rglob("*") if file.is_file())
        clone, cp = (statistics.median(times[name]) for name in ("clone", "cp"))
        print(f"a store of {size / 1e6:,.0f} MB: clone {clone:.2f} s, cp {cp:.2f} s; ratio {clone / cp:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--megabytes", type=int, default=400)
    arguments = parser.parse_args()
    for poll in (50, 500):
        lags(arguments.seconds, arguments.rate, poll)
    copies(arguments.megabytes)
