//! Small blocks that travel in the commit that refers to them: kept in memory, and read like those on storage.
//!
//! A call that adds no more than `Options::inline_bytes` (64 KiB by default) writes no block object. Its bytes are in
//! the log entry, in the state, and here under the block's name. So an append of one row is one write and one sync of
//! the log, and reading, pinning and copying know no difference. A checkpoint repacks all of these blocks into one on
//! storage.
//!
//! The writer of a block passes its bytes to the log; a reader of the log adds the blocks that it finds there. So a
//! name is here or on storage, never both. Such a block has no object, so it is never condemned.
//!
//! A block is kept as long as the newest state needs it, or a state that is being read: one of those between the commit
//! that published the block and the commit that released it. A reader of an older state keeps nothing that came later.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use super::{ObjectMeta, Storage, Survey, Tag, WriteMode};
use crate::base::{Error, Result, Seq, Timestamp};

/// A [`Storage`] with some additional objects in memory.
#[derive(Debug)]
pub struct InlineStorage {
    storage: Arc<dyn Storage>,
    objects: RwLock<BTreeMap<String, InlineObject>>,
    /// The newest state.
    newest: AtomicU64,
    /// What the newest state does not need any more.
    released: Mutex<Vec<Released>>,
    sealed: OnceLock<String>,
}

#[derive(Debug)]
struct InlineObject {
    bytes: Bytes,
    /// The newest state when it came: this one, and older ones, do not know it.
    after: Seq,
}

#[derive(Debug)]
struct Released {
    name: String,
    /// The first state that does not need it.
    by: Seq,
}

impl InlineStorage {
    /// Without objects in memory.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        let (newest, released, sealed) = (AtomicU64::new(0), Mutex::default(), OnceLock::new());
        Self { storage, objects: RwLock::default(), newest, released, sealed }
    }

    /// Keeps an object in memory until it is deleted or released.
    pub fn hold(&self, name: &str, bytes: Bytes) {
        let after = Seq(self.newest.load(Ordering::SeqCst));
        self.objects.write().entry(name.to_owned()).or_insert_with(|| InlineObject { bytes, after });
    }

    /// Fails if it was sealed.
    pub fn check(&self) -> Result<()> {
        match self.sealed.get() {
            Some(why) => Err(Error::closed(why.clone())),
            None => Ok(()),
        }
    }

    /// What lies below, unless this was sealed.
    fn below(&self) -> Result<&dyn Storage> {
        self.check()?;
        Ok(&*self.storage)
    }

    /// Notes that the state `newest` was published, and that it does not need these objects any more.
    pub fn published(&self, newest: Seq, released: impl Iterator<Item = String>) {
        self.newest.fetch_max(newest.0, Ordering::SeqCst);
        let mut released = released.peekable();
        if released.peek().is_some() {
            self.released.lock().extend(released.map(|name| Released { name, by: newest }));
        }
    }

    /// Forgets released objects, except those that a state needs which is being read: `is_read` is asked about the states after
    /// one and before another. O(released objects).
    pub fn forget_released(&self, is_read: impl Fn(Seq, Seq) -> bool) {
        let mut released = self.released.lock();
        if released.is_empty() {
            return;
        }
        let mut objects = self.objects.write();
        released.retain(|Released { name, by }| {
            let kept = objects.get(name).is_some_and(|held| is_read(held.after, *by));
            if !kept {
                objects.remove(name);
            }
            kept
        });
    }

    /// Bytes of the objects in memory. O(objects).
    pub fn held_bytes(&self) -> u64 {
        self.objects.read().values().map(|held| held.bytes.len() as u64).sum()
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
        self.below()?.written_at(name)
    }

    fn keeps_replaced(&self, written: &Tag) -> Option<bool> {
        self.storage.keeps_replaced(written)
    }

    fn get(&self, name: &str) -> Result<Bytes> {
        self.held(name).map_or_else(|| self.below()?.get(name), Ok)
    }

    fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some(bytes) = self.held(name) else { return self.below()?.get_ranges(name, ranges) };
        let part = |range: &Range<u64>| {
            let fits = range.start <= range.end && range.end <= bytes.len() as u64;
            let (end, from) = (bytes.len(), range.start..range.end);
            fits.then(|| bytes.slice(from.start as usize..from.end as usize)).ok_or_else(|| {
                Error::corrupt(format!("{name}: it has {end} bytes, expected bytes {} to {}", range.start, range.end))
            })
        };
        ranges.iter().map(part).collect()
    }

    fn get_ranges_of(&self, wanted: &[(String, Vec<Range<u64>>)]) -> Vec<Result<Vec<Bytes>>> {
        if self.check().is_err() {
            return wanted.iter().map(|(name, ranges)| self.get_ranges(name, ranges)).collect();
        }
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
        self.below()?.put(name, parts, mode)
    }

    fn get_tagged(&self, name: &str, known: Option<&Tag>) -> Result<Option<(Bytes, Tag)>> {
        self.below()?.get_tagged(name, known)
    }

    fn put_if_match(&self, name: &str, parts: &[Bytes], known: Option<&Tag>) -> Result<Tag> {
        self.below()?.put_if_match(name, parts, known)
    }

    fn delete_many(&self, names: &[String]) -> Vec<Result<()>> {
        if self.check().is_err() {
            return names.iter().map(|_| self.check()).collect();
        }
        let here: Vec<bool> = {
            let mut objects = self.objects.write();
            names.iter().map(|name| objects.remove(name).is_some()).collect()
        };
        let others: Vec<String> = names.iter().zip(&here).filter(|(_, here)| !**here).map(|(n, _)| n.clone()).collect();
        let mut answers = if others.is_empty() { Vec::new() } else { self.storage.delete_many(&others) }.into_iter();
        here.into_iter().map(|here| if here { Ok(()) } else { answers.next().expect("one for each name") }).collect()
    }

    fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        self.below()?.list(folder)
    }

    fn list_folders(&self, folder: &str) -> Result<Vec<String>> {
        self.below()?.list_folders(folder)
    }

    fn unfinished(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        self.below()?.unfinished(folder)
    }

    fn release(&self) {
        self.storage.release();
    }

    fn remove_empty_folder(&self, folder: &str) -> Result<()> {
        self.below()?.remove_empty_folder(folder)
    }

    fn top(&self) -> Result<Vec<String>> {
        self.below()?.top()
    }

    fn survey(&self, tagged: &str, other: &str, folders: &[&str]) -> Survey {
        self.storage.survey(tagged, other, folders)
    }

    fn note(&self, name: &str, bytes: &Bytes, replaces: &dyn Fn(&[u8]) -> bool) -> Result<()> {
        self.below()?.note(name, bytes, replaces)
    }

    fn seal(&self, why: &str) {
        let _ = self.sealed.set(why.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{FileStorage, SimDisk};

    #[test]
    fn what_is_sealed_reads_writes_and_deletes_nothing() {
        let below = Arc::new(FileStorage::new(Arc::new(SimDisk::in_memory())));
        let storage = InlineStorage::new(below.clone());
        let name = "blocks/1/0.blk".to_owned();
        storage.put(&name, &[Bytes::from_static(b"there")], WriteMode::Once).unwrap();
        storage.seal("the store here has another history");
        let closed = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), crate::ErrorKind::Closed);
        closed(storage.get(&name).map(drop));
        closed(storage.get_ranges_of(&[(name.clone(), Vec::from([0..1, 2..3]))]).remove(0).map(drop));
        closed(storage.put(&name, &[], WriteMode::Replace));
        closed(storage.put_if_match("root", &[], None).map(drop));
        closed(storage.delete_many(std::slice::from_ref(&name)).remove(0));
        closed(storage.list("blocks/1").map(drop));
        assert_eq!(below.get(&name).unwrap(), "there");
    }

    #[test]
    fn what_is_held_is_read_like_the_rest_until_no_state_that_is_read_needs_it() {
        let storage = InlineStorage::new(Arc::new(FileStorage::new(Arc::new(SimDisk::in_memory()))));
        let names: Vec<String> = (0..4).map(|n| format!("blocks/1/{n}.blk")).collect();
        storage.put(&names[0], &[Bytes::from_static(b"stored")], WriteMode::Create).unwrap();
        storage.published(Seq(5), std::iter::empty());
        (1..4).for_each(|n| storage.hold(&names[n], Bytes::from_static(b"held")));
        assert_eq!(storage.get(&names[0]).unwrap(), "stored");
        assert_eq!(storage.get_ranges(&names[1], &[1..3, 0..4]).unwrap(), ["el", "held"]);
        assert_eq!(storage.get_ranges(&names[1], &[0..1, 3..5]).unwrap_err().kind(), crate::ErrorKind::Corrupt);
        assert!(storage.delete_many(&names[..2]).into_iter().all(|answer| answer.is_ok()));
        let forget = |read: &[u64]| {
            storage.forget_released(|after, by| read.iter().any(|seq| after < Seq(*seq) && Seq(*seq) < by));
        };
        forget(&[]);
        assert_eq!(storage.held_bytes(), 8, "nothing was released");
        storage.published(Seq(8), names[2..3].iter().cloned());
        forget(&[5, 7]);
        assert!(storage.get(&names[2]).is_ok(), "the state 7 is being read");
        forget(&[5, 8]);
        assert!(storage.get(&names[2]).is_err(), "5 is older than it, and 8 does not need it");
        storage.published(Seq(9), names[3..].iter().cloned());
        forget(&[]);
        assert_eq!(storage.held_bytes(), 0);
    }
}
