//! Random tables of random Arrow types, sliced and in chunks, through every entry and exit: the rows come back as written,
//! or an error refuses them; there is never a panic.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use drumlin::base::ManualClock;
use drumlin::base::Timestamp;
use drumlin::storage::SimDisk;
use drumlin::store::{Frame, ReadOptions, TableOptions, VerifyOptions, WriteOptions};
use drumlin::table::ScanOptions;
use drumlin::{Error, ErrorKind, Result, Store, Tables};
use fastrand::Rng;

use crate::arrays::{any_type, array, shown};
use crate::support::open_with;

/// What each row shows, by its id.
type Rows = BTreeMap<i64, Vec<String>>;

fn schema(rng: &mut Rng) -> SchemaRef {
    let mut fields = vec![Field::new("id", DataType::Int64, false)];
    for at in 0..rng.usize(1..4) {
        let depth = rng.usize(..4);
        let data_type = any_type(rng, depth);
        let nullable = data_type == DataType::Null || rng.u8(..6) > 0;
        fields.push(Field::new(format!("c{at}"), data_type, nullable));
    }
    Arc::new(Schema::new(fields))
}

/// Rows with ids from `from` on, fewer than `most`: parts of larger arrays, as slices and in chunks.
fn batches(rng: &mut Rng, schema: &SchemaRef, from: i64, most: usize) -> Vec<RecordBatch> {
    let ids = ids(rng, from, most);
    let mut batches = Vec::new();
    let mut at = 0;
    while at < ids.len() || batches.is_empty() {
        let rows = rng.usize(..=ids.len() - at).max(usize::from(at < ids.len()));
        let (before, after) = (rng.usize(..4), rng.usize(..4));
        let columns = schema.fields().iter().map(|field| -> ArrayRef {
            match field.name().as_str() {
                "id" => Arc::new(Int64Array::from(ids[at..at + rows].to_vec())),
                _ => array(rng, field.data_type(), before + rows + after, field.is_nullable()).slice(before, rows),
            }
        });
        let columns = columns.collect();
        batches.push(RecordBatch::try_new(schema.clone(), columns).unwrap());
        at += rows;
    }
    batches
}

fn show(batches: &[RecordBatch]) -> Rows {
    let mut rows = Rows::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let id = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().value(row);
            let others = batch.columns().iter().map(|column| shown(column, row)).collect();
            assert_eq!(rows.insert(id, others), None, "row {id} comes twice");
        }
    }
    rows
}

fn frame(batches: &[RecordBatch]) -> Frame<'static> {
    let (schema, batches) = (batches[0].schema(), batches.to_vec());
    Frame::new(schema, batches.into_iter().map(Ok))
}

/// Whether an error is permitted for well-formed rows.
fn refused(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::SchemaMismatch)
}

/// Reads a table in both forms, also in parts; the result has the schema's types.
fn check(store: &Store, path: &str, expected: &Rows) {
    for native in [false, true] {
        let options = |scan: ScanOptions| ReadOptions { native, ..ReadOptions::from(scan) };
        let scan = store.read(path, &options(ScanOptions::default())).unwrap();
        let schema = scan.schema();
        let batches = scan.collect().unwrap_or_else(|e| panic!("{path}, native {native}: {e}"));
        for batch in &batches {
            assert_eq!(batch.schema(), schema);
            batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
        }
        assert_eq!(&show(&batches), expected, "{path}, native {native}");
        let first =
            ScanOptions { filter: Some(drumlin::filter::Filter::parse("id >= 10").unwrap()), ..Default::default() };
        let some = show(&store.table(path).collect(&options(first)).unwrap());
        assert_eq!(some, expected.range(10..).map(|(id, row)| (*id, row.clone())).collect());
        for field in schema.fields() {
            let filter = drumlin::filter::Filter::parse(&format!("{} is null", field.name())).unwrap();
            let nulls = ScanOptions { filter: Some(filter), ..Default::default() };
            let nulls = store.table(path).collect(&options(nulls)).unwrap_or_else(|e| panic!("{field}: {e}"));
            let at = schema.index_of(field.name()).unwrap();
            let expected = expected.iter().filter(|(_, row)| row[at] == "null").map(|(id, _)| *id).collect::<Vec<_>>();
            assert_eq!(show(&nulls).into_keys().collect::<Vec<_>>(), expected, "{path}, {field} is null");
        }
    }
}

fn checkpoint(store: &Store) {
    let report = store.checkpoint(&Default::default()).unwrap();
    // Row groups may fail to be joined only because dictionaries do not fit their keys.
    for failure in &report.failures {
        assert!(failure.contains("more than keys of type"), "{failure}");
    }
    let faults = store.verify(&VerifyOptions { deep: true, ..Default::default() }).unwrap().faults;
    assert_eq!(faults, []);
}

fn ids(rng: &mut Rng, from: i64, most: usize) -> Vec<i64> {
    let mut ids: Vec<i64> = (from..from + rng.usize(..most) as i64).collect();
    rng.shuffle(&mut ids);
    ids
}

/// A table that keeps its rows in insertion order, or sorted by id.
fn plain(rng: &mut Rng, store: &Store, path: &str, schema: &SchemaRef, sorted: bool) -> Result<()> {
    let options = WriteOptions { sort: sorted.then(|| vec!["id".into()]), ..WriteOptions::default() };
    let first = batches(rng, schema, 0, 30);
    store.write(path, frame(&first), &options)?;
    let mut expected = show(&first);
    check(store, path, &expected);
    let second = batches(rng, schema, 30, 20);
    store.append(path, frame(&second), &Default::default())?;
    expected.extend(show(&second));
    check(store, path, &expected);
    if sorted {
        let third = batches(rng, schema, 12, 25);
        store.replace(path, frame(&third), &Default::default())?;
        let third = show(&third);
        if let (Some((low, _)), Some((high, _))) = (third.first_key_value(), third.last_key_value()) {
            expected.retain(|id, _| id < low || id > high);
        }
        expected.extend(third);
        check(store, path, &expected);
    }
    store.table(path).delete("id % 5 = 0", &Default::default())?;
    expected.retain(|id, _| id % 5 != 0);
    check(store, path, &expected);
    checkpoint(store);
    check(store, path, &expected);
    Ok(())
}

/// A table by key.
fn keyed(rng: &mut Rng, store: &Store, schema: &SchemaRef) -> Result<()> {
    let path = "keyed";
    store.table(path).create(schema.clone(), TableOptions { key: vec!["id".into()], ..Default::default() })?;
    let mut expected = Rows::new();
    for round in 0..4 {
        let rows = batches(rng, schema, round * 7, 20);
        match round {
            // Written as row groups.
            2 => {
                let options = WriteOptions { metadata: Some("{}".into()), ..WriteOptions::default() };
                store.table(path).upsert(frame(&rows), &options)?;
            }
            _ => drop(store.table(path).upsert(frame(&rows), &Default::default())?),
        }
        expected.extend(show(&rows));
        check(store, path, &expected);
        let asked: Vec<i64> = (0..40).collect();
        let asked = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(asked)) as ArrayRef)]).unwrap();
        let answer = store.table(path).get_many(&asked, &Default::default())?;
        for (at, found) in answer.found.iter().enumerate() {
            let row: Vec<String> = answer.rows.columns().iter().map(|column| shown(column, at)).collect();
            let known = expected.get(&(at as i64));
            assert_eq!(found == Some(true), known.is_some());
            assert!(known.is_none_or(|known| known == &row), "{at}: {row:?} for {known:?}");
        }
        if rng.bool() {
            checkpoint(store);
            check(store, path, &expected);
        }
    }
    checkpoint(store);
    check(store, path, &expected);
    Ok(())
}

#[test]
fn every_type_comes_back_or_is_refused() {
    let mut refusals = BTreeMap::<String, u64>::new();
    let mut done = 0;
    // Three tables per seed.
    let mut all = 0;
    crate::seeds::each(0..80, 25, |seed| {
        all += 3;
        let mut rng = Rng::with_seed(seed);
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let store = open_with(&SimDisk::new(), &clock, 1).unwrap();
        let schema = schema(&mut rng);
        let round = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let plain_table = plain(&mut rng, &store, "plain", &schema, false);
            let sorted_table = plain(&mut rng, &store, "sorted", &schema, true);
            [plain_table, sorted_table, keyed(&mut rng, &store, &schema)]
        }));
        let answers = round.unwrap_or_else(|_| panic!("seed {seed}: {schema}"));
        for answer in answers {
            match answer {
                Ok(()) => done += 1,
                Err(e) if refused(&e) => *refusals.entry(e.to_string()).or_default() += 1,
                Err(e) => panic!("seed {seed}: {e}: {schema}"),
            }
        }
    });
    assert!(done > all / 2 || all < 100, "{done} of {all} tables; refused: {refusals:#?}");
    println!("{done} of {all} tables; refused: {refusals:#?}");
}

// faults: hostile arrays x write
#[test]
fn types_that_cannot_be_stored_are_refused_at_every_depth() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let store = open_with(&SimDisk::new(), &clock, 1).unwrap();
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![1, 3]), &numbers).unwrap();
    let fields = UnionFields::try_new(vec![0], vec![Field::new("n", DataType::Int32, true)]).unwrap();
    let union = UnionArray::try_new(fields, vec![0, 0].into(), None, vec![numbers]).unwrap();
    let columns: Vec<ArrayRef> = vec![Arc::new(runs), Arc::new(union)];
    for column in columns {
        for depth in 0..3 {
            let column = (0..depth).fold(column.clone(), |below, _| {
                let field = Arc::new(Field::new("x", below.data_type().clone(), true));
                Arc::new(StructArray::new(vec![field].into(), vec![below], None))
            });
            let rows = RecordBatch::try_from_iter([("c", column)]).unwrap();
            for frame in [Frame::from(rows.clone()), Frame::from(rows.clone()).foreign()] {
                let error = store.write("t", frame, &Default::default()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                assert!(error.message().contains("cannot be stored"), "{error}");
            }
        }
    }
}

/// A hundred values from `from` on, each in a list, as a dictionary whose keys can address at most 128.
fn listed(from: usize) -> RecordBatch {
    let values: StringArray = (from..from + 100).map(|n| Some(format!("v{n}"))).collect();
    let keyed = DictionaryArray::<Int8Type>::new((0..100).collect(), Arc::new(values));
    let field = Arc::new(Field::new("item", keyed.data_type().clone(), true));
    let lists = ListArray::new(field, arrow::buffer::OffsetBuffer::from_lengths([1; 100]), Arc::new(keyed), None);
    let ids = Int64Array::from_iter_values(from as i64..from as i64 + 100);
    let id = Field::new("id", DataType::Int64, false);
    let fields = vec![id, Field::new("c", lists.data_type().clone(), true)];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(ids), Arc::new(lists)]).unwrap()
}

#[test]
fn nested_dictionaries_of_overlapping_row_groups_are_read_together() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let store = open_with(&SimDisk::new(), &clock, 2).unwrap();
    let parts = [listed(0), listed(200), listed(100)];
    let expected = show(&parts);
    let sorted = WriteOptions { sort: Some(vec!["id".into()]), ..WriteOptions::default() };
    store.write("sorted", frame(&parts), &sorted).unwrap();
    store.replace("sorted", listed(100), &Default::default()).unwrap();
    store
        .table("keyed")
        .create(parts[0].schema(), TableOptions { key: vec!["id".into()], ..Default::default() })
        .unwrap();
    for part in &parts {
        // As row groups and as rows in memory.
        store.append("keyed", part.clone(), &Default::default()).unwrap();
        store.table("keyed").upsert(part.clone(), &Default::default()).unwrap();
    }
    let asked =
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![5, 150, 299])) as ArrayRef)]).unwrap();
    for _ in 0..2 {
        check(&store, "sorted", &expected);
        check(&store, "keyed", &expected);
        let answer = store.table("keyed").get_many(&asked, &Default::default()).unwrap();
        assert_eq!(
            (0..3).map(|row| shown(&answer.rows["c"], row)).collect::<Vec<_>>(),
            ["[\"v5\"]", "[\"v150\"]", "[\"v299\"]"]
        );
        let report = store.checkpoint(&Default::default()).unwrap();
        assert_eq!(report.failures, [] as [String; 0]);
    }
    // The schema has the types of the result.
    let field = store.read("sorted", &Default::default()).unwrap().schema().field(1).clone();
    assert!(field.data_type().to_string().contains("Int32"), "{field}");
    // Two chunks of one write whose dictionaries do not fit into one are refused if there is no wider type.
    let error = store.write("plain", frame(&parts), &Default::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    for words in ["'plain'", "column 'c'", "300 values", "keys of type int8"] {
        assert!(error.message().contains(words), "{error} lacks {words}");
    }
}

// faults: stuck rewrite x checkpoint, read, upsert
#[test]
fn a_table_that_cannot_be_rewritten_keeps_no_other_from_a_checkpoint() {
    let disk = SimDisk::new();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let store = open_with(&disk, &clock, 2).unwrap();
    // Row groups that cannot be joined.
    for from in [0, 100, 200] {
        match from {
            0 => store.write("bad", listed(0), &Default::default()).unwrap(),
            _ => store.append("bad", listed(from), &Default::default()).unwrap(),
        };
    }
    let few = |from: i64| {
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from_iter_values(from..from + 50)) as ArrayRef)])
            .unwrap()
    };
    store.write("good", few(0), &Default::default()).unwrap();
    (1..5).for_each(|n| drop(store.append("good", few(n * 50), &Default::default()).unwrap()));
    store
        .table("keyed")
        .create(few(0).schema(), TableOptions { key: vec!["id".into()], ..Default::default() })
        .unwrap();
    (0..200).for_each(|n| drop(store.table("keyed").upsert(few(n), &Default::default()).unwrap()));
    let log = |store: &Store| store.stat().unwrap().log_bytes;
    let before = log(&store);
    let report = store.checkpoint(&Default::default()).unwrap();
    assert_eq!((report.failures.len(), report.tables, report.rows_flushed), (1, 1, 249), "{report}");
    assert!(report.failures[0].starts_with("bad: ") && report.failures[0].contains("'c'"), "{:?}", report.failures);
    assert!(log(&store) < before / 4, "{} bytes of log, {before} before", log(&store));
    check(&store, "bad", &show(&[listed(0), listed(100), listed(200)]));
    assert_eq!(store.verify(&VerifyOptions { deep: true, ..Default::default() }).unwrap().faults, []);
}
