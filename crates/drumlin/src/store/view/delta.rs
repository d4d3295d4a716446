//! What a commit changes in views, made before its turn from the rows that it adds to their sources and takes away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;

use super::rows::groups_of_rows;
use super::shape::Shape;
use crate::aggregate::{Groups, KeptGroups};
use crate::base::{Cancel, Error, ErrorKind, Result, TableId};
use crate::catalog::{Effect, Path, Pattern, RowView, State, TransactionRecord, ViewDefinition};
use crate::filter::Filter;
use crate::memtable::Keys;
use crate::store::Store;
use crate::store::parts::{Proposal, SourceDelta, VIEWS_DEPTH_MAX, ViewChange, ViewProof, admit, changed_sources};
use crate::store::read::resolve::of_table;
use crate::table::{
    MemtablePart, ReadPoint, RowsChange, ScanOptions, Searcher, TableCodec, TableState, VersionKind, View, comes_last,
    difference, difference_of_groups, written_keys,
};

/// Of a source with more rows than this, not all are read before a commit's turn: the view is behind with it, and catches up after.
const READ_ALL_MAX: u64 = 1 << 20;

/// A commit writes at most as many times the bytes of a small write (`row_write_bytes`) to a view.
const ROW_WRITES_MAX: u64 = 16;

/// What becomes of groups: those that have rows, and the keys, as the view has them, of those that have none any more.
pub(super) struct ChangedGroups {
    pub there: KeptGroups,
    pub gone: RecordBatch,
}

/// Rows that a view gets for a source, and the keys of those that it loses.
struct ViewRows {
    there: RecordBatch,
    gone: RecordBatch,
}

/// How the rows of a source have changed.
struct CameAndWent {
    /// The groups of the rows that came.
    came: Groups,
    /// The groups of those that went.
    gone: Groups,
    /// Whether the former come after all others.
    in_place: bool,
}

impl Store {
    /// The same proposal, with what it changes in views.
    ///
    /// # Errors
    /// `InvalidArgument` if it changes a source so that a view cannot be over it any more; as reads.
    pub(in crate::store) fn with_views(&self, mut proposal: Proposal) -> Result<Proposal> {
        if self.commits().newest().state().row_views.is_empty() {
            return Ok(proposal);
        }
        let (base, _pin) = self.commits().newest().pinned();
        let mut after = State::clone(&base);
        proposal.views = ViewProof::Sought;
        let time = base.time.max(self.commits().times().now(base.time));
        let at = (base.seq.next(), time, self.commits().times().age(time));
        let is_newest = Arc::ptr_eq(&proposal.base, &base);
        // What is refused is refused in its turn, where the state may be newer.
        let Ok((transaction, mut next)) = admit(&mut after, &mut proposal, is_newest, true, at) else {
            proposal.views = ViewProof::default();
            return Ok(proposal);
        };
        let mut found = BTreeMap::new();
        let mut effects = transaction.effects;
        for depth in 0..=VIEWS_DEPTH_MAX {
            // One after the other: what a task of the pool waits for must not wait for the pool.
            let changed = changed_sources(&base, &next, &effects)?.into_iter();
            let made = changed.map(|(view, source)| self.source_delta(&base, &next, view, source, &effects));
            let mut deltas: Vec<(SourceDelta, Option<ViewRows>)> = made.collect::<Result<_>>()?;
            self.join_rows(&next, &mut deltas)?;
            let mut made = Vec::new();
            for (delta, _) in deltas {
                made.extend(delta.effect(&next)?);
                found.insert((depth, delta.view, delta.source.clone()), delta);
            }
            if made.is_empty() {
                break;
            }
            let record = TransactionRecord { effects: made };
            next.apply(&record, at.0, at.1)?;
            effects = record.effects;
        }
        proposal.views = ViewProof::Found(base, found);
        Ok(proposal)
    }

    /// Has one effect write the rows of all sources of a view; or, if they are very many, the view is behind with these sources.
    fn join_rows(&self, next: &State, deltas: &mut [(SourceDelta, Option<ViewRows>)]) -> Result<()> {
        let views: BTreeSet<TableId> = deltas.iter().filter(|(_, rows)| rows.is_some()).map(|(d, _)| d.view).collect();
        for view in views {
            let codec = next.get(view)?.codec()?;
            let own = || deltas.iter().filter(|(delta, _)| delta.view == view).filter_map(|(_, rows)| rows.as_ref());
            let there = arrow::compute::concat_batches(codec.schema(), own().map(|rows| &rows.there))?;
            let gone = arrow::compute::concat_batches(codec.key_schema(), own().map(|rows| &rows.gone))?;
            let some = |batch: RecordBatch| (batch.num_rows() > 0).then_some(batch);
            let change = RowsChange::new(&codec, some(there).as_ref(), some(gone).as_ref())?;
            let fits = change.bytes() <= self.options().row_write_bytes.saturating_mul(ROW_WRITES_MAX);
            let mut change = fits.then_some(change);
            for (delta, _) in deltas.iter_mut().filter(|(delta, rows)| delta.view == view && rows.is_some()) {
                delta.change = if fits { ViewChange::Rows(change.take()) } else { ViewChange::Behind };
            }
        }
        Ok(())
    }

    /// What becomes of a view for one source; its rows are still to be joined with those of others.
    fn source_delta(
        &self,
        base: &State,
        next: &State,
        table: TableId,
        source: Path,
        effects: &[Effect],
    ) -> Result<(SourceDelta, Option<ViewRows>)> {
        let lost = || Error::internal("a view that is kept has no table");
        let view = next.row_views.get(table).ok_or_else(lost)?;
        let was_behind = base.row_views.get(table).is_some_and(|view| view.behind.contains_key(&source));
        let rows = match was_behind {
            true => Some(None),
            false => self.view_rows(base, next, (table, view), &source, effects)?,
        };
        let change = if rows.is_some() { ViewChange::Rows(None) } else { ViewChange::Behind };
        let delta = SourceDelta { view: table, definition: view.definition.clone(), source, was_behind, change };
        Ok((delta, rows.flatten()))
    }

    /// What becomes of the rows of a view that is not behind with a source; `None` if it is from now on.
    fn view_rows(
        &self,
        base: &State,
        next: &State,
        (table, view): (TableId, &RowView),
        source: &Path,
        effects: &[Effect],
    ) -> Result<Option<Option<ViewRows>>> {
        let pattern = Pattern::new(&view.definition.over)?;
        let names = view.names(&pattern, source).unwrap_or_default();
        let versioned = |state: &State| -> Result<Option<Arc<TableState>>> {
            Ok(state.table_at(source)?.filter(|table| table.newest().is_some()))
        };
        let (old, new) = (versioned(base)?, versioned(next)?);
        let kept = next.get(table)?;
        let kept_schema = kept.schema().ok_or_else(|| Error::corrupt("a view has no columns"))?.0.clone();
        let seen = (old.as_ref(), new.as_ref());
        let schema_of = |table: &Arc<TableState>| table.schema().map(|schema| schema.0.clone());
        let Some(schema) = seen.1.or(seen.0).and_then(schema_of) else { return Ok(Some(None)) };
        let told = |e: Error| {
            let at = next.path_of(table).map_or_else(String::new, ToString::to_string);
            let over = &view.definition.over;
            Error::new(
                e.kind(),
                format!(
                    "the view '{at}' is over '{over}', so over '{source}', too: {}; drop the view first",
                    e.message()
                ),
            )
        };
        let shape = Shape::new(&view.definition, names, &schema).map_err(told)?;
        if new.as_ref().is_some_and(|new| new.expires()) {
            return Err(told(Error::invalid("its rows may not expire, as they would leave the view without a commit")));
        }
        if new.is_some() && !same_columns(&shape.schema(), &kept_schema) {
            return Err(told(Error::invalid("a column of it would give the view values of another type")));
        }
        let made = self.changed_groups((base, next), &kept, &shape, seen, effects);
        let changed = match made {
            Ok(Some(changed)) => changed,
            // A sum that is beyond its type, for example: nothing is wrong with the rows of the source.
            Ok(None) => return Ok(None),
            Err(e) if e.kind() == ErrorKind::InvalidArgument => return Ok(None),
            Err(e) => return Err(of_table(source, e)),
        };
        let rows = ViewRows { there: shape.rows_of(&changed.there, kept.codec()?.schema())?, gone: changed.gone };
        Ok(Some((rows.there.num_rows() + rows.gone.num_rows() > 0).then_some(rows)))
    }

    /// What becomes of the groups of a source; `None` if too much must be read for that.
    fn changed_groups(
        &self,
        (base, next): (&State, &State),
        kept: &Arc<TableState>,
        shape: &Shape,
        (old, new): (Option<&Arc<TableState>>, Option<&Arc<TableState>>),
        effects: &[Effect],
    ) -> Result<Option<ChangedGroups>> {
        let changed = match (old, new) {
            (Some(old), Some(new)) if old.id == new.id => {
                self.rows_changed((base, next), shape, (old, new), effects)?
            }
            _ => None,
        };
        let Some(CameAndWent { came, gone, in_place }) = changed else {
            let rows =
                new.map_or(0, |new| crate::table::rows_at_most(new, self.seen_in(next, new, base.seq).read_point));
            if rows > READ_ALL_MAX {
                return Ok(None);
            }
            return self.made_again(next, base.seq, kept, shape, new).map(Some);
        };
        let new = new.ok_or_else(|| Error::internal("a table with rows that came is there"))?;
        let mut touched = came.all_keys()?;
        if gone.count() > 0 {
            touched = arrow::compute::concat_batches(&touched.schema(), [&touched, &gone.all_keys()?])?;
        }
        let known = self.kept_groups((next, base.seq), kept, shape, &touched)?;
        let (rows, states) = shape.groups_of(&known)?;
        let resumed = Groups::resumed(&shape.plan, &rows, &states)?.with_changes(came, gone, in_place);
        let unknown = resumed.unknown()?;
        let mut all = resumed.finish()?;
        if unknown.num_rows() > 0 {
            let again = self.groups_of(shape, self.seen_in(next, new, base.seq), near(shape, new, &unknown)?)?;
            all = all.and(again.finish_of(&unknown)?)?;
        }
        let (there, gone) = all.with_rows(shape.plan.width(), shape.plan.schema.fields().len() - 1)?;
        let gone = shape.keys_of(&gone, kept.codec()?.key_schema())?;
        Ok(Some(ChangedGroups { there, gone }))
    }

    /// All groups of a source, and the keys of those that the view has of it and that are no more.
    pub(super) fn made_again(
        &self,
        next: &State,
        seq: crate::base::Seq,
        kept: &Arc<TableState>,
        shape: &Shape,
        new: Option<&Arc<TableState>>,
    ) -> Result<ChangedGroups> {
        let there = match new {
            Some(new) => self.groups_of(shape, self.seen_in(next, new, seq), None)?,
            None => Groups::new(&shape.plan, (0, 1))?,
        };
        let (there, _) = there.finish_kept()?.with_rows(shape.plan.width(), shape.plan.schema.fields().len() - 1)?;
        let codec = kept.codec()?;
        let known = self.keys_of_source(next, seq, kept, shape.definition(), shape.names())?;
        let old = codec.keys_of(&known)?.0;
        let now = codec.keys_of(&shape.keys_of(&there.rows, codec.key_schema())?)?.0;
        let now = now.take(now.sorted_places().into_iter().map(|at| at as usize));
        let is_there = |at: usize| {
            let place = now.partition_point(|key| key < old.get(at));
            place < now.len() && now.get(place) == old.get(at)
        };
        let lost: BooleanArray = (0..old.len()).map(|at| Some(!is_there(at))).collect();
        Ok(ChangedGroups { there, gone: filter_record_batch(&known, &lost)? })
    }

    /// How the rows of a source have changed that was there before; `None` if only all rows tell.
    fn rows_changed(
        &self,
        (base, next): (&State, &State),
        shape: &Shape,
        (old, new): (&Arc<TableState>, &Arc<TableState>),
        effects: &[Effect],
    ) -> Result<Option<CameAndWent>> {
        if old.schema() != new.schema() {
            return Ok(None);
        }
        let own: Vec<&Effect> = effects.iter().filter(|effect| effect.table() == Some(old.id)).collect();
        if effects.iter().any(|effect| matches!(effect, Effect::EraseRows { tables, .. } if tables.contains(&old.id))) {
            return Ok(None);
        }
        let writes = |effect: &&Effect| matches!(effect, Effect::WriteRows { .. });
        if own.iter().any(writes) && own.iter().all(|effect| writes(effect) || is_neutral(effect)) {
            let keys = written_keys_of(&*new.codec()?, &own)?;
            return self.changed_by_key((base, next), shape, (old, new), keys).map(Some);
        }
        let versions = [old.newest(), new.newest()].map(|record| record.map(|record| (record.version, record.time)));
        let [Some(then), Some(now)] = versions else { return Ok(None) };
        let still = new.version(then.0).is_some_and(|record| record.time == then.1);
        if !still {
            return Ok(None);
        }
        let point = |version| ReadPoint { version, since: false, seq: base.seq, instant: None };
        if !old.parts.is_empty() || !new.parts.is_empty() {
            let keys = self.touched_keys((old, new), [point(then.0), point(now.0)], &own, shape)?;
            return keys.map(|keys| self.changed_by_key((base, next), shape, (old, new), keys)).transpose();
        }
        let pool = &self.env().pool;
        let sides = difference(self.reader(), pool, new, [point(then.0), point(now.0)], &shape.plan.columns)?;
        let appends = own
            .iter()
            .filter(|effect| !is_neutral(effect))
            .all(|effect| matches!(effect, Effect::ChangeTable { change, .. } if change.kind == VersionKind::Append));
        let by_place = shape.plan.aggregates.iter().any(|(bound, _)| bound.function.is_by_place());
        let [gone, came] = &sides;
        // In a sorted table, rows that come later may be in between.
        let last = || match new.order().is_empty() {
            true => Ok(true),
            false => comes_last(self.reader(), pool, new, now.0, came),
        };
        let in_place = by_place && appends && gone.groups.is_empty() && last()?;
        let groups = |table: &TableState| match table.groups.is_empty() {
            true => Groups::new(&shape.plan, (0, 1)),
            false => {
                let version = table.newest().map_or(now.0, |record| record.version);
                let table = Arc::new(table.clone());
                self.groups_of(shape, View { table, read_point: point(version), time: None, pin: None }, None)
            }
        };
        let (came, gone) = (groups(came)?, groups(gone)?);
        Ok(Some(CameAndWent { came, gone, in_place }))
    }

    /// The keys of rows of a source with a key that may have changed, which has rows in memory; `None` if they are too many.
    fn touched_keys(
        &self,
        (old, new): (&Arc<TableState>, &Arc<TableState>),
        seen: [ReadPoint; 2],
        own: &[&Effect],
        shape: &Shape,
    ) -> Result<Option<Keys>> {
        let codec = new.codec()?;
        let mut all = written_keys_of(&codec, own)?;
        let pool = &self.env().pool;
        let columns: Vec<String> = new.order().to_vec();
        for table in difference_of_groups(self.reader(), pool, new, seen, &shape.plan.columns)? {
            let rows: u64 = table.groups.iter().map(|group| u64::from(group.rows)).sum();
            if rows > READ_ALL_MAX {
                return Ok(None);
            }
            let version = table.newest().map_or(seen[1].version, |record| record.version);
            let read_point = ReadPoint { version, ..seen[1] };
            let view = View { table: Arc::new(table), read_point, time: None, pin: None };
            let options = ScanOptions { columns: Some(columns.clone()), ..ScanOptions::default() };
            for batch in self.scan_view(view, None, &options, None)?.collect()? {
                codec.keys_of(&batch)?.0.iter().for_each(|key| all.push_key(key));
            }
        }
        // Rows in memory that are seen no more, or that are seen again.
        let shown = |table: &TableState, part: &MemtablePart, version| {
            let same = |own: &&MemtablePart| own.version == part.version;
            let seen = |own: &MemtablePart| (!own.frozen || own.version <= version) && own.died > version;
            table.parts.iter().find(same).is_some_and(seen)
        };
        for part in old.parts.iter().chain(&new.parts) {
            if shown(old, part, seen[0].version) != shown(new, part, seen[1].version) {
                written_keys(part.rows(), seen[1].seq).iter().for_each(|key| all.push_key(key));
            }
        }
        Ok((all.len() as u64 <= READ_ALL_MAX).then_some(all))
    }

    /// How rows of a source with a key have changed, which are among those with some keys.
    fn changed_by_key(
        &self,
        (base, next): (&State, &State),
        shape: &Shape,
        (old, new): (&Arc<TableState>, &Arc<TableState>),
        keys: Keys,
    ) -> Result<CameAndWent> {
        let codec = new.codec()?;
        let keys = keys.take(keys.sorted_places().into_iter().map(|at| at as usize)).each_once();
        let key_columns = codec.key_codec().decode(keys.iter())?;
        let cancel = Cancel::default();
        let groups = |state: &State, table: &Arc<TableState>| -> Result<Groups> {
            let read_point = self.seen_in(state, table, base.seq).read_point;
            let (reader, pool, codec) = (self.reader(), &self.env().pool, &codec);
            let searcher = Searcher { reader, pool, table, read_point, codec, cancel: &cancel };
            let found = searcher.get_many(&keys, &key_columns, None)?;
            groups_of_rows(shape, &filter_record_batch(&found.rows, &found.found)?)
        };
        Ok(CameAndWent { came: groups(next, new)?, gone: groups(base, old)?, in_place: false })
    }

    /// The keys of the groups that a view has of a source, of which `names` are in the path.
    pub(super) fn keys_of_source(
        &self,
        state: &State,
        seq: crate::base::Seq,
        kept: &Arc<TableState>,
        definition: &ViewDefinition,
        names: &[String],
    ) -> Result<RecordBatch> {
        let key_schema = kept.codec()?.key_schema().clone();
        let equal = definition.path_columns.iter().zip(names).filter_map(|(column, name)| {
            let name: ArrayRef = Arc::new(StringArray::from(vec![name.as_str()]));
            Filter::one_of(column, &name)
        });
        let columns = key_schema.fields().iter().map(|field| field.name().clone()).collect();
        let filter = equal.reduce(Filter::and);
        let options = ScanOptions { columns: Some(columns), filter, ..ScanOptions::default() };
        let rows = self.scan_view(self.seen_in(state, kept, seq), None, &options, None)?.collect()?;
        let plain = rows.iter().map(|batch| Ok(RecordBatch::try_new(key_schema.clone(), batch.columns().to_vec())?));
        Ok(arrow::compute::concat_batches(&key_schema, &plain.collect::<Result<Vec<_>>>()?)?)
    }

    /// The rows of the view for groups, of those that it has.
    fn kept_groups(
        &self,
        (state, seq): (&State, crate::base::Seq),
        kept: &Arc<TableState>,
        shape: &Shape,
        groups: &RecordBatch,
    ) -> Result<RecordBatch> {
        let codec = kept.codec()?;
        let known: BooleanArray =
            (0..groups.num_rows()).map(|at| Some(groups.columns().iter().all(|key| key.is_valid(at)))).collect();
        let groups = filter_record_batch(groups, &known)?;
        let keys = shape.keys_of(&groups, codec.key_schema())?;
        let (mut all, mut columns) = (codec.keys_of(&keys)?.0, keys.columns().to_vec());
        let mut order: Vec<usize> = all.sorted_places().into_iter().map(|at| at as usize).collect();
        order.dedup_by(|one, two| all.get(*one) == all.get(*two));
        if order.len() < all.len() {
            let places = arrow::array::UInt32Array::from_iter_values(order.iter().map(|at| *at as u32));
            all = all.take(order.into_iter());
            for column in &mut columns {
                *column = arrow::compute::take(column, &places, None)?;
            }
        }
        let cancel = Cancel::default();
        let read_point = self.seen_in(state, kept, seq).read_point;
        let (reader, pool) = (self.reader(), &self.env().pool);
        let searcher = Searcher { reader, pool, table: kept, read_point, codec: &codec, cancel: &cancel };
        let found = searcher.get_many(&all, &columns, None)?;
        Ok(filter_record_batch(&found.rows, &found.found)?)
    }
}

/// The keys that effects write or delete.
fn written_keys_of(codec: &TableCodec, effects: &[&Effect]) -> Result<Keys> {
    let mut all = Keys::default();
    for effect in effects {
        if let Effect::WriteRows { rows, .. } = effect {
            rows.copy_keys(codec, &mut all)?;
        }
    }
    Ok(all)
}

/// Whether an effect on a table changes none of its rows.
fn is_neutral(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::FreezeRows { .. }
            | Effect::Tell { .. }
            | Effect::SetMetadata { .. }
            | Effect::CountChanged { .. }
            | Effect::AdvanceSequences { .. }
            | Effect::PutFollower { .. }
            | Effect::PutIndex { .. }
            | Effect::DropIndex { .. }
            | Effect::PutRuns { .. }
            | Effect::ProveIndex { .. }
            | Effect::MarkView { .. }
            | Effect::SetLayout { .. }
    )
}

/// Whether two schemas have the same columns, as to names and types.
pub(super) fn same_columns(one: &arrow::datatypes::Schema, two: &arrow::datatypes::Schema) -> bool {
    let columns = |schema: &arrow::datatypes::Schema| {
        schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect::<Vec<_>>()
    };
    columns(one) == columns(two)
}

/// A filter that is true for all rows of groups with these keys, and for few others.
fn near(shape: &Shape, source: &TableState, keys: &RecordBatch) -> Result<Option<Filter>> {
    let mut filter: Option<Filter> = None;
    let mut both = |more: Option<Filter>| {
        filter = filter.take().into_iter().chain(more).reduce(Filter::and);
    };
    let schema = source.schema().ok_or_else(|| Error::internal("a source has a version"))?.0.clone();
    if let Some((at, buckets)) = &shape.plan.buckets {
        let (name, labels): (&String, &ArrayRef) = (&shape.plan.columns[*at], keys.column(shape.plan.width() - 1));
        let field = schema.field_with_name(name)?;
        if let Some(ends) = buckets.bounds(labels)? {
            both(Filter::within(name, field.data_type(), ends));
        }
    }
    for (at, key) in shape.plan.keys.iter().enumerate() {
        let values = keys.column(at);
        if values.null_count() == 0 {
            both(Filter::one_of(&shape.plan.columns[*key], values));
        }
    }
    Ok(filter)
}
