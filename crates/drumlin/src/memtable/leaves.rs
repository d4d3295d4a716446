//! The leaves of the index in the order of their keys.

use super::arena::Addr;
use super::index::{NodeKind, RadixNode, RadixTree, Ref};
use super::keys::Key;
use super::raw::Word;
use super::record::Record;

impl<'a, W: Word> RadixTree<'a, W> {
    /// The leaves in ascending order of their keys, from the first at or above `from` on.
    pub fn leaves(&self, from: Option<Key<'_>>) -> Leaves<'a, W> {
        let mut leaves = Leaves { index: *self, stack: Vec::new(), top: Ref::NONE };
        let root = self.root();
        let Some(key) = from else {
            leaves.top = root;
            return leaves;
        };
        if root.is_none() {
            return leaves;
        }
        // Where the key diverges from its would-be neighbours.
        let mut near = root;
        while near.kind() != NodeKind::Leaf {
            let inner = RadixNode::new(self.arena, near);
            match inner.child(key.byte(inner.depth())) {
                child if child.is_none() => break,
                child => near = child,
            }
        }
        let near = Record::new(self.arena, self.any_leaf(near).addr());
        let parts_at = near.parts_at(key).unwrap_or(usize::MAX);
        let mut node = root;
        while node.kind() != NodeKind::Leaf {
            let inner = RadixNode::new(self.arena, node);
            if inner.depth() > parts_at {
                break;
            }
            let byte = key.byte(inner.depth());
            leaves.stack.push((node, u16::from(byte) + 1));
            node = inner.child(byte);
            if node.is_none() {
                return leaves;
            }
        }
        // All keys below share the bytes before `parts_at`, and the byte there.
        if parts_at == usize::MAX || near.key_byte(parts_at) > key.byte(parts_at) || key.len() <= parts_at {
            leaves.top = node;
        }
        leaves
    }
}

/// Leaves in order. Those that the writer adds during the iteration may or may not be among them.
pub(super) struct Leaves<'a, W> {
    index: RadixTree<'a, W>,
    stack: Vec<(Ref, u16)>,
    top: Ref,
}

impl<W: Word> Leaves<'_, W> {
    /// Ends the iteration.
    pub fn end(&mut self) {
        self.stack.clear();
        self.top = Ref::NONE;
    }

    /// The next leaf.
    pub fn advance(&mut self) -> Option<Addr> {
        loop {
            if !self.top.is_none() {
                let top = std::mem::replace(&mut self.top, Ref::NONE);
                if top.kind() == NodeKind::Leaf {
                    return Some(top.addr());
                }
                self.stack.push((top, 0));
            }
            let (node, from) = self.stack.last_mut()?;
            match RadixNode::new(self.index.arena, *node).next_child(*from) {
                Some((byte, child)) => {
                    *from = u16::from(byte) + 1;
                    self.top = child;
                }
                None => drop(self.stack.pop()),
            }
        }
    }
}
