//! `delete-versions`: versions of a table, by number.

use std::io::Write;
use std::ops::RangeInclusive;

use clap::Args;
use drumlin::{Missing, Tables, Version};

use crate::failure::{Failure, Outcome};
use crate::figures::counted;
use crate::output::Output;
use crate::place::ChangedPlace;

/// Delete versions of a table
///
/// If the newest is deleted, the previous one is the newest again. Snapshots keep what they hold.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin delete-versions market.drumlin prices/us/aapl 0-9 12")]
pub struct DeleteVersions {
    #[command(flatten)]
    place: ChangedPlace,
    /// The table
    table: String,
    /// Version numbers; 0-9 means all existing ones from 0 to 9
    #[arg(required = true, value_name = "VERSION", value_parser = parse_versions)]
    versions: Vec<RangeInclusive<u64>>,
}

fn parse_versions(text: &str) -> Result<RangeInclusive<u64>, String> {
    let bad = |_| format!("'{text}' is not a version; expected a number, or two with a dash between them");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().map_err(bad)?, last.parse().map_err(bad)?);
    if first > last { Err(format!("'{text}' is an empty range")) } else { Ok(first..=last) }
}

impl DeleteVersions {
    /// Deletes in one commit.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        let there: Vec<u64> = store.table(&self.table).versions()?.iter().map(|info| info.version.0).collect();
        let mut versions: Vec<u64> = Vec::new();
        for range in self.versions {
            let before = versions.len();
            match (range.start(), range.end()) {
                // The core refuses a missing version.
                (one, other) if one == other => versions.push(*one),
                _ => versions.extend(there.iter().filter(|version| range.contains(version))),
            }
            if versions.len() == before {
                let (first, last) = range.into_inner();
                return Err(Failure::Error(format!("'{}' has no version from {first} to {last}", self.table)));
            }
        }
        versions.sort_unstable();
        versions.dedup();
        let deleted = versions.len() as u64;
        let versions = versions.into_iter().map(Version).collect();
        store.delete_versions(&[(self.table.clone(), versions)], Missing::Refuse)?;
        store.close()?;
        let left = there.len() as u64 - deleted;
        writeln!(out, "{}: {} deleted, {left} left", self.table, counted(deleted, "version"))?;
        Ok(())
    }
}
