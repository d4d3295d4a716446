"""Metadata of other systems: what a store takes stays as it is, and anything else becomes what it takes."""

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import drumlin
from drumlin.migrate.metadata import as_json, refusal

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.decimals(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.none() | st.tuples(st.integers()), inner)
    ),
    max_leaves=20,
)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@settings(max_examples=200, deadline=None)
@given(JSON)
@example(nested(100))
def test_json_stays_as_it_is(value: Any) -> None:
    assert refusal(value) is None
    assert repr(as_json(value)) == repr(value)


@settings(max_examples=200, deadline=None)
@given(ANYTHING)
@example(nested(101))
@example({"deep": nested(150)})
def test_a_store_takes_what_anything_becomes(value: Any) -> None:
    assert refusal(as_json(value)) is None


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ((1, (2, [3])), [1, [2, [3]]]),
        ({1: "a", None: {"b"}}, {"1": "a", "None": ["b"]}),
        (2**64, str(2**64)),
        (float("nan"), "nan"),
        ("\ud800", "\\ud800"),
        (dt.date(2024, 1, 1), "2024-01-01"),
        (dt.datetime(2024, 1, 1), "2024-01-01 00:00:00"),
        (pd.Timestamp("2024-01-01", tz="UTC"), "2024-01-01T00:00:00+00:00"),
        (pd.NaT, "NaT"),
        (decimal.Decimal("1.50"), "1.50"),
        (np.array([1, 2]), "[1 2]"),
        ([np.int8(1), np.uint64(2**64 - 1), np.float32(0.5), np.bool_(True)], [1, 2**64 - 1, 0.5, True]),
        (np.float64("inf"), "inf"),
        (np.datetime64("2024-01-01"), "2024-01-01"),
    ],
)
def test_what_others_become(value: Any, made: Any) -> None:
    assert repr(as_json(value)) == repr(made)


def test_a_refusal_says_what_the_store_says() -> None:
    value = {"pair": (1, 2)}
    with drumlin.open("memory://") as store, pytest.raises(drumlin.InvalidArgument) as raised:
        store.write("t", {"n": [1]}, metadata=value)
    assert str(refusal(value)) == str(raised.value)
