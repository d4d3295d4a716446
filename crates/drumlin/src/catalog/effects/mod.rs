//! What happens to a store: effects and what they did, transactions being built, and what these depend on.

mod added_rows;
pub(super) mod changes;
pub(super) mod described;
pub(super) mod draft;
pub(super) mod effect;
mod ends;
pub(super) mod events;
pub(super) mod features;
pub(super) mod footprint;
pub(super) mod node_effects;
pub(super) mod put_options;
pub(super) mod record;
