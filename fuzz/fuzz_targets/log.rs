//! A log segment as a follower reads it.
#![no_main]

use drumlin::log::FileLog;
use drumlin::storage::{Disk, SimDisk};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let disk = SimDisk::in_memory();
    disk.make_dir("log").unwrap();
    disk.create("log/00000000000000000001.log").unwrap().write_at(0, bytes).unwrap();
    let _ = FileLog::read(&disk);
});
