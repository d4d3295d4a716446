//! A store in a folder that one process writes becomes one that many processes may write, and back. Blocks and catalog stay where
//! they are; only what leads to them is written again.
//!
//! A folder with a `root` is shared, whatever else lies there, and one without is not. So the call that makes a store shared
//! writes the root last, and the call that ends it removes the root last; what the other kind needs is removed after that. A
//! call that was cut off has changed nothing, or everything, and the next one tidies up.
//!
//! - The lock of the one writing process is held from the last look at its log on, so that no process opens the folder in the
//!   old way. One that waited for the lock looks for a root again (*opening.rs*).
//! - The way back also holds the lock under which roots are replaced. A process that still has the store open finds no root at
//!   its next commit, and does nothing any more.
//! - Both first make a checkpoint, so that the log is short. Readers of the old log get an error that names what was removed.

use std::sync::Arc;

use super::format::{format_text, read_format};
use super::opening::{open_bucket, open_on};
use super::uri::{folder_of, is_in_memory};
use crate::base::{Env, Error, ErrorKind, Result, SessionId, Task};
use crate::catalog::Effect;
use crate::log::{CommitLog, FileLog, ObjectLog, OnLoss, Opened};
use crate::storage::{Disk, FileStorage, Guard, InlineStorage, OsDisk, Storage, WriteMode, is_bucket, names};
use crate::store::parts::{holder, recover};
use crate::store::{CheckpointOptions, Mode, Options, Store, SyncMode};

/// How many bytes of entries a store may have after its checkpoint.
const ENTRIES_BYTES_MAX: usize = 1 << 20;

/// Opens the folder; a disk serves until the store on it is closed.
type OpenDisk<'a> = &'a dyn Fn() -> Result<Arc<dyn Disk>>;

/// Makes the store in the folder `uri`, which one process writes, one that many may write, without copying its tables. If it
/// is shared already, the call removes what an earlier one, cut off, has left. Takes as long as a checkpoint.
///
/// # Errors
/// `Locked` if it is open anywhere, `Cancelled`, `NotFound` if there is no store, `InvalidArgument` if `uri` is not a folder, `Conflict` if it
/// was written during the call; nothing was changed.
pub fn share(uri: &str, options: Options, task: &Task) -> Result<()> {
    share_on(&|| open_folder(uri), Env::system(options.cpu_threads)?, uri, options, task)
}

/// Makes the store in the folder `uri`, which many processes may write, one that a single process writes, without copying its
/// tables. No other process may use it: those that have written must have closed it; those that have only opened it find at
/// their next commit that it is gone.
///
/// # Errors
/// `Locked` if sessions of other processes are open, or it is open by this one, and as [`share`].
pub fn unshare(uri: &str, options: Options, task: &Task) -> Result<()> {
    unshare_on(&|| open_folder(uri), Env::system(options.cpu_threads)?, uri, options, task)
}

fn open_folder(uri: &str) -> Result<Arc<dyn Disk>> {
    if is_bucket(uri) || is_in_memory(uri) {
        return Err(Error::invalid(format!(
            "{uri}: a store in a bucket is always shared, one in memory never; expected the folder of a store"
        )));
    }
    Ok(Arc::new(OsDisk::open(&folder_of(uri)?)?))
}

/// [`share`], on a disk.
///
/// # Errors
/// As [`share`].
pub fn share_on(open_disk: OpenDisk<'_>, env: Env, uri: &str, options: Options, task: &Task) -> Result<()> {
    let (disk, options) = (open_disk()?, Options { mode: Mode::Write, shared: false, ..options });
    if is_there(&*disk, names::ROOT)? {
        return tidy(&disk, uri, true);
    }
    let shortening = CheckpointOptions { task: task.clone(), ..CheckpointOptions::default() };
    let store = open_on(disk, env.clone(), uri, options.clone())?;
    let shortened = store.checkpoint(&shortening).and_then(|_| store.end_open_session());
    shortened.and(store.close())?;
    let disk = open_disk()?;
    let _lock = lock(&*disk)?;
    let storage = storage_on(&disk);
    let origin = read_format(&*storage, uri)?;
    let (log, opened) = FileLog::open(disk.clone(), options.log, OnLoss::Refuse)?;
    log.close()?;
    let opened = Opened { origin, ..opened };
    let (state, _) = recover::replay(&*storage, &opened)?;
    check_short(&opened, uri)?;
    drop(ObjectLog::create_from(storage, env, options.retry_micros, opened, state.entry)?);
    forget_single(&disk)
}

/// [`unshare`], on a disk.
///
/// # Errors
/// As [`unshare`].
pub fn unshare_on(open_disk: OpenDisk<'_>, env: Env, uri: &str, options: Options, task: &Task) -> Result<()> {
    let (disk, options) = (open_disk()?, Options { mode: Mode::Write, sync: SyncMode::Commit, ..options });
    if !is_there(&*disk, names::ROOT)? {
        if !is_there(&*disk, names::FORMAT)? {
            return Err(Error::not_found(format!("there is no store at {uri}")));
        }
        return tidy(&disk, uri, false);
    }
    let shortening = CheckpointOptions { task: task.clone(), ..CheckpointOptions::default() };
    let store = open_bucket(Arc::new(FileStorage::new(disk)), env.clone(), uri, options.clone())?;
    let shortened = store.checkpoint(&shortening);
    shortened.map(drop).and(store.close())?;
    let disk = open_disk()?;
    let _lock = lock(&*disk)?;
    let _root = disk.wait_lock(names::ROOT_LOCK)?;
    let storage = storage_on(&disk);
    let objects: Arc<dyn Storage> = storage.clone();
    let opened = ObjectLog::read_from(&objects, &env.pool)?;
    let (state, _) = recover::replay(&*storage, &opened)?;
    let open: Vec<String> = state.sessions.open.keys().map(ToString::to_string).collect();
    if !open.is_empty() {
        let what = format!(
            "{uri}: other processes may still write it, in sessions {}; close it there, or end the sessions of processes that \
             have died by a reclaim with `fence_idle` of 0",
            open.join(", ")
        );
        return Err(Error::new(ErrorKind::Locked, what));
    }
    check_short(&opened, uri)?;
    // What an earlier call that was cut off has left is not the store's log.
    forget_single(&disk)?;
    FileLog::create_from(disk.clone(), options.log, &opened)?.close()?;
    storage.put(names::FORMAT, &[format_text(&opened.origin).into()], WriteMode::Create)?;
    disk.remove(names::ROOT)?;
    disk.sync_dir("")?;
    forget_shared(&disk)
}

impl Store {
    /// Where one process writes, a session stays open until the next begins; beside others it would for good.
    fn end_open_session(&self) -> Result<()> {
        let sessions: Vec<SessionId> = self.state()?.sessions.open.keys().copied().collect();
        if sessions.is_empty() {
            return Ok(());
        }
        self.commit_effects(move |_| Ok(vec![Effect::FenceSessions { sessions: sessions.clone() }])).map(drop)
    }
}

fn lock(disk: &dyn Disk) -> Result<Box<dyn Guard>> {
    disk.lock(names::LOCK, &holder(std::process::id()))
}

fn storage_on(disk: &Arc<dyn Disk>) -> Arc<InlineStorage> {
    Arc::new(InlineStorage::new(Arc::new(FileStorage::new(disk.clone()))))
}

fn is_there(disk: &dyn Disk, name: &str) -> Result<bool> {
    Ok(disk.identity(name)?.is_some())
}

/// The entries after the checkpoint must fit where they go, and need nothing from before it.
fn check_short(opened: &Opened, uri: &str) -> Result<()> {
    let bytes: usize = opened.entries.iter().map(|entry| entry.payload.len()).sum();
    let behind = opened.base.is_none_or(|base| base.from > base.seq);
    match behind && bytes <= ENTRIES_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::conflict(format!("{uri} was written during the call; nothing was changed; try again"))),
    }
}

/// Removes what an earlier call has left in a folder that is of the wanted kind already. Only under the lock that is certain.
fn tidy(disk: &Arc<dyn Disk>, uri: &str, shared: bool) -> Result<()> {
    let _lock = lock(&**disk)?;
    match is_there(&**disk, names::ROOT)? {
        now if now != shared => Err(Error::conflict(format!("{uri} became the other kind during the call; try again"))),
        true => forget_single(disk),
        false => forget_shared(disk),
    }
}

/// Removes what only a store has that one process writes.
fn forget_single(disk: &Arc<dyn Disk>) -> Result<()> {
    let ours = |name: &str| names::parse_log_segment(name).is_some() || names::is_log_mark(name);
    forget(disk, names::FORMAT, ours)
}

/// Removes what only a store has that many processes write.
fn forget_shared(disk: &Arc<dyn Disk>) -> Result<()> {
    forget(disk, names::WITNESS, |name| names::parse_log_chunk(name).is_some())
}

/// Removes a file, and those of the log that are `ours`, by their names within its folder, whole or still being made.
fn forget(disk: &Arc<dyn Disk>, file: &str, ours: impl Fn(&str) -> bool) -> Result<()> {
    let storage = FileStorage::new(disk.clone());
    let is_ours = |name: &str| {
        let name = name.rsplit('/').next().unwrap_or_default();
        ours(name) || names::parse_temporary(name).is_some_and(&ours)
    };
    let listed = storage.list(names::LOG)?.into_iter().map(|object| object.name);
    let mut gone: Vec<String> = listed.filter(|name| is_ours(name)).collect();
    let of_log = !gone.is_empty();
    gone.push(file.to_owned());
    storage.delete_many(&gone).into_iter().collect::<Result<()>>()?;
    if of_log {
        disk.sync_dir(names::LOG)?;
    }
    disk.sync_dir("")
}
