//! What the page asks of a store, a file a subject. Metadata is answered as JSON, rows as Arrow IPC.

mod activity;
mod chart;
mod commits;
mod layout;
mod metrics;
mod rows;
mod show;
mod sorted;
mod table;
mod tree;
mod write;

use std::sync::Arc;

use drumlin::arrow::temporal_conversions::timestamp_us_to_datetime;
use drumlin::base::Cancel;
use drumlin::{AsOf, Error, Result, Store, Timestamp, Version};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::query::Query;
use crate::reply::Reply;

pub use commits::found_commits;

/// What is shown, and what is remembered between requests.
pub struct Context {
    store: Store,
    /// Whether the store may be changed.
    pub write: bool,
    /// Set when the server is closed.
    closing: Cancel,
    names: Mutex<Option<Arc<tree::Names>>>,
    listing: Mutex<Option<Arc<tree::Listing>>>,
    sorted: Mutex<Option<Arc<sorted::Sorted>>>,
}

impl Context {
    /// For a server that shows `store`.
    pub fn new(store: Store, write: bool, closing: Cancel) -> Self {
        let (names, listing, sorted) = Default::default();
        Self { store, write, closing, names, listing, sorted }
    }
}

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

/// Which version is asked for: none for the newest, a number, `snapshot:` and a name, `time:` and microseconds.
fn as_of(query: &Query, name: &str) -> Result<AsOf> {
    let Some(text) = query.text(name) else { return Ok(AsOf::Newest) };
    if let Some(snapshot) = text.strip_prefix("snapshot:") {
        return Ok(AsOf::Snapshot(snapshot.to_owned()));
    }
    let bad =
        || Error::invalid(format!("'{name}' must be a version, 'snapshot:' and a name, or 'time:' and microseconds"));
    if let Some(micros) = text.strip_prefix("time:") {
        return Ok(AsOf::Time(Timestamp(micros.parse().map_err(|_| bad())?)));
    }
    Ok(AsOf::Version(Version(text.parse().map_err(|_| bad())?)))
}

/// A time in RFC 3339, UTC, to the microsecond.
fn time(time: Timestamp) -> Value {
    match timestamp_us_to_datetime(time.0) {
        Some(datetime) => json!(datetime.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()),
        None => json!(format!("{} us", time.0)),
    }
}
