//! Part of what a scan reads, in a form that another process can read without the catalog: the records of its row groups,
//! and the rows in memory that belong among them.
//!
//! Row groups whose rows interleave in the sort order stay in one part, so that the parts of a scan, one after the other, are
//! the scan.

use std::sync::Arc;

use imbl::Vector;
use serde::{Deserialize, Serialize};

use super::pieces::Piece;
use super::selected::Selected;
use crate::base::{BlockId, Error, Pool, Result, Seq, Timestamp, Version, caught};
use crate::block::BlockReader;
use crate::filter::Filter;
use crate::segment::{ColumnStats, Stat};
use crate::table::memory::overlay::{OverlayRows, SeenOverlay};
use crate::table::{Constants, ReadAs, ReadPoint, Scan, ScanOptions, StoredSchema, TableCodec, TableState, View};

/// Part of a scan of one table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableSplit {
    /// What messages call the table.
    name: String,
    /// The table, with one version and with the row groups of this part alone.
    table: TableState,
    version: Version,
    /// Rows that have expired then are not part of it. It is encoded beside it.
    #[serde(skip)]
    instant: Option<Timestamp>,
    schema: StoredSchema,
    shown: StoredSchema,
    constants: Constants,
    columns: Vec<String>,
    /// As text.
    filter: Option<String>,
    /// How many row groups, and how many rows in memory, each piece has.
    pieces: Vec<(u64, u64)>,
    /// Of the rows in memory, how many come before those of the pieces: they only hide rows of row groups.
    before: u64,
    memory: Vec<MemoryRow>,
    /// The number of rows, if it is known before they are read.
    rows: Option<u64>,
    /// Bounds of the column that the table is sorted by, if it is one without nulls here.
    bounds: Option<(Stat, Stat)>,
}

/// A row in memory, or that a key has none.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct MemoryRow {
    key: Vec<u8>,
    /// The version of the part that it comes from.
    version: Version,
    row: Option<Vec<u8>>,
}

impl Scan {
    /// The encoded bytes of all that it may read.
    pub(crate) fn weight(&self) -> u64 {
        self.pieces.iter().map(weight).sum()
    }

    /// Its parts, each of about `bytes` encoded bytes or one piece. Row groups that statistics rule out are left out, whose
    /// directories are read. After this the scan is empty.
    pub(crate) fn into_splits(self, bytes: u64) -> Result<Vec<TableSplit>> {
        // Others read them, who have no memtable to ask.
        let mut scan = self.with_all_row_writes()?;
        let (shared, cancel) = (scan.shared.clone(), scan.cancel());
        let mut pieces: Vec<Piece> = std::mem::take(&mut scan.pieces).into();
        if shared.selects() {
            let pruned = shared.pool.map(pieces, |piece| {
                cancel.check()?;
                Ok(shared.pruned(piece))
            });
            pieces = pruned?.into_iter().flatten().collect();
        }
        let mut splits = Vec::new();
        let mut pieces = pieces.into_iter().peekable();
        while pieces.peek().is_some() {
            let (mut part, mut size): (Vec<Piece>, u64) = (Vec::new(), 0);
            while let Some(piece) = pieces.next_if(|piece| part.is_empty() || size + weight(piece) <= bytes) {
                size += weight(&piece);
                part.push(piece);
            }
            splits.push(TableSplit::of(&scan, part)?);
        }
        Ok(splits)
    }
}

/// Bounds of the only column by which rows are sorted, from statistics.
fn bounds(scan: &Scan, pieces: &[Piece]) -> Result<Option<(Stat, Stat)>> {
    let shared = &scan.shared;
    let [sort] = shared.view.order()? else { return Ok(None) };
    let mut all: Option<ColumnStats> = None;
    for piece in pieces {
        if !piece.rows.is_empty() {
            return Ok(None);
        }
        for (group, _) in &piece.groups {
            let reader = shared.open(group)?;
            let Some(column) = reader.column(sort) else { return Ok(None) };
            all = Some(all.map_or_else(|| column.stats.clone(), |all| all.union(&column.stats)));
        }
    }
    let stats = all.filter(|stats| stats.nulls == 0);
    Ok(stats.and_then(|ColumnStats { min, max, .. }| min.zip(max)))
}

/// Encoded bytes of a piece, about.
fn weight(piece: &Piece) -> u64 {
    const MEMORY_ROW: u64 = 64;
    let groups = piece.groups.iter().map(|(group, _)| group.bytes()).sum::<u64>();
    groups + piece.rows.len() as u64 * MEMORY_ROW
}

impl TableSplit {
    fn of(scan: &Scan, pieces: Vec<Piece>) -> Result<Self> {
        let shared = &scan.shared;
        let (whole, version) = (&shared.view.table, shared.view.read_point.version);
        let mut table = TableState::new(whole.id, whole.spec.clone());
        table.schemas.clone_from(&whole.schemas);
        table.versions = Vector::unit(whole.record(version)?.clone());
        table.groups = pieces.iter().flat_map(|piece| &piece.groups).map(|(group, _)| group.clone()).collect();
        table.pins = whole.pins.iter().filter(|(at, _)| **at == version).map(|(at, pin)| (*at, pin.clone())).collect();
        (table.next_version, table.next_group) = (whole.next_version, whole.next_group);
        let (mut before, mut memory) = (0, Vec::new());
        if let Some(SeenOverlay { rows: overlay, .. }) = &shared.overlay {
            // A key may be the last of one piece and the first of the next; its row in memory belongs to the former, and
            // hides rows of both.
            let start = pieces.first().map_or(0, |piece| piece.rows.start);
            memory.extend(overlay.entries(start.saturating_sub(1)..start).map(|(key, version, _)| MemoryRow {
                key: key.to_vec(),
                version,
                row: None,
            }));
            before = memory.len() as u64;
            for piece in &pieces {
                memory.extend(overlay.entries(piece.rows.clone()).map(|(key, version, row)| MemoryRow {
                    key: key.to_vec(),
                    version,
                    row: row.map(<[u8]>::to_vec),
                }));
            }
        }
        let columns = shared.columns[..shared.width].iter();
        Ok(Self {
            name: shared.name.clone().unwrap_or_default(),
            table,
            version,
            instant: shared.view.read_point.instant.filter(|_| shared.expiry.is_some()),
            schema: StoredSchema::plain(shared.read_as.schema().clone()),
            shown: StoredSchema::plain(shared.read_as.shown().clone()),
            constants: shared.read_as.constants().clone(),
            columns: columns.map(|index| shared.read_as.schema().field(*index).name().clone()).collect(),
            filter: scan.filter().map(ToString::to_string),
            rows: shared.shows_all().then(|| pieces.iter().map(Piece::stored_rows).sum()),
            pieces: pieces.iter().map(|piece| (piece.groups.len() as u64, piece.rows.len() as u64)).collect(),
            before,
            memory,
            bounds: bounds(scan, &pieces)?,
        })
    }

    /// The instant at which it shows rows that expire; `None` if they do not.
    pub fn instant(&self) -> Option<Timestamp> {
        self.instant
    }

    /// The same after it was decoded.
    pub fn set_instant(&mut self, instant: Option<Timestamp>) {
        self.instant = instant;
    }

    /// The number of rows, if it is known before they are read.
    pub fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// Bounds of the column that the table is sorted by, if it is one, has no nulls here, and no rows are in memory.
    pub fn bounds(&self) -> Option<&(Stat, Stat)> {
        self.bounds.as_ref()
    }

    /// Its encoded bytes, about.
    pub fn bytes(&self) -> u64 {
        self.table.groups.iter().map(|group| group.bytes()).sum()
    }

    /// The blocks that it refers to.
    pub fn blocks(&self) -> impl Iterator<Item = BlockId> {
        self.table.addresses().map(|address| address.block)
    }

    /// Reads it, or just the columns and the rows that `asked` wants of it. A block that is gone is `SnapshotExpired`, if `reader` says so.
    ///
    /// # Errors
    /// `Corrupt` if it contradicts itself; `InvalidArgument` for a column that it does not have.
    pub fn scan(&self, reader: Arc<BlockReader>, pool: Pool, asked: &ScanOptions) -> Result<Scan> {
        self.table.check()?;
        let names = |schema: &StoredSchema| schema.0.fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
        if names(&self.schema) != names(&self.shown) {
            return Err(Error::corrupt(format!(
                "a split of '{}': its columns do not match the columns that it shows",
                self.name
            )));
        }
        let bad = |what: &str| Error::corrupt(format!("a split of '{}': {what}", self.name));
        let mut groups = self.table.groups.iter();
        let first = usize::try_from(self.before).ok().filter(|first| *first <= self.memory.len());
        let first = first.ok_or_else(|| bad("it has fewer rows in memory than come before its pieces"))?;
        let (mut pieces, mut at) = (Vec::with_capacity(self.pieces.len().min(self.table.groups.len())), first);
        for (in_groups, in_memory) in &self.pieces {
            let mut piece = Piece::default();
            for _ in 0..*in_groups {
                let group = groups.next().ok_or_else(|| bad("it has fewer row groups than its pieces"))?;
                piece.groups.push((group.clone(), self.table.visible(group, self.version)));
            }
            let end = usize::try_from(*in_memory).ok().and_then(|rows| at.checked_add(rows));
            let end = end.filter(|end| *end <= self.memory.len());
            piece.rows = at..end.ok_or_else(|| bad("it has fewer rows in memory than its pieces"))?;
            at = piece.rows.end;
            pieces.push(piece);
        }
        if groups.next().is_some() || at != self.memory.len() {
            return Err(bad("it has more row groups or rows in memory than its pieces"));
        }
        let overlay = match self.memory.is_empty() {
            true => None,
            false => Some(self.overlay()?),
        };
        if let Some(unknown) = asked.columns.iter().flatten().find(|name| !self.columns.contains(name)) {
            return Err(Error::invalid(format!(
                "the split does not have column '{unknown}'; its columns are '{}'",
                self.columns.join("', '")
            )));
        }
        let own = self.filter.as_deref().map(Filter::parse).transpose()?;
        let options = ScanOptions {
            columns: Some(asked.columns.clone().unwrap_or_else(|| self.columns.clone())),
            filter: own.into_iter().chain(asked.filter.clone()).reduce(Filter::and),
            cancel: asked.cancel.clone(),
            name: Some(self.name.clone()),
            ..ScanOptions::default()
        };
        let read_point =
            ReadPoint { version: self.version, since: false, seq: Seq(u64::MAX >> 1), instant: self.instant };
        let view = View { table: Arc::new(self.table.clone()), read_point, time: None, pin: None };
        let read_as = ReadAs::new(self.schema.0.clone(), self.constants.clone()).shown_as(self.shown.0.clone());
        Scan::of_selected(reader, pool, view, Selected { pieces, overlay, by_index: None }, &read_as, &options)
    }

    fn overlay(&self) -> Result<SeenOverlay> {
        if !self.table.spec.keyed {
            return Err(Error::corrupt("a split has rows by key, but its table has no key"));
        }
        let record = self.table.record(self.version)?;
        let schema = self.table.schemas.get(record.schema as usize);
        let schema = schema.ok_or_else(|| Error::corrupt("the version of a split has no schema"))?;
        let codec = TableCodec::new(&schema.0, schema.order(&self.table.spec))?;
        let mut overlay = OverlayRows::default();
        for MemoryRow { key, version, row } in &self.memory {
            overlay.keys.push(key);
            overlay.push(*version, row.as_deref());
        }
        if !overlay.keys.is_sorted() {
            return Err(Error::corrupt("the rows in memory of a split are not in order"));
        }
        // The codec trusts its rows; these came from elsewhere.
        let (keys, rows) = overlay.rows_at(0..self.memory.len());
        let columns: Vec<usize> = (0..schema.0.fields().len()).collect();
        caught(|| codec.decode(&keys, &rows, &columns))
            .map_err(|e| Error::corrupt(format!("rows in memory of a split of '{}': {}", self.name, e.message())))?;
        Ok(SeenOverlay::given(overlay, codec))
    }
}
