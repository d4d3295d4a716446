//! Nodes of the tree and their payloads.

use crate::base::{Error, Result};
use crate::catalog::{Effect, Node, Path, Pattern, Payload};

use super::Store;

/// A node as a caller sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeInfo {
    /// Its path.
    pub path: String,
    /// What it carries.
    pub payload: Option<Payload>,
    /// How often the payload has been changed.
    pub payload_version: u64,
    /// Whether it holds a table.
    pub table: bool,
    /// Its children.
    pub children: u64,
    /// How often the list of children has changed.
    pub children_version: u64,
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct ListEntry {
    /// The node.
    pub node: NodeInfo,
    /// If it holds a table: rows, versions and row groups.
    pub table: Option<(u64, u64, u64)>,
}

fn describe(path: &Path, node: &Node) -> NodeInfo {
    NodeInfo {
        path: path.to_string(),
        payload: node.payload.as_deref().cloned(),
        payload_version: node.payload_version,
        table: node.table.is_some(),
        children: node.children,
        children_version: node.children_version,
    }
}

impl Store {
    /// Sets the payload of the node at `path`, made with its parents if it is not there.
    ///
    /// ```
    /// # let store = drumlin::Store::open("memory://", Default::default())?;
    /// use drumlin::catalog::Payload;
    /// store.put("config/feeds/a", Payload::Json("x".into()))?;
    /// assert_eq!(store.get("config/feeds/a")?, Some(Payload::Json("x".into())));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    pub fn put(&self, path: &str, payload: Payload) -> Result<()> {
        let path = Path::new(path)?;
        payload.check()?;
        self.commit_effects(move |_| Ok(vec![Effect::PutNode { path, payload }]))?;
        Ok(())
    }

    /// The payload of the node at `path`; `None` if the node carries none or is not there. O(log nodes).
    pub fn get(&self, path: &str) -> Result<Option<Payload>> {
        let path = Path::new(path)?;
        Ok(self.state()?.tree.get(&path).and_then(|node| node.payload.as_deref().cloned()))
    }

    /// The node at `path`, if there is one.
    pub fn node(&self, path: &str) -> Result<Option<NodeInfo>> {
        let path = Path::new(path)?;
        Ok(self.state()?.tree.get(&path).map(|node| describe(&path, node)))
    }

    /// Whether there is a node at `path`.
    pub fn exists(&self, path: &str) -> Result<bool> {
        Ok(self.state()?.tree.get(&Path::new(path)?).is_some())
    }

    /// Removes the nodes that match `pattern`, with all below them; none of them may hold a table. Returns how many.
    pub fn delete(&self, pattern: &str) -> Result<u64> {
        let pattern = Pattern::new(pattern)?;
        let (counted, counter) = std::sync::mpsc::channel();
        self.commit_effects(move |state| {
            let mut tops: Vec<Path> = Vec::new();
            let mut removed = 0_u64;
            for (path, _) in state.tree.matching(&pattern) {
                // What lies below a node that goes, goes with it.
                if tops.last().is_none_or(|top| !path.is_within(top.as_str())) {
                    removed += state.tree.subtree(path.as_str()).count() as u64;
                    tops.push(path.clone());
                }
            }
            if tops.is_empty() && pattern.literal().is_some() {
                return Err(Error::not_found(format!("no node at '{pattern}'")));
            }
            // The caller waits for the answer; it cannot be gone.
            let _ = counted.send(removed);
            Ok(tops.into_iter().map(|path| Effect::DeleteNode { path }).collect())
        })?;
        Ok(counter.recv().expect("the commit was built"))
    }

    /// The nodes that match `pattern`, in path order.
    pub fn list(&self, pattern: &str) -> Result<Vec<ListEntry>> {
        let pattern = Pattern::new(pattern)?;
        let state = self.state()?;
        let entry = |(path, node): (&Path, &std::sync::Arc<Node>)| {
            let table = node.table.and_then(|id| state.table(id)).map(|table| {
                let rows = table.newest().map_or(0, |newest| newest.rows);
                (rows, table.versions.len() as u64, table.groups.len() as u64)
            });
            ListEntry { node: describe(path, node), table }
        };
        Ok(state.tree.matching(&pattern).map(entry).collect())
    }
}
