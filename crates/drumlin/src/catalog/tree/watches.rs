//! Which nodes depend on which others, by their life conditions: an index by the watched path. Without life conditions
//! a write costs nothing more.

use std::sync::Arc;

use super::map::Map;
use super::walk::each_below;
use crate::catalog::{Condition, Keep, Node, NodeTree, Path};

/// Which node watches which path: pairs of the path that a condition is on, and the node that depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::catalog) struct Watches {
    pairs: Map<(Path, Path), ()>,
}

impl Watches {
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The nodes that depend on `path`.
    pub fn of<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        let from = self.pairs.iter_from(move |(watched, _)| watched < path);
        from.take_while(move |((watched, _), ())| watched == path).map(|((_, watcher), ())| watcher)
    }

    pub fn add(&mut self, watcher: &Path, keep: &Keep) {
        for (watched, _) in &keep.conditions {
            self.pairs.insert((watched.clone(), watcher.clone()), ());
        }
    }

    pub fn remove(&mut self, watcher: &Path, keep: &Keep) {
        for (watched, _) in &keep.conditions {
            let pair = (watched.clone(), watcher.clone());
            self.pairs.remove(|known| known.cmp(&pair));
        }
    }

    /// Forgets the node that was at `path`, and all below it.
    pub fn forget(&mut self, path: &str, node: &Node) {
        if self.is_empty() {
            return;
        }
        let mut gone: Vec<(Path, Arc<Keep>)> = Vec::new();
        let mut found = |path: &str, node: &Node| {
            gone.extend(node.keep().map(|keep| (Path::trusted(path), keep.clone())));
        };
        found(path, node);
        if let Some(below) = node.below() {
            each_below(&mut path.to_owned(), below, &mut found);
        }
        gone.iter().for_each(|(path, keep)| self.remove(path, keep));
    }
}

/// The path of the first condition that does not hold, if there is one; conditions on `but` are not checked.
pub(in crate::catalog) fn broken<'a>(keep: &'a Keep, tree: &NodeTree, but: Option<&str>) -> Option<&'a Path> {
    let holds = |path: &Path, condition: &Condition| condition.holds(path.as_str(), tree.info(path.as_str()).as_ref());
    let looked_at = |path: &Path| but != Some(path.as_str());
    keep.conditions.iter().find(|(path, c)| looked_at(path) && !holds(path, c)).map(|(path, _)| path)
}
