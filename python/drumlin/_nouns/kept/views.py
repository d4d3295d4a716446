"""Views: tables that the commits which change others keep in step."""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from drumlin import _drumlin
from drumlin._arguments.checks import FilterLike, Progress, filter_text, names, one_of
from drumlin._arguments.named import names_arguments
from drumlin._drumlin import View
from drumlin._results.groups import asked, buckets

__all__ = ["Viewed", "Views"]


@names_arguments()
class Views:
    """What a store has for views."""

    __slots__ = ()

    _core: _drumlin.Store

    def view(
        self,
        path: str,
        over: str,
        agg: Mapping[str, Any],
        *,
        path_columns: Iterable[str] | str = (),
        by: Iterable[str] | str = (),
        every: str | None = None,
        on: str | None = None,
        origin: dt.date | None = None,
        closed: Literal["left", "right"] = "left",
        label: Literal["left", "right"] = "left",
        where: FilterLike | None = None,
        stale: Literal["wait", "error", "read"] = "wait",
        progress: Progress | None = None,
    ) -> View:
        """Makes a view at ``path``: a table with a row for each group of the rows of all tables that the pattern
        ``over`` matches. From then on each commit that changes these tables, its sources, changes the view, too. It is
        read like any table, with versions and times, and shows what ``group_by`` or ``resample`` of its sources would.
        Nobody else writes its rows; :meth:`drop` ends it.

        ``agg`` has the aggregates by name, each ``"count"`` or a pair of a column and a function:
        ``count``, ``sum``, ``mean``, ``weighted_mean``, ``std``, ``var``, ``min``, ``max``, ``first`` and ``last``.
        Groups are made by ``path_columns``, which name the parts of the paths that ``over`` leaves open, all of them;
        by the columns ``by``; and, with ``every`` and ``on``, by buckets of time as in ``resample``. These are its key.
        Rows in which a key or the time is null are in no group. ``where`` leaves out other rows.

        A commit costs what it changes: rows that come and go are added to their groups and taken away from them. Only
        where one row made a result that is gone (``min``, ``max``, ``first``, ``last``), its group is read again. A
        commit after which more than a million rows would have to be read, or very many groups change, leaves the view
        *behind* with this source, and the call catches up right after it. If it cannot, because a sum is too large for
        its type for example, a warning says so; a read of the view then tries again (``stale="wait"``), raises
        :class:`ConditionFailed <drumlin.ConditionFailed>` (``"error"``), or returns what there is (``"read"``).

        ``NotFound`` if no table matches; ``AlreadyExists`` if there is a table at ``path``.

        >>> import datetime, drumlin
        >>> store = drumlin.open("memory://")
        >>> at = [datetime.datetime(2026, 1, 2, 9, minute) for minute in (0, 2, 7)]
        >>> _ = store.write("trades/AAPL", {"ts": at, "px": [10.0, 12.0, 11.0]})
        >>> bars = {"open": ("px", "first"), "high": ("px", "max"), "n": "count"}
        >>> _ = store.view("bars/5m", "trades/*", bars, path_columns="sym", every="5m", on="ts")
        >>> _ = store.append("trades/AAPL", {"ts": [at[0]], "px": [14.0]})
        >>> [(bar["sym"], bar["ts"].minute, bar["high"], bar["n"]) for bar in store.read("bars/5m").to_dicts()]
        [('AAPL', 0, 14.0, 3), ('AAPL', 5, 11.0, 1)]
        """
        one_of(stale, "stale", ("wait", "error", "read"))
        if (every is None) != (on is None):
            raise TypeError("buckets of time need both every, a length such as '5m', and on, the column of times")
        if every is None and (origin is not None or closed != "left" or label != "left"):
            raise TypeError("origin, closed and label say how buckets of time are made; give every and on, too")
        if not isinstance(agg, Mapping):
            raise TypeError(f"agg must have aggregates by name, such as {{'n': 'count'}}, not {agg!r}")
        made = None if every is None else buckets(on, every, origin, closed, label)
        condition = None if where is None else filter_text(where)
        columns, keys = names(path_columns, "path_columns"), names(by, "by")
        return _drumlin.create_view(
            self._core, path, over, columns, condition, keys, made, asked(None, agg), stale, progress
        )

    def views(self) -> list[View]:
        """All views of the store, in the order of their paths.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("days/1", {"n": [1, 2]})
        >>> _ = store.view("sums", "days/*", {"sum": ("n", "sum")}, path_columns=["day"])
        >>> [(view.path, view.over, view.behind) for view in store.views()]
        [('sums', 'days/*', [])]
        """
        return _drumlin.views(self._core)


@names_arguments()
class Viewed:
    """What a table has that is a view."""

    __slots__ = ()

    _core: _drumlin.Table

    def as_view(self) -> View | None:
        """What the table is a view of; None if it is none. See :meth:`Store.view <drumlin.Store.view>`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("days/1", {"n": [1, 2]})
        >>> _ = store.view("sums", "days/*", {"sum": ("n", "sum")}, path_columns=["day"])
        >>> store.table("sums").as_view().over, store.table("days/1").as_view()
        ('days/*', None)
        """
        return _drumlin.view_of(self._core)

    def catch_up(self, *, progress: Progress | None = None) -> int:
        """Brings the view at this path up to date, if it is behind; returns with how many of its sources it was.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("days/1", {"n": [1, 2]})
        >>> _ = store.view("sums", "days/*", {"sum": ("n", "sum")}, path_columns=["day"])
        >>> store.table("sums").catch_up()
        0
        """
        return _drumlin.catch_up(self._core, progress)
