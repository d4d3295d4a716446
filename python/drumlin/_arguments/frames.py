"""Rows in any supported form, as an object with an Arrow stream."""

import contextlib
import datetime as dt
import decimal
import io
import os
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeAlias

from drumlin import _drumlin
from drumlin._arguments.fit import Fit
from drumlin._arguments.objects import as_dict, is_object
from drumlin._errors import Error, InvalidArgument
from drumlin._habits import instead
from drumlin._optional import have, loaded, need
from drumlin._values.evidence import a_type, shown, type_name
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
#: store, any other object with ``__arrow_c_stream__``; a dict of columns, or a list of dicts; a pyarrow data set,
#: scanner or ParquetFile; the path of a Parquet, CSV, Arrow or JSON file; an iterator of batches, frames or dicts, or a
#: list of batches, frames or paths.
FrameLike: TypeAlias = (
    ArrowStreamExportable
    | ArrowArrayExportable
    | LazyFrame
    | Mapping[str, Any]
    | list[Any]
    | Iterator[Any]
    | str
    | os.PathLike[str]
)
#: A schema: a pyarrow Schema, any other object with ``__arrow_c_schema__``, or a dict of names and types: of pyarrow,
#: Python, NumPy or Polars, or as text by the names of Arrow or SQL.
SchemaLike: TypeAlias = ArrowSchemaExportable | Mapping[str, Any]

_EXPECTED = (
    "expected a table (a pandas or Polars DataFrame or Series, a pyarrow Table, RecordBatch or RecordBatchReader, a "
    "DuckDB relation, anything else with __arrow_c_stream__, a dict of columns, a list of dicts, an iterator of "
    "batches, or the path of a file)"
)


def to_stream(data: Any, fit: Fit | None = None, name: str = "data") -> Any:
    """``data`` as an object from which the core can pull rows. Messages call it ``name``, unless they have something
    more specific."""
    # A result of ours need not go through an Arrow stream.
    reading = getattr(data, "_reading", None)
    if isinstance(reading, (_drumlin.Reading, _drumlin.Batches)):
        return reading
    if (pandas := loaded("pandas")) is not None:
        if isinstance(data, pandas.Series):
            if data.name is None:
                raise TypeError(
                    "a pandas Series without a name is no column; a column is series.to_frame('its name'), a row "
                    "[series.to_dict()]"
                )
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
        data = _read(data)
        if isinstance(data, (pyarrow.Table, pyarrow.RecordBatch, pyarrow.RecordBatchReader)):
            check_arrow_names(data.schema)
    if isinstance(data, Mapping) or (isinstance(data, list) and data and _is_row(data[0])):
        return _from_python(data, fit)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return data
    called = f"{name}: " if name else ""
    if isinstance(data, (str, os.PathLike)):
        return _file(os.path.expanduser(os.fspath(data)), called)
    kind = type_name(data)
    if isinstance(data, list):
        if not data or isinstance(data[0], (str, os.PathLike)) or _is_frame(data[0]):
            return _from_batches(iter(data), fit, called)
        kind = f"list:{type(data[0]).__name__}"
    if isinstance(data, Iterator) and not isinstance(data, io.IOBase):
        return _from_batches(data, fit, called)
    raise TypeError(f"{called}{_EXPECTED}, got {a_type(data)}{instead('data', kind)}")


def _is_row(data: Any) -> bool:
    return isinstance(data, Mapping) or is_object(data)


def _is_frame(data: Any) -> bool:
    """Whether it is a frame, a table or a batch."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__") or hasattr(data, "columns")


def _read(data: Any) -> Any:
    """Data sets, scanners and files of pyarrow as readers of their batches; anything else as it is."""
    if (dataset := loaded("pyarrow.dataset")) is not None:
        if isinstance(data, dataset.Dataset) and not hasattr(data, "__arrow_c_stream__"):
            data = data.scanner()
        if isinstance(data, dataset.Scanner):
            return data.to_reader()
    if (parquet := loaded("pyarrow.parquet")) is not None and isinstance(data, parquet.ParquetFile):
        reader = need("pyarrow", "", "").RecordBatchReader
        return reader.from_batches(data.schema_arrow, data.iter_batches())
    return data


#: What reads a file, by the end of its name.
_FILES = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".csv.gz", ".csv.zst", ".tsv"), "csv"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "ipc"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
}


def _file(path: str, called: str) -> Any:
    """The rows of a file: Parquet, CSV, Arrow IPC or lines of JSON."""
    kind = next((kind for end, kind in _FILES.items() if path.lower().endswith(end)), None)
    if kind is None:
        folder = "; here: pyarrow.dataset.dataset(folder)" if os.path.isdir(path) else ""
        raise TypeError(
            f"{called}{shown(path)} is the path of no kind of file that is read: {', '.join(_FILES)}{folder}"
        )
    if not os.path.exists(path):
        pattern = "; here: sorted(glob.glob(pattern))" if "*" in path else ""
        raise InvalidArgument(f"{called}there is no file {shown(path, 200)}{pattern}")
    pyarrow = need("pyarrow", "a file as rows", "pyarrow")
    try:
        if kind == "parquet":
            return _read(need("pyarrow.parquet", "a Parquet file", "pyarrow").ParquetFile(path))
        if kind == "csv":
            csv = need("pyarrow.csv", "a CSV file", "pyarrow")
            parse = csv.ParseOptions(delimiter="\t" if path.lower().endswith(".tsv") else ",")
            return csv.read_csv(path, parse_options=parse)
        if kind == "json":
            return need("pyarrow.json", "a JSON file", "pyarrow").read_json(path)
        return need("pyarrow.feather", "an Arrow file", "pyarrow").read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidArgument(f"{called}the file {shown(path, 200)} cannot be read: {error}") from error


def _from_batches(items: Iterator[Any], fit: Fit | None, called: str) -> Any:
    """Batches, tables or rows that come one by one, of which the first says what the columns are."""
    pyarrow = need("pyarrow", "batches one by one", "pyarrow")
    first = next(items, None)
    if first is None:
        raise InvalidArgument(f"{called}there are no rows, so the columns are not known; give a frame without rows")
    plain = as_dict(first) if is_object(first) else first
    if isinstance(plain, Mapping) and not any(
        hasattr(value, "__len__") and not isinstance(value, (str, bytes)) for value in plain.values()
    ):
        return to_stream([first, *items], fit)

    def table(item: Any) -> Any:
        made = to_stream(item, fit)
        return (
            pyarrow.table(made)
            if hasattr(made, "__arrow_c_stream__")
            else pyarrow.Table.from_batches([pyarrow.record_batch(made)])
        )

    begun = table(first)
    check_arrow_names(begun.schema)

    def batches() -> Iterator[Any]:
        yield from begun.to_batches()
        for at, item in enumerate(items, 1):
            more = table(item)
            if not more.schema.equals(begun.schema):
                raise InvalidArgument(
                    f"{called}item {at} of the iterator has the columns {more.schema.names}, not in names or types "
                    f"those of the first, {begun.schema.names}"
                )
            yield from more.to_batches()

    return pyarrow.RecordBatchReader.from_batches(begun.schema, batches())


def _from_polars(frame: Any) -> Any:
    """``frame``; through pyarrow if it has null columns, which Polars exports with too many buffers."""
    polars = need("polars", "", "")
    for name, dtype in frame.schema.items():
        check_name(name, f"the name {name!r}")
        for part in _polars_parts(dtype):
            check_name(part, f"column {name!r}: the field's name {part!r}")
        if any(
            _holds(dtype, wide)
            for wide in (getattr(polars, n, polars.Object) for n in ("Int128", "UInt128"))
            if wide is not polars.Object
        ):
            raise InvalidArgument(f"column {name!r}: {dtype} of Polars has no Arrow type; cast it to pl.Decimal(38, 0)")
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


def _from_python(data: Any, fit: Fit | None) -> Any:
    if isinstance(data, Mapping):
        what, columns = "dict of columns", dict(data)
    else:
        what, columns = "list of dicts", _columns_of(data)
    for name, values in columns.items():
        if not isinstance(name, str):
            raise TypeError(f"a column's name must be a str, not {name!r} ({type_name(name)})")
        check_name(name, f"the name {name!r}")
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise TypeError(
                f"column {name!r} must be a list or array of values, not {a_type(values)}; "
                f"one row is [{{{name!r}: ...}}], or table.upsert({{{name!r}: ...}}) by key; a JSON value is kept by "
                "store.tree.put(path, value)"
            )
        columns[name] = exact(values, name)
    try:
        if have("pyarrow"):
            table = need("pyarrow", "", "").table(columns)
            check_arrow_names(table.schema)
            schema = None if fit is None or fit.onto is None else fit.onto()
            return table if schema is None else _in_types_of(schema, columns, table)
        if have("polars"):
            return _from_polars(need("polars", "", "").DataFrame(columns))
    except (ImportError, Error):
        raise
    except Exception as error:
        raise InvalidArgument(f"cannot make a table of the {what}: {error}") from error
    inferred = [(name, _inferred(values)) for name, values in columns.items()]
    if columns and all(kind is not None for _, kind in inferred):
        schema = _drumlin.Schema.parse([(name, kind) for name, kind in inferred if kind is not None])
        return _drumlin.Batches.of(schema, [list(values) for values in columns.values()])
    return need("pyarrow", f"a {what} of such values", "pyarrow")


def _in_types_of(schema: _drumlin.Schema, columns: dict[str, Any], table: Any) -> Any:
    """``table``, made of ``columns``, with the types of ``schema`` for lists of Python values, which have none of their
    own, where every value fits. A table takes plain values into its dictionaries by itself."""
    pyarrow = need("pyarrow", "", "")
    for field in pyarrow.schema(schema):
        values = columns.get(field.name)
        if not isinstance(values, (list, tuple, range)) or pyarrow.types.is_dictionary(field.type):
            continue
        if table.field(field.name).type != field.type:
            with contextlib.suppress(InvalidArgument):
                kind = pyarrow.schema([(field.name, field.type)])
                made = pyarrow.table(_drumlin.Batches.of(_drumlin.Schema(kind), [list(values)]))
                table = table.set_column(table.schema.get_field_index(field.name), kind[0], made[0])
    return table


def _inferred(values: Any) -> str | None:
    """The type of a list of plain values, as pyarrow would infer it; None if that takes pyarrow."""
    if not isinstance(values, (list, tuple, range)):
        return None
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return "double"
    if kinds == {dt.datetime}:
        zoned = {getattr(value, "tzinfo", None) is not None for value in values if value is not None}
        return None if len(zoned) > 1 else "timestamp[us, tz=UTC]" if True in zoned else "timestamp[us]"
    kind = kinds.pop() if len(kinds) == 1 else type(None) if not kinds else object
    return "null" if kind is type(None) else _TYPES.get(kind)


def _columns_of(rows: list[Any]) -> dict[Any, list[Any]]:
    """A list of dicts, or of objects, as columns, in the order in which their names first appear; what a row lacks is
    None."""
    rows = [row if isinstance(row, Mapping) else as_dict(row) or row for row in rows]
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"row {at} is {a_type(row)}; expected a dict")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def to_schema(schema: Any, name: str = "schema") -> Any:
    """``schema`` as an object with ``__arrow_c_schema__``."""
    if isinstance(schema, Mapping) and not hasattr(schema, "__arrow_c_schema__"):
        columns = {column: type_of(given, f"{name}: column {column!r}") for column, given in schema.items()}
        if all(isinstance(column, str) and isinstance(given, str) for column, given in columns.items()):
            return _parsed(list(columns.items()), name)
        pyarrow = need("pyarrow", "a schema as a dict", "pyarrow")

        def arrow(column: str, given: Any) -> Any:
            return pyarrow.schema(_parsed([(column, given)], name)).field(0).type if isinstance(given, str) else given

        try:
            fields = [(column, arrow(column, given)) for column, given in columns.items()]
            return to_schema(pyarrow.schema(fields), name)
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
        f"types), got {a_type(schema)}{instead('schema', type_name(schema))}"
    )


def _parsed(columns: list[tuple[str, str]], name: str) -> _drumlin.Schema:
    try:
        return _drumlin.Schema.parse(columns)
    except InvalidArgument as error:
        named = (instead("types", word) for _, kind in columns for word in (kind.lower(), kind.lower().split(" ")[-1]))
        raise InvalidArgument(f"{name}: {error}{next(filter(None, named), '')}") from None


#: Types of Python as Arrow's.
_TYPES: dict[Any, str] = {
    bool: "bool",
    int: "int64",
    float: "double",
    str: "string",
    bytes: "binary",
    dt.datetime: "timestamp[us]",
    dt.date: "date32",
    dt.time: "time64[us]",
    dt.timedelta: "duration[us]",
}


def type_of(given: Any, called: str) -> Any:
    """A type as pyarrow's, or as text for the core: of a type of pyarrow, Python, NumPy or Polars, or a name."""
    if isinstance(given, str) or type(given).__module__.startswith("pyarrow"):
        return given
    if isinstance(given, type) and given in _TYPES:
        return _TYPES[given]
    if given is decimal.Decimal:
        raise InvalidArgument(f"{called}: a Decimal needs its digits; write 'decimal(18, 4)'")
    if given is uuid.UUID:
        return need("pyarrow", "a column of UUIDs", "pyarrow").uuid()
    module = type(given).__module__ if not isinstance(given, type) else given.__module__
    try:
        if module.startswith("numpy"):
            return need("pyarrow", "a type of NumPy", "pyarrow").from_numpy_dtype(need("numpy", "", "").dtype(given))
        if module.startswith("polars"):
            return need("polars", "", "").Series([], dtype=given).to_arrow().type
    except Exception as error:
        raise InvalidArgument(f"{called}: {given!r} has no Arrow type: {error}") from error
    raise InvalidArgument(
        f"{called}: {given!r} is no type; expected one such as pyarrow.int64(), int, 'int64' or 'numeric(10, 2)'"
    )
