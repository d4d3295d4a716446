//! Checkpoint: expires versions, vacuums all tables by plan, in parallel, and writes a catalog snapshot up to which the
//! log is cut.
//!
//! Reads and writes continue during a checkpoint. A rewrite is void if an input is gone by its commit; rows deleted
//! while it ran are carried over. A failed or cancelled checkpoint leaves the store as it was.
//!
//! In a store that others write too, a catalog snapshot is named by its commit, written only if none is there, and
//! named by the root only if the root still names the one that it was made from. So two processes may checkpoint at
//! once: one of them does it for nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::checkpoint_report::{CheckpointOptions, CheckpointReport};
use super::plans::{plan_repack, plans};
use super::vacuum::named;
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, ErrorKind, Result, Seq, Task, WarningKind, span};
use crate::catalog::{Effect, Packed, State};
use crate::storage::{Storage, names};
use crate::store::Store;
use crate::store::change::expire::note_expiring;
use crate::store::parts::recover::Catalog;
use crate::store::parts::{Maintenance, recover};
use crate::table::RunOptions;

/// A checkpoint that takes this long is worth a warning.
const SLOW_MICROS: u64 = 60_000_000;

impl Store {
    /// Removes deleted rows from storage, merges small row groups, and shortens the log. The space is freed by
    /// [`Store::reclaim`]. A second checkpoint at the same time waits for the first.
    ///
    /// # Errors
    /// `Unavailable` if storage fails, `Cancelled`; what was committed before that stays, and the message says so. A table or block that
    /// cannot be rewritten fails nothing: the report names it.
    pub fn checkpoint(&self, options: &CheckpointOptions) -> Result<CheckpointReport> {
        self.call()?;
        let mut maintenance = match self.is_handle() {
            true => self.upkeep().lock()?,
            // An automatic checkpoint does not wait: the running one will be done before the log has grown much more.
            false => match self.upkeep().try_lock() {
                Some(maintenance) => maintenance,
                None => return Ok(CheckpointReport::default()),
            },
        };
        span!("checkpoint");
        let (env, begun) = (&self.env(), self.env().clock.now());
        self.end_due()?;
        let mut report = CheckpointReport::default();
        self.do_checkpoint(options, &mut maintenance, &mut report).map_err(|e| match e.kind() {
            // `Unavailable` says that nothing was done, which is not so if a commit was made on the way.
            ErrorKind::Unavailable if report.did_anything() => {
                e.context(format!("the checkpoint was done in part ({report}) before it failed"))
            }
            _ => e,
        })?;
        drop(maintenance);
        let micros = env.micros_since(begun);
        env.metrics.checkpoint_micros.observe(micros);
        if micros >= SLOW_MICROS {
            let seconds = micros / 1_000_000;
            env.warn.say(WarningKind::SlowCheckpoint, || {
                format!("{}: a checkpoint took {seconds} seconds: {report}", self.uri())
            });
        }
        Ok(report)
    }

    fn do_checkpoint(
        &self,
        options: &CheckpointOptions,
        maintenance: &mut Maintenance,
        report: &mut CheckpointReport,
    ) -> Result<()> {
        let since = self.commits().writable_log()?.base().map(|base| base.seq);
        self.delete_expired(maintenance, report, &options.task.cancel)?;
        report.versions_expired = self.number_and_expire()?;
        self.flush(&options.task, report)?;
        self.while_reclaimed(|| {
            let (state, _pin) = self.pinned_state()?;
            let mut plans = plans(&state, &options.plan)?;
            for (id, plan) in &mut plans {
                plan.windows.retain(|window| !maintenance.unmerged.contains(&named(*id, window)));
            }
            report.groups_before = state.totals().groups;
            report.groups_after = report.groups_before;
            let repack = plan_repack(&state, &plans, &options.plan, self.options().block_bytes)?;
            if !repack.blocks.is_empty() || plans.iter().any(|(_, plan)| !plan.windows.is_empty()) {
                let unmerged = self.vacuum(&state, plans, &repack, &options.task, report)?;
                maintenance.unmerged.extend(unmerged);
            }
            Ok(())
        })?;
        self.put_in_order(options, since, report)?;
        let (rows_min, without_gone) = (options.index_rows_min, options.plan.purges());
        let runs = RunOptions { rows_min, without_gone, ..self.run_options() };
        self.upkeep().set_index_rows_seen(self.current()?.index_rows());
        let made = report.index_runs;
        self.make_runs(None, &runs, &mut maintenance.uncomputable, &options.task, report)?;
        if without_gone && report.index_runs > made {
            // What they took the place of had values of rows that are gone.
            self.while_reclaimed(|| {
                let (state, _pin) = self.pinned_state()?;
                let repack = plan_repack(&state, &[], &options.plan, self.options().block_bytes)?;
                match repack.blocks.is_empty() {
                    true => Ok(()),
                    false => self.vacuum(&state, Vec::new(), &repack, &options.task, report).map(drop),
                }
            })?;
        }
        self.write_catalog(maintenance, false)?;
        self.commits().newest().forget_inline();
        Ok(())
    }

    /// Numbers versions for the rows written by key that have none, and removes the versions that retention does not
    /// keep, in one commit; returns how many versions were removed.
    pub(in crate::store) fn number_and_expire(&self) -> Result<u64> {
        let before = self.state()?;
        let now = self.commits().times().age(before.time);
        let effects = move |state: &State| -> Result<Vec<Effect>> {
            let active = state.open_tables().filter(|table| table.active().is_some());
            let freeze = active.map(|table| Effect::FreezeRows { table: table.id });
            let expired = state.expired(now)?.into_iter();
            Ok(freeze.chain(expired.map(|(table, versions)| Effect::DeleteVersions { table, versions })).collect())
        };
        let first = effects(&before)?;
        if first.is_empty() {
            return Ok(0);
        }
        let frozen = |effect: &&Effect| matches!(effect, Effect::FreezeRows { .. });
        let count = |state: &State| state.totals().versions;
        let numbered = first.iter().filter(frozen).count() as u64;
        let after = self.commit_effects(effects)?;
        Ok((count(&before) + numbered).saturating_sub(count(&after)))
    }

    /// From now on keeps the tables that are as they were in `written` in the pages that were written of it.
    fn take_pages(&self, written: &State, pages: &Arc<Packed>) {
        // A call that is to stop leaves it as it is.
        let Ok(_turn) = self.commits().turn() else { return };
        let newest = self.commits().newest();
        let state = Arc::new(newest.state().with_pages(written, pages));
        drop(newest.replace(state.clone()));
        self.upkeep().set_tables_kept(state.open_tables_len());
    }

    /// Writes a catalog snapshot of the newest state, names it in the log, and removes what it replaces. If `whole`, no part of
    /// an earlier one is kept.
    pub(in crate::store) fn write_catalog(&self, maintenance: &mut Maintenance, whole: bool) -> Result<()> {
        let log = self.commits().writable_log()?;
        let whole = whole || self.upkeep().is_catalog_damaged();
        if whole && log.base().is_some_and(|base| self.seq().is_ok_and(|seq| seq == base.seq)) {
            // A new snapshot needs a commit of its own.
            let same = |state: &State| Ok(vec![Effect::SetDefaultRetention { retention: state.default_retention }]);
            self.commit_effects(same)?;
        }
        // All as of one instant: a snapshot that others name later is not what this one is made from.
        let (bytes, state, named) = {
            let _turn = self.commits().turn()?;
            (log.bytes(), self.current()?, log.base())
        };
        if named.is_some_and(|base| base.seq >= state.seq) || state.seq.0 == 0 {
            return Ok(());
        }
        let storage = &**self.storage();
        let shared = log.is_shared();
        let old: Vec<String> = match shared {
            false => storage.list(names::CATALOG)?.into_iter().map(|object| object.name).collect(),
            // Delete only what this process knows of; other leftovers are for an audit, which lists them.
            true => maintenance.catalog.iter().flat_map(Catalog::names).collect(),
        };
        // A damaged snapshot is written again as a whole; one that others have named since, and that was not read, is not
        // built upon.
        let before = maintenance.catalog.as_ref().filter(|before| !whole && Some(before.base) == named);
        if planted(Bug::CutLogBeforeSnapshot) {
            log.rebase(named, recover::encode_catalog(&state, before, None)?.0, bytes)?;
        }
        // The name of the new one may be taken in another history.
        log.confirm()?;
        let patience = shared.then_some((self.env(), self.options().retry_micros));
        // Those who keep the blocks of a state by a lease may be bringing over what is committed since. What an earlier snapshot has
        // released is gone.
        let since = named.map_or(Seq(1), |base| base.from);
        let kept = state.holds.floor().map(|floor| floor.next().max(since)).filter(|_| !planted(Bug::CutLeased));
        let (base, catalog, packed) = match recover::write_catalog(storage, &state, before, kept, patience) {
            // Another process is writing it.
            Err(e) if shared && e.kind() == ErrorKind::AlreadyExists => return Ok(()),
            other => other?,
        };
        if !log.rebase(named, base, bytes)? {
            // Another one was named. This one is left to an audit: it may have been named in between, and built upon.
            return Ok(());
        }
        let needed: BTreeSet<String> = catalog.names().collect();
        // After that, not all of them are open.
        maintenance.expiring.iter_mut().for_each(|tables| note_expiring(tables, &state));
        self.take_pages(&state, &packed);
        maintenance.catalog = Some(catalog);
        self.upkeep().set_catalog_damaged(false);
        let old: Vec<String> = old.into_iter().filter(|name| !needed.contains(name)).collect();
        // What could not be deleted is removed by the next checkpoint.
        self.delete_objects(&old);
        Ok(())
    }
}

/// A checkpoint that the store begins by itself; returns what it left as it is.
pub(in crate::store) fn automatic(store: &Store, cancel: &Cancel) -> Result<Vec<String>> {
    let task = Task { cancel: cancel.clone(), progress: None };
    Ok(store.checkpoint(&CheckpointOptions { task, ..CheckpointOptions::default() })?.failures)
}
