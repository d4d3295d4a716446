//! `cat`: prints rows.

use clap::Args;
use drumlin::{Filter, ReadOptions, ScanOptions, Tables};

use crate::as_of;
use crate::failure::Outcome;
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;
use crate::rows::{self, Form, TABLE_ROWS};

/// Print rows of a table
///
/// The table form prints 100 rows by default; the others print all. Times in named zones are printed in UTC.
/// JSON has no NaN and no infinity: both are null there.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin cat market.drumlin prices/us/aapl --columns time,close --where 'close > 100' --tail 20")]
pub struct Cat {
    #[command(flatten)]
    place: Place,
    /// The table
    table: String,
    /// The columns, in this order [default: all]
    #[arg(long, short, value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Only rows for which this is true, as in SQL
    #[arg(long = "where", short = 'w', value_name = "FILTER")]
    filter: Option<String>,
    /// Only the first N rows
    #[arg(long, short = 'n', visible_alias = "limit", value_name = "ROWS")]
    head: Option<u64>,
    /// Only the last N rows
    #[arg(long, value_name = "ROWS", conflicts_with = "head")]
    tail: Option<u64>,
    /// A version number (-1 is the newest), a snapshot, or a time; snapshot:NAME for a snapshot that looks like a number
    #[arg(long, value_name = "WHICH", allow_negative_numbers = true)]
    as_of: Option<String>,
    /// How rows are printed
    #[arg(long, short, value_enum, default_value_t = Form::Table)]
    format: Form,
}

impl Cat {
    /// Prints batch by batch.
    pub fn run(self, out: &mut Output) -> Outcome {
        let filter = self.filter.as_deref().map(Filter::parse).transpose()?;
        let store = self.place.read()?;
        let as_of = as_of::resolve(self.as_of.as_deref());
        let cut = self.format == Form::Table && self.head.is_none() && self.tail.is_none();
        let scan = ScanOptions {
            columns: self.columns,
            filter,
            // One additional row shows whether there are more.
            limit: if cut { Some(TABLE_ROWS + 1) } else { self.head },
            tail: self.tail,
            cancel: interrupt::listen(),
            ..ScanOptions::default()
        };
        let scan = store.read(&self.table, &ReadOptions::of(as_of, scan))?;
        let most = if cut { TABLE_ROWS } else { u64::MAX };
        let hint = "use --head or --tail to choose the rows";
        rows::print(self.format, &scan.schema(), scan, (most, hint), out)
            .map_err(|failure| failure.or_interrupted("not all rows were printed"))
    }
}
