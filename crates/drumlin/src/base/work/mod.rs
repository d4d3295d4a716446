//! Work in parallel and over time: the CPU pool, threads, progress and stopping, retries, panics as errors.

pub(super) mod panic;
pub(super) mod patience;
pub(super) mod pool;
pub(super) mod progress;
pub(super) mod threads;
