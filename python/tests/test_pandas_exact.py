"""The meaning of a pandas frame is kept, or the write is refused: labels in ordered tables, rows added later,
objects, attrs, and frames that earlier versions wrote."""

import datetime as dt
import decimal
import json
import subprocess
import sys
from typing import Any

import frame_kinds as kinds
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal, assert_index_equal
from test_pandas import FRAMES, INDEXES

import drumlin
from drumlin import col


def objects(*values: object) -> pd.DataFrame:
    return pd.DataFrame({"o": pd.Series(kinds.objects(list(values)), dtype=object)})


def read(store: drumlin.Store, **options: Any) -> pd.DataFrame:
    return store.read("t", **options).to_pandas()


# A RangeIndex.


def test_a_range_level_of_a_multiindex_is_kept(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"date": pd.date_range("2024", periods=4), "a": list("wxyz")}).set_index("date", append=True)
    store.write("t", frame)
    assert_frame_equal(read(store, tail=2), frame.tail(2))
    assert_frame_equal(read(store, where="a > 'x'"), frame[2:])
    assert_frame_equal(read(store, where="__index_level_0__ > 1"), frame[2:])
    store.append("t", frame)
    assert_frame_equal(read(store), pd.concat([frame, frame]))
    store.table("t").delete("a = 'w'")
    assert read(store).index.get_level_values(0).tolist() == [1, 2, 3, 1, 2, 3]


def test_labels_of_a_range_stay_with_their_rows_in_an_ordered_table(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"n": [3, 1, 2], "who": ["three", "one", "two"]}, index=pd.RangeIndex(10, 13))
    ordered = frame.sort_values("n")
    store.write("t", frame, sort=["n"])
    assert_frame_equal(read(store), ordered)
    # For a table that already has an order; with rows added.
    store.write("t", frame)
    assert_frame_equal(read(store), ordered)
    more = pd.DataFrame({"n": [0], "who": ["zero"]}, index=pd.RangeIndex(1))
    store.append("t", more)
    assert_frame_equal(read(store), pd.concat([more, ordered]))
    store.replace("t", pd.DataFrame({"n": [1], "who": ["uno"]}, index=pd.RangeIndex(7, 8)))
    assert read(store).index.tolist() == [0, 7, 12, 10]
    store.append_many({"t": more})
    with store.transaction() as tx:
        tx.append("t", more)
        tx.write("u", frame, sort=["n"])
        tx.append("u", more)
        tx.write("t", frame)
        assert_frame_equal(tx.read("t").to_pandas(), ordered)
    assert_frame_equal(store.read("u").to_pandas(), pd.concat([more, ordered]))
    store.write_many({"v": frame}, sort=["n"])
    assert_frame_equal(store.read("v").to_pandas(), ordered)


def test_a_table_with_a_key_has_no_labels(store: drumlin.Store) -> None:
    store.table("t").create(pa.schema([("n", pa.int64()), ("who", pa.string())]), key=["n"])
    frame = pd.DataFrame({"n": [3, 1], "who": ["three", "one"]}, index=pd.RangeIndex(10, 12))
    for _ in range(2):
        store.write("t", frame)
        assert store.table("t").schema().names == ["n", "who"]
        assert_index_equal(read(store).index, pd.RangeIndex(2))
        assert read(store)["n"].tolist() == [1, 3]
    store.table("t").upsert({"n": 2, "who": "two"})
    store.table("t").upsert(frame)
    assert read(store)["n"].tolist() == [1, 2, 3]


def test_a_default_index_costs_nothing(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"n": [3, 1, 2]})
    store.write("t", frame, sort=["n"])
    assert store.table("t").schema().names == ["n"]
    assert_frame_equal(read(store), pd.DataFrame({"n": [1, 2, 3]}))
    store.append("t", frame[1:])
    assert_index_equal(read(store).index, pd.RangeIndex(5))


def test_a_range_can_be_added_to_an_index(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=[5, 3])
    store.write("t", frame)
    store.append("t", pd.DataFrame({"a": [3]}))
    assert_frame_equal(read(store), pd.DataFrame({"a": [1, 2, 3]}, index=[5, 3, 0]))


# Rows added later.


def test_integers_stay_integers_beside_nulls(store: drumlin.Store) -> None:
    store.write("t", pd.DataFrame({"id": [2**53 + 1], "b": [True]}))
    store.append("t", pd.DataFrame({"id": pd.array([None], "Int64"), "b": pd.array([None], "boolean")}))
    expected = pd.DataFrame({"id": pd.array([2**53 + 1, None], "Int64"), "b": pd.array([True, None], "boolean")})
    assert_frame_equal(read(store), expected)
    # Next to columns that are not plain numbers, and in an index.
    frame = pd.DataFrame({"id": [2**53 + 1], "c": pd.Categorical(["x"])}, index=pd.Index([2**53 + 1], name="k"))
    store.write("t", frame)
    store.append("t", frame.astype({"id": "Int64"}).set_axis(pd.Index([None], dtype="Int64", name="k")))
    assert read(store).index.tolist() == [2**53 + 1, pd.NA]
    assert read(store)["id"].tolist() == [2**53 + 1, 2**53 + 1]
    # As in pyarrow, if floats hold the values.
    store.write("t", pa.table({"id": [2**53 + 1, None]}))
    assert read(store)["id"].tolist() == [2**53 + 1, pd.NA]
    store.write("t", pa.table({"id": [2**53, None]}))
    assert read(store)["id"].dtype == "float64"


def test_periods_and_intervals_are_not_mixed_up(store: drumlin.Store) -> None:
    months = pd.DataFrame({"p": pd.period_range("2020", periods=2, freq="M")})
    store.write("t", months)
    for other in (months.p.dt.asfreq("D").to_frame(), pd.DataFrame({"p": [1, 2]})):
        with pytest.raises(drumlin.SchemaMismatch, match=r"column 'p': the table has period\[M\]"):
            store.append("t", other)
    store.append("t", months)
    right = pd.DataFrame({"i": pd.interval_range(0, 2, closed="right")})
    store.write("u", right)
    with pytest.raises(drumlin.SchemaMismatch, match=r"'u'.*column 'i'.*right\].*left\]"):
        store.append_many({"u": pd.DataFrame({"i": pd.interval_range(0, 2, closed="left")})})
    store.write("v", pd.DataFrame({"p": [1, 2]}))
    with pytest.raises(drumlin.SchemaMismatch, match="column 'p'"):
        store.append("v", months)


def test_new_categories_come_after_those_of_the_table(store: drumlin.Store) -> None:
    cut = pd.DataFrame({"c": pd.cut([1, 5], [0, 3, 6])})
    store.write("t", cut)
    store.append("t", pd.DataFrame({"c": pd.cut([9], [6, 10])}))
    back = read(store).c
    assert back.cat.categories.tolist() == [*cut.c.cat.categories, pd.Interval(6, 10)]
    assert back.tolist() == [*cut.c, pd.Interval(6, 10)]
    many = pd.DataFrame({"c": pd.Categorical(["c7", None], categories=[f"c{n}" for n in range(1500)])})
    store.write("t", many)
    assert_frame_equal(read(store), many)


# Columns of objects.


def test_missing_objects_come_back_as_they_were(store: drumlin.Store) -> None:
    for missing in (None, np.nan, pd.NA, pd.NaT):
        for value in ("a", 1, dt.date(2020, 1, 1), pd.Timestamp(0), {"a": 1}):
            store.write("t", objects(value, missing))
            back = read(store).o[1]
            assert back is missing or (missing is np.nan and isinstance(back, float) and back != back)
            assert read(store).o[0] == value


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (objects("a", b"b"), r"column 'o' holds.*'a' \(str\) in row 0, b'b' \(bytes\) in row 1.*coerce=True"),
        (objects("a", "b", 1), r"1 \(int\) in row 2"),
        (objects({"a": 1}, {"b": 2}), r"row 0: \{'a': 1\} \(dict\) would come back as"),
        (objects(None, decimal.Decimal("NaN")), r"row 1: Decimal\('NaN'\).*missing value.*None"),
        (objects(2**70), "row 0: 1180591620717411303424 .int. is out of range; integers have at most 64 bits"),
        (objects(1, 2.5), r"1 \(int\) in row 0, 2.5 \(float\) in row 1"),
        (objects(dt.time(1, tzinfo=dt.UTC)), r"row 0: datetime.time.*would come back as"),
        (pd.DataFrame({"a\0b": [1]}), "NUL"),
        (pd.DataFrame({"a": [{"x\0y": 1}]}), r"column 'a': the field's name 'x\\x00y' has a NUL"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "labels 1 and '1' are both '1' as text"),
        (pd.DataFrame({"a": [1j]}), r"column 'a' has dtype complex128.*astype"),
        (pd.DataFrame({"a": pd.arrays.SparseArray([1, 0])}), "column 'a' is sparse.*astype"),
        (pd.DataFrame({"a": np.array([1], ">i8")}), "column 'a' has big-endian"),
        (pd.DataFrame({"a": [1]}, index=pd.Index([1], name=object)), "the name of the index is.*cannot be stored"),
        (pd.DataFrame({"a": [1]}, index=pd.Index([{1}], dtype=object)), "the index, row 0: .*set.* would come back"),
    ],
)
def test_what_does_not_survive_is_refused(store: drumlin.Store, frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(drumlin.InvalidArgument, match=message):
        store.write("t", frame)
    assert not store.tree.exists("t")


def test_coerced_values_are_what_pyarrow_makes_of_them(store: drumlin.Store) -> None:
    store.write("t", objects("a", b"b"), coerce=True)
    assert read(store).o.tolist() == [b"a", b"b"]
    store.append("t", objects("c", b"d"), coerce=True)
    store.append_many({"t": objects("c", b"d")}, coerce=True)
    store.table("t").append(objects("e", b"f"), coerce=True)
    with store.transaction() as tx:
        tx.append("t", objects("g", b"h"), coerce=True)
    assert len(read(store)) == 10
    store.write_many({"t": objects({"a": 1}, {"b": 2})}, coerce=True)
    assert read(store).o.tolist() == [{"a": 1, "b": None}, {"a": None, "b": 2}]
    frame = pd.DataFrame([[1]], columns=pd.Index([object], dtype=object))
    frame.attrs = {"a": (1, 2)}
    store.table("t").write(frame, coerce=True)
    assert (read(store).columns.tolist(), read(store).attrs) == (["<class 'object'>"], {})
    with pytest.raises(drumlin.InvalidArgument, match=r"no Arrow form.*convert"):
        store.write("t", objects(object()), coerce=True)


def test_units_of_stamps_do_not_round_rows_added_later(store: drumlin.Store) -> None:
    store.write("t", objects(pd.Timestamp(5, unit="s").as_unit("s")))
    later = pd.Timestamp("2020-01-01 00:00:00.000001")
    store.append("t", objects(later.as_unit("us")))
    assert read(store).o.tolist() == [pd.Timestamp(5, unit="s"), later]


# Names, attrs.


def test_attrs(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"a": [1]})
    frame.attrs = {"a": [1, 2.5, None, {"b": "ü"}], "": True}
    store.write("t", frame)
    assert read(store).attrs == frame.attrs
    read(store).attrs["a"].append(3)
    assert read(store).attrs == frame.attrs
    for attrs in (
        {"a": (1, 2)},
        {1: "a"},
        {"a": {2: "b"}},
        {"a": np.int64(1)},
        {"a": float("nan")},
        {"a": dt.date.min},
    ):
        frame.attrs = attrs
        with pytest.raises(drumlin.InvalidArgument, match=r"attrs.*coerce=True"):
            store.write("t", frame)
    frame = frame.set_flags(allows_duplicate_labels=False)
    frame.attrs = {}
    store.write("t", frame)
    assert_frame_equal(read(store), frame)


def test_columns_are_named_by_their_labels(store: drumlin.Store) -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=pd.Index([("a", 1), None, 2.5], dtype=object, tupleize_cols=False))
    store.write("t", frame, sort=[2.5])
    for at in range(3):
        assert_frame_equal(read(store, columns=[frame.columns[at]]), frame.iloc[:, [at]])
    wide = pd.DataFrame(np.arange(150.0).reshape(1, -1)).assign(c=pd.Categorical(["x"]))
    store.write("u", wide)
    back = store.read("u").to_pandas()
    back["new"] = 1
    assert_frame_equal(back.drop(columns="new"), wide)


def test_a_pivot_table_comes_back(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"k": pd.Categorical(["x", "y"]), "i": [1, 1], "v": [1.0, 2.0]})
    pivot = frame.pivot_table(index="i", columns="k", values="v", observed=False)
    store.write("t", pivot)
    assert_frame_equal(read(store), pivot)
    frame = frame.assign(k=pd.cut([1, 2], 2), i="p")
    pivot = frame.pivot_table(index="i", columns="k", values="v", observed=False, margins=True)
    store.write("t", pivot)
    assert_frame_equal(read(store), pivot)


def test_native_types_make_the_same_frame(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"s": ["a", "b", "a"] * 9, "c": pd.Categorical(["x", None, "y"] * 9), "n": range(27)})
    frame = frame.assign(o=frame.s.astype(object), t=frame.s.astype("string"), d=pd.Timestamp("2020", tz="UTC"))
    store.write("t", frame)
    assert_frame_equal(read(store, native=True), frame)
    store.checkpoint()
    assert_frame_equal(read(store, native=True, where=col("n") >= 0), frame)


# Frames that earlier versions wrote.


def as_before(frame: pd.DataFrame) -> pa.Table:
    """The metadata that they wrote: pandas' own, and two keys for names of mixed type and for categories."""
    table = pa.Table.from_pandas(frame, preserve_index=None)
    metadata = dict(table.schema.metadata)
    if frame.columns.nlevels == 1 and frame.columns.inferred_type.startswith("mixed"):
        metadata[b"drumlin.pandas.names"] = json.dumps(list(frame.columns)).encode()
    categories = {
        field.name: column.chunk(0).dictionary.to_pylist()
        for field, column in zip(table.schema, table.columns, strict=True)
        if pa.types.is_dictionary(field.type)
    }
    if categories:
        metadata[b"drumlin.pandas.categories"] = json.dumps(categories).encode()
    return table.replace_schema_metadata(metadata)


@pytest.mark.filterwarnings("ignore:The DataFrame has column names of mixed type")
@pytest.mark.parametrize("name", [*FRAMES, *(f"index: {name}" for name in INDEXES)])
def test_frames_of_earlier_versions(store: drumlin.Store, name: str) -> None:
    frame = FRAMES.get(name)
    if frame is None:
        frame = pd.DataFrame({"a": [1, 2, 3]}, index=INDEXES[name.removeprefix("index: ")])
    store.write("t", as_before(frame))
    # On pandas 2, they did not keep how texts are stored.
    options = {"check_freq": False, "check_dtype": name != "string"}
    assert_frame_equal(read(store), frame, **options)
    none = read(store, limit=0)
    assert_frame_equal(none, frame.iloc[:0].set_axis(none.index), **options)
    # Frames of this version can be appended.
    store.append("t", frame)
    added = read(store).iloc[len(frame) :]
    if isinstance(frame.index, pd.RangeIndex):
        added.index = frame.index
    assert_frame_equal(added, frame, **options)


def test_a_description_of_a_later_version_is_passed_over(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["x"]), "b": [1]})
    table = drumlin._arguments.frames.to_stream(frame)
    metadata = {**table.schema.metadata, b"drumlin.pandas": b'{"version": 2}'}
    store.write("t", table.replace_schema_metadata(metadata))
    assert_frame_equal(read(store), frame)


# Rows that are not a frame.


def test_a_list_of_dicts_keeps_all_keys(store: drumlin.Store) -> None:
    store.write("t", [{"a": 1}, {"a": 2, "b": 5}])
    store.append("t", [{"b": 7}, {"a": 3}])
    assert store.read("t").to_arrow().to_pydict() == {"a": [1, 2, None, 3], "b": [None, 5, 7, None]}
    with pytest.raises(TypeError, match="row 1 is an int; expected a dict"):
        store.write("t", [{"a": 1}, 5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="name must be a str, not 5"):
        store.write("t", [{5: 1}])
    for mixture in (["a", b"b"], [dt.datetime(2020, 1, 1, 5), dt.date(2020, 1, 1)]):
        with pytest.raises(drumlin.InvalidArgument, match="column 'a' has values of several types.*row 0.*row 1"):
            store.write("t", {"a": mixture})


def test_names_that_arrow_would_cut_are_refused(store: drumlin.Store) -> None:
    pl = pytest.importorskip("polars")
    name = "a\0b"
    table = pa.table({name: [1]})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    nested = pa.table({"x": [[{name: 1}]]})
    for data in (table, reader, nested, {name: [1]}, pl.DataFrame({name: [1]}), pl.DataFrame({"x": [[{name: 1}]]})):
        with pytest.raises(drumlin.InvalidArgument, match="NUL"):
            store.write("t", data)
    with pytest.raises(drumlin.InvalidArgument, match="NUL"):
        store.table("t").create(table.schema)
    assert not store.tree.exists("t")


def test_arguments_of_the_wrong_type_are_named(store: drumlin.Store) -> None:
    store.write("t", {"n": [1]})
    calls: dict[str, Any] = {
        "path must be a str, not an int": lambda: store.write(5, {"n": [1]}),  # type: ignore[arg-type]
        "sort must be a list of names, not an int": lambda: store.write("t", {"n": [1]}, sort=5),  # type: ignore[arg-type]
        "columns must be a list of names, not an int": lambda: store.read("t", columns=5),  # type: ignore[arg-type]
        "limit must be a number, not a str": lambda: store.read("t", limit="x"),  # type: ignore[arg-type]
        "paths must be a list of names, each a str; 5 is an int": lambda: store.read_many([5]),  # type: ignore[list-item]
        "column 'n' must be a list or array of values, not an int": lambda: store.write("t", {"n": 5}),
    }
    for message, call in calls.items():
        with pytest.raises(TypeError, match=message):
            call()


def test_a_package_that_is_being_imported_is_not_asked() -> None:
    program = """
        import sys, types
        for name in ("pandas", "polars", "numpy"):
            module = types.ModuleType(name)
            module.__spec__ = types.SimpleNamespace(_initializing=True)
            sys.modules[name] = module
        from drumlin import _optional
        assert all(_optional.loaded(name) is None for name in ("pandas", "polars", "numpy"))
        import drumlin, threading
        store = drumlin.open("memory://")
        class Stream:
            def __arrow_c_stream__(self, schema=None):
                raise KeyError("drawn from")
        try:
            store.write("t", Stream())
        except KeyError as error:
            assert "drawn from" in str(error)
    """
    source = "\n".join(line[8:] for line in program.splitlines())
    result = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
