//! The state of a whole store, and `apply`: the only way it changes.
//!
//! A value of persistent maps: a reader takes an `Arc<State>` and is never blocked nor sees half a commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use super::{Effect, Ledger, Path, Pattern, Retention, Transaction, Tree};
use crate::base::{EntryId, Error, Result, Seq, SessionId, TableId, Timestamp, Version};
use crate::table::{Rewrite, Table};

/// Format features that this build knows; an entry that needs another is refused.
pub const FEATURES_KNOWN: u64 = 0;

/// The processes that write blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The last number given.
    pub last: SessionId,
    /// Sessions below this have ended: what they wrote and nothing refers to is garbage.
    pub fenced_below: SessionId,
}

/// A dropped table that can still be taken back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trash {
    /// Where it was.
    pub path: Path,
    /// When it was dropped.
    pub time: Timestamp,
}

/// A name that holds versions of tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When it was taken.
    pub time: Timestamp,
    /// What it holds, by the path that the table had.
    pub pins: BTreeMap<Path, (TableId, Version)>,
}

/// Everything a store knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The last commit applied.
    pub seq: Seq,
    /// Its time.
    pub time: Timestamp,
    /// The last entry applied, so that a retry is recognised.
    pub entry: EntryId,
    /// Writing processes.
    pub session: Session,
    /// Paths.
    pub tree: Tree,
    /// Dropped tables that can still be taken back.
    #[serde(with = "crate::base::persistent::ordered_map")]
    pub trash: OrdMap<TableId, Trash>,
    /// Snapshots by name.
    #[serde(with = "crate::base::persistent::ordered_map")]
    pub snapshots: OrdMap<String, Arc<Snapshot>>,
    /// The use of blocks.
    pub ledger: Ledger,
    #[serde(with = "crate::base::persistent::ordered_map")]
    tables: OrdMap<TableId, Arc<Table>>,
    /// Where each table is in the tree.
    #[serde(with = "crate::base::persistent::ordered_map")]
    paths: OrdMap<TableId, Path>,
    last_table: TableId,
}

impl State {
    /// The table with this id: in the tree, in the trash, or held by snapshots alone.
    pub fn table(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables.get(&id)
    }

    /// All tables, those in the trash and those held by snapshots alone too.
    pub fn tables(&self) -> impl Iterator<Item = (&TableId, &Arc<Table>)> {
        self.tables.iter()
    }

    /// Where a table is in the tree.
    pub fn path_of(&self, id: TableId) -> Option<&Path> {
        self.paths.get(&id)
    }

    /// How many tables are in the tree.
    pub(super) fn linked(&self) -> usize {
        self.paths.len()
    }

    /// The table at a path.
    pub fn table_at(&self, path: &Path) -> Option<&Arc<Table>> {
        self.tables.get(&self.tree.get(path)?.table?)
    }

    /// The tables whose paths match, in path order.
    pub fn tables_matching<'a>(&'a self, pattern: &'a Pattern) -> impl Iterator<Item = (&'a Path, &'a Arc<Table>)> {
        let table = |node: &super::Node| self.tables.get(&node.table?);
        self.tree.matching(pattern).filter_map(move |(path, node)| Some((path, table(node)?)))
    }

    /// The number that the next table must have.
    pub fn next_table(&self) -> TableId {
        TableId(self.last_table.0 + 1)
    }

    /// The number that the next session must have.
    pub fn next_session(&self) -> SessionId {
        SessionId(self.session.last.0 + 1)
    }

    /// The retention of a table.
    pub fn retention(&self, id: TableId) -> Retention {
        self.paths.get(&id).map_or(Retention::KeepAll, |path| self.tree.retention(path))
    }

    /// Marks an entry, whose transactions were applied, as applied.
    pub fn finish(&mut self, seq: Seq, time: Timestamp, id: EntryId) {
        self.seq = seq;
        self.time = time;
        self.entry = id;
    }

    /// Applies a transaction of the entry `seq`, written at `time`: all of it, or, with an error, nothing.
    pub fn apply(&mut self, transaction: &Transaction, seq: Seq, time: Timestamp) -> Result<()> {
        let mut next = self.clone();
        for effect in &transaction.effects {
            next.apply_effect(effect, seq, time)?;
        }
        *self = next;
        Ok(())
    }

    fn apply_effect(&mut self, effect: &Effect, seq: Seq, time: Timestamp) -> Result<()> {
        match effect {
            Effect::OpenSession { session, fence } => {
                if *session != self.next_session() {
                    return Err(Error::conflict(format!("session {session} is not the next")));
                }
                self.session.last = *session;
                if *fence {
                    self.session.fenced_below = *session;
                }
            }
            Effect::PutNode { path, payload } => {
                self.tree.update(path, seq, |node| {
                    node.payload = Some(Arc::new(payload.clone()));
                    node.payload_version += 1;
                });
            }
            Effect::DeleteNode { path } => {
                if let Some((held, _)) = self.tree.subtree(path.as_str()).find(|(_, node)| node.table.is_some()) {
                    return Err(Error::invalid(format!("'{held}' holds a table; drop the table instead")));
                }
                self.tree.remove(path);
            }
            Effect::SetRetention { path, retention } => {
                self.tree.update(path, seq, |node| node.retention = *retention);
            }
            Effect::SetDefaultRetention { retention } => self.tree.default_retention = *retention,
            Effect::CreateTable { path, table, spec } => {
                if *table != self.next_table() {
                    return Err(Error::conflict(format!("table id {table} is not the next")));
                }
                self.last_table = *table;
                self.tables.insert(*table, Arc::new(Table::new(*table, spec.clone())));
                self.link(path, *table, seq)?;
            }
            Effect::AddBlocks { blocks } => {
                for (block, bytes) in blocks {
                    self.ledger.add_block(*block, *bytes)?;
                }
            }
            Effect::ChangeTable { table, change } => {
                let next = self.get(*table)?.change(change, seq, time)?;
                change.groups.iter().try_for_each(|group| self.ledger.add(&group.address))?;
                self.tables.insert(*table, Arc::new(next));
            }
            Effect::RewriteTable { table, rewrite } => self.rewrite(*table, rewrite, seq)?,
            Effect::DeleteVersions { table, versions } => {
                let (mut next, copies) = self.get(*table)?.delete_versions(versions, seq)?;
                copies.iter().for_each(|address| self.ledger.share(address));
                self.shed(&mut next, seq)?;
                self.tables.insert(*table, Arc::new(next));
            }
            Effect::DropTable { table } => {
                let missing = || Error::not_found(format!("table {table} is not in the tree"));
                let path = self.paths.remove(table).ok_or_else(missing)?;
                self.tree.update(&path, seq, |node| node.table = None);
                self.trash.insert(*table, Trash { path, time });
            }
            Effect::UndropTable { table, path } => {
                if self.trash.remove(table).is_none() {
                    return Err(Error::not_found(format!("table {table} is not in the trash")));
                }
                self.link(path, *table, seq)?;
            }
            Effect::Condemn { tables } => {
                for table in tables {
                    if self.trash.remove(table).is_none() {
                        return Err(Error::not_found(format!("table {table} is not in the trash")));
                    }
                    self.unlinked(*table, seq)?;
                }
            }
            Effect::Reclaimed { blocks } => blocks.iter().for_each(|block| self.ledger.reclaimed(*block)),
            Effect::PutSnapshot { name, pins } => self.put_snapshot(name, pins, time)?,
            Effect::DropSnapshot { name } => {
                let missing = || Error::not_found(format!("snapshot '{name}' does not exist"));
                let snapshot = self.snapshots.remove(name).ok_or_else(missing)?;
                for (id, version) in snapshot.pins.values() {
                    let mut table = Table::clone(self.get(*id)?);
                    table.unpin(*version);
                    let gone = !self.paths.contains_key(id) && !self.trash.contains_key(id);
                    if !gone {
                        self.shed(&mut table, seq)?;
                    }
                    self.tables.insert(*id, Arc::new(table));
                    if gone {
                        self.unlinked(*id, seq)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn get(&self, id: TableId) -> Result<&Arc<Table>> {
        self.tables.get(&id).ok_or_else(|| Error::not_found(format!("table {id} is gone")))
    }

    fn link(&mut self, path: &Path, id: TableId, seq: Seq) -> Result<()> {
        if self.table_at(path).is_some() {
            return Err(Error::already_exists(format!("'{path}' holds a table")));
        }
        self.tree.update(path, seq, |node| node.table = Some(id));
        self.paths.insert(id, path.clone());
        Ok(())
    }

    /// Frees what no retained version of `table` sees.
    fn shed(&mut self, table: &mut Table, seq: Seq) -> Result<()> {
        table.shed(seq).iter().try_for_each(|address| self.ledger.release(address, seq))
    }

    /// A table is neither in the tree nor in the trash: only snapshots hold it, if any.
    fn unlinked(&mut self, id: TableId, seq: Seq) -> Result<()> {
        let mut table = Table::clone(self.get(id)?);
        table.keep_pins_only();
        self.shed(&mut table, seq)?;
        if table.pins.is_empty() {
            self.tables.remove(&id);
        } else {
            self.tables.insert(id, Arc::new(table));
        }
        Ok(())
    }

    fn rewrite(&mut self, id: TableId, rewrite: &Rewrite, seq: Seq) -> Result<()> {
        let (next, inputs) = self.get(id)?.rewrite(rewrite, seq)?;
        rewrite.outputs.iter().try_for_each(|group| self.ledger.add(&group.address))?;
        inputs.iter().try_for_each(|address| self.ledger.release(address, seq))?;
        self.tables.insert(id, Arc::new(next));
        Ok(())
    }

    fn put_snapshot(&mut self, name: &str, pins: &[(Path, TableId, Version)], time: Timestamp) -> Result<()> {
        if self.snapshots.contains_key(name) {
            return Err(Error::already_exists(format!("snapshot '{name}' exists")));
        }
        for (_, id, version) in pins {
            let mut table = Table::clone(self.get(*id)?);
            table.pin(*version)?;
            self.tables.insert(*id, Arc::new(table));
        }
        let pins = pins.iter().map(|(path, id, version)| (path.clone(), (*id, *version))).collect();
        self.snapshots.insert(name.to_owned(), Arc::new(Snapshot { time, pins }));
        Ok(())
    }
}
