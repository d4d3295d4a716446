//! The best state that can be made from a damaged catalog: what can be read, made consistent, and the effects that still
//! apply to it. Everything that is left out is reported.
//!
//! Pure. The resulting state passes [`State::check`] or is refused there.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use imbl::OrdMap;

use crate::base::{BlockId, Error, Result, Seq, SessionId, TableId, Timestamp, Version};
use crate::catalog::{
    Effect, Ledger, Path, Sessions, Snapshot, SnapshotCover, SnapshotCovers, State, TableMap, TransactionRecord,
};
use crate::table::{PinnedVersion, TableState};

/// Something that had to be left out, or put elsewhere, to make a state consistent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mended {
    /// A table is lost; it was at this path, if known.
    TableGone(TableId, Option<Path>),
    /// A table whose path is lost is now at this one.
    TablePlaced(TableId, Path),
    /// What a snapshot held at a path is lost.
    SnapshotPart(String, Path),
    /// Versions held by a snapshot whose name is lost are now held by one of this name.
    SnapshotMade(String),
}

/// Where tables with lost paths are put, and the name of snapshots with lost names.
const PLACE: &str = "salvaged";

impl State {
    /// The empty state before `first`, the first commit of a log that is all there is.
    pub fn before(first: Seq) -> Self {
        let mut state = Self::default();
        state.seq = Seq(first.0.saturating_sub(1));
        state
    }

    /// Makes a partly read state consistent; returns what had to be changed for that.
    pub fn mend(&mut self) -> Result<Vec<Mended>> {
        let mut mended = Vec::new();
        let tables: Vec<Arc<TableState>> = self.tables.iter().collect::<Result<_>>()?;
        let mut unreadable = Vec::new();
        let mut readable = OrdMap::new();
        for table in tables {
            match table.check() {
                Ok(()) => drop(readable.insert(table.id, table)),
                Err(_) => unreadable.push(table.id),
            }
        }
        let greatest = readable.get_max().map_or(TableId(0), |(id, _)| *id);
        self.tables = TableMap::of(readable);
        self.last_table = self.last_table.max(greatest);
        self.unlink_missing(&mut mended);
        let told: BTreeSet<TableId> = mended.iter().filter_map(Mended::table).collect();
        mended.extend(unreadable.into_iter().filter(|id| !told.contains(id)).map(|id| Mended::TableGone(id, None)));
        self.count_pins(&mut mended)?;
        self.use_again(None)?;
        self.restore()?;
        self.place_strays(&mut mended);
        Ok(mended)
    }

    /// Removes tables that do not exist from the tree and the trash, and those that are there twice.
    fn unlink_missing(&mut self, mended: &mut Vec<Mended>) {
        let mut seen = BTreeSet::new();
        let mut missing = Vec::new();
        self.tree.each(|path, node| {
            if let Some(id) = node.table()
                && (self.tables.get_open(id).is_none() || !seen.insert(id))
            {
                missing.push((id, path.to_owned()));
            }
        });
        for (id, path) in missing {
            let seq = self.tree.get(&path).map_or(self.seq, |node| node.seq);
            self.tree.edit(&path, seq, |node| node.edit_extra(|extra| extra.table = None));
            mended.push(Mended::TableGone(id, Some(Path::trusted(&path))));
        }
        for (id, dropped) in std::mem::take(&mut self.trash).tables() {
            match self.tables.get_open(*id).is_some() {
                true if seen.contains(id) => {}
                true => self.trash.put(*id, dropped.path.clone(), dropped.time),
                false => mended.push(Mended::TableGone(*id, Some(dropped.path.clone()))),
            }
        }
    }

    /// Makes snapshots and the versions that they hold consistent.
    fn count_pins(&mut self, mended: &mut Vec<Mended>) -> Result<()> {
        let mut held: BTreeMap<(TableId, Version), u32> = BTreeMap::new();
        let snapshots = std::mem::take(&mut self.snapshots);
        let covers = std::mem::take(&mut self.covers);
        for (name, snapshot) in snapshots {
            let mut pins = snapshot.pins.clone();
            if let Some(cover) = covers.get(&name) {
                pins.extend(self.held_by((&name, cover), &covers, mended));
            }
            pins.retain(|path, (id, version)| {
                let there = self.tables.get_open(*id).is_some_and(|table| table.version(*version).is_some());
                if !there {
                    mended.push(Mended::SnapshotPart(name.clone(), path.clone()));
                }
                there
            });
            pins.values().for_each(|pin| *held.entry(*pin).or_insert(0) += 1);
            self.snapshots.insert(name, Arc::new(Snapshot { time: snapshot.time, pins }));
        }
        let mut unnamed: Vec<(TableId, Version)> = Vec::new();
        for table in self.tables.clone().open() {
            let id = table.id;
            let holds = |version: Version| held.get(&(id, version)).copied().unwrap_or(0);
            let versions = held.range((id, Version(0))..=(id, Version(u64::MAX))).map(|((_, version), _)| *version);
            let missing: Vec<Version> = versions.filter(|version| !table.pins.contains_key(version)).collect();
            unnamed.extend(table.pins.keys().filter(|version| holds(**version) == 0).map(|version| (id, *version)));
            if missing.is_empty() && table.pins.iter().all(|(version, pin)| pin.holds == holds(*version)) {
                continue;
            }
            let mut own = TableState::clone(table);
            for version in missing {
                if let Some(record) = own.version(version).cloned() {
                    own.pins.insert(version, PinnedVersion { record, holds: 0, detached: false });
                }
            }
            own.pins.iter_mut().for_each(|(version, pin)| pin.holds = holds(*version).max(1));
            self.tables.put(own)?;
        }
        // One snapshot holds one version of a table.
        let mut round: BTreeMap<TableId, u64> = BTreeMap::new();
        let mut made: BTreeMap<u64, Snapshot> = BTreeMap::new();
        for (id, version) in unnamed {
            let n = round.entry(id).or_insert(0);
            *n += 1;
            let snapshot = made.entry(*n).or_insert(Snapshot { time: self.time, pins: BTreeMap::new() });
            snapshot.pins.insert(Path::trusted(&format!("{PLACE}/{id}")), (id, version));
        }
        for snapshot in made.into_values() {
            let name = free(PLACE, |name| self.snapshots.contains_key(name));
            mended.push(Mended::SnapshotMade(name.clone()));
            self.snapshots.insert(name, Arc::new(snapshot));
        }
        Ok(())
    }

    /// What a cover held, as far as it is known. A table that has changed since must have left it, even if nothing says so any more.
    fn held_by(
        &self,
        (name, cover): (&str, &SnapshotCover),
        covers: &SnapshotCovers,
        mended: &mut Vec<Mended>,
    ) -> Vec<(Path, (TableId, Version))> {
        let mut held = Vec::new();
        self.tree.each(|path, node| {
            let path = Path::trusted(path);
            let Some(id) = node.table().filter(|id| covers.covers(cover, *id, &path)) else { return };
            match self.tables.get_open(id).and_then(|table| table.newest()) {
                Some(newest) if newest.seq <= cover.id.seq => held.push((path, (id, newest.version))),
                Some(_) if covers.pin_at(cover, &path).is_none() => {
                    mended.push(Mended::SnapshotPart(name.to_owned(), path));
                }
                _ => {}
            }
        });
        // Where both are known, what was pinned is so.
        held.extend(covers.pins_of(cover).map(|(path, pin)| (path.clone(), *pin)));
        held
    }

    /// Finds a place for tables that were in the tree, as their versions show, but no longer are.
    fn place_strays(&mut self, mended: &mut Vec<Mended>) {
        let is_stray = |table: &&Arc<TableState>| {
            let unheld = table.versions.iter().any(|record| !table.pins.contains_key(&record.version));
            unheld && !self.paths.contains_key(&table.id) && !self.trash.contains(table.id)
        };
        let strays: Vec<TableId> = self.tables.open().filter(is_stray).map(|table| table.id).collect();
        for id in strays {
            let known = self.snapshots.values().flat_map(|snapshot| &snapshot.pins);
            let known = known.filter(|(_, (held, _))| *held == id).map(|(path, _)| path.to_string()).next();
            let taken = |path: &str| self.tree.get(path).is_some_and(|node| node.table().is_some());
            let path = known.filter(|path| !taken(path)).unwrap_or_else(|| free(&format!("{PLACE}/{id}"), taken));
            self.tree.edit(&path, self.seq, |node| node.edit_extra(|extra| extra.table = Some(id)));
            self.paths.insert(id, Path::trusted(&path));
            mended.push(Mended::TablePlaced(id, Path::trusted(&path)));
        }
    }

    /// Recounts the use of blocks from what tables refer to. `blocks` are their sizes, where they are known.
    fn use_again(&mut self, blocks: Option<&[(BlockId, u64)]>) -> Result<()> {
        let mut ends: BTreeMap<BlockId, u64> = BTreeMap::new();
        for address in self.tables.open().flat_map(|table| table.addresses()) {
            let end = ends.entry(address.block).or_insert(0);
            *end = (*end).max(address.offset.saturating_add(address.bytes()));
        }
        for (block, inline) in self.ledger.inline() {
            ends.entry(*block).and_modify(|bytes| *bytes = inline.0.len() as u64);
        }
        ends.extend(blocks.into_iter().flatten().copied());
        let mut ledger = Ledger::default();
        for (block, bytes) in &ends {
            ledger.add_block(*block, *bytes)?;
        }
        let mut seen = BTreeSet::new();
        for address in self.tables.open().flat_map(|table| table.addresses()) {
            match seen.insert(*address) {
                true => ledger.add(address)?,
                false => ledger.share(address),
            }
        }
        ledger.inline = std::mem::take(&mut self.ledger.inline);
        ledger.inline = ledger.inline.into_iter().filter(|(block, _)| ends.contains_key(block)).collect();
        ledger.now = self.time;
        self.ledger = ledger;
        Ok(())
    }

    /// Applies those effects of an entry that can be applied; returns what the others are, and why they cannot.
    pub fn apply_what_applies(
        &mut self,
        transactions: &[TransactionRecord],
        seq: Seq,
        time: Timestamp,
    ) -> Vec<(Option<TableId>, String)> {
        let mut failures = Vec::new();
        for effect in transactions.iter().flat_map(|transaction| &transaction.effects) {
            if let Effect::CreateTable { table, .. } = effect
                && *table > self.next_table()
            {
                // Nothing is left of the tables in between.
                self.last_table = TableId(table.0 - 1);
            }
            let mut next = self.clone();
            let applied = catch_unwind(AssertUnwindSafe(|| next.apply_effect(effect, seq, time)));
            match applied.unwrap_or_else(|_| Err(Error::corrupt("it cannot be applied"))) {
                Ok(()) => *self = next,
                // The next writer opens one of its own.
                Err(_) if matches!(effect, Effect::OpenSession { .. }) => {}
                Err(e) => {
                    let table = effect.table();
                    failures.push((table, format!("{}: {}", effect.name(), e.message())));
                }
            }
        }
        failures
    }

    /// The same tables with other row groups, all in the blocks `written`, as a store's first state: no session is open,
    /// and nothing waits to be deleted.
    pub fn relocated(
        &self,
        tables: Vec<Arc<TableState>>,
        written: &[(BlockId, u64)],
        session: SessionId,
    ) -> Result<Self> {
        let mut next = self.clone();
        next.ledger = Ledger::default();
        next.tables.open_all()?;
        tables.into_iter().try_for_each(|table| next.tables.put(TableState::clone(&table)))?;
        next.use_again(Some(written))?;
        next.sessions = Sessions { last: session, open: OrdMap::new(), fenced: OrdMap::new() };
        Ok(next)
    }

    /// Numbers versions for the rows written by key that have none.
    pub fn number_rows(&mut self) -> Result<()> {
        let active = self.open_tables().filter(|table| table.active().is_some());
        let freeze: Vec<Effect> = active.map(|table| Effect::FreezeRows { table: table.id }).collect();
        let (seq, time) = (self.seq.next(), self.time);
        if freeze.is_empty() {
            return Ok(());
        }
        self.apply(&TransactionRecord { effects: freeze }, seq, time)?;
        self.seq = seq;
        Ok(())
    }
}

impl Mended {
    /// The table that is lost.
    fn table(&self) -> Option<TableId> {
        match self {
            Mended::TableGone(id, _) => Some(*id),
            _ => None,
        }
    }
}

/// The name itself, or the name followed by the smallest number that makes it free.
fn free(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = |n: u64| if n == 1 { name.to_owned() } else { format!("{name}-{n}") };
    (1..).map(numbered).find(|name| !taken(name)).expect("there are fewer names than numbers")
}
