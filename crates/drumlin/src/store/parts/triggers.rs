//! The triggers that this process calls: their names, how far each has been called, and what failed. The thread that calls them is
//! *trigger.rs*.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::commits::feeds::CommitRecord;
use crate::base::{Env, Error, Metrics, Result, Seq, Timestamp, Warn, WarningKind, waiting};
use crate::catalog::{Event, NodeEvent, TriggerFilter};

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

/// A trigger's callback. Its errors are kept for [`crate::Tree::trigger_failures`], and do not stop others.
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

/// A trigger that this process calls.
pub(in crate::store) struct Registered {
    filter: TriggerFilter,
    callback: TriggerFn,
    durable: bool,
    /// It has been called for all commits up to this one.
    done: Seq,
}

impl Registered {
    /// One that has been called for all commits up to `done`.
    pub fn new(filter: TriggerFilter, callback: TriggerFn, durable: bool, done: Seq) -> Self {
        Self { filter, callback, durable, done }
    }
}

/// Triggers with their names, in the order in which they are called.
pub(in crate::store) type TriggerList = Vec<(String, Arc<Mutex<Registered>>)>;

/// A trigger on rows that this process calls.
pub(in crate::store) struct RowTrigger {
    name: String,
    path: String,
    ended: AtomicBool,
    /// It has been called for all commits up to this one.
    done: AtomicU64,
}

impl RowTrigger {
    /// One of the table at `path`.
    pub fn new(name: String, path: String) -> Self {
        Self { name, path, ended: AtomicBool::new(false), done: AtomicU64::new(0) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn is_behind(&self, seq: Seq) -> bool {
        !self.is_ended() && self.done.load(Ordering::Relaxed) < seq.0
    }
}

#[derive(Default)]
struct TriggerState {
    by_name: BTreeMap<String, Arc<Mutex<Registered>>>,
    failures: VecDeque<TriggerFailure>,
    /// Those on rows, with their threads.
    rows: Vec<(Arc<RowTrigger>, ThreadId)>,
    /// All triggers have been called for all commits up to this one.
    done: Seq,
    running: bool,
    thread: Option<ThreadId>,
    stopped: bool,
    last_name: u64,
}

/// The triggers of an open store.
pub(in crate::store) struct Triggers {
    shared: Mutex<TriggerState>,
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

    pub fn is_stopped(&self) -> bool {
        self.shared.lock().stopped
    }

    /// A name for a trigger that has none.
    pub fn next_name(&self) -> String {
        let mut shared = self.shared.lock();
        shared.last_name += 1;
        format!("trigger {}", shared.last_name)
    }

    /// The names of all.
    pub fn names(&self) -> Vec<String> {
        self.shared.lock().by_name.keys().cloned().collect()
    }

    /// Adds a trigger. One that replaces another of its name is not called again for what that was called for. If no thread
    /// calls triggers yet, `start` starts one, from the place that it also returns. Returns whether one ran already.
    pub fn add(
        &self,
        name: &str,
        mut one: Registered,
        start: impl FnOnce() -> Result<(ThreadId, Seq)>,
    ) -> Result<bool> {
        let mut shared = self.shared.lock();
        one.done = shared.by_name.get(name).map_or(one.done, |known| known.lock().done.max(one.done));
        let ran = shared.running;
        if !ran {
            let (thread, place) = start()?;
            (shared.running, shared.thread, shared.done) = (true, Some(thread), place);
        }
        shared.by_name.insert(name.to_owned(), Arc::new(Mutex::new(one)));
        Ok(ran)
    }

    /// Removes a trigger; returns whether it was there.
    pub fn remove(&self, name: &str) -> bool {
        let removed = self.shared.lock().by_name.remove(name).is_some();
        self.notify();
        removed
    }

    /// Adds a trigger on rows, which takes the place of one of its name.
    pub fn add_rows(&self, one: Arc<RowTrigger>, thread: ThreadId) {
        self.end_rows(&one.path, &one.name);
        self.shared.lock().rows.push((one, thread));
    }

    /// Ends a trigger on rows; returns whether it was there.
    pub fn end_rows(&self, path: &str, name: &str) -> bool {
        let mut ended = false;
        self.shared.lock().rows.retain(|(one, _)| {
            let own = one.path == path && one.name == name;
            if own {
                ended |= !one.is_ended();
                one.end();
            }
            !own && !one.is_ended()
        });
        self.notify();
        ended
    }

    /// A trigger on rows was called for all commits up to `done`.
    pub fn mark_rows(&self, one: &RowTrigger, done: Seq) {
        one.done.fetch_max(done.0, Ordering::Relaxed);
        self.notify();
    }

    /// How far the durable ones have been called.
    pub fn durable_places(&self) -> Vec<(String, Seq)> {
        let place = |(name, one): (String, Arc<Mutex<Registered>>)| {
            let one = one.lock();
            one.durable.then(|| (name, one.done))
        };
        self.list().into_iter().filter_map(place).collect()
    }

    /// Takes the failures, the oldest first.
    pub fn take_failures(&self) -> Vec<TriggerFailure> {
        self.shared.lock().failures.drain(..).collect()
    }

    /// Waits, at most for `time`, until all have been called for all commits up to `until`, or are stopped; returns whether they
    /// have. `current` is the calling thread, which must not be theirs.
    pub fn wait(&self, current: ThreadId, until: Seq, time: Option<Duration>) -> Result<bool> {
        let mut shared = self.shared.lock();
        if shared.thread == Some(current) || shared.rows.iter().any(|(_, thread)| *thread == current) {
            return Err(Error::invalid("a trigger must not wait for the triggers"));
        }
        let open = |shared: &mut TriggerState| {
            // One that joined late may still be on its way.
            let late = shared.done < until || shared.by_name.values().any(|one| one.lock().done < until);
            let rows = shared.rows.iter().any(|(one, _)| one.is_behind(until));
            !shared.stopped && (shared.running && late || rows)
        };
        match time {
            Some(time) => drop(self.changed.wait_while_for(&mut shared, open, time)),
            None => waiting::wait_while(&self.changed, &mut shared, open)?,
        }
        Ok(!open(&mut shared))
    }

    /// Wakes the threads that wait for the triggers.
    pub fn notify(&self) {
        // A thread that has looked and not yet begun to wait holds the lock.
        drop(self.shared.lock());
        self.changed.notify_all();
    }

    /// All have been called for all commits up to `done`.
    pub fn set_done(&self, done: Seq) {
        self.shared.lock().done = done;
        self.changed.notify_all();
    }

    /// All triggers, in the order in which they are called.
    pub fn list(&self) -> TriggerList {
        let shared = self.shared.lock();
        let mut list: Vec<_> = shared.by_name.iter().map(|(name, one)| (name.clone(), one.clone())).collect();
        list.sort_by_key(|(_, one)| std::cmp::Reverse(one.lock().filter.priority));
        list
    }

    /// Calls one trigger; keeps its error.
    fn call(&self, callback: &TriggerFn, call: &TriggerCall) {
        let path = if let TriggerEvent::Node(event) = &call.event { &event.path } else { "" };
        self.attempt(&call.trigger, call.seq, path, || callback(call));
    }

    /// Calls a callback; keeps its error.
    pub fn attempt(&self, trigger: &str, seq: Seq, path: &str, callback: impl FnOnce() -> Result<(), String>) {
        self.metrics.trigger_calls.add(1);
        let said = catch_unwind(AssertUnwindSafe(callback));
        if let Err(error) = said.unwrap_or_else(|_| Err("the callback failed unexpectedly".to_owned())) {
            self.fail(trigger, seq, path, error);
        }
    }

    /// Keeps the error of a trigger.
    pub fn fail(&self, trigger: &str, seq: Seq, path: &str, error: String) {
        self.metrics.trigger_failures.add(1);
        self.warn.say(WarningKind::TriggerFailed, || format!("trigger '{trigger}' failed for commit {seq}: {error}"));
        let mut shared = self.shared.lock();
        if shared.failures.len() == FAILURES_MAX {
            shared.failures.pop_front();
        }
        let (trigger, path) = (trigger.to_owned(), path.to_owned());
        shared.failures.push_back(TriggerFailure { trigger, seq, path, error });
    }

    /// Calls those triggers of `list` for what a commit did that have not been called for it. Returns whether they were
    /// called for all of it: not if triggers were stopped.
    pub fn deliver(&self, list: &TriggerList, record: &CommitRecord) -> Result<bool> {
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
        record.visit(&mut |event| {
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

    /// Those of `list` have been called for all commits up to `done`.
    pub fn mark(&self, list: &TriggerList, done: Seq) {
        for (_, one) in list {
            let mut one = one.lock();
            one.done = one.done.max(done);
        }
    }

    /// Those of `list` that have yet to be called for commits up to `place`, each with its own place.
    pub fn late(list: &TriggerList, place: Seq) -> Vec<(TriggerList, Seq)> {
        let late = |(name, one): &(String, Arc<Mutex<Registered>>)| {
            let done = one.lock().done;
            (done < place).then(|| (vec![(name.clone(), one.clone())], done))
        };
        list.iter().filter_map(late).collect()
    }

    /// Calls triggers with a resync, in place of events before `seq` that are gone.
    pub fn resync(&self, list: &TriggerList, seq: Seq) {
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
