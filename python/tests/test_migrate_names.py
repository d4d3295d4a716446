"""Names of other systems as paths."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import drumlin
from drumlin.migrate import path_of, symbol_of

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
ODD = st.text("/.%*?aF2\x00\x7f\x85é", min_size=1, max_size=12)


@settings(max_examples=500, deadline=None)
@given(NAMES | ODD, st.sampled_from(["", "top", "/a/b/"]))
@example("..", "")
@example("a//b/", "")
@example("%2F", "top")
def test_every_symbol_is_a_path_and_comes_back(symbol: str, prefix: str) -> None:
    path = path_of(symbol, prefix)
    with drumlin.open("memory://") as store:
        # The store itself says whether it is one.
        store.tree.put(path, 1)
        assert store.tree.get(path) == 1
    assert symbol_of(path, prefix) == symbol


def test_plain_names_stay_as_they_are() -> None:
    for symbol in ("AAPL", "us/AAPL", "a b", "100%", "é日本", "a.b", "...", "%", "%zz", "k=v", '"<>|'):
        assert path_of(symbol) == symbol


@settings(max_examples=300, deadline=None)
@given(ODD, ODD)
def test_no_two_symbols_have_one_path(a: str, b: str) -> None:
    assert (path_of(a) == path_of(b)) == (a == b)


@pytest.mark.parametrize("symbol", ["", "\ud800", "x" * 256, "/".join("a" * 121), "é" * 128])
def test_what_is_no_path_is_refused(symbol: str) -> None:
    with pytest.raises(drumlin.InvalidArgument, match="symbol"):
        path_of(symbol)


def test_a_path_elsewhere_is_no_symbol() -> None:
    with pytest.raises(drumlin.InvalidArgument, match="not below 'top'"):
        symbol_of("other/a", "top")
