//! The ordered index: an adaptive radix tree (Leis, Kemper and Neumann, "The Adaptive Radix Tree", ICDE 2013) whose
//! readers take no lock and validate nothing, in the manner of ROWEX (Leis, Scheibner, Kemper and Neumann, "The ART of
//! Practical Synchronization", DaMoN 2016), with one writer.
//!
//! A node stores only the byte at which its keys diverge; the bytes before are those of any leaf below it, which the
//! search compares at its end. So nothing above a node changes when a key diverges from the others earlier, and a node
//! changes only by appending a child or by replacing one reference with another: each a single store that publishes
//! what was written before it. Nothing is freed while the index lives: a reader that holds an old node finds all that
//! was in it.
//!
//! A batch of keys descends together, a node a round, and each key prefetches what its next step needs, so that cache
//! misses overlap.
//!
//! ```text
//! node     word 0: bits 0..24 the byte at which keys diverge, 24..32 children (4 and 16), 32..64 their bytes (4)
//!   4      1..3   4 references
//!   16     1..3   16 bytes, 3..11 references
//!   48     1..33  for each byte the child's place, from 1, 33..57 references
//!   256    1..129 references
//! reference: 29 bits of address, 3 bits of what lies there; two a word
//! ```

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::arena::{Addr, Arena};
use super::keys::Key;
use super::raw::Word;
use super::record::Record;
use crate::base::{Error, Result};

/// Where something lies, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ref(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Leaf = 1,
    Node4 = 2,
    Node16 = 3,
    Node48 = 4,
    Node256 = 5,
}

impl Ref {
    pub const NONE: Ref = Ref(0);

    pub fn new(addr: Addr, kind: NodeKind) -> Self {
        Ref(addr << 3 | kind as u32)
    }

    #[inline]
    pub fn addr(self) -> Addr {
        self.0 >> 3
    }

    #[inline]
    pub fn kind(self) -> NodeKind {
        match self.0 & 7 {
            1 => NodeKind::Leaf,
            2 => NodeKind::Node4,
            3 => NodeKind::Node16,
            4 => NodeKind::Node48,
            _ => NodeKind::Node256,
        }
    }

    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// Where a reference is stored: the `at`th half word from `addr` on.
#[derive(Clone, Copy, Debug)]
struct RefSlot {
    addr: Addr,
    at: u32,
}

/// Where the reference to the root is stored.
const ROOT: RefSlot = RefSlot { addr: 1, at: 0 };
/// The first word that the index and its records may use.
pub(super) const FIRST_FREE: u64 = 2;

const CHILDREN_4: u32 = 1;
const KEYS_16: u32 = 1;
const CHILDREN_16: u32 = 3;
const KEYS_48: u32 = 1;
const CHILDREN_48: u32 = 33;
const CHILDREN_256: u32 = 1;

/// Keys of a batch that descend together.
const GROUP: usize = 32;
/// Cache lines of a record to prefetch.
const RECORD_LINES: usize = 3;

impl NodeKind {
    fn words(self) -> u64 {
        match self {
            NodeKind::Leaf => 0,
            NodeKind::Node4 => 3,
            NodeKind::Node16 => 11,
            NodeKind::Node48 => 57,
            NodeKind::Node256 => 129,
        }
    }

    fn room(self) -> usize {
        match self {
            NodeKind::Leaf => 0,
            NodeKind::Node4 => 4,
            NodeKind::Node16 => 16,
            NodeKind::Node48 => 48,
            NodeKind::Node256 => 256,
        }
    }
}

/// A node, as a reader sees it: its words, and its first word as it was when read.
#[derive(Clone, Copy)]
pub(super) struct RadixNode<'a, W> {
    words: &'a [W],
    head: u64,
    kind: NodeKind,
}

#[inline]
fn half(word: u64, at: u32) -> Ref {
    Ref((word >> (32 * (at & 1))) as u32)
}

/// The highest bit is set in each byte of the result whose byte in `bytes` is `wanted`, and perhaps in some bytes above
/// the first such one.
#[inline]
fn matches(bytes: u64, wanted: u8) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let differ = bytes ^ (LOW * u64::from(wanted));
    differ.wrapping_sub(LOW) & !differ & (LOW << 7)
}

impl<'a, W: Word> RadixNode<'a, W> {
    #[inline]
    pub(super) fn new(arena: &'a Arena<W>, node: Ref) -> Self {
        let words = arena.from(node.addr());
        Self { words, head: words[0].load(Acquire), kind: node.kind() }
    }

    /// The byte at which its keys diverge.
    #[inline]
    pub(super) fn depth(&self) -> usize {
        (self.head & 0xff_ffff) as usize
    }

    /// How many children a small node has.
    #[inline]
    fn children(&self) -> usize {
        ((self.head >> 24) & 0xff) as usize
    }

    #[inline]
    fn child_at(&self, first: u32, at: usize) -> Ref {
        half(self.words[first as usize + at / 2].load(Acquire), at as u32)
    }

    /// The key byte of a small node's child.
    #[inline]
    fn key_at(&self, at: usize) -> u8 {
        match self.kind {
            NodeKind::Node4 => (self.head >> (32 + 8 * at)) as u8,
            _ => (self.words[KEYS_16 as usize + at / 8].load(Relaxed) >> (8 * (at % 8))) as u8,
        }
    }

    /// The place of the child for a byte, if there is one.
    #[inline]
    fn place(&self, byte: u8) -> Option<usize> {
        match self.kind {
            NodeKind::Node4 => {
                let children = self.children();
                (0..4).find(|at| *at < children && self.key_at(*at) == byte)
            }
            NodeKind::Node16 => {
                // The lowest match is a true one.
                let children = self.children();
                let low = matches(self.words[KEYS_16 as usize].load(Relaxed), byte);
                let at = match low {
                    0 => {
                        8 + (matches(self.words[KEYS_16 as usize + 1].load(Relaxed), byte).trailing_zeros() / 8)
                            as usize
                    }
                    _ => (low.trailing_zeros() / 8) as usize,
                };
                (at < children).then_some(at)
            }
            NodeKind::Node48 => {
                let word = self.words[KEYS_48 as usize + usize::from(byte) / 8].load(Acquire);
                usize::from((word >> (8 * (byte % 8))) as u8).checked_sub(1)
            }
            _ => Some(usize::from(byte)),
        }
    }

    fn first_child(kind: NodeKind) -> u32 {
        match kind {
            NodeKind::Node4 => CHILDREN_4,
            NodeKind::Node16 => CHILDREN_16,
            NodeKind::Node48 => CHILDREN_48,
            _ => CHILDREN_256,
        }
    }

    /// The child for a byte.
    #[inline]
    pub(super) fn child(&self, byte: u8) -> Ref {
        self.place(byte).map_or(Ref::NONE, |at| self.child_at(Self::first_child(self.kind), at))
    }

    /// The child with the smallest byte at or above `from`, and that byte.
    pub(super) fn next_child(&self, from: u16) -> Option<(u8, Ref)> {
        match self.kind {
            NodeKind::Node4 | NodeKind::Node16 => {
                let keys = (0..self.children()).map(|at| (self.key_at(at), at));
                let (key, at) = keys.filter(|(key, _)| u16::from(*key) >= from).min()?;
                Some((key, self.child_at(Self::first_child(self.kind), at)))
            }
            _ => (from..256).find_map(|byte| {
                let child = self.child(byte as u8);
                (!child.is_none()).then_some((byte as u8, child))
            }),
        }
    }
}

fn begins_another() -> Error {
    Error::invalid("a key is the beginning of another key")
}

/// Where a key is, or would be.
pub(super) struct InsertPoint {
    slot: RefSlot,
    node: Ref,
    /// At an inner node: the byte at which its keys diverge, and the key's own byte there, for which it has no child.
    missing: Option<(usize, u8)>,
    /// The first byte at which the key differs from its neighbours; `None` if the key exists, or if there are no keys.
    parts_at: Option<usize>,
    /// The key's newest record.
    pub record: Option<Addr>,
}

/// The index over the records of an arena.
pub(super) struct RadixTree<'a, W> {
    pub arena: &'a Arena<W>,
}

impl<W> Clone for RadixTree<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for RadixTree<'_, W> {}

/// A key of a batch on its way down.
#[derive(Clone, Copy)]
struct Descent {
    at: u32,
    node: Ref,
    /// The byte at which the keys of the node are expected to diverge: the one after its parent's.
    expected: u32,
    /// In a large node: its child's place is known and being prefetched.
    slot: Option<u32>,
}

impl<'a, W: Word> RadixTree<'a, W> {
    pub(super) fn root(&self) -> Ref {
        self.read(ROOT, Acquire)
    }

    fn read(&self, slot: RefSlot, order: std::sync::atomic::Ordering) -> Ref {
        half(self.arena.load(slot.addr + slot.at / 2, order), slot.at)
    }

    /// The newest record of `key`.
    #[inline]
    pub fn find(&self, key: Key<'_>) -> Option<Record<'a, W>> {
        let leaf = self.closest(key);
        (!leaf.is_none()).then(|| Record::new(self.arena, leaf.addr())).filter(|record| record.has_key(key))
    }

    /// The key's leaf, if it exists; otherwise another one, or none.
    #[inline]
    fn closest(&self, key: Key<'_>) -> Ref {
        let mut node = self.root();
        while !node.is_none() && node.kind() != NodeKind::Leaf {
            let inner = RadixNode::new(self.arena, node);
            let depth = inner.depth();
            node = inner.child(key.byte(depth));
            self.ask_for(node, key, depth + 1);
        }
        node
    }

    /// Looks up many keys: calls `found` with each newest record that exists, in no order. They descend together in
    /// groups, one step each in turn, so that the cache misses of one overlap with the steps of the others.
    #[inline]
    pub fn find_many(&self, keys: impl Iterator<Item = Key<'a>> + Clone, mut found: impl FnMut(usize, Record<'a, W>)) {
        let mut rest = keys.enumerate();
        let root = self.root();
        if root.is_none() {
            return;
        }
        loop {
            let mut group = [Key { words: &[], bytes: 0 }; GROUP];
            let mut running = [Descent { at: 0, node: root, expected: 0, slot: None }; GROUP];
            let mut count = 0;
            let mut first = 0;
            for (at, key) in rest.by_ref().take(GROUP) {
                if count == 0 {
                    first = at;
                }
                group[count] = key;
                running[count].at = count as u32;
                count += 1;
            }
            if count == 0 {
                return;
            }
            while count > 0 {
                let mut kept = 0;
                for at in 0..count {
                    let mut descent = running[at];
                    let key = group[descent.at as usize];
                    let place = first + descent.at as usize;
                    if self.step(&mut descent, key, |record| found(place, record)) {
                        running[kept] = descent;
                        kept += 1;
                    }
                }
                count = kept;
            }
        }
    }

    /// Takes one step down and prefetches what the next one needs; `false` at the end.
    #[inline]
    fn step(&self, descent: &mut Descent, key: Key<'_>, found: impl FnOnce(Record<'a, W>)) -> bool {
        let node = descent.node;
        if node.kind() == NodeKind::Leaf {
            let record = Record::new(self.arena, node.addr());
            if record.has_key(key) {
                found(record);
            }
            return false;
        }
        let child = match descent.slot.take() {
            Some(slot) => half(self.arena.load(node.addr() + slot / 2, Acquire), slot),
            None => {
                let inner = RadixNode::new(self.arena, node);
                let depth = inner.depth();
                let byte = key.byte(depth);
                let guessed = std::mem::replace(&mut descent.expected, depth as u32 + 1) == depth as u32;
                let slot = match node.kind() {
                    NodeKind::Node256 if !guessed => Some(CHILDREN_256 * 2 + u32::from(byte)),
                    NodeKind::Node48 => match inner.place(byte) {
                        Some(at) => Some(CHILDREN_48 * 2 + at as u32),
                        None => return false,
                    },
                    _ => None,
                };
                if let Some(slot) = slot {
                    self.arena.prefetch(node.addr() + slot / 2, 1);
                    descent.slot = Some(slot);
                    return true;
                }
                inner.child(byte)
            }
        };
        if child.is_none() {
            return false;
        }
        descent.node = child;
        self.ask_for(child, key, descent.expected as usize);
        true
    }

    /// Prefetches what the next step needs of a node. Where its keys diverge is known once it is there; of a large node,
    /// what lies there for the key is prefetched as if that were at byte `expected`.
    #[inline]
    fn ask_for(&self, node: Ref, key: Key<'_>, expected: usize) {
        let byte = || u32::from(key.byte(expected));
        let (lines, other) = match node.kind() {
            NodeKind::Leaf => (RECORD_LINES, None),
            NodeKind::Node4 => (1, None),
            NodeKind::Node16 => (2, None),
            NodeKind::Node48 => (1, Some(KEYS_48 + byte() / 8)),
            NodeKind::Node256 => (1, Some(CHILDREN_256 + byte() / 2)),
        };
        self.arena.prefetch(node.addr(), lines);
        if let Some(other) = other {
            self.arena.prefetch(node.addr() + other, 1);
        }
    }

    /// Prefetches a record.
    #[inline]
    pub fn ask_for_record(&self, addr: Addr) {
        self.arena.prefetch(addr, RECORD_LINES);
    }

    /// Any leaf below a node.
    pub(super) fn any_leaf(&self, mut node: Ref) -> Ref {
        while node.kind() != NodeKind::Leaf {
            match RadixNode::new(self.arena, node).next_child(0) {
                Some((_, child)) => node = child,
                // A node has children before it is published.
                None => unreachable!("a node without a child"),
            }
        }
        node
    }

    /// Where `key` is, or would be. For the writer.
    pub fn place(&self, key: Key<'_>) -> InsertPoint {
        let mut place = InsertPoint { slot: ROOT, node: self.root(), missing: None, parts_at: None, record: None };
        if place.node.is_none() {
            return place;
        }
        while place.node.kind() != NodeKind::Leaf {
            let inner = RadixNode::new(self.arena, place.node);
            let byte = key.byte(inner.depth());
            match inner.place(byte).map(|at| (at, inner.child_at(RadixNode::<W>::first_child(inner.kind), at))) {
                Some((at, child)) if !child.is_none() => {
                    place.slot =
                        RefSlot { addr: place.node.addr() + RadixNode::<W>::first_child(inner.kind), at: at as u32 };
                    place.node = child;
                }
                _ => {
                    place.missing = Some((inner.depth(), byte));
                    break;
                }
            }
        }
        let near = Record::new(self.arena, self.any_leaf(place.node).addr());
        place.parts_at = near.parts_at(key);
        place.record = place.parts_at.is_none().then(|| near.addr());
        place
    }

    /// Makes `leaf`, a finished record, the newest of its key, whose place was just found. For the writer, which provides
    /// room for nodes. Changes nothing if it fails.
    pub fn put(
        &self,
        key: Key<'_>,
        leaf: Addr,
        place: InsertPoint,
        room: &mut impl FnMut(u64) -> Result<Addr>,
    ) -> Result<()> {
        let leaf = Ref::new(leaf, NodeKind::Leaf);
        let InsertPoint { mut slot, mut node, missing, parts_at, .. } = place;
        let Some(parts_at) = parts_at else {
            // The first key, or one that exists.
            self.publish(slot, leaf);
            return Ok(());
        };
        if let Some((depth, byte)) = missing
            && parts_at >= depth
        {
            return if key.len() > depth { self.add(slot, node, byte, leaf, room) } else { Err(begins_another()) };
        }
        // It diverges from the others further up: descend again, down to there.
        (slot, node) = (ROOT, self.root());
        while node.kind() != NodeKind::Leaf {
            let inner = RadixNode::new(self.arena, node);
            if inner.depth() > parts_at {
                break;
            }
            let at = inner.place(key.byte(inner.depth())).expect("the way down is the same");
            slot = RefSlot { addr: node.addr() + RadixNode::<W>::first_child(inner.kind), at: at as u32 };
            node = inner.child_at(RadixNode::<W>::first_child(inner.kind), at);
        }
        let other = Record::new(self.arena, self.any_leaf(node).addr());
        if parts_at >= key.len() || parts_at >= other.key_bytes() {
            return Err(begins_another());
        }
        let addr = room(NodeKind::Node4.words())?;
        let bytes = u64::from(key.byte(parts_at)) << 8 | u64::from(other.key_byte(parts_at));
        self.arena.store(addr + CHILDREN_4, u64::from(leaf.0) << 32 | u64::from(node.0), Relaxed);
        self.arena.store(addr, parts_at as u64 | 2 << 24 | bytes << 32, Relaxed);
        self.publish(slot, Ref::new(addr, NodeKind::Node4));
        Ok(())
    }

    /// Publishes a reference, with all that was written before it.
    fn publish(&self, slot: RefSlot, node: Ref) {
        self.set(slot, node, Release);
    }

    fn set(&self, slot: RefSlot, node: Ref, order: std::sync::atomic::Ordering) {
        let (addr, shift) = (slot.addr + slot.at / 2, 32 * (slot.at & 1));
        let word = self.arena.load(addr, Relaxed);
        self.arena.store(addr, word & !(0xffff_ffff << shift) | u64::from(node.0) << shift, order);
    }

    /// Adds a child to the node that `slot` refers to.
    fn add(
        &self,
        slot: RefSlot,
        node: Ref,
        byte: u8,
        child: Ref,
        room: &mut impl FnMut(u64) -> Result<Addr>,
    ) -> Result<()> {
        let inner = RadixNode::new(self.arena, node);
        let children = match inner.kind {
            NodeKind::Node48 => (inner.head >> 24) as usize & 0xff,
            NodeKind::Node256 => 0,
            _ => inner.children(),
        };
        if children < inner.kind.room() {
            self.add_to(node, children, byte, child, Release);
            return Ok(());
        }
        // A larger node with the same children replaces it.
        let kind = match inner.kind {
            NodeKind::Node4 => NodeKind::Node16,
            NodeKind::Node16 => NodeKind::Node48,
            _ => NodeKind::Node256,
        };
        let larger = Ref::new(room(kind.words())?, kind);
        self.arena.store(larger.addr(), inner.depth() as u64, Relaxed);
        let mut from = 0;
        let mut count = 0;
        while let Some((key, old)) = inner.next_child(from) {
            self.add_to(larger, count, key, old, Relaxed);
            (from, count) = (u16::from(key) + 1, count + 1);
        }
        self.add_to(larger, count, byte, child, Relaxed);
        self.publish(slot, larger);
        Ok(())
    }

    /// Adds a child to a node that has room and `children` so far; the last store publishes it.
    fn add_to(&self, node: Ref, children: usize, byte: u8, child: Ref, order: std::sync::atomic::Ordering) {
        let (addr, kind) = (node.addr(), node.kind());
        let slot = |at: usize| RefSlot { addr: addr + RadixNode::<W>::first_child(kind), at: at as u32 };
        let head = self.arena.load(addr, Relaxed);
        match kind {
            NodeKind::Node4 => {
                self.set(slot(children), child, order);
                let key = u64::from(byte) << (32 + 8 * children);
                self.arena.store(addr, (head | key) + (1 << 24), order);
            }
            NodeKind::Node16 => {
                self.set(slot(children), child, order);
                let at = addr + KEYS_16 + children as u32 / 8;
                let keys = self.arena.load(at, Relaxed);
                self.arena.store(at, keys | u64::from(byte) << (8 * (children % 8)), order);
                self.arena.store(addr, head + (1 << 24), order);
            }
            NodeKind::Node48 => {
                self.set(slot(children), child, order);
                self.arena.store(addr, head + (1 << 24), Relaxed);
                let at = addr + KEYS_48 + u32::from(byte) / 8;
                let places = self.arena.load(at, Relaxed);
                self.arena.store(at, places | (children as u64 + 1) << (8 * (byte % 8)), order);
            }
            _ => self.set(slot(usize::from(byte)), child, order),
        }
    }
}
