"""Rows as objects: dataclasses, named tuples, models of pydantic and attrs."""

from collections.abc import Mapping
from typing import Any

__all__: list[str] = []


def is_object(row: Any) -> bool:
    """Whether it is a row that is no dict."""
    if isinstance(row, type) or hasattr(row, "__arrow_c_stream__"):
        return False
    kind = type(row)
    # As the module dataclasses does it, whose import takes long.
    marks = ("__dataclass_fields__", "__attrs_attrs__", "model_fields", "__pydantic_fields__")
    return any(hasattr(kind, mark) for mark in marks) or (isinstance(row, tuple) and hasattr(row, "_asdict"))


def as_dict(row: Any) -> Mapping[str, Any] | None:
    """Such a row by the names of its values; None of anything else."""
    if not is_object(row):
        return None
    if hasattr(type(row), "__dataclass_fields__"):
        import dataclasses

        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    if hasattr(row, "_asdict"):
        return dict(row._asdict())
    if hasattr(type(row), "__attrs_attrs__"):
        return {field.name: getattr(row, field.name) for field in type(row).__attrs_attrs__}
    return dict(row.model_dump())
