//! In which order rows of several row groups were merged into others, so that positions which were found before can be carried over.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use crate::table::{GroupId, RowGroup, Rows};

/// Where each row of the outputs of a merge comes from.
///
/// An input is cut into *pieces*: the rows of a piece come in the outputs in the order that they have in the input. The pieces of all
/// inputs are numbered, one input after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeOrder {
    /// Of each input, the row at which each piece begins.
    pieces: Vec<Vec<u32>>,
    /// The piece of each row of the outputs, one output after the other.
    from: Numbers,
}

/// A list of small numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Numbers {
    /// A number, and how often it follows itself.
    Runs(Vec<(u32, u32)>),
    /// Numbers of that many bits each, from the lowest bit of the first word on.
    Packed(u32, Vec<u64>),
}

impl Numbers {
    fn new(numbers: &[u32]) -> Self {
        let runs: Vec<(u32, u32)> = numbers.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect();
        let most = runs.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let bits = (32 - most.leading_zeros()).max(1);
        // A run takes some four bytes.
        if runs.len() * 32 <= numbers.len() * bits as usize {
            return Self::Runs(runs);
        }
        let mut words = vec![0_u64; (numbers.len() * bits as usize).div_ceil(64)];
        for (at, number) in numbers.iter().enumerate() {
            let (word, shift) = (at * bits as usize / 64, at * bits as usize % 64);
            words[word] |= u64::from(*number) << shift;
            if shift + bits as usize > 64 {
                words[word + 1] |= u64::from(*number) >> (64 - shift);
            }
        }
        Self::Packed(bits, words)
    }

    /// Them, in order; more than there are if they are packed.
    fn iter(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Self::Runs(runs) => Box::new(runs.iter().flat_map(|(number, rows)| (0..*rows).map(|_| *number))),
            Self::Packed(bits, words) => {
                let bits = (*bits).clamp(1, 32) as usize;
                let number = move |at: usize| {
                    let (word, shift) = (at * bits / 64, at * bits % 64);
                    let next = if shift + bits > 64 { words.get(word + 1)? << (64 - shift) } else { 0 };
                    Some(((words.get(word)? >> shift | next) & ((1 << bits) - 1)) as u32)
                };
                Box::new((0..words.len() * 64 / bits).map_while(number))
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Runs(runs) => runs.len() * 4,
            Self::Packed(_, words) => words.len() * 8,
        }
    }
}

impl MergeOrder {
    /// Of inputs whose `kept` rows come to the rows `to` of the outputs, counted over all of these.
    pub fn new(inputs: &[(u32, &Rows)], to: &[Vec<u32>]) -> Self {
        let mut from = vec![0; to.iter().map(Vec::len).sum()];
        let (mut pieces, mut number) = (Vec::with_capacity(inputs.len()), 0);
        for ((rows, kept), to) in inputs.iter().zip(to) {
            let (mut own, mut last) = (vec![0], None);
            for (row, to) in kept.positions(*rows).iter().zip(to) {
                if last.is_some_and(|last| last > *to) {
                    own.push(row);
                    number += 1;
                }
                last = Some(*to);
                from[*to as usize] = number;
            }
            number += 1;
            pieces.push(own);
        }
        Self { pieces, from: Numbers::new(&from) }
    }

    /// The bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        self.from.bytes() + self.pieces.iter().map(Vec::len).sum::<usize>() * 4
    }

    /// Where the rows at `positions` of the input `at` are, of which only the rows `seen`, some of those kept, count. `None` if this is not the
    /// order of these row groups.
    pub fn carry(
        &self,
        at: usize,
        seen: &RoaringBitmap,
        outputs: &[(&RowGroup, Rows)],
        positions: &RoaringBitmap,
        to: &mut BTreeMap<GroupId, RoaringBitmap>,
    ) -> Option<()> {
        let starts = self.pieces.get(at)?;
        let first = self.pieces[..at].iter().map(|pieces| pieces.len() as u32).sum::<u32>();
        let mut places: Vec<Vec<(usize, u32)>> = vec![Vec::new(); starts.len()];
        let mut from = self.from.iter();
        for (output, (group, seen)) in outputs.iter().enumerate() {
            for row in 0..group.rows {
                let piece = from.next()?;
                let counts = match seen {
                    Rows::All => true,
                    Rows::None => false,
                    Rows::Some(rows) => rows.contains(row),
                };
                if counts && let Some(own) = piece.checked_sub(first).and_then(|piece| places.get_mut(piece as usize)) {
                    own.push((output, row));
                }
            }
        }
        for (piece, places) in places.iter().enumerate() {
            let end = starts.get(piece + 1).copied().unwrap_or(u32::MAX);
            if seen.range_cardinality(starts[piece]..end) != places.len() as u64 {
                return None;
            }
            for (row, (output, place)) in seen.range(starts[piece]..end).zip(places) {
                if positions.contains(row) {
                    to.entry(outputs[*output].0.id).or_default().insert(*place);
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept() {
        let mut rng = fastrand::Rng::with_seed(3);
        for round in 0..200 {
            let (most, run) = (1 << rng.u32(0..20), if round % 2 == 0 { 1 } else { 90 });
            let mut numbers = Vec::new();
            while numbers.len() < 500 {
                let number = rng.u32(0..most);
                numbers.extend(std::iter::repeat_n(number, rng.usize(1..=run)));
            }
            let kept = Numbers::new(&numbers);
            assert_eq!(kept.iter().take(numbers.len()).collect::<Vec<_>>(), numbers);
        }
    }
}
