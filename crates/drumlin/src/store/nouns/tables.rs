//! Operations on tables by path, in a store or in a transaction: finding them, the everyday verbs, and those on many tables
//! at once.

use std::collections::BTreeMap;

use super::patterns::{IntoPattern, IntoPatterns};
use crate::base::{ErrorKind, Result, Version};
use crate::catalog::{CopyReport, Existing, Footprint, Read, State};
use crate::storage::Storage;
use crate::store::change::versions::{bytes_deleted_from, check_versions, delete_versions};
use crate::store::commit::in_groups::MemoryScope;
use crate::store::write::on_item_error::OnItemError;
use crate::store::{
    AsOf, Dataset, DatasetOptions, DropReport, Frame, Missing, Place, ReadOptions, Store, Table, Transaction, Tree,
    VersionInfo, VersionsReport, WriteOptions,
};
use crate::table::{Rows, Scan, VersionKind, View};

/// Operations on tables by path: in a [`crate::store::Store`], where each call is one commit, or in a [`crate::store::Transaction`], where
/// nothing is committed before its end.
pub trait Tables {
    /// What describes a version that was made: [`VersionInfo`] in a store; `()` in a transaction, since versions are
    /// numbered at its commit.
    type Version;

    /// Where the operations are done.
    fn place(&self) -> Place;

    #[doc(hidden)]
    fn numbered(version: Option<VersionInfo>) -> Self::Version;

    /// The nodes of the tree, and their payloads.
    fn tree(&self) -> Tree {
        Tree { place: self.place() }
    }

    /// A handle on the table at `path`; whether the table exists is checked when the handle is used.
    fn table(&self, path: &str) -> Table {
        Table::new(self.place(), path)
    }

    /// The paths that match `pattern` and hold tables, in order.
    ///
    /// # Errors
    /// `InvalidArgument` if `pattern` is not valid.
    fn tables(&self, pattern: impl IntoPattern) -> Result<Vec<String>> {
        let (pattern, state) = self.tree().matching(pattern)?;
        Ok(state.ids_matching(&pattern).map(|(path, _)| path.to_string()).collect())
    }

    /// Makes a version of the table at `path` that holds exactly the rows of `frame`; makes the table if needed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::Tables;
    /// # let store = drumlin::Store::memory()?;
    /// let rows = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
    /// let version = store.write("numbers", rows, &Default::default())?;
    /// assert_eq!((version.version.0, version.rows), (0, 3));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the path, the sort order or an array is not sound.
    fn write<'a>(&self, path: &str, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<Self::Version> {
        Ok(Self::numbered(self.table(path).write(frame, options)?))
    }

    /// Makes a version of the table at `path` with the rows of `frame` after the existing ones. See [`Table::append`].
    ///
    /// # Errors
    /// `NotFound` if there is no table, `SchemaMismatch` if the columns are not its own.
    fn append<'a>(&self, path: &str, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<Self::Version> {
        Ok(Self::numbered(self.table(path).append(frame, options)?))
    }

    /// Makes a version in which the rows of `frame` replace all rows of the range that they cover. See [`Table::replace`].
    ///
    /// # Errors
    /// `NotFound` if there is no table, `InvalidArgument` if it has no sort order, `SchemaMismatch` if the columns are not its
    /// own.
    fn replace<'a>(&self, path: &str, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<Self::Version> {
        Ok(Self::numbered(self.table(path).replace(frame, options)?))
    }

    /// Reads a version of the table at `path`, lazily. See [`Table::read`].
    ///
    /// # Errors
    /// `NotFound` if there is no such table or version.
    fn read(&self, path: &str, options: &ReadOptions) -> Result<Scan> {
        self.table(path).read(options)
    }

    /// Writes many tables in one commit: all of them or none. Small ones share blocks.
    ///
    /// # Errors
    /// As [`Tables::write`], naming the path; `InvalidArgument` if a path is given twice.
    fn write_many(&self, frames: Vec<(String, Frame<'_>)>, options: &WriteOptions) -> Result<Vec<Self::Version>> {
        write_all(self, VersionKind::Write, frames, options)
    }

    /// The same, except that a table that cannot be written does not stop the others: returns a result for each frame;
    /// those that succeed are in one commit. Not in a transaction.
    ///
    /// # Errors
    /// What fails the whole call: storage, cancellation, a path given twice. Then nothing was written.
    fn write_each(
        &self,
        frames: Vec<(String, Frame<'_>)>,
        options: &WriteOptions,
    ) -> Result<Vec<Result<Self::Version>>> {
        write_each(self, VersionKind::Write, frames, options, OnItemError::Collect(BTreeMap::new()))
    }

    /// Appends to many tables in one commit: all of them or none.
    ///
    /// # Errors
    /// As [`Tables::append`], naming the path; `InvalidArgument` if a path is given twice.
    fn append_many(&self, frames: Vec<(String, Frame<'_>)>, options: &WriteOptions) -> Result<Vec<Self::Version>> {
        write_all(self, VersionKind::Append, frames, options)
    }

    /// The same, with a result for each frame: see [`Tables::write_each`].
    ///
    /// # Errors
    /// As [`Tables::write_each`].
    fn append_each(
        &self,
        frames: Vec<(String, Frame<'_>)>,
        options: &WriteOptions,
    ) -> Result<Vec<Result<Self::Version>>> {
        write_each(self, VersionKind::Append, frames, options, OnItemError::Collect(BTreeMap::new()))
    }

    /// Reads many tables as of the same instant.
    ///
    /// # Errors
    /// As [`Tables::read`], of the first that cannot be read.
    fn read_many(&self, paths: &[String], options: &ReadOptions) -> Result<Vec<Scan>> {
        read_tables(&self.place(), paths, options, false)?.into_iter().collect()
    }

    /// The same, with a result for each path: a table that cannot be read does not stop the others.
    ///
    /// # Errors
    /// What fails the whole call, such as storage that does not answer.
    fn read_each(&self, paths: &[String], options: &ReadOptions) -> Result<Vec<Result<Scan>>> {
        read_tables(&self.place(), paths, options, true)
    }

    /// A table, or all tables that `pattern` matches, as of one instant: to be read as one, any number of times.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{DatasetOptions, Filter, ScanOptions, Tables};
    /// # let store = drumlin::Store::memory()?;
    /// # let rows = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef)]).unwrap();
    /// for name in ["prices/AAPL", "prices/MSFT"] {
    ///     store.write(name, rows.clone(), &Default::default())?;
    /// }
    /// let options = DatasetOptions { path_columns: vec!["symbol".into()], ..Default::default() };
    /// let prices = store.scan("prices/*", &options)?;
    /// let filter = Some(Filter::parse("symbol = 'MSFT' and n > 1")?);
    /// assert_eq!(prices.count_rows(&ScanOptions { filter, ..Default::default() })?, 1);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if no table matches, or one that does lacks the version; `SchemaMismatch` if a column of two tables has types
    /// that no other holds; `InvalidArgument` if the columns made of names do not fit the pattern.
    fn scan(&self, pattern: impl IntoPattern, options: &DatasetOptions) -> Result<Dataset> {
        Dataset::new(self.place(), pattern, options)
    }

    /// Drops the tables that `paths` (paths or patterns) name: one commit for all of them, all or none. Costs no I/O
    /// except that commit. A path named twice counts once. Snapshots keep what they hold.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::Tables;
    /// # let store = drumlin::Store::memory()?;
    /// # let rows = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    /// for name in ["a/x", "a/y", "b"] {
    ///     store.write(name, rows.clone(), &Default::default())?;
    /// }
    /// assert_eq!(store.drop("a/**")?.paths, ["a/x", "a/y"]);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, naming every path and pattern that names no table.
    fn drop(&self, paths: impl IntoPatterns) -> Result<DropReport> {
        self.drop_with(paths, Missing::Refuse)
    }

    /// The same; whether what names no table is an error is for `missing` to say.
    ///
    /// # Errors
    /// As [`Tables::drop`], unless such names are to be ignored.
    fn drop_with(&self, paths: impl IntoPatterns, missing: Missing) -> Result<DropReport> {
        self.place().drop_tables(paths.into_patterns()?, missing)
    }

    /// Makes old versions the newest again: each table that `pattern` matches gets a version with the rows, schema and metadata
    /// that it had `as_of` then, in one commit for all, and without any data being written; the versions in between stay. Of a
    /// snapshot, tables that were dropped since come back. Tables made after a time that is given are left alone. Returns the
    /// paths of those that were restored. O(row groups) of those tables.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{AsOf, Tables, Version};
    /// # let store = drumlin::Store::memory()?;
    /// # let rows = |n| RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![n])) as ArrayRef)]).unwrap();
    /// store.write("t", rows(1), &Default::default())?;
    /// store.write("t", rows(2), &Default::default())?;
    /// store.restore("t", &AsOf::Version(Version(0)))?;
    /// assert_eq!(store.read("t", &Default::default())?.collect()?, [rows(1)]);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if no table matches, or one that does lacks the version; `InvalidArgument` if a path holds another table by
    /// now, of another order or key, or if a time falls between two versions of a table with a key that had rows written
    /// then; in a transaction `Conflict` if it has written rows by key itself.
    fn restore(&self, pattern: impl IntoPattern, as_of: &AsOf) -> Result<Vec<String>> {
        self.place().restore(pattern.into_pattern()?, as_of)
    }

    /// Copies in one commit, without any data being written: the copies share the row groups, and from then on each is
    /// changed and vacuumed by itself. If `from` is a path, the node there and all below it: payloads, retention, life
    /// conditions, and tables with all their versions. If it is a pattern, the tables that match; then `to` has as many parts
    /// that are no plain names, and what `from` matches there takes their places, in order. With an `as_of`, only tables are
    /// copied, and of each that one version. Where a table is to be replaced ([`Existing::Replace`]), it gets a version with the
    /// rows of the other's newest, so that a branch can come back. O(nodes + row groups).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{AsOf, Existing, Tables};
    /// # let store = drumlin::Store::memory()?;
    /// # let rows = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    /// store.write("main/prices", rows.clone(), &Default::default())?;
    /// store.copy("main", "branches/try", &AsOf::Newest, Existing::Refuse)?;
    /// store.append("branches/try/prices", rows, &Default::default())?;
    /// assert_eq!(store.table("main/prices").versions()?.len(), 1);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is nothing at `from`; `AlreadyExists` if something is in the place of what is copied;
    /// `InvalidArgument` if one path lies below the other, the patterns do not fit, or the life of a node depends on one
    /// outside of `from`; in a transaction `Conflict` if it has written rows by key itself.
    fn copy(&self, from: &str, to: &str, as_of: &AsOf, existing: Existing) -> Result<CopyReport> {
        self.place().copy(from, to, as_of, existing)
    }

    /// Moves as [`Tables::copy`] copies, in one commit: tables stay the same, with their versions, snapshots and rows in
    /// memory, and are found at other paths; a snapshot shows them there, and where they were. The retention that was in force for them is made explicit where the new place
    /// has another. A table that replaces another goes to the trash. O(nodes) moved.
    ///
    /// # Errors
    /// As [`Tables::copy`]; `Conflict` only where something is replaced.
    fn relocate(&self, from: &str, to: &str, existing: Existing) -> Result<CopyReport> {
        self.place().relocate(from, to, existing)
    }

    /// The versions of the tables that match `pattern`, the newest first, at most `limit`: what made them, how many rows
    /// they added and removed, who wrote them and what they said. O(versions · log versions) of those tables.
    ///
    /// # Errors
    /// `InvalidArgument` if `pattern` is not valid.
    fn history(&self, pattern: impl IntoPattern, limit: Option<usize>) -> Result<Vec<(String, VersionInfo)>> {
        self.place().history(pattern, limit)
    }

    /// Deletes versions of tables, all of them in one commit or none. If the newest version is deleted, the one before it is
    /// the newest again. What snapshots hold stays readable through them.
    ///
    /// # Errors
    /// `NotFound`, naming every path and version that does not exist, unless these are to be ignored. `InvalidArgument` for
    /// an empty list, a path given twice, and all versions of a table.
    fn delete_versions(&self, versions: &[(String, Vec<Version>)], missing: Missing) -> Result<VersionsReport> {
        let checked = check_versions(versions)?;
        match self.place() {
            Place::Store(store) => store.delete_versions_checked(&checked, missing),
            Place::Transaction(transaction) => transaction.change_tables(|store, open| {
                let state = open.draft.state();
                let mut reads = Footprint::default();
                for (path, _) in &checked {
                    let table = state.table_id_at(path);
                    reads = reads.with(Read::Binding(path.clone()));
                    reads.reads.extend(table.into_iter().flat_map(|table| [Read::Rows(table), Read::Versions(table)]));
                }
                // In a table with a key, what is deleted must lie in row groups.
                let tables = checked.iter().filter_map(|(path, _)| state.table_id_at(path)).collect();
                open.with_rows_in_groups(store, &tables, MemoryScope::Numbered, |open| {
                    let state = open.draft.state();
                    let (effects, mut report) = delete_versions(state, checked.clone(), missing)?;
                    let before = bytes_deleted_from(state, &effects)?;
                    open.apply(reads, effects.clone(), None)?;
                    report.bytes = before.saturating_sub(bytes_deleted_from(open.draft.state(), &effects)?);
                    Ok(report)
                })
            }),
        }
    }
}

impl Tables for Store {
    type Version = VersionInfo;

    fn place(&self) -> Place {
        Place::Store(self.clone())
    }

    fn numbered(version: Option<VersionInfo>) -> VersionInfo {
        version.expect("a store numbers versions at once")
    }
}

impl Tables for Transaction {
    type Version = ();

    fn place(&self) -> Place {
        Place::Transaction(self.clone())
    }

    fn numbered(_: Option<VersionInfo>) {}
}

/// Returns versions where they are numbered at once.
impl Tables for Place {
    type Version = Option<VersionInfo>;

    fn place(&self) -> Place {
        self.clone()
    }

    fn numbered(version: Option<VersionInfo>) -> Option<VersionInfo> {
        version
    }
}

fn write_all<T: Tables + ?Sized>(
    tables: &T,
    kind: VersionKind,
    frames: Vec<(String, Frame<'_>)>,
    options: &WriteOptions,
) -> Result<Vec<T::Version>> {
    write_each(tables, kind, frames, options, OnItemError::Refuse)?.into_iter().collect()
}

fn write_each<T: Tables + ?Sized>(
    tables: &T,
    kind: VersionKind,
    frames: Vec<(String, Frame<'_>)>,
    options: &WriteOptions,
    on_error: OnItemError,
) -> Result<Vec<Result<T::Version>>> {
    let written = tables.place().write_frames(kind, frames, options, on_error)?;
    Ok(written.into_iter().map(|version| version.map(T::numbered)).collect())
}

/// Reads many tables; with `each` a result for each path, else the first error is the call's.
fn read_tables(place: &Place, paths: &[String], options: &ReadOptions, each: bool) -> Result<Vec<Result<Scan>>> {
    let tables: Vec<Table> = paths.iter().map(|path| Table::new(place.clone(), path.clone())).collect();
    let reads = |state: &State| {
        let reads = tables.iter().map(|table| table.reads_rows(state, &options.as_of));
        // An invalid path fails when its table is read.
        Ok(reads.filter_map(Result::ok).flatten().collect())
    };
    place.read(reads, |state, pin| {
        let state = &*place.store().at_one_instant(state);
        let mut scans = Vec::with_capacity(tables.len());
        for table in &tables {
            match table.scan(state, pin, options) {
                Err(e) if !each || !e.kind().is_of_item() || e.kind() == ErrorKind::SnapshotExpired => return Err(e),
                scan => scans.push(scan),
            }
        }
        let store = place.store();
        if paths.len() > 1 && store.storage().is_remote() {
            // All small reads are done with a few requests, in parallel.
            let views = scans.iter().flatten().map(Scan::view);
            let seen = views.flat_map(|View { table, read_point, .. }| {
                table.groups.iter().filter(|group| table.visible(group, read_point.version) != Rows::None)
            });
            let addresses = seen.flat_map(|group| group.addresses()).copied();
            store.reader().warm(&store.env().pool, addresses, store.options().cache_bytes / 2)?;
        }
        Ok(scans)
    })
}
