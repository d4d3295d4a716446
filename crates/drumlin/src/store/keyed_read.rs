//! Reading rows by key.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::read::ATTEMPTS;
use super::{AsOf, Store};
use crate::base::{Cancel, Error, ErrorKind, Result};
use crate::memtable::{Keys, RowBytes};
use crate::table::{Lookup, Place, Renew, Searcher, TableCodec, View};

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
    view: View,
    /// Where it is found again, unless it shows what nobody else can find.
    renew: Option<Renew>,
    codec: Arc<TableCodec>,
}

impl Store {
    /// The rows of a keyed table that have the keys in `keys`, a batch with the key columns, maybe among others; in the order
    /// of the question, a key as often as it is asked for.
    ///
    /// Searches memory in one pass, then only row groups that may hold what is left, and reads only the columns asked for.
    pub fn get_rows(&self, path: &str, keys: &RecordBatch, options: &LookupOptions) -> Result<Lookup> {
        let found = self.table_view(path, &options.as_of)?.get_many(keys, options.columns.as_deref(), &options.cancel);
        found.map_err(|e| match e.kind() {
            ErrorKind::Corrupt | ErrorKind::Internal | ErrorKind::SchemaMismatch => e.context(format!("'{path}'")),
            _ => e,
        })
    }

    /// A keyed table as it is now, or was.
    pub fn table_view(&self, path: &str, as_of: &AsOf) -> Result<TableView> {
        let (state, pin) = self.pinned_state()?;
        TableView::new(self.clone(), self.view_of(&state, &pin, path, as_of)?, self.renewal(), path)
    }
}

impl TableView {
    pub(super) fn new(store: Store, view: View, renew: Option<Renew>, path: &str) -> Result<Self> {
        let Some(key) = view.table.key() else {
            return Err(Error::invalid(format!("'{path}' has no key; make the table with one to look rows up by it")));
        };
        let record = view.table.record(view.sight.version)?;
        let codec = view.table.codec_of(&view.table.schemas[record.schema as usize].0, key)?;
        Ok(Self { store, view, renew, codec })
    }

    /// The schema of whole rows.
    pub fn schema(&self) -> &SchemaRef {
        self.codec.schema()
    }

    /// The schema of the key columns.
    pub fn key_schema(&self) -> &SchemaRef {
        self.codec.key_schema()
    }

    fn searcher<'a>(&'a self, view: &'a View, cancel: &'a Cancel) -> Searcher<'a> {
        let inner = &self.store.inner;
        let (reader, pool, table, codec) = (&*inner.reader, &inner.env.pool, &*view.table, &self.codec);
        Searcher { reader, pool, table, sight: view.sight, codec, cancel }
    }

    /// As [`Store::get_rows`].
    pub fn get_many(&self, keys: &RecordBatch, columns: Option<&[String]>, cancel: &Cancel) -> Result<Lookup> {
        let (keys, key_columns) = self.codec.keys_of(keys)?;
        let look_up = |view: &View| self.searcher(view, cancel).get_many(&keys, &key_columns, columns);
        let Some(renew) = &self.renew else { return look_up(&self.view) };
        // Another process may have reclaimed what this state refers to.
        let mut found = look_up(&self.view);
        for _ in 0..ATTEMPTS {
            match found {
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => found = look_up(&renew(&self.view)?),
                found => return found,
            }
        }
        found
    }

    /// Keys as the table encodes them, for [`TableView::locate`].
    pub fn encode_keys(&self, keys: &RecordBatch) -> Result<Keys> {
        Ok(self.codec.keys_of(keys)?.0)
    }

    /// Where the rows of `keys` lie. Rows that lie in memory are copied to `rows` as they are there, without making Arrow
    /// arrays of them.
    pub fn locate(&self, keys: &Keys, rows: &mut RowBytes) -> Result<Vec<Place>> {
        self.searcher(&self.view, &Cancel::default()).locate(keys, rows)
    }
}
