//! Reads the root of a shared log, and what it leads to.

use super::super::root::{self, Root};
use super::super::{Entry, Opened};
use super::place::RootPlace;
use crate::base::{Error, ErrorKind, Pool, Result, Seq};
use crate::storage::{Storage, Tag};

/// How often the root is read again because what it named was gone.
pub const LOOKS: usize = 8;

/// The error if something that the root names is missing or not as described.
pub fn damaged(e: Error) -> Error {
    match e.kind() {
        ErrorKind::NotFound => Error::corrupt(format!("{}; the store needs this object", e.message())),
        _ => e,
    }
}

/// The entries after `after`; chunks are read in parallel.
pub fn entries_after(storage: &dyn Storage, pool: &Pool, root: &Root, after: Seq) -> Result<Vec<Entry>> {
    let chunks = root.chunks.iter().filter(|chunk| chunk.last > after).collect();
    let read = pool.map(chunks, |chunk| root::decode_chunk(chunk, &storage.get(&chunk.name())?))?;
    let from = root.base.map_or(Seq(0), |base| base.from);
    let wanted = |entry: &Entry| entry.seq > after && entry.seq >= from;
    let chunked = read.into_iter().flatten().filter(wanted);
    let newest = root.entries.from(after.next());
    Ok(chunked.chain(newest.filter(|entry| wanted(entry)).cloned()).collect())
}

/// Everything that the root leads to; `first` is the root as it was read already.
pub fn read_from_place(
    place: &RootPlace,
    storage: &dyn Storage,
    pool: &Pool,
    mut first: Option<(Root, Tag)>,
) -> Result<(Root, Tag, Opened)> {
    let mut looks = 0;
    loop {
        let read = match first.take() {
            Some(read) => Some(read),
            None => place.read(None)?,
        };
        let (root, tag) = read.ok_or_else(|| Error::unavailable("the root has no content"))?;
        root.role.check_here()?;
        match entries_after(storage, pool, &root, Seq(0)) {
            Ok(entries) => {
                let opened = Opened { base: root.base, entries, origin: root.origin, lossy: false };
                return Ok((root, tag, opened));
            }
            // It has been cut since.
            Err(e) if e.kind() == ErrorKind::NotFound && looks < LOOKS => looks += 1,
            Err(e) => return Err(damaged(e)),
        }
    }
}
