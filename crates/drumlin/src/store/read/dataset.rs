//! A data set: a table, or all tables that a pattern matches, as of one instant, to be read as one.
//!
//! It has the columns of all its tables, each in a type that holds the values of all, and columns made of the names in
//! the tables' paths. A filter is applied to those columns; what it says of names decides which tables are opened at
//! all.
//!
//! A data set keeps no blocks. What it shows is found again in the newest state when rows are asked for, by a few bytes
//! for each table ([`ViewPoint`]), which is also how it goes to other processes. Only rows in memory that belong to no
//! version yet hold their state.
//!
//! What a filter rules out is not opened: tables by their names and by the columns that they lack, judged by the same
//! code that judges statistics; then row groups, before tasks are started for them (*scan.rs*).
//!
//! A column whose types no type holds the values of is null in the schema, and an error for whatever reads it
//! ([`Dataset::check_readable`]). Engines get other types of the same values ([`Dataset::for_engines`],
//! [`Dataset::without_views`]); what an engine has no type for is narrowed value by value as it is read, and refused
//! where a value does not fit.

mod types;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use super::resolve::{held_in, is_younger};
use crate::base::{Error, ErrorKind, Result, TableId, Timestamp};
use crate::catalog::{Path, Pattern, Read, State};
use crate::filter::{BoundFilter, Verdict};
use crate::segment::ColumnStats;
use crate::store::nouns::patterns::IntoPattern;
use crate::store::parts::Pin;
use crate::store::{AsOf, Place, Store, Table};
use crate::table::{
    Apart, Constants, IndexCost, ReadAs, Scan, ScanOptions, ScanPlan, VersionRecord, View, ViewPoint, constant_stats,
    rows_at_most, union, without_hidden,
};

/// What a data set is made of.
#[derive(Clone, Debug, Default)]
pub struct DatasetOptions {
    /// Which versions of its tables. Default: the newest.
    pub as_of: AsOf,
    /// What the columns are called that hold the names in a table's path, one for each part of the pattern that is no plain
    /// name, in order. Default: there are none.
    pub path_columns: Vec<String>,
}

/// A table, or all tables that a pattern matches, as of one instant. Nothing is read before rows are asked for, and what is
/// committed later does not change them.
#[derive(Clone)]
pub struct Dataset {
    inner: Arc<DatasetParts>,
}

#[derive(Clone)]
struct DatasetParts {
    place: Place,
    pattern: String,
    path_columns: Vec<String>,
    tables: Arc<Vec<Member>>,
    /// The columns.
    schema: SchemaRef,
    /// Those that have types in some tables whose values no type holds, and what is wrong: nobody can read them. They are
    /// null in `schema`.
    apart: Arc<BTreeMap<String, String>>,
    /// The same in the types in which they are handed out.
    shown: SchemaRef,
    /// How many changes of tables its transaction had begun.
    table_changes: u64,
}

impl DatasetParts {
    /// The same of `tables`, handed out as `shown`.
    fn with(&self, tables: Arc<Vec<Member>>, shown: SchemaRef) -> Self {
        Self { tables, shown, ..self.clone() }
    }
}

/// One of the tables.
#[derive(Clone)]
struct Member {
    handle: Table,
    view: View,
    /// What its columns made of names hold, in order.
    names: Vec<String>,
}

impl Member {
    /// Finds what it shows in a state.
    fn find(&mut self, store: &Store, state: &Arc<State>, pin: &Arc<Pin>) -> Result<()> {
        let Member { handle, view, .. } = self;
        let table = state.table(view.table.id)?.ok_or_else(|| view.gone());
        *view = found(store, handle.path(), table, &view.point(), state, pin)?;
        Ok(())
    }
}

/// What is seen of the table at `path` from `point`, found in a state.
fn found(
    store: &Store,
    path: &str,
    table: Result<Arc<crate::table::TableState>>,
    point: &ViewPoint,
    state: &Arc<State>,
    pin: &Arc<Pin>,
) -> Result<View> {
    let view = table.and_then(|table| store.view_at_point(&table, point, state, pin));
    view.map_err(|e| e.context(format!("'{path}'")))
}

/// A data set in a few bytes: its tables by their ids, and what is visible of them.
#[derive(Serialize, Deserialize)]
struct Described {
    pattern: String,
    path_columns: Vec<String>,
    tables: Vec<(Path, TableId, ViewPoint, Vec<String>)>,
}

/// The first byte of a description, and of one of tables whose rows expire, which builds of before would show: it ends with their instants.
const DESCRIPTION_VERSION: u8 = 1;
const DESCRIPTION_VERSION_EXPIRING: u8 = 2;

/// What reading a data set costs, and what its filter spares. Its text is for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatasetPlan {
    /// The tables that are opened, and what is read of each.
    pub opened: Vec<(String, ScanPlan)>,
    /// The paths of those that are not: the filter is true for none of their rows, by their names in the path or because they
    /// lack a column.
    pub pruned: Vec<String>,
    /// The sum over the tables that are opened.
    pub total: ScanPlan,
}

impl Dataset {
    /// The data set of the tables that `pattern` matches in `place`.
    pub(in crate::store) fn new(place: Place, pattern: impl IntoPattern, options: &DatasetOptions) -> Result<Self> {
        let pattern = pattern.into_pattern()?;
        let variable = pattern.variable_parts();
        if !options.path_columns.is_empty() && options.path_columns.len() != variable {
            let given = options.path_columns.len();
            return Err(Error::invalid(format!(
                "path_columns has {given} names, but the pattern '{pattern}' has {variable} wildcard parts; give one \
                 name for each"
            )));
        }
        let reads = |state: &State| {
            let mut reads = vec![Read::Pattern(pattern.clone())];
            if let AsOf::Snapshot(name) = &options.as_of {
                reads.push(Read::Snapshot(name.clone()));
            }
            for path in paths(state, &pattern, &options.as_of)? {
                reads.extend(table_of(&place, &path).reads_rows(state, &options.as_of)?);
            }
            Ok(reads)
        };
        let tables = place.read(reads, |state, pin| {
            let state = &*place.store().at_one_instant(state);
            let mut tables = Vec::new();
            for path in paths(state, &pattern, &options.as_of)? {
                let handle = table_of(&place, &path);
                let Some(view) = see(&handle, state, pin, &options.as_of)? else { continue };
                let names = match options.path_columns.is_empty() {
                    true => Vec::new(),
                    false => pattern.variable_names(path.as_str())?,
                };
                tables.push(Member { handle, view, names });
            }
            Ok(tables)
        })?;
        if tables.is_empty() {
            return Err(Error::not_found(format!("no table matches '{pattern}'")));
        }
        Self::of(place, pattern.to_string(), options.path_columns.clone(), tables)
    }

    /// What a scan of a table showed ([`Scan::view`]), as a data set of that table alone; `table_changes` as for
    /// [`Table::read_again`].
    ///
    /// # Errors
    /// `Corrupt` if the table's record is damaged.
    pub fn of_view(table: &Table, view: &View, table_changes: u64) -> Result<Self> {
        let member = Member { handle: table.clone(), view: view.clone(), names: Vec::new() };
        let mut inner = Self::of(table.place.clone(), table.path().to_owned(), Vec::new(), vec![member])?.inner;
        Arc::make_mut(&mut inner).table_changes = table_changes;
        Ok(Self { inner })
    }

    fn of(place: Place, pattern: String, path_columns: Vec<String>, mut tables: Vec<Member>) -> Result<Self> {
        let schemas: Vec<SchemaRef> = tables.iter().map(|table| table.view.schema()).collect::<Result<_>>()?;
        let union = union(&schemas);
        let (schema, apart) = (without_hidden(&Arc::new(union.schema)), union.apart.into_iter());
        let told = |apart: Apart| (apart.told(&schemas, |at| format!("in '{}'", tables[at].handle.path())), apart.name);
        let apart = Arc::new(apart.map(told).map(|(told, name)| (name, told)).collect());
        for (at, name) in path_columns.iter().enumerate() {
            let holder = schemas.iter().position(|schema| schema.index_of(name).is_ok());
            if let Some(holder) = holder.map(|at| tables[at].handle.path()) {
                return Err(Error::invalid(format!(
                    "path_columns has '{name}', which is already a column of '{holder}'; choose another name"
                )));
            }
            if path_columns[..at].contains(name) {
                return Err(Error::invalid(format!("path_columns has '{name}' twice")));
            }
        }
        let table_changes = tables.first().map_or(0, |table| table.handle.table_changes());
        for Member { handle, view, .. } in &mut tables {
            // What belongs to a version is found again; a data set that is kept must not keep blocks.
            if handle.is_in_store() && !view.shows_unnumbered_rows() {
                view.pin = None;
            }
        }
        let of_paths = path_columns.iter().map(|name| Arc::new(Field::new(name, DataType::Utf8, false)));
        let fields: Vec<FieldRef> = schema.fields().iter().cloned().chain(of_paths).collect();
        let metadata = match schemas.iter().all(|schema| schema.metadata() == schemas[0].metadata()) {
            true => schemas[0].metadata().clone(),
            false => Default::default(),
        };
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let shown = schema.clone();
        let inner =
            DatasetParts { place, pattern, path_columns, tables: tables.into(), schema, apart, shown, table_changes };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The columns of all tables, in the order in which they first come, then those made of names. A column whose types no
    /// type holds the values of is null here, and a scan that asks for it is refused.
    pub fn schema(&self) -> SchemaRef {
        self.inner.shown.clone()
    }

    /// Checks that columns can be read: those `asked` for, or all.
    ///
    /// # Errors
    /// `SchemaMismatch` if no type holds the values that all tables have in one of them.
    pub fn check_readable<'a>(&self, asked: Option<impl IntoIterator<Item = &'a str>>) -> Result<()> {
        let apart = &self.inner.apart;
        let bad = match asked {
            Some(asked) => asked.into_iter().find_map(|name| apart.get(name)),
            None => apart.values().next(),
        };
        match bad {
            Some(told) => Err(Error::schema_mismatch(format!(
                "{told}; select other columns by name (`columns`), or read these tables separately"
            ))),
            None => Ok(()),
        }
    }

    /// The number of rows for which the filter of `options` may be true, up to its limit, from records alone: nothing is
    /// read. It is exact if there is no filter and no rows are in memory.
    ///
    /// # Errors
    /// `InvalidArgument` if the filter is not of the schema.
    pub fn rows_at_most(&self, options: &ScanOptions) -> Result<u64> {
        let rows = |at: usize| {
            let view = &self.inner.tables[at].view;
            rows_at_most(&view.table, view.read_point)
        };
        let rows: u64 = self.unpruned(options)?.0.into_iter().map(rows).sum();
        Ok(rows.min(options.limit.unwrap_or(u64::MAX)))
    }

    /// The columns in the types that filters see.
    pub fn filter_schema(&self) -> SchemaRef {
        self.inner.schema.clone()
    }

    /// The pattern.
    pub fn pattern(&self) -> &str {
        &self.inner.pattern
    }

    /// The columns that hold names of the tables' paths.
    pub fn path_columns(&self) -> &[String] {
        &self.inner.path_columns
    }

    /// The paths of its tables, in order.
    pub fn paths(&self) -> Vec<String> {
        self.inner.tables.iter().map(|table| table.handle.path().to_owned()).collect()
    }

    /// The version that it shows of each of its tables, in their order; `None` of one that its transaction has written.
    pub fn versions(&self) -> Vec<Option<&VersionRecord>> {
        self.inner.tables.iter().map(|table| table.handle.numbered(&table.view)).collect()
    }

    /// Its tables one by one, each with the columns of all; without those that the filter of `options` rules out by their
    /// paths and columns.
    ///
    /// # Errors
    /// `InvalidArgument` if the filter is not of the schema.
    pub fn split_by_table(&self, options: &ScanOptions) -> Result<Vec<Dataset>> {
        let of = |at: usize| {
            let table = self.inner.tables[at].clone();
            Dataset { inner: Arc::new(self.inner.with(vec![table].into(), self.inner.shown.clone())) }
        };
        Ok(self.unpruned(options)?.0.into_iter().map(of).collect())
    }

    /// What reading it with `options` costs; the limit is not counted in. Reads directories of row groups, but no rows.
    ///
    /// # Errors
    /// As [`Dataset::scan`].
    pub fn plan(&self, options: &ScanOptions) -> Result<DatasetPlan> {
        let options = ScanOptions { limit: None, ..options.clone() };
        self.check_readable(options.columns.as_ref().map(|columns| columns.iter().map(String::as_str)))?;
        let (opened, pruned) = self.unpruned(&options)?;
        let path = |at: usize| self.inner.tables[at].handle.path().to_owned();
        let mut plan = DatasetPlan { pruned: pruned.into_iter().map(path).collect(), ..DatasetPlan::default() };
        let held = self.held(&opened)?;
        for at in opened {
            let of_table = held.scan_table(at, &options)?.plan()?;
            plan.total += of_table.clone();
            plan.opened.push((path(at), of_table));
        }
        Ok(plan)
    }

    /// A description of some 50 bytes a table, from which [`Dataset::described`] makes it again, in this process or another.
    ///
    /// # Errors
    /// `InvalidArgument` for what a transaction sees.
    pub fn describe(&self) -> Result<Vec<u8>> {
        if let Place::Transaction(_) = self.inner.place {
            return Err(Error::invalid(
                "other processes cannot see the data of a transaction; commit it, and scan the store",
            ));
        }
        let table = |Member { handle, view, names }: &Member| {
            Ok((Path::new(handle.path())?, view.table.id, view.point(), names.clone()))
        };
        let described = Described {
            pattern: self.inner.pattern.clone(),
            path_columns: self.inner.path_columns.clone(),
            tables: self.inner.tables.iter().map(table).collect::<Result<_>>()?,
        };
        let instants: Vec<Option<Timestamp>> = described.tables.iter().map(|(_, _, point, _)| point.instant).collect();
        let expires = instants.iter().any(Option::is_some);
        let mut bytes = vec![if expires { DESCRIPTION_VERSION_EXPIRING } else { DESCRIPTION_VERSION }];
        bytes.extend(postcard::to_stdvec(&described).expect("it can be encoded"));
        if expires {
            bytes.extend(postcard::to_stdvec(&instants).expect("it can be encoded"));
        }
        Ok(bytes)
    }

    /// The data set that was described ([`Dataset::describe`]) in a store, as of the instant that it was of.
    ///
    /// # Errors
    /// `Corrupt` if `described` is no description; `SnapshotExpired` if a version that it has is gone.
    pub fn described(store: &Store, described: &[u8]) -> Result<Self> {
        let corrupt =
            || Error::corrupt("this is not a description of a data set, or it was made by a later version of drumlin");
        let (version, described) = described.split_first().ok_or_else(corrupt)?;
        let (mut described, rest): (Described, &[u8]) = postcard::take_from_bytes(described).map_err(|_| corrupt())?;
        match *version {
            DESCRIPTION_VERSION => {}
            DESCRIPTION_VERSION_EXPIRING => {
                let instants: Vec<Option<Timestamp>> = postcard::from_bytes(rest).map_err(|_| corrupt())?;
                if instants.len() != described.tables.len() {
                    return Err(corrupt());
                }
                described.tables.iter_mut().zip(instants).for_each(|(table, instant)| table.2.instant = instant);
            }
            _ => return Err(corrupt()),
        }
        let find = || {
            let (state, pin) = store.pinned_state()?;
            let mut tables = Vec::with_capacity(described.tables.len());
            for (path, id, point, names) in &described.tables {
                if names.len() != described.path_columns.len() {
                    return Err(corrupt());
                }
                let gone = || Error::snapshot_expired(format!("the table at '{path}' no longer exists"));
                let view = found(store, path.as_str(), state.table(*id)?.ok_or_else(gone), point, &state, &pin)?;
                tables.push(Member {
                    handle: table_of(&Place::Store(store.clone()), path),
                    view,
                    names: names.clone(),
                });
            }
            Ok(tables)
        };
        let tables = store.while_reclaimed(find)?;
        Self::of(Place::Store(store.clone()), described.pattern.clone(), described.path_columns.clone(), tables)
    }

    /// The same, with what some of its tables show found in the newest state, all in one look, and held there as long as it
    /// lives.
    pub(in crate::store) fn held(&self, tables: &[usize]) -> Result<Dataset> {
        let Place::Store(store) = &self.inner.place else { return Ok(self.clone()) };
        let (state, pin) = store.pinned_state()?;
        let mut held = self.inner.tables.to_vec();
        for at in tables {
            if held[*at].view.pin.is_none() {
                held[*at].find(store, &state, &pin)?;
            }
        }
        Ok(Dataset { inner: Arc::new(self.inner.with(held.into(), self.inner.shown.clone())) })
    }

    /// The same, with what all of its tables show found in `state`.
    pub(in crate::store) fn found_in(&self, store: &Store, state: &Arc<State>) -> Result<Dataset> {
        let (state, pin) = store.commits().newest().pins().take(|| state.clone());
        let mut found = self.inner.tables.to_vec();
        for table in &mut found {
            table.find(store, &state, &pin)?;
        }
        Ok(Dataset { inner: Arc::new(self.inner.with(found.into(), self.inner.shown.clone())) })
    }

    /// Where it is read.
    pub(in crate::store) fn place(&self) -> &Place {
        &self.inner.place
    }

    /// What columns made of names hold for a table.
    pub(in crate::store) fn names_of(&self, table: usize, columns: &[&String]) -> Vec<&str> {
        let name = |column: &&String| {
            let at = self.inner.path_columns.iter().position(|own| own == *column);
            at.map_or("", |at| self.inner.tables[table].names[at].as_str())
        };
        columns.iter().map(name).collect()
    }

    /// The columns by which the rows of a table are ordered.
    pub(in crate::store) fn order_of(&self, table: usize) -> Result<&[String]> {
        self.inner.tables[table].view.order()
    }

    /// The indexes of the tables that may have rows for which the filter is true, and those of the others.
    pub(in crate::store) fn unpruned(&self, options: &ScanOptions) -> Result<(Vec<usize>, Vec<usize>)> {
        let schema = &self.inner.schema;
        if let Some(filter) = &options.filter {
            self.check_readable(Some(filter.columns().iter().map(String::as_str)))?;
        }
        let filter = options.filter.as_ref().map(|filter| filter.bind(schema)).transpose()?;
        let Some(filter) = filter else { return Ok(((0..self.inner.tables.len()).collect(), Vec::new())) };
        let mut kept = (Vec::new(), Vec::new());
        for (at, table) in self.inner.tables.iter().enumerate() {
            match self.may_match(table, &filter)? {
                true => kept.0.push(at),
                false => kept.1.push(at),
            }
        }
        Ok(kept)
    }

    /// Whether the filter may be true for rows of a table, judged without opening it.
    fn may_match(&self, table: &Member, filter: &BoundFilter) -> Result<bool> {
        let own = table.view.schema()?;
        let first_name = self.inner.schema.fields().len() - table.names.len();
        let stats = |index: usize| match index.checked_sub(first_name) {
            Some(at) => Some(constant_stats(&table.names[at])),
            // A single row stands for all.
            None if own.index_of(self.inner.schema.field(index).name()).is_err() => {
                Some(ColumnStats { nulls: 1, ..ColumnStats::default() })
            }
            None => None,
        };
        Ok(filter.verdict(1, &stats) != Verdict::None)
    }

    /// The number of rows of one of the tables for which the filter is true.
    pub(in crate::store) fn count_table(&self, at: usize, options: &ScanOptions) -> Result<u64> {
        let Member { handle, view, .. } = &self.inner.tables[at];
        if options.filter.is_none() {
            handle.check_not_aborted()?;
            match self.inner.place.store().count_rows(&view.table, view.read_point) {
                // A scan finds blocks where they are now.
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => {}
                counted => return counted,
            }
        }
        self.scan_table(at, options)?.count()
    }

    /// Reads one of the tables in the columns of the data set.
    pub(in crate::store) fn scan_table(&self, at: usize, options: &ScanOptions) -> Result<Scan> {
        let Member { handle, view, names } = &self.inner.tables[at];
        let constants: Constants = self.inner.path_columns.iter().cloned().zip(names.iter().cloned()).collect();
        let read_as = ReadAs::new(self.inner.schema.clone(), constants).shown_as(self.inner.shown.clone());
        let options = ScanOptions { name: Some(handle.path().to_owned()), ..options.clone() };
        handle.check_not_aborted()?;
        handle.scan_again(view, Some(&read_as), &options, self.inner.table_changes)
    }
}

impl std::fmt::Display for DatasetPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { opened, pruned, total } = self;
        let tables = opened.len() + pruned.len();
        writeln!(f, "tables      {} of {tables} opened; {} ruled out by path or columns", opened.len(), pruned.len())?;
        let (read, groups) = (total.row_groups - total.pruned, total.row_groups);
        let (pruned, whole) = (total.pruned, total.whole);
        writeln!(f, "row groups  {read} of {groups} read; {pruned} ruled out by statistics, {whole} pass whole")?;
        let bytes = total.bytes + total.pruned_bytes;
        write!(f, "bytes       {} of {bytes} read", total.bytes)?;
        let IndexCost { names, pages, bytes, hits, row_groups } = &total.by_index;
        if !names.is_empty() {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let names = names.join(", ");
            write!(
                f,
                "\nindexes     {names}: {hits} hits in {row_groups} row groups, from {pages} pages, {bytes} bytes"
            )?;
        }
        match total.memory_rows {
            0 => Ok(()),
            rows => write!(f, "\nin memory   {rows} rows"),
        }
    }
}

impl std::fmt::Debug for Dataset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dataset('{}', {} tables)", self.inner.pattern, self.inner.tables.len())
    }
}

fn table_of(place: &Place, path: &Path) -> Table {
    Table::new(place.clone(), path.to_string())
}

/// The paths of the tables that `pattern` matches in what `as_of` sees.
fn paths(state: &State, pattern: &Pattern, as_of: &AsOf) -> Result<Vec<Path>> {
    if let Some(path) = pattern.literal() {
        return Ok(vec![Path::new(path)?]);
    }
    let AsOf::Snapshot(name) = &*as_of.settled(state) else {
        return Ok(state.ids_matching(pattern).map(|(path, _)| path.clone()).collect());
    };
    if !pattern.is_of_path() {
        return Err(Error::invalid(format!(
            "the pattern '{pattern}' has a condition on nodes, which snapshot '{name}' does not contain; use \
             conditions on names"
        )));
    }
    let held = held_in(state, name, |path| pattern.matches_path(path.as_str()))?;
    Ok(held.into_iter().map(|(path, _)| path).collect())
}

/// What is seen of a table that a pattern matches; `None` of one that was made after the time that is asked for.
fn see(table: &Table, state: &State, pin: &Arc<Pin>, as_of: &AsOf) -> Result<Option<View>> {
    let as_of = &*as_of.settled(state);
    if *as_of != AsOf::Newest
        && state.table_at(&Path::new(table.path())?)?.is_some_and(|found| is_younger(&found, as_of))
    {
        return Ok(None);
    }
    Ok(Some(table.see(state, pin, as_of)?.0))
}
