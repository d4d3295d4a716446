//! Spans of `tracing` around what takes time, so that a program sees a store's work within its own traces (OpenTelemetry by
//! `tracing-opentelemetry`). Without the feature `tracing` nothing is compiled.

/// Opens a span until the end of the block.
#[cfg(feature = "tracing")]
macro_rules! span {
    ($name:literal $(, $field:ident = $value:expr)*) => {
        let _span = ::tracing::info_span!(target: "drumlin", $name $(, $field = $value)*).entered();
    };
}

/// Opens a span until the end of the block, if the feature `tracing` is on.
#[cfg(not(feature = "tracing"))]
macro_rules! span {
    ($name:literal $(, $field:ident = $value:expr)*) => {};
}

pub(crate) use span;
