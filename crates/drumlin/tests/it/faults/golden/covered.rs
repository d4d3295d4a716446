//! What golden stores hold that have snapshots of patterns, and tables that have left them: see golden.rs.

use drumlin::store::AsOf;
use drumlin::{Existing, Store, Tables};

use crate::support::{batch, numbered, read};

fn write(store: &Store, path: &str, from: i64) -> drumlin::Result<()> {
    store.write(path, batch(&numbered(from, 3)), &Default::default()).map(drop)
}

/// The checkpoint that follows puts them into the catalog.
pub fn build(store: &Store) -> drumlin::Result<()> {
    for (n, path) in ["covered/x", "covered/y", "covered/z"].iter().enumerate() {
        write(store, path, 10 * n as i64)?;
    }
    store.snapshot("covered", "covered/*")?;
    store.drop("covered/y")?;
    write(store, "covered/y", 40)?;
    store.relocate("covered/z", "covered/moved", Existing::Refuse).map(drop)
}

/// The same in the log.
pub fn build_in_log(store: &Store) -> drumlin::Result<()> {
    store.snapshot("covered later", "covered/**")?;
    write(store, "covered/x", 50)
}

pub fn check(store: &Store) {
    let first = |path: &str, name: &str| read(store, path, AsOf::Snapshot(name.into())).ok().map(|rows| rows[0].0);
    let then = [("x", 0), ("y", 10), ("z", 20), ("moved", 20)];
    let later = [("x", 0), ("y", 40), ("moved", 20)];
    for (name, held) in [("covered", &then[..]), ("covered later", &later[..])] {
        for (path, number) in held {
            assert_eq!(first(&format!("covered/{path}"), name), Some(*number), "{path} in '{name}'");
        }
    }
    assert_eq!(first("covered/z", "covered later"), None);
    let snapshots = store.snapshots().unwrap();
    let tables = |name: &str| {
        let snapshot = snapshots.iter().find(|snapshot| snapshot.name == name).unwrap();
        (snapshot.tables, snapshot.versions().unwrap().len())
    };
    assert_eq!((tables("covered"), tables("covered later")), ((3, 3), (3, 3)));
}
