//! Handles of open stores. A folder that one process writes is locked by that process; a second open in the same process
//! returns another handle of the same store.
//!
//! Invariants: a store is closed when its last handle is; a closed handle takes no more calls, whether other handles of
//! the same store are open or not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;

use parking_lot::Mutex;

use crate::base::{Error, Result};
use crate::store::handle::StoreParts;
use crate::store::parts::holder;
use crate::store::{Mode, Options, Store};

/// Which folder a store is in: its device and inode.
pub(in crate::store) type FolderId = (u64, u64);

/// The stores that this process has open, by folder.
static OPEN: Mutex<BTreeMap<FolderId, Weak<StoreParts>>> = Mutex::new(BTreeMap::new());

/// The folders in which a process, by its id, is opening a store.
static OPENING: Mutex<BTreeSet<(u32, FolderId)>> = Mutex::new(BTreeSet::new());

/// A store is being opened for writing, by one thread of a process at a time.
pub(in crate::store) struct Opening(u32, FolderId);

impl Drop for Opening {
    fn drop(&mut self) {
        OPENING.lock().remove(&(self.0, self.1));
    }
}

/// Begins to open the store in `folder`, or joins what this process has open there; `None` while another thread of it opens that
/// store, or closes the last handle of it and has not given up its lock yet.
pub(in crate::store) fn begin(folder: FolderId, options: &Options) -> Result<Option<(Opening, Option<Store>)>> {
    let process = std::process::id();
    if !OPENING.lock().insert((process, folder)) {
        return Ok(None);
    }
    let opening = Opening(process, folder);
    if let Some(store) = join(folder, options)? {
        return Ok(Some((opening, Some(store))));
    }
    // The last handle may have been closed in between.
    let open = open_in(folder);
    let closes = |store: &Store| store.setting().process() == process && store.handles().is_closing();
    Ok((!open.as_ref().is_some_and(closes)).then_some((opening, None)))
}

/// What this process has opened in `folder`, closed or not, as long as something holds it.
fn open_in(folder: FolderId) -> Option<Store> {
    let open = OPEN.lock().get(&folder).cloned();
    open.as_ref().and_then(Store::upgrade)
}

/// Another handle of the store in `folder`, if this process has it open for writing. `Locked` if it was opened with settings
/// other than `options`.
pub(in crate::store) fn join(folder: FolderId, options: &Options) -> Result<Option<Store>> {
    if options.mode == Mode::Read {
        return Ok(None);
    }
    // What is there may be another store by now.
    let is_there = |store: &Store| store.check().is_ok() && store.commits().log().confirm().is_ok();
    let Some(store) = open_in(folder).filter(is_there) else { return Ok(None) };
    if !store.options().same_settings(options) {
        return Err(Error::locked(format!(
            "{} is already open in this process with other settings; open it with the same settings, or close it first",
            store.uri()
        )));
    }
    Ok(store.join())
}

/// Says more of `locked`, the error for a folder that could not be locked, if it was this process itself that opened it for
/// writing, or the process that this one is a fork of.
pub(in crate::store) fn locked_here(folder: FolderId, uri: &str, locked: Error) -> Error {
    let Some(store) = open_in(folder) else { return locked };
    let holder = holder(store.setting().process());
    match store.setting().process() == std::process::id() {
        // One that was closed has no lock: another process has it.
        true if !store.handles().has_lock() => locked,
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
pub(in crate::store) fn note(folder: FolderId, store: &Store) {
    let mut open = OPEN.lock();
    open.retain(|_, inner| inner.strong_count() > 0);
    open.insert(folder, store.downgrade());
}
