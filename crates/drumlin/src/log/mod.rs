//! The commit log: one numbered order for everything. It frames entries and makes them durable; it does not know what
//! their payload means.
//!
//! Invariants: an entry is durable when `append` returns; entries are numbered without gaps; the log names the newest
//! catalog snapshot, and every entry after that snapshot is in it.

mod entry;
mod evidence;
mod file;
mod follow;
mod frame;
mod mark;
mod object;
mod origin;
mod recovery;
mod remains;
mod root;
mod sealing;
mod turns;

pub use entry::{Base, Entry, EntryList};
pub use file::{ENTRY_BYTES_MAX, FileLog, LogOptions};
pub use follow::FileFollower;
pub use object::moving::{LogPlace, Movers};
pub use object::{ObjectLog, archived::ArchivedLog, offer::Offer, replica::ReplicaLog};
pub use origin::{CLOSED, Origin, Point, RESTORE, decode_witness};
pub use recovery::{OnLoss, retry_while_moving};
pub use remains::Remains;
pub use root::{ROOT_VERSION, ROOT_VERSION_CELL, ROOT_VERSION_ROLE, Role};
pub use sealing::SealingLog;

use crate::base::{Result, Seq, TableId};

/// Everything that a log holds.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// The newest catalog snapshot.
    pub base: Option<Base>,
    /// Every entry after it, and those before it that it refers to.
    pub entries: Vec<Entry>,
    /// Which history it is, as far as the log says.
    pub origin: Origin,
    /// Whether something was lost, which was accepted when it was opened.
    pub lossy: bool,
}

impl Opened {
    /// The commit of the catalog snapshot that it begins with; 0 if there is none.
    pub fn first(&self) -> Seq {
        self.base.map_or(Seq(0), |base| base.seq)
    }

    /// The last commit that it has; 0 if there is none.
    pub fn last(&self) -> Seq {
        let base = self.first();
        self.entries.last().map_or(base, |entry| entry.seq.max(base))
    }
}

/// What others have committed.
#[derive(Clone, Debug)]
pub enum News {
    /// The entries after the last one known, in order.
    Entries(Vec<Entry>),
    /// The log no longer reaches back to that entry: everything it holds.
    All(Opened),
    /// The same, and nothing shows any more that it continues that entry: the owner counts as one that has just opened it.
    Unproven(Opened),
}

/// The result of an append.
#[derive(Clone, Debug)]
pub enum Appended {
    /// The entry is in the log.
    Done,
    /// It is, under this number, among these, which follow the last one known. They count as known from now on.
    Among(Seq, News),
    /// It is not, because others came first. Their entries count as known from now on.
    Behind(News),
}

/// What an entry that writes rows, and does nothing else, needs to be added after others of its kind that its writer does not know.
pub struct OfferTerms<'a> {
    /// The tables whose rows it depends on: none of those may write to them.
    pub reads: &'a [TableId],
    /// The tables to which an entry writes rows; `None` if it does anything else, or cannot be decoded.
    pub written: &'a (dyn Fn(&Entry) -> Option<Vec<TableId>> + Sync),
}

/// When an entry must be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// Before the append returns.
    Now,
    /// After the next [`CommitLog::sync`].
    AfterSync,
}

/// What a log in objects refers to.
#[derive(Clone, Debug)]
pub struct Referred {
    /// The last entry.
    pub last: Seq,
    /// The newest catalog snapshot.
    pub base: Option<Base>,
    /// The objects that hold entries. An object that ends, by its name, with the last entry or an earlier one and is not among
    /// them will never become one of them.
    pub chunks: Vec<String>,
}

/// A commit log, as seen by one handle: it remembers the last entry that its owner knows.
pub trait CommitLog: Send + Sync {
    /// Adds the entry after the last one known. A log in objects makes it durable at once in either case.
    /// `Unavailable`: nothing was applied, nor will be. `InDoubt`: it may or may not be in the
    /// log.
    fn append(&self, entry: &Entry, durable: Durable) -> Result<Appended>;

    /// The same for an entry that may be added after others that its writer does not know: it is added in any case where they allow it,
    /// perhaps by another process, and later than the clock's time in it if need be.
    fn append_among(&self, entry: &Entry, durable: Durable, terms: &OfferTerms<'_>) -> Result<Appended> {
        let _ = terms;
        self.append(entry, durable)
    }

    /// What others have added since the last entry known, if anything.
    fn refresh(&self) -> Result<Option<News>>;

    /// Fails if another history lies here, as far as can be seen with at most one request. Asked before objects are deleted or
    /// replaced.
    fn confirm(&self) -> Result<()> {
        Ok(())
    }

    /// The owner knows the entries up to this one, whatever this log returned to it.
    fn knows(&self, last: Seq) {
        let _ = last;
    }

    /// Reads all of it again; does not change what counts as known.
    fn read(&self) -> Result<Opened>;

    /// The newest catalog snapshot, and at least the entries after `after` that are in the log; does not change what counts
    /// as known.
    fn read_after(&self, after: Seq) -> Result<Opened> {
        let _ = after;
        self.read()
    }

    /// Does what adding entries has left to be done, which no commit has to wait for.
    fn tidy(&self) {}

    /// Makes all entries added so far durable.
    fn sync(&self) -> Result<()>;

    /// Records that the catalog snapshot `base`, made from the snapshot `before`, is durable, and releases the entries that
    /// it holds. The snapshot holds at least the entries that [`CommitLog::bytes`] counted when it returned `bytes`. `false`
    /// if others have named another snapshot since: then nothing was done.
    fn rebase(&self, before: Option<Base>, base: Base, bytes: u64) -> Result<bool>;

    /// Ends it cleanly: it accepts no more entries.
    fn close(&self) -> Result<()>;

    /// Accepts no more entries: nothing may be based on what was added last.
    fn poison(&self);

    /// Bytes of the entries since the newest catalog snapshot.
    fn bytes(&self) -> u64;

    /// The newest catalog snapshot, as far as is known.
    fn base(&self) -> Option<Base>;

    /// Whether other processes may add entries too.
    fn is_shared(&self) -> bool {
        false
    }

    /// What a log in objects refers to; `None` for one in files.
    fn referred(&self) -> Option<Referred> {
        None
    }

    /// The address of the server that has the log, if one has, and how many rows it has that the log does not need any more.
    fn on_server(&self) -> Result<Option<(String, u64)>> {
        Ok(None)
    }

    /// The store's id, as far as the log knows it; 0 if it does not.
    fn store(&self) -> u128 {
        0
    }

    /// What is wrong with what the log keeps beside its entries, in words: it can do without, but then notices less.
    /// `store` is the store's id; those of earlier builds may have neither an id nor a mark.
    fn inspect(&self, store: u128) -> Result<Vec<String>> {
        let _ = store;
        Ok(Vec::new())
    }
}
