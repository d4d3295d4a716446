"""Nodes: payloads, conditions, patterns, what changed, exporting and importing."""

from __future__ import annotations

import collections
import enum
import io
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import drumlin
from drumlin import P, tree
from drumlin.tree import (
    all_,
    any_,
    children,
    children_version,
    deep,
    exists,
    has_payload,
    has_table,
    name,
    not_,
    payload,
    payload_version,
    regex,
)

# Payloads.


class Color(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (True, True),
        (0, 0),
        (-(2**63), -(2**63)),
        (2**64 - 1, 2**64 - 1),
        (1.0, 1.0),
        ("ü", "ü"),
        ((1, (2, ())), [1, [2, []]]),
        ({"b": 1, "a": {"d": None, "c": [False]}}, {"a": {"c": [False], "d": None}, "b": 1}),
        (collections.OrderedDict(b=1), {"b": 1}),
        (Color.RED, 3),
        (b"\0\xff", b"\0\xff"),
        (bytearray(b"xy"), b"xy"),
        (memoryview(b"abcdef")[::2], b"ace"),
        (np.float64(1.5), 1.5),
        (np.str_("x"), "x"),
        (np.bytes_(b"x"), b"x"),
    ],
    # Without the places of objects in memory, which differ from run to run.
    ids=lambda value: re.sub(r" at 0x\w+", "", repr(value)),
)
def test_payloads_come_back_as_plain_values(store: drumlin.Store, given: object, stored: object) -> None:
    store.tree.put("a", given)
    for back in (store.tree.get("a"), store.tree.node("a").payload, store.tree.get_many("a")["a"]):  # type: ignore[union-attr]
        assert back == stored
        assert type(back) is type(stored)
        assert repr(back) == repr(stored)


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


LOOP: list[object] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (float("nan"), "payload: JSON has no nan"),
        ([1, {"a": float("-inf")}], r"payload\[1\]\['a'\]: JSON has no -inf"),
        (2**64, "payload: 18446744073709551616 is out of range; integers have at most 64 bits"),
        ({"a": -(2**63) - 1}, r"payload\['a'\]: -9223372036854775809 is out of range"),
        (10**5000, "payload: the <class 'int'> is out of range"),
        ({"a": {1: 2}}, r"payload\['a'\]: key 1 is not a str"),
        ({None: 2}, "payload: key None is not a str"),
        ("\ud800", "payload: the str has half a surrogate pair"),
        ({"\udfff": 1}, "payload: the str has half a surrogate pair"),
        ({1, 2}, "payload: set is not a JSON value"),
        ([object()], r"payload\[0\]: object is not a JSON value"),
        ([b"x"], r"payload\[0\]: bytes is not a JSON value; .*bytes can only be a whole payload"),
        ({"x": bytearray(1)}, r"payload\['x'\]: bytearray is not a JSON value"),
        (np.int64(1), "payload: int64 is not a JSON value"),
        (nested(128), "nested more than 127 levels deep"),
        (LOOP, "nested more than 127 levels deep"),
        (b"x" * ((1 << 20) + 1), "1048577 bytes"),
        (["x" * (1 << 20)], "expected at most 1048576"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_payload_is_refused_by_name(store: drumlin.Store, given: object, message: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.tree.put("a", given),
        lambda: store.tree.update_many("**", given),
    ]
    for call in calls:
        with pytest.raises(drumlin.InvalidArgument, match=message):
            call()
    with pytest.raises(drumlin.InvalidArgument), store.transaction() as tx:
        tx.tree.put("a", given)
    assert not store.tree.exists("a")


def test_the_deepest_payload_comes_back(store: drumlin.Store) -> None:
    store.tree.put("a", nested(127))
    assert store.tree.get("a") == nested(127)


def test_payloads_of_many_are_named(store: drumlin.Store) -> None:
    with pytest.raises(drumlin.InvalidArgument, match=r"payload of 'b'\[0\]: set is not a JSON value"):
        store.tree.put_many({"a": 1, "b": [{1}]})
    with pytest.raises(TypeError, match="expected a dict of paths and payloads, not a list"):
        store.tree.put_many([("a", 1)])  # type: ignore[arg-type]
    assert len(store.tree.put_many({})) == 0
    assert [change.path for change in store.tree.put_many(collections.UserDict({"a": 1, "b": 2}))] == ["a", "b"]
    assert store.tree.list("**")[0].payload == 1


# Operations on nodes.


def test_put_tells_what_changed(store: drumlin.Store) -> None:
    change = store.tree.put("a/b", {"n": 1})
    assert change.before is None
    assert (change.after.payload, change.after.payload_version, change.after.has_table) == ({"n": 1}, 1, False)  # type: ignore[union-attr]
    change = store.tree.put("a/b", 2)
    assert (change.before.payload, change.after.payload, len(change.indirect)) == ({"n": 1}, 2, 0)  # type: ignore[union-attr]
    assert change.after == store.tree.node("a/b")
    assert change.after.seq == store.seq  # type: ignore[union-attr]
    assert repr(change.after) == (
        "Node(payload=2, payload_version=2, has_table=False, children=0, children_version=0, seq=2)"
    )
    assert repr(change) == f"Change(before={change.before!r}, after={change.after!r}, indirect=Changes(0))"
    node = store.tree.node("a")
    assert node is not None
    assert (node.payload, node.children, node.children_version) == (None, 1, 1)
    assert store.tree.node("none") is None
    assert (store.tree.has_payload("a"), store.tree.has_payload("a/b"), store.tree.has_payload("none")) == (
        False,
        True,
        False,
    )


def test_puts_on_conditions(store: drumlin.Store) -> None:
    store.tree.create("a", 1)
    with pytest.raises(drumlin.AlreadyExists, match="a node at 'a' already exists"):
        store.tree.create("a", 2)
    with pytest.raises(drumlin.NotFound, match="no node at 'b'"):
        store.tree.update("b", 2)
    assert store.tree.update("a", 2).after.payload == 2  # type: ignore[union-attr]
    assert store.tree.put("a", 3, mode="update").before.payload == 2  # type: ignore[union-attr]
    with pytest.raises(drumlin.InvalidArgument, match="mode='old' is not known; expected 'create', 'update' or None"):
        store.tree.put("a", 4, mode="old")  # type: ignore[arg-type]
    store.tree.put("a", 4, when=payload() == 3)
    with pytest.raises(
        drumlin.ConditionFailed, match="the condition on 'a' does not hold: its payload, version 4, is 4"
    ):
        store.tree.put("a", 5, when=payload() == 3)
    store.tree.put("b", 1, when=exists(False))
    with pytest.raises(drumlin.ConditionFailed):
        store.tree.put("b", 1, when=exists(False))
    with pytest.raises(TypeError, match="expected a condition made with drumlin.tree, not a bool"):
        store.tree.put("b", 1, when=True)  # type: ignore[arg-type]
    store.tree.compare_and_swap("a", 4, "x")
    with pytest.raises(drumlin.ConditionFailed):
        store.tree.compare_and_swap("a", 4, "y")
    with pytest.raises(drumlin.NotFound):
        store.tree.compare_and_swap("c", 4, "y")
    with pytest.raises(drumlin.InvalidArgument, match="expected: set"):
        store.tree.compare_and_swap("a", {4}, "y")
    assert store.tree.get_many("*") == {"a": "x", "b": 1}


def test_deletes_tell_what_went_along(store: drumlin.Store) -> None:
    store.tree.put_many({"a": 1, "a/b/c": 2, "a/d": 3})
    with pytest.raises(drumlin.ConditionFailed):
        store.tree.delete("a", when=payload() == 2)
    change = store.tree.delete("a", when=payload() == 1)
    assert (change.before.payload, change.after) == (1, None)  # type: ignore[union-attr]
    assert [(c.path, c.before.payload, c.after, c.cause) for c in change.indirect] == [  # type: ignore[union-attr]
        ("a/b/c", 2, None, "above"),
        ("a/d", 3, None, "above"),
    ]
    assert repr(change.indirect) == "Changes(2: 'a/b/c', 'a/d')"
    assert store.tree.list() == []


def test_changes_of_many(store: drumlin.Store) -> None:
    store.tree.put("n/0", "old")
    changes = store.tree.put_many({f"n/{n}": n for n in range(7)})
    assert len(changes) == 7
    assert bool(changes)
    assert repr(changes) == "Changes(7: 'n/0', 'n/1', 'n/2', 'n/3', 'n/4', ...)"
    first = next(iter(changes))
    assert (first.path, first.before.payload, first.after.payload, first.cause) == ("n/0", "old", 0, "asked")  # type: ignore[union-attr]
    assert first == next(iter(changes))
    assert [change.path for change in changes] == [f"n/{n}" for n in range(7)]
    assert repr(first).startswith("NodeChange(path='n/0', before=Node(payload='old'")
    assert [c.path for c in store.tree.update_many(P("n", payload() > 4), "big")] == ["n/5", "n/6"]
    assert [c.path for c in store.tree.clear_payloads(P("n", payload() == "big"))] == ["n/5", "n/6"]
    assert store.tree.clear_payload("n/4").after is None
    with pytest.raises(drumlin.ConditionFailed):
        store.tree.clear_payload("n/3", when=payload() == 4)
    with pytest.raises(drumlin.NotFound):
        store.tree.clear_payload("n/4")
    assert [c.path for c in store.tree.delete_many("n/[0-2]")] == []
    assert [c.path for c in store.tree.delete_many(P("n", regex("^[0-2]$")))] == ["n/0", "n/1", "n/2"]
    assert store.tree.get_many("**") == {"n/3": 3}
    # They keep the earlier state alive.
    assert len(list(changes)) == 7


def test_nodes_that_live_on_others(store: drumlin.Store) -> None:
    store.tree.put("sessions/1", "here")
    store.tree.put("locks/a", 1, keep_while={"sessions/1": exists()})
    store.tree.put("locks/b", 1, keep_while=[("sessions/1", payload() == "here"), ("locks/a", exists())])
    with pytest.raises(
        drumlin.ConditionFailed, match="'locks/c' cannot be kept while a condition on 'sessions/2' holds"
    ):
        store.tree.put("locks/c", 1, keep_while={"sessions/2": exists()})
    change = store.tree.put("sessions/1", "away")
    assert [(c.path, c.cause) for c in change.indirect] == [("locks/b", "keep_while")]
    change = store.tree.delete("sessions/1")
    assert [(c.path, c.cause) for c in change.indirect] == [("locks/a", "keep_while")]
    store.tree.put("locks/a", 1, keep_while={"x": exists(False)})
    store.tree.put("locks/a", 2, keep_while={})
    assert len(store.tree.put("x", 1).indirect) == 0
    with pytest.raises(TypeError):
        store.tree.put("locks/a", 2, keep_while={"x": 1})  # type: ignore[dict-item]


def test_reading_by_pattern(store: drumlin.Store) -> None:
    store.tree.put_many({"a/x": 1, "a/y": 2, "b/x": 3})
    store.write("a/z", {"n": [1]})
    assert store.tree.get_many("a/*") == {"a/x": 1, "a/y": 2}
    nodes = store.tree.nodes("a/*")
    assert list(nodes) == ["a/x", "a/y", "a/z"]
    assert [node.has_table for node in nodes.values()] == [False, False, True]
    assert (store.tree.count("**"), store.tree.count(P(deep(), has_payload()))) == (6, 3)
    assert store.tree.get("a/z", 5) == 5
    assert store.tree.fold("**", lambda total, path, node: total + (node.payload or 0), 0) == 6
    assert store.tree.map("*/x", lambda path, node: (path, node.payload)) == [("a/x", 1), ("b/x", 3)]
    assert list(store.tree.filter("**", lambda path, node: node.children)) == ["a", "b"]
    seen: list[str] = []
    store.tree.for_each("a/**", lambda path, node: seen.append(path))
    assert seen == ["a/x", "a/y", "a/z"]
    # A function may change nodes; it does not see its own changes.
    store.tree.for_each("a/x", lambda path, node: store.tree.put("a/x2", 1))
    store.tree.for_each("*/*", lambda path, node: None if node.has_table else store.tree.delete(path))
    assert store.tables("**") == ["a/z"]
    assert store.tree.list(P(deep(), has_table()))[0].path == "a/z"
    with pytest.raises(ZeroDivisionError):
        store.tree.fold("**", lambda value, path, node: 1 // 0, 0)


# Patterns and conditions.


def test_patterns_of_parts_are_those_of_text() -> None:
    for made, text in (
        (P("prices", tree.any(), name("A*")), "prices/*/A*"),
        (P("prices") / tree.any() / "A*", "prices/*/A*"),
        (P("prices", P("*/A*")), "prices/*/A*"),
        (name("prices") / P(tree.any()) / "A*", "prices/*/A*"),
        ("prices" / P(deep()), "prices/**"),
        (deep() / P("x?"), "**/x?"),
        (P("a/b", "c"), "a/b/c"),
    ):
        assert made == P(text)
        assert hash(made) == hash(P(text))
        assert (str(made), repr(made)) == (text, f"P('{text}')")
    assert P("a") != P("b")
    assert P("a") != "a"
    assert str(P("a", payload("b") > 1)) == "a/{payload('b') > 1}"


@pytest.mark.parametrize(
    "text",
    [
        "P('a', has_payload() & (payload('x.y') == 'z'), '**', ~exists(False))",
        "P(name('A*') | regex('^x'), has_table(False))",
        "P('a', (children() > 2) & (payload_version() != 1) & (children_version() <= 3))",
        "P(payload('tags').contains('new'), payload(0, 'a', 1) >= 2.5)",
        "P(name('**'), payload() == None, path('a/**') & ~(name('b') | name('c')))",
        "P(all_(), any_())",
    ],
)
def test_what_is_shown_makes_the_same(text: str) -> None:
    made = eval(text, {**vars(tree), "P": P})
    assert repr(made) == text
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert repr(again) == text


def test_conditions_find_nodes(store: drumlin.Store) -> None:
    store.tree.put_many(
        {
            "n/int": {"n": 1, "tags": ["a", "b"], "x.y": 1},
            "n/float": {"n": 1.0, "tags": []},
            "n/big": {"n": 2**64 - 1, "deep": {"list": [{"x": "ü"}]}},
            "n/text": "hello world",
            "n/bytes": b"\0hello",
            "n/null": None,
            "n/list": [1, 2],
            "n/int/child": 1,
        }
    )
    store.write("n/table", {"x": [1]})
    store.tree.put("n/text", "hello world")

    def found(condition: tree.Condition) -> set[str]:
        return {path.removeprefix("n/") for path in store.tree.nodes(P("n", condition))}

    every = {"int", "float", "big", "text", "bytes", "null", "list", "table"}
    for condition, wanted in (
        (payload("n") == 1, {"int", "float"}),
        (payload("n") != 1, {"big"}),
        (payload("n") > 1, {"big"}),
        (payload("n") >= 1, {"int", "float", "big"}),
        (payload("n") < 1.5, {"int", "float"}),
        (payload("n") <= 0, set()),
        (payload("n") == 2**64 - 1, {"big"}),
        (payload("deep.list.0.x") == "ü", {"big"}),
        (payload("deep", "list", 0, "x") == "ü", {"big"}),
        (payload("x.y") == 1, set()),
        (payload("x.y", *[]) == 1, set()),
        (payload("tags").contains("a"), {"int"}),
        (payload().contains("hello"), {"text"}),
        (payload().contains(b"hello"), {"bytes"}),
        (payload().contains("n"), {"int", "float", "big"}),
        (payload() == b"\0hello", {"bytes"}),
        (payload() == [1, 2], {"list"}),
        (payload() == None, {"null"}),  # noqa: E711
        (payload("tags") == [], {"float"}),
        (has_payload(), every - {"table"}),
        (has_payload(False), {"table"}),
        (has_table(), {"table"}),
        (has_table(False), every - {"table"}),
        (exists(), every),
        (exists(False), set()),
        (children() > 0, {"int"}),
        (children() == 0, every - {"int"}),
        (children_version() == 1, {"int"}),
        (payload_version() == 2, {"text"}),
        (payload_version() != 1, {"text", "table"}),
        (name("*t"), {"int", "float", "text", "list"}),
        (name("t?xt"), {"text"}),
        (regex("^.{3}$"), {"int", "big"}),
        (tree.path("n/b*"), {"big", "bytes"}),
        (name("t*") & has_table(), {"table"}),
        (name("big") | name("int") | has_table(), {"big", "int", "table"}),
        (~name("*t*") & has_payload(), {"big", "null"}),
        (not_(has_payload()), {"table"}),
        (all_(name("b*"), payload("n") > 0), {"big"}),
        (any_(name("b*"), name("n*")), {"big", "bytes", "null"}),
        (all_(), every),
        (any_(), set()),
    ):
        assert found(condition) == wanted, condition


def test_conditions_on_nodes_above(store: drumlin.Store) -> None:
    store.tree.put_many({"a": {"on": True}, "a/x": 1, "b": {"on": False}, "b/x": 2})
    assert store.tree.get_many(P(payload("on") == True, "x")) == {"a/x": 1}  # noqa: E712
    assert store.tree.count(P(payload("on") == False, deep())) == 1  # noqa: E712


def test_chains_stay_flat(store: drumlin.Store) -> None:
    store.tree.put_many({f"n{n}": n for n in range(300)})
    chain = payload() == 0
    for n in range(1, 200):
        chain = chain | (payload() == n)
    assert store.tree.count(P(chain)) == 200
    deep_one = has_payload()
    for _ in range(40):
        deep_one = ~(~deep_one & exists())
    with pytest.raises(drumlin.InvalidArgument, match="nested|recursion"):
        store.tree.count(P(deep_one))


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: bool(has_payload()), TypeError, "combine with &, | and ~"),
        (lambda: bool(payload("a")), TypeError, "compare it"),
        (lambda: bool(children()), TypeError, "compare it"),
        (lambda: P(), drumlin.InvalidArgument, "the pattern has 0 parts"),
        (lambda: P("a//b"), drumlin.InvalidArgument, "pattern ''"),
        (lambda: P(3), TypeError, "a part of a pattern must be a str, a condition, deep.* not an int"),
        (lambda: P("a") / 3, TypeError, "unsupported operand"),
        (lambda: has_payload() & 3, TypeError, "unsupported operand"),
        (lambda: all_(3), TypeError, "expected a condition made with drumlin.tree, not an int"),
        (lambda: name("a/b"), drumlin.InvalidArgument, "more than one name"),
        (lambda: name(3), TypeError, "a name must be a str"),
        (lambda: regex("("), drumlin.InvalidArgument, "unclosed group"),
        (lambda: exists(1), TypeError, "exists takes True or False, not an int"),
        (lambda: payload("a") == float("inf"), drumlin.InvalidArgument, r"payload\('a'\): JSON has no inf"),
        (lambda: payload(1.5), TypeError, "float"),
        (lambda: children() < -1, drumlin.InvalidArgument, "children.. < -1: out of range"),
        (lambda: children() < "x", TypeError, "str"),
        (lambda: hash(payload("a")), TypeError, "unhashable"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_everything_that_takes_a_pattern_takes_both(store: drumlin.Store) -> None:
    store.write_many({"a/x": {"n": [1]}, "a/y": {"n": [1]}, "b": {"n": [1]}})
    pattern = P("a", tree.any())
    assert store.tables(pattern) == ["a/x", "a/y"]
    assert store.snapshot("s", pattern).versions == {"a/x": 0, "a/y": 0}
    for call in (lambda: store.snapshot("t", P("a", has_table())), lambda: store.drop(P("a", has_table()))):
        with pytest.raises(drumlin.InvalidArgument, match="here a pattern looks at names only"):
            call()
    assert store.drop([pattern, "b"]).paths == ["a/x", "a/y", "b"]
    for take in (
        store.tree.list,
        store.tree.nodes,
        store.tree.count,
        store.tree.get_many,
        store.tree.delete_many,
        store.tree.clear_payloads,
    ):
        with pytest.raises(TypeError, match="expected a pattern .a str or a drumlin.P., not an int"):
            take(3)  # type: ignore[operator]
        with pytest.raises(drumlin.InvalidArgument, match="pattern 'a//b'"):
            take("a//b")  # type: ignore[operator]
    with pytest.raises(TypeError, match="expected a pattern"):
        store.drop([3])  # type: ignore[list-item]


NAMES = st.sampled_from(["a", "b", "ab", "ü"])
PARTS = st.lists(st.sampled_from(["a", "b", "a*", "?", "*", "**", "ü"]), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(paths=st.sets(st.lists(NAMES, min_size=1, max_size=4).map("/".join), min_size=1), parts=PARTS)
def test_parts_find_what_their_text_finds(paths: set[str], parts: list[str]) -> None:
    with drumlin.open("memory://", cpu_threads=1) as store:
        store.tree.put_many(dict.fromkeys(paths, 1))
        text = "/".join(parts)
        conditions = P(*(name(part) if part != "**" else deep() for part in parts))
        assert list(store.tree.nodes(P(text))) == list(store.tree.nodes(text)) == list(store.tree.nodes(P(*parts)))
        assert list(store.tree.nodes(conditions)) == list(store.tree.nodes(text))


# Files.


def test_exported_nodes_come_back(store: drumlin.Store, tmp_path: Path) -> None:
    store.tree.put_many({"a": {"ü": [1.5]}, "b/c": b"\0\xff", "d": None})
    store.tree.put("e", 1, keep_while={"a": exists()})
    store.write("t", {"n": [1]})
    steps: list[tuple[int, ...]] = []
    assert store.tree.export("**", tmp_path / "nodes", progress=lambda *step: steps.append(step)) == 4
    assert len(steps) == 4
    assert len((tmp_path / "nodes").read_text().splitlines()) == 4
    file = io.BytesIO()
    assert store.tree.export(P(deep(), has_payload()), file) == 4
    assert file.getvalue() == (tmp_path / "nodes").read_bytes()
    with drumlin.open("memory://") as other:
        other.tree.put("d", 1)
        report = other.tree.import_(str(tmp_path / "nodes"))
        assert (report.created, report.updated) == (3, 1)
        assert repr(report) == "ImportReport(created=3, updated=1)"
        assert other.tree.get_many("**") == store.tree.get_many("**")
        file.seek(0)
        other.tree.import_(file, under="x/y")
        assert other.tree.get("x/y/b/c") == b"\0\xff"
        assert [change.path for change in other.tree.delete("x/y/a").indirect] == ["x/y/e"]
        assert not file.closed


def test_files_that_fail(store: drumlin.Store, tmp_path: Path) -> None:
    store.tree.put_many({f"n/{n:05}": "x" * 100 for n in range(10_000)})
    with pytest.raises(drumlin.InvalidArgument, match="line 2"):
        store.tree.import_(io.BytesIO(b'{"path":"z","payload":1}\n{"path":"y"}\n'))
    assert not store.tree.exists("z")
    with pytest.raises(FileNotFoundError):
        store.tree.import_(tmp_path / "none")
    with pytest.raises(TypeError, match="bytes-like object|must be str, not bytes|string argument expected"):
        store.tree.export("**", io.StringIO())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="open it with mode 'rb'"):
        store.tree.import_(io.StringIO("{}"))  # type: ignore[arg-type]

    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            raise ZeroDivisionError("full")

    with pytest.raises(ZeroDivisionError, match="full"):
        store.tree.export("**", Full())  # type: ignore[arg-type]

    def refuse(*_: object) -> None:
        raise ZeroDivisionError("stop")

    with pytest.raises(ZeroDivisionError, match="stop"):
        store.tree.export("**", io.BytesIO(), progress=refuse)

    class Drips(io.BytesIO):
        """Reads and writes a few bytes at a time."""

        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 7))

        def write(self, data: object) -> int:
            return super().write(bytes(data)[:1000])  # type: ignore[call-overload]

    drips = Drips()
    store.tree.export("n/0000*", drips)
    drips.seek(0)
    with drumlin.open("memory://") as other:
        other.tree.import_(drips)
        assert other.tree.get_many("**") == store.tree.get_many("n/0000*")
