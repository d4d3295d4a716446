//! Triggers: callbacks on what happens to nodes, called after the commit, in effect order, on a separate thread.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::feed::{CommitRecord, Cursor, SHARED_POLL, visit};
use super::{Inner, Store, Tree};
use crate::base::{
    Env, Error, ErrorKind, Metrics, Result, Seq, SessionId, Timestamp, Warn, WarningKind, json_text, waiting,
};
use crate::catalog::{Effect, Event, NodeEvent, TriggerFilter};

/// What a trigger is called with.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerCall {
    /// The commit.
    pub seq: Seq,
    /// Its time.
    pub time: Timestamp,
    /// The trigger.
    pub trigger: String,
    /// What happened.
    pub event: TriggerEvent,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum TriggerEvent {
    /// Something happened to a node.
    Node(NodeEvent),
    /// The log was cut before the trigger was called for all that was in it: anything kept in step with the tree has to
    /// be built again from all of it.
    Resync,
}

/// A trigger's callback. Its errors are kept for [`Tree::trigger_failures`], and do not stop others.
pub type TriggerFn = Arc<dyn Fn(&TriggerCall) -> Result<(), String> + Send + Sync>;

/// A call of a trigger that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerFailure {
    /// The trigger.
    pub trigger: String,
    /// The commit.
    pub seq: Seq,
    /// The node.
    pub path: String,
    /// What the callback returned.
    pub error: String,
}

/// How many failures are kept until they are taken.
const FAILURES_MAX: usize = 1000;
/// After this many commits the places of durable triggers are recorded, even while there is more to do.
const NOTED_EVERY: u64 = 1000;

struct Registered {
    filter: TriggerFilter,
    callback: TriggerFn,
    durable: bool,
    /// It has been called for all commits up to this one.
    done: Seq,
}

/// Triggers with their names, in the order in which they are called.
type Listed = Vec<(String, Arc<Mutex<Registered>>)>;

#[derive(Default)]
struct Shared {
    by_name: BTreeMap<String, Arc<Mutex<Registered>>>,
    failures: VecDeque<TriggerFailure>,
    /// All triggers have been called for all commits up to this one.
    done: Seq,
    running: bool,
    thread: Option<ThreadId>,
    stopped: bool,
    last_name: u64,
}

/// The triggers of an open store.
pub(super) struct Triggers {
    shared: Mutex<Shared>,
    changed: Condvar,
    metrics: Arc<Metrics>,
    warn: Warn,
}

impl Triggers {
    /// None yet.
    pub fn reporting_to(env: &Env) -> Self {
        let (metrics, warn) = (env.metrics.clone(), env.warn.clone());
        Self { shared: Mutex::default(), changed: Condvar::new(), metrics, warn }
    }

    pub fn stop(&self) {
        self.shared.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Releases the callbacks, which may hold what holds the store.
    pub fn clear(&self) {
        let callbacks = std::mem::take(&mut self.shared.lock().by_name);
        drop(callbacks);
    }

    /// Wakes the threads that wait for the triggers.
    fn notify(&self) {
        // A thread that has looked and not yet begun to wait holds the lock.
        drop(self.shared.lock());
        self.changed.notify_all();
    }

    fn set_done(&self, done: Seq) {
        self.shared.lock().done = done;
        self.changed.notify_all();
    }

    /// All triggers, in the order in which they are called.
    fn list(&self) -> Listed {
        let shared = self.shared.lock();
        let mut list: Vec<_> = shared.by_name.iter().map(|(name, one)| (name.clone(), one.clone())).collect();
        list.sort_by_key(|(_, one)| std::cmp::Reverse(one.lock().filter.priority));
        list
    }

    /// Calls one trigger; keeps its error.
    fn call(&self, callback: &TriggerFn, call: &TriggerCall) {
        self.metrics.trigger_calls.add(1);
        let said = catch_unwind(AssertUnwindSafe(|| callback(call)));
        let Err(error) = said.unwrap_or_else(|_| Err("the callback failed unexpectedly".to_owned())) else { return };
        self.metrics.trigger_failures.add(1);
        self.warn.say(WarningKind::TriggerFailed, || {
            format!("trigger '{}' failed for commit {}: {error}", call.trigger, call.seq)
        });
        let path = if let TriggerEvent::Node(event) = &call.event { event.path.clone() } else { String::new() };
        let mut shared = self.shared.lock();
        if shared.failures.len() == FAILURES_MAX {
            shared.failures.pop_front();
        }
        shared.failures.push_back(TriggerFailure { trigger: call.trigger.clone(), seq: call.seq, path, error });
    }

    /// Calls those triggers of `list` for what a commit did that have not been called for it. Returns whether they were
    /// called for all of it: not if triggers were stopped.
    fn deliver(&self, list: &[(String, Arc<Mutex<Registered>>)], record: &CommitRecord) -> Result<bool> {
        let (seq, time) = (record.after.seq, record.after.time);
        let due: Vec<_> = list
            .iter()
            .filter_map(|(name, one)| {
                let one = one.lock();
                (one.done < seq).then(|| (name, one.filter.clone(), one.callback.clone()))
            })
            .collect();
        let mut whole = true;
        if due.is_empty() {
            return Ok(whole);
        }
        visit(record, &mut |event| {
            let Event::Node(event) = event else { return true };
            let node = event.after.as_ref().or(event.before.as_ref()).cloned().unwrap_or_default();
            let mut call: Option<TriggerCall> = None;
            for (name, filter, callback) in &due {
                if filter.matches(&event.path, event.action, &node) {
                    let new =
                        || TriggerCall { seq, time, trigger: String::new(), event: TriggerEvent::Node(event.clone()) };
                    let call = call.get_or_insert_with(new);
                    call.trigger.clone_from(name);
                    self.call(callback, call);
                }
            }
            whole = !self.shared.lock().stopped;
            whole
        })?;
        Ok(whole)
    }

    /// Calls triggers with a resync, in place of events before `seq` that are gone.
    fn resync(&self, list: &[(String, Arc<Mutex<Registered>>)], seq: Seq) {
        for (name, one) in list {
            let callback = one.lock().callback.clone();
            let call = TriggerCall { seq, time: Timestamp(0), trigger: name.clone(), event: TriggerEvent::Resync };
            self.call(&callback, &call);
            let mut one = one.lock();
            one.done = one.done.max(seq);
        }
        self.notify();
    }
}

/// Whether a commit did anything to nodes.
fn touches_nodes(record: &CommitRecord) -> bool {
    record.transactions.iter().any(|transaction| transaction.nodes() > 0)
}

/// Calls triggers until the store is closed.
fn run(inner: &std::sync::Weak<Inner>, triggers: &Triggers, mut cursor: Cursor) {
    let mut noted = cursor.seq();
    let mut dirty = false;
    let mut looks = false;
    while let Some(strong) = inner.upgrade() {
        if triggers.shared.lock().stopped {
            break;
        }
        let wakes = cursor.wakes();
        let shared = strong.log.is_shared();
        if shared && looks {
            // On failure, it is tried again the next time.
            let _ = Store::internal(strong.clone()).refresh();
        }
        let place = cursor.seq();
        let next = match cursor.next(&strong) {
            Ok(next) => next,
            // On failure, it is read the next time.
            Err(e) if e.kind() == ErrorKind::Unavailable => {
                drop(strong);
                looks = true;
                if !cursor.wait(wakes, Some(SHARED_POLL)) {
                    break;
                }
                continue;
            }
            Err(_) => {
                // The new place first: the triggers are called for what follows it.
                cursor = Cursor::here(&strong);
                triggers.resync(&triggers.list(), cursor.seq());
                triggers.set_done(cursor.seq());
                continue;
            }
        };
        // Taken after the commit, so that all triggers registered before it are in the list.
        let list = triggers.list();
        // A trigger that joined with an older place first catches up by itself.
        for (name, one) in &list {
            let behind = one.lock().done < place;
            if behind {
                catch_up(&strong, triggers, name, one, place);
            }
        }
        let idle = next.is_none();
        if let Some(record) = next {
            // They cannot be damaged: these effects have been applied.
            if !triggers.deliver(&list, &record).unwrap_or(true) {
                break;
            }
            let done = record.after.seq;
            for (_, one) in &list {
                let mut one = one.lock();
                one.done = one.done.max(done);
            }
            dirty |= touches_nodes(&record);
            triggers.set_done(done);
        }
        if dirty && (idle || cursor.seq().0 - noted.0 >= NOTED_EVERY) {
            dirty = false;
            noted = cursor.seq();
            let store = Store::internal(strong.clone());
            // It is tried again with the next batch, and when the store is closed.
            let _ = store.note_triggers();
        }
        drop(strong);
        // Commits of other processes wake nothing here.
        looks = idle;
        if idle && !cursor.wait(wakes, shared.then_some(SHARED_POLL)) {
            break;
        }
    }
    triggers.stop();
}

/// Calls one trigger for the commits between its place and `until`.
fn catch_up(inner: &Arc<Inner>, triggers: &Triggers, name: &str, one: &Arc<Mutex<Registered>>, until: Seq) {
    let single = [(name.to_owned(), one.clone())];
    let done = one.lock().done;
    let Ok(mut cursor) = Cursor::new(inner, done) else { return triggers.resync(&single, until) };
    while cursor.seq() < until {
        match cursor.next(inner) {
            Ok(Some(record)) => {
                if !triggers.deliver(&single, &record).unwrap_or(true) {
                    return;
                }
                one.lock().done = record.after.seq;
            }
            Ok(None) => break,
            Err(_) => return triggers.resync(&single, until),
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
        let name = {
            let mut shared = store.inner.triggers.shared.lock();
            shared.last_name += 1;
            format!("trigger {}", shared.last_name)
        };
        let done = store.seq()?;
        store.register(&name, Registered { filter, callback, durable: false, done })?;
        Ok(name)
    }

    /// The same as [`Tree::on`] under a name that lasts: `callback` is called at least once for each event since the
    /// trigger was first created, over restarts and crashes, whenever a process has registered it. If a checkpoint has cut
    /// the log in between, it is called with [`TriggerEvent::Resync`] instead. A filter that differs from the stored one
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
        store.refresh_if_shared()?;
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
        store.register(name, Registered { filter, callback, durable: true, done })
    }

    /// Ends a trigger; a durable one for good.
    ///
    /// # Errors
    /// `NotFound` if there is none with the name.
    pub fn off(&self, name: &str) -> Result<()> {
        let store = self.in_store(TRIGGER)?;
        let registered = store.inner.triggers.shared.lock().by_name.remove(name).is_some();
        store.inner.triggers.notify();
        if !store.inner.read_only {
            store.refresh_if_shared()?;
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
        let mut names: Vec<String> = store.inner.triggers.shared.lock().by_name.keys().cloned().collect();
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
        let triggers = &store.inner.triggers;
        let mut shared = triggers.shared.lock();
        if shared.thread == Some(store.inner.env.threads.current()) {
            return Err(Error::invalid("a trigger must not wait for the triggers"));
        }
        let open = |shared: &mut Shared| {
            // One that joined late may still be on its way.
            let behind = shared.done < until || shared.by_name.values().any(|one| one.lock().done < until);
            shared.running && !shared.stopped && behind
        };
        match wait {
            Some(wait) => drop(triggers.changed.wait_while_for(&mut shared, open, wait)),
            None => waiting::wait_while(&triggers.changed, &mut shared, open)?,
        }
        Ok(!open(&mut shared))
    }

    /// Takes the failed calls of triggers, the oldest first; only the last 1,000 are kept.
    ///
    /// # Errors
    /// `InvalidArgument` in a transaction.
    pub fn trigger_failures(&self) -> Result<Vec<TriggerFailure>> {
        let store = self.in_store("taking the failures of triggers")?;
        Ok(store.inner.triggers.shared.lock().failures.drain(..).collect())
    }
}

impl Store {
    fn register(&self, name: &str, mut one: Registered) -> Result<()> {
        self.inner.check()?;
        let cursor = Cursor::here(&self.inner);
        let mut shared = self.inner.triggers.shared.lock();
        // One that replaces another of this process is not called again for what that was called for.
        one.done = shared.by_name.get(name).map_or(one.done, |known| known.lock().done.max(one.done));
        shared.by_name.insert(name.to_owned(), Arc::new(Mutex::new(one)));
        if shared.running {
            drop(shared);
            // The thread that waits for a commit looks at the list again.
            self.inner.feeds.wake();
            return Ok(());
        }
        shared.running = true;
        shared.done = cursor.seq();
        let (inner, triggers) = (Arc::downgrade(&self.inner), self.inner.triggers.clone());
        let work = Box::new(move || run(&inner, &triggers, cursor));
        match self.inner.env.threads.spawn("drumlin-triggers", work) {
            Ok(thread) => shared.thread = Some(thread),
            Err(e) => {
                shared.running = false;
                shared.by_name.remove(name);
                return Err(e);
            }
        }
        Ok(())
    }

    /// Records how far the durable triggers have been called.
    pub(super) fn note_triggers(&self) -> Result<()> {
        let list = self.inner.triggers.list();
        let places: Vec<(String, Seq)> = list
            .iter()
            .filter_map(|(name, one)| {
                let one = one.lock();
                one.durable.then(|| (name.clone(), one.done))
            })
            .collect();
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
