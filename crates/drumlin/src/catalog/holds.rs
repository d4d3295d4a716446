//! Holds: what keeps blocks that no table refers to yet, or no longer does, for processes that do not write the log
//! themselves.
//!
//! A *lease* keeps every block that the state of its own commit refers to, for those who read that state elsewhere. A
//! *stage* keeps blocks that workers have written under its number, until one commit refers to those that count. Both
//! end by an effect alone: what a hold has kept when it ends, and no table refers to, is garbage from then on, and
//! blocks written under its number after that never become part of a table.
//!
//! Sessions begin and end beside holds and never touch them: a job outlives the processes that work for it. Both draw
//! their numbers from one sequence, since both name folders of blocks.
//!
//! *Reading:* a driver opens a lease and cuts a data set into splits (*lease.rs*, *split.rs*). *Writing:* a driver
//! opens a stage and hands out tickets; workers return tokens (*stage.rs*), which one commit makes part of their tables
//! (*stage_commit.rs*). Workers neither write the log nor read the catalog: what they need is carried to them in a few
//! bytes. So the order of the log decides whether a job was in time, never a clock.

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use super::Path;
use crate::base::{Error, Result, Seq, SessionId, TableId, Timestamp, Version};

/// What a hold keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HoldKind {
    /// The blocks that the state after this commit, and after the next, refers to.
    Lease {
        /// The commit before that of the lease.
        floor: Seq,
    },
    /// Blocks written under its number.
    Stage {
        /// The job that they are written for.
        job: String,
        /// The tables that it is to change.
        paths: Vec<Path>,
    },
    /// A lease for a replica.
    Replica {
        /// The commit before that of the lease.
        floor: Seq,
        /// Where the replica is, as the process that keeps it was told.
        at: String,
    },
}

impl HoldKind {
    /// The state that it keeps, unless it is a stage.
    pub fn floor(&self) -> Option<Seq> {
        match self {
            HoldKind::Lease { floor } | HoldKind::Replica { floor, .. } => Some(*floor),
            HoldKind::Stage { .. } => None,
        }
    }
}

/// One hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// What it keeps.
    pub kind: HoldKind,
    /// How long it lives without a beat, in microseconds.
    pub life_micros: u64,
    /// The time of its last beat.
    pub beat: Timestamp,
    /// How many beats it has had: they differ even if clocks do not advance.
    pub beats: u64,
    /// Until when its workers may write, if they look at their clocks.
    pub until: Timestamp,
}

/// A job that was committed: a repeated commit of the same gets the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Of what was committed.
    pub digest: u128,
    /// The commit.
    pub seq: Seq,
    /// Its time.
    pub time: Timestamp,
    /// The versions that it made.
    pub versions: Vec<(Path, TableId, Version)>,
    /// The holds of its blocks, which it ended.
    pub holds: Vec<SessionId>,
}

/// All holds, and the jobs that were committed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Holds {
    /// Names the store, in what its workers carry: 0 before the first hold.
    pub store: u128,
    /// Those that have not ended.
    #[serde(with = "crate::base::persistent::ordered_map")]
    pub open: OrdMap<SessionId, Hold>,
    /// Committed jobs, by name.
    #[serde(with = "crate::base::persistent::ordered_map")]
    pub jobs: OrdMap<String, Job>,
}

impl Holds {
    /// Whether a hold has not ended.
    pub fn is_open(&self, hold: SessionId) -> bool {
        self.open.contains_key(&hold)
    }

    /// The oldest state that a lease keeps.
    pub fn floor(&self) -> Option<Seq> {
        self.open.values().filter_map(|hold| hold.kind.floor()).min()
    }

    /// Whether a job was committed with blocks of a hold.
    pub fn was_committed(&self, hold: SessionId) -> bool {
        self.jobs.values().any(|job| job.holds.contains(&hold))
    }

    /// The same without what was committed.
    pub fn without_jobs(&self) -> Self {
        Self { store: self.store, open: self.open.clone(), jobs: OrdMap::new() }
    }

    /// Notes that the owner of a hold is alive. `SnapshotExpired` if it has ended.
    pub(super) fn beat(&mut self, hold: SessionId, time: Timestamp) -> Result<()> {
        let Some(open) = self.open.get_mut(&hold) else { return Err(ended(hold)) };
        open.beat = time;
        open.beats = open.beats.saturating_add(1);
        Ok(())
    }
}

/// The error of those who rely on a hold that has ended.
pub fn ended(hold: SessionId) -> Error {
    Error::snapshot_expired(format!(
        "hold {hold} has ended: it was committed, aborted or closed, or its owner did not renew it in time; begin again"
    ))
}
