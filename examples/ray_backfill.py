"""A back-fill of many tables by four workers, in one commit, and a read of all of them.

    python examples/ray_backfill.py [STORE] [--tables 40] [--days 250]

STORE is the address of a store in a bucket (`s3://bucket/store`, credentials in the environment) or a folder; without
it, a temporary folder. Needs Ray: ``pip install 'drumlin[ray]'``.
"""

import argparse
import tempfile
import time

import numpy as np
import pyarrow as pa
import ray

import drumlin
import drumlin.ray

SCHEMA = pa.schema([("day", pa.date32()), ("close", pa.float64()), ("volume", pa.int64())])


@ray.remote(num_cpus=1)
def fill(ticket: drumlin.Ticket, path: str, task: int, days: int) -> drumlin.Token:
    """Makes up the prices of one symbol, and stages them."""
    rng = np.random.default_rng(task)
    first = np.datetime64("2025-01-01")
    prices = {
        "day": np.arange(first, first + days),
        "close": np.round(100 * np.exp(np.cumsum(rng.normal(0, 0.01, days))), 2),
        "volume": rng.integers(1_000, 1_000_000, days),
    }
    return ticket.stage(path, pa.table(prices, schema=SCHEMA), part=(task, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("store", nargs="?", default=None)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--days", type=int, default=250)
    chosen = parser.parse_args()
    place = chosen.store or tempfile.mkdtemp() + "/store"
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    with drumlin.open(place) as store:
        begun = time.perf_counter()
        tables = {f"prices/S{n:04}": SCHEMA for n in range(chosen.tables)}
        with store.ticket(tables, mode="overwrite", sort=["day"]) as ticket:
            shared = ray.put(ticket)
            tasks = [fill.remote(shared, path, task, chosen.days) for task, path in enumerate(tables)]
            report = store.commit(ray.get(tasks), ticket=ticket)
        print(f"{len(report.versions)} tables in commit {report.seq}: {time.perf_counter() - begun:.2f} s")
        begun = time.perf_counter()
        prices = drumlin.ray.read(store, "prices/*", path_columns=["symbol"])
        best = prices.groupby("symbol").max("close").sort("max(close)", descending=True).take(3)
        print(f"{prices.count()} rows read: {time.perf_counter() - begun:.2f} s; the highest:")
        for row in best:
            print(f"  {row['symbol']}  {row['max(close)']:.2f}")


if __name__ == "__main__":
    main()
