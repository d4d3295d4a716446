//! What effects do to holds and jobs: see catalog/holds.rs for what they are.

use super::State;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, SessionId, TableId, Timestamp, Version};
use crate::catalog::{Hold, HoldKind, Job, Path};

impl State {
    /// Fails if blocks written under this number may have been deleted.
    pub(super) fn check_writer(&self, writer: SessionId) -> Result<()> {
        if self.holds.is_open(writer) || planted(Bug::TrustEndedHolds) { Ok(()) } else { self.sessions.check(writer) }
    }

    pub(super) fn open_hold(
        &mut self,
        hold: SessionId,
        store: u128,
        kind: &HoldKind,
        (life_micros, work_micros): (u64, u64),
        (seq, time): (Seq, Timestamp),
    ) -> Result<()> {
        if hold < self.next_session() {
            return Err(Error::conflict(format!("hold {hold} was already opened")));
        }
        self.sessions.last = hold;
        if self.holds.store == 0 {
            self.holds.store = store;
        }
        // Transactions after this one in the same entry release blocks at the same commit.
        let floor = Seq(seq.0.saturating_sub(1));
        let kind = match kind {
            HoldKind::Lease { .. } => HoldKind::Lease { floor },
            HoldKind::Replica { at, .. } => HoldKind::Replica { floor, at: at.clone() },
            stage @ HoldKind::Stage { .. } => stage.clone(),
        };
        let until = Timestamp(time.0.saturating_add_unsigned(work_micros));
        self.holds.open.insert(hold, Hold { kind, life_micros, beat: time, beats: 0, until });
        Ok(())
    }

    pub(super) fn put_job(
        &mut self,
        name: &str,
        digest: u128,
        tables: &[(Path, TableId)],
        holds: &[SessionId],
        (seq, time): (Seq, Timestamp),
    ) -> Result<()> {
        if self.holds.jobs.contains_key(name) && !planted(Bug::ForgetJobs) {
            return Err(Error::conflict(format!("the job '{name}' was already committed")));
        }
        let version = |(path, id): &(Path, TableId)| {
            let newest = self.get(*id)?.newest().map_or(Version(0), |newest| newest.version);
            Ok((path.clone(), *id, newest))
        };
        let versions = tables.iter().map(version).collect::<Result<_>>()?;
        self.holds.jobs.insert(name.to_owned(), Job { digest, seq, time, versions, holds: holds.to_vec() });
        Ok(())
    }

    /// Ends those of some holds that have not ended.
    pub(super) fn end_holds(&mut self, holds: &[SessionId], time: Timestamp) {
        for hold in holds {
            if let Some(ended) = self.holds.open.remove(hold) {
                // Until its workers' time is over, something of it may still arrive.
                self.sessions.fenced.insert(*hold, time.max(ended.until));
            }
        }
    }
}
