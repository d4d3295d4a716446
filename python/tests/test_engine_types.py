"""Types that an engine lacks, or takes for others: one such column leaves the rest of a table useful, and no value
changes."""

import datetime as dt
import decimal
import itertools
import re
from collections.abc import Callable
from typing import Any

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import drumlin

D = decimal.Decimal
EXTREMES = [D("0"), D("-1.50"), D(10**35) + D("0.25"), None]


def instants(*ticks: int | None, unit: str = "ns", zone: str | None = None) -> pa.Array:
    return pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, zone))


#: Columns by name: of each some engine has no type, or another.
ODD: dict[str, pa.Array] = {
    "half": pa.array([0.0, -0.0, 65504.0, None], pa.float16()),
    "decimal256": pa.array(EXTREMES, pa.decimal256(38, 2)),
    "decimal256 of more digits": pa.array(EXTREMES, pa.decimal256(60, 2)),
    "decimal256 of small numbers": pa.array([D("0.5"), None, D(0), D("0.25")], pa.decimal256(70, 60)),
    "decimal32": pa.array([D("1.50"), None, D("-3.00"), D(0)], pa.decimal32(5, 2)),
    "decimal64": pa.array([D("1.50"), None, D("-3.00"), D(0)], pa.decimal64(12, 2)),
    "hundreds": pa.array([D(500), D(-700), D(0), None], pa.decimal128(10, -2)),
    "text view": pa.array(["a", "a text of more than twelve bytes", "", None], pa.string_view()),
    "bytes view": pa.array([b"a", b"bytes of more than twelve", b"", None], pa.binary_view()),
    "nanoseconds": instants(1_600_000_000_000_000_123, 0, -1, None),
    "nanoseconds, zone": instants(1_600_000_000_000_000_123, 0, -1, None, zone="UTC"),
    "offset": instants(0, 1, -1, None, unit="us", zone="+05:30"),
    "interval": pa.array([(1, 2, 3), (0, 0, 0), (-1, -2, -3), None], pa.month_day_nano_interval()),
    "null": pa.nulls(4),
}


def nested(column: pa.Array) -> dict[str, pa.Array]:
    """The same values as they are, in structs, in lists, and in a dictionary."""
    rows = len(column)
    offsets = pa.array(range(rows + 1), pa.int32())
    found = {
        "plain": column,
        "struct": pa.StructArray.from_arrays([column], ["x"]),
        "list": pa.ListArray.from_arrays(offsets, column),
        "large list": pa.LargeListArray.from_arrays(offsets.cast(pa.int64()), column),
        "map": pa.MapArray.from_arrays(offsets, pa.array(["k"] * rows), column),
    }
    if not pa.types.is_null(column.type) and not pa.types.is_interval(column.type):
        keys = pa.array([0, 1, 2, None], pa.int32())
        found["dictionary"] = pa.DictionaryArray.from_arrays(keys, column.slice(0, 3))
    return found


CASES = [(name, how) for name, column in ODD.items() for how in nested(column)]


def fill(store: drumlin.Store, name: str, how: str) -> tuple[Any, pa.Table]:
    column = nested(ODD[name])[how]
    table = pa.table({"id": [1, 2, 3, 4], "odd": column, "text": ["a", "b", None, "d"]})
    try:
        store.write("t", table)
    except drumlin.Error as error:
        pytest.skip(f"not stored: {error}")
    return store.scan("t"), store.read("t").to_arrow()


def plain(value: Any) -> Any:
    """A value without what engines differ in."""
    if isinstance(value, dict):
        return [(key, plain(inner)) for key, inner in value.items()]
    if isinstance(value, (list, tuple)):
        return list(map(plain, value))
    if isinstance(value, decimal.Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None) if value.tzinfo is None else value.astimezone(dt.UTC).isoformat()
    return value


@pytest.mark.parametrize(("name", "how"), CASES)
def test_duckdb_reads_the_other_columns_and_this_one(store: drumlin.Store, name: str, how: str) -> None:
    ds, memory = fill(store, name, how)
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("ds", ds)
        assert connection.sql("select id from ds where text = 'b'").fetchall() == [(2,)]
        assert connection.sql("select count(*) from ds").fetchall() == [(4,)]
        assert connection.sql("select id from ds where odd is null").fetchall() == [
            (at + 1,) for at, value in enumerate(memory["odd"].to_pylist()) if value is None
        ]
        if "nanoseconds" not in name and name != "interval":
            got = connection.sql("select odd from ds order by id").to_arrow_table()["odd"].to_pylist()
            assert list(map(plain, got)) == list(map(plain, memory["odd"].to_pylist()))


def test_a_decimal_that_duckdb_cannot_hold_is_refused_where_it_is_read(store: drumlin.Store) -> None:
    big = pa.array([D(10) ** 50, D(1)], pa.decimal256(60, 2))
    small = pa.array([D(1).scaleb(-50), D(1)], pa.decimal256(70, 60))
    for path, column in (("big", big), ("small", small), ("list", pa.array([[v] for v in big], pa.list_(big.type)))):
        store.write(path, pa.table({"id": [1, 2], "d": column}))
        ds = store.scan(path)
        assert duckdb.sql("select id from ds where id = 1").fetchall() == [(1,)]
        with pytest.raises(duckdb.Error, match="'d'"):
            duckdb.sql("select d from ds").fetchall()
        with pytest.raises(drumlin.Unsupported, match="'d'"):
            ds.to_polars()
        assert ds.to_lazy().select("id").collect().height == 2


DECIMALS = {
    "tiny": pa.decimal128(4, 2),
    "small": pa.decimal128(9, 2),
    "money": pa.decimal128(15, 2),
    "most": pa.decimal128(18, 0),
    "wide": pa.decimal128(30, 2),
    "of_32": pa.decimal32(7, 3),
    "of_64": pa.decimal64(17, 3),
    "of_256": pa.decimal256(15, 2),
}


def test_duckdb_filters_and_reads_decimals_of_any_width(store: drumlin.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In fewer bits DuckDB reads decimals twice as fast, and pushes none down: it gets both."""
    columns = {
        name: pa.array([None if at % 7 == 3 else D(at * 37 % 199 - 99).scaleb(-kind.scale) for at in range(600)], kind)
        for name, kind in DECIMALS.items()
    }
    memory = pa.table({"id": range(600), **columns})
    store.write("t", memory)
    ds = store.scan("t")
    read: list[pa.Schema] = []
    stream = type(ds)._stream

    def noted(self: Any, *arguments: Any) -> Any:
        made = stream(self, *arguments)
        read.append((pa.schema(made.schema), arguments[1]))
        return made

    monkeypatch.setattr(type(ds), "_stream", noted)
    with duckdb.connect() as connection:
        connection.register("registered", ds)
        connection.execute("create temp view viewed as select * from registered")
        connection.execute("prepare prepared as select id from ds where money > $1 order by id")
        for name, kind in DECIMALS.items():
            value = D(50).scaleb(-kind.scale)
            kept = [at for at, found in enumerate(columns[name].to_pylist()) if found is not None and found > value]
            member = [at for at, found in enumerate(columns[name].to_pylist()) if found in (value, 77)]
            for source in ("ds", "registered", "viewed"):
                read.clear()
                query = f"select id, {name} from {source} where {name} > {value} order by id"
                got = connection.sql(query).fetchall()
                assert got == [(at, columns[name][at].as_py()) for at in kept], (name, source)
                assert [len(filters) for _, filters in read] == [1], f"{name} is pushed down"
                width = 32 if kind.precision <= 9 else 64 if kind.precision <= 18 else 128
                assert [schema.field(name).type.bit_width for schema, _ in read] == [width]
                few = f"select id from {source} where {name} in ({value}, 77) or ({name} = {value} and id % 2 = 5)"
                assert connection.sql(few).fetchall() == [(at,) for at in member]
        money = columns["money"].to_pylist()
        for at_least in ("0.5", "-0.25"):
            assert connection.execute(f"execute prepared({at_least})").fetchall() == [
                (at,) for at, found in enumerate(money) if found is not None and found > D(at_least)
            ]
        sums = connection.sql(f"select {', '.join(f'sum({name})' for name in DECIMALS)} from ds").fetchall()
        assert sums == [tuple(sum(x for x in column.to_pylist() if x is not None) for column in columns.values())]
        one = connection.sql("select * exclude (id) from ds where id = 5").fetchall()
        assert one == [tuple(column[5].as_py() for column in columns.values())]


@pytest.mark.parametrize(("name", "how"), CASES)
def test_polars_gets_what_it_has_a_type_for(store: drumlin.Store, name: str, how: str) -> None:
    ds, memory = fill(store, name, how)
    assert ds.to_lazy().filter(pl.col("text") == "b").select("id").collect().item() == 2
    frames: list[Callable[[], pl.DataFrame]] = [
        ds.to_polars,
        store.read("t").to_polars,
        lambda: ds.to_lazy().collect(),
        lambda: ds.to_lazy().filter(pl.col("id") > 0).collect(engine="streaming"),
    ]
    if name == "interval":
        for frame in frames:
            with pytest.raises((drumlin.Unsupported, pl.exceptions.ComputeError), match="'odd'"):
                frame()
        return
    for frame in frames:
        found = frame()
        assert found.height == 4
        if "nanoseconds" not in name and how != "map":
            assert list(map(plain, found["odd"].to_list())) == list(map(plain, memory["odd"].to_pylist()))


@pytest.mark.parametrize("zone", ["+05:30", "-01:30", "+00:00", "Z", "Nowhere/Town", "UTC", "Asia/Tokyo"])
def test_instants_of_any_zone_are_the_same_in_polars(store: drumlin.Store, zone: str) -> None:
    ticks = [0, 1_600_000_000_000_001, -1, None]
    store.write("t", pa.table({"at": instants(*ticks, unit="us", zone=zone)}))
    ds = store.scan("t")
    for frame in (ds.to_polars(), store.read("t").to_polars(), ds.to_lazy().collect()):
        assert frame["at"].to_physical().to_list() == ticks
    later = pl.lit(dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).cast(ds.to_lazy().collect_schema()["at"])
    assert ds.to_lazy().filter(pl.col("at") > later).collect()["at"].to_physical().to_list() == ticks[1:2]


# --- nanoseconds ---


def test_nanoseconds_are_nanoseconds_whatever_is_stored(store: drumlin.Store) -> None:
    """A filter, a default of older rows, rows in memory, the other side of a comparison may need them."""
    filled = store.table("filled")
    filled.write({"a": [1]})
    filled.add_columns({"ts": (pa.timestamp("ns"), instants(1_600_000_000_000_000_123)[0])})
    filled.append(pa.table({"a": [2], "ts": instants(1_600_000_000_000_001_000)}))
    whole = store.table("whole")
    whole.write(pa.table({"a": [1], "ts": instants(1000)}))
    two = store.table("two")
    two.write(pa.table({"a": instants(1000, zone="UTC"), "b": instants(1001, zone="UTC")}))
    keyed = store.table("keyed")
    keyed.create({"id": pa.int64(), "ts": pa.timestamp("ns")}, key=["id"])
    keyed.upsert(pa.table({"id": [1], "ts": instants(1000)}))
    store.checkpoint()
    keyed.upsert(pa.table({"id": [2], "ts": instants(1001)}))
    with duckdb.connect() as connection:
        for path in ("filled", "whole", "two", "keyed"):
            connection.register(path, store.scan(path))
            connection.register(f"{path}_memory", store.read(path).to_arrow())
        for path, query in [
            ("filled", "select epoch_ns(ts) from {} order by 1"),
            ("filled", "select count(*) from {} where ts = timestamp_ns '2020-09-13 12:26:40.000000123'"),
            ("whole", "select count(*) from {} where ts = '1970-01-01 00:00:00.000001001'"),
            ("whole", "select typeof(ts) from {}"),
            ("two", "select count(*) from {} where a < b"),
            ("keyed", "select id, epoch_ns(ts) from {} order by 1"),
        ]:
            wanted = connection.sql(query.format(f"{path}_memory")).fetchall()
            assert connection.sql(query.format(path)).fetchall() == wanted, query


# --- views ---


def test_pyarrow_computes_with_what_polars_wrote(store: drumlin.Store) -> None:
    frame = pl.DataFrame(
        {"n": [3, 1, 2], "s": ["b", "a", None], "l": [["x"], None, []], "st": [{"a": "x"}, {"a": None}, {"a": "y"}]}
    )
    store.write("t", frame)
    assert store.read("t").to_pandas()["l"].map(lambda texts: None if texts is None else list(texts)).tolist() == [
        ["x"],
        None,
        [],
    ]
    ds = store.scan("t")
    assert ds.schema == ds.to_table().schema == ds.to_arrow().schema
    assert [batch.schema for batch in ds] == [ds.schema]
    assert ds.take([2, 0]).to_pydict()["s"] == [None, "b"]
    assert ds.take([2, 0]).schema == ds.schema
    assert ds.scanner().take([1])["l"].to_pylist() == [None]
    assert ds.sort_by("n").to_table()["s"].to_pylist() == ["a", None, "b"]
    assert ds.sort_by("s").head(2)["n"].to_pylist() == [1, 3]
    flat = store.scan("t", columns=["n", "s"])
    assert sorted(flat.join(flat, "s", right_suffix="_r").to_table()["n_r"].to_pylist(), key=str) == [1, 3, None]
    store.write("in order", frame.select("n", "s").sort("n"))
    right = store.scan("in order").to_table().rename_columns(["n", "r"])
    assert store.scan("in order").join_asof(pads.dataset(right), "n", [], 0).to_table()["r"].to_pylist() == [
        "a",
        None,
        "b",
    ]
    odd = pc.field("n") * 2 > 2
    for of in (ds, ds.filter(odd), ds.limit(3)):
        assert of.to_table(filter=odd)["s"].to_pylist() == ["b", None]
        assert of.filter(odd).to_table(filter=pc.field("s") == "b")["n"].to_pylist() == [3]
        assert of.filter(odd).sort_by("n").to_table()["n"].to_pylist() == [2, 3]
    assert pads.dataset(ds.sort_by("n").to_table()).to_table(filter=pc.field("s") == "a").num_rows == 1


def test_datafusion_filters_what_polars_wrote(store: drumlin.Store) -> None:
    frame = pl.DataFrame({"id": range(5), "s": ["a", "b", None, "ab", "é"], "f": [1.5, float("nan"), None, -0.0, 3.0]})
    store.write("t", frame)
    context = datafusion.SessionContext()
    context.register_dataset("t", store.scan("t"))
    context.register_dataset("few", store.scan("t").limit(4))
    context.register_record_batches("memory", [frame.to_arrow().to_batches()])
    context.register_record_batches("memory_few", [frame.head(4).to_arrow().to_batches()])
    texts = ["s = 'a'", "s <> 'a'", "s < 'b'", "s in ('a', 'b')", "s in ('a', 'b', 'c', 'd')", "s like 'a%'"]
    texts += ["s is null", "s not in ('a', 'b', 'c', 'd')", "lower(s) = 'a'"]
    floats = ["f > 1.0", "f = cast('nan' as double)", "not f < 1.0", "f <> 1.5", "f >= cast('nan' as double)"]
    floats += ["f in (1.5, 3.0)", "f not in (1.5, 3.0, 4.0, 5.0)", "f not in (1.5, cast('nan' as double), 7.0, 8.0)"]
    both = [f"{s} {word} {f}" for s, word, f in itertools.product(texts, ("and", "or"), floats)]
    for where in [*texts, *floats, *both, *(f"not ({term})" for term in both)]:
        for of, memory in (("t", "memory"), ("few", "memory_few")):
            got, wanted = (
                sorted(pa.table(context.sql(f"select id from {name} where {where}"))["id"].to_pylist())
                for name in (of, memory)
            )
            assert got == wanted, (of, where)


# --- lists ---

LISTS: dict[str, Callable[[pa.DataType], pa.DataType]] = {
    "list": pa.list_,
    "large list": pa.large_list,
    "list view": pa.list_view,
    "large list view": pa.large_list_view,
    "of two": lambda element: pa.list_(element, 2),
}
LISTED = [[1, 2], None, [3, None], [4, 5]]


@pytest.mark.parametrize("here", LISTS)
@pytest.mark.parametrize("there", LISTS)
def test_lists_of_all_layouts_mix(store: drumlin.Store, here: str, there: str) -> None:
    def column(layout: str, within: bool) -> pa.Array:
        lists = pa.array(LISTED, LISTS[layout](pa.int32()))
        return pa.StructArray.from_arrays([lists], ["l"]) if within else lists

    for within in (False, True):
        one, other = (pa.table({"c": column(layout, within)}) for layout in (here, there))
        store.write("x/one", one)
        store.write("x/other", other)
        ds = store.scan("x/*")
        values = one["c"].to_pylist()
        assert ds.to_arrow()["c"].to_pylist() == values * 2
        assert ds.where("c is null").count_rows() == (0 if within else 2)
        assert duckdb.sql("select count(c) from ds").fetchall() == [(8 if within else 6,)]
        if there == "of two" or here != "of two":
            # A list of any length has no place among those of two.
            store.append("x/one", other.slice(1))
            assert store.read("x/one").to_arrow()["c"].to_pylist() == values + values[1:]
            assert store.read("x/one").to_arrow().schema == one.schema


def test_frames_of_each_library_are_appended_to_tables_of_each_other(store: drumlin.Store) -> None:
    import pandas as pd

    frames: list[dict[str, Any]] = [
        {"c": [[1], None]},
        {"c": [["a"], None]},
        {"c": [{"l": [1]}, None]},
        {"c": [[[1]], None]},
        {"c": ["a", None]},
        {"c": [b"a", None]},
    ]
    for columns in frames:
        made = {"pyarrow": pa.table(columns), "polars": pl.DataFrame(columns), "dict": columns}
        made["pandas"] = pd.DataFrame(columns)
        for one, other in itertools.product(made, made):
            store.write("t", made[one])
            store.append("t", made[other])
            assert store.read("t").to_arrow()["c"].to_pylist() == columns["c"] * 2, (one, other, columns)
            store.append("t", made[other], schema="evolve")
            store.write_many({"x/a": made[one], "x/b": made[other]})
            assert store.scan("x/*").to_arrow()["c"].to_pylist() == columns["c"] * 2, (one, other, columns)


# --- columns of which no type holds the values ---


def test_a_column_that_no_type_holds_is_refused_only_where_it_is_asked_for(store: drumlin.Store) -> None:
    store.write("t/a", pa.table({"id": [1, 2], "n": [2**60, 2]}), sort=["n"])
    store.append("t/a", pa.table({"id": [5], "n": [1]}))
    store.write("t/b", pa.table({"id": [3], "n": [1.5]}))
    apart = pytest.raises(drumlin.SchemaMismatch, match="column 'n' is int64 in 't/a' and double in 't/b'")
    with apart:
        store.scan("t/*")
    with apart:
        store.scan("t/*", columns=["id", "n"])
    with apart:
        store.scan("t/*", columns=["id"], where="n > 1")
    ds = store.scan("t/*", columns=["id"], where="id > 1")
    with apart:
        ds.select(["n"])
    with apart:
        ds.where("n is null")
    assert sorted(ds.to_arrow()["id"].to_pylist()) == [2, 3, 5]
    assert sorted(duckdb.sql("select id from ds where id < 5").fetchall()) == [(2,), (3,)]
    assert ds.to_lazy().filter(pl.col("id") < 5).collect().height == 2
    assert ds.to_table(filter=pc.field("id") < 5).num_rows == 2
    assert store.scan("t/*", columns=[]).count_rows() == 4
    assert store.read("t/*", columns=["id"]).to_arrow().num_rows == 4
    assert store.scan("t/*", columns=["id"]).group_by().agg(most=("id", "max")).to_arrow().to_pylist() == [{"most": 5}]
    with apart:
        store.scan("t/*", columns=["id"]).group_by("id").agg(most=("n", "max"))
    # A query that does not use it.
    assert store.sql("select count(*), max(id) from 't/*'").fetchall() == [(4, 5)]
    for query in ("select * from 't/*'", "select max(n) from 't/*'", "select id from 't/*' where n > 1"):
        with pytest.raises(drumlin.SchemaMismatch, match="column 'n' is int64"):
            store.sql(query).fetchall()


# --- the number of rows ---


def estimate(connection: duckdb.DuckDBPyConnection, query: str) -> list[int]:
    text = connection.sql(f"explain {query}").fetchall()[0][1]
    return [int(found.replace(",", "")) for found in re.findall(r"~([0-9,]+) rows?", text)]


def test_duckdb_learns_how_many_rows_there_are(store: drumlin.Store) -> None:
    store.write("small", {"id": range(10)})
    store.write("large", {"id": range(5000)})
    store.table("large").delete("id % 5 = 0")
    store.write_many({"p/a": {"id": range(70)}, "p/b": {"id": range(30)}})
    keyed = store.table("keyed")
    keyed.create({"id": pa.int64()}, key=["id"])
    keyed.upsert({"id": range(40)})
    with duckdb.connect() as connection:
        for name, rows, ds in [
            ("small", 10, store.scan("small")),
            ("large", 4000, store.scan("large")),
            ("few", 7, store.scan("large").limit(7)),
            ("all_p", 100, store.scan("p/*")),
            ("one_p", 30, store.scan("p/*", path_columns=["name"], where="name = 'b'")),
            ("keyed", 40, store.scan("keyed")),
        ]:
            connection.register(name, ds)
            assert estimate(connection, f"select id from {name}") == [rows], name
            assert connection.sql(f"select count(*) from {name}").fetchall() == [(rows,)]
        # The small side is the one that a join is built of, whichever comes first.
        for one, other in (("small", "large"), ("large", "small")):
            plan = connection.sql(f"explain select * from {one} join {other} using (id)").fetchall()[0][1]
            assert plan.index("4,000") < plan.index("~10 "), plan
    assert "~10 rows" in store.sql("explain select id from 'small'").fetchall()[0][1]


def test_a_version_of_duckdb_that_does_not_ask_for_rows_reads_them(
    store: drumlin.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its adapters ask for the schema alone, or keep no attributes."""
    store.write("t", {"id": [1, 2, 3]})
    ds = store.scan("t")

    class Bare:
        __slots__ = ("obj",)

        def __init__(self, of: Any) -> None:
            self.obj = of

        def schema(self) -> Any:
            return self.obj.schema

    class Closed(Bare):
        def rows(self) -> None:
            return None

    for adapter in (Bare, Closed):
        monkeypatch.setitem(adapter.schema.__globals__, "__name__", "duckdb._sources.pyarrow")
        assert adapter(ds).schema().names == ["id"]
    monkeypatch.undo()
    assert duckdb.sql("select sum(id) from ds").fetchall() == [(6,)]
