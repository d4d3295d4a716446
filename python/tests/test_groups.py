"""Groups of rows, and what is made of each: beside DuckDB and pandas, and what is refused."""

from __future__ import annotations

import datetime as dt
import math
import os
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import drumlin
from drumlin import col

KINDS: dict[str, pa.DataType] = {
    "i8": pa.int8(),
    "u64": pa.uint64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "d": pa.decimal128(12, 3),
    "s": pa.string(),
    "c": pa.dictionary(pa.int32(), pa.string()),
    "day": pa.date32(),
    "ts": pa.timestamp("us"),
    "b": pa.bool_(),
}


def frame(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([0, 1, 7, 500, 5000]))
    spread = int(rng.choice([2, 20, 100]))

    def column(kind: pa.DataType) -> pa.Array:
        numbers = rng.integers(0, spread, rows)
        nulls = rng.random(rows) < rng.choice([0, 0.1, 1.0], p=[0.45, 0.5, 0.05])
        if pa.types.is_dictionary(kind):
            return pa.array([f"v{n}" for n in numbers], pa.string(), mask=nulls).dictionary_encode()
        if pa.types.is_string(kind):
            return pa.array([f"text number {n}" for n in numbers], kind, mask=nulls)
        if pa.types.is_boolean(kind):
            return pa.array(numbers % 2 == 0, kind, mask=nulls)
        if pa.types.is_floating(kind):
            return pa.array(numbers / 4 - 5, kind, mask=nulls)
        if pa.types.is_decimal(kind):
            return pa.array(numbers - 7, pa.int64(), mask=nulls).cast(pa.decimal128(22, 3)).cast(kind)
        if pa.types.is_temporal(kind):
            scale = 1 if pa.types.is_date(kind) else 3_600_000_000
            return (
                pa.array(numbers * scale, pa.int64(), mask=nulls)
                .cast(pa.int32() if scale == 1 else pa.int64())
                .cast(kind)
            )
        return pa.array(numbers, pa.int64(), mask=nulls).cast(kind)

    names = [name if name != "c" else "c" for name in KINDS]
    return pa.table({"id": pa.array(np.arange(rows)), **{name: column(KINDS[name]) for name in names}})


#: A function and how DuckDB says it.
SAID = {
    "count": "count({})",
    "count_distinct": "count(distinct {})",
    "sum": "sum({})",
    "mean": "avg({})",
    "min": "min({})",
    "max": "max({})",
    "first": "first({0} order by id) filter ({0} is not null)",
    "last": "last({0} order by id) filter ({0} is not null)",
    "std": "stddev_samp({})",
    "var": "var_samp({})",
    "median": "quantile_cont({}::double, 0.5)",
    "any": "bool_or({})",
    "all": "bool_and({})",
}
NUMBERS = ("i8", "u64", "f32", "f64", "d")


def close(found: Any, expected: Any) -> bool:
    if found is None or expected is None or isinstance(expected, (str, bool, dt.date)):
        return bool(found == expected)
    return math.isclose(float(found), float(expected), rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("seed", range(int(os.environ.get("DRUMLIN_GROUP_SEEDS", "60"))))
def test_groups_are_those_of_duckdb(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    rows = frame(seed)
    store = drumlin.open("memory://")
    split = int(rng.integers(0, rows.num_rows + 1))
    store.write("t", rows.slice(0, split))
    store.append("t", rows.slice(split))
    store.table("t").delete("id % 11 = 5")
    if rng.random() < 0.5:
        store.checkpoint()
    where = rng.choice(["true", "f64 > 0", "s = 'text number 1'", "b"])
    db = duckdb.connect()
    db.register("t", rows)
    for _ in range(6):
        keys = list(rng.choice(list(KINDS), int(rng.integers(0, 4)), replace=False))
        asked: dict[str, Any] = {"n": "count"}
        said = ["count(*)"]
        for at in range(5):
            function = str(rng.choice(list(SAID)))
            needs_bool, needs_number = function in ("any", "all"), function in ("sum", "mean", "std", "var", "median")
            column = "b" if needs_bool else str(rng.choice(NUMBERS if needs_number else list(KINDS)))
            asked[f"x{at}"] = (column, function)
            said.append(SAID[function].format(column))
        found = store.scan("t", where=where).group_by(*keys).agg(**asked).to_arrow()
        grouped = (
            f"group by {', '.join(keys)} order by {', '.join(f'{key} nulls first' for key in keys)}" if keys else ""
        )
        text = f"select {', '.join([*keys, *said])} from t where id % 11 <> 5 and {where} {grouped}"
        expected = db.sql(text).fetchall()
        lists = [list(row.values()) for row in found.to_pylist()]
        assert len(lists) == len(expected), text
        for ours, theirs in zip(lists, expected, strict=True):
            assert all(map(close, ours, theirs)), f"{text}: {ours} and {theirs}"


def test_bars_are_those_of_pandas() -> None:
    rng = np.random.default_rng(7)
    at = pd.to_datetime("2026-01-05") + pd.to_timedelta(np.sort(rng.integers(0, 40 * 86400, 5000)), unit="s")
    prices = pd.DataFrame(
        {"px": rng.normal(100, 5, 5000), "size": rng.integers(1, 9, 5000)}, index=pd.Index(at, name="ts")
    )
    store = drumlin.open("memory://")
    store.write("t", prices, sort=["ts"])
    for length, said in (("5m", "5min"), ("1h", "1h"), ("1d", "1D"), ("1w", "W-MON"), ("1mo", "MS")):
        # With offsets of the calendar, pandas means other ends by "right".
        for closed in ("left", "right") if said[0].isdigit() else ("left",):
            bars = (
                store.scan("t")
                .resample(length, on="ts", closed=closed)
                .agg(
                    open=("px", "first"),
                    high=("px", "max"),
                    low=("px", "min"),
                    close=("px", "last"),
                    size=("size", "sum"),
                )
            )
            found = bars.to_pandas().set_index("ts")
            expected = prices.resample(said, closed=closed, label="left").agg(
                {"px": ["first", "max", "min", "last"], "size": "sum"}
            )
            expected.columns = pd.Index(["open", "high", "low", "close", "size"])
            expected = expected[expected["size"] > 0]
            pd.testing.assert_frame_equal(found, expected, check_freq=False, check_index_type=False, check_dtype=False)


def test_days_are_those_of_clocks() -> None:
    zone = ZoneInfo("Europe/Berlin")
    begin = dt.datetime(2026, 3, 28, tzinfo=zone).astimezone(dt.UTC)
    at = pa.array([begin + dt.timedelta(hours=hour) for hour in range(72)], pa.timestamp("ns", "Europe/Berlin"))
    store = drumlin.open("memory://")
    store.write("t", pa.table({"ts": at}))
    days = store.scan("t").resample("1d", on="ts").agg(n="count").to_arrow().to_pylist()
    assert [day["n"] for day in days] == [24, 23, 24, 1]
    assert [day["ts"].day for day in days] == [28, 29, 30, 31]
    late = store.scan("t").resample("1d", on="ts", origin=dt.datetime(2026, 3, 28, 5, tzinfo=dt.UTC), label="right")
    assert [day["ts"].hour for day in late.agg().to_arrow().to_pylist()] == [6, 6, 6, 6]


def test_many_tables_are_one() -> None:
    store = drumlin.open("memory://")
    store.write_many({f"p/{name}": {"n": [at, at + 1]} for at, name in enumerate("abc")})
    found = (
        store.scan("p/*", path_columns=["name"])
        .where("n > 0")
        .group_by("name")
        .agg(total=(col("n") * 2, "sum"), first=("n", "first"), n="count")
    )
    assert found.to_arrow().to_pylist() == [
        {"name": "a", "total": 2.0, "first": 1, "n": 1},
        {"name": "b", "total": 6.0, "first": 1, "n": 2},
        {"name": "c", "total": 10.0, "first": 2, "n": 2},
    ]
    assert found.to_pandas()["n"].tolist() == [1, 2, 2]
    assert store.scan("p/*").group_by().agg(n="count", m=("n", "max")).to_arrow().to_pylist() == [{"n": 6, "m": 3}]
    assert store.scan("p/*", where="n > 9").group_by().agg(n="count", m=("n", "max")).to_arrow().to_pylist() == [
        {"n": 0, "m": None}
    ]
    assert store.scan("p/*", where="n > 9").group_by("n").agg(m="count").to_arrow().num_rows == 0


def test_a_transaction_groups_what_it_wrote() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"n": [1, 2]})

    def work(tx: drumlin.Transaction) -> Any:
        tx.append("t", {"n": [10]})
        return tx.scan("t").group_by().agg(sum=("n", "sum")).to_arrow().to_pylist()

    assert store.transact(work) == [{"sum": 13}]


def test_what_cannot_be_asked_is_refused() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"n": [1, 2], "s": ["a", "b"]})
    scan = store.scan("t")
    for call, kind, words in (
        (lambda: scan.group_by("x").agg(), drumlin.InvalidArgument, "'x' does not exist"),
        (lambda: scan.group_by(7), TypeError, "a key must be the name"),  # type: ignore[arg-type]
        (lambda: scan.group_by("n").agg(x="sum"), TypeError, "x must be 'count', or a pair"),
        (lambda: scan.group_by("n").agg(x=("n", "total")), drumlin.InvalidArgument, "'total' is not a function"),
        (lambda: scan.group_by("n").agg(x=("n", "quantile")), drumlin.InvalidArgument, "a share from 0 to 1"),
        (lambda: scan.group_by("n").agg(x=("n", "quantile", 2)), drumlin.InvalidArgument, "not 2"),
        (lambda: scan.group_by("n").agg(x=("n", "sum", 2)), drumlin.InvalidArgument, "needs only a column"),
        (lambda: scan.group_by("n").agg(x=(7, "sum")), TypeError, "x: a column must be a name"),
        (lambda: scan.group_by("n").agg(n=("n", "sum")), drumlin.InvalidArgument, "two columns of the result"),
        (lambda: scan.group_by("n").agg(x=("s", "mean")), drumlin.InvalidArgument, "it takes numbers"),
        (lambda: scan.limit(1).group_by("n"), drumlin.InvalidArgument, "must come before limit"),
        (lambda: scan.select(["n"]).group_by("n"), drumlin.InvalidArgument, "comes before select"),
        (lambda: scan.resample("5m", on="n").agg(), drumlin.InvalidArgument, "has no time"),
        (lambda: scan.resample("5 parsecs", on="n").agg(), drumlin.InvalidArgument, "not a length of time"),
        (lambda: scan.resample("5m", on="n", closed="both"), drumlin.InvalidArgument, "'left', 'right'"),
        (lambda: scan.resample("5m", on="n", origin=7), TypeError, "origin must be a date"),  # type: ignore[arg-type]
        (lambda: scan.resample("5m", on="n", by=7), TypeError, "by must be a list of names"),  # type: ignore[arg-type]
        (lambda: scan.group_by(every="5m"), TypeError, "a pair of a column"),  # type: ignore[arg-type]
    ):
        with pytest.raises(kind, match=words):
            call()
    assert repr(scan.group_by("n")) == "Groups('t', by ['n'])"


def agg(table: pa.Table, *keys: str, **asked: Any) -> list[dict[str, Any]]:
    store = drumlin.open("memory://")
    store.write("t", table)
    rows: list[dict[str, Any]] = store.scan("t").group_by(*keys).agg(**asked).to_arrow().to_pylist()
    return rows


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
def test_sums_may_be_beyond_128_bits_on_the_way(order: tuple[int, ...]) -> None:
    values = [Decimal("9e37"), Decimal("9e37"), Decimal("-9e37")]
    table = pa.table({"d": pa.array([values[at] for at in order], pa.decimal128(38, 0))})
    assert agg(table, s=("d", "sum"), m=("d", "mean")) == [{"s": Decimal("9e37"), "m": 3e37}]
    table = pa.table({"d": pa.array([Decimal("50000000")] * 7, pa.decimal128(38, 30))})
    assert agg(table, m=("d", "mean")) == [{"m": 5e7}]
    with pytest.raises(drumlin.InvalidArgument, match="the sum of a group is 350000000.* does not fit into decimal128"):
        agg(table, s=("d", "sum"))


def test_a_dictionary_of_floats_has_one_nan_and_one_zero() -> None:
    with np.errstate(all="ignore"):
        # Its sign bit is set.
        nan = np.array([0.0]) / np.array([0.0])
    plain = pa.array(np.concatenate([nan, [1.0, 5.0]]))
    table = pa.table({"plain": plain, "keyed": plain.dictionary_encode()})
    for function in ("min", "max", "median", "first", "last", "count_distinct", "sum"):
        (found,) = agg(table, a=("keyed", function), b=("plain", function))
        assert repr(found["a"]) == repr(found["b"]), function
    zero = pa.table({"z": pa.array([-0.0] * 3).dictionary_encode()})
    assert repr(agg(zero, m=("z", "median"), a=("z", "min"))) == repr([{"m": 0.0, "a": 0.0}])


def test_names_in_quotes_are_columns() -> None:
    table = pa.table({"my n": [2**53 + 1, 1], "my sym": ["a", "b"]})
    found = agg(table, a=("my n", "sum"), b=(col("my n"), "sum"), c=(col("my sym"), "last"), d=('"my sym"', "first"))
    assert found == [{"a": 2**53 + 2, "b": 2**53 + 2, "c": "b", "d": "a"}]


def test_constants_are_of_all_rows() -> None:
    table = pa.table({"n": [1, 2, 2], "g": [1, 1, 2]})
    asked = {"d": ("1", "count_distinct"), "n": ("null", "count"), "s": ("1", "sum"), "m": ("2.5", "median")}
    assert agg(table, **asked) == [{"d": 1, "n": 0, "s": 3.0, "m": 2.5}]
    assert agg(table, "g", s=("1", "sum"))[0] == {"g": 1, "s": 2.0}


def test_calculations_with_exact_numbers_are_exact() -> None:
    table = pa.table(
        {
            "price": pa.array([Decimal("0.10"), Decimal("0.20"), None], pa.decimal128(12, 2)),
            "disc": pa.array([Decimal("0.05"), Decimal("0.10"), Decimal("1")], pa.decimal128(12, 2)),
            "n": [2**53 + 1, 1, 7],
            "big": [2**62, 2**62, 1],
        }
    )
    (found,) = agg(table, a=("price * (1 - disc)", "sum"), b=("n * 2", "sum"), c=("price / 2", "sum"), d=("-n", "min"))
    assert found["a"] == Decimal("0.2750")
    assert found["b"] == 2 * (2**53 + 9)
    assert found["c"] == pytest.approx(0.15)
    assert found["d"] == -(2**53) - 1
    with pytest.raises(
        drumlin.InvalidArgument, match="18446744073709551616 does not fit into int64; calculate with a decimal"
    ):
        agg(table, x=("big * 4", "sum"))
    assert agg(table, x=("big * 4.0", "sum")) == [{"x": Decimal(2**65 + 4)}]
    assert agg(table, x=("price > 0.15", "any"), y=("n > 0", "all")) == [{"x": True, "y": True}]


def test_results_at_the_ends_of_doubles() -> None:
    table = pa.table({"x": [1.7e308, 1.7e308], "y": [-1e308, 1e308], "z": [1e-200, 3e-200], "i": [-math.inf, 5.0]})
    (found,) = agg(
        table,
        mean=("x", "mean"),
        weighted=("x", "weighted_mean", "x"),
        median=("y", "median"),
        std=("y", "std"),
        low=("z", "std"),
        infinite=("i", "median"),
    )
    assert found["mean"] == found["weighted"] == 1.7e308
    assert found["median"] == 0
    assert found["infinite"] == -math.inf
    assert math.isclose(found["std"], math.sqrt(2) * 1e308)
    assert math.isclose(found["low"], math.sqrt(2) * 1e-200)
    weights = pa.table({"x": [1.0, 2.0], "w": [1.0, -1.0]})
    assert agg(weights, m=("x", "weighted_mean", "w")) == [{"m": None}]


def test_means_are_rounded_once() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        floats = rng.normal(0, 1, 7) * 10.0 ** rng.integers(-20, 20, 7)
        cents = [int(n) for n in rng.integers(-(10**6), 10**6, 7)]
        table = pa.table({"f": floats, "d": pa.array([Decimal(n) / 100 for n in cents], pa.decimal128(12, 2))})
        (found,) = agg(table, f=("f", "mean"), d=("d", "mean"))
        assert found["f"] == float(sum(map(Fraction, floats.tolist())) / 7)
        assert found["d"] == float(Fraction(sum(cents), 700))


def test_extension_types_stay() -> None:
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, b"b" * 16], pa.binary(16)))
    store = drumlin.open("memory://")
    store.write("t", pa.table({"u": uuids, "n": [1, 2]}))
    found = store.scan("t").group_by("u").agg(a=("u", "first"), n=("n", "sum")).to_arrow()
    assert found.schema.field("u").type == found.schema.field("a").type == pa.uuid()


def test_a_group_that_does_not_fit_is_found_at_once() -> None:
    store = drumlin.open("memory://", memory_bytes=1 << 20)
    rows = 200_000
    store.write("t", {"g": np.zeros(rows, np.int64), "x": np.arange(rows) * 1.5})
    for keys in ((), ("g",)):
        with pytest.raises(drumlin.InvalidArgument, match="the values of one group take more memory"):
            store.scan("t").group_by(*keys).agg(m=("x", "median"))


def test_years_begin_when_clocks_say_so() -> None:
    # Its clocks skipped the first quarter of an hour of 1986.
    zone = dt.timezone(dt.timedelta(hours=5, minutes=45))
    at = dt.datetime(1986, 1, 1, 0, 20, tzinfo=zone)
    store = drumlin.open("memory://")
    store.write("t", pa.table({"ts": pa.array([at], pa.timestamp("s", "Asia/Kathmandu"))}))
    (found,) = store.scan("t").resample("1y", on="ts").agg(n="count").to_arrow()["ts"].to_pylist()
    assert found == dt.datetime(1986, 1, 1, 0, 15, tzinfo=zone)


def test_origins_are_exact() -> None:
    store = drumlin.open("memory://")
    berlin = pa.array([dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)], pa.timestamp("s", "Europe/Berlin"))
    store.write("t", pa.table({"ts": berlin, "day": pa.array([dt.date(2026, 1, 1)])}))
    scan = store.scan("t")
    for on, origin, words in (
        ("ts", dt.datetime(2026, 1, 1), "origin has no time zone"),
        ("ts", dt.datetime(2026, 1, 1, 0, 0, 0, 5, dt.UTC), "between two values of column 'ts'"),
        ("day", dt.datetime(2026, 1, 1, 1), "between two values of column 'day'"),
    ):
        with pytest.raises(drumlin.InvalidArgument, match=words):
            scan.resample("1d", on=on, origin=origin).agg(n="count")
    with pytest.raises(TypeError, match="origin must be a date or a datetime, not NaT"):
        scan.resample("1d", on="ts", origin=pd.NaT)  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument, match="a whole number of days"):
        scan.resample("48h", on="day").agg(n="count")
    nanos = pa.table({"ts": pa.array([7, 12], pa.timestamp("ns"))})
    store.write("n", nanos)
    bars = store.scan("n").resample("10ns", on="ts", origin=pd.Timestamp(5)).agg(n="count").to_arrow()
    assert bars["ts"].cast(pa.int64()).to_pylist() == [5]
    assert agg(pa.table({"self": [1]}), self=("self", "sum")) == [{"self": 1}]


def test_the_first_is_that_of_the_order() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"n": list(range(99, 0, -2)), "x": list(range(50))}, sort=["n"])
    store.append("t", {"n": list(range(98, -1, -2)), "x": list(range(50))})
    there = store.read("t").to_arrow()
    (found,) = (
        store.table("t").group_by().agg(a=("n", "first"), b=("n", "last"), c=("x", "first")).to_arrow().to_pylist()
    )
    assert found == {"a": there["n"][0].as_py(), "b": there["n"][-1].as_py(), "c": there["x"][0].as_py()}
    assert store.table("t").group_by(where="n > 50").agg(n="count").to_arrow().to_pylist() == [
        {"n": sum(n > 50 for n in there["n"].to_pylist())}
    ]
