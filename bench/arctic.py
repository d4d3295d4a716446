"""Many tables at once, compared with ArcticDB: writing, reading, dropping, on local disk and on an S3 server on
loopback.

Both run in this process, in turn, on the same server or disk; the results are medians and the median of the ratios of
each run. Reclaiming is part of deleting, without a grace period on either side. The server is versitygw, built by Go
as for the tests; latency is added by the tests' proxy, which both use.

    python bench/arctic.py [--runs 5] [--only TEXT] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import arcticdb
import numpy as np
import pandas as pd
import raw

import drumlin

TESTS = Path(__file__).resolve().parents[1] / "python" / "tests"
sys.path.insert(0, str(TESTS))
from servers import s3  # noqa: E402

NOW = dt.timedelta(0)
SMALL = pd.DataFrame({"col": range(1000)})
LARGE = pd.DataFrame({"col": np.random.default_rng(1).random(25_000)})


class Place:
    """A store and a library in the same kind of place."""

    def __init__(self, name: str, store: drumlin.Store, arctic: Any, direct: Any) -> None:
        self.name, self.store, self.arctic, self.direct = name, store, arctic, direct
        self.count = 0

    def libraries(self) -> tuple[Any, Any]:
        """A new library: one handle to be measured, and one without latency to fill it."""
        self.count += 1
        filled = self.direct.get_library(f"l{self.count}", create_if_missing=True)
        return self.arctic.get_library(f"l{self.count}"), filled

    def library(self) -> Any:
        return self.libraries()[0]


def timed(work: Callable[[], Any]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(place: Place, what: str, ours: list[float], theirs: list[float], wanted: str) -> None:
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    raw.keep(f"{place.name}: {what}", {"Drumlin": ours, "ArcticDB": theirs})
    mine, other = statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3
    print(f"| {place.name} | {what} | {mine:.1f} ms | {other:.1f} ms | {ratio:.1f} | {wanted} |", flush=True)


def payloads(n: int, frame: pd.DataFrame) -> list[Any]:
    return [arcticdb.WritePayload(f"sym_{i}", frame) for i in range(n)]


def delete_symbols(place: Place, n: int) -> tuple[float, float]:
    library, filled = place.libraries()
    filled.write_batch(payloads(n, SMALL))
    place.store.write_many({f"many/sym_{i}": SMALL for i in range(n)})
    theirs = timed(lambda: library.delete_batch([f"sym_{i}" for i in range(n)]))
    ours = timed(lambda: place.store.drop_and_reclaim([f"many/sym_{i}" for i in range(n)]))
    assert library.list_symbols() == []
    assert place.store.tables("many/**") == []
    return ours, theirs


def delete_versions(place: Place, n: int) -> tuple[float, float]:
    library, filled = place.libraries()
    for _ in range(10):
        filled.write_batch(payloads(n, SMALL))
        place.store.write_many({f"many/sym_{i}": SMALL for i in range(n)})
    requests = [arcticdb.version_store.library.DeleteRequest(f"sym_{i}", list(range(9))) for i in range(n)]
    theirs = timed(lambda: library.delete_batch(requests))

    def drop() -> None:
        place.store.delete_versions({f"many/sym_{i}": list(range(9)) for i in range(n)})
        place.store.reclaim()

    ours = timed(drop)
    place.store.drop_and_reclaim("many/**")
    return ours, theirs


def write_and_read(place: Place) -> list[tuple[float, float]]:
    library = place.library()
    names = [f"sym_{i}" for i in range(100)]
    theirs = timed(lambda: library.write_batch(payloads(100, LARGE)))
    ours = timed(lambda: place.store.write_many({f"many/{name}": LARGE for name in names}))
    them_read = timed(lambda: library.read_batch(names))
    # A handle that has read nothing yet.
    with opened(place) as store:
        we_read = timed(lambda: store.read_many([f"many/{name}" for name in names]).to_pandas())
    place.store.drop_and_reclaim("many/**")
    return [(ours, theirs), (we_read, them_read)]


def append_one(place: Place) -> tuple[float, float]:
    library = place.library()

    def one(n: int) -> pd.DataFrame:
        return pd.DataFrame({"col": [1]}, index=pd.RangeIndex(1000 + n, 1001 + n))

    library.write("a", SMALL)
    place.store.write("many/a", SMALL)
    theirs = timed(lambda: [library.append("a", one(n)) for n in range(10)]) / 10
    ours = timed(lambda: [place.store.append("many/a", one(n)) for n in range(10)]) / 10
    place.store.drop_and_reclaim("many/**")
    return ours, theirs


def append_many(place: Place) -> tuple[float, float]:
    """Sixty rows for each of 1,000 tables, in one call."""
    library, filled = place.libraries()
    names = [f"sym_{at}" for at in range(1000)]
    filled.write_batch(payloads(1000, SMALL))
    place.store.write_many({f"many/{name}": SMALL for name in names})
    frame = pd.DataFrame({"col": range(60)}, index=pd.RangeIndex(1000, 1060))
    more = [arcticdb.WritePayload(name, frame) for name in names]
    theirs = timed(lambda: library.append_batch(more))
    ours = timed(lambda: place.store.append_many({f"many/{name}": frame for name in names}))
    place.store.drop_and_reclaim("many/**")
    return ours, theirs


def list_all(place: Place) -> tuple[float, float]:
    library, filled = place.libraries()
    filled.write_batch(payloads(1000, SMALL))
    place.store.write_many({f"many/sym_{i}": SMALL for i in range(1000)})
    library.list_symbols()

    def ours() -> None:
        place.store.refresh()
        assert len(place.store.tables("many/**")) == 1000

    times = timed(ours), timed(lambda: library.list_symbols())
    place.store.drop_and_reclaim("many/**")
    return times


def opened(place: Place) -> drumlin.Store:
    return drumlin.open(place.uri, **place.options)  # type: ignore[attr-defined]


def measure(place: Place, runs: int, only: str, wanted: dict[str, str]) -> None:
    works: dict[str, Callable[[], list[tuple[float, float]]]] = {
        "drop 100 tables, reclaim": lambda: [delete_symbols(place, 100)],
        "drop 1,000 tables, reclaim": lambda: [delete_symbols(place, 1000)],
        "delete 9 of 10 versions of 100 tables, reclaim": lambda: [delete_versions(place, 100)],
        "delete 9 of 10 versions of 1,000 tables, reclaim": lambda: [delete_versions(place, 1000)],
        "write 100 x 25,000 rows; read them": lambda: write_and_read(place),
        "append one row": lambda: [append_one(place)],
        "append 60 rows to each of 1,000 tables": lambda: [append_many(place)],
        "list 1,000 tables": lambda: [list_all(place)],
    }
    for what, work in works.items():
        if only not in what:
            continue
        # These take ArcticDB minutes each: once is enough, or none at all, since those of 100 tables say the same.
        slow = "20 ms" in place.name
        if slow and "versions of 1,000 tables" in what and what != only:
            continue
        once = slow and ("reclaim" in what or "1,000" in what)
        rounds = [work()] if once else [work() for _ in range(runs + 1)][1:]
        names = what.split("; ")
        for at, name in enumerate(names):
            pairs = [round[at] for round in rounds]
            kind = "delete" if "reclaim" in name else "batch" if "25,000" in name or "read" in name else "small"
            show(place, name, [a for a, _ in pairs], [b for _, b in pairs], wanted[kind])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--places", default="disk,0,20")
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    print(
        f"{dt.date.today()}, {os.cpu_count()} cores, drumlin {drumlin.__version__}, arcticdb {arcticdb.__version__}\n"
    )
    print("| where | what | Drumlin | ArcticDB | times as fast | wanted |\n|---|---|---|---|---|---|")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=chosen.folder)))
        places = chosen.places.split(",")
        if "disk" in places:
            options: dict[str, Any] = {}
            arctic = arcticdb.Arctic(f"lmdb://{folder / 'lmdb'}?map_size=8GB")
            store = stack.enter_context(drumlin.open(folder / "drumlin"))
            place = Place("local disk", store, arctic, arctic)
            # Only one process may write it: the open handle also reads it.
            place.uri, place.options = str(folder / "drumlin"), {"mode": "read"}  # type: ignore[attr-defined]
            measure(place, chosen.runs, chosen.only, {"delete": "8", "batch": "2", "small": "2"})
        if not {"0", "20"} & set(places):
            return
        server = stack.enter_context(s3.serve("versitygw", folder / "s3"))
        for latency in [n for n in (0, 20) if str(n) in places]:
            port = server
            if latency:
                command = [sys.executable, str(TESTS / "servers" / "proxy.py"), str(server)]
                proxy = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                stack.callback(proxy.kill)
                assert proxy.stdin is not None
                assert proxy.stdout is not None
                port = int(proxy.stdout.readline())
                proxy.stdin.write(f"latency={latency / 1000}\n")
                proxy.stdin.flush()
                proxy.stdout.readline()
            query = f"access={s3.ACCESS}&secret={s3.SECRET}&region=us-east-1&path_prefix=a{latency}"
            arctic, direct = (arcticdb.Arctic(f"s3://127.0.0.1:test?{query}&port={to}") for to in (port, server))
            uri, options = f"s3://test/d{latency}", {"storage_options": s3.options(port), "block_grace": NOW}
            store = stack.enter_context(drumlin.open(uri, **options))
            place = Place(f"S3, {latency} ms", store, arctic, direct)
            place.uri, place.options = uri, options  # type: ignore[attr-defined]
            deletes = "50" if latency else "20"
            measure(place, chosen.runs, chosen.only, {"delete": deletes, "batch": "3", "small": "2"})


if __name__ == "__main__":
    main()
