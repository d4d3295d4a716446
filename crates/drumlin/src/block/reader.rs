//! Reads row groups: the directory first, then the requested segments, neighbours in one request. Every byte is checked
//! before it is returned.
//!
//! Over a network, round trips are what reads cost, so requests are made together ([`BlockReader::fetch`]): a batch of
//! keys takes at most four rounds (directories, filters, keys, values of all row groups), a scan two for each window of
//! row groups (*ahead.rs*), a vacuum one for the small row groups of many tables. What is fetched goes into the cache,
//! checked, and the same code reads it from there as from a disk. A fetch is a hint of at most half the cache; the
//! thread that reads meets its errors.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::cache::{BlockCache, Cached};
use super::row_group::{EncodedRowGroup, row_group, salvaged_row_group, take_apart, verify_filter, verify_segment};
use super::{Address, CacheStat, ColumnEntry, Directory};
use crate::base::{BlockId, Error, ErrorKind, Metrics, Pool, Result};
use crate::storage::{Storage, names, owned};

/// A row group up to this size is read whole with its directory, in one request.
const WHOLE_BYTES_MAX: u64 = 256 << 10;
/// Segments this close together are read in one request. With what storage reads between the ranges that it is asked for, no more than twice
/// what is wanted and 64 KiB for each segment.
const GAP_BYTES_MAX: u64 = 24 << 10;
/// The maximum size of such a request: larger ones take less if they are made side by side.
const RUN_BYTES_MAX: u64 = 8 << 20;

/// Reads blocks through a cache.
pub struct BlockReader {
    storage: Arc<dyn Storage>,
    cache: BlockCache,
    missing: MissingBlock,
    metrics: Arc<Metrics>,
}

/// What of a row group, or of a layer of one, is to be brought into the cache.
pub enum Prefetch {
    /// What says where the rest is; of a small one, all.
    Directory(Address),
    /// The filter of its keys.
    Filter(Address, Arc<Directory>),
    /// Columns, by their places in the directory.
    Columns(Address, Arc<Directory>, Vec<usize>),
}

impl Prefetch {
    fn address(&self) -> &Address {
        match self {
            Self::Directory(address) | Self::Filter(address, _) | Self::Columns(address, ..) => address,
        }
    }
}

/// What it means if a block is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingBlock {
    /// Damage: blocks in use are never deleted behind this reader's back.
    Damage,
    /// The process that writes may have reclaimed it since this reader last looked.
    Reclaimed,
}

impl BlockReader {
    /// A reader whose cache holds up to `cache_bytes`.
    pub fn new(storage: Arc<dyn Storage>, cache_bytes: u64, missing: MissingBlock) -> Self {
        Self { storage, cache: BlockCache::new(cache_bytes), missing, metrics: Arc::default() }
    }

    /// The same, which counts what is read in `metrics`.
    #[must_use]
    pub fn counting(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// What is read counts here.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What it means to this reader if a block is missing.
    pub fn missing(&self) -> MissingBlock {
        self.missing
    }

    /// Statistics of the cache.
    pub fn cache(&self) -> CacheStat {
        self.cache.stat()
    }

    /// The directory of a row group. A small row group's segments go into the cache with it.
    pub fn directory(&self, address: &Address) -> Result<Arc<Directory>> {
        let at = address.offset + address.segment_bytes;
        if let Some(Cached::Directory(directory)) = self.cache.get(address.block, at) {
            return Ok(directory);
        }
        let bytes = self.read(address, std::slice::from_ref(&directory_range(address)))?.remove(0);
        self.keep_directory(address, &bytes)
    }

    /// Brings small row groups into the cache, up to `bytes_max` bytes of them, with one request per block.
    pub fn warm(&self, pool: &Pool, addresses: impl Iterator<Item = Address>, bytes_max: u64) -> Result<()> {
        let mut blocks: BTreeMap<BlockId, Vec<Address>> = BTreeMap::new();
        let mut bytes = 0;
        for address in addresses {
            let at = address.offset + address.segment_bytes;
            if address.bytes() > WHOLE_BYTES_MAX || self.cache.peek(address.block, at).is_some() {
                continue;
            }
            bytes += address.bytes();
            if bytes > bytes_max {
                break;
            }
            blocks.entry(address.block).or_default().push(address);
        }
        let fetch = |(_, mut addresses): (BlockId, Vec<Address>)| {
            addresses.sort_unstable_by_key(|address| address.offset);
            addresses.dedup();
            let range = |address: &Address| address.offset..address.offset + address.bytes();
            let parts = self.read(&addresses[0], &addresses.iter().map(range).collect::<Vec<_>>())?;
            addresses.iter().zip(parts).try_for_each(|(address, bytes)| self.keep_whole(address, &bytes).map(drop))
        };
        pool.map(blocks.into_iter().collect(), fetch).map(drop)
    }

    /// Whether [`BlockReader::fetch`] does anything: over a network, one round of many requests is better than many of one. Without
    /// a cache there is nowhere to keep what they bring.
    pub fn fetches(&self) -> bool {
        self.storage.is_remote() && self.fetch_bytes_max() > 0
    }

    /// How much [`BlockReader::fetch`] may bring, so that nothing of it is displaced before it is used.
    pub fn fetch_bytes_max(&self) -> u64 {
        self.cache.bytes_max() / 2
    }

    /// Over a network, brings parts of row groups into the cache, all with one round of requests. A hint: what fails is left out, and
    /// the thread that reads it meets the error; more than [`BlockReader::fetch_bytes_max`] is not fetched at all.
    pub fn fetch(&self, wanted: impl IntoIterator<Item = Prefetch>) {
        if !self.fetches() {
            return;
        }
        let mut blocks: BTreeMap<BlockId, (Vec<Prefetch>, Vec<Range<u64>>)> = BTreeMap::new();
        for (wanted, range) in wanted.into_iter().flat_map(|wanted| self.missing_of(wanted)) {
            let (parts, ranges) = blocks.entry(wanted.address().block).or_default();
            parts.push(wanted);
            ranges.push(range);
        }
        let request = |(block, (parts, ranges))| ((names::block(block), ranges), parts);
        let (requests, parts): (Vec<_>, Vec<_>) = blocks.into_iter().map(request).unzip();
        let bytes: u64 = requests.iter().flat_map(|(_, ranges)| ranges).map(|range| range.end - range.start).sum();
        if requests.is_empty() || bytes > self.fetch_bytes_max() {
            return;
        }
        let answers = self.storage.get_ranges_of(&requests);
        for ((parts, (_, ranges)), answer) in parts.iter().zip(&requests).zip(answers) {
            for ((part, range), bytes) in parts.iter().zip(ranges).zip(answer.into_iter().flatten()) {
                // A hint, as said.
                let _ = self.keep(part, range.start, &bytes);
            }
        }
    }

    /// The same for the directories of row groups.
    pub fn fetch_directories<'a>(&self, addresses: impl IntoIterator<Item = &'a Address>) {
        self.fetch(addresses.into_iter().map(|address| Prefetch::Directory(*address)));
    }

    /// How many bytes would be read for it, since they are not in the cache.
    pub fn absent_bytes(&self, wanted: Prefetch) -> u64 {
        self.missing_of(wanted).iter().map(|(_, range)| range.end - range.start).sum()
    }

    /// What of it is not in the cache yet, and the ranges that hold that.
    fn missing_of(&self, wanted: Prefetch) -> Vec<(Prefetch, Range<u64>)> {
        let absent = |address: &Address, offset: u64| self.cache.peek(address.block, offset).is_none();
        match wanted {
            Prefetch::Directory(address) => match absent(&address, address.offset + address.segment_bytes) {
                true => vec![(wanted, directory_range(&address))],
                false => Vec::new(),
            },
            Prefetch::Filter(address, ref directory) => match directory.filter {
                Some(filter) if absent(&address, filter.offset) => {
                    vec![(wanted, filter.offset..filter.offset + filter.bytes)]
                }
                _ => Vec::new(),
            },
            Prefetch::Columns(address, directory, mut columns) => {
                columns.retain(|index| absent(&address, directory.columns[*index].offset));
                let part = |(range, columns)| (Prefetch::Columns(address, directory.clone(), columns), range);
                runs(&directory, columns).into_iter().map(part).collect()
            }
        }
    }

    /// Checks what was fetched from `start` on, and puts it into the cache.
    fn keep(&self, wanted: &Prefetch, start: u64, bytes: &Bytes) -> Result<()> {
        match wanted {
            Prefetch::Directory(address) => self.keep_directory(address, bytes).map(drop),
            Prefetch::Filter(address, directory) => {
                let filter = directory.filter.as_ref().expect("it was asked for");
                verify_filter(address, filter, bytes)?;
                self.cache.insert(address.block, filter.offset, Cached::Segment(bytes.clone()));
                Ok(())
            }
            Prefetch::Columns(address, directory, columns) => columns
                .iter()
                .try_for_each(|index| self.keep_segment(address, directory, *index, bytes, start).map(drop)),
        }
    }

    /// Checks the segment of a column, which lies in `bytes` of the block from `start` on, and puts it into the cache.
    fn keep_segment(
        &self,
        address: &Address,
        directory: &Directory,
        index: usize,
        bytes: &Bytes,
        start: u64,
    ) -> Result<Bytes> {
        let column = &directory.columns[index];
        let from = (column.offset - start) as usize;
        let segment = bytes.slice(from..from + column.bytes as usize);
        verify_segment(address, directory, index, &segment)?;
        let segment = owned(segment, bytes.len());
        self.cache.insert(address.block, column.offset, Cached::Segment(segment.clone()));
        Ok(segment)
    }

    /// Checks a directory, or a whole small row group, and puts it into the cache.
    fn keep_directory(&self, address: &Address, bytes: &Bytes) -> Result<Arc<Directory>> {
        if directory_range(address).start == address.offset {
            return self.keep_whole(address, bytes);
        }
        let directory = Arc::new(Directory::decode(bytes, address)?);
        let at = address.offset + address.segment_bytes;
        self.cache.insert(address.block, at, Cached::Directory(directory.clone()));
        Ok(directory)
    }

    /// Splits a whole row group into its parts and puts them in the cache.
    fn keep_whole(&self, address: &Address, bytes: &Bytes) -> Result<Arc<Directory>> {
        let (directory, segments, _) = take_apart(address, bytes)?;
        for (column, segment) in directory.columns.iter().zip(segments) {
            self.cache.insert(address.block, column.offset, Cached::Segment(owned(segment, bytes.len())));
        }
        let directory = Arc::new(directory);
        self.cache.insert(address.block, address.offset + address.segment_bytes, Cached::Directory(directory.clone()));
        Ok(directory)
    }

    /// Has storage fetch what will be requested: the directory of a row group or, once that is known, its `columns`.
    pub fn prefetch(&self, address: &Address, columns: &[usize]) {
        let at = address.offset + address.segment_bytes;
        let name = names::block(address.block);
        let Some(Cached::Directory(directory)) = self.cache.peek(address.block, at) else {
            let directory = at..at + u64::from(address.directory_bytes);
            return self.storage.prefetch(&name, std::slice::from_ref(&directory));
        };
        let columns = columns.iter().filter_map(|index| directory.columns.get(*index));
        let missing = columns.filter(|column| self.cache.peek(address.block, column.offset).is_none());
        let ranges: Vec<Range<u64>> = missing.map(|column| column.offset..column.offset + column.bytes).collect();
        if !ranges.is_empty() {
            self.storage.prefetch(&name, &ranges);
        }
    }

    /// The segments of `columns` (indexes into the directory), in that order.
    pub fn segments(&self, address: &Address, directory: &Directory, columns: &[usize]) -> Result<Vec<Bytes>> {
        let mut found: Vec<Option<Bytes>> = columns
            .iter()
            .map(|&index| match self.cache.get(address.block, directory.columns[index].offset) {
                Some(Cached::Segment(bytes)) => Some(bytes),
                _ => None,
            })
            .collect();
        let missing = columns.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(index, _)| *index);
        let runs = runs(directory, missing.collect());
        if !runs.is_empty() {
            let (ranges, runs): (Vec<Range<u64>>, Vec<Vec<usize>>) = runs.into_iter().unzip();
            let mut read = BTreeMap::new();
            for ((range, run), bytes) in ranges.iter().zip(runs).zip(self.read(address, &ranges)?) {
                for index in run {
                    read.insert(index, self.keep_segment(address, directory, index, &bytes, range.start)?);
                }
            }
            for (index, found) in columns.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
                *found = read.get(index).cloned();
            }
        }
        Ok(found.into_iter().map(|bytes| bytes.expect("every missing segment was read")).collect())
    }

    /// The filter of a row group's keys, if it has one.
    pub fn filter(&self, address: &Address, directory: &Directory) -> Result<Option<Bytes>> {
        let Some(filter) = directory.filter else { return Ok(None) };
        if let Some(Cached::Segment(bytes)) = self.cache.get(address.block, filter.offset) {
            return Ok(Some(bytes));
        }
        let range = filter.offset..filter.offset + filter.bytes;
        let bytes = self.read(address, std::slice::from_ref(&range))?.remove(0);
        verify_filter(address, &filter, &bytes)?;
        self.cache.insert(address.block, filter.offset, Cached::Segment(bytes.clone()));
        Ok(Some(bytes))
    }

    /// Whether [`BlockReader::derived`] would find its result in the cache.
    pub fn has_derived(&self, address: &Address) -> bool {
        let at = address.offset + address.segment_bytes + 1;
        matches!(self.cache.peek(address.block, at), Some(Cached::Derived(..)))
    }

    /// What `make` derives from a row group, with its size in bytes; from the cache if it is there. A row group has one
    /// such thing.
    pub fn derived<T: Any + Send + Sync>(
        &self,
        address: &Address,
        make: impl FnOnce() -> Result<(T, u64)>,
    ) -> Result<Arc<T>> {
        // Within the directory: nothing else begins there.
        let at = address.offset + address.segment_bytes + 1;
        if let Some(Cached::Derived(derived, _)) = self.cache.get(address.block, at)
            && let Ok(derived) = derived.downcast::<T>()
        {
            return Ok(derived);
        }
        let (made, bytes) = make()?;
        let made = Arc::new(made);
        self.cache.insert(address.block, at, Cached::Derived(made.clone(), bytes));
        Ok(made)
    }

    /// Reads and checks every byte of a row group from storage, bypassing the cache.
    pub fn verify(&self, address: &Address) -> Result<Directory> {
        let bytes = self.read(address, std::slice::from_ref(&whole(address)))?.remove(0);
        Ok(take_apart(address, &bytes)?.0)
    }

    /// The row groups at `addresses`, all of one block, as they were before they were placed; read and checked,
    /// bypassing the cache.
    pub fn row_groups(&self, addresses: &[Address]) -> Result<Vec<EncodedRowGroup>> {
        let Some(first) = addresses.first() else { return Ok(Vec::new()) };
        let ranges: Vec<Range<u64>> = addresses.iter().map(whole).collect();
        addresses.iter().zip(self.read(first, &ranges)?).map(|(address, bytes)| row_group(address, &bytes)).collect()
    }

    /// The row group at `address`. Its filter may be damaged, and is then left out.
    pub fn row_group_for_salvage(&self, address: &Address) -> Result<EncodedRowGroup> {
        let bytes = self.read(address, std::slice::from_ref(&whole(address)))?.remove(0);
        salvaged_row_group(address, &bytes)
    }

    fn read(&self, address: &Address, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let name = names::block(address.block);
        self.storage.get_ranges(&name, ranges).map_err(|e| match (e.kind(), self.missing) {
            (ErrorKind::NotFound, MissingBlock::Damage) => Error::corrupt(format!("{name}: the block is missing")),
            (ErrorKind::NotFound, MissingBlock::Reclaimed) => {
                Error::snapshot_expired(format!("{name} was reclaimed by another process; read again"))
            }
            _ => e,
        })
    }
}

/// The segments of columns, those that are close together in one range.
fn runs(directory: &Directory, mut columns: Vec<usize>) -> Vec<(Range<u64>, Vec<usize>)> {
    columns.sort_by_key(|index| directory.columns[*index].offset);
    columns.dedup();
    let mut runs: Vec<(Range<u64>, Vec<usize>)> = Vec::new();
    for index in columns {
        let ColumnEntry { offset, bytes, .. } = directory.columns[index];
        match runs.last_mut() {
            Some((range, run))
                if offset <= range.end + GAP_BYTES_MAX
                    && (offset + bytes).saturating_sub(range.start) <= RUN_BYTES_MAX =>
            {
                range.end = range.end.max(offset + bytes);
                run.push(index);
            }
            _ => runs.push((offset..offset + bytes, vec![index])),
        }
    }
    runs
}

/// What is read for the directory of a row group: of a small one all, since that takes no longer.
fn directory_range(address: &Address) -> Range<u64> {
    let all = whole(address);
    if address.bytes() <= WHOLE_BYTES_MAX { all } else { all.start + address.segment_bytes..all.end }
}

/// The range of a row group, including its directory.
fn whole(address: &Address) -> Range<u64> {
    address.offset..address.offset + address.bytes()
}
