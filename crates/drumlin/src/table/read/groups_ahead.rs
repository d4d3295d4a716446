//! Row groups of which some columns are read by many threads, about in order: over a network, they are brought into the cache a window at a
//! time, so that as few rounds of requests are waited for as in a scan.

use super::group_reader::GroupReader;
use super::prefetch::Ahead;
use crate::base::Version;
use crate::block::BlockReader;
use crate::table::{RowGroup, TableState};

/// Row groups of a version of a table, of which some columns are about to be read.
pub struct GroupsAhead<'a> {
    blocks: &'a BlockReader,
    table: &'a TableState,
    version: Version,
    groups: Vec<&'a RowGroup>,
    columns: Vec<usize>,
    /// `None` where nothing is fetched ahead.
    ahead: Option<Ahead>,
}

impl<'a> GroupsAhead<'a> {
    /// Of `groups` in the order in which they are read, the columns at some places of the version's schema.
    pub fn new(
        blocks: &'a BlockReader,
        table: &'a TableState,
        version: Version,
        groups: Vec<&'a RowGroup>,
        columns: impl IntoIterator<Item = usize>,
    ) -> Self {
        let mut columns: Vec<usize> = columns.into_iter().collect();
        columns.sort_unstable();
        columns.dedup();
        let ahead = (blocks.fetches() && groups.len() > 1).then(Ahead::default);
        Self { blocks, table, version, groups, columns, ahead }
    }

    /// Must be called before the row group at `at` is read. Nothing is fetched of those that are not `wanted`.
    pub(in crate::table) fn before(&self, at: usize, wanted: impl Fn(&GroupReader<'_>) -> bool) {
        if let Some(ahead) = &self.ahead {
            ahead.before(at, self.groups.len(), |range| self.fetch(&self.groups[range], wanted));
        }
    }

    /// The same, of all of them.
    pub fn before_each(&self, at: usize) {
        self.before(at, |_| true);
    }

    /// Fetches what as many of the first row groups need as fit; returns of how many that is.
    fn fetch(&self, groups: &[&RowGroup], wanted: impl Fn(&GroupReader<'_>) -> bool) -> usize {
        // What is wrong with one shows when it is read.
        let Ok(schema) = self.table.schema_of(self.version) else { return groups.len() };
        self.blocks.fetch_directories(groups.iter().flat_map(|group| group.addresses()));
        let (mut parts, mut bytes, mut count) = (Vec::new(), 0, 0);
        for group in groups {
            let opened = GroupReader::open(self.blocks, self.table, self.version, group);
            if let Some(reader) = opened.ok().filter(&wanted) {
                bytes += reader.bytes(&schema.0, self.columns.iter().copied());
                if count > 0 && bytes > self.blocks.fetch_bytes_max() / 2 {
                    break;
                }
                parts.extend(reader.wanted(&schema.0, &self.columns));
            }
            count += 1;
        }
        self.blocks.fetch(parts);
        count
    }
}
