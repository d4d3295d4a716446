//! Indexes of tables: made, dropped, listed, filled.
//!
//! An index is made by a small commit; from then on checkpoints fill it. A call outside a transaction fills it at once, run by run, each
//! with a commit of its own, while others read and write; if it is stopped, what is there stays, and the next checkpoint goes on.

use std::sync::Arc;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, TableId, Task};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::filter::{Expression, Filter};
use crate::store::nouns::table::Table;
use crate::store::read::resolve::table_at;
use crate::store::{CheckpointReport, Place, Store};
use crate::table::{IndexDefinition, RunOptions, TableIndex, TableState, Unique};

/// How an index is made.
#[derive(Clone, Default)]
pub struct IndexOptions {
    /// It has only the rows for which this is true. Default: all.
    pub condition: Option<Filter>,
    /// Refuse rows that have the same values as another, none of which is null. Default: they may.
    pub unique: bool,
    /// Leave it to checkpoints to fill it. Default: it is filled at once, except in a transaction.
    pub deferred: bool,
    /// Progress in row groups, and cancelling.
    pub task: Task,
}

/// An index of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexInfo {
    /// Its name.
    pub name: String,
    /// What it is of, in the names of the newest version: columns and expressions; in ids of columns if that lacks one of them, so that
    /// nothing new is covered.
    pub columns: Vec<String>,
    /// It has only the rows for which this is true.
    pub condition: Option<String>,
    /// Whether rows that have the same values as another are refused.
    pub unique: bool,
    /// Of a unique one, whether all rows were compared with each other. If not, the call that made it has not come to its end: drop it, or let
    /// [`Table::rebuild_index`] compare them.
    pub proven: bool,
    /// Whether the newest version lacks a column of it.
    pub suspended: bool,
    /// Sorted runs.
    pub runs: u64,
    /// Entries of all runs.
    pub entries: u64,
    /// Their encoded bytes.
    pub bytes: u64,
    /// Row groups of the newest version that are covered; the others are scanned.
    pub covered: u64,
    /// Row groups of the newest version.
    pub row_groups: u64,
}

impl Table {
    /// Makes an index over `columns`: columns and expressions in the language of filters, by which its entries are ordered. Reads with a filter
    /// on them use it where it takes fewer bytes than a scan; what they find is the same with and without it, in every version.
    ///
    /// Outside a transaction the index is filled at once, in parallel, while others read and write. O(rows log rows).
    ///
    /// If it is to be `unique`, every commit that would leave two rows of the newest version with the same values, none of them null, is
    /// refused as a whole, whichever call, process or store it comes from. It holds for the newest version, so that a version with such rows
    /// is not restored either. Outside a transaction others may go on to write: the index first refuses new rows, then all are compared.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{Expression, Tables};
    /// # let store = drumlin::Store::memory()?;
    /// let rows = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from_iter_values(0..100_000)) as ArrayRef)]).unwrap();
    /// store.write("t", rows, &Default::default())?;
    /// store.table("t").create_index("by_n", &[Expression::parse("n % 1000")?], &Default::default())?;
    /// let index = store.table("t").indexes()?.remove(0);
    /// assert_eq!((index.entries, index.covered), (100_000, 1));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no table, `AlreadyExists` if it has an index of this name, or if the index is to be unique and two rows have
    /// the same values: then it is not made; `InvalidArgument` if a column does not exist or is of a type whose values are not compared; `Cancelled`, after which
    /// the index is there, filled in part, unless it is unique and not all rows were compared.
    pub fn create_index(&self, name: &str, columns: &[Expression], options: &IndexOptions) -> Result<()> {
        let path = Path::new(&self.path)?;
        match &self.place {
            Place::Store(store) => {
                let (name, columns, condition) = (name.to_owned(), columns.to_vec(), options.condition.clone());
                let unique = if options.unique { Unique::Enforced } else { Unique::No };
                let build = move |state: &State| {
                    let (table, effect) = put_index(state, &path, &name, (&columns, condition.as_ref()), unique)?;
                    Ok((vec![effect], (table.id, table.indexes.next_number())))
                };
                let call = store.call()?;
                let (_, (table, number)) = store.commit_built(call.store.current()?, build)?;
                if options.unique {
                    store.prove_index(table, number).or_else(|refused| {
                        store.commit_effects(move |now| Ok(remove_index(now, table, number)))?;
                        Err(refused)
                    })?;
                }
                match options.deferred {
                    true => Ok(()),
                    false => store.fill_indexes(table, &options.task),
                }
            }
            Place::Transaction(transaction) => transaction.change_tables(|_, open| {
                let of = (columns, options.condition.as_ref());
                let unique = if options.unique { Unique::Proven } else { Unique::No };
                let (table, effect) = put_index(open.draft.state(), &path, name, of, unique)?;
                let footprint = Footprint::default().with(Read::Binding(path.clone())).with(Read::Schema(table.id));
                open.apply(footprint, vec![effect], None)
            }),
        }
    }

    /// Drops an index. Its blocks are freed as others are, by a reclaim.
    ///
    /// # Errors
    /// `NotFound` if there is no table, or no index of this name.
    pub fn drop_index(&self, name: &str) -> Result<()> {
        let path = Path::new(&self.path)?;
        match &self.place {
            Place::Store(store) => {
                let (name, at) = (name.to_owned(), path.clone());
                store.commit_effects(move |state| Ok(vec![drop_index(state, &at, &name)?]))?;
                Ok(())
            }
            Place::Transaction(transaction) => transaction.change_tables(|_, open| {
                let effect = drop_index(open.draft.state(), &path, name)?;
                open.apply(Footprint::default().with(Read::Binding(path.clone())), vec![effect], None)
            }),
        }
    }

    /// Its indexes, in the order in which they were made. O(row groups).
    ///
    /// # Errors
    /// `NotFound` if there is no table.
    pub fn indexes(&self) -> Result<Vec<IndexInfo>> {
        let path = Path::new(&self.path)?;
        self.place.look(|| Read::Binding(path.clone()), |state| infos(&*table_at(state, &path)?))
    }

    /// Makes the runs of an index again, from the row groups: mends damage, and covers all rows that are in row groups. Compares all rows
    /// with each other if the call that made a unique index has not done so.
    ///
    /// # Errors
    /// `NotFound` if there is no table, or no index of this name; `InvalidArgument` in a transaction; `AlreadyExists` if the index is
    /// unique and two rows have the same values; `Cancelled`.
    pub fn rebuild_index(&self, name: &str, task: &Task) -> Result<()> {
        let path = Path::new(&self.path)?;
        let Place::Store(store) = &self.place else {
            return Err(Error::invalid("an index is not rebuilt in a transaction; do it before or after"));
        };
        let state = store.call()?.store.current()?;
        let table = table_at(&state, &path)?;
        let index = index_named(&table, &path, name)?;
        if index.definition.unique == Unique::Enforced {
            store.prove_index(table.id, index.id)?;
        }
        let index = index.id;
        let options = RunOptions { rows_min: 1, again: true, ..store.run_options() };
        let mut report = CheckpointReport::default();
        store.make_runs(Some((table.id, Some(index))), &options, &mut Default::default(), task, &mut report)?;
        store.merge_made(table.id, task, &mut report)?;
        refuse_failures(report)
    }
}

/// What makes an index of the table at `path`, and the table as it is.
fn put_index(
    state: &State,
    path: &Path,
    name: &str,
    (columns, condition): (&[Expression], Option<&Filter>),
    unique: Unique,
) -> Result<(Arc<TableState>, Effect)> {
    let table = table_at(state, path)?;
    let named = |e: Error| e.context(format!("'{path}'"));
    let schema = table.schema().ok_or_else(|| Error::invalid("the table has no version yet")).map_err(named)?;
    let definition = IndexDefinition::new(name, columns, condition, schema).map_err(named)?.with_unique(unique);
    table.with_index(&definition).map_err(named)?;
    let effect = Effect::PutIndex { table: table.id, definition };
    Ok((table, effect))
}

/// What drops an index of the table at `path`.
fn drop_index(state: &State, path: &Path, name: &str) -> Result<Effect> {
    let table = table_at(state, path)?;
    let index = index_named(&table, path, name)?.id;
    Ok(Effect::DropIndex { table: table.id, index })
}

/// What drops an index by its number, if it is still there.
fn remove_index(state: &State, table: TableId, index: u64) -> Vec<Effect> {
    let there = state.table(table).ok().flatten();
    let is_there = there.is_some_and(|table| table.indexes.list.iter().any(|own| own.id == index));
    is_there.then_some(Effect::DropIndex { table, index }).into_iter().collect()
}

impl Store {
    /// Merges what runs of a table have come together.
    fn merge_made(&self, table: TableId, task: &Task, report: &mut CheckpointReport) -> Result<()> {
        let options = RunOptions { rows_min: u64::MAX, ..self.run_options() };
        self.make_runs(Some((table, None)), &options, &mut Default::default(), task, report)
    }

    /// Compares all rows with each other in an index that refuses new ones with the values of another, and says that no two have the same.
    fn prove_index(&self, table: TableId, index: u64) -> Result<()> {
        if !planted(Bug::TrustOldRows) {
            self.compare_all(table, index)?;
        }
        let prove = move |now: &State| {
            let there = now.table(table)?;
            Ok(there.map(|_| Effect::ProveIndex { table, index }).into_iter().collect())
        };
        self.commit_effects(prove)?;
        Ok(())
    }

    /// Fills the indexes of a table.
    fn fill_indexes(&self, table: TableId, task: &Task) -> Result<()> {
        let options = RunOptions { rows_min: 1, ..self.run_options() };
        let mut report = CheckpointReport::default();
        self.make_runs(Some((table, None)), &options, &mut Default::default(), task, &mut report)?;
        self.merge_made(table, task, &mut report)?;
        refuse_failures(report)
    }
}

fn refuse_failures(report: CheckpointReport) -> Result<()> {
    match report.failures.into_iter().next() {
        None => Ok(()),
        Some(failure) => Err(Error::corrupt(format!("the index was made, but not filled: {failure}"))),
    }
}

fn index_named<'a>(table: &'a Arc<TableState>, path: &Path, name: &str) -> Result<&'a TableIndex> {
    table.indexes.named(name).ok_or_else(|| {
        let names: Vec<&str> = table.indexes.list.iter().map(|index| index.definition.name.as_str()).collect();
        let known = match names.as_slice() {
            [] => "it has none".to_owned(),
            names => format!("it has '{}'", names.join("', '")),
        };
        Error::not_found(format!("'{path}' has no index '{name}'; {known}"))
    })
}

fn infos(table: &TableState) -> Result<Vec<IndexInfo>> {
    let Some(newest) = table.newest() else { return Ok(Vec::new()) };
    let (schema, version) = (&table.schemas[newest.schema as usize], newest.version);
    let mut found = Vec::new();
    for index in &table.indexes.list {
        let definition = &index.definition;
        let shown = definition.shown(schema)?;
        let suspended = shown.is_none();
        let (columns, condition) = shown.unwrap_or_else(|| (definition.values.clone(), definition.condition.clone()));
        found.push(IndexInfo {
            name: definition.name.clone(),
            columns,
            condition,
            unique: definition.is_unique(),
            proven: definition.unique == Unique::Proven,
            suspended,
            runs: index.runs().len() as u64,
            entries: index.runs().iter().map(|run| run.entries()).sum(),
            bytes: index.runs().iter().map(|run| run.bytes()).sum(),
            covered: table.covered_by(index, version)?,
            row_groups: table.groups.iter().filter(|group| table.serves(group, version)).count() as u64,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;
    use crate::base::ErrorKind;
    use crate::store::Tables;
    use crate::table::NewRun;

    #[test]
    fn a_run_with_fewer_entries_than_rows_is_not_taken() {
        let store = Store::memory().unwrap();
        let rows = |n| RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from_iter_values(0..n)) as ArrayRef)]);
        store.write("t", rows(100).unwrap(), &Default::default()).unwrap();
        assert!(store.state().unwrap().table_at(&Path::new("t").unwrap()).unwrap().unwrap().indexes.is_empty());
        store.table("t").create_index("n", &[Expression::parse("n").unwrap()], &Default::default()).unwrap();
        let table = store.state().unwrap().table_at(&Path::new("t").unwrap()).unwrap().unwrap();
        let run = table.indexes.list[0].runs()[0].clone();
        let with = |fewer: u32| NewRun {
            parts: run.parts.iter().map(|(address, entries)| (*address, entries - fewer)).collect(),
            open: 0,
            covers: run.covered().copied().collect(),
            schema: run.schema,
        };
        assert_eq!(table.with_runs(0, &[with(1)], &[run.id]).unwrap_err().kind(), ErrorKind::InvalidArgument);
        let (next, parts) = table.with_runs(0, &[with(0)], &[run.id]).unwrap();
        assert_eq!(
            (next.indexes.list[0].runs().len(), parts.added, parts.released.len()),
            (1, parts.released.clone(), 1)
        );
        // What another run covers is not covered again, and an index that is gone is ignored.
        let (next, parts) = table.with_runs(0, &[with(0)], &[]).unwrap();
        assert_eq!((next.indexes.list[0].runs().len(), parts.added), (1, parts.released));
        let (next, parts) = table.with_runs(7, &[with(0)], &[]).unwrap();
        assert_eq!((next.indexes.list[0].runs().len(), parts.added), (1, parts.released));
    }
}
