//! Frames: the rows of a call, and how they are to be written. What is done with them is *frames.rs*; here tables are created.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, RecordBatch, RecordBatchReader, StructArray};
use arrow::datatypes::{Schema, SchemaRef};

use crate::base::{Error, Pool, Result, Task};
use crate::catalog::{Effect, Path, State};
use crate::filter::column_meant;
use crate::segment::Compression;
use crate::store::commit::table_changes::TableChanges;
use crate::table::{RowsSchema, SchemaMode, TableChange, TableCodec, TableSpec, VersionKind, check_key, checked_parts};

/// Rows to be written: a schema, and batches that have it.
///
/// Arrays that another library made are checked when they are pulled, before anything else looks at them.
pub struct Frame<'a> {
    schema: SchemaRef,
    rows: RowSource<'a>,
}

/// Where rows come from.
enum RowSource<'a> {
    /// Made by this process's Arrow, which checks them.
    Checked(Box<dyn Iterator<Item = Result<RecordBatch>> + 'a>),
    /// Received over the C interface, in memory of another library: structs with the schema's fields.
    Foreign(Box<dyn Iterator<Item = Result<ArrayData>> + 'a>),
}

impl<'a> Frame<'a> {
    /// A frame from batches as they come; they are pulled once, on the calling thread.
    pub fn new(schema: SchemaRef, batches: impl Iterator<Item = Result<RecordBatch>> + 'a) -> Self {
        Self { schema, rows: RowSource::Checked(Box::new(batches)) }
    }

    /// A frame from arrays that another library made, as they come over Arrow's C interface: structs with the fields of
    /// `schema`, each a batch. Arrays that break Arrow's rules are refused with `InvalidArgument`.
    pub fn from_foreign(schema: SchemaRef, rows: impl Iterator<Item = Result<ArrayData>> + 'a) -> Self {
        Self { schema, rows: RowSource::Foreign(Box::new(rows)) }
    }

    /// The same frame, its arrays checked fully before use, as those that came over the C interface must be.
    #[must_use]
    pub fn foreign(self) -> Self {
        let RowSource::Checked(batches) = self.rows else { return self };
        let rows = batches.map(|batch| Ok(StructArray::from(batch?).into_data()));
        Self { schema: self.schema, rows: RowSource::Foreign(Box::new(rows)) }
    }

    /// A frame from an Arrow stream.
    pub fn from_reader(reader: impl RecordBatchReader + 'a) -> Self {
        Self::new(reader.schema(), reader.map(|batch| batch.map_err(Error::from)))
    }

    /// A frame from rows that serde serializes: structs with a field for each column, or maps. The types of columns are traced
    /// from the rows: whole numbers are of 64 bits, a field that is not always there may be null.
    ///
    /// ```
    /// use drumlin::prelude::*;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Trade {
    ///     sym: &'static str,
    ///     px: f64,
    ///     qty: Option<i64>,
    /// }
    ///
    /// let store = Store::memory()?;
    /// let trades = [Trade { sym: "AAPL", px: 187.5, qty: Some(3) }, Trade { sym: "MSFT", px: 410.0, qty: None }];
    /// let version = store.write("trades", Frame::from_rows(&trades)?, &WriteOptions::default())?;
    /// assert_eq!(version.rows, 2);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for rows that are no structs, that differ in their columns' types, and for none.
    #[cfg(feature = "serde")]
    pub fn from_rows<T: serde::Serialize>(rows: &[T]) -> Result<Frame<'static>> {
        use arrow::datatypes::FieldRef;
        use serde_arrow::schema::{SchemaLike, TracingOptions};

        let refused = |error: serde_arrow::Error| Error::invalid(format!("the rows are no table: {error}"));
        let options = TracingOptions::default().allow_null_fields(true).strings_as_large_utf8(false);
        let fields = Vec::<FieldRef>::from_samples(rows, options).map_err(refused)?;
        Ok(serde_arrow::to_record_batch(&fields, &rows).map_err(refused)?.into())
    }

    /// The batches, with every value checked; errors name `table`.
    pub(in crate::store) fn into_batches(
        self,
        pool: &Pool,
        table: &str,
    ) -> Box<dyn Iterator<Item = Result<RecordBatch>> + 'a> {
        match self.rows {
            RowSource::Checked(batches) => batches,
            RowSource::Foreign(rows) => {
                let (pool, schema, table) = (pool.clone(), self.schema, table.to_owned());
                let parts = rows.map(move |rows| Ok(checked_parts(pool.clone(), schema.clone(), rows?)));
                Box::new(parts.flat_map(move |parts| {
                    let (parts, failed) = match parts {
                        Ok(parts) => (Some(parts), None),
                        Err(e) => (None, Some(Err(e))),
                    };
                    let table = table.clone();
                    let named = move |part: Result<RecordBatch>| part.map_err(|e| e.context(&table));
                    parts.into_iter().flatten().map(named).chain(failed)
                }))
            }
        }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

/// Batches of one schema. Without any there is no schema: then the call that takes the frame fails.
impl From<Vec<RecordBatch>> for Frame<'_> {
    fn from(batches: Vec<RecordBatch>) -> Self {
        match batches.first() {
            Some(first) => Self::new(first.schema(), batches.into_iter().map(Ok)),
            None => {
                let none = "no batches, so no schema; use Frame::new(schema, batches)";
                Self::new(Arc::new(Schema::empty()), std::iter::once(Err(Error::invalid(none))))
            }
        }
    }
}

impl From<&[RecordBatch]> for Frame<'_> {
    fn from(batches: &[RecordBatch]) -> Self {
        batches.to_vec().into()
    }
}

impl From<&RecordBatch> for Frame<'_> {
    fn from(batch: &RecordBatch) -> Self {
        batch.clone().into()
    }
}

impl<'a> From<Box<dyn RecordBatchReader + 'a>> for Frame<'a> {
    fn from(reader: Box<dyn RecordBatchReader + 'a>) -> Self {
        Self::from_reader(reader)
    }
}

impl<'a> From<Box<dyn RecordBatchReader + Send + 'a>> for Frame<'a> {
    fn from(reader: Box<dyn RecordBatchReader + Send + 'a>) -> Self {
        Self::from_reader(reader)
    }
}

impl From<RecordBatch> for Frame<'_> {
    fn from(batch: RecordBatch) -> Self {
        Self::new(batch.schema(), std::iter::once(Ok(batch)))
    }
}

/// The properties of a new table.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// Columns by which rows are ordered when read. Default: none, rows keep insertion order.
    pub sort: Vec<String>,
    /// The key: columns in which no two rows are equal, and by which rows are ordered when read. Not together with
    /// `sort`. Default: none.
    pub key: Vec<String>,
    /// How its rows are compressed. Default: that of the store.
    pub compression: Option<Compression>,
}

/// How rows are written.
#[derive(Clone, Default)]
pub struct WriteOptions {
    /// A note kept with the version, as JSON text. Default: none.
    pub metadata: Option<String>,
    /// The sort order, if the table is new; must be the table's own if it is not. Default: the table's own, or none.
    pub sort: Option<Vec<String>>,
    /// Which columns rows may have that are brought into a table. A write that replaces all rows brings its own in any case.
    /// Default: those of the table.
    pub schema: SchemaMode,
    /// How the rows are compressed that a write brings which replaces all rows, and later ones of the table. Default: that of the table
    /// or, of a new one, of the store.
    pub compression: Option<Compression>,
    /// The columns of rows that a write by key returns in [`crate::RowsReport::returned`]; an empty list means all. The data is then
    /// held in memory. Default: none are returned.
    pub returning: Option<Vec<String>>,
    /// Progress in row groups, and cancellation.
    pub task: Task,
}

impl WriteOptions {
    /// `InvalidArgument` if rows are to be returned, by a call that does not.
    pub(in crate::store) fn check_returns_nothing(&self) -> Result<()> {
        match self.returning {
            None => Ok(()),
            Some(_) => Err(Error::invalid(
                "rows are returned by calls that write them by key: insert, upsert, increment, compare_and_set, delete_keys",
            )),
        }
    }
}

/// The effects that create an empty table.
pub(in crate::store) fn create_table(
    path: Path,
    schema: &SchemaRef,
    mut options: TableOptions,
    default: Option<Compression>,
) -> Result<impl FnMut(&State) -> Result<Vec<Effect>> + use<>> {
    let keyed = !options.key.is_empty();
    for name in options.key.iter_mut().chain(&mut options.sort) {
        *name = column_meant(name, schema).to_owned();
    }
    if keyed {
        if !options.sort.is_empty() {
            return Err(Error::invalid("give a key or a sort order, not both; rows are ordered by the key"));
        }
        check_key(&options.key, schema)?;
        // Checks that its rows can be held in memory.
        TableCodec::new(schema, &options.key)?.check()?;
        options.sort = options.key;
    }
    let schema = RowsSchema::whole(None, schema, &options.sort, options.compression, default)?.stored;
    Ok(move |state: &State| {
        if state.table_id_at(&path).is_some() {
            return Err(Error::already_exists(format!("'{path}' already holds a table")));
        }
        let change = TableChange { schema: Some(schema.clone()), ..TableChange::new(VersionKind::Create) };
        let spec = TableSpec { sort: options.sort.clone(), keyed };
        let mut changes = TableChanges::on(state, Vec::new());
        changes.push(None, &path, spec, change);
        Ok(changes.into_effects())
    })
}
