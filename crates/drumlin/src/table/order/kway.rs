//! Merges sources of rows, each in order, into batches of ordinary size; of equal rows those of the first source come first.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::row::{Row, Rows};

use super::sort::interleave_batches;
use super::sort_columns::{comparable, sort_columns};
use crate::base::Result;
use crate::base::planted::{Bug, planted};
use crate::table::ROWS_MAX;
use crate::table::memory::row_bytes::columns_at;
use crate::table::write::encode::{BYTES_MAX, batch_bytes};

/// Rows in order, from sources in order. Memory: a batch of each source, and a batch of the result.
pub(in crate::table) struct Merged<S> {
    schema: SchemaRef,
    sort: Vec<usize>,
    sources: Vec<S>,
    /// What each source has come to.
    heads: Vec<Option<RowCursor>>,
    /// The sources that have rows, by the next row of each; none before the first batch.
    next: Option<Vec<usize>>,
    /// Batches that were made with another one, because all of it would be too large.
    ready: VecDeque<RecordBatch>,
    /// Where sources begin, and those that the result has not come to; the last one is the next.
    starts: Starts,
    waiting: Vec<usize>,
    /// Rows of a batch.
    most: usize,
    /// An error ends it.
    failed: bool,
}

/// Rows before which none of a source comes.
pub(in crate::table) struct Starts {
    keys: Option<Rows>,
    /// The place of each source's among them; `None` if it may begin anywhere.
    of: Vec<Option<usize>>,
}

impl Starts {
    /// Of each source the place of its row among `keys`.
    pub fn new(keys: Rows, of: Vec<Option<usize>>) -> Self {
        Self { keys: Some(keys), of }
    }

    /// Of sources of which nothing is known.
    pub fn unknown(sources: usize) -> Self {
        Self { keys: None, of: vec![None; sources] }
    }

    fn key(&self, source: usize) -> Option<Row<'_>> {
        self.keys.as_ref().zip(self.of.get(source).copied().flatten()).map(|(keys, row)| keys.row(row))
    }

    /// The sources in the order in which they are needed.
    pub fn in_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.of.len()).collect();
        order.sort_by_key(|source| self.key(*source));
        order
    }
}

/// Rows of several batches: of each the next ones, in their order.
type Places = Vec<(usize, usize)>;

/// The next row of a source.
struct RowCursor {
    batch: RecordBatch,
    keys: Arc<Rows>,
    at: usize,
    /// Bytes of a row, about.
    bytes: u64,
    /// Its place among the batches that the result is made of.
    slot: Option<usize>,
}

impl<S: Iterator<Item = Result<RecordBatch>>> Merged<S> {
    /// Merges sources of batches of `schema`, each in the order of the columns called `sort`.
    pub fn new(schema: SchemaRef, sort: &[String], sources: Vec<S>) -> Result<Self> {
        let sort = sort_columns(&schema, sort)?;
        let heads = sources.iter().map(|_| None).collect();
        let starts = Starts::unknown(sources.len());
        let (ready, most) = (VecDeque::new(), ROWS_MAX as usize);
        Ok(Self { schema, sort, sources, heads, next: None, ready, starts, waiting: Vec::new(), most, failed: false })
    }

    /// Draws from sources only once the result comes to where they begin. Before the first batch.
    #[must_use]
    pub fn begun_at(self, starts: Starts) -> Self {
        let late = |source: &usize| starts.key(*source).is_some();
        let waiting = starts.in_order().into_iter().filter(late).rev().collect();
        Self { starts, waiting, ..self }
    }

    /// Batches of no more rows than `most`.
    #[must_use]
    pub fn limited(self, most: Option<u64>) -> Self {
        let most = most.and_then(|most| usize::try_from(most).ok()).map_or(self.most, |most| most.clamp(1, self.most));
        Self { most, ..self }
    }

    /// Draws from the sources that may have the next row.
    fn admit(&mut self, queue: &mut Vec<usize>) -> Result<()> {
        while let Some(&source) = self.waiting.last()
            && queue.last().is_none_or(|first| self.is_due(source, *first))
        {
            self.waiting.pop();
            if self.draw(source)? {
                self.queue(queue, source);
            }
        }
        Ok(())
    }

    /// Whether a source that waits may have rows before the next one of the source `of`, or equal ones.
    fn is_due(&self, waiting: usize, of: usize) -> bool {
        let next = self.heads[of].as_ref().map(|head| head.keys.row(head.at));
        let start = self.starts.key(waiting);
        if planted(Bug::DrawLate) { start < next } else { start <= next }
    }

    /// Whether the next row of the source `a` comes before that of `b`.
    fn is_before(&self, a: usize, b: usize) -> bool {
        let row = |source: usize| self.heads[source].as_ref().map(|head| head.keys.row(head.at));
        let first = if planted(Bug::LaterFirst) { a > b } else { a < b };
        match row(a).cmp(&row(b)) {
            std::cmp::Ordering::Equal => first,
            order => order.is_lt(),
        }
    }

    /// Draws the next batch of a source; whether there is one.
    fn draw(&mut self, source: usize) -> Result<bool> {
        self.heads[source] = None;
        for batch in self.sources[source].by_ref() {
            let batch = batch?;
            if batch.num_rows() > 0 {
                let keys = Arc::new(comparable(&columns_at(&batch, &self.sort))?);
                let bytes = batch_bytes(&batch) / batch.num_rows() as u64 + 1;
                self.heads[source] = Some(RowCursor { batch, keys, at: 0, bytes, slot: None });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts a source that has rows among the others.
    fn queue(&self, queue: &mut Vec<usize>, source: usize) {
        // The last is the next.
        let at = queue.partition_point(|other| self.is_before(source, *other));
        queue.insert(at, source);
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.ready.pop_front() {
            return Ok(Some(batch));
        }
        let mut queue = match self.next.take() {
            Some(queue) => queue,
            None => {
                let mut queue = Vec::with_capacity(self.sources.len());
                for source in 0..self.sources.len() {
                    if self.starts.key(source).is_none() && self.draw(source)? {
                        self.queue(&mut queue, source);
                    }
                }
                queue
            }
        };
        self.heads.iter_mut().flatten().for_each(|head| head.slot = None);
        let (mut used, mut places, mut bytes): (Vec<RecordBatch>, Places, u64) = (Vec::new(), Vec::new(), 0);
        while places.len() < self.most && bytes < BYTES_MAX {
            self.admit(&mut queue)?;
            let Some(source) = queue.pop() else { break };
            let (second, waiting) = (queue.last().copied(), self.waiting.last().copied());
            let head = self.heads[source].as_mut().expect("it has rows");
            let slot = *head.slot.get_or_insert_with(|| {
                used.push(head.batch.clone());
                used.len() - 1
            });
            let rows = head.batch.num_rows();
            // Usually many rows of one source follow each other.
            loop {
                let head = self.heads[source].as_mut().expect("it has rows");
                places.push((slot, head.at));
                bytes += head.bytes;
                head.at += 1;
                let full = places.len() == self.most || bytes >= BYTES_MAX;
                let ended = head.at == rows || full;
                if ended
                    || second.is_some_and(|second| !self.is_before(source, second))
                    || waiting.is_some_and(|waiting| self.is_due(waiting, source))
                {
                    break;
                }
            }
            let more = self.heads[source].as_ref().is_some_and(|head| head.at < rows) || self.draw(source)?;
            if more {
                self.queue(&mut queue, source);
            }
        }
        self.next = Some(queue);
        if used.is_empty() {
            return Ok(None);
        }
        self.interleave(&used, places)?;
        Ok(self.ready.pop_front())
    }

    /// Makes a batch of these rows; several, if they take more bytes than the batches' averages have made expect.
    fn interleave(&mut self, batches: &[RecordBatch], mut places: Places) -> Result<()> {
        // The rows taken of each follow each other; joining dictionaries costs what is joined.
        let mut taken: Vec<(usize, usize)> = vec![(usize::MAX, 0); batches.len()];
        for (slot, row) in &places {
            let (first, end) = taken[*slot];
            taken[*slot] = (first.min(*row), end.max(row + 1));
        }
        let part = |(batch, (first, end)): (&RecordBatch, &(usize, usize))| {
            batch.slice(*first.min(end), end.saturating_sub(*first))
        };
        let parts: Vec<RecordBatch> = batches.iter().zip(&taken).map(part).collect();
        if let [batch] = parts.as_slice() {
            self.ready.push_back(batch.clone());
            return Ok(());
        }
        if places.len() > 1 && parts.iter().map(batch_bytes).sum::<u64>() > 2 * BYTES_MAX {
            let rest = places.split_off(places.len() / 2);
            self.interleave(batches, places)?;
            return self.interleave(batches, rest);
        }
        places.iter_mut().for_each(|(slot, row)| *row -= taken[*slot].0);
        self.ready.push_back(interleave_batches(&self.schema, &parts, &places)?);
        Ok(())
    }
}

impl<S: Iterator<Item = Result<RecordBatch>>> Iterator for Merged<S> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.batch().transpose();
        self.failed = matches!(batch, Some(Err(_)));
        batch
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, ArrayRef, Int64Array};

    use super::*;
    use crate::base::Error;

    fn batch(rows: &[(Option<i64>, i64)]) -> RecordBatch {
        let keys: Int64Array = rows.iter().map(|row| row.0).collect();
        let values: Int64Array = rows.iter().map(|row| Some(row.1)).collect();
        let columns = [("k", Arc::new(keys) as ArrayRef, true), ("v", Arc::new(values) as ArrayRef, true)];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    fn rows(batches: &[RecordBatch]) -> Vec<(Option<i64>, i64)> {
        let column =
            |batch: &RecordBatch, at: usize| batch.column(at).as_any().downcast_ref::<Int64Array>().unwrap().clone();
        let of_one = |batch: &RecordBatch| -> Vec<(Option<i64>, i64)> {
            let (keys, values) = (column(batch, 0), column(batch, 1));
            (0..keys.len()).map(|at| (keys.is_valid(at).then(|| keys.value(at)), values.value(at))).collect()
        };
        batches.iter().flat_map(of_one).collect()
    }

    #[test]
    fn rows_that_are_larger_than_most_make_smaller_batches() {
        // The large texts lie beside each other, so the average of a batch says nothing of them.
        let large = "x".repeat(4 << 20);
        let source = || {
            let keys: Int64Array = (0..1000).map(|n| Some(if n < 100 { 0 } else { n })).collect();
            let texts: arrow::array::StringArray =
                (0..1000).map(|n| Some(if n < 100 { &*large } else { "" })).collect();
            let columns = [("k", Arc::new(keys) as ArrayRef), ("x", Arc::new(texts) as ArrayRef)];
            std::iter::once(RecordBatch::try_from_iter(columns).map_err(Error::from))
        };
        let sources: Vec<_> = (0..6).map(|_| source()).collect();
        let schema = source().next().unwrap().unwrap().schema();
        let batches = Merged::new(schema, &["k".to_owned()], sources).unwrap();
        let rows = batches.map(|batch| {
            let batch = batch.unwrap();
            assert!(batch_bytes(&batch) <= 2 * BYTES_MAX);
            batch.num_rows()
        });
        assert_eq!(rows.sum::<usize>(), 6000);
    }

    #[test]
    fn equal_rows_come_in_the_order_of_their_sources() {
        let mut rng = fastrand::Rng::with_seed(8);
        for _ in 0..300 {
            let (mut sources, mut all, mut next) = (Vec::new(), Vec::new(), 0);
            for _ in 0..rng.usize(0..6) {
                let mut source: Vec<(Option<i64>, i64)> = (0..rng.usize(0..40))
                    .map(|_| {
                        next += 1;
                        (rng.bool().then(|| rng.i64(0..6)), next)
                    })
                    .collect();
                source.sort_by_key(|row| row.0);
                all.extend(source.clone());
                let (mut batches, mut rest) = (Vec::new(), &source[..]);
                while !rest.is_empty() {
                    let (some, others) = rest.split_at(rng.usize(0..=rest.len()));
                    batches.push(Ok(batch(some)));
                    rest = others;
                }
                sources.push(batches.into_iter());
            }
            all.sort_by_key(|row| row.0);
            let schema = batch(&[]).schema();
            let merged: Vec<RecordBatch> =
                Merged::new(schema, &["k".to_owned()], sources).unwrap().collect::<Result<_>>().unwrap();
            assert_eq!(rows(&merged), all);
            assert_eq!(merged.len(), usize::from(!all.is_empty()), "small batches are joined");
        }
    }

    #[test]
    fn batches_are_of_ordinary_size() {
        let many =
            |from: i64| -> Vec<(Option<i64>, i64)> { (0..200_000).map(|at| (Some(at * 2 + from), at)).collect() };
        let sources = [many(0), many(1)].map(|rows| vec![Ok(batch(&rows))].into_iter());
        let merged = Merged::new(batch(&[]).schema(), &["k".to_owned()], sources.into()).unwrap();
        let sizes: Vec<usize> = merged.map(|batch| batch.unwrap().num_rows()).collect();
        let full = ROWS_MAX as usize;
        assert_eq!(sizes, [full, full, full, 400_000 - 3 * full]);
    }

    #[test]
    fn an_error_ends_it() {
        let sources = vec![vec![Ok(batch(&[(Some(1), 1)])), Err(Error::corrupt("gone"))].into_iter()];
        let mut merged = Merged::new(batch(&[]).schema(), &["k".to_owned()], sources).unwrap();
        assert!(merged.next().is_some_and(|batch| batch.is_err()));
        assert!(merged.next().is_none());
    }
}
