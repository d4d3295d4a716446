//! `import-nodes`: puts nodes from lines of JSON, all in one commit.

use drumlin::Tables;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use clap::Args;

use crate::bar::Bar;
use crate::failure::Outcome;
use crate::figures::{count, counted};
use crate::files;
use crate::interrupt;
use crate::output::Output;
use crate::place::ChangedPlace;

/// Import nodes from lines of JSON, as export-nodes writes them
///
/// One commit puts all of them, or none; payloads of existing nodes are replaced. The store is created if it does not
/// exist.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin import-nodes market.drumlin config.jsonl --under backup
  drumlin export-nodes old.drumlin config | drumlin import-nodes market.drumlin")]
pub struct ImportNodes {
    #[command(flatten)]
    place: ChangedPlace,
    /// The file; - is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Put the nodes under this path [default: the top]
    #[arg(long, short, value_name = "PATH")]
    under: Option<String>,
}

impl ImportNodes {
    /// Puts the nodes and reports how many.
    pub fn run(self, out: &mut Output) -> Outcome {
        let name = files::name(&self.file);
        let mut lines: Box<dyn BufRead> = match files::stream(&self.file)? {
            Some(stream) => Box::new(BufReader::new(stream)),
            None => Box::new(BufReader::new(files::open(&self.file)?.0)),
        };
        let under = self.under.as_ref().map(|under| under.trim_end_matches('/'));
        let store = self.place.create()?;
        let bar = Bar::new("importing", 0);
        let task = bar.task_counting(&interrupt::listen(), "node");
        let report = store.tree().import(&mut *lines, under, &task);
        bar.clear();
        let report = report.map_err(|e| e.context(name))?;
        store.close()?;
        let nodes = counted(report.created + report.updated, "node");
        writeln!(out, "{nodes}: {} made, {} replaced", count(report.created), count(report.updated))?;
        Ok(())
    }
}
