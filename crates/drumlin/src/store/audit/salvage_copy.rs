//! Salvage, the second half: copies the row groups of a state to a new store, each checked and decoded once, and removes
//! those that cannot be read from the state.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::DataType;
use bytes::Bytes;

use super::salvage_report::{Loss, LossKind, LostRows, SalvageReport};
use crate::base::{BlockId, Env, Error, ErrorKind, Meter, Result, SessionId, Task, Version};
use crate::block::{Address, BlockNumbers, BlockReader, BlockWriter, EncodedRowGroup, MissingBlock};
use crate::catalog::State;
use crate::segment::{Form, decode};
use crate::storage::{InlineStorage, Storage};
use crate::store::Options;
use crate::table::{GroupId, History, RowGroup, TableState, history_schema};

/// A layer of a row group to be copied: how many rows it has, and of what types its columns are.
type LayerShape = (u32, Vec<DataType>);

impl State {
    /// The same state with its row groups in `target`, without those that cannot be read in `source`; reports each of
    /// these.
    #[expect(clippy::too_many_arguments, reason = "from where, to where, by what means, and what is reported")]
    pub(in crate::store) fn copied(
        &self,
        source: &Arc<InlineStorage>,
        target: &Arc<InlineStorage>,
        env: &Env,
        options: &Options,
        task: &Task,
        report: &mut SalvageReport,
        losses: &mut Vec<Loss>,
    ) -> Result<State> {
        let blocks = self.wanted()?;
        let (groups, bytes) =
            blocks.values().flat_map(BTreeMap::keys).fold((0, 0), |(n, sum), address| (n + 1, sum + address.bytes()));
        let session = SessionId(self.sessions.last.0 + 1);
        let reader = BlockReader::new(source.clone(), 0, MissingBlock::Damage);
        let mut writer = BlockWriter::new(target.clone(), Arc::new(BlockNumbers::new(session)), options.block_bytes);
        let mut meter = Meter::new(task, &*env.clock, groups, bytes);
        let mut moved: BTreeMap<Address, Address> = BTreeMap::new();
        let mut unreadable: BTreeMap<Address, String> = BTreeMap::new();
        env.pool.ordered(
            blocks.into_values().flatten().map(Ok),
            |(address, _)| address.bytes(),
            env.pool.threads() * 2,
            options.memory_bytes / 8,
            |(address, wanted)| {
                task.cancel.check()?;
                match read_group(&reader, &address, &wanted) {
                    // The next attempt may reach it.
                    Err(e) if source.is_remote() && e.kind() == ErrorKind::Unavailable => Err(e),
                    read => Ok((address, read)),
                }
            },
            |(address, read)| {
                match read {
                    Ok(group) => {
                        meter.done.rows += u64::from(group.rows);
                        moved.insert(address, writer.push(group)?);
                        report.groups += 1;
                        report.bytes += address.bytes();
                    }
                    Err(e) => drop(unreadable.insert(address, e.to_string())),
                }
                meter.done.bytes += address.bytes();
                meter.step(1, address.bytes())
            },
        )?;
        let written: Vec<(BlockId, u64)> =
            writer.finish()?.iter().map(|written| (written.block, written.bytes)).collect();
        let mut tables = Vec::new();
        for table in self.tables() {
            let table = table?;
            let id = table.id;
            let mut gone = BTreeSet::new();
            for group in &table.groups {
                if let Some(why) = group.addresses().find_map(|address| unreadable.get(address)) {
                    gone.insert(group.id);
                    losses.push(loss_of(self, &table, group, why));
                }
            }
            let mut table = if gone.is_empty() { TableState::clone(&table) } else { without_groups(&table, &gone) };
            // Runs of indexes are made again.
            table.forget_runs();
            // A history may lack rows that its version had.
            let lost = |history: &History| {
                let unread = history.groups.iter().find_map(|(address, _)| unreadable.get(address).cloned());
                unread.or_else(|| (!gone.is_empty()).then(|| "rows of its version are lost".to_owned()))
            };
            for (version, why) in table.drop_histories(lost) {
                let why = format!("the times between version {version} and the one before it: {why}");
                losses.push(Loss::new(LossKind::Rows, why).at(self.path_of(id)));
            }
            let addresses: BTreeSet<Address> = table.addresses().copied().collect();
            let moves: Vec<(Address, Address)> = addresses.into_iter().map(|from| (from, moved[&from])).collect();
            let (next, _) = table.moved(&moves).map_err(|e| e.context(format!("table {id}")))?;
            tables.push(Arc::new(next));
        }
        let state = self.relocated(tables, &written, session)?;
        writer.keep();
        Ok(state)
    }
}

impl State {
    /// What its tables have in blocks.
    fn wanted(&self) -> Result<BTreeMap<BlockId, BTreeMap<Address, LayerShape>>> {
        let mut blocks: BTreeMap<BlockId, BTreeMap<Address, LayerShape>> = BTreeMap::new();
        for table in self.tables() {
            let table = table?;
            for group in &table.groups {
                for layer in group.layers() {
                    let wanted = (group.rows, layer.types(&table.schemas));
                    blocks.entry(layer.address.block).or_default().insert(*layer.address, wanted);
                }
            }
            for history in &table.instants.histories {
                let schema = history_schema(&table.schemas[history.schema as usize].0);
                let types: Vec<DataType> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
                for (address, rows) in &history.groups {
                    blocks.entry(address.block).or_default().insert(*address, (*rows, types.clone()));
                }
            }
        }
        Ok(blocks)
    }
}

/// Reads a row group, and decodes every column of it.
fn read_group(reader: &BlockReader, address: &Address, (rows, types): &LayerShape) -> Result<EncodedRowGroup> {
    let read = || {
        let group = reader.row_group_for_salvage(address)?;
        if group.rows != *rows || group.segments.len() != types.len() {
            return Err(Error::corrupt(format!("block {}: the directory does not match its row group", address.block)));
        }
        for (at, (segment, data_type)) in group.segments.iter().zip(types).enumerate() {
            decode(Bytes::from(segment.bytes.clone()), *rows as usize, data_type, Form::Exact)
                .map_err(|e| e.context(format!("block {}: column {at}", address.block)))?;
        }
        Ok(group)
    };
    let read = catch_unwind(AssertUnwindSafe(read));
    read.unwrap_or_else(|_| Err(Error::corrupt(format!("block {}: a row group cannot be decoded", address.block))))
}

/// Which rows of which versions go with a row group.
fn loss_of(state: &State, table: &TableState, group: &RowGroup, why: &str) -> Loss {
    let path = state.path_of(table.id).or_else(|| state.trash.get(table.id).map(|trash| &trash.path));
    let listed = table.versions.iter().map(|record| record.version);
    let versions: BTreeSet<Version> = listed.chain(table.pins.keys().copied()).collect();
    let lost = versions.into_iter().filter_map(|version| {
        let rows = table.visible(group, version).count(group.rows);
        let before = table.groups.iter().take_while(|other| other.id != group.id);
        let first = || before.map(|other| table.visible(other, version).count(other.rows)).sum();
        (rows > 0).then(|| LostRows { version, first: first(), rows })
    });
    let loss = Loss::new(LossKind::Rows, why).at(path);
    Loss { group: Some(group.id.0), versions: lost.collect(), ..loss }
}

/// Removes row groups from a table, and counts the rows of its versions again.
fn without_groups(table: &TableState, gone: &BTreeSet<GroupId>) -> TableState {
    let mut next = table.clone();
    next.groups.retain(|group| !gone.contains(&group.id));
    let listed = next.versions.iter().chain(next.pins.values().map(|pin| &pin.record));
    let countable = listed.map(|record| record.version).filter(|version| !next.depends_on_parts(*version));
    let counted: BTreeMap<Version, u64> = countable.map(|version| (version, next.stored_rows(version))).collect();
    for record in next.versions.iter_mut().chain(next.pins.values_mut().map(|pin| &mut pin.record)) {
        let record = Arc::make_mut(record);
        record.rows = counted.get(&record.version).copied().unwrap_or(record.rows);
    }
    next
}
