"""The children of a crash trial: one works on a store until something ends it, others examine what it left.

The worker keeps a model: it knows what each operation must return, and compares the store with the model as it goes.
Its journal records what was done; from it the parent makes the models that the store may hold afterwards.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import drumlin

from .faults import Gate, fill, free
from .history import Journal, lines, short
from .model import Model, Operation
from .operations import differences, frame, perform
from .places import NOW, Place
from .space import emptied, reclaimed

#: Instead of an operation's number: opening and closing the store.
OPENING, CLOSING = -1, -2
#: What a call may raise when storage fails; a store ``Closed`` by a failure is opened again.
FAILURES = (drumlin.Unavailable, drumlin.InDoubt, drumlin.Closed)


@dataclass
class Life:
    """The task of one worker."""

    place: Place
    settings: dict[str, Any]
    operations: list[tuple[int, Operation]]
    model: Model
    folder: Path
    #: The operation before which it waits to be struck.
    gate_at: int | None = None
    #: Whether storage may fail for it.
    faulty: bool = False
    #: Whether it closes the store or just ends.
    closes: bool = True
    seed: int = 0

    @property
    def journal(self) -> Path:
        return self.folder / "journal"

    @property
    def out(self) -> Path:
        return self.folder / "out"


def live(life: Life) -> None:
    """The worker."""
    # pyarrow loads modules when it first meets a table; their files would be struck as if they were the store's.
    with drumlin.open("memory://") as store:
        store.write("t", {"n": [1]})
        store.read("t").to_arrow()
    Worker(life).work()


@dataclass
class Worker:
    life: Life
    journal: Journal = field(init=False)
    model: Model = field(init=False)
    held: list[tuple[drumlin.Result, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.journal = Journal(self.life.journal)
        self.model = self.life.model
        self.rng = random.Random(self.life.seed)

    def work(self) -> None:
        self._gate(OPENING)
        store = self._opened()
        for number, operation in self.life.operations:
            if store is None:
                return
            self._gate(number)
            store = self._step(store, number, operation)
        self._gate(CLOSING)
        if store is not None and self.life.closes:
            self._close(store)
        self.journal.note("end")

    def _gate(self, at: int) -> None:
        if self.life.gate_at == at:
            Gate(self.life.folder).wait()

    def _opened(self) -> drumlin.Store | None:
        """The store; None if storage fails."""
        for _ in range(3):
            try:
                return self.life.place.open(**self.life.settings)
            except FAILURES as error:
                if not self.life.faulty:
                    self._wrong(f"opening: {type(error).__name__}: {error}")
                    return None
        return None

    def _close(self, store: drumlin.Store) -> None:
        try:
            store.close()
        except FAILURES as error:
            if not self.life.faulty:
                self._wrong(f"closing: {type(error).__name__}: {error}")

    def _step(self, store: drumlin.Store, number: int, operation: Operation) -> drumlin.Store | None:
        """Does one operation; returns the store with which to continue."""
        name = operation[0]
        if name == "fill":
            fill(self.life.place.files.parent, operation[1])
        elif name == "free":
            free(self.life.place.files.parent)
        elif name == "reopen":
            self.held.clear()
            self._close(store)
            return self._opened()
        else:
            return self._call(store, number, operation)
        return store

    def _call(self, store: drumlin.Store, number: int, operation: Operation) -> drumlin.Store | None:
        expected = self.model.after(operation)
        if expected is None:
            return store
        self.journal.note("start", number)
        try:
            told = perform(store, self.model, operation)
        except drumlin.InDoubt as error:
            self.journal.note("doubt", number, str(error))
            if not self.life.faulty:
                self._wrong(f"{short(operation)}: InDoubt: {error}")
            return None
        except (drumlin.Unavailable, drumlin.Closed) as error:
            if self._emptied_the_trash(store, operation):
                # A reclaim is several commits; it failed after the first.
                self.journal.note("done", number, None)
                self.model = replace(self.model, trash=())
            elif operation[0] == "purge" and "the rows were removed from all versions" in str(error):
                # So is a purge, and says how far it came.
                self.journal.note("done", number, None)
                self.model = expected
            else:
                self.journal.note("failed", number, str(error))
            if not self.life.faulty:
                self._wrong(f"{short(operation)}: {type(error).__name__}: {error}")
            self._compare(store, f"after {short(operation)} failed with {error}")
            # A handle may refuse writes after a failure; after opening again, it works.
            self.held.clear()
            self._close(store)
            return self._opened()
        except drumlin.Error as error:
            self.journal.note("refused", number)
            if type(error).__name__ != expected:
                self._wrong(f"{short(operation)}: {type(error).__name__}: {error}")
        else:
            self.journal.note("done", number, told)
            if isinstance(expected, str):
                self._wrong(f"{short(operation)} was done; expected {expected}")
                return None
            self.model = expected.learn(operation, told)
        if self.rng.random() < 0.3:
            self._compare(store, f"after {short(operation)}")
        return store

    def _emptied_the_trash(self, store: drumlin.Store, operation: Operation) -> bool:
        try:
            return operation == ["reclaim"] and bool(self.model.trash) and not store.trash()
        except FAILURES:
            return False

    def _compare(self, store: drumlin.Store, when: str) -> None:
        """The current store, and a result requested a while ago."""
        try:
            for difference in differences(store, self.model, whole=False)[:3]:
                self._wrong(f"{when}: {difference}")
            if self.held and self.rng.random() < 0.5:
                result, rows = self.held.pop(0)
                if not result.to_arrow().equals(frame(rows)):
                    self._wrong(f"{when}: a result asked for before changed")
            elif self.model.newest:
                path = self.rng.choice(sorted(self.model.newest))
                self.held.append((store.read(path), self.model.newest[path]))
        except FAILURES as error:
            if not self.life.faulty:
                self._wrong(f"{when}: {type(error).__name__}: {error}")

    def _wrong(self, what: str) -> None:
        self.journal.note("wrong", what)


@dataclass(frozen=True)
class Outcome:
    """The content of a journal: the models the store may hold, the next operation, what went wrong, how calls ended."""

    models: list[Model]
    next: int
    wrong: list[str]
    counts: Counter[str]


def outcome(life: Life) -> Outcome:
    operations = dict(life.operations)
    model, pending, wrong = life.model, None, []
    counts: Counter[str] = Counter()
    last = min(operations, default=0) - 1
    for what, *rest in lines(life.journal):
        if what == "wrong":
            wrong.append(rest[0])
            continue
        if what == "end":
            last = max(operations, default=last)
            continue
        number = rest[0]
        counts[f"calls {what}"] += what != "start"
        if what in ("start", "doubt"):
            pending, last = number, number
            continue
        pending = None
        if what == "done":
            after = model.after(operations[number])
            model = after.learn(operations[number], rest[1]) if isinstance(after, Model) else model
    models = [model]
    if pending is not None:
        after = model.after(operations[pending])
        if isinstance(after, Model) and after != model:
            models.append(after)
    return Outcome(models, last + 1, wrong, counts)


@dataclass
class Examination:
    """What a store must be compared with."""

    place: Place
    models: list[Model]
    folder: Path
    #: Whether a reader reads first, before a writer has recovered the store.
    reader: bool = False
    #: Whether all space must be freed at the end.
    emptied: bool = False

    @property
    def journal(self) -> Path:
        return self.folder / "examined"


def examine(examination: Examination) -> None:
    """Records which of the models the store holds, or how it differs from each; and what else is wrong with it."""
    journal = Journal(examination.journal)
    models = examination.models
    modes = [{"mode": "read"}, {}] if examination.reader and examination.place.files.exists() else [{}]
    for settings in modes:
        try:
            opened = examination.place.open(**settings, block_grace=NOW)
        except drumlin.NotFound:
            if not settings:
                raise
            # Killed before the store was made: whether nothing else is missing shows when it is opened to be written.
            continue
        with opened as store:
            found = [differences(store, model) for model in models]
            fitting = [at for at, differs in enumerate(found) if not differs]
            who = "a reader: " if settings else ""
            if not fitting:
                journal.note("wrong", f"{who}the store holds none of {len(models)} states: {'; '.join(found[-1][:3])}")
                for other in found[:-1]:
                    journal.note("wrong", f"    the state before the last operation: {'; '.join(other[:3])}")
                return
            faults = store.verify().faults
            if faults:
                journal.note("wrong", f"{who}verify finds faults: {faults[:3]}")
            # What a reader has seen must stay.
            models = models if len(fitting) == len(models) else [models[fitting[0]]]
            if examination.emptied and not settings:
                left = Model(**{**models[0].__dict__, "trash": ()})
                for wrong in reclaimed(store):
                    journal.note("wrong", wrong)
                for difference in differences(store, left)[:3]:
                    journal.note("wrong", f"after a reclaim: {difference}")
                for wrong in emptied(store, examination.place):
                    journal.note("wrong", wrong)
    journal.note("holds", examination.models.index(models[0]))
