//! `restore`: makes old versions the newest again.

use std::io::Write;

use clap::Args;
use drumlin::Tables as _;

use crate::as_of;
use crate::failure::Outcome;
use crate::figures::counted;
use crate::output::Output;
use crate::place::ChangedPlace;

/// Make old versions of tables the newest again, in one commit, without data being written
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin restore market.drumlin 'prices/**' eod")]
pub struct Restore {
    #[command(flatten)]
    place: ChangedPlace,
    /// Which tables
    pattern: String,
    /// What they become: a version's number, a time or a snapshot's name
    #[arg(value_name = "VERSION|TIME|SNAPSHOT", allow_negative_numbers = true)]
    as_of: String,
}

impl Restore {
    /// Restores.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        let restored = store.restore(self.pattern.as_str(), &as_of::resolve(Some(&self.as_of)))?;
        store.close()?;
        for path in &restored {
            writeln!(out, "{path}")?;
        }
        Ok(writeln!(out, "{} restored", counted(restored.len() as u64, "table"))?)
    }
}
