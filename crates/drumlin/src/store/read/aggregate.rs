//! Aggregates of a data set, computed row group by row group on all threads.
//!
//! Each thread takes the next row group of any table, decoded only as far as that costs nothing (`Form::Stored`:
//! dictionaries stay codes, decimals as narrow as they are stored), and adds it to groups of its own; these are merged
//! at the end. If the groups take more than half of `memory_bytes`, they are found share by share, by a hash of the
//! keys, and the rows are read again for each share. One group that does not fit alone is an error at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::aggregate::{Function, GroupBy, Grouping, Groups, in_order};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result};
use crate::store::Dataset;
use crate::table::{Ahead, ScanOptions, ScanPart};

/// With this number of shares, what is left is one group that is too large.
const SHARES_MAX: u64 = 1 << 12;

/// How many parts are requested from storage before they are read.
const FETCH_AHEAD: usize = 4;

impl Dataset {
    /// Groups the rows that the filter of `options` keeps, and makes of each group what is asked: a row for each, ordered by the keys,
    /// nulls first. Without keys there is one row. The answer is the same, bit by bit, for any number of threads, and before and after a
    /// checkpoint.
    ///
    /// O(rows), in memory for the groups: if they take more than half of `memory_bytes`, the rows are read again for each share of them
    /// that fits.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
    /// # use drumlin::{Aggregate, Function, GroupBy, Store, Tables};
    /// # let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    /// # let rows = RecordBatch::try_from_iter([("k", column(vec![2, 1, 2])), ("n", column(vec![10, 20, 30]))]).unwrap();
    /// # let store = Store::memory()?;
    /// store.write("t", rows, &Default::default())?;
    /// let sum = Aggregate { name: "sum".into(), function: Function::Sum, of: Some("n".into()) };
    /// let asked = GroupBy { keys: vec!["k".into()], aggregates: vec![sum], ..GroupBy::default() };
    /// let sums = store.scan("t", &Default::default())?.aggregate(&asked, &Default::default())?;
    /// assert_eq!(sums["sum"].as_ref(), &Int64Array::from(vec![20, 40]));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for columns that are lacking, values that an aggregate does not take, a sum that its type does not hold, and for
    /// one group whose values do not fit into memory; as [`Dataset::scan`].
    pub fn aggregate(&self, asked: &GroupBy, options: &ScanOptions) -> Result<RecordBatch> {
        if options.limit.is_some() || options.tail.is_some() || options.offset > 0 || options.columns.is_some() {
            return Err(Error::invalid(
                "aggregates use all rows that the filter keeps; leave out columns, limit, offset and tail",
            ));
        }
        let values = asked.aggregates.iter().filter_map(|aggregate| aggregate.of.as_deref());
        self.check_readable(Some(asked.keys.iter().map(String::as_str).chain(values)))?;
        let plan = Arc::new(Grouping::new(asked, &self.schema())?);
        self.check_readable(Some(plan.columns.iter().map(String::as_str)))?;
        if plan.columns.is_empty() {
            // Rows are counted without being read where records and statistics say how many there are.
            let rows = i64::try_from(self.count_rows(options)?)
                .map_err(|_| Error::invalid("there are more than 2^63 rows"))?;
            let counts = asked.aggregates.iter().map(|_| Arc::new(Int64Array::from(vec![rows])) as ArrayRef);
            debug_assert!(asked.aggregates.iter().all(|aggregate| aggregate.function == Function::Count));
            return Ok(RecordBatch::try_new(plan.schema.clone(), counts.collect())?);
        }
        let options = ScanOptions { columns: Some(plan.columns.clone()), ..options.clone() };
        // All rows are of one group, which has no shares.
        let most = if plan.width() == 0 { 1 } else { SHARES_MAX };
        let mut shares = 1;
        while shares <= most {
            let found = self.place().store().while_reclaimed(|| self.in_shares(&plan, shares, &options))?;
            match found {
                BudgetOutcome::All(rows) => return Ok(rows),
                BudgetOutcome::TooLarge { group: true } => break,
                BudgetOutcome::TooLarge { group: false } => shares *= 4,
            }
        }
        let what = if shares > most && most > 1 { "the groups" } else { "the values of one group" };
        Err(Error::invalid(format!(
            "{what} take more memory than the store may use (`memory_bytes`); raise it, or filter the rows"
        )))
    }

    /// The result, computed in `shares` shares.
    fn in_shares(
        &self,
        plan: &Arc<Grouping>,
        shares: u64,
        options: &ScanOptions,
    ) -> Result<BudgetOutcome<RecordBatch>> {
        let mut found = Vec::new();
        for share in 0..shares {
            match self.groups(plan, (share, shares), options)? {
                BudgetOutcome::All(groups) => found.push(groups.finish()?),
                BudgetOutcome::TooLarge { group } => return Ok(BudgetOutcome::TooLarge { group }),
            }
        }
        match found.as_slice() {
            [only] => Ok(BudgetOutcome::All(only.clone())),
            several => in_order(plan, several).map(BudgetOutcome::All),
        }
    }

    /// A share of the groups: each thread adds the next part to its own, and these are merged.
    fn groups(&self, plan: &Arc<Grouping>, share: (u64, u64), options: &ScanOptions) -> Result<BudgetOutcome<Groups>> {
        let opened = self.unpruned(options)?.0;
        let held = self.held(&opened)?;
        let mut parts: Vec<ScanPart> = Vec::new();
        for at in opened {
            let scan = held.scan_table(at, options)?;
            parts.extend(if plan.depends_on_order() { scan.into_parts() } else { scan.into_unordered_parts() });
        }
        let store = self.place().store();
        let threads = store.env().pool.threads().clamp(1, parts.len().max(1));
        let budget = store.options().memory_bytes as usize / 2 / threads;
        let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let remote = parts.first().is_some_and(ScanPart::is_fetched).then(Ahead::default);
        let work = |_| {
            let mut groups = Groups::new(plan, share)?;
            let mut unchecked = 0;
            while !over.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = parts.get(at) else { break };
                match &remote {
                    Some(ahead) => ahead.before(at, parts.len(), |range| ScanPart::fetch(&parts[range])),
                    None => parts.get(at + FETCH_AHEAD).into_iter().for_each(ScanPart::prefetch),
                }
                // No part has as many rows.
                let mut rank = if planted(Bug::RankParts) { 0 } else { (at as u64) << 32 };
                for batch in part.decode_as_stored()? {
                    groups.add(&batch, rank)?;
                    rank += batch.num_rows() as u64;
                    unchecked += batch.num_rows();
                }
                if unchecked >= groups.count() {
                    unchecked = 0;
                    over.fetch_or(groups.bytes() > budget, Ordering::Relaxed);
                }
            }
            Ok(groups)
        };
        let found = store.env().pool.map((0..threads).collect(), work)?;
        if over.load(Ordering::Relaxed) {
            return Ok(BudgetOutcome::TooLarge { group: found.iter().any(|groups| groups.largest() > budget) });
        }
        let mut found = found.into_iter();
        let mut groups = match found.next() {
            Some(groups) => groups,
            None => Groups::new(plan, share)?,
        };
        found.for_each(|more| groups.merge(more));
        Ok(BudgetOutcome::All(groups))
    }
}

/// What was found within the memory that there is.
enum BudgetOutcome<T> {
    All(T),
    /// Too much: of one group alone, or of many.
    TooLarge {
        group: bool,
    },
}
