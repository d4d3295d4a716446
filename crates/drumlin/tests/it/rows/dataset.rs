//! Data sets: read while others rewrite and reclaim, described for other processes, in the types of several tables.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int16Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use drumlin::base::ManualClock;
use drumlin::filter::Filter;
use drumlin::storage::SimBucket;
use drumlin::store::{CheckpointOptions, DatasetOptions, Options, TableOptions};
use drumlin::table::{PlanOptions, ScanOptions};
use drumlin::{AsOf, Dataset, ErrorKind, ReadOptions, Store, Tables};

use crate::processes::shared_support::{clock, open, open_as};
use crate::seeds;
use crate::support::{Row, batch, numbered, rows};

fn rewrite(store: &Store) {
    let plan = PlanOptions { dead_share_min: 0.0, repack_dead_share_min: 0.0, ..PlanOptions::default() };
    store.checkpoint(&CheckpointOptions { plan, ..Default::default() }).unwrap();
    assert!(store.reclaim(&Default::default()).unwrap().failures.is_empty());
}

fn two_processes() -> (SimBucket, Arc<ManualClock>, Store, Store) {
    let (bucket, clock) = (SimBucket::new(), clock());
    let writer = open(&bucket, &clock).unwrap();
    let options = Options { cache_bytes: 0, inline_bytes: 0, ..Options::default() };
    let reader = open_as(&bucket.client(), &clock, options).unwrap();
    (bucket, clock, writer, reader)
}

fn where_(text: &str) -> ScanOptions {
    ScanOptions { filter: Some(Filter::parse(text).unwrap()), ..ScanOptions::default() }
}

fn named(dataset: &Dataset, options: &ScanOptions) -> drumlin::Result<Vec<(String, Row)>> {
    let mut all = Vec::new();
    for part in dataset.collect(options)? {
        let names = part.column_by_name("path").unwrap().as_string::<i32>();
        let found = rows(&[part.project(&[0, 1]).unwrap()]);
        all.extend(names.iter().map(|name| name.unwrap().to_owned()).zip(found));
    }
    Ok(all)
}

// faults: reclaim beside a reader x read
#[test]
fn a_data_set_is_read_where_its_rows_are_now() {
    let (_, _, writer, reader) = two_processes();
    for table in 0..4 {
        for n in 0..5 {
            let frame = batch(&numbered(table * 1000 + n * 50, 50));
            match n {
                0 => drop(writer.write(&format!("t/{table}"), frame, &Default::default()).unwrap()),
                _ => drop(writer.append(&format!("t/{table}"), frame, &Default::default()).unwrap()),
            }
        }
        writer.table(&format!("t/{table}")).delete("id % 3 = 0", &Default::default()).unwrap();
    }
    reader.refresh().unwrap();
    let options = DatasetOptions { path_columns: vec!["path".into()], ..Default::default() };
    let dataset = reader.scan("t/*", &options).unwrap();
    let expected: Vec<(String, Row)> = (0..4)
        .flat_map(|table| numbered(table * 1000, 250).into_iter().map(move |row| (table.to_string(), row)))
        .filter(|(_, (id, _))| id % 3 != 0)
        .collect();
    let mut under_way = dataset.scan(&ScanOptions::default()).unwrap();
    let first = under_way.next().unwrap().unwrap();
    let described = dataset.describe().unwrap();
    assert!(described.len() < 400, "{} bytes", described.len());
    rewrite(&writer);
    for n in 0..4 {
        writer.append(&format!("t/{n}"), batch(&numbered(5000, 3)), &Default::default()).unwrap();
    }
    rewrite(&writer);
    let rest: usize = under_way.map(|part| part.unwrap().num_rows()).sum();
    assert_eq!(first.num_rows() + rest, expected.len());
    assert_eq!(named(&dataset, &ScanOptions::default()).unwrap(), expected);
    assert_eq!(counted(&dataset, &ScanOptions::default()), expected.len() as u64);
    let some = where_("path in ('1', '3') and id >= 1100");
    let wanted: Vec<(String, Row)> =
        expected.iter().filter(|(path, (id, _))| (path == "1" || path == "3") && *id >= 1100).cloned().collect();
    assert_eq!(named(&dataset, &some).unwrap(), wanted);
    assert_eq!(counted(&dataset, &some), wanted.len() as u64);
    assert_eq!(dataset.plan(&some).unwrap().pruned, ["t/0", "t/2"]);
    // Another process makes it from its description, and reads the same.
    let again = Dataset::described(&writer, &described).unwrap();
    assert_eq!(named(&again, &ScanOptions::default()).unwrap(), expected);
    // Until a version is gone.
    writer.delete_versions(&[("t/2".into(), (0..6).map(drumlin::Version).collect())], Default::default()).unwrap();
    rewrite(&writer);
    reader.refresh().unwrap();
    let gone = dataset.collect(&ScanOptions::default()).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::SnapshotExpired);
    assert!(gone.message().contains("'t/2'"), "{gone}");
    assert_eq!(Dataset::described(&writer, &described).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    assert_eq!(named(&dataset, &where_("path = '1'")).unwrap().len(), 167);
}

/// Rows written by key, which lie in memory, in the columns of a data set: wider, null and constant ones among them.
#[test]
fn rows_in_memory_have_the_columns_of_the_data_set() {
    let (_, _, writer, reader) = two_processes();
    let narrow = |ids: Vec<i16>| {
        RecordBatch::try_from_iter([
            ("id", Arc::new(Int16Array::from(ids.clone())) as ArrayRef),
            ("v", Arc::new(StringArray::from_iter_values(ids.iter().map(|id| format!("v{id}")))) as ArrayRef),
        ])
        .unwrap()
    };
    let keyed = writer.table("t/keyed");
    let key = TableOptions { key: vec!["id".into()], ..Default::default() };
    keyed.create(narrow(vec![]).schema(), key).unwrap();
    keyed.upsert(narrow((0..100).collect()), &Default::default()).unwrap();
    writer.checkpoint(&Default::default()).unwrap();
    keyed.upsert(narrow((50..150).step_by(2).collect()), &Default::default()).unwrap();
    keyed.delete_keys(narrow(vec![3, 52]), &Default::default()).unwrap();
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![1_000_000, 7]));
    let wide = RecordBatch::try_from_iter([("id", wide), ("w", Arc::new(Int64Array::from(vec![1, 2])))]).unwrap();
    writer.write("t/wide", wide, &Default::default()).unwrap();
    reader.refresh().unwrap();
    for store in [&writer, &reader] {
        let options = DatasetOptions { path_columns: vec!["path".into()], ..Default::default() };
        let dataset = store.scan("t/*", &options).unwrap();
        let names: Vec<_> =
            dataset.schema().fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect();
        let text = |name: &str| (name.to_owned(), DataType::Utf8);
        let number = |name: &str| (name.to_owned(), DataType::Int64);
        assert_eq!(names, [number("id"), text("v"), number("w"), text("path")]);
        let count = |filter: &str| dataset.count_rows(&where_(filter)).unwrap();
        let read = |filter: &str| {
            let found = dataset.collect(&where_(filter)).unwrap();
            let ids = found.iter().flat_map(|part| part.column(0).as_primitive::<Int64Type>().values().to_vec());
            ids.collect::<Vec<i64>>()
        };
        assert_eq!(counted(&dataset, &ScanOptions::default()), 98 + 25 + 2);
        assert_eq!(read("id >= 140"), [140, 142, 144, 146, 148, 1_000_000]);
        for filter in
            ["id in (3, 52, 54, 7)", "w is null and id > 120", "path = 'wide' or v = 'v149'", "v is null", "id < 60"]
        {
            assert_eq!(read(filter).len() as u64, count(filter), "{filter}");
        }
        assert_eq!(read("id in (3, 52, 54, 7)"), [7, 54, 7]);
        let plan = dataset.plan(&where_("w > 0")).unwrap();
        assert_eq!((plan.opened.len(), &*plan.pruned), (1, &["t/keyed".to_owned()][..]));
        // No column at all: rows only.
        let none = ScanOptions { columns: Some(vec![]), ..where_("id = 7") };
        assert_eq!(dataset.collect(&none).unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
        // In the types that engines take.
        let narrowed = dataset.for_engines().unwrap();
        let shown = narrowed.collect(&where_("id in (7, 54)")).unwrap();
        assert_eq!(shown[0].schema(), narrowed.schema());
        assert!(matches!(narrowed.schema().field(3).data_type(), DataType::Dictionary(..)));
    }
}

/// How many rows there are, by a count, and by reading none of their columns.
fn counted(dataset: &Dataset, options: &ScanOptions) -> u64 {
    let count = dataset.count_rows(options).unwrap();
    let none = ScanOptions { columns: Some(Vec::new()), ..options.clone() };
    let batches = dataset.collect(&none).unwrap();
    let read: Vec<RecordBatch> = dataset.scan(&none).unwrap().map(Result::unwrap).collect();
    for batches in [batches, read] {
        assert!(batches.iter().all(|batch| batch.num_columns() == 0 && batch.num_rows() > 0));
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>() as u64, count);
    }
    count
}

/// Engines that only count ask for no columns: then nothing is read, whatever the columns are.
#[test]
fn rows_without_columns_are_counted_without_a_look_at_them() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    for table in 0..3 {
        let path = format!("t/{table}");
        store.write(&path, batch(&numbered(0, 500)), &Default::default()).unwrap();
        store.append(&path, batch(&numbered(500, 500)), &Default::default()).unwrap();
    }
    store.checkpoint(&Default::default()).unwrap();
    store.table("t/1").delete("id < 150", &Default::default()).unwrap();
    let read = || {
        let of = |name: &str| {
            let all = drumlin::metrics(&store).unwrap();
            all.into_iter().find(|metric| metric.name == name).map(|metric| metric.value).unwrap()
        };
        ["drumlin_read_row_groups_total", "drumlin_storage_read_bytes_total", "drumlin_cache_hits_total"].map(of)
    };
    let dataset = store.scan("t/*", &Default::default()).unwrap();
    let before = read();
    assert_eq!(counted(&dataset, &ScanOptions::default()), 3 * 1000 - 150);
    assert_eq!(read(), before, "row groups read, bytes read, look-ups in the cache");
}

/// At each of many random times, a data set shows what its tables show one by one.
#[test]
fn a_data_set_shows_what_its_tables_show() {
    seeds::each(0..4, 2, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (bucket, clock) = (SimBucket::new(), clock());
        let store = open(&bucket, &clock).unwrap();
        for _ in 0..60 {
            let path = format!("t/{}", rng.u8(..4));
            let data = numbered(rng.i64(0..100), rng.usize(1..40));
            clock.advance(rng.i64(1..1000));
            let exists = store.table(&path).exists().unwrap();
            match rng.u8(..8) {
                0 | 1 => drop(store.write(&path, batch(&data), &Default::default()).unwrap()),
                2..=4 if exists => drop(store.append(&path, batch(&data), &Default::default()).unwrap()),
                5 if exists => {
                    store.table(&path).delete(&format!("id < {}", data[0].0), &Default::default()).unwrap();
                }
                6 => rewrite(&store),
                _ if store.snapshots().unwrap().len() < 5 => {
                    // Of no table at all there is none.
                    let _ = store.snapshot(&format!("s{}", rng.u32(..)), "t/**");
                }
                _ => {}
            }
            let snapshot = store.snapshots().unwrap().last().map(|snapshot| AsOf::Snapshot(snapshot.name.clone()));
            for as_of in [Some(AsOf::Newest), snapshot].into_iter().flatten() {
                let options = DatasetOptions { as_of: as_of.clone(), path_columns: vec!["path".into()] };
                let Ok(dataset) = store.scan("t/*", &options) else { continue };
                let filter = rng.bool().then(|| Filter::parse(&format!("id > {}", rng.i64(0..120))).unwrap());
                let limit = rng.bool().then(|| rng.u64(..80));
                let mut expected = Vec::new();
                for path in dataset.paths() {
                    let scan = ScanOptions { filter: filter.clone(), ..ScanOptions::default() };
                    let read = ReadOptions::of(as_of.clone(), scan);
                    let found = rows(&store.table(&path).collect(&read).unwrap());
                    expected.extend(found.into_iter().map(|row| (path.trim_start_matches("t/").to_owned(), row)));
                }
                expected.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
                let scan = ScanOptions { filter, limit, ..ScanOptions::default() };
                assert_eq!(named(&dataset, &scan).unwrap(), expected, "seed {seed}");
                assert_eq!(counted(&dataset, &scan), expected.len() as u64, "seed {seed}");
            }
        }
    });
}
