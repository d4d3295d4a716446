//! Moves the log of a store that many processes write to a server, and back (see `log/object/moving.rs`).

use std::sync::Arc;

use super::uri::{is_in_memory, open_storage};
use crate::base::{Env, Error, ErrorKind, Result};
use crate::log::{LogPlace, Movers};
use crate::storage::{LogCells, MeteredStorage, ServerCells, Storage, is_bucket, names};
use crate::store::Options;

/// Moves the log of the store at `uri` to a server, so that a commit needs no request to the bucket, or back to the store. Blocks,
/// catalog snapshots and what the log has already moved to the store stay where they are. A call that was cut off is finished by the
/// next one, or by a process that opens the store for writing. Processes that have the store open find out at their next call, which fails
/// with `Closed`: they must open it again.
///
/// ```no_run
/// use drumlin::{LogPlace, Options, move_log};
///
/// let to = LogPlace::Cell("postgresql://me@db.example/lake".into());
/// move_log("s3://bucket/store", &to, &Options::default())?;
/// # Ok::<(), drumlin::Error>(())
/// ```
///
/// # Errors
/// `NotFound` if there is no store, `InvalidArgument` if a single process writes it, if it is a replica, or for an address that makes no
/// sense or a server that does not make commits durable; `Unavailable` if the server cannot be reached: then nothing was changed.
pub fn move_log(uri: &str, to: &LogPlace, options: &Options) -> Result<()> {
    let env = Env::system(options.cpu_threads)?;
    if is_in_memory(uri) {
        return Err(Error::invalid(format!("{uri}: a store in memory keeps its log itself")));
    }
    let storage = open_storage(uri, options)?;
    if !is_bucket(uri) {
        let top = storage.top()?;
        if !top.iter().any(|name| name == names::ROOT) && top.iter().any(|name| name == names::FORMAT) {
            return Err(Error::invalid(format!(
                "{uri}: a single process writes the store, and keeps its log in files; share it first with `drumlin share {uri}`"
            )));
        }
    }
    move_log_on(storage, &ServerCells(env.clone()), env, uri, options, to)
}

/// [`move_log`], in `storage`, with servers that `cells` reaches.
///
/// # Errors
/// As [`move_log`].
pub fn move_log_on(
    storage: Arc<dyn Storage>,
    cells: &dyn LogCells,
    env: Env,
    uri: &str,
    options: &Options,
    to: &LogPlace,
) -> Result<()> {
    let storage: Arc<dyn Storage> = Arc::new(MeteredStorage::new(storage, env.clone()));
    let movers = options.movers(&storage, cells, &env);
    let moved = match to {
        // It may carry a user, where what was noted does not.
        LogPlace::Cell(address) => Movers { given: movers.given.or(Some(address)), ..movers }.move_in(address),
        LogPlace::Store => movers.move_back(),
    };
    moved.map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::not_found(format!("there is no store at {uri}")),
        _ => e.context(uri),
    })
}
