//! `copy` and `move`: subtrees and tables in other places, without data being written; `copy-to`: tables in other stores.

use std::io::Write;

use clap::Args;
use drumlin::{CopyReport, CopyToOptions, CopyToReport, Existing, Tables as _};
use serde_json::json;

use crate::as_of;
use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures::{bytes, counted};
use crate::interrupt;
use crate::output::Output;
use crate::place::{ChangedPlace, Place};

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
    #[arg(long, value_name = "VERSION|TIME|SNAPSHOT", allow_negative_numbers = true)]
    as_of: Option<String>,
    /// Give tables that are there a version with the rows of the others, and replace payloads, instead of refusing
    #[arg(long)]
    replace: bool,
}

/// Copy tables to another store, with their versions
///
/// Data is checked when it is read, and read again where it was written. Tables that are there already, with the same
/// versions, are passed over, so a copy that was interrupted is done again. What nodes carry, and snapshots, are not copied.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin copy-to market.drumlin s3://bucket/backup 'prices/**'")]
pub struct CopyTo {
    #[command(flatten)]
    place: Place,
    /// The other store: a folder, or s3://bucket/prefix (gs://, az://); it is created if it does not exist
    #[arg(value_name = "OTHER")]
    other: String,
    /// The tables: paths and patterns with *, ? and **
    #[arg(default_value = "**")]
    pattern: String,
    /// Copy only the newest version of each table
    #[arg(long)]
    newest: bool,
    /// Send tables that are there and show something else to the trash, instead of refusing
    #[arg(long)]
    replace: bool,
    /// Note TEXT with the commits there
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl CopyTo {
    /// Copies.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.read()?;
        if self.pattern != "**" && store.tables(self.pattern.as_str())?.is_empty() {
            return Err(Failure::Error(format!(
                "no table matches '{}'; expected copy-to STORE OTHER PATTERN",
                self.pattern
            )));
        }
        let other = self.place.other(&self.other)?;
        let other = other.with_message(self.message.as_deref().unwrap_or_default())?;
        let bar = Bar::new("copying", 0);
        let task = bar.task(&interrupt::listen());
        let options = CopyToOptions { newest_only: self.newest, replace: self.replace, task };
        let report = store.copy_to(&other, self.pattern.as_str(), &options);
        bar.clear();
        let report = report.map_err(|e| Failure::from(e).or_interrupted("run the same command again to continue"))?;
        let CopyToReport { tables, present, row_groups, bytes: copied } = report;
        other.close()?;
        if self.json {
            let report = json!({ "tables": tables, "present": present, "row_groups": row_groups, "bytes": copied });
            return Ok(out.json(&report)?);
        }
        let (new, there) = (counted(tables.len() as u64, "table"), present.len());
        Ok(writeln!(
            out,
            "{new} copied, {there} there already; {} in {}",
            bytes(copied),
            counted(row_groups, "row group")
        )?)
    }
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
        let report =
            store.copy(&self.from, &self.to, &as_of::resolve(self.as_of.as_deref()), existing(self.replace))?;
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
