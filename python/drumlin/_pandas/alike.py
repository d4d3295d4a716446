"""Many small frames that are alike: pyarrow's description of the first serves the others.

For a frame of some rows, describing it takes longer than converting it. The description says the same of all frames
with equal labels, dtypes and index, if these are of NumPy; of a RangeIndex it begins with the range.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

#: How many kinds of frames are remembered; then all are forgotten.
_MOST = 64

#: The schema of each kind of frame, and of one with a RangeIndex what its description says after the range.
_schemas: dict[Any, tuple[pa.Schema, bytes | None]] = {}

_PANDAS = b"pandas"
#: Columns of this length are converted side by side, as pyarrow itself does.
_MANY_ROWS = 10_000


def _kind(frame: pd.DataFrame) -> tuple[Any, list[Any], bytes | None] | None:
    """What frames that are alike have in common, the values of its columns, and what its description begins with if its
    index is a RangeIndex; None if it is not so simple."""
    index, span = frame.index, None
    columns = getattr(frame, "_iter_column_arrays", None)
    if columns is None or isinstance(index, pd.MultiIndex) or not _is_simple(index.dtype):
        return None
    if isinstance(index, pd.RangeIndex):
        if not (index.name is None or isinstance(index.name, str)):
            return None
        ends = {"start": index.start, "stop": index.stop, "step": index.step}
        span = f'{{"index_columns": [{json.dumps({"kind": "range", "name": index.name, **ends})}]'.encode()
    owns = list(columns())
    # Periods, and times of a zone, are kept in arrays of NumPy that do not say so.
    types = tuple(getattr(values, "dtype", None) for values in owns)
    arrays = [getattr(values, "_ndarray", values) for values in owns]
    if not all(map(_is_simple, types)) or frame.attrs or not frame.flags.allows_duplicate_labels:
        return None
    labels = frame.columns
    if type(labels) is not pd.Index:
        return None
    try:
        named = (index.name, type(index.name), index.dtype)
        kind = (tuple(labels), labels.name, str(labels.dtype), types, span is None, *named)
        hash(kind)
    except TypeError:
        return None
    return kind, arrays, span


def _is_simple(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "iufbM" and dtype.isnative and dtype != np.float16


def from_alike(frame: pd.DataFrame) -> pa.Table | None:
    """``frame`` as pyarrow converts it; None if no frame like it has been remembered."""
    if not _schemas or (kind := _kind(frame)) is None or (known := _schemas.get(kind[0])) is None:
        return None
    (schema, rest), (_, values, span) = known, kind
    if rest is None or span is None:
        values = [*values, frame.index.to_numpy()]
    else:
        schema = schema.with_metadata({**schema.metadata, _PANDAS: span + rest})
    if len(frame) < _MANY_ROWS:
        arrays = list(map(_to_array, values, schema.types))
    else:
        with ThreadPoolExecutor(pa.cpu_count()) as pool:
            arrays = list(pool.map(_to_array, values, schema.types))
    return pa.Table.from_arrays(arrays, schema=schema)


def _to_array(values: Any, type_: pa.DataType) -> pa.Array:
    return pa.array(values, type_, from_pandas=True)


def remember(frame: pd.DataFrame, table: pa.Table) -> pa.Table:
    """Remembers how pyarrow has converted ``frame``, which it restores from pandas' metadata alone."""
    if (found := _kind(frame)) is None:
        return table
    (kind, values, span), rest = found, None
    if span is not None:
        described = table.schema.metadata.get(_PANDAS, b"")
        if not described.startswith(span):
            return table
        rest = described[len(span) :]
    if len(table.schema) == len(values) + (span is None):
        if len(_schemas) >= _MOST:
            _schemas.clear()
        _schemas[kind] = (table.schema, rest)
    return table
