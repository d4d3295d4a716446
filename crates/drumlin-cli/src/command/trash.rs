//! `trash`: lists tables that can be restored.

use clap::Args;
use serde_json::json;

use crate::failure::Outcome;
use crate::figures::{bytes, count, time};
use crate::grid::{Align, Grid};
use crate::output::Output;
use crate::place::Place;

/// List dropped tables that undrop can restore, the oldest drop first
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin trash market.drumlin")]
pub struct Trash {
    #[command(flatten)]
    place: Place,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl Trash {
    /// Prints one line per table.
    pub fn run(self, out: &mut Output) -> Outcome {
        let items = self.place.read()?.trash()?;
        if self.json {
            let items = items.iter().map(
                |item| json!({ "path": item.path, "dropped": time(item.time), "rows": item.rows, "bytes": item.bytes }),
            );
            return Ok(out.json(&items.collect())?);
        }
        let mut grid = Grid::new([
            ("table", Align::Left),
            ("dropped", Align::Left),
            ("rows", Align::Right),
            ("size", Align::Right),
        ]);
        items.into_iter().for_each(|item| grid.row([item.path, time(item.time), count(item.rows), bytes(item.bytes)]));
        if grid.len() > 0 {
            grid.print(out)?;
        }
        Ok(())
    }
}
