//! Reads rows by key.

use std::sync::{Arc, Weak};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parking_lot::Mutex;

use super::resolve::{newest, of_table};
use super::views::ATTEMPTS;
use crate::base::{Cancel, Error, ErrorKind, Result, Timestamp};
use crate::catalog::{Path, State};
use crate::memtable::{Keys, RowBytes};
use crate::store::parts::Pin;
use crate::store::{AsOf, Place, Store};
use crate::table;
use crate::table::{Lookup, Renew, RowPlace, Searcher, TableCodec, View, is_hidden, without_hidden};

/// How rows are looked up by key.
#[derive(Clone, Debug, Default)]
pub struct LookupOptions {
    /// Which version. Default: the newest, with the rows written since.
    pub as_of: AsOf,
    /// The columns, in the order wanted. Default: all.
    pub columns: Option<Vec<String>>,
    /// Stops the search. Default: never.
    pub cancel: Cancel,
}

/// A keyed table as it is at an instant: look-ups on it see no later writes, and need not find the table again.
pub struct TableView {
    place: Place,
    view: View,
    /// How it is found again, unless it shows what only its transaction can see.
    renew: Option<Renew>,
    codec: Arc<TableCodec>,
    path: Path,
}

impl TableView {
    pub(in crate::store) fn new(place: Place, view: View, renew: Option<Renew>, path: &str) -> Result<Self> {
        if !view.table.spec.keyed {
            return Err(Error::invalid(format!(
                "'{path}' has no key; create the table with one to look up rows by it"
            )));
        }
        let codec = view.table.codec_of(&view.schema()?, view.order()?)?;
        Ok(Self { place, view, renew, codec, path: Path::new(path)? })
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
        let store = self.place.store();
        let (reader, pool, table, codec) = (store.reader(), &store.env().pool, &*view.table, &self.codec);
        Searcher { reader, pool, table, read_point: view.read_point, codec, cancel }
    }

    /// As [`crate::store::Table::get_many`].
    ///
    /// # Errors
    /// As [`crate::store::Table::get_many`].
    pub fn get_many(&self, keys: &RecordBatch, columns: Option<&[String]>, cancel: &Cancel) -> Result<Lookup> {
        self.find_many(keys, columns, cancel).map_err(|e| of_table(&self.path, e))
    }

    fn find_many(&self, keys: &RecordBatch, columns: Option<&[String]>, cancel: &Cancel) -> Result<Lookup> {
        let (keys, key_columns) = self.codec.keys_of(keys)?;
        self.note(&keys)?;
        let own = self.codec.schema();
        let shown = || without_hidden(own).fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        let named = own.fields().iter().any(|field| is_hidden(field)).then(shown);
        let columns = columns.or(named.as_deref());
        let look_up = |view: &View| {
            let found = self.searcher(view, cancel).get_many(&keys, &key_columns, columns)?;
            self.note_expiry(view, found.until)?;
            Ok(found)
        };
        let Some(renew) = &self.renew else { return look_up(&self.view) };
        // Another process may have reclaimed blocks that this state refers to.
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
    ///
    /// # Errors
    /// `SchemaMismatch` if the key columns are not the table's.
    pub fn encode_keys(&self, keys: &RecordBatch) -> Result<Keys> {
        Ok(self.codec.keys_of(keys).map_err(|e| of_table(&self.path, e))?.0)
    }

    /// Records in a transaction which keys are looked up.
    fn note(&self, keys: &Keys) -> Result<()> {
        match &self.place {
            Place::Store(_) => Ok(()),
            Place::Transaction(transaction) => transaction.note_keys(self.view.table.id, keys),
        }
    }

    /// Records in a transaction when the first row expires that was looked up, if it is the newest that is seen: what was is past.
    fn note_expiry(&self, view: &View, until: Option<Timestamp>) -> Result<()> {
        let newest = view.read_point.since && view.time.is_none();
        match (&self.place, until) {
            (Place::Transaction(transaction), Some(until)) if newest => {
                transaction.note_expiry(view.table.id, view.read_point.instant, until)
            }
            _ => Ok(()),
        }
    }

    /// Where the rows of `keys` lie. Rows that lie in memory are copied to `rows` in that form, without making Arrow
    /// arrays.
    ///
    /// # Errors
    /// `Corrupt`, or `Unavailable` if storage fails; `SnapshotExpired` if blocks were reclaimed.
    pub fn locate(&self, keys: &Keys, rows: &mut RowBytes) -> Result<Vec<RowPlace>> {
        self.note(keys)?;
        let cancel = Cancel::default();
        let found = self.searcher(&self.view, &cancel).locate_until(keys, rows);
        let (places, until) = found.map_err(|e| of_table(&self.path, e))?;
        self.note_expiry(&self.view, until)?;
        Ok(places)
    }
}

/// What the last look-up through a handle found of its table. As long as the state is the newest, the next one need not find the
/// table again. Nothing is kept in memory by it.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct FoundTable(Arc<Mutex<Option<CachedTable>>>);

#[derive(Debug)]
struct CachedTable {
    state: Weak<State>,
    table: Weak<table::TableState>,
    codec: Weak<TableCodec>,
    path: Path,
}

impl FoundTable {
    /// A view of the table in `state`, if it was found in that.
    pub fn view(&self, store: &Store, state: &Arc<State>, pin: &Arc<Pin>) -> Option<TableView> {
        let found = self.0.lock();
        let found = found.as_ref().filter(|found| std::ptr::eq(found.state.as_ptr(), Arc::as_ptr(state)))?;
        let (table, codec) = (found.table.upgrade()?, found.codec.upgrade()?);
        let read_point = newest(store, state, &table);
        let view = View { table, read_point, time: None, pin: Some(pin.clone()) };
        let place = Place::Store(store.clone());
        Some(TableView { place, view, renew: store.renewal(), codec, path: found.path.clone() })
    }

    /// Notes what was found in `state`.
    pub fn note(&self, state: &Arc<State>, view: &TableView) {
        let (table, codec) = (Arc::downgrade(&view.view.table), Arc::downgrade(&view.codec));
        let path = view.path.clone();
        *self.0.lock() = Some(CachedTable { state: Arc::downgrade(state), table, codec, path });
    }
}
