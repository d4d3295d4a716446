//! Following a table, and its followers: consumers of its changes that go on where they were, over restarts and from process to process.
//!
//! The place of a follower is part of the store, and versions that it has not read are kept. One consumer at a time moves it on: each that takes
//! it up begins an epoch, and what one of an earlier epoch acknowledges is refused. So no clock and no beat decides who it is.

use std::time::Duration;

use super::begin::{FollowFrom, begin};
use super::place::FeedPlace;
use super::rows::RowFeed;
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Error, Result, TableId};
use crate::catalog::{Effect, Follower, Path, State};
use crate::filter::Filter;
use crate::store::change::versions::check_name;
use crate::store::read::resolve::table_at;
use crate::store::{Store, Table};

/// How a table is followed.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// Only rows for which this is true, before or after they were changed. Columns are meant that have these names at first, whatever they
    /// are called later. Default: all.
    pub filter: Option<Filter>,
    /// The name of a follower. The table keeps the place of each: where it is known, the feed goes on there, whatever it is asked to begin
    /// with, and no longer does a consumer that took it up before. [`RowFeed::acknowledge`] moves it on. Default: none.
    pub follower: Option<String>,
    /// How long versions that a follower has not read are kept for it, whatever the retention says, after they were superseded; longer if it
    /// says so. Default: 7 days.
    pub keep: Duration,
    /// Stops it. Default: nothing does.
    pub cancel: Cancel,
}

impl Default for FollowOptions {
    fn default() -> Self {
        let keep = Duration::from_secs(7 * 24 * 3_600);
        Self { filter: None, follower: None, keep, cancel: Cancel::default() }
    }
}

impl Table {
    /// The rows that commits change in this table from some point on: what each inserted, updated and deleted, in order. As long as the
    /// versions since then are listed, a feed goes on where it was, also after checkpoints and in other processes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{FollowFrom, Tables};
    /// # let store = drumlin::Store::memory()?;
    /// # let rows = |n: Vec<i64>| RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(n)) as ArrayRef)]).unwrap();
    /// store.write("t", rows(vec![1, 2, 3]), &Default::default())?;
    /// let mut feed = store.table("t").follow(&FollowFrom::Now, &Default::default())?;
    /// store.table("t").delete("n = 2", &Default::default())?;
    /// let changes = feed.next(None)?.unwrap();
    /// assert_eq!((changes.rows.num_rows(), changes.changes.value(0)), (1, "delete"));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such table or version; `InvalidArgument` in a transaction, or if the filter means nothing.
    pub fn follow(&self, since: &FollowFrom, options: &FollowOptions) -> Result<RowFeed> {
        let store = self.place.in_store("following a table")?.clone();
        let path = Path::new(self.path())?;
        let state = store.state()?;
        let table = table_at(&state, &path)?;
        let schema = table.schema().ok_or_else(|| Error::not_found(format!("'{path}' has no version")))?;
        let filter = options.filter.as_ref().map(|filter| schema.filter_by_ids(filter)).transpose();
        let filter = filter.map_err(|e| e.context(format!("'{path}'")))?;
        let (place, follower) = match &options.follower {
            None => (begin(&state, &table, &path, since)?, None),
            Some(name) => {
                let (place, epoch) = store.take_up(&path, name, since, options.keep)?;
                (place, Some((name.clone(), epoch)))
            }
        };
        let cancel = options.cancel.clone();
        Ok(RowFeed::new(store, path, filter, cancel, place, follower))
    }
}

/// A follower of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowerInfo {
    /// Its name.
    pub name: String,
    /// Up to where it is done.
    pub place: FeedPlace,
    /// How long versions that it has not read are kept for it.
    pub keep: Duration,
}

impl Table {
    /// Its followers, by name. See [`crate::FollowOptions::follower`].
    ///
    /// # Errors
    /// `NotFound` if the table does not exist; `InvalidArgument` if it is one of a transaction.
    pub fn followers(&self) -> Result<Vec<FollowerInfo>> {
        let state = self.place.in_store("listing followers")?.state()?;
        let table = table_at(&state, &Path::new(self.path())?)?;
        let info = |(name, follower): (&String, &Follower)| FollowerInfo {
            name: name.clone(),
            place: place_of(table.id, follower),
            keep: Duration::from_micros(follower.keep_micros),
        };
        Ok(state.followers.of(table.id).map(info).collect())
    }

    /// Removes a follower: nothing is kept for it any more, and what its consumer acknowledges is refused.
    ///
    /// # Errors
    /// `NotFound` if the table, or a follower of this name, does not exist; `InvalidArgument` if the table is one of a transaction.
    pub fn drop_follower(&self, name: &str) -> Result<()> {
        let store = self.place.in_store("dropping a follower")?;
        let (path, name) = (Path::new(self.path())?, name.to_owned());
        store.commit_effects(move |state| {
            let table = table_at(state, &path)?;
            if state.followers.get(table.id, &name).is_none() {
                return Err(Error::not_found(format!("'{path}' has no follower '{name}'")));
            }
            Ok(vec![Effect::PutFollower { table: table.id, name: name.clone(), follower: None }])
        })?;
        Ok(())
    }
}

impl Store {
    /// Takes a follower up, or makes it; returns where it is, and the epoch that begins.
    pub(super) fn take_up(
        &self,
        path: &Path,
        name: &str,
        since: &FollowFrom,
        keep: Duration,
    ) -> Result<(FeedPlace, u64)> {
        check_name(name, |shown| format!("'{shown}' cannot be the name of a follower"))?;
        let keep_micros = u64::try_from(keep.as_micros()).unwrap_or(u64::MAX);
        let (path, name, since) = (path.clone(), name.to_owned(), since.clone());
        let build = move |state: &State| {
            let table = table_at(state, &path)?;
            let (place, epoch) = match state.followers.get(table.id, &name) {
                Some(known) => (place_of(table.id, known), known.epoch + 1),
                None => (begin(state, &table, &path, &since)?, 1),
            };
            let follower = Some(follower_at(place, keep_micros, epoch));
            Ok((vec![Effect::PutFollower { table: table.id, name: name.clone(), follower }], (place, epoch)))
        };
        let call = self.call()?;
        Ok(self.commit_built(call.store.current()?, build)?.1)
    }
}

impl RowFeed {
    /// As [`RowFeed::acknowledge`], if it is the feed of a follower.
    pub(super) fn note(&mut self) -> Result<()> {
        if self.follower.is_some() { self.acknowledge() } else { Ok(()) }
    }

    /// Goes on after the newest commit, whatever came before.
    pub(super) fn go_to_now(&mut self) -> Result<FeedPlace> {
        let state = self.store.state()?;
        let table = table_at(&state, &self.path)?;
        let place = begin(&state, &table, &self.path, &FollowFrom::Now)?;
        self.move_to(place);
        Ok(place)
    }

    /// Notes that all that this feed has handed out was dealt with: the next consumer of its follower goes on after it, and the versions before
    /// are no longer kept for it. One commit, none if nothing came since.
    ///
    /// # Errors
    /// `InvalidArgument` if the feed is not that of a follower; `ConditionFailed` if another consumer has taken it up since, or if it was
    /// dropped: this one must stop.
    pub fn acknowledge(&mut self) -> Result<()> {
        let Some((name, epoch)) = self.follower.clone() else {
            return Err(Error::invalid("only the feed of a follower is acknowledged; follow the table under a name"));
        };
        self.settle_place()?;
        let (place, path) = (self.place, self.path.clone());
        let effects = move |state: &State| {
            let known = state.followers.get(place.table, &name);
            let known = known.filter(|known| known.epoch == epoch || planted(Bug::ForgetEpoch)).ok_or_else(|| {
                Error::condition_failed(format!(
                    "'{path}': another consumer has taken the follower '{name}' up, or it was dropped; stop this one"
                ))
            })?;
            let follower = follower_at(place, known.keep_micros, known.epoch);
            let moves = follower != *known;
            let effect = || Effect::PutFollower { table: place.table, name: name.clone(), follower: Some(follower) };
            Ok::<_, Error>(moves.then(effect).into_iter().collect::<Vec<_>>())
        };
        if !effects(&*self.store.state()?)?.is_empty() {
            self.store.commit_effects(effects)?;
        }
        Ok(())
    }
}

fn place_of(table: TableId, follower: &Follower) -> FeedPlace {
    FeedPlace { table, version: follower.version, since: follower.since, rows: follower.rows }
}

fn follower_at(place: FeedPlace, keep_micros: u64, epoch: u64) -> Follower {
    Follower { version: place.version, since: place.since, rows: place.rows, keep_micros, epoch }
}
