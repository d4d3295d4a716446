//! A whole store with some bytes changed and every length, place and checksum repaired afterwards: opened, read in every
//! way, written to, salvaged.

use std::sync::{Arc, OnceLock};

use drumlin::base::Task;
use drumlin::log::{FileLog, ObjectLog, OnLoss};
use drumlin::storage::{FileStorage, SimBucket, SimDisk};
use drumlin::store::{Options, SalvageTarget};

use crate::cursor::Cursor;
use crate::repair::Parts;
use crate::stores::{self, Objects};

/// A store to start from.
enum Base {
    Folder(SimDisk, Parts),
    Bucket(Parts),
}

/// One with blocks, one with small data in commits, one with a filter of keys, one in a bucket.
fn bases() -> &'static [Base] {
    static BASES: OnceLock<Vec<Base>> = OnceLock::new();
    BASES.get_or_init(|| {
        let folder = |inline, keys| {
            let disk = stores::folder(inline, keys);
            let opened = FileLog::read(&disk).expect("a sound log");
            let parts = Parts::of(&stores::objects(&disk), &opened);
            assert_eq!(parts.clone().put_together(), stores::objects(&disk), "nothing was changed");
            Base::Folder(disk, parts)
        };
        let bucket = stores::bucket();
        let names = bucket.objects().into_iter().map(|(name, _)| name);
        let content = |name: String| (name.clone(), bucket.content(&name).expect("it is listed").to_vec());
        let objects: Objects = names.map(content).collect();
        let (_, opened) = ObjectLog::open(Arc::new(bucket), stores::env(), 1000, OnLoss::Refuse).expect("a sound log");
        let parts = Parts::of(&objects, &opened);
        assert_eq!(parts.clone().put_together(), objects, "nothing was changed");
        vec![folder(0, 0), folder(1 << 16, 0), folder(0, 1100), Base::Bucket(parts)]
    })
}

/// Changes parts: five bytes say which part, where, how and to what.
fn change(parts: &mut Parts, mut cursor: Cursor<'_>) {
    while !cursor.0.is_empty() {
        let (which, at, how, by) = (cursor.byte(), cursor.short(), cursor.byte(), cursor.byte());
        let mut all = parts.all();
        let count = all.len();
        let (part, grows) = &mut all[usize::from(which) % count];
        if part.is_empty() {
            continue;
        }
        let at = usize::from(at) % part.len();
        match how % 8 {
            0 => part[at] = by,
            1 => part[at] ^= 1 << (by % 8),
            2 => part[at] = part[at].wrapping_add(by),
            3 => part[at] = [0, 1, 0x7f, 0x80, 0xff][usize::from(by) % 5],
            4 if *grows => part.insert(at, by),
            5 if *grows => drop(part.remove(at)),
            6 if *grows => part.truncate(at),
            7 => {
                let end = part.len().min(at + 4);
                part[at..end].fill(by);
            }
            _ => part[at] = part[at].wrapping_sub(by),
        }
    }
}

/// The target described above. The first byte chooses the store, and whether it is opened or salvaged.
pub fn store(bytes: &[u8]) {
    let mut cursor = Cursor(bytes);
    let how = cursor.byte();
    let base = &bases()[usize::from(how) % 4];
    let mut parts = match base {
        Base::Folder(_, parts) | Base::Bucket(parts) => parts.clone(),
    };
    change(&mut parts, cursor);
    let objects = parts.put_together();
    let salvage = how & 4 != 0;
    match base {
        Base::Folder(disk, _) => {
            let disk = disk.fork();
            for (name, content) in objects {
                disk.damage(&name, content);
            }
            match salvage {
                true => salvaged(Arc::new(FileStorage::new(Arc::new(disk)))),
                false => stores::open(&disk, 0).iter().for_each(stores::exercise),
            }
        }
        Base::Bucket(_) => {
            let bucket = SimBucket::new();
            objects.into_iter().for_each(|(name, content)| bucket.overwrite(&name, content));
            match salvage {
                true => salvaged(Arc::new(bucket)),
                false => stores::open_bucket(&bucket).iter().for_each(stores::exercise),
            }
        }
    }
}

fn salvaged(from: Arc<dyn drumlin::storage::Storage>) {
    let to = SimDisk::new();
    let target = SalvageTarget::Folder(Arc::new(to.clone()));
    if target.salvage(from, stores::env(), Options::default(), &Task::default()).is_ok() {
        let store = stores::open(&to, 0).expect("what was salvaged opens");
        let report = store.verify(&Default::default()).expect("what was salvaged verifies");
        assert!(report.faults.is_empty(), "{:?}", report.faults);
    }
}

/// Every store unchanged, opened and salvaged, and with one or more changes.
pub fn seeds() -> Vec<Vec<u8>> {
    let whole = (0..8_u8).map(|how| vec![how]);
    let mut rng = fastrand::Rng::with_seed(3);
    let changed = (0..24_u8).map(|n| {
        let changes = if n < 16 { 1 } else { 3 };
        std::iter::once(n).chain((0..5 * changes).map(|_| rng.u8(..))).collect()
    });
    whole.chain(changed.collect::<Vec<_>>()).collect()
}
