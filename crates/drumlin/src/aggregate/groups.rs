//! The groups of rows that came, with what is known of each. Groups of other rows are merged in; the result does not depend on
//! how rows were divided.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::Schema;
use arrow::row::{RowConverter, SortField};

use super::codes::{Combinations, RowCodes, picked};
use super::keys;
use super::keys::KeyInterner;
use super::plan::Grouping;
use super::runs::GroupRun;
use super::state::AggregateState;
use crate::base::{Error, Result};

/// With up to this number of groups in a batch, what its rows add up to is found in several places for each group: neighbouring rows
/// are mostly of one, and an addition need not wait for the one before it.
const APART_MAX: usize = 1 << 10;

/// With up to this number of groups in a batch, values are computed and added up for this number of rows at a time.
const BLOCK_GROUPS_MAX: usize = 256;
const BLOCK_ROWS: usize = 1 << 14;

/// Groups, and what is known of them.
pub struct Groups {
    plan: Arc<Grouping>,
    converter: RowConverter,
    /// In bytes that compare like the values of their columns.
    keys: KeyInterner,
    /// By the place of their aggregate.
    states: BTreeMap<usize, AggregateState>,
    /// Which of how many shares of all groups these are.
    share: (u64, u64),
}

impl Groups {
    /// None yet, of one of `share.1` shares of all.
    pub fn new(plan: &Arc<Grouping>, share: (u64, u64)) -> Result<Self> {
        let types = plan.schema.fields()[..plan.width()].iter();
        let converter = RowConverter::new(types.map(|field| SortField::new(field.data_type().clone())).collect())?;
        let states =
            plan.needed().map(|(at, bound)| (at, AggregateState::new(&bound.function, &bound.data_type))).collect();
        let mut groups = Self { plan: plan.clone(), converter, keys: KeyInterner::default(), states, share };
        if plan.width() == 0 {
            // All rows are of one group, also if there are none.
            groups.keys.number(&[], keys::hash(&[]));
            groups.grow();
        }
        Ok(groups)
    }

    fn grow(&mut self) {
        let groups = self.keys.count();
        self.states.values_mut().for_each(|state| state.grow(groups));
    }

    /// The number of a key's group, or `u32::MAX` if it is of another share.
    fn group(&mut self, key: &[u8]) -> u32 {
        let hash = keys::hash(key);
        // The table of keys uses the lower bits.
        if self.share.1 > 1 && (hash >> 32) % self.share.1 != self.share.0 {
            return u32::MAX;
        }
        self.keys.number(key, hash)
    }

    /// Adds rows that have the plan's columns, in types of equal values. `rank` orders them among all, row by row.
    pub fn add(&mut self, batch: &RecordBatch, rank: u64) -> Result<()> {
        let (found, groups) = self.find(batch)?;
        let codes = &found.of_rows[..];
        // What is computed of a block is still near when it is added up.
        let block = if groups.len() <= BLOCK_GROUPS_MAX { BLOCK_ROWS } else { batch.num_rows().max(1) };
        for (at, codes) in (0..).step_by(block).zip(codes.chunks(block)) {
            self.add_block(&batch.slice(at, codes.len()), codes, &groups, rank + at as u64)?;
        }
        Ok(())
    }

    /// Adds some rows of a batch: the distinct key of each, and the groups of these.
    fn add_block(&mut self, batch: &RecordBatch, codes: &[u32], groups: &[u32], rank: u64) -> Result<()> {
        let plan = self.plan.clone();
        let (mut ids, mut ours, mut runs) = (Vec::new(), None, None);
        if !groups.contains(&u32::MAX) {
            runs = GroupRun::all(codes, groups);
        } else {
            let (places, some): (Vec<u32>, Vec<u32>) = (0..)
                .zip(codes)
                .map(|(at, code)| (at, groups[*code as usize]))
                .filter(|(_, id)| *id != u32::MAX)
                .unzip();
            (ours, ids) = (Some(UInt32Array::from(places)), some);
        }
        let mut apart: Option<GroupPlaces> = None;
        for ((_, bound), state) in plan.needed().zip(self.states.values_mut()) {
            let mut inputs = bound.inputs.iter().map(|input| input.of(batch)).collect::<Result<Vec<_>>>()?;
            if let Some(ours) = &ours {
                // Their order is all that ranks say.
                inputs = inputs.iter().map(|input| Ok(take(input, ours, None)?)).collect::<Result<_>>()?;
            }
            if let Some(runs) = &runs
                && state.add_runs(runs, &inputs, rank)?
            {
                continue;
            }
            let wide =
                |lanes: usize| lanes == 1 || (groups.len() <= APART_MAX && groups.len() * lanes * 4 <= codes.len());
            let (places, of_places) = match state.places().filter(|lanes| ours.is_none() && wide(*lanes)) {
                None => {
                    if ours.is_none() && ids.is_empty() {
                        ids.extend(codes.iter().map(|code| groups[*code as usize]));
                    }
                    state.add(&ids, &inputs, rank)?;
                    continue;
                }
                Some(1) => (codes, groups),
                Some(lanes) => {
                    let apart = apart.get_or_insert_with(|| GroupPlaces::new(codes, groups, lanes));
                    if state.add_places(&apart.of_rows, &apart.groups, &apart.counts, &inputs)? {
                        continue;
                    }
                    (&apart.of_rows[..], &apart.groups[..])
                }
            };
            let mut some = AggregateState::new(&bound.function, &bound.data_type);
            some.grow(of_places.len());
            some.add(places, &inputs, rank)?;
            state.merge(some, of_places);
        }
        Ok(())
    }

    /// The distinct keys of a batch, and the group of each, or `u32::MAX` if it is of another share.
    fn find(&mut self, batch: &RecordBatch) -> Result<(Combinations, Vec<u32>)> {
        let plan = self.plan.clone();
        let mut codes = Vec::with_capacity(plan.width());
        for at in &plan.keys {
            codes.push(RowCodes::of(batch.column(*at))?);
        }
        let labels = plan.buckets.as_ref().map(|(at, buckets)| buckets.codes(batch.column(*at))).transpose()?;
        let all: Vec<&RowCodes> = codes.iter().chain(labels.as_ref().map(|labels| &labels.codes)).collect();
        let found = Combinations::of(&all, batch.num_rows());
        let mut groups = vec![0; found.first.len()];
        if plan.width() > 0 {
            let mut firsts: Vec<ArrayRef> = Vec::with_capacity(plan.width());
            for (at, field) in plan.keys.iter().zip(plan.schema.fields()) {
                firsts.push(picked(batch.column(*at), &found.first, field.data_type())?);
            }
            if let Some(labels) = &labels {
                let data_type = plan.schema.field(plan.width() - 1).data_type();
                firsts.push(labels.picked(&found.first, data_type)?);
            }
            let keys = self.converter.convert_columns(&firsts)?;
            groups.iter_mut().zip(&keys).for_each(|(group, key)| *group = self.group(key.data()));
            if self.keys.count() >= u32::MAX as usize {
                return Err(Error::invalid(
                    "there are more than 2^32 groups; group by fewer columns or by longer buckets",
                ));
            }
            self.grow();
        }
        Ok((found, groups))
    }

    /// Takes in other groups of the same plan.
    pub fn merge(&mut self, other: Groups) {
        self.merge_mapped(other);
    }

    /// The same; returns the numbers that they have here.
    pub(super) fn merge_mapped(&mut self, other: Groups) -> Vec<u32> {
        let (map, states) = self.mapped(other);
        for (state, more) in self.states.values_mut().zip(states) {
            state.merge(more, &map);
        }
        map
    }

    /// The numbers that other groups have here, which get places if they are new, and what is known of them.
    pub(super) fn mapped(&mut self, other: Groups) -> (Vec<u32>, impl Iterator<Item = AggregateState> + use<>) {
        let number = |at: usize| {
            let key = other.keys.get(at);
            self.keys.number(key, keys::hash(key))
        };
        let map: Vec<u32> = (0..other.keys.count()).map(number).collect();
        self.grow();
        (map, other.states.into_values())
    }

    /// The numbers of groups with these keys, which get places if they are new.
    pub(super) fn numbers_of(&mut self, key_columns: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        if self.plan.width() == 0 {
            return Ok(vec![0; rows]);
        }
        let found = self.converter.convert_columns(key_columns)?;
        let ids = found.iter().map(|key| self.keys.number(key.data(), keys::hash(key.data()))).collect();
        self.grow();
        Ok(ids)
    }

    /// What is known of them, with the place of each aggregate among those asked for.
    pub(super) fn states_mut(&mut self) -> impl Iterator<Item = (usize, &mut AggregateState)> {
        self.states.iter_mut().map(|(at, state)| (*at, state))
    }

    /// The same, to be looked at.
    pub(super) fn states(&self) -> impl Iterator<Item = &AggregateState> {
        self.states.values()
    }

    pub(super) fn plan(&self) -> &Grouping {
        &self.plan
    }

    /// The numbers of all, ordered by their keys.
    pub(super) fn in_order(&self) -> Vec<u32> {
        self.keys.in_order()
    }

    /// The keys of some.
    pub(super) fn keys_of(&self, ids: &[u32]) -> Result<RecordBatch> {
        let fields: Vec<_> = self.plan.schema.fields()[..self.plan.width()].to_vec();
        let parser = self.converter.parser();
        let columns = match fields.is_empty() {
            true => Vec::new(),
            false => self.converter.convert_rows(ids.iter().map(|id| parser.parse(self.keys.get(*id as usize))))?,
        };
        let options = RecordBatchOptions::new().with_row_count(Some(ids.len()));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
    }

    /// About how much memory they take.
    pub fn bytes(&self) -> usize {
        self.keys.memory() + self.states.values().map(AggregateState::bytes).sum::<usize>()
    }

    /// About how much memory the largest of them takes, which no smaller share would spare.
    pub fn largest(&self) -> usize {
        self.states.values().map(AggregateState::largest).sum()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.keys.count()
    }

    /// A row for each group, ordered by the keys, nulls first.
    pub fn finish(self) -> Result<RecordBatch> {
        let ids = self.keys.in_order();
        self.finish_in(&ids)
    }

    /// A row for each of some groups, in this order.
    pub(super) fn finish_in(self, ids: &[u32]) -> Result<RecordBatch> {
        let Self { plan, converter, keys, mut states, .. } = self;
        let mut columns = Vec::with_capacity(plan.schema.fields().len());
        if plan.width() > 0 {
            let parser = converter.parser();
            columns = converter.convert_rows(ids.iter().map(|id| parser.parse(keys.get(*id as usize))))?;
        }
        let fields = plan.schema.fields()[plan.width()..].iter();
        for ((bound, needs), field) in plan.aggregates.iter().zip(fields) {
            let named = |e: Error| e.context(format!("aggregate '{}'", field.name()));
            let state = states.get_mut(needs).expect("what is needed is known");
            columns.push(state.finish(ids, bound, field.data_type()).map_err(named)?);
        }
        for (column, field) in columns.iter_mut().zip(plan.schema.fields()) {
            if column.data_type() != field.data_type() {
                *column = cast(column, field.data_type())?;
            }
        }
        Ok(RecordBatch::try_new(plan.schema.clone(), columns)?)
    }
}

/// Several places for each group of a batch.
struct GroupPlaces {
    of_rows: Vec<u32>,
    /// The group of each place, and how many rows have it.
    groups: Vec<u32>,
    counts: Vec<u64>,
}

impl GroupPlaces {
    /// Neighbouring rows have each another of `lanes` places.
    fn new(codes: &[u32], groups: &[u32], lanes: usize) -> Self {
        let mut of_rows = codes.to_vec();
        for some in of_rows.chunks_mut(lanes) {
            some.iter_mut().zip(0_u32..).for_each(|(place, lane)| *place += lane * groups.len() as u32);
        }
        let mut counts = vec![0; groups.len() * lanes];
        of_rows.iter().for_each(|place| counts[*place as usize] += 1);
        Self { of_rows, groups: groups.repeat(lanes), counts }
    }
}

/// Rows of several shares of groups, in the order of the whole.
pub fn in_order(plan: &Grouping, shares: &[RecordBatch]) -> Result<RecordBatch> {
    let whole = arrow::compute::concat_batches(&plan.schema, shares)?;
    let fields = plan.schema.fields()[..plan.width()].iter();
    let converter = RowConverter::new(fields.map(|field| SortField::new(field.data_type().clone())).collect())?;
    let rows = converter.convert_columns(&whole.columns()[..plan.width()])?;
    let mut order: Vec<u32> = (0..whole.num_rows() as u32).collect();
    order.sort_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
    Ok(arrow::compute::take_record_batch(&whole, &UInt32Array::from(order))?)
}
