//! Opens and creates stores, and follows one that another process writes.

use std::sync::Arc;

use bytes::Bytes;

use super::format::{format_text, read_format};
use super::handles;
use super::probe::probe;
use super::uri::{folder_of, is_in_memory};
use crate::base::{Env, Error, ErrorKind, Result, waiting};
use crate::log::{CommitLog, FileFollower, FileLog, ObjectLog, OnLoss, Opened, Origin, Point, retry_while_moving};
use crate::storage::{
    BucketStorage, Disk, FileStorage, InlineStorage, LogCells, MeteredStorage, OsDisk, ServerCells, SimDisk, Storage,
    WriteMode, is_bucket, names,
};
use crate::store::handle::Contents;
use crate::store::open::hooks::HOOKS;
use crate::store::parts::{holder, recover};
use crate::store::{Mode, Options, Store, SyncMode};

impl Options {
    /// Opens the store at `uri` with them: see [`crate::Store::open_with`].
    ///
    /// # Errors
    /// As [`crate::Store::open_with`].
    pub fn open(self, uri: impl AsRef<std::path::Path>) -> Result<Store> {
        Store::open_with(uri, self)
    }
}

impl Store {
    /// Opens the store at `uri`: a folder's path, `file://` and a path, `s3://bucket/prefix` (or `gs://`, `az://`) for one in a
    /// bucket, or `memory://` for one that lives in memory. It is made if it is not there. For anything else than the default
    /// [`Options`] see [`Store::open_with`].
    ///
    /// ```
    /// use drumlin::prelude::*;
    ///
    /// let folder = std::env::temp_dir().join(format!("drumlin-open-{}", std::process::id()));
    /// let store = Store::open(&folder)?;
    /// assert_eq!(store.tree().list("**")?.len(), 0);
    /// # drop(store);
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open_with`].
    pub fn open(uri: impl AsRef<std::path::Path>) -> Result<Store> {
        Self::open_with(uri, Options::default())
    }

    /// A new store that lives in memory, as long as a handle on it does.
    ///
    /// # Errors
    /// `Unavailable` if the system gives it no threads.
    pub fn memory() -> Result<Store> {
        Self::open("memory://")
    }

    /// Opens the store at `uri`, as [`Store::open`] does, with settings.
    ///
    /// ```
    /// use drumlin::prelude::*;
    ///
    /// let options = Options { cpu_threads: 1, ..Options::default() };
    /// let store = Store::open_with("memory://", options)?;
    /// assert!(store.tables("**")?.is_empty());
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no store and none is to be created, `Locked` if another process writes it, `Unsupported` if it is of another
    /// format, `Corrupt` if it is damaged, `InvalidArgument` if `uri` or an option makes no sense.
    pub fn open_with(uri: impl AsRef<std::path::Path>, options: Options) -> Result<Store> {
        let uri = uri.as_ref();
        let uri = uri.to_str().ok_or_else(|| Error::invalid(format!("{} is not a path in Unicode", uri.display())))?;
        let env = Env { warn: options.warn.clone(), ..Env::system(options.cpu_threads)? };
        if is_in_memory(uri) && options.log_at.is_some() {
            return Err(Error::invalid("a store in memory keeps its log itself; open it without 'log'"));
        }
        if is_in_memory(uri) {
            return open_on(Arc::new(SimDisk::in_memory()), env, uri, options);
        }
        if is_bucket(uri) {
            let bucket = BucketStorage::open(uri, &options.bucket.0, options.io_threads)?;
            return open_bucket(Arc::new(bucket), env, uri, options);
        }
        let path = &folder_of(uri)?;
        let disk = match options.mode {
            Mode::Create => OsDisk::create(path)?,
            Mode::Write | Mode::Read => OsDisk::open(path)?,
        };
        let folder = disk.id()?;
        if let Some(store) = handles::join(folder, &options)? {
            return Ok(store);
        }
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let names: Vec<String> = match disk.list("") {
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            other => other?.into_iter().map(|entry| entry.name).collect(),
        };
        let has = |name: &str| names.iter().any(|there| there == name);
        match (has(names::ROOT), has(names::FORMAT)) {
            (true, _) => open_bucket(Arc::new(FileStorage::new(disk)), env, uri, options),
            (false, true) if options.shared && options.mode != Mode::Read => Err(Error::invalid(format!(
                "{uri} was created for a single writing process; make it shared with `drumlin share {uri}`"
            ))),
            (false, false) if options.shared && options.mode != Mode::Read => {
                check_foreign(&*disk, uri, options.mode)?;
                open_bucket(Arc::new(FileStorage::new(disk)), env, uri, options)
            }
            _ if options.log_at.is_some() && (has(names::FORMAT) || options.mode == Mode::Create) => {
                Err(Error::invalid(format!(
                    "{uri}: a server keeps the log only of a store that many processes write; open it with 'shared' if it is new, or \
                     share it first with `drumlin share {uri}`"
                )))
            }
            _ => {
                // Where another thread opens or closes it, there is a handle to join, or a lock to take, once that is done.
                let begun = || handles::begin(folder, &options);
                let begun = (options.mode != Mode::Read).then(|| waiting::poll(begun)).transpose()?;
                if let Some((_, Some(store))) = begun {
                    return Ok(store);
                }
                match open_on(disk, env, uri, options) {
                    Err(e) if e.kind() == ErrorKind::Locked => Err(handles::locked_here(folder, uri, e)),
                    store => store.inspect(|store| {
                        if !store.setting().is_read_only() {
                            handles::note(folder, store);
                        }
                    }),
                }
            }
        }
    }

    /// Closes the store cleanly: all later calls fail, and the next open needs no recovery. Open scans may still be read to
    /// their end. If this process has opened it more than once, it stays open for the other handles.
    ///
    /// # Errors
    /// `InDoubt` if the last commits, or that the log has ended, could not be made durable.
    pub fn close(&self) -> Result<()> {
        if !self.close_handle() {
            return Ok(());
        }
        // Before the log is closed, so that triggers are not called again for the same commits.
        self.registry().stop();
        let open = !self.setting().is_read_only() && self.setting().check().is_ok();
        let own = self.own();
        let end = || own.end_own_presences().and(own.note_triggers()).and(own.end_session());
        let noted = if open { end() } else { Ok(()) };
        self.close_parts().and(noted)
    }
}

/// Opens the store at the root of `disk`, with clock, randomness and threads from `env`. `uri` is its name in
/// messages.
///
/// # Errors
/// As [`Store::open`].
pub fn open_on(disk: Arc<dyn Disk>, env: Env, uri: &str, options: Options) -> Result<Store> {
    let files = MeteredStorage::new(Arc::new(FileStorage::new(disk.clone())), env.clone());
    let storage = Arc::new(InlineStorage::new(Arc::new(files)));
    let lock = match options.mode {
        Mode::Read => None,
        // Not before the folder is known to be a store, or fit to become one.
        _ => {
            check_foreign(&*disk, uri, options.mode)?;
            Some(disk.lock(names::LOCK, &holder(std::process::id()))?)
        }
    };
    if lock.is_some() && disk.identity(names::ROOT)?.is_some() {
        // It became shared while this waited for the lock, or looked at the folder.
        drop(lock);
        return open_bucket(Arc::new(FileStorage::new(disk)), env, uri, options);
    }
    let mut lossy = false;
    let (log, state, catalog): (Box<dyn CommitLog>, _, _) = match read_format(&*storage, uri) {
        Ok(origin) if options.mode == Mode::Read => {
            let (opened, (state, _)) = retry_while_moving(|| {
                let opened = Opened { origin, ..FileLog::read(&*disk).map_err(|e| log_lost(uri, e))? };
                let replayed = recover::replay(&*storage, &opened)?;
                Ok((opened, replayed))
            })?;
            (Box::new(FileFollower::new(disk.clone(), &opened)), state, None)
        }
        Ok(origin) => {
            let (log, opened) =
                FileLog::open(disk.clone(), options.log, on_loss(&options)).map_err(|e| log_lost(uri, e))?;
            let (mut state, catalog) = recover::replay(&*storage, &Opened { origin, ..opened })?;
            lossy = opened.lossy;
            if lossy {
                let point = Point { store: state.holds.store, seq: state.seq, entry: state.entry };
                let forked = Origin::fork(env.entropy.id()?, point);
                storage.put(names::FORMAT, &[format_text(&forked).into()], WriteMode::Replace)?;
                state.holds.store = forked.store;
            }
            (Box::new(log), state, catalog)
        }
        Err(e) if e.kind() == ErrorKind::NotFound && options.mode == Mode::Create => {
            let origin = Origin { store: env.entropy.id()?, parent: None };
            let log = create(&disk, &*storage, uri, &options, &origin)?;
            (Box::new(log), recover::replay(&*storage, &Opened { origin, ..Opened::default() })?.0, None)
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            check_foreign(&*disk, uri, options.mode)?;
            return Err(e);
        }
        Err(e) => return Err(e),
    };
    let store = Store::start(env, uri, options, Contents { storage, log, state, catalog, lock, lent: false }, HOOKS)?;
    if lossy {
        store.pass_over_lost()?;
    }
    Ok(store)
}

/// The error if the log of a folder that is a store cannot be read.
fn log_lost(uri: &str, e: Error) -> Error {
    match e.kind() {
        ErrorKind::NotFound => lost(uri, names::LOG, names::FORMAT),
        _ => e,
    }
}

fn on_loss(options: &Options) -> OnLoss {
    if options.accept_loss { OnLoss::Accept } else { OnLoss::Refuse }
}

/// Opens the store in `bucket`, which many processes may write at a time; creates it if requested and there is none,
/// after checking that the bucket keeps its promises. `uri` is its name in messages.
///
/// # Errors
/// As [`Store::open`].
pub fn open_bucket(bucket: Arc<dyn Storage>, env: Env, uri: &str, options: Options) -> Result<Store> {
    let cells = ServerCells(env.clone());
    open_bucket_with(bucket, &cells, env, uri, options)
}

/// [`open_bucket`], where `cells` reaches the servers that may have its log.
///
/// # Errors
/// As [`Store::open`].
pub fn open_bucket_with(
    bucket: Arc<dyn Storage>,
    cells: &dyn LogCells,
    env: Env,
    uri: &str,
    options: Options,
) -> Result<Store> {
    if options.sync != SyncMode::Commit {
        return Err(Error::invalid(
            "a store that many processes write makes each commit durable at once; use sync 'commit'",
        ));
    }
    let storage = Arc::new(InlineStorage::new(Arc::new(MeteredStorage::new(bucket, env.clone()))));
    let retry = options.retry_micros;
    let loss = if options.mode == Mode::Read { OnLoss::Refuse } else { on_loss(&options) };
    let objects: Arc<dyn Storage> = storage.clone();
    let movers = options.movers(&objects, cells, &env);
    let open = || ObjectLog::find(&movers, loss, options.mode != Mode::Read);
    let (mut log, opened) = match open() {
        Err(e) if e.kind() == ErrorKind::NotFound && options.mode == Mode::Create => {
            check_unused(&*storage, uri)?;
            probe(&storage, &env, retry)?;
            let created = match movers.given {
                Some(address) => ObjectLog::create_in_cell(&movers, address).map(|()| None),
                None => ObjectLog::create(storage.clone(), env.clone(), retry).map(Some),
            };
            match created {
                Ok(Some(log)) => {
                    let origin = Origin { store: log.store(), parent: None };
                    (log, Opened { origin, ..Opened::default() })
                }
                Ok(None) => open()?,
                // Another process was first.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => open()?,
                Err(e) => return Err(e),
            }
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            check_remains(&storage.top()?, names::ROOT, uri)?;
            return Err(Error::not_found(format!("there is no store at {uri}")));
        }
        other => other?,
    };
    if options.mode != Mode::Read {
        log.check_role().map_err(|e| e.context(uri))?;
    }
    let (state, catalog) = match recover::replay(&*storage, &opened) {
        Ok(replayed) => replayed,
        // The log was cut while it was read.
        Err(_) => retry_while_moving(|| recover::replay(&*storage, &log.read()?))?,
    };
    log.knows(state.seq);
    log.adopt(state.holds.store);
    let contents = Contents { storage, log: Box::new(log), state, catalog, lock: None, lent: false };
    let store = Store::start(env, uri, options, contents, HOOKS)?;
    if opened.lossy {
        store.pass_over_lost()?;
    }
    Ok(store)
}

/// Fails if what lies there is what is left of a store whose object `missing`, from which all else is reached, is gone.
fn check_remains(top: &[String], missing: &str, uri: &str) -> Result<()> {
    let ours = [names::BLOCKS, names::CATALOG, names::WITNESS];
    match top.iter().find(|name| ours.contains(&name.as_str())) {
        None => Ok(()),
        Some(there) => Err(lost(uri, missing, there)),
    }
}

fn lost(uri: &str, missing: &str, there: &str) -> Error {
    Error::corrupt(format!(
        "{uri}: '{missing}' is missing, but there is '{there}' of a store; restore '{missing}', or copy what can be \
         read with `drumlin salvage` to another place"
    ))
}

/// Checked before a store is made where many processes write it: nothing may lie there but what a trial of the bucket has left.
pub(in crate::store) fn check_unused(storage: &dyn Storage, uri: &str) -> Result<()> {
    let top = storage.top()?;
    check_remains(&top, names::ROOT, uri)?;
    let half_made = |name: &str| names::parse_temporary(name) == Some(names::ROOT);
    match top.iter().find(|name| ![names::PROBE, names::ROOT_LOCK].contains(&name.as_str()) && !half_made(name)) {
        Some(name) if name == names::LOG => Err(lost(uri, names::ROOT, name)),
        // Another process was first.
        Some(name) if name == names::ROOT => Ok(()),
        Some(name) => {
            Err(Error::invalid(format!("{uri} is not empty (it has '{name}') and is not a store; use another place")))
        }
        None => Ok(()),
    }
}

/// Checked before anything is written into a folder: it must be a store, or empty, or the remains of a store half made.
fn check_foreign(disk: &dyn Disk, uri: &str, mode: Mode) -> Result<()> {
    let entries = match disk.list("") {
        Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    if has(names::FORMAT) || has(names::ROOT) {
        return Ok(());
    }
    let missing = if has(names::ROOT_LOCK) || has(names::WITNESS) { names::ROOT } else { names::FORMAT };
    let top: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    check_remains(&top, missing, uri)?;
    if mode != Mode::Create {
        if has(names::LOG) {
            check_log(disk, uri)?;
        }
        return Err(Error::not_found(format!("there is no store at {uri}")));
    }
    let ours = [names::LOCK, names::LOG, names::PROBE, names::ROOT_LOCK];
    // The one file that makes it a store, half written.
    let half_made =
        |name: &str| names::parse_temporary(name).is_some_and(|file| [names::FORMAT, names::ROOT].contains(&file));
    match entries.iter().find(|entry| !ours.contains(&entry.name.as_str()) && !half_made(&entry.name)) {
        None => Ok(()),
        Some(entry) => Err(Error::invalid(format!(
            "{uri} is not empty (it has '{}') and is not a store; use another place",
            entry.name
        ))),
    }
}

/// Fails if a log without a file that says what the folder is holds more than what a store half made has.
fn check_log(disk: &dyn Disk, uri: &str) -> Result<()> {
    let there = disk.list(names::LOG)?;
    if there.is_empty() {
        return Ok(());
    }
    match FileLog::read(disk) {
        Ok(opened) if opened.base.is_none() && opened.entries.is_empty() => Ok(()),
        // Only the beginning of a first segment.
        Err(_) if there.iter().all(|entry| names::parse_temporary(&entry.name).is_some()) => Ok(()),
        _ => Err(lost(uri, names::FORMAT, names::LOG)),
    }
}

/// Makes a store: the log first, the file that makes it a store last.
fn create(
    disk: &Arc<dyn Disk>,
    storage: &dyn Storage,
    uri: &str,
    options: &Options,
    origin: &Origin,
) -> Result<FileLog> {
    if disk.list("")?.iter().any(|entry| entry.name == names::LOG) {
        check_log(&**disk, uri)?;
    }
    let log = FileLog::create(disk.clone(), options.log)?;
    storage.put(names::FORMAT, &[Bytes::from(format_text(origin))], WriteMode::Create)?;
    Ok(log)
}
