"""dtypes as JSON: text for those that a name determines, otherwise a dict with its ``type``.

Categories are an index, and Python objects have no specific dtype: see ``columns`` and ``objects``.
"""

import base64
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from drumlin._errors import InvalidArgument
from drumlin._pandas.zones import zone_from_json, zone_to_json

#: NumPy dtypes that Arrow has, too.
NUMBERS = frozenset(
    {"bool", "float16", "float32", "float64"} | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
MOMENTS = frozenset(f"{kind}64[{unit}]" for kind in ("datetime", "timedelta") for unit in ("s", "ms", "us", "ns"))
#: pandas dtypes with a mask, by the NumPy dtype that cannot represent missing values.
MASKED = {
    "bool": "boolean",
    "float32": "Float32",
    "float64": "Float64",
    **{
        f"{sign}int{bits}": f"{sign}int{bits}".upper().replace("INT", "Int")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
_MASKED_NAMES = frozenset(MASKED.values())


def dtype_to_json(dtype: Any, what: str) -> Any:
    """``dtype``, neither categories nor objects, as JSON. It is refused if it would not come back equal."""
    if isinstance(dtype, np.dtype):
        if str(dtype) in NUMBERS or str(dtype) in MOMENTS:
            return str(dtype)
        if not dtype.isnative:
            raise InvalidArgument(
                f"{what} has big-endian numbers ({dtype.str}); convert them with astype({dtype.name!r})"
            )
        raise InvalidArgument(f"{what} has dtype {dtype}, which cannot be stored; convert it with astype()")
    if isinstance(dtype, pd.DatetimeTZDtype):
        try:
            return {"type": "zoned", "unit": dtype.unit, "zone": zone_to_json(dtype.tz)}
        except InvalidArgument as error:
            raise InvalidArgument(f"{what}: {error}") from None
    if isinstance(dtype, pd.PeriodDtype):
        made: Any = {"type": "period", "freq": dtype.name.removeprefix("period[").removesuffix("]")}
    elif isinstance(dtype, pd.IntervalDtype):
        if dtype.subtype is None:
            raise InvalidArgument(f"{what} has dtype interval without a type of its ends; convert it with astype()")
        ends = dtype_to_json(dtype.subtype, what)
        return {"type": "interval", "ends": ends, "closed": dtype.closed}
    elif isinstance(dtype, pd.StringDtype):
        made = {"type": "string", "storage": dtype.storage, "missing": "NA" if dtype.na_value is pd.NA else "nan"}
    elif isinstance(dtype, pd.ArrowDtype):
        schema = pa.schema([pa.field("", dtype.pyarrow_dtype)]).serialize().to_pybytes()
        return {"type": "arrow", "schema": base64.b64encode(schema).decode()}
    elif isinstance(dtype, pd.SparseDtype):
        raise InvalidArgument(f"{what} is sparse; store its dense form: astype({dtype.subtype.name!r})")
    elif str(dtype) in _MASKED_NAMES:
        made = str(dtype)
    elif hasattr(dtype, "__from_arrow__"):
        made = {"type": "extension", "name": str(dtype)}
    else:
        made = None
    try:
        if made is not None and dtype_from_json(made) == dtype:
            return made
    except (TypeError, ValueError, NotImplementedError):
        pass
    raise InvalidArgument(f"{what} has dtype {dtype}, which cannot be stored; convert it with astype()")


def dtype_from_json(made: Any) -> Any:
    """The dtype that ``made`` describes."""
    if isinstance(made, str):
        return np.dtype(made) if made in NUMBERS or made in MOMENTS else pd.api.types.pandas_dtype(made)
    match made["type"]:
        case "zoned":
            return pd.DatetimeTZDtype(made["unit"], zone_from_json(made["zone"]))
        case "period":
            return pd.PeriodDtype(made["freq"])
        case "interval":
            return pd.IntervalDtype(dtype_from_json(made["ends"]), made["closed"])
        case "string":
            return _string(made["storage"], made["missing"])
        case "arrow":
            return pd.ArrowDtype(arrow_type(made["schema"]))
        case "extension":
            return pd.api.types.pandas_dtype(made["name"])
    raise ValueError(f"a dtype of type {made['type']!r} is not known")


def _string(storage: str, missing: str) -> Any:
    if missing == "NA":
        return pd.StringDtype(storage)
    if storage.endswith("_numpy"):
        storage = storage.removesuffix("_numpy")
    try:
        return pd.StringDtype(storage, na_value=np.nan)
    except TypeError:
        # pandas older than 2.3.
        return pd.StringDtype("pyarrow_numpy")


def _arrow_type(schema: str) -> Any:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema))).field(0).type


_arrow_type_remembered = lru_cache(maxsize=256)(_arrow_type)


def arrow_type(schema: str) -> Any:
    """The Arrow type in a schema of one column."""
    return _arrow_type_remembered(schema)
