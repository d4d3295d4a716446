//! A bucket in memory, shared by simulated processes: with conditional puts, counted requests, and the faults of a
//! network.
//!
//! Each client is a separate process: it can be killed, and its next requests can be refused, done without an answer,
//! or done only after the caller has given up. A call that is to stop gets no answer, as from a real bucket.
//!
//! A test's function is asked before each request whether a fault strikes; it may do anything first, such as another
//! client's commit.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::{DELETE_BATCH, ObjectMeta, Storage, Tag, WriteMode, differs, is_whole, within};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Result, Timestamp, waiting};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketOp {
    /// Reads an object, or parts of one.
    Get,
    /// Writes an object.
    Put,
    /// Writes an object conditionally.
    PutIf,
    /// Deletes up to 1,000 objects.
    Delete,
    /// Lists.
    List,
}

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketFault {
    /// It is not done.
    Refused,
    /// It is not done because there are too many.
    Throttled,
    /// It is done; the answer is lost.
    Lost,
    /// It is done only after this many more requests by any process; the answer is lost. Only puts can be late.
    Late(u64),
    /// Of a deletion, every n-th name fails; a list is incomplete and old.
    Partly(usize),
    /// The process dies before the request.
    Killed,
}

/// Requests so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Reads.
    pub gets: u64,
    /// Writes, including conditional ones.
    pub puts: u64,
    /// Deletions, of many names each.
    pub deletes: u64,
    /// Lists.
    pub lists: u64,
    /// Bytes of objects that were read.
    pub bytes_read: u64,
}

/// Decides what goes wrong with a request, given the operation and the object's name.
pub type Faults = Box<dyn FnMut(BucketOp, &str) -> Option<BucketFault> + Send>;

#[derive(Default)]
struct BucketImage {
    objects: BTreeMap<String, (Bytes, u64)>,
    next_tag: u64,
    requests: Requests,
    clock: u64,
    /// The time it reports for written objects.
    time: Option<Timestamp>,
    keeps_replaced: Option<bool>,
    /// Late puts: when they will be done, the name, the content, the condition.
    late: Vec<(u64, String, Bytes, Option<Option<u64>>)>,
}

impl BucketImage {
    /// Writes an object if its tag meets the condition, if there is one.
    fn write(&mut self, name: &str, bytes: Bytes, condition: Option<Option<u64>>) -> Option<u64> {
        if condition.is_some_and(|condition| condition != self.objects.get(name).map(|(_, tag)| *tag)) {
            return None;
        }
        self.next_tag += 1;
        self.objects.insert(name.to_owned(), (bytes, self.next_tag));
        Some(self.next_tag)
    }

    /// Counts a request and does the late puts that are due.
    fn tick(&mut self) {
        self.clock += 1;
        let clock = self.clock;
        let (due, late) = std::mem::take(&mut self.late).into_iter().partition(|(at, ..)| *at <= clock);
        self.late = late;
        for (_, name, bytes, condition) in due {
            self.write(&name, bytes, condition);
        }
    }
}

/// One process's access to a simulated bucket. Clones are of the same process.
#[derive(Clone)]
pub struct SimBucket {
    image: Arc<Mutex<BucketImage>>,
    faults: Arc<Mutex<Option<Faults>>>,
    dead: Arc<Mutex<bool>>,
    /// The condition of a put is ignored.
    plain: bool,
}

impl std::fmt::Debug for SimBucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SimBucket")
    }
}

impl Default for SimBucket {
    fn default() -> Self {
        Self::new()
    }
}

fn missing(name: &str) -> Error {
    Error::not_found(format!("could not get {name}: no such object"))
}

fn lost(name: &str) -> Error {
    Error::in_doubt(format!("{name}: no answer"))
}

impl SimBucket {
    /// An empty bucket, and a process that uses it.
    pub fn new() -> Self {
        Self { image: Arc::default(), faults: Arc::default(), dead: Arc::default(), plain: false }
    }

    /// Another process that uses the same bucket.
    #[must_use]
    pub fn client(&self) -> Self {
        Self { image: self.image.clone(), faults: Arc::default(), dead: Arc::default(), plain: self.plain }
    }

    /// The same bucket, but accepting conditional puts without checking the condition.
    #[must_use]
    pub fn lying(&self) -> Self {
        Self { plain: true, ..self.client() }
    }

    /// From now on, this process's requests go wrong as `faults` says.
    pub fn plan(&self, faults: impl FnMut(BucketOp, &str) -> Option<BucketFault> + Send + 'static) {
        *self.faults.lock() = Some(Box::new(faults));
    }

    /// Nothing goes wrong any more, except what has already begun.
    pub fn heal(&self) {
        *self.faults.lock() = None;
    }

    /// Sets its clock, which stands still.
    pub fn set_time(&self, time: Timestamp) {
        self.image.lock().time = Some(time);
    }

    /// From now on it says whether it keeps what is replaced.
    pub fn set_keeps_replaced(&self, keeps: bool) {
        self.image.lock().keeps_replaced = Some(keeps);
    }

    /// The process dies: none of its requests is done any more.
    pub fn kill(&self) {
        *self.dead.lock() = true;
    }

    /// Whether the process has died.
    pub fn is_dead(&self) -> bool {
        *self.dead.lock()
    }

    /// Requests made so far, by all processes.
    pub fn requests(&self) -> Requests {
        self.image.lock().requests
    }

    /// The names of all objects, and their sizes.
    pub fn objects(&self) -> Vec<(String, u64)> {
        let image = self.image.lock();
        image.objects.iter().map(|(name, (bytes, _))| (name.clone(), bytes.len() as u64)).collect()
    }

    /// Replaces an object's content, as damage would.
    pub fn overwrite(&self, name: &str, bytes: Vec<u8>) {
        self.image.lock().write(name, bytes.into(), None);
    }

    /// The content of an object.
    pub fn content(&self, name: &str) -> Option<Bytes> {
        self.image.lock().objects.get(name).map(|(bytes, _)| bytes.clone())
    }

    /// Makes a request and waits for its answer; says what goes wrong with it.
    fn request(&self, op: BucketOp, name: &str) -> Result<Option<BucketFault>> {
        let fault = self.send(op, name)?;
        waiting::check()?;
        Ok(fault)
    }

    /// Counts a request and says what goes wrong with it.
    fn send(&self, op: BucketOp, name: &str) -> Result<Option<BucketFault>> {
        waiting::check()?;
        let crashed = || Error::unavailable("the simulated process has crashed");
        if self.is_dead() {
            return Err(crashed());
        }
        // The plan may make requests on behalf of other processes.
        let mut faults = self.faults.lock().take();
        let fault = faults.as_mut().and_then(|faults| faults(op, name));
        let mut slot = self.faults.lock();
        if slot.is_none() {
            *slot = faults;
        }
        drop(slot);
        if fault == Some(BucketFault::Killed) {
            self.kill();
            return Err(crashed());
        }
        let mut image = self.image.lock();
        image.tick();
        let count = match op {
            BucketOp::Get => &mut image.requests.gets,
            BucketOp::Put | BucketOp::PutIf => &mut image.requests.puts,
            BucketOp::Delete => &mut image.requests.deletes,
            BucketOp::List => &mut image.requests.lists,
        };
        *count += 1;
        if fault == Some(BucketFault::Refused) {
            return Err(Error::unavailable(format!("{name}: the bucket is unreachable")));
        }
        if fault == Some(BucketFault::Throttled) {
            return Err(Error::throttled(format!("{name}: too many requests")));
        }
        Ok(fault)
    }

    fn write(&self, op: BucketOp, name: &str, parts: &[Bytes], condition: Option<Option<u64>>) -> Result<Option<u64>> {
        let fault = self.send(op, name)?;
        let condition = condition.filter(|_| !self.plain);
        let bytes = Bytes::from(parts.concat());
        let mut image = self.image.lock();
        match fault {
            Some(BucketFault::Late(after)) => {
                let at = image.clock + after;
                image.late.push((at, name.to_owned(), bytes, condition));
                Err(lost(name))
            }
            Some(BucketFault::Lost) => {
                image.write(name, bytes, condition);
                Err(lost(name))
            }
            _ => {
                let written = image.write(name, bytes, condition);
                drop(image);
                waiting::check().map_err(|stopped| match op {
                    BucketOp::PutIf => Error::in_doubt(stopped.message()),
                    _ => stopped,
                })?;
                Ok(written)
            }
        }
    }
}

impl Storage for SimBucket {
    fn is_remote(&self) -> bool {
        true
    }

    fn written_at(&self, _: &str) -> Result<Option<Timestamp>> {
        Ok(self.image.lock().time)
    }

    fn keeps_replaced(&self, _: &Tag) -> Option<bool> {
        self.image.lock().keeps_replaced
    }

    fn get(&self, name: &str) -> Result<Bytes> {
        if self.request(BucketOp::Get, name)?.is_some() {
            return Err(Error::unavailable(format!("{name}: no answer")));
        }
        let bytes = self.content(name).ok_or_else(|| missing(name))?;
        self.image.lock().requests.bytes_read += bytes.len() as u64;
        Ok(bytes)
    }

    fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let bytes = self.get(name)?;
        let part = |range: &Range<u64>| {
            let fits = range.start <= range.end && range.end <= bytes.len() as u64;
            let end = bytes.len();
            fits.then(|| bytes.slice(range.start as usize..range.end as usize)).ok_or_else(|| {
                Error::corrupt(format!("{name}: it has {end} bytes, expected bytes {} to {}", range.start, range.end))
            })
        };
        ranges.iter().map(part).collect()
    }

    fn put(&self, name: &str, parts: &[Bytes], mode: WriteMode) -> Result<()> {
        let once = mode == WriteMode::Once && planted(Bug::OverwriteOnce);
        let condition = (mode != WriteMode::Replace && !once).then_some(None);
        // What may be done twice is retried, as by a client of a real bucket.
        const TRIES: usize = 3;
        let mut tries = 0;
        loop {
            match self.write(BucketOp::Put, name, parts, condition) {
                Ok(Some(_)) => return Ok(()),
                Ok(None) if mode == WriteMode::Once => match self.get(name) {
                    Ok(there) if is_whole(&there, parts) => return Ok(()),
                    Ok(_) => return Err(differs(name)),
                    Err(_) if tries < TRIES && !self.is_dead() => tries += 1,
                    Err(e) => return Err(Error::unavailable(e.message())),
                },
                Ok(None) => return Err(Error::already_exists(format!("{name} exists"))),
                Err(e) if e.kind() == ErrorKind::Cancelled => return Err(e),
                Err(e) if self.is_dead() || mode == WriteMode::Create || tries == TRIES => {
                    return Err(Error::unavailable(e.message()));
                }
                Err(_) => tries += 1,
            }
        }
    }

    fn get_tagged(&self, name: &str, known: Option<&Tag>) -> Result<Option<(Bytes, Tag)>> {
        if self.request(BucketOp::Get, name)?.is_some() {
            return Err(Error::unavailable(format!("{name}: no answer")));
        }
        let mut image = self.image.lock();
        let (bytes, tag) = image.objects.get(name).cloned().ok_or_else(|| missing(name))?;
        let tag = Tag(tag.to_string());
        if known == Some(&tag) {
            return Ok(None);
        }
        image.requests.bytes_read += bytes.len() as u64;
        Ok(Some((bytes, tag)))
    }

    fn put_if_match(&self, name: &str, parts: &[Bytes], known: Option<&Tag>) -> Result<Tag> {
        let condition = known.map(|tag| tag.0.parse().unwrap_or(u64::MAX));
        let written = self.write(BucketOp::PutIf, name, parts, Some(condition))?;
        written
            .map(|tag| Tag(tag.to_string()))
            .ok_or_else(|| Error::conflict(format!("{name} was replaced after it was read")))
    }

    fn delete_many(&self, names: &[String]) -> Vec<Result<()>> {
        let mut answers = Vec::with_capacity(names.len());
        for batch in names.chunks(DELETE_BATCH) {
            let fault = self.request(BucketOp::Delete, &batch[0]);
            let mut image = self.image.lock();
            for (at, name) in batch.iter().enumerate() {
                let failed = || Err(Error::unavailable(format!("{name}: could not be deleted")));
                answers.push(match &fault {
                    Err(e) => Err(Error::new(e.kind(), e.message())),
                    Ok(Some(BucketFault::Partly(every))) if at % every == every - 1 => failed(),
                    Ok(fault) => {
                        image.objects.remove(name);
                        if *fault == Some(BucketFault::Lost) { failed() } else { Ok(()) }
                    }
                });
            }
        }
        answers
    }

    fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        let fault = self.request(BucketOp::List, folder)?;
        let prefix = within(folder, "");
        let below = self.objects().into_iter().filter(|(name, _)| name.starts_with(&prefix));
        let direct = below.filter(|(name, _)| !name[prefix.len()..].contains('/'));
        let mut listed: Vec<ObjectMeta> = direct.map(|(name, bytes)| ObjectMeta { name, bytes }).collect();
        if let Some(BucketFault::Partly(_)) = fault {
            // Old and incomplete, as lists may be.
            listed.truncate(listed.len() / 2);
            listed.push(ObjectMeta { name: within(folder, "gone"), bytes: 1 });
            listed.reverse();
        }
        Ok(listed)
    }

    fn top(&self) -> Result<Vec<String>> {
        self.request(BucketOp::List, "")?;
        let first = |(name, _): (String, u64)| name.split('/').next().unwrap_or_default().to_owned();
        let mut names: Vec<String> = self.objects().into_iter().map(first).collect();
        names.dedup();
        Ok(names)
    }

    fn list_folders(&self, folder: &str) -> Result<Vec<String>> {
        self.request(BucketOp::List, folder)?;
        let prefix = within(folder, "");
        let names = self.objects().into_iter().filter_map(|(name, _)| Some(name.strip_prefix(&prefix)?.to_owned()));
        let mut folders: Vec<String> = names.filter_map(|rest| Some(rest.split_once('/')?.0.to_owned())).collect();
        folders.dedup();
        Ok(folders)
    }
}
