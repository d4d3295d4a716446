"""A night's run: all that is random, with new seeds, for hours, in two processes side by side (``make nightly``).

Random models, engines' queries, frames and values by every door, refusals, torture, fuzzing, and each test 30 times in
random order. What fails is run again by itself, told with the command that does so, and kept in ``nightly-failures``;
models, the torture and the fuzzer shrink what they find. The run goes on, and ends with status 1. Its figures are
written to crates/drumlin/tests/nightly.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from . import counts, parts
from .parts import HANGS_SECONDS, ROOT, Job, Part
from .wobble import Wobble

#: Jobs side by side.
WORKERS = 2


@contextlib.contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """Processes that only count, one a CPU."""
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)] if wanted else []
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Night:
    """A run, and what it has counted."""

    def __init__(self, chosen: list[Part], seed: int, deadline: float, failures: Path) -> None:
        self.parts, self.seed, self.deadline, self.failures = chosen, seed, deadline, failures
        self.rng = random.Random(seed)
        self.lock = threading.Lock()
        self.seconds: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()
        self.figures: dict[str, Counter[str]] = {part.name: Counter() for part in chosen}
        self.failed: list[str] = []
        self.over: set[str] = set()

    def next(self) -> tuple[Part, Job] | None:
        """A job of the part that is furthest behind its share."""
        with self.lock:
            while time.monotonic() < self.deadline:
                open_parts = [part for part in self.parts if part.name not in self.over]
                if not open_parts:
                    return None
                part = min(open_parts, key=lambda part: self.seconds[part.name] / part.share)
                job = part.next(self.rng)
                if job is not None:
                    # Counted at once, so that the other worker chooses another part.
                    self.seconds[part.name] += parts.JOB_SECONDS / 10
                    return part, job
                self.over.add(part.name)
            return None

    def work(self) -> None:
        while (chosen := self.next()) is not None:
            part, job = chosen
            began = time.monotonic()
            status, output = self.done(job)
            took = time.monotonic() - began
            with self.lock:
                self.seconds[part.name] += took
                self.runs[part.name] += job.runs
                self.figures[part.name] += job.figures(output)
                if status == 0:
                    part.ended(job, took)
            if status != 0:
                self.tell(part, job, status, output)
            elif took > parts.JOB_SECONDS / 2:
                print(f"{part.name}: {job.name}, {job.runs} {part.unit}, {took:.0f} s", flush=True)

    def done(self, job: Job) -> tuple[int, str]:
        """Runs a job; returns its status and all that it prints."""
        with busy(job.busy), tempfile.TemporaryFile("w+", errors="replace") as told:
            running = subprocess.Popen(
                job.command,
                cwd=job.folder,
                env=os.environ | job.environment,
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = running.wait(HANGS_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                status = running.wait()
            told.seek(0)
            return status, told.read()

    def tell(self, part: Part, job: Job, status: int, output: str) -> None:
        """Keeps a failure, and the command that makes it again: of a single seed, if the output names one."""
        environment = dict(job.environment)
        environment.pop("DRUMLIN_PAIRS", None)
        # The one that the message names; the last one that was begun, if the process was ended.
        if named := re.findall(r"^seed (\d+)\b", output, re.MULTILINE):
            environment |= {"DRUMLIN_SEED": named[-1], "DRUMLIN_ROUNDS": "1"}
        again = shlex.join([*(f"{name}={value}" for name, value in environment.items()), *job.command])
        alone = Job(job.name, job.command, environment, job.folder)
        # Alone, on a machine that is quieter: one that does not fail again depends on what is beside it.
        status_again, output_again = self.done(alone)
        with self.lock:
            number = len(self.failed)
            folder = self.failures / f"{self.seed}-{number}"
            folder.mkdir(parents=True)
            (folder / "output.txt").write_text(output)
            (folder / "again.txt").write_text(f"cd {job.folder} && {again}\n\n{output_again}")
            reproduced = "it fails again" if status_again != 0 else "it did not fail again"
            beside = ", beside busy loops" if job.busy else ""
            self.failed.append(f"{part.name}, {job.name}")
            print(f"FAILED: {part.name}, {job.name}, status {status}{beside}; {reproduced}", flush=True)
            last = (output_again if status_again != 0 else output).strip().splitlines()[-40:]
            print("\n".join(f"    {line}" for line in last))
            print(f"    AGAIN: cd {job.folder} && {again}\n    kept in {folder}", flush=True)

    def run(self) -> None:
        workers = [threading.Thread(target=self.work) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def told(self) -> list[tuple[str, str]]:
        """The figures of each part."""
        lines = []
        for part in self.parts:
            more = "".join(f", {count:,} {name}" for name, count in sorted(self.figures[part.name].items()))
            lines.append((part.name, f"{self.runs[part.name]:,} {part.unit}{more}"))
        return lines


def commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog="nightly", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--hours", type=float, default=2, help="how long (default 2)")
    parser.add_argument("--seed", type=int, help="from which all others are drawn (default: a new one)")
    parser.add_argument("--failures", type=Path, default=ROOT / "nightly-failures", help="where failures are kept")
    parser.add_argument(
        "--only", action="append", help="the part of this name alone, may be given again; keeps no figures but pairs"
    )
    chosen = parser.parse_args()
    # A shell lets what it runs in the background ignore it, and so would the tests that stop calls by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = random.SystemRandom().randrange(10**9) if chosen.seed is None else chosen.seed
    began = dt.datetime.now(dt.UTC)
    print(f"seed {seed}, {chosen.hours} hours", flush=True)
    with tempfile.TemporaryDirectory(prefix="nightly-") as folder:
        pairs, binaries = Path(folder), parts.rust_binaries()
        wobble = Wobble(binaries)
        all_parts = [
            parts.models(binaries, pairs),
            *(each.part() for each in parts.COUNTED if each.exists()),
            parts.torture(chosen.failures),
            parts.fuzz(),
            wobble.part(),
        ]
        some = [part for part in all_parts if chosen.only is None or part.name in chosen.only]
        if not some:
            parser.error(f"the parts are: {', '.join(part.name for part in all_parts)}")
        night = Night(some, seed, time.monotonic() + chosen.hours * 3600, chosen.failures)
        night.run()
        when = f"{began:%Y-%m-%d}, {chosen.hours:g} hours at commit {commit()}, seed {seed}"
        failures = ", ".join(sorted(set(night.failed))) or "none"
        figures = [("when", when), *night.told(), ("repetitions", wobble.told()), ("failures", failures)]
        counts.keep(pairs, figures)
    for what, much in figures:
        print(f"{what}: {much}")
    return 1 if night.failed else 0


if __name__ == "__main__":
    sys.exit(main())
