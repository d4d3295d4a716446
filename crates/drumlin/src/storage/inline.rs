//! Small blocks that travel in the commit that refers to them: kept in memory, and read like those on storage.
//!
//! The writer of a block passes its bytes to the log; a reader of the log adds the blocks that it finds there. So a name
//! is here or on storage, never both.
//!
//! A block is released once the newest state does not need it and no state is being read that might. A block that no commit
//! has published yet is its writer's to keep or delete.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use super::{ObjectMeta, Storage, Tag, WriteMode};
use crate::base::{Error, Result, Seq, Timestamp};

/// A [`Storage`] with some additional objects in memory.
#[derive(Debug)]
pub struct InlineStorage {
    storage: Arc<dyn Storage>,
    objects: RwLock<BTreeMap<String, Held>>,
}

#[derive(Debug)]
struct Held {
    bytes: Bytes,
    /// Whether a commit has published it.
    committed: bool,
    /// The first state seen since then that does not need it.
    unneeded: Option<Seq>,
}

impl InlineStorage {
    /// Without objects in memory.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage, objects: RwLock::default() }
    }

    /// Keeps an object in memory until it is deleted or, once it is committed, released.
    pub fn hold(&self, name: &str, bytes: Bytes) {
        let new = || Held { bytes, committed: false, unneeded: None };
        self.objects.write().entry(name.to_owned()).or_insert_with(new);
    }

    /// Notes that a commit has published an object.
    pub fn committed(&self, name: &str) {
        if let Some(held) = self.objects.write().get_mut(name) {
            held.committed = true;
        }
    }

    /// Forgets objects that a commit has published and that the newest state does not need, unless an older state, from
    /// before this was noticed, is still being read. `look` returns the newest state, the oldest that is being read, and the
    /// objects that the newest needs. An object counts as committed once the state that needs it is the newest.
    pub fn let_go(&self, look: impl FnOnce() -> (Seq, Option<Seq>, BTreeSet<String>)) {
        let mut objects = self.objects.write();
        if objects.is_empty() {
            return;
        }
        // Called under the lock: this state knows everything that is committed by now.
        let (newest, oldest, needed) = look();
        objects.retain(|name, held| {
            if !held.committed || needed.contains(name) {
                return true;
            }
            let since = *held.unneeded.get_or_insert(newest);
            oldest.is_some_and(|oldest| oldest < since)
        });
    }

    fn held(&self, name: &str) -> Option<Bytes> {
        self.objects.read().get(name).map(|held| held.bytes.clone())
    }
}

impl Storage for InlineStorage {
    fn is_remote(&self) -> bool {
        self.storage.is_remote()
    }

    fn written_at(&self, name: &str) -> Result<Option<Timestamp>> {
        self.storage.written_at(name)
    }

    fn get(&self, name: &str) -> Result<Bytes> {
        self.held(name).map_or_else(|| self.storage.get(name), Ok)
    }

    fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some(bytes) = self.held(name) else { return self.storage.get_ranges(name, ranges) };
        let part = |range: &Range<u64>| {
            let fits = range.start <= range.end && range.end <= bytes.len() as u64;
            let (end, from) = (bytes.len(), range.start..range.end);
            fits.then(|| bytes.slice(from.start as usize..from.end as usize)).ok_or_else(|| {
                Error::corrupt(format!("{name}: ends at {end}, expected bytes {}..{}", range.start, range.end))
            })
        };
        ranges.iter().map(part).collect()
    }

    fn get_ranges_of(&self, wanted: &[(String, Vec<Range<u64>>)]) -> Vec<Result<Vec<Bytes>>> {
        let held: Vec<bool> = wanted.iter().map(|(name, _)| self.held(name).is_some()).collect();
        if !held.contains(&true) {
            return self.storage.get_ranges_of(wanted);
        }
        let others: Vec<_> =
            wanted.iter().zip(&held).filter(|(_, held)| !**held).map(|(wanted, _)| wanted.clone()).collect();
        let mut others = self.storage.get_ranges_of(&others).into_iter();
        let answer = |((name, ranges), held): (&(String, Vec<Range<u64>>), bool)| match held {
            true => self.get_ranges(name, ranges),
            false => others.next().unwrap_or_else(|| self.get_ranges(name, ranges)),
        };
        wanted.iter().zip(held).map(answer).collect()
    }

    fn prefetch(&self, name: &str, ranges: &[Range<u64>]) {
        if self.held(name).is_none() {
            self.storage.prefetch(name, ranges);
        }
    }

    fn put(&self, name: &str, parts: &[Bytes], mode: WriteMode) -> Result<()> {
        self.storage.put(name, parts, mode)
    }

    fn get_tagged(&self, name: &str, known: Option<&Tag>) -> Result<Option<(Bytes, Tag)>> {
        self.storage.get_tagged(name, known)
    }

    fn put_if_match(&self, name: &str, parts: &[Bytes], known: Option<&Tag>) -> Result<Tag> {
        self.storage.put_if_match(name, parts, known)
    }

    fn delete_many(&self, names: &[String]) -> Vec<Result<()>> {
        let here: Vec<bool> = {
            let mut objects = self.objects.write();
            names.iter().map(|name| objects.remove(name).is_some()).collect()
        };
        let others: Vec<String> = names.iter().zip(&here).filter(|(_, here)| !**here).map(|(n, _)| n.clone()).collect();
        let mut answers = if others.is_empty() { Vec::new() } else { self.storage.delete_many(&others) }.into_iter();
        here.into_iter().map(|here| if here { Ok(()) } else { answers.next().expect("one for each name") }).collect()
    }

    fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        self.storage.list(folder)
    }

    fn list_folders(&self, folder: &str) -> Result<Vec<String>> {
        self.storage.list_folders(folder)
    }

    fn unfinished(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        self.storage.unfinished(folder)
    }

    fn release(&self) {
        self.storage.release();
    }

    fn remove_empty_folder(&self, folder: &str) -> Result<()> {
        self.storage.remove_empty_folder(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{FileStorage, SimDisk};

    #[test]
    fn what_is_held_is_read_like_the_rest_until_it_is_let_go() {
        let storage = InlineStorage::new(Arc::new(FileStorage::new(Arc::new(SimDisk::in_memory()))));
        let names: Vec<String> = (0..4).map(|n| format!("blocks/1/{n}.blk")).collect();
        storage.put(&names[0], &[Bytes::from_static(b"stored")], WriteMode::Create).unwrap();
        (1..4).for_each(|n| storage.hold(&names[n], Bytes::from_static(b"held")));
        assert_eq!(storage.get(&names[0]).unwrap(), "stored");
        assert_eq!(storage.get_ranges(&names[1], &[1..3, 0..4]).unwrap(), ["el", "held"]);
        assert_eq!(storage.get_ranges(&names[1], &[0..1, 3..5]).unwrap_err().kind(), crate::ErrorKind::Corrupt);
        assert!(storage.delete_many(&names[..2]).into_iter().all(|answer| answer.is_ok()));
        let let_go = |newest: u64, oldest: Option<u64>, needed: &[String]| {
            storage.let_go(|| (Seq(newest), oldest.map(Seq), needed.iter().cloned().collect()));
        };
        let_go(7, None, &[]);
        assert!(storage.get(&names[2]).is_ok(), "no commit has published it yet");
        storage.committed(&names[2]);
        let_go(7, Some(6), &names);
        let_go(8, Some(7), &[]);
        assert!(storage.get(&names[2]).is_ok(), "a state that needs it is being read");
        let_go(9, Some(8), &[]);
        let there = |storage: &InlineStorage| names.iter().map(|name| storage.get(name).is_ok()).collect::<Vec<_>>();
        assert_eq!(there(&storage), [false, false, false, true]);
        storage.committed(&names[3]);
        let_go(9, None, &[]);
        assert_eq!(there(&storage), [false; 4]);
    }
}
