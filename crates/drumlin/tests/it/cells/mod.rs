//! Stores whose log is in a cell: on a simulated server, which is a second bucket, with all that a network does to requests.

pub mod moves;
pub mod offers;
mod requests;
mod salvaged;

use std::sync::Arc;

use drumlin::base::{Env, ManualClock};
use drumlin::storage::{BucketCell, LogCell, LogCells, SimBucket};
use drumlin::store::{LogPlace, Options, move_log_on, open_bucket_with};
use drumlin::{Result, Store};

use crate::support::env;

/// A server that keeps cells.
pub struct SimServer {
    pub bucket: SimBucket,
    pub env: Env,
}

impl SimServer {
    pub fn new(bucket: &SimBucket, clock: &Arc<ManualClock>, seed: u64) -> Self {
        Self { bucket: bucket.clone(), env: env(clock, seed ^ 0x5eed, 1) }
    }
}

impl LogCells for SimServer {
    fn open(&self, _: &str, id: u128) -> Result<Arc<dyn LogCell>> {
        Ok(Arc::new(BucketCell::new(Arc::new(self.bucket.clone()), id, self.env.clone())))
    }

    fn told(&self, address: &str) -> Result<String> {
        Ok(address.to_owned())
    }
}

/// One process: what it uses of the bucket and of the server.
pub struct Process {
    pub bucket: SimBucket,
    pub server: SimBucket,
}

impl Process {
    pub fn new(bucket: &SimBucket, server: &SimBucket) -> Self {
        Self { bucket: bucket.client(), server: server.client() }
    }

    /// Opens the store, whose log is where it is; a new one gets it in a cell if `log_at` says so.
    pub fn open(&self, clock: &Arc<ManualClock>, seed: u64, options: Options) -> Result<Store> {
        // No two processes draw the same numbers.
        let seed = seed * 2;
        let options = Options { inline_bytes: 0, block_grace_micros: 0, ..options };
        let cells = SimServer::new(&self.server, clock, seed);
        open_bucket_with(Arc::new(self.bucket.clone()), &cells, env(clock, seed, 2), "bucket", options)
    }

    pub fn move_log(&self, clock: &Arc<ManualClock>, seed: u64, to: &LogPlace) -> Result<()> {
        let seed = seed * 2 + 1;
        let cells = SimServer::new(&self.server, clock, seed);
        let options = Options { retry_micros: 2_000_000, ..Options::default() };
        move_log_on(Arc::new(self.bucket.clone()), &cells, env(clock, seed, 2), "bucket", &options, to)
    }

    pub fn is_dead(&self) -> bool {
        self.bucket.is_dead() || self.server.is_dead()
    }
}

/// The place of logs in cells.
pub fn cell() -> LogPlace {
    LogPlace::Cell("sim".into())
}

/// Options of a new store whose log is in a cell.
pub fn in_cell() -> Options {
    Options { log_at: Some("sim".into()), ..Options::default() }
}
