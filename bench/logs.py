"""Small commits of many processes on a store in a bucket at 20 ms a request: with its log in the bucket, in PostgreSQL
and in etcd.

Each process upserts one row at a time into a table of its own, as fast as it can. The S3 server is versitygw, built by
Go as for the tests; a proxy adds the latency. PostgreSQL and etcd come from Debian's packages, on the same disk, and
make each commit durable.

    python bench/logs.py [--processes 16] [--seconds 10] [--runs 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import raw
from scale import s3, slow
from servers import cells

import drumlin

LATENCY = 0.02

WORK = """
import json, sys, time, drumlin
uri, options, log, number, seconds = json.loads(sys.argv[1])
store = drumlin.open(uri, storage_options=options, log=log)
table = store.table(f"t{number}")
table.upsert({"id": [-1], "v": [0.0]})
print("ready", flush=True)
sys.stdin.readline()
until, times, n = time.monotonic() + seconds, [], 0
while (begun := time.monotonic()) < until:
    table.upsert({"id": [n % 1000], "v": [float(n)]})
    times.append(time.monotonic() - begun)
    n += 1
print(json.dumps(times))
"""


def commits(uri: str, options: dict[str, Any], log: str | None, processes: int, seconds: float) -> list[list[float]]:
    """How long each commit of each process took, in seconds."""
    command = [sys.executable, "-c", WORK]
    workers = [
        subprocess.Popen(
            [*command, json.dumps([uri, options, log, n, seconds])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(processes)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    told = [worker.communicate()[0] for worker in workers]
    return [json.loads(text) for text in told]


def measure(name: str, uri: str, options: dict[str, Any], log: str | None, chosen: argparse.Namespace) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.float64())])
    with drumlin.open(uri, storage_options=options, log=log) as store:
        for n in range(chosen.processes):
            store.table(f"t{n}").create(schema, key=["id"])
    rates, middles, tails, worst, shares = [], [], [], [], []
    for _ in range(chosen.runs):
        times = commits(uri, options, log, chosen.processes, chosen.seconds)
        every = sorted(time for one in times for time in one)
        rates.append(len(every) / chosen.seconds)
        middles.append(statistics.median(every) * 1000)
        tails.append(every[int(len(every) * 0.99)] * 1000)
        worst.append(every[-1] * 1000)
        counts = sorted(len(one) for one in times)
        shares.append(counts[0] / max(counts[-1], 1))
    rate, middle, tail, most, share = map(statistics.median, (rates, middles, tails, worst, shares))
    print(
        f"{name}: {rate:,.0f} commits/s of {chosen.processes} processes, median {middle:.1f} ms, p99 {tail:.1f} ms, "
        f"worst {most:.1f} ms, slowest process {share:.2f} of the fastest"
    )
    kept = {"a commit, of all": [1 / rate for rate in rates]}
    kept |= {
        what: [taken / 1000 for taken in runs] for what, runs in (("median", middles), ("p99", tails), ("worst", worst))
    }
    raw.keep(f"{chosen.processes} processes, log {name}", kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    if s3.build("versitygw") is None or cells.find("postgresql") is None or cells.find("etcd-server") is None:
        print("NO SERVERS: nothing was measured; make servers")
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = stack.enter_context(s3.serve("versitygw", folder / "s3"))
        options = s3.options(stack.enter_context(slow(port, LATENCY)))
        postgres = stack.enter_context(cells.postgres())
        measure("in the bucket", "s3://test/bucket", options, None, chosen)
        measure("in PostgreSQL", "s3://test/postgres", options, postgres.address, chosen)
        measure("in etcd", "s3://test/etcd", options, stack.enter_context(cells.etcd()).address, chosen)


if __name__ == "__main__":
    main()
