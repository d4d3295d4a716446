//! Which nodes depend on which others, by their life conditions: an index by the watched path; and which end with a presence or by
//! themselves. Without life conditions a write costs nothing more.

use std::sync::Arc;

use super::map::Map;
use super::walk::each_below;
use crate::base::Timestamp;
use crate::catalog::{Condition, Keep, Node, NodeTree, Path};

/// Which node watches which path: pairs of the path that a condition is on, and the node that depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::catalog) struct Watches {
    pairs: Map<(Path, Path), ()>,
    /// Nodes that end with a presence, by its number.
    present: Map<(u64, Path), ()>,
    /// Nodes that end by themselves, by when they do.
    timed: Map<(Timestamp, Path), ()>,
}

impl Watches {
    /// Whether no node depends on another.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Whether no node has a life condition at all.
    pub fn are_none(&self) -> bool {
        self.pairs.is_empty() && self.present.is_empty() && self.timed.is_empty()
    }

    /// The nodes that end with a presence.
    pub fn of_presence(&self, number: u64) -> impl Iterator<Item = &Path> {
        let from = self.present.iter_from(move |(of, _)| *of < number);
        from.take_while(move |((of, _), ())| *of == number).map(|((_, path), ())| path)
    }

    /// The nodes that end by themselves, with when they do, the first first.
    pub fn timed(&self) -> impl Iterator<Item = &(Timestamp, Path)> {
        self.timed.iter().map(|(timed, ())| timed)
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
        if let Some(number) = keep.presence {
            self.present.insert((number, watcher.clone()), ());
        }
        if let Some(until) = keep.until {
            self.timed.insert((until, watcher.clone()), ());
        }
    }

    pub fn remove(&mut self, watcher: &Path, keep: &Keep) {
        for (watched, _) in &keep.conditions {
            let pair = (watched.clone(), watcher.clone());
            self.pairs.remove(|known| known.cmp(&pair));
        }
        if let Some(number) = keep.presence {
            self.present.remove(|(of, path)| of.cmp(&number).then_with(|| path.cmp(watcher)));
        }
        if let Some(until) = keep.until {
            self.timed.remove(|(at, path)| at.cmp(&until).then_with(|| path.cmp(watcher)));
        }
    }

    /// Forgets the node that was at `path`, and all below it.
    pub fn forget(&mut self, path: &str, node: &Node) {
        if self.are_none() {
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
