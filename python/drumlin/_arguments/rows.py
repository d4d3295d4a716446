"""Rows and keys of keyed tables in the core's form: an object with an Arrow stream, or values that take the types of
the table's columns."""

import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from drumlin._arguments.fit import Fit
from drumlin._arguments.frames import FrameLike, to_stream
from drumlin._arguments.objects import as_dict, is_object
from drumlin._errors import InvalidArgument
from drumlin._optional import have, loaded, need
from drumlin._values.evidence import a_type
from drumlin._values.exact import exact

__all__ = ["KeysLike", "RowsLike"]

#: Rows of a keyed table: a frame, or a dict of one row. Values in lists and dicts take the types of the table's
#: columns.
RowsLike: TypeAlias = FrameLike | Mapping[str, Any]
#: Keys: a frame with the key columns, and possibly others; or an iterable of keys, each a value (if the key is one
#: column), a tuple of values or a dict. An array or a series of values is accepted too.
KeysLike: TypeAlias = FrameLike | Iterable[Any]


def to_rows(data: Any, fit: Fit | None = None) -> Any:
    """Rows in the core's form."""
    if isinstance(data, Mapping):
        return _from_dict(data)
    if isinstance(data, list):
        return _from_dicts(data)
    if is_object(data):
        return _from_dicts([data])
    return to_stream(data, fit or Fit(), "rows")


def in_parts(data: Any, key: Callable[[], list[str]]) -> list[dict[str, list[Any]]]:
    """A list of rows that do not all have the same columns, as parts that do, to be written one after the other; other
    data has no parts. ``key`` gives the columns of the table's key: rows of one key stay in their order."""
    if not isinstance(data, list):
        return []
    rows = [row if isinstance(row, Mapping) else _as_dict(row) for row in data]
    if len({frozenset(row) for row in rows}) < 2:
        return []
    names = key()
    parts: list[list[Mapping[str, Any]]] = []
    # The part of each set of columns, for keys that are in none yet.
    open_parts: dict[frozenset[str], list[Mapping[str, Any]]] = {}
    seen: set[Any] = set()
    for row in rows:
        own = tuple(map(row.get, names))
        try:
            again = own in seen
        except TypeError:
            # No value of a key: the core says so.
            return [_from_dicts([row]) for row in rows]
        if again:
            open_parts, seen = {}, set()
        seen.add(own)
        columns = frozenset(row)
        if columns not in open_parts:
            open_parts[columns] = []
            parts.append(open_parts[columns])
        open_parts[columns].append(row)
    return [_from_dicts(part) for part in parts]


def typed(values: list[Any], name: str) -> Any:
    """Values for a column without a type, with the type that Arrow infers."""
    try:
        return need("pyarrow", f"a column without a type ({name!r})", "pyarrow").array(exact(values, name))
    except (ImportError, InvalidArgument):
        raise
    except Exception as error:
        raise InvalidArgument(f"column {name!r} has no Arrow form: {error}") from error


def to_keys(keys: Any) -> Any:
    """Keys in the core's form: columns, a list, or a tuple of one array."""
    if isinstance(keys, Mapping):
        return _from_dict(keys)
    if isinstance(
        keys, (str, bytes, bytearray, bool, int, float, decimal.Decimal, uuid.UUID, dt.date, dt.time, dt.timedelta)
    ):
        # A list of one.
        return [keys]
    if isinstance(keys, (list, tuple)):
        return list(keys)
    if _is_series(keys):
        return (_to_array(keys),)
    if _is_frame(keys):
        return keys if _is_arrow_array(keys) else to_stream(keys)
    if isinstance(keys, Iterable):
        return list(keys)
    raise TypeError(
        f"keys: expected a list of values, tuples or dicts, an array of values, or a frame with the key columns, got "
        f"{a_type(keys)}"
    )


def beside_key(values: Mapping[str, Any], key: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A row of a key and other values."""
    for column in values:
        if _name(column) in key:
            raise InvalidArgument(f"{name}: column {column!r} is part of the key, which is given by itself")
    return {**key, **values}


def keys_as_dicts(keys: Any, names: Callable[[], list[str]]) -> list[Mapping[str, Any]]:
    """One key, or a list of keys, as dicts by the names of the key's columns."""
    own = names()
    if not own:
        raise InvalidArgument("the table has no key; create it with one, or use append, update and delete")
    many = keys if isinstance(keys, list) else [keys]
    found = []
    for key in many:
        if isinstance(key, Mapping):
            if wrong := set(key) ^ set(own):
                named = ", ".join(map(repr, sorted(wrong)))
                raise InvalidArgument(f"the key {key!r} is not of the columns {own}: {named}")
            found.append(key)
            continue
        values = key if isinstance(key, tuple) and not hasattr(key, "_asdict") else (key,)
        if len(values) != len(own):
            raise InvalidArgument(
                f"the key {key!r} has {len(values)} values, but the key has the columns {own}; give a tuple or a dict"
            )
        found.append(dict(zip(own, values, strict=True)))
    return found


def _from_dicts(rows: list[Any]) -> dict[str, list[Any]]:
    """A list of dicts as columns; what a row lacks is None."""
    rows = [row if isinstance(row, Mapping) else _as_dict(row) for row in rows]
    names = dict.fromkeys(name for row in rows for name in row)
    return {_name(name): [row.get(name) for row in rows] for name in names}


def _as_dict(row: Any) -> Mapping[str, Any]:
    """A row that is no dict."""
    if (found := as_dict(row)) is not None:
        return found
    raise TypeError(f"a list of rows must hold dicts, dataclasses or named tuples, not {a_type(row)}")


def _from_dict(data: Mapping[Any, Any]) -> Any:
    """A dict of columns; or of the values of one row, if one of them is not a column."""
    if hasattr(data, "__arrow_c_stream__"):
        return data
    if not data:
        raise InvalidArgument("the dict is empty; expected columns, or the values of a row, by name")
    if not all(map(_is_column, data.values())):
        return {_name(name): [value] for name, value in data.items()}
    columns = {_name(name): _to_column(values, name) for name, values in data.items()}
    first, *others = columns
    if wrong := next((name for name in others if len(columns[name]) != len(columns[first])), None):
        raise InvalidArgument(
            "the columns differ in length; expected the same number of values, but "
            f"{first!r} has {len(columns[first])} and {wrong!r} has {len(columns[wrong])}"
        )
    return columns


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a column's name must be a str, not {name!r}")
    return name


def _is_column(values: Any) -> bool:
    return isinstance(values, (list, tuple, range)) or _is_series(values)


def _to_column(values: Any, name: str) -> Any:
    """A column as a list of values or an Arrow array."""
    if isinstance(values, (list, tuple, range)):
        return list(values)
    try:
        return _to_array(values)
    except InvalidArgument as error:
        raise InvalidArgument(f"column {name!r}: {error}") from error


def _is_series(values: Any) -> bool:
    """Whether the values are one column with a type."""
    polars = loaded("polars")
    if _is_arrow_array(values):
        # A struct array has columns.
        return not hasattr(values.type, "fields")
    return (polars is not None and isinstance(values, polars.Series)) or _is_numpy(values) or _is_pandas(values)


def _is_arrow_array(values: Any) -> bool:
    pyarrow = loaded("pyarrow")
    return pyarrow is not None and isinstance(values, (pyarrow.Array, pyarrow.ChunkedArray))


def _is_numpy(values: Any) -> bool:
    numpy = loaded("numpy")
    return numpy is not None and isinstance(values, numpy.ndarray) and values.ndim > 0


def _is_pandas(values: Any) -> bool:
    pandas = loaded("pandas")
    if pandas is None:
        return False
    kinds = (pandas.Series, pandas.Index, pandas.api.extensions.ExtensionArray)
    return isinstance(values, kinds) and not isinstance(values, pandas.MultiIndex)


def _is_frame(data: Any) -> bool:
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return True
    pandas, polars = loaded("pandas"), loaded("polars")
    return (pandas is not None and isinstance(data, pandas.DataFrame)) or (
        polars is not None and isinstance(data, polars.LazyFrame)
    )


def _to_array(values: Any) -> Any:
    """A series as an Arrow array, or as a list if its values have no type."""
    if not (_is_numpy(values) or _is_pandas(values)):
        return values
    if str(values.dtype) == "object":
        return list(values)
    if _is_numpy(values):
        values = exact(values, "")
        if isinstance(values, list):
            return values
    what = f"a {type(values).__module__.partition('.')[0]} {type(values).__name__}"
    try:
        if have("pyarrow"):
            return need("pyarrow", "", "").array(values)
        if have("polars"):
            return need("polars", "", "").Series(values)
    except ImportError:
        raise
    except Exception as error:
        raise InvalidArgument(f"{what} has no Arrow form: {error}") from error
    return need("pyarrow", what, "pyarrow")
