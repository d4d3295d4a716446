//! Threads that wait for servers, and the waits of calls for them.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::sync_channel;

use futures_util::FutureExt;
use tokio::runtime::Runtime;

use crate::base::{Error, Result, waiting};

/// Some threads, until they are dropped.
#[derive(Debug)]
pub struct IoThreads(Option<Runtime>);

/// Why there is no answer.
pub enum NoAnswer {
    /// The request was not sent.
    Unsent(Error),
    /// It may have been.
    Sent(Error),
}

impl NoAnswer {
    /// The error, where both are alike.
    pub fn error(self) -> Error {
        match self {
            Self::Unsent(e) | Self::Sent(e) => e,
        }
    }
}

impl IoThreads {
    /// Starts `threads` of them, one at least.
    pub fn start(name: &str, threads: usize) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name(name)
            .enable_all()
            .build()
            .map_err(|e| Error::unavailable("the I/O threads could not be started").with_source(e))?;
        Ok(Self(Some(runtime)))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("there until it is dropped")
    }

    /// Runs `work` on them and waits for it: the caller may be a thread of another runtime. `Cancelled` if the call is to stop: whether
    /// `work` was done is not known once it was sent.
    pub fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T, NoAnswer> {
        waiting::check().map_err(NoAnswer::Unsent)?;
        let (told, answer) = sync_channel(1);
        let task = self.runtime().spawn(async move { drop(told.send(AssertUnwindSafe(work).catch_unwind().await)) });
        let answer = waiting::receive(&answer).inspect_err(|_| task.abort()).map_err(NoAnswer::Sent)?;
        let ended = |_| NoAnswer::Sent(Error::unavailable("the request ended without an answer"));
        answer.map_err(ended)?.map_err(|panic| NoAnswer::Sent(Error::panicked(&*panic)))
    }

    /// Runs `work` beside others until it ends.
    pub fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime().spawn(work);
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // It may be dropped by one of its own threads, which cannot wait for itself.
            runtime.shutdown_background();
        }
    }
}
