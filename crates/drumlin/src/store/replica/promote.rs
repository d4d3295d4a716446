//! A replica takes the place of its source, or a store that was ended is one again.
//!
//! First the source is ended: its root says which store took its place, and each process that has it open finds that at the next commit.
//! Then what it had until then is brought over, and the replica gets an id of its own, which says where it continued. So no
//! commit is lost, and at no moment two stores of one id are written. A call that was cut off is done again.
//!
//! If the source cannot be reached, nothing can be proven: it may have commits that the replica lacks, and may still be
//! written. Then the caller must say so. What the source becomes after that is another history, which nothing follows.

use std::sync::Arc;

use super::archive;
use super::bring::Bringer;
use super::options::ReplicateOptions;
use super::place::{SourceStore, StorePlace};
use super::run::begin;
use super::target::ReplicaRole;
use crate::base::planted::{Bug, planted};
use crate::base::{EntryId, Env, Error, ErrorKind, Result, Seq, SessionId};
use crate::catalog::{Effect, State};
use crate::log::{Origin, Point, ReplicaLog, Role};
use crate::storage::{ServerCells, Storage};
use crate::store::open::opening::open_bucket;
use crate::store::open::share::share_on;
use crate::store::{Mode, Options, Store};

/// How often it is tried to end the source, because others commit there.
const TRIES: usize = 1000;

/// How a replica is promoted.
#[derive(Clone, Default)]
pub struct PromoteOptions {
    /// Whether the source is gone or cannot be reached, so that its last commits are given up. Default: it is ended first.
    pub lost: bool,
    /// Where the source is, if that has changed. Default: where the replica followed it.
    pub source: Option<String>,
    /// How both are opened, and stopping.
    pub replicate: ReplicateOptions,
}

/// What a promotion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromoteReport {
    /// The id that the store has now.
    pub store: u128,
    /// The last commit that it has of the source.
    pub seq: u64,
    /// The source that was ended; `None` if it was given up, in which case it may have later commits.
    pub ended: Option<String>,
}

/// Makes the replica at `uri` a store of its own, which is opened and written like any other, and ends the store that it followed.
/// A store that was ended itself becomes one of its own again. Takes as long as to bring over what the replica lacks.
///
/// # Errors
/// `InvalidArgument` if it is a store of its own already, `Locked` if the source is a store that one process writes and is open,
/// `Unavailable` or `NotFound` if the source cannot be reached: nothing was changed. `Conflict` if another process took the replica
/// over.
pub fn promote(uri: &str, options: &PromoteOptions) -> Result<PromoteReport> {
    let env = Env { warn: options.replicate.target.warn.clone(), ..Env::system(options.replicate.target.cpu_threads)? };
    let open = |uri: &str, of_source: bool| match of_source {
        true => StorePlace::open(uri, &options.replicate.source, false),
        false => StorePlace::open(uri, &options.replicate.target, false),
    };
    promote_on(&open, uri, &env, options)
}

/// [`promote`], with places that are opened by the caller: of a store, or of the source of one.
///
/// # Errors
/// As [`promote`].
pub fn promote_on(
    open: &dyn Fn(&str, bool) -> Result<StorePlace>,
    uri: &str,
    env: &Env,
    options: &PromoteOptions,
) -> Result<PromoteReport> {
    let place = open(uri, false)?;
    let retry = options.replicate.target.retry_micros;
    let own = || {
        Error::invalid(format!("{uri} is a store of its own; only a replica, or a store that was ended, is promoted"))
    };
    if place.single()?.is_some() {
        return Err(match place.storage(env).top()?.is_empty() {
            true => Error::not_found(format!("there is no store at {uri}")),
            false => own(),
        });
    }
    let mut log = ReplicaLog::open(place.storage(env), env.clone(), retry)?;
    match log.role().clone() {
        Role::Written | Role::InCell { .. } | Role::Returned => Err(own()),
        Role::Replica { until: Some(_), of, .. } => {
            Err(Error::invalid(format!("{uri} is being made as a copy of {of}; do the call again that began it")))
        }
        Role::Ended { .. } => become_own(log, env, env.entropy.id()?, &place, uri, options),
        Role::Replica { of, keep_micros, until: None, by, .. } if options.lost => {
            // A process that still brings commits over finds another owner.
            let (owner, origin) = (env.entropy.next()?, log.origin());
            log.set_role(Role::Replica { of, owner, keep_micros, until: None, by }, origin)?;
            become_own(log, env, env.entropy.id()?, &place, uri, options)
        }
        Role::Replica { of: followed, keep_micros, until: None, by, .. } => {
            let of = options.source.clone().unwrap_or_else(|| followed.clone());
            // What is ended must be what the replica follows.
            let checked = open(&of, true)
                .and_then(|from| SourceStore::open(from, env, &of, options.replicate.source.retry_micros));
            let mut reached = checked.map_err(|e| {
                e.context(format!(
                    "the source {of} cannot be ended; if it is gone for good, promote the replica with 'lost'"
                ))
            })?;
            let (found, there) = (reached.origin.store, log.origin().store);
            if found != there {
                let what = format!("{of} is store {found:032x}, not the one that {uri} follows, {there:032x}");
                return Err(Error::invalid(what));
            }
            if let Some(point) = log.point().filter(|point| point.seq > Seq(0)) {
                reached.after(point.seq, point.entry)?;
            }
            // The id is noted first, so that the same call continues, and one for another replica does not get it, too.
            let by = match by {
                Some(by) => by,
                None => {
                    let (by, owner, origin) = (env.entropy.id()?, env.entropy.next()?, log.origin());
                    let role = Role::Replica { of: followed, owner, keep_micros, until: None, by: Some(by) };
                    log.set_role(role, origin)?;
                    by
                }
            };
            if !planted(Bug::PromoteBeside) {
                end(open, &of, by, env, options)?;
            }
            let without_lease = ReplicateOptions { once: true, lease: false, ..options.replicate.clone() };
            let never = || Err(Error::invalid("a store that was ended takes no leases"));
            let role = ReplicaRole { keep_micros: None, until: None };
            let places = (open(&of, true)?, place.clone());
            let mut bringer = begin(places, (&of, uri), env, &never, &without_lease, &role)?;
            bringer.catch_up(None, &options.replicate.task)?;
            let Bringer { replica, source, .. } = bringer;
            if !planted(Bug::PromoteBeside) {
                source.check_ends_with(replica.log.point(), options.replicate.source.retry_micros)?;
            }
            let report = become_own(replica.log, env, by, &place, uri, options)?;
            Ok(PromoteReport { ended: Some(of), ..report })
        }
    }
}

/// Ends a store: `by` takes its place.
fn end(
    open: &dyn Fn(&str, bool) -> Result<StorePlace>,
    uri: &str,
    by: u128,
    env: &Env,
    options: &PromoteOptions,
) -> Result<()> {
    let (settings, task) = (&options.replicate.source, &options.replicate.task);
    if open(uri, true)?.single()?.is_some() {
        // Its log is in a root from then on, which can be ended.
        let disk = || match open(uri, true)? {
            StorePlace::Folder(disk) => Ok(disk),
            StorePlace::Bucket(_) => Err(Error::invalid(format!("{uri} is not a folder"))),
        };
        share_on(&disk, env.clone(), uri, settings.clone(), task)?;
    }
    for _ in 0..TRIES {
        task.cancel.check()?;
        let storage = open(uri, true)?.storage(env);
        let mut log = ReplicaLog::open(storage.clone(), env.clone(), settings.retry_micros)?;
        match log.role() {
            Role::InCell { .. } | Role::Returned => {
                // Its log is in a root from then on, which can be ended.
                let (objects, cells): (Arc<dyn Storage>, _) = (storage, ServerCells(env.clone()));
                settings.movers(&objects, &cells, env).move_back()?;
                continue;
            }
            Role::Ended { by: there } if *there == by => return Ok(()),
            Role::Ended { by: there } => {
                return Err(Error::invalid(format!(
                    "{uri} was ended already, when another replica of it, now store {there:032x}, took its place; follow that one, or \
                     promote this replica with 'lost', so that it becomes a store beside it"
                )));
            }
            Role::Replica { of, .. } => {
                return Err(Error::invalid(format!("{uri} is itself a replica, of {of}; promote that one first")));
            }
            Role::Written => {}
        }
        let origin = log.origin();
        match log.set_role(Role::Ended { by }, origin) {
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            other => return other,
        }
    }
    Err(Error::unavailable(format!("{uri}: others commit there faster than it could be ended; try again")))
}

/// Gives the store an id of its own, and ends what processes of the source have open in it.
pub(super) fn become_own(
    mut log: ReplicaLog,
    env: &Env,
    id: u128,
    place: &StorePlace,
    uri: &str,
    options: &PromoteOptions,
) -> Result<PromoteReport> {
    // What nobody will name any more would make the root look old.
    log.delete_later()?;
    let before = log.origin();
    let point = log.point().unwrap_or(Point { store: before.store, seq: log.read()?.last(), entry: EntryId(0) });
    log.set_role(Role::Written, Origin::fork(id, point))?;
    archive::forget(&*place.storage(env))?;
    let settings = Options { mode: Mode::Write, ..options.replicate.target.clone() };
    let store = open_bucket(place.objects(), env.clone(), uri, settings)?;
    store.end_others()?;
    store.close()?;
    Ok(PromoteReport { store: id, seq: point.seq.0, ended: None })
}

impl Store {
    /// Ends all sessions and holds: they are of processes that use another store.
    fn end_others(&self) -> Result<()> {
        let own = self.commits().session().id();
        let sessions = move |state: &State| -> Vec<SessionId> {
            state.sessions.open.keys().copied().filter(|session| Some(*session) != own).collect()
        };
        let holds = |state: &State| -> Vec<SessionId> { state.holds.open.keys().copied().collect() };
        self.commit_effects(move |state| {
            let (sessions, holds) = (sessions(state), holds(state));
            let fence = (!sessions.is_empty()).then_some(Effect::FenceSessions { sessions });
            Ok(fence.into_iter().chain((!holds.is_empty()).then_some(Effect::EndHolds { holds })).collect())
        })
        .map(drop)
    }
}
