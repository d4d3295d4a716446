//! Calls into the core without the interpreter lock.
//!
//! The calling thread is the only one that can see signals, and looks at them about every 50 ms, wherever the call waits. A quick
//! call runs on that thread (`drumlin::embedding::waiting`); a long one on a separate thread, while the calling one waits for it and
//! also runs what only it should run: code of the caller's that may wait by itself, for input say ([`on_caller`]). Neither waits
//! for the other while holding the interpreter lock, so input that needs the lock can be read from any thread.
//!
//! A panic of the core ends here: it is raised as `drumlin.Internal`, never as pyo3's `PanicException`, which no handler of
//! `Exception` sees.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::ffi::c_int;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use drumlin::embedding::{
    caught,
    waiting::{Context, watched, with_stop},
};
use drumlin::{Cancel, Error, ErrorKind, Progress, Result, Task};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::watch::{Bar, check_stop, is_stoppable};

/// How often signals are checked.
const SIGNAL_POLL: Duration = Duration::from_millis(50);
/// How long to wait between checks for signals.
const WAIT_STEP: Duration = Duration::from_millis(100);

/// Something to be run on the thread that made a call.
type Errand = Box<dyn FnOnce() + Send>;

thread_local! {
    /// Whether this thread is within a commit, calling a Python function.
    static COMMITTING: Cell<bool> = const { Cell::new(false) };
    /// What a signal's handler raised in code of the caller's that this thread ran.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// Of a thread that runs a long call: takes errands to the thread that made it.
    static CALLER: RefCell<Option<Sender<Note>>> = const { RefCell::new(None) };
}

/// What the thread of a long call sends to the one that made it.
enum Note {
    Errand(Errand),
    /// There is something in the call's own channel.
    Look,
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
            "the function of a projection must not use the store, because it is called within a commit",
        )));
    }
    Ok(())
}

/// Runs `call` on this thread, which does not hold the interpreter lock, and looks at signals where it waits. What a signal's
/// handler raises ends the call early, and is returned beside its result.
fn attended<T>(call: impl FnOnce() -> Result<T>) -> (Result<T>, Option<PyErr>) {
    let (cancel, raised) = (Cancel::default(), Rc::new(RefCell::new(None)));
    let look = {
        let (cancel, raised) = (cancel.clone(), raised.clone());
        move || {
            let looked = Python::attach(|py| py.check_signals().and_then(|()| check_stop(py)));
            if let Err(error) = looked {
                cancel.cancel();
                raised.borrow_mut().get_or_insert(error);
            }
        }
    };
    let result = watched(&cancel, Rc::new(look), || caught(call));
    let raised = raised.take();
    (result, raised)
}

/// The result of a call, or what ended it early. A commit that may have been made nevertheless is noted.
fn ended<T>(result: Result<T>, raised: Option<PyErr>) -> PyResult<T> {
    let Some(raised) = raised else { return result.map_err(raised_or_interrupt) };
    if let Err(error) = &result
        && error.kind() == ErrorKind::InDoubt
    {
        // If it takes no notes, it is raised without.
        let _ = Python::attach(|py| raised.value(py).call_method1("add_note", (error.to_string(),)).map(drop));
    }
    Err(raised)
}

/// The exception for `error`. A stream of pyarrow's whose Python code was interrupted leaves only a text.
fn raised_or_interrupt(error: Error) -> PyErr {
    match error.message().contains("Python exception: KeyboardInterrupt") {
        true => PyKeyboardInterrupt::new_err(()),
        false => raise(error),
    }
}

/// Runs a call that does not take long.
pub fn detached<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    check_commit()?;
    let (result, raised) = py.detach(|| attended(call));
    ended(result, raised)
}

/// Runs a call that takes less time than releasing the interpreter lock.
pub fn quick<T>(call: impl FnOnce() -> Result<T>) -> PyResult<T> {
    caught(call).map_err(raise)
}

/// Runs a call without the interpreter lock, on a thread that may or may not hold it, such as that of a stream's
/// consumer. What a signal's handler raises ends the call as `Cancelled`, and is raised once more where it is seen.
pub fn unlocked<T: Send>(call: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    // Others see no signals, and may belong to another library.
    let looks = || is_main_thread() || is_stoppable();
    let call = || match looks() {
        false => caught(call),
        true => match attended(call) {
            (_, Some(raised)) => {
                let message = raised.to_string();
                Python::attach(|py| raise_later(py, &raised));
                Err(Error::cancelled(format!("stopped: {message}")))
            }
            (result, None) => result,
        },
    };
    if holds_lock() { Python::attach(|py| py.detach(call)) } else { call() }
}

/// Has the interpreter raise `KeyboardInterrupt` at its next step, if that is what was raised: the caller's caller cannot take it.
#[expect(unsafe_code, reason = "not wrapped")]
fn raise_later(py: Python<'_>, raised: &PyErr) {
    if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
        // SAFETY: may be called at any time.
        unsafe { pyo3::ffi::PyErr_SetInterrupt() };
    }
}

/// Whether this is the process's first thread, which sees signals.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "two numbers that the system knows")]
fn is_main_thread() -> bool {
    // SAFETY: neither call has conditions.
    unsafe { libc::c_long::from(libc::getpid()) == libc::syscall(libc::SYS_gettid) }
}

/// Whether this is the process's first thread, which sees signals. Unknown, so no.
#[cfg(not(target_os = "linux"))]
fn is_main_thread() -> bool {
    false
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
        let (came, raised) = py.detach(|| attended(|| step(wait)));
        let came = ended(came, raised)?;
        left = left.map(|left| left - wait);
        if came.is_some() || left == Some(Duration::ZERO) {
            return Ok(came);
        }
        py.check_signals()?;
        check_stop(py)?;
    }
}

/// Runs `errand` on the thread that made the long call which this thread runs, or here if there is none. That thread sees
/// signals, so Python code that waits there, for input say, ends with what a handler raises.
pub fn on_caller<T: Send + 'static>(errand: impl FnOnce() -> T + Send + 'static) -> T {
    let Some(caller) = CALLER.with_borrow(Clone::clone) else { return errand() };
    let (sender, receiver) = channel();
    let context = Context::current();
    let run = move || drop(sender.send(catch_unwind(AssertUnwindSafe(|| context.run(errand)))));
    // The thread that made a call waits for its end, and runs all errands.
    caller.send(Note::Errand(Box::new(run))).expect("the caller waits");
    receiver.recv().expect("the errand was run").unwrap_or_else(|panic| resume_unwind(panic))
}

#[expect(clippy::disallowed_methods, reason = "how long a caller waits for its signals is no time of a store")]
fn now() -> Instant {
    Instant::now()
}

/// Notes what code of the caller's has raised, if that comes from the handler of a signal: the call that runs it ends with it.
pub fn leave_raised(py: Python<'_>, raised: PyErr) {
    if raised.is_instance_of::<PyKeyboardInterrupt>(py) || is_of_handler(&raised, py).unwrap_or(false) {
        RAISED.replace(Some(raised));
    }
}

/// Whether the code of a signal's handler is among the frames of an exception.
fn is_of_handler(raised: &PyErr, py: Python<'_>) -> PyResult<bool> {
    let signal = py.import("signal")?;
    let mut handlers = Vec::new();
    for number in signal.call_method0("valid_signals")?.try_iter()? {
        let handler = signal.call_method1("getsignal", (number?,))?;
        if let Ok(code) = handler.getattr("__code__") {
            handlers.push(code);
        }
    }
    let mut at = raised.traceback(py).map(Bound::into_any);
    while let Some(traceback) = at.filter(|traceback| !traceback.is_none()) {
        let code = traceback.getattr("tb_frame")?.getattr("f_code")?;
        if handlers.iter().any(|handler| handler.is(&code)) {
            return Ok(true);
        }
        at = Some(traceback.getattr("tb_next")?);
    }
    Ok(false)
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
    long_watched(py, cancels, call, each, |_, _| Ok(()))
}

/// The same; `watch` is called, attached to the interpreter, whenever signals are checked. An exception from it ends the
/// call early too.
fn long_watched<T: Send, U: Send>(
    py: Python<'_>,
    cancels: &[Cancel],
    call: impl FnOnce(&(dyn Fn(U) + Sync)) -> Result<T> + Send,
    mut each: impl FnMut(Python<'_>, U) -> PyResult<()> + Send,
    mut watch: impl FnMut(Python<'_>, Duration) -> PyResult<()> + Send,
) -> PyResult<T> {
    enum Told<T, U> {
        One(U),
        Ended(std::thread::Result<Result<T>>),
    }
    check_commit()?;
    // One flag for all: what is not stopped by its own flag is by its waits.
    let stop = Cancel::default();
    py.detach(|| {
        std::thread::scope(|scope| {
            let ((sender, receiver), (notes, noted)) = (channel(), channel());
            let (context, own) = (Context::current(), stop.clone());
            // The receiver waits for the final message.
            let run = move || {
                CALLER.replace(Some(notes.clone()));
                let tell = |told| {
                    drop(sender.send(told));
                    drop(notes.send(Note::Look));
                };
                let hand_over = |one| tell(Told::One(one));
                let call = || context.run(|| with_stop(&own, || call(&hand_over)));
                let ended = catch_unwind(AssertUnwindSafe(call));
                tell(Told::Ended(ended));
            };
            scope.spawn(run);
            let (mut interrupted, mut looked) = (None, now());
            loop {
                // However fast one errand follows the other.
                let left = SIGNAL_POLL.saturating_sub(looked.elapsed());
                let raised = if left.is_zero() {
                    let passed = looked.elapsed();
                    looked = now();
                    Python::attach(|py| {
                        py.check_signals()?;
                        check_stop(py)?;
                        watch(py, passed)
                    })
                } else {
                    match noted.recv_timeout(left) {
                        Ok(Note::Errand(errand)) => {
                            errand();
                            RAISED.take().map_or(Ok(()), Err)
                        }
                        Ok(Note::Look) => match receiver.try_recv() {
                            Ok(Told::One(one)) if interrupted.is_none() => Python::attach(|py| each(py, one)),
                            Ok(Told::Ended(done)) => {
                                let result = done.unwrap_or_else(|panic| Err(Error::panicked(&*panic)));
                                return ended(result, interrupted);
                            }
                            _ => Ok(()),
                        },
                        Err(RecvTimeoutError::Timeout) => Ok(()),
                        Err(RecvTimeoutError::Disconnected) => {
                            unreachable!("a panic of the call is caught and sent")
                        }
                    }
                };
                if let Err(raised) = raised {
                    stop.cancel();
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
        let mut bar = Bar::new();
        let task = Task { cancel: cancel.clone(), progress: Some(bar.listener()) };
        let result = long_watched(
            py,
            &[cancel],
            |_| call(task),
            |_, never: Infallible| match never {},
            |py, passed| bar.watch(py, passed),
        );
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
