"""Rows that expire: through every way of reading and writing of the package."""

import asyncio
import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drumlin
from drumlin import aio

HOUR = dt.timedelta(hours=1)


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def frame(*ids: int) -> pa.Table:
    """Rows of which the even ones have expired for two hours."""
    times = [now() + (-2 * HOUR if n % 2 == 0 else 2 * HOUR) for n in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "n": pa.array([n * 10 for n in ids], pa.int64()),
            "until": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture(params=["keyed", "plain", "in memory"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with drumlin.open(tmp_path / "s") as store:
        table = store.table("t")
        if request.param == "plain":
            table.write(frame(*range(6)))
            table.set_ttl("until")
        else:
            table.create(frame().schema, key=["id"])
            table.set_ttl("until")
            add = table.append if request.param == "keyed" else table.upsert
            add(frame(*range(6)))
        yield table


def ids(result: Any) -> list[int]:
    return [row["id"] for row in result.to_arrow().to_pylist()]


def test_every_way_of_reading_leaves_out_what_has_expired(table: Any) -> None:
    assert ids(table.read()) == [1, 3, 5]
    assert ids(table.read(columns="id", where="n >= 20")) == [3, 5]
    assert ids(table.read(columns="id", limit=2)) == [1, 3]
    assert ids(table.read(columns="id", tail=1)) == [5]
    assert ids(table.read(columns="id", rows=slice(1, 3))) == [3, 5]
    assert table.stat().rows == 3
    assert table.ttl() == drumlin.TimeToLive("until", dt.timedelta(0))


def test_sql_data_sets_and_groups(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    with drumlin.open(tmp_path / "s") as store:
        for path in ("a/x", "a/y"):
            store.write(path, frame(*range(6)))
            store.table(path).set_ttl("until")
        store.write("a/z", frame(*range(6)))
        assert store.sql("select count(*), sum(n) from 'a/x'").fetchall() == [(3, 90)]
        assert store.sql("select min(id), max(id) from 'a/*'").fetchall() == [(0, 5)]
        dataset = store.scan("a/*")
        assert dataset.count_rows() == 12
        assert duckdb.sql("select count(*) from dataset where id < 4").fetchall() == [(2 + 2 + 4,)]
        assert duckdb.sql("select count(*) from dataset").fetchall() == [(12,)]
        one = store.scan("a/x")
        assert one.to_lazy().select(polars.len()).collect().item() == 3
        assert one.to_lazy().filter(polars.col("id") > 1).collect()["id"].to_list() == [3, 5]
        sums = store.scan("a/*").group_by("id").agg(n="count").to_arrow().to_pylist()
        assert sums == [{"id": n, "n": 1 if n % 2 == 0 else 3} for n in range(6)]


def test_writes_do_not_meet_what_has_expired(table: Any) -> None:
    assert table.delete("id = 2").rows == 0
    assert table.update({"n": "n + 1"}).rows == 3
    report = table.merge(frame(1, 7), on="id").when_matched(update=True).when_not_matched(insert=True).execute()
    assert (report.updated, report.inserted) == (1, 1)
    report = (
        table.merge({"id": [2], "n": [7], "until": [None]}, on="id")
        .when_matched(update=True)
        .when_not_matched(insert=True)
        .execute()
    )
    assert (report.updated, report.inserted) == (0, 1)
    rows = table.read(columns=["id", "n"]).to_arrow().to_pylist()
    assert sorted((row["id"], row["n"]) for row in rows) == [(1, 10), (2, 7), (3, 31), (5, 51), (7, 70)]


def test_keys_of_expired_rows_are_free(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "s") as store:
        table = store.table("t")
        table.create(frame().schema, key=["id"])
        table.set_ttl("until")
        table.upsert(frame(0, 1, 2))
        with pytest.raises(drumlin.AlreadyExists):
            table.insert({"id": 1, "n": 1, "until": None})
        table.insert({"id": 0, "n": 1, "until": None})
        assert table.get(0)["n"] == 1
        assert table.increment({"n": 5}, 2, returning=True).returned.to_arrow()["n"].to_pylist() == [5]
        table.upsert({"id": 4, "n": 40, "until": now() - HOUR})
        assert table.get(4) is None
        table.upsert({"id": 4, "n": 41})
        assert table.get(4) == {"id": 4, "n": 41, "until": None}
        table.upsert({"id": 6, "n": 60, "until": now() - HOUR})
        with pytest.raises(drumlin.ConditionFailed):
            table.compare_and_set(6, {"n": 60}, {"n": 61})


def test_time_to_live_is_set_changed_and_dropped(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "s") as store:
        table = store.table("t")
        table.write(frame(0, 1))
        assert table.ttl() is None
        with pytest.raises(drumlin.NotFound):
            table.drop_ttl()
        with pytest.raises(drumlin.InvalidArgument, match="'n' of type int64 cannot say when rows expire"):
            table.set_ttl("n")
        with pytest.raises(drumlin.InvalidArgument, match="did you mean 'until'"):
            table.set_ttl("untill")
        with pytest.raises(TypeError, match="after must be a timedelta"):
            table.set_ttl("until", after=30)
        with pytest.raises(drumlin.InvalidArgument, match="expected 0 or more"):
            table.set_ttl("until", after=-HOUR)
        with pytest.raises(TypeError, match="column must be the name of a column"):
            table.set_ttl(None)
        version = table.set_ttl("until", after=3 * HOUR, metadata={"why": "long"})
        assert (version.kind, version.metadata) == ("alter", {"why": "long"})
        assert table.read().to_arrow().num_rows == 2
        table.set_ttl("until")
        assert table.read(columns="id").to_arrow()["id"].to_pylist() == [1]
        # What has expired by then does not come back.
        table.set_ttl("until", after=3 * HOUR)
        assert table.read(columns="id").to_arrow()["id"].to_pylist() == [1]
        assert table.ttl(as_of=0) is None
        assert table.read(as_of=0).to_arrow().num_rows == 2
        with pytest.raises(drumlin.InvalidArgument, match="drop the time to live first"):
            table.drop_columns("until")
        table.drop_ttl()
        table.drop_columns("until")


def test_a_checkpoint_deletes_what_has_expired(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "s") as store:
        store.write("t", frame(*range(6)))
        store.table("t").set_ttl("until")
        report = store.checkpoint()
        assert report.rows_expired == 3
        assert "3 rows expired" in str(report)
        assert store.table("t").versions()[-1].kind == "expire"
        assert store.checkpoint().rows_expired == 0
        assert store.read("t", as_of=0).to_arrow().num_rows == 6
        changes = store.table("t").diff(0).to_arrow().to_pylist()
        assert [(row["id"], row["_change"]) for row in changes] == [(0, "delete"), (2, "delete"), (4, "delete")]


def test_a_transaction_sees_one_instant(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "s") as store:
        table = store.table("t")
        table.create(frame().schema, key=["id"])
        table.set_ttl("until")
        table.upsert({"id": 1, "n": 1, "until": now() + dt.timedelta(milliseconds=300)})
        with store.transaction() as tx:
            seen = tx.table("t").read().to_arrow().num_rows
            time.sleep(0.4)
            assert tx.table("t").read().to_arrow().num_rows == seen
        assert table.get(1) is None


def test_asyncio(tmp_path: Path) -> None:
    async def main() -> None:
        store = await aio.open(tmp_path / "s")
        await store.write("t", frame(0, 1))
        await store.table("t").set_ttl("until", after=HOUR)
        assert await store.table("t").ttl() == drumlin.TimeToLive("until", HOUR)
        await store.table("t").drop_ttl()
        assert await store.table("t").ttl() is None
        await store.close()

    asyncio.run(main())
