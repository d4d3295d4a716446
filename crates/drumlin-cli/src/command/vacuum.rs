//! `vacuum`: a checkpoint with limits on what it rewrites, or its plan.

use std::io::Write;

use clap::Args;
use drumlin::PlanOptions;

use super::checkpoint;
use crate::failure::Outcome;
use crate::figures::{counted, parse_share};
use crate::output::Output;
use crate::place::Place;

/// Checkpoint within a budget, or explain what it would rewrite
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin vacuum market.drumlin --explain --min-dead 0.25")]
pub struct Vacuum {
    #[command(flatten)]
    place: Place,
    /// Print the plan and change nothing
    #[arg(long)]
    explain: bool,
    /// The maximum share of each table's bytes to rewrite, the most worthwhile first
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = parse_share)]
    budget: f64,
    /// The minimum share of dead rows for which row groups are folded into fewer
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = parse_share)]
    min_dead: f64,
    /// Print JSON, with exact numbers
    #[arg(long, conflicts_with = "explain")]
    json: bool,
}

impl Vacuum {
    /// Prints the plan or runs it.
    pub fn run(self, out: &mut Output) -> Outcome {
        let options = PlanOptions { dead_share_min: self.min_dead, budget: self.budget, ..PlanOptions::default() };
        if !self.explain {
            return checkpoint::run(&self.place.write()?, options, self.json, out);
        }
        let store = self.place.read()?;
        let (mut rest, plans) = (0, store.vacuum_plan(&options)?);
        for (path, plan) in plans.tables {
            match plan.windows.is_empty() && plan.left_out == 0 {
                true => rest += 1,
                false => write!(out, "{path}: {plan}")?,
            }
        }
        if rest > 0 {
            let stay = if rest == 1 { "stays as it is" } else { "stay as they are" };
            writeln!(out, "{} {stay}", counted(rest, "table"))?;
        }
        let repack = plans.blocks;
        if !repack.blocks.is_empty() || repack.left_out > 0 {
            writeln!(out, "{repack}")?;
        }
        Ok(())
    }
}
