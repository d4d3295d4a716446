//! Verify: checks that every object referred to exists, and that every byte of it is the byte written; on request, also that
//! every row group can be decoded, and that what its directory says about its values is true.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::base::{Error, ErrorKind, Meter, Pool, Result, TableId, Task, caught};
use crate::block::{Address, BlockReader};
use crate::catalog::State;
use crate::log::retry_while_moving;
use crate::storage::{Storage, names};
use crate::store::Store;
use crate::store::parts::recover;
use crate::table::{
    History, IndexRun, RowGroup, TableIndex, TableState, check_group, check_run, pages_of, read_history,
};

/// What to verify.
#[derive(Clone, Default)]
pub struct VerifyOptions {
    /// Whether to decode every row group too, and to compare its statistics with its values. Takes as long as reading all
    /// rows. Default: no, checksums only.
    pub deep: bool,
    /// Progress in row groups, and cancelling.
    pub task: Task,
}

/// A fault found by verify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The table's path, or a description if it has none.
    pub table: String,
    /// The row group.
    pub group: u64,
    /// What is wrong; names object and offset.
    pub error: String,
}

/// What verify found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Tables checked, including those in the trash and those held only by snapshots.
    pub tables: u64,
    /// Row groups read and checked.
    pub groups: u64,
    /// Bytes read and checked.
    pub bytes: u64,
    /// What is wrong. Empty if the store is sound.
    pub faults: Vec<Fault>,
    /// Objects that nothing refers to, with their sizes in bytes; harmless, and removed by a reclaim.
    pub orphans: Vec<(String, u64)>,
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tables, groups, bytes, faults, orphans } = self;
        let (faults, orphans) = (faults.len(), orphans.len());
        write!(f, "{tables} tables, {groups} row groups, {bytes} bytes checked: {faults} faults, {orphans} orphans")
    }
}

/// Something that a table keeps in a block.
enum StoredPart {
    /// A layer of a row group, the newest being 0.
    Group(Arc<RowGroup>, usize),
    /// One of a history's row groups, by index.
    History(History, usize),
    /// A part of a run of an index.
    Run(TableIndex, Arc<IndexRun>, usize),
}

impl StoredPart {
    fn address(&self) -> &Address {
        match self {
            StoredPart::Group(group, layer) => group.addresses().nth(*layer).expect("a layer of it"),
            StoredPart::History(history, at) => &history.groups[*at].0,
            StoredPart::Run(_, run, part) => &run.parts[*part].0,
        }
    }

    /// How many rows and columns it should have.
    fn shape(&self, table: &TableState) -> (u32, usize) {
        let columns = |schema: u32| table.schemas[schema as usize].0.fields().len();
        match self {
            StoredPart::Group(group, layer) => {
                let layer = group.layers().nth(*layer).expect("a layer of it");
                (group.rows, layer.width(&table.schemas))
            }
            // Beside the columns, the time and the kind of each record.
            StoredPart::History(history, at) => (history.groups[*at].1, columns(history.schema) + 2),
            StoredPart::Run(index, run, part) => {
                let entries = run.parts[*part].1;
                let width = run.segments_of(*part, 0, index.definition.values.len()).len();
                (entries, pages_of(entries).count() * width)
            }
        }
    }

    fn fault(&self, table: &str, error: String) -> Fault {
        match self {
            StoredPart::Group(group, _) => Fault { table: table.to_owned(), group: group.id.0, error },
            StoredPart::History(history, _) => {
                Fault { table: format!("{table} (history of version {})", history.version), group: 0, error }
            }
            StoredPart::Run(index, run, _) => {
                Fault { table: format!("{table} (index '{}', run {})", index.definition.name, run.id), group: 0, error }
            }
        }
    }

    /// Decodes it; returns what is wrong.
    fn check(&self, reader: &BlockReader, pool: &Pool, table: &TableState) -> Result<Vec<String>> {
        match self {
            StoredPart::Group(group, layer) => check_group(reader, table, group, *layer),
            // The whole history at once.
            StoredPart::History(history, 0) => read_history(reader, pool, table, history).map(|_| Vec::new()),
            StoredPart::Run(index, run, 0) => check_run(reader, table, index, run),
            StoredPart::History(..) | StoredPart::Run(..) => Ok(Vec::new()),
        }
    }
}

/// The result of reading a row group.
enum Verified {
    /// What is wrong with it.
    Read(Vec<Fault>),
    /// Its block is missing, which may be because it was reclaimed.
    Missing(Fault),
}

/// What a table has in blocks: each layer of its row groups, its histories, and the runs of its indexes.
fn stored_of(table: &TableState) -> impl Iterator<Item = StoredPart> {
    let layers = |group: &Arc<RowGroup>| (0..group.addresses().count()).zip(std::iter::repeat(group.clone()));
    let groups = table.groups.iter().flat_map(layers).map(|(layer, group)| StoredPart::Group(group, layer));
    let of = |history: &History| (0..history.groups.len()).zip(std::iter::repeat(history.clone()));
    let histories = table.instants.histories.iter().flat_map(of);
    let histories = histories.map(|(at, history)| StoredPart::History(history, at));
    let runs = table.indexes.list.iter().flat_map(|index| index.runs().iter().map(move |run| (index, run)));
    let part = |(index, run): (&TableIndex, &Arc<IndexRun>)| {
        let part = |part| StoredPart::Run(index.clone(), run.clone(), part);
        (0..run.parts.len()).map(part).collect::<Vec<_>>()
    };
    groups.chain(histories).chain(runs.flat_map(part))
}

/// Where a table is, for faults.
fn place_of(state: &State, id: TableId) -> String {
    state.path_of(id).map_or_else(|| format!("(table {id}, dropped)"), ToString::to_string)
}

/// Checks rows in memory: their order, and each one's checksum.
fn verify_memory(state: &State, report: &mut VerifyReport) {
    for table in state.open_tables() {
        for part in &table.parts {
            if let Err(e) = part.rows().memtable.verify(state.seq) {
                let error = format!("rows in memory: {e}");
                report.faults.push(Fault { table: place_of(state, table.id), group: 0, error });
            }
        }
    }
}

impl Store {
    /// Reads every byte that the store refers to, past the cache and in parallel, and checks it; lists orphans.
    /// Faults are reported, not raised.
    ///
    /// # Errors
    /// `Unavailable` if storage does not answer, `Cancelled`.
    pub fn verify(&self, options: &VerifyOptions) -> Result<VerifyReport> {
        // Again if another process has rewritten blocks and reclaimed the old ones since.
        self.while_reclaimed(|| self.try_verify(options))
    }

    fn try_verify(&self, options: &VerifyOptions) -> Result<VerifyReport> {
        let VerifyOptions { deep, task } = options;
        let (state, _pin) = self.pinned_state()?;
        let mut report = VerifyReport::default();
        // What lies there may be another store by now.
        self.commits().log().confirm()?;
        let log = self.commits().log().inspect(state.holds.store)?;
        report.faults.extend(log.into_iter().map(|error| Fault { table: "(log)".into(), group: 0, error }));
        match retry_while_moving(|| self.verify_catalog()) {
            Ok(bytes) => report.bytes += bytes,
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                // The state in memory is sound: the next checkpoint writes all of it.
                self.upkeep().set_catalog_damaged(true);
                report.faults.push(Fault { table: "(catalog)".into(), group: 0, error: e.to_string() });
            }
            Err(e) => return Err(e),
        }
        match state.check_all() {
            Err(e) if e.kind() != ErrorKind::Corrupt => return Err(e),
            Err(e) => report.faults.push(Fault { table: "(catalog)".into(), group: 0, error: e.to_string() }),
            Ok(_) => {}
        }
        verify_memory(&state, &mut report);
        let (mut steps, mut weight) = (0, 0);
        // Those of damaged pages are among the faults.
        for table in state.tables().flatten() {
            report.tables += 1;
            for stored in stored_of(&table) {
                steps += 1;
                weight += stored.address().bytes();
            }
        }
        let mut meter = Meter::new(task, &*self.env().clock, steps, weight);
        // Tables are decoded as they are needed.
        let work = state.tables().flatten().flat_map(|table| {
            let place = place_of(&state, table.id);
            stored_of(&table).map(|stored| Ok((place.clone(), table.clone(), stored))).collect::<Vec<_>>()
        });
        let mut missing: Vec<(Address, Fault)> = Vec::new();
        self.env().pool.ordered(
            work,
            // Decoded data takes several times as much memory.
            |(.., stored)| stored.address().bytes() * if *deep { 8 } else { 1 },
            self.env().pool.threads() * 2,
            self.options().memory_bytes / 2,
            |(place, table, stored)| {
                task.cancel.check()?;
                let verified = self.verify_stored(&place, &table, &stored, *deep)?;
                let counts = !matches!(stored, StoredPart::Group(_, 1..) | StoredPart::Run(..));
                Ok((*stored.address(), counts, verified))
            },
            |(address, counts, verified)| {
                let bytes = address.bytes();
                match verified {
                    Verified::Read(faults) => report.faults.extend(faults),
                    Verified::Missing(fault) => missing.push((address, fault)),
                }
                report.groups += u64::from(counts);
                report.bytes += bytes;
                meter.done.bytes += bytes;
                meter.step(1, bytes)
            },
        )?;
        self.judge_missing(missing, &mut report)?;
        self.find_orphans(&state, &mut report)?;
        report.orphans.sort();
        Ok(report)
    }

    /// Reads and checks one row group.
    fn verify_stored(&self, place: &str, table: &TableState, stored: &StoredPart, deep: bool) -> Result<Verified> {
        let fault = |error: String| stored.fault(place, error);
        let (rows, columns) = stored.shape(table);
        let faults = match self.reader().verify(stored.address()) {
            Ok(directory) if directory.rows != rows || directory.columns.len() != columns => {
                vec![fault("the directory does not match its row group".to_owned())]
            }
            Ok(_) if deep => match caught(|| stored.check(self.reader(), &self.env().pool, table)) {
                Err(e) if !e.kind().leaves_others() => return Err(e),
                Err(e) => vec![fault(e.to_string())],
                Ok(found) => found.into_iter().map(fault).collect(),
            },
            Ok(_) => Vec::new(),
            Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::NotFound) => vec![fault(e.to_string())],
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => {
                let block = names::block(stored.address().block);
                return Ok(Verified::Missing(fault(format!("{block}: the block is missing"))));
            }
            Err(e) => return Err(e),
        };
        Ok(Verified::Read(faults))
    }

    /// Lists what nothing refers to.
    fn find_orphans(&self, state: &State, report: &mut VerifyReport) -> Result<()> {
        // What an open session is writing is not an orphan: alone, this process's own session; beside other writers,
        // all that have not ended.
        let own = self.commits().session().id();
        let alone = !self.setting().is_read_only() && !self.setting().is_shared();
        let ended = |session| match alone {
            _ if state.holds.is_open(session) => false,
            true => Some(session) != own,
            false => session <= state.sessions.last && !state.sessions.is_open(session),
        };
        for folder in self.storage().list_folders(names::BLOCKS)? {
            let Some(session) = names::parse_session(&folder).filter(|session| ended(*session)) else { continue };
            let (strays, _) = self.stray_blocks(state, session)?;
            report.orphans.extend(strays.into_iter().map(|object| (object.name, object.bytes)));
        }
        let mut strays = Vec::new();
        if alone {
            // While a checkpoint is running, a file may be one that it is writing.
            if let Some(_maintenance) = self.upkeep().try_lock() {
                strays = self.unfinished(|found| found)?;
            }
        } else if !self.setting().is_read_only() {
            strays = self.stray_log_objects()?;
            strays.extend(self.storage().unfinished("")?);
        }
        report.orphans.extend(strays.into_iter().map(|object| (object.name, object.bytes)));
        Ok(())
    }

    /// Judges missing blocks: a fault if the newest state refers to them, `SnapshotExpired` if it does not.
    fn judge_missing(&self, missing: Vec<(Address, Fault)>, report: &mut VerifyReport) -> Result<()> {
        if missing.is_empty() {
            return Ok(());
        }
        self.refresh()?;
        let state = self.current()?;
        let mut needed: BTreeSet<Address> = BTreeSet::new();
        for table in state.tables() {
            needed.extend(table?.addresses().copied());
        }
        for (address, fault) in missing {
            if !needed.contains(&address) {
                return Err(Error::snapshot_expired(format!("{}; it was reclaimed", fault.error)));
            }
            report.faults.push(fault);
        }
        Ok(())
    }

    /// Reads and checks the newest catalog snapshot; returns its size.
    fn verify_catalog(&self) -> Result<u64> {
        let others = self.setting().is_read_only() || self.setting().is_shared();
        let base = if others { self.commits().log().read()?.base } else { self.commits().log().base() };
        let Some(base) = base else { return Ok(0) };
        let index = recover::read_index(&**self.storage(), &base)?;
        let chunks = recover::read_chunks(&**self.storage(), &index)?;
        index.read(&chunks)?;
        Ok(u64::from(base.bytes) + chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>())
    }
}
