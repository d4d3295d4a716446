"""Frames of plain numbers come straight from the store: they must be what pyarrow makes of the same rows."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import drumlin

STAMPS = pd.date_range("2026-01-01", periods=6, freq="h")
FRAMES: dict[str, pd.DataFrame] = {
    "floats": pd.DataFrame({"a": [0.5, 1.5, -0.0], "b": [np.inf, np.nan, 3.0]}),
    "one column": pd.DataFrame({"a": np.arange(5)}),
    "mixed": pd.DataFrame(
        {
            "f": np.array([1.5, 2.5], np.float32),
            "i": [1, 2],
            "g": [0.25, 0.5],
            "u": np.array([1, 255], np.uint8),
            "t": pd.to_datetime(["2026-01-01", None]),
            "b": [True, False],
            "h": np.array([-1, 7], np.int16),
        }
    ),
    "a stamp for each row": pd.DataFrame({"x": np.arange(6.0), "y": np.arange(6)}, index=STAMPS),
    "a named index": pd.DataFrame({"x": np.arange(6.0)}, index=pd.Index(np.arange(6) * 2, name="key")),
    "an index that is a column's type": pd.DataFrame({"x": np.arange(6.0)}, index=np.arange(6) / 2),
    "seconds": pd.DataFrame({"s": STAMPS.as_unit("s"), "ms": STAMPS.as_unit("ms"), "us": STAMPS.as_unit("us")}),
    "a range": pd.DataFrame({"x": np.arange(4)}, index=pd.RangeIndex(10, 18, 2)),
    "a named range": pd.DataFrame({"x": np.arange(4)}, index=pd.RangeIndex(4, name="row")),
    "no rows": pd.DataFrame({"x": np.array([], np.float64), "i": np.array([], np.int32)}),
    "named columns": pd.DataFrame([[1.0, 2.0]], columns=pd.Index(["x", "y"], name="which")),
    "numbered columns": pd.DataFrame([[1.0, 2.0]], columns=[0, 1]),
    "columns of two levels": pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
    "an index of two levels": pd.DataFrame({"x": [1.0]}, index=pd.MultiIndex.from_tuples([(1, 2)], names=["p", "q"])),
    "only an index": pd.DataFrame(index=pd.Index([1, 2, 3], name="k")),
    "nullable": pd.DataFrame({"i": pd.array([1, 2], "Int64"), "f": [1.0, 2.0]}),
    "nullable, with nulls": pd.DataFrame({"i": pd.array([1, None], "Int64"), "b": pd.array([True, None], "boolean")}),
    "objects": pd.DataFrame({"o": [1, None], "x": [1.0, 2.0]}, dtype=object),
    "text beside": pd.DataFrame({"x": [1.0, 2.0], "s": ["a", "b"]}),
    "a zone": pd.DataFrame({"x": np.arange(6.0)}, index=STAMPS.tz_localize("Europe/Berlin")),
    "wide": pd.DataFrame(np.arange(600.0).reshape(3, 200), columns=[f"c{n}" for n in range(200)]),
    "several row groups": pd.DataFrame({"x": np.arange(300_000.0), "i": np.arange(300_000), "y": np.arange(300_000.0)}),
}
TABLES: dict[str, pa.Table] = {
    "arrow": pa.table({"x": [1.5, 2.5], "i": [1, 2]}),
    "nulls": pa.table({"x": [1.5, None], "i": pa.array([1, 2], pa.int8())}),
    "nulls in numbers without one": pa.table({"x": [1.5, 2.0], "i": [1, None]}),
    "nulls in bools": pa.table({"b": [True, None], "x": [1.0, 2.0]}),
    "times": pa.table({"t": pa.array([1, None], pa.timestamp("us")), "d": pa.array([1, None], pa.timestamp("ns"))}),
    "days": pa.table({"d": pa.array([1, None], pa.date32())}),
    "decimals": pa.table({"d": pa.array([1, None], pa.decimal128(10, 2))}),
    "halves": pa.table({"h": pa.array(np.array([1, 2], np.float16))}),
}


def same(ours: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(ours, other, check_exact=True, check_freq=False)
    assert type(ours.index) is type(other.index)
    assert type(ours.columns) is type(other.columns)
    assert list(ours.dtypes) == list(other.dtypes)


def by_arrow(result: drumlin.Result) -> pd.DataFrame:
    return result.to_pandas(ignore_metadata=False)


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_comes_back(store: drumlin.Store, name: str) -> None:
    frame = FRAMES[name]
    store.write("t", frame)
    ours = store.read("t").to_pandas()
    pd.testing.assert_frame_equal(ours, frame, check_exact=True, check_freq=False)
    assert type(ours.index) is type(frame.index)
    # What is made of it by pyarrow where there is nothing to restore.
    if name not in ("objects", "nullable", "nullable, with nulls", "numbered columns", "only an index"):
        same(ours, by_arrow(store.read("t")))
    same(store.read_many(["t"]).to_pandas()["t"], ours)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_becomes_what_pyarrow_makes_of_it(store: drumlin.Store, name: str) -> None:
    store.write("t", TABLES[name])
    same(store.read("t").to_pandas(), TABLES[name].to_pandas())


def test_rows_that_are_not_all_that_were_written(store: drumlin.Store) -> None:
    frame = FRAMES["several row groups"]
    store.write("t", frame)
    for options in ({"where": "i % 3 = 0"}, {"limit": 7}, {"tail": 130_000}, {"columns": ["y"]}):
        same(store.read("t", **options).to_pandas(), by_arrow(store.read("t", **options)))  # type: ignore[arg-type]
    store.table("t").delete("i % 1000 < 3")
    store.append("t", frame[:5])
    ours = store.read("t").to_pandas()
    same(ours, by_arrow(store.read("t")))
    assert len(ours) == 300_000 - 900 + 5
    assert ours.index.equals(pd.RangeIndex(len(ours)))
    store.write("s", FRAMES["a stamp for each row"])
    same(store.read("s", columns=["y"]).to_pandas(), FRAMES["a stamp for each row"][["y"]])
    store.write("w", FRAMES["mixed"])
    for columns in (["g", "f"], ["t"], ["b", "h", "u"]):
        same(store.read("w", columns=columns).to_pandas(), FRAMES["mixed"][columns])


def test_sorted_tables_and_rows_by_key(store: drumlin.Store) -> None:
    rng = np.random.default_rng(7)
    for n in range(3):
        frame = pd.DataFrame({"i": rng.integers(0, 50, 100), "x": rng.random(100)})
        store.write("s", frame, sort=["i"]) if n == 0 else store.append("s", frame)
    same(store.read("s").to_pandas(), by_arrow(store.read("s")))
    store.table("k").create(pa.schema([("i", pa.int64()), ("x", pa.float64())]), key=["i"])
    store.table("k").upsert(pd.DataFrame({"i": np.arange(100), "x": np.arange(100.0)}))
    store.checkpoint()
    store.table("k").upsert({"i": 5, "x": 0.5})
    same(store.read("k").to_pandas(), by_arrow(store.read("k")))
    assert store.read("k").to_pandas().loc[5, "x"] == 0.5


def test_a_frame_is_the_callers_own(store: drumlin.Store) -> None:
    store.write_many({"a": FRAMES["floats"], "b": FRAMES["mixed"]})
    results = store.read_many(["a", "b"])
    frames = results.to_pandas()
    for name, frame in frames.items():
        frame.iloc[0, 0] = 77
        frame["new"] = 1
        assert frame.iloc[0, 0] == 77
        frame.columns.name = "mine"
        assert store.read(name).to_pandas().columns.name is None
        # Nobody else has its memory.
        assert store.read(name).to_pandas().iloc[0, 0] != 77
        assert results[name].to_pandas().iloc[0, 0] != 77


def test_rows_are_numbered_as_those_that_were_read(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"x": np.arange(3)}, index=pd.RangeIndex(5, 8))
    store.write("t", frame)
    result, other = store.read("t"), store.read("t")
    store.drop("t")
    pd.testing.assert_frame_equal(result.to_pandas(), frame)
    store.write("t", frame[:2])
    pd.testing.assert_frame_equal(result.to_pandas(), frame)
    pd.testing.assert_frame_equal(other.to_pandas(), frame)
    store.write("u", frame)
    store.append("u", frame)
    appended = store.read("u", as_of=1)
    store.drop("u")
    for _ in range(3):
        store.write("u", pd.concat([frame, frame]))
    assert appended.to_pandas().index.equals(pd.RangeIndex(6))


def test_frames_whose_types_arrow_has_not_are_read_once(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"i": pd.array([1, 2], "Int64"), "b": pd.array([True, False], "boolean"), "x": [1.0, 2.0]})
    store.write("n", frame)
    store.set_retention("n", keep_last=1)
    result = store.read("n")
    store.write("n", frame[:1])
    store.reclaim()
    pd.testing.assert_frame_equal(result.to_pandas(), frame)


def test_a_result_is_stopped_by_itself(store: drumlin.Store) -> None:
    store.write_many({"a": FRAMES["floats"], "b": FRAMES["floats"]})
    results = store.read_many(["a", "b"])

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    from drumlin import _drumlin

    with pytest.raises(KeyboardInterrupt):
        _drumlin.collect_many([(results["a"]._reading, None, True)], stop)
    assert len(results["b"].to_pandas()) == 3
    assert len(results["a"].to_pandas()) == 3


def test_many_tables_at_once(store: drumlin.Store) -> None:
    frames = {f"t/{n}": frame for n, frame in enumerate(FRAMES.values())}
    store.write_many(frames)
    paths = [*frames, "none"]
    results = store.read_many(paths, return_exceptions=True)
    assert list(results) == paths
    for ours in (results.to_pandas(), results.to_arrow()):
        assert list(ours) == paths
        assert isinstance(ours["none"], drumlin.NotFound)
    made = results.to_pandas()
    for path, frame in frames.items():
        pd.testing.assert_frame_equal(made[path], frame, check_exact=True, check_freq=False)
    # Each as by itself.
    tables = results.to_arrow()
    assert all(tables[path] == results[path].to_arrow() for path in frames)
    polars = pytest.importorskip("polars")
    some = store.read_many(["t/0", "t/2"])
    assert all(isinstance(frame, polars.DataFrame) for frame in some.to_polars().values())
    assert some.to_polars()["t/0"].equals(some["t/0"].to_polars())
    with pytest.raises(TypeError):
        some.to_pandas(no_such_option=1)
    assert store.read_many([]).to_pandas() == {}


def test_versions_that_are_gone_are_told(store: drumlin.Store) -> None:
    store.write_many({"a": FRAMES["floats"], "b": FRAMES["floats"]})
    results = store.read_many(["a", "b"])
    results.to_pandas()
    store.drop("b")
    store.reclaim()
    with pytest.raises(drumlin.SnapshotExpired, match="'b'"):
        results.to_pandas()
    assert len(results["a"].to_pandas()) == 3


def test_a_frame_whose_arrays_cannot_say_it(store: drumlin.Store) -> None:
    # Beside tables whose can.
    tables: dict[str, Any] = {f"t/{n}": table for n, table in enumerate([*TABLES.values(), *TABLES.values()])}
    store.write_many(tables)
    made = store.read_many(list(tables)).to_pandas()
    for path, table in tables.items():
        same(made[path], table.to_pandas())
