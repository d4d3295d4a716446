//! Changes existing rows: replaces a key range, deletes by predicate. With deletion vectors only; no row group is
//! rewritten. The rows are found on a snapshot; if others changed the table since, they are looked for again.

use std::sync::Arc;

use arrow::array::RecordBatch;

use super::blocks::{Placed, add_blocks};
use super::keyed::check_distinct;
use super::proposal::Proposal;
use super::resolve::{newest, of_table, table_at};
use super::{Frame, Store, VersionInfo, WriteOptions};
use crate::base::{Error, Result, TableId, Task};
use crate::block::{BlockWriter, Written};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::filter::Filter;
use crate::memtable::Keys;
use crate::segment::join_batches;
use crate::table::{
    Conform, GroupId, KeyRange, Matches, NewGroup, Positions, RowGroups, RowsChange, SchemaMode, Schemes, StoredSchema,
    Table, TableChange, VersionKind, encode_group, matching_rows,
};

/// How rows are updated or deleted.
#[derive(Clone, Default)]
pub struct UpdateOptions {
    /// A note kept with the version, as JSON text. Default: none.
    pub metadata: Option<String>,
    /// Cancellation.
    pub task: Task,
}

/// What a delete did.
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteReport {
    /// The version that it made; the newest one as it was if no row matched. `None` in a transaction.
    pub version: Option<VersionInfo>,
    /// Rows deleted.
    pub rows: u64,
}

/// A change of a table that depends on all that its newest version sees.
pub(super) struct FullChange {
    pub footprint: Footprint,
    pub effects: Vec<Effect>,
}

/// Rows that are to replace others: on storage, waiting for their commit.
pub(super) struct Replacement {
    path: Path,
    sort: Vec<String>,
    /// The table's.
    schema: StoredSchema,
    /// The one that it gets for these rows, if that is another.
    evolved: Option<StoredSchema>,
    range: Option<KeyRange>,
    groups: Vec<NewGroup>,
    metadata: Option<String>,
}

impl Store {
    /// Makes a version without the rows for which `filter` is true.
    pub(super) fn delete_matching(
        &self,
        path: &Path,
        filter: &Filter,
        options: &UpdateOptions,
    ) -> Result<DeleteReport> {
        self.refresh_if_shared()?;
        let began = self.began();
        let (after, rows) = self.prepare_and_commit(|base| {
            let (change, rows) = self.find_rows(&base, path, filter, options)?;
            Ok((change.propose(base).since(began), rows))
        })?;
        Ok(DeleteReport { version: Some(self.newest_info(&after, path)?), rows })
    }

    /// The change that deletes the rows of the table at `path` for which `filter` is true, and how many there are.
    pub(super) fn find_rows(
        &self,
        state: &State,
        path: &Path,
        filter: &Filter,
        options: &UpdateOptions,
    ) -> Result<(FullChange, u64)> {
        let table = table_at(state, path)?;
        let (inner, read_point) = (&self.inner, newest(state, table));
        let found = matching_rows(&inner.reader, &inner.env.pool, table, read_point, filter, &options.task.cancel);
        let found = found.map_err(|e| of_table(path, e))?;
        let rows = found.groups.iter().map(|matches| matches.rows.len()).sum::<u64>() + found.keys.len() as u64;
        let mut change = TableChange::new(VersionKind::Delete);
        change.metadata = options.metadata.clone();
        change.deletions = positions(found.groups);
        let effects = delete_in_memory(table, &found.keys)?;
        let change = (rows > 0).then_some(Effect::ChangeTable { table: table.id, change });
        Ok((rest_on_rows(table.id, path, effects, change), rows))
    }

    /// Makes a version in which the rows of `frame` replace all those in the range that they cover.
    pub(super) fn replace_range(&self, path: &Path, frame: Frame<'_>, options: &WriteOptions) -> Result<VersionInfo> {
        self.refresh_if_shared()?;
        let began = self.began();
        self.settle_before_evolving(std::iter::once((path, &frame)), options.schema)?;
        let (replacement, writer) = self.prepare_replace(&*self.state()?, path, frame, options)?;
        let (after, ()) = self.commit_placed(replacement, writer, |replacement, writer| {
            self.prepare_and_commit(|base| {
                let (base, _pin) = self.settled_state(base, path, replacement.evolves())?;
                let change = self.replace_rows(&base, replacement, writer.written(), &options.task)?;
                Ok((change.propose(base).since(began), ()))
            })
        })?;
        self.newest_info(&after, path)
    }

    /// Encodes rows that are to replace others in the table at `path`.
    pub(super) fn prepare_replace(
        &self,
        state: &State,
        path: &Path,
        frame: Frame<'_>,
        options: &WriteOptions,
    ) -> Result<(Replacement, BlockWriter)> {
        let table = table_at(state, path)?;
        let sort = table.spec.sort.clone();
        if sort.is_empty() {
            return Err(Error::invalid(format!(
                "'{path}' has no sort order, so there is no range to replace; make the table with one"
            )));
        }
        let own = table.schema().expect("every table has a version").clone();
        let evolved = table.evolved(frame.schema(), options.schema).map_err(|e| e.context(format!("'{path}'")))?;
        let stored = evolved.as_ref().unwrap_or(&own).clone();
        let schema = stored.0.clone();
        let pool = &self.inner.env.pool;
        let name = format!("'{path}'");
        let fill = (options.schema == SchemaMode::Evolve).then_some(stored);
        let mut conform = Conform::new(schema.clone()).named(&name).filling(fill);
        let batches = frame.into_batches(pool, &name).map(|batch| conform.batch(&batch?));
        let batches: Vec<RecordBatch> = batches.collect::<Result<_>>()?;
        let range = KeyRange::of(&batches, &sort)?;
        if table.key().is_some() && !batches.is_empty() {
            check_distinct(&*table.codec_of(&schema, &sort)?, &join_batches(&schema, &batches)?)?;
        }
        let mut writer = self.block_writer()?.inline(self.inner.options.inline_bytes);
        let mut groups: Vec<NewGroup> = Vec::new();
        let mut known: Option<Schemes> = None;
        for group in RowGroups::new(batches.into_iter().map(Ok), Conform::new(schema.clone())) {
            options.task.cancel.check()?;
            let (encoded, schemes) = encode_group(pool, group?, &schema, &sort, known.as_ref())
                .map_err(|e| e.context(format!("'{path}'")))?;
            known.get_or_insert(schemes);
            let rows = encoded.rows;
            groups.push(NewGroup { address: writer.push(encoded)?, rows, dead: None });
        }
        writer.finish()?;
        let metadata = options.metadata.clone();
        Ok((Replacement { path: path.clone(), sort, schema: own, evolved, range, groups, metadata }, writer))
    }

    /// The change that puts a replacement, which lies in `blocks`, in place.
    pub(super) fn replace_rows(
        &self,
        state: &State,
        replacement: &Replacement,
        blocks: &[Written],
        task: &Task,
    ) -> Result<FullChange> {
        let path = &replacement.path;
        let table = table_at(state, path)?;
        let same_schema = table.schema() == Some(&replacement.schema);
        if table.spec.sort != replacement.sort || !same_schema {
            return Err(Error::conflict(format!("the schema or order of '{path}' changed during the call")));
        }
        let mut change = TableChange::new(VersionKind::Replace);
        change.metadata = replacement.metadata.clone();
        change.groups = replacement.groups.clone();
        change.schema = replacement.evolved.clone();
        let mut effects = Vec::new();
        if let Some(range) = &replacement.range {
            let (inner, read_point) = (&self.inner, newest(state, table));
            let found = range.rows_of(&inner.reader, &inner.env.pool, table, read_point, &task.cancel);
            let found = found.map_err(|e| of_table(path, e))?;
            change.deletions = positions(found.groups);
            effects = delete_in_memory(table, &found.keys)?;
        }
        effects.extend(add_blocks(blocks));
        Ok(rest_on_rows(table.id, path, effects, Some(Effect::ChangeTable { table: table.id, change })))
    }
}

impl Replacement {
    /// Whether the table gets another schema for it.
    pub fn evolves(&self) -> bool {
        self.evolved.is_some()
    }
}

impl Placed for Replacement {
    fn groups(&mut self) -> impl Iterator<Item = &mut NewGroup> {
        self.groups.iter_mut()
    }
}

/// The effects that delete rows which lie in memory only.
pub(super) fn delete_in_memory(table: &Table, keys: &Keys) -> Result<Vec<Effect>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = RowsChange::of_deletes(&*table.codec()?, keys)?;
    Ok(vec![Effect::WriteRows { table: table.id, version: table.next_version(), rows }])
}

pub(super) fn positions(found: Vec<Matches>) -> Vec<(GroupId, Positions)> {
    found.into_iter().map(|matches| (matches.group, matches.rows.into())).collect()
}

/// A change of the table at `path` that depends on all that its newest version sees.
pub(super) fn rest_on_rows(table: TableId, path: &Path, before: Vec<Effect>, change: Option<Effect>) -> FullChange {
    let footprint =
        Footprint::default().with(Read::Binding(path.clone())).with(Read::Schema(table)).with(Read::Rows(table));
    FullChange { footprint, effects: before.into_iter().chain(change).collect() }
}

impl FullChange {
    fn propose(self, base: Arc<State>) -> Proposal {
        let Self { footprint, effects } = self;
        Proposal::carried(base, footprint, effects)
    }
}
