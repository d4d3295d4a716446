//! Calls into the core without the interpreter lock.
//!
//! A long call runs on a thread of its own while the calling thread, which alone can see signals, looks for them.
//! Nobody waits for the other while holding the interpreter lock, so input that needs the lock can be drawn from any
//! thread.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use drumlin::Result;
use drumlin::base::{Cancel, Progress, Task};
use pyo3::prelude::*;

use crate::errors::raise;

/// How often signals are looked for.
const SIGNAL_POLL: Duration = Duration::from_millis(50);

/// Runs a call that does not take long.
pub fn detached<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(call).map_err(raise)
}

/// Runs a long call, which ends early if it looks at `cancel` and a signal handler raises (Ctrl-C).
pub fn long<T: Send>(py: Python<'_>, cancel: &Cancel, call: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(1);
            // The receiver waits for exactly this.
            scope.spawn(move || drop(sender.send(catch_unwind(AssertUnwindSafe(call)))));
            let mut interrupted = None;
            loop {
                match receiver.recv_timeout(SIGNAL_POLL) {
                    Ok(ended) => {
                        let result = ended.unwrap_or_else(|panic| resume_unwind(panic)).map_err(raise);
                        return interrupted.map_or(result, Err);
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(raised) = Python::attach(|py| py.check_signals()) {
                            cancel.cancel();
                            interrupted.get_or_insert(raised);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => unreachable!("a panic of the call is caught and sent"),
                }
            }
        })
    })
}

/// Runs a long call that tells `progress` of its steps. What the callback raises cancels the call and is raised.
pub fn with_progress<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    call: impl FnOnce(Task) -> Result<T> + Send,
) -> PyResult<T> {
    let cancel = Cancel::default();
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let progress = progress.map(|callback| {
        let (cancel, raised) = (cancel.clone(), raised.clone());
        let tell = move |Progress { done, total, rows, bytes }: Progress| {
            let mut raised = raised.lock().unwrap_or_else(PoisonError::into_inner);
            if raised.is_some() {
                return;
            }
            if let Err(error) = Python::attach(|py| callback.call1(py, (done, total, rows, bytes))) {
                cancel.cancel();
                *raised = Some(error);
            }
        };
        Arc::new(tell) as Arc<dyn Fn(Progress) + Send + Sync>
    });
    let task = Task { cancel: cancel.clone(), progress };
    let result = long(py, &cancel, || call(task));
    let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.map_or(result, Err)
}
