//! The edits of a table's indexes: which there are, and which runs they have.
//!
//! Invariant: each part of a run is named once by the table, as a row group's layer is; a run covers at least one row group that the table
//! has, or it is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Version};
use crate::block::Address;
use crate::table::index::mask::place;
use crate::table::{
    IndexDefinition, IndexRun, NewRun, RowGroup, RunOptions, StoredSchema, TableIndex, TableState, Unique, plan_runs,
};

/// What became of the parts of runs.
#[derive(Debug, Default)]
pub struct RunParts {
    /// Those that the table names now.
    pub added: Vec<Address>,
    /// Those that it names no more, or that it does not take.
    pub released: Vec<Address>,
}

impl TableState {
    /// The table with another index. `AlreadyExists` if it has one of this name.
    pub fn with_index(&self, definition: &IndexDefinition) -> Result<TableState> {
        let name = &definition.name;
        definition.columns()?;
        if self.indexes.named(name).is_some() {
            return Err(Error::already_exists(format!(
                "index '{name}' already exists; drop it first, or choose another name"
            )));
        }
        let mut next = self.clone();
        let indexes = Arc::make_mut(&mut next.indexes);
        indexes.list.push(TableIndex::new(indexes.next, definition.clone()));
        indexes.next += 1;
        Ok(next)
    }

    /// The table with an index of which all rows were compared. What is gone is ignored.
    pub fn with_proven(&self, id: u64) -> TableState {
        let mut next = self.clone();
        let list = &mut Arc::make_mut(&mut next.indexes).list;
        if let Some(index) = list.iter_mut().find(|index| index.id == id && index.definition.is_unique()) {
            index.definition.unique = Unique::Proven;
        }
        next
    }

    /// Its indexes of which no two rows may have the same values.
    pub fn unique_indexes(&self) -> impl Iterator<Item = &TableIndex> {
        self.indexes.list.iter().filter(|index| index.definition.is_unique())
    }

    /// Whether there are such.
    pub fn has_unique_indexes(&self) -> bool {
        self.unique_indexes().next().is_some()
    }

    /// `InvalidArgument` if a unique index means something in the newest version, and nothing in `schema`, which follows.
    pub fn check_unique_columns(&self, schema: &StoredSchema) -> Result<()> {
        let Some(own) = self.schema() else { return Ok(()) };
        for definition in self.unique_indexes().map(|index| &index.definition) {
            if definition.named(own)?.is_some() && definition.named(schema)?.is_none() {
                let name = &definition.name;
                return Err(Error::invalid(format!(
                    "a column of the unique index '{name}' would go, or get another type; drop the index first"
                )));
            }
        }
        Ok(())
    }

    /// The table without an index, and where its runs were stored. `NotFound` if it does not have it.
    pub fn without_index(&self, id: u64) -> Result<(TableState, Vec<Address>)> {
        let mut next = self.clone();
        let indexes = Arc::make_mut(&mut next.indexes);
        let at = indexes.list.iter().position(|index| index.id == id);
        let at = at.ok_or_else(|| Error::not_found("the index no longer exists"))?;
        let gone = indexes.list.remove(at);
        Ok((next, gone.runs().iter().flat_map(|run| parts_of(run)).collect()))
    }

    /// The table with other runs of an index. What is gone is ignored: an index, a run that is to be dropped, a row group that a new
    /// run covers; and what another run covers is not covered again.
    ///
    /// # Errors
    /// `InvalidArgument` if a new run has another number of entries than the rows that it covers.
    pub fn with_runs(&self, id: u64, add: &[NewRun], drop: &[u64]) -> Result<(TableState, RunParts)> {
        let mut next = self.clone();
        let mut parts = RunParts::default();
        let all = |run: &NewRun| run.parts.iter().map(|(address, _)| *address).collect::<Vec<_>>();
        let Some(at) = self.indexes.list.iter().position(|index| index.id == id) else {
            parts.released.extend(add.iter().flat_map(all));
            parts.added = parts.released.clone();
            return Ok((next, parts));
        };
        let index = &mut Arc::make_mut(&mut next.indexes).list[at];
        let partial = index.definition.condition.is_some();
        let columns = index.definition.columns()?;
        let of_layer =
            |group: &Arc<RowGroup>| Some((*group.decided_by(&self.schemas, columns)?, u64::from(group.rows)));
        let rows: BTreeMap<Address, u64> = self.groups.iter().filter_map(of_layer).collect();
        for gone in index.runs_mut().extract_if(.., |run| drop.contains(&run.id)) {
            parts.released.extend(parts_of(&gone));
        }
        for run in add {
            let mut covers: Vec<Option<Address>> = run.covers.iter().map(|cover| Some(*cover)).collect();
            let known: Vec<u64> = run.covers.iter().filter_map(|cover| rows.get(cover).copied()).collect();
            let entries: u64 = run.parts.iter().map(|(_, entries)| u64::from(*entries)).sum();
            let (least, all_known) = (known.iter().sum::<u64>(), known.len() == covers.len());
            let fits = if all_known { entries == least } else { entries >= least };
            if !partial && !fits {
                return Err(Error::invalid(format!(
                    "a run of index '{}' has {entries} entries for {least} rows",
                    index.definition.name
                )));
            }
            let there = index.covers()?;
            for cover in &mut covers {
                *cover = cover.filter(|address| rows.contains_key(address) && !there.contains_key(address));
            }
            parts.added.extend(all(run));
            match covers.iter().any(Option::is_some) {
                true => index.push(run.clone(), covers),
                false => parts.released.extend(all(run)),
            }
        }
        next.check_indexes()?;
        Ok((next, parts))
    }

    /// Forgets which row groups are covered that are gone; returns where runs were stored that cover none any more. O(row groups) if there
    /// are indexes.
    pub fn uncover(&mut self) -> Vec<Address> {
        let mut released = Vec::new();
        if self.indexes.list.iter().all(|index| index.runs().is_empty()) {
            return released;
        }
        for at in 0..self.indexes.list.len() {
            let Ok(columns) = self.indexes.list[at].definition.columns() else { continue };
            let there: BTreeSet<Address> =
                self.groups.iter().filter_map(|group| group.decided_by(&self.schemas, columns)).copied().collect();
            let is_gone = |cover: &Address| !there.contains(cover);
            if !self.indexes.list[at].runs().iter().any(|run| run.covered().any(is_gone)) {
                continue;
            }
            let runs = Arc::make_mut(&mut self.indexes).list[at].runs_mut();
            for run in runs.iter_mut().filter(|run| run.covered().any(is_gone)) {
                let covers = &mut Arc::make_mut(run).covers;
                covers.iter_mut().for_each(|cover| *cover = cover.filter(|cover| !is_gone(cover)));
            }
            let unneeded = runs.extract_if(.., |run| run.covered().next().is_none());
            released.extend(unneeded.flat_map(|run| parts_of(&run)));
        }
        released
    }

    /// The runs, by index, with entries of row groups that are gone: what was erased from these is among them.
    pub fn runs_of_gone(&self) -> Vec<(u64, Vec<u64>)> {
        let of = |index: &TableIndex| {
            let gone = index.runs().iter().filter(|run| run.covers.iter().any(Option::is_none));
            (index.id, gone.map(|run| run.id).collect::<Vec<_>>())
        };
        let indexes = self.indexes.list.iter().filter(|_| !planted(Bug::PurgeSkipsRuns));
        indexes.map(of).filter(|(_, runs)| !runs.is_empty()).collect()
    }

    /// The table with runs at other addresses, and what they cover, by `to`; counts the records of each with `count`.
    pub(in crate::table) fn with_runs_moved(
        &mut self,
        to: impl Fn(&Address) -> Option<Address>,
        mut count: impl FnMut(&Address),
    ) {
        let moves = |run: &IndexRun| run.parts.iter().map(|(at, _)| at).chain(run.covered()).any(|at| to(at).is_some());
        for at in 0..self.indexes.list.len() {
            if !self.indexes.list[at].runs().iter().any(|run| moves(run)) {
                continue;
            }
            for run in Arc::make_mut(&mut self.indexes).list[at].runs_mut().iter_mut().filter(|run| moves(run)) {
                let run = Arc::make_mut(run);
                for (address, _) in &mut run.parts {
                    if let Some(there) = to(address) {
                        count(address);
                        *address = there;
                    }
                }
                for cover in run.covers.iter_mut().flatten().filter(|_| !planted(Bug::ForgetCovers)) {
                    *cover = to(cover).unwrap_or(*cover);
                }
            }
        }
    }

    /// How many row groups of a version an index covers. O(row groups).
    pub fn covered_by(&self, index: &TableIndex, version: Version) -> Result<u64> {
        let (columns, covers) = (index.definition.columns()?, index.covers()?);
        let groups = self.groups.iter().filter(|group| self.serves(group, version));
        Ok(groups.filter(|group| place(self, group, columns, covers).is_some()).count() as u64)
    }

    /// Whether an ordinary checkpoint would make runs of its indexes.
    pub fn waits_for_runs(&self) -> bool {
        !self.indexes.list.is_empty()
            && plan_runs(self, &RunOptions::default(), &BTreeSet::new()).is_ok_and(|plans| !plans.is_empty())
    }

    /// Forgets all runs: every row group is scanned until they are made again.
    pub fn forget_runs(&mut self) {
        if self.indexes.list.iter().any(|index| !index.runs().is_empty()) {
            Arc::make_mut(&mut self.indexes).list.iter_mut().for_each(|index| index.runs_mut().clear());
        }
    }

    /// Fails if what is known of its indexes is inconsistent, as only a damaged record is.
    pub fn check_indexes(&self) -> Result<()> {
        let bad = |what: &str| Err(Error::corrupt(format!("table {}: {what}", self.id)));
        for (at, index) in self.indexes.list.iter().enumerate() {
            if index.id >= self.indexes.next || self.indexes.list[..at].iter().any(|other| other.id >= index.id) {
                return bad("its indexes are out of order, or have impossible numbers");
            }
            index.check(self.schemas.len()).map_err(|e| e.context(format!("table {}", self.id)))?;
        }
        Ok(())
    }
}

fn parts_of(run: &IndexRun) -> Vec<Address> {
    run.parts.iter().map(|(address, _)| *address).collect()
}
