//! Merges row groups into others that do not overlap: in the order of the table, or in that of a layout.
//!
//! Rows are cut into row groups by their sort keys, equal ones in the order in which they stand. In a row group, rows that other versions
//! see than their neighbours in the table would have to be told apart one by one; so those of one stretch that the same versions see stay
//! together, in order. If all versions see all of them, the row group is in order.
//!
//! What is merged may be larger than memory: it is done in parts, each of the rows between two keys.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array, UInt64Array};

use super::sort::prefix;
use super::sort_columns::comparable;
use crate::base::{Cancel, Error, Pool, Result};
use crate::block::{BlockReader, EncodedRowGroup};
use crate::segment::{Form, Proof, Segment, compact, encode, encode_like, interleave, take_rows};
use crate::table::layout::curve::curve;
use crate::table::layout::laying::{Laying, new_places};
use crate::table::read::group_reader::GroupReader;
use crate::table::schema::arrays::find;
use crate::table::vacuum::rewrite::output_rows;
use crate::table::write::encode::BYTES_MAX;
use crate::table::{
    Classes, KeyCodec, PLACES, ROWS_MAX, RowGroup, Rows, Standing, StoredSchema, TableSpec, Tract, Window, key_filter,
};

/// The most rows, and bytes of rows, that are merged in memory at once.
const PART_ROWS: u64 = 16 * ROWS_MAX as u64;
const PART_BYTES: u64 = 256 << 20;
/// One in as many rows is looked at to find the keys between which parts lie.
const SAMPLE: usize = 1024;

/// How a table's rows are read and written again.
struct Merging<'a> {
    pool: &'a Pool,
    spec: &'a TableSpec,
    schema: &'a StoredSchema,
    proof: Proof,
    /// The places of the sort columns.
    sort: Vec<usize>,
    inputs: Vec<(GroupReader<'a>, &'a Rows)>,
    /// The first stretch of each input, and the rows at which its others begin.
    stretches: Vec<(u32, Vec<u32>)>,
    /// The least and the greatest key of each input, if they are merged in parts.
    ends: Vec<(Vec<u8>, Vec<u8>)>,
    /// By what they are laid out, if they are not brought into the order of the table.
    laid_out: Option<LaidOut>,
}

/// How row groups of a table without an order are laid out.
struct LaidOut {
    tract: Tract,
    /// The places of the rows of each input that are kept.
    places: Vec<Vec<u32>>,
    /// Where all rows of each input are on a curve through the values of the columns; `None` if these sort them, one after the other.
    curve: Option<Vec<UInt64Array>>,
}

/// Rows of an input between two keys.
struct Picked {
    positions: UInt32Array,
    /// Their places among the rows that are kept.
    ranks: Vec<u32>,
    /// The keys of all rows of the input; `None` if it has none here.
    keys: Option<arrow::row::Rows>,
    /// Their places in `keys`.
    at: Vec<u32>,
}

/// Reads the rows of a set and encodes them again, merged: in the order of the table, or laid out as `laying` says. Hands each row group to
/// `sink`, with how its rows stand. Returns where the kept rows of each input are, counted over all outputs. `SchemaMismatch` if dictionaries have too many values to be joined. With [`Proof::Decoded`], `Internal` if what was
/// encoded does not say what was read.
///
/// Memory: the rows of a part, once for each thread by columns, and four bytes for each row of the set.
#[expect(clippy::too_many_arguments, reason = "what is merged, of which table, how, and what takes the result")]
pub fn merge_groups<'a>(
    reader: &'a BlockReader,
    pool: &'a Pool,
    schemas: &'a [StoredSchema],
    spec: &'a TableSpec,
    set: &'a Window,
    laying: Option<&Laying>,
    classes: &Classes,
    proof: Proof,
    cancel: &Cancel,
    mut sink: impl FnMut(EncodedRowGroup, Standing) -> Result<()>,
) -> Result<Vec<Vec<u32>>> {
    let schema = &schemas[set.schema as usize];
    let names = laying.map_or_else(|| schema.order(spec), |laying| &laying.columns);
    let sort = names.iter().map(|name| find(&schema.0, name)).collect::<Result<Vec<_>>>()?;
    reader.fetch_directories(set.inputs.iter().flat_map(|group| group.addresses()));
    let open = |(group, kept): (&'a Arc<RowGroup>, &'a Rows)| {
        Ok((GroupReader::with_schemas(reader, schemas, schema, group)?, kept))
    };
    let inputs = set.inputs.iter().zip(&set.kept).map(open).collect::<Result<Vec<_>>>()?;
    let (stretches, ends) = (stretches(set, classes), Vec::new());
    let mut merging = Merging { pool, spec, schema, proof, sort, inputs, stretches, ends, laid_out: None };
    merging.laid_out = laying.map(|laying| merging.laid_out_as(laying)).transpose()?;
    let bytes_a_row = merging.bytes_a_row()?;
    let most = (BYTES_MAX / bytes_a_row).clamp(1, u64::from(set.group_rows)) as u32;
    let part_rows = (PART_BYTES / bytes_a_row).clamp(u64::from(most), PART_ROWS);
    let bounds = merging.bounds(set.rows, part_rows, cancel)?;
    let mut to: Vec<Vec<u32>> =
        set.kept.iter().zip(&set.inputs).map(|(kept, group)| vec![0; kept.count(group.rows) as usize]).collect();
    let mut next = 0;
    let lows = std::iter::once(None).chain(bounds.iter().map(Some));
    for (low, high) in lows.zip(bounds.iter().map(Some).chain([None])) {
        cancel.check()?;
        let outputs = merging.part(low, high, most, |input, rank| {
            to[input][rank as usize] = next;
            next += 1;
        })?;
        outputs.into_iter().try_for_each(|(group, standing)| sink(group, standing))?;
    }
    if u64::from(next) != set.rows {
        return Err(Error::closed(format!("only {next} of {} rows were merged", set.rows)));
    }
    Ok(to)
}

/// Where stretches of rows that the same versions see begin: of each input, the number of its first, and the rows at which others begin.
fn stretches(set: &Window, classes: &Classes) -> Vec<(u32, Vec<u32>)> {
    let (mut number, mut last) = (0, None);
    let mut of_group = |group: &Arc<RowGroup>| {
        let (mut first, mut begins) = (None, Vec::new());
        for (range, run) in group.spans() {
            let class = classes.of_run(&run);
            let new = last.is_some_and(|last| last != class);
            number += u32::from(new);
            last = Some(class);
            match first {
                None => first = Some(number),
                Some(_) if new => begins.push(range.start),
                Some(_) => {}
            }
        }
        (first.unwrap_or(number), begins)
    };
    set.inputs.iter().map(&mut of_group).collect()
}

impl Merging<'_> {
    fn laid_out_as(&self, laying: &Laying) -> Result<LaidOut> {
        let curve = match laying.curve {
            false => None,
            true => {
                let of_input = |input: usize| self.inputs[input].0.decode(&self.schema.0, &self.sort, Form::Exact);
                Some(curve(self.pool, &self.pool.map((0..self.inputs.len()).collect(), of_input)?)?)
            }
        };
        Ok(LaidOut { tract: laying.tract, places: new_places(&self.inputs)?, curve })
    }

    fn keys(&self, input: usize) -> Result<arrow::row::Rows> {
        if let Some(curve) = self.laid_out.as_ref().and_then(|laid_out| laid_out.curve.as_ref()) {
            return comparable(&[Arc::new(curve[input].clone())]);
        }
        comparable(&self.inputs[input].0.decode(&self.schema.0, &self.sort, Form::Exact)?)
    }

    /// Bytes of a row in memory, of the input whose rows take most where they are stored.
    fn bytes_a_row(&self) -> Result<u64> {
        let stored = |reader: &GroupReader<'_>| reader.group.bytes() / u64::from(reader.group.rows);
        let Some((reader, _)) = self.inputs.iter().max_by_key(|(reader, _)| stored(reader)) else { return Ok(1) };
        reader.bytes_a_row(&self.schema.0)
    }

    /// Keys between which parts of about `part_rows` rows lie, ascending.
    fn bounds(&mut self, rows: u64, part_rows: u64, cancel: &Cancel) -> Result<Vec<Vec<u8>>> {
        if rows <= part_rows {
            return Ok(Vec::new());
        }
        let sample = |input: usize| {
            cancel.check()?;
            let keys = self.keys(input)?;
            let bytes = |row: usize| keys.row(row).as_ref().to_vec();
            let least = (0..keys.num_rows()).min_by_key(|row| keys.row(*row)).map_or_else(Vec::new, bytes);
            let greatest = (0..keys.num_rows()).max_by_key(|row| keys.row(*row)).map_or_else(Vec::new, bytes);
            let sampled: Vec<Vec<u8>> = (0..keys.num_rows()).step_by(SAMPLE).map(bytes).collect();
            Ok(((least, greatest), sampled))
        };
        let read = self.pool.map((0..self.inputs.len()).collect(), sample)?;
        let (ends, sampled): (Vec<_>, Vec<_>) = read.into_iter().unzip();
        self.ends = ends;
        let mut sampled = sampled.concat();
        sampled.sort_unstable();
        let step = (sampled.len() as u64 * part_rows / rows).max(1) as usize;
        let mut bounds: Vec<Vec<u8>> = sampled.into_iter().skip(step).step_by(step).collect();
        bounds.dedup();
        Ok(bounds)
    }

    /// The rows to keep of an input with keys from `low` on and below `high`.
    fn pick(&self, input: usize, low: Option<&Vec<u8>>, high: Option<&Vec<u8>>) -> Result<Picked> {
        let (reader, kept) = &self.inputs[input];
        let (mut positions, mut ranks) = (Vec::new(), Vec::new());
        let outside = self.ends.get(input).is_some_and(|(least, greatest)| {
            low.is_some_and(|low| greatest < low) || high.is_some_and(|high| least >= high)
        });
        if outside {
            return Ok(Picked { positions: Vec::<u32>::new().into(), ranks, keys: None, at: positions });
        }
        let keys = self.keys(input)?;
        for (rank, row) in (0..).zip(&kept.positions(reader.group.rows)) {
            let key = keys.row(row as usize);
            let key = key.as_ref();
            if low.is_none_or(|low| key >= &low[..]) && high.is_none_or(|high| key < &high[..]) {
                positions.push(row);
                ranks.push(rank);
            }
        }
        let at = positions.clone();
        Ok(Picked { positions: positions.into(), ranks, keys: Some(keys), at })
    }

    /// Merges the rows between two keys into row groups of at most `most` rows; tells `place` of each row of these, in order, its input
    /// and its place among the rows kept of that.
    fn part(
        &self,
        low: Option<&Vec<u8>>,
        high: Option<&Vec<u8>>,
        most: u32,
        mut place: impl FnMut(usize, u32),
    ) -> Result<Vec<(EncodedRowGroup, Standing)>> {
        let picked = self.pool.map((0..self.inputs.len()).collect(), |input| self.pick(input, low, high))?;
        let key = |row: &(u32, u32)| {
            let Picked { keys, at, .. } = &picked[row.0 as usize];
            keys.as_ref().map(|keys| keys.row(at[row.1 as usize] as usize))
        };
        // Most keys differ in their first bytes.
        let compare =
            |a: &(u128, (u32, u32)), b: &(u128, (u32, u32))| a.0.cmp(&b.0).then_with(|| key(&a.1).cmp(&key(&b.1)));
        let of_input = |input: usize| {
            let row = |at: u32| {
                let row = (input as u32, at);
                (key(&row).map_or(0, |key| prefix(key.as_ref())), row)
            };
            let mut rows: Vec<(u128, (u32, u32))> = (0..picked[input].at.len() as u32).map(row).collect();
            rows.sort_by(compare);
            Ok(rows)
        };
        let mut keyed = self.pool.map((0..picked.len()).collect(), of_input)?.concat();
        // A stable sort finds the stretches that are in order, and merges them.
        keyed.sort_by(compare);
        let mut rows: Vec<(u32, u32)> = keyed.into_iter().map(|(_, row)| row).collect();
        let mut sizes: Vec<(u32, bool)> = output_rows(rows.len() as u64, (rows.len() as u64).div_ceil(u64::from(most)))
            .into_iter()
            .map(|size| (size, true))
            .collect();
        let mut start = 0;
        for (size, ordered) in &mut sizes {
            let rows = &mut rows[start..start + *size as usize];
            rows.sort_by_key(|row| self.stretch(row.0 as usize, picked[row.0 as usize].at[row.1 as usize]));
            *ordered = rows.windows(2).all(|pair| key(&pair[0]) <= key(&pair[1]));
            rows.iter().for_each(|row| place(row.0 as usize, picked[row.0 as usize].ranks[row.1 as usize]));
            start += *size as usize;
        }
        let columns: Vec<usize> = (0..self.schema.0.fields().len()).collect();
        let columns = self.pool.map(columns, |column| self.column(column, &picked, &rows, &sizes))?;
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        let mut groups = Vec::with_capacity(sizes.len());
        let mut start = 0;
        for (size, ordered) in sizes {
            let encoded: Vec<(Segment, ArrayRef)> = columns.iter_mut().filter_map(Iterator::next).collect();
            let filter = match self.spec.keyed {
                false => None,
                true => {
                    let codec = KeyCodec::new(&self.schema.0, self.schema.order(self.spec))?;
                    let keys: Vec<ArrayRef> = self.sort.iter().map(|at| encoded[*at].1.clone()).collect();
                    key_filter(&codec.encode(&keys)?)
                }
            };
            let mut segments: Vec<Segment> = encoded.into_iter().map(|(segment, _)| segment).collect();
            let own = &rows[start..start + size as usize];
            start += size as usize;
            let standing = match &self.laid_out {
                None => Standing::of(ordered),
                Some(LaidOut { tract, places, .. }) => {
                    let place = |(input, at): &(u32, u32)| {
                        places[*input as usize][picked[*input as usize].ranks[*at as usize] as usize]
                    };
                    let places: ArrayRef = Arc::new(UInt32Array::from_iter_values(own.iter().map(place)));
                    let mut segment = encode(&places)?;
                    if self.proof == Proof::Decoded {
                        segment.prove(&places, &PLACES)?;
                    }
                    segments.push(segment);
                    Standing::Placed(*tract)
                }
            };
            groups.push((EncodedRowGroup { rows: size, segments, filter }, standing));
        }
        Ok(groups)
    }

    /// The stretch that a row of an input is of.
    fn stretch(&self, input: usize, row: u32) -> u32 {
        let (first, begins) = &self.stretches[input];
        first + begins.partition_point(|begin| *begin <= row) as u32
    }

    /// A column of the outputs: encoded, and the sort columns also as they are.
    fn column(
        &self,
        column: usize,
        picked: &[Picked],
        rows: &[(u32, u32)],
        sizes: &[(u32, bool)],
    ) -> Result<Vec<(Segment, ArrayRef)>> {
        let field = self.schema.0.field(column);
        let named = |e: Error| e.context(format!("column '{}'", field.name()));
        let (mut sources, mut scheme) = (Vec::with_capacity(picked.len()), None);
        for ((reader, _), picked) in self.inputs.iter().zip(picked) {
            if picked.positions.is_empty() {
                sources.push(None);
                continue;
            }
            if scheme.is_none() {
                scheme = Some(reader.decode_with_scheme(&self.schema.0, column, Form::Exact)?.1);
            }
            let whole = reader.decode(&self.schema.0, &[column], Form::Exact)?.remove(0);
            sources.push(Some(match picked.positions.len() == whole.len() {
                true => whole,
                false => take_rows(&whole, &picked.positions)?,
            }));
        }
        // Inputs without rows in this part have no place among the sources.
        let slots: Vec<usize> = sources
            .iter()
            .scan(0, |next, source| Some(std::mem::replace(next, *next + usize::from(source.is_some()))))
            .collect();
        let sources: Vec<ArrayRef> = sources.into_iter().flatten().collect();
        let scheme = scheme.unwrap_or_default();
        let (mut segments, mut start) = (Vec::with_capacity(sizes.len()), 0);
        for (size, _) in sizes {
            let places: Vec<(usize, usize)> = rows[start..start + *size as usize]
                .iter()
                .map(|(input, at)| (slots[*input as usize], *at as usize))
                .collect();
            start += *size as usize;
            // What rows that are gone had leaves nothing behind.
            let merged = compact(&interleave(&sources, &places).map_err(named)?)?;
            let kept = if self.sort.contains(&column) { merged.clone() } else { merged.slice(0, 0) };
            let mut segment = encode_like(&merged, field.data_type(), &scheme).map_err(named)?.0;
            if self.proof == Proof::Decoded {
                segment.prove(&merged, field.data_type()).map_err(named)?;
            }
            segments.push((segment, kept));
        }
        Ok(segments)
    }
}
