//! Metrics, for the page and for Prometheus: what the store counts of its work, and figures about what it holds.

use drumlin::{Metric, MetricValue, Result, Store, prometheus};
use serde_json::{Value, json};

use crate::reply::Reply;

/// All metrics of a store.
fn metrics(store: &Store) -> Result<Vec<Metric>> {
    let stat = store.stat()?;
    let mut all = drumlin::metrics(store)?;
    let mut gauge = |name, help, value| {
        all.push(Metric { name, help, label: None, value: MetricValue::Gauge(value) });
    };
    gauge("drumlin_nodes", "Nodes of the tree.", stat.nodes);
    gauge("drumlin_tables", "Tables in the tree.", stat.tables);
    gauge("drumlin_versions", "Listed versions of all tables.", stat.versions);
    gauge("drumlin_snapshots", "Snapshots.", stat.snapshots);
    gauge("drumlin_trash_tables", "Dropped tables that can be restored.", stat.trash);
    gauge("drumlin_holds", "Leases, and jobs with staged blocks.", stat.holds);
    gauge("drumlin_row_groups", "Row groups of all tables.", stat.row_groups);
    gauge("drumlin_blocks", "Blocks in use on storage.", stat.blocks);
    gauge("drumlin_inline_blocks", "Blocks in the log that wait for a checkpoint.", stat.inline_blocks);
    gauge("drumlin_block_bytes", "Bytes of blocks in use.", stat.block_bytes);
    gauge("drumlin_live_bytes", "Bytes of row groups in use within them.", stat.live_bytes);
    gauge("drumlin_condemned_blocks", "Blocks that wait for a reclaim.", stat.condemned);
    gauge("drumlin_condemned_bytes", "Bytes of those blocks.", stat.condemned_bytes);
    gauge("drumlin_log_and_catalog_bytes", "Bytes of the log and catalog snapshots.", stat.log_bytes);
    Ok(all)
}

/// A metric for the page: of durations how many there were, and their mean in seconds.
fn shown(metric: &Metric) -> Value {
    let name = match metric.label {
        Some((key, value)) => format!("{}{{{key}=\"{value}\"}}", metric.name),
        None => metric.name.to_owned(),
    };
    let (kind, value, mean) = match &metric.value {
        MetricValue::Counter(value) => ("counter", *value, None),
        MetricValue::Gauge(value) => ("gauge", *value, None),
        MetricValue::Histogram { count, sum, .. } => ("durations", *count, (*count > 0).then(|| sum / *count as f64)),
    };
    json!({ "name": name, "help": metric.help, "kind": kind, "value": value, "mean": mean })
}

/// For the page.
pub fn json(store: &Store) -> Result<Reply> {
    let metrics: Vec<Value> = metrics(store)?.iter().map(shown).collect();
    Ok(Reply::json(&json!({ "metrics": metrics })))
}

/// For Prometheus, in its text format.
pub fn text(store: &Store) -> Result<Reply> {
    Ok(Reply::text("text/plain; version=0.0.4; charset=utf-8", prometheus(&metrics(store)?)))
}
