//! `versions`: the versions of a table.

use clap::Args;
use drumlin::{Tables, VersionInfo};
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
            return Ok(out.json(&versions.iter().map(object).collect())?);
        }
        let mut grid = Grid::new([
            ("version", Align::Right),
            ("kind", Align::Left),
            ("time", Align::Left),
            ("rows", Align::Right),
            ("added", Align::Right),
            ("removed", Align::Right),
            ("snapshots", Align::Left),
            ("message", Align::Left),
            ("metadata", Align::Left),
        ]);
        for info in versions {
            grid.row([
                info.version.to_string(),
                info.kind.name().to_owned(),
                time(info.time),
                count(info.rows),
                rows(info.turnover.map(|rows| rows.added)),
                rows(info.turnover.map(|rows| rows.removed)),
                info.snapshots.join(", "),
                info.note.message.unwrap_or_default(),
                info.metadata.unwrap_or_default(),
            ]);
        }
        Ok(grid.print(out)?)
    }
}

/// A number of rows, if it is known.
pub fn rows(number: Option<u64>) -> String {
    number.map_or_else(|| "-".to_owned(), count)
}

/// A version in JSON.
pub fn object(info: &VersionInfo) -> Value {
    // Metadata that is not JSON after all is shown as text.
    let note = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
    json!({
        "version": info.version.0, "kind": info.kind.name(), "time": time(info.time), "seq": info.seq.0,
        "rows": info.rows, "rows_added": info.turnover.map(|rows| rows.added),
        "rows_removed": info.turnover.map(|rows| rows.removed), "metadata": info.metadata.as_ref().map(note),
        "message": info.note.message, "writer": info.note.writer,
        "seconds": info.note.duration_micros.map(|micros| micros as f64 / 1e6), "snapshots": info.snapshots,
    })
}
