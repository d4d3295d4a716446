"""Each test again and again, in random order, every other time beside loops that keep the machine busy: a test that
fails without a change is a fault."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from pathlib import Path

from .parts import ROOT, Job, Part, pytest, tests_of

#: How often each test is to run in a night.
TIMES = 30
#: How many tests of Python run in one process.
TOGETHER = 25
#: They run by themselves, as other parts or for long.
NOT_HERE = ("test_torture.py", "test_migrate_", "test_ui", "test_docs.py")


def python_tests(environment: dict[str, str]) -> list[str]:
    """The names of the tests, as pytest takes them in this folder."""
    command = pytest("--collect-only", "python/tests")
    listed = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    # They are told relative to the folder of its configuration.
    names = [f"python/{line}" for line in listed.splitlines() if line.startswith("tests/") and "::" in line]
    assert names, "no test in Python was found"
    assert not (places := [name for name in names if " at 0x" in name]), f"names that differ from run to run: {places}"
    return [name for name in names if not any(part in name for part in NOT_HERE)]


class Wobble:
    """Rounds over all tests."""

    def __init__(self, binaries: dict[str, Path]) -> None:
        self.binaries = binaries
        self.rust = [
            (name, test)
            for name, binary in sorted(binaries.items())
            if name != "drumlin/planted"
            for test in tests_of(binary)
        ]
        # Some tests are drawn: the same ones each time.
        self.environment = {"DRUMLIN_SEED": "1"}
        self.python = python_tests(self.environment)
        self.turns: list[Job] = []
        self.rounds = 0
        self.done: Counter[str] = Counter()

    def round(self, rng: random.Random) -> None:
        """All tests once, those of Rust a process each."""
        busy = self.rounds % 2 == 1
        self.rounds += 1
        for name, test in self.rust:
            binary = self.binaries[name]
            folder = ROOT / "crates" / name.split("/")[0]
            command = [str(binary), "--exact", test, "--test-threads=2"]
            folder = folder if folder.is_dir() else ROOT / name.split("/")[0]
            self.turns.append(Job(f"{name} {test}", command, folder=folder, busy=busy, tests=(f"{name} {test}",)))
        some = rng.sample(self.python, len(self.python))
        for at in range(0, len(some), TOGETHER):
            chosen = some[at : at + TOGETHER]
            job = Job(
                "tests in Python", pytest(*chosen), self.environment, runs=len(chosen), busy=busy, tests=tuple(chosen)
            )
            self.turns.append(job)
        rng.shuffle(self.turns)

    def next(self, rng: random.Random) -> Job | None:
        if not self.turns:
            if self.rounds == TIMES:
                return None
            self.round(rng)
        return self.turns.pop()

    def ended(self, job: Job, _: float) -> None:
        self.done.update(job.tests)

    def part(self) -> Part:
        return Part("each test again", 4, "tests", self.next, self.ended)

    def told(self) -> str:
        """How often each test has run."""
        total = len(self.rust) + len(self.python)
        least = min(self.done.values()) if len(self.done) == total else 0
        often = max(self.done.values(), default=0)
        return f"{total} tests in random order, each {least} to {often} times, every other time beside busy loops"
