//! Counts which operation was done to a table after which others, and what the table was like: its kind, where its rows lay, and on
//! which storage.
//!
//! With `DRUMLIN_PAIRS`, the name of a folder, each run writes a file there, which `python/tests/nightly` adds up; `tidy/pairs.rs`
//! makes a page of the sum and fails if a pair was never reached.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin::catalog::Pattern;
use drumlin::store::LayoutOptions;
use drumlin::{CellKind, Layout, Store, Tables};

use crate::models::verbs::{KINDS, LIES, STORAGES};

/// What a table is like before an operation.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// One of [`KINDS`].
    pub kind: usize,
    /// Those of [`LIES`] that are so.
    pub lies: BTreeSet<usize>,
}

impl Facts {
    /// Those of the table at `path`, whose kind is known.
    pub fn of(store: &Store, path: &str, kind: usize) -> drumlin::Result<Facts> {
        let options = LayoutOptions { pattern: Some(Pattern::new(path)?), ..LayoutOptions::default() };
        let layout = Layout::of(store, &options)?;
        let cells = || layout.blocks.iter().flat_map(|block| &block.cells);
        let of_groups = |cell: &&drumlin::LayoutCell| cell.kind == CellKind::RowGroup;
        let is = [
            store.table(path).stat()?.memory_keys > 0,
            cells().any(|cell| of_groups(&cell)),
            cells().any(|cell| cell.kind == CellKind::Below),
            layout.blocks.iter().any(|block| block.inline),
            cells().filter(of_groups).any(|cell| cell.records > 1),
        ];
        Ok(Facts { kind, lies: (0..LIES.len()).filter(|at| is[*at]).collect() })
    }
}

/// What was counted of a pair, or of three operations.
#[derive(Clone, Debug, Default)]
struct Counts {
    done: u64,
    refused: u64,
    kinds: [u64; KINDS.len()],
    lies: [u64; LIES.len()],
    storages: [u64; STORAGES.len()],
}

/// The pairs and triples of a run.
#[derive(Default)]
pub struct Pairs {
    storage: usize,
    last: BTreeMap<String, Vec<&'static str>>,
    counts: BTreeMap<Vec<&'static str>, Counts>,
}

impl Pairs {
    /// Of a run on one of [`STORAGES`].
    pub fn new(storage: usize) -> Self {
        Self { storage, ..Self::default() }
    }

    /// The paths at which something was done.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.last.keys()
    }

    /// Notes that a verb was done, or refused, at a path. Without facts, there was no table.
    pub fn note(&mut self, path: &str, verb: &'static str, facts: Option<&Facts>, done: bool) {
        let last = self.last.entry(path.to_owned()).or_default();
        last.push(verb);
        if last.len() > 3 {
            last.remove(0);
        }
        for from in 0..last.len().saturating_sub(1) {
            let counts = self.counts.entry(last[from..].to_vec()).or_default();
            counts.done += u64::from(done);
            counts.refused += u64::from(!done);
            if done {
                counts.storages[self.storage] += 1;
                if let Some(facts) = facts {
                    counts.kinds[facts.kind] += 1;
                    facts.lies.iter().for_each(|at| counts.lies[*at] += 1);
                }
            }
        }
    }

    /// The operations that were done at least once after another.
    pub fn reached(&self) -> usize {
        self.counts.iter().filter(|(verbs, counts)| verbs.len() == 2 && counts.done > 0).count()
    }

    /// Writes what was counted, if that is wanted: a line for each pair and triple.
    #[allow(clippy::disallowed_methods, reason = "what is written is a count, not a store")]
    pub fn keep(&self, seed: u64) {
        let Some(folder) = std::env::var_os("DRUMLIN_PAIRS") else { return };
        let mut text = String::new();
        for (verbs, counts) in &self.counts {
            let numbers = [counts.done, counts.refused].into_iter().chain(counts.kinds).chain(counts.lies);
            let numbers: Vec<String> = numbers.chain(counts.storages).map(|n| n.to_string()).collect();
            writeln!(text, "{} {}", verbs.join(">"), numbers.join(" ")).unwrap();
        }
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let (folder, run) = (std::path::Path::new(&folder), RUNS.fetch_add(1, Ordering::Relaxed));
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join(format!("{}-{run}-{seed}.txt", std::process::id())), text).unwrap();
    }
}
