"""Is a history of one register linearizable? The search of Wing and Gong, with a memo.

The search looks for an order of the operations in which each answer is what a register would answer, and in which an
operation that ended before another began comes first. A step of the search applies one operation that may come next:
one whose call is not later than the answer of another operation that has not been applied yet. Dead ends (the set of
the operations applied, and the value then) are not visited again.

Values are unique. So an unsure write was applied if its value was seen, and then before the end of the first call
that saw it. One whose value was never seen is left out, and so are the swaps that may have been refused because of
it.
"""

from __future__ import annotations

import math
from typing import Any

from .history import OK, REFUSED, Operation

#: After this many steps, the search gives up; an undecided history does not count as a violation.
STEPS_MAX = 400_000
_IMPOSSIBLE = object()


class Undecided(Exception):
    """The search took too long."""


def violations(history: list[Operation], initial: Any = 0) -> list[str]:
    """Checks each register by itself: all are linearizable if each is. Intents are
    ``{"key", "action": "read" | "write" | "swap", "value", "expected"}``; a swap returns whether it was done."""
    by_key: dict[str, list[Operation]] = {}
    for operation in history:
        if operation.outcome != REFUSED:
            by_key.setdefault(operation.intent["key"], []).append(operation)
    found = []
    for key, operations in sorted(by_key.items()):
        try:
            if not linearizable(operations, initial):
                guilty = shortest_prefix(operations, initial)
                told = "\n    ".join(map(str, guilty[-12:]))
                found.append(f"register {key}: no order explains its first {len(guilty)} operations:\n    {told}")
        except Undecided:
            print(f"    register {key}: {len(operations)} operations are too many to decide", flush=True)
    return found


def shortest_prefix(operations: list[Operation], initial: Any) -> list[Operation]:
    """The operations up to the first answer that cannot be explained; those still running then are unsure."""
    ends = sorted(operation.end for operation in operations if not math.isinf(operation.end))
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if linearizable(_until(operations, ends[middle]), initial):
            low = middle + 1
        else:
            high = middle
    return sorted(_until(operations, ends[high]), key=lambda operation: operation.end)


def _until(operations: list[Operation], at: float) -> list[Operation]:
    """The history as it looked at a given time."""
    begun = (operation for operation in operations if operation.begin <= at)
    return [
        operation
        if operation.end <= at
        else Operation(operation.client, operation.begin, math.inf, "unsure", operation.intent)
        for operation in begun
    ]


def linearizable(operations: list[Operation], initial: Any) -> bool:
    """Whether an order explains all answers."""
    ordered = sorted(_bounded(operations), key=lambda operation: operation.begin)
    everything = (1 << len(ordered)) - 1
    seen: set[tuple[int, Any]] = set()
    stack = [(0, initial)]
    steps = 0
    while stack:
        done, value = stack.pop()
        if done == everything:
            return True
        steps += 1
        if steps > STEPS_MAX:
            raise Undecided
        # The last one pushed is tried first: the operation that was answered first.
        for at in sorted(_next(ordered, done), key=lambda at: -ordered[at].end):
            after = _apply(ordered[at], value)
            if after is _IMPOSSIBLE:
                continue
            state = (done | 1 << at, after)
            if state not in seen:
                seen.add(state)
                stack.append(state)
    return False


def _bounded(operations: list[Operation]) -> list[Operation]:
    """The operations that were applied, each with an end."""
    sure = [operation for operation in operations if operation.outcome == OK]
    unsure = {o.intent["value"]: o for o in operations if o.outcome != OK and o.intent["action"] != "read"}
    first_seen: dict[Any, float] = {}
    seen = [(o.result, o.end) for o in sure if o.intent["action"] == "read"]
    seen += [(o.intent["expected"], o.end) for o in sure if o.intent["action"] == "swap" and o.result]
    while seen:
        value, end = seen.pop()
        operation = unsure.get(value)
        if operation is not None and end < first_seen.get(value, math.inf):
            first_seen[value] = end
            if operation.intent["action"] == "swap":
                seen.append((operation.intent["expected"], end))
    applied = [
        Operation(o.client, o.begin, first_seen[value], OK, o.intent, True)
        for value, o in unsure.items()
        if value in first_seen
    ]
    unseen = min((o.begin for value, o in unsure.items() if value not in first_seen), default=math.inf)
    told = [o for o in sure if o.intent["action"] != "swap" or o.result or o.end < unseen]
    return told + applied


def _next(ordered: list[Operation], done: int) -> list[int]:
    """The operations that may come next."""
    first_end, may = math.inf, []
    for at in range(_lowest_clear(done), len(ordered)):
        if done >> at & 1:
            continue
        if ordered[at].begin > first_end:
            break
        may.append(at)
        first_end = min(first_end, ordered[at].end)
    return [at for at in may if ordered[at].begin <= first_end]


def _lowest_clear(mask: int) -> int:
    return (~mask & (mask + 1)).bit_length() - 1


def _apply(operation: Operation, value: Any) -> Any:
    """The register's value after an operation, or that the operation cannot have had this answer."""
    intent = operation.intent
    match intent["action"]:
        case "read":
            return value if operation.result == value else _IMPOSSIBLE
        case "write":
            return intent["value"]
        case "swap":
            if bool(operation.result) != (value == intent["expected"]):
                return _IMPOSSIBLE
            return intent["value"] if operation.result else value
    raise AssertionError(intent)
