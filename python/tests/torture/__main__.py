"""The torture: trials of all kinds in turn, each with a new seed, for the requested time.

Each trial prints a line with its seed. One that fails is shrunk, reported, and kept in ``torture-failures``; the run
continues, and ends with status 1. ``--seed`` runs one trial again, ``--replay`` a shrunk one.
"""

from __future__ import annotations

import os

# Before numpy is loaded: its threads would interfere with forks.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import contextlib
import json
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from . import crash, shrink, sweep, together
from .history import short
from .places import (
    BUCKET,
    ETCD,
    FOLDER,
    LOGS,
    POSTGRES,
    SHARED,
    Remote,
    buckets,
    have,
    have_strace,
    log_server,
    tell_what_is_skipped,
)

#: The kinds of trials, in turn. The seed's remainder determines the kind of a trial.
KINDS = (
    ("crash", FOLDER), ("sweep", SHARED), ("together", SHARED), ("crash", BUCKET), ("together", POSTGRES),
    ("sweep", FOLDER), ("crash", SHARED), ("together", BUCKET), ("crash", ETCD), ("sweep", SHARED),
    ("crash", FOLDER), ("together", FOLDER), ("crash", POSTGRES), ("sweep", FOLDER), ("together", ETCD),
    ("crash", SHARED),
)  # fmt: skip
#: About the maximum duration of a trial, so that a run ends in time.
SECONDS = {"crash": 4, "sweep": 4, "together": 9}
SWEEP_SECONDS_MAX = 20


@dataclass
class Run:
    """A run of trials, and its findings."""

    work: Path
    failures: Path
    accepted: list[str]
    shrink_seconds: float
    #: By kind of place.
    remote: dict[str, Remote] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    failed: dict[str, list[int]] = field(default_factory=dict)

    def trial(self, seed: int, deadline: float) -> None:
        """One trial, determined by its seed."""
        what, kind = KINDS[seed % len(KINDS)]
        started = time.monotonic()
        told = ""
        small: crash.Spec | together.Spec | None = None
        try:
            if what == "together":
                small = together.draw(seed, kind)
                told = str(small)
                wrong, counts = together.run(small, self._empty(), self.remote.get(kind))
            elif what == "sweep":
                drawn, target = sweep.draw(seed, kind)
                swept = sweep.Sweep(drawn, self._empty())
                small, wrong, counts = swept.run(deadline)
                told = f"sweep of {target}, {counts['calls struck']} calls struck: {small}"
            else:
                small = crash.draw(seed, kind)
                told = str(small)
                wrong, counts = crash.run(small, self._empty(), self.remote.get(kind))
        except Exception:
            wrong, counts = [f"the torture itself failed: {traceback.format_exc()}"], Counter()
        self.counts += counts
        self.counts["trials"] += 1
        state = "ok" if not wrong else "FAILED"
        print(f"seed {seed}: {state}, {time.monotonic() - started:.1f} s: {told}", flush=True)
        if wrong:
            self._tell(seed, wrong, small)

    def replay(self, file: Path) -> None:
        """Runs a shrunk trial again."""
        text = file.read_text()
        spec = crash.from_json(text) if "operations" in json.loads(text) else together.from_json(text)
        print(spec)
        wrong = self._run_small(spec)
        if wrong:
            self._tell(spec.seed, wrong, None)

    def _tell(self, seed: int, wrong: list[str], small: crash.Spec | together.Spec | None) -> None:
        kind = shrink.signature(wrong)
        for line in wrong[:8]:
            print(f"    {line}", flush=True)
        if any(text in line for text in self.accepted for line in wrong):
            print("    (accepted)", flush=True)
            self.counts["accepted failures"] += 1
            return
        again = f"make torture SEED={seed}"
        kept = self.failures / f"{seed}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.work / "trial", kept, dirs_exist_ok=True)
        if small is not None and kind not in self.failed and not wrong[0].startswith("the torture itself"):
            if isinstance(small, crash.Spec):
                small, wrong = shrink.shrink(small, wrong, self._run_small, self.shrink_seconds)
                (kept / "shrunk.json").write_text(crash.to_json(small))
            else:
                small, wrong = shrink.circumstances(small, wrong, self._run_small, self.shrink_seconds)
                (kept / "shrunk.json").write_text(together.to_json(small))
            print(f"    shrunk to {small}")
            for number, operation in small.operations if isinstance(small, crash.Spec) else ():
                print(f"        {number}: {short(operation)}")
            for line in wrong[:3]:
                print(f"    {line}")
            again += f"   or, shrunk: make torture REPLAY={kept / 'shrunk.json'}"
        print(f"    AGAIN: {again}", flush=True)
        self.failed.setdefault(kind, []).append(seed)

    def _run_small(self, spec: crash.Spec | together.Spec) -> list[str]:
        if isinstance(spec, crash.Spec):
            return crash.run(spec, self._empty(), self.remote.get(spec.kind))[0]
        return together.run(spec, self._empty(), self.remote.get(spec.kind))[0]

    def _empty(self) -> Path:
        folder = self.work / "trial"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def tell_all(self) -> int:
        """Ends the run; returns the exit status."""
        print(", ".join(f"{count} {name}" for name, count in sorted(self.counts.items())))
        for kind, seeds in self.failed.items():
            print(f"FAILED, seeds {seeds[:10]} ({len(seeds)}): {kind}")
        return 1 if self.failed else 0


def seeds(rng: random.Random, places: list[str]) -> list[int]:
    """A new seed for each kind of trial that this machine can run, in turn."""
    doable = [
        at
        for at, (what, kind) in enumerate(KINDS)
        if kind in places and have(kind) and (what != "sweep" or have_strace())
    ]
    return [rng.randrange(10**8) * len(KINDS) + at for at in doable]


def roomy() -> Path | None:
    """A file system in memory: nothing here tests what a disk forgets, and syncs are fast."""
    shm = Path("/dev/shm")
    return shm if shm.is_dir() and os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 1 << 30 else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=240, help="how long (default 240)")
    parser.add_argument("--hours", type=float, help="how long, in hours")
    parser.add_argument("--seed", type=int, help="one trial, as it was")
    parser.add_argument("--times", type=int, default=1, help="how often that is run")
    parser.add_argument("--replay", type=Path, help="a shrunk trial, from its file")
    parser.add_argument("--failures", type=Path, default=Path("torture-failures"), help="where failed trials are kept")
    parser.add_argument("--accept", action="append", default=[], help="reported failures with this text do not count")
    parser.add_argument("--shrink-seconds", type=float, default=60, help="how long a failed trial is shrunk")
    kinds = list(dict.fromkeys(kind for _, kind in KINDS))
    parser.add_argument("--place", action="append", choices=kinds, help="only trials there; may be repeated")
    chosen = parser.parse_args()
    seconds = chosen.seconds if chosen.hours is None else chosen.hours * 3600
    deadline = time.monotonic() + seconds
    # Children, servers and mounts are removed with the run, however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tell_what_is_skipped()
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torture-", dir=roomy())))
        run = Run(work, chosen.failures.resolve(), chosen.accept, chosen.shrink_seconds)
        places = [kind for kind in chosen.place or kinds if have(kind)]
        if BUCKET in places:
            # Its server needs attributes of files, which file systems in memory may not have.
            data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torture-")))
            run.remote[BUCKET] = stack.enter_context(buckets(data))
        for kind in LOGS:
            if kind in places:
                run.remote[kind] = stack.enter_context(log_server(kind))
        if chosen.replay is not None or chosen.seed is not None:
            for _ in range(chosen.times):
                if chosen.replay is not None:
                    run.replay(chosen.replay)
                else:
                    run.trial(chosen.seed, time.monotonic() + 600)
        else:
            rng = random.Random()
            while time.monotonic() < deadline:
                for seed in seeds(rng, places):
                    if time.monotonic() + SECONDS[KINDS[seed % len(KINDS)][0]] < deadline:
                        run.trial(seed, min(deadline, time.monotonic() + min(SWEEP_SECONDS_MAX, seconds / 8)))
                if deadline - time.monotonic() < max(SECONDS.values()):
                    break
        return run.tell_all()


if __name__ == "__main__":
    sys.exit(main())
