//! Who works with a store: processes that write it, what is kept for others, durable triggers. A function of one state.

use crate::base::{Result, Seq, SessionId, Timestamp, Version};
use crate::catalog::{Path, Trigger};
use crate::store::{HoldInfo, Store};

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

/// A snapshot, without what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// Its name.
    pub name: String,
    /// When it was taken.
    pub time: Timestamp,
    /// How many tables it holds.
    pub tables: u64,
    /// Which version it holds of the table that was asked about.
    pub version: Option<Version>,
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
        let own = store.commits().session().open_in(&state);
        let info = |ended: bool| {
            move |(session, time): (&SessionId, &Timestamp)| SessionInfo {
                session: session.0,
                time: *time,
                ended,
                own: *session == own,
            }
        };
        let open = state.sessions.open.iter().rev().map(info(false));
        let sessions = open.chain(state.sessions.fenced.iter().rev().map(info(true))).collect();
        let trigger = |(name, trigger): (&String, &Trigger)| TriggerInfo {
            name: name.clone(),
            pattern: trigger.filter.pattern.to_string(),
            session: trigger.owner.0,
            done: trigger.done,
        };
        let triggers = state.triggers.iter().map(trigger).collect();
        Ok(Activity { sessions, holds: HoldInfo::all(&state), triggers })
    }

    /// The snapshots of `store`, by name; with a path those that hold a table under it. O(snapshots), whatever they hold.
    ///
    /// # Errors
    /// `Closed`; `InvalidArgument` if `path` is none.
    pub fn snapshots(store: &Store, path: Option<&str>) -> Result<Vec<SnapshotSummary>> {
        let path = path.map(Path::new).transpose()?;
        let state = store.state()?;
        let summary = |(name, snapshot): (&String, &std::sync::Arc<crate::catalog::Snapshot>)| {
            let version = match &path {
                Some(path) => match state.held_then(name, path)? {
                    Some((_, version)) => Some(version),
                    None => return Ok(None),
                },
                None => None,
            };
            let tables = state.held_len(name);
            Ok(Some(SnapshotSummary { name: name.clone(), time: snapshot.time, tables, version }))
        };
        state.snapshots.iter().map(summary).filter_map(Result::transpose).collect()
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
        let store = Store::open_with("memory://", Options { inline_bytes: 0, ..Options::default() }).unwrap();
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
        store.snapshot("eod", "t").unwrap();
        let of = |path| Activity::snapshots(&store, path).unwrap();
        assert_eq!((of(None)[0].tables, of(None)[0].version), (1, None));
        assert_eq!((of(Some("t"))[0].name.as_str(), of(Some("t"))[0].version), ("eod", Some(Version(0))));
        assert!(of(Some("u")).is_empty() && Activity::snapshots(&store, Some("")).is_err());
    }
}
