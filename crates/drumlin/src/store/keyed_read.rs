//! Reading rows by key.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::read::resolve;
use super::{AsOf, Pin, Store};
use crate::base::{Cancel, Error, Result};
use crate::catalog::{Path, State};
use crate::memtable::{Keys, RowBytes};
use crate::table::{Lookup, Place, Searcher, Sight, Table, TableCodec};

/// How rows are looked up by key.
#[derive(Clone, Debug, Default)]
pub struct LookupOptions {
    /// Which version. Default: the newest, with the rows written since.
    pub as_of: AsOf,
    /// The columns, in the order wanted. Default: all.
    pub columns: Option<Vec<String>>,
    /// Stops the search. Default: nothing does.
    pub cancel: Cancel,
}

/// A keyed table as it is at an instant: look-ups on it see no later writes, and need not find the table again.
pub struct TableView {
    store: Store,
    table: Arc<Table>,
    sight: Sight,
    codec: Arc<TableCodec>,
    _pin: Arc<Pin>,
}

impl Store {
    /// The rows of a keyed table that have the keys in `keys`, a batch with the key columns, maybe among others; in the order
    /// of the question, a key as often as it is asked for.
    ///
    /// Searches memory in one pass, then only row groups that may hold what is left, and reads only the columns asked for.
    pub fn get_rows(&self, path: &str, keys: &RecordBatch, options: &LookupOptions) -> Result<Lookup> {
        self.table_view(path, &options.as_of)?.get_many(keys, options.columns.as_deref(), &options.cancel)
    }

    /// A keyed table as it is now, or was.
    pub fn table_view(&self, path: &str, as_of: &AsOf) -> Result<TableView> {
        let (state, pin) = self.pinned_state()?;
        self.view(&state, pin, path, as_of)
    }

    pub(super) fn view(&self, state: &State, pin: Arc<Pin>, path: &str, as_of: &AsOf) -> Result<TableView> {
        let path = Path::new(path)?;
        let (table, sight) = resolve(state, &path, as_of)?;
        let Some(key) = table.key() else {
            return Err(Error::invalid(format!("'{path}' has no key; make the table with one to look rows up by it")));
        };
        let record = table.record(sight.version)?;
        let codec = table.codec_of(&table.schemas[record.schema as usize].0, key)?;
        Ok(TableView { store: self.clone(), table, sight, codec, _pin: pin })
    }
}

impl TableView {
    /// The schema of whole rows.
    pub fn schema(&self) -> &SchemaRef {
        self.codec.schema()
    }

    /// The schema of the key columns.
    pub fn key_schema(&self) -> &SchemaRef {
        self.codec.key_schema()
    }

    fn searcher<'a>(&'a self, cancel: &'a Cancel) -> Searcher<'a> {
        let inner = &self.store.inner;
        let (reader, pool, table, codec) = (&*inner.reader, &inner.env.pool, &*self.table, &self.codec);
        Searcher { reader, pool, table, sight: self.sight, codec, cancel }
    }

    /// As [`Store::get_rows`].
    pub fn get_many(&self, keys: &RecordBatch, columns: Option<&[String]>, cancel: &Cancel) -> Result<Lookup> {
        let (keys, key_columns) = self.codec.keys_of(keys)?;
        self.searcher(cancel).get_many(&keys, &key_columns, columns)
    }

    /// Keys as the table encodes them, for [`TableView::locate`].
    pub fn encode_keys(&self, keys: &RecordBatch) -> Result<Keys> {
        Ok(self.codec.keys_of(keys)?.0)
    }

    /// Where the rows of `keys` lie. Rows that lie in memory are copied to `rows` as they are there, without making Arrow
    /// arrays of them.
    pub fn locate(&self, keys: &Keys, rows: &mut RowBytes) -> Result<Vec<Place>> {
        self.searcher(&Cancel::default()).locate(keys, rows)
    }
}
