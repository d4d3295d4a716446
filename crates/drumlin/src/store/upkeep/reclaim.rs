//! Reclaim: deletes the objects of blocks that a commit has released. Data is deleted only after the commit that
//! unlinked it; after a crash, the next reclaim continues.
//!
//! Deleted are:
//!
//! - condemned blocks that no reader of an older state in this process pins and no lease keeps. Where others write too,
//!   blocks first rest for `block_grace_micros`, for readers of other processes;
//! - what this process wrote in vain (a write that failed, a row group that another process had rewritten). It was
//!   deleted at once, is remembered, and is deleted again here, since a deletion may fail and a put come late;
//! - what ended sessions and holds left and nothing refers to. Where others write too, their folders are searched until
//!   an hour after their end, for puts that come late;
//! - temporary files of processes that died; in a shared store only by an audit.
//!
//! A shared store is listed as a whole only by an audit. It also finds chunks that end with or before the root's last
//! entry and that the root does not name, since every put that could name one has failed its condition, and catalog
//! snapshots older than the one named.

use std::collections::BTreeSet;
use std::fmt;

use crate::base::planted::{Bug, planted};
use crate::base::{
    BlockId, Error, ErrorKind, Meter, Result, Seq, SessionId, TableId, Task, Timestamp, WarningKind, span,
};
use crate::catalog::{Effect, State};
use crate::log::{Referred, retry_while_moving};
use crate::storage::{DELETE_BATCH, ObjectMeta, Storage, names};
use crate::store::parts::recover;
use crate::store::{HoldInfo, Store};

/// What a reclaim may delete.
#[derive(Clone, Default)]
pub struct ReclaimOptions {
    /// In microseconds: tables dropped more recently stay in the trash and can be restored. Default 0.
    pub grace_micros: u64,
    /// In microseconds: blocks released more recently stay on storage, for readers of other processes. Default: 0 where
    /// no other process writes, else [`crate::store::Options::block_grace_micros`].
    pub block_grace_micros: Option<u64>,
    /// In microseconds, in a shared store: sessions of processes that have not committed for longer are ended, so that what
    /// they left can be swept. A process that is alive continues with a new session. Default: none is ended.
    pub fence_idle_micros: Option<u64>,
    /// In a shared store: also lists all objects, and deletes those that nothing refers to and nothing ever will. Where no
    /// other process writes this is always done.
    pub audit: bool,
    /// Progress in objects, and cancelling.
    pub task: Task,
}

/// Space that a reclaim did not free, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Bytes of tables in the trash, within their grace period.
    pub trash_bytes: u64,
    /// Bytes of blocks that readers of this process still use.
    pub pinned_bytes: u64,
    /// Unused bytes in blocks that are otherwise in use; a checkpoint may repack them.
    pub fragment_bytes: u64,
    /// Bytes of row groups that only versions before the newest, or snapshots, need.
    pub history_bytes: u64,
}

/// What a reclaim did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReclaimReport {
    /// Tables removed from the trash.
    pub tables: u64,
    /// Blocks deleted.
    pub blocks: u64,
    /// Bytes of those blocks.
    pub bytes: u64,
    /// Deleted objects that nothing ever referred to: left by crashes and failures.
    pub orphans: u64,
    /// Bytes of those objects.
    pub orphan_bytes: u64,
    /// Objects that could not be deleted, with the error; they stay listed for the next reclaim. A reclaim that failed
    /// after it had given up tables or deleted objects is listed as `(reclaim)`: the next one continues.
    pub failures: Vec<(String, String)>,
    /// What still holds space.
    pub holding: Holding,
    /// What is kept for other processes: leases, and what is staged for jobs.
    pub holds: Vec<HoldInfo>,
}

impl ReclaimReport {
    /// Whether tables were given up or objects deleted.
    fn did_anything(&self) -> bool {
        self.tables > 0 || self.blocks > 0 || self.orphans > 0
    }
}

impl fmt::Display for ReclaimReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tables given up, {} blocks deleted ({} bytes), {} orphans ({} bytes), {} failures",
            self.tables,
            self.blocks,
            self.bytes,
            self.orphans,
            self.orphan_bytes,
            self.failures.len()
        )?;
        let Holding { trash_bytes, pinned_bytes, fragment_bytes, history_bytes } = self.holding;
        write!(
            f,
            "; still held: trash {trash_bytes}, readers {pinned_bytes}, shared blocks {fragment_bytes}, history {history_bytes}"
        )
    }
}

/// What a report calls the reclaim itself, if it failed before its end.
pub(in crate::store) const UNFINISHED: &str = "(reclaim)";
/// Whether what was written under this number is kept by a hold.
fn spared(state: &State, number: SessionId) -> bool {
    state.holds.is_open(number) && !planted(Bug::SweepHolds)
}

/// Requests under way at a time, between which a caller may cancel.
const DELETES_AHEAD: usize = 16;
/// How long after the end of a session its folder is swept again.
const SWEPT_FOR_MICROS: i64 = 3_600_000_000;

impl Store {
    /// Frees the space of dropped tables, expired versions and rewritten row groups, and sweeps what crashes left.
    ///
    /// # Errors
    /// `Unavailable` if storage cannot be listed or the log not written, `Cancelled`. Objects that cannot be deleted fail nothing: the
    /// report names them, and the next reclaim tries again.
    pub fn reclaim(&self, options: &ReclaimOptions) -> Result<ReclaimReport> {
        self.call()?;
        span!("reclaim");
        let (env, begun) = (&self.env(), self.env().clock.now());
        let one_at_a_time = self.upkeep().lock()?;
        let mut report = ReclaimReport::default();
        let grace = i64::try_from(options.grace_micros).unwrap_or(i64::MAX);
        let grace = if planted(Bug::IgnoreGrace) { 0 } else { grace };
        let now = self.commits().times().age(self.state()?.time);
        let over = move |state: &State| -> Vec<TableId> {
            let over = state
                .trash
                .tables()
                .iter()
                .filter(|(_, trash)| grace == 0 || trash.time.0.saturating_add(grace) <= now.0);
            over.map(|(id, _)| *id).collect()
        };
        let trash = over(&*self.state()?);
        report.tables = trash.len() as u64;
        if planted(Bug::DeleteBeforeUnlink) {
            let state = self.state()?;
            let mut blocks = Vec::new();
            for id in &trash {
                blocks.extend(state.get(*id)?.addresses().map(|address| names::block(address.block)));
            }
            self.delete_objects(&blocks);
        }
        if !trash.is_empty() {
            self.commit_effects(move |state| Ok(vec![Effect::Condemn { tables: over(state) }]))?;
        }
        if let Err(e) = self.free(options, &mut report) {
            // `Unavailable` says that nothing was done, which is no longer true: the next reclaim continues.
            match e.kind() == ErrorKind::Unavailable && report.did_anything() {
                true => report.failures.push((UNFINISHED.to_owned(), e.to_string())),
                false => return Err(e),
            }
        }
        let state = self.state()?;
        report.holding = self.holding(&state)?;
        report.holds = HoldInfo::all(&state);
        drop(one_at_a_time);
        env.metrics.reclaim_micros.observe(env.micros_since(begun));
        env.metrics.reclaimed_bytes.add(report.bytes);
        if let Some((what, why)) = report.failures.first() {
            let failures = report.failures.len();
            env.warn.say(WarningKind::ReclaimIncomplete, || {
                format!("{}: {failures} deletions of a reclaim failed; the first was {what}: {why}", self.uri())
            });
        }
        Ok(report)
    }

    /// Deletes the objects that nothing refers to, and sweeps what crashes left.
    pub(in crate::store) fn free(&self, options: &ReclaimOptions, report: &mut ReclaimReport) -> Result<()> {
        if !self.setting().is_shared() {
            // Where others write too, the log was just looked at.
            self.commits().log().confirm()?;
        }
        self.fence_idle(options)?;
        self.end_silent_holds()?;
        self.delete_condemned(options, report)?;
        self.delete_abandoned(report)?;
        self.commits().newest().forget_inline();
        match self.setting().is_shared() {
            false => {
                self.sweep(&options.task, report)?;
                self.forget_ended()?;
                self.sweep_unfinished(report)
            }
            true => self.sweep_shared(options, report),
        }
    }

    /// Deletes condemned blocks that no reader pins, and records which are gone: one commit for all of them.
    pub(in crate::store) fn delete_condemned(
        &self,
        options: &ReclaimOptions,
        report: &mut ReclaimReport,
    ) -> Result<()> {
        let task = &options.task;
        let state = self.state()?;
        // Readers of states before the commit that released a block may still need it. Pins taken from here on are of
        // `state` or newer, which do not. The commits that released them must be durable before they are deleted.
        if !planted(Bug::SkipSyncBeforeDelete) {
            self.sync()?;
        }
        let rest = match (options.block_grace_micros, self.setting().is_shared()) {
            _ if planted(Bug::IgnoreRest) => 0,
            (Some(rest), _) => rest,
            (None, true) => self.options().block_grace_micros,
            (None, false) => 0,
        };
        let until = match rest {
            0 => Timestamp(i64::MAX),
            rest => {
                // By this process's clock: that of another, years ahead, must not make what was released today look
                // old.
                let now = self.commits().times().age(state.time);
                Timestamp(now.0.saturating_sub(i64::try_from(rest).unwrap_or(i64::MAX)))
            }
        };
        let pinned = self.commits().newest().pins().oldest().filter(|_| !planted(Bug::ReclaimPinned));
        let leased = state.holds.floor().filter(|_| !planted(Bug::ReclaimLeased));
        let pinned = pinned.into_iter().chain(leased).min();
        let free: Vec<(BlockId, u64)> = state.ledger.unneeded(pinned, until).collect();
        let total = free.len() as u64;
        let mut meter = Meter::new(task, &*self.env().clock, total, total);
        let mut gone = Vec::with_capacity(free.len());
        let deleted = free.chunks(DELETE_BATCH * DELETES_AHEAD).try_for_each(|batch| {
            task.cancel.check()?;
            let objects: Vec<String> = batch.iter().map(|(block, _)| names::block(*block)).collect();
            let answers = self.delete_objects(&objects);
            for ((answer, name), (block, bytes)) in answers.into_iter().zip(objects).zip(batch) {
                match answer {
                    Ok(()) => {
                        gone.push(*block);
                        report.blocks += 1;
                        report.bytes += bytes;
                        meter.done.bytes += bytes;
                    }
                    Err(_) if planted(Bug::CrossOffFailed) => gone.push(*block),
                    Err(e) => report.failures.push((name, e.to_string())),
                }
            }
            meter.step(batch.len() as u64, batch.len() as u64)
        });
        // Also for what was done before it was cancelled. After a crash before this, they are only deleted again.
        if !gone.is_empty() {
            self.commit_effects(move |_| Ok(vec![Effect::Reclaimed { blocks: gone.clone() }]))?;
        }
        deleted?;
        meter.step(0, 0)
    }

    /// Deletes objects, once it is certain that it is still this store that has them.
    pub(in crate::store) fn delete_objects(&self, names: &[String]) -> Vec<Result<()>> {
        let again = |e: &Error| Err(Error::new(e.kind(), e.message()));
        match self.commits().log().confirm() {
            Ok(()) => self.storage().delete_many(names),
            Err(e) => names.iter().map(|_| again(&e)).collect(),
        }
    }

    /// Tries again to delete what this process wrote in vain.
    fn delete_abandoned(&self, report: &mut ReclaimReport) -> Result<()> {
        let Some(own) = self.commits().session().numbers() else { return Ok(()) };
        let state = self.state()?;
        let blocks: Vec<BlockId> =
            own.take_abandoned().into_iter().filter(|block| !state.ledger.knows(*block)).collect();
        let names: Vec<String> = blocks.iter().map(|block| names::block(*block)).collect();
        if names.is_empty() {
            return Ok(());
        }
        for ((answer, name), block) in self.delete_objects(&names).into_iter().zip(names).zip(blocks) {
            if let Err(e) = answer {
                own.abandon([block]);
                report.failures.push((name, e.to_string()));
            }
        }
        Ok(())
    }

    /// Ends the sessions of processes that have not committed for long.
    fn fence_idle(&self, options: &ReclaimOptions) -> Result<()> {
        let Some(idle) = options.fence_idle_micros.filter(|_| self.setting().is_shared()) else { return Ok(()) };
        let now = self.commits().times().age(self.state()?.time);
        let own = self.commits().session().id();
        let silent = move |state: &State| -> Vec<SessionId> {
            let before = now.0.saturating_sub(i64::try_from(idle).unwrap_or(i64::MAX));
            let silent = |last: &Timestamp| idle == 0 || last.0 <= before;
            let open = state.sessions.open.iter();
            open.filter(|(session, last)| Some(**session) != own && silent(last)).map(|(session, _)| *session).collect()
        };
        if silent(&*self.state()?).is_empty() {
            return Ok(());
        }
        self.commit_effects(move |state| Ok(vec![Effect::FenceSessions { sessions: silent(state) }]))?;
        Ok(())
    }

    /// In a shared store: deletes what ended sessions left, and, for an audit, whatever else nothing will ever refer to.
    fn sweep_shared(&self, options: &ReclaimOptions, report: &mut ReclaimReport) -> Result<()> {
        let state = self.state()?;
        let mut sessions: Vec<SessionId> = state.sessions.fenced.keys().copied().collect();
        let mut orphans = Vec::new();
        if options.audit {
            let folders = self.storage().list_folders(names::BLOCKS)?;
            let listed = folders.iter().filter_map(|folder| names::parse_session(folder));
            // A session that this state is too old to know has not ended.
            let ended = |session: &SessionId| {
                let open = state.sessions.is_open(*session) && !planted(Bug::SweepOpenSessions);
                *session <= state.sessions.last && !open && !spared(&state, *session)
            };
            sessions = listed.filter(ended).collect();
            orphans = self.stray_log_objects()?;
            // Left by a process that died while it tried the bucket.
            orphans.extend(self.storage().list(names::PROBE)?);
            // A process that waits for one adds it itself.
            orphans.extend(self.storage().list(names::OFFERS)?);
            orphans.extend(self.storage().list(names::ARCHIVE)?);
            orphans.extend(self.storage().unfinished("")?);
        }
        for session in sessions {
            options.task.cancel.check()?;
            orphans.extend(self.stray_blocks(&state, session)?.0);
        }
        self.delete_orphans(&orphans, report);
        // Where folders exist by themselves; one that is written to again is created again.
        let folders = state.sessions.fenced.keys().map(|session| names::session_folder(*session));
        folders.for_each(|folder| drop(self.storage().remove_empty_folder(&folder)));
        // For a while, a folder is searched again for what late puts may still bring.
        let over = state.time.0.saturating_sub(SWEPT_FOR_MICROS);
        let done: Vec<SessionId> =
            state.sessions.fenced.iter().filter(|(_, time)| time.0 <= over).map(|(session, _)| *session).collect();
        if !done.is_empty() && report.failures.is_empty() {
            self.commit_effects(move |_| Ok(vec![Effect::ForgetSessions { sessions: done.clone() }]))?;
        }
        Ok(())
    }

    /// Where no other process writes the log: forgets holds that have ended, since a sweep looks into all folders.
    fn forget_ended(&self) -> Result<()> {
        let ended: Vec<SessionId> = self.state()?.sessions.fenced.keys().copied().collect();
        if !ended.is_empty() {
            self.commit_effects(move |_| Ok(vec![Effect::ForgetSessions { sessions: ended.clone() }]))?;
        }
        Ok(())
    }

    /// Objects in a session's folder that the store does not know, and how many it does know.
    pub(in crate::store) fn stray_blocks(&self, state: &State, session: SessionId) -> Result<(Vec<ObjectMeta>, usize)> {
        let objects = self.storage().list(&names::session_folder(session))?;
        let (strays, known): (Vec<ObjectMeta>, Vec<ObjectMeta>) = objects.into_iter().partition(|object| {
            let name = object.name.rsplit('/').next().unwrap_or_default();
            names::parse_block(session, name).is_none_or(|block| !state.ledger.knows(block))
        });
        Ok((strays, known.len()))
    }

    /// Catalog snapshots and chunks of a shared log that nothing refers to, nor will: their names say that the log is past
    /// them.
    pub(in crate::store) fn stray_log_objects(&self) -> Result<Vec<ObjectMeta>> {
        let storage = &self.storage();
        // Listed first: what is written from now on must not be taken for stray.
        let (chunks, catalogs) = (storage.list(names::LOG)?, storage.list(names::CATALOG)?);
        // Others may replace the snapshot while it is read.
        let (last, base, needed) = retry_while_moving(|| {
            self.refresh()?;
            let Some(Referred { last, base, chunks }) = self.commits().log().referred() else {
                return Ok((Seq(0), None, BTreeSet::new()));
            };
            let needed: BTreeSet<String> = match &base {
                Some(base) => {
                    let index = recover::read_index(storage.as_ref(), base)?;
                    index.objects().chain([base.seq]).map(names::catalog).chain(chunks).collect()
                }
                None => chunks.into_iter().collect(),
            };
            Ok((last, base, needed))
        })?;
        // A temporary file for one of them is as useless as the object would be.
        let own = |object: &ObjectMeta| {
            let name = object.name.rsplit('/').next().unwrap_or_default();
            names::parse_temporary(name).unwrap_or(name).to_owned()
        };
        let old_chunk = |object: &ObjectMeta| names::parse_log_chunk(&own(object)).is_some_and(|seq| seq <= last);
        let before = base.map_or(Seq(0), |base| base.seq);
        let old_catalog = |object: &ObjectMeta| names::parse_catalog(&own(object)).is_some_and(|seq| seq < before);
        let mut stray: Vec<ObjectMeta> = chunks.into_iter().filter(old_chunk).collect();
        stray.extend(catalogs.into_iter().filter(old_catalog));
        stray.retain(|object| !needed.contains(&object.name));
        Ok(stray)
    }

    fn delete_orphans(&self, orphans: &[ObjectMeta], report: &mut ReclaimReport) {
        let names: Vec<String> = orphans.iter().map(|object| object.name.clone()).collect();
        if names.is_empty() {
            return;
        }
        for (answer, object) in self.delete_objects(&names).into_iter().zip(orphans) {
            match answer {
                Ok(()) => {
                    report.orphans += 1;
                    report.orphan_bytes += object.bytes;
                }
                Err(e) => report.failures.push((object.name.clone(), e.to_string())),
            }
        }
    }

    /// Where no other process writes: what unfinished puts have left among the objects and the log's segments, this
    /// session's too. `look` is called while no segment is being made. Needs the maintenance lock.
    pub(in crate::store) fn unfinished<T>(&self, look: impl FnOnce(Vec<ObjectMeta>) -> T) -> Result<T> {
        let storage = &self.storage();
        let own = self.commits().session().id().map(names::session_folder);
        let mut found = Vec::new();
        for folder in ["", names::CATALOG].into_iter().chain(own.as_deref()) {
            found.extend(storage.unfinished(folder)?);
        }
        let _turn = self.commits().turn()?;
        found.extend(storage.unfinished(names::LOG)?);
        Ok(look(found))
    }

    fn sweep_unfinished(&self, report: &mut ReclaimReport) -> Result<()> {
        self.unfinished(|found| self.delete_orphans(&found, report))
    }

    /// Deletes objects of ended sessions that nothing refers to. Lists folders; what a listing misses waits for the
    /// next time.
    fn sweep(&self, task: &Task, report: &mut ReclaimReport) -> Result<()> {
        let storage = &self.storage();
        let folders = storage.list_folders(names::BLOCKS)?;
        if folders.is_empty() {
            return Ok(());
        }
        // Registering this session fences all before it.
        let own = self.block_numbers()?.session();
        let state = self.state()?;
        for folder in folders {
            let Some(session) = names::parse_session(&folder) else { continue };
            if session == own || spared(&state, session) {
                continue;
            }
            task.cancel.check()?;
            let folder = names::session_folder(session);
            let (orphans, known) = self.stray_blocks(&state, session)?;
            self.delete_orphans(&orphans, report);
            if known == 0 {
                storage.remove_empty_folder(&folder)?;
            }
        }
        Ok(())
    }

    /// What holds space beyond the newest versions.
    pub(in crate::store) fn holding(&self, state: &State) -> Result<Holding> {
        let mut holding = Holding {
            pinned_bytes: state.ledger.condemned().map(|(_, condemned)| condemned.bytes).sum(),
            fragment_bytes: state.ledger.blocks().map(|(_, used)| used.bytes.saturating_sub(used.live_bytes)).sum(),
            ..Holding::default()
        };
        for id in state.trash.tables().keys() {
            holding.trash_bytes += state.table(*id)?.map_or(0, |table| table.bytes());
        }
        holding.history_bytes = state.history_bytes()?;
        Ok(holding)
    }
}
