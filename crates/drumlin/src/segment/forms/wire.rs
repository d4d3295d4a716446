//! The bytes of a segment, written and read from front to back.
//!
//! A segment has no internal addresses: each part is self-delimiting, and the parts follow each other. Invariants: a
//! buffer of [`ALIGNED_MIN`] bytes or more starts at a multiple of [`ALIGNMENT`] from the segment's start (the gap is
//! zero bytes), so that decoders use it in place; shorter ones are packed, and copied when read. Reading never goes
//! past the end and never trusts a length.
//!
//! That bytes pass their checksum is not enough: somebody may have repaired it. No bytes make a decoder panic, read
//! outside them, or allocate out of proportion to their length: memory for what a length announces is asked for through
//! `claim`.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use bytes::Bytes;

use super::onpair::Text;
use crate::base::{Error, Result, read_varint, write_varint};
use crate::segment::decode::form::Form;
use crate::segment::encode::hint::Hint;
use crate::segment::encode::scheme::{Scheme, Search};

/// Writes a column of any type. Columns that hold others get it for these, since only the layer as a whole knows all types.
pub(in crate::segment) type WriteColumn = fn(&mut Writer, &ArrayRef) -> Result<()>;

/// Reads a column of any type, of this number of rows.
pub(in crate::segment) type ReadColumn = fn(&mut Reader, usize, &DataType, Form) -> Result<ArrayRef>;

/// Where long buffers start: enough for every machine type of Arrow, and what a reader's memory is aligned to.
pub(in crate::segment) const ALIGNMENT: usize = 16;

/// The minimum length at which a buffer is worth the padding.
const ALIGNED_MIN: usize = 64;

/// Builds a segment's bytes.
#[derive(Default)]
pub(in crate::segment) struct Writer {
    bytes: Vec<u8>,
    /// How to encode; what it does not say is searched for.
    pub like: Scheme,
    /// How it was encoded.
    pub found: Hint,
    pub text: Option<Arc<Text>>,
}

impl Writer {
    /// A writer that encodes according to `like`.
    pub(in crate::segment) fn like(like: &Scheme) -> Self {
        Self { like: like.clone(), ..Self::default() }
    }

    /// What to try.
    pub(in crate::segment) fn search(&self) -> Search {
        Search { only: self.like.found.as_ref().map(|found| found.hint), compression: self.like.compression }
    }

    /// The number of bytes so far.
    pub(in crate::segment) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes back all but the first `len` bytes.
    pub(in crate::segment) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    pub(in crate::segment) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(in crate::segment) fn varint(&mut self, value: u64) {
        write_varint(&mut self.bytes, value);
    }

    pub(in crate::segment) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that a decoder needs aligned.
    pub(in crate::segment) fn buffer(&mut self, bytes: &[u8]) {
        if bytes.len() >= ALIGNED_MIN {
            self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(in crate::segment) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// A column of a row group may always take this many bytes decoded, whatever it takes in storage: twice what a row
/// group holds.
const DECODED_MAX: u64 = 512 << 20;

/// Beyond that, it may take at most this many times its bytes in storage.
const EXPANSION_MAX: u64 = 1024;

/// Bytes that a segment of `bytes` bytes may take decoded, not counting the bytes of strings that are in it one by one.
pub(in crate::segment) fn decoded_max(bytes: usize) -> u64 {
    DECODED_MAX.max((bytes as u64).saturating_mul(EXPANSION_MAX))
}

/// Reads a segment's bytes.
pub(in crate::segment) struct Reader {
    bytes: Bytes,
    at: usize,
    /// Bytes that the rest of the segment may take decoded.
    room: u64,
    /// The encodings seen so far.
    pub found: Hint,
}

impl Reader {
    pub(in crate::segment) fn new(bytes: Bytes) -> Self {
        let room = decoded_max(bytes.len());
        Self { bytes, at: 0, room, found: Hint::CHEAP }
    }

    /// Claims memory for `rows` values of `width` bytes; `Corrupt` if the segment has claimed more than it can hold.
    pub(in crate::segment) fn claim(&mut self, rows: usize, width: u64) -> Result<()> {
        let asked = (rows as u64).saturating_mul(width);
        self.room = self.room.checked_sub(asked).ok_or_else(|| {
            let bytes = self.bytes.len();
            Error::corrupt(format!("{rows} values of {width} bytes are more than a segment of {bytes} bytes can hold"))
        })?;
        Ok(())
    }

    pub(in crate::segment) fn u8(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| self.short(1))?;
        self.at += 1;
        Ok(byte)
    }

    /// The next byte, without consuming it.
    pub(in crate::segment) fn peek(&self) -> Result<u8> {
        self.bytes.get(self.at).copied().ok_or_else(|| self.short(1))
    }

    pub(in crate::segment) fn varint(&mut self) -> Result<u64> {
        let wrong =
            || Error::corrupt(format!("the number at byte {} of the segment has no end, or too many bits", self.at));
        let (value, bytes) = read_varint(self.bytes.get(self.at..).unwrap_or_default()).ok_or_else(wrong)?;
        self.at += bytes;
        Ok(value)
    }

    /// A varint that counts something in memory.
    pub(in crate::segment) fn count(&mut self) -> Result<usize> {
        let value = self.varint()?;
        usize::try_from(value).map_err(|_| Error::corrupt(format!("a count of {value} is too large for this machine")))
    }

    pub(in crate::segment) fn raw(&mut self, len: usize) -> Result<Bytes> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len()).ok_or_else(|| self.short(len))?;
        let part = self.bytes.slice(self.at..end);
        self.at = end;
        Ok(part)
    }

    /// What [`Writer::buffer`] wrote. Long buffers are aligned in memory if the segment is; others are copied where
    /// alignment matters.
    pub(in crate::segment) fn buffer(&mut self, len: usize) -> Result<Bytes> {
        if len >= ALIGNED_MIN {
            let at = self.at.next_multiple_of(ALIGNMENT);
            let gap = self.raw(at - self.at)?;
            if gap.iter().any(|byte| *byte != 0) {
                return Err(Error::corrupt(format!("the padding before byte {at} of the segment is not zero")));
            }
        }
        self.raw(len)
    }

    /// The number of bytes from here to the end.
    pub(in crate::segment) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Fails unless everything was read.
    pub(in crate::segment) fn finish(&self) -> Result<()> {
        match self.left() {
            0 => Ok(()),
            left => Err(Error::corrupt(format!("{left} bytes follow the end of the segment at byte {}", self.at))),
        }
    }

    fn short(&self, wanted: usize) -> Error {
        Error::corrupt(format!(
            "expected {wanted} bytes at byte {} of the segment, which has {} bytes",
            self.at,
            self.bytes.len()
        ))
    }
}
