//! A catalog snapshot in chunks: sorted sections (nodes, tables, blocks …) cut into pieces of about 64 KiB, each with
//! the first key it may hold, and an index of them. A later snapshot rewrites only the chunks in which something has
//! changed and refers to the others in place: it costs as much as has changed, whatever the size of the catalog.
//!
//! Changes are found by comparing two states, which skips the parts that they share. An object of which little is still
//! in use is emptied into the next snapshot, and so are the smallest ones beyond [`OBJECTS_MAX`].

mod pages;
mod partly;
mod section;

pub use partly::LostChunk;
pub use section::ChunkAddress;
use section::{CatalogChunk, Chunks, Pack, Section, damaged};

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::sections::{NodeWriter, TreeBuilder};
use crate::base::{BlockId, Error, Result, Seq, TableId};
use crate::block::Address;
use crate::catalog::state::SmallState;
use crate::catalog::{
    CoverId, FEATURE_COVERS, FEATURE_ERASED, FEATURE_JOBS, FEATURES_KNOWN, Followers, Holds, Packed, Path, Presences,
    RowViews, Sequences, SnapshotCovers, State, TableMap, Trash,
};
use crate::storage::names;
use crate::table::{Instants, Past, TableState};
use pages::{PageChunk, write_pages};

/// The maximum number of objects over which one snapshot's chunks are spread.
const OBJECTS_MAX: usize = 8;

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
    /// Since version 10, after those: the tables, with their times and pasts, instead of the three sections of these.
    #[serde(skip)]
    pages: Vec<PageChunk>,
    /// After those, if there are any: what sequences have given out.
    #[serde(skip)]
    sequences: Chunks<TableId>,
    /// After those, if there are any: followers.
    #[serde(skip)]
    followers: Chunks<TableId>,
    /// After those, if there have ever been any.
    #[serde(skip)]
    presences: Presences,
    /// After those, if there are any: views of rows.
    #[serde(skip)]
    row_views: Chunks<TableId>,
    /// After those, if rows have ever been erased: see [`State::erased`].
    #[serde(skip)]
    erased: Seq,
    /// After that, if there are any: committed jobs. Indexes of before have them among the holds.
    #[serde(skip)]
    jobs: Chunks<String>,
    /// After those, if there are any: what snapshots cover, and then what they have pinned and which tables have left them.
    #[serde(skip)]
    covers: Chunks<String>,
    #[serde(skip)]
    cover_pins: Chunks<(CoverId, Path)>,
    #[serde(skip)]
    left: Chunks<TableId>,
}

impl Index {
    /// Encodes the index. Of the sections that came later it has those up to the last that is not empty.
    pub fn encode(&self) -> Result<Vec<u8>> {
        fn add<T: Serialize>(bytes: Vec<u8>, section: &T) -> postcard::Result<Vec<u8>> {
            postcard::to_extend(section, bytes)
        }
        let later = [
            !self.sequences.is_empty(),
            !self.followers.is_empty(),
            !self.presences.is_empty(),
            !self.row_views.is_empty(),
            self.erased > Seq(0),
            !self.jobs.is_empty(),
            !self.covers.is_empty(),
        ];
        let encode = || {
            let bytes = add(add(postcard::to_stdvec(self)?, &self.instants)?, &self.holds)?;
            let mut bytes = add(add(add(bytes, &self.uses)?, &self.pasts)?, &self.pages)?;
            for section in 0..later.iter().rposition(|has| *has).map_or(0, |last| last + 1) {
                bytes = match section {
                    0 => add(bytes, &self.sequences)?,
                    1 => add(bytes, &self.followers)?,
                    2 => add(bytes, &self.presences)?,
                    3 => add(bytes, &self.row_views)?,
                    4 => add(bytes, &self.erased)?,
                    5 => add(bytes, &self.jobs)?,
                    _ => add(add(add(bytes, &self.covers)?, &self.cover_pins)?, &self.left)?,
                };
            }
            Ok(bytes)
        };
        encode()
            .map_err(|e: postcard::Error| Error::invalid("the catalog could not be encoded").with_source(e.to_string()))
    }

    /// Decodes the index, to the end of the bytes. One of version 5 has no sections after the rest.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        /// A section, or nothing if the index ends before it.
        fn take<T: DeserializeOwned + Default>(rest: &mut &[u8]) -> postcard::Result<T> {
            if rest.is_empty() {
                return Ok(T::default());
            }
            let (section, behind) = postcard::take_from_bytes(rest)?;
            *rest = behind;
            Ok(section)
        }
        let decode = || {
            let (index, mut rest) = postcard::take_from_bytes::<Self>(bytes)?;
            let index = Self {
                instants: take(&mut rest)?,
                holds: take(&mut rest)?,
                uses: take(&mut rest)?,
                pasts: take(&mut rest)?,
                pages: take(&mut rest)?,
                sequences: take(&mut rest)?,
                followers: take(&mut rest)?,
                presences: take(&mut rest)?,
                row_views: take(&mut rest)?,
                erased: take(&mut rest)?,
                jobs: take(&mut rest)?,
                covers: take(&mut rest)?,
                cover_pins: take(&mut rest)?,
                left: take(&mut rest)?,
                ..index
            };
            Ok::<_, postcard::Error>((index, rest))
        };
        let (index, rest) = decode().map_err(|e| Error::corrupt(format!("the index cannot be decoded: {e}")))?;
        let unknown = index.uses & !FEATURES_KNOWN;
        if unknown != 0 {
            return Err(Error::unsupported(format!(
                "the catalog needs features that this build does not know ({unknown:#x}); open it with the version of \
                 drumlin that wrote it"
            )));
        }
        match rest.len() {
            0 => Ok(index),
            n => Err(Error::corrupt(format!("the index has {n} bytes more than expected"))),
        }
    }

    /// The snapshot of `now`: its index, and the chunks to write for it, contiguously, from `offset` of its object on.
    /// What it shares with `before` is referred to, not written.
    /// Also returns the pages of its tables.
    pub fn of(now: &State, before: Option<(&Index, &State)>, offset: u64) -> Result<(Index, Vec<Bytes>, Arc<Packed>)> {
        let nothing = (&Index::default(), &State::default());
        let (old, then) = before.unwrap_or(nothing);
        let emptied = old.to_empty();
        let jobs = &now.holds.jobs;
        // Where the index before has none in chunks, all of them are new.
        let jobs_then = if old.jobs.is_empty() { &OrdMap::new() } else { &then.holds.jobs };
        let mut pack = Pack { object: now.seq, name: names::catalog(now.seq), offset, parts: Vec::new() };
        let (pages, packed) = write_pages(&old.pages, &emptied, then, now, &mut pack)?;
        let mut index = Index {
            rest: now.small_state(),
            objects: BTreeMap::new(),
            nodes: write_nodes(Section::new(&old.nodes, &emptied), then, now, &mut pack)?,
            tables: Vec::new(),
            trash: write_map(Section::new(&old.trash, &emptied), then.trash.tables(), now.trash.tables(), &mut pack)?,
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
            instants: Vec::new(),
            pasts: Vec::new(),
            pages,
            sequences: write_map(
                Section::new(&old.sequences, &emptied),
                &then.sequences.0,
                &now.sequences.0,
                &mut pack,
            )?,
            followers: write_map(
                Section::new(&old.followers, &emptied),
                &then.followers.0,
                &now.followers.0,
                &mut pack,
            )?,
            presences: now.presences.clone(),
            row_views: write_map(
                Section::new(&old.row_views, &emptied),
                &then.row_views.0,
                &now.row_views.0,
                &mut pack,
            )?,
            holds: now.holds.without_jobs(),
            uses: now.uses & !(FEATURE_JOBS | FEATURE_COVERS)
                | if now.erased > Seq(0) { FEATURE_ERASED } else { 0 }
                | if jobs.is_empty() { 0 } else { FEATURE_JOBS }
                | if now.covers.is_empty() { 0 } else { FEATURE_COVERS },
            erased: now.erased,
            jobs: write_map(Section::new(&old.jobs, &emptied), jobs_then, jobs, &mut pack)?,
            covers: write_map(
                Section::new(&old.covers, &emptied),
                &then.covers.by_name,
                &now.covers.by_name,
                &mut pack,
            )?,
            cover_pins: write_map(
                Section::new(&old.cover_pins, &emptied),
                &then.covers.pins,
                &now.covers.pins,
                &mut pack,
            )?,
            left: write_map(Section::new(&old.left, &emptied), &then.covers.left, &now.covers.left, &mut pack)?,
        };
        let written = pack.parts.iter().map(|part| part.len() as u64).sum();
        let needed: BTreeSet<Seq> = index.places().map(|place| place.object).collect();
        let older = old.objects.iter().map(|(object, bytes)| (*object, *bytes));
        index.objects = older.chain([(now.seq, written)]).filter(|(object, _)| needed.contains(object)).collect();
        Ok((index, pack.parts, packed))
    }

    /// The places of all chunks, in the order in which [`Index::read`] takes them.
    pub fn places(&self) -> impl Iterator<Item = &ChunkAddress> {
        fn of<K>(chunks: &[CatalogChunk<K>]) -> impl Iterator<Item = &ChunkAddress> {
            chunks.iter().map(|chunk| &chunk.place)
        }
        let catalog = of(&self.nodes).chain(of(&self.tables)).chain(of(&self.trash)).chain(of(&self.snapshots));
        let ledger = of(&self.blocks).chain(of(&self.shared)).chain(of(&self.condemned)).chain(of(&self.inline));
        let rest = of(&self.instants).chain(of(&self.pasts)).chain(self.page_places());
        catalog
            .chain(ledger)
            .chain(rest)
            .chain(of(&self.sequences))
            .chain(of(&self.followers))
            .chain(of(&self.row_views))
            .chain(of(&self.jobs))
            .chain(of(&self.covers))
            .chain(of(&self.cover_pins))
            .chain(of(&self.left))
    }

    /// The places of those chunks that are pages of tables, see [`crate::catalog::unpack_page`].
    pub fn page_places(&self) -> impl Iterator<Item = &ChunkAddress> {
        self.pages.iter().map(|page| &page.chunk.place)
    }

    /// The state at this snapshot. `chunks` are the bytes of [`Index::places`]; their checksums match.
    pub fn read(&self, chunks: &[Bytes]) -> Result<State> {
        let mut chunks = self.places().zip(chunks);
        let mut builder = TreeBuilder::default();
        for (place, bytes) in chunks.by_ref().take(self.nodes.len()) {
            builder.read(bytes).map_err(|e| damaged(place, &e))?;
        }
        let tree = builder
            .finish()
            .map_err(|e| Error::corrupt(format!("the nodes of a catalog snapshot are damaged: {e}")))?;
        let mut state = State::from_small_state(self.rest.clone(), tree);
        state.holds = self.holds.clone();
        state.presences = self.presences.clone();
        (state.uses, state.erased) = (self.uses, self.erased);
        let mut tables: OrdMap<TableId, Arc<TableState>> = read_map(chunks.by_ref().take(self.tables.len()))?;
        state.trash = Trash::of(read_map(chunks.by_ref().take(self.trash.len()))?);
        state.snapshots = read_map(chunks.by_ref().take(self.snapshots.len()))?;
        state.ledger.blocks = read_map(chunks.by_ref().take(self.blocks.len()))?;
        state.ledger.shared = read_map(chunks.by_ref().take(self.shared.len()))?;
        state.ledger.condemned = read_map(chunks.by_ref().take(self.condemned.len()))?;
        state.ledger.inline = read_map(chunks.by_ref().take(self.inline.len()))?;
        let instants: OrdMap<TableId, Instants> = read_map(chunks.by_ref().take(self.instants.len()))?;
        for (id, instants) in instants {
            table_of(&mut tables, id, "the times")?.instants = Arc::new(instants);
        }
        let pasts: OrdMap<TableId, Past> = read_map(chunks.by_ref().take(self.pasts.len()))?;
        for (id, past) in pasts {
            past.give(table_of(&mut tables, id, "the past")?)?;
        }
        if let Some((id, _)) = tables.iter().find(|(id, table)| **id != table.id) {
            return Err(Error::corrupt(format!("table {id}: its record belongs to another table")));
        }
        state.tables = match self.pages.is_empty() {
            true => TableMap::of(tables),
            false => TableMap::of_pages(
                self.pages.iter().zip(chunks.by_ref()).map(|(page, (_, bytes))| page.page(bytes.clone())).collect(),
            )?,
        };
        state.sequences = Sequences(read_map(chunks.by_ref().take(self.sequences.len()))?);
        state.followers = Followers(read_map(chunks.by_ref().take(self.followers.len()))?);
        state.row_views = RowViews(read_map(chunks.by_ref().take(self.row_views.len()))?);
        if !self.jobs.is_empty() {
            state.holds.jobs = read_map(chunks.by_ref().take(self.jobs.len()))?;
        }
        let covers = read_map(chunks.by_ref().take(self.covers.len()))?;
        let pins = read_map(chunks.by_ref().take(self.cover_pins.len()))?;
        state.covers = SnapshotCovers::of(covers, pins, read_map(chunks.take(self.left.len()))?);
        Ok(state)
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
fn table_of<'a>(
    tables: &'a mut OrdMap<TableId, Arc<TableState>>,
    id: TableId,
    what: &str,
) -> Result<&'a mut TableState> {
    let table = tables.get_mut(&id);
    let table =
        table.ok_or_else(|| Error::corrupt(format!("table {id}: the catalog has {what} of it, but not the table")))?;
    Ok(Arc::make_mut(table))
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
        let mut writer = NodeWriter::default();
        let mut answer = Ok(());
        now.tree.each_from(from.map(|from| &*from.0), |path, node| {
            if until.is_some_and(|until| in_tree_order(path, &until.0).is_ge()) {
                return false;
            }
            let write = |chunk: &mut Vec<u8>| {
                if chunk.is_empty() {
                    writer = NodeWriter::default();
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
    mut section: Section<'_, K>,
    then: &OrdMap<K, V>,
    now: &OrdMap<K, V>,
    pack: &mut Pack,
) -> Result<Chunks<K>>
where
    K: Ord + Clone + Serialize,
    V: PartialEq + Clone + Serialize,
{
    for item in then.diff(now) {
        match item {
            DiffItem::Add(key, _) | DiffItem::Remove(key, _) => section.touch(key),
            DiffItem::Update { old: (_, old), new: (key, new) } if old != new => section.touch(key),
            DiffItem::Update { .. } => {}
        }
    }
    section.write(pack, |from, until, cutter| {
        let items: Box<dyn Iterator<Item = (&K, &V)>> = match from {
            Some(from) => Box::new(now.range(from.clone()..)),
            None => Box::new(now.iter()),
        };
        for item in items.take_while(|(key, _)| until.is_none_or(|until| *key < until)) {
            cutter.item(
                || item.0.clone(),
                |chunk| {
                    let written = postcard::to_extend(&item, std::mem::take(chunk));
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
    use crate::base::{EntryId, Timestamp, Version, checksum_at};
    use crate::catalog::{Job, Pattern, Payload, TransactionRecord};

    /// Objects as in storage.
    #[derive(Default)]
    struct Objects(BTreeMap<Seq, Vec<u8>>);

    impl Objects {
        fn write(&mut self, now: &State, before: Option<(&Index, &State)>) -> (Index, usize) {
            let (index, parts, _) = Index::of(now, before, 16).unwrap();
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
            let job = Job {
                digest: u128::from(round),
                seq: state.seq,
                time: state.time,
                versions: Vec::new(),
                holds: vec![crate::base::SessionId(round)],
            };
            state.holds.jobs.insert(format!("job {:03}", round * 7 % 300), job);
            if round % 50 == 0 {
                state.holds.jobs.clear();
            }
            let name = |n: u64| format!("snapshot {}", n % 40);
            if !few {
                let pattern = Pattern::new("a/n*/**").unwrap();
                state.covers.remove(&name(round));
                state.covers.put(&name(round), pattern, TableId(round * 7), 3, state.seq);
                let path = Path::new(&format!("a/n1/{round}")).unwrap();
                state.covers.leave(TableId(rng.u64(1..2000)), Some((&path, Version(round))));
                state.covers.remove(&name(round * 7));
            }
            if round % 90 == 0 {
                (0..40).for_each(|n| drop(state.covers.remove(&name(n))));
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
            assert!(read.holds == state.holds);
            assert_eq!(index.uses & FEATURE_JOBS > 0, round % 50 > 0);
            assert_eq!(index.uses & FEATURE_COVERS > 0, !state.covers.is_empty());
            assert_eq!(read.covers, state.covers);
            // Jobs are none of it, however many there are.
            assert_eq!(index.holds, state.holds.without_jobs());
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
