//! `retention`: how many versions tables keep.

use std::io::Write;

use clap::Args;
use drumlin::Retention as Keep;

use crate::failure::Outcome;
use crate::figures::{counted, parse_span, span};
use crate::output::Output;
use crate::place::Place;

/// Show or set how many versions the tables at and below a path keep
///
/// Versions beyond that are deleted with a table's next write, and with the next checkpoint. The newest version and
/// what snapshots hold are always kept.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin retention market.drumlin prices --keep-last 10")]
pub struct Retention {
    #[command(flatten)]
    place: Place,
    /// A path; everything below it has the same retention unless it has its own
    path: String,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
#[group(multiple = false)]
struct Change {
    /// Keep all versions
    #[arg(long)]
    keep_all: bool,
    /// Keep the newest N versions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep_last: Option<u64>,
    /// Keep versions that were the newest within this time before now, such as 30d or 12h
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    keep_for: Option<u64>,
    /// Keep what the path above keeps
    #[arg(long)]
    inherit: bool,
}

impl Retention {
    /// Sets the retention, if requested, and shows the one that applies.
    pub fn run(self, out: &mut Output) -> Outcome {
        let path = self.path.strip_suffix("/**").unwrap_or(&self.path);
        let change = match self.change {
            Change { keep_all: true, .. } => Some(Some(Keep::KeepAll)),
            Change { keep_last: Some(n), .. } => Some(Some(Keep::KeepLast(n))),
            Change { keep_for: Some(micros), .. } => Some(Some(Keep::KeepMicros(micros))),
            Change { inherit: true, .. } => Some(None),
            _ => None,
        };
        let holds = match change {
            Some(retention) => {
                let store = self.place.write()?;
                store.set_retention(path, retention)?;
                let holds = store.retention(path)?;
                store.close()?;
                holds
            }
            None => self.place.read()?.retention(path)?,
        };
        let holds = match holds {
            Keep::KeepAll => "all versions".to_owned(),
            Keep::KeepLast(n) => format!("the newest {}", counted(n, "version")),
            Keep::KeepMicros(micros) => format!("versions of the last {}", span(micros)),
        };
        Ok(writeln!(out, "{path} keeps {holds}")?)
    }
}
