//! Where rows are after rewrites that a change did not know when it was prepared: its positions are carried over by
//! rank.
//!
//! A rewrite keeps, in order, every row that the newest version sees. So if the content is the same, the n-th visible
//! row of a rewrite's inputs is the n-th of its outputs. One that merges row groups says which is which
//! (merge_order.rs). A flush moves no row that is in a row group, and a repacked row group keeps its number.
//!
//! A table remembers its rewrites in memory, as long as a reader pins a state from before them.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::Vector;
use roaring::RoaringBitmap;

use crate::base::{Seq, Version};
use crate::table::{GroupId, MergeOrder, RowGroup, Rows};

/// One rewrite: what was replaced by what.
#[derive(Clone, Debug)]
pub(in crate::table) struct Moved {
    pub seq: Seq,
    /// The newest version at that time.
    pub version: Version,
    pub inputs: Vec<Arc<RowGroup>>,
    pub outputs: Vec<Arc<RowGroup>>,
    pub order: Order,
}

/// In which order the outputs of a rewrite have the rows of its inputs.
#[derive(Clone, Debug)]
pub(in crate::table) enum Order {
    /// The same.
    Kept,
    /// That in which they were merged, if it is known.
    Merged(Option<MergeOrder>),
}

/// Rewrites, in order; only in memory.
pub(in crate::table) type Moves = Vector<Arc<Moved>>;

/// For fewer than one in this many rows, ranks are looked up individually.
const WALK_SHARE: u64 = 64;

impl Moved {
    /// Where the rows at `positions` of the input `at` are now.
    pub fn carry(&self, at: usize, positions: &RoaringBitmap, to: &mut BTreeMap<GroupId, RoaringBitmap>) -> Option<()> {
        let seen = |group: &Arc<RowGroup>| group.visible(self.version);
        if let Order::Merged(order) = &self.order {
            let seen_before = seen(&self.inputs[at]).positions(self.inputs[at].rows);
            if !positions.is_subset(&seen_before) {
                return None;
            }
            let outputs: Vec<(&RowGroup, Rows)> = self.outputs.iter().map(|group| (&**group, seen(group))).collect();
            return order.as_ref()?.carry(at, &seen_before, &outputs, positions, to);
        }
        let before: u64 = self.inputs[..at].iter().map(|group| seen(group).count(group.rows)).sum();
        let input = &self.inputs[at];
        let rows = seen(input);
        let all = rows.positions(input.rows);
        if !positions.is_subset(&all) {
            return None;
        }
        let few = positions.len() < all.len() / WALK_SHARE;
        let mut ranks: Box<dyn Iterator<Item = u64>> = match (&rows, few) {
            (Rows::All, _) => Box::new(positions.iter().map(u64::from)),
            (_, true) => Box::new(positions.iter().map(|position| all.rank(position) - 1)),
            (_, false) => {
                let ranked = (0_u64..).zip(&all);
                Box::new(ranked.filter(|(_, position)| positions.contains(*position)).map(|(rank, _)| rank))
            }
        };
        let mut ranks = std::iter::from_fn(|| ranks.next()).map(|rank| before + rank).peekable();
        let mut start = 0;
        for output in &self.outputs {
            let seen = seen(output);
            let end = start + seen.count(output.rows);
            if ranks.peek().is_some_and(|rank| *rank < end) {
                let target = to.entry(output.id).or_default();
                let own = seen.positions(output.rows);
                let (mut walk, mut walked) = (own.iter(), start);
                while let Some(rank) = ranks.next_if(|rank| *rank < end) {
                    let position = match &seen {
                        Rows::All => (rank - start) as u32,
                        _ if few => own.select((rank - start) as u32)?,
                        _ => {
                            // Not by `nth`, which some versions of the crate get wrong.
                            for _ in walked..rank {
                                walk.next()?;
                            }
                            let position = walk.next()?;
                            walked = rank + 1;
                            position
                        }
                    };
                    target.insert(position);
                }
            }
            start = end;
        }
        ranks.peek().is_none().then_some(())
    }
}
