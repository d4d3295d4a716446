//! The tree as stored in a catalog snapshot: its nodes in path order, each path without the prefix that it shares with the
//! previous one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::{Error, Result, Seq, TableId};
use crate::catalog::tree::map::Map;
use crate::catalog::tree::nodes::{Branch, Extra, Name};
use crate::catalog::tree::path::check_path;
use crate::catalog::{Keep, Node, NodeTree, Payload, Retention};

/// One node, borrowed from the bytes read.
#[derive(Serialize, Deserialize)]
struct StoredNode<'a> {
    /// Bytes that its path shares with that of the previous node.
    shared: u32,
    /// The other bytes of its path.
    rest: &'a [u8],
    payload: Option<&'a [u8]>,
    payload_version: u64,
    seq: Seq,
    children_version: u64,
    extra: Option<StoredExtra>,
}

#[derive(Serialize, Deserialize)]
struct StoredExtra {
    table: Option<TableId>,
    retention: Option<Retention>,
    keep: Vec<u8>,
}

impl StoredNode<'_> {
    /// The node, without what is below it.
    fn node(&self) -> std::result::Result<Node, String> {
        let mut node = Node::default();
        (node.payload_version, node.seq) = (self.payload_version, self.seq);
        node.payload = self.payload.map(Payload::from_stored).transpose().map_err(|e| e.message().to_owned())?;
        if let Some(StoredExtra { table, retention, keep }) = &self.extra {
            let keep = match keep.is_empty() {
                true => None,
                false => Some(Arc::new(Keep::decode(keep).map_err(|e| e.to_string())?)),
            };
            let (table, retention) = (*table, *retention);
            node.edit_extra(|extra| *extra = Extra { table, retention, keep });
        }
        Ok(node)
    }
}

/// Writes nodes in path order.
#[derive(Default)]
pub(in crate::catalog) struct NodeWriter {
    last: Vec<u8>,
}

impl NodeWriter {
    /// Appends a node to `out`.
    pub fn write(&mut self, path: &str, node: &Node, out: &mut Vec<u8>) -> Result<()> {
        let shared = self.last.iter().zip(path.as_bytes()).take_while(|(a, b)| a == b).count();
        let extra = node.extra().map(|extra| {
            let keep = extra.keep.as_ref().map_or(Ok(Vec::new()), |keep| keep.encode());
            keep.map(|keep| StoredExtra { table: extra.table, retention: extra.retention, keep })
        });
        let rest = &path.as_bytes()[shared..];
        let stored = StoredNode {
            shared: shared as u32,
            rest,
            payload: node.payload.as_ref().map(Payload::stored),
            payload_version: node.payload_version,
            seq: node.seq,
            children_version: node.children_version(),
            extra: extra.transpose()?,
        };
        *out = postcard::to_extend(&stored, std::mem::take(out))
            .map_err(|e| Error::invalid("a node could not be encoded").with_source(e.to_string()))?;
        self.last.truncate(shared);
        self.last.extend_from_slice(rest);
        Ok(())
    }
}

/// A node whose children are still to come.
struct OpenNode {
    /// Where its name begins in the path.
    name: usize,
    node: Node,
    children_version: u64,
    children: Vec<(Name, Node)>,
}

/// Builds a tree from nodes in path order, without searching.
#[derive(Default)]
pub(in crate::catalog) struct TreeBuilder {
    path: Vec<u8>,
    open: Vec<OpenNode>,
    top: Vec<(Name, Node)>,
    len: usize,
}

impl TreeBuilder {
    /// Appends what one [`NodeWriter`] wrote to what was added before.
    pub fn read(&mut self, mut bytes: &[u8]) -> std::result::Result<(), String> {
        while !bytes.is_empty() {
            let (stored, rest) = postcard::take_from_bytes::<StoredNode<'_>>(bytes).map_err(|e| e.to_string())?;
            self.add(stored)?;
            bytes = rest;
        }
        Ok(())
    }

    fn add(&mut self, stored: StoredNode<'_>) -> std::result::Result<(), String> {
        let mut path = self
            .path
            .get(..stored.shared as usize)
            .ok_or("a path shares more bytes than the path before it has")?
            .to_vec();
        path.extend_from_slice(stored.rest);
        let text = std::str::from_utf8(&path).map_err(|e| e.to_string())?;
        check_path(text).map_err(|e| e.message().to_owned())?;
        let below = |above: &[u8]| path.strip_prefix(above).is_some_and(|rest| rest.first() == Some(&b'/'));
        while !self.open.is_empty() && !below(&self.path) {
            self.close()?;
        }
        let name = if self.open.is_empty() { 0 } else { self.path.len() + 1 };
        let siblings = self.open.last().map_or(&self.top, |open| &open.children);
        let in_order = siblings.last().is_none_or(|(last, _)| last.as_bytes() < &path[name..]);
        if path[name..].contains(&b'/') || !in_order {
            return Err(format!("'{text}' has no parent, or is in the wrong place"));
        }
        let node = stored.node()?;
        self.open.push(OpenNode { name, node, children_version: stored.children_version, children: Vec::new() });
        self.path = path;
        self.len += 1;
        Ok(())
    }

    /// Ends the node at `self.path`.
    fn close(&mut self) -> std::result::Result<(), String> {
        let OpenNode { name, mut node, children_version, children } = self.open.pop().expect("one is open");
        if node.is_bare() && children.is_empty() {
            return Err(format!("'{}' is an empty node", String::from_utf8_lossy(&self.path)));
        }
        if children_version > 0 || !children.is_empty() {
            node.set_branch(Branch { version: children_version, children: Map::from_sorted(children.into_iter()) });
        }
        let entry = (Name::new(&self.path[name..]), node);
        self.open.last_mut().map_or(&mut self.top, |above| &mut above.children).push(entry);
        self.path.truncate(name.saturating_sub(1));
        Ok(())
    }

    /// The tree of the nodes in the readable chunks, if others cannot be read: missing parents are created, bare, and
    /// nodes that would be empty are left out. Also returns what is wrong with chunks, by their positions.
    pub fn scattered(chunks: &[Option<&[u8]>]) -> (NodeTree, Vec<(usize, String)>) {
        let (mut nodes, mut lists, mut failures) = (NodeTree::default(), Vec::new(), Vec::new());
        for (at, bytes) in chunks.iter().enumerate() {
            let Some(bytes) = bytes else { continue };
            if let Err(e) = Self::scatter(bytes, &mut nodes, &mut lists) {
                failures.push((at, e));
            }
        }
        // Adding children was counted as changes of their parents' lists.
        for (path, seq, version) in lists {
            nodes.edit(&path, seq, |node| {
                let children = node.below().cloned().unwrap_or_default();
                if !node.is_bare() || !children.is_empty() {
                    node.set_branch(Branch { version, children });
                }
            });
        }
        (nodes, failures)
    }

    fn scatter(
        mut bytes: &[u8],
        nodes: &mut NodeTree,
        lists: &mut Vec<(String, Seq, u64)>,
    ) -> std::result::Result<(), String> {
        let mut path: Vec<u8> = Vec::new();
        while !bytes.is_empty() {
            let (stored, rest) = postcard::take_from_bytes::<StoredNode<'_>>(bytes).map_err(|e| e.to_string())?;
            path.truncate(stored.shared as usize);
            path.extend_from_slice(stored.rest);
            let text = std::str::from_utf8(&path).map_err(|e| e.to_string())?;
            check_path(text).map_err(|e| e.message().to_owned())?;
            let node = stored.node()?;
            nodes.edit(text, stored.seq, |there| {
                (there.payload, there.payload_version) = (node.payload.clone(), node.payload_version);
                if let Some(extra) = node.extra() {
                    there.edit_extra(|own| *own = extra.clone());
                }
            });
            if stored.children_version > 0 {
                lists.push((text.to_owned(), stored.seq, stored.children_version));
            }
            bytes = rest;
        }
        Ok(())
    }

    /// The tree of everything that was added.
    pub fn finish(mut self) -> std::result::Result<NodeTree, String> {
        while !self.open.is_empty() {
            self.close()?;
        }
        Ok(NodeTree::of(Map::from_sorted(self.top.into_iter()), self.len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_comes_back_as_it_was_and_damage_is_noticed() {
        let mut rng = fastrand::Rng::with_seed(11);
        let mut tree = NodeTree::default();
        for n in 0..3000 {
            let path = (0..rng.usize(1..5)).map(|_| format!("n{}", rng.u8(..12))).collect::<Vec<_>>().join("/");
            if rng.u8(..4) == 0 {
                tree.remove(&path, |_| Ok::<_, ()>(())).unwrap();
            } else {
                tree.edit(&path, Seq(n), |node| node.set_payload(Some(Payload::from(n as i64))));
            }
        }
        tree.edit("n1/t", Seq(1), |node| node.edit_extra(|extra| extra.table = Some(TableId(4))));
        tree.edit("n1", Seq(1), |node| node.edit_extra(|extra| extra.retention = Some(Retention::KeepLast(3))));
        let stored = write(&tree);
        let read = read(&stored).unwrap();
        assert!(tree.len() > 100);
        assert_eq!(read.len(), tree.len());
        tree.diff(&read, |path, a, b| assert_eq!(a.map(|n| n.info()), b.map(|n| n.info()), "{path}"));
        assert!(read == tree);
        for _ in 0..3000 {
            let mut stored = stored.clone();
            let at = rng.usize(..stored.len());
            stored[at] = rng.u8(..);
            if let Ok(tree) = super::tests::read(&stored) {
                let mut nodes = 0;
                tree.each(|_, _| nodes += 1);
                assert_eq!(nodes, tree.len());
            }
        }
    }

    fn write(tree: &NodeTree) -> Vec<u8> {
        let (mut writer, mut bytes) = (NodeWriter::default(), Vec::new());
        tree.each(|path, node| writer.write(path, node, &mut bytes).unwrap());
        bytes
    }

    fn read(bytes: &[u8]) -> std::result::Result<NodeTree, String> {
        let mut builder = TreeBuilder::default();
        builder.read(bytes)?;
        builder.finish()
    }

    #[test]
    fn a_walk_begins_where_it_is_asked_to() {
        let mut tree = NodeTree::default();
        for path in ["a/b/c", "a/b-x", "a-b", "a/b/d/e", "b"] {
            tree.edit(path, Seq(1), |node| node.set_payload(Some(Payload::from(1))));
        }
        let mut all = Vec::new();
        tree.each(|path, _| all.push(path.to_owned()));
        let from = |from: Option<&str>| {
            let mut found = Vec::new();
            tree.each_from(from, |path, _| {
                found.push(path.to_owned());
                found.len() < 100
            });
            found
        };
        assert_eq!(from(None), all);
        for at in 0..all.len() {
            assert_eq!(from(Some(&all[at])), all[at..], "{}", all[at]);
        }
        assert_eq!(from(Some("a/b/cc")), ["a/b/d", "a/b/d/e", "a/b-x", "a-b", "b"]);
        assert_eq!(from(Some("c")), [""; 0]);
    }
}
