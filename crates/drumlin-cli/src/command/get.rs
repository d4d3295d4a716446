//! `get`: a node's payload.

use std::io::Write;

use clap::Args;
use drumlin::catalog::Payload;

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::place::Place;

/// Print the payload of a node: JSON, or bytes as they are
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin get market.drumlin config/feeds/a")]
pub struct Get {
    #[command(flatten)]
    place: Place,
    /// The node
    path: String,
}

impl Get {
    /// Prints it.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.read()?;
        match store.get(&self.path)? {
            Some(Payload::Json(value)) => Ok(out.json(&value)?),
            Some(Payload::Bytes(bytes)) => Ok(out.write_all(&bytes)?),
            None if store.exists(&self.path)? => {
                Err(Failure::Error(format!("the node at '{}' carries no payload", self.path)))
            }
            None => Err(Failure::Error(format!("no node at '{}'", self.path))),
        }
    }
}
