//! Life conditions: a node lives only while its conditions hold.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::map::Map;
use super::walk::each_below;
use super::{Condition, Node, Path, Tree};
use crate::base::{Error, Result, json_text};

/// What must hold for a node to live: each condition, for the node at the condition's path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Keep {
    /// In any order. A condition on the node itself is not checked before the node changes again.
    pub conditions: Vec<(Path, Condition)>,
}

impl Keep {
    /// From paths and conditions as given by the caller.
    pub fn new(conditions: &[(String, Condition)]) -> Result<Self> {
        let conditions = conditions.iter().map(|(path, condition)| Ok((Path::new(path)?, condition.clone())));
        let keep = Keep { conditions: conditions.collect::<Result<_>>()? };
        keep.check()?;
        json_text::check(&keep, "a life condition")?;
        Ok(keep)
    }

    /// Fails if a condition is not valid.
    pub fn check(&self) -> Result<()> {
        self.conditions.iter().try_for_each(|(_, condition)| condition.check())
    }

    /// The stored form: JSON text, whose decoder limits nesting.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|e| Error::invalid("a life condition could not be encoded").with_source(e))
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let keep: Keep =
            serde_json::from_slice(bytes).map_err(|e| Error::corrupt(format!("a life condition is damaged: {e}")))?;
        keep.check().map_err(|e| Error::corrupt(e.message()))?;
        Ok(keep)
    }

    /// The first condition that does not hold, if one does not.
    pub(super) fn broken(&self, tree: &Tree, but: Option<&str>) -> Option<&Path> {
        let holds =
            |path: &Path, condition: &Condition| condition.holds(path.as_str(), tree.info(path.as_str()).as_ref());
        let looked_at = |path: &Path| but != Some(path.as_str());
        self.conditions.iter().find(|(path, c)| looked_at(path) && !holds(path, c)).map(|(path, _)| path)
    }
}

/// Which node watches which path: pairs of the path that a condition is on, and the node that depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Watches {
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
