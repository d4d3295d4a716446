"""Triggers."""

from __future__ import annotations

import datetime as dt
import gc
import subprocess
import sys
import textwrap
import threading
import weakref
from functools import partial
from typing import Any

import pytest
from waiting import until

import drumlin
from drumlin import Event, P
from drumlin.tree import exists, payload


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The exceptions passed to `sys.unraisablehook`."""
    seen: list[Any] = []
    monkeypatch.setattr(
        sys, "unraisablehook", lambda info: seen.append((info.exc_type, str(info.exc_value), info.object))
    )
    return seen


def test_a_callback_gets_what_happened(store: drumlin.Store) -> None:
    events: list[Event] = []
    name = store.tree.on("config/**", events.append)
    before = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
    store.tree.put("config/a", {"n": 1})
    store.tree.put("config/a", 2)
    store.tree.put("other", 1)
    store.tree.put("config/b", 1, keep_while={"config/a": exists()})
    store.tree.clear_payloads("config/none")
    store.tree.delete("config")
    assert store.tree.wait_for_triggers()
    assert [(event.action, event.path, event.payload, event.cause) for event in events] == [
        ("create", "config/a", {"n": 1}, "asked"),
        ("update", "config/a", 2, "asked"),
        ("create", "config/b", 1, "asked"),
        ("delete", "config/a", None, "above"),
        ("delete", "config/b", None, "above"),
    ]
    first, second, *_, last = events
    assert (first.before, first.after.payload) == (None, {"n": 1})  # type: ignore[union-attr]
    assert second.before == first.after
    assert (second.after.payload_version, last.before.payload, last.after) == (2, 1, None)  # type: ignore[union-attr]
    assert second.seq == first.seq + 1
    assert before < first.time <= second.time
    assert (first.trigger, first.kind) == (name, None)
    assert repr(second) == f"Event(path='config/a', action='update', payload=2, cause='asked', seq={second.seq})"
    assert store.tree.triggers() == [name]
    store.tree.off(name)
    store.tree.put("config/a", 3)
    assert store.tree.wait_for_triggers(10)
    assert len(events) == 5
    with pytest.raises(drumlin.NotFound, match=f"trigger '{name}' does not exist"):
        store.tree.off(name)
    assert store.tree.triggers() == []


def test_which_and_in_what_order(store: drumlin.Store) -> None:
    told: list[str] = []
    store.tree.on("a/*", lambda event: told.append(f"low {event.action}"), actions=["create", "delete"])
    store.tree.on(P("a", payload() > 5), lambda event: told.append(f"high {event.payload}"), priority=1)
    with store.transaction() as tx:
        tx.tree.put("a/x", 1)
        tx.tree.put("a/x", 6)
        tx.tree.put("a/y", 7)
        tx.tree.delete("a/x")
    store.tree.wait_for_triggers()
    # A deleted node is passed as it was before.
    assert told == ["low create", "high 6", "high 7", "low create", "high None", "low delete"]


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"actions": ["made"]}, drumlin.InvalidArgument, "action 'made' is not known"),
        ({"actions": 5}, TypeError, "actions must be a list"),
        ({"name": ""}, drumlin.InvalidArgument, "cannot be the name of a trigger"),
        (
            {"pattern": P(payload("x") == 1, "*")},
            drumlin.InvalidArgument,
            "only the last part of the pattern may have a condition on a node",
        ),
        ({"pattern": 3}, TypeError, "expected a pattern"),
        ({"priority": 2**40}, OverflowError, "int"),
        ({"callback": "x"}, TypeError, "a callback must be a function of an event, not a str"),
    ],
)
def test_what_makes_no_sense_is_refused(
    store: drumlin.Store, arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        store.tree.on(**{"pattern": "**", "callback": print, **arguments})
    assert store.tree.triggers() == []


def test_what_a_callback_raises_is_kept(store: drumlin.Store, raised: list[Any]) -> None:
    def fail(event: Event) -> None:
        raise ZeroDivisionError("no luck")

    seen: list[str] = []
    name = store.tree.on("a", fail, priority=1)
    store.tree.on("a", lambda event: seen.append(event.path))
    store.tree.on("a", lambda: None)  # type: ignore[misc,arg-type]
    store.tree.put("a", 1)
    store.tree.wait_for_triggers()
    assert seen == ["a"]
    first, second = store.tree.trigger_failures()
    assert (first.trigger, first.path, first.seq) == (name, "a", store.seq)
    assert first.error.startswith("Traceback (most recent call last):\n")
    assert 'raise ZeroDivisionError("no luck")\nZeroDivisionError: no luck\n' in first.error
    assert "TypeError" in second.error
    assert raised[0] == (ZeroDivisionError, "no luck", fail)
    assert store.tree.trigger_failures() == []


def test_a_callback_may_use_the_store(store: drumlin.Store) -> None:
    store.tree.put("total", 0)
    said: list[str] = []

    def count(event: Event) -> None:
        store.transact(lambda tx: tx.tree.put("total", tx.tree.get("total") + event.payload))
        store.tree.put(f"log/{event.seq}", event.path)
        store.write("t", {"n": [event.payload]})
        assert store.read("t").to_arrow().num_rows == 1
        assert list(store.tree.projection("big").keys()) is not None
        try:
            store.tree.wait_for_triggers(1)
        except drumlin.InvalidArgument as error:
            said.append(str(error))

    store.tree.on("in/*", count)
    store.tree.projection("big", "in/*", key=lambda path, payload: payload)
    for n in range(20):
        store.tree.put(f"in/{n}", n)
    assert store.tree.wait_for_triggers(30)
    assert (store.tree.trigger_failures(), store.tree.get("total"), store.tree.count("log/*")) == ([], 190, 20)
    assert set(said) == {"a trigger must not wait for the triggers"}


def test_a_callback_may_end_triggers_and_close(folder: str) -> None:
    store = drumlin.open(folder)
    told: list[str] = []
    closed = threading.Event()

    def once(event: Event) -> None:
        told.append(event.path)
        assert event.trigger is not None
        store.tree.off(event.trigger)

    def close(event: Event) -> None:
        store.close()
        closed.set()

    store.tree.on("a/*", once)
    store.tree.put_many({"a/1": 1})
    assert store.tree.wait_for_triggers(10)
    store.tree.put_many({"a/2": 1})
    store.tree.on("z", close)
    store.tree.put("z", 1)
    assert closed.wait(10)
    assert told == ["a/1"]
    with pytest.raises(drumlin.Closed):
        store.tree.put("z", 2)
    drumlin.open(folder).close()


def test_waiting(store: drumlin.Store) -> None:
    go = threading.Event()
    store.tree.on("a", lambda event: go.wait(20))
    assert store.tree.wait_for_triggers(0)
    store.tree.put("a", 1)
    for timeout in (0, 0.05, dt.timedelta(milliseconds=250)):
        assert not store.tree.wait_for_triggers(timeout)
    for wrong in (-1, float("nan")):
        with pytest.raises(drumlin.InvalidArgument, match="timeout="):
            store.tree.wait_for_triggers(wrong)
    go.set()
    assert store.tree.wait_for_triggers(dt.timedelta(seconds=10))


# faults: stopped call x feed
def test_a_signal_stops_waiting() -> None:
    program = """
        import os, signal, threading, time, drumlin
        store = drumlin.open("memory://")
        go = threading.Event()
        store.tree.on("a", lambda event: go.wait(600))
        feed = store.changes()
        store.tree.put("a", 1)
        assert next(feed).seq == store.seq
        for wait in (store.tree.wait_for_triggers, lambda: next(feed), lambda: feed.next(600)):
            try:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                wait()
            except KeyboardInterrupt:
                pass
            else:
                raise AssertionError("not interrupted")
        # The feed continues where it was.
        store.tree.put("b", 1)
        assert next(feed).seq == store.seq
        go.set()
        assert store.tree.wait_for_triggers(10)
        store.close()
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_one_with_a_name_lasts(folder: str) -> None:
    told: list[tuple[str, Any]] = []

    def tell(event: Event) -> None:
        told.append((event.path, event.payload))

    with drumlin.open(folder) as store:
        assert store.tree.on("a/*", tell, name="mine") == "mine"
        store.tree.put("a/1", 1)
        store.tree.wait_for_triggers()
    with drumlin.open(folder) as store:
        assert store.tree.triggers() == ["mine"]
        # It is not registered, so it waits.
        store.tree.put("a/2", 2)
        store.tree.wait_for_triggers()
        assert told == [("a/1", 1)]
    with drumlin.open(folder) as store:
        store.tree.put("a/3", 3)
        store.tree.on("a/*", tell, name="mine")
        store.tree.put("a/4", 4)
        store.tree.wait_for_triggers()
        assert told == [("a/1", 1), ("a/2", 2), ("a/3", 3), ("a/4", 4)]
        store.tree.off("mine")
        assert store.tree.triggers() == []
        store.tree.put("a/5", 5)
    with drumlin.open(folder) as store:
        store.tree.on("a/*", tell, name="mine")
        store.tree.put("a/6", 6)
        store.tree.wait_for_triggers()
    assert told[-2:] == [("a/4", 4), ("a/6", 6)]


def test_what_can_no_longer_be_told(folder: str) -> None:
    told: list[Event] = []
    with drumlin.open(folder) as store:
        store.tree.on("a/*", lambda event: None, name="mine")
        store.tree.put("a/1", 1)
        store.tree.wait_for_triggers()
    with drumlin.open(folder) as store:
        for n in range(10):
            store.tree.put(f"a/{n}", n)
            store.checkpoint()
            store.reclaim()
        store.tree.on("a/*", told.append, name="mine")
        store.tree.put("a/x", 1)
        assert store.tree.wait_for_triggers(10)
    event = told[0]
    assert (event.action, event.path, event.payload, event.before, event.cause) == ("resync", "", None, None, None)
    assert repr(event) == f"Event(action='resync', seq={event.seq}, trigger='mine')"
    assert told[-1].path == "a/x"


def test_a_store_that_is_closed(folder: str) -> None:
    told: list[str] = []
    with drumlin.open(folder) as store:
        store.tree.on("a/*", lambda event: told.append(event.path))
        store.tree.put("a/1", 1)
        store.tree.wait_for_triggers()
    for call in (
        lambda: store.tree.on("a", print),
        lambda: store.tree.off("x"),
        store.tree.triggers,
        store.tree.wait_for_triggers,
    ):
        with pytest.raises(drumlin.Closed):
            call()
    assert store.tree.trigger_failures() == []


def is_gone(reference: weakref.ref[Any]) -> bool:
    gc.collect()
    return reference() is None


def test_a_callback_that_holds_the_store_is_collected(folder: str) -> None:
    class Watcher:
        def __init__(self) -> None:
            self.store = drumlin.open(folder)
            self.feed = self.store.changes()
            self.seen: list[str] = []
            self.store.tree.on("a/*", self.see)

        def see(self, event: Event) -> None:
            self.seen.append(event.path)

    for close in (False, True):
        watcher = Watcher()
        watcher.store.tree.put("a/b", 1)
        watcher.store.tree.wait_for_triggers()
        assert watcher.seen == ["a/b"]
        if close:
            watcher.store.close()
            gone = weakref.ref(watcher)
        else:
            gone = weakref.ref(watcher)
        del watcher
        # Its thread may just be on its way out of the callback.
        assert until(partial(is_gone, gone))


def test_what_is_under_way_when_the_process_ends() -> None:
    program = """
        import threading, time, drumlin
        store = drumlin.open("memory://")
        called = threading.Event()
        def callback(event):
            called.set()
            time.sleep(0.05)
        store.tree.on("**", callback)
        store.tree.projection("p", "**", key=lambda path, payload: path)
        for n in range(100):
            store.tree.put(f"a/{n}", n)
        assert called.wait(10)
    """
    for _ in range(10):
        command = [sys.executable, "-c", textwrap.dedent(program)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (result.returncode, result.stderr) == (0, "")


def test_threads_commit_while_triggers_are_called(store: drumlin.Store) -> None:
    told: list[str] = []
    store.tree.on("n/**", lambda event: told.append(event.path))
    store.tree.projection("p", "n/**", key=lambda path, payload: path)

    def work(thread: int) -> None:
        for at in range(200):
            store.tree.put(f"n/{thread}/{at}", at)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert store.tree.wait_for_triggers(30)
    assert len(told) == len(set(told)) == 800
    assert len(store.tree.projection("p")) == 800
