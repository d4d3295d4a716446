//! Keys as plain values: what [`crate::Table::get`] takes.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::SchemaRef;

use crate::base::{Error, Result, TypeName};

/// The value of one column of a key.
#[derive(Clone, Debug)]
pub struct KeyValue(ArrayRef);

/// What can be used as a key: a value, or a tuple or list of values, one for each column of the key.
pub trait IntoKey {
    /// The values, in the order of the key's columns.
    fn into_key(self) -> Vec<KeyValue>;
}

macro_rules! values {
    ($($type:ty => |$value:ident| $array:expr),* $(,)?) => {
        $(
            impl From<$type> for KeyValue {
                fn from($value: $type) -> Self {
                    Self(Arc::new($array))
                }
            }

            impl IntoKey for $type {
                fn into_key(self) -> Vec<KeyValue> {
                    vec![self.into()]
                }
            }
        )*
    };
}

values! {
    i8 => |value| Int64Array::from(vec![i64::from(value)]),
    i16 => |value| Int64Array::from(vec![i64::from(value)]),
    i32 => |value| Int64Array::from(vec![i64::from(value)]),
    i64 => |value| Int64Array::from(vec![value]),
    u8 => |value| UInt64Array::from(vec![u64::from(value)]),
    u16 => |value| UInt64Array::from(vec![u64::from(value)]),
    u32 => |value| UInt64Array::from(vec![u64::from(value)]),
    u64 => |value| UInt64Array::from(vec![value]),
    f64 => |value| Float64Array::from(vec![value]),
    bool => |value| BooleanArray::from(vec![value]),
    &str => |value| StringArray::from(vec![value]),
    String => |value| StringArray::from(vec![value]),
    &String => |value| StringArray::from(vec![value.as_str()]),
    &[u8] => |value| BinaryArray::from_vec(vec![value]),
    [u8; 16] => |value| BinaryArray::from_vec(vec![&value]),
}

impl IntoKey for KeyValue {
    fn into_key(self) -> Vec<KeyValue> {
        vec![self]
    }
}

impl IntoKey for Vec<KeyValue> {
    fn into_key(self) -> Vec<KeyValue> {
        self
    }
}

macro_rules! tuples {
    ($($($name:ident)*),* $(,)?) => {
        $(
            #[allow(non_snake_case, reason = "the names of the types are those of the values")]
            impl<$($name: Into<KeyValue>),*> IntoKey for ($($name,)*) {
                fn into_key(self) -> Vec<KeyValue> {
                    let ($($name,)*) = self;
                    vec![$($name.into()),*]
                }
            }
        )*
    };
}

tuples!(A, A B, A B C, A B C D, A B C D E, A B C D E F);

/// A batch with one key, in the types of the key's columns.
///
/// # Errors
/// `InvalidArgument` for another number of values, and for one that its column does not hold.
pub fn key_batch(schema: &SchemaRef, values: Vec<KeyValue>) -> Result<RecordBatch> {
    let fields = schema.fields();
    if values.len() != fields.len() {
        let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        return Err(Error::invalid(format!(
            "the key has {} columns ({}), but {} values were given",
            fields.len(),
            names.join(", "),
            values.len()
        )));
    }
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    let mut columns = Vec::new();
    for (field, KeyValue(value)) in fields.iter().zip(values) {
        let refused = |found: &dyn Array| {
            Error::invalid(format!(
                "column '{}' of the key has type {}; a {} was given that is none",
                field.name(),
                TypeName(field.data_type()),
                TypeName(found.data_type())
            ))
        };
        let (given, wanted) = (&value.data_type().clone(), field.data_type());
        // A number is not the text of one, nor the other way round.
        let alike = given.is_numeric() == wanted.is_numeric() || given.is_integer() && wanted.is_temporal();
        if !alike {
            return Err(refused(&value));
        }
        let cast = cast_with_options(&value, wanted, &exact).map_err(|_| refused(&value))?;
        // A number that the type cannot hold exactly is another one.
        let back = cast_with_options(&cast, given, &exact).map_err(|_| refused(&value))?;
        if given.is_numeric() && !wanted.is_temporal() && back.as_ref() != value.as_ref() {
            return Err(refused(&value));
        }
        columns.push(cast);
    }
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}
