"""Projections."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from waiting import until

import drumlin
from drumlin import P
from drumlin.tree import has_payload, payload

USERS = {
    "users/a": {"team": "x", "age": 30},
    "users/b": {"team": "x", "age": 20},
    "users/c": {"team": "y", "age": 10},
    "users/d": {"age": 1},
    "others/e": {"team": "x", "age": 5},
}


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The exceptions passed to `sys.unraisablehook`."""
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: seen.append((info.exc_type, str(info.exc_value))))
    return seen


def test_fields(store: drumlin.Store) -> None:
    store.tree.put_many(USERS)
    teams = store.tree.projection("teams", "users/*", key="payload.team", value="name")
    assert (teams.get("x"), teams.get("y"), teams.get("z"), teams.get("z", 7)) == ("a", "c", None, 7)
    assert (teams.get_all("x"), teams.get_all("z")) == (["a"], [])
    assert (len(teams), "x" in teams, "z" in teams, list(teams)) == (2, True, False, ["x", "y"])
    assert teams.items() == [("x", "a"), ("y", "c")]
    assert (teams.keys(), teams.values(), teams.seq) == (["x", "y"], ["a", "c"], store.seq)
    entry = teams.entries()[0]
    assert (entry.key, entry.path, entry.value) == ("x", "users/a", "a")
    assert repr(entry) == "ProjectionEntry(key='x', path='users/a', value='a')"
    assert repr(teams) == f"ProjectionView(2 entries, seq={store.seq})"
    assert entry == teams.entries()[0]
    # A view shows one instant; the next view shows the next.
    store.tree.delete("users/a")
    assert teams.get("x") == "a"
    assert store.tree.projection("teams").get("x") == "b"
    assert store.tree.projections() == ["teams"]


def test_bags_of_several_fields(store: drumlin.Store) -> None:
    store.tree.put_many(USERS)
    bag = store.tree.projection(
        "bag", P("*", has_payload()), key=["payload.team", "payload.age"], value=["path", "payload.age"], bag=True
    )
    assert bag.keys() == [("x", 5), ("x", 20), ("x", 30), ("y", 10)]
    assert bag.get(("x", 20)) == ["users/b", 20]
    assert ("x", 20.0) in bag
    assert ("x",) not in bag
    assert [entry.key for entry in bag.prefix("x")] == [("x", 5), ("x", 20), ("x", 30)]
    assert [entry.key for entry in bag.prefix(None, "y")] == [("y", 10)]
    assert [entry.path for entry in bag.prefix(None, "x", 20)] == ["users/b"]
    assert [entry.key[1] for entry in bag.range(("x", 10), ("y",))] == [20, 30]
    assert [entry.key[1] for entry in bag.range(("x", 10), ("x", 30))] == [20]
    assert [entry.key[1] for entry in bag.range(("x", 10), ("x", 30), include_high=True)] == [20, 30]
    assert [entry.key[1] for entry in bag.range(high=("x", 20))] == [5]
    assert [entry.key[1] for entry in bag.range(("x", 30))] == [30, 10]
    assert len(bag.range()) == len(bag) == 4
    same = store.tree.projection("same", "*/*", key="payload.team", value="name", bag=True)
    assert same.get_all("x") == ["e", "a", "b"]
    assert same.get("x") == "e"
    assert same.items() == [("x", "e"), ("x", "a"), ("x", "b"), ("y", "c")]


def test_keys_of_all_kinds(store: drumlin.Store) -> None:
    keys: list[Any] = [None, False, True, -1.5, 0, 2**64 - 1, "", "a", "ab", "b", {"a": 1}, [1, "x"], b"\0", b"\xff"]
    for at, key in enumerate(keys):
        store.tree.put(f"n/{at:02}", key)
    view = store.tree.projection("kinds", "n/*", key="payload", value="path.1")
    assert view.keys() == keys
    for at, key in enumerate(keys):
        assert view.get(key) == f"{at:02}"
    assert [entry.key for entry in view.prefix("a")] == ["a", "ab"]
    assert [entry.key for entry in view.range("a", "b")] == ["a", "ab"]
    for wrong in (float("nan"), {1}):
        with pytest.raises(drumlin.InvalidArgument, match="key"):
            view.get(wrong)


def test_a_projection_is_part_of_the_store(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.tree.projection("teams", "users/*", key="payload.team")
        store.tree.projection("fn", "users/*", key=lambda path, payload: path)
        store.tree.put_many(USERS)
    with drumlin.open(folder) as store:
        assert store.tree.projections() == ["teams"]
        assert store.tree.projection("teams").get("y") == USERS["users/c"]
        # It is replaced as a whole.
        assert store.tree.projection("teams", "others/*", key="name").items() == [("e", USERS["others/e"])]
        store.tree.drop_projection("teams")
        for call in (store.tree.projection, store.tree.drop_projection):
            with pytest.raises(drumlin.NotFound, match="projection 'teams' does not exist"):
                call("teams")


def test_functions(store: drumlin.Store, raised: list[Any]) -> None:
    store.tree.put_many(USERS)

    def key(path: str, payload: Any) -> Any:
        if payload["age"] == 10:
            raise ZeroDivisionError(path)
        return (payload["team"], payload["age"] // 10) if "team" in payload else None

    view = store.tree.projection("fn", "users/*", key=key, value=lambda path, payload: [path, payload["age"]], bag=True)
    assert view.items() == [(("x", 2), ["users/b", 20]), (("x", 3), ["users/a", 30])]
    assert set(raised) == {(ZeroDivisionError, "users/c")}
    raised.clear()
    store.tree.put("users/c", {"team": "y", "age": 11})
    store.tree.put("users/b", {"age": 11})
    assert store.tree.projection("fn").keys() == [("x", 3), ("y", 1)]
    # Invalid keys and values raise errors too.
    store.tree.projection("odd", "users/*", key=lambda path, payload: {1}, value=lambda path, payload: 1)
    assert {message for _, message in raised if "key" in message} == {
        "key: set is not a JSON value; expected None, a bool, int, float, str, list, tuple or dict with str keys "
        "(bytes can only be a whole payload)"
    }
    assert len(store.tree.projection("odd")) == 0
    # The whole payload by default.
    store.tree.projection("whole", "users/*", key=lambda path, payload: path[-1])
    assert store.tree.projection("whole").get("a") == USERS["users/a"]
    store.tree.drop_projection("whole")
    assert store.tree.projections() == ["fn", "odd"]
    with pytest.raises(drumlin.AlreadyExists, match="drop it first"):
        store.tree.projection("fn", "users/*", key="name")


def test_a_transaction_sees_its_own(store: drumlin.Store) -> None:
    store.tree.put_many(USERS)
    store.tree.projection("teams", "users/*", key="payload.team", value="name", bag=True)
    store.tree.projection("ages", "users/*", key=lambda path, payload: payload["age"])
    with store.transaction() as tx:
        tx.tree.put("users/z", {"team": "z", "age": 99})
        tx.tree.delete("users/a")
        assert tx.tree.projection("teams").items() == [("x", "b"), ("y", "c"), ("z", "z")]
        assert tx.tree.projection("ages").keys() == [1, 10, 20, 99]
        assert store.tree.projection("teams").get("z") is None
        with pytest.raises(drumlin.NotFound):
            tx.tree.projection("none")
        tx.tree.put("users/y", {"team": "y", "age": 50})
    assert store.tree.projection("teams").get_all("y") == ["c", "y"]
    assert 50 in store.tree.projection("ages")


def test_a_function_must_not_use_the_store(store: drumlin.Store, raised: list[Any]) -> None:
    store.tree.put("seen", 0)

    def key(path: str, payload: Any) -> str:
        # Reading existing nodes is harmless.
        assert store.tree.get("seen") == 0
        store.tree.put("seen", 1)
        return path

    store.tree.projection("fn", "a/*", key=key)
    store.tree.put("a/x", 1)
    with store.transaction() as tx:
        tx.tree.put("a/y", 1)
    assert {kind for kind, _ in raised} == {drumlin.InvalidArgument}
    assert "must not use the store" in raised[0][1]
    assert (len(store.tree.projection("fn")), store.tree.get("seen")) == (0, 0)


def test_functions_are_called_by_any_thread(store: drumlin.Store) -> None:
    view = store.tree.projection(
        "sum", "n/**", key=lambda path, payload: payload % 7, value=lambda path, payload: path, bag=True
    )
    assert len(view) == 0

    def work(thread: int) -> None:
        for at in range(100):
            store.tree.put(f"n/{thread}/{at}", at)
            if at % 10 == 0:
                store.transact(lambda tx: tx.tree.put(f"n/{thread}/x", len(tx.tree.projection("sum"))))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    view = store.tree.projection("sum")
    assert len(view) == 404
    for entry in view.entries():
        assert store.tree.get(entry.path) % 7 == entry.key


def test_large_commits(store: drumlin.Store, raised: list[Any]) -> None:
    def meddle(path: str, payload: Any) -> str:
        if payload == 4999:
            store.tree.put("x", 1)
        return path

    store.tree.projection("meddle", "n/*", key=meddle)
    store.tree.projection("even", "n/*", key=lambda path, payload: payload if payload % 2 == 0 else None)
    store.tree.projection("fields", "n/*", key="payload", value="name")
    store.tree.put_many({f"n/{n}": n for n in range(5000)})
    sizes = [len(store.tree.projection(name)) for name in ("meddle", "even", "fields")]
    assert sizes == [4999, 2500, 5000]
    assert {kind for kind, _ in raised} == {drumlin.InvalidArgument}
    store.tree.delete_many("n/*")
    assert [len(store.tree.projection(name)) for name in ("meddle", "even", "fields")] == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": None, "key": "name"}, "pattern is missing"),
        ({"pattern": None, "bag": True}, "pattern is missing"),
        ({"pattern": "a/*"}, "key is missing"),
        ({"pattern": "a/*", "key": "nothing"}, "'nothing' is not a field"),
        ({"pattern": "a/*", "key": []}, "needs at least one field"),
        ({"pattern": "a/*", "key": ["name", "payload."]}, "'payload.' is not a field"),
        ({"pattern": "a/*", "key": "name", "value": len}, "key must be one too"),
        ({"pattern": "a/*", "key": len, "value": "name"}, "value must be one too, not 'name'"),
        (
            {"pattern": P(payload("x") == 1, "*"), "key": "name"},
            "only the last part of the pattern may have a condition on a node",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(store: drumlin.Store, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(drumlin.InvalidArgument, match=message):
        store.tree.projection("p", **arguments)
    with pytest.raises(drumlin.InvalidArgument, match="cannot be the name of a projection"):
        store.tree.projection("", "a/*", key="name")


def test_a_function_that_holds_the_store_is_collected(folder: str) -> None:
    class Index:
        def __init__(self) -> None:
            self.store = drumlin.open(folder)
            self.store.tree.projection("p", "a/*", key=self.key)
            self.store.tree.put("a/b", 1)

        def key(self, path: str, payload: Any) -> str:
            return path

    index = Index()
    assert index.store.tree.projection("p").get("a/b") == 1
    gone = weakref.ref(index)
    del index
    assert until(lambda: gc.collect() >= 0 and gone() is None)
    with drumlin.open(folder) as store:
        assert store.tree.get("a/b") == 1


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from("abcde"), st.none() | st.integers(0, 3)), max_size=20))
def test_it_is_what_a_new_one_would_be(steps: list[tuple[str, int | None]]) -> None:
    with drumlin.open("memory://", cpu_threads=1) as store:
        store.tree.projection("fields", "n/*", key="payload", value="name", bag=True)
        store.tree.projection(
            "fn", "n/*", key=lambda path, payload: payload, value=lambda path, payload: path[2:], bag=True
        )
        model: dict[str, int] = {}
        for name, value in steps:
            if value is None:
                if model.pop(name, None) is not None:
                    store.tree.delete(f"n/{name}")
            else:
                model[name] = value
                store.tree.put(f"n/{name}", value)
            wanted = sorted((value, name) for name, value in model.items())
            for view in (store.tree.projection("fields"), store.tree.projection("fn")):
                assert view.items() == wanted
