//! Progress of long operations, and the flag that stops them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::{Clock, Error, Result, Timestamp};

/// What a long operation has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Steps done (row groups, tables or objects, by operation).
    pub done: u64,
    /// Total number of steps; 0 while unknown.
    pub total: u64,
    /// Rows handled.
    pub rows: u64,
    /// Encoded bytes handled.
    pub bytes: u64,
    /// Estimated microseconds left, from the time taken so far; `None` while unknown.
    pub left_micros: Option<u64>,
}

/// A flag that stops a long operation at its next step. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks the operation to stop. It may already be past its commit.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// `Cancelled` once [`Cancel::cancel`] was called.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::SeqCst) {
            return Err(Error::cancelled("cancelled by the caller; nothing was changed"));
        }
        Ok(())
    }
}

/// How a long operation reports and is stopped. The default does neither.
#[derive(Clone, Default)]
pub struct Task {
    /// Stops the operation.
    pub cancel: Cancel,
    /// Called with every step, from any thread.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
}

impl Task {
    /// Calls the callback, if there is one, and fails if cancelled.
    ///
    /// # Errors
    /// `Cancelled`, or what the callback failed with.
    pub fn step(&self, progress: Progress) -> Result<()> {
        if let Some(callback) = &self.progress {
            callback(progress);
        }
        self.cancel.check()
    }
}

/// Reports to a task the steps of an operation whose total weight (in bytes, say) is known, and how long the rest will
/// take.
pub struct Meter<'a> {
    task: &'a Task,
    clock: &'a dyn Clock,
    started: Timestamp,
    weight: u64,
    weight_done: u64,
    /// What has been done.
    pub done: Progress,
}

impl<'a> Meter<'a> {
    /// For an operation of `total` steps and a total weight of `weight` that begins now.
    pub fn new(task: &'a Task, clock: &'a dyn Clock, total: u64, weight: u64) -> Self {
        let done = Progress { total, ..Progress::default() };
        Self { task, clock, started: clock.now(), weight, weight_done: 0, done }
    }

    /// Reports that `steps` steps of `weight` in total are done; fails if the task is cancelled.
    pub fn step(&mut self, steps: u64, weight: u64) -> Result<()> {
        self.done.done += steps;
        self.weight_done = (self.weight_done + weight).min(self.weight);
        let took = self.clock.now().0.saturating_sub(self.started.0).max(0) as u128;
        let left = took * u128::from(self.weight - self.weight_done);
        self.done.left_micros = left.checked_div(self.weight_done.into()).map(|left| left.min(u64::MAX.into()) as u64);
        self.task.step(self.done)
    }
}
