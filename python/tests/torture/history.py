"""What concurrent clients did: operations with the time of the call, the time of the answer, and the answer.

Each client writes a journal, with a line before and a line after each call, so that a killed client leaves no doubt
about what it had begun. Times are from ``CLOCK_MONOTONIC``, which all processes of a machine share. An operation
whose answer never came is *unsure*: it may have been applied at any time after its call, or never. A refused one was
not applied, and is kept only to check that nobody has seen what it would have written.
"""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: The outcome of an operation.
OK, UNSURE, REFUSED = "ok", "unsure", "refused"


@dataclass
class Operation:
    """One call of one client. ``intent`` is the request, ``result`` the answer."""

    client: str
    begin: float
    end: float
    outcome: str
    intent: dict[str, Any]
    result: Any = None

    def __str__(self) -> str:
        end = "..." if math.isinf(self.end) else f"{self.end:.4f}"
        return f"[{self.begin:.4f} {end}] {self.client} {self.outcome} {short(self.intent)} -> {short(self.result)}"


def short(value: Any) -> str:
    """A value as JSON, cut to one line."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 160 else f"{text[:100]} ... {text[-50:]}"


@dataclass
class Journal:
    """The writing side. Each line is one ``write``, so that a kill leaves only whole lines."""

    path: Path
    fd: int = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def note(self, *line: Any) -> None:
        os.write(self.fd, (json.dumps(line) + "\n").encode())

    def begin(self, intent: dict[str, Any]) -> int:
        self.count += 1
        self.note("begin", self.count, time.monotonic(), intent)
        return self.count

    def end(self, number: int, outcome: str, result: Any) -> None:
        self.note("end", number, time.monotonic(), outcome, result)


def lines(path: Path) -> list[list[Any]]:
    """The whole lines of a journal."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("]")]


def wrongs(path: Path) -> list[str]:
    """What a client itself found wrong."""
    return [line[1] for line in lines(path) if line[0] == "wrong"]


def operations(path: Path, client: str) -> list[Operation]:
    """The operations of one client's journal."""
    found: dict[int, Operation] = {}
    for what, *rest in lines(path):
        if what == "begin":
            number, at, intent = rest
            found[number] = Operation(client, at, math.inf, UNSURE, intent)
        elif what == "end":
            number, at, outcome, result = rest
            operation = found[number]
            operation.outcome, operation.result = outcome, result
            if outcome != UNSURE:
                operation.end = at
    return list(found.values())
