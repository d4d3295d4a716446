"""Arguments of wrong types: every public call names the argument, with an exception that says what the caller can
do."""

import datetime as dt
import inspect
import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import drumlin

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
ROWS = {"id": [7], "s": ["x"]}


class Wrong:
    """A value that no call accepts."""

    def __bool__(self) -> bool:
        raise AssertionError("asked whether it is true")


#: For each method, valid arguments. Those named in ``ANYTHING`` accept any value.
TABLE: dict[str, dict[str, Any]] = {
    "create": {"schema": SCHEMA, "sort": ["id"], "key": (), "compression": None, "exist_ok": False},
    "write": {"data": ROWS, "sort": None, "compression": None, "coerce": False, "progress": None},
    "group_by": {"every": None, "where": None},
    "resample": {
        "every": "5m",
        "on": "id",
        "by": (),
        "origin": None,
        "closed": "left",
        "label": "left",
        "where": None,
    },
    "append": {"data": ROWS, "schema": "strict", "coerce": False, "progress": None},
    "replace": {"data": ROWS, "where": None, "schema": "strict", "coerce": False, "progress": None},
    "update": {"set": {"s": "'y'"}, "where": None, "params": None, "progress": None},
    "set_metadata": {"as_of": None},
    "merge": {"source": ROWS, "on": ["id"], "nulls_equal": False, "coerce": False, "progress": None},
    "delete": {"where": "id = 1", "params": None, "progress": None},
    "upsert": {"rows": ROWS, "schema": "strict", "coerce": False, "returning": False, "progress": None},
    "insert": {"rows": ROWS, "schema": "strict", "coerce": False, "returning": False, "progress": None},
    "increment": {"amounts": {"id": 1}, "returning": True},
    "compare_and_set": {"expected": {"s": "x"}, "new": {"s": "x"}, "returning": False},
    "add_columns": {"columns": {"new": pa.int8()}, "on": None, "using": None, "read": None, "progress": None},
    "drop_columns": {"columns": ["s"]},
    "rename_columns": {"names": {"s": "t"}},
    "widen": {"types": {"id": pa.int64()}},
    "add_constraints": {"checks": {"positive": "id > 0"}, "not_null": (), "defaults": None},
    "drop_constraints": {"checks": (), "not_null": (), "defaults": ()},
    "constraints": {"as_of": None},
    "set_ttl": {"column": "s", "after": dt.timedelta(days=1)},
    "drop_ttl": {},
    "ttl": {"as_of": None},
    "delete_keys": {"keys": [1], "returning": False, "progress": None},
    "get": {"on": None, "columns": None, "as_of": None},
    "get_many": {"keys": [1], "on": None, "columns": None, "as_of": None},
    "read": {
        "as_of": None,
        "columns": None,
        "where": None,
        "params": None,
        "limit": None,
        "tail": None,
        "rows": None,
        "native": False,
    },
    "schema": {"as_of": None},
    "diff": {"since": 0, "until": None, "columns": None, "each_version": False},
    "drop": {"missing_ok": False},
    "follow": {"since": None, "where": None, "params": None, "name": None, "keep": None},
    "on": {"callback": print, "where": None, "params": None, "name": None, "keep": None},
    "off": {"name": "nothing"},
    "drop_follower": {"name": "nothing"},
    "create_index": {
        "name": "by_s",
        "columns": ["s"],
        "where": None,
        "unique": False,
        "deferred": False,
        "progress": None,
    },
    "drop_index": {"name": "by_s"},
    "set_layout": {"sort_by": None, "z_order": None},
    "rebuild_index": {"name": "by_s", "progress": None},
    "catch_up": {"progress": None},
}
#: Methods of nodes.
TREE: dict[str, dict[str, Any]] = {
    "put": {"path": "n", "mode": None, "when": None, "keep_while": None, "ttl": None, "presence": None},
    "create": {"path": "new"},
    "update": {"path": "n"},
    "compare_and_swap": {"path": "n"},
    "put_many": {"payloads": {"n": 1}},
    "update_many": {"pattern": "n"},
    "clear_payload": {"path": "n", "when": None},
    "clear_payloads": {"pattern": "n"},
    "delete": {"path": "n", "when": None},
    "delete_many": {"pattern": "n"},
    "get": {"path": "n"},
    "node": {"path": "n"},
    "exists": {"path": "n"},
    "has_payload": {"path": "n"},
    "get_many": {"pattern": "n"},
    "nodes": {"pattern": "n"},
    "count": {"pattern": "n"},
    "list": {"pattern": "n"},
    "fold": {"pattern": "n", "function": lambda value, _path, _node: value},
    "for_each": {"pattern": "n", "function": lambda _path, _node: None},
    "map": {"pattern": "n", "function": lambda _path, _node: None},
    "filter": {"pattern": "n", "function": lambda _path, _node: None},
    "export": {"pattern": "n", "file": io.BytesIO(), "progress": None},
    "import_": {"file": io.BytesIO(), "under": None, "progress": None},
    "projection": {"name": "p", "pattern": "**", "key": "path", "value": "payload", "bag": False},
    "drop_projection": {"name": "p"},
    "on": {"pattern": "n", "callback": print, "actions": None, "priority": 0, "name": None},
    "off": {"name": "p"},
    "wait_for_triggers": {"timeout": None},
    "presence": {"name": "p", "life": None},
}
#: Methods that a store and a transaction have in common.
BOTH: dict[str, dict[str, Any]] = {
    **{name: {"path": "t", **TABLE[name]} for name in ("write", "append", "replace", "read")},
    "table": {"path": "t"},
    "tables": {"pattern": "n"},
    "write_many": {
        "frames": {"t": ROWS},
        "sort": None,
        "compression": None,
        "return_exceptions": False,
        "coerce": False,
        "progress": None,
    },
    "append_many": {
        "frames": {"t": ROWS},
        "schema": "strict",
        "return_exceptions": False,
        "coerce": False,
        "progress": None,
    },
    "scan": {
        "pattern": "t",
        "path_columns": (),
        "as_of": None,
        "columns": None,
        "where": None,
        "params": None,
        "limit": None,
    },
    "sql": {"query": "from 't'", "as_of": None, "params": None},
    "read_many": {"paths": ["t"], **TABLE["read"], "return_exceptions": False},
    "history": {"pattern": "n", "limit": None},
    "restore": {"pattern": "t", "as_of": 0},
    "copy": {"src": "t", "dst": "copy", "as_of": None, "replace": False},
    "move": {"src": "t", "dst": "moved", "replace": False},
    "drop": {"paths": "t", "missing_ok": False},
    "delete_versions": {"versions": {"t": [0]}, "missing_ok": False},
}
STORE: dict[str, dict[str, Any]] = {
    **BOTH,
    "ui": {"port": 0, "write": False, "open_browser": False},
    "snapshot": {"name": "s", "pattern": "**", "versions": None, "including": None},
    "drop_snapshot": {"name": "s"},
    "set_retention": {"path": "t", "keep_last": 1, "keep_for": None, "keep_all": False, "inherit": False},
    "retention": {"path": "t"},
    "drop_and_reclaim": {"paths": "t", "missing_ok": False, "block_grace": None, "progress": None},
    "undrop": {"path": "t", "to": None},
    "with_message": {"message": "m"},
    "transaction": {"read_only": False, "message": None},
    "transact": {"function": lambda _tx: None, "message": None},
    "changes": {"since": None},
    "copy_to": {
        "other": drumlin.open("memory://"),
        "pattern": "n",
        "versions": "all",
        "replace": False,
        "message": None,
        "progress": None,
    },
    "follow_to": {
        "target": "memory://",
        "once": True,
        "poll": None,
        "lease": True,
        "keep_log": None,
        "sweep": False,
        "target_options": None,
        "caught_up": None,
        "progress": None,
    },
    "vacuum_plan": {"dead_share_min": None, "budget": None},
    "checkpoint": {"dead_share_min": None, "budget": None, "index_rows_min": None, "progress": None},
    "reclaim": {"grace": None, "block_grace": None, "fence_idle": None, "audit": False, "progress": None},
    "purge": {"pattern": "t", "where": "a = 1", "explain": False, "progress": None},
    "verify": {"deep": False, "progress": None},
    "ticket": {"tables": ["t"], "mode": "append", "job": None, "sort": (), "life": None, "work": None},
    "stage": {"path": "t", "data": ROWS, "mode": "append", "part": None, "progress": None},
    "commit": {"tokens": [], "ticket": None, "job": None, "expected_version": None, "progress": None},
    "abort": {"staged": []},
    "sink": {"path": "t", "source": "s"},
    "view": {
        "path": "v",
        "over": "t",
        "agg": {"n": "count"},
        "path_columns": (),
        "by": "s",
        "every": "5m",
        "on": "id",
        "origin": None,
        "closed": "left",
        "label": "left",
        "where": None,
        "stale": "wait",
        "progress": None,
    },
}
OPEN: dict[str, Any] = dict.fromkeys(inspect.signature(drumlin.open).parameters)
#: They accept any value; if it is refused, then because of the value and not because of its type.
ANYTHING = {"metadata", "value", "expected", "default", "initial", "key"}


def public(kind: type) -> set[str]:
    """The methods with arguments."""
    methods = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    return {name for name, method in methods.items() if callable(method) and len(parameters(method)) > 1}


def parameters(method: Any) -> list[str]:
    several = inspect.Parameter.VAR_POSITIONAL
    return [name for name, parameter in inspect.signature(method).parameters.items() if parameter.kind != several]


#: Each of them has a type that no argument accepts.
WRONG = [Wrong(), 3 + 4j, ..., b"\xff"]


def expected_to_name(call: Callable[..., Any], arguments: dict[str, Any], name: str, wrong: object) -> str | None:
    """What is wrong with the way a call refuses an argument; None if nothing is."""
    given = {**arguments, name: wrong}
    try:
        call(**{key: value for key, value in given.items() if value is not None})
    except (TypeError, drumlin.InvalidArgument) as error:
        # Arguments of the core itself are named by a note, which a traceback shows.
        where = "\n".join([str(error), *getattr(error, "__notes__", [])])
        return None if name in where else f"{name}={wrong!r}: {type(error).__name__}: {error}"
    except Exception as error:
        return f"{name}={wrong!r}: {type(error).__name__}: {error}"
    return f"{name}={wrong!r}: taken"


def faults(of: Any, calls: dict[str, dict[str, Any]], values: dict[str, Any]) -> list[str]:
    found = []
    for method, arguments in calls.items():
        call = getattr(of, method)
        names = [name for name in parameters(call) if name != "self"]
        assert set(arguments) <= set(names), (method, names)
        required = {name: values[name] for name in names if name in values and name not in arguments}
        left_out = set(names) - set(arguments) - ANYTHING - set(required)
        assert not left_out, (method, left_out)
        for name in arguments:
            # Bytes may be a key.
            none = WRONG[:-1] if name == "keys" else WRONG
            answers = [expected_to_name(call, {**arguments, **required}, name, wrong) for wrong in none]
            found += [f"{type(of).__name__}.{method}: {fault}" for fault in answers if fault is not None]
    return found


@pytest.fixture
def filled(store: drumlin.Store) -> drumlin.Store:
    store.write("t", pa.table(ROWS, schema=SCHEMA), sort=["id"])
    store.tree.put("n", 1)
    return store


VALUES = {"value": 1, "expected": 1, "key": 1, "initial": 0, "metadata": "note"}


def test_a_store_names_arguments(filled: drumlin.Store) -> None:
    assert public(drumlin.Store) <= set(STORE)
    assert faults(filled, STORE, VALUES) == []


def test_a_table_names_arguments(filled: drumlin.Store) -> None:
    assert public(drumlin.Table) <= set(TABLE)
    assert faults(filled.table("t"), TABLE, VALUES) == []


def test_the_tree_names_arguments(filled: drumlin.Store) -> None:
    assert public(drumlin.Tree) <= set(TREE)
    assert faults(filled.tree, TREE, VALUES) == []


def test_a_transaction_names_arguments(filled: drumlin.Store) -> None:
    assert public(drumlin.Transaction) - set(BOTH) <= {"abort", "require"}
    # A refused call leaves it usable.
    tx = filled.transaction()
    assert faults(tx, BOTH, VALUES) == []
    assert faults(tx.table("t"), TABLE, VALUES) == []
    assert faults(tx, {"require": {"presence": filled.tree.presence()}}, VALUES) == []
    with pytest.raises(drumlin.Abort):
        tx.abort()


def test_open_names_arguments() -> None:
    given = {**OPEN, "uri": "memory://"}
    found = [expected_to_name(drumlin.open, given, name, wrong) for name in OPEN for wrong in WRONG]
    assert [fault for fault in found if fault is not None] == []


def test_salvage_names_arguments() -> None:
    names = inspect.signature(drumlin.salvage).parameters
    arguments = {**dict.fromkeys(names), "store": "/nowhere/old", "new": "/nowhere/new"}
    found = [expected_to_name(drumlin.salvage, arguments, name, wrong) for name in names for wrong in WRONG]
    assert [fault for fault in found if fault is not None] == []
