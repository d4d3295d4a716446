"""Delta Lake and Lance in, with their history; Delta Lake and Iceberg out, read by their own readers."""

import datetime as dt
import decimal
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from other_systems import need

import drumlin
from drumlin.migrate import from_delta, from_lance, to_delta, to_iceberg

deltalake = need("deltalake")
lance = need("lance")
iceberg = need("pyiceberg.table")


def rows(*numbers: int, **more: Any) -> pa.Table:
    return pa.table({"p": [f"k{n % 2}" for n in numbers], "n": pa.array(numbers, pa.int64()), **more})


def same_rows(here: pa.Table, there: pa.Table) -> None:
    """The same rows, columns and types, in any order: Delta promises none."""
    assert here.schema.equals(there.schema)
    keys = [(name, "ascending") for name in here.column_names]
    assert here.sort_by(keys).equals(there.sort_by(keys))


def delta_steps(uri: str, rng: random.Random, count: int) -> None:
    """A history of every kind of commit."""
    deltalake.write_deltalake(uri, rows(1, 2, 3), partition_by=["p"])
    for at in range(count):
        table = deltalake.DeltaTable(uri)
        kind = rng.choice(["append", "append", "delete", "update", "optimize", "overwrite", "evolve", "checkpoint"])
        match kind:
            case "append":
                some = rows(*rng.sample(range(100), 3))
                deltalake.write_deltalake(uri, some, mode="append", schema_mode="merge")
            case "delete":
                table.delete(f"n % 3 = {at % 3}")
            case "update":
                table.update(updates={"n": "n + 100"}, predicate="p = 'k1'")
            case "optimize":
                table.optimize.compact()
            case "overwrite":
                deltalake.write_deltalake(uri, rows(at, at + 1), mode="overwrite", schema_mode="overwrite")
            case "evolve":
                some = rows(at, **{f"x{at}": pa.array([at / 2])})
                deltalake.write_deltalake(uri, some, mode="append", schema_mode="merge")
            case "checkpoint":
                table.create_checkpoint()


@pytest.mark.parametrize("seed", range(4))
def test_each_version_of_a_delta_table_is_one_here(seed: int, tmp_path: Path, store: drumlin.Store) -> None:
    uri = str(tmp_path / "lake")
    delta_steps(uri, random.Random(seed), 12)
    # As if it had been interrupted after some versions.
    middle = deltalake.DeltaTable(uri, version=4)
    assert from_delta(middle, store, "t").versions == 5
    newest = deltalake.DeltaTable(uri)
    report = from_delta(uri, store, "t")
    assert (report.versions, report.skipped, report.failures, report.notes) == (newest.version() - 4, 5, [], [])
    versions = store.table("t").versions()
    history = sorted(newest.history(), key=lambda commit: commit["version"])
    assert len(versions) == len(history) == newest.version() + 1
    for version, commit in zip(versions, history, strict=True):
        there = deltalake.DeltaTable(uri, version=commit["version"])
        same_rows(store.read("t", as_of=version.version).to_arrow(), there.to_pyarrow_table())
        assert version.metadata["delta"]["operation"] == commit["operation"]
        moment = dt.datetime.fromtimestamp(commit["timestamp"] / 1000, dt.UTC)
        assert moment.isoformat() in version.message
        assert f'"version": {commit["version"]}' in version.message
    assert from_delta(uri, store, "t").versions == 0
    assert store.verify(deep=True).ok


def test_versions_that_only_add_are_appended(tmp_path: Path, store: drumlin.Store) -> None:
    uri = str(tmp_path / "lake")
    for n in range(3):
        deltalake.write_deltalake(uri, rows(n), mode="append")
    deltalake.DeltaTable(uri).delete("n = 1")
    deltalake.write_deltalake(uri, rows(7), mode="append")
    from_delta(uri, store, "t")
    kinds = [version.kind for version in store.table("t").versions()]
    assert kinds == ["write", "append", "append", "write", "append"]


def test_what_delta_has_cleaned_up_is_noted(tmp_path: Path, store: drumlin.Store) -> None:
    uri = str(tmp_path / "lake")
    deltalake.write_deltalake(uri, rows(1, 2))
    deltalake.write_deltalake(uri, rows(3), mode="overwrite")
    table = deltalake.DeltaTable(uri)
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    for _ in range(2):
        report = from_delta(uri, store, "t")
        assert report.ok
        assert report.notes == ["t version 0: its files are no longer in the source"]
    assert store.read("t", as_of=0).to_arrow().to_pydict() == rows(3).to_pydict()
    only = from_delta(uri, store, "newest", versions=False)
    assert (only.versions, len(store.table("newest").versions())) == (1, 1)
    # The newest cannot be missing.
    for file in (tmp_path / "lake").glob("*.parquet"):
        file.unlink()
    [failure] = from_delta(uri, store, "lost", versions=False).failures
    assert (failure.name, "not found" in failure.reason) == ("lost", True)
    assert not store.table("lost").exists()


def test_columns_with_other_names_in_files_are_refused(tmp_path: Path, store: drumlin.Store) -> None:
    uri = tmp_path / "lake"
    deltalake.write_deltalake(str(uri), rows(1, 2))
    [log] = (uri / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
            schema = json.loads(action["metaData"]["schemaString"])
            for at, field in enumerate(schema["fields"]):
                field["metadata"] = {"delta.columnMapping.id": at, "delta.columnMapping.physicalName": f"c{at}"}
            action["metaData"]["schemaString"] = json.dumps(schema)
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    [failure] = from_delta(str(uri), store, "t").failures
    assert "columnMapping" in failure.reason
    assert store.tables() == []


def test_another_delta_table_is_distinguished(tmp_path: Path, store: drumlin.Store) -> None:
    for name in ("a", "b"):
        deltalake.write_deltalake(str(tmp_path / name), rows(1))
    from_delta(str(tmp_path / "a"), store, "t")
    with pytest.raises(drumlin.AlreadyExists, match="take another prefix or path"):
        from_delta(str(tmp_path / "b"), store, "t")
    store.write("mine", {"n": [1]})
    with pytest.raises(drumlin.AlreadyExists, match="no migration made it"):
        from_delta(str(tmp_path / "a"), store, "mine")


@pytest.mark.parametrize("seed", range(4))
def test_each_version_of_a_lance_data_set_is_one_here(seed: int, tmp_path: Path, store: drumlin.Store) -> None:
    rng, uri = random.Random(seed), str(tmp_path / "set.lance")

    def vectors(*numbers: int) -> pa.Table:
        items = pa.array([float(n) for n in numbers for _ in range(2)], pa.float32())
        return rows(*numbers, v=pa.FixedSizeListArray.from_arrays(items, 2))

    lance.write_dataset(vectors(1, 2, 3), uri)
    for at in range(10):
        data = lance.dataset(uri)
        match rng.choice(["append", "append", "delete", "columns", "update", "overwrite", "compact"]):
            case "append":
                fields = [name for name in data.schema.names if name.startswith("x")]
                more = {name: pa.array([at], data.schema.field(name).type) for name in fields}
                one = vectors(at)
                for name, column in more.items():
                    one = one.append_column(name, column)
                lance.write_dataset(one.select(data.schema.names), uri, mode="append")
            case "delete":
                data.delete(f"n % 4 = {at % 4}")
            case "columns":
                data.add_columns({f"x{at}": f"n * {at}"})
            case "update":
                data.update({"n": "n + 50"}, where="p = 'k1'")
            case "overwrite":
                lance.write_dataset(vectors(at, at + 1), uri, mode="overwrite")
            case "compact":
                data.optimize.compact_files()
    data = lance.dataset(uri)
    assert from_lance(lance.dataset(uri, version=3), store, "t").versions == 3
    report = from_lance(uri, store, "t")
    assert (report.versions, report.skipped, report.failures) == (len(data.versions()) - 3, 3, [])
    for version, there in zip(store.table("t").versions(), data.versions(), strict=True):
        expected = lance.dataset(uri, version=there["version"]).to_table()
        found = store.read("t", as_of=version.version).to_arrow()
        assert found.schema.equals(expected.schema)
        assert found.equals(expected)
        assert version.metadata["lance"]["version"] == there["version"]
    assert from_lance(uri, store, "t").versions == 0


ZONE = "Europe/Berlin"
MOMENT = dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.UTC)
KINDS = pa.table(
    {
        "i8": pa.array([1, None, -128], pa.int8()),
        "i64": pa.array([2**63 - 1, None, -(2**63)], pa.int64()),
        "u8": pa.array([255, None, 0], pa.uint8()),
        "u64": pa.array([2**64 - 1, None, 0], pa.uint64()),
        "f32": pa.array([1.5, None, float("inf")], pa.float32()),
        "f64": pa.array([-0.0, None, 2.5], pa.float64()),
        "b": pa.array([True, None, False]),
        "s": pa.array(["日本", None, ""], pa.large_string()),
        "view": pa.array(["a text of some length", None, ""], pa.string_view()),
        "word": pa.array(["a", None, "b"]).dictionary_encode(),
        "bytes": pa.array([b"\0\xff", None, b""], pa.binary()),
        "fixed": pa.array([b"ab", None, b"zz"], pa.binary(2)),
        "day": pa.array([dt.date(2024, 1, 1), None, dt.date(1900, 1, 1)]),
        "naive": pa.array([dt.datetime(2024, 1, 1, 1, 2, 3, 4), None, dt.datetime(1960, 1, 1)], pa.timestamp("us")),
        "nano": pa.array([1_000, None, -5_000], pa.timestamp("ns")),
        "zoned": pa.array([MOMENT, None, MOMENT], pa.timestamp("ms", ZONE)),
        "money": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], pa.decimal128(20, 2)),
        "list": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}]),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    }
)


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as values of Python: numbers are equal whatever their width is, and times in every zone."""

    def value(kind: pa.DataType, item: Any) -> Any:
        if item is None:
            return None
        if pa.types.is_timestamp(kind):
            # Nanoseconds come as pandas Timestamps.
            return dt.datetime.fromisoformat(item.isoformat()[:26]) if item.tzinfo is None else item.astimezone(dt.UTC)
        return item

    kinds = {field.name: field.type for field in table.schema}
    return [{name: value(kinds[name], item) for name, item in row.items()} for row in table.to_pylist()]


def read_delta(folder: Path) -> pa.Table:
    return deltalake.DeltaTable(str(folder)).to_pyarrow_table()


def read_iceberg(folder: Path) -> pa.Table:
    return iceberg.StaticTable.from_metadata(str(folder)).scan().to_arrow()


OUT = [(to_delta, read_delta), (to_iceberg, read_iceberg)]


@pytest.mark.parametrize(("export", "read"), OUT)
def test_standard_readers_read_equal_rows(export: Any, read: Any, tmp_path: Path, store: drumlin.Store) -> None:
    store.write("a/kinds", KINDS)
    store.write("a/empty", KINDS.slice(0, 0))
    big = pa.table({"n": pa.array(range(300_000)), "s": pa.array([str(n) for n in range(300_000)])})
    store.write("a/big", big.slice(0, 200_000))
    store.append("a/big", big.slice(200_000))
    report = export(store, "a/*", tmp_path)
    assert (report.failures, report.symbols, report.rows) == ([], 3, 300_003)
    assert plain(read(tmp_path / "a" / "kinds")) == plain(KINDS)
    assert read(tmp_path / "a" / "empty").num_rows == 0
    assert read(tmp_path / "a" / "empty").column_names == KINDS.column_names
    found = read(tmp_path / "a" / "big").sort_by("n")
    assert found["n"].to_pylist() == list(range(300_000))
    assert found["s"].to_pylist() == big["s"].to_pylist()


@pytest.mark.parametrize(("export", "read"), OUT)
def test_an_export_is_replaced_only_if_asked(export: Any, read: Any, tmp_path: Path, store: drumlin.Store) -> None:
    store.write("t", {"n": [1]})
    store.snapshot("eod")
    export(store, "t", tmp_path)
    store.write("t", {"n": [2, 3], "x": ["a", "b"]})
    store.write("u", {"n": [1]})
    with pytest.raises(drumlin.AlreadyExists, match="replace"):
        export(store, "*", tmp_path)
    assert read(tmp_path / "t").to_pydict() == {"n": [1]}
    assert not (tmp_path / "u").exists()
    assert export(store, "*", tmp_path, replace=True).symbols == 2
    assert read(tmp_path / "t").to_pydict() == {"n": [2, 3], "x": ["a", "b"]}
    assert export(store, "t", tmp_path, replace=True, as_of="eod").ok
    assert read(tmp_path / "t").to_pydict() == {"n": [1]}


@pytest.mark.parametrize(("export", "read"), OUT)
def test_what_the_format_has_not_is_named(export: Any, read: Any, tmp_path: Path, store: drumlin.Store) -> None:
    store.write("good", {"n": [1]})
    store.write("nanos", pa.table({"t": pa.array([1], pa.timestamp("ns"))}))
    store.write("spans", pa.table({"d": pa.array([1], pa.duration("us"))}))
    store.write("inner", pa.table({"s": pa.array([{"d": None}], pa.struct({"d": pa.duration("us")}))}))
    report = export(store, "*", tmp_path)
    wrong = {failure.name: failure.reason for failure in report.failures}
    assert sorted(wrong) == ["inner", "nanos", "spans"]
    assert "'d'" in wrong["spans"]
    assert "'s.d'" in wrong["inner"]
    assert "timestamp[us] does not hold" in wrong["nanos"]
    assert read(tmp_path / "good").to_pydict() == {"n": [1]}
    # What failed is no table, and can be done again.
    store.write("nanos", pa.table({"t": pa.array([1000], pa.timestamp("ns"))}))
    assert export(store, "nanos", tmp_path).ok
    assert read(tmp_path / "nanos").num_rows == 1
    store.write("good/below", {"n": [1]})
    with pytest.raises(drumlin.InvalidArgument, match="within the folder of 'good'"):
        export(store, "**", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_partitions_of_a_delta_table(tmp_path: Path, store: drumlin.Store) -> None:
    store.write("t", rows(1, 2, 3, 4))
    to_delta(store, "t", tmp_path, partition_by=["p"])
    table = deltalake.DeltaTable(str(tmp_path / "t"))
    assert table.metadata().partition_columns == ["p"]
    same_rows(table.to_pyarrow_table().select(["p", "n"]), rows(1, 2, 3, 4))


def test_there_and_back(tmp_path: Path, store: drumlin.Store) -> None:
    store.write("t", rows(1, 2, 3))
    to_delta(store, "t", tmp_path)
    from_delta(str(tmp_path / "t"), store, "back")
    assert store.read("back").to_arrow().equals(rows(1, 2, 3))
