"""Structured numpy arrays, out and in again."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import drumlin


def test_what_numpy_holds_comes_out_as_it_is_and_goes_in_again() -> None:
    store = drumlin.open("memory://")
    day = dt.date(2026, 11, 23)
    table = pa.table(
        {
            "i": pa.array([1, -2, 3], pa.int8()),
            "u": pa.array([1, 2, 2**64 - 1], pa.uint64()),
            "f": pa.array([1.5, None, float("nan")], pa.float32()),
            "b": pa.array([True, False, True]),
            "t": pa.array([0, None, 2], pa.timestamp("us")),
            "d": pa.array([day, None, day], pa.date32()),
            "s": pa.array(["a", None, "\u00e4"]).dictionary_encode(),
            "y": pa.array([b"x", None, b""]),
            "l": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
            "n": pa.array([Decimal("1.25"), None, Decimal("0.10")], pa.decimal128(6, 2)),
        }
    )
    store.write("t", table)
    rows = store.read("t").to_numpy()
    assert rows.dtype.names == tuple(table.column_names)
    assert [rows.dtype[name].str for name in "iufbtd"] == ["|i1", "<u8", "<f4", "|b1", "<M8[us]", "<M8[D]"]
    assert rows["u"].tolist() == [1, 2, 2**64 - 1]
    assert np.isnan(rows["f"]).tolist() == [False, True, True]
    assert np.isnat(rows["t"]).tolist() == [False, True, False]
    assert rows["s"].tolist() == ["a", None, "\u00e4"]
    assert rows["l"].tolist() == [[1, 2], None, []]
    assert rows["n"].tolist() == [Decimal("1.25"), None, Decimal("0.10")]
    plain = store.read("t", columns=["i", "u", "b"]).to_numpy()
    store.write("again", plain)
    assert store.read("again").to_arrow().equals(table.select(["i", "u", "b"]))
    assert store.read("t", limit=0).to_numpy().shape == (0,)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([1, None]), "column 'x' of type int64 has 1 missing values"),
        (pa.array([True, None]), "column 'x' of type bool has 1 missing values"),
        (pa.array([0], pa.timestamp("us", "Europe/Berlin")), "the time zone Europe/Berlin; numpy has none"),
    ],
)
def test_what_numpy_does_not_hold_is_refused(column: pa.Array, words: str) -> None:
    store = drumlin.open("memory://")
    store.write("t", pa.table({"x": column}))
    with pytest.raises(drumlin.InvalidArgument, match=words):
        store.read("t").to_numpy()
