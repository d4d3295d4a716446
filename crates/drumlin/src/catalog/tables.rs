//! The tables of a store: those in use decoded, all others in pages, as the catalog snapshot has them.
//!
//! A decoded table takes kilobytes, and a microsecond or more to decode; a table in a page some dozens of bytes. So a
//! store opens without decoding tables, a million of them in about a second, and holds decoded those that have changed
//! since its catalog snapshot, or that wait for something: rows in memory, or a vacuum that would change them. The next
//! snapshot puts them back into pages: see [`TableMap::packed_as`].
//!
//! Beside each page is what must be known of its tables without decoding them: how many there are, when a version
//! expires, what waits. So an ordinary checkpoint costs what changed. What reads all tables (a purge, a verification, a
//! vacuum with options of its own) decodes page by page and keeps none. Each table is checked whenever it is decoded;
//! that all tables agree with each other and with the ledger is checked when a store with few tables is opened, and by
//! a verification.

mod page;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use parking_lot::Mutex;

pub(super) use page::{Figures, Page, PageWriter, TableSummary};
use page::{PageTable, Unpacked};
pub use page::{pack_page, unpack_page};

use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Result, Seq, TableId};
use crate::table::TableState;

/// How many decoded tables and unpacked pages are remembered before the older half is forgotten.
const RECENT_TABLES: usize = 1024;
const RECENT_PAGES: usize = 4;

/// All tables of a store. A value: a copy is O(1).
#[derive(Clone, Debug, Default)]
pub struct TableMap {
    /// Decoded tables, and `None` for those that a page still has but that are gone.
    open: OrdMap<TableId, Option<Arc<TableState>>>,
    packed: Arc<Packed>,
    /// What all of them have together.
    totals: Totals,
    /// The last commit since which what the pages say of tables may not hold: it changed a retention, or a store was opened
    /// in which they said what was not so.
    pub(super) doubted: Option<Seq>,
}

/// Numbers of a store's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tables in the tree, in the trash, and held only by snapshots.
    pub tables: u64,
    /// Their listed versions.
    pub versions: u64,
    /// Their row groups.
    pub groups: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tables with {} versions and {} row groups", self.tables, self.versions, self.groups)
    }
}

impl Totals {
    pub(super) fn add(&mut self, table: &TableState) {
        self.tables += 1;
        self.versions += table.versions.len() as u64;
        self.groups += table.groups.len() as u64;
    }

    fn remove(&mut self, table: &TableState) {
        self.tables -= 1;
        self.versions -= table.versions.len() as u64;
        self.groups -= table.groups.len() as u64;
    }
}

impl TableMap {
    /// Tables that are all decoded.
    pub(super) fn of(tables: OrdMap<TableId, Arc<TableState>>) -> Self {
        let mut totals = Totals::default();
        tables.values().for_each(|table| totals.add(table));
        let open = tables.into_iter().map(|(id, table)| (id, Some(table))).collect();
        Self { open, totals, ..Self::default() }
    }

    /// The tables of a catalog snapshot's pages; those that wait for something are decoded.
    pub(super) fn of_pages(pages: Vec<Page>) -> Result<Self> {
        let figures = || pages.iter().map(|page| &page.figures);
        let totals = Totals {
            tables: figures().map(|figures| figures.tables).sum(),
            versions: figures().map(|figures| figures.versions).sum(),
            groups: figures().map(|figures| figures.groups).sum(),
        };
        let mut open = OrdMap::new();
        for page in pages.iter().filter(|page| !page.figures.waiting.is_empty()) {
            let unpacked = page.unpack()?;
            for id in &page.figures.waiting {
                open.insert(*id, unpacked.find(*id)?);
            }
        }
        Ok(Self { open, packed: Arc::new(Packed::new(pages)), totals, doubted: None })
    }

    /// A table; `Corrupt` if its page is damaged. O(log n), and if it is in a page and not remembered, the time that it
    /// takes to unpack that and to decode the table.
    pub fn get(&self, id: TableId) -> Result<Option<Arc<TableState>>> {
        match self.open.get(&id) {
            Some(table) => Ok(table.clone()),
            None => self.packed.get(id),
        }
    }

    /// A decoded table.
    pub fn get_open(&self, id: TableId) -> Option<&Arc<TableState>> {
        self.open.get(&id)?.as_ref()
    }

    /// The same, to write to.
    pub(super) fn get_open_mut(&mut self, id: TableId) -> Option<&mut Arc<TableState>> {
        self.open.get_mut(&id)?.as_mut()
    }

    /// The decoded tables: all that have rows in memory, and all that a checkpoint may change without being asked to do
    /// more than usual.
    pub fn open(&self) -> impl Iterator<Item = &Arc<TableState>> {
        self.open.values().flatten()
    }

    /// How many tables are decoded, or gone but still in a page. O(1).
    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// What all tables have together.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Puts a table in its place.
    pub(super) fn put(&mut self, table: TableState) -> Result<()> {
        let id = table.id;
        if let Some(old) = self.get(id)? {
            self.totals.remove(&old);
        }
        self.totals.add(&table);
        self.open.insert(id, Some(Arc::new(table)));
        Ok(())
    }

    pub(super) fn remove(&mut self, id: TableId) -> Result<()> {
        if let Some(old) = self.get(id)? {
            self.totals.remove(&old);
            match self.packed.page_of(id) {
                Some(_) => drop(self.open.insert(id, None)),
                None => drop(self.open.remove(&id)),
            }
        }
        Ok(())
    }

    /// Decodes a table for good, since something that its page says of it is about to change.
    pub(super) fn keep_open(&mut self, id: TableId) -> Result<()> {
        if !self.open.contains_key(&id)
            && let Some(table) = self.packed.get(id)?
        {
            self.open.insert(id, Some(table));
        }
        Ok(())
    }

    /// Decodes all tables for good.
    pub(super) fn open_all(&mut self) -> Result<()> {
        let all = self.iter().map(|table| table.map(|table| (table.id, table)));
        *self = Self::of(all.collect::<Result<_>>()?);
        Ok(())
    }

    /// All tables in the order of their ids; those in pages are decoded for the caller alone, a page at a time.
    pub fn iter(&self) -> impl Iterator<Item = Result<Arc<TableState>>> {
        self.read(|_| true)
    }

    /// All decoded tables, and those in pages of which `wanted` accepts the figures.
    pub(super) fn read(&self, wanted: impl Fn(&Figures) -> bool) -> impl Iterator<Item = Result<Arc<TableState>>> {
        let mut open = self.open.iter().peekable();
        let mut pages = self.packed.pages.iter().filter(move |page| wanted(&page.figures));
        let mut page: Option<(Unpacked, usize)> = None;
        std::iter::from_fn(move || {
            loop {
                let next = page.as_ref().and_then(|(page, at)| Some((page, page.tables.get(*at)?)));
                let Some((unpacked, next)) = next else {
                    page = match pages.next().map(Page::unpack) {
                        Some(Ok(unpacked)) => Some((unpacked, 0)),
                        Some(Err(e)) => return Some(Err(e)),
                        None => return open.find_map(|(_, table)| table.clone()).map(Ok),
                    };
                    continue;
                };
                let id = next.id;
                if let Some((_, table)) = open.next_if(|(open, _)| **open < id) {
                    match table {
                        Some(table) => return Some(Ok(table.clone())),
                        None => continue,
                    }
                }
                let found = match open.next_if(|(open, _)| **open == id) {
                    Some((_, table)) => table.clone().map(Ok),
                    None => Some(unpacked.table(next)),
                };
                page.as_mut().expect("it has a table").1 += 1;
                if found.is_some() {
                    return found;
                }
            }
        })
    }

    /// Calls `found` with each table that names one of `blocks`, in no order; `records` is how many of their records do, and the
    /// search ends with the last of these. It begins with decoded tables, then decodes page by page, the newest first, except
    /// those that are known from an earlier search to name none. So for what was written not long ago it costs that.
    pub(super) fn naming(
        &self,
        blocks: &BTreeSet<BlockId>,
        records: u64,
        mut found: impl FnMut(&TableState),
    ) -> Result<()> {
        let mut left = records;
        let mut look = |table: &Arc<TableState>| {
            let named = table.addresses().filter(|address| blocks.contains(&address.block)).count() as u64;
            if named > 0 {
                found(table);
            }
            left = left.saturating_sub(named);
            left > 0
        };
        let mut is_left = records > 0 && self.open().all(&mut look);
        let mut pages = self.packed.pages.iter().rev();
        while let Some(page) = if is_left { pages.next() } else { None } {
            let tables = page.tables_naming(blocks)?;
            is_left = tables.iter().filter(|table| !self.is_open(table.id)).all(&mut look);
        }
        Ok(())
    }

    /// What pages say of the tables that are also decoded or gone, and these.
    pub(super) fn replaced(&self) -> impl Iterator<Item = (Result<TableSummary>, Option<&Arc<TableState>>)> {
        self.open.iter().map(|(id, table)| {
            let packed = self.packed.figures_of(*id).map(Option::unwrap_or_default);
            (packed, table.as_ref())
        })
    }

    /// What its page says of a table.
    pub(super) fn figures_of(&self, id: TableId) -> Result<Option<TableSummary>> {
        self.packed.figures_of(id)
    }

    /// Whether what its page says of a table is what `describe` does.
    pub(super) fn says(&self, table: &TableState, describe: &dyn Fn(&TableState) -> TableSummary) -> Result<bool> {
        self.packed.says(table, describe)
    }

    /// Whether a table is decoded, or gone.
    pub(super) fn is_open(&self, id: TableId) -> bool {
        self.open.contains_key(&id)
    }

    /// Whether a table is known to be the same in both, or in neither. O(log n).
    pub(super) fn same_at(&self, other: &Self, id: TableId) -> bool {
        match (self.open.get(&id), other.open.get(&id)) {
            (Some(Some(a)), Some(Some(b))) => Arc::ptr_eq(a, b),
            (Some(None), Some(None)) => true,
            (None, None) => self.same_pages(other),
            _ => false,
        }
    }

    /// The pages' figures.
    pub(super) fn figures(&self) -> impl Iterator<Item = &Figures> {
        self.packed.pages.iter().map(|page| &page.figures)
    }

    /// Whether both are known to be the same. O(1).
    pub(super) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.packed, &other.packed) && self.open.ptr_eq(&other.open)
    }

    /// Whether both have the same pages.
    pub(super) fn same_pages(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.packed, &other.packed)
    }

    /// Calls `differs` with each table that may not be the same in both, until it returns `true`; whether it did. What both
    /// share is passed by: the same pages, pages with the same bytes, records with the same bytes, and tables that are the same
    /// `Arc`. Costs as much as differs, and a look at each page where the pages are not the same ones.
    pub(super) fn any_differs(
        &self,
        other: &Self,
        mut differs: impl FnMut(Option<&TableState>, Option<&TableState>) -> bool,
    ) -> Result<bool> {
        for item in self.open.diff(&other.open) {
            let (a, b) = match item {
                DiffItem::Add(id, b) => (self.packed.get(*id)?, b.clone()),
                DiffItem::Remove(id, a) => (a.clone(), other.packed.get(*id)?),
                DiffItem::Update { old: (_, a), new: (_, b) } => (a.clone(), b.clone()),
            };
            if (a.is_some() || b.is_some()) && differs(a.as_deref(), b.as_deref()) {
                return Ok(true);
            }
        }
        if self.same_pages(other) {
            return Ok(false);
        }
        // Tables that are decoded in one of them were seen above.
        let in_pages = |id: TableId| !self.open.contains_key(&id) && !other.open.contains_key(&id);
        page::differing(&self.packed.pages, &other.packed.pages, |a, b| {
            let id = a.or(b).map(|(_, record)| record.id);
            if !id.is_some_and(in_pages) {
                return Ok(false);
            }
            let table = |at: Option<(&Unpacked, &PageTable)>| at.map(|(page, record)| page.table(record)).transpose();
            let (a, b) = (table(a)?, table(b)?);
            Ok(differs(a.as_deref(), b.as_deref()))
        })
    }

    /// The ids of the tables that differ from those of `then`, which has the same pages, or of which the pages do not say what
    /// `describe` does: that depends on where they are, too.
    pub(super) fn changed_since(
        &self,
        then: &Self,
        describe: &dyn Fn(&TableState) -> TableSummary,
    ) -> Result<Vec<TableId>> {
        debug_assert!(self.same_pages(then));
        let changed = then.open.diff(&self.open).filter_map(|item| match item {
            DiffItem::Add(id, _) | DiffItem::Remove(id, _) => Some(*id),
            DiffItem::Update { old: (id, old), new: (_, new) } => (old != new).then_some(*id),
        });
        let mut changed: Vec<TableId> = changed.collect();
        for table in self.open() {
            if !self.says(table, describe)? {
                changed.push(table.id);
            }
        }
        Ok(changed)
    }

    /// Writes what the pages and the decoded tables have from `from` on, up to, but excluding, `until`; the former as they
    /// are. If `again`, they are decoded, and what is said of them is found out again.
    pub(super) fn write_range(
        &self,
        (from, until): (Option<TableId>, Option<TableId>),
        again: bool,
        writer: &mut PageWriter<'_>,
    ) -> Result<()> {
        let inside = |id: TableId| until.is_none_or(|until| id < until);
        let mut open = self.open.range(from.unwrap_or(TableId(0))..).take_while(|(id, _)| inside(**id)).peekable();
        let first = from.map_or(0, |from| self.packed.place_of(from).unwrap_or(0));
        for page in self.packed.pages[first..].iter().take_while(|page| inside(page.first)) {
            let unpacked = page.unpack()?;
            for packed in unpacked.tables.iter().filter(|packed| from.is_none_or(|from| from <= packed.id)) {
                if !inside(packed.id) {
                    break;
                }
                while let Some((_, table)) = open.next_if(|(id, _)| **id < packed.id) {
                    table.iter().try_for_each(|table| writer.add(table))?;
                }
                match open.next_if(|(id, _)| **id == packed.id) {
                    Some((_, table)) => table.iter().try_for_each(|table| writer.add(table))?,
                    None if again => writer.add(&unpacked.table(packed)?)?,
                    None => writer.copy(packed, &unpacked),
                }
            }
        }
        open.filter_map(|(_, table)| table.as_ref()).try_for_each(|table| writer.add(table))
    }

    /// The pages.
    pub(super) fn pages(&self) -> &[Page] {
        &self.packed.pages
    }

    /// The same tables, those in `pages` that are as they were when these were made of `written`. Tables that wait for
    /// something stay decoded, as do those for which `needed` says so.
    pub fn packed_as(&self, written: &Self, pages: &Arc<Packed>, needed: impl Fn(TableId) -> bool) -> Self {
        if !self.same_pages(written) {
            return self.clone();
        }
        let mut open = OrdMap::new();
        let waiting: std::collections::HashSet<TableId> =
            pages.pages.iter().flat_map(|page| page.figures.waiting.iter().copied()).collect();
        for (id, table) in &self.open {
            let same = match (table, written.open.get(id)) {
                (Some(table), Some(Some(then))) => Arc::ptr_eq(table, then),
                (None, Some(None)) => true,
                _ => false,
            };
            let stays = table.is_some() && (waiting.contains(id) || needed(*id));
            if (!same && !planted(Bug::KeepPages)) || stays {
                open.insert(*id, table.clone());
            }
        }
        let doubted = self.doubted.filter(|changed| Some(*changed) != written.doubted);
        Self { open, packed: pages.clone(), doubted, ..self.clone() }
    }
}

/// Tables in pages, which never change.
#[derive(Debug, Default)]
pub struct Packed {
    pages: Vec<Page>,
    recent: Mutex<Recent>,
}

/// What was decoded last.
#[derive(Debug, Default)]
struct Recent {
    new: HashMap<TableId, Arc<TableState>>,
    old: HashMap<TableId, Arc<TableState>>,
    pages: Vec<(usize, Arc<Unpacked>)>,
}

impl Packed {
    pub(super) fn new(pages: Vec<Page>) -> Self {
        Self { pages, recent: Mutex::default() }
    }

    /// The place of the page that may hold a table.
    fn place_of(&self, id: TableId) -> Option<usize> {
        self.pages.partition_point(|page| page.first <= id).checked_sub(1)
    }

    /// Where a table is.
    fn page_of(&self, id: TableId) -> Option<&Page> {
        self.place_of(id).map(|at| &self.pages[at])
    }

    fn get(&self, id: TableId) -> Result<Option<Arc<TableState>>> {
        let Some(at) = self.place_of(id) else { return Ok(None) };
        if let Some(table) = self.recent.lock().find(id) {
            return Ok(Some(table));
        }
        let table = self.unpacked(at)?.find(id)?;
        if let Some(table) = &table {
            self.recent.lock().keep(table.clone());
        }
        Ok(table)
    }
}

impl Packed {
    /// A page; the last few are remembered.
    fn unpacked(&self, at: usize) -> Result<Arc<Unpacked>> {
        if let Some((_, page)) = self.recent.lock().pages.iter().find(|(place, _)| *place == at) {
            return Ok(page.clone());
        }
        let page = Arc::new(self.pages[at].unpack()?);
        let pages = &mut self.recent.lock().pages;
        pages.truncate(RECENT_PAGES - 1);
        pages.insert(0, (at, page.clone()));
        Ok(page)
    }

    /// Whether what a page says of a table is what `describe` does.
    pub(super) fn says(&self, table: &TableState, describe: &dyn Fn(&TableState) -> TableSummary) -> Result<bool> {
        Ok(self.figures_of(table.id)? == Some(describe(table)) || planted(Bug::KeepFigures))
    }

    fn figures_of(&self, id: TableId) -> Result<Option<TableSummary>> {
        let Some(at) = self.place_of(id) else { return Ok(None) };
        let page = self.unpacked(at)?;
        Ok(page.tables.binary_search_by_key(&id, |table| table.id).ok().map(|at| page.tables[at].figures))
    }
}

impl Recent {
    /// A table that was decoded not long ago.
    fn find(&mut self, id: TableId) -> Option<Arc<TableState>> {
        if let Some(table) = self.new.get(&id) {
            return Some(table.clone());
        }
        let table = self.old.remove(&id)?;
        self.keep(table.clone());
        Some(table)
    }

    fn keep(&mut self, table: Arc<TableState>) {
        if self.new.len() >= RECENT_TABLES {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(table.id, table);
    }
}

#[cfg(test)]
mod tests;
