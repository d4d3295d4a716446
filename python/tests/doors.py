"""Doors by which values go into a store and come out, types with extreme values, and a form in which values of all
libraries compare.

A door in takes an Arrow array, hands its values over as the door's library has them, and returns what it handed over: a
value that the library itself rounds is not the store's. A door out returns the values that its library shows.
"""

import contextlib
import csv
import datetime as dt
import decimal
import io
import json
import math
import struct
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

import drumlin
from drumlin import _drumlin

D = decimal.Decimal
INF, NAN = math.inf, math.nan


class NotHere(Exception):
    """The library of a door has no such values."""


def stamps(unit: str, zone: str | None) -> pa.Array:
    ends = {"s": 2**33, "ms": 2**42, "us": 2**51, "ns": 2**62}[unit]
    return pa.array([0, None, -1, ends + 1, -ends + 1], pa.timestamp(unit, zone))


#: Values by type, extremes among them.
ARRAYS: dict[str, pa.Array] = {
    **{
        f"{sign}int{bits}": pa.array([0, None, low, high, 7], getattr(pa, f"{sign}int{bits}")())
        for bits in (8, 16, 32, 64)
        for sign, low, high in (("", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1), ("u", 1, 2**bits - 1))
    },
    "int64 beyond floats": pa.array([2**53 + 1, None, -(2**53) - 1], pa.int64()),
    "float16": pa.array(np.array([0.1, -0.0, 65504, 6e-8, np.inf, np.nan], "float16")),
    "float32": pa.array(np.array([0.1, -0.0, 3.4e38, 1e-45, 16777217, np.inf, np.nan], "float32")),
    "float64": pa.array([0.1, -0.0, 1.7976931348623157e308, 5e-324, 9007199254740993.0, 1e16, -INF, NAN]),
    "float64 and null": pa.array([0.1, None, -0.0, 123456789.12345679]),
    "bool": pa.array([True, None, False]),
    "decimal32": pa.array([D("1.50"), None, D("-9999999.99")], pa.decimal32(9, 2)),
    "decimal64": pa.array([D("1.50"), None, D("-9999999999.99")], pa.decimal64(18, 2)),
    "decimal128": pa.array([D("0.10"), None, D("9" * 36 + ".99"), D("-0.01")], pa.decimal128(38, 2)),
    "decimal256": pa.array([D("0.10"), None, D("-" + "9" * 60 + ".99")], pa.decimal256(62, 2)),
    "date32": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31), dt.date(1970, 1, 1)]),
    "date64": pa.array([dt.date(1969, 12, 31), None, dt.date(2020, 2, 29)], pa.date64()),
    **{
        f"time32[{unit}]": pa.array([0, None, 86_400 * most - 1], pa.time32(unit))
        for unit, most in (("s", 1), ("ms", 1000))
    },
    "time64[us]": pa.array([0, None, 86_399_999_999], pa.time64("us")),
    "time64[ns]": pa.array([0, None, 86_399_999_999_000], pa.time64("ns")),
    "time64[ns] of nanoseconds": pa.array([0, None, 86_399_999_999_999, 1], pa.time64("ns")),
    **{f"timestamp[{unit}]": stamps(unit, None) for unit in ("s", "ms", "us", "ns")},
    **{
        f"timestamp[{unit}, {zone}]": stamps(unit, zone)
        for unit in ("s", "us", "ns")
        for zone in ("UTC", "Europe/Oslo")
    },
    **{f"duration[{unit}]": pa.array([0, None, -1, 2**40 + 1], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "text": pa.array(
        ["a", None, "ü日本🪨", " lead", "trail ", 'say "hi"', "a,b", "l1\nl2", "l1\r\nl2", "\t", "'", "\\", "x" * 5000]
    ),
    "text of numbers": pa.array(
        ["007", None, "1e3", "+5", "1_000", "0x10", " 8 ", "1.10", "NaN", "true", "null", "None"]
    ),
    "text of leading zeros": pa.array(["01234", None, "90210"]),
    "text of long numbers": pa.array(["123456789.123456789", None, "12345678901234567890123"]),
    "text of offsets": pa.array(["2020-01-01T00:00:00+02:00", None, "2020-01-01T00:00:00"]),
    "text of days": pa.array(["2024-02-30", None, "2024-13-01"]),
    "text with NUL": pa.array(["x\0y", None, "\0x"]),
    "empty text": pa.array(["", None, "a"]),
    "large text": pa.array(["a", None, "ü"], pa.large_string()),
    "text view": pa.array(["a", None, "longer than twelve bytes"], pa.string_view()),
    "bytes": pa.array([b"ab\0cd", None, b"\xff\xfe", b"a"]),
    "large bytes": pa.array([b"ab\0cd", None, b"\xff"], pa.large_binary()),
    "fixed bytes": pa.array([b"a\0b\0", None, b"abcd"], pa.binary(4)),
    "dictionary": pa.array(["b", None, "a", "b"]).dictionary_encode(),
    "list": pa.array([[1, None], None, [], [2**63 - 1]], pa.list_(pa.int64())),
    "list of text": pa.array([["a", None], None, []]),
    "list of list": pa.array([[[1], None], None, [[]]], pa.list_(pa.list_(pa.int64()))),
    "fixed list": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2)),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": ""}]),
    "struct of list": pa.array([{"a": [1.5, None]}, None, {"a": None}]),
    "list of struct": pa.array([[{"a": 2**53 + 1}, None], None, []]),
    "null": pa.nulls(3),
}


def same(value: Any) -> Any:
    """A value in a form in which equal values of all libraries are equal, and no others are."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, (bool, np.bool_)):
        return ("bool", bool(value))
    if isinstance(value, (np.datetime64, np.timedelta64)):
        kind = "moment" if isinstance(value, np.datetime64) else "span"
        if np.isnat(value):
            return None
        unit, count = np.datetime_data(value.dtype)
        each = {"D": 86_400 * 10**9, "h": 3600 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit] * count
        return (
            (kind, int(value.astype("int64")) * each, False)
            if kind == "moment"
            else (kind, int(value.astype("int64")) * each)
        )
    if isinstance(value, (int, np.integer)):
        return ("int", int(value))
    if isinstance(value, (float, np.floating)):
        return ("float", "nan" if math.isnan(value) else struct.pack("d", float(value)))
    if isinstance(value, D):
        return ("decimal", value.normalize(decimal.Context(prec=100)) if value else D(0))
    if type(value).__name__ == "MonthDayNano" or (type(value) is tuple and len(value) == 3):
        # What DuckDB makes of spans.
        nanos = value[1] * 86_400 * 10**9 + value[2]
        return ("span", nanos) if value[0] == 0 else ("interval", (value[0], nanos))
    if isinstance(value, pd.DateOffset):
        return same((value.kwds.get("months", 0), value.kwds.get("days", 0), value.kwds.get("nanoseconds", 0)))
    if isinstance(value, (str, bytes, bytearray)):
        return (
            "text" if isinstance(value, str) else "bytes",
            bytes(value, "utf-8") if isinstance(value, str) else bytes(value),
        )
    if isinstance(value, uuid.UUID):
        return ("bytes", value.bytes)
    if isinstance(value, dt.datetime):
        plain = value.replace(tzinfo=None) if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        whole = (plain - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
        return ("moment", whole * 1000 + getattr(value, "nanosecond", 0), value.tzinfo is not None)
    if isinstance(value, dt.date):
        return ("day", value.toordinal())
    if isinstance(value, dt.time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return ("time", (seconds * 10**6 + value.microsecond) * 1000)
    if isinstance(value, dt.timedelta):
        return ("span", value.value if hasattr(value, "value") else value // dt.timedelta(microseconds=1) * 1000)
    if isinstance(value, dict):
        return ("struct", tuple((name, same(part)) for name, part in value.items()))
    if isinstance(value, (list, tuple, np.ndarray, pl.Series)):
        return ("list", tuple(map(same, value)))
    raise TypeError(f"a {type(value)} has no form to compare")


def of_arrow(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of an Arrow column, with all their digits."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return [same(value) for value in values.to_pylist()]
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time(kind):
        each = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
        numbers = values.cast(pa.int32()).cast(pa.int64()) if pa.types.is_time32(kind) else values.cast(pa.int64())
        name = "moment" if pa.types.is_timestamp(kind) else "time" if pa.types.is_time(kind) else "span"
        zoned = (kind.tz is not None,) if name == "moment" else ()
        return [None if number is None else (name, number * each, *zoned) for number in numbers.to_pylist()]
    if pa.types.is_date64(kind):
        values = values.cast(pa.date32())
    return [same(value) for value in values.to_pylist()]


def loose(form: Any) -> Any:
    """A form without what a door out cannot tell: whether a day is a moment, a missing number is none, and a number is
    whole."""
    if form is None or form == ("float", "nan"):
        return None
    if form[0] in ("int", "bool") and abs(form[1]) <= 2**53:
        return ("float", struct.pack("d", float(form[1])))
    if form[0] == "day":
        return ("moment", (form[1] - 719_163) * 86_400 * 10**9)
    if form[0] == "moment":
        return form[:2]
    if form[0] in ("list", "struct"):
        return (form[0], tuple((part[0], loose(part[1])) if form[0] == "struct" else loose(part) for part in form[1]))
    return form


# Doors in: `store`, a folder for files, the array. They return the values that were handed over.


def command(*args: str) -> str:
    """Runs the command; what it says, if it fails, is raised."""
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        code = _drumlin.main(["drumlin", *args])
    if code:
        raise drumlin.InvalidArgument(f"the command failed: {' '.join(args)}")
    return told.getvalue()


def by_arrow(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    store.write("t", pa.table({"v": array}))
    return of_arrow(array)


def by_dict(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    values = array.to_pylist()
    store.write("t", {"v": values})
    return list(map(same, values))


def by_dicts(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    values = array.to_pylist()
    store.write("t", [{"v": value} for value in values])
    return list(map(same, values))


def by_key(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    values = array.to_pylist()
    table = store.table("t")
    table.create({"k": pa.int64(), "v": array.type}, key=["k"])
    table.upsert([{"k": at, "v": value} for at, value in enumerate(values)])
    return list(map(same, values))


def by_append(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    values = array.to_pylist()
    store.write("t", pa.table({"v": array[:0]}))
    store.append("t", {"v": values})
    return list(map(same, values))


def by_default(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    values = [value for value in array.to_pylist() if value is not None]
    if not values:
        raise NotHere
    store.write("t", {"k": [0]})
    store.table("t").add_columns({"v": (array.type, values[-1])})
    return [same(values[-1])]


def by_numpy(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    values = array.to_numpy(zero_copy_only=False)
    store.write("t", {"v": values})
    # pyarrow's numbers become floats beside nulls, whose values are those of the array.
    return [same(value) for value in values]


def by_fixed_width(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    values = [value for value in array.to_pylist() if value is not None]
    if not values or not isinstance(values[0], (str, bytes)) or any(value[-1:] in ("\0", b"\0") for value in values):
        raise NotHere
    fixed = np.array(values)
    store.write("t", np.array([(value,) for value in values], dtype=[("v", fixed.dtype)]))
    return list(map(same, values))


def by_pandas(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    frame = pd.DataFrame({"v": array.to_pandas()})
    store.write("t", frame)
    return [same(value) for value in frame["v"].tolist()]


def by_pandas_arrow(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    store.write("t", pd.DataFrame({"v": pd.Series(array, dtype=pd.ArrowDtype(array.type))}))
    return of_arrow(array)


def by_polars(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    try:
        frame = pl.DataFrame({"v": pl.from_arrow(array)})
    except pl.exceptions.PanicException:
        raise NotHere from None
    store.write("t", frame)
    return of_arrow(frame.to_arrow()["v"])


def by_duckdb(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    rows = pa.table({"v": array})
    relation = duckdb.from_arrow(rows)
    given = of_arrow(relation.to_arrow_table()["v"])
    store.write("t", duckdb.from_arrow(rows))
    return given


def _text(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _as_text(array: pa.Array) -> list[Any]:
    values = array.to_pylist()
    plain = (bool, int, float, D, str, dt.date, dt.datetime, dt.time)
    if not all(value is None or isinstance(value, plain) for value in values) or array.type == pa.time64("ns"):
        raise NotHere
    if pa.types.is_float16(array.type) or pa.types.is_float32(array.type):
        return [None if value is None else str(array.type.to_pandas_dtype()(value)) for value in values]
    return [None if value is None else _text(value) for value in values]


def by_csv(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    """Of no type: each value is as it prints, or text."""
    texts = _as_text(array)
    with (folder / "v.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["k", "v"], *[[at, text] for at, text in enumerate(texts)]])
    with _closed(store, folder) as place:
        command("import", place, str(folder / "v.csv"), "--table", "t")
    return texts


def by_csv_onto(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    texts = _as_text(array)
    with (folder / "v.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["k", "v"], *[[at, text] for at, text in enumerate(texts)]])
    store.write("t", pa.table({"k": pa.array([], pa.int64()), "v": array[:0]}))
    with _closed(store, folder) as place:
        command("import", place, str(folder / "v.csv"), "--table", "t", "--append")
    # An empty value is null.
    return [None if value == ("text", b"") else value for value in of_arrow(array)]


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return {INF: "Infinity", -INF: "-Infinity"}.get(value, "NaN")
    if isinstance(value, dict):
        return {name: _as_json(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_as_json(part) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (dt.timedelta, dt.time)):
        raise NotHere
    return _text(value)


def by_json(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    values = [_as_json(value) for value in array.to_pylist()]
    if pa.types.is_floating(array.type) and any(isinstance(value, str) for value in values):
        raise NotHere
    (folder / "v.jsonl").write_text("".join(json.dumps({"v": value}) + "\n" for value in values))
    with _closed(store, folder) as place:
        command("import", place, str(folder / "v.jsonl"), "--table", "t", "--sample", "0")
    return list(map(same, values))


def by_json_onto(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
    values = [_as_json(value) for value in array.to_pylist()]
    (folder / "v.jsonl").write_text("".join(json.dumps({"v": value}) + "\n" for value in values))
    store.write("t", pa.table({"v": array[:0]}))
    with _closed(store, folder) as place:
        command("import", place, str(folder / "v.jsonl"), "--table", "t", "--append")
    return of_arrow(array)


def _by_file(name: str, write: Callable[[pa.Table, str], Any]) -> Callable[[drumlin.Store, Path, pa.Array], list[Any]]:
    def door(store: drumlin.Store, folder: Path, array: pa.Array) -> list[Any]:
        write(pa.table({"v": array}), str(folder / name))
        with _closed(store, folder) as place:
            command("import", place, str(folder / name), "--table", "t")
        return of_arrow(array)

    return door


def _write_ipc(table: pa.Table, name: str) -> None:
    with ipc.new_file(name, table.schema) as file:
        file.write_table(table)


def _write_stream(table: pa.Table, name: str) -> None:
    with ipc.new_stream(name, table.schema) as file:
        file.write_table(table)


@contextlib.contextmanager
def _closed(store: drumlin.Store, folder: Path) -> Any:
    """The store's place, for the command, while nobody has it open."""
    store.close()
    yield str(folder / "s")


IN: dict[str, Callable[[drumlin.Store, Path, pa.Array], list[Any]]] = {
    "pyarrow": by_arrow,
    "dict": by_dict,
    "dicts": by_dicts,
    "rows by key": by_key,
    "append of a dict": by_append,
    "default": by_default,
    "numpy": by_numpy,
    "numpy of fixed width": by_fixed_width,
    "pandas": by_pandas,
    "pandas of Arrow": by_pandas_arrow,
    "Polars": by_polars,
    "DuckDB": by_duckdb,
    "CSV": by_csv,
    "CSV onto a table": by_csv_onto,
    "JSON": by_json,
    "JSON onto a table": by_json_onto,
    "Parquet": _by_file("v.parquet", pq.write_table),
    "IPC": _by_file("v.arrow", _write_ipc),
    "IPC stream": _by_file("v.arrows", _write_stream),
    "Feather": _by_file("v.feather", lambda table, name: feather.write_feather(table, name, compression="lz4")),
}

# Doors out: `store`, a folder for files. They return the values, and whether the door tells days from moments.


def to_get(store: drumlin.Store, folder: Path) -> list[Any]:
    rows = store.read("t").to_arrow()["v"]
    table = store.table("one")
    table.create({"k": pa.int64(), "v": rows.type}, key=["k"])
    table.upsert(pa.table({"k": range(len(rows)), "v": rows}))
    return [same((table.get(at) or {})["v"]) for at in range(len(rows))]


def to_stream(store: drumlin.Store, folder: Path) -> list[Any]:
    return of_arrow(pa.table(store.read("t"))["v"])


def to_scan(store: drumlin.Store, folder: Path) -> list[Any]:
    return of_arrow(store.scan("t").to_arrow()["v"])


def to_pandas(store: drumlin.Store, folder: Path) -> list[Any]:
    column = store.read("t").to_pandas()["v"]
    if isinstance(column.dtype, pd.ArrowDtype):
        # Told as values of Python's, they would lose what is finer than microseconds.
        return of_arrow(pa.array(column))
    return [same(value) for value in column.tolist()]


def to_polars(store: drumlin.Store, folder: Path) -> list[Any]:
    return of_arrow(store.read("t").to_polars().select("v").to_arrow()["v"])


def to_lazy(store: drumlin.Store, folder: Path) -> list[Any]:
    return of_arrow(store.scan("t").to_lazy().collect().select("v").to_arrow()["v"])


def to_duckdb(store: drumlin.Store, folder: Path) -> list[Any]:
    rows = store.sql("select v from 't'")
    if pa.types.is_duration(pa.schema(store.table("t").schema()).field("v").type):
        # DuckDB's intervals in Arrow have 64 bits for nanoseconds, and wrap around.
        return [same(row[0]) for row in rows.fetchall()]
    return of_arrow(rows.to_arrow_table()["v"])


def to_numpy(store: drumlin.Store, folder: Path) -> list[Any]:
    return [same(value) for value in store.read("t").to_numpy()["v"]]


def _exported(store: drumlin.Store, folder: Path, name: str) -> Path:
    store.close()
    command("export", str(folder / "s"), "t", str(folder / name), "-c", "v")
    return folder / name


def to_parquet(store: drumlin.Store, folder: Path) -> list[Any]:
    return of_arrow(pq.read_table(_exported(store, folder, "out.parquet"))["v"])


def to_ipc(store: drumlin.Store, folder: Path) -> list[Any]:
    return of_arrow(feather.read_table(_exported(store, folder, "out.arrow"))["v"])


def to_json(store: drumlin.Store, folder: Path) -> list[Any]:
    """Out and in again, onto a table of the same type."""
    return _again(store, folder, "out.jsonl")


def to_csv(store: drumlin.Store, folder: Path) -> list[Any]:
    return _again(store, folder, "out.csv")


def _again(store: drumlin.Store, folder: Path, name: str) -> list[Any]:
    store.write("back", store.read("t", columns=["v"], limit=0).to_arrow())
    file = _exported(store, folder, name)
    command("import", str(folder / "s"), str(file), "--table", "back", "--append")
    with drumlin.open(folder / "s") as reopened:
        return of_arrow(reopened.read("back").to_arrow()["v"])


OUT: dict[str, Callable[[drumlin.Store, Path], list[Any]]] = {
    "get": to_get,
    "stream": to_stream,
    "scan": to_scan,
    "pandas": to_pandas,
    "Polars": to_polars,
    "lazy Polars": to_lazy,
    "DuckDB": to_duckdb,
    "numpy": to_numpy,
    "Parquet": to_parquet,
    "IPC": to_ipc,
    "JSON": to_json,
    "CSV": to_csv,
}
