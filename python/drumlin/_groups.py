"""Groups of rows, and what is made of each."""

import datetime as dt
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from drumlin._arguments import since_epoch, text
from drumlin._errors import InvalidArgument
from drumlin._expr import Expr
from drumlin._result import Result

if TYPE_CHECKING:
    from drumlin._dataset import Dataset

__all__ = ["Groups"]

#: Functions, and what they need beside a column.
_FUNCTIONS: dict[str, str | None] = {
    **dict.fromkeys(("count", "count_distinct", "sum", "mean", "min", "max", "first", "last")),
    **dict.fromkeys(("std", "var", "median", "any", "all")),
    "quantile": "a share from 0 to 1",
    "weighted_mean": "the column of weights",
}

#: Column of times, length, origin (microseconds, nanoseconds beyond that, of a zone), closed on the right, called by the
#: end.
Buckets = tuple[str, str, tuple[int, int, bool] | None, bool, bool]


class Groups:
    """Rows in groups; made by :meth:`Dataset.group_by <drumlin.Dataset.group_by>` and :meth:`Dataset.resample
    <drumlin.Dataset.resample>`. Nothing is read before :meth:`agg`."""

    __slots__ = ("_dataset", "_every", "_keys")

    def __init__(self, dataset: "Dataset", keys: list[str], every: Buckets | None) -> None:
        self._dataset = dataset
        self._keys = keys
        self._every = every

    def agg(self, /, **aggregates: Any) -> Result:
        """Makes a row of each group: its keys, the label of its bucket, then the columns named here, each a pair of a
        column and a function, or ``"count"`` for the number of rows. In place of a column there may be a calculation
        with columns (text, or made with :func:`drumlin.col`): exact as long as there are only integers and decimals,
        else in doubles. Rows are ordered by keys and buckets, nulls
        first. Without keys and buckets there is one row.

        ============================================ =====================================================
        ``count``, ``count_distinct``                how many values, and different ones; never null
        ``sum``                                      Int64, UInt64 or Decimal128 of such: an error if it is
                                                     beyond that; of floats a double
        ``mean``, ``std``, ``var``                   doubles; the last two of a sample
        ``median``, ``("x", "quantile", 0.9)``       doubles, between the two nearest values
        ``("x", "weighted_mean", "weight")``         a double; null if the weights come to zero
        ``min``, ``max``                             NaN is greater than all numbers; categories compare as
                                                     their values do
        ``first``, ``last``                          in the order of the rows
        ``any``, ``all``                             of booleans
        ============================================ =====================================================

        Nulls are left out, and what is made of none is null. Sums are exact and rounded once, so the answer is the
        same, bit by bit, for any number of threads and before and after a checkpoint. All threads compute; memory is
        that of the groups, and if they take more than half of ``memory_bytes``, the rows are read again for each share
        of the groups that fits.

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
        batches = dataset._core.aggregate(self._keys, self._every, asked, dataset._filters)
        return Result(batches, dataset.pattern, selects=True)

    def __repr__(self) -> str:
        every = "" if self._every is None else f", every={self._every[:2]!r}"
        return f"Groups({self._dataset.pattern!r}, by {self._keys!r}{every})"


def _column(value: Any, name: str) -> str:
    if isinstance(value, (str, Expr)):
        return str(value)
    raise TypeError(f"{name}: a column is a name, or a calculation made with drumlin.col, not a {type(value).__name__}")


def _asked(name: str, how: Any) -> tuple[str, str, str | None, float | None, str | None]:
    if how == "count" and isinstance(how, str):
        return (name, "count", None, None, None)
    if isinstance(how, str) or not isinstance(how, (tuple, list)) or not 2 <= len(how) <= 3:
        raise TypeError(
            f"{name} is 'count', or a pair of a column and a function such as ('price', 'mean'), not {how!r}"
        )
    column, function, *more = how
    if not isinstance(function, str) or function not in _FUNCTIONS:
        raise InvalidArgument(f"{name}: there is no function {function!r}; there are {', '.join(_FUNCTIONS)}")
    needs = _FUNCTIONS[function]
    if (needs is not None) != bool(more):
        raise InvalidArgument(f"{name}: {function} needs {'nothing more than a column' if needs is None else needs}")
    of = _column(column, name)
    if function == "weighted_mean":
        return (name, function, of, None, _column(more[0], name))
    if not more:
        return (name, function, of, None, None)
    if isinstance(more[0], bool) or not isinstance(more[0], (int, float)):
        raise TypeError(f"{name}: a quantile is at a number from 0 to 1, not {more[0]!r}")
    return (name, function, of, float(more[0]), None)


def buckets(column: Any, length: Any, origin: Any = None, closed: Any = "left", label: Any = "left") -> Buckets:
    """Buckets of time, as the core takes them."""
    for value, name in ((closed, "closed"), (label, "label")):
        if value not in ("left", "right"):
            raise InvalidArgument(f"{name}={value!r}; expected 'left' or 'right'")
    since = None
    if origin is not None:
        # Not a time, of pandas, is a datetime that is not equal to itself.
        if not isinstance(origin, dt.date) or origin != origin:  # noqa: PLR0124
            raise TypeError(f"origin is a date or a datetime, not {origin!r}")
        at = origin if isinstance(origin, dt.datetime) else dt.datetime(origin.year, origin.month, origin.day)
        since = (since_epoch(at), getattr(at, "nanosecond", 0), at.tzinfo is not None)
    return (text(column, "on"), text(length, "every"), since, closed == "right", label == "right")


def key_names(keys: Iterable[Any]) -> list[str]:
    """Columns to group by."""
    names = list(keys)
    for key in names:
        if not isinstance(key, str):
            raise TypeError(f"a key is the name of a column, not a {type(key).__name__}")
    return names
