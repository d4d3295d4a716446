//! What the page asks of a store, a file a subject. Metadata is answered as JSON, rows as Arrow IPC.

mod activity;
mod asked;
mod chart;
mod commits;
mod context;
mod layout;
mod listing;
mod metrics;
mod rows;
mod show;
mod sorted;
mod table;
mod tree;
mod write;

use drumlin::{Cancel, Result};
use serde_json::Value;

use crate::query::Query;
use crate::reply::Reply;

pub use commits::found_commits;
pub use context::Context;

/// A request that has been admitted.
pub struct Call {
    pub path: String,
    pub query: Query,
    /// Of a change.
    pub body: Option<Value>,
}

/// Answers a call; `None` if there is nothing of its name. `cancel` is set once nobody waits for the answer.
pub fn answer(context: &Context, call: &Call, cancel: &Cancel) -> Result<Option<Reply>> {
    let Call { path, query, body } = call;
    // What other processes have committed; of a store that only this one writes it costs nothing.
    context.store.refresh()?;
    let reply = match (path.as_str(), body) {
        ("/api/store", None) => table::store(context)?,
        ("/api/tree", None) => tree::tree(context, query)?,
        ("/api/node", None) => tree::node(context, query)?,
        ("/api/table", None) => table::table(context, query)?,
        ("/api/whereabouts", None) => table::whereabouts(context, query)?,
        ("/api/versions", None) => table::versions(context, query)?,
        ("/api/rows", None) => rows::rows(context, query, cancel)?,
        ("/api/count", None) => rows::count(context, query, cancel)?,
        ("/api/cell", None) => rows::cell(context, query, cancel)?,
        ("/api/chart", None) => chart::chart(context, query, cancel)?,
        ("/api/diff", None) => rows::diff(context, query, cancel)?,
        ("/api/layout", None) => layout::layout(context, query)?,
        ("/api/commits", None) => commits::commits(context, query)?,
        ("/api/activity", None) => activity::activity(context)?,
        ("/api/projection", None) => activity::projection(context, query)?,
        ("/api/metrics", None) => metrics::json(&context.store)?,
        ("/metrics", None) => metrics::text(&context.store)?,
        ("/api/checkpoint", Some(_)) => write::checkpoint(context)?,
        ("/api/undrop", Some(body)) => write::undrop(context, body)?,
        _ => return Ok(None),
    };
    Ok(Some(reply))
}
