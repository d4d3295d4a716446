//! Random columns, with their values as the interpreter sees them.

use std::sync::Arc;

use arrow::array::*;
use arrow::compute::cast;
use arrow::datatypes::*;

use super::interpreter::Datum;
use crate::segment::{ColumnStats, Stat, compare_floats};

pub struct Column {
    pub name: &'static str,
    pub array: ArrayRef,
    /// The same values in another physical form.
    pub variant: ArrayRef,
    pub values: Vec<Datum>,
}

pub const ROWS: usize = 20;

const INTS: [i128; 22] = [
    0,
    1,
    -1,
    2,
    3,
    5,
    7,
    10,
    100,
    127,
    -128,
    128,
    255,
    256,
    32767,
    -32768,
    1 << 53,
    (1 << 53) + 1,
    i64::MAX as i128,
    i64::MIN as i128,
    u64::MAX as i128,
    u64::MAX as i128 - 1,
];
const FLOATS: [f64; 18] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    0.1,
    2.0,
    3.0,
    9007199254740992.0,
    9007199254740994.0,
    1.8446744073709552e19,
    1e300,
    f64::MAX,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    -f64::NAN,
];
pub const TEXTS: [&str; 14] = ["", "a", "A", "ab", "abc", "aB%", "a_c", "b", "\\", "a\\b", "é", "É", "x\ny", "zebra"];

pub fn columns(random: &mut fastrand::Rng) -> Vec<Column> {
    let nulls = random.u8(0..4);
    let mut make = |name: &'static str, data_type: DataType| column(name, &data_type, nulls, random);
    vec![
        make("i8", DataType::Int8),
        make("i32", DataType::Int32),
        make("i64", DataType::Int64),
        make("u8", DataType::UInt8),
        make("u64", DataType::UInt64),
        make("f32", DataType::Float32),
        make("f64", DataType::Float64),
        make("dec", DataType::Decimal128(18, 2)),
        make("text", DataType::Utf8),
        make("key", DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))),
        make("flag", DataType::Boolean),
        make("date", DataType::Date32),
        make("ms", DataType::Timestamp(TimeUnit::Millisecond, None)),
        make("ns", DataType::Timestamp(TimeUnit::Nanosecond, None)),
        make("at", DataType::Timestamp(TimeUnit::Microsecond, Some("+02:00".into()))),
        make("bin", DataType::Binary),
    ]
}

fn column(name: &'static str, data_type: &DataType, nulls: u8, random: &mut fastrand::Rng) -> Column {
    let constant = random.u8(0..6) == 0;
    let mut picks = (0..ROWS).map(|_| (random.u8(0..10) >= nulls * 2, random.u64(..))).collect::<Vec<_>>();
    if constant {
        let first = picks[0].1;
        picks.iter_mut().for_each(|pick| pick.1 = first);
    }
    let pick = |row: usize| picks[row].0.then_some(picks[row].1 as usize);
    let ints = |low: i128, high: i128| -> Vec<Option<i128>> {
        let fit = INTS.into_iter().filter(|int| (low..=high).contains(int)).collect::<Vec<_>>();
        (0..ROWS).map(|row| pick(row).map(|pick| fit[pick % fit.len()])).collect()
    };
    macro_rules! integers {
        ($array:ty, $native:ty, $scale:expr) => {{
            let values = ints(<$native>::MIN as i128, <$native>::MAX as i128);
            let array: ArrayRef =
                Arc::new(values.iter().map(|value| value.map(|value| value as $native)).collect::<$array>());
            (
                array.clone(),
                array,
                values
                    .into_iter()
                    .map(|value| value.map_or(Datum::Null, |value| Datum::Exact(value, $scale)))
                    .collect(),
            )
        }};
    }
    // Small instants around the literals' own, in nanoseconds.
    let instants = |unit: i128| -> Vec<Option<i128>> {
        let pool = [
            0,
            1,
            -1,
            1500,
            86_400_000_000_000,
            -86_400_000_000_000,
            1_582_934_400_000_000_000,
            1_582_977_600_000_000_000,
            1_582_977_600_000_001_000,
        ];
        (0..ROWS).map(|row| pick(row).map(|pick| i128::div_euclid(pool[pick % pool.len()], unit))).collect()
    };
    let instant = |values: &[Option<i128>], unit: i128| -> Vec<Datum> {
        values
            .iter()
            .map(|value| value.map_or(Datum::Null, |value| Datum::Instant { nanos: value * unit, finer: false }))
            .collect()
    };
    let texts = || (0..ROWS).map(|row| pick(row).map(|pick| TEXTS[pick % TEXTS.len()])).collect::<Vec<_>>();
    let text_values = |texts: &[Option<&str>]| {
        texts.iter().map(|text| text.map_or(Datum::Null, |text| Datum::Text(text.to_owned()))).collect()
    };
    let (array, variant, values): (ArrayRef, ArrayRef, Vec<Datum>) = match data_type {
        DataType::Int8 => integers!(Int8Array, i8, 0),
        DataType::Int32 => integers!(Int32Array, i32, 0),
        DataType::Int64 => integers!(Int64Array, i64, 0),
        DataType::UInt8 => integers!(UInt8Array, u8, 0),
        DataType::UInt64 => integers!(UInt64Array, u64, 0),
        DataType::Float32 => {
            let values =
                (0..ROWS).map(|row| pick(row).map(|pick| FLOATS[pick % FLOATS.len()] as f32)).collect::<Vec<_>>();
            let array: ArrayRef = Arc::new(values.iter().copied().collect::<Float32Array>());
            let variant = cast(&array, &DataType::Float64).unwrap();
            (
                array,
                variant,
                values
                    .into_iter()
                    .map(|value| value.map_or(Datum::Null, |value| Datum::Float(f64::from(value))))
                    .collect(),
            )
        }
        DataType::Float64 => {
            let values = (0..ROWS).map(|row| pick(row).map(|pick| FLOATS[pick % FLOATS.len()])).collect::<Vec<_>>();
            let array: ArrayRef = Arc::new(values.iter().copied().collect::<Float64Array>());
            (array.clone(), array, values.into_iter().map(|value| value.map_or(Datum::Null, Datum::Float)).collect())
        }
        DataType::Decimal128(..) => {
            let values = ints(-1 << 54, 1 << 54);
            let array: ArrayRef =
                Arc::new(values.iter().copied().collect::<Decimal128Array>().with_data_type(data_type.clone()));
            let narrow = values.iter().map(|value| value.map(|value| value as i64)).collect::<Decimal64Array>();
            let narrow: ArrayRef = Arc::new(narrow.with_data_type(DataType::Decimal64(18, 2)));
            (
                array,
                narrow,
                values.into_iter().map(|value| value.map_or(Datum::Null, |value| Datum::Exact(value, 2))).collect(),
            )
        }
        DataType::Utf8 => {
            let array: ArrayRef = Arc::new(StringArray::from(texts()));
            let form = [DataType::Utf8View, DataType::LargeUtf8][random.usize(0..2)].clone();
            let variant = cast(&array, &form).unwrap();
            (array, variant, text_values(&texts()))
        }
        DataType::Dictionary(..) => {
            let array: ArrayRef = Arc::new(texts().into_iter().collect::<DictionaryArray<Int8Type>>());
            let variant = cast(&array, &DataType::Utf8View).unwrap();
            (array, variant, text_values(&texts()))
        }
        DataType::Boolean => {
            let values = (0..ROWS).map(|row| pick(row).map(|pick| pick % 2 == 0)).collect::<Vec<_>>();
            let array: ArrayRef = Arc::new(BooleanArray::from(values.clone()));
            (array.clone(), array, values.into_iter().map(|value| value.map_or(Datum::Null, Datum::Bool)).collect())
        }
        DataType::Date32 => {
            let values = instants(86_400_000_000_000);
            let array: ArrayRef =
                Arc::new(values.iter().map(|value| value.map(|value| value as i32)).collect::<Date32Array>());
            (array.clone(), array, instant(&values, 86_400_000_000_000))
        }
        DataType::Timestamp(unit, _) => {
            let nanos = match unit {
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1_000,
                _ => 1,
            };
            let values = instants(nanos);
            let plain: ArrayRef =
                Arc::new(values.iter().map(|value| value.map(|value| value as i64)).collect::<Int64Array>());
            let array = cast(&plain, data_type).unwrap();
            (array.clone(), array, instant(&values, nanos))
        }
        _ => {
            let values = texts();
            let array: ArrayRef = Arc::new(values.iter().map(|text| text.map(str::as_bytes)).collect::<BinaryArray>());
            let variant = cast(&array, &DataType::BinaryView).unwrap();
            (
                array,
                variant,
                values
                    .into_iter()
                    .map(|text| text.map_or(Datum::Null, |text| Datum::Binary(text.as_bytes().to_vec())))
                    .collect(),
            )
        }
    };
    Column { name, array, variant, values }
}

/// Statistics of a column: its own bounds, or wider ones.
pub fn stats(column: &Column, loose: bool, random: &mut fastrand::Rng) -> ColumnStats {
    let stat = |value: &Datum| match (value, column.array.data_type()) {
        (Datum::Null | Datum::Written { .. }, _) => None,
        (Datum::Bool(value), _) => Some(Stat::Bool(*value)),
        (Datum::Exact(value, _), DataType::Decimal128(..)) => Some(Stat::Decimal(*value)),
        (Datum::Exact(value, _), data_type) if data_type.is_unsigned_integer() => Some(Stat::UInt(*value as u64)),
        (Datum::Exact(value, _), _) => Some(Stat::Int(*value as i64)),
        (Datum::Float(value), _) => Some(Stat::Float(*value)),
        (Datum::Text(text), _) => Some(Stat::Bytes(text.as_bytes().to_vec())),
        (Datum::Binary(bytes), _) => Some(Stat::Bytes(bytes.clone())),
        (Datum::Instant { nanos, .. }, data_type) => Some(Stat::Int(match data_type {
            DataType::Date32 => nanos / 86_400_000_000_000,
            DataType::Timestamp(TimeUnit::Millisecond, _) => nanos / 1_000_000,
            DataType::Timestamp(TimeUnit::Microsecond, _) => nanos / 1_000,
            _ => *nanos,
        } as i64)),
    };
    let found = column.values.iter().filter_map(stat).collect::<Vec<_>>();
    let mut min = found.iter().cloned().min_by(|a, b| a.compare(b).unwrap());
    let mut max = found.iter().cloned().max_by(|a, b| a.compare(b).unwrap());
    if loose {
        let by = random.u8(0..5);
        min = min.and_then(|min| widened(min, -1, by));
        let by = random.u8(0..5);
        max = max.and_then(|max| widened(max, 1, by));
    }
    ColumnStats { nulls: (ROWS - found.len()) as u64, min, max, exact: !loose }
}

fn widened(stat: Stat, side: i64, by: u8) -> Option<Stat> {
    if by == 0 {
        return None;
    }
    Some(match stat {
        Stat::Bool(_) => Stat::Bool(side > 0),
        Stat::Int(value) => Stat::Int(value.saturating_add(side * i64::from(by))),
        Stat::UInt(value) => Stat::UInt(value.saturating_add_signed(side * i64::from(by))),
        Stat::Decimal(value) => Stat::Decimal(value + i128::from(side) * i128::from(by)),
        Stat::Float(value) if side > 0 => {
            if by > 3 {
                Stat::Float(f64::NAN)
            } else {
                Stat::Float(value + f64::from(by))
            }
        }
        Stat::Float(value) => Stat::Float(
            [value - 1.0, f64::NEG_INFINITY, -0.0]
                .into_iter()
                .filter(|low| compare_floats(*low, value).is_le())
                .nth(usize::from(by) % 2)?,
        ),
        Stat::Bytes(mut bytes) => {
            if side > 0 {
                bytes.push(by)
            } else {
                bytes.truncate(1)
            }
            Stat::Bytes(bytes)
        }
    })
}
