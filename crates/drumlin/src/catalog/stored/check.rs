//! Checks that a state read from storage is consistent. Checksums find damage; this finds forged data, so that no later
//! code needs to guard against it.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::{BlockId, Error, Result, SessionId, TableId};
use crate::catalog::{Inline, Ledger, State, Totals};

/// How many tables are decoded to check a store when it is opened.
const CHECKED_MAX: u64 = 4096;

impl State {
    /// `Corrupt` if parts of the state contradict each other. O(nodes + row groups); but of more than `CHECKED_MAX` tables
    /// only what is decoded anyway is looked at: each of the others is checked by itself when it is decoded. Returns whether
    /// what the pages say of the tables looked at is so.
    pub fn check(&self) -> Result<bool> {
        match self.totals().tables <= CHECKED_MAX {
            true => self.check_all(),
            false => self.check_tree(None).map(|()| true),
        }
    }

    /// The same, of all tables.
    pub fn check_all(&self) -> Result<bool> {
        let bad = |what: String| Err(Error::corrupt(format!("catalog: {what}")));
        let mut ledger = Ledger::default();
        for (block, used) in self.ledger.blocks() {
            ledger.add_block(*block, used.bytes)?;
        }
        let mut named = BTreeMap::new();
        let (mut ids, mut pins) = (BTreeSet::new(), BTreeMap::new());
        let (mut totals, mut said) = (Totals::default(), true);
        for table in self.tables() {
            let table = table?;
            if table.id >= self.next_table() {
                return bad(format!("table {} has an impossible number", table.id));
            }
            table.check()?;
            ids.insert(table.id);
            totals.add(&table);
            // Nothing depends on what is said of tables that are decoded, or in the trash.
            let depends = !self.tables.is_open(table.id) && !self.trash.contains(table.id);
            said &= !depends || self.tables.says(&table, &|table| self.figures_of(table))?;
            pins.extend(table.pins.iter().map(|(version, pin)| ((table.id, *version), pin.holds)));
            for address in table.addresses() {
                if *named.entry(*address).and_modify(|n| *n += 1).or_insert(0_u64) == 0 {
                    ledger.add(address)?;
                } else {
                    ledger.share(address);
                }
            }
        }
        let known = |(block, inline): (&BlockId, &Inline)| {
            self.ledger.blocks.get(block).is_some_and(|used| used.bytes == inline.0.len() as u64)
        };
        if !self.ledger.inline().all(known) {
            return bad("a block held in memory is not in use, or has another size".into());
        }
        if !self.ledger.same_use(&ledger) {
            return bad("the use of blocks does not match the tables".into());
        }
        let mut held: BTreeMap<(TableId, crate::base::Version), u32> = BTreeMap::new();
        for (path, id, version) in self.pins() {
            *held.entry((id, version)).or_insert(0) += 1;
            if !pins.contains_key(&(id, version)) {
                return bad(format!("a snapshot holds a version of '{path}' that does not exist"));
            }
        }
        if totals != self.totals() {
            return bad(format!("there are {totals}, but {} according to their pages", self.totals()));
        }
        if pins != held {
            return bad("the versions held do not match the snapshots".into());
        }
        let impossible = |hold: &SessionId| *hold > self.sessions.last || self.sessions.is_open(*hold);
        if let Some(hold) = self.holds.open.keys().find(|hold| impossible(hold)) {
            return bad(format!("hold {hold} has an impossible number"));
        }
        if self.presences.open.keys().any(|number| *number > self.presences.last) {
            return bad("a presence has an impossible number".into());
        }
        self.check_tree(Some(&ids))?;
        Ok(said)
    }

    /// What pages say of tables is found out again with the next snapshot: builds of before could write what is not so.
    pub fn doubt_pages(&mut self) {
        self.tables.doubted = Some(self.seq);
    }

    /// Checks the tree, and that tables of it and of the trash are among those with `ids`, if these are known.
    fn check_tree(&self, ids: Option<&BTreeSet<TableId>>) -> Result<()> {
        let is_missing = |id: TableId| ids.is_some_and(|ids| !ids.contains(&id));
        let bad = |what: String| Err(Error::corrupt(format!("catalog: {what}")));
        let mut tables = 0;
        let mut stray = None;
        self.tree.each(|path, node| {
            if let Some(id) = node.table() {
                tables += 1;
                let linked = self.path_of(id).is_some_and(|known| known.as_str() == path);
                if !linked || is_missing(id) || self.trash.contains(id) {
                    stray = Some(format!("'{path}' holds table {id}, which does not exist"));
                }
            }
            if let Some(number) = node.presence()
                && !self.presences.is_open(number)
            {
                stray = Some(format!("'{path}' lives on presence {number}, which does not exist"));
            }
        });
        if let Some(stray) = stray {
            return bad(stray);
        }
        if tables != self.linked() {
            return bad("tables have paths that the tree does not have".into());
        }
        self.covers.check(&self.snapshots, (self.seq, self.last_table), ids)?;
        match self.trash.tables().keys().find(|id| is_missing(**id)) {
            Some(id) => bad(format!("table {id} in the trash does not exist")),
            None => self.check_definitions(),
        }
    }

    fn check_definitions(&self) -> Result<()> {
        let bad = |e: Error| Error::corrupt(format!("catalog: {}", e.message()));
        self.views().iter().try_for_each(|(_, view)| view.rule().check()).map_err(bad)?;
        self.triggers.values().try_for_each(|trigger| trigger.filter.check()).map_err(bad)
    }
}
