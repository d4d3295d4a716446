//! `put`: sets a node's payload.

use clap::Args;
use drumlin::catalog::Payload;

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::place::Place;

/// Set the payload of a node; the node, and the store, are made if they are not there
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin put market.drumlin config/feeds/a '{\"url\": \"https://example.com/a\"}'")]
pub struct Put {
    #[command(flatten)]
    place: Place,
    /// The node
    path: String,
    /// The payload; - reads it from standard input
    json: String,
}

impl Put {
    /// Sets it.
    pub fn run(self, _: &mut Output) -> Outcome {
        let text = match self.json.as_str() {
            "-" => {
                std::io::read_to_string(std::io::stdin()).map_err(|e| Failure::Error(format!("standard input: {e}")))?
            }
            _ => self.json,
        };
        let value = serde_json::from_str(&text).map_err(|e| {
            Failure::Usage(format!("the payload is not JSON ({e}); strings need their quotes: '\"text\"'"))
        })?;
        let store = self.place.create()?;
        store.put(&self.path, Payload::Json(value))?;
        Ok(store.close()?)
    }
}
