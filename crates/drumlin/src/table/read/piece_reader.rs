//! Reads the pieces of a scan: decodes the columns of row groups, and of rows written by key, and keeps the rows that the
//! filter keeps.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::group_reader::GroupReader;
use super::pieces::{PICK_SHARE, Piece};
use super::select::expiry::Expiry;
use super::select::truth::matching;
use crate::base::{Error, ErrorKind, Pool, Result, caught, span};
use crate::block::BlockReader;
use crate::filter::{BoundFilter, Verdict};
use crate::memtable::{Keys, RowBytes};
use crate::segment::{Form, filter_batch};
use crate::table::layout::places::{Wanted, in_places, within};
use crate::table::memory::overlay::SeenOverlay;
use crate::table::order::kway::Merged;
use crate::table::order::sort_columns;
use crate::table::schema::arrays::{into_type, mask};
use crate::table::schema::read_as::ReadAs;
use crate::table::{RowGroup, Rows, TableCodec, View};

/// What a scan reads, of each of its pieces.
pub(in crate::table) struct PieceReader {
    pub reader: Arc<BlockReader>,
    pub pool: Pool,
    pub view: View,
    /// The columns as the table is read: those of its version, or of the data set that it is part of.
    pub read_as: ReadAs,
    /// The schema of the batches.
    pub schema: SchemaRef,
    /// The columns to decode, by position in `read_as`; from `width` on, those needed only for sorting.
    pub columns: Vec<usize>,
    pub types: Vec<DataType>,
    pub width: usize,
    pub filter: Option<BoundFilter>,
    /// Which rows have expired, if some may have.
    pub expiry: Option<Expiry>,
    pub form: Form,
    /// Rows written by key since.
    pub overlay: Option<SeenOverlay>,
    /// What messages call the table.
    pub name: Option<String>,
}

impl PieceReader {
    /// Reads the rows of a piece that the filter keeps, in order, in batches of at most as many rows as a row group has.
    pub fn read(&self, piece: &Piece) -> Result<Vec<RecordBatch>> {
        self.read_wanted(piece, Wanted::All)
    }

    /// The same, of which others than the `wanted` rows may be left out.
    pub fn read_wanted(&self, piece: &Piece, wanted: Wanted) -> Result<Vec<RecordBatch>> {
        if self.columns.is_empty() {
            let rows = self.count(piece)? as usize;
            if rows == 0 {
                return Ok(Vec::new());
            }
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            return Ok(vec![RecordBatch::try_new_with_options(self.schema.clone(), Vec::new(), &options)?]);
        }
        self.named(|| self.read_piece(piece, wanted))
    }

    /// Whether rows are counted without a look at them.
    fn reads_nothing(&self) -> bool {
        self.columns.is_empty() && self.shows_all()
    }

    /// The same rows, each column in the type that costs least, [`Form::Stored`], which need not be that of other pieces.
    pub fn read_as_stored(&self, piece: &Piece) -> Result<Vec<RecordBatch>> {
        match piece.groups.as_slice() {
            [(group, rows)] if !piece.needs_sort() && !self.columns.is_empty() => self.named(|| {
                let Some(arrays) = self.columns_of(group, rows, Form::Stored)? else { return Ok(Vec::new()) };
                let names = self.columns[..self.width].iter().map(|index| self.read_as.shown().field(*index).name());
                let named = names.zip(arrays).map(|(name, array)| (name, array, true));
                Ok(vec![RecordBatch::try_from_iter_with_nullable(named)?])
            }),
            _ => self.read(piece),
        }
    }

    /// Has storage fetch the columns of a piece.
    pub fn prefetch(&self, piece: &Piece) {
        if self.reads_nothing() {
            return;
        }
        let table = &self.view.table;
        let Ok(seen) = table.schema_of(self.view.read_point.version) else { return };
        for (group, _) in &piece.groups {
            let names = self.columns.iter().map(|index| self.read_as.schema().field(*index).name().as_str());
            for (address, columns) in group.columns_by_layer(&table.schemas, seen, names) {
                self.reader.prefetch(address, &columns);
            }
        }
    }

    /// Over a network, brings what reading pieces, each with its own reader, needs into the cache, with two rounds of requests:
    /// directories, and columns, of as many as fit. Returns of how many.
    pub fn fetch<'p>(pieces: impl Iterator<Item = (&'p Self, &'p Piece)> + Clone) -> usize {
        let Some((Self { reader: blocks, .. }, _)) = pieces.clone().next() else { return 0 };
        if pieces.clone().all(|(own, _)| own.reads_nothing()) {
            return pieces.count();
        }
        let groups = |piece: &'p Piece| piece.groups.iter().map(|(group, _)| group);
        blocks
            .fetch_directories(pieces.clone().flat_map(|(_, piece)| groups(piece)).flat_map(|group| group.addresses()));
        let (mut wanted, mut bytes, mut count) = (Vec::new(), 0, 0);
        for (own, piece) in pieces {
            let schema = own.read_as.schema();
            let filtered = own.filter.iter().flat_map(|filter| filter.columns()).copied();
            let columns: BTreeSet<usize> = own.columns.iter().copied().chain(filtered).collect();
            let columns: Vec<usize> = columns.into_iter().collect();
            // What is wrong with one shows when it is read.
            let readers: Vec<GroupReader<'_>> = groups(piece).filter_map(|group| own.open(group).ok()).collect();
            bytes += readers.iter().map(|reader| reader.bytes(schema, columns.iter().copied())).sum::<u64>();
            if count > 0 && bytes > blocks.fetch_bytes_max() / 2 {
                break;
            }
            wanted.extend(readers.iter().flat_map(|reader| reader.wanted(schema, &columns)));
            if let Some(expiry) = &own.expiry {
                let undecided = readers.iter().filter(|reader| expiry.verdict(reader) == Verdict::Some);
                wanted.extend(undecided.flat_map(|reader| reader.wanted(expiry.schema(), expiry.columns())));
            }
            count += 1;
        }
        blocks.fetch(wanted);
        count
    }

    /// The number of rows of a piece that the filter keeps. Decodes no more than the filter needs.
    pub fn count(&self, piece: &Piece) -> Result<u64> {
        self.named(|| {
            let mut rows = 0;
            for (group, visible) in &piece.groups {
                rows += match self.shows_all() {
                    true => visible.count(group.rows),
                    false => self.kept(&self.open(group)?, visible)?.count(group.rows),
                };
            }
            let Some(overlay) = &self.overlay else { return Ok(rows) };
            let (keys, bytes) = overlay.rows.rows_at(piece.rows.clone());
            let kept = self.truth_of(&overlay.codec, &keys, &bytes)?;
            Ok(rows + kept.map_or(keys.len() as u64, |kept| kept.true_count() as u64))
        })
    }

    /// A piece without the row groups whose statistics rule out the filter; `None` if nothing is left.
    pub fn pruned(&self, mut piece: Piece) -> Option<Piece> {
        if !self.selects() {
            return Some(piece);
        }
        let before = piece.groups.len();
        piece.groups.retain(|(group, _)| {
            let verdict = caught(|| {
                let reader = self.open(group)?;
                let stats = |index: usize| reader.stats(self.read_as.schema(), index);
                let verdict = |filter: &BoundFilter| filter.verdict(u64::from(group.rows), &stats);
                let kept = self.filter.as_ref().is_none_or(|filter| verdict(filter) != Verdict::None);
                Ok(kept && self.expiry.as_ref().is_none_or(|expiry| expiry.verdict(&reader) != Verdict::All))
            });
            // What is wrong with it shows when it is read.
            verdict.unwrap_or(true)
        });
        self.reader.metrics().groups_pruned.add((before - piece.groups.len()) as u64);
        (!piece.groups.is_empty() || !piece.rows.is_empty()).then_some(piece)
    }

    /// Opens a row group of the table.
    pub fn open<'a>(&'a self, group: &'a RowGroup) -> Result<GroupReader<'a>> {
        let version = self.view.read_point.version;
        Ok(GroupReader::open(&self.reader, &self.view.table, version, group)?.with_constants(self.read_as.constants()))
    }

    /// Does `work`, so that its errors name the table.
    pub fn named<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        caught(work).map_err(|e| match (e.kind(), &self.name) {
            (ErrorKind::Corrupt | ErrorKind::Internal | ErrorKind::SchemaMismatch, Some(name)) => {
                e.context(format!("'{name}'"))
            }
            _ => e,
        })
    }

    fn read_piece(&self, piece: &Piece, wanted: Wanted) -> Result<Vec<RecordBatch>> {
        span!("read_piece", groups = piece.groups.len());
        let batches = self.batches_of(piece, wanted)?;
        self.reader.metrics().rows_read.add(batches.iter().map(|batch| batch.num_rows() as u64).sum());
        Ok(batches)
    }

    fn batches_of(&self, piece: &Piece, wanted: Wanted) -> Result<Vec<RecordBatch>> {
        if piece.is_placed() {
            return self.batches_of_tract(piece, wanted);
        }
        let sorts = piece.needs_sort();
        let mut batches = Vec::with_capacity(piece.groups.len() + 1);
        for (group, rows) in &piece.groups {
            batches.extend(if sorts { self.read_in_order(group, rows)? } else { self.read_group(group, rows)? });
        }
        batches.extend(self.rows_of(piece)?);
        if sorts && !batches.is_empty() {
            let sources = batches.into_iter().map(|batch| std::iter::once(Ok(batch)));
            let merged = Merged::new(self.read_schema(), self.view.order()?, sources.collect())?;
            batches = merged.collect::<Result<_>>()?;
        }
        batches.into_iter().map(|batch| self.narrowed(batch)).collect()
    }

    /// The rows of row groups of one tract that are kept, in their places; or, of these, those at an end. Decoded, and put there, by all threads.
    fn batches_of_tract(&self, piece: &Piece, wanted: Wanted) -> Result<Vec<RecordBatch>> {
        let kept = self.pool.map(piece.groups.iter().collect(), |(group, rows)| self.kept_places(group, rows))?;
        let kept =
            self.pool.map(within(kept, wanted).into_iter().zip(&piece.groups).collect(), |(kept, (group, _))| {
                let (rows, places) = kept;
                let arrays = self.columns_of_kept(&self.open(group)?, &rows, self.form)?;
                arrays.map(|arrays| Ok((self.batch(arrays)?, places))).transpose()
            })?;
        let batches = in_places(&self.pool, &self.read_schema(), kept.into_iter().flatten().collect())?;
        batches.into_iter().map(|batch| self.narrowed(batch)).collect()
    }

    /// The rows of a group of a tract that are kept, and their places.
    fn kept_places(&self, group: &RowGroup, rows: &Rows) -> Result<(Rows, UInt32Array)> {
        let reader = self.open(group)?;
        let rows = self.kept(&reader, rows)?;
        if rows == Rows::None {
            return Ok((rows, UInt32Array::from(Vec::<u32>::new())));
        }
        let places = reader.places(&rows)?.ok_or_else(|| Error::internal("a row group of a tract has places"))?;
        Ok((rows, places))
    }

    /// The rows of a group that are kept, in the order of the table.
    pub fn read_in_order(&self, group: &RowGroup, rows: &Rows) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.read_group(group, rows)? else { return Ok(None) };
        // Usually they are.
        sort_columns::sorted(batch, self.view.order()?).map(Some)
    }

    /// The rows of a piece that were written by key since.
    pub fn rows_of(&self, piece: &Piece) -> Result<Option<RecordBatch>> {
        let Some(overlay) = &self.overlay else { return Ok(None) };
        self.read_rows(overlay, piece.rows.clone())
    }

    /// A batch without the columns that are needed only for sorting.
    pub fn narrowed(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if self.width == self.columns.len() {
            return Ok(batch);
        }
        Ok(RecordBatch::try_new(self.schema.clone(), batch.columns()[..self.width].to_vec())?)
    }

    /// The schema of the batches with these columns.
    pub fn read_schema(&self) -> SchemaRef {
        if self.width == self.columns.len() {
            return self.schema.clone();
        }
        let field = |(index, data_type): (&usize, &DataType)| {
            Field::new(self.read_as.schema().field(*index).name(), data_type.clone(), true)
        };
        Arc::new(Schema::new(self.columns.iter().zip(&self.types).map(field).collect::<Vec<_>>()))
    }

    /// Whether it leaves out rows by their values.
    pub fn selects(&self) -> bool {
        self.filter.is_some() || self.expiry.is_some()
    }

    /// Whether it shows all rows of its pieces.
    pub fn shows_all(&self) -> bool {
        !self.selects() && self.overlay.is_none()
    }

    /// Those of `visible` that have not expired, that the filter keeps, and that no row written by key since hides.
    fn kept(&self, group: &GroupReader<'_>, visible: &Rows) -> Result<Rows> {
        let rows = match &self.expiry {
            None => visible.clone(),
            Some(expiry) => expiry.alive(group, visible.clone())?,
        };
        let rows = match &self.filter {
            None => rows,
            Some(filter) => matching(group, self.read_as.schema(), &rows, filter)?,
        };
        match &self.overlay {
            Some(overlay) => overlay.hide(group, rows),
            None => Ok(rows),
        }
    }

    fn read_group(&self, group: &RowGroup, rows: &Rows) -> Result<Option<RecordBatch>> {
        self.columns_of(group, rows, self.form)?.map(|arrays| self.batch(arrays)).transpose()
    }

    /// The columns of those rows of a group that are kept, in any type with their values; `None` if there are none.
    fn columns_of(&self, group: &RowGroup, rows: &Rows, form: Form) -> Result<Option<Vec<ArrayRef>>> {
        let reader = self.open(group)?;
        let rows = self.kept(&reader, rows)?;
        self.columns_of_kept(&reader, &rows, form)
    }

    /// The columns of `rows` of an open row group.
    fn columns_of_kept(&self, reader: &GroupReader<'_>, rows: &Rows, form: Form) -> Result<Option<Vec<ArrayRef>>> {
        if *rows == Rows::None {
            return Ok(None);
        }
        let group = reader.group;
        self.reader.metrics().groups_read.add(1);
        let schema = self.read_as.shown();
        if let Rows::Some(picked) = rows
            && picked.len() <= u64::from(group.rows) / PICK_SHARE
        {
            let picked: Vec<u32> = picked.iter().collect();
            return Ok(Some(reader.pick(schema, &self.columns, &picked)?));
        }
        let Rows::Some(rows) = rows else {
            return Ok(Some(reader.decode(schema, &self.columns, form)?));
        };
        // In their cheapest types there is less to move.
        let form = if form == Form::Stored { form } else { Form::Native };
        let arrays = reader.decode(schema, &self.columns, form)?;
        let named = self.columns.iter().map(|index| schema.field(*index).name()).zip(arrays);
        let kept = filter_batch(
            &RecordBatch::try_from_iter_with_nullable(named.map(|(name, array)| (name, array, true)))?,
            &mask(rows, group.rows),
        )?;
        Ok(Some(kept.columns().to_vec()))
    }

    /// Rows written by key since.
    fn read_rows(&self, overlay: &SeenOverlay, range: Range<usize>) -> Result<Option<RecordBatch>> {
        let (codec, (keys, rows)) = (&overlay.codec, overlay.rows.rows_at(range));
        if keys.is_empty() {
            return Ok(None);
        }
        let batch = self.batch(self.read_as.decode_rows(codec, &keys, &rows, &self.columns)?)?;
        let Some(kept) = self.truth_of(codec, &keys, &rows)? else { return Ok(Some(batch)) };
        let batch = filter_batch(&batch, &kept)?;
        Ok((batch.num_rows() > 0).then_some(batch))
    }

    /// Which rows written by key have not expired and are kept by the filter; `None` if all are.
    fn truth_of(&self, codec: &TableCodec, keys: &Keys, rows: &RowBytes) -> Result<Option<BooleanArray>> {
        let alive = self.expiry.as_ref().map(|expiry| expiry.alive_in_memory(codec, keys, rows)).transpose()?;
        let Some(filter) = &self.filter else { return Ok(alive.map(|alive| BooleanArray::new(alive, None))) };
        let columns = self.read_as.decode_rows(codec, keys, rows, filter.columns())?;
        let truth = filter.truth(self.read_as.schema(), keys.len(), columns)?;
        Ok(Some(BooleanArray::new(alive.map_or(truth.clone(), |alive| &alive & &truth), None)))
    }

    /// The columns read, in the scan's types, as a batch, including those needed only for sorting.
    fn batch(&self, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
        let arrays = arrays.into_iter().zip(&self.types).map(|(array, data_type)| into_type(array, data_type));
        Ok(RecordBatch::try_new(self.read_schema(), arrays.collect::<Result<_>>()?)?)
    }
}
