"""Arrow data of other libraries: slices mean the same as there, and what breaks the rules is an error."""

import datetime as dt
import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from doors import command

import drumlin

CATEGORIES = [f"c{i:03d}" for i in range(200)]

NESTED: dict[str, list[Any]] = {
    "struct in struct": [{"i": {"x": k}} for k in range(10)],
    "three structs": [{"a": {"b": {"x": k}}} for k in range(10)],
    "list in struct": [{"i": [k, k]} for k in range(10)],
    "struct in list": [[{"i": k}, {"i": None}] for k in range(10)],
    "structs in list": [[{"i": {"x": str(k)}}] for k in range(10)],
    "text in struct": [{"i": str(k)} if k % 3 else None for k in range(10)],
}


def fixed(rows: list[Any]) -> pa.Array:
    return pa.array(rows, pa.list_(pa.struct([("x", pa.int64())]), 1))


@pytest.mark.parametrize("first", [0, 1, 4, 6, 9])
@pytest.mark.parametrize("kind", [*NESTED, "fixed list of structs"])
def test_slices_of_nested_columns_are_the_rows_they_mean(store: drumlin.Store, kind: str, first: int) -> None:
    array = fixed([[{"x": k}] for k in range(10)]) if kind not in NESTED else pa.array(NESTED[kind])
    whole = pa.table({"id": range(10), "c": array})
    cut = whole.slice(first, 4)
    schema = whole.schema
    doors: list[Callable[[], object]] = [
        lambda: store.write("t", cut),
        lambda: store.write("t", cut.to_batches()[0]),
        lambda: store.write("t", pa.RecordBatchReader.from_batches(schema, cut.to_batches(max_chunksize=2))),
        lambda: (store.write("t", whole.slice(0, 0)), store.append("t", cut)),
        lambda: (store.drop("t"), store.write("t", cut.slice(0, 0), sort=["id"]), store.replace("t", cut)),
        lambda: (store.drop("t"), store.table("t").create(schema, key=["id"]), store.table("t").upsert(cut)),
    ]
    for door in doors:
        door()
        assert store.read("t").to_arrow().to_pylist() == cut.to_pylist()


def test_polars_slices_and_nested_enums(store: drumlin.Store) -> None:
    def frame(first: int) -> pl.DataFrame:
        schema = {"id": pl.Int64, "e": pl.List(pl.Enum(CATEGORIES)), "s": pl.Struct({"x": pl.Struct({"y": pl.Int64})})}
        rows = [{"id": first + k, "e": [c], "s": {"x": {"y": k}}} for k, c in enumerate(CATEGORIES)]
        return pl.DataFrame(rows, schema=schema)

    store.write("sorted", frame(0).slice(50), sort=["id"])
    store.append("sorted", frame(100))
    store.table("keyed").create(pa.table(frame(0)).schema, key=["id"])
    store.append("keyed", frame(0))
    store.table("keyed").upsert(frame(100))
    for _ in range(2):
        assert store.read("sorted").to_polars().height == 350
        assert store.read("keyed").to_polars()["s"].struct[0].struct[0].to_list()[99:101] == [99, 0]
        assert store.table("keyed").get_many([0, 299]).rows.to_polars()["e"].to_list() == [["c000"], ["c199"]]
        assert store.checkpoint().failures == []
    store.write("chunks", pl.concat([frame(0), frame(200)], rechunk=False))
    assert store.read("chunks").to_polars().height == 400


def hostile(how: str) -> pa.Array:
    offsets = np.array([0, 3, 6, 9], dtype=np.int32)
    data = np.frombuffer(bytearray(b"abcdefghi"), dtype=np.uint8).copy()
    array = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    if how == "far":
        offsets[2] = 1 << 30
    elif how == "back":
        offsets[2] = 1
    else:
        data[3:6] = [0xFF, 0xFE, 0xFD]
    return array


# faults: hostile arrays x write, upsert, look-up
@pytest.mark.parametrize("how", ["far", "back", "no text"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_malformed_text_is_refused_by_every_door(store: drumlin.Store, how: str, kind: pa.DataType) -> None:
    rows = pa.table({"k": hostile(how), "n": [1, 2, 3]})
    schema = pa.schema([("k", kind), ("n", pa.int64())])
    store.table("plain").create(schema)
    store.table("sorted").create(schema, sort=["k"])
    store.table("keyed").create(schema, key=["k"])
    store.table("keyed").upsert({"k": ["a"], "n": [1]})
    calls: list[Callable[[], object]] = [
        lambda: store.write("new", rows),
        lambda: store.append("plain", rows),
        lambda: store.replace("sorted", rows),
        lambda: store.table("keyed").upsert(rows),
        lambda: store.table("keyed").upsert({"k": rows["k"], "n": [1, 2, 3]}),
        lambda: store.table("keyed").delete_keys(rows),
        lambda: store.table("keyed").get_many(rows),
        lambda: store.table("keyed").get_many(rows["k"]),
    ]
    for call in calls:
        with pytest.raises(drumlin.InvalidArgument, match="malformed"):
            call()


def test_decimals_beyond_their_digits_are_refused(store: drumlin.Store) -> None:
    raw = b"".join(v.to_bytes(16, "little", signed=True) for v in [1, 10**12, 5])
    bad = pa.Array.from_buffers(pa.decimal128(9, 2), 3, [None, pa.py_buffer(raw)])
    rows = pa.table({"d": bad, "i": [1, 2, 3]})
    store.table("keyed").create(rows.schema, key=["d"])
    for call in (lambda: store.write("t", rows), lambda: store.table("keyed").upsert(rows)):
        with pytest.raises(drumlin.InvalidArgument, match=r"column 'd': 10000000000.00 in row 1"):
            call()


@pytest.mark.parametrize(("digits", "scale"), [(11, 5), (1, 0), (38, 2)])
def test_filters_on_decimals_of_256_bits(store: drumlin.Store, digits: int, scale: int) -> None:
    values = pa.array([Decimal(1), None, Decimal(2)], pa.decimal256(digits, scale))
    store.write("t", pa.table({"id": [1, 2, 3], "d": values}))
    for where, expected in [("d is null", [2]), ("d = 1", [1]), ("d > 1.5", [3]), ("d + 1 > 2", [3])]:
        assert store.read("t", where=where).to_arrow()["id"].to_pylist() == expected
    assert store.table("t").delete("d is null").rows == 1


def test_extension_types(store: drumlin.Store) -> None:
    storage = pa.array(['{"a": 1}', None] * 200)
    rows = pa.table({"j": pa.ExtensionArray.from_storage(pa.json_(), storage)})
    store.write("j", rows)
    assert store.read("j").to_arrow().equals(rows)
    assert pa.table(store.read("j", native=True)).equals(rows)

    class Pickled(pa.ExtensionType):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(pa.int32(), "drumlin.test")

        def __arrow_ext_serialize__(self) -> bytes:
            return b"\xff\x00"

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> "Pickled":
            return cls()

    pickled = pa.table({"c": pa.ExtensionArray.from_storage(Pickled(), pa.array([1], pa.int32()))})
    with pytest.raises(drumlin.InvalidArgument, match="'c'.*not UTF-8"):
        store.write("t", pickled)
    with pytest.raises(drumlin.InvalidArgument, match="'c'.*not UTF-8"):
        store.table("t").create(pickled.schema)
    with pytest.raises(drumlin.InvalidArgument, match="not UTF-8.*pickle"):
        store.write("t", pa.table({"c": [1]}).replace_schema_metadata({b"pickle": b"\x80\x04\xff"}))


def test_binary_without_bytes_is_refused(store: drumlin.Store) -> None:
    rows = pa.table({"id": [1], "b": pa.array([b""], pa.binary(0))})
    with pytest.raises(drumlin.InvalidArgument, match="'t'.*'b'"):
        store.write("t", rows)


def test_units_and_floats_are_taken_where_exact(store: drumlin.Store) -> None:
    stamps = pa.array([1_000, 2_001], pa.timestamp("ms"))
    store.table("t").create(pa.schema([("s", pa.timestamp("s")), ("f", pa.float64())]))
    store.append("t", pa.table({"s": stamps.slice(0, 1), "f": [1 << 53]}))
    with pytest.raises(drumlin.SchemaMismatch, match=r"'t': column 's'.*02.001.* in row 1"):
        store.append("t", pa.table({"s": stamps, "f": [1, 2]}))
    with pytest.raises(drumlin.SchemaMismatch, match=r"9007199254740993 in row 0"):
        store.append("t", pa.table({"s": stamps.slice(0, 1), "f": [(1 << 53) + 1]}))


def test_a_key_of_a_type_that_cannot_be_one_names_those_that_can(store: drumlin.Store) -> None:
    schema = pa.schema([("f", pa.float64())])
    with pytest.raises(drumlin.InvalidArgument, match="'t'.*'f'.*integers.*strings"):
        store.table("t").create(schema, key=["f"])
    with pytest.raises(drumlin.InvalidArgument, match="'t'.*'f'.*integers.*strings"):
        store.table("t").create(schema, sort=["f"])


def test_verify_deep(store: drumlin.Store) -> None:
    store.write("t", {"n": list(range(1000)), "s": [f"text {n}" for n in range(1000)]})
    assert store.verify(deep=True).ok
    assert store.verify().row_groups == store.verify(deep=True).row_groups == 1


def extended(kind: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


def doors_for(store: drumlin.Store, rows: pa.Table, column: str) -> list[Callable[[], object]]:
    """Calls with ``rows``, whose ``column`` must be refused."""
    of_key: list[Callable[[], object]] = [
        lambda: store.table("k").get_many(rows),
        lambda: store.table("k").delete_keys(rows),
    ]
    return [
        lambda: store.append("t", rows),
        lambda: store.append_many({"t": rows}),
        lambda: store.replace("s", rows),
        lambda: store.table("k").upsert(rows),
        lambda: store.table("k").insert(rows),
        lambda: store.table("k").upsert({name: rows[name] for name in rows.column_names}),
        lambda: store.transaction().append("t", rows),
        lambda: store.transaction().append_many({"t": rows}),
        lambda: store.transaction().table("k").upsert(rows),
        *(of_key if column == "j" else []),
    ]


def test_another_extension_type_is_refused_by_every_door(folder: str, tmp_path: Path) -> None:
    ids = [bytes([n]) * 16 for n in range(3)]
    schema = pa.schema([("u", pa.uuid()), ("j", pa.json_()), ("plain", pa.string())])
    good = pa.table([extended(pa.uuid(), ids), extended(pa.json_(), ["{}", "[]", "1"]), ["x"] * 3], schema=schema)
    text = extended(pa.opaque(pa.string(), "text", "vendor"), ["x"] * 3)
    bad = {
        "j": (
            good.set_column(1, "j", text),
            r"'j': the table has extension type 'arrow.json' stored as string, the data has .*'arrow.opaque'",
        ),
        "u": (
            good.set_column(0, "u", extended(pa.opaque(pa.binary(16), "id", "vendor"), ids)),
            r"'u': the table has extension type 'arrow.uuid' .*, the data has .*'arrow.opaque'",
        ),
        "plain": (
            good.set_column(2, "plain", extended(pa.json_(), ["{}"] * 3)),
            r"'plain': the table has type string, the data has extension type 'arrow.json' stored as string",
        ),
    }
    with drumlin.open(folder) as store:
        store.write("t", good)
        store.table("k").create(schema, key=["j"])
        store.table("s").create(schema, sort=["plain"])
        store.table("k").upsert(good)
        for column, (rows, told) in bad.items():
            for door in doors_for(store, rows, column):
                with pytest.raises(drumlin.SchemaMismatch, match=told):
                    door()
        # Plain values get the meaning of the column; so do Python values.
        plain = pa.table(
            {name: good[name].combine_chunks().storage if name != "plain" else good[name] for name in "uj"}
            | {"plain": ["y"] * 3}
        )
        store.append("t", plain)
        store.append("t", good)
        store.table("k").upsert(plain)
        store.table("k").upsert({"u": ids[0], "j": "[]", "plain": "z"})
        assert store.read("t").to_arrow().schema.equals(schema)
        assert store.read("t").to_arrow().num_rows == 9
        assert store.table("k").get("[]") == {"u": uuid.UUID(bytes=ids[0]), "j": "[]", "plain": "z"}
        assert store.table("k").get_many(good).found.to_pylist() == [True] * 3
    program = "import sys; from drumlin._cli import main; sys.exit(main())"
    for name, rows in (("good", good), ("bad", bad["j"][0])):
        with pa.OSFile(str(tmp_path / f"{name}.arrow"), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
        command = [
            sys.executable,
            "-c",
            program,
            "import",
            folder,
            str(tmp_path / f"{name}.arrow"),
            "--table",
            "t",
            "--append",
        ]
        imported = subprocess.run(command, capture_output=True, text=True, check=False)
        assert imported.returncode == (name == "bad"), imported.stderr
        assert name == "good" or "'arrow.opaque'" in imported.stderr


def test_extension_types_within_others(store: drumlin.Store) -> None:
    def rows(kind: pa.DataType) -> pa.Table:
        values = extended(kind, ["{}", "[]"])
        field = pa.field("x", kind)
        listed = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), values)
        return pa.table({"l": listed, "s": pa.StructArray.from_arrays([values], fields=[field])})

    other = rows(pa.opaque(pa.string(), "text", "vendor"))
    store.write("t", rows(pa.json_()))
    store.append("t", rows(pa.json_()))
    for column in ("l", "s"):
        with pytest.raises(drumlin.SchemaMismatch, match=f"'{column}'.*arrow.json.*arrow.opaque"):
            store.append("t", rows(pa.json_()).set_column(0 if column == "l" else 1, column, other[column]))


def test_decimals_of_another_scale_are_taken_where_exact(store: drumlin.Store) -> None:
    store.write("t", pd.DataFrame({"d": [Decimal("1.250"), Decimal("1000")]}))
    store.append("t", pd.DataFrame({"d": [Decimal(7)]}))
    store.append("t", pa.table({"d": pa.array([Decimal("1.50000")], pa.decimal128(12, 5))}))
    told = r"'d'.*1\.23456 in row 0"
    with pytest.raises(drumlin.SchemaMismatch, match=told):
        store.append("t", pa.table({"d": pa.array([Decimal("1.23456")], pa.decimal128(12, 5))}))
    assert store.read("t").to_pandas()["d"].tolist() == [Decimal("1.250"), Decimal(1000), Decimal(7), Decimal("1.5")]


def test_dictionaries_of_old_parquet_times_are_times(tmp_path: Path) -> None:
    """Such as pyarrow writes for Spark: Arrow's reader panics if they are to be dictionaries."""
    times = pa.array([dt.datetime(2024, 1, 1), None, dt.datetime(2024, 1, 1)], pa.timestamp("ns"))
    words = pa.array(["a", None, "a"]).dictionary_encode()
    columns = {"at": times.dictionary_encode(), "in": pa.StructArray.from_arrays([times], ["at"]), "word": words}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    folder = str(tmp_path / "s")
    command("import", folder, str(tmp_path / "t.parquet"))
    with drumlin.open(folder) as store:
        rows = store.read("t").to_arrow()
    assert rows.schema.field("at").type == pa.timestamp("ns")
    assert rows["at"].combine_chunks() == times
    assert rows["in"].combine_chunks().field(0) == times
    assert rows["word"].to_pylist() == ["a", None, "a"]


@pytest.mark.parametrize("kind", [pa.decimal128(5, -2), pa.decimal256(50, -2)])
def test_decimals_of_a_negative_scale_are_json(tmp_path: Path, kind: pa.DataType) -> None:
    values = [Decimal(12300), Decimal(-100), None, Decimal(0)]
    with drumlin.open(str(tmp_path / "s")) as store:
        store.write("t", pa.table({"d": pa.array(values, kind)}))
    command("export", str(tmp_path / "s"), "t", str(tmp_path / "t.json"))
    lines = (tmp_path / "t.json").read_text().splitlines()
    assert [json.loads(line)["d"] for line in lines] == [12300, -100, None, 0]
