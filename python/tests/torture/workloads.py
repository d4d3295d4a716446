"""What concurrent clients do to one store, so that the answers show whether it keeps its promises (see checker.py).

Registers and lists come in several forms, because the store keeps them by different means: payloads of nodes, rows by
key, rows of a table. An intent is chosen first and holds every value that may be written; ``perform`` executes it and
returns the answer.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

import drumlin

from .checker import ACCOUNTS, BALANCE

REGISTERS = ("node0", "node1", "row0", "row1")
LISTS = ("table0", "table1", "node0", "keyed0")
PAIRS = 2
PAIR_OF_INTS = pa.schema([("id", pa.int64()), ("value", pa.int64())])
MAINTENANCE = ("checkpoint", "reclaim", "snapshot")
#: The kinds of client operations, and how often they occur.
KINDS = {"register": 30, "list": 40, "bank": 15, "pair": 12, "maintenance": 3}


def prepare(store: drumlin.Store) -> None:
    """The initial store: registers are 0, lists empty, accounts have their balance, pairs are on."""
    store.tree.put_many({f"registers/{name}": 0 for name in REGISTERS if name.startswith("node")})
    store.tree.put_many({f"lists/{name}": [] for name in LISTS if name.startswith("node")})
    store.tree.put_many({f"pairs/{pair}/{side}": 1 for pair in range(PAIRS) for side in range(2)})
    store.table("registers/rows").create(PAIR_OF_INTS, key=["id"])
    store.table("registers/rows").upsert(
        [{"id": int(name[3:]), "value": 0} for name in REGISTERS if name.startswith("row")]
    )
    for name in LISTS:
        if name.startswith("table"):
            store.table(f"lists/{name}").create(pa.schema([("value", pa.int64())]))
        elif name.startswith("keyed"):
            store.table(f"lists/{name}").create(PAIR_OF_INTS, key=["id"])
    store.table("accounts").create(PAIR_OF_INTS, key=["id"])
    store.table("accounts").upsert([{"id": account, "value": BALANCE} for account in range(ACCOUNTS)])
    store.table("transfers").create(pa.schema([("id", pa.string()), ("parts", pa.list_(pa.int64()))]))


class Intents:
    """Chooses what a client does next."""

    def __init__(self, rng: random.Random, who: int, reads_only: bool, kinds: tuple[str, ...]) -> None:
        self.rng = rng
        self.who = who
        self.reads_only = reads_only
        self.kinds = [kind for kind in kinds if kind != "maintenance" or not reads_only]
        self.unique = 0

    def value(self) -> int:
        """A value that no other client writes."""
        self.unique += 1
        return self.who * 1_000_000 + self.unique

    def draw(self) -> dict[str, Any]:
        [kind] = self.rng.choices(self.kinds, [KINDS[kind] for kind in self.kinds])
        return {"kind": kind, **getattr(self, f"_{kind}")()}

    def _register(self) -> dict[str, Any]:
        key = self.rng.choice(REGISTERS)
        action = "read" if self.reads_only else self.rng.choice(["read", "read", "write", "swap"])
        return {"key": key, "action": action, "value": self.value(), "expected": None}

    def _list(self) -> dict[str, Any]:
        steps: list[Any] = []
        for _ in range(self.rng.choice([1, 1, 2, 3, 4])):
            name = self.rng.choice(LISTS)
            if self.reads_only or self.rng.random() < 0.5:
                steps.append(["read", name])
            else:
                steps.append(["append", name, self.value()])
        return {"steps": steps}

    def _bank(self) -> dict[str, Any]:
        if self.reads_only or self.rng.random() < 0.4:
            return {"action": "snapshot"}
        source, target = self.rng.sample(range(ACCOUNTS), 2)
        return {"action": "transfer", "id": str(self.value()), "from": source, "to": target, "amount": self.value() % 9}

    def _pair(self) -> dict[str, Any]:
        action = "snapshot" if self.reads_only else self.rng.choice(["snapshot", "off", "off", "on"])
        return {"action": action, "pair": self.rng.randrange(PAIRS), "side": self.rng.randrange(2)}

    def _maintenance(self) -> dict[str, Any]:
        return {"action": self.rng.choice(MAINTENANCE), "name": f"s{self.value()}"}


def perform(store: drumlin.Store, intent: dict[str, Any], reader: bool) -> Any:
    """Executes an intent; returns what the history needs to know about the answer. A reader refreshes first."""
    if reader:
        store.refresh()
    match intent["kind"]:
        case "register":
            return _register(store, intent)
        case "list":
            return _list(store, intent["steps"])
        case "bank":
            return _bank(store, intent)
        case "pair":
            return _pair(store, intent)
    return _maintain(store, intent)


def _register(store: drumlin.Store, intent: dict[str, Any]) -> Any:
    key, action, value = intent["key"], intent["action"], intent.get("value")
    path, row = f"registers/{key}", int(key[-1])
    if key.startswith("node"):
        match action:
            case "read":
                return store.tree.get(path)
            case "write":
                store.tree.put(path, value)
                return None
        try:
            store.tree.compare_and_swap(path, intent["expected"], value)
        except drumlin.ConditionFailed:
            return False
        return True
    match action:
        case "read":
            found = store.table("registers/rows").get(row)
            assert found is not None
            return found["value"]
        case "write":
            store.table("registers/rows").upsert({"id": row, "value": value})
            return None

    def swap(tx: drumlin.Transaction) -> bool:
        held = tx.table("registers/rows").get(row)
        if held is None or held["value"] != intent["expected"]:
            return False
        tx.table("registers/rows").upsert({"id": row, "value": value})
        return True

    return store.transact(swap)


def _list(store: drumlin.Store, steps: list[Any]) -> list[list[int]]:
    if all(step[0] == "read" for step in steps):
        with store.transaction(read_only=True) as tx:
            return [read_list(tx, step[1]) for step in steps]
    if len(steps) == 1 and steps[0][1].startswith("table"):
        store.append(f"lists/{steps[0][1]}", {"value": [steps[0][2]]})
        return []

    def work(tx: drumlin.Transaction) -> list[list[int]]:
        found = []
        for what, name, *values in steps:
            if what == "read":
                found.append(read_list(tx, name))
            elif name.startswith("table"):
                tx.append(f"lists/{name}", {"value": values})
            elif name.startswith("node"):
                tx.tree.put(f"lists/{name}", [*tx.tree.get(f"lists/{name}"), *values])
            else:
                tx.table(f"lists/{name}").insert({"id": len(read_list(tx, name)), "value": values[0]})
        return found

    return store.transact(work)


def read_list(source: drumlin.Store | drumlin.Transaction, name: str) -> list[int]:
    """A whole list, in its order."""
    if name.startswith("node"):
        return list(source.tree.get(f"lists/{name}"))
    found: list[int] = source.read(f"lists/{name}").to_arrow()["value"].to_pylist()
    return found


def _bank(store: drumlin.Store, intent: dict[str, Any]) -> Any:
    if intent["action"] == "snapshot":
        rows = store.read("accounts").to_arrow().to_pydict()
        return {str(account): balance for account, balance in zip(rows["id"], rows["value"], strict=True)}
    source, target, amount = intent["from"], intent["to"], intent["amount"]

    def transfer(tx: drumlin.Transaction) -> None:
        held = {account: tx.table("accounts").get(account) for account in (source, target)}
        rows = [
            {"id": source, "value": held[source]["value"] - amount},
            {"id": target, "value": held[target]["value"] + amount},
        ]
        tx.table("accounts").upsert(rows)
        tx.append("transfers", pa.table({"id": [intent["id"]], "parts": [[source, target, amount]]}))

    store.transact(transfer)
    return None


def transfers(store: drumlin.Store) -> list[list[Any]]:
    """All completed transfers."""
    rows = store.read("transfers").to_arrow().to_pylist()
    return [[row["id"], *row["parts"]] for row in rows]


def _pair(store: drumlin.Store, intent: dict[str, Any]) -> Any:
    folder, side = f"pairs/{intent['pair']}", intent.get("side", 0)
    mine, other = f"{folder}/{side}", f"{folder}/{1 - side}"
    match intent["action"]:
        case "snapshot":
            return list(store.tree.get_many(f"{folder}/*").values())
        case "on":
            store.tree.put(mine, 1)
            return None

    def turn_off(tx: drumlin.Transaction) -> None:
        if tx.tree.get(other) == 1:
            tx.tree.put(mine, 0)

    store.transact(turn_off)
    return None


def _maintain(store: drumlin.Store, intent: dict[str, Any]) -> None:
    match intent["action"]:
        case "checkpoint":
            store.checkpoint()
        case "reclaim":
            store.reclaim()
        case "snapshot":
            store.snapshot(intent["name"])
            store.drop_snapshot(intent["name"])
