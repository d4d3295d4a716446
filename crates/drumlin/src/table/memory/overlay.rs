//! Row writes that are not in row groups yet, laid over the row groups of a version.

use std::ops::Range;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::part::{MemRows, Unsettled};
use super::row_writes::born_before;
use crate::base::planted::{Bug, planted};
use crate::base::{Result, Seq, Timestamp, Version};
use crate::memtable::{Key, Keys, RowBytes};
use crate::table::index::compared::{Hashes, meets};
use crate::table::keys::group_keys::{GroupKeys, candidates};
use crate::table::read::group_reader::GroupReader;
use crate::table::{RowGroup, Rows, TableCodec, TableIndex, TableState};

/// What a reader sees of a table: a version, and perhaps the rows written since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPoint {
    /// The version.
    pub version: Version,
    /// Whether rows written since it was numbered are visible too.
    pub since: bool,
    /// The state that is read: rows of later commits, which may be in the same memtable, are not visible.
    pub seq: Seq,
    /// Rows that have expired at that instant are not visible. `None` if all are, whether they have expired or not.
    pub instant: Option<Timestamp>,
}

impl ReadPoint {
    /// The same with rows that have expired.
    #[must_use]
    pub fn with_expired(self) -> Self {
        Self { instant: None, ..self }
    }
}

/// The visible memtables, and rows still to be put in them; the newest first.
pub(in crate::table) struct Overlay {
    sources: Vec<OverlayPart>,
    seq: Seq,
}

struct OverlayPart {
    version: Version,
    schema: u32,
    part: Arc<MemRows>,
    /// Of commits not published yet.
    unsettled: Vec<Unsettled>,
    /// Whether keys that it deletes may still have rows in row groups.
    numbered: bool,
}

/// What memtables say about a key.
pub(in crate::table) enum MemtableHit {
    /// It has a row, at this place of those found.
    Row(u32),
    /// It has no row, except in row groups, among rows born at or after this version.
    Deleted(Version),
}

impl Overlay {
    /// What is visible of `table`; `None` if row groups hold all of it.
    pub fn new(table: &TableState, read_point: ReadPoint) -> Option<Self> {
        let mut sources = Vec::new();
        for part in table.parts.iter().rev() {
            let seen = if part.frozen { part.version <= read_point.version } else { read_point.since };
            if !seen || part.died <= read_point.version {
                continue;
            }
            let own = |(rows, _): &&Unsettled| Arc::ptr_eq(rows, part.rows());
            let unsettled: Vec<Unsettled> = table.unsettled.0.iter().rev().filter(own).cloned().collect();
            if part.rows().memtable.keys() > 0 || !unsettled.is_empty() {
                let (version, schema, numbered) = (part.version, part.schema, part.frozen);
                sources.push(OverlayPart { version, schema, part: part.rows().clone(), unsettled, numbered });
            }
        }
        (!sources.is_empty()).then_some(Self { sources, seq: read_point.seq })
    }

    /// The number of keys that it speaks of, or more.
    pub fn keys_at_most(&self) -> u64 {
        let unsettled =
            |source: &OverlayPart| source.unsettled.iter().map(|(_, rows)| rows.puts.len() as u64).sum::<u64>();
        self.sources.iter().map(|source| source.part.memtable.keys() + unsettled(source)).sum()
    }

    /// Looks up keys; the rows found are added to `rows`.
    pub fn find_many(&self, keys: &Keys, rows: &mut RowBytes) -> Vec<Option<MemtableHit>> {
        /// The number of records found before their rows are copied, while they are in the CPU cache.
        const CHUNK: usize = 64;
        let mut said: Vec<Option<MemtableHit>> = Vec::with_capacity(keys.len());
        said.resize_with(keys.len(), || None);
        for source in &self.sources {
            for (_, prepared) in &source.unsettled {
                for (at, said) in said.iter_mut().enumerate().filter(|(_, said)| said.is_none()) {
                    *said = prepared.find(keys.get(at)).map(|row| match row {
                        Some(row) => {
                            rows.push_with(|out| out.extend_from_slice(row));
                            MemtableHit::Row(rows.len() as u32 - 1)
                        }
                        None => MemtableHit::Deleted(source.version),
                    });
                }
            }
            for first in (0..keys.len()).step_by(CHUNK) {
                let chunk = first..(first + CHUNK).min(keys.len());
                let mut records = [None; CHUNK];
                let memtable = &source.part.memtable;
                if chunk.len() == 1 {
                    records[0] = memtable.get(keys.get(first), self.seq);
                } else {
                    let wanted = chunk.clone().map(|at| keys.get(at));
                    memtable.get_many(wanted, self.seq, |at, record| records[at] = Some(record));
                }
                // A record is copied in whole words.
                let bytes = records.iter().flatten().map(|record| record.row_bytes() + 8).sum();
                rows.reserve(chunk.len(), bytes);
                for (at, record) in chunk.zip(records) {
                    let Some(record) = record.filter(|_| said[at].is_none()) else { continue };
                    said[at] = Some(match record.is_delete() {
                        true => MemtableHit::Deleted(source.version),
                        false => {
                            rows.push_with(|out| record.copy_row(out));
                            MemtableHit::Row(rows.len() as u32 - 1)
                        }
                    });
                }
            }
        }
        said
    }

    /// The keys that rows with one of `hashes` in a unique index were written with, each once; `None` if that is not known.
    pub fn keys_with(&self, index: &TableIndex, hashes: &Hashes) -> Option<Keys> {
        let mut found = Keys::default();
        for source in &self.sources {
            let values = source.part.values_of(index);
            match &values {
                Some(values) if values.is_complete => values.find(hashes.iter().copied(), &mut found),
                _ if source.part.memtable.keys() == 0 => {}
                _ => return None,
            }
            for (part, rows) in &source.unsettled {
                let own = values.as_ref()?.hashes(&part.codec, rows);
                let has = |at: &usize| own[*at].is_some_and(|hash| meets(Some(hashes), hash));
                (0..rows.puts.len()).filter(has).for_each(|at| found.push_key(rows.puts.get(at)));
            }
        }
        Some(found.each_once())
    }

    /// The keys of the records that `find` finds by their numbers in each memtable, whose rows have the schema of this number, and of all rows
    /// that are not in one yet; each once, in order. `None` if it finds out nothing about one.
    pub fn keys_found(&self, mut find: impl FnMut(&MemRows, u32) -> Result<Option<Vec<u32>>>) -> Result<Option<Keys>> {
        let mut keys = Keys::default();
        for source in &self.sources {
            let Some(found) = find(&source.part, source.schema)? else { return Ok(None) };
            source.part.memtable.records_at(found.into_iter()).iter().for_each(|record| record.copy_key(&mut keys));
            source.unsettled.iter().flat_map(|(_, rows)| rows.puts.iter()).for_each(|key| keys.push_key(key));
        }
        Ok(Some(keys.each_once()))
    }

    /// Those of `keys` that have a row, and the rows.
    pub fn rows_with(&self, keys: &Keys) -> (Keys, RowBytes) {
        let mut found = RowBytes::default();
        let hits = self.find_many(keys, &mut found);
        let mut rows = RowBytes::default();
        let mut live = Vec::new();
        for (at, hit) in hits.into_iter().enumerate() {
            if let Some(MemtableHit::Row(place)) = hit {
                live.push(at);
                rows.push_with(|out| out.extend_from_slice(found.get(place as usize)));
            }
        }
        (keys.take(live.into_iter()), rows)
    }

    /// Those of some rows of a row group that no key in memory hides; `keys` are theirs.
    pub fn shown(&self, group: &RowGroup, rows: &RoaringBitmap, keys: &Keys) -> RoaringBitmap {
        let hits = self.find_many(keys, &mut RowBytes::default());
        let is_shown = |(row, hit): (u32, Option<MemtableHit>)| match hit {
            None => Some(row),
            Some(MemtableHit::Row(_)) => None,
            Some(MemtableHit::Deleted(version)) => group.born(row).is_some_and(|born| born >= version).then_some(row),
        };
        rows.iter().zip(hits).filter_map(is_shown).collect()
    }

    /// Whether row groups may hold a row of a key that the part of `version` deletes.
    pub fn stands_beside(&self, version: Version) -> bool {
        self.sources.iter().any(|source| source.version == version && source.numbered)
    }

    /// Everything visible, in the order of the keys.
    pub fn all(&self) -> OverlayRows {
        let mut slices: Vec<OverlayRows> = Vec::new();
        for source in &self.sources {
            for (_, prepared) in &source.unsettled {
                let mut slice = OverlayRows::default();
                let mut entries: Vec<_> = prepared.puts.iter().enumerate().map(|(at, key)| (key, Some(at))).collect();
                entries.extend(prepared.deletes.iter().map(|key| (key, None)));
                entries.sort_by_key(|(key, _)| *key);
                for (key, row) in entries {
                    slice.keys.push_key(key);
                    slice.push(source.version, row.map(|at| prepared.rows.get(at)));
                }
                slices.push(slice);
            }
            let mut slice = OverlayRows::default();
            let memtable = &source.part.memtable;
            let entries = memtable.keys() as usize;
            slice.versions.reserve(entries);
            slice.row.reserve(entries);
            // All that its rows can take; what is not written to takes no memory.
            slice.rows.reserve(entries, memtable.bytes() as usize);
            for record in memtable.range(None, None, self.seq) {
                record.copy_key(&mut slice.keys);
                slice.versions.push(source.version);
                if record.is_delete() {
                    slice.row.push(None);
                } else {
                    slice.row.push(Some(slice.rows.len() as u32));
                    slice.rows.push_with(|out| record.copy_row(out));
                }
            }
            slices.push(slice);
        }
        slices.retain(|slice| !slice.keys.is_empty());
        if slices.len() < 2 {
            return slices.pop().unwrap_or_default();
        }
        let mut places: Vec<(usize, usize)> = Vec::new();
        slices.iter().enumerate().for_each(|(at, slice)| places.extend((0..slice.keys.len()).map(|place| (at, place))));
        // Of equal keys, the one from the newest slice stays: it comes first.
        places.sort_by(|&(a, i), &(b, j)| slices[a].keys.get(i).cmp(&slices[b].keys.get(j)).then(a.cmp(&b)));
        places.dedup_by(|b, a| slices[a.0].keys.get(a.1) == slices[b.0].keys.get(b.1));
        let mut all = OverlayRows::default();
        for (slice, at) in places {
            let slice = &slices[slice];
            all.keys.push_key(slice.keys.get(at));
            all.push(slice.versions[at], slice.row[at].map(|row| slice.rows.get(row as usize)));
        }
        all
    }

    /// The codec of what is visible: all of it has one schema, because a write with another schema replaces everything.
    pub fn codec(&self) -> &TableCodec {
        &self.sources[0].part.codec
    }
}

/// Row writes as one read sees them.
pub(in crate::table) struct SeenOverlay {
    /// All of them, or those that may be in the result.
    pub rows: OverlayRows,
    /// How they are encoded.
    pub codec: TableCodec,
    /// What is asked which rows of row groups are hidden, if not all row writes are in `rows`.
    asked: Option<Overlay>,
}

impl SeenOverlay {
    /// All row writes.
    pub fn whole(overlay: &Overlay) -> Self {
        Self { rows: overlay.all(), codec: overlay.codec().clone(), asked: None }
    }

    /// Of all row writes, the rows with some keys, in their order.
    pub fn part(overlay: Overlay, keys: &Keys) -> Self {
        let (live, found) = overlay.rows_with(keys);
        let mut rows = OverlayRows::default();
        for (at, key) in live.iter().enumerate() {
            rows.keys.push_key(key);
            rows.push(Version(0), Some(found.get(at)));
        }
        Self { rows, codec: overlay.codec().clone(), asked: Some(overlay) }
    }

    /// Rows and deletes that were handed over.
    pub fn given(rows: OverlayRows, codec: TableCodec) -> Self {
        Self { rows, codec, asked: None }
    }

    /// Whether all row writes are in `rows`.
    pub fn is_whole(&self) -> bool {
        self.asked.is_none()
    }

    /// Those of `visible` that no row write hides.
    pub fn hide(&self, reader: &GroupReader<'_>, visible: Rows) -> Result<Rows> {
        let Some(overlay) = self.asked.as_ref().filter(|_| visible != Rows::None) else {
            return self.rows.hide(reader, &self.codec, visible);
        };
        if planted(Bug::TrustHitsOfGroups) {
            return Ok(visible);
        }
        let rows = visible.positions(reader.group.rows);
        let columns = reader.some_rows(self.codec.schema(), self.codec.key_places(), &rows)?;
        let shown = overlay.shown(reader.group, &rows, &self.codec.key_codec().encode(&columns)?);
        Ok(Rows::of(shown, reader.group.rows))
    }
}

/// What memtables say, in the order of the keys.
#[derive(Default)]
pub(in crate::table) struct OverlayRows {
    pub keys: Keys,
    /// The version of the part that decides.
    versions: Vec<Version>,
    /// For each key, the place of its row; `None` if it is deleted.
    row: Vec<Option<u32>>,
    rows: RowBytes,
}

impl OverlayRows {
    /// Adds the row of the key that was pushed last, or that it has none.
    pub fn push(&mut self, version: Version, row: Option<&[u8]>) {
        self.versions.push(version);
        self.row.push(row.map(|_| self.rows.len() as u32));
        if let Some(row) = row {
            self.rows.push_with(|out| out.extend_from_slice(row));
        }
    }

    /// The keys at some places, the version that decides about each, and its row; `None` for a delete.
    pub fn entries(&self, range: Range<usize>) -> impl Iterator<Item = (Key<'_>, Version, Option<&[u8]>)> {
        range.map(|at| (self.keys.get(at), self.versions[at], self.row[at].map(|row| self.rows.get(row as usize))))
    }

    /// The number of rows, not counting deletes.
    pub fn live(&self) -> u64 {
        self.rows.len() as u64
    }

    /// The keys and rows at some places, without deletes.
    pub fn rows_at(&self, range: Range<usize>) -> (Keys, RowBytes) {
        let live = || range.clone().filter(|at| self.row[*at].is_some());
        let keys = self.keys.take(live());
        // Rows lie in the order of the keys, so those of a range are next to each other.
        let first = range.clone().find_map(|at| self.row[at]).unwrap_or(0) as usize;
        let rows = self.rows.slice(first..first + keys.len());
        (keys, rows)
    }

    /// Those of `visible` that no key in the overlay hides.
    pub fn hide(&self, reader: &GroupReader<'_>, codec: &TableCodec, visible: Rows) -> Result<Rows> {
        let group = reader.group;
        // An invisible row group may have keys of another type.
        if visible == Rows::None {
            return Ok(visible);
        }
        let range = candidates(reader, codec, &self.keys)?;
        if range.is_empty() {
            return Ok(visible);
        }
        let keys = GroupKeys::of(reader, codec)?;
        let mut hidden: Vec<(Version, u32)> = Vec::new();
        keys.find(&self.keys, range, |at, row| hidden.push((self.versions[at], row)));
        if hidden.is_empty() {
            return Ok(visible);
        }
        let mut rows = visible.positions(group.rows);
        let newest = hidden.iter().map(|(version, _)| *version).max().expect("not empty");
        let oldest = hidden.iter().map(|(version, _)| *version).min().expect("not empty");
        if group.runs.iter().all(|run| run.born < oldest) {
            let hidden: RoaringBitmap = hidden.iter().map(|(_, row)| *row).collect();
            rows -= hidden;
        } else {
            let older = born_before(group, Rows::All, newest).positions(group.rows);
            for (version, row) in hidden.into_iter().filter(|(_, row)| older.contains(*row)) {
                if version == newest || group.born(row).is_some_and(|born| born < version) {
                    rows.remove(row);
                }
            }
        }
        Ok(Rows::of(rows, group.rows))
    }
}
