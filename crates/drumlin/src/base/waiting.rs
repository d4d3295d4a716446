//! Waits: a call that waits sees within 100 ms that it is to stop, whatever it waits for.
//!
//! What a thread works for is its [`Context`]: the flags that stop the calls it is within, and the locks that they
//! hold. Work for other threads takes the context along ([`Context::run`]); the pool does so by itself. The thread on
//! which a call was made may have more to look at, such as signals, which no other thread sees ([`watched`]).
//!
//! Invariants: what may take long (the answer of a bucket, a lock of another process, a turn, a pause, tasks of the
//! pool, input) is waited for by functions of this file; a call that would wait for what it holds itself fails instead.
//!
//! An [`Exclusive`] lock (maintenance, the commit turn, the end of the log) may be held while functions of the caller's
//! are called. If such a function makes a call that needs the same lock, on any thread that works for the outer call,
//! that call is refused.
//!
//! A request that was sent cannot be taken back. So a conditional put that is stopped is `InDoubt`, not `Cancelled`.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{Cancel, Clock, Error, Result};

/// The time between two looks at whether to stop.
const STEP: Duration = Duration::from_millis(50);

/// What a thread works for.
#[derive(Clone, Default)]
pub struct Context(Option<Arc<ContextLink>>);

struct ContextLink {
    what: What,
    above: Context,
}

#[derive(Clone)]
enum What {
    /// A call that this flag stops.
    Stops(Cancel),
    /// A call that holds the lock with this number.
    Holds(usize),
}

thread_local! {
    static CONTEXT: RefCell<Context> = const { RefCell::new(Context(None)) };
    /// What this thread looks at while it waits: it sets a flag of the context.
    static LOOK: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets a value of the thread back when it is dropped.
struct Restore<F: FnMut()>(F);

impl<F: FnMut()> Drop for Restore<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Context {
    /// That of this thread.
    pub fn current() -> Self {
        CONTEXT.with_borrow(Clone::clone)
    }

    /// Runs `work` in this context, on any thread.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut before = CONTEXT.replace(self.clone());
        let _restore = Restore(|| drop(CONTEXT.replace(std::mem::take(&mut before))));
        work()
    }

    fn links(&self) -> impl Iterator<Item = &What> {
        let mut at = self;
        std::iter::from_fn(move || {
            let link = at.0.as_deref()?;
            at = &link.above;
            Some(&link.what)
        })
    }

    fn with(self, what: What) -> Self {
        Self(Some(Arc::new(ContextLink { what, above: self })))
    }

    /// Fails if one of the calls is to stop.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn check(&self) -> Result<()> {
        self.links().try_for_each(|what| match what {
            What::Stops(cancel) => cancel.check(),
            What::Holds(_) => Ok(()),
        })
    }

    /// Whether there is a flag that may stop it.
    pub fn can_stop(&self) -> bool {
        self.links().any(|what| matches!(what, What::Stops(_)))
    }

    fn holds(&self, lock: usize) -> bool {
        self.links().any(|what| matches!(what, What::Holds(held) if *held == lock))
    }

    /// This context without the links that `gone` picks.
    fn without(&self, gone: impl Fn(&What) -> bool) -> Self {
        let kept: Vec<What> = self.links().filter(|what| !gone(what)).cloned().collect();
        kept.into_iter().rev().fold(Self::default(), Self::with)
    }
}

/// Runs `work`, whose waits end with `Cancelled` once `cancel` is set.
pub fn with_stop<T>(cancel: &Cancel, work: impl FnOnce() -> T) -> T {
    Context::current().with(What::Stops(cancel.clone())).run(work)
}

/// Runs `work`, whose waits nothing stops: they are short, or must not be left.
pub fn unstoppable<T>(work: impl FnOnce() -> T) -> T {
    Context::current().without(|what| matches!(what, What::Stops(_))).run(work)
}

/// As [`with_stop`]; while this thread waits within `work`, it calls `look` about every 50 ms, which may set the flag.
pub fn watched<T>(cancel: &Cancel, look: Rc<dyn Fn()>, work: impl FnOnce() -> T) -> T {
    let (mut before, looked) = (LOOK.replace(Some(look)), LOOKED.replace(Some(now())));
    let _restore = Restore(|| {
        drop(LOOK.replace(before.take()));
        LOOKED.set(looked);
    });
    with_stop(cancel, work)
}

/// Whether a flag may stop what this thread does.
pub fn can_stop() -> bool {
    CONTEXT.with_borrow(Context::can_stop)
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long ago this thread looked decides nothing but when it looks again"
)]
fn now() -> Instant {
    Instant::now()
}

/// Looks at what this thread is to look at, if that is due.
fn look() {
    let due = LOOKED.get().is_none_or(|looked| looked.elapsed() >= STEP);
    if !due {
        return;
    }
    // What it calls may wait itself, without another look.
    let mut taken = LOOK.take();
    if let Some(look) = taken.clone() {
        let _restore = Restore(|| {
            LOOKED.set(Some(now()));
            drop(LOOK.replace(taken.take()));
        });
        look();
    }
}

/// `Cancelled` if what this thread does is to stop. Called before what may take long.
///
/// # Errors
/// `Cancelled`.
pub fn check() -> Result<()> {
    look();
    CONTEXT.with_borrow(Context::check)
}

/// Calls `step` until it returns something; it waits for at most the time that it is given, if it is given one.
fn patiently<T>(mut step: impl FnMut(Option<Duration>) -> Option<T>) -> Result<T> {
    let time = can_stop().then_some(STEP);
    loop {
        if let Some(came) = step(time) {
            return Ok(came);
        }
        check()?;
    }
}

/// Waits for a message.
///
/// # Errors
/// `Cancelled`.
pub fn receive<T>(receiver: &Receiver<T>) -> Result<Result<T, RecvError>> {
    patiently(|time| match time.map_or_else(|| Ok(receiver.recv()?), |time| receiver.recv_timeout(time)) {
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Err(RecvError)),
        Ok(message) => Some(Ok(message)),
    })
}

/// Waits for the last message of work that ends by itself once it is to stop; looks in between.
///
/// # Errors
/// `RecvError` if it has ended without one.
pub fn finish<T>(receiver: &Receiver<T>) -> Result<T, RecvError> {
    loop {
        match receiver.try_recv() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
            Err(TryRecvError::Empty) => {}
        }
        match receiver.recv_timeout(STEP) {
            Err(RecvTimeoutError::Timeout) => look(),
            other => return other.map_err(|_| RecvError),
        }
    }
}

/// Waits for a lock.
///
/// # Errors
/// `Cancelled`.
pub fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    patiently(|time| time.map_or_else(|| Some(mutex.lock()), |time| mutex.try_lock_for(time)))
}

/// Waits while `condition` holds, until `condvar` says that it may have changed.
///
/// # Errors
/// `Cancelled`.
pub fn wait_while<T>(
    condvar: &Condvar,
    guard: &mut MutexGuard<'_, T>,
    mut condition: impl FnMut(&mut T) -> bool,
) -> Result<()> {
    while condition(guard) {
        if !can_stop() {
            condvar.wait(guard);
        } else if condvar.wait_for(guard, STEP).timed_out() {
            // What is looked at may call anything.
            MutexGuard::unlocked(guard, check)?;
        }
    }
    Ok(())
}

/// Waits for `time` to pass.
///
/// # Errors
/// `Cancelled`.
pub fn pause(clock: &dyn Clock, time: Duration) -> Result<()> {
    if !can_stop() {
        clock.pause(time);
        return Ok(());
    }
    let mut left = time;
    while !left.is_zero() {
        check()?;
        let step = left.min(STEP);
        clock.pause(step);
        left -= step;
    }
    check()
}

/// Calls `attempt`, which does not wait, until it returns something. For what tells nobody when it is there.
///
/// # Errors
/// `Cancelled`, or what `attempt` fails with.
#[expect(clippy::disallowed_methods, reason = "another process decides, whatever the clock of this one shows")]
pub fn poll<T>(mut attempt: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    const LONGEST: Duration = Duration::from_millis(2);
    let mut time = Duration::from_micros(50);
    loop {
        if let Some(came) = attempt()? {
            return Ok(came);
        }
        check()?;
        std::thread::sleep(time);
        time = (time * 2).min(LONGEST);
    }
}

/// A lock that is held while functions of the caller's may be called. A call that one of them makes and that needs the lock
/// fails: it would wait for itself.
pub struct Exclusive<T> {
    /// What holds it, in a message.
    what: &'static str,
    value: Mutex<T>,
}

/// Holds an [`Exclusive`] lock.
pub struct ExclusiveGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    number: usize,
}

impl<T> Exclusive<T> {
    /// A lock of which `what` says in messages what holds it.
    pub fn new(what: &'static str, value: T) -> Self {
        Self { what, value: Mutex::new(value) }
    }

    fn number(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn held<'a>(&self, guard: MutexGuard<'a, T>) -> ExclusiveGuard<'a, T> {
        let number = self.number();
        CONTEXT.with_borrow_mut(|context| *context = std::mem::take(context).with(What::Holds(number)));
        ExclusiveGuard { guard, number }
    }

    /// Fails if a call holds it that this one is made from.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check(&self) -> Result<()> {
        match CONTEXT.with_borrow(|context| context.holds(self.number())) {
            true => Err(Error::invalid(format!(
                "{} is in progress, and this call comes from a function that it runs, so each would wait for the \
                 other; make the call after it has ended",
                self.what
            ))),
            false => Ok(()),
        }
    }

    /// Waits for the lock.
    ///
    /// # Errors
    /// `InvalidArgument` if a call holds it that this one is made from, `Cancelled`.
    pub fn lock(&self) -> Result<ExclusiveGuard<'_, T>> {
        self.check()?;
        Ok(self.held(lock(&self.value)?))
    }

    /// Waits for the lock, whatever happens. Not for a thread that calls functions of the caller's.
    pub fn lock_in_any_case(&self) -> ExclusiveGuard<'_, T> {
        self.held(self.value.lock())
    }

    /// The lock, if nobody has it.
    pub fn try_lock(&self) -> Option<ExclusiveGuard<'_, T>> {
        Some(self.held(self.value.try_lock()?))
    }
}

impl<T> Drop for ExclusiveGuard<'_, T> {
    fn drop(&mut self) {
        CONTEXT.with_borrow_mut(|context| {
            *context = context.without(|what| matches!(what, What::Holds(held) if *held == self.number))
        });
    }
}

impl<T> Deref for ExclusiveGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for ExclusiveGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::base::{ErrorKind, OsThreads, Pool, SystemClock, Threads};

    type Wait = Box<dyn FnOnce() -> Result<()> + Send>;

    /// Every wait of this file, for something that never comes.
    fn waits() -> Vec<(&'static str, Wait)> {
        let (sender, receiver) = channel::<()>();
        let endless = Duration::from_secs(1 << 30);
        let pooled = Pool::new(2).unwrap();
        let each = |_: u32| pause(&SystemClock, Duration::from_secs(1 << 30));
        let (again, ordered) = (pooled.clone(), pooled.clone());
        vec![
            ("pause", Box::new(move || pause(&SystemClock, endless))),
            ("poll", Box::new(|| poll(|| Ok(None)))),
            (
                "receive",
                Box::new(move || {
                    let _sender = sender;
                    receive(&receiver).map(drop)
                }),
            ),
            (
                "lock",
                Box::new(|| {
                    let mutex = Mutex::new(());
                    let _held = mutex.lock();
                    lock(&mutex).map(drop)
                }),
            ),
            ("wait_while", Box::new(|| wait_while(&Condvar::new(), &mut Mutex::new(()).lock(), |()| true))),
            ("a task of the pool", Box::new(move || again.map(vec![1, 2, 3], each).map(drop))),
            ("tasks in order", Box::new(move || ordered.ordered((0..3).map(Ok), |_| 1, 2, 2, each, |()| Ok(())))),
        ]
    }

    #[test]
    fn every_wait_ends_once_its_flag_is_set_by_any_thread_or_by_what_is_looked_at() {
        for looks in [false, true] {
            for (name, wait) in waits() {
                let (cancel, (told, answer)) = (Cancel::default(), channel());
                let own = cancel.clone();
                let work = move || {
                    let ended = match looks {
                        true => {
                            let flag = own.clone();
                            watched(&own, Rc::new(move || flag.cancel()), wait)
                        }
                        false => with_stop(&own, wait),
                    };
                    told.send(ended).unwrap();
                };
                OsThreads.spawn("wait", Box::new(work)).unwrap();
                if !looks {
                    cancel.cancel();
                }
                let ended = answer.recv_timeout(Duration::from_secs(60));
                let error = ended.unwrap_or_else(|_| panic!("{name} goes on")).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{name}");
            }
        }
    }

    #[test]
    fn a_call_that_would_wait_for_itself_fails_on_any_thread_that_works_for_it() {
        let (lock, other) = (Exclusive::new("a checkpoint", 1), Exclusive::new("a reclaim", 2));
        let pool = Pool::new(2).unwrap();
        let refused = || lock.lock().map(drop).unwrap_err().message().to_owned();
        {
            let held = lock.lock().unwrap();
            assert_eq!(*held, 1);
            assert!(refused().starts_with("a checkpoint is in progress"), "{}", refused());
            assert_eq!(*other.lock().unwrap(), 2);
            for items in [vec![1], vec![1, 2, 3]] {
                let told = pool.map(items, |_: i32| Ok(refused())).unwrap();
                assert!(told.iter().all(|told| told.contains("in progress")), "{told:?}");
            }
            let context = Context::current();
            let message = std::thread::scope(|scope| scope.spawn(|| context.run(refused)).join().unwrap());
            assert!(message.contains("in progress"), "{message}");
        }
        assert_eq!(*lock.lock().unwrap(), 1);
        assert!(!can_stop() && !Context::current().holds(lock.number()));
    }

    #[test]
    fn what_is_looked_at_may_make_calls_itself() {
        let cancel = Cancel::default();
        let ended = watched(
            &cancel.clone(),
            Rc::new(move || {
                pause(&SystemClock, Duration::from_millis(120)).unwrap();
                cancel.cancel();
            }),
            || pause(&SystemClock, Duration::from_secs(1 << 30)),
        );
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
