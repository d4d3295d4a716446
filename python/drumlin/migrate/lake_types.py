"""Arrow types as Delta Lake and Iceberg have them."""

from typing import Any

from drumlin._errors import Unsupported
from drumlin._optional import need


def lake_schema(schema: Any) -> Any:
    """A schema with the types in which a lake holds the values; :class:`drumlin.Unsupported` names a column that has
    none."""
    pyarrow = need("pyarrow", "an export", "pyarrow")
    fields = []
    for field in schema:
        kind = _lake_type(field.type, field.name, pyarrow)
        fields.append(pyarrow.field(field.name, kind, field.nullable))
    return pyarrow.schema(fields)


def to_lake(batch: Any, schema: Any) -> Any:
    """A record batch with other types for the same values; fails where a value has none."""
    pyarrow = need("pyarrow", "an export", "pyarrow")
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pyarrow.ArrowInvalid as error:
            raise Unsupported(f"column {field.name!r} has a value that {field.type} does not hold: {error}") from error
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def _lake_type(kind: Any, what: str, pyarrow: Any) -> Any:
    types = pyarrow.types
    if isinstance(kind, pyarrow.BaseExtensionType):
        return _lake_type(kind.storage_type, what, pyarrow)
    if types.is_dictionary(kind):
        return _lake_type(kind.value_type, what, pyarrow)
    plain = _plain_type(kind, what, pyarrow)
    if plain is not None:
        return plain
    if types.is_struct(kind):
        return pyarrow.struct(
            [pyarrow.field(f.name, _lake_type(f.type, f"{what}.{f.name}", pyarrow), f.nullable) for f in kind]
        )
    if types.is_map(kind):
        key, item = (_lake_type(part, what, pyarrow) for part in (kind.key_type, kind.item_type))
        return pyarrow.map_(key, item)
    if getattr(kind, "value_field", None) is not None:
        field = kind.value_field
        return pyarrow.list_(pyarrow.field(field.name, _lake_type(field.type, what, pyarrow), field.nullable))
    raise Unsupported(f"column {what!r} is of type {kind}, which the format has not; drop it, or convert it")


def _plain_type(kind: Any, what: str, pyarrow: Any) -> Any:
    types = pyarrow.types
    wider = {
        "uint8": pyarrow.int16(),
        "uint16": pyarrow.int32(),
        "uint32": pyarrow.int64(),
        "uint64": pyarrow.decimal128(20, 0),
        "halffloat": pyarrow.float32(),
        "date64": pyarrow.date32(),
    }
    if (wide := wider.get(str(kind))) is not None:
        return wide
    if types.is_signed_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_date32(kind):
        return kind
    if types.is_timestamp(kind):
        return pyarrow.timestamp("us", "UTC" if kind.tz is not None else None)
    if types.is_decimal(kind):
        if kind.precision > 38:
            raise Unsupported(f"column {what!r} has {kind.precision} digits; the format has at most 38")
        return pyarrow.decimal128(kind.precision, kind.scale)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pyarrow.large_string() if types.is_large_string(kind) else pyarrow.string()
    if types.is_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return pyarrow.binary()
    return pyarrow.large_binary() if types.is_large_binary(kind) else None
