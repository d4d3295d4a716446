//! How a store lies on storage: every stored row group in its block, how much of it is dead, who needs it, and what a checkpoint now
//! would do with it. A function of one state; nothing is read but records.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::plans::{place, plan_repack, plans};
use crate::base::{BlockId, Result, Seq, TableId, Timestamp, Version};
use crate::block::Address;
use crate::catalog::{Pattern, State};
use crate::store::{Holding, Store};
use crate::table::{Plan, PlanOptions, Reason, RowGroup, Rows, TableIndex, TableState};

/// What of a store's layout is wanted.
#[derive(Clone, Debug)]
pub struct LayoutOptions {
    /// Only what belongs to these tables of the tree. Default: all, those in the trash and in snapshots too.
    pub pattern: Option<Pattern>,
    /// Stop after the table with which there are this many cells. Default 50,000.
    pub cells_max: usize,
    /// The vacuum plan that is laid over it. Default: that of a checkpoint.
    pub plan: PlanOptions,
}

impl Default for LayoutOptions {
    fn default() -> Self {
        Self { pattern: None, cells_max: 50_000, plan: PlanOptions::default() }
    }
}

/// How a store lies on storage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The commit of which this is.
    pub seq: Seq,
    /// Its time.
    pub time: Timestamp,
    /// The tables that the cells belong to.
    pub tables: Vec<LayoutTable>,
    /// The blocks with cells, by name.
    pub blocks: Vec<LayoutBlock>,
    /// Whether no table was left out because there are too many cells.
    pub complete: bool,
    /// Row groups of all tables of the store.
    pub row_groups: u64,
    /// Blocks that wait for a reclaim.
    pub condemned: u64,
    /// Bytes of those blocks.
    pub condemned_bytes: u64,
    /// Why space is held beyond the newest versions.
    pub holding: Holding,
}

/// A table with cells.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutTable {
    /// Its path; where it was if it is in the trash or in snapshots alone.
    pub path: String,
    /// Where it is.
    pub home: TableHome,
    /// What a checkpoint would rewrite of it.
    pub plan: Option<Plan>,
}

/// Where a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableHome {
    /// In the tree.
    Tree,
    /// In the trash.
    Trash,
    /// In snapshots alone.
    Snapshots,
}

/// A block in use.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutBlock {
    /// Its name.
    pub block: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes of the row groups in use.
    pub live_bytes: u64,
    /// It is in the log and the catalog, not on storage.
    pub inline: bool,
    /// A checkpoint would copy what it still holds to another block.
    pub repacked: bool,
    /// What it holds, by its place in the block.
    pub cells: Vec<LayoutCell>,
}

/// What the bytes of a cell are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// A row group, or its newest layer if it is patched.
    RowGroup,
    /// A layer below a patch.
    Below,
    /// Rows written by key that a later commit replaced: needed for what a time shows.
    History,
    /// Part of a run of an index.
    Index,
}

/// For whom a cell is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NeededBy {
    /// No version that is listed or held shows a row of it.
    Nothing,
    /// A table in the trash.
    Trash,
    /// A snapshot holds this version, which is not listed any more, or whose table is gone.
    Snapshot(Version),
    /// This listed version is the last one that shows rows of it.
    Listed(Version),
    /// The newest version.
    Newest(Version),
}

/// Bytes in a block that one or more records name.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutCell {
    /// Its table, by its place in [`Layout::tables`].
    pub table: usize,
    /// What it is.
    pub kind: CellKind,
    /// The number of the row group within its table.
    pub group: u64,
    /// Where it begins in the block.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Rows, deleted ones too.
    pub rows: u64,
    /// Rows that no version shows which is listed or held.
    pub dead_rows: u64,
    /// The version that the oldest of its rows came with.
    pub born: Version,
    /// The time of the first listed version that had them.
    pub time: Option<Timestamp>,
    /// The last version that needs it.
    pub needed_by: NeededBy,
    /// How many records name these bytes: more than one where a restored version, a copied table or a patch shares them.
    pub records: u64,
    /// Why a checkpoint would rewrite it, and in which of its table's windows.
    pub planned: Option<(Reason, usize)>,
}

impl Layout {
    /// How `store` lies on storage now. O(row groups), O(tables).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{Layout, Tables};
    /// # let store = drumlin::Store::memory()?;
    /// # let n = Arc::new(Int64Array::from(vec![1, 2, 3, 4])) as ArrayRef;
    /// store.write("t", RecordBatch::try_from_iter([("n", n)]).unwrap(), &Default::default())?;
    /// store.table("t").delete("n = 2", &Default::default())?;
    /// store.delete_versions(&[("t".into(), vec![drumlin::Version(0)])], drumlin::Missing::Refuse)?;
    /// let cell = &Layout::of(&store, &Default::default())?.blocks[0].cells[0];
    /// assert_eq!((cell.rows, cell.dead_rows), (4, 1));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`; `Corrupt` if a table's record is damaged.
    pub fn of(store: &Store, options: &LayoutOptions) -> Result<Layout> {
        let state = store.state()?;
        let mut drawing = Drawing::new(&state, &options.plan)?;
        let (mut cells, mut complete) = (0, true);
        let mut draw = |table: Arc<TableState>, home: TableHome| {
            complete = cells < options.cells_max;
            if complete {
                cells += drawing.add(&table, home);
            }
            Ok::<bool, crate::base::Error>(complete)
        };
        match &options.pattern {
            Some(pattern) => {
                for found in state.tables_matching(pattern) {
                    if !draw(found?.1, TableHome::Tree)? {
                        break;
                    }
                }
            }
            None => {
                for table in state.tables() {
                    let table = table?;
                    let home = match state.path_of(table.id) {
                        Some(_) => TableHome::Tree,
                        None if state.trash.contains(table.id) => TableHome::Trash,
                        None => TableHome::Snapshots,
                    };
                    if !draw(table, home)? {
                        break;
                    }
                }
            }
        }
        let repack = plan_repack(&state, &drawing.plans, &options.plan, store.options().block_bytes)?;
        let repacked: std::collections::BTreeSet<BlockId> = repack.blocks.into_iter().collect();
        let (mut condemned, mut condemned_bytes) = (0, 0);
        for (_, block) in state.ledger.condemned() {
            condemned += 1;
            condemned_bytes += block.bytes;
        }
        let holding = store.holding(&state)?;
        let (tables, cells) = drawing.finish();
        Ok(Layout {
            seq: state.seq,
            time: state.time,
            tables,
            blocks: blocks(&state, cells, |block| repacked.contains(&block)),
            complete,
            row_groups: state.totals().groups,
            condemned,
            condemned_bytes,
            holding,
        })
    }
}

/// The cells, put into their blocks.
fn blocks(state: &State, cells: BTreeMap<Address, LayoutCell>, repacked: impl Fn(BlockId) -> bool) -> Vec<LayoutBlock> {
    let mut by_block: BTreeMap<BlockId, Vec<LayoutCell>> = BTreeMap::new();
    for (address, cell) in cells {
        by_block.entry(address.block).or_default().push(cell);
    }
    let mut blocks = Vec::with_capacity(by_block.len());
    for (block, used) in state.ledger.blocks() {
        let Some(mut cells) = by_block.remove(block) else { continue };
        cells.sort_by_key(|cell| cell.offset);
        blocks.push(LayoutBlock {
            block: block.to_string(),
            bytes: used.bytes,
            live_bytes: used.live_bytes,
            inline: state.ledger.is_inline(*block),
            repacked: repacked(*block),
            cells,
        });
    }
    blocks
}

/// What has been found so far.
struct Drawing<'a> {
    state: &'a State,
    plans: Vec<(TableId, Plan)>,
    /// Where the plan of a table is.
    planned: BTreeMap<TableId, usize>,
    /// The paths that tables had which snapshots alone hold.
    held: BTreeMap<TableId, String>,
    tables: Vec<LayoutTable>,
    cells: BTreeMap<Address, LayoutCell>,
}

impl<'a> Drawing<'a> {
    fn new(state: &'a State, options: &PlanOptions) -> Result<Self> {
        let plans = plans(state, options)?;
        let planned = plans.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect();
        let off_tree = state.pins().filter(|(_, id, _)| state.path_of(*id).is_none());
        let held = off_tree.map(|(path, id, _)| (id, path.to_string())).collect();
        Ok(Self { state, plans, planned, held, tables: Vec::new(), cells: BTreeMap::new() })
    }

    /// Adds the cells of a table; returns how many.
    fn add(&mut self, table: &TableState, home: TableHome) -> usize {
        let plan = self.planned.get(&table.id).map(|at| self.plans[*at].1.clone());
        let mut windows = BTreeMap::new();
        for (at, window) in plan.iter().flat_map(|plan| &plan.windows).enumerate() {
            windows.extend(window.inputs.iter().map(|input| (input.id, (window.reason, at))));
        }
        let path = match home {
            TableHome::Tree => place(self.state, table.id),
            TableHome::Trash => self.state.trash.tables()[&table.id].path.to_string(),
            TableHome::Snapshots => self.held.get(&table.id).cloned().unwrap_or_else(|| place(self.state, table.id)),
        };
        let before = self.cells.len();
        let (retained, at) = (table.retained(), self.tables.len());
        let last = last_needed(table, home);
        for group in &table.groups {
            let (born, time) = born(table, group);
            let needed = retained.needed(group);
            let needed_by = last(group, &needed);
            for (layer, address) in group.addresses().enumerate() {
                let cell = LayoutCell {
                    table: at,
                    kind: if layer == 0 { CellKind::RowGroup } else { CellKind::Below },
                    group: group.id.0,
                    offset: address.offset,
                    bytes: address.bytes(),
                    rows: u64::from(group.rows),
                    dead_rows: u64::from(group.rows) - needed.count(group.rows),
                    born,
                    time,
                    needed_by,
                    records: self.state.ledger.records(address),
                    planned: windows.get(&group.id).copied(),
                };
                self.put(address, cell);
            }
        }
        for history in &table.instants.histories {
            for (address, rows) in &history.groups {
                let cell = LayoutCell {
                    table: at,
                    kind: CellKind::History,
                    group: 0,
                    offset: address.offset,
                    bytes: address.bytes(),
                    rows: u64::from(*rows),
                    dead_rows: 0,
                    born: history.version,
                    time: Some(history.first),
                    needed_by: NeededBy::Listed(history.version),
                    records: self.state.ledger.records(address),
                    planned: None,
                };
                self.put(address, cell);
            }
        }
        let newest = table.newest().map_or(Version(0), |newest| newest.version);
        for (address, entries) in table.indexes.list.iter().flat_map(TableIndex::parts) {
            let cell = LayoutCell {
                table: at,
                kind: CellKind::Index,
                group: 0,
                offset: address.offset,
                bytes: address.bytes(),
                rows: u64::from(*entries),
                dead_rows: 0,
                born: newest,
                time: None,
                needed_by: if home == TableHome::Trash { NeededBy::Trash } else { NeededBy::Newest(newest) },
                records: self.state.ledger.records(address),
                planned: None,
            };
            self.put(address, cell);
        }
        self.tables.push(LayoutTable { path, home, plan });
        self.cells.len() - before
    }

    /// Adds a cell. Of records that name the same bytes, that counts which keeps them longest.
    fn put(&mut self, address: &Address, cell: LayoutCell) {
        let there = self.cells.entry(*address).or_insert_with(|| cell.clone());
        let dead = there.dead_rows.min(cell.dead_rows);
        if cell.needed_by > there.needed_by {
            *there = cell;
        }
        there.dead_rows = dead;
    }

    fn finish(self) -> (Vec<LayoutTable>, BTreeMap<Address, LayoutCell>) {
        (self.tables, self.cells)
    }
}

/// The version that the oldest rows of a row group came with, and the time of the first listed version from there on.
fn born(table: &TableState, group: &RowGroup) -> (Version, Option<Timestamp>) {
    let born = group.runs.iter().map(|run| run.born).min().unwrap_or_default();
    let at = match table.versions.binary_search_by_key(&born, |record| record.version) {
        Ok(at) | Err(at) => at,
    };
    (born, table.versions.get(at).map(|record| record.time))
}

/// Says of a row group, some of whose rows are needed, for whom.
fn last_needed(table: &TableState, home: TableHome) -> impl Fn(&RowGroup, &Rows) -> NeededBy + '_ {
    let mut retained: Vec<Version> = table.versions.iter().map(|record| record.version).collect();
    retained.extend(table.pins.keys());
    retained.sort_unstable();
    retained.dedup();
    move |group, needed| {
        if *needed == Rows::None {
            return NeededBy::Nothing;
        }
        // No later version shows any of its rows.
        let died = group.runs.iter().map(|run| run.died).max().unwrap_or_default();
        let until = retained.partition_point(|version| *version < died);
        let shows = |version: &&Version| table.visible(group, **version) != Rows::None;
        let Some(last) = retained[..until].iter().rev().find(shows).copied() else { return NeededBy::Nothing };
        let listed = table.versions.binary_search_by_key(&last, |record| record.version).is_ok();
        match home {
            TableHome::Trash => NeededBy::Trash,
            TableHome::Snapshots => NeededBy::Snapshot(last),
            TableHome::Tree if !listed => NeededBy::Snapshot(last),
            TableHome::Tree if table.newest().is_some_and(|newest| newest.version == last) => NeededBy::Newest(last),
            TableHome::Tree => NeededBy::Listed(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;
    use crate::catalog::Existing;
    use crate::store::{AsOf, Missing, Options, Tables};

    fn rows(from: i64, count: i64) -> RecordBatch {
        let values = Arc::new(Int64Array::from_iter_values(from..from + count)) as ArrayRef;
        RecordBatch::try_from_iter([("n", values)]).unwrap()
    }

    fn open() -> Store {
        Store::open_with("memory://", Options { inline_bytes: 0, ..Options::default() }).unwrap()
    }

    fn cells(store: &Store) -> Vec<LayoutCell> {
        let layout = Layout::of(store, &LayoutOptions::default()).unwrap();
        assert!(layout.complete);
        for block in &layout.blocks {
            assert_eq!(block.live_bytes, block.cells.iter().map(|cell| cell.bytes).sum::<u64>());
        }
        layout.blocks.into_iter().flat_map(|block| block.cells).collect()
    }

    #[test]
    fn a_cell_tells_its_dead_rows_and_the_last_version_that_needs_it() {
        let store = open();
        store.write("t", rows(0, 1000), &Default::default()).unwrap();
        store.append("t", rows(1000, 500), &Default::default()).unwrap();
        store.table("t").delete("n < 300", &Default::default()).unwrap();
        let found = cells(&store);
        assert_eq!(found.iter().map(|cell| cell.dead_rows).collect::<Vec<_>>(), [0, 0]);
        store.delete_versions(&[("t".into(), vec![Version(0), Version(1)])], Missing::Refuse).unwrap();
        let found = cells(&store);
        assert_eq!(found.iter().map(|cell| (cell.rows, cell.dead_rows)).collect::<Vec<_>>(), [(1000, 300), (500, 0)]);
        assert!(found.iter().all(|cell| cell.needed_by == NeededBy::Newest(Version(2))));
        assert!(found.iter().all(|cell| matches!(cell.planned, Some((Reason::Fold, 0)))));
        store.checkpoint(&Default::default()).unwrap();
        assert_eq!(cells(&store).iter().map(|cell| (cell.rows, cell.dead_rows)).collect::<Vec<_>>(), [(1200, 0)]);
    }

    #[test]
    fn what_only_older_versions_snapshots_or_the_trash_need_is_distinguished() {
        let store = open();
        store.write("t", rows(0, 100), &Default::default()).unwrap();
        store.snapshot("eod", "t").unwrap();
        store.write("t", rows(100, 100), &Default::default()).unwrap();
        store.write("t", rows(200, 100), &Default::default()).unwrap();
        store.delete_versions(&[("t".into(), vec![Version(0)])], Missing::Refuse).unwrap();
        store.write("gone", rows(0, 10), &Default::default()).unwrap();
        store.table("gone").drop(Missing::Refuse).unwrap();
        store.write("held", rows(0, 10), &Default::default()).unwrap();
        store.snapshot("last", "held").unwrap();
        store.table("held").drop(Missing::Refuse).unwrap();
        let mut found: Vec<NeededBy> = cells(&store).iter().map(|cell| cell.needed_by).collect();
        found.sort_unstable();
        let expected = [
            NeededBy::Trash,
            NeededBy::Trash,
            NeededBy::Snapshot(Version(0)),
            NeededBy::Listed(Version(1)),
            NeededBy::Newest(Version(2)),
        ];
        assert_eq!(found, expected);
        store.reclaim(&Default::default()).unwrap();
        let layout = Layout::of(&store, &LayoutOptions::default()).unwrap();
        let held = layout.tables.iter().find(|table| table.path == "held").unwrap();
        assert_eq!(held.home, TableHome::Snapshots);
        assert!(!layout.tables.iter().any(|table| table.path == "gone"));
    }

    #[test]
    fn bytes_of_several_records_are_one_cell_and_too_many_cells_are_left_out() {
        let store = open();
        store.write("a", rows(0, 100), &Default::default()).unwrap();
        store.copy("a", "b", &AsOf::Newest, Existing::Refuse).unwrap();
        let found = cells(&store);
        assert_eq!(found.iter().map(|cell| cell.records).collect::<Vec<_>>(), [2]);
        store.write("c", rows(0, 100), &Default::default()).unwrap();
        let few = LayoutOptions { cells_max: 1, ..LayoutOptions::default() };
        let layout = Layout::of(&store, &few).unwrap();
        assert!(!layout.complete && layout.blocks.len() == 1 && layout.row_groups == 3);
        let only = LayoutOptions { pattern: Some(Pattern::new("c").unwrap()), ..LayoutOptions::default() };
        let layout = Layout::of(&store, &only).unwrap();
        assert_eq!(layout.tables.iter().map(|table| table.path.as_str()).collect::<Vec<_>>(), ["c"]);
        assert!(layout.complete);
    }
}
