"""Small behaviours in edge cases, and their messages."""

import concurrent.futures
import contextlib
import datetime as dt
import decimal
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import drumlin
from drumlin import col

DAYS = pd.date_range("2024-01-03", periods=4, freq="-1D")
LABELS: dict[str, tuple[pd.Index, str]] = {
    "days": (DAYS, "timestamp '2024-01-02'"),
    "zoned": (DAYS.tz_localize("Europe/Oslo"), "timestamp '2024-01-01 23:00Z'"),
    "numbers": (pd.Index([3, 2, 1, 0]), "2"),
    "texts": (pd.Index(["d", "c", "b", "a"]), "'c'"),
    "spans": (pd.to_timedelta([3, 2, 1, 0], unit="h"), "'2 h'"),
    "a range": (pd.RangeIndex(3, -1, -1), "2"),
    "the default": (pd.RangeIndex(4), "2"),
}


# An index without a name.


@pytest.mark.parametrize("kind", LABELS)
def test_an_index_without_a_name_is_sorted_and_filtered_as_index(store: drumlin.Store, kind: str) -> None:
    labels, bound = LABELS[kind]
    frame = pd.DataFrame({"x": np.arange(4.0)}, index=labels)
    ordered = frame.sort_index()
    store.write("t", frame, sort=["index"])
    pd.testing.assert_frame_equal(store.read("t").to_pandas(), ordered, check_freq=False, check_index_type=False)
    for table in (store, store.transaction(read_only=True)):
        some = table.read("t", where=f"index >= {bound}", columns=["x"]).to_pandas()
        pd.testing.assert_frame_equal(some, ordered[2:], check_freq=False, check_index_type=False)
    assert store.read("t", where=f'"index" < {bound} or index = {bound}').to_arrow().num_rows == 3
    assert store.read("t", columns=["index"]).to_arrow().num_columns == 1
    store.append("t", frame)
    store.write("t", frame, sort=["index"])
    with store.transaction() as tx:
        tx.write("u", frame, sort=["index"])
        tx.table("t").delete(f"index < {bound}")
    assert store.read("u").to_pandas().index.is_monotonic_increasing
    assert store.read("t").to_arrow().num_rows == 2
    assert store.table("t").stat().sort == ["__index_level_0__"]
    store.replace("t", frame[:1])
    assert store.table("t").delete(f"index > {bound}").rows >= 1


def test_a_range_with_a_name_can_be_sorted_by(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.RangeIndex(2, name="row"))
    store.write("t", frame, sort=["row"])
    pd.testing.assert_frame_equal(store.read("t").to_pandas(), frame, check_index_type=False)


def test_a_column_called_index_is_meant_first(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"index": [1, 2]}, index=pd.Index([7.5, 8.5]))
    store.write("t", frame)
    assert store.read("t", where="index = 2").to_arrow().num_rows == 1
    store.write("plain", {"n": [1]})
    with pytest.raises(drumlin.InvalidArgument, match="no column index"):
        store.read("plain", where="index = 2").to_arrow()


# Metadata of a version.


def test_metadata_of_numpy_and_pandas(store: drumlin.Store) -> None:
    note = {
        "n": np.int32(7),
        "f": np.float32(0.5),
        "b": np.bool_(True),
        "at": pd.Timestamp("2024-01-02 03:04:05.000000006", tz="UTC"),
        "times": [pd.Timestamp("2024-01-02"), pd.Timestamp("2024-01-02 03:00")],
    }
    expected = {
        "n": 7,
        "f": 0.5,
        "b": True,
        "at": "2024-01-02T03:04:05.000000006+00:00",
        "times": ["2024-01-02T00:00:00", "2024-01-02T03:00:00"],
    }
    assert store.write("t", {"n": [1]}, metadata=note).metadata == expected
    assert store.append("t", {"n": [1]}, metadata=np.uint64(2**64 - 1)).metadata == 2**64 - 1
    with store.transaction() as tx:
        tx.append("t", {"n": [2]}, metadata=pd.Timestamp("2024-01-02"))
    assert store.table("t").versions()[-1].metadata == "2024-01-02T00:00:00"


@pytest.mark.parametrize(
    ("note", "told"),
    [
        ({"a": {1}}, r"metadata\['a'\]: set"),
        ({"a": [1, (2, 3)]}, r"metadata\['a'\]\[1\]: tuple"),
        ({"a": np.arange(3)}, r"metadata\['a'\]: ndarray"),
        ({"a": pd.NaT}, r"metadata\['a'\]: NaTType"),
        ({"a": np.float64("nan")}, r"metadata\['a'\].*nan"),
        ({"a": dt.datetime(2024, 1, 2)}, r"metadata\['a'\]: datetime"),
        ({"a": np.complex64(1)}, r"metadata\['a'\]: complex64"),
        ({"a": pd.Timedelta(1)}, r"metadata\['a'\]: Timedelta"),
        ({1: "a"}, r"metadata: key 1"),
        (b"raw", r"metadata: bytes"),
    ],
)
def test_other_metadata_is_refused_by_key_and_type(store: drumlin.Store, note: Any, told: str) -> None:
    store.table("k").create(pa.schema([("n", pa.int64())]), key=["n"])
    store.write("t", {"n": [1]}, sort=["n"])
    for call in (store.write, store.append, store.replace):
        with pytest.raises(drumlin.InvalidArgument, match=told):
            call("t", {"n": [1]}, metadata=note)
    with pytest.raises(drumlin.InvalidArgument, match=told):
        store.table("k").upsert({"n": [1]}, metadata=note)


# Paths, versions and times.


def test_a_table_of_many_is_named(store: drumlin.Store) -> None:
    store.write_many({"a": {"n": [1]}, "b/c": {"n": [1]}})
    for bad in ({"n": ["x"]}, {"m": [1]}, {"n": [1, "x"]}, 5, pd.DataFrame({"n": [1, "x"]})):
        with pytest.raises((drumlin.Error, TypeError), match="'b/c'"):
            store.append_many({"a": {"n": [2]}, "b/c": bad})  # type: ignore[dict-item]
        with store.transaction() as tx, pytest.raises((drumlin.Error, TypeError), match="'b/c'"):
            tx.append_many({"a": {"n": [2]}, "b/c": bad})  # type: ignore[dict-item]
    assert len(store.table("a").versions()) == 1


def conflict(store: drumlin.Store, read: Any, change: Any) -> str:
    tx = store.transaction()
    read(tx)
    tx.tree.put("mine", 1)
    change()
    with pytest.raises(drumlin.Conflict) as caught:
        tx.commit()
    return str(caught.value)


def test_a_conflict_names_path_and_key(store: drumlin.Store) -> None:
    store.tree.put("a/b", 1)
    store.table("k").create(pa.schema([("n", pa.int64()), ("s", pa.string())]), key=["n"])
    store.table("k").upsert({"n": [7], "s": ["x"]})
    told = conflict(store, lambda tx: tx.tree.get("a/b"), lambda: store.tree.put("a/b", 2))
    assert "'a/b'" in told
    told += conflict(store, lambda tx: tx.tree.get_many("a/*"), lambda: store.tree.put("a/c", 2))
    assert "'a/*'" in told
    keys = conflict(store, lambda tx: tx.table("k").get(7), lambda: store.table("k").upsert({"n": [7], "s": ["y"]}))
    assert "'k'" in keys
    assert "7" in keys
    many = conflict(
        store, lambda tx: tx.table("k").get_many([7, 8, 9]), lambda: store.table("k").upsert({"n": [8], "s": ["y"]})
    )
    assert "'k'" in many
    assert "8" in many
    rows = conflict(store, lambda tx: tx.read("k").to_arrow(), lambda: store.table("k").upsert({"n": [1], "s": ["y"]}))
    assert "'k'" in rows
    assert '("' not in told + keys + many + rows


def test_types_that_can_carry_an_order_are_named(store: drumlin.Store) -> None:
    rows = {"f": [1.5], "l": [[1]]}
    for column in rows:
        with pytest.raises(drumlin.InvalidArgument, match=f"'{column}'.*expected booleans, integers"):
            store.write("t", rows, sort=[column])
        schema = pa.table(rows).schema
        with pytest.raises(drumlin.InvalidArgument, match=f"'{column}'.*expected booleans, integers") as caught:
            store.table("t").create(schema, key=[column])
        assert "sort" not in str(caught.value)


def test_a_key_is_not_called_a_sort_column(store: drumlin.Store) -> None:
    schema = pa.schema([("n", pa.int64())])
    for key in (["m"], ["n", "n"]):
        with pytest.raises(drumlin.InvalidArgument, match="key column") as caught:
            store.table("t").create(schema, key=key)
        assert "sort" not in str(caught.value)
        with pytest.raises(drumlin.InvalidArgument, match="sort column") as caught:
            store.table("t").create(schema, sort=key)
        assert "key" not in str(caught.value)


@pytest.mark.parametrize(
    "where", ['s = "x"', '"x" = s', 's in ("x", "y")', 's like "x"', "s > x", 's between "x" and s']
)
def test_a_text_in_double_quotes_is_pointed_out(store: drumlin.Store, where: str) -> None:
    store.write("t", {"s": ["x"]})
    with pytest.raises(drumlin.InvalidArgument, match="a string needs single quotes: 'x'"):
        store.read("t", where=where).to_arrow()


def test_times_as_text_and_times_too_old(store: drumlin.Store) -> None:
    before = dt.datetime.now(dt.UTC)
    store.write("t", {"n": [1]})
    for text in ("2024-01-01", "2024-01-01 10:00", "2024-01-01T10:00:00Z"):
        with pytest.raises(drumlin.NotFound, match="no version existed at 2024-01-01"):
            store.read("t", as_of=text)
    with pytest.raises(drumlin.NotFound, match="snapshot '20240101' does not exist .a time looks like 2026-01-31"):
        store.read("t", as_of="20240101")
    for old in (before - dt.timedelta(days=1), dt.datetime(1601, 1, 1), dt.datetime(1, 1, 1)):
        for call in (store.table("t").read, store.table("t").schema):
            with pytest.raises(drumlin.NotFound, match=r"'t'.*oldest version, 0, was made at 20"):
                call(as_of=old)  # type: ignore[operator]


def test_an_upsert_of_nothing_does_nothing(store: drumlin.Store) -> None:
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    store.table("k").create(schema, key=["n"])
    store.table("k").upsert({"n": [1], "s": ["x"]})
    seq = store.seq
    nothing: list[Any] = [
        [],
        {"n": [], "s": []},
        pa.table({"n": [], "s": []}, schema=schema),
        pd.DataFrame({"n": [], "s": []}),
    ]
    for rows in nothing:
        table = store.table("k")
        for call in (table.upsert, table.insert, table.delete_keys):
            assert call(rows).rows == 0  # type: ignore[operator]
        with store.transaction() as tx:
            assert tx.table("k").upsert(rows).rows == 0
    assert store.read("k").to_arrow().num_rows == 1
    assert len(store.table("k").versions()) == 1
    assert store.seq == seq


# Places of stores.


def test_places_of_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    for mode in ("create", "write", "read"):
        for place in (file, file / "below"):
            with pytest.raises(drumlin.InvalidArgument, match="file"):
                drumlin.open(place, mode=mode)  # type: ignore[arg-type]
    monkeypatch.setenv("HOME", str(tmp_path))
    with drumlin.open("~/deep/er/store") as store:
        store.write("t", {"n": [1]})
        assert store.uri == str(tmp_path / "deep" / "er" / "store")
    with drumlin.open("file://" + str(tmp_path / "other" / "store")) as store:
        store.write("t", {"n": [1]})
    for mode in ("write", "read"):
        missing = tmp_path / "no" / "where"
        with pytest.raises(drumlin.NotFound, match=str(missing)) as caught:
            drumlin.open(missing, mode=mode)  # type: ignore[arg-type]
        assert ".tmp" not in str(caught.value)
    assert not (tmp_path / "no").exists()


def test_a_folder_that_is_not_there_is_named(folder: str, tmp_path: Path) -> None:
    program = "import sys; from drumlin._cli import main; sys.exit(main())"
    with drumlin.open(folder, inline_bytes=0) as store:
        store.write("t", {"n": [1]})
        store.tree.put("n", 1)
    missing = tmp_path / "no" / "where"
    for command in (["export", folder, "t", f"{missing}/t.csv"], ["export-nodes", folder, "**", f"{missing}/n.jsonl"]):
        told = subprocess.run([sys.executable, "-c", program, *command], capture_output=True, text=True, check=False)
        assert told.returncode == 1
        assert str(missing) in told.stderr, told.stderr
        assert "tmp" not in told.stderr.replace(str(tmp_path), ""), told.stderr
    with drumlin.open(folder, inline_bytes=0) as store:
        shutil.rmtree(folder)
        with pytest.raises(drumlin.Error, match="the store here has another history") as caught:
            store.write("u", {"n": list(range(10))})
        assert ".tmp" not in str(caught.value)


def test_damage_names_the_table(folder: str) -> None:
    with drumlin.open(folder, inline_bytes=0) as store:
        store.write("some/table", {"n": list(range(1000))}, sort=["n"])
        store.table("k").create(pa.schema([("n", pa.int64())]), key=["n"])
        store.table("k").insert(pa.table({"n": range(200_000)}))
        store.checkpoint()
    for block in Path(folder).glob("blocks/*/*.blk"):
        content = bytearray(block.read_bytes())
        for at in range(70, len(content), 50):
            content[at] ^= 1
        block.write_bytes(content)
    with drumlin.open(folder, mode="read") as store:
        for path, read in (
            ("some/table", lambda: store.read("some/table").to_arrow()),
            ("some/table", lambda: store.read("some/table").to_pandas()),
            ("some/table", lambda: store.read_many(["some/table"]).to_arrow()),
            ("some/table", lambda: list(store.read("some/table", where="n = 5"))),
            ("some/table", lambda: pa.table(store.read("some/table"))),
            ("k", lambda: store.table("k").get_many([5]).rows.to_arrow()),
            ("k", lambda: store.table("k").get(5)),
        ):
            with pytest.raises((drumlin.Corrupt, OSError, pa.ArrowInvalid), match=f"'{path}'"):
                read()
    with drumlin.open(folder) as store:
        for path, change in (
            ("some/table", lambda: store.table("some/table").delete("n = 5")),
            ("some/table", lambda: store.replace("some/table", {"n": [5]})),
            ("k", lambda: store.table("k").insert({"n": [5]})),
        ):
            with pytest.raises(drumlin.Corrupt, match=f"'{path}'"):
                change()


# Values.


def test_integers_beyond_64_bits_are_refused(store: drumlin.Store) -> None:
    for data in (pd.DataFrame({"a": [2**70]}), pd.DataFrame({"a": [1]}, index=[2**70]), {"a": [2**70]}, [{"a": 2**70}]):
        for call in (lambda d: store.write("t", d), lambda d: store.write_many({"t": d})):
            with pytest.raises(drumlin.InvalidArgument):
                call(data)
    store.table("k").create(pa.schema([("a", pa.int64())]), key=["a"])
    table = store.table("k")
    for call in (table.upsert, table.get_many, table.delete_keys):
        with pytest.raises(drumlin.InvalidArgument):
            call({"a": [2**70]})  # type: ignore[operator]
    with pytest.raises(drumlin.InvalidArgument):
        store.table("k").get(2**70)


def test_spans_compare_with_literals(store: drumlin.Store) -> None:
    store.write("t", pd.DataFrame({"s": pd.to_timedelta([1, 90, 7200], unit="s")}))
    for where in (
        "s > '1 m'",
        col("s") > dt.timedelta(minutes=1),
        col("s") >= pd.Timedelta("90s"),
        "s between '90 s' and '2 h'",
    ):
        assert store.read("t", where=where).to_arrow().num_rows == 2


# A process without file descriptors.


@pytest.fixture
def starve() -> Iterator[Any]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    def begin() -> None:
        used = max(int(name) for name in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 1, limits[1]))
        taken.extend(iter_descriptors())

    def end() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in taken:
            os.close(descriptor)
        taken.clear()

    def iter_descriptors() -> Iterator[int]:
        while True:
            try:
                yield os.open("/dev/null", os.O_RDONLY)
            except OSError:
                return

    taken: list[int] = []
    yield begin, end
    end()


def test_a_reclaim_without_descriptors_says_what_it_did(folder: str, starve: Any) -> None:
    begin, end = starve
    with drumlin.open(folder, inline_bytes=0) as store:
        store.write("t", {"n": [1]})
        store.drop("t")
        begin()
        try:
            report = store.reclaim()
        finally:
            end()
        assert report.tables == 1
        assert any("Too many open files" in why for _, why in report.failures)
        assert store.trash() == []
        report = store.reclaim()
        assert (report.blocks, report.failures) == (1, [])


def test_a_store_that_is_open_here_is_pointed_out(folder: str) -> None:
    with drumlin.open(folder), pytest.raises(drumlin.Locked, match="this process"):
        drumlin.open(folder, inline_bytes=5)
    program = "import sys, drumlin; drumlin.open(sys.argv[1])"
    with drumlin.open(folder):
        told = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=False)
        assert f"open for writing by process {os.getpid()}" in told.stderr


def test_whole_numbers_and_spans_become_the_nearest_value_or_none() -> None:
    with drumlin.open("memory://") as store:
        store.write("f", {"f": [0.0]})
        for number in (31183905647592515, 2**64 - 1, -(2**53) - 1, 10**30):
            store.table("f").update({"f": number})
            assert store.read("f").to_arrow()["f"].to_pylist() == [float(number)]
        with pytest.raises(drumlin.InvalidArgument):
            store.table("f").update({"f": 10**400})
        spans = store.table("s")
        spans.create(pa.schema([("k", pa.duration("us")), ("v", pa.int64())]), key=["k"])
        spans.upsert({"k": dt.timedelta(days=-67519912, seconds=28252, microseconds=241919), "v": 1})
        for call in (spans.get, lambda key: spans.delete_keys([key]), lambda key: spans.upsert({"k": key, "v": 2})):
            with pytest.raises(drumlin.InvalidArgument):
                call(dt.timedelta.max)
        assert store.read("s").to_arrow().num_rows == 1


def test_nulls_among_the_values_of_a_dictionary_are_nulls_in_every_form() -> None:
    keyed = pa.array(["x", None]).dictionary_encode(null_encoding="encode")
    for data_type in (pa.string(), pa.large_string(), pa.string_view()):
        with drumlin.open("memory://") as store:
            store.write("t", pa.table({"v": pa.array(["p"], data_type)}))
            store.append("t", pa.table({"v": keyed}))
            assert store.read("t").to_arrow()["v"].to_pylist() == ["p", "x", None], data_type
            assert store.read("t", where="v is null").to_arrow().num_rows == 1
            store.write("q/a", pa.table({"v": keyed}))
            store.write("q/b", pa.table({"v": pa.array(["p"], data_type)}))
            both = store.scan("q/*")
            assert sorted(both.to_arrow()["v"].to_pylist(), key=str) == [None, "p", "x"]
            assert both.count_rows("v is null") == 1


@pytest.mark.parametrize("keep", [1, 2])
def test_a_difference_is_read_though_retention_lets_its_versions_go(keep: int) -> None:
    with drumlin.open("memory://") as store:
        store.set_retention("t", keep_last=keep)
        table = store.table("t")
        table.create(pa.schema([("k", pa.int64()), ("v", pa.int64())]), key=["k"])
        table.upsert({"k": [1, 2], "v": [1, 1]})
        store.checkpoint()
        since = table.versions()[-1].version
        table.upsert({"k": [2], "v": [5]})
        assert [row["v"] for row in table.diff(since).to_arrow().to_pylist()] == [1, 5]


def test_a_handle_writes_nothing_into_a_store_made_in_its_place(tmp_path: Path) -> None:
    """The log's segment still has a name in a copy made by links, and not in the folder any more."""
    folder, copy = tmp_path / "s", tmp_path / "copy"
    with contextlib.suppress(drumlin.Error), drumlin.open(str(folder)) as store:
        store.tree.put("a", 1)
        shutil.copytree(folder, copy, copy_function=os.link)
        # So that the log is copied from, and goes on in a segment of its own.
        store.tree.put("a", 2)
        shutil.rmtree(folder)
        with drumlin.open(str(folder)) as other:
            other.tree.put("b", 1)
        before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        with pytest.raises(drumlin.Error, match="the store here has another history"):
            store.tree.put("a", 3)
        assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
    with drumlin.open(str(folder)) as other:
        assert other.tree.get("b") == 1
        assert other.verify().ok


def test_an_update_of_what_pandas_wrote_is_one_version() -> None:
    with drumlin.open("memory://") as store:
        store.write("t", pd.DataFrame({"n": [1], "c": pd.Categorical(["a"], ordered=True)}))
        store.table("t").update({"n": 2})
        assert [version.kind for version in store.table("t").versions()] == ["write", "update"]


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (pa.int64(), 1.5),
        (pa.int8(), decimal.Decimal("2.5")),
        (pa.float64(), 2**53 + 1),
        (pa.decimal128(6, 2), decimal.Decimal("1.255")),
        (pa.date64(), dt.datetime(2020, 1, 1, 5)),
    ],
)
def test_a_merge_takes_the_values_that_an_append_takes(data_type: pa.DataType, value: Any) -> None:
    with drumlin.open("memory://") as store:
        table = store.table("t")
        table.create({"id": pa.int64(), "v": data_type, "t": pa.timestamp("us")}, key=["id"])
        table.upsert({"id": [1], "v": [None], "t": [dt.datetime(2020, 1, 1, 5)]})
        before = table.versions(), store.read("t").to_arrow()
        frame = {"id": [1, 2], "v": [value, value], "t": [None, None]}
        with pytest.raises(drumlin.SchemaMismatch):
            store.append("t", frame)
        for merge in (
            table.merge(frame).when_matched(update=True),
            table.merge(frame).when_not_matched(insert=True),
            table.merge(frame).when_matched(update=True).when_not_matched(insert=True),
        ):
            with pytest.raises(drumlin.SchemaMismatch):
                merge.execute()
        if pa.types.is_date64(data_type):
            with pytest.raises(drumlin.InvalidArgument, match="time of day"):
                table.update({"v": col("t")})
        assert (table.versions(), store.read("t").to_arrow()) == before


def test_a_merge_takes_integers_that_fit_into_fewer_bits() -> None:
    with drumlin.open("memory://") as store:
        table = store.table("t")
        table.create({"id": pa.int64(), "v": pa.int8()}, key=["id"])
        table.merge({"id": [1], "v": [127]}).when_not_matched(insert=True).execute()
        with pytest.raises(drumlin.SchemaMismatch, match="'v'.*int8.*int64"):
            table.merge({"id": [1], "v": [128]}).when_matched(update=True).execute()
        assert table.read().to_arrow().to_pylist() == [{"id": 1, "v": 127}]


def test_threads_open_and_close_one_store(folder: str) -> None:
    def often(number: int) -> None:
        for each in range(50):
            with drumlin.open(folder) as store:
                store.tree.put(f"{number}/{each}", each)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(often, range(4)))
    with drumlin.open(folder) as store:
        assert len(store.tree.list("*/*")) == 200


def test_a_lock_file_that_is_removed_lets_no_second_writer_in(folder: str) -> None:
    program = f"import drumlin; drumlin.open({folder!r}).tree.put('other', 1)"
    with drumlin.open(folder) as store:
        store.tree.put("n", 1)
        (Path(folder) / "lock").unlink()
        told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert told.returncode == 1
        assert "Locked" in told.stderr
        assert "lock file was removed" in told.stderr
        store.tree.put("n", 2)
    with drumlin.open(folder) as store:
        assert [store.tree.get("n"), store.verify().ok] == [2, True]
