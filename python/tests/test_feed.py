"""The change feed."""

from __future__ import annotations

import datetime as dt
import threading
import time

import pytest
from waiting import until

import drumlin


def test_commits_come_in_order(store: drumlin.Store) -> None:
    store.tree.put("before", 1)
    feed = store.changes()
    assert feed.seq == store.seq
    assert feed.next(0) is None
    store.tree.put("a", 1)
    with store.transaction() as tx:
        tx.tree.put("a", 2)
        tx.tree.put("b/c", 3)
        tx.tree.delete("a")
    first = next(feed)
    assert (first.seq, feed.seq) == (store.seq - 1, store.seq - 1)
    assert dt.datetime.now(dt.UTC) - first.time < dt.timedelta(minutes=1)
    assert repr(first).startswith(f"Commit(seq={first.seq}, time=datetime.datetime(")
    [event] = first.events
    assert (event.action, event.path, event.payload, event.trigger) == ("create", "a", 1, None)
    assert (event.seq, event.time) == (first.seq, first.time)
    second = feed.next()
    assert second is not None
    assert [(e.action, e.path, e.payload) for e in second.events] == [
        ("update", "a", 2),
        ("create", "b/c", 3),
        ("delete", "a", None),
    ]
    assert second.events == second.events
    assert feed.next(timeout=0.01) is None
    assert feed.next(dt.timedelta(0)) is None


def test_events_of_tables(store: drumlin.Store) -> None:
    store.tree.put("t/node", 1)
    feed = store.changes(0)
    store.write("t", {"n": [1, 2]})
    store.append("t", {"n": [3]})
    store.table("t").delete("n = 1")
    store.delete_versions({"t": [0]})
    store.drop("t")
    store.undrop("t", to="u")
    events = []
    while (commit := feed.next(0)) is not None:
        events += [(event.action, event.kind, event.path) for event in commit.events]
    assert events == [
        ("create", None, "t/node"),
        ("version", "write", "t"),
        ("version", "append", "t"),
        ("version", "delete", "t"),
        ("delete_versions", None, "t"),
        ("drop", None, "t"),
        ("undrop", None, "u"),
    ]
    table = next(event for commit in [*_all(store.changes(0))] for event in commit.events if event.kind)
    assert (table.before, table.after, table.payload, table.cause) == (None, None, None, None)
    assert repr(table) == f"Event(path='t', action='version', kind='write', seq={table.seq})"


def _all(feed: drumlin.ChangeFeed) -> list[drumlin.Commit]:
    commits = []
    while (commit := feed.next(0)) is not None:
        commits.append(commit)
    return commits


def test_from_where(folder: str) -> None:
    with drumlin.open(folder) as store:
        seqs = [store.tree.put(f"n/{n}", n).after.seq for n in range(5)]  # type: ignore[union-attr]
    with drumlin.open(folder) as store:
        [commit, *_] = _all(store.changes(seqs[2]))
        assert commit.events[0].path == "n/3"
        with pytest.raises(drumlin.InvalidArgument, match="the newest commit is"):
            store.changes(store.seq + 1)
        with pytest.raises(drumlin.InvalidArgument, match="since=-1 is out of range"):
            store.changes(-1)
        store.checkpoint()
        store.tree.put("x", 1)
        store.checkpoint()
        with pytest.raises(drumlin.SnapshotExpired, match="no longer available"):
            store.changes(seqs[0])


def test_a_feed_waits_for_what_comes(store: drumlin.Store) -> None:
    seen: list[int] = []
    feed = store.changes()

    def follow() -> None:
        for commit in feed:
            seen.append(commit.seq)
            if commit.events[0].path == "end":
                return

    thread = threading.Thread(target=follow)
    thread.start()
    first = store.seq
    for n in range(50):
        store.tree.put(f"n/{n}", n)
    store.tree.put("end", 1)
    thread.join(30)
    assert not thread.is_alive()
    assert seen == list(range(first + 1, first + 52))


def test_one_thread_at_a_time(store: drumlin.Store) -> None:
    feed = store.changes()
    thread = threading.Thread(target=feed.next, args=(600,))
    thread.start()

    def is_in_use() -> bool:
        try:
            return feed.next(0) is not None
        except drumlin.InvalidArgument:
            return True

    assert until(is_in_use)
    for call in (lambda: feed.next(0), lambda: feed.seq):
        with pytest.raises(drumlin.InvalidArgument, match="the feed is in use by another thread"):
            call()
    store.tree.put("a", 1)
    thread.join(30)
    assert feed.seq == store.seq
    with pytest.raises(drumlin.InvalidArgument, match="timeout=-1: expected a number of seconds"):
        feed.next(-1)


def test_a_store_that_is_closed(store: drumlin.Store) -> None:
    feed, other = store.changes(), store.changes()
    failures: list[BaseException] = []

    def follow() -> None:
        try:
            next(feed)
        except drumlin.Closed as error:
            failures.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.1)
    store.close()
    thread.join(30)
    assert len(failures) == 1
    for call in (lambda: other.next(0), store.changes, lambda: store.seq):
        with pytest.raises(drumlin.Closed):
            call()


def test_a_reader_follows_the_writer(folder: str) -> None:
    with drumlin.open(folder) as writer, drumlin.open(folder, mode="read") as reader:
        feed = reader.changes()
        assert feed.next(0.05) is None
        writer.tree.put("a", 1)
        commit = feed.next(10)
        assert commit is not None
        assert commit.events[0].path == "a"
        assert reader.tree.get("a") == 1


def test_a_feed_keeps_its_store(folder: str) -> None:
    store = drumlin.open(folder)
    store.tree.put("a", 1)
    feed = store.changes(0)
    del store
    assert next(feed).events[0].path == "a"
    # It is still open: another handle of it must be opened with the same settings.
    with pytest.raises(drumlin.Locked, match="already open in this process"):
        drumlin.open(folder, inline_bytes=1)
    del feed
    drumlin.open(folder, inline_bytes=1).close()
