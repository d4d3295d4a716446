"""Kinds of columns, indexes and labels of which pandas frames are composed, and a comparison of frames.

Each kind is a function of a random generator and a number of rows. Kinds that a store refuses are marked as such.
"""

import datetime as dt
import decimal
import zoneinfo
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

Rng = np.random.Generator
Kind = Callable[[Rng, int], Any]

UTC = dt.UTC
OSLO = zoneinfo.ZoneInfo("Europe/Oslo")
TEXTS = ["", "a", "b", "ü", "日本", "a b", "0", "None", "nan", "x" * 40]


def some(rng: Rng, values: list[Any], rows: int, missing: Any = ...) -> list[Any]:
    """Values, some missing at random."""
    picked = [values[at] for at in rng.integers(0, len(values), rows)]
    if missing is ... or rng.random() < 0.3:
        return picked
    return [missing if rng.random() < 0.3 else value for value in picked]


def objects(values: list[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    for at, value in enumerate(values):
        array[at] = value
    return array


def of_objects(*values: Any, missing: Any = None) -> Kind:
    return lambda rng, rows: objects(some(rng, list(values), rows, missing))


def integers(dtype: str) -> Kind:
    ends = np.iinfo(dtype)

    def make(rng: Rng, rows: int) -> Any:
        array = rng.integers(ends.min, ends.max, rows, dtype=dtype, endpoint=True)
        array[rng.random(rows) < 0.2] = ends.max
        return array

    return make


def floats(dtype: str) -> Kind:
    def make(rng: Rng, rows: int) -> Any:
        array = rng.normal(size=rows).astype(dtype)
        array[rng.random(rows) < 0.2] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 1e-300, 1.0])
        return array

    return make


def moments(kind: str, unit: str, zone: Any = None) -> Kind:
    def make(rng: Rng, rows: int) -> Any:
        most = {"s": 4 * 10**9, "ms": 4 * 10**12, "us": 4 * 10**15, "ns": 4 * 10**18}[unit]
        array = rng.integers(-most, most, rows).view(f"{kind}64[{unit}]")
        array[rng.random(rows) < 0.2] = "NaT"
        if kind == "timedelta":
            return pd.TimedeltaIndex(array).array
        index = pd.DatetimeIndex(array)
        return (index if zone is None else index.tz_localize("UTC").tz_convert(zone)).array

    return make


def masked(dtype: str, values: list[Any]) -> Kind:
    return lambda rng, rows: pd.array(some(rng, values, rows, pd.NA), dtype=dtype)


def arrow(kind: pa.DataType, values: list[Any]) -> Kind:
    def make(rng: Rng, rows: int) -> Any:
        return pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(some(rng, values, rows, None), kind)]))

    return make


def text_dtype(storage: str, missing: Any) -> Kind:
    dtype = pd.StringDtype(storage) if missing is pd.NA else pd.StringDtype(storage, na_value=np.nan)
    return lambda rng, rows: pd.array(some(rng, TEXTS, rows, None), dtype=dtype)


def categories(values: Any, ordered: bool = False) -> Kind:
    def make(rng: Rng, rows: int) -> Any:
        codes = rng.integers(-1, len(values), rows) if len(values) else np.full(rows, -1)
        return pd.Categorical.from_codes(codes, categories=values, ordered=ordered)

    return make


def periods(freq: str) -> Kind:
    def make(rng: Rng, rows: int) -> Any:
        made = [pd.NaT if rng.random() < 0.1 else pd.Period("2020", freq) + int(n) for n in rng.integers(-99, 99, rows)]
        return pd.PeriodIndex(made, freq=freq).array

    return make


def intervals(ends: Any, closed: str) -> Kind:
    def make(rng: Rng, rows: int) -> Any:
        at = rng.integers(0, len(ends) - 1, rows)
        array = pd.arrays.IntervalArray.from_arrays(ends[at], ends[at + 1], closed=closed)
        if ends.dtype.kind in "fM" and rows:
            array = array.copy()
            array[rng.random(rows) < 0.1] = np.nan
        return array

    return make


LONG = ["a" * n for n in range(3)]
COLUMNS: dict[str, Kind] = {
    **{name: integers(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{name: floats(name) for name in ("float16", "float32", "float64")},
    "bool": lambda rng, rows: rng.random(rows) < 0.5,
    **{f"datetime {unit}": moments("datetime", unit) for unit in ("s", "ms", "us", "ns")},
    **{f"timedelta {unit}": moments("timedelta", unit) for unit in ("s", "ms", "us", "ns")},
    "zone by name": moments("datetime", "us", OSLO),
    "zone as text": moments("datetime", "ns", "America/New_York"),
    "zone UTC": moments("datetime", "s", UTC),
    "zone UTC by name": moments("datetime", "ms", "UTC"),
    "zone of an offset": moments("datetime", "ns", dt.timezone(dt.timedelta(hours=-5, minutes=-30))),
    "zone of seconds": moments("datetime", "us", dt.timezone(dt.timedelta(seconds=3661))),
    **{
        name: masked(name, [0, 1, 100])
        for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    },
    "Int64, large": masked("Int64", [2**53 + 1, -(2**63), 2**63 - 1]),
    "Float32": masked("Float32", [0.5, -0.0, 1e30]),
    "Float64": masked("Float64", [0.1, np.inf, 1e300]),
    "boolean": masked("boolean", [True, False]),
    "string, python": text_dtype("python", pd.NA),
    "string, pyarrow": text_dtype("pyarrow", pd.NA),
    "str, python": text_dtype("python", np.nan),
    "str, pyarrow": text_dtype("pyarrow", np.nan),
    "default text": lambda rng, rows: pd.Series(some(rng, TEXTS, rows, None), dtype="str").array,
    "objects: str": of_objects(*TEXTS),
    "objects: str, NaN": of_objects(*TEXTS, missing=np.nan),
    "objects: str, NA": of_objects(*TEXTS, missing=pd.NA),
    "objects: bytes": of_objects(b"", b"a", b"\0\xff"),
    "objects: int": of_objects(0, 1, -(2**63), 2**63 - 1),
    "objects: large int": of_objects(0, 2**64 - 1),
    "objects: bool": of_objects(True, False),
    "objects: float": of_objects(0.5, -1.5, np.inf, missing=np.nan),
    "objects: NumPy": of_objects(np.int64(5), np.int64(2**62)),
    "objects: Decimal": of_objects(decimal.Decimal("1.50"), decimal.Decimal("-3"), decimal.Decimal("123456789.125")),
    "objects: date": of_objects(dt.date(1, 1, 1), dt.date(2020, 2, 29), dt.date(9999, 12, 31)),
    "objects: time": of_objects(dt.time(0), dt.time(23, 59, 59, 999_999)),
    "objects: datetime": of_objects(dt.datetime(1, 1, 1), dt.datetime(2020, 1, 2, 3, 4, 5, 6), missing=pd.NaT),
    "objects: datetime with zone": of_objects(
        dt.datetime(2020, 1, 1, tzinfo=OSLO), dt.datetime(2020, 7, 1, tzinfo=OSLO)
    ),
    "objects: timedelta": of_objects(dt.timedelta(1, 2, 3), dt.timedelta(-1)),
    "objects: Timestamp": of_objects(pd.Timestamp(1, unit="ns"), pd.Timestamp("2020-01-01 00:00:00.123456789")),
    "objects: Timestamp with zone": of_objects(pd.Timestamp("2020-07-01", tz="Asia/Tokyo"), missing=pd.NaT),
    "objects: Timedelta": of_objects(pd.Timedelta(1, "ns"), pd.Timedelta(days=-1), missing=pd.NaT),
    "objects: dict": of_objects({"a": 1, "b": None}, {"a": 2, "b": "x"}),
    "objects: nested": of_objects({"a": [{"b": 1.5}]}, {"a": []}),
    "objects: list": of_objects([1, 2], [], [None]),
    "objects: list of one length": of_objects([1, 2], [3, 4]),
    "objects: tuple": of_objects((1, 2), (3, 4)),
    "objects: array": of_objects(np.array([1.5, np.nan]), np.array([0.0])),
    "objects: None": of_objects(None),
    "objects: NaN": of_objects(np.nan, missing=np.nan),
    "categories: str": categories(["z", "b", "a"], ordered=True),
    "categories: int": categories([3, 1, 2**62]),
    "categories: float": categories([0.5, -1.5, np.inf]),
    "categories: bool": categories([True, False]),
    "categories: no float": categories(np.array([], dtype="float64")),
    "categories: none": categories([]),
    "categories: datetime": categories(pd.to_datetime(["2020-01-01", "2019-01-01"])),
    "categories: zone": categories(pd.date_range("2020", periods=3, tz="Europe/Oslo")),
    "categories: timedelta": categories(pd.to_timedelta([2, 1], unit="s")),
    "categories: period": categories(pd.period_range("2020", periods=3, freq="M")),
    "categories: interval": categories(pd.interval_range(0, 3), ordered=True),
    "categories: interval of floats": categories(pd.interval_range(0.5, 3.5, closed="left")),
    "categories: Int64": categories(pd.Index([2**53 + 1, 5], dtype="Int64")),
    "categories: string": categories(pd.Index(["x", "y"], dtype="string")),
    "categories: date": categories(pd.Index([dt.date(2020, 1, 1), dt.date(2019, 1, 1)], dtype=object)),
    "cut": lambda rng, rows: pd.cut(pd.Series(rng.random(rows) * 9), np.arange(10)).array,
    "period of months": periods("M"),
    "period of two days": periods("2D"),
    "period of quarters": periods("Q-NOV"),
    "interval of ints": intervals(np.array([0, 1, 5, 9]), "right"),
    "interval of floats": intervals(np.array([0.5, 1.5, 5.5]), "both"),
    "interval of datetimes": intervals(pd.date_range("2020", periods=4).as_unit("ns"), "left"),
    "interval with zone": intervals(pd.date_range("2020", periods=4, tz="Europe/Oslo"), "neither"),
    "arrow int8": arrow(pa.int8(), [1, 2]),
    "arrow int64": arrow(pa.int64(), [2**53 + 1, -1]),
    "arrow double": arrow(pa.float64(), [0.5, float("nan")]),
    "arrow bool": arrow(pa.bool_(), [True, False]),
    "arrow string": arrow(pa.string(), TEXTS),
    "arrow large_string": arrow(pa.large_string(), TEXTS),
    "arrow binary": arrow(pa.binary(), [b"", b"\0"]),
    "arrow fixed binary": arrow(pa.binary(3), [b"abc"]),
    "arrow decimal": arrow(pa.decimal128(10, 2), [decimal.Decimal("1.50")]),
    "arrow decimal256": arrow(pa.decimal256(50, 2), [decimal.Decimal("1.50")]),
    "arrow date32": arrow(pa.date32(), [dt.date(2020, 1, 1)]),
    "arrow time64": arrow(pa.time64("us"), [dt.time(1, 2, 3)]),
    "arrow timestamp": arrow(pa.timestamp("ns"), [dt.datetime(2020, 1, 1)]),
    "arrow timestamp with zone": arrow(pa.timestamp("us", "Europe/Oslo"), [dt.datetime(2020, 1, 1, tzinfo=UTC)]),
    "arrow duration": arrow(pa.duration("ms"), [1, 2]),
    "arrow null": arrow(pa.null(), [None]),
    "arrow list": arrow(pa.list_(pa.int64()), [[1], [], [None, 2]]),
    "arrow large_list": arrow(pa.large_list(pa.string()), [["a"], []]),
    "arrow fixed list": arrow(pa.list_(pa.int8(), 2), [[1, 2]]),
    "arrow struct": arrow(
        pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]
    ),
    "arrow map": arrow(pa.map_(pa.string(), pa.int64()), [[("a", 1)], []]),
    "arrow dictionary": arrow(pa.dictionary(pa.int32(), pa.string()), ["x", "y"]),
    "arrow dictionary of int8": arrow(pa.dictionary(pa.int8(), pa.int64()), [7, 8]),
}

#: Columns that could not be restored, and are refused.
REFUSED: dict[str, Kind] = {
    "str and bytes": lambda rng, rows: objects(["a", b"b", *["c"] * rows]),
    "date and datetime": lambda rng, rows: objects([dt.date(2020, 1, 1), dt.datetime(2020, 1, 2, 13, 30)] * (rows + 1)),
    "naive and zoned": lambda rng, rows: objects(
        [pd.Timestamp("2020-01-01 12:00"), pd.Timestamp("2020-01-01 12:00", tz="Asia/Tokyo")] * (rows + 1)
    ),
    "two zones": lambda rng, rows: objects(
        [pd.Timestamp("2020-01-01", tz="Asia/Tokyo"), pd.Timestamp("2020-01-01", tz="UTC")] * (rows + 1)
    ),
    "time with zone": lambda rng, rows: objects([dt.time(1, 2, 3, tzinfo=UTC)] * (rows + 1)),
    "dicts of other keys": lambda rng, rows: objects([{"a": 1}, {"b": 2}] * (rows + 1)),
    "Decimal NaN": lambda rng, rows: objects([decimal.Decimal("NaN"), decimal.Decimal(1)] * (rows + 1)),
    "int and float": lambda rng, rows: objects([1, 2.5] * (rows + 1)),
    "int and bool": lambda rng, rows: objects([1, True] * (rows + 1)),
    "int and str": lambda rng, rows: objects([1, "a"] * (rows + 1)),
    "beyond 64 bits": lambda rng, rows: objects([2**70] * (rows + 1)),
    "sets": lambda rng, rows: objects([{1}] * (rows + 1)),
    "anything": lambda rng, rows: objects([object()] * (rows + 1)),
    "complex": lambda rng, rows: np.zeros(rows + 1, dtype="complex128"),
    "sparse": lambda rng, rows: pd.arrays.SparseArray(np.zeros(rows + 1)),
    "half a surrogate pair": lambda rng, rows: objects(["\ud800"] * (rows + 1)),
    "Period objects": lambda rng, rows: objects([pd.Period("2020"), pd.Period("2020-01-01", "D")] * (rows + 1)),
    "categories of objects": lambda rng, rows: pd.Categorical.from_codes([0, 1] * (rows + 1), objects(["a", 1])),
    "NaN in a dict of NA": lambda rng, rows: objects([{"a": pd.NA}] * (rows + 1)),
}


#: Kinds of columns that can be an index. pandas itself converts some to other types: see ``index_of``.
_NO_LEVELS = ("float16", "objects: dict", "objects: list", "objects: nested", "objects: array", "objects: tuple")
_NO_LEVELS += ("objects: None", "objects: NaN", "arrow null", "arrow list", "arrow large_list", "arrow fixed list")
_NO_LEVELS += ("arrow struct", "arrow map", "arrow dictionary")
LEVELS = [name for name in COLUMNS if not name.startswith(_NO_LEVELS)]
RANGES: dict[str, Callable[[int], pd.RangeIndex]] = {
    "range": lambda rows: pd.RangeIndex(rows),
    "range not from 0": lambda rows: pd.RangeIndex(10, 10 + rows),
    "range that falls": lambda rows: pd.RangeIndex(2 * rows, 0, -2),
}
NAMES: list[Any] = [
    None,
    "k",
    "",
    "__index_level_0__",
    0,
    1.5,
    True,
    ("a", 1),
    dt.date(2020, 1, 1),
    pd.Timestamp("2020-01-01", tz="UTC"),
]


def index_of(rng: Rng, rows: int, kinds: list[str], names: list[Any]) -> pd.Index:
    """An index with one level per kind; of RangeIndexes, the first stays one if it is the only level."""
    levels = []
    for kind in kinds:
        array = RANGES[kind](rows) if kind in RANGES else COLUMNS[kind](rng, rows)
        levels.append(array if kind in RANGES else pd.Index(array, dtype=array.dtype, tupleize_cols=False))
    if len(kinds) == 1:
        index = levels[0]
        index.name = names[0]
        return index
    return pd.MultiIndex.from_arrays(levels, names=names)


#: Labels for a number of columns.
LABELS: dict[str, Callable[[int], pd.Index]] = {
    "str": lambda n: pd.Index([f"c{at}" for at in range(n)]),
    "str as objects": lambda n: pd.Index([f"c{at}" for at in range(n)], dtype=object),
    "string": lambda n: pd.Index([f"c{at}" for at in range(n)], dtype="string"),
    "range": lambda n: pd.RangeIndex(n),
    "range with a step": lambda n: pd.RangeIndex(5, 5 + 3 * n, 3),
    "int": lambda n: pd.Index(np.arange(n)[::-1] - 1),
    "int8": lambda n: pd.Index(np.arange(n, dtype="int8")),
    "Int64": lambda n: pd.Index([2**53 + at for at in range(n)], dtype="Int64"),
    "float": lambda n: pd.Index(np.arange(n) + 0.5),
    "float with NaN": lambda n: pd.Index([np.nan, *np.arange(n - 1)] if n else np.array([], "float64")),
    "bool": lambda n: pd.Index(np.array([True, False])[:n]) if n <= 2 else pd.RangeIndex(n),
    "mixed": lambda n: pd.Index(
        ["a", 1, 2.5, None, False, b"x", dt.date(2020, 1, 1), ("p", 1), pd.Timestamp(0), pd.Interval(0, 1)][:n],
        dtype=object,
    ),
    "tuples": lambda n: pd.Index([("a", at) for at in range(n)], tupleize_cols=False),
    "datetime": lambda n: pd.date_range("2020", periods=n).as_unit("ns"),
    "datetime with zone": lambda n: pd.date_range("2020", periods=n, tz="Europe/Oslo"),
    "datetime of an offset": lambda n: pd.date_range("2020", periods=n, tz=dt.timezone(dt.timedelta(hours=1))),
    "timedelta": lambda n: pd.to_timedelta(np.arange(n), unit="s"),
    "period": lambda n: pd.period_range("2020", periods=n, freq="M"),
    "interval": lambda n: pd.interval_range(0, n),
    "interval of datetimes": lambda n: pd.interval_range(pd.Timestamp("2020"), periods=n),
    "categories": lambda n: pd.CategoricalIndex([f"c{at}" for at in range(n)], [f"c{at}" for at in range(n, -1, -1)]),
    "ordered categories": lambda n: pd.CategoricalIndex(np.arange(n), ordered=True),
    "categories of intervals": lambda n: pd.CategoricalIndex(pd.interval_range(0, n)),
    "date": lambda n: pd.Index([dt.date(2020, 1, 1 + at) for at in range(n)], dtype=object),
    "two levels": lambda n: pd.MultiIndex.from_arrays([list("ab" * n)[:n], np.arange(n)]),
    "two levels with names": lambda n: pd.MultiIndex.from_arrays(
        [pd.Categorical(list("ab" * n)[:n]), pd.date_range("2020", periods=n)], names=["p", 0]
    ),
    "three levels": lambda n: pd.MultiIndex.from_arrays([np.arange(n), [None] * n, [("x", 1)] * n]),
    "arrow": lambda n: pd.Index([f"c{at}" for at in range(n)], dtype=pd.ArrowDtype(pa.string())),
}


def missing_kind(value: Any) -> str | None:
    if value is None or value is pd.NA or value is pd.NaT:
        return repr(value)
    return "nan" if isinstance(value, (float, np.floating)) and value != value else None


def same_values(ours: Any, theirs: Any) -> bool:
    """Whether two arrays have the same values of the same types, except that numbers of NumPy and Python are equal."""
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _same(ours: Any, theirs: Any) -> bool:
    if missing_kind(ours) is not None or missing_kind(theirs) is not None:
        return missing_kind(ours) == missing_kind(theirs)
    if isinstance(ours, (list, tuple)):
        return type(ours) is type(theirs) and same_values(ours, theirs)
    if isinstance(ours, np.ndarray):
        return isinstance(theirs, np.ndarray) and ours.dtype == theirs.dtype and same_values(ours, theirs)
    if isinstance(ours, dict):
        names = list(ours)
        return type(theirs) is dict and set(names) == set(theirs) and all(_same(ours[k], theirs[k]) for k in names)
    numbers = (int, float, np.number, np.bool_)
    both = isinstance(ours, numbers) and isinstance(theirs, numbers)
    return bool(ours == theirs) and (both or type(ours) is type(theirs))


def assert_same(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    """Asserts that two frames are equal: values and their types, dtypes, index, labels, names, attrs."""
    assert_same_index(ours.columns, theirs.columns)
    assert_same_index(ours.index, theirs.index)
    for at in range(ours.shape[1]):
        assert_same_array(ours.iloc[:, at].array, theirs.iloc[:, at].array)
    assert ours.attrs == theirs.attrs
    assert ours.flags.allows_duplicate_labels == theirs.flags.allows_duplicate_labels


def assert_same_index(ours: pd.Index, theirs: pd.Index) -> None:
    plain = {pd.RangeIndex: pd.Index}
    assert plain.get(type(ours), type(ours)) is plain.get(type(theirs), type(theirs))
    assert list(map(type, ours.names)) == list(map(type, theirs.names))
    assert list(ours.names) == list(theirs.names)
    assert ours.nlevels == theirs.nlevels
    # A number that names a level would be treated as a level's position.
    ours, theirs = (index.set_names([None] * index.nlevels) for index in (ours, theirs))
    for at in range(ours.nlevels):
        assert_same_array(ours.get_level_values(at).array, theirs.get_level_values(at).array)


def assert_same_array(ours: Any, theirs: Any) -> None:
    assert ours.dtype == theirs.dtype, f"{ours.dtype!r} and {theirs.dtype!r}"
    if isinstance(ours.dtype, pd.CategoricalDtype):
        assert ours.ordered == theirs.ordered
        assert list(map(type, ours.categories)) == list(map(type, theirs.categories))
        assert_same_index(ours.categories, theirs.categories)
    if isinstance(ours.dtype, pd.DatetimeTZDtype):
        assert type(ours.dtype.tz) is type(theirs.dtype.tz)
    assert same_values(list(ours), list(theirs)), f"{list(ours)!r} and {list(theirs)!r}"
