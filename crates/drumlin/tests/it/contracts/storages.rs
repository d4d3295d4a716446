//! The contract of `Storage`: one list of checks that every implementation passes, and that notices each broken rule.
//!
//! The rules: an object exists as a whole or not at all. Of puts that race for one name or one tag, exactly one wins.
//! Results are in the order of the requests, one per request, and a failed one does not make others fail. A list names each
//! object directly in the folder once. An error's kind says what happened, and its message names the object.
//!
//! Each check works in a folder of its own, so all of them can run on one storage.

/// Methods of a storage that delegate to another.
macro_rules! passes_on {
    ($inner:ident: $($method:ident)*) => { $(passes_on!(@ $inner $method);)* };
    (@ $inner:ident get) => {
        fn get(&self, name: &str) -> Result<Bytes> {
            self.$inner().get(name)
        }
    };
    (@ $inner:ident get_ranges) => {
        fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
            self.$inner().get_ranges(name, ranges)
        }
    };
    (@ $inner:ident get_ranges_of) => {
        fn get_ranges_of(&self, wanted: &[(String, Vec<Range<u64>>)]) -> Vec<Result<Vec<Bytes>>> {
            self.$inner().get_ranges_of(wanted)
        }
    };
    (@ $inner:ident written_at) => {
        fn written_at(&self, name: &str) -> Result<Option<Timestamp>> {
            self.$inner().written_at(name)
        }
    };
    (@ $inner:ident prefetch) => {
        fn prefetch(&self, name: &str, ranges: &[Range<u64>]) {
            self.$inner().prefetch(name, ranges);
        }
    };
    (@ $inner:ident put) => {
        fn put(&self, name: &str, parts: &[Bytes], mode: WriteMode) -> Result<()> {
            self.$inner().put(name, parts, mode)
        }
    };
    (@ $inner:ident get_tagged) => {
        fn get_tagged(&self, name: &str, known: Option<&Tag>) -> Result<Option<(Bytes, Tag)>> {
            self.$inner().get_tagged(name, known)
        }
    };
    (@ $inner:ident put_if_match) => {
        fn put_if_match(&self, name: &str, parts: &[Bytes], known: Option<&Tag>) -> Result<Tag> {
            self.$inner().put_if_match(name, parts, known)
        }
    };
    (@ $inner:ident delete_many) => {
        fn delete_many(&self, names: &[String]) -> Vec<Result<()>> {
            self.$inner().delete_many(names)
        }
    };
    (@ $inner:ident list) => {
        fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
            self.$inner().list(folder)
        }
    };
    (@ $inner:ident list_folders) => {
        fn list_folders(&self, folder: &str) -> Result<Vec<String>> {
            self.$inner().list_folders(folder)
        }
    };
    (@ $inner:ident unfinished) => {
        fn unfinished(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
            self.$inner().unfinished(folder)
        }
    };
    (@ $inner:ident remove_empty_folder) => {
        fn remove_empty_folder(&self, folder: &str) -> Result<()> {
            self.$inner().remove_empty_folder(folder)
        }
    };
}

mod broken;
mod checks;
mod races;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use broken::{Broken, RULES};
use bytes::Bytes;
use checks::*;
use drumlin::Result;
use drumlin::base::Timestamp;
use drumlin::storage::{
    BucketStorage, FileStorage, InlineStorage, ObjectMeta, OsDisk, SimBucket, SimDisk, Storage, Tag, WriteMode,
};
use races::{counts, one_creates, one_step};

use crate::contracts::servers::buckets;

const CHECKS: [(&str, fn(&dyn Storage)); 20] = [
    ("what is put comes back", comes_back),
    ("what is missing is not found", missing),
    ("create keeps what is there", create),
    ("replace replaces all of it", replace),
    ("once may be repeated", once),
    ("a large object comes back", large),
    ("ranges come in the order asked", ranges),
    ("ranges beyond the end are corrupt", ranges_beyond),
    ("each of many objects has its own answer", ranges_of_many),
    ("the time of writing is plausible", written_at),
    ("a list names what is directly in a folder", lists),
    ("what is deleted is gone, and nothing else", deletes),
    ("more objects than one request takes", more_than_a_request),
    ("names are taken as they are", names),
    ("a tag tells one content from another", tags),
    ("a put on a tag wants that very content", put_if_match),
    ("puts leave nothing unfinished", leaves_nothing),
    ("of racing creates one wins", one_creates),
    ("no count is lost", counts),
    ("a reader sees the old bytes or the new ones", one_step),
];

fn keeps_the_contract(storage: &dyn Storage) {
    for (what, check) in CHECKS {
        println!("{what}");
        check(storage);
    }
}

/// Handles on one place, used in turn: although each belongs to a separate process, they act as one storage.
#[derive(Debug)]
struct Several(Vec<Box<dyn Storage>>, AtomicUsize);

impl Several {
    fn of(handles: [impl Storage + 'static; 2]) -> Self {
        Self(handles.map(|handle| Box::new(handle) as _).into(), AtomicUsize::new(0))
    }

    fn next(&self) -> &dyn Storage {
        &*self.0[self.1.fetch_add(1, Ordering::Relaxed) % self.0.len()]
    }
}

impl Storage for Several {
    passes_on! {
        next: get get_ranges get_ranges_of written_at prefetch put get_tagged put_if_match delete_many list list_folders
        unfinished remove_empty_folder
    }
}

#[test]
fn files_keep_it() {
    let folder = tempfile::tempdir().unwrap();
    keeps_the_contract(&FileStorage::new(Arc::new(OsDisk::open(folder.path()).unwrap())));
}

#[test]
fn files_of_two_processes_keep_it() {
    let folder = tempfile::tempdir().unwrap();
    let disk = || FileStorage::new(Arc::new(OsDisk::open(folder.path()).unwrap()));
    keeps_the_contract(&Several::of([disk(), disk()]));
}

#[test]
fn a_simulated_disk_keeps_it() {
    keeps_the_contract(&FileStorage::new(Arc::new(SimDisk::new())));
    let disk = SimDisk::new();
    keeps_the_contract(&Several::of([(); 2].map(|()| FileStorage::new(Arc::new(disk.clone())))));
}

#[test]
fn memory_keeps_it() {
    keeps_the_contract(&FileStorage::new(Arc::new(SimDisk::in_memory())));
}

#[test]
fn a_simulated_bucket_keeps_it() {
    let bucket = SimBucket::new();
    keeps_the_contract(&bucket);
    let bucket = SimBucket::new();
    keeps_the_contract(&Several::of([bucket.client(), bucket.client()]));
}

/// Storage with inline blocks: every second object that is made is held in memory. Only reads and deletions behave as in any
/// storage: held objects belong to one process, and are not listed.
#[derive(Debug)]
struct Holding(InlineStorage, AtomicUsize);

impl Holding {
    fn inner(&self) -> &InlineStorage {
        &self.0
    }
}

impl Storage for Holding {
    passes_on! {
        inner: get get_ranges get_ranges_of prefetch get_tagged put_if_match delete_many list list_folders
        remove_empty_folder
    }

    fn put(&self, name: &str, parts: &[Bytes], mode: WriteMode) -> Result<()> {
        match self.1.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => self.0.put(name, parts, mode),
            _ => {
                self.0.hold(name, parts.concat().into());
                Ok(())
            }
        }
    }
}

#[test]
fn inline_blocks_keep_it() {
    let over: [Arc<dyn Storage>; 2] =
        [Arc::new(SimBucket::new()), Arc::new(FileStorage::new(Arc::new(SimDisk::in_memory())))];
    for storage in over {
        // Without held objects, it behaves like the storage that it wraps.
        keeps_the_contract(&InlineStorage::new(storage));
    }
    for first in [0, 1] {
        for check in [ranges, ranges_beyond, ranges_of_many, deletes] {
            check(&Holding(InlineStorage::new(Arc::new(SimBucket::new())), AtomicUsize::new(first)));
        }
    }
}

#[test]
fn buckets_on_servers_keep_it() {
    for bucket in buckets("the contract of storage") {
        println!("{}", bucket.name);
        let client = || -> BucketStorage { bucket.client("contract") };
        keeps_the_contract(&Several::of([client(), client()]));
        // A store may be all of a bucket.
        lists(&bucket.client(""));
    }
}

#[test]
fn a_storage_that_breaks_a_rule_is_noticed() {
    for (rule, noticed_by) in RULES {
        let (_, check) = CHECKS.into_iter().find(|(what, _)| *what == noticed_by).unwrap();
        let storage = Broken(SimBucket::new(), rule);
        let checked = catch_unwind(AssertUnwindSafe(|| check(&storage)));
        assert!(checked.is_err(), "'{noticed_by}' does not notice {rule:?}");
    }
    // Each check notices something.
    for (what, _) in CHECKS {
        assert!(RULES.iter().any(|(_, noticed_by)| *noticed_by == what), "'{what}' notices nothing");
    }
}
