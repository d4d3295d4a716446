"""What keyed tables accept and return: rows and keys in all forms and of all types, and look-ups."""

from __future__ import annotations

import datetime as dt
import gc
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from people import ADA, GRACE, PEOPLE, rows_of

import drumlin

# Input.


def test_rows_in_all_forms(people: drumlin.Table, store: drumlin.Store) -> None:
    plain = {"id": [1, 2], "name": ["Ada", "Grace"], "born": [dt.date(1815, 12, 10), None]}
    table = pa.Table.from_pylist([ADA, GRACE], PEOPLE)
    frame = pd.DataFrame({**plain, "id": np.array([1, 2], "int32")})
    forms: list[Any] = [
        plain,
        {"born": tuple(plain["born"]), "id": range(1, 3), "name": plain["name"]},
        {**plain, "id": np.array([1, 2], "int32")},
        {**plain, "id": pd.Series([1, 2], dtype="int32"), "name": pd.Series(["Ada", "Grace"], dtype=object)},
        {"id": pa.array([1, 2], pa.int32()), "name": pa.chunked_array([["Ada"], ["Grace"]]), "born": plain["born"]},
        {"id": pl.Series([1, 2], dtype=pl.Int32), "name": pl.Series(["Ada", "Grace"]), "born": plain["born"]},
        [ADA, GRACE],
        [GRACE, {"born": dt.date(1815, 12, 10), "name": "Ada", "id": np.int64(1)}],
        [ADA, {"id": 2, "name": "Grace"}],
        table,
        table.to_batches()[0],
        table.to_reader(),
        frame,
        pl.DataFrame(plain, schema_overrides={"id": pl.Int32}),
        pl.DataFrame(plain, schema_overrides={"id": pl.Int32}).lazy(),
    ]
    for form in forms:
        people.delete_keys([1, 2])
        assert people.upsert(form).rows == 2
        assert rows_of(people) == [ADA, GRACE], type(form)
    for one in (ADA, {**ADA, "id": np.int32(1)}, {**ADA, "name": np.str_("Ada")}, {**ADA, "id": [1]}):
        people.delete_keys([1])
        if isinstance(one["id"], list):
            one = {name: [value] if name != "id" else value for name, value in one.items()}
        assert people.upsert(one).rows == 1
        assert people.get(1) == ADA
    other = store.table("other")
    other.create(people.schema(), key=["id"])
    assert other.insert(people.read()).rows == 2
    assert other.upsert(people.get_many([2, 1]).rows).rows == 2
    assert rows_of(other) == [ADA, GRACE]


def test_keys_in_all_forms(people: drumlin.Table) -> None:
    people.upsert([ADA, GRACE])
    forms: list[Any] = [
        [2, 9, 1],
        (2, 9, 1),
        (key for key in (2, 9, 1)),
        {2: "", 9: "", 1: ""}.keys(),
        np.array([2, 9, 1]),
        np.array([2, 9, 1], "uint8"),
        list(np.array([2, 9, 1])),
        pd.Series([2, 9, 1]),
        pd.Index([2, 9, 1]),
        pd.Series([2, 9, 1], dtype=object),
        pd.array([2, 9, 1], dtype="Int64"),
        pl.Series([2, 9, 1]),
        pa.array([2, 9, 1]),
        pa.chunked_array([[2], [], [9, 1]]),
        [(2,), (9,), (1,)],
        [{"id": 2}, {"id": 9, "other": 1}, {"id": 1}],
        {"id": [2, 9, 1]},
        {"id": np.array([2, 9, 1]), "name": ["a", "b", "c"]},
        pa.table({"id": [2, 9, 1], "more": [0, 0, 0]}),
        pa.table({"id": [2, 9, 1]}).to_reader(),
        pa.StructArray.from_arrays([pa.array([2, 9, 1])], ["id"]),
        pd.DataFrame({"id": [2, 9, 1]}),
        pl.DataFrame({"id": [2, 9, 1]}),
        pl.DataFrame({"id": [2, 9, 1]}).lazy(),
        people.get_many([2, 9, 1]).keys,
    ]
    for form in forms:
        answer = people.get_many(form)
        assert answer.found.to_pylist() == [True, False, True], type(form)
        assert answer.rows.to_arrow().to_pylist() == [GRACE, {"id": 9, "name": None, "born": None}, ADA]
        assert answer.keys.to_arrow().to_pydict() == {"id": [2, 9, 1]}
    for key in (1, np.int64(1), (1,), {"id": 1}):
        assert people.get(key) == ADA
    assert people.get_many(people.read(where="id = 2")).found.to_pylist() == [True]
    for delete in ([2], np.array([2]), {"id": 2}, pd.DataFrame({"id": [2]}), pa.table({"id": [2]}), pl.Series([2])):
        people.upsert(GRACE)
        assert people.delete_keys(delete).rows == 1
        assert rows_of(people) == [ADA]


def test_rows_that_do_not_fit_are_told_apart(people: drumlin.Table, store: drumlin.Store) -> None:
    seq = store.seq
    refused: list[tuple[Any, type[Exception], str]] = [
        ({**ADA, "id": "1"}, drumlin.InvalidArgument, "column 'id': expected an int of type int32, not '1'"),
        ({**ADA, "id": 2**31}, drumlin.InvalidArgument, "column 'id': expected an int of type int32, not 2147483648"),
        ({**ADA, "id": True}, drumlin.InvalidArgument, "expected an int of type int32, not True"),
        ({**ADA, "id": 1.0}, drumlin.InvalidArgument, "expected an int of type int32, not 1.0"),
        ({**ADA, "name": 1}, drumlin.InvalidArgument, "column 'name': expected a str, not 1"),
        ({**ADA, "born": "1815"}, drumlin.InvalidArgument, "column 'born': expected a date, not '1815'"),
        ({**ADA, "born": dt.datetime(1815, 1, 1, 5)}, drumlin.InvalidArgument, "expected a date, not datetime"),
        ({**ADA, "id": None}, drumlin.InvalidArgument, "key column 'id' takes no nulls"),
        ({"name": "x", "born": None}, drumlin.SchemaMismatch, "the data lacks the key column 'id'"),
        ({**ADA, "more": 1}, drumlin.SchemaMismatch, "the data has 'more', which the table lacks"),
        ({"id": [1, 2], "name": ["a"], "born": [None]}, drumlin.InvalidArgument, "'id' has 2 and 'name' has 1"),
        ({}, drumlin.InvalidArgument, "the dict is empty"),
        ({1: 2}, TypeError, "a column's name must be a str, not 1"),
        ([ADA, 5], TypeError, "a list of rows must hold dicts, dataclasses or named tuples, not an int"),
        ("x", TypeError, "is the path of no kind of file"),
        (pa.table({"id": pa.array([1]), "name": ["a"], "born": [None]}), drumlin.SchemaMismatch, "int32.*int64"),
    ]
    for rows, kind, why in refused:
        for write in (people.upsert, people.insert):
            with pytest.raises(kind, match=why):
                write(rows)
    assert store.seq == seq


def test_keys_that_make_no_sense_are_told_apart(people: drumlin.Table, store: drumlin.Store) -> None:
    store.table("two").create({"a": pa.string(), "b": pa.int8(), "n": pa.int8()}, key=["a", "b"])
    two = store.table("two")
    refused: list[tuple[drumlin.Table, Any, type[Exception], str]] = [
        (people, ["x"], drumlin.InvalidArgument, "column 'id': expected an int of type int32, not 'x'"),
        (people, [None], drumlin.InvalidArgument, "key column 'id' takes no nulls"),
        (people, [(1, 2)], drumlin.InvalidArgument, r"the key is the column 'id'; expected its value.* not \(1, 2\)"),
        (people, [{"name": 1}], drumlin.InvalidArgument, "the key is the column 'id'; .* not {'name': 1}"),
        (people, np.array([1.5]), drumlin.SchemaMismatch, "'id': the table has type int32, the data has double"),
        (people, np.array([2**40]), drumlin.InvalidArgument, r"'id': 1099511627776 \(int64\) is not a valid int32"),
        (people, {"name": ["x"]}, drumlin.InvalidArgument, "the key column 'id' is missing"),
        (people, pa.table({"name": ["x"]}), drumlin.InvalidArgument, "the key column 'id' is missing"),
        (people, "abc", drumlin.InvalidArgument, "column 'id': expected an int of type int32, not 'abc'"),
        (people, object(), TypeError, "keys: expected a list of values, .*, got an object"),
        (two, ["a"], drumlin.InvalidArgument, "the key has the columns 'a', 'b'; expected a tuple .* not 'a'"),
        (two, [("a",)], drumlin.InvalidArgument, "the key has the columns 'a', 'b'"),
        (two, [("a", 200)], drumlin.InvalidArgument, "column 'b': expected an int of type int8, not 200"),
        (two, [("a", None)], drumlin.InvalidArgument, "key column 'b' takes no nulls"),
        (two, pa.array(["a"]), drumlin.InvalidArgument, "not an array of single values"),
    ]
    for table, keys, kind, why in refused:
        with pytest.raises(kind, match=why):
            table.get_many(keys)
        with pytest.raises(kind, match=why):
            table.delete_keys(keys)
    for key in (None, "x", (1, 2)):
        with pytest.raises(drumlin.InvalidArgument):
            people.get(key)
    plain = store.table("plain")
    plain.write({"id": [1]})
    for call in (
        lambda: plain.get(1),
        lambda: plain.get_many([1]),
        lambda: plain.delete_keys([1]),
        lambda: plain.upsert({"id": 1}),
        lambda: plain.insert({"id": 1}),
    ):
        with pytest.raises(drumlin.InvalidArgument, match="has no key"):
            call()
    with pytest.raises(drumlin.NotFound):
        store.table("nowhere").get_many([1])


def test_keys_that_cannot_be_are_refused(store: drumlin.Store) -> None:
    schema = pa.schema([("a", pa.int64()), ("x", pa.float64()), ("l", pa.list_(pa.int64()))])
    refused: list[tuple[dict[str, Any], str]] = [
        ({"key": ["x"]}, "'x' of type double cannot be in a key"),
        ({"key": ["l"]}, "'l'"),
        ({"key": ["b"]}, "'b'"),
        ({"key": ["a", "a"]}, "'a'"),
        ({"key": ["a"], "sort": ["a"]}, "key"),
    ]
    for options, why in refused:
        with pytest.raises(drumlin.InvalidArgument, match=why):
            store.table("t").create(schema, **options)
    with pytest.raises(TypeError, match="key must be a list of names"):
        store.table("t").create(schema, key=5)  # type: ignore[arg-type]
    assert store.tables() == []


# Types.

KEYS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, 0, 127]),
    (pa.uint64(), [0, 1, 2**64 - 1]),
    (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    (pa.bool_(), [False, True]),
    (pa.string(), ["", "a", "a\0b", "日本"]),
    (pa.large_string(), ["x", "y"]),
    (pa.string_view(), ["a long text that is not within a view", "x"]),
    (pa.binary(), [b"", b"\0", b"\0\1", b"\xff"]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    (pa.timestamp("us"), [dt.datetime(1900, 1, 1, 1, 2, 3, 4), dt.datetime(2026, 1, 2)]),
    (pa.timestamp("s", "UTC"), [dt.datetime(2026, 1, 2, tzinfo=dt.UTC)]),
    (pa.timestamp("ns"), [dt.datetime(2026, 1, 2), pd.Timestamp("2026-01-02 03:04:05.000000006")]),
    (pa.timestamp("ms", "+01:30"), [dt.datetime(2026, 1, 2, 3, 4, 5, 6000, dt.timezone(dt.timedelta(minutes=90)))]),
    (pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999_999)]),
    (pa.time32("s"), [dt.time(1, 2, 3)]),
    (pa.duration("ms"), [dt.timedelta(days=-1), dt.timedelta(milliseconds=5)]),
    (pa.decimal128(38, 2), [Decimal("-1.25"), Decimal("0.00"), Decimal("999999999999999999999999999999999999.99")]),
    (pa.decimal128(5, 0), [Decimal(-3), Decimal(99_999)]),
    (pa.dictionary(pa.int32(), pa.string()), ["a", "b"]),
]


@pytest.mark.parametrize(("kind", "values"), KEYS, ids=[str(kind) for kind, _ in KEYS])
def test_keys_of_all_types(store: drumlin.Store, kind: pa.DataType, values: list[Any]) -> None:
    table = store.table("t")
    table.create({"k": kind, "n": pa.int64()}, key=["k"])
    rows = [{"k": value, "n": at} for at, value in enumerate(values)]
    for step in ("memory", "row groups"):
        assert table.upsert(rows[::-1]).rows == len(rows), step
        for row in rows:
            assert table.get(row["k"]) == row
        answer = table.get_many(pa.array(values, kind))
        assert answer.found.to_pylist() == [True] * len(values)
        assert answer.rows.to_arrow()["n"].to_pylist() == list(range(len(values)))
        assert table.get_many([*values, *values]).rows.to_arrow()["n"].to_pylist() == 2 * list(range(len(values)))
        # In order, as far as the values define one.
        assert table.read().to_arrow()["n"].to_pylist() == list(range(len(values)))
        store.checkpoint()
    with pytest.raises(drumlin.AlreadyExists):
        table.insert(rows[:1])
    table.delete_keys(values)
    assert table.get_many(values).found.count() == 0


def test_a_key_of_many_columns(store: drumlin.Store) -> None:
    kinds = [pa.string(), pa.int16(), pa.date32(), pa.timestamp("us", "UTC"), pa.decimal128(10, 3), pa.binary()]
    names = list("abcdef")
    schema = pa.schema([("value", pa.float64()), *zip(names[::-1], kinds[::-1], strict=True)])
    table = store.table("t")
    table.create(schema, key=names)
    now = dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC)
    keys = [
        (text, number, dt.date(2026, 1, 1 + day), now, Decimal(number) / 8, bytes([day]))
        for text in ("", "a", "b")
        for number in (-5, 5)
        for day in range(3)
    ]
    rows = [{**dict(zip(names, key, strict=True)), "value": float(at)} for at, key in enumerate(keys)]
    random.Random(0).shuffle(rows)
    table.insert(rows)
    for _ in range(2):
        for row in rows:
            key = tuple(row[name] for name in names)
            assert table.get(key) == table.get(dict(zip(names, key, strict=True))) == row
        assert table.get(("c", *keys[0][1:])) is None
        answer = table.get_many(keys[::-1], columns=["value"])
        assert answer.rows.to_arrow().to_pydict() == {"value": [float(at) for at in reversed(range(len(keys)))]}
        frame = pd.DataFrame([dict(zip(names, key, strict=True)) for key in keys])
        assert table.get_many(pa.Table.from_pandas(frame)).found.count() == len(keys)
        assert table.read().to_arrow()["value"].to_pylist() == [float(at) for at in range(len(keys))]
        store.checkpoint()
    assert table.stat().key == names
    table.delete_keys([keys[3], dict(zip(names, keys[4], strict=True))])
    assert table.get_many(keys).found.count() == len(keys) - 2


VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.float16(), [0.5, None]),
    (pa.float32(), [0.5, 1, np.float32(2.5)]),
    (pa.float64(), [float("inf"), 3, np.float64(0.1)]),
    (pa.binary(3), [b"abc", None]),
    (pa.binary_view(), [b"abc", bytearray(b"x")]),
    (pa.date64(), [dt.date(2026, 1, 2)]),
    (pa.decimal256(60, 5), [Decimal(10) ** 54, Decimal("-0.00001"), 7]),
    (pa.decimal128(4, -2), [1200, Decimal("3.4e3")]),
    (pa.list_(pa.int8()), [[1, None], [], None, (3,)]),
    (pa.large_list(pa.string()), [["a"], ["b", "c"]]),
    (pa.list_(pa.int8(), 2), [[1, 2], None]),
    (pa.struct([("a", pa.int8()), ("b", pa.list_(pa.string()))]), [{"a": 1, "b": ["x"]}, None, {"b": None}]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", None, "a"]),
    (pa.null(), [None, None]),
    (pa.bool_(), [True, None, np.bool_(False)]),
    (pa.timestamp("ms", "Europe/Berlin"), [dt.datetime(2026, 7, 1, tzinfo=dt.UTC), None]),
    (pa.timestamp("ns"), [pd.Timestamp("2026-01-02"), pd.NaT]),
    (pa.int32(), [1, pd.NA]),
    (pa.duration("ns"), [dt.timedelta(1), pd.Timedelta(1500, "us")]),
    (pa.time64("ns"), [dt.time(1, 2, 3, 4)]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_values_of_all_types(store: drumlin.Store, kind: pa.DataType, values: list[Any]) -> None:
    table = store.table("t")
    table.create({"id": pa.int64(), "v": kind}, key=["id"])
    missing = [None if value is pd.NA or value is pd.NaT else value for value in values]
    if pa.types.is_decimal(kind):
        missing = [Decimal(value) for value in values]
    expected = pa.array(missing, kind) if not pa.types.is_float16(kind) else pa.array(np.array([0.5]), kind)
    table.upsert({"id": range(len(values)), "v": values})
    assert table.read().to_arrow()["v"].to_pylist()[: len(expected)] == expected.to_pylist()
    for at, value in enumerate(expected.to_pylist()):
        assert table.get(at) == {"id": at, "v": value}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("s"), dt.datetime(2026, 1, 1, microsecond=1)),
        (pa.timestamp("us"), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        (pa.timestamp("us"), dt.date(2026, 1, 1)),
        (pa.timestamp("us"), 5),
        (pa.decimal128(5, 2), Decimal("1.234")),
        (pa.decimal128(5, 2), Decimal("1234")),
        (pa.decimal128(5, 2), Decimal("NaN")),
        (pa.decimal128(5, 2), 1.5),
        (pa.decimal128(38, 2), Decimal("1e1000000")),
        (pa.binary(3), b"ab"),
        (pa.binary(), "ab"),
        (pa.float64(), "1"),
        (pa.bool_(), 1),
        (pa.list_(pa.int8()), "ab"),
        (pa.list_(pa.int8()), ["x"]),
        (pa.struct([("a", pa.int8())]), {"b": 1}),
        (pa.map_(pa.string(), pa.string()), {"b": "1"}),
        (pa.string(), "\ud800"),
    ],
)
def test_values_that_do_not_fit(store: drumlin.Store, kind: pa.DataType, value: Any) -> None:
    store.table("t").create({"id": pa.int64(), "v": kind}, key=["id"])
    with pytest.raises(drumlin.InvalidArgument, match="column 'v'"):
        store.table("t").upsert({"id": 1, "v": value})


def test_keys_may_come_in_another_unit(store: drumlin.Store) -> None:
    store.table("t").create({"t": pa.timestamp("us"), "d": pa.decimal128(10, 2)}, key=["t", "d"])
    moment = dt.datetime(2026, 1, 2, 3)
    store.table("t").upsert({"t": moment, "d": Decimal("1.50")})
    frame = pd.DataFrame({"t": [pd.Timestamp(moment)], "d": [Decimal("1.5")]})
    frame["t"] = frame["t"].astype("datetime64[ns]")
    assert store.table("t").get_many(frame).found.to_pylist() == [True]
    assert store.table("t").delete_keys(frame).rows == 1
    assert store.table("t").get((moment, Decimal("1.5"))) is None
    with pytest.raises(
        drumlin.InvalidArgument, match=r"'d': 1\.505 \(decimal128\(4, 3\)\) is not a valid decimal128\(10, 2\)"
    ):
        store.table("t").get_many(pa.table({"t": [moment], "d": [Decimal("1.505")]}))


# Results of look-ups.


def test_an_answer_in_all_forms(people: drumlin.Table) -> None:
    people.upsert([ADA, GRACE])
    answer = people.get_many([2, 9, 2], columns=["name", "id"])
    assert repr(answer) == "Lookup('people', 2 of 3 keys found)"
    assert len(answer) == 3
    expected = {"name": ["Grace", None, "Grace"], "id": [2, 9, 2]}
    assert answer.rows.to_arrow().to_pydict() == expected
    assert answer.rows.to_polars().to_dict(as_series=False) == expected
    assert answer.rows.to_pandas()["id"].tolist() == [2, 9, 2]
    assert pa.table(answer.rows).to_pydict() == expected
    assert pl.DataFrame(answer.rows).to_dict(as_series=False) == expected
    assert [batch.num_rows for batch in answer.rows] == [3]
    assert answer.rows.schema.names == ["name", "id"]
    assert repr(answer.rows).startswith("Result('people', name: string, id: int32)\n")
    found = answer.found
    assert repr(found) == "Mask(2 of 3 true)"
    assert (found.to_pylist(), list(found), len(found), found.count()) == ([True, False, True], [*found], 3, 2)
    assert (found[0], found[1], found[-1]) == (True, False, True)
    for at in (3, -4):
        with pytest.raises(IndexError, match="out of range"):
            found[at]
    assert pa.array(found).to_pylist() == [True, False, True]
    assert pl.Series(found).to_list() == [True, False, True]
    assert answer.rows.to_arrow().filter(pa.array(found)).num_rows == 2
    assert answer.rows.to_pandas()[np.asarray(found)]["id"].tolist() == [2, 2]
    with pytest.raises(drumlin.InvalidArgument, match="'more'"):
        people.get_many([1], columns=["more"])
    with pytest.raises(TypeError, match="columns must be a list of names"):
        people.get(1, columns=5)  # type: ignore[arg-type]


def test_an_answer_outlives_the_store(folder: str) -> None:
    store = drumlin.open(folder)
    store.table("t").create({"id": pa.int64()}, key=["id"])
    store.table("t").insert({"id": range(1000)})
    answer = store.table("t").get_many(range(2000))
    store.close()
    del store
    gc.collect()
    assert answer.found.count() == 1000
    assert answer.rows.to_arrow().num_rows == 2000


def test_pandas_frames_come_back(store: drumlin.Store) -> None:
    frame = pd.DataFrame({"close": [1.5, 2.5]}, index=pd.Index(["A", "B"], name="sym"))
    schema = pa.Schema.from_pandas(frame)
    store.table("prices").create(schema, key=["sym"])
    store.table("prices").upsert(frame)
    pd.testing.assert_frame_equal(store.read("prices").to_pandas(), frame)
    pd.testing.assert_frame_equal(store.table("prices").get_many(["B", "A"]).rows.to_pandas(), frame.iloc[::-1])
    assert store.table("prices").get_many(["B"], columns=["close"]).rows.to_pandas()["close"].tolist() == [2.5]


def test_earlier_versions_can_be_asked(people: drumlin.Table, store: drumlin.Store) -> None:
    first = people.upsert([ADA, GRACE], metadata=1).version
    assert first is not None
    people.upsert({**ADA, "name": "second"})
    store.snapshot("eod")
    people.upsert({**ADA, "name": "third"})
    people.delete_keys([2])
    for _ in range(2):
        assert people.get(1) == {**ADA, "name": "third"}
        assert people.get(1, as_of=first.version) == ADA
        assert people.get(1, as_of="eod") == {**ADA, "name": "second"}
        assert people.get(1, as_of=first.time) == ADA
        assert (people.get(2), people.get(2, as_of="eod")) == (None, GRACE)
        assert people.get(1, as_of=0) is None
        assert people.get_many([1, 2], as_of="eod", columns=["name"]).rows.to_arrow().to_pydict() == {
            "name": ["second", "Grace"]
        }
        store.checkpoint()
    with pytest.raises(drumlin.NotFound):
        people.get(1, as_of=99)
    with pytest.raises(drumlin.NotFound, match="no version -99"):
        people.get_many([1], as_of=-99)
