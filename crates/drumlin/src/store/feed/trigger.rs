//! Triggers: callbacks on what happens to nodes, called after the commit, in effect order, on a separate thread.
//!
//! The thread reads a feed. The place of a durable trigger is committed in batches, so after a crash it may be called
//! again for some commits. If the log was cut before it was called for all, it gets [`crate::TriggerEvent::Resync`]: look
//! at everything again.

use std::sync::Weak;
use std::time::Duration;

use super::changes::SHARED_POLL;
use super::cursor::Cursor;
use crate::base::{Error, ErrorKind, Result, Seq, SessionId, json_text};
use crate::catalog::{Effect, TriggerFilter};
use crate::store::handle::StoreParts;
use crate::store::parts::{CommitRecord, Commits, Registered, TriggerList, Triggers};
use crate::store::{Store, Tree, TriggerFailure, TriggerFn};

/// After this many commits the places of durable triggers are recorded, even while there is more to do.
const NOTED_EVERY: u64 = 1000;

/// Whether a commit did anything to nodes.
fn touches_nodes(record: &CommitRecord) -> bool {
    record.transactions.iter().any(|transaction| transaction.nodes() > 0)
}

/// Calls triggers until the store is closed.
fn run(inner: &Weak<StoreParts>, triggers: &Triggers, mut cursor: Cursor) {
    let mut noted = cursor.seq();
    let mut dirty = false;
    let mut looks = false;
    while let Some(store) = Store::upgrade(inner) {
        if triggers.is_stopped() {
            break;
        }
        let wakes = cursor.wakes();
        let shared = store.setting().is_shared();
        if shared && looks {
            // On failure, it is tried again the next time.
            let _ = store.refresh();
        }
        let place = cursor.seq();
        let next = match cursor.next(store.commits()) {
            Ok(next) => next,
            // On failure, it is read the next time.
            Err(e) if e.kind() == ErrorKind::Unavailable => {
                drop(store);
                looks = true;
                if !cursor.wait(wakes, Some(SHARED_POLL)) {
                    break;
                }
                continue;
            }
            Err(_) => {
                // The new place first: the triggers are called for what follows it.
                cursor = Cursor::here(store.commits());
                triggers.resync(&triggers.list(), cursor.seq());
                triggers.set_done(cursor.seq());
                continue;
            }
        };
        // Taken after the commit, so that all triggers registered before it are in the list.
        let list = triggers.list();
        // A trigger that joined with an older place first catches up by itself.
        for (late, done) in Triggers::late(&list, place) {
            catch_up(store.commits(), triggers, &late, done, place);
        }
        let idle = next.is_none();
        if let Some(record) = next {
            // They cannot be damaged: these effects have been applied.
            if !triggers.deliver(&list, &record).unwrap_or(true) {
                break;
            }
            triggers.mark(&list, record.after.seq);
            dirty |= touches_nodes(&record);
            triggers.set_done(record.after.seq);
        }
        if dirty && (idle || cursor.seq().0 - noted.0 >= NOTED_EVERY) {
            dirty = false;
            noted = cursor.seq();
            // It is tried again with the next batch, and when the store is closed.
            let _ = store.note_triggers();
        }
        drop(store);
        // Commits of other processes wake nothing here.
        looks = idle;
        if idle && !cursor.wait(wakes, shared.then_some(SHARED_POLL)) {
            break;
        }
    }
    triggers.stop();
}

/// Calls one trigger for the commits between its place, `done`, and `until`.
fn catch_up(commits: &Commits, triggers: &Triggers, late: &TriggerList, done: Seq, until: Seq) {
    let Ok(mut cursor) = Cursor::new(commits, done) else { return triggers.resync(late, until) };
    while cursor.seq() < until {
        match cursor.next(commits) {
            Ok(Some(record)) => {
                if !triggers.deliver(late, &record).unwrap_or(true) {
                    return;
                }
                triggers.mark(late, record.after.seq);
            }
            Ok(None) => break,
            Err(_) => return triggers.resync(late, until),
        }
    }
    triggers.notify();
}

/// What cannot be done in a transaction.
const TRIGGER: &str = "registering or ending a trigger";

impl Tree {
    /// Calls `callback` for what happens to nodes from now on, as long as this store is open, after each commit and in
    /// the order of its effects. Returns the trigger's name, by which [`Tree::off`] ends it.
    ///
    /// All triggers are called on one separate thread: a slow one delays the others but no commit, and a callback may
    /// commit. Errors of a callback are kept for [`Tree::trigger_failures`].
    ///
    /// # Errors
    /// `InvalidArgument` if the filter is not valid.
    pub fn on(&self, filter: TriggerFilter, callback: TriggerFn) -> Result<String> {
        filter.check()?;
        let store = self.in_store(TRIGGER)?;
        let name = store.registry().next_name();
        let done = store.seq()?;
        store.register(&name, Registered::new(filter, callback, false, done))?;
        Ok(name)
    }

    /// The same as [`Tree::on`] under a name that lasts: `callback` is called at least once for each event since the
    /// trigger was first created, over restarts and crashes, whenever a process has registered it. If a checkpoint has cut
    /// the log in between, it is called with [`crate::TriggerEvent::Resync`] instead. A filter that differs from the stored one
    /// replaces it.
    ///
    /// # Errors
    /// `InvalidArgument` if the name or the filter is not valid.
    pub fn on_durable(&self, name: &str, filter: TriggerFilter, callback: TriggerFn) -> Result<()> {
        filter.check()?;
        let store = self.in_store(TRIGGER)?;
        if name.is_empty() || name.starts_with("trigger ") {
            return Err(Error::invalid(format!(
                "'{name}' cannot be the name of a trigger; expected one that is not empty and does not begin with \
                 'trigger '"
            )));
        }
        json_text::check(&filter, "the trigger")?;
        let store = store.call()?.store;
        let owner = store.block_numbers()?.session();
        let known = |owner: SessionId| {
            let state = store.state()?;
            let found = state.triggers.get(name).filter(|known| known.filter == filter && known.owner == owner);
            Ok::<_, Error>(found.map(|known| known.done))
        };
        let done = match known(owner)? {
            Some(done) => done,
            None => {
                let (name, filter) = (name.to_owned(), filter.clone());
                let key = name.clone();
                let after = store.commit_effects(move |_| {
                    Ok(vec![Effect::PutTrigger { name: name.clone(), filter: filter.clone(), owner }])
                })?;
                after.triggers.get(&key).map_or(after.seq, |trigger| trigger.done)
            }
        };
        store.register(name, Registered::new(filter, callback, true, done))
    }

    /// Ends a trigger; a durable one for good.
    ///
    /// # Errors
    /// `NotFound` if there is none with the name.
    pub fn off(&self, name: &str) -> Result<()> {
        let store = self.in_store(TRIGGER)?;
        let registered = store.registry().remove(name);
        if !store.setting().is_read_only() {
            store.call()?;
        }
        if store.state()?.triggers.contains_key(name) {
            let name = name.to_owned();
            store.commit_effects(move |_| Ok(vec![Effect::DropTrigger { name: name.clone() }]))?;
            return Ok(());
        }
        if registered { Ok(()) } else { Err(Error::not_found(format!("trigger '{name}' does not exist"))) }
    }

    /// The names of the triggers: those registered here, and the durable ones.
    ///
    /// # Errors
    /// `Closed`.
    pub fn triggers(&self) -> Result<Vec<String>> {
        let store = self.in_store("listing triggers")?;
        let state = store.state()?;
        let mut names = store.registry().names();
        names.extend(state.triggers.keys().cloned());
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Waits until the triggers have been called for all commits up to now. Returns whether they have been within
    /// `wait`.
    ///
    /// # Errors
    /// `InvalidArgument` when called by a trigger.
    pub fn wait_for_triggers(&self, wait: Option<Duration>) -> Result<bool> {
        let store = self.in_store("waiting for triggers")?;
        let until = store.seq()?;
        store.registry().wait(store.env().threads.current(), until, wait)
    }

    /// Takes the failed calls of triggers, the oldest first; only the last 1,000 are kept.
    ///
    /// # Errors
    /// `InvalidArgument` in a transaction.
    pub fn trigger_failures(&self) -> Result<Vec<TriggerFailure>> {
        let store = self.in_store("taking the failures of triggers")?;
        Ok(store.registry().take_failures())
    }
}

impl Store {
    fn register(&self, name: &str, one: Registered) -> Result<()> {
        self.setting().check()?;
        // Before the trigger is added, so that it is called for all that follows.
        let cursor = Cursor::here(self.commits());
        let (inner, triggers) = (self.downgrade(), self.registry().clone());
        let start = || {
            let place = cursor.seq();
            let work = Box::new(move || run(&inner, &triggers, cursor));
            Ok((self.env().threads.spawn("drumlin-triggers", work)?, place))
        };
        if self.registry().add(name, one, start)? {
            // The thread that waits for a commit looks at the list again.
            self.commits().feeds().wake();
        }
        Ok(())
    }

    /// Records how far the durable triggers have been called.
    pub(in crate::store) fn note_triggers(&self) -> Result<()> {
        let places = self.registry().durable_places();
        let behind = move |state: &crate::catalog::State| {
            let later = |(name, seq): &(String, Seq)| state.triggers.get(name).is_some_and(|known| known.done < *seq);
            let effects = places.iter().filter(|place| later(place));
            effects.map(|(name, seq)| Effect::TriggerDone { name: name.clone(), seq: *seq }).collect::<Vec<_>>()
        };
        if behind(&*self.state()?).is_empty() {
            return Ok(());
        }
        match self.commit_effects(move |state| Ok(behind(state))) {
            Err(e) if e.kind() != ErrorKind::Closed => Err(e),
            _ => Ok(()),
        }
    }
}
