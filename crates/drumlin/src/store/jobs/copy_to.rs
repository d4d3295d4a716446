//! Copies of tables in another store, in a folder or a bucket: row groups as they are encoded, every byte checked when
//! it is read here, and again where it was written.
//!
//! Tables are taken over some at a time, each lot in one commit there. So a call that was interrupted is done again:
//! tables that are there already, with the same versions, are skipped.
//!
//! Checksums depend on the place, so they are made again; blocks that were written are read again before the commit.
//! One effect, `AdoptTables`, carries the records of the tables (*adopt.rs*).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Error, ErrorKind, Meter, Result, Seq, TableId, Task};
use crate::block::{Address, BlockReader, MissingBlock};
use crate::catalog::{Effect, Footprint, Path, Pattern, Read, State};
use crate::store::Store;
use crate::store::commit::blocks::add_blocks;
use crate::store::commit::call::retry_conflicts;
use crate::store::nouns::patterns::IntoPattern;
use crate::store::parts::{Proposal, Work};
use crate::table::{Adopted, IndexDefinition, StoredLayout, TableState};

/// About how much is taken over in one commit.
const LOT_BYTES: u64 = 256 << 20;
const LOT_GROUPS: usize = 20_000;
const LOT_TABLES: usize = 1000;

/// How tables are copied to another store.
#[derive(Clone, Default)]
pub struct CopyToOptions {
    /// Whether only the newest version of each table is copied. Default: all.
    pub newest_only: bool,
    /// Whether tables at the same paths that are other tables, or show something else, go to the trash there. Default: the
    /// call is refused, naming them.
    pub replace: bool,
    /// Progress in row groups, and cancellation.
    pub task: Task,
}

/// What copying to another store did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyToReport {
    /// The tables that were copied, in path order.
    pub tables: Vec<String>,
    /// Those that were there already.
    pub present: Vec<String>,
    /// Row groups copied.
    pub row_groups: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A table to be copied: where to, what it is, and what is beside it.
type Copied = (Path, Adopted, Beside);

/// What a table has beside its rows that goes with it.
#[derive(Clone, Default)]
struct Beside {
    /// The next numbers of its sequences.
    sequences: BTreeMap<String, i64>,
    /// Its indexes, whose runs are made again.
    indexes: Vec<IndexDefinition>,
    /// By what its row groups are laid out.
    layout: Option<StoredLayout>,
}

impl Beside {
    fn of(state: &State, table: &TableState) -> Self {
        let indexes = table.indexes.list.iter().map(|index| index.definition.clone()).collect();
        let layout = table.layout.as_deref().cloned();
        Self { sequences: state.sequences.of(table.id).cloned().unwrap_or_default(), indexes, layout }
    }

    /// What gives it to a table.
    fn effects(&self, table: TableId) -> impl Iterator<Item = Effect> {
        let next = Some(self.sequences.clone()).filter(|next| !next.is_empty() && !planted(Bug::CopyNoNumbers));
        let sequences = next.map(|next| Effect::AdvanceSequences { table, next });
        let indexes = self.indexes.clone().into_iter();
        let layout = self.layout.clone().map(|layout| Effect::SetLayout { table, layout: Some(layout) });
        let indexes = indexes.map(move |definition| Effect::PutIndex { table, definition });
        sequences.into_iter().chain(layout).chain(indexes)
    }
}

/// Tables that are taken over in one commit.
#[derive(Default)]
struct Lot {
    tables: Vec<Copied>,
    addresses: BTreeSet<Address>,
    bytes: u64,
}

impl Lot {
    fn push(&mut self, path: Path, table: Adopted, beside: Beside) {
        for address in table.addresses() {
            if self.addresses.insert(address) {
                self.bytes += address.bytes();
            }
        }
        self.tables.push((path, table, beside));
    }

    fn is_full(&self) -> bool {
        self.bytes >= LOT_BYTES || self.addresses.len() >= LOT_GROUPS || self.tables.len() >= LOT_TABLES
    }
}

impl Store {
    /// Copies the tables that match `pattern` to the same paths of another store, with their versions, times, metadata and
    /// what versions tell; not what nodes carry, snapshots, and the trash. Tables that share data here share it there if they
    /// are copied in one lot. Written blocks are read again before the commit that refers to them. A call that was interrupted is
    /// done again: what is there already stays. O(bytes) of the tables.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{Store, Tables};
    /// # let rows = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    /// # let (store, backup) = (Store::memory()?, Store::memory()?);
    /// store.write("prices/A", rows.clone(), &Default::default())?;
    /// store.append("prices/A", rows, &Default::default())?;
    /// assert_eq!(store.copy_to(&backup, "prices/**", &Default::default())?.tables, ["prices/A"]);
    /// assert_eq!(backup.table("prices/A").versions()?.len(), 2);
    /// assert_eq!(store.copy_to(&backup, "prices/**", &Default::default())?.present, ["prices/A"]);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists`, naming a table that is there and shows something else, before anything is copied; `Corrupt` if data is
    /// damaged, here or where it was written; `InvalidArgument` if both are the same store, or rows written by key are in
    /// memory of a store that is open for reading only; what reading here and writing there fail with.
    pub fn copy_to(&self, to: &Store, pattern: impl IntoPattern, options: &CopyToOptions) -> Result<CopyToReport> {
        to.commits().writable_log()?;
        let pattern = pattern.into_pattern()?;
        let mut report = CopyToReport::default();
        let mut attempt = || {
            to.call()?;
            match self.setting().is_read_only() {
                true => drop(self.refresh()?),
                false => drop(self.call()?),
            }
            let (here, there) = (self.current()?, to.current()?);
            // Commits have random names.
            let same_commit = (here.seq, here.entry) == (there.seq, there.entry) && here.seq > Seq(0);
            if Arc::ptr_eq(self.commits(), to.commits()) || same_commit {
                return Err(Error::invalid(
                    "the source and the target are the same store; use `copy` to copy within it",
                ));
            }
            refuse_others(&here, &there, to, &pattern, options)?;
            self.settle_matching(&pattern)?;
            let (state, _pin) = self.pinned_state()?;
            let wanted = match self.wanted(&state, to, &there, &pattern, options, &mut report) {
                Err(e) if e.kind() == ErrorKind::Conflict => return Ok(Err(e)),
                wanted => wanted?,
            };
            let (mut lots, mut lot) = (Vec::new(), Lot::default());
            for (path, table, beside) in wanted {
                lot.push(path, table, beside);
                if lot.is_full() {
                    lots.push(std::mem::take(&mut lot));
                }
            }
            lots.extend((!lot.tables.is_empty()).then_some(lot));
            let (groups, bytes) =
                lots.iter().fold((0, 0), |(n, sum), lot| (n + lot.addresses.len() as u64, sum + lot.bytes));
            let mut meter = Meter::new(&options.task, &*self.env().clock, groups, bytes);
            for lot in lots {
                let names = lot.tables.iter().map(|(path, ..)| path.to_string()).collect::<Vec<_>>();
                let (groups, bytes) = (lot.addresses.len() as u64, lot.bytes);
                // Others have changed what is there: it is looked at again.
                match self.copy_lot(to, &there, lot, options, &mut meter) {
                    Err(e) if e.kind() == ErrorKind::Conflict => return Ok(Err(e)),
                    done => done?,
                }
                report.tables.extend(names);
                report.row_groups += groups;
                report.bytes += bytes;
            }
            Ok(Ok(()))
        };
        self.while_reclaimed(|| retry_conflicts(&mut attempt))?;
        report.tables.sort_unstable();
        report.present.retain(|path| report.tables.binary_search(path).is_err());
        Ok(report)
    }

    /// Makes row groups of rows in memory of the tables that match.
    fn settle_matching(&self, pattern: &Pattern) -> Result<()> {
        let state = self.state()?;
        let waiting: Vec<(&Path, TableId)> =
            state.ids_matching(pattern).filter(|(_, table)| state.has_parts(*table)).collect();
        match waiting.first() {
            Some((path, _)) if self.setting().is_read_only() => Err(Error::invalid(format!(
                "rows of '{path}' that were written by key are still in memory; checkpoint the store, or open it for \
                 writing"
            ))),
            _ => self.settle_rows(&waiting.into_iter().map(|(_, table)| table).collect(), true),
        }
    }

    /// The tables that are to be copied, those excepted that are there.
    fn wanted(
        &self,
        state: &State,
        to: &Store,
        there: &State,
        pattern: &Pattern,
        options: &CopyToOptions,
        report: &mut CopyToReport,
    ) -> Result<Vec<Copied>> {
        let now = there.time.max(to.commits().times().now(there.time));
        report.present.clear();
        let mut wanted = Vec::new();
        for found in state.tables_matching(pattern) {
            let (path, table) = found?;
            let newest = table.newest().filter(|_| options.newest_only).map(|newest| newest.version);
            let copy = Adopted::of(&table, newest, now)?;
            match there.table_at(path)? {
                Some(own) if copy.is_like(&own) || planted(Bug::PassOverOthers) => {
                    report.present.push(path.to_string())
                }
                Some(_) if !options.replace => return Err(shows_else(path, to)),
                _ => wanted.push((path.clone(), copy, Beside::of(state, &table))),
            }
        }
        Ok(wanted)
    }

    /// Copies the row groups of some tables, and makes the tables.
    fn copy_lot(
        &self,
        to: &Store,
        there: &Arc<State>,
        lot: Lot,
        options: &CopyToOptions,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let task = &options.task;
        let blocks = by_block(lot.addresses.iter().copied());
        let mut moves = Vec::with_capacity(lot.addresses.len());
        let mut writer = to.block_writer()?.inline(to.options().inline_bytes);
        self.env().pool.ordered(
            blocks.into_values().map(Ok),
            |addresses| addresses.iter().map(Address::bytes).sum(),
            self.env().pool.threads() * 2,
            self.options().memory_bytes / 4,
            |addresses| {
                task.cancel.check()?;
                Ok((self.reader().row_groups(&addresses)?, addresses))
            },
            |(encoded, addresses)| {
                for (group, from) in encoded.into_iter().zip(addresses) {
                    meter.done.rows += u64::from(group.rows);
                    moves.push((from, writer.push(group)?));
                    meter.done.bytes += from.bytes();
                    meter.step(1, from.bytes())?;
                }
                Ok(())
            },
        )?;
        let stored: BTreeSet<BlockId> =
            writer.finish()?.iter().filter(|written| written.inline.is_none()).map(|written| written.block).collect();
        let written = moves.iter().map(|(_, to)| *to).filter(|address| stored.contains(&address.block));
        if let Err(e) = to.read_again(written, task) {
            // A reclaim of another process may have ended the session and swept its blocks.
            to.call()?;
            return Err(match to.current()?.sessions.is_open(writer.session()) {
                true => e,
                false => Error::snapshot_expired(e.message()),
            });
        }
        let tables = lot.tables.into_iter().map(|(path, table, beside)| Ok((path, table.moved(&moves)?, beside)));
        let tables = tables.collect::<Result<Vec<_>>>()?;
        to.commit_rewritten(writer, |writer| {
            let bindings = tables.iter().map(|(path, ..)| Read::Binding(path.clone())).collect();
            let (added, replace) = (add_blocks(writer.written()), options.replace);
            let has_unique = tables.iter().any(|(.., beside)| beside.indexes.iter().any(IndexDefinition::is_unique));
            let build = move |state: &State| {
                let mut effects = added.clone();
                for (path, ..) in &tables {
                    match state.table_id_at(path) {
                        Some(table) if replace => effects.push(Effect::DropTable { table }),
                        Some(_) => {
                            return Err(Error::conflict(format!("a table was created at '{path}' during the call")));
                        }
                        None => {}
                    }
                }
                let ids = (state.next_table().0..).map(TableId);
                let adopted = ids.clone().zip(&tables).map(|(id, (path, table, _))| (id, path.clone(), table.clone()));
                effects.push(Effect::AdoptTables { tables: adopted.collect() });
                effects.extend(ids.zip(&tables).flat_map(|(table, (.., beside))| beside.effects(table)));
                Ok(effects)
            };
            let footprint = Footprint { reads: bindings };
            let work = Work::Build(Box::new(build));
            to.commit(Proposal::new(there.clone(), footprint, work).adding_rows(has_unique))
        })?;
        Ok(())
    }

    /// Reads row groups that were just written, every byte checked.
    fn read_again(&self, addresses: impl Iterator<Item = Address>, task: &Task) -> Result<()> {
        let blocks = by_block(addresses);
        let reader = BlockReader::new(self.storage().clone(), 0, MissingBlock::Damage);
        let read = |addresses: Vec<Address>| {
            task.cancel.check()?;
            reader
                .row_groups(&addresses)
                .map(drop)
                .map_err(|e| e.context(format!("reading back what was written to {}", self.uri())))
        };
        self.env().pool.map(blocks.into_values().collect(), read).map(drop)
    }
}

fn shows_else(path: &Path, to: &Store) -> Error {
    Error::already_exists(format!(
        "'{path}' already exists in {} with different content; nothing more was copied",
        to.uri()
    ))
}

/// `AlreadyExists` if a table is there that surely shows something else than the one here: rows that are in no version here are in none there.
fn refuse_others(here: &State, there: &State, to: &Store, pattern: &Pattern, options: &CopyToOptions) -> Result<()> {
    for found in here.tables_matching(pattern).filter(|_| !options.replace) {
        let (path, table) = found?;
        if table.active().is_some() && there.table_id_at(path).is_some() {
            return Err(shows_else(path, to));
        }
    }
    Ok(())
}

/// Row groups that are read together.
fn by_block(addresses: impl Iterator<Item = Address>) -> BTreeMap<BlockId, Vec<Address>> {
    let mut blocks: BTreeMap<BlockId, Vec<Address>> = BTreeMap::new();
    addresses.for_each(|address| blocks.entry(address.block).or_default().push(address));
    blocks
}
