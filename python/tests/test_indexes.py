"""Indexes from Python: made, used, listed, dropped; what is refused."""

import random
from pathlib import Path

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
    store.sql("begin; create index x on a.t (id); commit")
    assert [index.name for index in store.table("a/t").indexes()] == ["by_n", "x"]


def test_sql_makes_columns_unique(store):
    store.sql("create table people (id int primary key, email text unique, a int, b int, unique (a, b))")
    store.sql("insert into people values (1, 'x@y', 1, 1), (2, null, 1, 2), (3, null, null, null)")
    made = [(index.name, index.columns, index.unique, index.proven) for index in store.table("people").indexes()]
    assert made == [("email", ["email"], True, True), ("a_b", ["a", "b"], True, True)]
    with pytest.raises(drumlin.AlreadyExists, match="email = x@y"):
        store.sql("insert into people values (4, 'x@y', 4, 4)")
    with pytest.raises(drumlin.AlreadyExists, match="a, b = 1, 2"):
        store.sql("update people set b = 2 where id = 1")
    store.sql("create unique index later on people (lower(email)) where a > 0")
    with pytest.raises(drumlin.AlreadyExists, match="unique index 'later'"):
        store.sql("insert into people values (4, 'X@y', 4, 4)")
    store.sql("insert into people values (4, 'X@y', -4, 4)")
    assert store.table("people").read().to_arrow().num_rows == 4
    store.sql("alter table people add column badge int unique")
    with pytest.raises(drumlin.AlreadyExists, match="badge = 7"):
        store.sql("update people set badge = 7")
    # A default is the value of each row that is there.
    with pytest.raises(drumlin.AlreadyExists, match="desk = 7"):
        store.sql("alter table people add column desk int unique default 7")
    assert "desk" not in store.table("people").schema().names


def test_a_unique_index_refuses_equal_values(store):
    table = store.table("t")
    table.create({"id": int, "email": str}, key="id")
    table.create_index("email", "email", unique=True)
    table.upsert([{"id": 1, "email": "a"}, {"id": 2, "email": None}, {"id": 3, "email": None}])
    store.write("other", {"v": [1]})
    seq = store.seq
    for call in (
        lambda: table.upsert({"id": [4], "email": ["a"]}),
        lambda: table.insert({"id": [4, 5], "email": ["b", "b"]}),
        lambda: table.append({"id": [4], "email": ["a"]}),
        lambda: table.update({"email": "'a'"}, where="id = 2"),
        lambda: table.merge({"id": [2], "email": ["a"]}).when_matched(update=True).execute(),
        lambda: table.write({"id": [1, 2], "email": ["c", "c"]}),
        lambda: store.append_many({"t": {"id": [9], "email": ["a"]}, "other": {"v": [1]}}),
        lambda: table.compare_and_set(2, {"email": None}, {"email": "a"}),
    ):
        with pytest.raises(drumlin.AlreadyExists, match="unique index 'email'"):
            call()
        assert store.seq == seq
    tx = store.transaction()
    tx.table("t").upsert({"id": [5], "email": ["q"]})
    tx.table("t").insert({"id": [6], "email": ["q"]})
    with pytest.raises(drumlin.AlreadyExists, match="unique index 'email'"):
        tx.commit()
    # Two rows change their values with each other.
    table.upsert({"id": [2], "email": ["b"]})
    table.upsert({"id": [1, 2], "email": ["b", "a"]})
    assert table.get(1)["email"] == "b"
    store.write("u", {"v": [1, 1]})
    with pytest.raises(drumlin.AlreadyExists, match="unique index 'again'"):
        store.table("u").create_index("again", "v", unique=True)
    assert store.table("u").indexes() == []
    with pytest.raises(drumlin.InvalidArgument, match="unique index 'email'"):
        table.drop_columns(["email"])
    table.rename_columns({"email": "mail"})
    with pytest.raises(drumlin.AlreadyExists, match="mail = a,"):
        table.upsert({"id": [8], "mail": ["a"]})


def test_staged_rows_are_compared(tmp_path):
    with drumlin.open(tmp_path / "s") as store:
        store.write("t", {"id": [1], "email": ["a"]})
        store.table("t").create_index("email", "email", unique=True)
        for values in (["z", "z"], ["b", "a"]):
            with store.ticket(["t"]) as ticket:
                tokens = [ticket.stage("t", {"id": [7], "email": [value]}) for value in values]
                with pytest.raises(drumlin.AlreadyExists, match="unique index 'email'"):
                    store.commit(tokens)
        with store.ticket(["t"]) as ticket:
            store.commit([ticket.stage("t", {"id": [7], "email": [value]}) for value in "xy"])
        assert store.table("t").read().to_arrow().num_rows == 3


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


@pytest.mark.parametrize("unique", [False, True])
def test_rows_are_looked_up_by_other_columns_than_the_key(tmp_path: Path, unique: bool) -> None:
    with drumlin.open(tmp_path / "s") as store:
        people = store.table("people")
        people.create({"id": pa.int64(), "mail": pa.string(), "team": pa.string(), "badge": pa.int32()}, key=["id"])
        if unique:
            people.create_index("mail", "mail", unique=True)
        rows = [{"id": n, "mail": f"{n}@x", "team": "ab"[n % 2], "badge": n // 2} for n in range(10)]
        people.upsert(rows)
        assert people.get("7@x", on="mail") == rows[7]
        assert people.get("7@x", on="mail", columns=["id"]) == {"id": 7}
        assert people.get("nobody", on="mail") is None
        assert people.get(("b", 3), on=["team", "badge"]) == rows[7]
        assert people.get({"badge": 3, "team": "a"}, on=["team", "badge"]) == rows[6]
        found = people.get_many(["3@x", "none", "1@x", "3@x"], on="mail")
        assert found.found.to_pylist() == [True, False, True, True]
        assert found.rows.to_arrow()["id"].to_pylist() == [3, None, 1, 3]
        assert found.rows.to_arrow()["mail"].to_pylist() == ["3@x", "none", "1@x", "3@x"]
        frame = pa.table({"mail": ["5@x"], "other": [1]})
        assert people.get_many(frame, on="mail", columns="id").rows.to_arrow()["id"].to_pylist() == [5]
        assert people.get_many([], on="mail").found.to_pylist() == []
        with store.transaction() as tx:
            tx.table("people").upsert({"id": 99, "mail": "new", "team": "z", "badge": 0})
            assert tx.table("people").get("new", on="mail", columns="id") == {"id": 99}
        assert people.get("new", on="mail", as_of=0) is None


def test_a_look_up_by_columns_says_what_is_wrong(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "s") as store:
        table = store.table("t")
        table.write({"u": [1, 1], "f": [1.5, 2.5]})
        with pytest.raises(drumlin.InvalidArgument, match=r"'t': more than one row has u = 1"):
            table.get(1, on="u")
        with pytest.raises(drumlin.InvalidArgument, match="column 'uu' does not exist"):
            table.get(1, on="uu")
        with pytest.raises(drumlin.InvalidArgument, match="'f' of type double cannot be looked up"):
            table.get(1.5, on="f")
        with pytest.raises(TypeError, match="on must be"):
            table.get(1, on=7)  # type: ignore[arg-type]
        with pytest.raises(drumlin.InvalidArgument, match="no key"):
            table.get(1)
