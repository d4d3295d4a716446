"""A pandas frame comes back unchanged."""

import datetime as dt
import decimal
import string
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from pandas.testing import assert_frame_equal, assert_index_equal

import drumlin

NUMPY = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "bool"]


def objects(*values: object) -> pd.Series:
    return pd.Series([*values, None], dtype=object)


FRAMES = {
    "numpy": pd.DataFrame({name: np.array([0, 1, 100], dtype=name) for name in NUMPY}),
    "floats": pd.DataFrame({"f": [np.nan, np.inf, -np.inf, -0.0]}),
    "nullable": pd.DataFrame(
        {name: pd.array([1, None, 3], dtype=name) for name in ("Int8", "Int64", "UInt32", "Float64")}
    ),
    "nullable boolean": pd.DataFrame({"b": pd.array([True, None, False], dtype="boolean")}),
    "str": pd.DataFrame({"s": ["a", None, "ü", ""]}),
    "string": pd.DataFrame({"s": pd.array(["a", None], dtype="string[pyarrow]")}),
    "objects": pd.DataFrame(
        {
            "str": objects("a"),
            "int": objects(1),
            "bool": objects(True),
            "decimal": objects(decimal.Decimal("1.50")),
            "date": objects(dt.date(2020, 1, 1)),
            "time": objects(dt.time(1, 2, 3)),
            "datetime": objects(dt.datetime(2020, 1, 1)),
            "bytes": objects(b"\0"),
            "None": objects(None),
            "dict": objects({"a": 1}),
        }
    ),
    "datetime": pd.DataFrame({"t": pd.to_datetime(["2020-01-01", None]), "d": pd.to_timedelta([1, None], unit="s")}),
    "datetime ns": pd.DataFrame({"t": pd.to_datetime(["2020-01-01T00:00:00.123456789"]).as_unit("ns")}),
    "zones": pd.DataFrame({"t": pd.date_range("2020-10-25", periods=4, freq="h", tz="Europe/Oslo")}),
    "categorical": pd.DataFrame(
        {
            "ordered": pd.Categorical(["b", None, "a"], categories=["z", "b", "a"], ordered=True),
            "numbers": pd.Categorical([3, 1, 3]),
        }
    ),
    "period": pd.DataFrame({"p": pd.period_range("2020-01", periods=3, freq="M")}),
    "interval": pd.DataFrame({"i": pd.interval_range(0, 3)}),
    "no rows": pd.DataFrame({"a": np.array([], dtype="int64"), "s": pd.Series([], dtype="str")}),
    "no rows, categorical": pd.DataFrame({"c": pd.Categorical([], categories=["x", "y"])}),
    "int names": pd.DataFrame({1: [1], 0: [2]}),
    "mixed names": pd.DataFrame({"a": [1], 0: [2], 1.5: [3]}),
    "tuple names": pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["u", "v"])),
    "date names": pd.DataFrame([[1, 2]], columns=pd.date_range("2020", periods=2)),
    "named names": pd.DataFrame([[1, 2]], columns=pd.Index(["a", "b"], name="names")),
}

INDEXES = {
    "range": pd.RangeIndex(3),
    "range with a name": pd.RangeIndex(3, name="r"),
    "range with a step": pd.RangeIndex(5, 11, 2),
    "range that falls": pd.RangeIndex(3, 0, -1),
    "int": pd.Index([5, 3, 3]),
    "float": pd.Index([0.5, np.nan, 1.5], name="f"),
    "str": pd.Index(["x", "y", "z"], name="s"),
    "object": pd.Index(["x", None, "z"], dtype=object),
    "datetime": pd.DatetimeIndex(["2020-01-01", "2021-01-01", "2020-06-01"], name="t"),
    "datetime with zone": pd.date_range("2020", periods=3, tz="America/New_York").rename("t"),
    "timedelta": pd.to_timedelta([1, 2, 3], unit="s"),
    "period": pd.period_range("2020", periods=3, freq="D"),
    "categorical": pd.CategoricalIndex(["b", "a", "b"], categories=["c", "b", "a"], ordered=True, name="k"),
    "multi": pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)], names=["k", None]),
    "multi of times": pd.MultiIndex.from_arrays(
        [pd.date_range("2020", periods=3, tz="UTC"), ["a", "b", "c"]], names=["t", "s"]
    ),
    "same name as a column": pd.Index([7, 8, 9], name="a"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_come_back(store: drumlin.Store, name: str) -> None:
    frame = FRAMES[name]
    store.write("t", frame)
    assert_frame_equal(store.read("t").to_pandas(), frame, check_freq=False)
    # Reading twice reads again.
    result = store.read("t")
    assert_frame_equal(result.to_pandas(), result.to_pandas(), check_freq=False)


@pytest.mark.parametrize("name", INDEXES)
def test_indexes_come_back(store: drumlin.Store, name: str) -> None:
    index = INDEXES[name]
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}, index=index)
    store.write("t", frame)
    back = store.read("t").to_pandas()
    assert_frame_equal(back, frame, check_freq=False)
    assert type(back.index) is type(index)
    assert back.index.names == index.names


@pytest.mark.parametrize("name", [name for name in INDEXES if "range" not in name])
def test_columns_bring_the_index_along(store: drumlin.Store, name: str) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}, index=INDEXES[name])
    store.write("t", frame)
    result = store.read("t", columns=["b"])
    assert_frame_equal(result.to_pandas(), frame[["b"]], check_freq=False)
    # To others it is an ordinary column, returned if requested.
    assert result.to_arrow().schema.names == ["b"]
    assert result.to_polars().columns == ["b"]


@pytest.mark.parametrize("name", [name for name in INDEXES if name != "object"])
def test_appends_carry_the_index_on(store: drumlin.Store, name: str) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}, index=INDEXES[name])
    store.write("t", frame)
    store.append("t", frame)
    both = pd.concat([frame, frame])
    both.index = frame.index.append(frame.index)
    if isinstance(frame.index, pd.RangeIndex):
        both.index = pd.RangeIndex(6, name=frame.index.name)
    back = store.read("t").to_pandas()
    assert_frame_equal(back, both, check_freq=False)
    assert type(back.index) is type(both.index)
    # Earlier versions are unchanged.
    assert_frame_equal(store.read("t", as_of=0).to_pandas(), frame, check_freq=False)


def test_a_range_index_is_numbered_again_once_rows_were_picked(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"a": range(10)}, index=pd.RangeIndex(100, 200, 10, name="r"))
    store.write("t", frame)
    for options in ({"where": "a >= 5"}, {"tail": 5}, {"limit": 5}):
        index = store.read("t", **options).to_pandas().index
        assert_index_equal(index, pd.RangeIndex(5, name="r"), exact=True)
    # Selecting columns does not select rows.
    assert_frame_equal(store.read("t", columns=["a"]).to_pandas(), frame)
    # As many rows as were written, but not the same.
    store.table("t").delete("a < 2")
    store.append("t", pd.DataFrame({"a": [10, 11]}))
    assert_index_equal(store.read("t").to_pandas().index, pd.RangeIndex(10, name="r"), exact=True)
    for as_of in (0, store.table("t").versions()[0].time):
        assert_frame_equal(store.read("t", as_of=as_of).to_pandas(), frame)


def test_a_range_index_of_a_snapshot(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.RangeIndex(1, 5, 2))
    store.write("t", frame)
    store.snapshot("then")
    result = store.read("t")
    store.append("t", frame)
    assert_frame_equal(store.read("t", as_of="then").to_pandas(), frame)
    # A result shows the version that was the newest when it was made.
    assert_frame_equal(result.to_pandas(), frame)
    assert_frame_equal(result.to_pandas(), frame)


def test_labels_stay_with_their_rows(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"a": range(5)}, index=pd.Index(list("vwxyz"), name="k"))
    store.write("t", frame)
    assert_frame_equal(store.read("t", where="a % 2 = 0").to_pandas(), frame[frame.a % 2 == 0])
    assert_frame_equal(store.read("t", tail=2).to_pandas(), frame.tail(2))
    assert_frame_equal(store.read("t", where="k > 'w'", columns=["a"]).to_pandas(), frame[frame.index > "w"])
    store.table("t").delete("k = 'x'")
    assert_frame_equal(store.read("t").to_pandas(), frame.drop("x"))


def test_appended_categories_are_joined(store: drumlin.Store) -> None:
    def frame(*values: str) -> pd.DataFrame:
        return pd.DataFrame({"c": pd.Categorical(values)})

    store.write("t", frame("a", "b"))
    store.append("t", frame("c", "b"))
    back = store.read("t").to_pandas()["c"]
    assert back.tolist() == ["a", "b", "c", "b"]
    assert sorted(back.cat.categories) == ["a", "b", "c"]
    store.checkpoint()
    assert_frame_equal(store.read("t").to_pandas(), back.to_frame())


def test_categories_of_chunks_are_joined(store: drumlin.Store) -> None:
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c", None]).dictionary_encode()]
    store.write("t", pa.table({"c": pa.chunked_array(chunks)}))
    back = store.read("t").to_pandas()["c"]
    assert back.tolist()[:4] == ["a", "b", "b", "c"]
    assert sorted(back.cat.categories) == ["a", "b", "c"]


def test_more_categories_than_the_first_frame_had_room_for(store: drumlin.Store) -> None:
    for at, letter in enumerate("ab"):
        frame = pd.DataFrame({"c": pd.Categorical([f"{letter}{n}" for n in range(100)])})
        store.append("t", frame) if at else store.write("t", frame)
    store.checkpoint()
    assert len(store.read("t").to_pandas()["c"].cat.categories) == 200


def test_missing_objects_come_back_as_none(store: drumlin.Store) -> None:
    store.write("t", pd.DataFrame({"o": pd.Series(["a", np.nan, None], dtype=object)}))
    back = store.read("t").to_pandas()["o"]
    assert back.dtype == object
    assert back.tolist() == ["a", None, None]


def test_a_new_column_order_is_no_other_table(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"a": [1], "b": ["x"]})
    store.write("t", frame)
    store.append("t", frame[["b", "a"]])
    assert_frame_equal(store.read("t").to_pandas(), pd.concat([frame, frame], ignore_index=True))


def test_another_kind_of_index_is_refused(store: drumlin.Store) -> None:
    store.write("t", pd.DataFrame({"a": [1, 2, 3]}))
    with pytest.raises(drumlin.SchemaMismatch, match="__index_level_0__"):
        store.append("t", pd.DataFrame({"a": [1, 2, 3]}, index=["x", "y", "z"]))
    assert len(store.table("t").versions()) == 1


def test_columns_may_be_named_as_pandas_names_them(store: drumlin.Store) -> None:
    frame = pd.DataFrame({0: [1, 2], 1: [3, 4]})
    store.write("t", frame)
    assert_frame_equal(store.read("t", columns=[1]).to_pandas(), frame[[1]])


def test_other_frames_get_a_default_index(store: drumlin.Store) -> None:
    store.write("t", pa.table({"a": [1, 2]}))
    assert_frame_equal(store.read("t").to_pandas(), pd.DataFrame({"a": [1, 2]}))


def test_options_go_to_pyarrow(store: drumlin.Store) -> None:
    store.write("t", pd.DataFrame({"a": [1, 2]}))
    assert store.read("t").to_pandas(types_mapper=pd.ArrowDtype)["a"].dtype == pd.ArrowDtype(pa.int64())


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame(), "at least one column"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns are called 'a'"),
        (pd.DataFrame({"a": [1, "x"]}), r"column 'a'.*several types.*1 \(int\) in row 0, 'x' \(str\) in row 1"),
        (pd.DataFrame({"a": [1], len: [2]}), "column label is <built-in function len>.*cannot be stored"),
    ],
    ids=["no columns", "names twice", "mixed values", "mixed names"],
)
def test_frames_that_cannot_be_stored_are_refused(store: drumlin.Store, frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(drumlin.InvalidArgument, match=message):
        store.write("t", frame)
    assert not store.tree.exists("t")


def test_a_series_without_a_name_is_refused_with_a_hint(store: drumlin.Store) -> None:
    with pytest.raises(TypeError, match="to_frame"):
        store.write("t", pd.Series([1]))


COLUMNS = st.sampled_from(["int64", "float64", "str", "datetime64[ns]", "category", "Int32", "bool"])


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(st.integers(0, 8))

    def column(kind: str) -> object:
        def of(values: st.SearchStrategy[object]) -> list[object]:
            return draw(st.lists(values, min_size=rows, max_size=rows))

        match kind:
            case "int64":
                return np.array(of(st.integers(-(2**63), 2**63 - 1)), dtype="int64")
            case "float64":
                return np.array(of(st.floats()), dtype="float64")
            case "str":
                return pd.array(of(st.none() | st.text(string.printable + "ü日")), dtype="str")
            case "datetime64[ns]":
                return np.array(of(st.integers(-(2**62), 2**62)), dtype="int64").view("datetime64[ns]")
            case "category":
                return pd.Categorical(of(st.sampled_from("abc")), categories=["c", "b", "a", "z"])
            case "Int32":
                return pd.array(of(st.none() | st.integers(-(2**31), 2**31 - 1)), dtype="Int32")
            case _:
                return np.array(of(st.booleans()), dtype="bool")

    kinds = draw(st.lists(COLUMNS, min_size=1, max_size=4))
    frame = pd.DataFrame({f"c{at}": column(kind) for at, kind in enumerate(kinds)})
    if draw(st.booleans()):
        frame.index = pd.Index(column(draw(COLUMNS)), name=draw(st.none() | st.just("k")))
    return frame


@settings(max_examples=100, deadline=None)
@given(frame=frames())
def test_any_frame_comes_back(frame: pd.DataFrame) -> None:
    with drumlin.open("memory://", cpu_threads=1) as store:
        store.write("t", frame)
        assert_frame_equal(store.read("t").to_pandas(), frame, check_freq=False)
        store.append("t", frame)
        back = store.read("t").to_pandas()
        assert len(back) == 2 * len(frame)
        assert_frame_equal(back.iloc[: len(frame)], frame, check_index_type=False, check_freq=False)


def test_columns_of_numbers_take_the_short_way() -> None:
    """Their Arrow types are known by name to what makes frames of them without pyarrow's conversions."""
    from drumlin._pandas.plain import _KINDS

    kinds = [*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float32", "float64", "bool"]
    kinds += [f"datetime64[{unit}]" for unit in ("s", "ms", "us", "ns")]
    with drumlin.open("memory://") as store:
        store.write("t", pd.DataFrame({kind: np.zeros(2).astype(kind) for kind in kinds}))
        schema = store.read("t").schema
    assert [_KINDS.get(type_) for type_ in schema.types] == schema.names


def test_an_unnamed_index_is_added_only_where_the_table_has_it(tmp_path: Path) -> None:
    store = drumlin.open(str(tmp_path / "store"))
    frame = pd.DataFrame({"id": range(6), "v": list("abcdef")})
    some = frame[frame.id.isin([0, 1, 4])]
    store.write("t", frame, sort=["id"])
    people = store.table("k")
    people.create({"id": int, "v": str}, key="id")
    for add in (
        lambda rows: store.append("t", rows),
        lambda rows: store.append("t", iter([rows])),
        lambda rows: store.append_many({"t": rows}),
        lambda rows: store.append("t", rows, schema="evolve"),
        lambda rows: store.replace("t", rows),
        lambda rows: store.commit([store.stage("t", rows)]),
        people.upsert,
        lambda rows: people.insert(rows.assign(id=rows.id + 10)),
        lambda rows: people.merge(rows).when_matched(update=True).execute(),
        lambda rows: people.add_columns(rows.rename(columns={"v": "w"}), on="id"),
    ):
        add(some)
    people.add_columns({"x": int}, using=lambda rows: pd.DataFrame({"x": range(rows.num_rows)})[::-1])
    assert store.table("t").schema().names == ["id", "v"]
    assert people.schema().names == ["id", "v", "w", "x"]
    # A table that has the index gets it, also as a RangeIndex; a version that is written has the index of its frame.
    store.write("i", some)
    store.append("i", frame)
    assert store.read("i").to_pandas().index.tolist() == [0, 1, 4, *range(6)]
    for index in (list("abc"), pd.date_range("2026", periods=3), [0.5, 1.0, 2.0]):
        with pytest.raises(drumlin.SchemaMismatch, match=r"reset_index\(drop=True\).*rename_axis\('name'\)"):
            store.append("t", some.set_axis(pd.Index(index)))
    store.append("t", some.rename_axis("n"), schema="evolve")
    assert store.table("t").schema().names == ["id", "v", "n"]
    store.close()
