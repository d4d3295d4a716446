//! Drumlin: an embedded, versioned table store.
//!
//! Tables live on a tree of paths; a commit is atomic over any number of tables; every past version can be read. See
//! [`Store`] for the public API and ARCHITECTURE.md for how it works.

#![deny(unsafe_code, missing_docs)]
#![warn(clippy::all)]
#![cfg_attr(
    not(feature = "internals"),
    allow(dead_code, unused_imports, reason = "tests reach it by the feature, and users what lies at the root"),
    warn(clippy::missing_errors_doc)
)]

// The layers; `tests/tidy.rs` has their order, from bottom to top, and enforces it. They are not part of the API: tests,
// benchmarks and the other crates of the workspace use them through a feature.
#[cfg(feature = "internals")]
pub mod aggregate;
#[cfg(feature = "internals")]
pub mod base;
#[cfg(feature = "internals")]
pub mod block;
#[cfg(feature = "internals")]
pub mod catalog;
#[cfg(feature = "internals")]
pub mod filter;
#[cfg(feature = "internals")]
pub mod log;
#[cfg(feature = "internals")]
pub mod memtable;
#[cfg(feature = "internals")]
pub mod segment;
#[cfg(feature = "internals")]
pub mod storage;
#[cfg(feature = "internals")]
pub mod store;
#[cfg(feature = "internals")]
pub mod table;

#[cfg(not(feature = "internals"))]
mod aggregate;
#[cfg(not(feature = "internals"))]
mod base;
#[cfg(not(feature = "internals"))]
mod block;
#[cfg(not(feature = "internals"))]
mod catalog;
#[cfg(not(feature = "internals"))]
mod filter;
#[cfg(not(feature = "internals"))]
mod log;
#[cfg(not(feature = "internals"))]
mod memtable;
#[cfg(not(feature = "internals"))]
mod segment;
#[cfg(not(feature = "internals"))]
mod storage;
#[cfg(not(feature = "internals"))]
mod store;
#[cfg(not(feature = "internals"))]
mod table;

pub use aggregate::{Aggregate, Every, Function, GroupBy, Length};
pub use arrow;
pub use base::{Cancel, Error, ErrorKind, Progress, Result, Seq, TableId, Task, Timestamp, Version, Warn, WarningKind};
pub use block::{CacheStat, RepackPlan};
pub use catalog::{
    Cause, Change, Changes, Compare, Condition, Content, CopyReport, Event, Existing, Field, NodeChange, NodeEvent,
    NodeInfo, Path, Pattern, Payload, Projection, ProjectionEntry, ProjectionFn, PutMode, PutOptions, Retention,
    TableAction, TableEvent, TriggerFilter, check_path,
};
pub use filter::{Expression, Filter};
pub use log::LogOptions;
pub use segment::{Compression, Stat};
pub use store::*;
pub use table::{
    Alter, ConstraintNames, Constraints, ConstraintsInfo, Fill, LeftAlone, Lookup, Merge, NewColumn, Note, Plan,
    PlanOptions, Reason, Scan, ScanOptions, ScanPart, ScanPlan, SchemaMode, Turnover, VersionKind, WhenMatched,
    WhenNotMatched, Window,
};
