//! `undrop`: restores a table from the trash.

use std::io::Write;

use clap::Args;

use crate::failure::Outcome;
use crate::output::Output;
use crate::place::ChangedPlace;

/// Restore a dropped table, with all its versions
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin undrop market.drumlin prices/us/aapl --to prices/us/aapl_old")]
pub struct Undrop {
    #[command(flatten)]
    place: ChangedPlace,
    /// Where the table was; of several dropped there, the last one is restored
    path: String,
    /// Where to put it [default: where it was]
    #[arg(long, value_name = "PATH")]
    to: Option<String>,
}

impl Undrop {
    /// Restores the table.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        store.undrop(&self.path, self.to.as_deref())?;
        store.close()?;
        Ok(writeln!(out, "{} is back", self.to.as_ref().unwrap_or(&self.path))?)
    }
}
