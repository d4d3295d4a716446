//! How a column was encoded, so that later parts of it are encoded in the same way, without a search.
//!
//! Finding a form for a column costs more than encoding values in it: numbers are counted, samples are tried,
//! dictionaries are trained on texts. A scheme holds what the search found. It is used as long as its results are not
//! much larger per row than the data it was found on.
//!
//! The scheme comes from the segments that are rewritten, or from the first row group of a write. So which encoding is
//! used never depends on which thread was first, and neither do the bytes.
//!
//! [`Compression::Balanced`] leaves out ALP-RD, which saves little and takes long to read, and keeps floats plain
//! unless a form of them saves a fifth: plain doubles are decoded without being touched.

use std::sync::Arc;

use drumlin_codec::Effort;

use super::hint::Hint;
use crate::base::{Error, Result};
use crate::segment::forms::onpair::Text;

/// How much larger per row the results of a scheme may be than the data it was found on.
const GROWTH_MAX: f64 = 1.15;

/// What decides how values are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// What they take, and what it costs to read them: floats that hardly compress are kept as they are.
    #[default]
    Balanced,
    /// What they take.
    Small,
    /// What it costs to write and to read them: only forms that are found without a search.
    Fast,
}

impl Compression {
    /// All there are.
    const ALL: [Self; 3] = [Self::Balanced, Self::Small, Self::Fast];

    /// By its name: `balanced`, `small` or `fast`.
    ///
    /// # Errors
    /// `InvalidArgument` for others.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| {
            Error::invalid(format!("'{name}' is not a compression; expected 'balanced', 'small' or 'fast'"))
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::Small => "small",
            Self::Fast => "fast",
        }
    }
}

/// How an earlier part of a column was encoded. The default is empty: a form is searched for.
#[derive(Clone, Debug, Default)]
pub struct Scheme {
    pub(in crate::segment) found: Option<FoundEncoding>,
    pub(in crate::segment) compression: Compression,
}

/// What to try.
#[derive(Clone, Copy, Debug)]
pub(in crate::segment) struct Search {
    /// Only these encodings; `None` for all.
    pub only: Option<Hint>,
    pub compression: Compression,
}

impl Search {
    /// The same for the codec.
    pub fn for_codec(self) -> drumlin_codec::Search {
        drumlin_codec::Search {
            encodings: self.only.map(|only| only.encodings),
            exponents: self.only.and_then(|only| only.exponents),
            effort: match self.compression {
                Compression::Balanced => Effort::Balanced,
                Compression::Small => Effort::Small,
                Compression::Fast => Effort::Fast,
            },
        }
    }
}

#[derive(Clone, Debug)]
pub(in crate::segment) struct FoundEncoding {
    pub hint: Hint,
    /// Bytes of the segment, and its rows.
    pub bytes: u64,
    pub rows: u64,
    /// The dictionary trained on a long text.
    pub text: Option<Arc<Text>>,
}

impl Scheme {
    pub(in crate::segment) fn new(hint: Hint, bytes: usize, rows: usize, text: Option<Arc<Text>>) -> Self {
        let found = Some(FoundEncoding { hint, bytes: bytes as u64, rows: rows as u64, text });
        Self { found, compression: Compression::default() }
    }

    /// The same with another compression.
    pub fn with_compression(self, compression: Compression) -> Self {
        Self { compression, ..self }
    }

    /// Whether it was found on enough rows to be used for `rows` rows.
    pub(in crate::segment) fn says_of(&self, rows: usize) -> bool {
        self.found.as_ref().is_some_and(|found| rows as u64 <= found.rows * 2)
    }

    /// Whether a segment of `bytes` for `rows` rows is about as small as expected.
    pub(in crate::segment) fn holds_up(&self, bytes: usize, rows: usize) -> bool {
        // What each segment stores once weighs more in a small one.
        const ONCE: f64 = 256.0;
        self.found.as_ref().is_some_and(|found| {
            let expected = (found.bytes as f64 + ONCE) / found.rows.max(1) as f64 * rows as f64;
            bytes as f64 <= expected * GROWTH_MAX + ONCE
        })
    }
}
