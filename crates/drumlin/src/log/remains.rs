//! What can still be read of a damaged log, for salvage: every entry whose checksum matches, wherever it is, and every
//! catalog snapshot that a header or the root names.
//!
//! Nothing is changed, and nothing is trusted without a check: an entry carries a checksum that includes its place; the
//! name of a snapshot is checked by the code that reads the snapshot. Unlike in recovery, a damaged record does not end
//! the reading.
//!
//! Of the catalog snapshots, salvage begins with the one that leads furthest.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::Movers;
use super::frame::Body;
use super::origin::{Origin, Point, decode_witness};
use super::root::{Chunk, Role, Root};
use super::{Base, Entry, frame, mark};
use crate::base::{Error, ErrorKind, Result, Seq};
use crate::storage::{Storage, names};

/// What is left of a log.
#[derive(Clone, Debug, Default)]
pub struct Remains {
    /// The entries whose checksum matches.
    pub entries: BTreeMap<Seq, Entry>,
    /// The catalog snapshots that are named, still to be checked.
    pub bases: BTreeSet<(Seq, Seq, u64, u32, u32)>,
    /// The last commit known to have been made.
    pub last: Seq,
    /// Whether there may have been later commits, of which nothing is left.
    pub uncertain: bool,
    /// Whether there is any part of a log.
    pub found: bool,
    /// Which history the root says that it is.
    pub origin: Origin,
    /// What is damaged: the object, and what is wrong with it.
    pub damage: Vec<(String, String)>,
}

impl Remains {
    /// Collects what is left. Fails only if a bucket cannot be reached; a server that has the log is only as good as it answers.
    pub fn read(movers: &Movers<'_>) -> Result<Self> {
        let (mut remains, storage) = (Self::default(), &**movers.storage);
        let named = remains.read_root(movers)?;
        let listed = storage.list(names::LOG).or_else(|e| lost(storage, e).map(|_| Vec::new()))?;
        let mut objects: Vec<String> = listed.into_iter().map(|object| object.name).collect();
        objects.sort_unstable();
        if let Some((root, chunks)) = &named {
            // Others were never committed, or are no longer needed; unless the root is older than they are.
            remains.take_seen(storage, root, &objects)?;
            objects = chunks.iter().map(Chunk::name).collect();
        }
        for name in objects {
            let inside = name.rsplit('/').next().unwrap_or_default();
            let (segment, chunk) = (names::parse_log_segment(inside), names::parse_log_chunk(inside));
            if segment.is_some() || chunk.is_some() {
                let before = segment.map_or(Seq(0), |first| Seq(first.0.saturating_sub(1)));
                remains.found = true;
                remains.last = remains.last.max(before);
                remains.read_records(storage, &name)?;
            }
        }
        let mark = storage.get(names::LOG_MARK).ok().and_then(|bytes| mark::decode(&bytes));
        remains.last = remains.last.max(mark.unwrap_or(Seq(0)));
        // A log in files has a mark, a log in objects a root: without it, the end of the log is unknown.
        remains.uncertain |= named.is_none() && mark.is_none();
        let newest = remains.entries.keys().next_back().copied().unwrap_or(Seq(0));
        remains.last = remains.last.max(newest);
        Ok(remains)
    }

    /// The named snapshots, the newest first.
    pub fn bases(&self) -> impl Iterator<Item = Base> {
        let base = |(seq, from, offset, bytes, checksum): &(Seq, Seq, u64, u32, u32)| Base {
            seq: *seq,
            from: *from,
            offset: *offset,
            bytes: *bytes,
            checksum: *checksum,
        };
        self.bases.iter().rev().map(base)
    }

    fn name(&mut self, base: Option<Base>) {
        self.bases.extend(base.map(|base| (base.seq, base.from, base.offset, base.bytes, base.checksum)));
    }

    /// Reads the root of a shared log; returns the chunks that it names, if there is a root and it is undamaged.
    fn read_root(&mut self, movers: &Movers<'_>) -> Result<Option<(Option<Point>, Vec<Chunk>)>> {
        let storage = &**movers.storage;
        let bytes = match storage.get(names::ROOT) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => {
                self.damage.push((names::ROOT.into(), lost(storage, e)?));
                return Ok(None);
            }
        };
        self.found = true;
        match Root::decode(&bytes) {
            Ok(root) => {
                self.take_root(&root);
                let newest = self.read_cell(&root, movers).unwrap_or(root);
                Ok(Some((newest.point(), newest.chunks)))
            }
            Err(e) => {
                self.damage.push((names::ROOT.into(), e.message().to_owned()));
                // Its head has no checksum of its own, but the snapshot that it names has.
                self.name(Root::base_of_damaged(&bytes));
                self.take_records(&bytes, names::ROOT, 0);
                Ok(None)
            }
        }
    }

    fn take_root(&mut self, root: &Root) {
        (self.last, self.origin) = (self.last.max(root.seq), root.origin);
        self.name(root.base);
        self.entries.extend(root.entries.iter().map(|entry| (entry.seq, entry.clone())));
    }

    /// The root in the cell, if the object says that it is there: it continues what the object noted of it.
    fn read_cell(&mut self, object: &Root, movers: &Movers<'_>) -> Option<Root> {
        let Role::InCell { address, begun: true, .. } = &object.role else { return None };
        let read = movers.read_cell(object).and_then(|(_, read)| {
            let (root, _) = read.ok_or_else(|| Error::unavailable("it has no content"))?;
            object.continues(&root)?;
            Ok(root)
        });
        match read {
            Ok(root) => {
                self.take_root(&root);
                Some(root)
            }
            Err(e) => {
                let what = format!("the log after commit {} is there, and cannot be read: {}", object.seq, e.message());
                self.damage.push((address.clone(), what));
                self.uncertain = true;
                None
            }
        }
    }

    /// Where the witness shows later commits of the same history than the root has, which ends with `root`: takes those of the
    /// `objects` that the chain of entries leads through from the one to the other.
    fn take_seen(&mut self, storage: &dyn Storage, root: &Option<Point>, objects: &[String]) -> Result<()> {
        let witness = match storage.get(names::WITNESS) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            other => other.map_err(|e| lost(storage, e)),
        };
        let seen = match witness {
            Ok(bytes) => decode_witness(&bytes),
            Err(why) => {
                self.damage.push((names::WITNESS.into(), why?));
                return Ok(());
            }
        };
        let (Some(root), Some(seen)) = (root, seen) else { return Ok(()) };
        if seen.store != root.store || seen.seq <= root.seq {
            return Ok(());
        }
        self.last = self.last.max(seen.seq);
        let mut others = Self::default();
        let mut by_id = BTreeMap::new();
        for name in objects {
            let last = names::parse_log_chunk(name.rsplit('/').next().unwrap_or_default());
            if last.is_some_and(|last| last > root.seq) {
                others.read_records(storage, name)?;
                by_id.extend(std::mem::take(&mut others.entries).into_values().map(|entry| (entry.id, entry)));
            }
        }
        let (mut id, mut chain) = (seen.entry, Vec::new());
        while let Some(entry) = by_id.remove(&id).filter(|entry| entry.seq > root.seq) {
            id = entry.prev.unwrap_or_default();
            chain.push(entry);
        }
        if id == root.entry {
            self.entries.extend(chain.into_iter().map(|entry| (entry.seq, entry)));
        }
        Ok(())
    }

    fn read_records(&mut self, storage: &dyn Storage, name: &str) -> Result<()> {
        let bytes = match storage.get(name) {
            Ok(bytes) => bytes,
            Err(e) => {
                let why = lost(storage, e)?;
                self.damage.push((name.to_owned(), why));
                return Ok(());
            }
        };
        match frame::decode_header(&bytes, name) {
            Ok(header) => self.name(header.base),
            Err(e) => self.damage.push((name.to_owned(), e.message().to_owned())),
        }
        self.take_records(&bytes, name, frame::HEADER_BYTES);
        Ok(())
    }

    /// Takes the valid records of `bytes`, from `from` on; the bytes between them are damage.
    fn take_records(&mut self, bytes: &Bytes, name: &str, from: usize) {
        let (mut at, mut good) = (from, from);
        let is_root = name == names::ROOT;
        while at < bytes.len() {
            let record = match frame::may_show_synced(bytes, at, Seq(0)) {
                true => frame::decode_record(bytes, name, at),
                false => None,
            };
            let Some((record, behind)) = record else {
                at = frame::align(at + 1);
                continue;
            };
            // The first record of a root is preceded by its head.
            if at > good && !(is_root && good == from) {
                self.damage.push((name.to_owned(), format!("no record can be read from offset {good} to {at}")));
            }
            self.last = self.last.max(record.synced);
            match record.body {
                Body::Entry(entry) => drop(self.entries.insert(entry.seq, entry)),
                Body::End => self.last = self.last.max(record.seq),
            }
            (at, good) = (behind, behind);
        }
        if bytes.len() > good {
            self.uncertain = true;
            let end = bytes.len();
            self.damage.push((name.to_owned(), format!("no record can be read from offset {good} to {end}")));
        }
    }
}

/// Why an object cannot be read; an error if that may be temporary.
fn lost(storage: &dyn Storage, e: Error) -> Result<String> {
    let fleeting = storage.is_remote() && !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Corrupt);
    if fleeting { Err(e) } else { Ok(e.to_string()) }
}
