"""Reads of some columns and rows; order; updates and deletes."""

import datetime as dt
import random

import pyarrow as pa
import pytest

import drumlin
from drumlin import col

ROWS = 1000


@pytest.fixture
def filled(store: drumlin.Store) -> drumlin.Store:
    """A table `t` of three row groups."""
    table = pa.table({"n": range(ROWS), "s": [f"s{n % 10}" for n in range(ROWS)], "f": [n / 7 for n in range(ROWS)]})
    store.write("t", table.slice(0, 400))
    store.append("t", table.slice(400, 100))
    store.append("t", table.slice(500))
    return store


def ns(result: drumlin.Result) -> list[int]:
    return result.to_arrow()["n"].to_pylist()


def test_columns_in_the_order_wanted(filled: drumlin.Store) -> None:
    result = filled.read("t", columns=["f", "n"])
    assert result.schema.names == ["f", "n"]
    assert result.to_arrow().schema.names == ["f", "n"]
    assert result.schema.types == ["double", "int64"]
    for columns, message in (
        (["n", "x"], "column 'x' does not exist; the columns are 'n', 's', 'f'"),
        ([], "no column"),
        (["n", "n"], "twice"),
    ):
        with pytest.raises(drumlin.InvalidArgument, match=message):
            filled.read("t", columns=columns)
    with pytest.raises(TypeError, match="columns must be a list of names"):
        filled.read("t", columns=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n < 3", [0, 1, 2]),
        ("n between 399 and 401", [399, 400, 401]),
        ("s = 's3' and n > 980", [983, 993]),
        ("n in (1, 999, 5000)", [1, 999]),
        ("n > 5000", []),
        (col("n") < 3, [0, 1, 2]),
        ((col("s") == "s3") & (col("n") > 980), [983, 993]),
        (col("f") * 7 > 997.5, [998, 999]),
        (~(col("n") > 1), [0, 1]),
    ],
    ids=str,
)
def test_where(filled: drumlin.Store, where: str | drumlin.Expr, expected: list[int]) -> None:
    assert ns(filled.read("t", where=where)) == expected
    # The columns of the filter need not be among those of the result.
    assert filled.read("t", where=where, columns=["f"]).to_arrow().num_rows == len(expected)
    assert [n for batch in filled.read("t", where=where) for n in batch["n"].to_pylist()] == expected


@pytest.mark.parametrize("rows", [0, 1, 399, 400, 401, 999, 1000, 5000])
def test_limit_and_tail(filled: drumlin.Store, rows: int) -> None:
    all_rows = list(range(ROWS))
    last = all_rows[-rows:] if rows else []
    assert ns(filled.read("t", limit=rows)) == all_rows[:rows]
    assert ns(filled.read("t", tail=rows)) == last
    assert [n for batch in filled.read("t", tail=rows) for n in batch["n"].to_pylist()] == last
    even = [n for n in all_rows if n % 2 == 0]
    assert ns(filled.read("t", where="n % 2 = 0", limit=rows)) == even[:rows]
    assert ns(filled.read("t", where="n % 2 = 0", tail=rows)) == (even[-rows:] if rows else [])


def test_limit_and_tail_are_not_both_given(filled: drumlin.Store) -> None:
    with pytest.raises(drumlin.InvalidArgument, match="not both"):
        filled.read("t", limit=1, tail=1)
    with pytest.raises(drumlin.InvalidArgument, match="limit=-1"):
        filled.read("t", limit=-1)
    with pytest.raises(TypeError):
        filled.read("t", limit=True)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("m > 1", "no column m"),
        ("n >", "cannot parse filter `n >`"),
        ("n = 'x'", "expected a number"),
        ("", "cannot parse"),
        (col("s") > 1, "expected a string"),
    ],
    ids=str,
)
def test_filters_that_make_no_sense_are_refused_at_once(
    filled: drumlin.Store, where: str | drumlin.Expr, message: str
) -> None:
    with pytest.raises(drumlin.InvalidArgument, match=message):
        filled.read("t", where=where)
    with pytest.raises(drumlin.InvalidArgument, match=message):
        filled.table("t").delete(where)


def test_filters_of_other_libraries_are_refused(filled: drumlin.Store) -> None:
    for where in (lambda row: True, True, 5):
        with pytest.raises(
            TypeError, match=r"where is text in the filter language or an expression made with drumlin\.col"
        ):
            filled.read("t", where=where)  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument, match="where is None"):
        filled.table("t").delete(None)  # type: ignore[arg-type]


def test_delete_rows(filled: drumlin.Store) -> None:
    report = filled.table("t").delete("n % 2 = 0", metadata={"why": "odd"})
    assert (report.rows, report.version.version, report.version.rows) == (500, 3, 500)
    assert report.version.metadata == {"why": "odd"}
    assert ns(filled.read("t")) == list(range(1, ROWS, 2))
    assert ns(filled.read("t", tail=2)) == [997, 999]
    assert ns(filled.read("t", as_of=2)) == list(range(ROWS))
    # Without a match, no version is made.
    report = filled.table("t").delete(col("n") == 2)
    assert (report.rows, report.version.version) == (0, 3)
    assert filled.table("t").delete("true").rows == 500
    assert filled.read("t").to_arrow().num_rows == 0


def test_a_sorted_table_is_read_in_order(store: drumlin.Store) -> None:
    values = list(range(500))
    random.Random(1).shuffle(values)
    store.write("t", {"n": values[:300], "at": range(300)}, sort=["n"])
    store.append("t", {"n": values[300:], "at": range(300, 500)})
    assert ns(store.read("t")) == list(range(500))
    assert ns(store.read("t", limit=5)) == list(range(5))
    assert ns(store.read("t", tail=5, where="n < 100")) == list(range(95, 100))
    # The sort columns need not be requested.
    at = store.read("t", columns=["at"]).to_arrow()["at"].to_pylist()
    assert [values[place] for place in at] == list(range(500))
    store.checkpoint()
    assert ns(store.read("t")) == list(range(500))
    assert store.table("t").stat().sort == ["n"]


def test_sort_orders_that_cannot_be(store: drumlin.Store) -> None:
    with pytest.raises(drumlin.InvalidArgument, match="sort column 'x' does not exist"):
        store.write("t", {"n": [1]}, sort=["x"])
    with pytest.raises(drumlin.InvalidArgument, match="cannot be sorted by column"):
        store.write("t", {"n": [1.5]}, sort=["n"])
    with pytest.raises(TypeError, match="sort must be a list"):
        store.write("t", {"n": [1]}, sort=b"n")  # type: ignore[arg-type]
    store.write("t", {"n": [1], "m": [1]}, sort=["n"])
    with pytest.raises(drumlin.InvalidArgument, match="keeps the order that it was created with"):
        store.write("t", {"n": [1], "m": [1]}, sort=["m"])


def test_update_replaces_a_range(store: drumlin.Store) -> None:
    days = [dt.datetime(2020, 1, day) for day in range(1, 11)]
    store.write("t", {"day": days, "n": [0] * 10}, sort=["day"])
    version = store.replace("t", {"day": [days[2], days[5]], "n": [1, 2]}, metadata="fix")
    assert (version.kind, version.rows, version.metadata) == ("replace", 8, "fix")
    back = store.read("t").to_arrow().to_pydict()
    assert back == {"day": [*days[:3], *days[5:]], "n": [0, 0, 1, 2, 0, 0, 0, 0]}
    assert store.read("t", as_of=0).to_arrow().num_rows == 10
    with pytest.raises(drumlin.SchemaMismatch, match="'m'"):
        store.replace("t", {"day": days[:1], "m": [1]})
    store.write("plain", {"n": [1]})
    with pytest.raises(drumlin.InvalidArgument, match="no sort order"):
        store.replace("plain", {"n": [1]})
    with pytest.raises(drumlin.NotFound):
        store.replace("none", {"n": [1]})


def test_appends_must_fit(store: drumlin.Store) -> None:
    store.write("t", pa.table({"n": pa.array([1], pa.int32()), "s": ["a"]}))
    # Narrower numbers, other layouts of text and columns of nulls do.
    store.append("t", pa.table({"s": pa.array(["b"], pa.large_string()), "n": pa.array([2], pa.int8())}))
    store.append("t", pa.table({"n": pa.nulls(1), "s": pa.array(["c"]).dictionary_encode()}))
    assert store.read("t").to_arrow().to_pydict() == {"n": [1, 2, None], "s": ["a", "b", "c"]}
    for wrong, message in (
        ({"n": [1]}, "the table has 's', which the data lacks"),
        ({"n": [1], "s": ["a"], "x": [1]}, "the data has 'x', which the table lacks"),
        ({"n": ["1"], "s": ["a"]}, "column 'n': the table has type int32, the data has string"),
        ({"n": [2**40], "s": ["a"]}, "column 'n': the table has type int32, the data has int64"),
    ):
        with pytest.raises(drumlin.SchemaMismatch, match=message):
            store.append("t", wrong)
    with pytest.raises(drumlin.NotFound, match="no table at 'none'"):
        store.append("none", {"n": [1]})
    assert len(store.table("t").versions()) == 3


def test_a_write_may_change_the_schema(store: drumlin.Store) -> None:
    store.write("t", {"n": [1]})
    store.write("t", {"s": ["a"]})
    assert store.read("t").to_arrow().to_pydict() == {"s": ["a"]}
    assert store.read("t", as_of=0).to_arrow().to_pydict() == {"n": [1]}
    assert store.table("t").schema(as_of=0).names == ["n"]
    assert store.table("t").schema() == store.read("t").schema != store.table("t").schema(as_of=0)


def test_create(store: drumlin.Store) -> None:
    version = store.table("t").create({"n": pa.int64(), "s": pa.string()}, sort=["n"])
    assert (version.version, version.kind, version.rows) == (0, "create", 0)
    assert store.read("t").to_arrow().schema == pa.schema([("n", pa.int64()), ("s", pa.string())])
    store.table("copy").create(store.table("t").schema())
    assert store.table("copy").schema() == store.table("t").schema()
    with pytest.raises(drumlin.AlreadyExists, match="'t' already holds a table"):
        store.table("t").create(store.table("t").schema())
    with pytest.raises(TypeError, match="expected a schema .*, got a str"):
        store.table("other").create("n int")  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument):
        store.table("other").create({"n": "no such type"})


def test_a_table_handle_is_the_store_at_a_path(store: drumlin.Store) -> None:
    table = store.table("a/t")
    assert repr(table) == "Table('a/t' in Store('memory://'))"
    assert (table.path, table.exists()) == ("a/t", False)
    table.create({"n": pa.int64()}, sort=["n"])
    table.append({"n": [2, 1]})
    table.replace({"n": [2]})
    table.write({"n": [1, 2, 3]})
    table.delete("n = 3")
    assert ns(table.read()) == [1, 2]
    assert table.exists()
    assert [v.kind for v in table.versions()] == ["create", "append", "replace", "write", "delete"]
    assert table.schema().names == ["n"]
    stat = table.stat()
    assert (stat.rows, stat.stored_rows, stat.versions, stat.columns, stat.sort) == (2, 6, 5, 1, ["n"])
    assert table.drop().paths == ["a/t"]
    assert not table.exists()
    assert table.drop(missing_ok=True).paths == []


def test_batches_and_schemas_show_themselves(filled: drumlin.Store) -> None:
    result = filled.read("t", columns=["n", "s"])
    assert repr(result).splitlines()[:3] == ["Result('t', n: int64, s: string)", "  n  s", "  0  s0"]
    assert repr(result.schema) == "Schema(n: int64, s: string)"
    assert pa.schema(result) == pa.schema([("n", pa.int64()), ("s", pa.string())])
    assert len(result.schema) == 2
    assert [batch.num_rows for batch in result] == [400, 100, 500]


def test_one_thread_is_enough(folder: str) -> None:
    with drumlin.open(folder, cpu_threads=1, memory_bytes=1 << 20, cache_bytes=0) as store:
        store.write("t", pa.table({"n": range(500_000)}), sort=["n"])
        store.write("copy", store.read("t", where="n % 2 = 0"))
        store.table("copy").delete("n % 3 = 0")
        store.checkpoint()
        assert store.verify().ok
        assert ns(store.read("copy")) == [n for n in range(0, 500_000, 2) if n % 3]
