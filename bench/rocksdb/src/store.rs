//! Levels (b) and (c): a keyed table of a Drumlin store in memory, written by `upsert` and looked up as bytes or as Arrow.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use drumlin::memtable::RowBytes;
use drumlin::store::{AsOf, LookupOptions, Options, ReadOptions, Table, TableOptions, TableView, WriteOptions};
use drumlin::table::{Lookup, RowPlace};
use drumlin::{Store, Tables};

use crate::Result;
use crate::data::{Packed, Scanned, Tally, VALUE_BYTES};
use crate::side::{Reader, Side, Writer};

const TABLE: &str = "t";
const KEY: &str = "k";
const VALUE: &str = "v";

/// A store with one table, all of whose rows stay in memory.
#[derive(Clone)]
pub struct StoreSide {
    table: Table,
    schema: SchemaRef,
    key_schema: SchemaRef,
}

/// The same, with one view for all look-ups of a reader, which does not see later writes.
pub struct ViewSide(pub StoreSide);

/// The same, read as Arrow.
pub struct ArrowSide(pub StoreSide);

fn binary(values: Packed<'_>) -> ArrayRef {
    Arc::new(BinaryArray::from_iter_values(values.iter()))
}

impl StoreSide {
    /// An empty store.
    pub fn open() -> Result<Self> {
        const EVER: u64 = 1 << 40;
        let options =
            Options { memtable_bytes: 0, checkpoint_log_bytes: 0, row_write_bytes: EVER, ..Options::default() };
        let store = Store::open_with("memory://", options)?;
        let field = |name: &str| Field::new(name, DataType::Binary, false);
        let schema = Arc::new(Schema::new(vec![field(KEY), field(VALUE)]));
        let key_schema = Arc::new(Schema::new(vec![field(KEY)]));
        let table = store.table(TABLE);
        table.create(schema.clone(), TableOptions { key: vec![KEY.into()], ..TableOptions::default() })?;
        Ok(Self { table, schema, key_schema })
    }

    fn question(&self, keys: Packed<'_>) -> Result<RecordBatch> {
        Ok(RecordBatch::try_new(self.key_schema.clone(), vec![binary(keys)])?)
    }

    fn view(&self) -> Result<TableView> {
        Ok(self.table.view(&AsOf::Newest)?)
    }
}

impl Side for StoreSide {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(StoreWriter { side: self }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(BytesReader { side: self, view: None, places: Vec::new(), rows: RowBytes::default() }))
    }

    fn scan(&self) -> Result<Option<Scanned>> {
        Ok(None)
    }

    fn bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.table.stat()?.memory_bytes))
    }

    fn check_in_memory(&self, rows: usize) -> Result<()> {
        let stat = self.table.stat()?;
        match stat.row_groups == 0 && stat.memory_keys == rows as u64 {
            true => Ok(()),
            false => {
                Err(format!("the store has {} row groups, {} rows in memory", stat.row_groups, stat.memory_keys).into())
            }
        }
    }
}

impl Side for ViewSide {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        self.0.writer()
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        let view = Some(self.0.view()?);
        Ok(Box::new(BytesReader { side: &self.0, view, places: Vec::new(), rows: RowBytes::default() }))
    }

    fn scan(&self) -> Result<Option<Scanned>> {
        Ok(None)
    }

    fn bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

impl Side for ArrowSide {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        self.0.writer()
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(ArrowReader { side: &self.0, found: None }))
    }

    fn scan(&self) -> Result<Option<Scanned>> {
        let mut scanned = Scanned::default();
        for batch in self.0.table.read(&ReadOptions::default())? {
            let batch = batch?;
            batch.column(1).as_binary::<i32>().iter().flatten().for_each(|value| scanned.add(value));
        }
        Ok(Some(scanned))
    }

    fn bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

struct StoreWriter<'a> {
    side: &'a StoreSide,
}

impl Writer for StoreWriter<'_> {
    fn write(&mut self, keys: Packed<'_>, values: Packed<'_>) -> Result<()> {
        let rows = RecordBatch::try_new(self.side.schema.clone(), vec![binary(keys), binary(values)])?;
        self.side.table.upsert(rows, &WriteOptions::default())?;
        Ok(())
    }
}

struct BytesReader<'a> {
    side: &'a StoreSide,
    /// `None`: the newest view for each look-up.
    view: Option<TableView>,
    places: Vec<RowPlace>,
    rows: RowBytes,
}

/// The value in a row: its only column besides the key, and so at its end.
fn value_of(row: &[u8]) -> &[u8] {
    &row[row.len() - VALUE_BYTES..]
}

impl Reader for BytesReader<'_> {
    fn get_many(&mut self, keys: Packed<'_>) -> Result<Tally> {
        let newest = if self.view.is_none() { Some(self.side.view()?) } else { None };
        let view = self.view.as_ref().or(newest.as_ref()).ok_or("a view, held or new")?;
        self.rows = RowBytes::default();
        self.places = view.locate(&view.encode_keys(&self.side.question(keys)?)?, &mut self.rows)?;
        let mut tally = Tally::default();
        (0..self.rows.len()).for_each(|row| tally.add(value_of(self.rows.get(row))));
        Ok(tally)
    }

    fn value(&self, at: usize) -> Option<&[u8]> {
        match self.places[at] {
            RowPlace::Memory(row) => Some(value_of(self.rows.get(row as usize))),
            _ => None,
        }
    }
}

struct ArrowReader<'a> {
    side: &'a StoreSide,
    found: Option<Lookup>,
}

fn values_of(lookup: &Lookup) -> &BinaryArray {
    lookup.rows.column(1).as_binary()
}

impl Reader for ArrowReader<'_> {
    fn get_many(&mut self, keys: Packed<'_>) -> Result<Tally> {
        let lookup = self.side.table.get_many(&self.side.question(keys)?, &LookupOptions::default())?;
        let mut tally = Tally::default();
        values_of(&lookup).iter().flatten().for_each(|value| tally.add(value));
        self.found = Some(lookup);
        Ok(tally)
    }

    fn value(&self, at: usize) -> Option<&[u8]> {
        let lookup = self.found.as_ref()?;
        let values = values_of(lookup);
        (lookup.found.value(at) && values.is_valid(at)).then(|| values.value(at))
    }
}
