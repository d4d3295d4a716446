"""What counting costs: look-ups and durable puts, beside the same library compiled so that it counts nothing.

Both programs run in turn, on the same disk; of each run the median counts. A ratio of 1.01 means that counting costs a
hundredth.

    python bench/metrics.py [--runs 11]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

import raw

ROOT = Path(__file__).resolve().parent.parent
FEATURES = ("--features", "drumlin/planted-bugs,drumlin/tracing")


def built(folder: Path, name: str, wrapper: str | None) -> Path:
    """The program of `crates/drumlin/benches/metrics.rs` as ``name``, compiled with ``wrapper`` around the compiler."""
    command = ["cargo", "bench", "--workspace", *FEATURES, "--bench", "metrics", "--no-run", "--message-format", "json"]
    environment = os.environ | ({"RUSTC_WORKSPACE_WRAPPER": wrapper} if wrapper else {})
    told = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    artifacts = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    programs = [artifact["executable"] for artifact in artifacts if artifact.get("executable")]
    return Path(shutil.copy(programs[-1], folder / name))


def run(program: Path) -> dict[str, float]:
    """The seconds of each thing that it measures."""
    told = subprocess.run([program, "--bench"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {what: float(taken) * 1e-9 for what, taken in (line.rsplit(": ", 1) for line in told.splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        counting = built(Path(folder), "counting", None)
        silent = built(Path(folder), "silent", str(ROOT / "bench" / "uncounted.sh"))
        times: dict[str, tuple[list[float], list[float]]] = {}
        for _ in range(runs):
            for at, program in enumerate((counting, silent)):
                for what, taken in run(program).items():
                    times.setdefault(what, ([], []))[at].append(taken)
    print("| what | counting | not counting | ratio |\n|---|---|---|---|")
    for what, (on, off) in times.items():
        raw.keep(what, {"counting": on, "not counting": off})
        ratio = statistics.median(a / b for a, b in zip(on, off, strict=True))
        mine, other = statistics.median(on) * 1e6, statistics.median(off) * 1e6
        print(f"| {what} | {mine:.2f} µs | {other:.2f} µs | {ratio:.3f} |")


if __name__ == "__main__":
    main()
