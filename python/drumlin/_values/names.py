"""Names of columns: text for labels that are not text, and which names Arrow passes on unchanged."""

import math
from typing import Any

from drumlin._errors import InvalidArgument


def field_name(label: Any) -> str:
    """The name that pyarrow gives the Arrow column with this label."""
    return str(_texts(label))


def _texts(label: Any) -> Any:
    if isinstance(label, str):
        return label
    if isinstance(label, bytes):
        return label.decode("utf8", "backslashreplace")
    if isinstance(label, tuple):
        return str(tuple(map(_texts, label)))
    if label is None or (isinstance(label, float) and math.isnan(label)):
        return label
    return str(label)


def check_name(name: str, what: str) -> None:
    """Checks that Arrow's C interface passes on the name of a column unchanged."""
    if "\0" in name:
        raise InvalidArgument(f"{what} has a NUL character, which ends a name in Arrow's C interface; rename it")


def check_arrow_names(schema: Any) -> None:
    """The same for all columns of a pyarrow schema, and the fields within them."""
    if "\0" in "".join(schema.names):
        name = next(name for name in schema.names if "\0" in name)
        check_name(name, f"the name {name!r}")
    for name, kind in zip(schema.names, schema.types, strict=True):
        if kind.num_fields:
            _check_parts(kind, f"column {name!r}")


def _check_parts(kind: Any, what: str) -> None:
    for at in range(kind.num_fields):
        part = kind.field(at)
        check_name(part.name, f"{what}: the field's name {part.name!r}")
        _check_parts(part.type, what)
