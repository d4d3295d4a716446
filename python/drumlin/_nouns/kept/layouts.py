"""Layouts: by which columns the row groups of a table are sorted."""

from collections.abc import Iterable

from drumlin import _drumlin
from drumlin._arguments.checks import names
from drumlin._arguments.named import names_arguments

__all__ = ["LaidOut"]


@names_arguments()
class LaidOut:
    """What a table has for its layout."""

    __slots__ = ()

    _core: _drumlin.Table

    def set_layout(
        self, sort_by: Iterable[str] | str | None = None, *, z_order: Iterable[str] | str | None = None
    ) -> None:
        """Says by which columns the row groups of the table are sorted from now on, so that a filter on them reads few:
        ``sort_by``, one after the other, or ``z_order``, two to four of them together, so that a filter on any of them
        reads few. Without both, row groups stay as they are.

        The table must not be sorted itself, nor have a key. What it shows, and in which order, stays the same in every
        version: each row keeps its place. Checkpoints sort row groups that overlap in these columns, the worst first,
        within their ``budget``; :meth:`stat` tells how far they are. To read all rows in order takes longer than
        before; aggregates take no longer.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("events", {"user": [3, 1, 2], "n": [1, 2, 3]})
        >>> events = store.table("events")
        >>> events.set_layout(["user"])
        >>> _ = store.checkpoint()
        >>> events.stat().layout.overlap, events.read().to_arrow()["user"].to_pylist()
        (0.0, [3, 1, 2])
        """
        columns = None if sort_by is None else names(sort_by, "sort_by")
        _drumlin.set_layout(self._core, columns, None if z_order is None else names(z_order, "z_order"))
