//! `snapshot create`, `list` and `drop`: names for the state of many tables.

use std::io::Write;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::failure::Outcome;
use crate::figures::{count, counted, time};
use crate::grid::{Align, Grid};
use crate::output::Output;
use crate::place::Place;

/// Create, list and drop snapshots
#[derive(Subcommand)]
#[command(after_help = "\
Example:
  drumlin snapshot create market.drumlin eod 'prices/**'
  drumlin cat market.drumlin prices/us/aapl --as-of eod")]
pub enum Snapshot {
    Create(Create),
    List(List),
    Drop(Drop),
}

/// Name the newest versions of many tables; they stay readable until the snapshot is dropped
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin snapshot create market.drumlin eod 'prices/**'")]
pub struct Create {
    #[command(flatten)]
    place: Place,
    /// The snapshot's name
    name: String,
    /// Which tables
    #[arg(default_value = "**")]
    pattern: String,
}

/// List snapshots
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin snapshot list market.drumlin")]
pub struct List {
    #[command(flatten)]
    place: Place,
    /// Print JSON, with the versions that each snapshot holds
    #[arg(long)]
    json: bool,
}

/// Drop a snapshot; what only it held becomes reclaimable
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin snapshot drop market.drumlin eod")]
pub struct Drop {
    #[command(flatten)]
    place: Place,
    /// The snapshot's name
    name: String,
}

impl Snapshot {
    /// Runs the subcommand.
    pub fn run(self, out: &mut Output) -> Outcome {
        match self {
            Snapshot::Create(Create { place, name, pattern }) => {
                let store = place.write()?;
                let snapshot = store.snapshot(&name, &pattern)?;
                store.close()?;
                writeln!(out, "{name}: {}", counted(snapshot.tables, "table"))?;
            }
            Snapshot::List(list) => list.run(out)?,
            Snapshot::Drop(Drop { place, name }) => {
                let store = place.write()?;
                store.drop_snapshot(&name)?;
                store.close()?;
                writeln!(out, "{name} dropped")?;
            }
        }
        Ok(())
    }
}

impl List {
    fn run(self, out: &mut Output) -> Outcome {
        let snapshots = self.place.read()?.snapshots()?;
        if self.json {
            let snapshots = snapshots.iter().map(|snapshot| {
                let version = |(path, version): (String, drumlin::Version)| (path, json!(version.0));
                let versions: serde_json::Map<_, _> = snapshot.versions()?.into_iter().map(version).collect();
                Ok(json!({ "name": snapshot.name, "time": time(snapshot.time), "versions": versions }))
            });
            return Ok(out.json(&snapshots.collect::<drumlin::Result<_>>()?)?);
        }
        let mut grid = Grid::new([("snapshot", Align::Left), ("time", Align::Left), ("tables", Align::Right)]);
        for snapshot in snapshots {
            grid.row([snapshot.name, time(snapshot.time), count(snapshot.tables)]);
        }
        if grid.len() > 0 {
            grid.print(out)?;
        }
        Ok(())
    }
}
