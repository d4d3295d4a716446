"""Python values and NumPy arrays on their way to Arrow: what pyarrow would silently truncate, round or mix is
converted, or refused."""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from drumlin._errors import InvalidArgument
from drumlin._optional import loaded

__all__ = ["exact"]

#: Units of NumPy that Arrow lacks, and the Arrow units for their values.
_UNITS = {"W": "D", "h": "s", "m": "s", "ps": None, "fs": None, "as": None, "Y": None, "M": None}


def exact(values: Any, name: str) -> Any:
    """The values of a column in a form that pyarrow and Polars convert exactly. Columns that belong to no other library
    become lists. Raises :class:`drumlin.InvalidArgument` if values would come back changed."""
    if _is_numpy(values):
        return _from_numpy(values, name)
    if isinstance(values, (list, tuple)):
        return _from_list(list(values), name)
    return values


def _is_numpy(values: Any) -> bool:
    numpy = loaded("numpy")
    return numpy is not None and isinstance(values, numpy.ndarray)


def _from_numpy(values: Any, name: str) -> Any:
    kind = values.dtype.kind
    if kind == "O" and values.ndim == 1:
        return _from_list(values.tolist(), name)
    if kind in "SU" and values.ndim == 1:
        # pyarrow takes a NUL in fixed-width text as its end.
        return values.tolist()
    if kind in "mM":
        return _in_units_of_arrow(values, name)
    return values


def _in_units_of_arrow(values: Any, name: str) -> Any:
    """Datetimes and timedeltas in a unit that Arrow has: pyarrow takes a unit of 10 seconds as one of a second."""
    numpy = loaded("numpy")
    assert numpy is not None
    unit, count = numpy.datetime_data(values.dtype)
    wanted = _UNITS.get(unit, unit)
    if values.dtype.kind == "m" and wanted == "D":
        wanted = "s"
    if unit == "generic" or wanted is None:
        raise InvalidArgument(f"column {name!r} has the numpy type {values.dtype}, which Arrow lacks; convert it")
    if wanted == unit and count == 1:
        return values
    converted = values.astype(f"{values.dtype.kind}8[{wanted}]")
    if not bool(((converted == values) | numpy.isnat(values)).all()):
        raise InvalidArgument(f"column {name!r} of the numpy type {values.dtype} has values out of range; convert it")
    return converted


def _from_list(values: list[Any], name: str) -> list[Any]:
    kinds = set(map(type, values))
    _check_kinds(kinds, values, name)
    if any(issubclass(kind, (list, tuple, set, frozenset)) for kind in kinds) or any(map(_is_array_type, kinds)):
        _check_level([part for value in values if _has_parts(value) for part in value], name)
        return [_within(value, name) for value in values]
    if any(issubclass(kind, Mapping) for kind in kinds):
        parts: dict[Any, list[Any]] = {}
        for value in values:
            if isinstance(value, Mapping):
                for key, part in value.items():
                    parts.setdefault(key, []).append(part)
        for part in parts.values():
            _check_level(part, name)
        return [_within(value, name) for value in values]
    return values


def _check_level(values: list[Any], name: str) -> None:
    """Checks that nested values at the same position have compatible types."""
    _from_list(values, name)


def _is_array_type(kind: type) -> bool:
    numpy = loaded("numpy")
    return numpy is not None and issubclass(kind, numpy.ndarray)


def _has_parts(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) or (_is_numpy(value) and value.ndim > 0)


def _within(value: Any, name: str) -> Any:
    """A nested value, without NumPy arrays that pyarrow would truncate."""
    if _is_numpy(value):
        return _from_numpy(value, name)
    if type(value) in (list, tuple):
        changed = [_within(part, name) for part in value]
        return changed if type(value) is list else tuple(changed)
    if type(value) is dict:
        return {key: _within(part, name) for key, part in value.items()}
    return value


def _check_kinds(kinds: set[type], values: list[Any], name: str) -> None:
    moments = any(issubclass(kind, (dt.datetime, dt.time, dt.timedelta)) for kind in kinds)
    if len(kinds) == 1 and not moments:
        return
    texts = {kind for kind in kinds if issubclass(kind, str)}
    data = {kind for kind in kinds if issubclass(kind, (bytes, bytearray, memoryview))}
    instants = {kind for kind in kinds if issubclass(kind, dt.datetime)}
    days = {kind for kind in kinds if issubclass(kind, dt.date)} - instants
    for some, others in ((data, texts), (days, instants)):
        if some and others:
            _refuse_mixture(values, name, [_first_of(values, kinds) for kinds in (some, others)])
    if moments:
        _check_moments(values, name)


def _first_of(values: Iterable[Any], kinds: set[type]) -> int:
    return next(row for row, value in enumerate(values) if type(value) in kinds)


def _refuse_mixture(values: list[Any], name: str, rows: list[int]) -> None:
    told = " and ".join(f"{values[row]!r} in row {row}" for row in sorted(rows))
    raise InvalidArgument(f"column {name!r} has values of several types: {told}; convert them to one")


def _check_moments(values: list[Any], name: str) -> None:
    """Checks that all datetimes have a time zone or none has, that no time of day has one, and that none is finer than
    microseconds, the unit in which pyarrow reads them."""
    zoned: list[int | None] = [None, None]
    for row, value in enumerate(values):
        if isinstance(value, dt.time) and value.tzinfo is not None:
            raise InvalidArgument(
                f"column {name!r}, row {row}: the time {value!r} has a time zone, which Arrow's times do not have; "
                "remove it with replace(tzinfo=None)"
            )
        if isinstance(value, dt.datetime) and value == value:
            has = value.tzinfo is not None
            if zoned[has] is None:
                zoned[has] = row
            if (other := zoned[not has]) is not None:
                _refuse_mixture(values, name, [other, row])
        if getattr(value, "nanosecond", 0) or (isinstance(value, dt.timedelta) and getattr(value, "nanoseconds", 0)):
            raise InvalidArgument(
                f"column {name!r}, row {row}: {value!r} has nanoseconds, which a list loses; "
                "give a pandas Series, a numpy array or a pyarrow array"
            )
