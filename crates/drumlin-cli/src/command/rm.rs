//! `rm`: removes nodes that hold no table.

use std::io::{IsTerminal, Write};

use clap::Args;

use super::drop::ask;
use crate::failure::Outcome;
use crate::figures::counted;
use crate::output::Output;
use crate::place::Place;

/// Remove nodes, with all below them; none of them may hold a table (drop takes those)
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin rm market.drumlin 'config/feeds/*'")]
pub struct Rm {
    #[command(flatten)]
    place: Place,
    /// A node, or a pattern with *, ? and **
    path: String,
    /// Do not ask, even if a pattern matches several nodes
    #[arg(long, short)]
    yes: bool,
}

impl Rm {
    /// Removes, and says how many.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        let somebody = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if !self.yes && somebody && self.path.contains(['*', '?']) {
            let nodes = store.list(&self.path)?.len() as u64;
            if nodes > 1 {
                ask(&format!("remove {} and all below?", counted(nodes, "node")))?;
            }
        }
        let removed = store.delete(&self.path)?;
        store.close()?;
        Ok(writeln!(out, "{} removed", counted(removed, "node"))?)
    }
}
