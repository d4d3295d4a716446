//! Triggers, the change feed, projections by name, export and import.

use std::sync::Arc;
use std::time::Duration;

use drumlin::base::Seq;
use drumlin::catalog::{
    Action, Condition, Event, Field, Pattern, Payload, Projection, PutOptions, TableAction, TriggerFilter,
};
use drumlin::storage::SimDisk;
use drumlin::store::{Mode, Options, TriggerEvent, TriggerFn};
use drumlin::table::VersionKind;
use drumlin::{ErrorKind, Store, Tables};
use parking_lot::Mutex;
use serde_json::json;

use crate::support::{batch, numbered, open};

type Heard = Arc<Mutex<Vec<String>>>;

fn filter(pattern: &str, actions: &[Action], priority: i32) -> TriggerFilter {
    TriggerFilter { pattern: Pattern::new(pattern).unwrap(), actions: actions.to_vec(), priority }
}

fn hear(heard: &Heard) -> TriggerFn {
    let heard = heard.clone();
    Arc::new(move |call| {
        heard.lock().push(match &call.event {
            TriggerEvent::Node(event) => format!("{} {:?} {}", call.trigger, event.action, event.path),
            TriggerEvent::Resync => format!("{} resync", call.trigger),
        });
        Ok(())
    })
}

fn take(store: &Store, heard: &Heard) -> Vec<String> {
    assert!(store.tree().wait_for_triggers(Some(Duration::from_secs(20))).unwrap());
    std::mem::take(&mut heard.lock())
}

#[test]
fn triggers_are_called_in_order_by_priority_and_a_failure_stops_none() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let heard = Heard::default();
    let low = store.tree().on(filter("a/*", &[], -1), hear(&heard)).unwrap();
    store.tree().on(filter("a/*", &[Action::Delete], 5), Arc::new(|_| Err("no luck".into()))).unwrap();
    store.tree().on(filter("a/*", &[Action::Delete], 4), Arc::new(|_| panic!("never mind"))).unwrap();
    let high = store.tree().on(filter("**", &[Action::Create], 1), hear(&heard)).unwrap();
    // Deletes are matched against the previous state.
    let two = Condition::payload(Payload::from(2));
    let was = TriggerFilter {
        pattern: Pattern::new("a/*").unwrap().and(two).unwrap(),
        ..filter("a/*", &[Action::Delete], 0)
    };
    let was = store.tree().on(was, hear(&heard)).unwrap();
    store
        .transact(|tx| {
            tx.tree().put("a/x", Payload::from(1))?;
            tx.tree().put("b", Payload::from(1))?;
            tx.tree().put("a/x", Payload::from(2))?;
            tx.tree().delete("a/x", None)?;
            tx.tree().put("a/x", Payload::from(3))?;
            tx.tree().delete("a/x", None).map(drop)
        })
        .unwrap();
    let expected = [
        format!("{high} Create a/x"),
        format!("{low} Create a/x"),
        format!("{high} Create b"),
        format!("{low} Update a/x"),
        format!("{was} Delete a/x"),
        format!("{low} Delete a/x"),
        format!("{high} Create a/x"),
        format!("{low} Create a/x"),
        format!("{low} Delete a/x"),
    ];
    assert_eq!(take(&store, &heard), expected);
    let failures = store.tree().trigger_failures().unwrap();
    assert_eq!(failures.len(), 4);
    assert_eq!((failures[0].path.as_str(), failures[0].error.as_str()), ("a/x", "no luck"));
    assert!(store.tree().trigger_failures().unwrap().is_empty());
    store.tree().off(&low).unwrap();
    assert_eq!(store.tree().off(&low).unwrap_err().kind(), ErrorKind::NotFound);
    store.tree().put("a/y", Payload::from(1)).unwrap();
    assert_eq!(take(&store, &heard), [format!("{high} Create a/y")]);
}

#[test]
fn a_trigger_may_commit_and_a_slow_one_delays_no_commit() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let inner = store.clone();
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    store
        .tree()
        .on(
            filter("in/*", &[], 0),
            Arc::new(move |call| {
                let TriggerEvent::Node(event) = &call.event else { return Ok(()) };
                gate.lock().recv().unwrap();
                let name = event.path.rsplit('/').next().unwrap();
                inner.tree().put(&format!("out/{name}"), Payload::from(1)).map(drop).map_err(|e| e.to_string())?;
                let waits = inner.tree().wait_for_triggers(None).unwrap_err();
                assert_eq!(waits.kind(), ErrorKind::InvalidArgument);
                Ok(())
            }),
        )
        .unwrap();
    for n in 0..20 {
        store.tree().put(&format!("in/{n}"), Payload::from(n)).unwrap();
    }
    assert_eq!(store.tree().count("out/*").unwrap(), 0);
    assert!(!store.tree().wait_for_triggers(Some(Duration::from_millis(10))).unwrap());
    (0..20).for_each(|_| go.send(()).unwrap());
    assert!(store.tree().wait_for_triggers(Some(Duration::from_secs(20))).unwrap());
    assert_eq!(store.tree().count("out/*").unwrap(), 20);
    assert!(store.tree().trigger_failures().unwrap().is_empty());
}

// faults: crash x feed
#[test]
fn durable_triggers_are_called_at_least_once_over_restarts_and_crashes() {
    let disk = SimDisk::new();
    let heard = Heard::default();
    let all = || filter("q/*", &[], 0);
    let store = open(&disk).unwrap();
    store.tree().put("q/before", Payload::from(0)).unwrap();
    store.tree().on_durable("mail", all(), hear(&heard)).unwrap();
    store.tree().put("q/1", Payload::from(1)).unwrap();
    assert_eq!(take(&store, &heard), ["mail Create q/1"]);
    store.close().unwrap();
    drop(store);
    // Not called while no process has registered it; then once for everything that happened in between.
    let store = open(&disk).unwrap();
    assert_eq!(store.tree().triggers().unwrap(), ["mail"]);
    store.tree().put("q/2", Payload::from(2)).unwrap();
    store.tree().put("other", Payload::from(2)).unwrap();
    store.tree().on_durable("mail", all(), hear(&heard)).unwrap();
    store.tree().put("q/3", Payload::from(3)).unwrap();
    assert_eq!(take(&store, &heard), ["mail Create q/2", "mail Create q/3"]);
    // A crash in the middle of the call: it is called again.
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let (gate, inner) = (Mutex::new(gate), hear(&heard));
    let slow: TriggerFn = Arc::new(move |call| {
        gate.lock().recv().unwrap();
        inner(call)
    });
    store.tree().on_durable("mail", all(), slow).unwrap();
    store.tree().put("q/4", Payload::from(4)).unwrap();
    let after_crash = disk.crash(1);
    go.send(()).unwrap();
    assert_eq!(take(&store, &heard), ["mail Create q/4"]);
    drop(store);
    let store = open(&after_crash).unwrap();
    store.tree().on_durable("mail", all(), hear(&heard)).unwrap();
    // Also for what it had been called for, if that had not been recorded.
    assert!(take(&store, &heard).ends_with(&["mail Create q/4".to_owned()]));
    store.close().unwrap();
    drop(store);
    // The log is cut before it has been called for all.
    let store = open(&after_crash).unwrap();
    store.tree().put("q/5", Payload::from(5)).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.tree().on_durable("mail", all(), hear(&heard)).unwrap();
    store.tree().put("q/6", Payload::from(6)).unwrap();
    assert_eq!(take(&store, &heard), ["mail resync", "mail Create q/6"]);
    store.tree().off("mail").unwrap();
    store.tree().put("q/7", Payload::from(7)).unwrap();
    assert!(take(&store, &heard).is_empty() && store.tree().triggers().unwrap().is_empty());
    assert!(store.tree().on_durable("", all(), hear(&heard)).is_err());
}

#[test]
fn the_feed_tells_nodes_and_tables_and_says_when_it_cannot() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let mut feed = store.changes(Seq(0)).unwrap();
    assert!(feed.next(Some(Duration::ZERO)).unwrap().is_none());
    store.write("t/a", batch(&numbered(0, 3)), &Default::default()).unwrap();
    store.tree().put("n", Payload::from(1)).unwrap();
    store.table("t/a").delete("id = 1", &Default::default()).unwrap();
    store.drop("t/a").unwrap();
    store.undrop("t/a", Some("t/b")).unwrap();
    let tell = |feed: &mut drumlin::store::ChangeFeed| {
        let mut told = Vec::new();
        while let Some(commit) = feed.next(Some(Duration::ZERO)).unwrap() {
            for event in commit.events().unwrap() {
                told.push(match event {
                    Event::Table(event) => (event.path, Some(event.action)),
                    Event::Node(event) => (event.path, None),
                });
            }
        }
        told
    };
    let version = |kind| Some(TableAction::Version(kind));
    let expected = [
        ("t/a".to_owned(), version(VersionKind::Write)),
        ("n".to_owned(), None),
        ("t/a".to_owned(), version(VersionKind::Delete)),
        ("t/a".to_owned(), Some(TableAction::Drop)),
        ("t/b".to_owned(), Some(TableAction::Undrop)),
    ];
    assert_eq!(tell(&mut feed), expected);
    assert_eq!(tell(&mut store.changes(Seq(0)).unwrap()), expected);
    assert_eq!(store.changes(Seq(99)).err().unwrap().kind(), ErrorKind::InvalidArgument);
    // Another process follows.
    let read = Options { mode: Mode::Read, ..Options::default() };
    let reader = drumlin::store::open_on(
        Arc::new(disk.clone()),
        crate::support::env(&Arc::new(drumlin::base::ManualClock::new(drumlin::base::Timestamp(0))), 1, 1),
        "sim",
        read,
    )
    .unwrap();
    let mut followed = reader.changes(reader.seq().unwrap()).unwrap();
    let heard = Heard::default();
    let trigger = reader.tree().on(filter("m*", &[], 0), hear(&heard)).unwrap();
    let each = |path: &str, _: &Payload| vec![(vec![Payload::try_from(path).unwrap()], Payload::from(1))];
    reader.tree().put_projection_fn("f", Pattern::new("m*").unwrap(), true, Arc::new(each)).unwrap();
    store.tree().put("m", Payload::from(1)).unwrap();
    assert_eq!(tell(&mut followed), [("m".to_owned(), None)]);
    assert_eq!(take(&reader, &heard), [format!("{trigger} Create m")]);
    store.tree().put("m2", Payload::from(1)).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.tree().projection("f").unwrap().count(), 2);
    let cut = store.changes(Seq(1)).err().unwrap();
    assert!(cut.kind() == ErrorKind::SnapshotExpired && cut.message().contains("since commit 1"), "{cut}");
    // A waiting feed is woken by a commit, and by closing.
    let mut feed = store.changes(store.seq().unwrap()).unwrap();
    let (woken, closed) = std::thread::scope(|scope| {
        let waiting = scope.spawn(move || (feed.next(None).unwrap().is_some(), feed.next(None).err()));
        std::thread::sleep(Duration::from_millis(20));
        store.tree().put("wake", Payload::from(1)).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        store.close().unwrap();
        waiting.join().unwrap()
    });
    assert!(woken && closed.unwrap().kind() == ErrorKind::Closed);
}

#[test]
fn projections_are_replaced_in_place_last_and_refuse_what_cannot_be() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let fields = |texts: &[&str]| texts.iter().map(|text| Field::new(text).unwrap()).collect::<Vec<_>>();
    let projection = |pattern: &str, key: &str| Projection {
        pattern: Pattern::new(pattern).unwrap(),
        key: fields(&[key]),
        value: fields(&["name"]),
        bag: false,
    };
    store.tree().put("u/a", Payload::json(&json!({"team": "x"})).unwrap()).unwrap();
    store.tree().put_projection("p", projection("u/*", "payload.team")).unwrap();
    let held = store.tree().projection("p").unwrap();
    store.tree().put_projection("p", projection("u/*", "name")).unwrap();
    let text = |text: &str| Payload::try_from(text).unwrap();
    assert_eq!(held.get(&[text("x")]).unwrap(), Some(text("a")));
    assert_eq!(store.tree().projection("p").unwrap().get(&[text("x")]).unwrap(), None);
    assert_eq!(store.tree().projection("p").unwrap().get(&[text("a")]).unwrap(), Some(text("a")));
    store.checkpoint(&Default::default()).unwrap();
    store.tree().put("u/b", Payload::from(1)).unwrap();
    store.close().unwrap();
    let store = open(&disk).unwrap();
    assert_eq!(
        (store.tree().projection("p").unwrap().count(), store.tree().projections().unwrap()),
        (2, vec!["p".to_owned()])
    );
    store.tree().drop_projection("p").unwrap();
    assert_eq!(store.tree().projection("p").err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(store.tree().drop_projection("p").unwrap_err().kind(), ErrorKind::NotFound);
    let deep = Pattern::new("u/*").unwrap().and(Condition::HasPayload(true)).unwrap();
    let mut parts: Vec<drumlin::catalog::Part> = vec![drumlin::catalog::Part::If(Condition::HasPayload(true))];
    parts.push(drumlin::catalog::Part::Name("x".into()));
    let above = Projection { pattern: Pattern::from_parts(parts).unwrap(), ..projection("u/*", "name") };
    assert_eq!(store.tree().put_projection("q", above).unwrap_err().kind(), ErrorKind::InvalidArgument);
    store.tree().put_projection("q", Projection { pattern: deep, ..projection("u/*", "name") }).unwrap();
    assert_eq!(store.tree().projection("q").unwrap().count(), 2);
    assert_eq!(
        store.tree().put_projection("", projection("u/*", "name")).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    // A projection whose function panics gives no entry, and does not refuse the commit.
    store.tree().put_projection_fn("f", Pattern::new("bad/*").unwrap(), true, Arc::new(|_, _| panic!("no"))).unwrap();
    store.tree().put("bad/1", Payload::from(1)).unwrap();
    assert_eq!(store.tree().projection("f").unwrap().count(), 0);
    assert_eq!(
        store.tree().put_projection("f", projection("u/*", "name")).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
}

#[test]
fn nodes_are_exported_and_imported_whole_or_not_at_all() {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.tree().put("a/ü", Payload::json(&json!({"n": [1, 2.5, null], "t": "x"})).unwrap()).unwrap();
    store.tree().put("a/b/c", Payload::bytes(&[0, 255, 16]).unwrap()).unwrap();
    let keep_while = Some(vec![("a/z".to_owned(), Condition::Exists(true))]);
    store.tree().put("a/z", Payload::from(1)).unwrap();
    store.tree().put_with("a/lives", Payload::from(2), PutOptions { keep_while, ..PutOptions::default() }).unwrap();
    store.tree().put("b", Payload::from(1)).unwrap();
    let mut text = Vec::new();
    assert_eq!(store.tree().export("a/**", &mut text, &Default::default()).unwrap(), 4);
    let other = open(&SimDisk::in_memory()).unwrap();
    let report = other.tree().import(&mut &text[..], None, &Default::default()).unwrap();
    assert_eq!((report.created, report.updated), (4, 0));
    assert_eq!(other.tree().get_many("**").unwrap(), store.tree().get_many("a/**").unwrap());
    let report = other.tree().import(&mut &text[..], Some("copy"), &Default::default()).unwrap();
    assert_eq!((report.created, other.tree().count("copy/a/*").unwrap()), (4, 4));
    other.tree().delete("copy/a/z", None).unwrap();
    assert!(!other.tree().exists("copy/a/lives").unwrap() && other.tree().exists("a/lives").unwrap());
    let seq = other.seq().unwrap();
    for (bad, says) in [
        ("{\"path\":\"x\",\"payload\":1}\n{\"path\":\"y\"}", "line 2"),
        ("{\"path\":\"x/../y\",\"payload\":1}", "'..'"),
        ("{\"path\":\"x\",\"bytes\":\"0\"}", "hexadecimal"),
        ("{\"path\":\"x\",\"payload\":1,\"more\":1}", "'more'"),
        ("[1]", "line 1"),
    ] {
        let e = other.tree().import(&mut bad.as_bytes(), None, &Default::default()).unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains(says), "{bad}: {e}");
    }
    assert_eq!(other.seq().unwrap(), seq);
}
