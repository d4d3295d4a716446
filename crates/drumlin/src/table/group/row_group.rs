//! A row group's record in the catalog: where it is stored and which versions see which of its rows.
//!
//! A version `v` sees the rows of runs with `born <= v < died`, except for deletions with `born <= v`. Runs cover the
//! row group in order. A row is in at most one deletion.
//!
//! So there is no manifest for each version: an append is one record, a delete writes positions only, reading an old
//! version is a filter over records, and what dropping versions frees is arithmetic.

use std::ops::Range;
use std::sync::Arc;

use roaring::RoaringBitmap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::ends::Ends;
use super::key_bounds::KeyBounds;
use super::patch::{Patched, RecordTail};
use super::standing::{Standing, Tract};
use crate::base::{Memo, Result, Version};
use crate::block::Address;

/// The maximum number of rows in a row group: 120 x 1,024.
pub const ROWS_MAX: u32 = 122_880;

/// `died` of rows that are still alive.
pub const ALIVE: Version = Version(u64::MAX);

/// A row group's number within its table, never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupId(pub u64);

/// Consecutive rows that appeared in the same version and disappeared in the same version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The number of rows.
    pub rows: u32,
    /// The first version that sees them.
    pub born: Version,
    /// The first version that no longer does; [`ALIVE`] if none.
    pub died: Version,
}

/// Rows that one version deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// The first version that does not see them.
    pub born: Version,
    /// Their positions.
    pub rows: Positions,
}

/// A shared set of row positions; serialises in the portable Roaring format.
#[derive(Clone, Debug, PartialEq)]
pub struct Positions(pub Arc<RoaringBitmap>);

impl Eq for Positions {}

impl From<RoaringBitmap> for Positions {
    fn from(rows: RoaringBitmap) -> Self {
        Self(Arc::new(rows))
    }
}

impl Serialize for Positions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(self.0.serialized_size());
        self.0.serialize_into(&mut bytes).expect("a vector takes all bytes");
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for Positions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <Vec<u8>>::deserialize(deserializer)?;
        let rows = RoaringBitmap::deserialize_from(&bytes[..]).map_err(de::Error::custom)?;
        Ok(rows.into())
    }
}

/// Some rows of a row group.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// None of them.
    None,
    /// All of them.
    All,
    /// These; neither none nor all.
    Some(RoaringBitmap),
}

impl Rows {
    pub(in crate::table) fn of(rows: RoaringBitmap, total: u32) -> Self {
        match rows.len() {
            0 => Rows::None,
            n if n == u64::from(total) => Rows::All,
            _ => Rows::Some(rows),
        }
    }

    /// These rows and `others`, in a row group of `total` rows.
    pub fn or(&self, others: &Rows, total: u32) -> Rows {
        match (self, others) {
            (Rows::All, _) | (_, Rows::All) => Rows::All,
            (Rows::None, rows) | (rows, Rows::None) => rows.clone(),
            (Rows::Some(a), Rows::Some(b)) => Rows::of(a | b, total),
        }
    }

    /// These rows without `others`, in a row group of `total` rows.
    pub fn without(&self, others: &Rows, total: u32) -> Rows {
        match (self, others) {
            (rows, Rows::None) => rows.clone(),
            (Rows::None, _) | (_, Rows::All) => Rows::None,
            (rows, others) => {
                let mut rows = rows.positions(total);
                take_out(&mut rows, &others.positions(total));
                Rows::of(rows, total)
            }
        }
    }

    /// The number of these rows in a row group of `total` rows.
    pub fn count(&self, total: u32) -> u64 {
        match self {
            Rows::None => 0,
            Rows::All => u64::from(total),
            Rows::Some(rows) => rows.len(),
        }
    }

    /// The positions of these rows in a row group of `total` rows.
    pub fn positions(&self, total: u32) -> RoaringBitmap {
        match self {
            Rows::None => RoaringBitmap::new(),
            Rows::All => {
                let mut rows = RoaringBitmap::new();
                rows.insert_range(0..total);
                rows
            }
            Rows::Some(rows) => rows.clone(),
        }
    }
}

/// Takes rows out. From runs, they would be taken one by one, and all later runs be moved each time.
fn take_out(rows: &mut RoaringBitmap, dead: &RoaringBitmap) {
    const FEW: u64 = 16;
    if dead.len() > FEW {
        rows.remove_run_compression();
    }
    *rows -= dead;
}

/// A row group of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGroup {
    /// Its number within the table.
    pub id: GroupId,
    /// Where its bytes are, or those of its newest layer.
    pub address: Address,
    /// Its rows, including deleted ones.
    pub rows: u32,
    /// Which of the table's schemas it was written with, or its newest layer.
    pub schema: u32,
    /// Covers all rows in order.
    pub runs: Vec<Run>,
    /// Rows deleted individually, by version, ascending.
    pub deletions: Vec<Deletion>,
    /// In which order its rows stand.
    pub standing: Standing,
    /// If set, this record serves only that version: a snapshot pins it, and the table has continued from an older one.
    pub only: Option<Version>,
    /// What lies below its newest layer, if it has several.
    pub patched: Option<Arc<Patched>>,
    /// The bounds of its keys, once computed: in the encoding of its own schema, so only readers of a version that contains
    /// it may use them.
    pub bounds: Memo<KeyBounds>,
    /// The least and the greatest of its sort keys, once read; of the rows, not of what a version sees.
    pub ends: Memo<Ends>,
}

/// The fields of a stored record, in order.
type Fields<A, B> = (GroupId, Address, u32, u32, A, B, Standing, RecordTail);

impl Serialize for RowGroup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, address, rows, schema, runs, deletions, standing, only, patched, .. } = self;
        let tail = RecordTail::new(*only, patched);
        let fields: Fields<&[Run], &[Deletion]> = (*id, *address, *rows, *schema, runs, deletions, *standing, tail);
        fields.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RowGroup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (id, address, rows, schema, runs, deletions, standing, tail): Fields<Vec<Run>, Vec<Deletion>> =
            Deserialize::deserialize(deserializer)?;
        let (only, patched) = tail.into_parts();
        Ok(Self {
            id,
            address,
            rows,
            schema,
            runs,
            deletions,
            standing,
            only,
            patched,
            bounds: Memo::default(),
            ends: Memo::default(),
        })
    }
}

/// Whether some retained version is in `born..died`. `retained` is sorted.
pub fn any_in(retained: &[Version], born: Version, died: Version) -> bool {
    retained.get(retained.partition_point(|&v| v < born)).is_some_and(|&v| v < died)
}

impl RowGroup {
    /// The tract that it is of.
    pub fn tract(&self) -> Option<Tract> {
        self.standing.tract()
    }

    /// Whether its rows, one after the other, are in the order in which they are shown.
    pub fn is_in_order(&self) -> bool {
        self.standing == Standing::Sorted
    }

    /// The runs with the positions they cover.
    pub fn spans(&self) -> impl Iterator<Item = (Range<u32>, Run)> + '_ {
        let mut start = 0;
        self.runs.iter().map(move |run| {
            let range = start..start + run.rows;
            start = range.end;
            (range, *run)
        })
    }

    /// The version in which a row appeared.
    pub fn born(&self, row: u32) -> Option<Version> {
        self.spans().find(|(range, _)| range.contains(&row)).map(|(_, run)| run.born)
    }

    /// Whether version `v` contains rows of it, including deleted ones.
    pub fn is_in(&self, v: Version) -> bool {
        self.runs.iter().any(|run| run.born <= v && v < run.died)
    }

    /// The rows that version `v` sees, if this record serves `v` at all: see [`crate::table::TableState::visible`].
    pub fn visible(&self, v: Version) -> Rows {
        let sees = |run: &Run| run.born <= v && v < run.died;
        if !self.is_in(v) {
            return Rows::None;
        }
        let deleted = || self.deletions.iter().filter(|deletion| deletion.born <= v);
        if self.runs.iter().all(sees) && deleted().next().is_none() {
            return Rows::All;
        }
        let mut rows = RoaringBitmap::new();
        for (range, _) in self.spans().filter(|(_, run)| sees(run)) {
            rows.insert_range(range);
        }
        for deletion in deleted() {
            take_out(&mut rows, &deletion.rows.0);
        }
        Rows::of(rows, self.rows)
    }

    /// The rows that at least one of the `retained` versions (sorted) sees. O(runs x deletions) set operations.
    pub fn needed(&self, retained: &[Version]) -> Rows {
        let needs = |run: &Run| any_in(retained, run.born, run.died);
        if !self.runs.iter().any(needs) {
            return Rows::None;
        }
        if self.deletions.is_empty() && self.runs.iter().all(needs) {
            return Rows::All;
        }
        if retained.len() == 1 {
            return self.visible(retained[0]);
        }
        let mut rows = RoaringBitmap::new();
        for (range, run) in self.spans().filter(|(_, run)| needs(run)) {
            rows.insert_range(range.clone());
            for deletion in &self.deletions {
                if !any_in(retained, run.born, run.died.min(deletion.born)) {
                    let mut dead = RoaringBitmap::new();
                    dead.insert_range(range.clone());
                    dead &= &*deletion.rows.0;
                    take_out(&mut rows, &dead);
                }
            }
        }
        Rows::of(rows, self.rows)
    }

    /// What version `v` sees, as a record that only `v` sees.
    pub fn frozen(&self, v: Version) -> RowGroup {
        let runs = self.runs.iter().map(|run| {
            let died = if run.born <= v && v < run.died { Version(v.0 + 1) } else { v };
            Run { rows: run.rows, born: v, died }
        });
        let deletions = self.deletions.iter().filter(|deletion| deletion.born <= v).cloned();
        RowGroup { runs: runs.collect(), deletions: deletions.collect(), only: Some(v), ..self.clone() }
    }

    /// The record as if there had been no version after `v`.
    pub fn reverted(&self, v: Version) -> RowGroup {
        let runs = self.runs.iter().map(|run| {
            let died = match run.died {
                _ if run.born > v => run.born,
                died if died > v => ALIVE,
                died => died,
            };
            Run { died, ..*run }
        });
        let deletions = self.deletions.iter().filter(|deletion| deletion.born <= v).cloned();
        RowGroup { runs: runs.collect(), deletions: deletions.collect(), ..self.clone() }
    }
}
