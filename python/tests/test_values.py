"""Values that a library would cut, round or mix on their way in are kept, or refused; and what frames say of the
values of their columns holds of all of them, or is no longer said."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import drumlin

ENUM = pl.Enum(["a", "b"])


@pytest.fixture
def store() -> Any:
    with drumlin.open("memory://") as opened:
        yield opened


def enum_of(values: list[Any], kind: Any = ENUM) -> pl.DataFrame:
    return pl.DataFrame({"id": range(1, len(values) + 1), "c": pl.Series(values, dtype=kind)})


CHANGES: dict[str, Callable[[drumlin.Store], Any]] = {
    "append": lambda store: store.append("t", {"id": [2], "c": ["q"]}),
    "append another Enum": lambda store: store.append("t", enum_of(["q"], pl.Enum(["q"]))),
    "update": lambda store: store.table("t").update(set={"c": "'q'"}),
    "merge": lambda store: (
        store.table("t").merge({"id": [1], "c": ["q"]}, on=["id"]).when_matched(update=True).execute()
    ),
    "merge that inserts": lambda store: (
        store.table("t")
        .merge({"id": [2], "c": ["q"]}, on=["id"])
        .when_not_matched(insert={"id": "source.id", "c": "source.c"})
        .execute()
    ),
    "transaction": lambda store: in_transaction(store),
}


def in_transaction(store: drumlin.Store) -> None:
    with store.transaction() as tx:
        tx.append("t", {"id": [2], "c": ["q"]})
        tx.table("t").update(set={"c": "'r'"}, where="id = 1")


@pytest.mark.parametrize("change", CHANGES)
def test_an_enum_holds_all_values_or_is_none(store: drumlin.Store, change: str) -> None:
    store.write("t", enum_of(["a"]))
    assert store.read("t").to_polars()["c"].dtype == ENUM
    CHANGES[change](store)
    read = store.read("t")
    values = read.to_arrow()["c"].to_pylist()
    assert "q" in values
    assert read.to_polars()["c"].to_list() == values
    assert pl.DataFrame(store.read("t"))["c"].to_list() == values
    assert store.scan("t").to_lazy().collect()["c"].to_list() == values
    # The version before is as it was.
    assert store.read("t", as_of=0).to_polars()["c"].dtype == ENUM
    store.restore("t", 0)
    assert store.read("t").to_polars()["c"].dtype == ENUM


def test_an_enum_stays_where_its_values_do(store: drumlin.Store) -> None:
    store.write("t", enum_of(["a"]))
    store.append("t", enum_of(["b"]))
    store.append("t", {"id": [3], "c": [None]})
    store.table("t").update(set={"id": "id + 1"})
    read = store.read("t").to_polars()["c"]
    assert (read.dtype, read.to_list()) == (ENUM, ["a", "b", None])


def test_an_enum_within_a_list_and_in_a_keyed_table(store: drumlin.Store) -> None:
    frame = pl.DataFrame({"id": [1], "l": pl.Series([["a"]], dtype=pl.List(ENUM))})
    table = store.table("t")
    table.create(frame.to_arrow().schema, key=["id"])
    table.upsert(frame)
    table.upsert({"id": 2, "l": ["q"]})
    assert store.read("t").to_polars()["l"].to_list() == [["a"], ["q"]]


def test_categories_are_ordered_while_their_order_is_known(store: drumlin.Store) -> None:
    def sizes(*values: str) -> pd.DataFrame:
        return pd.DataFrame({"c": pd.Categorical(values, ["S", "M"], ordered=True)})

    store.write("t", sizes("S"))
    store.append("t", sizes("M"))
    assert store.read("t").to_pandas()["c"].cat.ordered
    store.append("t", {"c": ["XL"]})
    read = store.read("t").to_pandas()["c"]
    assert (read.tolist(), read.cat.ordered) == (["S", "M", "XL"], False)
    ordered = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["z"]), ordered=True)
    store.write("o", pa.table({"v": ordered}))
    assert store.read("o").to_arrow()["v"].type.ordered
    store.append("o", {"v": ["a"]})
    assert not store.read("o").to_arrow()["v"].type.ordered


def test_a_widened_column_of_pandas_shows_its_values(store: drumlin.Store) -> None:
    index = pd.MultiIndex.from_arrays([np.array([1], "int8"), ["a"]], names=["i", "j"])
    columns = {
        "masked": pd.array([1], "Int8"),
        "moment": pd.array(["2020-01-01"], dtype="datetime64[s]"),
        "zoned": pd.array(["2020-01-01"], dtype="datetime64[s]").tz_localize("UTC"),
        "arrow": pd.array([1], pd.ArrowDtype(pa.int8())),
    }
    store.write("t", pd.DataFrame(columns, index=index))
    fine, zoned = pa.timestamp("ns"), pa.timestamp("ns", "UTC")
    wider = {"i": pa.int64(), "masked": pa.int64(), "moment": fine, "zoned": zoned, "arrow": pa.int64()}
    store.table("t").widen(wider)
    values = {"i": 1000, "masked": 1000, "moment": 1, "zoned": 1, "arrow": 1000}
    added = {name: pa.array([value], pa.int64()).cast(wider[name]) for name, value in values.items()}
    store.append("t", pa.table({**added, "j": ["b"]}))
    row = store.read("t").to_pandas().iloc[1]
    assert row.name == (1000, "b")
    assert row["masked"] == row["arrow"] == 1000
    assert row["moment"] == pd.Timestamp(1)
    assert row["zoned"] == pd.Timestamp(1, tz="UTC")


def test_fixed_width_text_of_numpy_keeps_its_nuls(store: drumlin.Store) -> None:
    data, text = [b"ab\0cd", b"\0x"], ["x\0y", "\0z"]
    given = {"d": np.array(data), "t": np.array(text), "l": [np.array(data), None], "s": [{"p": np.array(text)}, None]}
    store.write("t", given)
    expected = {"d": data, "t": text, "l": [data, None], "s": [{"p": text}, None]}
    assert store.read("t").to_arrow().to_pydict() == expected
    table = store.table("k")
    table.create({"id": pa.binary()}, key=["id"])
    table.upsert({"id": [b"ab", b"ab\0cd"]})
    assert table.get_many(np.array([b"ab\0cd"])).rows.to_arrow().to_pylist() == [{"id": b"ab\0cd"}]
    table.delete_keys(np.array([b"ab\0cd"]))
    assert table.read().to_arrow()["id"].to_pylist() == [b"ab"]


@pytest.mark.parametrize(
    ("values", "read"),
    [
        (np.array([1, 2], "M8[10s]"), [dt.datetime(1970, 1, 1, 0, 0, 10), dt.datetime(1970, 1, 1, 0, 0, 20)]),
        (np.array(["2024-01-01T05", "NaT"], "M8[h]"), [dt.datetime(2024, 1, 1, 5), None]),
        (np.array([1, 2], "M8[7D]"), [dt.date(1970, 1, 8), dt.date(1970, 1, 15)]),
        (np.array([4, 2], "m8[25us]"), [dt.timedelta(microseconds=100), dt.timedelta(microseconds=50)]),
        (np.array([1, 2], "m8[h]"), [dt.timedelta(hours=1), dt.timedelta(hours=2)]),
    ],
)
def test_units_of_numpy(store: drumlin.Store, values: Any, read: list[Any]) -> None:
    store.write("t", {"v": values})
    assert store.read("t").to_arrow()["v"].to_pylist() == read


@pytest.mark.parametrize(
    "values",
    [
        [dt.time(1, 2, tzinfo=dt.UTC)],
        [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
        [dt.date(2024, 1, 1), pd.Timestamp("2024-01-01 05:00")],
        [pd.Timestamp(1)],
        [pd.Timedelta(1)],
        [[b"a", "b"]],
        [{"p": dt.date(2024, 1, 1)}, {"p": dt.datetime(2024, 1, 1, 5)}],
        np.array([pd.Timestamp(1)], dtype=object),
        np.array(["2024-01"], "M8[M]"),
    ],
)
def test_what_a_list_would_lose_is_refused(store: drumlin.Store, values: Any) -> None:
    with pytest.raises(drumlin.InvalidArgument, match="column 'v'"):
        store.write("t", {"v": values})


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.float64(), 2**53 + 1),
        (pa.float64(), Decimal("0.1")),
        (pa.float64(), 10**400),
        (pa.float32(), 16777217),
        (pa.float32(), 1e39),
        (pa.float32(), 0.123456789),
        (pa.float16(), 70000.0),
        (pa.date32(), dt.datetime(2024, 1, 1, 5)),
        (pa.date32(), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        (pa.date64(), dt.datetime(2024, 1, 1, 5)),
        (pa.time64("us"), dt.time(1, tzinfo=dt.UTC)),
        (pa.time64("us"), dt.datetime(2024, 1, 1, 5)),
        (pa.timestamp("us"), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    ],
)
def test_what_a_type_would_change_is_refused(store: drumlin.Store, kind: Any, value: Any) -> None:
    table = store.table("t")
    table.create({"id": pa.int64(), "v": kind}, key=["id"])
    with pytest.raises(drumlin.InvalidArgument, match="column 'v'"):
        table.upsert({"id": 1, "v": value})
    with pytest.raises(drumlin.InvalidArgument, match="the default of column 'd'"):
        table.add_columns({"d": (kind, value)})
    with pytest.raises(drumlin.SchemaMismatch, match="the default of column 'v'"):
        table.add_constraints(defaults={"v": value})


def test_floats_take_what_prints_the_same(store: drumlin.Store) -> None:
    table = store.table("t")
    table.create({"id": pa.int64(), "narrow": pa.float32(), "half": pa.float16()}, key=["id"])
    table.upsert({"id": 1, "narrow": 0.1, "half": 0.1})
    assert table.get(1) == {"id": 1, "narrow": float(np.float32(0.1)), "half": float(np.float16(0.1))}


def test_a_default_that_a_wider_type_rounds_is_refused(store: drumlin.Store) -> None:
    table = store.table("t")
    store.write("t", {"a": [1]})
    table.add_columns({"b": (pa.int64(), 2**53 + 1)})
    with pytest.raises(drumlin.SchemaMismatch, match="9007199254740993"):
        table.widen({"b": pa.float64()})


@pytest.mark.parametrize("zone", ["UTC", "Europe/Oslo", "+05:30"])
def test_nanoseconds_keep_their_zone(store: drumlin.Store, zone: str) -> None:
    table = store.table("t")
    table.create({"id": pa.int64(), "v": pa.timestamp("ns", zone), "d": pa.duration("ns")}, key=["id"])
    nanos = 1_600_000_000_000_000_123
    moment = pa.array([nanos], pa.int64()).cast(pa.timestamp("ns", zone))
    table.upsert(pa.table({"id": [1], "v": moment, "d": pa.array([1], pa.duration("ns"))}))
    row = table.get(1)
    assert row is not None
    assert row["v"] == pd.Timestamp(nanos, unit="ns", tz="UTC")
    offset = row["v"].utcoffset()
    assert offset is not None
    assert offset == row["v"].tz_convert("UTC").tz_convert(moment.type.tz).utcoffset()
    assert row["d"] == pd.Timedelta(1, unit="ns")


def test_minus_zero_is_a_value(store: drumlin.Store) -> None:
    store.write("t", {"f": [0.0]})
    table = store.table("t")
    for zero in (-0.0, "-0.0"):
        table.update(set={"f": 0.0})
        table.update(set={"f": zero})
        assert str(table.read().to_arrow()["f"][0].as_py()) == "-0.0"
    assert table.read(where="f = 0.0").num_rows == table.read(where="f = -0.0").num_rows == 1
    assert table.read(where="f < 0.0").num_rows == 0


def test_values_that_no_reader_shows_are_refused(store: drumlin.Store) -> None:
    for array, words in (
        (pa.array([86_400], pa.int32()).view(pa.time32("s")), "is not a time of day"),
        (pa.array([-1], pa.int64()).view(pa.time64("ns")), "is not a time of day"),
        (pa.array([1], pa.int64()).view(pa.date64()), "has a time of day"),
        (pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), "two fields called 'a'"),
    ):
        with pytest.raises(drumlin.InvalidArgument, match=words):
            store.write("t", pa.table({"v": array}))


def test_times_finer_than_pythons_are_refused_where_it_shows_them(store: drumlin.Store) -> None:
    store.write("t", pa.table({"v": pa.array([1], pa.time64("ns"))}))
    with pytest.raises(drumlin.InvalidArgument, match=r"use to_arrow\(\)"):
        store.read("t").to_numpy()
    with pytest.raises(drumlin.InvalidArgument, match=r"use to_arrow\(\)"):
        store.read("t").to_pandas()


LARGE = 2**63 - 1
OF_LARGE = pa.struct([("a", pa.int64()), ("b", pa.uint64())])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.list_(pa.int64()), [[LARGE, None], None]),
        (pa.list_(pa.uint64(), 2), [[2**64 - 1, None], None]),
        (OF_LARGE, [{"a": LARGE, "b": 1}, {"a": None, "b": None}, None]),
        (pa.list_(OF_LARGE), [[{"a": LARGE, "b": None}, {"a": None, "b": 2**64 - 1}, None]]),
        (pa.struct([("in", OF_LARGE)]), [{"in": {"a": LARGE, "b": None}}, {"in": None}, None]),
        (pa.map_(pa.string(), pa.int64()), [[("x", LARGE), ("y", None)], None]),
        (pa.list_(pa.map_(pa.int64(), OF_LARGE)), [[[(LARGE, {"a": LARGE, "b": None}), (1, None)]], [None]]),
    ],
    ids=str,
)
def test_large_integers_within_others_beside_nulls(store: drumlin.Store, kind: pa.DataType, values: list[Any]) -> None:
    store.write("t", pa.table({"v": pa.array(values, kind)}))
    for rows in (store.read("t"), store.read("t", native=True)):
        assert pa.array(rows.to_pandas()["v"], kind).to_pylist() == values
