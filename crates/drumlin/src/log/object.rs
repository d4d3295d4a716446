//! The commit log of a store that many processes write: one small object, replaced on the condition that it is still the one
//! that the writer has seen.
//!
//! Everything that a reader needs is reached from that object; nothing depends on lists, on an object's absence or on a
//! clock. A process that slept, or a put that arrives late, fails its condition. After a put without a definite answer the
//! object is read: the entry's id is there, or it is not, or the same bytes are put again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::root::{self, EntryStatus, Root};
use super::turns::Turns;
use super::{Appended, Base, CommitLog, Durable, Entry, News, Opened, Referred};
use crate::base::planted::{Bug, planted};
use crate::base::waiting::{self, Exclusive};
use crate::base::{EntryId, Env, Error, ErrorKind, Patience, Pool, Result, Seq};
use crate::storage::{Storage, Tag, WriteMode, names, put_if_match_patiently};

/// The root itself holds entries of up to this many bytes; more go to a chunk.
const INLINE_BYTES_MAX: usize = 128 << 10;
/// How often the root is read again because what it named was gone.
const LOOKS: usize = 8;

/// The commit log of a shared store.
pub struct ObjectLog {
    storage: Arc<dyn Storage>,
    env: Env,
    /// How long a commit waits for the bucket, in microseconds.
    retry: u64,
    /// Held while the bucket is waited for.
    tail: Exclusive<Tail>,
    /// What of it is asked for without waiting.
    seen: Arc<Seen>,
}

/// What of the log is known without waiting for the bucket.
struct Seen {
    /// The root as last seen.
    root: Mutex<Arc<Root>>,
    /// The last entry that the owner knows.
    known: AtomicU64,
    poisoned: AtomicBool,
}

struct Tail {
    /// The root as last seen, and its tag.
    root: Arc<Root>,
    tag: Tag,
    seen: Arc<Seen>,
    turns: Turns,
    /// The pauses left to the current commit.
    patience: Patience,
}

impl Tail {
    fn new(root: Root, tag: Tag, known: Seq, retry: u64) -> Self {
        let (root, turns, patience) = (Arc::new(root), Turns::default(), Patience::new(retry));
        let (known, poisoned) = (AtomicU64::new(known.0), AtomicBool::new(false));
        let seen = Arc::new(Seen { root: Mutex::new(root.clone()), known, poisoned });
        Self { root, tag, seen, turns, patience }
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
            true => Err(Error::closed("the commit log is closed: open the store again")),
            false => Ok(()),
        }
    }

    fn see(&mut self, root: Root, tag: Tag) {
        self.root = Arc::new(root);
        *self.seen.root.lock() = self.root.clone();
        self.tag = tag;
    }
}

impl ObjectLog {
    /// Creates the log of a new store; `AlreadyExists` if there is one. A commit waits for the bucket for `retry`
    /// microseconds.
    pub fn create(storage: Arc<dyn Storage>, env: Env, retry: u64) -> Result<Self> {
        Self::create_with(storage, env, retry, Root::default())
    }

    /// Creates the log of a new store that begins with the catalog snapshot `base`.
    pub fn create_behind(storage: Arc<dyn Storage>, env: Env, retry: u64, base: Base) -> Result<Self> {
        Self::create_with(storage, env, retry, Root::behind(base))
    }

    fn create_with(storage: Arc<dyn Storage>, env: Env, retry: u64, root: Root) -> Result<Self> {
        let bytes = Bytes::from(root.encode()?);
        let put = put_if_match_patiently(&*storage, &env, retry, names::ROOT, std::slice::from_ref(&bytes), None);
        let tag = match put {
            Ok(tag) => tag,
            Err(e) => match storage.get_tagged(names::ROOT, None) {
                // All new roots are equal: it exists, whichever process created it.
                Ok(Some((there, tag))) if there == bytes => tag,
                Ok(_) => return Err(Error::already_exists(format!("{} exists", names::ROOT))),
                Err(_) => return Err(e),
            },
        };
        Ok(Self::of(storage, env, retry, root, tag))
    }

    fn of(storage: Arc<dyn Storage>, env: Env, retry: u64, root: Root, tag: Tag) -> Self {
        let known = root.seq;
        let tail = Tail::new(root, tag, known, retry);
        let seen = tail.seen.clone();
        Self { storage, env, retry, tail: Exclusive::new("a call that waits for the log", tail), seen }
    }

    /// Opens a log; `NotFound` if there is none.
    pub fn open(storage: Arc<dyn Storage>, env: Env, retry: u64) -> Result<(Self, Opened)> {
        let (root, tag, opened) = read_all(&*storage, &env.pool)?;
        Ok((Self::of(storage, env, retry, root, tag), opened))
    }

    /// The entries that the owner does not know yet; they count as known from now on. If something that the root names is
    /// gone, the root is read again.
    fn news(&self, tail: &mut Tail) -> Result<Option<News>> {
        if tail.root.seq < tail.known()
            && let Some((root, tag)) = read_root(&*self.storage, Some(&tail.tag))?
        {
            // The owner knows a later part of the log than was seen here.
            tail.see(root, tag);
        }
        for look in 0..LOOKS {
            let root = tail.root.clone();
            if root.seq <= tail.known() {
                return Ok(None);
            }
            let reaches = root.base.is_none_or(|base| base.seq <= tail.known());
            let after = if reaches { tail.known() } else { Seq(0) };
            match entries_after(&*self.storage, &self.env.pool, &root, after) {
                Ok(entries) => {
                    tail.knows(root.seq);
                    return Ok(Some(match reaches {
                        true => News::Entries(entries),
                        false => News::All(Opened { base: root.base, entries }),
                    }));
                }
                Err(e) if e.kind() == ErrorKind::NotFound && look + 1 < LOOKS => {}
                Err(e) => return Err(damaged(e)),
            }
            if let Some((root, tag)) = read_root(&*self.storage, Some(&tail.tag))? {
                tail.see(root, tag);
            }
        }
        Err(Error::unavailable("the log is cut faster than it can be read"))
    }

    /// Moves the entries that the root itself holds to a chunk if they are large; returns its name.
    fn spill(&self, root: &mut Root) -> Result<Option<String>> {
        if root.inline_bytes() <= INLINE_BYTES_MAX {
            return Ok(None);
        }
        let (chunk, bytes) = root::encode_chunk(&root.entries, self.env.entropy.next()?)?;
        self.storage.put(&chunk.name(), &[bytes.into()], WriteMode::Once)?;
        let name = chunk.name();
        root.chunks.push(chunk);
        root.entries.clear();
        Ok(Some(name))
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
    fn replace(&self, tail: &mut Tail, next: Root, added: Option<(Seq, EntryId)>) -> Result<bool> {
        next.check()?;
        let mut doubtful = false;
        self.try_replace(tail, next, added, &mut doubtful).map_err(|e| match e.kind() {
            // The call was stopped after a put that may have been done.
            ErrorKind::Cancelled if doubtful => given_up(true, added, &e),
            _ => e,
        })
    }

    fn try_replace(
        &self,
        tail: &mut Tail,
        next: Root,
        added: Option<(Seq, EntryId)>,
        doubtful: &mut bool,
    ) -> Result<bool> {
        let bytes = [Bytes::from(next.encode()?)];
        loop {
            let begun = self.env.clock.now();
            let error = match self.put(tail, &bytes) {
                Ok(tag) => {
                    tail.turns.measured(self.env.clock.now().0.saturating_sub(begun.0).unsigned_abs());
                    tail.see(next, tag);
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
            let refused = lost && !*doubtful && !self.storage.is_remote() && !planted(Bug::DoubtRefusals);
            if lost {
                let time = tail.turns.lost(self.env.entropy.next()?);
                waiting::pause(&*self.env.clock, time).map_err(|e| match self.storage.is_remote() {
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
            let seen = loop {
                match read_root(&*self.storage, Some(&tail.tag)) {
                    Err(e) if e.kind() == ErrorKind::Unavailable && self.wait(tail, false)? => {}
                    Err(e) if e.kind() == ErrorKind::NotFound && !*doubtful => return Err(e),
                    Err(e) if lost || *doubtful => {
                        return Err(given_up(true, added, &error.context(format!("{}, and before", e.message()))));
                    }
                    other => break other?,
                }
            };
            let Some((root, tag)) = seen else {
                if planted(Bug::RetryAnew) {
                    return Ok(false);
                }
                if (lost || unknown) && !self.wait(tail, false)? {
                    return Err(given_up(*doubtful, added, &error));
                }
                continue;
            };
            let told = match added {
                Some((seq, id)) => match root.tells(seq, id) {
                    EntryStatus::Unknown => self.search(&root, seq, id),
                    told => told,
                },
                None if root == next => EntryStatus::There,
                None => EntryStatus::NotThere,
            };
            tail.see(root, tag);
            return match told {
                EntryStatus::There => Ok(true),
                EntryStatus::NotThere => Ok(false),
                EntryStatus::Unknown if refused => Ok(false),
                EntryStatus::Unknown => {
                    let many = Error::in_doubt("too many others have committed since for the log to show it");
                    Err(given_up(true, added, &many))
                }
            };
        }
    }

    fn put(&self, tail: &Tail, bytes: &[Bytes]) -> Result<Tag> {
        if planted(Bug::PlainRootPut) {
            self.storage.put(names::ROOT, bytes, WriteMode::Replace)?;
            let there = self.storage.get_tagged(names::ROOT, None)?;
            return there.map(|(_, tag)| tag).ok_or_else(|| Error::unavailable("no tag"));
        }
        self.storage.put_if_match(names::ROOT, bytes, Some(&tail.tag))
    }

    /// Pauses before the same request is repeated; `false` if it has been repeated for long enough.
    fn wait(&self, tail: &mut Tail, throttled: bool) -> Result<bool> {
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
    fn end_turn(&self, tail: &mut Tail, done: Option<Seq>) {
        let spent = std::mem::replace(&mut tail.patience, Patience::new(self.retry)).spent_micros();
        match done {
            Some(seq) => tail.turns.won(seq, self.env.clock.now(), spent),
            None => tail.turns.end(),
        }
    }

    /// Adds an entry after the last one known.
    fn add(&self, tail: &mut Tail, entry: &Entry) -> Result<Appended> {
        if let Some(news) = self.news(tail)? {
            return Ok(Appended::Behind(news));
        }
        let (now, random) = (self.env.clock.now(), self.env.entropy.next()?);
        let pause = tail.turns.begin(tail.root.seq, now, random);
        if !pause.is_zero() && !planted(Bug::NoTurns) {
            waiting::pause(&*self.env.clock, pause)?;
            if let Some((root, tag)) = read_root(&*self.storage, Some(&tail.tag))? {
                tail.see(root, tag);
                if let Some(news) = self.news(tail)? {
                    tail.turns.met_others();
                    return Ok(Appended::Behind(news));
                }
            }
        }
        assert_eq!(entry.seq, tail.known().next(), "entries are numbered without gaps");
        let mut next = tail.root.with(entry);
        let chunk = self.spill(&mut next)?;
        let replaced = self.replace(tail, next, Some((entry.seq, entry.id)));
        // A root that was refused for good names nothing. Whether one was made that is in doubt, an audit sees later.
        if let Some(chunk) = chunk
            && replaced.as_ref().map_or_else(|e| e.kind() != ErrorKind::InDoubt, |done| !done)
        {
            self.storage.delete_many(&[chunk]);
        }
        if replaced? {
            tail.knows(entry.seq);
            return Ok(Appended::Done);
        }
        match self.news(tail)? {
            Some(news) => Ok(Appended::Behind(news)),
            // Nothing was added, but the root names another catalog snapshot.
            None => Ok(Appended::Behind(News::Entries(Vec::new()))),
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
        true => Error::in_doubt(format!("whether {what} was made is not known: {}", error.message())),
        false => Error::unavailable(format!("{what} was not made: {}", error.message())),
    }
}

/// The error if something that the root names is missing or not as described.
fn damaged(e: Error) -> Error {
    match e.kind() {
        ErrorKind::NotFound => Error::corrupt(format!("{}: is needed, but missing", e.message())),
        _ => e,
    }
}

/// The root and its tag; `None` if the tag is still `known`.
fn read_root(storage: &dyn Storage, known: Option<&Tag>) -> Result<Option<(Root, Tag)>> {
    let Some((bytes, tag)) = storage.get_tagged(names::ROOT, known)? else { return Ok(None) };
    Ok(Some((Root::decode(&bytes)?, tag)))
}

/// The entries after `after`; chunks are read in parallel.
fn entries_after(storage: &dyn Storage, pool: &Pool, root: &Root, after: Seq) -> Result<Vec<Entry>> {
    let chunks = root.chunks.iter().filter(|chunk| chunk.last > after).collect();
    let read = pool.map(chunks, |chunk| root::decode_chunk(chunk, &storage.get(&chunk.name())?))?;
    let from = root.base.map_or(Seq(0), |base| base.from);
    let all = read.into_iter().flatten().chain(root.entries.iter().cloned());
    Ok(all.filter(|entry| entry.seq > after && entry.seq >= from).collect())
}

fn read_all(storage: &dyn Storage, pool: &Pool) -> Result<(Root, Tag, Opened)> {
    let mut looks = 0;
    loop {
        let (root, tag) = read_root(storage, None)?.ok_or_else(|| Error::unavailable("the root has no content"))?;
        match entries_after(storage, pool, &root, Seq(0)) {
            Ok(entries) => {
                let opened = Opened { base: root.base, entries };
                return Ok((root, tag, opened));
            }
            // It has been cut since.
            Err(e) if e.kind() == ErrorKind::NotFound && looks < LOOKS => looks += 1,
            Err(e) => return Err(damaged(e)),
        }
    }
}

impl CommitLog for ObjectLog {
    fn append(&self, entry: &Entry, _: Durable) -> Result<Appended> {
        let mut tail = self.tail.lock()?;
        tail.check()?;
        let added = self.add(&mut tail, entry);
        match &added {
            // It stays in the race until it has won or given up.
            Ok(Appended::Behind(_)) => {}
            Ok(Appended::Done) => self.end_turn(&mut tail, Some(entry.seq)),
            Err(_) => self.end_turn(&mut tail, None),
        }
        added
    }

    fn refresh(&self) -> Result<Option<News>> {
        let mut tail = self.tail.lock()?;
        tail.check()?;
        if let Some((root, tag)) = read_root(&*self.storage, Some(&tail.tag))? {
            tail.see(root, tag);
        }
        self.news(&mut tail)
    }

    fn knows(&self, last: Seq) {
        self.seen.known.store(last.0, Ordering::SeqCst);
    }

    fn read_after(&self, after: Seq) -> Result<Opened> {
        let mut looks = 0;
        loop {
            let root = self.seen.root.lock().clone();
            match entries_after(&*self.storage, &self.env.pool, &root, after) {
                Ok(entries) => return Ok(Opened { base: root.base, entries }),
                Err(e) if e.kind() == ErrorKind::NotFound && looks < LOOKS => looks += 1,
                Err(e) => return Err(damaged(e)),
            }
            let mut tail = self.tail.lock()?;
            if let Some((root, tag)) = read_root(&*self.storage, Some(&tail.tag))? {
                tail.see(root, tag);
            }
        }
    }

    fn read(&self) -> Result<Opened> {
        Ok(read_all(&*self.storage, &self.env.pool)?.2)
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
            if tail.root.base != before || newer || base.seq > tail.root.seq {
                return Ok(false);
            }
            let (next, gone) = tail.root.rebase(base);
            let gone: Vec<String> = gone.iter().map(root::Chunk::name).collect();
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
        let chunks = root.chunks.iter().map(root::Chunk::name).collect();
        Some(Referred { last: root.seq, base: root.base, chunks })
    }
}
