//! Rows of an Arrow IPC file.

use std::fs::File;
use std::io::BufReader;

use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::FileReader;
use drumlin::Result;

use super::Batches;

/// The schema of the file.
pub fn schema(file: File) -> Result<SchemaRef> {
    Ok(FileReader::try_new_buffered(file, None)?.schema())
}

/// The rows. How far the file, of `bytes`, is read is told by the batches read.
pub fn read(file: File, bytes: u64) -> Result<Batches> {
    let reader = FileReader::try_new(BufReader::new(file), None)?;
    let total = reader.num_batches().max(1) as u64;
    let batches = reader.enumerate().map(move |(at, batch)| Ok((batch?, bytes / total * (at as u64 + 1))));
    Ok(Box::new(batches))
}
