"""Groups of rows: beside DuckDB on its own table and over Parquet, Polars over Parquet, and ArcticDB.

All run in this process with two threads each, in turn, on the same rows and the same disk; medians, and the median of
the ratios round by round. A ratio below 1 means that Drumlin took less. Answers are compared.

    python bench/groups.py [--scale 1] [--runs 7] [--folder FOLDER] [--only chain,cities,bars,symbols]

`chain`: Q1 and Q6 of TPC-H over six loads of lineitem, half of the rows deleted after each, hot and cold (files not in
memory). `cities`: the least, mean and greatest temperature of 10,000 cities, 100 million rows times the scale.
`bars`: bars of five minutes of ten million seconds, and prices of 3,000 symbols. `symbols`: the last month of 500
symbols, one table each, in bars of a day.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

THREADS = 2
# Polars and ArcticDB read these when they are loaded.
os.environ["POLARS_MAX_THREADS"] = str(THREADS)
os.environ.update({f"ARCTICDB_VersionStore_Num{kind}Threads_int": str(THREADS) for kind in ("CPU", "IO")})

import arcticdb  # noqa: E402
import duckdb  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import polars  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import raw  # noqa: E402
from duckdb_compare import Report, duckdb_open, lineitem, timed  # noqa: E402
from vacuum import chain, forget, opened  # noqa: E402

import drumlin  # noqa: E402
from engines import compared  # noqa: E402

#: The beginning of the last month.
MONTH = dt.datetime(2026, 6, 1)
CITIES = 10_000
SYMBOLS = 500

Q1 = """
    select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
           sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
           avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
    from lineitem where l_shipdate <= date '1998-09-02'
    group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus"""
Q6 = """
    select sum(l_extendedprice * l_discount) from lineitem
    where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
      and l_discount between 0.05 and 0.07 and l_quantity < 24"""


def q1(store: drumlin.Store) -> pa.Table:
    groups = store.scan("lineitem").where("l_shipdate <= '1998-09-02'").group_by("l_returnflag", "l_linestatus")
    return groups.agg(
        quantity=("l_quantity", "sum"),
        price=("l_extendedprice", "sum"),
        discounted=("l_extendedprice * (1 - l_discount)", "sum"),
        charge=("l_extendedprice * (1 - l_discount) * (1 + l_tax)", "sum"),
        mean_quantity=("l_quantity", "mean"),
        mean_price=("l_extendedprice", "mean"),
        mean_discount=("l_discount", "mean"),
        rows="count",
    ).to_arrow()


def q6(store: drumlin.Store) -> pa.Table:
    kept = "l_shipdate >= '1994-01-01' and l_shipdate < '1995-01-01' and l_discount between 0.05 and 0.07"
    rows = store.scan("lineitem").where(f"{kept} and l_quantity < 24")
    return rows.group_by().agg(revenue=("l_extendedprice * l_discount", "sum")).to_arrow()


def rows_of(found: Any) -> list[tuple[Any, ...]]:
    """The rows of a result, as Python has them."""
    if isinstance(found, list):
        return found
    table = found if isinstance(found, pa.Table) else pa.Table.from_pandas(found, preserve_index=False)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def plain(value: Any) -> Any:
    if isinstance(value, dt.datetime | pd.Timestamp):
        return pd.Timestamp(value).tz_localize(None).value
    return value if isinstance(value, str) or value is None else float(value)


def agree(found: dict[str, Any]) -> None:
    """All answers are the same, up to rounding."""
    (first, ours), *others = ((name, rows_of(rows)) for name, rows in found.items())
    for name, theirs in others:
        assert len(ours) == len(theirs), f"{first} has {len(ours)} rows, {name} {len(theirs)}"
        for mine, other in zip(ours, theirs, strict=True):
            for a, b in zip(map(plain, mine), map(plain, other), strict=True):
                same = a == b or (isinstance(a, float) and abs(a - b) <= 1e-9 * max(abs(a), abs(b)))
                assert same, f"{first} has {mine}, {name} {other}"


def compare(what: str, runs: int, ways: dict[str, Callable[[], Any]]) -> None:
    """Runs each way in turn, hot."""
    agree({name: way() for name, way in ways.items()})
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            times[name].append(timed(way))
    raw.keep(what, times)
    print(f"{what}: {compared(times)}", flush=True)


def over_the_chain(folder: Path, scale: float, runs: int) -> None:
    parquet = lineitem(folder, scale)
    ours, theirs = folder / "chain.drumlin", folder / "chain.duckdb"
    if not (ours.exists() and theirs.exists()):
        chain(Report(), folder, parquet, 1)
    for name, query, asked in (("Q1", Q1, q1), ("Q6", Q6, q6)):
        cold: tuple[list[float], list[float]] = ([], [])
        for _ in range(runs):
            forget(ours)
            forget(theirs)

            def mine(asked: Callable[[drumlin.Store], Any] = asked) -> None:
                with opened(ours) as store:
                    asked(store)

            def duck(query: str = query) -> None:
                with duckdb_open(theirs) as connection:
                    connection.execute(query).fetchall()

            cold[0].append(timed(mine))
            cold[1].append(timed(duck))
        times = dict(zip(("drumlin", "duckdb"), cold, strict=True))
        raw.keep(f"{name} cold", times)
        print(f"{name} cold: {compared(times)}", flush=True)
        with opened(ours) as store, duckdb_open(theirs) as connection:
            ways = {
                "drumlin": lambda asked=asked, store=store: asked(store),
                "duckdb": lambda query=query, connection=connection: connection.execute(query).fetchall(),
            }
            compare(f"{name} hot", runs, ways)


def cities(rows: int) -> Iterator[pa.RecordBatch]:
    """A city and a temperature of one decimal each, in pieces."""
    names = pa.array([f"city {at:05d}" for at in range(CITIES)])
    rng = np.random.default_rng(1)
    mean = rng.uniform(-10, 30, CITIES)
    for start in range(0, rows, 1_000_000):
        count = min(1_000_000, rows - start)
        city = rng.integers(0, CITIES, count)
        temperature = np.round(rng.normal(mean[city], 10), 1)
        column = pa.DictionaryArray.from_arrays(pa.array(city, pa.int16()), names).cast(pa.string())
        yield pa.record_batch({"city": column, "temperature": temperature})


def of_cities(folder: Path, scale: float, runs: int) -> None:
    rows = int(100_000_000 * scale)
    ours, theirs = folder / "cities.drumlin", folder / "cities.parquet"
    schema = pa.schema({"city": pa.string(), "temperature": pa.float64()})
    if not theirs.exists():
        with pq.ParquetWriter(theirs, schema) as writer:
            for batch in cities(rows):
                writer.write_batch(batch, row_group_size=122_880)
        with opened(ours) as store:
            store.write("cities", pa.RecordBatchReader.from_batches(schema, cities(rows)))
            store.checkpoint()
    with opened(ours) as store, duckdb_open(Path(":memory:")) as connection:
        query = (
            f"select city, min(temperature), avg(temperature), max(temperature) from '{theirs}' group by 1 order by 1"
        )
        aggregates = {"least": ("temperature", "min"), "mean": ("temperature", "mean"), "most": ("temperature", "max")}
        column = polars.col("temperature")

        def lazily() -> Any:
            lazy = polars.scan_parquet(theirs).group_by("city")
            lazy = lazy.agg(least=column.min(), mean=column.mean(), most=column.max())
            return lazy.sort("city").collect(engine="streaming").to_arrow()

        ways: dict[str, Callable[[], Any]] = {
            "drumlin": lambda: store.scan("cities").group_by("city").agg(**aggregates).to_arrow(),
            "duckdb over Parquet": lambda: connection.execute(query).fetchall(),
            "polars over Parquet": lazily,
        }
        compare(f"{CITIES} cities, {rows:,} rows", runs, ways)


BARS = {
    "open": ("price", "first"),
    "high": ("price", "max"),
    "low": ("price", "min"),
    "close": ("price", "last"),
    "volume": ("size", "sum"),
}


def ticks(rows: int, step: int, seed: int = 1) -> pd.DataFrame:
    """Prices, `step` nanoseconds apart, up to the end of June 2026."""
    rng = np.random.default_rng(seed)
    end = np.datetime64("2026-07-01", "ns").astype(np.int64)
    index = pd.DatetimeIndex(end - step * np.arange(rows, 0, -1), name="ts")
    price = np.round(100 + np.cumsum(rng.normal(0, 0.01, rows)), 2)
    return pd.DataFrame({"price": price, "size": rng.integers(1, 1000, rows)}, index=index)


def of_bars(folder: Path, scale: float, runs: int) -> None:
    frame = ticks(int(10_000_000 * scale), 1_000_000_000)
    frame["sym"] = np.array([f"S{at:04d}" for at in range(3000)])[
        np.random.default_rng(2).integers(0, 3000, len(frame))
    ]
    parquet = folder / "bars.parquet"
    pq.write_table(pa.Table.from_pandas(frame), parquet, row_group_size=122_880)
    library = arcticdb.Arctic(f"lmdb://{folder / 'bars.arctic'}?map_size=20GB").get_library("l", create_if_missing=True)
    library.write("bars", frame)
    with opened(folder / "bars.drumlin") as store:
        store.write("bars", frame)
        store.checkpoint()
        price, size = polars.col("price"), polars.col("size")
        columns = {
            "open": price.first(),
            "high": price.max(),
            "low": price.min(),
            "close": price.last(),
            "volume": size.sum(),
        }
        every = {
            "drumlin": lambda: store.scan("bars").resample("5m", on="ts").agg(**BARS).to_arrow(),
            "arcticdb": lambda: library.read(
                "bars", query_builder=arcticdb.QueryBuilder().resample("5min").agg(BARS)
            ).data.reset_index()[["ts", *BARS]],
            "polars over Parquet": lambda: (
                polars.scan_parquet(parquet).group_by_dynamic("ts", every="5m").agg(**columns).collect().to_arrow()
            ),
        }
        compare(f"bars of 5 minutes, {len(frame):,} rows", runs, every)
        mean = {"mean": ("price", "mean"), "volume": ("size", "sum")}
        by_symbol = {
            "drumlin": lambda: store.scan("bars").group_by("sym").agg(**mean).to_arrow(),
            "arcticdb": lambda: (
                library.read("bars", query_builder=arcticdb.QueryBuilder().groupby("sym").agg(mean))
                .data.sort_index()
                .reset_index()[["sym", *mean]]
            ),
            "polars over Parquet": lambda: (
                polars.scan_parquet(parquet)
                .group_by("sym")
                .agg(mean=price.mean(), volume=size.sum())
                .sort("sym")
                .collect()
                .to_arrow()
            ),
        }
        compare(f"3,000 symbols, {len(frame):,} rows", runs, by_symbol)


def of_symbols(folder: Path, scale: float, runs: int) -> None:
    frames = {f"S{at:03d}": ticks(int(200_000 * scale), 60_000_000_000, at) for at in range(SYMBOLS)}
    library = arcticdb.Arctic(f"lmdb://{folder / 'symbols.arctic'}?map_size=20GB").get_library(
        "l", create_if_missing=True
    )
    library.write_batch([arcticdb.WritePayload(name, frame) for name, frame in frames.items()])
    with opened(folder / "symbols.drumlin") as store:
        store.write_many({f"prices/{name}": frame for name, frame in frames.items()})
        store.checkpoint()

        def batch() -> pd.DataFrame:
            # Its date range and its resampling exclude each other, so rows are filtered.
            asked = arcticdb.QueryBuilder().date_range((MONTH, None)).resample("1D").agg(BARS)
            found = library.read_batch([arcticdb.ReadRequest(name, query_builder=asked) for name in frames])
            made = [item.data.reset_index().assign(symbol=item.symbol) for item in found]
            return pd.concat(made)[["symbol", "ts", *BARS]]

        month = f"ts >= '{MONTH:%Y-%m-%d}'"
        ways: dict[str, Callable[[], Any]] = {
            "drumlin": lambda: (
                store.scan("prices/*", path_columns=["symbol"])
                .where(month)
                .resample("1d", on="ts", by=["symbol"])
                .agg(**BARS)
                .to_pandas()
            ),
            "arcticdb": batch,
        }
        compare(f"the last month of {SYMBOLS} symbols in days", runs, ways)


PARTS = {"chain": over_the_chain, "cities": of_cities, "bars": of_bars, "symbols": of_symbols}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default=",".join(PARTS))
    options = parser.parse_args()
    print(
        f"{dt.date.today()}, {os.cpu_count()} cores, drumlin {drumlin.__version__}, duckdb {duckdb.__version__}, "
        f"polars {polars.__version__}, arcticdb {arcticdb.__version__}"
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.only.split(","):
            PARTS[name](folder, options.scale, options.runs)


if __name__ == "__main__":
    main()
