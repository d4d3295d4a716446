"""From real ArcticDB libraries: every kind of frame, versions, metadata, snapshots, and what is refused."""

import datetime as dt
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from other_systems import need

import drumlin
from drumlin.migrate import Incomplete, Report, from_arctic, path_of
from drumlin.migrate.sources import arctic

arcticdb = need("arcticdb")


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Any]:
    # ArcticDB's own warnings are no subject here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield arcticdb.Arctic(f"lmdb://{tmp_path / 'arctic'}").create_library("lib")


HOURS = pd.date_range("2024-03-30 22:00", periods=6, freq="h", tz="Europe/Berlin", name="time")
FRAMES: dict[str, Any] = {
    "zone": pd.DataFrame({"close": np.arange(6.0), "sym": ["a", "b"] * 3}, index=HOURS),
    "naive": pd.DataFrame({"n": [1, 2]}, index=pd.DatetimeIndex(["2024-01-01", "2024-01-02 00:00:00.000000001"])),
    "texts": pd.DataFrame({"s": ["a", None, "", "日本 😀"], "missing": pd.Series([None] * 4, dtype=object)}),
    "nan texts": pd.DataFrame({"s": pd.Series(["a", np.nan], dtype=object)}),
    "numbers": pd.DataFrame(
        {kind: np.array([0, 1, 100], kind) for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16")}
        | {"uint32": np.array([0, 1, 2**32 - 1], "uint32"), "uint64": np.array([0, 1, 2**64 - 1], "uint64")}
    ),
    "floats": pd.DataFrame({"f32": np.array([1.5, np.nan], "float32"), "f64": [np.inf, -0.0]}),
    "bools": pd.DataFrame({"b": [True, False]}),
    "times": pd.DataFrame({"t": pd.to_datetime(["2024-01-01", None])}),
    "levels": pd.DataFrame(
        {"n": [1, 2, 3]},
        index=pd.MultiIndex.from_tuples(
            [(pd.Timestamp("2024"), "a"), (pd.Timestamp("2024"), "b"), (pd.Timestamp("2025"), "a")],
            names=["year", "sym"],
        ),
    ),
    "categories": pd.DataFrame({"c": pd.Categorical(["a", None, "b", "a"])}),
    "text index": pd.DataFrame({"n": [1, 2]}, index=["a", "b"]),
    "integer index": pd.DataFrame({"n": [1, 2]}, index=pd.Index([-5, 7], name="id")),
    "range": pd.DataFrame({"n": [1, 2]}, index=pd.RangeIndex(5, 9, 2)),
    "labels": pd.DataFrame({0: [1], 1: [2]}),
    "no index": pd.DataFrame({"n": [1, 2, 3]}),
    "empty": pd.DataFrame({"n": np.array([], "int64"), "s": np.array([], dtype=object)}),
    "empty with index": pd.DataFrame({"n": np.array([], "float64")}, index=pd.DatetimeIndex([], name="t")),
    "no columns": pd.DataFrame(index=pd.date_range("2024", periods=3)),
    "nothing": pd.DataFrame(),
    "series": pd.Series([1.5, 2.5], name="close", index=pd.date_range("2024", periods=2)),
    "series without a name": pd.Series([1, 2]),
    "array": np.arange(5),
    "matrix": np.ones((3, 2)),
}


def as_frame(data: Any) -> pd.DataFrame:
    if isinstance(data, pd.Series):
        return data.to_frame()
    return pd.DataFrame(data) if isinstance(data, np.ndarray) else data


def assert_same(here: pd.DataFrame, there: Any) -> None:
    # The one difference that is documented: the freq of an index is not stored.
    pd.testing.assert_frame_equal(here, as_frame(there), check_freq=False)


def test_frames_of_every_kind_come_back_equal(library: Any, store: drumlin.Store) -> None:
    for name, data in FRAMES.items():
        library.write(name, data, metadata={"name": name, "n": [1, None, 2.5]})
    report = from_arctic(library, store)
    assert (report.failures, report.notes, report.symbols) == ([], [], len(FRAMES))
    assert sorted(store.tables()) == sorted(FRAMES)
    for name in FRAMES:
        assert_same(store.read(name).to_pandas(), library.read(name).data)
        [version] = store.table(name).versions()
        assert version.metadata == {"name": name, "n": [1, None, 2.5]}
    assert store.read("series").to_series().equals(library.read("series").data)


def test_versions_keep_their_order_and_appends_share_rows(library: Any, store: drumlin.Store) -> None:
    frame = pd.DataFrame({"n": np.random.default_rng(1).random(20_000)}, index=pd.date_range("2024", periods=20_000))
    library.write("s", frame.iloc[:10_000], metadata="first")
    for begin in (10_000, 15_000):
        library.append("s", frame.iloc[begin : begin + 5_000], metadata=begin)
    library.update("s", frame.iloc[5:9] * 2)
    library.write("s", frame.rename(columns={"n": "m"}))
    assert from_arctic(library, store, prefix="p/q").versions == 5
    versions = store.table("p/q/s").versions()
    assert [version.kind for version in versions] == ["write", "append", "append", "write", "write"]
    assert [version.metadata for version in versions] == ["first", 10_000, 15_000, None, None]
    for version in versions:
        assert_same(store.read("p/q/s", as_of=version.version).to_pandas(), library.read("s", version.version).data)
        assert f'"version": {version.version}' in str(version.message)
        assert str(library.list_versions("s")[("s", version.version)].date)[:19].replace(" ", "T") in version.message


def test_deleted_versions_leave_gaps_and_numbers_are_told(library: Any, store: drumlin.Store) -> None:
    for n in range(5):
        library.write("s", pd.DataFrame({"n": [n]}))
    library.delete("s", versions=[0, 2, 3])
    assert from_arctic(library, store).versions == 2
    assert [store.read("s", as_of=n).to_pandas()["n"].item() for n in (0, 1)] == [1, 4]
    assert ['"version": 1,' in str(v.message) for v in store.table("s").versions()] == [True, False]
    # Only the newest, and those that snapshots show.
    library.snapshot("now")
    library.write("s", pd.DataFrame({"n": [5]}))
    library.write("s", pd.DataFrame({"n": [6]}))
    from_arctic(library, store, prefix="few", versions=False)
    assert [store.read("few/s", as_of=n).to_pandas()["n"].item() for n in (0, 1)] == [4, 6]


def shown(store: drumlin.Store, library: Any, prefix: str = "") -> None:
    """Every snapshot shows here just what it shows there."""
    here = {snapshot.name: snapshot for snapshot in store.snapshots()}
    assert sorted(here) == sorted(library.list_snapshots())
    for name, snapshot in here.items():
        there = library.list_symbols(snapshot_name=name)
        assert sorted(snapshot.versions) == sorted(path_of(symbol, prefix) for symbol in there)
        for symbol in there:
            result = store.read(path_of(symbol, prefix), as_of=name)
            assert isinstance(result, drumlin.Result)
            assert_same(result.to_pandas(), library.read(symbol, as_of=name).data)


def lists(store: drumlin.Store, library: Any) -> None:
    """Tables and versions here are those that ArcticDB lists."""
    assert store.tables() == sorted(library.list_symbols())
    for symbol in library.list_symbols():
        live = sorted(key.version for key, info in library.list_versions(symbol).items() if not info.deleted)
        versions = store.table(symbol).versions()
        assert len(versions) == len(live)
        for version, number in zip(versions, live, strict=True):
            assert_same(store.read(symbol, as_of=version.version).to_pandas(), library.read(symbol, number).data)


def with_snapshots(library: Any) -> None:
    for n in range(4):
        for symbol in ("a", "b", "dead"):
            library.write(symbol, pd.DataFrame({"n": [n, ord(symbol[0])]}))
        library.snapshot(f"s{n}", metadata={"n": n}, versions={"a": 3 - n} if n == 3 else None)
    # Back in time, and a symbol that is in some only.
    library.snapshot("mixed", versions={"a": 2, "b": 1})
    library.snapshot("few", skip_symbols=["b"])
    library.delete("a", versions=[0, 1])
    # The newest is in snapshots alone.
    library.delete("b", versions=[3])
    library.delete("dead")


def test_snapshots_show_just_what_they_show_there(library: Any, store: drumlin.Store) -> None:
    with_snapshots(library)
    report = from_arctic(library, store)
    assert (report.failures, report.notes) == ([], [])
    assert report.snapshots == sorted(library.list_snapshots())
    shown(store, library)
    lists(store, library)
    # Nothing is left to do.
    again = from_arctic(library, store)
    assert (again.versions, again.snapshots, again.ok) == (0, [], True)
    shown(store, library)
    lists(store, library)
    store.reclaim()
    shown(store, library)


def test_a_snapshot_grows_with_the_symbols_that_are_brought(library: Any, store: drumlin.Store) -> None:
    with_snapshots(library)
    assert from_arctic(library, store, symbols=["a"]).ok
    assert from_arctic(library, store, pattern="[bd]*").ok
    shown(store, library)
    lists(store, library)


def test_a_symbol_that_is_made_again(library: Any, store: drumlin.Store) -> None:
    with_snapshots(library)
    library.write("other", pd.DataFrame({"n": [1]}))
    from_arctic(library, store, symbols=["a", "b", "dead"])
    for n in range(10, 13):
        library.write("dead", pd.DataFrame({"n": [n]}))
    library.snapshot("after", versions={"dead": 5})
    for _ in range(2):
        report = from_arctic(library, store, symbols=["a", "b", "dead"])
        assert (report.failures, report.notes) == ([], [])
        lists_of = [store.read("dead", as_of=n).to_pandas()["n"].item() for n in range(3)]
        assert lists_of == [10, 11, 12]
    shown(store, library)
    # A snapshot cannot grow over what was dropped here: it stays as it was, and the report says so.
    library.snapshot("s4")
    library.delete_snapshot("s0")
    library.snapshot("s0", versions={"other": 0, "dead": 6})
    report = from_arctic(library, store)
    assert [failure.name for failure in report.failures] == ["snapshot 's0'"]
    assert store.read("dead", as_of="s0").to_pandas()["n"].tolist() == [0, ord("d")]


def test_a_snapshot_of_the_same_name_is_left_alone(library: Any, store: drumlin.Store) -> None:
    library.write("a", pd.DataFrame({"n": [0]}))
    library.snapshot("eod")
    library.write("a", pd.DataFrame({"n": [1]}))
    library.delete("a", versions=[0])
    from_arctic(library, store, snapshots=False)
    assert [store.read("a", as_of=n).to_pandas()["n"].item() for n in (0,)] == [1]
    store.drop("a")
    from_arctic(library, store, snapshot_prefix="arctic ")
    assert store.read("a", as_of="arctic eod").to_pandas()["n"].item() == 0
    store.snapshot("eod")
    report = from_arctic(library, store)
    assert [failure.name for failure in report.failures] == ["a"]
    assert store.read("a", as_of="eod").to_pandas()["n"].item() == 1
    with pytest.raises(Incomplete, match="a version 0: it was deleted here"):
        from_arctic(library, store, strict=True)


def test_a_snapshot_that_shows_other_versions_is_left_alone(library: Any, store: drumlin.Store) -> None:
    for n in range(2):
        library.write("a", pd.DataFrame({"n": [n]}))
    library.snapshot("eod", versions={"a": 0})
    from_arctic(library, store, snapshots=False)
    store.snapshot("eod")
    report = from_arctic(library, store)
    assert [failure.name for failure in report.failures] == ["snapshot 'eod'"]
    assert "snapshot_prefix" in report.failures[0].reason
    assert store.read("a", as_of="eod").to_pandas()["n"].item() == 1
    assert from_arctic(library, store, snapshot_prefix="there ").ok
    assert store.read("a", as_of="there eod").to_pandas()["n"].item() == 0


def test_retention_here_that_snapshots_there_contradict_is_reported(library: Any, store: drumlin.Store) -> None:
    for n in range(2):
        library.write("a", pd.DataFrame({"n": [n]}))
    library.snapshot("eod", versions={"a": 0})
    store.set_retention("**", keep_last=1)
    report = from_arctic(library, store)
    assert [(failure.name, failure.version) for failure in report.failures] == [("a", 0)]
    assert "retention" in report.failures[0].reason
    assert report.notes == ["the snapshot 'eod' lacks a version 0"]


def test_a_subset_that_was_migrated_before_goes_on(library: Any, store: drumlin.Store) -> None:
    library.write("a", pd.DataFrame({"n": [0]}))
    first = from_arctic(library, store)
    library.write("a", pd.DataFrame({"n": [1]}))
    library.write("b", pd.DataFrame({"n": [2]}))
    second = from_arctic(library, store)
    assert [(r.versions, r.skipped, r.symbols) for r in (first, second)] == [(1, 0, 1), (2, 1, 2)]
    # What retention has deleted here does not come again.
    store.set_retention("a", keep_last=1)
    library.write("a", pd.DataFrame({"n": [3]}))
    assert from_arctic(library, store).versions == 1
    assert len(store.table("a").versions()) == 1
    third = from_arctic(library, store)
    assert (third.versions, third.ok) == (0, True)


def test_what_is_no_table_is_named_and_the_rest_comes(library: Any, store: drumlin.Store) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return Trap.spring, ()

        @staticmethod
        def spring() -> None:
            raise AssertionError("what is pickled was run")

    library.write("good", pd.DataFrame({"n": [1]}))
    library.write_pickle("model", {"weights": [1, 2]})
    library.write("twice", pd.DataFrame([[1, 2]], columns=["a", "a"]))
    library.write("odd note", pd.DataFrame({"n": [1]}), metadata={"when": dt.date(2024, 1, 1), "pair": (1, 2)})
    library.write("mixed", pd.DataFrame({"s": pd.Series(["a", None, np.nan], dtype=object)}))
    library.write("later", pd.DataFrame({"n": [1]}))
    library.write_pickle("later", "not a table")
    library.write("later", pd.DataFrame({"n": [3]}))
    library.write("cube", np.ones((2, 2, 2)))
    report = from_arctic(library, store)
    wrong = {(failure.name, failure.version): failure.reason for failure in report.failures}
    assert sorted(wrong) == [("cube", 0), ("later", 1), ("model", 0), ("odd note", 0), ("twice", 0)]
    assert "pickled" in wrong["model", 0]
    assert "two columns are called 'a'" in wrong["twice", 0]
    assert "metadata['when']" in wrong["odd note", 0]
    assert "3 dimensions" in wrong["cube", 0]
    assert report.notes == ["mixed version 0: missing values of column 's' are None (they were NoneType and float)"]
    assert store.tables() == ["good", "later", "mixed"]
    assert [v.rows for v in store.table("later").versions()] == [1, 1]
    with pytest.raises(Incomplete, match="5 did not come over: cube version 0") as raised:
        from_arctic(library, store, strict=True)
    assert isinstance(raised.value.report, Report)
    again = from_arctic(library, store, coerce=True)
    assert {failure.name for failure in again.failures} == {"cube", "later", "model", "twice"}
    assert store.table("odd note").versions()[0].metadata == {"when": "2024-01-01", "pair": [1, 2]}
    assert any("metadata['when']" in note for note in again.notes)
    with pytest.raises(AssertionError, match="was run"):
        Trap.spring()


def test_what_others_have_written_stays(library: Any, store: drumlin.Store) -> None:
    library.write("mine", pd.DataFrame({"n": [1]}))
    library.write("theirs", pd.DataFrame({"n": [1]}))
    store.write("p/theirs", {"x": [7]})
    report = from_arctic(library, store, prefix="p")
    assert [(failure.name, failure.version) for failure in report.failures] == [("theirs", None)]
    assert "no migration made it" in report.failures[0].reason
    assert store.read("p/theirs").to_arrow().to_pydict() == {"x": [7]}
    # Nor is another library of the same name mistaken for this one.
    store.append("p/mine", {"n": [2]})
    assert not from_arctic(library, store, prefix="p", symbols=["mine"]).ok


def test_another_library_of_the_same_name_is_distinguished(library: Any, store: drumlin.Store, tmp_path: Path) -> None:
    other = arcticdb.Arctic(f"lmdb://{tmp_path / 'other'}").create_library("lib")
    for place in (library, other):
        place.write("s", pd.DataFrame({"n": [1]}))
    assert from_arctic(library, store).ok
    [failure] = from_arctic(other, store).failures
    assert "two sources" in failure.reason
    assert len(store.table("s").versions()) == 1


def test_frames_that_would_not_come_back_equal_are_stored_as_pyarrow_has_them(
    library: Any, store: drumlin.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ArcticDB itself has no such frames; what reads it may make some.
    odd = pd.DataFrame({"o": pd.Series(["a", b"b", None], dtype=object), "n": [1, 2, 3]})
    odd = odd.set_axis([5, 6, 8])
    given = {"when": pd.Timestamp("2024-01-01"), "pair": (1, np.int64(2))}
    for name in ("changed", "odd"):
        library.write(name, pd.DataFrame({"n": [0]}))
    monkeypatch.setattr(arctic, "frame_of", lambda *_: arctic.SourceFrame(odd, given, "frame"))
    wrong = from_arctic(library, store).failures
    assert ["metadata['pair']: tuple is not a JSON value" in failure.reason for failure in wrong] == [True] * 2
    write = drumlin.Table.write

    def change(self: Any, data: Any, **more: Any) -> Any:
        return write(self, data.assign(n=[1, 2, 4]) if self.path == "changed" else data, **more)

    monkeypatch.setattr(drumlin.Table, "write", change)
    report = from_arctic(library, store, coerce=True)
    [failure] = report.failures
    assert (failure.name, "reads back other rows" in failure.reason) == ("changed", True)
    [note, converted] = [note for note in report.notes if note.startswith("odd")]
    assert note.startswith("odd version 0: metadata['pair']: tuple is not a JSON value")
    assert note.endswith(": it is stored as JSON has it")
    assert converted.startswith(
        "odd version 0: stored as pyarrow converts it (column 'o' holds values of several types"
    )
    assert store.tables() == ["odd"]
    assert store.read("odd").to_pandas()["o"].tolist() == [b"a", b"b", None]
    assert_same(store.read("odd").to_pandas()[["n"]], odd[["n"]])
    assert store.table("odd").versions()[0].metadata == {"when": "2024-01-01T00:00:00", "pair": [1, 2]}


ODD_NAMES = ["/a", "a//b", "..", "a/./b", "x?", "a%2F", "sp ace", "a/b", "a", "~", "'\"", "end/", "%", "100%"]


def test_hostile_names(library: Any, store: drumlin.Store) -> None:
    for at, name in enumerate(ODD_NAMES):
        library.write(name, pd.DataFrame({"n": [at]}))
    library.snapshot("all of it; 'quoted'")
    long = "x" * 254
    library.write(long, pd.DataFrame({"n": [-1]}))
    report = from_arctic(library, store, prefix="in")
    assert report.failures == []
    for at, name in enumerate(ODD_NAMES):
        assert store.read(path_of(name, "in")).to_pandas()["n"].tolist() == [at]
    assert len(store.tables("in/**")) == len(ODD_NAMES) + 1
    assert [snapshot.name for snapshot in store.snapshots()] == ["all of it; 'quoted'"]


def test_what_progress_raises_stops_it_and_another_run_goes_on(library: Any, store: drumlin.Store) -> None:
    for n in range(40):
        library.write(f"s{n}", pd.DataFrame({"n": [n]}))
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int, rows: int, size: int, left: float | None) -> None:
        seen.append((done, total))
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        from_arctic(library, store, progress=progress)
    done = len(store.tables())
    assert 10 <= done < 40
    assert seen[0] == (1, 40)
    report = from_arctic(library, store)
    assert (report.versions, report.skipped) == (40 - done, done)

    def wrong(*_: Any) -> None:
        raise ValueError("no more")

    library.write("one more", pd.DataFrame({"n": [1]}))
    with pytest.raises(ValueError, match="no more"):
        from_arctic(library, store, progress=wrong)


def test_arguments_are_checked(library: Any, store: drumlin.Store) -> None:
    library.write("a", pd.DataFrame({"n": [0]}))
    for wrong, message in (
        ({"symbols": ["b"]}, "no symbol 'b'"),
        ({"symbols": ["a"], "pattern": "*"}, "not both"),
        ({"threads": 0}, "threads=0"),
    ):
        with pytest.raises(drumlin.InvalidArgument, match=message):
            from_arctic(library, store, **wrong)
    for wrong in ({"symbols": "a"}, {"pattern": 1}, {"threads": 1.5}):
        with pytest.raises(TypeError):
            from_arctic(library, store, **wrong)  # type: ignore[arg-type]
    assert store.tables() == []


def test_a_store_that_changes_rows_is_caught(
    library: Any, store: drumlin.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.write("a", pd.DataFrame({"n": [1, 2]}))
    library.write("b", pd.DataFrame({"n": [3, 4]}))
    write = drumlin.Table.write

    def wrong(self: Any, data: Any, **more: Any) -> Any:
        return write(self, data.assign(n=[1, 3]) if self.path == "a" else data, **more)

    monkeypatch.setattr(drumlin.Table, "write", wrong)
    report = from_arctic(library, store)
    assert [failure.name for failure in report.failures] == ["a"]
    assert "reads back other rows" in report.failures[0].reason
    assert store.tables() == ["b"]


def test_a_snapshot_with_symbols_that_are_gone_is_completed(library: Any, store: drumlin.Store) -> None:
    """What one run could not bring another does, also where the rest of the snapshot is of symbols that ArcticDB has
    deleted, whose tables are dropped here, and of which others have been made."""
    for symbol in ("gone", "again"):
        library.write(symbol, pd.DataFrame({"n": [1]}))
    library.write("late", pd.DataFrame({"n": [2]}), metadata={"t": (1, 2)})
    library.snapshot("first")
    library.snapshot("second", skip_symbols=["again"])
    library.delete("gone")
    library.delete("again")
    assert [failure.name for failure in from_arctic(library, store).failures] == ["late"]
    assert store.tables() == []
    store.reclaim()
    library.write("again", pd.DataFrame({"n": [3]}))
    for _ in range(2):
        assert from_arctic(library, store, coerce=True).failures == []
        shown(store, library)
        lists(store, library)
    assert sorted(snapshot.name for snapshot in store.snapshots()) == ["first", "second"]
