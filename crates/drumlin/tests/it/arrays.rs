//! Random arrays of every Arrow type, nested in every way, with garbage under their nulls.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::*;
use fastrand::Rng;

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())].clone()
}

fn zone(rng: &mut Rng) -> Option<Arc<str>> {
    pick(rng, &[None, Some("UTC"), Some("+01:30"), Some("Europe/Berlin")]).map(Into::into)
}

/// A type without children.
pub fn flat_type(rng: &mut Rng) -> DataType {
    use DataType::*;
    let unit = pick(rng, &[TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]);
    match rng.u8(..12) {
        0 => pick(rng, &[Int8, Int16, Int32, Int64]),
        1 => pick(rng, &[UInt8, UInt16, UInt32, UInt64]),
        2 => pick(rng, &[Float16, Float32, Float64]),
        3 => pick(rng, &[Utf8, LargeUtf8, Utf8View]),
        4 => pick(rng, &[Binary, LargeBinary, BinaryView]),
        5 => pick(rng, &[Decimal32(9, 2), Decimal64(18, 4), Decimal128(20, 3), Decimal256(40, 6)]),
        6 => pick(rng, &[Decimal128(5, 1), Decimal256(9, 0), Decimal256(15, 2), Decimal128(38, 10)]),
        7 => pick(rng, &[Date32, Date64, Time32(TimeUnit::Second), Time64(TimeUnit::Nanosecond)]),
        8 => Timestamp(unit, zone(rng)),
        9 => pick(rng, &[Duration(unit), Interval(IntervalUnit::YearMonth), Interval(IntervalUnit::DayTime)]),
        10 => pick(rng, &[Null, Interval(IntervalUnit::MonthDayNano), FixedSizeBinary(1), FixedSizeBinary(7)]),
        _ => Boolean,
    }
}

fn key_type(rng: &mut Rng) -> DataType {
    use DataType::*;
    pick(rng, &[Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64])
}

/// Any type, nested up to `depth`.
pub fn any_type(rng: &mut Rng, depth: usize) -> DataType {
    if depth == 0 {
        return flat_type(rng);
    }
    let field = |rng: &mut Rng, name: &str| {
        let nullable = rng.u8(..5) > 0;
        let data_type = any_type(rng, depth - 1);
        // A column of only nulls must be nullable.
        let nullable = nullable || data_type == DataType::Null;
        Arc::new(Field::new(name, data_type, nullable))
    };
    match rng.u8(..12) {
        0 | 1 => {
            let count = rng.usize(..4);
            DataType::Struct((0..count).map(|at| field(rng, &format!("f{at}"))).collect())
        }
        2 => DataType::List(field(rng, "item")),
        3 => DataType::LargeList(field(rng, "element")),
        4 => DataType::ListView(field(rng, "item")),
        5 => DataType::LargeListView(field(rng, "item")),
        6 => {
            // Lists of size 0 are refused.
            let size = if rng.u8(..30) == 0 { 0 } else { rng.i32(1..4) };
            DataType::FixedSizeList(field(rng, "item"), size)
        }
        7 => {
            let key = Field::new("key", pick(rng, &[DataType::Utf8, DataType::Int32]), false);
            let entries = DataType::Struct(vec![Arc::new(key), field(rng, "value")].into());
            DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
        }
        8 | 9 => {
            let values = match rng.u8(..4) {
                0 => any_type(rng, depth - 1),
                _ => flat_type(rng),
            };
            // Whether there are nulls in the values of non-null keys is not observable.
            let values = if values == DataType::Null { DataType::Utf8 } else { values };
            DataType::Dictionary(Box::new(key_type(rng)), Box::new(values))
        }
        _ => flat_type(rng),
    }
}

fn text(rng: &mut Rng) -> String {
    match rng.u8(..6) {
        0 => String::new(),
        1 => "the same text, of more than twelve bytes".into(),
        2 => format!("Ä{}", rng.u16(..)),
        3 => "x".repeat(rng.usize(..40)),
        _ => format!("v{}", rng.u8(..9)),
    }
}

fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeBinary(size) => *size as usize,
        other => other.primitive_width().unwrap(),
    }
}

/// A number that fits a type, usually a small one.
fn number(rng: &mut Rng, data_type: &DataType) -> i128 {
    let digits = |digits: u8| 10_i128.pow(u32::from(digits.min(38)));
    let small = i128::from(rng.i8(..));
    let any = match data_type {
        DataType::Decimal32(p, _)
        | DataType::Decimal64(p, _)
        | DataType::Decimal128(p, _)
        | DataType::Decimal256(p, _) => {
            return match rng.u8(..3) {
                0 => rng.i128(1 - digits(*p)..digits(*p)),
                _ => small % digits(*p),
            };
        }
        // Within the range that every library accepts as a time.
        DataType::Date32 => rng.i128(-100_000..100_000),
        DataType::Date64 => rng.i128(-100_000..100_000) * 86_400_000,
        DataType::Time32(_) | DataType::Time64(_) => return rng.i128(0..86_400),
        DataType::Timestamp(..) => i128::from(rng.i32(..)),
        _ => rng.i128(..),
    };
    if rng.bool() { any } else { small }
}

/// `rows` values of a type, some null if `nulls`.
pub fn array(rng: &mut Rng, data_type: &DataType, rows: usize, nulls: bool) -> ArrayRef {
    let share = if nulls { pick(rng, &[0.0, 0.2, 1.0]) } else { 0.0 };
    let mask = (share > 0.0).then(|| NullBuffer::from_iter((0..rows).map(|_| rng.f64() >= share)));
    let mask = mask.filter(|mask| mask.null_count() > 0);
    match data_type {
        DataType::Null => new_null_array(data_type, rows),
        DataType::Boolean => Arc::new(BooleanArray::new((0..rows).map(|_| rng.bool()).collect(), mask)),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let plain = StringArray::from_iter_values((0..rows).map(|_| text(rng)));
            cast(&StringArray::new(plain.offsets().clone(), plain.values().clone(), mask), data_type).unwrap()
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let plain = BinaryArray::from_iter_values((0..rows).map(|_| text(rng).into_bytes()));
            cast(&BinaryArray::new(plain.offsets().clone(), plain.values().clone(), mask), data_type).unwrap()
        }
        DataType::Struct(fields) => {
            let columns = fields.iter().map(|f| array(rng, f.data_type(), rows, f.is_nullable())).collect();
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, mask, rows).unwrap())
        }
        DataType::List(f) => {
            let offsets = lengths::<i32>(rng, rows);
            let values = array(rng, f.data_type(), offsets[rows] as usize, f.is_nullable());
            Arc::new(ListArray::new(f.clone(), offsets, values, mask))
        }
        DataType::LargeList(f) => {
            let offsets = lengths::<i64>(rng, rows);
            let values = array(rng, f.data_type(), offsets[rows] as usize, f.is_nullable());
            Arc::new(LargeListArray::new(f.clone(), offsets, values, mask))
        }
        DataType::ListView(f) => {
            let values = array(rng, f.data_type(), rows + 6, f.is_nullable());
            let offsets = (0..rows).map(|_| rng.i32(0..=rows as i32)).collect::<ScalarBuffer<_>>();
            let sizes = (0..rows).map(|_| rng.i32(0..6)).collect();
            Arc::new(ListViewArray::new(f.clone(), offsets, sizes, values, mask))
        }
        DataType::LargeListView(f) => {
            let values = array(rng, f.data_type(), rows + 6, f.is_nullable());
            let offsets = (0..rows).map(|_| rng.i64(0..=rows as i64)).collect::<ScalarBuffer<_>>();
            let sizes = (0..rows).map(|_| rng.i64(0..6)).collect();
            Arc::new(LargeListViewArray::new(f.clone(), offsets, sizes, values, mask))
        }
        DataType::FixedSizeList(f, size) => {
            let values = array(rng, f.data_type(), rows * *size as usize, f.is_nullable());
            Arc::new(FixedSizeListArray::try_new_with_length(f.clone(), *size, values, mask, rows).unwrap())
        }
        DataType::Map(f, sorted) => {
            let offsets = lengths::<i32>(rng, rows);
            let entries = array(rng, f.data_type(), offsets[rows] as usize, false).as_struct().clone();
            Arc::new(MapArray::new(f.clone(), offsets, entries, mask, *sorted))
        }
        DataType::Dictionary(key, value) => {
            let count = pick(rng, &[1, 5, 60]);
            let with_nulls = nulls && rng.u8(..3) == 0;
            let values = array(rng, value, count, with_nulls);
            let keys = Int64Array::new((0..rows).map(|_| rng.i64(0..count as i64)).collect(), mask);
            let keys = cast(&keys, key).unwrap().to_data();
            make_array(
                keys.into_builder().data_type(data_type.clone()).add_child_data(values.to_data()).build().unwrap(),
            )
        }
        other => {
            let width = width(other);
            let mut bytes = Vec::with_capacity(rows * width);
            for _ in 0..rows {
                let value = number(rng, other);
                let sign = if value < 0 { 0xff } else { 0 };
                let mut slot = vec![sign; width];
                let len = width.min(16);
                slot[..len].copy_from_slice(&value.to_le_bytes()[..len]);
                bytes.extend(slot);
            }
            let data =
                ArrayData::builder(other.clone()).len(rows).add_buffer(Buffer::from_slice_ref(bytes)).nulls(mask);
            make_array(data.align_buffers(true).build().unwrap())
        }
    }
}

fn lengths<O: OffsetSizeTrait>(rng: &mut Rng, rows: usize) -> OffsetBuffer<O> {
    OffsetBuffer::from_lengths((0..rows).map(|_| rng.usize(..4)))
}

/// The same type with wider keys is the same to a reader: rows are compared by what they show.
pub fn shown(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "null".into();
    }
    let list = |values: ArrayRef| {
        let shown: Vec<String> = (0..values.len()).map(|row| shown(&values, row)).collect();
        format!("[{}]", shown.join(", "))
    };
    match array.data_type() {
        DataType::Null => "null".into(),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Utf8 => format!("{:?}", array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => format!("{:?}", array.as_string::<i64>().value(row)),
        DataType::Utf8View => format!("{:?}", array.as_string_view().value(row)),
        DataType::Binary => format!("{:?}", array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => format!("{:?}", array.as_binary::<i64>().value(row)),
        DataType::BinaryView => format!("{:?}", array.as_binary_view().value(row)),
        DataType::List(_) => list(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(array.as_list::<i64>().value(row)),
        DataType::ListView(_) => list(array.as_list_view::<i32>().value(row)),
        DataType::LargeListView(_) => list(array.as_list_view::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(array.as_fixed_size_list().value(row)),
        DataType::Map(..) => list(Arc::new(array.as_map().value(row))),
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter().map(|column| shown(column, row)).collect::<Vec<_>>();
            format!("({})", columns.join(", "))
        }
        DataType::Dictionary(..) => {
            let keyed = array.as_any_dictionary();
            shown(keyed.values(), keyed.normalized_keys()[row])
        }
        // Narrower decimals show the same digits; everything else shows its bytes.
        DataType::Decimal32(..) => array.as_primitive::<Decimal32Type>().value(row).to_string(),
        DataType::Decimal64(..) => array.as_primitive::<Decimal64Type>().value(row).to_string(),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value(row).to_string(),
        DataType::Decimal256(..) => array.as_primitive::<Decimal256Type>().value(row).to_string(),
        other => {
            let (data, width) = (array.to_data(), width(other));
            let from = (data.offset() + row) * width;
            format!("{:?}", &data.buffers()[0].as_slice()[from..from + width])
        }
    }
}
