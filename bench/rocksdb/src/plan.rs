//! The command line: what to measure, and how much of it.

use std::path::PathBuf;
use std::time::Duration;

use crate::Result;
use crate::data::Shape;
use crate::measure::Limits;

/// The sides of the main table, with their names there and on the command line.
pub const SIDES: [(&str, &str); 5] =
    [("RocksDB", "rocksdb"), ("(a)", "a"), ("(b)", "b"), ("(b) held", "b-held"), ("(c)", "c")];
pub const ROCKS: usize = 0;
pub const MEMTABLE: usize = 1;
pub const STORE: usize = 2;
pub const VIEW: usize = 3;
pub const ARROW: usize = 4;

const USAGE: &str = "\
rocksdb-compare [--keys N] [--rounds R] [--quick] [--lookups N] [--seconds S] [--only TEXT] [--sides LIST]
                [--no-shapes] [--raw FILE]
  --keys N      rows (2000000)
  --rounds R    rounds, each with new stores (5)
  --quick       200000 rows, 3 rounds, 100000 look-ups
  --lookups N   look-ups of a run (1000000)
  --seconds S   a run of look-ups ends after so long (3)
  --only TEXT   only workloads whose names have this in them
  --sides LIST  some of rocksdb,a,b,b-held,c,artmap (all)
  --no-shapes   keys of 16 random bytes only
  --raw FILE    keep every sample there, as JSON";

/// What to do.
pub struct Plan {
    pub keys: usize,
    pub rounds: usize,
    pub limits: Limits,
    /// How long look-ups run beside a writer.
    pub beside: Duration,
    /// Whether to measure keys of other shapes too.
    pub shapes: bool,
    /// Where to keep every sample.
    pub raw: Option<PathBuf>,
    only: String,
    sides: Vec<String>,
}

impl Plan {
    /// The plan given by the command line.
    pub fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let limits = Limits { lookups: 1_000_000, time: Duration::from_secs(3) };
        let sides = SIDES.iter().map(|(_, side)| *side).chain(["artmap"]).map(String::from).collect();
        let beside = Duration::from_secs(1);
        let mut plan =
            Self { keys: 2_000_000, rounds: 5, limits, beside, shapes: true, raw: None, only: String::new(), sides };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
            match arg.as_str() {
                "--keys" => plan.keys = value()?.parse()?,
                "--rounds" => plan.rounds = value()?.parse()?,
                "--lookups" => plan.limits.lookups = value()?.parse()?,
                "--seconds" => plan.limits.time = Duration::from_secs_f64(value()?.parse()?),
                "--only" => plan.only = value()?,
                "--sides" => plan.sides = value()?.split(',').map(String::from).collect(),
                "--raw" => plan.raw = Some(value()?.into()),
                "--no-shapes" => plan.shapes = false,
                "--quick" => {
                    (plan.keys, plan.rounds, plan.limits.lookups) = (200_000, 3, 100_000);
                    plan.beside = Duration::from_millis(200);
                }
                _ => return Err(format!("what is {arg}?\n{USAGE}").into()),
            }
        }
        Ok(plan)
    }

    /// Whether to measure a workload.
    pub fn wants(&self, workload: &str) -> bool {
        workload.contains(&self.only)
    }

    /// Whether to measure anything with a shape of keys.
    pub fn wants_shape(&self, shape: &str) -> bool {
        shape.contains(&self.only) || self.only.contains(shape)
    }

    /// Whether to measure only workloads with a shape of keys.
    pub fn wants_shapes_only(&self) -> bool {
        Shape::ALL.iter().any(|shape| self.only.contains(shape.name()))
    }

    /// Whether a side takes part.
    pub fn has(&self, side: &str) -> bool {
        self.sides.iter().any(|known| known == side)
    }

    /// The number of keys to look up; with more look-ups, they repeat from the start.
    pub fn asked(&self) -> usize {
        const BATCH_MAX: usize = 64;
        self.limits.lookups.min(1_000_000).next_multiple_of(BATCH_MAX)
    }
}
