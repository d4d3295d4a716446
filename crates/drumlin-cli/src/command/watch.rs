//! `watch`: prints what happens to a store, as it happens.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use drumlin::{Action, Cause, Commit, ErrorKind, Event, NodeEvent, NodeInfo, Seq, TableAction, TableEvent};
use serde_json::{Map, Value, json};

use super::rm::reason;
use crate::failure::{Failure, Outcome};
use crate::figures::time;
use crate::interrupt;
use crate::output::Output;
use crate::payload_text;
use crate::place::Place;
use crate::scope::Scope;

/// Print what happens to nodes and tables, as it happens, until interrupted
///
/// One line per event, separated by tabs: commit, time, action, path, and the payload that a node has now: JSON or, if it
/// is bytes, b"..." with escapes; for a node deleted along with another, the reason in parentheses. Actions on nodes are
/// create, update and delete; on tables table-create, table-write, table-append, table-update, table-delete (of rows),
/// table-delete-versions, table-drop and table-undrop.
///
/// A checkpoint cuts the log: --since cannot go back before it, and a watch ends with an error if the log was cut
/// before everything was seen.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin watch market.drumlin 'config/**' --since 1200 --json")]
pub struct Watch {
    #[command(flatten)]
    place: Place,
    /// A path, for itself and all below it, or a pattern with *, ? and ** [default: all]
    pattern: Option<String>,
    /// Begin after this commit; 0 is the beginning of the store [default: now]
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    /// Print one JSON object per line, with a node's payload before and after
    #[arg(long)]
    json: bool,
    /// End after N lines [default: never]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// The maximum delay before an interruption is noticed.
const WAIT: Duration = Duration::from_millis(100);

impl Watch {
    /// Prints commit by commit, each as soon as it is seen.
    pub fn run(self, out: &mut Output) -> Outcome {
        let scope = Scope::new(self.pattern.as_deref())?;
        let store = self.place.read()?;
        let cancel = interrupt::listen();
        let since = self.since.map_or_else(|| store.seq(), |seq| Ok(Seq(seq)))?;
        let mut feed = store.changes(since)?;
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 {
            let next = cancel.check().and_then(|()| feed.next(Some(WAIT)));
            let commit = match next {
                Ok(Some(commit)) => commit,
                Ok(None) => continue,
                Err(e) if e.kind() == ErrorKind::Cancelled => {
                    return Err(Failure::Interrupted(format!("--since {} continues from here", feed.seq())));
                }
                Err(e) => return Err(e.into()),
            };
            let mut printed = Ok(());
            commit.visit(|event| {
                let path = match &event {
                    Event::Node(event) => &event.path,
                    Event::Table(event) => &event.path,
                };
                if scope.matches(path) {
                    let line = if self.json { object(&commit, event).to_string() } else { line(&commit, &event) };
                    printed = writeln!(out, "{line}");
                    left -= 1;
                }
                printed.is_ok() && left > 0
            })?;
            printed?;
            out.flush()?;
        }
        Ok(())
    }
}

fn line(commit: &Commit, event: &Event) -> String {
    let (action, path, last) = match event {
        Event::Node(NodeEvent { path, action, after, cause, .. }) => {
            let reason = reason(*cause).map(|reason| format!("({reason})"));
            let payload = || Some(payload_text::line(after.as_ref()?.payload.as_ref()?));
            (node_action(*action).to_owned(), path, reason.or_else(payload))
        }
        Event::Table(TableEvent { path, action, .. }) => (format!("table-{}", table_action(*action)), path, None),
    };
    let last = last.map_or(String::new(), |last| format!("\t{last}"));
    format!("{}\t{}\t{action}\t{path}{last}", commit.seq(), time(commit.time()))
}

fn object(commit: &Commit, event: Event) -> Value {
    let (seq, time) = (commit.seq().0, time(commit.time()));
    let messages: Vec<&str> = commit.messages().collect();
    match event {
        Event::Node(NodeEvent { path, action, before, after, cause }) => json!({
            "seq": seq, "time": time, "messages": messages, "kind": "node", "action": node_action(action), "path": path,
            "cause": cause_name(cause), "before": before.map(node), "after": after.map(node),
        }),
        Event::Table(TableEvent { path, table, action }) => json!({
            "seq": seq, "time": time, "messages": messages, "kind": "table", "action": table_action(action), "path": path, "table": table.0,
        }),
    }
}

fn node(node: NodeInfo) -> Value {
    let mut members = Map::new();
    if let Some(payload) = &node.payload {
        let (name, value) = payload_text::member(payload);
        members.insert(name.to_owned(), value);
    }
    members.insert("payload_version".to_owned(), node.payload_version.into());
    members.insert("children".to_owned(), node.children.into());
    members.into()
}

fn node_action(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "update",
        Action::Delete => "delete",
    }
}

fn table_action(action: TableAction) -> &'static str {
    match action {
        TableAction::Version(kind) => kind.name(),
        TableAction::DeleteVersions => "delete-versions",
        TableAction::Drop => "drop",
        TableAction::Undrop => "undrop",
        TableAction::Copy => "copy",
        TableAction::Move => "move",
        TableAction::MoveAway => "move-away",
        TableAction::Purge => "purge",
        TableAction::Metadata => "metadata",
        TableAction::Rows => "rows",
    }
}

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Asked => "asked",
        Cause::Above => "above",
        Cause::KeepWhile => "keep_while",
        Cause::Ended => "ended",
    }
}
