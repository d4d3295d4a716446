//! `reclaim`: frees space.

use std::io::Write;

use clap::Args;
use drumlin::{Holding, ReclaimOptions, ReclaimReport};
use serde_json::json;

use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures::{bytes, counted, parse_span};
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;

/// Free the space of dropped tables, expired versions and rewritten row groups
///
/// What is reclaimed cannot be restored. Reports what still holds space, and why.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin reclaim market.drumlin --grace 7d")]
pub struct Reclaim {
    #[command(flatten)]
    place: Place,
    /// Tables dropped less than this ago stay in the trash, such as 7d or 12h
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_span)]
    grace: u64,
    /// In a store that others write too: blocks released less than this ago stay for their readers (default: 10m)
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    rest: Option<u64>,
    /// In a store that others write too: processes that have not committed for this long are treated as dead, and what
    /// they left is deleted
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    fence_idle: Option<u64>,
    /// In a store that others write too: also lists all objects, and deletes those that nothing will ever refer to
    #[arg(long)]
    audit: bool,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl Reclaim {
    /// Frees space and reports how much.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        let bar = Bar::new("reclaiming", 0);
        let task = bar.task(&interrupt::listen());
        let (grace_micros, block_grace_micros, fence_idle_micros) = (self.grace, self.rest, self.fence_idle);
        let options = ReclaimOptions { grace_micros, block_grace_micros, fence_idle_micros, audit: self.audit, task };
        let report = store.reclaim(&options);
        bar.clear();
        let interrupted = "part of the space is freed; the next reclaim continues";
        let report = report.map_err(|e| Failure::from(e).or_interrupted(interrupted))?;
        store.close()?;
        if !self.json {
            return tell(&report, out);
        }
        let Holding { trash_bytes, pinned_bytes, fragment_bytes, history_bytes } = report.holding;
        out.json(&json!({
            "tables": report.tables, "blocks": report.blocks, "bytes": report.bytes, "orphans": report.orphans,
            "orphan_bytes": report.orphan_bytes, "failures": report.failures,
            "holding": {
                "trash_bytes": trash_bytes, "pinned_bytes": pinned_bytes, "fragment_bytes": fragment_bytes,
                "history_bytes": history_bytes,
            },
        }))?;
        if report.failures.is_empty() { Ok(()) } else { Err(Failure::Told) }
    }
}

/// Prints a report; objects that could not be deleted make it a failure.
pub fn tell(report: &ReclaimReport, out: &mut Output) -> Outcome {
    writeln!(
        out,
        "{} freed: {} and {}; {} given up",
        bytes(report.bytes + report.orphan_bytes),
        counted(report.blocks, "block"),
        counted(report.orphans, "orphan"),
        counted(report.tables, "table"),
    )?;
    let Holding { trash_bytes, pinned_bytes, fragment_bytes, history_bytes } = report.holding;
    for (held, why) in [
        (trash_bytes, "by dropped tables within the grace"),
        (pinned_bytes, "by readers"),
        (fragment_bytes, "in blocks of which other parts are in use"),
        (history_bytes, "by older versions and snapshots alone"),
    ] {
        if held > 0 {
            writeln!(out, "  still held {why}: {}", bytes(held))?;
        }
    }
    for (object, error) in &report.failures {
        writeln!(out, "  not deleted, left for the next reclaim: {object}: {error}")?;
    }
    if report.failures.is_empty() { Ok(()) } else { Err(Failure::Told) }
}
