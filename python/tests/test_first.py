"""What people give and get at first: handles, lists of frames, and files by their name."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from market import market

import drumlin


@pytest.fixture
def store() -> drumlin.Store:
    return market()


def test_rows_are_not_taken_for_an_array(store: drumlin.Store) -> None:
    for rows in (store.read("users"), store["users"], store.scan("users"), store.table("users").diff(0)):
        for take in (pd.DataFrame, np.asarray):
            with pytest.raises(TypeError, match="to_pandas"):
                take(rows)


def test_handles_on_one_table_are_equal(store: drumlin.Store) -> None:
    assert store.table("a") == store.table("a")
    assert len({store.table("a"), store.table("a"), store.table("b")}) == 2
    assert store.table("a") != drumlin.open("memory://").table("a")
    tx = store.transaction()
    assert tx.table("a") == tx.table("a") != store.table("a")
    tx._core.abort()


def test_lists_of_frames_and_files_are_rows(store: drumlin.Store, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("n\n1\n")
    (tmp_path / "2.csv").write_text("n\n2\n")
    data: list[Any] = [
        [pa.record_batch({"n": [1]}), pa.record_batch({"n": [2]})],
        [pa.table({"n": [1, 2]})],
        [pd.DataFrame({"n": [1]}), pd.DataFrame({"n": [2]})],
        [pl.DataFrame({"n": [1]}), pl.DataFrame({"n": [2]})],
        sorted(tmp_path.glob("*.csv")),
        [str(tmp_path / "1.csv"), str(tmp_path / "2.csv")],
    ]
    for rows in data:
        store.write("n", rows)
        assert store.read("n").to_arrow()["n"].to_pylist() == [1, 2]
    assert store.table("n").group_by(["n"]).agg(rows="count").num_rows == 2


def test_files_by_their_name(store: drumlin.Store, tmp_path: Path) -> None:
    store.write("t", {"a": [1, 2], "s": ["x", None]})
    for name in ("a.csv", "a.csv.gz", "a.csv.zst", "a.tsv"):
        store.read("t").to_csv(tmp_path / name)
        store.write("back", tmp_path / name)
        assert store.read("back").to_dicts() == [{"a": 1, "s": "x"}, {"a": 2, "s": ""}], name
    assert (tmp_path / "a.csv.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert (tmp_path / "a.tsv").read_bytes().startswith(b'"a"\t"s"\n')
    (tmp_path / "bad.csv.gz").write_text("no gzip")
    (tmp_path / "folder.csv").mkdir()
    for name in ("bad.csv.gz", "folder.csv"):
        with pytest.raises(drumlin.InvalidArgument, match=name):
            store.write("back", tmp_path / name)
    before = sorted(tmp_path.iterdir())
    for write in (store.read("t").to_csv, store.scan("t").to_parquet):
        for file, kind in (
            ("", drumlin.InvalidArgument), ("/", drumlin.InvalidArgument), ("..", drumlin.InvalidArgument),
            ("a\0b", drumlin.InvalidArgument), ("a\ud800b", drumlin.InvalidArgument),
            (str(tmp_path / "folder.csv"), drumlin.InvalidArgument),
            (str(tmp_path / "none" / "a.csv"), drumlin.NotFound), (str(tmp_path / ("a" * 300)), drumlin.Unavailable),
            (3, TypeError), (None, TypeError), (io.StringIO(), TypeError),
        ):  # fmt: skip
            with pytest.raises(kind, match="file"):
                write(file)  # type: ignore[arg-type]
    assert sorted(tmp_path.iterdir()) == before
