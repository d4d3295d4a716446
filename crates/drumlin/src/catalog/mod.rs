//! The catalog: paths, the tree of nodes, and the state of the whole store with its only way to change:
//! [`State::apply`].
//!
//! Pure: no clock, no randomness, no I/O. Applying the same effects to the same state gives the same state, on every
//! machine that reads the log.

mod changes;
mod check;
mod chunks;
mod compare;
mod draft;
mod effect;
mod events;
mod features;
mod field;
mod footprint;
mod glob;
mod holds;
mod keep;
mod ledger;
mod map;
mod node_info;
mod nodes;
mod path;
mod pattern;
mod payload;
mod projection;
mod retention;
mod salvage;
mod sessions;
mod small;
mod state;
mod stored;
mod subtree;
mod tables;
mod tree;
mod trigger;
mod walk;
mod watches;

pub use changes::{Change, Changes, NodeChange};
pub use chunks::{ChunkAddress, Index, LostChunk};
pub use compare::Compare;
pub use draft::{Draft, DraftMark, PutMode, PutOptions};
pub use effect::{Effect, TransactionRecord};
pub use events::{Event, NodeEvent, TableAction, TableEvent, events};
pub use features::{
    FEATURE_ADOPTED, FEATURE_CHANGES, FEATURE_CONSTRAINTS, FEATURE_COPIES, FEATURE_HISTORY, FEATURE_HOLDS,
    FEATURE_NOTES, FEATURE_PATCHES, FEATURE_PURGE, FEATURES_KEPT, FEATURES_KNOWN,
};
pub use field::Field;
pub use footprint::{Footprint, Read, carry_over, check_written};
pub use glob::{Glob, NameRegex};
pub use holds::{Hold, HoldKind, Holds, Job, ended};
pub use keep::Keep;
pub use ledger::{BlockUse, Inline, Ledger};
pub use node_info::NodeInfo;
pub use nodes::{Cause, NodeEffect, NodeEffects, NodeReader};
pub use path::{PATH_NAMES_MAX, Path, check_path};
pub use pattern::{Condition, Part, Pattern};
pub use payload::{Content, Entries, Items, PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX, Payload, PayloadWriter, Value};
pub use projection::{Projection, ProjectionEntry, ProjectionFn, Rule, View, Views};
pub use retention::Retention;
pub use salvage::Mended;
pub use sessions::Sessions;
use small::Small;
pub use state::{Snapshot, State, Trash};
pub use subtree::{CopyOf, CopyReport, Existing, restored_in};
pub use tables::{Packed, Tables, Totals, pack_page, unpack_page};
pub use tree::{Node, Tree};
pub use trigger::{Action, Trigger, TriggerFilter};
pub use walk::Walker;
