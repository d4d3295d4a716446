//! How a column was encoded, so that what follows of it is encoded alike, without the search.
//!
//! To find a form for a column costs more than to put values into it: numbers are counted, samples are tried, texts
//! are trained on. A scheme says what the search found; it is used as long as it holds up, that is, as long as what it
//! gives is not much larger than what it was found on, row by row.

use std::sync::Arc;

use vortex_alp::Exponents;

use super::onpair::Text;

/// Which encodings a segment has in it: a bit each, by place in the list of encodings.
pub(super) type Encodings = u64;

/// What the search is left out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hint {
    pub encodings: Encodings,
    /// The powers of ten by which floats become integers.
    pub exponents: Option<Exponents>,
}

impl Default for Hint {
    fn default() -> Self {
        Self::CHEAP
    }
}

impl Hint {
    /// Nothing but what is cheap to judge.
    pub const CHEAP: Self = Self { encodings: 0, exponents: None };
    /// That, and steps.
    pub const STEPS: Self = Self { encodings: STEPS_BIT, exponents: None };

    /// Without steps of steps.
    pub fn below_steps(self) -> Self {
        Self { encodings: self.encodings & !STEPS_BIT, ..self }
    }
}

/// The encoding of ascending integers by their distances, which is ours.
pub(super) const STEPS_BIT: Encodings = 1 << 63;

/// How much larger than what a scheme was found on, row by row, its results may be.
const GROWTH_MAX: f64 = 1.15;

/// How an earlier part of a column was encoded. The default knows nothing: a form is searched for.
#[derive(Clone, Debug, Default)]
pub struct Scheme {
    pub(super) found: Option<Found>,
}

#[derive(Clone, Debug)]
pub(super) struct Found {
    pub hint: Hint,
    /// Bytes of the segment, and its rows.
    pub bytes: u64,
    pub rows: u64,
    /// What a long text was trained to.
    pub text: Option<Arc<Text>>,
}

impl Scheme {
    pub(super) fn new(hint: Hint, bytes: usize, rows: usize, text: Option<Arc<Text>>) -> Self {
        Self { found: Some(Found { hint, bytes: bytes as u64, rows: rows as u64, text }) }
    }

    /// Whether it was found on enough rows to be used for so many.
    pub(super) fn says_of(&self, rows: usize) -> bool {
        self.found.as_ref().is_some_and(|found| rows as u64 <= found.rows * 2)
    }

    /// Whether a segment of `bytes` for `rows` rows is what was to be expected.
    pub(super) fn holds_up(&self, bytes: usize, rows: usize) -> bool {
        // What stands once in each segment weighs more in a small one.
        const ONCE: f64 = 256.0;
        self.found.as_ref().is_some_and(|found| {
            let expected = (found.bytes as f64 + ONCE) / found.rows.max(1) as f64 * rows as f64;
            bytes as f64 <= expected * GROWTH_MAX + ONCE
        })
    }
}
