"""A process that works on a shared store until it has done its share, and records the answers that it gets.

Each operation is one transaction that counts: ``seq`` gives all operations of all processes their order. Lines of the
journal: ``start``, ``done``, ``doubt`` or ``failed``, the operation, the time, and for ``done`` the count that was
read.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import time
from typing import Any

import drumlin

KEYS = 5


def operate(store: drumlin.Store, who: int, n: int, rng: random.Random) -> int:
    key = f"k/{rng.randrange(KEYS)}"

    def work(tx: Any) -> int:
        seq = int(tx.tree.get("seq"))
        tx.tree.put("seq", seq + 1)
        tx.tree.put(key, int(tx.tree.get(key)) + 1)
        tx.table("t").upsert([{"id": who * 100_000 + n, "seq": seq}])
        if n % 10 == 3:
            tx.append(f"rows/{who % 4}", {"who": [who] * 50, "n": [n] * 50})
        return seq

    return store.transact(work)


def main() -> None:
    uri, options, who, count, journal = (
        sys.argv[1],
        json.loads(sys.argv[2]),
        int(sys.argv[3]),
        int(sys.argv[4]),
        sys.argv[5],
    )
    rng = random.Random(who)
    with open(journal, "w", buffering=1) as log:

        def note(what: str, n: int, seq: int | None = None) -> None:
            log.write(json.dumps([what, n, time.monotonic(), seq]) + "\n")

        def opened() -> drumlin.Store:
            while True:
                try:
                    return drumlin.open(uri, **options)
                except drumlin.Unavailable:
                    time.sleep(0.05)

        store = opened()
        for n in range(count):
            note("start", n)
            try:
                note("done", n, operate(store, who, n, rng))
            except drumlin.InDoubt:
                note("doubt", n)
            except (drumlin.Unavailable, drumlin.Conflict) as error:
                note("failed", n)
                print(f"{type(error).__name__}: {error}", flush=True)
            try:
                if n % 40 == 21:
                    store.checkpoint()
                if n % 40 == 33:
                    store.reclaim()
            except (drumlin.Unavailable, drumlin.InDoubt) as error:
                print(f"{type(error).__name__}: {error}", flush=True)
        with contextlib.suppress(drumlin.Unavailable, drumlin.InDoubt):
            store.close()
        note("end", count)


if __name__ == "__main__":
    main()
