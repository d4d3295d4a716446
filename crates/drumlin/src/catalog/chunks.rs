//! A catalog snapshot in chunks: sorted sections (nodes, tables, blocks …) cut into pieces of about 64 KiB, each with
//! the first key it may hold, and an index of them. A later snapshot rewrites only the chunks in which something has
//! changed and refers to the others in place: it costs as much as has changed, whatever the size of the catalog.
//!
//! Changes are found by comparing two states, which skips the parts that they share. An object of which little is still
//! in use is emptied into the next snapshot, and so are the smallest ones beyond [`OBJECTS_MAX`].

mod partly;

pub use partly::LostChunk;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::state::SmallState;
use super::stored::{Builder, Writer};
use super::{FEATURES_KNOWN, Holds, State};
use crate::base::{BlockId, Error, Result, Seq, TableId, checksum_at};
use crate::block::Address;
use crate::storage::names;
use crate::table::{Instants, Past, Table};

/// A chunk is closed once it holds this many bytes.
const CHUNK_BYTES: usize = if cfg!(test) { 512 } else { 64 << 10 };
/// A rewritten chunk with fewer bytes is merged with the next one.
const SPARSE_BYTES: usize = CHUNK_BYTES / 4;
/// The maximum number of objects over which one snapshot's chunks are spread.
const OBJECTS_MAX: usize = 8;

/// Where a chunk is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkAddress {
    /// The snapshot whose object holds it.
    pub object: Seq,
    /// Where it begins in the object.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// CRC32C over its bytes, its object's name and its offset.
    pub checksum: u32,
}

impl ChunkAddress {
    /// Its range in the object; `Corrupt` if it is impossible.
    pub fn range(&self) -> Result<Range<u64>> {
        let end = self.offset.checked_add(self.bytes);
        Ok(self.offset..end.ok_or_else(|| damaged(self, &"its end is too far off"))?)
    }
}

/// A piece of a section: the items from `first` up to the next chunk's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Chunk<K> {
    first: K,
    place: ChunkAddress,
}

/// A path that compares in tree order: name by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TreePath(String);

fn in_tree_order(a: &str, b: &str) -> Ordering {
    a.split('/').cmp(b.split('/'))
}

impl Ord for TreePath {
    fn cmp(&self, other: &Self) -> Ordering {
        in_tree_order(&self.0, &other.0)
    }
}

impl PartialOrd for TreePath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

type Chunks<K> = Vec<Chunk<K>>;

/// What a catalog snapshot consists of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Index {
    rest: SmallState,
    /// The bytes of all chunks that were written to each object that is still needed.
    objects: BTreeMap<Seq, u64>,
    nodes: Chunks<TreePath>,
    tables: Chunks<TableId>,
    trash: Chunks<TableId>,
    snapshots: Chunks<String>,
    blocks: Chunks<BlockId>,
    shared: Chunks<Address>,
    condemned: Chunks<BlockId>,
    inline: Chunks<BlockId>,
    /// Since version 6, after the rest.
    #[serde(skip)]
    instants: Chunks<TableId>,
    /// Since version 7, after that, if there have ever been any.
    #[serde(skip)]
    holds: Holds,
    /// Since version 8, after those: features that a reader of the tables must know, if there are any.
    #[serde(skip)]
    uses: u64,
    /// Since version 9, after those, if there are any.
    #[serde(skip)]
    pasts: Chunks<TableId>,
}

impl Index {
    /// Encodes the index.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let encode = || {
            let bytes = postcard::to_extend(&self.instants, postcard::to_stdvec(self)?)?;
            if !self.has_holds() && !self.has_features() {
                return Ok(bytes);
            }
            let bytes = postcard::to_extend(&self.holds, bytes)?;
            if !self.has_features() {
                return Ok(bytes);
            }
            let bytes = postcard::to_extend(&self.uses, bytes)?;
            if self.has_pasts() { postcard::to_extend(&self.pasts, bytes) } else { Ok(bytes) }
        };
        encode().map_err(|e| Error::invalid("the catalog could not be encoded").with_source(e.to_string()))
    }

    /// Decodes the index, to the end of the bytes. One of version 5 has no sections after the rest.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let decode = || {
            let (index, rest) = postcard::take_from_bytes::<Self>(bytes)?;
            let (instants, rest) = if rest.is_empty() { Default::default() } else { postcard::take_from_bytes(rest)? };
            let (holds, rest) = if rest.is_empty() { Default::default() } else { postcard::take_from_bytes(rest)? };
            let (uses, rest) = if rest.is_empty() { (0, rest) } else { postcard::take_from_bytes(rest)? };
            let (pasts, rest) = if rest.is_empty() { Default::default() } else { postcard::take_from_bytes(rest)? };
            Ok::<_, postcard::Error>((Self { instants, holds, uses, pasts, ..index }, rest))
        };
        let (index, rest) = decode().map_err(|e| Error::corrupt(format!("the index: {e}")))?;
        let unknown = index.uses & !FEATURES_KNOWN;
        if unknown != 0 {
            return Err(Error::unsupported(format!("the catalog needs features {unknown:#x}, unknown here")));
        }
        match rest.len() {
            0 => Ok(index),
            n => Err(Error::corrupt(format!("the index: {n} bytes more than expected"))),
        }
    }

    /// The snapshot of `now`: its index, and the chunks to write for it, contiguously, from `offset` of its object on.
    /// What it shares with `before` is referred to, not written.
    pub fn of(now: &State, before: Option<(&Index, &State)>, offset: u64) -> Result<(Index, Vec<Bytes>)> {
        let nothing = (&Index::default(), &State::default());
        let (old, then) = before.unwrap_or(nothing);
        let emptied = old.to_empty();
        let mut pack = Pack { object: now.seq, name: names::catalog(now.seq), offset, parts: Vec::new() };
        let mut index = Index {
            rest: now.small_state(),
            objects: BTreeMap::new(),
            nodes: write_nodes(Section::new(&old.nodes, &emptied), then, now, &mut pack)?,
            tables: write_map(Section::new(&old.tables, &emptied), &then.tables, &now.tables, &mut pack)?,
            trash: write_map(Section::new(&old.trash, &emptied), &then.trash, &now.trash, &mut pack)?,
            snapshots: write_map(Section::new(&old.snapshots, &emptied), &then.snapshots, &now.snapshots, &mut pack)?,
            blocks: write_map(Section::new(&old.blocks, &emptied), &then.ledger.blocks, &now.ledger.blocks, &mut pack)?,
            shared: write_map(Section::new(&old.shared, &emptied), &then.ledger.shared, &now.ledger.shared, &mut pack)?,
            condemned: write_map(
                Section::new(&old.condemned, &emptied),
                &then.ledger.condemned,
                &now.ledger.condemned,
                &mut pack,
            )?,
            inline: write_map(Section::new(&old.inline, &emptied), &then.ledger.inline, &now.ledger.inline, &mut pack)?,
            instants: write_part(
                Section::new(&old.instants, &emptied),
                &then.tables,
                &now.tables,
                |table| (!table.instants.is_empty()).then_some(Cow::Borrowed(&*table.instants)),
                &mut pack,
            )?,
            pasts: write_part(
                Section::new(&old.pasts, &emptied),
                &then.tables,
                &now.tables,
                |table| Past::of(table).map(Cow::<Past>::Owned),
                &mut pack,
            )?,
            holds: now.holds.clone(),
            uses: now.uses,
        };
        let written = pack.parts.iter().map(|part| part.len() as u64).sum();
        let needed: BTreeSet<Seq> = index.places().map(|place| place.object).collect();
        let older = old.objects.iter().map(|(object, bytes)| (*object, *bytes));
        index.objects = older.chain([(now.seq, written)]).filter(|(object, _)| needed.contains(object)).collect();
        Ok((index, pack.parts))
    }

    /// The places of all chunks, in the order in which [`Index::read`] takes them.
    pub fn places(&self) -> impl Iterator<Item = &ChunkAddress> {
        fn of<K>(chunks: &[Chunk<K>]) -> impl Iterator<Item = &ChunkAddress> {
            chunks.iter().map(|chunk| &chunk.place)
        }
        let catalog = of(&self.nodes).chain(of(&self.tables)).chain(of(&self.trash)).chain(of(&self.snapshots));
        let ledger = of(&self.blocks).chain(of(&self.shared)).chain(of(&self.condemned)).chain(of(&self.inline));
        catalog.chain(ledger).chain(of(&self.instants)).chain(of(&self.pasts))
    }

    /// The state at this snapshot. `chunks` are the bytes of [`Index::places`]; their checksums match.
    pub fn read(&self, chunks: &[Bytes]) -> Result<State> {
        let mut chunks = self.places().zip(chunks);
        let mut builder = Builder::default();
        for (place, bytes) in chunks.by_ref().take(self.nodes.len()) {
            builder.read(bytes).map_err(|e| damaged(place, &e))?;
        }
        let tree = builder.finish().map_err(|e| Error::corrupt(format!("the nodes of a catalog snapshot: {e}")))?;
        let mut state = State::from_small_state(self.rest.clone(), tree);
        state.holds = self.holds.clone();
        state.uses = self.uses;
        state.tables = read_map(chunks.by_ref().take(self.tables.len()))?;
        state.trash = read_map(chunks.by_ref().take(self.trash.len()))?;
        state.snapshots = read_map(chunks.by_ref().take(self.snapshots.len()))?;
        state.ledger.blocks = read_map(chunks.by_ref().take(self.blocks.len()))?;
        state.ledger.shared = read_map(chunks.by_ref().take(self.shared.len()))?;
        state.ledger.condemned = read_map(chunks.by_ref().take(self.condemned.len()))?;
        state.ledger.inline = read_map(chunks.by_ref().take(self.inline.len()))?;
        let instants: OrdMap<TableId, Instants> = read_map(chunks.by_ref().take(self.instants.len()))?;
        for (id, instants) in instants {
            table_of(&mut state, id, "times")?.instants = Arc::new(instants);
        }
        let pasts: OrdMap<TableId, Past> = read_map(chunks.by_ref().take(self.pasts.len()))?;
        for (id, past) in pasts {
            past.give(table_of(&mut state, id, "the past")?)?;
        }
        Ok(state)
    }

    /// Whether it has a section of holds.
    pub fn has_holds(&self) -> bool {
        !self.holds.is_unused()
    }

    /// Whether it has a section of features.
    pub fn has_features(&self) -> bool {
        self.uses != 0 || self.has_pasts()
    }

    /// Whether it has a section of tables' pasts.
    pub fn has_pasts(&self) -> bool {
        !self.pasts.is_empty()
    }

    /// The commit whose state this is.
    pub fn seq(&self) -> Seq {
        self.rest.seq
    }

    /// The objects that hold its chunks.
    pub fn objects(&self) -> impl Iterator<Item = Seq> {
        self.objects.keys().copied()
    }

    /// The objects whose chunks must be rewritten: those of which little is in use, and the smallest ones if there are
    /// too many.
    fn to_empty(&self) -> Vec<Seq> {
        let mut used: BTreeMap<Seq, u64> = BTreeMap::new();
        for place in self.places() {
            *used.entry(place.object).or_insert(0) += place.bytes;
        }
        let sparse = |(object, used): &(&Seq, &u64)| **used * 2 < self.objects.get(object).copied().unwrap_or(0);
        let (sparse, mut others): (Vec<_>, Vec<_>) = used.iter().partition(sparse);
        others.sort_by_key(|(object, used)| (**used, **object));
        // One more will be added.
        let beyond = (others.len() + 1).saturating_sub(OBJECTS_MAX);
        sparse.into_iter().chain(others.into_iter().take(beyond)).map(|(object, _)| *object).collect()
    }
}

/// The table to which `what` belongs.
fn table_of<'a>(state: &'a mut State, id: TableId, what: &str) -> Result<&'a mut Table> {
    let table = state.tables.get_mut(&id);
    let table = table.ok_or_else(|| Error::corrupt(format!("table {id}: {what} of a table that does not exist")))?;
    Ok(Arc::make_mut(table))
}

fn damaged(place: &ChunkAddress, what: &dyn std::fmt::Display) -> Error {
    Error::corrupt(format!("{}: chunk at offset {}: {what}", names::catalog(place.object), place.offset))
}

/// The chunks being written.
struct Pack {
    object: Seq,
    name: String,
    offset: u64,
    parts: Vec<Bytes>,
}

impl Pack {
    fn add<K>(&mut self, first: K, bytes: Vec<u8>) -> Chunk<K> {
        let checksum = checksum_at(&bytes, &self.name, self.offset);
        let place = ChunkAddress { object: self.object, offset: self.offset, bytes: bytes.len() as u64, checksum };
        self.offset += place.bytes;
        self.parts.push(bytes.into());
        Chunk { first, place }
    }
}

/// Cuts items into chunks.
struct Cutter<'a, K> {
    pack: &'a mut Pack,
    done: Chunks<K>,
    first: Option<K>,
    bytes: Vec<u8>,
}

impl<K> Cutter<'_, K> {
    /// Adds an item; `write` gets the chunk that it goes to, which is empty for the first item.
    fn item(&mut self, key: impl FnOnce() -> K, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        if self.bytes.len() >= CHUNK_BYTES {
            self.cut();
        }
        if self.first.is_none() {
            self.first = Some(key());
        }
        write(&mut self.bytes)
    }

    fn cut(&mut self) {
        if let Some(first) = self.first.take() {
            let bytes = std::mem::take(&mut self.bytes);
            self.done.push(self.pack.add(first, bytes));
        }
    }
}

/// A section's previous chunks, and which of them must be rewritten.
struct Section<'a, K> {
    old: &'a [Chunk<K>],
    stale: Vec<bool>,
    /// If there are no old chunks: whether there is anything to write.
    fresh: bool,
}

impl<'a, K: Ord + Clone> Section<'a, K> {
    fn new(old: &'a [Chunk<K>], emptied: &[Seq]) -> Self {
        let stale = old.iter().map(|chunk| emptied.contains(&chunk.place.object)).collect();
        Self { old, stale, fresh: false }
    }

    /// Notes that an item differs.
    fn touch(&mut self, key: &K) {
        let at = self.old.partition_point(|chunk| chunk.first <= *key).saturating_sub(1);
        match self.stale.get_mut(at) {
            Some(stale) => *stale = true,
            None => self.fresh = true,
        }
    }

    /// The section's new chunks. `items` returns those of a range, from the first key up to, but excluding, the second.
    fn write(
        self,
        pack: &mut Pack,
        items: impl Fn(Option<&K>, Option<&K>, &mut Cutter<'_, K>) -> Result<()>,
    ) -> Result<Chunks<K>> {
        let mut cutter = Cutter { pack, done: Vec::new(), first: None, bytes: Vec::new() };
        if self.fresh {
            items(None, None, &mut cutter)?;
        }
        for (at, chunk) in self.old.iter().enumerate() {
            let sparse = cutter.first.is_some() && cutter.bytes.len() < SPARSE_BYTES;
            if self.stale[at] || sparse {
                let from = (at > 0).then_some(&chunk.first);
                items(from, self.old.get(at + 1).map(|next| &next.first), &mut cutter)?;
            } else {
                cutter.cut();
                cutter.done.push(chunk.clone());
            }
        }
        cutter.cut();
        Ok(cutter.done)
    }
}

fn write_nodes(
    mut section: Section<'_, TreePath>,
    then: &State,
    now: &State,
    pack: &mut Pack,
) -> Result<Chunks<TreePath>> {
    now.tree.diff(&then.tree, |path, a, b| {
        // A node is also reported if only something below it differs.
        if a.zip(b).is_none_or(|(a, b)| !a.same_itself(b)) {
            section.touch(&TreePath(path.to_owned()));
        }
    });
    section.write(pack, |from, until, cutter| {
        let mut writer = Writer::default();
        let mut answer = Ok(());
        now.tree.each_from(from.map(|from| &*from.0), |path, node| {
            if until.is_some_and(|until| in_tree_order(path, &until.0).is_ge()) {
                return false;
            }
            let write = |chunk: &mut Vec<u8>| {
                if chunk.is_empty() {
                    writer = Writer::default();
                }
                writer.write(path, node, chunk)
            };
            answer = cutter.item(|| TreePath(path.to_owned()), write);
            answer.is_ok()
        });
        answer
    })
}

fn write_map<K, V>(
    section: Section<'_, K>,
    then: &OrdMap<K, V>,
    now: &OrdMap<K, V>,
    pack: &mut Pack,
) -> Result<Chunks<K>>
where
    K: Ord + Clone + Serialize,
    V: PartialEq + Clone + Serialize,
{
    write_part(section, then, now, |value| Some(Cow::Borrowed(value)), pack)
}

/// Writes a part of each value that has this part.
fn write_part<K, V, W>(
    mut section: Section<'_, K>,
    then: &OrdMap<K, V>,
    now: &OrdMap<K, V>,
    part: impl for<'a> Fn(&'a V) -> Option<Cow<'a, W>>,
    pack: &mut Pack,
) -> Result<Chunks<K>>
where
    K: Ord + Clone + Serialize,
    V: PartialEq + Clone,
    W: PartialEq + Clone + Serialize,
{
    for item in then.diff(now) {
        let (key, old, new) = match item {
            DiffItem::Add(key, new) => (key, None, part(new)),
            DiffItem::Remove(key, old) => (key, part(old), None),
            DiffItem::Update { old: (_, old), new: (key, new) } => (key, part(old), part(new)),
        };
        if old != new {
            section.touch(key);
        }
    }
    section.write(pack, |from, until, cutter| {
        let items: Box<dyn Iterator<Item = (&K, &V)>> = match from {
            Some(from) => Box::new(now.range(from.clone()..)),
            None => Box::new(now.iter()),
        };
        for (key, value) in items.take_while(|(key, _)| until.is_none_or(|until| *key < until)) {
            let Some(value) = part(value) else { continue };
            cutter.item(
                || key.clone(),
                |chunk| {
                    let written = postcard::to_extend(&(key, &*value), std::mem::take(chunk));
                    *chunk = written
                        .map_err(|e| Error::invalid("the catalog could not be encoded").with_source(e.to_string()))?;
                    Ok(())
                },
            )?;
        }
        Ok(())
    })
}

fn read_map<'a, K, V>(chunks: impl Iterator<Item = (&'a ChunkAddress, &'a Bytes)>) -> Result<OrdMap<K, V>>
where
    K: Ord + Clone + DeserializeOwned,
    V: Clone + DeserializeOwned,
{
    let mut map = OrdMap::new();
    for (place, bytes) in chunks {
        let mut rest: &[u8] = bytes;
        while !rest.is_empty() {
            let ((key, value), behind) = postcard::take_from_bytes::<(K, V)>(rest).map_err(|e| damaged(place, &e))?;
            if map.get_max().is_some_and(|(last, _)| *last >= key) {
                return Err(damaged(place, &"items are not in order"));
            }
            map.insert(key, value);
            rest = behind;
        }
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{EntryId, Timestamp};
    use crate::catalog::{Payload, TransactionRecord};

    /// Objects as in storage.
    #[derive(Default)]
    struct Objects(BTreeMap<Seq, Vec<u8>>);

    impl Objects {
        fn write(&mut self, now: &State, before: Option<(&Index, &State)>) -> (Index, usize) {
            let (index, parts) = Index::of(now, before, 16).unwrap();
            let object = parts.iter().fold(vec![0; 16], |mut all, part| {
                all.extend_from_slice(part);
                all
            });
            let written = object.len();
            self.0.insert(now.seq, object);
            let needed: Vec<Seq> = index.objects().collect();
            assert!(needed.len() <= OBJECTS_MAX, "{} objects", needed.len());
            self.0.retain(|object, _| needed.contains(object));
            (index, written)
        }

        fn read(&self, index: &Index) -> State {
            let bytes = |place: &ChunkAddress| {
                let range = place.range().unwrap();
                let bytes = &self.0[&place.object][range.start as usize..range.end as usize];
                assert_eq!(checksum_at(bytes, &names::catalog(place.object), place.offset), place.checksum);
                Bytes::copy_from_slice(bytes)
            };
            let chunks: Vec<Bytes> = index.places().map(bytes).collect();
            let index = Index::decode(&index.encode().unwrap()).unwrap();
            let mut state = index.read(&chunks).unwrap();
            state.restore().unwrap();
            state
        }
    }

    #[test]
    fn a_snapshot_costs_what_changed_and_reads_as_the_state_it_is_of() {
        let mut rng = fastrand::Rng::with_seed(5);
        let (mut state, mut objects) = (State::default(), Objects::default());
        let mut before: Option<(Index, State)> = None;
        let mut costs = Vec::new();
        for round in 1..300_u64 {
            let few = round % 3 > 0 && round > 10;
            for _ in 0..if few { 2 } else { rng.usize(1..400) } {
                let path = format!("a/n{:03}/x{}", rng.u16(..300), rng.u8(..3));
                let seq = state.seq.next();
                match rng.u8(..4) {
                    0 => drop(state.tree.remove(&path, |_| Ok::<_, ()>(())).unwrap()),
                    _ => {
                        state.tree.edit(&path, seq, |node| node.set_payload(Some(Payload::from(i64::from(rng.u8(..))))))
                    }
                }
                let block = BlockId { session: crate::base::SessionId(1), number: rng.u64(..500) };
                if !state.ledger.knows(block) {
                    state.ledger.add_block(block, round).unwrap();
                } else {
                    state.ledger.blocks.remove(&block);
                }
            }
            state.finish(
                state.seq.next(),
                Timestamp(round as i64),
                EntryId(u128::from(round)),
                crate::base::SessionId(0),
            );
            let (index, written) = objects.write(&state, before.as_ref().map(|(index, state)| (index, state)));
            let read = objects.read(&index);
            assert!(
                read.tree == state.tree && read.ledger == state.ledger && read.small_state() == state.small_state()
            );
            let whole: u64 = index.places().map(|place| place.bytes).sum();
            if few && whole > 10_000 {
                costs.push(written as f64 / whole as f64);
            }
            before = Some((index, state.stored()));
            state.apply(&TransactionRecord::default(), state.seq, state.time).unwrap();
        }
        // Two changes of nodes and two of blocks each time; now and then an old object is emptied.
        costs.sort_by(f64::total_cmp);
        assert!(costs.len() > 100 && costs[costs.len() / 2] < 0.3, "{costs:?}");
    }
}
