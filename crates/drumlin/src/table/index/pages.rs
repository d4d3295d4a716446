//! The pages of a run.
//!
//! A part of a run is a row group whose columns are those of its pages, one page after the other: a segment for each value of an entry, then
//! one for the places. A page has 4,096 entries, the last of a part maybe fewer. Open parts have places alone.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Fields};
use bytes::Bytes;

use super::fences::{Fences, PageFences, PartFences, pages_of};
use super::run::IndexRun;
use crate::base::{Error, Result};
use crate::block::{BlockReader, Directory};
use crate::segment::{Form, decode, decode_rows};

/// The bits of a place that are a row within its row group; those above are the place of the row group in the run.
const ROW_BITS: u32 = 17;

/// The place of a row of the row group that a run covers as its `ordinal`-th.
pub(in crate::table) fn place_of(ordinal: u32, row: u32) -> u32 {
    ordinal << ROW_BITS | row
}

/// Which of the row groups that the run covers a place is in.
pub(in crate::table) fn ordinal_of(place: u32) -> u32 {
    place >> ROW_BITS
}

/// The row within its row group.
pub(in crate::table) fn row_of(place: u32) -> u32 {
    place & ((1 << ROW_BITS) - 1)
}

/// The places of a page.
pub(in crate::table) fn places_of(bytes: Bytes, rows: usize) -> Result<ArrayRef> {
    sound(decode(bytes, rows, &DataType::UInt32, Form::Exact)?)
}

/// The places of some entries of a page, ascending.
pub(in crate::table) fn some_places_of(bytes: Bytes, rows: usize, entries: &[u32]) -> Result<ArrayRef> {
    sound(decode_rows(bytes, rows, &DataType::UInt32, entries)?)
}

fn sound(places: ArrayRef) -> Result<ArrayRef> {
    match places.null_count() {
        0 => Ok(places),
        _ => Err(Error::corrupt("an entry has no place")),
    }
}

impl IndexRun {
    /// Whether the part at a place has values.
    pub fn is_open(&self, part: usize) -> bool {
        part + self.open as usize >= self.parts.len()
    }

    /// How many segments a page of a part has whose entries have `values` values.
    fn width(&self, part: usize, values: usize) -> usize {
        if self.is_open(part) { 1 } else { values + 1 }
    }

    /// The segments of a page of a part whose entries have `values` values.
    pub fn segments_of(&self, part: usize, page: usize, values: usize) -> Range<usize> {
        let width = self.width(part, values);
        page * width..(page + 1) * width
    }

    /// Reads all pages of a part, bypassing the cache: of each the values, in the types of `fields`, then the places; of an open part the
    /// places alone. `None` if the part has another number of entries or pages than the state says.
    pub fn pages(&self, reader: &BlockReader, part: usize, fields: &Fields) -> Result<Option<Vec<Vec<ArrayRef>>>> {
        let (address, entries) = &self.parts[part];
        let read = reader.row_groups(std::slice::from_ref(address))?.remove(0);
        let width = self.width(part, fields.len());
        if read.rows != *entries || read.segments.len() != pages_of(*entries).count() * width {
            return Ok(None);
        }
        let mut segments = read.segments.into_iter().map(|segment| Bytes::from(segment.bytes));
        let mut next = || segments.next().expect("they were counted");
        let mut pages = Vec::new();
        for rows in pages_of(*entries) {
            let rows = rows as usize;
            let mut columns: Vec<ArrayRef> = Vec::with_capacity(width);
            for field in fields.iter().take(width - 1) {
                columns.push(decode(next(), rows, field.data_type(), Form::Exact)?);
            }
            columns.push(places_of(next(), rows)?);
            pages.push(columns);
        }
        Ok(Some(pages))
    }

    /// Reads the directory of a part. `Corrupt` if it does not fit what the state says of the run.
    pub fn directory(&self, reader: &BlockReader, part: usize, values: usize) -> Result<Arc<Directory>> {
        let (address, entries) = &self.parts[part];
        let directory = reader.directory(address)?;
        let width = self.width(part, values);
        match directory.rows == *entries && directory.columns.len() == pages_of(*entries).count() * width {
            true => Ok(directory),
            false => Err(Error::corrupt(format!(
                "block {}: the directory does not match its part of the run",
                address.block
            ))),
        }
    }

    /// What the directories say, of entries with `values` values. Read once.
    pub fn fences(&self, reader: &BlockReader, values: usize) -> Result<&Fences> {
        self.fences.get_or_try(|| {
            reader.fetch_directories(self.parts.iter().map(|(address, _)| address));
            let mut parts = Vec::with_capacity(self.parts.len());
            for (part, (_, entries)) in self.parts.iter().enumerate() {
                let directory = self.directory(reader, part, values)?;
                let page = |page: usize| {
                    let columns = &directory.columns[self.segments_of(part, page, values)];
                    let stats = columns[..columns.len() - 1].iter().map(|column| column.stats.clone()).collect();
                    PageFences { values: stats, bytes: columns.iter().map(|column| column.bytes).sum() }
                };
                let pages: Vec<PageFences> = (0..pages_of(*entries).count()).map(page).collect();
                let union = |at: usize| {
                    let of = pages.iter().map(|page| page.values[at].clone());
                    of.reduce(|all, own| all.union(&own)).unwrap_or_default()
                };
                let whole = if self.is_open(part) { Vec::new() } else { (0..values).map(union).collect() };
                parts.push(PartFences { whole, pages });
            }
            Ok(Fences { parts })
        })
    }
}
