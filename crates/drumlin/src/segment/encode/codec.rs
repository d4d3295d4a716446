//! The Vortex session and compressor, one per process.
//!
//! Invariants: only the encodings of [`ENCODINGS`] are ever written or read, each with a serialised form that
//! Vortex guarantees to read forever; and the same values give the same bytes, whatever the thread (the
//! compressor samples with a fixed seed and keeps nothing between calls; what must be kept is passed on as a scheme).

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use vortex_alp::{ALP, ALPArrayExt, ALPArraySlotsExt, ALPFloat, Exponents, alp_encode};
use vortex_array::arrays::Primitive;
use vortex_array::dtype::{DType, PType};
use vortex_array::{ArrayRef, ExecutionCtx, IntoArray, VortexSessionExecute, array_session};
use vortex_btrblocks::schemes::float::ALPRDScheme;
use vortex_btrblocks::schemes::string::{FSSTScheme, OnPairScheme};
use vortex_btrblocks::{
    BtrBlocksCompressor, BtrBlocksCompressorBuilder, CompressionSessionExt, Scheme, SchemeExt, compress_patches,
};
use vortex_edition::{Edition, EditionId, EditionInclusion, EditionSessionExt};
use vortex_session::VortexSession;
use vortex_session::registry::Id;

use super::hint::{Encodings, Hint};
use super::scheme::{Compression, Search};
use crate::base::Error;

/// The encodings that a segment may hold, stored as their positions in this list.
///
/// Append only. All are of Vortex's edition core 2026.08.1 or older, whose members stay readable forever.
pub(in crate::segment) const ENCODINGS: [&str; 20] = [
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

/// Vortex lets a compressor write the encodings of an enabled edition. The list above is ours.
const EDITION: EditionId = EditionId::new("drumlin", 2026, 8, 0);

/// Tried whatever a scheme says: they are cheap to evaluate, and catch data that became simpler.
const CHEAP: [&str; 4] = ["fastlanes.bitpacked", "fastlanes.for", "vortex.zigzag", "vortex.alp"];

/// From this many rows on, strings are treated as a long text.
pub(in crate::segment) const LONG_ROWS_MIN: usize = 4096;

static CODEC: LazyLock<Codec> = LazyLock::new(Codec::new);

/// What encoding and decoding need from Vortex.
pub(in crate::segment) struct Codec {
    pub(in crate::segment) session: VortexSession,
    /// The interned names of [`ENCODINGS`].
    pub(in crate::segment) ids: [Id; ENCODINGS.len()],
    /// For all but long texts: without OnPair, whose dictionary is too large for few rows, and without ALP-RD, which makes a fifth
    /// of doubles go away for most of the time that reading them takes.
    compressor: BtrBlocksCompressor,
    /// The same with ALP-RD.
    small: BtrBlocksCompressor,
    /// For long texts, in addition to OnPair (see onpair.rs): without OnPair and FSST.
    texts: BtrBlocksCompressor,
    /// Compressors limited to some encodings, by these encodings.
    restricted: Mutex<HashMap<Encodings, Arc<BtrBlocksCompressor>>>,
}

impl Codec {
    /// The codec of this process.
    pub(in crate::segment) fn get() -> &'static Self {
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
        let builder = builder.exclude_schemes([OnPairScheme.id()]);
        let texts = builder.clone().exclude_schemes([FSSTScheme.id()]).build();
        let small = builder.clone().build();
        let compressor = builder.exclude_schemes([ALPRDScheme.id()]).build();
        let restricted = Mutex::default();
        Self { session, ids: ENCODINGS.map(Id::new_static), compressor, small, texts, restricted }
    }

    /// A compressor limited to the encodings `only`, and those that cost nothing to try.
    fn restricted(&self, only: Encodings) -> Arc<BtrBlocksCompressor> {
        let make = || {
            let knows = |id: &Id| {
                let place = self.ids.iter().position(|known| known == id);
                place.is_some_and(|place| only >> place & 1 == 1 || CHEAP.contains(&ENCODINGS[place]))
            };
            let unknown = |scheme: &&&dyn Scheme| !scheme.produced_encodings().iter().any(knows);
            let session = self.session.compression();
            let unknown = session.schemes().iter().filter(unknown).map(|scheme| scheme.id());
            let unknown: Vec<_> = unknown.chain([OnPairScheme.id()]).collect();
            Arc::new(BtrBlocksCompressorBuilder::from_session(&self.session).exclude_schemes(unknown).build())
        };
        self.restricted.lock().entry(only).or_insert_with(make).clone()
    }

    /// Whether OnPair is among `encodings`.
    pub(in crate::segment) fn is_text(encodings: Encodings) -> bool {
        let onpair = ENCODINGS.iter().position(|encoding| *encoding == "vortex.onpair");
        onpair.is_some_and(|place| encodings >> place & 1 == 1)
    }

    /// A context to run Vortex arrays in.
    pub(in crate::segment) fn context(&self) -> ExecutionCtx {
        self.session.create_execution_ctx()
    }

    /// The smallest form that Vortex finds; `None` if it fails, and then the plain form is stored.
    pub(in crate::segment) fn compress(&self, array: &ArrayRef, search: Search) -> Option<ArrayRef> {
        // Without a search, what is cheap to evaluate is tried.
        let only = search.only.or((search.compression == Compression::Fast).then_some(Hint::CHEAP));
        if let Some(only) = only
            && let Some(exponents) = only.exponents
            && fits(exponents, array.dtype())
        {
            return self.compress_floats(array, exponents, Search { only: Some(only), ..search });
        }
        let restricted = only.map(|only| self.restricted(only.encodings));
        let compressor = match &restricted {
            Some(restricted) => restricted,
            None if array.dtype().is_utf8() && array.len() >= LONG_ROWS_MIN => &self.texts,
            None if search.compression == Compression::Small => &self.small,
            None => &self.compressor,
        };
        catch_unwind(AssertUnwindSafe(|| compressor.compress(array, &mut self.context()).ok())).ok().flatten()
    }

    /// Encodes floats as integers, with known powers of ten.
    fn compress_floats(&self, array: &ArrayRef, exponents: Exponents, search: Search) -> Option<ArrayRef> {
        let compress = || {
            let mut context = self.context();
            let floats = array.as_opt::<Primitive>()?;
            let encoded = alp_encode(floats, Some(exponents), &mut context).ok()?;
            let patches = encoded.patches().map(|patches| compress_patches(patches, &mut context)).transpose().ok()?;
            let only = search.only.map(|only| Hint { exponents: None, ..only });
            let integers = self.compress(encoded.encoded(), Search { only, ..search })?;
            Some(ALP::try_new(integers, exponents, patches).ok()?.into_array())
        };
        catch_unwind(AssertUnwindSafe(compress)).ok().flatten()
    }
}

/// Whether these powers of ten are valid for a float type.
fn fits(exponents: Exponents, dtype: &DType) -> bool {
    let most = match dtype {
        DType::Primitive(PType::F32, _) => f32::MAX_EXPONENT,
        DType::Primitive(PType::F64, _) => f64::MAX_EXPONENT,
        _ => return false,
    };
    exponents.e <= most && exponents.f <= most
}

/// The error for bytes that Vortex cannot decode.
pub(in crate::segment) fn refused(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::corrupt("Vortex cannot decode the segment").with_source(error)
}
