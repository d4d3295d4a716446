//! How a shared log begins: it is created, opened, or continued after a loss was accepted.

use std::sync::Arc;

use bytes::Bytes;

use super::super::evidence::Evidence;
use super::super::origin::Origin;
use super::super::recovery::OnLoss;
use super::super::root::{Role, Root};
use super::super::{Base, Opened, evidence};
use super::moving::{self, Movers};
use super::place::RootPlace;
use super::read::LOOKS;
use super::read::read_from_place;
use super::{ObjectLog, RootState};
use crate::base::planted::{Bug, planted};
use crate::base::waiting::Exclusive;
use crate::base::{EntryId, Env, Error, Pool, Result};
use crate::storage::{Storage, Tag, WriteMode, names, put_patiently};

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
    pub fn read_from(storage: &Arc<dyn Storage>, pool: &Pool) -> Result<Opened> {
        let place = RootPlace::object(storage.clone());
        Ok(read_from_place(&place, &**storage, pool, None)?.2)
    }

    /// Creates the log of a new store in a cell on the server at `address`; `AlreadyExists` if there is one. Only [`ObjectLog::find`] opens
    /// it.
    pub fn create_in_cell(movers: &Movers<'_>, address: &str) -> Result<()> {
        let (storage, env) = (movers.storage.clone(), movers.env.clone());
        let root = Root::of(Origin { store: env.entropy.id()?, parent: None });
        let root = moving::in_new_cell(root, movers.cells, address, &env)?;
        Self::create_with(storage, env, movers.retry, root).map(drop)
    }

    fn create_with(storage: Arc<dyn Storage>, env: Env, retry: u64, mut root: Root) -> Result<Self> {
        root.stamp = env.entropy.next()?;
        let bytes = Bytes::from(root.encode()?);
        let put = put_patiently(&env, retry, || storage.put_if_match(names::ROOT, std::slice::from_ref(&bytes), None));
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
        let place = RootPlace::object(storage.clone());
        let log = Self::of(storage, place, env, retry, own, (root, tag));
        if !log.storage.is_remote() {
            log.note(&mut *log.tail.lock()?);
        }
        Ok(log)
    }

    fn of(
        storage: Arc<dyn Storage>,
        place: RootPlace,
        env: Env,
        retry: u64,
        own: u128,
        (root, tag): (Root, Tag),
    ) -> Self {
        let known = root.seq;
        let tail = RootState::new(root, tag, known, retry);
        let seen = tail.seen.clone();
        Self { storage, place, env, retry, own, tail: Exclusive::new("a call that waits for the log", tail), seen }
    }

    /// Opens a log that is an object; `NotFound` if there is none. If what lies beside its root shows later commits than it has, it is
    /// `Corrupt`, or continued as a store of its own if `loss` says so.
    pub fn open(storage: Arc<dyn Storage>, env: Env, retry: u64, loss: OnLoss) -> Result<(Self, Opened)> {
        let (root, tag, evidence) = evidence::look_around(&*storage)?;
        let place = RootPlace::object(storage.clone());
        Self::open_at(storage, place, env, retry, loss, (root, tag), &evidence)
    }

    /// The same, wherever the log is. A move that was cut off is gone on with if `write` says so.
    pub fn find(movers: &Movers<'_>, loss: OnLoss, write: bool) -> Result<(Self, Opened)> {
        let (storage, env) = (movers.storage.clone(), movers.env.clone());
        let mut looks = 0;
        loop {
            looks += 1;
            let (root, tag, evidence) = evidence::look_around(&*storage)?;
            let Role::InCell { address, begun, .. } = &root.role else {
                if let Some(given) = movers.given {
                    let given = movers.cells.told(given)?;
                    return Err(Error::invalid(format!(
                        "the log of the store is not at {given}, but with the store; open it without 'log', or move the log there \
                         with `drumlin move-log`"
                    )));
                }
                let place = RootPlace::object(storage.clone());
                return Self::open_at(storage, place, env, movers.retry, loss, (root, tag), &evidence);
            };
            if *begun
                && let (place, Some((last, its))) = movers.read_cell(&root)?
                && last.role != Role::Returned
            {
                if !planted(Bug::TrustCell) {
                    root.continues(&last)?;
                }
                return Self::open_at(storage, place, env, movers.retry, loss, (last, its), &evidence);
            }
            if !write || looks > LOOKS {
                return Err(Error::unavailable(format!(
                    "the log of the store is being moved to {address}, or back from there; try again, or have `drumlin move-log` finish it"
                )));
            }
            movers.go_on()?;
        }
    }

    /// Opens a log whose root, which is there, was read, with what lay beside it.
    fn open_at(
        storage: Arc<dyn Storage>,
        place: RootPlace,
        env: Env,
        retry: u64,
        loss: OnLoss,
        (mut root, mut tag): (Root, Tag),
        evidence: &Evidence,
    ) -> Result<(Self, Opened)> {
        root.role.check_here()?;
        let own = env.entropy.id()?;
        let mut accused = evidence.judge(&root);
        if accused.is_err()
            && let Some((newer, its)) = place.read(Some((&root, &tag)))?
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
            root.role.check()?;
            let point = root.point().ok_or(e)?;
            root.origin = Origin::fork(own, point);
            root.stamp = env.entropy.next()?;
            let row = place.row(&root, None)?;
            tag = put_patiently(&env, retry, || place.put(&row, &tag, &[]))?;
            place.publish(&root, &tag);
            // Given up with the commits that they show.
            storage.delete_many(&evidence.beyond(&root)).into_iter().collect::<Result<()>>()?;
        }
        let (root, tag, opened) = read_from_place(&place, &*storage, &env.pool, Some((root, tag)))?;
        let known = root.seq;
        let log = Self::of(storage, place, env, retry, own, (root, tag));
        if lossy {
            let mut tail = log.tail.lock()?;
            log.storage.put(names::WITNESS, &[log.witness(&tail.root)], WriteMode::Replace)?;
            tail.noted = known;
        }
        Ok((log, Opened { lossy, ..opened }))
    }

    /// Fails if the store is not written as others are.
    pub fn check_role(&self) -> Result<()> {
        self.seen.root.lock().role.check()
    }

    /// The id that the store gets if it has none yet.
    pub fn adopt(&mut self, store: u128) {
        if store != 0 {
            self.own = store;
        }
    }
}
