"""Building blocks of filters for engines: exact translations, or the error that there is none."""

import datetime as dt
import decimal
import math
import operator
import struct
from typing import Any

from drumlin._arguments.expr import Expr, _Binding, col, literal

#: Comparisons, by their names here.
_COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: The comparison with its sides swapped.
FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

#: Units of time in a second.
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

_EPOCH = dt.datetime(1970, 1, 1)


class NotMine(Exception):
    """The filter language cannot express exactly what an engine asks for, so the engine filters by itself."""


NOT_MINE = NotMine()


#: The maximum length of a filter made for an engine, in characters. The filter language has a limit too.
_TEXT_MAX = 200_000


def add(filters: list[str], more: Expr) -> None:
    """Adds a filter, unless the filters would become too long."""
    text = str(more)
    if sum(map(len, filters)) + len(text) > _TEXT_MAX:
        raise NOT_MINE
    filters.append(text)


def column(names: list[str]) -> Expr:
    """A column, or a field within struct columns."""
    found = col(names[0])
    for name in names[1:]:
        found = found.field(name)
    return found


def value(plain: Any) -> Expr:
    """A plain value: a bool, number, str, bytes or date."""
    return literal(plain, "a value")


#: Floats that are not numbers; in the filter language, they are equal and the greatest.
NAN = value(math.nan)


def instant(ticks: int, unit: str, *, zone: bool) -> Expr:
    """A time since 1970, in UTC if it has a zone."""
    seconds, rest = divmod(ticks, UNITS[unit])
    try:
        day = _EPOCH + dt.timedelta(seconds=seconds)
    except OverflowError:
        raise NOT_MINE from None
    nanos = rest * (10**9 // UNITS[unit])
    return _moment(f"timestamp '{day.isoformat(sep=' ')}.{nanos:09d}{'+00:00' if zone else ''}'")


def time_of_day(ticks: int, unit: str) -> Expr:
    """A time of day."""
    seconds, rest = divmod(ticks, UNITS[unit])
    if not 0 <= seconds < 86400:
        raise NOT_MINE
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return _moment(f"time '{text}.{rest * (10**9 // UNITS[unit]):09d}'")


def day(days: int) -> Expr:
    """A date, given by days since 1970."""
    try:
        return value((_EPOCH + dt.timedelta(days=days)).date())
    except OverflowError:
        raise NOT_MINE from None


def span(ticks: int, unit: str) -> Expr:
    """A span of time."""
    nanos = ticks * (10**9 // UNITS[unit])
    if not in_range(nanos, 64, signed=True):
        raise NOT_MINE
    return _moment(f"'{nanos} ns'")


def _moment(text: str) -> Expr:
    return Expr(text, _Binding.ATOM)


def float_fits(number: float, bits: int) -> bool:
    """Whether a float of ``bits`` bits represents a number exactly."""
    if not math.isfinite(number):
        return not math.isnan(number)
    try:
        return nearest(number, bits) == number
    except NotMine:
        return False


def compare(op: str, left: Expr, right: Expr) -> Expr:
    """A comparison by ``==``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``."""
    found: Expr = _COMPARISONS[op](left, right)
    return found


def starts_with(column: Expr, text: str) -> Expr:
    """The predicate that a column begins with a text."""
    escaped = "".join(f"!{c}" if c in "!%_" else c for c in text)
    return column.like(f"{escaped}%", escape="!")


def in_range(number: Any, bits: int, *, signed: bool) -> bool:
    """Whether a number is in the range of an integer of ``bits`` bits."""
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    return isinstance(number, int) and low <= number < high


def decimal_of(unscaled: int, scale: int) -> decimal.Decimal:
    """A decimal from its unscaled value and its scale."""
    return decimal.Decimal(unscaled).scaleb(-scale, decimal.Context(prec=100))


def nearest(number: float, bits: int) -> float:
    """The float of ``bits`` bits that is nearest to a number."""
    form = {16: "e", 32: "f", 64: "d"}[bits]
    try:
        return float(struct.unpack(form, struct.pack(form, number))[0])
    except OverflowError:
        raise NOT_MINE from None
