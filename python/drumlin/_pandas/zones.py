"""Time zones as JSON. Arrow keeps a zone's name, but pandas compares the objects: ``ZoneInfo`` and pytz zones
differ."""

import datetime as dt
import zoneinfo
from typing import Any

import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from drumlin._errors import InvalidArgument
from drumlin._optional import have, need
from drumlin._values.evidence import shown, type_name


def zone_to_json(zone: dt.tzinfo | None) -> Any:
    """``zone`` as JSON; :class:`drumlin.InvalidArgument` if it would not come back equal."""
    if zone is None:
        return None
    made = _to_json(zone)
    if made is None or not _same(zone, zone_from_json(made)):
        raise InvalidArgument(
            f"the time zone {shown(zone)} ({type_name(zone)}) cannot be stored; expected a zone with a name "
            "(zoneinfo, pytz, dateutil) or a fixed offset; convert the values with tz_convert()"
        )
    return made


def _to_json(zone: dt.tzinfo) -> Any:
    if isinstance(zone, zoneinfo.ZoneInfo):
        return {"zoneinfo": zone.key} if zone.key is not None else None
    if type(zone) is dt.timezone:
        offset = zone.utcoffset(None)
        return {"offset": [offset.days, offset.seconds, offset.microseconds]}
    package = type(zone).__module__.partition(".")[0]
    if package == "pytz":
        if getattr(zone, "zone", None) is not None:
            return {"pytz": zone.zone}  # type: ignore[attr-defined]
        minutes = getattr(zone, "_minutes", None)
        return {"pytz_offset": minutes} if isinstance(minutes, int) else None
    if package == "dateutil":
        name = "UTC" if type(zone).__name__ == "tzutc" else getattr(zone, "_filename", None)
        return {"dateutil": name} if isinstance(name, str) else None
    return None


def zone_from_json(made: Any) -> dt.tzinfo | None:
    """The zone that ``made`` describes. Without pytz or dateutil, the ``zoneinfo`` zone with that name."""
    if made is None:
        return None
    [(kind, value)] = made.items()
    if kind == "offset":
        days, seconds, micros = value
        offset = dt.timedelta(days, seconds, micros)
        return dt.UTC if not offset else dt.timezone(offset)
    zone: dt.tzinfo | None
    if kind == "pytz_offset":
        if not have("pytz"):
            return dt.timezone(dt.timedelta(minutes=value))
        zone = need("pytz", "", "").FixedOffset(value)
        return zone
    if kind == "pytz" and have("pytz"):
        zone = need("pytz", "", "").timezone(value)
        return zone
    if kind == "dateutil" and have("dateutil.tz"):
        dateutil = need("dateutil.tz", "", "")
        zone = dateutil.UTC if value == "UTC" else dateutil.gettz(value)
        if zone is not None:
            return zone
    return zoneinfo.ZoneInfo(value.rpartition("zoneinfo/")[2])


def _same(zone: dt.tzinfo, back: dt.tzinfo | None) -> bool:
    return back is not None and bool(pd.DatetimeTZDtype("ns", back) == pd.DatetimeTZDtype("ns", zone))


def arrow_zone(zone: dt.tzinfo | None) -> str | None:
    """The name of ``zone`` in Arrow; UTC if it has none, since the values are in UTC."""
    if zone is None:
        return None
    try:
        return str(pa.lib.tzinfo_to_string(zone))
    except (TypeError, ValueError):
        return "UTC"
