//! Figures of the store, and what is known of a table: its columns, order, constraints and versions.

use drumlin::{Activity, AsOf, DatasetOptions, Path, Pattern, Result, ScanOptions, Tables, TypeName, VersionInfo};
use serde_json::{Value, json};

use super::asked::as_of;
use super::context::Context;
use super::show::{display_text, kind, retention, time};
use crate::query::Query;
use crate::reply::Reply;

/// The versions of one answer.
const VERSIONS_MAX: u64 = 500;
/// The snapshots of one answer.
const SNAPSHOTS_MAX: usize = 200;

/// Figures of the store.
pub fn store(context: &Context) -> Result<Reply> {
    let store = &context.store;
    let stat = store.stat()?;
    Ok(Reply::json(&json!({
        "uri": store.uri(), "write": context.write, "version": env!("CARGO_PKG_VERSION"), "seq": stat.seq,
        "nodes": stat.nodes, "tables": stat.tables, "trash": stat.trash, "snapshots": stat.snapshots,
        "versions": stat.versions, "row_groups": stat.row_groups, "blocks": stat.blocks, "bytes": stat.bytes(),
        "block_bytes": stat.block_bytes, "live_bytes": stat.live_bytes, "condemned_bytes": stat.condemned_bytes,
        "log_bytes": stat.log_bytes, "memtable_bytes": stat.memtable_bytes,
        "retention": retention(store.retention("**")?),
    })))
}

/// What is known of a table, as of the version that is asked for.
pub fn table(context: &Context, query: &Query) -> Result<Reply> {
    let (path, as_of) = (query.need("path")?, as_of(query, "as_of")?);
    let table = context.store.table(path);
    let (mut stat, schema, constraints) = (table.stat()?, table.schema(&as_of)?, table.constraints(&as_of)?);
    if !matches!(as_of, AsOf::Newest) {
        let pattern = Pattern::of_path(&Path::new(path)?);
        let of = |as_of: AsOf| context.store.scan(pattern.clone(), &DatasetOptions { as_of, path_columns: Vec::new() });
        let (dataset, newest) = (of(as_of.clone())?, of(AsOf::Newest)?);
        let numbers = [&dataset, &newest].map(|of| of.versions().first().and_then(|of| Some((*of)?.version)));
        if numbers[0] != numbers[1] || stat.memory_keys > 0 {
            // What would be read of it. The size is that of its columns, without the directories of its row groups.
            let plan = dataset.plan(&ScanOptions::default())?.total;
            (stat.row_groups, stat.bytes) = (plan.row_groups, plan.bytes);
            stat.rows = dataset.count_rows(&ScanOptions::default())?;
            (stat.memory_keys, stat.memory_bytes) = (0, 0);
        }
        stat.sort.retain(|column| schema.field_with_name(column).is_ok());
    }
    let columns = schema.fields().iter().map(|field| {
        json!({
            "name": field.name(), "type": TypeName(field.data_type()).to_string(), "kind": kind(field.data_type()),
            "nullable": field.is_nullable(),
        })
    });
    let mut defaults = Vec::with_capacity(constraints.defaults.len());
    for (name, value) in &constraints.defaults {
        defaults.push(json!([name, display_text(value, 0)?]));
    }
    defaults.extend(constraints.generators.iter().map(|(name, made)| json!([name, made.to_string()])));
    let indexes = table.indexes()?.into_iter().map(|index| {
        json!({
            "name": index.name, "columns": index.columns, "where": index.condition, "entries": index.entries,
            "bytes": index.bytes, "covered": index.covered, "row_groups": index.row_groups,
        })
    });
    Ok(Reply::json(&json!({
        "path": path, "rows": stat.rows, "stored_rows": stat.stored_rows, "versions": stat.versions,
        "row_groups": stat.row_groups, "bytes": stat.bytes, "sort": stat.sort, "keyed": stat.keyed,
        "memory_keys": stat.memory_keys, "memory_bytes": stat.memory_bytes,
        "retention": retention(context.store.retention(path)?), "columns": columns.collect::<Vec<_>>(),
        "checks": constraints.checks, "not_null": constraints.not_null, "defaults": defaults,
        "indexes": indexes.collect::<Vec<_>>(),
        "ttl": table.ttl(&as_of)?.map(|ttl| json!({ "column": ttl.column, "after_micros": ttl.after_micros })),
    })))
}

/// Whether there is a table at a path, and when the last one that was dropped there went to the trash.
pub fn whereabouts(context: &Context, query: &Query) -> Result<Reply> {
    let path = query.need("path")?;
    let dropped = context.store.trash()?.iter().filter(|item| item.path == path).map(|item| item.time).max();
    Ok(Reply::json(&json!({ "exists": context.store.table(path).exists()?, "dropped": dropped.map(time) })))
}

/// The versions of a table, the newest first, and the snapshots that hold it.
pub fn versions(context: &Context, query: &Query) -> Result<Reply> {
    let path = query.need("path")?;
    let mut versions = context.store.table(path).versions()?;
    versions.reverse();
    let total = versions.len();
    let offset = usize::try_from(query.number("offset", 0, u64::MAX)?).unwrap_or(usize::MAX);
    let limit = query.number("limit", 200, VERSIONS_MAX)? as usize;
    let part: Vec<Value> = versions.iter().skip(offset).take(limit).map(version).collect();
    let held = Activity::snapshots(&context.store, Some(path))?;
    let held = held.iter().take(SNAPSHOTS_MAX).map(|snapshot| {
        json!({ "name": snapshot.name, "time": time(snapshot.time), "version": snapshot.version.map(|version| version.0) })
    });
    let held: Vec<Value> = held.collect();
    Ok(Reply::json(&json!({ "total": total, "versions": part, "snapshots": held })))
}

/// A version.
pub fn version(info: &VersionInfo) -> Value {
    json!({
        "version": info.version.0, "seq": info.seq.0, "time": time(info.time), "kind": info.kind.name(),
        "rows": info.rows, "added": info.turnover.map(|rows| rows.added),
        "removed": info.turnover.map(|rows| rows.removed), "message": info.note.message, "writer": info.note.writer,
        "duration_micros": info.note.duration_micros, "snapshots": info.snapshots, "metadata": info.metadata,
    })
}
