//! Reading as of a time: whatever happens afterwards, a time shows what existed then, exact to the commit, or says that it
//! was deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::catalog::Retention;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, LookupOptions, Options, TableOptions, WriteOptions};
use drumlin::{ErrorKind, Result, Store, Tables};

use crate::support::{Row, batch, env, read, rows};

const T: &str = "t";

type Rows = BTreeMap<i64, Option<String>>;

fn open(disk: &SimDisk, clock: &Arc<ManualClock>, options: Options) -> Store {
    drumlin::store::open_on(Arc::new(disk.clone()), env(clock, disk.counters().changes, 2), "sim", options).unwrap()
}

fn batch_of(rows: &Rows) -> RecordBatch {
    batch(&rows.iter().map(|(id, name)| (*id, name.clone())).collect::<Vec<Row>>())
}

fn at(store: &Store, time: Timestamp) -> Result<Rows> {
    Ok(read(store, T, AsOf::Time(time))?.into_iter().collect())
}

fn keys(ids: &[i64]) -> RecordBatch {
    RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef)]).unwrap()
}

fn look_up(store: &Store, ids: &[i64], time: Timestamp) -> Result<Rows> {
    let options = LookupOptions { as_of: AsOf::Time(time), ..LookupOptions::default() };
    let answer = store.table(T).get_many(&keys(ids), &options)?;
    let found = answer.found.iter().zip(rows(&[answer.rows])).filter(|(found, _)| *found == Some(true));
    Ok(found.map(|(_, row)| row).collect())
}

/// Checks what existed at each time, as it was recorded then.
fn check(store: &Store, noted: &BTreeMap<Timestamp, Rows>, may_be_gone: bool, what: &str) -> usize {
    let mut gone = 0;
    for (time, expected) in noted {
        let ids: Vec<i64> = (0..12).collect();
        match at(store, *time) {
            Ok(found) => {
                assert_eq!(&found, expected, "{what}: at {}", time.0);
                assert_eq!(&look_up(store, &ids, *time).unwrap(), expected, "{what}: looked up at {}", time.0);
            }
            Err(e) => {
                assert!(may_be_gone && e.kind() == ErrorKind::NotFound, "{what}: at {}: {e}", time.0);
                assert_eq!(look_up(store, &ids, *time).unwrap_err().kind(), ErrorKind::NotFound, "{what}");
                gone += 1;
            }
        }
    }
    gone
}

#[test]
fn a_time_between_two_row_writes_shows_the_first_of_them_for_ever() {
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000))));
    let store = open(&disk, &clock, Options::default());
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(T).create(batch(&[]).schema(), key).unwrap();
    let upsert = |name: &str| {
        clock.set(Timestamp(drumlin::base::Clock::now(&*clock).0 + 10));
        store.table(T).upsert(batch(&[(1, Some(name.into()))]), &WriteOptions::default()).unwrap();
    };
    let one = |name: &str| Rows::from([(1, Some(name.to_owned()))]);
    upsert("a");
    upsert("b");
    let noted = BTreeMap::from([
        (Timestamp(1_005), Rows::new()),
        (Timestamp(1_010), one("a")),
        (Timestamp(1_019), one("a")),
        (Timestamp(1_020), one("b")),
        (Timestamp(1_025), one("b")),
    ]);
    check(&store, &noted, false, "in memory");
    store.snapshot("s", "**").unwrap();
    check(&store, &noted, false, "after a snapshot");
    store.checkpoint(&Default::default()).unwrap();
    check(&store, &noted, false, "after a checkpoint");
    clock.set(Timestamp(1_100));
    store.write(T, batch(&[]), &WriteOptions::default()).unwrap();
    check(&store, &noted, false, "after a write");
    let error = at(&store, Timestamp(3)).unwrap_err();
    assert!(error.message().contains("'t'") && error.message().contains("the oldest version, 0"), "{error}");
    store.close().unwrap();
    check(&open(&disk, &clock, Options::default()), &noted, false, "reopened");
}

#[test]
fn rows_that_no_version_numbered_are_shown_by_the_times_they_were_there() {
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000))));
    let store = open(&disk, &clock, Options::default());
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(T).create(batch(&[]).schema(), key).unwrap();
    clock.set(Timestamp(1_010));
    store.table(T).upsert(batch(&[(1, None)]), &WriteOptions::default()).unwrap();
    clock.set(Timestamp(1_020));
    // It replaces all of them before they were in any version.
    store.write(T, batch(&[(2, None)]), &WriteOptions::default()).unwrap();
    let noted = BTreeMap::from([
        (Timestamp(1_009), Rows::new()),
        (Timestamp(1_015), Rows::from([(1, None)])),
        (Timestamp(1_025), Rows::from([(2, None)])),
    ]);
    clock.set(Timestamp(1_026));
    check(&store, &noted, false, "in memory");
    for round in 0..2 {
        store.checkpoint(&Default::default()).unwrap();
        check(&store, &noted, false, &format!("checkpoint {round}"));
    }
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
    store.close().unwrap();
    let store = open(&disk, &clock, Options::default());
    check(&store, &noted, false, "reopened");
    // When the version is deleted, so is what its times showed.
    store.set_retention(T, Some(Retention::KeepLast(1))).unwrap();
    clock.set(Timestamp(1_030));
    store.checkpoint(&Default::default()).unwrap();
    assert_eq!(check(&store, &noted, true, "expired"), 2);
    store.reclaim(&Default::default()).unwrap();
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}

#[test]
fn a_single_commit_between_two_versions_keeps_no_history() {
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000))));
    let store = open(&disk, &clock, Options { inline_bytes: 0, ..Options::default() });
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(T).create(batch(&[]).schema(), key).unwrap();
    let many: Vec<Row> = (0..5_000).map(|id| (id, Some(format!("name {id}")))).collect();
    let mut bytes = Vec::new();
    for commits in [1, 5] {
        for part in many.chunks(5_000 / commits) {
            clock.set(Timestamp(drumlin::base::Clock::now(&*clock).0 + 10));
            store.table(T).upsert(batch(part), &WriteOptions::default()).unwrap();
        }
        let before = store.table(T).stat().unwrap().bytes;
        store.checkpoint(&Default::default()).unwrap();
        bytes.push(store.table(T).stat().unwrap().bytes - before);
    }
    // For rows written once, a history has the keys and times.
    assert!(bytes[1] < bytes[0] * 3 / 2, "{bytes:?}");
}

// faults: wrong clock x write, upsert, delete, snapshot, checkpoint, read, look-up
#[test]
fn random_operations_never_change_what_a_time_shows() {
    crate::seeds::each(0..60, 10, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000))));
        let options = || Options {
            inline_bytes: [0, 65_536][seed as usize % 2],
            row_write_bytes: [0, 1 << 20, 1 << 20][seed as usize % 3],
            ..Options::default()
        };
        let mut store = open(&disk, &clock, options());
        let keyed = seed % 5 > 0;
        let key = if keyed { vec!["id".into()] } else { Vec::new() };
        store.table(T).create(batch(&[]).schema(), TableOptions { key, ..TableOptions::default() }).unwrap();
        let (mut model, mut noted) = (Rows::new(), BTreeMap::new());
        // From here on, versions are deleted: some times are gone, none shows anything else.
        let mut deleted = false;
        for step in 0..40 {
            let what = format!("seed {seed}, step {step}");
            // Some clocks stand still or go back; the times of commits do not.
            clock.set(Timestamp(drumlin::base::Clock::now(&*clock).0 + [0, 1, 10, 10, -3][rng.usize(..5)]));
            let mut some = Rows::new();
            (0..rng.usize(1..4)).for_each(|_| drop(some.insert(rng.i64(0..12), Some(format!("{step}")))));
            let ids: Vec<i64> = some.keys().copied().collect();
            let none = WriteOptions::default();
            match rng.u32(..14) {
                0 => {
                    store.write(T, batch_of(&some), &none).unwrap();
                    model = some;
                }
                1 | 2 => drop(store.checkpoint(&Default::default()).unwrap()),
                3 => drop(store.snapshot(&format!("s{step}"), "**").unwrap()),
                4 => {
                    store.table(T).delete(&format!("id <= {}", ids[0]), &Default::default()).unwrap();
                    model.retain(|id, _| *id > ids[0]);
                }
                5 => {
                    drop(store);
                    store = open(&disk, &clock, options());
                }
                6 if keyed => {
                    some.retain(|id, _| !model.contains_key(id));
                    store.append(T, batch_of(&some), &none).unwrap();
                    model.extend(some);
                }
                7 | 8 if keyed => {
                    store.table(T).delete_keys(keys(&ids), &none).unwrap();
                    ids.iter().for_each(|id| drop(model.remove(id)));
                }
                9 if step > 20 => {
                    let versions: Vec<Version> = store
                        .table(T)
                        .versions()
                        .unwrap()
                        .iter()
                        .map(|info| info.version)
                        .filter(|_| rng.bool())
                        .collect();
                    let all = store.table(T).versions().unwrap().len();
                    // The newest is kept: deleting it is tested elsewhere.
                    let newest = store.table(T).versions().unwrap().last().unwrap().version;
                    let versions: Vec<Version> = versions.into_iter().filter(|version| *version != newest).collect();
                    if !versions.is_empty() && versions.len() < all {
                        store.delete_versions(&[(T.to_owned(), versions)], Default::default()).unwrap();
                        deleted = true;
                    }
                }
                10 if step > 25 => {
                    store.set_retention(T, Some(Retention::KeepLast(rng.u64(1..6)))).unwrap();
                    deleted = true;
                }
                _ if keyed => {
                    store.table(T).upsert(batch_of(&some), &none).unwrap();
                    model.extend(some);
                }
                _ => {
                    store.write(T, batch_of(&some), &none).unwrap();
                    model = some;
                }
            }
            let mut feed = store.changes(store.seq().unwrap()).unwrap();
            store.tree().put("tick", drumlin::catalog::Payload::from(step)).unwrap();
            let now = feed.next(Some(std::time::Duration::ZERO)).unwrap().unwrap().time();
            assert!(noted.last_key_value().is_none_or(|(last, _)| *last < now), "{what}");
            noted.insert(now, model.clone());
            if keyed && step % 3 == 0 {
                check(&store, &noted, deleted, &what);
            }
        }
        let newest: Rows = read(&store, T, AsOf::Newest).unwrap().into_iter().collect();
        assert_eq!(newest, model, "seed {seed}");
        assert_eq!(store.verify(&Default::default()).unwrap().faults, [], "seed {seed}");
        store.reclaim(&Default::default()).unwrap();
        if keyed {
            check(&store, &noted, deleted, &format!("seed {seed}, at the end"));
        }
        store.close().unwrap();
        let store = open(&disk, &clock, options());
        if keyed {
            check(&store, &noted, deleted, &format!("seed {seed}, reopened"));
        }
        assert_eq!(store.verify(&Default::default()).unwrap().orphans, [], "seed {seed}");
    });
}

#[test]
fn a_version_taken_back_leaves_a_gap_in_time() {
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000))));
    let store = open(&disk, &clock, Options::default());
    let write = |time: i64, id: i64| {
        clock.set(Timestamp(time));
        store.write(T, batch(&[(id, None)]), &WriteOptions::default()).unwrap().version
    };
    let ids = |time: i64| at(&store, Timestamp(time)).map(|rows| rows.into_keys().collect::<Vec<_>>());
    write(1_000, 0);
    let second = write(1_010, 1);
    clock.set(Timestamp(1_020));
    store.delete_versions(&[(T.to_owned(), vec![second])], Default::default()).unwrap();
    write(1_030, 2);
    assert_eq!(ids(1_005).unwrap(), [0]);
    assert_eq!(ids(1_015).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(ids(1_015).unwrap_err().message().contains("was deleted"));
    assert_eq!(ids(1_025).unwrap(), [0]);
    assert_eq!(ids(1_030).unwrap(), [2]);
}
