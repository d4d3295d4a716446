//! Columns without values that no row has: what a selection of rows leaves behind in dictionaries, and beside the lists of
//! list views, at any depth.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericListArray, GenericListViewArray, Int64Array, MapArray,
    OffsetSizeTrait, StructArray, UInt64Array,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use arrow::row::{RowConverter, SortField};

use crate::base::{Error, Result};
use crate::segment::decode::join::keyed;
use crate::segment::decode::select::take_rows;
use crate::segment::decode::types::holds;

/// The same rows, of the same type, without values that none of them has. O(values) where there are such types, else O(1).
pub fn compact(array: &ArrayRef) -> Result<ArrayRef> {
    let keeps_others =
        |part: &DataType| matches!(part, DataType::Dictionary(..) | DataType::ListView(_) | DataType::LargeListView(_));
    if !holds(array.data_type(), &keeps_others) {
        return Ok(array.clone());
    }
    let nulls = array.nulls().cloned();
    Ok(match array.data_type() {
        DataType::Dictionary(key, _) => compact_keyed(array, key)?,
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().map(compact).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, array.len())?)
        }
        DataType::List(field) => compact_lists::<i32>(array, field)?,
        DataType::LargeList(field) => compact_lists::<i64>(array, field)?,
        DataType::Map(field, sorted) => {
            let map = array.as_map();
            let entries = Arc::new(map.entries().clone()) as ArrayRef;
            let (offsets, entries) =
                (OffsetBuffer::from_lengths(map.offsets().lengths()), compact(&used(map.offsets(), &entries))?);
            Arc::new(MapArray::try_new(field.clone(), offsets, entries.as_struct().clone(), nulls, *sorted)?)
        }
        DataType::FixedSizeList(field, size) => {
            let elements = array.len() * usize::try_from(*size).unwrap_or(0);
            let values = compact(&array.as_fixed_size_list().values().slice(0, elements))?;
            Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *size, values, nulls, array.len())?)
        }
        DataType::ListView(field) => compact_views::<i32>(array, field)?,
        DataType::LargeListView(field) => compact_views::<i64>(array, field)?,
        _ => array.clone(),
    })
}

/// The values of a dictionary, as bytes that are equal where the values are.
#[derive(Debug, Default)]
pub struct DictionaryUse {
    /// All of them.
    pub all: BTreeSet<Vec<u8>>,
    /// Those that a row has; as text too, if they are texts.
    pub used: BTreeMap<Vec<u8>, Option<String>>,
}

/// The values of each dictionary in a column, at any depth, in the order of the type's parts.
pub fn dictionary_values(array: &ArrayRef) -> Result<Vec<DictionaryUse>> {
    let mut found = Vec::new();
    collect(array, &mut |dictionary| {
        let values = dictionary.as_any_dictionary().values();
        let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
        let rows = converter.convert_columns(std::slice::from_ref(values))?;
        let used = cast(dictionary.as_any_dictionary().keys(), &DataType::Int64)?;
        let used: BTreeSet<i64> = used.as_primitive::<Int64Type>().iter().flatten().collect();
        let is_text = matches!(values.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let texts = is_text.then(|| cast(values, &DataType::LargeUtf8)).transpose()?;
        let text = |row: usize| texts.as_ref().map(|texts| texts.as_string::<i64>().value(row).to_owned());
        let bytes = |row: usize| rows.row(row).data().to_vec();
        let used = used.into_iter().map(|key| (bytes(key as usize), text(key as usize)));
        found.push(DictionaryUse { all: (0..values.len()).map(bytes).collect(), used: used.collect() });
        Ok(())
    })?;
    Ok(found)
}

/// Calls `each` with each dictionary in a column.
fn collect(array: &ArrayRef, each: &mut dyn FnMut(&ArrayRef) -> Result<()>) -> Result<()> {
    match array.data_type() {
        DataType::Dictionary(..) => each(array),
        DataType::Struct(_) => array.as_struct().columns().iter().try_for_each(|column| collect(column, each)),
        DataType::List(_) => collect(&used(array.as_list::<i32>().offsets(), array.as_list::<i32>().values()), each),
        DataType::LargeList(_) => {
            collect(&used(array.as_list::<i64>().offsets(), array.as_list::<i64>().values()), each)
        }
        DataType::Map(..) => {
            let entries = Arc::new(array.as_map().entries().clone()) as ArrayRef;
            collect(&used(array.as_map().offsets(), &entries), each)
        }
        DataType::FixedSizeList(_, size) => {
            let elements = array.len() * usize::try_from(*size).unwrap_or(0);
            collect(&array.as_fixed_size_list().values().slice(0, elements), each)
        }
        DataType::ListView(_) => {
            collect(&take_rows(array.as_list_view::<i32>().values(), &viewed(array.as_list_view::<i32>()))?, each)
        }
        DataType::LargeListView(_) => {
            collect(&take_rows(array.as_list_view::<i64>().values(), &viewed(array.as_list_view::<i64>()))?, each)
        }
        _ => Ok(()),
    }
}

fn compact_keyed(array: &ArrayRef, key: &DataType) -> Result<ArrayRef> {
    let dictionary = array.as_any_dictionary();
    let own = cast(dictionary.keys(), &DataType::Int64)?;
    let own: &Int64Array = own.as_primitive::<Int64Type>();
    let mut places: BTreeMap<i64, i64> = own.iter().flatten().map(|key| (key, 0)).collect();
    places.values_mut().zip(0..).for_each(|(place, next)| *place = next);
    let values = UInt64Array::from_iter_values(places.keys().map(|key| *key as u64));
    let values = compact(&take_rows(dictionary.values(), &values)?)?;
    keyed(own.iter().map(|key| key.map(|key| places[&key])).collect(), key, values)
}

/// The elements that lists use.
fn used<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, values: &ArrayRef) -> ArrayRef {
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    values.slice(first, last - first)
}

/// The places of the elements that list views use, list by list.
fn viewed<O: OffsetSizeTrait>(list: &GenericListViewArray<O>) -> UInt64Array {
    let range = |row: usize| {
        let start = list.offsets()[row].as_usize() as u64;
        start..start + viewed_size(list, row) as u64
    };
    UInt64Array::from_iter_values((0..list.len()).flat_map(range))
}

fn viewed_size<O: OffsetSizeTrait>(list: &GenericListViewArray<O>, row: usize) -> usize {
    if list.is_null(row) { 0 } else { list.sizes()[row].as_usize() }
}

fn compact_lists<O: OffsetSizeTrait>(array: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    let list: &GenericListArray<O> = array.as_list();
    let values = compact(&used(list.offsets(), list.values()))?;
    let offsets = OffsetBuffer::from_lengths(list.offsets().lengths());
    Ok(Arc::new(GenericListArray::<O>::try_new(field.clone(), offsets, values, list.nulls().cloned())?))
}

fn compact_views<O: OffsetSizeTrait>(array: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    let list: &GenericListViewArray<O> = array.as_list_view();
    let values = compact(&take_rows(list.values(), &viewed(list))?)?;
    let too_many = || {
        Error::schema_mismatch(
            "the lists of a column have too many elements for their type; write fewer rows at a time",
        )
    };
    let (mut offsets, mut sizes, mut end) = (Vec::with_capacity(list.len()), Vec::with_capacity(list.len()), 0);
    for row in 0..list.len() {
        offsets.push(O::from_usize(end).ok_or_else(too_many)?);
        let size = viewed_size(list, row);
        sizes.push(O::from_usize(size).ok_or_else(too_many)?);
        end += size;
    }
    let (offsets, sizes) = (ScalarBuffer::from(offsets), ScalarBuffer::from(sizes));
    let nulls = list.nulls().cloned();
    Ok(Arc::new(GenericListViewArray::<O>::try_new(field.clone(), offsets, sizes, values, nulls)?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, DictionaryArray, ListViewArray, StringArray};
    use arrow::compute::filter;
    use arrow::datatypes::{Field, Int8Type};

    use super::*;

    #[test]
    fn values_of_other_rows_are_gone_at_any_depth() {
        let texts: DictionaryArray<Int8Type> = ["a", "secret", "b", "a"].into_iter().map(Some).chain([None]).collect();
        let keyed: ArrayRef = Arc::new(texts);
        let field = Arc::new(Field::new("item", keyed.data_type().clone(), true));
        let views =
            ListViewArray::try_new(field.clone(), vec![3, 1, 0].into(), vec![2, 1, 1].into(), keyed.clone(), None);
        let lists = GenericListArray::<i32>::try_new(field, OffsetBuffer::from_lengths([1, 1, 3]), keyed.clone(), None);
        for array in [Arc::new(views.unwrap()) as ArrayRef, Arc::new(lists.unwrap())] {
            let kept = filter(&array, &BooleanArray::from(vec![true, false, true])).unwrap();
            let compacted = compact(&kept).unwrap();
            assert_eq!(compacted.as_ref(), kept.as_ref());
            let text = |array: &ArrayRef| format!("{:?}", array.to_data());
            let values = match compacted.data_type() {
                DataType::ListView(_) => compacted.as_list_view::<i32>().values().clone(),
                _ => compacted.as_list::<i32>().values().clone(),
            };
            let values = values.as_any_dictionary().values().clone();
            let values: &StringArray = values.as_string();
            assert!(values.iter().flatten().all(|value| value != "secret"), "{}", text(&compacted));
        }
    }
}
