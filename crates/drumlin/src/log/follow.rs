//! A commit log in files that another process writes, seen by its readers.
//!
//! A reader continues where it was: in the newest segment, it reads the last record that it knows, which must be unchanged,
//! and what follows it. If anything else has changed, the log is read as recovery reads it. A record that is only partly
//! there is left for the next time, unless a later one shows that it had been complete.
//!
//! What it finds must continue what it knows: the file that says what the folder is must be the same, the log must not end
//! earlier, and the last entry known must be there. Only that entry may have been undone by its writer, if it was not synced.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::frame::{Body, LogRecord};
use super::mark::Mark;
use super::origin::CLOSED;
use super::recovery::{judge_tail, retry_while_moving};
use super::{Appended, Base, CommitLog, Durable, Entry, FileLog, News, OnLoss, Opened, frame};
use crate::base::{EntryId, Error, ErrorKind, Result, Seq};
use crate::storage::{Access, Disk, names};

/// Follows a [`FileLog`] of another process.
pub struct FileFollower {
    disk: Arc<dyn Disk>,
    seen: Mutex<FollowedLog>,
}

struct FollowedLog {
    base: Option<Base>,
    /// The last entry known, its id unless the catalog snapshot holds it, and that of the one before it if it is known.
    last: Seq,
    id: Option<EntryId>,
    prev: Option<EntryId>,
    /// What the folder says that it is.
    format: Vec<u8>,
    /// The header of the newest segment.
    header: Vec<u8>,
    /// The log's segments and their sizes.
    files: Vec<(String, u64)>,
    place: Option<Position>,
}

/// Where to continue reading the newest segment.
#[derive(Clone)]
struct Position {
    name: String,
    /// Where the last entry read begins, or the first one.
    offset: u64,
    /// The number of the entry there, and its id if it was read.
    seq: Seq,
    id: Option<EntryId>,
}

impl Position {
    /// The beginning of a segment.
    fn start(name: &str) -> Option<Self> {
        let first = names::parse_log_segment(name)?;
        let name = format!("{}/{name}", names::LOG);
        Some(Self { name, offset: frame::HEADER_BYTES as u64, seq: first, id: None })
    }

    /// The entries after the one that was read, and the place of the last one. `None` if what was read is no longer there.
    fn read(&self, disk: &dyn Disk) -> Result<Option<(Self, Vec<Entry>)>> {
        let corrupt = || Error::corrupt(format!("{}: the file is too large for this machine", self.name));
        let file = disk.open(&self.name, Access::Read)?;
        let (start, length) = (usize::try_from(self.offset), usize::try_from(file.len()?));
        let (Ok(start), Ok(length)) = (start, length) else { return Err(corrupt()) };
        if length < start {
            return Ok(None);
        }
        // Offsets are those in the file; the part that is not read is never touched.
        let mut bytes = vec![0; length];
        let n = file.read_at(self.offset, &mut bytes[start..])?;
        bytes.truncate(start + n);
        let bytes = Bytes::from(bytes);
        let (mut place, mut entries, mut known) = (self.clone(), Vec::new(), self.id);
        let (mut at, mut next) = (start, self.seq);
        while at < bytes.len() {
            match frame::decode_record(&bytes, &self.name, at) {
                Some((LogRecord { seq, body: Body::Entry(entry), .. }, behind)) if seq == next => {
                    (place.offset, place.seq, place.id) = (at as u64, seq, Some(entry.id));
                    match known.take() {
                        Some(id) if id != entry.id => return Ok(None),
                        Some(_) => {}
                        None => entries.push(entry),
                    }
                    (at, next) = (behind, seq.next());
                }
                Some((LogRecord { seq, body: Body::End, .. }, behind)) if seq.next() == next => at = behind,
                // Reading it as recovery does will report what is wrong.
                _ if known.is_some() || judge_tail(&bytes, &self.name, at, next, true, OnLoss::Refuse).is_err() => {
                    return Ok(None);
                }
                _ => break,
            }
        }
        Ok(known.is_none().then_some((place, entries)))
    }
}

fn read_only() -> Error {
    Error::invalid("the store is open for reading only; open it for writing to change it")
}

impl FileFollower {
    /// Follows the log on `disk`, whose content `opened` is known.
    pub fn new(disk: Arc<dyn Disk>, opened: &Opened) -> Self {
        let (id, prev) = ids_of(opened);
        let format = read_whole(&*disk, names::FORMAT).unwrap_or_default();
        let (last, files, header) = (opened.last(), Vec::new(), Vec::new());
        let seen = FollowedLog { base: opened.base, last, id, prev, format, header, files, place: None };
        Self { disk, seen: Mutex::new(seen) }
    }
}

/// The ids of the last entry and of the one before it.
fn ids_of(opened: &Opened) -> (Option<EntryId>, Option<EntryId>) {
    let last = opened.entries.last();
    (last.map(|entry| entry.id), last.and_then(|entry| entry.prev))
}

fn read_whole(disk: &dyn Disk, name: &str) -> Result<Vec<u8>> {
    read_start(disk, name, usize::MAX)
}

/// The first bytes of a file.
fn read_start(disk: &dyn Disk, name: &str, bytes: usize) -> Result<Vec<u8>> {
    let file = disk.open(name, Access::Read)?;
    let length = usize::try_from(file.len()?)
        .map_err(|_| Error::corrupt(format!("{name}: the file is too large for this machine")))?;
    file.read(0, length.min(bytes))
}

/// The log does not continue what its reader knows.
fn other(what: impl std::fmt::Display) -> Error {
    Error::other_history(ErrorKind::Corrupt, format!("{what}; {CLOSED}"))
}

impl FollowedLog {
    /// Fails if the folder is another store than it was.
    fn check_format(&self, disk: &dyn Disk) -> Result<()> {
        match read_whole(disk, names::FORMAT) {
            _ if self.format.is_empty() => Ok(()),
            Ok(format) if format == self.format => Ok(()),
            Ok(_) => Err(Error::other_history(
                ErrorKind::Closed,
                format!("the file '{}' belongs to another store than the one that was opened; {CLOSED}", names::FORMAT),
            )),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                Err(other(format!("the file '{}' was removed", names::FORMAT)))
            }
            Err(e) => Err(e),
        }
    }

    /// Whether the newest segment is the one that was read: it begins alike, and has the last entry that was read of it.
    fn is_there(&self, disk: &dyn Disk) -> Result<bool> {
        let Some(place) = &self.place else { return Ok(true) };
        Ok(read_start(disk, &place.name, frame::HEADER_BYTES)? == self.header
            && (place.id.is_none() || place.read(disk)?.is_some()))
    }

    /// Judges a log that was read as a whole: whether it has new entries, and whether these continue the last one known.
    fn judge(&self, opened: &Opened, synced: Seq) -> Result<Option<bool>> {
        let (last, known) = (opened.last(), self.last);
        // A record that could not be synced is undone by its writer, and another may have taken its place.
        if last < known && (last.next() < known || synced >= known) {
            return Err(other(format!(
                "{}: it ends with commit {last}, but commit {known} was read before",
                names::LOG
            )));
        }
        let there = opened.entries.iter().find(|entry| entry.seq == known);
        let same = there.is_none_or(|there| self.id.is_none_or(|id| id == there.id));
        if let (false, Some(there), Some(prev)) = (same, there, self.prev)
            && there.prev.is_some_and(|then| then != prev)
        {
            return Err(other(format!("{}: commit {known} is not the one that was read before", names::LOG)));
        }
        let reaches = opened.base.is_none_or(|base| base.reaches(known));
        Ok((last > known).then_some(reaches && same))
    }

    /// What was added to the newest segment, if nothing else has changed.
    fn read_on(&self, disk: &dyn Disk, files: &[(String, u64)]) -> Result<Option<(Position, Vec<Entry>)>> {
        let (Some(place), Some((then, old)), Some((now, newer))) =
            (&self.place, self.files.split_last(), files.split_last())
        else {
            return Ok(None);
        };
        if old != newer || then.0 != now.0 || then.1 > now.1 {
            return Ok(None);
        }
        match place.read(disk) {
            // It has been cut since.
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            other => other,
        }
    }
}

impl CommitLog for FileFollower {
    fn append(&self, _: &Entry, _: Durable) -> Result<Appended> {
        Err(read_only())
    }

    fn refresh(&self) -> Result<Option<News>> {
        let mut seen = self.seen.lock();
        seen.check_format(&*self.disk)?;
        let listed = self.disk.list(names::LOG).map_err(|e| match e.kind() {
            ErrorKind::NotFound => other(format!("the folder '{}' was removed", names::LOG)),
            _ => e,
        });
        let listed = listed?.into_iter();
        let segments = listed.filter(|entry| names::parse_log_segment(&entry.name).is_some());
        let mut files: Vec<(String, u64)> = segments.map(|entry| (entry.name, entry.bytes)).collect();
        files.sort_unstable();
        // Its writer may cut it during the call.
        if seen.files == files && seen.is_there(&*self.disk).unwrap_or(false) {
            // Nothing has been written since the last look.
            return Ok(None);
        }
        if let Some((place, entries)) = seen.read_on(&*self.disk, &files)? {
            let known = seen.last;
            let new: Vec<Entry> = entries.into_iter().filter(|entry| entry.seq > known).collect();
            if let Some(last) = new.last() {
                (seen.last, seen.id, seen.prev) = (last.seq, Some(last.id), last.prev);
            }
            (seen.files, seen.place) = (files, Some(place));
            return Ok((!new.is_empty()).then_some(News::Entries(new)));
        }
        let synced = Mark::read(&*self.disk);
        let mut opened = retry_while_moving(|| FileLog::read(&*self.disk))?;
        let judged = seen.judge(&opened, synced)?;
        let known = seen.last;
        let place = files.last().and_then(|(name, _)| Position::start(name));
        let header = place.as_ref().map(|place| read_start(&*self.disk, &place.name, frame::HEADER_BYTES));
        // Gone again: then it is read as a whole the next time too.
        let (header, place) = match header {
            Some(Ok(header)) => (header, place),
            _ => (Vec::new(), None),
        };
        if judged.is_some() {
            (seen.last, (seen.id, seen.prev)) = (opened.last(), ids_of(&opened));
        }
        (seen.base, seen.files, seen.place, seen.header) = (opened.base, files, place, header);
        Ok(match judged {
            None => None,
            Some(false) => Some(News::All(opened)),
            Some(true) => {
                opened.entries.retain(|entry| entry.seq > known);
                Some(News::Entries(opened.entries))
            }
        })
    }

    fn confirm(&self) -> Result<()> {
        self.seen.lock().check_format(&*self.disk)
    }

    fn inspect(&self, store: u128) -> Result<Vec<String>> {
        Ok(Mark::find(&*self.disk).fault(store).into_iter().collect())
    }

    fn knows(&self, last: Seq) {
        let mut seen = self.seen.lock();
        if seen.last != last {
            (seen.last, seen.id, seen.prev, seen.place) = (last, None, None, None);
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
