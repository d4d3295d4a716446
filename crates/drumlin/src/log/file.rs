//! The commit log in files: append-only segments, with one sync per append.
//!
//! Recovery trusts nothing it cannot prove (recovery.rs). The newest segment must keep its name: a commit is acknowledged only if,
//! after its sync, the file that it went to still has one. If it has several, another folder shares it, and the log goes on in a
//! new one. After a write or sync whose outcome is unknown the handle is poisoned: nothing is retried, the store must be opened
//! again. The system reports a failed write-back to only one caller, so one thread syncs at a time, and checks whether the
//! handle is poisoned once it has its turn.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::frame::{Body, Header, LogRecord};
use super::mark::{Mark, MarkFound};
use super::origin::{CLOSED, Origin};
use super::recovery::{OnLoss, list_segments, recover, retry_while_moving};
use super::{Appended, Base, CommitLog, Durable, Entry, News, Opened, frame};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Result, Seq};
use crate::storage::{Access, ClosedFile, Disk, DiskFile, DiskFolder, Rename, names};

/// The length of a record is stored in 32 bits.
pub const ENTRY_BYTES_MAX: u64 = (4 << 30) - (4 << 10);

/// Settings of a commit log in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// A segment that has grown past this is followed by a new one. Default 64 MiB.
    pub segment_bytes_max: u64,
    /// The maximum size of a commit in the log, in bytes. The default, and the upper limit, is a little less than 4
    /// GiB.
    pub entry_bytes_max: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { segment_bytes_max: 64 << 20, entry_bytes_max: ENTRY_BYTES_MAX }
    }
}

/// The commit log of a local store.
pub struct FileLog {
    disk: Arc<dyn Disk>,
    options: LogOptions,
    mark: Mark,
    /// How the mark was found when the log was opened.
    mark_found: MarkFound,
    /// Held by the thread that syncs; taken before `tail`.
    syncing: Mutex<()>,
    tail: Mutex<Tail>,
}

/// Where the next record goes.
struct Tail {
    file: Arc<dyn DiskFile>,
    /// Name and first seq of the newest segment.
    name: String,
    first: Seq,
    offset: u64,
    last: Seq,
    /// The last entry known to be durable.
    synced: Seq,
    base: Option<Base>,
    /// Bytes of the entries after the base.
    bytes: u64,
    ended: bool,
    poisoned: bool,
    closed: bool,
    /// Whether the segment is part of another folder too, so that nothing more may be written to it.
    linked: bool,
}

impl FileLog {
    /// Creates the log of a new store.
    pub fn create(disk: Arc<dyn Disk>, options: LogOptions) -> Result<Self> {
        Self::create_behind(disk, options, Seq(0), None)
    }

    /// Creates the log of a new store whose next entry is the one after `last`, and which begins with the catalog
    /// snapshot `base`, if there is one.
    pub fn create_behind(disk: Arc<dyn Disk>, options: LogOptions, last: Seq, base: Option<Base>) -> Result<Self> {
        let first = last.next();
        disk.make_dir(names::LOG)?;
        if !planted(Bug::SkipLogFolderSync) {
            disk.sync_dir("")?;
        }
        let (name, file) = prepare_segment(&*disk, &Header { first, base })?.publish(&*disk)?;
        let tail = Tail {
            file: file.into(),
            name,
            first,
            offset: frame::HEADER_BYTES as u64,
            last,
            synced: last,
            base,
            bytes: 0,
            ended: false,
            poisoned: false,
            closed: false,
            linked: false,
        };
        let (mark, _) = Mark::open(&*disk, last)?;
        Ok(Self { disk, options, mark, mark_found: MarkFound::Sound, syncing: Mutex::new(()), tail: Mutex::new(tail) })
    }

    /// Creates the log of a store that had another one, with what `opened` has of that: entries after its catalog snapshot.
    pub fn create_from(disk: Arc<dyn Disk>, options: LogOptions, opened: &Opened) -> Result<Self> {
        let last = opened.first();
        let log = Self::create_behind(disk, options, last, opened.base)?;
        opened.entries.iter().try_for_each(|entry| log.append(entry, Durable::AfterSync).map(drop))?;
        log.sync()?;
        Ok(log)
    }

    /// Reads the log without changing anything, as a follower does: a torn tail is left alone.
    pub fn read(disk: &dyn Disk) -> Result<Opened> {
        let (_, base, entries) = recover(disk, OnLoss::Refuse)?;
        Ok(Opened { base, entries, ..Opened::default() })
    }

    /// Opens the log for writing: cuts a torn tail, and removes segments that the newest base makes unnecessary.
    pub fn open(disk: Arc<dyn Disk>, options: LogOptions, loss: OnLoss) -> Result<(Self, Opened)> {
        let (recovered, lossy) = match recover(&*disk, OnLoss::Refuse) {
            Err(e) if e.kind() == ErrorKind::Corrupt && loss == OnLoss::Accept => (recover(&*disk, loss)?, true),
            other => (other?, false),
        };
        let (newest, base, entries) = recovered;
        let mut file = disk.open(&newest.name, Access::Write)?;
        if file.links()? > 1 {
            file = copy_segment(&*disk, &newest.name, &*file)?;
        }
        if newest.torn {
            file.set_len(newest.end)?;
        }
        // Records that no later one says were synced, an end mark among them, may be in the page cache only: their writer
        // died before the sync, or the sync failed, after which the kernel takes the pages for clean. Nothing may depend
        // on them before they are written and synced again.
        file.write_at(newest.unsynced_offset, &newest.unsynced_bytes)?;
        if !planted(Bug::SkipOpenSync) {
            file.sync()?;
        }
        // An earlier process may have died between naming a file and making its name durable.
        if !planted(Bug::SkipReopenSync) {
            disk.sync_dir(names::LOG)?;
            disk.sync_dir("")?;
        }
        let (last, ended) = (Seq(newest.next().0 - 1), newest.ended);
        let behind = |entry: &&Entry| base.is_none_or(|base| entry.seq > base.seq);
        let tail = Tail {
            file: file.into(),
            name: newest.name,
            first: newest.header.first,
            offset: frame::align(newest.end as usize) as u64,
            last,
            synced: last,
            base,
            bytes: entries.iter().filter(behind).map(|entry| entry.payload.len() as u64).sum(),
            ended,
            poisoned: false,
            closed: false,
            linked: false,
        };
        let (mark, mark_found) = Mark::open(&*disk, last)?;
        // A crash may leave a mark that was being made.
        let mark_found = if ended { mark_found } else { MarkFound::Sound };
        let log = Self { disk, options, mark, mark_found, syncing: Mutex::new(()), tail: Mutex::new(tail) };
        log.cut()?;
        Ok((log, Opened { base, entries, origin: Origin::default(), lossy }))
    }

    /// Continues in a new segment.
    fn roll(&self, tail: &mut Tail, base: Option<Base>) -> Result<()> {
        // A later segment implies that this one was synced. Beside another store's segments it would be taken for one of them.
        tail.sync(&*self.disk)?;
        tail.check_name(&*self.disk)?;
        self.mark.say(tail.last);
        self.mark.sync();
        let first = tail.last.next();
        let made = prepare_segment(&*self.disk, &Header { first, base })?;
        // From the rename on, the next open may find the new segment, whatever the rename returned: a later append to
        // the old one would be lost.
        let (name, file) = made.publish(&*self.disk).inspect_err(|_| tail.poisoned = true)?;
        tail.file = file.into();
        tail.name = name;
        tail.first = first;
        tail.base = base;
        tail.offset = frame::HEADER_BYTES as u64;
        (tail.ended, tail.linked) = (false, false);
        Ok(())
    }

    /// The turn to sync.
    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        (!planted(Bug::SyncTogether)).then(|| self.syncing.lock())
    }

    /// Whether the newest segment takes no more: it has grown past its limit, or another folder has it too.
    fn is_full(&self, tail: &Tail) -> bool {
        tail.linked || (tail.offset > self.options.segment_bytes_max && tail.first <= tail.last)
    }

    /// Removes segments whose entries the base holds. What cannot be removed now is removed at the next opportunity.
    fn cut(&self) -> Result<()> {
        let (base, newest) = {
            let tail = self.tail.lock();
            (tail.base, tail.first)
        };
        let Some(base) = base else { return Ok(()) };
        let firsts = list_segments(&*self.disk)?;
        for pair in firsts.windows(2) {
            // The last entry of pair[0] is the one before pair[1].
            if pair[1] <= base.from && pair[0] < newest {
                match self.disk.remove(&names::log_segment(pair[0])) {
                    Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

impl CommitLog for FileLog {
    /// After `InDoubt`, this log accepts no more entries.
    fn append(&self, entry: &Entry, durable: Durable) -> Result<Appended> {
        let later = durable == Durable::AfterSync;
        // An append that may be synced later need not wait for a sync, unless a new segment must be started.
        let turn = if later { None } else { Some(self.turn()) };
        let mut tail = self.tail.lock();
        let _turn = turn
            .unwrap_or_else(|| self.is_full(&tail).then(|| MutexGuard::unlocked(&mut tail, || self.turn())).flatten());
        tail.check()?;
        assert_eq!(entry.seq, tail.last.next(), "entries are numbered without gaps");
        if self.is_full(&tail) {
            let base = tail.base;
            self.roll(&mut tail, base)?;
        }
        let record = LogRecord { seq: entry.seq, synced: tail.synced, body: Body::Entry(entry.clone()) };
        tail.write(&*self.disk, &record, !later).map_err(|e| match e.kind() {
            ErrorKind::InDoubt => e.context(format!("commit {} (transaction {:032x})", entry.seq, entry.id.0)),
            _ => e,
        })?;
        tail.last = entry.seq;
        if !later {
            tail.synced = entry.seq;
            self.mark.say(entry.seq);
        }
        tail.bytes += entry.payload.len() as u64;
        tail.ended = false;
        Ok(Appended::Done)
    }

    fn refresh(&self) -> Result<Option<News>> {
        // No other process writes.
        self.confirm().map(|()| None)
    }

    fn confirm(&self) -> Result<()> {
        self.tail.lock().check_name(&*self.disk)
    }

    fn inspect(&self, store: u128) -> Result<Vec<String>> {
        let again = "it was written again; whether later commits were lost before that cannot be determined";
        let found = self.mark_found.fault(store).map(|what| format!("{what} when the store was opened: {again}"));
        let mark = found.or(Mark::find(&*self.disk).fault(store));
        // Segments may be removed while they are read, and commits appended.
        let made = self.tail.lock().last;
        let entries = match retry_while_moving(|| Self::read(&*self.disk)) {
            Ok(read) if read.last() < made => {
                Some(format!("it ends with commit {}, but commit {made} was made", read.last()))
            }
            Ok(_) => None,
            Err(e) if [ErrorKind::Corrupt, ErrorKind::NotFound].contains(&e.kind()) => Some(e.to_string()),
            Err(e) => return Err(e),
        };
        Ok(mark.into_iter().chain(entries).collect())
    }

    fn read(&self) -> Result<Opened> {
        Self::read(&*self.disk)
    }

    /// Appends continue during the sync. After a failure, this log accepts no more entries.
    fn sync(&self) -> Result<()> {
        let _turn = self.turn();
        let (file, last) = {
            let tail = self.tail.lock();
            tail.check()?;
            if tail.synced == tail.last {
                return Ok(());
            }
            (tail.file.clone(), tail.last)
        };
        let synced = file.sync();
        let mut tail = self.tail.lock();
        match synced {
            Ok(()) => {
                tail.check_name(&*self.disk)?;
                tail.synced = tail.synced.max(last);
                self.mark.say(tail.synced);
                self.mark.sync();
            }
            Err(error) => {
                tail.poisoned = true;
                return Err(Error::in_doubt("the log could not be synced").with_source(error));
            }
        }
        Ok(())
    }

    /// Removes the segments that the snapshot makes unnecessary.
    fn rebase(&self, _: Option<Base>, base: Base, bytes: u64) -> Result<bool> {
        {
            let _turn = self.turn();
            let mut tail = self.tail.lock();
            tail.check()?;
            assert!(base.seq <= tail.last, "a catalog snapshot is of a state that the log led to");
            self.roll(&mut tail, Some(base))?;
            tail.bytes = tail.bytes.saturating_sub(bytes);
        }
        self.cut()?;
        Ok(true)
    }

    fn close(&self) -> Result<()> {
        let _turn = self.turn();
        let mut tail = self.tail.lock();
        let ended = tail.end(&*self.disk);
        tail.file = Arc::new(ClosedFile);
        self.mark.close(ended.is_ok().then_some(tail.last));
        ended
    }

    fn poison(&self) {
        self.tail.lock().poisoned = true;
    }

    fn bytes(&self) -> u64 {
        self.tail.lock().bytes
    }

    fn base(&self) -> Option<Base> {
        self.tail.lock().base
    }
}

impl Tail {
    fn check(&self) -> Result<()> {
        if self.poisoned {
            return Err(Error::closed(
                "the commit log is closed, or an earlier write to it failed; open the store again",
            ));
        }
        Ok(())
    }

    /// Writes the end mark, so that later damage to the last entry can be distinguished from a torn write.
    fn end(&mut self, disk: &dyn Disk) -> Result<()> {
        if std::mem::replace(&mut self.poisoned, true) || self.ended {
            return match self.synced < self.last && !self.closed {
                true => Err(Error::in_doubt("the last commits could not be made durable")),
                false => Ok(()),
            };
        }
        self.closed = true;
        // The end mark says that everything before it was synced.
        self.sync(disk)?;
        let record = LogRecord { seq: self.last, synced: self.last, body: Body::End };
        match self.write(disk, &record, true) {
            // There is nothing left to close.
            Err(e) if e.is_other_history() => {}
            other => other?,
        }
        self.ended = true;
        Ok(())
    }

    /// Makes all entries durable.
    fn sync(&mut self, disk: &dyn Disk) -> Result<()> {
        if self.synced < self.last {
            if let Err(error) = self.file.sync() {
                self.poisoned = true;
                return Err(Error::in_doubt("the log could not be synced").with_source(error));
            }
            self.check_name(disk)?;
            self.synced = self.last;
        }
        Ok(())
    }

    /// Fails for good if the segment is no longer in the store's folder, or another file has its name: what was written to it
    /// is gone.
    fn check_name(&mut self, disk: &dyn Disk) -> Result<()> {
        let links = self.file.links()?;
        let there = links > 0 && disk.identity(&self.name)? == Some(self.file.identity()?);
        match links {
            _ if !there && !planted(Bug::TrustNames) => {
                self.poisoned = true;
                Err(Error::other_history(
                    ErrorKind::Corrupt,
                    format!("{} was removed or replaced while it was open; {CLOSED}", self.name),
                ))
            }
            links => {
                self.linked |= links > 1;
                Ok(())
            }
        }
    }

    fn write(&mut self, disk: &dyn Disk, record: &LogRecord, sync: bool) -> Result<()> {
        let bytes = frame::encode_record(record, &self.name, self.offset)?;
        if let Err(error) = self.file.write_at(self.offset, &bytes) {
            // Undo what may have been written; if even that fails, the content is unknown.
            let cut = self.file.set_len(self.offset);
            let undone = if planted(Bug::SkipUndoSync) { cut } else { cut.and_then(|()| self.file.sync()) };
            if undone.is_ok() {
                return Err(error);
            }
            self.poisoned = true;
            return Err(
                Error::in_doubt("the log could not be written, and the attempt could not be undone").with_source(error)
            );
        }
        if sync
            && !planted(Bug::SkipLogSync)
            && let Err(error) = self.file.sync()
        {
            self.poisoned = true;
            return Err(Error::in_doubt("the log could not be synced").with_source(error));
        }
        if sync {
            // It is durable by now.
            self.check_name(disk).map_err(|e| {
                self.poisoned = true;
                if e.is_other_history() {
                    e
                } else {
                    Error::in_doubt("the log could not be checked after the write").with_source(e)
                }
            })?;
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// A segment under its temporary name. Once it is there, nothing needs to be opened to give it its final one.
struct NewSegment<'a> {
    folder: Box<dyn DiskFolder + 'a>,
    temporary: String,
    name: String,
    file: Box<dyn DiskFile>,
}

/// Gives a segment that another folder has too a copy of its own.
fn copy_segment(disk: &dyn Disk, name: &str, file: &dyn DiskFile) -> Result<Box<dyn DiskFile>> {
    let length = usize::try_from(file.len()?)
        .map_err(|_| Error::corrupt(format!("{name}: the file is too large for this machine")))?;
    Ok(new_segment(disk, name.to_owned(), &file.read(0, length)?)?.publish(disk)?.1)
}

/// Writes a segment that holds a header only, under a temporary name.
fn prepare_segment<'a>(disk: &'a dyn Disk, header: &Header) -> Result<NewSegment<'a>> {
    let name = names::log_segment(header.first);
    let bytes = frame::encode_header(header, &name);
    new_segment(disk, name, &bytes)
}

fn new_segment<'a>(disk: &'a dyn Disk, name: String, bytes: &[u8]) -> Result<NewSegment<'a>> {
    let folder = disk.folder(names::LOG)?;
    let temporary = names::temporary_segment(&name);
    let file = match disk.create(&temporary) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            disk.remove(&temporary)?;
            disk.create(&temporary)?
        }
        other => other?,
    };
    file.write_at(0, bytes)?;
    if !planted(Bug::SkipLogHeaderSync) {
        file.sync()?;
    }
    Ok(NewSegment { folder, temporary, name, file })
}

impl NewSegment<'_> {
    /// Gives it its final name, durably.
    fn publish(self, disk: &dyn Disk) -> Result<(String, Box<dyn DiskFile>)> {
        let within = |name: &str| name.trim_start_matches(names::LOG).trim_start_matches('/').to_owned();
        self.folder.rename(&within(&self.temporary), &within(&self.name), Rename::Replace)?;
        if !planted(Bug::SkipLogNameSync) {
            self.folder.sync()?;
        }
        // Opened again, so that errors show the file's new name; if that fails, the old handle is used.
        let file = disk.open(&self.name, Access::Write).unwrap_or(self.file);
        Ok((self.name, file))
    }
}
