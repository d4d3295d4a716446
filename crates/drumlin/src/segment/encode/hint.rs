//! What replaces the search for a column's form: the encodings to try, or those that were found.

use drumlin_codec::Exponents;

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
}
