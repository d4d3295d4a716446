//! Concurrent transactions: what is touched is noticed, what is not touched is not, and nothing is half done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumlin::catalog::{Compare, Condition, Pattern, Payload, PutOptions};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, ReadOptions, TableOptions, UpdateOptions, WriteOptions};
use drumlin::{Error, ErrorKind, Result, Store, Tables};

use crate::support::{batch, numbered, open, read, rows};

fn number(store: &Store, path: &str) -> i64 {
    store.tree().get(path).unwrap().and_then(|payload| payload.to_json()?.as_i64()).unwrap_or(0)
}

fn write_options() -> WriteOptions {
    WriteOptions::default()
}

// faults: concurrent change x transaction
#[test]
fn counters_of_many_threads_lose_no_count() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let runs = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (store, runs) = (&store, &runs);
            scope.spawn(move || {
                for n in 0..100 {
                    store
                        .transact(|tx| -> Result<()> {
                            runs.fetch_add(1, Ordering::Relaxed);
                            let count = tx.tree().get("count")?.and_then(|p| p.to_json()?.as_i64()).unwrap_or(0);
                            tx.tree().put("count", Payload::from(count + 1))?;
                            tx.tree().put(&format!("done/{thread}/{n}"), Payload::from(count))?;
                            Ok(())
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(number(&store, "count"), 800);
    assert_eq!(store.tree().count("done/*/*").unwrap(), 800);
    // Each saw another count.
    let mut seen: Vec<i64> = store
        .tree()
        .get_many("done/*/*")
        .unwrap()
        .iter()
        .map(|(_, p)| p.to_json().unwrap().as_i64().unwrap())
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..800).collect::<Vec<_>>());
}

/// Begins, reads, lets another commit, and returns whether the following commit meets a conflict.
fn meets(
    store: &Store,
    work: impl FnOnce(&drumlin::Transaction) -> Result<()>,
    other: impl FnOnce(&Store) -> Result<()>,
) -> bool {
    let tx = store.transaction().unwrap();
    work(&tx).unwrap();
    tx.tree().put("mine/written", Payload::from(1)).unwrap();
    other(store).unwrap();
    match tx.commit() {
        Ok(_) => false,
        Err(e) if e.kind() == ErrorKind::Conflict => true,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn what_was_read_or_written_and_touched_is_a_conflict_and_nothing_else_is() {
    let store = open(&SimDisk::in_memory()).unwrap();
    for path in ["a/x", "a/y", "b/x", "b/deep/z"] {
        store.tree().put(path, Payload::from(1)).unwrap();
    }
    store.write("t", batch(&numbered(0, 10)), &write_options()).unwrap();
    store.write("u", batch(&numbered(0, 10)), &write_options()).unwrap();
    let put = |path: &'static str| move |store: &Store| store.tree().put(path, Payload::from(2)).map(drop);
    let get = |path: &'static str| move |tx: &drumlin::Transaction| tx.tree().get(path).map(drop);
    let count = |text: &'static str| move |tx: &drumlin::Transaction| tx.tree().count(text).map(drop);
    let set = |path: &'static str| move |tx: &drumlin::Transaction| tx.tree().put(path, Payload::from(3)).map(drop);
    // A node read here and written by another; also one that did not exist.
    assert!(meets(&store, get("a/x"), put("a/x")));
    assert!(!meets(&store, get("a/x"), put("a/y")));
    assert!(meets(&store, get("a/new"), put("a/new")));
    // A list of children.
    assert!(meets(&store, |tx| tx.tree().node("a").map(drop), put("a/other")));
    assert!(!meets(&store, |tx| tx.tree().node("a").map(drop), put("a/x")));
    // A pattern, against a node that newly matches, one that changes, one that is deleted, one that does not match.
    assert!(meets(&store, count("a/*"), put("a/newer")));
    assert!(meets(&store, count("a/*"), put("a/x")));
    assert!(meets(&store, count("a/*"), |store| store.tree().delete("a/newer", None).map(drop)));
    assert!(!meets(&store, count("a/*"), put("b/x")));
    assert!(!meets(&store, count("a/*"), put("b/deep/new")));
    // A condition on a node above.
    let above = || {
        let has = Condition::field("k", Compare::Equal, Payload::from(1));
        Pattern::new("*").unwrap().and(has).unwrap()
    };
    assert!(meets(
        &store,
        |tx| tx.tree().count(above()).map(drop),
        |store| { store.tree().put("k", Payload::json(&serde_json::json!({"k": 1}))?).map(drop) }
    ));
    // Writes against writes, and deletes against puts below.
    assert!(meets(&store, set("a/x"), put("a/x")));
    assert!(!meets(&store, set("a/x"), put("a/y")));
    assert!(meets(&store, |tx| tx.tree().delete("b", None).map(drop), put("b/deep/newer")));
    // Rows.
    let append = |path: &'static str| {
        move |store: &Store| store.append(path, batch(&numbered(50, 1)), &WriteOptions::default()).map(drop)
    };
    let look = |tx: &drumlin::Transaction| tx.table("t").collect(&ReadOptions::default()).map(drop);
    assert!(meets(&store, look, append("t")));
    assert!(!meets(&store, look, append("u")));
    let add = |tx: &drumlin::Transaction| tx.append("t", batch(&numbered(70, 1)), &WriteOptions::default());
    assert!(!meets(&store, add, append("t")));
    assert!(meets(&store, add, |store| store.drop("t").map(drop)));
    let drop_u = |tx: &drumlin::Transaction| tx.drop("u").map(drop);
    assert!(meets(&store, drop_u, put("u")));
}

#[test]
fn a_transaction_over_nodes_and_tables_sees_its_own_writes_and_happens_whole_or_not_at_all() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.write("old", batch(&numbered(0, 5)), &write_options()).unwrap();
    let work = |tx: &drumlin::Transaction| -> Result<()> {
        tx.write("new/a", batch(&numbered(0, 4)), &write_options())?;
        tx.append("new/a", batch(&numbered(4, 4)), &write_options())?;
        assert_eq!(tx.table("new/a").delete("id % 2 = 0", &UpdateOptions::default())?.rows, 4);
        tx.table("new/b")
            .create(batch(&[]).schema(), TableOptions { sort: vec!["id".into()], ..Default::default() })?;
        tx.append("new/b", batch(&numbered(9, 1)), &write_options())?;
        tx.append("new/b", batch(&numbered(2, 1)), &write_options())?;
        tx.replace("new/b", batch(&[(9, Some("now".into()))]), &write_options())?;
        tx.append("old", batch(&numbered(5, 1)), &write_options())?;
        tx.tree().put("new/about", Payload::from(1))?;
        let found = rows(&tx.table("new/a").collect(&ReadOptions::default())?);
        assert_eq!(found.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 3, 5, 7]);
        assert_eq!(rows(&tx.table("old").collect(&ReadOptions::default())?).len(), 6);
        assert_eq!(rows(&tx.table("new/b").collect(&ReadOptions::default())?)[1], (9, Some("now".into())));
        assert_eq!(tx.tree().count("new/*")?, 3);
        Ok(())
    };
    let mut left = store.transaction().unwrap();
    work(&mut left).unwrap();
    assert!(!store.tree().exists("new").unwrap());
    drop(left);
    assert_eq!(store.transact(|tx| work(tx).and(Err::<(), _>(Error::closed("no")))).unwrap_err().message(), "no");
    assert_eq!((store.tree().count("**").unwrap(), store.stat().unwrap().tables), (1, 1));
    // Aborted ones leave no block behind.
    store.reclaim(&Default::default()).unwrap();
    let before = disk.counters();
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
    // Others create tables during the transaction, so that the numbers of those created here are not free.
    let mut meet = true;
    store
        .transact(|tx| {
            work(tx)?;
            if std::mem::take(&mut meet) {
                store.write("other/1", batch(&numbered(0, 1)), &write_options())?;
                store.write("other/2", batch(&numbered(0, 1)), &write_options())?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    assert!(disk.counters().changes > before.changes);
    let check = |store: &Store| {
        let ids = |path: &str| read(store, path, AsOf::Newest).unwrap().iter().map(|(id, _)| *id).collect::<Vec<_>>();
        assert_eq!((ids("new/a"), ids("new/b")), (vec![1, 3, 5, 7], vec![2, 9]));
        assert_eq!((ids("old").len(), ids("other/1").len()), (6, 1));
        assert_eq!(store.table("new/a").versions().unwrap().len(), 3);
        assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
    };
    check(&store);
    store.close().unwrap();
    check(&open(&disk).unwrap());
}

#[test]
fn a_read_transaction_stays_as_it_was_and_writes_nothing() {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.tree().put("a", Payload::from(1)).unwrap();
    store.write("t", batch(&numbered(0, 3)), &write_options()).unwrap();
    let tx = drumlin::Transaction::read_only(&store).unwrap();
    store.tree().delete("a", None).unwrap();
    store.drop("t").unwrap();
    store.reclaim(&Default::default()).unwrap();
    assert_eq!(tx.tree().get("a").unwrap(), Some(Payload::from(1)));
    assert_eq!(rows(&tx.table("t").collect(&ReadOptions::default()).unwrap()).len(), 3);
    assert_eq!(tx.tree().put("b", Payload::from(1)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(tx.drop("t").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(tx.commit().is_ok());
    assert_eq!(store.tree().count("**").unwrap(), 0);
}

#[test]
fn a_caller_learns_what_was_and_what_became_of_it() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let change = store.tree().put("lock", Payload::from(1)).unwrap();
    assert_eq!((change.before, change.after.unwrap().payload_version), (None, 1));
    let keep = |path: &str| PutOptions {
        keep_while: Some(vec![(path.to_owned(), Condition::Exists(true))]),
        ..PutOptions::default()
    };
    store.tree().put_with("work/1", Payload::from(1), keep("lock")).unwrap();
    store.tree().put("work/1/part", Payload::from(1)).unwrap();
    store.tree().put_with("more", Payload::from(1), keep("work/1")).unwrap();
    store.tree().put_with("work/2", Payload::from(1), keep("more")).unwrap();
    // In a circle.
    store.tree().put_with("lock", Payload::from(2), keep("work/2")).unwrap();
    let missing = store.tree().put_with("x", Payload::from(1), keep("nothing")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::ConditionFailed);
    assert!(missing.message().contains("'nothing'"), "{missing}");
    store.write("work/2/table", batch(&numbered(0, 1)), &write_options()).unwrap();
    let held = store.tree().delete("lock", None).unwrap_err();
    assert!(held.kind() == ErrorKind::InvalidArgument && held.message().contains("work/2/table"), "{held}");
    assert_eq!(store.tree().count("**").unwrap(), 7);
    store.drop("work/2/table").unwrap();
    let change = store.tree().delete("lock", None).unwrap();
    assert_eq!(change.before.unwrap().payload, Some(Payload::from(2)));
    let mut gone: Vec<_> = change.indirect.unwrap().iter().map(|one| (one.path, format!("{:?}", one.cause))).collect();
    gone.sort();
    let gone: Vec<(&str, &str)> = gone.iter().map(|(path, cause)| (path.as_str(), cause.as_str())).collect();
    let expected = [("more", "KeepWhile"), ("work/1", "KeepWhile"), ("work/1/part", "Above"), ("work/2", "KeepWhile")];
    assert_eq!(gone, expected);
    assert_eq!(store.tree().count("**").unwrap(), 0);
    let failed = store.tree().compare_and_swap("x", Payload::from(1), Payload::from(2)).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::NotFound);
    store.tree().put("x", Payload::from(5)).unwrap();
    let failed = store.tree().compare_and_swap("x", Payload::from(1), Payload::from(2)).unwrap_err();
    assert!(failed.kind() == ErrorKind::ConditionFailed && failed.message().contains("is 5"), "{failed}");
    store.tree().compare_and_swap("x", Payload::from(5), Payload::from(2)).unwrap();
    assert_eq!(number(&store, "x"), 2);
}

#[test]
fn many_threads_share_syncs() {
    let disk = SimDisk::in_memory();
    let store = Arc::new(open(&disk).unwrap());
    // A commit that takes a while, as on a real disk.
    let slow = |_: &str, _: &Payload| {
        std::thread::sleep(std::time::Duration::from_micros(50));
        Vec::new()
    };
    store.tree().put_projection_fn("slow", Pattern::new("**").unwrap(), true, Arc::new(slow)).unwrap();
    let before = disk.counters().syncs;
    std::thread::scope(|scope| {
        for thread in 0..32 {
            let store = store.clone();
            scope.spawn(move || {
                for n in 0..50 {
                    store.tree().put(&format!("c/{thread}/{n}"), Payload::from(n)).unwrap();
                }
            });
        }
    });
    assert_eq!(store.tree().count("c/*/*").unwrap(), 32 * 50);
    let (commits, syncs) = (store.seq().unwrap().0, disk.counters().syncs - before);
    assert!(syncs <= commits + 1 && commits < 32 * 50 / 4, "{syncs} syncs for {commits} commits");
}

// faults: odd name x nodes
#[test]
fn what_cannot_be_read_back_is_refused_and_odd_names_come_back() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let odd = "a\"b\\c/ü 'x'";
    store.tree().put(odd, Payload::from(1)).unwrap();
    let keep = |condition: Condition| PutOptions {
        keep_while: Some(vec![(odd.to_owned(), condition)]),
        ..PutOptions::default()
    };
    store.tree().put_with("lives", Payload::from(1), keep(Condition::Exists(true))).unwrap();
    let deep = (0..60).fold(Condition::Exists(true), |condition, _| Condition::All(vec![condition]));
    let nested = (0..125).fold(serde_json::json!(1), |value, _| serde_json::json!([value]));
    let nested = Condition::Not(Box::new(Condition::payload(Payload::json(&nested).unwrap())));
    for condition in [(0..63).fold(deep.clone(), |c, _| Condition::Any(vec![c])), nested] {
        let refused = store.tree().put_with("x", Payload::from(1), keep(condition)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    }
    store.checkpoint(&Default::default()).unwrap();
    store.tree().put_with("too", Payload::from(1), keep(Condition::HasPayload(true))).unwrap();
    store.close().unwrap();
    let store = open(&disk).unwrap();
    assert_eq!(store.tree().count("**").unwrap(), 4);
    store.tree().delete(odd, None).unwrap();
    assert_eq!(store.tree().count("**").unwrap(), 0);
}

#[test]
fn nodes_that_live_on_tables_go_with_them() {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.write("t", batch(&numbered(0, 1)), &write_options()).unwrap();
    let keep = |path: &str, condition| PutOptions {
        keep_while: Some(vec![(path.to_owned(), condition)]),
        ..PutOptions::default()
    };
    store.tree().put_with("about", Payload::from(1), keep("t", Condition::HasTable(true))).unwrap();
    store.tree().put_with("without", Payload::from(1), keep("u", Condition::Exists(false))).unwrap();
    let mut feed = store.changes(store.seq().unwrap()).unwrap();
    store.write("u", batch(&numbered(0, 1)), &write_options()).unwrap();
    assert!(!store.tree().exists("without").unwrap());
    store.drop("t").unwrap();
    assert!(!store.tree().exists("about").unwrap());
    let mut told = Vec::new();
    while let Some(commit) = feed.next(Some(std::time::Duration::ZERO)).unwrap() {
        let nodes = commit.events().unwrap().into_iter().filter_map(|event| match event {
            drumlin::catalog::Event::Node(event) => Some((event.path, event.cause)),
            drumlin::catalog::Event::Table(_) => None,
        });
        told.extend(nodes);
    }
    let kept = drumlin::catalog::Cause::KeepWhile;
    assert_eq!(told, [("without".to_owned(), kept), ("about".to_owned(), kept)]);
    // A node that has only life conditions is deleted when they are removed.
    store.tree().put("p/c", Payload::from(1)).unwrap();
    store.transact(|tx| tx.tree().keep_while("p", &[("u".into(), Condition::Exists(true))])).unwrap();
    store.tree().put_with("w", Payload::from(1), keep("p", Condition::Exists(true))).unwrap();
    store.tree().delete("p/c", None).unwrap();
    assert!(store.tree().exists("p").unwrap() && store.tree().exists("w").unwrap());
    store.transact(|tx| tx.tree().keep_while("p", &[])).unwrap();
    assert_eq!(store.tree().nodes("**").unwrap().into_iter().map(|(path, _)| path).collect::<Vec<_>>(), ["u"]);
}

#[test]
fn refusals_and_what_goes_along_are_part_of_what_was_read() {
    let store = open(&SimDisk::in_memory()).unwrap();
    // This depends on there being no table.
    let refused = |tx: &drumlin::Transaction| {
        assert!(tx.append("t", batch(&numbered(0, 1)), &WriteOptions::default()).is_err());
        Ok(())
    };
    let make = |store: &Store| store.write("t", batch(&numbered(0, 1)), &WriteOptions::default()).map(drop);
    assert!(meets(&store, refused, make));
    // A node that lives only while there are two children is deleted with one of them, unless another is added.
    for path in ["p/1", "p/2"] {
        store.tree().put(path, Payload::from(1)).unwrap();
    }
    let two = Condition::Children(Compare::GreaterOrEqual, 2);
    let keep_while = Some(vec![("p".to_owned(), two)]);
    store.tree().put_with("w", Payload::from(1), PutOptions { keep_while, ..PutOptions::default() }).unwrap();
    let dies = |tx: &drumlin::Transaction| {
        tx.tree().delete("p/1", None)?;
        assert_eq!(tx.tree().get("w")?, None);
        Ok(())
    };
    assert!(meets(&store, dies, |store| store.tree().put("p/3", Payload::from(1)).map(drop)));
    // Versions and snapshots that were read.
    let old = ReadOptions { as_of: AsOf::Version(drumlin::base::Version(0)), ..ReadOptions::default() };
    store.append("t", batch(&numbered(1, 1)), &write_options()).unwrap();
    let read_old = |tx: &drumlin::Transaction| tx.table("t").collect(&old).map(drop);
    assert!(meets(&store, read_old, |store| {
        store.delete_versions(&[("t".into(), vec![drumlin::base::Version(0)])], Default::default()).map(drop)
    }));
    store.snapshot("s", "t").unwrap();
    let held = ReadOptions { as_of: AsOf::Snapshot("s".into()), ..ReadOptions::default() };
    assert!(meets(&store, |tx| tx.table("t").collect(&held).map(drop), |store| store.drop_snapshot("s")));
}

#[test]
fn a_conflict_says_in_words_what_changed() {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.write("t/rows", batch(&numbered(0, 3)), &Default::default()).unwrap();
    type Step = fn(&drumlin::Transaction);
    type Other = fn(&Store);
    let cases: [(Step, Other, &str); 3] = [
        (
            |tx| drop(tx.tree().get("a/read").unwrap()),
            |store| drop(store.tree().put("a/read", Payload::from(1)).unwrap()),
            "the node 'a/read' changed after it was read, at commit ",
        ),
        (
            |tx| drop(tx.table("t/rows").collect(&Default::default()).unwrap()),
            |store| drop(store.append("t/rows", batch(&numbered(3, 1)), &Default::default()).unwrap()),
            "'t/rows' changed after it was read, at commit ",
        ),
        (
            |tx| drop(tx.tree().update_many("a/*", &Payload::from(2)).unwrap()),
            |store| drop(store.tree().put("a/new", Payload::from(1)).unwrap()),
            "the set of nodes that match 'a/*', or one of them, changed after it was read, at commit ",
        ),
    ];
    for (step, other, expected) in cases {
        let tx = store.transaction().unwrap();
        step(&tx);
        tx.tree().put("written", Payload::from(1)).unwrap();
        other(&store);
        let e = tx.commit().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict);
        assert!(e.to_string().contains(expected), "{e}");
        assert!(!e.to_string().contains(['(', '"', '{']), "{e}");
    }
}

#[test]
fn what_met_a_conflict_is_begun_again_on_what_others_made() {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.tree().put("count", Payload::from(0)).unwrap();
    let (mut tx, mut attempts) = (store.with_message("counted").unwrap().transaction().unwrap(), 0);
    loop {
        attempts += 1;
        let count = tx.tree().get("count").unwrap().and_then(|payload| payload.to_json()?.as_i64()).unwrap();
        tx.tree().put("count", Payload::from(count + 1)).unwrap();
        if attempts < 3 {
            store.tree().put("count", Payload::from(10 * attempts)).unwrap();
        }
        match tx.commit_or_again().unwrap() {
            // What it was is over, and has left nothing.
            Some(again) => assert!(std::mem::replace(&mut tx, again).is_aborted()),
            None => break,
        }
    }
    assert_eq!((attempts, number(&store, "count")), (3, 21));
    assert!(tx.has_ended() && tx.commit_or_again().is_err());
    let (mut feed, mut said) = (store.changes(drumlin::Seq(0)).unwrap(), Vec::new());
    while let Some(commit) = feed.next(Some(Duration::ZERO)).unwrap() {
        said.extend(commit.messages().map(str::to_owned));
    }
    assert_eq!(said, ["counted"]);
}
