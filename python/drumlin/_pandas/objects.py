"""Columns of Python objects.

A column is stored if all its values that are not missing have one type, and if each comes back equal and of that type.
For strings, bytes, numbers and dates, their types guarantee this; any other column is decoded again and compared, value
by value. Missing values (None, NaN, NA, NaT) are nulls; if they are all of one kind, that kind comes back, otherwise
None.
"""

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from drumlin._errors import InvalidArgument
from drumlin._pandas.zones import arrow_zone, zone_from_json, zone_to_json
from drumlin._values.evidence import shown, type_name

_COERCE = "convert them to one type, or give coerce=True to store them as pyarrow converts them"


def encode_objects(values: Any, what: str, coerce: bool) -> tuple[Any, dict[str, Any]]:
    """An array of objects as an Arrow array, and how to decode it; ``what`` is its name in messages."""
    missing = pd.isna(values)
    present = values[~missing] if missing.any() else values
    kind = pd.api.types.infer_dtype(present, skipna=False) if len(present) else "empty"
    made: dict[str, Any] = {"type": "object"}
    try:
        if len(present) < len(values):
            _note_missing(made, values, missing, what)
        if kind in ("string", "bytes", "empty"):
            array = pa.array(values, from_pandas=True)
        else:
            _check_types(values, missing, present, what)
            array = _encode(values, missing, present, kind, made, what)
    except InvalidArgument:
        if not coerce:
            raise
        made = {"type": "object", "coerced": True}
        array = _coerced(values, what)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        if not coerce:
            raise InvalidArgument(f"{what} has no Arrow form: {_place(values, missing)}: {error}") from error
        made = {"type": "object", "coerced": True}
        array = _coerced(values, what)
    return array, made


def _coerced(values: Any, what: str) -> Any:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InvalidArgument(f"{what} has no Arrow form: {error}; convert its values to one type") from error


def _note_missing(made: dict[str, Any], values: Any, missing: Any, what: str) -> None:
    kinds = {type(None): None, float: "nan", np.float64: "nan", type(pd.NA): "NA", type(pd.NaT): "NaT"}
    types = set(map(type, values[missing]))
    if other := types - kinds.keys():
        row = next(row for row in np.flatnonzero(missing) if type(values[row]) in other)
        raise InvalidArgument(
            f"{what}, row {row}: {shown(values[row])} ({type_name(values[row])}) cannot be told from a missing value; "
            "use None in its place, or give coerce=True to store it as one"
        )
    names = {kinds[kind] for kind in types}
    if len(names) == 1 and names != {None}:
        made["missing"] = names.pop()


def _place(values: Any, missing: Any) -> str:
    rows = np.flatnonzero(~missing)
    return (
        f"row {rows[0]} holds {shown(values[rows[0]])} ({type_name(values[rows[0]])})" if len(rows) else "it is empty"
    )


def _family(kind: type) -> Any:
    """Types whose values are equal to those that come back."""
    for family in ((bool, np.bool_), (int, np.integer), (float, np.floating)):
        if issubclass(kind, family):
            return family[0] if kind is not np.longdouble else kind
    return kind


def _check_types(values: Any, missing: Any, present: Any, what: str) -> None:
    types = set(map(type, present))
    if len(types) == 1 or len({_family(kind) for kind in types}) == 1:
        return
    rows = np.flatnonzero(~missing)
    first = _family(type(values[rows[0]]))
    row = next(row for row in rows if _family(type(values[row])) is not first)
    raise InvalidArgument(
        f"{what} holds values of several types: {shown(values[rows[0]])} ({type_name(values[rows[0]])}) in row "
        f"{rows[0]}, {shown(values[row])} ({type_name(values[row])}) in row {row}; {_COERCE}"
    )


def _encode(values: Any, missing: Any, present: Any, kind: str, made: dict[str, Any], what: str) -> Any:
    first = type(present[0])
    family = _family(first)
    if family is int:
        return _integers(values, missing, present, what)
    if family in (bool, float):
        return pa.array(values, from_pandas=True, type=pa.bool_() if family is bool else pa.float64())
    if first is dt.date:
        return pa.array(values, from_pandas=True)
    if issubclass(first, dt.datetime):
        array = _moments(values, missing, present, made, what)
    elif issubclass(first, dt.timedelta):
        array = _spans(values, missing, present, made)
    else:
        if first is np.ndarray:
            made["of"], made["dtype"] = "ndarray", str(present[0].dtype)
        elif first is tuple:
            made["of"] = "tuple"
        # Nested missing values are values: only None is a null.
        items = [None if lost else value for value, lost in zip(values, missing, strict=True)]
        array = pa.array(items, from_pandas=False)
    _check_values(values, missing, decode_objects(pa.chunked_array([array]), made), what)
    return array


def _integers(values: Any, missing: Any, present: Any, what: str) -> Any:
    least, greatest = min(present), max(present)
    if least >= -(2**63) and greatest < 2**63:
        return pa.array(values, from_pandas=True, type=pa.int64())
    least_allowed = 0 if greatest >= 2**63 else -(2**63)
    if least >= least_allowed and greatest < 2**64:
        numbers = [None if lost else int(value) for value, lost in zip(values, missing, strict=True)]
        return pa.array(numbers, pa.uint64())
    for row in np.flatnonzero(~missing):
        if not -(2**63) <= values[row] < 2**64 or values[row] < least_allowed:
            break
    raise InvalidArgument(
        f"{what}, row {row}: {shown(values[row])} (int) is out of range; integers have at most 64 bits, with a sign if "
        "any is negative"
    )


def _moments(values: Any, missing: Any, present: Any, made: dict[str, Any], what: str) -> Any:
    """Datetimes, all without a time zone or all with the same one."""
    zones: dict[tuple[type, str], Any] = {}
    rows = np.flatnonzero(~missing)
    first: tuple[Any, Any] | None = None
    for row in rows:
        value = values[row]
        zone = getattr(value, "tzinfo", None)
        key = (type(zone), str(zone))
        if key not in zones:
            try:
                zones[key] = zone_to_json(zone)
            except InvalidArgument as error:
                raise InvalidArgument(f"{what}, row {row}: {error}") from None
        if first is None:
            first = (zones[key], row)
        elif zones[key] != first[0]:
            raise InvalidArgument(
                f"{what}: {shown(values[first[1]])} in row {first[1]} and {shown(value)} in row {row} have different "
                "time zones, or only one has a zone; convert them to one, or give coerce=True to store them as pyarrow "
                "converts them"
            )
    assert first is not None
    stamps = isinstance(present[0], pd.Timestamp)
    unit = "ns" if stamps and any(value.nanosecond for value in present) else "us"
    made["of"] = "Timestamp" if stamps else "datetime"
    if first[0] is not None:
        made["zone"] = first[0]
    if stamps and len(units := {value.unit for value in present}) == 1:
        made["unit"] = units.pop()
    raw = np.full(len(values), np.datetime64("NaT"), dtype=f"datetime64[{unit}]")
    utc = dt.UTC
    for row in rows:
        value = values[row]
        if stamps:
            raw[row] = value.as_unit(unit).to_datetime64()
        else:
            raw[row] = value if value.tzinfo is None else value.astimezone(utc).replace(tzinfo=None)
    zone = zone_from_json(first[0])
    return pa.array(raw.view("int64"), pa.int64(), mask=missing).view(pa.timestamp(unit, arrow_zone(zone)))


def _spans(values: Any, missing: Any, present: Any, made: dict[str, Any]) -> Any:
    deltas = isinstance(present[0], pd.Timedelta)
    unit = "ns" if deltas and any(value.nanoseconds for value in present) else "us"
    made["of"] = "Timedelta" if deltas else "timedelta"
    if deltas and len(units := {value.unit for value in present}) == 1:
        made["unit"] = units.pop()
    raw = np.full(len(values), 0, dtype="int64")
    for row in np.flatnonzero(~missing):
        value = values[row]
        if deltas:
            raw[row] = value.as_unit(unit).to_timedelta64().astype("int64")
        else:
            raw[row] = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    return pa.array(raw, pa.int64(), mask=missing).view(pa.duration(unit))


def _check_values(values: Any, missing: Any, back: Any, what: str) -> None:
    for row, (value, lost, other) in enumerate(zip(values, missing, back, strict=True)):
        if not lost and not _same(value, other):
            raise InvalidArgument(
                f"{what}, row {row}: {shown(value)} ({type_name(value)}) would come back as {shown(other)} "
                f"({type_name(other)}); {_COERCE}"
            )


def _same(value: Any, back: Any) -> bool:
    if type(value) is not type(back):
        return False
    if isinstance(value, dict):
        return value.keys() == back.keys() and all(_same(part, back[name]) for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return len(value) == len(back) and all(map(_same, value, back))
    if isinstance(value, np.ndarray):
        return (
            value.dtype == back.dtype
            and value.shape == back.shape
            and bool(np.array_equal(value, back, equal_nan=value.dtype.kind in "fcmM"))
        )
    if isinstance(value, (dt.datetime, dt.time)):
        return bool(value == back) and value.utcoffset() == back.utcoffset()
    if isinstance(value, decimal.Decimal):
        return value.is_finite() and value == back
    return bool(value == back) or (isinstance(value, float) and value != value and back != back)


def decode_objects(column: Any, made: dict[str, Any]) -> Any:
    """The array of objects that ``column``, a chunked array, was."""
    of = made.get("of")
    if of in ("Timestamp", "datetime", "Timedelta", "timedelta"):
        return _decode_moments(column, made)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_binary(column.type):
        values = column.to_numpy() if column.num_chunks else np.empty(0, dtype=object)
    else:
        items = column.to_pylist()
        if of == "tuple":
            items = [None if item is None else tuple(item) for item in items]
        elif of == "ndarray":
            dtype = np.dtype(made["dtype"])
            items = [None if item is None else np.array(item, dtype=dtype) for item in items]
        values = np.fromiter(items, dtype=object, count=len(items))
    return _with_missing(values, column, made)


def _with_missing(values: Any, column: Any, made: dict[str, Any]) -> Any:
    if column.null_count:
        marker = {"nan": np.nan, "NA": pd.NA, "NaT": pd.NaT, None: None}[made.get("missing")]
        if not values.flags.writeable:
            values = values.copy()
        values[column.is_null().to_numpy()] = marker
    return values


def _decode_moments(column: Any, made: dict[str, Any]) -> Any:
    unit = column.type.unit
    raw = column.cast(pa.int64()).fill_null(0).to_numpy() if column.num_chunks else np.empty(0, "int64")
    if made["of"] in ("Timedelta", "timedelta"):
        index = pd.TimedeltaIndex(raw.view(f"timedelta64[{unit}]"))
        values = index.to_pytimedelta() if made["of"] == "timedelta" else _stamps(index, made)
    else:
        index = pd.DatetimeIndex(raw.view(f"datetime64[{unit}]"))
        zone = zone_from_json(made.get("zone"))
        if zone is not None:
            index = index.tz_localize("UTC").tz_convert(zone)
        values = index.to_pydatetime() if made["of"] == "datetime" else _stamps(index, made)
    return _with_missing(values, column, made)


def _stamps(index: Any, made: dict[str, Any]) -> Any:
    if "unit" in made and made["unit"] != index.unit:
        try:
            wanted = index.as_unit(made["unit"])
        except (OverflowError, ValueError):
            # Rows appended later may have values that only the finer unit, or the coarser one, can represent.
            wanted = index
        index = wanted if (wanted == index).all() else index
    return index.astype(object).to_numpy()
