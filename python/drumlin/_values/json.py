"""JSON values as text: the metadata of versions, and values for conditions to compare with."""

import json
import math
from typing import Any

from drumlin._errors import InvalidArgument
from drumlin._optional import loaded

_DEPTH_MAX = 100


def to_json(value: Any, what: str) -> str:
    """``value`` as JSON text, from which it must come back unchanged; ``what`` is its name in messages."""
    _check(value, what, 0)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def plain_json(value: Any, depth: int = 0) -> Any:
    """``value`` with NumPy numbers as Python numbers, and pandas Timestamps as ISO 8601 text. Anything else that is not
    JSON is left as it is, to be refused later."""
    if depth > _DEPTH_MAX:
        return value
    if isinstance(value, dict):
        return {key: plain_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_json(item, depth + 1) for item in value]
    if (pandas := loaded("pandas")) is not None and isinstance(value, pandas.Timestamp):
        return value.isoformat()
    if (numpy := loaded("numpy")) is not None and isinstance(value, (numpy.bool_, numpy.integer, numpy.floating)):
        return value.item()
    return value


def _check(value: Any, place: str, depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise InvalidArgument(f"{place}: nested more than {_DEPTH_MAX} deep")
    match value:
        case None | bool():
            pass
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise InvalidArgument(f"{place}: the text holds half a surrogate pair") from None
        case int():
            # Other readers of JSON lose digits beyond this.
            if not -(2**63) <= value < 2**64:
                raise InvalidArgument(f"{place}: {value} is out of range; integers have at most 64 bits")
        case float():
            if not math.isfinite(value):
                raise InvalidArgument(f"{place}: JSON has no {value}")
        case list():
            for at, item in enumerate(value):
                _check(item, f"{place}[{at}]", depth + 1)
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise InvalidArgument(f"{place}: key {key!r} is not a str")
                _check(key, f"{place}: key {key!r}", depth + 1)
                _check(item, f"{place}[{key!r}]", depth + 1)
        case _:
            raise InvalidArgument(
                f"{place}: {type(value).__name__} is not a JSON value "
                "(None, bool, int, float, str, list, dict with str keys)"
            )
