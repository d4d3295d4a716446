//! What a transaction rests on, and whether commits since have touched it: the rules of conflict, each a pure function
//! of two states.

use super::{Path, State};
use crate::base::{Error, Result, TableId};

/// One thing a transaction has read.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// Which table, if any, a path holds.
    Binding(Path),
    /// A table's newest schema.
    Schema(TableId),
    /// What a table's newest version sees, and in which row groups.
    Rows(TableId),
}

/// All that a transaction has read.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// In any order.
    pub reads: Vec<Read>,
}

impl Footprint {
    /// Adds a read.
    #[must_use]
    pub fn with(mut self, read: Read) -> Self {
        self.reads.push(read);
        self
    }

    /// `Conflict`, naming the read, if what was read of `base` is otherwise in `now`, which may hold effects of
    /// transactions not yet appended. O(reads x log).
    pub fn check(&self, base: &State, now: &State) -> Result<()> {
        match self.reads.iter().find(|read| touched(read, base, now)) {
            None => Ok(()),
            Some(read) => {
                Err(Error::conflict(format!("{read:?} has changed since it was read, at commit {}", base.seq)))
            }
        }
    }
}

fn touched(read: &Read, base: &State, now: &State) -> bool {
    match read {
        Read::Binding(path) => base.table_at(path).map(|t| t.id) != now.table_at(path).map(|t| t.id),
        Read::Schema(id) => match (base.table(*id), now.table(*id)) {
            (Some(a), Some(b)) => a.schema() != b.schema(),
            (a, b) => a.is_some() != b.is_some(),
        },
        Read::Rows(id) => {
            base.table(*id).map(|t| (t.rows_seq, t.layout_seq)) != now.table(*id).map(|t| (t.rows_seq, t.layout_seq))
        }
    }
}
