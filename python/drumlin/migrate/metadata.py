"""The metadata that other systems keep with versions, as JSON."""

import math
from typing import Any

import drumlin
from drumlin import InvalidArgument
from drumlin.migrate.packages import need

#: How deep a store lets JSON be nested.
_DEPTH_MAX = 100


def refusal(metadata: Any) -> InvalidArgument | None:
    """The error with which a store refuses ``metadata``, or None if it accepts them. A store in memory tells."""
    if metadata is None:
        return None
    with drumlin.open("memory://") as store:
        try:
            store.write("decided", {"n": [0]}, metadata=metadata)
        except InvalidArgument as error:
            return error
    return None


def as_json(value: Any, depth: int = 0) -> Any:
    """Converts ``value`` to JSON that a store accepts: sequences and sets become lists; keys, and values that JSON
    lacks, become text."""
    if depth < _DEPTH_MAX:
        if isinstance(value, dict):
            return {_text(key): as_json(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [as_json(item, depth + 1) for item in value]
    numpy = need("numpy", "the metadata of a version", "pandas")
    if isinstance(value, (numpy.bool_, numpy.integer, numpy.floating)):
        value = value.item()
    match value:
        case None | bool():
            return value
        case int() if -(2**63) <= value < 2**64:
            return value
        case float() if math.isfinite(value):
            return value
    return value.isoformat() if type(value).__name__ == "Timestamp" else _text(value)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    return text.encode("utf-8", "backslashreplace").decode()
