//! The fallback for types without a form of their own (unions, run-end encoded): an Arrow IPC stream.
//!
//! ```text
//! ipc = IPC  varint length, that many bytes: an Arrow IPC stream of one batch with one column
//! ```
//! Streams are written without compression. [`read_stream`] reads one from storage without trusting any length in it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::root_as_message;
use arrow::ipc::writer::StreamWriter;

use super::tag::FormTag;
use super::wire::{Reader, Writer};
use crate::base::{Error, Result, TypeName};

/// Writes any column.
pub(in crate::segment) fn write(out: &mut Writer, array: &ArrayRef) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![Field::new("", array.data_type().clone(), true)]));
    let options = RecordBatchOptions::new().with_row_count(Some(array.len()));
    let batch = RecordBatch::try_new_with_options(schema, vec![Arc::clone(array)], &options)?;
    let mut stream = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    stream.write(&batch)?;
    let bytes = stream.into_inner()?;
    out.u8(FormTag::Ipc as u8);
    out.varint(bytes.len() as u64);
    out.buffer(&bytes);
    Ok(())
}

/// Reads what [`write`] wrote; the tag was read.
pub(in crate::segment) fn read(input: &mut Reader, rows: usize, data_type: &DataType) -> Result<ArrayRef> {
    let len = input.count()?;
    let bytes = input.buffer(len)?;
    let damaged = |error| Error::corrupt("the Arrow stream in a segment is damaged").with_source(error);
    let batch = read_stream(&bytes).map_err(damaged)?;
    match batch.columns() {
        [array] if array.len() == rows && array.data_type() == data_type => Ok(Arc::clone(array)),
        columns => Err(Error::corrupt(format!(
            "the Arrow stream in a segment has {} columns of {} rows; expected 1 column of {rows} rows of type {}",
            columns.len(),
            batch.num_rows(),
            TypeName(data_type)
        ))),
    }
}

/// The first batch of an Arrow IPC stream. Allocates no more than the length of the stream: a length beyond its end is an
/// error, and so are compressed buffers, whose stated lengths the decoder would allocate.
pub fn read_stream(bytes: &[u8]) -> Result<RecordBatch> {
    refuse_compression(bytes)?;
    // Unlike Arrow's `StreamReader`, this decoder allocates for a message only as its bytes arrive.
    let (mut decoder, mut buffer) = (StreamDecoder::new(), Buffer::from(bytes.to_vec()));
    // Arrow's reader asserts on some of what it finds. The panic hook has printed the panic's message.
    let decoded = catch_unwind(AssertUnwindSafe(|| decoder.decode(&mut buffer)));
    let decoded = decoded.map_err(|_| Error::corrupt("an Arrow stream cannot be decoded"))?;
    decoded?.ok_or_else(|| Error::corrupt("an Arrow stream has no rows"))
}

/// Walks the messages as the decoder does. If they end early or make no sense, the decoder reports it.
fn refuse_compression(mut bytes: &[u8]) -> Result<()> {
    const CONTINUATION: [u8; 4] = [0xff; 4];
    while let Some((mut length, mut rest)) = bytes.split_first_chunk::<4>() {
        if length == &CONTINUATION {
            let Some((behind, after)) = rest.split_first_chunk::<4>() else { break };
            (length, rest) = (behind, after);
        }
        let Some((message, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else { break };
        let Ok(message) = root_as_message(message) else { break };
        let batch = message.header_as_record_batch();
        let batch = batch.or_else(|| message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()));
        if batch.is_some_and(|batch| batch.compression().is_some()) {
            return Err(Error::corrupt("an Arrow stream has compressed buffers, which are not allowed here"));
        }
        let Some(behind) = usize::try_from(message.bodyLength()).ok().and_then(|body| rest.get(body..)) else { break };
        bytes = behind;
    }
    Ok(())
}
