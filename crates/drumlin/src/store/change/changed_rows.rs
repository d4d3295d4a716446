//! Writes rows that are changed, in their places or apart, and what is added in the same version; and commits that,
//! alone or in a transaction.
//!
//! A row group with changed rows is ended, and another with the same rows in the same order is put beside it, so rows
//! keep their places. Usually that is a patch (*patch.rs*). In a table with a key, few changed rows are written apart
//! instead, as an upsert would write them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::RecordBatch;
use roaring::RoaringBitmap;

use super::delete::{FullChange, full_change, positions};
use crate::base::{Progress, Result, Version};
use crate::block::BlockWriter;
use crate::catalog::{Effect, Path, Read, State};
use crate::segment::join_batches;
use crate::store::commit::blocks::add_blocks;
use crate::store::commit::call::Call;
use crate::store::commit::in_groups::{MemoryScope, in_memory};
use crate::store::nouns::transaction::OpenTransaction;
use crate::store::parts::{Proposal, Work};
use crate::store::write::by_key::{ByKey, dedup_keys};
use crate::store::write::encoder::encode_keyed_group;
use crate::store::{Store, UpdateOptions, VersionInfo};
use crate::table::{
    GroupId, GroupsAhead, Matches, NewGroup, NewValues, ROWS_MAX, ReadPoint, RowGroup, StoredSchema, TableChange,
    TableState, TableUpdate, VersionKind, changed_rows, check_new_values, encode_group, in_shown_order, next_expiry,
    replace_group, sorted_batches,
};

/// Where changed rows need not keep their places, or their keys put them there, they are written apart from the others if they are at
/// most this share of their row groups; else whole row groups are replaced.
const APART_SHARE: u64 = 8;

/// What happens to the rows of a table in one version.
pub(in crate::store) struct ChangedRows<'a> {
    pub table: &'a TableState,
    /// The newest version.
    pub version: Version,
    pub kind: VersionKind,
    /// Rows that get new values, and these.
    pub updated: Vec<Matches>,
    pub new_values: &'a (dyn Fn(&RowGroup, &RoaringBitmap) -> Result<Vec<NewValues>> + Sync),
    /// The columns that are read for these, by their places in the version's schema.
    pub reads: Vec<usize>,
    /// Rows that go.
    pub deleted: Vec<Matches>,
    /// The schema from this version on, if less is said of columns than before, since they get these values.
    pub schema: Option<StoredSchema>,
    /// Rows that come, in the table's schema.
    pub inserted: Vec<RecordBatch>,
    /// Whether rows that get new values must keep their places.
    pub in_place: bool,
    /// Whether new values may say when rows expire: then these must not have expired by the commit, as of what is seen.
    pub revives: Option<ReadPoint>,
    /// Whether new values are found by the calling thread, one row group after the other, since that may take the pool, or code
    /// of the caller's that does.
    pub serial: bool,
}

/// Changes of rows that are on storage, waiting for their commit, and what they come to.
pub(in crate::store) struct PreparedChange<R> {
    change: FullChange,
    writer: BlockWriter,
    report: R,
}

impl Call<'_> {
    /// Commits changes of rows of the table at `path`, which has no rows in memory when they are prepared; again, from the
    /// beginning, where others have changed it in between. Returns the version after, and what they came to.
    pub fn commit_row_changes<R>(
        self,
        path: &Path,
        prepare: impl Fn(&State) -> Result<PreparedChange<R>>,
    ) -> Result<(Option<VersionInfo>, R)> {
        let (store, began) = (self.store, self.began());
        let alone = |base: Arc<State>| {
            let PreparedChange { change: FullChange { footprint, effects }, writer, report } = prepare(&base)?;
            let committed = store.commit_rewritten(writer, |_| {
                let build = move |_: &State| Ok(effects.clone());
                store.commit(Proposal::new(base, footprint, Work::Build(Box::new(build))).since(began))
            });
            Ok(committed.map(|after| (after, report)))
        };
        let with_rows = |store: &Store, open: &mut OpenTransaction| open.change_rows(store, path, &prepare);
        let (after, report) = self.commit_in_groups(path, alone, with_rows)?;
        Ok((Some(store.newest_info(&after, path)?), report))
    }
}

impl OpenTransaction {
    /// Changes rows of the table at `path` in a transaction; returns what that came to.
    pub fn change_rows<R>(
        &mut self,
        store: &Store,
        path: &Path,
        prepare: impl FnOnce(&State) -> Result<PreparedChange<R>>,
    ) -> Result<R> {
        let tables = in_memory(self.draft.state(), path)?;
        self.with_rows_in_groups(store, &tables, MemoryScope::All, |open| {
            let PreparedChange { change, writer, report } = prepare(open.draft.state())?;
            open.apply(change.footprint, change.effects, Some(writer))?;
            Ok(report)
        })
    }
}

impl ChangedRows<'_> {
    /// Writes row groups, if anything changes, and returns what puts them into the table, which is at `path`.
    pub fn prepare<R>(
        self,
        store: &Store,
        path: &Path,
        options: &UpdateOptions,
        report: R,
    ) -> Result<PreparedChange<R>> {
        let mut writer = store.block_writer()?.inline(store.options().inline_bytes);
        let (table, nothing) = (self.table.id, self.changes_nothing());
        let until = match self.revives {
            Some(seen) => next_expiry(store.reader(), &store.env().pool, self.table, seen, Some(&self.updated))?,
            None => None,
        };
        let effects = match nothing {
            true => Vec::new(),
            false => self.write(store, options, &mut writer).map_err(|e| e.context(format!("'{path}'")))?,
        };
        let mut change = full_change(table, path, add_blocks(writer.finish()?), None);
        change.effects.extend(effects);
        change.footprint.reads.extend(until.map(|until| Read::Until(table, until)));
        Ok(PreparedChange { change, writer, report })
    }

    fn changes_nothing(&self) -> bool {
        self.updated.is_empty() && self.deleted.is_empty() && self.inserted.is_empty()
    }

    /// Writes row groups, and returns the effects that put them into the table.
    fn write(self, store: &Store, options: &UpdateOptions, writer: &mut BlockWriter) -> Result<Vec<Effect>> {
        let Self {
            table,
            version,
            kind,
            schema,
            updated,
            new_values,
            reads,
            deleted,
            mut inserted,
            in_place,
            serial,
            ..
        } = self;
        let (reader, pool, task) = (store.reader(), &store.env().pool, &options.task);
        let proof = store.options().proof();
        let groups: HashMap<GroupId, &RowGroup> = table.groups.iter().map(|group| (group.id, &**group)).collect();
        let rows: u64 = updated.iter().map(|matches| matches.rows.len()).sum();
        let around: u64 = updated.iter().map(|matches| u64::from(groups[&matches.group].rows)).sum();
        let mut gone: BTreeMap<GroupId, RoaringBitmap> = BTreeMap::new();
        for Matches { group, rows } in deleted {
            *gone.entry(group).or_default() |= rows;
        }
        let checks = table.schema_of(version)?.bound_checks()?;
        inserted.iter().try_for_each(|rows| checks.test(rows, |_| "a row that is inserted".to_owned()))?;
        let mut done = Progress { total: updated.len() as u64, ..Progress::default() };
        let (mut replaced, mut patches) = (Vec::new(), Vec::new());
        // Rows that are equal in a sort order keep the one in which they were written.
        let apart = !serial && (table.spec.keyed || !in_place) && rows * APART_SHARE <= around;
        let reads = if apart { (0..table.schema_of(version)?.0.fields().len()).collect() } else { reads };
        let read = updated.iter().map(|matches| groups[&matches.group]).collect();
        let ahead = GroupsAhead::new(reader, table, version, read, reads);
        if apart {
            let changed = pool.map(updated.iter().enumerate().collect(), |(at, Matches { group, rows })| {
                task.cancel.check()?;
                ahead.before_each(at);
                let group = groups[group];
                let values = new_values(group, rows)?;
                check_new_values(reader, table, version, group, rows, &values, &checks)?;
                changed_rows(reader, table, version, group, rows, &values)
            })?;
            let updates = updated.iter().map(|matches| (groups[&matches.group], &matches.rows));
            inserted.splice(0..0, in_shown_order(reader, pool, table, version, updates.zip(changed))?);
            for Matches { group, rows } in updated {
                *gone.entry(group).or_default() |= rows;
            }
        } else {
            let drawn = |(at, matches): (usize, Matches)| {
                task.cancel.check()?;
                ahead.before_each(at);
                let values = serial.then(|| new_values(groups[&matches.group], &matches.rows)).transpose()?;
                Ok((matches, values))
            };
            pool.ordered(
                updated.into_iter().enumerate().map(drawn),
                // Encoded, and as much decoded.
                |(matches, _)| groups[&matches.group].bytes() * 4,
                pool.threads() * 2,
                store.options().memory_bytes / 4,
                |(Matches { group: id, rows }, values)| {
                    task.cancel.check()?;
                    let group = groups[&id];
                    // What travels in a commit is small enough to be written as a whole.
                    let may_patch = group.bytes() > store.options().inline_bytes;
                    let values = values.map_or_else(|| new_values(group, &rows), Ok)?;
                    check_new_values(reader, table, version, group, &rows, &values, &checks)?;
                    Ok((id, rows.len(), replace_group(reader, pool, table, version, group, &values, may_patch, proof)?))
                },
                |(id, changed, (encoded, patch))| {
                    let rows = encoded.rows;
                    let address = writer.push(encoded)?;
                    replaced.push((id, NewGroup { address, rows, dead: None }));
                    patches.extend(patch.map(|patch| (id, patch)));
                    done.done += 1;
                    done.rows += changed;
                    done.bytes += address.bytes();
                    task.step(done)
                },
            )?;
        }
        let gone = gone.into_iter().map(|(group, rows)| Matches { group, rows }).collect();
        let groups = encode_rows(store, table, inserted, options, writer)?;
        let metadata = options.metadata.clone();
        let update = TableUpdate { kind, replaced, deletions: positions(gone), groups, metadata };
        let update = match patches.is_empty() {
            true => Effect::UpdateTable { table: table.id, update },
            false => Effect::PatchTable { table: table.id, update, patches },
        };
        let counted = (done.rows > 0).then_some(Effect::CountChanged { table: table.id, rows: done.rows });
        let altered = schema.map(|schema| {
            let change = TableChange { schema: Some(schema), ..TableChange::new(VersionKind::Alter) };
            Effect::ChangeTable { table: table.id, change }
        });
        Ok(altered.into_iter().chain([update]).chain(counted).collect())
    }
}

/// Encodes rows of the table's schema, in the order of the table. `AlreadyExists` if two have the same key.
fn encode_rows(
    store: &Store,
    table: &TableState,
    batches: Vec<RecordBatch>,
    options: &UpdateOptions,
    writer: &mut BlockWriter,
) -> Result<Vec<NewGroup>> {
    let Some(schema) = batches.first().map(RecordBatch::schema) else { return Ok(Vec::new()) };
    let (pool, proof) = (&store.env().pool, store.options().proof());
    let mut rows = join_batches(&schema, &batches)?;
    drop(batches);
    let codec = table.key().map(|_| table.codec()).transpose()?;
    match &codec {
        Some(codec) => rows = dedup_keys(ByKey::Insert, codec, rows)?.0,
        None if table.order().is_empty() || rows.num_rows() == 0 => {}
        None => rows = join_batches(&schema, &sorted_batches(pool, vec![rows], table.order())?)?,
    }
    let (mut groups, mut known) = (Vec::new(), None);
    for from in (0..rows.num_rows()).step_by(ROWS_MAX as usize) {
        options.task.cancel.check()?;
        let part = rows.slice(from, (rows.num_rows() - from).min(ROWS_MAX as usize));
        let (encoded, schemes) = match &codec {
            Some(codec) => encode_keyed_group(pool, codec, part, known.as_ref(), proof)?,
            None => encode_group(pool, vec![part], &schema, known.as_ref(), proof)?,
        };
        known.get_or_insert(schemes);
        let rows = encoded.rows;
        groups.push(NewGroup { address: writer.push(encoded)?, rows, dead: None });
    }
    Ok(groups)
}
