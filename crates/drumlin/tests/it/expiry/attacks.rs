//! Where rows that expire meet other features, and others come in between.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use drumlin::base::Timestamp;
use drumlin::store::{AsOf, WriteOptions};
use drumlin::{Alter, ErrorKind, Expression, Filter, Tables};

use super::ttl::{Desk, HOUR, SECOND, START, expire, ids, rows};

#[test]
fn a_frame_with_more_columns_meets_rows_in_memory() {
    let desk = Desk::new();
    let table = desk.table(true).unwrap();
    table.upsert(rows(&[(1, 1, Some(5))]), &Default::default()).unwrap();
    // The new column comes first in the frame, and goes to the end.
    let more = |id: i64| {
        let own = rows(&[(id, 2, Some(50))]);
        let text: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["more"]));
        let mut columns = vec![("a", text)];
        columns.extend(["id", "n", "until"].map(|name| (name, own[name].clone())));
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let evolve = WriteOptions { schema: drumlin::SchemaMode::Evolve, ..WriteOptions::default() };
    assert_eq!(table.insert(more(1), &evolve).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(table.append(more(1), &evolve).unwrap_err().kind(), ErrorKind::AlreadyExists);
    desk.at(5);
    table.insert(more(1), &evolve).unwrap();
    assert_eq!(ids(&table, AsOf::Newest).unwrap(), [1]);
    assert_eq!(table.get(1).unwrap().unwrap()["n"].as_primitive::<Int64Type>().value(0), 2);
}

#[test]
fn what_was_looked_up_of_the_past_may_expire() {
    let desk = Desk::new();
    let table = desk.table(true).unwrap();
    table.append(rows(&[(1, 1, Some(5))]), &Default::default()).unwrap();
    let version = table.versions().unwrap().last().unwrap().version;
    desk.at(10);
    for as_of in [AsOf::Version(version), AsOf::Time(Timestamp(START + SECOND))] {
        let transaction = desk.store.transaction().unwrap();
        let keys = rows(&[(1, 1, None)]);
        let options = drumlin::LookupOptions { as_of, ..Default::default() };
        assert!(transaction.table("t").get_many(&keys, &options).unwrap().found.value(0));
        transaction.table("t").upsert(rows(&[(2, 2, None)]), &Default::default()).unwrap();
        transaction.commit().unwrap();
    }
}

#[test]
fn no_commit_revives_what_has_expired_before_it() {
    let set = |value: &str| [("until".to_owned(), Expression::parse(value).unwrap())];
    type Change<'a> = (&'a str, &'a dyn Fn(&drumlin::Table) -> drumlin::Result<()>);
    let noted = WriteOptions { metadata: Some("1".into()), ..WriteOptions::default() };
    let merge = drumlin::Merge {
        on: vec!["id".into()],
        matched: vec![(None, drumlin::WhenMatched::UpdateAll)],
        ..drumlin::Merge::default()
    };
    let changes: [Change<'_>; 6] = [
        ("update", &|table| table.update(&set("null"), None, &Default::default()).map(drop)),
        ("merge", &|table| table.merge(rows(&[(1, 9, None)]), &merge, &Default::default()).map(drop)),
        ("partial upsert", &|table| {
            table.upsert(rows(&[(1, 9, None)]).project(&[0, 2]).unwrap(), &Default::default()).map(drop)
        }),
        ("partial upsert of row groups", &|table| {
            table.upsert(rows(&[(1, 9, None)]).project(&[0, 2]).unwrap(), &noted).map(drop)
        }),
        ("drop", &|table| table.alter(&Alter::DropTtl, &Default::default()).map(drop)),
        ("another", &|table| expire(table, "until", HOUR)),
    ];
    for in_memory in [false, true] {
        for (what, change) in &changes {
            for (seconds, conflicts) in [(4, false), (5, true)] {
                let desk = Desk::new();
                let table = desk.table(true).unwrap();
                match in_memory {
                    true => table.upsert(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).map(drop),
                    false => table.append(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).map(drop),
                }
                .unwrap();
                let transaction = desk.store.transaction().unwrap();
                change(&transaction.table("t")).unwrap();
                desk.at(seconds);
                let done = transaction.commit().map(drop);
                let conflict = done.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict);
                assert_eq!(conflict, conflicts, "{what} at {seconds}, in memory: {in_memory}: {done:?}");
                desk.at(6);
                let seen = ids(&table, AsOf::Newest).unwrap();
                assert_eq!(seen.contains(&1), !conflicts, "{what} at {seconds}: {seen:?}");
            }
        }
    }
}

#[test]
fn a_clock_that_jumps_is_not_believed_for_ever() {
    // Also where the time comes near again to which it jumped.
    for (jump, later) in [(10_000 * HOUR, 1), (2 * HOUR, 5_400), (2 * HOUR, 1), (20 * SECOND, 1)] {
        for expires in [false, true] {
            let desk = Desk::new();
            let table = desk.table(false).unwrap();
            if !expires {
                table.alter(&Alter::DropTtl, &Default::default()).unwrap();
            }
            desk.clock.set(Timestamp(START + jump));
            drop(desk.store.transaction().unwrap());
            ids(&table, AsOf::Newest).unwrap();
            desk.at(0);
            ids(&table, AsOf::Newest).unwrap();
            desk.at(later);
            table.append(rows(&[(1, 1, Some(later + 5))]), &Default::default()).unwrap();
            let time = table.versions().unwrap().last().unwrap().time.0;
            assert!((0..10).contains(&(time - START - later * SECOND)), "a jump of {jump}: {time}");
            assert_eq!(ids(&table, AsOf::Newest).unwrap(), [1]);
            assert_eq!(desk.store.checkpoint(&Default::default()).unwrap().rows_expired, 0);
        }
    }
}

#[test]
fn checkpoints_find_all_tables_whose_rows_expire() {
    let desk = Desk::new();
    let table = desk.table(false).unwrap();
    table.append(rows(&[(1, 1, None)]), &Default::default()).unwrap();
    desk.store.checkpoint(&Default::default()).unwrap();
    let other = desk.store.table("other");
    other.write(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).unwrap();
    expire(&other, "until", 0).unwrap();
    // It writes a catalog snapshot, after which the other table is no longer open.
    desk.store.purge("t", &Filter::parse("id = 1").unwrap()).unwrap().execute(&Default::default()).unwrap();
    desk.at(2 * HOUR / SECOND);
    assert_eq!(desk.store.checkpoint(&Default::default()).unwrap().rows_expired, 1);
}

#[test]
fn a_copy_over_a_table_with_another_rule_shows_no_expired_row() {
    let desk = Desk::new();
    let table = desk.table(false).unwrap();
    table.append(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).unwrap();
    desk.store.write("other", rows(&[(7, 7, None)]), &Default::default()).unwrap();
    expire(&desk.store.table("other"), "until", 30 * 24 * HOUR).unwrap();
    desk.at(6);
    desk.store.copy("t", "other", &AsOf::Newest, drumlin::Existing::Replace).unwrap();
    assert_eq!(ids(&desk.store.table("other"), AsOf::Newest).unwrap(), [2]);
}

#[test]
fn versions_count_what_is_stored() {
    let desk = Desk::new();
    let table = desk.table(true).unwrap();
    desk.at(6);
    table.upsert(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).unwrap();
    desk.store.snapshot("s", "t").unwrap();
    let counted = || table.versions().unwrap().last().unwrap().rows;
    assert_eq!(counted(), 2);
    desk.store.checkpoint(&Default::default()).unwrap();
    assert_eq!(counted(), 2);
    assert_eq!(desk.store.tree().list("t").unwrap()[0].table.as_ref().unwrap().rows, 2);
    assert_eq!(table.stat().unwrap().rows, 1);
}

#[test]
fn descriptions_of_other_tables_are_as_before() {
    let desk = Desk::new();
    desk.table(true).unwrap();
    desk.store.write("plain", rows(&[(1, 1, None)]), &Default::default()).unwrap();
    let first = |pattern: &str| desk.store.scan(pattern, &Default::default()).unwrap().describe().unwrap()[0];
    assert_eq!((first("plain"), first("t"), first("*")), (1, 2, 2));
}

#[test]
fn rows_that_are_written_again_are_not_deleted_with_those_that_expired() {
    // Whatever comes between what a checkpoint finds and its commit: here, in an order that is fixed, by a transaction.
    let desk = Desk::new();
    let table = desk.table(true).unwrap();
    table.append(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).unwrap();
    table.upsert(rows(&[(3, 3, None)]), &Default::default()).unwrap();
    desk.at(6);
    let transaction = desk.store.transaction().unwrap();
    transaction.table("t").append(rows(&[(1, 9, None)]), &Default::default()).unwrap();
    table.upsert(rows(&[(1, 5, None)]), &Default::default()).unwrap();
    desk.store.checkpoint(&Default::default()).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(ids(&table, AsOf::Newest).unwrap(), [1, 2, 3]);
    assert_eq!(table.versions().unwrap().last().unwrap().rows, 3);
}
