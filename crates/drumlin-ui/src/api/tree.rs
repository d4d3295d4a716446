//! The tree, as a list of nodes in path order of which the page asks for a part at a time. Figures are found only for the tables of
//! that part.

use drumlin::{Content, Payload, Result, Tables};
use serde_json::{Value, json};

use super::context::Context;
use super::listing::{Folding, Node};
use super::show::time;
use crate::query::Query;
use crate::reply::Reply;

/// The nodes of one answer.
const PART_MAX: u64 = 500;
/// The bytes of a payload that are shown in a list.
const PAYLOAD_BYTES_MAX: usize = 120;

/// A part of the tree.
pub fn tree(context: &Context, query: &Query) -> Result<Reply> {
    // A store with many tables opens folded, and then the paths that are not folded are the fewer ones.
    let all = query.get("fold") == Some("all");
    let except = query.all(if all { "unfolded" } else { "folded" }).map(str::to_owned).collect();
    let filter = query.get("filter").unwrap_or_default();
    let listing = context.listings.of(&context.store, filter, Folding { all, except })?;
    let offset = query.number("offset", 0, u64::MAX)?;
    let limit = query.number("limit", 200, PART_MAX)? as usize;
    let part = listing.shown.iter().skip(usize::try_from(offset).unwrap_or(usize::MAX)).take(limit);
    let nodes = part.map(|at| describe(context, &listing.names.nodes[*at as usize])).collect::<Vec<_>>();
    Ok(Reply::json(&json!({
        "seq": listing.names.seq, "total": listing.shown.len(), "matches": listing.matches, "offset": offset,
        "nodes": nodes, "at": query.text("at").and_then(|path| listing.place(path)),
    })))
}

fn describe(context: &Context, node: &Node) -> Value {
    let mut told = json!({
        "path": node.path, "depth": node.depth, "children": node.children, "table": node.table,
        "payload": node.payload, "tables": node.tables,
    });
    if node.table {
        // It may have been dropped since.
        match context.store.table(&node.path).stat() {
            Ok(stat) => {
                told["rows"] = json!(stat.rows);
                told["bytes"] = json!(stat.bytes);
                told["versions"] = json!(stat.versions);
                told["keyed"] = json!(stat.keyed);
            }
            Err(e) => told["error"] = json!(e.message()),
        }
    }
    told
}

/// A node and its payload.
pub fn node(context: &Context, query: &Query) -> Result<Reply> {
    let path = query.need("path")?;
    let node = context.store.tree().node(path)?;
    let node = node.ok_or_else(|| drumlin::Error::not_found(format!("there is no node at '{path}'")))?;
    Ok(Reply::json(&json!({
        "path": path, "table": node.table, "children": node.children, "seq": node.seq.0,
        "payload_version": node.payload_version, "payload": node.payload.as_ref().map(payload),
        "presence": node.presence, "expires": node.expires.map(time),
    })))
}

/// A payload as text: JSON, or bytes as `b"..."` with escapes.
pub fn payload(payload: &Payload) -> String {
    match payload.content() {
        Content::Json(value) => value.to_json().to_string(),
        Content::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
    }
}

/// The beginning of a payload.
pub fn short_payload(of: &Payload) -> String {
    let mut text = payload(of);
    if text.len() > PAYLOAD_BYTES_MAX {
        let end = (0..=PAYLOAD_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}
