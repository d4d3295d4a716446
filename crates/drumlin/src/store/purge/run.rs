//! Purge: erases rows from every version, snapshot, copy and the trash, and then from storage, the log and the catalog.
//!
//! In this order, so that a crash at any point leaves a store in which the same purge, done again, goes on:
//!
//! 1. Rows written by key become row groups.
//! 2. All rows of all row groups of the tables in question are judged, also those that no version shows.
//! 3. One commit takes those that match out of every version, and another ends what other processes have of them.
//! 4. Their row groups are written again without them, runs of indexes that had their values are dropped, and row groups that share a block
//!    with erased bytes are copied.
//! 5. The catalog is written as a whole, and the log cut, so that neither refers to anything older.
//! 6. What is no longer referred to is deleted.
//! 7. All that is left is examined.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::family::{Family, erased_rows, family, leave_patched, members, place_of, records, tables_naming};
use super::matching::Matching;
use super::of_views::{PurgedRows, rows_of_views};
use super::report::{Held, PurgePlan, PurgeReceipt, PurgedObject, PurgedTable};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Meter, Result, Seq, TableId, Task, Version};
use crate::block::{Address, RepackPlan};
use crate::catalog::{Effect, Footprint, Path, Pattern, State};
use crate::filter::Filter;
use crate::storage::names;
use crate::store::commit::blocks::add_blocks;
use crate::store::parts::{Proposal, Work};
use crate::store::read::views::ATTEMPTS;
use crate::store::upkeep::plans::blocks_with_holes;
use crate::store::upkeep::reclaim::ReclaimReport;
use crate::store::{CheckpointReport, ReclaimOptions, Store};
use crate::table::{
    DictionaryValues, FilterOfVersions, Positions, RowGroup, Rows, ShrunkGroup, TableState, TextsOfColumns,
};

/// What a purge that failed after its first commit says.
const BEGUN: &str =
    "the rows were removed from all versions, but not completely from storage; run the same purge again to continue";

/// How often row groups that others have made in between are looked at before a purge gives up.
const ROUNDS_MAX: usize = 32;

/// Row groups to be written again: one of their records, and the rows that are erased.
type Marked = BTreeMap<Address, (Arc<TableState>, Arc<RowGroup>, RoaringBitmap)>;

/// Rows to be erased from everywhere: see [`Store::purge`].
///
/// ```
/// # use std::sync::Arc;
/// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
/// # use drumlin::{Filter, Tables};
/// # let store = drumlin::Store::memory()?;
/// # let rows = |id| RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(id)) as ArrayRef)]).unwrap();
/// store.write("users/a", rows(vec![1, 42]), &Default::default())?;
/// store.append("users/a", rows(vec![3]), &Default::default())?;
/// let purge = store.purge("users/**", &Filter::parse("id = 42")?)?;
/// assert_eq!(purge.plan(&Default::default())?.rows, 1);
/// let receipt = purge.execute(&Default::default())?;
/// assert!(receipt.is_complete() && receipt.proof.matching == 0);
/// # Ok::<(), drumlin::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Purge {
    store: Store,
    pattern: Pattern,
    filter: Filter,
    /// Whether the rows of a view are to go, which are made again afterwards.
    of_view: bool,
}

impl Purge {
    /// What it would erase now. Reads what it would read; changes nothing.
    ///
    /// # Errors
    /// As [`Purge::execute`].
    pub fn plan(&self, task: &Task) -> Result<PurgePlan> {
        let Self { store, pattern, filter, .. } = self;
        store.while_reclaimed(|| {
            let (state, _pin) = store.pinned_state()?;
            let family = named(&state, pattern, filter)?;
            let mut found = Matching::default();
            store.judge(&state, &family, filter, &mut found, task)?;
            planned(&state, &family, filter, &found)
        })
    }

    /// Erases the rows: from every version, snapshot and copy, from the trash, from rows in memory, and from storage, the catalog and
    /// the log. Names in the filter are those of each version; a row goes if it matches in one of the versions that show it. Rows
    /// written while it runs are not looked at.
    ///
    /// Reads all row groups whose statistics do not rule the filter out, and writes again those with matches and what shares a
    /// block with them. A purge that was interrupted goes on if it is done again.
    ///
    /// # Errors
    /// `NotFound` if no table is named, `InvalidArgument` if the filter means nothing in any of them, `Cancelled`, `Unavailable`;
    /// `Conflict` if tables change faster than they can be looked at.
    pub fn execute(&self, task: &Task) -> Result<PurgeReceipt> {
        let mut receipt = PurgeReceipt {
            store: self.store.uri().to_owned(),
            pattern: self.pattern.to_string(),
            filter: self.filter.to_string(),
            ..PurgeReceipt::default()
        };
        let views = self.purge_views(task, &mut receipt)?;
        let done = self.run(task, &mut receipt);
        for view in views {
            // One that was dropped in between has no rows.
            match self.store.catch_up_with(view, None, &task.cancel) {
                Err(e) if done.is_ok() => return Err(e.context("the rows are erased; a view is still behind")),
                _ => {}
            }
        }
        match done {
            Ok(()) => Ok(receipt),
            Err(e) if receipt.commits.is_empty() => Err(e),
            Err(e) if e.kind() == ErrorKind::Cancelled => {
                Err(Error::cancelled(format!("cancelled by the caller; {BEGUN}")))
            }
            Err(e) => Err(e.context(BEGUN)),
        }
    }

    /// Erases from all versions of views what they have of the tables that are purged; they are behind with these until the purge is done. Returns
    /// the views.
    fn purge_views(&self, task: &Task, receipt: &mut PurgeReceipt) -> Result<Vec<TableId>> {
        let Self { store, pattern, filter, of_view } = self;
        store.call()?;
        let state = store.current()?;
        let named_view = pattern.literal().and_then(|path| state.table_id_at(&Path::new(path).ok()?));
        if !*of_view && named_view.is_some_and(|table| state.row_views.get(table).is_some()) {
            return Err(Error::invalid(format!("'{pattern}' is a view; purge the tables that it is over")));
        }
        let mut views = Vec::new();
        if state.row_views.is_empty() {
            return Ok(views);
        }
        let purged = named(&state, pattern, filter)?;
        for PurgedRows { table, path, sources, filter } in rows_of_views(&state, &purged)? {
            let mark = Effect::MarkView { table, sources, behind: true };
            let mark = Work::Build(Box::new(move |_| Ok(vec![mark.clone()])));
            // Nobody catches up before all is done.
            let after = store.commit(Proposal::new(state.clone(), Footprint::default(), mark).of_views())?;
            receipt.commits.push(after.seq.0);
            let own = Self { store: store.clone(), pattern: Pattern::of_path(&path), filter, of_view: true };
            let done = own.execute(task)?;
            receipt.commits.extend(done.commits);
            receipt.bytes_written += done.bytes_written;
            receipt.deleted.extend(done.deleted);
            receipt.held.extend(done.held);
            views.push(table);
        }
        Ok(views)
    }

    fn run(&self, task: &Task, receipt: &mut PurgeReceipt) -> Result<()> {
        let Self { store, pattern, filter, .. } = self;
        store.call()?;
        let mut maintenance = store.upkeep().lock()?;
        let (before, begun) = (store.objects_of_log()?, store.current()?.seq);
        named(&*store.current()?, pattern, filter)?;
        let mut report = CheckpointReport::default();
        store.rows_to_groups(task, &mut report)?;
        let first = store.current()?;
        let since: BTreeMap<TableId, Version> =
            first.tables().map(|table| table.map(|table| (table.id, table.next_version()))).collect::<Result<_>>()?;
        let mut old: BTreeSet<Address> = BTreeSet::new();
        for table in members(&first, &family(&first, pattern)?)? {
            old.extend(table.addresses().copied());
        }
        receipt.erased = store.erase(pattern, filter, &since, task, &mut receipt.commits)?;
        store.end_concerned_holds(pattern, begun, receipt)?;
        store.shrink_all(pattern, &old, task, receipt)?;
        store.drop_runs(pattern, receipt)?;
        if !planted(Bug::LeaveHoles) {
            store.fill_holes(task, &mut report, receipt)?;
        }
        store.note_erased(receipt)?;
        // Twice: entries that came while the first was written share a segment with older ones.
        for _ in 0..2 {
            store.rows_to_groups(task, &mut report)?;
            store.write_catalog(&mut maintenance, true)?;
        }
        receipt.bytes_written += report.bytes_written;
        store.delete_purged(before, task, receipt)?;
        store.examine(pattern, filter, begun, task, receipt)?;
        receipt.time = store.env().clock.now().0;
        Ok(())
    }
}

impl Store {
    /// A purge of the rows for which `filter` is true from the tables that `pattern` matches, and from all tables that have rows in
    /// common with them. Nothing is done before [`Purge::execute`].
    ///
    /// # Errors
    /// `InvalidArgument` if `pattern` is none.
    pub fn purge(&self, pattern: &str, filter: &Filter) -> Result<Purge> {
        Ok(Purge { store: self.clone(), pattern: Pattern::new(pattern)?, filter: filter.clone(), of_view: false })
    }

    /// Numbers a version for the rows written by key, and turns them into row groups.
    fn rows_to_groups(&self, task: &Task, report: &mut CheckpointReport) -> Result<()> {
        self.number_and_expire()?;
        let left = report.failures.len();
        self.flush(task, report)?;
        match report.failures.get(left) {
            None => Ok(()),
            Some(failure) => Err(Error::corrupt(format!("rows in memory cannot be turned into row groups: {failure}"))),
        }
    }

    /// Takes the rows that match out of all versions, in one commit.
    fn erase(
        &self,
        pattern: &Pattern,
        filter: &Filter,
        since: &BTreeMap<TableId, Version>,
        task: &Task,
        commits: &mut Vec<u64>,
    ) -> Result<PurgePlan> {
        let mut found = Matching::default();
        for _ in 0..ROUNDS_MAX {
            let (state, plan) = self.while_reclaimed(|| {
                let (state, _pin) = self.pinned_state()?;
                let family = named(&state, pattern, filter)?;
                self.judge(&state, &family, filter, &mut found, task)?;
                let plan = planned(&state, &family, filter, &found)?;
                Ok((state, plan))
            })?;
            if found.rows.is_empty() && found.histories.is_empty() {
                return Ok(plan);
            }
            let (pattern, matching, since) = (pattern.clone(), found.clone(), since.clone());
            match self.commit_effects_at(&state, move |now| erasing(now, &pattern, &matching, &since)) {
                Ok(after) => {
                    commits.push(after.0);
                    return Ok(plan);
                }
                Err(e) if e.kind() == ErrorKind::Conflict => drop(self.refresh()?),
                Err(e) => return Err(e),
            }
        }
        Err(Error::conflict("the tables change faster than their rows can be examined; nothing was erased"))
    }

    /// Replaces the row groups with erased rows by others without them, and those with patches that have an `old` layer, which was
    /// there when the purge began, by ones without patches.
    fn shrink_all(
        &self,
        pattern: &Pattern,
        old: &BTreeSet<Address>,
        task: &Task,
        receipt: &mut PurgeReceipt,
    ) -> Result<()> {
        let mut values = DictionaryValues::default();
        for _ in 0..ROUNDS_MAX {
            let done = self.while_reclaimed(|| {
                let (state, _pin) = self.pinned_state()?;
                let family = family(&state, pattern)?;
                let records = records(&state, &family)?;
                let mut marked = Marked::new();
                for (address, erased) in erased_rows(&state, &records)? {
                    let (id, group) = &records[&address][0];
                    marked.insert(address, (state.get(*id)?, group.clone(), erased));
                }
                // What lies below patches may have values that were erased, or that no version shows any more.
                for (address, of) in records.iter().filter(|_| !planted(Bug::PurgePatches)) {
                    let (id, group) = &of[0];
                    let patched = group.patched.is_some() && group.addresses().any(|address| old.contains(address));
                    if patched && !marked.contains_key(address) {
                        marked.insert(*address, (state.get(*id)?, group.clone(), RoaringBitmap::new()));
                    }
                }
                let gone = self.mark_dictionaries(&state, &family, &mut values, &mut marked, task)?;
                self.scrub_schemas(pattern, gone, receipt)?;
                if marked.is_empty() {
                    return Ok(true);
                }
                self.shrink(&state, pattern, marked, task, receipt)?;
                Ok(false)
            })?;
            if done {
                return Ok(());
            }
        }
        Err(Error::conflict("others change row groups faster than they can be rewritten; purge again"))
    }

    /// Adds the row groups whose dictionaries have values of erased rows, although no row of them has those. Returns the texts
    /// among such values that no row of any of them has any more.
    fn mark_dictionaries(
        &self,
        state: &State,
        family: &Family,
        values: &mut DictionaryValues,
        marked: &mut Marked,
        task: &Task,
    ) -> Result<TextsOfColumns> {
        let reader = self.reader();
        for (table, group, erased) in marked.values() {
            values.add(reader, table, group, erased)?;
        }
        let mut all = Marked::new();
        for table in members(state, family)? {
            let group = |group: &Arc<RowGroup>| (group.address, (table.clone(), group.clone(), RoaringBitmap::new()));
            all.extend(table.groups.iter().map(group));
        }
        all.extend(marked.iter().map(|(address, marked)| (*address, marked.clone())));
        let rests = self.env().pool.map(all.into_iter().collect(), |(address, (table, group, erased))| {
            task.cancel.check()?;
            let rest = values.rest(reader, &table, &group, &erased);
            let rest = rest.map_err(|e| e.context(place_of(state, table.id)))?;
            Ok((address, (table, group, erased), rest))
        })?;
        let gone = values.texts_gone(rests.iter().map(|(.., rest)| rest));
        // Row groups with erased rows are written again in any case.
        marked.extend(rests.into_iter().filter(|(.., rest)| rest.unused).map(|(address, of, _)| (address, of)));
        Ok(gone)
    }

    /// Takes values that no row has any more out of the categories in the metadata of schemas. Before the rows go that tell which
    /// values these are, so that a crash in between leaves them to be found again.
    fn scrub_schemas(&self, pattern: &Pattern, texts: TextsOfColumns, receipt: &mut PurgeReceipt) -> Result<()> {
        let pattern = pattern.clone();
        let effects = move |state: &State| -> Result<Vec<Effect>> {
            let tables = members(state, &family(state, &pattern)?)?.into_iter();
            let tables = tables.filter(|table| table.lineage.purged > Seq(0));
            let of = |table: Arc<TableState>| {
                let schemas = table.scrubbed_schemas(&texts);
                (!schemas.is_empty()).then_some(Effect::SetSchemas { table: table.id, schemas })
            };
            Ok(tables.filter_map(of).collect())
        };
        let state = self.current()?;
        if !effects(&state)?.is_empty() {
            receipt.commits.push(self.commit_effects_at(&state, effects)?.0);
        }
        Ok(())
    }

    fn shrink(
        &self,
        state: &Arc<State>,
        pattern: &Pattern,
        marked: Marked,
        task: &Task,
        receipt: &mut PurgeReceipt,
    ) -> Result<()> {
        let bytes = marked.keys().map(Address::bytes).sum();
        let mut meter = Meter::new(task, &*self.env().clock, marked.len() as u64, bytes);
        let (mut writer, mut shrunk) = (self.block_writer()?, Vec::new());
        for (from, (table, group, erased)) in marked {
            task.cancel.check()?;
            let encoded = table.shrink(self.reader(), &self.env().pool, &group, &erased, self.options().proof());
            let erased: Positions = erased.into();
            let encoded = encoded.map_err(|e| e.context(place_of(state, table.id)))?;
            let to = encoded.map(|(group, standing)| Ok::<_, Error>((writer.push(group)?, standing))).transpose()?;
            shrunk.push(ShrunkGroup { from, erased, to });
            meter.done.rows += u64::from(group.rows);
            meter.step(1, from.bytes())?;
        }
        writer.finish()?;
        receipt.bytes_written += writer.written().iter().map(|written| written.bytes).sum::<u64>();
        let seq = self.commit_rewritten(writer, |writer| {
            let (blocks, pattern) = (writer.written().to_vec(), pattern.clone());
            let build = move |now: &State| {
                let records = records(now, &family(now, &pattern)?)?;
                let erased = erased_rows(now, &records)?;
                let none = RoaringBitmap::new();
                let same = |group: &&ShrunkGroup| {
                    let still = erased.get(&group.from).unwrap_or(&none);
                    records.contains_key(&group.from) && *still == *group.erased.0
                };
                let mut groups: Vec<ShrunkGroup> = shrunk.iter().filter(same).cloned().collect();
                leave_patched(&records, &mut groups);
                let used: BTreeSet<_> = groups.iter().filter_map(|group| Some(group.to?.0.block)).collect();
                let known: Vec<_> = blocks.iter().filter(|written| used.contains(&written.block)).cloned().collect();
                let tables = tables_naming(&records, groups.iter().map(|group| &group.from));
                let effect = (!groups.is_empty()).then_some(Effect::ShrinkGroups { tables, groups });
                Ok((add_blocks(&known).into_iter().chain(effect).collect(), used))
            };
            let (after, used) = self.commit_built(state.clone(), build)?;
            writer.abandon(|block| !used.contains(&block));
            Ok(after.seq)
        })?;
        receipt.commits.push(seq.0);
        Ok(())
    }

    /// Drops the runs of indexes that have values of row groups which are gone, by this purge or before it. The next checkpoint makes others.
    fn drop_runs(&self, pattern: &Pattern, receipt: &mut PurgeReceipt) -> Result<()> {
        let pattern = pattern.clone();
        let effects = move |state: &State| -> Result<Vec<Effect>> {
            let tables = members(state, &family(state, &pattern)?)?;
            let of = |table: &Arc<TableState>| {
                let runs = table.runs_of_gone().into_iter();
                runs.map(|(index, drop)| Effect::PutRuns { table: table.id, index, add: Vec::new(), drop }).collect()
            };
            Ok(tables.iter().flat_map::<Vec<Effect>, _>(of).collect())
        };
        let state = self.current()?;
        if !effects(&state)?.is_empty() {
            receipt.commits.push(self.commit_effects_at(&state, effects)?.0);
        }
        Ok(())
    }

    /// Copies what is left in blocks that hold bytes which nothing needs.
    fn fill_holes(&self, task: &Task, report: &mut CheckpointReport, receipt: &mut PurgeReceipt) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let done = self.while_reclaimed(|| {
                let (state, _pin) = self.pinned_state()?;
                let blocks: Vec<_> = blocks_with_holes(&state, &BTreeSet::new())?.into_iter().collect();
                if blocks.is_empty() {
                    return Ok(true);
                }
                let live =
                    state.ledger.blocks().filter(|(block, _)| blocks.contains(block)).map(|(_, used)| used.live_bytes);
                let plan = RepackPlan { bytes_moved: live.sum(), blocks, ..RepackPlan::default() };
                let mut round = CheckpointReport::default();
                self.vacuum(&state, Vec::new(), &plan, task, &mut round)?;
                receipt.commits.push(self.current()?.seq.0);
                report.bytes_written += round.bytes_written;
                // What cannot be read cannot be copied, however often; it is found by the examination.
                Ok(!round.failures.is_empty())
            })?;
            if done {
                break;
            }
        }
        Ok(())
    }

    /// Deletes what the store no longer refers to, and notes what was deleted.
    fn delete_purged(&self, mut before: Vec<PurgedObject>, task: &Task, receipt: &mut PurgeReceipt) -> Result<()> {
        let state = self.current()?;
        for (block, _) in state.ledger.condemned() {
            before.extend(self.sum_of(&names::block(*block))?);
        }
        let (block_grace_micros, audit, task) = (Some(0), true, task.clone());
        let options = ReclaimOptions { block_grace_micros, audit, task, ..ReclaimOptions::default() };
        let mut freed = ReclaimReport::default();
        self.free(&options, &mut freed)?;
        let state = self.current()?;
        let left: BTreeSet<String> = state.ledger.condemned().map(|(block, _)| names::block(*block)).collect();
        for object in before.into_iter().filter(|object| !left.contains(&object.name)) {
            // A listing may be older than what it lists.
            if object.name.starts_with(names::BLOCKS) || self.sum_of(&object.name)?.is_none() {
                receipt.deleted.push(object);
            }
        }
        let failures = freed.failures.into_iter();
        receipt.held.extend(failures.map(|(what, why)| Held { what, why: format!("it could not be deleted: {why}") }));
        Ok(())
    }
}

/// The tables that a purge concerns; `NotFound` if there are none, `InvalidArgument` if the filter means nothing in any of them.
fn named(state: &State, pattern: &Pattern, filter: &Filter) -> Result<Family> {
    let family = family(state, pattern)?;
    let mut nowhere = None;
    for table in members(state, &family)? {
        match FilterOfVersions::new(&table, filter).nowhere() {
            None => return Ok(family),
            Some(error) => drop(nowhere.get_or_insert_with(|| Error::invalid(error.message()))),
        }
    }
    Err(nowhere.unwrap_or_else(|| {
        Error::not_found(format!("no table in the tree, the trash or a snapshot matches '{pattern}'"))
    }))
}

/// Whether all rows of a row group came after the version that was next when the purge began.
pub(in crate::store) fn is_newer(group: &RowGroup, next: Option<Version>) -> bool {
    next.is_some_and(|next| group.runs.iter().all(|run| run.born >= next))
}

/// The effects that take what was found out of all versions; `Conflict` if there are row groups that were not looked at.
fn erasing(
    now: &State,
    pattern: &Pattern,
    found: &Matching,
    since: &BTreeMap<TableId, Version>,
) -> Result<Vec<Effect>> {
    let family = family(now, pattern)?;
    let tables = members(now, &family)?;
    for table in &tables {
        let next = since.get(&table.id).copied();
        let new = |group: &&Arc<RowGroup>| !found.judged.contains(&group.address) && !is_newer(group, next);
        if table.groups.iter().any(|group| new(&group)) {
            return Err(Error::conflict(format!(
                "'{}' has row groups that were not examined",
                place_of(now, table.id)
            )));
        }
    }
    let records = records(now, &family)?;
    let rows: Vec<(Address, Positions)> = found
        .rows
        .iter()
        .filter(|(address, _)| records.contains_key(*address))
        .map(|(address, rows)| (*address, rows.clone()))
        .collect();
    let by_address: BTreeMap<Address, &Positions> = rows.iter().map(|(address, rows)| (*address, rows)).collect();
    let mut histories: BTreeSet<(TableId, Version)> = BTreeSet::new();
    for table in &tables {
        histories.extend(table.histories_of(&by_address).into_iter().map(|version| (table.id, version)));
        let own = table.instants.histories.iter().map(|history| (table.id, history.version));
        histories.extend(own.filter(|history| found.histories.contains(history)));
    }
    let mut changed = tables_naming(&records, by_address.keys());
    changed.extend(histories.iter().map(|(table, _)| *table));
    changed.sort_unstable();
    changed.dedup();
    let histories = histories.into_iter().collect();
    Ok(match changed.is_empty() {
        true => Vec::new(),
        false => vec![Effect::EraseRows { tables: changed, rows, histories }],
    })
}

/// What is to be erased, by table.
fn planned(state: &State, family: &Family, filter: &Filter, found: &Matching) -> Result<PurgePlan> {
    let mut plan = PurgePlan {
        rows: found.rows.values().map(|rows| rows.0.len()).sum(),
        row_groups: found.rows.len() as u64,
        bytes: found.rows.keys().map(Address::bytes).sum(),
        ..PurgePlan::default()
    };
    for (id, is_named) in family {
        let Some(table) = state.table(*id)? else { continue };
        let bound = FilterOfVersions::new(&table, filter);
        let path = place_of(state, *id);
        if let Some(error) = bound.nowhere() {
            plan.not_covered.push((path, error.message().to_owned()));
            continue;
        }
        if let Some(error) = bound.somewhere() {
            plan.not_covered.push((path.clone(), format!("versions with other columns: {}", error.message())));
        }
        for part in &table.parts {
            plan.rows_in_memory += bound.rows_in(part)?;
        }
        for index in table.indexes.list.iter().filter(|index| index.definition.has_literals()) {
            let name = &index.definition.name;
            let why = format!("the definition of index '{name}' has values of its own; drop it if they are to go");
            plan.not_covered.push((path.clone(), why));
        }
        let mut of_table = PurgedTable { path, table: id.0, named: *is_named, ..PurgedTable::default() };
        let (mut addresses, mut versions) = (BTreeSet::new(), BTreeSet::new());
        for group in &table.groups {
            let Some(rows) = found.rows.get(&group.address) else { continue };
            if addresses.insert(group.address) {
                of_table.rows += rows.0.len();
            }
            let rows = Rows::Some((*rows.0).clone());
            let listed = table.versions.iter().map(|record| record.version).chain(table.pins.keys().copied());
            let shows = |version: &Version| {
                let seen = table.visible(group, *version);
                seen.without(&rows, group.rows) != seen
            };
            versions.extend(listed.filter(shows));
        }
        if !addresses.is_empty() {
            of_table.versions = versions.into_iter().map(|version| version.0).collect();
            plan.tables.push(of_table);
        }
    }
    let is_adopted = |table: &TableState| table.lineage.origin.is_some();
    if members(state, family)?.iter().any(|table| is_adopted(table)) {
        // What two tables had in common in another store is not known here.
        for table in state.tables() {
            let table = table?;
            if is_adopted(&table) && !family.contains_key(&table.id) {
                let why =
                    "it was copied from another store, as one of these tables was, so they may have rows in common";
                plan.not_covered.push((place_of(state, table.id), why.to_owned()));
            }
        }
    }
    Ok(plan)
}
