//! Every type and shape round-trips, on any thread to the same bytes; damage gives at worst an error; statistics agree
//! with brute force.

use std::cell::Cell;
use std::panic;
use std::sync::{Arc, Once};

use arrow::array::*;
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{cast, sort};
use arrow::datatypes::*;
use bytes::Bytes;
use fastrand::Rng;

mod claims;
mod rewriting;

use super::*;

fn field(name: &str, data_type: DataType, nullable: bool) -> Field {
    Field::new(name, data_type, nullable)
}

/// Types with one value per row.
fn flat_types() -> Vec<DataType> {
    use DataType::*;
    let mut types = vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Date32,
        Date64,
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
        Null,
        Time32(TimeUnit::Second),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
        Interval(IntervalUnit::YearMonth),
        Interval(IntervalUnit::DayTime),
        Interval(IntervalUnit::MonthDayNano),
        FixedSizeBinary(0),
        FixedSizeBinary(1),
        FixedSizeBinary(16),
        FixedSizeBinary(33),
        Decimal32(7, 2),
        Decimal64(17, -3),
        Decimal128(7, 2),
        Decimal128(15, 2),
        Decimal128(38, 10),
        Decimal256(9, 0),
        Decimal256(18, 4),
        Decimal256(60, 4),
        Decimal256(76, 10),
    ];
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        types.push(Duration(unit));
        types.push(Timestamp(unit, None));
        types.push(Timestamp(unit, Some("Europe/Zurich".into())));
        types.push(Timestamp(unit, Some("+05:30".into())));
    }
    types
}

fn nested_types() -> Vec<DataType> {
    use DataType::*;
    let of =
        |data_type: DataType| Arc::new(field("item", data_type, true).with_metadata([("k".into(), "v".into())].into()));
    let pair = Fields::from(vec![field("key", Utf8, false), field("value", Int64, true)]);
    let deep = Struct(Fields::from(vec![
        field("a", Int32, true),
        field("b", List(of(Struct(Fields::from(vec![field("x", Utf8View, true), field("y", Float64, true)])))), true),
        field("c", Dictionary(Box::new(Int8), Box::new(Utf8)), true),
    ]));
    vec![
        Struct(Fields::empty()),
        deep.clone(),
        List(of(Int64)),
        LargeList(of(Utf8)),
        List(of(deep)),
        List(of(Boolean)),
        List(of(Null)),
        FixedSizeList(of(Float32), 3),
        FixedSizeList(of(Utf8), 0),
        FixedSizeList(of(List(of(Int8))), 2),
        ListView(of(Int32)),
        LargeListView(of(Utf8)),
        List(of(LargeListView(of(Decimal128(20, 2))))),
        Map(Arc::new(field("entries", Struct(pair.clone()), false)), false),
        Map(Arc::new(field("kv", Struct(pair), false)), true),
        Dictionary(Box::new(Int8), Box::new(Utf8)),
        Dictionary(Box::new(UInt32), Box::new(Int64)),
        Dictionary(Box::new(Int64), Box::new(LargeUtf8)),
        Dictionary(Box::new(UInt8), Box::new(Utf8View)),
        Dictionary(Box::new(UInt16), Box::new(Decimal128(15, 2))),
        Dictionary(Box::new(Int32), Box::new(Timestamp(TimeUnit::Millisecond, Some("UTC".into())))),
    ]
}

fn nulls(rng: &mut Rng, rows: usize, share: f64) -> Option<NullBuffer> {
    (share > 0.0).then(|| (0..rows).map(|_| rng.f64() >= share).collect::<Vec<_>>().into())
}

/// A number whose distribution is set by `shape`: constant, sequence, runs, few bits, steps, anything.
fn number(rng: &mut Rng, shape: u8, row: usize) -> i64 {
    match shape {
        0 => 7,
        1 => row as i64 * 3 - 100,
        2 => (row / 50) as i64,
        3 => rng.i64(-20..100),
        4 => 1_700_000_000_000 + rng.i64(0..1000) * 1000,
        5 => {
            if rng.u8(..20) == 0 {
                rng.i64(..)
            } else {
                0
            }
        }
        _ => rng.i64(..),
    }
}

fn string(rng: &mut Rng, shape: u8, row: usize) -> String {
    const WORDS: [&str; 8] = ["furiously", "ironic", "deposits", "é", "sleep", "日本", "", "packages "];
    match shape {
        0 => "same".into(),
        1 => format!("https://example.org/item/{row}"),
        2 | 3 => WORDS[rng.usize(..8)].into(),
        4 | 5 => (0..rng.usize(..12)).map(|_| WORDS[rng.usize(..8)]).collect::<Vec<_>>().join(" "),
        _ => (0..rng.usize(..90)).map(|_| rng.char(..)).collect(),
    }
}

/// A random array of any type, with garbage under its nulls.
fn random(rng: &mut Rng, data_type: &DataType, rows: usize, shape: u8, share: f64) -> ArrayRef {
    let mask = nulls(rng, rows, share);
    let valid = |row: usize| mask.as_ref().is_none_or(|mask| mask.is_valid(row));
    match data_type {
        DataType::Null => new_null_array(data_type, rows),
        DataType::Boolean => {
            let values = (0..rows).map(|row| number(rng, shape, row) & 1 == 1).collect::<Vec<_>>();
            Arc::new(BooleanArray::new(values.into(), mask))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let values = (0..rows).map(|row| string(rng, shape, row)).collect::<Vec<_>>();
            let array = StringArray::from(values);
            let array = StringArray::new(array.offsets().clone(), array.values().clone(), mask);
            cast(&array, data_type).unwrap()
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let values = (0..rows).map(|row| string(rng, shape, row).into_bytes()).collect::<Vec<_>>();
            let array = BinaryArray::from_iter_values(values);
            let array = BinaryArray::new(array.offsets().clone(), array.values().clone(), mask);
            cast(&array, data_type).unwrap()
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MIN_POSITIVE, -f64::NAN];
            let values = (0..rows).map(|row| match shape {
                3 | 5 if rng.u8(..10) == 0 => odd[rng.usize(..7)],
                0..=4 => number(rng, shape, row) as f64 / 100.0,
                _ => rng.f64() * 1e10 - 5e9,
            });
            let array = Float64Array::new(values.collect::<Vec<_>>().into(), mask);
            cast(&array, data_type).unwrap()
        }
        DataType::Struct(fields) => {
            let columns = fields.iter().map(|f| random(rng, f.data_type(), rows, shape, share)).collect();
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, mask, rows).unwrap())
        }
        DataType::List(f) => {
            let offsets = OffsetBuffer::from_lengths((0..rows).map(|_| rng.usize(..5)));
            let values = random(rng, f.data_type(), *offsets.last().unwrap() as usize, shape, share);
            Arc::new(ListArray::new(f.clone(), offsets, values, mask))
        }
        DataType::LargeList(f) => {
            let offsets = OffsetBuffer::from_lengths((0..rows).map(|_| rng.usize(..5)));
            let values = random(rng, f.data_type(), *offsets.last().unwrap() as usize, shape, share);
            Arc::new(LargeListArray::new(f.clone(), offsets, values, mask))
        }
        DataType::FixedSizeList(f, size) => {
            let values = random(rng, f.data_type(), rows * *size as usize, shape, share);
            Arc::new(FixedSizeListArray::try_new_with_length(f.clone(), *size, values, mask, rows).unwrap())
        }
        DataType::ListView(f) => {
            let values = random(rng, f.data_type(), rows + 9, shape, share);
            let offsets = (0..rows).map(|_| rng.i32(2..=(rows as i32).max(2))).collect::<ScalarBuffer<_>>();
            let sizes = (0..rows).map(|_| rng.i32(0..7)).collect();
            Arc::new(ListViewArray::new(f.clone(), offsets, sizes, values, mask))
        }
        DataType::LargeListView(f) => {
            let values = random(rng, f.data_type(), rows + 9, shape, share);
            let offsets = (0..rows).map(|_| rng.i64(2..=(rows as i64).max(2))).collect::<ScalarBuffer<_>>();
            let sizes = (0..rows).map(|_| rng.i64(0..7)).collect();
            Arc::new(LargeListViewArray::new(f.clone(), offsets, sizes, values, mask))
        }
        DataType::Map(f, sorted) => {
            let DataType::Struct(fields) = f.data_type() else { unreachable!() };
            let offsets = OffsetBuffer::from_lengths((0..rows).map(|_| rng.usize(..4)));
            let entries = *offsets.last().unwrap() as usize;
            let columns = fields
                .iter()
                .map(|f| random(rng, f.data_type(), entries, shape, if f.is_nullable() { share } else { 0.0 }))
                .collect();
            let entries = StructArray::try_new_with_length(fields.clone(), columns, None, entries).unwrap();
            Arc::new(MapArray::new(f.clone(), offsets, entries, mask, *sorted))
        }
        DataType::Dictionary(key, value) => {
            let count = rng.usize(1..60);
            let values = random(rng, value, count, shape, share);
            let keys = Int64Array::new((0..rows).map(|_| rng.i64(0..count as i64)).collect(), mask);
            let keys = cast(&keys, key).unwrap();
            let data = keys.to_data().into_builder().data_type(data_type.clone()).add_child_data(values.to_data());
            make_array(data.build().unwrap())
        }
        // Anything else has some bytes per value.
        other => {
            let width = words::machine_type(other).map(|p| p.byte_width()).or(fixed::fixed_size(other)).unwrap();
            let wide =
                matches!(other, DataType::Decimal128(digits, _) | DataType::Decimal256(digits, _) if *digits > 18);
            let mut bytes = Vec::with_capacity(rows * width);
            for row in 0..rows {
                let mut value = number(rng, shape, row);
                if !valid(row) {
                    value = rng.i64(..);
                } else if matches!(other, DataType::Date64) {
                    value = value % 100_000 * 86_400_000;
                }
                let sign = if value < 0 { 0xff } else { 0 };
                let mut slot = vec![sign; width];
                let len = width.min(8);
                slot[..len].copy_from_slice(&value.to_le_bytes()[..len]);
                if wide && shape == 6 {
                    slot.iter_mut().for_each(|byte| *byte = rng.u8(..));
                }
                bytes.extend(slot);
            }
            let buffer = arrow::buffer::Buffer::from_slice_ref(bytes);
            let data = ArrayData::builder(other.clone()).len(rows).add_buffer(buffer).nulls(mask).align_buffers(true);
            make_array(data.build().unwrap())
        }
    }
}

fn aligned(bytes: &[u8]) -> Bytes {
    struct Aligned(arrow::buffer::Buffer);
    impl AsRef<[u8]> for Aligned {
        fn as_ref(&self) -> &[u8] {
            self.0.as_slice()
        }
    }
    Bytes::from_owner(Aligned(arrow::buffer::Buffer::from_slice_ref(bytes)))
}

/// The array cast back to its own type.
fn widened(array: &ArrayRef, data_type: &DataType) -> ArrayRef {
    if array.data_type() == data_type { array.clone() } else { cast(array, data_type).unwrap() }
}

fn check(array: &ArrayRef, what: &str) -> Segment {
    let segment = encode(array).unwrap_or_else(|e| panic!("{what}: {e}"));
    let bytes = aligned(&segment.bytes);
    let exact = decode(bytes.clone(), array.len(), array.data_type(), Form::Exact);
    let exact = exact.unwrap_or_else(|e| panic!("{what}: {e}"));
    exact.to_data().validate_full().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(exact.data_type(), array.data_type(), "{what}");
    assert_eq!(&exact, array, "{what}");
    let native = decode(bytes, array.len(), array.data_type(), Form::Native).unwrap_or_else(|e| panic!("{what}: {e}"));
    native.to_data().validate_full().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(&widened(&native, array.data_type()), array, "{what}, native {}", native.data_type());
    // Unaligned memory decodes too.
    let shifted = [&[0][..], &segment.bytes].concat();
    let shifted = decode(aligned(&shifted).slice(1..), array.len(), array.data_type(), Form::Exact);
    assert_eq!(&shifted.unwrap_or_else(|e| panic!("{what}: {e}")), array, "{what}");
    segment
}

#[test]
fn every_type_round_trips() {
    let mut rng = Rng::with_seed(1);
    for data_type in flat_types().into_iter().chain(nested_types()) {
        for shape in 0..7 {
            for rows in [0, 1, 2, 9, 100, 1025, 3000] {
                for share in [0.0, 0.1, 0.9, 1.0] {
                    let what = format!("{data_type}, shape {shape}, {rows} rows, nulls {share}");
                    let array = random(&mut rng, &data_type, rows, shape, share);
                    check(&array, &what);
                    if rows > 9 {
                        let from = rng.usize(1..rows / 2);
                        let len = rng.usize(1..rows - from);
                        check(&array.slice(from, len), &format!("{what}, slice {from}+{len}"));
                    }
                }
            }
        }
    }
}

#[test]
fn ascending_columns_round_trip_and_are_small() {
    let mut rng = Rng::with_seed(8);
    let integer = |t: &DataType| words::machine_type(t).is_some_and(|p| p.is_int());
    for data_type in flat_types().into_iter().filter(integer) {
        for shape in 0..7 {
            let array = sort(&random(&mut rng, &data_type, 20_000, shape, 0.0), None).unwrap();
            check(&array, &format!("{data_type}, shape {shape}"));
        }
    }
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..122_880).map(|v| v * 1000 + v * v % 1000)));
    assert!(check(&keys, "keys").bytes.len() < 122_880 * 12 / 8);
}

#[test]
fn dictionaries_of_every_size_round_trip() {
    for count in [1, 2, 255, 256, 257, 3000, 7000] {
        for length in [0, 5, 8, 9, 30, 32, 33, 100] {
            let value = |row: usize| format!("{:>length$}", row * 7919 % count);
            let valid = |row: usize| row % 11 != 3;
            let array: StringArray = (0..122_880).map(|row| valid(row).then(|| value(row))).collect();
            let array: ArrayRef = Arc::new(array);
            for data_type in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, DataType::Binary] {
                check(&cast(&array, &data_type).unwrap(), &format!("{data_type}, {count} values of {length}"));
            }
        }
    }
}

#[test]
fn full_row_groups_round_trip() {
    let mut rng = Rng::with_seed(2);
    let deep = DataType::List(Arc::new(field("item", DataType::Int32, true)));
    for data_type in flat_types().into_iter().chain([deep]) {
        for (shape, share) in [(3, 0.0), (4, 0.05), (6, 0.5)] {
            let array = random(&mut rng, &data_type, 122_880, shape, share);
            check(&array, &format!("{data_type}, shape {shape}"));
        }
    }
}

#[test]
fn other_types_go_through_ipc() {
    let values = StringArray::from(vec![Some("a"), None, Some("c")]);
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 5, 9]), &values).unwrap();
    let decoded = decode(
        aligned(&encode(&(Arc::new(runs.clone()) as ArrayRef)).unwrap().bytes),
        9,
        runs.data_type(),
        Form::Exact,
    );
    assert_eq!(decoded.unwrap().to_data(), runs.to_data());
    let fields =
        UnionFields::try_new(vec![0, 1], vec![field("i", DataType::Int32, true), field("s", DataType::Utf8, true)])
            .unwrap();
    let children: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![1, 2, 3])), Arc::new(values)];
    let union = UnionArray::try_new(fields, vec![0, 1, 0].into(), None, children).unwrap();
    check(&(Arc::new(union) as ArrayRef), "union");
}

#[test]
fn values_beyond_their_precision_are_kept() {
    for value in [i128::from(i32::MAX) + 1, i128::from(i64::MAX), i128::MAX, i128::MIN] {
        let array = Decimal128Array::from(vec![Some(1), None, Some(value), Some(-value.max(-i128::MAX))]);
        for digits in [5, 15, 38] {
            let array: ArrayRef = Arc::new(array.clone().with_data_type(DataType::Decimal128(digits, 2)));
            let bytes = encode(&array).unwrap().bytes;
            for form in [Form::Exact, Form::Native] {
                let decoded = decode(aligned(&bytes), 4, array.data_type(), form).unwrap();
                let wide: Vec<Option<i128>> = match decoded.data_type() {
                    DataType::Decimal64(..) => {
                        decoded.as_primitive::<Decimal64Type>().iter().map(|v| v.map(i128::from)).collect()
                    }
                    _ => decoded.as_primitive::<Decimal128Type>().iter().collect(),
                };
                assert_eq!(wide, array.as_primitive::<Decimal128Type>().iter().collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn nulls_declared_impossible_are_refused() {
    let item = Arc::new(field("item", DataType::Int32, false));
    let values = Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef;
    let data = ArrayData::builder(DataType::List(item)).len(1).add_buffer(vec![0_i32, 2].into());
    let data = data.add_child_data(values.to_data()).build();
    if let Ok(data) = data {
        assert_eq!(encode(&make_array(data)).unwrap_err().kind(), crate::base::ErrorKind::SchemaMismatch);
    }
}

#[test]
fn small_and_regular_columns_are_small() {
    let size = |array: ArrayRef| check(&array, "small").bytes.len();
    assert!(size(Arc::new(Int64Array::from(vec![5]))) <= 11);
    assert!(size(Arc::new(StringArray::from(vec!["AAPL"]))) <= 20);
    assert!(size(Arc::new(Int64Array::from_iter_values((0..100).map(|v| v * v % 97)))) <= 111);
    assert!(size(Arc::new(Int64Array::from_iter_values(0..100_000))) <= 40);
    assert!(size(Arc::new(Int64Array::from_value(3, 100_000))) <= 40);
    assert!(size(new_null_array(&DataType::Utf8, 100_000)) == 1);
    let times = (0..100_000).map(|v| 1_700_000_000_000_000_000 + (v * 7919 % 86_400) * 1_000_000_000);
    assert!(size(Arc::new(TimestampNanosecondArray::from_iter_values(times))) < 100_000 * 18 / 8);
}

#[test]
fn strings_stored_as_a_dictionary_come_as_one() {
    let array: ArrayRef = Arc::new(StringArray::from_iter_values((0..50_000).map(|v| ["R", "A", "N"][v * v % 7 % 3])));
    let bytes = encode(&array).unwrap().bytes;
    let native = decode(aligned(&bytes), array.len(), &DataType::Utf8, Form::Native).unwrap();
    assert_eq!(native.data_type(), &DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8)));
    assert!(native.as_any_dictionary().values().len() == 3);
}

#[test]
fn the_same_column_gives_the_same_bytes_on_any_thread() {
    let mut rng = Rng::with_seed(3);
    for data_type in flat_types().into_iter().chain(nested_types()) {
        let array = random(&mut rng, &data_type, 5000, 4, 0.1);
        let first = encode(&array).unwrap();
        std::thread::scope(|scope| {
            let again: Vec<_> = (0..4).map(|_| scope.spawn(|| encode(&array).unwrap())).collect();
            again.into_iter().for_each(|again| assert_eq!(again.join().unwrap(), first, "{data_type}"));
        });
        // Neither what is under nulls nor the array's layout in memory affects the bytes.
        let copy = decode(aligned(&first.bytes), 5000, &data_type, Form::Exact).unwrap();
        assert_eq!(encode(&copy).unwrap(), first, "{data_type}");
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the panics that the guard catches on this thread out of the test's output.
fn quietly(work: impl FnOnce()) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info)
            }
        }));
    });
    QUIET.set(true);
    work();
    QUIET.set(false);
}

#[test]
fn damage_never_panics() {
    let mut rng = Rng::with_seed(4);
    let mut types = flat_types();
    types.extend(nested_types());
    quietly(|| {
        for data_type in &types {
            for (rows, shape, share) in [(40, 3, 0.2), (1500, 4, 0.0), (1500, 2, 0.1), (3000, 5, 0.0)] {
                let array = random(&mut rng, data_type, rows, shape, share);
                let bytes = encode(&array).unwrap().bytes;
                let mut attempt = |bytes: Vec<u8>| {
                    let form = if rng.bool() { Form::Exact } else { Form::Native };
                    // Damage that is not noticed gives other values, but valid ones: texts are UTF-8, keys are in
                    // range.
                    if let Ok(array) = decode(aligned(&bytes), rows, data_type, form) {
                        array.to_data().validate_full().unwrap_or_else(|e| panic!("{data_type}, {form:?}: {e}"));
                    }
                };
                for cut in 0..bytes.len().min(300) {
                    attempt(bytes[..cut].to_vec());
                }
                for at in 0..bytes.len().min(300) {
                    for flip in [0x01, 0x80, 0xff] {
                        let mut damaged = bytes.clone();
                        damaged[at] ^= flip;
                        attempt(damaged);
                    }
                }
                let mut noise = Rng::with_seed(5);
                for _ in 0..100 {
                    let mut damaged = bytes.clone();
                    for _ in 0..noise.usize(1..5) {
                        let at = noise.usize(..damaged.len());
                        damaged[at] = noise.u8(..);
                    }
                    attempt(damaged);
                }
            }
        }
    });
}

#[test]
fn a_wrong_number_of_rows_is_corrupt_or_kept() {
    let mut rng = Rng::with_seed(7);
    for data_type in flat_types().into_iter().chain(nested_types()) {
        for shape in [0, 2, 3, 6] {
            let array = random(&mut rng, &data_type, 2000, shape, 0.1);
            let bytes = aligned(&encode(&array).unwrap().bytes);
            quietly(|| {
                for rows in [0, 1, 1999, 2001, 5000] {
                    match decode(bytes.clone(), rows, array.data_type(), Form::Exact) {
                        Ok(decoded) => assert_eq!(decoded.len(), rows),
                        Err(error) => assert_eq!(error.kind(), crate::base::ErrorKind::Corrupt, "{error}"),
                    }
                }
            });
        }
    }
}

/// Values of a column as statistics see them.
fn stats_of_rows(array: &ArrayRef) -> Vec<Option<Stat>> {
    (0..array.len())
        .map(|row| {
            let one = measure(&array.slice(row, 1));
            assert_eq!(one.nulls == 1, one.min.is_none());
            one.min
        })
        .collect()
}

#[test]
fn statistics_agree_with_brute_force() {
    let mut rng = Rng::with_seed(6);
    let ordered = |t: &DataType| !matches!(t, DataType::Decimal256(..) | DataType::Interval(_) | DataType::Null);
    let dictionaries = nested_types().into_iter().filter(|t| matches!(t, DataType::Dictionary(..)));
    for data_type in flat_types().into_iter().filter(ordered).chain(dictionaries) {
        for shape in 0..7 {
            let array = random(&mut rng, &data_type, 200, shape, 0.2);
            let stats = measure(&array);
            let rows = stats_of_rows(&array);
            assert_eq!(stats.nulls, rows.iter().filter(|row| row.is_none()).count() as u64);
            if stats.nulls == 200 {
                continue;
            }
            let (min, max) = (stats.min.clone().unwrap(), stats.max.clone().unwrap());
            for row in rows.iter().flatten() {
                assert!(min.compare(row).unwrap().is_le(), "{data_type}: {min:?} > {row:?}");
                assert!(max.compare(row).unwrap().is_ge(), "{data_type}: {max:?} < {row:?}");
            }
            if stats.exact {
                let equal = |bound: &Stat| rows.iter().flatten().any(|row| row.compare(bound).unwrap().is_eq());
                assert!(equal(&min) && equal(&max), "{data_type}: {stats:?}");
            }
        }
    }
}

#[test]
fn statistics_of_hard_cases() {
    let floats: ArrayRef =
        Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(-f64::NAN), Some(1.0), None, Some(-0.0)]));
    let stats = measure(&floats);
    assert_eq!((stats.nulls, stats.min), (1, Some(Stat::Float(-0.0))));
    assert!(matches!(stats.max, Some(Stat::Float(max)) if max.is_nan()));
    let nans = measure(&(Arc::new(Float32Array::from(vec![f32::NAN])) as ArrayRef));
    assert!(matches!(nans.min, Some(Stat::Float(min)) if min.is_nan()));
    let infinite = measure(&(Arc::new(Float32Array::from(vec![f32::NEG_INFINITY])) as ArrayRef));
    assert_eq!(infinite.max, Some(Stat::Float(f64::NEG_INFINITY)));

    let long = |byte: u8| -> ArrayRef { Arc::new(BinaryArray::from_iter_values([vec![byte; 65]])) };
    let stats = measure(&long(7));
    assert_eq!(stats.min, Some(Stat::Bytes(vec![7; 64])));
    let mut upper = vec![7; 64];
    upper[63] = 8;
    assert_eq!((stats.max, stats.exact), (Some(Stat::Bytes(upper)), false));
    assert_eq!((measure(&long(255)).max, measure(&long(255)).exact), (None, false));

    let values = Arc::new(StringArray::from(vec!["unused", "b", "a"]));
    let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(vec![Some(1), None, Some(2)].into(), values));
    let stats = measure(&dictionary);
    assert_eq!((stats.nulls, stats.exact), (1, true));
    assert_eq!((stats.min, stats.max), (Some(Stat::Bytes(b"a".into())), Some(Stat::Bytes(b"b".into()))));
}
