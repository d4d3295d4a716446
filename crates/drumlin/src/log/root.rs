//! The root object of a shared log: everything is reached from here, and it is replaced as a whole. It holds the newest
//! entries itself while they take little, the names of the chunks that hold the older ones, and that of the newest
//! catalog snapshot.
//!
//! ```text
//! root, little-endian
//!   0   8  magic "DRUMROOT"
//!   8   4  format version (6, 7 if it has a role, or 8 if that is about a log in a cell; 5 is read)
//!  12   4  CRC32C of bytes 16.. continued over the object's name and offset 0
//!  16   8  length of the head
//!  24   -  head, postcard, padded with zeros to a multiple of 8
//!   -   -  the newest entries, as records of a log segment
//!
//! chunk: as a log segment whose header names no catalog snapshot
//! ```

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::frame::{Body, Header, LogRecord};
use super::origin::{Origin, Point, RESTORE, other_store};
use super::{Base, Entry, EntryList, Opened, frame};
use crate::base::{EntryId, Error, ErrorKind, Result, Seq, checksum_at};
use crate::storage::names;

const MAGIC: &[u8; 8] = b"DRUMROOT";
/// Version of the root, and so of a store in a bucket.
pub const ROOT_VERSION: u32 = 6;
/// The version that has a [`Role`].
pub const ROOT_VERSION_ROLE: u32 = 7;
/// The version that has a role about a log in a cell.
pub const ROOT_VERSION_CELL: u32 = 8;
/// The version that has no [`Added`].
const ROOT_VERSION_MIN: u32 = 5;
const FIXED_BYTES: usize = 24;
/// The numbers of commits are below this.
const SEQ_END: u64 = 1 << 56;
/// The number of newest entries whose ids are kept, so that a process that got no answer to a put can find out its result
/// even after the entry has left the log: 8 KiB, which last for half a minute of commits as fast as a bucket takes them.
const RECENT: usize = 512;

/// An object with older entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Its first entry.
    pub first: Seq,
    /// Its last entry.
    pub last: Seq,
    /// Random, so that no two puts have the same name.
    pub nonce: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

impl Chunk {
    /// The object's name.
    pub fn name(&self) -> String {
        names::log_chunk(self.last, self.nonce)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    seq: Seq,
    base: Option<Base>,
    chunks: Vec<Chunk>,
    recent: Vec<EntryId>,
}

/// What the head has since version 6, after the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Added {
    origin: Origin,
    stamp: u64,
}

/// Who may write a store. The head has it since version 7, after the rest, if it is not the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Every process that opens it.
    #[default]
    Written,
    /// Only the process that brings over what is committed in another store, of the same history.
    Replica {
        /// Where that store is, as the process was told.
        of: String,
        /// Random: the process that took it over last.
        owner: u64,
        /// How long what has left the store is kept, so that earlier commits can be restored, in microseconds.
        keep_micros: u64,
        /// The last commit that it takes over, if it is to be a store of its own then.
        until: Option<Seq>,
        /// The id that it gets once its source was ended for it.
        by: Option<u128>,
    },
    /// Nobody: a replica took its place.
    Ended {
        /// The id that the replica has then.
        by: u128,
    },
    /// Every process that opens it, in another place: the log is in a cell. What the root says beside this is what the log had at some
    /// time.
    InCell {
        /// The cell.
        cell: u128,
        /// Where its server is, without what is secret.
        address: String,
        /// Whether the cell has taken over. Before that it may be empty, and the log begins with what the root says.
        begun: bool,
    },
    /// Every process that opens it, in another place: the log was in this cell, and the root of the store has it again.
    Returned,
}

impl Role {
    /// Fails for good if the log is in another place.
    pub fn check_here(&self) -> Result<()> {
        let place = match self {
            Self::InCell { address, .. } => format!("to {address}"),
            Self::Returned => "back to the store".to_owned(),
            Self::Written | Self::Replica { .. } | Self::Ended { .. } => return Ok(()),
        };
        Err(Error::moved(format!("the log of the store was moved {place}; open the store again")))
    }

    /// Fails if the store is not written as others are.
    pub fn check(&self) -> Result<()> {
        let what = match self {
            Self::Written => return Ok(()),
            Self::InCell { .. } | Self::Returned => return self.check_here(),
            Self::Replica { of, .. } => format!(
                "the store is a replica of {of}, and shows what is committed there; open it for reading only, or make it a store of \
                 its own with `drumlin promote`"
            ),
            Self::Ended { by } => format!(
                "the store was ended when a replica of it, now store {by:032x}, took its place; open that one, or this one for reading \
                 only; `drumlin promote` makes it a store of its own again"
            ),
        };
        Err(Error::invalid(what))
    }
}

/// What the root holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Root {
    /// Who may write it.
    pub role: Role,
    /// Which history this is.
    pub origin: Origin,
    /// Random in each put, so that no two roots have the same bytes, and none the tag of another.
    pub stamp: u64,
    /// The last entry.
    pub seq: Seq,
    /// The newest catalog snapshot.
    pub base: Option<Base>,
    /// Where the older entries are, in order.
    pub chunks: Vec<Chunk>,
    /// The ids of the newest entries, whether they are in the log or not, in order.
    recent: Vec<EntryId>,
    /// The newest entries, after those of the chunks.
    pub entries: EntryList,
}

/// What the root says about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryStatus {
    /// It is in the log.
    There,
    /// It is not: its number belongs to another entry, or to none yet.
    NotThere,
    /// It is too old to know.
    Unknown,
}

impl Root {
    /// The id of the last entry, or what stands for it before the first. `None`: it is not known.
    pub fn last_id(&self) -> Option<EntryId> {
        match self.seq {
            Seq(0) => Some(self.origin.first()),
            _ => self.recent.last().copied(),
        }
    }

    /// The last entry.
    pub fn point(&self) -> Option<Point> {
        Some(Point { store: self.origin.store, seq: self.seq, entry: self.last_id()? })
    }

    /// Whether `next` continues what this one is; `None` if that cannot be told, because too much lies between the two.
    pub fn continues(&self, next: &Root) -> Result<Option<()>> {
        let corrupt =
            |what: String| Err(Error::other_history(ErrorKind::Corrupt, format!("{}: {what}; {RESTORE}", names::ROOT)));
        let known = self.origin.store;
        if known != 0 && next.origin.store != known {
            return match next.origin.store {
                0 => corrupt("it was replaced by an older one that an earlier build wrote".into()),
                _ => Err(other_store(known, &next.origin)),
            };
        }
        if next.seq < self.seq {
            return corrupt(format!("it went back from commit {} to commit {}", self.seq, next.seq));
        }
        let snapshot = |root: &Root| root.base.map_or(Seq(0), |base| base.seq);
        if snapshot(next) < snapshot(self) {
            let (from, to) = (snapshot(self), snapshot(next));
            return corrupt(format!("it went back from the catalog snapshot of commit {from} to that of commit {to}"));
        }
        let Some(id) = self.last_id().filter(|_| self.seq.0 > 0) else { return Ok(Some(())) };
        match next.tells(self.seq, id) {
            EntryStatus::There => Ok(Some(())),
            EntryStatus::Unknown => Ok(None),
            EntryStatus::NotThere => corrupt(format!("commit {} is not the one that was read before", self.seq)),
        }
    }

    /// A copy with `entry` added, in memory only.
    pub fn with(&self, entry: &Entry) -> Self {
        let mut next = self.clone();
        next.push(entry);
        next
    }

    /// Adds an entry, in memory only.
    pub fn push(&mut self, entry: &Entry) {
        self.seq = entry.seq;
        self.recent.push(entry.id);
        let old = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..old);
        self.entries.push(entry.clone());
    }

    /// Bytes of the entries that the root itself holds.
    pub fn inline_bytes(&self) -> usize {
        self.entries.bytes()
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> u64 {
        let chunks = self.chunks.iter().fold(0_u64, |sum, chunk| sum.saturating_add(chunk.bytes));
        chunks.saturating_add(self.inline_bytes() as u64)
    }

    /// A copy that names `base`, without the chunks that this makes unnecessary; also returns those chunks.
    pub fn rebase(&self, base: Base) -> (Self, Vec<Chunk>) {
        let mut next = self.clone();
        next.base = Some(base);
        next.entries = next.entries.since(base.from);
        let (gone, kept) = next.chunks.into_iter().partition(|chunk| chunk.last < base.from);
        next.chunks = kept;
        (next, gone)
    }

    /// Whether the entry with this number is the one with this id.
    pub fn tells(&self, seq: Seq, id: EntryId) -> EntryStatus {
        if seq > self.seq {
            return EntryStatus::NotThere;
        }
        let back = usize::try_from(self.seq.0 - seq.0).unwrap_or(usize::MAX);
        match self.recent.len().checked_sub(back + 1).and_then(|at| self.recent.get(at)) {
            Some(there) if *there == id => EntryStatus::There,
            Some(_) => EntryStatus::NotThere,
            None => EntryStatus::Unknown,
        }
    }

    /// The number of the entry with this id, if it is one of the newest.
    pub fn number_of(&self, id: EntryId) -> Option<Seq> {
        let back = self.recent.iter().rev().position(|there| *there == id)?;
        Some(Seq(self.seq.0 - back as u64))
    }

    /// Whether the ids of all entries after `base` are known.
    pub fn tells_after(&self, base: Seq) -> bool {
        self.seq.0 <= base.0.saturating_add(self.recent.len() as u64)
    }

    /// Its bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let Self { role, origin, stamp, seq, base, chunks, recent, .. } = self.clone();
        // A store gets an id with the first write of this build.
        let version = match (&role, origin.store) {
            (Role::Written, 0) => ROOT_VERSION_MIN,
            (Role::Written, _) => ROOT_VERSION,
            (Role::InCell { .. } | Role::Returned, _) => ROOT_VERSION_CELL,
            _ => ROOT_VERSION_ROLE,
        };
        let head = postcard::to_stdvec(&Head { seq, base, chunks, recent }).and_then(|head| match version {
            ROOT_VERSION_MIN => Ok(head),
            ROOT_VERSION => postcard::to_extend(&Added { origin, stamp }, head),
            _ => postcard::to_extend(&role, postcard::to_extend(&Added { origin, stamp }, head)?),
        });
        let head =
            head.map_err(|e| Error::invalid("the log's root could not be encoded").with_source(e.to_string()))?;
        let mut out = Vec::with_capacity(FIXED_BYTES + head.len() + self.inline_bytes() + 64);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(head.len() as u64).to_le_bytes());
        out.extend_from_slice(&head);
        out.resize(frame::align(out.len()), 0);
        encode_entries(self.entries.iter(), names::ROOT, &mut out)?;
        let sum = checksum_at(&out[16..], names::ROOT, 0);
        out[12..16].copy_from_slice(&sum.to_le_bytes());
        Ok(out)
    }

    /// Reads and checks it.
    pub fn decode(bytes: &Bytes) -> Result<Self> {
        let corrupt = |what: &str| Error::corrupt(format!("{}: {what}", names::ROOT));
        let fixed = bytes.get(..FIXED_BYTES).ok_or_else(|| corrupt("it ends within its header"))?;
        if &fixed[..8] != MAGIC {
            return Err(corrupt("it does not begin like the root of a log"));
        }
        let version = u32::from_le_bytes(fixed[8..12].try_into().expect("4 bytes"));
        if !(ROOT_VERSION_MIN..=ROOT_VERSION_CELL).contains(&version) {
            let known = format!("{ROOT_VERSION_MIN} to {ROOT_VERSION_CELL}");
            return Err(Error::unsupported(format!(
                "{}: it has format {version}, and this build reads formats {known}; open it with the version of \
                 drumlin that wrote it",
                names::ROOT
            )));
        }
        if checksum_at(&bytes[16..], names::ROOT, 0).to_le_bytes() != fixed[12..16] {
            return Err(corrupt("the checksum does not match"));
        }
        let length = u64::from_le_bytes(fixed[16..24].try_into().expect("8 bytes"));
        let end = usize::try_from(length).ok().and_then(|length| length.checked_add(FIXED_BYTES));
        let head = end
            .and_then(|end| bytes.get(FIXED_BYTES..end))
            .ok_or_else(|| corrupt("it ends within its list of chunks"))?;
        let decode = || {
            let (first, rest) = postcard::take_from_bytes::<Head>(head)?;
            let (added, rest) = match version {
                ROOT_VERSION_MIN => (Added::default(), rest),
                _ => postcard::take_from_bytes(rest)?,
            };
            let role = if version >= ROOT_VERSION_ROLE { postcard::from_bytes(rest)? } else { Role::Written };
            Ok::<_, postcard::Error>((first, added, role))
        };
        let (Head { seq, base, chunks, recent }, Added { origin, stamp }, role) =
            decode().map_err(|e| corrupt(&format!("its list of chunks cannot be decoded: {e}")))?;
        let entries = decode_entries(bytes, names::ROOT, frame::align(FIXED_BYTES + head.len()))?.into_iter().collect();
        let root = Self { role, origin, stamp, seq, base, chunks, recent, entries };
        root.check()?;
        Ok(root)
    }

    /// The snapshot named by a damaged root, if its head can be decoded; to be checked by its index.
    pub fn base_of_damaged(bytes: &[u8]) -> Option<Base> {
        let length = u64::from_le_bytes(bytes.get(16..FIXED_BYTES)?.try_into().ok()?);
        let end = usize::try_from(length).ok()?.checked_add(FIXED_BYTES)?;
        postcard::from_bytes::<Head>(bytes.get(FIXED_BYTES..end)?).ok()?.base
    }

    /// The root of a log with what another one has, whose last entry is `last`.
    pub fn continuing(opened: Opened, last: EntryId) -> Result<Self> {
        let seq = opened.last();
        let mut recent: Vec<EntryId> = match (opened.entries.is_empty(), seq) {
            (true, Seq(0)) => Vec::new(),
            (true, _) => vec![last],
            (false, _) => opened.entries.iter().map(|entry| entry.id).collect(),
        };
        recent.drain(..recent.len().saturating_sub(RECENT));
        let Opened { base, entries, origin, .. } = opened;
        let root = Self { seq, base, recent, entries: entries.into_iter().collect(), ..Self::of(origin) };
        root.check().map(|()| root)
    }

    /// The same with a role, in memory only.
    pub fn with_role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// What is left of it in a place that the log has left: which entries it had, without what is in them.
    pub fn left(self) -> Self {
        let base = Base { seq: self.seq, from: self.seq.next(), offset: 0, bytes: 0, checksum: 0 };
        Self { base: (self.seq.0 > 0).then_some(base), chunks: Vec::new(), entries: EntryList::default(), ..self }
    }

    /// The root of a log without entries.
    pub fn of(origin: Origin) -> Self {
        Self { origin, ..Self::default() }
    }

    /// Checks that nothing is missing between the snapshot and the last entry.
    pub fn check(&self) -> Result<()> {
        let corrupt = |what: String| Err(Error::corrupt(format!("{}: {what}", names::ROOT)));
        if self.seq.0 >= SEQ_END || self.base.is_some_and(|base| base.seq.0 >= SEQ_END || base.from.0 > SEQ_END) {
            return corrupt("the number of a commit is too large".into());
        }
        if let Some(base) = &self.base
            && (base.seq > self.seq || base.from > base.seq.next() || base.from.0 == 0)
        {
            return corrupt("its catalog snapshot does not match its entries".into());
        }
        let from = self.base.map_or(Seq(1), |base| base.from);
        let mut next = None;
        let spans = self.chunks.iter().map(|chunk| (chunk.first, chunk.last));
        for (first, last) in spans.chain(self.entries.iter().map(|entry| (entry.seq, entry.seq))) {
            if first.0 == 0
                || last.0 >= SEQ_END
                || last < first
                || next.is_some_and(|next| next != first)
                || (next.is_none() && first > from)
            {
                return corrupt(format!("entries {first} to {last} do not follow the ones before them"));
            }
            next = Some(last.next());
        }
        match next.unwrap_or(from) == self.seq.next() {
            true => Ok(()),
            false => corrupt(format!("its entries end before {}", self.seq)),
        }
    }
}

/// Appends entries as records of the object `name`.
pub fn encode_entries<'a>(entries: impl IntoIterator<Item = &'a Entry>, name: &str, out: &mut Vec<u8>) -> Result<()> {
    for entry in entries {
        let record = LogRecord { seq: entry.seq, synced: Seq(0), body: Body::Entry(entry.clone()) };
        let bytes = frame::encode_record(&record, name, out.len() as u64)?;
        out.extend_from_slice(&bytes);
    }
    Ok(())
}

/// The entries whose records begin at `offset` of the object `name`.
pub fn decode_entries(bytes: &Bytes, name: &str, mut offset: usize) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    while offset < bytes.len() {
        match frame::decode_record(bytes, name, offset) {
            Some((LogRecord { body: Body::Entry(entry), .. }, behind)) => {
                entries.push(entry);
                offset = behind;
            }
            _ => return Err(Error::corrupt(format!("{name}: the record at offset {offset} is damaged"))),
        }
    }
    Ok(entries)
}

/// A chunk that holds `entries`, and its bytes.
pub fn encode_chunk(entries: &[Entry], nonce: u64) -> Result<(Chunk, Vec<u8>)> {
    let (first, last) = match entries {
        [first, .., last] => (first.seq, last.seq),
        [one] => (one.seq, one.seq),
        [] => return Err(Error::invalid("a chunk needs at least one entry")),
    };
    let mut chunk = Chunk { first, last, nonce, bytes: 0 };
    let name = chunk.name();
    let mut out = frame::encode_header(&Header { first, base: None }, &name);
    encode_entries(entries, &name, &mut out)?;
    chunk.bytes = out.len() as u64;
    Ok((chunk, out))
}

/// Reads and checks a chunk.
pub fn decode_chunk(chunk: &Chunk, bytes: &Bytes) -> Result<Vec<Entry>> {
    let name = chunk.name();
    let header = frame::decode_header(bytes, &name)?;
    let entries = decode_entries(bytes, &name, frame::HEADER_BYTES)?;
    let follows = entries.iter().zip(chunk.first.0..).all(|(entry, seq)| entry.seq.0 == seq);
    let whole = entries.len() as u64 == (chunk.last.0 - chunk.first.0) + 1;
    match header.first == chunk.first && follows && whole {
        true => Ok(entries),
        false => Err(Error::corrupt(format!("{name}: it does not contain entries {} to {}", chunk.first, chunk.last))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{SessionId, Timestamp};

    fn entry(seq: u64, bytes: usize) -> Entry {
        let (id, payload) = (EntryId(u128::from(seq) * 7), Bytes::from(vec![seq as u8; bytes]));
        let prev = seq.is_multiple_of(2).then(|| EntryId(u128::from(seq - 1) * 7));
        Entry { seq: Seq(seq), id, prev, session: SessionId(1), time: Timestamp(seq as i64), features: 0, payload }
    }

    fn sample() -> Root {
        let mut root = Root::default();
        for seq in 1..=100 {
            root = root.with(&entry(seq, seq as usize % 13));
        }
        let spilled: Vec<Entry> = root.entries.iter().take(90).cloned().collect();
        let (chunk, _) = encode_chunk(&spilled, 5).unwrap();
        root.chunks.push(chunk);
        root.entries = root.entries.since(Seq(91));
        let base = Base { seq: Seq(60), from: Seq(50), offset: 16, bytes: 20, checksum: 3 };
        root.rebase(base).0
    }

    #[test]
    fn what_is_encoded_is_read_back_and_any_damage_is_reported() {
        let root = sample();
        let bytes = Bytes::from(root.encode().unwrap());
        assert_eq!(Root::decode(&bytes).unwrap(), root);
        let (chunk, content) = encode_chunk(&[entry(7, 3), entry(8, 0)], 1).unwrap();
        assert_eq!(decode_chunk(&chunk, &content.clone().into()).unwrap(), [entry(7, 3), entry(8, 0)]);
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 0x20;
            assert!(Root::decode(&damaged.into()).is_err(), "byte {at}");
            assert!(Root::decode(&bytes.slice(..at)).is_err(), "cut at {at}");
        }
        for at in 0..content.len() {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            // Zeros that pad a record are ignored.
            let read = decode_chunk(&chunk, &damaged.into());
            assert!(read.is_err() || read.unwrap() == [entry(7, 3), entry(8, 0)], "byte {at}");
            assert!(decode_chunk(&chunk, &content[..at].to_vec().into()).is_err(), "cut at {at}");
        }
        let other = Chunk { nonce: 2, ..chunk };
        assert!(decode_chunk(&other, &content.into()).is_err(), "another chunk's bytes");
    }

    #[test]
    fn what_became_of_an_entry_is_known_or_said_to_be_unknown() {
        let root = sample();
        assert_eq!(root.tells(Seq(100), EntryId(700)), EntryStatus::There);
        assert_eq!(root.tells(Seq(40), EntryId(280)), EntryStatus::There);
        assert_eq!(root.tells(Seq(40), EntryId(281)), EntryStatus::NotThere);
        assert_eq!(root.tells(Seq(101), EntryId(707)), EntryStatus::NotThere);
        let later = (101..=RECENT as u64 + 22).fold(root.clone(), |root, seq| root.with(&entry(seq, 1)));
        assert_eq!(later.tells(Seq(23), EntryId(161)), EntryStatus::There);
        assert_eq!(later.tells(Seq(22), EntryId(154)), EntryStatus::Unknown);
        assert_eq!(root.tells(Seq(1), EntryId(7)), EntryStatus::There);
    }

    #[test]
    fn a_root_without_an_id_is_one_of_an_earlier_build() {
        let root = sample();
        let bytes = root.encode().unwrap();
        assert_eq!(bytes[8], 5);
        assert_eq!(Root::decode(&bytes.into()).unwrap(), root);
        let parent = Some(Point { store: 8, seq: Seq(3), entry: EntryId(1) });
        let newer = Root { origin: Origin { store: 9, parent }, stamp: 4, ..root };
        let bytes = Bytes::from(newer.encode().unwrap());
        assert_eq!((bytes[8], Root::decode(&bytes).unwrap()), (6, newer.clone()));
        assert_ne!(Root { stamp: 5, ..newer.clone() }.encode().unwrap(), bytes);
        for at in 0..bytes.len() {
            assert!(Root::decode(&bytes.slice(..at)).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_root_continues_another_or_is_known_not_to() {
        let store = |store: u128, root: &Root| Root { origin: Origin { store, parent: None }, ..root.clone() };
        let old = sample();
        let known = store(1, &old);
        let later =
            |root: &Root, commits: u64| (101..=100 + commits).fold(root.clone(), |root, seq| root.with(&entry(seq, 1)));
        for next in [known.clone(), later(&known, 1), later(&known, 411)] {
            assert_eq!(known.continues(&next).unwrap(), Some(()));
            assert_eq!(old.continues(&next).unwrap(), Some(()), "it has an id from now on");
        }
        assert_eq!(known.continues(&later(&known, 512)).unwrap(), None, "too far");
        let other = Entry { id: EntryId(5), ..entry(101, 1) };
        let (ours, theirs) = (later(&known, 1), known.with(&other));
        let base =
            |root: &Root, seq: u64| Root { base: root.base.map(|base| Base { seq: Seq(seq), ..base }), ..root.clone() };
        for (next, kind) in [
            (theirs, ErrorKind::Corrupt),
            (known.clone(), ErrorKind::Corrupt),
            (store(2, &ours), ErrorKind::Closed),
            (store(0, &ours), ErrorKind::Corrupt),
            (base(&ours, 59), ErrorKind::Corrupt),
        ] {
            let told = ours.continues(&next).unwrap_err();
            assert!(told.is_other_history() && told.kind() == kind, "{told}");
        }
        let new = store(3, &Root::default());
        assert_eq!(new.continues(&store(3, &later(&old, 1))).unwrap(), Some(()));
    }

    #[test]
    fn a_root_with_a_gap_is_refused() {
        let root = sample();
        let broken: [fn(&mut Root); 5] = [
            |root| root.seq = Seq(101),
            |root| {
                root.entries =
                    root.entries.iter().enumerate().filter(|(at, _)| *at != 3).map(|(_, e)| e.clone()).collect()
            },
            |root| root.chunks.clear(),
            |root| root.base = root.base.map(|base| Base { seq: Seq(200), ..base }),
            |root| root.chunks[0].last = Seq(89),
        ];
        for (at, change) in broken.into_iter().enumerate() {
            let mut root = root.clone();
            change(&mut root);
            let read = Root::decode(&root.encode().unwrap().into());
            assert_eq!(read.unwrap_err().kind(), crate::ErrorKind::Corrupt, "change {at}");
        }
    }
}
