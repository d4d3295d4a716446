//! Tables in another store: what comes along, what is there already, what is interrupted, what is damaged. Random tables are copied
//! in the episodes (wide.rs).

use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::{CrashPoint, DiskFault, SimBucket, SimDisk};
use drumlin::store::{AsOf, CopyToOptions, Options, TableOptions};
use drumlin::{ErrorKind, Event, Existing, Store, TableAction, Tables};

use crate::faults::crash::no_orphans;
use crate::support::{Checked, batch, env, numbered, open, open_inline, open_shared, open_with, read};

fn clock_at(micros: i64) -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp(micros)))
}

/// Two stores. Their commits have other random names, though each has its own repeatable ones.
fn two() -> (Store, Store) {
    let disk = SimDisk::in_memory();
    open(&disk).unwrap().close().unwrap();
    (open(&SimDisk::in_memory()).unwrap(), open(&disk).unwrap())
}

/// Three tables: one with versions, changed and deleted rows, one with a key and rows in memory, and a branch of the first.
fn fill(store: &Store, clock: &ManualClock) {
    use drumlin::base::Clock;
    let tick = || clock.set(Timestamp(clock.now().0 + 1000));
    store.with_message("first").unwrap().write("p/t", batch(&numbered(0, 100)), &Default::default()).unwrap();
    tick();
    store.append("p/t", batch(&numbered(100, 50)), &Default::default()).unwrap();
    tick();
    store.table("p/t").delete("id % 7 = 3", &Default::default()).unwrap();
    tick();
    store.copy("p/t", "p/u", &AsOf::Newest, Existing::Refuse).unwrap();
    store.append("p/u", batch(&numbered(900, 1)), &Default::default()).unwrap();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("p/k").create(batch(&[]).schema(), key).unwrap();
    for n in 0..4 {
        tick();
        store.table("p/k").upsert(batch(&numbered(n * 5, 10)), &Default::default()).unwrap();
    }
    store.snapshot("s", "**").unwrap();
    tick();
    store.table("p/k").upsert(batch(&numbered(2, 3)), &Default::default()).unwrap();
    store.tree().put("p/node", drumlin::Payload::from(1)).unwrap();
}

/// Every version of every table, what it tells, and what was there at times.
fn shown(store: &Store) -> Vec<String> {
    let mut shown = Vec::new();
    for (path, info) in store.history("p/**", None).unwrap() {
        let rows = read(store, &path, AsOf::Version(info.version)).unwrap();
        let what = (info.version, info.kind, info.time, info.rows, info.metadata, info.turnover, info.note);
        shown.push(format!("{path} {what:?} {rows:?}"));
    }
    for path in store.tables("p/**").unwrap() {
        for at in 0..14 {
            let rows = read(store, &path, AsOf::Time(Timestamp(1_000_000 + at * 500)));
            shown.push(format!("{path} at {at}: {:?}", rows.map_err(|e| e.kind())));
        }
    }
    shown.sort();
    shown
}

pub fn what_shows_something_else_is_refused() -> Checked {
    let (a, b) = two();
    a.write("p/t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    a.write("p/u", batch(&numbered(0, 3)), &Default::default()).unwrap();
    b.write("p/u", batch(&numbered(7, 3)), &Default::default()).unwrap();
    match a.copy_to(&b, "p/**", &Default::default()) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && e.to_string().contains("'p/u'") => {}
        other => return Err(format!("{other:?}")),
    }
    assert_eq!(b.tables("**").unwrap(), ["p/u"]);
    let replace = CopyToOptions { replace: true, ..CopyToOptions::default() };
    let report = a.copy_to(&b, "p/**", &replace).map_err(|e| e.to_string())?;
    assert_eq!(report.tables, ["p/t", "p/u"]);
    assert_eq!(read(&b, "p/u", AsOf::Newest).unwrap(), numbered(0, 3));
    assert_eq!(b.trash().unwrap()[0].path, "p/u");
    Ok(())
}

#[test]
fn rules_hold() {
    what_shows_something_else_is_refused().unwrap();
}

#[test]
fn everything_of_a_table_comes_along() {
    let clock = clock_at(1_000_000);
    let disk = SimDisk::in_memory();
    let store = open_with(&disk, &clock, 2).unwrap();
    fill(&store, &clock);
    let bucket = SimBucket::new();
    let in_bucket = || {
        drumlin::store::open_bucket(Arc::new(bucket.client()), env(&clock, 9, 2), "bucket", Options::default()).unwrap()
    };
    let (folder, shared, inline) = (SimDisk::in_memory(), SimDisk::in_memory(), SimDisk::in_memory());
    let others = [
        open_with(&folder, &clock, 2).unwrap(),
        open_shared(&shared, &clock, 2).unwrap(),
        open_inline(&inline, &clock, 2).unwrap(),
        in_bucket(),
    ];
    for other in &others {
        // Other tables have been there.
        other.write("x", batch(&numbered(0, 2)), &Default::default()).unwrap();
        let mut feed = other.changes(other.seq().unwrap()).unwrap();
        let report = store
            .with_message("quiet")
            .unwrap()
            .copy_to(&other.with_message("backup").unwrap(), "p/**", &Default::default())
            .unwrap();
        assert_eq!((report.tables.len(), report.present.len()), (3, 0));
        assert_eq!(shown(other), shown(&store));
        let bytes = |store: &Store, path: &str| store.table(path).stat().unwrap().bytes;
        // Directories hold offsets, which differ.
        assert!(bytes(other, "p/t").abs_diff(bytes(&store, "p/t")) < 16);
        // The branch shares its row groups with the table that it is one of.
        let live: u64 = other.stat().unwrap().live_bytes;
        assert!(live < bytes(other, "p/t") + bytes(other, "p/u") + bytes(other, "p/k") + bytes(other, "x"), "{live}");
        assert!(other.snapshots().unwrap().is_empty() && !other.tree().exists("p/node").unwrap());
        let mut copied = Vec::new();
        let mut said = Vec::new();
        while let Some(commit) = feed.next(Some(std::time::Duration::ZERO)).unwrap() {
            said.extend(commit.messages().map(str::to_owned));
            for event in commit.events().unwrap() {
                copied.extend(match event {
                    Event::Table(event) if event.action == TableAction::Copy => Some(event.path),
                    other => panic!("{other:?}"),
                });
            }
        }
        assert_eq!((copied, said), (vec!["p/k".into(), "p/t".into(), "p/u".to_owned()], vec!["backup".to_owned()]));
        // Done again it does nothing; then each goes its own way.
        let again = store.copy_to(other, "p/**", &Default::default()).unwrap();
        assert_eq!((again.tables.len(), again.present.len(), again.bytes), (0, 3, 0));
        other.append("p/t", batch(&numbered(5000, 1)), &Default::default()).unwrap();
        other.table("p/k").upsert(batch(&numbered(3, 1)), &Default::default()).unwrap();
        other.checkpoint(&Default::default()).unwrap();
        other.drop("p/t").unwrap();
        other.reclaim(&Default::default()).unwrap();
        assert_eq!(other.verify(&Default::default()).unwrap().faults, []);
        assert_eq!(read(other, "p/u", AsOf::Newest).unwrap(), read(&store, "p/u", AsOf::Newest).unwrap());
    }
    // From there back to a folder, the newest versions alone.
    let (back, newest) = (SimDisk::in_memory(), CopyToOptions { newest_only: true, ..CopyToOptions::default() });
    let third = open_with(&back, &clock, 2).unwrap();
    others[3].copy_to(&third, "p/*", &newest).unwrap();
    assert_eq!(third.history("**", None).unwrap().len(), 2);
    assert_eq!(read(&third, "p/k", AsOf::Newest).unwrap(), read(&others[3], "p/k", AsOf::Newest).unwrap());
    // What cannot be: to itself, and from memory of a store that is open for reading.
    let e = store.copy_to(&store.clone(), "**", &Default::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("same store"), "{e}");
}

#[test]
fn a_store_whose_clock_is_behind_has_no_version_of_the_future() {
    let (ahead, behind) = (clock_at(1_000_000), clock_at(1000));
    let store = open_with(&SimDisk::in_memory(), &ahead, 2).unwrap();
    fill(&store, &ahead);
    let other = open_with(&SimDisk::in_memory(), &behind, 2).unwrap();
    store.copy_to(&other, "p/**", &Default::default()).unwrap();
    let next = other.append("p/t", batch(&numbered(0, 1)), &Default::default()).unwrap();
    let versions = other.table("p/t").versions().unwrap();
    assert!(versions.windows(2).all(|pair| pair[0].time <= pair[1].time) && next.time.0 >= 1000, "{versions:?}");
    assert!(versions[0].time < next.time, "{versions:?}");
}

// faults: crash, failed sync x write
#[test]
fn a_copy_that_was_interrupted_is_done_again() {
    let clock = clock_at(1_000_000);
    let store = open_with(&SimDisk::in_memory(), &clock, 2).unwrap();
    fill(&store, &clock);
    store.checkpoint(&Default::default()).unwrap();
    let expected = shown(&store);
    let mut struck = 0;
    for open in [open_with as crate::support::Opener, open_inline, open_shared] {
        for fault in [DiskFault::Crash(CrashPoint::Before), DiskFault::Crash(CrashPoint::After), DiskFault::Fail] {
            for at in 0.. {
                let disk = SimDisk::new();
                let other = open(&disk, &clock, 2).unwrap();
                disk.plan(disk.counters().changes + at, fault);
                let done = store.copy_to(&other, "p/**", &Default::default());
                let (survived, other) = match fault {
                    DiskFault::Fail => {
                        disk.heal();
                        other.close().ok();
                        drop(other);
                        let other = open(&disk, &clock, 2).unwrap();
                        (disk, other)
                    }
                    _ => {
                        drop(other);
                        let survived = disk.crash(at);
                        let other = open(&survived, &clock, 2).unwrap();
                        (survived, other)
                    }
                };
                if done.is_err() {
                    struck += 1;
                    let there = other.tables("**").unwrap().len();
                    assert!(there == 0 || there == 3, "{there}");
                }
                store.copy_to(&other, "p/**", &Default::default()).unwrap();
                assert_eq!(shown(&other), expected, "{fault:?} at {at}");
                no_orphans(&other, &survived);
                if done.is_ok() && at > 3 {
                    break;
                }
            }
        }
    }
    assert!(struck > 20, "{struck}");
}

// faults: bit rot x read
#[test]
fn damage_is_not_copied() {
    let clock = clock_at(1_000_000);
    let disk = SimDisk::in_memory();
    let store = open_with(&disk, &clock, 2).unwrap();
    fill(&store, &clock);
    store.checkpoint(&Default::default()).unwrap();
    store.close().unwrap();
    let blocks: Vec<String> =
        disk.files().into_iter().map(|(name, _)| name).filter(|name| name.starts_with("blocks/")).collect();
    let mut refused = 0;
    for block in &blocks {
        for share in [0.1, 0.5, 0.9] {
            let damaged = disk.fork();
            let mut bytes = damaged.files().into_iter().find(|(name, _)| name == block).unwrap().1;
            let at = (bytes.len() as f64 * share) as usize;
            bytes[at] ^= 16;
            damaged.damage(block, bytes);
            let (source, other) = (open_with(&damaged, &clock, 2).unwrap(), open(&SimDisk::in_memory()).unwrap());
            match source.copy_to(&other, "p/**", &Default::default()) {
                Err(e) => {
                    refused += 1;
                    assert!(e.kind() == ErrorKind::Corrupt && e.to_string().contains(block.as_str()), "{e}");
                    assert_eq!(other.tables("**").unwrap(), Vec::<String>::new());
                }
                // Between row groups, or in one that no version of these tables has.
                Ok(_) => assert_eq!(other.tables("**").unwrap().len(), 3),
            }
        }
    }
    assert!(refused > 0, "of {blocks:?}");
}

#[test]
fn what_has_expired_there_is_no_difference_and_what_was_noted_is() {
    use drumlin::Retention;
    let (a, b) = two();
    b.set_retention("**", Some(Retention::KeepLast(2))).unwrap();
    for n in 0..5 {
        a.write("t", batch(&numbered(n, 3)), &Default::default()).unwrap();
    }
    let copy = || a.copy_to(&b, "**", &Default::default());
    assert_eq!(copy().unwrap().tables, ["t"]);
    b.checkpoint(&Default::default()).unwrap();
    assert_eq!(b.table("t").versions().unwrap().len(), 2);
    assert_eq!(copy().unwrap().present, ["t"]);
    let refused = || assert_eq!(copy().unwrap_err().kind(), ErrorKind::AlreadyExists);
    b.table("t").set_metadata(&AsOf::Newest, Some("1".into())).unwrap();
    refused();
    b.table("t").set_metadata(&AsOf::Newest, None).unwrap();
    assert_eq!(copy().unwrap().present, ["t"]);
    // A purge here of what was there between two versions, which have as many rows as before.
    use drumlin::base::Clock;
    let clock = clock_at(5_000_000);
    let a = open_with(&SimDisk::in_memory(), &clock, 2).unwrap();
    let copy = || a.copy_to(&b, "**", &CopyToOptions { replace: false, ..CopyToOptions::default() });
    let refused = || assert_eq!(copy().unwrap_err().kind(), ErrorKind::AlreadyExists);
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    a.table("k").create(batch(&[]).schema(), key).unwrap();
    for text in ["secret", "clean"] {
        clock.set(Timestamp(clock.now().0 + 1000));
        a.table("k").upsert(batch(&[(1, Some(text.to_owned()))]), &Default::default()).unwrap();
    }
    a.checkpoint(&Default::default()).unwrap();
    assert_eq!(copy().unwrap().tables, ["k"]);
    assert_eq!(copy().unwrap().present, ["k"]);
    let filter = drumlin::Filter::parse("id = 1 and name = 'secret'").unwrap();
    a.purge("k", &filter).unwrap().execute(&Default::default()).unwrap();
    refused();
}

#[test]
fn the_newest_version_is_not_all_of_them() {
    let (a, b) = two();
    a.write("t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    a.append("t", batch(&numbered(3, 3)), &Default::default()).unwrap();
    let newest = CopyToOptions { newest_only: true, ..CopyToOptions::default() };
    assert_eq!(a.copy_to(&b, "**", &newest).unwrap().tables, ["t"]);
    assert_eq!(a.copy_to(&b, "**", &newest).unwrap().present, ["t"]);
    assert_eq!(a.copy_to(&b, "**", &Default::default()).unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn a_purge_names_other_tables_that_came_from_another_store() {
    let (a, b) = two();
    a.write("users", batch(&numbered(0, 10)), &Default::default()).unwrap();
    a.copy("users", "branch", &AsOf::Newest, Existing::Refuse).unwrap();
    a.copy_to(&b, "users", &Default::default()).unwrap();
    a.copy_to(&b, "branch", &Default::default()).unwrap();
    b.copy("users", "own", &AsOf::Newest, Existing::Refuse).unwrap();
    b.write("other", batch(&numbered(0, 10)), &Default::default()).unwrap();
    let filter = drumlin::Filter::parse("id = 7").unwrap();
    let plan = b.purge("users", &filter).unwrap().plan(&Default::default()).unwrap();
    assert_eq!(plan.tables.iter().map(|table| table.path.as_str()).collect::<Vec<_>>(), ["users", "own"]);
    assert_eq!(plan.not_covered.len(), 1);
    assert!(plan.not_covered[0].0.contains("branch") && plan.not_covered[0].1.contains("another store"));
    let plan = b.purge("{users,branch}", &filter).and_then(|purge| purge.plan(&Default::default()));
    assert!(plan.is_err() || plan.unwrap().not_covered.is_empty());
    let plan = b.purge("**", &filter).unwrap().plan(&Default::default()).unwrap();
    assert_eq!((plan.tables.len(), plan.not_covered), (4, vec![]));
}

#[test]
fn the_same_store_by_another_handle_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("s");
    let open = |mode| Store::open_with(uri.to_str().unwrap(), Options { mode, ..Options::default() }).unwrap();
    let writer = open(drumlin::Mode::Create);
    writer.write("t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    let reader = open(drumlin::Mode::Read);
    writer.append("t", batch(&numbered(3, 3)), &Default::default()).unwrap();
    let replace = CopyToOptions { replace: true, ..CopyToOptions::default() };
    let e = reader.copy_to(&writer, "**", &replace).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("same store"), "{e}");
    assert!(writer.trash().unwrap().is_empty());
}

#[test]
fn copies_at_a_time_are_made_once() {
    let (a, b) = two();
    for n in 0..20 {
        a.write(&format!("t/{n}"), batch(&numbered(n, 3)), &Default::default()).unwrap();
    }
    for round in 0..5 {
        std::thread::scope(|scope| {
            let copies: Vec<_> =
                (0..3).map(|_| scope.spawn(|| a.copy_to(&b, "**", &Default::default()).unwrap())).collect();
            let reports: Vec<_> = copies.into_iter().map(|copy| copy.join().unwrap()).collect();
            assert_eq!(reports.iter().map(|report| report.tables.len()).sum::<usize>(), 20, "round {round}");
            assert!(reports.iter().all(|report| report.tables.len() + report.present.len() == 20));
        });
        b.drop("**").unwrap();
    }
    // Others write what is replaced.
    let replace = CopyToOptions { replace: true, ..CopyToOptions::default() };
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            for n in 0..100 {
                b.write("t/0", batch(&numbered(n, 1)), &Default::default()).unwrap();
                b.drop("t/0").unwrap();
            }
        });
        while !busy.is_finished() {
            a.copy_to(&b, "**", &replace).unwrap();
        }
    });
}

#[test]
fn nothing_is_left_of_times_that_a_store_behind_does_not_take() {
    let (ahead, behind) = (clock_at(1_000_000_000), clock_at(1000));
    let disk = SimDisk::in_memory();
    let store = open_with(&SimDisk::in_memory(), &ahead, 2).unwrap();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k").create(batch(&[]).schema(), key).unwrap();
    for n in 0..4 {
        store.table("k").upsert(batch(&numbered(n, 500)), &Default::default()).unwrap();
    }
    store.checkpoint(&Default::default()).unwrap();
    let other = open_with(&disk, &behind, 2).unwrap();
    store.copy_to(&other, "**", &Default::default()).unwrap();
    let stat = other.stat().unwrap();
    assert_eq!(stat.live_bytes, other.table("k").stat().unwrap().bytes);
    other.drop("k").unwrap();
    other.reclaim(&Default::default()).unwrap();
    assert_eq!(other.stat().unwrap().blocks, 0);
    no_orphans(&other, &disk);
}
