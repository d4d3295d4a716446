//! The way out for types that have no form of their own (unions, run-end encoded): an Arrow IPC stream.
//!
//! ```text
//! ipc = IPC  varint length, that many bytes: an Arrow IPC stream of one batch with one column
//! ```

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use super::Tag;
use super::wire::{Reader, Writer};
use crate::base::{Error, Result};

/// Writes any column.
pub(super) fn write(out: &mut Writer, array: &ArrayRef) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![Field::new("", array.data_type().clone(), true)]));
    let options = RecordBatchOptions::new().with_row_count(Some(array.len()));
    let batch = RecordBatch::try_new_with_options(schema, vec![Arc::clone(array)], &options)?;
    let mut stream = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    stream.write(&batch)?;
    let bytes = stream.into_inner()?;
    out.u8(Tag::Ipc as u8);
    out.varint(bytes.len() as u64);
    out.buffer(&bytes);
    Ok(())
}

/// Reads what [`write`] wrote; the tag was read.
pub(super) fn read(input: &mut Reader, rows: usize, data_type: &DataType) -> Result<ArrayRef> {
    let len = input.count()?;
    let bytes = input.buffer(len)?;
    let damaged = |error| Error::corrupt("the Arrow stream in a segment is damaged").with_source(error);
    let mut stream = StreamReader::try_new(&bytes[..], None).map_err(damaged)?;
    let batch = stream.next().ok_or_else(|| Error::corrupt("the Arrow stream in a segment is empty"))?;
    let batch = batch.map_err(damaged)?;
    match batch.columns() {
        [array] if array.len() == rows && array.data_type() == data_type => Ok(Arc::clone(array)),
        columns => Err(Error::corrupt(format!(
            "the Arrow stream in a segment has {} columns of {} rows, expected {rows} of {data_type}",
            columns.len(),
            batch.num_rows()
        ))),
    }
}
