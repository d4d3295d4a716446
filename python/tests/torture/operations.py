"""Random operations, and how they are applied to a store."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

import drumlin

from .history import short
from .model import Model, Operation, Rows, rows

NODES = ("n/a", "n/b", "n/b/x", "n/b/y", "n/c")
TABLES = ("t/0", "t/1", "t/2")
KEYED = ("k/0", "k/1")
SNAPSHOTS = ("s0", "s1", "s2")
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
#: How often each operation occurs.
WEIGHTS = {
    "put": 6, "swap": 2, "delete": 2,
    "write": 4, "append": 7, "delete_rows": 4, "delete_versions": 3,
    "create": 2, "upsert": 6, "insert": 3, "delete_keys": 3,
    "snapshot": 2, "drop_snapshot": 1, "drop": 2, "undrop": 2, "transaction": 5,
    "restore": 3, "copy": 2, "move": 2, "update": 3, "merge": 3, "purge": 2,
    "checkpoint": 3, "reclaim": 3, "reopen": 1,
}  # fmt: skip
#: Rows of a call: usually few, sometimes enough for a block of its own.
SIZES = (1, 1, 3, 10, 40, 300, 2500)
STEPS = ("put", "delete", "write", "append", "delete_rows", "upsert", "delete_keys")


def draw(rng: random.Random, name: str, big: int = 1) -> Operation:
    """A random operation of a kind; ``big`` multiplies the rows."""
    first, tag = rng.randrange(60), f"{rng.randrange(10_000):04}"
    count = rng.choice(SIZES) * big
    match name:
        case "put":
            return [name, rng.choice(NODES), tag * rng.choice([1, 10, 1000])]
        case "swap":
            return [name, rng.choice(NODES), rng.choice(["other", tag]), tag]
        case "delete":
            return [name, rng.choice(NODES)]
        case "write" | "append":
            return [name, rng.choice(TABLES), first, count, tag]
        case "delete_rows":
            return [name, rng.choice(TABLES), first, first + rng.choice([1, 5, 50, 5000])]
        case "update":
            return [name, rng.choice(TABLES + KEYED), first, first + rng.choice([1, 5, 50, 5000]), tag]
        case "merge":
            return [name, rng.choice(KEYED), first, count, tag]
        case "purge":
            return [name, rng.randint(2, 30), rng.randrange(2)]
        case "delete_versions":
            return [name, rng.choice(TABLES), sorted(rng.sample(range(6), rng.randint(1, 3)))]
        case "create":
            return [name, rng.choice(KEYED)]
        case "upsert" | "insert":
            return [name, rng.choice(KEYED), first if name == "upsert" else rng.randrange(10**6), count, tag]
        case "delete_keys":
            return [name, rng.choice(KEYED), first, rng.choice([1, 5, 200])]
        case "snapshot" | "drop_snapshot":
            return [name, rng.choice(SNAPSHOTS)]
        case "drop":
            return [name, sorted(rng.sample(TABLES + KEYED, rng.randint(1, 2)))]
        case "undrop":
            return [name, rng.choice(TABLES + KEYED)]
        case "restore":
            return [name, rng.choice(TABLES), rng.randrange(4)]
        case "copy" | "move":
            return [name, *rng.sample(rng.choice([TABLES, TABLES, KEYED]), 2)]
        case "transaction":
            return [name, [draw(rng, rng.choice(STEPS), big) for _ in range(rng.randint(2, 4))]]
    return [name]


def series(rng: random.Random, count: int, weights: dict[str, int] = WEIGHTS, big: int = 1) -> list[Operation]:
    """Random operations, most of which make sense where they occur."""
    model, found = Model(), []
    for path in TABLES[:2]:
        found.append(["write", path, 0, rng.choice(SIZES) * big, "first"])
    found += [["create", KEYED[0]], ["upsert", KEYED[0], 0, 30, "first"]]
    for operation in found:
        model = _behind(model, operation)
    names, shares = list(weights), list(weights.values())
    while len(found) < count:
        operation = draw(rng, rng.choices(names, shares)[0], big)
        if operation[0] == "swap" and rng.random() < 0.7:
            operation[2] = model.nodes.get(operation[1])
        after = model.after(operation)
        # Only a few of those that must be refused.
        if isinstance(after, Model) or (after is not None and rng.random() < 0.3):
            found.append(operation)
            model = _behind(model, operation)
    return found


def _behind(model: Model, operation: Operation) -> Model:
    after = model.after(operation)
    return after if isinstance(after, Model) else model


def frame(found: Rows) -> pa.Table:
    ids, texts = zip(*found, strict=True) if found else ((), ())
    return pa.table([pa.array(ids, pa.int64()), pa.array(texts, pa.string())], schema=SCHEMA)


def perform(store: drumlin.Store, model: Model, operation: Operation) -> dict[str, int] | None:
    """Does an operation; returns the numbers of the versions that it reported."""
    name, *arguments = operation
    match name:
        case "swap":
            store.tree.compare_and_swap(*arguments)
        case "delete_versions":
            path, places = arguments
            store.delete_versions({path: model.numbers(path, places)})
        case "create":
            store.table(arguments[0]).create(SCHEMA, key=["id"])
        case "snapshot":
            return dict(store.snapshot(*arguments).versions)
        case "drop":
            store.drop(arguments[0], missing_ok=True)
        case "restore":
            path, place = arguments
            store.restore(path, sorted(model.tables[path].versions)[place])
        case "copy":
            store.copy(*arguments)
        case "move":
            store.move(*arguments)
        case "drop_snapshot" | "undrop" | "checkpoint":
            getattr(store, name)(*arguments)
        case "reclaim":
            # What could not be deleted stays listed; the last reclaim of a trial must have no failures.
            store.reclaim()
        case "update":
            path, low, high, tag = arguments
            store.table(path).update({"text": f"'{tag}'"}, where=f"id >= {low} and id < {high}")
        case "merge":
            merge = store.table(arguments[0]).merge(frame(rows(*arguments[1:])), on=["id"])
            merge.when_matched(update=True).when_not_matched(insert=True).execute()
        case "purge":
            divisor, remainder = arguments
            receipt = store.purge("**", f"id % {divisor} = {remainder}")
            assert receipt.proof.matching == 0, receipt.to_json()
        case "insert":
            store.table(arguments[0]).insert(frame(rows(*arguments[1:])))
        case "transaction":
            with store.transaction() as tx:
                for step in arguments[0]:
                    _do(tx, step)
        case _:
            _do(store, operation)
    return None


def _do(to: Any, operation: Operation) -> None:
    """Operations common to stores and transactions."""
    name, path, *arguments = operation
    match name:
        case "put":
            to.tree.put(path, *arguments)
        case "delete":
            to.tree.delete(path)
        case "write" | "append" | "upsert":
            getattr(to.table(path), name)(frame(rows(*arguments)))
        case "delete_rows":
            to.table(path).delete(f"id >= {arguments[0]} and id < {arguments[1]}")
        case "delete_keys":
            to.table(path).delete_keys(list(range(arguments[0], arguments[0] + arguments[1])))


def differences(store: drumlin.Store, model: Model, whole: bool = True) -> list[str]:
    """How a store differs from what it must hold; with ``whole``, all versions are read, else the newest. Failures of
    storage to read are raised."""
    found: list[str] = []

    def same(what: str, expected: Any, got: Any) -> None:
        if expected != got:
            found.append(f"{what}: expected {short(expected)}, got {short(got)}")

    def same_rows(path: str, expected: Rows, as_of: int | str | None = None) -> None:
        try:
            got = store.read(path, as_of=as_of).to_arrow()
        except (drumlin.Unavailable, drumlin.Closed):
            raise
        except drumlin.Error as error:
            found.append(f"{path} as of {as_of}: {type(error).__name__}: {error}")
            return
        if not got.equals(frame(expected)):
            same(f"{path} as of {as_of}", expected, tuple(zip(*got.to_pydict().values(), strict=True)))

    same("nodes", model.nodes, store.tree.get_many("n/**"))
    same("tables", sorted(model.newest), sorted(store.tables()))
    same("snapshots", sorted(model.snapshots), [snapshot.name for snapshot in store.snapshots()])
    same("trash", sorted(path for path, _ in model.trash), sorted(item.path for item in store.trash()))
    there = set(store.tables())
    for path, table in model.tables.items():
        if path in there:
            same(
                f"versions of {path}",
                sorted(table.versions),
                [version.version for version in store.table(path).versions()],
            )
            same_rows(path, table.newest)
            for number, held in table.versions.items() if whole else ():
                same_rows(path, held, number)
    for path, keyed in model.keyed.items():
        if path in there:
            same_rows(path, keyed.newest)
            asked = [*sorted(keyed.rows)[:20], 10**7]
            same(
                f"look-ups in {path}",
                [n in keyed.rows for n in asked],
                store.table(path).get_many(asked).found.to_pylist(),
            )
            for number, held in keyed.told.items() if whole else ():
                same_rows(path, held, number)
    for name, tables in model.snapshots.items() if whole else ():
        for path, held in tables.items():
            same_rows(path, held, name)
    return found
