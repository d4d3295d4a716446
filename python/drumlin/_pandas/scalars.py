"""One value as JSON: labels of columns, and names of an index and its levels. Its type is restored too."""

import datetime as dt
import decimal
import math
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]

from drumlin._errors import InvalidArgument
from drumlin._pandas.zones import zone_from_json, zone_to_json
from drumlin._values.evidence import shown, type_name


def scalar_to_json(value: Any, what: str) -> Any:
    """``value`` as JSON; ``what`` is its name in messages. NumPy numbers become Python numbers, which are equal."""
    match value:
        case None | bool():
            return value
        case np.bool_():
            return bool(value)
        case _ if type(value) is str or isinstance(value, np.str_):
            return _text(str(value), what)
        case _ if value is pd.NA:
            return {"NA": None}
        case _ if value is pd.NaT:
            return {"NaT": None}
        case pd.Timestamp():
            zone = zone_to_json(value.tzinfo)
            return {"Timestamp": [int(value.to_datetime64().astype("int64")), value.unit, zone]}
        case pd.Timedelta():
            return {"Timedelta": [int(value.to_timedelta64().astype("int64")), value.unit]}
        case pd.Period():
            return {"Period": [value.ordinal, value.freqstr]}
        case pd.Interval():
            ends = [scalar_to_json(end, what) for end in (value.left, value.right)]
            return {"Interval": [*ends, value.closed]}
        case tuple() if type(value) is tuple:
            return {"tuple": [scalar_to_json(part, what) for part in value]}
    if isinstance(value, np.integer) or type(value) is int:
        return int(value)
    if type(value) is float or isinstance(value, (np.float64, np.float32, np.float16)):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    if type(value) is dt.datetime and value.tzinfo is None:
        return {"datetime": value.isoformat()}
    if type(value) is dt.date:
        return {"date": value.isoformat()}
    if type(value) is dt.time and value.tzinfo is None:
        return {"time": value.isoformat()}
    if type(value) is dt.timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if type(value) is decimal.Decimal and value.is_finite():
        return {"Decimal": str(value)}
    raise InvalidArgument(
        f"{what} is {shown(value)} of type {type_name(value)}, which cannot be stored; expected a str, a number, a "
        "date, a time or a tuple of them; rename it"
    )


def _text(value: str, what: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{what} {shown(value)} holds half a surrogate pair; rename it") from None
    return value


def scalar_from_json(made: Any) -> Any:
    """The value that ``made`` describes."""
    if not isinstance(made, dict):
        return made
    [(kind, value)] = made.items()
    match kind:
        case "NA" | "NaT":
            return getattr(pd, kind)
        case "Timestamp":
            stamp = pd.Timestamp(np.datetime64(value[0], value[1]))
            return stamp if value[2] is None else stamp.tz_localize("UTC").tz_convert(zone_from_json(value[2]))
        case "Timedelta":
            return pd.Timedelta(np.timedelta64(value[0], value[1]))
        case "Period":
            return pd.Period(ordinal=value[0], freq=value[1])
        case "Interval":
            return pd.Interval(scalar_from_json(value[0]), scalar_from_json(value[1]), value[2])
        case "tuple":
            return tuple(map(scalar_from_json, value))
        case "float":
            return float(value)
        case "bytes":
            return bytes.fromhex(value)
        case "datetime":
            return dt.datetime.fromisoformat(value)
        case "date":
            return dt.date.fromisoformat(value)
        case "time":
            return dt.time.fromisoformat(value)
        case "timedelta":
            return dt.timedelta(*value)
        case "Decimal":
            return decimal.Decimal(value)
    raise ValueError(f"a label of kind {kind!r} is not known")
