"""The package without its extras."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest

import drumlin

BLOCKER = """
    import sys

    class Without:
        def __init__(self, finder):
            self.finder = finder

        def find_spec(self, name, path=None, target=None):
            blocked = name.partition(".")[0] in {blocked!r}
            return None if blocked else self.finder.find_spec(name, path, target)

    sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
    import drumlin
"""


def run(blocked: set[str], program: str) -> None:
    source = textwrap.dedent(BLOCKER).format(blocked=blocked) + textwrap.dedent(program)
    result = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr


def test_nothing_is_imported_before_it_is_needed() -> None:
    program = """
        for name in ("pyarrow", "pandas", "polars", "duckdb", "numpy"):
            assert name not in sys.modules, name
        store = drumlin.open("memory://")
        store.tree.put("a", 1)
        assert store.tree.get("a") == 1
        assert "pyarrow" not in sys.modules
    """
    run(set(), program)


def test_polars_without_pyarrow() -> None:
    program = """
        import datetime as dt
        import polars as pl
        from polars.testing import assert_frame_equal
        store = drumlin.open("memory://")
        frame = pl.DataFrame({"n": [1, 2, 3], "s": ["a", "b", None], "t": [dt.datetime(2020, 1, 1)] * 3})
        store.write("t", frame)
        store.append("t", frame.lazy())
        assert_frame_equal(store.read("t", where="n > 1", limit=2).to_polars(), frame.slice(1))
        [first, second] = store.read("t")
        assert first.num_rows == 3 and len(second) == 3
        assert_frame_equal(pl.DataFrame(first), frame)
        assert repr(first) == "Batch(3 rows, 3 columns)"
        store.write("columns", {"n": [1, 2]})
        assert store.read("columns").to_polars()["n"].to_list() == [1, 2]
        store.table("made").create(store.table("t").schema())
        assert store.table("made").schema().names == ["n", "s", "t"]
        store.table("typed").create({"n": int, "s": "numeric(10, 2)"})
        assert store.table("typed").schema().types == ["int64", "decimal128(10, 2)"]
        for call, message in (
            (store.read("t").to_arrow, "to_arrow() needs pyarrow: pip install 'drumlin[pyarrow]'"),
            (store.read("t").to_pandas, "to_pandas() needs pyarrow: pip install 'drumlin[pandas]'"),
            (lambda: store.write("x", pl.DataFrame({"n": [None]})), "Null ('n') needs pyarrow"),
        ):
            try:
                call()
            except ImportError as error:
                assert message in str(error), error
            else:
                raise AssertionError(message)
    """
    run({"pyarrow", "pandas"}, program)


def test_nothing_at_all() -> None:
    program = """
        store = drumlin.open("memory://")
        for call, message in (
            (lambda: store.write("t", {"n": [[1]]}), "a dict of columns of such values needs pyarrow: pip install"),
            (lambda: store.write("t", [{"n": 1j}]), "a list of dicts of such values needs pyarrow"),
        ):
            try:
                call()
            except ImportError as error:
                assert message in str(error), error
            else:
                raise AssertionError(message)
        try:
            store.read("t")
        except drumlin.NotFound:
            pass
        import datetime

        now = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
        rows = [
            {"n": 1, "x": 1.5, "s": "a", "b": b"b", "t": True, "day": now.date(), "at": now, "none": None},
            {"n": None, "x": 2, "s": None, "b": None, "t": None, "day": None, "at": None, "none": None},
        ]
        store.write("plain", rows)
        store.append("plain", {name: [row[name] for row in rows] for name in rows[0]})
        assert store.read("plain").to_dicts() == rows + rows, store.read("plain").to_dicts()
        assert store.scan("plain").to_dicts() == rows + rows
        assert store.read("plain").schema.types[:3] == ["int64", "double", "string"]
        store.drop("plain")
        store.tree.put("a", {"b": [1]})
        assert [node.path for node in store.tree.list()] == ["a"]
    """
    run({"pyarrow", "pandas", "polars", "duckdb", "numpy"}, program)


def test_rows_by_key_need_nothing(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.table("t").create({"id": pa.int32(), "day": pa.date32(), "s": pa.string()}, key=["id", "day"])
    program = f"""
        import datetime as dt
        day = dt.date(2026, 1, 2)
        store = drumlin.open({folder!r})
        table = store.table("t")
        assert table.upsert([{{"id": 1, "day": day, "s": "a"}}, {{"id": 2, "day": day, "s": "b"}}]).rows == 2
        assert table.insert({{"id": [3], "day": [day], "s": [None]}}).rows == 1
        assert table.get((2, day)) == {{"id": 2, "day": day, "s": "b"}}
        assert table.get_many([(3, day), (4, day)]).found.to_pylist() == [True, False]
        assert table.delete_keys([(1, day)]).rows == 1
        with store.transaction() as tx:
            tx.table("t").upsert({{"id": 5, "day": day, "s": "x"}})
            assert tx.table("t").get((5, day))["s"] == "x"
        assert table.stat().rows == 3
    """
    run({"pyarrow", "pandas", "polars", "duckdb", "numpy"}, program)
    program = f"""
        import polars as pl
        import datetime as dt
        day = dt.date(2026, 1, 2)
        store = drumlin.open({folder!r})
        ids = pl.Series([5, 1], dtype=pl.Int32)
        store.table("t").upsert({{"id": ids, "day": [day, day], "s": ["y", "z"]}})
        keys = pl.DataFrame({{"id": [1, 9], "day": [day, day]}})
        assert store.table("t").get_many(keys).rows.to_polars()["s"].to_list() == ["z", None]
        import numpy as np
        assert store.table("t").get_many({{"id": np.array([5]), "day": [day]}}).found.to_pylist() == [True]
    """
    run({"pyarrow", "pandas"}, program)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_arrow_alone(name: str, tmp_path: Path) -> None:
    program = f"""
        import pyarrow as pa
        store = drumlin.open({str(tmp_path / "store")!r})
        store.write("t", pa.table({{"n": [1, 2]}}))
        assert store.read("t").to_arrow().to_pydict() == {{"n": [1, 2]}}
        try:
            store.read("t").to_{name}()
        except ImportError as error:
            assert "to_{name}() needs {name}: pip install 'drumlin[{name}]'" in str(error), error
        else:
            raise AssertionError
    """
    run({name}, program)
