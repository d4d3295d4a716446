//! A commit log in files that another process writes, as its readers see it.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{Appended, Base, CommitLog, Entry, FileLog, News, Opened};
use crate::base::{Error, ErrorKind, Result, Seq};
use crate::storage::{Disk, names};

/// Follows a [`FileLog`] of another process.
pub struct FileFollower {
    disk: Arc<dyn Disk>,
    seen: Mutex<Seen>,
}

struct Seen {
    base: Option<Base>,
    last: Seq,
    /// The log's files and their sizes.
    files: Vec<(String, u64)>,
}

/// Looks at the log while its writer may move on: cut it, replace the catalog snapshot. Then what was listed is gone, and a
/// fresh look finds what replaced it.
pub fn look<T>(look: impl Fn() -> Result<T>) -> Result<T> {
    const LOOKS: usize = 5;
    for _ in 1..LOOKS {
        match look() {
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => {}
            other => return other,
        }
    }
    look()
}

fn last_of(opened: &Opened) -> Seq {
    let base = opened.base.map_or(Seq(0), |base| base.seq);
    opened.entries.last().map_or(base, |entry| entry.seq.max(base))
}

fn read_only() -> Error {
    Error::invalid("the store is open for reading only")
}

impl FileFollower {
    /// Follows the log on `disk`, of which `opened` is known.
    pub fn new(disk: Arc<dyn Disk>, opened: &Opened) -> Self {
        let seen = Seen { base: opened.base, last: last_of(opened), files: Vec::new() };
        Self { disk, seen: Mutex::new(seen) }
    }
}

impl CommitLog for FileFollower {
    fn append(&self, _: &Entry, _: bool) -> Result<Appended> {
        Err(read_only())
    }

    fn refresh(&self) -> Result<Option<News>> {
        let mut seen = self.seen.lock();
        let mut files: Vec<(String, u64)> =
            self.disk.list(names::LOG)?.into_iter().map(|entry| (entry.name, entry.bytes)).collect();
        files.sort_unstable();
        if seen.files == files {
            // Nothing has been written since the last look.
            return Ok(None);
        }
        let mut opened = look(|| FileLog::read(&*self.disk))?;
        let (last, known) = (last_of(&opened), seen.last);
        let reaches = opened.base.is_none_or(|base| base.seq <= known);
        *seen = Seen { base: opened.base, last, files };
        Ok(match (last > known, reaches) {
            (false, _) => None,
            (true, false) => Some(News::All(opened)),
            (true, true) => {
                opened.entries.retain(|entry| entry.seq > known);
                Some(News::Entries(opened.entries))
            }
        })
    }

    fn knows(&self, last: Seq) {
        let mut seen = self.seen.lock();
        if seen.last != last {
            seen.last = last;
            seen.files.clear();
        }
    }

    fn read(&self) -> Result<Opened> {
        FileLog::read(&*self.disk)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn rebase(&self, _: Option<Base>, _: Base, _: u64) -> Result<bool> {
        Err(read_only())
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }

    fn poison(&self) {}

    fn bytes(&self) -> u64 {
        0
    }

    fn base(&self) -> Option<Base> {
        self.seen.lock().base
    }
}
