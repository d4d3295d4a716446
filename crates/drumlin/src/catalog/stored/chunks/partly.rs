//! Reads what is left of a catalog snapshot that has lost chunks, or whose index is not named.

use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use serde::de::DeserializeOwned;

use super::section::{CatalogChunk, damaged};
use super::{Index, read_map};
use crate::base::{Seq, TableId};
use crate::catalog::stored::sections::TreeBuilder;
use crate::catalog::{CoverId, Followers, Path, RowViews, Sequences, SnapshotCovers, State, TableMap, Trash};
use crate::table::{Instants, Past, TableState};

const UNREADABLE: &str = "its bytes cannot be read, or are not the ones that were written";

/// A part of a catalog snapshot that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostChunk {
    /// What it held.
    pub what: &'static str,
    /// The first key that it may have held; `None` if it was the first chunk.
    pub from: Option<String>,
    /// The first key after it; `None` if it was the last chunk.
    pub until: Option<String>,
    /// Where it is stored, and why it cannot be read.
    pub why: String,
}

impl LostChunk {
    fn of<K>(
        what: &'static str,
        chunks: &[CatalogChunk<K>],
        at: usize,
        why: String,
        key: impl Fn(&K) -> String,
    ) -> Self {
        let from = (at > 0).then(|| key(&chunks[at].first));
        let until = chunks.get(at + 1).map(|next| key(&next.first));
        Self { what, from, until, why: damaged(&chunks[at].place, &why).message().to_owned() }
    }
}

/// The items of the readable chunks.
fn read_some<K, V>(
    what: &'static str,
    chunks: &[CatalogChunk<K>],
    bytes: &[Option<Bytes>],
    lost: &mut Vec<LostChunk>,
    key: impl Fn(&K) -> String,
) -> OrdMap<K, V>
where
    K: Ord + Clone + DeserializeOwned,
    V: Clone + DeserializeOwned,
{
    let mut map = OrdMap::new();
    for (at, (chunk, bytes)) in chunks.iter().zip(bytes).enumerate() {
        let read = match bytes {
            Some(bytes) => read_map::<K, V>([(&chunk.place, bytes)].into_iter()).map_err(|e| e.message().to_owned()),
            None => Err(UNREADABLE.to_owned()),
        };
        match read {
            Ok(items) => map.extend(items),
            Err(why) => lost.push(LostChunk::of(what, chunks, at, why, &key)),
        }
    }
    map
}

impl Index {
    /// What can be read of the state at this snapshot: `chunks` are the bytes of [`Index::places`], `None` where they cannot
    /// be read. Also returns what is lost. The state may be inconsistent: see [`State::mend`].
    pub fn read_partly(&self, chunks: &[Option<Bytes>]) -> (State, Vec<LostChunk>) {
        let mut rest = chunks;
        let mut lost = Vec::new();
        let mut take = |n: usize| {
            let (own, behind) = rest.split_at(n.min(rest.len()));
            rest = behind;
            own
        };
        let nodes: Vec<Option<&[u8]>> = take(self.nodes.len()).iter().map(|chunk| chunk.as_deref()).collect();
        let (tree, failures) = TreeBuilder::scattered(&nodes);
        let unreadable = (0..nodes.len()).filter(|at| nodes[*at].is_none()).map(|at| (at, UNREADABLE.to_owned()));
        for (at, why) in unreadable.chain(failures) {
            lost.push(LostChunk::of("nodes", &self.nodes, at, why, |first| first.0.clone()));
        }
        let mut state = State::from_small_state(self.rest.clone(), tree);
        let id = |id: &TableId| id.to_string();
        let mut tables: OrdMap<TableId, Arc<TableState>> =
            read_some("tables", &self.tables, take(self.tables.len()), &mut lost, id);
        state.trash = Trash::of(read_some("trash", &self.trash, take(self.trash.len()), &mut lost, id));
        state.snapshots = read_some("snapshots", &self.snapshots, take(self.snapshots.len()), &mut lost, String::clone);
        // Which blocks are in use follows from the tables.
        take(self.blocks.len());
        take(self.shared.len());
        take(self.condemned.len());
        let inline = take(self.inline.len());
        state.ledger.inline = read_some("small blocks", &self.inline, inline, &mut lost, ToString::to_string);
        let instants = take(self.instants.len());
        let instants: OrdMap<TableId, Instants> = read_some("times", &self.instants, instants, &mut lost, id);
        for (id, instants) in instants {
            if let Some(table) = tables.get_mut(&id) {
                Arc::make_mut(table).instants = Arc::new(instants);
            }
        }
        let pasts = take(self.pasts.len());
        let pasts: OrdMap<TableId, Past> = read_some("pasts", &self.pasts, pasts, &mut lost, id);
        for (id, past) in pasts {
            // Of versions that are lost, nothing need be told.
            if let Some(table) = tables.get_mut(&id) {
                past.give(Arc::make_mut(table)).ok();
            }
        }
        let pages = take(self.pages.len());
        for (at, (own, bytes)) in self.pages.iter().zip(pages).enumerate() {
            let read = bytes.as_ref().ok_or_else(|| UNREADABLE.to_owned()).and_then(|bytes| {
                let all = own.page(bytes.clone()).tables();
                all.map_err(|e| e.message().to_owned())
            });
            match read {
                Ok(read) => tables.extend(read.into_iter().map(|table| (table.id, table))),
                Err(why) => {
                    let until = self.pages.get(at + 1).map(|next| next.chunk.first.to_string());
                    let from = (at > 0).then(|| own.chunk.first.to_string());
                    let why = damaged(&own.chunk.place, &why).message().to_owned();
                    lost.push(LostChunk { what: "tables", from, until, why });
                }
            }
        }
        let sequences = take(self.sequences.len());
        state.sequences = Sequences(read_some("sequences", &self.sequences, sequences, &mut lost, id));
        let followers = take(self.followers.len());
        state.followers = Followers(read_some("followers", &self.followers, followers, &mut lost, id));
        state.presences = self.presences.clone();
        let views = take(self.row_views.len());
        state.row_views = RowViews(read_some("views", &self.row_views, views, &mut lost, id));
        // They are not restored.
        take(self.jobs.len());
        let covers = read_some("snapshots", &self.covers, take(self.covers.len()), &mut lost, String::clone);
        let path = |(_, path): &(CoverId, Path)| path.to_string();
        let pins = read_some("snapshots", &self.cover_pins, take(self.cover_pins.len()), &mut lost, path);
        let left = read_some("tables that left snapshots", &self.left, take(self.left.len()), &mut lost, id);
        state.covers = SnapshotCovers::of(covers, pins, left);
        state.tables = TableMap::of(tables);
        (state, lost)
    }

    /// Finds the index at the end of `object` without knowing where it begins: an index of this `seq`, preceded exactly by
    /// its own chunks. Also returns its offset.
    pub fn find(object: &Bytes, seq: Seq, header: u64) -> Option<(Index, u64)> {
        (header..object.len() as u64).rev().find_map(|at| {
            let index = Index::decode(&object[at as usize..]).ok()?;
            let own = index.objects.get(&seq).copied().unwrap_or(0);
            (index.rest.seq == seq && own.checked_add(header) == Some(at)).then_some((index, at))
        })
    }
}
