"""What people type first, by habits from elsewhere: it works, or the error has the line to type."""

import dataclasses
import datetime as dt
import decimal
import io
import re
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from market import market

import drumlin
from drumlin import _habits, col

DAY = dt.date(2026, 1, 2)


@pytest.fixture
def store() -> drumlin.Store:
    return market()


# What works.


def test_a_name_stands_for_a_list_of_one(store: drumlin.Store) -> None:
    assert store.table("users").stat().key == ["id"]
    assert store.read("prices/us/AAPL", columns="close").schema.names == ["close"]
    assert store.read("prices/us/AAPL").select("sym").to_dicts()[0] == {"sym": "A"}
    table = store.table("prices/us/MSFT")
    table.add_constraints(not_null="close")
    table.drop_constraints(not_null="close")
    table.merge({"sym": ["Z"], "close": [0.0], "ts": [None]}, on="sym").when_not_matched(insert=True).execute()
    table.drop_columns("sym")
    assert table.schema().names == ["ts", "close"]
    assert list(store.read_many("users")) == ["users"]
    users = store.table("users")
    assert users.delete_keys(3).rows == 1
    assert list(users.get_many(2)) == [{"id": 2, "email": "u2", "born": None}]
    store.write("prices/us/MSFT", {"n": [1]})
    assert store.delete_versions({"prices/us/MSFT": 0}).versions == {"prices/us/MSFT": [0]}


def test_a_result_is_used_like_a_frame(store: drumlin.Store) -> None:
    result = store.read("prices/us/AAPL")
    assert len(result) == 4
    assert result.head(2).to_pandas()["close"].tolist() == [1.0, 60.0]
    assert result.tail(1).to_dicts() == [{"ts": dt.datetime(2026, 1, 4), "close": 4.0, "sym": "B"}]
    assert result.where("sym = 'A'").head(1).to_dicts()[0]["close"] == 1.0
    assert result.group_by("sym").agg({"close": "max"}).to_dicts() == [
        {"sym": "A", "close": 3.0},
        {"sym": "B", "close": 60.0},
    ]
    assert result.group_by().agg({"close": ["min", "max"]}, n="count").to_dicts() == [
        {"close_min": 1.0, "close_max": 60.0, "n": 4}
    ]
    assert result.resample("2d", on="ts").agg({"close": "sum"}).head(1).num_rows == 1
    assert sum(batch.num_rows for batch in result.to_batches()) == 4
    # It is of its version, whatever happens.
    old = store.read("prices/us/AAPL", as_of=0)
    store.table("prices/us/AAPL").delete("sym = 'A'")
    assert len(old.head(10)) == 3
    assert old.group_by("sym").agg(n="count").to_dicts() == [{"sym": "A", "n": 2}, {"sym": "B", "n": 1}]


def test_a_result_narrowed_in_any_order_equals_a_frame(store: drumlin.Store) -> None:
    store.write("t", {"n": range(100)})
    for number, limit, tail, rows in (
        (0, None, None, None),
        (1, 30, None, None),
        (2, None, 30, None),
        (3, None, None, slice(10, 40)),
    ):
        result = store.read("t", limit=limit, tail=tail, rows=rows)
        frame = result.to_pandas()
        for first, last in ((5, 3), (50, 7), (0, 2), (4, 100)):
            assert (
                result.head(first).tail(last).to_pandas()["n"].tolist() == frame.head(first).tail(last)["n"].tolist()
            ), number
            assert (
                result.tail(last).head(first).to_pandas()["n"].tolist() == frame.tail(last).head(first)["n"].tolist()
            ), number
            assert len(result.tail(last).head(first)) == len(frame.tail(last).head(first))
    even = store.read("t", where="n % 2 = 0")
    assert even.tail(3).head(2).to_pandas()["n"].tolist() == [94, 96]
    with pytest.raises(drumlin.InvalidArgument, match="where comes before"):
        even.head(3).where("n > 1")
    with pytest.raises(drumlin.InvalidArgument, match="groups come before"):
        even.head(3).group_by("n").agg(n="count")
    with pytest.raises(drumlin.InvalidArgument, match="column 'm' does not exist"):
        even.select(["m"])
    with pytest.raises(drumlin.InvalidArgument):
        even.where("m > 1")
    groups = store.scan("t").group_by("n").agg(count="count")
    assert groups.tail(2).head(1).to_dicts() == [{"n": 98, "count": 1}]
    with pytest.raises(drumlin.InvalidArgument, match="before group_by"):
        groups.where("n > 1")


def test_a_result_in_a_transaction_is_narrowed(store: drumlin.Store) -> None:
    with store.transaction() as tx:
        tx.table("users").upsert({"id": 9, "email": "new", "born": None})
        result = tx.read("users")
        assert result.where("id > 3").to_dicts()[-1]["email"] == "new"
        assert result.group_by().agg(n="count").to_dicts() == [{"n": 6}]
        tx.table("users").upsert({"id": 10, "email": "newer", "born": None})
        with pytest.raises(drumlin.InvalidArgument, match="read it again"):
            result.head(1)
        assert result.group_by().agg(n="count").to_dicts() == [{"n": 6}]


def test_a_pattern_is_read_as_one_result(store: drumlin.Store) -> None:
    result = store.read("prices/us/*", where="close > 2")
    assert isinstance(result, drumlin.Result)
    assert (result.version, len(result), result.head(1).num_rows) == (None, 5, 1)
    assert result.group_by("sym").agg(n="count").to_pandas()["n"].tolist() == [2, 3]
    assert "prices/us/*" in repr(result)
    with pytest.raises(drumlin.InvalidArgument, match="tail is for one table"):
        result.tail(1)


def test_rows_go_to_files(store: drumlin.Store, tmp_path: Path) -> None:
    for of in (store.read("prices/us/AAPL"), store.scan("prices/us/AAPL")):
        of.to_parquet(tmp_path / "a.parquet", compression="zstd")
        assert pq.read_table(tmp_path / "a.parquet").num_rows == 4
        of.to_csv(str(tmp_path / "a.csv"))
        assert pd.read_csv(tmp_path / "a.csv")["close"].tolist() == [1.0, 60.0, 3.0, 4.0]
        file = io.BytesIO()
        of.to_csv(file)
        assert file.getvalue().startswith(b'"ts","close","sym"\n')
    # A file that cannot be written whole is left as it was.
    store.write("lists", {"n": [[1, 2]]})
    before = (tmp_path / "a.csv").read_bytes()
    with pytest.raises(drumlin.InvalidArgument, match=r"column 'n' of type list.* has no form in CSV"):
        store.read("lists").to_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.parquet"]


def test_text_shows_the_first_rows(store: drumlin.Store) -> None:
    store.write("t", {"n": range(30), "text": ["a\u202eb" * 40] * 30, "list": [[1]] * 30})
    shown = repr(store.read("t"))
    lines = shown.splitlines()
    assert lines[0] == "Result('t', n: int64, text: string, list: list<int64>)"
    assert len(lines) == 13
    assert lines[-1] == "  … of 30 rows"
    assert "\u202e" not in shown
    assert max(map(len, lines)) < 120
    store.close()
    assert repr(store.uri)


def test_versions_by_time_and_from_the_end(store: drumlin.Store) -> None:
    read = lambda as_of: len(store.read("prices/us/AAPL", as_of=as_of))  # noqa: E731
    assert (read(-1), read(-2), read(np.int64(-2)), read("2999-01-01"), read(dt.date(2999, 1, 1))) == (4, 3, 3, 4, 4)
    for as_of, told in ((-3, "no version -3"), (-(2**80), "no version"), ("1999-01-01", "no version existed at 1999")):
        with pytest.raises(drumlin.NotFound, match=told):
            read(as_of)
    store.snapshot("2999-01-01", "users")
    with pytest.raises(drumlin.NotFound, match="snapshot '2999-01-01' has no table"):
        read("2999-01-01")
    users = store.table("users")
    assert users.get(1, as_of="2999-01-01") == {"id": 1, "email": "u1", "born": None}
    assert users.diff(-1).to_arrow().num_rows >= 0
    with pytest.raises(drumlin.NotFound, match=r"did you mean 'prices/us/AAPL'\?"):
        store.read("prices/us/APPL")
    with pytest.raises(drumlin.NotFound, match=r"did you mean 'users'\?"):
        store.drop("usres")


class Named(NamedTuple):
    id: int
    email: str
    born: dt.date | None = None


@dataclasses.dataclass
class Plain:
    id: int
    email: str
    born: dt.date | None = None


def test_rows_and_batches_of_any_kind(store: drumlin.Store, tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2, 3]})
    pq.write_table(table, tmp_path / "n.parquet")
    (tmp_path / "n.csv").write_text("n\n1\n2\n3\n")
    (tmp_path / "n.jsonl").write_text('{"n": 1}\n{"n": 2}\n{"n": 3}\n')
    data: list[Any] = [
        pq.ParquetFile(tmp_path / "n.parquet").iter_batches(batch_size=2),
        pq.ParquetFile(tmp_path / "n.parquet"),
        pads.dataset(tmp_path / "n.parquet"),
        pads.dataset(tmp_path / "n.parquet").scanner(),
        tmp_path / "n.parquet",
        str(tmp_path / "n.csv"),
        tmp_path / "n.jsonl",
        iter([pd.DataFrame({"n": [1]}), pd.DataFrame({"n": [2, 3]})]),
        ({"n": n} for n in (1, 2, 3)),
        iter([table]),
    ]
    for rows in data:
        store.write("n", rows)
        assert store.read("n").to_arrow()["n"].to_pylist() == [1, 2, 3]
    store.write("copy", store.table("n"))
    assert store.read("copy").to_arrow() == store.read("n").to_arrow()
    users = store.table("users")
    users.upsert([Plain(10, "a"), Named(11, "b", DAY)])
    users.upsert(Plain(12, "c"))
    assert [users.get(n)["email"] for n in (10, 11, 12)] == ["a", "b", "c"]  # type: ignore[index]
    seq = store.seq
    wrong: list[tuple[Any, str]] = [
        (iter([]), "there are no rows"),
        ([], "there are no rows"),
        (iter([pa.table({"n": [1]}), pa.table({"m": [1]})]), "item 1 of the iterator"),
        (str(tmp_path / "none.csv"), "there is no file"),
        ("some text", "is the path of no kind of file"),
        ({"n": 1}, r"one row is \[{'n': ...}\]"),
    ]
    for rows, told in wrong:
        with pytest.raises((TypeError, drumlin.Error), match=told):
            store.write("n", rows)
    with pytest.raises(TypeError, match="dicts, dataclasses or named tuples, not an int"):
        users.upsert([1])  # type: ignore[list-item]
    assert store.seq == seq


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (int, "int64"), (float, "double"), (str, "string"), (bytes, "binary"), (bool, "bool"),
        (dt.date, "date32[day]"), (dt.datetime, "timestamp[us]"), (dt.timedelta, "duration[us]"),
        ("bigint", "int64"), ("numeric(10, 2)", "decimal128(10, 2)"), ("timestamptz", "timestamp[us, tz=UTC]"),
        ("VARCHAR(20)", "string"), (np.int16, "int16"), (np.dtype("datetime64[ns]"), "timestamp[ns]"),
        (pl.Int8, "int8"), (pl.Datetime("ms"), "timestamp[ms]"), (pa.list_(pa.int8()), "list<int8>"),
        (uuid.UUID, "fixed_size_binary[16]"),
    ],
)  # fmt: skip
def test_types_of_schemas(store: drumlin.Store, given: Any, told: str) -> None:
    store.table("typed").create({"x": given, "n": "int"})
    assert store.table("typed").schema().types[0].startswith(told.partition("[")[0])
    assert store.table("typed").schema().types[1] == "int32"


def test_types_that_are_none_are_refused(store: drumlin.Store) -> None:
    for given, told in (
        (decimal.Decimal, r"decimal\(18, 4\)"),
        ("nonsense", "is not a type"),
        (3, "is no type"),
        (list, "is no type"),
    ):
        with pytest.raises(drumlin.InvalidArgument, match=told):
            store.table("typed").create({"x": given})
    assert "typed" not in store


def test_a_table_that_exists_may_be_created_again(store: drumlin.Store) -> None:
    schema = {"id": int, "email": str, "born": dt.date}
    with pytest.raises(drumlin.AlreadyExists):
        store.table("users").create(schema, key="id")
    assert store.table("users").create(schema, key="id", exist_ok=True).kind == "create"
    with pytest.raises(drumlin.SchemaMismatch, match=r"exists with the key \['id'\]"):
        store.table("users").create(schema, key="email", exist_ok=True)


def test_a_store_and_a_table_are_containers(store: drumlin.Store) -> None:
    assert list(store) == ["prices/us/AAPL", "prices/us/MSFT", "users"]
    assert "users" in store
    assert "prices/us" not in store
    assert 3 not in store
    assert store["users"].get(1) == {"id": 1, "email": "u1", "born": None}
    with pytest.raises(drumlin.NotFound, match="did you mean"):
        store["user"]
    users = store.table("users")
    assert len(users) == 5
    assert 2 in users
    assert 99 not in users
    assert bool(store.table("none"))
    assert pa.table(users).num_rows == 5
    assert pl.DataFrame(users).height == 5
    store.tree.put("config/a", 1)
    assert "config/a" in store.tree
    for act, told in (
        (lambda: users[2], r"table.get\(2\)"),
        (lambda: list(users), r"for batch in table.read\(\)"),
        (lambda: users.__setitem__(5, {}), r"table.upsert\("),
        (lambda: users.__delitem__(5), r"table.delete_keys\(\[5\]\)"),
        (lambda: store.__setitem__("x", {}), r"store.write\('x', data\)"),
        (lambda: store.__delitem__("x"), r"store.drop\('x'\)"),
        (lambda: store.tree["config/a"], r"tree.get\('config/a'\)"),
        (lambda: store.tree.__setitem__("a", 1), r"tree.put\('a', value\)"),
        (lambda: store.tree.__delitem__("a"), r"tree.delete\('a'\)"),
    ):
        with pytest.raises(TypeError, match=told):
            act()


@pytest.mark.parametrize(
    "where",
    [
        pl.col("close") > 2.5,
        (pl.col("sym") == "A") & (pl.col("close") < 2),
        pl.col("sym").is_in(["B"]),
        pl.col("ts") >= dt.datetime(2026, 1, 3),
        pads.field("close") > 2.5,
        pads.field("sym").isin(["A"]),
        (pads.field("close") > 2) & ~(pads.field("sym") == "A"),
    ],
)
def test_expressions_of_engines_are_filters(store: drumlin.Store, where: Any) -> None:
    frame = store.read("prices/us/AAPL").to_arrow()
    kept = pl.DataFrame(frame).filter(where).to_arrow() if isinstance(where, pl.Expr) else frame.filter(where)
    expected = kept.num_rows
    assert 0 < expected < 4
    assert len(store.read("prices/us/AAPL", where=where)) == expected
    assert len(store.read("prices/us/AAPL").where(where)) == expected
    assert store.scan("prices/us/AAPL", where=where).count_rows() == expected
    assert store.scan("prices/us/AAPL").where(where).num_rows == expected
    assert store.scan("prices/us/AAPL").count_rows(where) == expected
    assert store.table("prices/us/AAPL").delete(where).rows == expected


def test_expressions_without_an_exact_form_are_refused(store: drumlin.Store) -> None:
    seq = store.seq
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        called = pl.col("close").map_elements(lambda x: str(x) > "1", pl.Boolean)
    for where in (pl.col("sym").str.to_lowercase() == "a", called):
        with pytest.raises(drumlin.InvalidArgument, match="of Polars"):
            store.table("prices/us/AAPL").delete(where)
    with pytest.raises(drumlin.InvalidArgument, match="of Polars"):
        store.read("prices/us/AAPL", where=pl.col("none") > 1)
    with pytest.raises(drumlin.InvalidArgument, match="calculation"):
        store.read("prices/us/AAPL", columns=[pl.col("close") + 1])
    assert store.read("prices/us/AAPL", columns=[pl.col("close"), col("sym")]).schema.names == ["close", "sym"]
    assert store.seq == seq


def test_parameters_are_values(store: drumlin.Store) -> None:
    evil = "x' or 'a' = 'a"
    users = store.table("users")
    users.upsert({"id": 7, "email": evil, "born": DAY})
    read = lambda where, params: [row["id"] for row in store.read("users", where=where, params=params).to_dicts()]  # noqa: E731
    assert read("email = ?", [evil]) == [7]
    assert read("email = :e and id > $low", {"e": evil, "low": -1}) == [7]
    assert read("id between $1 and $2 and email <> '?'", [1, 2]) == [1, 2]
    assert read("id in ?", [[1, 3, 99]]) == [1, 3]
    assert read("born = ?", [DAY]) == [7]
    assert read("id > ? - 1", [-5])[:1] == [0]
    assert store.scan("users").where("id = ?", params=[2]).num_rows == 1
    assert store.scan("users").count_rows("id < ?", params=[2]) == 2
    assert store.read("users").where("id = ?", params=[2]).num_rows == 1
    assert users.update({"email": "?"}, where="id = ?", params=["new?", 1]).rows == 1
    assert users.get(1)["email"] == "new?"  # type: ignore[index]
    assert users.delete("id = :n", params={"n": 4}).rows == 1
    assert store.sql("select id from 'users' where id = ?", params=[2]).fetchall() == [(2,)]
    seq = store.seq
    wrong: list[tuple[str, Any, str]] = [
        ("id = ?", [], "only 0 values"),
        ("id = ?", [1, 2], r"params\[1\] is not used"),
        ("id = :a", {"b": 1}, "no value for :a"),
        ("id = ?", {"b": 1}, "has no order"),
        ("id = $3", [1], r"no value for \$3"),
        ("id = ?", "x", "must be a list"),
        ("id = ?", [object()], "not a value"),
        ("id = 1", {"b": 1}, r"params\['b'\] is not used"),
    ]
    for where, params, told in wrong:
        for call in (store.read, lambda _, **asked: users.delete(asked["where"], params=asked["params"])):
            with pytest.raises((TypeError, drumlin.InvalidArgument), match=told):
                call("users", where=where, params=params)
    with pytest.raises(drumlin.InvalidArgument, match="params are for a filter as text"):
        store.read("users", where=col("id") > 1, params=[1])
    assert store.seq == seq


# What leads on.


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda s: s.list_symbols(), "here: store.tables()"),
        (lambda s: s.read("users", date_range=(1, 2)), "no argument 'date_range'; here: where="),
        (lambda s: s.read("users", colums=["id"]), "did you mean 'columns'"),
        (lambda s: s.table("users").optimize(), "here: store.checkpoint()"),
        (lambda s: s.table("users").get(id=2), "here: table.get(2)"),
        (
            lambda s: s.table("users").get(1, "x"),
            "get(key, on=..., columns=..., as_of=...) takes 2 positional arguments",
        ),
        (lambda s: s.table("users").update(1, email="q"), "here: table.update({"),
        (lambda s: s.table("users").upsert(id=1), "here: table.upsert({"),
        (lambda s: s.table("users").delete(2), "table.delete_keys([...])"),
        (lambda s: s.table("users").upsrt({}), "did you mean 'upsert'?"),
        (lambda s: s.read("users").df(), "here: result.to_pandas()"),
        (lambda s: s.read("users").resample("5m"), "missing 1 required keyword-only argument: 'on'"),
        (lambda s: s.scan("users").lazy(), "here: dataset.to_lazy()"),
        (lambda s: s.scan("users").group_by("id").mean(), "here: groups.agg("),
        (lambda s: s.tree.set("a", 1), "here: tree.put(path, value)"),
        (lambda s: s.tree.put("a", 1, ttl=5), "ttl must be a timedelta"),
        (lambda s: s.tree.put("a", 1, keep_while="b"), "keep_while maps paths to conditions"),
        (lambda s: s.tree.put("a", dt.datetime.now()), "value.isoformat()"),
        (lambda s: s.transaction().rollback(), "here: tx.abort()"),
        (lambda s: s.with_message("m").list_symbols(), "here: store.tables()"),
        (lambda s: s.read("users", where="id > 1 & id < 3"), "and is written `and`"),
        (lambda s: s.read("users", columns=["emial"]), "did you mean 'email'?"),
        (lambda s: s.write("/a/b", {"n": [1]}), "such as 'a/b'"),
        (lambda s: s.append("prices/us/MSFT", {"ts": [None], "close": [1.0]}), "schema='evolve'"),
        (lambda s: drumlin.connect("x"), "here: drumlin.open(address)"),
        (lambda s: drumlin.opn("x"), "did you mean 'open'?"),
        (lambda s: drumlin.Store("/tmp/x"), "drumlin.open(address)"),
        (lambda s: drumlin.Transaction("x"), "store.transaction()"),  # type: ignore[arg-type]
        (lambda s: drumlin.Tree("x"), "store.tree"),  # type: ignore[arg-type]
        (lambda s: drumlin.Dataset(), "store.scan(pattern)"),
        (lambda s: drumlin.open("memory://", read_only=True), "here: mode='read'"),  # type: ignore[call-arg]
        (lambda s: s.table("users").insert({"id": 1}, on_conflict="ignore"), ".when_not_matched(insert=True)"),
        (lambda s: s.table("users").upsert({"id": 1}, expected_version=3), "with store.transaction() as tx"),
        (lambda s: s.read("users", n_rows=3), "here: limit=5"),
        (lambda s: s.table("users").get(9, default={}), "here: table.get(key) or {...}"),
        (lambda s: s.table("users", create=True), "create(schema, exist_ok=True)"),
        (lambda s: s.table("users").rename({"a": "b"}), "here: table.rename_columns("),
        (lambda s: s.table("users").update({"id": 1, "email": "x"}), "here: table.upsert({"),
        (lambda s: s.table("users").delete(None), "give where='true'"),
        (lambda s: s.table("users").truncate(), "table.delete(where='true')"),
        (lambda s: s.append("none", {"a": [1]}), "here: store.write(path, data)"),
        (lambda s: s.table("none").upsert({"a": 1}), "here: table.create({"),
        (lambda s: s.table("users").insert({"id": 1, "email": "", "born": None}), "here: table.upsert(rows)"),
        (lambda s: s.read(["a", "b"]), "here: store.read_many(paths)"),
        (lambda s: s.scan("ev/{a,b}"), "here: store.read_many(paths)"),
        (lambda s: s.tree.get_many(["a"]), "for path in paths"),
        (lambda s: s.read("users").select("id", "email"), "here: result.select(['a', 'b'])"),
        (lambda s: s.read("users")["id"], "result.select(['a'])"),
        (lambda s: s.table("users").merge({"id": [1]}).when_matched_update_all(), "merge.when_matched(update=True)"),
        (lambda s: s.table("users").merge({"id": [1]}, on="t.id = s.id"), "such as on=['id']"),
        (lambda s: s.table("users").get_many([1]).to_dicts(), "here: list(lookup)"),
        (lambda s: list(s.tree), "tree.list(pattern)"),
        (lambda s: len(s), "len(store.tables())"),
        (lambda s: s.read("users", columns={"c": "id * 2"}), "store.sql('select"),
        (lambda s: s.read("users", columns="*"), "here: columns=None"),
        (lambda s: s.read("users", as_of="latest"), "here: as_of=-1"),
        (lambda s: s.read("users", as_of="0"), "here: as_of=0"),
        (lambda s: s.read("users", as_of="1 hour ago"), "datetime.timedelta(hours=1)"),
        (lambda s: s.read("users", as_of=dt.timedelta(hours=1)), "as_of=datetime.datetime.now("),
        (lambda s: s.read("users", as_of=dt.datetime(1999, 1, 1)), "when.astimezone()"),
        (lambda s: s.table("users").get(1, as_of=np.datetime64("1999-01-01")), "when.astimezone()"),
        (lambda s: s.table("x").create({"a": "jsonb"}), "here: 'json'"),
        (lambda s: s.table("x").create([("a", int)]), "here: dict(pairs)"),
        (lambda s: s.table("x").create({"a": "int64 not null"}), "add_constraints(not_null="),
        (lambda s: s.write("x", {"a": [1]}, metadata={"at": dt.datetime.now()}), "here: value.isoformat()"),
        (lambda s: s.tree.put("x", np.int64(1)), "here: value.item()"),
        (lambda s: s.write("x", np.array([[1, 2]])), "pandas.DataFrame(array"),
        (lambda s: s.write("x", [(1, 2)]), "[dict(zip(names, row)) for row in rows]"),
        (lambda s: s.write("x", io.BytesIO(b"a")), "pyarrow.parquet.read_table(file)"),
        (lambda s: abs(col("n")), "an expression has no abs(); here: col('n').abs()"),
        (lambda s: col("n") ** 2, "an expression has no **; here: col('n') * col('n')"),
        (lambda s: col("n") == 1 & col("m") > 0, "(col('a') == 1) & (col('b') > 0)"),
    ],
)
def test_errors_lead_on(store: drumlin.Store, act: Callable[[Any], Any], told: str) -> None:
    seq = store.seq
    with pytest.raises((AttributeError, TypeError, drumlin.Error), match=re.escape(told)):
        act(store)
    assert store.seq == seq


def test_a_conflict_names_the_call_that_repeats(store: drumlin.Store) -> None:
    store.tree.put("a", 1)
    tx = store.transaction()
    tx.tree.put("a", tx.tree.get("a"))
    store.tree.put("a", 2)
    with pytest.raises(drumlin.Conflict, match=re.escape("here: store.transact(lambda tx: ...)")):
        tx.commit()


def test_wrong_values_are_named(store: drumlin.Store) -> None:
    users = store.table("users")
    empty = np.array([])
    refused: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: store.read("users", as_of=pd.NaT), drumlin.InvalidArgument, "as_of is no time"),
        (lambda: store.read("users", as_of=np.datetime64("NaT")), drumlin.InvalidArgument, "as_of is no time"),  # type: ignore[arg-type]
        (lambda: store.read("users", as_of=int), TypeError, "as_of must be"),  # type: ignore[arg-type]
        (lambda: store.read("users", as_of=empty), TypeError, "as_of must be"),  # type: ignore[arg-type]
        (lambda: store.read("users", rows=slice(2**70, None)), drumlin.InvalidArgument, "rows="),
        (lambda: store.read("users", rows=slice("a", "b")), TypeError, "rows must be"),
        (lambda: store.read("\ud800"), drumlin.InvalidArgument, "path: .* half a surrogate pair"),
        (lambda: store.read("users", columns=["\ud800"]), drumlin.InvalidArgument, "half a surrogate pair"),
        (lambda: store.read("users", where="id = '\ud800'"), drumlin.InvalidArgument, "half a surrogate pair"),
        (lambda: col("id") == empty, TypeError, "id = ...: a numpy.ndarray"),
        (lambda: store.read("users", where="id = ?", params=[empty]), TypeError, "params"),
        (lambda: users.update({"email": empty}), TypeError, "email"),
        (lambda: users.group_by("id").agg(n=empty), TypeError, "n must be 'count'"),
        (lambda: drumlin.open("memory://", mode=empty), TypeError, "mode must be"),  # type: ignore[arg-type]
        (lambda: store.write("x", {"a": [1]}, progress=int), TypeError, "progress must be a function"),
        (lambda: users.get(1, columns=[]), drumlin.InvalidArgument, "columns is empty"),
        (lambda: users.get_many([1], columns=[]), drumlin.InvalidArgument, "columns is empty"),
        (lambda: users.get(1, columns={"id": 1}), TypeError, "columns must be a list"),
        (lambda: store.table("y").create({"a": int}, key={"a"}), TypeError, "key must be a list"),
        (lambda: store.drop({"users": 0}), TypeError, "paths must be a list"),
        (lambda: users.delete_keys({"id": [1, 2], "email": ["x"]}), drumlin.InvalidArgument, "differ in length"),
    ]
    seq = store.seq
    for act, kind, told in refused:
        with pytest.raises(kind, match=told):
            act()
    assert store.seq == seq
    with pytest.raises(TypeError) as long:
        store.write("x", "a,b\n" * 1000)
    assert len(str(long.value)) < 300


def test_the_table_of_habits_names_what_is_there() -> None:
    kinds: dict[str, Any] = {
        "Store": drumlin.Store, "Table": drumlin.Table, "Result": drumlin.Result, "Dataset": drumlin.Dataset,
        "Groups": drumlin.Groups, "Tree": drumlin.Tree, "Transaction": drumlin.Transaction, "drumlin": drumlin,
        "Expr": drumlin.Expr, "Merge": drumlin.Merge, "Lookup": drumlin.Lookup,
    }  # fmt: skip
    words = {
        "store": "Store", "table": "Table", "result": "Result", "dataset": "Dataset", "groups": "Groups",
        "tree": "Tree", "tx": "Transaction", "drumlin": "drumlin", "merge": "Merge",
    }  # fmt: skip
    for kind, names in _habits.table().items():
        for name, code in names.items():
            # Nothing is explained that is there, and each call in the code is there.
            assert kind not in kinds or name not in vars(kinds[kind]), (kind, name)
            for word, attribute in re.findall(r"\b(\w+)\.(\w+)\(", code):
                if word in words:
                    assert hasattr(kinds[words[word]], attribute), (code, attribute)


def test_addresses_in_many_forms(tmp_path: Path) -> None:
    folder = tmp_path / "a store"
    for address in (folder, str(folder), folder.as_uri(), f"file:{folder}", f"file://localhost{folder}"):
        with drumlin.open(address) as store:
            store.write("t", {"n": [1]})
            assert folder.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["a store"]
    for wrong, told in (("s3:/b/p", "expected 's3://b/p'"), (":memory:", "expected 'memory://'"), ("gs:b", "'gs://b'")):
        with pytest.raises(drumlin.InvalidArgument, match=told):
            drumlin.open(wrong)
    with pytest.raises(drumlin.InvalidArgument, match="'nonsense' is not an option"):
        drumlin.open("s3://b/p", storage_options={"nonsense": "1"})
    # The names of fsspec: the endpoint is looked at, which is none.
    options = {
        "key": "a",
        "secret": "b",
        "anon": False,
        "client_kwargs": {"endpoint_url": "nowhere", "region_name": "x"},
    }
    with pytest.raises(drumlin.InvalidArgument, match="endpoint_url"):
        drumlin.open("s3://b/p", storage_options=options)
