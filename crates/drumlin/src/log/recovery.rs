//! Reads a log in files as far as it is proven: after a crash, and beside its writer.
//!
//! A bad record, with everything after it, is a torn tail only if nothing shows that it had been synced: no later good record, no
//! later segment, and not the mark next to the log.

use bytes::Bytes;

use super::frame::{Body, Header, LogRecord};
use super::mark::Mark;
use super::{Base, Entry, frame};
use crate::base::{Error, ErrorKind, Result, Seq};
use crate::storage::{Access, Disk, names};

/// What to do about entries that are known to have been synced and cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// The log is `Corrupt`.
    #[default]
    Refuse,
    /// It ends before them.
    Accept,
}

/// One segment as read.
pub struct LogSegment {
    pub name: String,
    pub header: Header,
    pub entries: Vec<Entry>,
    /// Offset past the last good record.
    pub end: u64,
    /// Whether bytes past `end` must be cut.
    pub torn: bool,
    /// Whether the last record is an end mark.
    pub ended: bool,
    /// The good records after the last one that is known to be synced, or the header if there is no record; and their
    /// offset. An end mark that nothing follows is not known to be synced.
    pub unsynced_offset: u64,
    pub unsynced_bytes: Bytes,
}

impl LogSegment {
    /// The number of the entry that follows this segment.
    pub fn next(&self) -> Seq {
        self.entries.last().map_or(self.header.first, |entry| entry.seq.next())
    }
}

/// First seqs of all segments, ascending.
pub fn list_segments(disk: &dyn Disk) -> Result<Vec<Seq>> {
    let mut firsts: Vec<Seq> =
        disk.list(names::LOG)?.iter().filter_map(|entry| names::parse_log_segment(&entry.name)).collect();
    firsts.sort_unstable();
    Ok(firsts)
}

/// Reads all segments that the newest one's base needs.
pub fn recover(disk: &dyn Disk, loss: OnLoss) -> Result<(LogSegment, Option<Base>, Vec<Entry>)> {
    // Read before the log, which another process may be writing.
    let marked = Mark::read(disk);
    let firsts = list_segments(disk)?;
    let Some((&newest_first, older)) = firsts.split_last() else {
        return Err(Error::corrupt(format!("{}: the folder has no log segment; {SALVAGE}", names::LOG)));
    };
    let newest = read_segment(disk, newest_first, true, loss)?;
    let base = newest.header.base;
    let mut wanted = newest.header.first;
    let from = base.map_or(Seq(1), |base| base.from);
    let mut chain = Vec::new();
    for &first in older.iter().rev() {
        if wanted <= from {
            break;
        }
        let segment = read_segment(disk, first, false, loss)?;
        if segment.next() != wanted {
            let (name, next) = (&segment.name, segment.next());
            return Err(Error::corrupt(format!(
                "{name}: it ends before entry {next}; expected entries up to {wanted}"
            )));
        }
        wanted = first;
        chain.push(segment);
    }
    if wanted > from {
        return Err(Error::corrupt(format!("{}: entries {from} to {} are missing", names::LOG, wanted.0 - 1)));
    }
    let mut entries: Vec<Entry> = chain.into_iter().rev().flat_map(|segment| segment.entries).collect();
    entries.extend(newest.entries.iter().cloned());
    entries.retain(|entry| entry.seq >= from);
    if loss == OnLoss::Refuse && newest.next() <= marked {
        let (name, last) = (&newest.name, newest.next().0 - 1);
        return Err(Error::corrupt(format!(
            "{name}: it ends with commit {last}, but {} says that commit {marked} was synced; {WAYS_OUT}",
            names::LOG_MARK
        )));
    }
    Ok((newest, base, entries))
}

/// Reads a segment up to the first bad record, and judges that.
fn read_segment(disk: &dyn Disk, first: Seq, newest: bool, loss: OnLoss) -> Result<LogSegment> {
    let name = names::log_segment(first);
    let file = disk.open(&name, Access::Read)?;
    let length = usize::try_from(file.len()?)
        .map_err(|_| Error::corrupt(format!("{name}: the file is too large for this machine")))?;
    let bytes = Bytes::from(file.read(0, length)?);
    let header = frame::decode_header(&bytes, &name)?;
    if header.first != first {
        return Err(Error::corrupt(format!("{name}: its header says that it begins with entry {}", header.first)));
    }
    if first.0 == 0 || header.base.is_some_and(|base| base.seq >= first) {
        return Err(Error::corrupt(format!("{name}: its header names a catalog snapshot of a later state")));
    }
    if header.base.is_some_and(|base| base.from > base.seq.next()) {
        return Err(Error::corrupt(format!("{name}: its header skips entries after the catalog snapshot")));
    }
    let mut segment = LogSegment {
        name,
        header,
        entries: Vec::new(),
        end: frame::HEADER_BYTES as u64,
        torn: false,
        ended: false,
        unsynced_offset: 0,
        unsynced_bytes: bytes.slice(..frame::HEADER_BYTES),
    };
    // Where each entry and the last end mark begin, and the entry up to which all are known to be synced.
    let (mut starts, mut end_mark, mut synced): (Vec<(Seq, usize)>, usize, Seq) = (Vec::new(), 0, Seq(0));
    let mut offset = frame::HEADER_BYTES;
    while offset < bytes.len() {
        let next = segment.next();
        let start = offset;
        match frame::decode_record(&bytes, &segment.name, offset) {
            Some((LogRecord { seq, synced: mark, body: Body::Entry(entry) }, behind)) if seq == next => {
                segment.entries.push(entry);
                starts.push((seq, start));
                synced = synced.max(mark);
                segment.ended = false;
                offset = behind;
            }
            Some((LogRecord { seq, synced: mark, body: Body::End }, behind)) if seq.next() == next => {
                synced = synced.max(mark);
                segment.ended = true;
                end_mark = start;
                offset = behind;
            }
            _ => {
                judge_tail(&bytes, &segment.name, offset, next, newest, loss)?;
                segment.torn = true;
                break;
            }
        }
        segment.end = offset as u64;
    }
    let unsynced = starts.iter().find(|(seq, _)| *seq > synced).map(|(_, start)| *start);
    if let Some(start) = unsynced.or(segment.ended.then_some(end_mark)) {
        segment.unsynced_offset = start as u64;
        segment.unsynced_bytes = bytes.slice(start..segment.end as usize);
    }
    Ok(segment)
}

/// What to do about a log that lacks more than its end.
const SALVAGE: &str = "restore a backup, or copy what can be read with `drumlin salvage`";

/// What to do about a log that has lost synced entries at its end.
const WAYS_OUT: &str = "restore a backup, copy what can be read with `drumlin salvage`, or open the store with \
                        accept_loss to continue without those commits";

/// A bad record at `offset`, where entry `next` was expected: fails unless it may be a torn write.
pub fn judge_tail(bytes: &Bytes, name: &str, offset: usize, next: Seq, newest: bool, loss: OnLoss) -> Result<()> {
    let corrupt = |why: String| {
        Err(Error::corrupt(format!("{name}: the record at offset {offset} is damaged, and {why}; {WAYS_OUT}")))
    };
    if !newest {
        // What follows cannot be kept without it, nor be given up: only the end of a log can.
        return Err(Error::corrupt(format!(
            "{name}: the record at offset {offset} is damaged, and a later segment shows that it had been synced; \
             {SALVAGE}"
        )));
    }
    if loss == OnLoss::Accept {
        return Ok(());
    }
    let mut at = frame::align(offset);
    while at < bytes.len() {
        // Most offsets are ruled out by the header: no checksum is computed over bytes that a wrong length claims.
        if frame::may_show_synced(bytes, at, next)
            && let Some((record, _)) = frame::decode_record(bytes, name, at)
        {
            if record.synced >= next {
                return corrupt(format!("the record at {at} shows that it had been synced"));
            }
            // What precedes that entry is an end mark, which was synced before the entry was written.
            if record.seq == next && matches!(record.body, Body::Entry(_)) {
                return corrupt(format!("entry {next} follows at {at}, so it was an end mark"));
            }
        }
        at = frame::align(at + 1);
    }
    Ok(())
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
