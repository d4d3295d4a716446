//! `delete`: rows, by a filter.

use std::io::Write;

use clap::Args;
use drumlin::{Tables, Task, UpdateOptions};

use crate::failure::Outcome;
use crate::figures::{self, counted};
use crate::interrupt;
use crate::output::Output;
use crate::place::ChangedPlace;

/// Delete rows, in a new version of the table
///
/// Earlier versions keep the rows. Space is freed once no version has them: see delete-versions, vacuum and reclaim.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin delete market.drumlin prices/us/aapl --where 'volume = 0'")]
pub struct Delete {
    #[command(flatten)]
    place: ChangedPlace,
    /// The table
    table: String,
    /// Which rows, as in SQL
    #[arg(long = "where", short = 'w', value_name = "FILTER")]
    filter: String,
    /// A note kept with the new version
    #[arg(long, value_name = "JSON", value_parser = figures::parse_json)]
    metadata: Option<String>,
}

impl Delete {
    /// Deletes rows and reports how many.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        let task = Task { cancel: interrupt::listen(), progress: None };
        let report = store.table(&self.table).delete(&self.filter, &UpdateOptions { metadata: self.metadata, task })?;
        store.close()?;
        let newest = report.version.expect("a store numbers versions at once");
        let (version, left) = (newest.version, counted(newest.rows, "row"));
        match report.rows {
            0 => writeln!(out, "no row matches; version {version} with {left} stays the newest")?,
            rows => writeln!(out, "{} deleted; version {version} has {left}", counted(rows, "row"))?,
        }
        Ok(())
    }
}
