"""pandas frames to Arrow and back, such that index, column names and types come back as they were.

What Arrow has no place for travels as pandas' own metadata in the Arrow schema, which a version keeps. One part of it
can become stale: a RangeIndex is no column but three numbers. It comes back as it was if a read gives just the rows
that one write wrote; otherwise rows are numbered from 0.
"""

import json
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from drumlin._errors import InvalidArgument
from drumlin._optional import need

if TYPE_CHECKING:
    import numpy as _np
    import pandas as _pd  # type: ignore[import-untyped, unused-ignore]
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

_KEY = b"pandas"
# Names of columns of more than one type, which pandas' metadata cannot say.
_NAMES_KEY = b"drumlin.pandas.names"
# The first categories of each categorical column, for reads that give no rows and so no dictionary.
_CATEGORIES_KEY = b"drumlin.pandas.categories"
_CATEGORIES_MAX = 1000
# Types that pyarrow gives back to columns, but not to an index.
_INDEX_TYPES = frozenset(
    {"object", "boolean", "Float32", "Float64"}
    | {f"{sign}nt{bits}" for sign in ("I", "UI") for bits in (8, 16, 32, 64)}
)


def to_arrow(frame: "_pd.DataFrame") -> "_pa.Table":
    """The rows of ``frame``; its index as columns, unless it is a RangeIndex."""
    pa = need("pyarrow", "a pandas DataFrame", "pandas")
    mixed = frame.columns.nlevels == 1 and frame.columns.inferred_type.startswith("mixed")
    if mixed and not all(type(name) in (str, int, bool, float, type(None)) for name in frame.columns):
        raise InvalidArgument(f"column names {list(frame.columns)!r}: names of mixed type must be str or numbers")
    duplicates = frame.columns[frame.columns.duplicated()]
    if len(duplicates):
        raise InvalidArgument(f"two columns are called {duplicates[0]!r}; names must be unique")
    with warnings.catch_warnings():
        # Names of mixed type are kept here.
        warnings.filterwarnings("ignore", "The DataFrame has column names of mixed type", UserWarning)
        try:
            table = pa.Table.from_pandas(frame, preserve_index=None)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidArgument(f"the DataFrame has no Arrow form: {error}") from error
    metadata = dict(table.schema.metadata or {})
    if mixed:
        metadata[_NAMES_KEY] = json.dumps(list(frame.columns)).encode()
    if categories := _categories(table):
        metadata[_CATEGORIES_KEY] = json.dumps(categories).encode()
    return table.replace_schema_metadata(metadata)


def _categories(table: "_pa.Table") -> dict[str, list[Any]]:
    pa = need("pyarrow", "a pandas DataFrame", "pandas")
    categories = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        if not pa.types.is_dictionary(field.type) or not column.num_chunks:
            continue
        kind = field.type.value_type
        plain = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
        dictionary = column.chunk(0).dictionary
        if plain and len(dictionary) <= _CATEGORIES_MAX:
            categories[field.name] = dictionary.to_pylist()
    return categories


def index_columns(metadata: dict[bytes, bytes]) -> list[str]:
    """The columns that hold the index."""
    if _KEY not in metadata:
        return []
    return [index for index in json.loads(metadata[_KEY])["index_columns"] if isinstance(index, str)]


def range_index(metadata: dict[bytes, bytes]) -> range | None:
    """The RangeIndex that the rows were written with, if they had one."""
    for index in json.loads(metadata.get(_KEY, b'{"index_columns": []}'))["index_columns"]:
        if not isinstance(index, str) and index.get("kind") == "range":
            return range(index["start"], index["stop"], index["step"])
    return None


#: Types of NumPy that hold all values of Arrow's.
_KINDS = {
    "Boolean": "bool",
    **{f"{sign}nt{bits}": f"{sign}nt{bits}".lower() for sign in ("I", "UI") for bits in (8, 16, 32, 64)},
    "Float32": "float32",
    "Float64": "float64",
    **{f"Timestamp({unit})": f"datetime64[{unit.replace('µ', 'u')}]" for unit in ("s", "ms", "µs", "ns")},
}


@dataclass(frozen=True, slots=True)
class Plain:
    """How a frame is made of columns that are numbers and nothing else."""

    #: The names of all columns, but for the index.
    columns: "_pd.Index"
    #: Where the index is among the columns, and its name.
    index: tuple[int, str | None] | None
    #: The RangeIndex that the rows were written with.
    range: range | None


def _plain(names: tuple[str, ...], types: tuple[str, ...], written: bytes | None) -> Plain | None:
    """``types`` are Arrow's, ``written`` is pandas' metadata."""
    pd = need("pandas", "to_pandas()", "pandas")
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
    """How frames are made of columns with ``schema``, if they may be all plain numbers."""
    metadata = schema.metadata
    if _NAMES_KEY in metadata or _CATEGORIES_KEY in metadata:
        return None
    try:
        how = _plain_remembered(tuple(schema.names), tuple(schema.types), metadata.get(_KEY))
    except (KeyError, TypeError, ValueError):
        # It was not pandas who wrote this.
        return None
    return how if how is not None and len(how.columns) > 0 else None


def from_numpy(groups: list[tuple[Any, str, list[int]]], how: Plain, *, whole: bool) -> "_pd.DataFrame":
    """The frame of columns in ``groups``: an array with a row for each, their type, and which they are."""
    pd = need("pandas", "to_pandas()", "pandas")
    arrays: dict[int, _np.ndarray[Any, Any]] = {}
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
    # Each has its own: names can be set on it.
    frame.columns = how.columns.copy()
    return frame


_THREADS_FROM_BYTES = 4 << 20


def from_arrow(table: "_pa.Table", *, whole: bool, options: dict[str, Any]) -> "_pd.DataFrame":
    """The frame that ``table`` was; ``whole`` says that it has just the rows that one write wrote."""
    pd = need("pandas", "to_pandas()", "pandas")
    metadata: dict[bytes, bytes] = table.schema.metadata or {}
    written = range_index(metadata)
    if written is not None and not (whole and len(written) == table.num_rows):
        pandas = json.loads(metadata[_KEY])
        for index in pandas["index_columns"]:
            if not isinstance(index, str):
                index.update(start=0, stop=table.num_rows, step=1)
        metadata = {**metadata, _KEY: json.dumps(pandas).encode()}
        table = table.replace_schema_metadata(metadata)
    if table.num_rows == 0 and _CATEGORIES_KEY in metadata:
        table = _with_categories(table, json.loads(metadata[_CATEGORIES_KEY]))
    # Handing a small table to threads takes longer than converting it.
    threads = {"use_threads": False} if table.nbytes < _THREADS_FROM_BYTES else {}
    frame = table.to_pandas(**{**threads, **options})
    if not options:
        _restore_types(frame, table, metadata)
    if _NAMES_KEY in metadata:
        names = {str(name): name for name in json.loads(metadata[_NAMES_KEY])}
        frame.columns = pd.Index([names.get(name, name) for name in frame.columns], dtype=object)
    return frame


def _with_categories(table: "_pa.Table", categories: dict[str, list[Any]]) -> "_pa.Table":
    pa = need("pyarrow", "to_pandas()", "pandas")
    for at, field in enumerate(table.schema):
        if field.name in categories and pa.types.is_dictionary(field.type):
            values = pa.array(categories[field.name], field.type.value_type)
            empty = pa.array([], field.type.index_type)
            column = pa.DictionaryArray.from_arrays(empty, values, ordered=field.type.ordered)
            table = table.set_column(at, field, pa.chunked_array([column]))
    return table


def _restore_types(frame: "_pd.DataFrame", table: "_pa.Table", metadata: dict[bytes, bytes]) -> None:
    """Python objects that pyarrow gives a type of their own."""
    if _KEY not in metadata:
        return
    pd = need("pandas", "to_pandas()", "pandas")
    types = {column["field_name"]: column["numpy_type"] for column in json.loads(metadata[_KEY])["columns"]}
    index = index_columns(metadata)
    for at, name in enumerate(name for name in table.schema.names if name not in index):
        if types.get(name) == "object" and str(frame.dtypes.iloc[at]) != "object":
            frame.isetitem(at, pd.Series(table[name].to_pylist(), index=frame.index, dtype=object))
    if len(index) == 1 and types.get(index[0]) in _INDEX_TYPES and str(frame.index.dtype) != types[index[0]]:
        frame.index = pd.Index(table[index[0]].to_pylist(), dtype=types[index[0]], name=frame.index.name)
