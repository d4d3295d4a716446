//! Executes one window of a plan, and determines at commit time which versions see which of the rewritten rows.
//!
//! A rewrite keeps order, so a row's new position is its rank among the kept ones. Runs and deletions are taken from
//! the inputs as they are *at commit*: what was deleted while the rewrite ran is carried over by that rank.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::BooleanBuffer;
use bytes::Bytes;
use roaring::RoaringBitmap;

use crate::base::{Error, Pool, Result, Version};
use crate::block::{BlockReader, EncodedRowGroup};
use crate::segment;
use crate::segment::{ColumnStats, Form, Proof, Segment, SegmentSource, decode, encode, measure};
use crate::table::order::sort_columns;
use crate::table::read::group_reader::GroupReader;
use crate::table::schema::arrays::mask;
use crate::table::{
    Deletion, KeyCodec, PLACES, RowGroup, Rows, Run, Standing, StoredSchema, TableSpec, Window, key_filter,
};

/// The sizes of `n` row groups that `rows` rows are written to, evenly filled.
pub(in crate::table) fn output_rows(rows: u64, n: u64) -> Vec<u32> {
    (0..n).map(|i| (rows * (i + 1) / n - rows * i / n) as u32).collect()
}

/// Reads the kept rows of a window and encodes them again in the window's schema, one task per column; returns the row groups and, for each,
/// in which order it stands. They are as few as possible: more than the plan expects if their texts are long. `SchemaMismatch` if dictionaries have too many values to be joined: then the
/// window must be left as it is. With [`Proof::Decoded`], `Internal` if what was encoded does not say what was read. Memory: one decoded column of the window per thread.
pub fn rewrite(
    reader: &BlockReader,
    pool: &Pool,
    schemas: &[StoredSchema],
    spec: &TableSpec,
    window: &Window,
    proof: Proof,
) -> Result<Vec<(EncodedRowGroup, Standing)>> {
    if window.rows == 0 {
        return Ok(Vec::new());
    }
    let schema = &schemas[window.schema as usize];
    let fields = schema.0.fields();
    let mut inputs = Vec::with_capacity(window.inputs.len());
    for (group, kept) in window.inputs.iter().zip(&window.kept).filter(|(_, kept)| **kept != Rows::None) {
        let reader = GroupReader::with_schemas(reader, schemas, schema, group)?;
        let keep = match kept {
            Rows::Some(rows) => Some(mask(rows, group.rows).values().clone()),
            _ => None,
        };
        inputs.push(WindowGroup { reader, keep });
    }
    let columns: Vec<usize> = (0..fields.len()).collect();
    // Row groups of one tract keep the places of their rows, which come last.
    let tract = window.inputs[0].tract();
    let width = columns.len() + usize::from(tract.is_some());
    let named = |index: usize| {
        fields.get(index).map_or_else(|| "places".to_owned(), |field| format!("column '{}'", field.name()))
    };
    let type_of = |index: usize| fields.get(index).map_or(&PLACES, |field| field.data_type());
    reader.fetch(inputs.iter().flat_map(|input| input.reader.wanted(&schema.0, &columns)));
    let column = |index: usize, sizes: &[u32]| -> Result<Option<Vec<Segment>>> {
        let source = |input: &WindowGroup| -> Result<(Bytes, ColumnStats)> {
            let stored = match index < fields.len() {
                true => input.reader.stored(&schema.0, index)?,
                false => input.reader.stored_places()?,
            };
            if let Some((bytes, column)) = stored {
                return Ok((bytes, column.stats.clone()));
            }
            if index == fields.len() {
                return Err(Error::internal("row groups of several tracts are rewritten together"));
            }
            // It was written with another type, or without that column.
            let Segment { bytes, stats, .. } =
                encode(&input.reader.decode(&schema.0, &[index], Form::Exact)?.remove(0))?;
            Ok((bytes.into(), stats))
        };
        let read = inputs.iter().map(source).collect::<Result<Vec<_>>>()?;
        let mut sources = Vec::with_capacity(inputs.len());
        for (input, (bytes, stats)) in inputs.iter().zip(&read) {
            let (rows, keep) = (input.reader.group.rows as usize, input.keep.as_ref());
            sources.push(SegmentSource { bytes: bytes.clone(), rows, stats, keep });
        }
        let rewritten = segment::rewrite(&sources, type_of(index), sizes, !window.purge, proof);
        rewritten.map_err(|e| e.context(named(index)))
    };
    let mut n = window.rows.div_ceil(u64::from(window.group_rows));
    let (sizes, columns) = loop {
        let sizes = output_rows(window.rows, n);
        let columns = pool.map((0..width).collect(), |index| column(index, &sizes))?;
        match columns.into_iter().collect::<Option<Vec<_>>>() {
            Some(columns) => break (sizes, columns),
            None => n = (n * 2).min(window.rows),
        }
    };
    let order = schema.order(spec);
    let keys = order.iter().map(|name| schema.0.index_of(name)).collect::<Result<Vec<_>, _>>()?;
    let mut groups = Vec::with_capacity(sizes.len());
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    for rows in sizes {
        let mut segments: Vec<Segment> = columns.iter_mut().filter_map(Iterator::next).collect();
        let (mut ordered, mut filter) = (true, None);
        if !keys.is_empty() {
            let columns = measure_keys(&mut segments, rows, schema, &keys)?;
            ordered = sort_columns::sorted_positions(&columns)?.is_none();
            if spec.keyed {
                filter = key_filter(&KeyCodec::new(&schema.0, order)?.encode(&columns)?);
            }
        }
        let standing = tract.map_or(Standing::of(ordered), Standing::Placed);
        groups.push((EncodedRowGroup { rows, segments, filter }, standing));
    }
    Ok(groups)
}

/// A row group of a window.
struct WindowGroup<'a> {
    reader: GroupReader<'a>,
    /// The rows to keep; `None` for all.
    keep: Option<BooleanBuffer>,
}

/// The columns `keys` of a new row group. Their bounds, which determine the order of row groups, are made exact.
fn measure_keys(segments: &mut [Segment], rows: u32, schema: &StoredSchema, keys: &[usize]) -> Result<Vec<ArrayRef>> {
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(keys.len());
    for &index in keys {
        let segment = &mut segments[index];
        let bytes = Bytes::from(segment.bytes.clone());
        let array = decode(bytes, rows as usize, schema.0.field(index).data_type(), Form::Exact)?;
        if !segment.stats.exact {
            segment.stats = measure(&array);
        }
        arrays.push(array);
    }
    Ok(arrays)
}

/// Which versions see the rows of one output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remapped {
    /// Covers all rows in order.
    pub runs: Vec<Run>,
    /// Rows deleted individually, by version, ascending.
    pub deletions: Vec<Deletion>,
}

/// For fewer than one in this many rows, ranks are looked up individually.
pub(in crate::table) const WALK_SHARE: u64 = 256;

/// Runs and deletions of the outputs, from those that the `inputs` have now. `kept` are the rows of each input that the
/// rewrite kept, `sizes` the rows of each output. O(kept rows) where there are deletions, else O(runs).
pub fn remap(inputs: &[Arc<RowGroup>], kept: &[Rows], sizes: &[u32]) -> Vec<Remapped> {
    let mut runs: Vec<Run> = Vec::new();
    let mut deleted: BTreeMap<Version, RoaringBitmap> = BTreeMap::new();
    let mut offset = 0;
    for (group, kept) in inputs.iter().zip(kept) {
        let positions = kept.positions(group.rows);
        for (range, run) in group.spans() {
            let rows = positions.range_cardinality(range) as u32;
            if rows > 0 {
                runs.push(Run { rows, ..run });
            }
        }
        for deletion in &group.deletions {
            let hit = &*deletion.rows.0 & &positions;
            if hit.is_empty() {
                continue;
            }
            let target = deleted.entry(deletion.born).or_default();
            if hit.len() < positions.len() / WALK_SHARE {
                // `rank` counts the position itself.
                target.extend(hit.iter().map(|position| offset + positions.rank(position) as u32 - 1));
            } else {
                let ranked = (offset..).zip(&positions);
                target.extend(ranked.filter(|(_, position)| hit.contains(*position)).map(|(rank, _)| rank));
            }
        }
        offset += positions.len() as u32;
    }
    split(&runs, &deleted, sizes)
}

pub(in crate::table) fn split(
    runs: &[Run],
    deleted: &BTreeMap<Version, RoaringBitmap>,
    sizes: &[u32],
) -> Vec<Remapped> {
    let mut outputs = Vec::with_capacity(sizes.len());
    let mut runs = runs.iter().copied();
    let mut run = runs.next();
    let mut start = 0;
    for &size in sizes {
        let mut output = Remapped::default();
        let mut room = size;
        while room > 0 {
            let current = run.as_mut().expect("the runs cover all kept rows");
            let rows = current.rows.min(room);
            match output.runs.last_mut() {
                Some(last) if (last.born, last.died) == (current.born, current.died) => last.rows += rows,
                _ => output.runs.push(Run { rows, ..*current }),
            }
            room -= rows;
            current.rows -= rows;
            if current.rows == 0 {
                run = runs.next();
            }
        }
        for (&born, rows) in deleted {
            let mine: RoaringBitmap = rows.range(start..start + size).map(|position| position - start).collect();
            if !mine.is_empty() {
                output.deletions.push(Deletion { born, rows: mine.into() });
            }
        }
        outputs.push(output);
        start += size;
    }
    outputs
}
