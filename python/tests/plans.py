"""Random plans of queries: scans, filters, limits, heads, tails, slices, sorts, unions, joins and distinct rows, nested
in any order, each said to SQL, to Polars and to pyarrow.

A plan gives the same rows whenever it is run: rows are counted off where their order is known, or sorted by all columns
first. Of two zeros either may be the distinct one, so floats are left out before that.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from engine_rows import FLOAT_KINDS, KINDS, SYMBOLS, Predicate, among, compared


@dataclass
class Plan:
    """A query, and its columns."""

    columns: list[str]
    #: Given whether rows that are not sorted come in the order of their tables.
    sql: Callable[[bool], str]
    #: With a frame for each table.
    polars: Callable[[Mapping[str, pl.LazyFrame]], pl.LazyFrame]
    #: With a data set for each table; None if pyarrow has no such thing.
    arrow: Callable[[Mapping[str, Any]], Any] | None
    #: How it was made, which a failure tells.
    told: str
    #: Whether rows come in an order that is known.
    ordered: bool
    #: Whether that is the order of a table.
    natural: bool = False
    #: What it does, to what.
    kind: str = ""
    of: "tuple[Plan, ...]" = ()

    def tells_rows_apart(self) -> bool:
        """Whether no two rows have one id."""
        if "id" not in self.columns or self.kind in ("union", "join", "group", "distinct"):
            return False
        return self.kind == "scan" or self.of[0].tells_rows_apart()

    def pairs(self) -> set[tuple[str, str]]:
        """What is done to the outcome of what, at once and when some columns have been left out."""
        found: set[tuple[str, str]] = set()
        for below in self.of:
            found |= below.pairs()
            found.add((self.kind, below.kind))
            while below.kind == "select":
                [below] = below.of
                found.add((self.kind, below.kind))
        return found


def scan(name: str, columns: list[str]) -> Plan:
    """All rows of a table."""
    return Plan(
        columns,
        lambda natural: f"(select {', '.join(columns)} from {name})",
        lambda tables: tables[name].select(columns),
        lambda tables: tables[name],
        name,
        ordered=True,
        natural=True,
        kind="scan",
        of=(),
    )


def filtered(of: Plan, where: Predicate) -> Plan:
    return Plan(
        of.columns,
        lambda natural: f"(select * from {of.sql(natural)} where {where.sql})",
        lambda tables: of.polars(tables).filter(where.polars()),
        None if of.arrow is None else lambda tables: of.arrow(tables).filter(where.arrow()),
        f"{of.told}.filter({where.sql})",
        of.ordered,
        of.natural,
        kind="filter",
        of=(of,),
    )


def selected(of: Plan, columns: list[str]) -> Plan:
    return Plan(
        columns,
        lambda natural: f"(select {', '.join(columns)} from {of.sql(natural)})",
        lambda tables: of.polars(tables).select(columns),
        None if of.arrow is None else lambda tables: _in_memory(of.arrow(tables).to_table(columns=columns)),
        f"{of.told}.select({', '.join(columns)})",
        of.ordered,
        of.natural,
        kind="select",
        of=(of,),
    )


def in_order(of: Plan) -> Plan:
    """Sorted by all columns."""
    of = exact(of)
    # Pyarrow does not sort by dictionaries.
    keys = [name for name in of.columns if name != "dict"]
    return Plan(
        of.columns,
        lambda natural: f"(select * from {of.sql(natural)} order by {', '.join(of.columns)})",
        lambda tables: of.polars(tables).sort(of.columns, nulls_last=True),
        None if of.arrow is None else lambda tables: of.arrow(tables).sort_by([(name, "ascending") for name in keys]),
        f"{of.told}.sort()",
        ordered=True,
        kind="sort",
        of=(of,),
    )


def counted_off(of: Plan, skipped: int, rows: int) -> Plan:
    """Some rows, of which the first are skipped."""
    of = exact(of)
    order = f" order by {', '.join(of.columns)}"
    arrow = None
    if of.arrow is not None and of.ordered:
        made = of.arrow

        def arrow(tables: Mapping[str, Any]) -> Any:
            found = made(tables)
            if skipped == 0:
                return _in_memory(found.head(rows))
            there = found.count_rows()
            return _in_memory(found.take(list(range(min(skipped, there), min(skipped + rows, there)))))

    def polars(tables: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
        found = of.polars(tables)
        found = found if of.ordered else found.sort(of.columns, nulls_last=True)
        return found.head(rows) if skipped == 0 else found.slice(skipped, rows)

    return Plan(
        of.columns,
        lambda natural: (
            f"(select * from {of.sql(natural)}{'' if natural and of.natural else order} limit {rows} offset {skipped})"
        ),
        polars,
        arrow,
        f"{of.told}.slice({skipped}, {rows})",
        ordered=True,
        natural=of.natural,
        kind="slice",
        of=(of,),
    )


def tail(of: Plan, rows: int) -> Plan:
    """The last rows."""
    of = exact(of)
    order = ", ".join(f"{name} desc" for name in of.columns)

    def polars(tables: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
        found = of.polars(tables)
        return (found if of.ordered else found.sort(of.columns, nulls_last=True)).tail(rows)

    return Plan(
        of.columns,
        lambda natural: f"(select * from {of.sql(natural)} order by {order} limit {rows})",
        polars,
        None,
        f"{of.told}.tail({rows})",
        ordered=True,
        kind="tail",
        of=(of,),
    )


def distinct(of: Plan) -> Plan:
    of = without_floats(of)
    return Plan(
        of.columns,
        lambda natural: f"(select distinct * from {of.sql(natural)})",
        lambda tables: of.polars(tables).unique(),
        None,
        f"{of.told}.distinct()",
        ordered=False,
        kind="distinct",
        of=(of,),
    )


def union(one: Plan, other: Plan) -> Plan:
    """The rows of both."""
    other = selected(other, one.columns)
    return Plan(
        one.columns,
        lambda natural: f"(select * from {one.sql(natural)} union all select * from {other.sql(natural)})",
        lambda tables: pl.concat([one.polars(tables), other.polars(tables)]),
        None,
        f"union({one.told}, {other.told})",
        ordered=False,
        kind="union",
        of=(one, other),
    )


#: What pyarrow calls them.
_JOINS = {"inner": "inner", "left": "left outer", "semi": "left semi", "anti": "left anti"}


def joined(one: Plan, other: Plan, how: str) -> Plan:
    """Rows of one, by those that the other has: all (``inner``, ``left``), those that have one (``semi``) or none
    (``anti``)."""
    told = f"{how}({one.told}, {other.told})"

    def arrow(tables: Mapping[str, Any]) -> Any:
        assert one.arrow is not None
        assert other.arrow is not None
        named = {"id": pc.field("id")} | ({"other": pc.field("i8")} if how in ("inner", "left") else {})
        right = _in_memory(other.arrow(tables).to_table(columns=named))
        return one.arrow(tables).join(right, "id", join_type=_JOINS[how])

    if how in ("semi", "anti"):
        kept = "not " if how == "anti" else ""
        return Plan(
            one.columns,
            lambda natural: (
                f"(select * from {one.sql(natural)} where id {kept}in (select id from {other.sql(natural)}))"
            ),
            lambda tables: one.polars(tables).join(other.polars(tables), on="id", how=how),
            arrow,
            told,
            ordered=False,
            kind="in",
            of=(one, other),
        )
    word = "left join" if how == "left" else "join"
    listed = ", ".join(f"x.{name}" for name in one.columns)
    other = selected(other, ["id", "i8"])
    return Plan(
        [*one.columns, "other"],
        lambda natural: (
            f"(select {listed}, y.i8 as other from {one.sql(natural)} x {word} {other.sql(natural)} y on x.id = y.id)"
        ),
        lambda tables: one.polars(tables).join(
            other.polars(tables).select("id", pl.col("i8").alias("other")), on="id", how=how
        ),
        arrow,
        told,
        ordered=False,
        kind="join",
        of=(one, other),
    )


def grouped(of: Plan, column: str) -> Plan:
    """How many rows there are of each value."""
    return Plan(
        [column, "n"],
        lambda natural: f"(select {column}, count(*) as n from {of.sql(natural)} group by {column})",
        lambda tables: of.polars(tables).group_by(column).agg(pl.len().cast(pl.Int64).alias("n")),
        None,
        f"{of.told}.group_by({column})",
        ordered=False,
        kind="group",
        of=(of,),
    )


def exact(of: Plan) -> Plan:
    """With rows that have one order once they are sorted by all columns: zeros of either sign are equal there."""
    return of if of.tells_rows_apart() else without_floats(of)


def without_floats(of: Plan) -> Plan:
    columns = [name for name in of.columns if name not in FLOAT_KINDS]
    return of if columns == of.columns or not columns else selected(of, columns)


def _in_memory(table: pa.Table) -> Any:
    return pads.dataset(table)


# --- drawn at random ---


def asked(rng: random.Random, columns: list[str], depth: int) -> Predicate:
    """A predicate on some columns."""
    if depth > 0 and rng.random() < 0.5:
        left, right = asked(rng, columns, depth - 1), asked(rng, columns, depth - 1)
        match rng.choice(["and", "or", "not"]):
            case "and":
                return left.also(right)
            case "or":
                return left.either(right)
        return left.negated()
    known = [name for name in columns if name in KINDS or name in ("id", "sym")]
    kind = rng.choice(known)
    values = list(range(-3, 1500, 37)) if kind == "id" else [*SYMBOLS, "none"] if kind == "sym" else KINDS[kind][1]
    match rng.randrange(6):
        case 0:
            return Predicate(f"{kind} is null", lambda: pl.col(kind).is_null(), lambda: pc.field(kind).is_null())
        case 1 | 2:
            return among(kind, rng.sample(values, min(len(values), rng.randrange(1, 7))))
        case 3 if "id" in columns:
            return Predicate("id % 3 = 1", lambda: pl.col("id") % 3 == 1, lambda: pc.field("id") * 3 > pc.scalar(900))
    return compared(kind, rng.choice(["=", "<>", "<", "<=", ">", ">="]), rng.choice(values))


def draw(rng: random.Random, tables: Mapping[str, list[str]], depth: int) -> Plan:
    """A plan over some tables, whose columns are given."""
    if depth <= 0:
        name = rng.choice(list(tables))
        return scan(name, tables[name])
    of = draw(rng, tables, depth - 1)
    match rng.randrange(13):
        case 0 | 1 | 2 if any(name in KINDS for name in of.columns):
            return filtered(of, asked(rng, of.columns, 2))
        case 3:
            some = sorted(rng.sample(of.columns, rng.randrange(1, len(of.columns) + 1)), key=of.columns.index)
            return selected(of, list(dict.fromkeys(["id", *some])) if "id" in of.columns else some)
        case 4 | 5:
            return counted_off(of, 0, rng.choice([0, 1, 5, 40, 300, 2000]))
        case 6:
            return counted_off(of, rng.choice([0, 1, 7, 250]), rng.choice([1, 5, 40, 300]))
        case 7:
            return tail(of, rng.choice([1, 5, 40, 300]))
        case 8:
            return in_order(of)
        case 9:
            return distinct(of)
        case 10 if of.columns[-1] not in FLOAT_KINDS:
            return grouped(of, of.columns[-1])
        case 11:
            other = draw(rng, tables, depth - 1)
            common = [name for name in of.columns if name in other.columns]
            return union(selected(of, common), other) if common else of
        case _:
            other = draw(rng, tables, depth - 1)
            if "id" not in of.columns or not {"id", "i8"} <= set(other.columns):
                return of
            kinds = ["semi", "anti"] if "other" in of.columns else ["inner", "left", "semi", "anti"]
            return joined(of, other, rng.choice(kinds))


def draw_for_arrow(rng: random.Random, tables: Mapping[str, list[str]], depth: int) -> Plan:
    """A plan of what pyarrow does with data sets."""
    of = draw_for_arrow(rng, tables, depth - 1) if depth > 1 else None
    if of is None:
        name = rng.choice(list(tables))
        return scan(name, tables[name])
    match rng.randrange(7):
        case 6:
            other = draw_for_arrow(rng, tables, 2)
            kinds = ["inner", "left"] if "i8" in other.columns and "other" not in of.columns else []
            # The rows of a join come in any order.
            return in_order(joined(of, other, rng.choice(["semi", "anti", *kinds])))
        case 0 | 1:
            return filtered(of, asked(rng, of.columns, 2))
        case 2:
            return counted_off(of, 0, rng.choice([0, 1, 5, 40, 300, 2000]))
        case 3:
            return counted_off(of, rng.choice([1, 7, 250]), rng.choice([1, 5, 40, 300]))
        case 4:
            return in_order(of)
    some = sorted(rng.sample(of.columns, rng.randrange(1, len(of.columns) + 1)), key=of.columns.index)
    return selected(of, list(dict.fromkeys(["id", *some])))
