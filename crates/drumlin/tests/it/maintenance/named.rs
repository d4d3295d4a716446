//! Versions by what people call them: counted from the newest, by a snapshot or a date; and what is said of names that are wrong.

use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, DatasetOptions};
use drumlin::{ErrorKind, Existing, Result, Tables, Version};

use crate::support::{batch, numbered, open_with, read};

const DAY: u64 = 86_400_000_000;

/// A table whose versions were made at noon of the first days of 1970, with as many rows as the day has.
fn days(disk: &SimDisk, n: usize) -> drumlin::Store {
    let clock = Arc::new(ManualClock::new(Timestamp(0)));
    let store = open_with(disk, &clock, 2).unwrap();
    clock.advance((DAY / 2) as i64);
    for day in 1..=n {
        store.write("p/t", batch(&numbered(0, day)), &Default::default()).unwrap();
        clock.advance(DAY as i64);
    }
    store
}

fn named(text: &str) -> AsOf {
    AsOf::Snapshot(text.to_owned())
}

#[test]
fn versions_are_counted_from_the_newest_and_found_by_dates() {
    let disk = SimDisk::in_memory();
    let store = days(&disk, 5);
    let rows = |as_of: AsOf| read(&store, "p/t", as_of).map(|rows| rows.len());
    for (back, expected) in [(0, 5), (1, 4), (4, 1)] {
        assert_eq!(rows(AsOf::Back(back)).unwrap(), expected);
    }
    for text in ["1970-01-03", "1970-01-03 00:00", "1970-01-03T01:00:00+01:00", "1970-01-02T12:00:00Z"] {
        assert_eq!(rows(named(text)).unwrap(), 2, "{text}");
    }
    assert_eq!(rows(named("2999-01-01")).unwrap(), 5);
    assert_eq!(rows(AsOf::parse("-2")).unwrap(), 4);
    assert_eq!(rows(AsOf::parse("3")).unwrap(), 4);
    // Versions that are deleted are not counted.
    store.delete_versions(&[("p/t".into(), vec![Version(3)])], Default::default()).unwrap();
    assert_eq!(rows(AsOf::Back(1)).unwrap(), 3);
    for (as_of, part) in [
        (AsOf::Back(4), "no version -5; it has 4 versions"),
        (AsOf::Back(u64::MAX), "no version -18446744073709551616"),
        (named("1970-01-01"), "no version existed at 1970-01-01"),
        (named("1970-02-30"), "snapshot '1970-02-30' does not exist"),
    ] {
        let error = rows(as_of.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains(part), "{as_of:?}: {error}");
    }
}

#[test]
fn a_snapshot_of_that_name_comes_first_in_every_call() {
    let disk = SimDisk::in_memory();
    let store = days(&disk, 3);
    let date = "1970-01-03";
    let count = |store: &drumlin::Store| -> Result<[usize; 2]> {
        let options = DatasetOptions { as_of: named(date), ..DatasetOptions::default() };
        let scanned = store.scan("p/*", &options)?.scan(&Default::default())?.collect()?;
        Ok([read(store, "p/t", named(date))?.len(), scanned.iter().map(|batch| batch.num_rows()).sum()])
    };
    assert_eq!(count(&store).unwrap(), [2, 2]);
    store.copy("p/t", "q", &named(date), Existing::Refuse).unwrap();
    assert_eq!(read(&store, "q", AsOf::Newest).unwrap().len(), 2);
    // What a transaction read by the date depends on the versions, and on whether a snapshot is called so.
    let tx = store.transaction().unwrap();
    assert_eq!(tx.table("p/t").schema(&named(date)).unwrap().fields().len(), 2);
    tx.write("other", batch(&numbered(0, 1)), &Default::default()).unwrap();
    store.snapshot(date, "p/**").unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(count(&store).unwrap(), [3, 3]);
    store.drop_snapshot(date).unwrap();
    store.restore("p/**", &named(date)).unwrap();
    assert_eq!(read(&store, "p/t", AsOf::Newest).unwrap().len(), 2);
    assert_eq!(store.restore("p/**", &named("yesterday")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn names_that_are_near_are_told() {
    let disk = SimDisk::in_memory();
    let store = days(&disk, 1);
    store.write("prices/us/AAPL", batch(&numbered(0, 1)), &Default::default()).unwrap();
    store.snapshot("end of day", "**").unwrap();
    for (path, told) in [
        ("prices/us/APPL", Some("prices/us/AAPL")),
        ("prices/us/aapl", Some("prices/us/AAPL")),
        ("price/us/AAPL", Some("prices/us/AAPL")),
        ("prices/us/ZZZZZZZ", None),
        ("pt", Some("p/t")),
    ] {
        let error = read(&store, path, AsOf::Newest).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        match told {
            Some(told) => assert!(error.message().ends_with(&format!("did you mean '{told}'?")), "{error}"),
            None => assert!(!error.message().contains("did you mean"), "{error}"),
        }
    }
    let error = read(&store, "p/t", named("end of dai")).unwrap_err();
    assert!(error.message().contains("did you mean 'end of day'?"), "{error}");
    let dropped = store.drop("prices/us/APPL").unwrap_err();
    assert!(dropped.message().contains("did you mean 'prices/us/AAPL'?"), "{dropped}");
}
