//! The thread that talks to the server of a cell.

use std::future::Future;
use std::time::Duration;

use super::super::threads::{IoThreads, NoAnswer};
use crate::base::{Error, Result};

/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The thread of one cell.
#[derive(Debug)]
pub struct ServerThread(IoThreads);

impl ServerThread {
    pub fn start() -> Result<Self> {
        Ok(Self(IoThreads::start("drumlin-log", 1)?))
    }

    /// Runs `work` there, for half a minute at most, and waits for it.
    pub fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T, NoAnswer> {
        let limited = self.0.wait(async move { tokio::time::timeout(LIMIT, work).await })?;
        let late = |_| NoAnswer::Sent(Error::unavailable("the server did not answer within 30 seconds"));
        limited.map_err(late)
    }

    /// Runs `work` beside others until it ends.
    pub fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.beside(work);
    }
}
