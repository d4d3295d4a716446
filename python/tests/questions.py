"""Questions of a column of each type, asked of an engine to see what it pushes down; and the page that says so.

``DRUMLIN_WRITE_DOCS=1`` rewrites the tables of ``docs/engines.md``.
"""

import datetime as dt
import decimal
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import drumlin

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
GROUPS = 8
ROWS = 100
DAY = dt.date(2024, 1, 1)
TIME = dt.datetime(2024, 1, 1)


def ticks(unit: str, at: int, zone: str | None = None) -> Any:
    return pa.scalar(TIME + dt.timedelta(seconds=at), pa.timestamp(unit, zone))


#: Columns, by what tells their type: the value of each row group, in ascending order.
COLUMNS: dict[str, Callable[[int], Any]] = {
    "integer": lambda at: pa.scalar(at, pa.int32()),
    "float": lambda at: pa.scalar(at + 0.5, pa.float64()),
    "decimal": lambda at: pa.scalar(decimal.Decimal(at) + decimal.Decimal("0.25"), pa.decimal128(12, 2)),
    "string": lambda at: pa.scalar(f"s{at}"),
    "dictionary": lambda at: pa.scalar(f"s{at}"),
    "binary": lambda at: pa.scalar(f"s{at}".encode()),
    "date": lambda at: pa.scalar(DAY + dt.timedelta(days=at), pa.date32()),
    "time": lambda at: pa.scalar(dt.time(at), pa.time64("us")),
    "timestamp, µs": lambda at: ticks("us", at),
    "timestamp, µs, zone": lambda at: ticks("us", at, "UTC"),
    "timestamp, ns, whole µs": lambda at: ticks("ns", at),
    "timestamp, ns": lambda at: pa.scalar(ticks("ns", at).value + 1, pa.int64()).cast(pa.timestamp("ns")),
}
#: What is asked of them; the fourth row group has the value.
QUESTIONS = ("=", "<", ">", "in", "is null", "or")


def name_of(column: str) -> str:
    return "c_" + re.sub("[^a-z]+", "_", column.replace("µ", "u"))


def fill(store: drumlin.Store, path: str) -> None:
    """Writes a table with all columns, whose row groups have one value each."""
    for at in range(GROUPS):
        columns = {name_of(column): pa.array([value(at)] * ROWS) for column, value in COLUMNS.items()}
        columns["c_dictionary"] = columns["c_dictionary"].dictionary_encode()
        rows = pa.table({"id": pa.array(range(at * ROWS, (at + 1) * ROWS)), **columns})
        store.write(path, rows) if at == 0 else store.append(path, rows)


def asked(question: str, name: Any, value: Any, other: Any, among: Any) -> Any:
    """The question as an expression of an engine, by Python's operators."""
    match question:
        case "=":
            return name == value
        case "<":
            return name < value
        case ">":
            return name > value
        case "in":
            return among
        case "is null":
            return name.is_null()
    return (name == value) | (name == other)


def in_arrow(column: str, question: str) -> pc.Expression:
    name, value, other = pc.field(name_of(column)), COLUMNS[column](3), COLUMNS[column](6)
    return asked(question, name, value, other, name.isin(pa.array([value, other])))


def wheres(column: str, question: str) -> tuple[str, int]:
    """The same in the filter language, and the number of rows for which it is true."""
    col, value, other = drumlin.col(name_of(column)), *(plain(column, at) for at in (3, 6))
    found = {
        "=": (col == value, 1),
        "<": (col < value, 3),
        ">": (col > value, GROUPS - 4),
        "in": (col.isin([value, other]), 2),
        "is null": (col.is_null(), 0),
        "or": ((col == value) | (col == other), 2),
    }
    expr, groups = found[question]
    return str(expr), groups * ROWS


def plain(column: str, at: int) -> Any:
    if column == "timestamp, ns":
        import numpy as np

        return np.datetime64(COLUMNS[column](at).value, "ns")
    value = COLUMNS[column](at).as_py()
    return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value


def pushed_into_splits(
    store: drumlin.Store, ask: Callable[[str, str], int | None], patch: pytest.MonkeyPatch
) -> dict[str, list[str]]:
    """By column, the questions of which an engine on many machines has only those row groups of the table ``t`` planned
    that may have rows for them. ``ask`` asks one, with splits of one row group, and returns the number of rows, or None
    if the engine has no such question."""
    plans: list[int] = []
    splits = drumlin.Dataset.splits

    def counting(self: drumlin.Dataset, **options: Any) -> drumlin.Splits:
        found = splits(self, **options)
        plans.append(len(found))
        return found

    pushed: dict[str, list[str]] = {}
    for column in COLUMNS:
        for question in QUESTIONS:
            where, rows = wheres(column, question)
            with store.scan("t", where=where).splits(split_bytes=1) as found:
                best = len(found)
            assert best < GROUPS
            plans.clear()
            with patch.context() as patched:
                patched.setattr(drumlin.Dataset, "splits", counting)
                answer = ask(column, question)
            if answer is None:
                continue
            assert answer == rows, (column, question)
            assert plans
            assert set(plans) <= {best, GROUPS}, (column, question, plans)
            # An engine may also plan without the filter, to learn a schema.
            if min(plans) == best:
                pushed.setdefault(column, []).append(question)
    return pushed


def table(pushed: dict[str, list[str]]) -> str:
    alike: dict[tuple[str, ...], list[str]] = {}
    for column in COLUMNS:
        alike.setdefault(tuple(pushed.get(column, [])), []).append(column)
    lines = ["| column | pushed down | left to the engine |", "|---|---|---|"]
    *few, most = sorted(alike.items(), key=lambda item: len(item[1]))
    for mine, columns in [*few, (most[0], ["all others" if few else "of any type"])]:
        rest = [question for question in QUESTIONS if question not in mine]
        told = [", ".join(f"`{question}`" for question in some) or "-" for some in (mine, rest)]
        lines.append(f"| {'; '.join(columns)} | {told[0]} | {told[1]} |")
    return "\n".join(lines)


def check_page(engine: str, pushed: dict[str, list[str]]) -> None:
    """The page's table of an engine is the one that was found."""
    text = PAGE.read_text()
    begin, end = f"<!-- pushed down: {engine} -->\n", f"\n<!-- end: {engine} -->"
    head, rest = text.split(begin)
    shown, tail = rest.split(end)
    made = table(pushed)
    if os.environ.get("DRUMLIN_WRITE_DOCS") == "1":
        PAGE.write_text(head + begin + made + end + tail)
    else:
        assert shown == made, "docs/engines.md is out of date: run this test with DRUMLIN_WRITE_DOCS=1"
