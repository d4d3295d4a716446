//! Upserts of rows that have some of the table's columns: where there is a row with the key, it keeps what it has in the others;
//! where there is none, these have their default, or are null.
//!
//! A few rows are completed by a look-up of their keys, and written as whole rows: what the look-up found is part of the
//! footprint, so that a row that others have changed since is completed again. Many are a merge.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};

use super::by_key::{ByKey, Gathered, RowsReport, check_schema, dedup_keys};
use super::numbers::Numbering;
use crate::base::{Error, Result, Timestamp};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::memtable::Keys;
use crate::segment::interleave;
use crate::store::change::changed_rows::PreparedChange;
use crate::store::commit::call::Call;
use crate::store::commit::in_groups::{MemoryScope, in_memory};
use crate::store::nouns::transaction::{OpenTransaction, Transaction};
use crate::store::read::resolve::table_at;
use crate::store::{Frame, MergeReport, Store, UpdateOptions, WriteOptions};
use crate::table::{
    Checks, Merge, RowsSchema, Searcher, StoredSchema, TableChange, VersionKind, WhenMatched, WhenNotMatched,
};

/// `SchemaMismatch` if rows with the columns of `came` lack one of `key`; an insert fills it if it has a default.
pub(in crate::store) fn check_key_columns(
    what: ByKey,
    came: &SchemaRef,
    stored: &StoredSchema,
    key: &[String],
) -> Result<()> {
    let filled = |name: &String| what == ByKey::Insert && stored.has_default(name);
    match key.iter().find(|name| came.index_of(name).is_err() && !filled(name)) {
        Some(name) => Err(Error::schema_mismatch(format!("the data lacks the key column '{name}'"))),
        None => Ok(()),
    }
}

/// The schema of rows that have the columns of `came`, if the table has others; `None` if they have all.
///
/// # Errors
/// `SchemaMismatch` if the rows have columns that the table lacks.
pub(in crate::store) fn partial_schema(came: &SchemaRef, rows: &RowsSchema) -> Result<Option<SchemaRef>> {
    let own = &rows.stored.0;
    let given: Vec<FieldRef> =
        own.fields().iter().filter(|field| came.index_of(field.name()).is_ok()).cloned().collect();
    if given.len() == own.fields().len() {
        return Ok(None);
    }
    let names = came.fields().iter().map(|field| field.name().as_str());
    let new: Vec<&str> = names.filter(|name| own.index_of(name).is_err()).collect();
    match new.is_empty() {
        true => Ok(Some(Arc::new(Schema::new(given)))),
        false => Err(Error::schema_mismatch(format!(
            "the data has '{}', which the table lacks; its columns are '{}' (with schema='evolve', what the table lacks is \
             added)",
            new.join("', '"),
            own.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join("', '")
        ))),
    }
}

/// Whole rows of `rows`, which have some of the columns, with what the table has in the others. They have the keys `keys`, without
/// duplicates, in this order. New ones have what `lacking_in_new` says. Also returns when
/// the first row that was found expires.
pub(in crate::store) fn completed(
    rows: &RecordBatch,
    searcher: &Searcher<'_>,
    keys: &Keys,
    checks: &Checks,
    lacking_in_new: &dyn Fn(&FieldRef, usize) -> Result<ArrayRef>,
) -> Result<(RecordBatch, Option<Timestamp>)> {
    let codec = searcher.codec;
    let stored = searcher.table.schema().expect("it was written to");
    let names = stored.0.fields().iter().map(|field| field.name());
    let lacking: Vec<String> = names.filter(|name| rows.column_by_name(name).is_none()).cloned().collect();
    let there = searcher.get_many(keys, &codec.keys_of(rows)?.1, Some(&lacking))?;
    let mut new = 0;
    let place = |row: usize| match there.found.value(row) {
        true => (1, row),
        false => {
            new += 1;
            (0, new - 1)
        }
    };
    let places: Vec<(usize, usize)> = (0..keys.len()).map(place).collect();
    let named = |rows: &[usize]| codec.key_codec().describe_some(rows.iter().map(|row| keys.get(*row)));
    let column = |field: &FieldRef| {
        if let Some(given) = rows.column_by_name(field.name()) {
            return Ok(given.clone());
        }
        let known = there.rows.column_by_name(field.name()).expect("asked for").clone();
        let column = interleave(&[lacking_in_new(field, new)?, known], &places)?;
        if !field.is_nullable() && column.null_count() > 0 {
            let new: Vec<usize> = (0..keys.len()).filter(|row| column.is_null(*row)).collect();
            return Err(Error::schema_mismatch(format!(
                "there is no row yet with the key {}, and the data lacks column '{}', which takes no nulls and has no \
                 default; add it to the data",
                named(&new),
                field.name()
            )));
        }
        Ok(column)
    };
    let columns = stored.0.fields().iter().map(column).collect::<Result<Vec<ArrayRef>>>()?;
    let whole = RecordBatch::try_new(codec.schema().clone(), columns)?;
    checks.test(&whole, |row| format!("the row with the key {}", named(&[row])))?;
    Ok((whole, there.until))
}

/// Many rows that have some of the columns, without duplicates.
pub(in crate::store) struct PartialMerge {
    source: RecordBatch,
    /// How many there were with the duplicates.
    rows: u64,
    merge: Merge,
    /// The schema that the table had, and the one that it gets first, if that is another.
    evolved: Option<(SchemaRef, StoredSchema)>,
    options: UpdateOptions,
    numbering: Numbering,
}

impl PartialMerge {
    /// Of what was gathered, and what is left of it, which must fit into memory.
    pub fn new(store: &Store, path: &Path, gathered: Gathered<'_>, options: &WriteOptions) -> Result<Self> {
        let Gathered { codec, schema, drawn, rest, evolved, partial, .. } = gathered;
        let numbering = partial.unwrap_or_else(|| store.numbering());
        let options = UpdateOptions { metadata: options.metadata.clone(), task: options.task.clone() };
        let batches = drawn.into_iter().map(Ok).chain(rest.into_iter().flatten());
        let source = store.collected(path, Frame::new(schema, batches), &options)?;
        let rows = source.num_rows() as u64;
        let source = dedup_keys(ByKey::Upsert, &codec, source)?.0;
        // Rows that have the key alone change nothing.
        let sets = source.num_columns() > codec.key_schema().fields().len();
        let merge = Merge {
            matched: if sets { vec![(None, WhenMatched::UpdateAll)] } else { Vec::new() },
            not_matched: vec![(None, WhenNotMatched::InsertAll)],
            ..Merge::default()
        };
        Ok(Self { source, rows, merge, evolved, options, numbering })
    }

    fn prepare(&self, store: &Store, state: &State, path: &Path) -> Result<PreparedChange<MergeReport>> {
        store.prepare_merge(state, path, self.source.clone(), &self.merge, false, &self.options, &self.numbering)
    }
}

impl Call<'_> {
    /// Merges rows that have some of the columns.
    pub fn merge_partial(self, path: &Path, rows: &PartialMerge) -> Result<RowsReport> {
        let store = self.store;
        let version = if rows.evolved.is_none() {
            self.commit_row_changes(path, |state: &State| rows.prepare(store, state, path))?.0
        } else {
            let mut work =
                |tx: &Transaction| tx.change_tables(|store, open| open.merge_partial(store, path, rows).map(drop));
            let ((), after) = store.while_reclaimed(|| store.transact_to(&mut work))?;
            Some(store.newest_info(&after, path)?)
        };
        Ok(RowsReport { seq: version.as_ref().map(|version| version.seq), rows: rows.rows, version, returned: None })
    }
}

impl OpenTransaction {
    /// The same in a transaction. Returns how many rows.
    pub fn merge_partial(&mut self, store: &Store, path: &Path, rows: &PartialMerge) -> Result<u64> {
        let waiting = in_memory(self.draft.state(), path)?;
        self.with_rows_in_groups(store, &waiting, MemoryScope::All, |open| {
            if let Some((own, schema)) = &rows.evolved {
                let table = table_at(open.draft.state(), path)?;
                check_schema(&table, path, own, None)?;
                let change = TableChange { schema: Some(schema.clone()), ..TableChange::new(VersionKind::Alter) };
                let footprint = Footprint::default().with(Read::Binding(path.clone())).with(Read::Schema(table.id));
                open.apply(footprint, vec![Effect::ChangeTable { table: table.id, change }], None)?;
            }
            open.change_rows(store, path, |state| rows.prepare(store, state, path))?;
            Ok(rows.rows)
        })
    }
}
