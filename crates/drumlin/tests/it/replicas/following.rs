//! A replica has every commit of its source, in order, whatever is done there.

use std::sync::Arc;

use drumlin::storage::{Disk, SimDisk, names};
use drumlin::{ErrorKind, Options, Retention, Tables};

use super::{Pair, Worked, same, sound};
use crate::faults::crash::workload;
use crate::models::random::check;
use crate::processes::shared_fence::Hooked;
use crate::seeds;
use crate::support::{Checked, batch, env, numbered, open_inline, open_shared, open_with};

/// The blocks on a disk.
fn blocks(disk: &SimDisk) -> Vec<(String, u64)> {
    let files = disk.files().into_iter().filter(|(name, _)| name.starts_with(names::BLOCKS));
    files.map(|(name, bytes)| (name, bytes.len() as u64)).collect()
}

/// Changes a byte in the first row group of a block, or changes it back.
fn flip(disk: &SimDisk, name: &str) {
    let mut bytes = disk.files().into_iter().find(|(file, _)| file == name).unwrap().1;
    bytes[70] ^= 1;
    disk.damage(name, bytes);
}

#[test]
fn a_replica_shows_what_its_source_shows() {
    let (mut added, mut whole) = (0, 0);
    seeds::each(900..918, 3, |seed| {
        let mut pair = Pair::new();
        let open = [open_with, open_inline, open_shared][seed as usize % 3];
        pair.lease = seed % 2 == 0;
        let ops = workload(seed, 60);
        let mut worked = Worked::new(&pair, open);
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut at = 0;
        let mut reader = None;
        while at < ops.len() {
            let to = (at + rng.usize(1..9)).min(ops.len());
            worked.work(&pair, &ops[at..to]);
            at = to;
            let report = pair.follow().unwrap();
            (added, whole) = (added + report.entries, whole + report.whole);
            worked.store.refresh().unwrap();
            let fresh = pair.read().unwrap();
            same(&fresh, &worked.model.0, &worked.store);
            // One that was open before, too.
            let reader = reader.get_or_insert(fresh);
            reader.refresh().unwrap();
            check(reader, &worked.model.0);
        }
        // Again, without news.
        let again = pair.follow().unwrap();
        assert!(again.blocks == 0, "{again:?}");
        // Nothing is left there that the source does not have, or had when it was last brought over.
        let source = blocks(&pair.source);
        let strays: Vec<_> = blocks(&pair.target).into_iter().filter(|block| !source.contains(block)).collect();
        assert!(strays.is_empty() || worked.store.verify(&Default::default()).unwrap().faults.is_empty(), "{strays:?}");
        sound(&pair.read().unwrap());
    });
    assert!(added > 200 && whole > 10, "{added} {whole}");
}

#[test]
fn with_a_lease_each_commit_is_added_by_itself() {
    assert_eq!(cut_while_leased(), Ok(()));
}

/// The source cuts its log and reclaims again and again while commits are brought over.
pub fn cut_while_leased() -> Checked {
    let mut pair = Pair::new();
    pair.lease = true;
    let store = open_shared(&pair.source, &pair.clock, 2).unwrap();
    store.table("t").write(batch(&numbered(0, 50)), &Default::default()).unwrap();
    let (mut turns, source) = (0, store.clone());
    let hooked = Hooked::new(&pair.target, move || {
        turns += 1;
        if turns % 4 == 0 && turns < 200 {
            source.table("t").append(batch(&numbered(turns, 3)), &Default::default()).unwrap();
            source.checkpoint(&Default::default()).unwrap();
            source.reclaim(&Default::default()).unwrap();
        }
    });
    let report = pair.follow_through(Arc::new(pair.source.clone()), Arc::new(hooked), &pair.options()).unwrap();
    sound(&pair.read().unwrap());
    match report.entries > 20 && report.whole <= 1 {
        true => Ok(()),
        false => Err(format!("commits were passed by: {report:?}")),
    }
}

#[test]
fn blocks_that_go_while_they_are_brought_over_are_not_missed() {
    for shared in [false, true] {
        for lease in [false, true] {
            let mut pair = Pair::new();
            pair.lease = lease;
            let open = if shared { open_shared } else { open_with };
            let store = open(&pair.source, &pair.clock, 2).unwrap();
            for table in 0..4 {
                store.table(&format!("t/{table}")).write(batch(&numbered(table, 200)), &Default::default()).unwrap();
            }
            pair.follow().unwrap();
            for round in 0..30 {
                let (mut turn, source) = (0, store.clone());
                let hooked = Hooked::new(&pair.source, move || {
                    turn += 1;
                    if turn == round + 1 {
                        for table in 0..4 {
                            let rows = batch(&numbered(round, 150));
                            source.table(&format!("t/{table}")).write(&rows, &Default::default()).unwrap();
                            source.set_retention(&format!("t/{table}"), Some(Retention::KeepLast(1))).unwrap();
                        }
                        source.checkpoint(&Default::default()).unwrap();
                        source.reclaim(&Default::default()).unwrap();
                    }
                });
                store.table("t/0").append(batch(&numbered(7, 90)), &Default::default()).unwrap();
                let target: Arc<dyn Disk> = Arc::new(pair.target.clone());
                pair.follow_through(Arc::new(hooked), target, &pair.options()).unwrap();
                sound(&pair.read().unwrap());
            }
            pair.follow().unwrap();
            store.refresh().unwrap();
            let reader = pair.read().unwrap();
            assert!(store.seq().unwrap().0 - reader.seq().unwrap().0 <= 2);
            sound(&reader);
        }
    }
}

#[test]
fn it_is_read_and_never_written() {
    let pair = Pair::new();
    let store = open_with(&pair.source, &pair.clock, 2).unwrap();
    store.table("t").write(batch(&numbered(0, 5)), &Default::default()).unwrap();
    pair.follow().unwrap();
    let files = pair.target.files();
    let told = open_shared(&pair.target, &pair.clock, 2).unwrap_err();
    assert!(told.kind() == ErrorKind::InvalidArgument && told.to_string().contains("replica of source"), "{told}");
    assert_eq!(pair.target.files(), files, "a refused call changed something");
    let reader = pair.read().unwrap();
    let told = reader.table("t").append(batch(&numbered(9, 1)), &Default::default()).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::InvalidArgument);
    // Neither another store's, nor over what is there.
    let other = Pair { target: pair.target.clone(), ..Pair::new() };
    let open = |disk: &SimDisk| {
        let disk = Arc::new(disk.clone());
        drumlin::store::open_on(disk, env(&pair.clock, 4711, 2), "sim", Options::default()).unwrap()
    };
    open(&other.source).tree().put("n", drumlin::Payload::from(1)).unwrap();
    let told = other.follow().unwrap_err();
    assert!(told.kind() == ErrorKind::InvalidArgument && told.to_string().contains("use another place"), "{told}");
    let over = Pair { target: pair.source.clone(), ..Pair::new() };
    open(&over.source).tree().put("n", drumlin::Payload::from(1)).unwrap();
    assert_ne!(over.follow().unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(Pair { source: SimDisk::new(), ..Pair::new() }.follow().unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn what_is_damaged_at_the_source_does_not_come_over() {
    assert_eq!(damaged_at_the_source(), Ok(()));
}

/// Damages a block at the source before it is copied.
pub fn damaged_at_the_source() -> Checked {
    let pair = Pair::new();
    let store = open_with(&pair.source, &pair.clock, 2).unwrap();
    store.table("t").write(batch(&numbered(0, 500)), &Default::default()).unwrap();
    pair.follow().unwrap();
    store.table("u").write(batch(&numbered(0, 500)), &Default::default()).unwrap();
    let (name, _) = blocks(&pair.source).into_iter().max().unwrap();
    flip(&pair.source, &name);
    let told = pair.follow();
    if !told.as_ref().is_err_and(|e| e.kind() == ErrorKind::Corrupt) {
        return Err(format!("a damaged block came over: {told:?}"));
    }
    // What was there before is still shown.
    let reader = pair.read().unwrap();
    if reader.tables("**").unwrap() != ["t"] {
        return Err("it shows what it does not have".into());
    }
    sound(&reader);
    flip(&pair.source, &name);
    pair.follow().unwrap();
    sound(&pair.read().unwrap());
    Ok(())
}
