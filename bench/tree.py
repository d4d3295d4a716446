"""The tree from Python: one transaction on 50,000 nodes with one projection, against the times of Khepri."""

import statistics
import tempfile
import time
from pathlib import Path

import raw

import drumlin

N = 50_000
ROUNDS = 5
# Seconds of Khepri 0.18.0 in Erlang, and the desired speed-up from Python.
KHEPRI = {"puts": (0.49, 5), "single deletes": (0.39, 5), "pattern delete": (0.51, 5)}


def main() -> None:
    """Prints a table."""
    paths = [f"rabbitmq/vhosts/v/exchanges/e{n}" for n in range(N)]
    times: dict[str, list[float]] = {name: [] for name in KHEPRI}
    with tempfile.TemporaryDirectory() as folder, drumlin.open(str(Path(folder) / "s")) as store:
        store.tree.projection("by name", "rabbitmq/vhosts/*/exchanges/*", key="name")
        for _ in range(ROUNDS):
            put(store, paths, times["puts"])
            start = time.perf_counter()
            with store.transaction() as tx:
                for path in paths:
                    tx.tree.delete(path)
            times["single deletes"].append(time.perf_counter() - start)
            assert store.tree.count("**") == 0
            put(store, paths, times["puts"])
            start = time.perf_counter()
            assert len(store.tree.delete_many("rabbitmq/vhosts/v/exchanges/*")) == N
            times["pattern delete"].append(time.perf_counter() - start)
    print("\n## The same from Python\n")
    print("| operation | Khepri s | Drumlin s | times as fast | wanted |\n|---|---|---|---|---|")
    for name, (khepri, wanted) in KHEPRI.items():
        raw.keep(name, {"Drumlin": times[name]})
        ours = statistics.median(times[name])
        print(f"| {name} | {khepri:.2f} | {ours:.4f} | {khepri / ours:.1f} | {wanted} |")


def put(store: drumlin.Store, paths: list[str], times: list[float]) -> None:
    """Puts all nodes."""
    start = time.perf_counter()
    with store.transaction() as tx:
        for path in paths:
            tx.tree.put(path, {"type": "direct", "durable": True})
    times.append(time.perf_counter() - start)


if __name__ == "__main__":
    main()
