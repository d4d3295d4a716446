//! Bytes by name. Knows nothing of tables.
//!
//! Two interfaces, one on top of the other: [`Disk`] is what a file system does (and what the simulator imitates, down
//! to unsynced writes that vanish); [`Storage`] is what the rest of the store needs: immutable objects, written whole
//! and durable once `put` returns. The commit log appends, so it sits on [`Disk`] directly.

mod answers;
mod bucket;
mod cell;
mod disk;
mod files;
mod inline;
mod lock;
mod metered;
pub mod names;
mod os;
mod settings;
mod sim;
mod sim_bucket;
mod threads;

pub use bucket::{BucketStorage, is_bucket};
pub use cell::{BucketCell, CellNews, CellRow, CellTurn, EtcdCell, LogCell, LogCells, PostgresCell, ServerCells, told};
pub use disk::{Access, ClosedFile, Disk, DiskEntry, DiskFile, DiskFolder, FileIdentity, Guard, Rename};
pub use files::FileStorage;
pub use inline::InlineStorage;
pub use lock::{held_descriptors, leave_to_parent};
pub use metered::MeteredStorage;
pub use os::OsDisk;
pub use sim::{Counters, CrashPoint, DiskFault, SimDisk};
pub use sim_bucket::{BucketFault, BucketOp, Requests, SimBucket};

use std::ops::Range;

use bytes::Bytes;

use crate::base::{Env, Error, ErrorKind, Patience, Result, Timestamp};

/// How many names one request may delete: as many as S3 accepts.
pub const DELETE_BATCH: usize = 1000;

/// Whether a put may replace an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// Fails with `AlreadyExists` if the object exists; of racing puts, exactly one wins.
    Create,
    /// Replaces the object atomically: a reader sees the old bytes or the new ones.
    Replace,
    /// Like `Create`, for a name that is used by one put and never again, so that the put may be retried: an object that is there
    /// and holds the same bytes comes from an earlier try. `AlreadyExists` if it holds others.
    Once,
}

/// Identifies the content of an object: an object that was not written since has the same tag, and different content has
/// a different one. Opaque.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag(pub String);

/// An object found by listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMeta {
    /// The object's full name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A store of named immutable objects. Names are this crate's own (names.rs): ASCII letters, digits, `-` and `.`, in folders
/// separated by `/`. Calls block; a call with many names may process them concurrently.
pub trait Storage: Send + Sync + std::fmt::Debug {
    /// The whole object; `NotFound` if there is none.
    fn get(&self, name: &str) -> Result<Bytes>;

    /// Parts of one object, in the order requested. `Corrupt` if the object ends before a range does; an empty range may be
    /// answered without looking.
    fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;

    /// Parts of several objects: for each, the result of [`Storage::get_ranges`].
    fn get_ranges_of(&self, wanted: &[(String, Vec<Range<u64>>)]) -> Vec<Result<Vec<Bytes>>> {
        wanted.iter().map(|(name, ranges)| self.get_ranges(name, ranges)).collect()
    }

    /// Whether even a small request takes a round trip, so that few are better than many.
    fn is_remote(&self) -> bool {
        false
    }

    /// When an object was written, by the clock of the system that keeps it; `None` if no other system does, or if it
    /// does not say.
    fn written_at(&self, name: &str) -> Result<Option<Timestamp>> {
        let _ = name;
        Ok(None)
    }

    /// Whether the system keeps objects that are replaced or deleted, going by the tag of one that was just written; `None` if it does not
    /// say.
    fn keeps_replaced(&self, written: &Tag) -> Option<bool> {
        let _ = written;
        None
    }

    /// Announces that parts of an object will be read soon. A hint: nothing waits for it, nothing fails.
    fn prefetch(&self, name: &str, ranges: &[Range<u64>]) {
        let _ = (name, ranges);
    }

    /// Writes an object as the concatenation of `parts`. The object and its name are durable when it returns.
    fn put(&self, name: &str, parts: &[Bytes], mode: WriteMode) -> Result<()>;

    /// The whole object and its tag; `None` if that is `known`. `NotFound` if there is none. While the object is being replaced,
    /// the tag may be that of an earlier content than the bytes, never that of a later one.
    fn get_tagged(&self, name: &str, known: Option<&Tag>) -> Result<Option<(Bytes, Tag)>>;

    /// Writes an object atomically if it is still as `known` says: if its tag is that, or, for `None`, if it does not exist.
    /// `Conflict`: it was not. `InDoubt`: it may have been written, or may be later. Any other error: it was not written and
    /// will not be; [`crate::Error::is_throttled`] says that the same request may succeed later.
    fn put_if_match(&self, name: &str, parts: &[Bytes], known: Option<&Tag>) -> Result<Tag>;

    /// Deletes objects; returns one result per name, in order. Deleting a missing object succeeds.
    fn delete_many(&self, names: &[String]) -> Vec<Result<()>>;

    /// The objects directly under a folder (`"blocks/7"`; `""` is the top), in no order. Correctness never depends on it.
    fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>>;

    /// The names of what lies at the top: of objects, and of folders that hold any. One request, where requests are made.
    fn top(&self) -> Result<Vec<String>> {
        let objects = self.list("")?.into_iter().map(|object| object.name);
        Ok(objects.chain(self.list_folders("")?).collect())
    }

    /// Two objects, the first with its tag, and what lies in some folders: one round of requests.
    fn survey(&self, tagged: &str, other: &str, folders: &[&str]) -> Survey {
        Survey {
            tagged: self.get_tagged(tagged, None),
            other: self.get(other),
            folders: folders.iter().map(|folder| self.list(folder)).collect(),
        }
    }

    /// Writes an object that is small and of which nothing depends, unless what is there is not to be replaced. It need not be
    /// durable when it returns.
    fn note(&self, name: &str, bytes: &Bytes, replaces: &dyn Fn(&[u8]) -> bool) -> Result<()> {
        let there = match self.get_tagged(name, None) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            other => other?,
        };
        match there {
            Some((there, _)) if !replaces(&there) => Ok(()),
            there => {
                let tag = there.map(|(_, tag)| tag);
                match self.put_if_match(name, std::slice::from_ref(bytes), tag.as_ref()) {
                    // Another process was first.
                    Err(e) if e.kind() == ErrorKind::Conflict => Ok(()),
                    other => other.map(drop),
                }
            }
        }
    }

    /// The folders directly under a folder.
    fn list_folders(&self, folder: &str) -> Result<Vec<String>>;

    /// Where objects are files: the files directly under a folder (`""` is the top) left by puts that did not end, except
    /// the current puts of this process. In a shared folder another process may still be writing one, but never the root's.
    fn unfinished(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        let _ = folder;
        Ok(Vec::new())
    }

    /// Releases what it holds open. It can no longer be used.
    fn release(&self) {}

    /// From now on every request fails with `Closed` and this reason, where that is supported.
    fn seal(&self, why: &str) {
        let _ = why;
    }

    /// Removes a folder if it is empty, where folders exist by themselves.
    fn remove_empty_folder(&self, folder: &str) -> Result<()> {
        let _ = folder;
        Ok(())
    }
}

/// The name of what is called `name` in a folder; `""` is the top.
fn within(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The answers to [`Storage::survey`].
#[derive(Debug)]
pub struct Survey {
    /// The first object and its tag.
    pub tagged: Result<Option<(Bytes, Tag)>>,
    /// The second object.
    pub other: Result<Bytes>,
    /// What lies in each folder.
    pub folders: Vec<Result<Vec<ObjectMeta>>>,
}

/// Whether `bytes` are the concatenation of `parts`.
pub fn is_whole(mut bytes: &[u8], parts: &[Bytes]) -> bool {
    for part in parts {
        let Some(rest) = bytes.strip_prefix(&part[..]) else { return false };
        bytes = rest;
    }
    bytes.is_empty()
}

/// A part of what was read, `whole` bytes: copied if it is less than half, so that to keep it takes no more than twice its bytes.
pub fn owned(part: Bytes, whole: usize) -> Bytes {
    if part.len() * 2 < whole { Bytes::copy_from_slice(&part) } else { part }
}

/// The error for a name that is given once, and is taken.
fn differs(name: &str) -> Error {
    Error::already_exists(format!("{name} already exists with different content"))
}

/// A conditional put, repeated, with pauses of `retry` microseconds in total, while it is refused because there are too many
/// requests.
pub fn put_patiently(env: &Env, retry: u64, mut put: impl FnMut() -> Result<Tag>) -> Result<Tag> {
    let mut patience = Patience::new(retry);
    loop {
        match put() {
            Err(e) if e.is_throttled() && patience.pause(env)? => {}
            answer => return answer,
        }
    }
}
