"""Indexes from Python: made, used, listed, dropped; what is refused."""

import random

import pyarrow as pa
import pytest

import drumlin
from drumlin import col


@pytest.fixture
def store():
    with drumlin.open("memory://") as store:
        yield store


def rows(count: int) -> pa.Table:
    draw = random.Random(3)
    names = ["ab", "AB", "abc", "b", None, "x" * 300]
    return pa.table(
        {
            "id": list(range(count)),
            "n": [draw.choice([None, *range(50)]) for _ in range(count)],
            "s": [draw.choice(names) for _ in range(count)],
        }
    )


@pytest.mark.parametrize(
    "where",
    [
        "n = 7",
        "n in (1, 2, 70)",
        "n >= 10 and n < 12 and s is not null",
        "n is null",
        "s like 'ab%'",
        "lower(s) = 'ab'",
        "n = 3 or s = 'b'",
        "not (n < 48 or n is null)",
        "n = 5 and id > 100 and id < 900",
    ],
)
def test_filters_find_the_same_with_and_without(store, where):
    table = store.table("t")
    table.write(rows(3000))
    plain = table.read(where=where).to_arrow()
    table.create_index("n", "n")
    table.create_index("s", ["s", col("n")])
    table.create_index("lower", "lower(s)")
    assert table.read(where=where).to_arrow() == plain
    data = store.scan("t").where(where)
    assert data.to_arrow() == plain
    assert data.count_rows() == len(plain)
    plan = data.explain()
    assert plan.indexes
    assert plan.indexed_row_groups == 1
    assert plan.index_hits >= len(plain)
    assert "indexes" in str(plan)
    before = table.read().to_arrow()
    assert table.delete(where).rows == len(plain)
    assert len(table.read().to_arrow()) == len(before) - len(plain)
    assert table.read(where=where, as_of=0).to_arrow() == plain


def test_an_index_has_a_condition(store):
    table = store.table("t")
    table.write(rows(1000))
    table.create_index("late", "n", where=col("id") >= 500)
    [index] = table.indexes()
    assert (index.name, index.columns, index.where, index.entries) == ("late", ["n"], "id >= 500", 500)
    assert store.scan("t").where("n = 3").explain().indexes == []
    assert store.scan("t").where("n = 3 and id >= 500").explain().indexes == ["late"]


def test_engines_that_push_filters_use_indexes(store):
    duckdb = pytest.importorskip("duckdb")
    del duckdb
    table = store.table("t")
    table.write(rows(2000))
    wanted = store.sql("select id from t where n = 7 order by id").to_arrow()
    table.create_index("n", "n")
    assert store.sql("select id from t where n = 7 order by id").to_arrow() == wanted


def test_sql_makes_and_drops_indexes(store):
    duckdb = pytest.importorskip("duckdb")
    store.write("a/t", rows(1000))
    store.sql("create index by_n on a.t (n, lower(s)) where id >= 10")
    store.sql("create index if not exists by_n on 'a/t' (s)")
    store.sql("create index on a.t (s)")
    found = [(index.name, index.columns, index.where) for index in store.table("a/t").indexes()]
    assert found == [("by_n", ["n", "lower(s)"], "id >= 10"), ("s", ["s"], None)]
    assert store.table("a/t").indexes()[1].entries == 1000
    assert store.sql("select count(*) as n from a.t where s = 'b'").to_arrow()["n"][0].as_py() > 0
    store.sql("drop index s on a.t;")
    store.sql("drop index if exists s on a.t")
    # DuckDB does not parse it, so it must stand alone: nothing that follows is ignored.
    with pytest.raises(duckdb.ParserException, match="syntax error"):
        store.sql("drop index by_n on a.t; delete from a.t")
    with pytest.raises(drumlin.NotFound, match="it has 'by_n'"):
        store.sql("drop index s on a.t")
    with pytest.raises(drumlin.InvalidArgument, match="DROP INDEX name ON table"):
        store.sql("drop index by_n")
    with pytest.raises(drumlin.InvalidArgument, match="UNIQUE"):
        store.sql("create unique index u on a.t (id)")
    store.sql("begin; create index x on a.t (id); commit")
    assert [index.name for index in store.table("a/t").indexes()] == ["by_n", "x"]


def test_indexes_are_dropped_rebuilt_and_counted(store):
    table = store.table("t")
    table.write(rows(1000))
    table.create_index("n", "n", deferred=True)
    assert table.indexes()[0].entries == 0
    assert table.stat().indexes == 1
    assert store.checkpoint(index_rows_min=1).index_runs == 1
    assert table.indexes()[0].entries == 1000
    assert table.stat().index_bytes > 0
    table.rebuild_index("n")
    table.drop_index("n")
    assert table.indexes() == []
    assert table.stat().index_bytes == 0
    store.reclaim()
    assert store.verify(deep=True).faults == []


def test_a_dropped_column_suspends(store):
    table = store.table("t")
    table.write(rows(1000))
    table.create_index("n", "n")
    table.rename_columns({"n": "number"})
    assert table.indexes()[0].columns == ["number"]
    table.drop_columns(["number"])
    assert table.indexes()[0].suspended
    assert len(table.read(where="n = 7", as_of=0).to_arrow()) > 0


def test_what_is_refused(store):
    table = store.table("t")
    with pytest.raises(drumlin.NotFound, match="no table"):
        table.create_index("i", "n")
    table.write(rows(10))
    with pytest.raises(drumlin.InvalidArgument, match="no column m"):
        table.create_index("i", "m")
    with pytest.raises(TypeError, match="names or expressions"):
        table.create_index("i", 7)
    with pytest.raises(TypeError, match="the name of an index"):
        table.create_index(7, "n")
    with pytest.raises(TypeError, match="where must be text"):
        table.create_index("i", "n", where=7)
    with pytest.raises(drumlin.InvalidArgument, match="where is empty"):
        table.create_index("i", "n", where=" ")
    table.create_index("i", "n")
    with pytest.raises(drumlin.AlreadyExists, match="'i' already exists"):
        table.create_index("i", "s")
    with pytest.raises(drumlin.NotFound, match="it has 'i'"):
        table.drop_index("j")
    with store.transaction() as transaction:
        with pytest.raises(drumlin.InvalidArgument, match="not rebuilt in a transaction"):
            transaction.table("t").rebuild_index("i")
        transaction.table("t").create_index("s", "s")
        transaction.table("t").drop_index("i")
    assert [index.name for index in table.indexes()] == ["s"]
