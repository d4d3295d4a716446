//! Columns made of the values of JSON members. A value of another kind than its column's type does not fit: a text is no number, a
//! number is no time. In a text column numbers and booleans keep their literal text.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::array::builder::StringBuilder;
use arrow::array::{ArrayRef, FixedSizeListArray, LargeListArray, ListArray, MapArray, StructArray, new_empty_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use drumlin::{Error, Result};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::number::INVALID;
use super::number::Reason;
use super::text::{can_hold, convert, convert_bytes};

const NO_NULL: Reason = "has a null, which is not allowed in";
const UNKNOWN: Reason = "has a member that is not a field of";
const TWICE: Reason = "has the same member twice, which is not allowed in";
const TEXT: Reason = "is a string, which is not a valid";

/// The members of an object, in order.
pub struct Members<'a>(pub Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Collect)
    }
}

/// The elements of an array.
pub fn elements(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text).ok()
}

/// The text that a JSON string is.
pub fn unquoted(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

/// Which values a column without parts takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// All without parts, by their literal text.
    Any,
    Numbers,
    /// Numbers, and texts that say what JSON has no number for.
    Floats,
    /// Decimals are often written as texts.
    NumbersOrTexts,
    Texts,
    Flags,
}

/// A column on its way.
pub struct Column {
    field: FieldRef,
    parts: Parts,
    /// Whether each row is valid.
    valid: Vec<bool>,
}

enum Parts {
    Leaf(Takes, StringBuilder),
    List(Vec<usize>, Box<Column>),
    Struct(Vec<Column>),
    /// Keys and values.
    Map(Vec<usize>, Box<[Column; 2]>),
}

impl Column {
    /// An empty column; `None` if JSON cannot hold its type.
    pub fn new(field: &FieldRef) -> Option<Self> {
        use DataType::*;
        let parts = match field.data_type() {
            List(inner) | LargeList(inner) | FixedSizeList(inner, _) => {
                Parts::List(Vec::new(), Box::new(Column::new(inner)?))
            }
            Struct(fields) => Parts::Struct(fields.iter().map(Column::new).collect::<Option<_>>()?),
            Map(entries, _) => match entries.data_type() {
                Struct(fields) if fields.len() == 2 && can_hold(fields[0].data_type()) => {
                    // All keys are texts.
                    let mut keys = Column::new(&fields[0])?;
                    keys.parts = Parts::Leaf(Takes::Any, StringBuilder::new());
                    Parts::Map(Vec::new(), Box::new([keys, Column::new(&fields[1])?]))
                }
                _ => return None,
            },
            other => {
                let takes = match other {
                    Null | Boolean => Takes::Flags,
                    Utf8 | LargeUtf8 | Utf8View | Dictionary(..) => Takes::Any,
                    Float16 | Float32 | Float64 => Takes::Floats,
                    Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Takes::Texts,
                    other if other.is_integer() => Takes::Numbers,
                    other if other.is_decimal() => Takes::NumbersOrTexts,
                    _ => Takes::Texts,
                };
                if !can_hold(other) && !is_bytes(other) {
                    return None;
                }
                Parts::Leaf(takes, StringBuilder::new())
            }
        };
        Some(Self { field: field.clone(), parts, valid: Vec::new() })
    }

    /// Adds a value; the error is the reason why it does not fit. What was added of it is then left behind.
    pub fn push(&mut self, value: &str) -> Result<(), Reason> {
        let first = value.as_bytes().first().copied().unwrap_or(b'n');
        if first == b'n' {
            return self.push_null();
        }
        match &mut self.parts {
            Parts::Leaf(takes, texts) => texts.append_value(leaf(*takes, first, value)?),
            Parts::List(lengths, inner) => {
                let elements = if first == b'[' { elements(value) } else { None }.ok_or(INVALID)?;
                if matches!(self.field.data_type(), DataType::FixedSizeList(_, size) if *size as usize != elements.len())
                {
                    return Err(INVALID);
                }
                elements.iter().try_for_each(|element| inner.push(element.get()))?;
                lengths.push(elements.len());
            }
            Parts::Struct(columns) => {
                let members = if first == b'{' { serde_json::from_str(value).ok() } else { None };
                let Members(members) = members.ok_or(INVALID)?;
                let mut given: Vec<Option<&RawValue>> = vec![None; columns.len()];
                for (name, value) in members {
                    let at = columns.iter().position(|column| *column.field.name() == name).ok_or(UNKNOWN)?;
                    if given[at].replace(value).is_some() {
                        return Err(TWICE);
                    }
                }
                for (column, value) in columns.iter_mut().zip(given) {
                    column.push(value.map_or("null", RawValue::get))?;
                }
            }
            Parts::Map(lengths, inner) => {
                let members = if first == b'{' { serde_json::from_str(value).ok() } else { None };
                let Members(members) = members.ok_or(INVALID)?;
                for (at, (name, value)) in members.iter().enumerate() {
                    if members[..at].iter().any(|(other, _)| other == name) {
                        return Err(TWICE);
                    }
                    inner[0].push(&serde_json::Value::from(name.as_str()).to_string())?;
                    inner[1].push(value.get())?;
                }
                lengths.push(members.len());
            }
        }
        self.valid.push(true);
        Ok(())
    }

    /// Adds a null.
    pub fn push_null(&mut self) -> Result<(), Reason> {
        if !self.field.is_nullable() {
            return Err(NO_NULL);
        }
        self.push_hidden();
        Ok(())
    }

    /// Adds a row that is null here, or in what this is part of.
    fn push_hidden(&mut self) {
        match &mut self.parts {
            Parts::Leaf(_, texts) => texts.append_null(),
            Parts::List(lengths, inner) => {
                let size = match self.field.data_type() {
                    DataType::FixedSizeList(_, size) => *size as usize,
                    _ => 0,
                };
                (0..size).for_each(|_| inner.push_hidden());
                lengths.push(size);
            }
            Parts::Struct(columns) => columns.iter_mut().for_each(Column::push_hidden),
            Parts::Map(lengths, _) => lengths.push(0),
        }
        self.valid.push(false);
    }

    /// The column, which begins again. The error message is a reason.
    pub fn finish(&mut self) -> Result<ArrayRef> {
        let valid = std::mem::take(&mut self.valid);
        let nulls = valid.contains(&false).then(|| NullBuffer::from(valid.clone()));
        let data_type = self.field.data_type();
        Ok(match &mut self.parts {
            Parts::Leaf(_, texts) if is_bytes(data_type) => convert_bytes(&texts.finish(), data_type)?,
            Parts::Leaf(_, texts) => convert(&texts.finish(), data_type)?,
            Parts::List(lengths, inner) => {
                let (values, lengths) = (inner.finish()?, std::mem::take(lengths));
                match data_type {
                    DataType::List(field) => {
                        let offsets = OffsetBuffer::from_lengths(lengths);
                        Arc::new(ListArray::try_new(field.clone(), offsets, values, nulls)?)
                    }
                    DataType::LargeList(field) => {
                        let offsets = OffsetBuffer::from_lengths(lengths);
                        Arc::new(LargeListArray::try_new(field.clone(), offsets, values, nulls)?)
                    }
                    DataType::FixedSizeList(field, size) => {
                        let rows = lengths.len();
                        Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *size, values, nulls, rows)?)
                    }
                    other => new_empty_array(other),
                }
            }
            Parts::Struct(columns) => {
                let fields: Fields = columns.iter().map(|column| column.field.clone()).collect();
                let columns = columns.iter_mut().map(Column::finish).collect::<Result<Vec<_>>>()?;
                Arc::new(StructArray::try_new_with_length(fields, columns, nulls, valid.len())?)
            }
            Parts::Map(lengths, inner) => {
                let DataType::Map(entries, sorted) = data_type else { return Err(Error::invalid(INVALID)) };
                let DataType::Struct(fields) = entries.data_type() else { return Err(Error::invalid(INVALID)) };
                let parts = inner.iter_mut().map(Column::finish).collect::<Result<Vec<_>>>()?;
                let inner = StructArray::try_new(fields.clone(), parts, None)?;
                let offsets = OffsetBuffer::from_lengths(std::mem::take(lengths));
                Arc::new(MapArray::try_new(entries.clone(), offsets, inner, nulls, *sorted)?)
            }
        })
    }
}

/// The text of a value that begins with `first`.
fn leaf(takes: Takes, first: u8, value: &str) -> Result<Cow<'_, str>, Reason> {
    let text = || unquoted(value).map(Cow::Owned).ok_or(INVALID);
    match (first, takes) {
        (b'"', Takes::Any | Takes::Texts | Takes::NumbersOrTexts) => text(),
        (b'"', Takes::Floats) => match text()? {
            name if matches!(&*name, "NaN" | "Infinity" | "-Infinity") => Ok(name),
            _ => Err(TEXT),
        },
        (b'"', _) => Err(TEXT),
        (b't' | b'f', Takes::Any | Takes::Flags) => Ok(Cow::Borrowed(value)),
        (b'-' | b'0'..=b'9', Takes::Any | Takes::Numbers | Takes::Floats | Takes::NumbersOrTexts) => {
            Ok(Cow::Borrowed(value))
        }
        _ => Err(INVALID),
    }
}

fn is_bytes(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
}

/// A field that may be null.
pub fn nullable(field: &Field) -> FieldRef {
    Arc::new(field.clone().with_nullable(true))
}

#[cfg(test)]
mod tests {
    use arrow::array::Array;
    use arrow::util::display::array_value_to_string;

    use super::*;

    fn read(data_type: DataType, value: &str) -> Result<String> {
        let mut column = Column::new(&Arc::new(Field::new("c", data_type, true))).unwrap();
        column.push(value).map_err(Error::invalid)?;
        let array = column.finish()?;
        Ok(if array.is_null(0) { "null".to_owned() } else { array_value_to_string(&array, 0)? })
    }

    #[test]
    fn nulls_are_taken_at_every_depth() {
        use DataType::*;
        let list = |inner: DataType| List(Arc::new(Field::new("item", inner, true)));
        let pair = Struct(vec![Field::new("b", list(Int64), true)].into());
        for (data_type, value, shown) in [
            (list(list(Int64)), "[[1], null]", "[[1], ]"),
            (list(list(Int64)), "[null, [1]]", "[, [1]]"),
            (list(list(list(Int64))), "[[[1], null]]", "[[[1], ]]"),
            (list(pair.clone()), "[{\"b\": [1]}, null, {}]", "[{b: [1]}, , {b: }]"),
            (pair.clone(), "{\"b\": null}", "{b: }"),
            (pair, "null", "null"),
            (FixedSizeList(Arc::new(Field::new("item", Int64, true)), 2), "[1, null]", "[1, ]"),
            (list(Utf8), "[\"x\", 1.10, true, null]", "[x, 1.10, true, ]"),
        ] {
            assert_eq!(read(data_type.clone(), value).unwrap(), shown, "{value} as {data_type}");
        }
    }

    #[test]
    fn values_of_another_kind_do_not_fit() {
        use DataType::*;
        let day = Date32;
        let pair = Struct(vec![Field::new("b", Int64, true)].into());
        for (data_type, value, reason) in [
            (Int64, "\"7\"", TEXT),
            (Float64, "\"1.5\"", TEXT),
            (Boolean, "\"true\"", TEXT),
            (Int64, "true", INVALID),
            (Boolean, "1", INVALID),
            (Utf8, "{\"k\": 1}", INVALID),
            (Utf8, "[1]", INVALID),
            (day, "20240101", INVALID),
            (Int64, "2.0", INVALID),
            (pair.clone(), "{\"b\": 1, \"b\": 2}", TWICE),
            (pair, "{\"c\": 1}", UNKNOWN),
        ] {
            assert_eq!(read(data_type.clone(), value).unwrap_err().message(), reason, "{value} as {data_type}");
        }
        assert_eq!(read(Float64, "\"-Infinity\"").unwrap(), "-inf");
        assert_eq!(read(Decimal128(5, 2), "\"1.25\"").unwrap(), "1.25");
    }
}
