//! `doctor`: tests whether a bucket is suitable for a store.

use std::io::Write;

use clap::Args;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::place::Place;

/// Test whether a bucket is suitable for a store, and how fast it is
///
/// If a store is there whose log is on a server, reads that, too, and says what could be better about it.
/// Writes, reads, races conditional writes against each other, lists, compares clocks and deletes, under a name of its own;
/// leaves nothing behind.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin doctor s3://bucket/prefix --storage-option endpoint=http://localhost:9000")]
pub struct Doctor {
    #[command(flatten)]
    place: Place,
    /// Print JSON, with times in microseconds
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Tests the bucket and reports what it found.
    pub fn run(self, out: &mut Output) -> Outcome {
        let diagnosis = self.place.examine()?;
        if self.json {
            let findings: Vec<_> = diagnosis
                .findings
                .iter()
                .map(|finding| match &finding.outcome {
                    Ok(micros) => json!({"what": finding.what, "micros": micros}),
                    Err(e) => json!({"what": finding.what, "error": e}),
                })
                .collect();
            let clock = diagnosis.clock_micros;
            let keeps = diagnosis.keeps_replaced;
            out.json(&json!({
                "fit": diagnosis.is_fit(), "findings": findings, "clock_ahead_micros": clock, "keeps_replaced": keeps,
                "advice": diagnosis.advice,
            }))?;
        } else {
            writeln!(out, "{diagnosis}")?;
        }
        if diagnosis.is_fit() { Ok(()) } else { Err(Failure::Told) }
    }
}
