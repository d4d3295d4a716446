"""Makes a failing trial small: takes out what it fails without, by delta debugging, for a bounded time.

A trial that is killed after some milliseconds does not fail every time, so each candidate is run a few times; what is
left failed at least once, in the way the whole trial did.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from .crash import Spec

T = TypeVar("T")
TRIES = 2


def signature(wrong: list[str]) -> str:
    """What kind of failure it is: its words, without what differs from run to run."""
    text = re.sub(r"^(life \d+|after all faults|at the end): ", "", wrong[0])
    text = re.sub(r"/\S+|\[.*?\]|'[^']*'|\d+", "#", text)
    return " ".join(text.split()[:8])


def fewer(items: list[T], fails: Callable[[list[T]], bool], deadline: float) -> list[T]:
    """A short part of ``items`` that still fails: none of its items can be left out, unless time is up."""
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
    """Trials with one circumstance less."""
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
    """A small trial that fails as ``spec`` did with ``wrong``; and how."""
    deadline = time.monotonic() + seconds
    wanted, last = signature(wrong), wrong

    def fails(candidate: Spec) -> bool:
        nonlocal last
        for _ in range(TRIES):
            found = run(candidate)
            if found and signature(found) == wanted:
                last = found
                return True
            if time.monotonic() > deadline:
                break
        return False

    kept = fewer(list(spec.operations), lambda some: fails(spec.only(some)), deadline)
    spec = spec.only(kept)
    progress = True
    while progress and time.monotonic() < deadline:
        progress = False
        for candidate in simpler(spec):
            if time.monotonic() < deadline and fails(candidate):
                spec, progress = candidate, True
                break
    return spec, last
