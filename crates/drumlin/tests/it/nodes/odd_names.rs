//! Hostile names: each is refused and nothing is changed, or it comes back unchanged. None becomes the name of an object.

use std::collections::BTreeSet;
use std::sync::Arc;

use drumlin::base::{Seq, Version};
use drumlin::catalog::{Payload, Retention};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, TableOptions};
use drumlin::{ErrorKind, Result, Store, Tables};

use crate::support::{batch, numbered, open, read};

fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "..",
        ".",
        "../x",
        "a/../b",
        "a/./b",
        "/a",
        "a/",
        "a//b",
        "",
        " ",
        "a\0b",
        "a%2fb",
        "..%2f..%2fx",
        "a\\..\\b",
        "C:\\x",
        "con",
        "lock",
        "root",
        "format",
        "log/synced",
        "blocks/1/0.blk",
        "*",
        "a*b",
        "?",
        "[a]",
        "{a}",
        "~",
        "$HOME",
        "a\nb",
        "\u{202e}abc",
        "\u{1F600}",
        "e\u{301}",
        "\u{e9}",
        "STRASSE",
        "stra\u{df}e",
        "\u{feff}x",
        "a;rm -rf",
        "'",
        "\"",
        "`x`",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("x".repeat(64 << 10));
    names.push(vec!["d"; 400].join("/"));
    names
}

/// An operation with a name.
type Work = (&'static str, fn(&Store, &str) -> Result<()>);

const WORK: [Work; 20] = [
    ("write", |store, name| store.write(name, batch(&numbered(0, 3)), &Default::default()).map(drop)),
    ("append", |store, name| store.append(name, batch(&numbered(3, 3)), &Default::default()).map(drop)),
    ("delete rows", |store, name| store.table(name).delete("id = 4", &Default::default()).map(drop)),
    ("create by key", |store, name| {
        let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
        store.table(&format!("k/{name}")).create(batch(&[]).schema(), key).map(drop)
    }),
    ("upsert", |store, name| {
        store.table(&format!("k/{name}")).upsert(batch(&numbered(0, 3)), &Default::default()).map(drop)
    }),
    ("look-up", |store, name| {
        let keys = batch(&numbered(0, 5)).project(&[0]).unwrap();
        store.table(&format!("k/{name}")).get_many(&keys, &Default::default()).map(drop)
    }),
    ("snapshot", |store, name| store.snapshot(name, "**").map(drop)),
    ("snapshot of", |store, name| store.snapshot(&format!("of {}", name.len()), name).map(drop)),
    ("read", |store, name| read(store, name, AsOf::Newest).map(drop)),
    ("read a snapshot", |store, name| read(store, "plain", AsOf::Snapshot(name.into())).map(drop)),
    ("put", |store, name| store.tree().put(name, Payload::from(1)).map(drop)),
    ("transaction", |store, name| {
        store.transact(|tx| {
            tx.tree().put(&format!("n/{name}"), Payload::from(1))?;
            tx.append(name, batch(&numbered(9, 1)), &Default::default())
        })
    }),
    ("retention", |store, name| store.set_retention(name, Some(Retention::KeepLast(9)))),
    ("list", |store, name| store.tree().list(name).map(drop)),
    ("checkpoint", |store, _| store.checkpoint(&Default::default()).map(drop)),
    ("drop", |store, name| store.drop(name).map(drop)),
    ("undrop", |store, name| store.undrop(name, None)),
    ("drop a snapshot", |store, name| store.drop_snapshot(name)),
    ("delete versions", |store, name| {
        store.delete_versions(&[(name.to_owned(), vec![Version(0)])], Default::default()).map(drop)
    }),
    ("reclaim", |store, _| store.reclaim(&Default::default()).map(drop)),
];

fn tables(store: &Store) -> BTreeSet<String> {
    store.tree().list("**").unwrap().into_iter().filter(|entry| entry.table.is_some()).map(|entry| entry.path).collect()
}

// faults: odd name x write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, open, read, look-up, nodes
// faults: odd name x transaction, feed, verify, salvage
#[test]
fn names_are_refused_or_come_back_as_they_were() {
    let (mut taken, mut refused) = (0, 0);
    for name in names() {
        let disk = SimDisk::in_memory();
        let store = open(&disk).unwrap();
        store.write("plain", batch(&numbered(0, 3)), &Default::default()).unwrap();
        let mut feed = store.changes(Seq(0)).unwrap();
        for (what, work) in WORK {
            let before = (store.seq().unwrap(), tables(&store));
            let shown = || format!("{what} {:?}", &name.chars().take(20).collect::<String>());
            match work(&store, &name) {
                Ok(()) => taken += 1,
                Err(e) => {
                    use ErrorKind::{AlreadyExists, InvalidArgument, NotFound};
                    assert!([InvalidArgument, NotFound, AlreadyExists].contains(&e.kind()), "{}: {e}", shown());
                    assert_eq!((store.seq().unwrap(), tables(&store)), before, "{}: {e}", shown());
                    assert!(
                        e.to_string().len() < 2000 + name.len(),
                        "{}: a message of {} bytes: {}",
                        shown(),
                        e.to_string().len(),
                        &e.to_string()[..80]
                    );
                    refused += 1;
                }
            }
            let there = tables(&store);
            assert!(there.len() <= before.1.len() + 1, "{}: {there:?}", shown());
            let new: Vec<&String> = there.difference(&before.1).collect();
            let expected = [name.clone(), format!("k/{name}")];
            assert!(new.iter().all(|path| expected.contains(path)), "{}: made {new:?}", shown());
        }
        while let Some(commit) = feed.next(Some(std::time::Duration::ZERO)).unwrap() {
            commit.events().unwrap();
        }
        assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
        let left = tables(&store);
        store.close().unwrap();
        for (file, _) in disk.files() {
            let known = ["format", "lock", "log/", "catalog/", "blocks/"].iter().any(|known| file.starts_with(known));
            let plain = file.chars().all(|c| c.is_ascii_alphanumeric() || "/.-".contains(c));
            assert!(known && plain, "{file}");
        }
        let store = open(&disk).unwrap();
        assert_eq!(tables(&store), left);
        // A salvaged store has the same names.
        let to = SimDisk::in_memory();
        let source = Arc::new(drumlin::storage::FileStorage::new(Arc::new(disk.fork())));
        let target = drumlin::store::SalvageTarget::Folder(Arc::new(to.clone()));
        let env = crate::support::env(&Arc::default(), 1, 1);
        target.salvage(source, env, Default::default(), &Default::default()).unwrap();
        assert_eq!(tables(&open(&to).unwrap()), left);
    }
    assert!(taken > 100 && refused > 100, "{taken} taken, {refused} refused");
}
