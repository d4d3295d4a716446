//! `purge`: erases rows from everywhere, with a receipt.

use std::io::Write;

use clap::Args;
use drumlin::Filter;

use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures::counted;
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;

/// Erase rows from every version, snapshot and copy of tables, the trash, the log and storage
///
/// Cannot be undone. Prints a receipt as JSON: what was erased, which objects were deleted, and what shows that nothing is left.
/// Exits with 1 if something may still hold such rows; the receipt says what, and the same purge, done again, goes on.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin purge crm.drumlin 'users/**' --where 'user_id = 42' > receipt.json")]
pub struct Purge {
    #[command(flatten)]
    place: Place,
    /// Which tables; those with rows in common with them are part of it
    pattern: String,
    /// Which rows, as in SQL
    #[arg(long = "where", value_name = "FILTER")]
    filter: String,
    /// Only print what would be erased, as JSON
    #[arg(long)]
    explain: bool,
}

impl Purge {
    /// Erases, and prints the receipt.
    pub fn run(self, out: &mut Output) -> Outcome {
        let filter = Filter::parse(&self.filter)?;
        let store = if self.explain { self.place.read()? } else { self.place.write()? };
        let bar = Bar::new("purging", 0);
        let task = bar.task(&interrupt::listen());
        if self.explain {
            let plan = store.purge(&self.pattern, &filter)?.plan(&task);
            bar.clear();
            let plan = plan?;
            store.close()?;
            return Ok(writeln!(out, "{}", plan.to_json())?);
        }
        let receipt = store.purge(&self.pattern, &filter)?.execute(&task);
        bar.clear();
        let interrupted = "part of it may be done; run the same purge again to continue";
        let receipt = receipt.map_err(|e| Failure::from(e).or_interrupted(interrupted))?;
        store.close()?;
        writeln!(out, "{}", receipt.to_json())?;
        if receipt.is_complete() {
            return Ok(());
        }
        eprintln!("{} may still hold such rows: see \"held\"", counted(receipt.held.len() as u64, "place"));
        Err(Failure::Told)
    }
}
