"""Refusals change nothing. Every public call of a store, a table, the tree, a data set and a transaction is made with
every kind of wrong argument, generated from the signatures; what a refused call leaves is compared with what was there:
what the store shows, its ``seq``, and every byte on storage.

The table that most calls are about has a key, retention, and rows in memory, some of which have a version. Of each
method some calls are made, other ones each time: ``DRUMLIN_REFUSALS`` says how many (30 are some thousands in all), or
``all``. A failure names the calls and the seed, which ``DRUMLIN_SEED`` takes.
"""

import datetime as dt
import hashlib
import inspect
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import drumlin
from drumlin import col
from drumlin.tree import exists

ROWS = {"id": [7], "v": [70], "s": ["x"]}
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64()), ("s", pa.string())])


def fails(*_: Any) -> Any:
    raise ZeroDivisionError("a function of the caller's that fails")


class Odd:
    """Nothing that any call takes."""

    def __iter__(self) -> Iterator[Any]:
        yield "v"
        raise ZeroDivisionError("an iterator of the caller's that fails")


def stream() -> pa.RecordBatchReader:
    """Rows whose second batch cannot be had."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([8]), pa.array([1]), pa.array(["x"])], schema=SCHEMA)
        raise ZeroDivisionError("rows that cannot be had")

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


#: Wrong arguments of every kind; functions make those that can be used once.
WRONG: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "an object": Odd,
    "an iterator that fails": lambda: iter(Odd()),
    "a function that fails": lambda: fails,
    "-1": lambda: -1,
    "99": lambda: 99,
    "2**70": lambda: 2**70,
    "1.5": lambda: 1.5,
    "NaN": lambda: float("nan"),
    "True": lambda: True,
    "no text": lambda: "",
    "NUL": lambda: "\0",
    "a surrogate": lambda: "\ud800",
    "a path with an empty part": lambda: "a//b",
    "a slash": lambda: "/",
    "a pattern of all": lambda: "**",
    "no pattern": lambda: "[",
    "no node": lambda: "there/is/none",
    "a table": lambda: "other",
    "one of another order": lambda: "plain",
    "a node": lambda: "n/a",
    "a long text": lambda: "x" * 70_000,
    "a column": lambda: "v",
    "no column": lambda: "w",
    "a filter of no column": lambda: "w > 1",
    "no filter": lambda: "v >",
    "a filter of another type": lambda: "v > 'x'",
    "an expression of no column": lambda: col("w") > 1,
    "bytes": lambda: b"\xff",
    "an empty list": list,
    "a list of no column": lambda: ["w"],
    "a column twice": lambda: ["v", "v"],
    "a table twice": lambda: ["k", "k"],
    "a list of numbers": lambda: [1, None],
    "an empty dict": dict,
    "no column's value": lambda: {"w": 1},
    "a value that cannot be computed": lambda: {"v": "w + 1"},
    "a value of another type": lambda: {"v": "s"},
    "a value that overflows": lambda: {"v": "v * 9223372036854775807"},
    "the key's value": lambda: {"id": "v"},
    "no column renamed": lambda: {"w": "z"},
    "a column renamed to another": lambda: {"v": "s"},
    "no table's frame": lambda: {"k": {"id": [1], "w": [1]}},
    "frames of which one is wrong": lambda: {"k": ROWS, "other": {"id": ["x"]}},
    "a version that is not there": lambda: {"k": [1, 99]},
    "a version of a snapshot that is not there": lambda: {"k": 99},
    "a type that does not hold it": lambda: {"v": pa.int8()},
    "no Arrow type": lambda: {"new": "int99"},
    "a schema without columns": lambda: pa.schema([]),
    "a schema with a column twice": lambda: pa.schema([("a", pa.int8()), ("a", pa.int8())]),
    "ragged rows": lambda: {"id": [1, 2], "v": [1]},
    "rows of other columns": lambda: {"id": [1], "w": [1]},
    "rows of another type": lambda: {"id": ["x"], "v": [1], "s": ["x"]},
    "a key that is there": lambda: {"id": [4], "v": [-9], "s": ["x"]},
    "a key twice": lambda: {"id": [8, 8], "v": [1, 2], "s": ["x", "y"]},
    "a key of null": lambda: {"id": [None], "v": [1], "s": ["x"]},
    "rows with one more column": lambda: {"id": [4], "v": [-9], "s": ["x"], "more": [1]},
    "rows with one more column and a key twice": lambda: {"id": [8, 8], "v": [1, 2], "more": [1, 2]},
    "rows that cannot be had": stream,
    "rows that are no dicts": lambda: [{"id": 1}, 7],
    "a time that was not": lambda: dt.datetime(1901, 1, 1, tzinfo=dt.UTC),
    "a time without a zone": lambda: dt.datetime(2020, 1, 1),
    "a time that goes back": lambda: dt.timedelta(seconds=-1),
    "a condition that does not hold": lambda: ~exists(),
    "a slice back": lambda: slice(3, 1, -1),
}


class Call(NamedTuple):
    """One call with a wrong argument."""

    of: str
    method: str
    parameter: str
    wrong: str

    def __str__(self) -> str:
        return f"{self.of}.{self.method}({self.parameter}: {self.wrong})"


#: Sound arguments: by method and parameter, or by parameter alone.
SOUND: dict[str, Callable[[], Any]] = {
    "path": lambda: "k",
    "data": lambda: dict(ROWS),
    "rows": lambda: dict(ROWS),
    "source": lambda: dict(ROWS),
    "frames": lambda: {"k": dict(ROWS)},
    "paths": lambda: ["other"],
    "pattern": lambda: "k",
    "src": lambda: "k",
    "dst": lambda: "new",
    "versions": lambda: {"k": [2]},
    "name": lambda: "new",
    "set": lambda: {"v": "v + 1"},
    "where": lambda: "v > 0",
    "keys": lambda: [4],
    "key": lambda: 4,
    "columns": lambda: ["v"],
    "types": lambda: {"v": pa.int64()},
    "names": lambda: {"v": "z"},
    "schema": lambda: SCHEMA,
    "since": lambda: 2,
    "as_of": lambda: 2,
    "every": lambda: "5",
    "on": lambda: ["id"],
    "value": lambda: 1,
    "expected": lambda: 0,
    "payloads": lambda: {"n/a": 1},
    "message": lambda: "note",
    "query": lambda: "select 1",
    "function": lambda: lambda *_: None,
    "initial": lambda: 0,
    "callback": lambda: lambda _: None,
    "tables": lambda: ["other"],
    "tokens": list,
    "staged": list,
    "file": lambda: "nodes",
    "limit": lambda: 1,
    "Store.snapshot.versions": lambda: None,
    "Store.undrop.path": lambda: "gone",
    "Store.drop_snapshot.name": lambda: "held",
    "Store.set_retention.path": lambda: "k",
    "Store.changes.since": lambda: None,
    "Table.add_columns.columns": lambda: {"new": pa.int8()},
    "Table.create.schema": lambda: SCHEMA,
    "Table.delete_keys.keys": lambda: {"id": [4]},
    "Table.set_metadata.metadata": lambda: "note",
    "Table.set_metadata.as_of": lambda: None,
    "Table.append.schema": lambda: "strict",
    "Tree.drop_projection.name": lambda: "by-name",
    "Tree.off.name": lambda: "called",
}
#: Optional arguments that are given all the same, since the others mean nothing without.
GIVEN = {("Store", "set_retention", "keep_last"): 3, ("Table", "add_constraints", "checks"): {"positive": "v > -1"}}
#: What ends the store or the transaction, waits for others, opens a server, or compiles what is no argument.
LEFT_OUT = {"close", "ui", "refresh", "commit", "abort", "transact", "changes", "wait_for_triggers", "sql", "copy_to"}
#: They are told to stop by what a function of the caller's raises: that is no refusal.
STOPPED = {"checkpoint", "reclaim", "drop_and_reclaim", "purge", "verify", "export", "import_"}
#: A job of its own has a number before its rows are looked at, and written: what is wrong with them costs that number.
LATE = {"a key twice", "a key of null", "rows that cannot be had", "a function that fails"}


def methods_of(kind: type) -> list[tuple[str, list[str]]]:
    """The public methods that take arguments, and these."""
    found = []
    for name in sorted(dir(kind)):
        method = getattr(kind, name)
        if name.startswith("_") or not callable(method) or name in LEFT_OUT:
            continue
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        parameters = inspect.signature(method).parameters.values()
        names = [parameter.name for parameter in parameters if parameter.kind not in several]
        if len(names) > 1:
            found.append((name, names[1:]))
    return found


#: What calls are made of, and the classes that have the methods.
KINDS: dict[str, type] = {
    "Store": drumlin.Store,
    "Table": drumlin.Table,
    "Tree": drumlin.Tree,
    "Dataset": drumlin.Dataset,
    "Transaction": drumlin.Transaction,
    "Table of a transaction": drumlin.Table,
    "Tree of a transaction": drumlin.Tree,
    "Merge": drumlin.Merge,
}


def all_calls() -> list[Call]:
    calls = []
    for of, kind in KINDS.items():
        for method, parameters in methods_of(kind):
            for parameter in parameters:
                for wrong in WRONG:
                    stops = parameter == "progress" and method in STOPPED
                    if not (stops and wrong == "a function that fails"):
                        calls.append(Call(of, method, parameter, wrong))
    return calls


def arguments(call: Call) -> dict[str, Any]:
    kind = KINDS[call.of]
    given = {}
    for name, parameter in inspect.signature(getattr(kind, call.method)).parameters.items():
        own, special = f"{kind.__name__}.{call.method}.{name}", (kind.__name__, call.method, name)
        if name == call.parameter:
            given[name] = WRONG[call.wrong]()
        elif special in GIVEN:
            given[name] = GIVEN[special]
        elif parameter.default is inspect.Parameter.empty and parameter.kind not in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        ):
            sound = SOUND.get(own) or SOUND.get(name)
            if sound is not None:
                given[name] = sound()
    given.pop("self", None)
    return given


def fill(folder: Path) -> None:
    """A store with something of everything."""
    with drumlin.open(folder) as store:
        for path in ("k", "other"):
            table = store.table(path)
            table.create(SCHEMA, key=["id"])
            table.append({"id": [1, 2], "v": [10, 20], "s": ["a", "b"]})
        store.set_retention("k", keep_last=3)
        store.table("k").update({"v": "v + 1"})
        store.table("other").add_constraints(checks={"positive": "v > 0"})
        store.table("k").upsert({"id": [3], "v": [30], "s": ["c"]})
        store.snapshot("held", "k")
        store.write("plain", {"id": [1, 2], "v": [1, 2], "s": ["a", "b"]})
        store.write("sorted", {"id": [1, 2], "v": [1, 2], "s": ["a", "b"]}, sort=["v"])
        store.write("gone", {"id": [1]})
        store.drop("gone")
        store.tree.put_many({"n/a": 0, "n/b": {"x": 1}})
        store.tree.put("n/kept", 1, keep_while={"n/a": exists()})
        store.tree.projection("by-name", "n/*", key="name")


class Place:
    """A store in a folder, made again where a call that was not refused has changed it."""

    def __init__(self, filled: Path, folder: Path) -> None:
        self._filled, self._folder, self._store = filled, folder, None

    def store(self) -> drumlin.Store:
        if self._store is None:
            shutil.rmtree(self._folder, ignore_errors=True)
            shutil.copytree(self._filled, self._folder)
            self._store = drumlin.open(self._folder)
            # Rows in memory: some in a version, some in none. A process has its number from its first block on.
            self._store.table("k").upsert({"id": [4], "v": [40], "s": ["d"]})
            self._store.snapshot("second", "k")
            self._store.table("k").upsert({"id": [5], "v": [50], "s": ["e"]})
            self._store.table("other").upsert({"id": [6], "v": [60], "s": ["f"]})
            self._store.write("last", {"id": [1]})
            self._store.tree.on("n/**", lambda _: None, name="called")
        return self._store

    def leave(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def bytes(self) -> dict[str, str]:
        files = (path for path in self._folder.rglob("*") if path.is_file() and path.name != "lock")
        return {str(path.relative_to(self._folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def shown(tables: Any, tree: Any) -> dict[str, Any]:
    """What a store or a transaction shows."""
    seen: dict[str, Any] = {"nodes": [repr(entry) for entry in tree.list("**")]}
    for path in tables.tables():
        table = tables.table(path)
        versions = [(v.version, v.seq, v.kind, v.rows, v.metadata, v.snapshots) for v in table.versions()]
        rows = table.read().to_arrow()
        seen[path] = (versions, rows.to_pylist(), rows.schema, repr(table.constraints()))
    return seen


def state(place: Place) -> dict[str, Any]:
    store = place.store()
    return {
        **shown(store, store.tree),
        "seq": store.stat().seq,
        "snapshots": [(s.name, s.time, s.versions) for s in store.snapshots()],
        "trash": [(t.path, t.rows, t.time) for t in store.trash()],
        "retention": [repr(store.retention(path)) for path in ("**", "k", "other")],
        "projections": store.tree.projections(),
        "triggers": store.tree.triggers(),
        "bytes": place.bytes(),
    }


def made(call: Call, tables: Any, tree: Any, tx: Any) -> Any:
    """What the call is made of."""
    if call.of.startswith("Table"):
        return tables.table("k")
    if call.of.startswith("Tree"):
        return tree
    if call.of == "Dataset":
        return tables.scan("k")
    if call.of == "Merge":
        return tables.table("k").merge({"id": [4, 9], "v": [1, 2], "s": ["x", "y"]}, on=["id"])
    return tx if call.of == "Transaction" else tables


def drawn(call: Call, answer: Any) -> Any:
    """Does what waits until rows are asked for."""
    if isinstance(answer, drumlin.Merge):
        return (
            answer if call.of == "Merge" else answer.when_matched(update=True).when_not_matched(insert=True)
        ).execute()
    if isinstance(answer, drumlin.Result | drumlin.Dataset | drumlin.Diff):
        return answer.to_arrow()
    return answer


def refused(call: Call, tables: Any, tree: Any, tx: Any = None) -> Exception | None:
    """What the call was refused with; None if it was done."""
    try:
        drawn(call, getattr(made(call, tables, tree, tx), call.method)(**arguments(call)))
    except Exception as error:
        return error
    return None


def differing(before: dict[str, Any], after: dict[str, Any]) -> str:
    parts = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    told = []
    for name in sorted(parts):
        was, now = before.get(name), after.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            was, now = ({k: v for k, v in one.items() if two.get(k) != v} for one, two in ((was, now), (now, was)))
        told.append(f"{name}: {str(was)[:500]} -> {str(now)[:500]}")
    return "; ".join(told)


def faults_of(call: Call, place: Place) -> tuple[bool, str | None]:
    """Whether a call is refused, and what it has changed all the same."""
    store = place.store()
    before = state(place)
    if "ransaction" in call.of:
        tx = store.transaction()
        was = shown(tx, tx.tree)
        error = refused(call, tx, tx.tree, tx)
        fault = None
        if error is not None and (now := shown(tx, tx.tree)) != was:
            fault = f"the transaction shows {differing(was, now)}"
        done = False
        try:
            # After a refusal there is nothing to commit; what was done is given up.
            tx._core.abort() if error is None else tx.commit()
        except drumlin.Error as other:
            fault = f"the transaction cannot be committed: {other}"
    else:
        error, fault = refused(call, store, store.tree), None
        done = error is None
    if isinstance(error, drumlin.Internal | AssertionError):
        return True, f"{type(error).__name__}: {error}"
    if not done and fault is None:
        after = state(place)
        if call.method == "stage" and call.wrong in LATE:
            before, after = ({**of, "seq": None, "bytes": None} for of in (before, after))
        fault = differing(before, after) if before != after else None
    if done or fault is not None:
        place.leave()
    return error is not None, fault and f"{type(error).__name__} ({str(error)[:200]}): {fault}"


def test_refusals_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    each = os.environ.get("DRUMLIN_REFUSALS", "4")
    seed = int(os.environ.get("DRUMLIN_SEED", random.randrange(1 << 32)))
    some, by_method = random.Random(seed), dict[tuple[str, str], list[Call]]()
    for call in all_calls():
        by_method.setdefault((call.of, call.method), []).append(call)
    assert len(by_method) > 100
    calls = [
        call
        for of in by_method.values()
        for call in (of if each == "all" else some.sample(of, min(int(each), len(of))))
    ]
    fill(tmp_path / "filled")
    place, count, found = Place(tmp_path / "filled", tmp_path / "store"), 0, []
    for call in calls:
        was_refused, fault = faults_of(call, place)
        count += was_refused
        if fault is not None:
            found.append(f"{call}: {fault}")
    place.leave()
    report = "\n".join(found)
    assert not found, f"{len(found)} of {count} refusals changed something (DRUMLIN_SEED={seed}):\n{report}"
    # Most of what is called wrong is refused: a generator whose arguments are all taken shows nothing.
    assert count > len(calls) / 2, f"{count} of {len(calls)} calls were refused"
    print(f"{count} of {len(calls)} calls were refused, and changed nothing")
