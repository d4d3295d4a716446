//! Rows that take the places of others in one version: of those in the range that they cover, or of those that match. The rows to
//! replace are found on a snapshot; if others changed the table since, they are looked for again.

use std::collections::{BTreeSet, HashMap};

use arrow::array::RecordBatch;
use roaring::RoaringBitmap;

use super::by_key::{check_distinct, refuse};
use super::numbers::Numbering;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Task};
use crate::block::{BlockWriter, WrittenBlock};
use crate::catalog::{Effect, Path, State};
use crate::filter::Filter;
use crate::memtable::{Key, Keys, RowBytes};
use crate::segment::{Proof, join_batches};
use crate::store::change::delete::{FullChange, delete_in_memory, full_change, positions};
use crate::store::commit::blocks::{UncommittedGroups, add_blocks};
use crate::store::commit::call::Call;
use crate::store::commit::in_groups::{MemoryScope, in_memory};
use crate::store::read::resolve::{newest, of_table, table_at};
use crate::store::{Frame, Place, Store, Table, VersionInfo, WriteOptions};
use crate::table;
use crate::table::{
    Conform, FoundRows, GroupId, KeyRange, NewGroup, ReadPoint, RowGroups, RowPlace, RowsSchema, Schemes, Searcher,
    StoredSchema, TableChange, VersionKind, encode_group, matching_rows, sorted_batches,
};

/// Rows that are to replace others: on storage, waiting for their commit.
pub(in crate::store) struct Replacement {
    path: Path,
    sort: Vec<String>,
    /// The table's.
    schema: StoredSchema,
    /// The one that it gets for these rows, if that is another.
    evolved: Option<StoredSchema>,
    replaced: ReplacedRows,
    groups: Vec<NewGroup>,
    metadata: Option<String>,
}

/// Which rows of the table others take the places of.
enum ReplacedRows {
    /// Those in a range; none if it is none.
    Range(Option<KeyRange>),
    /// Those for which a filter is true.
    Matching {
        filter: Filter,
        /// Of a table with a key: those of the new rows.
        keys: Option<Keys>,
    },
}

impl Table {
    /// Makes a version in which the rows of `frame` replace all rows between its least and its greatest sort key, both
    /// included. The table needs a sort order. The frame is held in memory.
    ///
    /// # Errors
    /// `NotFound` if there is no table, `InvalidArgument` if it has no sort order, `SchemaMismatch` if the columns are not its
    /// own.
    pub fn replace<'a>(&self, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<Option<VersionInfo>> {
        self.replace_rows(frame.into(), None, options)
    }

    /// Makes a version in which the rows of `frame` replace those for which `filter` is true: these go, and the rows of
    /// the frame, for which it need not be true, come as by [`Table::append`]. The frame is held in memory.
    ///
    /// # Errors
    /// `NotFound` if there is no table, `SchemaMismatch` if the columns are not its own, `InvalidArgument` if the filter is
    /// not sound, `AlreadyExists` if a row that stays has the key of a new one.
    pub fn replace_where<'a>(
        &self,
        frame: impl Into<Frame<'a>>,
        filter: &str,
        options: &WriteOptions,
    ) -> Result<Option<VersionInfo>> {
        self.replace_rows(frame.into(), Some(&Filter::parse(filter)?), options)
    }

    fn replace_rows(
        &self,
        frame: Frame<'_>,
        filter: Option<&Filter>,
        options: &WriteOptions,
    ) -> Result<Option<VersionInfo>> {
        options.check_returns_nothing()?;
        let path = Path::new(&self.path)?;
        match &self.place {
            Place::Store(store) => store.call()?.replace(&path, frame, filter, options).map(Some),
            Place::Transaction(transaction) => transaction.change_tables(|store, open| {
                let state = open.draft.state();
                let (replacement, writer) =
                    store.prepare_replace(state, &path, frame, filter, options, &open.numbering(store))?;
                let waiting = if replacement.evolves() { in_memory(state, &path)? } else { BTreeSet::new() };
                open.with_rows_in_groups(store, &waiting, MemoryScope::All, |open| {
                    let state = open.draft.state();
                    let change = store.replace_rows(state, &replacement, writer.written(), &options.task)?;
                    open.apply(change.footprint, change.effects, Some(writer))
                })?;
                Ok(None)
            }),
        }
    }
}

impl Call<'_> {
    /// Makes a version in which the rows of `frame` replace all those in the range that they cover, or those for which
    /// `filter` is true.
    fn replace(
        self,
        path: &Path,
        frame: Frame<'_>,
        filter: Option<&Filter>,
        options: &WriteOptions,
    ) -> Result<VersionInfo> {
        let (store, began) = (self.store, self.began());
        let (replacement, writer) =
            store.prepare_replace(&*store.state()?, path, frame, filter, options, &store.numbering())?;
        let (after, ()) = store.commit_placed(replacement, writer, |replacement, writer| {
            self.commit(|base| {
                let sound = |base: &State| store.replace_rows(base, replacement, writer.written(), &options.task);
                let (base, _pin) = store.settled_state(base, path, replacement.evolves(), sound)?;
                let change = store.replace_rows(&base, replacement, writer.written(), &options.task)?;
                Ok((change.propose(base).since(began), ()))
            })
        })?;
        store.newest_info(&after, path)
    }
}

impl Store {
    /// Encodes rows that are to replace others in the table at `path`.
    pub(in crate::store) fn prepare_replace(
        &self,
        state: &State,
        path: &Path,
        frame: Frame<'_>,
        filter: Option<&Filter>,
        options: &WriteOptions,
        numbering: &Numbering,
    ) -> Result<(Replacement, BlockWriter)> {
        let table = &table_at(state, path)?;
        let sort = table.order().to_vec();
        if sort.is_empty() && filter.is_none() {
            return Err(Error::invalid(format!(
                "'{path}' has no sort order, so there is no range to replace; create the table with one, or give a \
                 filter"
            )));
        }
        let own = table.schema().expect("every table has a version").clone();
        let (pool, name) = (&self.env().pool, format!("'{path}'"));
        let rows = RowsSchema::added(table, frame.schema(), options.schema, &numbering.generators(state, table));
        let rows = rows.map_err(|e| e.context(&name))?;
        let (schema, evolved) = (rows.stored.0.clone(), rows.evolves.then(|| rows.stored.clone()));
        let mut conform = rows.conform(&name)?;
        let batches = frame.into_batches(pool, &name).map(|batch| conform.batch(&batch?));
        let batches: Vec<RecordBatch> = batches.collect::<Result<_>>()?;
        let mut keys = None;
        if table.key().is_some() && !batches.is_empty() {
            let (codec, rows) = (table.codec_of(&schema, &sort)?, join_batches(&schema, &batches)?);
            check_distinct(&codec, &rows)?;
            if filter.is_some() {
                keys = Some(codec.keys_of(&rows)?.0);
            }
        }
        let replaced = match filter {
            None => ReplacedRows::Range(KeyRange::of(&batches, &sort)?),
            Some(filter) => ReplacedRows::Matching { filter: filter.clone(), keys },
        };
        let mut writer = self.block_writer()?.inline(self.options().inline_bytes);
        let mut groups: Vec<NewGroup> = Vec::new();
        let mut known: Option<Schemes> = None;
        let batches = if sort.is_empty() { batches } else { sorted_batches(pool, batches, &sort)? };
        for group in RowGroups::new(batches.into_iter().map(Ok), Conform::new(schema.clone())) {
            options.task.cancel.check()?;
            let (encoded, schemes) = encode_group(pool, group?, &schema, known.as_ref(), Proof::Trusted)
                .map_err(|e| e.context(format!("'{path}'")))?;
            known.get_or_insert(schemes);
            let rows = encoded.rows;
            groups.push(NewGroup { address: writer.push(encoded)?, rows, dead: None });
        }
        writer.finish()?;
        let metadata = options.metadata.clone();
        Ok((Replacement { path: path.clone(), sort, schema: own, evolved, replaced, groups, metadata }, writer))
    }

    /// The change that puts a replacement, which lies in `blocks`, in place.
    pub(in crate::store) fn replace_rows(
        &self,
        state: &State,
        replacement: &Replacement,
        blocks: &[WrittenBlock],
        task: &Task,
    ) -> Result<FullChange> {
        let path = &replacement.path;
        let table = &table_at(state, path)?;
        let same_schema = table.schema() == Some(&replacement.schema);
        if table.order() != replacement.sort || !same_schema {
            return Err(Error::conflict(format!("the schema or order of '{path}' changed during the call")));
        }
        let mut change = TableChange::new(VersionKind::Replace);
        change.metadata = replacement.metadata.clone();
        change.groups = replacement.groups.clone();
        change.schema = replacement.evolved.clone();
        let mut effects = Vec::new();
        let now = newest(self, state, table);
        // Rows that have expired are replaced like others, and go where their keys are needed.
        let (reader, pool, read_point) = (self.reader(), &self.env().pool, now.with_expired());
        let found = match &replacement.replaced {
            ReplacedRows::Range(None) => None,
            ReplacedRows::Range(Some(range)) => Some(range.rows_of(reader, pool, table, read_point, &task.cancel)),
            ReplacedRows::Matching { filter, keys } => {
                let expired = || table.schema()?.expired_at(now.instant?);
                let replaced = match keys.as_ref().and_then(|_| expired()) {
                    Some(expired) => filter.clone().or(expired),
                    None => filter.clone(),
                };
                Some(matching_rows(reader, pool, table, read_point, &replaced, &task.cancel))
            }
        };
        if let Some(found) = found {
            let found = found.map_err(|e| of_table(path, e))?;
            if let ReplacedRows::Matching { keys: Some(keys), .. } = &replacement.replaced {
                self.refuse_left(table, now, keys, &found, path, task)?;
            }
            effects = delete_in_memory(table, &found.keys)?;
            change.deletions = positions(found.groups);
        }
        effects.extend(add_blocks(blocks));
        Ok(full_change(table.id, path, effects, Some(Effect::ChangeTable { table: table.id, change })))
    }

    /// `AlreadyExists`, naming keys, if a table has rows with any of `keys` that are not among those `found`.
    fn refuse_left(
        &self,
        table: &table::TableState,
        read_point: ReadPoint,
        keys: &Keys,
        found: &FoundRows,
        path: &Path,
        task: &Task,
    ) -> Result<()> {
        let codec = table.codec()?;
        let mut rows = RowBytes::default();
        let (reader, pool, cancel) = (self.reader(), &self.env().pool, &task.cancel);
        let searcher = Searcher { reader, pool, table, read_point, codec: &codec, cancel };
        let places = searcher.locate(keys, &mut rows);
        let places = places.map_err(|e| of_table(path, e))?;
        let in_memory: BTreeSet<Key<'_>> = found.keys.iter().collect();
        let in_groups: HashMap<GroupId, &RoaringBitmap> =
            found.groups.iter().map(|matches| (matches.group, &matches.rows)).collect();
        let is_left = |at: &usize| match places[*at] {
            RowPlace::Nowhere => false,
            RowPlace::Memory(_) => !in_memory.contains(&keys.get(*at)),
            RowPlace::Group(group, row) => {
                !in_groups.get(&table.groups[group as usize].id).is_some_and(|rows| rows.contains(row))
            }
        };
        let left: Vec<usize> = (0..keys.len()).filter(is_left).collect();
        match planted(Bug::ReplaceBesideKeys) {
            true => Ok(()),
            false => refuse(&codec, keys, &left, &format!("'{path}' has rows that would not be replaced, with")),
        }
    }
}

impl Replacement {
    /// Whether the table gets another schema for it.
    pub fn evolves(&self) -> bool {
        self.evolved.is_some()
    }
}

impl UncommittedGroups for Replacement {
    fn groups(&mut self) -> impl Iterator<Item = &mut NewGroup> {
        self.groups.iter_mut()
    }
}
