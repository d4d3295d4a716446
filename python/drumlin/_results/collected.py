"""Rows of many results, read at once."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from drumlin import _drumlin
from drumlin._optional import need

if TYPE_CHECKING:
    import pandas as _pd  # type: ignore[import-untyped, unused-ignore]

__all__ = ["Collectable", "collect", "to_pandas"]


class Collectable(Protocol):
    """A result."""

    _reading: Any

    @property
    def schema(self) -> Any:
        """The columns."""

    def _is_whole(self, written: range | None) -> bool:
        """Whether the rows are exactly those of one write."""


#: For each result: the columns to read (None: its own), and whether they may be returned as arrays.
_Asked: TypeAlias = tuple[list[str] | None, bool]


def collect(
    results: Sequence[Collectable], asked: list[_Asked] | None = None, make: Callable[[int, Any], Any] | None = None
) -> list[Any]:
    """All rows of the results, decoded at once: as batches, or as what ``make`` returns for a result's position and its
    arrays, called while others are being decoded."""
    asked = [(None, False)] * len(results) if asked is None else asked
    places, readings = [], []
    collected: list[Any] = []
    for at, (result, (columns, arrays)) in enumerate(zip(results, asked, strict=True)):
        if isinstance(result._reading, _drumlin.Reading):
            places.append(at)
            readings.append((result._reading, columns, arrays))
            collected.append(None)
        else:
            collected.append(result._reading.collect(columns))

    def made(at: int, groups: Any) -> Any:
        return None if make is None else make(places[at], groups)

    for at, rows in zip(places, _drumlin.collect_many(readings, made), strict=True):
        collected[at] = rows
    return collected


def to_pandas(results: Sequence[Collectable], options: dict[str, Any]) -> "list[_pd.DataFrame]":
    """The frames of the results: numeric ones directly from the store, others through pyarrow."""
    pyarrow = need("pyarrow", "to_pandas()", "pandas")
    need("pandas", "to_pandas()", "pandas")
    from drumlin import _pandas

    plans: list[_pandas.Plain | None] = []
    asked: list[_Asked] = []
    for result in results:
        schema = result.schema
        plan = None if options else _pandas.plain(schema)
        plans.append(plan)
        if plan is not None:
            asked.append((None, True))
            continue
        names = schema.names
        missing = [name for name in _pandas.index_columns(schema.metadata) if name not in names]
        asked.append(([*names, *missing] if missing else None, False))

    def frame_of_arrays(at: int, groups: Any) -> "_pd.DataFrame":
        plan = plans[at]
        assert plan is not None
        return _pandas.from_numpy(groups, plan, whole=results[at]._is_whole(plan.range))

    def frame_of_batches(result: Collectable, batches: _drumlin.Batches) -> "_pd.DataFrame":
        table = pyarrow.table(batches)
        whole = result._is_whole(_pandas.range_index(table.schema.metadata or {}))
        return _pandas.from_arrow(table, whole=whole, options=options)

    made = zip(results, collect(results, asked, frame_of_arrays), strict=True)
    return [frame_of_batches(result, rows) if isinstance(rows, _drumlin.Batches) else rows for result, rows in made]
