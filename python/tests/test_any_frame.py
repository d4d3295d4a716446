"""Every kind of pandas frame comes back equal, or is refused when it is written.

``DRUMLIN_FRAMES=20000 pytest tests/test_any_frame.py -k random`` tries that many random frames; a failure names the
seed of the frame; ``DRUMLIN_FRAME_SEED`` runs a single seed again.
"""

import os
from typing import Any

import frame_kinds as kinds
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import drumlin
from drumlin import col

SEED = int(os.environ.get("DRUMLIN_SEED", "7"))


def put(array: Any, index: pd.Index) -> pd.Series:
    return pd.Series(array, index=index, dtype=array.dtype)


def frame_of(columns: dict[int, Any], index: pd.Index, labels: pd.Index) -> pd.DataFrame:
    frame = pd.DataFrame({at: put(array, index) for at, array in columns.items()}, index=index)
    frame.columns = labels
    return frame


def check(store: drumlin.Store, frame: pd.DataFrame) -> None:
    """Writes ``frame``, whose first column counts rows from 0, and reads it in many ways."""
    written = store.write("t", frame).version
    back = store.read("t").to_pandas()
    kinds.assert_same(back, frame)
    assert_frame_equal(back.copy(), frame, check_freq=False)
    back.iloc[:1, :1] = 77
    first = drumlin._values.names.field_name(frame.columns[0])
    ranged = isinstance(frame.index, pd.RangeIndex)
    for options, expected in (
        ({"tail": 2}, frame.iloc[-2:]),
        ({"limit": 1}, frame.iloc[:1]),
        ({"where": col(first) >= 1}, frame.iloc[1:]),
        ({"where": col(first) < 0}, frame.iloc[:0]),
    ):
        part = store.read("t", **options).to_pandas()
        if ranged:
            assert part.index.equals(pd.RangeIndex(len(expected)))
            part.index = expected.index
        kinds.assert_same(part, expected)
    picked = list(range(frame.shape[1] - 1, -1, -2))
    part = store.read("t", columns=[frame.columns[at] for at in picked]).to_pandas()
    kinds.assert_same(part, frame.iloc[:, picked])
    store.append("t", frame)
    both = store.read("t").to_pandas()
    both.flags.allows_duplicate_labels = True
    if ranged:
        assert both.index.equals(pd.RangeIndex(2 * len(frame)))
        both.index = frame.index.append(frame.index)
    # Now its rows have the same labels.
    frame = frame.set_flags(allows_duplicate_labels=True)
    for half in (both.iloc[: len(frame)], both.iloc[len(frame) :]):
        kinds.assert_same(half, frame)
    before = store.read("t", as_of=written).to_pandas()
    kinds.assert_same(before.set_flags(allows_duplicate_labels=True), frame)


def check_changes(store: drumlin.Store, frame: pd.DataFrame) -> None:
    """Writes ``frame`` to a sorted table and to one with a key, replaces some of its rows with themselves, and has
    both rewritten: the rows stay the same."""
    first = drumlin._values.names.field_name(frame.columns[0])
    for path in ("s", "k"):
        store.drop(path, missing_ok=True)
    store.write("s", frame, sort=[first])
    store.table("k").create(store.table("s").schema(), key=[first])
    store.table("k").upsert(frame)
    try:
        store.replace("s", frame.iloc[1:3])
        store.table("k").upsert(frame.iloc[:2])
    except drumlin.SchemaMismatch:
        # The type of Python objects is inferred from their values, and some of them may give another type than all.
        levels = [frame.index.get_level_values(at).dtype for at in range(frame.index.nlevels)]
        if not any(str(dtype) in ("object", "category") for dtype in [*frame.dtypes, *levels]):
            raise
    for _ in range(2):
        for path in ("s", "k"):
            back = store.read(path).to_pandas().set_flags(allows_duplicate_labels=True)
            if isinstance(frame.index, pd.RangeIndex):
                assert list(back.index) in (list(frame.index), list(range(len(frame))))
                back.index = frame.index
            kinds.assert_same(back, frame.set_flags(allows_duplicate_labels=True))
        assert store.checkpoint().failures == []


@pytest.fixture(scope="module")
def store() -> Any:
    with drumlin.open("memory://", cpu_threads=1) as store:
        yield store


def check_whole(store: drumlin.Store, frame: pd.DataFrame) -> None:
    """Writes ``frame`` and reads it as a whole."""
    store.write("t", frame)
    kinds.assert_same(store.read("t").to_pandas(), frame)


@pytest.mark.parametrize("kind", kinds.COLUMNS)
def test_columns(store: drumlin.Store, kind: str) -> None:
    rng = np.random.default_rng(SEED)
    for rows, levels in ((0, ["default text"]), (1, ["range"]), (6, ["int64", "range not from 0"])):
        made = kinds.index_of(rng, rows, levels, [None] * len(levels))
        array = kinds.COLUMNS[kind](rng, rows)
        check(store, frame_of({0: np.arange(rows), 1: array}, made, pd.Index(["n", "x"])))


@pytest.mark.parametrize("kind", kinds.LEVELS)
def test_indexes(store: drumlin.Store, kind: str) -> None:
    rng = np.random.default_rng(SEED)
    check(store, frame_of({0: np.arange(5)}, kinds.index_of(rng, 5, [kind], [None]), pd.Index(["n"])))
    check(store, frame_of({0: np.arange(0)}, kinds.index_of(rng, 0, [kind], ["k"]), pd.Index(["n"])))
    levels = kinds.index_of(rng, 5, [kind, "range", kind], [None, "k", "k"])
    check(store, frame_of({0: np.arange(5)}, levels, pd.Index(["n"])))
    for name in kinds.NAMES:
        check_whole(store, frame_of({0: np.arange(3)}, kinds.index_of(rng, 3, [kind], [name]), pd.Index(["n"])))


@pytest.mark.parametrize("labels", kinds.LABELS)
def test_labels(store: drumlin.Store, labels: str) -> None:
    rng = np.random.default_rng(SEED)
    for name in (None, "names", 0, ("a", 1)):
        made = kinds.LABELS[labels](5)
        made = made.rename(name) if made.nlevels == 1 else made
        check(store, frame_of({at: np.arange(4) + at for at in range(5)}, pd.RangeIndex(4), made))
    # Half of the kinds here, the other half with the next labels.
    odd = list(kinds.LABELS).index(labels) % 2
    for kind in (*kinds.RANGES, *kinds.LEVELS[odd::2]):
        index = kinds.index_of(rng, 2, [kind], ["k"])
        check_whole(store, frame_of({0: np.arange(2), 1: index.array}, index, kinds.LABELS[labels](2)))
    for kind in ("range", "int64"):
        index = kinds.index_of(rng, 2, [kind], [None])
        check_whole(
            store, frame_of({}, index, kinds.LABELS[labels](0)) if kind == "int64" else pd.DataFrame({"a": index})
        )


@pytest.mark.parametrize("kind", kinds.REFUSED)
def test_refused(store: drumlin.Store, kind: str) -> None:
    array = kinds.REFUSED[kind](np.random.default_rng(SEED), 3)
    index = pd.RangeIndex(len(array))
    frame = frame_of({0: np.arange(len(array)), 1: array}, index, pd.Index(["n", "x"]))
    with pytest.raises(drumlin.InvalidArgument, match=r"column 'x'"):
        store.write("refused", frame)
    if kind not in ("complex", "sparse"):
        with pytest.raises(drumlin.InvalidArgument, match=r"the index|index level 'k'"):
            store.write("refused", pd.DataFrame({"n": index}, index=pd.Index(array, dtype=array.dtype)))
    assert not store.tree.exists("refused")


def any_frame(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows, count = int(rng.choice([0, 1, 2, 7, 30])), int(rng.integers(1, 6))
    columns: dict[int, Any] = {0: np.arange(rows)}
    for at in range(1, count):
        refused = rng.random() < 0.02
        table = kinds.REFUSED if refused else kinds.COLUMNS
        array = table[str(rng.choice(list(table)))](rng, rows)
        columns[at] = array if len(array) == rows else array[:rows]
    names = [kinds.NAMES[at] for at in rng.integers(0, len(kinds.NAMES), 3)]
    if rng.random() < 0.4:
        levels = [str(rng.choice(list(kinds.RANGES)))]
    else:
        levels = [str(rng.choice([*kinds.LEVELS, *kinds.RANGES])) for _ in range(int(rng.choice([1, 1, 2, 3])))]
    labels = kinds.LABELS[str(rng.choice(list(kinds.LABELS)))](count)
    frame = frame_of(columns, kinds.index_of(rng, rows, levels, names[: len(levels)]), labels)
    if rng.random() < 0.1:
        frame.attrs = {"a": [1, 2.5, None], "b": {"c": "d"}} if rng.random() < 0.8 else {"a": (1, 2)}
    if rng.random() < 0.05 and frame.index.is_unique:
        frame.flags.allows_duplicate_labels = False
    return frame


def test_random_frames(store: drumlin.Store) -> None:
    only = os.environ.get("DRUMLIN_FRAME_SEED")
    start = SEED * 1_000_000
    seeds = range(start, start + int(os.environ.get("DRUMLIN_FRAMES", "300"))) if only is None else [int(only)]
    refused = 0
    for seed in seeds:
        frame = any_frame(seed)
        try:
            check(store, frame)
            check_changes(store, frame)
        except drumlin.InvalidArgument as error:
            refused += 1
            told = str(error)
            if not any(word in told for word in ("column", "index", "attrs", "label")):
                raise
        except BaseException:
            print(f"run it again: DRUMLIN_FRAME_SEED={seed} pytest tests/test_any_frame.py -k random")
            raise
    assert only is not None or refused < len(seeds) / 4
