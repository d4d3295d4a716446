//! `get`: payloads of nodes.

use std::io::Write;

use clap::Args;
use drumlin::{Content, Tables};

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::payload_text;
use crate::place::Place;
use crate::scope::is_pattern;

/// Print the payload of a node: JSON, or bytes as they are
///
/// For a pattern, the payloads of all matching nodes are printed, one per line: the path, a tab, and the payload as
/// JSON or, if it is bytes, as b"..." with escapes. Nodes without a payload are skipped.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin get market.drumlin config/feeds/a
  drumlin get market.drumlin 'config/**'")]
pub struct Get {
    #[command(flatten)]
    place: Place,
    /// The node, or a pattern with *, ? and **
    path: String,
}

impl Get {
    /// Prints the payload, or all payloads in path order.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.read()?;
        if is_pattern(&self.path) {
            for (path, payload) in store.tree().get_many(&self.path)? {
                writeln!(out, "{path}\t{}", payload_text::line(&payload))?;
            }
            return Ok(());
        }
        match store.tree().get(&self.path)? {
            Some(payload) => match payload.content() {
                Content::Json(value) => Ok(out.json(&value.to_json())?),
                Content::Bytes(bytes) => Ok(out.write_all(bytes)?),
            },
            None if store.tree().exists(&self.path)? => {
                Err(Failure::Error(format!("the node at '{}' has no payload", self.path)))
            }
            None => Err(Failure::Error(format!("no node at '{}'", self.path))),
        }
    }
}
