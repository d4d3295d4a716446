"""Migrates an ArcticDB library, to be killed in the middle: `arctic_killed.py LIBRARY_FOLDER STORE`."""

import sys

import arcticdb

import drumlin
from drumlin.migrate import from_arctic


def main(library: str, store: str) -> None:
    source = arcticdb.Arctic(f"lmdb://{library}").get_library("lib")

    begun = False

    def progress(done: int, total: int, rows: int, size: int, left: float | None) -> None:
        nonlocal begun
        # What is there is passed over at once: the first version that this run brings counts.
        if rows and not begun:
            begun = True
            print("begun", flush=True)

    with drumlin.open(store) as opened:
        report = from_arctic(source, opened, prefix="in", progress=progress)
    print(f"done {report.versions} {report.skipped} {len(report.snapshots)} {len(report.failures)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
