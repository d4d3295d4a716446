//! Stores that earlier builds made go on as stores of the present form.

use std::path::Path;

use drumlin::catalog::Payload;
use drumlin::store::{AsOf, Mode, Options};
use drumlin::{Store, Tables};

use crate::faults::golden::{VERSIONS, check, folder as kept};
use crate::support::{batch, numbered, read};

/// They go on as stores of the new form, and keep what they have.
#[test]
fn stores_of_earlier_builds_go_on() {
    for version in VERSIONS {
        let folder = tempfile::tempdir().unwrap();
        copy_folder(&kept(version), folder.path());
        let uri = folder.path().to_str().unwrap();
        for n in 0..2 {
            let store = Store::open_with(uri, Options::default()).unwrap();
            check(&store);
            store.tree().put("later", Payload::from(n)).unwrap();
            store.write("t/later", batch(&numbered(0, 100)), &Default::default()).unwrap();
            store.checkpoint(&Default::default()).unwrap();
            store.tree().put("last", Payload::from(n)).unwrap();
            store.close().unwrap();
        }
        let store = Store::open_with(uri, Options { mode: Mode::Read, ..Options::default() }).unwrap();
        assert_eq!(store.tree().get("last").unwrap(), Some(Payload::from(1)), "{version}");
        assert_eq!(read(&store, "t/later", AsOf::Newest).unwrap().len(), 100);
        assert_eq!(store.verify(&Default::default()).unwrap().faults, [], "{version}");
    }
}

pub fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.as_ref().unwrap().path(), to.join(entry.as_ref().unwrap().file_name()));
        if entry.is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy_folder(&entry, &to);
        } else {
            std::fs::copy(&entry, &to).unwrap();
        }
    }
}
