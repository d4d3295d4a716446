//! Splits a store's objects into their meaningful parts, and reassembles them with correct lengths, places and checksums,
//! whatever the parts have become. So a change reaches the decoder behind a checksum.
//!
//! What cannot be repaired (a part that does not decode) stays as it is: the store must refuse it then.

use bytes::Bytes;
use drumlin::base::{checksum, checksum_at};
use drumlin::block::{Address, Directory};
use drumlin::catalog::{ChunkAddress, Index, TransactionRecord, pack_page, unpack_page};
use drumlin::log::Opened;
use drumlin::storage::names;

use crate::stores::Objects;

/// Bytes of a segment's header.
const HEADER: usize = 56;
/// Where a record's checksum ends.
const SUMMED: usize = 8;

/// The head of a root: seq, catalog snapshot, chunks, ids. What follows is kept as it is.
type Head = (u64, Option<(u64, u64, u64, u32, u32)>, Vec<(u64, u64, u64, u64)>, Vec<u128>);

/// A store split into parts.
#[derive(Clone)]
pub struct Parts {
    /// Log segments and chunks: name, header, records.
    logs: Vec<(String, Vec<u8>, Vec<Vec<u8>>)>,
    /// The root: head and records.
    root: Option<(Vec<u8>, Vec<Vec<u8>>)>,
    /// The newest catalog snapshot.
    catalog: Option<Catalog>,
    blocks: Vec<(String, Vec<u8>)>,
    /// The row groups in them.
    addresses: Vec<Address>,
    rest: Objects,
}

#[derive(Clone)]
struct Catalog {
    seq: u64,
    header: Vec<u8>,
    places: Vec<ChunkAddress>,
    /// Each with whether it is a page, which is compressed where it is stored.
    chunks: Vec<(bool, Vec<u8>)>,
    index: Vec<u8>,
}

impl Parts {
    /// Splits sound objects; `opened` is the content of their log.
    pub fn of(objects: &Objects, opened: &Opened) -> Self {
        let mut parts = Self {
            logs: Vec::new(),
            root: None,
            catalog: None,
            blocks: Vec::new(),
            addresses: addresses(objects, opened),
            rest: Objects::new(),
        };
        for (name, bytes) in objects {
            if name.starts_with("log/") && name.ends_with(".log") {
                parts.logs.push((name.clone(), bytes[..HEADER].to_vec(), records(bytes, HEADER)));
            } else if name == names::ROOT {
                let length = u64_at(bytes, 16) as usize;
                let head = bytes[24..24 + length].to_vec();
                parts.root = Some((head, records(bytes, (24 + length).next_multiple_of(8))));
            } else if name.starts_with("blocks/") {
                parts.blocks.push((name.clone(), bytes.clone()));
            } else if opened.base.is_some_and(|base| names::catalog(base.seq) == *name) {
                let base = opened.base.expect("just seen");
                let index = bytes[base.offset as usize..].to_vec();
                let decoded = Index::decode(&index).expect("a sound index");
                let own = |place: &&ChunkAddress| place.object == base.seq;
                // As they lie in the object.
                let mut places: Vec<ChunkAddress> = decoded.places().filter(own).copied().collect();
                places.sort_by_key(|place| place.offset);
                let pages: std::collections::BTreeSet<u64> = decoded.page_places().map(|place| place.offset).collect();
                let chunk = |place: &ChunkAddress| {
                    let stored = &bytes[place.offset as usize..(place.offset + place.bytes) as usize];
                    match pages.contains(&place.offset) {
                        true => (true, unpack_page(stored).expect("a sound page")),
                        false => (false, stored.to_vec()),
                    }
                };
                let chunks = places.iter().map(chunk).collect();
                parts.catalog = Some(Catalog { seq: base.seq.0, header: bytes[..16].to_vec(), places, chunks, index });
            } else {
                parts.rest.insert(name.clone(), bytes.clone());
            }
        }
        parts
    }

    /// Every part, for changing. Byte lists that may grow come with `true`.
    pub fn all(&mut self) -> Vec<(&mut Vec<u8>, bool)> {
        let mut all: Vec<(&mut Vec<u8>, bool)> = Vec::new();
        for (_, header, records) in &mut self.logs {
            all.push((header, false));
            all.extend(records.iter_mut().map(|record| (record, true)));
        }
        if let Some((head, records)) = &mut self.root {
            all.push((head, true));
            all.extend(records.iter_mut().map(|record| (record, true)));
        }
        if let Some(catalog) = &mut self.catalog {
            all.push((&mut catalog.index, true));
            all.extend(catalog.chunks.iter_mut().map(|(_, chunk)| (chunk, true)));
        }
        all.extend(self.blocks.iter_mut().map(|(_, block)| (block, false)));
        all.extend(self.rest.values_mut().map(|bytes| (bytes, true)));
        all
    }

    /// Reassembles everything.
    pub fn put_together(mut self) -> Objects {
        self.repair_blocks();
        let mut objects = std::mem::take(&mut self.rest);
        if let Some(mark) = objects.get_mut(names::LOG_MARK).filter(|mark| mark.len() == 24) {
            let sum = checksum_at(&mark[16..], names::LOG_MARK, 0);
            mark[12..16].copy_from_slice(&sum.to_le_bytes());
        }
        let named = self.catalog.take().map(|catalog| catalog.put_together(&mut objects));
        for (name, mut header, records) in self.logs {
            if let Some((seq, offset, bytes, sum)) = named
                && u64_at(&header, 24) == seq
            {
                header[32..40].copy_from_slice(&offset.to_le_bytes());
                header[40..44].copy_from_slice(&sum.to_le_bytes());
                header[44..48].copy_from_slice(&bytes.to_le_bytes());
            }
            let sum = checksum_at(&header[16..HEADER], &name, 0);
            header[12..16].copy_from_slice(&sum.to_le_bytes());
            append_records(&mut header, &records, &name);
            objects.insert(name, header);
        }
        if let Some((head, records)) = self.root {
            objects.insert(names::ROOT.into(), root(head, &records, named));
        }
        objects.extend(self.blocks);
        objects
    }

    /// Repairs checksums in blocks from the bottom up, and those of directories wherever they are stored.
    fn repair_blocks(&mut self) {
        for address in self.addresses.clone() {
            let name = names::block(address.block);
            let Some((_, block)) = self.blocks.iter_mut().find(|(other, _)| *other == name) else { continue };
            let (start, length) = ((address.offset + address.segment_bytes) as usize, address.directory_bytes as usize);
            let Some(bytes) = block.get(start..start + length) else { continue };
            if let Ok(mut directory) = postcard::from_bytes::<Directory>(bytes) {
                let sum = |offset: u64, bytes: u64| {
                    let range = usize::try_from(offset).ok()?..usize::try_from(offset.checked_add(bytes)?).ok()?;
                    Some(checksum_at(block.get(range)?, &name, offset))
                };
                for column in &mut directory.columns {
                    column.checksum = sum(column.offset, column.bytes).unwrap_or(column.checksum);
                }
                if let Some(filter) = &mut directory.filter {
                    filter.checksum = sum(filter.offset, filter.bytes).unwrap_or(filter.checksum);
                }
                let repaired = directory.encode();
                // A number may take more bytes than the previous one, and there is no room for that.
                if repaired.len() == length {
                    block[start..start + length].copy_from_slice(&repaired);
                }
            }
            let now = checksum_at(&block[start..start + length], &name, start as u64);
            if now != address.checksum {
                self.replace_checksum(address.checksum, now);
            }
        }
    }

    /// Replaces the checksum of a directory in the catalog and in commits, if it takes the same number of bytes.
    fn replace_checksum(&mut self, old: u32, new: u32) {
        let (Ok(old), Ok(new)) = (postcard::to_stdvec(&old), postcard::to_stdvec(&new)) else { return };
        let chunks = self.catalog.iter_mut().flat_map(|catalog| catalog.chunks.iter_mut().map(|(_, chunk)| chunk));
        let records = self.logs.iter_mut().flat_map(|(_, _, records)| records.iter_mut());
        let of_root = self.root.iter_mut().flat_map(|(_, records)| records.iter_mut());
        for bytes in chunks.chain(records).chain(of_root) {
            let found = bytes.windows(old.len()).position(|window| window == old);
            if let Some(at) = found.filter(|_| old.len() == new.len()) {
                bytes[at..at + new.len()].copy_from_slice(&new);
            }
        }
    }
}

impl Catalog {
    /// Lays out its chunks and its index; returns its seq, and the offset, length and checksum of the index.
    fn put_together(mut self, objects: &mut Objects) -> (u64, u64, u32, u32) {
        let name = names::catalog(drumlin::base::Seq(self.seq));
        let mut object = self.header;
        for (place, (is_page, chunk)) in self.places.into_iter().zip(self.chunks) {
            let chunk = &if is_page { pack_page(&chunk) } else { chunk };
            let offset = object.len() as u64;
            let new = ChunkAddress {
                offset,
                bytes: chunk.len() as u64,
                checksum: checksum_at(chunk, &name, offset),
                ..place
            };
            if let (Ok(old), Ok(new)) = (postcard::to_stdvec(&place), postcard::to_stdvec(&new))
                && let Some(at) = self.index.windows(old.len()).position(|window| window == old)
            {
                self.index.splice(at..at + old.len(), new);
            }
            object.extend(chunk);
        }
        let offset = object.len() as u64;
        let sum = checksum_at(&self.index, &name, offset);
        object.extend(&self.index);
        objects.insert(name, object);
        (self.seq, offset, self.index.len() as u32, sum)
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Records, each without length and checksum.
pub fn records(bytes: &[u8], mut at: usize) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some(head) = bytes.get(at..at + 24) {
        let length = u32::from_le_bytes(head[..4].try_into().expect("4 bytes")) as usize;
        let Some(record) = bytes.get(at + SUMMED..at + 24 + length) else { break };
        records.push(record.to_vec());
        at = (at + 24 + length).next_multiple_of(8);
    }
    records
}

/// Appends records with their lengths and checksums. One that is too short for a record is extended to the minimum
/// length.
pub fn append_records(out: &mut Vec<u8>, records: &[Vec<u8>], name: &str) {
    for record in records {
        let offset = out.len() as u64;
        let mut record = record.clone();
        record.resize(record.len().max(16), 0);
        let mut summed = ((record.len() - 16) as u32).to_le_bytes().to_vec();
        summed.extend(&record);
        summed.extend(name.as_bytes());
        summed.extend(offset.to_le_bytes());
        out.extend(((record.len() - 16) as u32).to_le_bytes());
        out.extend(checksum(&summed).to_le_bytes());
        out.extend(record);
        out.resize(out.len().next_multiple_of(8), 0);
    }
}

/// A root of these parts. `named` is the new place of the index of the catalog snapshot.
pub fn root(mut head: Vec<u8>, records: &[Vec<u8>], named: Option<(u64, u64, u32, u32)>) -> Vec<u8> {
    if let (Some((seq, offset, bytes, sum)), Ok((decoded, rest))) = (named, postcard::take_from_bytes::<Head>(&head))
        && let Some(base) = decoded.1.filter(|base| base.0 == seq)
    {
        let decoded = (decoded.0, Some((base.0, base.1, offset, bytes, sum)), decoded.2, decoded.3);
        head = postcard::to_extend(&decoded, Vec::new()).map_or(head.clone(), |first| [&first, rest].concat());
    }
    let mut out = b"DRUMROOT".to_vec();
    out.extend(drumlin::log::ROOT_VERSION.to_le_bytes());
    out.extend([0; 4]);
    out.extend((head.len() as u64).to_le_bytes());
    out.extend(head);
    out.resize(out.len().next_multiple_of(8), 0);
    append_records(&mut out, records, names::ROOT);
    let sum = checksum_at(&out[16..], names::ROOT, 0);
    out[12..16].copy_from_slice(&sum.to_le_bytes());
    out
}

/// The addresses of all row groups of a sound store.
fn addresses(objects: &Objects, opened: &Opened) -> Vec<Address> {
    let mut state = drumlin::catalog::State::default();
    if let Some(base) = opened.base {
        let index = Index::decode(&objects[&names::catalog(base.seq)][base.offset as usize..]).expect("a sound index");
        let chunk = |place: &ChunkAddress| {
            let range = place.offset as usize..(place.offset + place.bytes) as usize;
            Bytes::copy_from_slice(&objects[&names::catalog(place.object)][range])
        };
        let chunks: Vec<Bytes> = index.places().map(chunk).collect();
        state = index.read(&chunks).expect("a sound catalog");
        state.restore().expect("a sound catalog");
    }
    for entry in opened.entries.iter().filter(|entry| opened.base.is_none_or(|base| entry.seq > base.seq)) {
        for transaction in TransactionRecord::decode(&entry.payload).expect("a sound commit") {
            state.apply(&transaction, entry.seq, entry.time).expect("a sound commit");
        }
    }
    let mut all: Vec<Address> = Vec::new();
    for table in state.tables() {
        all.extend(table.expect("a sound page").addresses());
    }
    all.sort_unstable();
    all.dedup();
    all
}
