"""SQL over a store: queries by every way to name a table, and statements that change tables, which are done in tables
of DuckDB too, and compared row for row.

``DRUMLIN_STATEMENTS`` says how many random statements, ``DRUMLIN_SEED`` which.
"""

import datetime as dt
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import drumlin

SEED = os.environ.get("DRUMLIN_SEED", "5")
STATEMENTS = int(os.environ.get("DRUMLIN_STATEMENTS", "100"))


@pytest.fixture
def store() -> Iterator[drumlin.Store]:
    with drumlin.open("memory://") as store:
        store.write("prices/us/AAPL", {"n": [1, 2, 3], "close": [1.0, 60.0, 3.0]})
        store.append("prices/us/AAPL", {"n": [4], "close": [4.0]})
        store.write("odd name/x.y", {"n": [7]})
        store.snapshot("a@b", "**")
        yield store


def rows(store: Any, query: str, **options: Any) -> list[Any]:
    found: list[Any] = store.sql(query, **options).fetchall()
    return found


@pytest.mark.parametrize(
    ("table", "count"),
    [
        ("prices.us.AAPL", 4),
        ("'prices/us/AAPL'", 4),
        ('"prices/us/AAPL"', 4),
        ('prices.us."AAPL"', 4),
        ("prices.us.AAPL AT (VERSION => 0)", 3),
        ("prices.us.AAPL AT (VERSION => -2)", 3),
        ("'prices/us/AAPL' at (timestamp => '2999-01-01')", 4),
        ("'prices/us/AAPL' at (timestamp => timestamp '2999-01-01')", 4),
        ("'prices/us/AAPL@a@b'", 4),
        ("'prices/us/AAPL@-2'", 3),
        ('"odd name"."x.y"', 1),
        ("(select * from prices.us.AAPL) as q", 4),
        ("(with AAPL as (select 1) select * from AAPL) as q", 1),
        ("prices.us.AAPL as a join (from prices.us.AAPL at (version => 0)) as b using (n)", 3),
        ("mine", 2),
        ("ours", 1),
        ("range(3)", 3),
    ],
)
def test_tables_are_named_in_many_ways(store: drumlin.Store, table: str, count: int) -> None:
    mine, ours = pa.table({"a": [1, 2]}), pd.DataFrame({"a": [1]})
    assert store.sql(f"select count(*) from {table}").fetchall() == [(count,)]
    assert mine.num_rows + len(ours) == 3
    with store.transaction() as tx:
        tx.append("prices/us/AAPL", {"n": [5], "close": [5.0]})
        if (
            "version" not in table.lower()
            and "@" not in table
            and "AAPL" in table
            and "with" not in table
            and "2999" not in table
        ):
            assert rows(tx, f"select count(*) from {table}") == [(count + 1,)]


def test_what_is_there_is_shown(store: drumlin.Store) -> None:
    assert rows(store, "SHOW TABLES") == [("odd name/x.y",), ("prices/us/AAPL",)]
    assert [row[:2] for row in rows(store, "describe 'prices/us/AAPL'")] == [("n", "BIGINT"), ("close", "DOUBLE")]
    assert len(rows(store, "summarize 'prices/us/AAPL'")) == 2
    assert rows(store, "select n from prices.us.AAPL where n = ?", params=[2]) == [(2,)]
    assert rows(store, "explain select n from prices.us.AAPL")


@pytest.mark.parametrize(
    ("query", "error", "told"),
    [
        ("from AAPL", drumlin.NotFound, "did you mean 'prices/us/AAPL'"),
        ("from prices.us.APPL", drumlin.NotFound, "did you mean 'prices/us/AAPL'"),
        ("from 'prices/us/APPL'", drumlin.NotFound, "did you mean 'prices/us/AAPL'"),
        ("from prices.us.AAPL at (version => 9)", drumlin.NotFound, "no version 9"),
        ("from prices.us.AAPL at (version => 1 + 1)", drumlin.InvalidArgument, "AT takes a literal"),
        ("from 'prices/us/AAPL@9'", drumlin.NotFound, "no version 9"),
        ("create view v as select 1", drumlin.InvalidArgument, "CREATE VIEW"),
        ("create temporary table t (n int)", drumlin.InvalidArgument, "TEMPORARY"),
        ("set threads = 1", drumlin.InvalidArgument, "SET would be lost"),
        ("attach 'x.db'", drumlin.InvalidArgument, "ATTACH would be lost"),
        ("checkpoint", drumlin.InvalidArgument, r"use store.checkpoint\(\)"),
        ("force checkpoint", drumlin.InvalidArgument, r"use store.checkpoint\(\)"),
        ("vacuum", drumlin.InvalidArgument, r"use store.vacuum\(\)"),
        ("analyze", drumlin.InvalidArgument, "statistics of its tables by itself"),
        ("export database 'x'", drumlin.InvalidArgument, "copy t to 'file'"),
        ("import database 'x'", drumlin.InvalidArgument, "copy t from 'file'"),
        ("pragma table_info('prices/us/AAPL')", drumlin.InvalidArgument, "use show tables"),
        ("show databases", drumlin.InvalidArgument, "use show tables"),
        ("select * from information_schema.tables", drumlin.InvalidArgument, "use show tables"),
        ("from duckdb_tables()", drumlin.InvalidArgument, "use show tables"),
        ("use prices", drumlin.InvalidArgument, "their whole path"),
        ("create schema x", drumlin.InvalidArgument, "makes the path"),
        ("create table t (n int references u(n))", drumlin.InvalidArgument, "no foreign keys"),
        ("select * from prices.us.AAPL at (version 1)", drumlin.InvalidArgument, "VERSION => 0"),
        ("select * from 'prices/us/AAPL' as of 0", drumlin.InvalidArgument, "VERSION => 0"),
        ("from prices.us.AAPL for version as of 0", drumlin.InvalidArgument, "VERSION => 0"),
        ("from prices/us/AAPL", drumlin.InvalidArgument, "prices.us.AAPL"),
        ("from Prices.us.AAPL", drumlin.NotFound, "'Prices/us/AAPL'; did you mean 'prices/us/AAPL'\\?$"),
        (
            "merge into users using x on users.id = x.id when matched then delete",
            drumlin.NotFound,
            "no table at 'users'",
        ),
        (
            "merge into prices.us.AAPL a using prices.us.AAPL b on a.n > b.n when matched then delete",
            drumlin.InvalidArgument,
            "joins by columns that are equal",
        ),
        (
            "merge into prices.us.AAPL a using prices.us.AAPL b on a.n = b.n when matched then update set n = close",
            drumlin.InvalidArgument,
            "a column of both tables",
        ),
        (
            "merge into prices.us.AAPL a using prices.us.AAPL b on a.n = b.n when not matched then delete",
            drumlin.InvalidArgument,
            "DELETE is not allowed",
        ),
        ("insert into nope values (1)", drumlin.NotFound, "no table at 'nope'"),
        ("insert into prices.us.AAPL values (1)", drumlin.InvalidArgument, "2 columns, but 1 values"),
        ("insert into prices.us.AAPL (m) values (1)", drumlin.InvalidArgument, "no column 'm'"),
        ("insert into prices.us.AAPL values (1, 2) on conflict do nothing", drumlin.InvalidArgument, "has no key"),
        ("insert into prices.us.AAPL values (1, 2) returning n", drumlin.InvalidArgument, "RETURNING"),
        ("update prices.us.AAPL set m = 1", drumlin.InvalidArgument, "column 'm'"),
        ("delete from prices.us.AAPL where m = 1", drumlin.InvalidArgument, "no column m"),
        ("drop table nope", drumlin.NotFound, "nope"),
        ("create table prices.us.AAPL (n int)", drumlin.AlreadyExists, "prices/us/AAPL"),
        ("commit", drumlin.InvalidArgument, "commit without begin"),
        ("begin; delete from prices.us.AAPL", drumlin.InvalidArgument, "does not end it"),
        ("begin; delete from prices.us.AAPL; delete from nope; commit", drumlin.NotFound, "nope"),
        ("begin; begin; commit", drumlin.InvalidArgument, "has begun already"),
        ("selct 1", duckdb.ParserException, "selct"),
        ("", drumlin.InvalidArgument, "no statement"),
        ("copy prices.us.AAPL from 'x.csv' (header)", drumlin.InvalidArgument, "read_csv"),
    ],
)
def test_what_is_refused_leads_on_and_changes_nothing(
    store: drumlin.Store, query: str, error: type[Exception], told: str
) -> None:
    seq = store.seq
    with pytest.raises(error, match=told):
        store.sql(query)
    assert store.seq == seq


@pytest.mark.parametrize("text", ["delete from prices.us.AAPL", "from prices.us.AAPL; drop table prices.us.AAPL"])
def test_old_versions_are_only_read(store: drumlin.Store, text: str) -> None:
    seq = store.seq
    with pytest.raises(drumlin.InvalidArgument, match=r"as_of reads only; store\.restore"):
        store.sql(text, as_of=0)
    assert store.seq == seq
    assert rows(store, "select count(*) from prices.us.AAPL", as_of=0) == [(3,)]


def test_names_that_duckdb_would_change_are_refused(store: drumlin.Store) -> None:
    store.write("pair", {"a": [1], "A": [2], "ä": [3], "Ä": [4]})
    store.write("none", {"a": [1], "": [2]})
    for query in ('select "A" from pair', "from 'pair'", "describe pair", "insert into pair values (1, 2, 3, 4)"):
        with pytest.raises(drumlin.InvalidArgument, match=r"'a' and 'A'.*store.table\('pair'\)\.rename_columns"):
            store.sql(query)
    with pytest.raises(drumlin.InvalidArgument, match="without a name"):
        store.sql("from none")
    assert rows(store, "select 'pair' as text") == [("pair",)]
    found = store.scan("pair")
    with pytest.raises(duckdb.Error, match="'a' and 'A'"):
        duckdb.from_arrow(found).fetchall()
    assert duckdb.from_arrow(found.select(["A", "Ä"])).fetchall() == [(2, 4)]
    store.sql('alter table pair rename column "A" to b')
    assert store.sql("from pair").columns == ["a", "b", "ä", "Ä"]


def test_reports_have_versions(store: drumlin.Store) -> None:
    store.sql("create table k (id int primary key, n int)")
    keyed = store.sql("insert into k values (1, 1), (2, 2)")
    assert (keyed.rows, keyed.seq) == (2, store.seq)
    added = store.sql("insert into prices.us.AAPL values (8, 8), (9, 9)")
    assert (added.rows, added.version.version) == (2, 2)
    assert store.sql("update prices.us.AAPL set n = 7 where n > 7").version.version == 3
    assert store.sql("delete from prices.us.AAPL where n = 7").version.version == 4
    # What reads other tables is a transaction with what it reads.
    assert store.sql("insert into prices.us.AAPL select * from prices.us.AAPL").rows == 4
    with store.transaction() as tx:
        made = tx.sql("insert into prices.us.AAPL values (1, 1)")
        assert (made.rows, made.version) == (1, None)


def test_relations_have_the_methods_of_frames(store: drumlin.Store) -> None:
    query = "select n from prices.us.AAPL order by n"
    assert list(store.sql(query).to_pandas()["n"]) == [1, 2, 3, 4]
    assert store.sql(query).to_polars()["n"].to_list() == [1, 2, 3, 4]
    assert store.sql(query).to_arrow().num_rows == 4
    assert list(store.sql(query)) == [(1,), (2,), (3,), (4,)]


def test_a_failure_says_what_was_committed_before(store: drumlin.Store) -> None:
    with pytest.raises(
        drumlin.NotFound, match="statement 3 of 3 failed; what those before it did is committed: .*nope"
    ):
        store.sql("from prices.us.AAPL; delete from prices.us.AAPL where n = 1; delete from nope")
    with pytest.raises(drumlin.NotFound, match="^no table"):
        store.sql("from prices.us.AAPL; delete from nope")
    with store.transaction() as tx, pytest.raises(drumlin.NotFound, match="is in the transaction"):
        tx.sql("delete from prices.us.AAPL where n = 2; delete from nope")


def test_strings_in_dollars_and_leading_tables_are_understood(store: drumlin.Store) -> None:
    store.sql("create table words (w text)")
    store.sql("insert into words values ($$it's$$), ('b')")
    store.sql("update words set w = $q$that's$q$ where w = $$it's$$")
    assert rows(store, "from words order by w") == [("b",), ("that's",)]
    assert rows(store, "describe prices.us.AAPL") == rows(store, "describe 'prices/us/AAPL'")
    assert len(rows(store, "summarize prices.us.AAPL")) == 2
    assert rows(store, "show words") == rows(store, "describe words")
    assert rows(store, "pivot words on w using count(*)") == [(1, 1)]


def test_ctrl_c_ends_a_query_of_python() -> None:
    many = "from range(1000000) a, range(10000000) b where a.range * b.range % 7"
    code = "import sys, drumlin; made = drumlin.open('memory://').sql(sys.argv[1]); print(1, flush=True); " + "{}"
    for at, then in enumerate(
        ["made.fetchall()", "made.df()", "made.to_arrow_reader().read_all()", "len(made)", "print(made)"]
    ):
        child = subprocess.Popen(
            [sys.executable, "-c", code.format(then), f"select a.range {many} = 9"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        time.sleep(0.2 * at)
        child.send_signal(signal.SIGINT)
        try:
            _, told = child.communicate(timeout=60)
        finally:
            child.kill()
        assert "KeyboardInterrupt" in told, (then, told)


def test_tables_are_made_changed_and_dropped(store: drumlin.Store, tmp_path: Path) -> None:
    run = store.sql
    run("create table app.users (id bigint primary key, email text not null, n int default 3, check (n > 0))")
    users = store.table("app/users")
    assert users.stat().key == ["id"]
    seq = store.seq
    run("insert into app.users (id, email) values (1, 'a'), (2, 'b')")
    assert store.seq == seq + 1
    assert users.get(2) == {"id": 2, "email": "b", "n": 3}
    for wrong in ("values (1, 'again', 4)", "values (3, null, 4)", "values (3, 'c', -4)", "values (3, 'c', 'x')"):
        with pytest.raises((drumlin.Error, duckdb.Error)):
            run(f"insert into app.users {wrong}")
    run("insert into app.users values (1, 'no', 4), (3, 'c', 6) on conflict do nothing")
    run("insert into app.users values (1, 'q', 7), (4, 'd', 8) on conflict (id) do update set n = n + excluded.n")
    run("insert or replace into app.users values (2, 'r', 1)")
    assert rows(store, "select * from app.users order by id") == [
        (1, "a", 10), (2, "r", 1), (3, "c", 6), (4, "d", 8),
    ]  # fmt: skip
    assert run("update app.users set n = n + 1, email = 'z' where id < 3").rows == 2
    assert run("delete from app.users where n > 10").rows == 1
    run("create table copy as select id, n * 2 as m from app.users")
    run("alter table copy add column note varchar default 'x'")
    run("alter table copy rename column m to k")
    run("alter table copy alter k type bigint")
    run("alter table copy alter k set not null")
    run("alter table copy add constraint small check (k < 1000)")
    assert store.table("copy").schema().types == ["int64", "int64", "string"]
    assert store.table("copy").constraints().checks == {"small": "k < 1000"}
    run("alter table copy drop constraint small")
    run("alter table copy drop column note")
    run("alter table copy rename to moved.copy")
    assert rows(store, "select * from moved.copy order by 1") == [(2, 4), (3, 12), (4, 16)]
    file = tmp_path / "it's.parquet"
    quoted = str(file).replace("'", "''")
    run(f"copy moved.copy to '{quoted}' (format parquet)")
    run("truncate moved.copy")
    assert len(store.read("moved/copy")) == 0
    run(f"copy moved.copy from '{quoted}'")
    run(f"copy (select id from moved.copy) to '{tmp_path}/ids.csv' (header)")
    assert sorted((tmp_path / "ids.csv").read_text().split()) == ["2", "3", "4", "id"]
    run("create table if not exists moved.copy (z int)")
    run("create or replace table moved.copy as select 5 as five")
    assert rows(store, "from moved.copy") == [(5,)]
    run("drop table if exists nope, moved.copy")
    assert "moved/copy" not in store
    store.with_message("by hand").sql("delete from app.users where id = 3")
    assert store.table("app/users").versions()[-1].message == "by hand"


def test_a_transaction_is_all_or_nothing(store: drumlin.Store) -> None:
    names = [f"t{at}" for at in range(5)]
    for name in names:
        store.sql(f"create table {name} (id int primary key, n int)")
    seq = store.seq
    store.sql("begin; " + "".join(f"insert into {name} values (1, 1);" for name in names) + " commit")
    assert store.seq == seq + 1
    with pytest.raises(drumlin.AlreadyExists):
        store.sql(
            "begin; "
            + "".join(f"insert into {name} values (2, 2);" for name in names)
            + "insert into t0 values (2, 2); commit"
        )
    store.sql("begin; insert into t0 values (3, 3); rollback")
    assert (store.seq, [len(store.read(name)) for name in names]) == (seq + 1, [1] * 5)
    with store.transaction() as tx:
        tx.sql("insert into t0 values (4, 4)")
        tx.sql("update t0 set n = 5 where id = 4")
        assert rows(tx, "select n from t0 where id = 4") == [(5,)]
        assert len(store.read("t0")) == 1
    assert store.table("t0").get(4) == {"id": 4, "n": 5}
    with pytest.raises(drumlin.InvalidArgument, match="has begun already"), store.transaction() as tx:
        tx.sql("begin; commit")


def test_times_with_a_zone_are_rows_of_python(store: drumlin.Store) -> None:
    moment = dt.datetime(2026, 3, 28, 23, 30, tzinfo=dt.UTC)
    store.write("zoned", {"moment": [moment]})
    # DuckDB makes them with a package that the extra brings.
    assert rows(store, "select moment from zoned") == [(moment,)]


def test_uuids_are_keys_and_values(store: drumlin.Store) -> None:
    one, two = uuid.UUID(int=1), uuid.UUID(int=2**127)
    store.sql("create table ids (id uuid primary key, n int)")
    store.sql(f"insert into ids values ('{one}', 1), ('{two}', 2)")
    store.sql(
        f"merge into ids using (select '{one}'::uuid as id, 7 as n) s on ids.id = s.id when matched then update set *"
    )
    assert rows(store, "select * from ids order by n") == [(two, 2), (one, 7)]
    assert store.table("ids").get(two) == {"id": two, "n": 2}
    assert store.read("ids", where=f"id = cast('{one}' as uuid)").to_dicts() == [{"id": one, "n": 7}]
    store.sql("delete from ids where id = ?", params=[two])
    store.checkpoint()
    assert two not in store.table("ids")
    assert one in store.table("ids")


def _literal(rng: random.Random, kind: str) -> str:
    if rng.random() < 0.1:
        return "null"
    match kind:
        case "int":
            return str(rng.randrange(-50, 50))
        case "text":
            return "'" + rng.choice(["a", "b", "it''s", "", "Ä", "x" * 40]) + "'"
        case "double":
            return f"{rng.randrange(-400, 400) / 8}"
    return f"date '2026-0{rng.randrange(1, 10)}-1{rng.randrange(10)}'"


COLUMNS = {"i": "int", "t": "text", "d": "double", "day": "date"}


def _where(rng: random.Random) -> str:
    def term() -> str:
        column = rng.choice(list(COLUMNS))
        literal = _literal(rng, COLUMNS[column])
        match rng.randrange(5):
            case 4:
                return rng.choice(
                    [
                        f"length(t) > {rng.randrange(4)}",
                        f"year(day) + month(day) > {2026 + rng.randrange(9)}",
                        f"coalesce(i, {rng.randrange(9)}) < {rng.randrange(20)}",
                        "upper(trim(t)) = 'A'",
                        f"abs(i) <= {rng.randrange(40)}",
                        f"round(d) >= {rng.randrange(-20, 20)}",
                        "starts_with(t, 'x')",
                        f"cast(d as int) % 2 = {rng.randrange(2)} and d * 8 % 4 <> 0",
                        "nullif(t, '') is null",
                        "day::timestamp < timestamp '2026-05-11 12:00:00'",
                    ]
                )
            case 0:
                return f"{column} is {rng.choice(['', 'not '])}null"
            case 1 if literal != "null":
                return f"{column} in ({literal}, {literal})"
            case 2:
                return f"id % {rng.randrange(2, 6)} = {rng.randrange(3)}"
        return f"{column} {rng.choice(['=', '<>', '<', '>='])} {literal}" if literal != "null" else "id > 3"

    return f" {rng.choice(['and', 'or'])} ".join(f"({term()})" for _ in range(rng.randrange(1, 3)))


def _statement(rng: random.Random, name: str) -> str:
    """A random statement that changes a table, as both know it."""

    def some(count: int) -> str:
        values = [
            f"({rng.randrange(60)}, {', '.join(_literal(rng, kind) for kind in COLUMNS.values())})"
            for _ in range(count)
        ]
        return ", ".join(values)

    other = rng.choice(["t0", "t1", "t2"])
    match rng.randrange(11):
        case 9 | 10:
            also = rng.choice(
                ["", f" and s.i > {rng.randrange(-40, 40)}", f" and x.i is null or s.d < {rng.randrange(9)}"]
            )
            then = rng.choice(
                [
                    "update set i = s.i, t = coalesce(s.t, x.t)",
                    "update set d = x.d + s.d, t = concat(x.t, '-', s.id)",
                    "delete",
                ]
            )
            insert = rng.choice(["", " when not matched then insert (id, i, t) values (s.id, s.i + 1, lower(s.t))"])
            rest = rng.choice(["", " when not matched by source and x.id > 50 then update set d = x.id / 2"])
            source = rng.choice([other, f"(select id + 3 as id, i, t, d from {other} where {_where(rng)})"])
            matched = f"when matched{also} then {then}{insert}{rest}"
            return f"merge into {name} as x using {source} as s on x.id = s.id {matched}"
        case 0 | 1:
            return f"insert into {name} values {some(rng.randrange(1, 4))}"
        case 2:
            return f"insert into {name} (id, d) select id + {rng.randrange(60)}, d * 2 from {other} where {_where(rng)}"
        case 3:
            return f"insert into {name} values {some(1)} on conflict (id) do nothing"
        case 4:
            return f"insert into {name} values {some(1)} on conflict (id) do update set i = excluded.i, t = excluded.t"
        case 5:
            return f"insert or replace into {name} values {some(1)}"
        case 6 | 7:
            column = rng.choice(list(COLUMNS))
            computed = {
                "i": ["i + 1", "coalesce(i, 0) + length(t)", "abs(i)", "year(day) - 2000"],
                "t": ["upper(t)", "concat(t, id)", "coalesce(t, 'none')", "substring(t, 2, 3)"],
                "d": ["round(d, 1)", "floor(d) + i", "cast(i as double) / 2", "nullif(d, 0)"],
                "day": ["coalesce(day, date '2026-01-01')", "cast(date_trunc('month', day) as date)"],
            }[column]
            value = rng.choice(computed) if rng.random() < 0.5 else _literal(rng, COLUMNS[column])
            return f"update {name} set {column} = {value} where {_where(rng)}"
    return f"delete from {name} where {_where(rng)}"


def test_random_statements_equal_those_of_duckdb() -> None:
    rng = random.Random(f"sql {SEED}")
    done = refused = 0
    with drumlin.open("memory://") as store, duckdb.connect() as own:
        for name in ("t0", "t1", "t2"):
            made = f"create table {name} (id int primary key, i int, t text, d double, day date)"
            store.sql(made)
            own.execute(made)
        for at in range(STATEMENTS):
            parts = [_statement(rng, rng.choice(["t0", "t1", "t2"])) for _ in range(rng.choice([1, 1, 1, 3]))]
            script = parts[0] if len(parts) == 1 else "; ".join(["begin", *parts, "commit"])
            what = f"{script}\nrun it again: DRUMLIN_SEED={SEED} pytest test_sql.py, statement {at}"
            seq = store.seq
            try:
                own.execute(script)
                there = True
            except duckdb.Error:
                there = False
                if len(parts) > 1:
                    own.execute("rollback")
            if there:
                store.sql(script)
                done += 1
            else:
                with pytest.raises((drumlin.Error, duckdb.Error)):
                    store.sql(script)
                assert store.seq == seq, what
                refused += 1
            for name in ("t0", "t1", "t2"):
                query = f"select * from {name} order by id"
                assert rows(store, query) == own.execute(query).fetchall(), what
            if at % 20 == 0:
                store.checkpoint()
        assert store.verify().faults == []
    assert done > refused > 0
