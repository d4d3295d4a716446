//! Where a store is that is replicated, and its log, which is read without opening the store.

use std::sync::Arc;

use crate::base::{EntryId, Env, Error, ErrorKind, Result, Seq};
use crate::log::{
    CommitLog, FileFollower, FileLog, Movers, News, ObjectLog, OnLoss, Opened, Origin, Point, ReplicaLog, Role,
    retry_while_moving,
};
use crate::storage::{
    BucketStorage, Disk, FileStorage, InlineStorage, MeteredStorage, OsDisk, ServerCells, Storage, is_bucket, names,
};
use crate::store::Options;
use crate::store::open::format::read_format;
use crate::store::open::uri::{folder_of, is_in_memory};

/// Where a store lies.
#[derive(Clone)]
pub enum StorePlace {
    /// In a folder of this disk.
    Folder(Arc<dyn Disk>),
    /// In a bucket.
    Bucket(Arc<dyn Storage>),
}

impl StorePlace {
    /// The place that `uri` names; if `create`, a folder is made that is not there.
    pub fn open(uri: &str, options: &Options, create: bool) -> Result<Self> {
        if is_in_memory(uri) {
            return Err(Error::invalid(format!(
                "{uri}: no other process can open a store in memory; use a folder or a bucket"
            )));
        }
        if is_bucket(uri) {
            return Ok(Self::Bucket(Arc::new(BucketStorage::open(uri, &options.bucket.0, options.io_threads)?)));
        }
        let folder = folder_of(uri)?;
        let disk = if create { OsDisk::create(&folder)? } else { OsDisk::open(&folder)? };
        Ok(Self::Folder(Arc::new(disk)))
    }

    /// Its objects, as they are.
    pub fn objects(&self) -> Arc<dyn Storage> {
        match self {
            Self::Folder(disk) => Arc::new(FileStorage::new(disk.clone())),
            Self::Bucket(bucket) => bucket.clone(),
        }
    }

    /// Its objects, with blocks that are not on storage, and counted.
    pub fn storage(&self, env: &Env) -> Arc<InlineStorage> {
        Arc::new(InlineStorage::new(Arc::new(MeteredStorage::new(self.objects(), env.clone()))))
    }

    /// The disk, if it is a store that one process writes.
    pub fn single(&self) -> Result<Option<&Arc<dyn Disk>>> {
        match self {
            Self::Folder(disk) if disk.identity(names::ROOT)?.is_none() => Ok(Some(disk)),
            _ => Ok(None),
        }
    }
}

/// The log of a store that is read, and the store's objects.
pub(super) struct SourceStore {
    pub uri: String,
    pub storage: Arc<InlineStorage>,
    place: StorePlace,
    env: Env,
    log: Box<dyn CommitLog>,
    /// What it held when it was opened.
    opened: Option<Opened>,
    /// Which history it is.
    pub origin: Origin,
}

impl SourceStore {
    /// Opens it; changes nothing there.
    pub fn open(place: StorePlace, env: &Env, uri: &str, retry: u64) -> Result<Self> {
        let storage = place.storage(env);
        let missing = |e: Error| match e.kind() {
            ErrorKind::NotFound => Error::not_found(format!("there is no store at {uri}")),
            _ => e,
        };
        let (log, opened): (Box<dyn CommitLog>, Opened) = match place.single()? {
            Some(disk) => {
                let opened = read_single(disk, &*storage, uri)?;
                (Box::new(FileFollower::new(disk.clone(), &opened)), opened)
            }
            None => {
                let (objects, cells): (Arc<dyn Storage>, _) = (storage.clone(), ServerCells(env.clone()));
                let movers = Movers { storage: &objects, cells: &cells, given: None, env, retry };
                let (log, opened) = ObjectLog::find(&movers, OnLoss::Refuse, false).map_err(missing)?;
                (Box::new(log), opened)
            }
        };
        let origin = opened.origin;
        if origin.store == 0 {
            return Err(Error::unsupported(format!(
                "{uri}: the store was made by an early build and has no id yet; open it for writing with this one and commit once"
            )));
        }
        Ok(Self { uri: uri.to_owned(), storage, place, env: env.clone(), log, opened: Some(opened), origin })
    }

    /// Everything that its log holds now.
    pub fn whole(&mut self) -> Result<Opened> {
        if let Some(opened) = self.opened.take() {
            return Ok(opened);
        }
        let opened = match self.place.single()? {
            Some(disk) => read_single(disk, &*self.storage, &self.uri)?,
            None => self.log.read()?,
        };
        self.check(&opened)?;
        Ok(opened)
    }

    /// What follows the commit `last`, if anything. Fails if that is not a commit of this history, as far as can be seen.
    pub fn after(&mut self, last: Seq, entry: EntryId) -> Result<Option<News>> {
        // What was read on opening may already have it.
        if let Some(mut opened) = self.opened.take() {
            if opened.last() < last {
                // Another process may have brought over since what came after that.
                opened = self.whole()?;
            }
            let newest = opened.last();
            if newest < last {
                return Err(behind(&self.uri, newest, last));
            }
            let there = opened.entries.iter().find(|there| there.seq == last);
            if last > Seq(0) && there.is_some_and(|there| there.id != entry) {
                return Err(another(&self.uri, last));
            }
            if newest == last {
                self.log.knows(last);
            } else {
                let reaches = opened.base.is_none_or(|base| base.reaches(last));
                return Ok(Some(match reaches {
                    true => News::Entries(opened.entries.into_iter().filter(|entry| entry.seq > last).collect()),
                    false => News::All(opened),
                }));
            }
        }
        match self.log.refresh()? {
            Some(News::Entries(entries)) => {
                let new: Vec<_> = entries.into_iter().filter(|entry| entry.seq > last).collect();
                Ok((!new.is_empty()).then_some(News::Entries(new)))
            }
            None => Ok(None),
            Some(News::All(opened) | News::Unproven(opened)) => {
                // Those of a log in files do not say which store it is.
                let origin = match self.place.single()? {
                    Some(_) => read_format(&*self.storage, &self.uri)?,
                    None => opened.origin,
                };
                let opened = Opened { origin, ..opened };
                self.check(&opened)?;
                Ok(Some(News::All(opened)))
            }
        }
    }

    /// The next [`SourceStore::after`] returns again what follows `last`.
    pub fn knows(&self, last: Seq) {
        self.log.knows(last);
    }

    /// Whether one process writes it.
    pub fn is_single(&self) -> Result<bool> {
        Ok(self.place.single()?.is_some())
    }

    /// Fails if its last commit is not the one at `point`. It has a root, and is not written any more.
    pub fn check_ends_with(&self, point: Option<Point>, retry: u64) -> Result<()> {
        let there = ReplicaLog::open(self.storage.clone(), self.env.clone(), retry)?.point();
        match (there, point) {
            (Some(there), Some(point)) if there.seq < point.seq => Err(behind(&self.uri, there.seq, point.seq)),
            (Some(there), Some(point)) if there != point => Err(another(&self.uri, point.seq)),
            _ => Ok(()),
        }
    }

    /// The role of its root; `None` where one process writes.
    pub fn role(&self, retry: u64) -> Result<Option<Role>> {
        match self.place.single()? {
            Some(_) => Ok(None),
            None => Ok(Some(ReplicaLog::open(self.storage.clone(), self.env.clone(), retry)?.role().clone())),
        }
    }

    fn check(&self, opened: &Opened) -> Result<()> {
        match opened.origin.store == self.origin.store {
            true => Ok(()),
            false => Err(Error::conflict(format!("{}: another store lies there now", self.uri))),
        }
    }
}

/// What the log of a store holds that one process writes, maybe at this moment.
fn read_single(disk: &Arc<dyn Disk>, storage: &dyn Storage, uri: &str) -> Result<Opened> {
    let origin = read_format(storage, uri)?;
    let opened = retry_while_moving(|| FileLog::read(&**disk))?;
    Ok(Opened { origin, ..opened })
}

/// The source has gone back.
pub(super) fn behind(uri: &str, seq: Seq, have: Seq) -> Error {
    let what = format!(
        "{uri}: it ends with commit {seq}, but commit {have} was brought over before; it was put back to an older state. Promote the \
         replica with 'lost', or make another one"
    );
    Error::other_history(ErrorKind::Corrupt, what)
}

/// The source has another history.
pub(super) fn another(uri: &str, seq: Seq) -> Error {
    let what = format!(
        "{uri}: its commit {seq} is not the one that was brought over before; it was put back to an older state, or lost what was not \
         synced. Promote the replica with 'lost', or make another one"
    );
    Error::other_history(ErrorKind::Corrupt, what)
}
