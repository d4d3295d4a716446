"""Keeps what benchmarks measured, each run of it, in JSON: `bench/raw/BENCHMARK.json`, which the documentation shows.

What is measured again replaces what was measured before; the rest of a file stays.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

RAW = Path(__file__).resolve().parent / "raw"
#: The packages whose versions are kept, if the benchmark has loaded them.
PACKAGES = ("drumlin", "arcticdb", "deltalake", "duckdb", "lance", "polars", "pyarrow", "pandas", "numpy")


def keep(what: str, seconds: Mapping[str, Sequence[float]], *, place: Path = RAW) -> None:
    """Keeps the seconds of each side for ``what``, in the order of the runs, in the file of the program that runs."""
    path = place / f"{Path(sys.argv[0]).stem}.json"
    entries = json.loads(path.read_text()) if path.exists() else {}
    entries[what] = {
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": versions(),
        "seconds": {side: [round(taken, 9) for taken in runs] for side, runs in seconds.items()},
    }
    place.mkdir(exist_ok=True)
    path.write_text(json.dumps(entries, indent=1) + "\n")


def machine() -> str:
    """The processor, as the system calls it, and how many of it there are."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} x {model}"


def versions() -> dict[str, str]:
    """Of Python, and of the packages that are loaded."""
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in PACKAGES}
    return {"python": platform.python_version()} | {name: version for name, version in loaded.items() if version}
