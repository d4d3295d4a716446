//! Who works with the store and what is kept: sessions, holds, presences, projections, triggers, snapshots, the trash.

use drumlin::{Activity, Result, Tables};
use serde_json::{Value, json};

use super::context::Context;
use super::show::time;
use super::tree::{payload, short_payload};
use crate::query::Query;
use crate::reply::Reply;

/// The items of each list.
const ITEMS_MAX: usize = 500;

fn list<T>(items: &[T], describe: impl Fn(&T) -> Value) -> Value {
    json!({ "total": items.len(), "items": items.iter().take(ITEMS_MAX).map(describe).collect::<Vec<_>>() })
}

/// Sessions, holds, presences, projections, triggers, snapshots and the trash.
pub fn activity(context: &Context) -> Result<Reply> {
    let store = &context.store;
    let activity = Activity::of(store)?;
    let mut projections = Vec::new();
    for name in store.tree().projections()? {
        let view = store.tree().projection(&name)?;
        projections.push((name, view));
    }
    let failures = store.tree().trigger_failures()?;
    let durable = |name: &String| activity.triggers.iter().any(|trigger| trigger.name == *name);
    let passing: Vec<String> = store.tree().triggers()?.into_iter().filter(|name| !durable(name)).collect();
    Ok(Reply::json(&json!({
        "seq": store.seq()?.0, "retention": format!("{:?}", store.retention("**")?),
        "sessions": list(&activity.sessions, |session| json!({
            "session": session.session, "time": time(session.time), "ended": session.ended, "own": session.own,
        })),
        "holds": list(&activity.holds, |hold| json!({
            "hold": hold.hold, "job": hold.job, "beat": time(hold.beat), "life_seconds": hold.life_micros / 1_000_000,
        })),
        "presences": list(&store.tree().presences()?, |presence| json!({
            "number": presence.number, "name": presence.name, "began": time(presence.began),
            "life_seconds": presence.life_micros / 1_000_000,
        })),
        "projections": list(&projections, |(name, view)| json!({
            "name": name, "pattern": view.rule().pattern().to_string(), "bag": view.rule().bag(),
            "entries": view.count(),
        })),
        "triggers": list(&activity.triggers, |trigger| json!({
            "name": trigger.name, "pattern": trigger.pattern, "session": trigger.session, "done": trigger.done.0,
        })),
        "passing_triggers": list(&passing, |name| json!(name)),
        "failures": list(&failures, |failure| json!({
            "trigger": failure.trigger, "seq": failure.seq.0, "path": failure.path, "error": failure.error,
        })),
        "snapshots": list(&Activity::snapshots(store, None)?, |snapshot| json!({
            "name": snapshot.name, "time": time(snapshot.time), "tables": snapshot.tables,
        })),
        "trash": list(&store.trash()?, |item| json!({
            "path": item.path, "time": time(item.time), "rows": item.rows, "bytes": item.bytes,
        })),
    })))
}

/// The first entries of a projection.
pub fn projection(context: &Context, query: &Query) -> Result<Reply> {
    let view = context.store.tree().projection(query.need("name")?)?;
    let entries = view.entries().take(ITEMS_MAX).map(|entry| {
        let key: Vec<String> = entry.key.iter().map(payload).collect();
        json!({ "key": key.join(", "), "path": entry.path, "value": short_payload(&entry.value) })
    });
    Ok(Reply::json(&json!({ "total": view.count(), "entries": entries.collect::<Vec<_>>() })))
}
