//! An open store, as operations find it: the parts that it is made of (*parts*), behind a handle. The operations themselves are added to
//! [`Store`] by the files about them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::parts::{Attendance, Commits, Handles, Pin, Reserved, Setting, Tenure, Triggers, Upkeep, Watched, recover};
use super::{Mode, Options};
use crate::base::{Env, Result, Seq, SessionId, TableId, Timestamp, waiting};
use crate::block::{BlockReader, MissingBlock};
use crate::catalog::{Path, State};
use crate::log::{CommitLog, SealingLog};
use crate::storage::{Guard, InlineStorage, Storage};

/// An open store. Clones share it; it is closed when the last one is dropped, or by [`Store::close`].
#[derive(Clone)]
pub struct Store {
    inner: Arc<StoreParts>,
    /// Shared by the clones that users hold. The store's own threads have none: they keep nothing open, and do not get the
    /// errors of automatic checkpoints.
    handle: Option<Arc<Handle>>,
    /// What is said of the commits made through this handle.
    message: Option<Arc<str>>,
}

/// The parts.
pub(super) struct StoreParts {
    setting: Arc<Setting>,
    commits: Arc<Commits>,
    reader: Arc<BlockReader>,
    upkeep: Upkeep,
    triggers: Arc<Triggers>,
    watched: Watched<SessionId, Timestamp>,
    attendance: Arc<Attendance>,
    reserved: Reserved,
    handles: Handles,
    /// Called when a refresh may have taken in what others have committed.
    refreshed: fn(&Store),
    catch_up: CatchUp,
}

/// Brings a view up to date with some of the sources with which it is behind, or with all.
pub(super) type CatchUp = fn(&Store, TableId, Option<&BTreeSet<Path>>) -> Result<()>;

/// What is called when something has been committed.
#[derive(Clone, Copy)]
pub(super) struct Hooks {
    /// After each turn that has committed, in the turn.
    pub committed: fn(&Store),
    /// When a refresh may have taken in what others have committed.
    pub refreshed: fn(&Store),
    /// When a commit has left a view behind, or one is to be read that is.
    pub catch_up: CatchUp,
}

/// What was found, or made, where a store is opened.
pub(super) struct Contents {
    pub storage: Arc<InlineStorage>,
    pub log: Box<dyn CommitLog>,
    pub state: State,
    pub catalog: Option<recover::Catalog>,
    pub lock: Option<Box<dyn Guard>>,
    /// Whether the storage belongs to another owner, who keeps using it when the store is closed.
    pub lent: bool,
}

/// A user's hold on a store, shared by clones.
struct Handle {
    inner: Arc<StoreParts>,
    closed: AtomicBool,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("uri", &self.uri()).finish_non_exhaustive()
    }
}

impl Store {
    /// Puts a store together from what was found where it is.
    pub(super) fn start(env: Env, uri: &str, options: Options, contents: Contents, hooks: Hooks) -> Result<Store> {
        let Contents { storage, log, state, catalog, lock, lent } = contents;
        let Hooks { committed, refreshed, catch_up } = hooks;
        let shared = log.is_shared();
        let missing = if options.mode == Mode::Read || shared { MissingBlock::Reclaimed } else { MissingBlock::Damage };
        let reader = BlockReader::new(storage.clone(), options.cache_bytes, missing).counting(env.metrics.clone());
        let triggers = Arc::new(Triggers::reporting_to(&env));
        let upkeep = Upkeep::new(catalog, state.open_tables_len());
        let log = Box::new(SealingLog::new(log, storage.clone()));
        let setting = Arc::new(Setting::new(uri, options, env, storage, Tenure { shared, lent }));
        let (reader, watched, handles) = (Arc::new(reader), Watched::default(), Handles::one(lock));
        let (reserved, attendance) = (Reserved::default(), Arc::default());
        let inner = Arc::new_cyclic(|inner: &Weak<StoreParts>| {
            let inner = inner.clone();
            let committed = move || Store::upgrade(&inner).iter().for_each(committed);
            let commits = Arc::new(Commits::new(setting.clone(), log, state, Box::new(committed)));
            StoreParts {
                setting,
                commits,
                reader,
                upkeep,
                triggers,
                watched,
                attendance,
                reserved,
                handles,
                refreshed,
                catch_up,
            }
        });
        inner.commits.start_syncing()?;
        let store = Store { handle: Some(Arc::new(Handle::new(inner.clone()))), inner, message: None };
        refreshed(&store);
        Ok(store)
    }

    /// Brings a view up to date, with some of its sources or all.
    pub(super) fn catch_view_up(&self, view: TableId, some: Option<&BTreeSet<Path>>) -> Result<()> {
        (self.inner.catch_up)(self, view, some)
    }

    /// One for the store's own threads and errands: it keeps nothing open, and says nothing.
    pub(super) fn own(&self) -> Self {
        Self { inner: self.inner.clone(), handle: None, message: None }
    }

    /// For threads that must not keep the store.
    pub(super) fn downgrade(&self) -> Weak<StoreParts> {
        Arc::downgrade(&self.inner)
    }

    /// The store, for one of its threads, as long as it is there.
    pub(super) fn upgrade(inner: &Weak<StoreParts>) -> Option<Self> {
        inner.upgrade().map(|inner| Self { inner, handle: None, message: None })
    }

    /// One more handle, unless the last one is closed.
    pub(super) fn join(&self) -> Option<Self> {
        let handle = || Some(Arc::new(Handle::new(self.inner.clone())));
        self.inner.handles.join().then(|| Self { inner: self.inner.clone(), handle: handle(), message: None })
    }

    /// The same handle, whose commits say `message`.
    pub(super) fn saying(&self, message: Option<&str>) -> Self {
        Self { message: message.map(Arc::from), ..self.clone() }
    }

    pub(super) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Whether this is a user's.
    pub(super) fn is_handle(&self) -> bool {
        self.handle.is_some()
    }

    pub(super) fn setting(&self) -> &Setting {
        &self.inner.setting
    }

    pub(super) fn env(&self) -> &Env {
        self.inner.setting.env()
    }

    pub(super) fn options(&self) -> &Options {
        self.inner.setting.options()
    }

    pub(super) fn storage(&self) -> &Arc<InlineStorage> {
        self.inner.setting.storage()
    }

    pub(super) fn reader(&self) -> &Arc<BlockReader> {
        &self.inner.reader
    }

    pub(super) fn commits(&self) -> &Arc<Commits> {
        &self.inner.commits
    }

    pub(super) fn upkeep(&self) -> &Upkeep {
        &self.inner.upkeep
    }

    pub(super) fn registry(&self) -> &Arc<Triggers> {
        &self.inner.triggers
    }

    pub(super) fn watched(&self) -> &Watched<SessionId, Timestamp> {
        &self.inner.watched
    }

    pub(super) fn attendance(&self) -> &Arc<Attendance> {
        &self.inner.attendance
    }

    pub(super) fn reserved(&self) -> &Reserved {
        &self.inner.reserved
    }

    pub(super) fn handles(&self) -> &Handles {
        &self.inner.handles
    }

    /// Fails if this handle, or the store, is closed.
    pub(super) fn check(&self) -> Result<()> {
        self.handle.as_ref().map_or(Ok(()), |handle| handle.check())?;
        self.setting().check()
    }

    /// The newest state known. O(1).
    pub(super) fn current(&self) -> Result<Arc<State>> {
        self.check()?;
        Ok(self.commits().newest().state())
    }

    /// The newest state, to be read: with [`Options::fresh`] takes in first what others have committed. Not in the turn.
    pub(super) fn state(&self) -> Result<Arc<State>> {
        if self.options().fresh {
            self.refresh()?;
        }
        self.current()
    }

    /// The newest state, whose blocks stay on storage while the pin lives.
    pub(super) fn pinned_state(&self) -> Result<(Arc<State>, Arc<Pin>)> {
        self.check()?;
        if self.options().fresh {
            self.refresh()?;
        }
        Ok(self.commits().newest().pinned())
    }

    /// Where the store is.
    pub fn uri(&self) -> &str {
        self.setting().uri()
    }

    /// The last commit that this handle sees.
    ///
    /// # Errors
    /// `Closed`.
    pub fn seq(&self) -> Result<Seq> {
        Ok(self.current()?.seq)
    }

    /// Takes in what other processes have committed. Returns the last commit seen.
    ///
    /// # Errors
    /// `Unavailable` if the log cannot be read, `Corrupt` if it is damaged.
    pub fn refresh(&self) -> Result<Seq> {
        self.commits().refresh()?;
        (self.inner.refreshed)(self);
        self.seq()
    }

    /// Makes all earlier commits durable: useful if [`super::Options::sync`] leaves that to time.
    ///
    /// # Errors
    /// `InDoubt` if storage fails: which of the commits since the last sync will be there after a crash is unknown.
    pub fn sync(&self) -> Result<()> {
        self.commits().sync()
    }

    /// Closes this handle; returns whether the store is to be closed.
    pub(super) fn close_handle(&self) -> bool {
        self.handle.as_ref().is_none_or(|handle| handle.close())
    }

    /// Closes the store, for all handles.
    pub(super) fn close_parts(&self) -> Result<()> {
        self.inner.close()
    }
}

impl StoreParts {
    fn close(&self) -> Result<()> {
        if !self.setting.close() {
            return Ok(());
        }
        self.triggers.stop();
        // Nothing of a store that this process alone writes may go on once its lock is given up.
        let current = self.setting.env().threads.current();
        let stop = || self.attendance.stop(current).and(self.upkeep.background().stop());
        let stopped = if self.setting.is_shared() { stop() } else { waiting::unstoppable(stop) };
        let leave = || {
            // Callbacks may hold handles of this store.
            self.triggers.clear();
            let newest = self.commits.newest();
            let mut last = State::clone(&newest.state());
            last.drop_functions();
            drop(newest.replace(Arc::new(last)));
            self.handles.release_lock();
            if self.setting.owns_storage() {
                // Open scans are still read.
                let storage = self.setting.storage().clone();
                newest.pins().when_free(move || storage.release());
            }
        };
        self.commits.close(leave).and(stopped)
    }
}

impl Drop for StoreParts {
    fn drop(&mut self) {
        // If this fails, the next open recovers.
        let _ = self.close();
    }
}

impl Handle {
    /// The hold of a handle that was counted.
    fn new(inner: Arc<StoreParts>) -> Self {
        Self { inner, closed: AtomicBool::new(false) }
    }

    /// Closes it; returns whether it was the last of its store.
    fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::SeqCst) && self.inner.handles.leave()
    }

    /// `Closed` if it is closed.
    fn check(&self) -> Result<()> {
        match self.closed.load(Ordering::SeqCst) {
            true => Err(self.inner.setting.closed()),
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
