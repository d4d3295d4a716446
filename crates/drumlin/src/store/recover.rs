//! From bytes to a state: the newest catalog snapshot, then the log behind it.
//!
//! ```text
//! catalog snapshot
//!   0   8  magic "DRUMCAT\0"
//!   8   4  format version (2)
//!  12   4  zero
//!  16   -  postcard encoding of the state
//! ```
//! Its size and its CRC32C (over data, name and offset 0) stand in the header of the log segment that names it.

use bytes::Bytes;

use crate::base::{Error, ErrorKind, Result, checksum_at};
use crate::catalog::{FEATURES_KNOWN, State, Transaction};
use crate::log::{Base, Entry, Opened};
use crate::storage::{PutMode, Storage, names};

const MAGIC: &[u8; 8] = b"DRUMCAT\0";
const CATALOG_VERSION: u32 = 2;
const HEADER_BYTES: usize = 16;

/// Writes the catalog snapshot of `state`; durable when it returns.
pub(super) fn write_catalog(storage: &dyn Storage, state: &State) -> Result<Base> {
    let (base, bytes) = encode_catalog(state)?;
    storage.put(&names::catalog(state.seq), &[Bytes::from(bytes)], PutMode::Replace)?;
    Ok(base)
}

/// The catalog snapshot of `state`, and how the log names it.
pub(super) fn encode_catalog(state: &State) -> Result<(Base, Vec<u8>)> {
    let name = names::catalog(state.seq);
    let mut bytes = Vec::with_capacity(4096);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&CATALOG_VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    let bytes = postcard::to_extend(state, bytes)
        .map_err(|e| Error::invalid("the catalog could not be encoded").with_source(e.to_string()))?;
    let base = Base { seq: state.seq, bytes: bytes.len() as u64, checksum: checksum_at(&bytes, &name, 0) };
    Ok((base, bytes))
}

/// Reads and checks the catalog snapshot that `base` names.
pub(super) fn read_catalog(storage: &dyn Storage, base: &Base) -> Result<State> {
    let name = names::catalog(base.seq);
    let corrupt = |what: String| Error::corrupt(format!("{name}: {what}"));
    let bytes = storage.get(&name).map_err(|e| match e.kind() {
        ErrorKind::NotFound => corrupt("the log names it, but it is missing".into()),
        _ => e,
    })?;
    if bytes.len() as u64 != base.bytes || checksum_at(&bytes, &name, 0) != base.checksum {
        return Err(corrupt(format!(
            "{} bytes, or their checksum, are not the {} that were written",
            bytes.len(),
            base.bytes
        )));
    }
    if bytes.len() < HEADER_BYTES || &bytes[..8] != MAGIC {
        return Err(corrupt("does not begin as a catalog snapshot".into()));
    }
    let version = u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes"));
    if version != CATALOG_VERSION {
        return Err(Error::unsupported(format!("{name}: format {version}; this build reads {CATALOG_VERSION}")));
    }
    let state: State = postcard::from_bytes(&bytes[HEADER_BYTES..]).map_err(|e| corrupt(e.to_string()))?;
    if state.seq != base.seq {
        return Err(corrupt(format!("holds the state at {}", state.seq)));
    }
    Ok(state)
}

/// The state that a log leads to.
pub(super) fn replay(storage: &dyn Storage, opened: &Opened) -> Result<State> {
    let mut state = match &opened.base {
        Some(base) => read_catalog(storage, base)?,
        None => State::default(),
    };
    state.restore();
    state.check()?;
    opened.entries.iter().try_for_each(|entry| apply_entry(&mut state, entry))?;
    if !opened.entries.is_empty() {
        state.check()?;
    }
    state.catch_up(None);
    Ok(state)
}

/// Applies the next entry of the log.
pub(super) fn apply_entry(state: &mut State, entry: &Entry) -> Result<()> {
    if entry.seq != state.seq.next() {
        return Err(Error::corrupt(format!("entry {} follows commit {}", entry.seq, state.seq)));
    }
    let unknown = entry.features & !FEATURES_KNOWN;
    if unknown != 0 {
        return Err(Error::unsupported(format!("commit {} needs features {unknown:#x}, unknown here", entry.seq)));
    }
    let context = |e: Error| Error::corrupt(format!("commit {}: {}", entry.seq, e.message()));
    for transaction in Transaction::decode(&entry.payload).map_err(context)? {
        state.apply(&transaction, entry.seq, entry.time).map_err(context)?;
    }
    state.finish(entry.seq, entry.time, entry.id);
    Ok(())
}
