//! Opens and creates stores, and follows one that another process writes.

use std::collections::BTreeSet;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use super::background::Background;
use super::committer::Committer;
use super::feed::Feeds;
use super::handles::{Handle, Handles};
use super::pins::Pins;
use super::probe::probe;
use super::syncer::{self, Syncer};
use super::time::Times;
use super::trigger::Triggers;
use super::{Inner, Maintenance, Mode, Options, Store, Sync, checkpoint, handles, recover};
use crate::base::waiting::Exclusive;
use crate::base::{Env, Error, ErrorKind, Result, Seq, checksum};
use crate::block::{BlockReader, MissingBlock};
use crate::catalog::State;
use crate::log::{CommitLog, FileFollower, FileLog, ObjectLog, OnLoss, Opened, retry_while_moving};
use crate::storage::{
    BucketStorage, Disk, FileStorage, Guard, InlineStorage, MeteredStorage, OsDisk, SimDisk, Storage, WriteMode,
    is_bucket, names,
};

/// Version of the format as a whole. The parts have versions of their own.
const FORMAT_VERSION: u32 = 5;

impl Store {
    /// Opens the store at `uri`: a folder's path, `file://` and a path, `s3://bucket/prefix` (or `gs://`, `az://`) for one in a
    /// bucket, or `memory://` for one that lives in memory.
    ///
    /// ```
    /// use drumlin::{Store, Tables};
    ///
    /// let store = Store::open("memory://", Default::default())?;
    /// assert_eq!(store.tree().list("**")?.len(), 0);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no store and none is to be created, `Locked` if another process writes it, `Unsupported` if it is of another
    /// format, `Corrupt` if it is damaged, `InvalidArgument` if `uri` or an option makes no sense.
    pub fn open(uri: &str, options: Options) -> Result<Store> {
        let env = Env { warn: options.warn.clone(), ..Env::system(options.cpu_threads)? };
        if is_in_memory(uri) {
            return open_on(Arc::new(SimDisk::in_memory()), env, uri, options);
        }
        if is_bucket(uri) {
            let bucket = BucketStorage::open(uri, &options.bucket.0, options.io_threads)?;
            return open_bucket(Arc::new(bucket), env, uri, options);
        }
        let path = folder_of(uri)?;
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
                "{uri} was made for one process that writes; to share it, make a new store with that option and copy the tables"
            ))),
            (false, false) if options.shared && options.mode != Mode::Read => {
                check_foreign(&*disk, uri, options.mode)?;
                open_bucket(Arc::new(FileStorage::new(disk)), env, uri, options)
            }
            _ => {
                let settings = options.clone();
                match open_on(disk, env, uri, options) {
                    // Another thread of this process may have been first.
                    Err(e) if e.kind() == ErrorKind::Locked => match handles::join(folder, &settings)? {
                        Some(store) => Ok(store),
                        None => Err(handles::locked_here(folder, uri, e)),
                    },
                    store => store.inspect(|store| {
                        if !store.inner.read_only {
                            handles::note(folder, store);
                        }
                    }),
                }
            }
        }
    }

    /// Puts a store together from its parts.
    pub(super) fn start(env: Env, uri: &str, options: Options, parts: Parts) -> Result<Store> {
        let Parts { storage, log, state, catalog, lock, lent } = parts;
        let read_only = options.mode == Mode::Read;
        let process = std::process::id();
        let missing = if read_only || log.is_shared() { MissingBlock::Reclaimed } else { MissingBlock::Damage };
        let memtable_bytes = state.memtable_bytes();
        let tables_kept = state.open_tables_len();
        let syncer = match options.sync {
            Sync::Interval(interval) if !read_only => Some(Syncer::new(interval)),
            _ => None,
        };
        let times = Times::new(state.time, env.clock.now());
        let reader = BlockReader::new(storage.clone(), options.cache_bytes, missing).counting(env.metrics.clone());
        let triggers = Triggers::reporting_to(&env);
        let inner = Inner {
            uri: uri.to_owned(),
            times,
            watched: Mutex::default(),
            env,
            reader: Arc::new(reader),
            storage,
            log,
            read_only,
            state: RwLock::new(Arc::new(state)),
            committer: Committer::default(),
            feeds: Arc::new(Feeds::default()),
            triggers: Arc::new(triggers),
            pins: Arc::new(Pins::default()),
            session: Mutex::new(None),
            maintenance: Exclusive::new(
                "a checkpoint, reclaim or purge of this store",
                Maintenance { catalog, unmerged: BTreeSet::new() },
            ),
            background: Background::new(checkpoint::automatic),
            syncer,
            memtable_bytes: AtomicU64::new(memtable_bytes),
            tables_kept: AtomicUsize::new(tables_kept),
            catalog_damaged: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            handles: Handles::one(),
            process,
            lock: Mutex::new(lock),
            lent,
            options,
        };
        // Nothing has read the replayed states, so no moves need be kept.
        Arc::make_mut(&mut *inner.state.write()).forget_moves(None);
        let state = inner.state.read().clone();
        inner.hold_inline(&State::default(), &state);
        inner.publish(&State::default(), state.clone());
        let inner = Arc::new(inner);
        syncer::start(&inner)?;
        Ok(Store { handle: Some(Arc::new(Handle::new(inner.clone()))), inner, message: None })
    }

    /// Takes in what other processes have committed. Returns the last commit seen.
    ///
    /// # Errors
    /// `Unavailable` if the log cannot be read, `Corrupt` if it is damaged.
    pub fn refresh(&self) -> Result<Seq> {
        self.inner.check()?;
        // In the turn, nothing else changes the state.
        let _turn = self.inner.committer.turn()?;
        if let Some(news) = self.inner.log.refresh()? {
            self.take_in(news)?;
        }
        self.seq()
    }
}

impl Store {
    /// In a shared store: takes in what others have committed, so that what is written does not depend on anything that
    /// was changed before the call.
    pub(super) fn refresh_if_shared(&self) -> Result<()> {
        if self.inner.log()?.is_shared() {
            self.refresh()?;
        }
        Ok(())
    }
}

/// What a store is put together from.
pub(super) struct Parts {
    pub storage: Arc<InlineStorage>,
    pub log: Box<dyn CommitLog>,
    pub state: State,
    pub catalog: Option<recover::Catalog>,
    pub lock: Option<Box<dyn Guard>>,
    /// Whether the storage belongs to another owner, who keeps using it when the store is closed.
    pub lent: bool,
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
            Some(disk.lock(names::LOCK, &Inner::holder(std::process::id()))?)
        }
    };
    let (log, state, catalog): (Box<dyn CommitLog>, _, _) = match read_format(&*storage, uri) {
        Ok(()) if options.mode == Mode::Read => {
            let (opened, (state, _)) = retry_while_moving(|| {
                let opened = FileLog::read(&*disk)?;
                let replayed = recover::replay(&*storage, &opened)?;
                Ok((opened, replayed))
            })?;
            (Box::new(FileFollower::new(disk.clone(), &opened)), state, None)
        }
        Ok(()) => {
            let (log, opened) = FileLog::open(
                disk.clone(),
                options.log,
                if options.accept_loss { OnLoss::Accept } else { OnLoss::Refuse },
            )?;
            let (state, catalog) = recover::replay(&*storage, &opened)?;
            (Box::new(log), state, catalog)
        }
        Err(e) if e.kind() == ErrorKind::NotFound && options.mode == Mode::Create => {
            (Box::new(create(&disk, &*storage, uri, &options)?), State::default(), None)
        }
        Err(e) => return Err(e),
    };
    Store::start(env, uri, options, Parts { storage, log, state, catalog, lock, lent: false })
}

/// Opens the store in `bucket`, which many processes may write at a time; creates it if requested and there is none,
/// after checking that the bucket keeps its promises. `uri` is its name in messages.
///
/// # Errors
/// As [`Store::open`].
pub fn open_bucket(bucket: Arc<dyn Storage>, env: Env, uri: &str, options: Options) -> Result<Store> {
    if options.sync != Sync::Commit {
        return Err(Error::invalid("a store that many processes write makes each commit durable at once"));
    }
    let storage = Arc::new(InlineStorage::new(Arc::new(MeteredStorage::new(bucket, env.clone()))));
    let retry = options.retry_micros;
    let open = || ObjectLog::open(storage.clone(), env.clone(), retry);
    let (log, opened) = match open() {
        Err(e) if e.kind() == ErrorKind::NotFound && options.mode == Mode::Create => {
            probe(&storage, &env, retry)?;
            match ObjectLog::create(storage.clone(), env.clone(), retry) {
                Ok(log) => (log, Opened { base: None, entries: Vec::new() }),
                // Another process was first.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => open()?,
                Err(e) => return Err(e),
            }
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(Error::not_found(format!("{uri} holds no store")));
        }
        other => other?,
    };
    let (state, catalog) = match recover::replay(&*storage, &opened) {
        Ok(replayed) => replayed,
        // The log was cut while it was read.
        Err(_) => retry_while_moving(|| recover::replay(&*storage, &log.read()?))?,
    };
    log.knows(state.seq);
    Store::start(env, uri, options, Parts { storage, log: Box::new(log), state, catalog, lock: None, lent: false })
}

/// Whether a store lives in memory, where no other process reaches it.
pub(super) fn is_in_memory(uri: &str) -> bool {
    uri == "memory://"
}

/// The folder that `uri` names.
pub(super) fn folder_of(uri: &str) -> Result<&FilePath> {
    let path = match uri.split_once("://") {
        Some(("file", path)) => path,
        Some((scheme, _)) => {
            return Err(Error::invalid(format!(
                "'{scheme}://' is not known; expected a path, 'file://', 's3://', 'gs://', 'az://' or 'memory://'"
            )));
        }
        None => uri,
    };
    match path.is_empty() {
        true => Err(Error::invalid("the path of the store is empty")),
        false => Ok(FilePath::new(path)),
    }
}

pub(super) fn format_text() -> String {
    let text = format!("drumlin store, format {FORMAT_VERSION}");
    format!("{text}, checksum {:08x}\n", checksum(text.as_bytes()))
}

/// Checks that the folder is a store that this build can open; `NotFound` if it is not a store.
pub(super) fn read_format(storage: &dyn Storage, uri: &str) -> Result<()> {
    let bytes = storage.get(names::FORMAT).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::not_found(format!("{uri} holds no store")),
        _ => e,
    })?;
    if bytes == format_text().as_bytes() {
        return Ok(());
    }
    let corrupt = || Error::corrupt(format!("{uri}: the file '{}' is damaged", names::FORMAT));
    let text = std::str::from_utf8(&bytes).map_err(|_| corrupt())?;
    let (text, sum) = text.strip_suffix('\n').and_then(|t| t.rsplit_once(", checksum ")).ok_or_else(corrupt)?;
    let version = text.strip_prefix("drumlin store, format ").ok_or_else(corrupt)?;
    if sum != format!("{:08x}", checksum(text.as_bytes())) {
        return Err(corrupt());
    }
    Err(Error::unsupported(format!("{uri}: store format {version}; this build reads format {FORMAT_VERSION}")))
}

/// Checked before anything is written into a folder: it must be a store, or empty, or the remains of a store half made.
fn check_foreign(disk: &dyn Disk, uri: &str, mode: Mode) -> Result<()> {
    let entries = match disk.list("") {
        Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    if entries.iter().any(|entry| entry.name == names::FORMAT) {
        return Ok(());
    }
    if mode == Mode::Write {
        return Err(Error::not_found(format!("{uri} holds no store")));
    }
    let root_lock = format!("{}.lock", names::ROOT);
    let ours = [names::LOCK, names::LOG, names::PROBE, &root_lock];
    // The one file that makes it a store, half written.
    let half_made =
        |name: &str| names::parse_temporary(name).is_some_and(|file| [names::FORMAT, names::ROOT].contains(&file));
    match entries.iter().find(|entry| !ours.contains(&entry.name.as_str()) && !half_made(&entry.name)) {
        None => Ok(()),
        Some(entry) if [names::BLOCKS, names::CATALOG].contains(&entry.name.as_str()) => {
            Err(Error::corrupt(format!("{uri}: the file '{}' is missing", names::FORMAT)))
        }
        Some(entry) => Err(Error::invalid(format!("{uri} is not empty (it has '{}') and not a store", entry.name))),
    }
}

/// Makes a store: the log first, the file that makes it a store last.
fn create(disk: &Arc<dyn Disk>, storage: &dyn Storage, uri: &str, options: &Options) -> Result<FileLog> {
    let log_is_there =
        disk.list("")?.iter().any(|entry| entry.name == names::LOG) && !disk.list(names::LOG)?.is_empty();
    if log_is_there {
        match FileLog::read(&**disk) {
            Ok(opened) if opened.base.is_none() && opened.entries.is_empty() => {}
            // Only the beginning of a first segment.
            Err(_) if disk.list(names::LOG)?.iter().all(|entry| names::parse_temporary(&entry.name).is_some()) => {}
            _ => return Err(Error::corrupt(format!("{uri}: the file '{}' is missing", names::FORMAT))),
        }
    }
    let log = FileLog::create(disk.clone(), options.log)?;
    storage.put(names::FORMAT, &[Bytes::from(format_text())], WriteMode::Create)?;
    Ok(log)
}
