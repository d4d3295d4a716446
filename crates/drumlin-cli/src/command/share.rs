//! `share`, `unshare`: how many processes may write a folder.

use std::io::Write;

use clap::Args;

use crate::bar::Bar;
use crate::failure::Outcome;
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;

/// Let many processes write a store in a folder
///
/// Copies nothing: takes a checkpoint and replaces the few files that lead to the tables. No process may have the store open.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin share market.drumlin")]
pub struct Share {
    #[command(flatten)]
    place: Place,
}

/// Let one process at a time write a store in a folder
///
/// The opposite of `share`. All processes must have closed the store; end the sessions of those that have died with
/// `drumlin reclaim --fence-idle 0s`.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin unshare market.drumlin")]
pub struct Unshare {
    #[command(flatten)]
    place: Place,
}

impl Share {
    /// Makes it shared.
    pub fn run(self, out: &mut Output) -> Outcome {
        turn(&self.place, true, "many processes can write it now", out)
    }
}

impl Unshare {
    /// Ends that.
    pub fn run(self, out: &mut Output) -> Outcome {
        turn(&self.place, false, "one process at a time can write it now", out)
    }
}

fn turn(place: &Place, shared: bool, done: &str, out: &mut Output) -> Outcome {
    let bar = Bar::new("taking a checkpoint", 0);
    let turned = place.turn_shared(shared, &bar.task(&interrupt::listen()));
    bar.clear();
    turned.map_err(|e| e.or_interrupted("the store is as it was"))?;
    writeln!(out, "{done}")?;
    Ok(())
}
