//! The calls that keep a replica.

use std::time::Duration;

use super::bring::Bringer;
use super::lease::SourceLease;
use super::options::{ReplicateFrom, ReplicateOptions, ReplicateReport};
use super::place::{SourceStore, StorePlace};
use super::target::{Replica, ReplicaRole};
use crate::base::{Env, Error, ErrorKind, Result, Task, WarningKind, waiting};
use crate::log::Role;
use crate::store::{Mode, Options, Store};

/// Opens the source for writing, to keep a lease there.
/// Also returns whether it is closed with the lease.
pub(super) type OpenSource<'a> = &'a dyn Fn() -> Result<(Store, bool)>;

/// Makes the store at `target`, which is made if nothing is there, a replica of another one, and brings over every commit, in order,
/// until the call is stopped. `target` can be read at any time; it is always some commit of the source, whole. A call that was
/// stopped or killed is done again: it continues. What cannot be reached is tried again.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (here, there) = (folder.path().join("here"), folder.path().join("there"));
/// # let (here, there) = (here.to_str().unwrap(), there.to_str().unwrap());
/// use drumlin::{Mode, Options, ReplicateOptions, Store, Tables, replicate};
///
/// let store = Store::open(here)?;
/// store.tree().put("note", 1)?;
/// replicate(&store, there, &ReplicateOptions { once: true, ..Default::default() })?;
/// let replica = Store::open_with(there, Options { mode: Mode::Read, ..Options::default() })?;
/// assert_eq!(replica.tree().get("note")?, store.tree().get("note")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `Cancelled` when it is stopped, `NotFound` if there is no source, `AlreadyExists` if something else is at `target`, `Conflict` if
/// another process took the replica over, or it was promoted, `Corrupt` if the source is damaged, `InvalidArgument` if the source
/// is in memory; with `once` also `Unavailable`.
pub fn replicate<'a>(
    source: impl Into<ReplicateFrom<'a>>,
    target: &str,
    options: &ReplicateOptions,
) -> Result<ReplicateReport> {
    let env = Env { warn: options.target.warn.clone(), ..Env::system(options.target.cpu_threads)? };
    match source.into() {
        ReplicateFrom::At(uri) => {
            let open = || open_shared(uri, options);
            replicate_on(&|| places(uri, target, options), (uri, target), &env, &open, options)
        }
        ReplicateFrom::Open(store) => {
            store.check_reachable("replicas")?;
            let own = || Ok((store.own(), false));
            let lease = options.lease && !store.setting().is_read_only();
            let options = ReplicateOptions { lease, source: store.options().clone(), ..options.clone() };
            let uri = store.uri();
            replicate_on(&|| places(uri, target, &options), (uri, target), &env, &own, &options)
        }
    }
}

/// Where a source is, and what becomes a replica or a copy of it.
pub(super) fn places(source: &str, target: &str, options: &ReplicateOptions) -> Result<(StorePlace, StorePlace)> {
    let from = StorePlace::open(source, &options.source, false)?;
    Ok((from, StorePlace::open(target, &options.target, true)?))
}

/// Opens a source for its lease. Where one process writes, that one shall not find it locked.
pub(super) fn open_shared(uri: &str, options: &ReplicateOptions) -> Result<(Store, bool)> {
    match StorePlace::open(uri, &options.source, false)?.single()? {
        Some(_) => Err(Error::invalid("a store that one process writes takes leases from that one alone")),
        None => Ok((Store::open_with(uri, Options { mode: Mode::Write, ..options.source.clone() })?, true)),
    }
}

/// [`replicate`], with places that are opened by the caller.
///
/// # Errors
/// As [`replicate`].
pub fn replicate_on(
    places: &dyn Fn() -> Result<(StorePlace, StorePlace)>,
    uris: (&str, &str),
    env: &Env,
    open: OpenSource<'_>,
    options: &ReplicateOptions,
) -> Result<ReplicateReport> {
    let mut report = ReplicateReport::default();
    loop {
        let begun = begin(
            places()?,
            uris,
            env,
            open,
            options,
            &ReplicaRole { keep_micros: options.keep_log_micros, until: None },
        );
        let done = begun.and_then(|mut bringer| {
            bringer.report = report.clone();
            let done = keep_on(&mut bringer, options);
            report = bringer.report.clone();
            if let Some(lease) = bringer.lease {
                lease.end();
            }
            done
        });
        match done {
            Err(e) if !options.once && fleeting(e.kind()) => {
                env.warn.say(WarningKind::ReplicaBehind, || {
                    format!("{}: the replica is behind, and tries again: {e}", uris.1)
                });
                pause(env, options.poll_micros.max(1_000_000), &options.task)?;
            }
            other => return other.map(|()| report),
        }
    }
}

fn fleeting(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::InDoubt | ErrorKind::SnapshotExpired)
}

/// Opens both sides.
pub(super) fn begin(
    (from, to): (StorePlace, StorePlace),
    (source, target): (&str, &str),
    env: &Env,
    open: OpenSource<'_>,
    options: &ReplicateOptions,
    role: &ReplicaRole,
) -> Result<Bringer> {
    let source = SourceStore::open(from, env, source, options.source.retry_micros)?;
    let role_there = source.role(options.source.retry_micros)?;
    let lease = match options.lease && role_there.is_none_or(|role| matches!(role, Role::Written | Role::InCell { .. }))
    {
        true => match open().and_then(|opened| SourceLease::open(opened, role.until.is_none().then_some(target))) {
            Ok(lease) => Some(lease),
            // Another process writes it alone, or this one may not write there.
            Err(e) if e.kind() == ErrorKind::Cancelled => return Err(e),
            Err(_) => None,
        },
        false => None,
    };
    let taken = Replica::take(&to, env, (target, &options.target), &source, role);
    let (replica, lease) = match (taken, lease) {
        (Ok(replica), lease) => (replica, lease),
        (Err(e), lease) => {
            lease.into_iter().for_each(SourceLease::end);
            return Err(e);
        }
    };
    Ok(Bringer { source, replica, lease, sweep: options.sweep, report: ReplicateReport::default() })
}

/// Brings commits over until the call is stopped, or once.
fn keep_on(bringer: &mut Bringer, options: &ReplicateOptions) -> Result<()> {
    loop {
        if bringer.catch_up(None, &options.task)?
            && let Some(caught_up) = &options.caught_up
        {
            caught_up(&bringer.report);
        }
        if options.once {
            return Ok(());
        }
        pause(&bringer.replica.env, options.poll_micros, &options.task)?;
    }
}

/// Waits, in steps in which the call can be stopped.
fn pause(env: &Env, micros: u64, task: &Task) -> Result<()> {
    const STEP: u64 = 50_000;
    let mut left = micros;
    while left > 0 {
        task.cancel.check()?;
        waiting::pause(&*env.clock, Duration::from_micros(left.min(STEP)))?;
        left -= left.min(STEP);
    }
    task.cancel.check()
}
