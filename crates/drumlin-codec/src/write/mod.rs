//! Columns to trees of nodes. The form is chosen by what it takes, exactly or from a sample, and by what it costs to read: a form that
//! takes longer to read must save more.

pub mod built;
pub mod floats;
pub mod numbers;
pub mod texts;

use hashbrown::HashMap;

use crate::node::*;
use crate::scale::Exponents;
use crate::word::Word;

pub use built::Built;

/// What is worth how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Bytes, and what it costs to read them.
    #[default]
    Balanced,
    /// Bytes.
    Small,
    /// What it costs to write: only forms that are found without a search.
    Fast,
}

/// Which forms to try.
#[derive(Clone, Copy, Debug, Default)]
pub struct Search {
    /// One bit for each encoding, by its number, and the highest for [`STEPS`]; `None` for all.
    pub encodings: Option<u64>,
    /// Powers of ten that are known.
    pub exponents: Option<Exponents>,
    /// What they are worth.
    pub effort: Effort,
}

impl Search {
    /// Only what is found without a search.
    const CHEAP: Self = Self { encodings: Some(0), exponents: None, effort: Effort::Balanced };
    /// The same, and distances of ascending values.
    const ASCENDING: Self = Self { encodings: Some(STEPS_BIT), ..Self::CHEAP };

    /// Whether to try an encoding that takes a search.
    fn tries(&self, encoding: u8) -> bool {
        match self.encodings {
            Some(some) => some & bit_of(encoding) != 0,
            None => self.effort != Effort::Fast,
        }
    }

    /// The same without one.
    fn without(self, encoding: u8) -> Self {
        let all = if self.effort == Effort::Fast { 0 } else { u64::MAX };
        Self { encodings: Some(self.encodings.unwrap_or(all) & !bit_of(encoding)), exponents: None, ..self }
    }
}

/// Values that a sample has.
const SAMPLE: usize = 1024;

/// Values from all over a column, in short runs, so that no period of it is missed: the same for the same column.
fn sample<T: Copy>(values: &[T], size: usize) -> Vec<T> {
    const RUN: usize = 8;
    if values.len() <= size {
        return values.to_vec();
    }
    let runs = size / RUN;
    let step = (values.len() - RUN) / (runs - 1).max(1);
    (0..runs).flat_map(|run| values[run * step..run * step + RUN].iter().copied()).collect()
}

/// Distinct values in ascending order, and the place of each among them; `None` if there are more than `most`, or probably so, or if
/// places take more than `bytes` bytes.
fn distinct<W: Word>(values: &[W], most: usize, bytes: usize) -> Option<(Vec<W>, Vec<u32>)> {
    let mut some = sample(values, SAMPLE);
    let all = some.len();
    some.sort_unstable();
    some.dedup();
    // Where nearly all of a sample are different, there are tens of thousands.
    let too_many = values.len() > SAMPLE && some.len() * 100 > all * 98;
    // With more of them, the places alone take more bytes.
    let place_bits = bytes.saturating_mul(8) / values.len().max(1);
    let most = most.min(1 << place_bits.min(31));
    if too_many || some.len() > most {
        return None;
    }
    let mut found: HashMap<W, u32, foldhash::fast::FixedState> =
        HashMap::with_hasher(foldhash::fast::FixedState::default());
    let mut places = Vec::with_capacity(values.len());
    let mut last: Option<(W, u32)> = None;
    for value in values {
        let place = match last {
            Some((same, place)) if same == *value => place,
            _ => {
                let next = found.len() as u32;
                *found.entry(*value).or_insert(next)
            }
        };
        if found.len() > most {
            return None;
        }
        last = Some((*value, place));
        places.push(place);
    }
    let mut order: Vec<(W, u32)> = found.into_iter().collect();
    order.sort_unstable();
    let mut rank = vec![0; order.len()];
    (0..).zip(&order).for_each(|(place, (_, first))| rank[*first as usize] = place);
    places.iter_mut().for_each(|place| *place = rank[*place as usize]);
    Some((order.into_iter().map(|(value, _)| value).collect(), places))
}

/// Bits of a number.
fn width_of(value: u64) -> usize {
    (64 - value.leading_zeros()) as usize
}

/// Whether a form of `size` bytes is worth it where the best so far takes `best`, and it must save so much that `percent` are left.
fn worth(size: usize, best: usize, percent: usize) -> bool {
    size.saturating_mul(100) < best.saturating_mul(percent)
}
