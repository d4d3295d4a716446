"""A process of clients that work on a store used by others too, and record their calls and the answers."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import drumlin

from .faults import pause
from .history import OK, REFUSED, UNSURE, Journal
from .places import Place
from .workloads import KINDS, Intents, perform

#: What a store may raise when storage fails; a store ``Closed`` by a failure is opened again.
FAILURES = (drumlin.Unavailable, drumlin.InDoubt, drumlin.Closed)
#: How long no call may succeed before a client reports that it is stuck.
PATIENCE_SECONDS = 90
#: Calls that each client makes even if time is up.
CALLS_MIN = 5
#: The mean of the pauses between calls.
PAUSE_SECONDS = 0.01


@dataclass
class Task:
    """The task of one process: ``threads`` clients, until a time or a number of calls each."""

    place: Place
    settings: dict[str, Any]
    who: int
    threads: int
    until: float
    calls: int
    folder: Path
    seed: int
    reads_only: bool = False
    #: Whether storage may fail for it.
    faulty: bool = False
    kinds: tuple[str, ...] = tuple(KINDS)

    def journal(self, thread: int) -> Path:
        return self.folder / f"{self.who}-{thread}.journal"

    @property
    def out(self) -> Path:
        return self.folder / f"{self.who}.out"


def work(task: Task) -> None:
    """The process."""
    process = Process(task)
    threads = [threading.Thread(target=process.client, args=(number,)) for number in range(1, task.threads)]
    for thread in threads:
        thread.start()
    process.client(0)
    for thread in threads:
        thread.join()
    try:
        process.store.close()
    except FAILURES:
        if not task.faulty:
            raise


class Process:
    """Clients that share an open store; a client that finds it unusable opens it again."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.lock = threading.Lock()
        self.store = self._opened()

    def _opened(self) -> drumlin.Store:
        mode = "read" if self.task.reads_only else "create"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self.task.place.open(mode, **self.task.settings)
            except FAILURES as error:
                if not self.task.faulty or time.monotonic() > deadline:
                    raise
                print(f"opening: {error}", flush=True)
                pause(0.05)

    def client(self, number: int) -> None:
        task = self.task
        journal = Journal(task.journal(number))
        try:
            Client(self, journal, number).run()
        except BaseException as error:
            # The end of a thread must not be overlooked.
            journal.note("wrong", f"client {task.who}-{number}: {type(error).__name__}: {error}")
            raise

    def reopen(self, broken: drumlin.Store) -> None:
        with self.lock:
            if self.store is broken:
                try:
                    broken.close()
                except FAILURES as error:
                    print(f"closing: {error}", flush=True)
                self.store = self._opened()


class Client:
    def __init__(self, process: Process, journal: Journal, number: int) -> None:
        task = process.task
        self.process, self.journal = process, journal
        self.rng = random.Random(task.seed * 1000 + task.who * 10 + number)
        self.intents = Intents(self.rng, task.who * 10 + number, task.reads_only, task.kinds)
        #: The last seen value of each register.
        self.seen: dict[str, int] = {}

    def run(self) -> None:
        task, failing = self.process.task, None
        for count in range(task.calls):
            if time.monotonic() > task.until and count >= CALLS_MIN:
                return
            store = self.process.store
            intent = self.intents.draw()
            if intent["kind"] == "register" and intent["action"] == "swap":
                # The last seen value, so that half of the swaps succeed.
                intent["expected"] = self.seen.get(intent["key"], 0)
            number = self.journal.begin(intent)
            try:
                result = perform(store, intent, task.reads_only)
            except drumlin.InDoubt as error:
                self._failed(number, UNSURE, error)
            except (drumlin.Unavailable, drumlin.Conflict, drumlin.SnapshotExpired, drumlin.Closed) as error:
                self._failed(number, REFUSED, error)
                failing = failing or time.monotonic()
                if time.monotonic() - failing > PATIENCE_SECONDS:
                    raise TimeoutError("nothing succeeds any more") from error
                if isinstance(error, (drumlin.Unavailable, drumlin.Closed)):
                    self.process.reopen(store)
            else:
                self.journal.end(number, OK, result)
                failing = None
                self._learn(intent, result)
            # Leaves time for attacks before the history is too long to check.
            if self.rng.random() < 0.6:
                pause(self.rng.expovariate(1 / PAUSE_SECONDS))

    def _failed(self, number: int, outcome: str, error: drumlin.Error) -> None:
        name = type(error).__name__
        self.journal.end(number, outcome, f"{name}: {error}")
        expected = self.process.task.faulty or isinstance(error, (drumlin.SnapshotExpired, drumlin.Closed))
        if not expected:
            self.journal.note("wrong", f"{name} though nothing fails: {error}")

    def _learn(self, intent: dict[str, Any], result: Any) -> None:
        if intent["kind"] == "register":
            if intent["action"] == "read":
                self.seen[intent["key"]] = result
            elif intent["action"] == "write" or result:
                self.seen[intent["key"]] = intent["value"]
