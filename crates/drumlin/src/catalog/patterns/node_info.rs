//! The properties of a node, as seen by conditions, changes and callers.

use crate::base::{Seq, Timestamp};
use crate::catalog::Payload;

/// What a node is, without what is below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeInfo {
    /// What it carries.
    pub payload: Option<Payload>,
    /// How often the payload has been changed since the node appeared.
    pub payload_version: u64,
    /// Whether it holds a table.
    pub table: bool,
    /// Its children.
    pub children: u64,
    /// How often the list of children has changed since the node appeared.
    pub children_version: u64,
    /// The last commit that changed its payload, table, retention or life condition.
    pub seq: Seq,
    /// The number of the presence that it ends with.
    pub presence: Option<u64>,
    /// When it ends by itself: it is deleted soon after.
    pub expires: Option<Timestamp>,
}
