"""Crash trials: one worker at a time does random operations, and is struck at chosen ones; the resulting store is
compared with the models that are permitted.

A trial has several *lives*. In each, a worker continues the operations; it is struck at one (killed after a moment,
or by strace at a system call, or storage fails there). When it has ended, the store must hold exactly what was
acknowledged, the operation in question as a whole or not at all, and be sound. After the last life, everything is
dropped and reclaimed, and nothing may be left.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from . import faults, operations
from .child import Child
from .faults import Gate, Strike
from .history import lines
from .life import CLOSING, OPENING, Examination, Life, Outcome, examine, live, outcome
from .model import Model, Operation
from .places import (
    BUCKET,
    FOLDER,
    REMOTE,
    LogServer,
    Place,
    Remote,
    fake_clock,
    have_mount,
    have_strace,
    in_folder,
    resize,
    small_file_system,
)

#: Clocks of single lives.
CLOCKS = ("+3y", "-5y", "+400d", "-1d")
SMALL, ROOMY = "1536k", "256m"


@dataclass(frozen=True)
class Blow:
    """How a life is struck: at an operation, by strace or (without a strike) by a kill some seconds later."""

    at: int
    strike: Strike | None = None
    after: float = 0.0

    def __str__(self) -> str:
        where = {OPENING: "opening", CLOSING: "closing"}.get(self.at, f"operation {self.at}")
        return f"{where}: {self.strike or f'killed after {self.after * 1000:.1f} ms'}"


@dataclass(frozen=True)
class Spec:
    """A complete trial: it can be run again, also with fewer operations."""

    seed: int
    kind: str
    settings: dict[str, Any]
    operations: tuple[tuple[int, Operation], ...]
    #: The first operation of each life except the first.
    cuts: tuple[int, ...] = ()
    blows: tuple[Blow | None, ...] = (None,)
    clocks: tuple[str | None, ...] = ()
    #: Whether it runs on a file system that gets full.
    small: bool = False
    #: Probabilities of network failures.
    network: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        blows = "; ".join(f"life {at + 1} {blow}" for at, blow in enumerate(self.blows) if blow)
        small = " on a small file system" if self.small else ""
        clocks = f", clocks {self.clocks}" if any(self.clocks) else ""
        return f"crash on a {self.kind}{small}, {len(self.operations)} operations, {self.settings}{clocks}; {blows}"

    def only(self, kept: list[tuple[int, Operation]]) -> Spec:
        return replace(self, operations=tuple(kept))


def settings(rng: random.Random, kind: str) -> dict[str, Any]:
    """How a store is opened: with thresholds so low that everything that happens to large stores happens to these."""
    found: dict[str, Any] = {
        "checkpoint_log_bytes": rng.choice([0, 20_000, 200_000]),
        "inline_bytes": rng.choice([0, 500, 65536]),
        "memtable_bytes": rng.choice([0, 50_000]),
        "row_write_bytes": rng.choice([2_000, 1 << 20]),
        "cpu_threads": rng.choice([1, 2]),
    }
    if kind == FOLDER and rng.random() < 0.3:
        found["sync"] = "interval"
    return found


def draw(seed: int, kind: str) -> Spec:
    """A random trial."""
    rng = random.Random(seed)
    small = kind not in REMOTE and have_mount() and rng.random() < 0.2
    count, lives = rng.choice([15, 25, 40]), rng.randint(2, 4)
    series = operations.series(rng, count, big=20 if small else 1)
    if small:
        for _ in range(2):
            at = rng.randrange(4, len(series))
            series.insert(at, ["fill", rng.choice([0, 0, 5_000, 30_000])])
            series.insert(min(at + rng.randint(4, 10), len(series)), ["free"])
    numbered = tuple(enumerate(series))
    cuts = tuple(sorted(rng.sample(range(4, len(series)), lives - 1)))
    blows: list[Blow | None] = []
    for begin, end in zip((0, *cuts), (*cuts, len(series)), strict=True):
        at = rng.choice([OPENING, *range(begin, end), *range(begin, end)])
        if small or rng.random() < 0.1:
            blows.append(None)
        elif have_strace() and kind != BUCKET and rng.random() < (0.4 if kind in REMOTE else 0.7):
            blows.append(Blow(at, faults.draw(rng, faults.CHANGES)))
        elif have_strace() and kind in REMOTE and rng.random() < 0.4:
            blows.append(Blow(at, Strike(faults.names(faults.TALK), faults.KILL, rng.randint(1, 12))))
        else:
            blows.append(Blow(at, None, rng.random() ** 3 * 0.1))
    # A bucket's server refuses requests from another year.
    wrong = fake_clock() is not None and kind != BUCKET and rng.random() < 0.15
    clocks = tuple(rng.choice([None, *CLOCKS]) if wrong else None for _ in range(lives))
    network = {}
    if kind == BUCKET:
        network = {name: rng.choice([0, 0.02, 0.05]) for name in ("refuse", "cut", "lose", "error", "late", "truncate")}
    elif kind in REMOTE:
        network = {name: rng.choice([0, 0.005, 0.02]) for name in LogServer.chances}
    return Spec(seed, kind, settings(rng, kind), numbered, cuts, tuple(blows), clocks, small, network)


def to_json(spec: Spec) -> str:
    return json.dumps(asdict(spec), indent=1)


def from_json(text: str) -> Spec:
    found = json.loads(text)
    found["operations"] = tuple((number, operation) for number, operation in found["operations"])
    found["blows"] = tuple(
        blow and Blow(blow["at"], blow["strike"] and Strike(**blow["strike"]), blow["after"]) for blow in found["blows"]
    )
    return Spec(**{**found, "cuts": tuple(found["cuts"]), "clocks": tuple(found["clocks"])})


def run(spec: Spec, work: Path, remote: Remote | None) -> tuple[list[str], Counter[str]]:
    """Runs a trial in an empty folder; returns what went wrong, and counts of what was done."""
    with contextlib.ExitStack() as stack:
        if spec.kind in REMOTE:
            assert remote is not None
            trial = Trial(spec, work, remote.place(work), remote)
        elif spec.small:
            mount = stack.enter_context(small_file_system(work, SMALL))
            trial = Trial(spec, work, in_folder(mount, spec.kind), None, mount)
        else:
            trial = Trial(spec, work, in_folder(work, spec.kind), None)
        return trial.run(), trial.counts


@dataclass
class Trial:
    spec: Spec
    work: Path
    place: Place
    remote: Remote | None
    mount: Path | None = None
    model: Model = field(default_factory=Model)
    next: int = 0
    count: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def run(self) -> list[str]:
        rng = random.Random(self.spec.seed)
        ends = (*self.spec.cuts, 10**9)
        for at, (end, blow) in enumerate(zip(ends, self.spec.blows, strict=True)):
            clock = self.spec.clocks[at] if self.spec.clocks else None
            self._network(self.spec.network)
            wrong = self._life(end, blow, clock, rng.randrange(2**32), rng.random() < 0.5)
            if wrong:
                return [f"life {at + 1}: {what}" for what in wrong]
        # No more faults: everything must work.
        self._network({})
        if self.mount is not None:
            faults.free(self.mount)
            resize(self.mount, ROOMY)
        left = [
            *self.spec.operations,
            *((number + 10**6, operation) for number, operation in self.spec.operations[-5:]),
        ]
        self.spec = self.spec.only([(number, operation) for number, operation in left if operation[0] != "fill"])
        wrong = self._life(10**9, None, None, 0, True, sound=True)
        if wrong:
            return [f"after all faults: {what}" for what in wrong]
        return [f"at the end: {what}" for what in self._examine([self.model], False, True)]

    def _network(self, chances: dict[str, float]) -> None:
        if self.remote is not None:
            self.remote.proxy.heal()
            self.remote.proxy.set(**chances)

    def _life(
        self, end: int, blow: Blow | None, clock: str | None, seed: int, closes: bool, sound: bool = False
    ) -> list[str]:
        mine = [(number, operation) for number, operation in self.spec.operations if self.next <= number < end]
        faulty = not sound and (self.remote is not None or self.mount is not None or (blow is not None))
        life = Life(
            self.place,
            self.spec.settings,
            mine,
            self.model,
            self._folder(),
            gate_at=None if blow is None else blow.at,
            faulty=faulty,
            closes=closes,
            seed=seed,
        )
        found = strike(life, blow, clock)
        if isinstance(found, list):
            return found
        self.counts += Counter(found.counts)
        self.next = max(found.next, self.next)
        return self._examine(found.models, random.Random(seed).random() < 0.4, False)

    def _examine(self, models: list[Model], reader: bool, emptied: bool) -> list[str]:
        """Compares the store with what it may hold, and continues with what it does hold."""
        place = self.place if self.remote is None else self.remote.directly(self.place)
        if self.mount is not None:
            # It may be full; recovery need not be possible on a full disk.
            faults.free(self.mount)
            resize(self.mount, ROOMY)
        found = look(Examination(place, models, self._folder(), reader, emptied))
        if self.mount is not None and not emptied:
            resize(self.mount, SMALL)
        if isinstance(found, list):
            return found
        self.counts["calls found done without an answer"] += found > 0
        self.model = models[found]
        return []

    def _folder(self) -> Path:
        self.count += 1
        folder = self.work / f"life{self.count}"
        folder.mkdir()
        return folder


def strike(life: Life, blow: Blow | None, clock: str | None = None) -> Outcome | list[str]:
    """Runs a life and strikes it; returns what it left, or what went wrong."""
    child = Child(live, life, life.out, clock)
    tracer = None
    try:
        if blow is not None and blow.strike is not None:
            tracer = Gate(life.folder).strike(child, blow.strike, life.folder / "strace")
        elif blow is not None:
            gate = Gate(life.folder)
            while not (life.folder / "waits").exists() and child.poll() is None:
                time.sleep(0.002)
            (gate.folder / "open").touch()
            time.sleep(blow.after)
            child.kill()
        try:
            status = child.wait()
        except TimeoutError as error:
            return [str(error)]
    finally:
        child.kill()
        if tracer is not None:
            tracer.detach()
    found = outcome(life)
    found.counts["kills"] += status == -9
    if found.wrong:
        return found.wrong
    killed = blow is not None and (blow.strike is None or blow.strike.action == faults.KILL)
    if status != 0 and not (killed and status == -9):
        return [f"a worker ended with status {status}: {child.told()}"]
    return found


def look(examination: Examination) -> int | list[str]:
    """Returns which of the models a store holds, or what is wrong."""
    child = Child(examine, examination, examination.folder / "examiner")
    try:
        status = child.wait()
    except TimeoutError as error:
        return [str(error)]
    told = lines(examination.journal)
    wrong = [rest[0] for what, *rest in told if what == "wrong"]
    if status != 0:
        wrong.append(f"an examiner ended with status {status}: {child.told()}")
    return wrong or int(told[-1][1])
