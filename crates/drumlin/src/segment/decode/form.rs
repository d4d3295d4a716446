//! The Arrow type in which a column is decoded: its own, or the cheapest one with the same values.

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

use super::types::{changed, plain_type};

/// Which Arrow type [`decode`](crate::segment::decode) returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The column's own type.
    Exact,
    /// The cheapest type with the same values: decimals as [`native_type`] says; strings and binary as views,
    /// or as a dictionary with keys of 8, 16 or 32 bits if they are stored as one; everything else, all nested types,
    /// and decimals beyond their precision as the column's own type.
    Native,
    /// The same, but decimals of as many bits as they are stored in, and strings with offsets where they are decoded to such: types that
    /// differ between segments of one column.
    Stored,
}

/// How a segment stores values, as far as it matters to the types in which they are handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PhysicalForm {
    /// Value by value.
    #[default]
    Values,
    /// Strings and binary as a dictionary with keys of 8 bits.
    Dictionary8,
    /// Strings and binary as a dictionary with keys of 16 bits.
    Dictionary16,
    /// Timestamps in nanoseconds, all of which are whole microseconds. Earlier versions noted it; now it says no more than [`PhysicalForm::Values`].
    Micros,
}

/// The cheapest Arrow type that holds the values of every one of several segments of a column of type `data_type`:
/// decimals as wide as their precision needs; strings and binary as a dictionary if all segments keep one, else as views.
pub fn native_type(data_type: &DataType, kept: impl Iterator<Item = PhysicalForm>) -> DataType {
    if let Some(plain) = plain_type(data_type) {
        let widest = kept.reduce(|a, b| match (a, b) {
            (PhysicalForm::Values, _) | (_, PhysicalForm::Values) => PhysicalForm::Values,
            (PhysicalForm::Dictionary16, _) | (_, PhysicalForm::Dictionary16) => PhysicalForm::Dictionary16,
            _ => PhysicalForm::Dictionary8,
        });
        let dictionary = |key| DataType::Dictionary(Box::new(key), Box::new(plain.clone()));
        return match widest {
            Some(PhysicalForm::Dictionary8) => dictionary(DataType::UInt8),
            Some(PhysicalForm::Dictionary16) => dictionary(DataType::UInt16),
            _ if plain == DataType::Utf8 => DataType::Utf8View,
            _ => DataType::BinaryView,
        };
    }
    match data_type {
        DataType::Decimal128(digits @ ..=9, scale) | DataType::Decimal256(digits @ ..=9, scale) => {
            DataType::Decimal32(*digits, *scale)
        }
        DataType::Decimal128(digits @ ..=18, scale) | DataType::Decimal256(digits @ ..=18, scale) => {
            DataType::Decimal64(*digits, *scale)
        }
        other => other.clone(),
    }
}

/// The Arrow type of a column for which engines push down most: strings as a dictionary if all segments keep one, decimals of 128 bits; never views,
/// half floats, or decimals of 256 bits, at any depth, of which one column makes a table useless to an engine that has no such type. It
/// holds the same values, whatever other segments may be added, except decimals of more than 38 digits, which are refused when they are read.
pub fn engine_type(data_type: &DataType, kept: impl Iterator<Item = PhysicalForm>) -> DataType {
    let mut kept = kept.peekable();
    let known = kept.peek().is_some();
    match plain_type(data_type) {
        Some(plain) if known && kept.all(|kept| kept != PhysicalForm::Values) => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(plain))
        }
        _ => match known_to_engines(data_type) {
            DataType::Decimal32(digits, scale) | DataType::Decimal64(digits, scale) => {
                DataType::Decimal128(digits, scale)
            }
            known => known,
        },
    }
}

/// Decimals in as few bits as their digits need, in which an engine computes with them; other types as they are.
pub fn narrow_decimal(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Decimal128(..) => native_type(data_type, std::iter::empty()),
        other => other.clone(),
    }
}

/// A type that engines know, with the same values. Beside a dictionary within another column they push no filter.
fn known_to_engines(data_type: &DataType) -> DataType {
    use DataType::*;
    /// The digits that engines have.
    const DIGITS: u8 = 38;
    let known = changed(data_type, &|part| match part {
        Utf8View => Utf8,
        BinaryView => Binary,
        Float16 => Float32,
        Dictionary(_, values) => *values,
        ListView(field) => List(field),
        LargeListView(field) => LargeList(field),
        Decimal32(digits, scale) | Decimal64(digits, scale) | Decimal128(digits, scale) | Decimal256(digits, scale)
            if scale < 0 =>
        {
            Decimal128(digits.saturating_add(scale.unsigned_abs()).min(DIGITS), 0)
        }
        Decimal256(digits, scale) => Decimal128(digits.min(DIGITS), scale.min(DIGITS as i8)),
        other => other,
    });
    match data_type {
        Dictionary(_, values) if known == **values => data_type.clone(),
        _ => known,
    }
}

/// The same type with texts and bytes in offsets of 64 bits in the place of views, at any depth.
pub fn without_views(data_type: &DataType) -> DataType {
    changed(data_type, &|part| match part {
        DataType::Utf8View => DataType::LargeUtf8,
        DataType::BinaryView => DataType::LargeBinary,
        other => other,
    })
}
