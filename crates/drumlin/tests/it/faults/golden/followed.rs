//! What golden stores hold whose tables have followers: see golden.rs.

use std::time::Duration;

use drumlin::catalog::Retention;
use drumlin::{FollowFrom, FollowOptions, Store, Tables};

use crate::support::{batch, numbered, rows};

fn follow(store: &Store, path: &str) -> drumlin::Result<()> {
    store.write(path, batch(&numbered(0, 2)), &Default::default())?;
    store.set_retention(path, Some(Retention::KeepLast(1)))?;
    let keep = Duration::from_secs(1_000 * 365 * 24 * 3_600);
    let options = FollowOptions { follower: Some("billing".into()), keep, ..FollowOptions::default() };
    let mut feed = store.table(path).follow(&FollowFrom::Beginning, &options)?;
    feed.next(Some(Duration::ZERO))?;
    feed.acknowledge()?;
    for n in 2..4 {
        store.append(path, batch(&numbered(n, 1)), &Default::default())?;
    }
    Ok(())
}

/// The checkpoint that follows puts the follower into the catalog.
pub fn build(store: &Store) -> drumlin::Result<()> {
    follow(store, "followed/t")
}

/// The same in the log.
pub fn build_in_log(store: &Store) -> drumlin::Result<()> {
    follow(store, "followed/log")
}

pub fn check(store: &Store) {
    for path in ["followed/t", "followed/log"] {
        let [follower] = store.table(path).followers().unwrap().try_into().unwrap();
        assert_eq!(
            (follower.name.as_str(), follower.place.version().map(|version| version.0)),
            ("billing", Some(0)),
            "{path}"
        );
        let since = FollowFrom::Place(follower.place);
        let mut feed = store.table(path).follow(&since, &Default::default()).unwrap();
        for n in 2..4 {
            let changes = feed.next(Some(Duration::ZERO)).unwrap().unwrap();
            assert_eq!(rows(&[changes.rows]), numbered(n, 1), "{path}");
        }
    }
}
