//! Figures by name, for the page and for Prometheus. [`metrics`] is the one place that says what there is.

use std::fmt::Write;

use drumlin::{Result, Store};
use serde_json::json;

use crate::reply::Reply;

/// A figure.
struct Metric {
    name: &'static str,
    /// What it is, in a few words.
    help: &'static str,
    /// Whether it only grows.
    counter: bool,
    value: f64,
}

/// The figures of a store.
fn metrics(store: &Store) -> Result<Vec<Metric>> {
    let stat = store.stat()?;
    let gauge = |name, help, value: u64| Metric { name, help, counter: false, value: value as f64 };
    let counter = |name, help, value: u64| Metric { name, help, counter: true, value: value as f64 };
    Ok(vec![
        counter("drumlin_commits_total", "Commits of the store.", stat.seq),
        gauge("drumlin_nodes", "Nodes of the tree.", stat.nodes),
        gauge("drumlin_tables", "Tables in the tree.", stat.tables),
        gauge("drumlin_versions", "Listed versions of all tables.", stat.versions),
        gauge("drumlin_snapshots", "Snapshots.", stat.snapshots),
        gauge("drumlin_trash_tables", "Dropped tables that can be restored.", stat.trash),
        gauge("drumlin_holds", "Leases, and jobs with staged blocks.", stat.holds),
        gauge("drumlin_row_groups", "Row groups of all tables.", stat.row_groups),
        gauge("drumlin_blocks", "Blocks in use on storage.", stat.blocks),
        gauge("drumlin_inline_blocks", "Blocks in the log that wait for a checkpoint.", stat.inline_blocks),
        gauge("drumlin_block_bytes", "Bytes of blocks in use.", stat.block_bytes),
        gauge("drumlin_live_bytes", "Bytes of row groups in use within them.", stat.live_bytes),
        gauge("drumlin_condemned_blocks", "Blocks that wait for a reclaim.", stat.condemned),
        gauge("drumlin_condemned_bytes", "Bytes of those blocks.", stat.condemned_bytes),
        gauge("drumlin_log_bytes", "Bytes of the log and catalog snapshots.", stat.log_bytes),
        gauge(
            "drumlin_memtable_bytes",
            "Memory of rows written by key that wait for a checkpoint.",
            stat.memtable_bytes,
        ),
        gauge("drumlin_cache_bytes", "Encoded data in the cache of this process.", stat.cache.bytes),
        counter("drumlin_cache_hits_total", "Reads that found their bytes in the cache.", stat.cache.hits),
        counter("drumlin_cache_misses_total", "Reads that did not.", stat.cache.misses),
    ])
}

/// For the page.
pub fn json(store: &Store) -> Result<Reply> {
    let figures = metrics(store)?;
    let figures = figures.iter().map(
        |metric| json!({ "name": metric.name, "help": metric.help, "counter": metric.counter, "value": metric.value }),
    );
    Ok(Reply::json(&json!({ "metrics": figures.collect::<Vec<_>>() })))
}

/// For Prometheus, in its text format.
pub fn text(store: &Store) -> Result<Reply> {
    let mut text = String::new();
    for Metric { name, help, counter, value } in metrics(store)? {
        let kind = if counter { "counter" } else { "gauge" };
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    }
    Ok(Reply::text("text/plain; version=0.0.4; charset=utf-8", text))
}
