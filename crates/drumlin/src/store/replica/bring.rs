//! Brings over what is committed at the source, a batch at a time.

use std::time::Duration;

use super::blocks::{CopiedBlocks, Copying};
use super::lease::SourceLease;
use super::options::ReplicateReport;
use super::place::{SourceStore, another, behind};
use super::target::Replica;
use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Error, Result, Seq, Task, waiting};
use crate::catalog::State;
use crate::log::{Entry, News, Opened};
use crate::storage::names;
use crate::store::parts::recover;

/// A batch has at most about N bytes of entries, and at most N entries.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_ENTRIES: usize = 4096;
/// How often the newest state is read again because a block of it is gone, and the pause before that.
const LOOKS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(50);

/// A source and its replica.
pub(super) struct Bringer {
    pub source: SourceStore,
    pub replica: Replica,
    pub lease: Option<SourceLease>,
    /// Whether no other process brings commits over.
    pub sweep: bool,
    pub report: ReplicateReport,
}

impl Bringer {
    /// Brings over everything that is committed at the source by now, up to `until`; returns whether there was anything.
    pub fn catch_up(&mut self, until: Option<Seq>, task: &Task) -> Result<bool> {
        self.try_catch_up(until, task).map_err(|e| self.replica.log.judge(e))
    }

    /// Takes over the state after the commit `until`, to which `opened` leads.
    pub fn restore(&mut self, opened: Opened, until: Seq, task: &Task) -> Result<()> {
        let restored = || {
            if self.replica.seq() < until {
                self.take_whole(opened, Some(until), task)?;
            }
            self.replica.sweep(self.sweep)?;
            self.report.seq = self.replica.seq().0;
            Ok(())
        };
        restored().map_err(|e| self.replica.log.judge(e))
    }

    fn try_catch_up(&mut self, until: Option<Seq>, task: &Task) -> Result<bool> {
        let first = self.replica.seq();
        loop {
            task.cancel.check()?;
            waiting::check()?;
            let have = self.replica.seq();
            if let Some(lease) = &mut self.lease {
                lease.tend(have)?;
            }
            if until.is_some_and(|until| have >= until) {
                break;
            }
            match self.source.after(have, self.replica.state.entry)? {
                None => break,
                Some(News::Entries(entries)) => self.add(entries, until, task)?,
                Some(News::All(opened) | News::Unproven(opened)) => self.take_whole(opened, until, task)?,
            }
        }
        self.replica.sweep(self.sweep)?;
        self.replica.tidy()?;
        self.report.seq = self.replica.seq().0;
        Ok(self.replica.seq() > first)
    }

    /// Adds entries, some at a time.
    fn add(&mut self, entries: Vec<Entry>, until: Option<Seq>, task: &Task) -> Result<()> {
        let mut entries: Vec<Entry> =
            entries.into_iter().filter(|entry| until.is_none_or(|until| entry.seq <= until)).collect();
        if let Some(lost) = entries.first().filter(|first| first.seq != self.replica.seq().next()) {
            return Err(Error::corrupt(format!(
                "the source's log continues with commit {} after {}",
                lost.seq,
                self.replica.seq()
            )));
        }
        while !entries.is_empty() {
            let (mut bytes, mut some) = (0, 0);
            let (mut next, mut looks) = (self.replica.state.clone(), 0);
            loop {
                // The next ones of the batch, or all that there are if a block is gone that the state so far needs.
                let from = some;
                while let Some(entry) = entries.get(some)
                    && (some == from || (bytes < BATCH_BYTES && some < from + BATCH_ENTRIES))
                {
                    let mut then = next.clone();
                    apply(&mut then, entry)?;
                    // Where the past is kept, no block comes and goes within a batch: each state has its blocks here.
                    let kept = &self.replica.state.ledger;
                    if some > from
                        && self.replica.keeps()
                        && then.ledger.left_since(&next.ledger).iter().any(|block| !kept.is_stored(*block))
                    {
                        break;
                    }
                    bytes += entry.payload.len();
                    (next, some) = (then, some + 1);
                }
                bytes = 0;
                if planted(Bug::AppendFirst) {
                    break;
                }
                let (lease, have) = (&mut self.lease, self.replica.seq());
                let mut beat = || lease.as_mut().map_or(Ok(()), |lease| lease.tend(have));
                let mut copying = Copying { task, copied: CopiedBlocks::default(), beat: &mut beat };
                let gone = self.replica.copy_lacking(&self.source, &next, &mut copying)?;
                self.report.count(copying.copied);
                if gone.is_empty() {
                    break;
                }
                if some == entries.len() {
                    // It was released by a commit that came later.
                    looks += 1;
                    if looks > LOOKS || until.is_some_and(|until| next.seq >= until) {
                        return Err(missing(&self.source, &gone, until));
                    }
                    if looks > 1 {
                        waiting::pause(&*self.replica.env.clock, PAUSE * looks)?;
                    }
                    self.source.knows(next.seq);
                    match self.source.after(next.seq, next.entry)? {
                        None => {}
                        Some(News::Entries(more)) => {
                            entries
                                .extend(more.into_iter().filter(|entry| until.is_none_or(|until| entry.seq <= until)));
                        }
                        Some(News::All(opened) | News::Unproven(opened)) => {
                            return self.take_whole(opened, until, task);
                        }
                    }
                }
            }
            let rest = entries.split_off(some);
            self.replica.extend(&entries, next)?;
            if planted(Bug::AppendFirst) {
                let (next, mut beat) = (self.replica.state.clone(), || Ok(()));
                let mut copying = Copying { task, copied: CopiedBlocks::default(), beat: &mut beat };
                self.replica.copy_whole(&self.source, &next, true, &mut copying)?;
            }
            self.report.entries += some as u64;
            entries = rest;
        }
        Ok(())
    }

    /// Whether a state at the source is shown to continue what the replica has; fails if it does not.
    fn continues(&self, opened: &Opened, next: &State) -> Result<bool> {
        let (have, entry) = (self.replica.seq(), self.replica.state.entry);
        if next.seq < have {
            return Err(behind(&self.source.uri, next.seq, have));
        }
        let there = match next.seq == have {
            true => Some(next.entry),
            false => opened.entries.iter().find(|there| there.seq == have).map(|there| there.id),
        };
        match there {
            Some(there) if have > Seq(0) && there != entry => Err(another(&self.source.uri, have)),
            // Names of blocks are not given twice where many processes write.
            None => Ok(!self.source.is_single()?),
            Some(_) => Ok(true),
        }
    }

    /// Takes over the newest state at the source as a whole, or the one after the commit `until`, to which `opened` leads.
    pub fn take_whole(&mut self, opened: Opened, until: Option<Seq>, task: &Task) -> Result<()> {
        let (first, mut opened) = (until.map(|_| opened.clone()), opened);
        for look in 0..=LOOKS {
            if look > 0 {
                waiting::pause(&*self.replica.env.clock, PAUSE * look)?;
                opened = match &first {
                    Some(first) => first.clone(),
                    None => self.source.whole()?,
                };
            }
            if let Some(until) = until {
                if opened.base.is_some_and(|base| base.seq > until) {
                    return Err(Error::snapshot_expired(format!(
                        "{}: its log begins after commit {}, so commit {until} can no longer be restored",
                        self.source.uri,
                        opened.first()
                    )));
                }
                opened.entries.retain(|entry| entry.seq <= until);
            }
            let next = match recover::replay(&*self.source.storage, &opened) {
                Ok((next, _)) => next,
                // Its catalog snapshot was replaced while it was read.
                Err(_) if look < LOOKS => continue,
                Err(e) => return Err(e.context(&self.source.uri)),
            };
            let proven = self.continues(&opened, &next)?;
            let (lease, have) = (&mut self.lease, self.replica.seq());
            let mut beat = || lease.as_mut().map_or(Ok(()), |lease| lease.tend(have));
            let mut copying = Copying { task, copied: CopiedBlocks::default(), beat: &mut beat };
            let gone = self.replica.copy_whole(&self.source, &next, proven, &mut copying)?;
            self.report.count(copying.copied);
            if gone.is_empty() {
                self.source.knows(next.seq);
                self.report.whole += 1;
                return self.replica.restart(opened, next);
            }
            if look == LOOKS {
                return Err(missing(&self.source, &gone, until));
            }
        }
        unreachable!("the last look returns")
    }
}

/// Applies the next entry.
fn apply(state: &mut State, entry: &Entry) -> Result<()> {
    recover::apply_entry(state, entry)?;
    state.settle().map(drop)
}

fn missing(source: &SourceStore, gone: &[BlockId], until: Option<Seq>) -> Error {
    let (uri, block, more) = (&source.uri, names::block(gone[0]), gone.len() - 1);
    match until {
        Some(until) => Error::snapshot_expired(format!(
            "{uri}: {block} was reclaimed ({more} more blocks were), so commit {until} can no longer be restored"
        )),
        None => Error::corrupt(format!(
            "{uri}: {block}: the block is missing, but the newest state needs it ({more} more are missing)"
        )),
    }
}
