"""What each engine pushes down, counted: look-ups of directories and columns are the same as by ``where=``."""

import datetime as dt
import re
from collections.abc import Callable, Iterator
from typing import Any

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from questions import COLUMNS, GROUPS, QUESTIONS, ROWS, TIME, asked, check_page, fill, in_arrow, name_of, wheres

import drumlin

ENGINES = ("DuckDB", "Polars", "pyarrow", "DataFusion")


@pytest.fixture(scope="module")
def dataset() -> Iterator[Any]:
    with drumlin.open("memory://") as store:
        fill(store, "t")
        of = store.scan("t")
        # DuckDB's types are found out once in a process, by reading: before anything is counted.
        ask("DuckDB", of, "integer", "=")
        yield of, store


def sql(column: str, question: str) -> str:
    name, value, other = name_of(column), sql_value(column, 3), sql_value(column, 6)
    match question:
        case "in":
            return f"{name} in ({value}, {other})"
        case "is null":
            return f"{name} is null"
        case "or":
            return f"({name} = {value} or {name} = {other})"
    return f"{name} {question} {value}"


def sql_value(column: str, at: int) -> str:
    value = COLUMNS[column](at)
    moment = TIME + dt.timedelta(seconds=at)
    match column:
        case "string" | "dictionary":
            return f"'{value}'"
        case "binary":
            return f"cast('{value.as_py().decode()}' as bytea)"
        case "date":
            return f"date '{value}'"
        case "time":
            return f"time '{value}'"
        case "timestamp, µs, zone":
            return f"cast('{moment}+00:00' as timestamptz)"
        case "timestamp, µs":
            return f"cast('{moment}' as timestamp)"
        case "timestamp, ns, whole µs":
            return f"cast('{moment}' as timestamp)"
        case "timestamp, ns":
            return f"cast('{moment}.000000001' as timestamp_ns)"
    return str(value)


def in_polars(column: str, question: str) -> pl.Expr:
    name = pl.col(name_of(column))
    values = pl.concat([pl.from_arrow(pa.array([COLUMNS[column](at)])) for at in (3, 6)])
    if column == "timestamp, ns":
        # Python's own have no nanoseconds.
        value, other = (pl.lit(ticks).cast(values.dtype) for ticks in values.to_physical())
    else:
        value, other = (pl.lit(value, values.dtype) for value in values)
    return asked(question, name, value, other, name.is_in(values.implode()))


def lookups(store: drumlin.Store, work: Callable[[], int]) -> tuple[int, int]:
    """Look-ups of encoded data, and the number of rows that came."""
    before = store.stat()
    rows = work()
    after = store.stat()
    return after.cache_hits + after.cache_misses - before.cache_hits - before.cache_misses, rows


def ask(engine: str, dataset: Any, column: str, question: str) -> int:
    match engine:
        case "DuckDB":
            with duckdb.connect() as connection:
                connection.execute("set timezone = 'UTC'")
                connection.register("t", dataset)
                text = sql(column, question).replace("as bytea", "as blob")
                return len(connection.sql(f"select id from t where {text}").fetchall())
        case "Polars":
            return dataset.to_lazy().filter(in_polars(column, question)).select("id").collect().height
        case "pyarrow":
            return dataset.to_table(columns=["id"], filter=in_arrow(column, question)).num_rows
    context = datafusion.SessionContext()
    context.register_dataset("t", dataset)
    text = sql(column, question).replace("as timestamp_ns", "as timestamp").replace("as timestamptz", "as timestamp")
    text = re.sub(r"time ('[0-9:]+')", r"arrow_cast(\1, 'Time64(Microsecond)')", text)
    return pa.table(context.sql(f"select id from t where {text}")).num_rows


@pytest.fixture(scope="module")
def pushed(dataset: Any) -> dict[str, dict[str, list[str]]]:
    """By engine and column, the questions that are pushed down."""
    of, store = dataset
    found: dict[str, dict[str, list[str]]] = {engine: {} for engine in ENGINES}
    for column in COLUMNS:
        for question in QUESTIONS:
            where, rows = wheres(column, question)
            by_where = lookups(store, lambda: store.scan("t", columns=["id"], where=where).to_arrow().num_rows)
            assert by_where[1] == rows, where
            for engine in ENGINES:
                by_engine = lookups(store, lambda: ask(engine, of, column, question))
                assert by_engine[1] == rows, (engine, column, question)
                # A directory may be looked at twice: before a task is started, and by it.
                if by_engine[0] <= by_where[0] + GROUPS:
                    found[engine].setdefault(column, []).append(question)
                else:
                    # Then all row groups are read.
                    assert by_engine[0] >= 3 * GROUPS, (engine, column, question, by_engine, by_where)
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_the_page_says_what_is_pushed_down(pushed: dict[str, dict[str, list[str]]], engine: str) -> None:
    check_page(engine, pushed[engine])


def test_columns_and_limits_are_pushed_down(dataset: Any) -> None:
    of, store = dataset
    one = lookups(store, lambda: store.scan("t", columns=["id"]).to_arrow().num_rows)
    all_columns = lookups(store, lambda: store.scan("t").to_arrow().num_rows)
    assert one[0] * 4 < all_columns[0]

    def duck(text: str) -> int:
        with duckdb.connect() as connection:
            connection.register("t", of)
            connection.register("u", of)
            return len(connection.sql(text).fetchall())

    def fusion(text: str) -> int:
        context = datafusion.SessionContext()
        context.register_dataset("t", of)
        return pa.table(context.sql(text)).num_rows

    whole: list[Callable[[], int]] = [
        lambda: duck("select id from t"),
        lambda: of.to_lazy().select("id").collect().height,
        lambda: of.to_table(columns=["id"]).num_rows,
        lambda: fusion("select id from t"),
    ]
    for ask_one in whole:
        assert lookups(store, ask_one) == (one[0], GROUPS * ROWS)
    # The first rows: not all row groups are read.
    few = [
        lambda: duck("select id from t limit 5"),
        lambda: of.to_lazy().select("id").head(5).collect().height,
        lambda: of.head(5, columns=["id"]).num_rows,
    ]
    for ask_few in few:
        found = lookups(store, ask_few)
        assert found[1] == 5
        assert found[0] < one[0], found
    # Both sides of a join are scans of their own.
    joined = "select t.id from t join u using (id) where t.c_integer = 3 and u.c_string = 's3'"
    where = lookups(store, lambda: store.scan("t", columns=["id"], where="c_integer = 3").to_arrow().num_rows)
    found = lookups(store, lambda: duck(joined))
    assert found[1] == ROWS
    assert found[0] <= 2 * (where[0] + GROUPS)
