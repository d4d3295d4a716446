//! The Arrow type in which a column is decoded: its own, or the cheapest one with the same values.

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

use super::types::plain_type;

/// Which Arrow type [`decode`](super::decode) returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The column's own type.
    Exact,
    /// The cheapest type with the same values: decimals as [`native_type`] says; strings and binary as views,
    /// or as a dictionary with keys of 8, 16 or 32 bits if they are stored as one; everything else, all nested types,
    /// and decimals beyond their precision as the column's own type.
    Native,
}

/// How a segment stores strings and binary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kept {
    /// Value by value; so are all other types.
    #[default]
    Values,
    /// As a dictionary with keys of 8 bits.
    Dictionary8,
    /// As a dictionary with keys of 16 bits.
    Dictionary16,
}

/// The cheapest Arrow type that holds the values of every one of several segments of a column of type `data_type`:
/// decimals as wide as their precision needs; strings and binary as a dictionary if all segments keep one, else as views.
pub fn native_type(data_type: &DataType, kept: impl Iterator<Item = Kept>) -> DataType {
    if let Some(plain) = plain_type(data_type) {
        let widest = kept.reduce(|a, b| match (a, b) {
            (Kept::Values, _) | (_, Kept::Values) => Kept::Values,
            (Kept::Dictionary16, _) | (_, Kept::Dictionary16) => Kept::Dictionary16,
            _ => Kept::Dictionary8,
        });
        let dictionary = |key| DataType::Dictionary(Box::new(key), Box::new(plain.clone()));
        return match widest {
            Some(Kept::Dictionary8) => dictionary(DataType::UInt8),
            Some(Kept::Dictionary16) => dictionary(DataType::UInt16),
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
