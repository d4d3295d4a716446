//! The log of a replica: a root like any other, whose entries were committed in another store and are taken over as they are.
//!
//! One process writes it, the *owner*, whose random number is in the root. A process that begins to bring commits over writes a
//! number of its own there first. So everything that an earlier one still tries to put into the root fails, however late it
//! arrives; and a store that was promoted is no replica any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::super::origin::{Origin, Point, encode_witness};
use super::super::root::{Chunk, Role, Root, encode_chunk};
use super::super::{Base, Entry, Opened, decode_witness};
use super::archived::ArchivedLog;
use super::place::{INLINE_BYTES_MAX, read_root};
use super::read::{damaged, entries_after};
use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, EntryId, Env, Error, ErrorKind, Patience, Result, Seq};
use crate::storage::{Storage, Tag, WriteMode, names};

/// The entries that do not stay in the root go to chunks of about this size.
const CHUNK_BYTES: usize = 8 << 20;

/// The log of a replica, or of a store that takes a replica's place.
pub struct ReplicaLog {
    storage: Arc<dyn Storage>,
    env: Env,
    /// How long a put waits for the bucket, in microseconds.
    retry: u64,
    root: Root,
    tag: Tag,
    /// What could not be deleted.
    undeleted: Mutex<Vec<String>>,
}

impl ReplicaLog {
    /// Makes an empty replica of the store of this origin. `AlreadyExists` if there is a root.
    pub fn create(storage: Arc<dyn Storage>, env: Env, retry: u64, origin: Origin, role: Role) -> Result<Self> {
        let root = Root::of(origin).with_role(role);
        let (tag, undeleted) = (Tag(String::new()), Mutex::default());
        let mut log = Self { storage, env, retry, root: Root::default(), tag, undeleted };
        match log.replace(root, true) {
            Err(e) if e.kind() == ErrorKind::Conflict => Err(Error::already_exists(format!("{} exists", names::ROOT))),
            other => other.map(|()| log),
        }
    }

    /// What lies there; `NotFound` if there is no root.
    pub fn open(storage: Arc<dyn Storage>, env: Env, retry: u64) -> Result<Self> {
        let read = read_root(&*storage, None)?;
        let (root, tag) = read.ok_or_else(|| Error::unavailable("the root has no content"))?;
        Ok(Self { storage, env, retry, root, tag, undeleted: Mutex::default() })
    }

    /// Who may write it.
    pub fn role(&self) -> &Role {
        &self.root.role
    }

    /// Which history it is.
    pub fn origin(&self) -> Origin {
        self.root.origin
    }

    /// The last entry; `None`: its id is not known.
    pub fn point(&self) -> Option<Point> {
        self.root.point()
    }

    /// Everything that it holds.
    pub fn read(&self) -> Result<Opened> {
        let entries = entries_after(&*self.storage, &self.env.pool, &self.root, Seq(0)).map_err(damaged)?;
        Ok(Opened { base: self.root.base, entries, origin: self.root.origin, lossy: false })
    }

    /// The error `e`, unless it came about because another process has taken the replica over.
    pub fn judge(&self, e: Error) -> Error {
        let doubtful = matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::NotFound | ErrorKind::AlreadyExists);
        match doubtful && !self.is_newest().unwrap_or(false) {
            true => taken_over(),
            false => e,
        }
    }

    /// Whether nobody else has replaced the root since.
    pub fn is_newest(&self) -> Result<bool> {
        Ok(read_root(&*self.storage, Some(&self.tag))?.is_none())
    }

    /// The objects that hold entries.
    pub fn chunks(&self) -> impl Iterator<Item = String> {
        self.root.chunks.iter().map(Chunk::name)
    }

    /// Bytes of its entries.
    pub fn bytes(&self) -> u64 {
        self.root.bytes()
    }

    /// Gives it a role and, if it is to be a store of its own, an id.
    pub fn set_role(&mut self, role: Role, origin: Origin) -> Result<()> {
        let mut next = self.root.clone().with_role(role);
        next.origin = origin;
        self.replace(next, false)
    }

    /// Adds entries, which follow the last one.
    pub fn extend(&mut self, entries: &[Entry]) -> Result<()> {
        let mut next = self.root.clone();
        entries.iter().for_each(|entry| next.push(entry));
        self.write(next)
    }

    /// Takes over what a log of the same history holds, in place of all there is: its last entry is `last`.
    /// Returns the objects that it no longer needs.
    pub fn restart(&mut self, opened: Opened, last: EntryId) -> Result<Vec<String>> {
        let old: Vec<String> = self.root.chunks.iter().map(Chunk::name).collect();
        let next = Root::continuing(opened, last)?.with_role(self.root.role.clone());
        self.write(next)?;
        Ok(old)
    }

    /// Names a catalog snapshot, and releases the entries that it holds.
    /// Returns the objects that it no longer needs.
    pub fn rebase(&mut self, base: Base) -> Result<Vec<String>> {
        let (next, gone) = self.root.rebase(base);
        self.replace(next, false)?;
        Ok(gone.iter().map(Chunk::name).collect())
    }

    /// The same, where nothing of before shall be left: also not in the chunks that have entries which are still needed.
    pub fn rebase_whole(&mut self, base: Base) -> Result<Vec<String>> {
        let mut opened = self.read()?;
        opened.base = Some(base);
        opened.entries.retain(|entry| entry.seq >= base.from);
        let last = self.root.last_id().unwrap_or(EntryId(0));
        self.restart(opened, last)
    }

    /// The commit of its catalog snapshot, and of its last entry.
    pub fn span(&self) -> (Seq, Seq) {
        (self.root.base.map_or(Seq(0), |base| base.seq), self.root.seq)
    }

    /// The root as it is, to be kept, with the objects of its catalog snapshot, and blocks that have left since that.
    pub fn archived(&self, catalogs: Vec<Seq>, left: Vec<BlockId>) -> ArchivedLog {
        ArchivedLog::new(self.root.clone(), catalogs, left)
    }

    /// Deletes what nothing refers to any more. What cannot be deleted now is tried again by [`Self::delete_rest`]; what is left if the
    /// process ends is stray.
    pub fn delete(&self, names: &[String]) {
        if !names.is_empty() {
            let failed = self.storage.delete_many(names).into_iter().zip(names);
            self.undeleted.lock().extend(failed.filter(|(done, _)| done.is_err()).map(|(_, name)| name.clone()));
        }
    }

    /// Tries again to delete what could not be deleted.
    pub fn delete_rest(&self) {
        let rest = std::mem::take(&mut *self.undeleted.lock());
        self.delete(&rest);
    }

    /// Deletes objects that are later than the root, which an earlier process wrote and could not name: one that opens the store would
    /// take the root for an older one.
    pub fn delete_later(&self) -> Result<()> {
        let named: BTreeSet<String> = self.chunks().collect();
        let last = self.root.seq;
        let mut later = Vec::new();
        for folder in [names::LOG, names::CATALOG] {
            for object in self.storage.list(folder)? {
                let name = object.name.rsplit('/').next().unwrap_or_default();
                let seq = names::parse_log_chunk(name).or_else(|| names::parse_catalog(name));
                if seq.is_some_and(|seq| seq > last) && !named.contains(&object.name) {
                    later.push(object.name);
                }
            }
        }
        self.storage.delete_many(&later).into_iter().collect()
    }

    /// Replaces the root, whose entries go to chunks if they are large.
    fn write(&mut self, mut next: Root) -> Result<()> {
        let mut made = Vec::new();
        if next.inline_bytes() > INLINE_BYTES_MAX {
            let entries: Vec<Entry> = std::mem::take(&mut next.entries).iter().cloned().collect();
            let mut rest = &entries[..];
            while !rest.is_empty() {
                let mut bytes = 0;
                let fits = rest.iter().take_while(|entry| {
                    bytes += entry.payload.len();
                    bytes <= CHUNK_BYTES
                });
                let (some, after) = rest.split_at(fits.count().max(1));
                let (chunk, bytes) = encode_chunk(some, self.env.entropy.next()?)?;
                self.storage.put(&chunk.name(), &[bytes.into()], WriteMode::Once)?;
                made.push(chunk.name());
                next.chunks.push(chunk);
                rest = after;
            }
        }
        let replaced = self.replace(next, false);
        // Where another process came first, it may have been done nevertheless, before that.
        if replaced.as_ref().is_err_and(|e| ![ErrorKind::InDoubt, ErrorKind::Conflict].contains(&e.kind())) {
            self.delete(&made);
        }
        replaced
    }

    /// Puts `next` in the place of the root as last seen. `Conflict`: another process has replaced that.
    fn replace(&mut self, mut next: Root, new: bool) -> Result<()> {
        next.check()?;
        next.stamp = self.env.entropy.next()?;
        let bytes = [Bytes::from(next.encode()?)];
        let mut patience = Patience::new(self.retry);
        let mut doubtful = false;
        loop {
            let known = (!new).then_some(&self.tag);
            let failure = match self.storage.put_if_match(names::ROOT, &bytes, known) {
                Ok(tag) => {
                    (self.root, self.tag) = (next, tag);
                    self.note();
                    return Ok(());
                }
                Err(e) => e,
            };
            let lost = failure.kind() == ErrorKind::Conflict;
            doubtful |= failure.kind() == ErrorKind::InDoubt;
            if !lost && !doubtful && !failure.is_throttled() {
                return Err(failure);
            }
            if lost || doubtful {
                // An earlier try of the same put may have been done.
                match read_root(&*self.storage, known) {
                    Ok(None) => {}
                    Ok(Some((there, tag))) if there.stamp == next.stamp && there == next => {
                        (self.root, self.tag) = (next, tag);
                        self.note();
                        return Ok(());
                    }
                    Ok(Some(_)) => return Err(taken_over()),
                    Err(e) if e.kind() == ErrorKind::NotFound && new => {}
                    Err(e) if e.kind() == ErrorKind::NotFound => return Err(taken_over()),
                    Err(_) => {}
                }
            }
            if !patience.pause(&self.env)? {
                return Err(if doubtful { failure.as_kind(ErrorKind::InDoubt) } else { failure });
            }
        }
    }

    /// Has the witness say of the last commit that it was made. If that fails, it says less.
    fn note(&self) {
        let Some(point) = self.root.point().filter(|point| point.seq.0 > 0) else { return };
        if planted(Bug::IgnoreWitness) {
            return;
        }
        let parent = self.root.origin.parent.map(|parent| parent.store);
        let replaces = |there: &[u8]| match decode_witness(there) {
            None => true,
            Some(seen) if seen.store == point.store => seen.seq < point.seq,
            Some(seen) => Some(seen.store) == parent,
        };
        let _ = self.storage.note(names::WITNESS, &encode_witness(&point).into(), &replaces);
    }
}

fn taken_over() -> Error {
    Error::conflict("another process brings commits over to this replica now, or it was promoted; this one has stopped")
}
