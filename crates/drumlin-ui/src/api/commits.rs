//! The commit log, as the store's change feed tells it: what was committed after a number, or the last commits that are still in it.

use std::time::Duration;

use drumlin::{
    Action, Cause, ChangeFeed, Commit, ErrorKind, Event, NodeEvent, Result, Seq, SettingChange, TableAction,
};
use serde_json::{Value, json};

use super::context::Context;
use super::show::{self, time};
use super::tree::short_payload;
use crate::query::Query;
use crate::reply::Reply;

/// The commits of one answer.
const COMMITS_MAX: u64 = 200;
/// The events of one commit that are listed; the others are counted.
const EVENTS_MAX: usize = 50;

/// Commits after `since`; without it the last ones.
pub fn commits(context: &Context, query: &Query) -> Result<Reply> {
    let store = &context.store;
    let now = store.seq()?.0;
    let limit = query.number("limit", 100, COMMITS_MAX)?;
    let since = match query.text("since") {
        Some(_) => query.number("since", 0, u64::MAX)?,
        None => now.saturating_sub(limit),
    };
    let (mut feed, cut) = beginning(context, since.min(now), now)?;
    let mut commits = Vec::new();
    while (commits.len() as u64) < limit {
        match feed.next(Some(Duration::ZERO)) {
            Ok(Some(commit)) => commits.push(commit),
            Ok(None) => break,
            // A checkpoint has cut the log in between: the rest is asked for again.
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => break,
            Err(e) => return Err(e),
        }
    }
    let commits = commits.iter().map(describe).collect::<Result<Vec<_>>>()?;
    let found = !commits.is_empty();
    let mut reply = Reply::json(&json!({ "seq": feed.seq().0, "cut": cut, "commits": commits }));
    reply.found = found;
    Ok(reply)
}

/// Whether an answer has commits, so that it need not wait for some.
pub fn found_commits(reply: &Reply) -> bool {
    reply.found
}

/// A feed from `since` on, or from the first commit after it that the log still has, and whether that is later.
fn beginning(context: &Context, since: u64, now: u64) -> Result<(ChangeFeed, bool)> {
    let begins = |since: u64| -> Result<Option<ChangeFeed>> {
        let begun = context.store.changes(Seq(since));
        match begun {
            Ok(feed) => Ok(Some(feed)),
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => Ok(None),
            Err(e) => Err(e),
        }
    };
    if let Some(feed) = begins(since)? {
        return Ok((feed, false));
    }
    let (mut gone, mut there) = (since, now);
    while there - gone > 1 {
        let middle = gone + (there - gone) / 2;
        match begins(middle)? {
            Some(_) => there = middle,
            None => gone = middle,
        }
    }
    Ok((context.store.changes(Seq(there))?, true))
}

fn describe(commit: &Commit) -> Result<Value> {
    let mut events: Vec<Value> = commit.settings().take(EVENTS_MAX).map(setting).collect();
    let mut count = commit.settings().count();
    commit.visit(|event| {
        count += 1;
        if events.len() < EVENTS_MAX {
            events.push(self::event(&event));
        }
        true
    })?;
    Ok(json!({
        "seq": commit.seq().0, "time": time(commit.time()), "messages": commit.messages().collect::<Vec<_>>(),
        "events": events, "count": count,
    }))
}

fn setting(change: SettingChange<'_>) -> Value {
    let told = |action: &str, name: &str, more: Option<String>| json!({ "kind": "setting", "action": action, "path": name, "told": more });
    match change {
        SettingChange::Snapshot { name, tables } => {
            json!({ "kind": "setting", "action": "snapshot", "path": name, "told": null, "tables": tables })
        }
        SettingChange::SnapshotDropped { name } => told("drop snapshot", name, None),
        SettingChange::Retention { path, retention } => {
            let keeps = match retention {
                Some(retention) => format!("keeps {}", show::retention(retention)),
                None => "as above".to_owned(),
            };
            told("retention", path.unwrap_or("**"), Some(keeps))
        }
        SettingChange::Projection { name } => told("projection", name, None),
        SettingChange::ProjectionDropped { name } => told("drop projection", name, None),
    }
}

fn event(event: &Event) -> Value {
    match event {
        Event::Table(event) => json!({ "kind": "table", "action": table_action(event.action), "path": event.path }),
        Event::Node(NodeEvent { path, action, after, cause, .. }) => {
            let action = match action {
                Action::Create => "create",
                Action::Update => "update",
                Action::Delete => "delete",
            };
            let along = match cause {
                Cause::Asked => None,
                Cause::Above => Some("with the node above"),
                Cause::Ended => Some("its presence has ended, or its time is over"),
                Cause::KeepWhile => Some("the condition of its keep_while no longer holds"),
            };
            let payload = after.as_ref().and_then(|node| node.payload.as_ref()).map(short_payload);
            json!({ "kind": "node", "action": action, "path": path, "cause": along, "payload": payload })
        }
    }
}

fn table_action(action: TableAction) -> &'static str {
    match action {
        TableAction::Version(kind) => kind.name(),
        TableAction::DeleteVersions => "delete versions",
        TableAction::Drop => "drop",
        TableAction::Undrop => "undrop",
        TableAction::Rows => "rows",
        TableAction::Copy => "copy",
        TableAction::Move => "move",
        TableAction::MoveAway => "move away",
        TableAction::Purge => "purge",
        TableAction::Metadata => "metadata",
    }
}
