//! Fetches over a network what many tasks are about to read: a window of parts at a time, half a window before it is
//! needed. So a scan waits for two rounds of requests a window: directories, then columns.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::base::waiting;

/// The parts in a window. Each takes a request or two, which are made together.
pub(in crate::table) const WINDOW: usize = 64;

/// How far parts, which are read about in their order, have been fetched.
#[derive(Debug, Default)]
pub struct Ahead {
    fetched: AtomicUsize,
    turn: Mutex<()>,
}

impl Ahead {
    /// Must be called before the part at `at` of `count` is read. Calls `fetch` with parts that are to be fetched, which
    /// returns of how many it has done so, from the first on; waits where another thread is fetching this part.
    pub fn before(&self, at: usize, count: usize, fetch: impl FnOnce(Range<usize>) -> usize) {
        let due = || {
            let fetched = self.fetched.load(Ordering::Acquire);
            (fetched < count && at + WINDOW / 2 >= fetched).then_some(fetched)
        };
        let Some(fetched) = due() else { return };
        // A call that is to stop finds that out where it reads.
        let turn = if at < fetched { self.turn.try_lock() } else { waiting::lock(&self.turn).ok() };
        // Another thread may have done it in between, or is doing it, and this part is there.
        let (Some(_turn), Some(fetched)) = (turn, due()) else { return };
        let done = fetch(fetched..count.min(fetched + WINDOW));
        self.fetched.store(fetched + done.max(1), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_are_fetched_once_and_in_time() {
        for most in [1, 7, WINDOW] {
            let (ahead, mut fetched) = (Ahead::default(), 0);
            for at in 0..200 {
                // What is fetched in small pieces may be late, but comes in order.
                ahead.before(at, 200, |range| {
                    assert_eq!(range.start, fetched);
                    let done = range.len().min(most);
                    fetched += done;
                    done
                });
                assert!(fetched > at || most == 1, "{at}");
            }
            assert_eq!(fetched, 200);
        }
    }

    #[test]
    fn threads_share_what_is_fetched() {
        let (ahead, next, fetched) = (Ahead::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || loop {
            let at = next.fetch_add(1, Ordering::SeqCst);
            if at >= 1000 {
                return;
            }
            ahead.before(at, 1000, |range| {
                assert_eq!(range.start, fetched.fetch_add(range.len(), Ordering::SeqCst));
                range.len()
            });
            assert!(fetched.load(Ordering::SeqCst) > at);
        };
        let pool = crate::base::Pool::new(4).unwrap();
        pool.map((0..4).collect(), |_: usize| {
            work();
            Ok(())
        })
        .unwrap();
        assert_eq!(fetched.into_inner(), 1000);
    }
}
