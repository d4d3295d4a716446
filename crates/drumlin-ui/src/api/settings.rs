//! Snapshots, retentions and projections: the store's change feed tells nothing of commits that change them, so what such a commit
//! did is found by what it left.
//!
//! A snapshot has the time of its commit, and a node the number of the last commit that changed it. What was dropped left nothing:
//! it is found by comparing what there is with what there was at the last look, and told only if a single commit can have done it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use drumlin::{Activity, Commit, ErrorKind, Result, Retention, Seq, Store, Tables};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::listing::{Listings, Node};
use super::show::retention;

/// The commits between two looks among which the one that made a change is searched.
const SEARCHED_MAX: u64 = 10_000;
/// The commits that are remembered.
const TOLD_MAX: usize = 1000;

/// What commits were found to have done.
#[derive(Default)]
pub struct Settings(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The commit of the last look, and what there was.
    seen: Option<(u64, Seen)>,
    told: BTreeMap<u64, Vec<Value>>,
}

/// What can be set.
#[derive(Default)]
struct Seen {
    /// By name: their time in microseconds, and how many tables they hold.
    snapshots: BTreeMap<String, (i64, u64)>,
    projections: BTreeSet<String>,
    /// That of the whole store.
    retention: Retention,
}

impl Settings {
    /// Compares what there is with what there was.
    pub fn look(&self, store: &Store, listings: &Listings) -> Result<()> {
        let mut known = self.0.lock();
        let seq = store.seq()?.0;
        if known.seen.as_ref().is_some_and(|(of, _)| *of == seq) {
            return Ok(());
        }
        let now = Seen::of(store)?;
        // If a commit came in between, which of them did what is not known.
        let alone = store.seq()?.0 == seq;
        let before = known.seen.take();
        let changes = before.as_ref().map(|(_, before)| now.changes(before)).unwrap_or_default();
        if let (Some((since, _)), true, false) = (before, alone, changes.is_empty())
            && let Some(commit) = only_silent(store, listings, &now, since, seq)?
        {
            known.tell(commit, changes);
        }
        known.seen = Some((seq, now));
        Ok(())
    }

    /// What a commit did of which the feed tells nothing, as events; none if it is not known.
    pub fn changed_by(&self, store: &Store, listings: &Listings, commit: &Commit) -> Result<Vec<Value>> {
        let mut known = self.0.lock();
        let seq = commit.seq().0;
        if let Some(told) = known.told.get(&seq) {
            return Ok(told.clone());
        }
        let Some((_, seen)) = &known.seen else { return Ok(Vec::new()) };
        let found = left_by(store, listings, seen, commit)?;
        if !found.is_empty() {
            known.tell(seq, found.clone());
        }
        Ok(found)
    }
}

impl Known {
    fn tell(&mut self, seq: u64, changes: Vec<Value>) {
        self.told.insert(seq, changes);
        if self.told.len() > TOLD_MAX {
            self.told.pop_first();
        }
    }
}

impl Seen {
    fn of(store: &Store) -> Result<Self> {
        let snapshots = Activity::snapshots(store, None)?;
        Ok(Self {
            snapshots: snapshots.into_iter().map(|of| (of.name, (of.time.0, of.tables))).collect(),
            projections: store.tree().projections()?.into_iter().collect(),
            retention: store.retention("**")?,
        })
    }

    /// What has changed since `before`, beside snapshots that were taken.
    fn changes(&self, before: &Self) -> Vec<Value> {
        let dropped = before.snapshots.keys().filter(|name| !self.snapshots.contains_key(*name));
        let mut changes: Vec<Value> = dropped.map(|name| event("drop snapshot", name, None)).collect();
        let created = self.projections.difference(&before.projections);
        changes.extend(created.map(|name| event("projection", name, None)));
        let dropped = before.projections.difference(&self.projections);
        changes.extend(dropped.map(|name| event("drop projection", name, None)));
        if self.retention != before.retention {
            changes.push(event("retention", "**", Some(keeps(self.retention))));
        }
        changes
    }
}

/// The only commit after `since` and up to `until` of which neither the feed nor what it left tells anything.
fn only_silent(store: &Store, listings: &Listings, seen: &Seen, since: u64, until: u64) -> Result<Option<u64>> {
    if until.saturating_sub(since) > SEARCHED_MAX {
        return Ok(None);
    }
    let mut found = None;
    let searched = (|| -> Result<()> {
        let mut feed = store.changes(Seq(since))?;
        while feed.seq().0 < until {
            let Some(commit) = feed.next(Some(Duration::ZERO))? else { break };
            let mut silent = true;
            commit.visit(|_| {
                silent = false;
                false
            })?;
            if silent && left_by(store, listings, seen, &commit)?.is_empty() && found.replace(commit.seq().0).is_some()
            {
                found = None;
                break;
            }
        }
        Ok(())
    })();
    match searched {
        Ok(()) => Ok(found),
        // A checkpoint has cut the log.
        Err(e) if e.kind() == ErrorKind::SnapshotExpired => Ok(None),
        Err(e) => Err(e),
    }
}

/// What there is that the commit made: a snapshot that is still held, a retention that was not set again.
fn left_by(store: &Store, listings: &Listings, seen: &Seen, commit: &Commit) -> Result<Vec<Value>> {
    let taken = seen.snapshots.iter().filter(|(_, (time, _))| *time == commit.time().0);
    let taken = taken.map(|(name, (_, tables))| {
        let mut told = event("snapshot", name, None);
        told["tables"] = json!(tables);
        told
    });
    let mut found: Vec<Value> = taken.collect();
    let names = listings.names(store)?;
    let mut changed = names.nodes.iter().filter(|node| node.seq == commit.seq().0).peekable();
    while let Some(node) = changed.next() {
        // A node that comes before one below it was made for that.
        let below = |next: &&Node| next.path.strip_prefix(&node.path).is_some_and(|rest| rest.starts_with('/'));
        if changed.peek().is_some_and(below) {
            continue;
        }
        found.push(event("retention", &node.path, Some(keeps(store.retention(&node.path)?))));
    }
    Ok(found)
}

fn keeps(of: Retention) -> String {
    format!("keeps {}", retention(of))
}

fn event(action: &str, name: &str, told: Option<String>) -> Value {
    json!({ "kind": "setting", "action": action, "path": name, "told": told })
}
