"""Expressions: what they render to, what they refuse, and that the core reads them as intended."""

import datetime as dt
import decimal
import math

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings

import drumlin
from drumlin import col

A, B = col("a"), col("b")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (A == 1, "a = 1"),
        (A != 1, "a <> 1"),
        (1 < A, "a > 1"),
        (A >= B, "a >= b"),
        ((A > 1) & (B < 2) | (A == B), "a > 1 and b < 2 or a = b"),
        (((A > 1) | (B < 2)) & (A == B), "(a > 1 or b < 2) and a = b"),
        (~((A > 1) & (B < 2)), "not (a > 1 and b < 2)"),
        (~(A > 1) & (B < 2), "not a > 1 and b < 2"),
        (~~A, "not not a"),
        ((A > 1) == (B > 1), "(a > 1) = (b > 1)"),
        (A - (B - 1), "a - (b - 1)"),
        (A - B - 1, "a - b - 1"),
        (A * (B + 1), "a * (b + 1)"),
        (1 - A * 2, "1 - a * 2"),
        (A / (B / 2), "a / (b / 2)"),
        (A % 2 == 0, "a % 2 = 0"),
        (-A, "-a"),
        (-(-A), "-(-a)"),
        (-(A + 1) * 2, "-(a + 1) * 2"),
        (A - -1, "a - -1"),
        (A.is_null() | A.is_not_null(), "a is null or a is not null"),
        ((A + 1).is_null(), "a + 1 is null"),
        (A.isin([1, 2]), "a in (1, 2)"),
        (A.isin([]), "false"),
        (~A.isin(["x"]), "not a in ('x')"),
        (A.between(1, B + 1), "a between 1 and b + 1"),
        (A.like("x%"), "a like 'x%'"),
        (A.like("100!%", escape="!"), "a like '100!%' escape '!'"),
        (A.like("x_", ignore_case=True), "a ilike 'x_'"),
        (A.field("b").field("c d") == 1, 'a.b."c d" = 1'),
        (col("Adj Close") > 0, '"Adj Close" > 0'),
        (col('quo"te') > 0, '"quo""te" > 0'),
        (col("select") > 0, "select > 0"),
        (col("null") > 0, '"null" > 0'),
        (col("ü") > 0, '"ü" > 0'),
        (col("1a") > 0, '"1a" > 0'),
        (A == True, "a = true"),  # noqa: E712
        (A == 1.5, "a = 1.5"),
        (A == 1e300, "a = 1e+300"),
        (A == float("nan"), "a = double 'nan'"),
        (A == float("-inf"), "a = double '-inf'"),
        (A == decimal.Decimal("1.50"), "a = 1.50"),
        (A == "it's", "a = 'it''s'"),
        (A == b"\0\xff", "a = x'00ff'"),
        (A == dt.date(2020, 1, 2), "a = date '2020-01-02'"),
        (A == dt.datetime(2020, 1, 2, 3, 4), "a = timestamp '2020-01-02 03:04:00'"),
        (A == dt.datetime(2020, 1, 2, tzinfo=dt.UTC), "a = timestamp '2020-01-02 00:00:00+00:00'"),
        (A == dt.time(1, 2, 3, 4), "a = time '01:02:03.000004'"),
        (A == np.int8(5), "a = 5"),
        (A == np.float64(0.5), "a = 0.5"),
        (A == np.bool_(True), "a = true"),
        (A == np.datetime64("2020-01-02T03:04:05.123456789"), "a = timestamp '2020-01-02 03:04:05.123456789'"),
        (A == pd.Timestamp("2020-01-02", tz="UTC"), "a = timestamp '2020-01-02 00:00:00+00:00'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_text(expr: drumlin.Expr, text: str) -> None:
    assert str(expr) == text
    assert repr(expr) == f"Expr({text})"


def test_chains_stay_flat(store: drumlin.Store) -> None:
    store.write("t", {"a": range(1000)})
    expr = A == 0
    for n in range(1, 900):
        expr |= A == n
    total = A
    for _ in range(200):
        total += 1
    assert store.read("t", where=expr).to_arrow().num_rows == 900
    assert store.read("t", where=total == 250).to_arrow()["a"].to_pylist() == [50]
    assert store.read("t", where=A.isin(range(0, 100_000, 2))).to_arrow().num_rows == 500


@pytest.mark.parametrize("missing", [None, pd.NaT, pd.NA, np.datetime64("NaT")], ids=repr)
def test_missing_values_are_refused_with_a_hint(missing: object) -> None:
    for use in (lambda: A == missing, lambda: A.isin([1, missing]), lambda: A.between(missing, 1), lambda: A + missing):
        with pytest.raises(drumlin.InvalidArgument, match=r"is_null\(\)"):
            use()


def test_mistakes_are_refused() -> None:
    with pytest.raises(TypeError, match="no truth value.*&"):
        (A > 1) and (B > 1)
    with pytest.raises(TypeError, match="between"):
        1 < A < 5
    with pytest.raises(TypeError, match="isin takes a list of values, not a str"):
        A.isin("abc")
    assert str(A == dt.timedelta(1)) == "a = interval '86400000000000 ns'"
    assert str(A < pd.Timedelta(1, "ns")) == "a < interval '1 ns'"
    assert str(A >= np.timedelta64(-2, "s")) == "a >= interval '-2000000000 ns'"
    with pytest.raises(TypeError, match="list is not a value"):
        A == [1]
    with pytest.raises(TypeError, match="time"):
        A == dt.time(1, tzinfo=dt.UTC)
    with pytest.raises(TypeError, match="name must be a str"):
        col(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pattern must be a str"):
        A.like(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        A & True  # type: ignore[operator]
    with pytest.raises(TypeError):
        hash(A)
    with pytest.raises(drumlin.InvalidArgument, match="not a column"):
        (A + 1).field("x")


# fmt: off
KEYWORDS = [
    "select", "from", "where", "group", "order", "by", "limit", "date", "time", "timestamp", "interval", "with",
    "without", "zone", "any", "all", "some", "array", "case", "cast", "between", "like", "ilike", "similar",
    "regexp", "rlike", "is", "null", "not", "and", "or", "true", "false", "in", "exists", "escape", "collate", "at",
    "div", "xor", "overlaps", "distinct", "unknown", "json", "double", "precision", "current_date", "extract",
    "position", "substring", "trim", "ceil", "floor", "values", "lambda", "struct", "map", "interval", "year",
    "day", "first", "last", "nulls", "offset", "union", "except", "intersect", "as", "on", "using", "b", "x", "n",
    "u", "r", "e", "prior", "connect_by_root",
]
# fmt: on


@pytest.mark.parametrize("name", sorted({*KEYWORDS, *map(str.upper, KEYWORDS)}))
def test_any_word_is_a_column(store: drumlin.Store, name: str) -> None:
    store.write("t", {name: ["1", "2", None], "other": ["1", "1", "1"]})
    column = col(name)
    for where, rows in (
        (column == "1", 1),
        ("1" == column, 1),
        (column.isin(["1", "2"]), 2),
        (column.between("1", "2"), 2),
        (column.like("1%"), 1),
        (column.is_null(), 1),
        (~column.is_null() & (column != col("other")), 1),
        (col("other") == column, 1),
    ):
        assert store.read("t", where=where).to_arrow().num_rows == rows, where


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=10)
VALUES = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])),
    pa.binary(): st.binary(),
    pa.bool_(): st.booleans(),
    pa.decimal128(30, 6): st.decimals(-(10**20), 10**20, places=6),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("us", "UTC"): st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=st.timezones()),
    pa.time64("us"): st.times(),
}


def key(value: object) -> object:
    """Equality as in the filter language: NaN equals NaN."""
    return "nan" if isinstance(value, float) and math.isnan(value) else value


@settings(max_examples=200, deadline=None)
@given(data=st.data(), name=NAMES)
def test_literals_mean_what_they_say(data: st.DataObject, name: str) -> None:
    kind = data.draw(st.sampled_from(sorted(VALUES, key=str)))
    values = data.draw(st.lists(st.none() | VALUES[kind], min_size=1, max_size=5))
    value = data.draw(VALUES[kind])
    table = pa.table({name: pa.array([*values, value], kind)})
    with drumlin.open("memory://", cpu_threads=1) as store:
        store.write("t", table)

        def found(where: drumlin.Expr) -> int:
            return store.read("t", where=where).to_arrow().num_rows

        equal = sum(v is not None and key(v) == key(value) for v in [*values, value])
        present = sum(v is not None for v in [*values, value])
        assert found(col(name) == value) == equal
        assert found(col(name) != value) == present - equal
        assert found(col(name).isin([value])) == equal
        assert found(col(name).between(value, value)) == equal
        assert found(col(name).is_null()) == len(values) + 1 - present
        assert found((col(name) < value) | (col(name) >= value)) == present
