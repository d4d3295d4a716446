"""Rows that change: updates and merges of tables of every order."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import drumlin
from drumlin import col


def rows(store: drumlin.Store | drumlin.Transaction, path: str, as_of: drumlin.AsOf | None = None) -> list[Any]:
    found: list[Any] = store.read(path, as_of=as_of).to_arrow().to_pylist()
    return found


def test_columns_are_set(folder: str) -> None:
    with drumlin.open(folder) as store:
        frame = pa.table(
            {
                "id": [1, 2, 3],
                "price": pa.array([decimal.Decimal("1.10"), decimal.Decimal("2.20"), None], pa.decimal128(8, 2)),
                "name": ["a", "b", "c"],
                "day": pa.array([dt.date(2026, 1, 1)] * 3),
                "flag": [True, False, True],
            }
        )
        store.write("t", frame)
        table = store.table("t")
        report = table.update({"price": col("price") * 1.5, "name": "'it''s'"}, where=col("id") > 1, metadata=[1])
        assert (report.rows, report.version and report.version.kind) == (2, "update")
        assert report.version is not None
        assert report.version.metadata == [1]
        found = rows(store, "t")
        assert [row["price"] for row in found] == [decimal.Decimal("1.10"), decimal.Decimal("3.30"), None]
        assert [row["name"] for row in found] == ["a", "it's", "it's"]
        values: list[tuple[str, Any]] = [
            ("price", decimal.Decimal("5.25")),
            ("price", 7),
            ("name", None),
            ("day", dt.date(2026, 2, 3)),
            ("flag", np.bool_(False)),
            ("id", np.int32(9)),
            ("flag", "id > 3 and price = 7"),
            ("name", pd.NA),
        ]
        for name, value in values:
            assert table.update({name: value}).rows == 3
        assert rows(store, "t")[0] == {
            "id": 9,
            "price": decimal.Decimal("7.00"),
            "name": None,
            "day": dt.date(2026, 2, 3),
            "flag": True,
        }
        assert rows(store, "t", 0) == frame.to_pylist()
        assert store.verify(deep=True).ok
        none = table.update({"name": "'x'"}, where="id = 100")
        assert none.rows == 0
        assert none.version is not None
        assert none.version.version == 9


def test_wrong_updates_say_what_is_wrong() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"k": [1], "n": [1], "s": ["x"]}, sort=["k"])
    table = store.table("t")
    wrong: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: table.update({"k": 2}), drumlin.InvalidArgument, "'k' is a column that the table is sorted by"),
        (lambda: table.update({"s": "Ada"}), drumlin.InvalidArgument, "Ada"),
        (lambda: table.update({"n": 2.5}), drumlin.InvalidArgument, "decimal places"),
        (lambda: table.update({"n": "n * 1e30"}), drumlin.InvalidArgument, "is not a valid int64"),
        (lambda: table.update({"n": b"x"}), drumlin.InvalidArgument, "is not a valid int64"),
        (lambda: table.update({"zz": 1}), drumlin.InvalidArgument, "'zz' does not exist"),
        (lambda: table.update({}), drumlin.InvalidArgument, "no column is set"),
        (lambda: table.update("n = 1"), TypeError, "set must be a dict"),  # type: ignore[arg-type]
        (lambda: table.update({"n": object()}), TypeError, "n ="),
        (lambda: table.update({"n": "n +"}), drumlin.InvalidArgument, "expression"),
        (lambda: store.table("no").update({"n": 1}), drumlin.NotFound, "'no'"),
    ]
    for call, error, words in wrong:
        with pytest.raises(error, match=words):
            call()
    assert len(table.versions()) == 1


@pytest.mark.parametrize("order", ["plain", "sort", "key"])
@pytest.mark.parametrize("frame", [pa.table, pd.DataFrame, pl.DataFrame, dict])
def test_a_merge_does_what_its_clauses_say(order: str, frame: Any) -> None:
    store = drumlin.open("memory://")
    table = store.table("t")
    first = pa.table({"id": [1, 2, 3, 4], "n": [10, 20, 30, 40], "s": ["a", "b", "c", "d"]})
    if order == "key":
        table.create(first.schema, key=["id"])
        table.upsert(first)
    else:
        table.write(first, sort=["id"] if order == "sort" else None)
    source = frame({"id": [2, 3, 5, 6], "n": [21, 0, 50, 1], "s": ["B", "C", "E", "F"]})
    report = (
        table.merge(source, on=None if order == "key" else ["id"], metadata="why")
        .when_matched(delete=True, condition="source.n = 0")
        .when_matched(update={"n": "target.n + source.n"}, condition=col("target").field("n") < 100)
        .when_not_matched(insert=True, condition="source.n > 10")
        .when_not_matched(insert={"id": "source.id", "s": "'new'"})
        .when_not_matched_by_source(update={"s": None}, condition="target.id = 1")
        .when_not_matched_by_source(delete=True, condition="target.id = 4")
        .execute()
    )
    assert (report.updated, report.deleted, report.inserted) == (2, 2, 2)
    assert report.version is not None
    assert (report.version.kind, report.version.metadata, report.version.rows) == ("merge", "why", 4)
    assert rows(store, "t") == [
        {"id": 1, "n": 10, "s": None},
        {"id": 2, "n": 41, "s": "b"},
        {"id": 5, "n": 50, "s": "E"},
        {"id": 6, "n": None, "s": "new"},
    ]
    assert store.verify(deep=True).ok


def test_wrong_merges_say_what_is_wrong() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"id": [1], "n": [1]})
    table = store.table("t")
    source = {"id": [1, 1], "n": [1, 2]}

    def merge(data: Any = None, on: Any = ("id",)) -> drumlin.Merge:
        return table.merge({"id": [1], "n": [2]} if data is None else data, on=on)

    wrong: list[tuple[Callable[[], object], type[Exception], str]] = [
        (
            lambda: merge(source).when_matched(update=True).execute(),
            drumlin.InvalidArgument,
            "rows 0 and 1 of the data",
        ),
        (lambda: merge(on=None).when_matched(update=True).execute(), drumlin.InvalidArgument, "has no key"),
        (lambda: merge(on=["x"]).when_matched(update=True).execute(), drumlin.InvalidArgument, "'x' does not exist"),
        (lambda: merge().execute(), drumlin.InvalidArgument, "the merge has no action"),
        (lambda: merge().when_matched(), drumlin.InvalidArgument, "either what to update or delete=True"),
        (lambda: merge().when_matched(update=True, delete=True), drumlin.InvalidArgument, "either"),
        (lambda: merge().when_not_matched(insert=None), drumlin.InvalidArgument, "what to insert"),
        (lambda: merge().when_matched(update=5), TypeError, "update must be a dict"),  # type: ignore[arg-type]
        (lambda: merge().when_matched(update={"n": "n + 1"}).execute(), drumlin.InvalidArgument, "n"),
        (lambda: merge(on=5), TypeError, "list of names"),
        (lambda: table.merge(5, on=["id"]), TypeError, "source"),  # type: ignore[arg-type]
        (lambda: merge({"id": [1], "x": [1]}).when_matched(update=True).execute(), drumlin.SchemaMismatch, "'x'"),
    ]
    for call, error, words in wrong:
        with pytest.raises(error, match=words):
            call()
    assert len(table.versions()) == 1
    done = merge().when_matched(update=True)
    done.execute()
    with pytest.raises(drumlin.InvalidArgument, match="already executed"):
        done.execute()


def test_updates_and_merges_in_transactions() -> None:
    store = drumlin.open("memory://")
    store.write("a", {"id": [1, 2], "n": [1, 2]})
    with store.transaction() as tx:
        tx.append("a", {"id": [3], "n": [3]})
        assert tx.table("a").update({"n": "n * 10"}, where="id > 1").version is None
        report = tx.table("a").merge({"id": [3, 4], "n": [0, 4]}, on=["id"]).when_matched(delete=True)
        assert report.when_not_matched(insert=True).execute().version is None
        assert rows(tx, "a") == [{"id": 1, "n": 1}, {"id": 2, "n": 20}, {"id": 4, "n": 4}]
    assert rows(store, "a") == [{"id": 1, "n": 1}, {"id": 2, "n": 20}, {"id": 4, "n": 4}]
    assert [version.kind for version in store.table("a").versions()] == ["write", "append", "update", "merge"]


def test_updates_equal_those_of_pandas() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "k": rng.permutation(300_000),
            "x": rng.normal(size=300_000),
            "s": rng.choice(["red", "green", "blue"], 300_000),
        }
    )
    store = drumlin.open("memory://")
    store.write("t", frame)
    store.table("t").delete("k % 11 = 0")
    frame = frame[frame["k"] % 11 != 0]
    for where in ["k % 7 = 0", "x > 2.5"]:
        mask = frame["x"] > 2.5 if where.startswith("x") else frame["k"] % 7 == 0
        report = store.table("t").update({"x": "x * 2", "s": "'gone'"}, where=where)
        assert report.rows == mask.sum()
        frame.loc[mask, "x"] *= 2
        frame.loc[mask, "s"] = "gone"
    found = store.read("t").to_pandas()
    pd.testing.assert_frame_equal(found, frame.reset_index(drop=True))
