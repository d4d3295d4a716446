//! What watches a call that takes long, on the thread that waits for it: a bar that shows how far it is, and a function
//! that may stop it.
//!
//! Both are called where signals are checked anyway. So a quick call pays nothing for them, and a long one does not
//! take the interpreter lock more often for a bar's sake: its steps are noted without it.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use drumlin::Progress;
use pyo3::prelude::*;

/// How long a call takes before it gets a bar.
const BAR_AFTER: Duration = Duration::from_secs(2);

/// Makes a bar, or gives `None` where none is to be shown.
static MAKE_BAR: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

thread_local! {
    /// What is called while a call of this thread takes long; what it raises ends the call.
    static STOP: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// Sets the function that makes a progress bar for a call that takes long: an object with `show(done, total, rows,
/// bytes, left)` and `close()`, or None for no bar.
#[pyfunction]
pub fn make_bars(make: Py<PyAny>) {
    *MAKE_BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(make);
}

/// Calls `function`. While a call of the store within it takes long, `stop` is called about every 50 ms; an exception
/// from it ends the call, as Ctrl-C does.
#[pyfunction]
pub fn stoppable<'py>(function: &Bound<'py, PyAny>, stop: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
    struct Restore(Option<Py<PyAny>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            STOP.replace(self.0.take());
        }
    }
    let _restore = Restore(STOP.replace(Some(stop)));
    function.call0()
}

/// Whether calls of this thread may be stopped by a function.
pub fn is_stoppable() -> bool {
    STOP.with_borrow(Option::is_some)
}

/// Raises what the function raises that may stop calls of this thread, if there is one.
pub fn check_stop(py: Python<'_>) -> PyResult<()> {
    let stop = STOP.with_borrow(|stop| stop.as_ref().map(|stop| stop.clone_ref(py)));
    stop.map_or(Ok(()), |stop| stop.call0(py).map(drop))
}

/// The bar of one call; there is none before the call has taken long.
pub struct Bar {
    waited: Duration,
    last: Arc<Mutex<Progress>>,
    shown: Shown,
}

enum Shown {
    NotYet,
    Never,
    Now(Py<PyAny>),
}

impl Bar {
    /// A bar of a call that begins.
    pub fn new() -> Self {
        Self { waited: Duration::ZERO, last: Arc::default(), shown: Shown::NotYet }
    }

    /// What notes the steps of the call.
    pub fn listener(&self) -> Arc<dyn Fn(Progress) + Send + Sync> {
        let last = self.last.clone();
        Arc::new(move |progress| *last.lock().unwrap_or_else(PoisonError::into_inner) = progress)
    }

    /// Shows the steps noted, once the call has taken long; `passed` is the time since the last look at it. What it raises is
    /// an exception of a signal's handler.
    pub fn watch(&mut self, py: Python<'_>, passed: Duration) -> PyResult<()> {
        self.waited += passed;
        if let Shown::NotYet = self.shown
            && self.waited >= BAR_AFTER
        {
            self.shown = made(py)?;
        }
        let Shown::Now(bar) = &self.shown else { return Ok(()) };
        let Progress { done, total, rows, bytes, left_micros } =
            *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let left = left_micros.map(|micros| micros as f64 / 1e6);
        bar.call_method1(py, "show", (done, total, rows, bytes, left)).map(drop)
    }

    /// Removes it. The call has ended, so what that raises is only reported.
    pub fn close(self, py: Python<'_>) {
        if let Shown::Now(bar) = &self.shown
            && let Err(error) = bar.call_method0(py, "close")
        {
            error.write_unraisable(py, Some(bar.bind(py)));
        }
    }
}

/// A bar, if one is to be shown.
fn made(py: Python<'_>) -> PyResult<Shown> {
    let make = MAKE_BAR.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|make| make.clone_ref(py));
    let Some(make) = make else { return Ok(Shown::Never) };
    let bar = make.call0(py)?;
    Ok(if bar.is_none(py) { Shown::Never } else { Shown::Now(bar) })
}
