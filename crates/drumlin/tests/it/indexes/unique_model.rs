//! Random operations on a table with a unique index: each is done if the rows that it would leave have different values, and else is
//! refused and changes nothing. What it would leave is computed by the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::Existing;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, CheckpointOptions, IndexOptions, Missing, ReadOptions, TableOptions, VerifyOptions};
use drumlin::{Error, ErrorKind, Expression, Filter, Merge, Store, Tables, WhenMatched, WhenNotMatched};

use crate::seeds;
use crate::support::{Checked, opener};

const PATH: &str = "t";

/// What a row has beside its id: the value that is unique, and whether the index has it.
type Values = (Option<i64>, i64);

/// The rows of a table, by id.
type Model = BTreeMap<i64, Values>;

fn told(e: Error) -> String {
    e.to_string()
}

fn batch(rows: &[(i64, Values)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(id, _)| *id)));
    let values: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|(_, (u, _))| *u)));
    let kinds: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(_, (_, kind))| *kind)));
    RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("u", values, true), ("kind", kinds, false)]).unwrap()
}

/// What is done to a table.
#[derive(Clone, Debug)]
enum Change {
    /// Rows with new ids, or, in a keyed table, with known ones, too.
    Put(Vec<(i64, Values)>),
    /// All values of these ids are moved on.
    Shift(i64, i64, i64),
    Set(i64, i64),
    Kind(i64, i64),
    Delete(i64, i64),
    Merge(Vec<(i64, Values)>),
    Write(Vec<(i64, Values)>),
    Increment(i64, i64),
}

impl Change {
    fn on(&self, rows: &mut Model) {
        match self {
            Self::Put(new) | Self::Merge(new) => rows.extend(new.iter().copied()),
            Self::Write(new) => *rows = new.iter().copied().collect(),
            Self::Shift(from, until, by) => {
                rows.range_mut(from..until).for_each(|(_, (u, _))| *u = u.map(|u| u + by));
            }
            Self::Set(id, value) => rows.get_mut(id).into_iter().for_each(|(u, _)| *u = Some(*value)),
            Self::Kind(id, kind) => rows.get_mut(id).into_iter().for_each(|(_, own)| *own = *kind),
            Self::Delete(from, until) => rows.retain(|id, _| !(from..until).contains(&id)),
            Self::Increment(id, by) => rows.get_mut(id).into_iter().for_each(|(u, _)| *u = u.map(|u| u + by)),
        }
    }

    fn to(&self, tables: &impl Tables, keyed: bool) -> Result<(), Error> {
        let table = tables.table(PATH);
        let set = |name: &str, text: String, filter: &str| {
            let set = [(name.to_owned(), Expression::parse(&text)?)];
            table.update(&set, Some(filter), &Default::default()).map(drop)
        };
        match self {
            Self::Put(rows) if keyed => table.upsert(batch(rows), &Default::default()).map(drop),
            Self::Put(rows) => table.append(batch(rows), &Default::default()).map(drop),
            Self::Write(rows) => table.write(batch(rows), &Default::default()).map(drop),
            Self::Shift(from, until, by) => set("u", format!("u + {by}"), &format!("id >= {from} and id < {until}")),
            Self::Set(id, value) => set("u", value.to_string(), &format!("id = {id}")),
            Self::Kind(id, kind) => set("kind", kind.to_string(), &format!("id = {id}")),
            Self::Delete(from, until) => {
                table.delete(&format!("id >= {from} and id < {until}"), &Default::default()).map(drop)
            }
            Self::Merge(rows) => {
                let merge = Merge {
                    on: vec!["id".into()],
                    matched: vec![(None, WhenMatched::UpdateAll)],
                    not_matched: vec![(None, WhenNotMatched::InsertAll)],
                    ..Merge::default()
                };
                table.merge(batch(rows), &merge, &Default::default()).map(drop)
            }
            Self::Increment(id, by) => {
                let column = |values: i64| Arc::new(Int64Array::from(vec![values])) as ArrayRef;
                let rows = RecordBatch::try_from_iter([("id", column(*id)), ("u", column(*by))]).unwrap();
                table.increment(&rows, &Default::default()).map(drop)
            }
        }
    }
}

/// A store, and what its table has.
struct Run {
    store: Store,
    disk: SimDisk,
    clock: Arc<ManualClock>,
    seed: u64,
    rng: fastrand::Rng,
    rows: Model,
    next_id: i64,
    keyed: bool,
    /// Whether the index has only rows of one kind.
    partial: bool,
    refused: u32,
}

impl Run {
    fn read(&self, as_of: AsOf) -> Result<Model, Error> {
        let batches = self.store.table(PATH).collect(&ReadOptions { as_of, ..ReadOptions::default() })?;
        let mut rows = Model::new();
        for batch in batches {
            let of = |name: &str| batch[name].as_primitive::<Int64Type>().clone();
            let (ids, values, kinds) = (of("id"), of("u"), of("kind"));
            for at in 0..batch.num_rows() {
                let value = values.is_valid(at).then(|| values.value(at));
                rows.insert(ids.value(at), (value, kinds.value(at)));
            }
        }
        Ok(rows)
    }

    /// Whether no two rows have the same value.
    fn is_sound(&self, rows: &Model) -> bool {
        let mut seen = BTreeSet::new();
        rows.values().filter(|(_, kind)| !self.partial || *kind == 1).all(|(u, _)| u.is_none_or(|u| seen.insert(u)))
    }

    fn values(&mut self) -> Values {
        // Few of them, so that many are taken.
        let most = 40 + self.rows.len() as i64 * 2;
        ((self.rng.u8(0..8) > 0).then(|| self.rng.i64(0..most)), self.rng.i64(0..3))
    }

    fn new_rows(&mut self, count: usize) -> Vec<(i64, Values)> {
        let first = self.next_id;
        self.next_id += count as i64;
        (first..self.next_id).map(|id| (id, self.values())).collect()
    }

    fn known_id(&mut self) -> i64 {
        let at = self.rng.usize(0..self.rows.len().max(1));
        self.rows.keys().nth(at).copied().unwrap_or(0)
    }

    fn change(&mut self) -> Change {
        let count = if self.rng.u8(0..6) == 0 { self.rng.usize(1..60) } else { self.rng.usize(1..4) };
        let id = self.known_id();
        let some_known = |run: &mut Self| -> Vec<(i64, Values)> {
            let ids: BTreeSet<i64> = (0..count).map(|_| run.known_id()).collect();
            ids.into_iter().map(|id| (id, run.values())).collect()
        };
        match self.rng.u8(0..14) {
            0..4 => {
                let mut rows = self.new_rows(count);
                if self.keyed && self.rng.bool() {
                    rows.extend(some_known(self));
                }
                Change::Put(rows)
            }
            4 => Change::Shift(id, id + self.rng.i64(1..30), self.rng.i64(-3..4)),
            5 => Change::Set(id, self.rng.i64(0..60)),
            6 => Change::Kind(id, self.rng.i64(0..3)),
            7..9 => Change::Delete(id, id + self.rng.i64(1..4)),
            9..11 => {
                let mut rows = some_known(self);
                rows.extend(self.new_rows(2));
                Change::Merge(rows)
            }
            11 if self.rng.u8(0..4) == 0 => Change::Write(self.new_rows(20)),
            12 if self.keyed && self.rows.get(&id).is_some_and(|(u, _)| u.is_some()) => {
                Change::Increment(id, self.rng.i64(-3..4))
            }
            _ => Change::Put(self.new_rows(1)),
        }
    }

    /// Does something that is to leave `wanted`.
    fn expect(&mut self, what: &str, wanted: Model, done: Result<(), Error>) -> Checked {
        match (self.is_sound(&wanted), done) {
            (true, Ok(())) => self.rows = wanted,
            (false, Err(e)) if e.kind() == ErrorKind::AlreadyExists && e.to_string().contains("index 'u'") => {
                self.refused += 1;
            }
            (sound, done) => return Err(format!("{what}: it would be sound: {sound}, and it is {done:?}")),
        }
        let found = self.read(AsOf::Newest).map_err(told)?;
        match found == self.rows {
            true => Ok(()),
            false => Err(format!("after {what} there are {found:?}, and not {:?}", self.rows)),
        }
    }

    fn step(&mut self) -> Checked {
        match self.rng.u8(0..24) {
            0..15 => {
                let change = self.change();
                let mut wanted = self.rows.clone();
                change.on(&mut wanted);
                let done = change.to(&self.store, self.keyed);
                self.expect(&format!("{change:?}"), wanted, done)
            }
            15..18 => {
                // What one of them would break another may mend.
                let mut wanted = self.rows.clone();
                let mut changes = Vec::new();
                for _ in 0..self.rng.usize(2..4) {
                    let change = self.change();
                    // It would make a row of one that an earlier change deletes, or that has no value.
                    let makes =
                        matches!(change, Change::Increment(id, _) if wanted.get(&id).is_none_or(|(u, _)| u.is_none()));
                    if !makes {
                        change.on(&mut wanted);
                        changes.push(change);
                    }
                }
                let transaction = self.store.transaction().map_err(told)?;
                let done = changes.iter().try_for_each(|change| change.to(&transaction, self.keyed));
                let done = done.and_then(|()| transaction.commit().map(drop));
                // Of rows that it has written by key itself it makes no row groups.
                if self.keyed && matches!(&done, Err(e) if e.kind() == ErrorKind::Conflict) {
                    return Ok(());
                }
                self.expect(&format!("{changes:?} in a transaction"), wanted, done)
            }
            18 => {
                let versions = self.store.table(PATH).versions().map_err(told)?;
                let one = versions[self.rng.usize(0..versions.len())].version;
                let wanted = self.read(AsOf::Version(one)).map_err(told)?;
                let done = self.store.restore(PATH, &AsOf::Version(one)).map(drop);
                self.expect(&format!("restore of {one}"), wanted, done)
            }
            19 => {
                // Rows in memory would get a version of their own.
                self.store.checkpoint(&Default::default()).map_err(told)?;
                let versions = self.store.table(PATH).versions().map_err(told)?;
                let [.., before, newest] = versions.as_slice() else { return Ok(()) };
                let (before, newest) = (before.version, newest.version);
                let wanted = self.read(AsOf::Version(before)).map_err(told)?;
                let done = self.store.delete_versions(&[(PATH.into(), vec![newest])], Missing::Refuse).map(drop);
                self.expect(&format!("deletion of {newest}"), wanted, done)
            }
            20 => {
                let copied = self.store.copy(PATH, "copy", &AsOf::Newest, Existing::Refuse).map(drop);
                let moved = copied.and_then(|()| {
                    self.store.table(PATH).drop(Missing::Refuse)?;
                    self.store.relocate("copy", PATH, Existing::Refuse).map(drop)
                });
                self.expect("copy", self.rows.clone(), moved)
            }
            21 => {
                self.disk = self.disk.crash(self.rng.u64(..));
                self.store = opener(self.seed)(&self.disk, &self.clock, 2).map_err(told)?;
                self.expect("crash", self.rows.clone(), Ok(()))
            }
            _ => {
                let index_rows_min = if self.rng.bool() { 1 } else { 1 << 30 };
                let done = self.store.checkpoint(&CheckpointOptions { index_rows_min, ..Default::default() });
                self.expect("checkpoint", self.rows.clone(), done.map(drop))
            }
        }
    }
}

/// Random operations on a table with a unique index; returns how many were refused.
pub fn run(seed: u64, steps: u32) -> Result<u32, String> {
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
    let store = opener(seed)(&disk, &clock, 2).map_err(told)?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let (keyed, partial) = (seed.is_multiple_of(2), rng.u8(0..3) == 0);
    let mut run = Run { store, disk, clock, seed, rng, rows: Model::new(), next_id: 0, keyed, partial, refused: 0 };
    let key = if keyed { vec!["id".to_owned()] } else { Vec::new() };
    let sort = if seed % 4 == 1 { vec!["id".to_owned()] } else { Vec::new() };
    let table = TableOptions { key, sort, ..Default::default() };
    run.store.table(PATH).create(batch(&[]).schema(), table).map_err(told)?;
    let condition = partial.then(|| Filter::parse("kind = 1").unwrap());
    let index = IndexOptions { unique: true, condition, ..Default::default() };
    let make = |run: &Run| run.store.table(PATH).create_index("u", &[Expression::parse("u").unwrap()], &index);
    // Rows that were there before may be alike.
    let rows: Vec<(i64, Values)> = run.new_rows(12);
    let wanted: Model = rows.iter().copied().collect();
    Change::Put(rows).to(&run.store, keyed).map_err(told)?;
    let made = make(&run);
    if run.is_sound(&wanted) != made.is_ok() {
        return Err(format!("the index is {made:?}, made of {wanted:?}"));
    }
    if made.is_ok() {
        run.rows = wanted;
    } else {
        run.store.table(PATH).delete("true", &Default::default()).map_err(told)?;
        make(&run).map_err(told)?;
    }
    for _ in 0..steps {
        run.step()?;
    }
    let verified = run.store.verify(&VerifyOptions { deep: true, ..VerifyOptions::default() }).map_err(told)?;
    match verified.faults.is_empty() {
        true => Ok(run.refused),
        false => Err(format!("{:?}", verified.faults)),
    }
}

#[test]
fn what_breaks_a_unique_index_is_refused() {
    let refused = std::sync::atomic::AtomicU32::new(0);
    seeds::each(0..10, 6, |seed| {
        refused.fetch_add(run(seed, 60).unwrap(), std::sync::atomic::Ordering::Relaxed);
    });
    assert!(refused.into_inner() > 80, "hardly any was refused");
}
