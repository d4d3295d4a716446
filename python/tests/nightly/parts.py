"""What runs at night: which commands, with which seeds, and how the output says what was done.

A part has a share of the time and makes jobs; a job is one command that takes about a minute, in a process of its own.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / "crates/drumlin"
#: As the Makefile has them, so that nothing is compiled twice.
CARGO = ("cargo", "test", "--release", "--workspace", "--features", "drumlin/planted-bugs,drumlin/tracing")
#: How long a job should take, in seconds; and when it is taken to hang.
JOB_SECONDS, HANGS_SECONDS = 60.0, 3600.0


@dataclass
class Job:
    """One command."""

    #: What its outcome is counted by, such as a test.
    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    folder: Path = ROOT
    #: How many seeds, queries or tests it runs.
    runs: int = 1
    #: Whether processes that only count run beside it.
    busy: bool = False
    #: Its figures, by its output.
    figures: Callable[[str], Counter[str]] = lambda _: Counter()
    #: The tests that it runs, if it is of a part that runs each some times.
    tests: tuple[str, ...] = ()


@dataclass
class Part:
    """A kind of jobs."""

    name: str
    #: Its share of the time, compared with others.
    share: float
    #: What ``runs`` are.
    unit: str
    next: Callable[[random.Random], Job | None]
    #: Takes a job that ended well, and how long it took.
    ended: Callable[[Job, float], None] = lambda _, __: None


def rust_binaries() -> dict[str, Path]:
    """The compiled integration tests of the workspace, by name."""
    build = subprocess.run(
        [*CARGO, "--no-run", "--message-format=json"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    found = {}
    for line in build.stdout.splitlines():
        told = json.loads(line)
        if told.get("reason") == "compiler-artifact" and told.get("executable") and told["profile"]["test"]:
            package = Path(told["manifest_path"]).parent.name
            found[f"{package}/{told['target']['name']}"] = Path(told["executable"])
    return found


def tests_of(binary: Path) -> list[str]:
    listed = subprocess.run([binary, "--list", "--format=terse"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]


#: The start of a function, and what its body uses if its seeds are new ones.
FUNCTION = re.compile(r"^(?:pub )?fn (\w+)", re.MULTILINE)
SEEDED = re.compile(r"seeds::(?:each|list|rounds)\b")


def seeded(folder: Path) -> set[str]:
    """The tests of a folder that draw seeds, as module and name, found in their sources so that none is forgotten."""
    found = set()
    for file in folder.rglob("*.rs"):
        text = file.read_text()
        module = "::".join(file.relative_to(folder).with_suffix("").parts)
        starts = [*FUNCTION.finditer(text)]
        for at, start in enumerate(starts):
            body = text[start.end() : starts[at + 1].start() if at + 1 < len(starts) else len(text)]
            if SEEDED.search(body):
                found.add(f"{module}::{start[1]}")
    return found


def first_seed(rng: random.Random) -> int:
    """Beyond all fixed seeds, and short enough to type."""
    return rng.randrange(1_000_000, 1_000_000_000)


def models(binaries: dict[str, Path], pairs: Path) -> Part:
    """The random models in Rust: the store on simulated disks and buckets, with crashes and failing networks."""
    binary = binaries["drumlin/it"]
    names = sorted(
        seeded(CORE / "tests/it") & set(tests_of(binary)) - {"seeds::a_failure_names_its_seed_and_how_to_run_it_again"}
    )
    assert names, "no random test was found"
    seconds_a_seed: dict[str, float] = {}
    turns: list[str] = []

    def job(rng: random.Random) -> Job:
        if not turns:
            # The pairs of all operations are counted by one of them, which so gets a third of all turns.
            turns.extend([*names, *["models::swarm::whatever_follows_whatever_equals_the_model"] * (len(names) // 2)])
            rng.shuffle(turns)
        name = turns.pop()
        rounds = max(1, min(2000, int(JOB_SECONDS / seconds_a_seed.get(name, JOB_SECONDS / 4))))
        environment = {"DRUMLIN_SEED": str(first_seed(rng)), "DRUMLIN_ROUNDS": str(rounds), "DRUMLIN_PAIRS": str(pairs)}
        return Job(name, [str(binary), "--exact", name, "--nocapture"], environment, CORE, rounds)

    def ended(job: Job, seconds: float) -> None:
        seconds_a_seed[job.name] = seconds / job.runs

    return Part("random models", 8, "seeds", job, ended)


def pytest(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]


@dataclass(frozen=True)
class Counted:
    """A test in Python that draws as many as a variable says, from a seed."""

    file: str
    variable: str
    #: How many a job has.
    runs: int
    name: str
    unit: str

    def exists(self) -> bool:
        return (ROOT / "python/tests" / self.file).exists()

    def part(self) -> Part:
        def job(rng: random.Random) -> Job:
            environment = {self.variable: str(self.runs), "DRUMLIN_SEED": str(first_seed(rng))}
            return Job(self.file, pytest(f"python/tests/{self.file}"), environment, ROOT, self.runs)

        return Part(self.name, 1.5, self.unit, job)


COUNTED = (
    Counted("test_engines.py", "DRUMLIN_QUERIES", 600, "engines", "queries"),
    Counted("test_plans.py", "DRUMLIN_PLANS", 400, "engines' plans", "plans"),
    Counted("test_any_frame.py", "DRUMLIN_FRAMES", 300, "frames by every door", "frames"),
    Counted("test_doors.py", "DRUMLIN_DOORS", 400, "doors", "values by two doors"),
    Counted("test_refusals.py", "DRUMLIN_REFUSALS", 8, "refusals", "wrong calls of each operation"),
    Counted("test_waits.py", "DRUMLIN_ROUNDS", 1, "waits", "calls interrupted at each wait"),
)


def torture(failures: Path) -> Part:
    """Real processes, killed and failed, for a minute at a time. It shrinks and keeps what fails by itself."""

    def figures(output: str) -> Counter[str]:
        last = output.strip().splitlines()[-1] if output.strip() else ""
        return Counter({name: int(count) for count, name in re.findall(r"(\d+) ([a-z ]+)", last)})

    def job(_: random.Random) -> Job:
        command = [
            sys.executable,
            "-m",
            "torture",
            "--seconds",
            str(JOB_SECONDS),
            "--failures",
            str(failures / "torture"),
        ]
        return Job("torture", command, {}, ROOT / "python/tests", figures=figures)

    return Part("torture", 3, "minutes", job)


def fuzz() -> Part:
    """libFuzzer on one target after the other, from what earlier runs have found."""
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/drumlin-fuzz"
    targets: list[str] = []

    def job(rng: random.Random) -> Job | None:
        if not built.exists():
            return None
        if not targets:
            listed = subprocess.run([built, "-list"], check=True, stdout=subprocess.PIPE, text=True).stdout
            targets.extend(listed.split())
            rng.shuffle(targets)
        target, seed = targets.pop(), {"SEED": str(rng.randrange(1, 1 << 31))}
        command = ["fuzz/run.sh", str(built), str(int(JOB_SECONDS)), target]
        return Job(f"fuzz {target}", command, seed, figures=lambda output: Counter(inputs=inputs(output)))

    def inputs(output: str) -> int:
        return sum(int(count) for count in re.findall(r": (\d+) inputs", output))

    return Part("fuzz", 2, "minutes", job)
