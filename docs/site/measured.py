"""A page of what the benchmarks measured, from their raw numbers, which lie beside it as JSON."""

import json
import statistics
from pathlib import Path
from typing import Any

RAW = Path(__file__).resolve().parent.parent.parent / "bench" / "raw"
#: Where the page is, and the folder of the raw numbers beside it.
PAGE = "internals/measured.md"
FOLDER = "internals/raw"
#: What the samples of the comparison with RocksDB count, by its own names.
UNITS = {"Rate": "items a second", "Seconds": "seconds", "Bytes": "bytes"}


def seconds(value: float) -> str:
    """A duration in the unit that suits it."""
    for unit, least in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= least:
            return f"{value / least:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def table(entries: dict[str, Any]) -> list[str]:
    lines = ["| what | side | median | least to greatest | runs | measured |", "|---|---|---|---|---|---|"]
    for what, entry in entries.items():
        for side, runs in entry["seconds"].items():
            told = (what.replace("|", "\\|"), side, seconds(statistics.median(runs)))
            spread = f"{seconds(min(runs))} to {seconds(max(runs))}"
            lines.append(f"| {' | '.join(told)} | {spread} | {len(runs)} | {entry['date']} |")
    return lines


def counted(entries: dict[str, Any]) -> list[str]:
    """The same for samples that count something else than seconds, each entry in a unit of its own."""
    lines = ["| what | side | median | least to greatest | runs | unit |", "|---|---|---|---|---|---|"]
    for what, entry in entries.items():
        unit = UNITS[entry.pop("unit")]
        for side, runs in entry.items():
            told = (what, side, f"{statistics.median(runs):,.4g}", f"{min(runs):,.4g} to {max(runs):,.4g}")
            lines.append(f"| {' | '.join(told)} | {len(runs)} | {unit} |")
    return lines


def measured_page() -> dict[str, str]:
    """The page, by its place in the site."""
    lines = [
        "# Measured, run by run",
        "",
        "What the last run of each program in `bench` took. All numbers, with the machine and the versions of all",
        "sides, are in the files of raw numbers. [Benchmarks](benchmarks.md) says what was measured on other days, and",
        "what the numbers mean.",
    ]
    for file in sorted(RAW.glob("*.json")):
        entries = json.loads(file.read_text())
        timed = all("seconds" in entry for entry in entries.values())
        lines += [
            "",
            f"## bench/{file.stem}{'.py' if timed else ''}",
            "",
            f"Raw numbers: [{file.name}](raw/{file.name})",
            "",
            *(table(entries) if timed else counted(entries)),
        ]
    return {PAGE: "\n".join(lines) + "\n"}
