//! Calls into the core without the interpreter lock.
//!
//! A long call runs on a separate thread while the calling thread, the only one that can see signals, checks for them.
//! Neither waits for the other while holding the interpreter lock, so input that needs the lock can be read from any
//! thread.
//!
//! A panic of the core ends here: it is raised as `drumlin.Internal`, never as pyo3's `PanicException`, which no handler of
//! `Exception` sees.

use std::cell::Cell;
use std::convert::Infallible;
use std::ffi::c_int;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use drumlin::base::{Cancel, Progress, Task, caught};
use drumlin::{Error, Result};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::watch::{Bar, check_stop};

/// How often signals are checked.
const SIGNAL_POLL: Duration = Duration::from_millis(50);
/// How long to wait between checks for signals.
const WAIT_STEP: Duration = Duration::from_millis(100);

thread_local! {
    /// Whether this thread is within a commit, calling a Python function.
    static COMMITTING: Cell<bool> = const { Cell::new(false) };
}

/// Calls a Python function within a commit. Returns `None` if there is no interpreter, as when the process is ending.
pub fn within_commit<T>(call: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            COMMITTING.set(self.0);
        }
    }
    let _restore = Restore(COMMITTING.replace(true));
    Python::try_attach(call)
}

/// Fails within a commit: a function called there would wait for that very commit.
fn check_commit() -> PyResult<()> {
    if COMMITTING.get() {
        return Err(raise(Error::invalid(
            "a projection's function is called within a commit; it must not use the store",
        )));
    }
    Ok(())
}

/// Runs a call that does not take long.
pub fn detached<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    check_commit()?;
    py.detach(|| caught(call)).map_err(raise)
}

/// Runs a call that takes less time than releasing the interpreter lock.
pub fn quick<T>(call: impl FnOnce() -> Result<T>) -> PyResult<T> {
    caught(call).map_err(raise)
}

/// Runs a call without the interpreter lock, on a thread that may or may not hold it, such as that of a stream's
/// consumer.
pub fn unlocked<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    if holds_lock() { Python::attach(|py| py.detach(call)) } else { call() }
}

/// Whether this thread holds the interpreter lock, whatever code took it.
#[expect(unsafe_code, reason = "the only way to ask that works for locks taken by other code")]
fn holds_lock() -> bool {
    static CHECK: OnceLock<Option<extern "C" fn() -> c_int>> = OnceLock::new();
    let check = CHECK.get_or_init(|| {
        // In every CPython since 3.4, but not in the stable ABI that this module is linked against. SAFETY: the name
        // ends with a NUL; the symbol, if it exists, is a function of this type.
        unsafe {
            let symbol = libc::dlsym(libc::RTLD_DEFAULT, c"PyGILState_Check".as_ptr());
            std::mem::transmute::<*mut libc::c_void, Option<extern "C" fn() -> c_int>>(symbol)
        }
    });
    check.is_some_and(|check| check() == 1)
}

/// Drops `value` without the interpreter lock, because otherwise dropping it might wait forever for another thread that
/// needs the lock.
pub fn drop_detached(value: impl Send) {
    let mut value = Some(value);
    Python::try_attach(|py| py.detach(|| drop(value.take())));
}

/// Something that is dropped without the interpreter lock.
pub struct Detached<T: Send>(Option<T>);

impl<T: Send> Detached<T> {
    pub fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Send> Deref for Detached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Send> Drop for Detached<T> {
    fn drop(&mut self) {
        drop_detached(self.0.take());
    }
}

/// Waits for something in steps, checking for signals between them. `step` waits for at most the given time, and
/// returns what came, if anything.
pub fn wait<T: Send>(
    py: Python<'_>,
    timeout: Option<Duration>,
    mut step: impl FnMut(Duration) -> Result<Option<T>> + Send,
) -> PyResult<Option<T>> {
    check_commit()?;
    let mut left = timeout;
    loop {
        let wait = left.map_or(WAIT_STEP, |left| left.min(WAIT_STEP));
        let came = py.detach(|| caught(|| step(wait))).map_err(raise)?;
        left = left.map(|left| left - wait);
        if came.is_some() || left == Some(Duration::ZERO) {
            return Ok(came);
        }
        py.check_signals()?;
        check_stop(py)?;
    }
}

/// Runs a long call, which ends early if it checks any of `cancels` and a signal handler raises (Ctrl-C).
pub fn long<T: Send>(py: Python<'_>, cancels: &[Cancel], call: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    long_each(py, cancels, |_| call(), |_, never: Infallible| match never {})
}

/// The same; what the call sends while it runs is passed to `each`, attached to the interpreter. An exception from `each`
/// ends the call early too.
pub fn long_each<T: Send, U: Send>(
    py: Python<'_>,
    cancels: &[Cancel],
    call: impl FnOnce(&(dyn Fn(U) + Sync)) -> Result<T> + Send,
    each: impl FnMut(Python<'_>, U) -> PyResult<()> + Send,
) -> PyResult<T> {
    long_watched(py, cancels, call, each, |_| Ok(()))
}

/// The same; `watch` is called, attached to the interpreter, whenever signals are checked. An exception from it ends the
/// call early too.
fn long_watched<T: Send, U: Send>(
    py: Python<'_>,
    cancels: &[Cancel],
    call: impl FnOnce(&(dyn Fn(U) + Sync)) -> Result<T> + Send,
    mut each: impl FnMut(Python<'_>, U) -> PyResult<()> + Send,
    mut watch: impl FnMut(Python<'_>) -> PyResult<()> + Send,
) -> PyResult<T> {
    enum Told<T, U> {
        One(U),
        Ended(std::thread::Result<Result<T>>),
    }
    check_commit()?;
    py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            // The receiver waits for the final message.
            let run = move || {
                let hand_over = |one| drop(sender.send(Told::One(one)));
                let ended = catch_unwind(AssertUnwindSafe(|| call(&hand_over)));
                drop(sender.send(Told::Ended(ended)));
            };
            scope.spawn(run);
            let mut interrupted = None;
            loop {
                let raised = match receiver.recv_timeout(SIGNAL_POLL) {
                    Ok(Told::One(one)) if interrupted.is_none() => Python::attach(|py| each(py, one)),
                    Ok(Told::One(_)) => Ok(()),
                    Ok(Told::Ended(ended)) => {
                        let result = ended.unwrap_or_else(|panic| Err(Error::panicked(&*panic))).map_err(raise);
                        return interrupted.map_or(result, Err);
                    }
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| {
                        py.check_signals()?;
                        check_stop(py)?;
                        watch(py)
                    }),
                    Err(RecvTimeoutError::Disconnected) => unreachable!("a panic of the call is caught and sent"),
                };
                if let Err(raised) = raised {
                    cancels.iter().for_each(Cancel::cancel);
                    interrupted.get_or_insert(raised);
                }
            }
        })
    })
}

/// Runs a long call that reports its steps to `progress`, or without one to a bar, if it takes so long that there is one.
/// An exception from the callback cancels the call and is raised.
pub fn with_progress<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    call: impl FnOnce(Task) -> Result<T> + Send,
) -> PyResult<T> {
    let cancel = Cancel::default();
    let Some(callback) = progress else {
        let mut bar = Bar::new(SIGNAL_POLL);
        let task = Task { cancel: cancel.clone(), progress: Some(bar.listener()) };
        let result =
            long_watched(py, &[cancel], |_| call(task), |_, never: Infallible| match never {}, |py| bar.watch(py));
        bar.close(py);
        return result;
    };
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let tell = {
        let (cancel, raised) = (cancel.clone(), raised.clone());
        move |Progress { done, total, rows, bytes, left_micros }: Progress| {
            let mut raised = raised.lock().unwrap_or_else(PoisonError::into_inner);
            if raised.is_some() {
                return;
            }
            if let Err(error) = Python::attach(|py| {
                callback.call1(py, (done, total, rows, bytes, left_micros.map(|micros| micros as f64 / 1e6)))
            }) {
                cancel.cancel();
                *raised = Some(error);
            }
        }
    };
    let task = Task { cancel: cancel.clone(), progress: Some(Arc::new(tell)) };
    let result = long(py, &[cancel], || call(task));
    let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.map_or(result, Err)
}
