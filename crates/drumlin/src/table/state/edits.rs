//! The edits of a table's state that commits make: each makes a new value, or fails and leaves the old one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, Timestamp, Version};
use crate::block::Address;
use crate::table::{
    ALIVE, Deletion, GroupId, Kill, NewGroup, PinnedVersion, Rewrite, RowGroup, Rows, Run, TableChange, TableState,
    Turnover, VersionRecord,
};

impl TableState {
    /// Fails if the record is inconsistent, as only a damaged one is.
    pub fn check(&self) -> Result<()> {
        let bad = |what: String| Err(Error::corrupt(format!("table {}: {what}", self.id)));
        let records = self.versions.iter().chain(self.pins.values().map(|pin| &pin.record));
        for record in records {
            if record.schema as usize >= self.schemas.len() || record.version.0 >= self.next_version {
                return bad(format!("version {} has an impossible schema or number", record.version));
            }
        }
        if self.versions.is_empty()
            || self.versions.iter().zip(self.versions.iter().skip(1)).any(|(a, b)| a.version >= b.version)
        {
            return bad("versions are missing or out of order".into());
        }
        if let Some((version, _)) =
            self.pins.iter().find(|(version, pin)| pin.record.version != **version || pin.holds == 0)
        {
            return bad(format!("version {version} is not held, or its record is of another version"));
        }
        for schema in &self.schemas {
            let order = schema.order(&self.spec);
            if let Some(name) = order.iter().find(|name| schema.0.index_of(name).is_err()) {
                return bad(format!("it is sorted by '{name}', a column that it does not have"));
            }
            if order.len() != self.spec.sort.len() {
                return bad(format!(
                    "it is sorted by {} columns, but one of its schemas is sorted by {}",
                    self.spec.sort.len(),
                    order.len()
                ));
            }
        }
        let mut ids = std::collections::BTreeSet::new();
        for group in &self.groups {
            group.check(self.schemas.len())?;
            group.check_columns(&self.schemas)?;
            if group.tract().is_some() && !self.spec.sort.is_empty() {
                return bad(format!("row group {} was laid out, but the table is sorted", group.id.0));
            }
            if group.id.0 >= self.next_group || !ids.insert(group.id) {
                return bad(format!("row group {} occurs twice, or has an impossible number", group.id.0));
            }
        }
        self.check_parts()?;
        self.check_indexes()?;
        self.check_instants()
    }

    /// Makes the next version. The addresses of `change.groups` are new; nothing is freed.
    pub fn change(&self, change: &TableChange, seq: Seq, time: Timestamp) -> Result<TableState> {
        let mut next = self.clone();
        let version = Version(self.next_version);
        next.next_version += 1;
        let before = self.newest().map_or(0, |newest| newest.rows);
        let mut rows = before;
        if change.keeps_rows_of_other_schemas() && !planted(Bug::AlterInMemory) {
            self.check_in_groups()?;
        }
        let schema = match (&change.schema, self.newest()) {
            (Some(schema), _) => next.place_of_schema(schema, &[]),
            (None, Some(newest)) => newest.schema,
            (None, None) => return Err(Error::invalid("the first version of a table needs a schema")),
        };
        if change.kill == Kill::All {
            rows = 0;
            for (index, group) in self.groups.iter().enumerate() {
                if group.only.is_none() && group.runs.iter().any(|run| run.died == ALIVE) {
                    next.groups.set(index, Arc::new(group.ended(version)));
                }
            }
        }
        let places: BTreeMap<GroupId, usize> = match change.deletions.as_slice() {
            [] => BTreeMap::new(),
            _ => self.groups.iter().enumerate().map(|(index, group)| (group.id, index)).collect(),
        };
        for (id, positions) in &change.deletions {
            let index =
                *places.get(id).ok_or_else(|| Error::conflict(format!("row group {} no longer exists", id.0)))?;
            let mut group = RowGroup::clone(&next.groups[index]);
            if positions.0.max().is_some_and(|max| max >= group.rows) {
                return Err(Error::invalid(format!("a row past the end of row group {} cannot be deleted", id.0)));
            }
            // While part of the rows is in memory, the count is a guess, corrected when that part is flushed.
            rows = match rows.checked_sub(positions.0.len()) {
                None if self.parts.is_empty() => {
                    return Err(Error::invalid("more rows are to be deleted than there are"));
                }
                left => left.unwrap_or(0),
            };
            group.deletions.push(Deletion { born: version, rows: positions.clone() });
            next.groups.set(index, Arc::new(group));
        }
        for group in &change.groups {
            rows += group.live();
            next.add_group(group, schema, Run { rows: group.rows, born: version, died: ALIVE })?;
        }
        let added = change.groups.iter().map(NewGroup::live).sum();
        // Nobody has counted rows in memory that it replaces or deletes.
        let turnover = self.parts.is_empty().then(|| Turnover { added, removed: before + added - rows });
        next.freeze_part(change.kill == Kill::All);
        let (kind, metadata) = (change.kind, change.metadata.clone());
        let record = VersionRecord { version, seq, time, kind, rows, schema, metadata, story: None };
        next.add_version(record, turnover);
        next.rows_seq = seq;
        next.bulk_seq = seq;
        if !change.groups.is_empty() {
            next.layout_seq = seq;
        }
        Ok(next)
    }

    /// Removes versions from the list. Deleting the newest makes the previous one the newest again: rows it had deleted
    /// are visible again, rows it had added disappear; what a snapshot still pins is kept as a separate record.
    ///
    /// Returns the table and the addresses that gained a record. Call [`TableState::shed`] afterwards.
    pub fn delete_versions(
        &self,
        versions: &[Version],
        seq: Seq,
        time: Timestamp,
    ) -> Result<(TableState, Vec<Address>)> {
        let mut next = self.clone();
        let listed = |version: &&Version| self.versions.binary_search_by_key(*version, |record| record.version).is_ok();
        if let Some(missing) = versions.iter().find(|version| !listed(version)) {
            return Err(Error::not_found(format!("version {missing} does not exist")));
        }
        next.unlist(versions, time);
        let Some(newest) = next.versions.last().map(|record| record.version) else {
            return Err(Error::invalid("this would leave the table without a version; drop the table instead"));
        };
        let mut copies = Vec::new();
        if self.newest().is_some_and(|old| old.version > newest) {
            if self.parts.iter().any(|part| !part.is_unseen()) {
                return Err(Error::conflict(
                    "rows written by key are not in row groups yet; checkpoint the store first",
                ));
            }
            next.parts.clear();
        }
        if self.newest().is_some_and(|old| old.version > newest) {
            let mut frozen = Vec::new();
            for (&version, pin) in next.pins.range_mut(Version(newest.0 + 1)..).filter(|(_, pin)| !pin.detached) {
                pin.detached = true;
                for group in self.groups.iter().filter(|group| self.visible(group, version) != Rows::None) {
                    copies.extend(group.addresses());
                    let id = GroupId(next.next_group);
                    next.next_group += 1;
                    frozen.push(Arc::new(RowGroup { id, ..group.frozen(version) }));
                }
            }
            let revert = |group: &Arc<RowGroup>| match group.only {
                None => Arc::new(group.reverted(newest)),
                Some(_) => group.clone(),
            };
            next.groups = next.groups.iter().map(revert).chain(frozen).collect();
            next.rows_seq = seq;
            next.bulk_seq = seq;
            next.layout_seq = seq;
        }
        Ok((next, copies))
    }

    /// Releases row groups that no retained version sees; returns their addresses.
    pub fn shed(&mut self, seq: Seq) -> Vec<Address> {
        let retained = self.retained();
        let needs = |group: &Arc<RowGroup>| retained.needed(group) != Rows::None;
        let unneeded = self.groups.iter().filter(|group| !needs(group));
        let gone: Vec<Address> = unneeded.flat_map(|group| group.addresses()).copied().collect();
        let histories = self.shed_histories();
        if !gone.is_empty() || !histories.is_empty() {
            self.groups.retain(needs);
            self.layout_seq = seq;
        }
        let runs = self.uncover();
        gone.into_iter().chain(histories).chain(runs).collect()
    }

    /// Adds a snapshot's hold on a version.
    pub fn pin(&mut self, version: Version) -> Result<()> {
        let record = self.record(version)?.clone();
        self.pins.entry(version).or_insert(PinnedVersion { record, holds: 0, detached: false }).holds += 1;
        Ok(())
    }

    /// Removes a snapshot's hold on a version.
    pub fn unpin(&mut self, version: Version) {
        if let Some(pin) = self.pins.get_mut(&version) {
            pin.holds -= 1;
            if pin.holds == 0 {
                self.pins.remove(&version);
            }
        }
    }

    /// Removes all versions from the list except those that snapshots hold, for a table that is gone from the tree.
    pub fn keep_pins_only(&mut self) {
        self.versions = self.pins.values().map(|pin| pin.record.clone()).collect();
        let newest = self.newest().map(|newest| newest.version);
        self.parts.retain(|part| newest.is_some_and(|newest| part.version <= newest));
    }

    /// Replaces the inputs of a rewrite with its outputs; returns the table and the inputs' addresses.
    /// `Conflict` if an input is gone.
    pub fn rewrite(&self, rewrite: &Rewrite, seq: Seq) -> Result<(TableState, Vec<Address>)> {
        let first = rewrite.inputs.first().ok_or_else(|| Error::invalid("a rewrite needs at least one row group"))?;
        let at = self.groups.iter().position(|group| group.id == *first);
        let at = at.ok_or_else(|| Error::conflict(format!("row group {} no longer exists", first.0)))?;
        let mut next = self.clone();
        let mut inputs = next.groups.split_off(at);
        if inputs.len() < rewrite.inputs.len() {
            return Err(Error::conflict("row groups that are being rewritten no longer exist"));
        }
        let behind = inputs.split_off(rewrite.inputs.len());
        if inputs.iter().map(|group| group.id).ne(rewrite.inputs.iter().copied()) {
            return Err(Error::conflict("row groups that are being rewritten have moved or no longer exist"));
        }
        let only = inputs[0].only;
        if inputs.iter().any(|group| group.only != only) {
            return Err(Error::invalid("row groups that are rewritten together belong to different versions"));
        }
        for output in &rewrite.outputs {
            let id = GroupId(next.next_group);
            next.next_group += 1;
            let group = RowGroup { only, ..output.record(id) };
            group.check(next.schemas.len())?;
            next.groups.push_back(Arc::new(group));
        }
        next.groups.append(behind);
        next.layout_seq = seq;
        let addresses = inputs.iter().flat_map(|group| group.addresses()).copied().collect();
        self.note_move(&mut next, inputs.into_iter().collect(), seq);
        Ok((next, addresses))
    }

    /// Moves row groups to other addresses. Returns the table and, for each, the number of records that name it.
    pub fn moved(&self, moves: &[(Address, Address)]) -> Result<(TableState, Vec<u64>)> {
        let places: BTreeMap<Address, usize> = moves.iter().enumerate().map(|(at, (from, _))| (*from, at)).collect();
        let mut records = vec![0; moves.len()];
        let mut next = self.clone();
        for (index, group) in self.groups.iter().enumerate() {
            group.addresses().filter_map(|address| places.get(address)).for_each(|at| records[*at] += 1);
            if let Some(moved) = group.moved(|address| places.get(address).map(|at| moves[*at].1)) {
                moved.check(next.schemas.len())?;
                next.groups.set(index, Arc::new(moved));
            }
        }
        if self.instants.histories.iter().flat_map(|h| &h.groups).any(|(address, _)| places.contains_key(address)) {
            let instants = Arc::make_mut(&mut next.instants);
            for (address, _) in instants.histories.iter_mut().flat_map(|history| &mut history.groups) {
                if let Some(&at) = places.get(address) {
                    records[at] += 1;
                    *address = moves[at].1;
                }
            }
        }
        next.with_runs_moved(|address| places.get(address).map(|at| moves[*at].1), |from| records[places[from]] += 1);
        Ok((next, records))
    }
}
