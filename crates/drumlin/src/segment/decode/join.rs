//! Concatenates pieces of a column. Dictionaries, at any depth, are merged into one: the first piece's values, then those
//! that the others add, in order. Arrow's own concatenation leaves duplicate values, and panics where nested dictionaries do
//! not fit their keys.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBufferBuilder, DictionaryArray, FixedSizeListArray, GenericListArray,
    GenericListViewArray, Int64Array, MapArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions, StructArray,
    UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{CastOptions, cast, cast_with_options, concat};
use arrow::datatypes::{
    ArrowDictionaryKeyType, DataType, FieldRef, Int8Type, Int16Type, Int32Type, Int64Type, SchemaRef, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow::row::{RowConverter, SortField};

use super::select::take_rows;
use super::types::{holds, view_range};
use crate::base::{Error, Result, TypeName};

/// Joins pieces of one type, at least one.
///
/// # Errors
/// `SchemaMismatch` if the joined dictionary has more values than its keys can address.
pub fn join(pieces: &[ArrayRef]) -> Result<ArrayRef> {
    if let [piece] = pieces {
        return Ok(piece.clone());
    }
    match pieces[0].data_type() {
        DataType::Dictionary(key, _) => join_keyed(pieces, key),
        data_type if holds(data_type, &|part| matches!(part, DataType::Dictionary(..))) => join_nested(pieces),
        _ => {
            let refs: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
            Ok(concat(&refs)?)
        }
    }
}

/// Joins nested pieces child by child.
fn join_nested(pieces: &[ArrayRef]) -> Result<ArrayRef> {
    let rows = pieces.iter().map(|piece| piece.len()).sum();
    let nulls = join_nulls(pieces, rows);
    Ok(match pieces[0].data_type() {
        DataType::Struct(fields) => {
            let column =
                |at: usize| join(&pieces.iter().map(|piece| piece.as_struct().column(at).clone()).collect::<Vec<_>>());
            let columns = (0..fields.len()).map(column).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rows)?)
        }
        DataType::List(field) => join_lists::<i32>(pieces, field, nulls)?,
        DataType::LargeList(field) => join_lists::<i64>(pieces, field, nulls)?,
        DataType::Map(field, sorted) => {
            let maps = pieces.iter().map(|piece| piece.as_map());
            let lists = maps.map(|map| (map.offsets(), Arc::new(map.entries().clone()) as ArrayRef)).collect();
            let (offsets, entries) = join_offsets(lists)?;
            Arc::new(MapArray::try_new(field.clone(), offsets, entries.as_struct().clone(), nulls, *sorted)?)
        }
        DataType::FixedSizeList(field, size) => {
            let lists = pieces.iter().map(|piece| piece.as_fixed_size_list());
            let values = lists.map(|list| list.values().slice(0, list.len() * *size as usize)).collect::<Vec<_>>();
            let values = join(&values)?;
            Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *size, values, nulls, rows)?)
        }
        DataType::ListView(field) => join_list_views::<i32>(pieces, field, nulls)?,
        DataType::LargeListView(field) => join_list_views::<i64>(pieces, field, nulls)?,
        other => return Err(Error::invalid(format!("values of type {} cannot be joined", TypeName(other)))),
    })
}

fn join_nulls(pieces: &[ArrayRef], rows: usize) -> Option<NullBuffer> {
    pieces.iter().any(|piece| piece.null_count() > 0).then(|| {
        let mut valid = BooleanBufferBuilder::new(rows);
        for piece in pieces {
            match piece.nulls() {
                Some(nulls) => valid.append_buffer(nulls.inner()),
                None => valid.append_n(piece.len(), true),
            }
        }
        NullBuffer::new(valid.finish())
    })
}

fn too_long<O>(elements: usize) -> impl FnOnce() -> Error {
    move || {
        Error::schema_mismatch(format!(
            "the lists have {elements} elements in total, more than {} bits can count; write fewer rows at a time",
            8 * size_of::<O>()
        ))
    }
}

/// The joined values of lists, and the lists' offsets among them.
fn join_offsets<O: OffsetSizeTrait>(lists: Vec<(&OffsetBuffer<O>, ArrayRef)>) -> Result<(OffsetBuffer<O>, ArrayRef)> {
    let (mut ends, mut end, mut values) = (vec![O::zero()], 0, Vec::with_capacity(lists.len()));
    for (offsets, all) in lists {
        let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
        let shift = |offset: &O| O::from_usize(offset.as_usize() - first + end);
        let shifted = offsets[1..].iter().map(shift).collect::<Option<Vec<O>>>();
        ends.extend(shifted.ok_or_else(too_long::<O>(end + last - first))?);
        end += last - first;
        values.push(all.slice(first, last - first));
    }
    Ok((OffsetBuffer::new(ends.into()), join(&values)?))
}

fn join_lists<O: OffsetSizeTrait>(
    pieces: &[ArrayRef],
    field: &FieldRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let lists = pieces.iter().map(|piece| piece.as_list::<O>());
    let (offsets, values) = join_offsets(lists.map(|list| (list.offsets(), list.values().clone())).collect())?;
    Ok(Arc::new(GenericListArray::<O>::try_new(field.clone(), offsets, values, nulls)?))
}

fn join_list_views<O: OffsetSizeTrait>(
    pieces: &[ArrayRef],
    field: &FieldRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let (mut offsets, mut sizes, mut values, mut end) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for piece in pieces {
        let list = piece.as_list_view::<O>();
        let range = |row: usize| (list.offsets()[row].as_usize(), list.sizes()[row].as_usize());
        let (first, last) = view_range(list);
        for row in 0..list.len() {
            let (offset, size) = if list.is_valid(row) { range(row) } else { (0, 0) };
            let from = if size > 0 { offset - first + end } else { 0 };
            offsets.push(O::from_usize(from).ok_or_else(too_long::<O>(from))?);
            sizes.push(O::usize_as(size));
        }
        values.push(list.values().slice(first, last - first));
        end += last - first;
    }
    let (offsets, sizes, values) = (ScalarBuffer::from(offsets), ScalarBuffer::from(sizes), join(&values)?);
    Ok(Arc::new(GenericListViewArray::<O>::try_new(field.clone(), offsets, sizes, values, nulls)?))
}

fn join_keyed(pieces: &[ArrayRef], key: &DataType) -> Result<ArrayRef> {
    let first = pieces[0].as_any_dictionary().values();
    let same = |piece: &ArrayRef| {
        let values = piece.as_any_dictionary().values();
        Arc::ptr_eq(values, first) || values == first
    };
    if pieces.iter().all(same) {
        let alike = |piece: &ArrayRef| piece.as_any_dictionary().with_values(first.clone());
        let alike: Vec<ArrayRef> = pieces.iter().map(alike).collect();
        let refs: Vec<&dyn Array> = alike.iter().map(AsRef::as_ref).collect();
        return Ok(concat(&refs)?);
    }
    let (values, places) = join_values(pieces)?;
    let mut keys: Vec<Option<i64>> = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
    for (piece, places) in pieces.iter().zip(places) {
        let own = cast(piece.as_any_dictionary().keys(), &DataType::Int64)?;
        keys.extend(own.as_primitive::<Int64Type>().iter().map(|key| key.map(|key| places[key as usize])));
    }
    keyed(keys, key, values)
}

/// A dictionary column with keys of type `key`. `SchemaMismatch` if there are too many values for them.
pub(in crate::segment) fn keyed(keys: Vec<Option<i64>>, key: &DataType, values: ArrayRef) -> Result<ArrayRef> {
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    let keys = cast_with_options(&Int64Array::from(keys), key, &exact).map_err(|_| {
        let n = values.len();
        Error::schema_mismatch(format!(
            "the dictionary has {n} values, more than keys of type {} can address",
            TypeName(key)
        ))
    })?;
    Ok(match key {
        DataType::Int8 => dictionary::<Int8Type>(&keys, values)?,
        DataType::Int16 => dictionary::<Int16Type>(&keys, values)?,
        DataType::Int32 => dictionary::<Int32Type>(&keys, values)?,
        DataType::Int64 => dictionary::<Int64Type>(&keys, values)?,
        DataType::UInt8 => dictionary::<UInt8Type>(&keys, values)?,
        DataType::UInt16 => dictionary::<UInt16Type>(&keys, values)?,
        DataType::UInt32 => dictionary::<UInt32Type>(&keys, values)?,
        _ => dictionary::<UInt64Type>(&keys, values)?,
    })
}

fn dictionary<K: ArrowDictionaryKeyType>(keys: &ArrayRef, values: ArrayRef) -> Result<ArrayRef> {
    Ok(Arc::new(DictionaryArray::<K>::try_new(keys.as_primitive::<K>().clone(), values)?))
}

/// The values of all pieces, each once, and for each piece the places of its own values among them.
fn join_values(pieces: &[ArrayRef]) -> Result<(ArrayRef, Vec<Vec<i64>>)> {
    let values = |piece: &ArrayRef| piece.as_any_dictionary().values().clone();
    let converter = RowConverter::new(vec![SortField::new(values(&pieces[0]).data_type().clone())])?;
    let rows = pieces.iter().map(|piece| converter.convert_columns(&[values(piece)])).collect::<Result<Vec<_>, _>>()?;
    let mut known: HashMap<&[u8], i64> = HashMap::new();
    let mut joined: Vec<ArrayRef> = Vec::with_capacity(pieces.len());
    let mut places = Vec::with_capacity(pieces.len());
    for (at, (piece, rows)) in pieces.iter().zip(&rows).enumerate() {
        let mut own = Vec::with_capacity(rows.num_rows());
        let mut fresh = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            let next = known.len() as i64;
            let found = *known.entry(row.data()).or_insert_with(|| {
                fresh.push(place as u64);
                next
            });
            own.push(found);
        }
        // The first piece's values stay as they are, unless they contain duplicates.
        let all = at == 0 && fresh.len() == rows.num_rows();
        joined.push(if all { values(piece) } else { take_rows(&values(piece), &UInt64Array::from(fresh))? });
        places.push(own);
    }
    Ok((join(&joined)?, places))
}

/// Rows of columns of one type, selected by column and row. `SchemaMismatch` as for [`join`].
pub fn interleave(sources: &[ArrayRef], places: &[(usize, usize)]) -> Result<ArrayRef> {
    if !holds(sources[0].data_type(), &|part| matches!(part, DataType::Dictionary(..))) {
        let refs: Vec<&dyn Array> = sources.iter().map(AsRef::as_ref).collect();
        return Ok(arrow::compute::interleave(&refs, places)?);
    }
    let starts = sources.iter().scan(0, |next, source| Some(std::mem::replace(next, *next + source.len() as u64)));
    let starts: Vec<u64> = starts.collect();
    let rows = places.iter().map(|(source, row)| starts[*source] + *row as u64);
    take_rows(&join(sources)?, &UInt64Array::from_iter_values(rows))
}

/// Joins batches of one schema.
pub fn join_batches(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch> {
    let column = |index: usize| {
        let pieces: Vec<ArrayRef> = batches.iter().map(|batch| batch.column(index).clone()).collect();
        join(&pieces).map_err(|e| e.context(format!("column '{}'", schema.field(index).name())))
    };
    let columns = (0..schema.fields().len()).map(column).collect::<Result<_>>()?;
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;

    use super::*;

    fn categories(keys: &[Option<i8>], values: &[&str]) -> ArrayRef {
        let values = Arc::new(StringArray::from(values.to_vec()));
        Arc::new(DictionaryArray::<Int8Type>::try_new(keys.iter().copied().collect(), values).unwrap())
    }

    fn texts(array: &ArrayRef) -> Vec<Option<String>> {
        let plain = cast(array, &DataType::Utf8).unwrap();
        plain.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn dictionaries_are_joined_in_order_and_hold_each_value_once() {
        let first = categories(&[Some(1), None, Some(0)], &["b", "a", "unused"]);
        let second = categories(&[Some(0), Some(1)], &["c", "a"]);
        let joined = join(&[first.clone(), second]).unwrap();
        let text = |s: &str| Some(s.to_owned());
        assert_eq!(texts(&joined), [text("a"), None, text("b"), text("c"), text("a")]);
        let values = joined.as_any_dictionary().values();
        assert_eq!(values.as_ref(), &StringArray::from(vec!["b", "a", "unused", "c"]) as &dyn Array);
        let twice = join(&[first.clone(), first]).unwrap();
        assert_eq!(twice.as_any_dictionary().values().len(), 3);
    }

    #[test]
    fn too_many_values_are_refused() {
        let many = |from: usize| {
            let values: Vec<String> = (from..from + 100).map(|i| i.to_string()).collect();
            let keys: Vec<Option<i8>> = (0..100).map(Some).collect();
            categories(&keys, &values.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let error = join(&[many(0), many(100)]).unwrap_err();
        assert!(error.message().contains("200 values"), "{error}");
    }

    /// Dictionaries of 100 values from `from` on, nested in every way.
    fn nested(from: usize) -> Vec<ArrayRef> {
        let values: Vec<String> = (from..from + 100).map(|i| format!("v{i}")).collect();
        let keys: Vec<Option<i8>> = (0..100).map(|key| (key % 9 > 0).then_some(key)).collect();
        let keyed = categories(&keys, &values.iter().map(String::as_str).collect::<Vec<_>>());
        let field = Arc::new(arrow::datatypes::Field::new("x", keyed.data_type().clone(), true));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        let key_field = Arc::new(arrow::datatypes::Field::new("key", DataType::Int64, false));
        let entries = StructArray::new(vec![key_field, field.clone()].into(), vec![numbers, keyed.clone()], None);
        let entry_field = Arc::new(arrow::datatypes::Field::new("entries", entries.data_type().clone(), false));
        let lengths = || OffsetBuffer::<i32>::from_lengths((0..50).map(|_| 2));
        let large = OffsetBuffer::<i64>::from_lengths((0..50).map(|_| 2));
        let nulls = Some(NullBuffer::from_iter((0..50).map(|row| row % 7 > 0)));
        let (offsets, sizes) = ((0..50).rev().map(|at| at * 2).collect(), vec![2; 50].into());
        vec![
            Arc::new(StructArray::new(vec![field.clone()].into(), vec![keyed.clone()], None)),
            Arc::new(GenericListArray::<i32>::new(field.clone(), lengths(), keyed.clone(), nulls.clone())),
            Arc::new(GenericListArray::<i64>::new(field.clone(), large, keyed.clone(), None)),
            Arc::new(FixedSizeListArray::new(field.clone(), 2, keyed.clone(), nulls.clone())),
            Arc::new(GenericListViewArray::<i32>::new(field.clone(), offsets, sizes, keyed, nulls)),
            Arc::new(MapArray::new(entry_field, lengths(), entries, None, false)),
        ]
    }

    #[test]
    fn nested_dictionaries_are_joined_or_refused() {
        let text = |array: &ArrayRef| -> Vec<String> {
            let text = |row| arrow::util::display::array_value_to_string(array, row).unwrap();
            (0..array.len()).map(text).collect()
        };
        for (a, b) in nested(0).into_iter().zip(nested(20)) {
            // 120 values in total.
            let parts = [a.slice(0, a.len() / 2), b.clone(), a.slice(a.len() / 2, a.len() - a.len() / 2)];
            let joined = join(&parts).unwrap();
            joined.to_data().validate_full().unwrap();
            assert_eq!(joined.data_type(), a.data_type());
            assert_eq!(text(&joined), parts.iter().flat_map(text).collect::<Vec<_>>(), "{}", a.data_type());
        }
        for (a, b) in nested(0).into_iter().zip(nested(100)) {
            let error = join(&[a, b]).unwrap_err();
            assert!(error.message().contains("more than keys of type int8"), "{error}");
        }
    }
}
