"""Row predicates as Python expressions. They are rendered in the filter language, which the core parses."""

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, NoReturn

from drumlin._arguments.frames import type_of
from drumlin._errors import InvalidArgument
from drumlin._habits import Habits, instead
from drumlin._values.evidence import a_type

__all__ = ["Expr", "col"]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED = frozenset(
    {"and", "between", "case", "cast", "escape", "exists", "false", "ilike", "in", "is", "like", "not", "null", "or"}
    | {"true", "all", "any", "some"}
)


class _Binding(IntEnum):
    """How tightly the text of an expression binds; an operand that binds less tightly gets parentheses."""

    OR = 0
    AND = 1
    NOT = 2
    PREDICATE = 3
    SUM = 4
    PRODUCT = 5
    UNARY = 6
    ATOM = 7


def _refused(written: str) -> Callable[..., NoReturn]:
    """An operator that is written in another way."""

    def operator(*_: Any) -> NoReturn:
        raise TypeError(f"an expression has no {written}{instead('Expr', written)}")

    return operator


class Expr(Habits):
    """A column, a calculation on columns, or a predicate on them.

    Made by :func:`col` and combined with operators: ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``; ``+``, ``-``, ``*``,
    ``/``, ``%``; ``&`` (and), ``|`` (or), ``~`` (not). Put comparisons in parentheses when you combine them with ``&``
    and ``|``.

    >>> from drumlin import col
    >>> (col("close") > 100) & col("sym").isin(["A", "B"])
    Expr(close > 100 and sym in ('A', 'B'))
    >>> str(~col("volume").is_null())
    'not volume is null'
    """

    __slots__ = ("_binding", "_text")

    def __init__(self, text: str, binding: _Binding) -> None:
        self._text = text
        self._binding = binding

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Expr({self._text})"

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression has no truth value: combine with &, | and ~ (not and, or, not), each comparison in "
            "parentheses; instead of a < x < b write x.between(a, b) or (a < x) & (x < b)"
        )

    def _at_least(self, binding: _Binding) -> str:
        return self._text if self._binding >= binding else f"({self._text})"

    def _compare(self, op: str, other: Any) -> "Expr":
        other = _operand(other, f"{self._text} {op}")
        return Expr(
            f"{self._at_least(_Binding.SUM)} {op} {other._at_least(_Binding.SUM)}",
            _Binding.PREDICATE,
        )

    def __eq__(self, other: object) -> "Expr":  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: object) -> "Expr":  # type: ignore[override]
        return self._compare("<>", other)

    def __lt__(self, other: Any) -> "Expr":
        return self._compare("<", other)

    def __le__(self, other: Any) -> "Expr":
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> "Expr":
        return self._compare(">", other)

    def __ge__(self, other: Any) -> "Expr":
        return self._compare(">=", other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: "Expr") -> "Expr":
        return self._join("and", _Binding.AND, other)

    def __or__(self, other: "Expr") -> "Expr":
        return self._join("or", _Binding.OR, other)

    def _join(self, word: str, binding: _Binding, other: "Expr") -> "Expr":
        if not isinstance(other, Expr):
            raise TypeError(
                f"& and | combine expressions, not {a_type(other)}; put each comparison in parentheses: "
                "(col('a') == 1) & (col('b') > 0)"
            )
        return Expr(f"{self._at_least(binding)} {word} {other._at_least(binding)}", binding)

    def __rand__(self, other: Any) -> "Expr":
        return self._join("and", _Binding.AND, other)

    def __ror__(self, other: Any) -> "Expr":
        return self._join("or", _Binding.OR, other)

    def __invert__(self) -> "Expr":
        return Expr(f"not {self._at_least(_Binding.NOT)}", _Binding.NOT)

    def _calculate(self, op: str, other: Any, *, reflected: bool = False) -> "Expr":
        other = _operand(other, f"{self._text} {op}")
        left, right = (other, self) if reflected else (self, other)
        binding = _Binding.SUM if op in "+-" else _Binding.PRODUCT
        # Operators associate to the left, so a right operand must bind more tightly.
        return Expr(f"{left._at_least(binding)} {op} {right._at_least(_Binding(binding + 1))}", binding)

    def __add__(self, other: Any) -> "Expr":
        return self._calculate("+", other)

    def __radd__(self, other: Any) -> "Expr":
        return self._calculate("+", other, reflected=True)

    def __sub__(self, other: Any) -> "Expr":
        return self._calculate("-", other)

    def __rsub__(self, other: Any) -> "Expr":
        return self._calculate("-", other, reflected=True)

    def __mul__(self, other: Any) -> "Expr":
        return self._calculate("*", other)

    def __rmul__(self, other: Any) -> "Expr":
        return self._calculate("*", other, reflected=True)

    def __truediv__(self, other: Any) -> "Expr":
        return self._calculate("/", other)

    def __rtruediv__(self, other: Any) -> "Expr":
        return self._calculate("/", other, reflected=True)

    def __mod__(self, other: Any) -> "Expr":
        return self._calculate("%", other)

    def __rmod__(self, other: Any) -> "Expr":
        return self._calculate("%", other, reflected=True)

    def __neg__(self) -> "Expr":
        return Expr(f"-{self._at_least(_Binding.ATOM)}", _Binding.UNARY)

    __abs__ = _refused("abs()")
    __round__ = _refused("round()")
    __pow__ = __rpow__ = _refused("**")
    __floordiv__ = __rfloordiv__ = _refused("//")

    def _predicate(self, text: str) -> "Expr":
        return Expr(f"{self._at_least(_Binding.SUM)} {text}", _Binding.PREDICATE)

    def is_null(self) -> "Expr":
        """True if the value is null."""
        return self._predicate("is null")

    def is_not_null(self) -> "Expr":
        """True if the value is not null."""
        return self._predicate("is not null")

    def isin(self, values: Iterable[Any]) -> "Expr":
        """True if the value is one of ``values``; none of them may be None.

        >>> col("n").isin(range(3))
        Expr(n in (0, 1, 2))
        """
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise TypeError(f"isin takes a list of values, not {a_type(values)}")
        texts = [literal(value, f"{self._text} in (...)")._text for value in values]
        if not texts:
            return Expr("false", _Binding.ATOM)
        return self._predicate(f"in ({', '.join(texts)})")

    def between(self, low: Any, high: Any) -> "Expr":
        """True if the value is between ``low`` and ``high``, both included.

        >>> col("n").between(1, 5)
        Expr(n between 1 and 5)
        """
        bounds = [_operand(bound, f"{self._text} between")._at_least(_Binding.SUM) for bound in (low, high)]
        return self._predicate(f"between {bounds[0]} and {bounds[1]}")

    def like(self, pattern: str, *, escape: str | None = None, ignore_case: bool = False) -> "Expr":
        """True if the text matches ``pattern``: ``%`` stands for any characters, ``_`` for one character. The character
        ``escape`` before one of them makes it literal. With ``ignore_case``, upper and lower case are equal.

        >>> col("sym").like("A%")
        Expr(sym like 'A%')
        """
        for name, value in (("pattern", pattern), ("escape", escape)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} must be a str, not {a_type(value)}")
        behind = "" if escape is None else f" escape {_quoted(escape)}"
        return self._predicate(f"{'ilike' if ignore_case else 'like'} {_quoted(pattern)}{behind}")

    def _call(self, name: str, *args: Any) -> "Expr":
        texts = ["null" if arg is None else _operand(arg, f"{name}(...)")._text for arg in args]
        return Expr(f"{name}({', '.join([self._text, *texts])})", _Binding.ATOM)

    def lower(self) -> "Expr":
        """The text in lower case."""
        return self._call("lower")

    def upper(self) -> "Expr":
        """The text in upper case."""
        return self._call("upper")

    def trim(self) -> "Expr":
        """The text without spaces before and after it."""
        return self._call("trim")

    def trim_start(self) -> "Expr":
        """The text without spaces before it."""
        return self._call("ltrim")

    def trim_end(self) -> "Expr":
        """The text without spaces after it."""
        return self._call("rtrim")

    def concat(self, *others: Any) -> "Expr":
        """The value and the ``others`` one after the other, as text; a null is none.

        >>> col("first").concat(" ", col("last")) == "Ada Byron"
        Expr(concat(first, ' ', last) = 'Ada Byron')
        """
        return self._call("concat", *others)

    def length(self) -> "Expr":
        """The number of characters of a text, or of bytes of binary data."""
        return self._call("length")

    def substring(self, start: Any, length: Any = None) -> "Expr":
        """The characters from ``start`` on, the first of which is 1, and -1 the last: ``length`` of them, or all that
        are left.

        >>> col("sym").substring(1, 2) == "AA"
        Expr(substring(sym, 1, 2) = 'AA')
        """
        return self._call("substring", start, *(() if length is None else (length,)))

    def replace(self, old: Any, new: Any) -> "Expr":
        """The text with ``new`` in each place of ``old``."""
        return self._call("replace", old, new)

    def starts_with(self, text: str) -> "Expr":
        """Whether the text begins so. Row groups that have no such text are skipped."""
        return self._call("starts_with", text)

    def ends_with(self, text: str) -> "Expr":
        """Whether the text ends so."""
        return self._call("ends_with", text)

    def contains(self, text: str) -> "Expr":
        """Whether ``text`` stands somewhere in the text."""
        return self._call("contains", text)

    def abs(self) -> "Expr":
        """The number without its sign."""
        return self._call("abs")

    def round(self, places: int = 0) -> "Expr":
        """The number rounded to ``places`` decimal places, halves away from zero.

        >>> col("close").round(1) > 0.5
        Expr(round(close, 1) > 0.5)
        """
        return self._call("round", *((places,) if places else ()))

    def floor(self) -> "Expr":
        """The greatest whole number that is not above the number."""
        return self._call("floor")

    def ceil(self) -> "Expr":
        """The least whole number that is not below the number."""
        return self._call("ceil")

    def sign(self) -> "Expr":
        """-1, 0 or 1."""
        return self._call("sign")

    def year(self) -> "Expr":
        """The year of a date or timestamp, on the clocks of its time zone.

        >>> (col("day").year() == 2026) & (col("day").month() >= 6)
        Expr(year(day) = 2026 and month(day) >= 6)
        """
        return self._call("year")

    def quarter(self) -> "Expr":
        """The quarter of the year, from 1."""
        return self._call("quarter")

    def month(self) -> "Expr":
        """The month, from 1."""
        return self._call("month")

    def week(self) -> "Expr":
        """The week of the ISO calendar, from 1."""
        return self._call("week")

    def day(self) -> "Expr":
        """The day of the month, from 1."""
        return self._call("day")

    def day_of_week(self) -> "Expr":
        """The day of the week: 0 is a Sunday."""
        return self._call("dayofweek")

    def iso_day_of_week(self) -> "Expr":
        """The day of the week: 1 is a Monday, 7 a Sunday."""
        return self._call("isodow")

    def day_of_year(self) -> "Expr":
        """The day of the year, from 1."""
        return self._call("dayofyear")

    def hour(self) -> "Expr":
        """The hour of a timestamp or a time of day."""
        return self._call("hour")

    def minute(self) -> "Expr":
        """The minute of a timestamp or a time of day."""
        return self._call("minute")

    def second(self) -> "Expr":
        """The second of a timestamp or a time of day."""
        return self._call("second")

    def date_trunc(self, unit: str) -> "Expr":
        """The beginning of the ``year``, ``quarter``, ``month``, ``week``, ``day``, ``hour``, ``minute`` or ``second``
        of a date or timestamp, on the clocks of its time zone.

        >>> col("ts").date_trunc("month") == "2026-01-01"
        Expr(date_trunc('month', ts) = '2026-01-01')
        """
        if not isinstance(unit, str):
            raise TypeError(f"unit must be a str, not {a_type(unit)}")
        return Expr(f"date_trunc({_quoted(unit)}, {self._text})", _Binding.ATOM)

    def cast(self, type: Any, *, lenient: bool = False) -> "Expr":
        """The value in another type: a text such as ``"int64"`` or ``"varchar"``, or a type of Python, Arrow, NumPy or
        Polars. Where a value has none in it, the call fails; with ``lenient`` it is null.

        >>> col("qty").cast("double") / 3 > 1
        Expr(cast(qty as 'double') / 3 > 1)
        """
        word = "try_cast" if lenient else "cast"
        return Expr(f"{word}({self._text} as {_quoted(str(type_of(type, 'cast')))})", _Binding.ATOM)

    def coalesce(self, *others: Any) -> "Expr":
        """The value, or where it is null the first of ``others`` that is not.

        >>> col("qty").coalesce(0) > 1
        Expr(coalesce(qty, 0) > 1)
        """
        return self._call("coalesce", *others)

    def null_if(self, other: Any) -> "Expr":
        """The value, or null where it equals ``other``."""
        return self._call("nullif", other)

    def field(self, name: str) -> "Expr":
        """The field ``name`` of a struct column.

        >>> col("address").field("city") == "Oslo"
        Expr(address.city = 'Oslo')
        """
        if self._binding != _Binding.ATOM or self._text.endswith(")"):
            raise InvalidArgument(f"{self._text} is not a column, so it has no fields")
        return Expr(f"{self._text}.{_written(name)}", _Binding.ATOM)


def col(name: str) -> Expr:
    """The column ``name``, for filters and calculations.

    >>> from drumlin import col
    >>> col("close") - col("open") > 0.5
    Expr(close - open > 0.5)
    >>> col("Adj Close") > 0
    Expr("Adj Close" > 0)
    """
    return Expr(_written(name), _Binding.ATOM)


def _written(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a column's name must be a str, not {a_type(name)}")
    if _PLAIN.match(name) and name.lower() not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _operand(value: Any, place: str) -> Expr:
    return value if isinstance(value, Expr) else literal(value, place)


def literal(value: Any, place: str) -> Expr:
    """``value`` in the filter language; ``place`` describes its position in messages."""
    text: str
    match _plain(value):
        case None:
            raise InvalidArgument(
                f"{place} {value}: nothing compares with a missing value; use is_null() or is_not_null()"
            )
        case Expr() as expr:
            return expr
        case bool() as flag:
            text = "true" if flag else "false"
        case int() as number:
            text = str(number)
        case float() as number if not math.isfinite(number):
            text = f"double '{number}'"
        case float() as number:
            text = repr(float(number))
        case decimal.Decimal() as number if not number.is_finite():
            text = f"double '{math.nan if number.is_nan() else float(number)}'"
        case decimal.Decimal() as number:
            text = str(number)
        case str() as string:
            text = _quoted(string)
        case bytes() | bytearray() | memoryview() as data:
            text = f"x'{bytes(data).hex()}'"
        # A datetime is also a date, so it is tested first.
        case dt.datetime() as moment:
            text = f"timestamp '{_in_utc(moment).isoformat(sep=' ')}'"
        case dt.date() as day:
            text = f"date '{day.isoformat()}'"
        case dt.time() as time if time.tzinfo is None:
            text = f"time '{time.isoformat()}'"
        case dt.timedelta() as span:
            # A pandas Timedelta has nanoseconds.
            nanos = span.value if hasattr(span, "value") else span // dt.timedelta(microseconds=1) * 1000
            text = f"interval '{nanos} ns'"
        case other:
            raise TypeError(
                f"{place} ...: {a_type(other)} is not a value of the filter language "
                "(bool, int, float, Decimal, str, bytes, UUID, date, datetime, time without zone, timedelta)"
            )
    return Expr(text, _Binding.UNARY if text.startswith("-") else _Binding.ATOM)


def _in_utc(moment: dt.datetime) -> dt.datetime:
    """The same instant in UTC, because the offset of a zone can have seconds; a time without a zone is unchanged."""
    try:
        return moment if moment.tzinfo is None else moment.astimezone(dt.UTC)
    except OverflowError:
        return moment


def _plain(value: Any) -> Any:
    """NumPy scalars and missing values of pandas as Python values."""
    kind = type(value)
    match kind.__module__.partition(".")[0], kind.__name__:
        case "pandas", "NaTType" | "NAType":
            return None
        case "numpy", "datetime64":
            # It has more digits than a datetime.
            return None if str(value) == "NaT" else Expr(f"timestamp '{str(value).replace('T', ' ')}'", _Binding.ATOM)
        case "numpy", "timedelta64":
            nanos = value.astype("timedelta64[ns]")
            return None if str(nanos) == "NaT" else Expr(f"interval '{int(nanos.astype('int64'))} ns'", _Binding.ATOM)
        case "uuid", "UUID":
            return value.bytes
        case "numpy", _ if getattr(value, "size", 0) == 1:
            return value.item()
        case _:
            return value
