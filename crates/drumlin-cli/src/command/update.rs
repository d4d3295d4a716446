//! `update`: columns of rows, by a filter.

use std::io::Write;

use clap::Args;
use drumlin::{Expression, Tables, UpdateOptions};

use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures::{self, counted};
use crate::interrupt;
use crate::output::Output;
use crate::place::ChangedPlace;

/// Set columns of rows to computed values, in a new version of the table
///
/// Rows keep their order; earlier versions keep the values that they had.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin update market.drumlin trades --set 'price=price * 2' --set 'note=null' --where 'day < 20'")]
pub struct Update {
    #[command(flatten)]
    place: ChangedPlace,
    /// The table
    table: String,
    /// A column and what it is set to, an expression over the columns as they were; may be given again for other columns
    #[arg(long, value_name = "COLUMN=EXPRESSION", required = true, value_parser = assignment)]
    set: Vec<(String, Expression)>,
    /// Which rows, as in SQL [default: all]
    #[arg(long = "where", short = 'w', value_name = "FILTER")]
    filter: Option<String>,
    /// A note kept with the new version
    #[arg(long, value_name = "JSON", value_parser = figures::parse_json)]
    metadata: Option<String>,
}

/// Parses `NAME=EXPRESSION`.
pub fn assignment(text: &str) -> Result<(String, Expression), String> {
    let (name, value) = text.split_once('=').ok_or("expected COLUMN=EXPRESSION, such as price=price * 2")?;
    Ok((name.trim().to_owned(), Expression::parse(value).map_err(|e| e.to_string())?))
}

impl Update {
    /// Updates rows and reports how many.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        let bar = Bar::new("updating", 0);
        let options = UpdateOptions { metadata: self.metadata, task: bar.task(&interrupt::listen()) };
        let report = store.table(&self.table).update(&self.set, self.filter.as_deref(), &options);
        bar.clear();
        let report = report.map_err(|e| Failure::from(e).or_interrupted("the table is unchanged"))?;
        store.close()?;
        let version = report.version.expect("a store numbers versions at once").version;
        match report.rows {
            0 => writeln!(out, "no row matches; version {version} stays the newest")?,
            rows => writeln!(out, "{} updated, in version {version}", counted(rows, "row"))?,
        }
        Ok(())
    }
}
