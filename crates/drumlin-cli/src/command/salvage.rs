//! `salvage`: copies what can be read from a damaged store into a new one.

use std::io::Write;

use clap::Args;
use drumlin::{Loss, LostRows};
use serde_json::json;

use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures::{bytes, counted};
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;

/// Copy everything that can be read from a damaged store into a new one
///
/// Lists what could not be read, and why. The damaged store is not changed; nothing should write to it during the salvage.
/// Exits with 1 if anything is lost.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin salvage market.drumlin market-salvaged.drumlin")]
pub struct Salvage {
    #[command(flatten)]
    place: Place,
    /// Where the new store goes: a folder that is empty or does not exist, or s3://bucket/prefix (gs://, az://)
    #[arg(value_name = "NEW")]
    new: String,
    /// If the new store is a folder, make it one that many processes can write
    #[arg(long)]
    shared: bool,
    /// Where the log is, if it is on a server that was moved to another address
    #[arg(long, value_name = "ADDRESS")]
    log: Option<String>,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl Salvage {
    /// Copies the store and lists what is lost.
    pub fn run(self, out: &mut Output) -> Outcome {
        let bar = Bar::new("salvaging", 0);
        let report = self.place.salvage(&self.new, self.shared, self.log.clone(), &bar.task(&interrupt::listen()));
        bar.clear();
        let report = report.map_err(|e| e.or_interrupted("the new store is incomplete; remove it"))?;
        if self.json {
            let rows = |LostRows { version, first, rows }: &LostRows| json!([version.0, first, rows]);
            let loss = |loss: &Loss| {
                json!({
                    "kind": loss.kind.name(), "path": loss.path, "until": loss.until,
                    "commits": loss.commits.map(|(first, last)| [first.0, last.0]), "row_group": loss.group,
                    "versions": loss.versions.iter().map(rows).collect::<Vec<_>>(), "why": loss.why,
                })
            };
            out.json(&json!({
                "commit": report.seq.0, "tables": report.tables, "row_groups": report.groups, "bytes": report.bytes,
                "nodes": report.nodes, "losses": report.losses.iter().map(loss).collect::<Vec<_>>(),
            }))?;
        } else {
            for loss in &report.losses {
                writeln!(out, "{loss}")?;
            }
            writeln!(
                out,
                "up to commit {}: {}, {}, {}, {} kept; {}",
                report.seq,
                counted(report.tables, "table"),
                counted(report.groups, "row group"),
                bytes(report.bytes),
                counted(report.nodes, "node"),
                if report.losses.is_empty() {
                    "nothing is lost".to_owned()
                } else {
                    counted(report.losses.len() as u64, "thing") + " wrong or lost, listed above"
                },
            )?;
        }
        if report.losses.is_empty() { Ok(()) } else { Err(Failure::Told) }
    }
}
