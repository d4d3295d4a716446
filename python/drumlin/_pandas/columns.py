"""A column, or a level of an index, as an Arrow column and a description of how to decode it; and back.

The description is that of its dtype (``dtypes``), or a dict with the ``type`` "object" (``objects``) or "category",
which has the index of its categories as they were written. Categories that later rows added come after those.
"""

from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped, unused-ignore]

from drumlin._errors import InvalidArgument
from drumlin._pandas.arrow_json import array_from_json, array_to_json
from drumlin._pandas.dtypes import MASKED, MOMENTS, NUMBERS, arrow_type, dtype_from_json, dtype_to_json
from drumlin._pandas.objects import decode_objects, encode_objects
from drumlin._pandas.scalars import scalar_from_json, scalar_to_json
from drumlin._pandas.zones import arrow_zone

#: If there are more categories, they are not repeated in the description, but taken from the column's dictionary.
_CATEGORIES_MAX = 1000


def encode(array: Any, what: str, *, coerce: bool = False) -> tuple[Any, Any]:
    """``array``, of pandas or NumPy, as an Arrow array; and its description. ``what`` is its name in messages."""
    # Not a subclass, such as an array of strings.
    if type(array) is pd.arrays.NumpyExtensionArray:
        array = array.to_numpy()
    dtype = array.dtype
    if dtype == np.dtype(object):
        return encode_objects(array, what, coerce)
    if isinstance(dtype, pd.CategoricalDtype):
        return _encode_categories(array, what, coerce)
    try:
        made = dtype_to_json(dtype, what)
    except InvalidArgument:
        if not coerce:
            raise
        made = None
    try:
        if isinstance(dtype, pd.DatetimeTZDtype):
            encoded = _encode_zoned(array)
        elif isinstance(dtype, pd.IntervalDtype):
            encoded = _encode_intervals(array, what)
        elif isinstance(dtype, np.dtype):
            encoded = pa.array(np.asarray(array), from_pandas=True)
        else:
            encoded = pa.array(array, from_pandas=True)
    except (pa.ArrowException, NotImplementedError, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(
            f"{what} of dtype {dtype} has no Arrow form: {error}; convert it with astype()"
        ) from error
    if made is None:
        return encoded, {"type": "coerced"}
    if isinstance(made, dict) and made["type"] == "extension":
        _check_extension(array, encoded, made, what, coerce)
    return encoded, made


def _encode_zoned(array: Any) -> Any:
    unit = array.dtype.unit
    moments = np.asarray(array, dtype=f"datetime64[{unit}]")
    numbers = pa.array(moments.view("int64"), pa.int64(), mask=np.isnat(moments))
    return numbers.view(pa.timestamp(unit, arrow_zone(array.dtype.tz)))


def _encode_intervals(array: Any, what: str) -> Any:
    if isinstance(array.dtype.subtype, np.dtype):
        return pa.array(array, from_pandas=True)
    # Bounds with a time zone, which pandas' own Arrow form lacks.
    ends = [encode(end.array, what)[0] for end in (array.left, array.right)]
    return pa.StructArray.from_arrays(ends, names=["left", "right"], mask=pa.array(array.isna()))


def _check_extension(array: Any, encoded: Any, made: Any, what: str, coerce: bool) -> None:
    """Checks that values of another package's dtype come back unchanged."""
    back = decode(_chunked(encoded), made)
    if not coerce and not array.equals(back):
        raise InvalidArgument(
            f"{what} of dtype {array.dtype} would come back with other values; convert it with astype()"
        )


def _chunked(array: Any) -> Any:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _encode_categories(array: Any, what: str, coerce: bool) -> tuple[Any, Any]:
    categories, codes = array.categories, array.codes
    dictionary, of = encode(categories.array, f"{what}: the categories'", coerce=coerce)
    if isinstance(dictionary, pa.ChunkedArray):
        dictionary = dictionary.combine_chunks()
    if dictionary.null_count:
        raise InvalidArgument(f"{what} has a category that is a missing value; rename it")
    indices = pa.array(codes, mask=codes < 0)
    made = {"type": "category", "ordered": bool(array.ordered), "of": of}
    if categories.name is not None:
        made["name"] = scalar_to_json(categories.name, f"{what}: the name of the categories")
    kind = dictionary.type
    plain = not (isinstance(kind, pa.BaseExtensionType) or pa.types.is_nested(kind) or pa.types.is_null(kind))
    if not plain or len(categories) <= _CATEGORIES_MAX:
        made["categories"] = array_to_json(dictionary)
    if pa.types.is_dictionary(kind):
        raise InvalidArgument(f"{what} has categories that are categories; convert them with rename_categories()")
    if plain:
        return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=bool(array.ordered)), made
    # A store has no dictionaries of structs: write the values themselves.
    return dictionary.take(indices), made


def decode(column: Any, made: Any) -> Any:
    """The pandas or NumPy array that ``column``, a chunked array, was."""
    kind = made if isinstance(made, str) else made["type"]
    if kind == "category":
        return _decode_categories(column, made)
    if kind == "arrow":
        return _decode_arrow(column, made)
    column = _without_layout(column)
    if kind == "object":
        return decode_objects(column, made)
    if kind == "coerced":
        return column.to_pandas().array
    if kind in NUMBERS or kind in MOMENTS:
        # A column that was widened since may have values that only its new type can represent.
        kind = str(np.dtype(column.type.to_pandas_dtype()))
    if kind in NUMBERS and column.null_count and not kind.startswith("float"):
        # The nulls came with rows appended later. As floats, large integers would change.
        return pd.api.types.pandas_dtype(MASKED[kind]).__from_arrow__(column)
    if kind in NUMBERS or kind in MOMENTS:
        return np.array(column.to_pandas().to_numpy(), dtype=kind)
    if kind == "zoned":
        unit = column.type.unit
        moments = np.array(_without_zone(column).to_pandas().to_numpy(), dtype=f"datetime64[{unit}]")
        return pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(dtype_from_json(made).tz).array
    if kind == "interval":
        return _decode_intervals(column, made)
    if kind in MASKED.values() and pa.types.is_primitive(column.type):
        kind = MASKED[str(np.dtype(column.type.to_pandas_dtype()))]
        return pd.api.types.pandas_dtype(kind).__from_arrow__(column)
    return dtype_from_json(made).__from_arrow__(column)


def _without_layout(column: Any) -> Any:
    """``column`` as consecutive values: a read with ``native`` may return dictionaries and views."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    for view, plain in (("is_string_view", "large_string"), ("is_binary_view", "large_binary")):
        if getattr(pa.types, view, lambda _: False)(kind):
            column = column.cast(getattr(pa, plain)())
    return column


def _without_zone(column: Any) -> Any:
    chunks = [chunk.view(pa.timestamp(column.type.unit)) for chunk in column.chunks]
    return pa.chunked_array(chunks, pa.timestamp(column.type.unit))


def _decode_intervals(column: Any, made: Any) -> Any:
    stored = _storage(column)
    dtype = dtype_from_json(made)
    if not stored.num_chunks:
        return pd.arrays.IntervalArray.from_arrays([], [], closed=made["closed"], dtype=dtype)
    of = made["ends"]
    if stored.null_count and isinstance(of, str) and of in NUMBERS and not of.startswith("float"):
        # Missing intervals, from rows appended later, have no bounds.
        of = "float64"
    parts = [pa.chunked_array([pc.struct_field(chunk, end) for chunk in stored.chunks]) for end in ("left", "right")]
    left, right = (pd.Index(decode(part.cast(pa.float64()) if of != made["ends"] else part, of)) for part in parts)
    return pd.arrays.IntervalArray.from_arrays(left, right, closed=made["closed"])


def _storage(column: Any) -> Any:
    """The values of ``column`` without an Arrow extension type."""
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)


def _is_plain_number(kind: Any) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind))


def _decode_arrow(column: Any, made: Any) -> Any:
    """A column of an ArrowDtype, whose dictionaries have wider indices in a sorted table. If it was widened since, it
    may have values that only its new type can represent."""
    wanted = arrow_type(made["schema"])
    if column.type != wanted:
        if pa.types.is_dictionary(wanted) and pa.types.is_dictionary(column.type):
            chunks = [
                pa.DictionaryArray.from_arrays(
                    chunk.indices.cast(wanted.index_type),
                    chunk.dictionary.cast(wanted.value_type),
                    ordered=wanted.ordered,
                )
                for chunk in column.unify_dictionaries().chunks
            ]
            column = pa.chunked_array(chunks, wanted)
        elif isinstance(wanted, pa.BaseExtensionType):
            chunks = [pa.ExtensionArray.from_storage(wanted, chunk) for chunk in column.chunks]
            column = pa.chunked_array(chunks, wanted)
        elif not (_is_plain_number(column.type) and _is_plain_number(wanted)):
            column = _without_layout(column).cast(wanted)
    return pd.arrays.ArrowExtensionArray(column)


def _decode_categories(column: Any, made: Any) -> Any:
    categories = None
    if "categories" in made:
        categories = _index(array_from_json(made["categories"]), made["of"])
    # For each chunk: its indices and what they stand for.
    parts: list[tuple[Any, Any]] = []
    if pa.types.is_dictionary(column.type):
        dictionary = values = None
        for chunk in column.chunks:
            if dictionary is None or not chunk.dictionary.equals(dictionary):
                dictionary = chunk.dictionary
                values = _index(pa.chunked_array([dictionary]), made["of"])
                categories = _joined(categories, values)
            parts.append((chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False), values))
        if categories is None:
            categories = _index(pa.chunked_array([], column.type.value_type), made["of"])
    else:
        stored = _storage(column)
        valid = stored.is_valid()
        values = _index(stored.filter(valid), made["of"])
        categories = _joined(categories, values)
        indices = np.full(len(stored), -1)
        indices[valid.to_numpy()] = np.arange(len(values))
        parts.append((indices, values))
    placed = [_placed(indices, values, categories) for indices, values in parts]
    codes = np.concatenate(placed) if placed else np.empty(0, dtype="int8")
    if "name" in made:
        categories = categories.rename(scalar_from_json(made["name"]))
    return pd.Categorical.from_codes(codes, categories, ordered=made["ordered"])


def _index(column: Any, made: Any) -> Any:
    array = decode(column, made)
    return pd.Index(array, dtype=array.dtype, tupleize_cols=False)


def _placed(indices: Any, values: Any, categories: Any) -> Any:
    """The codes among ``categories`` of ``values`` at ``indices``."""
    if not len(values):
        return np.full(len(indices), -1)
    if values is categories:
        return indices
    places = np.where(values.isna(), -1, categories.get_indexer(values))
    return np.where(indices < 0, -1, places[indices])


def _joined(known: Any, found: Any) -> Any:
    """Categories, with the new ones after the known ones."""
    if known is None and found.is_unique and not found.hasnans:
        return found
    found = found[~found.isna()].unique()
    if known is None:
        return found
    new = found[known.get_indexer(found) < 0]
    return known.append(new) if len(new) else known
