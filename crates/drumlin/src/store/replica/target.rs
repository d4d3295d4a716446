//! A replica as the process that writes it has it: its log, the state after the last entry of that, and what lies there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::archive::KeptPast;
use super::blocks::{Copying, check_blocks, copy_blocks};
use super::place::{SourceStore, StorePlace};
use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Env, Error, ErrorKind, Result, Seq};
use crate::catalog::State;
use crate::log::{Entry, Opened, ReplicaLog, Role};
use crate::storage::{InlineStorage, Storage, names};
use crate::store::Options;
use crate::store::open::opening::check_unused;
use crate::store::open::probe::probe;
use crate::store::parts::recover::{self, Catalog};

/// A catalog snapshot is written once the log has N bytes; the second is for replicas that keep their past, which are opened seldom.
const LOG_BYTES_MAX: u64 = 4 << 20;
const LOG_BYTES_MAX_KEPT: u64 = 16 << 20;
/// How often it is tried to take a replica over, because the process that has it is writing.
const TAKE_TRIES: u32 = 20;

/// A replica that this process writes.
pub(super) struct Replica {
    pub env: Env,
    pub storage: Arc<InlineStorage>,
    pub log: ReplicaLog,
    pub state: State,
    place: StorePlace,
    retry: u64,
    catalog: Option<Catalog>,
    past: KeptPast,
    /// As in the options.
    log_bytes_max: u64,
    /// The blocks that were there when it was taken over; `None` once it is up to date.
    present: Option<BTreeMap<BlockId, u64>>,
    /// Blocks that no state of the replica had yet, and which were read here.
    checked: BTreeSet<BlockId>,
}

/// What a replica is to be.
#[derive(Clone, Debug)]
pub(super) struct ReplicaRole {
    /// How long what leaves it is kept; `None`: as before, or not at all.
    pub keep_micros: Option<u64>,
    /// See [`Role::Replica`].
    pub until: Option<Seq>,
}

impl Replica {
    /// Takes over the replica of `source` at a place, which is made if nothing is there.
    pub fn take(
        place: &StorePlace,
        env: &Env,
        (uri, options): (&str, &Options),
        source: &SourceStore,
        wanted: &ReplicaRole,
    ) -> Result<Self> {
        let (storage, retry) = (place.storage(env), options.retry_micros);
        let own = || Error::already_exists(format!("{uri} is a store of its own; use an empty place"));
        if let Some(disk) = place.single()?
            && disk.identity(names::FORMAT)?.is_some()
        {
            return Err(own());
        }
        let ReplicaRole { keep_micros, until } = *wanted;
        let owner = env.entropy.next()?;
        let role = |kept, by| {
            let keep_micros = keep_micros.unwrap_or(kept);
            Role::Replica { of: source.uri.clone(), owner, keep_micros, until, by }
        };
        let open = || ReplicaLog::open(storage.clone(), env.clone(), retry);
        let mut tries = 0;
        let (log, before) = loop {
            let mut log = match open() {
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    check_unused(&*storage, uri)?;
                    probe(&storage, env, retry)?;
                    match ReplicaLog::create(storage.clone(), env.clone(), retry, source.origin, role(0, None)) {
                        Err(e) if e.kind() == ErrorKind::AlreadyExists => open()?,
                        other => other?,
                    }
                }
                other => other?,
            };
            let there = log.origin().store;
            let (kept, by) = match log.role() {
                Role::Replica { until: of, .. } if of.is_some() != until.is_some() => {
                    let what = if of.is_some() {
                        "is being made as a copy"
                    } else {
                        "is a replica that follows another store"
                    };
                    return Err(Error::already_exists(format!("{uri} {what}; use another place")));
                }
                Role::Replica { of, .. } if there != source.origin.store => {
                    return Err(Error::invalid(format!(
                        "{uri} is a replica of store {there:032x} (at {of}), but {} is store {:032x}; use another place",
                        source.uri, source.origin.store
                    )));
                }
                Role::Replica { keep_micros, by, .. } => (*keep_micros, *by),
                _ => return Err(own()),
            };
            if planted(Bug::NoOwner) {
                break (log, kept);
            }
            match log.set_role(role(kept, by), log.origin()) {
                // The process that has kept it until now was writing; it is about to notice.
                Err(e) if e.kind() == ErrorKind::Conflict && tries < TAKE_TRIES => tries += 1,
                other => break other.map(|()| (log, kept))?,
            }
        };
        let kept = keep_micros.unwrap_or(before);
        // From here on, nothing that another process still writes is named by the root.
        let replay = || {
            let opened = log.read()?;
            let (state, catalog) = recover::replay(&*storage, &opened)?;
            let past = KeptPast::open(&*storage, (before, kept), &opened, catalog.as_ref(), &state)?;
            Ok((state, catalog, past))
        };
        let (state, catalog, past) = replay().map_err(|e| log.judge(e))?;
        let mut present = BTreeMap::new();
        for folder in storage.list_folders(names::BLOCKS)? {
            let Some(session) = names::parse_session(&folder) else { continue };
            for object in storage.list(&names::session_folder(session))? {
                let name = object.name.rsplit('/').next().unwrap_or_default();
                present.extend(names::parse_block(session, name).map(|block| (block, object.bytes)));
            }
        }
        let (env, place, log_bytes_max) = (env.clone(), place.clone(), options.checkpoint_log_bytes);
        Ok(Self {
            env,
            storage,
            log,
            state,
            place,
            retry,
            catalog,
            past,
            log_bytes_max,
            present: Some(present),
            checked: BTreeSet::new(),
        })
    }

    /// Whether it keeps its past.
    pub fn keeps(&self) -> bool {
        self.past.keeps()
    }

    /// The last commit that it has.
    pub fn seq(&self) -> Seq {
        self.state.seq
    }

    /// Adds entries that lead to the state `next`, whose blocks are here.
    pub fn extend(&mut self, entries: &[Entry], next: State) -> Result<()> {
        self.log.extend(entries)?;
        self.moved_to(next);
        let most = if self.past.keeps() { LOG_BYTES_MAX_KEPT } else { LOG_BYTES_MAX };
        if self.log.bytes() > most.min(self.log_bytes_max) {
            self.write_catalog()?;
        }
        Ok(())
    }

    /// Copies the blocks that `next` needs and the replica lacks; returns those that are gone at the source.
    pub fn copy_lacking(&self, source: &SourceStore, next: &State, copying: &mut Copying<'_>) -> Result<Vec<BlockId>> {
        let places = (&*source.storage, &self.storage);
        copy_blocks(places, &self.env, next, &next.ledger.stored_since(&self.state.ledger), copying)
    }

    /// The same where nothing is known of what lies between the two states, or where a copy was cut off: what is here is not copied
    /// again, but read if no state of the replica had it; or in any case, unless it is `proven` that the one continues the other.
    pub fn copy_whole(
        &mut self,
        source: &SourceStore,
        next: &State,
        proven: bool,
        copying: &mut Copying<'_>,
    ) -> Result<Vec<BlockId>> {
        let none = BTreeMap::new();
        let present = self.present.as_ref().unwrap_or(&none);
        let known = |block: BlockId| self.state.ledger.knows(block);
        let here = |block: BlockId, bytes: u64| match &self.present {
            Some(present) => present.get(&block) == Some(&bytes),
            // It has been this process's since.
            None => known(block) || self.checked.contains(&block),
        };
        let unread: BTreeSet<BlockId> = next
            .ledger
            .stored()
            .filter(|(block, bytes)| {
                here(*block, *bytes) && !(proven && known(*block)) && !self.checked.contains(block)
            })
            .map(|(block, _)| block)
            .collect();
        let bad: BTreeSet<BlockId> =
            check_blocks(&self.storage, &self.env, next, &unread)?.into_iter().map(|(block, _)| block).collect();
        let cut_off: Vec<String> = next
            .ledger
            .stored()
            .filter(|(block, bytes)| present.get(block).is_some_and(|there| there != bytes))
            .map(|(block, _)| names::block(block))
            .collect();
        self.log.delete(&cut_off);
        let lacking: Vec<(BlockId, u64)> =
            next.ledger.stored().filter(|(block, bytes)| bad.contains(block) || !here(*block, *bytes)).collect();
        let gone = copy_blocks((&*source.storage, &self.storage), &self.env, next, &lacking, copying)?;
        // The next look finds them here.
        self.checked.extend(unread.into_iter().filter(|block| !bad.contains(block)));
        for (block, bytes) in lacking.into_iter().filter(|(block, _)| !gone.contains(block)) {
            self.checked.insert(block);
            if let Some(present) = &mut self.present {
                present.insert(block, bytes);
            }
        }
        Ok(gone)
    }

    /// Takes over the state `next`, whose blocks are here, as a whole: `opened` led to it.
    pub fn restart(&mut self, opened: Opened, next: State) -> Result<()> {
        let (base, catalog) = match next.seq {
            Seq(0) => (None, None),
            _ => {
                let waiting = Some((&self.env, self.retry));
                let (base, catalog, packed) = recover::write_catalog(&*self.storage, &next, None, None, waiting)?;
                (Some(base), Some((catalog, packed)))
            }
        };
        let from = base.map_or(Seq(1), |base| base.from);
        let entries = opened.entries.into_iter().filter(|entry| entry.seq >= from && entry.seq <= next.seq).collect();
        let origin = self.log.origin();
        // The older root has what leaves on the way.
        self.past.leaves(&self.state, &next);
        let keeps = self.keep_root(next.erased)?;
        let gone = self.log.restart(Opened { base, entries, origin, lossy: false }, next.entry);
        let gone = gone.inspect_err(|e| self.unnamed(e, next.seq))?;
        let written = next.clone();
        self.moved_to(next);
        if let Some((catalog, packed)) = catalog {
            self.state = self.state.with_pages(&written, &packed);
            self.begin_with(catalog, gone, keeps)?;
        }
        Ok(())
    }

    /// Writes a catalog snapshot, and releases the entries that it holds.
    fn write_catalog(&mut self) -> Result<()> {
        let waiting = Some((&self.env, self.retry));
        // After rows were erased, nothing of the older one is used.
        let before = self.catalog.as_ref().filter(|before| before.base.seq >= self.state.erased);
        let (base, catalog, packed) = match recover::write_catalog(&*self.storage, &self.state, before, None, waiting) {
            // An earlier process wrote it, and could not name it: the next commit has another name.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(()),
            other => other?,
        };
        let keeps = self.keep_root(self.state.erased)?;
        let erased = self.state.erased > self.log.span().0;
        let gone = if erased { self.log.rebase_whole(base) } else { self.log.rebase(base) };
        let gone = gone.inspect_err(|e| self.unnamed(e, base.seq))?;
        self.state = self.state.with_pages(&self.state, &packed);
        self.begin_with(catalog, gone, keeps)
    }

    /// The catalog snapshot of `seq` could not be named. If the replica was promoted, it would make the root there look old; otherwise the
    /// process that has the replica now may have written the same, and names it.
    fn unnamed(&self, e: &Error, seq: Seq) {
        let open = || ReplicaLog::open(self.storage.clone(), self.env.clone(), self.retry);
        let promoted =
            || open().is_ok_and(|there| !matches!(there.role(), Role::Replica { .. }) && there.span().1 < seq);
        if e.kind() == ErrorKind::Conflict && promoted() {
            self.log.delete(&[names::catalog(seq)]);
        }
    }

    /// Keeps the root, which is about to be replaced, if it is to be kept; rows were erased last by the commit `erased`.
    fn keep_root(&mut self, erased: Seq) -> Result<bool> {
        let (first, last) = self.log.span();
        let keeps = self.past.keeps() && last > Seq(0) && (erased <= first || planted(Bug::KeepErased));
        if keeps {
            self.past.add(&*self.storage, &self.env, &self.log, self.catalog.as_ref())?;
        }
        Ok(keeps)
    }

    /// The log begins with another catalog snapshot now, and no longer needs the objects `gone`.
    fn begin_with(&mut self, catalog: Catalog, mut gone: Vec<String>, keeps: bool) -> Result<()> {
        let old = self.catalog.replace(catalog);
        let catalog = self.catalog.as_ref();
        let first = self.log.span().0;
        if !keeps {
            let needed: BTreeSet<String> = catalog.into_iter().flat_map(Catalog::names).collect();
            gone.extend(old.iter().flat_map(Catalog::names).filter(|name| !needed.contains(name)));
            self.log.delete(&gone);
            self.past.clear(&*self.storage, &self.log, (&self.state, catalog), first)?;
        }
        self.past.begins(first);
        Ok(())
    }

    /// The log leads to `next` now: what only earlier states needed is deleted, unless it is kept.
    fn moved_to(&mut self, next: State) {
        self.checked.clear();
        let gone: Vec<String> = self.past.moved(&self.state, &next).into_iter().map(names::block).collect();
        self.state = next;
        self.log.delete(&gone);
    }

    /// Once the replica is up to date: what was erased at the source goes here, too, and so does what is older than it is kept.
    pub fn tidy(&mut self) -> Result<()> {
        self.log.delete_rest();
        let first = self.log.span().0;
        if self.state.erased > first {
            self.write_catalog()?;
        } else if self.past.reaches_before(self.state.erased) {
            // A call that was cut off has not come to that.
            self.past.clear(&*self.storage, &self.log, (&self.state, self.catalog.as_ref()), first)?;
        }
        self.past.trim(&*self.storage, &self.env, &self.log, (&self.state, self.catalog.as_ref()))
    }

    /// The replica is up to date: deletes what processes that were cut off have left, which has served until now.
    ///
    /// What is stray to this process may be what the next one needs, which finds it there. So that must not begin in between. In a
    /// folder the lock of the root keeps it out; in a bucket nothing does, and the caller must say that there is no other.
    pub fn sweep(&mut self, alone: bool) -> Result<()> {
        let Some(present) = self.present.take() else { return Ok(()) };
        let _root = match &self.place {
            StorePlace::Folder(disk) => Some(disk.wait_lock(names::ROOT_LOCK)?),
            StorePlace::Bucket(_) if !alone => return Ok(()),
            StorePlace::Bucket(_) => None,
        };
        if !self.log.is_newest()? && !planted(Bug::NoOwner) {
            // Another process has begun since.
            return Ok(());
        }
        let mut named: BTreeSet<String> =
            self.log.chunks().chain(self.catalog.iter().flat_map(Catalog::names)).collect();
        named.extend(self.past.names(&*self.storage)?);
        let mut stray: Vec<String> =
            present.into_keys().filter(|block| !self.state.ledger.knows(*block)).map(names::block).collect();
        for folder in [names::LOG, names::CATALOG] {
            stray.extend(self.storage.list(folder)?.into_iter().map(|object| object.name));
        }
        // What is not finished: this process writes nothing now, and of the root's files, the lock says so of others.
        let unfinished = |name: &str| names::parse_temporary(name.rsplit('/').next().unwrap_or_default()).is_some();
        for folder in ["", names::LOG, names::CATALOG, names::ARCHIVE] {
            let objects = self.storage.list(folder)?.into_iter().map(|object| object.name);
            stray.extend(objects.filter(|name| unfinished(name)));
        }
        if matches!(self.place, StorePlace::Folder(_)) {
            for folder in self.storage.list_folders(names::BLOCKS)? {
                let Some(session) = names::parse_session(&folder) else { continue };
                let objects = self.storage.list(&names::session_folder(session))?.into_iter().map(|object| object.name);
                stray.extend(objects.filter(|name| unfinished(name)));
            }
        }
        stray.retain(|name| !named.contains(name));
        self.log.delete(&stray);
        Ok(())
    }
}
