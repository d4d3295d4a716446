//! The same in folders of one process: removed, replaced, copied with shared files, or without a file that says what they are.

use std::path::Path;

use drumlin::catalog::Payload;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, Mode, Options, SyncMode};
use drumlin::{ErrorKind, Result, Store, Tables};

use crate::support::{batch, numbered, read};

type Outcome = std::result::Result<(), String>;

fn open(path: &Path, options: Options) -> Result<Store> {
    Store::open_with(path.to_str().unwrap(), Options { inline_bytes: 0, ..options })
}

fn put(store: &Store, n: i64) -> Result<()> {
    store.tree().put("n", Payload::from(n)).map(drop)
}

fn fill(path: &Path, run: i64) -> Store {
    let store = open(path, Options::default()).unwrap();
    store.write("t", batch(&numbered(run * 10, 100)), &Default::default()).unwrap();
    put(&store, run).unwrap();
    store
}

/// Replaces a folder's contents, as `rm -rf folder/*` and a new start do.
fn empty(path: &Path) {
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_dir() { std::fs::remove_dir_all(entry).unwrap() } else { std::fs::remove_file(entry).unwrap() }
    }
}

fn files(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        let name = entry.file_name().unwrap().to_str().unwrap().to_owned();
        match entry.is_dir() {
            true => all.extend(files(&entry).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes))),
            false => all.push((name, std::fs::read(entry).unwrap())),
        }
    }
    all.sort();
    all
}

/// A writer whose folder was removed, or emptied and filled by another, notices at its next commit.
pub fn removed_while_open() -> Outcome {
    type Work = fn(&Store) -> Result<()>;
    let works: [(&str, Work); 5] = [
        ("put", |store| put(store, 7)),
        ("write", |store| store.write("late", batch(&numbered(0, 90)), &Default::default()).map(drop)),
        ("checkpoint", |store| store.checkpoint(&Default::default()).map(drop)),
        ("refresh", |store| store.refresh().map(drop)),
        ("reclaim", |store| {
            let report = store.reclaim(&Default::default())?;
            if report.failures.is_empty() { Ok(()) } else { put(store, 1) }
        }),
    ];
    for again in [false, true] {
        for (name, work) in works {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s");
            let store = fill(&path, 1);
            store.table("t").delete("id > 20", &Default::default()).unwrap();
            let there = match again {
                false => {
                    std::fs::remove_dir_all(&path).unwrap();
                    Vec::new()
                }
                true => {
                    empty(&path);
                    // By another process, which has a handle of its own.
                    let other = folder.path().join("other");
                    fill(&other, 2).close().unwrap();
                    for (name, bytes) in files(&other) {
                        let to = path.join(name);
                        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
                        std::fs::write(to, bytes).unwrap();
                    }
                    files(&path)
                }
            };
            match work(&store) {
                Err(e) if e.message().contains("another history") => {}
                other => return Err(format!("{name}, made again {again}: {other:?}")),
            }
            match put(&store, 8) {
                Err(e) if e.kind() == ErrorKind::Closed => {}
                other => return Err(format!("after {name}: {other:?}")),
            }
            drop(store);
            if again {
                let now = files(&path);
                if let Some((name, _)) = there.iter().find(|file| !now.contains(file)) {
                    return Err(format!("{name} of the other store was changed"));
                }
            }
        }
    }
    Ok(())
}

// faults: lost log x nodes, write, checkpoint, reclaim
#[test]
fn a_folder_that_was_removed_while_open_is_noticed_at_the_next_commit() {
    removed_while_open().unwrap();
    // Also where commits are synced by time.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let sync = SyncMode::Interval(std::time::Duration::from_secs(3600));
    let store = open(&path, Options { sync, ..Options::default() }).unwrap();
    put(&store, 1).unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    put(&store, 2).unwrap();
    assert!(store.sync().unwrap_err().message().contains("another history"));
}

#[test]
fn a_copy_that_shares_its_files_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("s"), folder.path().join("copy"));
    let link = || {
        let _ = std::fs::remove_dir_all(&copy);
        for (name, _) in files(&path) {
            let to = copy.join(&name);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::hard_link(path.join(&name), to).unwrap();
        }
    };
    let same = |then: &[(String, Vec<u8>)]| {
        let lock =
            |files: &[(String, Vec<u8>)]| files.iter().filter(|(name, _)| name != "lock").cloned().collect::<Vec<_>>();
        assert_eq!(lock(&files(&copy)), lock(then));
    };
    // Linked while it is closed: it goes on in files of its own.
    fill(&path, 1).close().unwrap();
    link();
    let then = files(&copy);
    let store = open(&path, Options::default()).unwrap();
    put(&store, 2).unwrap();
    same(&then);
    // Linked while it is open: the commit that notices is in both, those after it are not.
    link();
    put(&store, 3).unwrap();
    let then = files(&copy);
    (4..7).for_each(|n| put(&store, n).unwrap());
    let own = |files: Vec<(String, Vec<u8>)>| {
        files.into_iter().filter(|(name, _)| name.ends_with(".log")).collect::<Vec<_>>()
    };
    assert_eq!(own(files(&copy)), own(then));
    store.close().unwrap();
    let store = open(&path, Options::default()).unwrap();
    assert_eq!(store.tree().get("n").unwrap(), Some(Payload::from(6)));
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}

/// A reader of a folder whose contents were replaced, by another store or an older state of the same.
pub fn replaced_under_a_reader() -> Outcome {
    for kind in ["another", "older", "grown from older", "gone"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let store = fill(&path, 1);
        let then = files(&path);
        (2..6).for_each(|n| put(&store, n).unwrap());
        let reader = open(&path, Options { mode: Mode::Read, ..Options::default() }).unwrap();
        reader.refresh().unwrap();
        reader.refresh().unwrap();
        drop(store);
        empty(&path);
        let other = folder.path().join("other");
        match kind {
            "another" => drop(fill(&other, 9).close()),
            "gone" => std::fs::create_dir(&other).unwrap(),
            _ => {
                for (name, bytes) in &then {
                    let to = other.join(name);
                    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
                    std::fs::write(to, bytes).unwrap();
                }
                if kind == "grown from older" {
                    let store = open(&other, Options::default()).unwrap();
                    (12..17).for_each(|n| put(&store, n).unwrap());
                    store.close().unwrap();
                }
            }
        }
        for (name, bytes) in files(&other) {
            let to = path.join(name);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::write(to, bytes).unwrap();
        }
        match reader.refresh() {
            Err(e) if e.message().contains("another history") => {}
            other => return Err(format!("{kind}: {other:?}")),
        }
        match read(&reader, "t", AsOf::Newest) {
            Err(e) if e.kind() == ErrorKind::Closed => {}
            other => return Err(format!("{kind}: a read gives {other:?}")),
        }
    }
    Ok(())
}

// faults: lost log, bit rot x read
#[test]
fn a_reader_whose_folder_holds_something_else_gets_an_error() {
    replaced_under_a_reader().unwrap();
}

#[test]
fn a_store_whose_first_file_is_gone_is_not_made_over() {
    let folder = tempfile::tempdir().unwrap();
    for (shared, missing, named) in [(true, "root", "root"), (false, "format", "format"), (false, "log", "log")] {
        let path = folder.path().join(format!("{missing}-{shared}"));
        let store = open(&path, Options { shared, ..Options::default() }).unwrap();
        store.write("t", batch(&numbered(0, 100)), &Default::default()).unwrap();
        store.checkpoint(&Default::default()).unwrap();
        store.close().unwrap();
        let gone = path.join(missing);
        if gone.is_dir() {
            std::fs::remove_dir_all(gone).unwrap()
        } else {
            std::fs::remove_file(gone).unwrap()
        }
        let there = files(&path);
        for (mode, shared) in
            [(Mode::Read, false), (Mode::Write, shared), (Mode::Create, shared), (Mode::Create, false)]
        {
            let told = open(&path, Options { mode, shared, ..Options::default() }).unwrap_err();
            assert_eq!(told.kind(), ErrorKind::Corrupt, "{missing} {mode:?}: {told}");
            assert!(told.message().contains(named) && told.message().contains("salvage") || missing == "log", "{told}");
        }
        let content =
            |files: Vec<(String, Vec<u8>)>| files.into_iter().filter(|(name, _)| name != "lock").collect::<Vec<_>>();
        assert_eq!(content(files(&path)), content(there));
    }
}

#[test]
fn a_mark_that_is_missing_or_damaged_is_a_fault_to_verify() {
    for damage in [None, Some(vec![0; 24]), Some(Vec::new())] {
        for mode in [Mode::Read, Mode::Write] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s");
            let store = fill(&path, 1);
            store.checkpoint(&Default::default()).unwrap();
            assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
            store.close().unwrap();
            let mark = path.join("log/synced");
            match &damage {
                None => std::fs::remove_file(&mark).unwrap(),
                Some(bytes) => std::fs::write(&mark, bytes).unwrap(),
            }
            let store = open(&path, Options { mode, ..Options::default() }).unwrap();
            let faults = store.verify(&Default::default()).unwrap().faults;
            assert!(faults.len() == 1 && faults[0].error.contains("log/synced"), "{mode:?} {damage:?}: {faults:?}");
        }
    }
}

/// After a loss was accepted, the numbers of lost sessions are not given again: their blocks are still there.
pub fn go_on_after_a_loss() -> Outcome {
    let disk = SimDisk::new();
    let clock = std::sync::Arc::new(drumlin::base::ManualClock::new(drumlin::base::Timestamp(1_000_000)));
    let open = |accept_loss: bool, seed: u64| {
        let options = Options { accept_loss, inline_bytes: 0, checkpoint_log_bytes: 0, ..Options::default() };
        drumlin::store::open_on(std::sync::Arc::new(disk.clone()), crate::support::env(&clock, seed, 2), "sim", options)
    };
    let write = |store: &Store, path: &str, n: i64| {
        store.write(path, batch(&numbered(n, 200)), &Default::default()).map(drop).map_err(|e| format!("{path}: {e}"))
    };
    let store = open(false, 1).unwrap();
    write(&store, "a", 0)?;
    store.close().unwrap();
    let kept = disk.files().into_iter().find(|(name, _)| name.ends_with(".log")).unwrap();
    let store = open(false, 2).unwrap();
    (0..6).try_for_each(|n| write(&store, &format!("c{n}"), n))?;
    store.close().unwrap();
    disk.damage(&kept.0, kept.1);
    assert_eq!(open(false, 3).unwrap_err().kind(), ErrorKind::Corrupt);
    let store = open(true, 4).map_err(|e| e.to_string())?;
    (0..9).try_for_each(|n| write(&store, &format!("new{n}"), n))?;
    store.reclaim(&Default::default()).map_err(|e| e.to_string())?;
    (0..3).try_for_each(|n| write(&store, &format!("more{n}"), n))?;
    let verified = store.verify(&Default::default()).map_err(|e| e.to_string())?;
    match verified.faults.is_empty() && verified.orphans.is_empty() {
        true => Ok(()),
        false => Err(format!("{verified:?}")),
    }
}

// faults: lost log x open, write, reclaim
#[test]
fn a_store_goes_on_after_a_loss_was_accepted() {
    go_on_after_a_loss().unwrap();
}

/// Segments of two copies of a store that went ways of their own: each is sound, and together they are no log.
pub fn mixed_segments() -> Outcome {
    let clock = std::sync::Arc::new(drumlin::base::ManualClock::new(drumlin::base::Timestamp(1_000_000)));
    let options = || Options {
        log: drumlin::log::LogOptions { segment_bytes_max: 600, ..Default::default() },
        ..Options::default()
    };
    let open = |disk: &SimDisk, seed: u64| {
        drumlin::store::open_on(
            std::sync::Arc::new(disk.clone()),
            crate::support::env(&clock, seed, 2),
            "sim",
            options(),
        )
    };
    let (disk, mut next) = (SimDisk::new(), 0);
    put(&open(&disk, 1).unwrap(), 0).unwrap();
    let copy = disk.fork();
    disk.revive();
    for disk in [&disk, &copy] {
        next += 10;
        let store = open(disk, next as u64).unwrap();
        (0..30).for_each(|n| put(&store, next + n % 10).unwrap());
        drop(store);
    }
    let logs = |disk: &SimDisk| {
        let mut logs: Vec<_> = disk.files().into_iter().filter(|(name, _)| name.ends_with(".log")).collect();
        logs.sort();
        logs
    };
    let (ours, theirs) = (logs(&disk), logs(&copy));
    assert!(ours.len() > 3 && ours.iter().map(|(name, _)| name).eq(theirs.iter().map(|(name, _)| name)));
    // The last ones are those of the copy.
    for from in 1..ours.len() {
        let mixed = disk.fork();
        theirs[from..].iter().for_each(|(name, bytes)| mixed.damage(name, bytes.clone()));
        match open(&mixed, 3) {
            Err(e) if e.kind() == ErrorKind::Corrupt && e.message().contains("another history") => {}
            other => return Err(format!("from segment {from}: {other:?}")),
        }
    }
    Ok(())
}

// faults: bit rot x open
#[test]
fn segments_of_two_histories_are_no_log() {
    mixed_segments().unwrap();
}
