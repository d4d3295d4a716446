//! `versions`: the versions of a table.

use clap::Args;
use drumlin::Tables;
use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::figures::{count, time};
use crate::grid::{Align, Grid};
use crate::output::Output;
use crate::place::Place;

/// List the versions of a table, the oldest first
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin versions market.drumlin prices/us/aapl")]
pub struct Versions {
    #[command(flatten)]
    place: Place,
    /// The table
    table: String,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl Versions {
    /// Prints one line per version.
    pub fn run(self, out: &mut Output) -> Outcome {
        let versions = self.place.read()?.table(&self.table).versions()?;
        if self.json {
            let versions = versions.iter().map(|info| {
                // Metadata that is not JSON after all is shown as text.
                let note = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
                json!({
                    "version": info.version.0, "kind": info.kind.name(), "time": time(info.time), "seq": info.seq.0,
                    "rows": info.rows, "metadata": info.metadata.as_ref().map(note), "snapshots": info.snapshots,
                })
            });
            return Ok(out.json(&versions.collect())?);
        }
        let mut grid = Grid::new([
            ("version", Align::Right),
            ("kind", Align::Left),
            ("time", Align::Left),
            ("rows", Align::Right),
            ("snapshots", Align::Left),
            ("metadata", Align::Left),
        ]);
        for info in versions {
            grid.row([
                info.version.to_string(),
                info.kind.name().to_owned(),
                time(info.time),
                count(info.rows),
                info.snapshots.join(", "),
                info.metadata.unwrap_or_default(),
            ]);
        }
        Ok(grid.print(out)?)
    }
}
