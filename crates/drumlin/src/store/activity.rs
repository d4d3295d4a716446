//! Who works with a store: processes that write it, what is kept for others, durable triggers. A function of one state.

use super::{HoldInfo, Store};
use crate::base::{Result, Seq, Timestamp};

/// Who works with a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// Processes that have written blocks and may write more, the newest first.
    pub sessions: Vec<SessionInfo>,
    /// Leases, and jobs with staged blocks.
    pub holds: Vec<HoldInfo>,
    /// The durable triggers, by name.
    pub triggers: Vec<TriggerInfo>,
}

/// A process that writes blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its number, which names its folder of blocks.
    pub session: u64,
    /// The time of its last commit; of one that has ended, when it did.
    pub time: Timestamp,
    /// Whether it was ended by others, and its folder is still searched for what it left.
    pub ended: bool,
    /// Whether it is that of this process.
    pub own: bool,
}

/// A durable trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerInfo {
    /// Its name.
    pub name: String,
    /// The nodes that it is called for.
    pub pattern: String,
    /// The session that calls it; 0 if none does.
    pub session: u64,
    /// It has been called for all commits up to this one.
    pub done: Seq,
}

impl Activity {
    /// Who works with `store`, as its newest commit says. O(sessions + holds + triggers).
    ///
    /// # Errors
    /// `Closed`.
    pub fn of(store: &Store) -> Result<Activity> {
        let state = store.state()?;
        let own = store.own_session(&state);
        let info = |ended: bool| {
            move |(session, time): (&crate::base::SessionId, &Timestamp)| SessionInfo {
                session: session.0,
                time: *time,
                ended,
                own: *session == own,
            }
        };
        let open = state.sessions.open.iter().rev().map(info(false));
        let sessions = open.chain(state.sessions.fenced.iter().rev().map(info(true))).collect();
        let trigger = |(name, trigger): (&String, &crate::catalog::Trigger)| TriggerInfo {
            name: name.clone(),
            pattern: trigger.filter.pattern.to_string(),
            session: trigger.owner.0,
            done: trigger.done,
        };
        let triggers = state.triggers.iter().map(trigger).collect();
        Ok(Activity { sessions, holds: HoldInfo::all(&state), triggers })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalog::{Pattern, TriggerFilter};
    use crate::store::{Options, Tables};

    #[test]
    fn it_tells_of_processes_and_triggers() {
        let store = Store::open("memory://", Options { inline_bytes: 0, ..Options::default() }).unwrap();
        assert_eq!(Activity::of(&store).unwrap(), Activity::default());
        let rows = arrow::array::Int64Array::from(vec![1]);
        let rows = arrow::array::RecordBatch::try_from_iter([("n", Arc::new(rows) as arrow::array::ArrayRef)]);
        store.write("t", rows.unwrap(), &Default::default()).unwrap();
        let filter = TriggerFilter { pattern: Pattern::new("config/**").unwrap(), actions: Vec::new(), priority: 0 };
        store.tree().on_durable("notify", filter, Arc::new(|_| Ok(()))).unwrap();
        let activity = Activity::of(&store).unwrap();
        assert!(matches!(activity.sessions.as_slice(), [SessionInfo { own: true, ended: false, .. }]));
        let triggers: Vec<&str> = activity.triggers.iter().map(|trigger| trigger.pattern.as_str()).collect();
        assert_eq!(triggers, ["config/**"]);
        assert!(activity.holds.is_empty());
    }
}
