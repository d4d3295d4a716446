"""Rows for applications: defaults that are made, numbers added, rows compared, returned, and as objects."""

import dataclasses
import datetime as dt
import subprocess
import sys
import threading
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import drumlin


def people(store: drumlin.Store | None = None) -> drumlin.Table[Any]:
    table = (store or drumlin.open("memory://")).table("people")
    table.create({"id": int, "name": str, "at": "timestamptz", "uid": "uuid", "n": "int32"}, key="id")
    table.add_constraints(
        defaults={"id": drumlin.sequence(), "at": drumlin.now(), "uid": drumlin.uuid(), "n": 0}, not_null=["at"]
    )
    return table


def test_defaults_are_made() -> None:
    table = people()
    before = dt.datetime.now(dt.UTC)
    report = table.insert([{"name": "Ada"}, {"name": "Grace", "n": 5}], returning=True)
    assert report.rows == 2
    ada, grace = report.returned.to_dicts()
    assert (ada["id"], ada["n"], grace["id"], grace["n"]) == (1, 0, 2, 5)
    assert before - dt.timedelta(seconds=1) <= ada["at"] == grace["at"] <= dt.datetime.now(dt.UTC)
    assert isinstance(ada["uid"], uuid.UUID)
    assert (ada["uid"].version, ada["uid"] != grace["uid"]) == (7, True)
    assert table.get(1) == ada
    assert table.constraints().defaults == {
        "id": drumlin.sequence(),
        "at": drumlin.now(),
        "uid": drumlin.uuid(),
        "n": 0,
    }
    assert repr(table.constraints().defaults["id"]) == "drumlin.sequence()"
    # Given values are taken, also if they are what the sequence will come to.
    table.insert({"id": 10, "name": "Alan"})
    assert table.insert({"name": "Edsger"}, returning="id").returned.to_dicts() == [{"id": 3}]
    # A new row of an upsert has them too, and one that is there keeps what it has.
    table.upsert([{"id": 1, "n": 9}, {"id": 50, "n": 9}])
    assert table.get(1) == {**ada, "n": 9}
    assert table.get(50)["uid"].version == 7
    table.drop_constraints(defaults=["uid"])
    assert table.insert({"name": "x"}, returning=["uid"]).returned.to_dicts() == [{"uid": None}]


def test_what_cannot_be_a_default_is_refused() -> None:
    table = people()
    for defaults, words in [
        ({"name": drumlin.now()}, "'name' of type string cannot have the default now"),
        ({"n": drumlin.uuid()}, "needs a UUID or text"),
        ({"nn": drumlin.uuid()}, "nn"),
    ]:
        with pytest.raises(drumlin.Error, match=words):
            table.add_constraints(defaults=defaults)
    with pytest.raises(drumlin.InvalidArgument, match=r"call it: drumlin.sequence\(\)"):
        table.add_constraints(defaults={"n": drumlin.sequence})
    with pytest.raises(drumlin.InvalidArgument, match="add_constraints"):
        table.add_columns({"k": (int, drumlin.sequence())})
    for wrong in ("a", 1.5, True):
        with pytest.raises(TypeError, match="start"):
            drumlin.sequence(wrong)  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument, match="0 to"):
        drumlin.sequence(-1)


def test_numbers_are_added() -> None:
    table = drumlin.open("memory://").table("hits")
    table.create({"page": str, "day": "date32", "n": "int32", "cost": "numeric(8, 2)"}, key=["page", "day"])
    day = dt.date(2026, 1, 2)
    report = table.increment({"n": 1, "cost": Decimal("0.50")}, ("home", day))
    assert report.returned.to_dicts() == [{"page": "home", "day": day, "n": 1, "cost": Decimal("0.50")}]
    assert table.increment({"n": 2}, {"day": day, "page": "home"}, returning="n").returned.to_dicts() == [{"n": 3}]
    keys = [("home", day), ("about", day), ("home", day)]
    assert table.increment({"n": -1}, keys, returning=["page", "n"]).returned.to_dicts() == [
        {"page": "about", "n": -1},
        {"page": "home", "n": 1},
    ]
    with pytest.raises(drumlin.InvalidArgument, match="returning=True"):
        _ = table.increment({"n": 1}, ("home", day), returning=False).returned
    before = table.read().to_dicts()
    for amounts, key, words in [
        ({"n": 2**31 - 1}, ("home", day), "int32 does not hold 2 and 2147483647"),
        ({"n": None}, ("home", day), "null"),
        ({"page": 1}, ("home", day), "page"),
        ({"m": 1}, ("home", day), "'m'"),
        ({}, ("home", day), "no column beside the key"),
        ({"n": 1}, "home", "1 values"),
        ({"n": 1}, {"page": "home"}, "'day'"),
        ({"n": "x"}, ("home", day), "'n'"),
        ({"n": 1, "day": day}, ("home", dt.date(2020, 1, 1)), "'day' is part of the key"),
    ]:
        with pytest.raises((drumlin.Error, TypeError), match=words):
            table.increment(amounts, key)
    with pytest.raises(TypeError, match="dict"):
        table.increment(1, ("home", day))  # type: ignore[arg-type]
    assert table.read().to_dicts() == before


def test_threads_count_in_one_row() -> None:
    table = drumlin.open("memory://").table("hits")
    table.create({"id": int, "n": int}, key="id")
    sums: list[int] = []

    def count() -> None:
        for _ in range(50):
            sums.extend(row["n"] for row in table.increment({"n": 1}, 1).returned.to_dicts())

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sums) == list(range(1, 201))


def test_processes_count_in_one_row(tmp_path: Path) -> None:
    uri = str(tmp_path / "store")
    with drumlin.open(uri, shared=True) as store:
        table = store.table("hits")
        table.create({"id": int, "n": int, "k": int}, key="id")
        table.add_constraints(defaults={"k": drumlin.sequence()})
        code = (
            "import sys, drumlin\n"
            "with drumlin.open(sys.argv[1], shared=True) as store:\n"
            "    table = store.table('hits')\n"
            "    for at in range(30):\n"
            "        table.increment({'n': 1}, 1)\n"
            "        table.insert({'id': int(sys.argv[2]) + at})\n"
        )
        running = [subprocess.Popen([sys.executable, "-c", code, uri, str(1000 * at)]) for at in (1, 2)]
        for _ in range(30):
            table.increment({"n": 1}, 1)
        assert [process.wait() for process in running] == [0, 0]
        store.refresh()
        assert table.get(1)["n"] == 90
        numbers = [row["k"] for row in table.read().to_dicts()]
        assert len(set(numbers)) == len(numbers) == 61


def test_rows_are_compared_and_set() -> None:
    table = people()
    table.insert({"name": "Ada"})
    table.compare_and_set(1, {"name": "Ada", "n": 0}, {"n": 1})
    before = table.read().to_dicts()
    with pytest.raises(drumlin.ConditionFailed, match="'n' of the row with the key 1 is 1, expected 0"):
        table.compare_and_set(1, {"n": 0}, {"n": 2})
    with pytest.raises(drumlin.ConditionFailed, match="no row with the key 7"):
        table.compare_and_set(7, {"n": 0}, {"n": 2})
    with pytest.raises(drumlin.Error, match="'z'"):
        table.compare_and_set(1, {"z": 0}, {"n": 2})
    for expected, new in [({"id": 1}, {"n": 2}), ({"n": 1}, {"id": 2, "n": 2})]:
        with pytest.raises(drumlin.InvalidArgument, match="'id' is part of the key"):
            table.compare_and_set(1, expected, new)
    with pytest.raises(TypeError, match="expected must be a dict"):
        table.compare_and_set(1, 0, {"n": 2})  # type: ignore[arg-type]
    assert table.read().to_dicts() == before
    report = table.compare_and_set(1, {"name": "Ada"}, {"name": None, "n": 7}, returning=["name", "n"])
    assert report.returned.to_dicts() == [{"name": None, "n": 7}]
    table.compare_and_set(1, {"name": None}, {"name": "Grace"})
    assert table.get(1)["name"] == "Grace"
    store = drumlin.open("memory://")
    other = people(store)

    def both(tx: drumlin.Transaction) -> None:
        tx.table("people").insert({"name": "Alan"})
        tx.table("people").compare_and_set(1, {"name": "Ada"}, {"n": 1})

    with pytest.raises(drumlin.ConditionFailed):
        store.transact(both)
    assert other.stat().rows == 0


def test_rows_that_go_are_returned() -> None:
    table = people()
    table.insert({"name": ["a", "b", "c"]})
    assert table.delete_keys([3, 9, 1], returning=["name"]).returned.to_dicts() == [{"name": "c"}, {"name": "a"}]
    assert repr(table.delete_keys([2])).endswith("version=None)")
    report = table.upsert(
        [{"id": 5, "n": 1}, {"id": 4, "name": "d"}, {"id": 5, "name": "e"}], returning=["id", "name", "n"]
    )
    assert report.returned.to_dicts() == [{"id": 4, "name": "d", "n": 0}, {"id": 5, "name": "e", "n": 1}]
    assert report.returned.to_arrow().num_rows == 2
    assert "returned=Result('people'" in repr(report)
    for report in (table.upsert([], returning=True), table.delete_keys([], returning="n")):
        assert report.returned.to_dicts() == []
    with pytest.raises(drumlin.Error, match="nn"):
        table.insert({"name": "x"}, returning="nn")
    assert table.stat().rows == 2


def test_sql_says_defaults_and_returns_rows() -> None:
    store = drumlin.open("memory://")
    store.sql(
        "create table t (id bigint primary key generated by default as identity (start with 5), at timestamptz default "
        "current_timestamp, u uuid default gen_random_uuid(), s text)"
    )
    assert store.sql("insert into t (s) values ('a'), ('b') returning id, s").to_dicts() == [
        {"id": 5, "s": "a"},
        {"id": 6, "s": "b"},
    ]
    rows = store.sql("insert into t (s) values ('c') returning *").to_dicts()
    assert (rows[0]["id"], rows[0]["u"].version) == (7, 7)
    assert rows[0]["at"] is not None
    assert store.sql("insert or replace into t (id, s) values (7, 'd') returning s").to_dicts() == [{"s": "d"}]
    with pytest.raises(drumlin.InvalidArgument, match="RETURNING gives columns by name"):
        store.sql("insert into t (s) values ('c') returning id + 1")
    store.sql("create table v (id serial primary key, n int)")
    assert store.sql("insert into v (n) values (1) returning id").to_dicts() == [{"id": 1}]
    store.sql("alter table v alter column n set default nextval('x')")
    assert store.table("v").constraints().defaults["n"] == drumlin.sequence()


def test_rows_are_objects() -> None:
    class Person(NamedTuple):
        id: int
        name: str | None

    @dataclasses.dataclass
    class Someone:
        id: int
        name: str | None = None

    table = drumlin.open("memory://").table("people")
    table.create({"id": int, "name": str}, key="id")
    table.insert([Person(1, "Ada"), Person(2, None)])
    table.upsert([Someone(3, "Grace")])
    assert table.read().to_objects(Person) == [Person(1, "Ada"), Person(2, None), Person(3, "Grace")]
    assert table.get_many([3, 4]).to_objects(Someone) == [Someone(3, "Grace"), None]
    report = table.insert([Person(4, "x")], returning=True)
    assert report.returned.to_objects(Person) == [Person(4, "x")]
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", id=(int, ...), name=(str | None, None))
    table.insert([model(id=5, name="y")])
    assert table.read(where="id = 5").to_objects(model) == [model(id=5, name="y")]
