//! What triggers are called for.

use serde::{Deserialize, Serialize};

use crate::base::{Error, Result, Seq, SessionId};
use crate::catalog::{NodeInfo, Pattern};

/// The kind of an event on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It did not exist before.
    Create,
    /// It existed, and its payload was set or removed.
    Update,
    /// It was deleted.
    Delete,
}

/// Which events a trigger is called for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriggerFilter {
    /// Which nodes, as they are after the event; a deleted one as it was before. Only the last part may have conditions.
    pub pattern: Pattern,
    /// Which actions; none for all.
    pub actions: Vec<Action>,
    /// Of two triggers, the one with the higher number is called first for an event; with the same number, by name.
    pub priority: i32,
}

impl TriggerFilter {
    /// Fails if the event alone does not show whether it matches.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check(&self) -> Result<()> {
        if self.pattern.is_of_node() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "trigger on '{}': only the last part of the pattern may have a condition on a node; use conditions on \
             names before it",
            self.pattern
        )))
    }

    /// Whether an event matches.
    pub fn matches(&self, path: &str, action: Action, node: &NodeInfo) -> bool {
        (self.actions.is_empty() || self.actions.contains(&action)) && self.pattern.matches(path, node)
    }
}

/// A durable trigger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// What it is called for.
    #[serde(with = "crate::base::json_text")]
    pub filter: TriggerFilter,
    /// The process that calls it.
    pub owner: SessionId,
    /// It has been called for all commits up to this one.
    pub done: Seq,
}
