//! A row group, opened to be read: its directory is in memory, and its columns are decoded on request.

use std::sync::Arc;

use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::{DataType, Schema};
use bytes::Bytes;

use super::columns::into_type;
use super::{RowGroup, Table};
use crate::base::{Error, Result};
use crate::block::{BlockReader, Column, Directory};
use crate::segment::{Form, decode, decode_rows};

/// An open row group.
pub(super) struct GroupReader<'a> {
    pub blocks: &'a BlockReader,
    pub group: &'a RowGroup,
    directory: Arc<Directory>,
    /// The schema that it was written with.
    own: &'a Schema,
}

/// Where a column comes from.
enum Source<'a> {
    /// From nowhere: all null, of this type.
    Missing(&'a DataType),
    /// From a segment of the first type, to be cast to the second.
    Stored(Bytes, &'a DataType, &'a DataType),
}

impl<'a> GroupReader<'a> {
    /// Reads the directory of a row group of `table`. `Corrupt` if it is not that of this row group.
    pub fn open(blocks: &'a BlockReader, table: &'a Table, group: &'a RowGroup) -> Result<Self> {
        Self::with_schema(blocks, &table.schemas[group.schema as usize].0, group)
    }

    /// The same, of a table whose schema was `own` when it was written.
    pub fn with_schema(blocks: &'a BlockReader, own: &'a Schema, group: &'a RowGroup) -> Result<Self> {
        let directory = blocks.directory(&group.address)?;
        if directory.columns.len() != own.fields().len() || directory.rows != group.rows {
            let block = group.address.block;
            return Err(Error::corrupt(format!("block {block}: the directory does not fit its row group")));
        }
        Ok(Self { blocks, group, directory, own })
    }

    /// What the directory says of the column called `name`; `None` if there is none of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.own.index_of(name).ok().map(|at| &self.directory.columns[at])
    }

    /// The filter of its keys, if it has one.
    pub fn key_filter(&self) -> Result<Option<Bytes>> {
        self.blocks.filter(&self.group.address, &self.directory)
    }

    /// Decodes `columns` (positions in `schema`); columns that its own schema lacks are null.
    pub fn decode(&self, schema: &Schema, columns: &[usize], form: Form) -> Result<Vec<ArrayRef>> {
        let rows = self.group.rows as usize;
        self.each(schema, columns, |source| match source {
            Source::Missing(wanted) => Ok(new_null_array(wanted, rows)),
            Source::Stored(bytes, own, wanted) => {
                let array = decode(bytes, rows, own, form)?;
                if form == Form::Exact { into_type(array, wanted) } else { Ok(array) }
            }
        })
    }

    /// The rows `picked`, ascending, of `columns`.
    pub fn pick(&self, schema: &Schema, columns: &[usize], picked: &[u32]) -> Result<Vec<ArrayRef>> {
        let rows = self.group.rows as usize;
        self.each(schema, columns, |source| match source {
            Source::Missing(wanted) => Ok(new_null_array(wanted, picked.len())),
            Source::Stored(bytes, own, wanted) => into_type(decode_rows(bytes, rows, own, picked)?, wanted),
        })
    }

    /// The segments of columns of its own schema, in one request.
    pub fn segments(&self, columns: &[usize]) -> Result<Vec<Bytes>> {
        self.blocks.segments(&self.group.address, &self.directory, columns)
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
            columns.iter().map(|&index| self.own.index_of(schema.field(index).name()).ok()).collect();
        let present: Vec<usize> = located.iter().flatten().copied().collect();
        let mut segments = self.segments(&present)?.into_iter();
        let array = |(located, &index): (&Option<usize>, &usize)| -> Result<ArrayRef> {
            let wanted = schema.field(index).data_type();
            let Some(at) = located else { return make(Source::Missing(wanted)) };
            let bytes = segments.next().expect("one for each present column");
            make(Source::Stored(bytes, self.own.field(*at).data_type(), wanted)).map_err(|e| {
                let (name, block) = (schema.field(index).name(), self.group.address.block);
                e.context(format!("block {block}, column '{name}' at offset {}", self.directory.columns[*at].offset))
            })
        };
        located.iter().zip(columns).map(array).collect()
    }
}
