//! Reading one table: its rows, its schema, what is known of it.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::key::{IntoKey, key_batch};
use super::table::Table;
use crate::base::{Cancel, Error, Result, Version};
use crate::catalog::{Path, Read, State};
use crate::store::parts::Pin;
use crate::store::read::resolve::{resolve, table_at};
use crate::store::{AsOf, LookupOptions, Place, ReadOptions, TableOptions, TableStat, TableView, VersionInfo};
use crate::table::{
    ConstraintsInfo, Lookup, ReadAs, Renew, Scan, ScanOptions, StoredSchema, TimeToLive, VersionRecord, View,
    row_layout_stat, without_hidden,
};

impl Table {
    /// The rows of a keyed table that have the keys in `keys`, a batch with the key columns, maybe among others; in the
    /// order of `keys`, a row as often as its key is in there.
    ///
    /// Searches memory in one pass, then only row groups that may hold what is left, and reads only the requested columns.
    ///
    /// # Errors
    /// `NotFound` if there is no such table, version or column; `InvalidArgument` if it has no key.
    pub fn get_many(&self, keys: &RecordBatch, options: &LookupOptions) -> Result<Lookup> {
        self.view(&options.as_of)?.get_many(keys, options.columns.as_deref(), &options.cancel)
    }

    /// The row of a keyed table that has this key: a value, or a tuple of values for a key of many columns.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
    /// # use drumlin::arrow::datatypes::Int64Type;
    /// # use drumlin::prelude::*;
    /// # let store = Store::memory()?;
    /// # let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    /// # let rows = RecordBatch::try_from_iter([("id", column(vec![1, 2])), ("n", column(vec![10, 20]))]).unwrap();
    /// let users = store.table("users");
    /// users.create(rows.schema(), TableOptions { key: vec!["id".into()], ..Default::default() })?;
    /// users.upsert(rows, &WriteOptions::default())?;
    /// let row = users.get(2)?.expect("it was written");
    /// assert_eq!(row.column(1).as_primitive::<Int64Type>().value(0), 20);
    /// assert!(users.get(3)?.is_none());
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such table; `InvalidArgument` if it has no key, or a value is none of the key's.
    pub fn get(&self, key: impl IntoKey) -> Result<Option<RecordBatch>> {
        let view = self.view(&AsOf::Newest)?;
        let key = key_batch(view.key_schema(), key.into_key()).map_err(|e| e.context(format!("'{}'", self.path)))?;
        let found = view.get_many(&key, None, &Cancel::default())?;
        Ok(found.found.value(0).then_some(found.rows))
    }

    /// A keyed table as it is now, or was: look-ups on it see no later writes, and need not find the table again.
    ///
    /// # Errors
    /// As [`Table::get_many`].
    pub fn view(&self, as_of: &AsOf) -> Result<TableView> {
        if let (Place::Store(store), AsOf::Newest) = (&self.place, as_of) {
            let (state, pin) = store.pinned_with_views(|state| self.reads_rows(state, as_of))?;
            if let Some(view) = self.found.view(store, &state, &pin) {
                return Ok(view);
            }
            let (view, renew) = self.see(&state, &pin, as_of)?;
            let view = TableView::new(self.place.clone(), view, renew, &self.path)?;
            self.found.note(&state, &view);
            return Ok(view);
        }
        let (view, renew) =
            self.place.read(|state| self.reads_schema(state, as_of), |state, pin| self.see(state, pin, as_of))?;
        TableView::new(self.place.clone(), view, renew, &self.path)
    }

    /// Reads a version, lazily: batches of at most 122,880 rows (more where the row groups of a sorted table overlap), decoded
    /// ahead on the CPU pool.
    ///
    /// Later commits do not change what the scan returns, and its blocks are not reclaimed while it is open.
    ///
    /// If another process has reclaimed blocks, the scan continues with those that hold the same rows now;
    /// `SnapshotExpired` if the version is gone.
    ///
    /// # Errors
    /// `NotFound` if there is no such table, version or column.
    pub fn read(&self, options: &ReadOptions) -> Result<Scan> {
        self.place.read(|state| self.reads_rows(state, &options.as_of), |state, pin| self.scan(state, pin, options))
    }

    /// Reads a version into memory.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::Tables;
    /// # let store = drumlin::Store::memory()?;
    /// # let rows = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
    /// # store.write("numbers", rows, &Default::default())?;
    /// let batches = store.table("numbers").collect(&Default::default())?;
    /// assert_eq!(batches[0].num_rows(), 3);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::read`], and `Corrupt` or `Unavailable` if data cannot be read.
    pub fn collect(&self, options: &ReadOptions) -> Result<Vec<RecordBatch>> {
        self.read(options)?.collect()
    }

    /// Reads again what a scan showed ([`Scan::view`]): in a store also after another process reclaimed it; in a transaction
    /// as long as that has not changed tables.
    ///
    /// # Errors
    /// `SnapshotExpired` if the version is gone; `InvalidArgument` if the transaction has ended, or has begun more than
    /// `table_changes` changes of tables.
    pub fn read_again(&self, view: &View, options: &ScanOptions, table_changes: u64) -> Result<Scan> {
        self.scan_again(view, None, options, table_changes)
    }

    /// The same, in other columns than the table's own.
    pub(in crate::store) fn scan_again(
        &self,
        view: &View,
        read_as: Option<&ReadAs>,
        options: &ScanOptions,
        table_changes: u64,
    ) -> Result<Scan> {
        let store = self.place.store();
        let named = |e: Error| e.context(format!("'{}'", self.path));
        match &self.place {
            // Without a pin, the blocks that it shows may be gone.
            Place::Store(_) if view.pin.is_none() => {
                store.scan_view(store.find_again(view).map_err(named)?, read_as, options, store.renewal())
            }
            Place::Store(_) => store.scan_view(view.clone(), read_as, options, store.renewal()),
            Place::Transaction(transaction) => {
                if transaction.table_changes() != table_changes {
                    return Err(Error::invalid(format!(
                        "the transaction has written to tables since '{}' was read; read it again",
                        self.path
                    )));
                }
                let renew = if transaction.has_left(view.table.id)? { store.renewal() } else { None };
                store.scan_view(view.clone(), read_as, options, renew)
            }
        }
    }

    /// The version that `view`, which is of this table, shows; `None` if its transaction made it: versions are numbered at
    /// the commit.
    pub fn numbered<'a>(&self, view: &'a View) -> Option<&'a VersionRecord> {
        let record = view.table.version(view.read_point.version)?;
        match &self.place {
            Place::Transaction(transaction) if record.seq > transaction.seq() => None,
            Place::Store(_) | Place::Transaction(_) => Some(record),
        }
    }

    /// Whether it is in a store, not in a transaction.
    pub fn is_in_store(&self) -> bool {
        matches!(self.place, Place::Store(_))
    }

    /// How many changes of tables its transaction has begun; 0 in a store.
    pub fn table_changes(&self) -> u64 {
        match &self.place {
            Place::Store(_) => 0,
            Place::Transaction(transaction) => transaction.table_changes(),
        }
    }

    /// Fails if what its transaction wrote has been discarded.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check_not_aborted(&self) -> Result<()> {
        match &self.place {
            Place::Transaction(transaction) if transaction.is_aborted() => {
                Err(Error::invalid("the transaction has ended"))
            }
            _ => Ok(()),
        }
    }

    /// The schema of a version.
    ///
    /// # Errors
    /// `NotFound` if there is no such table or version.
    pub fn schema(&self, as_of: &AsOf) -> Result<SchemaRef> {
        Ok(without_hidden(&self.stored_schema(as_of)?.0))
    }

    /// What rows must be for the table to take them, and what they have in columns that they lack: see [`crate::Alter::AddConstraints`].
    ///
    /// # Errors
    /// `NotFound` if there is no such table or version.
    pub fn constraints(&self, as_of: &AsOf) -> Result<ConstraintsInfo> {
        self.stored_schema(as_of)?.constraints()
    }

    /// When the rows of a version expire; `None` if they do not. It is set and dropped by [`crate::Alter::SetTtl`] and
    /// [`crate::Alter::DropTtl`].
    ///
    /// # Errors
    /// `NotFound` if there is no such table or version.
    pub fn ttl(&self, as_of: &AsOf) -> Result<Option<TimeToLive>> {
        Ok(self.stored_schema(as_of)?.ttl())
    }

    fn stored_schema(&self, as_of: &AsOf) -> Result<StoredSchema> {
        let path = Path::new(&self.path)?;
        self.place.read(
            |state| self.reads_schema(state, as_of),
            |state, _| {
                let (table, seen) = resolve(state, &path, as_of)?;
                Ok(table.schema_of(seen.version)?.clone())
            },
        )
    }

    /// How its rows are ordered: the columns, by their newest names, and whether they are a key.
    ///
    /// # Errors
    /// `NotFound` if there is no table.
    pub fn order(&self) -> Result<TableOptions> {
        let path = Path::new(&self.path)?;
        self.place.look(
            || Read::Binding(path.clone()),
            |state| {
                let table = &table_at(state, &path)?;
                let columns = table.order().to_vec();
                Ok(match table.spec.keyed {
                    true => TableOptions { key: columns, ..TableOptions::default() },
                    false => TableOptions { sort: columns, ..TableOptions::default() },
                })
            },
        )
    }

    /// The versions, the oldest first.
    ///
    /// # Errors
    /// `NotFound` if there is no table.
    pub fn versions(&self) -> Result<Vec<VersionInfo>> {
        let path = Path::new(&self.path)?;
        self.place.read(
            |state| {
                let mut reads = self.reads_rows(state, &AsOf::Version(Version(0)))?;
                reads.push(Read::Snapshots);
                Ok(reads)
            },
            |state, _| {
                let table = &table_at(state, &path)?;
                let (store, holders) = (self.place.store(), state.holders_of(&path, table));
                table.versions.iter().map(|record| store.version_info(state, table, record, &holders)).collect()
            },
        )
    }

    /// Figures about it. Of a table with a layout, reads the directories of its row groups.
    ///
    /// # Errors
    /// `NotFound` if there is no table; `Corrupt` or `Unavailable` if a directory cannot be read.
    pub fn stat(&self) -> Result<TableStat> {
        let path = Path::new(&self.path)?;
        self.place.read(
            |state| self.reads_rows(state, &AsOf::Version(Version(0))),
            |state, _| {
                let table = &table_at(state, &path)?;
                let newest = table.newest().expect("every table has a version");
                let memtables = || table.parts.iter().map(|part| &part.rows().memtable);
                Ok(TableStat {
                    rows: self.place.store().newest_rows(state, table)?,
                    stored_rows: table.groups.iter().map(|group| u64::from(group.rows)).sum(),
                    versions: table.versions.len() as u64,
                    row_groups: table.groups.len() as u64,
                    bytes: table.bytes(),
                    index_bytes: table.indexes.addresses().map(|address| address.bytes()).sum(),
                    indexes: table.indexes.list.len() as u64,
                    columns: table.schemas[newest.schema as usize].0.fields().len() as u64,
                    sort: table.order().to_vec(),
                    keyed: table.spec.keyed,
                    memory_keys: memtables().map(|memtable| memtable.keys()).sum(),
                    memory_bytes: memtables().map(|memtable| memtable.bytes()).sum(),
                    layout: row_layout_stat(self.place.store().reader(), table)?,
                })
            },
        )
    }

    /// Scans it in `state` as `options` say.
    pub(in crate::store) fn scan(&self, state: &State, pin: &Arc<Pin>, options: &ReadOptions) -> Result<Scan> {
        let (view, renew) = self.see(state, pin, &options.as_of)?;
        let scan = ScanOptions { name: Some(self.path.clone()), ..options.scan() };
        let scan = self.place.store().scan_view(view, None, &scan, renew);
        scan.map_err(|e| e.context(format!("'{}'", self.path)))
    }

    /// What is seen of it in `state`, and how it is found again; what a transaction wrote only it can find.
    pub(in crate::store) fn see(&self, state: &State, pin: &Arc<Pin>, as_of: &AsOf) -> Result<(View, Option<Renew>)> {
        let store = self.place.store();
        let view = store.view_of(state, pin, &self.path, as_of)?;
        let found_again = match &self.place {
            Place::Store(_) => true,
            Place::Transaction(transaction) => transaction.has_left(view.table.id)?,
        };
        Ok((view, if found_again { store.renewal() } else { None }))
    }
}
