"""The feed of the rows of a table."""

from __future__ import annotations

import asyncio
import datetime as dt
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import drumlin
import drumlin.aio


@pytest.fixture
def people(store: drumlin.Store) -> drumlin.Table:
    table = store.table("people")
    table.create({"id": "int64", "name": "string"}, key=["id"])
    return table


def told(feed: drumlin.RowFeed) -> list[list[tuple[str, int, str | None]]]:
    """What there is, commit by commit."""
    commits = iter(lambda: feed.next(timeout=0), None)
    return [[(row["_change"], row["id"], row["name"]) for row in changes] for changes in commits]


def test_what_commits_change_comes_in_order(store: drumlin.Store, people: drumlin.Table) -> None:
    feed = people.follow()
    assert feed.next(timeout=0) is None
    assert feed.path == "people"
    people.upsert({"id": [1, 2], "name": ["Ada", "Grace"]})
    people.update({"name": "'Ada L.'"}, where="id = 1")
    people.delete("id = 2")
    with store.transaction() as tx:
        tx.append("people", {"id": [3], "name": [None]})
    assert told(feed) == [
        [("insert", 1, "Ada"), ("insert", 2, "Grace")],
        [("update_before", 1, "Ada"), ("update_after", 1, "Ada L.")],
        [("delete", 2, "Grace")],
        [("insert", 3, None)],
    ]


def test_changes_are_rows_in_every_form(people: drumlin.Table) -> None:
    people.upsert({"id": [1], "name": ["Ada"]})
    changes = next(people.follow("beginning"))
    assert (changes.kind, len(changes), repr(changes)) == (
        "rows",
        1,
        f"RowChanges('people', version={changes.version}, kind='rows', 1 rows)",
    )
    assert dt.datetime.now(dt.UTC) - changes.time < dt.timedelta(minutes=1)
    row = {"id": 1, "name": "Ada", "_change": "insert", "_version": changes.version, "_time": changes.time}
    assert changes.to_dicts() == list(changes) == [row]
    assert changes.to_arrow().to_pylist() == pa.table(changes).to_pylist() == [row]
    assert changes.to_polars()["name"].to_list() == changes.to_pandas()["name"].to_list() == ["Ada"]


def test_rows_are_chosen_by_what_they_were_or_are(people: drumlin.Table) -> None:
    feed = people.follow(where=drumlin.col("name") == "Ada")
    other = people.follow(where="name = ?", params=["Grace"])
    people.upsert({"id": [1, 2], "name": ["Ada", "Grace"]})
    people.update({"name": "'Alan'"})
    assert told(feed) == [[("insert", 1, "Ada")], [("update_before", 1, "Ada"), ("update_after", 1, "Alan")]]
    assert told(other) == [[("insert", 2, "Grace")], [("update_before", 2, "Grace"), ("update_after", 2, "Alan")]]
    for wrong in ("nothing = 1", "name ="):
        with pytest.raises(drumlin.InvalidArgument):
            people.follow(where=wrong)


def test_where_it_begins(store: drumlin.Store, people: drumlin.Table) -> None:
    first = people.append({"id": [1], "name": ["Ada"]})
    people.append({"id": [2], "name": ["Grace"]})
    store.snapshot("then", "people")
    people.append({"id": [3], "name": ["Alan"]})
    assert first is not None
    ids = {1: "Ada", 2: "Grace", 3: "Alan"}
    for since, left in [("beginning", 0), (first.version, 1), (-2, 2), ("then", 2), (first.time, 1), (None, 3)]:
        assert told(people.follow(since)) == [[("insert", id, name)] for id, name in list(ids.items())[left:]], since
    for wrong, error in [
        (99, drumlin.NotFound),
        ("no snapshot", drumlin.NotFound),
        ("place:1", drumlin.InvalidArgument),
        ([], TypeError),
    ]:
        with pytest.raises(error):
            people.follow(wrong)  # type: ignore[arg-type]
    with pytest.raises(drumlin.NotFound):
        store.table("nothing").follow()
    with store.transaction() as tx, pytest.raises(drumlin.InvalidArgument, match="transaction"):
        tx.table("people").follow()


def test_another_process_goes_on_where_a_feed_was(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "s") as store:
        table = store.table("t")
        table.create({"id": "int64", "name": "string"}, key=["id"])
        feed = table.follow()
        for id in range(4):
            table.upsert({"id": [id], "name": [None]})
        assert [row["id"] for row in next(feed)] == [0]
        place = feed.place
        store.checkpoint()
        table.delete("id = 0")
    code = (
        f"import drumlin\nfeed = drumlin.open({str(tmp_path / 's')!r}).table('t').follow({place!r})\n"
        "for changes in iter(lambda: feed.next(0), None): print([(row['_change'], row['id']) for row in changes])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    assert said[:-1] == [f"[('insert', {id})]" for id in (1, 2, 3)] + ["[('delete', 0)]"]


def test_a_place_of_another_table_or_of_versions_that_are_gone(store: drumlin.Store) -> None:
    feeds = []
    for path in ("a", "b"):
        store.write(path, {"id": [1], "name": ["x"]})
        feeds.append(store.table(path).follow())
    with pytest.raises(drumlin.SnapshotExpired, match="another table"):
        store.table("b").follow(feeds[0].place)
    for name in "yz":
        store.append("a", {"id": [2], "name": [name]})
    store.delete_versions({"a": [0]})
    with pytest.raises(drumlin.SnapshotExpired):
        feeds[0].next(0)
    store.drop("a")
    with pytest.raises(drumlin.NotFound):
        feeds[0].next(0)
    store.write("b", {"id": [2], "name": ["y"]})
    assert [row for rows in told(feeds[1]) for row in rows] == [("delete", 1, "x"), ("insert", 2, "y")]


def test_a_feed_that_waits_is_woken_by_a_commit_and_ends_with_the_store(
    store: drumlin.Store, people: drumlin.Table
) -> None:
    feed = people.follow()
    threading.Timer(0.05, lambda: people.upsert({"id": [1], "name": ["Ada"]})).start()
    assert [row["id"] for row in next(feed)] == [1]
    assert feed.next(dt.timedelta(milliseconds=10)) is None
    waiting: list[BaseException] = []

    def wait() -> None:
        try:
            next(feed)
        except drumlin.Error as error:
            waiting.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    store.close()
    thread.join(30)
    assert [type(error) for error in waiting] == [drumlin.Closed]


def test_a_follower_goes_on_where_it_was_though_versions_are_short_lived(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "s") as store:
        table = store.table("t")
        table.write({"id": [0], "name": ["a"]})
        store.set_retention("t", keep_last=1)
        feed = table.follow(name="billing", keep=dt.timedelta(days=1))
        table.append({"id": [1], "name": ["b"]})
        table.append({"id": [2], "name": ["c"]})
        assert told(feed) == [[("insert", 1, "b")], [("insert", 2, "c")]]
    with drumlin.open(tmp_path / "s") as store:
        table = store.table("t")
        assert len(table.versions()) == 3
        [follower] = table.followers()
        assert (follower.name, follower.version, follower.keep) == ("billing", 0, dt.timedelta(days=1))
        first, second = table.follow(name="billing"), table.follow(name="billing")
        assert told(second) == [[("insert", 1, "b")], [("insert", 2, "c")]]
        second.acknowledge()
        assert len(table.versions()) == 1
        with pytest.raises(drumlin.ConditionFailed, match="another consumer"):
            first.acknowledge()
        table.drop_follower("billing")
        assert table.followers() == []
        with pytest.raises(drumlin.NotFound):
            table.drop_follower("billing")
        with pytest.raises(drumlin.ConditionFailed):
            second.acknowledge()


def test_what_a_follower_is_not(people: drumlin.Table) -> None:
    with pytest.raises(drumlin.InvalidArgument, match="name"):
        people.follow(keep=dt.timedelta(days=1))
    with pytest.raises(drumlin.InvalidArgument, match="under a name"):
        people.follow().acknowledge()
    for name in ("", "a\nb"):
        with pytest.raises(drumlin.InvalidArgument, match="name of a follower"):
            people.follow(name=name)
    with pytest.raises(TypeError):
        people.follow(name=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        people.follow(name="f", keep=5)  # type: ignore[arg-type]
    assert people.followers() == []


def test_a_trigger_is_called_for_rows(store: drumlin.Store, people: drumlin.Table) -> None:
    seen: list[tuple[str, str, int]] = []
    named: list[str] = []

    def note(changes: drumlin.RowChanges) -> None:
        seen.extend((changes.kind, row["_change"], row["id"]) for row in changes)

    name = people.on(note)
    people.on(lambda changes: named.extend(row["name"] for row in changes), where="name is not null")
    people.upsert({"id": [1, 2], "name": ["Ada", None]})
    people.delete("id = 2")
    assert store.tree.wait_for_triggers(30)
    assert [(change, id) for _, change, id in seen] == [("insert", 1), ("insert", 2), ("delete", 2)]
    assert named == ["Ada"]
    people.off(name)
    people.delete("id = 1")
    assert store.tree.wait_for_triggers(30)
    assert len(seen) == 3
    assert named == ["Ada", "Ada"]
    with pytest.raises(drumlin.NotFound):
        people.off(name)


def test_a_durable_trigger_hears_of_what_it_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: shown.append(raised.exc_type))
    seen: list[tuple[str, list[int]]] = []

    def note(changes: drumlin.RowChanges) -> None:
        seen.append((changes.kind, [row["id"] for row in changes]))

    for n in range(3):
        with drumlin.open(tmp_path / "s") as store:
            store.set_retention("**", keep_last=1)
            table = store.table("t")
            table.write({"id": [10 * n], "name": ["a"]}) if n == 0 else table.append({"id": [10 * n], "name": ["a"]})
            assert table.on(note, name="billing") == "billing"
            table.append({"id": [10 * n + 1], "name": ["b"]})
            assert store.tree.wait_for_triggers(30)
    assert seen == [("append", [id]) for id in (1, 10, 11, 20, 21)]
    # Versions that it needs are deleted.
    seen.clear()
    with drumlin.open(tmp_path / "s") as store:
        table = store.table("t")
        table.append({"id": [30], "name": ["a"]})
        table.append({"id": [31], "name": ["a"]})
        store.delete_versions({"t": [version.version for version in table.versions()[:-1]]})
        table.on(note, name="billing")
        assert store.tree.wait_for_triggers(30)
        assert seen == [("resync", [])]
        # An exception is a failure of the call.
        table.on(lambda changes: 1 / 0, name="fails")
        table.append({"id": [32], "name": ["a"]})
        assert store.tree.wait_for_triggers(30)
        [failure] = store.tree.trigger_failures()
        assert (failure.trigger, failure.path) == ("fails", "t")
        assert "ZeroDivisionError" in failure.error
        table.off("fails")
        table.off("billing")
        assert table.followers() == []
    assert shown == [ZeroDivisionError]


def test_a_trigger_must_be_a_function(people: drumlin.Table) -> None:
    with pytest.raises(TypeError, match="function"):
        people.on("people")  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument):
        people.on(print, where="nothing = 1")
    with pytest.raises(drumlin.InvalidArgument, match="name"):
        people.on(print, keep=dt.timedelta(1))


def test_a_trigger_may_be_a_coroutine(tmp_path: Path) -> None:
    seen: list[int] = []

    async def main() -> None:
        async with drumlin.aio.open(tmp_path / "s") as store:
            await store.write("t", {"id": [1]})

            async def note(changes: drumlin.RowChanges) -> None:
                await asyncio.sleep(0)
                seen.extend(row["id"] for row in changes)

            await store.table("t").on(note)
            await store.append("t", {"id": [2]})
            assert await store.tree.wait_for_triggers(30)
            async for changes in await store.table("t").follow("beginning"):
                seen.extend(-row["id"] for row in changes)
                if len(seen) == 3:
                    break

    asyncio.run(main())
    assert seen == [2, -1, -2]
