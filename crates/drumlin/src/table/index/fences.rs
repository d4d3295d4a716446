//! What the directories of a run say: the least and the greatest value of each page, so that a search reads only those that may have it.

use crate::segment::ColumnStats;

/// The entries of a page.
pub const PAGE_ENTRIES: u32 = 4096;

/// What the directories of a run say.
#[derive(Debug)]
pub struct Fences {
    /// By part.
    pub parts: Vec<PartFences>,
}

/// What the directory of a part says.
#[derive(Debug)]
pub struct PartFences {
    /// Of each value, in all pages; none of an open part.
    pub whole: Vec<ColumnStats>,
    /// By page.
    pub pages: Vec<PageFences>,
}

/// What is known of a page.
#[derive(Debug)]
pub struct PageFences {
    /// Of each value; none of an open part.
    pub values: Vec<ColumnStats>,
    /// Encoded bytes.
    pub bytes: u64,
}

/// The entries of each page of a part.
pub fn pages_of(entries: u32) -> impl Iterator<Item = u32> {
    (0..entries.div_ceil(PAGE_ENTRIES)).map(move |page| (entries - page * PAGE_ENTRIES).min(PAGE_ENTRIES))
}
