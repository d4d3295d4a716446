//! Which tables may be put into pages, and what is known of them there.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::State;
use crate::base::planted::{Bug, planted};
use crate::base::{Result, TableId, Timestamp, Version};
use crate::catalog::tables::TableSummary;
use crate::catalog::{FEATURE_TTL, Packed};
use crate::table::{PlanOptions, TableState, plan};

impl State {
    /// What a page says of a table.
    pub(in crate::catalog) fn figures_of(&self, table: &TableState) -> TableSummary {
        let is_planned = !self.trash.contains(table.id) && !planted(Bug::ForgetWaiting);
        let waits = || is_planned && !plan(table, &PlanOptions::default()).windows.is_empty();
        TableSummary {
            versions: table.versions.len() as u64,
            groups: table.groups.len() as u64,
            history_bytes: table.history_bytes(self.paths.contains_key(&table.id)),
            due: self.retention(table.id).due(&table.versions),
            waits: !table.parts.is_empty() || waits() || is_planned && table.waits_for_runs(),
        }
    }

    /// Bytes that no newest version of a table in the tree shows, without those of tables in the trash. Costs as much as has
    /// changed since the last catalog snapshot, and what is in the trash.
    pub fn history_bytes(&self) -> Result<u64> {
        let of = |table: &TableState| table.history_bytes(self.paths.contains_key(&table.id));
        let mut bytes = self.tables.figures().map(|figures| figures.history_bytes).sum::<u64>();
        for (packed, now) in self.tables.replaced() {
            bytes = bytes.saturating_sub(packed?.history_bytes);
            bytes += now.map_or(0, |table| if self.trash.contains(table.id) { 0 } else { of(table) });
        }
        for id in self.trash.tables().keys().filter(|id| !self.tables.is_open(**id)) {
            bytes = bytes.saturating_sub(self.tables.figures_of(*id)?.map_or(0, |figures| figures.history_bytes));
        }
        Ok(bytes)
    }

    /// The versions that retention removes at `now`, by table. Costs as much as there are tables that have changed since the
    /// last catalog snapshot, and pages in which something expires; after a retention was changed, O(tables).
    pub fn expired(&self, now: Timestamp) -> Result<Vec<(TableId, Vec<Version>)>> {
        let all = self.tables.doubted.is_some() && !planted(Bug::ForgetDue);
        let mut expired = Vec::new();
        for table in self.tables.read(|figures| all || figures.due.is_some_and(|due| due < now)) {
            let table = table?;
            let versions = self.expired_of(&table, now);
            if !versions.is_empty() {
                expired.push((table.id, versions));
            }
        }
        Ok(expired)
    }

    /// The versions of a table that retention removes at `now` and that no follower needs.
    pub fn expired_of(&self, table: &TableState, now: Timestamp) -> Vec<Version> {
        let mut expired = self.retention(table.id).expired(table.versions.iter(), now);
        if !expired.is_empty() {
            self.followers.spare(table, &mut expired, now);
        }
        expired
    }

    /// The same state, with the tables that are as they were in `written` in the pages that were written of it.
    #[must_use]
    pub fn with_pages(&self, written: &State, pages: &Arc<Packed>) -> Self {
        // It may have been moved, or taken out of the trash, since they were written.
        let described = |table: &Arc<TableState>| pages.says(table, &|table| self.figures_of(table)).unwrap_or(false);
        let stays = |table: &Arc<TableState>| table.has_moves() || !described(table) && !planted(Bug::KeepPages);
        let needed = |id: TableId| self.unsettled.contains(&id) || self.open_table(id).is_some_and(stays);
        Self { tables: self.tables.packed_as(&written.tables, pages, needed), ..self.clone() }
    }

    /// How many tables are decoded. O(1).
    pub fn open_tables_len(&self) -> usize {
        self.tables.open_len()
    }

    /// A table that has rows in memory, or that an ordinary checkpoint may change, or that has changed not long ago.
    pub fn open_table(&self, id: TableId) -> Option<&Arc<TableState>> {
        self.tables.get_open(id)
    }

    /// Whether rows that were written to a table belong to no commit yet.
    pub fn has_unsettled(&self, id: TableId) -> bool {
        self.open_table(id).is_some_and(|table| table.has_unsettled())
    }

    /// Whether rows of a table are in memory.
    pub fn has_parts(&self, id: TableId) -> bool {
        self.open_table(id).is_some_and(|table| !table.parts.is_empty())
    }

    /// The tables that are not in the tree: in the trash, or held by snapshots only.
    pub fn tables_off_tree(&self) -> impl Iterator<Item = Result<Arc<TableState>>> {
        let pinned = self.pins().map(|(_, id, _)| id);
        let ids: BTreeSet<TableId> = self.trash.tables().keys().copied().chain(pinned).collect();
        let unlinked = ids.into_iter().filter(|id| !self.paths.contains_key(id));
        unlinked.filter_map(|id| self.table(id).transpose())
    }

    /// Whether a table may have rows that expire.
    pub fn may_expire_rows(&self) -> bool {
        self.uses & FEATURE_TTL != 0
    }

    /// Whether a table is the same in both, or in neither. May return `false` even if it is.
    pub fn has_same_table(&self, other: &State, id: TableId) -> bool {
        self.tables.same_at(&other.tables, id)
    }
}
