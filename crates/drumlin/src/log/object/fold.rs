//! Chunks that are made beside commits, of entries that a root in a cell holds.

use std::sync::atomic::Ordering;

use super::super::Entry;
use super::super::root::{Chunk, Root};
use super::chunks::put;
use super::{ObjectLog, RootState};
use crate::base::{ErrorKind, Result};
use crate::storage::Tag;

/// How often a chunk that was made beside commits is tried to be named.
const FOLDS: usize = 16;

/// How many of the newest entries a chunk that is made beside commits leaves in the root, so that processes which follow need not read it.
const NEWEST_KEPT: usize = 32;

impl ObjectLog {
    /// Moves entries that the root holds to a chunk, beside the commits of others: the newest stay, and those that come while it is put. If
    /// that fails, another process does it later.
    pub fn fold(&self) -> Result<()> {
        // Asked without waiting for the log: it is seldom so.
        if !self.seen.folds.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let root = {
            let tail = self.tail.lock()?;
            tail.check()?;
            tail.root.clone()
        };
        let some = root.entries.iter().take(root.entries.len().saturating_sub(NEWEST_KEPT)).cloned();
        let some: Vec<Entry> = some.collect();
        if some.is_empty() {
            return Ok(());
        }
        let chunk = put(&*self.storage, &self.env, &some)?;
        let mut unpublished = None;
        let folded = self.name_chunk(&mut *self.tail.lock()?, chunk, &mut |root, tag| {
            unpublished = Some((root.clone(), tag.clone()));
        });
        // Commits need not wait for that.
        if let Some((root, tag)) = unpublished {
            self.place.publish(&root, &tag);
        }
        folded
    }

    /// Has the root name a chunk in place of entries that it holds.
    fn name_chunk(&self, tail: &mut RootState, chunk: Chunk, publish: &mut dyn FnMut(&Root, &Tag)) -> Result<()> {
        for _ in 0..FOLDS {
            let mut next = (*tail.root).clone();
            // Another process may have made a chunk of them, or a checkpoint released them.
            if next.role.check().is_err() || next.entries.first().map(|entry| entry.seq) != Some(chunk.first) {
                break;
            }
            next.entries = next.entries.since(chunk.last.next());
            next.chunks.push(chunk.clone());
            match self.replace_then(tail, next, None, publish) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(e) if e.kind() == ErrorKind::InDoubt => return Err(e),
                Err(_) => break,
            }
        }
        self.place.end_turn();
        // An answer may have been lost that it was done.
        self.look(tail)?;
        if !tail.root.chunks.contains(&chunk) {
            self.storage.delete_many(&[chunk.name()]);
        }
        Ok(())
    }
}
