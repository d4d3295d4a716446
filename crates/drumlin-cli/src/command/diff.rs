//! `diff`: the rows in which two versions of a table differ.

use clap::Args;
use drumlin::{AsOf, DiffOptions, Tables};

use crate::as_of;
use crate::failure::Outcome;
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;
use crate::rows::{self, Form, TABLE_ROWS};

/// Print the rows in which two versions of a table differ
///
/// The column _change says what happened to a row: insert, delete, and in a table with a key update_before and
/// update_after. The column _version says in which version.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin diff market.drumlin prices/us/aapl -2 -1
  drumlin diff market.drumlin prices/us/aapl 2026-11-24 --each-version --format json")]
pub struct Diff {
    #[command(flatten)]
    place: Place,
    /// The table
    table: String,
    /// The older version: its number (-1 is the newest), a snapshot, or a time
    #[arg(allow_negative_numbers = true)]
    since: String,
    /// The newer version [default: the table as it is now]
    #[arg(allow_negative_numbers = true)]
    until: Option<String>,
    /// The columns to compare and to print [default: all]
    #[arg(long, short, value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Tell of each version in between what it changed
    #[arg(long)]
    each_version: bool,
    /// How rows are printed
    #[arg(long, short, value_enum, default_value_t = Form::Table)]
    format: Form,
}

impl Diff {
    /// Prints the rows.
    pub fn run(self, out: &mut Output) -> Outcome {
        let table = self.place.read()?.table(&self.table);
        let options =
            DiffOptions { columns: self.columns, each_version: self.each_version, cancel: interrupt::listen() };
        let since = AsOf::parse(&self.since);
        let diff = table.diff(&since, &as_of::resolve(self.until.as_deref()), &options)?;
        let hint = "use --format csv or json for all";
        rows::print(self.format, &diff.schema().clone(), diff, (TABLE_ROWS, hint), out)
            .map_err(|failure| failure.or_interrupted("not all rows were printed"))
    }
}
