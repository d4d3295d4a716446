//! The catalog: paths, the tree of nodes, and the whole-store state with its one way to change: [`State::apply`].
//!
//! Pure: no clock, no randomness, no I/O. Applying the same effects to the same state gives the same state, on every
//! machine that reads the log.

mod check;
mod effect;
mod footprint;
mod ledger;
mod path;
mod payload;
mod retention;
mod state;
mod tree;

pub use effect::{Effect, Transaction};
pub use footprint::{Footprint, Read};
pub use ledger::{BlockUse, Ledger};
pub use path::{Path, Pattern};
pub use payload::{PAYLOAD_BYTES_MAX, Payload};
pub use retention::Retention;
pub use state::{FEATURES_KNOWN, Session, Snapshot, State, Trash};
pub use tree::{Node, Tree};
