//! The runs of an index, as a table's state knows them.
//!
//! Invariants: a run has an entry for each row of the row groups that it covers, dead ones too, unless the index has a condition; entries
//! are ordered by value, then by place, except those of *open* parts at the end, whose values are too long to be stored and which are
//! always taken for hits. The number of an index within its table, and of a run within its index, is never given again.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use super::definition::IndexDefinition;
use super::fences::Fences;
use crate::base::{Error, Memo, Result};
use crate::block::Address;
use crate::table::ROWS_MAX;
use crate::table::group::sound::is_possible;

/// The most row groups that a run may cover, so that a place fits in 32 bits.
pub const COVERS_MAX: usize = 1 << 15;

/// Sorted entries of some row groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewRun {
    /// Where they are stored, and the number of entries in each.
    pub parts: Vec<(Address, u32)>,
    /// How many parts at the end are open.
    pub open: u32,
    /// The deciding layers of the row groups that it covers.
    pub covers: Vec<Address>,
    /// Which of the table's schemas its values were read in.
    pub schema: u32,
}

/// A run of a table's index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexRun {
    /// Its number.
    pub id: u64,
    /// Where its entries are stored, and how many are in each part.
    pub parts: Vec<(Address, u32)>,
    /// How many parts at the end are open.
    pub open: u32,
    /// The deciding layers of the row groups that it covers; `None` for one that is gone.
    pub covers: Vec<Option<Address>>,
    /// Which of the table's schemas its values were read in.
    pub schema: u32,
    /// What its directories say, once read.
    #[serde(skip)]
    pub(in crate::table) fences: Memo<Fences>,
}

impl IndexRun {
    /// Its entries.
    pub fn entries(&self) -> u64 {
        self.parts.iter().map(|(_, entries)| u64::from(*entries)).sum()
    }

    /// The row groups that it still covers, by the addresses of their deciding layers.
    pub fn covered(&self) -> impl Iterator<Item = &Address> {
        self.covers.iter().flatten()
    }

    /// Encoded bytes.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|(address, _)| address.bytes()).sum()
    }
}

/// An index of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableIndex {
    /// Its number.
    pub id: u64,
    /// What it is of.
    pub definition: IndexDefinition,
    /// What of the table it covers.
    runs: Vec<Arc<IndexRun>>,
    next_run: u64,
    /// Which run covers a row group, and at which place, once asked for.
    #[serde(skip)]
    covers: Memo<Covers>,
}

/// Where row groups are covered, by the addresses of their deciding layers.
pub type Covers = HashMap<Address, CoverPlace, FixedState>;

/// Where a row group is covered: by which run of an index, and its place among those that this covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoverPlace {
    /// The place of the run among those of the index.
    pub run: usize,
    /// The place of the row group.
    pub ordinal: u32,
}

impl TableIndex {
    /// An index without runs.
    pub(in crate::table) fn new(id: u64, definition: IndexDefinition) -> Self {
        Self { id, definition, runs: Vec::new(), next_run: 0, covers: Memo::default() }
    }

    /// Its runs.
    pub fn runs(&self) -> &[Arc<IndexRun>] {
        &self.runs
    }

    /// Where its entries are stored, and how many are in each part.
    pub fn parts(&self) -> impl Iterator<Item = &(Address, u32)> {
        self.runs.iter().flat_map(|run| &run.parts)
    }

    /// Its runs, to be changed.
    pub(in crate::table) fn runs_mut(&mut self) -> &mut Vec<Arc<IndexRun>> {
        self.covers = Memo::default();
        &mut self.runs
    }

    /// Adds a run that covers these of its row groups.
    pub(in crate::table) fn push(&mut self, run: NewRun, covers: Vec<Option<Address>>) {
        let NewRun { parts, open, schema, .. } = run;
        let run = IndexRun { id: self.next_run, parts, open, covers, schema, fences: Memo::default() };
        self.next_run += 1;
        self.runs_mut().push(Arc::new(run));
    }

    /// Where row groups are covered, by the addresses of their deciding layers. O(row groups) when it is first asked for.
    pub fn covers(&self) -> Result<&Covers> {
        self.covers.get_or_try(|| {
            let of = |(run, covers): (usize, &Arc<IndexRun>)| {
                let places =
                    (0..).zip(&covers.covers).map(move |(ordinal, cover)| (*cover, CoverPlace { run, ordinal }));
                places.filter_map(|(cover, place)| Some((cover?, place))).collect::<Vec<_>>()
            };
            // Two runs may cover one row group; both say the same.
            Ok(self.runs.iter().enumerate().flat_map(of).collect())
        })
    }

    /// Fails if it is inconsistent, as only a damaged one is; its table has had `schemas` schemas.
    pub(in crate::table) fn check(&self, schemas: usize) -> Result<()> {
        let bad = |what: &str| Err(Error::corrupt(format!("index '{}': {what}", self.definition.name)));
        self.definition.columns()?;
        for run in &self.runs {
            if !run.parts.iter().all(|(address, _)| is_possible(address)) {
                return bad("a run has an address past the end of any block");
            }
            if run.id >= self.next_run || run.schema as usize >= schemas {
                return bad("a run has an impossible number or schema");
            }
            if run.parts.iter().any(|(_, entries)| *entries == 0 || *entries > ROWS_MAX) {
                return bad("a part of a run is empty, or has more entries than possible");
            }
            if run.covers.len() > COVERS_MAX || run.open as usize > run.parts.len() {
                return bad("a run covers more row groups than possible, or more of its parts are open than it has");
            }
        }
        match self.runs.windows(2).any(|pair| pair[0].id >= pair[1].id) {
            true => bad("its runs are out of order"),
            false => Ok(()),
        }
    }
}

/// The indexes of a table; stored beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Indexes {
    /// By number.
    pub list: Vec<TableIndex>,
    pub(in crate::table) next: u64,
}

impl Indexes {
    /// Whether there has never been one.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The number of the next one.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// The index with a name.
    pub fn named(&self, name: &str) -> Option<&TableIndex> {
        self.list.iter().find(|index| index.definition.name == name)
    }

    /// Where the entries of all runs are stored.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.list.iter().flat_map(TableIndex::parts).map(|(address, _)| address)
    }
}
