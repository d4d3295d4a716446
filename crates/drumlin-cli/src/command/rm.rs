//! `rm`: removes nodes that hold no table.

use std::io::{IsTerminal, Write};

use clap::Args;
use drumlin::{Cause, Changes, Tables};

use super::drop::ask;
use crate::failure::Outcome;
use crate::figures::counted;
use crate::output::Output;
use crate::place::ChangedPlace;
use crate::scope::is_pattern;

/// Remove nodes, with all below them; none of them may hold a table (drop takes those)
///
/// One commit removes all of them, or none. Prints the removed nodes, one per line; for a node removed along with
/// another, a tab and the reason follow. A pattern that matches nothing removes nothing.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin rm market.drumlin 'config/feeds/*' --dry-run")]
pub struct Rm {
    #[command(flatten)]
    place: ChangedPlace,
    /// A node, or a pattern with *, ? and **
    #[arg(value_name = "PATTERN")]
    path: String,
    /// Print what would be removed, and change nothing; no other process may have the store open for writing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Do not ask, even if a pattern matches several nodes
    #[arg(long, short)]
    yes: bool,
}

impl Rm {
    /// Removes nodes and reports which.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        let pattern = is_pattern(&self.path);
        let somebody = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if pattern && somebody && !self.yes && !self.dry_run {
            let nodes = store.tree().count(&self.path)?;
            if nodes > 1 {
                ask(&format!("remove {} and all below?", counted(nodes, "node")))?;
            }
        }
        let transaction = store.transaction()?;
        let (named, others) = if pattern {
            (None, Some(transaction.tree().delete_many(&self.path)?))
        } else {
            let change = transaction.tree().delete(&self.path, None)?;
            (Some(self.path), change.indirect.map(|changes| *changes))
        };
        if !self.dry_run {
            transaction.commit()?;
        }
        store.close()?;
        if let Some(path) = named {
            writeln!(out, "{path}")?;
        }
        for change in others.iter().flat_map(Changes::iter) {
            match reason(change.cause) {
                Some(reason) => writeln!(out, "{}\t{reason}", change.path)?,
                None => writeln!(out, "{}", change.path)?,
            }
        }
        Ok(())
    }
}

/// Why a node was removed along with another.
pub fn reason(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::Asked => None,
        Cause::Above => Some("a node above it was removed"),
        Cause::Ended => Some("its presence has ended, or its time is over"),
        Cause::KeepWhile => Some("the condition of its keep_while no longer holds"),
    }
}
