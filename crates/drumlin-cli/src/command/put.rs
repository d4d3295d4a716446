//! `put`: sets a node's payload, on conditions.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use drumlin::{Condition, ErrorKind, Payload, PutMode, PutOptions, Tables, check_path};

use crate::failure::{Failure, Outcome};
use crate::figures::parse_span;
use crate::files;
use crate::output::Output;
use crate::payload_text;
use crate::place::ChangedPlace;

/// Set the payload of a node; the node and the store are created if they do not exist
///
/// With --new, --there or --if, nothing is changed unless the node is as they say; the exit code is 3 if it is not.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin put market.drumlin config/feeds/a '{\"url\": \"https://example.com/a\"}'
  drumlin put market.drumlin jobs/leader '\"host-2\"' --if '\"host-1\"'")]
pub struct Put {
    #[command(flatten)]
    place: ChangedPlace,
    /// The node
    path: String,
    /// The payload; - reads it from standard input
    #[arg(allow_negative_numbers = true, required_unless_present = "bytes")]
    json: Option<String>,
    /// The payload is bytes, those of this file; - reads them from standard input
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    bytes: Option<PathBuf>,
    /// Only if there is no such node
    #[arg(long, conflicts_with = "there")]
    new: bool,
    /// Only if there is such a node
    #[arg(long)]
    there: bool,
    /// Only if the node exists and its payload equals this
    #[arg(
        long = "if",
        value_name = "JSON",
        value_parser = payload_text::parse,
        allow_negative_numbers = true,
        conflicts_with = "new"
    )]
    expected: Option<Payload>,
    /// The node is deleted after this time, unless it is put again before: 30s, 10m, 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    ttl: Option<u64>,
}

impl Put {
    /// Sets the payload.
    pub fn run(self, _: &mut Output) -> Outcome {
        check_path(&self.path)?;
        let payload = self.payload()?;
        let there = self.there || self.expected.is_some();
        let mode = if self.new {
            PutMode::Create
        } else if there {
            PutMode::Update
        } else {
            PutMode::Put
        };
        let when = self.expected.map(Condition::payload);
        let options = PutOptions { mode, when, ttl_micros: self.ttl, ..PutOptions::default() };
        let store = if there { self.place.write()? } else { self.place.create()? };
        store.tree().put_with(&self.path, payload, options).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotFound => Failure::Unmet(e.to_string()),
            _ => e.into(),
        })?;
        Ok(store.close()?)
    }

    fn payload(&self) -> Result<Payload, Failure> {
        let stdin = |e| Failure::Error(format!("standard input: {e}"));
        match (&self.bytes, self.json.as_deref()) {
            (Some(file), _) => {
                let mut bytes = Vec::new();
                if files::is_stdin(file) {
                    std::io::stdin().read_to_end(&mut bytes).map_err(stdin)?;
                } else {
                    files::open(file)?.0.read_to_end(&mut bytes).map_err(|e| files::failed(file, &e))?;
                }
                Ok(Payload::bytes(&bytes)?)
            }
            (None, Some("-")) => json(&std::io::read_to_string(std::io::stdin()).map_err(stdin)?),
            (None, text) => json(text.unwrap_or_default()),
        }
    }
}

fn json(text: &str) -> Result<Payload, Failure> {
    payload_text::parse(text).map_err(|e| Failure::Usage(format!("the payload: {e}")))
}
