//! Functions of strings. Characters are Unicode's; upper and lower case are its full mappings, as in Python.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, GenericStringBuilder, Int64Array, LargeStringArray};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Int64Type};

use crate::base::{Error, Result};
use crate::filter::column;
use crate::filter::text::scalar::ScalarFunction;

/// The most bytes of strings that a function makes of the rows of a batch: twice what a row group holds.
const BYTES_MAX: usize = 512 << 20;

/// Strings in one physical form.
fn strings(values: &ArrayRef) -> Result<LargeStringArray> {
    Ok(cast(&column::plain(values)?, &DataType::LargeUtf8)?.as_string::<i64>().clone())
}

/// A function of each string; of a dictionary's, once each.
pub fn mapped(values: &ArrayRef, function: ScalarFunction) -> Result<ArrayRef> {
    if let Some(dictionary) = values.as_any_dictionary_opt() {
        let mapped = self::mapped(dictionary.values(), function)?;
        return Ok(take(&mapped, dictionary.keys(), None)?);
    }
    let strings = strings(values)?;
    let mut made = GenericStringBuilder::<i64>::with_capacity(strings.len(), strings.value_data().len());
    for text in &strings {
        match (text, function) {
            (None, _) => made.append_null(),
            (Some(text), ScalarFunction::Lower) => made.append_value(text.to_lowercase()),
            (Some(text), ScalarFunction::Upper) => made.append_value(text.to_uppercase()),
            (Some(text), ScalarFunction::TrimStart) => made.append_value(text.trim_start_matches(' ')),
            (Some(text), ScalarFunction::TrimEnd) => made.append_value(text.trim_end_matches(' ')),
            (Some(text), _) => made.append_value(text.trim_matches(' ')),
        }
    }
    Ok(Arc::new(made.finish()))
}

/// Characters of strings, bytes of binary data.
pub fn length(values: &ArrayRef) -> Result<ArrayRef> {
    let values = column::plain(values)?;
    let lengths: Int64Array = match values.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            strings(&values)?.iter().map(|text| text.map(|text| text.chars().count() as i64)).collect()
        }
        _ => {
            let bytes = cast(&values, &DataType::LargeBinary)?;
            bytes.as_binary::<i64>().iter().map(|bytes| bytes.map(|bytes| bytes.len() as i64)).collect()
        }
    };
    Ok(Arc::new(lengths))
}

/// Characters from one on, counted from 1, or from the end if below 0; `count` of them, or all that are left.
pub fn substring(values: &ArrayRef, start: &ArrayRef, count: Option<&ArrayRef>) -> Result<ArrayRef> {
    let (strings, start) = (strings(values)?, start.as_primitive::<Int64Type>());
    let count = count.map(|count| count.as_primitive::<Int64Type>());
    let mut made = GenericStringBuilder::<i64>::new();
    for row in 0..strings.len() {
        if strings.is_null(row) || start.is_null(row) || count.is_some_and(|count| count.is_null(row)) {
            made.append_null();
            continue;
        }
        let text = strings.value(row);
        let start = i128::from(start.value(row));
        let begin = match start {
            // A place before the first character counts, too.
            0.. => start - 1,
            _ => text.chars().count() as i128 + start,
        };
        let end = match count.map(|count| count.value(row)) {
            Some(count @ ..0) => {
                return Err(Error::invalid(format!("substring: expected a length of at least 0, found {count}")));
            }
            Some(count) => begin + i128::from(count),
            None => i128::MAX,
        };
        let place = |characters: i128| {
            let at = usize::try_from(characters.max(0)).unwrap_or(usize::MAX);
            text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte)
        };
        made.append_value(&text[place(begin)..place(end)]);
    }
    Ok(Arc::new(made.finish()))
}

/// Each string with another in every place of a third.
pub fn replace(values: &[ArrayRef]) -> Result<ArrayRef> {
    let all = values.iter().map(strings).collect::<Result<Vec<_>>>()?;
    let parts = |row: usize| -> Option<[&str; 3]> {
        let is_null = all.iter().any(|strings| strings.is_null(row));
        (!is_null).then(|| [&all[0], &all[1], &all[2]].map(|strings| strings.value(row)))
    };
    // An empty string is in no place.
    let places = |[text, from, _]: [&str; 3]| if from.is_empty() { 0 } else { text.matches(from).count() };
    let mut total = 0;
    for parts in (0..all[0].len()).filter_map(parts) {
        let [text, from, to] = parts;
        let places = places(parts);
        let kept = text.len() - places * from.len();
        total = fits(total, kept.saturating_add(places.saturating_mul(to.len())))?;
    }
    let mut made = GenericStringBuilder::<i64>::with_capacity(all[0].len(), total);
    for row in 0..all[0].len() {
        match parts(row) {
            None => made.append_null(),
            Some([text, "", _]) => made.append_value(text),
            Some([text, from, to]) => made.append_value(text.replace(from, to)),
        }
    }
    Ok(Arc::new(made.finish()))
}

/// The strings one after the other; a null is none.
pub fn concat(values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let all = values.iter().map(strings).collect::<Result<Vec<_>>>()?;
    let parts =
        |row: usize| all.iter().filter(move |strings| strings.is_valid(row)).map(move |strings| strings.value(row));
    let mut total = 0;
    for row in 0..rows {
        total = fits(total, parts(row).map(str::len).sum())?;
    }
    let mut made = GenericStringBuilder::<i64>::with_capacity(rows, total);
    for row in 0..rows {
        made.append_value(parts(row).collect::<String>());
    }
    Ok(Arc::new(made.finish()))
}

/// The bytes made so far with `more`, if they may be made.
fn fits(made: usize, more: usize) -> Result<usize> {
    match made.saturating_add(more) {
        bytes @ 0..=BYTES_MAX => Ok(bytes),
        bytes => Err(Error::invalid(format!(
            "strings of {bytes} bytes would be made of some rows; at most {BYTES_MAX} can be"
        ))),
    }
}
