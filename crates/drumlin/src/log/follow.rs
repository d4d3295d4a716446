//! A commit log in files that another process writes, seen by its readers.
//!
//! A reader continues where it was: in the newest segment, it reads the last record that it knows, which must be unchanged,
//! and what follows it. If anything else has changed, the log is read as recovery reads it. A record that is only partly
//! there is left for the next time, unless a later one shows that it had been complete.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::file::judge_tail;
use super::frame::{self, Body, Record};
use super::{Appended, Base, CommitLog, Durable, Entry, FileLog, News, OnLoss, Opened};
use crate::base::{EntryId, Error, ErrorKind, Result, Seq};
use crate::storage::{Access, Disk, names};

/// Follows a [`FileLog`] of another process.
pub struct FileFollower {
    disk: Arc<dyn Disk>,
    seen: Mutex<Seen>,
}

struct Seen {
    base: Option<Base>,
    /// The last entry known, and its id unless the catalog snapshot holds it.
    last: Seq,
    id: Option<EntryId>,
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
        let corrupt = || Error::corrupt(format!("{}: too large", self.name));
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
                Some((Record { seq, body: Body::Entry(entry), .. }, behind)) if seq == next => {
                    (place.offset, place.seq, place.id) = (at as u64, seq, Some(entry.id));
                    match known.take() {
                        Some(id) if id != entry.id => return Ok(None),
                        Some(_) => {}
                        None => entries.push(entry),
                    }
                    (at, next) = (behind, seq.next());
                }
                Some((Record { seq, body: Body::End, .. }, behind)) if seq.next() == next => at = behind,
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

/// Reads the log while its writer may change it: cut it, or replace the catalog snapshot. Then what was listed is gone, and
/// another read finds what replaced it.
pub fn retry_while_moving<T>(look: impl Fn() -> Result<T>) -> Result<T> {
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
    /// Follows the log on `disk`, whose content `opened` is known.
    pub fn new(disk: Arc<dyn Disk>, opened: &Opened) -> Self {
        let id = opened.entries.last().map(|entry| entry.id);
        let seen = Seen { base: opened.base, last: last_of(opened), id, files: Vec::new(), place: None };
        Self { disk, seen: Mutex::new(seen) }
    }
}

impl Seen {
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
        let listed = self.disk.list(names::LOG)?.into_iter();
        let segments = listed.filter(|entry| names::parse_log_segment(&entry.name).is_some());
        let mut files: Vec<(String, u64)> = segments.map(|entry| (entry.name, entry.bytes)).collect();
        files.sort_unstable();
        if seen.files == files {
            // Nothing has been written since the last look.
            return Ok(None);
        }
        if let Some((place, entries)) = seen.read_on(&*self.disk, &files)? {
            let known = seen.last;
            let new: Vec<Entry> = entries.into_iter().filter(|entry| entry.seq > known).collect();
            if let Some(last) = new.last() {
                (seen.last, seen.id) = (last.seq, Some(last.id));
            }
            (seen.files, seen.place) = (files, Some(place));
            return Ok((!new.is_empty()).then_some(News::Entries(new)));
        }
        let mut opened = retry_while_moving(|| FileLog::read(&*self.disk))?;
        let (last, known) = (last_of(&opened), seen.last);
        let reaches = opened.base.is_none_or(|base| base.seq <= known);
        // A record that could not be synced is undone by its writer, and another may have taken its place.
        let there = opened.entries.iter().find(|entry| entry.seq == known).map(|entry| entry.id);
        let same = there.is_none() || seen.id.is_none() || there == seen.id;
        let id = opened.entries.last().map(|entry| entry.id);
        let place = files.last().and_then(|(name, _)| Position::start(name));
        *seen = Seen { base: opened.base, last, id, files, place };
        Ok(match (last > known, reaches && same) {
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
            (seen.last, seen.id, seen.place) = (last, None, None);
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
