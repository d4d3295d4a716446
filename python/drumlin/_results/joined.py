"""Rows of two data sets that are near in time."""

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from drumlin import _drumlin
from drumlin._arguments.named import names_arguments
from drumlin._errors import InvalidArgument
from drumlin._habits import Habits
from drumlin._optional import have, need
from drumlin._results.groups import asked
from drumlin._results.rows import Rows
from drumlin._values.evidence import a_type
from drumlin._values.polars import polars_frame

if TYPE_CHECKING:
    import pandas as _pd  # type: ignore[import-untyped, unused-ignore]
    import polars as _pl
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["Joined", "Span", "Windows", "span"]

#: A number, or a length of time.
Span = int | str | dt.timedelta

#: Of a data set of the core, its columns and filters.
Side = tuple[_drumlin.Dataset, tuple[list[str] | None, list[str]]]

_LENGTH = re.compile(r"(\d+)\s*(ns|us|ms|s|m|h|d|w)")
_NANOS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 7 * 86_400_000_000_000,
}


def span(value: Any, name: str) -> tuple[bool, int]:
    """Whether it is a length of time, then in nanoseconds, or a number; and the number."""
    if type(value).__module__.startswith("numpy") and type(value).__name__ == "timedelta64":
        nanos: int | None = int(value.astype("timedelta64[ns]").astype("int64"))
    elif isinstance(value, dt.timedelta):
        # A Timedelta of pandas has nanoseconds.
        nanos = value // dt.timedelta(microseconds=1) * 1000 + getattr(value, "nanoseconds", 0)
    elif isinstance(value, str):
        length = _LENGTH.fullmatch(value.strip())
        if length is None:
            units = ", ".join(_NANOS)
            raise InvalidArgument(f"{name} is {value!r}; expected a number and one of the units {units}: '5s', '500ms'")
        nanos = int(length[1]) * _NANOS[length[2]]
    elif isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a length of time such as '5s', a timedelta, or an int, not {a_type(value)}")
    else:
        nanos = None
    far = value.__index__() if nanos is None else nanos
    if not 0 <= far < 1 << 63:
        raise InvalidArgument(f"{name} is {value!r}; expected 0 or more, and less than 2^63")
    return nanos is not None, far


class Joined(Rows, Habits):
    """The rows of a data set, each with what is near in time in another; made by :meth:`Dataset.join_asof
    <drumlin.Dataset.join_asof>` and :meth:`Dataset.join_window <drumlin.Dataset.join_window>`. No data is read until
    rows are requested. It can be read any number of times, and always shows the same instant. It is an Arrow stream:
    :meth:`Store.write <drumlin.Store.write>`, pyarrow, Polars and DuckDB take it batch by batch."""

    __slots__ = ("_join", "_text")

    def __init__(self, join: _drumlin.Join, text: str) -> None:
        self._join = join
        self._text = text

    @property
    def schema(self) -> Any:
        """The columns: a pyarrow Schema if pyarrow is installed, otherwise a :class:`drumlin.Schema`."""
        schema = self._join.schema
        return need("pyarrow", "", "").schema(schema) if have("pyarrow") else schema

    @property
    def num_rows(self) -> int:
        """The number of rows. They are read to be counted."""
        return sum(batch.num_rows for batch in self)

    def to_arrow(self) -> "_pa.Table":
        """All rows as a pyarrow Table."""
        pyarrow = need("pyarrow", "to_arrow()", "pyarrow")
        return pyarrow.table(self._all())

    def to_pandas(self, **options: Any) -> "_pd.DataFrame":
        """All rows as a pandas DataFrame, numbered from 0. ``options`` are passed to ``pyarrow.Table.to_pandas``."""
        need("pandas", "to_pandas()", "pandas")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> "_pl.DataFrame":
        """All rows as a Polars DataFrame."""
        return polars_frame(self._all())

    def _all(self) -> _drumlin.Batches:
        return self._join.collect()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._join.stream().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Any]:
        """The batches, each read when it is asked for: pyarrow RecordBatches, or without pyarrow, objects with
        ``__arrow_c_array__``."""
        stream = self._join.stream()
        return map(need("pyarrow", "", "").record_batch, stream) if have("pyarrow") else iter(stream)

    def __repr__(self) -> str:
        schema = self._join.schema
        columns = ", ".join(f"{name}: {type_}" for name, type_ in zip(schema.names, schema.types, strict=True))
        return f"Joined({self._text}, {columns})"


@names_arguments("agg")
class Windows(Habits):
    """Rows in windows around the rows of a data set; made by :meth:`Dataset.join_window
    <drumlin.Dataset.join_window>`."""

    __slots__ = ("_after", "_before", "_by", "_left", "_on", "_right", "_text")

    def __init__(
        self,
        left: Side,
        right: Side,
        on: tuple[str, str],
        by: list[str],
        before: tuple[bool, int],
        after: tuple[bool, int],
        text: str,
    ) -> None:
        self._left, self._right, self._on, self._by = left, right, on, by
        self._before, self._after, self._text = before, after, text

    def agg(self, by_column: Mapping[str, str | list[str]] | None = None, /, **aggregates: Any) -> Joined:
        """Returns each row of the left side, and what is made of the rows in its window: pairs of a column of the right
        side and a function, or ``"count"`` for the number of rows, as in :meth:`Groups.agg <drumlin.Groups.agg>`.
        Without rows, counts are 0 and all else is null."""
        wanted = asked(by_column, aggregates)
        if not wanted:
            raise InvalidArgument("agg is without aggregates; give some, such as agg(n='count', bid=('bid', 'max'))")
        join = _drumlin.Join.window(self._left, self._right, self._on, self._by, self._before, self._after, wanted)
        return Joined(join, self._text)

    def __repr__(self) -> str:
        return f"Windows({self._text}, before={self._before[1]}, after={self._after[1]})"
