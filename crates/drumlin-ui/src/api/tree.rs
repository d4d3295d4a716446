//! The tree, as a list of nodes in path order of which the page asks for a part at a time.
//!
//! The names of all nodes are kept as long as no commit comes; so is the list that the last filter and the last folded nodes gave.
//! Figures are found only for the tables of the part that is asked for.

use std::collections::HashSet;
use std::sync::Arc;

use drumlin::catalog::{Content, Payload};
use drumlin::{Result, Tables};
use serde_json::{Value, json};

use super::Context;
use crate::query::Query;
use crate::reply::Reply;

/// The nodes of one answer.
const PART_MAX: u64 = 500;
/// The bytes of a payload that are shown in a list.
const PAYLOAD_BYTES_MAX: usize = 120;

/// The names of all nodes at a commit.
pub struct Names {
    seq: u64,
    nodes: Vec<Node>,
}

struct Node {
    path: String,
    /// For filters.
    lower: Option<String>,
    depth: u32,
    table: bool,
    payload: bool,
    children: u64,
    /// Tables at and below it.
    tables: u32,
}

/// The nodes that are shown: places among the names.
pub struct Listing {
    names: Arc<Names>,
    filter: String,
    folded: Vec<String>,
    shown: Vec<u32>,
    matches: usize,
}

/// The names at the newest commit.
fn names(context: &Context) -> Result<Arc<Names>> {
    let seq = context.store.seq()?.0;
    if let Some(names) = context.names.lock().as_ref().filter(|names| names.seq == seq) {
        return Ok(names.clone());
    }
    let mut nodes: Vec<Node> = Vec::new();
    context.store.tree().for_each("**", |path, node| {
        let lower = path.to_lowercase();
        nodes.push(Node {
            lower: (lower != path).then_some(lower),
            path: path.to_owned(),
            depth: path.bytes().filter(|byte| *byte == b'/').count() as u32,
            table: node.table,
            payload: node.payload.is_some(),
            children: node.children,
            tables: u32::from(node.table),
        });
    })?;
    // From the last: all below a node come after it.
    let mut above: Vec<usize> = Vec::new();
    for at in 0..nodes.len() {
        above.truncate(nodes[at].depth as usize);
        if nodes[at].table {
            above.iter().for_each(|above| nodes[*above].tables += 1);
        }
        above.push(at);
    }
    let names = Arc::new(Names { seq, nodes });
    *context.names.lock() = Some(names.clone());
    Ok(names)
}

/// The nodes that match `filter`, with those above them; without one those that no folded node hides.
fn listing(context: &Context, filter: &str, folded: Vec<String>) -> Result<Arc<Listing>> {
    let names = names(context)?;
    let same = |listing: &&Arc<Listing>| {
        Arc::ptr_eq(&listing.names, &names) && listing.filter == filter && listing.folded == folded
    };
    if let Some(listing) = context.listing.lock().as_ref().filter(same) {
        return Ok(listing.clone());
    }
    let mut shown = Vec::new();
    let mut matches = 0;
    if filter.is_empty() {
        let hiding: HashSet<&str> = folded.iter().map(String::as_str).collect();
        let mut hidden_below = None;
        for (at, node) in (0..).zip(&names.nodes) {
            if hidden_below.is_some_and(|depth| node.depth > depth) {
                continue;
            }
            hidden_below = hiding.contains(node.path.as_str()).then_some(node.depth);
            shown.push(at);
        }
        matches = names.nodes.len();
    } else {
        let filter = filter.to_lowercase();
        let mut above: Vec<(u32, bool)> = Vec::new();
        for (at, node) in (0..).zip(&names.nodes) {
            above.truncate(node.depth as usize);
            above.push((at, false));
            if node.lower.as_ref().unwrap_or(&node.path).contains(&filter) {
                matches += 1;
                shown.extend(above.iter().filter(|(_, listed)| !listed).map(|(at, _)| *at));
                above.iter_mut().for_each(|(_, listed)| *listed = true);
            }
        }
    }
    let listing = Arc::new(Listing { names, filter: filter.to_owned(), folded, shown, matches });
    *context.listing.lock() = Some(listing.clone());
    Ok(listing)
}

/// A part of the tree.
pub fn tree(context: &Context, query: &Query) -> Result<Reply> {
    let folded = query.all("folded").map(str::to_owned).collect();
    let listing = listing(context, query.get("filter").unwrap_or_default(), folded)?;
    let offset = query.number("offset", 0, u64::MAX)?;
    let limit = query.number("limit", 200, PART_MAX)? as usize;
    let part = listing.shown.iter().skip(usize::try_from(offset).unwrap_or(usize::MAX)).take(limit);
    let nodes = part.map(|at| describe(context, &listing.names.nodes[*at as usize])).collect::<Vec<_>>();
    Ok(Reply::json(&json!({
        "seq": listing.names.seq, "total": listing.shown.len(), "matches": listing.matches, "offset": offset,
        "nodes": nodes,
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
    let node = node.ok_or_else(|| drumlin::Error::not_found(format!("no node at '{path}'")))?;
    Ok(Reply::json(&json!({
        "path": path, "table": node.table, "children": node.children, "seq": node.seq.0,
        "payload_version": node.payload_version, "payload": node.payload.as_ref().map(payload),
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
