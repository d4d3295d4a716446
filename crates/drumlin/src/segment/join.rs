//! Puts pieces of a column end to end. Dictionary columns get one dictionary: the first piece's values, then those that
//! others add, in order; Arrow's own concatenation leaves values in it twice.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int64Array, RecordBatch, UInt64Array};
use arrow::compute::{CastOptions, cast, cast_with_options, concat, take};
use arrow::datatypes::{
    ArrowDictionaryKeyType, DataType, Int8Type, Int16Type, Int32Type, Int64Type, SchemaRef, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow::row::{RowConverter, SortField};

use crate::base::{Error, Result};

/// Joins pieces of one type, at least one. `SchemaMismatch` if the joined dictionary has more values than its keys can
/// name.
pub fn join(pieces: &[ArrayRef]) -> Result<ArrayRef> {
    if let [piece] = pieces {
        return Ok(piece.clone());
    }
    let refs: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
    let DataType::Dictionary(key, _) = pieces[0].data_type() else {
        return Ok(concat(&refs)?);
    };
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
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    let keys = cast_with_options(&Int64Array::from(keys), key, &exact).map_err(|_| {
        let n = values.len();
        Error::schema_mismatch(format!("{n} values in one dictionary, more than keys of type {key} can name"))
    })?;
    Ok(match **key {
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

/// The values of all pieces, each once, and for each piece the place of each of its own.
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
        // The first piece's values stay as they are, unless it has one twice itself.
        let all = at == 0 && fresh.len() == rows.num_rows();
        joined.push(if all { values(piece) } else { take(&values(piece), &UInt64Array::from(fresh), None)? });
        places.push(own);
    }
    let refs: Vec<&dyn Array> = joined.iter().map(AsRef::as_ref).collect();
    Ok((concat(&refs)?, places))
}

/// Joins batches of one schema.
pub fn join_batches(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch> {
    let column = |index: usize| {
        let pieces: Vec<ArrayRef> = batches.iter().map(|batch| batch.column(index).clone()).collect();
        join(&pieces).map_err(|e| e.context(format!("column '{}'", schema.field(index).name())))
    };
    let columns = (0..schema.fields().len()).map(column).collect::<Result<_>>()?;
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
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
}
