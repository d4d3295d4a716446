"""Values as messages show them."""

from typing import Any


def shown(value: Any, most: int = 60) -> str:
    """A value as messages show it."""
    try:
        text = repr(value)
    except Exception:
        text = "<a value whose repr() raises>"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def type_name(value: Any) -> str:
    """The type of a value as messages show it: ``str``, ``decimal.Decimal``, ``pandas.Timestamp``."""
    kind = type(value)
    module = kind.__module__
    if module == "builtins":
        return kind.__qualname__
    if module.startswith("pandas."):
        module = "pandas"
    return f"{module}.{kind.__qualname__}"
