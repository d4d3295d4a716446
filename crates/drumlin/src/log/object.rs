//! The commit log of a store that many processes write: one small object, replaced on the condition that it is still
//! the one that the writer has seen.
//!
//! Everything that a reader needs is reached from that object; nothing depends on lists, on an object's absence or on a
//! clock. Each root that is read must continue the one seen before (root.rs), and when the log is opened, also what
//! lies beside it (evidence.rs). A process that slept, or a put that arrives late, fails its condition.
//!
//! - A process that comes second reads what the others did, takes it in, builds all effects of its turn again on the
//!   new state, and puts again; fair turns are in *turns.rs*.
//! - After a put without a definite answer the object is read. If the entry's id is there, it was done; if the object
//!   is still the one seen, the same bytes are put again; else others came first. The root keeps the ids of the newest
//!   entries, also of those that a catalog snapshot has released. A process that slept longer than these last, or
//!   cannot reach the bucket, says `InDoubt`, with the transaction's id.
//! - An answer that refuses says that nothing was done (*answers.rs* lists which do). If there were too many requests,
//!   the put is repeated after random pauses that grow (*patience.rs*), for `Options::retry_micros` in total. After
//!   that, and for any other refusal at once, the commit is `Unavailable`.

mod add;
pub(super) mod archived;
mod begin;
mod chunks;
mod fold;
pub(super) mod moving;
pub(super) mod offer;
mod place;
mod read;
pub(super) mod replica;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use self::place::RootPlace;
use self::read::{LOOKS, damaged, entries_after, read_from_place};
use super::origin::{CLOSED, Point, RESTORE, decode_witness, encode_witness};
use super::root::{Chunk, EntryStatus, Root};
use super::turns::Turns;
use super::{Appended, Base, CommitLog, Durable, Entry, News, OfferTerms, Opened, Referred};
use crate::base::planted::{Bug, planted};
use crate::base::waiting::Exclusive;
use crate::base::{EntryId, Env, Error, ErrorKind, Patience, Result, Seq, waiting};
use crate::storage::{CellRow, Storage, Tag, WriteMode, names};

/// The commit log of a shared store.
pub struct ObjectLog {
    storage: Arc<dyn Storage>,
    place: RootPlace,
    env: Env,
    /// How long a commit waits for the bucket, in microseconds.
    retry: u64,
    /// The id that a store gets that has none yet.
    own: u128,
    /// Held while the bucket is waited for.
    tail: Exclusive<RootState>,
    /// What of it is asked for without waiting.
    seen: Arc<LogStatus>,
}

/// What of the log is known without waiting for the bucket.
struct LogStatus {
    /// The root as last seen.
    root: Mutex<Arc<Root>>,
    /// The last entry that the owner knows.
    known: AtomicU64,
    poisoned: AtomicBool,
    /// Whether this process is to make a chunk of entries that the root holds.
    folds: AtomicBool,
}

struct RootState {
    /// The root as last seen, and its tag.
    root: Arc<Root>,
    tag: Tag,
    seen: Arc<LogStatus>,
    /// Whether it cannot be told if the root continues what the owner knows.
    unproven: bool,
    /// The last commit that this handle has written of in the witness, or has seen when it opened the log.
    noted: Seq,
    turns: Turns,
    /// The pauses left to the current commit.
    patience: Patience,
}

impl RootState {
    fn new(root: Root, tag: Tag, known: Seq, retry: u64) -> Self {
        let (root, turns, patience) = (Arc::new(root), Turns::default(), Patience::new(retry));
        let noted = root.seq;
        let (known, poisoned) = (AtomicU64::new(known.0), AtomicBool::new(false));
        let seen =
            Arc::new(LogStatus { root: Mutex::new(root.clone()), known, poisoned, folds: AtomicBool::default() });
        Self { root, tag, seen, unproven: false, noted, turns, patience }
    }

    /// The last entry that the owner knows.
    fn known(&self) -> Seq {
        Seq(self.seen.known.load(Ordering::SeqCst))
    }

    fn knows(&self, last: Seq) {
        self.seen.known.store(last.0, Ordering::SeqCst);
    }

    fn check(&self) -> Result<()> {
        match self.seen.poisoned.load(Ordering::SeqCst) {
            true => Err(Error::closed("the commit log is closed; open the store again")),
            false => Ok(()),
        }
    }

    fn see(&mut self, root: Root, tag: Tag) {
        self.root = Arc::new(root);
        *self.seen.root.lock() = self.root.clone();
        self.tag = tag;
    }
}

/// What the log has after an entry.
struct Beyond {
    /// The root that leads to it.
    root: Arc<Root>,
    /// Whether the log reaches back to that entry.
    reaches: bool,
    /// The entries after it; all, if the log does not reach back to it.
    entries: Vec<Entry>,
}

/// What is added to the root.
struct Addition<'a> {
    /// The writer's own entry, and those of others behind it.
    entries: &'a [Entry],
    /// Whether entries went to a chunk with it.
    spilled: bool,
    /// The offers that are done with then.
    offers: &'a [EntryId],
}

impl Addition<'_> {
    /// The number and the id of the writer's own entry.
    fn own(&self) -> (Seq, EntryId) {
        self.entries.first().map_or_else(Default::default, |entry| (entry.seq, entry.id))
    }
}

impl ObjectLog {
    /// Reads the root if it is not the one last seen. `false` if it is. If it does not continue that one, nothing is done any more.
    fn look(&self, tail: &mut RootState) -> Result<bool> {
        self.look_as(tail, false)
    }

    /// The same; if `in_turn` says so, once it is this process's turn to replace the root.
    fn look_as(&self, tail: &mut RootState, in_turn: bool) -> Result<bool> {
        self.look_with(tail, |tail, again| self.place.read_as(Some((&tail.root, &tail.tag)), in_turn && !again))
    }

    /// The same, with what `read` reads of the root; it is called again if that does not continue the root as last seen.
    fn look_with(
        &self,
        tail: &mut RootState,
        mut read: impl FnMut(&RootState, bool) -> Result<Option<(Root, Tag)>>,
    ) -> Result<bool> {
        let mut again = false;
        loop {
            let wrong = match read(tail, again) {
                Ok(None) => return Ok(false),
                Ok(Some((root, tag))) => match tail.root.continues(&root) {
                    Ok(proven) => {
                        tail.unproven |= proven.is_none();
                        tail.see(root, tag);
                        return Ok(true);
                    }
                    Err(_) if planted(Bug::CompareNumbersOnly) && root.seq >= tail.root.seq => {
                        tail.see(root, tag);
                        return Ok(true);
                    }
                    Err(e) => e,
                },
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    let what = format!("{}: it is missing; {CLOSED}, or {RESTORE}", names::ROOT);
                    Error::other_history(ErrorKind::Corrupt, what)
                }
                Err(e) => return Err(e),
            };
            // An answer may be older than what was seen.
            if again {
                self.poison();
                return Err(wrong);
            }
            again = true;
        }
    }

    fn witness(&self, root: &Root) -> Bytes {
        let entry = root.last_id().unwrap_or_default();
        encode_witness(&Point { store: root.origin.store, seq: root.seq, entry }).into()
    }

    /// Has the witness say of the newest commit that it was made. If that fails, it says less.
    fn note(&self, tail: &mut RootState) {
        let root = &tail.root;
        let replaces = |there: &[u8]| match decode_witness(there) {
            None => true,
            Some(seen) if seen.store == root.origin.store => {
                seen.seq < root.seq && root.tells(seen.seq, seen.entry) != EntryStatus::NotThere
            }
            Some(seen) => root.origin.parent.is_some_and(|parent| parent.store == seen.store),
        };
        if self.storage.note(names::WITNESS, &self.witness(root), &replaces).is_ok() {
            tail.noted = tail.root.seq;
        }
    }

    /// The entries that the owner does not know yet; they count as known from now on. If something that the root names is
    /// gone, the root is read again.
    fn news(&self, tail: &mut RootState) -> Result<Option<News>> {
        tail.root.role.check_here()?;
        if tail.root.seq < tail.known() {
            // The owner knows a later part of the log than was seen here.
            self.look(tail)?;
        }
        let Some(Beyond { root, reaches, entries }) = self.beyond(tail, tail.known())? else { return Ok(None) };
        tail.knows(root.seq);
        let opened = |entries| Opened { base: root.base, entries, origin: root.origin, lossy: false };
        Ok(Some(match (reaches, std::mem::take(&mut tail.unproven)) {
            // Each names the one before it.
            (true, _) => News::Entries(entries),
            (false, false) => News::All(opened(entries)),
            (false, true) => News::Unproven(opened(entries)),
        }))
    }

    /// The same; empty if there is none.
    fn news_if_any(&self, tail: &mut RootState) -> Result<News> {
        Ok(self.news(tail)?.unwrap_or(News::Entries(Vec::new())))
    }

    /// What the log has after `known`; `None` if that is nothing.
    fn beyond(&self, tail: &mut RootState, known: Seq) -> Result<Option<Beyond>> {
        for look in 0..LOOKS {
            let root = tail.root.clone();
            if root.seq <= known {
                return Ok(None);
            }
            let reaches = root.base.is_none_or(|base| base.reaches(known));
            let after = if reaches { known } else { Seq(0) };
            match entries_after(&*self.storage, &self.env.pool, &root, after) {
                Ok(entries) => return Ok(Some(Beyond { root, reaches, entries })),
                Err(e) if e.kind() == ErrorKind::NotFound && look + 1 < LOOKS => {}
                Err(e) => return Err(damaged(e)),
            }
            self.look(tail)?;
        }
        Err(Error::unavailable("other processes cut the log faster than it could be read; try again"))
    }

    /// What the log says about an entry that is not among the newest.
    fn search(&self, root: &Root, seq: Seq, id: EntryId) -> EntryStatus {
        if root.base.is_some_and(|base| base.seq >= seq) {
            return EntryStatus::Unknown;
        }
        let entries = entries_after(&*self.storage, &self.env.pool, root, Seq(seq.0 - 1));
        match entries.iter().flatten().find(|entry| entry.seq == seq) {
            Some(entry) if entry.id == id => EntryStatus::There,
            Some(_) => EntryStatus::NotThere,
            None => EntryStatus::Unknown,
        }
    }

    /// Replaces the root as last seen by `next`. `false` if the root has changed; the new one then counts as seen.
    ///
    /// A put has one of four results. *Done.* *Not done, because the root has changed*: a race was lost. *Refused*, for good
    /// or because there were too many requests: it was not done, and in the second case it is repeated after a pause. *No
    /// answer*: it may have been done, or may still be. The root shows which; as long as it is the one last seen, the same
    /// bytes are put again, because only one of all those puts can meet its condition.
    ///
    /// `added` is what was added, if that is what has changed.
    fn replace(&self, tail: &mut RootState, next: Root, added: Option<&Addition<'_>>) -> Result<bool> {
        self.replace_then(tail, next, added, &mut |root, tag| self.place.publish(root, tag))
    }

    /// The same; calls `publish` with a root that was put whole, and its tag.
    fn replace_then(
        &self,
        tail: &mut RootState,
        next: Root,
        added: Option<&Addition<'_>>,
        publish: &mut dyn FnMut(&Root, &Tag),
    ) -> Result<bool> {
        if added.is_none_or(|added| added.spilled) {
            next.check()?;
        }
        let mut doubtful = false;
        self.try_replace(tail, next, added, publish, &mut doubtful).map_err(|e| match e.kind() {
            // The call was stopped after a put that may have been done.
            ErrorKind::Cancelled if doubtful => given_up(true, added.map(Addition::own), &e),
            _ => e,
        })
    }

    fn try_replace(
        &self,
        tail: &mut RootState,
        mut next: Root,
        added: Option<&Addition<'_>>,
        publish: &mut dyn FnMut(&Root, &Tag),
        doubtful: &mut bool,
    ) -> Result<bool> {
        let alone = added.filter(|added| !added.spilled && next.origin.store != 0 && self.place.takes_entries());
        if next.origin.store == 0 {
            next.origin.store = self.own;
        }
        let whole = alone.is_none();
        if whole {
            next.stamp = self.env.entropy.next()?;
        }
        let row = self.place.row(&next, alone.map(|added| added.entries))?;
        let offers = added.map_or(&[][..], |added| added.offers);
        let added = added.map(Addition::own);
        loop {
            let begun = self.env.clock.now();
            let error = match self.put(tail, &row, offers) {
                Ok(tag) => {
                    tail.turns.measured(self.env.clock.now().0.saturating_sub(begun.0).unsigned_abs());
                    if whole {
                        publish(&next, &tag);
                    }
                    tail.see(next, tag);
                    if added.is_none_or(|(seq, _)| self.place.is_witnessed(seq)) {
                        self.note(tail);
                    }
                    return Ok(true);
                }
                Err(e) => e,
            };
            if planted(Bug::ForgetAmbiguity) && error.kind() != ErrorKind::Conflict {
                return Err(Error::unavailable(error.message()));
            }
            let (lost, unknown) = (error.kind() == ErrorKind::Conflict, error.kind() == ErrorKind::InDoubt);
            *doubtful |= unknown;
            // A network may have repeated the request; a folder has looked before it did anything.
            let refused = lost && !*doubtful && !self.place.is_remote() && !planted(Bug::DoubtRefusals);
            let in_turn = lost && offers.is_empty() && self.place.has_turns();
            if lost {
                let time = tail.turns.lost(self.env.entropy.next()?);
                let time = if in_turn || !offers.is_empty() { Duration::ZERO } else { time };
                waiting::pause(&*self.env.clock, time).map_err(|e| match self.place.is_remote() {
                    true => given_up(true, added, &e),
                    false => e,
                })?;
            } else if !unknown {
                if !*doubtful && !error.is_throttled() {
                    return Err(error);
                }
                if !self.wait(tail, error.is_throttled())? {
                    return Err(given_up(*doubtful, added, &error));
                }
            }
            // It may be there even if the condition failed: an earlier try of the same put may have succeeded.
            let replaced = loop {
                match self.look_as(tail, in_turn) {
                    Err(e) if e.kind() == ErrorKind::Unavailable && self.wait(tail, false)? => {}
                    // In this history it was not done, unless it was done before the other one.
                    Err(e) if e.is_other_history() && *doubtful => return Err(e.as_kind(ErrorKind::InDoubt)),
                    Err(e) if e.is_other_history() => return Err(e),
                    Err(e) if lost || *doubtful => {
                        return Err(given_up(true, added, &error.context(format!("{}, and before that", e.message()))));
                    }
                    other => break other?,
                }
            };
            if !replaced {
                if planted(Bug::RetryAsNew) {
                    return Ok(false);
                }
                if (lost || unknown) && !self.wait(tail, false)? {
                    return Err(given_up(*doubtful, added, &error));
                }
                continue;
            }
            let root = &tail.root;
            let told = match added {
                Some((seq, id)) => match root.tells(seq, id) {
                    EntryStatus::Unknown => self.search(root, seq, id),
                    told => told,
                },
                None if **root == next => EntryStatus::There,
                None => EntryStatus::NotThere,
            };
            return match told {
                EntryStatus::There => Ok(true),
                EntryStatus::NotThere => Ok(false),
                EntryStatus::Unknown if refused => Ok(false),
                EntryStatus::Unknown => {
                    let many = Error::in_doubt("too many other commits followed for the log to show it");
                    Err(given_up(true, added, &many))
                }
            };
        }
    }

    fn put(&self, tail: &RootState, row: &CellRow, offers: &[EntryId]) -> Result<Tag> {
        if planted(Bug::PlainRootPut)
            && let CellRow::Head(bytes) = row
        {
            self.storage.put(names::ROOT, std::slice::from_ref(bytes), WriteMode::Replace)?;
            let there = self.storage.get_tagged(names::ROOT, None)?;
            return there
                .map(|(_, tag)| tag)
                .ok_or_else(|| Error::unavailable("the bucket returned no version tag for the root"));
        }
        self.place.put(row, &tail.tag, offers)
    }

    /// Pauses before the same request is repeated; `false` if it has been repeated for long enough.
    fn wait(&self, tail: &mut RootState, throttled: bool) -> Result<bool> {
        if planted(Bug::HastyRetries) {
            return Ok(tail.patience.spent_micros() == 0 && tail.patience.pause_at_most(&self.env, 2)?);
        }
        match throttled {
            true => {
                let longest = tail.turns.refused(tail.patience.spent_micros());
                tail.patience.pause_at_most(&self.env, longest)
            }
            false => tail.patience.pause(&self.env),
        }
    }

    /// The current commit has ended, one way or the other.
    fn end_turn(&self, tail: &mut RootState, done: Option<Seq>) {
        let spent = std::mem::replace(&mut tail.patience, Patience::new(self.retry)).spent_micros();
        match done {
            Some(seq) => tail.turns.won(seq, tail.root.seq, self.env.clock.now(), spent),
            None => tail.turns.end(),
        }
    }
}

/// The error for a put that is given up because of `error`: if `doubtful`, it is unknown whether it was or will be done;
/// otherwise it was not.
fn given_up(doubtful: bool, added: Option<(Seq, EntryId)>, error: &Error) -> Error {
    let what = match added {
        Some((seq, id)) => format!("commit {seq} (transaction {:032x})", id.0),
        None => "the new catalog snapshot".to_owned(),
    };
    match doubtful {
        true => Error::in_doubt(format!("it is not known whether {what} was made: {}", error.message())),
        false => Error::unavailable(format!("{what} was not made: {}", error.message())),
    }
}

impl CommitLog for ObjectLog {
    fn append(&self, entry: &Entry, _: Durable) -> Result<Appended> {
        self.add(entry, None)
    }

    fn append_among(&self, entry: &Entry, _: Durable, terms: &OfferTerms<'_>) -> Result<Appended> {
        self.add(entry, Some(terms))
    }

    fn refresh(&self) -> Result<Option<News>> {
        let mut tail = self.tail.lock()?;
        tail.check()?;
        self.place.end_turn();
        self.look(&mut tail)?;
        self.news(&mut tail)
    }

    fn confirm(&self) -> Result<()> {
        let mut tail = self.tail.lock()?;
        tail.check()?;
        self.look(&mut tail)?;
        tail.root.role.check_here()
    }

    fn knows(&self, last: Seq) {
        self.seen.known.store(last.0, Ordering::SeqCst);
    }

    fn read_after(&self, after: Seq) -> Result<Opened> {
        let mut looks = 0;
        loop {
            let root = self.seen.root.lock().clone();
            match entries_after(&*self.storage, &self.env.pool, &root, after) {
                Ok(entries) => {
                    return Ok(Opened { base: root.base, entries, origin: root.origin, lossy: false });
                }
                Err(e) if e.kind() == ErrorKind::NotFound && looks < LOOKS => looks += 1,
                Err(e) => return Err(damaged(e)),
            }
            self.look(&mut *self.tail.lock()?)?;
        }
    }

    fn read(&self) -> Result<Opened> {
        Ok(read_from_place(&self.place, &*self.storage, &self.env.pool, None)?.2)
    }

    fn tidy(&self) {
        // That a commit was made is not undone by what is tidied up behind it.
        drop(self.fold());
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn rebase(&self, before: Option<Base>, base: Base, _: u64) -> Result<bool> {
        let mut tail = self.tail.lock()?;
        tail.check()?;
        loop {
            // Never go back: entries between the two are no longer in the log.
            let newer = tail.root.base.is_some_and(|there| there.seq >= base.seq);
            tail.root.role.check()?;
            if tail.root.base != before || newer || base.seq > tail.root.seq {
                return Ok(false);
            }
            let (next, gone) = tail.root.rebase(base);
            let gone: Vec<String> = gone.iter().map(Chunk::name).collect();
            if planted(Bug::DeleteNamedChunks) {
                self.storage.delete_many(&gone);
            }
            let replaced = self.replace(&mut tail, next, None);
            tail.patience = Patience::new(self.retry);
            if replaced? {
                // Whatever is left is found by an audit.
                if !gone.is_empty() {
                    self.storage.delete_many(&gone);
                }
                return Ok(true);
            }
            if tail.root.base == Some(base) {
                return Ok(true);
            }
        }
    }

    fn close(&self) -> Result<()> {
        if let Ok(mut tail) = self.tail.lock()
            && tail.check().is_ok()
            && tail.noted < tail.root.seq
            && tail.turns.has_committed()
        {
            self.note(&mut tail);
        }
        self.poison();
        Ok(())
    }

    fn poison(&self) {
        self.seen.poisoned.store(true, Ordering::SeqCst);
    }

    fn bytes(&self) -> u64 {
        self.seen.root.lock().bytes()
    }

    fn base(&self) -> Option<Base> {
        self.seen.root.lock().base
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn referred(&self) -> Option<Referred> {
        let root = self.seen.root.lock().clone();
        let chunks = root.chunks.iter().map(Chunk::name).collect();
        Some(Referred { last: root.seq, base: root.base, chunks })
    }

    fn on_server(&self) -> Result<Option<(String, u64)>> {
        self.place.on_server()
    }

    fn store(&self) -> u128 {
        match self.seen.root.lock().origin.store {
            0 => self.own,
            store => store,
        }
    }

    fn inspect(&self, _: u128) -> Result<Vec<String>> {
        chunks::inspected(&self.place, &*self.storage, &self.env.pool)
    }
}
