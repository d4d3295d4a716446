"""Polars frames from Arrow batches. Types that Polars lacks are replaced by other types with the same values."""

import re
from typing import TYPE_CHECKING, Any

from drumlin._errors import Unsupported
from drumlin._optional import need

if TYPE_CHECKING:
    import polars as _pl

__all__ = ["has_polars_type", "polars_frame"]

#: How to recognise types that Polars would read as others, or lacks; also nested.
_OTHERS = re.compile(r"\bdecimal(?:32|64|256)\(|\bdecimal128\(\d+, -")
#: Not the name of a field within a type, which a colon follows.
_NONE = re.compile(r"\b(?:month|day_time|month_day_nano)_interval\b(?!:)|list_view<|_union<|\brun_end_encoded<")
_ZONE = re.compile(r"\btimestamp\[\w+, tz=([^\]]*)\]")

#: The maximum number of digits of a Polars decimal.
_DIGITS = 38


def has_polars_type(type_: str) -> bool:
    """Whether Polars has a type for the values of an Arrow type, given as text."""
    return _NONE.search(type_) is None


def polars_frame(rows: Any) -> "_pl.DataFrame":
    """A Polars frame of batches, or of one. Decimals become 128 bits wide, because Polars reads narrower ones as
    if they were, and times in a zone that Polars does not know, such as an offset, become UTC."""
    polars = need("polars", "to_polars()", "polars")
    types: list[str] = rows.schema.types
    lacking = [name for name, type_ in zip(rows.schema.names, types, strict=True) if not has_polars_type(type_)]
    if lacking:
        raise Unsupported(
            f"Polars has no type for column {lacking[0]!r}, {types[rows.schema.names.index(lacking[0])]}: ask for the "
            "other columns by name (`columns`), or read it with to_arrow()"
        )
    if not any(map(_is_other, types)):
        return polars.DataFrame(rows)  # type: ignore[no-any-return, unused-ignore]
    pyarrow = need("pyarrow", "to_polars() of these types", "pyarrow")
    table = (
        pyarrow.table(rows)
        if hasattr(rows, "__arrow_c_stream__")
        else pyarrow.Table.from_batches([pyarrow.record_batch(rows)])
    )
    for at, field in enumerate(table.schema):
        wanted = field.with_type(_known(field.type, pyarrow))
        if wanted.type == field.type:
            continue
        try:
            column = table.column(at)
            if pyarrow.types.is_dictionary(field.type):
                column = column.cast(field.type.value_type)
            table = table.set_column(at, wanted, column.cast(wanted.type))
        except pyarrow.ArrowException as error:
            raise Unsupported(
                f"column {field.name!r} of type {field.type} has a value that Polars has no type for: {error}; ask for "
                "the other columns by name (`columns`), or read it with to_arrow()"
            ) from None
    return polars.from_arrow(table)  # type: ignore[no-any-return, unused-ignore]


def _is_other(type_: str) -> bool:
    return _OTHERS.search(type_) is not None or not all(map(_knows_zone, _ZONE.findall(type_)))


#: Cache: whether Polars knows a time zone.
_zones: dict[str, bool] = {}


def _knows_zone(zone: str) -> bool:
    polars = need("polars", "to_polars()", "polars")
    if zone not in _zones:
        try:
            polars.Series([], dtype=polars.Datetime("us", zone))
            _zones[zone] = True
        except polars.exceptions.PolarsError:
            _zones[zone] = False
    return _zones[zone]


def _known(type_: Any, pyarrow: Any) -> Any:
    """A type that Polars knows, for the same values."""
    types = pyarrow.types

    def of(field: Any) -> Any:
        return field.with_type(_known(field.type, pyarrow))

    if types.is_decimal(type_):
        if type_.scale < 0:
            return pyarrow.decimal128(min(type_.precision - type_.scale, _DIGITS), 0)
        return pyarrow.decimal128(min(type_.precision, _DIGITS), min(type_.scale, _DIGITS))
    if types.is_timestamp(type_) and type_.tz is not None and not _knows_zone(type_.tz):
        return pyarrow.timestamp(type_.unit, "UTC")
    if types.is_dictionary(type_):
        value = _known(type_.value_type, pyarrow)
        return type_ if value == type_.value_type else value
    if types.is_struct(type_):
        return pyarrow.struct(list(map(of, type_)))
    if types.is_list(type_):
        return pyarrow.list_(of(type_.value_field))
    if types.is_large_list(type_):
        return pyarrow.large_list(of(type_.value_field))
    if types.is_fixed_size_list(type_):
        return pyarrow.list_(of(type_.value_field), type_.list_size)
    if types.is_map(type_):
        return pyarrow.map_(of(type_.key_field), of(type_.item_field), type_.keys_sorted)
    return type_
