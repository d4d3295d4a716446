"""Checks the history of a whole run: registers, lists, banks and pairs, each kind by its invariant.

- Registers are linearizable (registers.py); transactions on lists are strictly serializable (transactions.py).
- A bank's balances have the same total in every snapshot; at the end each acknowledged transfer was done once, each
  refused one never, and each unsure one once or never.
- Of a pair, at least one is on in every snapshot, although each transaction that turns one off reads both: write skew
  breaks this.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from . import registers, transactions
from .history import OK, REFUSED, Operation

#: Balances at the beginning.
ACCOUNTS, BALANCE = 6, 100


def violations(history: list[Operation], transfers: list[list[Any]] | None = None) -> list[str]:
    """What is wrong with a history, in words. ``transfers`` are those found at the end: id, from, to, amount."""
    by_kind: dict[str, list[Operation]] = {}
    for operation in history:
        by_kind.setdefault(operation.intent["kind"], []).append(operation)
    found = registers.violations(by_kind.get("register", []))
    found += transactions.violations(by_kind.get("list", []))
    found += bank(by_kind.get("bank", []), transfers)
    found += pairs(by_kind.get("pair", []))
    return found


def bank(history: list[Operation], transfers: list[list[Any]] | None) -> list[str]:
    found = []
    asked = {operation.intent["id"]: operation for operation in history if operation.intent["action"] == "transfer"}
    last: dict[str, int] | None = None
    for operation in history:
        if operation.outcome == OK and operation.intent["action"] == "snapshot":
            last = operation.result
            if sum(operation.result.values()) != ACCOUNTS * BALANCE:
                found.append(f"bank: the total is not {ACCOUNTS * BALANCE}: {operation}")
    if transfers is None or last is None:
        return found
    counts = Counter(transfer[0] for transfer in transfers)
    for number, operation in asked.items():
        count = counts.pop(number, 0)
        if count > 1 or (operation.outcome == OK and count != 1) or (operation.outcome == REFUSED and count):
            found.append(f"bank: a transfer was done {count} times: {operation}")
    if counts:
        found.append(f"bank: transfers that nobody asked for: {sorted(counts)}")
    balances = {str(account): BALANCE for account in range(ACCOUNTS)}
    for _, source, target, amount in transfers:
        balances[str(source)] -= amount
        balances[str(target)] += amount
    if balances != last:
        found.append(f"bank: the transfers make {balances}, the balances at the end are {last}")
    return found


def pairs(history: list[Operation]) -> list[str]:
    return [
        f"pair: both are off: {operation}"
        for operation in history
        if operation.outcome == OK and operation.intent["action"] == "snapshot" and not any(operation.result)
    ]
