//! The CPU pool: processes many items in parallel, with results in order and bounded memory.
//!
//! A task never blocks on its own pool: [`Pool::map`] called from a pool thread runs its items by work stealing,
//! so a pool of one thread always finishes. A task that panics gives an error of kind `Internal`; the others continue.
//! Tasks work for the call that gave them (`base::waiting`): once that is to stop, none of its tasks begins.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use parking_lot::Mutex;
use rayon::prelude::*;

use crate::base::waiting::Context;
use crate::base::{Error, Result, caught, waiting};

/// More threads than this are taken for a mistake.
pub const THREADS_MAX: usize = 1024;

/// Fails if `threads`, the value of the option `name`, are too many.
pub fn check_threads(name: &str, threads: usize) -> Result<()> {
    match threads > THREADS_MAX {
        true => Err(Error::invalid(format!("{name} is {threads}; expected at most {THREADS_MAX}"))),
        false => Ok(()),
    }
}

/// A shared pool of CPU threads.
#[derive(Clone)]
pub struct Pool {
    threads: Arc<rayon::ThreadPool>,
}

impl Pool {
    /// A pool of `threads` threads; 0 means one per core. `InvalidArgument` if there are more than [`THREADS_MAX`].
    pub fn new(threads: usize) -> Result<Self> {
        check_threads("cpu_threads", threads)?;
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("drumlin-cpu-{i}"))
            // The thread that waits for the task finds its channel closed; the panic's message has been printed.
            .panic_handler(|_| {})
            .build()
            .map_err(|e| Error::unavailable("the CPU pool could not be started").with_source(e))?;
        Ok(Self { threads: Arc::new(threads) })
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads.current_num_threads()
    }

    /// Runs `work` on every item in parallel; the results are in the order of the items. The first error in that order
    /// is returned once all started items have ended.
    pub fn map<T: Send, U: Send>(&self, items: Vec<T>, work: impl Fn(T) -> Result<U> + Send + Sync) -> Result<Vec<U>> {
        if items.len() < 2 {
            return items.into_iter().map(|item| caught(|| work(item))).collect();
        }
        let context = Context::current();
        let tasks: Vec<PoolTask<T, U>> = items.into_iter().map(PoolTask::new).collect();
        self.run_all(tasks.len(), &|at| {
            tasks[at].run(|item| {
                context.check()?;
                context.run(|| caught(|| work(item)))
            });
        })?;
        tasks.iter().map(PoolTask::result).collect()
    }

    /// Runs a task for each number below `count` in parallel. It is compiled once, for items and results of every kind.
    fn run_all(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<()> {
        let run = || (0..count).into_par_iter().for_each(task);
        if !Context::current().can_stop() || self.threads.current_thread_index().is_some() {
            self.threads.install(run);
            return Ok(());
        }
        // The tasks end by themselves, and only this thread may see that they are to.
        self.threads.in_place_scope(|scope| {
            let (sender, receiver) = sync_channel(1);
            scope.spawn(move |_| {
                run();
                let _ = sender.send(());
            });
            waiting::finish(&receiver).map_err(|_| died())
        })
    }

    /// A pipeline: `items` are pulled on the calling thread, `work` runs on the pool, and `sink` takes the results on
    /// the calling thread in the order of the items. At most `ahead` items are in flight; beyond the first, their
    /// `weight`s together stay within `budget`. Must not be called from a thread of the pool.
    pub fn ordered<T: Send, U: Send>(
        &self,
        items: impl Iterator<Item = Result<T>>,
        weight: impl Fn(&T) -> u64,
        ahead: usize,
        budget: u64,
        work: impl Fn(T) -> Result<U> + Send + Sync,
        mut sink: impl FnMut(U) -> Result<()>,
    ) -> Result<()> {
        assert!(self.threads.current_thread_index().is_none(), "a pool thread must not wait for its own pool");
        let (work, context) = (&work, &Context::current());
        self.threads.in_place_scope(|scope| {
            let mut running: InFlight<T, U> = VecDeque::new();
            let mut under_way = 0;
            let mut finish = |running: &mut InFlight<T, U>, under_way: &mut u64| {
                let (weight, task, ended) = running.pop_front().expect("called while something runs");
                *under_way -= weight;
                waiting::receive(&ended)?.map_err(|_| died())?;
                sink(task.result()?)
            };
            for item in items {
                let item = item?;
                let weight = weight(&item);
                while !running.is_empty() && (running.len() >= ahead || under_way + weight > budget) {
                    finish(&mut running, &mut under_way)?;
                }
                let (sender, receiver) = sync_channel(1);
                let task = Arc::new(PoolTask::new(item));
                running.push_back((weight, task.clone(), receiver));
                scope.spawn(move |_| {
                    task.run(|item| context.run(|| caught(|| work(item))));
                    // The receiver is gone if an earlier item failed.
                    let _ = sender.send(());
                });
                under_way += weight;
            }
            while !running.is_empty() {
                finish(&mut running, &mut under_way)?;
            }
            Ok(())
        })
    }

    /// Runs `work` on every item in parallel.
    pub fn each<T: Send>(&self, items: Vec<T>, work: impl Fn(T) + Send + Sync) {
        if items.len() < 2 {
            return items.into_iter().for_each(work);
        }
        let context = Context::current();
        self.threads.install(|| items.into_par_iter().for_each(|item| context.run(|| work(item))));
    }

    /// Runs `here` on the calling thread while `beside` runs on one of the pool; returns the result of `here` once both
    /// have ended.
    pub fn beside<T>(&self, here: impl FnOnce() -> T, beside: impl FnOnce() + Send) -> T {
        self.threads.in_place_scope(|scope| {
            let context = Context::current();
            scope.spawn(move |_| context.run(beside));
            here()
        })
    }

    /// Runs `work` on a thread of the pool, without waiting for it.
    pub fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        let context = Context::current();
        self.threads.spawn(move || context.run(work));
    }
}

/// An item that waits for its task, and then the task's result.
struct PoolTask<T, U>(Mutex<(Option<T>, Option<Result<U>>)>);

/// Tasks under way in order, each with its weight and what tells that it has ended.
type InFlight<T, U> = VecDeque<(u64, Arc<PoolTask<T, U>>, Receiver<()>)>;

impl<T, U> PoolTask<T, U> {
    fn new(item: T) -> Self {
        Self(Mutex::new((Some(item), None)))
    }

    fn run(&self, work: impl FnOnce(T) -> Result<U>) {
        let item = self.0.lock().0.take();
        let result = item.map(work);
        self.0.lock().1 = result;
    }

    /// Once: the result of the task, which has ended.
    fn result(&self) -> Result<U> {
        self.0.lock().1.take().unwrap_or_else(|| Err(died()))
    }
}

fn died() -> Error {
    Error::closed("a task of the CPU pool ended without a result")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn a_task_that_panics_is_an_error_and_the_pool_goes_on() {
        let pool = Pool::new(2).unwrap();
        let work = |n: u32| if n % 5 == 3 { panic!("task {n}") } else { Ok(n) };
        for items in [vec![3], (0..20).collect()] {
            let error = pool.map(items.clone(), work).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
            assert!(error.message().contains("task 3"), "{error}");
            let mut came = Vec::new();
            let sink = |n| {
                came.push(n);
                Ok(())
            };
            let error = pool.ordered(items.into_iter().map(Ok), |_| 1, 4, 100, work, sink).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
            assert!(came.iter().copied().eq(0..came.len() as u32), "{came:?}");
        }
        assert_eq!(pool.map(vec![1, 2], work).unwrap(), [1, 2]);
    }
}
