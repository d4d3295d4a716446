//! Random operations on a table whose rows expire, while time passes: every read shows the rows that have not expired at its
//! instant, and no others; the same for ever where it is of a version or of a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType};
use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::Existing;
use drumlin::storage::SimDisk;
use drumlin::store::{
    AsOf, DiffOptions, LookupOptions, Missing, ReadOptions, TableOptions, VerifyOptions, WriteOptions,
};
use drumlin::{
    Aggregate, Alter, Error, ErrorKind, Expression, Filter, Function, GroupBy, Merge, ScanOptions, Store, Tables,
    TimeToLive, WhenMatched, WhenNotMatched,
};

use crate::seeds;
use crate::support::{Checked, opener};

const PATH: &str = "t";
const SECOND: i64 = 1_000_000;
/// What passes at least from one step to the next.
const STEP: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;

/// What a row has beside its id: a number, and when it expires.
type Values = (i64, Option<i64>);

/// Rows by id.
type Rows = BTreeMap<i64, Values>;

/// What a table is: rows, those that have expired among them, and how long after their times they do.
#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    rows: Rows,
    ttl: Option<i64>,
}

impl Content {
    fn is_alive(&self, id: i64, now: i64) -> bool {
        self.rows.get(&id).is_some_and(|(_, expires)| match (self.ttl, expires) {
            (Some(after), Some(expires)) => expires + after > now,
            _ => true,
        })
    }

    /// What is seen of it at an instant.
    fn at(&self, now: i64) -> Rows {
        self.rows.iter().filter(|(id, _)| self.is_alive(**id, now)).map(|(id, values)| (*id, *values)).collect()
    }
}

fn told(e: Error) -> String {
    e.to_string()
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, wanted: &T, what: &str) -> Checked {
    match found == wanted {
        true => Ok(()),
        false => Err(format!("{what}: found {found:?}, wanted {wanted:?}")),
    }
}

fn ints(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn batch(rows: &Rows) -> RecordBatch {
    let expires: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter(rows.values().map(|(_, expires)| *expires)));
    RecordBatch::try_from_iter_with_nullable([
        ("id", ints(rows.keys().copied()), false),
        ("n", ints(rows.values().map(|(n, _)| *n)), true),
        ("expires", expires, true),
    ])
    .unwrap()
}

/// Of rows the ids and numbers alone.
fn numbers(rows: &Rows) -> RecordBatch {
    batch(rows).project(&[0, 1]).unwrap()
}

fn rows_of(batches: &[RecordBatch]) -> Result<Rows, String> {
    let mut rows = Rows::new();
    for batch in batches {
        let (ids, n) = (batch["id"].as_primitive::<Int64Type>(), batch["n"].as_primitive::<Int64Type>());
        let expires = batch["expires"].as_primitive::<TimestampMicrosecondType>();
        for at in 0..batch.num_rows() {
            let values = (n.value(at), expires.is_valid(at).then(|| expires.value(at)));
            if rows.insert(ids.value(at), values).is_some() {
                return Err(format!("the row {} is there twice", ids.value(at)));
            }
        }
    }
    Ok(rows)
}

struct Run {
    store: Store,
    disk: SimDisk,
    clock: Arc<ManualClock>,
    seed: u64,
    rng: fastrand::Rng,
    keyed: bool,
    now: i64,
    content: Content,
    /// What each version has, and when it was made.
    versions: BTreeMap<u64, (Content, i64)>,
    /// What the table was from a time on.
    past: Vec<(i64, Content)>,
    /// What snapshots hold, and when they were taken.
    snapshots: BTreeMap<String, (Content, i64)>,
    expired: u32,
}

impl Run {
    fn table(&self) -> drumlin::store::Table {
        self.store.table(PATH)
    }

    fn read(&self, as_of: AsOf) -> Result<Rows, String> {
        rows_of(&self.table().collect(&ReadOptions { as_of, ..ReadOptions::default() }).map_err(told)?)
    }

    fn seen(&self) -> Rows {
        self.content.at(self.now)
    }

    fn values(&mut self) -> Values {
        let expires = match self.rng.u8(0..8) {
            0 => None,
            1 => Some(self.now),
            2 => Some(self.now + 10 * HOUR),
            _ => Some(self.now + self.rng.i64(-2..10) * SECOND),
        };
        (self.rng.i64(0..50), expires)
    }

    fn some_rows(&mut self) -> Rows {
        let count = if self.rng.u8(0..5) == 0 { self.rng.usize(20..60) } else { self.rng.usize(1..5) };
        (0..count).map(|_| (self.rng.i64(0..40), self.values())).collect()
    }

    /// Rows that are not seen: new ones, or in place of some that have expired.
    fn unseen_rows(&mut self) -> Rows {
        let seen = self.seen();
        self.some_rows().into_iter().filter(|(id, _)| !seen.contains_key(id)).collect()
    }

    fn options(&mut self) -> WriteOptions {
        // With a note, rows are written as row groups.
        WriteOptions { metadata: self.rng.bool().then(|| "1".into()), ..WriteOptions::default() }
    }

    /// Notes what versions there are that were not there before.
    fn note_versions(&mut self, before: &Content) -> Checked {
        let versions = self.table().versions().map_err(told)?;
        let new: Vec<_> = versions.iter().filter(|version| !self.versions.contains_key(&version.version.0)).collect();
        for (at, version) in new.iter().enumerate() {
            let content = if at + 1 == new.len() { &self.content } else { before };
            self.versions.insert(version.version.0, (content.clone(), version.time.0));
        }
        if self.past.last().is_none_or(|(_, last)| *last != self.content) {
            self.past.push((self.now, self.content.clone()));
        }
        Ok(())
    }

    /// Compares all kinds of reads with the model.
    fn check(&mut self, what: &str) -> Checked {
        let seen = self.seen();
        self.expired += u32::from(seen.len() < self.content.rows.len());
        same(&self.read(AsOf::Newest)?, &seen, &format!("{what}: the newest"))?;
        let dataset = self.store.scan(PATH, &Default::default()).map_err(told)?;
        same(&dataset.count_rows(&Default::default()).map_err(told)?, &(seen.len() as u64), &format!("{what}: count"))?;
        same(&self.table().stat().map_err(told)?.rows, &(seen.len() as u64), &format!("{what}: stat"))?;
        let filter = Filter::parse("n % 3 = 1 or expires is null").map_err(told)?;
        let kept: Rows =
            seen.iter().filter(|(_, (n, expires))| n % 3 == 1 || expires.is_none()).map(|(id, v)| (*id, *v)).collect();
        let options = ScanOptions { filter: Some(filter), ..ScanOptions::default() };
        same(&rows_of(&dataset.collect(&options).map_err(told)?)?, &kept, &format!("{what}: a filter"))?;
        same(&dataset.count_rows(&options).map_err(told)?, &(kept.len() as u64), &format!("{what}: a filter's count"))?;
        for (options, rows) in [(ScanOptions::default(), seen.len()), (options, kept.len())] {
            let none = dataset.collect(&ScanOptions { columns: Some(Vec::new()), ..options }).map_err(told)?;
            let read = none.iter().map(RecordBatch::num_rows).sum::<usize>();
            same(&read, &rows, &format!("{what}: rows without columns"))?;
        }
        let sum = Aggregate { name: "sum".into(), function: Function::Sum, of: Some("n".into()) };
        let asked = GroupBy { aggregates: vec![sum], ..GroupBy::default() };
        let sums = dataset.aggregate(&asked, &Default::default()).map_err(told)?;
        let sum: i64 = seen.values().map(|(n, _)| n).sum();
        let found = sums["sum"].as_primitive::<Int64Type>();
        same(&(if found.is_valid(0) { found.value(0) } else { 0 }), &sum, &format!("{what}: a sum"))?;
        if self.keyed {
            let keys = RecordBatch::try_from_iter([("id", ints(0..42))]).unwrap();
            let found = self.table().get_many(&keys, &LookupOptions::default()).map_err(told)?;
            let there: Vec<i64> = (0..42).filter(|id| found.found.value(*id as usize)).collect();
            same(&there, &seen.keys().copied().collect(), &format!("{what}: look-ups"))?;
            let n = found.rows["n"].as_primitive::<Int64Type>();
            let own: Vec<i64> = there.iter().map(|id| n.value(*id as usize)).collect();
            same(&own, &seen.values().map(|(n, _)| *n).collect(), &format!("{what}: what look-ups find"))?;
        }
        self.check_past(what)
    }

    fn check_past(&mut self, what: &str) -> Checked {
        if self.versions.is_empty() {
            return Ok(());
        }
        let at = self.rng.usize(0..self.versions.len());
        let (version, (content, time)) = self.versions.iter().nth(at).unwrap();
        same(&self.read(AsOf::from(*version))?, &content.at(*time), &format!("{what}: version {version}"))?;
        let first = self.past[0].0;
        // The commits of one step have times of their own, each a little after the one before.
        let asked = self.rng.i64(first + STEP..self.now + 1) / STEP * STEP - STEP / 2;
        let (_, content) = self.past.iter().rev().find(|(from, _)| *from <= asked).unwrap();
        same(&self.read(AsOf::Time(Timestamp(asked)))?, &content.at(asked), &format!("{what}: as of {asked}"))?;
        for (name, (content, time)) in &self.snapshots {
            same(&self.read(AsOf::Snapshot(name.clone()))?, &content.at(*time), &format!("{what}: snapshot {name}"))?;
        }
        // The difference of two versions.
        let versions: Vec<u64> = self.versions.keys().copied().collect();
        let one = versions[self.rng.usize(0..versions.len())];
        let until = if self.rng.bool() { None } else { Some(versions[self.rng.usize(0..versions.len())]) };
        let (content, time) = &self.versions[&one];
        let mut told_of = content.at(*time);
        let wanted = match until {
            Some(version) => self.versions[&version].0.at(self.versions[&version].1),
            None => self.seen(),
        };
        let last = until.map_or(AsOf::Newest, AsOf::from);
        let diff = self.table().diff(&AsOf::from(one), &last, &DiffOptions::default()).map_err(told)?;
        let mut added = Vec::new();
        for batch in diff {
            let batch = batch.map_err(told)?;
            let changes = batch["_change"].as_string::<i32>().clone();
            for at in 0..batch.num_rows() {
                let row = rows_of(&[batch.slice(at, 1)])?;
                match changes.value(at) {
                    "delete" | "update_before" => {
                        for (id, values) in &row {
                            same(&told_of.remove(id), &Some(*values), &format!("{what}: a row that is gone"))?;
                        }
                    }
                    _ => added.extend(row),
                }
            }
        }
        for (id, values) in added {
            same(&told_of.insert(id, values), &None, &format!("{what}: a row that is new"))?;
        }
        same(&told_of, &wanted, &format!("{what}: the difference of {one} and {until:?}"))?;
        // For it, rows in memory may have got a version.
        let content = self.content.clone();
        self.note_versions(&content)
    }

    /// Something that changes rows; `None` if it is refused.
    fn change(&mut self) -> Result<(String, Result<Option<Content>, Error>), String> {
        let (mut next, seen) = (self.content.clone(), self.seen());
        let table = self.table();
        let pick = self.rng.u8(0..if self.keyed { 16 } else { 10 });
        let rest = self.rng.i64(0..4);
        let where_rest = format!("n % 4 = {rest}");
        let matched: Vec<i64> = seen.iter().filter(|(_, (n, _))| n % 4 == rest).map(|(id, _)| *id).collect();
        let options = self.options();
        Ok(match pick {
            0 | 1 => {
                let rows = self.unseen_rows();
                let done = table.append(batch(&rows), &Default::default()).map(drop);
                next.rows.extend(rows.clone());
                (format!("append {rows:?}"), done.map(|()| Some(next)))
            }
            2 => {
                let done = table.delete(&where_rest, &Default::default()).map_err(told)?;
                same(&done.rows, &(matched.len() as u64), "rows deleted")?;
                next.rows.retain(|id, _| !matched.contains(id));
                (format!("delete where {where_rest}"), Ok(Some(next)))
            }
            3 | 4 => {
                // Some get more time, all of them perhaps.
                let filter = (self.rng.u8(0..3) > 0).then_some(where_rest.as_str());
                let ids = if filter.is_some() { matched } else { seen.keys().copied().collect() };
                let for_ever = self.rng.bool();
                let (name, value) = if for_ever { ("expires", "null") } else { ("n", "n + 1") };
                let set = vec![(name.to_owned(), Expression::parse(value).map_err(told)?)];
                let done = table.update(&set, filter, &Default::default()).map_err(told)?;
                same(&done.rows, &(ids.len() as u64), "rows updated")?;
                for id in ids {
                    let (n, expires) = next.rows.get_mut(&id).unwrap();
                    if for_ever { *expires = None } else { *n += 1 }
                }
                (format!("update {name} where {filter:?}"), Ok(Some(next)))
            }
            5 | 6 => {
                let rows = self.some_rows();
                let by_source = self.rng.u8(0..3) == 0;
                let merge = Merge {
                    on: vec!["id".into()],
                    matched: vec![(None, WhenMatched::UpdateAll)],
                    not_matched: vec![(None, WhenNotMatched::InsertAll)],
                    not_matched_by_source: if by_source { vec![(None, WhenMatched::Delete)] } else { Vec::new() },
                    ..Merge::default()
                };
                let done = table.merge(batch(&rows), &merge, &Default::default()).map_err(told)?;
                let alone: Vec<i64> = seen.keys().filter(|id| !rows.contains_key(id)).copied().collect();
                let met = rows.keys().filter(|id| seen.contains_key(id)).count() as u64;
                let gone = if by_source { alone.len() as u64 } else { 0 };
                let counts = (done.updated, done.inserted, done.deleted);
                same(&counts, &(met, rows.len() as u64 - met, gone), "what a merge came to")?;
                if by_source {
                    next.rows.retain(|id, _| !alone.contains(id));
                }
                next.rows.extend(rows.clone());
                (format!("merge {rows:?}"), Ok(Some(next)))
            }
            7 => {
                let mut rows = self.some_rows();
                if !self.keyed {
                    // Nothing is refused, and the model has no row twice.
                    rows.retain(|id, _| !seen.contains_key(id) || matched.contains(id));
                }
                let left = rows.keys().any(|id| seen.contains_key(id) && !matched.contains(id));
                let done = table.replace_where(batch(&rows), &where_rest, &Default::default());
                next.rows.retain(|id, _| !matched.contains(id));
                match (left, done) {
                    (true, Err(e)) if e.kind() == ErrorKind::AlreadyExists => ("a replace refused".into(), Ok(None)),
                    (true, done) => return Err(format!("replace beside keys: {done:?}")),
                    (false, done) => {
                        next.rows.extend(rows.clone());
                        (format!("replace where {where_rest}: {rows:?}"), done.map(|_| Some(next)))
                    }
                }
            }
            8 if self.rng.u8(0..3) == 0 => {
                let rows = self.some_rows();
                next.rows.clone_from(&rows);
                let done = table.write(batch(&rows), &Default::default()).map(drop);
                (format!("write {rows:?}"), done.map(|()| Some(next)))
            }
            9 if self.rng.bool() => {
                let after = [None, Some(0), Some(3 * SECOND)][self.rng.usize(0..3)];
                let alter = match after {
                    Some(after_micros) => Alter::SetTtl(TimeToLive { column: "expires".into(), after_micros }),
                    None => Alter::DropTtl,
                };
                let done = self.table().alter(&alter, &Default::default());
                if after.is_none() && next.ttl.is_none() {
                    return match done {
                        Err(e) if e.kind() == ErrorKind::NotFound => Ok(("no time to live".into(), Ok(None))),
                        done => Err(format!("the time to live that is not there is dropped: {done:?}")),
                    };
                }
                if next.ttl != after {
                    next.rows = seen;
                }
                next.ttl = after;
                (format!("a time to live of {after:?}"), done.map(|_| Some(next)))
            }
            10 | 11 => {
                let rows = self.some_rows();
                next.rows.extend(rows.clone());
                let done = table.upsert(batch(&rows), &options).map(drop);
                (format!("upsert {rows:?}"), done.map(|()| Some(next)))
            }
            12 => {
                let rows = self.some_rows();
                for (id, (n, _)) in &rows {
                    let expires = seen.get(id).and_then(|(_, expires)| *expires);
                    next.rows.insert(*id, (*n, expires));
                }
                let done = table.upsert(numbers(&rows), &options).map(drop);
                (format!("upsert of numbers {rows:?}"), done.map(|()| Some(next)))
            }
            13 => {
                let rows = if self.rng.bool() { self.unseen_rows() } else { self.some_rows() };
                let there = rows.keys().any(|id| seen.contains_key(id));
                let done = table.insert(batch(&rows), &options).map(drop);
                match (there, done) {
                    (true, Err(e)) if e.kind() == ErrorKind::AlreadyExists => ("an insert refused".into(), Ok(None)),
                    (true, done) => return Err(format!("insert of rows that are there: {done:?}")),
                    (false, done) => {
                        next.rows.extend(rows.clone());
                        (format!("insert {rows:?}"), done.map(|()| Some(next)))
                    }
                }
            }
            14 => {
                let rows = self.some_rows();
                for (id, (by, _)) in &rows {
                    let (n, expires) = seen.get(id).copied().unwrap_or((0, None));
                    next.rows.insert(*id, (n + by, expires));
                }
                let done = table.increment(&numbers(&rows), &options).map(drop);
                (format!("increment {rows:?}"), done.map(|()| Some(next)))
            }
            15 => {
                let id = self.rng.i64(0..40);
                let (expected, values) = (seen.get(&id).map_or(7, |(n, _)| *n), self.values());
                let (expected, row) = ([(id, (expected, None))].into(), [(id, values)].into());
                let done = table.compare_and_set(&numbers(&expected), &batch(&row), &options).map(drop);
                match (seen.contains_key(&id), done) {
                    (false, Err(e)) if e.kind() == ErrorKind::ConditionFailed => {
                        ("a comparison refused".into(), Ok(None))
                    }
                    (false, done) => return Err(format!("a row that is not there is compared: {done:?}")),
                    (true, done) => {
                        next.rows.extend(row);
                        (format!("compare and set {id}"), done.map(|()| Some(next)))
                    }
                }
            }
            _ => {
                let ids: BTreeSet<i64> = self.some_rows().into_keys().collect();
                if !self.keyed {
                    return Ok(("nothing".into(), Ok(None)));
                }
                let keys = RecordBatch::try_from_iter([("id", ints(ids.iter().copied()))]).unwrap();
                next.rows.retain(|id, _| !ids.contains(id));
                let done = table.delete_keys(keys, &options).map(drop);
                (format!("delete {ids:?}"), done.map(|()| Some(next)))
            }
        })
    }

    fn advance(&mut self, micros: i64) {
        self.now += micros;
        self.clock.set(Timestamp(self.now));
    }

    fn step(&mut self) -> Checked {
        let before = self.content.clone();
        let what = match self.rng.u8(0..20) {
            0..13 => {
                let (what, done) = self.change()?;
                if let Some(next) = done.map_err(|e| format!("{what}: {e}"))? {
                    self.content = next;
                }
                what
            }
            13 => {
                let result = self.store.checkpoint(&Default::default()).map_err(told)?;
                format!("checkpoint {result}")
            }
            14 => {
                self.disk = self.disk.crash(self.rng.u64(..));
                self.store = opener(self.seed)(&self.disk, &self.clock, 2).map_err(told)?;
                "crash".into()
            }
            15 if !self.versions.is_empty() => {
                let at = self.rng.usize(0..self.versions.len());
                let (version, content) = self.versions.iter().nth(at).map(|(v, (c, _))| (*v, c.clone())).unwrap();
                self.store.restore(PATH, &AsOf::from(version)).map_err(told)?;
                self.content = content;
                format!("restore of {version}")
            }
            16 => {
                let name = format!("s{}", self.snapshots.len());
                self.store.snapshot(&name, PATH).map_err(told)?;
                self.snapshots.insert(name.clone(), (self.content.clone(), self.now));
                format!("snapshot {name}")
            }
            17 => {
                self.store.copy(PATH, "copy", &AsOf::Newest, Existing::Refuse).map_err(told)?;
                let copied = self.store.table("copy").collect(&Default::default()).map_err(told)?;
                same(&rows_of(&copied)?, &self.seen(), "a copy")?;
                self.store.table("copy").drop(Missing::Refuse).map_err(told)?;
                "copy".into()
            }
            18 => {
                // A transaction sees one instant, whatever time passes.
                let transaction = self.store.transaction().map_err(told)?;
                let seen = self.seen();
                let read = || rows_of(&transaction.table(PATH).collect(&Default::default()).map_err(told)?);
                same(&read()?, &seen, "a transaction")?;
                let by = self.rng.i64(1..5) * SECOND;
                self.now += by;
                self.clock.set(Timestamp(self.now));
                same(&read()?, &seen, "a transaction later")?;
                transaction.abort();
                format!("a transaction of {by}")
            }
            _ => {
                let by = match self.rng.u8(0..8) {
                    0 => 2 * HOUR,
                    1 => STEP,
                    _ => self.rng.i64(1..6) * SECOND,
                };
                self.advance(by);
                format!("{by} pass")
            }
        };
        // No two things happen at the same time.
        self.note_versions(&before).map_err(|e| format!("{what}: {e}"))?;
        self.check(&what)?;
        self.advance(STEP);
        Ok(())
    }
}

/// Random operations; returns how often some rows had expired.
pub fn run(seed: u64, steps: u32) -> Result<u32, String> {
    let now = 1_700_000_000 * SECOND;
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(now))));
    let store = opener(seed)(&disk, &clock, 2).map_err(told)?;
    let rng = fastrand::Rng::with_seed(seed);
    let keyed = seed % 3 != 1;
    let (versions, past, snapshots) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
    let content = Content { rows: Rows::new(), ttl: Some(0) };
    let mut run = Run { store, disk, clock, seed, rng, keyed, now, content, versions, past, snapshots, expired: 0 };
    let key = if keyed { vec!["id".to_owned()] } else { Vec::new() };
    let sort = if seed % 6 == 1 { vec!["id".to_owned()] } else { Vec::new() };
    let schema = batch(&Rows::new()).schema();
    assert_eq!(schema.field(2).data_type(), &DataType::Timestamp(TimeUnit::Microsecond, None));
    run.table().create(schema, TableOptions { key, sort, ..Default::default() }).map_err(told)?;
    let ttl = TimeToLive { column: "expires".into(), after_micros: 0 };
    run.table().alter(&Alter::SetTtl(ttl.clone()), &Default::default()).map_err(told)?;
    same(&run.table().ttl(&AsOf::Newest).map_err(told)?, &Some(ttl), "the time to live")?;
    run.note_versions(&Content::default())?;
    run.advance(STEP);
    for step in 0..steps {
        run.step().map_err(|e| format!("seed {seed}, step {step}: {e}"))?;
    }
    let verified = run.store.verify(&VerifyOptions { deep: true, ..VerifyOptions::default() }).map_err(told)?;
    same(&verified.faults.len(), &0, &format!("{:?}", verified.faults))?;
    Ok(run.expired)
}

#[test]
fn reads_show_the_rows_that_have_not_expired() {
    let expired = std::sync::atomic::AtomicU32::new(0);
    seeds::each(0..18, 6, |seed| {
        expired.fetch_add(run(seed, 60).unwrap(), std::sync::atomic::Ordering::Relaxed);
    });
    assert!(expired.into_inner() > 200, "hardly any row has expired");
}
