//! Writing rows by key to a table, freezing what was written, and turning it into row groups: see part.rs for what rows
//! in memory are.
//!
//! Applying effects writes no rows. States share memtables, and each sees the records up to its seq. `apply` adds what
//! a commit wrote to a list; once the commit is in the log, the thread that publishes the state *settles* it: moves the
//! list into the memtable. A draft, or a commit that was refused, is never settled.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use roaring::RoaringBitmap;

use super::part::{InMemory, Unsettled};
use crate::base::{Error, Result, Seq, Timestamp, Version};
use crate::memtable::{Keys, Memtable};
use crate::table::group::row_group::Deletion;
use crate::table::{
    ALIVE, Flush, History, MemRows, MemtablePart, NewGroup, PreparedRows, RowGroup, Rows, RowsChange, Run, TableCodec,
    TableState, Turnover, VersionKind, VersionRecord, WriteTimes,
};

impl TableState {
    /// The key columns of the newest version, if rows are unique by a key.
    pub fn key(&self) -> Option<&[String]> {
        self.spec.keyed.then(|| self.order())
    }

    /// How rows of the newest version's schema are encoded. `InvalidArgument` if the table has no key.
    pub fn codec(&self) -> Result<Arc<TableCodec>> {
        let Some(key) = self.key() else {
            return Err(Error::invalid("the table has no key; create it with one, or use append, update and delete"));
        };
        let schema = self.schema().ok_or_else(|| Error::invalid("the table has no version yet"))?;
        self.codec_of(&schema.0, key)
    }

    /// How rows of a schema are encoded: built once per schema.
    pub fn codec_of(&self, schema: &SchemaRef, key: &[String]) -> Result<Arc<TableCodec>> {
        let mut known = self.codec.0.lock();
        if let Some(codec) = known.as_ref().filter(|codec| Arc::ptr_eq(codec.schema(), schema)) {
            return Ok(codec.clone());
        }
        let codec = Arc::new(TableCodec::new(schema, key)?);
        *known = Some(codec.clone());
        Ok(codec)
    }

    /// The part that accepts writes.
    pub fn active(&self) -> Option<&MemtablePart> {
        self.parts.last().filter(|part| !part.frozen)
    }

    /// The version that row writes made now will belong to.
    pub fn next_version(&self) -> Version {
        Version(self.next_version)
    }

    /// Writes rows. They become visible in the memtable when the state is settled.
    pub fn write_rows(&self, version: Version, change: &RowsChange, seq: Seq, time: Timestamp) -> Result<TableState> {
        let mut next = self.clone();
        if version != self.next_version() {
            return Err(Error::conflict(format!(
                "the rows are for version {version}; expected version {}",
                self.next_version()
            )));
        }
        if next.active().is_none() {
            let schema = self.newest().map_or(0, |newest| newest.schema);
            let rows = Arc::new(MemRows::new(Memtable::new(), self.codec()?));
            let rows = InMemory(Some(rows));
            next.parts.push(MemtablePart { version, from: seq, frozen: false, died: ALIVE, schema, rows });
        }
        let part = next.parts.last().expect("there is one now");
        part.rows().watch_values(&self.indexes.list, &self.schemas[part.schema as usize])?;
        let part = part.rows().clone();
        let prepared = change.prepared(&part.codec)?;
        next.unsettled.0.push_back((part, prepared));
        next.note_rows(version, time);
        next.rows_seq = seq;
        Ok(next)
    }

    /// Numbers a version for the rows written since the last one.
    pub fn freeze(&self, seq: Seq, time: Timestamp) -> Result<TableState> {
        let (Some(_), Some(newest)) = (self.active(), self.newest()) else {
            return Err(Error::conflict("no rows were written after the newest version"));
        };
        let mut next = self.clone();
        let version = Version(next.next_version);
        next.next_version += 1;
        let (rows, schema) = (newest.rows, newest.schema);
        // The version exists from the time of its last row on.
        let time = self.instants.parts.get(&version).map_or(time, |written| written.last);
        let record =
            VersionRecord { version, seq, time, kind: VersionKind::Rows, rows, schema, metadata: None, story: None };
        next.add_version(record, None);
        next.freeze_part(false);
        Ok(next)
    }

    /// Freezes the part that accepts writes, for the version just numbered; `gone` if that version sees none of its
    /// rows.
    pub(in crate::table) fn freeze_part(&mut self, gone: bool) {
        if gone {
            let version = Version(self.next_version - 1);
            // No version sees rows that were not numbered or that the same version overwrote; reads at a time do.
            self.parts.iter_mut().filter(|part| part.died == ALIVE).for_each(|part| part.died = version);
        }
        if let Some(part) = self.parts.last_mut() {
            part.frozen = true;
        }
    }

    /// Whether any of `keys` was written by row since the commit `since`, when this table was `then`; may return `true` if
    /// rows of that time have been flushed since.
    pub fn wrote_any(&self, keys: &Keys, then: &TableState, since: Seq) -> bool {
        if self.rows_seq == then.rows_seq {
            return false;
        }
        self.any_written(then, |part, unsettled| match unsettled {
            Some(rows) => keys.iter().any(|key| rows.find(key).is_some()),
            None => {
                let mut wrote = false;
                let newest = Seq(u64::MAX >> 1);
                part.memtable.get_many(keys.iter(), newest, |_, record| wrote |= record.seq() > since);
                wrote
            }
        })
    }

    /// Whether `wrote` says so of rows still to be settled, or of a memtable to which rows may have been written since this table was
    /// `then`; may be `true` if rows of that time have been flushed since.
    pub(in crate::table) fn any_written(
        &self,
        then: &TableState,
        wrote: impl Fn(&MemRows, Option<&PreparedRows>) -> bool,
    ) -> bool {
        // The part that accepted writes at that time still has its rows, even if it has been flushed; unless the state was
        // read again in between.
        let known = then.active().map_or(then.next_version(), |active| Version(active.version.0 + 1));
        if self.flushed != then.flushed && self.flushed >= known {
            return true;
        }
        if self.unsettled.0.iter().any(|(part, prepared)| wrote(part, Some(prepared))) {
            return true;
        }
        let newer = self.parts.iter().filter(|part| part.version >= then.next_version());
        let flushed = then.active().filter(|active| self.flushed >= active.version);
        if flushed.is_some_and(|part| part.rows().is_left()) {
            return true;
        }
        newer.chain(flushed).any(|part| wrote(part.rows(), None))
    }

    /// Puts rows that commits wrote into the memtables. Called by the thread that publishes the state, once those
    /// commits are durable.
    pub fn settle(&mut self, seq: Seq, time: Timestamp) -> Result<u64> {
        let mut bytes = 0;
        for (part, prepared) in std::mem::take(&mut self.unsettled.0) {
            bytes += part.put(&prepared, seq, time)?;
        }
        Ok(bytes)
    }

    /// Whether rows are still to be settled.
    pub fn has_unsettled(&self) -> bool {
        !self.unsettled.0.is_empty()
    }

    /// Releases the rows that are still to be settled.
    pub fn forget_rows(&mut self) {
        self.unsettled.0.clear();
    }

    /// Bytes of the rows to be settled, and of the largest memtable that they go to.
    pub fn unsettled_bytes(&self) -> (u64, u64) {
        let own = |(_, prepared): &Unsettled| prepared.room_bytes();
        let there = |(part, _): &Unsettled| part.memtable.bytes();
        (self.unsettled.0.iter().map(own).sum(), self.unsettled.0.iter().map(there).max().unwrap_or(0))
    }

    /// Puts rows of an earlier commit into the memtable of the part that they belong to, if it still exists.
    pub fn replay_rows(&self, version: Version, change: &RowsChange, seq: Seq, time: Timestamp) -> Result<()> {
        match self.parts.iter().find(|part| part.version == version) {
            Some(part) => {
                let prepared = change.prepared(&part.rows().codec)?;
                part.rows().put(&prepared, seq, time).map(drop)
            }
            None => Ok(()),
        }
    }

    /// Creates the memtables of a table that was read.
    pub fn restore_parts(&mut self) -> Result<()> {
        for part in &mut self.parts {
            let schema = &self.schemas[part.schema as usize];
            let codec = Arc::new(TableCodec::new(&schema.0, schema.order(&self.spec))?);
            let rows = MemRows::new(Memtable::new(), codec);
            rows.watch_values(&self.indexes.list, schema)?;
            part.rows = InMemory(Some(Arc::new(rows)));
        }
        Ok(())
    }

    /// Fails if the parts are inconsistent with each other or the rest.
    pub(in crate::table) fn check_parts(&self) -> Result<()> {
        let bad = |what: &str| Err(Error::corrupt(format!("table {}: {what}", self.id)));
        if !self.spec.keyed && !self.parts.is_empty() {
            return bad("it has rows by key, but no key");
        }
        if self.parts.windows(2).any(|pair| pair[0].version >= pair[1].version || !pair[0].frozen) {
            return bad("row writes are out of order");
        }
        for part in &self.parts {
            let next = part.version.0 == self.next_version;
            if part.version.0 > self.next_version || next == part.frozen || part.schema as usize >= self.schemas.len() {
                return bad("row writes have an impossible version or schema");
            }
        }
        Ok(())
    }

    /// The oldest part, if it is frozen.
    pub fn to_flush(&self) -> Option<&MemtablePart> {
        self.parts.first().filter(|part| part.frozen)
    }

    /// Whether a retained version sees rows of the oldest part, and rows of row groups that it hides.
    pub fn needs_part(&self, part: &MemtablePart) -> bool {
        self.retained().any_in(part.version, part.died)
    }

    /// Turns the oldest part into row groups, and `history`.
    pub fn flush(&self, flush: &Flush, history: &[NewGroup], seq: Seq) -> Result<TableState> {
        let mut next = self.clone();
        // In a log of a build that did not keep parts that no version sees, such parts are skipped.
        next.parts.retain(|part| !part.is_unseen() || part.version >= flush.version);
        let part = match next.to_flush() {
            Some(part) if part.version == flush.version => part.clone(),
            _ => {
                return Err(Error::conflict(format!(
                    "the rows of version {} are not the ones to be flushed",
                    flush.version
                )));
            }
        };
        next.parts.remove(0);
        let mut turnover = Turnover { added: flush.groups.iter().map(NewGroup::live).sum(), removed: 0 };
        for (id, positions) in &flush.deletions {
            // What a bulk write has removed since need not be deleted.
            let Some(index) = next.groups.iter().position(|group| group.id == *id) else { continue };
            let mut group = RowGroup::clone(&next.groups[index]);
            if positions.0.max().is_some_and(|max| max >= group.rows) {
                return Err(Error::invalid(format!("a row past the end of row group {} cannot be deleted", id.0)));
            }
            // A row is deleted once: by the earliest version.
            for later in group.deletions.iter_mut().filter(|deletion| deletion.born > part.version) {
                let rest = &*later.rows.0 - &*positions.0;
                later.rows = rest.into();
            }
            group.deletions.retain(|deletion| !deletion.rows.0.is_empty());
            let at = group.deletions.partition_point(|deletion| deletion.born <= part.version);
            group.deletions.insert(at, Deletion { born: part.version, rows: positions.clone() });
            next.groups.set(index, Arc::new(group));
            turnover.removed += positions.0.len();
        }
        for group in &flush.groups {
            let run = Run { rows: group.rows, born: part.version, died: part.died };
            next.add_group(group, part.schema, run)?;
        }
        let instants = Arc::make_mut(&mut next.instants);
        if let Some(written) = instants.parts.remove(&part.version).filter(|_| !history.is_empty()) {
            let groups = history.iter().map(|group| (group.address, group.rows)).collect();
            let WriteTimes { base, first, .. } = written;
            instants.histories.push(History { version: part.version, base, first, schema: part.schema, groups });
            next.check_instants()?;
        }
        next.flushed = next.flushed.max(part.version);
        next.layout_seq = seq;
        next.count_rows(part.version);
        // A version that also came with row groups has counted nothing.
        if next.version(part.version).is_some_and(|record| record.kind == VersionKind::Rows) {
            next.edit_story(part.version, |story| story.rows = Some(turnover));
        }
        Ok(next)
    }

    /// Counts the rows of versions from `from` on that no longer depend on parts.
    pub(in crate::table) fn count_rows(&mut self, from: Version) {
        let until = self.parts.first().map_or(ALIVE, |part| part.version);
        let count = |version: Version| -> u64 {
            self.groups.iter().map(|group| self.visible(group, version).count(group.rows)).sum()
        };
        let records = self.versions.iter().chain(self.pins.values().map(|pin| &pin.record));
        let versions = records.map(|record| record.version).filter(|version| (from..until).contains(version));
        let counts: BTreeMap<Version, u64> = versions.map(|version| (version, count(version))).collect();
        for (version, rows) in counts {
            self.edit_version(version, |record| record.rows = rows);
        }
    }

    /// Whether what `version` sees depends on parts, not only on row groups.
    pub fn depends_on_parts(&self, version: Version) -> bool {
        self.parts.iter().any(|part| part.frozen && part.version <= version && version < part.died)
    }

    /// Rows of row groups that `version` sees, including hidden ones.
    pub fn stored_rows(&self, version: Version) -> u64 {
        self.groups.iter().map(|group| self.visible(group, version).count(group.rows)).sum()
    }
}

/// The rows of `rows` whose runs were born before `version`.
pub(in crate::table) fn born_before(group: &RowGroup, rows: Rows, version: Version) -> Rows {
    if group.runs.iter().all(|run| run.born < version) {
        return rows;
    }
    let mut older = RoaringBitmap::new();
    for (range, _) in group.spans().filter(|(_, run)| run.born < version) {
        older.insert_range(range);
    }
    older &= rows.positions(group.rows);
    Rows::of(older, group.rows)
}
