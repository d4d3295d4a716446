"""The pandas frame that an Arrow table was made from."""

import json
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from drumlin._pandas.columns import decode
from drumlin._pandas.description import DESCRIPTION_KEY, description
from drumlin._pandas.dtypes import MOMENTS, NUMBERS
from drumlin._pandas.labels import labels_from_json
from drumlin._pandas.plain import from_table
from drumlin._pandas.scalars import scalar_from_json

_THREADS_FROM_BYTES = 4 << 20
#: With more columns than this, a frame of separate arrays is slow to work with.
_SEPARATE_MAX = 100


def from_arrow(table: pa.Table, *, whole: bool, options: dict[str, Any]) -> pd.DataFrame:
    """The frame that ``table`` was made from; ``whole`` says that it has exactly the rows of one write."""
    metadata: dict[bytes, bytes] = table.schema.metadata or {}
    made = None if options or DESCRIPTION_KEY not in metadata else description(metadata[DESCRIPTION_KEY])
    if made is None or _fields(made).isdisjoint(table.schema.names):
        return from_table(table, whole=whole, options=options)
    index = _index(table, made, whole)
    held = {} if isinstance(made["index"], dict) else {level["field"] for level in made["index"]}
    names = [name for name in table.schema.names if name not in held]
    # Columns that were added later are converted by pyarrow.
    described = made["columns"]
    numbers = [name for name in names if name not in described or _is_number(table[name], described[name])]
    frame = _numbers(table.select(numbers))
    if len(numbers) < len(names):
        arrays = {
            at: frame[name].array if name in frame.columns else _series(table[name], described[name], index)
            for at, name in enumerate(names)
        }
        frame = pd.DataFrame(arrays, index=index, copy=len(names) > _SEPARATE_MAX)
    else:
        frame.index = index
    frame.columns = _labels(made, names)
    if "attrs" in made:
        frame.attrs = json.loads(json.dumps(made["attrs"]))
    if made.get("unique") and frame.index.is_unique:
        frame.flags.allows_duplicate_labels = False
    return frame


def _series(column: pa.ChunkedArray, made: Any, index: Any) -> Any:
    array = decode(column, made)
    # pandas would infer other types for bare objects.
    return pd.Series(array, index=index, dtype=object) if array.dtype == np.dtype(object) else array


def _fields(made: Any) -> set[str]:
    index = made["index"]
    return {*made["columns"], *(() if isinstance(index, dict) else (level["field"] for level in index))}


def _is_number(column: Any, made: Any) -> bool:
    """Whether pyarrow restores the column, together with others."""
    return (
        made in MOMENTS or (made in NUMBERS and (made.startswith("float") or not column.null_count))
        if isinstance(made, str)
        else False
    )


def _numbers(table: pa.Table) -> pd.DataFrame:
    # For a small table, passing it to threads takes longer than converting it.
    threads = table.nbytes >= _THREADS_FROM_BYTES
    frame: pd.DataFrame = table.replace_schema_metadata(None).to_pandas(use_threads=threads)
    return frame


def _index(table: pa.Table, made: Any, whole: bool) -> Any:
    index = made["index"]
    if isinstance(index, dict):
        written = range(*index["range"])
        if not (whole and len(written) == table.num_rows):
            written = range(table.num_rows)
        return pd.RangeIndex(written, name=scalar_from_json(index["name"]))
    # The keys of a look-up come without the other columns.
    index = [level for level in index if level["field"] in table.schema.names]
    if not index:
        return pd.RangeIndex(table.num_rows)
    arrays = [decode(table[level["field"]], level["column"]) for level in index]
    levels = [pd.Index(array, dtype=array.dtype, tupleize_cols=False) for array in arrays]
    names = [scalar_from_json(level["name"]) for level in index]
    if made["multi"] and (len(levels) > 1 or len(made["index"]) == 1):
        return pd.MultiIndex.from_arrays(levels, names=names)
    # A name that is a tuple is one name, not several.
    levels[0].name = names[0]
    return levels[0]


def _labels(made: Any, names: list[str]) -> Any:
    if "labels" not in made:
        return pd.Index(names)
    labels = labels_from_json(made["labels"])
    written = list(made["columns"])
    if names == written and "renamed" not in made:
        return labels
    places = {name: at for at, name in enumerate(written)}
    apart = {*names}.difference(written).union(made.get("renamed", ()))
    if apart.isdisjoint(names):
        return labels.take([places[name] for name in names])
    known = labels.tolist()
    if isinstance(labels, pd.MultiIndex):
        alone = ("",) * (labels.nlevels - 1)
        mixed = [(name, *alone) if name in apart else known[places[name]] for name in names]
        return pd.MultiIndex.from_tuples(mixed, names=labels.names)
    mixed = [name if name in apart else known[places[name]] for name in names]
    return pd.Index(mixed, name=labels.name, tupleize_cols=False)
