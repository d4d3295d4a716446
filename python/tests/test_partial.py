"""Rows that have some of the columns: what they keep, what they get, and that all of a call is one commit."""

import random
from typing import Any

import pytest

import drumlin


def people() -> drumlin.Table[Any]:
    table = drumlin.open("memory://").table("people")
    table.create({"id": int, "name": str, "n": int, "city": str}, key="id")
    table.add_constraints(defaults={"n": 7})
    return table


def test_rows_keep_what_they_have() -> None:
    table = people()
    table.insert([{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace", "n": None}, {"id": 3, "city": "Oslo"}])
    assert table.get(1) == {"id": 1, "name": "Ada", "n": 7, "city": None}
    assert table.get(2) == {"id": 2, "name": "Grace", "n": None, "city": None}
    assert table.get(3) == {"id": 3, "name": None, "n": 7, "city": "Oslo"}
    table.upsert({"id": 1, "city": "London"})
    table.upsert({"id": [2, 3], "n": [2, 3]})
    table.upsert(
        [{"id": 1, "n": 1}, {"id": 2, "city": "York"}, {"id": 1, "name": None}, {"id": 2, "n": 5, "city": None}]
    )
    assert table.get(1) == {"id": 1, "name": None, "n": 1, "city": "London"}
    assert table.get(2) == {"id": 2, "name": "Grace", "n": 5, "city": None}
    assert table.get(3) == {"id": 3, "name": None, "n": 3, "city": "Oslo"}
    with pytest.raises(drumlin.AlreadyExists, match="the key 3"):
        table.insert([{"id": 9, "n": 1}, {"id": 3, "city": "x"}])
    with pytest.raises(drumlin.SchemaMismatch, match="'town', which the table lacks"):
        table.upsert([{"id": 1, "n": 9}, {"id": 1, "town": "x"}])
    assert table.get(9) is None
    assert table.get(1) == {"id": 1, "name": None, "n": 1, "city": "London"}


def test_one_call_is_one_commit() -> None:
    table = people()
    store = table.read()  # It exists.
    assert len(store) == 0
    rows = [{"id": 1, "n": 1}, {"id": 2, "city": "York"}, {"id": 3, "name": "x", "city": "y"}]
    report = table.upsert(rows)
    assert (report.rows, report.version) == (3, None)
    report = table.upsert([*rows, {"id": 4, "extra": 1.5}], schema="evolve", metadata={"by": "test"})
    assert report.version is not None
    assert report.version.metadata == {"by": "test"}
    assert table.get(4) == {"id": 4, "name": None, "n": 7, "city": None, "extra": 1.5}


def test_random_rows_equal_those_of_dicts() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        table = people()
        model: dict[int, dict[str, Any]] = {}
        for _ in range(25):
            rows = []
            for _ in range(rng.randrange(6)):
                row: dict[str, Any] = {"id": rng.randrange(6)}
                for name, value in (("name", f"p{rng.randrange(9)}"), ("n", rng.randrange(9)), ("city", "c")):
                    if rng.random() < 0.5:
                        row[name] = value if rng.random() < 0.8 else None
                rows.append(row)
            many = rng.random() < 0.3
            table.upsert(rows, metadata={"many": 1} if many else None)
            for row in rows:
                model.setdefault(row["id"], {"id": row["id"], "name": None, "n": 7, "city": None}).update(row)
            assert table.read().to_dicts() == [model[key] for key in sorted(model)], seed


def test_nulls_are_equal_on_request() -> None:
    store = drumlin.open("memory://")
    store.write("t", {"k": [1, None], "v": ["a", "b"]})
    table = store.table("t")
    rows = {"k": [None, 2], "v": ["c", "d"]}
    report = (
        table.merge(rows, on="k", nulls_equal=True).when_matched(update=True).when_not_matched(insert=True).execute()
    )
    assert (report.updated, report.inserted) == (1, 1)
    assert sorted(table.read().to_dicts(), key=str) == [{"k": 1, "v": "a"}, {"k": 2, "v": "d"}, {"k": None, "v": "c"}]
    report = table.merge(rows, on="k").when_matched(update=True).when_not_matched(insert=True).execute()
    assert (report.updated, report.inserted) == (1, 1), "a null is inserted again by each merge"
    with pytest.raises(drumlin.InvalidArgument, match="rows 0 and 1 of the data have the same k: null"):
        table.merge({"k": [None, None], "v": ["", ""]}, on="k", nulls_equal=True).when_matched(update=True).execute()
