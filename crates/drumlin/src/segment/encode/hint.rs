//! What replaces the search for a column's form: the encodings to try, or those that were found.

use vortex_alp::Exponents;

/// Which encodings a segment uses: one bit each, by position in the list of encodings.
pub(in crate::segment) type Encodings = u64;

/// What replaces the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::segment) struct Hint {
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
    /// Only what is cheap to evaluate.
    pub const CHEAP: Self = Self { encodings: 0, exponents: None };
    /// The same, and steps.
    pub const STEPS: Self = Self { encodings: STEPS_BIT, exponents: None };

    /// The same without steps, to avoid steps of steps.
    pub fn below_steps(self) -> Self {
        Self { encodings: self.encodings & !STEPS_BIT, ..self }
    }
}

/// Our own encoding of ascending integers by their distances.
pub(in crate::segment) const STEPS_BIT: Encodings = 1 << 63;
