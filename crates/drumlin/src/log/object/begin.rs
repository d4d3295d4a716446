//! How a shared log begins: it is created, opened, or continued after a loss was accepted.

use std::sync::Arc;

use bytes::Bytes;

use super::super::object_read::{read_all, read_root};
use super::super::origin::Origin;
use super::super::recovery::OnLoss;
use super::super::root::Root;
use super::super::{Base, Opened, evidence};
use super::{ObjectLog, RootState};
use crate::base::waiting::Exclusive;
use crate::base::{EntryId, Env, Error, Pool, Result};
use crate::storage::{Storage, Tag, WriteMode, names, put_if_match_patiently};

impl ObjectLog {
    /// Creates the log of a new store; `AlreadyExists` if there is one. A commit waits for the bucket for `retry`
    /// microseconds.
    pub fn create(storage: Arc<dyn Storage>, env: Env, retry: u64) -> Result<Self> {
        let origin = Origin { store: env.entropy.id()?, parent: None };
        Self::create_with(storage, env, retry, Root::of(origin))
    }

    /// Creates the log of a new store, as `origin` says, that begins with the catalog snapshot `base`, whose last entry is `last`.
    pub fn create_behind(
        storage: Arc<dyn Storage>,
        env: Env,
        retry: u64,
        (base, last): (Base, EntryId),
        origin: Origin,
    ) -> Result<Self> {
        Self::create_from(storage, env, retry, Opened { base: Some(base), origin, ..Opened::default() }, last)
    }

    /// Creates the log of a store that had another one, with what `opened` has of that; `last` is its last entry.
    pub fn create_from(storage: Arc<dyn Storage>, env: Env, retry: u64, opened: Opened, last: EntryId) -> Result<Self> {
        Self::create_with(storage, env, retry, Root::continuing(opened, last)?)
    }

    /// What a log has, without opening it for writing.
    pub fn read_from(storage: &dyn Storage, pool: &Pool) -> Result<Opened> {
        Ok(read_all(storage, pool, None)?.2)
    }

    fn create_with(storage: Arc<dyn Storage>, env: Env, retry: u64, mut root: Root) -> Result<Self> {
        root.stamp = env.entropy.next()?;
        let bytes = Bytes::from(root.encode()?);
        let put = put_if_match_patiently(&*storage, &env, retry, names::ROOT, std::slice::from_ref(&bytes), None);
        let tag = match put {
            Ok(tag) => tag,
            Err(e) => match storage.get_tagged(names::ROOT, None) {
                // An earlier try was done.
                Ok(Some((there, tag))) if there == bytes => tag,
                Ok(_) => return Err(Error::already_exists(format!("{} exists", names::ROOT))),
                Err(_) => return Err(e),
            },
        };
        let own = root.origin.store;
        let log = Self::of(storage, env, retry, own, (root, tag));
        if !log.storage.is_remote() {
            log.note(&mut *log.tail.lock()?);
        }
        Ok(log)
    }

    fn of(storage: Arc<dyn Storage>, env: Env, retry: u64, own: u128, (root, tag): (Root, Tag)) -> Self {
        let known = root.seq;
        let tail = RootState::new(root, tag, known, retry);
        let seen = tail.seen.clone();
        Self { storage, env, retry, own, tail: Exclusive::new("a call that waits for the log", tail), seen }
    }

    /// Opens a log; `NotFound` if there is none. If what lies beside its root shows later commits than it has, it is `Corrupt`, or
    /// continued as a store of its own if `loss` says so.
    pub fn open(storage: Arc<dyn Storage>, env: Env, retry: u64, loss: OnLoss) -> Result<(Self, Opened)> {
        let (mut root, mut tag, evidence) = evidence::look_around(&*storage)?;
        let own = env.entropy.id()?;
        let mut accused = evidence.judge(&root);
        if accused.is_err()
            && let Some((newer, its)) = read_root(&*storage, Some(&tag))?
        {
            // It was replaced while the rest was read.
            accused = evidence.judge(&newer);
            (root, tag) = (newer, its);
        }
        let lossy = accused.is_err();
        if let Err(e) = accused {
            if loss == OnLoss::Refuse {
                return Err(e);
            }
            let point = root.point().ok_or(e)?;
            root.origin = Origin::fork(own, point);
            root.stamp = env.entropy.next()?;
            let bytes = [Bytes::from(root.encode()?)];
            tag = put_if_match_patiently(&*storage, &env, retry, names::ROOT, &bytes, Some(&tag))?;
            // Given up with the commits that they show.
            storage.delete_many(&evidence.beyond(&root)).into_iter().collect::<Result<()>>()?;
        }
        let (root, tag, opened) = read_all(&*storage, &env.pool, Some((root, tag)))?;
        let known = root.seq;
        let log = Self::of(storage, env, retry, own, (root, tag));
        if lossy {
            let mut tail = log.tail.lock()?;
            log.storage.put(names::WITNESS, &[log.witness(&tail.root)], WriteMode::Replace)?;
            tail.noted = known;
        }
        Ok((log, Opened { lossy, ..opened }))
    }

    /// The id that the store gets if it has none yet.
    pub fn adopt(&mut self, store: u128) {
        if store != 0 {
            self.own = store;
        }
    }
}
