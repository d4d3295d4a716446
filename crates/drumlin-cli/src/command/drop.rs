//! `drop`: tables, by path or pattern.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};

use clap::Args;
use drumlin::{Missing, ReclaimOptions, Store, Tables};

use super::reclaim;
use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures::{bytes, counted};
use crate::interrupt;
use crate::output::Output;
use crate::place::ChangedPlace;
use crate::scope::is_pattern;

/// Drop tables
///
/// One commit drops all of them, or none. Dropped tables are in the trash, from which undrop restores them until a
/// reclaim frees their space.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin drop market.drumlin 'prices/us/**' quotes --missing-ok")]
pub struct Drop {
    #[command(flatten)]
    place: ChangedPlace,
    /// Tables, or patterns with *, ? and ** that match them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// Skip paths and patterns that name no table
    #[arg(long)]
    missing_ok: bool,
    /// Do not ask, even if a pattern matches several tables
    #[arg(long, short)]
    yes: bool,
    /// Free the space of everything in the trash at once; it can then no longer be restored
    #[arg(long)]
    reclaim: bool,
}

/// The maximum number of paths printed.
const PATHS_MAX: usize = 20;

impl Drop {
    /// Drops tables and reports which.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        if !self.yes {
            self.confirm(&store)?;
        }
        let missing = if self.missing_ok { Missing::Ignore } else { Missing::Refuse };
        let report = store.drop_with(&self.paths, missing)?;
        for path in report.paths.iter().take(PATHS_MAX) {
            writeln!(out, "{path}")?;
        }
        if let more @ 1.. = report.paths.len().saturating_sub(PATHS_MAX) {
            writeln!(out, "... and {more} more")?;
        }
        let (tables, versions) = (report.paths.len() as u64, report.versions);
        let (tables, versions) = (counted(tables, "table"), counted(versions, "version"));
        writeln!(out, "{tables} dropped ({versions}, {})", bytes(report.bytes))?;
        if self.reclaim {
            out.flush()?;
            let bar = Bar::new("reclaiming", 0);
            let task = bar.task(&interrupt::listen());
            let report = store.reclaim(&ReclaimOptions { task, ..ReclaimOptions::default() });
            bar.clear();
            let interrupted = "the tables are dropped; drumlin reclaim continues to free their space";
            reclaim::tell(&report.map_err(|e| Failure::from(e).or_interrupted(interrupted))?, out)?;
        }
        Ok(store.close()?)
    }

    /// Asks for confirmation if a pattern matches more than one table and the input is a terminal.
    fn confirm(&self, store: &Store) -> Outcome {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Ok(());
        }
        let mut tables = BTreeSet::new();
        for pattern in self.paths.iter().filter(|path| is_pattern(path)) {
            let matching = store.tree().list(pattern)?.into_iter().filter(|entry| entry.table.is_some());
            tables.extend(matching.map(|entry| entry.path));
        }
        if tables.len() > 1 {
            ask(&format!("drop {}?", counted(tables.len() as u64, "table")))?;
        }
        Ok(())
    }
}

/// Asks for a yes on the terminal.
pub fn ask(question: &str) -> Outcome {
    // A question that cannot be printed counts as answered with no.
    let _ = write!(std::io::stderr(), "drumlin: {question} [y/N] ");
    let mut answer = String::new();
    // An answer that cannot be read counts as no.
    let _ = std::io::stdin().read_line(&mut answer);
    if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Failure::Error("nothing was changed".into()))
}
