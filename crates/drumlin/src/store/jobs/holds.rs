//! Holds: see catalog/holds.rs for what they keep. Here they are opened, renewed and ended, and those whose owners have
//! fallen silent are found.
//!
//! Ages are judged by this process's own clock. A hold whose beat lies in the future of that clock, or no further in
//! its past than clocks may differ, ends once it has been watched without a new beat for its whole life. A process that
//! ends a hold looks at it again in the turn of the commit.
//!
//! The driver beats every third of a hold's life. What an ended hold leaves is swept like that of a session, until an
//! hour after the time of its workers is over.

use crate::base::planted::{Bug, planted};
use crate::base::{EntryId, Error, Result, SessionId, Timestamp};
use crate::catalog::{Effect, Hold, HoldKind, State, ended};
use crate::store::Store;
use crate::store::open::uri::is_in_memory;
use crate::store::parts::STEP;

/// How long committed jobs are remembered.
const JOBS_MICROS: i64 = 30 * 86_400_000_000;

/// The longest life of a hold, and the longest time for its workers, in microseconds.
const LIFE_MAX: u64 = 30 * 86_400_000_000;

/// What is kept for other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldInfo {
    /// Its number, which names its folder of blocks.
    pub hold: u64,
    /// The job that it is staged for; `None` for a lease.
    pub job: Option<String>,
    /// Where the replica is that it is for, if it is for one.
    pub replica: Option<String>,
    /// The time of its last beat.
    pub beat: Timestamp,
    /// How long it lives without a beat, in microseconds.
    pub life_micros: u64,
}

impl HoldInfo {
    pub(in crate::store) fn all(state: &State) -> Vec<Self> {
        let info = |(id, hold): (&SessionId, &Hold)| {
            let (job, replica) = match &hold.kind {
                HoldKind::Lease { .. } => (None, None),
                HoldKind::Replica { at, .. } => (None, Some(at.clone())),
                HoldKind::Stage { job, .. } => (Some(job.clone()), None),
            };
            Self { hold: id.0, job, replica, beat: hold.beat, life_micros: hold.life_micros }
        };
        state.holds.open.iter().map(info).collect()
    }
}

impl Store {
    /// `InvalidArgument` if no other process can reach this store.
    pub(in crate::store) fn check_reachable(&self, what: &str) -> Result<()> {
        let uri = self.uri();
        match is_in_memory(uri) {
            true => Err(Error::invalid(format!(
                "{what} are for other processes, but no other process can open {uri}; use a folder or a bucket"
            ))),
            false => Ok(()),
        }
    }

    /// Opens a hold. Returns its number, and the state of that commit.
    pub(in crate::store) fn open_hold(
        &self,
        kind: HoldKind,
        life_micros: u64,
        work_micros: u64,
    ) -> Result<(SessionId, std::sync::Arc<State>)> {
        if life_micros > LIFE_MAX || work_micros > LIFE_MAX {
            return Err(Error::invalid(
                "a hold may go without renewal for at most 30 days, and its workers may write for at most 30 days",
            ));
        }
        let name = EntryId(self.env().entropy.id()?);
        let (free, log_store) = (self.free_number()?, self.commits().log().store());
        let open = move |state: &State| {
            let (hold, kind) = (state.next_session().max(free), kind.clone());
            // A store that one process writes, made by an earlier build, has no other name than this.
            let store = if log_store == 0 { name.0 } else { log_store };
            Ok(vec![Effect::OpenHold { hold, store, kind, life_micros, work_micros }])
        };
        let state = self.commit_effects(open)?;
        // Its number must never be assigned again, whatever is lost.
        self.sync()?;
        Ok((state.sessions.last, state))
    }

    /// Renews a hold. `SnapshotExpired` if it has ended.
    pub(in crate::store) fn beat(&self, hold: SessionId) -> Result<()> {
        self.commit_effects(move |state| match state.holds.is_open(hold) {
            true => Ok(vec![Effect::Beat { hold }]),
            false => Err(ended(hold)),
        })?;
        Ok(())
    }

    /// Ends those of some holds that have not ended.
    pub(in crate::store) fn end_holds(&self, holds: Vec<SessionId>) -> Result<()> {
        self.commit_effects(move |state| {
            let open: Vec<SessionId> = holds.iter().copied().filter(|hold| state.holds.is_open(*hold)).collect();
            Ok(if open.is_empty() { Vec::new() } else { vec![Effect::EndHolds { holds: open }] })
        })?;
        Ok(())
    }

    /// Ends the holds whose owners have been silent for longer than their life, and forgets old jobs.
    pub(in crate::store) fn end_silent_holds(&self) -> Result<()> {
        let state = self.state()?;
        let now = self.commits().times().age(state.time);
        let silent = self.silent(&state, now);
        let old = move |state: &State| -> Vec<String> {
            let old = state.holds.jobs.iter().filter(|(_, job)| job.time.0.saturating_add(JOBS_MICROS) <= now.0);
            old.map(|(name, _)| name.clone()).collect()
        };
        if silent.is_empty() && old(&state).is_empty() {
            return Ok(());
        }
        self.commit_effects(move |state| {
            // Another process may have heard of one since.
            let same =
                |(hold, beats): &&(SessionId, u64)| state.holds.open.get(hold).is_some_and(|open| open.beats == *beats);
            let holds: Vec<SessionId> = silent.iter().filter(same).map(|(hold, _)| *hold).collect();
            let names = old(state);
            let ended = (!holds.is_empty()).then_some(Effect::EndHolds { holds });
            Ok(ended.into_iter().chain((!names.is_empty()).then_some(Effect::ForgetJobs { names })).collect())
        })?;
        Ok(())
    }

    /// The silent holds of `state`, with the number of their beats.
    fn silent(&self, state: &State, now: Timestamp) -> Vec<(SessionId, u64)> {
        self.watched().keep(|hold| state.holds.is_open(hold));
        let over = |since: Timestamp, hold: &Hold| {
            u64::try_from(now.0.saturating_sub(since.0)).is_ok_and(|micros| micros > hold.life_micros)
        };
        let mut silent = Vec::new();
        for (id, hold) in &state.holds.open {
            // Clocks may differ by a step without anybody noticing: so much more than its life must have passed for the beat's
            // time alone to tell.
            let is_old = over(Timestamp(hold.beat.0.saturating_add(STEP)), hold);
            let is_silent = match hold.beat > now || over(hold.beat, hold) {
                _ if is_old => true,
                false => false,
                true if planted(Bug::TrustBeats) => false,
                true => over(self.watched().since(*id, hold.beats, now), hold),
            };
            if is_silent {
                silent.push((*id, hold.beats));
            }
        }
        silent
    }
}
