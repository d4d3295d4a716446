"""Many small frames that are alike: pyarrow's description of the first serves the others.

For a frame of some rows, describing it takes longer than converting it. The description says the same of all frames
with equal labels, dtypes and index, if these are of NumPy and the index is stored as a column.
"""

from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

#: How many kinds of frames are remembered; then all are forgotten.
_MOST = 64

_schemas: dict[Any, pa.Schema] = {}


def _kind(frame: pd.DataFrame) -> tuple[Any, list[Any]] | None:
    """What frames that are alike have in common, and the values of its columns; None if it is not so simple."""
    index = frame.index
    columns = getattr(frame, "_iter_column_arrays", None)
    if columns is None or isinstance(index, (pd.RangeIndex, pd.MultiIndex)) or not _is_simple(index.dtype):
        return None
    arrays = [getattr(values, "_ndarray", values) for values in columns()]
    types = tuple(getattr(values, "dtype", None) for values in arrays)
    if not all(map(_is_simple, types)) or frame.attrs or not frame.flags.allows_duplicate_labels:
        return None
    labels = frame.columns
    if type(labels) is not pd.Index:
        return None
    try:
        kind = (tuple(labels), labels.name, str(labels.dtype), types, index.name, type(index.name), index.dtype)
        hash(kind)
    except TypeError:
        return None
    return kind, arrays


def _is_simple(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "iufbM" and dtype.isnative and dtype != np.float16


def from_alike(frame: pd.DataFrame) -> pa.Table | None:
    """``frame`` as pyarrow converts it; None if no frame like it has been remembered."""
    if not _schemas or (known := _kind(frame)) is None or (schema := _schemas.get(known[0])) is None:
        return None
    values = [*known[1], frame.index.to_numpy()]
    arrays = [pa.array(own, type_, from_pandas=True) for own, type_ in zip(values, schema.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def remember(frame: pd.DataFrame, table: pa.Table) -> pa.Table:
    """Remembers how pyarrow has converted ``frame``, which it restores from pandas' metadata alone."""
    known = _kind(frame)
    if known is not None and len(table.schema) == len(known[1]) + 1:
        if len(_schemas) >= _MOST:
            _schemas.clear()
        _schemas[known[0]] = table.schema
    return table
