"""Every type comes back unchanged, through every entry and exit."""

import datetime as dt
import decimal
import struct
import uuid

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import drumlin
from drumlin import col

INF, NAN = float("inf"), float("nan")

ARROW = {
    "int8": pa.array([-128, 0, 127, None], pa.int8()),
    "int16": pa.array([-(2**15), 0, 2**15 - 1, None], pa.int16()),
    "int32": pa.array([-(2**31), 0, 2**31 - 1, None], pa.int32()),
    "int64": pa.array([-(2**63), 0, 2**63 - 1, None], pa.int64()),
    "uint8": pa.array([0, 1, 255, None], pa.uint8()),
    "uint16": pa.array([0, 1, 2**16 - 1, None], pa.uint16()),
    "uint32": pa.array([0, 1, 2**32 - 1, None], pa.uint32()),
    "uint64": pa.array([0, 1, 2**64 - 1, None], pa.uint64()),
    "float16": pa.array(np.array([0.5, -0.0, np.inf, np.nan], dtype="float16")),
    "float32": pa.array([1.5, -0.0, -INF, None], pa.float32()),
    "float64": pa.array([1e308, -0.0, INF, None], pa.float64()),
    "bool": pa.array([True, False, None, True]),
    "decimal32": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-9.99"), None], pa.decimal32(5, 2)),
    "decimal64": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-9.99"), None], pa.decimal64(12, 2)),
    "decimal128": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-1e30"), None], pa.decimal128(38, 2)),
    "decimal256": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-1e50"), None], pa.decimal256(60, 2)),
    "date32": pa.array([dt.date(1, 1, 1), dt.date(2020, 2, 29), None, dt.date(9999, 12, 31)], pa.date32()),
    "date64": pa.array([dt.date(1970, 1, 1), dt.date(2020, 2, 29), None, dt.date(9999, 12, 31)], pa.date64()),
    **{f"time32 {unit}": pa.array([0, 86_399, None, 1], pa.time32(unit)) for unit in ("s", "ms")},
    **{f"time64 {unit}": pa.array([0, 86_399_999_999, None, 1], pa.time64(unit)) for unit in ("us", "ns")},
    **{f"timestamp {unit}": pa.array([-1, 0, None, 2**33], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    **{
        f"zone {zone}": pa.array([-1, 0, None, 2**40], pa.timestamp("us", zone))
        for zone in ("UTC", "Asia/Tokyo", "+05:30")
    },
    **{f"duration {unit}": pa.array([-1, 0, None, 2**40], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "string": pa.array(["", "ü日本\0", None, "x" * 100_000]),
    "large_string": pa.array(["", "ü", None, "x"], pa.large_string()),
    "string_view": pa.array(["", "a string of more than twelve bytes", None, "x"], pa.string_view()),
    "binary": pa.array([b"", b"\0\xff", None, b"x" * 1000]),
    "large_binary": pa.array([b"", b"\0\xff", None, b"x"], pa.large_binary()),
    "binary_view": pa.array([b"", b"\0\xff", None, b"bytes, more than twelve"], pa.binary_view()),
    "fixed_size_binary": pa.array([b"abc", b"\0\0\0", None, b"xyz"], pa.binary(3)),
    "dictionary": pa.array(["b", "a", None, "b"]).dictionary_encode(),
    "dictionary of int": pa.array([5, 3, None, 5]).dictionary_encode(),
    "list": pa.array([[1, None], [], None, [2]], pa.list_(pa.int32())),
    "large_list": pa.array([["a"], [], None, [None]], pa.large_list(pa.string())),
    "fixed_size_list": pa.array([[1, 2], [3, None], None, [5, 6]], pa.list_(pa.int16(), 2)),
    "struct": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": None}, None, {"a": 2, "b": ""}]),
    "nested": pa.array([[{"a": [1]}], None, [], [{"a": None}]]),
    "map": pa.array([[("a", 1)], [], None, [("b", None)]], pa.map_(pa.string(), pa.int8())),
    "null": pa.nulls(4),
    "interval": pa.array([(1, 2, 3), None, (0, 0, 0), (-1, -2, -3)], pa.month_day_nano_interval()),
}


@pytest.mark.parametrize("name", ARROW)
def test_arrow_types_come_back(store: drumlin.Store, name: str) -> None:
    table = pa.table({"x": ARROW[name]})
    assert store.write("t", table).rows == 4
    back = store.read("t").to_arrow()
    assert back.schema == table.schema
    assert back.combine_chunks()["x"].to_pylist() == table["x"].to_pylist() or name == "float16"
    back.validate(full=True)
    # Again, with the rows in two parts, one of them sliced.
    store.append("t", table.slice(1, 2))
    assert repr(store.read("t").to_arrow()["x"].to_pylist()) == repr(
        [*table["x"].to_pylist(), *table["x"].to_pylist()[1:3]]
    )


@pytest.mark.parametrize("name", ARROW)
def test_arrow_types_survive_a_checkpoint_and_reopening(folder: str, name: str) -> None:
    table = pa.table({"x": ARROW[name], "n": [0, 1, 2, 3]})
    with drumlin.open(folder) as store:
        store.write("t", table)
        store.append("t", table)
        store.table("t").delete("n = 1")
        store.checkpoint()
        store.append("t", table)
    with drumlin.open(folder) as store:
        back = store.read("t").to_arrow()
        whole = table["x"].to_pylist()
        part = [whole[0], *whole[2:]]
        assert back.schema == table.schema
        assert repr(back["x"].to_pylist()) == repr([*part, *part, *whole])


def test_floats_come_back_bit_by_bit(store: drumlin.Store) -> None:
    values = np.array([0.0, -0.0, INF, -INF, NAN, 5e-324, 0.1, 1e308])
    values = np.concatenate([values, np.frombuffer(struct.pack("<Q", 0xFFF8_0000_0000_0001), dtype="f8")])
    store.write("t", {"x": values})
    back = store.read("t").to_arrow()["x"].to_numpy()
    assert back.tobytes() == values.tobytes()


@pytest.mark.parametrize("rows", [0, 1, 122_879, 122_880, 122_881, 300_000])
def test_any_number_of_rows(store: drumlin.Store, rows: int) -> None:
    frame = pl.DataFrame({"n": np.arange(rows), "s": [f"row {n % 1000}" for n in range(rows)]})
    assert store.write("t", frame).rows == rows
    assert_frame_equal(store.read("t").to_polars(), frame)
    assert sum(batch.num_rows for batch in store.read("t")) == rows


@pytest.mark.parametrize("empty", [pa.table({}), pl.DataFrame(), {}], ids=["pyarrow", "polars", "dict"])
def test_no_columns_are_refused(store: drumlin.Store, empty: object) -> None:
    with pytest.raises(drumlin.InvalidArgument, match="at least one column"):
        store.write("t", empty)  # type: ignore[arg-type]
    assert not store.tree.exists("t")


@pytest.mark.parametrize(
    "array",
    [
        pa.RunEndEncodedArray.from_arrays([1, 2], ["a", "b"]),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    ],
    ids=["run end encoded", "union"],
)
def test_types_that_cannot_be_stored_are_named(store: drumlin.Store, array: pa.Array) -> None:
    with pytest.raises(drumlin.InvalidArgument, match="column 'x': type .* cannot be stored"):
        store.write("t", pa.table({"x": array}))


def test_extension_types_and_field_metadata_come_back(store: drumlin.Store) -> None:
    table = pa.table({"id": pa.array([b"0" * 16], pa.uuid()), "n": pa.array([1])})
    table = table.cast(table.schema.set(1, pa.field("n", pa.int64(), nullable=False, metadata={"unit": "m"})))
    table = table.replace_schema_metadata({"source": "test"})
    store.write("t", table)
    back = store.read("t").to_arrow()
    assert back.schema.equals(table.schema, check_metadata=True)
    assert store.table("t").schema().metadata == {b"source": b"test"}


POLARS = pl.DataFrame(
    {
        "int128 is not there": [1, None],
        "u8": pl.Series([255, None], dtype=pl.UInt8),
        "f32": pl.Series([0.5, NAN], dtype=pl.Float32),
        "bool": [True, None],
        "decimal": [decimal.Decimal("1.50"), None],
        "date": [dt.date(2020, 2, 29), None],
        "time": [dt.time(1, 2, 3, 4), None],
        "ms": pl.Series([dt.datetime(2020, 1, 1), None], dtype=pl.Datetime("ms")),
        "zone": pl.Series([dt.datetime(2020, 1, 1), None], dtype=pl.Datetime("ns")).dt.replace_time_zone("Europe/Oslo"),
        "duration": [dt.timedelta(microseconds=1), None],
        "str": ["a text of more than twelve bytes", None],
        "binary": [b"\0\xff", None],
        "list": [[1, None], []],
        "array": pl.Series([[1, 2], None], dtype=pl.Array(pl.Int32, 2)),
        "struct": [{"a": 1, "b": "x"}, {"a": None, "b": None}],
        "categorical": pl.Series(["a", None], dtype=pl.Categorical),
        "enum": pl.Series(["y", None], dtype=pl.Enum(["z", "y", "x"])),
    }
)


@pytest.mark.parametrize("name", POLARS.columns)
def test_polars_types_come_back(store: drumlin.Store, name: str) -> None:
    frame = POLARS.select(name)
    store.write("t", frame)
    assert_frame_equal(store.read("t").to_polars(), frame)
    assert_frame_equal(pl.DataFrame(store.read("t")), frame)
    store.append("t", frame.lazy())
    assert_frame_equal(store.read("t").to_polars(), pl.concat([frame, frame]))


def test_polars_columns_of_nulls_come_back(store: drumlin.Store) -> None:
    frame = pl.DataFrame({"n": [None, None], "l": [[None], []], "i": [1, 2]})
    store.write("t", frame)
    assert_frame_equal(store.read("t").to_polars(), frame)


def test_polars_objects_are_refused(store: drumlin.Store) -> None:
    with pytest.raises(drumlin.InvalidArgument, match="column 'o': values of type Object"):
        store.write("t", pl.DataFrame({"o": [object()]}))


def test_duckdb_reads_and_is_read(store: drumlin.Store) -> None:
    connection = duckdb.connect()
    store.write("t", connection.sql("select range as n, 'x' || range as s from range(300000)"))
    result = store.read("t", where="n >= 299998")  # noqa: F841
    assert connection.sql("select n, s from result order by n").fetchall() == [(299998, "x299998"), (299999, "x299999")]
    # A result is read again each time.
    assert connection.sql("select count(*) from result").fetchall() == [(2,)]


def test_record_batches_readers_and_results_are_frames(store: drumlin.Store) -> None:
    batch = pa.record_batch({"n": [1, 2]})
    reader = pa.RecordBatchReader.from_batches(batch.schema, iter([batch, batch]))
    assert store.write("batch", batch).rows == 2
    assert store.write("reader", reader).rows == 4
    assert store.write("copy", store.read("reader", where="n = 2")).rows == 2
    assert store.read("copy").to_arrow()["n"].to_pylist() == [2, 2]
    # A table can be written from itself.
    assert store.append("copy", store.read("copy")).rows == 4


def test_a_series_is_a_table_of_one_column(store: drumlin.Store) -> None:
    series = pd.Series([1.5, None, 2.5], index=pd.Index(["a", "b", "c"], name="sym"), name="close")
    store.write("p", series)
    pd.testing.assert_series_equal(store.read("p").to_series(), series)
    store.append("p", series.iloc[:1])
    assert store.read("p").to_series().tolist()[3] == 1.5
    store.write("q", pl.Series("n", [1, 2]))
    assert store.read("q").to_polars().to_series().to_list() == [1, 2]
    assert store.read("q").to_series().tolist() == [1, 2]
    store.write("two", {"a": [1], "b": [2]})
    with pytest.raises(drumlin.InvalidArgument, match="2 columns"):
        store.read("two").to_series()


def test_a_structured_array_is_a_table(store: drumlin.Store) -> None:
    array = np.array([(1, 2.5, "x"), (2, 3.5, "yy")], dtype=[("id", "i4"), ("price", "f8"), ("name", "U4")])
    store.write("t", array)
    assert store.read("t").to_arrow().to_pylist() == [
        {"id": 1, "price": 2.5, "name": "x"},
        {"id": 2, "price": 3.5, "name": "yy"},
    ]
    assert store.read("t").to_arrow().schema.field("id").type == pa.int32()


def test_python_values_are_frames(store: drumlin.Store) -> None:
    store.write("columns", {"n": [1, 2], "s": ["a", None]})
    store.write("rows", [{"n": 1, "s": "a"}, {"n": 2, "s": None}])
    assert store.read("columns").to_arrow().to_pylist() == store.read("rows").to_arrow().to_pylist()
    with pytest.raises(drumlin.InvalidArgument, match="dict of columns"):
        store.write("t", {"a": [1], "b": [1, 2]})


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (pl.Series([1]), "to_frame"),
        (pd.Series([1]), "to_frame"),
        (pa.array([1]), "pyarrow.table"),
        (pa.chunked_array([[1]]), "pyarrow.table"),
        (np.zeros((2, 2)), "expected a table .a pandas.*, got a numpy.ndarray"),
        ([1], "expected a table .*, got a list"),
        (None, "expected a table .*, got None"),
        ("prices.txt", "'prices.txt' is the path of no kind of file that is read: .parquet"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_table_is_refused_with_a_hint(store: drumlin.Store, data: object, hint: str) -> None:
    with pytest.raises(TypeError, match=hint):
        store.write("t", data)  # type: ignore[arg-type]


def test_a_stream_that_fails_leaves_nothing(store: drumlin.Store) -> None:
    schema = pa.schema([("n", pa.int64())])

    def batches():
        yield pa.record_batch({"n": [1]}, schema=schema)
        raise RuntimeError("the source went away")

    with pytest.raises(drumlin.Error, match="the source went away"):
        store.write("t", pa.RecordBatchReader.from_batches(schema, batches()))
    assert not store.tree.exists("t")


def test_text_that_is_no_utf8_is_refused(store: drumlin.Store) -> None:
    offsets = pa.py_buffer(np.array([0, 2], dtype="int32").tobytes())
    bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    with pytest.raises(drumlin.InvalidArgument, match=r"(?i)utf-?8"):
        store.write("t", pa.table({"s": bad}))


def test_native_types_hold_the_same_values(store: drumlin.Store) -> None:
    table = pa.table(
        {
            "d": pa.array([decimal.Decimal("1.50"), None] * 1000, pa.decimal128(12, 2)),
            "s": pa.array(["a", "b"] * 1000),
            "n": pa.array(range(2000)),
        }
    )
    store.write("t", table)
    native = store.read("t", native=True)
    assert native.to_arrow().to_pylist() == table.to_pylist()
    assert native.schema.names == ["d", "s", "n"]
    assert native.to_arrow().schema == pa.schema(native.schema)
    assert native.to_polars()["n"].sum() == sum(range(2000))


def test_uuids_are_uuids_by_every_door(store: drumlin.Store) -> None:
    first, second = uuid.UUID(int=1), uuid.UUID(int=2)
    within = pa.struct([("id", pa.uuid()), ("all", pa.list_(pa.uuid()))])
    store.table("t").create(pa.schema([("k", pa.int64()), ("of", pa.uuid()), ("in", within)]), key=["k"])
    rows = [{"k": 1, "of": second, "in": {"id": first, "all": [second, None]}}, {"k": 2, "of": None, "in": None}]
    store.table("t").upsert(rows)
    store.table("t").upsert(rows[0] | {"of": second.bytes})
    assert [store.table("t").get(key) for key in (1, 2)] == rows
    assert store.table("t").get_many([2, 1]).rows.to_arrow().to_pylist() == rows[::-1]
    assert store.read("t").to_arrow().to_pylist() == rows
    for where in (col("of") == second, col("of").isin([first, second]), ~(col("of") == first)):
        assert store.read("t", where=where).to_arrow()["k"].to_pylist() == [1]
    store.table("t").update({"of": first}, where="k = 2")
    store.table("t").add_columns({"by": (pa.uuid(), second)})
    assert store.table("t").get(2) == rows[1] | {"of": first, "by": second}
    assert store.table("t").constraints().defaults == {"by": second}
    with pytest.raises(drumlin.InvalidArgument, match="expected 16 bytes"):
        store.table("t").upsert(rows[0] | {"by": str(first)})
