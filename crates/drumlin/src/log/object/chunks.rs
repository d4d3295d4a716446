//! Entries that leave the root of a shared log for chunks, and what an audit finds of both.

use super::super::root::{self, Chunk, Root};
use super::super::{Entry, evidence};
use super::place::RootPlace;
use super::read::read_from_place;
use crate::base::{Env, Pool, Result};
use crate::storage::{Storage, WriteMode};

/// Writes a chunk of entries.
pub fn put(storage: &dyn Storage, env: &Env, entries: &[Entry]) -> Result<Chunk> {
    let (chunk, bytes) = root::encode_chunk(entries, env.entropy.next()?)?;
    storage.put(&chunk.name(), &[bytes.into()], WriteMode::Once)?;
    Ok(chunk)
}

/// Moves the entries that the root itself holds to a chunk if they are large; returns its name.
pub fn spill(place: &RootPlace, storage: &dyn Storage, env: &Env, root: &mut Root) -> Result<Option<String>> {
    if !place.must_spill(root) {
        return Ok(None);
    }
    let entries: Vec<Entry> = std::mem::take(&mut root.entries).iter().cloned().collect();
    let chunk = put(storage, env, &entries)?;
    let name = chunk.name();
    root.chunks.push(chunk);
    Ok(Some(name))
}

/// What is wrong with what lies beside the root, in words.
pub fn inspected(place: &RootPlace, storage: &dyn Storage, pool: &Pool) -> Result<Vec<String>> {
    let (root, _, evidence) = evidence::look_around(storage)?;
    // In a folder it is written in place, and a crash may leave half of it: it says nothing then.
    let mut faults: Vec<String> = evidence.damage.iter().filter(|_| storage.is_remote()).cloned().collect();
    if evidence.judge(&root).is_err()
        && let Some((root, _)) = place.read(None)?
        && let Err(e) = evidence.judge(&root)
    {
        faults.push(e.to_string());
    }
    // The log may be cut while it is read.
    if let Ok((root, _, opened)) = read_from_place(place, storage, pool, None) {
        let broken = opened.entries.windows(2).find(|pair| pair[1].prev.is_some_and(|prev| prev != pair[0].id));
        let last = opened.entries.last().filter(|last| root.last_id().is_some_and(|id| id != last.id));
        for seq in broken.map(|pair| pair[1].seq).into_iter().chain(last.map(|last| last.seq)) {
            faults.push(format!("commit {seq} does not continue the one before it"));
        }
    }
    Ok(faults)
}
