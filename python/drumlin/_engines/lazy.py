"""Data sets as Polars LazyFrames."""

import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from drumlin._arguments.expr import Expr, col
from drumlin._engines import filters
from drumlin._engines.filters import NAN, NOT_MINE, NotMine, value
from drumlin._errors import InvalidArgument
from drumlin._optional import need
from drumlin._results.scanned import Scanned
from drumlin._values.polars import has_polars_type, polars_frame

if TYPE_CHECKING:
    import polars as pl

__all__ = ["lazy_frame"]

_OPS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_UNITS = {"Milliseconds": "ms", "Microseconds": "us", "Nanoseconds": "ns"}
_INTEGERS = {
    **{f"Int{bits}": (bits, True) for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": (bits, False) for bits in (8, 16, 32, 64)},
}


def lazy_frame(dataset: Scanned) -> "pl.LazyFrame":
    """A LazyFrame that reads a data set, with columns, predicate and number of rows pushed down."""
    need("polars", "to_lazy()", "polars")
    plugins = need("polars.io.plugins", "to_lazy()", "polars")
    schema = polars_schema(dataset)

    def read(
        with_columns: list[str] | None, predicate: "pl.Expr | None", n_rows: int | None, batch_size: int | None
    ) -> "Iterator[pl.DataFrame]":
        columns = dataset._columns if with_columns is None else with_columns
        # With both, the predicate applies to the first rows, so it must not select them.
        limited = n_rows is not None or dataset._limit is not None
        mine, rest = ([], None) if predicate is None else split(predicate, schema, push=not limited)
        asked = columns
        if rest is not None and columns is not None:
            # If Polars does not ask for the columns of the predicate, they are read and then dropped.
            asked = list(dict.fromkeys([*columns, *rest.meta.root_names()]))
        limit = min((rows for rows in (n_rows, dataset._limit) if rows is not None), default=None)
        for batch in dataset._exact.stream(asked, [*dataset._filters, *mine], limit):
            frame = polars_frame(batch)
            if rest is not None:
                frame = frame.filter(rest)
                if asked != columns:
                    frame = frame.select(columns)
            yield frame

    return plugins.register_io_source(read, schema=schema, validate_schema=False, is_pure=True)


def polars_schema(dataset: Scanned) -> dict[str, Any]:
    """The columns in Polars types. A column whose type Polars lacks is null, and an error if it is read."""
    polars = need("polars", "to_lazy()", "polars")
    types = dict(zip(dataset._exact.schema.names, dataset._exact.schema.types, strict=True))
    names = list(types) if dataset._columns is None else dataset._columns
    known = [name for name in names if has_polars_type(types[name])]
    found = polars_frame(dataset._exact.collect(known, dataset._filters, 0)).schema if known else {}
    return {name: found.get(name, polars.Null()) for name in names}


def resolved(predicate: "pl.Expr", schema: dict[str, Any]) -> "pl.Expr | None":
    """A predicate as Polars understands it for columns of these types, with its literals in types of their own; None if
    it is none that Polars would give to a source."""
    polars, plugins = need("polars", "", ""), need("polars.io.plugins", "", "")
    found: list[pl.Expr | None] = []

    def read(columns: Any, predicate: "pl.Expr | None", rows: Any, size: Any) -> "Iterator[pl.DataFrame]":
        found.append(predicate)
        yield polars.DataFrame(schema=schema if columns is None else {name: schema[name] for name in columns})

    source = plugins.register_io_source(read, schema=schema, validate_schema=False, is_pure=True)
    try:
        source.filter(predicate).collect()
    except polars.exceptions.PolarsError as error:
        raise InvalidArgument(f"the expression {predicate} of Polars: {error}") from error
    return found[0] if found else None


def split(predicate: "pl.Expr", schema: dict[str, Any], *, push: bool = True) -> tuple[list[str], "pl.Expr | None"]:
    """Filters that are true where parts of ``predicate`` are (all parts must be true), and what is left of it; without
    ``push``, all of it is left."""
    mine: list[str] = []
    rest: pl.Expr | None = None
    for term, tree in _terms(predicate):
        # For a top-k query, Polars gives a hint about which rows may be among them; it then takes the top of what it
        # gets.
        if isinstance(tree, dict) and str(tree.get("Display", {}).get("fmt_str", "")).startswith("dynamic_pred"):
            continue
        try:
            if not push:
                raise NOT_MINE
            filters.add(mine, _truth(tree, schema))
        except (NotMine, KeyError, TypeError, ValueError, IndexError, RecursionError):
            rest = term if rest is None else rest & term
    return mine, rest


def _terms(predicate: "pl.Expr") -> "Iterator[tuple[pl.Expr, Any]]":
    """The terms of a conjunction, each as an expression and as a tree; None instead of the tree if there is none."""
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:
        # For example, a Python function.
        tree = None
    match tree:
        case {"BinaryExpr": {"left": _, "op": "And", "right": _}}:
            # The last term comes first.
            for term in reversed(predicate.meta.pop()):
                yield from _terms(term)
        case _:
            yield predicate, tree


def _truth(tree: Any, schema: dict[str, Any]) -> Expr:
    """A predicate of the filter language with the same three truth values."""
    match tree:
        case {"Column": str()} if str(_type(tree, schema)) == "Boolean":
            return _column(tree)
        case {"Literal": {"Scalar": {"Boolean": bool() as flag}}}:
            return value(flag)
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return _truth(left, schema) & _truth(right, schema)
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            return _truth(left, schema) | _truth(right, schema)
        case {"BinaryExpr": {"left": left, "op": str() as op, "right": right}} if op in _OPS:
            return _comparison(_OPS[op], left, right, schema)
        case {"Function": {"input": [of], "function": {"Boolean": "Not"}}}:
            return ~_truth(of, schema)
        case {"Function": {"input": [of], "function": {"Boolean": "IsNull"}}}:
            return _column(of).is_null()
        case {"Function": {"input": [of], "function": {"Boolean": "IsNotNull"}}}:
            return _column(of).is_not_null()
        case {"Function": {"input": [of], "function": {"Boolean": "IsNan"}}} if _is_float(of, schema):
            return _column(of) == NAN
        case {"Function": {"input": [of], "function": {"Boolean": "IsNotNan"}}} if _is_float(of, schema):
            return _column(of) != NAN
        case {"Function": {"input": [of, low, high], "function": {"Boolean": {"IsBetween": {"closed": closed}}}}}:
            lower, upper = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}[closed]
            return _comparison(lower, of, low, schema) & _comparison(upper, of, high, schema)
        case {
            "Function": {
                "input": [of, {"Literal": {"Series": list() as listed} | {"Scalar": {"List": list() as listed}}}],
                "function": {"Boolean": {"IsIn": {"nulls_equal": False}}},
            }
        }:
            return _among(of, bytes(listed), schema)
        case {
            "Function": {
                "input": [of, {"Literal": {"Scalar": {"String": str() as text}}}],
                "function": {"StringExpr": "StartsWith"},
            }
        } if str(_type(of, schema)) == "String":
            return filters.starts_with(_column(of), text)
    raise NOT_MINE


def _among(tree: Any, listed: bytes, schema: dict[str, Any]) -> Expr:
    """The predicate that a value is one of those in a list, which comes as an Arrow stream."""
    polars = need("polars", "to_lazy()", "polars")
    values = polars.read_ipc_stream(io.BytesIO(listed)).to_series()
    if str(values.dtype).startswith("List"):
        values = values.explode()
    kind = _type(tree, schema)
    # With other types, or a null in the list, it has another meaning.
    if values.dtype != kind or values.null_count() or not values.len():
        raise NOT_MINE
    base = str(kind).partition("(")[0]
    if base in ("Datetime", "Duration", "Time"):
        zone = getattr(kind, "time_zone", None) is not None
        ticks = values.to_physical().to_list()
        told = [_moment(base, tick, getattr(kind, "time_unit", "ns"), zone=zone) for tick in ticks]
    elif (
        base in (*_INTEGERS, "String", "Date", "Binary", "Decimal", "Boolean")
        # NaN is equal to itself in both languages, but has no literal.
        or (base in ("Float32", "Float64") and values.is_finite().all())
    ):
        told = values.to_list()
    else:
        raise NOT_MINE
    return _column(tree).isin(told)


def _moment(base: str, ticks: int, unit: str, *, zone: bool) -> Expr:
    """A Polars time."""
    if base == "Datetime":
        return filters.instant(ticks, unit, zone=zone)
    return filters.span(ticks, unit) if base == "Duration" else filters.time_of_day(ticks, "ns")


def _comparison(op: str, left: Any, right: Any, schema: dict[str, Any]) -> Expr:
    if "Literal" in left:
        left, right, op = right, left, filters.FLIPPED[op]
    kind = _type(left, schema)
    column = _column(left)
    if "Literal" in right:
        return filters.compare(op, column, _literal(right["Literal"], kind, op))
    if _type(right, schema) != kind or str(kind) not in (*_INTEGERS, "Float32", "Float64", "String", "Date"):
        raise NOT_MINE
    return filters.compare(op, column, _column(right))


def _literal(tree: Any, kind: Any, op: str) -> Expr:
    """A literal that compares with a column of a type as in Polars: one of the same type."""
    [(name, plain)] = tree["Scalar"].items()
    base = str(kind).partition("(")[0]
    match name:
        case "Boolean" if base == "Boolean":
            return value(plain)
        case "String" if base == "String" or (base in ("Categorical", "Enum") and op in ("==", "!=")):
            return value(plain)
        case "Binary" if base == "Binary":
            return value(bytes(plain))
        case "Date" if base == "Date":
            return filters.day(plain)
        case "Time" if base == "Time":
            return filters.time_of_day(plain, "ns")
        case "Duration" if base == "Duration":
            return filters.span(plain[0], _UNITS[plain[1]])
        case "Datetime" if base == "Datetime" and (kind.time_zone is None) == (plain[2] is None):
            return filters.instant(plain[0], _UNITS[plain[1]], zone=plain[2] is not None)
        case "Decimal" if base == "Decimal":
            return value(filters.decimal_of(plain[0], plain[2]))
        case "Float64" | "Float32" if base == name and isinstance(plain, (int, float)):
            number = float(plain)
            bits = int(name[5:])
            if bits == 32:
                # Polars shows as few digits as distinguish a float from its neighbours.
                number = filters.nearest(number, bits)
            if not filters.float_fits(number, bits):
                raise NOT_MINE
            return value(number)
        case _ if name in _INTEGERS and base in _INTEGERS:
            bits, signed = _INTEGERS[base]
            if filters.in_range(plain, bits, signed=signed):
                return value(plain)
    raise NOT_MINE


def _column(tree: Any) -> Expr:
    match tree:
        case {"Column": str() as name}:
            return col(name)
        case {"Function": {"input": [of], "function": {"StructExpr": {"FieldByName": str() as name}}}}:
            return _column(of).field(name)
    raise NOT_MINE


def _type(tree: Any, schema: dict[str, Any]) -> Any:
    match tree:
        case {"Column": str() as name}:
            return schema[name]
        case {"Function": {"input": [of], "function": {"StructExpr": {"FieldByName": str() as name}}}}:
            [kind] = [field.dtype for field in _type(of, schema).fields if field.name == name]
            return kind
    raise NOT_MINE


def _is_float(tree: Any, schema: dict[str, Any]) -> bool:
    return str(_type(tree, schema)) in ("Float32", "Float64")
