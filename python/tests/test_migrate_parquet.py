"""Directories of Parquet in, and tables out to Parquet."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from frame_kinds import COLUMNS, assert_same

import drumlin
from drumlin.migrate import Incomplete, from_parquet, path_of, to_parquet
from drumlin.migrate.targets.tables import matcher


def table(*numbers: int, **more: pa.Array) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), **more})


def put(file: Path, rows: pa.Table) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, file)


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    top = tmp_path / "exports"
    put(top / "us" / "AAPL.parquet", table(1, 2))
    put(top / "us" / "odd?name.parquet", table(3))
    put(top / "top.parquet", table(4))
    put(top / "events" / "year=2024" / "month=1" / "a.parquet", table(5, s=pa.array(["x"])))
    put(top / "events" / "year=2025" / "month=2" / "b.parquet", table(6))
    put(top / "single" / "part-0.parquet", table(7))
    put(top / "_temporary" / "no.parquet", table(8))
    (top / "us" / "_SUCCESS").write_text("")
    return top


def test_files_become_tables_and_partitions_columns(exports: Path, store: drumlin.Store) -> None:
    report = from_parquet(exports, store, prefix="in")
    assert report.ok
    assert store.tables() == ["in/events", "in/single", "in/top", "in/us/AAPL", "in/us/odd%3Fname"]
    assert store.read("in/us/AAPL").to_arrow().equals(table(1, 2))
    assert store.read("in/events").to_arrow().to_pylist() == [
        {"n": 5, "s": "x", "year": 2024, "month": 1},
        {"n": 6, "s": None, "year": 2025, "month": 2},
    ]
    [version] = store.table("in/events").versions()
    assert version.metadata["parquet"]["files"] == 2
    again = from_parquet(exports, store, prefix="in")
    assert (again.versions, again.skipped, again.ok) == (0, 5, True)


def test_folders_become_tables(exports: Path, store: drumlin.Store) -> None:
    put(exports / "us" / "MSFT.parquet", pa.table({"n": pa.array([9], pa.int32()), "x": [0.5]}))
    assert from_parquet(exports, store, tables="folders").ok
    assert store.tables() == ["events", "exports", "single", "us"]
    assert store.read("us").to_arrow().to_pydict() == {"n": [1, 2, 9, 3], "x": [None, None, 0.5, None]}


def test_files_that_changed_are_not_taken_for_done(exports: Path, store: drumlin.Store) -> None:
    from_parquet(exports, store)
    put(exports / "top.parquet", table(*range(1000)))
    report = from_parquet(exports, store)
    assert [failure.name for failure in report.failures] == ["top"]
    assert "other files" in report.failures[0].reason
    assert store.read("top").to_arrow().equals(table(4))


def test_what_is_no_parquet_is_named_and_the_rest_comes(exports: Path, store: drumlin.Store) -> None:
    (exports / "broken.parquet").write_bytes(b"PAR1 no PAR1")
    (exports / "lake" / "_delta_log").mkdir(parents=True)
    put(exports / "lake" / "part-1.parquet", table(1))
    (exports / "ice" / "metadata").mkdir(parents=True)
    (exports / "ice" / "metadata" / "v1.metadata.json").write_text("{}")
    put(exports / "clash" / "a.parquet", pa.table({"n": ["text"]}))
    put(exports / "clash" / "b.parquet", table(1))
    report = from_parquet(exports, store, tables="folders")
    assert {failure.name for failure in report.failures} == {"clash", "exports", "ice", "lake"}
    assert store.tables() == ["events", "single", "us"]
    assert "a Delta table, which from_delta brings" in str(report)
    with pytest.raises(Incomplete, match="4 did not come over: clash"):
        from_parquet(exports, store, tables="folders", strict=True)


def test_a_directory_without_files_is_refused(tmp_path: Path, store: drumlin.Store) -> None:
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(drumlin.NotFound):
            from_parquet(place, store)
    with pytest.raises(drumlin.InvalidArgument, match="'files' or 'folders'"):
        from_parquet(tmp_path, store, tables="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_every_kind_go_out_and_come_in_as_they_were(kind: str, tmp_path: Path, store: drumlin.Store) -> None:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"c": COLUMNS[kind](rng, 40), "n": range(40)}, index=pd.RangeIndex(40, name="row"))
    store.write("a/frame", frame)
    assert to_parquet(store, "a/*", tmp_path).failures == []
    with drumlin.open("memory://") as other:
        assert from_parquet(tmp_path, other).failures == []
        expected, found = store.read("a/frame").to_arrow(), other.read("a/frame").to_arrow()
        # NaN is not equal to itself.
        assert repr(found.to_pydict()) == repr(expected.to_pydict())
        kind_here, kind_back = expected.schema.field("c").type, found.schema.field("c").type
        # What Parquet has not: seconds, and dictionaries of what is no text.
        if pa.types.is_dictionary(kind_here):
            kind_here, kind_back = kind_here.value_type, getattr(kind_back, "value_type", kind_back)
            assert str(kind_back).removeprefix("large_") == str(kind_here).removeprefix("large_").replace("[s", "[ms")
        else:
            said = str(kind_here).replace("timestamp[s", "timestamp[ms")
            assert str(kind_back).replace("<element:", "<item:") == said
        ours, theirs = other.read("a/frame").to_pandas(), store.read("a/frame").to_pandas()
        if str(theirs["c"].dtype).startswith("datetime64[s"):
            # Parquet has no seconds: they are milliseconds there.
            ours["c"] = ours["c"].dt.as_unit("s")
        if kind == "arrow dictionary of int8":
            theirs["c"] = theirs["c"].astype("int64")
        assert_same(ours, theirs)


ROWS = pa.table(
    {
        "year": pa.array([2024, 2024, 2025, None], pa.int32()),
        "sym": ["a/b", "c=d", "a/b", None],
        "x": [1.5, None, 2.5, 3.5],
    }
)


def test_partitions(tmp_path: Path, store: drumlin.Store) -> None:
    store.write("deep/t", ROWS)
    report = to_parquet(store, "deep/t", tmp_path, partition_by=["year", "sym"], compression="snappy")
    assert (report.versions, report.rows, report.failures) == (1, 4, [])
    read = pads.dataset(
        tmp_path / "deep" / "t",
        partitioning=pads.partitioning(pa.schema([("year", pa.int32()), ("sym", pa.string())]), flavor="hive"),
    ).to_table()
    keys = [("x", "ascending")]
    assert read.select(ROWS.column_names).sort_by(keys).equals(ROWS.sort_by(keys))
    assert from_parquet(tmp_path, store, prefix="back").ok
    assert store.read("back/deep/t").to_arrow().num_rows == 4


def test_path_columns(tmp_path: Path, store: drumlin.Store) -> None:
    for region in ("us", "e u"):
        for symbol in ("A", "B=C%"):
            store.write(f"p/{region}/{symbol}", {"close": [float(len(region + symbol))]})
    report = to_parquet(store, "p/*/*", tmp_path, path_columns=["region", "symbol"])
    assert report.versions == 4
    read = (
        pads.dataset(tmp_path, partitioning="hive")
        .to_table()
        .sort_by([("region", "ascending"), ("symbol", "ascending")])
    )
    expected = store.scan("p/*/*", path_columns=["region", "symbol"]).to_arrow()
    assert read.to_pylist() == expected.sort_by([("region", "ascending"), ("symbol", "ascending")]).to_pylist()
    for wrong, message in ((["region"], "2 wildcards"), (["a", "b", "c"], "2 wildcards")):
        with pytest.raises(drumlin.InvalidArgument, match=message):
            to_parquet(store, "p/*/*", tmp_path / "x", path_columns=wrong)
    with pytest.raises(drumlin.InvalidArgument, match=r"\*\*"):
        to_parquet(store, "p/**", tmp_path / "x", path_columns=["a"])


def test_nothing_is_replaced_unasked(tmp_path: Path, store: drumlin.Store) -> None:
    store.write("a", table(1, x=pa.array([0.5])))
    store.write("a/b", table(2))
    to_parquet(store, "**", tmp_path)
    store.write("a", table(3, x=pa.array([0.5])))
    store.write("c", table(4))
    with pytest.raises(drumlin.AlreadyExists, match="replace"):
        to_parquet(store, "**", tmp_path)
    assert not (tmp_path / "c").exists()
    assert pq.read_table(tmp_path / "a" / "part-0.parquet")["n"].to_pylist() == [1]
    assert to_parquet(store, "**", tmp_path, replace=True).ok
    assert pq.read_table(tmp_path / "a" / "part-0.parquet")["n"].to_pylist() == [3]
    # Files of another form go, those of the table below stay.
    assert to_parquet(store, "a", tmp_path, replace=True, partition_by=["n"]).ok
    assert sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()) == [
        "a/b/part-0.parquet",
        "a/n=3/part-0.parquet",
        "c/part-0.parquet",
    ]


def test_all_tables_are_of_one_instant(tmp_path: Path, store: drumlin.Store) -> None:
    store.write_many({"a/x": table(1), "a/y": table(1), "gone": table(1)})
    store.snapshot("eod")
    moment = store.table("a/y").versions()[0].time
    store.append("a/x", table(2))
    store.drop("gone")
    store.write("a/z", table(3))
    assert to_parquet(store, "**", tmp_path / "eod", as_of="eod").symbols == 3
    assert pq.read_table(tmp_path / "eod" / "a" / "x").equals(table(1))
    assert to_parquet(store, "a/*", tmp_path / "then", as_of=moment).symbols == 2
    numbered = to_parquet(store, "a/*", tmp_path / "one", as_of=1)
    assert (numbered.symbols, [failure.name for failure in numbered.failures]) == (1, ["a/y", "a/z"])
    seen: list[int] = []

    def progress(done: int, total: int, rows: int, size: int, left: float | None) -> None:
        # Commits during the export do not show in it.
        store.write_many({"a/x": table(9, 9, 9), "a/y": table(9, 9, 9)})
        seen.append(total)

    assert to_parquet(store, "a/*", tmp_path / "now", threads=1, progress=progress).rows == 4
    assert seen == [3, 3, 3]


def test_what_is_wrong_is_said_before_anything_is_written(tmp_path: Path, store: drumlin.Store) -> None:
    store.write("a", table(1))
    for call in (
        lambda: to_parquet(store, "none/*", tmp_path / "x"),
        lambda: to_parquet(store, "a", tmp_path / "x", as_of="no such"),
    ):
        with pytest.raises(drumlin.NotFound):
            call()
    with pytest.raises(drumlin.InvalidArgument, match="no column 'm'"):
        to_parquet(store, "a", tmp_path / "x", partition_by=["m"])
    with pytest.raises(drumlin.InvalidArgument, match="only the columns to partition by"):
        to_parquet(store, "a", tmp_path / "x", partition_by=["n"])
    for wrong, message in (
        ({"replace": 1}, "replace must be True or False, not an int"),
        ({"partition_by": "n"}, r"partition_by must be a list of names, not one name; write \['n'\]"),
        ({"partition_by": 1}, "partition_by must be a list of names, not an int"),
        ({"partition_by": [None]}, "partition_by must be a list of names, each a str; None is None"),
        ({"as_of": True}, "as_of must be a version's number, a snapshot's name or a time, not a bool"),
        ({"as_of": np.float64(1)}, "as_of must be .* not a numpy.float64"),
        ({"threads": 1.5}, "threads must be a number, not a float"),
    ):
        with pytest.raises(TypeError, match=message):
            to_parquet(store, "a", tmp_path / "x", **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pattern must be a str, not a pandas.Timestamp"):
        to_parquet(store, pd.Timestamp("2024-01-01"), tmp_path / "x")
    with pytest.raises(drumlin.NotFound, match="as of -9"):
        to_parquet(store, "a", tmp_path / "x", as_of=-9)
    assert not (tmp_path / "x").exists()


def test_what_parquet_cannot_hold_is_named_and_leaves_nothing(tmp_path: Path, store: drumlin.Store) -> None:
    store.write("good", table(1))
    store.write("bad", pa.table({"i": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}))
    report = to_parquet(store, "*", tmp_path)
    assert [failure.name for failure in report.failures] == ["bad"]
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["part-0.parquet"]


def test_an_export_streams(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "store") as store:
        rng = np.random.default_rng(1)
        for _ in range(8):
            store.append("t", {"x": rng.random(200_000)}) if store.tables() else store.write(
                "t", {"x": rng.random(200_000)}
            )
        pool = pa.default_memory_pool()
        before = pool.bytes_allocated()
        most = 0

        def progress(done: int, total: int, rows: int, size: int, left: float | None) -> None:
            nonlocal most
            most = max(most, pool.bytes_allocated() - before)

        assert to_parquet(store, "t", tmp_path / "out", progress=progress).rows == 1_600_000
        meta = pq.read_metadata(tmp_path / "out" / "t" / "part-0.parquet")
        assert meta.num_row_groups >= 8
        assert most < 8 << 20


PATTERNS = ["**", "*", "a/**", "a/*", "*/b", "a/**/c", "?", "a*", "**/c", "a", "a/b", "*/*/*", "(x)+", "**/b/**"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_mean_what_they_mean_in_the_store(pattern: str, store: drumlin.Store) -> None:
    paths = ["a", "a/b", "a/b/c", "a/c", "ab", "b", "c", "x/b", "x/y/z", "(x)+", "xx", "a/x/y/c", "line\u2028/b"]
    store.write_many({path: {"n": [1]} for path in paths})
    assert sorted(path for path in paths if matcher(pattern).fullmatch(path)) == sorted(store.tables(pattern))


def test_odd_paths_are_folders(tmp_path: Path, store: drumlin.Store) -> None:
    names = ["é日本", "a b", "quote'\"", "back\\slash", path_of("a//b"), "-", "~", "x" * 200, "semi;colon"]
    store.write_many({f"p/{name}": table(at) for at, name in enumerate(names)})
    assert to_parquet(store, "p/**", tmp_path).ok
    with drumlin.open("memory://") as other:
        assert from_parquet(tmp_path, other).ok
        assert {path: other.read(path).to_arrow()["n"].to_pylist() for path in store.tables()} == {
            f"p/{name}": [at] for at, name in enumerate(names)
        }
