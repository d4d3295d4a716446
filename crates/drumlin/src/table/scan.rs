//! Reads a version: selects row groups and rows, decodes them in parallel, and returns them in order.
//!
//! A scan holds its table's state, so later commits do not affect it. Statistics skip row groups; the filter is exact.
//! Tasks run ahead of the consumer by a fixed number of row groups, which bounds memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::columns::{find, into_type, mask};
use super::group_reader::GroupReader;
use super::matching::{matching, truth};
use super::overlay::{Overlay, OverlayRows};
use super::pieces::{Piece, arrange, output_types};
use super::{Renew, RowGroup, Rows, TableCodec, View, order};
use crate::base::{Cancel, Error, ErrorKind, Pool, Result, caught};
use crate::block::BlockReader;
use crate::filter::{BoundFilter, Filter};
use crate::segment::{Form, filter_batch, join_batches};

/// What to read of a version.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// The columns, in the order wanted. Default: all.
    pub columns: Option<Vec<String>>,
    /// Only rows for which this is true. Default: all.
    pub filter: Option<Filter>,
    /// Only this many rows from the beginning. Default: all.
    pub limit: Option<u64>,
    /// Only this many rows from the end. Default: all.
    pub tail: Option<u64>,
    /// Whether to return the cheapest Arrow types instead of the table's, such as dictionaries for strings. Default: the table's.
    pub native: bool,
    /// Stops the scan. Default: nothing does.
    pub cancel: Cancel,
    /// What messages about damage call the table. Default: nothing.
    pub name: Option<String>,
}

/// Reads a version of a table, batch by batch.
pub struct Scan {
    shared: Arc<Shared>,
    /// In the order of the result; each cluster makes one batch.
    pieces: VecDeque<Piece>,
    /// How many pieces at the front storage has been asked to prefetch.
    fetching: usize,
    running: VecDeque<Receiver<Result<Option<RecordBatch>>>>,
    /// Rows still to return; `None` is no limit.
    left: Option<u64>,
    tail: Option<u64>,
    /// Rows returned so far.
    handed: u64,
    /// Rows to skip because the scan that this one continues has already returned them.
    skip: u64,
    options: ScanOptions,
    renew: Option<Renew>,
    renewals: usize,
}

/// How often a scan may continue in a newer state.
const RENEWALS_MAX: usize = 5;

/// The number of pieces that are fetched before they are read.
const FETCH_AHEAD: usize = 16;

struct Shared {
    reader: Arc<BlockReader>,
    pool: Pool,
    view: View,
    schema: SchemaRef,
    /// The columns to decode, by position in the version's schema; from `width` on, those needed only for sorting.
    columns: Vec<usize>,
    types: Vec<DataType>,
    width: usize,
    filter: Option<BoundFilter>,
    version_schema: SchemaRef,
    form: Form,
    /// Rows written by key since.
    overlay: Option<(OverlayRows, TableCodec)>,
    /// What messages call the table.
    name: Option<String>,
}

impl Scan {
    /// Prepares to read what `view` shows. Reads directories if the order or the types need them, but no rows. If blocks
    /// turn out to be gone, now or later, it continues with the view that `renew` returns.
    ///
    /// # Errors
    /// `NotFound` or `InvalidArgument` if a column or the filter is not of the schema; `Corrupt` or `Unavailable` if a directory cannot be
    /// read.
    pub fn new(
        reader: Arc<BlockReader>,
        pool: Pool,
        mut view: View,
        options: &ScanOptions,
        renew: Option<Renew>,
    ) -> Result<Self> {
        for _ in 0..RENEWALS_MAX {
            let prepared = Self::prepare(reader.clone(), pool.clone(), view.clone(), options, renew.clone());
            match (prepared, &renew) {
                (Err(e), Some(renew)) if e.kind() == ErrorKind::SnapshotExpired => view = renew(&view)?,
                (prepared, _) => return prepared,
            }
        }
        Self::prepare(reader, pool, view, options, renew)
    }

    fn prepare(
        reader: Arc<BlockReader>,
        pool: Pool,
        view: View,
        options: &ScanOptions,
        renew: Option<Renew>,
    ) -> Result<Self> {
        let (table, read_point) = (view.table.clone(), view.read_point);
        if options.limit.is_some() && options.tail.is_some() {
            return Err(Error::invalid("give a limit (first rows) or a tail (last rows), not both"));
        }
        let version = read_point.version;
        let record = table.record(version)?;
        let version_schema = table.schemas[record.schema as usize].0.clone();
        let mut columns: Vec<usize> = match &options.columns {
            None => (0..version_schema.fields().len()).collect(),
            Some(names) => names.iter().map(|name| find(&version_schema, name)).collect::<Result<_>>()?,
        };
        let width = columns.len();
        if width == 0 {
            return Err(Error::invalid("no column was requested"));
        }
        if let Some(&twice) = columns.iter().enumerate().find(|(at, c)| columns[..*at].contains(c)).map(|(_, c)| c) {
            let name = version_schema.field(twice).name();
            return Err(Error::invalid(format!("column '{name}' was requested twice")));
        }
        let filter = options.filter.as_ref().map(|filter| filter.bind(&version_schema)).transpose()?;
        let groups: Vec<(Arc<RowGroup>, Rows)> = table
            .groups
            .iter()
            .map(|group| (group.clone(), table.visible(group, version)))
            .filter(|(_, rows)| *rows != Rows::None)
            .collect();
        let overlay = Overlay::new(&table, read_point).map(|overlay| (overlay.all(), overlay.codec().clone()));
        let pieces = arrange(&reader, &table, groups, overlay.as_ref())?;
        if pieces.iter().any(Piece::needs_sort) {
            for name in &table.spec.sort {
                let index = find(&version_schema, name)?;
                if !columns.contains(&index) {
                    columns.push(index);
                }
            }
        }
        let form = if options.native { Form::Native } else { Form::Exact };
        if form == Form::Native {
            // All directories are needed to choose the types, so they are requested together.
            let groups: Vec<&Arc<RowGroup>> =
                pieces.iter().flat_map(|piece| &piece.groups).map(|(group, _)| group).collect();
            groups.iter().for_each(|group| reader.prefetch(&group.address, &[]));
            pool.map(groups, |group| reader.directory(&group.address).map(drop))?;
        }
        let types = output_types(&reader, &table, &version_schema, &columns, &pieces, form)?;
        let fields: Vec<FieldRef> = columns[..width]
            .iter()
            .zip(&types)
            .map(|(&index, data_type)| {
                let field = version_schema.fields()[index].clone();
                if field.data_type() == data_type {
                    field
                } else {
                    Arc::new(Field::clone(&field).with_data_type(data_type.clone()))
                }
            })
            .collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, version_schema.metadata().clone()));
        let name = options.name.clone();
        let shared =
            Shared { reader, pool, view, schema, columns, types, width, filter, version_schema, form, overlay, name };
        let mut scan = Self {
            shared: Arc::new(shared),
            pieces: pieces.into(),
            fetching: 0,
            running: VecDeque::new(),
            left: options.limit,
            tail: options.tail,
            handed: 0,
            skip: 0,
            options: options.clone(),
            renew,
            renewals: 0,
        };
        if scan.shared.filter.is_none() && scan.shared.overlay.is_none() {
            scan.keep_pieces_for_limit();
        }
        Ok(scan)
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.shared.schema.clone()
    }

    /// Makes another flag than the options' stop the scan. Must be called before the first batch.
    pub fn stop_by(&mut self, cancel: Cancel) {
        self.options.cancel = cancel;
    }

    /// What it reads.
    pub fn view(&self) -> &View {
        &self.shared.view
    }

    /// Drops the pieces that a limit or tail cannot reach: without a filter, the row counts are known.
    fn keep_pieces_for_limit(&mut self) {
        let rows = Piece::stored_rows;
        if let Some(limit) = self.left {
            let mut seen = 0;
            let enough = self.pieces.iter().take_while(|piece| {
                let before = seen;
                seen += rows(piece);
                before < limit
            });
            let n = enough.count();
            self.pieces.truncate(n);
        }
        if let Some(tail) = self.tail {
            let mut seen = 0;
            let beyond = self.pieces.iter().rev().take_while(|piece| {
                let behind = seen;
                seen += rows(piece);
                behind < tail
            });
            let n = beyond.count();
            self.pieces.drain(..self.pieces.len() - n);
        }
    }

    /// All rows, or all rows left, at once, decoded by all threads.
    ///
    /// # Errors
    /// `Corrupt` or `Unavailable` if data cannot be read, `SnapshotExpired` if the version is gone, `Cancelled`.
    pub fn collect(mut self) -> Result<Vec<RecordBatch>> {
        loop {
            if self.is_bounded() || self.skip > 0 || !self.running.is_empty() {
                return self.by_ref().collect();
            }
            match self.decode_all() {
                Err(e) => self.go_on(e)?,
                batches => return batches,
            }
        }
    }

    /// The rows of many scans, each as in [`Scan::collect`], decoded by all threads at once.
    ///
    /// # Errors
    /// As [`Scan::collect`], of the first that fails.
    pub fn collect_many(scans: Vec<Scan>) -> Result<Vec<Vec<RecordBatch>>> {
        let Some(pool) = scans.first().map(|scan| scan.shared.pool.clone()) else { return Ok(Vec::new()) };
        // Waiting for tasks or reading the log again must not happen on threads of the pool.
        let decoded = pool.map(scans, |mut scan| {
            let begun = scan.is_bounded() || scan.skip > 0 || !scan.running.is_empty();
            Ok((if begun { None } else { Some(scan.decode_all()) }, scan))
        })?;
        let finish = |(decoded, mut scan): (Option<Result<Vec<RecordBatch>>>, Scan)| match decoded {
            Some(Ok(batches)) => Ok(batches),
            Some(Err(e)) => scan.go_on(e).and_then(|()| scan.collect()),
            None => scan.collect(),
        };
        decoded.into_iter().map(finish).collect()
    }

    /// Its parts, in order, to be decoded by the caller on any thread. `None` if their row counts are not known before they
    /// are read, or if the scan is not at its beginning. After this the scan is empty, but it can be started again.
    pub fn take_parts(&mut self) -> Option<Vec<ScanPart>> {
        let counted = self.shared.filter.is_none() && self.shared.overlay.is_none();
        if !counted || self.is_bounded() || self.skip > 0 || !self.running.is_empty() {
            return None;
        }
        let part = |piece| ScanPart { shared: self.shared.clone(), piece, cancel: self.options.cancel.clone() };
        Some(self.pieces.drain(..).map(part).collect())
    }

    /// The same scan, from the beginning.
    ///
    /// # Errors
    /// `SnapshotExpired` if the version is gone.
    pub fn anew(&self) -> Result<Scan> {
        let (reader, pool) = (self.shared.reader.clone(), self.shared.pool.clone());
        Scan::new(reader, pool, self.shared.view.clone(), &self.options, self.renew.clone())
    }

    fn is_bounded(&self) -> bool {
        self.left.is_some() || self.tail.is_some()
    }

    /// The rows of all pieces.
    fn decode_all(&mut self) -> Result<Vec<RecordBatch>> {
        let (shared, cancel) = (self.shared.clone(), self.options.cancel.clone());
        let pieces = std::mem::take(&mut self.pieces).into();
        let batches = self.shared.pool.map(pieces, |piece: Piece| {
            cancel.check()?;
            shared.read(&piece)
        })?;
        Ok(batches.into_iter().flatten().collect())
    }

    /// If blocks are gone, continues in a newer state, after the rows already returned. The order of a version's rows is the
    /// same in all states.
    fn go_on(&mut self, mut error: Error) -> Result<()> {
        while let Some(renew) = self.renew.clone().filter(|_| error.kind() == ErrorKind::SnapshotExpired) {
            if self.renewals == RENEWALS_MAX {
                break;
            }
            self.renewals += 1;
            let (reader, pool) = (self.shared.reader.clone(), self.shared.pool.clone());
            match renew(&self.shared.view)
                .and_then(|view| Scan::prepare(reader, pool, view, &self.options, Some(renew)))
            {
                Ok(next) if next.schema() == self.schema() => {
                    let (handed, renewals) = (self.handed, self.renewals);
                    *self = Self { handed, skip: handed, renewals, ..next };
                    return Ok(());
                }
                // The cheapest types to decode have changed.
                Ok(_) => break,
                Err(e) => error = e,
            }
        }
        self.pieces.clear();
        self.running.clear();
        Err(error)
    }

    /// Has storage fetch what the next tasks will read, so that they compute instead of waiting.
    fn fetch_ahead(&mut self) {
        let shared = &self.shared;
        let ahead = if self.left.is_some() { 0 } else { FETCH_AHEAD };
        for (group, _) in self.pieces.iter().take(ahead).skip(self.fetching).flat_map(|piece| &piece.groups) {
            let own = &shared.view.table.schemas[group.schema as usize].0;
            let index = |index: &usize| own.index_of(shared.version_schema.field(*index).name()).ok();
            let columns: Vec<usize> = shared.columns.iter().filter_map(index).collect();
            shared.reader.prefetch(&group.address, &columns);
        }
        self.fetching = self.fetching.max(ahead.min(self.pieces.len()));
    }

    /// Starts tasks until enough run ahead.
    fn run_ahead(&mut self) {
        self.fetch_ahead();
        // Unlimited scans keep every thread busy, with one finished result per thread; a limit may end the scan soon.
        let ahead = self.shared.pool.threads() * if self.left.is_some() { 1 } else { 2 };
        while self.running.len() < ahead
            && let Some(piece) = self.pieces.pop_front()
        {
            self.fetching = self.fetching.saturating_sub(1);
            let (sender, receiver) = sync_channel(1);
            let shared = self.shared.clone();
            self.shared.pool.spawn(move || {
                // The receiver is gone if the scan was dropped.
                let _ = sender.send(shared.read(&piece));
            });
            self.running.push_back(receiver);
        }
    }

    /// The next batch that any piece gives.
    fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            if let Err(e) = self.options.cancel.check() {
                return Some(Err(e));
            }
            self.run_ahead();
            let result = self.running.pop_front()?.recv();
            match result {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(batch))) => return Some(Ok(batch)),
                Ok(Err(e)) => return Some(Err(e)),
                Err(_) => return Some(Err(Error::closed("a reading task died"))),
            }
        }
    }

    /// The last `tail` rows, found from the end.
    fn read_tail(&mut self, tail: u64) -> Result<()> {
        let mut batches = VecDeque::new();
        let mut rows = 0;
        while rows < tail
            && let Some(piece) = self.pieces.pop_back()
        {
            self.options.cancel.check()?;
            if let Some(batch) = self.shared.read(&piece)? {
                let n = batch.num_rows() as u64;
                let skip = n.saturating_sub(tail - rows) as usize;
                rows += n;
                batches.push_front(batch.slice(skip, batch.num_rows() - skip));
            }
        }
        self.pieces.clear();
        for batch in batches {
            let (sender, receiver) = sync_channel(1);
            sender.send(Ok(Some(batch))).expect("the receiver is here");
            self.running.push_back(receiver);
        }
        Ok(())
    }

    /// The next batch within the limit or tail.
    fn step(&mut self) -> Option<Result<RecordBatch>> {
        if let Some(tail) = self.tail.take()
            && let Err(e) = self.read_tail(tail)
        {
            return Some(Err(e));
        }
        if self.left == Some(0) {
            self.pieces.clear();
            self.running.clear();
            return None;
        }
        let batch = match self.next_batch()? {
            Ok(batch) => batch,
            Err(e) => return Some(Err(e)),
        };
        Some(Ok(match &mut self.left {
            Some(left) => {
                let n = (batch.num_rows() as u64).min(*left);
                *left -= n;
                batch.slice(0, n as usize)
            }
            None => batch,
        }))
    }
}

/// Part of a scan, whose rows are counted before they are read.
pub struct ScanPart {
    shared: Arc<Shared>,
    piece: Piece,
    cancel: Cancel,
}

impl ScanPart {
    /// The number of its rows.
    pub fn rows(&self) -> u64 {
        self.piece.stored_rows()
    }

    /// Its rows; `None` if there are none. `SnapshotExpired` if another process has reclaimed its blocks.
    ///
    /// # Errors
    /// `SnapshotExpired`, and as [`Scan::collect`].
    pub fn decode(&self) -> Result<Option<RecordBatch>> {
        self.cancel.check()?;
        self.shared.read(&self.piece)
    }

    /// Decodes parts on all threads, and passes each result to `take`, with the value that came with the part.
    ///
    /// # Errors
    /// As [`ScanPart::decode`], and those of `take`.
    pub fn decode_many<T: Send>(
        parts: Vec<(ScanPart, T)>,
        take: impl Fn(T, Result<Option<RecordBatch>>) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let Some(pool) = parts.first().map(|(part, _)| part.shared.pool.clone()) else { return Ok(()) };
        pool.map(parts, |(part, with)| take(with, part.decode())).map(drop)
    }
}

impl Iterator for Scan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let batch = match self.step()? {
                Ok(batch) => batch,
                Err(e) => match self.go_on(e) {
                    Ok(()) => continue,
                    Err(e) => return Some(Err(e)),
                },
            };
            let rows = batch.num_rows() as u64;
            let skipped = self.skip.min(rows);
            self.skip -= skipped;
            if skipped == 0 || skipped < rows {
                self.handed += rows - skipped;
                return Some(Ok(batch.slice(skipped as usize, (rows - skipped) as usize)));
            }
        }
    }
}

impl Shared {
    /// Reads the rows of a piece that the filter keeps, in order; `None` if there are none.
    fn read(&self, piece: &Piece) -> Result<Option<RecordBatch>> {
        caught(|| self.read_piece(piece)).map_err(|e| match (e.kind(), &self.name) {
            (ErrorKind::Corrupt | ErrorKind::Internal | ErrorKind::SchemaMismatch, Some(name)) => {
                e.context(format!("'{name}'"))
            }
            _ => e,
        })
    }

    fn read_piece(&self, piece: &Piece) -> Result<Option<RecordBatch>> {
        let mut batches = Vec::with_capacity(piece.groups.len() + 1);
        for (group, rows) in &piece.groups {
            batches.extend(self.read_group(group, rows)?);
        }
        if let Some((overlay, codec)) = &self.overlay {
            batches.extend(self.read_rows(overlay, codec, piece.rows.clone())?);
        }
        let Some(first) = batches.first() else { return Ok(None) };
        let batch = if batches.len() == 1 { first.clone() } else { join_batches(&first.schema(), &batches)? };
        let batch = if piece.needs_sort() { order::sorted(batch, &self.view.table.spec.sort)? } else { batch };
        if self.width == self.columns.len() {
            return Ok(Some(batch));
        }
        Ok(Some(RecordBatch::try_new(self.schema.clone(), batch.columns()[..self.width].to_vec())?))
    }

    fn read_group(&self, group: &RowGroup, rows: &Rows) -> Result<Option<RecordBatch>> {
        let reader = GroupReader::open(&self.reader, &self.view.table, group)?;
        let mut rows = match &self.filter {
            None => rows.clone(),
            Some(filter) => matching(&reader, &self.version_schema, rows, filter)?,
        };
        if let Some((overlay, codec)) = &self.overlay {
            rows = overlay.hide(&reader, codec, rows)?;
        }
        if rows == Rows::None {
            return Ok(None);
        }
        let arrays = reader.decode(&self.version_schema, &self.columns, self.form)?;
        let arrays: Vec<ArrayRef> = arrays
            .into_iter()
            .zip(&self.types)
            .map(|(array, data_type)| into_type(array, data_type))
            .collect::<Result<_>>()?;
        let batch = self.batch(arrays)?;
        Ok(Some(match &rows {
            Rows::Some(rows) => filter_batch(&batch, &mask(rows, group.rows))?,
            _ => batch,
        }))
    }

    /// Rows written by key since.
    fn read_rows(&self, overlay: &OverlayRows, codec: &TableCodec, range: Range<usize>) -> Result<Option<RecordBatch>> {
        let (keys, rows) = overlay.rows_at(range);
        if keys.is_empty() {
            return Ok(None);
        }
        let arrays = codec.decode(&keys, &rows, &self.columns)?;
        let arrays = arrays.into_iter().zip(&self.types).map(|(array, data_type)| into_type(array, data_type));
        let batch = self.batch(arrays.collect::<Result<_>>()?)?;
        let Some(filter) = &self.filter else { return Ok(Some(batch)) };
        let truth = truth(filter, &self.version_schema, keys.len(), codec.decode(&keys, &rows, filter.columns())?)?;
        let batch = filter_batch(&batch, &BooleanArray::new(truth, None))?;
        Ok((batch.num_rows() > 0).then_some(batch))
    }

    /// The columns read, as a batch, including those needed only for sorting.
    fn batch(&self, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
        if self.width == self.columns.len() {
            return Ok(RecordBatch::try_new(self.schema.clone(), arrays)?);
        }
        let field = |(index, data_type): (&usize, &DataType)| {
            Field::new(self.version_schema.field(*index).name(), data_type.clone(), true)
        };
        let fields: Vec<Field> = self.columns.iter().zip(&self.types).map(field).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
    }
}
