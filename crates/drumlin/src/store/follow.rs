//! Takes in what other processes have committed: their entries are applied to the newest state known, as in a replay.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::feed::CommitRecord;
use super::{Store, recover};
use crate::base::Result;
use crate::base::planted::{Bug, planted};
use crate::catalog::State;
use crate::log::{News, retry_while_moving};
use crate::storage::Storage;

impl Store {
    /// Brings the state up to what others have committed. In the turn.
    pub(super) fn take_in(&self, news: News) -> Result<()> {
        let current = self.inner.state.read().clone();
        let unproven = matches!(news, News::Unproven(_));
        let done = self.follow(&current, news);
        match &done {
            Err(e) if e.is_other_history() => {
                self.inner.log.poison();
                self.inner.storage.seal(e.message());
            }
            // As one that has just opened the store: what it has prepared and its blocks may be of another history.
            Ok(()) if unproven => {
                *self.inner.session.lock() = None;
                self.inner.proven_from.store(self.inner.state.read().seq.0, Ordering::SeqCst);
            }
            _ => {}
        }
        // So that the log returns again what could not be taken in, and not what a replay has found beyond it.
        self.inner.log.knows(self.inner.state.read().seq);
        done
    }

    fn follow(&self, current: &Arc<State>, news: News) -> Result<()> {
        let inner = &self.inner;
        let mut failed = None;
        // The records for feeds, so that they need not read the log for them.
        let (told, mut records) = (inner.feeds.any(), Vec::<CommitRecord>::new());
        let mut next = match news {
            News::Entries(entries) => {
                let mut next = State::clone(&**current);
                // Some of them may have been taken in already.
                for entry in entries.iter().filter(|entry| entry.seq > current.seq) {
                    let mut step = next.clone();
                    let applied = recover::apply_entry(&mut step, entry);
                    match applied.and_then(|transactions| Ok((transactions, step.settle()?))) {
                        Ok((transactions, bytes)) => {
                            inner.memtable_bytes.fetch_add(bytes, Ordering::Relaxed);
                            if told {
                                let before = records.last().map_or(current, |record| &record.after).clone();
                                records.push(CommitRecord { before, after: Arc::new(step.clone()), transactions });
                            }
                        }
                        Err(e) => {
                            // The entries before it have been taken in, with their rows, and must not be taken in
                            // again.
                            failed = Some(e);
                            break;
                        }
                    }
                    next = step;
                }
                next
            }
            News::All(opened) | News::Unproven(opened) => {
                let replayed = recover::replay(&*inner.storage, &opened)
                    .or_else(|_| retry_while_moving(|| recover::replay(&*inner.storage, &inner.log.read()?)));
                let (mut next, _) = replayed?;
                next.take_functions(current);
                current.leave_parts();
                inner.memtable_bytes.store(next.memtable_bytes(), Ordering::Relaxed);
                next
            }
        };
        if next.seq > current.seq {
            if !planted(Bug::ForgetOthersInProjections) {
                next.catch_up(None);
            }
            inner.hold_inline(current, &next);
            next.forget_moves(inner.pins.oldest());
            inner.publish(current, Arc::new(next));
            inner.forget_inline();
            for record in records {
                inner.feeds.publish(|| record);
            }
            inner.feeds.wake();
        }
        failed.map_or(Ok(()), Err)
    }
}
