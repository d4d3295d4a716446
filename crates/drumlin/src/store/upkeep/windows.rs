//! Rewrites the windows of a vacuum: as they are, or, in a table with an order, merged if their row groups overlap in it.

use std::sync::Arc;

use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Result};
use crate::block::{Address, EncodedRowGroup};
use crate::store::Store;
use crate::table::{
    Classes, MergeOrder, MergedGroups, RewrittenGroup, RowGroup, Rows, Standing, TableState, Window, merge_groups,
    overlaps, remap_merged, rewrite,
};

/// The most bytes that a commit takes to say which row is which.
const ORDER_BYTES_MAX: usize = 4 << 20;

/// The row groups of a window, each with whether it is in order; and, if they were merged, where the kept rows of each input are.
pub(in crate::store) type RewrittenWindow = (Vec<(EncodedRowGroup, Standing)>, Option<Arc<Vec<Vec<u32>>>>);

impl Store {
    /// Rewrites a window, in the order of the table: if its row groups overlap, they are merged, and it is said where their rows are now.
    pub(in crate::store) fn rewrite_window(
        &self,
        table: &TableState,
        window: &Window,
        cancel: &Cancel,
    ) -> Result<RewrittenWindow> {
        let (reader, pool, proof) = (self.reader(), &self.env().pool, self.options().proof());
        if window.rows == 0 || planted(Bug::LeaveOverlaps) || !overlaps(reader, pool, table, window)? {
            return Ok((rewrite(reader, pool, &table.schemas, &table.spec, window, proof)?, None));
        }
        let mut groups = Vec::new();
        let sink = |group, standing| {
            groups.push((group, standing));
            Ok(())
        };
        let classes = Classes::of(table);
        let to = merge_groups(reader, pool, &table.schemas, &table.spec, window, None, &classes, proof, cancel, sink)?;
        Ok((groups, Some(Arc::new(to))))
    }
}

/// Row groups that were merged, with the runs and deletions that their inputs have now.
pub(in crate::store) fn merged(
    set: &Window,
    inputs: &[Arc<RowGroup>],
    outputs: &[(Address, u32, Standing)],
    to: &[Vec<u32>],
    classes: &Classes,
) -> MergedGroups {
    let sizes: Vec<u32> = outputs.iter().map(|(_, rows, _)| *rows).collect();
    let remapped = remap_merged(inputs, &set.kept, to, &sizes, classes);
    let outputs = outputs.iter().zip(remapped).map(|((address, rows, standing), remapped)| RewrittenGroup {
        address: *address,
        rows: *rows,
        schema: set.schema,
        runs: remapped.runs,
        deletions: remapped.deletions,
        standing: *standing,
    });
    let kept: Vec<(u32, &Rows)> = set.inputs.iter().zip(&set.kept).map(|(group, kept)| (group.rows, kept)).collect();
    let order = Some(MergeOrder::new(&kept, to)).filter(|order| order.bytes() <= ORDER_BYTES_MAX);
    MergedGroups { inputs: inputs.iter().map(|group| group.id).collect(), outputs: outputs.collect(), order }
}
