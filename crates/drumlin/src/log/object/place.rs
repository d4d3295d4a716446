//! Where the root of a shared log is: an object beside the others, or a cell on a server.
//!
//! In a cell, entries are added one by one, and only a root that changes otherwise is put whole. Each of those is noted in the object,
//! too, which says where the cell is: so the store can be read to about that commit if the server is lost, and a server that was put
//! back to an older state is noticed.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::super::Entry;
use super::super::root::{Role, Root, decode_entries, encode_entries};
use crate::base::{EntryId, Error, ErrorKind, Result, Seq};
use crate::storage::{CellNews, CellRow, CellTurn, LogCell, Storage, Tag, WriteMode, names};

/// The root itself holds entries of up to this many bytes; more go to a chunk.
pub(super) const INLINE_BYTES_MAX: usize = 128 << 10;
/// In a cell, a chunk is made of the entries once they take this many bytes.
const FOLD_BYTES: usize = 512 << 10;
/// A larger entry goes to a chunk at once.
const ROW_BYTES_MAX: usize = 16 << 10;
/// How many offers are read at a time.
const OFFERS_MAX: usize = 256;
/// The witness is written with each commit whose number is a multiple of this: in a bucket, and where commits need no request to it.
const WITNESS_EVERY: u64 = 64;
const WITNESS_EVERY_IN_CELL: u64 = 1024;

/// What a process sees that has handed in an offer.
#[derive(Default)]
pub struct OfferTurn {
    /// The root and its tag, if it has changed.
    pub root: Option<(Root, Tag)>,
    /// Whether it is its turn to replace the root.
    pub leads: bool,
    /// The offers there are.
    pub offers: Vec<Bytes>,
}

/// Where a root is.
pub struct RootPlace {
    storage: Arc<dyn Storage>,
    /// The cell, and what the object says of it.
    cell: Option<(Role, Arc<dyn LogCell>)>,
}

impl RootPlace {
    /// It is an object.
    pub fn object(storage: Arc<dyn Storage>) -> Self {
        Self { storage, cell: None }
    }

    /// It is in a cell, of which the object says this.
    pub fn in_cell(storage: Arc<dyn Storage>, role: Role, cell: Arc<dyn LogCell>) -> Self {
        Self { storage, cell: Some((role, cell)) }
    }

    /// Whether a network may have repeated a put.
    pub fn is_remote(&self) -> bool {
        self.cell.is_some() || self.storage.is_remote()
    }

    /// Whether the witness is to tell of a commit.
    pub fn is_witnessed(&self, seq: Seq) -> bool {
        match (&self.cell, self.storage.is_remote()) {
            (Some(_), _) => seq.0.is_multiple_of(WITNESS_EVERY_IN_CELL),
            (None, true) => seq.0.is_multiple_of(WITNESS_EVERY),
            (None, false) => true,
        }
    }

    /// Whether the entries that the root itself holds must go to a chunk with its newest one.
    pub fn must_spill(&self, root: &Root) -> bool {
        match &self.cell {
            None => root.inline_bytes() > INLINE_BYTES_MAX,
            Some(_) => root.entries.last().is_some_and(|entry| entry.payload.len() > ROW_BYTES_MAX),
        }
    }

    /// Whether a chunk is to be made of entries, now that others were added to those of this many bytes.
    pub fn is_due(&self, before: usize, root: &Root) -> bool {
        // If that process ends before it is done, another one comes to the next multiple.
        self.cell.is_some() && root.inline_bytes() / FOLD_BYTES > before / FOLD_BYTES
    }

    /// Lets a turn go in which nothing is put.
    pub fn end_turn(&self) {
        if let Some((_, cell)) = &self.cell {
            cell.end_turn();
        }
    }

    /// Whether an entry that is added is put alone.
    pub fn takes_entries(&self) -> bool {
        self.cell.is_some()
    }

    /// What is put to replace a root by `next`; `added`: the entries that are put alone.
    pub fn row(&self, next: &Root, added: Option<&[Entry]>) -> Result<CellRow> {
        match added {
            Some(entries) => {
                let mut bytes = Vec::new();
                encode_entries(entries, names::ROOT, &mut bytes)?;
                Ok(CellRow::Added(bytes.into()))
            }
            None => Ok(CellRow::Head(next.encode()?.into())),
        }
    }

    /// Replaces the root whose tag is `known`, as [`Storage::put_if_match`] does, and deletes these offers if it did.
    pub fn put(&self, row: &CellRow, known: &Tag, offers: &[EntryId]) -> Result<Tag> {
        match (&self.cell, row) {
            (Some((_, cell)), row) => cell.put(row, Some(known), offers),
            (None, CellRow::Head(bytes) | CellRow::Added(bytes)) => {
                let tag = self.storage.put_if_match(names::ROOT, std::slice::from_ref(bytes), Some(known))?;
                self.withdraw(offers);
                Ok(tag)
            }
        }
    }

    /// Whether processes that race for it can be given turns.
    pub fn has_turns(&self) -> bool {
        self.cell.as_ref().is_some_and(|(_, cell)| cell.has_turns())
    }

    /// The root and its tag; `None` if it is still the known one.
    pub fn read(&self, known: Option<(&Root, &Tag)>) -> Result<Option<(Root, Tag)>> {
        self.read_as(known, false)
    }

    /// The same, if `in_turn` says so once it is this process's turn to put another one.
    pub fn read_as(&self, known: Option<(&Root, &Tag)>, in_turn: bool) -> Result<Option<(Root, Tag)>> {
        let Some((role, cell)) = &self.cell else { return read_root(&*self.storage, known.map(|(_, tag)| tag)) };
        let known_tag = known.map(|(_, tag)| tag);
        match if in_turn { cell.read_in_turn(known_tag) } else { cell.read(known_tag) } {
            Err(e) if e.kind() == ErrorKind::NotFound => self.left(role),
            news => Self::taken_in(&**cell, known, news?),
        }
    }

    /// Whether processes that wait can hand in what they want to add.
    pub fn takes_offers(&self) -> bool {
        self.cell.as_ref().map_or(self.storage.is_remote(), |(_, cell)| cell.takes_offers())
    }

    /// Whether it is a cell, which tells a process that has handed in an offer when its turn is; otherwise it takes one, by
    /// [`RootPlace::offers`].
    pub fn is_cell(&self) -> bool {
        self.cell.is_some()
    }

    /// Hands in an offer, `again` if it was before, and reads the root, after the turn of another process if the place gives turns.
    pub fn read_offering(
        &self,
        (root, tag): (&Root, &Tag),
        (id, offer): (EntryId, &Bytes),
        again: bool,
    ) -> Result<OfferTurn> {
        let Some((role, cell)) = &self.cell else {
            if !again {
                // If that fails, it is added in a turn of its writer.
                drop(self.storage.put(&names::offer(id), std::slice::from_ref(offer), WriteMode::Replace));
            }
            return Ok(OfferTurn { root: read_root(&*self.storage, Some(tag))?, ..OfferTurn::default() });
        };
        match cell.read_offering(tag, id, offer) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                Ok(OfferTurn { root: self.left(role)?, ..OfferTurn::default() })
            }
            turn => {
                let CellTurn { news, leads, offers } = turn?;
                Ok(OfferTurn { root: Self::taken_in(&**cell, Some((root, tag)), news)?, leads, offers })
            }
        }
    }

    /// The offers that are objects.
    pub fn offers(&self) -> Result<Vec<Bytes>> {
        let objects = self.storage.list(names::OFFERS)?.into_iter().take(OFFERS_MAX);
        let wanted: Vec<(String, Vec<Range<u64>>)> =
            objects.map(|object| (object.name, std::iter::once(0..object.bytes).collect())).collect();
        // One that another process has just deleted is no longer one.
        Ok(self.storage.get_ranges_of(&wanted).into_iter().flatten().flatten().collect())
    }

    /// Deletes offers. What is left of them is deleted by others.
    pub fn withdraw(&self, offers: &[EntryId]) {
        match &self.cell {
            Some((_, cell)) => cell.withdraw(offers),
            None if offers.is_empty() => {}
            None => {
                let names: Vec<String> = offers.iter().map(|id| names::offer(*id)).collect();
                drop(self.storage.delete_many(&names));
            }
        }
    }

    /// The root with what a cell has beside what is known; `None` if that is nothing.
    fn taken_in(cell: &dyn LogCell, known: Option<(&Root, &Tag)>, news: CellNews) -> Result<Option<(Root, Tag)>> {
        let whole = matches!(news, CellNews::All(..));
        let (mut root, rows, tag) = match news {
            CellNews::Same => return Ok(None),
            CellNews::Added(rows, tag) => {
                let (root, _) = known.ok_or_else(|| Error::corrupt("the log's cell has no head"))?;
                (root.clone(), rows, tag)
            }
            CellNews::All(head, rows, tag) => (Root::decode(&head)?, rows, tag),
        };
        for row in &rows {
            let damaged =
                || Error::corrupt(format!("{}: the row after commit {} is damaged", cell.address(), root.seq));
            let entries = decode_entries(row, names::ROOT, 0).map_err(|_| damaged())?;
            let follow = entries.iter().zip(root.seq.0 + 1..).all(|(entry, seq)| entry.seq.0 == seq);
            if entries.is_empty() || !follow {
                return Err(damaged());
            }
            entries.iter().for_each(|entry| root.push(entry));
        }
        if whole {
            root.check()?;
        }
        Ok(Some((root, tag)))
    }

    /// What the object says where the cell, of which it has said `role`, is gone: if the log is not there any more, what it has become
    /// since.
    fn left(&self, role: &Role) -> Result<Option<(Root, Tag)>> {
        let object = read_root(&*self.storage, None)?;
        let (root, tag) = object.ok_or_else(|| Error::unavailable("the root has no content"))?;
        match (&root.role, role) {
            (Role::InCell { cell, .. }, Role::InCell { cell: here, address, .. }) if cell == here => {
                let what = format!(
                    "the log of the store is not at {address}, where it was moved to: the server has another database, or was put back to \
                     an older state; restore it, or give the right address with 'log'"
                );
                Err(Error::other_history(ErrorKind::Corrupt, what))
            }
            _ => Ok(Some((root.with_role(Role::Returned), tag))),
        }
    }

    /// After a whole root was put, in a cell: notes it in the object, and deletes what came before it. If that fails, the next one
    /// does it.
    pub fn publish(&self, root: &Root, tag: &Tag) {
        let Some((role, cell)) = &self.cell else { return };
        let replaces = |there: &[u8]| match Root::decode(&Bytes::copy_from_slice(there)) {
            Ok(there) => {
                let newer = (there.seq, there.base.map(|base| base.seq)) < (root.seq, root.base.map(|base| base.seq));
                there.role == *role && newer
            }
            Err(_) => false,
        };
        if let Ok(bytes) = root.clone().with_role(role.clone()).encode() {
            drop(self.storage.note(names::ROOT, &bytes.into(), &replaces));
        }
        drop(cell.trim(tag));
    }

    /// Where the server of a cell is, and how many rows it has that are not needed any more.
    pub fn on_server(&self) -> Result<Option<(String, u64)>> {
        let Some((_, cell)) = &self.cell else { return Ok(None) };
        Ok(Some((cell.address().to_owned(), cell.remains()?)))
    }

    /// Deletes what a cell has before the whole root with this tag.
    pub fn trim(&self, tag: &Tag) -> Result<()> {
        self.cell.as_ref().map_or(Ok(()), |(_, cell)| cell.trim(tag))
    }
}

/// The root that is an object, and its tag; `None` if the tag is still `known`.
pub fn read_root(storage: &dyn Storage, known: Option<&Tag>) -> Result<Option<(Root, Tag)>> {
    let Some((bytes, tag)) = storage.get_tagged(names::ROOT, known)? else { return Ok(None) };
    Ok(Some((Root::decode(&bytes)?, tag)))
}
