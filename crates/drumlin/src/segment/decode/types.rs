//! Types within types, the plain type of strings, and the memory that values of a type take.

use std::sync::Arc;

use arrow::array::{AnyDictionaryArray, Array, ArrayRef, AsArray, GenericListViewArray, OffsetSizeTrait};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};

/// The direct child fields of a nested type.
pub fn children(data_type: &DataType) -> &[FieldRef] {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => std::slice::from_ref(field),
        DataType::Struct(fields) => fields,
        _ => &[],
    }
}

/// A type with every type in it, and then itself, replaced by what `change` makes of it.
pub fn changed(data_type: &DataType, change: &impl Fn(DataType) -> DataType) -> DataType {
    let field = |field: &FieldRef| {
        let new = changed(field.data_type(), change);
        if new == *field.data_type() { field.clone() } else { Arc::new(Field::clone(field).with_data_type(new)) }
    };
    change(match data_type {
        DataType::Dictionary(key, values) => DataType::Dictionary(key.clone(), Box::new(changed(values, change))),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::List(inner) => DataType::List(field(inner)),
        DataType::LargeList(inner) => DataType::LargeList(field(inner)),
        DataType::ListView(inner) => DataType::ListView(field(inner)),
        DataType::LargeListView(inner) => DataType::LargeListView(field(inner)),
        DataType::FixedSizeList(inner, size) => DataType::FixedSizeList(field(inner), *size),
        DataType::Map(inner, sorted) => DataType::Map(field(inner), *sorted),
        other => other.clone(),
    })
}

/// Whether `is` holds for a type or one within it.
pub fn holds(data_type: &DataType, is: &impl Fn(&DataType) -> bool) -> bool {
    let within = match data_type {
        DataType::Dictionary(_, values) => holds(values, is),
        _ => children(data_type).iter().any(|field| holds(field.data_type(), is)),
    };
    within || is(data_type)
}

/// The place of each row's value among the values of a dictionary; any place under a null. Zeroes if it has no values, where Arrow
/// panics.
pub fn places_of(dictionary: &dyn AnyDictionaryArray) -> Vec<usize> {
    if dictionary.values().is_empty() { vec![0; dictionary.len()] } else { dictionary.normalized_keys() }
}

/// The Arrow type with 32-bit offsets for any type of string or binary; `None` for other types.
pub fn plain_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(DataType::Utf8),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Some(DataType::Binary),
        _ => None,
    }
}

/// The minimum size of a value in an array, without its children; strings without their own bytes.
pub(in crate::segment) fn own_width(data_type: &DataType) -> u64 {
    match data_type {
        DataType::FixedSizeBinary(size) => u64::try_from(*size).unwrap_or(0),
        DataType::Utf8 | DataType::Binary | DataType::List(_) | DataType::Map(..) => 4,
        DataType::LargeUtf8 | DataType::LargeBinary | DataType::LargeList(_) | DataType::ListView(_) => 8,
        DataType::Utf8View | DataType::BinaryView | DataType::LargeListView(_) => 16,
        DataType::Dictionary(key, _) => own_width(key),
        DataType::Boolean => 1,
        other => other.primitive_width().unwrap_or(0) as u64,
    }
}

/// The same for a null, including the children that a null has too.
pub(in crate::segment) fn width(data_type: &DataType) -> u64 {
    let below = match data_type {
        DataType::Struct(fields) => {
            fields.iter().fold(0_u64, |sum, field| sum.saturating_add(width(field.data_type())))
        }
        DataType::FixedSizeList(field, size) => {
            width(field.data_type()).saturating_mul(u64::try_from(*size).unwrap_or(0))
        }
        _ => 0,
    };
    below.saturating_add(own_width(data_type))
}

/// The memory that decoding an array's segment takes, by these measures.
pub(in crate::segment) fn decoded_bytes(array: &ArrayRef) -> u64 {
    let own = own_width(array.data_type()) * array.len() as u64;
    let below = match array.data_type() {
        DataType::Struct(_) => array.as_struct().columns().iter().map(decoded_bytes).sum(),
        DataType::List(_) => of_elements(array.as_list::<i32>().values(), array.as_list::<i32>().offsets()),
        DataType::LargeList(_) => of_elements(array.as_list::<i64>().values(), array.as_list::<i64>().offsets()),
        DataType::Map(..) => {
            let columns = array.as_map().entries().columns().iter();
            columns.map(|column| of_elements(column, array.as_map().offsets())).sum()
        }
        DataType::FixedSizeList(_, size) => {
            let elements = array.len() * usize::try_from(*size).unwrap_or(0);
            decoded_bytes(&array.as_fixed_size_list().values().slice(0, elements))
        }
        DataType::ListView(_) => of_views(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => of_views(array.as_list_view::<i64>()),
        DataType::Dictionary(..) => decoded_bytes(array.as_any_dictionary().values()),
        _ => 0,
    };
    own + below
}

/// The bytes that the texts, or binary values, of a column take, each counted as often as there are rows with it; where a column
/// has several nested in it, those of the one with the most. O(rows) of texts that are held as views or in dictionaries, else
/// O(columns).
pub fn text_bytes(array: &ArrayRef) -> u64 {
    match array.data_type() {
        DataType::Utf8 => span(array.as_string::<i32>().offsets()),
        DataType::LargeUtf8 => span(array.as_string::<i64>().offsets()),
        DataType::Binary => span(array.as_binary::<i32>().offsets()),
        DataType::LargeBinary => span(array.as_binary::<i64>().offsets()),
        DataType::Utf8View => array.as_string_view().lengths().map(u64::from).sum(),
        DataType::BinaryView => array.as_binary_view().lengths().map(u64::from).sum(),
        DataType::Dictionary(_, values) if plain_type(values).is_none() => 0,
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let length = |at: usize| text_bytes(&dictionary.values().slice(at, 1));
            let lengths: Vec<u64> = (0..dictionary.values().len()).map(length).collect();
            places_of(dictionary).iter().filter_map(|key| lengths.get(*key)).sum()
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(text_bytes).max().unwrap_or(0),
        DataType::List(_) => text_bytes(&used(array.as_list::<i32>().values(), array.as_list::<i32>().offsets())),
        DataType::LargeList(_) => text_bytes(&used(array.as_list::<i64>().values(), array.as_list::<i64>().offsets())),
        DataType::FixedSizeList(..) => text_bytes(array.as_fixed_size_list().values()),
        DataType::ListView(_) => viewed_text_bytes(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => viewed_text_bytes(array.as_list_view::<i64>()),
        DataType::Map(..) => {
            let columns = array.as_map().entries().columns().iter();
            columns.map(|column| text_bytes(&used(column, array.as_map().offsets()))).max().unwrap_or(0)
        }
        _ => 0,
    }
}

fn viewed_text_bytes<O: OffsetSizeTrait>(list: &GenericListViewArray<O>) -> u64 {
    let (first, last) = view_range(list);
    text_bytes(&list.values().slice(first, last - first))
}

fn span<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> u64 {
    (offsets[offsets.len() - 1].as_usize() - offsets[0].as_usize()) as u64
}

fn used<O: OffsetSizeTrait>(values: &ArrayRef, offsets: &OffsetBuffer<O>) -> ArrayRef {
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    values.slice(first, last - first)
}

fn of_elements<O: OffsetSizeTrait>(values: &ArrayRef, offsets: &OffsetBuffer<O>) -> u64 {
    decoded_bytes(&used(values, offsets))
}

fn of_views<O: OffsetSizeTrait>(list: &GenericListViewArray<O>) -> u64 {
    let (first, last) = view_range(list);
    decoded_bytes(&list.values().slice(first, last - first))
}

/// The range of elements that a list view's lists use.
pub(in crate::segment) fn view_range<O: OffsetSizeTrait>(list: &GenericListViewArray<O>) -> (usize, usize) {
    let range = |row: usize| (list.offsets()[row].as_usize(), list.sizes()[row].as_usize());
    let used = (0..list.len()).filter(|row| list.is_valid(*row)).map(range).filter(|(_, size)| *size > 0);
    let range = used.map(|(offset, size)| (offset, offset + size)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    range.unwrap_or_default()
}
