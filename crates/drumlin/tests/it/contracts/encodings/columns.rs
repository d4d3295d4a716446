//! Columns of every type in every shape, so that every encoding is met.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{Buffer, NullBuffer};
use arrow::compute::cast;
use arrow::datatypes::*;
use drumlin::segment::take_rows;
use fastrand::Rng;

use crate::arrays;

/// How the values of a column follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Equal,
    Ascending,
    Runs,
    Few,
    /// Small numbers, some negative.
    Near,
    /// Large numbers close together; floats of two digits.
    Far,
    /// Nearly all the same.
    Rare,
    Random,
}

pub const SHAPES: [Shape; 8] =
    [Shape::Equal, Shape::Ascending, Shape::Runs, Shape::Few, Shape::Near, Shape::Far, Shape::Rare, Shape::Random];

/// Types of one value a row. Those whose values have no size are refused by tables, since Arrow loses count of them.
pub fn flat_types() -> Vec<DataType> {
    use DataType::*;
    let numbers = [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float16, Float32, Float64];
    let texts = [Utf8, LargeUtf8, Utf8View, Binary, LargeBinary, BinaryView];
    let times = [Date32, Date64, Time32(TimeUnit::Second), Time32(TimeUnit::Millisecond)];
    let finer = [Time64(TimeUnit::Microsecond), Time64(TimeUnit::Nanosecond)];
    let spans = [IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano].map(Interval);
    let fixed = [FixedSizeBinary(1), FixedSizeBinary(16), FixedSizeBinary(33)];
    let decimals = [Decimal32(7, 2), Decimal64(17, -3), Decimal128(7, 2), Decimal128(15, 2), Decimal128(38, 10)];
    let wide = [Decimal256(9, 0), Decimal256(18, 4), Decimal256(60, 4), Decimal256(76, 10)];
    let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
    let moments = units
        .into_iter()
        .flat_map(|unit| [Duration(unit), Timestamp(unit, None), Timestamp(unit, Some("Europe/Zurich".into()))]);
    let parts: [&[DataType]; 9] =
        [&[Null, Boolean], &numbers, &texts, &times, &finer, &spans, &fixed, &decimals, &wide];
    parts.concat().into_iter().chain(moments).collect()
}

/// Types that hold others.
pub fn nested_types() -> Vec<DataType> {
    use DataType::*;
    let of = |data_type: DataType| {
        Arc::new(Field::new("item", data_type, true).with_metadata([("k".into(), "v".into())].into()))
    };
    let keyed = |key: DataType, value: DataType| Dictionary(Box::new(key), Box::new(value));
    let pair = Struct(vec![Field::new("key", Utf8, false), Field::new("value", Int64, true)].into());
    let inner = Struct(vec![Field::new("x", Utf8View, true), Field::new("y", Float64, true)].into());
    let fields = [("a", Int32), ("b", List(of(inner))), ("c", keyed(Int8, Utf8))];
    let deep = Struct(fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec().into());
    vec![
        Struct(Fields::empty()),
        deep.clone(),
        List(of(Int64)),
        LargeList(of(Utf8)),
        List(of(deep)),
        List(of(Null)),
        FixedSizeList(of(Float32), 3),
        FixedSizeList(of(List(of(Boolean))), 2),
        ListView(of(Int32)),
        LargeListView(of(Utf8)),
        List(of(LargeListView(of(Decimal128(20, 2))))),
        Map(Arc::new(Field::new("entries", pair.clone(), false)), false),
        Map(Arc::new(Field::new("kv", pair, false)), true),
        keyed(Int8, Utf8),
        keyed(Int64, LargeUtf8),
        keyed(UInt8, BinaryView),
        keyed(UInt32, Int64),
        keyed(UInt16, Decimal128(15, 2)),
        keyed(Int32, Timestamp(TimeUnit::Millisecond, Some("UTC".into()))),
        keyed(Int16, List(of(Int32))),
    ]
}

/// Columns of types that have no form of their own.
pub fn others() -> Vec<ArrayRef> {
    let texts = StringArray::from(vec![Some("a"), None, Some("c")]);
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 5, 9]), &texts).unwrap();
    let fields = [("i", DataType::Int32), ("s", DataType::Utf8)].map(|(name, kind)| Field::new(name, kind, true));
    let fields = UnionFields::try_new(vec![0, 1], fields).unwrap();
    let children: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![1, 2, 3])), Arc::new(texts)];
    let union = UnionArray::try_new(fields, vec![0, 1, 0].into(), None, children).unwrap();
    vec![Arc::new(runs), Arc::new(union)]
}

fn number(rng: &mut Rng, shape: Shape, row: usize) -> i64 {
    match shape {
        Shape::Equal => 7,
        Shape::Ascending => row as i64 * 3 - 100,
        Shape::Runs => (row / 50) as i64,
        Shape::Few => [5, -1, 900, 5, 77][rng.usize(..5)],
        Shape::Near => rng.i64(-20..100),
        Shape::Far => 1_700_000_000_000 + rng.i64(0..1000) * 1000,
        Shape::Rare if rng.u8(..20) > 0 => 0,
        Shape::Rare | Shape::Random => rng.i64(..),
    }
}

fn text(rng: &mut Rng, shape: Shape, row: usize) -> String {
    const WORDS: [&str; 8] = ["furiously", "ironic", "deposits", "é", "sleep", "日本", "", "packages "];
    match shape {
        Shape::Equal => "the same".into(),
        Shape::Ascending => format!("https://example.org/item/{row:06}"),
        Shape::Runs => format!("run {}", row / 50),
        Shape::Few => WORDS[rng.usize(..8)].into(),
        Shape::Near | Shape::Far => (0..rng.usize(..12)).map(|_| WORDS[rng.usize(..8)]).collect::<Vec<_>>().join(" "),
        Shape::Rare if rng.u8(..20) > 0 => String::new(),
        Shape::Rare | Shape::Random => (0..rng.usize(..60)).map(|_| rng.char(..)).collect(),
    }
}

fn float(rng: &mut Rng, shape: Shape, row: usize) -> f64 {
    match shape {
        Shape::Far => rng.i64(-100_000..1_000_000) as f64 / 100.0,
        Shape::Near => 1.0 + rng.f64(),
        Shape::Random => rng.f64() * 1e10 - 5e9,
        _ => number(rng, shape, row) as f64 / 4.0,
    }
}

/// A fixed-width column of these values, of `width` bytes each.
fn of_bytes(data_type: &DataType, rows: usize, bytes: Vec<u8>, mask: Option<NullBuffer>) -> ArrayRef {
    let data = ArrayData::builder(data_type.clone()).len(rows).add_buffer(Buffer::from_slice_ref(bytes)).nulls(mask);
    make_array(data.align_buffers(true).build().unwrap())
}

fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeBinary(size) => *size as usize,
        other => other.primitive_width().unwrap(),
    }
}

/// A column of `rows` rows, a fifth of them null if `nulls`; something lies under the nulls, too.
pub fn column(rng: &mut Rng, data_type: &DataType, shape: Shape, rows: usize, nulls: bool) -> ArrayRef {
    let mask = nulls.then(|| NullBuffer::from_iter((0..rows).map(|_| rng.u8(..5) > 0)));
    match data_type {
        DataType::Null => new_null_array(data_type, rows),
        DataType::Boolean => {
            let values = (0..rows).map(|row| number(rng, shape, row) & 1 == 1).collect();
            Arc::new(BooleanArray::new(values, mask))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let plain = StringArray::from_iter_values((0..rows).map(|row| text(rng, shape, row)));
            cast(&StringArray::new(plain.offsets().clone(), plain.values().clone(), mask), data_type).unwrap()
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let plain = BinaryArray::from_iter_values((0..rows).map(|row| text(rng, shape, row).into_bytes()));
            cast(&BinaryArray::new(plain.offsets().clone(), plain.values().clone(), mask), data_type).unwrap()
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let values = (0..rows).map(|row| float(rng, shape, row)).collect::<Vec<_>>();
            cast(&Float64Array::new(values.into(), mask), data_type).unwrap()
        }
        // Rows of a few, or of as many, in this order.
        nested if nested.is_nested() || matches!(nested, DataType::Dictionary(..)) => {
            let base = arrays::array(rng, nested, rows.max(5), nulls);
            let row = |row: usize| match shape {
                Shape::Equal => 3,
                Shape::Runs => (row / 50) as u32,
                Shape::Few | Shape::Near | Shape::Far => rng.u32(..5),
                Shape::Rare if rng.u8(..20) > 0 => 0,
                Shape::Ascending | Shape::Rare | Shape::Random => row as u32,
            };
            take_rows(&base, &UInt32Array::from_iter_values((0..rows).map(row))).unwrap()
        }
        other => {
            let mut bytes = Vec::with_capacity(rows * width(other));
            for row in 0..rows {
                let value = match (other, number(rng, shape, row)) {
                    (DataType::Date64, value) => value % 100_000 * 86_400_000,
                    (_, value) => value,
                };
                let mut slot = vec![if value < 0 { 0xff } else { 0 }; width(other)];
                let len = slot.len().min(8);
                slot[..len].copy_from_slice(&value.to_le_bytes()[..len]);
                let wide = matches!(other, DataType::Decimal128(38, _) | DataType::Decimal256(60.., _));
                if shape == Shape::Random && wide {
                    // Beyond 64 bits, within the precision.
                    slot[8..14].fill_with(|| rng.u8(..));
                }
                bytes.extend(slot);
            }
            of_bytes(other, rows, bytes, mask)
        }
    }
}

/// The least and the greatest values of a type, and what is easily mistaken for another.
pub fn extremes(data_type: &DataType) -> ArrayRef {
    let texts = || -> Vec<Option<String>> {
        let long = |n: usize| Some("long ".repeat(n));
        let short =
            ["", "\0", "\0\0", " ", "twelve bytes", "thirteen byte", "é", "日本", "🦀", "\u{feff}", "\u{10ffff}"];
        short.map(|text| Some(text.to_owned())).into_iter().chain([None, long(14_000), long(250_000)]).collect()
    };
    match data_type {
        DataType::Null => new_null_array(data_type, 3),
        DataType::Boolean => Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            cast(&StringArray::from(texts()), data_type).unwrap()
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let odd: [&[u8]; 4] = [&[0xff], &[0xff; 70_000], &[0x80, 0, 0xc0], &[0; 33]];
            let odd = odd.map(|value| Some(value.to_vec())).into_iter();
            let values = odd.chain(texts().into_iter().map(|text| text.map(String::into_bytes)));
            cast(&BinaryArray::from_iter(values), data_type).unwrap()
        }
        other => {
            let width = width(other);
            let filled = |byte: u8, last: u8| {
                let mut slot = vec![byte; width];
                slot.iter_mut().rev().take(1).for_each(|slot| *slot = last);
                slot
            };
            let mut slots = vec![filled(0, 0), filled(0xff, 0xff), filled(0xff, 0x7f), filled(0, 0x80), filled(0, 1)];
            slots.push(filled(0, 0).into_iter().enumerate().map(|(at, _)| u8::from(at == 0)).collect());
            let bits: Vec<u64> = match other {
                // Infinities, NaNs of both signs that differ in their bits, numbers next to 0 and the greatest.
                DataType::Float16 => vec![0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7c01, 0x7e55, 0x8001, 0x0400, 0x7bff],
                DataType::Float32 => [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN, f32::MIN_POSITIVE]
                    .map(|value| u64::from(value.to_bits()))
                    .into_iter()
                    .chain([0x7f80_0001, 0x7fc1_2345, 0x8000_0001, 0x7f7f_ffff, 0x3dcc_cccd])
                    .collect(),
                DataType::Float64 => [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN, f64::MIN_POSITIVE, 0.1]
                    .map(f64::to_bits)
                    .into_iter()
                    .chain([0x7ff0_0000_0000_0001, 0x7ff8_1234_5678_9abc, 1 << 63 | 1, f64::MAX.to_bits()])
                    .collect(),
                _ => vec![],
            };
            slots.extend(bits.iter().map(|bits| bits.to_le_bytes()[..width].to_vec()));
            slots.push(filled(0x55, 0x2a));
            let rows = slots.len();
            of_bytes(other, rows, slots.concat(), Some(NullBuffer::from_iter((0..rows).map(|row| row + 1 < rows))))
        }
    }
}

/// Dictionaries up to the most values that their keys can name, and texts that are kept as one.
pub fn dictionaries() -> Vec<(String, ArrayRef)> {
    let mut all: Vec<(String, ArrayRef)> = Vec::new();
    let value = |n: usize| format!("value {n}");
    for (key, most) in [(DataType::Int8, 1 << 7), (DataType::UInt8, 1 << 8), (DataType::Int16, 1 << 15)]
        .into_iter()
        .chain([(DataType::UInt16, 1 << 16), (DataType::UInt32, 70_000), (DataType::Int64, 70_000)])
    {
        for count in [1, 2, most - 1, most] {
            let values = StringArray::from_iter_values((0..count).map(value));
            // Each value once, the last ones first, and null keys among them.
            let keys = (0..count).rev().map(|n| Some(n as i64)).chain([None, Some(0), None]);
            let keys = cast(&Int64Array::from_iter(keys), &key).unwrap();
            all.push((format!("all of {count} values by {key}"), keyed(&keys, &values)));
        }
    }
    let keys = |of: &[Option<i8>]| -> ArrayRef { Arc::new(Int8Array::from(of.to_vec())) };
    // Values that no row uses, that are there twice, or that are null; keys that are all null; no values.
    let odd = StringArray::from(vec![Some("unused"), Some("twice"), None, Some("twice"), Some("")]);
    all.push(("odd values".into(), keyed(&keys(&[Some(1), Some(3), Some(2), None, Some(4)]), &odd)));
    all.push(("null keys".into(), keyed(&keys(&[None; 9]), &odd)));
    all.push(("no values".into(), keyed(&keys(&[None; 9]), &StringArray::from(Vec::<&str>::new()))));
    for count in [1, 255, 256, 257, 3000, 7000] {
        for length in [0, 8, 33] {
            let texts = (0..20_000).map(|row| (row % 11 != 3).then(|| format!("{:>length$}", row * 7919 % count)));
            let texts: ArrayRef = Arc::new(StringArray::from_iter(texts));
            for data_type in [DataType::Utf8, DataType::BinaryView] {
                let what = format!("{data_type}, {count} values of {length} bytes");
                all.push((what, cast(&texts, &data_type).unwrap()));
            }
        }
    }
    all
}

fn keyed(keys: &ArrayRef, values: &StringArray) -> ArrayRef {
    let data_type = DataType::Dictionary(Box::new(keys.data_type().clone()), Box::new(DataType::Utf8));
    let data = keys.to_data().into_builder().data_type(data_type).add_child_data(values.to_data());
    make_array(data.build().unwrap())
}
