"""Columns that change: added, dropped, renamed, widened, and brought by frames of every kind."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import drumlin


def rows(store: drumlin.Store | drumlin.Transaction, path: str, as_of: drumlin.AsOf | None = None) -> list[Any]:
    found: list[Any] = store.read(path, as_of=as_of).to_arrow().to_pylist()
    return found


def test_columns_come_go_and_change(folder: str) -> None:
    with drumlin.open(folder) as store:
        table = store.table("t")
        table.write(pa.table({"a": pa.array([1, 2], pa.int8()), "b": ["x", "y"]}), metadata={"by": "me"})
        day = dt.date(2026, 1, 2)
        added = table.add_columns({"c": (pa.date32(), day), "d": pa.list_(pa.int64())}, metadata="why")
        assert (added.kind, added.version, added.rows, added.metadata) == ("alter", 1, 2, "why")
        table.rename_columns({"a": "b", "b": "a"})
        table.widen({"b": pa.int64()})
        table.drop_columns(["d"])
        assert rows(store, "t") == [{"b": 1, "a": "x", "c": day}, {"b": 2, "a": "y", "c": day}]
        assert table.schema().types == ["int64", "string", "date32[day]"]
        assert rows(store, "t", 0) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
        assert rows(store, "t", 1)[0] == {"a": 1, "b": "x", "c": day, "d": None}
        assert table.drop_columns([]).version == 4, "nothing changes"
    with drumlin.open(folder) as store:
        table = store.table("t")
        assert [version.kind for version in table.versions()] == ["write", *["alter"] * 4]
        store.append("t", {"b": [3], "a": ["z"]}, schema="evolve")
        assert rows(store, "t")[2] == {"b": 3, "a": "z", "c": day}
        assert len(store.read("t", where="b > 1").to_arrow()) == 2
        assert store.scan("t", where="a = 'z'").count_rows() == 1
        assert store.sql("select sum(b), count(c) from 't'").fetchall() == [(6, 3)]
        assert store.verify(deep=True).ok


def test_frames_bring_columns() -> None:
    store = drumlin.open("memory://")
    store.write("t", pd.DataFrame({"n": np.array([1], "int32")}))
    store.append("t", pd.DataFrame({"n": np.array([2], "int64"), "s": ["x"]}), schema="evolve")
    store.append("t", pl.DataFrame({"s": ["y"], "f": [0.5]}), schema="evolve")
    store.append("t", [{"n": 4, "when": dt.datetime(2026, 1, 2)}], schema="evolve")
    assert store.table("t").schema().names == ["n", "s", "f", "when"]
    frame = store.read("t").to_pandas()
    assert frame["s"].isna().tolist() == [True, False, False, True]
    assert store.read("t").to_polars()["n"].to_list() == [1, 2, None, 4]
    assert store.read("t", as_of=0).to_pandas().equals(pd.DataFrame({"n": np.array([1], "int32")}))
    answers = store.append_many({"t": {"x": [1]}, "new": {"x": [1]}}, schema="evolve", return_exceptions=True)
    assert answers["t"].rows == 5
    assert isinstance(answers["new"], drumlin.NotFound)
    with pytest.raises(drumlin.SchemaMismatch, match="'zzz', which the table lacks"):
        store.append("t", {"zzz": [1]})
    with pytest.raises(drumlin.SchemaMismatch, match="'n'"):
        store.append("t", {"n": ["no number"]}, schema="evolve")
    assert store.table("t").versions()[-1].version == 4


@pytest.mark.parametrize("later", [["x"], [1], [1.5], [dt.date(2026, 1, 1)], [{"a": 1}], [[1, 2]], [b"z"], [True]])
def test_a_column_of_none_takes_any_type(later: list[Any]) -> None:
    store = drumlin.open("memory://")
    store.write("t", pd.DataFrame({"n": [1], "v": pd.Series([None], dtype=object)}))
    store.append("t", {"n": [2], "v": later})
    assert rows(store, "t") == [{"n": 1, "v": None}, {"n": 2, "v": later[0]}]
    assert store.read("t", as_of=0).to_arrow()["v"].null_count == 1
    store.append("t", {"n": [3], "v": [None]})
    assert rows(store, "t")[2] == {"n": 3, "v": None}
    assert store.scan("t", where="v is null").count_rows() == 2
    assert len(store.read("t").to_pandas()) == 3


def test_rows_by_key_bring_columns() -> None:
    store = drumlin.open("memory://")
    people = store.table("people")
    people.create({"id": pa.int64(), "name": pa.string(), "note": pa.null()}, key=["id"])
    people.upsert([{"id": 1, "name": "Ada", "note": None}, {"id": 2, "name": "Grace", "note": None}])
    people.upsert({"id": 1, "name": "Ada L.", "note": "first"})
    assert people.get(1) == {"id": 1, "name": "Ada L.", "note": "first"}
    people.insert([{"id": 3, "born": 1912}], schema="evolve")
    assert people.get(3) == {"id": 3, "name": None, "note": None, "born": 1912}
    people.upsert(pl.DataFrame({"id": [2], "born": [1906]}), schema="evolve")
    assert people.get(2) == {"id": 2, "name": "Grace", "note": None, "born": 1906}, "a row keeps what the data lacks"
    people.rename_columns({"born": "year"})
    people.upsert({"id": 4, "name": "Alan", "note": None, "year": 1912})
    assert people.get_many([4, 3], columns=["year"]).rows.to_arrow()["year"].to_pylist() == [1912, 1912]
    with pytest.raises(drumlin.SchemaMismatch, match="'unknown', which the table lacks"):
        people.upsert({"id": 1, "name": "x", "note": None, "year": 1, "unknown": 5})
    assert store.verify(deep=True).ok


def test_changes_in_transactions() -> None:
    store = drumlin.open("memory://")
    store.table("k").create({"id": pa.int64(), "n": pa.int64()}, key=["id"])
    store.table("k").upsert({"id": [1], "n": [1]})
    calls = []

    def change(tx: drumlin.Transaction) -> None:
        calls.append(1)
        tx.table("k").add_columns({"m": (pa.int64(), 7)})
        tx.table("k").upsert({"id": [2], "n": [2], "m": [3]})

    store.transact(change)
    assert calls == [1], "rows in memory become row groups in the same commit"
    assert rows(store, "k") == [{"id": 1, "n": 1, "m": 7}, {"id": 2, "n": 2, "m": 3}]
    # What a transaction wrote itself nobody else can make row groups.
    with contextlib.suppress(drumlin.Abort), store.transaction() as tx:
        tx.table("k").upsert({"id": [3], "n": [3], "m": [3]})
        with pytest.raises(drumlin.Conflict, match="wrote itself"):
            tx.table("k").drop_columns(["m"])
        tx.abort()
    store.write("t", {"a": [1]})
    with contextlib.suppress(drumlin.Abort), store.transaction() as tx:
        tx.table("t").rename_columns({"a": "b"})
        tx.append("t", {"b": [2], "c": [3]}, schema="evolve")
        assert rows(tx, "t") == [{"b": 1, "c": None}, {"b": 2, "c": 3}]
        tx.abort()
    assert rows(store, "t") == [{"a": 1}]


def test_wrong_changes_say_what_is_wrong() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"k": [1, 2], "n": [2**60 + 1, 0]}, sort=["k"])
    table = store.table("t")
    wrong: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: table.drop_columns(["k"]), drumlin.InvalidArgument, "'k' is a column that the table is sorted by"),
        (lambda: table.drop_columns(5), TypeError, "list of names"),  # type: ignore[arg-type]
        (lambda: table.rename_columns({"n": "k"}), drumlin.InvalidArgument, "two columns are called 'k'"),
        (lambda: table.rename_columns({"x": "y"}), drumlin.InvalidArgument, "'x' does not exist"),
        (lambda: table.widen({"n": pa.int8()}), drumlin.SchemaMismatch, "does not hold all of its values"),
        (lambda: table.widen({"n": pa.float64()}), drumlin.SchemaMismatch, str(2**60 + 1)),
        (lambda: table.widen({"x": pa.float64()}), drumlin.InvalidArgument, "'x' does not exist"),
        (lambda: table.add_columns({"n": pa.int8()}), drumlin.AlreadyExists, "'n' already exists"),
        (lambda: table.add_columns({"m": (pa.int8(), "x")}), drumlin.InvalidArgument, "default"),
        (lambda: table.add_columns({"m": (pa.int8(), 1, 2)}), drumlin.InvalidArgument, "3 parts"),
        (lambda: table.add_columns({"m": "int8?"}), drumlin.InvalidArgument, "columns"),
        (lambda: table.add_columns(5), TypeError, "columns"),  # type: ignore[arg-type]
        (lambda: store.append("t", {}, schema="loose"), drumlin.InvalidArgument, "'strict', 'evolve'"),  # type: ignore[arg-type]
        (lambda: store.table("no").widen({"n": pa.int8()}), drumlin.NotFound, "'no'"),
    ]
    for call, error, words in wrong:
        with pytest.raises(error, match=words):
            call()
    assert len(table.versions()) == 1


def test_pandas_frames_come_back_after_changes() -> None:
    store = drumlin.open("memory://")
    index = pd.date_range("2026-01-01", periods=2, name="day")
    frame = pd.DataFrame({"price": np.array([1, 2], "int32"), "kind": pd.Categorical(["a", "b"])}, index=index.values)
    frame.index.name = "day"
    store.write("t", frame)
    table = store.table("t")
    table.widen({"price": pa.int64()})
    table.add_columns({"note": pa.string()})
    table.rename_columns({"kind": "sort of"})
    now = store.read("t").to_pandas()
    assert list(now.columns) == ["price", "sort of", "note"]
    assert now["price"].tolist() == [1, 2]
    assert now["sort of"].tolist() == ["a", "b"]
    assert now.index.name == "day"
    assert list(now.index) == list(frame.index)
    table.drop_columns(["sort of"])
    assert list(store.read("t").to_pandas().columns) == ["price", "note"]
    pd.testing.assert_frame_equal(store.read("t", as_of=0).to_pandas(), frame)


def test_columns_come_from_a_frame_by_key() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"k": ["a", "b", "c"], "n": [1, 2, 3]})
    table = store.table("t")
    made = table.add_columns(pd.DataFrame({"k": ["c", "a", "x"], "price": [3.5, 1.5, 9.0]}), on="k")
    assert made.version == 2
    assert table.read().to_arrow().to_pylist() == [
        {"k": "a", "n": 1, "price": 1.5},
        {"k": "b", "n": 2, "price": None},
        {"k": "c", "n": 3, "price": 3.5},
    ]
    assert [version.kind for version in table.versions()] == ["write", "alter", "merge"]
    with pytest.raises(drumlin.AlreadyExists, match="'price' already exists"):
        table.add_columns({"k": ["a"], "price": [0.0]}, on=["k"])
    with pytest.raises(drumlin.InvalidArgument, match="rows 0 and 1 of the data"):
        table.add_columns({"k": ["a", "a"], "x": [0, 1]}, on=["k"])
    with pytest.raises(drumlin.InvalidArgument, match="not both"):
        table.add_columns({"k": ["a"]}, on="k", using=lambda rows: rows)
    assert len(table.versions()) == 3


def test_columns_come_from_a_function() -> None:
    store = drumlin.open("memory://")
    store.write("t", pa.table({"n": range(300_000), "s": ["x"] * 300_000}))
    table, batches = store.table("t"), []

    def parity(rows: pa.RecordBatch) -> pd.DataFrame:
        batches.append((rows.schema.names, rows.num_rows))
        return pd.DataFrame({"odd": rows["n"].to_numpy() % 2 == 1, "text": [str(n) for n in rows["n"].to_pylist()]})

    table.add_columns({"odd": pa.bool_(), "text": pa.string()}, using=parity, read=["n"])
    assert sorted(batches) == [(["n"], 54_240), (["n"], 122_880), (["n"], 122_880)]
    shown = table.read(where="n > 299997").to_arrow().to_pylist()
    assert shown == [
        {"n": 299_998, "s": "x", "odd": False, "text": "299998"},
        {"n": 299_999, "s": "x", "odd": True, "text": "299999"},
    ]
    with store.transaction() as tx:
        tx.table("t").add_columns({"m": pa.int64()}, using=lambda rows: {"m": rows["n"]})
    assert table.read(columns=["m"], tail=1).to_arrow().to_pylist() == [{"m": 299_999}]


def test_a_function_that_raises_leaves_the_table_as_it_was() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"n": [1, 2]})
    table = store.table("t")

    def broken(_: pa.RecordBatch) -> dict[str, list[int]]:
        raise LookupError("no such luck")

    with pytest.raises(LookupError, match="no such luck"):
        table.add_columns({"m": pa.int64()}, using=broken)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda _: {"m": [1]}, drumlin.SchemaMismatch, "1 rows for 2"),
        (lambda _: {"x": [1, 2]}, drumlin.SchemaMismatch, "'x'"),
        (lambda _: {"m": ["a", "b"]}, drumlin.SchemaMismatch, "'m'"),
        (lambda _: 7, TypeError, "what using returned"),
        (7, TypeError, "using must be a function"),
    ]
    for using, error, words in cases:
        with pytest.raises(error, match=words):
            table.add_columns({"m": pa.int64()}, using=using)
    with pytest.raises(drumlin.InvalidArgument, match="the function of using gets"):
        table.add_columns({"m": pa.int64()}, read=["n"])
    assert len(table.versions()) == 1
    with pytest.raises(drumlin.InvalidArgument, match="'n' was requested twice"):
        table.add_columns({"m": pa.int64()}, using=lambda rows: rows, read=["n", "n"])


def test_a_function_may_use_the_store_and_holds_up_nobody() -> None:
    store = drumlin.open("memory://", cpu_threads=2)
    store.write("t", {"n": range(600_000)})
    store.write("log", {"rows": [0]})

    def noted(rows: pa.RecordBatch) -> dict[str, Any]:
        store.append("log", {"rows": [rows.num_rows]})
        assert store.read("t").to_arrow().num_rows == 600_000
        return {"m": rows["n"]}

    store.table("t").add_columns({"m": pa.int64()}, using=noted)
    assert sum(store.read("log").to_arrow()["rows"].to_pylist()) == 600_000
    assert store.read("t", where="m <> n or m is null").to_arrow().num_rows == 0


FRAMES = {
    "an index with a name": pd.DataFrame({"a": [1.5, 2.5], "b": [1, 2]}, index=pd.Index([5, 6], name="i")),
    "an index without one": pd.DataFrame({"a": [1.5, 2.5], "b": [1, 2]}, index=pd.Index(["x", "y"])),
    "objects and periods": pd.DataFrame(
        {"a": [(1,), (2,)], "b": pd.period_range("2024", periods=2)}, index=pd.Index([5, 6], name="i")
    ),
    "an index of two levels": pd.DataFrame(
        {"a": pd.Categorical(["x", "y"]), "b": [3, 4]},
        index=pd.MultiIndex.from_tuples([(1, "a"), (2, "b")], names=["h", "i"]),
    ),
    "labels that are numbers": pd.DataFrame([[1, 2], [3, 4]], columns=[10, 20]),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames_follow_their_columns(frame: pd.DataFrame) -> None:
    store = drumlin.open("memory://")
    table = store.table("t")
    table.write(frame)
    first, *_, last = table.schema().names
    stored = frame.index.nlevels if not isinstance(frame.index, pd.RangeIndex) else 0

    def found() -> pd.DataFrame:
        return store.read("t").to_pandas()

    table.rename_columns({first: "new"})
    expected = frame.rename(columns={frame.columns[0]: "new"})
    pd.testing.assert_frame_equal(found(), expected, check_column_type=False)
    table.add_columns({first: (pa.int64(), 7)})
    pd.testing.assert_frame_equal(found(), expected.assign(**{first: 7}), check_column_type=False)
    table.drop_columns([first])
    table.rename_columns({last: "other"})
    if stored:
        expected.index.names = [*expected.index.names[:-1], "other"]
    else:
        expected = expected.rename(columns={frame.columns[-1]: "other"})
    pd.testing.assert_frame_equal(found(), expected, check_column_type=False)
    pd.testing.assert_frame_equal(
        store.read("t", columns=["new"]).to_pandas(), expected[["new"]], check_column_type=False
    )
    table.drop_columns(["other"])
    if stored > 1:
        expected = expected.droplevel("other")
    elif stored:
        expected = expected.reset_index(drop=True)
    else:
        expected = expected.drop(columns=["other"])
    pd.testing.assert_frame_equal(found(), expected, check_column_type=False)
    # What comes under an old name is no part of what the frame said.
    table.add_columns(
        {"b": (pa.int64(), 7), "c": (pa.int64(), 8)} if "b" not in table.schema().names else {"c": (pa.int64(), 8)}
    )
    assert found()["c"].tolist() == [8, 8]
    pd.testing.assert_frame_equal(store.read("t", as_of=0).to_pandas(), frame)


def test_a_column_under_an_old_name_is_read_as_it_is() -> None:
    store = drumlin.open("memory://")
    store.write("t", FRAMES["objects and periods"])
    store.table("t").drop_columns(["b"])
    store.table("t").add_columns({"b": (pa.int64(), 7)})
    assert store.read("t").to_pandas()["b"].tolist() == [7, 7]


def test_the_order_is_renamed() -> None:
    store = drumlin.open("memory://")
    days = pd.DatetimeIndex(["2026-01-02", "2026-01-01"], name="ts")
    store.write("t", pd.DataFrame({"v": [1.0, 2.0]}, index=days), sort=["ts"])
    table = store.table("t")
    table.rename_columns({"ts": "time"})
    assert table.stat().sort == ["time"]
    table.append(pd.DataFrame({"v": [0.5]}, index=days[:1].rename("time")))
    found = store.read("t").to_pandas()
    assert (found.index.name, found["v"].tolist()) == ("time", [2.0, 1.0, 0.5])
    assert store.read("t", as_of=0).to_pandas().index.name == "ts"
    keyed = store.table("k")
    keyed.create({"a": "int64", "b": "string", "v": "float64"}, key=["a", "b"])
    keyed.upsert({"a": [1, 2], "b": ["x", "y"], "v": [1.0, 2.0]})
    keyed.rename_columns({"a": "first"})
    assert keyed.get((1, "x")) == keyed.get({"first": 1, "b": "x"}) == {"first": 1, "b": "x", "v": 1.0}
    keyed.upsert({"first": 1, "b": "x", "v": 5.0})
    assert keyed.get((1, "x")) == {"first": 1, "b": "x", "v": 5.0}
    with pytest.raises(drumlin.Error, match="'first'"):
        keyed.upsert({"a": 1, "b": "x", "v": 5.0})


def test_values_of_python_take_the_types_of_the_table() -> None:
    store = drumlin.open("memory://")
    types = {"n": "int32", "x": "float", "d": "decimal(10, 2)", "at": "timestamptz", "l": pa.list_(pa.int8())}
    row = {"n": 1, "x": 0.5, "d": 1, "at": dt.datetime(2026, 1, 1), "l": [1]}
    table = store.table("t")
    table.create(types)
    for add in (
        lambda: table.append([row]),
        lambda: table.append({name: [value] for name, value in row.items()}),
        lambda: table.append(iter([{name: [value] for name, value in row.items()}])),
        lambda: table.append([row], schema="evolve"),
        lambda: store.append_many({"t": [row]}),
        lambda: table.replace([row], where="n = 7"),
        lambda: table.merge([row | {"n": 2}], on="n").when_not_matched(insert=True).execute(),
        lambda: store.transact(lambda tx: tx.append("t", [row])),
    ):
        before = len(table)
        add()
        assert len(table) > before
    kinds = table.schema().types
    assert kinds == ["int32", "float", "decimal128(10, 2)", "timestamp[us, tz=UTC]", "list<int8>"]
    seq = store.seq
    for wrong in ({"n": 2**40}, {"n": 1.5}, {"n": "1"}, {"l": [1000]}):
        with pytest.raises(drumlin.SchemaMismatch, match="the table has type"):
            table.append([row | wrong])
    # What has a type keeps it.
    with pytest.raises(drumlin.SchemaMismatch, match="the data has int64"):
        table.append({"n": np.array([1])} | {name: [row[name]] for name in row if name != "n"})
    assert store.seq == seq
    table.append([row | {"n": 2**40}], schema="evolve")
    assert table.schema().types[0] == "int64"
    store.write("t", [row])
    assert store.table("t").schema().types[0] == "int64"
