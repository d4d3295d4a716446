"""Functions and casts of the filter language, against DuckDB's: random predicates and values, of rows with nulls."""

import datetime as dt
import decimal
import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import drumlin
from drumlin import col

ROWS = 200
TEXTS = ["Ab", "ab%c", "", "größe", " x ", "A_b", "zz", "Straße", "naïve", "日本語", "a'b"]


def table(seed: int) -> pa.Table:
    chance = random.Random(seed)

    def column(of: Any, type_: pa.DataType) -> pa.Array:
        return pa.array([None if chance.random() < 0.15 else of() for _ in range(ROWS)], type_)

    base = dt.datetime(1960, 1, 1)
    return pa.table(
        {
            "i": column(lambda: chance.randint(-50, 50), pa.int32()),
            "n": column(lambda: chance.randint(-(10**12), 10**12), pa.int64()),
            "d": column(lambda: decimal.Decimal(chance.randint(-(10**5), 10**5)).scaleb(-2), pa.decimal128(10, 2)),
            "f": column(lambda: chance.randint(-1000, 1000) / 8, pa.float64()),
            "s": column(lambda: chance.choice(TEXTS), pa.string()),
            "k": column(lambda: chance.choice(TEXTS), pa.string()).dictionary_encode(),
            "day": column(lambda: base.date() + dt.timedelta(days=chance.randint(0, 40_000)), pa.date32()),
            "ts": column(lambda: base + dt.timedelta(microseconds=chance.randint(0, 3 * 10**15)), pa.timestamp("us")),
            "b": column(lambda: chance.random() < 0.5, pa.bool_()),
        }
    )


class Generator:
    """Random predicates that both languages have."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def pick(self, *among: str) -> str:
        return self.chance.choice(among)

    def number(self, depth: int) -> str:
        if depth == 0:
            return self.pick("i", "n", "d", "f")
        part = self.pick("year", "quarter", "month", "week", "day", "dayofyear", "dayofweek", "isodow")
        return self.pick(
            f"abs({self.number(depth - 1)})",
            f"coalesce({self.number(depth - 1)}, {self.pick('0', '1.5', 'i')})",
            f"nullif({self.number(depth - 1)}, {self.pick('0', '3')})",
            f"length({self.text(depth - 1)})",
            f"{part}({self.time(depth - 1)})",
            f"extract({part} from {self.time(depth - 1)})",
            f"({self.number(depth - 1)} {self.pick('+', '-')} {self.number(depth - 1)})",
            f"round({self.pick('d', 'f')}, 1)",
            f"{self.pick('floor', 'ceil')}({self.pick('d', 'f')})",
            f"{self.pick('hour', 'minute', 'second')}(ts)",
            f"cast({self.pick('i', 'n')} as {self.pick('double', 'bigint')})",
            f"{self.pick('i', 'n')}::{self.pick('double', 'decimal(20, 2)')}",
            f"try_cast({self.text(0)} as int)",
        )

    def text(self, depth: int) -> str:
        if depth == 0:
            return self.pick("s", "k")
        inner = self.text(depth - 1)
        return self.pick(
            f"lower({inner})",
            f"{self.pick('trim', 'ltrim', 'rtrim')}({inner})",
            f"substring({inner}, {self.pick('1', '2', '3', '-1', '-2', '0')}{self.pick('', ', 2', ', 0')})",
            f"replace({inner}, {self.pick(repr('b'), repr('ß'), repr('日'))}, 'X')",
            f"concat({inner}, '-', {self.pick('s', 'i', 'b', 'day')})",
            f"coalesce({inner}, 'none')",
            f"cast({self.pick('i', 'n', 'd', 'day', 'b', 'ts')} as varchar)",
            f"nullif({inner}, 'zz')",
        )

    def time(self, depth: int) -> str:
        if depth == 0:
            return self.pick("day", "ts")
        unit = self.pick("year", "quarter", "month", "week", "day")
        return self.pick(
            f"date_trunc('{unit}', {self.pick('day', 'ts')})", "cast(ts as date)", "ts::date", "cast(day as timestamp)"
        )

    def predicate(self) -> str:
        op = self.pick("=", "<", ">", "<=", ">=", "<>")
        what = self.pick("%", "_", "a", "b")
        return self.pick(
            f"{self.number(2)} {op} {self.pick('0', '7', '-3', '2.5', '1990', '12')}",
            f"{self.text(2)} {op} '{self.pick('ab', 'a', 'none', 'x', '-1', 'true')}'",
            f"{self.time(1)} {op} timestamp '{self.chance.randint(1960, 2060)}-06-01 12:00:00'",
            f"{self.number(2)} {op} {self.number(1)}",
            f"{self.text(1)} {op} {self.text(2)}",
            f"{self.text(2)} like '%{what}%' or {self.number(1)} is null",
            f"{self.number(1)} between {self.pick('-5', '0')} and 2000 and not coalesce(b, true)",
            f"{self.pick('starts_with', 'ends_with', 'contains')}({self.text(1)}, '{what}')",
        )


def test_random_predicates_keep_the_rows_that_duckdb_keeps() -> None:
    rows = table(7)
    store = drumlin.open("memory://")
    store.write("t", rows)
    with duckdb.connect() as connection:
        connection.register("arrow", rows)
        connection.execute("create table t as select * from arrow")
        generator = Generator(11)
        kept = 0
        for _ in range(400):
            predicate = generator.predicate()
            # Their order is that of the table, with one thread.
            expected = connection.sql(f"select * from t where {predicate}").to_arrow_table()
            found = store.read("t", where=predicate).to_arrow()
            assert found["ts"].to_pylist() == expected["ts"].to_pylist(), predicate
            assert found["s"].to_pylist() == expected["s"].to_pylist(), predicate
            kept += len(found)
    assert kept > 10_000


def test_methods_of_columns_are_the_same_functions() -> None:
    store = drumlin.open("memory://")
    store.write(
        "t", {"s": [" Ab", "cd", None], "n": [-1.25, 2.5, None], "ts": [dt.datetime(2026, 3, 28, 23), None, None]}
    )
    for expr, kept in [
        (col("s").trim().lower() == "ab", 1),
        (col("s").upper().length() > 2, 1),
        (col("s").substring(1, 2).replace("c", "x") == "xd", 1),
        (col("s").starts_with("c") | col("s").ends_with("b"), 2),
        (col("s").contains("d"), 1),
        (col("n").abs().round(1) == 1.3, 1),
        ((col("n").floor() == -2) & (col("n").ceil() == -1) & (col("n").sign() == -1), 1),
        ((col("ts").year() == 2026) & (col("ts").quarter() == 1) & (col("ts").month() == 3), 1),
        ((col("ts").week() == 13) & (col("ts").day() == 28) & (col("ts").day_of_week() == 6), 1),
        (
            (col("ts").day_of_year() == 87) & (col("ts").hour() == 23) & (col("ts").minute() + col("ts").second() == 0),
            1,
        ),
        (col("ts").date_trunc("month") == dt.datetime(2026, 3, 1), 1),
        (col("n").cast("int64") == 2, 1),
        (col("s").cast(int, lenient=True).is_null(), 3),
        (col("n").cast(pa.decimal128(5, 1)) == decimal.Decimal("2.5"), 1),
        (col("n").coalesce(0) == 0, 1),
        (col("n").null_if(2.5).is_null(), 2),
    ]:
        assert len(store.read("t", where=expr)) == kept, str(expr)
    with pytest.raises(TypeError, match="unit must be a str"):
        col("ts").date_trunc(5)  # type: ignore[arg-type]


def test_updates_and_checks_take_functions() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"email": [" Ada@X.org ", None], "n": [1.26, None], "day": [dt.date(2026, 1, 31), None]})
    users = store.table("t")
    users.update({"email": "lower(trim(email))", "n": "round(coalesce(n, 2.55), 1)", "day": "date_trunc('month', day)"})
    assert store.read("t").to_dicts() == [
        {"email": "ada@x.org", "n": 1.3, "day": dt.date(2026, 1, 1)},
        {"email": None, "n": 2.6, "day": None},
    ]
    users.add_constraints(checks={"lower": "email = lower(email)"})
    with pytest.raises(drumlin.Error, match="lower"):
        store.append("t", {"email": ["Ada"], "n": [1.0], "day": [None]})
    # What does not fit changes nothing.
    with pytest.raises(drumlin.InvalidArgument, match=r"'ada@x.org' is not a valid"):
        users.update({"n": "cast(email as double)"})
    assert users.versions()[-1].kind == "alter"
    assert users.delete("year(day) = 2026").rows == 1
