//! Selects rows of a column or of a batch. Two kinds of columns are handled here. Lists, maps and fixed-size lists of
//! dictionaries: Arrow's own kernels copy them by `MutableArrayData`, which panics if a dictionary has exactly as many values as
//! its keys can address. And binary values of no bytes: Arrow's own kernels count what they take by its bytes.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray,
    GenericListArray, MapArray, OffsetSizeTrait, PrimitiveArray, RecordBatch, RecordBatchOptions, StructArray,
    UInt32Array, UInt64Array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::{filter, filter_record_batch, prep_null_mask_filter, take};
use arrow::datatypes::DataType;

use super::types::holds;
use crate::base::Result;

/// Whether a type contains lists of dictionaries or values of no bytes, at any depth.
fn is_beyond_arrow(data_type: &DataType) -> bool {
    let dictionary = |part: &DataType| matches!(part, DataType::Dictionary(..));
    holds(data_type, &|part| match part {
        DataType::FixedSizeBinary(0) => true,
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
            holds(field.data_type(), &dictionary)
        }
        DataType::FixedSizeList(field, _) => holds(field.data_type(), &dictionary),
        _ => false,
    })
}

/// The rows at `places`, in that order. O(rows taken), including their contents.
pub fn take_rows<I>(array: &ArrayRef, places: &PrimitiveArray<I>) -> Result<ArrayRef>
where
    I: ArrowPrimitiveType,
    I::Native: Into<u64>,
{
    if !is_beyond_arrow(array.data_type()) {
        return Ok(take(array, places, None)?);
    }
    take_nested(array, &places.values().iter().map(|place| (*place).into()).collect::<Vec<u64>>().into())
}

/// The same of a type that is beyond Arrow's kernels.
fn take_nested(array: &ArrayRef, places: &UInt64Array) -> Result<ArrayRef> {
    let nulls = taken_nulls(array, places);
    Ok(match array.data_type() {
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().map(|column| take_rows(column, places));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, places.len())?)
        }
        DataType::List(_) => take_lists::<i32>(array, places, nulls)?,
        DataType::LargeList(_) => take_lists::<i64>(array, places, nulls)?,
        DataType::Map(field, sorted) => {
            let map = array.as_map();
            let (offsets, within) = taken_spans(places, nulls.as_ref(), |row| {
                let offsets = map.value_offsets();
                (offsets[row] as u64, offsets[row + 1] as u64)
            });
            let entries = take_rows(&(Arc::new(map.entries().clone()) as ArrayRef), &within)?;
            let offsets = OffsetBuffer::from_lengths(offsets);
            Arc::new(MapArray::try_new(field.clone(), offsets, entries.as_struct().clone(), nulls, *sorted)?)
        }
        DataType::FixedSizeList(field, size) => {
            let (list, width) = (array.as_fixed_size_list(), *size as u64);
            let within = places.values().iter().flat_map(|row| row * width..(row + 1) * width);
            let values = take_rows(list.values(), &UInt64Array::from_iter_values(within))?;
            Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *size, values, nulls, places.len())?)
        }
        DataType::FixedSizeBinary(0) => {
            Arc::new(FixedSizeBinaryArray::try_new_with_len(0, Buffer::default(), nulls, places.len())?)
        }
        // A dictionary's keys are taken, not its values.
        _ => take(array, places, None)?,
    })
}

fn taken_nulls(array: &ArrayRef, places: &UInt64Array) -> Option<NullBuffer> {
    let nulls = array.logical_nulls()?;
    Some(places.values().iter().map(|row| nulls.is_valid(*row as usize)).collect())
}

/// The lengths of the lists taken, and the places of their elements.
fn taken_spans(
    places: &UInt64Array,
    nulls: Option<&NullBuffer>,
    span: impl Fn(usize) -> (u64, u64),
) -> (Vec<usize>, UInt64Array) {
    let spans = places.values().iter().enumerate().map(|(at, row)| match nulls {
        Some(nulls) if nulls.is_null(at) => (0, 0),
        _ => span(*row as usize),
    });
    let spans: Vec<(u64, u64)> = spans.collect();
    let lengths = spans.iter().map(|(start, end)| (end - start) as usize).collect();
    (lengths, UInt64Array::from_iter_values(spans.into_iter().flat_map(|(start, end)| start..end)))
}

fn take_lists<O: OffsetSizeTrait>(
    array: &ArrayRef,
    places: &UInt64Array,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let list: &GenericListArray<O> = array.as_list();
    let (lengths, within) = taken_spans(places, nulls.as_ref(), |row| {
        let offsets = list.value_offsets();
        (offsets[row].as_usize() as u64, offsets[row + 1].as_usize() as u64)
    });
    let values = take_rows(list.values(), &within)?;
    let (DataType::List(field) | DataType::LargeList(field)) = array.data_type() else { unreachable!("a list") };
    Ok(Arc::new(GenericListArray::<O>::try_new(field.clone(), OffsetBuffer::from_lengths(lengths), values, nulls)?))
}

/// The rows of a batch at `places`, in that order.
pub fn take_batch(batch: &RecordBatch, places: impl IntoIterator<Item = u32>) -> Result<RecordBatch> {
    let places: UInt32Array = places.into_iter().collect::<Vec<_>>().into();
    let columns = batch.columns().iter().map(|column| take_rows(column, &places)).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

/// The rows for which `keep` is true.
pub(in crate::segment) fn filter_rows(array: &ArrayRef, keep: &BooleanArray) -> Result<ArrayRef> {
    if !is_beyond_arrow(array.data_type()) {
        return Ok(filter(array, keep)?);
    }
    let keep = if keep.null_count() > 0 { prep_null_mask_filter(keep) } else { keep.clone() };
    take_rows(array, &UInt64Array::from_iter_values(keep.values().set_indices().map(|row| row as u64)))
}

/// The rows of a batch for which `keep` is true.
pub fn filter_batch(batch: &RecordBatch, keep: &BooleanArray) -> Result<RecordBatch> {
    if !batch.columns().iter().any(|column| is_beyond_arrow(column.data_type())) {
        return Ok(filter_record_batch(batch, keep)?);
    }
    let columns = batch.columns().iter().map(|column| filter_rows(column, keep));
    let options = RecordBatchOptions::new().with_row_count(Some(keep.true_count()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns.collect::<Result<_>>()?, &options)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int8Array, ListArray, StringArray};
    use arrow::datatypes::{Field, Int8Type};

    use super::*;

    /// Lists of two elements, and a null one, of a dictionary with as many values as its keys can address.
    fn lists() -> ListArray {
        let values = StringArray::from_iter_values((0..128).map(|n| format!("v{n}")));
        let keys = Int8Array::from_iter_values((0..128).map(|n| n as i8));
        let values = arrow::array::DictionaryArray::<Int8Type>::try_new(keys, Arc::new(values)).unwrap();
        let field = Arc::new(Field::new("item", values.data_type().clone(), true));
        let nulls: NullBuffer = (0..64).map(|row| row != 5).collect();
        ListArray::try_new(field, OffsetBuffer::from_lengths([2; 64]), Arc::new(values), Some(nulls)).unwrap()
    }

    fn texts(array: &ArrayRef) -> Vec<Option<Vec<String>>> {
        let texts = |list: ArrayRef| {
            let plain = arrow::compute::cast(&list, &DataType::Utf8).unwrap();
            plain.as_string::<i32>().iter().map(|text| text.unwrap().to_owned()).collect()
        };
        array.as_list::<i32>().iter().map(|list| list.map(texts)).collect()
    }

    #[test]
    fn a_full_dictionary_in_lists_is_taken_and_filtered() {
        let all = Arc::new(lists()) as ArrayRef;
        let expected = |rows: &[usize]| {
            let pair = |row: &usize| (*row != 5).then(|| vec![format!("v{}", row * 2), format!("v{}", row * 2 + 1)]);
            rows.iter().map(pair).collect::<Vec<_>>()
        };
        let taken = take_rows(&all, &UInt32Array::from(vec![63, 5, 0, 63])).unwrap();
        assert_eq!(texts(&taken), expected(&[63, 5, 0, 63]));
        let sliced = take_rows(&all.slice(3, 10), &UInt64Array::from(vec![2, 9])).unwrap();
        assert_eq!(texts(&sliced), expected(&[5, 12]));
        let batch = RecordBatch::try_from_iter([("l", all)]).unwrap();
        let keep: BooleanArray = (0..64).map(|row| Some(row % 9 == 5)).collect();
        let kept = filter_batch(&batch, &keep).unwrap();
        assert_eq!(texts(kept.column(0)), expected(&[5, 14, 23, 32, 41, 50, 59]));
        assert_eq!(texts(take_batch(&batch, [7]).unwrap().column(0)), expected(&[7]));
    }
}
