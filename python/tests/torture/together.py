"""Trials of many processes on one store: the history of all answers is checked as a whole.

During a trial, processes are killed and replaced, stopped and continued, storage fails through strace, a network loses
requests, the server that keeps the log is killed or stopped, and some processes have clocks that are years off. A
folder has one process that writes, with several threads, and additional readers. When the attacks end, everything must
work again; at the end the whole store is read, and after everything is dropped no object may be left.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from . import client, crash, faults
from .checker import violations
from .child import Child
from .client import Task
from .faults import Tracer
from .history import OK, Journal, Operation, lines, operations, wrongs
from .places import (
    BUCKET,
    FOLDER,
    LOGS,
    NOW,
    REMOTE,
    Bucket,
    LogServer,
    Place,
    Remote,
    fake_clock,
    have_strace,
    in_folder,
)
from .space import emptied, reclaimed
from .workloads import KINDS, LISTS, PAIRS, REGISTERS, perform, prepare, transfers


@dataclass(frozen=True)
class Spec:
    """A trial. It is run again by its seed, but no two runs are the same: processes race."""

    seed: int
    kind: str
    settings: dict[str, Any]
    processes: int
    threads: int
    readers: int
    seconds: float
    #: Attacks per second.
    rate: float
    attacks: tuple[str, ...]
    clocks: tuple[str | None, ...]
    network: dict[str, float] = field(default_factory=dict)
    kinds: tuple[str, ...] = tuple(KINDS)

    def __str__(self) -> str:
        who = f"{self.processes} processes of {self.threads} threads, {self.readers} readers"
        clocks = f", clocks {self.clocks}" if any(self.clocks) else ""
        network = f", network {self.network}" if any(self.network.values()) else ""
        return (
            f"together on a {self.kind}, {who}, {self.seconds:.0f} s, attacks {'/'.join(self.attacks) or 'none'}"
            f"{clocks}{network}, {self.settings}, {'/'.join(self.kinds)}"
        )


def draw(seed: int, kind: str) -> Spec:
    """A random trial."""
    rng = random.Random(seed)
    seconds = rng.choice([3, 4, 5, 8])
    settings: dict[str, Any] = {
        "checkpoint_log_bytes": rng.choice([0, 20_000, 1 << 20]),
        "memtable_bytes": rng.choice([0, 20_000]),
        "inline_bytes": rng.choice([0, 65536]),
    }
    if kind != FOLDER:
        settings["fresh"] = True
    attacks = [name for name in ("kill", "stop") if rng.random() < 0.7]
    if have_strace() and kind != BUCKET and rng.random() < 0.4:
        attacks.append("fail")
    if have_strace() and rng.random() < 0.4:
        attacks.append("strike")
    if kind in LOGS:
        attacks += [name for name in ("server", "freeze", "hold") if rng.random() < 0.6]
    processes = 1 if kind == FOLDER else rng.randint(2, 4)
    threads = rng.choice([2, 4]) if kind == FOLDER else rng.choice([1, 1, 2])
    readers = rng.randint(1, 2) if kind == FOLDER else rng.randint(0, 1)
    wrong = fake_clock() is not None and kind != BUCKET and rng.random() < 0.3
    clocks = tuple(rng.choice([None, *crash.CLOCKS]) if wrong else None for _ in range(processes + readers))
    network = {}
    if kind in REMOTE:
        chances = (Bucket if kind == BUCKET else LogServer).chances
        network = {name: chance if rng.random() < 0.7 else 0 for name, chance in chances.items()}
    rate = rng.choice([1.0, 3.0])
    return Spec(seed, kind, settings, processes, threads, readers, seconds, rate, tuple(attacks), clocks, network)


def simpler(spec: Spec) -> Iterator[Spec]:
    """Smaller trials."""
    if len(spec.kinds) > 2:
        half = len(spec.kinds) // 2
        yield replace(spec, kinds=spec.kinds[:half])
        yield replace(spec, kinds=spec.kinds[half:])
    for kind in spec.kinds if len(spec.kinds) > 1 else ():
        yield replace(spec, kinds=tuple(other for other in spec.kinds if other != kind))
    for attack in spec.attacks:
        yield replace(spec, attacks=tuple(other for other in spec.attacks if other != attack))
    if any(spec.clocks):
        yield replace(spec, clocks=(None,) * len(spec.clocks))
    for name in (name for name, chance in spec.network.items() if chance):
        yield replace(spec, network={**spec.network, name: 0})
    if spec.readers:
        yield replace(spec, readers=spec.readers - 1)
    if spec.processes > 1:
        yield replace(spec, processes=spec.processes - 1)
    if spec.threads > 1:
        yield replace(spec, threads=1)


def to_json(spec: Spec) -> str:
    return json.dumps(asdict(spec), indent=1)


def from_json(text: str) -> Spec:
    found = json.loads(text)
    return Spec(**{**found, **{name: tuple(found[name]) for name in ("attacks", "clocks", "kinds")}})


def run(spec: Spec, work: Path, remote: Remote | None) -> tuple[list[str], Counter[str]]:
    """Runs a trial in an empty folder; returns what went wrong, and how many calls ended how."""
    place = in_folder(work, spec.kind) if remote is None else remote.place(work)
    return Trial(spec, work, place, remote).run()


@dataclass
class Trial:
    spec: Spec
    work: Path
    place: Place
    remote: Remote | None
    rng: random.Random = field(init=False)
    running: dict[int, tuple[Task, Child]] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    until: float = 0
    tracers: list[Tracer] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.spec.seed)

    def run(self) -> tuple[list[str], Counter[str]]:
        prepared = Child(begin, (self.place, self.spec.settings), self.work / "prepared")
        if prepared.wait() != 0:
            return [f"the store could not be made: {prepared.told()}"], Counter()
        if self.remote is not None:
            self.remote.proxy.set(**self.spec.network)
        # Processes with a clock of their own take longer to start.
        self.until = time.monotonic() + self.spec.seconds + (4 if any(self.spec.clocks) else 0)
        try:
            for number in range(self.spec.processes + self.spec.readers):
                self._start(number, number >= self.spec.processes)
            self._attack()
            self._join()
        finally:
            for _, child in self.running.values():
                child.kill()
            for tracer in self.tracers:
                tracer.detach()
        return self._check()

    def _start(self, number: int, reads_only: bool) -> None:
        """A process; ``number`` is its place, which is kept by processes that replace it."""
        who = len(self.tasks) + 1
        threads = self.spec.threads if not reads_only else 1
        faulty = self.remote is not None or "fail" in self.spec.attacks
        calls = 1500 if self.spec.seconds > 20 else 500
        task = Task(
            self.place,
            self.spec.settings,
            who,
            threads,
            self.until,
            calls,
            self.work,
            self.spec.seed,
            reads_only,
            faulty,
        )
        self.tasks.append(task)
        self.running[number] = task, Child(client.work, task, task.out, self.spec.clocks[number])

    def _attack(self) -> None:
        """Attacks until a while before the end, so that stuck calls become visible."""
        while time.monotonic() < self.until - self.spec.seconds * 0.15:
            time.sleep(self.rng.expovariate(self.spec.rate))
            alive = [number for number, (_, child) in self.running.items() if child.poll() is None]
            if not alive or self._failed_children():
                return
            if self.spec.attacks:
                number = self.rng.choice(alive)
                getattr(self, f"_{self.rng.choice(self.spec.attacks)}")(number, *self.running[number])

    def _kill(self, number: int, task: Task, child: Child) -> None:
        child.kill()
        self.counts["kills"] += 1
        self._start(number, task.reads_only)

    def _stop(self, number: int, task: Task, child: Child) -> None:
        self.counts["stops"] += 1
        child.signal(signal.SIGSTOP)
        time.sleep(self.rng.choice([0.01, 0.1, 0.5, 1.5]) * self.rng.random())
        child.signal(signal.SIGCONT)

    def _fail(self, number: int, task: Task, child: Child) -> None:
        """Makes storage fail one call, or all for a moment, of a process that is already working."""
        if not task.journal(0).exists():
            return
        name = self.rng.choice(faults.OFTEN)
        error = self.rng.choice(faults.CHANGES[name])
        strike = faults.Strike("?" + name, error, self.rng.randint(1, 4), self.rng.random() < 0.3)
        tracer = Tracer(child, strike, task.folder / f"strace{len(self.tracers)}")
        time.sleep(self.rng.random() * 0.3)
        tracer.detach()

    def _strike(self, number: int, task: Task, child: Child) -> None:
        """A kill at a system call."""
        over_network = self.spec.kind == BUCKET or (self.spec.kind in LOGS and self.rng.random() < 0.6)
        table = faults.TALK if over_network else faults.CHANGES
        strike = faults.Strike(faults.names(table), faults.KILL, self.rng.randint(1, 25))
        tracer = Tracer(child, strike, task.folder / f"strace{len(self.tracers)}")
        deadline = time.monotonic() + 1
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        tracer.detach()
        if child.poll() == -signal.SIGKILL:
            self.counts["kills"] += 1
            self._start(number, task.reads_only)

    def _server(self, *_: Any) -> None:
        """The server that keeps the log is killed, and started again after a moment."""
        assert isinstance(self.remote, LogServer)
        self.counts["kills of a server"] += 1
        self.remote.server.kill()
        time.sleep(self.rng.choice([0, 0.1, 0.5]))
        self.remote.server.start()

    def _freeze(self, *_: Any) -> None:
        """It is stopped for a moment."""
        assert isinstance(self.remote, LogServer)
        self.counts["stops of a server"] += 1
        with self.remote.server.frozen():
            time.sleep(self.rng.choice([0.05, 0.3, 1.0]) * self.rng.random())

    def _hold(self, *_: Any) -> None:
        """The network between carries nothing for a moment."""
        assert self.remote is not None
        self.counts["silences of the network"] += 1
        self.remote.proxy.set(hold=1)
        time.sleep(self.rng.choice([0.05, 0.3, 2.0]) * self.rng.random())
        self.remote.proxy.set(hold=0)

    def _failed_children(self) -> bool:
        for task, child in self.running.values():
            if child.poll() not in (None, 0):
                self.wrong.append(f"process {task.who} ended with status {child.status}: {child.told()}")
        return bool(self.wrong)

    def _join(self) -> None:
        if self.remote is not None:
            self.remote.proxy.heal()
        for task, child in self.running.values():
            try:
                child.wait()
            except TimeoutError as error:
                self.wrong.append(f"process {task.who} hangs: {error}")
        if not self.wrong:
            self._failed_children()

    def _check(self) -> tuple[list[str], Counter[str]]:
        history: list[Operation] = []
        for task in self.tasks:
            for thread in range(task.threads):
                journal = task.journal(thread)
                history += operations(journal, f"{task.who}-{thread}")
                self.wrong += wrongs(journal)
        counts = self.counts + Counter(f"concurrent calls {operation.outcome}" for operation in history)
        place = self.place if self.remote is None else self.remote.directly(self.place)
        final = self.work / "final"
        final.mkdir()
        child = Child(finish, (place, final), final / "out")
        try:
            status = child.wait()
        except TimeoutError as error:
            return [*self.wrong, str(error)], counts
        told = lines(final / "journal")
        self.wrong += wrongs(final / "journal")
        if status != 0:
            self.wrong.append(f"the last look ended with status {status}: {child.told()}")
        last = operations(final / "journal", "at the end")
        done = next((rest[0] for what, *rest in told if what == "transfers"), None)
        if not any(operation.outcome == OK for operation in history):
            self.wrong.append("no call succeeded")
        self.wrong += violations([o for o in history + last if o.intent["kind"] != "maintenance"], done)
        return self.wrong, counts


def begin(argument: tuple[Place, dict[str, Any]]) -> None:
    """Creates the store, in a separate process."""
    place, settings = argument
    with place.open(**settings) as store:
        prepare(store)


def finish(argument: tuple[Place, Path]) -> None:
    """Reads everything at the end, in a separate process, as one more client; then frees all space."""
    place, folder = argument
    journal = Journal(folder / "journal")
    intents: list[dict[str, Any]] = [{"kind": "register", "key": key, "action": "read"} for key in REGISTERS]
    intents.append({"kind": "list", "steps": [["read", name] for name in LISTS]})
    intents.append({"kind": "bank", "action": "snapshot"})
    intents += [{"kind": "pair", "action": "snapshot", "pair": pair} for pair in range(PAIRS)]
    with place.open(block_grace=NOW) as store:
        for intent in intents:
            number = journal.begin(intent)
            journal.end(number, OK, perform(store, intent, False))
        journal.note("transfers", transfers(store))
        for wrong in (*reclaimed(store), *emptied(store, place)):
            journal.note("wrong", wrong)
