//! What checkpoints and other upkeep must never do: leave rows that cannot be read, rows that can never be flushed, fail as
//! a whole for one table that others change, or hold for a reader what came after it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use drumlin::base::{ManualClock, Task, Timestamp, Version};
use drumlin::catalog::{Payload, Retention};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, CheckpointOptions, Options, ReadOptions, TableOptions};
use drumlin::table::{PlanOptions, ScanOptions};
use drumlin::{
    Alter, ErrorKind, Existing, Expression, Fill, Filter, Merge, MetricValue, NewColumn, Store, Tables, WhenMatched,
    WhenNotMatched,
};
use fastrand::Rng;

use crate::seeds;
use crate::support::{Row, batch, numbered, open, open_inline, read};

fn remove_all_dead() -> CheckpointOptions {
    CheckpointOptions { plan: PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() }, ..Default::default() }
}

fn set(pairs: &[(&str, &str)]) -> Vec<(String, Expression)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), Expression::parse(text).unwrap())).collect()
}

fn keyed(store: &Store, path: &str) {
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(path).create(batch(&[]).schema(), key).unwrap();
}

/// Rows of which a rewrite keeps only nulls, in a column of few texts, are read as nulls whatever removed the others.
#[test]
fn columns_of_which_only_nulls_are_left_are_read() {
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter((0..300).map(|row| (row % 30 != 7).then_some(["new", "done"][row % 2]))));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..300));
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let types = [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, DataType::Binary, dictionary];
    for data_type in types {
        let column = cast(&texts, &data_type).unwrap();
        let frame = RecordBatch::try_from_iter_with_nullable([("id", ids.clone(), true), ("status", column, true)]);
        let frame = frame.unwrap();
        type Way = (&'static str, fn(&Store));
        let ways: [Way; 4] = [
            ("delete and checkpoint", |store| {
                store.table("t").delete("status is not null", &Default::default()).unwrap();
                let report = store.checkpoint(&remove_all_dead()).unwrap();
                assert!(report.failures.is_empty(), "{report:?}");
            }),
            ("purge", |store| {
                let filter = Filter::parse("status is not null").unwrap();
                let receipt = store.purge("t", &filter).unwrap().execute(&Default::default()).unwrap();
                assert!(receipt.is_complete(), "{receipt:?}");
            }),
            ("a plain checkpoint of a copy", |store| {
                store.copy("t", "u", &AsOf::Newest, Existing::Refuse).unwrap();
                store.drop("t").unwrap();
                store.table("u").delete("status is not null", &Default::default()).unwrap();
                store.reclaim(&Default::default()).unwrap();
                store.checkpoint(&Default::default()).unwrap();
                store.relocate("u", "t", Existing::Refuse).unwrap();
                store.checkpoint(&remove_all_dead()).unwrap();
            }),
            ("an update", |store| {
                store.table("t").delete("status is not null", &Default::default()).unwrap();
                store.table("t").update(&set(&[("id", "id + 0")]), None, &Default::default()).unwrap();
                store.table("t").update(&set(&[("status", "status")]), None, &Default::default()).unwrap();
                store.checkpoint(&remove_all_dead()).unwrap();
            }),
        ];
        for (name, way) in ways {
            let what = format!("{data_type}, {name}");
            let store = open(&SimDisk::in_memory()).unwrap();
            store.set_retention("**", Some(Retention::KeepLast(1))).unwrap();
            store.write("t", frame.clone(), &Default::default()).unwrap();
            way(&store);
            for native in [false, true] {
                let scan = ScanOptions { native, ..ScanOptions::default() };
                let options = ReadOptions::from(scan);
                let found = store.table("t").collect(&options).unwrap_or_else(|e| panic!("{what}: {e}"));
                let rows: usize = found.iter().map(RecordBatch::num_rows).sum();
                let nulls: usize = found.iter().map(|batch| batch.column(1).logical_null_count()).sum();
                assert_eq!((rows, nulls), (10, 10), "{what}");
            }
            let verified = store.verify(&drumlin::store::VerifyOptions { deep: true, ..Default::default() }).unwrap();
            assert!(verified.faults.is_empty(), "{what}: {:?}", verified.faults);
        }
    }
}

/// A keyed table that keeps few versions, with rows in memory whose version may expire before they are flushed: each
/// checkpoint flushes all, and everything that needs rows in row groups works.
fn keyed_with_retention(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let (disk, clock) = (SimDisk::in_memory(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
    let mut store = open_inline(&disk, &clock, 1).unwrap();
    keyed(&store, "k");
    let keep = match rng.u8(..3) {
        0 => Retention::KeepMicros(rng.u64(1..400)),
        _ => Retention::KeepLast(rng.u64(1..4)),
    };
    store.set_retention("k", Some(keep)).unwrap();
    let mut model: BTreeMap<i64, Option<String>> = BTreeMap::new();
    let mut done = Vec::new();
    for step in 0..60 {
        clock.advance(rng.i64(1..200));
        let (id, name) = (rng.i64(0..20), Some(format!("s{step}")));
        let op = rng.u8(..12);
        done.push((op, id));
        let table = store.table("k");
        let outcome = match op {
            0..=3 => {
                model.insert(id, name.clone());
                table.upsert(batch(&[(id, name)]), &Default::default()).map(drop)
            }
            4 => {
                model.remove(&id);
                let key = batch(&[(id, None)]).project(&[0]).unwrap();
                table.delete_keys(key, &Default::default()).map(drop)
            }
            5 => {
                model.retain(|known, _| *known != id);
                table.delete(&format!("id = {id}"), &Default::default()).map(drop)
            }
            6 => {
                model.values_mut().for_each(|name| *name = Some(format!("u{step}")));
                table.update(&set(&[("name", &format!("'u{step}'"))]), None, &Default::default()).map(drop)
            }
            7 => {
                model.insert(id, name.clone());
                let merge = Merge {
                    on: vec!["id".into()],
                    matched: vec![(None, WhenMatched::UpdateAll)],
                    not_matched: vec![(None, WhenNotMatched::InsertAll)],
                    ..Merge::default()
                };
                table.merge(batch(&[(id, name)]), &merge, &Default::default()).map(drop)
            }
            8 => {
                model = BTreeMap::from([(id, name.clone())]);
                store.write("k", batch(&[(id, name)]), &Default::default()).map(drop)
            }
            9 => store.copy("k", "copy", &AsOf::Newest, Existing::Replace).map(drop),
            10 => {
                store.close().unwrap();
                store = open_inline(&disk, &clock, 1).unwrap();
                Ok(())
            }
            _ => store.snapshot("s", "k").map(drop).and_then(|()| store.drop_snapshot("s").map(drop)),
        };
        outcome.unwrap_or_else(|e| panic!("seed {seed} (DRUMLIN_SEED={seed}): {done:?}: {e}"));
        if rng.u8(..4) == 0 {
            let report = store.checkpoint(&Default::default()).unwrap();
            assert!(report.failures.is_empty(), "seed {seed} (DRUMLIN_SEED={seed}): {done:?}: {report:?}");
            assert_eq!(store.table("k").stat().unwrap().memory_keys, 0, "seed {seed}: {done:?}");
            done.push((99, 0));
        }
        let expected: Vec<Row> = model.iter().map(|(id, name)| (*id, name.clone())).collect();
        assert_eq!(read(&store, "k", AsOf::Newest).unwrap(), expected, "seed {seed} (DRUMLIN_SEED={seed}): {done:?}");
    }
}

#[test]
fn rows_whose_version_has_expired_are_flushed() {
    for seed in seeds::list(0..60, 20) {
        keyed_with_retention(seed);
    }
}

/// Whatever else happens to a table while a checkpoint rewrites it, the checkpoint goes on with the others, and fails no call.
#[test]
fn a_checkpoint_goes_on_beside_every_change() {
    type Change = (&'static str, fn(&Store));
    let update = |store: &Store| {
        store.table("t").update(&set(&[("name", "'u'")]), Some("id % 9 = 0"), &Default::default()).unwrap();
    };
    let changes: [Change; 12] = [
        ("append", |store| drop(store.append("t", batch(&numbered(900, 3)), &Default::default()).unwrap())),
        ("delete", |store| drop(store.table("t").delete("id % 2 = 0", &Default::default()).unwrap())),
        ("update", update),
        ("merge", |store| {
            let merge = Merge {
                on: vec!["id".into()],
                matched: vec![(None, WhenMatched::UpdateAll)],
                not_matched: vec![(None, WhenNotMatched::InsertAll)],
                ..Merge::default()
            };
            store.table("t").merge(batch(&[(3, None), (903, None)]), &merge, &Default::default()).unwrap();
        }),
        ("restore", |store| drop(store.restore("t", &AsOf::Version(Version(1))).unwrap())),
        ("restore of a newer one", |store| {
            store.restore("t", &AsOf::Version(Version(0))).unwrap();
            store.restore("t", &AsOf::Version(Version(3))).unwrap();
        }),
        ("copy over it", |store| drop(store.copy("other", "t", &AsOf::Newest, Existing::Replace).unwrap())),
        ("add a computed column", |store| {
            let computed = Fill::Computed(Expression::parse("id + 1").unwrap());
            let added = NewColumn { field: Field::new("c", DataType::Int64, true), fill: computed };
            store.table("t").alter(&Alter::Add(vec![added]), &Default::default()).unwrap();
        }),
        ("drop a column", |store| {
            store.table("t").alter(&Alter::Drop(vec!["name".into()]), &Default::default()).unwrap();
        }),
        ("write", |store| drop(store.write("t", batch(&numbered(700, 5)), &Default::default()).unwrap())),
        ("drop", |store| drop(store.drop("t").unwrap())),
        ("delete the newest version", |store| {
            store.delete_versions(&[("t".into(), vec![Version(3)])], Default::default()).unwrap();
        }),
    ];
    for (name, change) in changes {
        let store = open(&SimDisk::in_memory()).unwrap();
        for path in ["t", "other"] {
            store.write(path, batch(&numbered(0, 40)), &Default::default()).unwrap();
            for part in 1..4 {
                store.append(path, batch(&numbered(part * 40, 40)), &Default::default()).unwrap();
            }
        }
        let (during, calls) = (store.clone(), Arc::new(AtomicUsize::new(0)));
        let progress = move |_| {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                change(&during);
            }
        };
        let task = Task { progress: Some(Arc::new(progress)), ..Task::default() };
        let report = store.checkpoint(&CheckpointOptions { task, ..CheckpointOptions::default() });
        let report = report.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(report.failures.is_empty() && report.tables >= 1, "{name}: {report:?}");
        assert_eq!(store.table("other").stat().unwrap().row_groups, 1, "{name}: {report:?}");
        // The same change without a checkpoint beside it comes to the same rows.
        let plain = open(&SimDisk::in_memory()).unwrap();
        for path in ["t", "other"] {
            plain.write(path, batch(&numbered(0, 40)), &Default::default()).unwrap();
            (1..4).for_each(|part| {
                plain.append(path, batch(&numbered(part * 40, 40)), &Default::default()).map(drop).unwrap();
            });
        }
        change(&plain);
        let rows = |store: &Store| store.table("t").collect(&ReadOptions::default()).map_err(|e| e.kind());
        let joined = |store: &Store| {
            rows(store).map(|batches| arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap())
        };
        assert_eq!(joined(&store), joined(&plain), "{name}");
        store.checkpoint(&remove_all_dead()).unwrap();
        assert_eq!(joined(&store), joined(&plain), "{name}, after another checkpoint");
    }
}

fn gauge(store: &Store, name: &str) -> u64 {
    let metrics = drumlin::metrics(store).unwrap();
    match metrics.iter().find(|metric| metric.name == name).expect("a metric of that name").value {
        MetricValue::Gauge(value) | MetricValue::Counter(value) => value,
        MetricValue::Histogram { count, .. } => count,
    }
}

/// A reader of an older state holds its own small blocks in memory, and none of those that came and went since.
#[test]
fn a_reader_holds_nothing_that_came_after_it() {
    let (disk, clock) = (SimDisk::in_memory(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
    let store = open_inline(&disk, &clock, 1).unwrap();
    store.write("small", batch(&numbered(0, 30)), &Default::default()).unwrap();
    let reader = store.transaction().unwrap();
    reader.table("small").stat().unwrap();
    let mut most = 0;
    for round in 0..20 {
        for n in 0..20 {
            store.write("t", batch(&numbered(n, 200)), &Default::default()).unwrap();
        }
        let versions: Vec<Version> = store.table("t").versions().unwrap().iter().map(|info| info.version).collect();
        let old = versions[..versions.len() - 1].to_vec();
        store.delete_versions(&[("t".into(), old)], Default::default()).unwrap();
        store.checkpoint(&Default::default()).unwrap();
        store.reclaim(&Default::default()).unwrap();
        let held = gauge(&store, "drumlin_inline_bytes");
        most = if round == 0 { held } else { most };
        assert!(held <= most, "round {round}: {held} bytes of small blocks are held, {most} after the first");
    }
    assert!(most > 0, "the reader's own block is held");
    let rows = reader.table("small").collect(&ReadOptions::default()).unwrap();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 30);
    drop(reader);
    // A task of the pool that all tests share may hold what it has read until the pool looks at it again.
    let mut rounds = 0;
    while gauge(&store, "drumlin_inline_bytes") > 0 {
        rounds += 1;
        assert!(rounds < 2000, "{} bytes are held without a reader", gauge(&store, "drumlin_inline_bytes"));
        std::thread::sleep(std::time::Duration::from_millis(5));
        store.reclaim(&Default::default()).unwrap();
    }
}

/// A transaction that was refused something, and so depends on everything, is committed after a checkpoint that moved all
/// tables into other pages, whatever else was done before it; and conflicts if something changed.
#[test]
fn transactions_that_depend_on_everything_outlive_checkpoints() {
    for tables in [1, 2, 300] {
        for changed in [false, true] {
            for checkpoints in 0..3 {
                let store = open(&SimDisk::in_memory()).unwrap();
                for n in 0..tables {
                    store.write(&format!("t{n}"), batch(&numbered(n, 1)), &Default::default()).unwrap();
                }
                if checkpoints == 2 {
                    store.checkpoint(&Default::default()).unwrap();
                    store.append("t0", batch(&numbered(50, 1)), &Default::default()).unwrap();
                }
                store.tree().put("lock", Payload::from(1)).unwrap();
                let transaction = store.transaction().unwrap();
                let refused = transaction.table("t0").create(batch(&[]).schema(), TableOptions::default());
                assert_eq!(refused.map(drop).unwrap_err().kind(), ErrorKind::AlreadyExists);
                transaction.tree().put("note", Payload::from(1)).unwrap();
                if checkpoints > 0 {
                    store.checkpoint(&Default::default()).unwrap();
                }
                if changed {
                    store.append("t0", batch(&numbered(60, 1)), &Default::default()).unwrap();
                    store.checkpoint(&Default::default()).unwrap();
                }
                let outcome = transaction.commit().map(drop).map_err(|e| e.kind());
                let expected = if changed { Err(ErrorKind::Conflict) } else { Ok(()) };
                assert_eq!(outcome, expected, "{tables} tables, {checkpoints} checkpoints");
            }
        }
    }
}

/// Rows are decoded again and compared before they replace others, unless that is turned off.
#[test]
fn rewrites_may_be_taken_on_trust() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    for verify_rewrites in [true, false] {
        let options = Options { verify_rewrites, inline_bytes: 0, ..Options::default() };
        let store = crate::support::open_as(&SimDisk::in_memory(), &clock, 2, options).unwrap();
        store.write("t", batch(&numbered(0, 300)), &Default::default()).unwrap();
        store.table("t").delete("id % 3 = 0", &Default::default()).unwrap();
        store.set_retention("t", Some(Retention::KeepLast(1))).unwrap();
        assert_eq!(store.checkpoint(&remove_all_dead()).unwrap().rows_removed, 100);
        assert_eq!(read(&store, "t", AsOf::Newest).unwrap().len(), 200);
    }
}

/// A commit beside an open reader looks at no table whose rewrites the reader may still ask for.
#[test]
fn forgetting_moves_costs_what_is_forgotten() {
    use drumlin::base::{BlockId, Seq, SessionId, TableId};
    use drumlin::block::Address;
    use drumlin::catalog::{Effect, Path, State, TransactionRecord};
    use drumlin::table::{
        ALIVE, GroupId, NewGroup, Rewrite, RewrittenGroup, Run, Standing, StoredSchema, TableChange, TableSpec,
        TableState, VersionKind,
    };
    const TABLES: u64 = 200;
    let block = BlockId { session: SessionId(1), number: 0 };
    let mut offset = 16;
    let mut address = || {
        offset += 80;
        Address { block, offset, segment_bytes: 64, directory_bytes: 16, checksum: 0 }
    };
    let mut state = State::default();
    let apply = |state: &mut State, seq: u64, effects: Vec<Effect>| {
        state.apply(&TransactionRecord { effects }, Seq(seq), Timestamp(seq as i64)).unwrap();
    };
    let mut made = vec![
        Effect::OpenSession { session: SessionId(1), fence: false },
        Effect::AddBlocks { blocks: vec![(block, 1 << 20)] },
    ];
    for table in 1..=TABLES {
        let path = Path::new(&format!("t{table}")).unwrap();
        let spec = TableSpec { sort: Vec::new(), keyed: false };
        let schema = Some(StoredSchema::new(batch(&[]).schema()).unwrap());
        let change = TableChange {
            schema,
            groups: vec![NewGroup { address: address(), rows: 5, dead: None }],
            ..TableChange::new(VersionKind::Write)
        };
        made.push(Effect::CreateTable { path, table: TableId(table), spec });
        made.push(Effect::ChangeTable { table: TableId(table), change });
    }
    apply(&mut state, 1, made);
    // All are rewritten by commit 2, every other one by commit 3 too.
    let mut rewrite = |table: u64, input: u64| {
        let runs = vec![Run { rows: 5, born: Version(0), died: ALIVE }];
        let output = RewrittenGroup {
            address: address(),
            rows: 5,
            schema: 0,
            runs,
            deletions: Vec::new(),
            standing: Standing::Unsorted,
        };
        let rewrite = Rewrite { inputs: vec![GroupId(input)], outputs: vec![output] };
        Effect::RewriteTable { table: TableId(table), rewrite }
    };
    let all: Vec<Effect> = (1..=TABLES).map(|table| rewrite(table, 0)).collect();
    let some: Vec<Effect> = (1..=TABLES).step_by(2).map(|table| rewrite(table, 1)).collect();
    apply(&mut state, 2, all);
    apply(&mut state, 3, some);
    let tables = |state: &State| -> Vec<Arc<TableState>> { state.tables().map(Result::unwrap).collect() };
    let mut then = tables(&state);
    for (oldest, changed, left) in
        [(Some(1), 0, TABLES), (Some(2), TABLES, TABLES / 2), (Some(2), 0, TABLES / 2), (None, TABLES / 2, 0)]
    {
        // As a commit does: of a copy, so that a table that it touches is another one.
        let mut next = state.clone();
        next.forget_moves(oldest.map(Seq));
        let now = tables(&next);
        let touched = now.iter().zip(&then).filter(|(now, then)| !Arc::ptr_eq(now, then)).count() as u64;
        let moved = now.iter().filter(|table| table.has_moves()).count() as u64;
        assert_eq!((touched, moved), (changed, left), "no reader of a state before {oldest:?}");
        (state, then) = (next, now);
    }
}
