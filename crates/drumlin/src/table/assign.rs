//! New values for some columns of some rows: computes them, and makes the row groups that hold them. What does not change is
//! copied as it is encoded.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use roaring::RoaringBitmap;

use super::columns::{find, mask};
use super::group_reader::GroupReader;
use super::{RowGroup, Table};
use crate::base::{Error, Pool, Result, Version};
use crate::block::{BlockReader, EncodedRowGroup};
use crate::filter::{BoundExpression, Expression};
use crate::segment::{Form, Segment, encode, filter_batch, interleave};

/// Of fewer rows than one in as many, each is decoded by itself.
const PICK_SHARE: u64 = 128;

/// What columns of a table are set to.
pub struct Assignments {
    schema: SchemaRef,
    /// The columns by place, each with its values.
    columns: Vec<(usize, BoundExpression)>,
    /// The columns that these are computed from, by place.
    inputs: Vec<usize>,
}

impl Assignments {
    /// Ties expressions to the columns of the newest version. `InvalidArgument` for a column that is set twice, does not exist,
    /// or orders the rows, and for values that are none of its type.
    pub fn new(table: &Table, set: &[(String, Expression)]) -> Result<Self> {
        let own = table.schema().ok_or_else(|| Error::invalid("the table has no version yet"))?;
        if set.is_empty() {
            return Err(Error::invalid("no column is set"));
        }
        let mut columns: Vec<(usize, BoundExpression)> = Vec::with_capacity(set.len());
        for (name, expression) in set {
            let at = find(&own.0, name)?;
            let field = own.0.field(at);
            if table.spec.sort.contains(field.name()) {
                let what = if table.spec.keyed { "part of the key" } else { "one that the table is sorted by" };
                return Err(Error::invalid(format!(
                    "column '{name}' is {what}: delete the rows and write them again, in one transaction"
                )));
            }
            if columns.iter().any(|(known, _)| *known == at) {
                return Err(Error::invalid(format!("column '{name}' is set twice")));
            }
            let bound = expression.bind(&own.0, field.data_type());
            columns.push((at, bound.map_err(|e| e.context(format!("column '{name}'")))?));
        }
        let mut inputs: Vec<usize> = columns.iter().flat_map(|(_, bound)| bound.columns()).copied().collect();
        inputs.sort_unstable();
        inputs.dedup();
        Ok(Self { schema: own.0.clone(), columns, inputs })
    }

    /// The columns of the newest version.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The new values of the rows `picked` of a row group, column by column.
    fn values(&self, reader: &GroupReader<'_>, picked: &RoaringBitmap) -> Result<Vec<ArrayRef>> {
        let inputs = rows_of(reader, &self.schema, &self.inputs, picked)?;
        let field = |(at, array): (&usize, &ArrayRef)| {
            Field::new(self.schema.field(*at).name(), array.data_type().clone(), true)
        };
        let fields: Vec<Field> = self.inputs.iter().zip(&inputs).map(field).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(picked.len() as usize));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), inputs, &options)?;
        let values = |(at, bound): &(usize, BoundExpression)| {
            let field = self.schema.field(*at);
            let array = bound.compute(&batch).map_err(|e| e.context(format!("column '{}'", field.name())))?;
            match !field.is_nullable() && array.logical_null_count() > 0 {
                true => Err(Error::schema_mismatch(format!(
                    "column '{}' takes no nulls, and would be null in {} rows",
                    field.name(),
                    array.logical_null_count()
                ))),
                false => Ok(array),
            }
        };
        self.columns.iter().map(values).collect()
    }

    /// A row group like `group`, in which the rows `picked` have their new values.
    pub fn replace(
        &self,
        blocks: &BlockReader,
        pool: &Pool,
        table: &Table,
        version: Version,
        group: &RowGroup,
        picked: &RoaringBitmap,
    ) -> Result<EncodedRowGroup> {
        let reader = GroupReader::open(blocks, table, version, group)?;
        let values = self.values(&reader, picked)?;
        let segment = |at: usize| -> Result<Segment> {
            let old = || -> Result<ArrayRef> { Ok(reader.decode(&self.schema, &[at], Form::Exact)?.remove(0)) };
            let segment = match self.columns.iter().position(|(column, _)| *column == at) {
                None => match reader.segment(&self.schema, at)? {
                    Some(segment) => return Ok(segment),
                    None => encode(&old()?),
                },
                Some(column) if picked.len() == u64::from(group.rows) => encode(&values[column]),
                Some(column) => {
                    let mut new = 0..;
                    let place = |row: u32| match picked.contains(row) {
                        true => (1, new.next().expect("there are enough numbers")),
                        false => (0, row as usize),
                    };
                    let places: Vec<(usize, usize)> = (0..group.rows).map(place).collect();
                    encode(&interleave(&[old()?, values[column].clone()], &places)?)
                }
            };
            segment.map_err(|e| e.context(format!("column '{}'", self.schema.field(at).name())))
        };
        let segments = pool.map((0..self.schema.fields().len()).collect(), segment)?;
        let filter = reader.key_filter()?.map(|filter| filter.to_vec());
        Ok(EncodedRowGroup { rows: group.rows, segments, filter })
    }

    /// The rows `picked` of a row group as they will be.
    pub fn changed(
        &self,
        blocks: &BlockReader,
        table: &Table,
        version: Version,
        group: &RowGroup,
        picked: &RoaringBitmap,
    ) -> Result<RecordBatch> {
        let reader = GroupReader::open(blocks, table, version, group)?;
        let values = self.values(&reader, picked)?;
        let is_set = |at: &usize| self.columns.iter().any(|(column, _)| column == at);
        let kept: Vec<usize> = (0..self.schema.fields().len()).filter(|at| !is_set(at)).collect();
        let mut kept_values = rows_of(&reader, &self.schema, &kept, picked)?.into_iter();
        let column = |at: usize| match self.columns.iter().position(|(column, _)| *column == at) {
            Some(column) => values[column].clone(),
            None => kept_values.next().expect("one for each that is not set"),
        };
        let columns = (0..self.schema.fields().len()).map(column).collect();
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}

/// Some rows of columns of a row group, in the types of `schema`.
fn rows_of(
    reader: &GroupReader<'_>,
    schema: &SchemaRef,
    columns: &[usize],
    picked: &RoaringBitmap,
) -> Result<Vec<ArrayRef>> {
    let rows = reader.group.rows;
    if picked.len() <= u64::from(rows) / PICK_SHARE {
        return reader.pick(schema, columns, &picked.iter().collect::<Vec<u32>>());
    }
    let arrays = reader.decode(schema, columns, Form::Exact)?;
    if picked.len() == u64::from(rows) || arrays.is_empty() {
        return Ok(arrays);
    }
    let named = columns.iter().map(|at| schema.field(*at).name()).zip(arrays);
    let batch = RecordBatch::try_from_iter_with_nullable(named.map(|(name, array)| (name, array, true)))?;
    Ok(filter_batch(&batch, &mask(picked, rows))?.columns().to_vec())
}
