//! Rows of a Parquet file. Its schema is at its end, so a stream is first copied to a temporary file.

use std::fs::File;

use arrow::datatypes::{DataType, SchemaRef};
use drumlin::{Error, Result};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Type;
use parquet::schema::types::ColumnDescPtr;

use super::guarded;
use super::input::{Batches, Input};
use super::parquet_intervals as intervals;

/// Rows of a batch; a store's row groups are made of several batches.
const BATCH_ROWS: usize = 32_768;
/// What Arrow's writers call the schema that they leave in the file.
const ARROW_SCHEMA: &str = "ARROW:schema";

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::invalid(error.to_string())
}

fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    guarded::guarded("Parquet", read)
}

/// A file of Parquet.
struct Opened {
    builder: ParquetRecordBatchReaderBuilder<File>,
    /// The schema of its rows, if it has Parquet's own intervals: Arrow reads them without their months.
    with_months: Option<SchemaRef>,
}

fn open(file: File) -> Result<Opened> {
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(invalid)?;
    let metadata = match without_dictionaries_of_int96(&metadata) {
        None => metadata,
        Some(schema) => {
            let options = ArrowReaderOptions::new().with_schema(schema);
            ArrowReaderMetadata::try_new(metadata.metadata().clone(), options).map_err(invalid)?
        }
    };
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let by_arrow = metadata.is_some_and(|pairs| pairs.iter().any(|pair| pair.key == ARROW_SCHEMA));
    let with_months = if by_arrow { None } else { intervals::with_months(builder.schema()) };
    Ok(Opened { builder, with_months })
}

/// The schema with the times themselves, if it has dictionaries of times that the file keeps as Int96: the reader makes only
/// times of these. `None` if there are none.
fn without_dictionaries_of_int96(metadata: &ArrowReaderMetadata) -> Option<SchemaRef> {
    let is_int96 = |column: &ColumnDescPtr| column.physical_type() == Type::INT96;
    let any = metadata.metadata().file_metadata().schema_descr().columns().iter().any(is_int96);
    let times = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, values) if matches!(**values, DataType::Timestamp(..)) => Some((**values).clone()),
        _ => None,
    };
    any.then(|| intervals::with(metadata.schema(), &times)).filter(|changed| changed != metadata.schema())
}

/// The schema of the file: the Arrow schema, if an Arrow writer stored it.
pub fn schema(input: &mut Input) -> Result<SchemaRef> {
    let file = input.seekable()?.0;
    let Opened { builder, with_months } = guarded(|| open(file))?;
    Ok(with_months.unwrap_or_else(|| builder.schema().clone()))
}

/// Reads the months of intervals, of the columns that have some.
fn months(file: File, schema: &SchemaRef) -> Result<ParquetRecordBatchReader> {
    let options = ArrowReaderOptions::new().with_schema(intervals::months_alone(schema));
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(invalid)?;
    let columns = ProjectionMask::roots(builder.parquet_schema(), intervals::places(schema));
    builder.with_projection(columns).with_batch_size(BATCH_ROWS).build().map_err(invalid)
}

/// The rows. Progress is the share of rows read.
pub fn read(mut input: Input) -> Result<Batches> {
    let file = input.seekable()?.0;
    let Opened { builder, with_months } = guarded(|| open(file))?;
    let mut joined = match with_months {
        None => None,
        Some(schema) => Some((months(input.seekable()?.0, builder.schema())?, schema)),
    };
    let bytes = input.bytes().unwrap_or(0);
    let total = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0).max(1);
    let mut reader = guarded(|| builder.with_batch_size(BATCH_ROWS).build().map_err(invalid))?;
    let batches = std::iter::from_fn(move || guarded(|| reader.next().transpose().map_err(Error::from)).transpose());
    let mut rows = 0;
    Ok(Box::new(batches.map(move |batch| {
        let mut batch = batch?;
        if let Some((months, schema)) = &mut joined {
            let months = months.next().ok_or_else(|| invalid("the file changed while it was read"))??;
            batch = intervals::joined(&batch, &months, schema)?;
        }
        rows += batch.num_rows() as u64;
        let at = u128::from(bytes) * u128::from(rows.min(total)) / u128::from(total);
        Ok((batch, at as u64))
    })))
}
