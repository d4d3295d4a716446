//! Cuts a stream of batches into row groups and encodes them, a column a task.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat;
use arrow::datatypes::SchemaRef;

use super::{ROWS_MAX, conform, order};
use crate::base::{Pool, Result};
use crate::block::EncodedRowGroup;
use crate::segment::{Segment, encode};

/// The batches of one row group, not yet put together.
pub struct RowGroups<I> {
    batches: I,
    schema: SchemaRef,
    /// What is left of the last batch.
    rest: Option<RecordBatch>,
    ended: bool,
}

impl<I: Iterator<Item = Result<RecordBatch>>> RowGroups<I> {
    /// Cuts `batches`, each made to fit `schema`, into row groups of [`ROWS_MAX`] rows; the last may be smaller.
    pub fn new(batches: I, schema: SchemaRef) -> Self {
        Self { batches, schema, rest: None, ended: false }
    }
}

impl<I: Iterator<Item = Result<RecordBatch>>> Iterator for RowGroups<I> {
    type Item = Result<Vec<RecordBatch>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut parts = Vec::new();
        let mut rows = 0;
        while rows < ROWS_MAX as usize && !self.ended {
            let batch = match self.rest.take() {
                Some(rest) => rest,
                None => match self.batches.next().map(|batch| conform(&batch?, &self.schema)) {
                    Some(Ok(batch)) => batch,
                    Some(Err(e)) => {
                        self.ended = true;
                        return Some(Err(e));
                    }
                    None => {
                        self.ended = true;
                        break;
                    }
                },
            };
            let room = ROWS_MAX as usize - rows;
            if batch.num_rows() > room {
                self.rest = Some(batch.slice(room, batch.num_rows() - room));
            }
            let taken = batch.num_rows().min(room);
            if taken > 0 {
                rows += taken;
                parts.push(batch.slice(0, taken));
            }
        }
        (!parts.is_empty()).then_some(Ok(parts))
    }
}

/// Encodes one row group from its parts, its columns in parallel; if `sort` names columns, in their order.
pub fn encode_group(
    pool: &Pool,
    parts: Vec<RecordBatch>,
    schema: &SchemaRef,
    sort: &[String],
) -> Result<EncodedRowGroup> {
    let rows: usize = parts.iter().map(RecordBatch::num_rows).sum();
    let mut parts = parts;
    if !sort.is_empty() {
        let whole = arrow::compute::concat_batches(schema, &parts)?;
        parts = vec![order::sorted(whole, sort)?];
    }
    let columns = (0..schema.fields().len()).collect();
    let segments = pool.map(columns, |index: usize| -> Result<Segment> {
        let pieces: Vec<&dyn arrow::array::Array> = parts.iter().map(|part| part.column(index).as_ref()).collect();
        let whole: ArrayRef = match parts.as_slice() {
            [part] => part.column(index).clone(),
            _ => concat(&pieces)?,
        };
        encode(&whole).map_err(|e| e.context(format!("column '{}'", schema.field(index).name())))
    })?;
    Ok(EncodedRowGroup { rows: rows as u32, segments })
}
