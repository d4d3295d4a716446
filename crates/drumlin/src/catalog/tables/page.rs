//! A page: the records of some tables, in the order of their ids, compressed, and what must be known of them without
//! decoding them.
//!
//! ```text
//! u32 LE: bytes of the rest before it was compressed | an LZ4 block:
//!   postcard Vec<(id, bytes, figures)>, then the records end to end: postcard (TableState, Instants, Option<Past>),
//!   and Indexes, if the table has had any or a layout, and StoredLayout, if it has one
//! ```

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::base::{BlockId, Error, Result, TableId, Timestamp};
use crate::table::{Indexes, Instants, Past, StoredLayout, TableState};

/// What is known of a table without decoding it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableSummary {
    pub versions: u64,
    pub groups: u64,
    /// Bytes that the newest version does not show.
    pub history_bytes: u64,
    /// When the next of its versions expires, as retention was when the page was written.
    pub due: Option<Timestamp>,
    /// Whether it has rows in memory, or a checkpoint would change it.
    pub waits: bool,
}

/// The same of all tables of a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub tables: u64,
    pub versions: u64,
    pub groups: u64,
    pub history_bytes: u64,
    pub due: Option<Timestamp>,
    pub waiting: Vec<TableId>,
}

impl Figures {
    fn add(&mut self, id: TableId, table: &TableSummary) {
        self.tables += 1;
        self.versions += table.versions;
        self.groups += table.groups;
        self.history_bytes += table.history_bytes;
        self.due = self.due.into_iter().chain(table.due).min();
        self.waiting.extend(table.waits.then_some(id));
    }
}

/// Tables from `first` on, up to the next page's.
#[derive(Clone, Debug)]
pub struct Page {
    pub first: TableId,
    pub figures: Figures,
    /// As stored.
    pub bytes: Bytes,
    /// The blocks that its tables name, once they were looked for.
    blocks: Arc<OnceLock<Box<[BlockId]>>>,
}

/// A page's table: its place among the records.
#[derive(Clone, Debug)]
pub struct PageTable {
    pub id: TableId,
    pub figures: TableSummary,
    place: Range<usize>,
}

/// A page that is no longer compressed.
#[derive(Debug)]
pub struct Unpacked {
    pub tables: Vec<PageTable>,
    bytes: Vec<u8>,
}

/// Compresses the contents of a page.
pub fn pack_page(contents: &[u8]) -> Vec<u8> {
    let mut bytes = (contents.len() as u32).to_le_bytes().to_vec();
    bytes.extend(lz4_flex::block::compress(contents));
    bytes
}

/// The contents of a page; `Corrupt` if they cannot be had.
pub fn unpack_page(bytes: &[u8]) -> Result<Vec<u8>> {
    let (length, packed) = bytes.split_first_chunk().ok_or_else(|| Error::corrupt("it is too short"))?;
    let length = u32::from_le_bytes(*length) as usize;
    // A byte of LZ4 stands for at most 255.
    if length > packed.len().saturating_mul(255) {
        return Err(Error::corrupt("it has an impossible length"));
    }
    lz4_flex::block::decompress(packed, length).map_err(|e| Error::corrupt(e.to_string()))
}

impl Page {
    pub fn new(first: TableId, figures: Figures, bytes: Bytes) -> Self {
        Self { first, figures, bytes, blocks: Arc::default() }
    }

    /// Its tables, unless they are known to name none of `blocks`.
    pub fn tables_naming(&self, blocks: &BTreeSet<BlockId>) -> Result<Vec<Arc<TableState>>> {
        if self.blocks.get().is_some_and(|known| !known.iter().any(|block| blocks.contains(block))) {
            return Ok(Vec::new());
        }
        let tables = self.tables()?;
        let named = || tables.iter().flat_map(|table| table.addresses()).map(|address| address.block);
        self.blocks.get_or_init(|| named().collect::<BTreeSet<BlockId>>().into_iter().collect());
        Ok(tables)
    }

    /// The page as it was before it was compressed.
    pub fn unpack(&self) -> Result<Unpacked> {
        let damaged = |what: &dyn std::fmt::Display| {
            Error::corrupt(format!("the catalog's page of the tables from {} on: {what}", self.first))
        };
        let bytes = unpack_page(&self.bytes).map_err(|e| damaged(&e.message()))?;
        let (entries, rest) =
            postcard::take_from_bytes::<Vec<(TableId, u64, TableSummary)>>(&bytes).map_err(|e| damaged(&e))?;
        let mut end = bytes.len() - rest.len();
        let mut tables = Vec::with_capacity(entries.len());
        let mut figures = Figures::default();
        for (id, length, own) in entries {
            let begin = end;
            end = usize::try_from(length).ok().and_then(|length| begin.checked_add(length)).unwrap_or(usize::MAX);
            if end > bytes.len() || tables.last().is_some_and(|last: &PageTable| last.id >= id) || id < self.first {
                return Err(damaged(&"its tables are not in order, or reach past its end"));
            }
            figures.add(id, &own);
            tables.push(PageTable { id, figures: own, place: begin..end });
        }
        if end != bytes.len() || figures != self.figures {
            return Err(damaged(&"its content does not match the index"));
        }
        Ok(Unpacked { tables, bytes })
    }
}

impl Page {
    /// All of its tables.
    pub fn tables(&self) -> Result<Vec<Arc<TableState>>> {
        let unpacked = self.unpack()?;
        unpacked.tables.iter().map(|packed| unpacked.table(packed)).collect()
    }
}

impl Unpacked {
    /// A table of this page.
    pub fn table(&self, packed: &PageTable) -> Result<Arc<TableState>> {
        #[cfg(test)]
        super::tests::DECODED.set(super::tests::DECODED.get() + 1);
        let bad = |what: &dyn std::fmt::Display| Error::corrupt(format!("table {}: {what}", packed.id));
        let record =
            postcard::take_from_bytes::<(TableState, Instants, Option<Past>)>(&self.bytes[packed.place.clone()]);
        let ((mut table, instants, past), rest) = record.map_err(|e| bad(&e))?;
        let (indexes, rest) = match rest {
            [] => (Indexes::default(), rest),
            _ => postcard::take_from_bytes(rest).map_err(|e| bad(&e))?,
        };
        let (layout, rest) = match rest {
            [] => (None, rest),
            _ => postcard::take_from_bytes::<StoredLayout>(rest)
                .map(|(layout, rest)| (Some(Arc::new(layout)), rest))
                .map_err(|e| bad(&e))?,
        };
        if table.id != packed.id || !rest.is_empty() {
            return Err(bad(&"its record belongs to another table, or is too long"));
        }
        table.instants = Arc::new(instants);
        table.indexes = Arc::new(indexes);
        table.layout = layout;
        past.map_or(Ok(()), |past| past.give(&mut table))?;
        table.check()?;
        if (table.versions.len() as u64, table.groups.len() as u64) != (packed.figures.versions, packed.figures.groups)
        {
            return Err(bad(&"it has other versions or row groups than its page says"));
        }
        if !table.parts.is_empty() && !packed.figures.waits {
            return Err(bad(&"it has rows in memory that its page does not know of"));
        }
        Ok(Arc::new(table))
    }

    pub fn find(&self, id: TableId) -> Result<Option<Arc<TableState>>> {
        let at = self.tables.binary_search_by_key(&id, |packed| packed.id).ok();
        at.map(|at| self.table(&self.tables[at])).transpose()
    }
}

/// A table of a page.
type At<'a> = (&'a Unpacked, &'a PageTable);

/// Walks the tables of those pages that are not the same in both lists.
struct Walk<'a> {
    pages: std::iter::Peekable<std::vec::IntoIter<&'a Page>>,
    page: Option<Unpacked>,
    at: usize,
}

impl<'a> Walk<'a> {
    /// The pages of `own` that are not in `others` with the same bytes. Both are ordered by their first tables.
    fn new(own: &'a [Page], others: &[Page]) -> Self {
        let same = |page: &Page| {
            let found = others.binary_search_by_key(&page.first, |other| other.first);
            found.is_ok_and(|at| page.bytes == others[at].bytes)
        };
        let pages: Vec<&Page> = own.iter().filter(|page| !same(page)).collect();
        Self { pages: pages.into_iter().peekable(), page: None, at: 0 }
    }

    /// Unpacks the next page if this one is through.
    fn load(&mut self) -> Result<()> {
        while self.page.as_ref().is_none_or(|page| self.at >= page.tables.len()) {
            let Some(page) = self.pages.next() else {
                self.page = None;
                return Ok(());
            };
            (self.page, self.at) = (Some(page.unpack()?), 0);
        }
        Ok(())
    }

    fn peek(&self) -> Option<At<'_>> {
        self.page.as_ref().and_then(|page| Some((page, page.tables.get(self.at)?)))
    }
}

/// Calls `found` with each table whose records in two lists of pages have not the same bytes, in order, until it returns
/// `true`; whether it did. Two pages are unpacked at a time, and those that are in both lists not at all.
pub fn differing(
    a: &[Page],
    b: &[Page],
    mut found: impl FnMut(Option<At<'_>>, Option<At<'_>>) -> Result<bool>,
) -> Result<bool> {
    let (mut a, mut b) = (Walk::new(a, b), Walk::new(b, a));
    loop {
        a.load()?;
        b.load()?;
        let (ours, theirs) = (a.peek(), b.peek());
        let order = match (ours, theirs) {
            (None, None) => return Ok(false),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((_, x)), Some((_, y))) => x.id.cmp(&y.id),
        };
        let (ours, theirs) = (ours.filter(|_| order.is_le()), theirs.filter(|_| order.is_ge()));
        let same =
            ours.zip(theirs).is_some_and(|((p, x), (q, y))| p.bytes[x.place.clone()] == q.bytes[y.place.clone()]);
        if !same && found(ours, theirs)? {
            return Ok(true);
        }
        a.at += usize::from(order.is_le());
        b.at += usize::from(order.is_ge());
    }
}

/// Writes pages.
pub struct PageWriter<'a> {
    /// A page is closed once it holds this many bytes.
    page_bytes: usize,
    /// What is to be said of a table.
    describe: &'a dyn Fn(&TableState) -> TableSummary,
    entries: Vec<(TableId, u64, TableSummary)>,
    figures: Figures,
    records: Vec<u8>,
    done: Vec<Page>,
}

impl<'a> PageWriter<'a> {
    pub fn new(page_bytes: usize, describe: &'a dyn Fn(&TableState) -> TableSummary) -> Self {
        let (entries, records, done) = Default::default();
        Self { page_bytes, describe, entries, figures: Figures::default(), records, done }
    }

    /// Adds a table.
    pub fn add(&mut self, table: &Arc<TableState>) -> Result<()> {
        self.make_room();
        let before = self.records.len();
        let record = (&**table, &*table.instants, Past::of(table));
        let encode = |mut records: Vec<u8>| {
            records = postcard::to_extend(&record, records)?;
            // What is not there at the end is not written.
            if !table.indexes.is_empty() || table.layout.is_some() {
                records = postcard::to_extend(&*table.indexes, records)?;
            }
            match &table.layout {
                Some(layout) => postcard::to_extend(&**layout, records),
                None => Ok(records),
            }
        };
        self.records = encode(std::mem::take(&mut self.records)).map_err(|e: postcard::Error| {
            Error::invalid("the catalog could not be encoded").with_source(e.to_string())
        })?;
        self.entry(table.id, self.records.len() - before, (self.describe)(table));
        Ok(())
    }

    /// Adds a table as it is in a page.
    pub fn copy(&mut self, packed: &PageTable, page: &Unpacked) {
        self.make_room();
        self.records.extend_from_slice(&page.bytes[packed.place.clone()]);
        self.entry(packed.id, packed.place.len(), packed.figures);
    }

    fn make_room(&mut self) {
        if self.records.len() >= self.page_bytes {
            self.cut();
        }
    }

    fn entry(&mut self, id: TableId, bytes: usize, figures: TableSummary) {
        self.figures.add(id, &figures);
        self.entries.push((id, bytes as u64, figures));
    }

    /// Bytes of the page that is being written; 0 if there is none.
    pub fn open_bytes(&self) -> usize {
        self.records.len()
    }

    /// Ends the page that is being written.
    pub fn cut(&mut self) {
        let Some((first, ..)) = self.entries.first() else { return };
        let first = *first;
        let mut all = postcard::to_stdvec(&self.entries).expect("numbers can be encoded");
        all.append(&mut self.records);
        self.entries.clear();
        self.done.push(Page::new(first, std::mem::take(&mut self.figures), pack_page(&all).into()));
    }

    /// The pages written since the last call.
    pub fn take(&mut self) -> Vec<Page> {
        std::mem::take(&mut self.done)
    }
}
