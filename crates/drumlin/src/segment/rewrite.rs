//! Makes new segments from rows of others, with as little decoding as their forms allow: long texts are moved as codes,
//! strings with few distinct values as keys, decimals in few bytes. No new form is searched for while the old one
//! compresses well.

use arrow::array::{ArrayRef, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::DataType;
use bytes::Bytes;

use super::codec::{Codec, LONG_ROWS_MIN};
use super::codes::{Codes, Cutter};
use super::compact::compact;
use super::form::{Form, Kept};
use super::join::join;
use super::scheme::Scheme;
use super::select::filter_rows;
use super::stats::ColumnStats;
use super::tag::Tag;
use super::types::plain_type;
use super::wire::Writer;
use super::{Segment, encode_like, guarded, read_whole, text};
use crate::base::{Error, Result};

/// A segment from which some rows are taken.
pub struct Source<'a> {
    /// The segment's bytes; their checksum matches.
    pub bytes: Bytes,
    /// Its rows.
    pub rows: usize,
    /// Its statistics.
    pub stats: &'a ColumnStats,
    /// The rows to take; `None` for all.
    pub keep: Option<&'a BooleanBuffer>,
}

/// Concatenates the wanted rows of segments of one column, at least one row, and encodes them as segments of `sizes`
/// rows. `SchemaMismatch` if dictionaries of a dictionary column have too many values to be joined, or strings too many
/// bytes for one segment. Memory: the decoded column, twice.
///
/// Long texts may be moved in encoded form only if `as_codes`: their dictionary, and the bounds in their statistics, may
/// then come from rows that are not taken, and so may values of dictionary columns.
pub fn rewrite(sources: &[Source<'_>], data_type: &DataType, sizes: &[u32], as_codes: bool) -> Result<Vec<Segment>> {
    if as_codes
        && plain_type(data_type) == Some(DataType::Utf8)
        && sizes.iter().all(|size| *size as usize >= LONG_ROWS_MIN)
        && let Some(segments) = rewrite_codes(sources, data_type, sizes)?
    {
        return Ok(segments);
    }
    let (mut scheme, mut pieces) = (Scheme::default(), Vec::with_capacity(sources.len()));
    for (at, source) in sources.iter().enumerate() {
        let (array, found) = decode_with_scheme(source.bytes.clone(), source.rows, data_type, Form::Native)?;
        if at == 0 {
            scheme = found;
        }
        pieces.push(kept(array, source, as_codes)?);
    }
    let whole = if pieces.windows(2).all(|pair| pair[0].data_type() == pair[1].data_type()) {
        // The joined dictionary may be too large for its keys.
        join(&pieces).ok()
    } else {
        None
    };
    let whole = match whole {
        Some(whole) => whole,
        None => {
            pieces.clear();
            for source in sources {
                let read = |input: &mut _| read_whole(input, source.rows, data_type, Form::Exact);
                let array = guarded(source.bytes.clone(), source.rows, data_type, read)?;
                pieces.push(kept(array, source, as_codes)?);
            }
            join(&pieces)?
        }
    };
    drop(pieces);
    let mut start = 0;
    let cut = |size: &u32| {
        let slice = whole.slice(start, *size as usize);
        start += *size as usize;
        Ok(encode_like(&slice, data_type, &scheme)?.0)
    };
    sizes.iter().map(cut).collect()
}

/// Decodes a column, and tells how it was encoded; of a long text nothing.
pub fn decode_with_scheme(bytes: Bytes, rows: usize, data_type: &DataType, form: Form) -> Result<(ArrayRef, Scheme)> {
    let size = bytes.len();
    let (array, found) = guarded(bytes, rows, data_type, |input| {
        let array = read_whole(input, rows, data_type, form)?;
        Ok((array, input.found))
    })?;
    Ok((array, if Codec::is_text(found.encodings) { Scheme::default() } else { Scheme::new(found, size, rows, None) }))
}

/// The wanted rows of a source; with `others`, values that none of them has may stay in dictionaries.
fn kept(array: ArrayRef, source: &Source<'_>, others: bool) -> Result<ArrayRef> {
    let rows = match source.keep {
        Some(keep) => filter_rows(&array, &BooleanArray::new(keep.clone(), None))?,
        None => array,
    };
    if others { Ok(rows) } else { compact(&rows) }
}

/// The same for a long text, as codes; `None` if a source is stored otherwise, or if there are too many dictionaries.
fn rewrite_codes(sources: &[Source<'_>], data_type: &DataType, sizes: &[u32]) -> Result<Option<Vec<Segment>>> {
    let mut cutter = Cutter::new(sizes.iter().map(|size| *size as usize).collect());
    for source in sources {
        let parts = guarded(source.bytes.clone(), source.rows, data_type, |input| {
            let parts = text::read_codes(input, source.rows)?;
            parts.is_some().then(|| input.finish()).transpose()?;
            Ok(parts)
        })?;
        let Some(parts) = parts else { return Ok(None) };
        if parts.iter().map(Codes::rows).sum::<usize>() != source.rows {
            return Err(Error::corrupt(format!("a text has other rows than its segment of {}", source.rows)));
        }
        let mut start = 0;
        for part in &parts {
            let keep = source.keep.map(|keep| keep.slice(start, part.rows()));
            if !cutter.add(part, keep.as_ref()) {
                return Ok(None);
            }
            start += part.rows();
        }
    }
    let bounds = sources.iter().map(|source| source.stats.clone()).reduce(|a, b| a.union(&b)).unwrap_or_default();
    let mut segments = Vec::with_capacity(sizes.len());
    for parts in cutter.finish() {
        text::check_size(parts.iter().map(Codes::decoded_bytes).sum())?;
        let nulls: usize = parts.iter().map(Codes::null_count).sum();
        if nulls == parts.iter().map(Codes::rows).sum::<usize>() {
            return Ok(None);
        }
        let Some(tree) = Codes::join(Codec::get(), parts) else { return Ok(None) };
        let mut out = Writer::default();
        Tag::Vortex.write(&mut out, nulls > 0);
        tree.write(&mut out);
        let stats = ColumnStats { nulls: nulls as u64, exact: false, ..bounds.clone() };
        segments.push(Segment { bytes: out.finish(), stats, kept: Kept::Values });
    }
    if segments.len() != sizes.len() {
        return Err(Error::corrupt(format!("a text has rows for {} of {} segments", segments.len(), sizes.len())));
    }
    Ok(Some(segments))
}
