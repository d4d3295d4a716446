//! Dropping tables: one commit moves them to the trash, from which they can be restored until they are reclaimed.

use std::collections::BTreeSet;

use super::versions::Missing;
use crate::base::{Error, Result, TableId, Timestamp};
use crate::catalog::{Effect, Footprint, Path, Pattern, Read, State};
use crate::store::nouns::patterns::IntoPatterns;
use crate::store::read::resolve::near_table;
use crate::store::upkeep::reclaim::UNFINISHED;
use crate::store::{Place, ReclaimOptions, ReclaimReport, Store};

/// What a drop did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropReport {
    /// The paths dropped, in order.
    pub paths: Vec<String>,
    /// Versions dropped with them.
    pub versions: u64,
    /// Bytes that a reclaim can free, unless other tables share their blocks and no snapshot holds them.
    pub bytes: u64,
    /// Paths and patterns that named no table, where that is ignored.
    pub missing: Vec<String>,
}

/// A dropped table that can be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrashItem {
    /// The table.
    pub table: TableId,
    /// Where it was.
    pub path: String,
    /// When it was dropped.
    pub time: Timestamp,
    /// Rows of its newest version, and those written by key since.
    pub rows: u64,
    /// Bytes of its row groups.
    pub bytes: u64,
}

impl Store {
    /// Drops tables as [`crate::store::Tables::drop`] does, and gives them up for good in the same commit; then deletes their
    /// blocks, and whatever else waits to be deleted, and records what is gone in a second commit. They cannot be restored.
    ///
    /// # Errors
    /// As [`crate::store::Tables::drop`]. Once the tables are dropped nothing fails: what could not be deleted is in the report.
    pub fn drop_and_reclaim(
        &self,
        paths: impl IntoPatterns,
        missing: Missing,
        options: &ReclaimOptions,
    ) -> Result<(DropReport, ReclaimReport)> {
        let patterns = some(paths.into_patterns()?)?;
        let _one_at_a_time = self.upkeep().lock()?;
        let dropped = self.commit_in_turn(move |draft| {
            let (mut effects, report) = drop_tables(draft.state(), &patterns, missing)?;
            let tables = effects.iter().filter_map(|effect| match effect {
                Effect::DropTable { table } => Some(*table),
                _ => None,
            });
            let condemned = Effect::Condemn { tables: tables.collect() };
            effects.extend((!effects.is_empty()).then_some(condemned));
            draft.apply(effects)?;
            Ok(report)
        })?;
        let mut reclaimed = ReclaimReport { tables: dropped.paths.len() as u64, ..ReclaimReport::default() };
        // The tables are dropped, whether this succeeds or not: the next reclaim continues.
        if let Err(e) = self.delete_condemned(options, &mut reclaimed) {
            reclaimed.failures.push((UNFINISHED.to_owned(), e.to_string()));
        }
        reclaimed.holding = self.holding(&*self.current()?)?;
        Ok((dropped, reclaimed))
    }

    /// Dropped tables that can be restored, the oldest drop first. Of tables with rows in memory, rows are counted.
    ///
    /// # Errors
    /// `Closed`; `Corrupt` or `Unavailable` if rows that are counted cannot be read.
    pub fn trash(&self) -> Result<Vec<TrashItem>> {
        self.while_reclaimed(|| {
            let (state, _pin) = self.pinned_state()?;
            let mut items = Vec::with_capacity(state.trash.tables().len());
            for (id, dropped) in state.trash.tables() {
                let Some(table) = state.table(*id)? else { continue };
                items.push(TrashItem {
                    table: *id,
                    path: dropped.path.to_string(),
                    time: dropped.time,
                    rows: self.stored_rows(&state, &table)?,
                    bytes: table.bytes(),
                });
            }
            items.sort_by_key(|item| (item.time, item.table));
            Ok(items)
        })
    }

    /// Restores the table most recently dropped from `path`, with all its versions, at the path `to`, which must hold
    /// no table; by default where it was. O(log tables).
    ///
    /// # Errors
    /// `NotFound` if nothing dropped from `path` is left, `AlreadyExists` if `to` holds a table.
    pub fn undrop(&self, path: &str, to: Option<&str>) -> Result<()> {
        let from = Path::new(path)?;
        let to = to.map(Path::new).transpose()?.unwrap_or_else(|| from.clone());
        self.commit_effects(move |state| {
            let last = state.trash.last_from(&from);
            let table =
                last.ok_or_else(|| Error::not_found(format!("no table that was dropped from '{from}' is left")))?;
            Ok(vec![Effect::UndropTable { table, path: to.clone() }])
        })?;
        Ok(())
    }
}

impl Place {
    /// Drops tables: see [`crate::store::Tables::drop`].
    pub(in crate::store) fn drop_tables(&self, patterns: Vec<Pattern>, missing: Missing) -> Result<DropReport> {
        let patterns = some(patterns)?;
        match self {
            Place::Store(store) => store.commit_in_turn(move |draft| {
                let (effects, report) = drop_tables(draft.state(), &patterns, missing)?;
                draft.apply(effects)?;
                Ok(report)
            }),
            Place::Transaction(transaction) => transaction.change_tables(|_, open| {
                let (effects, report) = drop_tables(open.draft.state(), &patterns, missing)?;
                let reads = patterns.into_iter().map(Read::Pattern).collect();
                open.apply(Footprint { reads }, effects, None)?;
                Ok(report)
            }),
        }
    }
}

/// What is to be dropped, which must be something.
fn some(patterns: Vec<Pattern>) -> Result<Vec<Pattern>> {
    match patterns.is_empty() {
        true => Err(Error::invalid("no path to drop was given; give at least one")),
        false => Ok(patterns),
    }
}

/// The effects that drop the tables of `state` that `patterns` name.
fn drop_tables(state: &State, patterns: &[Pattern], missing: Missing) -> Result<(Vec<Effect>, DropReport)> {
    let mut tables: BTreeSet<(Path, TableId)> = BTreeSet::new();
    let mut absent = Vec::new();
    for pattern in patterns {
        let mut found = false;
        for (path, table) in state.ids_matching(pattern) {
            found = true;
            tables.insert((path.clone(), table));
        }
        if !found {
            absent.push(pattern.to_string());
        }
    }
    if !absent.is_empty() && missing == Missing::Refuse {
        let named: Vec<String> = absent.iter().map(|pattern| format!("'{pattern}'")).collect();
        let near = absent.iter().find_map(|pattern| near_table(state, &Path::new(pattern).ok()?));
        let hint = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        return Err(Error::not_found(format!("no table at {}; nothing was dropped{hint}", named.join(", "))));
    }
    let mut report = DropReport { missing: absent, ..DropReport::default() };
    for (path, id) in &tables {
        let table = state.get(*id)?;
        report.paths.push(path.to_string());
        report.versions += table.versions.len() as u64;
        report.bytes += table.bytes();
    }
    Ok((tables.into_iter().map(|(_, table)| Effect::DropTable { table }).collect(), report))
}
