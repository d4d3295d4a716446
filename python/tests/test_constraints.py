"""Constraints of tables: what they refuse, by whatever call, and what they say."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import drumlin
from drumlin import col


@pytest.fixture
def store() -> drumlin.Store:
    store = drumlin.open("memory://")
    store.write("t", {"price": [7.5, 2.0], "size": [3, 4], "note": ["a", None]})
    return store


def test_a_violation_names_the_check_the_row_and_the_value(store: drumlin.Store) -> None:
    table = store.table("t")
    table.add_constraints(checks={"positive": col("price") > 0, "small": "size < 100"})
    frame = {"price": [1.0, 2.0, -3.0], "size": [1, 2, 3], "note": ["x", "y", "z"]}
    calls: list[Callable[[], Any]] = [
        lambda: store.append("t", frame),
        lambda: store.append("t", pd.DataFrame(frame)),
        lambda: store.append("t", pa.table(frame).to_reader(max_chunksize=1)),
        lambda: table.replace(frame, where="size = 3"),
    ]
    for call in calls:
        with pytest.raises(drumlin.SchemaMismatch) as caught:
            call()
        assert "'t': check 'positive' (price > 0) does not hold in row 2 of the data: price is -3.0" in str(
            caught.value
        )
    with pytest.raises(drumlin.SchemaMismatch, match=r"'small' \(size < 100\) does not hold in a row that is changed"):
        table.update({"size": "size * 100"})
    assert store.read("t").to_arrow().num_rows == 2
    table.append({"price": [None], "size": [1], "note": [None]})  # what is unknown is not false


def test_nulls_and_defaults(store: drumlin.Store) -> None:
    table = store.table("t")
    with pytest.raises(drumlin.SchemaMismatch, match="'note' takes no nulls"):
        table.add_constraints(not_null=["note"])
    table.update({"note": "'-'"}, where="note is null")
    table.add_constraints(not_null=["note"], defaults={"note": "none", "size": 1})
    assert table.constraints() == drumlin.Constraints({}, ["note"], {"size": 1, "note": "none"})
    with pytest.raises(drumlin.SchemaMismatch, match=r"'note' takes no nulls; the data has 1, the first in row 1"):
        table.append({"price": [1.0, 2.0], "size": [1, 1], "note": ["x", None]})
    table.append({"price": [9.0]}, schema="evolve")
    assert store.read("t").to_arrow().to_pylist()[-1] == {"price": 9.0, "size": 1, "note": "none"}
    table.drop_constraints(not_null=["note"], defaults=["note"])
    table.append({"price": [9.5]}, schema="evolve")
    assert store.read("t").to_arrow().to_pylist()[-2:] == [
        {"price": 9.0, "size": 1, "note": "none"},
        {"price": 9.5, "size": 1, "note": None},
    ]


def test_a_frame_written_over_all_keeps_them(store: drumlin.Store) -> None:
    store.table("t").add_constraints(checks={"positive": "price > 0"}, not_null=["size"])
    store.write("t", pd.DataFrame({"size": [1], "price": [2.0], "more": ["x"]}))
    assert store.table("t").constraints() == drumlin.Constraints({"positive": "price > 0"}, ["size"], {})
    with pytest.raises(drumlin.SchemaMismatch, match="'size' takes no nulls"):
        store.write("t", {"size": pa.array([None], pa.int64()), "price": [2.0]})
    with pytest.raises(drumlin.SchemaMismatch, match="lacks column 'price'"):
        store.write("t", {"size": [1]})
    assert store.table("t").constraints(as_of=0) == drumlin.Constraints({}, [], {})


def test_rows_by_key_keep_them() -> None:
    store = drumlin.open("memory://")
    people = store.table("people")
    people.create({"id": "int64", "age": "int64", "since": pa.timestamp("us", "UTC")}, key=["id"])
    people.add_constraints(
        checks={"age": "age between 0 and 150"}, defaults={"since": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}
    )
    for call in (people.upsert, people.insert):
        with pytest.raises(drumlin.SchemaMismatch, match="check 'age'"):
            call([{"id": 1, "age": 200, "since": None}])
    people.upsert({"id": [1], "age": [20]}, schema="evolve")
    assert people.get(1) == {"id": 1, "age": 20, "since": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}
    source = {"id": [1, 2], "age": [30, 151], "since": [None, None]}
    with pytest.raises(drumlin.SchemaMismatch, match="a row that is inserted: age is 151"):
        people.merge(source, on=["id"]).when_matched(update=True).when_not_matched(insert=True).execute()
    assert people.get(1)["age"] == 20  # type: ignore[index]


def test_rows_on_their_way_when_a_check_is_put_keep_it_too(folder: str) -> None:
    schema = pa.schema([("k", pa.int64()), ("a", pa.int64())])
    with drumlin.open(folder) as store:

        def bad(path: str, rows: int) -> pa.RecordBatchReader:
            def batches() -> Any:
                keys = range(10, 10 + rows)
                yield pa.record_batch({"k": list(keys), "a": [-1] * rows}, schema=schema)
                store.table(path).add_constraints(checks={"positive": "a > 0"})
                yield pa.record_batch({"k": [1], "a": [1]}, schema=schema)

            return pa.RecordBatchReader.from_batches(schema, batches())

        for at, (call, rows, keyed) in enumerate(
            [
                ("upsert", 3, True),
                ("insert", 3, True),
                ("upsert", 200_000, True),
                ("append", 3, True),
                ("append", 3, False),
                ("write", 3, False),
            ]
        ):
            table = store.table(f"t{at}")
            table.create(schema, key=["k"] if keyed else ())
            with pytest.raises((drumlin.Conflict, drumlin.SchemaMismatch)):
                getattr(table, call)(bad(table.path, rows))
            assert table.read(where="a < 0").to_arrow().num_rows == 0, (call, rows)
        # Of staged rows, too, whichever way what the table asks for has changed.
        for mode in ("append", "upsert", "overwrite"):
            table = store.table(f"staged/{mode}")
            table.create(schema, key=["k"])
            staged = store.stage(table.path, {"k": [1], "a": [-1]}, mode=mode)
            table.add_constraints(checks={"positive": "a > 0"})
            with pytest.raises(drumlin.Conflict, match="the schema or the constraints of 'staged/"):
                store.commit([staged])
            staged = store.stage(table.path, {"k": [1], "a": [1]}, mode=mode)
            table.drop_constraints(checks=["positive"])
            with pytest.raises(drumlin.Conflict, match="the schema or the constraints of 'staged/"):
                store.commit([staged])
            assert table.constraints() == drumlin.Constraints({}, [], {})
            assert table.read().to_arrow().num_rows == 0
        # What has not changed, or is gone, is in nobody's way, nor is a default in another type.
        table.add_constraints(checks={"positive": "a > 0"}, defaults={"a": 7})
        store.commit([store.stage(table.path, {"k": [1], "a": [1.5]}, mode="overwrite")])
        assert table.constraints() == drumlin.Constraints({"positive": "a > 0"}, [], {"a": 7.0})
        table.drop_constraints(defaults=["a"])
        store.commit([store.stage(table.path, {"k": [2], "a": [2.5]}, mode="overwrite")])
        assert table.read().to_arrow().to_pylist() == [{"k": 2, "a": 2.5}]


def test_what_a_frame_written_over_all_cannot_keep_is_refused() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"x": [1], "size": [1.0]})
    table = store.table("t")
    table.add_constraints(not_null=["x"], defaults={"size": 1.5})
    with pytest.raises(drumlin.SchemaMismatch, match="its default does not fit the data; drop it first"):
        store.write("t", {"x": [1], "size": [1]})
    with pytest.raises(drumlin.SchemaMismatch, match="lacks column 'x', which takes no nulls"):
        store.write("t", {"size": [1.0]})
    store.write("t", {"x": [1]})
    assert table.constraints() == drumlin.Constraints({}, ["x"], {})
    table.drop_constraints(not_null=["x"])
    with pytest.raises(drumlin.NotFound, match="'x' already takes nulls"):
        table.drop_constraints(not_null=["x"])
    people = store.table("people")
    people.create({"id": "int64"}, key=["id"])
    people.add_constraints(not_null=["id"])
    with pytest.raises(drumlin.InvalidArgument, match="part of the key"):
        people.drop_constraints(not_null=["id"])


def test_what_is_no_constraint_is_refused(store: drumlin.Store) -> None:
    table = store.table("t")
    with pytest.raises(TypeError, match="checks must be a dict"):
        table.add_constraints(checks=["price > 0"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="checks\\['x'\\] must be text"):
        table.add_constraints(checks={"x": None})  # type: ignore[dict-item]
    with pytest.raises(drumlin.InvalidArgument, match="a default must not be None"):
        table.add_constraints(defaults={"size": None})
    with pytest.raises(drumlin.SchemaMismatch, match="'size'"):
        table.add_constraints(defaults={"size": "x"})
    with pytest.raises(drumlin.NotFound, match="check 'x' does not exist"):
        table.drop_constraints(checks=["x"])
    assert len(table.versions()) == 1
