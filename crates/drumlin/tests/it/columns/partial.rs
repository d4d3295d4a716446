//! Upserts of rows that have some of the columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::SimDisk;
use drumlin::store::{Options, TableOptions, WriteOptions};
use drumlin::table::{Alter, Constraints, SchemaMode};
use drumlin::{ErrorKind, Filter, Store, Tables};

use crate::rows::keyed_model::PATH;
use crate::support::{Checked, env, open};

/// A keyed table with three columns beside the key, of which one takes no nulls and one has a default.
fn three_columns(store: &Store) -> drumlin::Table {
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
        Field::new("c", DataType::Int64, true),
    ]));
    let table = store.table(PATH);
    let options = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    table.create(schema, options).unwrap();
    let constraints = Constraints {
        not_null: vec!["a".into()],
        defaults: vec![("c".into(), Arc::new(Int64Array::from(vec![7])))],
        checks: vec![("ordered".into(), Filter::parse("a <= c * 100").unwrap())],
        ..Constraints::default()
    };
    table.alter(&Alter::AddConstraints(constraints), &Default::default()).unwrap();
    table
}

/// Rows of some columns, by name.
fn some_columns(columns: &[(&str, Vec<Option<i64>>)]) -> RecordBatch {
    let array = |name: &str, values: &[Option<i64>]| -> ArrayRef {
        match name {
            "b" => Arc::new(StringArray::from_iter(values.iter().map(|v| v.map(|v| format!("b{v}"))))),
            _ => Arc::new(Int64Array::from(values.to_vec())),
        }
    };
    RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, values)| (*name, array(name, values), true)))
        .unwrap()
}

fn note() -> WriteOptions {
    WriteOptions { metadata: Some("1".into()), ..WriteOptions::default() }
}

fn all_of(table: &drumlin::Table) -> Vec<String> {
    let text = |batch: &RecordBatch, row: usize| {
        let value = |column: &ArrayRef| arrow::util::display::array_value_to_string(column, row).unwrap();
        batch.columns().iter().map(value).collect::<Vec<_>>().join(" ")
    };
    let batches = table.collect(&Default::default()).unwrap();
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| text(batch, row)).collect::<Vec<_>>()).collect()
}

#[test]
fn rows_keep_what_they_have_in_columns_that_an_upsert_lacks() {
    for many in [false, true] {
        // Of many rows none fit in memory; or these are in row groups.
        for in_groups in [false, true] {
            let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
            let options = Options { row_write_bytes: if many { 0 } else { 1 << 20 }, ..Options::default() };
            let store =
                drumlin::store::open_on(Arc::new(SimDisk::in_memory()), env(&clock, 1, 2), "sim", options).unwrap();
            let table = three_columns(&store);
            let rows = [("id", vec![Some(1), Some(2)]), ("a", vec![Some(10), Some(20)]), ("b", vec![Some(1), Some(2)])];
            table.insert(some_columns(&rows), &Default::default()).unwrap();
            assert_eq!(all_of(&table), ["1 10 b1 7", "2 20 b2 7"], "an insert fills defaults");
            if in_groups {
                store.checkpoint(&Default::default()).unwrap();
            }
            // Absent keeps, null sets null, the last row of a key counts; columns in any order.
            let rows = [("c", vec![Some(1), None, Some(9)]), ("id", vec![Some(2), Some(1), Some(2)])];
            let report = table.upsert(some_columns(&rows), &Default::default()).unwrap();
            assert_eq!((report.rows, report.version.is_some()), (3, many));
            assert_eq!(all_of(&table), ["1 10 b1 ", "2 20 b2 9"]);
            // Rows with new keys have defaults.
            table
                .upsert(some_columns(&[("a", vec![Some(5), Some(6)]), ("id", vec![Some(2), Some(3)])]), &note())
                .unwrap();
            assert_eq!(all_of(&table), ["1 10 b1 ", "2 5 b2 9", "3 6  7"]);
            table.upsert(some_columns(&[("id", vec![Some(3), Some(1)])]), &Default::default()).unwrap();
            let before = (all_of(&table), store.seq().unwrap());
            // What is refused names the rows, and changes nothing.
            for (rows, words) in [
                (vec![("id", vec![Some(3), Some(4)]), ("b", vec![Some(0), Some(0)])], &["'a'", "no nulls"][..]),
                (vec![("id", vec![Some(3)]), ("a", vec![None])], &["'a'", "no nulls"]),
                (vec![("id", vec![Some(3)]), ("a", vec![Some(701)])], &["'ordered'", "a is 701", "c is 7"]),
                (vec![("id", vec![Some(3)]), ("z", vec![Some(1)])], &["'z'", "the table lacks", "'id', 'a', 'b', 'c'"]),
                (vec![("a", vec![Some(3)]), ("c", vec![Some(1)])], &["lacks the key column 'id'"]),
                (vec![("id", vec![None]), ("a", vec![Some(1)])], &["'id'", "null"]),
            ] {
                for options in [WriteOptions::default(), note()] {
                    let error = table.upsert(some_columns(&rows), &options).unwrap_err();
                    assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
                }
            }
            assert_eq!((all_of(&table), store.seq().unwrap()), before);
            // New columns come, the others are kept.
            let evolve = WriteOptions { schema: SchemaMode::Evolve, ..WriteOptions::default() };
            table
                .upsert(
                    some_columns(&[
                        ("id", vec![Some(2), Some(9)]),
                        ("a", vec![Some(1), Some(1)]),
                        ("z", vec![Some(4), Some(4)]),
                    ]),
                    &evolve,
                )
                .unwrap();
            assert_eq!(all_of(&table), ["1 10 b1  ", "2 1 b2 9 4", "3 6  7 ", "9 1  7 4"]);
            // In a transaction, over its own rows.
            store
                .transact(|tx| {
                    let table = tx.table(PATH);
                    table.upsert(some_columns(&[("id", vec![Some(9)]), ("b", vec![Some(3)])]), &Default::default())?;
                    table.upsert(some_columns(&[("id", vec![Some(9)]), ("a", vec![Some(3)])]), &Default::default())?;
                    Ok::<_, drumlin::Error>(())
                })
                .unwrap();
            assert_eq!(all_of(&table)[3], "9 3 b3 7 4");
            assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
        }
    }
}

#[test]
fn batches_with_different_columns_are_one_commit() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let table = three_columns(&store);
    let first = [("id", vec![Some(1), Some(2)]), ("a", vec![Some(1), Some(2)])];
    let second = [("id", vec![Some(3)]), ("a", vec![Some(3)]), ("b", vec![Some(3)]), ("c", vec![None])];
    let report = table.insert_batches(&[some_columns(&first), some_columns(&second)], &Default::default()).unwrap();
    assert_eq!((report.rows, report.version), (3, None));
    assert_eq!(all_of(&table), ["1 1  7", "2 2  7", "3 3 b3 "]);
    let b = |id, b| some_columns(&[("id", vec![Some(id)]), ("b", vec![Some(b)])]);
    let c = |id, c| some_columns(&[("c", vec![Some(c)]), ("id", vec![Some(id)])]);
    // The last value of each column counts.
    let seq = store.seq().unwrap();
    let report = table.upsert_batches(&[b(1, 1), c(1, 5), b(2, 2), b(1, 9)], &Default::default()).unwrap();
    assert_eq!((report.rows, report.seq), (4, Some(store.seq().unwrap())));
    assert_eq!(store.seq().unwrap().0, seq.0 + 1);
    assert_eq!(all_of(&table), ["1 1 b9 5", "2 2 b2 7", "3 3 b3 "]);
    assert!(table.upsert_batches(&[b(1, 3), c(2, 3)], &note()).unwrap().version.is_some());
    // The first needs no row group, the second does.
    let evolve = WriteOptions { schema: SchemaMode::Evolve, ..WriteOptions::default() };
    let new = some_columns(&[("id", vec![Some(2)]), ("d", vec![Some(8)])]);
    table.upsert_batches(&[b(1, 4), new, c(3, 6)], &evolve).unwrap();
    let after = ["1 1 b4 5 ", "2 2 b2 3 8", "3 3 b3 6 "];
    assert_eq!(all_of(&table), after);
    // Whole rows as row groups over rows in memory, and then others with some of the columns.
    table.upsert_batches(&[b(3, 1), c(3, 2)], &Default::default()).unwrap();
    let whole =
        [("id", vec![Some(3)]), ("a", vec![Some(4)]), ("b", vec![Some(4)]), ("c", vec![Some(4)]), ("d", vec![None])];
    table.upsert_batches(&[some_columns(&whole), c(3, 6), b(3, 3)], &note()).unwrap();
    table.upsert_batches(&[some_columns(&[("id", vec![Some(3)]), ("a", vec![Some(3)])]), c(3, 6)], &note()).unwrap();
    assert_eq!(all_of(&table), after);
    // A batch that is refused takes back those before it, in a transaction too.
    let bad = some_columns(&[("id", vec![Some(1)]), ("a", vec![None])]);
    let seq = store.seq().unwrap();
    assert!(table.upsert_batches(&[b(1, 5), bad.clone()], &Default::default()).is_err());
    assert!(table.insert_batches(&[b(7, 5)], &Default::default()).is_err());
    store
        .transact(|tx| {
            let table = tx.table(PATH);
            assert!(table.upsert_batches(&[b(1, 5), bad.clone()], &Default::default()).is_err());
            assert_eq!(all_of(&table), after);
            table.upsert_batches(&[b(1, 6), c(1, 1)], &Default::default()).map(drop)
        })
        .unwrap();
    assert_eq!((all_of(&table)[0].as_str(), store.seq().unwrap().0), ("1 1 b6 1 ", seq.0 + 1));
}

/// Two writers set different columns of one row, each having read it before the other wrote: neither is lost.
pub fn completed_rows_are_read_again() -> Checked {
    let store = open(&SimDisk::in_memory()).unwrap();
    let table = three_columns(&store);
    let rows = [("id", vec![Some(1)]), ("a", vec![Some(1)]), ("b", vec![Some(1)])];
    table.insert(some_columns(&rows), &Default::default()).unwrap();
    let transaction = store.transaction().unwrap();
    let set = |column, value| some_columns(&[("id", vec![Some(1)]), (column, vec![Some(value)])]);
    transaction.table(PATH).upsert(set("a", 2), &Default::default()).unwrap();
    table.upsert(set("b", 2), &Default::default()).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    store.transact(|tx| tx.table(PATH).upsert(set("a", 2), &Default::default()).map(drop)).unwrap();
    assert_eq!(all_of(&table), ["1 2 b2 7"]);
    // Others in between that change other rows are no conflict.
    let transaction = store.transaction().unwrap();
    transaction.table(PATH).upsert(set("a", 3), &Default::default()).unwrap();
    table.insert(some_columns(&[("id", vec![Some(2)]), ("a", vec![Some(2)])]), &Default::default()).unwrap();
    transaction.commit().unwrap();
    assert_eq!(all_of(&table), ["1 3 b2 7", "2 2  7"]);
    Ok(())
}

#[test]
fn no_write_of_other_columns_is_lost() {
    completed_rows_are_read_again().unwrap();
}
