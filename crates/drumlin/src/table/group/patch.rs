//! Row groups in several layers: a *base* with all columns as they were written, and *patches* on it, which have newer
//! values of some columns, or columns that were added since. The rows are the same in all layers, in the same order.
//!
//! A row group is known by the address of its newest layer: where two records name the same newest layer, they have the
//! same layers. Of the columns with an id, the newest layer that has it decides. Keys, sort columns and filters are
//! never patched.
//!
//! What goes by address (differences, purges, shared records) knows no layers; the ledger, moves and readers go over
//! all of them. If more than half of the bytes would no longer be read, or there would be more than [`PATCHES_MAX`]
//! patches, the row group is written whole, and segments of columns that are not set are copied as they are. A vacuum
//! does the same later; one that removes every dead row folds all patches that no older version needs apart, and so
//! does a purge.

use std::sync::Arc;

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

use crate::base::Version;
use crate::block::Address;
use crate::table::{PLACES, StoredSchema};

/// The maximum number of patches on a base: each is read with a request of its own.
pub const PATCHES_MAX: usize = 4;

/// What a patch is made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewPatch {
    /// Its columns, ascending, by their places in the newest version's schema.
    pub columns: Vec<u32>,
    /// Bytes of the layers below it that hold what newer layers have too, or what is no column any more.
    pub dead_bytes: u64,
}

/// What lies below the newest layer of a row group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patched {
    /// The columns of the newest layer, ascending, by their places in the row group's schema.
    pub columns: Vec<u32>,
    /// Bytes of the layers below that are not read any more.
    pub dead_bytes: u64,
    /// The layers below, the newest first; the last is the base.
    pub below: Vec<Below>,
}

/// A layer of a row group, on which there is another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// Where it is.
    pub address: Address,
    /// Which of the table's schemas it was written with.
    pub schema: u32,
    /// Its columns by their places in that schema; of the base none, since it has all.
    pub columns: Vec<u32>,
}

/// A layer of a row group, in the terms of [`Below`].
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// Where it is.
    pub address: &'a Address,
    /// Which of the table's schemas it was written with.
    pub schema: u32,
    /// Its columns by their places in that schema; `None` for all.
    pub columns: Option<&'a [u32]>,
    /// Whether the places of its rows come behind them: see [`super::standing`].
    pub has_places: bool,
}

impl Layer<'_> {
    /// The number of its columns.
    pub fn width(&self, schemas: &[StoredSchema]) -> usize {
        self.columns.map_or_else(|| schemas[self.schema as usize].0.fields().len(), <[u32]>::len)
            + usize::from(self.has_places)
    }

    /// The types of its columns.
    pub fn types(&self, schemas: &[StoredSchema]) -> Vec<DataType> {
        let schema = &schemas[self.schema as usize].0;
        let of = |index| match self.place_in_schema(index) {
            place if place < schema.fields().len() => schema.field(place).data_type().clone(),
            _ => PLACES,
        };
        (0..self.width(schemas)).map(of).collect()
    }

    /// The place of a column, in its schema, of those that it has; behind that schema if it is that of the places of its rows.
    pub(in crate::table) fn place_in_schema(&self, index: usize) -> usize {
        self.columns.map_or(index, |columns| columns[index] as usize)
    }
}

/// The last field of a stored record: patches came after records were, which end with the version that alone they serve.
#[derive(Serialize, Deserialize)]
pub(in crate::table) enum RecordTail {
    /// It serves all versions.
    All,
    /// It serves one version.
    Only(Version),
    /// It has patches.
    Patched(Option<Version>, Arc<Patched>),
}

impl RecordTail {
    pub fn new(only: Option<Version>, patched: &Option<Arc<Patched>>) -> Self {
        match (only, patched) {
            (only, Some(patched)) => Self::Patched(only, patched.clone()),
            (Some(version), None) => Self::Only(version),
            (None, None) => Self::All,
        }
    }

    pub fn into_parts(self) -> (Option<Version>, Option<Arc<Patched>>) {
        match self {
            Self::All => (None, None),
            Self::Only(version) => (Some(version), None),
            Self::Patched(only, patched) => (only, Some(patched)),
        }
    }
}
