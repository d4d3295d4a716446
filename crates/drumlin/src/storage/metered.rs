//! Counts the requests to another storage, the bytes that they move, and how long they take.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{ObjectMeta, Storage, Survey, Tag, WriteMode};
use crate::base::{Env, ErrorKind, Request, Result, Timestamp, span};

/// A storage that is counted.
pub struct MeteredStorage {
    storage: Arc<dyn Storage>,
    env: Env,
}

impl fmt::Debug for MeteredStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MeteredStorage").field(&self.storage).finish()
    }
}

impl MeteredStorage {
    /// Counts in the metrics of `env`.
    pub fn new(storage: Arc<dyn Storage>, env: Env) -> Self {
        Self { storage, env }
    }

    /// Makes a request, and counts it.
    fn count<T>(&self, kind: Request, request: impl FnOnce() -> T, failures: impl FnOnce(&T) -> u64) -> T {
        if cfg!(uncounted) {
            return request();
        }
        let begun = self.env.clock.now();
        let answer = request();
        self.env.metrics.request(kind, self.env.micros_since(begun));
        self.env.metrics.request_failures.add(failures(&answer));
        answer
    }

    fn read(&self, parts: &[Bytes]) {
        self.env.metrics.bytes_read.add(bytes_of(parts));
    }
}

/// Whether an answer is a failure. That something is missing, or is there, or has changed, is an answer.
fn failed<T>(answer: &Result<T>) -> u64 {
    let kind = answer.as_ref().err().map(crate::Error::kind);
    let answers = [ErrorKind::NotFound, ErrorKind::AlreadyExists, ErrorKind::Conflict];
    u64::from(kind.is_some_and(|kind| !answers.contains(&kind)))
}

fn failures<T>(answers: &[Result<T>]) -> u64 {
    answers.iter().map(failed).sum()
}

fn bytes_of(parts: &[Bytes]) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
}

impl Storage for MeteredStorage {
    fn get(&self, name: &str) -> Result<Bytes> {
        span!("storage.get", name = name);
        let answer = self.count(Request::Get, || self.storage.get(name), failed);
        answer.inspect(|bytes| self.read(std::slice::from_ref(bytes)))
    }

    fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        span!("storage.get_ranges", name = name, ranges = ranges.len());
        let answer = self.count(Request::Get, || self.storage.get_ranges(name, ranges), failed);
        answer.inspect(|parts| self.read(parts))
    }

    fn get_ranges_of(&self, wanted: &[(String, Vec<Range<u64>>)]) -> Vec<Result<Vec<Bytes>>> {
        span!("storage.get_ranges_of", objects = wanted.len());
        let answers = self.count(Request::Get, || self.storage.get_ranges_of(wanted), |answers| failures(answers));
        answers.iter().flatten().for_each(|parts| self.read(parts));
        answers
    }

    fn is_remote(&self) -> bool {
        self.storage.is_remote()
    }

    fn written_at(&self, name: &str) -> Result<Option<Timestamp>> {
        self.storage.written_at(name)
    }

    fn keeps_replaced(&self, written: &Tag) -> Option<bool> {
        self.storage.keeps_replaced(written)
    }

    fn prefetch(&self, name: &str, ranges: &[Range<u64>]) {
        self.storage.prefetch(name, ranges);
    }

    fn put(&self, name: &str, parts: &[Bytes], mode: WriteMode) -> Result<()> {
        span!("storage.put", name = name);
        let answer = self.count(Request::Put, || self.storage.put(name, parts, mode), failed);
        answer.inspect(|()| self.env.metrics.bytes_written.add(bytes_of(parts)))
    }

    fn get_tagged(&self, name: &str, known: Option<&Tag>) -> Result<Option<(Bytes, Tag)>> {
        span!("storage.get_tagged", name = name);
        let answer = self.count(Request::Get, || self.storage.get_tagged(name, known), failed);
        answer.inspect(|found| found.iter().for_each(|(bytes, _)| self.read(std::slice::from_ref(bytes))))
    }

    fn put_if_match(&self, name: &str, parts: &[Bytes], known: Option<&Tag>) -> Result<Tag> {
        span!("storage.put_if_match", name = name);
        let answer = self.count(Request::PutIfMatch, || self.storage.put_if_match(name, parts, known), failed);
        answer.inspect(|_| self.env.metrics.bytes_written.add(bytes_of(parts)))
    }

    fn delete_many(&self, names: &[String]) -> Vec<Result<()>> {
        span!("storage.delete_many", objects = names.len());
        self.count(Request::Delete, || self.storage.delete_many(names), |answers| failures(answers))
    }

    fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        span!("storage.list", folder = folder);
        self.count(Request::List, || self.storage.list(folder), failed)
    }

    fn list_folders(&self, folder: &str) -> Result<Vec<String>> {
        span!("storage.list_folders", folder = folder);
        self.count(Request::List, || self.storage.list_folders(folder), failed)
    }

    fn unfinished(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        self.count(Request::List, || self.storage.unfinished(folder), failed)
    }

    fn top(&self) -> Result<Vec<String>> {
        self.count(Request::List, || self.storage.top(), failed)
    }

    fn survey(&self, tagged: &str, other: &str, folders: &[&str]) -> Survey {
        let begun = self.env.clock.now();
        let survey = self.storage.survey(tagged, other, folders);
        if !cfg!(uncounted) {
            let (metrics, micros) = (&self.env.metrics, self.env.micros_since(begun));
            let gets = [failed(&survey.tagged), failed(&survey.other)];
            let lists = survey.folders.iter().map(failed);
            gets.iter().for_each(|_| metrics.request(Request::Get, micros));
            folders.iter().for_each(|_| metrics.request(Request::List, micros));
            metrics.request_failures.add(gets.into_iter().chain(lists).sum());
        }
        survey.tagged.iter().flatten().for_each(|(bytes, _)| self.read(std::slice::from_ref(bytes)));
        survey.other.iter().for_each(|bytes| self.read(std::slice::from_ref(bytes)));
        survey
    }

    fn note(&self, name: &str, bytes: &Bytes, replaces: &dyn Fn(&[u8]) -> bool) -> Result<()> {
        self.count(Request::Get, || (), |()| 0);
        self.count(Request::Put, || self.storage.note(name, bytes, replaces), failed)
    }

    fn seal(&self, why: &str) {
        self.storage.seal(why);
    }

    fn release(&self) {
        self.storage.release();
    }

    fn remove_empty_folder(&self, folder: &str) -> Result<()> {
        self.storage.remove_empty_folder(folder)
    }
}
