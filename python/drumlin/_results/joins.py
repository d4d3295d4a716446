"""Joins in time of data sets."""

from collections.abc import Iterable
from typing import Self

from drumlin import _drumlin
from drumlin._arguments.checks import names, text
from drumlin._arguments.named import flag, names_arguments
from drumlin._errors import InvalidArgument
from drumlin._results.joined import Joined, Side, Span, Windows, span
from drumlin._results.scanned import Scanned
from drumlin._values.evidence import a_type


@names_arguments()
class Joinable(Scanned):
    """A data set that can be joined with another by time."""

    __slots__ = ()

    def join_asof(
        self,
        right: Self,
        *,
        on: str | None = None,
        left_on: str | None = None,
        right_on: str | None = None,
        by: Iterable[str] | str = (),
        direction: str = "backward",
        tolerance: Span | None = None,
        allow_exact: bool = True,
        suffix: str = "_right",
    ) -> Joined:
        """Each row of this data set with the row of ``right`` that is nearest to it in the column ``on``: a time, a
        date or an integer. Nulls, where there is none. All rows of this data set are in the result, in its order.

        ``direction`` says where that row lies: ``"backward"`` (not later; of several of one time the last in the order
        of their table), ``"forward"`` (not earlier; the first), or ``"nearest"`` (the earlier one, if two are equally
        far). With ``tolerance`` it is at most that far: ``"5s"``, a timedelta, or an int for integers. With
        ``allow_exact=False`` it is not of the same time. Rows without a time are joined with nothing.

        Columns of ``by`` must be equal; a null equals nothing. Where both data sets have them as ``path_columns``, each
        table is joined only with the tables of the same names. Small tables are joined some at once, and tables of any
        size that are sorted by ``on`` are read as streams, so memory is bounded; other large tables of the right side
        are held in memory, one after the other. Filters and columns of both data sets are applied first. Columns
        of ``right`` whose names this data set has, too, get the ``suffix``. With ``left_on`` and ``right_on`` in the
        place of ``on``, both columns are in the result. Different units of time compare exactly.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"trades/A": {"ts": [3, 7], "px": [10.0, 11.0]}, "trades/B": {"ts": [4], "px": [5.0]}})
        >>> _ = store.write_many({"quotes/A": {"ts": [1, 5, 8], "bid": [9.5, 10.5, 11.5]}})
        >>> trades = store.scan("trades/*", path_columns=["sym"])
        >>> quotes = store.scan("quotes/*", path_columns=["sym"])
        >>> for row in trades.join_asof(quotes, on="ts", by="sym").to_dicts():
        ...     print(row)
        {'ts': 3, 'px': 10.0, 'sym': 'A', 'bid': 9.5}
        {'ts': 7, 'px': 11.0, 'sym': 'A', 'bid': 10.5}
        {'ts': 4, 'px': 5.0, 'sym': 'B', 'bid': None}
        """
        pair = _pair(on, left_on, right_on)
        far = None if tolerance is None else span(tolerance, "tolerance")
        sides = (self._side("join_asof"), _side_of(right, "join_asof"))
        exact, end = flag(allow_exact, "allow_exact"), text(suffix, "suffix")
        join = _drumlin.Join.asof(*sides, pair, names(by, "by"), end, text(direction, "direction"), far, exact)
        return Joined(join, self._both(right))

    def join_window(
        self,
        right: Self,
        *,
        on: str | None = None,
        left_on: str | None = None,
        right_on: str | None = None,
        by: Iterable[str] | str = (),
        before: Span = 0,
        after: Span = 0,
    ) -> Windows:
        """Each row of this data set with what is made of the rows of ``right`` that are at most ``before`` earlier and
        at most ``after`` later in the column ``on``, both ends included; :meth:`Windows.agg <drumlin.Windows.agg>`
        says what. The other arguments are those of :meth:`join_asof`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("trades", {"ts": [3, 7], "px": [10.0, 11.0]})
        >>> _ = store.write("quotes", {"ts": [1, 2, 5], "bid": [9.5, 9.0, 10.5]})
        >>> windows = store.scan("trades").join_window(store.scan("quotes"), on="ts", before=2)
        >>> windows.agg(n="count", bid=("bid", "max")).to_dicts()
        [{'ts': 3, 'px': 10.0, 'n': 2, 'bid': 9.5}, {'ts': 7, 'px': 11.0, 'n': 1, 'bid': 10.5}]
        """
        pair = _pair(on, left_on, right_on)
        sides = (self._side("join_window"), _side_of(right, "join_window"))
        far = span(before, "before"), span(after, "after")
        return Windows(*sides, pair, names(by, "by"), *far, self._both(right))

    def _side(self, what: str) -> Side:
        self._unlimited(what)
        return self._exact, (self._columns, self._filters)

    def _both(self, right: Scanned) -> str:
        return f"{self._core.pattern!r}, {right._core.pattern!r}"


def _side_of(right: object, what: str) -> Side:
    if isinstance(right, Joinable):
        return right._side(what)
    raise TypeError(f"right must be a data set, as store.scan(path) makes it, not {a_type(right)}")


def _pair(on: str | None, left_on: str | None, right_on: str | None) -> tuple[str, str]:
    if on is not None and left_on is None and right_on is None:
        return text(on, "on"), text(on, "on")
    if on is None and left_on is not None and right_on is not None:
        return text(left_on, "left_on"), text(right_on, "right_on")
    raise InvalidArgument("give on, a column of both sides, or left_on and right_on")
