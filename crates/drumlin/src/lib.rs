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
pub mod join;
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
mod join;
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
pub use base::{
    Cancel, Error, ErrorKind, Progress, Result, Seq, TableId, Task, Timestamp, TypeName, Version, Warn, WarningKind,
    parse_type,
};
pub use block::{CacheStat, RepackPlan};
pub use catalog::{
    Action, Cause, Change, Changes, Compare, Condition, Content, CopyReport, Event, Existing, Field, NodeChange,
    NodeEvent, NodeInfo, Part, Path, Pattern, Payload, Projection, ProjectionEntry, ProjectionFn, PutMode, PutOptions,
    Retention, StalePolicy, TableAction, TableEvent, TriggerFilter, ViewDefinition, check_path,
};
pub use filter::{BoundExpression, Expression, Filter};
pub use join::{AsofJoin, Direction, Distance, JoinKind, WindowJoin};
pub use log::LogOptions;
pub use segment::{Compression, Stat};
pub use store::*;
pub use table::{
    Alter, ConstraintNames, Constraints, ConstraintsInfo, Fill, Generator, IndexCost, LeftAlone, Lookup, Merge,
    NewColumn, Note, Plan, PlanOptions, Reason, RowLayout, RowLayoutStat, Scan, ScanOptions, ScanPart, ScanPlan,
    SchemaMode, TimeToLive, Turnover, VersionKind, View, WhenMatched, WhenNotMatched, Window,
};

/// What most programs need, and nothing that shadows a name of the standard library: `use drumlin::prelude::*`.
pub mod prelude {
    pub use crate::{
        Aggregate, AsOf, Condition, DatasetOptions, ErrorKind, Filter, Frame, GroupBy, LookupOptions, Mode, Options,
        Pattern, Payload, ReadOptions, ScanOptions, SnapshotOf, Store, Table, TableOptions, Tables, Transaction, Tree,
        Version, WriteOptions,
    };
}

/// Arrow arrays at the borders of a program: whether what another library made is sound, and what type a column is wanted in.
pub mod arrays {
    pub use crate::segment::{changed, children, holds, join};
    pub use crate::table::{checked_array, checked_rows, conform, find_column, forgotten};
}

/// Payloads of nodes, value by value, without a JSON document in between.
pub mod payload {
    pub use crate::catalog::{PAYLOAD_DEPTH_MAX, PayloadWriter, Value};
}

/// What a program needs that puts a store behind another interface, such as a language, a command or a server: threads, waits that can be
/// stopped, panics as errors, forks, randomness and time.
pub mod embedding {
    pub use crate::base::{Clock, Entropy, OsEntropy, OsThreads, SystemClock, Threads, caught, clip, waiting};
    pub use crate::storage::leave_to_parent;
}
