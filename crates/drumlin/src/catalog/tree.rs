//! The tree of nodes as one persistent ordered map from path to node: a subtree is a range, a copy is O(1).
//!
//! Invariants: a node's parent is there; `children` counts its children; a node without payload, table and retention
//! has children (parents appear with their first child and go with their last).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use super::{Path, Pattern, Payload, Retention};
use crate::base::{Error, Result, Seq, TableId};

/// One entry of the tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// What it carries.
    pub payload: Option<Arc<Payload>>,
    /// How often the payload has been changed since the node appeared.
    pub payload_version: u64,
    /// The table it holds.
    pub table: Option<TableId>,
    /// How long tables at and below it keep versions; `None` inherits.
    pub retention: Option<Retention>,
    /// Its children.
    pub children: u64,
    /// How often the list of children has changed since the node appeared.
    pub children_version: u64,
    /// The last commit that changed its payload, table or retention.
    pub seq: Seq,
}

impl Node {
    fn is_bare(&self) -> bool {
        self.payload.is_none() && self.table.is_none() && self.retention.is_none()
    }
}

/// All nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// Holds where no node says.
    pub default_retention: Option<Retention>,
    #[serde(with = "crate::base::persistent::ordered_map")]
    nodes: OrdMap<Path, Arc<Node>>,
}

impl Tree {
    /// The node at `path`. O(log nodes).
    pub fn get(&self, path: &Path) -> Option<&Arc<Node>> {
        self.nodes.get(path)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Changes the node at `path`, made with its parents if it is not there.
    pub fn update(&mut self, path: &Path, seq: Seq, change: impl FnOnce(&mut Node)) {
        match self.nodes.get_mut(path) {
            Some(node) => {
                let node = Arc::make_mut(node);
                change(node);
                node.seq = seq;
            }
            None => {
                let mut node = Node { seq, ..Node::default() };
                change(&mut node);
                self.nodes.insert(path.clone(), Arc::new(node));
                self.add_to_parent(path, seq);
            }
        }
        self.prune(path);
    }

    fn add_to_parent(&mut self, path: &Path, seq: Seq) {
        let Some(parent) = path.parent() else { return };
        if let Some(node) = self.nodes.get_mut(&parent) {
            let node = Arc::make_mut(node);
            node.children += 1;
            node.children_version += 1;
            return;
        }
        let node = Node { children: 1, children_version: 1, seq, ..Node::default() };
        self.nodes.insert(parent.clone(), Arc::new(node));
        self.add_to_parent(&parent, seq);
    }

    /// Removes the node at `path`, with all below it. Returns the paths removed, in order; parents left bare and
    /// childless go too, without being listed.
    pub fn remove(&mut self, path: &Path) -> Vec<Path> {
        let gone: Vec<Path> = self.subtree(path.as_str()).map(|(path, _)| path.clone()).collect();
        for path in &gone {
            self.nodes.remove(path);
        }
        if !gone.is_empty() {
            self.take_from_parent(path);
        }
        gone
    }

    fn take_from_parent(&mut self, path: &Path) {
        let Some(parent) = path.parent() else { return };
        if let Some(node) = self.nodes.get_mut(&parent) {
            let node = Arc::make_mut(node);
            node.children -= 1;
            node.children_version += 1;
            self.prune(&parent);
        }
    }

    /// Removes the node at `path` if it is bare and childless, then its parent likewise.
    fn prune(&mut self, path: &Path) {
        if self.nodes.get(path).is_some_and(|node| node.is_bare() && node.children == 0) {
            self.nodes.remove(path);
            self.take_from_parent(path);
        }
    }

    /// The node at `top` and all below it, in path order; of the whole tree if `top` is empty.
    pub fn subtree<'a>(&'a self, top: &'a str) -> impl Iterator<Item = (&'a Path, &'a Arc<Node>)> {
        let start = Path::new(top).ok();
        let from = match start {
            Some(path) => Bound::Included(path),
            None => Bound::Unbounded,
        };
        let range = self.nodes.range((from, Bound::Unbounded));
        range.take_while(move |(path, _)| top.is_empty() || path.is_within(top))
    }

    /// The nodes that match `pattern`, in path order. Visits the subtree under the pattern's literal prefix.
    pub fn matching<'a>(&'a self, pattern: &'a Pattern) -> Box<dyn Iterator<Item = (&'a Path, &'a Arc<Node>)> + 'a> {
        if let Some(path) = pattern.literal() {
            let path = Path::new(path).ok();
            return Box::new(path.and_then(|path| self.nodes.get_key_value(&path)).into_iter());
        }
        Box::new(self.subtree(pattern.prefix()).filter(|(path, _)| pattern.matches(path.as_str())))
    }

    /// Fails if the invariants do not hold, as only after damage.
    pub(super) fn check(&self) -> Result<()> {
        let mut children: BTreeMap<Path, u64> = BTreeMap::new();
        for (path, _) in &self.nodes {
            if let Some(parent) = path.parent() {
                *children.entry(parent).or_insert(0) += 1;
            }
        }
        let mut counted = 0;
        for (path, node) in &self.nodes {
            let found = children.get(path).copied().unwrap_or(0);
            counted += usize::from(found > 0);
            if node.children != found || (node.is_bare() && found == 0) {
                return Err(Error::corrupt(format!(
                    "catalog: '{path}' says it has {} children, found {found}",
                    node.children
                )));
            }
        }
        if counted != children.len() {
            return Err(Error::corrupt("catalog: a node has no parent"));
        }
        Ok(())
    }

    /// The retention that holds at `path`: its own, or that of the nearest node above it that sets one.
    pub fn retention(&self, path: &Path) -> Retention {
        let own = self.get(path).and_then(|node| node.retention);
        let above = || path.ancestors().find_map(|above| self.get(&above)?.retention);
        own.or_else(above).or(self.default_retention).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        Path::new(text).unwrap()
    }

    fn put(tree: &mut Tree, text: &str) {
        tree.update(&path(text), Seq(1), |node| node.payload = Some(Arc::new(Payload::Bytes(vec![1]))));
    }

    fn paths(tree: &Tree, pattern: &str) -> Vec<String> {
        tree.matching(&Pattern::new(pattern).unwrap()).map(|(path, _)| path.to_string()).collect()
    }

    #[test]
    fn parents_come_with_the_first_child_and_go_with_the_last() {
        let mut tree = Tree::default();
        put(&mut tree, "a/b/c");
        put(&mut tree, "a/b/d");
        assert_eq!(paths(&tree, "**"), ["a", "a/b", "a/b/c", "a/b/d"]);
        assert_eq!(tree.get(&path("a/b")).unwrap().children, 2);
        assert_eq!(tree.remove(&path("a/b/c")), [path("a/b/c")]);
        assert_eq!(tree.get(&path("a/b")).unwrap().children, 1);
        assert_eq!(tree.get(&path("a/b")).unwrap().children_version, 3);
        tree.remove(&path("a/b/d"));
        assert!(tree.is_empty());
    }

    #[test]
    fn removing_takes_the_subtree_and_nothing_beside_it() {
        let mut tree = Tree::default();
        for text in ["a/b", "a/b/c", "a/b c", "a/bc", "a"] {
            put(&mut tree, text);
        }
        assert_eq!(tree.remove(&path("a/b")), [path("a/b"), path("a/b/c")]);
        assert_eq!(paths(&tree, "**"), ["a", "a/b c", "a/bc"]);
        assert_eq!(tree.remove(&path("nothing")), []);
    }

    #[test]
    fn retention_is_inherited_from_the_nearest_above() {
        let mut tree = Tree::default();
        tree.update(&path("a"), Seq(1), |node| node.retention = Some(Retention::KeepLast(3)));
        tree.update(&path("a/b"), Seq(1), |node| node.retention = Some(Retention::KeepAll));
        assert_eq!(tree.retention(&path("a/x/y")), Retention::KeepLast(3));
        assert_eq!(tree.retention(&path("a/b/c")), Retention::KeepAll);
        assert_eq!(tree.retention(&path("z")), Retention::KeepAll);
    }
}
