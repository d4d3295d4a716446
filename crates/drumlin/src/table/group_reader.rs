//! A row group, opened to be read: its directory is in memory, and its columns are decoded on request.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Schema};
use bytes::Bytes;

use super::column::repeated;
use super::columns::into_type;
use super::read_as::{Constants, NO_CONSTANTS, missing, missing_stats, same_stats};
use super::{RowGroup, StoredSchema, Table};
use crate::base::{Error, Result, Version};
use crate::block::{BlockReader, Column, Directory};
use crate::segment::{ColumnStats, Form, Segment, decode, decode_rows, measure};

/// An open row group.
pub(super) struct GroupReader<'a> {
    pub blocks: &'a BlockReader,
    pub group: &'a RowGroup,
    directory: Arc<Directory>,
    /// The schema that it was written with.
    own: &'a StoredSchema,
    /// The schema of the version that is read, in whose names columns are asked for.
    seen: &'a StoredSchema,
    /// Columns that its table lacks and that have one value.
    constants: &'a Constants,
}

/// Where a column comes from.
enum Source<'a> {
    /// From nowhere: it does not have a column of this name and type.
    Missing(&'a str, &'a DataType),
    /// From a segment of the first type, to be cast to the second.
    Stored(Bytes, &'a DataType, &'a DataType),
}

impl<'a> GroupReader<'a> {
    /// Reads the directory of a row group of `table`, to be read as `version` calls its columns. `Corrupt` if it is not that of
    /// this row group.
    pub fn open(blocks: &'a BlockReader, table: &'a Table, version: Version, group: &'a RowGroup) -> Result<Self> {
        Self::with_schemas(blocks, &table.schemas[group.schema as usize], table.schema_of(version)?, group)
    }

    /// The same, of a table whose schema was `own` when it was written, read in the names of `seen`.
    pub fn with_schemas(
        blocks: &'a BlockReader,
        own: &'a StoredSchema,
        seen: &'a StoredSchema,
        group: &'a RowGroup,
    ) -> Result<Self> {
        let directory = blocks.directory(&group.address)?;
        if directory.columns.len() != own.0.fields().len() || directory.rows != group.rows {
            let block = group.address.block;
            return Err(Error::corrupt(format!("block {block}: the directory does not fit its row group")));
        }
        Ok(Self { blocks, group, directory, own, seen, constants: &NO_CONSTANTS })
    }

    /// The same, with columns that its table lacks and that have one value.
    pub fn with_constants(self, constants: &'a Constants) -> Self {
        Self { constants, ..self }
    }

    /// What the directory says of the column called `name`; `None` if it does not have that column.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.own.place_of(name, self.seen).map(|at| &self.directory.columns[at])
    }

    /// What the directory says of the values of a column of `schema`, in the type that it has there; `None` if nothing.
    pub fn stats(&self, schema: &Schema, index: usize) -> Option<ColumnStats> {
        let field = schema.field(index);
        match self.own.place_of(field.name(), self.seen) {
            Some(at) => same_stats(self.own.0.field(at).data_type(), field.data_type())
                .then(|| self.directory.columns[at].stats.clone()),
            None => match self.seen.default_of(field.name()) {
                Some(value) => into_type(value.ok()?, field.data_type()).ok().map(|value| measure(&value)),
                None => Some(missing_stats(field.name(), u64::from(self.group.rows), self.constants)),
            },
        }
    }

    /// The bytes of those of `columns` (positions in `schema`) that it has.
    pub fn bytes(&self, schema: &Schema, columns: impl IntoIterator<Item = usize>) -> u64 {
        let own = columns.into_iter().filter_map(|index| self.column(schema.field(index).name()));
        own.map(|column| column.bytes).sum()
    }

    /// The filter of its keys, if it has one.
    pub fn key_filter(&self) -> Result<Option<Bytes>> {
        self.blocks.filter(&self.group.address, &self.directory)
    }

    /// Decodes `columns` (positions in `schema`); columns that it does not have are constant or null.
    pub fn decode(&self, schema: &Schema, columns: &[usize], form: Form) -> Result<Vec<ArrayRef>> {
        let rows = self.group.rows as usize;
        self.each(schema, columns, |source| match source {
            Source::Missing(name, wanted) => self.missing(name, wanted, rows),
            Source::Stored(bytes, own, wanted) => {
                // Decimals of few digits are decoded to few bytes, whatever their type, and strings as they are kept.
                let keyed = matches!(wanted, DataType::Dictionary(..));
                let form = if own != wanted && (own.is_decimal() || keyed) { Form::Native } else { form };
                let array = decode(bytes, rows, own, form)?;
                match form == Form::Exact || own != wanted {
                    true => into_type(array, wanted).map_err(|e| misfit(own, wanted, e)),
                    false => Ok(array),
                }
            }
        })
    }

    /// The rows `picked`, ascending, of `columns`.
    pub fn pick(&self, schema: &Schema, columns: &[usize], picked: &[u32]) -> Result<Vec<ArrayRef>> {
        let rows = self.group.rows as usize;
        self.each(schema, columns, |source| match source {
            Source::Missing(name, wanted) => self.missing(name, wanted, picked.len()),
            Source::Stored(bytes, own, wanted) => {
                into_type(decode_rows(bytes, rows, own, picked)?, wanted).map_err(|e| misfit(own, wanted, e))
            }
        })
    }

    /// A column that it does not have: constant, or null.
    fn missing(&self, name: &str, wanted: &DataType, rows: usize) -> Result<ArrayRef> {
        match self.seen.default_of(name) {
            Some(value) => into_type(repeated(&value?, rows)?, wanted),
            None => missing(name, wanted, rows, self.constants),
        }
    }

    /// The segments of columns of its own schema, in one request.
    pub fn segments(&self, columns: &[usize]) -> Result<Vec<Bytes>> {
        self.blocks.segments(&self.group.address, &self.directory, columns)
    }

    /// The segment of a column, to be copied; `None` if it has no column of that type.
    pub fn segment(&self, schema: &Schema, index: usize) -> Result<Option<Segment>> {
        let field = schema.field(index);
        let at = self.own.place_of(field.name(), self.seen);
        let Some(at) = at.filter(|at| self.own.0.field(*at).data_type() == field.data_type()) else { return Ok(None) };
        let Column { stats, kept, .. } = self.column_at(at).clone();
        Ok(Some(Segment { bytes: self.segments(&[at])?.remove(0).to_vec(), stats, kept }))
    }

    /// What the directory says of a column of its own schema.
    pub fn column_at(&self, at: usize) -> &Column {
        &self.directory.columns[at]
    }

    /// Reads the segments of columns in one request, and makes an array of each.
    fn each(
        &self,
        schema: &Schema,
        columns: &[usize],
        make: impl Fn(Source<'_>) -> Result<ArrayRef>,
    ) -> Result<Vec<ArrayRef>> {
        let located: Vec<Option<usize>> =
            columns.iter().map(|&index| self.own.place_of(schema.field(index).name(), self.seen)).collect();
        let present: Vec<usize> = located.iter().flatten().copied().collect();
        let mut segments = self.segments(&present)?.into_iter();
        let array = |(located, &index): (&Option<usize>, &usize)| -> Result<ArrayRef> {
            let wanted = schema.field(index).data_type();
            let Some(at) = located else { return make(Source::Missing(schema.field(index).name(), wanted)) };
            let bytes = segments.next().expect("one for each present column");
            make(Source::Stored(bytes, self.own.0.field(*at).data_type(), wanted)).map_err(|e| {
                let (name, block) = (schema.field(index).name(), self.group.address.block);
                e.context(format!("block {block}, column '{name}' at offset {}", self.directory.columns[*at].offset))
            })
        };
        located.iter().zip(columns).map(array).collect()
    }
}

/// The error for a value that a wider type does not hold, such as a far year in nanoseconds.
fn misfit(own: &DataType, wanted: &DataType, error: Error) -> Error {
    Error::schema_mismatch(format!(
        "a value of type {own} does not fit {wanted}, which other rows of the column have; read them apart"
    ))
    .with_source(error.message())
}
