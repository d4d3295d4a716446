//! The nouns of the API in a transaction: operations of the tree and tables there are all or nothing, recorded as reads, and
//! never wait for themselves.

use std::io::BufReader;
use std::sync::Arc;

use drumlin::storage::SimDisk;
use drumlin::{
    AsOf, Error, ErrorKind, Frame, LookupOptions, Payload, Progress, Projection, Result, Store, TableOptions, Tables,
    Task, Transaction,
};

use crate::support::{batch, numbered, open, read};

fn store() -> Store {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.tree().put("n/1", Payload::from(1)).unwrap();
    store.write("t", batch(&numbered(0, 4)), &Default::default()).unwrap();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k").create(batch(&[]).schema(), key).unwrap();
    store
}

/// Whether a transaction that reads by `look`, and writes something, meets a conflict with `other`.
fn meets(look: impl FnOnce(&Transaction) -> Result<()>, other: impl FnOnce(&Store) -> Result<()>) -> bool {
    let store = store();
    let tx = store.transaction().unwrap();
    look(&tx).unwrap();
    tx.tree().put("mine", Payload::from(1)).unwrap();
    other(&store).unwrap();
    match tx.commit() {
        Ok(_) => false,
        Err(e) if e.kind() == ErrorKind::Conflict => true,
        Err(e) => panic!("{e}"),
    }
}

// faults: concurrent change x transaction
#[test]
fn what_is_listed_or_located_in_a_transaction_is_noted() {
    let project = |store: &Store| {
        let field = |text: &str| drumlin::Field::new(text).unwrap();
        let pattern = drumlin::Pattern::new("n/*")?;
        let projection = Projection { pattern, key: vec![field("name")], value: vec![field("payload")], bag: false };
        store.tree().put_projection("p", projection)
    };
    let node = |store: &Store| store.tree().put("elsewhere", Payload::from(1)).map(drop);
    assert!(meets(|tx| tx.tree().projections().map(drop), project));
    assert!(!meets(|tx| tx.tree().projections().map(drop), node));
    assert!(meets(|tx| tx.table("t").versions().map(drop), |store| store.snapshot("s", "t").map(drop)));
    assert!(!meets(|tx| tx.table("t").versions().map(drop), node));
    let locate = |tx: &Transaction| {
        let view = tx.table("k").view(&AsOf::Newest)?;
        let keys = view.encode_keys(&batch(&numbered(5, 1)))?;
        view.locate(&keys, &mut drumlin::memtable::RowBytes::default()).map(drop)
    };
    let upsert =
        |id: i64| move |store: &Store| store.table("k").upsert(batch(&numbered(id, 1)), &Default::default()).map(drop);
    assert!(meets(locate, upsert(5)));
    assert!(!meets(locate, upsert(6)));
    let look_up =
        |tx: &Transaction| tx.table("k").get_many(&batch(&numbered(5, 1)), &LookupOptions::default()).map(drop);
    assert!(meets(look_up, upsert(5)));
    assert!(!meets(look_up, upsert(6)));
}

#[test]
fn an_import_of_nodes_in_a_transaction_is_all_or_nothing_and_may_use_the_transaction() {
    let store = store();
    let lines = "{\"path\":\"i/1\",\"payload\":1}\n{\"path\":\"i/2\",\"payload\":2,\"keep_while\":[[\"none\",{\"exists\":true}]]}\n";
    store
        .transact(|tx| {
            let refused = tx.tree().import(&mut BufReader::new(lines.as_bytes()), None, &Task::default());
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConditionFailed);
            assert!(!tx.tree().exists("i/1")?);
            tx.tree().put("after", Payload::from(1)).map(drop)
        })
        .unwrap();
    assert!(!store.tree().exists("i/1").unwrap() && store.tree().exists("after").unwrap());

    // A callback that uses the transaction is refused; it does not wait.
    let tx = store.transaction().unwrap();
    let (seen, within) = (Arc::new(std::sync::Mutex::new(Vec::new())), tx.clone());
    let noted = seen.clone();
    let progress = move |_: Progress| {
        noted.lock().unwrap().push(within.tree().get("n/1").map_err(|e| (e.kind(), e.message().to_owned())));
    };
    let task = Task { progress: Some(Arc::new(progress)), ..Task::default() };
    let good = "{\"path\":\"i/1\",\"payload\":1}\n";
    tx.tree().import(&mut BufReader::new(good.as_bytes()), None, &task).unwrap();
    let seen = seen.lock().unwrap();
    let in_use = Err((ErrorKind::InvalidArgument, "the transaction is in use by another call".to_owned()));
    assert_eq!(*seen, [in_use]);
    tx.commit().unwrap();
    assert!(store.tree().exists("i/1").unwrap());
}

#[test]
fn what_cannot_be_taken_back_is_refused_in_a_transaction() {
    let store = store();
    let tx = store.transaction().unwrap();
    for error in [
        tx.tree().drop_projection("p").unwrap_err(),
        tx.tree().triggers().unwrap_err(),
        tx.tree().trigger_failures().unwrap_err(),
        tx.tree().wait_for_triggers(None).unwrap_err(),
        tx.write_each(vec![("t".into(), batch(&numbered(0, 1)).into())], &Default::default()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    // That leaves it as it was.
    tx.append("t", batch(&numbered(4, 1)), &Default::default()).unwrap();
    assert_eq!(tx.table("t").delete("id = 0", &Default::default()).unwrap().version, None);
    assert_eq!(tx.table("t").stat().unwrap().rows, 4);
    tx.commit().unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(read(&store, "t", AsOf::Newest).unwrap(), numbered(1, 4));
}

/// A frame that calls `between` while its rows are pulled.
fn drawn_beside<'a>(rows: &[crate::support::Row], between: impl FnOnce() + 'a) -> Frame<'a> {
    let batch = batch(rows);
    let (schema, mut between) = (batch.schema(), Some(between));
    Frame::new(
        schema,
        std::iter::once_with(move || {
            between.take().expect("drawn once")();
            Ok::<_, Error>(batch)
        }),
    )
}

// faults: concurrent change x upsert
#[test]
fn an_append_to_a_keyed_table_goes_on_after_another_bulk_write_by_every_door() {
    let store = store();
    let none = Default::default();
    let other = |from: i64| {
        let store = store.clone();
        move || drop(store.append("k", batch(&numbered(from, 3)), &Default::default()).unwrap())
    };
    store.append("k", drawn_beside(&numbered(0, 2), other(10)), &none).unwrap();
    store.table("k").append(drawn_beside(&numbered(2, 2), other(20)), &none).unwrap();
    store.append_many(vec![("k".into(), drawn_beside(&numbered(4, 2), other(30)))], &none).unwrap();
    let each = store.append_each(
        vec![
            ("k".into(), drawn_beside(&numbered(6, 2), other(40))),
            ("t".into(), batch(&numbered(4, 1)).into()),
            ("nowhere".into(), batch(&numbered(4, 1)).into()),
        ],
        &none,
    );
    let kinds = each.unwrap().into_iter().map(|answer| answer.err().map(|e| e.kind())).collect::<Vec<_>>();
    assert_eq!(kinds, [None, None, Some(ErrorKind::NotFound)]);
    // A key that was written in between exists, and nothing is written.
    let same = drawn_beside(&numbered(50, 2), other(51));
    assert_eq!(store.append("k", same, &none).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let expected =
        [numbered(0, 8), numbered(10, 3), numbered(20, 3), numbered(30, 3), numbered(40, 3), numbered(51, 3)];
    assert_eq!(read(&store, "k", AsOf::Newest).unwrap(), expected.concat());
    store.checkpoint(&Default::default()).unwrap();
    let report = store.reclaim(&drumlin::ReclaimOptions { audit: true, ..Default::default() }).unwrap();
    assert_eq!((report.orphans, store.verify(&Default::default()).unwrap().faults.len()), (0, 0));
}
