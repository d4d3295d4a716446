//! Joins of data sets in time: table by table in the order of their paths, the next ones ahead of the consumer.
//!
//! Where columns that must be equal are made of names in paths on both sides, a table is joined only with the tables of the other side that
//! have the same names, and no other is opened. Of other columns that names of the left side must equal, only rows with these are read. Small
//! tables are joined by tasks of the CPU pool, some at once. Of large ones both sides are read as streams that pass each other, if both are
//! ordered by time, and if it is known how far ahead rows are needed; otherwise the right side is held in memory, of which it may take half
//! of what the store may use.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, SchemaRef};

use crate::base::{Error, ErrorKind, Result, waiting};
use crate::filter::Filter;
use crate::join::{JoinKind, JoinPlan, JoinSide, Passing};
use crate::segment::plain_type;
use crate::store::Dataset;
use crate::table::{Scan, ScanOptions, ScanPart};

/// What is joined with a data set, and how.
#[derive(Clone)]
pub struct JoinOptions {
    /// What becomes of the rows of the right side.
    pub kind: JoinKind,
    /// The columns of times or numbers that say what is near: of the left side and of the right.
    pub on: (String, String),
    /// Columns of both sides that must be equal; a null equals nothing.
    pub by: Vec<String>,
    /// What is put behind the names of columns of the right side that the left side has, too.
    pub suffix: String,
    /// What is read of the left side: all its columns are in the result, or those that are named here.
    pub left: ScanOptions,
    /// What is read of the right side.
    pub right: ScanOptions,
    /// A table and those that it is joined with are held in memory by one task if they have no more encoded bytes. Default: 8 MiB.
    pub task_bytes: u64,
}

impl JoinOptions {
    /// A join by the column `on` of both sides, with all columns of both, and the suffix `_right`.
    pub fn new(kind: JoinKind, on: &str) -> Self {
        let (on, suffix, task_bytes) = ((on.to_owned(), on.to_owned()), "_right".to_owned(), 8 << 20);
        Self {
            kind,
            on,
            by: Vec::new(),
            suffix,
            left: ScanOptions::default(),
            right: ScanOptions::default(),
            task_bytes,
        }
    }
}

/// A table of the left side, and those of the right side that it is joined with.
struct JoinedTables {
    left: usize,
    right: Vec<usize>,
}

/// Both sides and what is to be read of them.
struct BothSides {
    plan: JoinPlan,
    left: Dataset,
    right: Dataset,
    left_options: ScanOptions,
    right_options: ScanOptions,
    right_schema: SchemaRef,
    /// Columns of texts on the right side that must equal names in paths on the left.
    named: Vec<String>,
    task_bytes: u64,
}

/// A join, read batch by batch in the order of the left side.
pub struct JoinScan {
    sides: Arc<BothSides>,
    waiting: VecDeque<JoinedTables>,
    running: VecDeque<RunningJoin>,
    ready: VecDeque<RecordBatch>,
}

enum RunningJoin {
    /// A task joins them.
    Task(JoinedTables, Receiver<Result<Vec<RecordBatch>>>),
    /// They are joined as they are read.
    Passing(Box<(Scan, Passing<RightScans>)>),
    /// They are joined at once when it is their turn.
    Whole(JoinedTables),
}

/// One table of the right side, or none.
type RightScans = std::iter::Flatten<std::option::IntoIter<Scan>>;

impl Dataset {
    /// Each row of this data set with what is near in time in `right`: see [`JoinKind`]. Rows come in the order of this data set, and all of them
    /// do. Nothing is read before the first batch is asked for, except what tells which tables there are.
    ///
    /// O(rows of both sides) where they are ordered by time, O(n log n) otherwise. In memory are some small tables or row groups, and the last
    /// row for each value of `by`; but all rows of the right tables of one left table where these are not ordered by time, are several, or
    /// where rows are looked for ahead, for each value of a column that is not made of paths, without a tolerance.
    ///
    /// # Errors
    /// `InvalidArgument` or `NotFound` if columns are lacking, do not compare, or are not unique in the result, and if the right side of one
    /// table does not fit into half of the memory that the store may use; as [`Dataset::scan`].
    pub fn join(&self, right: &Dataset, options: &JoinOptions) -> Result<JoinScan> {
        let JoinOptions { kind, on, by, suffix, left: left_options, right: right_options, task_bytes } = options;
        for asked in [left_options, right_options] {
            if asked.limit.is_some() || asked.tail.is_some() || asked.offset > 0 {
                return Err(Error::invalid(
                    "a join has all rows that the filters keep; leave out limit, offset and tail",
                ));
            }
        }
        let by_path = |name: &&String| self.path_columns().contains(name) && right.path_columns().contains(name);
        let (paths, inside): (Vec<&String>, Vec<&String>) = by.iter().partition(by_path);
        let (left_schema, right_schema) = (self.schema(), right.schema());
        // What is equal on both sides is said by the left one.
        let is_same = |name: &str| by.iter().any(|own| own == name) || (on.0 == on.1 && name == on.1);
        let names = |schema: &SchemaRef| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        let left_columns = left_options.columns.clone().unwrap_or_else(|| names(&left_schema));
        let right_columns = right_options
            .columns
            .clone()
            .unwrap_or_else(|| names(&right_schema).into_iter().filter(|name| !is_same(name)).collect());
        let left_side = JoinSide { schema: &left_schema, columns: &left_columns, on: &on.0 };
        let right_side = JoinSide { schema: &right_schema, columns: &right_columns, on: &on.1 };
        let inside: Vec<String> = inside.into_iter().cloned().collect();
        let is_text = |name: &&String| {
            let field = right_schema.field_with_name(name);
            field.is_ok_and(|field| plain_type(field.data_type()) == Some(DataType::Utf8))
                && self.path_columns().contains(name)
        };
        let named: Vec<String> = inside.iter().filter(is_text).cloned().collect();
        let plan = JoinPlan::new(kind, &left_side, &right_side, &inside, suffix)?;
        self.check_readable(Some(plan.left_columns().iter().map(String::as_str)))?;
        right.check_readable(Some(plan.right_columns().iter().map(String::as_str)))?;
        let of_side = |options: &ScanOptions, columns: &[String]| ScanOptions {
            columns: Some(columns.to_vec()),
            ..options.clone()
        };
        let left_options = of_side(left_options, plan.left_columns());
        let right_options = of_side(right_options, plan.right_columns());
        let mut of_names: HashMap<Vec<&str>, Vec<usize>> = HashMap::new();
        let right_tables = right.unpruned(&right_options)?.0;
        for at in &right_tables {
            of_names.entry(right.names_of(*at, &paths)).or_default().push(*at);
        }
        let left_tables = self.unpruned(&left_options)?.0;
        let waiting: VecDeque<JoinedTables> = left_tables
            .iter()
            .map(|left| JoinedTables {
                left: *left,
                right: of_names.get(&self.names_of(*left, &paths)).cloned().unwrap_or_default(),
            })
            .collect();
        let wanted: Vec<usize> = waiting.iter().flat_map(|tables| tables.right.iter().copied()).collect();
        let places = plan.right_columns().iter().map(|name| crate::table::find_column(&right_schema, name));
        let right_schema = Arc::new(right_schema.project(&places.collect::<Result<Vec<_>>>()?)?);
        let (left, right) = (self.held(&left_tables)?, right.held(&wanted)?);
        let task_bytes = *task_bytes;
        let sides = BothSides { plan, left, right, left_options, right_options, right_schema, named, task_bytes };
        Ok(JoinScan { sides: Arc::new(sides), waiting, running: VecDeque::new(), ready: VecDeque::new() })
    }
}

impl BothSides {
    fn scans(&self, tables: &JoinedTables) -> Result<(Scan, Vec<Scan>)> {
        let left = self.left.scan_table(tables.left, &self.left_options)?;
        let names = self.left.names_of(tables.left, &self.named.iter().collect::<Vec<_>>());
        let equal = self.named.iter().zip(names).map(|(column, name)| {
            let name: ArrayRef = Arc::new(StringArray::from(vec![name]));
            Filter::one_of(column, &name)
        });
        let filter = equal.flatten().chain(self.right_options.filter.clone()).reduce(Filter::and);
        let options = ScanOptions { filter, ..self.right_options.clone() };
        let right = tables.right.iter().map(|at| self.right.scan_table(*at, &options));
        Ok((left, right.collect::<Result<_>>()?))
    }

    /// Whether both sides can pass each other: each is one table, ordered by time.
    fn pass(&self, tables: &JoinedTables) -> Result<bool> {
        let ordered = |dataset: &Dataset, at: usize, on: &str| -> Result<bool> {
            Ok(dataset.order_of(at)?.first().is_some_and(|first| first == on))
        };
        Ok(self.plan.can_pass()
            && tables.right.len() <= 1
            && ordered(&self.left, tables.left, self.plan.left_on())?
            && tables.right.first().map_or(Ok(true), |at| ordered(&self.right, *at, self.plan.right_on()))?)
    }

    /// Joins tables whose parts are at hand, on one thread.
    fn join_parts(&self, left: &[ScanPart], right: &[ScanPart]) -> Result<Vec<RecordBatch>> {
        let rows = |parts: &[ScanPart]| -> Result<Vec<RecordBatch>> {
            parts.iter().filter_map(|part| part.decode().transpose()).collect()
        };
        let left = rows(left)?;
        if left.is_empty() {
            return Ok(Vec::new());
        }
        self.plan.join_all(&left, &self.right_schema, &self.typed(rows(right)?)?)
    }

    /// Batches of the right side without what single tables say of their columns.
    fn typed(&self, batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
        batches.into_iter().map(|batch| super::dataset_scan::with_schema(batch, &self.right_schema)).collect()
    }

    /// Joins tables, decoded by all threads.
    fn join_whole(&self, tables: &JoinedTables) -> Result<Vec<RecordBatch>> {
        let store = self.left.place().store();
        store.while_reclaimed(|| {
            let (left, right) = self.scans(tables)?;
            let most = store.options().memory_bytes / 2;
            let (mut held, mut bytes) = (Vec::new(), 0);
            for batch in right.into_iter().flatten() {
                let batch = batch?;
                bytes += batch.get_array_memory_size() as u64;
                if bytes > most {
                    let path = &self.right.paths()[tables.right[0]];
                    return Err(Error::invalid(format!(
                        "the rows of '{path}' that are joined take more than half of the memory that the store may use \
                         (`memory_bytes`), in which they are held because both sides are not ordered by time alone; sort \
                         the tables by '{}', keep one for each value of the columns `by`, select fewer columns, or raise it",
                        self.plan.right_on()
                    )));
                }
                held.push(batch);
            }
            let held = self.typed(held)?;
            let left = left.collect()?;
            self.plan.join_all(&left, &self.right_schema, &held)
        })
    }
}

impl JoinScan {
    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.sides.plan.schema.clone()
    }

    fn run_ahead(&mut self) -> Result<()> {
        let pool = &self.sides.left.place().store().env().pool;
        while self.running.len() < pool.threads() * 2 {
            let Some(tables) = self.waiting.pop_front() else { break };
            let (left, right) = self.sides.scans(&tables)?;
            if left.weight() + right.iter().map(Scan::weight).sum::<u64>() <= self.sides.task_bytes {
                let (sender, receiver) = sync_channel(1);
                let (sides, left) = (self.sides.clone(), left.into_parts());
                let right: Vec<ScanPart> = right.into_iter().flat_map(Scan::into_parts).collect();
                left.iter().chain(&right).for_each(ScanPart::prefetch);
                pool.spawn(move || {
                    // The receiver is gone if the join was dropped.
                    let _ = sender.send(crate::base::caught(|| sides.join_parts(&left, &right)));
                });
                self.running.push_back(RunningJoin::Task(tables, receiver));
                continue;
            }
            self.running.push_back(match self.sides.pass(&tables)? {
                true => {
                    let right = right.into_iter().next().into_iter().flatten();
                    RunningJoin::Passing(Box::new((left, Passing::new(right, self.sides.right_schema.clone()))))
                }
                false => RunningJoin::Whole(tables),
            });
            // It keeps all threads busy when it is its turn.
            break;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.sides.left_options.cancel.check()?;
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            self.run_ahead()?;
            match self.running.pop_front() {
                None => return Ok(None),
                Some(RunningJoin::Task(tables, receiver)) => {
                    let done = waiting::receive(&receiver)?
                        .map_err(|_| Error::internal("a task of a join ended without a result"))?;
                    let done = match done {
                        Err(e) if e.kind() == ErrorKind::SnapshotExpired => self.sides.join_whole(&tables),
                        done => done,
                    };
                    self.ready.extend(done?);
                }
                Some(RunningJoin::Whole(tables)) => self.ready.extend(self.sides.join_whole(&tables)?),
                Some(RunningJoin::Passing(mut passing)) => {
                    let (left, right) = &mut *passing;
                    if let Some(batch) = left.next().transpose()? {
                        let joined = right.join(&self.sides.plan, &batch)?;
                        self.running.push_front(RunningJoin::Passing(passing));
                        return Ok(Some(joined));
                    }
                }
            }
        }
    }
}

impl Iterator for JoinScan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.step().transpose()?;
        if batch.is_err() {
            self.waiting.clear();
            self.running.clear();
        }
        Some(batch)
    }
}
