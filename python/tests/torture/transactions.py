"""Is a history of transactions on lists strictly serializable? Decided from what they read, as in Elle.

A transaction appends unique values to lists and reads whole lists. A list read shows the order of all appends to it
up to then. From that follow edges between transactions: one's value comes before the other's (*ww*), one read what
the other appended (*wr*), one read a list that did not yet contain the other's value (*rw*); and one ended before the
other began (*time*). A cycle is a violation: no order of the transactions explains it.

Also reported: values that nobody appended, that a refused transaction appended, that occur twice, or that occur in
contradictory orders.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise
from typing import Any

from .history import OK, REFUSED, Operation

Edges = dict[int, dict[int, str]]


def violations(history: list[Operation]) -> list[str]:
    """Intents are ``{"steps": [["append", list, value] | ["read", list], ...]}``; the result is the list of what the
    reads returned, in order."""
    appended: dict[tuple[str, Any], int] = {}
    for at, operation in enumerate(history):
        for step in operation.intent["steps"]:
            if step[0] == "append":
                appended[step[1], step[2]] = at
    wrong, orders = _orders(history, appended)
    if wrong:
        return wrong
    edges = _edges(history, appended, orders)
    cycle = shortest_cycle(edges)
    if cycle is None:
        return []
    told = [f"{history[at]}\n        before, by {edges[at][to]}," for at, to in pairwise(cycle)]
    return ["a cycle of transactions:\n    " + "\n    ".join([*told, "the first again"])]


def reads(operation: Operation) -> list[tuple[str, list[Any], list[Any]]]:
    """The lists that a transaction read: name, what others had appended, what it had previously appended itself."""
    if operation.outcome != OK:
        return []
    own: dict[str, list[Any]] = {}
    found, answers = [], iter(operation.result)
    for step in operation.intent["steps"]:
        if step[0] == "append":
            own.setdefault(step[1], []).append(step[2])
        else:
            values, mine = next(answers), own.get(step[1], [])
            cut = len(values) - len(mine)
            found.append((step[1], values[:cut] if cut >= 0 else values, values[cut:] if cut >= 0 else []))
            if found[-1][2] != mine:
                # Its own appends are not after the others'; nothing explains that.
                found[-1] = (step[1], values, ["not its own", *mine])
    return found


def _orders(history: list[Operation], appended: dict[tuple[str, Any], int]) -> tuple[list[str], dict[str, list[Any]]]:
    """The longest order read of each list, and what is already wrong."""
    wrong: list[str] = []
    longest: dict[str, list[Any]] = {}
    everything = [(operation, read) for operation in history for read in reads(operation)]
    for operation, (name, values, mine) in everything:
        if mine[:1] == ["not its own"]:
            wrong.append(f"{name}: a transaction does not see its own appends last: {operation}")
        if len(set(values)) < len(values):
            wrong.append(f"{name}: a value is there twice: {operation}")
        for value in values:
            source = appended.get((name, value))
            if source is None:
                wrong.append(f"{name}: {value!r} was never appended: {operation}")
            elif history[source].outcome == REFUSED:
                wrong.append(f"{name}: {value!r} was refused and is there: {operation}\n    {history[source]}")
        if len(values) > len(longest.get(name, [])):
            longest[name] = values
    for operation, (name, values, _) in everything:
        if values != longest.get(name, [])[: len(values)]:
            wrong.append(f"{name}: two reads contradict each other: {operation}\n    and {longest[name]}")
    return wrong[:5], longest


def _edges(history: list[Operation], appended: dict[tuple[str, Any], int], orders: dict[str, list[Any]]) -> Edges:
    edges: Edges = {at: {} for at in range(len(history))}

    def add(before: int, after: int, why: str) -> None:
        if before != after:
            edges[before].setdefault(after, why)

    unread: dict[str, list[int]] = {}
    for (name, value), at in appended.items():
        if history[at].outcome == OK and value not in set(orders.get(name, [])):
            unread.setdefault(name, []).append(at)
    writers = {name: [appended[name, value] for value in order] for name, order in orders.items()}
    for name, order in writers.items():
        for before, after in pairwise(order):
            add(before, after, f"ww of {name}")
    for at, operation in enumerate(history):
        for name, values, _ in reads(operation):
            order, count = writers.get(name, []), len(values)
            if count:
                add(order[count - 1], at, f"wr of {name}")
            if count < len(order):
                add(at, order[count], f"rw of {name}")
            for writer in unread.get(name, []):
                add(at, writer, f"rw of {name}")
    for name, others in unread.items():
        for after in others:
            for before in writers.get(name, [])[-1:]:
                add(before, after, f"ww of {name}")
    _add_time(history, edges)
    return edges


def _add_time(history: list[Operation], edges: Edges) -> None:
    """Edges from transactions that ended before another began; those implied by others are left out."""
    moments = []
    for at, operation in enumerate(history):
        if operation.outcome == REFUSED:
            continue
        moments.append((operation.begin, 1, at))
        if not math.isinf(operation.end):
            moments.append((operation.end, 0, at))
    newest: set[int] = set()
    before: dict[int, set[int]] = {}
    for _, begins, at in sorted(moments):
        if begins:
            before[at] = set(newest)
            for other in newest:
                edges[other].setdefault(at, "time")
        else:
            newest -= before[at]
            newest.add(at)


def shortest_cycle(edges: Edges) -> list[int] | None:
    """A shortest cycle through some node of the smallest component, as a list whose last item is its first."""
    knots = [knot for knot in components(edges) if len(knot) > 1]
    if not knots:
        return None
    knot = min(knots, key=len)
    best: list[int] | None = None
    for start in sorted(knot)[:200]:
        parents: dict[int, int] = {}
        queue = deque([start])
        while queue and start not in parents:
            at = queue.popleft()
            for to in edges[at]:
                if to in knot and to not in parents:
                    parents[to] = at
                    queue.append(to)
        cycle = [start, parents[start]]
        while cycle[-1] != start:
            cycle.append(parents[cycle[-1]])
        if best is None or len(cycle) < len(best):
            best = cycle[::-1]
    return best


def components(edges: Edges) -> list[set[int]]:
    """The strongly connected components (Tarjan's, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    waiting: list[int] = []
    found: list[set[int]] = []
    placed: set[int] = set()
    for root in edges:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        waiting.append(root)
        path = [(root, iter(edges[root]))]
        while path:
            at, after = path[-1]
            for to in after:
                if to not in index:
                    index[to] = low[to] = len(index)
                    waiting.append(to)
                    path.append((to, iter(edges[to])))
                    break
                if to not in placed:
                    low[at] = min(low[at], index[to])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[at])
                if low[at] == index[at]:
                    cut = waiting.index(at)
                    found.append(set(waiting[cut:]))
                    placed |= found[-1]
                    del waiting[cut:]
    return found
