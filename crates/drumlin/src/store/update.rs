//! Changing rows that are there: replacing a key range, deleting by predicate. Deletion vectors only; no row group
//! is rewritten. The rows are found on a snapshot; if others changed the table meanwhile, they are looked for again.

use std::sync::Arc;

use arrow::array::RecordBatch;

use super::commit::Proposal;
use super::write::{add_blocks, settle, table_at};
use super::{Frame, Store, VersionInfo, WriteOptions};
use crate::base::{Error, Result, Task};
use crate::block::Written;
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::filter::Filter;
use crate::table::{
    Change, GroupId, KeyRange, Matches, NewGroup, Positions, RowGroups, VersionKind, conform, encode_group,
    matching_rows,
};

/// How rows are updated or deleted.
#[derive(Clone, Default)]
pub struct UpdateOptions {
    /// A note kept with the version, as JSON text. Default: none.
    pub metadata: Option<String>,
    /// Cancelling.
    pub task: Task,
}

/// What a delete did.
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteReport {
    /// The version it made; the newest one as it was if no row matched.
    pub version: VersionInfo,
    /// Rows deleted.
    pub rows: u64,
}

impl Store {
    /// Makes a version without the rows for which `filter` is true. If none is, no version is made.
    ///
    /// Reads the columns of the filter, in row groups whose statistics leave it open; writes only positions.
    pub fn delete_rows(&self, path: &str, filter: &str, options: &UpdateOptions) -> Result<DeleteReport> {
        let path = Path::new(path)?;
        let filter = Filter::parse(filter)?;
        let (after, rows) = self.transact(|base| {
            let table = table_at(&base, &path)?;
            let newest = table.newest().expect("every table has a version").version;
            let inner = &self.inner;
            let found = matching_rows(&inner.reader, &inner.env.pool, table, newest, &filter, &options.task.cancel)?;
            let rows: u64 = found.iter().map(|matches| matches.rows.len()).sum();
            let mut change = Change::new(VersionKind::Delete);
            change.metadata = options.metadata.clone();
            change.deletions = positions(found);
            let proposal = rest_on_rows(&base, &path, Vec::new(), (rows > 0).then_some(change))?;
            Ok((proposal, rows))
        })?;
        Ok(DeleteReport { version: VersionInfo::newest(&after, &path)?, rows })
    }

    /// Makes a version in which the rows of `frame` stand in the place of all rows between its least and its greatest
    /// sort key, both included. The table needs a sort order. The frame is held in memory.
    pub fn update<'a>(&self, path: &str, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<VersionInfo> {
        let path = Path::new(path)?;
        let state = self.state()?;
        let table = table_at(&state, &path)?;
        let sort = table.spec.sort.clone();
        if sort.is_empty() {
            return Err(Error::invalid(format!(
                "'{path}' has no sort order, so there is no range to update; make the table with one"
            )));
        }
        let schema = table.schema().expect("every table has a version").0.clone();
        let frame = frame.into();
        let trust = frame.trust();
        let batches: Vec<RecordBatch> =
            frame.into_batches().map(|batch| conform(&batch?, &schema)).collect::<Result<_>>()?;
        let range = KeyRange::of(&batches, &sort)?;
        let pool = &self.inner.env.pool;
        let mut writer = self.block_writer()?;
        let mut groups: Vec<NewGroup> = Vec::new();
        for group in RowGroups::new(batches.into_iter().map(Ok), schema.clone()) {
            options.task.cancel.check()?;
            let encoded = encode_group(pool, group?, &schema, &sort, trust)?;
            let rows = encoded.rows;
            groups.push(NewGroup { address: writer.push(encoded)?, rows });
        }
        let blocks = writer.finish()?.to_vec();
        let answer = self.transact(|base| {
            let table = table_at(&base, &path)?;
            let newest = table.newest().expect("every table has a version").version;
            if table.spec.sort != sort || table.schema().map(|schema| &schema.0) != Some(&schema) {
                let changed = format!("the schema or order of '{path}' changed during the update");
                return Err(Error::conflict(changed));
            }
            let mut change = Change::new(VersionKind::Update);
            change.metadata = options.metadata.clone();
            change.groups = groups.clone();
            if let Some(range) = &range {
                let inner = &self.inner;
                let found = range.rows_of(&inner.reader, &inner.env.pool, table, newest, &options.task.cancel)?;
                change.deletions = positions(found);
            }
            Ok((rest_on_rows(&base, &path, blocks.clone(), Some(change))?, ()))
        });
        let (after, ()) = settle(answer, writer)?;
        VersionInfo::newest(&after, &path)
    }
}

fn positions(found: Vec<Matches>) -> Vec<(GroupId, Positions)> {
    found.into_iter().map(|matches| (matches.group, matches.rows.into())).collect()
}

/// A change of the table at `path` that rests on all that its newest version sees.
fn rest_on_rows(base: &Arc<State>, path: &Path, blocks: Vec<Written>, change: Option<Change>) -> Result<Proposal> {
    let table = table_at(base, path)?.id;
    let footprint =
        Footprint::default().with(Read::Binding(path.clone())).with(Read::Schema(table)).with(Read::Rows(table));
    let build = move |_: &State| {
        let blocks = add_blocks(&blocks).into_iter();
        Ok(blocks.chain(change.map(|change| Effect::ChangeTable { table, change })).collect())
    };
    Ok(Proposal { base: base.clone(), footprint, build: Box::new(build) })
}
