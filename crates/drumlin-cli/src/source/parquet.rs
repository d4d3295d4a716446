//! Rows of a Parquet file. Its schema is at its end, so a stream is first copied to a temporary file.

use std::fs::File;

use arrow::datatypes::SchemaRef;
use drumlin::{Error, Result};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::input::{Batches, Input};

/// Rows of a batch; a store's row groups are made of several batches.
const BATCH_ROWS: usize = 32_768;

fn open(file: File) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| Error::invalid(e.to_string()))
}

/// The schema of the file: the Arrow schema, if an Arrow writer stored it.
pub fn schema(input: &mut Input) -> Result<SchemaRef> {
    Ok(open(input.seekable()?.0)?.schema().clone())
}

/// The rows. Progress is the share of rows read.
pub fn read(mut input: Input) -> Result<Batches> {
    let builder = open(input.seekable()?.0)?;
    let bytes = input.bytes().unwrap_or(0);
    let total = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0).max(1);
    let reader = builder.with_batch_size(BATCH_ROWS).build().map_err(|e| Error::invalid(e.to_string()))?;
    let mut rows = 0;
    Ok(Box::new(reader.map(move |batch| {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        let at = u128::from(bytes) * u128::from(rows.min(total)) / u128::from(total);
        Ok((batch, at as u64))
    })))
}
