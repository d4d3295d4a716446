"""Sweeps: one operation, killed at each of its system calls in turn, or with storage failing at each.

The store before the operation is created once and copied for each call; the sweep continues until the operation is no
longer struck. Each call is a crash trial of its own, so that a failing one is reported and shrunk as such.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import crash, faults, operations
from .crash import Blow, Spec, look, strike
from .faults import Strike
from .life import CLOSING, OPENING, Examination, Life
from .model import Model, Operation
from .places import Place, in_folder

#: Operations worth sweeping, and how often they are chosen.
TARGETS = {
    "write": 3, "append": 2, "delete_rows": 1, "upsert": 2, "insert": 1, "put": 1, "snapshot": 1, "drop": 2,
    "undrop": 1, "delete_versions": 1, "transaction": 3, "checkpoint": 5, "reclaim": 5, "opening": 3, "closing": 1,
}  # fmt: skip
CALLS_MAX = 200


def draw(seed: int, kind: str) -> tuple[Spec, str]:
    """A trial whose last operation must be struck, and how: "KILL", or an error for one system call."""
    rng = random.Random(seed)
    target = rng.choices(list(TARGETS), list(TARGETS.values()))[0]
    series = operations.series(rng, rng.choice([8, 14, 25]))
    if target in ("reclaim", "checkpoint"):
        series += [["drop", ["t/0"]], ["write", "t/1", 0, 300, "last"]][: rng.randint(0, 2)]
    if target == "opening":
        at = OPENING
    elif target == "closing":
        at = CLOSING
    else:
        if target == "undrop":
            series.append(["drop", ["t/0"]])
        series.append(_fitting(rng, target, series))
        at = len(series) - 1
    how = faults.KILL
    calls = faults.names(faults.CHANGES)
    if rng.random() < 0.35:
        name = rng.choice((*faults.OFTEN, "unlinkat", "ftruncate"))
        how, calls = rng.choice(faults.CHANGES[name]), "?" + name
    settings = crash.settings(rng, kind)
    # Background work would be struck too, and differently each time.
    settings |= {"checkpoint_log_bytes": 0, "memtable_bytes": 0, "sync": "commit"}
    numbered = tuple(enumerate(series))
    last = at if at >= 0 else len(series)
    blows = (None, Blow(at, Strike(calls, how, 1)))
    return Spec(seed, kind, settings, numbered, (last,), blows), target


def _fitting(rng: random.Random, name: str, series: list[Operation]) -> Operation:
    """An operation of a kind that makes sense after a series; a checkpoint if none is found."""
    model = Model()
    for operation in series:
        after = model.after(operation)
        model = after if isinstance(after, Model) else model
    for _ in range(100):
        operation = operations.draw(rng, name)
        after = model.after(operation)
        if isinstance(after, Model) and (after != model or name in ("checkpoint", "reclaim")):
            return operation
    return ["checkpoint"]


@dataclass
class Sweep:
    spec: Spec
    work: Path
    count: int = 0
    model: Model = field(default_factory=Model)
    counts: Counter[str] = field(default_factory=Counter)

    def run(self, deadline: float) -> tuple[Spec, list[str], Counter[str]]:
        """Strikes at one call after the other. Returns the trial that failed, what went wrong in it, and what was
        done."""
        place = in_folder(self.work, self.spec.kind)
        wrong = self._prepare(place)
        if wrong:
            return replace(self.spec, blows=(None,), cuts=()), wrong, self.counts
        blow = self.spec.blows[1]
        assert blow is not None
        assert blow.strike is not None
        for when in range(1, CALLS_MAX):
            at = replace(blow, strike=replace(blow.strike, when=when))
            wrong, struck = self._strike(place, at)
            self.counts["calls struck"] += struck
            if wrong:
                return replace(self.spec, blows=(None, at)), wrong, self.counts
            if not struck or time.monotonic() > deadline:
                break
        return self.spec, [], self.counts

    def _prepare(self, place: Place) -> list[str]:
        """The store as it is before the operation."""
        before = [(number, operation) for number, operation in self.spec.operations if number < self.spec.cuts[0]]
        closes = random.Random(self.spec.seed).random() < 0.5
        life = Life(place, self.spec.settings, before, self.model, self._folder(), closes=closes)
        found = strike(life, None)
        if isinstance(found, list):
            return found
        [self.model] = found.models
        return []

    def _strike(self, place: Place, blow: Blow) -> tuple[list[str], bool]:
        """Strikes at one call, in a copy of the store."""
        folder = self._folder()
        shutil.copytree(place.files, folder / "store")
        copied = in_folder(folder, place.kind)
        rest = [(number, operation) for number, operation in self.spec.operations if number >= self.spec.cuts[0]]
        life = Life(copied, self.spec.settings, rest, self.model, folder, gate_at=blow.at, faulty=True)
        found = strike(life, blow)
        if isinstance(found, list):
            return found, True
        self.counts += found.counts
        struck = faults.struck(folder / "strace")
        examined = look(Examination(copied, found.models, folder, reader=self.count % 3 == 0))
        if isinstance(examined, list):
            return examined, struck
        # Its content is now the model; and nothing is left of what was not done.
        final = folder / "final"
        final.mkdir()
        left = look(Examination(copied, [found.models[examined]], final, emptied=True))
        shutil.rmtree(folder)
        return left if isinstance(left, list) else [], struck

    def _folder(self) -> Path:
        self.count += 1
        folder = self.work / f"call{self.count}"
        folder.mkdir()
        return folder
