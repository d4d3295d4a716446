"""Digests tell rows apart that differ in anything, and no others."""

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from drumlin.migrate.digest import ArrowDigest, frame_digest

DAYS = pd.date_range("2024-03-30", periods=3, freq="D", tz="Europe/Berlin", name="day")
BASE = {
    "n": [1, 2, 3],
    "x": [1.5, np.nan, -0.0],
    "s": ["a", None, ""],
    "b": [True, False, True],
    "c": pd.Categorical(["u", "v", "u"]),
    "t": pd.to_datetime(["2024-01-01", None, "2024-01-02"]),
}


def base() -> pd.DataFrame:
    return pd.DataFrame(BASE, index=DAYS)


def changed(**columns: Any) -> pd.DataFrame:
    return base().assign(**columns)


OTHERS: dict[str, pd.DataFrame] = {
    "a number": changed(n=[1, 2, 4]),
    "the type of numbers": changed(n=np.array([1, 2, 3], "int32")),
    "a nan": changed(x=[1.5, 0.0, -0.0]),
    "the sign of zero": changed(x=[1.5, np.nan, 0.0]),
    "a text": changed(s=["a", None, " "]),
    "a text that moved": changed(s=["", None, "a"]),
    "a missing text": changed(s=["a", "", ""]),
    "texts cut elsewhere": changed(s=["", None, "a"]),
    "a bool": changed(b=[True, True, True]),
    "a category": changed(c=pd.Categorical(["u", "v", "v"])),
    "the order of categories": changed(c=pd.Categorical(["u", "v", "u"], categories=["v", "u"])),
    "plain values": changed(c=["u", "v", "u"]),
    "a time": changed(t=pd.to_datetime(["2024-01-01", None, "2024-01-03"])),
    "a unit": changed(t=base()["t"].astype("datetime64[ms]")),
    "the zone": base().tz_convert("Europe/Paris"),
    "no zone": base().tz_localize(None),
    "the name of the index": base().rename_axis("days"),
    "the index": base().set_index(DAYS + pd.Timedelta("1ns")),
    "no index": base().reset_index(drop=True),
    "a range": base().set_axis(pd.RangeIndex(1, 4)),
    "levels": base().set_index("n", append=True),
    "a column's name": base().rename(columns={"n": "m"}),
    "a label of another type": base().rename(columns={"n": 1}),
    "the order of columns": base()[["x", "n", "s", "b", "c", "t"]],
    "a column more": changed(y=1),
    "the order of rows": base().iloc[[1, 0, 2]],
    "a row less": base().iloc[:2],
}


def test_equal_frames_have_equal_digests() -> None:
    again = pd.concat([base().iloc[:1], base().iloc[1:]])
    again.index.freq = None
    assert frame_digest(again) == frame_digest(base())


@pytest.mark.parametrize("what", OTHERS)
def test_a_difference_shows(what: str) -> None:
    assert frame_digest(OTHERS[what]).sha256 != frame_digest(base()).sha256


def test_kinds_of_missing_values_are_told_beside_the_digest() -> None:
    digests = [frame_digest(pd.DataFrame({"s": pd.Series(["a", gap], dtype=object)})) for gap in (None, np.nan)]
    assert digests[0].sha256 == digests[1].sha256
    assert [digest.missing for digest in digests] == [{"s": {"NoneType"}}, {"s": {"float"}}]


def arrow_digest(table: pa.Table, cut: int) -> str:
    digest = ArrowDigest(table.schema)
    for batch in table.to_batches(max_chunksize=cut):
        digest.take(batch)
    return digest.hexdigest()


MOMENT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [1, None, -3, 4]),
    "uint64": (pa.uint64(), [2**64 - 1, None, 0, 1]),
    "half": (pa.float16(), [np.float16(1.5), None, np.float16("nan"), np.float16(2)]),
    "float": (pa.float64(), [1.5, None, float("nan"), -0.0]),
    "bool": (pa.bool_(), [True, None, False, True]),
    "string": (pa.string(), ["a", None, "", "ä"]),
    "large": (pa.large_string(), ["a", None, "", "ä"]),
    "view": (pa.string_view(), ["a", None, "", "longer than twelve bytes"]),
    "binary": (pa.binary(), [b"a", None, b"", b"\xff"]),
    "fixed": (pa.binary(2), [b"ab", None, b"\0\0", b"zz"]),
    "decimal": (pa.decimal128(9, 2), [decimal.Decimal("1.50"), None, decimal.Decimal("-2.25"), decimal.Decimal(0)]),
    "decimal32": (pa.decimal32(5, 1), [decimal.Decimal("1.5"), None, decimal.Decimal(0), decimal.Decimal(9)]),
    "time": (pa.timestamp("ns", "Europe/Berlin"), [MOMENT, None, MOMENT, MOMENT + dt.timedelta(1)]),
    "span": (pa.duration("us"), [dt.timedelta(1), None, dt.timedelta(0), dt.timedelta(2)]),
    "list": (pa.list_(pa.int16()), [[1, None], None, [], [2]]),
    "texts": (pa.large_list(pa.string()), [["a", None], None, [], ["bc"]]),
    "vector": (pa.list_(pa.float32(), 2), [[1.0, 2.0], None, [3.0, None], [0.0, 0.0]]),
    "struct": (pa.struct({"a": pa.int64(), "b": pa.string()}), [{"a": 1, "b": None}, None, {"a": None, "b": ""}, {}]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], None, [], [("b", None)]]),
    "list view": (pa.list_view(pa.string()), [["a", None], None, [], ["bc"]]),
    "interval": (pa.month_day_nano_interval(), [(1, 2, 3), None, (0, 0, 0), (0, 0, 1)]),
    "days": (pa.date32(), [dt.date(2024, 1, 1), None, dt.date(1970, 1, 1), dt.date(1, 1, 1)]),
    "null": (pa.null(), [None] * 4),
    "words": (pa.dictionary(pa.int8(), pa.string()), ["a", None, "b", "a"]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_arrow_rows_count_by_content_alone(kind: str) -> None:
    type_, values = VALUES[kind]
    table = pa.table({"v": pa.array(values * 3, type_)})
    expected = arrow_digest(table, 100)
    assert arrow_digest(table, 5) == expected
    # Within a larger array, at an odd place.
    larger = pa.table({"v": pa.array([values[0], *values * 3, values[3]], type_)})
    assert arrow_digest(larger.slice(1, 12), 7) == expected
    if kind == "null":
        assert arrow_digest(table.slice(1), 100) != expected
        return
    for at in range(4):
        # One value replaced by another, or by none.
        other = [*values[:at], values[0] if values[at] is None else None, *values[at + 1 :], *values * 2]
        assert arrow_digest(pa.table({"v": pa.array(other, type_)}), 100) != expected
    turned = pa.table({"v": pa.array([*values[2:], *values[:2], *values * 2], type_)})
    assert arrow_digest(turned, 100) != expected
    assert arrow_digest(table.rename_columns(["w"]), 100) != expected


def test_parts_larger_than_a_hashed_one() -> None:
    table = pa.table({"n": pa.array(range(200_001)), "s": pa.array([str(n) for n in range(200_001)])})
    assert arrow_digest(table, 1_000_000) == arrow_digest(table, 3_000)
    assert arrow_digest(table.slice(0, 200_000), 1_000_000) != arrow_digest(table, 1_000_000)
