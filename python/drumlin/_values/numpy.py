"""Rows as NumPy arrays."""

from typing import TYPE_CHECKING, Any

from drumlin._errors import InvalidArgument
from drumlin._optional import need

if TYPE_CHECKING:
    import numpy as _np
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["structured"]


def structured(table: "_pa.Table", path: str) -> "_np.ndarray[Any, Any]":
    """A structured array with a field for each column."""
    numpy, pyarrow = need("numpy", "to_numpy()", "numpy"), need("pyarrow", "to_numpy()", "pyarrow")
    names = table.column_names
    columns = [_column(name, column, path, numpy, pyarrow) for name, column in zip(names, table.columns, strict=True)]
    rows = numpy.empty(table.num_rows, dtype={"names": names, "formats": [column.dtype for column in columns]})
    for name, column in zip(names, columns, strict=True):
        rows[name] = column
    return rows  # type: ignore[no-any-return, unused-ignore]


def check_times(column: Any, what: str) -> None:
    """Checks that Python's times, which have microseconds, can represent those of a column."""
    if column.type.unit != "ns":
        return
    numbers = column.cast(need("pyarrow", "", "").int64()).drop_null().to_numpy()
    if (numbers % 1000).any():
        raise InvalidArgument(f"{what} of type {column.type} has times finer than Python's: use to_arrow()")


def _column(name: str, column: Any, path: str, numpy: Any, pyarrow: Any) -> Any:
    types = pyarrow.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_timestamp(kind) and kind.tz is not None:
        raise InvalidArgument(f"'{path}': column {name!r} has the time zone {kind.tz}; numpy has none: use to_pandas()")
    if types.is_floating(kind) or types.is_timestamp(kind) or types.is_duration(kind) or types.is_date32(kind):
        # A missing value is NaN or NaT.
        return column.to_numpy()
    if types.is_integer(kind) or types.is_boolean(kind):
        if column.null_count:
            raise InvalidArgument(
                f"'{path}': column {name!r} of type {kind} has {column.null_count} missing values, and numpy has none "
                "for it: use to_pandas(), or where= to leave them out"
            )
        return column.to_numpy()
    if types.is_time64(kind):
        check_times(column, f"'{path}': column {name!r}")
    objects = numpy.empty(len(column), dtype=object)
    for at, value in enumerate(column.to_pylist()):
        # One by one, because NumPy would take a list of lists as rows.
        objects[at] = value
    return objects
