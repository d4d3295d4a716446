//! How a column was encoded, so that later parts of it are encoded in the same way, without a search.
//!
//! Finding a form for a column costs more than encoding values in it: numbers are counted, samples are tried,
//! dictionaries are trained on texts. A scheme holds what the search found. It is used as long as its results are not
//! much larger per row than the data it was found on.

use std::sync::Arc;

use super::hint::Hint;
use super::onpair::Text;

/// How much larger per row the results of a scheme may be than the data it was found on.
const GROWTH_MAX: f64 = 1.15;

/// How an earlier part of a column was encoded. The default is empty: a form is searched for.
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
    /// The dictionary trained on a long text.
    pub text: Option<Arc<Text>>,
}

impl Scheme {
    pub(super) fn new(hint: Hint, bytes: usize, rows: usize, text: Option<Arc<Text>>) -> Self {
        Self { found: Some(Found { hint, bytes: bytes as u64, rows: rows as u64, text }) }
    }

    /// Whether it was found on enough rows to be used for `rows` rows.
    pub(super) fn says_of(&self, rows: usize) -> bool {
        self.found.as_ref().is_some_and(|found| rows as u64 <= found.rows * 2)
    }

    /// Whether a segment of `bytes` for `rows` rows is about as small as expected.
    pub(super) fn holds_up(&self, bytes: usize, rows: usize) -> bool {
        // What each segment stores once weighs more in a small one.
        const ONCE: f64 = 256.0;
        self.found.as_ref().is_some_and(|found| {
            let expected = (found.bytes as f64 + ONCE) / found.rows.max(1) as f64 * rows as f64;
            bytes as f64 <= expected * GROWTH_MAX + ONCE
        })
    }
}
