"""What the Arrow schema says about the frame that its rows came from: pandas' own metadata, and our description.

pandas' metadata is what pyarrow uses to write and restore frames. Our description is there if it says more::

    {"version": 1,
     "columns": {field: column, ...},        # of the columns that are not the index, in order: see columns.py
     "labels": labels,                       # absent if they are the names of the fields
     "index": [{"field": ..., "name": ..., "column": ...}, ...] or {"range": [start, stop, step], "name": ...},
     "multi": true,                          # the index is a MultiIndex
     "attrs": {...}, "unique": true,         # attrs; and that labels may not be given twice
     "renamed": [field, ...]}                # columns that got another name since, which is their label

Columns that were added later are not in it. A dropped column keeps its place among the columns, under a name with a
NUL.

Names are written as in ``scalars``. A RangeIndex is not a column but three numbers. They can become stale, so it comes
back as it was only if a read returns exactly the rows of one write; otherwise rows are numbered from 0.
"""

import json
from functools import lru_cache
from typing import Any

import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

PANDAS_KEY = b"pandas"
DESCRIPTION_KEY = b"drumlin.pandas"
VERSION = 1


def _parsed(written: bytes) -> tuple[Any, dict[str, Any]]:
    made = json.loads(written)
    if made["version"] != VERSION:
        return None, {}
    index = [] if isinstance(made["index"], dict) else made["index"]
    columns = {**made["columns"], **{level["field"]: level["column"] for level in index}}
    return made, {field: column for field, column in columns.items() if has_meaning(column)}


_parsed_remembered = lru_cache(maxsize=64)(_parsed)


def description(written: bytes) -> Any:
    """Our description, which the caller must not change; None if a newer version wrote it."""
    return _parsed_remembered(written)[0]


def dtypes_of_meaning(written: bytes) -> dict[str, Any]:
    """The descriptions of columns whose numbers depend on the dtype for their meaning."""
    return _parsed_remembered(written)[1]


def has_meaning(column: Any) -> bool:
    """Whether a column's dtype is needed to interpret its numbers: periods, and which bounds intervals
    include."""
    return isinstance(column, dict) and column["type"] in ("period", "interval")


def index_columns(metadata: dict[bytes, bytes]) -> list[str]:
    """The columns that hold the index."""
    if PANDAS_KEY not in metadata:
        return []
    return [index for index in json.loads(metadata[PANDAS_KEY])["index_columns"] if isinstance(index, str)]


def range_index(metadata: dict[bytes, bytes]) -> range | None:
    """The RangeIndex that the rows were written with, if any."""
    for index in json.loads(metadata.get(PANDAS_KEY, b'{"index_columns": []}'))["index_columns"]:
        if not isinstance(index, str) and index.get("kind") == "range":
            return range(index["start"], index["stop"], index["step"])
    return None


def pandas_metadata(
    columns: list[Any], levels: list[Any], ranged: Any, label_levels: list[Any], attrs: dict[str, Any]
) -> bytes:
    """pandas' own metadata, for others that read the rows with pyarrow. ``columns`` and ``levels`` are triples of
    label, Arrow field and pandas Series or Index; ``ranged`` is a RangeIndex, which is not a column."""
    index: list[Any] = [field.name for _, field, _ in levels]
    if ranged is not None:
        name = None if ranged.name is None else str(ranged.name)
        span = {"start": ranged.start, "stop": ranged.stop, "step": ranged.step}
        index = [{"kind": "range", "name": name, **span}]
    return json.dumps(
        {
            "index_columns": index,
            "column_indexes": [_labels(level) for level in label_levels],
            "columns": [_column(*column) for column in [*columns, *levels]],
            "attributes": attrs,
            "creator": {"library": "pyarrow", "version": pa.__version__},
            "pandas_version": pd.__version__,
        }
    ).encode()


def _labels(level: Any) -> dict[str, Any]:
    name = None if level.name is None else str(level.name)
    made = {"name": name, "field_name": name, "metadata": None}
    if str(level.dtype) in ("int64", "float64", "datetime64[ns]", "datetime64[us]"):
        return {**made, "pandas_type": str(level.dtype), "numpy_type": str(level.dtype)}
    return {**made, "pandas_type": "unicode", "numpy_type": "object", "metadata": {"encoding": "UTF-8"}}


def _column(name: Any, field: Any, values: Any) -> dict[str, Any]:
    made = {"name": None if name is None else str(name), "field_name": field.name, "metadata": None}
    dtype, kind = values.dtype, field.type
    if isinstance(dtype, pd.CategoricalDtype):
        counts = {"num_categories": len(dtype.categories), "ordered": bool(dtype.ordered)}
        numpy_type = str(values.array.codes.dtype) if pa.types.is_dictionary(kind) else "object"
        return {**made, "pandas_type": "categorical", "numpy_type": numpy_type, "metadata": counts}
    if isinstance(dtype, pd.DatetimeTZDtype):
        zone = {"timezone": kind.tz}
        return {**made, "pandas_type": "datetimetz", "numpy_type": f"datetime64[{dtype.unit}]", "metadata": zone}
    return {**made, "pandas_type": _logical(kind), "numpy_type": _named(dtype)}


def _logical(kind: Any) -> str:
    named = {
        "is_boolean": "bool",
        "is_integer": str(kind),
        "is_floating": {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(kind), ""),
        "is_date": "date",
        "is_time": "time",
        "is_binary": "bytes",
        "is_string": "unicode",
        "is_large_string": "unicode",
        "is_decimal": "decimal",
        "is_null": "empty",
        "is_timestamp": "datetime",
    }
    return next((name for test, name in named.items() if getattr(pa.types, test)(kind)), "object")


def _named(dtype: Any) -> str:
    """The name of ``dtype``, if pandas can make it from that name."""
    try:
        return str(dtype) if pd.api.types.pandas_dtype(str(dtype)) == dtype else "object"
    except (TypeError, ValueError, NotImplementedError):
        return "object"
