//! Fields of a node, and keys made of them: byte strings in the same order as the values.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::{Error, Result};
use crate::catalog::payload::{Content, PayloadWriter, Value};
use crate::catalog::tree::path::name_of;
use crate::catalog::{Payload, Small};

/// A field of a node.
///
/// As text: `path`, `name`, `path.N` (the Nth name of the path, from its end if negative), `payload`, and `payload.a.b`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// The whole path.
    Path,
    /// The last name.
    Name,
    /// A name by its position, from 0; -1 is the last.
    Part(i32),
    /// A field of the payload, or all of it.
    Payload(Vec<String>),
}

impl Field {
    /// Parses `text`.
    ///
    /// # Errors
    /// `InvalidArgument`, saying where the text is no field.
    pub fn new(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "'{text}' is not a field; expected path, path.N, name, payload, or payload. followed by names joined \
                 by dots"
            ))
        };
        match text.split_once('.') {
            None if text == "path" => Ok(Field::Path),
            None if text == "name" => Ok(Field::Name),
            None if text == "payload" => Ok(Field::Payload(Vec::new())),
            Some(("path", at)) => at.parse().map(Field::Part).map_err(|_| bad()),
            Some(("payload", names)) if !names.is_empty() => {
                Ok(Field::Payload(names.split('.').map(str::to_owned).collect()))
            }
            _ => Err(bad()),
        }
    }

    /// The value of the field for the node at `path` with `payload`.
    pub(in crate::catalog) fn of<'a>(&self, path: &'a str, payload: &'a Payload) -> Option<Content<'a>> {
        let text = |text: &'a str| Some(Content::Json(Value::Text(text)));
        match self {
            Field::Path => text(path),
            Field::Name => text(name_of(path)),
            Field::Part(at) => text(match usize::try_from(*at) {
                Ok(at) => path.split('/').nth(at)?,
                Err(_) => path.rsplit('/').nth(at.unsigned_abs() as usize - 1)?,
            }),
            Field::Payload(names) if names.is_empty() => Some(payload.content()),
            Field::Payload(names) => payload.field(names).map(Content::Json),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Path => f.write_str("path"),
            Field::Name => f.write_str("name"),
            Field::Part(at) => write!(f, "path.{at}"),
            Field::Payload(names) => {
                f.write_str("payload")?;
                names.iter().try_for_each(|name| write!(f, ".{name}"))
            }
        }
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Field::new(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// A number by its exact value: the nearest float, and how far the number is from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::catalog) struct ExactNumber {
    /// The float's bits, changed so that they have the same order.
    near: u64,
    off: i16,
}

impl Ord for ExactNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        self.near.cmp(&other.near).then(self.off.cmp(&other.off))
    }
}

impl PartialOrd for ExactNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

const SIGN: u64 = 1 << 63;

/// The value as a number, if it is one.
pub(in crate::catalog) fn number(value: Value<'_>) -> Option<ExactNumber> {
    let (near, exact) = match value {
        Value::Int(value) => (value as f64, Some(i128::from(value))),
        Value::UInt(value) => (value as f64, Some(i128::from(value))),
        // Minus zero is zero.
        Value::Float(value) => (value + 0.0, None),
        _ => return None,
    };
    // Integers of 64 bits are less than 2^11 from the nearest float.
    let off = exact.map_or(0, |exact| (exact - near as i128) as i16);
    let bits = near.to_bits();
    Some(ExactNumber { near: if bits & SIGN == 0 { bits | SIGN } else { !bits }, off })
}

fn value_of(ExactNumber { near, off }: ExactNumber) -> Value<'static> {
    let bits = if near & SIGN == 0 { !near } else { near & !SIGN };
    let near = f64::from_bits(bits);
    if near.fract() != 0.0 || near.abs() > 2_f64.powi(64) {
        return Value::Float(near);
    }
    let exact = near as i128 + i128::from(off);
    match (i64::try_from(exact), u64::try_from(exact)) {
        (Ok(value), _) => Value::Int(value),
        (_, Ok(value)) => Value::UInt(value),
        _ => Value::Float(near),
    }
}

mod tag {
    pub const NULL: u8 = 0x10;
    pub const FALSE: u8 = 0x20;
    pub const TRUE: u8 = 0x21;
    pub const NUMBER: u8 = 0x30;
    pub const TEXT: u8 = 0x40;
    pub const NESTED: u8 = 0x50;
    pub const BYTES: u8 = 0x60;
}

/// A key: a concatenation of byte strings, each in the same order as its value. null < false < true < numbers < texts <
/// lists and objects < bytes. Texts end with a zero, and a zero in them is followed by 0xFF.
#[derive(Clone, Debug, Default)]
pub(in crate::catalog) struct KeyWriter {
    bytes: Vec<u8>,
}

impl KeyWriter {
    pub fn push(&mut self, content: Content<'_>) -> Result<()> {
        match content {
            Content::Json(Value::Null) => self.bytes.push(tag::NULL),
            Content::Json(Value::Bool(false)) => self.bytes.push(tag::FALSE),
            Content::Json(Value::Bool(true)) => self.bytes.push(tag::TRUE),
            Content::Json(Value::Text(text)) => self.push_bytes(tag::TEXT, text.as_bytes()),
            Content::Json(value) => match number(value) {
                Some(ExactNumber { near, off }) => {
                    self.bytes.push(tag::NUMBER);
                    self.bytes.extend_from_slice(&near.to_be_bytes());
                    self.bytes.extend_from_slice(&(off as u16 ^ 0x8000).to_be_bytes());
                }
                None => self.push_bytes(tag::NESTED, value.to_payload()?.stored()),
            },
            Content::Bytes(bytes) => self.push_bytes(tag::BYTES, bytes),
        }
        Ok(())
    }

    /// A text without its end: a prefix of the keys whose text begins with it.
    pub fn push_text_prefix(&mut self, text: &str) {
        self.push_bytes(tag::TEXT, text.as_bytes());
        self.bytes.pop();
    }

    fn push_bytes(&mut self, tag: u8, bytes: &[u8]) {
        self.bytes.push(tag);
        for byte in bytes {
            self.bytes.push(*byte);
            if *byte == 0 {
                self.bytes.push(0xFF);
            }
        }
        self.bytes.push(0);
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// The values of a key, as payloads.
pub(in crate::catalog) fn read_key(key: &Small) -> Vec<Payload> {
    let mut bytes = key.as_bytes();
    let mut values = Vec::with_capacity(1);
    while let Some((tag, rest)) = bytes.split_first() {
        bytes = rest;
        let payload = match *tag {
            tag::NULL => Value::Null.to_payload(),
            tag::FALSE | tag::TRUE => Value::Bool(*tag == tag::TRUE).to_payload(),
            tag::NUMBER => {
                let (number, rest) = rest.split_at(10);
                bytes = rest;
                let near = u64::from_be_bytes(number[..8].try_into().expect("8 bytes"));
                let off = u16::from_be_bytes(number[8..].try_into().expect("2 bytes")) ^ 0x8000;
                value_of(ExactNumber { near, off: off as i16 }).to_payload()
            }
            tag => {
                let content = read_bytes(&mut bytes);
                match tag {
                    tag::TEXT => {
                        let mut writer = PayloadWriter::default();
                        writer.text(std::str::from_utf8(&content).unwrap_or_default());
                        writer.finish()
                    }
                    tag::NESTED => Payload::from_stored(&content),
                    _ => Payload::bytes(&content),
                }
            }
        };
        values.push(payload.expect("it was made of a value that is one"));
    }
    values
}

fn read_bytes(bytes: &mut &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some((byte, rest)) = bytes.split_first() {
        *bytes = rest;
        if *byte == 0 {
            match bytes.split_first() {
                Some((0xFF, rest)) => *bytes = rest,
                _ => break,
            }
        }
        content.push(*byte);
    }
    content
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn key(values: &[Json]) -> Small {
        let mut writer = KeyWriter::default();
        for value in values {
            writer.push(Payload::json(value).unwrap().content()).unwrap();
        }
        Small::new(writer.as_bytes())
    }

    #[test]
    fn keys_order_as_values_and_come_back() {
        let sorted = [
            json!(null),
            json!(false),
            json!(true),
            json!(-1e300),
            json!(i64::MIN),
            json!(i64::MIN + 1),
            json!(-1.5),
            json!(-1),
            json!(0),
            json!(0.25),
            json!(9_007_199_254_740_991_i64),
            json!(9_007_199_254_740_992_i64),
            json!(9_007_199_254_740_993_i64),
            json!(i64::MAX - 1),
            json!(i64::MAX),
            json!(u64::MAX - 1),
            json!(u64::MAX),
            json!(1e300),
            json!(""),
            json!("a"),
            json!("a\u{0}"),
            json!("a\u{0}b"),
            json!("a\u{1}"),
            json!("b"),
            json!({"a": 1}),
            json!([]),
            json!([1, "x"]),
        ];
        for (at, value) in sorted.iter().enumerate() {
            assert_eq!(read_key(&key(std::slice::from_ref(value))), [Payload::json(value).unwrap()], "{value}");
            for (other_at, other) in sorted.iter().enumerate() {
                assert_eq!(
                    key(std::slice::from_ref(value)).cmp(&key(std::slice::from_ref(other))),
                    at.cmp(&other_at),
                    "{value} {other}"
                );
                // A second field counts only if the first ones are equal.
                let order = key(&[value.clone(), json!(1)]).cmp(&key(&[other.clone(), json!(2)]));
                assert_eq!(order, at.cmp(&other_at).then(Ordering::Less), "{value} {other}");
            }
        }
        assert_eq!(key(&[json!(1)]), key(&[json!(1.0)]));
        assert_eq!(key(&[json!(0)]), key(&[json!(-0.0)]));
    }

    #[test]
    fn fields_are_parsed_and_found() {
        let payload = Payload::json(&json!({"owner": "x", "a": [5]})).unwrap();
        let of = |text: &str| {
            let field = Field::new(text).unwrap();
            assert_eq!(field.to_string(), text);
            match field.of("us/ny/c", &payload)? {
                Content::Json(value) => Some(value.to_json()),
                Content::Bytes(_) => None,
            }
        };
        assert_eq!(of("path"), Some(json!("us/ny/c")));
        assert_eq!(of("name"), Some(json!("c")));
        assert_eq!(of("path.0"), Some(json!("us")));
        assert_eq!(of("path.-2"), Some(json!("ny")));
        assert_eq!(of("path.9"), None);
        assert_eq!(of("payload.owner"), Some(json!("x")));
        assert_eq!(of("payload.a.0"), Some(json!(5)));
        assert_eq!(of("payload.none"), None);
        for bad in ["", "payload.", "path.x", "other", "name.x"] {
            assert!(Field::new(bad).is_err(), "{bad}");
        }
    }
}
