//! What a replica keeps of its past, so that earlier commits can be restored from it.
//!
//! The log of a replica reaches back to its newest catalog snapshot. When that is replaced, the root of before is kept, with the
//! older snapshot, its chunks, and the blocks that have left since: together they lead to each commit in between. They go once they
//! are older than the replica keeps them, the oldest first, and all together when rows are erased at the source.
//!
//! A block that the source has deleted is kept as long as some state of the kept past has it: if it was released after the
//! first of them.

use std::collections::BTreeSet;

use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Env, Error, ErrorKind, Pool, Result, Seq, Timestamp};
use crate::catalog::{Effect, State};
use crate::log::{ArchivedLog, Entry, Opened, ReplicaLog};
use crate::storage::{Storage, WriteMode, names};
use crate::store::parts::recover::{self, Catalog};

/// What is kept, the oldest first.
#[derive(Default)]
pub(super) struct KeptPast {
    /// How long, in microseconds; 0: nothing is kept.
    keep_micros: u64,
    /// The roots that were replaced: the last commit that each leads to, and when it was.
    roots: Vec<(Seq, Timestamp, String)>,
    /// The first state that is kept.
    first: Seq,
    /// Blocks that some state since the catalog snapshot has, and the newest no longer.
    left: BTreeSet<BlockId>,
}

impl KeptPast {
    /// What is there of a replica whose log holds `opened`, which leads from `catalog` to `state`; with how long it was, and is to be kept.
    pub fn open(
        storage: &dyn Storage,
        (before, keep_micros): (u64, u64),
        opened: &Opened,
        catalog: Option<&Catalog>,
        state: &State,
    ) -> Result<Self> {
        let mut past = Self { keep_micros, roots: archived_roots(storage)?, ..Self::default() };
        past.first = match past.roots.first() {
            Some((_, _, name)) => read_root(storage, name)?.map_or(Seq(u64::MAX), |root| root.first()),
            None => opened.first(),
        };
        if before.max(keep_micros) > 0 {
            let base = catalog.map(|catalog| catalog.state.ledger.stored().map(|(block, _)| block));
            past.left.extend(base.into_iter().flatten());
            let since = opened.first();
            for entry in opened.entries.iter().filter(|entry| entry.seq > since) {
                past.left.extend(added_blocks(entry)?);
            }
            past.left.retain(|block| !state.ledger.is_stored(*block));
        }
        Ok(past)
    }

    /// Whether there is something of before rows were erased by the commit `erased`.
    pub fn reaches_before(&self, erased: Seq) -> bool {
        !self.roots.is_empty() && self.first < erased && !planted(Bug::KeepErased)
    }

    /// Whether anything is to be kept.
    pub fn keeps(&self) -> bool {
        self.keep_micros > 0
    }

    /// The replica comes from the state `before` to `next`; returns the blocks that nothing needs any more.
    pub fn moved(&mut self, before: &State, next: &State) -> Vec<BlockId> {
        let gone = next.ledger.forgotten_since(&before.ledger);
        if !self.keeps() {
            return gone;
        }
        self.leaves(before, next);
        let kept = |block: &BlockId| before.ledger.condemned_at(*block).is_none_or(|seq| seq > self.first);
        gone.into_iter().filter(|block| !kept(block)).collect()
    }

    /// Notes which blocks leave on the way from one state to another.
    pub fn leaves(&mut self, before: &State, next: &State) {
        if self.keeps() {
            self.left.extend(next.ledger.left_since(&before.ledger));
        }
    }

    /// Keeps the root, which is about to be replaced.
    pub fn add(&mut self, storage: &dyn Storage, env: &Env, log: &ReplicaLog, catalog: Option<&Catalog>) -> Result<()> {
        let (last, now) = (log.span().1, env.clock.now());
        let name = names::archived(last, now, env.entropy.next()?);
        let catalogs = catalog.map(|catalog| catalog.index.objects().chain([catalog.base.seq]).collect());
        let left = self.left.iter().copied().collect();
        let bytes = log.archived(catalogs.unwrap_or_default(), left).encode(&name)?;
        storage.put(&name, &[bytes.into()], WriteMode::Create)?;
        self.roots.push((last, now, name));
        Ok(())
    }

    /// The log begins with another catalog snapshot now, that of `first`.
    pub fn begins(&mut self, first: Seq) {
        self.left.clear();
        if self.roots.is_empty() {
            self.first = first;
        }
    }

    /// Deletes what is older than it is kept.
    pub fn trim(
        &mut self,
        storage: &dyn Storage,
        env: &Env,
        log: &ReplicaLog,
        (state, catalog): (&State, Option<&Catalog>),
    ) -> Result<()> {
        let keep = i64::try_from(self.keep_micros).unwrap_or(i64::MAX);
        let until = env.clock.now().0.saturating_sub(keep);
        let due = |(_, at, _): &(Seq, Timestamp, String), keeps: bool| !keeps || at.0 < until;
        if self.roots.first().is_some_and(|root| due(root, self.keeps())) && !log.is_newest()? {
            return Err(Error::conflict(
                "another process brings commits over to this replica now; this one has stopped",
            ));
        }
        if !self.keeps() && !self.left.is_empty() {
            let left = std::mem::take(&mut self.left).into_iter();
            log.delete(&left.filter(|block| !state.ledger.knows(*block)).map(names::block).collect::<Vec<_>>());
        }
        while let Some(root) = self.roots.first()
            && due(root, self.keeps())
        {
            let name = &root.2;
            let (old, next) = (read_root(storage, name)?, self.roots.get(1));
            let next = next.map(|(_, _, name)| read_root(storage, name)).transpose()?.flatten();
            // The record goes first: without it, the rest is what a killed process has left.
            log.delete(std::slice::from_ref(name));
            if let Some(old) = old {
                let blocks = |root: &ArchivedLog| root.left().iter().copied().map(names::block).collect::<Vec<_>>();
                let mut needed: BTreeSet<String> = needed(log, catalog);
                needed.extend(next.iter().flat_map(ArchivedLog::names));
                needed.extend(next.iter().flat_map(blocks));
                let known = |block: &&BlockId| state.ledger.knows(**block) || self.left.contains(*block);
                needed.extend(old.left().iter().filter(known).copied().map(names::block));
                let gone: Vec<String> = old.names().chain(blocks(&old)).filter(|name| !needed.contains(name)).collect();
                log.delete(&gone);
            }
            self.roots.remove(0);
            let base = log.span().0;
            self.first = match (&next, self.roots.first()) {
                (Some(next), _) => next.first(),
                (None, Some(_)) => self.first,
                (None, None) => base,
            };
        }
        Ok(())
    }

    /// Rows were erased: deletes everything that is kept, but not what `state` has. The log begins with the state `first` now.
    pub fn clear(
        &mut self,
        storage: &dyn Storage,
        log: &ReplicaLog,
        (state, catalog): (&State, Option<&Catalog>),
        first: Seq,
    ) -> Result<()> {
        if planted(Bug::KeepErased) {
            return Ok(());
        }
        let needed = needed(log, catalog);
        let mut gone: BTreeSet<String> = BTreeSet::new();
        let mut blocks = std::mem::take(&mut self.left);
        for (_, _, name) in &self.roots {
            if let Some(root) = read_root(storage, name)? {
                gone.extend(root.names().filter(|name| !needed.contains(name)));
                blocks.extend(root.left());
            }
        }
        let records: Vec<String> = self.roots.drain(..).map(|(_, _, name)| name).collect();
        log.delete(&records);
        gone.extend(blocks.into_iter().filter(|block| !state.ledger.knows(*block)).map(names::block));
        log.delete(&gone.into_iter().collect::<Vec<_>>());
        self.first = first;
        Ok(())
    }

    /// All objects that are kept, with those that name them.
    pub fn names(&self, storage: &dyn Storage) -> Result<BTreeSet<String>> {
        let mut kept: BTreeSet<String> = self.left.iter().copied().map(names::block).collect();
        for (_, _, name) in &self.roots {
            if let Some(root) = read_root(storage, name)? {
                kept.extend(root.names());
                kept.extend(root.left().iter().copied().map(names::block));
            }
            kept.insert(name.clone());
        }
        Ok(kept)
    }
}

/// What the log of a replica needs.
fn needed(log: &ReplicaLog, catalog: Option<&Catalog>) -> BTreeSet<String> {
    log.chunks().chain(catalog.into_iter().flat_map(Catalog::names)).collect()
}

/// The blocks that an entry adds.
pub(super) fn added_blocks(entry: &Entry) -> Result<Vec<BlockId>> {
    let transactions = recover::transactions(entry)?;
    let effects = transactions.iter().flat_map(|transaction| &transaction.effects);
    let added = effects.filter_map(|effect| match effect {
        Effect::AddBlocks { blocks } => Some(blocks.iter().map(|(block, _)| *block)),
        _ => None,
    });
    Ok(added.flatten().collect())
}

/// The roots that a replica has kept, the oldest first.
fn archived_roots(storage: &dyn Storage) -> Result<Vec<(Seq, Timestamp, String)>> {
    let objects = storage.list(names::ARCHIVE)?;
    let mut roots: Vec<_> = objects
        .into_iter()
        .filter_map(|object| {
            let (last, at) = names::parse_archived(object.name.rsplit('/').next()?)?;
            Some((last, at, object.name))
        })
        .collect();
    roots.sort();
    Ok(roots)
}

/// One of them; `None` if it is gone.
fn read_root(storage: &dyn Storage, name: &str) -> Result<Option<ArchivedLog>> {
    match storage.get(name) {
        Ok(bytes) => ArchivedLog::decode(name, &bytes).map(Some),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// What led to the states that a replica keeps of its past, the newest first.
pub(super) struct ArchivedRoots<'a> {
    storage: &'a dyn Storage,
    pool: &'a Pool,
    roots: Vec<(Seq, Timestamp, String)>,
}

impl<'a> ArchivedRoots<'a> {
    pub fn open(storage: &'a dyn Storage, pool: &'a Pool) -> Result<Self> {
        Ok(Self { storage, pool, roots: archived_roots(storage)? })
    }
}

impl Iterator for ArchivedRoots<'_> {
    type Item = Result<Opened>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((_, _, name)) = self.roots.pop() {
            let root = read_root(self.storage, &name).transpose();
            let opened = root.map(|root| root?.opened(self.storage, self.pool).map_err(|e| e.context(&name)));
            if opened.is_some() {
                return opened;
            }
        }
        None
    }
}

/// Deletes the records of what was kept, of a replica that becomes a store of its own: the rest is what an audit finds.
pub(super) fn forget(storage: &dyn Storage) -> Result<()> {
    let records: Vec<String> = archived_roots(storage)?.into_iter().map(|(_, _, name)| name).collect();
    match &records[..] {
        [] => Ok(()),
        records => storage.delete_many(records).into_iter().collect(),
    }
}
