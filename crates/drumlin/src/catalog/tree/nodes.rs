//! The tree of nodes: each node holds its children in a persistent ordered map by name, so that a copy of the whole
//! tree is O(1) and two copies share what they have in common.
//!
//! A node without payload, table, retention and life condition is bare: it exists while it has children. Parents appear
//! with their first child and disappear with their last.
//!
//! Names of up to 22 bytes (*small.rs*), and what most nodes have, are in the page of the map; the rest (table,
//! retention, life condition) is behind a pointer. A small node takes about 135 bytes.

use triomphe::Arc;

use super::map::Map;
use super::small::{Probe, Small};
use crate::base::{Error, Result, Seq, TableId, Timestamp};
use crate::catalog::{Condition, Keep, NodeInfo, Path, Payload, Retention};

/// A node's name.
pub(in crate::catalog) type Name = Small;

/// One entry of the tree. Parts that most nodes do not have are behind a pointer.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// What it carries.
    pub payload: Option<Payload>,
    /// How often the payload has been changed since the node appeared.
    pub payload_version: u64,
    /// The last commit that changed its payload, table, retention or life condition.
    pub seq: Seq,
    branch: Option<Arc<Branch>>,
    extra: Option<Arc<Extra>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::catalog) struct Branch {
    /// How often the list of children has changed since the node appeared.
    pub version: u64,
    pub children: Map<Name, Node>,
}

/// Parts that few nodes have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::catalog) struct Extra {
    /// The table it holds.
    pub table: Option<TableId>,
    /// How long tables at and below it keep versions; `None` inherits.
    pub retention: Option<Retention>,
    /// What must hold for it to live.
    pub keep: Option<std::sync::Arc<Keep>>,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        let branch = match (&self.branch, &other.branch) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
            (a, b) => a.is_none() && b.is_none(),
        };
        branch && self.own_eq(other)
    }
}

impl Node {
    /// What it is, without what is below it.
    pub fn info(&self) -> NodeInfo {
        NodeInfo {
            payload: self.payload.clone(),
            payload_version: self.payload_version,
            table: self.table().is_some(),
            children: self.children() as u64,
            children_version: self.children_version(),
            seq: self.seq,
            presence: self.presence(),
            expires: self.expires(),
        }
    }

    /// The table it holds.
    pub fn table(&self) -> Option<TableId> {
        self.extra.as_ref()?.table
    }

    /// How long tables at and below it keep versions; `None` inherits.
    pub fn retention(&self) -> Option<Retention> {
        self.extra.as_ref()?.retention
    }

    /// Its life conditions: conditions on the nodes at paths.
    pub fn keep_while(&self) -> &[(Path, Condition)] {
        self.keep().map_or(&[], |keep| &keep.conditions)
    }

    /// The number of the presence that it ends with.
    pub fn presence(&self) -> Option<u64> {
        self.keep()?.presence
    }

    /// When it ends by itself.
    pub fn expires(&self) -> Option<Timestamp> {
        self.keep()?.until
    }

    /// What must hold for it to live.
    pub(in crate::catalog) fn keep(&self) -> Option<&std::sync::Arc<Keep>> {
        self.extra.as_ref()?.keep.as_ref()
    }

    /// How many children it has.
    pub fn children(&self) -> usize {
        self.branch.as_ref().map_or(0, |branch| branch.children.len())
    }

    /// How often the list of its children has changed since it appeared.
    pub fn children_version(&self) -> u64 {
        self.branch.as_ref().map_or(0, |branch| branch.version)
    }

    pub(in crate::catalog) fn below(&self) -> Option<&Map<Name, Node>> {
        self.branch.as_ref().map(|branch| &branch.children).filter(|children| !children.is_empty())
    }

    /// Whether everything below the two is the same. May return `false` for parts that are equal but not shared.
    pub(in crate::catalog) fn same_below(&self, other: &Self) -> bool {
        match (&self.branch, &other.branch) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }

    /// Whether the two are equal, ignoring what is below them.
    pub(in crate::catalog) fn own_eq(&self, other: &Self) -> bool {
        self.seq == other.seq
            && self.payload_version == other.payload_version
            && self.payload == other.payload
            && self.extra == other.extra
    }

    pub(in crate::catalog) fn is_bare(&self) -> bool {
        self.payload.is_none() && self.extra.is_none()
    }

    /// Whether nothing is left of it; never true for a node in the tree.
    pub(in crate::catalog) fn is_nothing(&self) -> bool {
        self.is_bare() && self.below().is_none()
    }

    /// Whether the two are equal, ignoring what their children are.
    pub(in crate::catalog) fn same_itself(&self, other: &Self) -> bool {
        self.own_eq(other) && self.children_version() == other.children_version()
    }

    /// Whether it has a life condition and nothing else.
    pub(in crate::catalog) fn is_only_kept(&self) -> bool {
        let bare = |extra: &Extra| extra.table.is_none() && extra.retention.is_none();
        self.payload.is_none() && self.below().is_none() && self.extra.as_deref().is_none_or(bare)
    }

    /// Changes the parts that few nodes have.
    pub(in crate::catalog) fn edit_extra(&mut self, edit: impl FnOnce(&mut Extra)) {
        let mut extra = self.extra.as_deref().cloned().unwrap_or_default();
        edit(&mut extra);
        self.extra = (extra != Extra::default()).then(|| Arc::new(extra));
    }

    /// Sets the payload.
    pub(in crate::catalog) fn set_payload(&mut self, payload: Option<Payload>) {
        self.payload = payload;
        self.payload_version += 1;
    }

    pub(in crate::catalog) fn extra(&self) -> Option<&Extra> {
        self.extra.as_deref()
    }

    pub(in crate::catalog) fn set_branch(&mut self, branch: Branch) {
        self.branch = Some(Arc::new(branch));
    }
}

/// All nodes. A copy is O(1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeTree {
    top: Map<Name, Node>,
    len: usize,
}

/// Finds `name` among children.
pub(in crate::catalog) fn child<'a>(children: &'a Map<Name, Node>, name: &str) -> Option<&'a Node> {
    let probe = Probe::new(name.as_bytes());
    children.find(|known| known.compare(&probe)).map(|(_, node)| node)
}

impl NodeTree {
    /// The node at `path`. O(depth x log children).
    pub fn get(&self, path: &str) -> Option<&Node> {
        let (name, mut rest) = split(path);
        let mut node = child(&self.top, name)?;
        while let Some(path) = rest {
            let (name, next) = split(path);
            node = child(&node.branch.as_ref()?.children, name)?;
            rest = next;
        }
        Some(node)
    }

    /// What the node at `path` is.
    pub fn info(&self, path: &str) -> Option<NodeInfo> {
        self.get(path).map(Node::info)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(in crate::catalog) fn of(top: Map<Name, Node>, len: usize) -> Self {
        Self { top, len }
    }

    pub(in crate::catalog) fn top(&self) -> &Map<Name, Node> {
        &self.top
    }

    /// Whether the two are unchanged copies of one tree. O(1).
    pub fn same(&self, other: &Self) -> bool {
        self.top.same(&other.top)
    }

    /// Changes the node at `path`, which is created with its parents if it does not exist. If it is left bare and
    /// childless, it is removed, and so are its parents.
    pub(in crate::catalog) fn edit<R>(&mut self, path: &str, seq: Seq, edit: impl FnOnce(&mut Node) -> R) -> R {
        let (result, grown) = edit_below(&mut self.top, path, seq, edit);
        self.len = self.len.wrapping_add_signed(grown);
        result
    }

    /// Removes the node at `path`, with all below it; parents left bare and childless are removed too. Returns the node.
    /// `permit` is called first; what it refuses stays.
    pub(in crate::catalog) fn remove<E>(
        &mut self,
        path: &str,
        permit: impl FnOnce(&Node) -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<Node>, E> {
        let Some((node, gone)) = remove_below(&mut self.top, path, permit)? else { return Ok(None) };
        self.len -= gone + node.below().map_or(0, count);
        Ok(Some(node))
    }

    /// The retention set at `path`, or at the nearest node above it that sets one.
    pub fn retention(&self, path: &Path) -> Option<Retention> {
        let mut found = None;
        let mut children = Some(&self.top);
        for name in path.as_str().split('/') {
            let Some(node) = children.and_then(|children| child(children, name)) else { break };
            found = node.retention().or(found);
            children = node.below();
        }
        found
    }

    /// The path of a node at or below `node` that holds a table, if there is one.
    pub(in crate::catalog) fn table_within(path: &str, node: &Node) -> Option<String> {
        if node.table().is_some() {
            return Some(path.to_owned());
        }
        let below = node.below()?;
        below.iter().find_map(|(name, node)| match node.below() {
            None if node.table().is_none() => None,
            _ => Self::table_within(&format!("{path}/{}", name.as_str()), node),
        })
    }
}

/// Fails if the node at `path` or one below it holds a table.
pub(in crate::catalog) fn refuse_tables(path: &str, node: &Node) -> Result<()> {
    match NodeTree::table_within(path, node) {
        Some(held) => Err(Error::invalid(format!("'{held}' holds a table; drop the table instead"))),
        None => Ok(()),
    }
}

/// The number of nodes among `children` and below them.
fn count(children: &Map<Name, Node>) -> usize {
    children.len() + children.iter().filter_map(|(_, node)| node.below()).map(count).sum::<usize>()
}

/// The first name of a path, and the rest.
fn split(path: &str) -> (&str, Option<&str>) {
    // Names are short, so a plain loop is faster than a search made for long texts.
    match path.as_bytes().iter().position(|byte| *byte == b'/') {
        Some(at) => (&path[..at], Some(&path[at + 1..])),
        None => (path, None),
    }
}

fn edit_below<R>(
    children: &mut Map<Name, Node>,
    path: &str,
    seq: Seq,
    edit: impl FnOnce(&mut Node) -> R,
) -> (R, isize) {
    let (name, rest) = split(path);
    let change = |node: &mut Node| match rest {
        None => {
            node.seq = seq;
            (edit(node), 0)
        }
        Some(rest) => {
            let branch = Arc::make_mut(node.branch.get_or_insert_default());
            let before = branch.children.len();
            let (result, grown) = edit_below(&mut branch.children, rest, seq, edit);
            branch.version += u64::from(branch.children.len() != before);
            (result, grown)
        }
    };
    let probe = Probe::new(name.as_bytes());
    if let Some(node) = children.find_mut(|known| known.compare(&probe)) {
        let (result, grown) = change(node);
        if !node.is_nothing() {
            return (result, grown);
        }
        children.remove(|known| known.compare(&probe));
        return (result, grown - 1);
    }
    let mut node = Node { seq, ..Node::default() };
    let (result, grown) = change(&mut node);
    if node.is_nothing() {
        return (result, grown);
    }
    children.insert(Name::new(name.as_bytes()), node);
    (result, grown + 1)
}

/// Returns the removed node, and the number of nodes removed, including itself but not those below it.
fn remove_below<E>(
    children: &mut Map<Name, Node>,
    path: &str,
    permit: impl FnOnce(&Node) -> std::result::Result<(), E>,
) -> std::result::Result<Option<(Node, usize)>, E> {
    let (name, rest) = split(path);
    let probe = Probe::new(name.as_bytes());
    let Some(rest) = rest else {
        return Ok(children.remove_if(|known| known.compare(&probe), permit)?.map(|node| (node, 1)));
    };
    let Some(node) = children.find_mut(|known| known.compare(&probe)) else { return Ok(None) };
    let Some(branch) = &mut node.branch else { return Ok(None) };
    let branch = Arc::make_mut(branch);
    let before = branch.children.len();
    let Some((removed, mut gone)) = remove_below(&mut branch.children, rest, permit)? else { return Ok(None) };
    branch.version += u64::from(branch.children.len() != before);
    if node.is_nothing() {
        children.remove(|known| known.compare(&probe));
        gone += 1;
    }
    Ok(Some((removed, gone)))
}
