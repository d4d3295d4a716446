//! The pages of a run.
//!
//! A part of a run is a row group whose columns are those of its pages, one page after the other: a segment for each value of an entry, then
//! one for the places. A page has 4,096 entries, the last of a part maybe fewer. Open parts have places alone.

use std::ops::Range;
use std::sync::Arc;

use super::fences::{Fences, PageFences, PartFences, pages_of};
use super::run::IndexRun;
use crate::base::{Error, Result};
use crate::block::{BlockReader, Directory};

impl IndexRun {
    /// Whether the part at a place has values.
    pub fn is_open(&self, part: usize) -> bool {
        part + self.open as usize >= self.parts.len()
    }

    /// The segments of a page of a part whose entries have `values` values.
    pub fn segments_of(&self, part: usize, page: usize, values: usize) -> Range<usize> {
        let width = if self.is_open(part) { 1 } else { values + 1 };
        page * width..(page + 1) * width
    }

    /// Reads the directory of a part. `Corrupt` if it does not fit what the state says of the run.
    pub fn directory(&self, reader: &BlockReader, part: usize, values: usize) -> Result<Arc<Directory>> {
        let (address, entries) = &self.parts[part];
        let directory = reader.directory(address)?;
        let width = if self.is_open(part) { 1 } else { values + 1 };
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
