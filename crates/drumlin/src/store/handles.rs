//! Handles of open stores. A folder that one process writes is locked by that process; a second open in the same process
//! returns another handle of the same store.
//!
//! Invariants: a store is closed when its last handle is; a closed handle takes no more calls, whether other handles of
//! the same store are open or not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{Inner, Mode, Options, Store};
use crate::base::{Error, Result};

/// Which folder a store is in: its device and inode.
pub(super) type Folder = (u64, u64);

/// The stores that this process has open, by folder.
static OPEN: Mutex<BTreeMap<Folder, Weak<Inner>>> = Mutex::new(BTreeMap::new());

/// The folders in which a process, by its id, is opening a store.
static OPENING: Mutex<BTreeSet<(u32, Folder)>> = Mutex::new(BTreeSet::new());

/// A store is being opened for writing, by one thread of a process at a time.
pub(super) struct Opening(u32, Folder);

impl Drop for Opening {
    fn drop(&mut self) {
        OPENING.lock().remove(&(self.0, self.1));
    }
}

/// Begins to open the store in `folder`, or joins what this process has open there; `None` while another thread of it opens that
/// store, or closes the last handle of it and has not given up its lock yet.
pub(super) fn begin(folder: Folder, options: &Options) -> Result<Option<(Opening, Option<Store>)>> {
    let process = std::process::id();
    if !OPENING.lock().insert((process, folder)) {
        return Ok(None);
    }
    let opening = Opening(process, folder);
    if let Some(store) = join(folder, options)? {
        return Ok(Some((opening, Some(store))));
    }
    // The last handle may have been closed in between.
    let open = OPEN.lock().get(&folder).and_then(Weak::upgrade);
    let closes = |inner: &Arc<Inner>| {
        inner.process == process && inner.handles.0.load(Ordering::SeqCst) == 0 && inner.lock.lock().is_some()
    };
    Ok((!open.as_ref().is_some_and(closes)).then_some((opening, None)))
}

/// How many handles of a store are open.
#[derive(Debug)]
pub(super) struct Handles(AtomicUsize);

impl Handles {
    /// One handle.
    pub fn one() -> Self {
        Self(AtomicUsize::new(1))
    }

    /// Adds one, unless the last one is closed already.
    fn join(&self) -> bool {
        let more = |open: usize| (open > 0).then_some(open + 1);
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Removes one; returns whether it was the last.
    fn leave(&self) -> bool {
        self.0.fetch_sub(1, Ordering::SeqCst) == 1
    }
}

/// A user's hold on a store, shared by clones.
pub(super) struct Handle {
    inner: Arc<Inner>,
    closed: AtomicBool,
}

impl Handle {
    /// The hold of a handle that was counted.
    pub fn new(inner: Arc<Inner>) -> Self {
        Self { inner, closed: AtomicBool::new(false) }
    }

    /// Closes it; returns whether it was the last of its store.
    pub fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::SeqCst) && self.inner.handles.leave()
    }

    /// `Closed` if it is closed.
    pub fn check(&self) -> Result<()> {
        match self.closed.load(Ordering::SeqCst) {
            true => Err(Error::closed(format!("the store {} is closed; open it again", self.inner.uri))),
            false => Ok(()),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.close() {
            // If this fails, the next open recovers.
            let _ = self.inner.close();
        }
    }
}

/// Another handle of the store in `folder`, if this process has it open for writing. `Locked` if it was opened with settings
/// other than `options`.
pub(super) fn join(folder: Folder, options: &Options) -> Result<Option<Store>> {
    if options.mode == Mode::Read {
        return Ok(None);
    }
    let open = OPEN.lock().get(&folder).and_then(Weak::upgrade);
    // What lies there may be another store by now.
    let is_there = |inner: &Arc<Inner>| inner.check().is_ok() && inner.log.confirm().is_ok();
    let Some(inner) = open.filter(is_there) else { return Ok(None) };
    if !inner.options.same_settings(options) {
        return Err(Error::locked(format!(
            "{} is already open in this process with other settings; open it with the same settings, or close it first",
            inner.uri
        )));
    }
    Ok(inner.handles.join().then(|| Store { handle: Some(Arc::new(Handle::new(inner.clone()))), inner, message: None }))
}

/// Says more of `locked`, the error for a folder that could not be locked, if it was this process itself that opened it for
/// writing, or the process that this one is a fork of.
pub(super) fn locked_here(folder: Folder, uri: &str, locked: Error) -> Error {
    let Some(inner) = OPEN.lock().get(&folder).and_then(Weak::upgrade) else { return locked };
    let holder = Inner::holder(inner.process);
    match inner.process == std::process::id() {
        // One that was closed has no lock: another process has it.
        true if inner.lock.lock().is_none() => locked,
        true => Error::locked(format!(
            "{uri} is open for writing in this process, but failed; close it before you open it again"
        )),
        // A fork has no lock; the file says who has it.
        false if locked.message().ends_with(&holder) => Error::locked(format!(
            "{uri} is open for writing by {holder}, from which this process was forked; close it there, or open it \
             here with mode \"read\""
        )),
        false => locked,
    }
}

/// Notes that this process has the store in `folder` open for writing.
pub(super) fn note(folder: Folder, store: &Store) {
    let mut open = OPEN.lock();
    open.retain(|_, inner| inner.strong_count() > 0);
    open.insert(folder, Arc::downgrade(&store.inner));
}
