//! Progress of long operations, and the flag that stops them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Error, Result};

/// What a long operation has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Steps done (row groups, tables or objects, by operation).
    pub done: u64,
    /// Steps in all; 0 while unknown.
    pub total: u64,
    /// Rows handled.
    pub rows: u64,
    /// Encoded bytes handled.
    pub bytes: u64,
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
    /// Is told of every step, from any thread.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
}

impl Task {
    /// Tells the callback, if there is one, and fails if cancelled.
    pub fn step(&self, progress: Progress) -> Result<()> {
        if let Some(callback) = &self.progress {
            callback(progress);
        }
        self.cancel.check()
    }
}
