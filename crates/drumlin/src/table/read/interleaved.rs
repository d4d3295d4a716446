//! Reads a piece whose row groups interleave in the sort order: they are merged, and each is decoded when the result comes to
//! where it begins, or shortly before. So a limit decodes what its rows lie among, and memory follows how many overlap.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use parking_lot::Mutex;

use super::piece_reader::PieceReader;
use super::pieces::Piece;
use crate::base::{Error, Result, waiting};
use crate::segment::{Stat, join, plain_type};
use crate::table::order::kway::{Merged, Starts};
use crate::table::order::sort_columns;
use crate::table::schema::arrays::{find, into_type};

/// A piece with fewer row groups is read as a whole, beside others: merging takes one thread.
const GROUPS_MIN: usize = 4;

type Decoded = Receiver<Result<Option<RecordBatch>>>;

/// The rows of a piece, batch by batch.
pub(in crate::table) struct Interleaved {
    shared: Arc<PieceReader>,
    state: ReadState,
}

enum ReadState {
    /// Nothing was read yet: the piece, how many row groups are decoded ahead, and how many rows a batch has at most.
    New(Piece, usize, Option<u64>),
    Merging(Box<Merged<MergeInput>>),
    Ended,
}

/// A row group, or rows written by key since.
enum MergeInput {
    Group(Arc<Mutex<PieceGroups>>, usize),
    Rows(Option<RecordBatch>),
    Drawn,
}

/// The row groups of a piece.
struct PieceGroups {
    shared: Arc<PieceReader>,
    piece: Piece,
    /// Those that no task decodes yet, in the order in which they are needed.
    waiting: VecDeque<usize>,
    running: Vec<Option<Decoded>>,
    ahead: usize,
}

impl Interleaved {
    /// Whether a piece is read like that.
    pub fn fits(piece: &Piece) -> bool {
        piece.groups.len() >= GROUPS_MIN && piece.needs_sort() && !piece.is_placed()
    }

    /// Reads nothing yet. Row groups are decoded by tasks, up to `ahead` of them before they are needed; `most` is how many rows are
    /// wanted at all.
    pub fn new(shared: Arc<PieceReader>, piece: Piece, ahead: usize, most: Option<u64>) -> Self {
        Self { shared, state: ReadState::New(piece, ahead, most) }
    }

    /// Must not be called on threads of the pool: it waits for tasks.
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        if let ReadState::New(..) = &self.state
            && let ReadState::New(piece, ahead, most) = std::mem::replace(&mut self.state, ReadState::Ended)
        {
            self.state = ReadState::Merging(Box::new(merged(&self.shared, piece, ahead, most)?));
        }
        let ReadState::Merging(merged) = &mut self.state else { return Ok(None) };
        let Some(batch) = merged.next().transpose()? else { return Ok(None) };
        self.shared.reader.metrics().rows_read.add(batch.num_rows() as u64);
        self.shared.narrowed(batch).map(Some)
    }
}

impl Iterator for Interleaved {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let shared = self.shared.clone();
        let batch = shared.named(|| self.batch()).transpose();
        if !matches!(batch, Some(Ok(_))) {
            self.state = ReadState::Ended;
        }
        batch
    }
}

fn merged(shared: &Arc<PieceReader>, piece: Piece, ahead: usize, most: Option<u64>) -> Result<Merged<MergeInput>> {
    let starts = starts(shared, &piece)?;
    let rows = shared.rows_of(&piece)?;
    let count = piece.groups.len();
    let groups = PieceGroups {
        shared: shared.clone(),
        waiting: starts.in_order().into(),
        running: (0..count).map(|_| None).collect(),
        piece,
        ahead,
    };
    let groups = Arc::new(Mutex::new(groups));
    let mut sources: Vec<MergeInput> = (0..count).map(|at| MergeInput::Group(groups.clone(), at)).collect();
    sources.extend(rows.map(|rows| MergeInput::Rows(Some(rows))));
    Ok(Merged::new(shared.read_schema(), shared.view.order()?, sources)?.begun_at(starts).limited(most))
}

/// Where the row groups of a piece begin, as far as the statistics of the first column tell by which they are ordered.
fn starts(shared: &PieceReader, piece: &Piece) -> Result<Starts> {
    let shown = shared.read_as.shown();
    let first = find(shown, &shared.view.order()?[0])?;
    let at = shared.columns.iter().position(|column| *column == first);
    let data_type =
        &shared.types[at.ok_or_else(|| Error::internal("a column that rows are ordered by is not read"))?];
    let (mut of, mut values) = (Vec::with_capacity(piece.groups.len()), Vec::new());
    for (group, _) in &piece.groups {
        let stats = shared.open(group)?.stats(shown, first);
        // Nulls come first.
        let least = stats.filter(|stats| stats.nulls == 0).and_then(|stats| stats.min);
        let value = least.and_then(|least| value_of(&least, data_type));
        of.push(value.is_some().then_some(values.len()));
        values.extend(value);
    }
    if values.is_empty() {
        return Ok(Starts::unknown(of.len()));
    }
    // Where others follow, a value of the first column alone is less than all rows that begin with it.
    Ok(Starts::new(sort_columns::comparable(&[join(&values)?])?, of))
}

/// A bound as a column of one row; `None` if it cannot be one. Of floats it says nothing of the signs of zeros and NaN, by which they
/// are ordered.
fn value_of(stat: &Stat, data_type: &DataType) -> Option<ArrayRef> {
    let plain = match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    let value: ArrayRef = match stat {
        Stat::Bool(value) => Arc::new(BooleanArray::from(vec![*value])),
        Stat::Int(value) if matches!(plain, DataType::Date32 | DataType::Time32(_)) => {
            Arc::new(Int32Array::from(vec![i32::try_from(*value).ok()?]))
        }
        Stat::Int(value) => Arc::new(Int64Array::from(vec![*value])),
        Stat::UInt(value) => Arc::new(UInt64Array::from(vec![*value])),
        Stat::Decimal(value) => {
            let array = Decimal128Array::from(vec![*value]);
            Arc::new(array.with_precision_and_scale(DECIMAL128_MAX_PRECISION, scale_of(plain)?).ok()?)
        }
        Stat::Float(_) => return None,
        Stat::Bytes(bytes) if plain_type(plain) == Some(DataType::Utf8) => {
            Arc::new(StringArray::from(vec![std::str::from_utf8(bytes).ok()?]))
        }
        Stat::Bytes(bytes) => Arc::new(BinaryArray::from(vec![bytes.as_slice()])),
    };
    into_type(value, data_type).ok()
}

fn scale_of(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    }
}

impl PieceGroups {
    /// The result of decoding a row group, which is needed now. Starts tasks for those that are needed next.
    fn take(&mut self, at: usize) -> Decoded {
        while self.running[at].is_none() || self.running.iter().flatten().count() <= self.ahead {
            let Some(next) = self.waiting.pop_front() else { break };
            let (sender, receiver) = sync_channel(1);
            let (shared, (group, rows)) = (self.shared.clone(), self.piece.groups[next].clone());
            self.shared.pool.spawn(move || {
                // The receiver is gone if the scan was dropped.
                let _ = sender.send(shared.named(|| shared.read_in_order(&group, &rows)));
            });
            self.running[next] = Some(receiver);
        }
        self.running[at].take().expect("each is drawn once")
    }
}

impl Iterator for MergeInput {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match std::mem::replace(self, MergeInput::Drawn) {
            MergeInput::Group(groups, at) => {
                let decoded = groups.lock().take(at);
                match waiting::receive(&decoded) {
                    Ok(Ok(batch)) => batch.transpose(),
                    Ok(Err(_)) => Some(Err(Error::closed("a reading task ended without a result"))),
                    Err(e) => Some(Err(e)),
                }
            }
            MergeInput::Rows(rows) => rows.map(Ok),
            MergeInput::Drawn => None,
        }
    }
}
