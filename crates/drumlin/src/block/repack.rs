//! Chooses the blocks to repack: the row groups left in mostly dead blocks, and those of many small blocks, are moved
//! into fewer. Pure: it looks at sizes only. The bytes are copied as they are, so a repacked byte costs far less than a
//! rewritten one; one effect says where they lie now. As with rewrites, the plan takes first what gains most bytes for
//! each byte written.

use std::fmt;

use crate::base::BlockId;

/// A block as the plan sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFill {
    /// The block.
    pub block: BlockId,
    /// Its size in bytes, without what any block holds besides row groups.
    pub bytes: u64,
    /// Bytes of the row groups to keep.
    pub live_bytes: u64,
    /// It is not on storage, and so is emptied whatever it holds: otherwise it would be written with the catalog.
    pub inline: bool,
}

impl BlockFill {
    fn dead_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.live_bytes)
    }
}

/// Which blocks to empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepackPlan {
    /// The blocks, the most worthwhile first.
    pub blocks: Vec<BlockId>,
    /// Bytes to copy.
    pub bytes_moved: u64,
    /// Bytes to gain.
    pub bytes_gained: u64,
    /// Blocks before.
    pub blocks_before: u64,
    /// Blocks worth emptying that exceed the budget.
    pub left_out: u64,
}

impl fmt::Display for RepackPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, bytes_moved, bytes_gained, blocks_before, left_out } = self;
        write!(
            f,
            "{} of {blocks_before} blocks repacked; copy {bytes_moved} bytes, gain {bytes_gained}",
            blocks.len()
        )?;
        match left_out {
            0 => Ok(()),
            n => write!(f, "; {n} left out by the budget"),
        }
    }
}

/// The number of small blocks that are worth combining.
const SMALL_MIN: usize = 8;

/// Plans the repacking of `blocks`. A block is emptied if at least `dead_share_min` of it is dead. Small blocks are
/// combined if there are many of similar sizes, so that each byte is copied O(log n) times however many blocks are added.
/// At most `budget` bytes are copied, the most worthwhile first. Blocks that are not on storage are moved there, whatever
/// the budget. O(n log n).
pub fn repack(blocks: &[BlockFill], block_bytes: u64, dead_share_min: f64, budget: u64) -> RepackPlan {
    let alive = || blocks.iter().filter(|fill| fill.live_bytes > 0 && !fill.inline);
    let is_sparse = |fill: &&BlockFill| {
        let dead = fill.dead_bytes();
        dead > 0 && dead as f64 >= dead_share_min * fill.bytes as f64
    };
    let mut chosen: Vec<&BlockFill> = alive().filter(is_sparse).collect();
    // Bytes gained for each byte copied.
    let worth = |fill: &BlockFill| fill.dead_bytes() as f64 / fill.live_bytes as f64;
    chosen.sort_by(|a, b| worth(b).total_cmp(&worth(a)).then(a.block.cmp(&b.block)));
    let mut small: Vec<&BlockFill> =
        alive().filter(|fill| !is_sparse(fill) && fill.live_bytes < block_bytes / 4).collect();
    small.sort_by_key(|fill| (fill.live_bytes, fill.block));
    let (mut sum, mut worthwhile) = (0, 0);
    for (at, fill) in small.iter().enumerate() {
        if sum * 4 >= fill.live_bytes {
            worthwhile = at + 1;
        }
        sum += fill.live_bytes;
    }
    if worthwhile >= SMALL_MIN {
        chosen.extend(&small[..worthwhile]);
    }
    let inline = blocks.iter().filter(|fill| fill.live_bytes > 0 && fill.inline);
    let mut plan = RepackPlan { blocks_before: blocks.len() as u64, ..RepackPlan::default() };
    for fill in inline.chain(chosen) {
        if !fill.inline && plan.bytes_moved + fill.live_bytes > budget {
            plan.left_out += 1;
            continue;
        }
        plan.blocks.push(fill.block);
        plan.bytes_moved += fill.live_bytes;
        plan.bytes_gained += fill.dead_bytes();
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::SessionId;

    fn fills(sizes: &[(u64, u64)]) -> Vec<BlockFill> {
        let block = |number| BlockId { session: SessionId(1), number };
        let fill = |(n, (bytes, live_bytes)): (usize, &(u64, u64))| BlockFill {
            block: block(n as u64),
            bytes: *bytes,
            live_bytes: *live_bytes,
            inline: false,
        };
        sizes.iter().enumerate().map(fill).collect()
    }

    fn chosen(sizes: &[(u64, u64)], budget: u64) -> Vec<u64> {
        repack(&fills(sizes), 8000, 0.5, budget).blocks.iter().map(|block| block.number).collect()
    }

    #[test]
    fn mostly_dead_blocks_are_emptied_by_worth() {
        let sizes = [(8000, 8000), (8000, 3000), (8000, 100), (8000, 4001), (8000, 0)];
        assert_eq!(chosen(&sizes, u64::MAX), [2, 1]);
        assert_eq!(chosen(&sizes, 2999), [2]);
        let plan = repack(&fills(&sizes), 8000, 0.5, 2999);
        assert_eq!((plan.bytes_moved, plan.bytes_gained, plan.left_out), (100, 7900, 1));
        assert_eq!(repack(&fills(&sizes), 8000, 0.1, u64::MAX).blocks.len(), 3);
    }

    #[test]
    fn many_small_blocks_are_put_together_and_few_are_left() {
        assert_eq!(chosen(&[(500, 500); 7], u64::MAX), [0; 0]);
        assert_eq!(chosen(&[(500, 500); 9], u64::MAX).len(), 9);
        // A larger block is not copied again for the little that was added.
        let sizes = [vec![(1900, 1900)], vec![(10, 10); 9]].concat();
        assert!(!chosen(&sizes, u64::MAX).contains(&0));
    }

    #[test]
    fn what_comes_in_small_blocks_is_copied_a_logarithmic_number_of_times() {
        let (mut sizes, mut copied): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
        for _ in 0..20_000 {
            sizes.push((10, 10));
            let plan = repack(&fills(&sizes), 80_000, 0.5, u64::MAX);
            if !plan.blocks.is_empty() {
                let gone: Vec<usize> = plan.blocks.iter().map(|block| block.number as usize).collect();
                sizes = (0..sizes.len()).filter(|at| !gone.contains(at)).map(|at| sizes[at]).collect();
                sizes.push((plan.bytes_moved, plan.bytes_moved));
                copied += plan.bytes_moved;
            }
        }
        assert!(copied < 200_000 * 12 && sizes.len() < 60, "{copied} bytes copied, {} blocks", sizes.len());
    }
}
