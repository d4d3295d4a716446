//! Arrays made by another library, checked where they enter.
//!
//! Arrow's C interface delivers memory written by other libraries: offsets may decrease, keys may be outside their
//! dictionary, text may not be UTF-8. Invariants: no kernel sees an array before each of its values was checked here; only
//! the requested rows are checked, so a large array that comes in slices is checked once and not once per slice; the result
//! has the rows and the nulls that the other library meant. That includes slices of nested arrays, whose children begin
//! where their parent's offset says: Arrow's own conversion applies the offset of a struct in a struct twice.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayData, ArrayRef, AsArray, DictionaryArray, FixedSizeListArray, GenericByteArray, GenericListArray,
    GenericListViewArray, MapArray, NullArray, OffsetSizeTrait, PrimitiveArray, RecordBatch, RecordBatchOptions,
    StructArray, make_array, new_empty_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowDictionaryKeyType, ByteArrayType, DataType, FieldRef, GenericBinaryType, GenericStringType, Int8Type,
    Int16Type, Int32Type, Int64Type, SchemaRef, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;

use super::stored::check_type;
use crate::base::{Error, Pool, Result, TypeName, caught};
use crate::segment::holds;
use crate::table::ROWS_MAX;

/// The number of rows checked at a time.
const PART_ROWS: usize = 4 * ROWS_MAX as usize;

/// Checking fewer values than this is faster than passing them to other threads.
const PARALLEL_MIN: usize = 1 << 16;

/// The rows of `rows`, a struct with the fields of `schema`, each column checked; in parallel, if that is worthwhile and
/// there is a pool.
///
/// # Errors
/// `InvalidArgument` if they do not keep Arrow's rules.
pub fn checked_rows(pool: Option<&Pool>, schema: &SchemaRef, rows: &ArrayData) -> Result<RecordBatch> {
    checked_range(pool, schema, rows, 0..rows.len())
}

/// The same in parts, so that a large batch is encoded while its rest is checked.
pub fn checked_parts(
    pool: Pool,
    schema: SchemaRef,
    rows: ArrayData,
) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
    // Dictionaries are checked as a whole, and so are the values of list views.
    let whole =
        |part: &DataType| matches!(part, DataType::Dictionary(..) | DataType::ListView(_) | DataType::LargeListView(_));
    let step = match holds(rows.data_type(), &whole) {
        true => rows.len().max(1),
        false => PART_ROWS,
    };
    // Even without rows there is one part: its schema is checked.
    let starts = (0..rows.len().max(1)).step_by(step);
    starts.map(move |from| checked_range(Some(&pool), &schema, &rows, from..(from + step).min(rows.len())))
}

/// The rows `range` of `rows`.
fn checked_range(
    pool: Option<&Pool>,
    schema: &SchemaRef,
    rows: &ArrayData,
    range: Range<usize>,
) -> Result<RecordBatch> {
    let same = matches!(rows.data_type(), DataType::Struct(fields) if fields == schema.fields());
    if !same || rows.child_data().len() != schema.fields().len() {
        return Err(malformed(format!(
            "a batch has type {}, which is not the schema of its stream",
            TypeName(rows.data_type())
        )));
    }
    if rows.null_count() > 0 {
        return Err(malformed(format!("{} rows of a batch are null as a whole", rows.null_count())));
    }
    let column = |at: usize| {
        let from = place(rows, range.start)?;
        let taken = caught(|| take(&rows.child_data()[at], from, range.len()));
        taken.map_err(|e| e.context(format!("column '{}'", schema.field(at).name())))
    };
    let columns = 0..schema.fields().len();
    let columns: Vec<ArrayRef> = match pool {
        Some(pool) if range.len().saturating_mul(columns.len()) >= PARALLEL_MIN => {
            pool.map(columns.collect(), column)?
        }
        _ => columns.map(column).collect::<Result<_>>()?,
    };
    let options = RecordBatchOptions::new().with_row_count(Some(range.len()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(broken)
}

/// An array that another library made, checked.
///
/// # Errors
/// `InvalidArgument` if it does not keep Arrow's rules.
pub fn checked_array(data: &ArrayData) -> Result<ArrayRef> {
    caught(|| {
        check_type(data.data_type())?;
        take(data, 0, data.len())
    })
}

fn malformed(what: impl AsRef<str>) -> Error {
    Error::invalid(format!("the Arrow data is malformed: {}", what.as_ref()))
}

fn broken(error: ArrowError) -> Error {
    malformed(error.to_string())
}

/// The rows `start..start + rows` of `data`.
fn take(data: &ArrayData, start: usize, rows: usize) -> Result<ArrayRef> {
    if start.checked_add(rows).is_none_or(|end| end > data.len()) {
        let (len, data_type) = (data.len(), TypeName(data.data_type()));
        return Err(malformed(format!("an array of {data_type} has {len} values; expected {rows} from {start} on")));
    }
    let data_type = data.data_type();
    Ok(match data_type {
        DataType::Null => Arc::new(NullArray::new(rows)),
        DataType::Struct(fields) => {
            let at = place(data, start)?;
            let columns = data.child_data().iter().map(|child| take(child, at, rows)).collect::<Result<Vec<_>>>()?;
            let nulls = nulls(data, start, rows);
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rows).map_err(broken)?)
        }
        // Without rows, there need not be offsets.
        _ if rows == 0 => new_empty_array(data_type),
        DataType::List(field) => take_list::<i32>(data, start, rows, field)?,
        DataType::LargeList(field) => take_list::<i64>(data, start, rows, field)?,
        DataType::Map(field, sorted) => {
            let (offsets, entries) = take_lists::<i32>(data, start, rows)?;
            let entries = entries.as_struct_opt().ok_or_else(|| malformed("a map has no entries"))?.clone();
            let nulls = nulls(data, start, rows);
            Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *sorted).map_err(broken)?)
        }
        DataType::FixedSizeList(field, size) => {
            let width =
                usize::try_from(*size).map_err(|_| malformed(format!("lists have the negative size {size}")))?;
            let both = place(data, start)?.checked_mul(width).zip(rows.checked_mul(width));
            let (from, count) =
                both.ok_or_else(|| malformed(format!("{rows} lists of {size} elements each are too many")))?;
            let (values, nulls) = (take(child(data)?, from, count)?, nulls(data, start, rows));
            let array = FixedSizeListArray::try_new_with_length(field.clone(), *size, values, nulls, rows);
            Arc::new(array.map_err(broken)?)
        }
        DataType::ListView(field) => take_list_view::<i32>(data, start, rows, field)?,
        DataType::LargeListView(field) => take_list_view::<i64>(data, start, rows, field)?,
        DataType::Dictionary(key, _) => match **key {
            DataType::Int8 => take_keyed::<Int8Type>(data, start, rows)?,
            DataType::Int16 => take_keyed::<Int16Type>(data, start, rows)?,
            DataType::Int32 => take_keyed::<Int32Type>(data, start, rows)?,
            DataType::Int64 => take_keyed::<Int64Type>(data, start, rows)?,
            DataType::UInt8 => take_keyed::<UInt8Type>(data, start, rows)?,
            DataType::UInt16 => take_keyed::<UInt16Type>(data, start, rows)?,
            DataType::UInt32 => take_keyed::<UInt32Type>(data, start, rows)?,
            DataType::UInt64 => take_keyed::<UInt64Type>(data, start, rows)?,
            _ => {
                return Err(malformed(format!(
                    "the keys of a dictionary have type {}; expected integers",
                    TypeName(key)
                )));
            }
        },
        DataType::Utf8 => take_bytes::<GenericStringType<i32>>(data, start, rows)?,
        DataType::LargeUtf8 => take_bytes::<GenericStringType<i64>>(data, start, rows)?,
        DataType::Binary => take_bytes::<GenericBinaryType<i32>>(data, start, rows)?,
        DataType::LargeBinary => take_bytes::<GenericBinaryType<i64>>(data, start, rows)?,
        DataType::Union(..) | DataType::RunEndEncoded(..) => {
            return Err(Error::invalid(format!("values of type {} cannot be stored", TypeName(data_type))));
        }
        _ => {
            // No children, so only the buffers are sliced.
            let mut own = data.slice(start, rows);
            own.align_buffers();
            own.validate_data().map_err(broken)?;
            make_array(own)
        }
    })
}

/// The place of row `start` in the buffers and children.
fn place(data: &ArrayData, start: usize) -> Result<usize> {
    data.offset()
        .checked_add(start)
        .ok_or_else(|| malformed(format!("an array has an offset of {}, which is too large", data.offset())))
}

fn nulls(data: &ArrayData, start: usize, rows: usize) -> Option<NullBuffer> {
    // Counted again: the other library's count is not trusted.
    data.nulls().map(|nulls| nulls.slice(start, rows)).filter(|nulls| nulls.null_count() > 0)
}

fn child(data: &ArrayData) -> Result<&ArrayData> {
    match data.child_data() {
        [child] => Ok(child),
        children => Err(malformed(format!(
            "an array of {} has {} children; expected 1",
            TypeName(data.data_type()),
            children.len()
        ))),
    }
}

/// Values of a buffer, from row `start` on.
fn words<T: arrow::datatypes::ArrowNativeType>(
    data: &ArrayData,
    buffer: usize,
    start: usize,
    count: usize,
) -> Result<ScalarBuffer<T>> {
    let short = || {
        let data_type = TypeName(data.data_type());
        malformed(format!("buffer {buffer} of an array of {data_type} has fewer than {count} values"))
    };
    let bytes = data.buffers().get(buffer).ok_or_else(short)?;
    let (at, width) = (place(data, start)?, size_of::<T>());
    let range = at.checked_mul(width).zip(count.checked_mul(width));
    let inside = |(from, len): &(usize, usize)| from.checked_add(*len).is_some_and(|end| end <= bytes.len());
    let (from, len) = range.filter(inside).ok_or_else(short)?;
    let slice = bytes.slice_with_length(from, len);
    let aligned = slice.as_ptr().align_offset(align_of::<T>()) == 0;
    Ok(ScalarBuffer::from(if aligned { slice } else { Buffer::from_slice_ref(slice.as_slice()) }))
}

/// The offsets of rows, shifted to begin at 0, and where they begin and end among `limit` values.
fn offsets<O: OffsetSizeTrait>(
    data: &ArrayData,
    start: usize,
    rows: usize,
    limit: usize,
) -> Result<(OffsetBuffer<O>, usize, usize)> {
    let offsets = words::<O>(data, 0, start, rows + 1)?;
    let (first, last) = (offsets[0], offsets[rows]);
    if first < O::zero() || offsets.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(malformed(format!("the offsets of an array of {} decrease", TypeName(data.data_type()))));
    }
    if last.as_usize() > limit {
        let data_type = TypeName(data.data_type());
        return Err(malformed(format!("an offset of an array of {data_type} is {last:?}, past its {limit} values")));
    }
    let from_zero = match first.as_usize() {
        0 => offsets,
        _ => offsets.iter().map(|offset| *offset - first).collect(),
    };
    Ok((OffsetBuffer::new(from_zero), first.as_usize(), last.as_usize()))
}

fn take_bytes<T: ByteArrayType<Offset: OffsetSizeTrait>>(
    data: &ArrayData,
    start: usize,
    rows: usize,
) -> Result<ArrayRef> {
    let bytes = data
        .buffers()
        .get(1)
        .ok_or_else(|| malformed(format!("an array of {} has no bytes", TypeName(data.data_type()))))?;
    let (offsets, first, last) = offsets::<T::Offset>(data, start, rows, bytes.len())?;
    let bytes = bytes.slice_with_length(first, last - first);
    Ok(Arc::new(GenericByteArray::<T>::try_new(offsets, bytes, nulls(data, start, rows)).map_err(broken)?))
}

fn take_lists<O: OffsetSizeTrait>(data: &ArrayData, start: usize, rows: usize) -> Result<(OffsetBuffer<O>, ArrayRef)> {
    let child = child(data)?;
    let (offsets, first, last) = offsets::<O>(data, start, rows, child.len())?;
    Ok((offsets, take(child, first, last - first)?))
}

fn take_list<O: OffsetSizeTrait>(data: &ArrayData, start: usize, rows: usize, field: &FieldRef) -> Result<ArrayRef> {
    let (offsets, values) = take_lists::<O>(data, start, rows)?;
    let array = GenericListArray::<O>::try_new(field.clone(), offsets, values, nulls(data, start, rows));
    Ok(Arc::new(array.map_err(broken)?))
}

fn take_list_view<O: OffsetSizeTrait>(
    data: &ArrayData,
    start: usize,
    rows: usize,
    field: &FieldRef,
) -> Result<ArrayRef> {
    let child = child(data)?;
    let (offsets, sizes) = (words::<O>(data, 0, start, rows)?, words::<O>(data, 1, start, rows)?);
    let end = |(offset, size): (&O, &O)| {
        let both = offset.to_usize().zip(size.to_usize());
        both.and_then(|(offset, size)| offset.checked_add(size)).is_some_and(|end| end <= child.len())
    };
    if !offsets.iter().zip(sizes.iter()).all(end) {
        let (data_type, values) = (TypeName(data.data_type()), child.len());
        return Err(malformed(format!("a list in an array of {data_type} reaches past its {values} values")));
    }
    let (values, nulls) = (take(child, 0, child.len())?, nulls(data, start, rows));
    let array = GenericListViewArray::<O>::try_new(field.clone(), offsets, sizes, values, nulls);
    Ok(Arc::new(array.map_err(broken)?))
}

fn take_keyed<K: ArrowDictionaryKeyType>(data: &ArrayData, start: usize, rows: usize) -> Result<ArrayRef> {
    let keys = PrimitiveArray::<K>::try_new(words(data, 0, start, rows)?, nulls(data, start, rows)).map_err(broken)?;
    let child = child(data)?;
    let array = DictionaryArray::<K>::try_new(keys, take(child, 0, child.len())?);
    Ok(Arc::new(array.map_err(broken)?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, ArrayDataBuilder, Int32Array};
    use arrow::datatypes::{Field, Fields};

    use super::*;

    /// A struct of one field, from row `offset` on, as sliced by other libraries: the child stays whole.
    fn sliced_struct(child: ArrayData, offset: usize, rows: usize) -> ArrayData {
        let fields = Fields::from(vec![Field::new("x", child.data_type().clone(), true)]);
        let data = ArrayDataBuilder::new(DataType::Struct(fields)).len(rows).offset(offset).add_child_data(child);
        data.build().unwrap()
    }

    #[test]
    fn the_offset_of_a_struct_in_a_struct_counts_once() {
        let numbers = Int32Array::from_iter_values(0..10).into_data();
        for (outer, inner) in [(0, 0), (1, 0), (5, 0), (2, 3), (0, 4)] {
            let rows = 3;
            let below = sliced_struct(numbers.clone(), inner, 10 - inner);
            let data = sliced_struct(sliced_struct(below, 0, 10 - inner), outer, rows);
            let array = checked_array(&data).unwrap();
            let column = array.as_struct().column(0).as_struct().column(0).as_struct().column(0).clone();
            let expected = Int32Array::from_iter_values((0..10).skip(inner + outer).take(rows));
            assert_eq!(column.as_ref(), &expected as &dyn Array, "{outer} and {inner}");
        }
    }

    #[test]
    fn fixed_lists_of_structs_begin_where_their_offset_says() {
        let below = sliced_struct(Int32Array::from_iter_values(0..20).into_data(), 0, 20);
        let field = Arc::new(Field::new("item", below.data_type().clone(), true));
        let data = ArrayDataBuilder::new(DataType::FixedSizeList(field, 2)).len(4).offset(3).add_child_data(below);
        let array = checked_array(&data.build().unwrap()).unwrap();
        let column = array.as_fixed_size_list().values().as_struct().column(0).clone();
        assert_eq!(column.as_ref(), &Int32Array::from_iter_values(6..14) as &dyn Array);
    }
}
