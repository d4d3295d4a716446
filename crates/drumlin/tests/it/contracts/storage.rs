//! The contract of disks, and what storage on a disk leaves after a crash.

use std::sync::Arc;

use bytes::Bytes;
use drumlin::ErrorKind;
use drumlin::storage::{Access, CrashPoint, Disk, DiskFault, FileStorage, OsDisk, Rename, SimDisk, Storage, WriteMode};

fn disks() -> Vec<(Arc<dyn Disk>, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let os = OsDisk::open(folder.path()).unwrap();
    vec![(Arc::new(os), Some(folder)), (Arc::new(SimDisk::new()), None), (Arc::new(SimDisk::in_memory()), None)]
}

fn one(bytes: &'static [u8]) -> Vec<Bytes> {
    vec![Bytes::from_static(bytes)]
}

#[test]
fn every_disk_keeps_the_contract() {
    for (disk, _folder) in disks() {
        disk.make_dir("d").unwrap();
        disk.make_dir("d").unwrap();
        let file = disk.create("d/f").unwrap();
        assert_eq!(disk.create("d/f").err().unwrap().kind(), ErrorKind::AlreadyExists);
        file.write_at(3, b"abc").unwrap();
        assert_eq!(file.len().unwrap(), 6);
        let mut buffer = [9; 8];
        assert_eq!(file.read_at(0, &mut buffer).unwrap(), 6);
        assert_eq!(&buffer, b"\0\0\0abc\x09\x09");
        file.set_len(4).unwrap();
        file.sync().unwrap();
        assert_eq!(disk.open("d/f", Access::Read).unwrap().len().unwrap(), 4);
        disk.create("d/g").unwrap();
        assert_eq!(disk.rename("d/g", "d/f", Rename::Keep).unwrap_err().kind(), ErrorKind::AlreadyExists);
        disk.rename("d/g", "d/f", Rename::Replace).unwrap();
        assert_eq!(disk.open("d/f", Access::Read).unwrap().len().unwrap(), 0);
        assert_eq!(disk.open("d/g", Access::Read).err().unwrap().kind(), ErrorKind::NotFound);
        disk.sync_dir("d").unwrap();
        assert!(disk.remove_dir("d").is_err());
        // A file that is open stays readable when its name goes, or becomes that of another.
        disk.create("d/new").unwrap().write_at(0, b"new").unwrap();
        let first = disk.open("d/new", Access::Read).unwrap();
        disk.create("d/newer").unwrap().write_at(0, b"newer").unwrap();
        disk.rename("d/newer", "d/new", Rename::Replace).unwrap();
        let second = disk.open("d/new", Access::Read).unwrap();
        disk.remove("d/new").unwrap();
        disk.remove("d/f").unwrap();
        for (file, content) in [(first, &b"new"[..]), (second, b"newer")] {
            let mut buffer = vec![0; content.len()];
            assert_eq!(file.read_at(0, &mut buffer).unwrap(), content.len());
            assert_eq!(buffer, content);
        }
        assert_eq!(disk.remove("d/f").unwrap_err().kind(), ErrorKind::NotFound);
        disk.remove_dir("d").unwrap();
        assert_eq!(disk.list("d").unwrap_err().kind(), ErrorKind::NotFound);
        let lock = disk.lock("lock", "me").unwrap();
        assert_eq!(disk.lock("lock", "you").err().unwrap().kind(), ErrorKind::Locked);
        drop(lock);
        disk.lock("lock", "you").unwrap();
    }
}

// faults: odd name x open
#[test]
fn a_planted_symbolic_link_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("blocks")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("f"), folder.path().join("file")).unwrap();
    let disk = OsDisk::open(folder.path()).unwrap();
    assert!(disk.create("blocks/x").is_err());
    assert!(disk.create("file").is_err());
    assert!(disk.open("file", Access::Write).is_err());
    assert_eq!(outside.path().read_dir().unwrap().count(), 0);
}

#[test]
fn the_simulator_forgets_what_was_not_synced() {
    let disk = SimDisk::new();
    let file = disk.create("f").unwrap();
    file.write_at(0, b"durable").unwrap();
    file.sync().unwrap();
    disk.sync_dir("").unwrap();
    file.write_at(0, b"VOLATILE").unwrap();
    disk.create("g").unwrap();
    let mut contents = std::collections::BTreeSet::new();
    let mut names = std::collections::BTreeSet::new();
    for seed in 0..64 {
        let after = disk.crash(seed);
        contents.insert(after.files()[0].1.clone());
        names.insert(after.files().len());
    }
    assert!(contents.contains(&b"durable"[..]) && contents.contains(&b"VOLATILE"[..]), "{contents:?}");
    assert_eq!(names.into_iter().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_put_that_crashes_is_whole_or_absent() {
    for at in 0..12 {
        for moment in [CrashPoint::Before, CrashPoint::During, CrashPoint::After] {
            for seed in 0..8 {
                let disk = SimDisk::new();
                disk.plan(at, DiskFault::Crash(moment));
                let put = FileStorage::new(Arc::new(disk.clone())).put("a/b", &one(&[7; 3000]), WriteMode::Create);
                let after = FileStorage::new(Arc::new(disk.crash(seed)));
                match after.get("a/b") {
                    Ok(bytes) => assert_eq!(bytes, [7; 3000][..]),
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::NotFound);
                        assert!(put.is_err(), "an acknowledged put was lost, change {at} {moment:?}");
                    }
                }
            }
        }
    }
}
