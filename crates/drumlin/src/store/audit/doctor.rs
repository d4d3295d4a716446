//! Whether a bucket is fit for a store, and how fast it is: checked before a store is made in it, or when something is
//! odd.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::{Env, Error, ErrorKind, Result, Timestamp};
use crate::log::Movers;
use crate::storage::{BucketStorage, InlineStorage, ServerCells, Storage, WriteMode, is_bucket, names};
use crate::store::Options;
use crate::store::open::probe::probe;

/// One thing that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub what: String,
    /// The median time of a request in microseconds, or what went wrong.
    pub outcome: std::result::Result<i64, String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// In the order in which things were tried.
    pub findings: Vec<Finding>,
    /// By how many microseconds the clock here is ahead of the bucket's, which shows whole seconds: 0 if within that. `None`
    /// if the bucket does not report the time. The order of commits depends on no clock; how long released blocks are kept,
    /// what retention keeps for a time and versions as of a time do.
    pub clock_micros: Option<i64>,
    /// Whether the bucket keeps objects that are replaced or deleted, as one with versions does; `None` if it does not say. A store replaces
    /// its root with each commit, so they add up, and what a purge deletes is there still.
    pub keeps_replaced: Option<bool>,
    /// What could be better about the server that keeps the log of a store there, if one does.
    pub advice: Vec<String>,
}

impl Diagnosis {
    /// Whether a store can be there.
    pub fn is_fit(&self) -> bool {
        self.findings.iter().all(|finding| finding.outcome.is_ok())
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { what, outcome } in &self.findings {
            match outcome {
                Ok(micros) => writeln!(f, "{what}: {}.{:01} ms", micros / 1000, micros % 1000 / 100)?,
                Err(e) => writeln!(f, "{what}: FAILED: {e}")?,
            }
        }
        match self.clock_micros {
            None => writeln!(f, "clock: the bucket does not report the time")?,
            Some(0) => writeln!(f, "clock: the bucket's, to the second")?,
            Some(micros) => {
                let (seconds, way) = (micros.abs() / 1_000_000, if micros > 0 { "ahead of" } else { "behind" });
                writeln!(
                    f,
                    "clock: {seconds} s {way} the bucket's; times of versions and of released blocks are off by that"
                )?;
            }
        }
        if self.keeps_replaced == Some(true) {
            writeln!(
                f,
                "versions: the bucket keeps what is replaced and deleted, also by a purge; have it expire noncurrent versions, \
                 or suspend versioning"
            )?;
        }
        for advice in &self.advice {
            writeln!(f, "log: {advice}")?;
        }
        write!(f, "{}", if self.is_fit() { "fit for a store" } else { "not fit for a store" })
    }
}

/// How many requests of a kind are timed.
const ROUNDS: usize = 5;
/// How many races are run.
const RACES: usize = 5;
/// How long a race waits where requests are throttled.
const PROBE_RETRY_MICROS: u64 = 60_000_000;

impl Diagnosis {
    /// Tries what a store needs of the bucket at `uri`: writing, reading, conditional writes that race, deleting, listing.
    /// Leaves nothing there but what the bucket keeps. Of a store that is there, asks only where its log is: if a server keeps it, that is
    /// read, too.
    ///
    /// # Errors
    /// `InvalidArgument` if `uri` names no bucket; what fails in it is part of the diagnosis.
    pub fn of(uri: &str, options: &Options) -> Result<Diagnosis> {
        if !is_bucket(uri) {
            return Err(Error::invalid(format!("'{uri}' is not a bucket; only buckets can be checked")));
        }
        let env = Env::system(options.cpu_threads)?;
        let bucket: Arc<dyn Storage> = Arc::new(BucketStorage::open(uri, &options.bucket.0, options.io_threads)?);
        let mut diagnosis = Self::of_bucket(bucket.clone(), &env)?;
        diagnosis.look_at_log(&options.movers(&bucket, &ServerCells(env.clone()), &env));
        Ok(diagnosis)
    }

    /// The server that keeps the log of a store, if one does.
    fn look_at_log(&mut self, movers: &Movers<'_>) {
        let cell = match movers.cell() {
            Ok(Some(cell)) => cell,
            // There need not be a store.
            Ok(None) => return,
            Err(e) if e.kind() == ErrorKind::NotFound => return,
            Err(e) => {
                self.findings.push(Finding { what: "find the log".into(), outcome: Err(e.to_string()) });
                return;
            }
        };
        let outcome = median(movers.env, ROUNDS, &|_| cell.read(None).map(drop));
        self.findings.push(Finding { what: format!("read the log at {}", cell.address()), outcome });
        self.advice.extend(cell.advice().into_iter().flatten());
    }

    /// The same, of storage that is already open.
    ///
    /// # Errors
    /// If no random name can be made.
    pub fn of_bucket(bucket: Arc<dyn Storage>, env: &Env) -> Result<Diagnosis> {
        let storage = Arc::new(InlineStorage::new(bucket));
        let nonce = env.entropy.next()?;
        let name = |n: usize| format!("{}/{nonce:016x}-{n}", names::PROBE);
        let body = [Bytes::from(vec![7; 4096])];
        let mut diagnosis = Diagnosis::default();
        let mut time = |what: &str, rounds: usize, work: &dyn Fn(usize) -> Result<()>| {
            diagnosis.findings.push(Finding { what: what.to_owned(), outcome: median(env, rounds, work) });
        };
        time("write 4 KiB", ROUNDS, &|round| storage.put(&name(round), &body, WriteMode::Once));
        time("read it", ROUNDS, &|round| match storage.get(&name(round))? == body[0] {
            true => Ok(()),
            false => Err(Error::corrupt("what was read is not what was written")),
        });
        time("read a part of it", ROUNDS, &|round| {
            let part = storage.get_ranges(&name(round), std::slice::from_ref(&(100..200)))?;
            if part[0].len() == 100 { Ok(()) } else { Err(Error::corrupt("a part of the wrong length was returned")) }
        });
        time("conditional writes, 16 at once", RACES, &|_| probe(&storage, env, PROBE_RETRY_MICROS));
        time("list", ROUNDS, &|_| match storage.list(names::PROBE)?.len() >= ROUNDS {
            true => Ok(()),
            false => Err(Error::unavailable("what was written is not listed")),
        });
        let clock = Cell::new(None);
        time("write one, and ask when", 1, &|_| {
            clock.set(clock_ahead(&storage, env, &name(ROUNDS), &body)?);
            Ok(())
        });
        let keeps = Cell::new(None);
        time("write one on a condition", 1, &|_| {
            keeps.set(storage.keeps_replaced(&storage.put_if_match(&name(ROUNDS + 1), &body, None)?));
            Ok(())
        });
        let all: Vec<String> = (0..=ROUNDS + 1).map(name).collect();
        time("delete many at once", 1, &|_| storage.delete_many(&all).into_iter().collect());
        (diagnosis.clock_micros, diagnosis.keeps_replaced) = (clock.get(), keeps.get());
        let left: BTreeMap<String, u64> =
            storage.list(names::PROBE).into_iter().flatten().map(|object| (object.name, object.bytes)).collect();
        if let Some(stays) = all.iter().find(|name| left.contains_key(*name)) {
            let outcome = Err(format!("{stays} is still listed"));
            diagnosis.findings.push(Finding { what: "what was deleted is gone".into(), outcome });
        }
        Ok(diagnosis)
    }
}

/// The median time of some requests, in microseconds, or what went wrong.
fn median(env: &Env, rounds: usize, work: &dyn Fn(usize) -> Result<()>) -> std::result::Result<i64, String> {
    let mut times = Vec::with_capacity(rounds);
    let done = (0..rounds).try_for_each(|round| {
        let start = env.clock.now().0;
        work(round)?;
        times.push(env.clock.now().0 - start);
        Ok(())
    });
    times.sort_unstable();
    done.map(|()| times[times.len() / 2]).map_err(|e: Error| e.to_string())
}

/// Writes an object; returns by how much the clock here is ahead of the one that notes when it was written.
fn clock_ahead(storage: &InlineStorage, env: &Env, name: &str, body: &[Bytes]) -> Result<Option<i64>> {
    let before = env.clock.now().0;
    storage.put(name, body, WriteMode::Once)?;
    let after = env.clock.now().0;
    // It is in seconds, rounded down.
    let ahead = |Timestamp(begun): Timestamp| (before - (begun + 999_999)).max(0) + (after - begun).min(0);
    Ok(storage.written_at(name)?.map(ahead))
}
