"""Converts Arrow types to those of Delta Lake and Iceberg."""

from typing import Any, Literal

from drumlin import Unsupported
from drumlin.migrate.packages import need


def lake_schema(schema: Any, lake: Literal["Delta Lake", "Iceberg"]) -> Any:
    """Converts a schema to the types that a lake has. Raises :class:`drumlin.Unsupported`, with the name of the column,
    if there is none."""
    types = _Types(lake)
    pyarrow = types.pyarrow
    fields = [pyarrow.field(field.name, types.of(field.type, field.name), field.nullable) for field in schema]
    return pyarrow.schema(fields)


def to_lake(batch: Any, schema: Any) -> Any:
    """Converts a record batch to the types of ``schema``. Raises :class:`drumlin.Unsupported` if one does not fit."""
    pyarrow = need("pyarrow", "an export", "pyarrow")
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pyarrow.ArrowInvalid as error:
            raise Unsupported(f"column {field.name!r} has a value that {field.type} does not hold: {error}") from error
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


class _Types:
    """The types that a lake has."""

    def __init__(self, lake: str) -> None:
        self.pyarrow = pyarrow = need("pyarrow", "an export", "pyarrow")
        self._lake = lake
        #: The types of numbers and dates that become others, by their names.
        self._wider = {
            "uint8": pyarrow.int16(),
            "uint16": pyarrow.int32(),
            "uint32": pyarrow.int64(),
            "uint64": pyarrow.decimal128(20, 0),
            "halffloat": pyarrow.float32(),
            "date64": pyarrow.date32(),
        }
        if lake == "Iceberg":
            self._wider |= dict.fromkeys(("int8", "int16", "uint8"), pyarrow.int32())

    def of(self, kind: Any, what: str) -> Any:
        """The type in the lake for ``kind``, a type of Arrow."""
        pyarrow = self.pyarrow
        types = pyarrow.types
        if isinstance(kind, pyarrow.BaseExtensionType):
            return self.of(kind.storage_type, what)
        if types.is_dictionary(kind):
            return self.of(kind.value_type, what)
        plain = self._plain(kind, what)
        if plain is not None:
            return plain
        if types.is_struct(kind):
            return pyarrow.struct(
                [pyarrow.field(part.name, self.of(part.type, f"{what}.{part.name}"), part.nullable) for part in kind]
            )
        if types.is_map(kind):
            return pyarrow.map_(self.of(kind.key_type, what), self.of(kind.item_type, what))
        if getattr(kind, "value_field", None) is not None:
            field = kind.value_field
            return pyarrow.list_(pyarrow.field(field.name, self.of(field.type, what), field.nullable))
        raise Unsupported(f"column {what!r} is of type {kind}, which {self._lake} does not have; drop or convert it")

    def _plain(self, kind: Any, what: str) -> Any:
        pyarrow = self.pyarrow
        types = pyarrow.types
        if (wide := self._wider.get(str(kind))) is not None:
            return wide
        if types.is_signed_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_date32(kind):
            return kind
        if types.is_timestamp(kind):
            return pyarrow.timestamp("us", "UTC" if kind.tz is not None else None)
        if types.is_decimal(kind):
            if kind.precision > 38:
                raise Unsupported(f"column {what!r} has {kind.precision} digits; {self._lake} has at most 38")
            return pyarrow.decimal128(kind.precision, kind.scale)
        if types.is_string(kind) or types.is_string_view(kind):
            return pyarrow.string()
        if types.is_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
            return pyarrow.binary()
        return kind if types.is_large_string(kind) or types.is_large_binary(kind) else None
