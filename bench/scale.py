"""What things cost as a store grows: by its tables, by the appends to one table, and from a bucket with latency.

Each store is opened by a new process, which has loaded the libraries and read from another store before, so that only
what the store's size costs is measured. Medians; memory is what the process took more than before.

    python bench/scale.py [--tables 1000,10000,100000] [--appends 100,1000,10000]
        [--bucket 1000,100000] [--keys 10000000] [--runs 5]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import raw

import drumlin

TESTS = Path(__file__).resolve().parent.parent / "python" / "tests"
sys.path.insert(0, str(TESTS))

from servers import s3  # noqa: E402

# Ten rows of three columns, three times.
ROWS = pa.table(
    {
        "ts": pa.array(range(10), pa.timestamp("ns")),
        "price": [1.5 * at for at in range(10)],
        "size": list(range(10)),
    }
)
VERSIONS = 3
# A commit of this many tables.
BATCH = 10_000

OPENED = """
import gc, json, sys, time
import pyarrow, drumlin

uri, options, names, writes = json.loads(sys.argv[1])

def memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))

def timed(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun

with drumlin.open("memory://") as store:
    store.write("t", pyarrow.table({"n": [1]}))
    store.read("t").to_arrow()
gc.collect()
before = memory()
begun = time.perf_counter()
store = drumlin.open(uri, **options)
found = {"open": time.perf_counter() - begun}
found["first read"] = timed(lambda: store.read(names[0]).to_arrow())
found["next reads"] = sorted(timed(lambda: store.read(name).to_arrow()) for name in names[1:21])[10]
found["memory"] = memory() - before
if writes:
    rows = store.read(names[0]).to_arrow()
    store.append(names[0], rows)
    found["append"] = sorted(timed(lambda: store.append(name, rows)) for name in names[1:21])[10]
    found["checkpoint"] = timed(store.checkpoint)
    store.append(names[0], rows)
    found["checkpoint of one change"] = timed(store.checkpoint)
    store.write("a/new/table", rows)
    found["checkpoint of a new table"] = timed(store.checkpoint)
    folder = names[0].rsplit("/", 1)[0]
    found["list a folder"] = timed(lambda: store.tables(folder + "/*"))
    found["versions of a table"] = timed(lambda: store.table(names[0]).versions())
print(json.dumps(found))
"""


def name(at: int) -> str:
    return f"eq/{at // 1000:04d}/s{at:07d}"


def make(store: drumlin.Store, tables: int) -> float:
    """Fills a store; returns the seconds a version of a table."""
    begun = time.perf_counter()
    for version in range(VERSIONS):
        write = store.append_many if version else store.write_many
        for part in range(0, tables, BATCH):
            write({name(at): ROWS for at in range(part, min(tables, part + BATCH))})
    taken = time.perf_counter() - begun
    store.checkpoint()
    return taken / tables / VERSIONS


def by_processes(code: str, arguments: list[list[Any]]) -> list[dict[str, float]]:
    """What ``code`` prints as JSON, run by a new process for each of the ``arguments``."""
    commands = [[sys.executable, "-c", code, json.dumps(given)] for given in arguments]
    return [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for command in commands
    ]


def opened(
    what: str, uri: str, options: dict[str, Any], tables: list[str], runs: int, writes: bool
) -> dict[str, float]:
    found = by_processes(OPENED, [[uri, options, tables, writes]] * runs)
    for key in found[0]:
        if key != "memory":
            raw.keep(f"{what}: {key}", {"Drumlin": [run[key] for run in found]})
    return {key: statistics.median(run[key] for run in found) for key in found[0]}


def text(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.0f} µs"


def show(rows: list[list[str]]) -> None:
    """Prints columns as the rows of a table, so that sizes stand beside each other."""
    for at, row in enumerate(zip(*rows, strict=True)):
        print("| " + " | ".join(row) + " |")
        if at == 0:
            print("|---" * len(row) + "|")
    print(flush=True)


def catalog_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in (folder / "catalog").iterdir())


def by_tables(folder: Path, sizes: list[int], runs: int) -> None:
    columns = []
    for tables in sizes:
        place = folder / f"tables-{tables}"
        with drumlin.open(place) as store:
            written = make(store, tables)
        stored = catalog_bytes(place)
        step = max(1, tables // 30)
        names = [name(at) for at in range(0, tables, step)]
        found = opened(f"{tables:,} tables", str(place), {}, names, runs, writes=True)
        with drumlin.open(place) as store:
            count = min(tables, 1000)
            begun = time.perf_counter()
            store.drop_and_reclaim([name(at) for at in range(count)])
            dropped = (time.perf_counter() - begun) / count
        times = {key: text(value) for key, value in found.items() if key != "memory"}
        column = {"tables": f"{tables:,}", "written, a version of a table": text(written)} | times
        column["a table dropped, of 1,000"] = text(dropped)
        column["memory"] = f"{found['memory'] / 1e6:,.0f} MB"
        column["memory a table"] = f"{found['memory'] / tables:,.0f} bytes"
        column["catalog on disk, a table"] = f"{stored / tables:,.0f} bytes"
        columns.append(column)
    show([list(columns[0]), *([list(column.values()) for column in columns])])


def by_appends(folder: Path, sizes: list[int], runs: int) -> None:
    columns = []
    for appends in sizes:
        place = folder / f"appends-{appends}"
        with drumlin.open(place) as store:
            store.write("a/t", ROWS)
            begun = time.perf_counter()
            for _ in range(appends):
                store.append("a/t", ROWS)
            written = (time.perf_counter() - begun) / appends
            begun = time.perf_counter()
            store.checkpoint()
            checkpoint = time.perf_counter() - begun
        found = opened(f"{appends:,} appends", str(place), {}, ["a/t"] * 30, runs, writes=False)
        with drumlin.open(place) as store:
            begun = time.perf_counter()
            assert store.read("a/t", as_of=appends // 2).to_arrow().num_rows == 10 * (appends // 2 + 1)
            old = time.perf_counter() - begun
        times = {key: text(value) for key, value in found.items() if key != "memory"}
        column = {
            "appends": f"{appends:,}",
            "an append": text(written),
            "the last checkpoint": text(checkpoint),
        } | times
        column["a version of the middle"] = text(old)
        column["memory"] = f"{found['memory'] / 1e6:,.1f} MB"
        column["catalog on disk, an append"] = f"{catalog_bytes(place) / appends:,.0f} bytes"
        columns.append(column)
    show([list(columns[0]), *([list(column.values()) for column in columns])])


@contextmanager
def slow(port: int, latency: float) -> Iterator[int]:
    """A proxy before a server that adds latency to each request."""
    command = [sys.executable, str(Path(__file__).with_name("latency.py")), str(port), str(latency)]
    proxy = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert proxy.stdout is not None
    try:
        yield int(proxy.stdout.readline())
    finally:
        proxy.kill()


def by_bucket(folder: Path, sizes: list[int], runs: int) -> None:
    if s3.build("versitygw") is None:
        print("NO GO: nothing was measured in a bucket")
        return
    columns = []
    with ExitStack() as stack:
        port = stack.enter_context(s3.serve("versitygw", folder / "s3"))
        front = stack.enter_context(slow(port, 0.02))
        for tables in sizes:
            uri = f"s3://test/b{tables}"
            with drumlin.open(uri, storage_options=s3.options(port)) as store:
                make(store, tables)
            step = max(1, tables // 30)
            names = [name(at) for at in range(0, tables, step)]
            options = {"storage_options": s3.options(front)}
            found = opened(f"{tables:,} tables in a bucket", uri, options, names, runs, writes=False)
            together = found["open"] + found["first read"]
            column = {"tables": f"{tables:,}", "open": text(found["open"]), "first read": text(found["first read"])}
            columns.append(column | {"open and read one": text(together), "next reads": text(found["next reads"])})
    show([list(columns[0]), *([list(column.values()) for column in columns])])


LOOKED_UP = """
import json, random, sys, time
import pyarrow, drumlin

uri, options, rows, seed = json.loads(sys.argv[1])
draw = random.Random(seed)

def requests(store):
    return store.metrics()['drumlin_storage_requests_total{kind="get"}']

def look_up(keys):
    begun, before = time.perf_counter(), requests(store)
    found = table.get_many(keys).rows.to_arrow()
    taken = time.perf_counter() - begun
    assert found.column("cents").to_pylist() == [key * 7919 % 1_000_003 for key in keys]
    return taken, requests(store) - before

with drumlin.open("memory://") as store:
    table = store.table("t")
    table.create(pyarrow.schema([("k", pyarrow.int64())]), key=["k"])
    table.upsert({"k": [1]})
    table.get_many([1]).rows.to_arrow()
store = drumlin.open(uri, **options)
table = store.table("t")
table.schema
cold, rounds = look_up([draw.randrange(rows) for _ in range(1000)])
warm, _ = look_up([draw.randrange(rows) for _ in range(1000)])
singles = [draw.randrange(rows) for _ in range(5000)]
begun = time.perf_counter()
for key in singles:
    table.get(key)
single = (time.perf_counter() - begun) / len(singles)
print(json.dumps({"cold": cold, "rounds": rounds, "warm": warm, "single, warm": single}))
"""


def by_keys(folder: Path, sizes: list[int], runs: int) -> None:
    """Look-ups in a keyed table in a bucket with latency, each time by a new process."""
    if s3.build("versitygw") is None:
        print("NO GO: nothing was measured in a bucket")
        return
    columns = []
    with ExitStack() as stack:
        port = stack.enter_context(s3.serve("versitygw", folder / "s3-keys"))
        front = stack.enter_context(slow(port, 0.02))
        for rows in sizes:
            uri = f"s3://test/k{rows}"
            schema = pa.schema([("k", pa.int64()), ("cents", pa.int64()), ("text", pa.string())])
            with drumlin.open(uri, storage_options=s3.options(port)) as store:
                store.table("t").create(schema, key=["k"])
                for start in range(0, rows, 1_000_000):
                    keys = range(start, min(rows, start + 1_000_000))
                    cents = [key * 7919 % 1_000_003 for key in keys]
                    texts = [f"row {key % 1000}" for key in keys]
                    store.append("t", pa.table([list(keys), cents, texts], schema=schema))
                store.checkpoint()
            options = {"storage_options": s3.options(front)}
            found = by_processes(LOOKED_UP, [[uri, options, rows, run] for run in range(runs)])
            medians = {key: statistics.median(run[key] for run in found) for key in found[0]}
            for key in ("cold", "warm", "single, warm"):
                raw.keep(f"{rows:,} rows in a bucket: {key}", {"Drumlin": [run[key] for run in found]})
            columns.append(
                {
                    "rows by key in a bucket": f"{rows:,}",
                    "1,000 keys, cold": text(medians["cold"]),
                    "rounds of requests": f"{medians['rounds']:.0f}",
                    "1,000 other keys then": text(medians["warm"]),
                    "a single key then": text(medians["single, warm"]),
                }
            )
    show([list(columns[0]), *([list(column.values()) for column in columns])])


def main() -> None:
    def sizes(given: str) -> list[int]:
        return [int(size) for size in given.split(",") if size]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=sizes, default=[1_000, 10_000, 100_000])
    parser.add_argument("--appends", type=sizes, default=[100, 1_000, 10_000])
    parser.add_argument("--bucket", type=sizes, default=[1_000, 100_000])
    parser.add_argument("--keys", type=sizes, default=[10_000_000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    print(f"drumlin {drumlin.__version__}\n")
    parts: list[tuple[Callable[[Path, list[int], int], None], list[int]]] = [
        (by_tables, chosen.tables),
        (by_appends, chosen.appends),
        (by_bucket, chosen.bucket),
        (by_keys, chosen.keys),
    ]
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        for part, wanted in parts:
            if wanted:
                part(Path(folder), wanted, chosen.runs)


if __name__ == "__main__":
    main()
