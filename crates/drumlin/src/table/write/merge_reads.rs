//! What a merge reads, so that it can be fetched ahead.

use super::merge::{BoundMerge, Clause};
use crate::table::read::group_reader::GroupReader;
use crate::table::read::groups_ahead::GroupsAhead;
use crate::table::{RowGroup, Rows};

impl<'a> BoundMerge<'a> {
    /// The columns that are read to find out what happens to rows.
    pub fn reads(&self) -> Vec<usize> {
        let of_clauses = self.clauses.iter().flat_map(|clause| {
            let same = clause.same.iter().map(|(at, _)| *at);
            clause.condition_needs.iter().copied().chain(same)
        });
        self.on.iter().copied().chain(of_clauses.filter(|at| *at < self.schema.0.fields().len())).collect()
    }

    /// The columns that new values are computed from, and those that they are of.
    pub fn value_reads(&self) -> Vec<usize> {
        let needs = |clause: &Clause| {
            let set: Vec<usize> = clause.set.iter().flatten().map(|(at, _)| *at).collect();
            clause.value_needs.iter().copied().chain(set).collect::<Vec<_>>()
        };
        self.clauses.iter().flat_map(needs).filter(|at| *at < self.schema.0.fields().len()).collect()
    }

    /// Has columns of row groups fetched of which rows have to be looked at, before the one at `at` is asked for.
    pub fn before(&self, ahead: &GroupsAhead<'_>, at: usize) {
        ahead.before(at, |reader| self.is_touched(reader));
    }

    fn is_touched(&self, reader: &GroupReader<'_>) -> bool {
        self.clauses.len() > self.matched || self.in_range(reader)
    }

    /// The row groups that may have rows to which something happens, to be asked for in this order.
    pub fn candidates(&self) -> Vec<&'a RowGroup> {
        let by_source = self.clauses.len() > self.matched;
        let may_match = |group: &RowGroup| {
            let visible = self.table.visible(group, self.version);
            match &self.mask {
                Some(mask) if !by_source => mask.narrowed(group, visible) != Rows::None,
                _ => visible != Rows::None,
            }
        };
        self.table.groups.iter().map(|group| &**group).filter(|group| may_match(group)).collect()
    }
}
