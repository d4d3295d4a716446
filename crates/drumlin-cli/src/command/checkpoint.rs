//! `checkpoint`: tidies the whole store.

use std::io::Write;

use clap::Args;
use drumlin::{CheckpointOptions, PlanOptions, Store};
use serde_json::json;

use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures::{bytes, count, counted};
use crate::interrupt;
use crate::output::{Output, say};
use crate::place::Place;

/// Remove deleted rows and expired versions, merge small row groups, and shorten the log
///
/// Changes layout, never content. A reclaim then frees the space.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin checkpoint market.drumlin && drumlin reclaim market.drumlin")]
pub struct Checkpoint {
    #[command(flatten)]
    place: Place,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl Checkpoint {
    /// Runs the checkpoint and reports what it did.
    pub fn run(self, out: &mut Output) -> Outcome {
        run(&self.place.write()?, PlanOptions::default(), self.json, out)
    }
}

/// Checkpoints according to `plan`, prints the report and closes the store.
pub fn run(store: &Store, plan: PlanOptions, json: bool, out: &mut Output) -> Outcome {
    let bar = Bar::new("checkpoint", 0);
    let report = store.checkpoint(&CheckpointOptions {
        plan,
        task: bar.task(&interrupt::listen()),
        ..CheckpointOptions::default()
    });
    bar.clear();
    let report = report.map_err(|e| Failure::from(e).or_interrupted("the content is unchanged"))?;
    store.close()?;
    for failure in &report.failures {
        say(format_args!("left as it is: {failure}"));
    }
    if json {
        return Ok(out.json(&json!({
            "tables": report.tables, "groups_before": report.groups_before, "groups_after": report.groups_after,
            "rows_removed": report.rows_removed, "groups_moved": report.groups_moved,
            "bytes_written": report.bytes_written, "rows_flushed": report.rows_flushed,
            "rows_expired": report.rows_expired, "versions_expired": report.versions_expired, "windows_void": report.windows_void,
            "index_runs": report.index_runs,
            "failures": report.failures,
        }))?);
    }
    let flushed = match report.rows_flushed {
        0 => String::new(),
        rows => format!(" {} flushed,", counted(rows, "row")),
    };
    writeln!(
        out,
        "{} -> {};{flushed} {} rewritten, {} removed, {} written, {} expired",
        counted(report.groups_before, "row group"),
        count(report.groups_after),
        counted(report.tables, "table"),
        counted(report.rows_removed, "row"),
        bytes(report.bytes_written),
        counted(report.versions_expired, "version"),
    )?;
    Ok(())
}
