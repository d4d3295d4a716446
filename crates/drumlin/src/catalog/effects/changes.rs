//! Results of operations on nodes: what each node was and became, and why.

use crate::catalog::{Cause, NodeEffect, NodeEffects, NodeInfo, NodeTree};

/// What an operation did to one node, and the changes that followed from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// What the node was; `None` if it did not exist.
    pub before: Option<NodeInfo>,
    /// What it became; `None` if it is gone.
    pub after: Option<NodeInfo>,
    /// What was deleted with it: nodes below it, and those whose life depended on it.
    pub indirect: Option<Box<Changes>>,
}

/// What an operation did to many nodes, in order. Keeps the trees before and after it alive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    pub(in crate::catalog) before: NodeTree,
    pub(in crate::catalog) after: NodeTree,
    pub(in crate::catalog) effects: NodeEffects,
}

/// What was done to one node of many.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeChange {
    /// The node.
    pub path: String,
    /// What it was before the operation.
    pub before: Option<NodeInfo>,
    /// What it is after it.
    pub after: Option<NodeInfo>,
    /// Why.
    pub cause: Cause,
}

impl Changes {
    /// The number of nodes changed, including those deleted along with others.
    pub fn len(&self) -> usize {
        self.effects.len()
    }

    /// Whether no node was changed.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// What was done to each node, in order.
    pub fn iter(&self) -> impl Iterator<Item = NodeChange> {
        let mut reader = self.effects.reader();
        std::iter::from_fn(move || {
            let (path, effect) = reader.advance().expect("it was made here")?;
            let cause = if let NodeEffect::Delete { cause } = effect { cause } else { Cause::Asked };
            let (before, after) = (self.before.info(path), self.after.info(path));
            Some(NodeChange { path: path.to_owned(), before, after, cause })
        })
    }
}
