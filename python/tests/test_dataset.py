"""Data sets: patterns of tables as one, pinned to an instant, pruned, counted, explained, and sent to other
processes."""

import datetime as dt
import decimal
import functools
import operator
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import datafusion
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import drumlin
from drumlin import col


@pytest.fixture
def prices(store: drumlin.Store) -> drumlin.Store:
    store.write_many({f"prices/{zone}/{name}": {"n": [1, 2, 3], "zone": [zone] * 3} for zone, name in NAMES})
    return store


NAMES = [("us", "AAPL"), ("us", "MSFT"), ("eu", "SAP")]


def test_a_pattern_is_one_table_with_names_as_columns(prices: drumlin.Store) -> None:
    ds = prices.scan("prices/*/*", path_columns=["region", "symbol"])
    assert ds.paths == ["prices/eu/SAP", "prices/us/AAPL", "prices/us/MSFT"]
    assert (ds.pattern, ds.path_columns) == ("prices/*/*", ["region", "symbol"])
    assert ds.schema.names == ["n", "zone", "region", "symbol"]
    table = ds.to_arrow()
    assert table["symbol"].to_pylist() == ["SAP"] * 3 + ["AAPL"] * 3 + ["MSFT"] * 3
    assert table["region"].to_pylist() == table["zone"].to_pylist()
    deep = prices.scan("prices/**", path_columns=["path"]).to_arrow()
    assert set(deep["path"].to_pylist()) == {"eu/SAP", "us/AAPL", "us/MSFT"}
    assert prices.read("prices/us/*", where="n = 2").to_pandas()["n"].tolist() == [2, 2]


def test_names_prune_tables_that_are_never_opened(store: drumlin.Store) -> None:
    store.write_many({f"t/{at:04d}": {"n": list(range(10))} for at in range(1000)})
    ds = store.scan("t/*", path_columns=["name"], where="name = '0500' and n > 7")
    plan = ds.explain()
    assert (plan.tables, len(plan.pruned_tables)) == (["t/0500"], 999)
    assert (plan.row_groups, plan.pruned_row_groups) == (1, 0)
    before = store.stat()
    assert ds.to_arrow().to_pydict() == {"n": [8, 9], "name": ["0500", "0500"]}
    after = store.stat()
    # A directory, and the only column.
    looked = after.cache_hits + after.cache_misses - before.cache_hits - before.cache_misses
    assert looked <= 4
    everything = store.scan("t/*", path_columns=["name"])
    before = store.stat()
    assert everything.paths[0] == "t/0000"
    assert duckdb.sql("select n from everything where name in ('0500', 'x') and n > 7").fetchall() == [(8,), (9,)]
    after = store.stat()
    assert after.cache_hits + after.cache_misses - before.cache_hits - before.cache_misses <= 4


def test_counts_come_from_statistics_where_they_decide(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("t", {"n": list(range(1000)), "s": ["x"] * 1000})
        for first in range(1000, 5000, 1000):
            store.append("t", {"n": list(range(first, first + 1000)), "s": ["x"] * 1000})
    with drumlin.open(folder, mode="read", cache_bytes=0) as store:
        ds = store.scan("t")
        before = store.stat().cache_misses
        assert ds.count_rows() == 5000
        assert store.stat().cache_misses == before
        assert ds.count_rows("n < 2500") == 2500
        # A directory for each row group, and a column of the one that is cut.
        assert store.stat().cache_misses - before == 5 + 1
        plan = ds.where("n < 2500").explain()
        assert (plan.row_groups, plan.pruned_row_groups, plan.whole_row_groups) == (5, 2, 2)
        assert plan.bytes > plan.pruned_bytes > 0
        assert "row groups  3 of 5 read; 2 ruled out by statistics, 2 pass whole" in str(plan)
        assert ds.limit(1200).count_rows() == 1200


def test_the_instant_stays(prices: drumlin.Store) -> None:
    table = prices.table("prices/us/AAPL")
    ds = prices.scan("prices/us/*")
    made = table.versions()[0].time
    prices.snapshot("eod", "prices/**")
    prices.append("prices/us/AAPL", {"n": [4], "zone": ["us"]})
    prices.write("prices/us/NEW", {"n": [9], "zone": ["us"]})
    assert ds.count_rows() == ds.to_arrow().num_rows == 6
    assert prices.scan("prices/us/*").count_rows() == 8
    assert prices.scan("prices/us/*", as_of="eod").count_rows() == 6
    assert prices.scan("prices/us/*", as_of=0).count_rows() == 7
    assert prices.scan("prices/us/*", as_of=made + dt.timedelta(microseconds=1)).paths == ds.paths
    with pytest.raises(drumlin.NotFound, match="prices/us/MSFT' has no version 1"):
        prices.scan("prices/us/*", as_of=1)
    with pytest.raises(drumlin.NotFound, match="snapshot 'none'"):
        prices.scan("prices/us/*", as_of="none")
    prices.checkpoint()
    prices.drop("prices/us/NEW")
    prices.reclaim()
    assert ds.to_arrow().num_rows == 6
    prices.table("prices/us/AAPL").write({"n": [0], "zone": ["us"]})
    prices.delete_versions({"prices/us/AAPL": [0, 1]})
    prices.drop_snapshot("eod")
    with pytest.raises(drumlin.SnapshotExpired, match="prices/us/AAPL"):
        ds.to_arrow()


def test_columns_are_united_without_loss(store: drumlin.Store) -> None:
    store.write("t/a", pa.table({"n": pa.array([1, 2], pa.int16()), "only_a": ["x", None]}))
    store.write("t/b", pa.table({"n": pa.array([3], pa.uint32()), "only_b": [1.5]}))
    store.write("t/c", pa.table({"n": pa.array([None], pa.null())}))
    ds = store.scan("t/*")
    assert ds.schema.field("n").type == pa.int64()
    assert ds.to_arrow().to_pydict() == {
        "n": [1, 2, 3, None],
        "only_a": ["x", None, None, None],
        "only_b": [None, None, 1.5, None],
    }
    assert ds.where("n >= 2 and only_a is null").count_rows() == 2
    plan = ds.where("only_a = 'x'").explain()
    assert plan.tables == ["t/a"]
    store.write("t/d", pa.table({"n": [2.5]}))
    assert ds.count_rows() == 4
    store.write("t/e", pa.table({"n": pa.array([1], pa.uint64())}))
    with pytest.raises(drumlin.SchemaMismatch, match="column .n. is .* and no type holds"):
        store.scan("t/*")


@pytest.mark.parametrize(
    ("types", "wide"),
    [
        ((pa.timestamp("s"), pa.timestamp("ns")), pa.timestamp("ns")),
        ((pa.decimal128(5, 1), pa.decimal128(7, 4)), pa.decimal128(8, 4)),
        ((pa.float32(), pa.int16()), pa.float32()),
        ((pa.int32(), pa.float32()), pa.float64()),
        ((pa.string(), pa.dictionary(pa.int32(), pa.string())), pa.string()),
        ((pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.string())), pa.string()),
        ((pa.string(), pa.large_string()), pa.large_string()),
        ((pa.time32("s"), pa.time64("us")), pa.time64("us")),
        ((pa.int64(), pa.float64()), None),
        ((pa.int64(), pa.uint64()), None),
        ((pa.string(), pa.int64()), None),
        ((pa.timestamp("us", "UTC"), pa.timestamp("us")), None),
    ],
)
def test_types_of_two_tables(store: drumlin.Store, types: tuple[pa.DataType, ...], wide: pa.DataType | None) -> None:
    for name, data_type in zip("ab", types, strict=True):
        store.write(f"t/{name}", pa.table({"c": pa.nulls(2, data_type)}))
    if wide is None:
        with pytest.raises(drumlin.SchemaMismatch, match="column 'c'"):
            store.scan("t/*")
    else:
        assert store.scan("t/*").schema.field("c").type == wide
        assert store.scan("t/*").to_arrow()["c"].null_count == 4


def test_units_are_compared_after_they_are_one(store: drumlin.Store) -> None:
    store.write("t/s", pa.table({"at": pa.array([1, 2], pa.timestamp("s"))}))
    store.write("t/ns", pa.table({"at": pa.array([1_500_000_000], pa.timestamp("ns"))}))
    ds = store.scan("t/*", where="at > timestamp '1970-01-01 00:00:01'")
    assert ds.to_arrow()["at"].cast(pa.int64()).to_pylist() == [1_500_000_000, 2_000_000_000]
    # A second beyond what nanoseconds can say is refused, never taken for null.
    store.write("t/far", pa.table({"at": pa.array([2**40], pa.timestamp("s"))}))
    with pytest.raises(drumlin.Error, match="t/far.* does not fit"):
        store.scan("t/*").to_arrow()


def test_what_does_not_fit_is_named(prices: drumlin.Store) -> None:
    with pytest.raises(drumlin.NotFound, match="no table matches 'none/"):
        prices.scan("none/*")
    with pytest.raises(drumlin.NotFound, match="no table at 'none'"):
        prices.scan("none")
    with pytest.raises(drumlin.InvalidArgument, match="1 names, but the pattern 'prices/\\*/\\*' has 2 wildcard parts"):
        prices.scan("prices/*/*", path_columns=["a"])
    with pytest.raises(drumlin.InvalidArgument, match="'n', which is already a column of"):
        prices.scan("prices/us/*", path_columns=["n"])
    with pytest.raises(drumlin.InvalidArgument, match="more than one"):
        prices.scan("**/us/**", path_columns=["a", "b"])
    with pytest.raises(drumlin.InvalidArgument, match="twice"):
        prices.scan("prices/*/*", path_columns=["a", "a"])
    with pytest.raises(drumlin.InvalidArgument, match="column 'x' does not exist"):
        prices.scan("prices/us/*", columns=["x"])
    with pytest.raises(drumlin.InvalidArgument, match="x"):
        prices.scan("prices/us/*", where="x = 1")
    with pytest.raises(drumlin.InvalidArgument, match="tail"):
        prices.read("prices/us/*", tail=1)
    with pytest.raises(drumlin.InvalidArgument, match="before limit"):
        prices.scan("prices/us/*", limit=1).where("n = 1")
    with pytest.raises(TypeError, match="limit"):
        prices.scan("prices/us/*", limit="x")  # type: ignore[arg-type]


def test_a_transaction_scans_its_own_writes(prices: drumlin.Store) -> None:
    with prices.transaction() as tx:
        tx.write("prices/us/NEW", {"n": [9], "zone": ["us"]})
        ds = tx.scan("prices/us/*")
        assert ds.count_rows() == ds.to_arrow().num_rows == 7
        with pytest.raises(drumlin.InvalidArgument, match="transaction"):
            pickle.dumps(ds)
        tx.write("prices/us/NEW", {"n": [9, 9], "zone": ["us", "us"]})
        with pytest.raises(drumlin.InvalidArgument, match="read it again"):
            ds.to_arrow()
    # What it looked at is part of what it read.
    tx = prices.transaction()
    tx.tree.put("n", tx.scan("prices/us/*").count_rows())
    prices.write("prices/us/OTHER", {"n": [1], "zone": ["us"]})
    with pytest.raises(drumlin.Conflict):
        tx.commit()


def test_select_where_limit(prices: drumlin.Store) -> None:
    ds = prices.scan("prices/us/*", path_columns=["symbol"]).where(col("n") > 1).select(["symbol"])
    assert ds.to_arrow().to_pydict() == {"symbol": ["AAPL", "AAPL", "MSFT", "MSFT"]}
    assert ds.limit(3).to_polars().height == 3
    assert ds.limit(3).limit(5).count_rows() == 3
    assert [batch.num_rows for batch in ds] == [2, 2]
    assert repr(ds) == "Dataset('prices/us/*', 2 tables, symbol: string)"
    assert pa.table(ds).num_rows == pl.DataFrame(ds).height == len(ds.to_pandas()) == 4
    assert duckdb.sql("select count(*) from ds").fetchall() == [(4,)]
    limited = prices.scan("prices/us/*", limit=4)
    # The filter is of the rows that are limited, not before.
    assert duckdb.sql("select count(*) from limited where n = 1").fetchall() == [(2,)]
    assert limited.to_table(filter=pc.field("n") == 3).num_rows == 1
    assert limited.to_lazy().filter(pl.col("n") == 3).collect().height == 1


def test_pandas_indexes_come_back(store: drumlin.Store) -> None:
    days = pd.date_range("2026-01-01", periods=3, name="day")
    frames = {name: pd.DataFrame({"close": [1.0, 2.0, 3.0]}, index=days) for name in ("a", "b")}
    store.write_many({f"p/{name}": frame for name, frame in frames.items()})
    back = store.scan("p/*").to_pandas()
    pd.testing.assert_frame_equal(back, pd.concat(frames.values()), check_freq=False)
    named = store.scan("p/*", path_columns=["symbol"]).to_pandas()
    assert (named.index.name, named["symbol"].tolist()) == ("day", ["a"] * 3 + ["b"] * 3)


def test_another_process_reads_the_same(folder: str, tmp_path: Path) -> None:
    store = drumlin.open(folder, shared=True)
    store.write_many({f"t/{at}": {"n": [at] * 10} for at in range(5)})
    store.table("k").create(pa.schema([("id", pa.int64()), ("v", pa.int64())]), key=["id"])
    store.table("k").upsert({"id": [1, 2], "v": [1, 1]})
    sets = [store.scan("t/*", path_columns=["at"], where="n >= 2", columns=["at", "n"]), store.scan("k")]
    pickled = [pickle.dumps(ds) for ds in sets]
    assert all(len(data) < 1000 for data in pickled)
    wanted = [ds.to_arrow().to_pylist() for ds in sets]
    store.append("t/3", {"n": [99]})
    store.table("k").upsert({"id": [3], "v": [3]})
    assert [pickle.loads(data).to_arrow().to_pylist() for data in pickled] == wanted
    (tmp_path / "pickled").write_bytes(pickle.dumps(pickled))
    program = (
        "import pickle, sys; sets = [pickle.loads(p) for p in pickle.load(open(sys.argv[1], 'rb'))];"
        "print([ds.to_arrow().to_pylist() for ds in sets])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "pickled")], capture_output=True, text=True, check=False
    )
    assert ran.stdout.strip() == str(wanted), ran.stderr
    store.close()
    with drumlin.open("memory://") as other:
        other.write("t", {"n": [1]})
        in_memory = pickle.dumps(other.scan("t"))
        assert pickle.loads(in_memory).count_rows() == 1
    with pytest.raises(drumlin.InvalidArgument, match="memory.*was closed"):
        pickle.loads(in_memory)


def test_a_damaged_description_is_refused(store: drumlin.Store) -> None:
    store.write("t", {"n": [1]})
    described = store._core.tables().scan("t", None, []).describe()
    for bad in (b"", b"\x00", b"\xff" * 40, described[:-1], described[:-1] + b"\xff\xff\xff"):
        with pytest.raises((drumlin.Corrupt, drumlin.SnapshotExpired)):
            store._core.dataset(bad)


def test_pyarrow_sees_a_dataset(prices: drumlin.Store, tmp_path: Path) -> None:
    ds = prices.scan("prices/us/*", path_columns=["symbol"])
    assert isinstance(ds, pads.Dataset)
    assert isinstance(ds, drumlin.Dataset)
    assert ds.head(4)["symbol"].to_pylist() == ["AAPL"] * 3 + ["MSFT"]
    assert ds.take([5, 0])["symbol"].to_pylist() == ["MSFT", "AAPL"]
    assert ds.count_rows(filter=pc.field("symbol") == "AAPL") == 3
    assert [f.path for f in ds.get_fragments(pc.field("symbol") == "AAPL")] == ["prices/us/AAPL"]
    assert sum(f.count_rows() for f in ds.get_fragments()) == 6
    assert ds.join(ds.select(["n"]), "n").to_table().num_rows == 12
    assert ds.sort_by([("n", "descending")]).to_table()["n"].to_pylist() == [3, 3, 2, 2, 1, 1]
    pads.write_dataset(ds, tmp_path / "out", format="parquet")
    assert pads.dataset(tmp_path / "out").count_rows() == 6
    with pytest.raises(FileNotFoundError, match="drumlin"):
        pads.Scanner.from_dataset(ds).to_table()
    # An expression that looks at more than is asked for, and that we have no words for.
    assert ds.to_table(columns=["symbol"], filter=pc.field("n") * 2 == 4).num_rows == 2
    assert [batch.num_rows for batch in ds.scanner(batch_size=2).to_batches()] == [2, 1, 2, 1]


def test_sql(prices: drumlin.Store) -> None:
    query = "select symbol, sum(n) from 'prices/us/{symbol}' group by 1 order by 1"
    assert prices.sql(query).fetchall() == [("AAPL", 6), ("MSFT", 6)]
    prices.append("prices/us/AAPL", {"n": [4], "zone": ["us"]})
    prices.snapshot("eod")
    prices.append("prices/us/AAPL", {"n": [5], "zone": ["us"]})
    count = "select count(*) from {}"
    for table, rows in [
        ("'prices/us/AAPL'", 5),
        ('"prices/us/AAPL@0"', 3),
        ("'prices/us/AAPL@eod'", 4),
        ("'prices/us/*@eod'", 7),
        ("'prices/**'", 11),
    ]:
        assert prices.sql(count.format(table)).fetchall() == [(rows,)], table
    assert prices.sql(count.format("'prices/us/AAPL'"), as_of=0).fetchall() == [(3,)]
    joined = (
        "select count(*) from 'prices/us/AAPL' a join 'prices/eu/SAP' b using (n) -- 'prices/none'\n where a.n > $1"
    )
    assert prices.sql(joined, params=[1]).fetchall() == [(2,)]
    with pytest.raises(drumlin.NotFound, match="AAPL@7"):
        prices.sql("from 'prices/us/AAPL@7'")
    with pytest.raises(drumlin.NotFound, match="'gone'"):
        prices.sql("from 'prices/us/AAPL@gone'")
    with pytest.raises(drumlin.NotFound, match="no/such"):
        prices.sql("from 'no/such'")
    prices_in_python = pa.table({"n": [1]})
    assert prices.sql("from prices_in_python").fetchall() == [(1,)]
    del prices_in_python
    with pytest.raises(drumlin.NotFound, match="prices_in_python"):
        prices.sql("from prices_in_python")
    assert prices.sql("from 'prices/eu/SAP'").pl().height == 3


def test_the_import_stays_quick() -> None:
    """What is imported is counted, since times differ from machine to machine."""
    program = "import sys; was = set(sys.modules); import drumlin; print(*sorted(set(sys.modules) - was))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = ran.stdout.split()
    heavy = {"numpy", "pandas", "pyarrow", "polars", "duckdb", "datafusion", "dask", "ray", "asyncio", "inspect"}
    assert not heavy.intersection(loaded), heavy.intersection(loaded)
    others = [name for name in loaded if not name.startswith("drumlin")]
    assert len(others) <= 60, others


def test_a_query_in_sql_reads_one_instant(store: drumlin.Store) -> None:
    store.write_many({"a": {"v": [0]}, "b": {"v": [0]}})
    stop = threading.Event()

    def write() -> None:
        at = 0
        while not stop.is_set():
            at += 1
            store.write_many({"a": {"v": [at]}, "b": {"v": [at]}})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(50):
            [(a, b)] = store.sql("select a.v, b.v from 'a' a, 'b' b").fetchall()
            assert a == b
    finally:
        stop.set()
        writer.join()
    with store.transaction() as tx:
        tx.write("a", {"v": [-1]})
        assert tx.sql("select v from 'a'").fetchall() == [(-1,)]


def test_texts_in_sql_are_no_tables(store: drumlin.Store) -> None:
    store.write_many({"x": {"s": ["*", "it's", "x@5"]}, "y": {"s": [1]}, "p/A": {"v": [1]}, "p/a": {"v": [2]}})
    for query, answer in [
        ("select count(*), '*' from 'x' where s <> '*'", [(2, "*")]),
        ("select count(*) from 'x' where s <> '{s}/{s}'", [(3,)]),
        ("select count(*) from 'x' where s = 'x@5'", [(1,)]),
        ("select $$it's$$, count(*) from 'x'", [("it's", 3)]),
        (r"select e'it\'s', count(*) from 'x'", [("it's", 3)]),
        ("select count(*) from 'x' where s = 'it''s' /* 'y */", [(1,)]),
    ]:
        assert store.sql(query).fetchall() == answer, query
    with pytest.raises(drumlin.SchemaMismatch, match="column 's'"):
        store.sql("from '?'")
    with pytest.raises(drumlin.InvalidArgument, match="differ only in case"):
        store.sql("select * from 'p/A' union all select * from 'p/a'")


def test_types_that_engines_have_trouble_with(store: drumlin.Store) -> None:
    narrow = [decimal.Decimal(text) for text in ("1.50", "2.25", "-3.00")]
    columns = {
        "d32": pa.array(narrow, pa.decimal32(5, 2)),
        "d64": pa.array(narrow, pa.decimal64(12, 2)),
        "d256": pa.array(narrow, pa.decimal256(60, 3)),
        "view": pa.array(["a", "b", None], pa.string_view()),
        "f": pa.array([1.0, 2.0, float("nan")]),
        "h": pa.array([1.0, -0.0, float("nan")], pa.float16()),
        "df": pa.array([1.0, 2.0, float("nan")]).dictionary_encode(),
        "span": pa.array([1, 2, 3], pa.duration("s")),
        "order of f": pa.array([1, 2, 3]),
    }
    memory = pa.table(columns)
    store.write("t", memory)
    ds = store.scan("t")
    # Polars has no decimals of 256 bits.
    some = ["d32", "d64", "view"]
    frames = [
        ds.select(some).to_polars(),
        store.read("t", columns=some).to_polars(),
        store.read("t", columns=some, native=True).to_polars(),
        ds.select(some).to_lazy().collect(),
    ]
    for frame in frames:
        assert frame["d32"].to_list() == frame["d64"].to_list() == narrow
    assert ds.select(some).to_lazy().filter(pl.col("d64") > 2).collect().height == 1
    plain = memory.drop_columns(["view"])
    for expression in (
        pc.field("d256") == pa.scalar(narrow[0], pa.decimal256(60, 3)),
        pc.field("f") * 2 > 2,
        pc.field("df") > 1.0,
        pc.field("span") < pa.scalar(2**62, pa.duration("s")),
        functools.reduce(operator.or_, [pc.field("f") == at for at in range(900)]),
        pc.field("order of f").isin(pa.array(range(200_000))),
    ):
        wanted = pads.dataset(plain).count_rows(filter=expression)
        assert ds.to_table(filter=expression).num_rows == ds.count_rows(filter=expression) == wanted, expression
    assert ds.to_table(filter=pc.field("f") * 2 > 2).schema == ds.schema
    context = datafusion.SessionContext()
    context.register_dataset("t", ds)
    context.register_record_batches("memory", [plain.to_batches()])
    context.register_dataset("two", ds.limit(2))
    nan = "cast('nan' as double)"
    for where in ("f > 1.0", "f in (null)", f"df = {nan}", f"df < {nan}", "h <= cast(1 as real)"):
        [rows, wanted] = (pa.table(context.sql(f"select f from {of} where {where}")) for of in ("t", "memory"))
        assert rows.num_rows == wanted.num_rows, where
    assert pa.table(context.sql("select view from t where f > 1.0")).num_rows == 2
    assert pa.table(context.sql("select f from two")).num_rows == 2


def test_a_filter_looks_at_columns_that_are_not_shown(store: drumlin.Store) -> None:
    store.write("t", {"a": [1, 2, 3], "b": [4, 5, 6]})
    ds = store.scan("t", columns=["a"])
    for expression in (pc.field("b") > 4, pc.field("b") * 2 > 9):
        assert ds.to_table(columns={"q": pc.field("a")}, filter=expression)["q"].to_pylist() == [2, 3]
        assert ds.to_table(filter=expression).to_pydict() == {"a": [2, 3]}
        assert ds.limit(2).to_table(filter=expression).to_pydict() == {"a": [2]}
        assert ds.limit(2).count_rows(filter=expression) == 1


def test_datafusion_joins_where_no_table_has_rows(store: drumlin.Store) -> None:
    store.write("t", {"id": [1, 2, 3], "b": [False, False, None]})
    store.write("p", {"id": [2, 3, 4]})
    named = store.scan("*", path_columns=["name"])
    assert [part.to_table().num_rows for part in named.get_fragments(pc.field("name") == "q")] == [0]
    context = datafusion.SessionContext()
    for name in ("t", "p"):
        context.register_dataset(name, store.scan(name))
    for kept, rows in (("b > true", 0), ("b", 0), ("id > 9", 0), ("not b", 1)):
        for join in ("id not in (select id from p)", "not exists (select 1 from p where p.id = t.id)"):
            found = pa.table(context.sql(f"select id from t where {kept} and {join}"))
            assert found.num_rows == rows, (kept, join)
