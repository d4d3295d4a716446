//! `copy` and `move`: subtrees and tables in other places, without data being written.

use std::io::Write;

use clap::Args;
use drumlin::{CopyReport, Existing, Tables as _};

use crate::as_of;
use crate::failure::Outcome;
use crate::figures::counted;
use crate::output::Output;
use crate::place::ChangedPlace;

/// Copy a subtree, or the tables that a pattern matches; the copies share the data
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin copy market.drumlin prices branches/try
  drumlin copy market.drumlin 'prices/*/close' 'eod/*' --as-of eod")]
pub struct Copy {
    #[command(flatten)]
    place: ChangedPlace,
    /// A path, with everything below it, or a pattern of tables
    from: String,
    /// Where to; for a pattern, with as many wildcards
    to: String,
    /// Only tables, and of each one version: a number, a time or a snapshot's name
    #[arg(long, value_name = "VERSION|TIME|SNAPSHOT")]
    as_of: Option<String>,
    /// Give tables that are there a version with the rows of the others, and replace payloads, instead of refusing
    #[arg(long)]
    replace: bool,
}

/// Move a subtree, or the tables that a pattern matches
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin move market.drumlin draft/prices prices")]
pub struct Move {
    #[command(flatten)]
    place: ChangedPlace,
    /// A path, with everything below it, or a pattern of tables
    from: String,
    /// Where to; for a pattern, with as many wildcards
    to: String,
    /// Give tables that are there a version with the rows of the others, and replace payloads, instead of refusing
    #[arg(long)]
    replace: bool,
}

impl Copy {
    /// Copies.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        let report = store.copy(
            &self.from,
            &self.to,
            &as_of::resolve(&store, self.as_of.as_deref())?,
            existing(self.replace),
        )?;
        store.close()?;
        told(out, &report, "copied")
    }
}

impl Move {
    /// Moves.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        let report = store.relocate(&self.from, &self.to, existing(self.replace))?;
        store.close()?;
        told(out, &report, "moved")
    }
}

fn existing(replace: bool) -> Existing {
    if replace { Existing::Replace } else { Existing::Refuse }
}

fn told(out: &mut Output, report: &CopyReport, done: &str) -> Outcome {
    for (from, to) in &report.tables {
        writeln!(out, "{from} -> {to}")?;
    }
    let tables = counted(report.tables.len() as u64, "table");
    Ok(writeln!(out, "{tables} and {} {done}", counted(report.payloads, "payload"))?)
}
