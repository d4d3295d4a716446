//! Makes new segments from rows of others, with as little decoding as their forms allow: long texts are moved as codes,
//! strings with few distinct values as keys, decimals in few bytes. No new form is searched for while the old one
//! compresses well.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::DataType;
use bytes::Bytes;
use drumlin_codec::ONPAIR;

use super::hint::Encodings;
use super::proof::{Proof, RowDigest, same};
use super::scheme::Scheme;
use super::stats::ColumnStats;
use crate::base::{Error, Result};
use crate::segment::decode::form::{Form, PhysicalForm};
use crate::segment::decode::join::join;
use crate::segment::decode::select::filter_rows;
use crate::segment::decode::types::{plain_type, text_bytes};
use crate::segment::forms::codes::{Codes, CodesCutter};
use crate::segment::forms::compact::compact;
use crate::segment::forms::onpair::LONG_ROWS_MIN;
use crate::segment::forms::tag::FormTag;
use crate::segment::forms::text::{self, too_long};
use crate::segment::forms::tree;
use crate::segment::forms::wire::Writer;
use crate::segment::{Segment, decode, encode_like, guarded, read_whole};

/// A segment from which some rows are taken.
pub struct SegmentSource<'a> {
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
/// rows. `None` if the texts of one take more bytes than Arrow's offsets address: then there must be more of fewer rows.
/// `SchemaMismatch` if dictionaries of a dictionary column have too many values to be joined, or if one row alone is too
/// large. Memory: the decoded column, twice.
///
/// Long texts may be moved in encoded form only if `as_codes`: their dictionary, and the bounds in their statistics, may
/// then come from rows that are not taken, and so may values of dictionary columns.
///
/// With [`Proof::Decoded`], `Internal` if the new segments, decoded again, do not say the rows that were read.
pub fn rewrite(
    sources: &[SegmentSource<'_>],
    data_type: &DataType,
    sizes: &[u32],
    as_codes: bool,
    proof: Proof,
) -> Result<Option<Vec<Segment>>> {
    let mut read = RowDigest::default();
    let digest = (proof == Proof::Decoded).then_some(&mut read);
    let Some(mut segments) = encode_again(sources, data_type, sizes, as_codes, digest)? else { return Ok(None) };
    if proof == Proof::Decoded {
        let mut written = RowDigest::default();
        for (segment, size) in segments.iter_mut().zip(sizes) {
            segment.digest_into(*size as usize, data_type, &mut written)?;
        }
        same(read, written)?;
    }
    Ok(Some(segments))
}

/// Does so, and digests the rows as they are read.
fn encode_again(
    sources: &[SegmentSource<'_>],
    data_type: &DataType,
    sizes: &[u32],
    as_codes: bool,
    mut digest: Option<&mut RowDigest>,
) -> Result<Option<Vec<Segment>>> {
    if as_codes
        && plain_type(data_type) == Some(DataType::Utf8)
        && sizes.iter().all(|size| *size as usize >= LONG_ROWS_MIN)
        && let Some(segments) = rewrite_codes(sources, data_type, sizes)?
    {
        if let Some(digest) = digest {
            for source in sources {
                let array = decode(source.bytes.clone(), source.rows, data_type, Form::Native)?;
                digest.add(&array, source.keep);
            }
        }
        return Ok(Some(segments));
    }
    let (mut scheme, mut pieces) = (Scheme::default(), Vec::with_capacity(sources.len()));
    for (at, source) in sources.iter().enumerate() {
        let (array, found) = decode_with_scheme(source.bytes.clone(), source.rows, data_type, Form::Native)?;
        if at == 0 {
            scheme = found;
        }
        if let Some(digest) = &mut digest {
            digest.add(&array, source.keep);
        }
        pieces.push(kept(array, source, as_codes)?);
    }
    let mut segments = Vec::with_capacity(sizes.len());
    let mut exact: Option<Vec<ArrayRef>> = None;
    let mut start = 0;
    for size in sizes {
        let rows = start..start + *size as usize;
        start = rows.end;
        let mut parts = of_rows(&pieces, rows.clone());
        let bytes = parts.iter().map(text_bytes).sum();
        if bytes > i32::MAX as u64 {
            return if *size > 1 { Ok(None) } else { Err(too_long(bytes)) };
        }
        // The joined dictionary may be too large for its keys.
        let alike = parts.windows(2).all(|pair| pair[0].data_type() == pair[1].data_type());
        let whole = match if alike { join(&parts).ok() } else { None } {
            Some(whole) => whole,
            None => {
                if exact.is_none() {
                    let read = |source: &SegmentSource<'_>| {
                        let read = |input: &mut _| read_whole(input, source.rows, data_type, Form::Exact);
                        kept(guarded(source.bytes.clone(), source.rows, data_type, read)?, source, as_codes)
                    };
                    exact = Some(sources.iter().map(read).collect::<Result<_>>()?);
                }
                parts = of_rows(exact.as_deref().unwrap_or_default(), rows);
                join(&parts)?
            }
        };
        segments.push(encode_like(&whole, data_type, &scheme)?.0);
    }
    Ok(Some(segments))
}

/// Some rows of consecutive pieces.
fn of_rows(pieces: &[ArrayRef], rows: Range<usize>) -> Vec<ArrayRef> {
    let mut before = 0;
    let part = |piece: &ArrayRef| {
        let own = before..before + piece.len();
        before = own.end;
        let (from, to) = (rows.start.max(own.start), rows.end.min(own.end));
        (from < to).then(|| piece.slice(from - own.start, to - from))
    };
    pieces.iter().filter_map(part).collect()
}

/// Whether codes of a long text are among `encodings`.
fn is_text(encodings: Encodings) -> bool {
    encodings >> ONPAIR & 1 == 1
}

/// Decodes a column, and tells how it was encoded; of a long text nothing.
pub fn decode_with_scheme(bytes: Bytes, rows: usize, data_type: &DataType, form: Form) -> Result<(ArrayRef, Scheme)> {
    let size = bytes.len();
    let (array, found) = guarded(bytes, rows, data_type, |input| {
        let array = read_whole(input, rows, data_type, form)?;
        Ok((array, input.found))
    })?;
    Ok((array, if is_text(found.encodings) { Scheme::default() } else { Scheme::new(found, size, rows, None) }))
}

/// The wanted rows of a source; with `others`, values that none of them has may stay in dictionaries.
fn kept(array: ArrayRef, source: &SegmentSource<'_>, others: bool) -> Result<ArrayRef> {
    let rows = match source.keep {
        Some(keep) => filter_rows(&array, &BooleanArray::new(keep.clone(), None))?,
        None => array,
    };
    if others { Ok(rows) } else { compact(&rows) }
}

/// The same for a long text, as codes; `None` if a source is stored otherwise, or if there are too many dictionaries.
fn rewrite_codes(sources: &[SegmentSource<'_>], data_type: &DataType, sizes: &[u32]) -> Result<Option<Vec<Segment>>> {
    let mut cutter = CodesCutter::new(sizes.iter().map(|size| *size as usize).collect());
    for source in sources {
        let parts = guarded(source.bytes.clone(), source.rows, data_type, |input| {
            let parts = text::read_codes(input, source.rows)?;
            parts.is_some().then(|| input.finish()).transpose()?;
            Ok(parts)
        })?;
        let Some(parts) = parts else { return Ok(None) };
        if parts.iter().map(Codes::rows).sum::<usize>() != source.rows {
            return Err(Error::corrupt(format!("a text does not have the {} rows of its segment", source.rows)));
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
        if parts.iter().map(Codes::decoded_bytes).sum::<u64>() > i32::MAX as u64 {
            return Ok(None);
        }
        let nulls: usize = parts.iter().map(Codes::null_count).sum();
        if nulls == parts.iter().map(Codes::rows).sum::<usize>() {
            return Ok(None);
        }
        let Some(tree) = Codes::join(&parts) else { return Ok(None) };
        let mut out = Writer::default();
        FormTag::Tree.write(&mut out, nulls > 0);
        tree::write(&tree, &mut out);
        let stats = ColumnStats { nulls: nulls as u64, exact: false, ..bounds.clone() };
        segments.push(Segment { bytes: out.finish(), stats, kept: PhysicalForm::Values });
    }
    if segments.len() != sizes.len() {
        return Err(Error::corrupt(format!("a text has rows for only {} of {} segments", segments.len(), sizes.len())));
    }
    Ok(Some(segments))
}
