//! From bytes to a state: the newest catalog snapshot, then the log after it.
//!
//! ```text
//! object of a catalog snapshot
//!   0   8  magic "DRUMCAT\0"
//!   8   4  format version (10; 5 to 9 are read)
//!  12   4  zero
//!  16   -  chunks, end to end
//!   -   -  postcard encoding of the index
//! ```
//! Where the index lies, and its CRC32C (over data, name and offset), are in the header of the log segment that names
//! the snapshot; where each chunk lies, in this object or an older one, and its CRC32C, are in the index.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::planted::{Bug, planted};
use crate::base::{EntryId, Env, Error, ErrorKind, Patience, Result, Seq, checksum_at};
use crate::catalog::{ChunkAddress, FEATURES_KNOWN, Index, Packed, State, TransactionRecord};
use crate::log::{Base, CLOSED, Entry, Opened, Origin};
use crate::storage::{Storage, WriteMode, is_whole, names};

const MAGIC: &[u8; 8] = b"DRUMCAT\0";
const CATALOG_VERSION: u32 = 10;
/// The oldest version that is read: its index has no section of times.
const CATALOG_VERSION_MIN: u32 = 5;
pub(in crate::store) const HEADER_BYTES: u64 = 16;

/// The newest catalog snapshot, from which the next one is made.
pub(in crate::store) struct Catalog {
    /// Its name in the log.
    pub base: Base,
    pub index: Index,
    /// The state that it holds.
    pub state: State,
}

impl Catalog {
    /// The objects that it consists of.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.index.objects().chain([self.base.seq]).map(names::catalog)
    }
}

/// Makes the catalog snapshot of `state`: its name in the log, its index, its object's parts, and the pages of its tables. The log
/// keeps entries from `kept` on, and those that rows in memory need.
pub(in crate::store) fn encode_catalog(
    state: &State,
    before: Option<&Catalog>,
    kept: Option<Seq>,
) -> Result<(Base, Index, Vec<Bytes>, Arc<Packed>)> {
    let before = before.map(|before| (&before.index, &before.state));
    let (index, chunks, packed) = Index::of(state, before, HEADER_BYTES)?;
    let mut header = Vec::with_capacity(HEADER_BYTES as usize);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&CATALOG_VERSION.to_le_bytes());
    header.extend_from_slice(&[0; 4]);
    let encoded = index.encode()?;
    let offset = HEADER_BYTES + chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
    let bytes = u32::try_from(encoded.len()).map_err(|_| Error::invalid("the catalog's index takes 4 GiB or more"))?;
    let checksum = checksum_at(&encoded, &names::catalog(state.seq), offset);
    let parts = [Bytes::from(header)].into_iter().chain(chunks).chain([Bytes::from(encoded)]).collect();
    let rows_from = state.rows_from().filter(|_| !planted(Bug::ForgetRowsFrom));
    let from = rows_from.into_iter().chain(kept).min().unwrap_or(state.seq.next()).min(state.seq.next());
    Ok((Base { seq: state.seq, from, offset, bytes, checksum }, index, parts, packed))
}

/// Writes the catalog snapshot of `state`; durable when it returns.
///
/// In a shared store two processes may write one of the same state at a time: the first does, and the other gets
/// `AlreadyExists`. There, `shared` says how to wait, and for how many microseconds, if the bucket refuses it because there
/// are too many requests.
pub(in crate::store) fn write_catalog(
    storage: &dyn Storage,
    state: &State,
    before: Option<&Catalog>,
    kept: Option<Seq>,
    shared: Option<(&Env, u64)>,
) -> Result<(Base, Catalog, Arc<Packed>)> {
    let (base, index, parts, packed) = encode_catalog(state, before, kept)?;
    let name = names::catalog(state.seq);
    match shared {
        Some((env, retry)) => create(storage, env, retry, &name, &parts)?,
        None => storage.put(&name, &parts, WriteMode::Replace)?,
    }
    let state = state.with_pages(state, &packed).stored();
    Ok((base, Catalog { base, index, state }, packed))
}

/// Writes a new object. If one is there, or after a put without an answer, what is stored shows whether it was done: the same
/// bytes from another process, or from a checkpoint that could not name them, are as good.
fn create(storage: &dyn Storage, env: &Env, retry: u64, name: &str, parts: &[Bytes]) -> Result<()> {
    /// How often a put that is not throttled is tried.
    const ATTEMPTS: usize = 4;
    let (mut patience, mut attempt) = (Patience::new(retry), 0);
    loop {
        let failure = match storage.put(name, parts, WriteMode::Create) {
            Err(e) => e,
            done => return done,
        };
        let there = failure.kind() == ErrorKind::AlreadyExists;
        let fleeting = there || [ErrorKind::Unavailable, ErrorKind::InDoubt].contains(&failure.kind());
        attempt += usize::from(!failure.is_throttled());
        if !fleeting || attempt == ATTEMPTS || !there && !patience.pause(env)? {
            return Err(failure);
        }
        if failure.is_throttled() {
            continue;
        }
        match storage.get(name) {
            Ok(there) if is_whole(&there, parts) => return Ok(()),
            Ok(_) => return Err(Error::already_exists(format!("{name} was written by another process"))),
            // It was not done: try again.
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            // That cannot be found out now.
            Err(_) if !patience.pause(env)? => return Err(failure),
            Err(_) => {}
        }
    }
}

/// The result of reading an object that must exist.
fn needed<T>(name: &str, read: Result<T>) -> Result<T> {
    read.map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::corrupt(format!("{name}: the object is missing, but the store needs it")),
        _ => e,
    })
}

/// Reads and checks the index that `base` names.
pub(in crate::store) fn read_index(storage: &dyn Storage, base: &Base) -> Result<Index> {
    let name = names::catalog(base.seq);
    let corrupt = |what: String| Error::corrupt(format!("{name}: {what}"));
    let end = base.offset.checked_add(u64::from(base.bytes));
    let end = end.ok_or_else(|| corrupt(format!("the offset of its index, {}, is too large", base.offset)))?;
    let mut parts = needed(&name, storage.get_ranges(&name, &[0..HEADER_BYTES, base.offset..end]))?;
    let (encoded, header) = (parts.remove(1), parts.remove(0));
    if &header[..8] != MAGIC {
        return Err(corrupt("it does not begin like a catalog snapshot".into()));
    }
    let version = u32::from_le_bytes(header[8..12].try_into().expect("4 bytes"));
    if !(CATALOG_VERSION_MIN..=CATALOG_VERSION).contains(&version) {
        let known = format!("{CATALOG_VERSION_MIN} to {CATALOG_VERSION}");
        return Err(Error::unsupported(format!(
            "{name}: it has format {version}, and this build reads formats {known}; open the store with the version of \
             drumlin that wrote it"
        )));
    }
    if checksum_at(&encoded, &name, base.offset) != base.checksum {
        return Err(corrupt(format!("the index at offset {}: the checksum does not match", base.offset)));
    }
    let index = Index::decode(&encoded).map_err(|e| corrupt(e.message().to_owned()))?;
    if index.seq() != base.seq {
        return Err(corrupt(format!(
            "it has the state of commit {}; expected that of commit {}",
            index.seq(),
            base.seq
        )));
    }
    Ok(index)
}

/// Reads and checks the chunks of a catalog snapshot, in the order of [`Index::places`]: one request for each object.
pub(in crate::store) fn read_chunks(storage: &dyn Storage, index: &Index) -> Result<Vec<Bytes>> {
    let mut by_object: BTreeMap<Seq, Vec<(usize, &ChunkAddress)>> = BTreeMap::new();
    for (at, place) in index.places().enumerate() {
        by_object.entry(place.object).or_default().push((at, place));
    }
    let mut chunks = vec![Bytes::new(); index.places().count()];
    let ranges =
        |places: &Vec<(usize, &ChunkAddress)>| places.iter().map(|(_, place)| place.range()).collect::<Result<_>>();
    let wanted = by_object.iter().map(|(object, places)| Ok((names::catalog(*object), ranges(places)?)));
    let wanted: Vec<(String, Vec<Range<u64>>)> = wanted.collect::<Result<_>>()?;
    for (((name, _), (_, places)), read) in wanted.iter().zip(by_object).zip(storage.get_ranges_of(&wanted)) {
        for ((at, place), bytes) in places.into_iter().zip(needed(name, read)?) {
            if checksum_at(&bytes, name, place.offset) != place.checksum {
                let offset = place.offset;
                return Err(Error::corrupt(format!(
                    "{name}: the chunk at offset {offset}: the checksum does not match"
                )));
            }
            chunks[at] = bytes;
        }
    }
    Ok(chunks)
}

/// Reads those chunks that can be read. Fails only if a bucket cannot be reached.
pub(in crate::store) fn read_some_chunks(storage: &dyn Storage, index: &Index) -> Result<Vec<Option<Bytes>>> {
    if let Ok(chunks) = read_chunks(storage, index) {
        return Ok(chunks.into_iter().map(Some).collect());
    }
    let chunk = |place: &ChunkAddress| -> Result<Option<Bytes>> {
        let name = names::catalog(place.object);
        let read = place.range().and_then(|range| storage.get_ranges(&name, std::slice::from_ref(&range)));
        match read {
            Ok(mut parts) => Ok(parts.pop().filter(|bytes| checksum_at(bytes, &name, place.offset) == place.checksum)),
            Err(e) if storage.is_remote() && e.kind() == ErrorKind::Unavailable => Err(e),
            Err(_) => Ok(None),
        }
    };
    index.places().map(chunk).collect()
}

/// The index at the end of a catalog snapshot's object that nothing names. That the checksums of its chunks match shows
/// that it is an index; its own contents are not checked.
pub(in crate::store) fn find_index(storage: &dyn Storage, seq: Seq) -> Result<Option<Index>> {
    match storage.get(&names::catalog(seq)) {
        Ok(object) => Ok(Index::find(&object, seq, HEADER_BYTES).map(|(index, _)| index)),
        Err(e) if storage.is_remote() && e.kind() == ErrorKind::Unavailable => Err(e),
        Err(_) => Ok(None),
    }
}

/// Reads the catalog snapshot that `base` names.
fn read_catalog(storage: &dyn Storage, base: &Base) -> Result<(Index, State)> {
    let index = read_index(storage, base)?;
    let state = index.read(&read_chunks(storage, &index)?)?;
    Ok((index, state))
}

/// The state that a log leads to, and the catalog snapshot that it continues.
pub(in crate::store) fn replay(storage: &dyn Storage, opened: &Opened) -> Result<(State, Option<Catalog>)> {
    let Origin { store, parent } = opened.origin;
    let (index, mut state) = match &opened.base {
        Some(base) => read_catalog(storage, base).map(|(index, state)| (Some(index), state))?,
        None => {
            let mut new = State::default();
            // Since a loss was accepted, the id is another than the first entry names.
            new.entry = if parent.is_none() { opened.origin.first() } else { EntryId(0) };
            (None, new)
        }
    };
    if store != 0 {
        let of = state.holds.store;
        // After a loss was accepted, the catalog has the id of before.
        if ![0, store].contains(&of) && parent.is_none() {
            let what = format!("the catalog belongs to store {of:032x}, but the log belongs to store {store:032x}");
            return Err(Error::other_history(ErrorKind::Corrupt, what));
        }
        state.holds.store = store;
    }
    state.restore()?;
    if !state.check()? {
        state.doubt_pages();
    }
    let catalog = index.zip(opened.base).map(|(index, base)| Catalog { base, index, state: state.stored() });
    opened.entries.iter().try_for_each(|entry| match entry.seq <= state.seq {
        true => replay_rows(&state, entry),
        false => {
            apply_entry(&mut state, entry)?;
            state.settle().map(drop).map_err(|e| of_entry(entry, e))
        }
    })?;
    if !opened.entries.is_empty() {
        state.check()?;
    }
    state.catch_up(None);
    Ok((state, catalog))
}

/// The transactions of an entry; errors name the commit.
pub(in crate::store) fn transactions(entry: &Entry) -> Result<Vec<TransactionRecord>> {
    let unknown = entry.features & !FEATURES_KNOWN;
    if unknown != 0 {
        return Err(Error::unsupported(format!(
            "commit {} needs features that this build does not know ({unknown:#x}); open the store with the version of \
             drumlin that wrote it",
            entry.seq
        )));
    }
    TransactionRecord::decode(&entry.payload).map_err(|e| of_entry(entry, e))
}

fn of_entry(entry: &Entry, e: Error) -> Error {
    Error::corrupt(format!("commit {}: {}", entry.seq, e.message()))
}

/// Brings the rows that an entry wrote by key into memory; `state` holds the rest of the entry's effects.
fn replay_rows(state: &State, entry: &Entry) -> Result<()> {
    let replay = |transaction: &TransactionRecord| state.replay_rows(transaction, entry.seq, entry.time);
    transactions(entry)?.iter().try_for_each(replay).map_err(|e| of_entry(entry, e))
}

/// Applies the next entry of the log; rows that it wrote by key still have to be settled.
/// Returns what it did.
pub(in crate::store) fn apply_entry(state: &mut State, entry: &Entry) -> Result<Vec<TransactionRecord>> {
    if entry.seq != state.seq.next() {
        return Err(Error::corrupt(format!("entry {} follows commit {}", entry.seq, state.seq)));
    }
    if let Some(prev) = entry.prev.filter(|prev| *prev != state.entry && !planted(Bug::IgnorePrev)) {
        // Where nothing is known of the entry before, there is nothing to compare.
        if state.entry != EntryId(0) {
            let (seq, known) = (entry.seq, state.entry.0);
            let what =
                format!("commit {seq} continues entry {:032x}, but the entry before it here is {known:032x}", prev.0);
            return Err(Error::other_history(ErrorKind::Corrupt, format!("{what}; {CLOSED}")));
        }
    }
    let transactions = transactions(entry)?;
    for transaction in &transactions {
        state.apply(transaction, entry.seq, entry.time).map_err(|e| of_entry(entry, e))?;
    }
    state.finish(entry.seq, entry.time, entry.id, entry.session);
    Ok(transactions)
}
