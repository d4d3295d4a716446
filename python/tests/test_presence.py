"""Presences: nodes that end with a program, whichever way it ends; and nodes that end by themselves."""

import asyncio
import datetime as dt
import subprocess
import sys

import pytest
from waiting import until

import drumlin
from drumlin import aio

SECOND = dt.timedelta(seconds=1)


def test_nodes_end_with_their_presence(store: drumlin.Store) -> None:
    told: list[tuple[str, str]] = []

    def tell(event: drumlin.Event) -> None:
        if event.after is None:
            told.append((event.path, str(event.cause)))

    store.tree.on("services/*", tell)
    with store.tree.presence("worker 7", life=20 * SECOND) as presence:
        change = store.tree.put("services/a", 1, presence=presence)
        assert change.after is not None
        assert change.after.presence == presence.number == 1
        assert presence.life == 20 * SECOND
        assert presence.is_open()
        presence.beat()
        (info,) = store.tree.presences()
        assert (info.number, info.name, info.life) == (1, "worker 7", 20 * SECOND)
        assert info.began <= dt.datetime.now(dt.UTC)
        with store.transaction() as tx:
            tx.require(presence)
            tx.tree.put("done", 1)
    assert store.tree.presences() == []
    assert not store.tree.exists("services/a")
    assert store.tree.wait_for_triggers()
    assert told == [("services/a", "ended")]
    assert not presence.is_open()
    presence.end()
    with pytest.raises(drumlin.ConditionFailed, match="presence 1 has ended"):
        presence.beat()
    with pytest.raises(drumlin.ConditionFailed, match="presence 1 has ended"), store.transaction() as tx:
        tx.require(presence)
    with pytest.raises(drumlin.ConditionFailed, match="presence 1 has ended"):
        store.tree.put("services/a", 1, presence=presence)


def test_nodes_end_by_themselves(store: drumlin.Store) -> None:
    change = store.tree.put("a", 1, ttl=dt.timedelta(milliseconds=50))
    assert change.after is not None
    assert change.after.expires is not None
    store.tree.put("b", 1, ttl=dt.timedelta(days=1))
    assert until(lambda: not store.tree.exists("a"))
    assert store.tree.exists("b")
    store.tree.put("b", 1, keep_while={})
    node = store.tree.node("b")
    assert node is not None
    assert node.expires is None


def test_wrong_arguments_are_named(store: drumlin.Store) -> None:
    seq = store.seq
    for call, error, said in (
        (lambda: store.tree.presence(7), TypeError, "name must be a str"),  # type: ignore[arg-type]
        (lambda: store.tree.presence(life=30), TypeError, "life must be a timedelta"),  # type: ignore[arg-type]
        (lambda: store.tree.presence(life=SECOND / 2), drumlin.InvalidArgument, "expected 1 s to 30 days"),
        (lambda: store.tree.put("a", 1, presence=1), TypeError, "presence must be one of"),  # type: ignore[arg-type]
        (lambda: store.tree.put("a", 1, ttl=30), TypeError, "ttl must be a timedelta"),  # type: ignore[arg-type]
        (lambda: store.tree.put("a", 1, ttl=0 * SECOND), drumlin.InvalidArgument, "longer than 0"),
        (lambda: drumlin.Presence(None), TypeError, "store.tree.presence()"),  # type: ignore[arg-type]
        (lambda: store.transaction().require(1), TypeError, "presence must be one of"),  # type: ignore[arg-type]
    ):
        with pytest.raises(error, match=said.replace("(", r"\(").replace(")", r"\)")):
            call()
    assert store.seq == seq


_LEADER = """
import datetime as dt, sys
import drumlin
store = drumlin.open(sys.argv[1], shared=sys.argv[2] == "True")
presence = store.tree.presence("leader", life=dt.timedelta(seconds=2))
store.tree.put("leader", "child", mode="create", presence=presence)
print("there", flush=True)
sys.stdin.read()
"""


def child(folder: str, *, shared: bool) -> None:
    """Starts a process that announces itself."""
    arguments = [sys.executable, "-c", _LEADER, folder, str(shared)]
    # It waits for its end, which comes from outside.
    started = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    STARTED.append(started)
    assert started.stdout is not None
    assert started.stdout.readline() == b"there\n"


#: Those that a test has started.
STARTED: list[subprocess.Popen[bytes]] = []


def kill() -> None:
    for started in STARTED:
        with started:
            started.kill()
    STARTED.clear()


def test_who_alone_writes_a_folder_ends_what_a_killed_process_left(folder: str) -> None:
    child(folder, shared=False)
    kill()
    with drumlin.open(folder) as store:
        store.checkpoint()
        assert store.tree.presences() == []
        assert not store.tree.exists("leader")


def test_others_end_what_a_killed_process_left(folder: str) -> None:
    with drumlin.open(folder, shared=True) as store:
        child(folder, shared=True)
        try:
            seq = store.refresh()
            # It beats, so it lives on.
            assert until(lambda: store.refresh() > seq + 4)
            assert store.tree.get("leader") == "child"
        finally:
            kill()
        # Nothing is asked of the store but what it knows: its own thread looks.
        assert until(lambda: not store.tree.exists("leader"))
        assert store.tree.presences() == []
        store.tree.put("leader", "me", mode="create", presence=store.tree.presence())
        assert store.tree.presences()[0].number == 2


async def _announced(folder: str) -> list[bool]:
    async with aio.open(folder) as store:
        async with store.tree.presence("worker 7") as presence:
            await store.tree.put("a", 1, presence=presence)
            assert await presence.number == 1
            async with store.transaction() as tx:
                await tx.require(presence)
                await tx.tree.put("b", 2)
            seen = [await store.tree.exists("a")]
            assert [one.name for one in await store.tree.presences()] == ["worker 7"]
        return [*seen, await store.tree.exists("a")]


def test_it_is_awaited(folder: str) -> None:
    assert asyncio.run(_announced(folder)) == [True, False]
