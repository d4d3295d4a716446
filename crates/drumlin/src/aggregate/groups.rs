//! The groups of rows that came, with what is known of each. Groups of other rows are merged in; the result does not depend on
//! how rows were divided.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{cast, take};
use arrow::row::{RowConverter, SortField};

use super::codes::{Codes, Combinations, picked};
use super::plan::Grouping;
use super::state::State;
use crate::base::{Error, Result};

/// Groups, and what is known of them.
pub struct Groups {
    plan: Arc<Grouping>,
    converter: RowConverter,
    /// By their keys, in bytes that compare like them.
    known: HashMap<Box<[u8]>, u32>,
    key_bytes: usize,
    states: Vec<State>,
    /// Which of how many shares of all groups these are.
    share: (u64, u64),
}

impl Groups {
    /// None yet, of one of `share.1` shares of all.
    pub fn new(plan: &Arc<Grouping>, share: (u64, u64)) -> Result<Self> {
        let types = plan.schema.fields()[..plan.width()].iter();
        let converter = RowConverter::new(types.map(|field| SortField::new(field.data_type().clone())).collect())?;
        let states = plan.aggregates.iter().map(|bound| State::new(&bound.function, &bound.data_type)).collect();
        let mut groups = Self { plan: plan.clone(), converter, known: HashMap::new(), key_bytes: 0, states, share };
        if plan.width() == 0 {
            // All rows are of one group, also if there are none.
            groups.id(Box::default());
            groups.grow();
        }
        Ok(groups)
    }

    fn grow(&mut self) {
        let groups = self.known.len();
        self.states.iter_mut().for_each(|state| state.grow(groups));
    }

    fn id(&mut self, key: Box<[u8]>) -> u32 {
        let (next, bytes) = (self.known.len() as u32, key.len());
        let id = *self.known.entry(key).or_insert(next);
        if id == next {
            self.key_bytes += bytes;
        }
        id
    }

    /// Whether a key is of this share.
    fn is_ours(&self, key: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        self.share.1 == 1 || hasher.finish() % self.share.1 == self.share.0
    }

    /// Adds rows that have the plan's columns, in types of equal values. `rank` orders them among all, row by row.
    pub fn add(&mut self, batch: &RecordBatch, rank: u64) -> Result<()> {
        let (plan, rows) = (self.plan.clone(), batch.num_rows());
        let mut keys: Vec<ArrayRef> = plan.keys.iter().map(|at| batch.column(*at).clone()).collect();
        if let Some((at, buckets)) = &plan.buckets {
            keys.push(Arc::new(buckets.labels(batch.column(*at))?));
        }
        let codes = keys.iter().map(Codes::of).collect::<Result<Vec<_>>>()?;
        let found = Combinations::of(&codes, rows);
        let mut ids = vec![0; found.first.len()];
        if plan.width() > 0 {
            let fields = plan.schema.fields().iter();
            let firsts = keys.iter().zip(fields).map(|(key, field)| picked(key, &found.first, field.data_type()));
            let bytes = self.converter.convert_columns(&firsts.collect::<Result<Vec<_>>>()?)?;
            for (id, key) in ids.iter_mut().zip(&bytes) {
                *id = if self.is_ours(key.data()) { self.id(key.data().into()) } else { u32::MAX };
            }
            if self.known.len() >= u32::MAX as usize {
                return Err(Error::invalid("there are more than 2^32 groups"));
            }
            self.grow();
        }
        let mut of_rows: Vec<u32> = found.codes.of_rows.iter().map(|code| ids[*code as usize]).collect();
        let mut ours = None;
        if ids.contains(&u32::MAX) {
            let places = (0_u32..).zip(&of_rows).filter(|(_, id)| **id != u32::MAX).map(|(at, _)| at);
            ours = Some(UInt32Array::from_iter_values(places));
            of_rows.retain(|id| *id != u32::MAX);
        }
        for (bound, state) in plan.aggregates.iter().zip(&mut self.states) {
            let mut inputs = bound.inputs.iter().map(|input| input.of(batch)).collect::<Result<Vec<_>>>()?;
            if let Some(ours) = &ours {
                // Their order is all that ranks say.
                inputs = inputs.iter().map(|input| Ok(take(input, ours, None)?)).collect::<Result<_>>()?;
            }
            state.add(&of_rows, &inputs, rank)?;
        }
        Ok(())
    }

    /// Takes in other groups of the same plan.
    pub fn merge(&mut self, other: Groups) {
        let mut map = vec![0; other.known.len()];
        for (key, at) in other.known {
            map[at as usize] = self.id(key);
        }
        self.grow();
        for (state, more) in self.states.iter_mut().zip(other.states) {
            state.merge(more, &map);
        }
    }

    /// About how much memory they take.
    pub fn bytes(&self) -> usize {
        const ENTRY: usize = 32;
        let states: usize = self.states.iter().map(State::bytes).sum();
        self.key_bytes + self.known.capacity() * ENTRY + states
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// A row for each group, ordered by the keys, nulls first.
    pub fn finish(self) -> Result<RecordBatch> {
        let Self { plan, converter, known, states, .. } = self;
        let mut known: Vec<(Box<[u8]>, u32)> = known.into_iter().collect();
        known.sort_unstable();
        let ids: Vec<u32> = known.iter().map(|(_, id)| *id).collect();
        let mut columns = Vec::with_capacity(plan.schema.fields().len());
        if plan.width() > 0 {
            let parser = converter.parser();
            columns = converter.convert_rows(known.iter().map(|(key, _)| parser.parse(key)))?;
        }
        let fields = plan.schema.fields()[plan.width()..].iter();
        for ((state, bound), field) in states.into_iter().zip(&plan.aggregates).zip(fields) {
            let named = |e: Error| e.context(format!("aggregate '{}'", field.name()));
            columns.push(state.finish(&ids, bound, field.data_type()).map_err(named)?);
        }
        for (column, field) in columns.iter_mut().zip(plan.schema.fields()) {
            if column.data_type() != field.data_type() {
                *column = cast(column, field.data_type())?;
            }
        }
        Ok(RecordBatch::try_new(plan.schema.clone(), columns)?)
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
