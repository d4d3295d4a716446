//! Reads a data set: its tables one after the other, the next ones ahead of the consumer.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};

use crate::base::{Cancel, Result};
use crate::store::Dataset;
use crate::table::{Scan, ScanOptions};

impl Dataset {
    /// Reads it, lazily: table by table in the order of their paths, batches of at most 122,880 rows, decoded ahead on the CPU
    /// pool. No column at all may be asked for: batches then have rows only.
    ///
    /// # Errors
    /// `InvalidArgument` if a column or the filter is not of the schema, or if its transaction has written to tables since.
    pub fn scan(&self, options: &ScanOptions) -> Result<DatasetScan> {
        DatasetScan::new(self.clone(), options)
    }

    /// Reads it into memory, decoded by all threads.
    ///
    /// # Errors
    /// As [`Dataset::scan`]; `Corrupt` or `Unavailable` if data cannot be read; `SnapshotExpired` if a version is gone.
    pub fn collect(&self, options: &ScanOptions) -> Result<Vec<RecordBatch>> {
        self.scan(options)?.collect()
    }

    /// The number of rows for which the filter of `options` is true, up to its limit. Without a filter, and where statistics
    /// decide it, no rows are read.
    ///
    /// # Errors
    /// As [`Dataset::collect`].
    pub fn count_rows(&self, options: &ScanOptions) -> Result<u64> {
        let limit = options.limit.unwrap_or(u64::MAX);
        let options = ScanOptions { columns: None, limit: None, ..options.clone() };
        let mut rows = 0;
        let unpruned = self.unpruned(&options)?.0;
        let held = self.held(&unpruned)?;
        for at in unpruned {
            if rows >= limit {
                break;
            }
            options.cancel.check()?;
            rows += held.count_table(at, &options)?;
        }
        Ok(rows.min(limit))
    }
}

/// Reads a data set, batch by batch.
pub struct DatasetScan {
    dataset: Dataset,
    options: ScanOptions,
    schema: SchemaRef,
    /// The tables that are not open yet.
    waiting: VecDeque<usize>,
    open: VecDeque<Scan>,
    /// Rows still to return; `None` is no limit.
    left: Option<u64>,
}

impl DatasetScan {
    pub(in crate::store) fn new(dataset: Dataset, options: &ScanOptions) -> Result<Self> {
        if options.tail.is_some() || options.offset > 0 {
            return Err(crate::base::Error::invalid(
                "tail and offset need a single table, because the rows of a data set are not numbered",
            ));
        }
        // Who reads no rows looks at the schema.
        if options.limit != Some(0) {
            dataset.check_readable(options.columns.as_ref().map(|columns| columns.iter().map(String::as_str)))?;
        }
        let whole = dataset.schema();
        let options = options.clone();
        let waiting = dataset.unpruned(&options)?.0;
        let schema = match &options.columns {
            None => whole,
            Some(columns) => {
                let places: Vec<usize> =
                    columns.iter().map(|name| crate::table::find_column(&whole, name)).collect::<Result<_>>()?;
                Arc::new(whole.project(&places)?)
            }
        };
        let dataset = dataset.held(&waiting)?;
        let waiting = waiting.into();
        let mut scan = Self { dataset, schema, waiting, open: VecDeque::new(), left: options.limit, options };
        // What is wrong with the columns shows now.
        if let Some(first) = scan.waiting.pop_front() {
            scan.open_table(first)?;
        }
        Ok(scan)
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Makes another flag than the options' stop the scan. Must be called before the first batch.
    pub fn stop_by(&mut self, cancel: Cancel) {
        self.open.iter_mut().for_each(|scan| scan.stop_by(cancel.clone()));
        self.options.cancel = cancel;
    }

    /// All rows left, at once, decoded by all threads.
    ///
    /// # Errors
    /// `Corrupt` or `Unavailable` if data cannot be read, `SnapshotExpired` if a version is gone, `Cancelled`.
    pub fn collect(mut self) -> Result<Vec<RecordBatch>> {
        if self.left.is_some() {
            return self.by_ref().collect();
        }
        while let Some(next) = self.waiting.pop_front() {
            self.open_table(next)?;
        }
        let scans = std::mem::take(&mut self.open).into();
        Scan::collect_many(scans)?.into_iter().flatten().map(|batch| self.shown(batch)).collect()
    }

    fn open_table(&mut self, at: usize) -> Result<()> {
        let options = ScanOptions { limit: self.left, ..self.options.clone() };
        self.open.push_back(self.dataset.scan_table(at, &options)?);
        Ok(())
    }

    /// Starts tasks, of later tables too, until enough run ahead.
    fn run_ahead(&mut self) -> Result<()> {
        loop {
            let (mut running, mut wanted) = (0, 1);
            for scan in &mut self.open {
                (running, wanted) = scan.start(running);
            }
            match self.waiting.pop_front() {
                Some(next) if running < wanted => self.open_table(next)?,
                Some(next) => {
                    self.waiting.push_front(next);
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.left == Some(0) {
                return Ok(None);
            }
            self.run_ahead()?;
            let Some(scan) = self.open.front_mut() else { return Ok(None) };
            let Some(batch) = scan.next().transpose()? else {
                self.open.pop_front();
                continue;
            };
            return Ok(Some(cut(batch, &mut self.left)));
        }
    }

    /// A batch with the columns asked for, which may be none.
    fn shown(&self, batch: RecordBatch) -> Result<RecordBatch> {
        match self.schema.fields().is_empty() {
            true => Ok(batch.project(&[])?),
            false => Ok(with_schema(batch, &self.schema)?),
        }
    }
}

/// Those rows of a batch that a limit leaves, of which `left` are to come.
pub(in crate::store) fn cut(batch: RecordBatch, left: &mut Option<u64>) -> RecordBatch {
    let Some(left) = left else { return batch };
    let rows = batch.num_rows().min(usize::try_from(*left).unwrap_or(usize::MAX));
    *left -= rows as u64;
    batch.slice(0, rows)
}

/// The batch with the schema of all batches, which has no metadata of single tables.
pub(in crate::store) fn with_schema(batch: RecordBatch, schema: &Arc<Schema>) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch);
    }
    Ok(RecordBatch::try_new(schema.clone(), batch.columns().to_vec())?)
}

impl Iterator for DatasetScan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.step().transpose()?;
        if batch.is_err() {
            self.open.clear();
            self.waiting.clear();
        }
        Some(batch.and_then(|batch| self.shown(batch)))
    }
}
