"""Groups of rows, and aggregates of each group."""

import datetime as dt
from collections.abc import Iterable
from typing import Any

from drumlin._arguments.checks import names, since_epoch, text
from drumlin._arguments.expr import Expr
from drumlin._errors import InvalidArgument
from drumlin._results.result import Result
from drumlin._results.scanned import Scanned
from drumlin._values.evidence import a_type

__all__ = ["Groups"]

#: Functions, and what they need besides a column.
_FUNCTIONS: dict[str, str | None] = {
    **dict.fromkeys(("count", "count_distinct", "sum", "mean", "min", "max", "first", "last")),
    **dict.fromkeys(("std", "var", "median", "any", "all")),
    "quantile": "a share from 0 to 1",
    "weighted_mean": "the column of weights",
}

#: The time column, length, origin (microseconds, the nanoseconds beyond them, whether it has a zone), whether buckets
#: are closed on the right, whether they are labelled by their end.
Buckets = tuple[str, str, tuple[int, int, bool] | None, bool, bool]


class Groups:
    """Rows in groups; made by :meth:`Dataset.group_by <drumlin.Dataset.group_by>` and :meth:`Dataset.resample
    <drumlin.Dataset.resample>`. No data is read until :meth:`agg` is called."""

    __slots__ = ("_dataset", "_every", "_keys")

    def __init__(self, dataset: Scanned, keys: list[str], every: Buckets | None) -> None:
        self._dataset = dataset
        self._keys = keys
        self._every = every

    def agg(self, /, **aggregates: Any) -> Result:
        """Returns one row for each group: its keys, the label of its bucket, then the columns named here. Each of these
        is a pair of a column and a function, or ``"count"`` for the number of rows. In place of a column, it can be a
        calculation on columns (text, or made with :func:`drumlin.col`): exact if it has only integers and decimals,
        otherwise in doubles. Rows are ordered by keys and buckets, nulls first. Without keys and buckets, there is one
        row.

        ============================================ =====================================================
        ``count``, ``count_distinct``                the number of values, or of different ones; never null
        ``sum``                                      int64, uint64 or decimal128; an error on overflow. A double
                                                     if the column has floats
        ``mean``, ``std``, ``var``                   doubles; the last two are of a sample
        ``median``, ``("x", "quantile", 0.9)``       doubles, interpolated between the two nearest values
        ``("x", "weighted_mean", "weight")``         a double; null if the weights add up to zero
        ``min``, ``max``                             NaN is greater than all numbers; dictionary columns are
                                                     compared by value
        ``first``, ``last``                          in the order of the rows
        ``any``, ``all``                             of booleans
        ============================================ =====================================================

        Nulls are ignored; an aggregate of no values is null. Sums are exact and rounded once, so the result is the same
        bit for bit with any number of threads, and before and after a checkpoint. All threads compute. Memory is used
        for the groups; if they take more than half of ``memory_bytes``, the rows are read again for each part of the
        groups that fits.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("trades", {"sym": ["A", "B", "A"], "px": [10.0, 20.0, 12.0], "size": [1, 1, 3]})
        >>> groups = store.scan("trades").group_by("sym")
        >>> groups.agg(n="count", px=("px", "mean"), vwap=("px", "weighted_mean", "size")).to_arrow().to_pylist()
        [{'sym': 'A', 'n': 2, 'px': 11.0, 'vwap': 11.5}, {'sym': 'B', 'n': 1, 'px': 20.0, 'vwap': 20.0}]
        >>> store.scan("trades").group_by().agg(value=("px * size", "sum")).to_arrow().to_pylist()
        [{'value': 66.0}]
        """
        dataset = self._dataset
        asked = [_asked(name, how) for name, how in aggregates.items()]
        batches = dataset._exact.aggregate(self._keys, self._every, asked, dataset._filters)
        return Result(batches, dataset._core.pattern, selects=True)

    def __repr__(self) -> str:
        every = "" if self._every is None else f", every={self._every[:2]!r}"
        return f"Groups({self._dataset._core.pattern!r}, by {self._keys!r}{every})"


def _column(value: Any, name: str) -> str:
    if isinstance(value, (str, Expr)):
        return str(value)
    raise TypeError(f"{name}: a column must be a name, or a calculation made with drumlin.col, not {a_type(value)}")


def _asked(name: str, how: Any) -> tuple[str, str, str | None, float | None, str | None]:
    if how == "count" and isinstance(how, str):
        return (name, "count", None, None, None)
    if isinstance(how, str) or not isinstance(how, (tuple, list)) or not 2 <= len(how) <= 3:
        raise TypeError(
            f"{name} must be 'count', or a pair of a column and a function such as ('price', 'mean'), not {how!r}"
        )
    column, function, *more = how
    if not isinstance(function, str) or function not in _FUNCTIONS:
        raise InvalidArgument(f"{name}: {function!r} is not a function; expected one of {', '.join(_FUNCTIONS)}")
    needs = _FUNCTIONS[function]
    if (needs is not None) != bool(more):
        raise InvalidArgument(f"{name}: {function} needs {'only a column' if needs is None else needs}")
    of = _column(column, name)
    if function == "weighted_mean":
        return (name, function, of, None, _column(more[0], name))
    if not more:
        return (name, function, of, None, None)
    if isinstance(more[0], bool) or not isinstance(more[0], (int, float)):
        raise TypeError(f"{name}: a quantile must be a number from 0 to 1, not {more[0]!r}")
    return (name, function, of, float(more[0]), None)


def buckets(column: Any, length: Any, origin: Any = None, closed: Any = "left", label: Any = "left") -> Buckets:
    """Buckets of time, in the core's form."""
    for value, name in ((closed, "closed"), (label, "label")):
        if value not in ("left", "right"):
            raise InvalidArgument(f"{name}={value!r}; expected 'left' or 'right'")
    since = None
    if origin is not None:
        # NaT of pandas is a datetime that is not equal to itself.
        if not isinstance(origin, dt.date) or origin != origin:
            raise TypeError(f"origin must be a date or a datetime, not {origin!r}")
        at = origin if isinstance(origin, dt.datetime) else dt.datetime(origin.year, origin.month, origin.day)
        since = (since_epoch(at), getattr(at, "nanosecond", 0), at.tzinfo is not None)
    return (text(column, "on"), text(length, "every"), since, closed == "right", label == "right")


def key_names(keys: Iterable[Any]) -> list[str]:
    """The names of the columns to group by."""
    names = list(keys)
    for key in names:
        if not isinstance(key, str):
            raise TypeError(f"a key must be the name of a column, not {a_type(key)}")
    return names


class Groupable:
    """An object whose rows can be grouped."""

    __slots__ = ()

    def _to_group(self, what: str, where: str | Expr | None) -> Scanned:
        """The rows for which ``where`` is true, for the operation ``what``."""
        raise NotImplementedError

    def group_by(self, *keys: str, every: tuple[str, str] | None = None, where: str | Expr | None = None) -> Groups:
        """Groups the rows for which ``where`` is true (default: all) by equal values in the columns ``keys``. Nulls are
        equal to each other, NaN to NaN, and -0.0 to 0.0. With ``every``, a pair of a time column and a length such as
        ``"5m"`` (see :meth:`resample`), each bucket of time is a separate group, and its start is a column with the
        name of the time column. See :meth:`Groups.agg <drumlin.Groups.agg>`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"prices/AAPL": {"px": [1.0, 2.0]}, "prices/MSFT": {"px": [3.0]}})
        >>> prices = store.scan("prices/*", path_columns=["symbol"])
        >>> prices.group_by("symbol").agg(n="count", mean=("px", "mean")).to_arrow().to_pylist()
        [{'symbol': 'AAPL', 'n': 2, 'mean': 1.5}, {'symbol': 'MSFT', 'n': 1, 'mean': 3.0}]
        """
        if every is not None and (not isinstance(every, tuple) or len(every) != 2):
            raise TypeError(f"every must be a pair of a column and a length, such as ('ts', '5m'), not {every!r}")
        made = None if every is None else buckets(*every)
        return Groups(self._to_group("group_by", where), key_names(keys), made)

    def resample(
        self,
        every: str,
        *,
        on: str,
        by: Iterable[str] = (),
        origin: dt.date | None = None,
        closed: str = "left",
        label: str = "left",
        where: str | Expr | None = None,
    ) -> Groups:
        """Groups the rows for which ``where`` is true (default: all) into buckets of time, by the time or date column
        ``on``, and by the columns ``by``. ``every`` is a number and a unit: ``ns``, ``us``, ``ms``, ``s``, ``m``,
        ``h``; or of the calendar: ``d``, ``w`` (from Monday), ``mo``, ``q`` and ``y``, in the time zone of the column,
        where a day may have 23 or 25 hours. Buckets without rows are not in the result.

        A bucket begins at ``origin``; the default is the start of 1970, which for days and longer units is in the
        column's time zone. If the column has a time zone, ``origin`` must have one too. Hours and shorter units are
        counted through clock changes. ``closed`` says which end of a bucket, ``"left"`` or ``"right"``, belongs to it,
        ``label`` which end is its label.

        >>> import datetime, drumlin
        >>> store = drumlin.open("memory://")
        >>> at = [datetime.datetime(2026, 1, 2, 9, minute) for minute in (0, 2, 7)]
        >>> _ = store.write("trades", {"ts": at, "px": [10.0, 12.0, 11.0]})
        >>> bars = store.scan("trades").resample("5m", on="ts").agg(open=("px", "first"), close=("px", "last"))
        >>> [(bar["ts"].minute, bar["open"], bar["close"]) for bar in bars.to_arrow().to_pylist()]
        [(0, 10.0, 12.0), (5, 11.0, 11.0)]
        """
        made = buckets(on, every, origin, closed, label)
        return Groups(self._to_group("resample", where), names(by, "by"), made)
