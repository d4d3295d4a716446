//! Metadata of nodes: messages of Protocol Buffers, of which only numbers, bytes and messages occur.
//!
//! As the format asks, a missing field has its default, and an unknown one is ignored.

use crate::{Error, Result};

/// A field of a message.
#[derive(Clone, Copy, Debug)]
enum Field<'a> {
    Number(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, each with its number.
#[derive(Clone, Debug, Default)]
pub struct Message<'a> {
    fields: Vec<(u64, Field<'a>)>,
}

fn short() -> Error {
    Error::new("the metadata of an encoding ends too early")
}

fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or_else(short)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Error::new("a number in the metadata of an encoding has no end"))
}

impl<'a> Message<'a> {
    /// Reads a message.
    pub fn read(mut bytes: &'a [u8]) -> Result<Self> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)?),
                1 => Field::Fixed64(u64::from_le_bytes(take(&mut bytes, 8)?.try_into().map_err(|_| short())?)),
                2 => {
                    let len = varint(&mut bytes)?;
                    Field::Bytes(take(&mut bytes, len)?)
                }
                5 => Field::Fixed32(u32::from_le_bytes(take(&mut bytes, 4)?.try_into().map_err(|_| short())?)),
                kind => return Err(Error::new(format!("metadata of an encoding has a field of kind {kind}"))),
            };
            fields.push((key >> 3, field));
        }
        Ok(Self { fields })
    }

    /// The last field of a number counts.
    fn field(&self, number: u64) -> Option<Field<'a>> {
        self.fields.iter().rev().find(|field| field.0 == number).map(|field| field.1)
    }

    /// A number; `None` if it is missing.
    pub fn number(&self, number: u64) -> Result<Option<u64>> {
        match self.field(number) {
            None => Ok(None),
            Some(Field::Number(value)) => Ok(Some(value)),
            Some(_) => Err(Error::new(format!("field {number} of the metadata of an encoding is no number"))),
        }
    }

    /// A number that counts; 0 if it is missing.
    pub fn count(&self, number: u64) -> Result<usize> {
        let value = self.number(number)?.unwrap_or(0);
        usize::try_from(value).map_err(|_| Error::new(format!("a count of {value} is too large for this machine")))
    }

    /// A message in it; `None` if it is missing.
    pub fn message(&self, number: u64) -> Result<Option<Message<'a>>> {
        self.bytes(number)?.map(Message::read).transpose()
    }

    fn bytes(&self, number: u64) -> Result<Option<&'a [u8]>> {
        match self.field(number) {
            None => Ok(None),
            Some(Field::Bytes(bytes)) => Ok(Some(bytes)),
            Some(_) => Err(Error::new(format!("field {number} of the metadata of an encoding is no message"))),
        }
    }

    /// Numbers that are repeated, together or one by one.
    pub fn numbers(&self, number: u64) -> Result<Vec<u64>> {
        let mut all = Vec::new();
        for (_, field) in self.fields.iter().filter(|field| field.0 == number) {
            match *field {
                Field::Number(value) => all.push(value),
                Field::Bytes(mut bytes) => {
                    while !bytes.is_empty() {
                        all.push(varint(&mut bytes)?);
                    }
                }
                _ => return Err(Error::new(format!("field {number} of the metadata of an encoding has no numbers"))),
            }
        }
        Ok(all)
    }

    /// What a message that says one value says.
    pub fn scalar(&self) -> Result<Scalar<'a>> {
        let (number, field) =
            self.fields.last().ok_or_else(|| Error::new("a value in the metadata of an encoding is missing"))?;
        Ok(match (number, field) {
            (1, Field::Number(_)) => Scalar::Null,
            (2, Field::Number(value)) => Scalar::Number(u64::from(*value != 0)),
            (3, Field::Number(value)) => Scalar::Number((value >> 1) ^ (value & 1).wrapping_neg()),
            (4 | 10, Field::Number(value)) => Scalar::Number(*value),
            (5, Field::Fixed32(bits)) => Scalar::Number(u64::from(*bits)),
            (6, Field::Fixed64(bits)) => Scalar::Number(*bits),
            (7 | 8, Field::Bytes(bytes)) => Scalar::Bytes(bytes),
            _ => {
                return Err(Error::new(format!(
                    "a value in the metadata of an encoding has the unknown kind {number}"
                )));
            }
        })
    }
}

fn take<'a>(bytes: &mut &'a [u8], len: u64) -> Result<&'a [u8]> {
    let len = usize::try_from(len).map_err(|_| short())?;
    let (part, rest) = bytes.split_at_checked(len).ok_or_else(short)?;
    *bytes = rest;
    Ok(part)
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar<'a> {
    /// None.
    Null,
    /// A number by its bits, signed ones extended to 64; a truth value.
    Number(u64),
    /// A text, or binary.
    Bytes(&'a [u8]),
}

/// Builds a message.
#[derive(Debug, Default)]
pub struct Builder {
    bytes: Vec<u8>,
}

impl Builder {
    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A number, unless it is the default, 0.
    pub fn number(mut self, number: u64, value: u64) -> Self {
        if value != 0 {
            self.raw(number << 3);
            self.raw(value);
        }
        self
    }

    /// A number, also 0: of a field for which missing means something else.
    pub fn some(mut self, number: u64, value: u64) -> Self {
        self.raw(number << 3);
        self.raw(value);
        self
    }

    /// Bytes, or a message.
    pub fn bytes(mut self, number: u64, bytes: &[u8]) -> Self {
        self.raw(number << 3 | 2);
        self.raw(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Numbers together.
    pub fn numbers(self, number: u64, values: impl Iterator<Item = u64>) -> Self {
        let mut inner = Self::default();
        values.for_each(|value| inner.raw(value));
        self.bytes(number, &inner.bytes)
    }

    /// A float by its bits.
    pub fn fixed(mut self, number: u64, bits: u64, bytes: usize) -> Self {
        self.raw(number << 3 | if bytes == 4 { 5 } else { 1 });
        self.bytes.extend_from_slice(&bits.to_le_bytes()[..bytes]);
        self
    }

    /// The message.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// A signed number as an unsigned one, as the format stores it.
pub fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_was_put_into_them() {
        let inner = Builder::default().some(3, zigzag(-7)).finish();
        let bytes = Builder::default()
            .number(1, 300)
            .number(2, 0)
            .bytes(3, &inner)
            .numbers(4, [1, 2000, 3].into_iter())
            .fixed(6, 5, 8)
            .finish();
        let message = Message::read(&bytes).unwrap();
        assert_eq!(message.number(1).unwrap(), Some(300));
        assert_eq!((message.number(2).unwrap(), message.count(9).unwrap()), (None, 0));
        assert_eq!(message.numbers(4).unwrap(), [1, 2000, 3]);
        let inner = message.message(3).unwrap().unwrap();
        assert_eq!(inner.scalar().unwrap(), Scalar::Number(-7_i64 as u64));
        assert!(message.number(3).is_err() && message.message(1).is_err());
        for end in 0..bytes.len() {
            // Nothing panics.
            let _ = Message::read(&bytes[..end]).map(|message| (message.numbers(4), message.message(3)));
        }
        assert!(Message::read(&[0x80; 20]).is_err());
    }
}
