//! Effects on nodes, in order, as one byte string: the same in a transaction, in the log and in the change feed. It
//! also names the nodes that went along with others, so applying it decides nothing, and a feed needs no state to know
//! them.
//!
//! ```text
//! record
//!   head            1 byte: kind in bits 0-2, detail in bits 3-4
//!   shared          varint: bytes that the path shares with that of the previous record
//!   rest            varint, then that many bytes of the path
//!   payload         put: varint, then that many bytes
//!   life condition  keep: varint, then that many bytes of JSON text
//! ```
//! The first record shares nothing, so that byte strings can be concatenated.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::{Error, Result, read_varint, write_varint};
use crate::catalog::tree::path::check_path;
use crate::catalog::{Keep, Payload};

/// Why a node was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The caller asked for it.
    Asked,
    /// A node above it was deleted.
    Above,
    /// Its life conditions no longer hold.
    KeepWhile,
    /// Its presence has ended, or its time is over.
    Ended,
}

/// One thing that happened to a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NodeEffect<'a> {
    /// Its payload was set.
    Put {
        /// Whether the node did not exist before.
        created: bool,
        /// The payload as stored.
        payload: &'a [u8],
    },
    /// Its payload was removed.
    Clear {
        /// Whether that left nothing of the node.
        gone: bool,
    },
    /// It was deleted; nodes below it have records of their own after this one.
    Delete {
        /// Why.
        cause: Cause,
    },
    /// Its life conditions were set.
    Keep {
        /// As stored.
        keep: &'a [u8],
    },
}

impl NodeEffect<'_> {
    /// Whether it may set what a node lives on, or says that this has ended.
    fn is_on_life(&self) -> bool {
        matches!(self, NodeEffect::Keep { .. } | NodeEffect::Delete { cause: Cause::Ended })
    }
}

const PUT: u8 = 0;
const CLEAR: u8 = 1;
const DELETE: u8 = 2;
const KEEP: u8 = 3;
const DETAIL: u32 = 3;

/// A list of things that happened to nodes. Adding one is O(its bytes).
#[derive(Clone, Default)]
pub struct NodeEffects {
    bytes: Vec<u8>,
    len: usize,
    /// The path of the last record; empty if none was added here.
    last: String,
    /// Whether one may set what a node lives on, or say that it has ended.
    on_lives: bool,
}

/// A position in a list, to rewind to.
pub(in crate::catalog) struct Savepoint {
    bytes: usize,
    len: usize,
    last: String,
}

impl NodeEffects {
    /// The number of effects.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Their size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no effects.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one.
    pub fn push(&mut self, path: &str, effect: NodeEffect<'_>) {
        let (kind, detail, content) = match effect {
            NodeEffect::Put { created, payload } => (PUT, u8::from(created), Some(payload)),
            NodeEffect::Clear { gone } => (CLEAR, u8::from(gone), None),
            NodeEffect::Delete { cause } => (DELETE, cause as u8, None),
            NodeEffect::Keep { keep } => (KEEP, 0, Some(keep)),
        };
        let shared = self.last.bytes().zip(path.bytes()).take_while(|(a, b)| a == b).count();
        self.bytes.push(kind | detail << DETAIL);
        write_varint(&mut self.bytes, shared as u64);
        write_varint(&mut self.bytes, (path.len() - shared) as u64);
        self.bytes.extend_from_slice(&path.as_bytes()[shared..]);
        self.on_lives |= effect.is_on_life();
        if let Some(content) = content {
            write_varint(&mut self.bytes, content.len() as u64);
            self.bytes.extend_from_slice(content);
        }
        // Only the new part is copied, from a character boundary.
        let whole = (0..=shared).rev().find(|at| self.last.is_char_boundary(*at) && path.is_char_boundary(*at));
        let whole = whole.unwrap_or(0);
        self.last.truncate(whole);
        self.last.push_str(&path[whole..]);
        self.len += 1;
    }

    /// Adds all of `more`.
    pub fn extend(&mut self, more: &NodeEffects) {
        self.bytes.extend_from_slice(&more.bytes);
        self.len += more.len;
        self.on_lives |= more.on_lives;
        self.last.clone_from(&more.last);
    }

    /// Whether a node is to end with a presence or by itself, or has.
    pub(in crate::catalog) fn end(&self) -> bool {
        let ends = |effect: NodeEffect<'_>| match effect {
            NodeEffect::Keep { keep } => Keep::decode(keep).is_ok_and(|keep| keep.ends()),
            effect => effect == NodeEffect::Delete { cause: Cause::Ended },
        };
        let mut reader = self.reader();
        self.on_lives && std::iter::from_fn(|| Some(ends(reader.advance().ok()??.1))).any(|ends| ends)
    }

    /// All except the first.
    pub(in crate::catalog) fn behind_first(&self) -> NodeEffects {
        let mut rest = NodeEffects::default();
        let mut reader = self.reader();
        let mut first = true;
        while let Ok(Some((path, effect))) = reader.advance() {
            if !std::mem::take(&mut first) {
                rest.push(path, effect);
            }
        }
        rest
    }

    /// The current end of the list.
    pub(in crate::catalog) fn mark(&self) -> Savepoint {
        Savepoint { bytes: self.bytes.len(), len: self.len, last: self.last.clone() }
    }

    /// Removes what was added since.
    pub(in crate::catalog) fn rewind(&mut self, mark: Savepoint) {
        self.bytes.truncate(mark.bytes);
        self.len = mark.len;
        self.last = mark.last;
    }

    /// Reads them, in order.
    pub fn reader(&self) -> NodeReader<'_> {
        NodeReader { rest: &self.bytes, path: Vec::new() }
    }
}

impl PartialEq for NodeEffects {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl fmt::Debug for NodeEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        let mut reader = self.reader();
        while let Ok(Some((path, effect))) = reader.advance() {
            list.entry(&(path, effect));
        }
        list.finish()
    }
}

impl Serialize for NodeEffects {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.bytes)
    }
}

impl<'de> Deserialize<'de> for NodeEffects {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?.to_vec();
        let mut effects = NodeEffects { bytes, ..NodeEffects::default() };
        // Checked once here, so that readers never find damage halfway.
        let mut reader = effects.reader();
        let (mut len, mut on_lives) = (0, false);
        while let Some((path, effect)) = reader.advance().map_err(de::Error::custom)? {
            check_path(path).map_err(de::Error::custom)?;
            match effect {
                NodeEffect::Put { payload, .. } => drop(Payload::from_stored(payload).map_err(de::Error::custom)?),
                NodeEffect::Keep { keep: [] } => {}
                NodeEffect::Keep { keep } => drop(Keep::decode(keep).map_err(de::Error::custom)?),
                NodeEffect::Clear { .. } | NodeEffect::Delete { .. } => {}
            }
            on_lives |= effect.is_on_life();
            len += 1;
        }
        (effects.len, effects.on_lives) = (len, on_lives);
        Ok(effects)
    }
}

/// Reads a list.
pub struct NodeReader<'a> {
    rest: &'a [u8],
    path: Vec<u8>,
}

impl<'a> NodeReader<'a> {
    /// The next one, with its path.
    pub fn advance(&mut self) -> Result<Option<(&str, NodeEffect<'a>)>> {
        let Some((head, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let damaged = || Error::corrupt("the changes of nodes are damaged");
        let (kind, detail) = (head & ((1 << DETAIL) - 1), head >> DETAIL);
        let shared = self.varint().filter(|shared| *shared <= self.path.len()).ok_or_else(damaged)?;
        self.path.truncate(shared);
        let rest = self.slice().ok_or_else(damaged)?;
        self.path.extend_from_slice(rest);
        let effect = match (kind, detail) {
            (PUT, 0 | 1) => NodeEffect::Put { created: detail == 1, payload: self.slice().ok_or_else(damaged)? },
            (CLEAR, 0 | 1) => NodeEffect::Clear { gone: detail == 1 },
            (DELETE, 0) => NodeEffect::Delete { cause: Cause::Asked },
            (DELETE, 1) => NodeEffect::Delete { cause: Cause::Above },
            (DELETE, 2) => NodeEffect::Delete { cause: Cause::KeepWhile },
            (DELETE, 3) => NodeEffect::Delete { cause: Cause::Ended },
            (KEEP, 0) => NodeEffect::Keep { keep: self.slice().ok_or_else(damaged)? },
            _ => return Err(damaged()),
        };
        let path = std::str::from_utf8(&self.path).map_err(|_| damaged())?;
        Ok(Some((path, effect)))
    }

    fn varint(&mut self) -> Option<usize> {
        let (value, bytes) = read_varint(self.rest)?;
        self.rest = &self.rest[bytes..];
        usize::try_from(value).ok()
    }

    fn slice(&mut self) -> Option<&'a [u8]> {
        let len = self.varint()?;
        let (slice, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_in_order_and_damage_is_noticed() {
        let mut effects = NodeEffects::default();
        let payload = Payload::from(300);
        let all = [
            ("a/b/c", NodeEffect::Put { created: true, payload: payload.stored() }),
            ("a/b/ü", NodeEffect::Put { created: false, payload: payload.stored() }),
            ("a/b/û", NodeEffect::Clear { gone: true }),
            ("a", NodeEffect::Delete { cause: Cause::Asked }),
            ("a/b", NodeEffect::Delete { cause: Cause::Above }),
            ("z", NodeEffect::Delete { cause: Cause::KeepWhile }),
            ("z", NodeEffect::Keep { keep: b"{\"conditions\":[]}" }),
        ];
        all.iter().for_each(|(path, effect)| effects.push(path, *effect));
        effects.extend(&effects.clone());
        let mut reader = effects.reader();
        for (path, effect) in all.iter().chain(&all) {
            assert_eq!(reader.advance().unwrap(), Some((*path, *effect)));
        }
        assert_eq!(reader.advance().unwrap(), None);
        let stored = postcard::to_stdvec(&effects).unwrap();
        let read: NodeEffects = postcard::from_bytes(&stored).unwrap();
        assert_eq!((read.len(), &read), (14, &effects));
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..50_000 {
            let mut stored = stored.clone();
            let at = rng.usize(..stored.len());
            stored[at] = rng.u8(..);
            let _ = postcard::from_bytes::<NodeEffects>(&stored);
        }
    }
}
