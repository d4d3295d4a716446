//! The root of a shared log, its checksum repaired, as a process that opens the store reads them.
#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use drumlin::base::{Pool, SeededEntropy, checksum_at};
use drumlin::log::ObjectLog;
use drumlin::storage::{SimBucket, Storage};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let bucket = SimBucket::new();
    let mut root = [&b"DRUMROOT"[..], &5_u32.to_le_bytes(), &[0; 4], bytes].concat();
    let sum = checksum_at(&root[16..], "root", 0);
    root[12..16].copy_from_slice(&sum.to_le_bytes());
    bucket.put_if_match("root", &[Bytes::from(root)], None).unwrap();
    let entropy = Arc::new(SeededEntropy::new(1));
    if let Ok((log, opened)) = ObjectLog::open(Arc::new(bucket), entropy, Pool::new(1).unwrap()) {
        drop((log, opened));
    }
});
