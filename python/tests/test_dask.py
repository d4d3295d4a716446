"""Dask over tables: partitions are splits, a write is one commit."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from questions import GROUPS, ROWS, fill
from waiting import until

import drumlin

dd = pytest.importorskip("dask.dataframe")

import drumlin.dask  # noqa: E402

SYNC = {"scheduler": "sync"}


def frame(rows: int) -> pd.DataFrame:
    times = pd.date_range("2026-01-01", periods=rows, freq="min")
    return pd.DataFrame({"time": times, "n": np.arange(rows), "s": [f"s{n % 7}" for n in range(rows)]})


def test_a_table_is_read_by_partitions(folder: str) -> None:
    whole = frame(2000)
    with drumlin.open(folder) as store:
        store.write("t", whole[:500])
        for at in range(500, 2000, 500):
            store.append("t", whole[at : at + 500])
        found = drumlin.dask.read(store, "t", split_bytes=1)
        assert found.npartitions == 4
        pd.testing.assert_frame_equal(found.compute(**SYNC).reset_index(drop=True), whole, check_dtype=False)
        assert int(found["n"].sum().compute(scheduler="processes")) == whole["n"].sum()
        store.drop_and_reclaim("t")
        assert int(found["n"].sum().compute(**SYNC)) == whole["n"].sum()
        del found
        assert until(lambda: gc.collect() >= 0 and store.stat().holds == 0)
        store.write("e", whole[:0])
        assert len(drumlin.dask.read(store, "e").compute(**SYNC)) == 0


@pytest.mark.parametrize("index", ["time", "n", "s"])
def test_a_sorted_table_has_known_divisions(folder: str, index: str) -> None:
    whole = frame(2000).assign(s=lambda f: [f"s{n:05}" for n in f["n"]])
    with drumlin.open(folder) as store:
        for at in range(0, 2000, 500):
            (store.append if at else store.write)("t", whole[at : at + 500], **({} if at else {"sort": [index]}))
        found = drumlin.dask.read(store, "t", index=index, split_bytes=1)
        assert found.known_divisions
        assert found.npartitions == 4
        assert found.divisions[0] == whole[index].iloc[0]
        assert found.divisions[-1] == whole[index].iloc[-1]
        low, high = whole[index].iloc[600], whole[index].iloc[700]
        assert len(found.loc[low:high].compute(**SYNC)) == 101
        only = found[["n"]] if index != "n" else found[["s"]]
        assert len(only.compute(**SYNC)) == 2000
        # A value that is in two partitions: no divisions are known.
        store.append("t", whole[1999:])
        again = drumlin.dask.read(store, "t", index=index, split_bytes=1)
        assert len(again.compute(**SYNC)) == 2001
        with pytest.raises(drumlin.InvalidArgument, match="nowhere"):
            drumlin.dask.read(store, "t", index="nowhere")


def test_only_the_columns_asked_for_are_read(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("t", frame(1000))
        found = drumlin.dask.read(store, "t", where="n >= 990")
        assert list(found["s"].compute(**SYNC)) == [f"s{n % 7}" for n in range(990, 1000)]
        read = pickle.loads(pickle.dumps(drumlin.dask._Read({}, None, [], None)))
        split = store.scan("t").splits()[0]
        assert list(read(pickle.loads(pickle.dumps(split)), columns=["s"]).columns) == ["s"]


def test_dask_pushes_columns_and_no_filters(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[list[str] | None] = []
    to_pandas = drumlin.Split.to_pandas

    def reading(self: drumlin.Split, *, columns: list[str] | None = None, **options: object) -> pd.DataFrame:
        read.append(columns)
        return to_pandas(self, columns=columns, **options)  # type: ignore[arg-type]

    with drumlin.open(folder) as store:
        fill(store, "t")
        found = drumlin.dask.read(store, "t", split_bytes=1)
        monkeypatch.setattr(drumlin.Split, "to_pandas", reading)
        assert len(found[found["c_integer"] == 3][["id"]].compute(**SYNC)) == ROWS
        assert [set(columns or ()) for columns in read] == [{"c_integer", "id"}] * GROUPS


def test_a_write_is_one_commit(folder: str) -> None:
    whole = frame(1000)
    with drumlin.open(folder) as store:
        parts = dd.from_pandas(whole, npartitions=5)
        report = drumlin.dask.write(parts, store, "t", sort=["time"], job="one", compute=SYNC)
        assert report.versions == {"t": 0}
        assert store.read("t").to_arrow()["n"].to_pylist() == list(range(1000))
        with pytest.raises(drumlin.AlreadyExists, match="one"):
            drumlin.dask.write(parts, store, "t", job="one", compute=SYNC)
        drumlin.dask.write(parts, store, "t", compute={"scheduler": "processes"})
        assert store.read("t").to_arrow().num_rows == 2000
        drumlin.dask.write(parts, store, "t", mode="overwrite", compute=SYNC)
        assert store.read("t").to_arrow().num_rows == 1000
        assert store.stat().holds == 0


def test_a_write_that_fails_leaves_nothing(folder: str) -> None:
    def broken(part: pd.DataFrame) -> pd.DataFrame:
        if 500 in part["n"].values:
            raise ValueError("broken")
        return part

    with drumlin.open(folder) as store:
        parts = dd.from_pandas(frame(1000), npartitions=5).map_partitions(broken, meta=frame(1))
        with pytest.raises(ValueError, match="broken"):
            drumlin.dask.write(parts, store, "t", compute=SYNC)
        assert not store.table("t").exists()
        assert store.stat().holds == 0
        store.reclaim()
        assert store.verify().orphans == []


def test_by_address(folder: str) -> None:
    drumlin.dask.write(dd.from_pandas(frame(10), npartitions=2), folder, "t", compute=SYNC)
    with drumlin.open(folder) as store:
        assert store.read("t").to_arrow()["n"].to_pylist() == list(range(10))
    found = drumlin.dask.read(folder, "t")
    assert found["n"].compute(**SYNC).tolist() == list(range(10))
    assert pa.Schema.from_pandas(found._meta).names[:3] == ["time", "n", "s"]


def test_an_index_that_the_table_has_comes_back_whatever_is_asked_for(folder: str) -> None:
    whole = frame(1000).set_index("time")
    with drumlin.open(folder) as store:
        store.write("t", whole[:500], sort=["time"])
        store.append("t", whole[500:])
        for index in (None, "time"):
            found = drumlin.dask.read(store, "t", index=index, split_bytes=1)
            for part in (found, found[["n"]], found[["s", "n"]]):
                expected = whole[list(part.columns)]
                pd.testing.assert_frame_equal(part.compute(**SYNC), expected, check_dtype=False, check_freq=False)
            assert list(found["n"].compute(**SYNC).index) == list(whole.index)
        assert found.known_divisions
