//! `verify`: reads every byte and checks it.

use std::io::Write;

use clap::Args;
use drumlin::VerifyOptions;
use serde_json::json;

use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures::{bytes, counted};
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;

/// Check every byte that the store refers to, and that all rows can be read
///
/// Decodes every row group and compares its statistics with its values. Lists what is wrong, and objects that nothing
/// refers to; those are harmless, and a reclaim removes them. Exits with 1 if anything is wrong.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin verify market.drumlin")]
pub struct Verify {
    #[command(flatten)]
    place: Place,
    /// Only check checksums, and decode nothing
    #[arg(long)]
    quick: bool,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// Checks the store and lists what it found.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.read()?;
        let bar = Bar::new("verifying", 0);
        let report = store.verify(&VerifyOptions { deep: !self.quick, task: bar.task(&interrupt::listen()) });
        bar.clear();
        let report = report.map_err(|e| Failure::from(e).or_interrupted("the rest was not checked"))?;
        if self.json {
            let faults = report.faults.iter();
            let faults =
                faults.map(|fault| json!({ "table": fault.table, "row_group": fault.group, "error": fault.error }));
            let orphans = report.orphans.iter().map(|(object, bytes)| json!({ "object": object, "bytes": bytes }));
            out.json(&json!({
                "tables": report.tables, "row_groups": report.groups, "bytes": report.bytes,
                "faults": faults.collect::<Vec<_>>(), "orphans": orphans.collect::<Vec<_>>(),
            }))?;
        } else {
            for fault in &report.faults {
                writeln!(out, "fault: {}, row group {}: {}", fault.table, fault.group, fault.error)?;
            }
            for (object, size) in &report.orphans {
                writeln!(out, "orphan: {object}, {}", bytes(*size))?;
            }
            writeln!(
                out,
                "{}, {}, {} checked: {}, {}",
                counted(report.tables, "table"),
                counted(report.groups, "row group"),
                bytes(report.bytes),
                counted(report.faults.len() as u64, "fault"),
                counted(report.orphans.len() as u64, "orphan"),
            )?;
        }
        if report.faults.is_empty() { Ok(()) } else { Err(Failure::Told) }
    }
}
