//! The catalog: paths, the tree of nodes, and the state of the whole store with its only way to change:
//! [`State::apply`].
//!
//! Pure: no clock, no randomness, no I/O. Applying the same effects to the same state gives the same state, on every
//! machine that reads the log.

mod covers;
mod effects;
mod followers;
mod holds;
mod ledger;
mod patterns;
mod payload;
mod presences;
mod projection;
mod row_views;
mod sequences;
mod sessions;
mod state;
mod stored;
mod tables;
mod trash;
mod tree;

pub use covers::{CoverId, SnapshotCover, SnapshotCovers};
pub use effects::changes::{Change, Changes, NodeChange};
pub use effects::draft::{Draft, DraftMark};
pub use effects::effect::Effect;
pub use effects::events::{Event, NodeEvent, TableAction, TableEvent, events};
pub use effects::features::{
    FEATURE_ADOPTED, FEATURE_CHANGES, FEATURE_CONSTRAINTS, FEATURE_COPIES, FEATURE_COVERS, FEATURE_ERASED,
    FEATURE_GENERATED, FEATURE_HISTORY, FEATURE_HOLDS, FEATURE_JOBS, FEATURE_NOTES, FEATURE_PATCHES, FEATURE_PURGE,
    FEATURE_TTL, FEATURE_UNIQUE, FEATURE_VIEWS, FEATURES_KEPT, FEATURES_KNOWN,
};
pub use effects::footprint::{Footprint, Read, carry_over, check_written};
pub use effects::node_effects::{Cause, NodeEffect, NodeEffects, NodeReader};
pub use effects::put_options::{PutMode, PutOptions};
pub use effects::record::TransactionRecord;
pub use followers::{Follower, Followers};
pub use holds::{Hold, HoldKind, Holds, Job, ended};
pub use ledger::{BlockUse, Inline, Ledger};
pub use patterns::compare::Compare;
pub use patterns::field::Field;
pub use patterns::glob::{Glob, NameRegex};
pub use patterns::node_info::NodeInfo;
pub use patterns::pattern::{Condition, Part, Pattern};
pub use patterns::trigger::{Action, Trigger, TriggerFilter};
pub use payload::{Content, Entries, Items, PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX, Payload, PayloadWriter, Value};
pub use presences::{PresenceChange, PresenceRecord, Presences};
pub use projection::{MaterializedView, Projection, ProjectionEntry, ProjectionFn, Rule, Views};
pub use row_views::{RowView, RowViews, StalePolicy, ViewDefinition};
pub use sequences::Sequences;
pub use sessions::Sessions;
pub use state::{Snapshot, State};
pub use stored::chunks::{ChunkAddress, Index, LostChunk};
pub use stored::salvage::Mended;
pub use tables::{Packed, TableMap, Totals, pack_page, unpack_page};
pub use trash::{Dropped, Trash};
pub use tree::keep::Keep;
pub use tree::nodes::{Node, NodeTree};
pub use tree::path::{PATH_NAMES_MAX, Path, check_path};
pub use tree::retention::Retention;
use tree::small::Small;
pub use tree::subtree::{CopyOf, CopyReport, Existing, restored_in};
pub use tree::walk::Walker;
