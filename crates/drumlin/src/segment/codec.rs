//! The Vortex session and compressor, one for the process.
//!
//! Invariants: only the encodings of [`ENCODINGS`] are ever written or read, each with a serialised form that
//! Vortex guarantees to read forever; and the same values give the same bytes, whatever the thread (the
//! compressor samples with a fixed seed and keeps nothing between calls).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use vortex_array::{ArrayRef, ExecutionCtx, VortexSessionExecute, array_session};
use vortex_btrblocks::schemes::string::{FSSTScheme, OnPairScheme};
use vortex_btrblocks::{BtrBlocksCompressor, BtrBlocksCompressorBuilder, SchemeExt};
use vortex_edition::{Edition, EditionId, EditionInclusion, EditionSessionExt};
use vortex_session::VortexSession;
use vortex_session::registry::Id;

use crate::base::Error;

/// The encodings that a segment may hold: in the bytes each is its place in this list.
///
/// Append only. All are of Vortex's edition core 2026.08.1 or older, whose members stay readable for ever.
pub(super) const ENCODINGS: [&str; 20] = [
    "vortex.primitive",
    "vortex.bool",
    "vortex.varbin",
    "vortex.varbinview",
    "vortex.constant",
    "vortex.dict",
    "vortex.masked",
    "vortex.sparse",
    "vortex.sequence",
    "vortex.runend",
    "vortex.zigzag",
    "vortex.alp",
    "vortex.alprd",
    "vortex.fsst",
    "vortex.onpair",
    "fastlanes.bitpacked",
    "fastlanes.for",
    "fastlanes.rle",
    "vortex.null",
    "vortex.chunked",
];

/// Vortex lets a compressor write what an enabled edition holds. The list above is ours.
const EDITION: EditionId = EditionId::new("drumlin", 2026, 8, 0);

/// From this many rows on strings are a long text.
const LONG_ROWS_MIN: usize = 4096;

static CODEC: LazyLock<Codec> = LazyLock::new(Codec::new);

/// What encoding and decoding need from Vortex.
pub(super) struct Codec {
    pub(super) session: VortexSession,
    /// The interned names of [`ENCODINGS`].
    pub(super) ids: [Id; ENCODINGS.len()],
    /// For all but long texts: without OnPair.
    compressor: BtrBlocksCompressor,
    /// For long texts: without FSST.
    texts: BtrBlocksCompressor,
}

impl Codec {
    /// The one of this process.
    pub(super) fn get() -> &'static Self {
        &CODEC
    }

    fn new() -> Self {
        let session = array_session();
        vortex_alp::initialize(&session);
        vortex_fastlanes::initialize(&session);
        vortex_fsst::initialize(&session);
        vortex_onpair::initialize(&session);
        vortex_runend::initialize(&session);
        vortex_sequence::initialize(&session);
        vortex_sparse::initialize(&session);
        vortex_zigzag::initialize(&session);
        vortex_arrow::initialize(&session);
        let enabled = (|| {
            session.editions().declare_edition(Edition { id: EDITION, min_library_version: Some("0.90.0") })?;
            for encoding in &ENCODINGS {
                session.editions().declare_inclusion(EditionInclusion::array(*encoding, EDITION))?;
            }
            session.enable_edition(EDITION)
        })();
        // The names are constants: if Vortex refuses one, no test of this layer passes.
        enabled.unwrap_or_else(|error| panic!("Vortex refuses the list of encodings: {error}"));
        let builder = BtrBlocksCompressorBuilder::from_session(&session);
        let texts = builder.clone().exclude_schemes([FSSTScheme.id()]).build();
        let compressor = builder.exclude_schemes([OnPairScheme.id()]).build();
        Self { session, ids: ENCODINGS.map(Id::new_static), compressor, texts }
    }

    /// A context to run Vortex arrays in.
    pub(super) fn context(&self) -> ExecutionCtx {
        self.session.create_execution_ctx()
    }

    /// The smallest form that Vortex finds; `None` if it fails, and then the plain form is stored.
    pub(super) fn compress(&self, array: &ArrayRef) -> Option<ArrayRef> {
        // Vortex would choose by a sample of one in a hundred, too few for OnPair, whose dictionary is large: it
        // would lose to FSST on texts that it makes smaller by a third (a row group of TPC-H's l_comment: 0.84
        // and 1.31 MB). On few rows OnPair costs more time than it gains bytes.
        let long_text = array.dtype().is_utf8() && array.len() >= LONG_ROWS_MIN;
        let compressor = if long_text { &self.texts } else { &self.compressor };
        catch_unwind(AssertUnwindSafe(|| compressor.compress(array, &mut self.context()).ok())).ok().flatten()
    }
}

/// What Vortex says of bytes that it cannot decode.
pub(super) fn refused(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::corrupt("Vortex cannot decode the segment").with_source(error)
}
