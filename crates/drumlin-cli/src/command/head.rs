//! `head`: the first rows of a table.

use clap::Args;
use drumlin::{ReadOptions, ScanOptions, Tables};

use crate::as_of;
use crate::failure::Outcome;
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;
use crate::rows::{self, Form};

/// Print the first rows of a table
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin head market.drumlin prices/us/aapl -n 5")]
pub struct Head {
    #[command(flatten)]
    place: Place,
    /// The table
    table: String,
    /// How many rows
    #[arg(long, short = 'n', value_name = "ROWS", default_value_t = 10)]
    rows: u64,
    /// The columns, in this order [default: all]
    #[arg(long, short, value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// A version number (-1 is the newest), a snapshot, or a time; snapshot:NAME for a snapshot that looks like a number
    #[arg(long, value_name = "WHICH", allow_negative_numbers = true)]
    as_of: Option<String>,
    /// How rows are printed
    #[arg(long, short, value_enum, default_value_t = Form::Table)]
    format: Form,
}

impl Head {
    /// Prints the rows.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.read()?;
        let as_of = as_of::resolve(self.as_of.as_deref());
        let scan = ScanOptions {
            columns: self.columns,
            limit: Some(self.rows),
            cancel: interrupt::listen(),
            ..ScanOptions::default()
        };
        let scan = store.read(&self.table, &ReadOptions::of(as_of, scan))?;
        rows::print(self.format, &scan.schema(), scan, (u64::MAX, ""), out)
            .map_err(|failure| failure.or_interrupted("not all rows were printed"))
    }
}
