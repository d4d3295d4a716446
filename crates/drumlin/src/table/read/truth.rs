//! A filter evaluated on columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Field, Schema};

use crate::base::Result;
use crate::filter::BoundFilter;

/// The rows for which `filter` is true, given its columns.
pub(in crate::table) fn truth(
    filter: &BoundFilter,
    schema: &Schema,
    rows: usize,
    columns: Vec<ArrayRef>,
) -> Result<BooleanBuffer> {
    let fields: Vec<Field> = filter
        .columns()
        .iter()
        .zip(&columns)
        .map(|(&index, array)| Field::new(schema.field(index).name(), array.data_type().clone(), true))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?;
    let truth = filter.evaluate(&batch)?;
    Ok(match truth.nulls() {
        Some(nulls) => truth.values() & nulls.inner(),
        None => truth.values().clone(),
    })
}
