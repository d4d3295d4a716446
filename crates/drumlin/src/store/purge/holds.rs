//! Holds that a purge ends: leases of states that had the rows, whose plans may have rows that were in memory, and stages for the tables that
//! it concerns, whose rows nobody has looked at. Those who rely on one get `SnapshotExpired`, and begin again. What they have kept is deleted with
//! everything else that nothing refers to.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::family::family;
use super::report::PurgeReceipt;
use crate::base::planted::{Bug, planted};
use crate::base::{Result, Seq, SessionId, TableId};
use crate::catalog::{Effect, Hold, HoldKind, Path, Pattern, State};
use crate::store::Store;

/// The open holds that may have rows which a purge, whose last commit was `last`, has erased.
pub(in crate::store) fn concerned_holds(state: &State, pattern: &Pattern, last: Seq) -> Result<Vec<SessionId>> {
    if state.holds.open.is_empty() {
        return Ok(Vec::new());
    }
    let family: BTreeSet<TableId> = family(state, pattern)?.into_keys().collect();
    let is_target = |path: &Path| {
        pattern.matches_path(path.as_str()) || state.table_id_at(path).is_some_and(|table| family.contains(&table))
    };
    let is_concerned = |hold: &Hold| match &hold.kind {
        HoldKind::Lease { floor } | HoldKind::Replica { floor, .. } => *floor < last,
        HoldKind::Stage { paths, .. } => paths.iter().any(is_target),
    };
    Ok(state.holds.open.iter().filter(|(_, hold)| is_concerned(hold)).map(|(id, _)| *id).collect())
}

impl Store {
    /// Commits effects that are made in the commit's turn; returns its number.
    pub(super) fn commit_effects_at(
        &self,
        state: &Arc<State>,
        build: impl Fn(&State) -> Result<Vec<Effect>> + Send + 'static,
    ) -> Result<Seq> {
        Ok(self.commit_built(state.clone(), move |now| Ok((build(now)?, ())))?.0.seq)
    }

    /// Ends the holds that may have rows which are erased.
    pub(in crate::store) fn end_concerned_holds(
        &self,
        pattern: &Pattern,
        begun: Seq,
        receipt: &mut PurgeReceipt,
    ) -> Result<()> {
        if planted(Bug::PurgeBesideHolds) {
            return Ok(());
        }
        let (pattern, last) = (pattern.clone(), Seq(receipt.commits.last().copied().unwrap_or(0).max(begun.0)));
        let state = self.current()?;
        for hold in state.holds.open.values() {
            if let HoldKind::Replica { at, .. } = &hold.kind {
                receipt.not_examined.push(format!(
                    "The replica at {at}, which erases the rows when it comes to the last commit of this: its own next look."
                ));
            }
        }
        if concerned_holds(&state, &pattern, last)?.is_empty() {
            return Ok(());
        }
        let build = move |now: &State| {
            let holds = concerned_holds(now, &pattern, last)?;
            Ok((if holds.is_empty() { Vec::new() } else { vec![Effect::EndHolds { holds }] }, ()))
        };
        let (after, ()) = self.commit_built(state, build)?;
        receipt.commits.push(after.seq.0);
        Ok(())
    }

    /// Says that all blocks that had erased rows are released by now: those who keep what was released later, such as replicas, need not
    /// keep these.
    pub(super) fn note_erased(&self, receipt: &mut PurgeReceipt) -> Result<()> {
        let state = self.current()?;
        let later = || state.ledger.condemned().any(|(_, condemned)| condemned.seq > state.erased);
        if !receipt.commits.is_empty() || (state.erased > Seq(0) && later()) {
            let nothing = |_: &State| Ok(vec![Effect::ShrinkGroups { tables: Vec::new(), groups: Vec::new() }]);
            receipt.commits.push(self.commit_effects_at(&state, nothing)?.0);
        }
        Ok(())
    }
}
