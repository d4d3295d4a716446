//! Parts of a scan that its caller decodes, on any thread.

use std::sync::Arc;

use arrow::array::RecordBatch;

use super::piece_reader::PieceReader;
use super::pieces::Piece;
use crate::base::{Cancel, Result};
use crate::segment::join_batches;
use crate::table::Ahead;

/// Part of a scan, whose rows are counted before they are read.
pub struct ScanPart {
    pub(in crate::table) shared: Arc<PieceReader>,
    pub(in crate::table) piece: Piece,
    pub(in crate::table) cancel: Cancel,
}

impl ScanPart {
    /// The number of its rows.
    pub fn rows(&self) -> u64 {
        self.piece.stored_rows()
    }

    /// Has storage fetch what reading it needs.
    pub fn prefetch(&self) {
        self.shared.prefetch(&self.piece);
    }

    /// Over a network, brings what reading `parts` needs into the cache, for as many of them as fit; returns for how many. Waits
    /// for it, see [`Ahead`].
    pub(crate) fn fetch(parts: &[ScanPart]) -> usize {
        PieceReader::fetch(parts.iter().map(|part| (&*part.shared, &part.piece)))
    }

    /// Whether [`ScanPart::fetch`] does anything.
    pub(crate) fn is_fetched(&self) -> bool {
        self.shared.reader.fetches()
    }

    /// Its rows; `None` if there are none. `SnapshotExpired` if another process has reclaimed its blocks.
    ///
    /// # Errors
    /// `SnapshotExpired`, and as [`crate::table::Scan::collect`].
    pub fn decode(&self) -> Result<Option<RecordBatch>> {
        self.cancel.check()?;
        let batches = self.shared.read(&self.piece)?;
        match batches.as_slice() {
            [] => Ok(None),
            [batch] => Ok(Some(batch.clone())),
            several => join_batches(&several[0].schema(), several).map(Some),
        }
    }

    /// The same rows, each column in the cheapest type with its values, which need not be that of other parts.
    ///
    /// # Errors
    /// As [`ScanPart::decode`].
    pub fn decode_as_stored(&self) -> Result<Vec<RecordBatch>> {
        self.cancel.check()?;
        self.shared.read_as_stored(&self.piece)
    }

    /// Decodes parts on all threads, and passes each result to `take`, with the value that came with the part.
    ///
    /// # Errors
    /// As [`ScanPart::decode`], and those of `take`.
    pub fn decode_many<T: Send>(
        parts: Vec<(ScanPart, T)>,
        take: impl Fn(T, Result<Option<RecordBatch>>) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let Some(first) = parts.first().map(|(part, _)| part.shared.clone()) else { return Ok(()) };
        if !first.reader.fetches() {
            return first.pool.map(parts, |(part, with)| take(with, part.decode())).map(drop);
        }
        let (parts, with): (Vec<ScanPart>, Vec<T>) = parts.into_iter().unzip();
        let ahead = Ahead::default();
        let work = |(at, with)| {
            ahead.before(at, parts.len(), |range| Self::fetch(&parts[range]));
            take(with, parts[at].decode())
        };
        first.pool.map(with.into_iter().enumerate().collect(), work).map(drop)
    }
}
