"""Rows of all types, and predicates on them, said to each engine in its own way: a data set, and the same in memory."""

import datetime as dt
import decimal
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import drumlin

EPOCH = dt.datetime(1970, 1, 1)
SYMBOLS = ["A", "B", "CC", "D'x"]

#: What values a column is filled with, and compared to.
FLOATS = [0.0, -0.0, 1.5, -2.25, 3.0, float("nan"), -float("nan"), float("inf"), -float("inf"), 1e300]
TEXTS = ["", "a", "ab", "b%c", "b_c", "Zz", "é", "a'b", "a\\b"]
DAYS = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(2100, 1, 1)]
TIMES = [EPOCH + dt.timedelta(microseconds=n) for n in (-1, 0, 1, 10**15)]
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, -1, 0, 1, 5, 127]),
    "i64": (pa.int64(), [-(2**63), -1, 0, 1, 5, 2**53, 2**53 + 1, 2**63 - 1]),
    "u64": (pa.uint64(), [0, 1, 5, 2**63, 2**64 - 1]),
    "f32": (pa.float32(), [x for x in FLOATS if x != 1e300]),
    "f64": (pa.float64(), FLOATS),
    "dec": (pa.decimal128(12, 2), [decimal.Decimal(x) for x in ("-3.25", "0.00", "1.50", "99.99")]),
    "s": (pa.string(), TEXTS),
    "dict": (pa.dictionary(pa.int32(), pa.string()), TEXTS),
    "day": (pa.date32(), DAYS),
    "us": (pa.timestamp("us"), TIMES),
    "ns": (pa.timestamp("ns"), TIMES),
    "tz": (pa.timestamp("us", "UTC"), [time.replace(tzinfo=dt.UTC) for time in TIMES]),
    "b": (pa.bool_(), [True, False]),
    "bin": (pa.binary(), [b"", b"a", b"\x00\xff"]),
}
FLOAT_KINDS = ("f32", "f64")
SCHEMA = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in KINDS.items())])


def rows(rng: random.Random, first: int, n: int) -> pa.Table:
    def column(kind: pa.DataType, values: list[Any]) -> pa.Array:
        drawn = [None if rng.random() < 0.15 else rng.choice(values) for _ in range(n)]
        if pa.types.is_dictionary(kind):
            return pa.array(drawn, kind.value_type).dictionary_encode()
        return pa.array(drawn, kind)

    return pa.table([pa.array(range(first, first + n)), *(column(*kind) for kind in KINDS.values())], SCHEMA)


# --- predicates, said to each engine in its own way ---


@dataclass
class Predicate:
    sql: str
    polars: Callable[[], pl.Expr]
    arrow: Callable[[], pc.Expression]

    def also(self, other: "Predicate") -> "Predicate":
        return Predicate(
            f"({self.sql} and {other.sql})",
            lambda: self.polars() & other.polars(),
            lambda: self.arrow() & other.arrow(),
        )

    def either(self, other: "Predicate") -> "Predicate":
        return Predicate(
            f"({self.sql} or {other.sql})",
            lambda: self.polars() | other.polars(),
            lambda: self.arrow() | other.arrow(),
        )

    def negated(self) -> "Predicate":
        return Predicate(f"(not {self.sql})", lambda: ~self.polars(), lambda: ~self.arrow())


def sql_literal(value: Any, kind: str, *, datafusion: bool = False) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"cast('{value}' as {'real' if kind == 'f32' else 'double'})"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return "cast('" + "".join(f"\\x{byte:02x}" for byte in value) + "' as blob)"
        case dt.datetime() if kind == "tz":
            return f"timestamptz '{value.replace(tzinfo=None)}+00'"
        case dt.datetime():
            return f"cast('{value}' as timestamp)"
        case dt.date():
            return f"date '{value}'"
    return str(value)


OPS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def polars_literal(value: Any, kind: str) -> pl.Expr:
    types = {"f32": pl.Float32, "f64": pl.Float64, "i8": pl.Int8, "i64": pl.Int64, "u64": pl.UInt64}
    if kind in types:
        return pl.lit(value, types[kind])
    return pl.lit(value, pl.Datetime("ns")) if kind == "ns" else pl.lit(value)


def arrow_type(kind: str) -> pa.DataType:
    data_type = {"id": pa.int64(), "sym": pa.string()}.get(kind) or KINDS[kind][0]
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def compared(kind: str, op: str, value: Any) -> Predicate:
    return Predicate(
        f"{kind} {op} {sql_literal(value, kind)}",
        lambda: OPS[op](pl.col(kind), polars_literal(value, kind)),
        lambda: OPS[op](pc.field(kind), pa.scalar(value, arrow_type(kind))),
    )


def predicate(rng: random.Random, depth: int, paths: bool) -> Predicate:
    if depth > 0 and rng.random() < 0.55:
        left, right = predicate(rng, depth - 1, paths), predicate(rng, depth - 1, paths)
        match rng.choice(["and", "and", "or", "not"]):
            case "and":
                return left.also(right)
            case "or":
                return left.either(right)
        return left.negated()
    if paths and rng.random() < 0.25:
        return symbol(rng)
    kind = rng.choice(list(KINDS) + ["id"] * 3)
    values = list(range(-3, 1500, 37)) if kind == "id" else KINDS[kind][1]
    match rng.randrange(12):
        case 0:
            # As a method and as a function, which has no options.
            is_null = rng.choice([lambda: pc.field(kind).is_null(), lambda: pc.is_null(pc.field(kind))])
            return Predicate(f"{kind} is null", lambda: pl.col(kind).is_null(), is_null)
        case 1:
            return Predicate(
                f"{kind} is not null", lambda: pl.col(kind).is_not_null(), lambda: pc.field(kind).is_valid()
            )
        case 2 | 3:
            # DataFusion says of four and more that they are a list.
            return among(kind, rng.sample(values, min(len(values), rng.randrange(1, 7))))
        case 4:
            # No engine pushes it as it is.
            return Predicate("id % 3 = 1", lambda: pl.col("id") % 3 == 1, lambda: pc.field("id") * 3 > pc.scalar(900))
        case 5:
            return Predicate(
                "s like 'a%'", lambda: pl.col("s").str.starts_with("a"), lambda: pc.starts_with(pc.field("s"), "a")
            )
        case 6:
            return Predicate("b", lambda: pl.col("b"), lambda: pc.field("b"))
        case 7:
            return Predicate("i64 < id", lambda: pl.col("i64") < pl.col("id"), lambda: pc.field("i64") < pc.field("id"))
        case 8:
            low, high = sorted(rng.sample(range(1500), 2))
            return Predicate(
                f"id between {low} and {high}",
                lambda: pl.col("id").is_between(low, high),
                lambda: (pc.field("id") >= low) & (pc.field("id") <= high),
            )
        case _:
            return compared(kind, rng.choice(list(OPS)), rng.choice(values))


def symbol(rng: random.Random) -> Predicate:
    return among("sym", rng.sample([*SYMBOLS, "none"], rng.randrange(1, 3)))


def among(kind: str, values: list[Any]) -> Predicate:
    """That a column has one of some values."""
    told = ", ".join(sql_literal(value, kind) for value in values)
    return Predicate(
        f"{kind} in ({told})",
        lambda: pl.col(kind).is_in(pl.Series(values, dtype=DTYPES[kind]).implode()),
        lambda: pc.field(kind).isin(pa.array(values, arrow_type(kind))),
    )


DTYPES = dict(pl.from_arrow(SCHEMA.empty_table()).schema)
DTYPES["dict"] = DTYPES["sym"] = pl.String()


# --- the data: a data set, and the same rows in memory ---


@dataclass
class Data:
    name: str
    dataset: Any
    memory: pa.Table
    place: str = ""


def plain(store: drumlin.Store, rng: random.Random) -> Data:
    """A table of many row groups, some rows of which are deleted."""
    parts = [rows(rng, first, 250) for first in range(0, 1500, 250)]
    store.write("t", parts[0])
    for part in parts[1:]:
        store.append("t", part)
    store.table("t").delete("id % 11 = 0 or i8 = 127")
    whole = pa.concat_tables(parts)
    gone = pc.or_kleene(pc.is_in(whole["id"], pa.array(range(0, 1500, 11))), pc.equal(whole["i8"], 127))
    return Data("t", store.scan("t"), whole.filter(pc.invert(pc.fill_null(gone, False))))


def ordered(store: drumlin.Store, rng: random.Random) -> Data:
    """A table with a key, some rows of which are in memory only."""
    first, second = rows(rng, 0, 900), rows(rng, 600, 300)
    store.table("k").create(SCHEMA, key=["id"])
    store.table("k").upsert(first)
    store.checkpoint()
    store.table("k").upsert(second)
    both = pa.concat_tables([first.filter(pc.field("id") < 600), second])
    return Data("k", store.scan("k"), both)


def pattern(store: drumlin.Store, rng: random.Random) -> Data:
    """Tables of several types, one of which lacks columns."""
    parts = []
    for at, name in enumerate(SYMBOLS):
        part = rows(rng, at * 300, 300)
        whole = part
        if at == 1:
            narrow = part["id"].cast(pa.int16())
            part = part.set_column(0, "id", narrow).drop_columns(["f64", "s"])
            for missing in ("f64", "s"):
                place = SCHEMA.get_field_index(missing)
                whole = whole.set_column(place, missing, pa.nulls(300, SCHEMA.field(missing).type))
        store.write(f"p/{name}", part)
        parts.append(whole.append_column("sym", pa.array([name] * 300)))
    return Data("p", store.scan("p/*", path_columns=["sym"]), pa.concat_tables(parts))


def views(store: drumlin.Store, rng: random.Random) -> Data:
    """A table that Polars wrote, whose texts and bytes are views."""
    whole = rows(rng, 0, 700)
    kept = whole.drop_columns(["dict"])
    for at in range(0, 700, 350):
        frame = pl.from_arrow(kept.slice(at, 350))
        store.write("v", frame) if at == 0 else store.append("v", frame)
    return Data("v", store.scan("v"), kept)


def shown(table: pa.Table, *, in_order: bool) -> Any:
    def plain(value: Any) -> Any:
        # Microseconds and nanoseconds are the same where these are whole.
        return value.isoformat() if isinstance(value, dt.datetime) else value

    listed = [repr(sorted((name, plain(value)) for name, value in row.items())) for row in table.to_pylist()]
    return listed if in_order else sorted(listed)


def answer(run: Callable[[], pa.Table], *, in_order: bool) -> Any:
    try:
        return shown(run(), in_order=in_order)
    except Exception as error:
        if os.environ.get("DRUMLIN_QUERY_SEED"):
            import traceback

            traceback.print_exc()
        return f"refused: {type(error).__name__}"
