//! Triggers on the rows of a table: functions that are called for what commits change in it, each on a thread of its own that reads a feed.
//!
//! Between calls a thread holds no store, so that it keeps none open.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::begin::FollowFrom;
use super::changes::SHARED_POLL;
use super::follow::FollowOptions;
use super::place::FeedPlace;
use super::rows::{PausedFeed, RowChanges, RowFeed};
use crate::base::{Error, ErrorKind, Result};
use crate::catalog::Path;
use crate::store::handle::StoreParts;
use crate::store::parts::{OpenFeed, RowTrigger};
use crate::store::{Store, Table};

/// After this number of calls the place of a durable trigger is recorded, even while there is more to do.
const NOTED_EVERY: usize = 100;
/// How long it waits before it tries again what storage has refused.
const AGAIN: Duration = Duration::from_millis(200);

/// What a trigger on rows is called with.
#[derive(Clone, Debug)]
pub enum RowEvent {
    /// Rows that one commit changed.
    Changes(Box<RowChanges>),
    /// Versions were deleted before it was called for what they changed: anything kept in step with the table has to be built again from
    /// all of it. It is called for what comes after this place.
    Resync(FeedPlace),
}

/// The callback of a trigger on rows. Its errors are kept for [`crate::Tree::trigger_failures`], and do not end it.
pub type RowTriggerFn = Arc<dyn Fn(&RowEvent) -> Result<(), String> + Send + Sync>;

impl Table {
    /// Calls `callback` for the rows that commits change from now on, in order, as long as this store is open: see [`Table::follow`].
    /// Returns the trigger's name, by which [`Table::off`] ends it.
    ///
    /// It runs on a thread of its own: a slow callback delays no commit and no other trigger, and may use the store. With
    /// [`FollowOptions::follower`] it is durable: it is called at least once for each change since it was first made, over restarts and
    /// crashes, in the process that made it last; elsewhere it ends. It ends, too, with a failure, if the table or a column of its filter is
    /// dropped.
    ///
    /// # Errors
    /// As of [`Table::follow`].
    pub fn on(&self, options: &FollowOptions, callback: RowTriggerFn) -> Result<String> {
        let feed = self.follow(&FollowFrom::Now, options)?;
        let store = self.place.in_store("registering a trigger")?.clone();
        let name = options.follower.clone().unwrap_or_else(|| store.registry().next_name());
        let one = Arc::new(RowTrigger::new(name.clone(), self.path().to_owned()));
        let (inner, paused, own) = (store.downgrade(), feed.pause(), one.clone());
        let thread =
            store.env().threads.spawn("drumlin-rows", Box::new(move || run(&inner, &own, paused, &callback)))?;
        store.registry().add_rows(one, thread);
        Ok(name)
    }

    /// Ends a trigger on rows of this table; a durable one for good.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name.
    pub fn off(&self, name: &str) -> Result<()> {
        let store = self.place.in_store("ending a trigger")?;
        let here = store.registry().end_rows(Path::new(self.path())?.as_str(), name);
        match self.drop_follower(name) {
            Err(e) if e.kind() == ErrorKind::NotFound && here => Ok(()),
            done => done,
        }
    }
}

/// Calls a trigger until it is ended, or the store is closed.
fn run(inner: &Weak<StoreParts>, one: &RowTrigger, mut paused: PausedFeed, callback: &RowTriggerFn) {
    while let Some(store) = Store::upgrade(inner) {
        let triggers = store.registry().clone();
        if triggers.is_stopped() || one.is_ended() {
            break;
        }
        let joined = OpenFeed::join(store.commits().feeds());
        let wakes = joined.wakes();
        let seq = store.commits().newest().state().seq;
        joined.passed(seq);
        let poll = store.setting().is_shared().then_some(SHARED_POLL);
        let mut feed = paused.resume(store);
        let done = drain(&mut feed, one, callback);
        match &done {
            Ok(()) => triggers.mark_rows(one, seq),
            Err(e) if is_passing(e) => {}
            Err(e) => {
                if e.kind() != ErrorKind::Closed {
                    triggers.fail(one.name(), seq, one.path(), e.to_string());
                }
                break;
            }
        }
        paused = feed.pause();
        if !joined.wait(seq, wakes, if done.is_err() { Some(AGAIN) } else { poll }) {
            break;
        }
    }
    if let Some(store) = Store::upgrade(inner) {
        one.end();
        store.registry().notify();
    }
}

/// Whether what failed may succeed later.
fn is_passing(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Unavailable | ErrorKind::Conflict | ErrorKind::InDoubt)
}

/// Calls a trigger for all that there is now.
fn drain(feed: &mut RowFeed, one: &RowTrigger, callback: &RowTriggerFn) -> Result<()> {
    let mut calls = 0;
    loop {
        let event = match feed.next(Some(Duration::ZERO)) {
            Ok(Some(changes)) => RowEvent::Changes(Box::new(changes)),
            Ok(None) => return feed.note(),
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => {
                // The new place first: it is called for what follows it.
                RowEvent::Resync(feed.go_to_now()?)
            }
            Err(e) => return Err(e),
        };
        let triggers = feed.store.registry().clone();
        triggers.attempt(one.name(), feed.store.seq().unwrap_or_default(), one.path(), || callback(&event));
        calls += 1;
        if calls % NOTED_EVERY == 0 {
            feed.note()?;
        }
        if triggers.is_stopped() || one.is_ended() {
            return feed.note();
        }
    }
}
