//! The thread that carries the commits of calls that may be stopped: one is kept for a moment, since the next commit often follows at
//! once, and a new thread costs more than a small commit.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::base::{Result, Threads};

/// How long a thread waits for more work before it ends. Nothing but that depends on it.
const KEPT: Duration = Duration::from_millis(500);

type CarriedWork = Box<dyn FnOnce() + Send>;

/// See the module.
#[derive(Default)]
pub(super) struct Carrier {
    idle: Arc<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The process in which a thread waits, and the work that it is given: after a fork it is not there.
    waiting: Mutex<Option<(u32, Option<CarriedWork>)>>,
    given: Condvar,
}

impl Carrier {
    /// Has a thread do it; fails if there is none to be had.
    pub fn run(&self, threads: &dyn Threads, job: CarriedWork) -> Result<()> {
        if let Some((process, given @ None)) = &mut *self.idle.waiting.lock()
            && *process == std::process::id()
        {
            *given = Some(job);
            self.idle.given.notify_one();
            return Ok(());
        }
        let idle = self.idle.clone();
        threads.spawn("drumlin-commit", Box::new(move || idle.work(job))).map(drop)
    }
}

impl Idle {
    fn work(&self, first: CarriedWork) {
        let mut next = Some(first);
        while let Some(job) = next {
            job();
            next = self.more();
        }
    }

    /// The next work; `None` if none comes, or if another thread waits already.
    fn more(&self) -> Option<CarriedWork> {
        let mut waiting = self.waiting.lock();
        let process = std::process::id();
        if waiting.as_ref().is_some_and(|(its, _)| *its == process) {
            return None;
        }
        *waiting = Some((process, None));
        let empty = |waiting: &mut Option<(u32, Option<CarriedWork>)>| matches!(waiting, Some((_, None)));
        self.given.wait_while_for(&mut waiting, empty, KEPT);
        waiting.take().and_then(|(_, job)| job)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::base::OsThreads;

    #[test]
    fn all_work_is_done_by_few_threads_unless_it_goes_on_at_the_same_time() {
        let (carrier, (sender, done)) = (Carrier::default(), channel());
        let mut threads = std::collections::BTreeSet::new();
        for n in 0..1000 {
            let sender = sender.clone();
            let work = move || sender.send((n, format!("{:?}", std::thread::current().id()))).unwrap();
            carrier.run(&OsThreads, Box::new(work)).unwrap();
            let (at, thread) = done.recv().unwrap();
            assert_eq!(at, n);
            threads.insert(thread);
        }
        assert!(threads.len() < 500, "{} threads", threads.len());
        // One that does not end keeps no other from its work.
        let (block, blocked) = channel::<()>();
        carrier.run(&OsThreads, Box::new(move || assert!(blocked.recv().is_err()))).unwrap();
        for n in 0..3 {
            let sender = sender.clone();
            carrier.run(&OsThreads, Box::new(move || sender.send((n, String::new())).unwrap())).unwrap();
            assert_eq!(done.recv().unwrap().0, n);
        }
        drop(block);
    }
}
