//! The commit log: a segment, the mark next to it, the root of a shared log, a chunk that it names, a cell, an offer.

use std::sync::Arc;

use bytes::Bytes;
use drumlin::base::{EntryId, Seq, SessionId, TableId, Timestamp, checksum, checksum_at};
use drumlin::log::{
    ArchivedLog, Entry, FileLog, Movers, ObjectLog, Offer, OnLoss, ROOT_VERSION, ROOT_VERSION_CELL, ROOT_VERSION_ROLE,
    Remains, ReplicaLog,
};
use drumlin::storage::{BucketCell, Disk, FileStorage, LogCell, LogCells, SimBucket, SimDisk, Storage, names};

use crate::cursor::Cursor;
use crate::repair;
use crate::stores;

const SEGMENT: &str = "log/00000000000000000001.log";
/// The chunk of entries 1 to 3.
const CHUNK_LAST: u64 = 3;
const CHUNK_NONCE: u64 = 9;
/// A root that a replica has kept.
const ARCHIVED: &str = "archive/00000000000000000012-00000000000000000034-0000000000000009.old";

/// Repairs what precedes the records of `bytes`, called `name`, and the checksums of consecutive records.
fn repair(bytes: &mut [u8], name: &str) {
    if bytes.len() < 56 {
        return;
    }
    bytes[..8].copy_from_slice(b"DRUMLOG\0");
    bytes[8..12].copy_from_slice(&3_u32.to_le_bytes());
    let sum = checksum_at(&bytes[16..56], name, 0);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    repair_records(bytes, name, 56);
}

fn repair_records(bytes: &mut [u8], name: &str, mut at: usize) {
    while let Some(head) = bytes.get(at..at + 24) {
        let length = u32::from_le_bytes(head[..4].try_into().expect("4 bytes")) as usize;
        let Some(record) = bytes.get(at..at + 24 + length) else { break };
        let summed = [&record[..4], &record[8..], name.as_bytes(), &(at as u64).to_le_bytes()].concat();
        bytes[at + 4..at + 8].copy_from_slice(&checksum(&summed).to_le_bytes());
        at = (at + 24 + length).next_multiple_of(8);
    }
}

fn sealed_mark(synced: u64) -> Vec<u8> {
    let mut mark = [&b"DRUMSYNC"[..], &1_u32.to_le_bytes(), &[0; 4], &synced.to_le_bytes()].concat();
    let sum = checksum_at(&mark[16..], names::LOG_MARK, 0);
    mark[12..16].copy_from_slice(&sum.to_le_bytes());
    mark
}

fn disk_with(segment: &[u8], mark: Option<&[u8]>) -> SimDisk {
    let disk = SimDisk::in_memory();
    let file = |name: &str, bytes: &[u8]| disk.create(name).and_then(|file| file.write_at(0, bytes)).expect("a file");
    disk.make_dir(names::LOG).expect("a folder");
    file(SEGMENT, segment);
    if let Some(mark) = mark {
        file(names::LOG_MARK, mark);
    }
    disk
}

/// A segment, as read by followers, recovery and salvage. One byte says whether checksums are repaired and a loss is
/// accepted, another the value of the mark.
pub fn segment(bytes: &[u8]) {
    let mut cursor = Cursor(bytes);
    let (flags, synced) = (cursor.byte(), cursor.byte());
    let mut bytes = cursor.0.to_vec();
    if flags & 1 == 0 {
        repair(&mut bytes, SEGMENT);
    }
    let mark = sealed_mark(synced.into());
    let disk = disk_with(&bytes, (flags & 2 == 0).then_some(&mark));
    let _ = FileLog::read(&disk);
    read_remains(Arc::new(FileStorage::new(Arc::new(disk.clone()))));
    let loss = if flags & 4 == 0 { OnLoss::Refuse } else { OnLoss::Accept };
    if let Ok((log, opened)) = FileLog::open(Arc::new(disk.clone()), Default::default(), loss) {
        drop(log);
        let again = FileLog::read(&disk).expect("what was opened for writing can be read");
        assert_eq!(again.entries, opened.entries);
    }
}

/// Log segments of sound stores.
fn segments() -> Vec<Vec<u8>> {
    let all = [0, 1 << 16].map(|inline| stores::objects(&stores::folder(inline, 0)));
    let logs = all.into_iter().flatten().filter(|(name, _)| name.ends_with(".log"));
    logs.map(|(_, bytes)| bytes).collect()
}

/// Complete ones, truncated ones, and ones with fewer records, for each choice of what is accepted.
pub fn segment_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for log in segments() {
        let records = repair::records(&log, 56);
        let mut few = log[..56].to_vec();
        repair::append_records(&mut few, &records[..2.min(records.len())], SEGMENT);
        for (flags, content) in [(0, &log[..]), (2, &log[..]), (4, &log[..log.len() - 9]), (6, &few), (1, &few)] {
            // The first entry's number is that in the name.
            let mut content = content.to_vec();
            content[16..24].copy_from_slice(&1_u64.to_le_bytes());
            seeds.push([&[flags, 1][..], &content].concat());
        }
    }
    seeds
}

/// The mark, as it is and with its checksum repaired.
pub fn mark(bytes: &[u8]) {
    let mut header = vec![0; 56];
    header[16..24].copy_from_slice(&1_u64.to_le_bytes());
    // Two entries of one session, without effects.
    let entry = |seq: u64| [&seq.to_le_bytes()[..], &0_u64.to_le_bytes()[..7], &[1], &[0; 40], &[0, 0]].concat();
    repair::append_records(&mut header, &[entry(1), entry(2)], SEGMENT);
    repair(&mut header, SEGMENT);
    let mut repaired = bytes.to_vec();
    if let Some(summed) = bytes.get(16..) {
        repaired[12..16].copy_from_slice(&checksum_at(summed, names::LOG_MARK, 0).to_le_bytes());
    }
    for mark in [bytes, &repaired] {
        let disk = disk_with(&header, Some(mark));
        let read = FileLog::read(&disk);
        read_remains(Arc::new(FileStorage::new(Arc::new(disk))));
        // A mark that is too short is ignored.
        if mark.len() < 24 {
            assert_eq!(read.expect("a sound segment").entries.len(), 2);
        }
    }
}

/// Marks before, at and after the last entry.
pub fn mark_seeds() -> Vec<Vec<u8>> {
    [0, 1, 2, 3, u64::MAX].map(sealed_mark).into()
}

/// What a salvage reads of a log; a cell that it names is empty.
fn read_remains(storage: Arc<dyn Storage>) {
    let (cells, env) = (SimServer(SimBucket::new()), stores::env());
    let _ = Remains::read(&Movers { storage: &storage, cells: &cells, given: None, env: &env, retry: 1000 });
}

fn read_bucket(bucket: SimBucket) {
    read_remains(Arc::new(bucket.clone()));
    if let Ok((log, opened)) = ObjectLog::open(Arc::new(bucket), stores::env(), 1000, OnLoss::Refuse) {
        drop((log, opened));
    }
}

/// Repairs the root of a shared log, one that has no role, one, or one about a cell.
fn repair_root(root: &mut [u8], role: u8) {
    if root.len() >= 24 {
        let version = [ROOT_VERSION, ROOT_VERSION_ROLE, ROOT_VERSION_CELL][usize::from(role % 3)];
        root[..8].copy_from_slice(b"DRUMROOT");
        root[8..12].copy_from_slice(&version.to_le_bytes());
        let length = u64::from_le_bytes(root[16..24].try_into().expect("8 bytes"));
        if let Some(end) = usize::try_from(length).ok().and_then(|length| length.checked_add(24 + 7))
            && end < root.len() + 8
        {
            repair_records(root, names::ROOT, end / 8 * 8);
        }
        let sum = checksum_at(&root[16..], names::ROOT, 0);
        root[12..16].copy_from_slice(&sum.to_le_bytes());
    }
}

/// The root of a shared log. Its checksums are repaired unless the first byte is odd; the next two bits say whether it has a role.
pub fn root(bytes: &[u8]) {
    let mut cursor = Cursor(bytes);
    let flags = cursor.byte();
    let mut root = cursor.0.to_vec();
    if flags & 1 == 0 {
        repair_root(&mut root, flags >> 1 & 3);
    }
    let bucket = SimBucket::new();
    bucket.overwrite(names::ROOT, root);
    if let Ok(log) = ReplicaLog::open(Arc::new(bucket.clone()), stores::env(), 1000) {
        let _ = (log.read(), log.role().check());
    }
    read_bucket(bucket);
}

/// A root that a replica has kept, called as one is. Its checksums are repaired unless the first byte is odd.
pub fn archived(bytes: &[u8]) {
    let mut cursor = Cursor(bytes);
    let flags = cursor.byte();
    let mut archived = cursor.0.to_vec();
    if flags & 1 == 0 && archived.len() >= 24 {
        archived[..8].copy_from_slice(b"DRUMARCH");
        archived[8..12].copy_from_slice(&1_u32.to_le_bytes());
        let length = u64::from_le_bytes(archived[16..24].try_into().expect("8 bytes"));
        let end = usize::try_from(length).ok().and_then(|length| length.checked_add(24 + 7));
        if let Some(root) = end.and_then(|end| archived.get_mut(end / 8 * 8..)) {
            repair_root(root, flags >> 1 & 3);
        }
        let sum = checksum_at(&archived[16..], ARCHIVED, 0);
        archived[12..16].copy_from_slice(&sum.to_le_bytes());
    }
    if let Ok(archived) = ArchivedLog::decode(ARCHIVED, &archived.into()) {
        let again = archived.encode(ARCHIVED).expect("what was decoded");
        let again = ArchivedLog::decode(ARCHIVED, &again.into()).expect("what was encoded");
        assert!(again.left() == archived.left() && again.names().eq(archived.names()));
        assert_eq!((again.first(), again.last()), (archived.first(), archived.last()));
        let _ = archived.opened(&SimBucket::new(), &stores::env().pool);
    }
}

/// Kept roots: of a store, of a store with a role, of an empty log.
pub fn archived_seeds() -> Vec<Vec<u8>> {
    let head = postcard::to_stdvec(&(vec![3_u64, 7], vec![(1_u64, 2_u64)])).expect("numbers");
    let roots = [(0, sound_root()), (2, replica_root()), (0, repair::root(vec![0, 0, 0, 0, 1, 0, 0], &[], None))];
    roots
        .map(|(flags, root)| {
            let mut bytes = [&[0; 16][..], &(head.len() as u64).to_le_bytes(), &head].concat();
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            [&[flags][..], &bytes, &root].concat()
        })
        .into()
}

/// The root of a store that is a replica.
fn replica_root() -> Vec<u8> {
    let none: (Option<()>, Vec<u128>) = (None, Vec::new());
    let origin = (1_u128, None::<()>, 0_u64);
    let role = (1_u32, "s3://bucket/prefix", 9_u64, 30_u64, Some(12_u64), None::<u128>);
    let head = (0_u64, none.0, Vec::<(u64, u64, u64, u64)>::new(), none.1, origin, role);
    repair::root(postcard::to_stdvec(&head).expect("numbers"), &[], None)
}

fn sound_root() -> Vec<u8> {
    stores::bucket().content(names::ROOT).expect("a root").to_vec()
}

/// The root of a store, of an empty log, and of one with a chunk.
pub fn root_seeds() -> Vec<Vec<u8>> {
    // Numbers and lists that are empty, an id of the store, no parent, a stamp.
    let others =
        [(0, repair::root(vec![0, 0, 0, 0, 1, 0, 0], &[], None)), (0, root_of_chunk(500)), (2, replica_root())];
    let roots = [(0, sound_root())].into_iter().chain(others);
    roots.map(|(flags, root)| [&[flags][..], &root].concat()).collect()
}

fn root_of_chunk(bytes: usize) -> Vec<u8> {
    let none: (Option<()>, Vec<u128>) = (None, Vec::new());
    let origin = (1_u128, None::<()>, 0_u64);
    let head = (CHUNK_LAST, none.0, vec![(1_u64, CHUNK_LAST, CHUNK_NONCE, bytes as u64)], none.1, origin);
    repair::root(postcard::to_stdvec(&head).expect("numbers"), &[], None)
}

/// A chunk of a shared log, its checksums repaired unless the first byte is odd, and a sound root that names it.
pub fn chunk(bytes: &[u8]) {
    let mut cursor = Cursor(bytes);
    let flags = cursor.byte();
    let mut chunk = cursor.0.to_vec();
    let name = names::log_chunk(Seq(CHUNK_LAST), CHUNK_NONCE);
    if flags & 1 == 0 {
        repair(&mut chunk, &name);
    }
    let bucket = SimBucket::new();
    bucket.overwrite(names::ROOT, root_of_chunk(chunk.len()));
    bucket.overwrite(&name, chunk);
    read_bucket(bucket);
}

/// A chunk of the first entries of a store, one with too few, one with an end mark.
pub fn chunk_seeds() -> Vec<Vec<u8>> {
    let root = Bytes::from(sound_root());
    let length = u64::from_le_bytes(root[16..24].try_into().expect("8 bytes")) as usize;
    let mut records = repair::records(&root, (24 + length).next_multiple_of(8));
    records.truncate(CHUNK_LAST as usize);
    for (record, seq) in records.iter_mut().zip(1_u64..) {
        record[..8].copy_from_slice(&seq.to_le_bytes());
    }
    let name = names::log_chunk(Seq(CHUNK_LAST), CHUNK_NONCE);
    let chunk = |records: &[Vec<u8>]| {
        let mut bytes = vec![0; 56];
        bytes[16..24].copy_from_slice(&1_u64.to_le_bytes());
        repair::append_records(&mut bytes, records, &name);
        repair(&mut bytes, &name);
        [&[0][..], &bytes].concat()
    };
    let mut ended = records.clone();
    let mut end = vec![0; 16];
    end[15] = 2;
    ended.push(end);
    vec![chunk(&records), chunk(&records[..1]), chunk(&ended), chunk(&[])]
}

/// A server with cells, for which a bucket stands.
struct SimServer(SimBucket);

impl LogCells for SimServer {
    fn open(&self, _: &str, id: u128) -> drumlin::Result<Arc<dyn LogCell>> {
        Ok(Arc::new(BucketCell::new(Arc::new(self.0.clone()), id, stores::env())))
    }

    fn told(&self, address: &str) -> drumlin::Result<String> {
        Ok(address.to_owned())
    }
}

/// The rows of a cell: a head and what was added to it, each a byte that says what it is, its length (2 bytes) and its content.
/// Checksums are repaired unless the first bit of that byte is set; a head has the second.
pub fn cell(bytes: &[u8]) {
    let (bucket, server) = (SimBucket::new(), SimBucket::new());
    let (storage, cells, env): (Arc<dyn Storage>, _, _) =
        (Arc::new(bucket.client()), SimServer(server.clone()), stores::env());
    let movers = Movers { storage: &storage, cells: &cells, given: None, env: &env, retry: 1000 };
    ObjectLog::create_in_cell(&movers, "sim").expect("an empty bucket");
    drop(ObjectLog::find(&movers, OnLoss::Refuse, true).expect("just made"));
    let first = server.objects().pop().expect("a row").0;
    let folder = first.rsplit_once('/').expect("in a folder").0.to_owned();
    server.delete_many(&[first]);
    let mut cursor = Cursor(bytes);
    for number in 1..20_u64 {
        if cursor.0.is_empty() {
            break;
        }
        let flags = cursor.byte();
        let length = usize::from(cursor.byte()) | usize::from(cursor.byte()) << 8;
        let (content, rest) = cursor.0.split_at(length.min(cursor.0.len()));
        let (mut content, head) = (content.to_vec(), flags & 2 != 0);
        cursor.0 = rest;
        match (flags & 1 == 0, head) {
            (true, true) => repair_root(&mut content, flags >> 2 & 3),
            (true, false) => repair_records(&mut content, names::ROOT, 0),
            _ => {}
        }
        let row = [&u128::from(number).to_le_bytes()[..], &[u8::from(head)], &content].concat();
        server.overwrite(&format!("{folder}/{number:020}"), row);
    }
    if let Ok((log, opened)) = ObjectLog::find(&movers, OnLoss::Refuse, false) {
        drop((log, opened));
    }
}

/// The head of a store's log with two entries behind it, and one alone.
pub fn cell_seeds() -> Vec<Vec<u8>> {
    let row = |flags: u8, content: &[u8]| [&[flags], &(content.len() as u16).to_le_bytes()[..], content].concat();
    let empty = repair::root(vec![0, 0, 0, 0, 1, 0, 0], &[], None);
    let root = Bytes::from(sound_root());
    let length = u64::from_le_bytes(root[16..24].try_into().expect("8 bytes")) as usize;
    let records = repair::records(&root, (24 + length).next_multiple_of(8));
    let rows = records.iter().take(2).map(|record| {
        let mut bytes = Vec::new();
        repair::append_records(&mut bytes, std::slice::from_ref(record), names::ROOT);
        row(0, &bytes)
    });
    vec![[row(2, &empty)].into_iter().chain(rows).collect::<Vec<_>>().concat(), row(2, &sound_root())]
}

/// An entry that was handed in, with its checksums repaired.
pub fn offer(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if let Some(length) = bytes.get(4..8).and_then(|length| length.try_into().ok()) {
        let end = (u32::from_le_bytes(length) as usize).saturating_add(8);
        if let Some(record) = bytes.get(end..) {
            let mut record = record.to_vec();
            repair_records(&mut record, OFFER, 0);
            bytes.splice(end.., record);
        }
    }
    if let Some((sum, rest)) = bytes.split_first_chunk_mut::<4>() {
        *sum = checksum_at(rest, OFFER, 0).to_le_bytes();
    }
    if let Some(offer) = Offer::decode(&bytes.into()) {
        let again = Bytes::from(offer.encode().expect("it was decoded"));
        assert_eq!(Offer::decode(&again), Some(offer));
    }
}

/// What the checksums of offers are bound to.
const OFFER: &str = "offer-1";

/// One with tables, and one without.
pub fn offer_seeds() -> Vec<Vec<u8>> {
    let entry = Entry {
        seq: Seq(8),
        id: EntryId(77),
        prev: Some(EntryId(5)),
        session: SessionId(1),
        time: Timestamp(9),
        features: 0,
        payload: Bytes::from_static(b"rows"),
    };
    let of = |reads| Offer { base: Seq(7), reads, entry: entry.clone() }.encode().expect("a small one");
    vec![of(vec![TableId(3), TableId(300)]), of(Vec::new())]
}
