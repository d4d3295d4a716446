"""Makes a failing trial small: removes what is not needed for the failure, by delta debugging, for a limited time.

A trial that is killed after some milliseconds, or whose processes race, does not fail every time, so each candidate
is run a few times; what is left failed at least once, in the same way as the whole trial.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Generic, TypeVar

from . import together
from .crash import Spec

T = TypeVar("T")
TRIES = 2


def signature(wrong: list[str]) -> str:
    """The kind of a failure: its text, without what differs from run to run."""
    text = re.sub(r"^(life \d+|after all faults|at the end): ", "", wrong[0])
    text = re.sub(r"/\S+|\[.*?\]|'[^']*'|\d+", "#", text)
    return " ".join(text.split()[:8])


def fewer(items: list[T], fails: Callable[[list[T]], bool], deadline: float) -> list[T]:
    """A short part of ``items`` that still fails: none of its items can be removed, unless time is up."""
    parts = 2
    while len(items) >= 2 and time.monotonic() < deadline:
        size = -(-len(items) // parts)
        for at in range(0, len(items), size):
            left = items[:at] + items[at + size :]
            if left and time.monotonic() < deadline and fails(left):
                items, parts = left, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(parts * 2, len(items))
    return items


def simpler(spec: Spec) -> Iterator[Spec]:
    """Trials with one circumstance removed."""
    if any(spec.clocks):
        yield replace(spec, clocks=())
    if any(spec.network.values()):
        yield replace(spec, network={})
    for at, blow in enumerate(spec.blows):
        if blow is not None:
            yield replace(spec, blows=(*spec.blows[:at], None, *spec.blows[at + 1 :]))
    for name in spec.settings:
        yield replace(spec, settings={other: value for other, value in spec.settings.items() if other != name})


def shrink(spec: Spec, wrong: list[str], run: Callable[[Spec], list[str]], seconds: float) -> tuple[Spec, list[str]]:
    """A small trial that fails as ``spec`` did with ``wrong``, and how it fails."""
    search = Search(wrong, run, time.monotonic() + seconds)
    spec = spec.only(fewer(list(spec.operations), lambda some: search.fails(spec.only(some)), search.deadline))
    return search.simplest(spec, simpler), search.last


def circumstances(
    spec: together.Spec, wrong: list[str], run: Callable[[together.Spec], list[str]], seconds: float
) -> tuple[together.Spec, list[str]]:
    """A trial of many processes that still fails, with fewer of them, fewer attacks, fewer kinds of calls."""
    search = Search(wrong, run, time.monotonic() + seconds)
    return search.simplest(spec, together.simpler), search.last


class Search(Generic[T]):
    """Runs candidates, and knows when to stop."""

    def __init__(self, wrong: list[str], run: Callable[[T], list[str]], deadline: float) -> None:
        self.wanted, self.last, self.run, self.deadline = signature(wrong), wrong, run, deadline

    def fails(self, candidate: T) -> bool:
        """Whether it fails in the same way as the whole trial."""
        for _ in range(TRIES):
            if time.monotonic() > self.deadline:
                break
            found = self.run(candidate)
            if found and signature(found) == self.wanted:
                self.last = found
                return True
        return False

    def simplest(self, spec: T, simpler: Callable[[T], Iterator[T]]) -> T:
        progress = True
        while progress:
            progress = False
            for candidate in simpler(spec):
                if self.fails(candidate):
                    spec, progress = candidate, True
                    break
        return spec
