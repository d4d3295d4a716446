//! A commit log that closes its store for good once it says that another history lies there.

use std::sync::Arc;

use super::{Appended, Base, CommitLog, Durable, Entry, News, OfferTerms, Opened, Referred};
use crate::base::planted::{Bug, planted};
use crate::base::{Result, Seq};
use crate::storage::Storage;

/// Passes everything on to another log, and seals the storage once that has noticed another history.
pub struct SealingLog {
    log: Box<dyn CommitLog>,
    storage: Arc<dyn Storage>,
}

impl SealingLog {
    /// Seals `storage`.
    pub fn new(log: Box<dyn CommitLog>, storage: Arc<dyn Storage>) -> Self {
        Self { log, storage }
    }

    fn heed<T>(&self, answer: Result<T>) -> Result<T> {
        answer.inspect_err(|e| {
            if e.is_other_history() && !planted(Bug::GoOnInOtherHistory) {
                self.log.poison();
                self.storage.seal(e.message());
            }
        })
    }
}

impl CommitLog for SealingLog {
    fn append(&self, entry: &Entry, durable: Durable) -> Result<Appended> {
        self.heed(self.log.append(entry, durable))
    }

    fn append_among(&self, entry: &Entry, durable: Durable, terms: &OfferTerms<'_>) -> Result<Appended> {
        self.heed(self.log.append_among(entry, durable, terms))
    }

    fn refresh(&self) -> Result<Option<News>> {
        self.heed(self.log.refresh())
    }

    fn knows(&self, last: Seq) {
        self.log.knows(last);
    }

    fn confirm(&self) -> Result<()> {
        self.heed(self.log.confirm())
    }

    fn read(&self) -> Result<Opened> {
        self.heed(self.log.read())
    }

    fn read_after(&self, after: Seq) -> Result<Opened> {
        self.heed(self.log.read_after(after))
    }

    fn tidy(&self) {
        self.log.tidy();
    }

    fn sync(&self) -> Result<()> {
        self.heed(self.log.sync())
    }

    fn rebase(&self, before: Option<Base>, base: Base, bytes: u64) -> Result<bool> {
        self.heed(self.log.rebase(before, base, bytes))
    }

    fn close(&self) -> Result<()> {
        self.heed(self.log.close())
    }

    fn poison(&self) {
        self.log.poison();
    }

    fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    fn base(&self) -> Option<Base> {
        self.log.base()
    }

    fn is_shared(&self) -> bool {
        self.log.is_shared()
    }

    fn referred(&self) -> Option<Referred> {
        self.log.referred()
    }

    fn on_server(&self) -> Result<Option<(String, u64)>> {
        self.log.on_server()
    }

    fn store(&self) -> u128 {
        self.log.store()
    }

    fn inspect(&self, store: u128) -> Result<Vec<String>> {
        self.heed(self.log.inspect(store))
    }
}
