"""Frames of plain columns, which pyarrow restores from pandas' own metadata. Also frames that an earlier version of
Drumlin wrote, or that came as Arrow tables, since they have no description of ours.

Frames of only numbers are made from the core's arrays without pyarrow.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped, unused-ignore]

from drumlin._pandas.description import DESCRIPTION_KEY, PANDAS_KEY, index_columns, range_index
from drumlin._pandas.dtypes import MASKED, MOMENTS, NUMBERS
from drumlin._values.numpy import check_times

# What earlier versions wrote: names of columns with more than one type, and the first categories of each categorical
# column, for reads that return no rows and so no dictionary.
_NAMES_KEY = b"drumlin.pandas.names"
_CATEGORIES_KEY = b"drumlin.pandas.categories"
# Types that pyarrow restores for columns, but not for an index.
_INDEX_TYPES = frozenset({"object", *MASKED.values()})
#: dtypes that pyarrow restores unchanged for columns.
_PLAIN = (NUMBERS | MOMENTS) - {"float16"}
#: dtypes that it also restores for an index.
_PLAIN_INDEX = _PLAIN - {"bool"}


def is_plain(frame: pd.DataFrame) -> bool:
    """Whether pyarrow restores ``frame`` from pandas' metadata alone."""
    labels, index = frame.columns, frame.index
    if type(labels) is not pd.Index or labels.inferred_type != "string" or not labels.is_unique:
        return False
    if not set(map(type, (labels.name, *index.names))) <= {str, type(None)} or frame.attrs:
        return False
    if type(index) is not pd.RangeIndex and (index.nlevels > 1 or str(index.dtype) not in _PLAIN_INDEX):
        return False
    if index.name is not None and (index.name in labels or "\0" in index.name):
        return False
    # pyarrow takes such a name as no name.
    if index.name is not None and index.name.startswith("__index_level_"):
        return False
    if not all(str(dtype) in _PLAIN for dtype in set(frame.dtypes)) or not frame.flags.allows_duplicate_labels:
        return False
    names = list(labels)
    if "\0" in "".join(names) or set(map(type, names)) != {str}:
        return False
    return bool(pd.Index(names[:1]).dtype == labels.dtype)


#: NumPy types that can represent all values of Arrow types.
_KINDS = {
    "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float": "float32",
    "double": "float64",
    **{f"timestamp[{unit}]": f"datetime64[{unit}]" for unit in ("s", "ms", "us", "ns")},
}


@dataclass(frozen=True, slots=True)
class Plain:
    """How to make a frame from columns of only numbers."""

    #: The names of all columns except the index.
    columns: pd.Index
    #: The position of the index among the columns, and its name.
    index: tuple[int, str | None] | None
    #: The RangeIndex that the rows were written with.
    range: range | None


def _plain(names: tuple[str, ...], types: tuple[str, ...], written: bytes | None) -> Plain | None:
    """``types`` are Arrow types, ``written`` is pandas' metadata."""
    kinds = [_KINDS.get(kind) for kind in types]
    if None in kinds:
        return None
    if written is None:
        return Plain(pd.Index(list(names)), None, None)
    pandas = json.loads(written)
    levels, index = pandas["column_indexes"], pandas["index_columns"]
    if len(levels) != 1 or levels[0]["pandas_type"] != "unicode" or len(index) > 1 or pandas.get("attributes"):
        return None
    described = {column["field_name"]: column for column in pandas["columns"]}
    stored = index[0] if index and isinstance(index[0], str) else None
    if not set(names) <= set(described) or (stored is not None and stored not in names):
        return None
    if any(column["name"] != name and name != stored for name, column in described.items()):
        return None
    columns = pd.Index([name for name in names if name != stored], name=levels[0]["name"])
    place = None if stored is None else (names.index(stored), described[stored]["name"])
    if [described[name]["numpy_type"] for name in names] != kinds:
        return None
    rows = None
    if index and stored is None:
        if index[0].get("kind") != "range" or index[0]["name"] is not None:
            return None
        rows = range(index[0]["start"], index[0]["stop"], index[0]["step"])
    return Plain(columns, place, rows)


_plain_remembered = lru_cache(maxsize=256)(_plain)


def plain(schema: Any) -> Plain | None:
    """How to make a frame from columns with ``schema``, if they may be all plain numbers."""
    metadata = schema.metadata
    if not metadata.keys().isdisjoint((DESCRIPTION_KEY, _NAMES_KEY, _CATEGORIES_KEY)):
        return None
    try:
        how = _plain_remembered(tuple(schema.names), tuple(schema.types), metadata.get(PANDAS_KEY))
    except (KeyError, TypeError, ValueError):
        # pandas did not write this.
        return None
    return how if how is not None and len(how.columns) > 0 else None


def from_numpy(groups: list[tuple[Any, str, list[int]]], how: Plain, *, whole: bool) -> pd.DataFrame:
    """The frame of the columns in ``groups``: each has an array with one row for each column, their type, and the
    columns' positions."""
    arrays: dict[int, np.ndarray[Any, Any]] = {}
    for array, kind, places in groups:
        typed = array.view(kind) if kind.startswith("datetime64") else array
        arrays.update(zip(places, typed, strict=True))
    rows = groups[0][0].shape[1]
    if how.index is not None:
        place, name = how.index
        index = pd.Index(arrays.pop(place), name=name)
    elif how.range is not None and whole and len(how.range) == rows:
        index = pd.RangeIndex(how.range)
    else:
        index = pd.RangeIndex(rows)
    if len(groups) == 1 and how.index is None:
        return pd.DataFrame(typed.T, index=index, columns=how.columns.copy(), copy=False)
    frame = pd.DataFrame({place: arrays[place] for place in sorted(arrays)}, index=index, copy=False)
    # Each frame gets its own copy of the labels, since names can be set on it.
    frame.columns = how.columns.copy()
    return frame


_THREADS_FROM_BYTES = 4 << 20


def from_table(table: pa.Table, *, whole: bool, options: dict[str, Any]) -> pd.DataFrame:
    """The frame that pyarrow makes from ``table``, with its types restored unless ``options`` for pyarrow are given."""
    metadata: dict[bytes, bytes] = table.schema.metadata or {}
    written = range_index(metadata)
    if written is not None and not (whole and len(written) == table.num_rows):
        pandas = json.loads(metadata[PANDAS_KEY])
        for index in pandas["index_columns"]:
            if not isinstance(index, str):
                index.update(start=0, stop=table.num_rows, step=1)
        metadata = {**metadata, PANDAS_KEY: json.dumps(pandas).encode()}
        table = table.replace_schema_metadata(metadata)
    if table.num_rows == 0 and _CATEGORIES_KEY in metadata:
        table = _with_categories(table, json.loads(metadata[_CATEGORIES_KEY]))
    table = _without_nested_views(table)
    if not options:
        for name, column in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_time64(column.type):
                check_times(column, f"column {name!r}")
    # For a small table, passing it to threads takes longer than converting it.
    threads = {"use_threads": False} if table.nbytes < _THREADS_FROM_BYTES else {}
    frame = table.to_pandas(**{**threads, **options})
    if not options:
        _restore_types(frame, table, metadata)
    if _NAMES_KEY in metadata:
        names = {str(name): name for name in json.loads(metadata[_NAMES_KEY])}
        frame.columns = pd.Index([names.get(name, name) for name in frame.columns], dtype=object)
    return frame


def _without_nested_views(table: pa.Table) -> pa.Table:
    """Strings and bytes in lists as offsets instead of views: Polars writes views, but pyarrow cannot convert them to
    objects."""
    fields = [field.with_type(_without_views(field.type)) if field.type.num_fields else field for field in table.schema]
    plain = pa.schema(fields, table.schema.metadata)
    return table if plain.equals(table.schema) else table.cast(plain)


def _without_views(type_: pa.DataType) -> pa.DataType:
    types = pa.types

    def of(field: pa.Field) -> pa.Field:
        return field.with_type(_without_views(field.type))

    if types.is_string_view(type_):
        return pa.large_string()
    if types.is_binary_view(type_):
        return pa.large_binary()
    if types.is_struct(type_):
        return pa.struct(list(map(of, type_)))
    if types.is_list(type_):
        return pa.list_(of(type_.value_field))
    if types.is_large_list(type_):
        return pa.large_list(of(type_.value_field))
    if types.is_fixed_size_list(type_):
        return pa.list_(of(type_.value_field), type_.list_size)
    return type_


def _with_categories(table: pa.Table, categories: dict[str, list[Any]]) -> pa.Table:
    for at, field in enumerate(table.schema):
        if field.name in categories and pa.types.is_dictionary(field.type):
            values = pa.array(categories[field.name], field.type.value_type)
            empty = pa.array([], field.type.index_type)
            column = pa.DictionaryArray.from_arrays(empty, values, ordered=field.type.ordered)
            table = table.set_column(at, field, pa.chunked_array([column]))
    return table


def _restore_types(frame: pd.DataFrame, table: pa.Table, metadata: dict[bytes, bytes]) -> None:
    """Restores Python objects to which pyarrow gives a type of their own, and integers that it makes floats because of
    nulls."""
    written = json.loads(metadata.get(PANDAS_KEY, b'{"columns": []}'))["columns"]
    types = {column["field_name"]: column["numpy_type"] for column in written}
    index = index_columns(metadata)
    for at, name in enumerate(name for name in table.schema.names if name not in index):
        dtype = str(frame.dtypes.iloc[at])
        if _rounded(table[name]) or (types.get(name) == "object" and dtype != "object"):
            frame.isetitem(at, pd.Series(table[name].to_pylist(), index=frame.index, dtype=object))
        elif (masked := _masked(table[name], types.get(name), dtype)) is not None:
            frame.isetitem(at, pd.Series(masked, index=frame.index))
    if len(index) != 1 or index[0] not in table.schema.names:
        return
    [name] = index
    if types.get(name) in _INDEX_TYPES and str(frame.index.dtype) != types[name]:
        frame.index = pd.Index(table[name].to_pylist(), dtype=types[name], name=frame.index.name)
    elif (masked := _masked(table[name], types.get(name), str(frame.index.dtype))) is not None:
        frame.index = pd.Index(masked, name=frame.index.name)


def _rounded(column: Any) -> bool:
    """Whether pyarrow rounds integers of a column: if nested and one is null, it makes all of them floats."""
    return pa.types.is_nested(column.type) and any(map(_beyond_floats, _parts(column)))


def _parts(column: Any) -> Iterator[Any]:
    """The values nested in a column of structs, lists or maps, down to values that nest no others."""
    kind = column.type
    if pa.types.is_struct(kind):
        within = [pc.struct_field(column, at) for at in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        within = [
            pa.chunked_array([chunk.keys for chunk in column.chunks], kind.key_type),
            pa.chunked_array([chunk.items for chunk in column.chunks], kind.item_type),
        ]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        within = [pc.list_flatten(column)]
    else:
        yield column
        return
    for part in within:
        yield from _parts(part)


def _beyond_floats(values: Any) -> bool:
    """Whether some values are null, and others are integers that a float cannot represent."""
    if not values.null_count or not (pa.types.is_int64(values.type) or pa.types.is_uint64(values.type)):
        return False
    ends = pc.min_max(values).as_py()
    return ends["min"] is not None and (ends["min"] < -(2**53) or ends["max"] > 2**53)


def _masked(column: pa.ChunkedArray, written: str | None, dtype: str) -> Any:
    """``column`` with a mask for its nulls, if pyarrow made it floats that cannot represent its integers, or
    objects."""
    if dtype not in ("float64", "object") or not column.null_count:
        return None
    kind = str(column.type)
    if written != kind and not (pa.types.is_int64(column.type) or pa.types.is_uint64(column.type)):
        return None
    # If pandas did not write it: as pyarrow makes it, if doubles can represent its values.
    by_pyarrow = written != kind and not _beyond_floats(column)
    if by_pyarrow or kind not in MASKED or kind.startswith("float"):
        return None
    return pd.api.types.pandas_dtype(MASKED[kind]).__from_arrow__(column)
