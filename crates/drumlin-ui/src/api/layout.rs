//! The map: row groups in their blocks, who needs them, and what a checkpoint would do. Rows of numbers, since there may be many.

use drumlin::{
    CellKind, Layout, LayoutCell, LayoutOptions, LayoutTable, NeededBy, Path, Pattern, Reason, Result, TableHome,
};
use serde_json::{Value, json};

use super::context::Context;
use super::show::time;
use crate::query::Query;
use crate::reply::Reply;

/// The cells of one answer.
const CELLS_MAX: u64 = 100_000;

/// How the store, or one table, lies on storage.
pub fn layout(context: &Context, query: &Query) -> Result<Reply> {
    let pattern = query.text("path").map(|path| Path::new(path).map(|path| Pattern::of_path(&path))).transpose()?;
    let cells_max = query.number("cells", 20_000, CELLS_MAX)? as usize;
    let layout = Layout::of(&context.store, &LayoutOptions { pattern, cells_max, ..LayoutOptions::default() })?;
    let blocks = layout.blocks.iter().map(|block| {
        json!({
            "block": block.block, "bytes": block.bytes, "live": block.live_bytes, "inline": block.inline,
            "repacked": block.repacked, "cells": block.cells.iter().map(cell).collect::<Vec<_>>(),
        })
    });
    let holding = layout.holding;
    Ok(Reply::json(&json!({
        "seq": layout.seq.0, "time": layout.time.0, "at": time(layout.time), "complete": layout.complete,
        "row_groups": layout.row_groups, "condemned": layout.condemned, "condemned_bytes": layout.condemned_bytes,
        "holding": {
            "history": holding.history_bytes, "trash": holding.trash_bytes, "readers": holding.pinned_bytes,
            "fragments": holding.fragment_bytes,
        },
        "tables": layout.tables.iter().map(table).collect::<Vec<_>>(), "blocks": blocks.collect::<Vec<_>>(),
    })))
}

fn table(table: &LayoutTable) -> Value {
    let home = match table.home {
        TableHome::Tree => "tree",
        TableHome::Trash => "trash",
        TableHome::Snapshots => "snapshots",
    };
    let plan = table.plan.as_ref().filter(|plan| !plan.windows.is_empty()).map(|plan| {
        let windows = plan.windows.iter().map(|window| {
            json!({
                "reason": reason(window.reason), "inputs": window.inputs.len(), "outputs": window.outputs,
                "first": window.inputs.first().map(|input| input.id.0),
                "last": window.inputs.last().map(|input| input.id.0),
                "rows": window.rows, "dead": window.dead_rows, "written": window.bytes_rewritten(),
                "gained": window.bytes_gained(),
            })
        });
        json!({ "before": plan.groups_before, "after": plan.groups_after(), "windows": windows.collect::<Vec<_>>() })
    });
    json!({ "path": table.path, "home": home, "plan": plan })
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Fold => "fold",
        Reason::Lone => "lone",
        Reason::Merge => "merge",
        Reason::Order => "order",
    }
}

/// In the order that *cells.js* reads.
fn cell(cell: &LayoutCell) -> Value {
    let kind = match cell.kind {
        CellKind::RowGroup => "group",
        CellKind::Below => "below",
        CellKind::History => "history",
        CellKind::Index => "index",
    };
    let (needed, version) = match cell.needed_by {
        NeededBy::Nothing => ("nothing", None),
        NeededBy::Trash => ("trash", None),
        NeededBy::Snapshot(version) => ("snapshot", Some(version.0)),
        NeededBy::Listed(version) => ("version", Some(version.0)),
        NeededBy::Newest(version) => ("newest", Some(version.0)),
    };
    let (planned, window) = cell.planned.map_or((None, None), |(why, window)| (Some(reason(why)), Some(window)));
    json!([
        cell.table,
        kind,
        cell.group,
        cell.bytes,
        cell.rows,
        cell.dead_rows,
        cell.born.0,
        cell.time.map(|time| time.0),
        needed,
        version,
        cell.records,
        planned,
        window
    ])
}
