//! What rows in memory have in an index, sorted: found when a read asks for it, in the records that were made since the last one that asked.
//!
//! Records are taken in the order in which they were made, into runs that are sorted by value. A run has more than twice as many entries as
//! the next one, so that each is sorted O(log rows) times, and a write costs nothing. A filter is evaluated on entries as it is on those of
//! runs in blocks: page by page, without the pages whose bounds rule it out.
//!
//! Entries are never removed: which row a key has is asked of the memtable, so a state of any time is served.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use parking_lot::Mutex;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Pool, Result};
use crate::filter::{BoundFilter, Verdict};
use crate::memtable::{Keys, Memtable, RowBytes};
use crate::segment::{ColumnStats, measure};
use crate::table::index::compared::named_batch;
use crate::table::index::definition::BoundIndex;
use crate::table::index::sorting::merged_entries;
use crate::table::{IndexDefinition, StoredSchema, TableCodec, TableIndex};

/// The entries of a page.
const PAGE_ENTRIES: usize = 512;

/// A memtable, and how its rows are encoded.
#[derive(Clone, Copy)]
pub(in crate::table) struct EncodedMemtable<'a> {
    pub memtable: &'a Memtable,
    pub codec: &'a TableCodec,
}

/// What the records of a memtable have in an index.
pub(in crate::table) struct SortedValues {
    definition: IndexDefinition,
    bound: BoundIndex,
    /// The values of an entry, then the number of its record.
    entries: SchemaRef,
    built: Mutex<BuiltValues>,
}

#[derive(Clone, Default)]
struct BuiltValues {
    /// How many records have been taken.
    records: usize,
    runs: Vec<Arc<SortedRun>>,
    /// The numbers of records whose values cannot be computed: hits of every filter.
    open: Arc<Vec<u32>>,
}

/// Entries that are sorted by value.
struct SortedRun {
    batches: Vec<SortedBatch>,
    entries: usize,
}

struct SortedBatch {
    entries: RecordBatch,
    /// Of each value, in all of them.
    whole: Vec<ColumnStats>,
    /// Of each value, by page.
    pages: Vec<Vec<ColumnStats>>,
}

impl std::fmt::Debug for SortedValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SortedValues").field("index", &self.definition.name).finish_non_exhaustive()
    }
}

impl SortedValues {
    /// Nothing yet, of rows that have `schema`; `None` if that lacks a column of the index.
    pub fn of(index: &TableIndex, schema: &StoredSchema) -> Result<Option<Self>> {
        let Some(named) = index.definition.named(schema)? else { return Ok(None) };
        let bound = named.bound(schema)?;
        let place = Field::new("record", DataType::UInt32, false);
        let fields = bound.schema.fields().iter().cloned().chain([Arc::new(place)]);
        let entries = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Some(Self { definition: index.definition.clone(), bound, entries, built: Mutex::default() }))
    }

    /// Whether it is of what this index is of.
    pub fn is_of(&self, index: &TableIndex) -> bool {
        let IndexDefinition { values, condition, .. } = &index.definition;
        (&self.definition.values, &self.definition.condition) == (values, condition)
    }

    /// Bytes in memory, about.
    pub fn memory_bytes(&self) -> u64 {
        let BuiltValues { runs, open, .. } = &*self.built.lock();
        let batches = runs.iter().flat_map(|run| &run.batches);
        batches.map(|batch| batch.entries.get_array_memory_size() as u64).sum::<u64>() + open.len() as u64 * 4
    }

    /// The numbers of records of `rows` for which `filter`, in the columns of entries, is true, or may be. Deletes are not among them, but
    /// rows that were written again since are.
    ///
    /// # Errors
    /// `InvalidArgument` or `SchemaMismatch` if the filter cannot be evaluated on some value.
    pub fn find(&self, rows: EncodedMemtable<'_>, pool: &Pool, filter: &BoundFilter) -> Result<Vec<u32>> {
        let BuiltValues { runs, open, .. } = self.up_to_date(rows, pool)?;
        let mut found = open.to_vec();
        for batch in runs.iter().flat_map(|run| &run.batches) {
            let count = batch.entries.num_rows();
            if filter.verdict(count as u64, &|at| batch.whole.get(at).cloned()) == Verdict::None {
                continue;
            }
            let numbers = batch.numbers();
            for (page, stats) in batch.pages.iter().enumerate() {
                let entries = page * PAGE_ENTRIES..((page + 1) * PAGE_ENTRIES).min(count);
                let stats = |at: usize| stats.get(at).cloned();
                match filter.verdict(entries.len() as u64, &stats) {
                    Verdict::None => {}
                    Verdict::All => found.extend(&numbers[entries]),
                    Verdict::Some => {
                        let narrowed = filter.narrowed(entries.len() as u64, &stats);
                        let value = |at: &usize| batch.entries.column(*at).slice(entries.start, entries.len());
                        let values: Vec<ArrayRef> = filter.columns().iter().map(value).collect();
                        let hits = narrowed.hits(&self.bound.schema, entries.len(), values)?;
                        found.extend(hits.into_iter().map(|at| numbers[entries.start + at as usize]));
                    }
                }
            }
        }
        Ok(found)
    }

    /// What there is, with the records that were made since.
    fn up_to_date(&self, rows: EncodedMemtable<'_>, pool: &Pool) -> Result<BuiltValues> {
        let mut built = self.built.lock();
        if built.records < rows.memtable.records() && !(planted(Bug::ForgetLaterRows) && built.records > 0) {
            let (mut numbers, mut keys, mut bytes) = (Vec::new(), Keys::default(), RowBytes::default());
            for (at, record) in (built.records..).zip(rows.memtable.records_from(built.records)) {
                built.records = at + 1;
                if record.is_delete() {
                    continue;
                }
                numbers.push(u32::try_from(at).map_err(|_| Error::internal("a memtable has too many records"))?);
                record.copy_key(&mut keys);
                bytes.push_with(|out| record.copy_row(out));
            }
            match self.entries_of(rows, &keys, &bytes, &numbers) {
                Ok(entries) if entries.num_rows() > 0 => self.add(&mut built.runs, entries, pool)?,
                Ok(_) => {}
                Err(_) => Arc::make_mut(&mut built.open).extend(numbers),
            }
        }
        Ok(built.clone())
    }

    /// The entries of rows that the index has.
    fn entries_of(
        &self,
        rows: EncodedMemtable<'_>,
        keys: &Keys,
        bytes: &RowBytes,
        numbers: &[u32],
    ) -> Result<RecordBatch> {
        let columns = rows.codec.decode(keys, bytes, &self.bound.columns)?;
        let batch = named_batch(rows.codec.schema(), &self.bound.columns, columns, keys.len())?;
        let (mut values, wanted) = self.bound.values(&batch)?;
        values.push(Arc::new(UInt32Array::from(numbers.to_vec())));
        let entries = RecordBatch::try_new(self.entries.clone(), values)?;
        Ok(match wanted {
            Some(wanted) => arrow::compute::filter_record_batch(&entries, &wanted)?,
            None => entries,
        })
    }

    /// Adds entries as a run, together with those at the end that are not much larger.
    fn add(&self, runs: &mut Vec<Arc<SortedRun>>, entries: RecordBatch, pool: &Pool) -> Result<()> {
        let mut count = entries.num_rows();
        let mut batches = vec![entries];
        while let Some(run) = runs.pop_if(|run| run.entries <= 2 * count) {
            count += run.entries;
            batches.extend(run.batches.iter().map(|batch| batch.entries.clone()));
        }
        let names: Vec<String> = self.bound.schema.fields().iter().map(|field| field.name().clone()).collect();
        let sorted = merged_entries(pool, self.entries.clone(), &names, batches)?;
        runs.push(Arc::new(SortedRun { batches: sorted.into_iter().map(SortedBatch::new).collect(), entries: count }));
        Ok(())
    }
}

impl SortedBatch {
    fn new(entries: RecordBatch) -> Self {
        let values = &entries.columns()[..entries.num_columns() - 1];
        let whole = values.iter().map(measure).collect();
        let page = |start: usize| {
            let count = PAGE_ENTRIES.min(entries.num_rows() - start);
            values.iter().map(|value| measure(&value.slice(start, count))).collect()
        };
        let pages = (0..entries.num_rows()).step_by(PAGE_ENTRIES).map(page).collect();
        Self { whole, pages, entries }
    }

    fn numbers(&self) -> &[u32] {
        self.entries.column(self.entries.num_columns() - 1).as_primitive::<UInt32Type>().values()
    }
}
