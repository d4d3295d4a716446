"""Random queries by DuckDB, Polars, pyarrow and DataFusion on data sets, and on the same rows in memory.

Both are run by the same engine, so that what an engine means by NaN, nulls and types is its own affair: what is pushed
down must give what it gives. What is pushed is counted: as much is read as by ``where=``.
"""

import os
import random
from collections.abc import Iterator
from typing import Any

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest
from engine_rows import Data, Predicate, answer, ordered, pattern, plain, predicate
from servers import places, s3

import drumlin

SEED = int(os.environ.get("DRUMLIN_SEED", "11"))
QUERIES = int(os.environ.get("DRUMLIN_QUERIES", "3000"))


@pytest.fixture(scope="module", params=places.KINDS)
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Data]]:
    """Half of the queries are made of a store in a folder, half of one in a bucket."""
    rng = random.Random(SEED)
    with (
        places.place(request.param, tmp_path_factory.mktemp("engines")) as (uri, options),
        drumlin.open(uri, storage_options=options) as store,
    ):
        made = [plain(store, rng), ordered(store, rng), pattern(store, rng)]
        for one in made:
            one.place = request.param
        yield made


def queries(engine: int, data: list[Data]) -> Iterator[tuple[int, random.Random, Data, Predicate, list[str]]]:
    only = os.environ.get("DRUMLIN_QUERY_SEED")
    both = s3.build("versitygw") is not None
    mine = range(data[0].place == "versitygw", QUERIES // 4, 2) if both else range(QUERIES // 4)
    for seed in mine if only is None else [int(only)]:
        rng = random.Random(f"{SEED} {engine} {seed}")
        of = rng.choice(data)
        names = of.memory.schema.names
        columns = sorted(rng.sample(names, rng.randrange(1, 5)), key=names.index)
        yield seed, rng, of, predicate(rng, 3, of.name == "p"), columns


def check(seed: int, what: str, got: Any, wanted: Any) -> None:
    assert got == wanted, f"{what}\nrun it again: DRUMLIN_SEED={SEED} DRUMLIN_QUERY_SEED={seed} pytest test_engines.py"


def test_duckdb(data: list[Data]) -> None:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        # Of several threads none knows which rows come first, so a limit without an order takes any.
        connection.execute("set threads = 1")
        for of in data:
            connection.register(of.name, of.dataset)
            connection.register(f"{of.name}_memory", of.memory)
        refused = 0
        for seed, rng, of, where, columns in queries(0, data):
            end = f" limit {rng.randrange(20)}" if rng.random() < 0.2 else ""
            listed = ", ".join(columns)
            if rng.random() < 0.15:
                other, end = rng.choice(data).name, ""
                text = (
                    f"select x.id, y.id as other from {{0}} x join {other}{{1}} y on x.id = y.id + 1 "
                    f"where x.id in (select id from {{0}} where {where.sql})"
                )
            elif rng.random() < 0.1:
                text, end = f"select count(*) as n, min(id) as low from {{0}} where {where.sql}", ""
            else:
                text = f"select {listed} from {{0}} where {where.sql}{end}"
            got = answer(lambda: connection.sql(text.format(of.name, "")).to_arrow_table(), in_order=bool(end))
            memory = text.format(f"{of.name}_memory", "_memory")
            wanted = answer(lambda: connection.sql(memory).to_arrow_table(), in_order=bool(end))
            refused += isinstance(wanted, str)
            check(seed, text, got, wanted)
        assert refused < QUERIES / 40


def test_polars(data: list[Data]) -> None:
    memory = {of.name: pl.from_arrow(of.memory) for of in data}
    refused = 0
    for seed, rng, of, where, columns in queries(1, data):
        limit = rng.randrange(20) if rng.random() < 0.3 else None

        def run(frame: pl.LazyFrame) -> pa.Table:
            query = frame.filter(where.polars())
            query = query.select(columns) if limit is None else query.select(columns).head(limit)
            return query.collect().to_arrow()

        wanted = answer(lambda: run(memory[of.name].lazy()), in_order=True)
        refused += isinstance(wanted, str)
        check(seed, str(where.polars()), answer(lambda: run(of.dataset.to_lazy()), in_order=True), wanted)
    assert refused < QUERIES / 40


def test_pyarrow(data: list[Data]) -> None:
    refused = 0
    for seed, rng, of, where, columns in queries(2, data):
        memory = pads.dataset(of.memory)
        how = rng.randrange(5)
        limit = rng.randrange(20)

        def run(dataset: Any) -> pa.Table:
            match how:
                case 0:
                    return dataset.scanner(columns=columns, filter=where.arrow(), batch_size=100).to_table()
                case 1:
                    return dataset.head(limit, columns=columns, filter=where.arrow())
                case 2:
                    return pa.table({"n": [dataset.count_rows(filter=where.arrow())]})
                case 3:
                    made = {"twice": pc.field("id") + pc.field("id"), "b": pc.field("b")}
                    return dataset.to_table(columns=made, filter=where.arrow())
                case _:
                    return dataset.filter(where.arrow()).to_table(columns=columns)

        wanted = answer(lambda: run(memory), in_order=how != 2)
        refused += isinstance(wanted, str)
        check(seed, str(where.arrow()), answer(lambda: run(of.dataset), in_order=how != 2), wanted)
    assert refused < QUERIES / 40


def test_datafusion(data: list[Data]) -> None:
    context = datafusion.SessionContext()
    for of in data:
        context.register_dataset(of.name, of.dataset)
        context.register_record_batches(f"{of.name}_memory", [of.memory.to_batches()])
    refused = 0
    for seed, rng, of, where, columns in queries(3, data):
        if rng.random() < 0.1:
            text = f"select count(*) as n from {{}} where {where.sql}"
        else:
            text = f"select {', '.join(columns)} from {{}} where {where.sql}"
        text = text.replace("as blob", "as bytea").replace("timestamptz '", "timestamp '")

        def run(name: str) -> pa.Table:
            return pa.table(context.sql(text.format(name)))

        wanted = answer(lambda: run(f"{of.name}_memory"), in_order=False)
        refused += isinstance(wanted, str)
        check(seed, text, answer(lambda: run(of.name), in_order=False), wanted)
    assert refused < QUERIES / 16
