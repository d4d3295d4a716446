//! What a replica still needs is kept at the source by a lease of the state that the replica has: blocks, and the log since then.
//!
//! A lease keeps one state and all later ones. It moves on by another one, which takes its place once the replica has come to the
//! state that this one keeps. If the process falls silent, the lease ends by itself, and the source keeps nothing any more.

use crate::base::{ErrorKind, Result, Seq, SessionId, Timestamp};
use crate::catalog::HoldKind;
use crate::store::Store;

/// How long a lease lives without a beat.
const LIFE_MICROS: u64 = 3_600_000_000;
/// It has a beat, or moves on, no more often than this.
const EVERY_MICROS: i64 = 60_000_000;
/// Commits of leases themselves are no reason to move on.
const OWN_COMMITS: u64 = 4;

/// A lease at the source.
pub(super) struct SourceLease {
    store: Store,
    /// Where the replica is; `None` for a copy.
    at: Option<String>,
    /// Whether the store was opened for it.
    own: bool,
    held: (SessionId, Seq),
    /// What takes its place.
    next: Option<(SessionId, Seq)>,
    tended: Timestamp,
}

impl SourceLease {
    /// Keeps the newest state.
    pub fn open((store, own): (Store, bool), at: Option<&str>) -> Result<Self> {
        let at = at.map(str::to_owned);
        let held = open(&store, at.as_deref())?;
        let tended = store.env().clock.now();
        Ok(Self { store, at, own, held, next: None, tended })
    }

    /// To be called now and then; the replica has the commit `have`.
    pub fn tend(&mut self, have: Seq) -> Result<()> {
        if let Some((hold, floor)) = self.next
            && have >= floor
        {
            let old = std::mem::replace(&mut self.held, (hold, floor)).0;
            self.next = None;
            self.store.end_holds(vec![old])?;
        }
        let now = self.store.env().clock.now();
        if now.0.saturating_sub(self.tended.0).abs() < EVERY_MICROS {
            return Ok(());
        }
        self.tended = now;
        if self.next.is_none() && have.0 > self.held.1.0 + OWN_COMMITS {
            self.next = Some(open(&self.store, self.at.as_deref())?);
            return Ok(());
        }
        match self.store.beat(self.held.0) {
            // A purge ends leases of what it erases; then there is nothing to be kept either.
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => {
                self.held = open(&self.store, self.at.as_deref())?;
                Ok(())
            }
            other => other,
        }
    }

    /// Ends it. If that fails, it ends by itself.
    pub fn end(self) {
        let next = self.next.map(|(hold, _)| hold);
        let _ = self.store.end_holds([self.held.0].into_iter().chain(next).collect());
        if self.own {
            let _ = self.store.close();
        }
    }
}

/// Opens a lease; also returns the state that it keeps.
fn open(store: &Store, at: Option<&str>) -> Result<(SessionId, Seq)> {
    let kind = match at {
        Some(at) => HoldKind::Replica { floor: Seq(0), at: at.to_owned() },
        None => HoldKind::Lease { floor: Seq(0) },
    };
    let (hold, state) = store.open_hold(kind, LIFE_MICROS, 0)?;
    Ok((hold, Seq(state.seq.0.saturating_sub(1))))
}
