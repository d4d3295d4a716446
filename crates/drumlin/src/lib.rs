//! Drumlin: an embedded, versioned table store.
//!
//! Tables live on a tree of paths; a commit is atomic over any number of tables; every past version can be read. See
//! [`Store`] for the public API and ARCHITECTURE.md for how it works.

#![deny(unsafe_code, missing_docs)]
#![warn(clippy::all)]

// The layers; `tests/tidy.rs` has their order, bottom to top, and holds them to it.
pub mod base;
pub mod block;
pub mod catalog;
pub mod filter;
pub mod log;
pub mod memtable;
pub mod segment;
pub mod storage;
pub mod store;
pub mod table;

pub use arrow;
pub use base::{Cancel, Error, ErrorKind, Progress, Result, Seq, TableId, Task, Timestamp, Version};
pub use catalog::{
    Cause, Change, Changes, Condition, Event, Field, NodeChange, NodeEvent, NodeInfo, Path, Pattern, Payload,
    Projection, ProjectionEntry, ProjectionFn, PutMode, PutOptions, Retention, TriggerFilter, check_path,
};
pub use filter::Filter;
pub use store::*;
pub use table::{Lookup, PlanOptions, Scan, ScanOptions, VersionKind};
