//! Defaults that are made: the time of the call, UUIDs, the numbers of sequences.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Field, Int64Type, Schema, TimeUnit, TimestampSecondType};
use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, CopyToOptions, TableOptions, UpdateOptions, WriteOptions};
use drumlin::table::{
    Alter, ConstraintNames, Constraints, Fill, Generator, Merge, NewColumn, SchemaMode, WhenNotMatched,
};
use drumlin::{ErrorKind, Existing, Store, Tables};

use crate::seeds;
use crate::support::{Checked, ints, open, open_shared, open_with, opener, same};

fn texted(e: drumlin::Error) -> String {
    e.to_string()
}

/// Puts generators on columns.
fn generate(table: &drumlin::Table, generators: &[(&str, Generator)]) -> drumlin::Result<()> {
    let generators = generators.iter().map(|(name, made)| ((*name).to_owned(), made.clone())).collect();
    let constraints = Constraints { generators, ..Constraints::default() };
    table.alter(&Alter::AddConstraints(constraints), &Default::default()).map(drop)
}

/// A table whose key `id` is a sequence, with a number `v`.
fn numbered_rows(tables: &impl Tables, path: &str) -> drumlin::Table {
    let fields = vec![Field::new("id", DataType::Int64, false), Field::new("v", DataType::Int64, true)];
    let table = tables.table(path);
    table.create(Arc::new(Schema::new(fields)), TableOptions { key: vec!["id".into()], ..Default::default() }).unwrap();
    generate(&table, &[("id", Generator::sequence("id", 1))]).unwrap();
    table
}

fn insert(table: &drumlin::Table, rows: usize) -> drumlin::Result<Vec<i64>> {
    let options = WriteOptions { returning: Some(vec!["id".into()]), ..WriteOptions::default() };
    let report = table.insert(ints(&[("v", vec![-7; rows])]), &options)?;
    Ok(report.returned.unwrap()["id"].as_primitive::<Int64Type>().values().to_vec())
}

/// Numbers are taken by commits: a crash gives none of them a second time, and neither does another process.
pub fn numbers_are_taken_once() -> Checked {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let disk = SimDisk::new();
    let store = open_shared(&disk, &clock, 1).map_err(texted)?;
    let other = open_shared(&disk, &clock, 1).map_err(texted)?;
    let table = numbered_rows(&store, "t");
    let mut given = insert(&table, 3).map_err(texted)?;
    same(&given, &vec![1, 2, 3], "the first numbers")?;
    given.extend(insert(&other.table("t"), 3).map_err(texted)?);
    given.extend(insert(&table, 100).map_err(texted)?);
    let crashed = open_shared(&disk.crash(1), &clock, 1).map_err(texted)?;
    // Rows whose numbers no row of the table has any more.
    crashed.table("t").delete("v = -7", &Default::default()).map_err(texted)?;
    given.extend(insert(&crashed.table("t"), 3).map_err(texted)?);
    let all: BTreeSet<i64> = given.iter().copied().collect();
    same(&all.len(), &given.len(), &format!("numbers given once of {given:?}"))
}

/// A copy in another store goes on after the numbers that its rows have.
pub fn copies_go_on() -> Checked {
    let (store, other) = (open(&SimDisk::in_memory()).unwrap(), open(&SimDisk::in_memory()).unwrap());
    let table = numbered_rows(&store, "t");
    insert(&table, 5).map_err(texted)?;
    store.copy_to(&other, "t", &CopyToOptions::default()).map_err(texted)?;
    store.copy("t", "u", &AsOf::Newest, Existing::Refuse).map_err(texted)?;
    for copy in [other.table("t"), store.table("u")] {
        let new = insert(&copy, 2).map_err(|e| format!("the copy gave a number twice: {e}"))?;
        same(&new.iter().all(|id| *id > 5), &true, "the numbers of the copy")?;
    }
    Ok(())
}

/// UUIDs differ, in one call and in calls of one instant.
pub fn uuids_differ() -> Checked {
    let store = open(&SimDisk::in_memory()).unwrap();
    let fields = vec![Field::new("u", DataType::FixedSizeBinary(16), false), Field::new("v", DataType::Int64, true)];
    let (table, key) = (store.table("t"), vec!["u".into()]);
    table.create(Arc::new(Schema::new(fields)), TableOptions { key, ..Default::default() }).map_err(texted)?;
    generate(&table, &[("u", Generator::Uuid)]).map_err(texted)?;
    for rows in [1, 100, 1] {
        table.insert(ints(&[("v", vec![1; rows])]), &Default::default()).map_err(texted)?;
    }
    same(&table.stat().map_err(texted)?.rows, &102, "rows")
}

#[test]
fn no_number_is_given_twice() {
    numbers_are_taken_once().unwrap();
    copies_go_on().unwrap();
}

#[test]
fn times_and_ids_are_those_of_the_call() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_700_000_000_000_000)));
    let store = open_with(&SimDisk::in_memory(), &clock, 2).unwrap();
    let zoned = DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into()));
    let kinds = [
        ("s", DataType::Timestamp(TimeUnit::Second, None), Generator::Now),
        ("z", zoned, Generator::Now),
        ("d", DataType::Date32, Generator::Now),
        ("u", DataType::FixedSizeBinary(16), Generator::Uuid),
        ("t", DataType::Utf8View, Generator::Uuid),
        ("n", DataType::Int32, Generator::sequence("n", 40)),
    ];
    let fields = kinds.iter().map(|(name, kind, _)| Field::new(*name, kind.clone(), true));
    let fields: Vec<Field> = std::iter::once(Field::new("id", DataType::Int64, false)).chain(fields).collect();
    let table = store.table("t");
    table.create(Arc::new(Schema::new(fields)), TableOptions { key: vec!["id".into()], ..Default::default() }).unwrap();
    let generators: Vec<(&str, Generator)> = kinds.iter().map(|(name, _, made)| (*name, made.clone())).collect();
    generate(&table, &generators).unwrap();
    let constraints = table.constraints(&AsOf::Newest).unwrap();
    let told: Vec<String> = constraints.generators.iter().map(|(name, made)| format!("{name}={made}")).collect();
    assert_eq!(told, ["s=now()", "z=now()", "d=now()", "u=uuid()", "t=uuid()", "n=sequence(40)"]);
    for (name, made) in &constraints.generators {
        assert_eq!(Generator::parse(&made.to_string(), name).as_ref(), Some(made));
    }
    let of_call = |ids: Vec<i64>| {
        let options = WriteOptions { returning: Some(Vec::new()), ..WriteOptions::default() };
        table.insert(ints(&[("id", ids)]), &options).unwrap().returned.unwrap()
    };
    let first = of_call(vec![1, 2]);
    clock.advance(90_000_000_000);
    let second = of_call(vec![3]);
    let seconds = |rows: &RecordBatch| rows["s"].as_primitive::<TimestampSecondType>().values().to_vec();
    let day = |rows: &RecordBatch| rows["d"].as_primitive::<Date32Type>().value(0);
    let now = first["s"].as_primitive::<TimestampSecondType>().value(0);
    // What a commit takes of the clock comes before its call.
    assert!((1_700_000_000..1_700_000_010).contains(&now), "{now}");
    assert_eq!((seconds(&first), day(&first)), (vec![now, now], 19675));
    assert_eq!((seconds(&second)[0] - now, day(&second)), (90_000, 19676));
    assert_eq!(first["n"].as_primitive::<arrow::datatypes::Int32Type>().values(), &[40, 41]);
    let id = |rows: &RecordBatch, at: usize| {
        u128::from_be_bytes(rows["u"].as_fixed_size_binary().value(at).try_into().unwrap())
    };
    for (rows, at) in [(&first, 0), (&first, 1), (&second, 0)] {
        let id = id(rows, at);
        assert_eq!(((id >> 76) & 0xf, (id >> 62) & 3, (id >> 80) as i64), (7, 2, seconds(rows)[at] * 1000), "{id:x}");
        let text = rows["t"].as_string_view().value(at);
        assert_eq!((text.len(), text.as_bytes()[14], text.matches('-').count()), (36, b'7', 4), "{text}");
    }
    assert!(id(&first, 0) < id(&first, 1) && id(&first, 1) < id(&second, 0));
    uuids_differ().unwrap();
    // Parts of one call have one time.
    let (_, parts) = (clock.advance(7_000_000), [ints(&[("id", vec![20])]), ints(&[("id", vec![21]), ("n", vec![1])])]);
    let parts = parts.map(|part| {
        let own = |(field, column): (&Arc<Field>, &ArrayRef)| {
            let kind = if field.name() == "n" { DataType::Int32 } else { DataType::Int64 };
            (field.name().clone(), arrow::compute::cast(column, &kind).unwrap())
        };
        RecordBatch::try_from_iter(part.schema().fields().iter().zip(part.columns()).map(own)).unwrap()
    });
    let options = WriteOptions { returning: Some(vec!["z".into()]), ..WriteOptions::default() };
    let rows = table.insert_batches(&parts, &options).unwrap().returned.unwrap();
    assert_eq!(&rows["z"].slice(0, 1), &rows["z"].slice(1, 1));
    // What is given is taken; a null is one.
    let given = RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from(vec![9])) as ArrayRef, true),
        ("n", Arc::new(Int32Array::from(vec![None])), true),
        (
            "s",
            arrow::compute::cast(&Int64Array::from(vec![5]), &DataType::Timestamp(TimeUnit::Second, None)).unwrap(),
            true,
        ),
    ])
    .unwrap();
    let options = WriteOptions { returning: Some(vec!["n".into(), "s".into()]), ..WriteOptions::default() };
    let row = table.insert(given, &options).unwrap().returned.unwrap();
    assert_eq!((row["n"].null_count(), seconds(&row)), (1, vec![5]));
}

#[test]
fn what_no_column_can_have_is_refused() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let table = numbered_rows(&store, "t");
    let day = NewColumn { field: Field::new("day", DataType::Date64, true), fill: Fill::Null };
    table.alter(&Alter::Add(vec![day]), &Default::default()).unwrap();
    for (name, made, words) in [
        ("v", Generator::Now, &["'v'", "int64", "now()", "a timestamp or a date"][..]),
        ("v", Generator::Uuid, &["'v'", "uuid()", "a UUID or text"]),
        ("z", Generator::Now, &["'z'"]),
        ("day", Generator::Now, &["'day'", "date64", "a timestamp or a date"]),
        ("v", Generator::sequence("v", -1), &["0 or later"]),
        ("v", Generator::sequence("", 1), &["needs a name"]),
    ] {
        let error = generate(&table, &[(name, made)]).unwrap_err();
        assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
    }
    // A sequence whose numbers a column does not hold any more.
    let fields = vec![Field::new("k", DataType::Int64, false), Field::new("n", DataType::Int32, true)];
    let small = store.table("small");
    small.create(Arc::new(Schema::new(fields)), TableOptions { key: vec!["k".into()], ..Default::default() }).unwrap();
    generate(&small, &[("n", Generator::sequence("n", i64::from(i32::MAX)))]).unwrap();
    small.insert(ints(&[("k", vec![1])]), &Default::default()).unwrap();
    let error = small.insert(ints(&[("k", vec![2])]), &Default::default()).unwrap_err();
    assert!(error.message().contains("'n'") && error.kind() == ErrorKind::InvalidArgument, "{error}");
    assert_eq!(small.stat().unwrap().rows, 1);
    generate(&table, &[("v", Generator::sequence("last", i64::MAX - 1))]).unwrap();
    table.insert(ints(&[("id", vec![1])]), &Default::default()).unwrap();
    let error = table.insert(ints(&[("id", vec![2])]), &Default::default()).unwrap_err();
    assert!(error.message().contains("'last'"), "{error}");
    // A widened column keeps its sequence; one that cannot have it is not widened.
    small.alter(&Alter::Widen(vec![("n".into(), DataType::Int64)]), &Default::default()).unwrap();
    small.insert(ints(&[("k", vec![2])]), &Default::default()).unwrap();
    assert!(small.alter(&Alter::Widen(vec![("n".into(), DataType::Float64)]), &Default::default()).is_err());
    // Once it goes, rows have null.
    let names = ConstraintNames { defaults: vec!["n".into()], ..ConstraintNames::default() };
    small.alter(&Alter::DropConstraints(names.clone()), &Default::default()).unwrap();
    small.insert(ints(&[("k", vec![9])]), &Default::default()).unwrap();
    let rows = small.get_many(&ints(&[("k", vec![9])]), &Default::default()).unwrap().rows;
    assert_eq!(rows["n"].null_count(), 1);
    assert!(small.alter(&Alter::DropConstraints(names), &Default::default()).is_err());
}

/// What a random run knows of a table: the numbers that its sequence, and those of which it is a copy, have given.
type Given = BTreeMap<String, BTreeSet<i64>>;

/// Takes note of what was given.
fn note(given: &mut Given, path: &str, ids: Vec<i64>) {
    let known = given.get_mut(path).unwrap();
    for id in ids {
        assert!(known.insert(id), "{path}: {id} was given before");
    }
}

/// The ids of the rows whose `v` is `mark`.
fn marked(table: &drumlin::Table, mark: i64) -> Vec<i64> {
    let batches = table.collect(&Default::default()).unwrap();
    let of = |batch: &RecordBatch| {
        let (ids, marks) = (batch["id"].as_primitive::<Int64Type>(), batch["v"].as_primitive::<Int64Type>());
        (0..batch.num_rows())
            .filter(|at| marks.is_valid(*at) && marks.value(*at) == mark)
            .map(|at| ids.value(at))
            .collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

fn merge() -> Merge {
    Merge { on: vec!["v".into()], not_matched: vec![(None, WhenNotMatched::InsertAll)], ..Merge::default() }
}

/// One random operation on the sequences of the tables.
fn step(rng: &mut fastrand::Rng, store: &Store, given: &mut Given, mark: i64) -> drumlin::Result<()> {
    let paths: Vec<String> = given.keys().cloned().collect();
    let path = paths[rng.usize(..paths.len())].clone();
    let (table, rows) = (store.table(&path), [1, 2, 70, 200][rng.usize(..4)]);
    let new = ints(&[("v", vec![mark; rows])]);
    match rng.u8(..16) {
        0..4 => {
            insert(&table, rows).map(|ids| note(given, &path, ids))?;
        }
        4 => {
            table.insert(new, &WriteOptions { metadata: Some("1".into()), ..WriteOptions::default() })?;
            note(given, &path, marked(&table, mark));
        }
        5 => {
            let evolve = WriteOptions { schema: SchemaMode::Evolve, ..WriteOptions::default() };
            table.append(new, &evolve)?;
            note(given, &path, marked(&table, mark));
        }
        6 => {
            table.merge(ints(&[("v", vec![mark])]), &merge(), &UpdateOptions::default())?;
            note(given, &path, marked(&table, mark));
        }
        7 => {
            // What a transaction took that is not committed is lost.
            let transaction = store.transaction()?;
            let ids = insert(&transaction.table(&path), rows)?;
            match rng.bool() {
                true => drop(transaction.commit()?),
                false => transaction.abort(),
            }
            note(given, &path, ids);
        }
        8 => {
            let new = format!("t/{mark}");
            let ids = store.transact(|tx| {
                let table = numbered_rows(tx, &new);
                let mut ids = insert(&table, rows)?;
                ids.extend(insert(&table, 2)?);
                Ok::<_, drumlin::Error>(ids)
            })?;
            assert_eq!(ids, (1..=rows as i64 + 2).collect::<Vec<_>>());
            given.insert(new, ids.into_iter().collect());
        }
        9 => {
            let copy = format!("t/{mark}");
            let in_transaction = rng.bool();
            let known = given[&path].clone();
            given.insert(copy.clone(), known);
            match in_transaction {
                false => drop(store.copy(&path, &copy, &AsOf::Newest, Existing::Refuse)?),
                true => {
                    let ids = store.transact(|tx| {
                        tx.copy(&path, &copy, &AsOf::Newest, Existing::Refuse)?;
                        insert(&tx.table(&copy), rows)
                    });
                    // Rows in memory have to become row groups first.
                    match ids {
                        Ok(ids) => note(given, &copy, ids),
                        Err(e) => return Err(e),
                    }
                }
            }
        }
        10 => {
            let versions = table.versions()?;
            let version = versions[rng.usize(..versions.len())].version;
            store.restore(&path, &AsOf::Version(version))?;
        }
        11 => {
            let (from, to) = if table.schema(&AsOf::Newest)?.index_of("w").is_ok() { ("w", "x") } else { ("x", "w") };
            if table.schema(&AsOf::Newest)?.index_of(from).is_ok() {
                table.alter(&Alter::Rename(vec![(from.into(), to.into())]), &Default::default())?;
            }
            // The default goes and comes again.
            let names = ConstraintNames { defaults: vec!["id".into()], ..ConstraintNames::default() };
            if table.constraints(&AsOf::Newest)?.generators.iter().any(|(name, _)| name == "id") {
                table.alter(&Alter::DropConstraints(names), &Default::default())?;
            }
            generate(&table, &[("id", Generator::sequence("id", 1))])?;
        }
        12 => drop(table.delete(&format!("id % 2 = {}", mark % 2), &Default::default())?),
        13 => {
            store.drop(path.as_str())?;
            store.undrop(&path, None)?;
        }
        14 => drop(table.write(ints(&[("id", vec![0]), ("v", vec![0])]), &Default::default())?),
        _ => drop(store.checkpoint(&Default::default())?),
    }
    // An older version may have no default.
    if !store.table(&path).constraints(&AsOf::Newest)?.generators.iter().any(|(name, _)| name == "id") {
        generate(&store.table(&path), &[("id", Generator::sequence("id", 1))])?;
    }
    Ok(())
}

#[test]
fn sequences_never_go_back() {
    seeds::each(0..24, 8, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let open = if seed % 3 == 2 { open_shared } else { opener(seed) };
        let mut disk = SimDisk::new();
        let mut store = open(&disk, &clock, 2).unwrap();
        numbered_rows(&store, "t/0");
        let mut given = Given::from([("t/0".to_owned(), BTreeSet::from([0]))]);
        for mark in 1..40 {
            match rng.u8(..8) {
                // The process ends, or the machine.
                0 => {
                    if rng.bool() {
                        store.close().unwrap();
                    } else {
                        disk = disk.crash(seed + mark as u64);
                    }
                    store = open(&disk, &clock, 2).unwrap();
                }
                _ => step(&mut rng, &store, &mut given, mark).unwrap(),
            }
        }
        let report = store.verify(&Default::default()).unwrap();
        assert_eq!(report.faults, []);
    });
}
