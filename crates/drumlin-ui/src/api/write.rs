//! The two changes that the page can make, on a server that was started to write.

use drumlin::{CheckpointOptions, Error, Result, Task};
use serde_json::{Value, json};

use super::context::Context;
use crate::reply::Reply;

/// Runs a checkpoint to its end, even if nobody waits for it.
pub fn checkpoint(context: &Context) -> Result<Reply> {
    let task = Task { cancel: context.closing.clone(), progress: None };
    let report = context.store.checkpoint(&CheckpointOptions { task, ..CheckpointOptions::default() })?;
    Ok(Reply::json(&json!({
        "text": report.to_string(), "tables": report.tables, "groups_before": report.groups_before,
        "groups_after": report.groups_after, "rows_removed": report.rows_removed, "rows_flushed": report.rows_flushed,
        "groups_moved": report.groups_moved, "bytes_written": report.bytes_written,
        "rows_expired": report.rows_expired, "versions_expired": report.versions_expired, "failures": report.failures,
    })))
}

/// Restores the table last dropped from `path`, at the path `to` if there is one.
pub fn undrop(context: &Context, body: &Value) -> Result<Reply> {
    let path = body["path"].as_str().ok_or_else(|| Error::invalid("the request has no 'path', which is required"))?;
    let to = body["to"].as_str().filter(|to| !to.is_empty());
    context.store.undrop(path, to)?;
    Ok(Reply::json(&json!({ "path": to.unwrap_or(path) })))
}
