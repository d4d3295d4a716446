//! Locks of files that other processes see, and what becomes of them in a fork.
//!
//! The lock of a file (`flock`) belongs to what was opened, which a forked process shares with its parent: a fork that merely
//! lives would keep its parent's locks after the parent has died. So every descriptor that has a lock, or is about to get one, is
//! noted before that, in a list that is read without a lock; a forked process points its copies of them elsewhere
//! ([`leave_to_parent`]), at once, before anything else happens in it. What it opens itself it locks itself.
//!
//! Record locks (`fcntl`) are not passed on to a fork, but they end as soon as the process closes any descriptor of the file,
//! which anything that copies a folder does.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use super::disk::Guard;

/// How many locks a process holds at a time and leaves to itself when it forks.
const NOTED_MAX: usize = 4096;
const NONE: RawFd = -1;

static NOTED: [AtomicI32; NOTED_MAX] = [const { AtomicI32::new(NONE) }; NOTED_MAX];
/// The files that they are of.
static INODES: [AtomicU64; NOTED_MAX] = [const { AtomicU64::new(0) }; NOTED_MAX];

/// The descriptors that have a lock in this process. Takes no lock and allocates nothing.
pub fn held_descriptors() -> impl Iterator<Item = RawFd> {
    NOTED.iter().map(|noted| noted.load(Ordering::Acquire)).filter(|descriptor| *descriptor != NONE)
}

/// Called in a forked process, before anything else: gives up its share of the parent's locks. `replace` makes a descriptor
/// refer to something else without closing it, so that its number is not used for anything else while its owner here lives.
pub fn leave_to_parent(replace: impl Fn(RawFd)) {
    for noted in &NOTED {
        let descriptor = noted.swap(NONE, Ordering::AcqRel);
        if descriptor != NONE {
            replace(descriptor);
        }
    }
}

/// An open file that has a lock, or is about to get one.
pub(super) struct LockFile {
    pub file: File,
    slot: Option<usize>,
    process: u32,
    /// Whether its holder is named in it.
    named: bool,
}

impl LockFile {
    /// Notes `file`, which has no lock yet.
    pub fn new(file: File) -> io::Result<Self> {
        let inode = file.metadata()?.ino();
        let take = |slot: &usize| {
            let taken =
                NOTED[*slot].compare_exchange(NONE, file.as_raw_fd(), Ordering::AcqRel, Ordering::Relaxed).is_ok();
            if taken {
                INODES[*slot].store(inode, Ordering::Release);
            }
            taken
        };
        let slot = (0..NOTED_MAX).find(take);
        Ok(Self { file, slot, process: std::process::id(), named: false })
    }

    /// Names `holder` in it, for others to read. A full disk must not keep a store from being opened.
    pub fn name_holder(&mut self, holder: &str) {
        self.named = true;
        let _ = self.file.set_len(0).and_then(|()| self.file.write_all_at(holder.as_bytes(), 0));
    }

    /// Who holds the lock that this file could not get; `own` is what this process would name itself.
    pub fn holder(&self, own: &str) -> io::Result<String> {
        let (mut text, mut n) = ([0; 256], 0);
        loop {
            match self.file.read_at(&mut text[n..], n as u64) {
                Ok(0) => break,
                Ok(read) => n += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(match &*String::from_utf8_lossy(&text[..n]) {
            "" => "another process".to_owned(),
            // Numbers of processes are those of a container, and are used again.
            there if there == own && !self.is_held_here() => {
                format!("another process, which is also named {own}")
            }
            there => there.to_owned(),
        })
    }

    /// Whether another handle of this process has the lock.
    fn is_held_here(&self) -> bool {
        let own = self.slot.map(|slot| INODES[slot].load(Ordering::Acquire));
        let same = |slot: &usize| {
            NOTED[*slot].load(Ordering::Acquire) != NONE && own == Some(INODES[*slot].load(Ordering::Acquire))
        };
        (0..NOTED_MAX).filter(|slot| Some(*slot) != self.slot).any(|slot| same(&slot))
    }
}

impl Guard for LockFile {}

impl Drop for LockFile {
    fn drop(&mut self) {
        // In a forked process that gave up its share there is nothing to unlock, and in one that could not, the lock is the
        // parent's.
        if self.process != std::process::id() {
            return;
        }
        if self.named {
            let _ = self.file.set_len(0);
        }
        // If unlocking fails, closing has to suffice.
        let _ = self.file.unlock();
        if let Some(slot) = self.slot {
            NOTED[slot].store(NONE, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_noted_while_it_is_held() {
        let file = tempfile::tempfile().unwrap();
        let descriptor = file.as_raw_fd();
        let mut lock = LockFile::new(file).unwrap();
        lock.name_holder("process 1");
        assert!(held_descriptors().any(|held| held == descriptor));
        assert_eq!(lock.holder("process 2").unwrap(), "process 1");
        assert!(
            lock.holder("process 1").unwrap().starts_with("another process"),
            "no other handle of this process has it"
        );
        let other = LockFile::new(lock.file.try_clone().unwrap()).unwrap();
        assert_eq!(other.holder("process 1").unwrap(), "process 1");
    }
}
