"""Opening and closing; the tree; dropping; maintenance; errors."""

import datetime as dt
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

import drumlin


def test_a_store_is_there_after_reopening(folder: str) -> None:
    with drumlin.open(folder) as store:
        assert repr(store) == f"Store({folder!r})"
        store.write("t", {"n": [1, 2]}, metadata="x")
        store.tree.put("node", {"a": 1})
    for uri in (folder, Path(folder), f"file://{folder}"):
        with drumlin.open(uri, mode="write") as store:
            assert store.read("t").to_arrow().to_pydict() == {"n": [1, 2]}
            assert store.tree.get("node") == {"a": 1}


def test_modes(folder: str) -> None:
    for mode in ("write", "read"):
        with pytest.raises(drumlin.NotFound):
            drumlin.open(folder, mode=mode)  # type: ignore[arg-type]
    with pytest.raises(
        drumlin.InvalidArgument, match="mode 'w' is not known; expected one of 'create', 'write', 'read'"
    ):
        drumlin.open(folder, mode="w")  # type: ignore[arg-type]
    with drumlin.open(folder) as writer, drumlin.open(folder, mode="read") as reader:
        writer.write("t", {"n": [1]})
        with pytest.raises(drumlin.NotFound):
            reader.read("t")
        assert reader.refresh() == writer.refresh()
        assert reader.read("t").to_arrow().num_rows == 1
        for write in (
            lambda: reader.write("t", {"n": [1]}),
            lambda: reader.tree.put("a", 1),
            lambda: reader.drop("t"),
            reader.checkpoint,
            reader.reclaim,
        ):
            with pytest.raises(drumlin.InvalidArgument, match="reading only"):
                write()


# faults: second process x open
def test_one_process_writes(folder: str) -> None:
    with drumlin.open(folder):
        command = [sys.executable, "-c", f"import drumlin; drumlin.open({folder!r})"]
        other = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Locked" in other.stderr
        assert str(os.getpid()) in other.stderr


def test_a_process_may_open_a_store_twice(folder: str) -> None:
    first = drumlin.open(folder)
    second = drumlin.open(folder + "/.")
    first.tree.put("a", 1)
    assert second.tree.get("a") == 1
    with pytest.raises(drumlin.Locked, match="other settings"):
        drumlin.open(folder, inline_bytes=1)
    first.close()
    first.close()
    with pytest.raises(drumlin.Closed):
        first.tree.get("a")
    with pytest.raises(drumlin.Closed):
        first.tree.put("a", 2)
    # The other handle continues, and closes the store.
    second.tree.put("a", 3)
    second.close()
    with drumlin.open(folder, inline_bytes=1) as store:
        assert store.tree.get("a") == 3


@pytest.mark.parametrize("uri", ["", "s4://bucket/prefix", "memory://x"])
def test_addresses_that_make_no_sense(uri: str) -> None:
    with pytest.raises(drumlin.InvalidArgument):
        drumlin.open(uri)


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("mine")
    with pytest.raises(drumlin.InvalidArgument, match=r"not empty \(it has 'file.txt'\)"):
        drumlin.open(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("option", ["memory_bytes", "cache_bytes", "cpu_threads"])
def test_sizes_are_checked(option: str) -> None:
    with pytest.raises(drumlin.InvalidArgument, match=f"{option}=-1"):
        drumlin.open("memory://", **{option: -1})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        drumlin.open("memory://", **{option: 1.5})  # type: ignore[arg-type]


def test_a_closed_store_answers_no_more(store: drumlin.Store) -> None:
    store.write("t", {"n": range(10)})
    result, used = store.read("t"), store.read("t")
    used.to_arrow()
    store.close()
    store.close()
    for call in (
        lambda: store.read("t"),
        lambda: store.write("t", {"n": [1]}),
        lambda: store.tree.get("t"),
        lambda: store.tree.list(),
        lambda: store.stat(),
        lambda: store.verify(),
        used.to_arrow,
    ):
        with pytest.raises(drumlin.Closed, match="is closed"):
            call()
    # A prepared result may be read to its end.
    assert result.to_arrow().num_rows == 10


@pytest.mark.parametrize("path", ["", "/a", "a//b", "a/", "a/../b", ".", "a*", "what?", "a\nb", "x" * 256])
def test_bad_paths_are_refused_with_a_reason(store: drumlin.Store, path: str) -> None:
    for call in (
        lambda: store.write(path, {"n": [1]}),
        lambda: store.table(path).read(),
        lambda: store.tree.put(path, 1),
    ):
        with pytest.raises(drumlin.InvalidArgument, match="path"):
            call()


def test_paths_may_hold_any_letters(store: drumlin.Store) -> None:
    paths = ["ü/日本 x", "%2f", "a..b", "A", "a"]
    store.write_many({path: {"n": [at]} for at, path in enumerate(paths)})
    for at, path in enumerate(paths):
        assert store.read(path).to_arrow()["n"].to_pylist() == [at]
    assert sorted(store.tables()) == sorted(paths)


# The tree.


def test_nodes(store: drumlin.Store) -> None:
    store.tree.put("config/feeds/a", {"url": "x"})
    store.tree.put("config/feeds/b", b"\0\xff")
    assert store.tree.get("config/feeds/a") == {"url": "x"}
    assert store.tree.get("config/feeds/b") == b"\0\xff"
    assert store.tree.get("config") is None
    assert store.tree.get("none") is None
    assert store.tree.get("none", default=7) == 7
    assert store.tree.exists("config/feeds")
    assert not store.tree.exists("config/feeds/c")
    store.tree.put("config/feeds/a", None)
    [config, feeds, a, b] = store.tree.list()
    assert [node.path for node in (config, feeds, a, b)] == [
        "config",
        "config/feeds",
        "config/feeds/a",
        "config/feeds/b",
    ]
    assert (feeds.children, feeds.payload, feeds.is_table, feeds.rows) == (2, None, False, None)
    assert (b.payload, a.payload_version - b.payload_version) == (b"\0\xff", 1)
    assert len(store.tree.delete("config/feeds/a").indirect) == 0
    with pytest.raises(drumlin.NotFound, match="no node at 'config/x'"):
        store.tree.delete("config/x")
    assert len(store.tree.delete_many("config/x*")) == 0
    assert [change.path for change in store.tree.delete("config").indirect] == ["config/feeds/b"]
    store.tree.put("a/b/c", 1)
    store.tree.delete("a/b/c")
    # Parents that were created for it are deleted with it.
    assert store.tree.list() == []


def test_tables_are_nodes(store: drumlin.Store) -> None:
    store.write("prices/us/AAPL", {"n": [1, 2]})
    store.append("prices/us/AAPL", {"n": [3]})
    store.tree.put("prices/us/AAPL", "a note")
    [node] = store.tree.list("prices/*/A*")
    assert (node.path, node.payload, node.is_table) == ("prices/us/AAPL", "a note", True)
    assert (node.rows, node.versions, node.row_groups) == (3, 2, 2)
    assert store.tables("prices/**") == ["prices/us/AAPL"]
    for path in ("prices/us/AAPL", "prices"):
        with pytest.raises(drumlin.Error, match="prices/us/AAPL"):
            store.tree.delete(path)
    with pytest.raises(drumlin.Error, match="prices/us/AAPL"):
        store.tree.delete_many("**")
    assert store.tables() == ["prices/us/AAPL"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=10,
)


def same(a: object, b: object) -> bool:
    """Equal, of the same types, zeros of the same sign."""
    return repr(sort_keys(a)) == repr(sort_keys(b))


def sort_keys(value: object) -> object:
    if isinstance(value, dict):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    return [sort_keys(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=200, deadline=None)
@given(payload=JSON, text=JSON)
def test_any_json_comes_back(payload: object, text: object) -> None:
    with drumlin.open("memory://", cpu_threads=1) as store:
        store.tree.put("a", payload)
        assert same(store.tree.get("a"), payload)
        assert same(store.write("t", {"n": [1]}, metadata=text).metadata, text)


def test_floats_of_nodes_come_back_after_reopening(folder: str) -> None:
    values = [0.1, 123456789.123456789, 1e308, 5e-324, 1 / 3, 2.0**63, -0.0]
    with drumlin.open(folder) as store:
        store.tree.put("floats", values)
    with drumlin.open(folder) as store:
        assert same(store.tree.get("floats"), values)


@pytest.mark.parametrize("payload", [float("nan"), {1: 2}, {1, 2}, 2**64, object()], ids=lambda value: repr(value)[:9])
def test_payloads_that_would_not_come_back_are_refused(store: drumlin.Store, payload: object) -> None:
    with pytest.raises(drumlin.InvalidArgument, match="payload"):
        store.tree.put("a", payload)
    assert not store.tree.exists("a")


def test_payloads_are_bounded(store: drumlin.Store) -> None:
    store.tree.put("a", b"x" * (1 << 20))
    with pytest.raises(drumlin.InvalidArgument, match="1048577 bytes"):
        store.tree.put("a", b"x" * ((1 << 20) + 1))


# Dropping.


def test_drop_is_all_or_none(store: drumlin.Store) -> None:
    store.write_many({path: {"n": [1]} for path in ("a/x", "a/y", "b", "c")})
    with pytest.raises(drumlin.NotFound, match="no table at 'd', 'e/\\*\\*'; nothing was dropped"):
        store.drop(["a/**", "d", "e/**"])
    assert len(store.tables()) == 4
    report = store.drop(["a/**", "a/x", "b", "b", "zzz"], missing_ok=True)
    assert (report.paths, report.versions) == (["a/x", "a/y", "b"], 3)
    assert store.tables() == ["c"]
    with pytest.raises(drumlin.NotFound):
        store.read("a/x")
    with pytest.raises(drumlin.InvalidArgument):
        store.drop([])
    assert [item.path for item in store.trash()] == ["a/x", "a/y", "b"]


def test_undrop(store: drumlin.Store) -> None:
    store.write("t", {"n": [1]})
    store.append("t", {"n": [2]})
    store.drop("t")
    store.write("t", {"n": [9]})
    with pytest.raises(drumlin.AlreadyExists):
        store.undrop("t")
    store.undrop("t", to="old/t")
    assert store.read("old/t").to_arrow()["n"].to_pylist() == [1, 2]
    assert store.read("old/t", as_of=0).to_arrow()["n"].to_pylist() == [1]
    assert store.read("t").to_arrow()["n"].to_pylist() == [9]
    with pytest.raises(drumlin.NotFound, match="no table that was dropped from 't'"):
        store.undrop("t")


def test_reclaim_frees_space(folder: str) -> None:
    with drumlin.open(folder, inline_bytes=0) as store:
        store.write("t", pa.table({"n": range(200_000)}))
        store.write("kept", {"n": [1]})
        store.drop("t")
        blocks = store.stat().block_bytes
        report = store.reclaim(grace=dt.timedelta(hours=1))
        assert (report.tables, report.holding.trash_bytes > 0) == (0, True)
        store.undrop("t")
        store.drop("t")
        report = store.reclaim()
        assert (report.tables, report.failures, report.bytes > 0) == (1, [], True)
        assert store.stat().block_bytes < blocks
        with pytest.raises(drumlin.NotFound):
            store.undrop("t")
        assert store.verify().ok
    files = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    assert files < 100_000
    with drumlin.open("memory://") as store, pytest.raises(drumlin.InvalidArgument, match="grace"):
        store.reclaim(grace=dt.timedelta(seconds=-1))


def test_a_result_in_use_holds_its_blocks() -> None:
    # Too large to travel in its commit.
    store = drumlin.open("memory://", inline_bytes=0)
    store.write("t", pa.table({"n": range(300_000)}))
    result = store.read("t")
    batches = iter(store.read("t"))
    first = next(batches).num_rows
    store.drop("t")
    assert store.reclaim().holding.pinned_bytes > 0
    assert result.to_arrow().num_rows == 300_000
    assert first + sum(batch.num_rows for batch in batches) == 300_000
    del result, batches
    assert store.reclaim().bytes > 0


# Maintenance.


def test_checkpoint_merges_and_vacuums(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("t", {"n": range(100)})
        for at in range(1, 20):
            store.append("t", {"n": range(100 * at, 100 * at + 100)})
        store.table("t").delete("n % 4 < 3")
        store.set_retention("t", keep_last=1)
        [plan] = store.vacuum_plan().tables
        assert str(store.vacuum_plan()).startswith(f"{plan}\n")
        assert (plan.path, plan.row_groups_before) == ("t", 20)
        assert str(plan).startswith("t: 20 row groups")
        report = store.checkpoint()
        assert (report.row_groups_before, report.versions_expired) == (20, 20)
        assert report.row_groups_after <= 2
        assert str(report).startswith(f"20 row groups -> {report.row_groups_after}")
        assert report.rows_removed == 1500
        assert store.read("t").to_arrow()["n"].to_pylist() == list(range(3, 2000, 4))
        # This terminates.
        rewritten = [store.checkpoint().tables for _ in range(4)]
        assert rewritten[-1] == 0
        assert all(not plan.windows for plan in store.vacuum_plan().tables)
        assert store.table("t").stat().row_groups == 1
        store.reclaim()
        report = store.verify()
        assert (report.ok, report.faults, report.orphans) == (True, [], [])
    with drumlin.open(folder) as store:
        assert store.read("t").to_arrow()["n"].to_pylist() == list(range(3, 2000, 4))


def test_verify_finds_damage(folder: str) -> None:
    with drumlin.open(folder, inline_bytes=0) as store:
        store.write("t", {"n": range(1000), "s": [str(n) for n in range(1000)]})
    [block] = [file for file in Path(folder).rglob("*") if file.is_file() and "block" in str(file.parent)]
    data = bytearray(block.read_bytes())
    data[len(data) // 3] ^= 1
    block.write_bytes(data)
    with drumlin.open(folder) as store:
        report = store.verify()
        assert not report.ok
        [fault] = report.faults
        assert fault.table == "t"
        with pytest.raises(drumlin.Corrupt):
            store.read("t").to_arrow()
        # The consumer of the stream gets the message.
        with pytest.raises(Exception, match="block"):
            pa.table(store.read("t"))


def test_stat(store: drumlin.Store) -> None:
    store.write("a/t", {"n": range(1000)})
    store.append("a/t", {"n": range(1000)})
    stat = store.stat()
    assert (stat.tables, stat.versions, stat.row_groups, stat.nodes, stat.trash) == (1, 2, 2, 2, 0)
    assert stat.bytes == stat.block_bytes + stat.condemned_bytes + stat.log_bytes
    assert "tables=1" in repr(stat)
    assert stat == store.stat()


# Errors.


def test_kinds_are_classes() -> None:
    kinds = [getattr(drumlin, name) for name in drumlin.__all__]
    errors = {kind.__name__ for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)}
    assert errors == {
        "Error", "NotFound", "AlreadyExists", "InvalidArgument", "SchemaMismatch", "ConditionFailed", "Conflict",
        "Unavailable", "InDoubt", "Corrupt", "Locked", "SnapshotExpired", "Unsupported", "Closed", "Internal", "Abort",
    }  # fmt: skip
    assert issubclass(drumlin.InvalidArgument, ValueError)
    assert issubclass(drumlin.NotFound, LookupError)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert issubclass(kind, drumlin.Error)
            assert kind.__module__ == "drumlin"
            assert pickle.loads(pickle.dumps(kind("why"))).args == ("why",)


def test_threads_share_a_store(store: drumlin.Store) -> None:
    store.write("t", {"n": [0]})
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for at in range(10):
                store.append("t", {"n": [thread * 100 + at]})
                assert store.read("t").to_arrow().num_rows > 1
                store.tree.put(f"nodes/{thread}", at)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert len(store.table("t").versions()) == 81
    assert sorted(store.read("t").to_arrow()["n"].to_pylist()) == sorted(
        [0] + [n * 100 + at for n in range(1, 9) for at in range(10)]
    )


def test_small_appends_travel_in_the_log(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("t", {"n": [0]})
        for n in range(1, 30):
            store.append("t", {"n": [n]})
        assert (store.stat().blocks, store.stat().inline_blocks) == (0, 30)
        assert store.read("t").to_arrow()["n"].to_pylist() == list(range(30))
    with drumlin.open(folder) as store:
        assert store.read("t", as_of=12).to_arrow()["n"].to_pylist() == list(range(13))
        assert store.vacuum_plan().blocks.blocks <= 30
        assert store.checkpoint().row_groups_after == 1
        assert (store.stat().blocks, store.stat().inline_blocks) == (1, 0)
        assert store.read("t").to_arrow()["n"].to_pylist() == list(range(30))


def test_blocks_left_mostly_dead_are_repacked(folder: str) -> None:
    with drumlin.open(folder, inline_bytes=0, checkpoint_log_bytes=0) as store:
        rows = {"n": range(5000), "s": [str(n * 7919 % 5003) for n in range(5000)]}
        store.write_many({f"t/{n}": rows for n in range(30)})
        store.drop("t/1*")
        store.drop("t/2*")
        store.reclaim()
        plan = store.vacuum_plan().blocks
        assert (plan.blocks, plan.blocks_before, plan.left_out) == (1, 1, 0)
        assert plan.bytes_gained > plan.bytes_moved > 0
        assert "1 of 1 blocks repacked" in str(plan)
        before = store.stat().block_bytes
        assert store.checkpoint().row_groups_moved == 8
        store.reclaim()
        assert store.stat().block_bytes < before / 2
        assert store.read("t/7").to_arrow().num_rows == 5000
        assert store.verify().ok
