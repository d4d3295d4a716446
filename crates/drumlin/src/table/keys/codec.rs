//! Encodes rows of a keyed table as keys and bytes.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};

use crate::base::{Error, Result};
use crate::memtable::{Keys, RowBytes};
use crate::table::memory::row_bytes::{columns_at, split_columns};
use crate::table::schema::extension::check_extension;
use crate::table::{KeyCodec, RowCodec, conform};

/// Turns rows of a keyed table into keys and bytes, and back.
#[derive(Clone, Debug)]
pub struct TableCodec {
    schema: SchemaRef,
    key_schema: SchemaRef,
    /// That of answers to look-ups: a missing key has no values, so all are nullable.
    answer_schema: SchemaRef,
    /// The places of the key columns, in the key's order.
    key_places: Vec<usize>,
    /// The places of the other columns.
    other_places: Vec<usize>,
    pub(in crate::table) keys: KeyCodec,
    rows: RowCodec,
}

impl TableCodec {
    /// For rows of `schema`, whose key columns are called `key`.
    pub fn new(schema: &SchemaRef, key: &[String]) -> Result<Self> {
        let (key_places, other_places) = split_columns(schema, key)?;
        let types = other_places.iter().map(|at| schema.field(*at).data_type().clone());
        let rows = RowCodec::new(types)?;
        let key_schema = Arc::new(schema.project(&key_places)?);
        let answer_schema = nullable(schema, &(0..schema.fields().len()).collect::<Vec<_>>());
        let (schema, keys) = (schema.clone(), KeyCodec::new(schema, key)?);
        Ok(Self { schema, key_schema, answer_schema, key_places, other_places, keys, rows })
    }

    /// The schema of an answer to a look-up that has these columns of the table, or all.
    pub(in crate::table) fn answer_schema(&self, columns: Option<&[usize]>) -> SchemaRef {
        columns.map_or_else(|| self.answer_schema.clone(), |columns| nullable(&self.schema, columns))
    }

    /// `InvalidArgument` if a column has a type that could not be decoded again.
    pub fn check(&self) -> Result<()> {
        self.keys.check()?;
        self.rows.check()
    }

    /// The schema of whole rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The schema of the key columns, in the key's order.
    pub fn key_schema(&self) -> &SchemaRef {
        &self.key_schema
    }

    /// The places of the key columns in the schema, in the key's order.
    pub fn key_places(&self) -> &[usize] {
        &self.key_places
    }

    /// How keys are encoded.
    pub fn key_codec(&self) -> &KeyCodec {
        &self.keys
    }

    /// The keys of a batch that has the key columns, perhaps among others, and those columns in the table's types.
    pub fn keys_of(&self, batch: &RecordBatch) -> Result<(Keys, Vec<ArrayRef>)> {
        // Usually they already have the table's types.
        let own = |field: &FieldRef| {
            let (at, came) = batch.schema_ref().column_with_name(field.name())?;
            let same = came.data_type() == field.data_type() && check_extension(came, field).is_ok();
            same.then(|| batch.column(at).clone())
        };
        if let Some(columns) = self.key_schema.fields().iter().map(own).collect::<Option<Vec<ArrayRef>>>() {
            return Ok((self.keys.encode(&columns)?, columns));
        }
        let names: Vec<usize> = self
            .key_schema
            .fields()
            .iter()
            .map(|field| {
                batch.schema().index_of(field.name()).map_err(|_| {
                    Error::invalid(format!("the key column '{}' is missing from the given columns", field.name()))
                })
            })
            .collect::<Result<_>>()?;
        let own: Schema = Schema::clone(&self.key_schema);
        let nullable = own.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect::<Vec<_>>();
        let columns = conform(&batch.project(&names)?, &Arc::new(Schema::new(nullable)))?.columns().to_vec();
        Ok((self.keys.encode(&columns)?, columns))
    }

    /// Keys and rows of a batch of the table's schema.
    pub fn encode(&self, batch: &RecordBatch) -> Result<(Keys, RowBytes)> {
        let keys = self.keys.encode(&columns_at(batch, &self.key_places))?;
        let rows = self.rows.encode(batch.num_rows(), &columns_at(batch, &self.other_places))?;
        Ok((keys, rows))
    }

    /// Columns of rows, by their places in the schema.
    pub fn decode(&self, keys: &Keys, rows: &RowBytes, columns: &[usize]) -> Result<Vec<ArrayRef>> {
        let key_columns = match columns.iter().any(|column| self.is_key(*column)) {
            true => self.keys.decode(keys.iter())?,
            false => Vec::new(),
        };
        let column = |column: &usize| match self.key_position(*column) {
            Some(at) => Ok(key_columns[at].clone()),
            None => self.decode_others(rows, std::slice::from_ref(column)).map(|mut columns| columns.remove(0)),
        };
        columns.iter().map(column).collect()
    }

    /// Columns other than the key, of rows.
    pub fn decode_others(&self, rows: &RowBytes, columns: &[usize]) -> Result<Vec<ArrayRef>> {
        let place = |column: &usize| self.other_places.iter().position(|at| at == column).expect("not of the key");
        self.rows.decode(rows, &columns.iter().map(place).collect::<Vec<_>>())
    }

    /// Whether a column belongs to the key.
    pub fn is_key(&self, column: usize) -> bool {
        self.key_places.contains(&column)
    }

    /// A column's place in the key.
    pub(in crate::table) fn key_position(&self, column: usize) -> Option<usize> {
        self.key_places.iter().position(|at| *at == column)
    }
}

/// These columns of a schema, all of them nullable.
fn nullable(schema: &SchemaRef, columns: &[usize]) -> SchemaRef {
    let field = |column: &usize| -> FieldRef {
        let field = schema.fields()[*column].clone();
        if field.is_nullable() { field } else { Arc::new(Field::clone(&field).with_nullable(true)) }
    };
    let fields: Vec<FieldRef> = columns.iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
