//! What indexes are made of, when they are asked, what becomes of them, and what is refused. Each rule that random operations would meet
//! seldom has a function here, which is shown to the bug that breaks it.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::catalog::{Existing, Retention};
use drumlin::storage::SimDisk;
use drumlin::store::{
    AsOf, CheckpointOptions, DatasetOptions, IndexOptions, Options, ReadOptions, TableOptions, VerifyOptions,
};
use drumlin::table::{Alter, PlanOptions, ROWS_MAX, ScanOptions};
use drumlin::{
    Aggregate, ErrorKind, Expression, Filter, Function, GroupBy, IndexCost, Merge, Store, Tables, WhenMatched,
    WhenNotMatched,
};

use crate::support::{Checked, ints, open, open_as, same};

fn store() -> (SimDisk, Store) {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    (disk, store)
}

fn told(e: drumlin::Error) -> String {
    e.to_string()
}

pub fn index(store: &Store, path: &str, name: &str, columns: &[&str]) -> Checked {
    let columns: Vec<Expression> = columns.iter().map(|text| Expression::parse(text).unwrap()).collect();
    store.table(path).create_index(name, &columns, &IndexOptions::default()).map_err(told)
}

/// The ids of the rows for which a filter is true.
pub fn find(store: &Store, path: &str, as_of: AsOf, filter: &str) -> Result<Vec<i64>, String> {
    let filter = Some(Filter::parse(filter).unwrap());
    let columns = Some(vec!["id".to_owned()]);
    let read = ReadOptions { as_of, filter, columns, ..ReadOptions::default() };
    let batches = store.table(path).collect(&read).map_err(told)?;
    Ok(batches.iter().flat_map(|batch| batch["id"].as_primitive::<Int64Type>().values().to_vec()).collect())
}

/// What indexes are asked for a filter.
pub fn cost(store: &Store, path: &str, filter: &str) -> IndexCost {
    let data = store.scan(path, &DatasetOptions::default()).unwrap();
    let filter = Some(Filter::parse(filter).unwrap());
    data.plan(&ScanOptions { filter, ..ScanOptions::default() }).unwrap().total.by_index
}

pub fn numbers(count: i64) -> RecordBatch {
    let noise = |by: i64| (0..count).map(|id| id * by % 1009).collect::<Vec<_>>();
    ints(&[("id", (0..count).collect()), ("n", noise(31)), ("m", noise(57)), ("a", noise(73)), ("b", noise(89))])
}

fn texts(values: &[&str]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..values.len() as i64));
    RecordBatch::try_from_iter([("id", ids), ("s", Arc::new(StringArray::from(values.to_vec())) as ArrayRef)]).unwrap()
}

pub fn ids_where(count: i64, holds: impl Fn(i64) -> bool) -> Vec<i64> {
    (0..count).filter(|id| holds(*id)).collect()
}

/// An update of few rows of the column of an index is a patch: the row group is covered no more.
pub fn patches_uncover() -> Checked {
    let (_disk, store) = store();
    store.write("t", numbers(20_000), &Default::default()).map_err(told)?;
    index(&store, "t", "n", &["n"])?;
    let set = [("n".to_owned(), Expression::parse("5000").unwrap())];
    store.table("t").update(&set, Some("id = 77"), &Default::default()).map_err(told)?;
    same(&find(&store, "t", AsOf::Newest, "n = 5000")?, &vec![77], "after the update")?;
    // Another column has a patch of its own: what decides stays.
    let set = [("a".to_owned(), Expression::parse("1").unwrap())];
    store.table("t").rebuild_index("n", &Default::default()).map_err(told)?;
    store.table("t").update(&set, Some("id = 78"), &Default::default()).map_err(told)?;
    same(&store.table("t").indexes().map_err(told)?[0].covered, &1, "row groups that are covered")?;
    same(&find(&store, "t", AsOf::Newest, "n = 5000")?, &vec![77], "after the other update")
}

/// Rows that were deleted before the index was made are found in older versions.
pub fn older_versions_are_covered() -> Checked {
    let (_disk, store) = store();
    store.write("t", numbers(5000), &Default::default()).map_err(told)?;
    store.table("t").delete("n = 31", &Default::default()).map_err(told)?;
    index(&store, "t", "n", &["n"])?;
    same(&find(&store, "t", AsOf::Newest, "n = 31")?, &Vec::new(), "the newest version")?;
    let then = ids_where(5000, |id| id * 31 % 1009 == 31);
    same(&find(&store, "t", AsOf::Version(Version(0)), "n = 31")?, &then, "the first version")
}

/// Where row groups are moved to other blocks, runs follow.
pub fn moved_row_groups_stay_covered() -> Checked {
    let (_disk, store) = store();
    store.write("t", numbers(5000), &Default::default()).map_err(told)?;
    index(&store, "t", "n", &["n"])?;
    store.copy("t", "copy", &AsOf::Newest, Existing::Refuse).map_err(told)?;
    for n in 0..40 {
        store.write(&format!("small/{n}"), numbers(10), &Default::default()).map_err(told)?;
    }
    let plan = PlanOptions { dead_share_min: 0.0, repack_dead_share_min: 0.0, ..PlanOptions::default() };
    let report = store.checkpoint(&CheckpointOptions { plan, ..Default::default() }).map_err(told)?;
    if report.groups_moved == 0 {
        return Err("nothing was moved".into());
    }
    same(&report.index_runs, &0, "runs that were made again")?;
    for path in ["t", "copy"] {
        same(&store.table(path).indexes().map_err(told)?[0].covered, &1, path)?;
        same(&cost(&store, path, "n = 31").row_groups, &1, path)?;
    }
    Ok(())
}

/// Columns that swap their names swap no indexes, and a new column under an old name has none: also after all rows were replaced.
pub fn columns_go_by_their_ids() -> Checked {
    let (_disk, store) = store();
    store.write("t", numbers(3000), &Default::default()).map_err(told)?;
    index(&store, "t", "n", &["n"])?;
    let swap = Alter::Rename(vec![("n".into(), "m".into()), ("m".into(), "n".into())]);
    store.table("t").alter(&swap, &Default::default()).map_err(told)?;
    same(&store.table("t").indexes().map_err(told)?[0].columns, &vec!["m".to_owned()], "the index")?;
    let (of_n, of_m) = (ids_where(3000, |id| id * 57 % 1009 == 31), ids_where(3000, |id| id * 31 % 1009 == 31));
    same(&find(&store, "t", AsOf::Newest, "n = 31")?, &of_n, "n")?;
    same(&find(&store, "t", AsOf::Newest, "m = 31")?, &of_m, "m")?;
    same(&find(&store, "t", AsOf::Version(Version(0)), "n = 31")?, &of_m, "n, before")?;
    store.write("t", numbers(3000), &Default::default()).map_err(told)?;
    let indexed = || Ok::<_, String>(store.table("t").indexes().map_err(told)?[0].columns.clone());
    same(&indexed()?, &vec!["m".to_owned()], "the index of replaced rows")?;
    same(&find(&store, "t", AsOf::Newest, "m = 31")?, &of_n, "m of replaced rows")?;
    same(&cost(&store, "t", "m = 31").names.len(), &1, "the indexes asked")?;
    let rename = Alter::Rename(vec![("m".into(), "z".into())]);
    store.table("t").alter(&rename, &Default::default()).map_err(told)?;
    store.write("t", numbers(3000), &Default::default()).map_err(told)?;
    same(&cost(&store, "t", "n = 31").names.len(), &0, "the indexes asked for a column that never had one")?;
    same(&cost(&store, "t", "m = 31").names.len(), &0, "the indexes asked for a new column")?;
    same(&find(&store, "t", AsOf::Version(Version(0)), "n = 31")?, &of_m, "n, in the end")
}

/// A value that cannot be computed leaves its row group to the scan.
pub fn what_cannot_be_computed_is_scanned() -> Checked {
    let (_disk, store) = store();
    let large: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, i64::MAX]));
    let rows =
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![0, 1, 2])) as ArrayRef), ("n", large)]);
    store.write("t", rows.unwrap(), &Default::default()).map_err(told)?;
    index(&store, "t", "twice", &["n * 2"])?;
    same(&find(&store, "t", AsOf::Newest, "n * 2 = 18446744073709551614")?, &vec![2], "a large number")?;
    same(&find(&store, "t", AsOf::Newest, "n * 2 = 4")?, &vec![1], "a small number")
}

/// All alternatives count.
pub fn alternatives_are_all_asked() -> Checked {
    let (_disk, store) = store();
    store.write("t", numbers(3000), &Default::default()).map_err(told)?;
    index(&store, "t", "n", &["n"])?;
    index(&store, "t", "m", &["m"])?;
    let wanted = ids_where(3000, |id| id * 31 % 1009 == 5 || id * 57 % 1009 == 6);
    same(&find(&store, "t", AsOf::Newest, "n = 5 or m = 6")?, &wanted, "either")?;
    let cost = cost(&store, "t", "n = 5 or m = 6");
    same(&cost.names.into_iter().collect::<Vec<_>>(), &vec!["m".to_owned(), "n".to_owned()], "the indexes asked")?;
    // One alternative without an index: a scan.
    let wanted = ids_where(3000, |id| id * 31 % 1009 == 5 || id * 73 % 1009 == 6);
    same(&find(&store, "t", AsOf::Newest, "n = 5 or a = 6")?, &wanted, "one of them not indexed")
}

/// Runs have an entry for each row, and a verification says so.
pub fn runs_have_all_entries() -> Checked {
    let (_disk, store) = store();
    store.write("t", numbers(3000), &Default::default()).map_err(told)?;
    let condition = Some(Filter::parse("a < 500").unwrap());
    let options = IndexOptions { condition, ..IndexOptions::default() };
    store.table("t").create_index("some", &[Expression::parse("n").unwrap()], &options).map_err(told)?;
    let verified = store.verify(&VerifyOptions { deep: true, ..VerifyOptions::default() }).map_err(told)?;
    match verified.faults.first() {
        None => index(&store, "t", "all", &["n"]),
        Some(fault) => Err(fault.error.clone()),
    }
}

/// Values of rows that were deleted, vacuumed or purged are in no object.
pub fn values_leave_indexes() -> Checked {
    let secret = "jane.roe@secret.example";
    for deleted_first in [false, true] {
        let disk = SimDisk::in_memory();
        let store = open(&disk).map_err(told)?;
        let rows: Vec<String> = (0..1000).map(|id| if id == 5 { secret.into() } else { format!("user{id}") }).collect();
        store.write("t", texts(&rows.iter().map(String::as_str).collect::<Vec<_>>()), &Default::default()).unwrap();
        // Of two row groups, one of which stays.
        let more: Vec<String> = (0..ROWS_MAX).map(|id| format!("more{}", id % 100)).collect();
        let more = texts(&more.iter().map(String::as_str).collect::<Vec<_>>());
        store.append("t", more, &Default::default()).map_err(told)?;
        index(&store, "t", "s", &["s"])?;
        if deleted_first {
            store.set_retention("t", Some(Retention::KeepLast(1))).map_err(told)?;
            store.table("t").delete("id = 5", &Default::default()).map_err(told)?;
            // The row leaves its row group; the run is covered less.
            let plan = PlanOptions { lone_dead_share_min: 0.0, ..PlanOptions::default() };
            store.checkpoint(&CheckpointOptions { plan, ..Default::default() }).map_err(told)?;
        }
        store
            .purge("t", &Filter::parse("id = 5").unwrap())
            .and_then(|purge| purge.execute(&Default::default()))
            .map_err(told)?;
        // Bytes may be compressed: no run may have entries of a row group that is gone.
        let info = store.table("t").indexes().map_err(told)?.remove(0);
        let whole = if info.covered == info.row_groups { 999 + u64::from(ROWS_MAX) } else { 0 };
        same(&info.entries, &whole, "entries after the purge")?;
        let has = |content: &[u8]| content.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
        if let Some((name, _)) = disk.files().into_iter().find(|(_, content)| has(content)) {
            return Err(format!("a purged value is still in {name} (deleted first: {deleted_first})"));
        }
        same(&find(&store, "t", AsOf::Newest, "s = 'user6'")?, &vec![6], "another row")?;
        same(&find(&store, "t", AsOf::Newest, "s = 'more7' and id < 8")?, &vec![7], "another row group")?;
    }
    Ok(())
}

/// An index with a condition is asked only by filters that have it.
pub fn conditions_are_part_of_filters() -> Checked {
    let (_disk, store) = store();
    store.write("t", numbers(3000), &Default::default()).map_err(told)?;
    let condition = Some(Filter::parse("a < 500 and b > 3").unwrap());
    let options = IndexOptions { condition, ..IndexOptions::default() };
    store.table("t").create_index("some", &[Expression::parse("n").unwrap()], &options).map_err(told)?;
    let of = |id: i64| (id * 31 % 1009, id * 73 % 1009, id * 89 % 1009);
    let wanted = ids_where(3000, |id| of(id).0 == 5);
    same(&find(&store, "t", AsOf::Newest, "n = 5")?, &wanted, "without the condition")?;
    same(&cost(&store, "t", "n = 5 and a < 500").row_groups, &0, "with a part of it")?;
    let wanted = ids_where(3000, |id| of(id).0 == 5 && of(id).1 < 500 && of(id).2 > 3);
    same(&find(&store, "t", AsOf::Newest, "b > 3 and n = 5 and a < 500")?, &wanted, "with it")?;
    same(&cost(&store, "t", "b > 3 and n = 5 and a < 500").row_groups, &1, "the index asked")
}

/// What is computed from a column of another type may be something else.
pub fn other_types_are_scanned() -> Checked {
    let (_disk, store) = store();
    let n: ArrayRef = Arc::new(Int32Array::from(vec![5, 6, 7]));
    let rows = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![0, 1, 2])) as ArrayRef), ("n", n)]);
    store.write("t", rows.unwrap(), &Default::default()).map_err(told)?;
    index(&store, "t", "text", &["cast(n as text)"])?;
    index(&store, "t", "n", &["n"])?;
    let widen = Alter::Widen(vec![("n".into(), DataType::Float64)]);
    store.table("t").alter(&widen, &Default::default()).map_err(told)?;
    let all = store.table("t").collect(&Default::default()).map_err(told)?;
    let filter = Filter::parse("cast(n as text) = '5.0'").unwrap();
    let batch = &all[0];
    let wanted = filter.bind(&batch.schema()).and_then(|bound| bound.evaluate(batch)).map_err(told)?.true_count();
    same(&wanted, &1, "rows with that text")?;
    same(&find(&store, "t", AsOf::Newest, "cast(n as text) = '5.0'")?, &vec![0], "as a text")?;
    same(&find(&store, "t", AsOf::Newest, "n = 6")?, &vec![1], "as a number")?;
    same(&find(&store, "t", AsOf::Version(Version(0)), "cast(n as text) = '5'")?, &vec![0], "in the older version")?;
    // Integers compare alike, whatever their width: also with what the narrow type does not hold.
    let rows = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![0, 1])) as ArrayRef),
        ("n", Arc::new(Int32Array::from(vec![i32::MIN, 9])) as ArrayRef),
    ]);
    store.write("w", rows.unwrap(), &Default::default()).map_err(told)?;
    index(&store, "w", "n", &["n"])?;
    store.table("w").alter(&Alter::Widen(vec![("n".into(), DataType::Int64)]), &Default::default()).map_err(told)?;
    same(&find(&store, "w", AsOf::Newest, "n > -5000000000")?, &vec![0, 1], "beyond the narrow type")?;
    same(&find(&store, "w", AsOf::Newest, "n = 4294967305")?, &Vec::new(), "9 and 2^32")?;
    same(&cost(&store, "w", "n = 9").row_groups, &1, "the run of the narrow type is asked")
}

/// Values that are too long for an index are found.
pub fn long_values_are_hits() -> Checked {
    let (_disk, store) = store();
    let (long, other) = ("l".repeat(300), "l".repeat(299) + "x");
    store.write("t", texts(&["a", &long, "b", &other, "a"]), &Default::default()).map_err(told)?;
    index(&store, "t", "s", &["s"])?;
    same(&find(&store, "t", AsOf::Newest, &format!("s = '{long}'"))?, &vec![1], "one long text")?;
    same(&find(&store, "t", AsOf::Newest, "s like 'l%'")?, &vec![1, 3], "texts by how they begin")?;
    same(&find(&store, "t", AsOf::Newest, "s = 'a'")?, &vec![0, 4], "a short text")
}

#[test]
fn what_a_definition_says_itself_stands_in_the_receipt() {
    let (_disk, store) = store();
    store.write("t", texts(&["a", "b"]), &Default::default()).unwrap();
    index(&store, "t", "plain", &["s", "lower(s)"]).unwrap();
    let purge = store.purge("t", &Filter::parse("s = 'a'").unwrap()).unwrap();
    assert!(purge.plan(&Default::default()).unwrap().not_covered.is_empty());
    let condition = Some(Filter::parse("s <> 'jane'").unwrap());
    let options = IndexOptions { condition, ..IndexOptions::default() };
    store.table("t").create_index("some", &[Expression::parse("s").unwrap()], &options).unwrap();
    let receipt = purge.execute(&Default::default()).unwrap();
    assert!(receipt.is_complete());
    let told = format!("{:?}", receipt.erased.not_covered);
    assert!(told.contains("'some'") && !told.contains("'plain'"), "{told}");
}

#[test]
fn a_checkpoint_of_dead_rows_leaves_no_value_in_a_run() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let secret = "jane.roe@secret.example";
    for part in 0..3 {
        let rows: Vec<String> =
            (0..500).map(|id| if (part, id) == (1, 5) { secret.into() } else { format!("user{id}") }).collect();
        let rows = texts(&rows.iter().map(String::as_str).collect::<Vec<_>>());
        match part {
            0 => store.write("t", rows, &Default::default()).unwrap(),
            _ => store.append("t", rows, &Default::default()).unwrap(),
        };
    }
    index(&store, "t", "s", &["s"]).unwrap();
    store.write("other", numbers(100), &Default::default()).unwrap();
    // Runs lie in one block with row groups.
    let plan = PlanOptions { dead_share_min: 0.0, repack_dead_share_min: 0.0, ..PlanOptions::default() };
    let all = CheckpointOptions { plan, index_rows_min: 1, ..Default::default() };
    store.checkpoint(&all).unwrap();
    store.set_retention("t", Some(Retention::KeepLast(1))).unwrap();
    store.table("t").delete(&format!("s = '{secret}'"), &Default::default()).unwrap();
    store.checkpoint(&all).unwrap();
    store.reclaim(&Default::default()).unwrap();
    let info = store.table("t").indexes().unwrap().remove(0);
    assert_eq!((info.entries, info.covered), (1499, info.row_groups));
    let has = |content: &[u8]| content.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
    let with: Vec<String> = disk.files().into_iter().filter(|(_, bytes)| has(bytes)).map(|(name, _)| name).collect();
    assert!(with.iter().all(|name| name.starts_with("log")), "{with:?}");
    let verified = store.verify(&VerifyOptions { deep: true, ..VerifyOptions::default() }).unwrap();
    assert!(verified.faults.is_empty(), "{verified:?}");
}

/// When eight of the largest runs that are sorted at once have come together, they are merged; what is gone is left out.
pub fn runs_are_merged() -> Checked {
    let disk = SimDisk::in_memory();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let options = Options { memory_bytes: 24 << 10, ..Options::default() };
    let store = open_as(&disk, &clock, 2, options).map_err(told)?;
    let rows = |first: i64| {
        let ids: Vec<i64> = (first..first + 25).collect();
        let s =
            ids.iter().map(|id| if id % 50 == 7 { format!("{id}{}", "x".repeat(300)) } else { (id % 37).to_string() });
        let s: ArrayRef = Arc::new(StringArray::from(s.collect::<Vec<_>>()));
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids)) as ArrayRef), ("s", s)]).unwrap()
    };
    // Row groups stay as they are.
    let plan = PlanOptions { budget: 0.0, ..PlanOptions::default() };
    let fill = CheckpointOptions { index_rows_min: 1, plan, ..Default::default() };
    let table = store.table("t");
    table.create(rows(0).schema(), TableOptions::default()).map_err(told)?;
    index(&store, "t", "s", &["s", "id % 7"])?;
    for part in 0..8 {
        for first in 0..4 {
            table.append(rows(part * 100 + first * 25), &Default::default()).map_err(told)?;
        }
        same(&table.indexes().map_err(told)?[0].runs, &(part as u64), "runs")?;
        store.checkpoint(&fill).map_err(told)?;
    }
    // A row group goes.
    store.set_retention("t", Some(Retention::KeepLast(1))).map_err(told)?;
    table.delete("id >= 200 and id < 225", &Default::default()).map_err(told)?;
    let info = |store: &Store| store.table("t").indexes().map(|mut all| all.remove(0)).map_err(told);
    same(&(info(&store)?.runs, info(&store)?.entries, info(&store)?.covered), &(8, 800, 31), "the runs")?;
    let report = store.checkpoint(&fill).map_err(told)?;
    same(
        &(report.index_runs, info(&store)?.runs, info(&store)?.entries, info(&store)?.covered),
        &(1, 1, 775, 31),
        "merged",
    )?;
    let wanted = ids_where(800, |id| id % 37 == 5 && id % 50 != 7 && !(200..225).contains(&id));
    same(&find(&store, "t", AsOf::Newest, "s = '5'")?, &wanted, "found")?;
    let long = format!("s = '407{}'", "x".repeat(300));
    same(&find(&store, "t", AsOf::Newest, &long)?, &vec![407], "found among long ones")?;
    let verified = store.verify(&VerifyOptions { deep: true, ..VerifyOptions::default() }).map_err(told)?;
    if verified.faults.is_empty() { Ok(()) } else { Err(format!("{:?}", verified.faults)) }
}

#[test]
fn rules_hold() {
    for rule in [
        patches_uncover,
        older_versions_are_covered,
        moved_row_groups_stay_covered,
        columns_go_by_their_ids,
        what_cannot_be_computed_is_scanned,
        alternatives_are_all_asked,
        runs_have_all_entries,
        values_leave_indexes,
        conditions_are_part_of_filters,
        other_types_are_scanned,
        long_values_are_hits,
        runs_are_merged,
    ] {
        rule().unwrap();
    }
}

#[test]
fn an_index_is_asked_where_it_takes_fewer_bytes() {
    let (_disk, store) = store();
    for at in 0..3 {
        let rows = ints(&[
            ("id", (at * 120_000..(at + 1) * 120_000).collect()),
            ("n", (0..120_000).map(|id| (id * 7919 + at) % 400_009).collect()),
        ]);
        store
            .append("t", rows.clone(), &Default::default())
            .or_else(|_| store.write("t", rows, &Default::default()))
            .unwrap();
    }
    index(&store, "t", "n", &["n"]).unwrap();
    let info = store.table("t").indexes().unwrap().remove(0);
    assert_eq!((info.entries, info.covered, info.row_groups, info.runs), (360_000, 3, 3, 1));
    // One value: a page, maybe two.
    let one = cost(&store, "t", "n = 12345");
    assert!(one.pages <= 2 && one.hits <= 3 && one.row_groups == 3, "{one:?}");
    // Statistics say as much as the index, or nearly all rows match: a scan takes less.
    assert_eq!(cost(&store, "t", "n >= 5").row_groups, 0);
    let both = cost(&store, "t", "n = 12345 and id < 120000");
    assert!(both.pages <= 2, "{both:?}");
    // Only row groups with hits are read.
    let data = store.scan("t", &DatasetOptions::default()).unwrap();
    let filter = Some(Filter::parse("n = 7919").unwrap());
    let plan = data.plan(&ScanOptions { filter, ..ScanOptions::default() }).unwrap().total;
    assert!(plan.row_groups < 3 && plan.by_index.row_groups == 3, "{plan:?}");
    // Of a range with many hits a few rows: a scan has them at once.
    let few = ReadOptions { limit: Some(5), filter: Some(Filter::parse("n < 100000").unwrap()), ..Default::default() };
    let pages = |store: &Store| {
        let all = drumlin::metrics(store).unwrap();
        let found = all.into_iter().find(|metric| metric.name == "drumlin_read_index_pages_total").unwrap();
        format!("{:?}", found.value)
    };
    // Groups of few rows are found by it, too.
    let before = pages(&store);
    let count = Aggregate { name: "count".into(), function: Function::Count, of: None };
    let asked = GroupBy { keys: vec!["n".into()], aggregates: vec![count], ..GroupBy::default() };
    let filter = Some(Filter::parse("n in (7919, 15838)").unwrap());
    let groups = data.aggregate(&asked, &ScanOptions { filter, ..ScanOptions::default() }).unwrap();
    assert_eq!(groups.num_rows(), 2);
    assert_ne!(pages(&store), before);
    let before = pages(&store);
    assert_eq!(store.table("t").collect(&few).unwrap().iter().map(|batch| batch.num_rows()).sum::<usize>(), 5);
    assert_eq!(pages(&store), before);
    let bytes = store.table("t").stat().unwrap().bytes;
    assert!(info.bytes < bytes, "{} of {bytes}", info.bytes);
}

#[test]
fn runs_come_with_checkpoints_and_become_few() {
    let (_disk, store) = store();
    store.write("t", ints(&[("id", vec![]), ("n", vec![])]), &Default::default()).unwrap();
    index(&store, "t", "n", &["n"]).unwrap();
    let mut most = 0;
    for at in 0..40 {
        let rows = ints(&[
            ("id", (at * 500..(at + 1) * 500).collect()),
            ("n", (0..500).map(|id| (id * 7919 + at) % 40_009).collect()),
        ]);
        store.append("t", rows, &Default::default()).unwrap();
        store.checkpoint(&CheckpointOptions { index_rows_min: 1, ..Default::default() }).unwrap();
        let info = store.table("t").indexes().unwrap().remove(0);
        assert_eq!(info.covered, info.row_groups);
        most = most.max(info.runs);
    }
    assert!(most <= 9, "{most} runs");
    // What came since is scanned.
    store.append("t", numbers(10).project(&[0, 1]).unwrap(), &Default::default()).unwrap();
    let info = store.table("t").indexes().unwrap().remove(0);
    assert_eq!(info.covered + 1, info.row_groups);
}

#[test]
fn many_rows_ask_for_a_checkpoint() {
    let (_disk, store) = store();
    store.write("t", numbers(10), &Default::default()).unwrap();
    index(&store, "t", "n", &["n"]).unwrap();
    for at in 0..6 {
        store.append("t", numbers(100_000 + at), &Default::default()).unwrap();
        drumlin::store::wait_for_checkpoint(&store);
    }
    let info = store.table("t").indexes().unwrap().remove(0);
    assert_eq!((info.entries, info.covered), (600_025, info.row_groups));
}

#[test]
fn merges_and_updates_look_for_rows_by_indexes() {
    for indexed in [false, true] {
        let (_disk, store) = store();
        for at in 0..4 {
            let rows = ints(&[
                ("id", (at * 50_000..(at + 1) * 50_000).collect()),
                ("n", (at * 50_000..(at + 1) * 50_000).map(|id| id * 7919 % 200_003).collect()),
            ]);
            match at {
                0 => store.write("t", rows, &Default::default()).unwrap(),
                _ => store.append("t", rows, &Default::default()).unwrap(),
            };
        }
        if indexed {
            index(&store, "t", "n", &["n"]).unwrap();
        }
        let wanted: Vec<i64> = vec![7919, 15838, 150_000 * 7919 % 200_003];
        let frame = ints(&[("n", [wanted.clone(), vec![-5]].concat()), ("id", vec![-1, -2, -3, -4])]);
        let merge = Merge {
            on: vec!["n".into()],
            matched: vec![(None, WhenMatched::UpdateAll)],
            not_matched: vec![(None, WhenNotMatched::InsertAll)],
            ..Merge::default()
        };
        let before = drumlin::metrics(&store).unwrap();
        let report = store.table("t").merge(frame, &merge, &Default::default()).unwrap();
        assert_eq!((report.updated, report.inserted), (3, 1));
        let pages = |all: &[drumlin::Metric]| {
            let found = all.iter().find(|metric| metric.name == "drumlin_read_index_pages_total").unwrap();
            format!("{:?}", found.value)
        };
        let after = drumlin::metrics(&store).unwrap();
        assert_eq!(pages(&before) != pages(&after), indexed);
        for (n, id) in wanted.iter().zip([-1, -2, -3]) {
            assert_eq!(find(&store, "t", AsOf::Newest, &format!("n = {n}")).unwrap(), vec![id]);
        }
        let deleted = store.table("t").delete("n = 23757", &Default::default()).unwrap();
        assert_eq!(deleted.rows, 1);
        // Nulls that are equal are no values to look for.
        let equal = Merge { nulls_equal: true, ..merge };
        let frame = ints(&[("n", vec![31676]), ("id", vec![-9])]);
        assert_eq!(store.table("t").merge(frame, &equal, &Default::default()).unwrap().updated, 1);
    }
}

#[test]
fn what_is_no_index_is_refused() {
    let (_disk, store) = store();
    let make = |name: &str, columns: &[&str]| index(&store, "t", name, columns).unwrap_err();
    assert!(make("n", &["n"]).contains("no table"), "{}", make("n", &["n"]));
    let zoned = arrow::array::TimestampSecondArray::from(vec![1]).with_timezone("Europe/Berlin");
    let list = arrow::array::ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1)])]);
    let rows = RecordBatch::try_from_iter([
        ("n", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
        ("t", Arc::new(zoned) as ArrayRef),
        ("l", Arc::new(list) as ArrayRef),
    ]);
    store.write("t", rows.unwrap(), &Default::default()).unwrap();
    let seq = store.seq().unwrap();
    for (name, columns, told) in [
        ("", vec!["n"], "1 to 255 bytes"),
        ("a\nb", vec!["n"], "control character"),
        ("i", vec![], "expected 1 to 16"),
        ("i", vec!["n", "n"], "named twice"),
        ("i", vec!["k"], "has no column k"),
        ("i", vec!["l"], "values filters compare"),
        ("i", vec!["hour(t)"], "rules of time zones change"),
    ] {
        let e = make(name, &columns);
        assert!(e.contains(told), "{e}");
    }
    assert_eq!(store.seq().unwrap(), seq, "a refused call changes nothing");
    index(&store, "t", "i", &["n"]).unwrap();
    assert!(make("i", &["t"]).contains("already exists"));
    let e = store.table("t").drop_index("j").unwrap_err();
    assert!(e.kind() == ErrorKind::NotFound && e.to_string().contains("it has 'i'"), "{e}");
    assert_eq!(store.table("t").rebuild_index("j", &Default::default()).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_transaction_makes_an_index_that_a_checkpoint_fills() {
    let (_disk, store) = store();
    let transaction = store.transaction().unwrap();
    transaction.write("t", numbers(300), &Default::default()).unwrap();
    let columns = [Expression::parse("n").unwrap()];
    transaction.table("t").create_index("n", &columns, &IndexOptions::default()).unwrap();
    assert_eq!(transaction.table("t").indexes().unwrap().len(), 1);
    transaction.commit().unwrap();
    assert_eq!(store.table("t").indexes().unwrap()[0].runs, 0);
    store.checkpoint(&CheckpointOptions { index_rows_min: 1, ..Default::default() }).unwrap();
    assert_eq!(cost(&store, "t", "n = 31").row_groups, 1);
}
