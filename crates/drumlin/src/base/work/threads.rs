//! Threads for work that waits; computation goes to the pool.

use std::thread::ThreadId;

use crate::base::{Error, Result};

/// Starts threads.
pub trait Threads: Send + Sync {
    /// Runs `work` on a new thread called `name`.
    ///
    /// # Errors
    /// `Unavailable` if the system starts no more threads.
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<ThreadId>;

    /// The calling thread.
    fn current(&self) -> ThreadId;
}

/// The system's threads.
#[derive(Debug)]
pub struct OsThreads;

impl Threads for OsThreads {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<ThreadId> {
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        let handle =
            started.map_err(|e| Error::unavailable(format!("could not start the thread {name}")).with_source(e))?;
        Ok(handle.thread().id())
    }

    fn current(&self) -> ThreadId {
        std::thread::current().id()
    }
}
