//! Reads a version: selects row groups and rows, decodes them in parallel, and returns them in order.
//!
//! A scan holds its table's state, so later commits do not affect it. Statistics skip row groups; the filter is exact.
//! Tasks run ahead of the consumer by a fixed number of row groups, which bounds memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::interleaved::Interleaved;
use super::piece_reader::PieceReader;
use super::pieces::{Piece, keep_for_limit, output_types};
use super::prefetch::WINDOW;
use super::scan_options::ScanOptions;
use super::select::expiry::Expiry;
use super::selected::Selected;
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Error, ErrorKind, Pool, Result, waiting};
use crate::block::{Address, BlockReader};
use crate::filter::Filter;
use crate::segment::Form;
use crate::table::index::mask::IndexCost;
use crate::table::layout::places::Wanted;
use crate::table::memory::overlay::SeenOverlay;
use crate::table::schema::arrays::{find, find_requested};
use crate::table::schema::read_as::{Constants, ReadAs};
use crate::table::{Ahead, Renew, RowGroup, ScanPart, View, is_hidden};

/// Reads a version of a table, batch by batch.
pub struct Scan {
    pub(in crate::table) shared: Arc<PieceReader>,
    /// In the order of the result; each cluster makes one batch.
    pub(in crate::table) pieces: VecDeque<Piece>,
    /// How many pieces at the front are known to have rows that the filter may keep.
    pruned: usize,
    /// How many pieces at the front storage has been asked to prefetch.
    fetching: usize,
    running: VecDeque<Running>,
    /// Batches of the first piece that was under way, still to be returned.
    ready: VecDeque<RecordBatch>,
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
    /// What indexes said before it began, if they were asked.
    pub(in crate::table) by_index: Option<IndexCost>,
}

/// A piece that is being read.
enum Running {
    /// By a task, as a whole; as many row groups at once.
    Whole(Receiver<Result<Vec<RecordBatch>>>, usize),
    /// As it is asked for.
    Interleaved(Interleaved),
}

/// What finds the rows of a view that have expired; `None` if none has, as statistics of `pieces` may tell. Then all is as if nothing would
/// expire: what is counted, and in which parts it is read.
fn expiry_of(reader: &BlockReader, view: &View, pieces: Option<&Vec<Piece>>) -> Result<Option<Expiry>> {
    let (table, version) = (&view.table, view.read_point.version);
    let groups = |pieces: &Vec<Piece>, expiry: &Expiry| {
        let groups = pieces.iter().flat_map(|piece| &piece.groups).map(|(group, _)| &**group);
        expiry.spares_all(reader, table, version, groups)
    };
    let found = Expiry::at(table, view.read_point)?;
    Ok(found.filter(|expiry| !pieces.is_some_and(|pieces| groups(pieces, expiry))))
}

/// The schema of batches that have these columns of `schema` in these types.
fn schema_of(schema: &SchemaRef, columns: &[usize], types: &[DataType]) -> SchemaRef {
    let field = |(index, data_type): (&usize, &DataType)| {
        let field = schema.fields()[*index].clone();
        match field.data_type() == data_type {
            true => field,
            false => Arc::new(Field::clone(&field).with_data_type(data_type.clone())),
        }
    };
    let fields: Vec<FieldRef> = columns.iter().zip(types).map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// How often a scan may continue in a newer state.
const RENEWALS_MAX: usize = 5;

/// The number of pieces that are pruned at once, before tasks for the others are started: a task for each would take longer.
const PRUNE_AHEAD: usize = 1024;

/// The number of pieces that are fetched before they are read.
const FETCH_AHEAD: usize = 16;

impl Scan {
    /// Prepares to read what `view` shows. Reads directories if the order or the types need them, but no rows. If blocks
    /// turn out to be gone, now or later, it continues with the view that `renew` returns. `read_as` are the columns in
    /// which the table is read, if they are not its own.
    ///
    /// # Errors
    /// `NotFound` or `InvalidArgument` if a column or the filter is not of the schema; `Corrupt` or `Unavailable` if a directory cannot be
    /// read.
    pub fn new(
        reader: Arc<BlockReader>,
        pool: Pool,
        mut view: View,
        read_as: Option<&ReadAs>,
        options: &ScanOptions,
        renew: Option<Renew>,
    ) -> Result<Self> {
        for _ in 0..RENEWALS_MAX {
            let prepared =
                Self::prepare(reader.clone(), pool.clone(), view.clone(), None, read_as, options, renew.clone());
            match (prepared, &renew) {
                (Err(e), Some(renew)) if e.kind() == ErrorKind::SnapshotExpired => view = renew(&view)?,
                (prepared, _) => return prepared,
            }
        }
        Self::prepare(reader, pool, view, None, read_as, options, renew)
    }

    /// Prepares to read part of what `view` shows.
    pub(in crate::table) fn of_selected(
        reader: Arc<BlockReader>,
        pool: Pool,
        view: View,
        selected: Selected,
        read_as: &ReadAs,
        options: &ScanOptions,
    ) -> Result<Self> {
        Self::prepare(reader, pool, view, Some(selected), Some(read_as), options, None)
    }

    fn prepare(
        reader: Arc<BlockReader>,
        pool: Pool,
        view: View,
        selected: Option<Selected>,
        read_as: Option<&ReadAs>,
        options: &ScanOptions,
        renew: Option<Renew>,
    ) -> Result<Self> {
        let (table, read_point) = (view.table.clone(), view.read_point);
        if options.tail.is_some() && (options.limit.is_some() || options.offset > 0) {
            return Err(Error::invalid("give a limit or offset (first rows) or a tail (last rows), not both"));
        }
        let version = read_point.version;
        let schema = table.schema_of(version)?;
        // A data set may be read without columns, to count its rows.
        let counts = read_as.is_some();
        let own = || ReadAs::new(schema.0.clone(), Constants::new());
        let read_as = read_as.cloned().map_or_else(own, |read_as| read_as.of(&schema.0));
        let version_schema = read_as.schema().clone();
        let mut columns: Vec<usize> = match &options.columns {
            None => {
                let fields = version_schema.fields().iter().enumerate();
                fields.filter(|(_, field)| !is_hidden(field)).map(|(at, _)| at).collect()
            }
            Some(names) if names.is_empty() && counts => Vec::new(),
            Some(names) => find_requested(&version_schema, names)?,
        };
        let width = columns.len();
        if width == 0 && !counts {
            return Err(Error::invalid("the table has no columns"));
        }
        let filter = options.filter.as_ref().map(|filter| filter.bind(&version_schema)).transpose()?;
        let all = || Selected::all(&reader, &pool, &view, &read_as, options, false);
        let Selected { pieces, overlay, by_index } = selected.map_or_else(all, Ok)?;
        if width > 0 && pieces.iter().any(Piece::needs_sort) {
            for name in table.order_of(version)? {
                let index = find(&version_schema, name)?;
                if !columns.contains(&index) {
                    columns.push(index);
                }
            }
        }
        // Rows in memory have no statistics; a limit may end the scan before many directories are needed.
        let asks = overlay.is_none() && options.limit.is_none() && !reader.fetches();
        let expiry = expiry_of(&reader, &view, if asks { Some(&pieces) } else { None })?;
        let form = if options.native { Form::Native } else { Form::Exact };
        if form == Form::Native && width > 0 {
            // All directories are needed to choose the types, so they are requested together.
            let groups: Vec<&Arc<RowGroup>> =
                pieces.iter().flat_map(|piece| &piece.groups).map(|(group, _)| group).collect();
            let addresses: Vec<_> = groups.into_iter().flat_map(|group| group.addresses()).collect();
            addresses.iter().for_each(|address| reader.prefetch(address, &[]));
            reader.fetch_directories(addresses.iter().copied());
            pool.map(addresses, |address| reader.directory(address).map(drop))?;
        }
        let types = output_types(&reader, &table, version, &read_as, &columns, &pieces, form)?;
        let schema = schema_of(&version_schema, &columns[..width], &types);
        let name = options.name.clone();
        let shared = PieceReader {
            reader,
            pool,
            view,
            read_as,
            schema,
            columns,
            types,
            width,
            filter,
            expiry,
            form,
            overlay,
            name,
        };
        let mut scan = Self {
            shared: Arc::new(shared),
            pieces: pieces.into(),
            pruned: 0,
            fetching: 0,
            running: VecDeque::new(),
            ready: VecDeque::new(),
            left: options.limit.map(|limit| limit.saturating_add(options.offset)),
            tail: options.tail,
            handed: 0,
            skip: options.offset,
            options: options.clone(),
            renew,
            renewals: 0,
            by_index,
        };
        if scan.shared.shows_all() {
            keep_for_limit(&mut scan.pieces, &mut scan.skip, &mut scan.left, scan.tail);
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

    /// What stops it.
    pub(in crate::table) fn cancel(&self) -> Cancel {
        self.options.cancel.clone()
    }

    /// The filter.
    pub(in crate::table) fn filter(&self) -> Option<&Filter> {
        self.options.filter.as_ref()
    }

    /// What it reads.
    pub fn view(&self) -> &View {
        &self.shared.view
    }

    /// All rows, or all rows left, at once, decoded by all threads.
    ///
    /// # Errors
    /// `Corrupt` or `Unavailable` if data cannot be read, `SnapshotExpired` if the version is gone, `Cancelled`.
    pub fn collect(mut self) -> Result<Vec<RecordBatch>> {
        loop {
            // What one thread merges is decoded by the others.
            let few = self.pieces.len() <= self.shared.pool.threads();
            let merges = few && !self.shared.columns.is_empty() && self.pieces.iter().any(Interleaved::fits);
            if merges || self.is_bounded() || self.skip > 0 || self.has_begun() {
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
            let begun = scan.is_bounded() || scan.skip > 0 || scan.has_begun();
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
        if !self.shared.shows_all() || self.is_bounded() || self.skip > 0 || self.has_begun() {
            return None;
        }
        Some(self.drain_parts())
    }

    /// Its parts, in order, to be decoded by the caller on any thread, of a scan without a limit, offset or tail.
    pub fn into_parts(mut self) -> Vec<ScanPart> {
        debug_assert!(!self.is_bounded() && self.skip == 0 && !self.has_begun());
        self.drain_parts()
    }

    /// The same in any order of the rows, as that costs least.
    pub fn into_unordered_parts(mut self) -> Vec<ScanPart> {
        self.pieces = std::mem::take(&mut self.pieces).into_iter().flat_map(Piece::in_any_order).collect();
        self.into_parts()
    }

    fn drain_parts(&mut self) -> Vec<ScanPart> {
        let part = |piece| ScanPart { shared: self.shared.clone(), piece, cancel: self.options.cancel.clone() };
        self.pieces.drain(..).map(part).collect()
    }

    /// The same scan, from the beginning.
    ///
    /// # Errors
    /// `SnapshotExpired` if the version is gone.
    pub fn again(&self) -> Result<Scan> {
        let (reader, pool) = (self.shared.reader.clone(), self.shared.pool.clone());
        let (view, read_as) = (self.shared.view.clone(), Some(&self.shared.read_as));
        Scan::new(reader, pool, view, read_as, &self.options, self.renew.clone())
    }

    /// The same with all row writes, if it has only those that may be in the result.
    pub(in crate::table) fn with_all_row_writes(self) -> Result<Self> {
        let shared = &self.shared;
        if shared.overlay.as_ref().is_none_or(SeenOverlay::is_whole) {
            return Ok(self);
        }
        let PieceReader { reader, pool, view, read_as, .. } = &**shared;
        let selected = Selected::all(reader, pool, view, read_as, &self.options, true)?;
        let (reader, pool, view) = (reader.clone(), pool.clone(), view.clone());
        Self::prepare(reader, pool, view, Some(selected), Some(read_as), &self.options, self.renew.clone())
    }

    fn has_begun(&self) -> bool {
        !self.running.is_empty() || !self.ready.is_empty()
    }

    fn is_bounded(&self) -> bool {
        self.left.is_some() || self.tail.is_some()
    }

    /// The rows of all pieces.
    fn decode_all(&mut self) -> Result<Vec<RecordBatch>> {
        let (shared, cancel) = (self.shared.clone(), self.options.cancel.clone());
        let pieces: Vec<Piece> = std::mem::take(&mut self.pieces).into();
        let ahead = shared.reader.fetches().then(Ahead::default);
        let batches = self.shared.pool.map((0..pieces.len()).collect(), |at: usize| {
            cancel.check()?;
            if let Some(ahead) = &ahead {
                ahead.before(at, pieces.len(), |range| {
                    PieceReader::fetch(pieces[range].iter().map(|piece| (&*shared, piece)))
                });
            }
            shared.read(&pieces[at])
        })?;
        Ok(batches.into_iter().flatten().collect())
    }

    /// If blocks are gone, continues in a newer state, after the rows already returned. The order of a version's rows is the
    /// same in all states.
    pub(in crate::table) fn go_on(&mut self, mut error: Error) -> Result<()> {
        while let Some(renew) = self.renew.clone().filter(|_| error.kind() == ErrorKind::SnapshotExpired) {
            if self.renewals == RENEWALS_MAX {
                break;
            }
            self.renewals += 1;
            let (reader, pool) = (self.shared.reader.clone(), self.shared.pool.clone());
            match renew(&self.shared.view).and_then(|view| {
                Scan::prepare(reader, pool, view, None, Some(&self.shared.read_as), &self.options, Some(renew))
            }) {
                // Rows before those already returned may be gone: where to go on is not known.
                Ok(next) if self.handed > 0 && next.was_purged_since(self) && !planted(Bug::ScanOnPurged) => {
                    error = Error::snapshot_expired("rows of the version were erased while it was read; read again");
                    break;
                }
                Ok(next) if next.schema() == self.schema() => {
                    let (handed, renewals) = (self.handed, self.renewals);
                    *self = Self { handed, skip: next.skip + handed, renewals, ..next };
                    return Ok(());
                }
                // The cheapest types to decode have changed.
                Ok(_) => break,
                Err(e) => error = e,
            }
        }
        self.pieces.clear();
        self.running.clear();
        self.ready.clear();
        Err(error)
    }

    fn was_purged_since(&self, then: &Scan) -> bool {
        self.shared.view.table.lineage.purged > then.shared.view.table.lineage.purged
    }

    /// Has storage fetch what the next tasks will read, so that they compute instead of waiting.
    fn fetch_ahead(&mut self) {
        let shared = &self.shared;
        let window = if shared.reader.fetches() { WINDOW } else { FETCH_AHEAD };
        let ahead = if self.left.is_some() { 0 } else { window };
        let ahead = if shared.selects() { ahead.min(self.pruned) } else { ahead };
        if shared.reader.fetches() {
            // Many together, while others that were fetched are read.
            if self.fetching < ahead.min(self.pieces.len()) && self.fetching <= ahead / 2 {
                let next = self.pieces.range(self.fetching..ahead.min(self.pieces.len()));
                self.fetching += PieceReader::fetch(next.map(|piece| (&**shared, piece)));
            }
            return;
        }
        self.pieces.iter().take(ahead).skip(self.fetching).for_each(|piece| shared.prefetch(piece));
        self.fetching = self.fetching.max(ahead.min(self.pieces.len()));
    }

    /// Drops pieces at the front whose statistics rule out the filter, until one may have rows.
    fn prune_ahead(&mut self) {
        if !self.shared.selects() {
            return;
        }
        // A limit may end the scan before many directories are needed.
        let ahead = if self.left.is_some() { self.tasks_ahead() } else { PRUNE_AHEAD };
        while self.pruned == 0 && !self.pieces.is_empty() {
            let next: Vec<Piece> = self.pieces.drain(..ahead.min(self.pieces.len())).collect();
            let groups = next.iter().flat_map(|piece| &piece.groups);
            let addresses: Vec<&Address> = groups.flat_map(|(group, _)| group.addresses()).collect();
            addresses.iter().for_each(|address| self.shared.reader.prefetch(address, &[]));
            self.shared.reader.fetch_directories(addresses);
            let kept = self.shared.pool.map(next, |piece| Ok(self.shared.pruned(piece)));
            let kept: Vec<Piece> = kept.into_iter().flatten().flatten().collect();
            self.pruned = kept.len();
            kept.into_iter().rev().for_each(|piece| self.pieces.push_front(piece));
        }
    }

    /// Starts tasks, `running` of other scans being under way: how many are now, and how many are enough.
    pub fn start(&mut self, running: usize) -> (usize, usize) {
        if self.tail.is_none() {
            self.run_ahead_of(running);
        }
        (running + self.row_groups_under_way(), self.tasks_ahead())
    }

    /// How many row groups are decoded, or will soon be; the results of tasks are in memory until they are asked for.
    fn row_groups_under_way(&self) -> usize {
        let of = |running: &Running| if let Running::Whole(_, groups) = running { *groups } else { 1 };
        self.running.iter().map(of).sum()
    }

    /// Starts tasks until enough run ahead.
    fn run_ahead(&mut self) {
        self.run_ahead_of(0);
    }

    /// How many tasks run ahead: unlimited scans keep every thread busy, with one finished result per thread; a limit may
    /// end the scan soon.
    fn tasks_ahead(&self) -> usize {
        self.shared.pool.threads() * if self.left.is_some() { 1 } else { 2 }
    }

    fn run_ahead_of(&mut self, others: usize) {
        self.prune_ahead();
        self.fetch_ahead();
        let ahead = self.tasks_ahead();
        while others + self.row_groups_under_way() < ahead
            && let Some(piece) = self.pieces.pop_front()
        {
            self.pruned = self.pruned.saturating_sub(1);
            self.fetching = self.fetching.saturating_sub(1);
            let shared = self.shared.clone();
            if !shared.columns.is_empty() && Interleaved::fits(&piece) {
                let rows = Interleaved::new(shared, piece, ahead, self.left);
                self.running.push_back(Running::Interleaved(rows));
                continue;
            }
            let wanted = Wanted::first(self.left);
            let groups = if piece.is_placed() { piece.groups.len() } else { 1 };
            let (sender, receiver) = sync_channel(1);
            self.shared.pool.spawn(move || {
                // The receiver is gone if the scan was dropped.
                let _ = sender.send(shared.read_wanted(&piece, wanted));
            });
            self.running.push_back(Running::Whole(receiver, groups));
        }
    }

    /// The next batch that any piece gives.
    fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            if let Err(e) = self.options.cancel.check() {
                return Some(Err(e));
            }
            if let Some(batch) = self.ready.pop_front() {
                return Some(Ok(batch));
            }
            self.run_ahead();
            let result = match self.running.pop_front()? {
                Running::Whole(receiver, _) => waiting::receive(&receiver),
                Running::Interleaved(mut rows) => {
                    if let Some(batch) = rows.next() {
                        self.running.push_front(Running::Interleaved(rows));
                        return Some(batch);
                    }
                    continue;
                }
            };
            let result = match result {
                Ok(result) => result,
                Err(e) => return Some(Err(e)),
            };
            match result {
                Ok(Ok(batches)) => self.ready.extend(batches),
                Ok(Err(e)) => return Some(Err(e)),
                Err(_) => return Some(Err(Error::closed("a reading task ended without a result"))),
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
            let wanted = Wanted::Last(tail - rows);
            for batch in self.shared.read_wanted(&piece, wanted)?.into_iter().rev() {
                let n = batch.num_rows() as u64;
                let skip = n.saturating_sub(tail.saturating_sub(rows)) as usize;
                rows += n;
                batches.push_front(batch.slice(skip, batch.num_rows() - skip));
            }
        }
        self.pieces.clear();
        self.ready = batches.into_iter().filter(|batch| batch.num_rows() > 0).collect();
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
            self.ready.clear();
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
