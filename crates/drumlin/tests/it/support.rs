//! A store on a simulated disk, with a repeatable clock and randomness.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use drumlin::base::{Env, ManualClock, OsThreads, Pool, SeededEntropy, Timestamp};
use drumlin::storage::{Disk, FileStorage, SimDisk};
use drumlin::store::{AsOf, Options, ReadOptions};
use drumlin::{Result, Store, Tables};

/// One row of the tables that these tests write.
pub type Row = (i64, Option<String>);

/// What went wrong, if anything: of functions that planted bugs are shown to.
pub type Checked = std::result::Result<(), String>;

/// The predicate that `id` has a rest, in one of many spellings that mean the same: by functions and casts, too.
pub fn of_rest(divisor: i64, rest: i64) -> String {
    let plain = format!("id % {divisor} = {rest}");
    match (divisor * 7 + rest).rem_euclid(8) {
        0 => format!("coalesce(id, 0) % {divisor} = {rest}"),
        1 => format!("cast(id as decimal(20, 0)) % {divisor} = {rest}"),
        2 => format!("round(id) % {divisor} = {rest} and floor(id) = ceil(id)"),
        3 => format!("{plain} and length(concat(id, name)) > 0"),
        4 => format!("nullif(id % {divisor}, {rest}) is null"),
        5 => format!("try_cast(id::text as bigint) % {divisor} = {rest}"),
        6 => format!("{plain} and coalesce(lower(name), 'x') = lower(coalesce(name, 'X'))"),
        _ => plain,
    }
}

/// A CPU pool for all tests, so that they do not start a thousand threads.
pub fn pool(threads: usize) -> Pool {
    static ONE: std::sync::OnceLock<Pool> = std::sync::OnceLock::new();
    static TWO: std::sync::OnceLock<Pool> = std::sync::OnceLock::new();
    let cell = if threads == 1 { &ONE } else { &TWO };
    cell.get_or_init(|| Pool::new(threads).unwrap()).clone()
}

pub fn env(clock: &Arc<ManualClock>, seed: u64, threads: usize) -> Env {
    Env {
        clock: clock.clone(),
        entropy: Arc::new(SeededEntropy::new(seed)),
        pool: pool(threads),
        threads: Arc::new(OsThreads),
        metrics: Arc::default(),
        warn: Default::default(),
    }
}

/// Opens the store on `disk`.
pub fn open(disk: &SimDisk) -> Result<Store> {
    open_with(disk, &Arc::new(ManualClock::new(Timestamp(1_000_000))), 2)
}

pub fn open_with(disk: &SimDisk, clock: &Arc<ManualClock>, threads: usize) -> Result<Store> {
    // Small tables get blocks of their own, so that operations on blocks are tested.
    let options = Options { inline_bytes: 0, ..Options::default() };
    open_as(disk, clock, threads, options)
}

/// Opens the store on `disk` as users do: small blocks travel in commits.
pub fn open_inline(disk: &SimDisk, clock: &Arc<ManualClock>, threads: usize) -> Result<Store> {
    open_as(disk, clock, threads, Options::default())
}

/// Opens the store on `disk` as one that other processes write too.
pub fn open_shared(disk: &SimDisk, clock: &Arc<ManualClock>, threads: usize) -> Result<Store> {
    let options = Options { shared: true, inline_bytes: 0, block_grace_micros: 0, ..Options::default() };
    // Names must differ from those that were drawn before a crash, which counts from 0 again.
    let left = ["", drumlin::storage::names::PROBE].map(|folder| disk.list(folder).map_or(0, |entries| entries.len()));
    let env = env(clock, disk.counters().changes + 1000 * left.iter().sum::<usize>() as u64, threads);
    drumlin::store::open_bucket(Arc::new(FileStorage::new(Arc::new(disk.clone()))), env, "sim", options)
}

/// How a test opens its store.
pub type Opener = fn(&SimDisk, &Arc<ManualClock>, usize) -> Result<Store>;

/// One way or the other, depending on the seed.
pub fn opener(seed: u64) -> Opener {
    if seed % 3 == 2 { open_inline } else { open_with }
}

pub fn open_as(disk: &SimDisk, clock: &Arc<ManualClock>, threads: usize, options: Options) -> Result<Store> {
    let seed = disk.counters().changes;
    drumlin::store::open_on(Arc::new(disk.clone()), env(clock, seed, threads), "sim", options)
}

pub fn batch(rows: &[Row]) -> RecordBatch {
    let ids: Int64Array = rows.iter().map(|(id, _)| Some(*id)).collect();
    let names: StringArray = rows.iter().map(|(_, name)| name.as_deref()).collect();
    let schema = arrow::datatypes::Schema::new(vec![
        arrow::datatypes::Field::new("id", arrow::datatypes::DataType::Int64, true),
        arrow::datatypes::Field::new("name", arrow::datatypes::DataType::Utf8, true),
    ]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(ids) as ArrayRef, Arc::new(names)]).unwrap()
}

pub fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in batches {
        let ids = batch.column(0).as_primitive::<Int64Type>();
        let names = batch.column(1).as_string::<i32>();
        for at in 0..batch.num_rows() {
            rows.push((ids.value(at), names.is_valid(at).then(|| names.value(at).to_owned())));
        }
    }
    rows
}

pub fn read(store: &Store, path: &str, as_of: AsOf) -> Result<Vec<Row>> {
    Ok(rows(&store.table(path).collect(&ReadOptions { as_of, ..ReadOptions::default() })?))
}

/// `n` rows with ids from `from`.
pub fn numbered(from: i64, n: usize) -> Vec<Row> {
    (from..).take(n).map(|id| (id, (id % 5 != 0).then(|| format!("name {}", id % 7)))).collect()
}

/// Is set when this value is dropped, also by a panic, so that threads which wait for it end.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Fails, saying of `what`, unless the two are equal.
pub fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T, what: &str) -> std::result::Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, expected {expected:?}")) }
}

/// Fails unless a verification finds no fault.
pub fn sound(store: &Store) -> Checked {
    let report = store.verify(&Default::default()).map_err(|e| e.to_string())?;
    same(&report.faults, &Vec::new(), "faults")
}

/// A batch of columns of integers.
pub fn ints(columns: &[(&str, Vec<i64>)]) -> RecordBatch {
    let column = |values: &Vec<i64>| Arc::new(Int64Array::from(values.clone())) as ArrayRef;
    RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, values)| (*name, column(values), true)))
        .unwrap()
}
