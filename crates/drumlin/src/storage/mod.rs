//! Bytes by name. Sees no table.
//!
//! Two seams, one above the other: [`Disk`] is what a file system does (and what the simulator imitates, down to
//! unsynced writes that vanish); [`Storage`] is what the rest of the store needs: immutable objects, written whole
//! and durable once `put` returns. The commit log appends, so it sits on [`Disk`] directly.

mod answers;
mod bucket;
mod disk;
mod files;
mod inline;
pub mod names;
mod os;
mod sim;
mod sim_bucket;

pub use bucket::{BucketStorage, is_bucket};
pub use disk::{Access, ClosedFile, Disk, DiskEntry, DiskFile, Guard, Rename};
pub use files::FileStorage;
pub use inline::InlineStorage;
pub use os::OsDisk;
pub use sim::{Counters, Fault, Moment, SimDisk};
pub use sim_bucket::{BucketFault, BucketOp, Requests, SimBucket};

use std::ops::Range;

use bytes::Bytes;

use crate::base::{Env, Patience, Result, Timestamp};

/// Whether a put may replace an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// Fails with `AlreadyExists` if the object is there; of racing puts exactly one wins.
    Create,
    /// Replaces the object as one step: a reader sees the old bytes or the new ones.
    Replace,
    /// As `Create`, of a name that is given to one put and never again: an object that is there is of an earlier try of the
    /// same put, so that it may be tried again.
    Once,
}

/// Tells one content of an object from another: an object that was not written since has the same tag, another content another
/// one. Opaque.
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

/// A store of named immutable objects. Calls block; a call that takes many names may overlap them.
pub trait Storage: Send + Sync + std::fmt::Debug {
    /// The whole object; `NotFound` if there is none.
    fn get(&self, name: &str) -> Result<Bytes>;

    /// Parts of one object, in the order asked. `Corrupt` if the object ends before a range does; for a range of no bytes nobody
    /// need look.
    fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;

    /// Parts of several objects: of each what [`Storage::get_ranges`] gives.
    fn get_ranges_of(&self, wanted: &[(String, Vec<Range<u64>>)]) -> Vec<Result<Vec<Bytes>>> {
        wanted.iter().map(|(name, ranges)| self.get_ranges(name, ranges)).collect()
    }

    /// Whether a request takes a round trip, however small: better few than many.
    fn is_remote(&self) -> bool {
        false
    }

    /// When an object was written, by the clock of whoever keeps it; `None` where nobody else does, or does not tell.
    fn written_at(&self, name: &str) -> Result<Option<Timestamp>> {
        let _ = name;
        Ok(None)
    }

    /// Says that parts of an object will be asked for soon. A hint: nothing waits for it, nothing fails.
    fn prefetch(&self, name: &str, ranges: &[Range<u64>]) {
        let _ = (name, ranges);
    }

    /// Writes an object from `parts` put end to end. Durable, name and all, when it returns.
    fn put(&self, name: &str, parts: &[Bytes], mode: PutMode) -> Result<()>;

    /// The whole object and its tag; `None` if that is `known`. `NotFound` if there is none.
    fn get_tagged(&self, name: &str, known: Option<&Tag>) -> Result<Option<(Bytes, Tag)>>;

    /// Writes an object as one step if it is still as `known` says: if its tag is that, or, for `None`, if it is not there.
    /// `Conflict`: it was not. `InDoubt`: it may have been written, or may be later. Any other error: it was not written and
    /// will not be; [`crate::Error::is_throttled`] says that the same request may be taken later.
    fn put_if_match(&self, name: &str, parts: &[Bytes], known: Option<&Tag>) -> Result<Tag>;

    /// Deletes objects; one answer for each name, in order. Deleting what is not there succeeds.
    fn delete_many(&self, names: &[String]) -> Vec<Result<()>>;

    /// The objects directly under a folder (`"blocks/7"`), in no order. Correctness never rests on it.
    fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>>;

    /// The folders directly under a folder.
    fn list_folders(&self, folder: &str) -> Result<Vec<String>>;

    /// Where objects are files: those directly under a folder (`""` is the top) that puts have left which did not end, other
    /// than puts under way in this process. In a shared folder another process may be at one, but not at the root's.
    fn unfinished(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        let _ = folder;
        Ok(Vec::new())
    }

    /// Lets go of what it holds open. It answers no more.
    fn release(&self) {}

    /// Removes a folder if it is empty, where folders are things of their own.
    fn remove_empty_folder(&self, folder: &str) -> Result<()> {
        let _ = folder;
        Ok(())
    }
}

/// [`Storage::put_if_match`], repeated after pauses of `retry` microseconds in all while it is refused because there are too
/// many requests.
pub fn put_if_match_patiently(
    storage: &dyn Storage,
    env: &Env,
    retry: u64,
    name: &str,
    parts: &[Bytes],
    known: Option<&Tag>,
) -> Result<Tag> {
    let mut patience = Patience::new(retry);
    loop {
        match storage.put_if_match(name, parts, known) {
            Err(e) if e.is_throttled() && patience.pause(env)? => {}
            answer => return answer,
        }
    }
}
