//! Time for threads that represent processes: it passes only while all of them wait, until the first one continues. So one
//! runs at a time, in an order that a seed makes repeatable.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use drumlin::base::{Clock, Timestamp};

#[derive(Default)]
pub struct SimTime {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Default)]
struct Now {
    micros: i64,
    /// Threads that do not wait.
    running: usize,
    /// When each waiting thread continues.
    waiting: BTreeSet<(i64, u64)>,
    /// The thread that continues now.
    next: Option<(i64, u64)>,
    tickets: u64,
}

impl Now {
    fn pass(&mut self) {
        if self.running == 0
            && self.next.is_none()
            && let Some(first) = self.waiting.pop_first()
        {
            (self.micros, self.next, self.running) = (first.0, Some(first), 1);
        }
    }
}

impl SimTime {
    /// Runs `work` once for each number below `processes`, each on its own thread.
    pub fn run<T: Send>(self: &Arc<Self>, processes: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        self.now.lock().unwrap().running = processes;
        let one = |n: usize| {
            // If it panics, the others continue.
            let _leaves = Leaves(self);
            work(n)
        };
        std::thread::scope(|scope| {
            let one = &one;
            let threads: Vec<_> = (0..processes).map(|n| scope.spawn(move || one(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    pub fn micros(&self) -> i64 {
        self.now.lock().unwrap().micros
    }
}

struct Leaves<'a>(&'a SimTime);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        let mut now = self.0.now.lock().unwrap();
        now.running -= 1;
        now.pass();
        self.0.changed.notify_all();
    }
}

impl Clock for SimTime {
    fn now(&self) -> Timestamp {
        Timestamp(1_000_000 + self.micros())
    }

    fn pause(&self, time: Duration) {
        let mut now = self.now.lock().unwrap();
        if now.running == 0 {
            // No threads take part: the test itself waits.
            now.micros += time.as_micros() as i64;
            return;
        }
        let ticket = (now.micros + time.as_micros() as i64, now.tickets);
        now.tickets += 1;
        now.waiting.insert(ticket);
        now.running -= 1;
        now.pass();
        self.changed.notify_all();
        while now.next != Some(ticket) {
            now = self.changed.wait(now).unwrap();
        }
        now.next = None;
    }
}
