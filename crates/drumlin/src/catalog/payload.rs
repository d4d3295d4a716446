//! What a node of the tree carries: a JSON value or bytes, kept in encoded form.
//!
//! A JSON value is MessagePack with the names of an object in ascending order and integers as short as possible, so
//! equal values have equal bytes.

use std::fmt;

use rmp::Marker;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use triomphe::ThinArc;

use crate::base::{Error, Result};

/// The maximum size of a stored payload in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// How deeply lists and objects may be nested.
pub const PAYLOAD_DEPTH_MAX: usize = 127;

const JSON: u8 = 0;
const BYTES: u8 = 1;

/// A node's payload. A copy is O(1).
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(ThinArc<(), u8>);

/// What a payload is, as read in place.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// Any JSON value.
    Json(Value<'a>),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl Payload {
    /// A JSON value. Fails if it is larger than 1 MiB in stored form, or nested too deeply.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the size or depth and the bound.
    pub fn json(value: &serde_json::Value) -> Result<Self> {
        let mut writer = PayloadWriter::default();
        write_json(&mut writer, value)?;
        writer.finish()
    }

    /// Bytes. Fails if they are more than 1 MiB.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the size and the bound.
    pub fn bytes(bytes: &[u8]) -> Result<Self> {
        let mut stored = Vec::with_capacity(bytes.len() + 1);
        stored.push(BYTES);
        stored.extend_from_slice(bytes);
        sized(stored)
    }

    /// What it is.
    pub fn content(&self) -> Content<'_> {
        match self.0.slice.split_first() {
            Some((&JSON, mut rest)) => Content::Json(Value::read(&mut rest).unwrap_or(Value::Null)),
            Some((_, bytes)) => Content::Bytes(bytes),
            None => Content::Bytes(&[]),
        }
    }

    /// The JSON value, if it is one.
    pub fn to_json(&self) -> Option<serde_json::Value> {
        match self.content() {
            Content::Json(value) => Some(value.to_json()),
            Content::Bytes(_) => None,
        }
    }

    /// The bytes, if it is bytes.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self.content() {
            Content::Json(_) => None,
            Content::Bytes(bytes) => Some(bytes),
        }
    }

    /// The value of a field of a JSON value: a name for each object on the way, a number for each list.
    pub fn field<'a>(&'a self, names: &[String]) -> Option<Value<'a>> {
        let Content::Json(mut value) = self.content() else { return None };
        for name in names {
            value = match value {
                Value::Object(entries) => entries.get(name)?,
                Value::List(items) => items.into_iter().nth(name.parse().ok()?)?,
                _ => return None,
            };
        }
        Some(value)
    }

    /// As stored.
    pub fn stored(&self) -> &[u8] {
        &self.0.slice
    }

    /// From the stored form, fully checked.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are no payload.
    pub fn from_stored(stored: &[u8]) -> Result<Self> {
        let bad = || Error::corrupt("a payload is damaged");
        if stored.len() > PAYLOAD_BYTES_MAX + 1 {
            return Err(bad());
        }
        match stored.split_first() {
            Some((&BYTES, _)) => {}
            Some((&JSON, mut rest)) => {
                check(&mut rest, 0).ok_or_else(bad)?;
                if !rest.is_empty() {
                    return Err(bad());
                }
            }
            _ => return Err(bad()),
        }
        Ok(Self(ThinArc::from_header_and_slice((), stored)))
    }
}

fn sized(stored: Vec<u8>) -> Result<Payload> {
    let bytes = stored.len() - 1;
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(Error::invalid(format!("the payload has {bytes} bytes; expected at most {PAYLOAD_BYTES_MAX}")));
    }
    Ok(Payload(ThinArc::from_header_and_slice((), &stored)))
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.content() {
            Content::Json(value) => write!(f, "{}", value.to_json()),
            Content::Bytes(bytes) => write!(f, "b\"{}\"", bytes.escape_ascii()),
        }
    }
}

impl From<i32> for Payload {
    fn from(value: i32) -> Self {
        i64::from(value).into()
    }
}

impl From<bool> for Payload {
    fn from(value: bool) -> Self {
        Payload::json(&value.into()).expect("a truth value is small")
    }
}

impl From<i64> for Payload {
    fn from(value: i64) -> Self {
        Payload::json(&value.into()).expect("a number is small")
    }
}

impl TryFrom<serde_json::Value> for Payload {
    type Error = Error;

    fn try_from(value: serde_json::Value) -> Result<Self> {
        Payload::json(&value)
    }
}

impl TryFrom<&[u8]> for Payload {
    type Error = Error;

    fn try_from(bytes: &[u8]) -> Result<Self> {
        Payload::bytes(bytes)
    }
}

impl TryFrom<String> for Payload {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.as_str().try_into()
    }
}

impl TryFrom<&str> for Payload {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        let mut writer = PayloadWriter::default();
        writer.text(text);
        writer.finish()
    }
}

/// The form in human-readable formats; others hold the stored form.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Readable {
    Json(serde_json::Value),
    Bytes(Vec<u8>),
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(self.stored());
        }
        match self.content() {
            Content::Json(value) => Readable::Json(value.to_json()),
            Content::Bytes(bytes) => Readable::Bytes(bytes.to_vec()),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let payload = if !deserializer.is_human_readable() {
            Payload::from_stored(<&[u8]>::deserialize(deserializer)?)
        } else {
            match Readable::deserialize(deserializer)? {
                Readable::Json(value) => Payload::json(&value),
                Readable::Bytes(bytes) => Payload::bytes(&bytes),
            }
        };
        payload.map_err(de::Error::custom)
    }
}

/// Writes a JSON value part by part. Lists and objects are begun with their length and then filled.
#[derive(Debug)]
pub struct PayloadWriter {
    stored: Vec<u8>,
}

impl Default for PayloadWriter {
    fn default() -> Self {
        Self { stored: vec![JSON] }
    }
}

/// Writing to a vector does not fail.
const TAKES_ALL: &str = "a vector takes all";

impl PayloadWriter {
    /// Writes null.
    pub fn null(&mut self) {
        rmp::encode::write_nil(&mut self.stored).expect(TAKES_ALL);
    }

    /// Writes a truth value.
    pub fn bool(&mut self, value: bool) {
        rmp::encode::write_bool(&mut self.stored, value).expect(TAKES_ALL);
    }

    /// Writes an integer.
    pub fn int(&mut self, value: i64) {
        rmp::encode::write_sint(&mut self.stored, value).expect(TAKES_ALL);
    }

    /// Writes an integer.
    pub fn uint(&mut self, value: u64) {
        rmp::encode::write_uint(&mut self.stored, value).expect(TAKES_ALL);
    }

    /// Writes a number that is finite.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not.
    pub fn float(&mut self, value: f64) -> Result<()> {
        if !value.is_finite() {
            return Err(Error::invalid(format!("the payload contains {value}, which is not a JSON number")));
        }
        rmp::encode::write_f64(&mut self.stored, value).expect(TAKES_ALL);
        Ok(())
    }

    /// Writes a text; also a name of an object.
    pub fn text(&mut self, value: &str) {
        rmp::encode::write_str(&mut self.stored, value).expect(TAKES_ALL);
    }

    /// Begins a list of `len` values.
    ///
    /// # Errors
    /// `InvalidArgument` if there are too many.
    pub fn list(&mut self, len: usize) -> Result<()> {
        rmp::encode::write_array_len(&mut self.stored, count(len)?).expect(TAKES_ALL);
        Ok(())
    }

    /// Begins an object of `len` names, each followed by its value, in ascending order of the names.
    ///
    /// # Errors
    /// `InvalidArgument` if there are too many.
    pub fn object(&mut self, len: usize) -> Result<()> {
        rmp::encode::write_map_len(&mut self.stored, count(len)?).expect(TAKES_ALL);
        Ok(())
    }

    /// Ends the value.
    ///
    /// # Errors
    /// `InvalidArgument` if it is too large, nested too deeply, or not written correctly.
    pub fn finish(self) -> Result<Payload> {
        let mut rest = &self.stored[1..];
        if check(&mut rest, 0).is_none() || !rest.is_empty() {
            return Err(Error::invalid(format!(
                "the payload is nested more than {PAYLOAD_DEPTH_MAX} levels deep, or an object has a name twice"
            )));
        }
        sized(self.stored)
    }
}

fn count(len: usize) -> Result<u32> {
    u32::try_from(len)
        .map_err(|_| Error::invalid(format!("the payload has a list of {len} values; expected fewer than 2^32")))
}

fn write_json(writer: &mut PayloadWriter, value: &serde_json::Value) -> Result<()> {
    // Recursion stops at the maximum depth.
    fn write(writer: &mut PayloadWriter, value: &serde_json::Value, depth: usize) -> Result<()> {
        if depth > PAYLOAD_DEPTH_MAX {
            return Err(Error::invalid(format!("the payload is nested more than {PAYLOAD_DEPTH_MAX} levels deep")));
        }
        match value {
            serde_json::Value::Null => writer.null(),
            serde_json::Value::Bool(value) => writer.bool(*value),
            serde_json::Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), _, _) => writer.uint(value),
                (_, Some(value), _) => writer.int(value),
                (_, _, value) => writer.float(value.unwrap_or(f64::NAN))?,
            },
            serde_json::Value::String(value) => writer.text(value),
            serde_json::Value::Array(items) => {
                writer.list(items.len())?;
                items.iter().try_for_each(|item| write(writer, item, depth + 1))?;
            }
            serde_json::Value::Object(entries) => {
                writer.object(entries.len())?;
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_unstable_by_key(|(name, _)| *name);
                for (name, value) in entries {
                    writer.text(name);
                    write(writer, value, depth + 1)?;
                }
            }
        }
        Ok(())
    }
    write(writer, value, 0)
}

/// A JSON value, read in place.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer beyond [`i64::MAX`].
    UInt(u64),
    /// Another number.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// A list.
    List(Items<'a>),
    /// An object.
    Object(Entries<'a>),
}

impl<'a> Value<'a> {
    /// Reads a value's head: the contents of a list or an object are still in `bytes`.
    fn read(bytes: &mut &'a [u8]) -> Option<Self> {
        let marker = Marker::from_u8(take(bytes, 1)?[0]);
        Some(match marker {
            Marker::Null => Value::Null,
            Marker::False => Value::Bool(false),
            Marker::True => Value::Bool(true),
            Marker::FixPos(value) => Value::Int(value.into()),
            Marker::FixNeg(value) => Value::Int(value.into()),
            Marker::U8 | Marker::U16 | Marker::U32 | Marker::U64 => {
                let size = 1 << (marker.to_u8() - Marker::U8.to_u8());
                let value = number(bytes, size)?;
                i64::try_from(value).map_or(Value::UInt(value), Value::Int)
            }
            Marker::I8 => Value::Int((number(bytes, 1)? as u8 as i8).into()),
            Marker::I16 => Value::Int((number(bytes, 2)? as u16 as i16).into()),
            Marker::I32 => Value::Int((number(bytes, 4)? as u32 as i32).into()),
            Marker::I64 => Value::Int(number(bytes, 8)? as i64),
            Marker::F64 => Value::Float(f64::from_bits(number(bytes, 8)?)),
            Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
                let len = length(bytes, marker, &[Marker::Str8, Marker::Str16, Marker::Str32])?;
                Value::Text(std::str::from_utf8(take(bytes, len)?).ok()?)
            }
            Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
                let left = length(bytes, marker, &[Marker::Reserved, Marker::Array16, Marker::Array32])?;
                Value::List(Items { left, rest: bytes })
            }
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
                let left = length(bytes, marker, &[Marker::Reserved, Marker::Map16, Marker::Map32])?;
                Value::Object(Entries { left, rest: bytes })
            }
            _ => return None,
        })
    }

    /// Reads a value and all it holds.
    fn read_whole(bytes: &mut &'a [u8]) -> Option<Self> {
        let value = Value::read(bytes)?;
        match value {
            Value::List(Items { left, .. }) => (0..left).try_for_each(|_| Value::read_whole(bytes).map(drop))?,
            Value::Object(Entries { left, .. }) => {
                (0..2 * left).try_for_each(|_| Value::read_whole(bytes).map(drop))?;
            }
            _ => {}
        }
        Some(value)
    }

    /// The same value, owned.
    pub fn to_json(self) -> serde_json::Value {
        match self {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => value.into(),
            Value::Int(value) => value.into(),
            Value::UInt(value) => value.into(),
            Value::Float(value) => value.into(),
            Value::Text(value) => value.into(),
            Value::List(items) => items.map(Value::to_json).collect(),
            Value::Object(entries) => entries
                .map(|(name, value)| (name.to_owned(), value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    /// The same value as a payload.
    ///
    /// # Errors
    /// `InvalidArgument` if it is too large, nested too deeply, or has a number that is not finite.
    pub fn to_payload(self) -> Result<Payload> {
        let mut writer = PayloadWriter::default();
        self.write(&mut writer)?;
        writer.finish()
    }

    pub(super) fn write(self, writer: &mut PayloadWriter) -> Result<()> {
        match self {
            Value::Null => writer.null(),
            Value::Bool(value) => writer.bool(value),
            Value::Int(value) => writer.int(value),
            Value::UInt(value) => writer.uint(value),
            Value::Float(value) => writer.float(value)?,
            Value::Text(value) => writer.text(value),
            Value::List(mut items) => {
                writer.list(items.left)?;
                items.try_for_each(|item| item.write(writer))?;
            }
            Value::Object(mut entries) => {
                writer.object(entries.left)?;
                entries.try_for_each(|(name, value)| {
                    writer.text(name);
                    value.write(writer)
                })?;
            }
        }
        Ok(())
    }
}

/// The values of a list.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    left: usize,
    rest: &'a [u8],
}

impl Items<'_> {
    /// The number of items left.
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether none are left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        Value::read_whole(&mut self.rest)
    }
}

/// The names and values of an object, in ascending order of the names.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    left: usize,
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    /// The number of items left.
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether none are left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The value of a name.
    pub fn get(mut self, name: &str) -> Option<Value<'a>> {
        self.find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let Some(Value::Text(name)) = Value::read(&mut self.rest) else { return None };
        Some((name, Value::read_whole(&mut self.rest)?))
    }
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(head)
}

fn number(bytes: &mut &[u8], size: usize) -> Option<u64> {
    Some(take(bytes, size)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The length after a marker; `long` are the markers with a length of 1, 2 and 4 bytes.
fn length(bytes: &mut &[u8], marker: Marker, long: &[Marker; 3]) -> Option<usize> {
    match marker {
        Marker::FixStr(len) | Marker::FixArray(len) | Marker::FixMap(len) => Some(len.into()),
        _ => number(bytes, 1 << long.iter().position(|m| *m == marker)?).map(|len| len as usize),
    }
}

/// Checks a value and all it holds, and skips it.
fn check<'a>(bytes: &mut &'a [u8], depth: usize) -> Option<()> {
    if depth > PAYLOAD_DEPTH_MAX {
        return None;
    }
    match Value::read(bytes)? {
        Value::Float(value) if !value.is_finite() => None,
        Value::List(items) => (0..items.left).try_for_each(|_| check(bytes, depth + 1)),
        Value::Object(entries) => {
            let mut last: Option<&'a str> = None;
            (0..entries.left).try_for_each(|_| match Value::read(bytes)? {
                Value::Text(name) if last.is_none_or(|last| last < name) => {
                    last = Some(name);
                    check(bytes, depth + 1)
                }
                _ => None,
            })
        }
        _ => Some(()),
    }
}

#[cfg(test)]
mod tests;
