//! `schema`: the columns of a table.

use drumlin::{Tables, TypeName};
use std::io::Write;

use clap::Args;
use serde_json::json;

use crate::as_of;
use crate::failure::Outcome;
use crate::grid::{Align, Grid};
use crate::output::Output;
use crate::place::Place;

/// Print the columns of a table
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin schema market.drumlin prices/us/aapl")]
pub struct Schema {
    #[command(flatten)]
    place: Place,
    /// The table
    table: String,
    /// A version number (-1 is the newest), a snapshot, or a time; snapshot:NAME for a snapshot that looks like a number
    #[arg(long, value_name = "WHICH", allow_negative_numbers = true)]
    as_of: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Schema {
    /// Prints one line per column.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.read()?;
        let as_of = as_of::resolve(self.as_of.as_deref());
        let schema = store.table(&self.table).schema(&as_of)?;
        // A snapshot may hold a table that is no longer at its path.
        let stat = store.table(&self.table).stat().unwrap_or_default();
        let (sort, key): (&[String], &[String]) = if stat.keyed { (&stat.sort, &stat.sort) } else { (&stat.sort, &[]) };
        let fields = schema.fields().iter();
        if self.json {
            let columns = fields.map(|field| {
                json!({ "name": field.name(), "type": TypeName(field.data_type()).to_string(), "nullable": field.is_nullable() })
            });
            return Ok(out.json(&json!({ "columns": columns.collect::<Vec<_>>(), "sort": sort, "key": key }))?);
        }
        let mut grid = Grid::new(["column", "type", "nulls"].map(|name| (name, Align::Left)));
        for field in fields {
            let nulls = if field.is_nullable() { "yes" } else { "no" };
            grid.row([field.name().clone(), TypeName(field.data_type()).to_string(), nulls.to_owned()]);
        }
        grid.print(out)?;
        if !key.is_empty() {
            writeln!(out, "key {}", key.join(", "))?;
        } else if !sort.is_empty() {
            writeln!(out, "sorted by {}", sort.join(", "))?;
        }
        Ok(())
    }
}
