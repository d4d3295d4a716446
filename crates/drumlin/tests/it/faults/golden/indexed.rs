//! What golden stores hold that have the feature of indexes: see golden.rs.

use drumlin::store::{AsOf, DatasetOptions, IndexOptions, ReadOptions};
use drumlin::table::ScanOptions;
use drumlin::{Expression, Filter, Store, Tables};

use crate::support::ints;

const ROWS: i64 = 5000;

fn table(store: &impl Tables, path: &str) -> drumlin::Result<()> {
    let n = (0..ROWS).map(|id| id * 31 % 997).collect();
    store.table(path).write(ints(&[("id", (0..ROWS).collect()), ("n", n)]), &Default::default())?;
    Ok(())
}

fn index(store: &impl Tables, path: &str) -> drumlin::Result<()> {
    let condition = Some(Filter::parse("id >= 1000")?);
    let some = IndexOptions { condition, ..IndexOptions::default() };
    store.table(path).create_index("n", &[Expression::parse("n")?], &Default::default())?;
    store.table(path).create_index("some", &[Expression::parse("n % 10")?, Expression::parse("id")?], &some)?;
    let unique = IndexOptions { unique: true, ..IndexOptions::default() };
    store.table(path).create_index("one", &[Expression::parse("id")?], &unique)
}

/// The checkpoint that follows puts them into the catalog.
pub fn build(store: &Store) -> drumlin::Result<()> {
    table(store, "indexed/t")?;
    index(store, "indexed/t")?;
    store.table("indexed/t").delete("n = 5", &Default::default())?;
    Ok(())
}

/// The same in the log.
pub fn build_in_log(store: &Store) -> drumlin::Result<()> {
    table(store, "indexed/log")?;
    index(store, "indexed/log")?;
    store.table("indexed/log").delete("n = 5", &Default::default())?;
    store.table("indexed/log").drop_index("some")
}

pub fn check(store: &Store) {
    for (path, indexes) in [("indexed/t", 3), ("indexed/log", 2)] {
        let table = store.table(path);
        let found = table.indexes().unwrap();
        assert_eq!((found.len(), found[0].entries, found[0].covered), (indexes, ROWS as u64, found[0].row_groups));
        let one = &found[indexes - 1];
        assert_eq!((one.name.as_str(), one.unique, one.proven, one.entries), ("one", true, true, ROWS as u64));
        for (n, as_of, rows) in [(5, AsOf::Newest, 0), (5, AsOf::Version(drumlin::Version(0)), 5), (6, AsOf::Newest, 5)]
        {
            let filter = Some(Filter::parse(&format!("n = {n}")).unwrap());
            let read = ReadOptions { as_of, filter: filter.clone(), ..ReadOptions::default() };
            let batches = table.collect(&read).unwrap();
            assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), rows, "{path} {n}");
            let data = store.scan(path, &DatasetOptions::default()).unwrap();
            let plan = data.plan(&ScanOptions { filter, ..ScanOptions::default() }).unwrap();
            assert_eq!(plan.total.by_index.names.iter().collect::<Vec<_>>(), ["n"]);
        }
    }
}
