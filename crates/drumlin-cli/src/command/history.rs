//! `history`: what happened to tables.

use clap::Args;
use drumlin::Tables;

use super::versions::{object, rows};
use crate::failure::Outcome;
use crate::figures::{count, time};
use crate::grid::{Align, Grid};
use crate::output::Output;
use crate::place::Place;

/// Show what happened to tables, the newest first
///
/// Each line is a version of a table: what made it, and how many rows it added and removed; a row that was changed counts
/// as both. Rows written by key are counted once a checkpoint has written them to blocks.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin history market.drumlin 'prices/**' --limit 20")]
pub struct History {
    #[command(flatten)]
    place: Place,
    /// The tables: paths and patterns with *, ? and **
    #[arg(default_value = "**")]
    pattern: String,
    /// Show at most N versions
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl History {
    /// Prints one line per version.
    pub fn run(self, out: &mut Output) -> Outcome {
        let history = self.place.read()?.history(self.pattern.as_str(), Some(self.limit))?;
        if self.json {
            let object = |(path, info)| {
                let mut object = object(&info);
                object["path"] = serde_json::Value::from(path);
                object
            };
            return Ok(out.json(&history.into_iter().map(object).collect())?);
        }
        let mut grid = Grid::new([
            ("time", Align::Left),
            ("table", Align::Left),
            ("version", Align::Right),
            ("kind", Align::Left),
            ("added", Align::Right),
            ("removed", Align::Right),
            ("rows", Align::Right),
            ("writer", Align::Left),
            ("message", Align::Left),
        ]);
        for (path, info) in history {
            grid.row([
                time(info.time),
                path,
                info.version.to_string(),
                info.kind.name().to_owned(),
                rows(info.turnover.map(|rows| rows.added)),
                rows(info.turnover.map(|rows| rows.removed)),
                count(info.rows),
                info.note.writer.unwrap_or_default(),
                info.note.message.unwrap_or_default(),
            ]);
        }
        if grid.len() > 0 {
            grid.print(out)?;
        }
        Ok(())
    }
}
