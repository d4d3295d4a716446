//! Rows that expire: who sees them when, what their keys and values are free for, and when they leave. Functions are shown to the
//! bugs that break them.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Int64Array, RecordBatch, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};
use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::SimDisk;
use drumlin::store::{
    AsOf, CheckpointOptions, CopyToOptions, IndexOptions, ReadOptions, Split, SplitOptions, SplitReader, TableOptions,
    WriteOptions,
};
use drumlin::table::ScanOptions;
use drumlin::{Alter, Dataset, ErrorKind, Expression, Filter, Retention, Store, Tables, TimeToLive, VersionKind};

use crate::support::{Checked, open_shared, open_with, same};

pub const SECOND: i64 = 1_000_000;
pub const HOUR: i64 = 3_600 * SECOND;
pub const START: i64 = 1_700_000_000 * SECOND;

fn told(e: drumlin::Error) -> String {
    e.to_string()
}

pub struct Desk {
    pub store: Store,
    pub clock: Arc<ManualClock>,
    pub disk: SimDisk,
}

impl Desk {
    pub fn new() -> Self {
        let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(START))));
        Self { store: open_with(&disk, &clock, 2).unwrap(), clock, disk }
    }

    /// The time, in seconds after the start.
    pub fn at(&self, seconds: i64) {
        self.clock.set(Timestamp(START + seconds * SECOND));
    }

    /// A table with the key `id`, or none, whose rows expire.
    pub fn table(&self, keyed: bool) -> Result<drumlin::Table, String> {
        let table = self.store.table("t");
        let key = if keyed { vec!["id".to_owned()] } else { Vec::new() };
        table.create(rows(&[]).schema(), TableOptions { key, ..TableOptions::default() }).map_err(told)?;
        expire(&table, "until", 0).map_err(told)?;
        Ok(table)
    }
}

pub fn expire(table: &drumlin::Table, column: &str, after_micros: i64) -> drumlin::Result<()> {
    let ttl = TimeToLive { column: column.into(), after_micros };
    table.alter(&Alter::SetTtl(ttl), &Default::default()).map(drop)
}

/// Rows with ids, numbers, and when they expire, in seconds after the start.
pub fn rows(rows: &[(i64, i64, Option<i64>)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(id, ..)| *id)));
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(_, n, _)| *n)));
    let until = rows.iter().map(|(.., until)| until.map(|until| START + until * SECOND));
    let until: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter(until));
    RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("n", n, true), ("until", until, true)]).unwrap()
}

fn ids_of(batches: &[RecordBatch]) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch["id"].as_primitive::<Int64Type>().values().to_vec()).collect()
}

pub fn ids(table: &drumlin::Table, as_of: AsOf) -> Result<Vec<i64>, String> {
    Ok(ids_of(&table.collect(&ReadOptions { as_of, ..ReadOptions::default() }).map_err(told)?))
}

/// What has expired is not seen, in memory and in row groups.
pub fn expired_rows_are_not_seen() -> Checked {
    for checkpoint in [false, true] {
        let desk = Desk::new();
        let table = desk.table(true)?;
        table.upsert(rows(&[(1, 1, Some(5)), (2, 2, None), (3, 3, Some(9))]), &Default::default()).map_err(told)?;
        if checkpoint {
            desk.store.checkpoint(&Default::default()).map_err(told)?;
        }
        for (seconds, seen) in [(4, vec![1, 2, 3]), (5, vec![2, 3]), (9, vec![2])] {
            desk.at(seconds);
            same(&ids(&table, AsOf::Newest)?, &seen, &format!("at {seconds}"))?;
            same(&table.get(1).map_err(told)?.is_some(), &(seconds < 5), "a look-up")?;
        }
        // The same for ever.
        same(&ids(&table, AsOf::Time(Timestamp(START + 4 * SECOND)))?.len(), &3, "as of a time")?;
    }
    Ok(())
}

/// A row that was looked up must not have expired when the commit is made that depends on it.
pub fn what_was_looked_up_is_still_there() -> Checked {
    let add = |tables: &drumlin::Transaction, id: i64| {
        let by = rows(&[(id, 10, None)]).project(&[0, 1]).unwrap();
        tables.table("t").increment(&by, &Default::default()).map(drop).map_err(told)
    };
    for (id, conflicts) in [(1, true), (2, false)] {
        let desk = Desk::new();
        let table = desk.table(true)?;
        table.upsert(rows(&[(1, 1, Some(5)), (2, 2, Some(50))]), &Default::default()).map_err(told)?;
        let transaction = desk.store.transaction().map_err(told)?;
        add(&transaction, id)?;
        desk.at(6);
        let done = transaction.commit().map(drop);
        same(&done.is_err_and(|e| e.kind() == ErrorKind::Conflict), &conflicts, &format!("a change of row {id}"))?;
    }
    // It is done again, without the row.
    let desk = Desk::new();
    let table = desk.table(true)?;
    let mut attempts = 0;
    table.upsert(rows(&[(3, 1, Some(20))]), &Default::default()).map_err(told)?;
    let clock = desk.clock.clone();
    desk.store
        .transact(|tx| {
            attempts += 1;
            let there = tx.table("t").get(3)?.is_some();
            clock.set(Timestamp(START + 30 * SECOND));
            tx.table("t").upsert(rows(&[(4, i64::from(there), None)]), &Default::default()).map(drop)
        })
        .map_err(told)?;
    let row = table.get(4).map_err(told)?.ok_or("it was not written")?;
    same(&(attempts, row["n"].as_primitive::<Int64Type>().value(0)), &(2, 0), "attempts, and what the last one saw")
}

/// What has expired is not counted.
pub fn expired_rows_are_not_counted() -> Checked {
    let desk = Desk::new();
    let table = desk.table(false)?;
    table.append(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).map_err(told)?;
    desk.at(5);
    let dataset = desk.store.scan("t", &Default::default()).map_err(told)?;
    same(&dataset.count_rows(&Default::default()).map_err(told)?, &1, "rows counted")?;
    same(&table.stat().map_err(told)?.rows, &1, "rows of the table")
}

/// A clock that is years ahead hides rows, and destroys none.
pub fn clocks_that_are_ahead_destroy_nothing() -> Checked {
    let desk = Desk::new();
    desk.table(false)?.append(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).map_err(told)?;
    drop(desk.store);
    let ahead = Arc::new(ManualClock::new(Timestamp(START + 10_000 * HOUR)));
    let store = open_with(&desk.disk, &ahead, 2).map_err(told)?;
    same(&ids(&store.table("t"), AsOf::Newest)?, &vec![2], "by the clock that is ahead")?;
    same(&store.checkpoint(&Default::default()).map_err(told)?.rows_expired, &0, "rows deleted")
}

/// Whatever writes rows with keys of others that have expired takes these away.
pub fn keys_of_expired_rows_are_free() -> Checked {
    let desk = Desk::new();
    let table = desk.table(true)?;
    let many = |until: Option<i64>| rows(&(0..500).map(|id| (id, id, until)).collect::<Vec<_>>());
    let noted = WriteOptions { metadata: Some("1".into()), ..WriteOptions::default() };
    table.upsert(many(Some(5)), &noted).map_err(told)?;
    desk.at(6);
    for (at, write) in [0, 1, 2].into_iter().zip(["insert", "upsert", "append"]) {
        let until = Some(10 * at + 16);
        match write {
            "insert" => table.insert(many(until), &noted).map(drop),
            "upsert" => table.upsert(many(until), &noted).map(drop),
            _ => table.append(many(until), &Default::default()).map(drop),
        }
        .map_err(told)?;
        same(&ids(&table, AsOf::Newest)?.len(), &500, &format!("rows after {write}"))?;
        desk.store.checkpoint(&Default::default()).map_err(told)?;
        same(&table.get(7).map_err(told)?.is_some(), &true, &format!("a look-up after {write}"))?;
        let seen = table.stat().map_err(told)?;
        same(&seen.rows, &500, &format!("rows counted after {write}"))?;
        // What had expired is gone from the newest version.
        let newest = table.versions().map_err(told)?.last().map(|version| version.rows);
        same(&newest, &Some(500), &format!("rows of the version after {write}"))?;
        desk.at(10 * at + 17);
    }
    Ok(())
}

/// The difference of versions tells of what has expired between them.
pub fn differences_tell_what_has_expired() -> Checked {
    for keyed in [false, true] {
        let desk = Desk::new();
        let table = desk.table(keyed)?;
        table.append(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).map_err(told)?;
        let version = table.versions().map_err(told)?.last().map(|version| version.version).unwrap_or_default();
        desk.at(6);
        table.append(rows(&[(3, 3, None)]), &Default::default()).map_err(told)?;
        let diff = table.diff(&AsOf::Version(version), &AsOf::Newest, &Default::default()).map_err(told)?;
        let mut changes = Vec::new();
        for batch in diff {
            let batch = batch.map_err(told)?;
            let (ids, what) = (batch["id"].as_primitive::<Int64Type>(), batch["_change"].as_string::<i32>());
            changes.extend((0..batch.num_rows()).map(|at| (ids.value(at), what.value(at).to_owned())));
        }
        same(&changes, &vec![(1, "delete".to_owned()), (3, "insert".to_owned())], "changes")?;
    }
    Ok(())
}

#[test]
fn rows_expire() {
    expired_rows_are_not_seen().unwrap();
    what_was_looked_up_is_still_there().unwrap();
    expired_rows_are_not_counted().unwrap();
    clocks_that_are_ahead_destroy_nothing().unwrap();
    keys_of_expired_rows_are_free().unwrap();
    differences_tell_what_has_expired().unwrap();
}

#[test]
fn checkpoints_delete_what_has_expired_for_an_hour() {
    for keyed in [false, true] {
        let desk = Desk::new();
        let table = desk.table(keyed).unwrap();
        desk.store.set_retention("t", Some(Retention::KeepLast(1))).unwrap();
        let many: Vec<_> = (0..3000).map(|id| (id, id, (id % 2 == 0).then_some(5))).collect();
        table.append(rows(&many), &Default::default()).unwrap();
        if keyed {
            table.upsert(rows(&[(1, 0, Some(6)), (9000, 0, Some(6))]), &Default::default()).unwrap();
        }
        let gone = if keyed { 1502 } else { 1500 };
        desk.at(100);
        let report = desk.store.checkpoint(&Default::default()).unwrap();
        assert_eq!(report.rows_expired, 0, "they may have expired by a clock that is ahead");
        desk.at(10 + HOUR / SECOND);
        let report = desk.store.checkpoint(&Default::default()).unwrap();
        assert_eq!(report.rows_expired, gone);
        assert_eq!(table.versions().unwrap().last().unwrap().kind, VersionKind::Expire);
        let all = CheckpointOptions {
            plan: drumlin::PlanOptions { dead_share_min: 0.0, ..Default::default() },
            ..Default::default()
        };
        desk.store.checkpoint(&all).unwrap();
        let stat = table.stat().unwrap();
        assert_eq!(
            (stat.rows, stat.stored_rows, report.rows_expired),
            (if keyed { 1499 } else { 1500 }, stat.rows, gone)
        );
        // Nothing is left to do.
        let seq = desk.store.stat().unwrap().seq;
        assert_eq!(desk.store.checkpoint(&all).unwrap().rows_expired, 0);
        assert_eq!(desk.store.stat().unwrap().seq, seq);
    }
}

#[test]
fn what_is_expired_by_another_rule_does_not_come_back() {
    for keyed in [false, true] {
        let desk = Desk::new();
        let table = desk.table(keyed).unwrap();
        table.append(rows(&[(1, 1, Some(5)), (2, 2, Some(50))]), &Default::default()).unwrap();
        desk.at(6);
        expire(&table, "until", HOUR).unwrap();
        assert_eq!(ids(&table, AsOf::Newest).unwrap(), [2]);
        desk.at(60);
        assert_eq!(ids(&table, AsOf::Newest).unwrap(), [2]);
        desk.at(60 + HOUR / SECOND);
        assert!(ids(&table, AsOf::Newest).unwrap().is_empty());
        table.alter(&Alter::DropTtl, &Default::default()).unwrap();
        assert!(ids(&table, AsOf::Newest).unwrap().is_empty());
        assert_eq!(table.ttl(&AsOf::Newest).unwrap(), None);
        // Their keys, and what constraints forbid, do not matter either.
        table.append(rows(&[(1, 7, Some(5))]), &Default::default()).unwrap();
        assert_eq!(ids(&table, AsOf::Newest).unwrap(), [1]);
    }
}

#[test]
fn the_column_may_be_renamed_and_widened_but_not_dropped() {
    let desk = Desk::new();
    let table = desk.store.table("t");
    let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(START / SECOND + 5), None]));
    let ids_: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    table.write(RecordBatch::try_from_iter([("id", ids_), ("at", times)]).unwrap(), &Default::default()).unwrap();
    let refused = expire(&table, "id", 0).unwrap_err();
    assert!(refused.message().contains("'id' of type int64") && refused.message().contains("timestamp"), "{refused}");
    assert_eq!(expire(&table, "at", -1).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(expire(&table, "att", 0).unwrap_err().message().contains("did you mean 'at'"));
    assert_eq!(table.alter(&Alter::DropTtl, &Default::default()).unwrap_err().kind(), ErrorKind::NotFound);
    expire(&table, "at", 0).unwrap();
    table.alter(&Alter::Rename(vec![("at".into(), "until".into())]), &Default::default()).unwrap();
    let wide = DataType::Timestamp(TimeUnit::Nanosecond, None);
    table.alter(&Alter::Widen(vec![("until".into(), wide)]), &Default::default()).unwrap();
    let ttl = TimeToLive { column: "until".into(), after_micros: 0 };
    assert_eq!(table.ttl(&AsOf::Newest).unwrap(), Some(ttl));
    let refused = table.alter(&Alter::Drop(vec!["until".into()]), &Default::default()).unwrap_err();
    assert!(refused.message().contains("when rows expire"), "{refused}");
    desk.at(5);
    assert_eq!(ids(&table, AsOf::Newest).unwrap(), [2]);
    // A frame that replaces all rows must have it, and keeps it.
    let lacking = rows(&[(5, 5, Some(9))]).project(&[0, 1]).unwrap();
    let refused = table.write(lacking, &Default::default()).unwrap_err();
    assert!(refused.message().contains("'until'"), "{refused}");
    table.write(rows(&[(5, 5, Some(9)), (6, 6, Some(11))]), &Default::default()).unwrap();
    desk.at(10);
    assert_eq!(ids(&table, AsOf::Newest).unwrap(), [6]);
}

#[test]
fn all_units_and_zones_expire_at_the_instant() {
    // One microsecond before, at, and after it; the nanosecond after an instant is not reached at it.
    let instant = START + 5 * SECOND;
    let columns: Vec<(ArrayRef, Vec<i64>)> = vec![
        (
            Arc::new(TimestampSecondArray::from(vec![instant / SECOND - 1, instant / SECOND, instant / SECOND + 1])),
            vec![2],
        ),
        (
            Arc::new(
                TimestampMillisecondArray::from(vec![instant / 1000 - 1, instant / 1000, instant / 1000 + 1])
                    .with_timezone("Europe/Paris"),
            ),
            vec![2],
        ),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![instant - 1, instant, instant + 1]).with_timezone("+05:30")),
            vec![2],
        ),
        (
            Arc::new(TimestampNanosecondArray::from(vec![instant * 1000 - 1, instant * 1000, instant * 1000 + 1])),
            vec![2],
        ),
        // Beyond what microseconds hold, in both directions.
        (Arc::new(TimestampSecondArray::from(vec![i64::MIN, i64::MAX, 0])), vec![1]),
    ];
    for (at, (column, seen)) in columns.into_iter().enumerate() {
        for keyed in [false, true] {
            let desk = Desk::new();
            let table = desk.store.table("t");
            let ids_: ArrayRef = Arc::new(Int64Array::from(vec![0, 1, 2]));
            let frame =
                RecordBatch::try_from_iter_with_nullable([("id", ids_, false), ("at", column.clone(), true)]).unwrap();
            let key = if keyed { vec!["id".to_owned()] } else { Vec::new() };
            table.create(frame.schema(), TableOptions { key, ..TableOptions::default() }).unwrap();
            expire(&table, "at", 0).unwrap();
            match keyed {
                true => table.upsert(frame, &Default::default()).map(drop).unwrap(),
                false => table.append(frame, &Default::default()).map(drop).unwrap(),
            }
            desk.clock.set(Timestamp(instant));
            assert_eq!(ids(&table, AsOf::Newest).unwrap(), seen, "column {at}, keyed: {keyed}");
            let count = desk.store.scan("t", &Default::default()).unwrap().count_rows(&Default::default()).unwrap();
            assert_eq!(count, seen.len() as u64);
        }
    }
}

#[test]
fn a_key_may_say_when_rows_expire() {
    [false, true].into_iter().for_each(key_expires);
}

fn key_expires(checkpoint: bool) {
    let desk = Desk::new();
    let table = desk.store.table("t");
    let key = vec!["until".to_owned(), "id".to_owned()];
    let fields = [
        Field::new("until", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("id", DataType::Int64, false),
        Field::new("n", DataType::Int64, true),
    ];
    table.create(Arc::new(Schema::new(fields.to_vec())), TableOptions { key, ..TableOptions::default() }).unwrap();
    expire(&table, "until", 10 * SECOND).unwrap();
    table.upsert(rows(&[(1, 1, Some(0)), (2, 2, Some(3))]), &Default::default()).unwrap();
    if checkpoint {
        desk.store.checkpoint(&Default::default()).unwrap();
    }
    for (seconds, seen) in [(9, vec![1, 2]), (10, vec![2]), (13, vec![])] {
        desk.at(seconds);
        assert_eq!(ids(&table, AsOf::Newest).unwrap(), seen, "at {seconds}");
        let found = table.get_many(&rows(&[(1, 1, Some(0)), (2, 2, Some(3))]), &Default::default()).unwrap();
        assert_eq!(found.found.true_count(), seen.len());
    }
}

#[test]
fn values_of_expired_rows_are_free_for_unique_indexes() {
    for keyed in [false, true] {
        for in_groups in [false, true] {
            let desk = Desk::new();
            let table = desk.table(keyed).unwrap();
            let put = |frame: RecordBatch| match keyed {
                true => table.upsert(frame, &Default::default()).map(drop),
                false => table.append(frame, &Default::default()).map(drop),
            };
            put(rows(&[(1, 7, Some(5)), (2, 8, None)])).unwrap();
            let unique = IndexOptions { unique: true, ..IndexOptions::default() };
            table.create_index("n", &[Expression::parse("n").unwrap()], &unique).unwrap();
            if in_groups {
                desk.store.checkpoint(&CheckpointOptions { index_rows_min: 1, ..Default::default() }).unwrap();
            }
            desk.at(4);
            assert_eq!(put(rows(&[(3, 7, None)])).unwrap_err().kind(), ErrorKind::AlreadyExists);
            desk.at(5);
            put(rows(&[(3, 7, None)])).unwrap();
            assert_eq!(put(rows(&[(4, 7, None)])).unwrap_err().kind(), ErrorKind::AlreadyExists);
            assert_eq!(ids(&table, AsOf::Newest).unwrap(), [2, 3]);
            // An index that is made of them does not compare them either.
            table.drop_index("n").unwrap();
            table.create_index("n", &[Expression::parse("n").unwrap()], &unique).unwrap();
        }
    }
}

#[test]
fn data_sets_and_splits_show_one_instant() {
    let desk = Desk::new();
    let table = desk.table(true).unwrap();
    table.upsert(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).unwrap();
    desk.store.write("other", rows(&[(3, 3, Some(1))]), &Default::default()).unwrap();
    // Of another type there: what expires in one table is judged by its own column.
    let text: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["never"]));
    let ids_: ArrayRef = Arc::new(Int64Array::from(vec![4]));
    desk.store
        .write("third", RecordBatch::try_from_iter([("id", ids_), ("until", text)]).unwrap(), &Default::default())
        .unwrap();
    let options = ScanOptions { columns: Some(vec!["id".into()]), ..ScanOptions::default() };
    let dataset = desk.store.scan("*", &Default::default()).unwrap();
    let described = dataset.describe().unwrap();
    for seconds in [4, 6, 100] {
        desk.at(seconds);
        for dataset in [dataset.clone(), Dataset::described(&desk.store, &described).unwrap()] {
            assert_eq!(ids_of(&dataset.collect(&options).unwrap()), [3, 1, 2, 4], "at {seconds}");
            assert_eq!(dataset.count_rows(&Default::default()).unwrap(), 4);
        }
    }
    let now = desk.store.scan("*", &Default::default()).unwrap();
    assert_eq!(ids_of(&now.collect(&options).unwrap()), [3, 2, 4]);
    assert_eq!(now.count_rows(&Default::default()).unwrap(), 3);
}

#[test]
fn splits_show_the_instant_of_their_data_set() {
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(START))));
    let desk = Desk { store: open_shared(&disk, &clock, 2).unwrap(), clock, disk };
    let table = desk.table(true).unwrap();
    table.upsert(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).unwrap();
    desk.store.checkpoint(&Default::default()).unwrap();
    table.upsert(rows(&[(3, 3, Some(5)), (4, 4, Some(3))]), &Default::default()).unwrap();
    desk.at(4);
    let dataset = desk.store.scan("t", &Default::default()).unwrap();
    let splits = dataset.splits(&Default::default(), &SplitOptions::default()).unwrap();
    desk.at(60);
    let mut found = Vec::new();
    for split in &splits.splits {
        assert_eq!(split.rows, None, "the number of rows is not known before they are read");
        let bytes = split.to_bytes().unwrap();
        assert_eq!(bytes[0], 2, "older builds must not read it");
        let again = Split::from_bytes(&bytes).unwrap();
        assert_eq!(again.to_bytes().unwrap(), bytes);
        let scan = SplitReader::of(&desk.store).scan(&again, &Default::default()).unwrap();
        found.extend(ids_of(&scan.collect::<Result<Vec<_>, _>>().unwrap()));
    }
    assert_eq!(found, [1, 2, 3]);
    drop(desk.disk);
}

#[test]
fn copies_in_other_stores_expire() {
    let (desk, other) = (Desk::new(), Desk::new());
    let table = desk.table(true).unwrap();
    table.upsert(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).unwrap();
    desk.store.copy_to(&other.store, "**", &CopyToOptions::default()).unwrap();
    for (seconds, seen) in [(4, vec![1, 2]), (5, vec![2])] {
        desk.at(seconds);
        other.at(seconds);
        assert_eq!(ids(&other.store.table("t"), AsOf::Newest).unwrap(), seen);
    }
}

#[test]
fn instants_do_not_go_back() {
    let desk = Desk::new();
    let table = desk.table(true).unwrap();
    table.upsert(rows(&[(1, 1, Some(5))]), &Default::default()).unwrap();
    desk.at(6);
    assert!(ids(&table, AsOf::Newest).unwrap().is_empty());
    // The key is taken again.
    desk.at(4);
    table.insert(rows(&[(1, 2, Some(50))]), &Default::default()).unwrap();
    assert_eq!(ids(&table, AsOf::Newest).unwrap(), [1]);
    let seen = table.get(1).unwrap().unwrap();
    assert_eq!(seen["n"].as_primitive::<Int64Type>().value(0), 2);
    assert!(desk.store.table("t").versions().unwrap().iter().all(|version| version.time.0 >= START));
}

#[test]
fn a_time_that_has_not_come_shows_what_is_seen_now() {
    let desk = Desk::new();
    let table = desk.table(false).unwrap();
    table.append(rows(&[(1, 1, Some(5)), (2, 2, None)]), &Default::default()).unwrap();
    assert_eq!(ids(&table, AsOf::Time(Timestamp(START + HOUR))).unwrap(), [1, 2]);
    desk.at(10);
    for (asked, seen) in [(1, vec![1, 2]), (4, vec![1, 2]), (5, vec![2]), (9, vec![2])] {
        assert_eq!(ids(&table, AsOf::Time(Timestamp(START + asked * SECOND))).unwrap(), seen, "as of {asked}");
    }
}

#[test]
fn what_expires_is_explained_and_pruned() {
    let desk = Desk::new();
    let table = desk.table(false).unwrap();
    for group in 0..4_i64 {
        let some: Vec<_> = (0..1000).map(|id| (group * 1000 + id, id, Some(10 * group + 5))).collect();
        table.append(rows(&some), &Default::default()).unwrap();
    }
    desk.at(20);
    let dataset = desk.store.scan("t", &Default::default()).unwrap();
    let plan = dataset.plan(&ScanOptions::default()).unwrap().total;
    assert_eq!((plan.row_groups, plan.pruned, plan.whole), (4, 2, 2));
    assert_eq!(ids_of(&dataset.collect(&ScanOptions::default()).unwrap()).len(), 2000);
    let filter = Some(Filter::parse("id < 2500").unwrap());
    assert_eq!(dataset.count_rows(&ScanOptions { filter, ..ScanOptions::default() }).unwrap(), 500);
}
