//! The bytes of a log segment: a header, then records.
//!
//! ```text
//! header, 56 bytes, little-endian
//!   0  8  magic "DRUMLOG\0"
//!   8  4  format version (3)
//!  12  4  CRC32C of bytes 16..56, continued over the segment's name and offset 0
//!  16  8  seq of the first entry
//!  24  8  seq of the newest catalog snapshot, 0 if there is none
//!  32  8  where its index begins in its object
//!  40  4  CRC32C of the index
//!  44  4  length of the index in bytes
//!  48  8  seq of the first entry that is needed besides the snapshot, at most the one after it
//!
//! record, padded with zeros to a multiple of 8
//!   0  4  length of the body in bytes
//!   4  4  CRC32C of bytes 0..4 and 8..24 and the body, continued over the segment's name and the record's offset
//!   8  8  seq of the entry (of an end mark: of the last entry)
//!  16  7  the greatest seq known to be synced when this was written (56 bits)
//!  23  1  kind: 1 entry, 2 end mark (clean close)
//!  24  -  body; of an entry: id 16, session 8, time 8, features 8, the id of the entry before it 16, payload. That id is
//!         missing in entries of earlier builds, whose features lack bit 32.
//! ```

use bytes::Bytes;

use super::{Base, Entry};
use crate::base::{EntryId, Error, Result, Seq, SessionId, Timestamp, checksum_at};

/// Version of the framing.
pub const LOG_VERSION: u32 = 3;
/// Bytes of a segment's header.
pub const HEADER_BYTES: usize = 56;
/// Bytes of a record before its body.
const RECORD_HEADER_BYTES: usize = 24;
/// Bytes of an entry's body before its payload.
const ENTRY_HEADER_BYTES: usize = 40;
/// Bytes of the id of the entry before it, which follow.
const PREV_BYTES: usize = 16;
const MAGIC: &[u8; 8] = b"DRUMLOG\0";
const ALIGNMENT: usize = 8;
/// The bit of the features that says that the entry names the one before it.
const FEATURE_PREV: u64 = 1 << 32;
const SYNCED_MAX: u64 = (1 << 56) - 1;

/// The first bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the segment's first entry.
    pub first: Seq,
    /// The newest catalog snapshot when the segment was made.
    pub base: Option<Base>,
}

/// What a record holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A commit.
    Entry(Entry),
    /// The log was closed cleanly after the last entry.
    End,
}

/// One record with its mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Number of the entry; of an end mark, of the last entry.
    pub seq: Seq,
    /// All entries up to this one were synced before this record was written.
    pub synced: Seq,
    /// The content.
    pub body: Body,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn id_at(bytes: &[u8], at: usize) -> EntryId {
    EntryId(u128::from_le_bytes(bytes[at..at + 16].try_into().expect("16 bytes")))
}

/// Encodes the header of the segment called `name`.
pub fn encode_header(header: &Header, name: &str) -> Vec<u8> {
    let base = header.base.unwrap_or(Base { seq: Seq(0), from: Seq(1), offset: 0, bytes: 0, checksum: 0 });
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&LOG_VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&header.first.0.to_le_bytes());
    out.extend_from_slice(&base.seq.0.to_le_bytes());
    out.extend_from_slice(&base.offset.to_le_bytes());
    out.extend_from_slice(&base.checksum.to_le_bytes());
    out.extend_from_slice(&base.bytes.to_le_bytes());
    out.extend_from_slice(&base.from.0.to_le_bytes());
    let sum = checksum_at(&out[16..], name, 0);
    out[12..16].copy_from_slice(&sum.to_le_bytes());
    out
}

/// Decodes the header of the segment called `name`.
pub fn decode_header(bytes: &[u8], name: &str) -> Result<Header> {
    let Some(bytes) = bytes.get(..HEADER_BYTES) else {
        return Err(Error::corrupt(format!(
            "{name}: it has {} bytes, fewer than its header of {HEADER_BYTES} bytes",
            bytes.len()
        )));
    };
    if &bytes[..8] != MAGIC {
        return Err(Error::corrupt(format!("{name}: it does not begin like a log segment")));
    }
    let version = u32_at(bytes, 8);
    if u32_at(bytes, 12) != checksum_at(&bytes[16..], name, 0) {
        return Err(Error::corrupt(format!("{name}: the header's checksum does not match")));
    }
    if version != LOG_VERSION {
        return Err(Error::unsupported(format!(
            "{name}: the log has format {version}, and this build reads format {LOG_VERSION}; open it with the version \
             of drumlin that wrote it"
        )));
    }
    let (seq, offset) = (Seq(u64_at(bytes, 24)), u64_at(bytes, 32));
    let from = Seq(u64_at(bytes, 48));
    let base = Base { seq, from, offset, bytes: u32_at(bytes, 44), checksum: u32_at(bytes, 40) };
    Ok(Header { first: Seq(u64_at(bytes, 16)), base: (base.seq.0 > 0).then_some(base) })
}

/// Appends the bytes of a record that will live at `offset` of the segment called `name`.
pub fn encode_record(record: &LogRecord, name: &str, offset: u64) -> Result<Vec<u8>> {
    assert!(record.synced.0 <= SYNCED_MAX, "seqs fit into 56 bits");
    let (kind, body) = match &record.body {
        Body::Entry(entry) => {
            let mut body = Vec::with_capacity(ENTRY_HEADER_BYTES + PREV_BYTES + entry.payload.len());
            let features = entry.features | if entry.prev.is_some() { FEATURE_PREV } else { 0 };
            body.extend_from_slice(&entry.id.0.to_le_bytes());
            body.extend_from_slice(&entry.session.0.to_le_bytes());
            body.extend_from_slice(&entry.time.0.to_le_bytes());
            body.extend_from_slice(&features.to_le_bytes());
            entry.prev.iter().for_each(|prev| body.extend_from_slice(&prev.0.to_le_bytes()));
            body.extend_from_slice(&entry.payload);
            (1, body)
        }
        Body::End => (2, Vec::new()),
    };
    let length = u32::try_from(body.len()).map_err(|_| {
        Error::invalid(format!(
            "the commit takes {} bytes in the log; expected less than 4 GiB, so do it in parts",
            body.len()
        ))
    })?;
    let mut out = Vec::with_capacity(RECORD_HEADER_BYTES + body.len() + ALIGNMENT);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&record.seq.0.to_le_bytes());
    out.extend_from_slice(&(record.synced.0 | (kind << 56)).to_le_bytes());
    out.extend_from_slice(&body);
    let sum = record_checksum(&out, name, offset);
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    Ok(out)
}

/// `bytes` is the record without padding.
fn record_checksum(bytes: &[u8], name: &str, offset: u64) -> u32 {
    let sum = crc32c::crc32c(&bytes[..4]);
    let sum = crc32c::crc32c_append(sum, &bytes[8..]);
    let sum = crc32c::crc32c_append(sum, name.as_bytes());
    crc32c::crc32c_append(sum, &offset.to_le_bytes())
}

/// The record at `offset` of the segment `name` whose bytes are `segment`, and the offset past it; `None` if there is
/// no good record.
pub fn decode_record(segment: &Bytes, name: &str, offset: usize) -> Option<(LogRecord, usize)> {
    let bytes = segment.get(offset..)?;
    let length = u32_at(bytes.get(..RECORD_HEADER_BYTES)?, 0) as usize;
    let end = RECORD_HEADER_BYTES.checked_add(length)?;
    let bytes = bytes.get(..end)?;
    if u32_at(bytes, 4) != record_checksum(bytes, name, offset as u64) {
        return None;
    }
    let seq = Seq(u64_at(bytes, 8));
    let marked = u64_at(bytes, 16);
    let body = &bytes[RECORD_HEADER_BYTES..];
    let body = match marked >> 56 {
        1 if body.len() >= ENTRY_HEADER_BYTES => {
            let features = u64_at(body, 32);
            let prev = match features & FEATURE_PREV {
                0 => None,
                _ => Some(id_at(body.get(..ENTRY_HEADER_BYTES + PREV_BYTES)?, ENTRY_HEADER_BYTES)),
            };
            let header = RECORD_HEADER_BYTES + ENTRY_HEADER_BYTES + if prev.is_some() { PREV_BYTES } else { 0 };
            Body::Entry(Entry {
                seq,
                id: id_at(body, 0),
                prev,
                session: SessionId(u64_at(body, 16)),
                time: Timestamp(u64_at(body, 24).cast_signed()),
                features: features & !FEATURE_PREV,
                payload: segment.slice(offset + header..offset + end),
            })
        }
        2 if body.is_empty() => Body::End,
        _ => return None,
    };
    let behind = (offset + end).next_multiple_of(ALIGNMENT).min(segment.len());
    Some((LogRecord { seq, synced: Seq(marked & SYNCED_MAX), body }, behind))
}

/// Whether the bytes at `offset` could be the header of a record that shows that everything before entry `seq` was synced:
/// one that says so, or that entry itself.
pub fn may_show_synced(segment: &[u8], offset: usize, seq: Seq) -> bool {
    segment.get(offset..offset + RECORD_HEADER_BYTES).is_some_and(|bytes| {
        let (own, marked) = (u64_at(bytes, 8), u64_at(bytes, 16));
        let (synced, kind) = (marked & SYNCED_MAX, marked >> 56);
        match kind {
            1 => synced < own && (synced >= seq.0 || own == seq.0),
            2 => synced <= own && synced >= seq.0,
            _ => false,
        }
    })
}

/// The first offset at or after `offset` at which a record may begin.
pub fn align(offset: usize) -> usize {
    offset.next_multiple_of(ALIGNMENT)
}
