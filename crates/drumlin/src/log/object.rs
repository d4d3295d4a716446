//! The commit log of a store that many processes write: one small object, replaced on the condition that it is still what the
//! writer has seen.
//!
//! Whatever a reader needs is reached from that object; nothing rests on lists, on an object's absence or on a clock. A process
//! that slept, or a put that lands late, fails its condition. After an answer that tells nothing the object is read: an
//! entry's id is there, or it is not, or the same bytes are tried again.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::root::{self, Root, Told};
use super::{Appended, Base, CommitLog, Entry, News, Opened};
use crate::base::planted::{Bug, planted};
use crate::base::{Entropy, EntryId, Error, ErrorKind, Pool, Result, Seq};
use crate::storage::{PutMode, Storage, Tag, names};

/// The root holds entries of its own up to so many bytes; more go to a chunk.
const INLINE_BYTES_MAX: usize = 128 << 10;
/// How often the same bytes are tried while nobody else gets in between.
const TRIES: usize = 8;
/// How often the root is read anew because what it named was gone.
const LOOKS: usize = 8;

/// The commit log of a shared store.
pub struct ObjectLog {
    storage: Arc<dyn Storage>,
    entropy: Arc<dyn Entropy>,
    pool: Pool,
    tail: Mutex<Tail>,
}

struct Tail {
    /// The root as last seen, and its tag.
    root: Arc<Root>,
    tag: Tag,
    /// The last entry that the owner knows of.
    known: Seq,
    poisoned: bool,
}

impl Tail {
    fn check(&self) -> Result<()> {
        match self.poisoned {
            true => Err(Error::closed("the commit log is closed: open the store again")),
            false => Ok(()),
        }
    }

    fn see(&mut self, root: Root, tag: Tag) {
        self.root = Arc::new(root);
        self.tag = tag;
    }
}

impl ObjectLog {
    /// Makes the log of a new store; `AlreadyExists` if there is one.
    pub fn create(storage: Arc<dyn Storage>, entropy: Arc<dyn Entropy>, pool: Pool) -> Result<Self> {
        Self::create_with(storage, entropy, pool, Root::default())
    }

    /// Makes the log of a new store that begins with the catalog snapshot `base`.
    pub fn create_behind(storage: Arc<dyn Storage>, entropy: Arc<dyn Entropy>, pool: Pool, base: Base) -> Result<Self> {
        Self::create_with(storage, entropy, pool, Root::behind(base))
    }

    fn create_with(storage: Arc<dyn Storage>, entropy: Arc<dyn Entropy>, pool: Pool, root: Root) -> Result<Self> {
        let bytes = Bytes::from(root.encode()?);
        let tag = match storage.put_if_match(names::ROOT, std::slice::from_ref(&bytes), None) {
            Ok(tag) => tag,
            Err(e) => match storage.get_tagged(names::ROOT, None) {
                // All that are new look the same: whoever made it, it is there.
                Ok(Some((there, tag))) if there == bytes => tag,
                Ok(_) => return Err(Error::already_exists(format!("{} exists", names::ROOT))),
                Err(_) => return Err(e),
            },
        };
        let tail = Tail { known: root.seq, root: Arc::new(root), tag, poisoned: false };
        Ok(Self { storage, entropy, pool, tail: Mutex::new(tail) })
    }

    /// Opens a log; `NotFound` if there is none.
    pub fn open(storage: Arc<dyn Storage>, entropy: Arc<dyn Entropy>, pool: Pool) -> Result<(Self, Opened)> {
        let (root, tag, opened) = read_all(&*storage, &pool)?;
        let tail = Tail { known: root.seq, root: Arc::new(root), tag, poisoned: false };
        Ok((Self { storage, entropy, pool, tail: Mutex::new(tail) }, opened))
    }

    /// What `root` has that the owner does not know, who knows it from now on. If what it names is gone, it is read anew.
    fn news(&self, tail: &mut Tail) -> Result<Option<News>> {
        if tail.root.seq < tail.known
            && let Some((root, tag)) = read_root(&*self.storage, Some(&tail.tag))?
        {
            // The owner has read more of the log than was seen here.
            tail.see(root, tag);
        }
        for look in 0..LOOKS {
            let root = tail.root.clone();
            if root.seq <= tail.known {
                return Ok(None);
            }
            let reaches = root.base.is_none_or(|base| base.seq <= tail.known);
            let after = if reaches { tail.known } else { Seq(0) };
            match entries_after(&*self.storage, &self.pool, &root, after) {
                Ok(entries) => {
                    tail.known = root.seq;
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

    /// Moves the entries that the root holds itself to a chunk if they are many.
    fn spill(&self, root: &mut Root) -> Result<()> {
        if root.inline_bytes() <= INLINE_BYTES_MAX {
            return Ok(());
        }
        let (chunk, bytes) = root::encode_chunk(&root.entries, self.entropy.next()?)?;
        self.storage.put(&chunk.name(), &[bytes.into()], PutMode::Once)?;
        root.chunks.push(chunk);
        root.entries.clear();
        Ok(())
    }

    /// What the log says of an entry that is not among the newest.
    fn search(&self, root: &Root, seq: Seq, id: EntryId) -> Told {
        if root.base.is_some_and(|base| base.seq >= seq) {
            return Told::Unknown;
        }
        let entries = entries_after(&*self.storage, &self.pool, root, Seq(seq.0 - 1));
        match entries.iter().flatten().find(|entry| entry.seq == seq) {
            Some(entry) if entry.id == id => Told::There,
            Some(_) => Told::NotThere,
            None => Told::Unknown,
        }
    }

    /// Replaces the root as last seen by `next`. `false` if it is another by now, which is seen from then on.
    fn replace(&self, tail: &mut Tail, next: Root, added: Option<(Seq, EntryId)>) -> Result<bool> {
        next.check()?;
        let bytes = [Bytes::from(next.encode()?)];
        for _ in 0..TRIES {
            let put = match planted(Bug::PlainRootPut) {
                true => self.storage.put(names::ROOT, &bytes, PutMode::Replace).and_then(|()| {
                    let there = self.storage.get_tagged(names::ROOT, None)?;
                    there.map(|(_, tag)| tag).ok_or_else(|| Error::unavailable("no tag"))
                }),
                false => self.storage.put_if_match(names::ROOT, &bytes, Some(&tail.tag)),
            };
            let error = match put {
                Ok(tag) => {
                    tail.see(next, tag);
                    return Ok(true);
                }
                Err(e) => e,
            };
            if planted(Bug::ForgetAmbiguity) && error.kind() != ErrorKind::Conflict {
                return Err(Error::unavailable(error.message()));
            }
            // It may be there all the same, also when the condition failed: an earlier try of it may have come first.
            let seen = read_root(&*self.storage, Some(&tail.tag)).map_err(|e| {
                let what =
                    added.map_or_else(String::new, |(seq, id)| format!("commit {seq} (transaction {:032x}): ", id.0));
                Error::in_doubt(format!("{what}{}, and then {}", error.message(), e.message()))
            })?;
            let Some((root, tag)) = seen else { continue };
            let told = match added {
                Some((seq, id)) => match root.tells(seq, id) {
                    Told::Unknown => self.search(&root, seq, id),
                    told => told,
                },
                None if root == next => Told::There,
                None => Told::NotThere,
            };
            tail.see(root, tag);
            return match told {
                Told::There => Ok(true),
                Told::NotThere => Ok(false),
                Told::Unknown => Err(Error::in_doubt("so many others have committed that it cannot be told")),
            };
        }
        Err(Error::in_doubt(format!("{}: could not be replaced in {TRIES} tries", names::ROOT)))
    }
}

/// What the root names is missing or is not what it says.
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

/// The entries behind `after`, the chunks read in parallel.
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
            // It was cut meanwhile.
            Err(e) if e.kind() == ErrorKind::NotFound && looks < LOOKS => looks += 1,
            Err(e) => return Err(damaged(e)),
        }
    }
}

impl CommitLog for ObjectLog {
    fn append(&self, entry: &Entry, _: bool) -> Result<Appended> {
        let mut tail = self.tail.lock();
        tail.check()?;
        if let Some(news) = self.news(&mut tail)? {
            return Ok(Appended::Behind(news));
        }
        assert_eq!(entry.seq, tail.known.next(), "entries are numbered without gaps");
        let mut next = tail.root.with(entry);
        self.spill(&mut next)?;
        if self.replace(&mut tail, next, Some((entry.seq, entry.id)))? {
            tail.known = entry.seq;
            return Ok(Appended::Done);
        }
        match self.news(&mut tail)? {
            Some(news) => Ok(Appended::Behind(news)),
            // Nothing was added, but another catalog snapshot is named.
            None => Ok(Appended::Behind(News::Entries(Vec::new()))),
        }
    }

    fn refresh(&self) -> Result<Option<News>> {
        let mut tail = self.tail.lock();
        tail.check()?;
        if let Some((root, tag)) = read_root(&*self.storage, Some(&tail.tag))? {
            tail.see(root, tag);
        }
        self.news(&mut tail)
    }

    fn knows(&self, last: Seq) {
        self.tail.lock().known = last;
    }

    fn read(&self) -> Result<Opened> {
        Ok(read_all(&*self.storage, &self.pool)?.2)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn rebase(&self, before: Option<Base>, base: Base, _: u64) -> Result<bool> {
        let mut tail = self.tail.lock();
        tail.check()?;
        loop {
            // Never back: entries between the two are in the log no more.
            let newer = tail.root.base.is_some_and(|there| there.seq >= base.seq);
            if tail.root.base != before || newer || base.seq > tail.root.seq {
                return Ok(false);
            }
            let (next, gone) = tail.root.rebase(base);
            let gone: Vec<String> = gone.iter().map(root::Chunk::name).collect();
            if planted(Bug::DeleteNamedChunks) {
                self.storage.delete_many(&gone);
            }
            if self.replace(&mut tail, next, None)? {
                // What stays is found by an audit.
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
        self.tail.lock().poisoned = true;
        Ok(())
    }

    fn poison(&self) {
        self.tail.lock().poisoned = true;
    }

    fn bytes(&self) -> u64 {
        self.tail.lock().root.bytes()
    }

    fn base(&self) -> Option<Base> {
        self.tail.lock().root.base
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn needed(&self) -> Option<(Seq, Option<Base>, Vec<String>)> {
        let root = self.tail.lock().root.clone();
        Some((root.seq, root.base, root.chunks.iter().map(root::Chunk::name).collect()))
    }
}
