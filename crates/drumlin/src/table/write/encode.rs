//! Cuts a stream of batches into row groups and encodes them, one task per column.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;

use crate::base::{Error, Pool, Result};
use crate::block::EncodedRowGroup;
use crate::segment::{Proof, Scheme, Segment, encode_like, join};
use crate::table::schema::compression::compression_of;
use crate::table::{Conform, ROWS_MAX};

/// A row group is closed once its rows take about this many bytes in memory.
pub(in crate::table) const BYTES_MAX: u64 = 256 << 20;

/// Bytes that a batch's rows take in memory. Of a dictionary's values those count that the rows can have.
pub fn batch_bytes(batch: &RecordBatch) -> u64 {
    let all = |array: &dyn Array| array.to_data().get_slice_memory_size().unwrap_or(0) as u64;
    let bytes = |column: &ArrayRef| match column.as_any_dictionary_opt() {
        Some(dictionary) => {
            let (rows, values) = (column.len() as u64, dictionary.values().len() as u64);
            let shared = all(dictionary.values().as_ref());
            all(dictionary.keys()) + if rows < values { shared.saturating_mul(rows) / values } else { shared }
        }
        None => all(column.as_ref()),
    };
    batch.columns().iter().map(bytes).sum()
}

/// The same rows, in batches of at most `bytes_max` bytes, or one row, each.
pub fn in_pieces(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    bytes_max: u64,
) -> impl Iterator<Item = Result<RecordBatch>> {
    let pieces = move |batch: RecordBatch| {
        let (rows, bytes) = (batch.num_rows(), batch_bytes(&batch));
        let fit = (rows as u64 * bytes_max.max(1) / bytes.max(1)).clamp(1, rows.max(1) as u64) as usize;
        (0..rows).step_by(fit).map(move |at| Ok(batch.slice(at, fit.min(rows - at))))
    };
    batches.flat_map(move |batch| {
        let (batch, error) = match batch {
            Ok(batch) => (Some(batch), None),
            Err(e) => (None, Some(Err(e))),
        };
        batch.into_iter().flat_map(pieces).chain(error)
    })
}

/// A row group being filled.
#[derive(Default)]
pub(in crate::table) struct Filling {
    parts: Vec<RecordBatch>,
    rows: usize,
    bytes: u64,
}

impl Filling {
    pub fn is_full(&self) -> bool {
        self.rows >= ROWS_MAX as usize || self.bytes >= BYTES_MAX
    }

    /// Adds rows of a batch, as many as are expected to fit, at least one, unless it is full; returns the others.
    pub fn take(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        let (rows, size) = (batch.num_rows(), batch_bytes(&batch));
        let fit = BYTES_MAX.saturating_sub(self.bytes).saturating_mul(rows as u64) / size.max(1);
        let fit = usize::try_from(fit).unwrap_or(usize::MAX).max(1);
        let taken = rows.min((ROWS_MAX as usize).saturating_sub(self.rows).min(fit));
        if taken > 0 {
            self.rows += taken;
            self.bytes += size * taken as u64 / rows as u64;
            self.parts.push(batch.slice(0, taken));
        }
        (taken < rows).then(|| batch.slice(taken, rows - taken))
    }

    /// What it holds, if anything; it is empty then.
    pub fn close(&mut self) -> Option<Vec<RecordBatch>> {
        let Self { parts, .. } = std::mem::take(self);
        (!parts.is_empty()).then_some(parts)
    }
}

/// Splits batches into those of each row group, not yet joined.
pub struct RowGroups<I> {
    batches: I,
    conform: Conform,
    /// What is left of the last batch.
    rest: Option<RecordBatch>,
    ended: bool,
}

impl<I: Iterator<Item = Result<RecordBatch>>> RowGroups<I> {
    /// Cuts `batches`, each made to fit by `conform`, into row groups of [`ROWS_MAX`] rows, fewer if
    /// they are large; the last may be smaller.
    pub fn new(batches: I, conform: Conform) -> Self {
        Self { batches, conform, rest: None, ended: false }
    }
}

impl<I: Iterator<Item = Result<RecordBatch>>> Iterator for RowGroups<I> {
    type Item = Result<Vec<RecordBatch>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut open = Filling::default();
        while !open.is_full() && !self.ended {
            let batch = match self.rest.take() {
                Some(rest) => Some(rest),
                None => match self.batches.next().map(|batch| self.conform.batch(&batch?)).transpose() {
                    Ok(batch) => batch,
                    Err(e) => {
                        self.ended = true;
                        return Some(Err(e));
                    }
                },
            };
            match batch {
                Some(batch) => self.rest = open.take(batch),
                None => self.ended = true,
            }
        }
        open.close().map(Ok)
    }
}

/// How the columns of a row group were encoded.
pub type Schemes = Vec<Scheme>;

/// Encodes one row group from its parts, its columns in parallel; each column as `like` says, if it says anything. With
/// [`Proof::Decoded`], `Internal` if what was encoded does not say the rows. Also returns how the columns were encoded, for row groups
/// of the same schema.
pub fn encode_group(
    pool: &Pool,
    parts: Vec<RecordBatch>,
    schema: &SchemaRef,
    like: Option<&Schemes>,
    proof: Proof,
) -> Result<(EncodedRowGroup, Schemes)> {
    let rows: usize = parts.iter().map(RecordBatch::num_rows).sum();
    let named = |index: usize, e: Error| e.context(format!("column '{}'", schema.field(index).name()));
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    let unknown = Scheme::default().with_compression(compression_of(schema)?.unwrap_or_default());
    let segments = pool.map(columns, |index| -> Result<(Segment, Scheme)> {
        let pieces: Vec<ArrayRef> = parts.iter().map(|part| part.column(index).clone()).collect();
        let whole = join(&pieces).map_err(|e| named(index, e))?;
        let like = like.and_then(|like| like.get(index)).unwrap_or(&unknown);
        let (mut segment, scheme) = encode_like(&whole, whole.data_type(), like).map_err(|e| named(index, e))?;
        if proof == Proof::Decoded {
            segment.prove(&whole, whole.data_type()).map_err(|e| named(index, e))?;
        }
        Ok((segment, scheme))
    })?;
    let (segments, schemes) = segments.into_iter().unzip();
    Ok((EncodedRowGroup { rows: rows as u32, segments, filter: None }, schemes))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::StringArray;

    use super::*;

    #[test]
    fn large_rows_make_row_groups_of_few_rows() {
        let rows: StringArray = (0..60).map(|n| Some(format!("{n}{}", "x".repeat(5_000_000)))).collect();
        let batch = RecordBatch::try_from_iter([("s", Arc::new(rows) as ArrayRef)]).unwrap();
        let schema = batch.schema();
        let groups: Vec<Vec<RecordBatch>> =
            RowGroups::new([Ok(batch)].into_iter(), Conform::new(schema)).collect::<Result<_>>().unwrap();
        let sizes: Vec<usize> = groups.iter().map(|group| group.iter().map(RecordBatch::num_rows).sum()).collect();
        assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (2, 60), "{sizes:?}");
        assert!(sizes[0] < 60 && sizes[0] > 40, "{sizes:?}");
    }
}
