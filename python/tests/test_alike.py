"""Frames that are alike are converted as the first of them, to the same tables."""

import random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import drumlin
from drumlin._pandas import alike

_TYPES = ("float64", "float32", "int64", "int8", "uint16", "bool", "datetime64[ns]", "datetime64[us]")


def _frame(draw: random.Random) -> pd.DataFrame:
    rows = draw.randrange(5)

    def column(dtype: str) -> Any:
        values = np.array([draw.randrange(100) for _ in range(rows)]).astype(dtype)
        if rows and dtype.startswith("float"):
            values[draw.randrange(rows)] = np.nan
        if rows and dtype.startswith("datetime") and draw.random() < 0.5:
            values[draw.randrange(rows)] = np.datetime64("NaT")
        return values

    index = draw.choice(
        [
            pd.Index(np.arange(rows) + 3, name=draw.choice([None, "i"])),
            pd.DatetimeIndex(np.arange(rows).astype("datetime64[ns]"), name="t"),
            pd.Index(np.arange(rows) / 2),
            pd.RangeIndex(rows, name=draw.choice([None, "i", 'quoted "é"'])),
            pd.RangeIndex(start := draw.randrange(9), start + rows * 3, 3),
            pd.RangeIndex(rows, 0, -1),
        ]
    )
    frame = pd.DataFrame({f"c{at}": column(draw.choice(_TYPES)) for at in range(draw.randrange(1, 3))}, index=index)
    if draw.random() < 0.2:
        frame.columns.name = "labels"
    return frame


def test_equal_to_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "_schemas", {})
    monkeypatch.setattr(alike, "_MOST", 300)
    monkeypatch.setattr(alike, "_MANY_ROWS", 3)
    draw, found = random.Random(3), 0
    for _ in range(1500):
        frame = _frame(draw)
        wanted = pa.Table.from_pandas(frame)
        made = alike.from_alike(frame)
        if made is None:
            alike.remember(frame, wanted)
            continue
        found += 1
        assert made.schema.equals(wanted.schema, check_metadata=True)
        assert made.to_pylist() == wanted.to_pylist()
    assert found > 100


def test_what_differs_is_not_taken_for_alike(store: drumlin.Store) -> None:
    """After a frame has been remembered, those that differ from it in something come back as they were."""
    index = pd.DatetimeIndex(["2026-01-01", "2026-01-02"], name="t")
    first = pd.DataFrame({"a": [1.0, 2.0], "b": [1, 2]}, index=index)
    others = [
        first.astype({"b": "int32"}),
        first.rename(columns={"b": "c"}),
        first.rename_axis("u"),
        first.set_axis(index.tz_localize("UTC")),
        first.astype({"b": "Int64"}),
        first.reset_index(),
        first.assign(b=["x", "y"]),
        first.rename_axis(columns="labels"),
        first[["b", "a"]],
        first.iloc[:0],
        first.assign(b=pd.period_range("2020", periods=2, freq="M")),
        first.assign(b=pd.to_datetime([1, 2]).tz_localize("UTC")),
        first.assign(b=pd.to_timedelta([1, 2])),
        first.assign(b=pd.to_datetime([1, 2])),
        first.assign(b=pd.period_range("2020", periods=2, freq="M")).reset_index(drop=True),
        first,
        *(first.set_axis(pd.RangeIndex(start, start + 2, name=name)) for start in (0, 4) for name in (None, "t", 7)),
        first.set_axis(pd.RangeIndex(4, 0, -2)),
    ]
    for at, frame in enumerate(others):
        store.write("first", first)
        store.write("ranged", first.reset_index(drop=True))
        store.write("times", first.assign(b=pd.to_datetime([1, 2])))
        store.write(f"t{at}", frame)
        pd.testing.assert_frame_equal(store.read(f"t{at}").to_pandas(), frame, check_freq=False)
    noted = first.copy()
    noted.attrs = {"from": "a test"}
    store.write("noted", noted)
    assert store.read("noted").to_pandas().attrs == {"from": "a test"}
