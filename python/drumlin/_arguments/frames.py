"""Rows in any supported form, as an object with an Arrow stream."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeAlias

from drumlin._arguments.fit import Fit
from drumlin._errors import InvalidArgument
from drumlin._optional import have, loaded, need
from drumlin._values.evidence import a_type, type_name
from drumlin._values.exact import exact
from drumlin._values.names import check_arrow_names, check_name

__all__ = ["FrameLike", "SchemaLike"]


class ArrowStreamExportable(Protocol):
    """An Arrow stream: tables, frames and readers of many libraries."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowArrayExportable(Protocol):
    """An Arrow array, such as a record batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object: ...


class LazyFrame(Protocol):
    """A Polars LazyFrame; it is collected."""

    def collect_schema(self) -> Any: ...


class ArrowSchemaExportable(Protocol):
    """An Arrow schema."""

    def __arrow_c_schema__(self) -> object: ...


#: Rows: a pandas or Polars frame, a pyarrow Table, RecordBatch or RecordBatchReader, a DuckDB relation, a result of a
#: store, any other object with ``__arrow_c_stream__``; a dict of columns, or a list of dicts.
FrameLike: TypeAlias = (
    ArrowStreamExportable | ArrowArrayExportable | LazyFrame | Mapping[str, Any] | list[dict[str, Any]]
)
#: A schema: a pyarrow Schema, any other object with ``__arrow_c_schema__``, or a dict of names and pyarrow types.
SchemaLike: TypeAlias = ArrowSchemaExportable | Mapping[str, Any]

_EXPECTED = (
    "expected a table (a pandas or Polars DataFrame or Series, a pyarrow Table, RecordBatch or RecordBatchReader, a "
    "DuckDB relation, anything else with __arrow_c_stream__, a dict of columns or a list of dicts)"
)


def to_stream(data: Any, fit: Fit | None = None, name: str = "data") -> Any:
    """``data`` as an object from which the core can pull rows. Messages call it ``name``, unless they have something
    more specific."""
    from drumlin._results.result import Result

    if isinstance(data, Result):
        return data._reading
    if (pandas := loaded("pandas")) is not None:
        if isinstance(data, pandas.Series):
            if data.name is None:
                raise TypeError("a pandas Series without a name cannot be a column; write series.to_frame('its name')")
            data = data.to_frame()
        if isinstance(data, pandas.DataFrame):
            need("pyarrow", "a pandas DataFrame", "pandas")
            from drumlin._pandas import to_arrow

            return to_arrow(data, fit or Fit())
    if (polars := loaded("polars")) is not None:
        if isinstance(data, polars.LazyFrame):
            return _from_polars(data.collect())
        if isinstance(data, polars.Series):
            if not data.name:
                raise TypeError("a Polars Series without a name cannot be a column; write series.to_frame('its name')")
            data = data.to_frame()
        if isinstance(data, polars.DataFrame):
            return _from_polars(data)
    numpy = loaded("numpy")
    if numpy is not None and isinstance(data, numpy.ndarray) and data.dtype.names and data.ndim == 1:
        data = {field: data[field] for field in data.dtype.names}
    if (pyarrow := loaded("pyarrow")) is not None:
        if isinstance(data, (pyarrow.Array, pyarrow.ChunkedArray)):
            raise TypeError("a pyarrow array is one column, not a table; write pyarrow.table({name: array})")
        if isinstance(data, (pyarrow.Table, pyarrow.RecordBatch, pyarrow.RecordBatchReader)):
            check_arrow_names(data.schema)
    if isinstance(data, Mapping) or (isinstance(data, list) and data and isinstance(data[0], Mapping)):
        return _from_python(data)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return data
    called = f"{name}: " if name else ""
    raise TypeError(f"{called}{_EXPECTED}, got {a_type(data)}")


def _from_polars(frame: Any) -> Any:
    """``frame``; through pyarrow if it has null columns, which Polars exports with too many buffers."""
    polars = need("polars", "", "")
    for name, dtype in frame.schema.items():
        check_name(name, f"the name {name!r}")
        for part in _polars_parts(dtype):
            check_name(part, f"column {name!r}: the field's name {part!r}")
        if _holds(dtype, polars.Object):
            raise InvalidArgument(f"column {name!r}: values of type Object cannot be stored")
        if _holds(dtype, polars.Null):
            need("pyarrow", f"a Polars column of type Null ({name!r})", "pyarrow")
            return frame.to_arrow()
    return frame


def _holds(dtype: Any, kind: Any) -> bool:
    """Whether a Polars type is ``kind`` or contains it."""
    inner = [field.dtype for field in getattr(dtype, "fields", [])] + [getattr(dtype, "inner", None)]
    return bool(dtype == kind) or any(_holds(part, kind) for part in inner if part is not None)


def _polars_parts(dtype: Any) -> Iterator[str]:
    """The names of all fields within a Polars type."""
    for field in getattr(dtype, "fields", []):
        yield field.name
        yield from _polars_parts(field.dtype)
    if (inner := getattr(dtype, "inner", None)) is not None:
        yield from _polars_parts(inner)


def _from_python(data: Any) -> Any:
    if isinstance(data, Mapping):
        what, columns = "dict of columns", dict(data)
    else:
        what, columns = "list of dicts", _columns_of(data)
    for name, values in columns.items():
        if not isinstance(name, str):
            raise TypeError(f"a column's name must be a str, not {name!r} ({type_name(name)})")
        check_name(name, f"the name {name!r}")
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise TypeError(f"column {name!r} must be a list or array of values, not {a_type(values)}")
        columns[name] = exact(values, name)
    try:
        if have("pyarrow"):
            table = need("pyarrow", "", "").table(columns)
            check_arrow_names(table.schema)
            return table
        if have("polars"):
            return _from_polars(need("polars", "", "").DataFrame(columns))
    except (ImportError, InvalidArgument):
        raise
    except Exception as error:
        raise InvalidArgument(f"cannot make a table of the {what}: {error}") from error
    return need("pyarrow", f"a {what}", "pyarrow")


def _columns_of(rows: list[Any]) -> dict[Any, list[Any]]:
    """A list of dicts as columns, in the order in which their names first appear; what a row lacks is None."""
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"row {at} is {a_type(row)}; expected a dict")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def to_schema(schema: Any, name: str = "schema") -> Any:
    """``schema`` as an object with ``__arrow_c_schema__``."""
    if isinstance(schema, Mapping) and not hasattr(schema, "__arrow_c_schema__"):
        pyarrow = need("pyarrow", "a schema as a dict", "pyarrow")
        try:
            return to_schema(pyarrow.schema(list(schema.items())), name)
        except InvalidArgument:
            raise
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"{name}: cannot make a schema of the dict: {error}") from error
    if hasattr(schema, "__arrow_c_schema__"):
        if (pyarrow := loaded("pyarrow")) is not None and isinstance(schema, pyarrow.Schema):
            check_arrow_names(schema)
        return schema
    raise TypeError(
        f"{name}: expected a schema (a pyarrow Schema, anything else with __arrow_c_schema__, or a dict of names and "
        f"pyarrow types), got {a_type(schema)}"
    )
