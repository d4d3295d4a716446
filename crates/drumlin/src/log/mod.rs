//! The commit log: one numbered order for everything. It frames entries and keeps them durable; what their payload
//! means is not its business.
//!
//! Invariants: an entry is durable when `append` returns; entries are numbered without gaps; the log names the newest
//! catalog snapshot, and every entry after that snapshot is in it.

mod entry;
mod file;
mod follow;
mod frame;
mod mark;
mod object;
mod remains;
mod root;
mod turns;

pub use entry::{Base, Entry};
pub use file::{ENTRY_BYTES_MAX, FileLog, LogOptions, Loss};
pub use follow::{FileFollower, retry_while_moving};
pub use object::ObjectLog;
pub use remains::Remains;
pub use root::ROOT_VERSION;

use crate::base::{Result, Seq};

/// All that a log holds.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The newest catalog snapshot.
    pub base: Option<Base>,
    /// Every entry after it, and those before that it names.
    pub entries: Vec<Entry>,
}

/// What others have committed.
#[derive(Clone, Debug)]
pub enum News {
    /// The entries behind the last one known, in order.
    Entries(Vec<Entry>),
    /// The log does not reach back to that one any more: all of it.
    All(Opened),
}

/// What became of an append.
#[derive(Clone, Debug)]
pub enum Appended {
    /// The entry is in the log.
    Done,
    /// It is not, since others came first. Their entries are known from now on.
    Behind(News),
}

/// A log of commits, of one handle: it remembers the last entry that its owner knows of.
pub trait CommitLog: Send + Sync {
    /// Adds the entry behind the last one known; it is durable when this returns, or, if it may be synced `later`, after
    /// the next [`CommitLog::sync`]. `Unavailable`: nothing was applied, nor will be. `InDoubt`: it may or may not be there.
    fn append(&self, entry: &Entry, later: bool) -> Result<Appended>;

    /// What others have added since the last entry known, if anything.
    fn refresh(&self) -> Result<Option<News>>;

    /// The owner knows the entries up to this one, whatever it was told.
    fn knows(&self, last: Seq) {
        let _ = last;
    }

    /// All of it, anew; what is known stays as it is.
    fn read(&self) -> Result<Opened>;

    /// The newest catalog snapshot, and at least the entries after `after` that are in the log; what is known stays as it is.
    fn read_after(&self, after: Seq) -> Result<Opened> {
        let _ = after;
        self.read()
    }

    /// Makes all entries durable that were added before.
    fn sync(&self) -> Result<()>;

    /// Records that the catalog snapshot `base`, made from the snapshot `before`, is durable, and lets go of the
    /// entries that it holds. The snapshot holds at least the entries that [`CommitLog::bytes`] counted when it gave `bytes`.
    /// `false` if others have named another snapshot meanwhile: then nothing was done.
    fn rebase(&self, before: Option<Base>, base: Base, bytes: u64) -> Result<bool>;

    /// Ends it cleanly: it takes no more.
    fn close(&self) -> Result<()>;

    /// Takes no more entries: what was added last cannot be built upon.
    fn poison(&self);

    /// Bytes of the entries since the newest catalog snapshot.
    fn bytes(&self) -> u64;

    /// The newest catalog snapshot, as far as is known.
    fn base(&self) -> Option<Base>;

    /// Whether other processes may add entries too.
    fn is_shared(&self) -> bool {
        false
    }

    /// Of a log in objects: the last entry, the newest catalog snapshot, and the objects that hold entries. An object whose name says that it ends with
    /// that entry or one before it, and that is not among them, will never be.
    fn needed(&self) -> Option<(Seq, Option<Base>, Vec<String>)> {
        None
    }
}
