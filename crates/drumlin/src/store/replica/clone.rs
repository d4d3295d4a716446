//! Copies of whole stores: replicas that become stores of their own as soon as they have come to a commit.

use super::archive::ArchivedRoots;
use super::options::{ReplicateOptions, ReplicateReport};
use super::place::{SourceStore, StorePlace};
use super::promote::{PromoteOptions, become_own};
use super::run::{OpenSource, begin, open_shared, places};
use super::target::ReplicaRole;
use crate::base::{Env, Error, Result, Seq, Timestamp};
use crate::filter::time_of;
use crate::log::Opened;
use crate::storage::Storage;
use crate::store::parts::recover;

/// Which commit a copy of a store ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CloneAt {
    /// The newest.
    #[default]
    Newest,
    /// The one of this number.
    Commit(Seq),
    /// The last one at this time or before.
    Time(Timestamp),
}

impl CloneAt {
    /// What a text stands for: a number is a commit, and a date or a time by ISO 8601 is a time; what has no offset is in UTC.
    ///
    /// # Errors
    /// `InvalidArgument` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        let commit = text.parse().ok().filter(|_| !text.starts_with('+'));
        let at = commit.map(|seq| Self::Commit(Seq(seq))).or_else(|| time_of(text).map(Self::Time));
        at.ok_or_else(|| {
            Error::invalid(format!(
                "'{text}' is not a commit; expected its number, or a time such as 2026-03-01T17:00:00Z"
            ))
        })
    }
}

/// What a copy of a store is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloneReport {
    /// The id of the copy.
    pub store: u128,
    /// What was copied; `seq` is the last commit that both have.
    pub copied: ReplicateReport,
}

/// Makes a copy of the store at `source`, whole, at `target`, where nothing may be: all tables, versions, snapshots, nodes and trash as of
/// one commit. It is a store of its own, with another id, and remembers where it continued. `source` is not changed; if the call is cut
/// off, the same call continues.
///
/// It reaches back as far as the log of the source, which a checkpoint cuts. From a replica that keeps its past
/// (`keep_log_micros`), each commit of that can be restored.
///
/// # Errors
/// `NotFound` if there is no store, or no such commit, `AlreadyExists` if something is at `target`, `SnapshotExpired` if the source no
/// longer leads to the commit, `Corrupt` if the source is damaged, `Cancelled`, `Unavailable`.
pub fn clone_store(source: &str, target: &str, at: CloneAt, options: &ReplicateOptions) -> Result<CloneReport> {
    let env = Env { warn: options.target.warn.clone(), ..Env::system(options.target.cpu_threads)? };
    let open = || open_shared(source, options);
    clone_on(&|| places(source, target, options), (source, target), &env, at, &open, options)
}

/// [`clone_store`], with places that are opened by the caller.
///
/// # Errors
/// As [`clone_store`].
pub fn clone_on(
    places: &dyn Fn() -> Result<(StorePlace, StorePlace)>,
    uris: (&str, &str),
    env: &Env,
    at: CloneAt,
    open: OpenSource<'_>,
    options: &ReplicateOptions,
) -> Result<CloneReport> {
    let (until, older) = match at {
        CloneAt::Newest => (None, None),
        at => {
            let (until, older) = commit_at(places()?.0, uris.0, env, at, options)?;
            (Some(until), older)
        }
    };
    // A copy of the newest state is a copy, too.
    let role = ReplicaRole { keep_micros: None, until: Some(until.unwrap_or(Seq(u64::MAX))) };
    let places = places()?;
    let to = places.1.clone();
    let mut bringer = begin(places, uris, env, open, options, &role)?;
    if let Some(until) = until
        && bringer.replica.seq() > until
    {
        return Err(Error::already_exists(format!(
            "{}: a copy that was begun here has later commits than {until}; use another place",
            uris.1
        )));
    }
    let done = match (older, until) {
        (Some(older), Some(until)) => bringer.restore(older, until, &options.task),
        _ => bringer.catch_up(until, &options.task).map(drop),
    };
    if let Some(lease) = bringer.lease.take() {
        lease.end();
    }
    done?;
    let promote = PromoteOptions { lost: true, source: None, replicate: options.clone() };
    let copied = bringer.report;
    let made = become_own(bringer.replica.log, env, env.entropy.id()?, &to, uris.1, &promote)?;
    Ok(CloneReport { store: made.store, copied })
}

/// The number of a commit, and what leads to it, unless that is the log as it is now.
fn commit_at(
    place: StorePlace,
    uri: &str,
    env: &Env,
    at: CloneAt,
    options: &ReplicateOptions,
) -> Result<(Seq, Option<Opened>)> {
    let mut source = SourceStore::open(place, env, uri, options.source.retry_micros)?;
    let opened = source.whole()?;
    let last = opened.last();
    if let CloneAt::Commit(seq) = at
        && seq > last
    {
        return Err(Error::not_found(format!("{uri} has no commit {seq}; the last one is {last}")));
    }
    let storage = &*source.storage;
    if let Some(seq) = commit_in(storage, &opened, at)? {
        return Ok((seq, None));
    }
    // A replica may have kept what it had before.
    let mut after = opened.first();
    for older in ArchivedRoots::open(storage, &env.pool)? {
        let older = older?;
        let last = older.last();
        if let Some(seq) = commit_in(storage, &older, at)? {
            // Where commits were passed by, it is not known when the next one was.
            if seq == last && after > last && matches!(at, CloneAt::Time(_)) {
                return Err(Error::snapshot_expired(format!(
                    "{uri}: it passed by the commits from {} to {}, so it is not known which one was the last at that time",
                    last.next(),
                    Seq(after.0 - 1)
                )));
            }
            return Ok((seq, Some(older)));
        }
        after = older.first();
    }
    let what = match at {
        CloneAt::Commit(seq) => format!("commit {seq}"),
        _ => "what there was at that time".to_owned(),
    };
    Err(Error::snapshot_expired(format!(
        "{uri}: {what} can no longer be restored, since its log does not reach back to it; it begins with the state after commit {after}"
    )))
}

/// The number of a commit, if this log leads to it; of a time, the last one that it has of then.
fn commit_in(storage: &dyn Storage, opened: &Opened, at: CloneAt) -> Result<Option<Seq>> {
    let (first, last) = (opened.first(), opened.last());
    match at {
        CloneAt::Newest => Ok(Some(last)),
        CloneAt::Commit(seq) => Ok((first..=last).contains(&seq).then_some(seq)),
        CloneAt::Time(time) => {
            let found = opened.entries.iter().rfind(|entry| entry.seq > first && entry.time <= time);
            if found.is_some() || opened.base.is_none() {
                return Ok(found.map(|entry| entry.seq));
            }
            let snapshot = Opened { base: opened.base, entries: Vec::new(), origin: opened.origin, lossy: false };
            Ok((recover::replay(storage, &snapshot)?.0.time <= time).then_some(first))
        }
    }
}
