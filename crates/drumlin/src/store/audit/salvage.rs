//! Salvage: copies all that can be read of a damaged store into a new one, and lists what cannot.
//!
//! First it finds the best state that catalog and log lead to, then copies its row groups, each checked and decoded
//! once (salvage_copy.rs), then writes a catalog snapshot of that state as the beginning of the new store. The object
//! that makes it a store is written last. The damaged store is not changed: it is only read, and not even locked.
//!
//! It trusts the same chain of checksums as a reader does, but piece by piece. *remains.rs* takes every entry that
//! checks, wherever it is, and each catalog snapshot that is named or that ends its object as one would; the snapshot
//! that leads furthest is the start. Lost chunks leave a state that the catalog's *salvage.rs* brings to agree with
//! itself. Everything left out is listed.

use std::collections::BTreeSet;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use super::salvage_report::{Loss, LossKind, SalvageReport};
use crate::base::{Env, Error, ErrorKind, Result, Seq, Task};
use crate::catalog::{Index, LostChunk, Mended, State};
use crate::log::{Base, CommitLog, FileLog, Movers, ObjectLog, Origin, Point, Remains};
use crate::storage::{
    BucketStorage, Disk, FileStorage, InlineStorage, LogCells, OsDisk, ServerCells, SimDisk, Storage, WriteMode,
    is_bucket, names,
};
use crate::store::handle::Contents;
use crate::store::open::format::{format_text, read_format};
use crate::store::open::hooks::HOOKS;
use crate::store::open::probe::probe;
use crate::store::open::uri::{folder_of, open_storage};
use crate::store::parts::recover;
use crate::store::{CheckpointReport, Mode, Options, Store, SyncMode};

/// Where a salvaged store goes.
pub enum SalvageTarget {
    /// A folder that one process writes; it must be empty.
    Folder(Arc<dyn Disk>),
    /// A bucket or folder that many processes write; it must be empty.
    Shared(Arc<dyn Storage>),
}

/// Copies all that can be read of the store at `from` into a new one at `to`, which must not exist, or be empty, and says
/// what cannot be read. The store at `from` is left as it is; nobody should write it during the call.
///
/// Of `options`, the settings of buckets apply to both stores, and `shared` to the new one.
///
/// # Errors
/// `AlreadyExists` if `to` holds anything, `Unavailable` if storage fails, `Cancelled`. What is damaged at `from` fails nothing: the
/// report names it.
pub fn salvage(from: &str, to: &str, options: Options, task: &Task) -> Result<SalvageReport> {
    let env = Env::system(options.cpu_threads)?;
    if [from, to].contains(&"memory://") {
        return Err(Error::invalid("a store in memory ends with its process, so there is nothing to salvage"));
    }
    let bucket = |uri| BucketStorage::open(uri, &options.bucket.0, options.io_threads);
    let source = open_storage(from, &options)?;
    let target = match is_bucket(to) {
        true => SalvageTarget::Shared(Arc::new(bucket(to)?)),
        false => {
            let folder = folder_of(to)?;
            if !is_bucket(from) && real(&folder).starts_with(real(&folder_of(from)?)) {
                return Err(Error::invalid(format!(
                    "{to} is inside the store {from}, which must not be changed; use another place"
                )));
            }
            let disk: Arc<dyn Disk> = Arc::new(OsDisk::create(&folder)?);
            check_empty(&*disk)?;
            match options.shared {
                true => SalvageTarget::Shared(Arc::new(FileStorage::new(disk))),
                false => SalvageTarget::Folder(disk),
            }
        }
    };
    target.salvage(source, env, options, task).map_err(|e| match e.kind() {
        ErrorKind::Corrupt | ErrorKind::NotFound => e.context(from),
        _ => e,
    })
}

impl SalvageTarget {
    /// Copies the store at `source` here: [`salvage`], with storage that is already open.
    ///
    /// # Errors
    /// As [`salvage`].
    pub fn salvage(self, source: Arc<dyn Storage>, env: Env, options: Options, task: &Task) -> Result<SalvageReport> {
        let cells = ServerCells(env.clone());
        self.salvage_with(source, &cells, env, options, task)
    }

    /// The same, where `cells` reaches the server that may have the log.
    ///
    /// # Errors
    /// As [`salvage`].
    pub fn salvage_with(
        self,
        source: Arc<dyn Storage>,
        cells: &dyn LogCells,
        env: Env,
        options: Options,
        task: &Task,
    ) -> Result<SalvageReport> {
        let source = Arc::new(InlineStorage::new(source));
        let objects: Arc<dyn Storage> = source.clone();
        let (state, of, mut losses) = best_state(&options.movers(&objects, cells, &env))?;
        for (block, inline) in state.ledger.inline() {
            source.hold(&names::block(*block), inline.0.clone());
        }
        let (storage, disk): (Arc<dyn Storage>, _) = match self {
            SalvageTarget::Folder(disk) => (Arc::new(FileStorage::new(disk.clone())), Some(disk)),
            SalvageTarget::Shared(storage) => (storage, None),
        };
        let storage = Arc::new(InlineStorage::new(storage));
        let _lock = match &disk {
            Some(disk) => {
                check_empty(&**disk)?;
                Some(disk.lock(names::LOCK, &format!("process {}, salvaging", std::process::id()))?)
            }
            None => {
                check_unused(&*storage)?;
                probe(&storage, &env, options.retry_micros)?;
                None
            }
        };
        let mut report = SalvageReport { seq: state.seq, ..SalvageReport::default() };
        let state = state.copied(&source, &storage, &env, &options, task, &mut report, &mut losses)?;
        let mut state = flushed(state, &storage, &env, &options, task)?;
        // It goes ways of its own from here on.
        let store = if of.store == 0 { state.holds.store } else { of.store };
        let origin = Origin::fork(env.entropy.id()?, Point { store, seq: state.seq, entry: state.entry });
        state.holds.store = origin.store;
        state.check()?;
        report.nodes = state.tree.len() as u64;
        report.tables = state.totals().tables;
        report.losses = losses;
        let retry = options.retry_micros;
        let patient = disk.is_none().then_some((&env, retry));
        let base = match state.seq {
            Seq(0) => None,
            _ => Some(recover::write_catalog(&*storage, &state, None, None, patient)?.0),
        };
        match (disk, base) {
            (Some(disk), base) => {
                FileLog::create_behind(disk, options.log, state.seq, base)?.close()?;
                storage.put(names::FORMAT, &[format_text(&origin).into()], WriteMode::Create)?;
            }
            (None, Some(base)) => {
                drop(ObjectLog::create_behind(storage, env, retry, (base, state.entry), origin)?);
            }
            (None, None) => drop(ObjectLog::create(storage, env, retry)?),
        }
        Ok(report)
    }
}

/// Where a folder really is, or would be if it were created.
fn real(folder: &FilePath) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let there = absolute.ancestors().find_map(|above| std::fs::canonicalize(above).ok().map(|real| (above, real)));
    match there {
        Some((above, real)) => absolute.strip_prefix(above).map_or(real.clone(), |rest| real.join(rest)),
        None => absolute,
    }
}

fn check_empty(disk: &dyn Disk) -> Result<()> {
    let entries = match disk.list("") {
        Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    match entries.first() {
        Some(entry) => Err(Error::already_exists(format!(
            "the new store needs an empty folder, or one that does not exist; this one has '{}'",
            entry.name
        ))),
        None => Ok(()),
    }
}

fn check_unused(storage: &dyn Storage) -> Result<()> {
    let used = Error::already_exists(
        "the place of the new store already has a store or the remains of one; use another place",
    );
    match storage.get_tagged(names::ROOT, None) {
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(e),
        Ok(_) => return Err(used),
    }
    let objects = storage.list(names::CATALOG)?.len() + storage.list(names::LOG)?.len();
    match objects + storage.list_folders(names::BLOCKS)?.len() {
        0 => Ok(()),
        _ => Err(used),
    }
}

/// A state that a catalog snapshot leads to, or the empty one.
struct Start {
    state: State,
    /// Whether it is certain that nothing of it is lost.
    complete: bool,
    /// The last commit up to which the log continues it.
    reach: Seq,
    losses: Vec<Loss>,
}

impl Start {
    /// How good it is as a start.
    fn worth(&self) -> (Seq, bool, Seq) {
        (self.reach, self.complete, self.state.seq)
    }
}

/// The best state that can be found, and what it lacks of the newest.
fn best_state(movers: &Movers<'_>) -> Result<(State, Origin, Vec<Loss>)> {
    let storage = &**movers.storage;
    let (format, mut losses) = check_kind(storage)?;
    let remains = Remains::read(movers)?;
    let damage = remains.damage.iter().map(|(object, what)| match what.starts_with(object) {
        true => what.clone(),
        false => format!("{object}: {what}"),
    });
    losses.extend(damage.map(|why| Loss::new(LossKind::Log, why)));
    let objects = storage.list(names::CATALOG).unwrap_or_default().into_iter();
    let objects = objects.filter_map(|object| names::parse_catalog(object.name.rsplit('/').next()?));
    let objects: BTreeSet<Seq> = objects.collect();
    let newest = objects.iter().next_back().copied().unwrap_or(Seq(0));
    let last = remains.last.max(newest).max(remains.bases().next().map_or(Seq(0), |base| base.seq));
    let start = best_start(storage, &remains, &objects, last, &mut losses)?;
    let mut state = start.state;
    losses.extend(start.losses);
    let (tables, seq) = (state.totals().tables, state.seq);
    replay_rows(&mut state, &remains, &mut losses)?;
    replay(&mut state, &remains, &mut losses)?;
    if state.seq < last {
        let why = match remains.entries.contains_key(&state.seq.next()) {
            true => "the first of them cannot be applied".to_owned(),
            false => format!("the log does not continue after commit {}", state.seq),
        };
        losses.push(Loss::new(LossKind::Commits, why).of_commits(state.seq.next(), last));
    }
    if state.seq >= last && remains.uncertain {
        let why = format!("what is left does not show whether there were commits after commit {}", state.seq);
        losses.push(Loss::new(LossKind::Commits, why));
    }
    if state.check().is_err() {
        losses.extend(state.mend()?.into_iter().map(of_mended));
        state.check().map_err(|e| e.context(format!("{tables} tables at commit {seq}")))?;
    }
    Ok((state, if format.store == 0 { remains.origin } else { format }, losses))
}

/// Whether this is a store that this build can read.
fn check_kind(storage: &dyn Storage) -> Result<(Origin, Vec<Loss>)> {
    let unknown = |losses| Ok((Origin::default(), losses));
    match read_format(storage, "the store") {
        Err(e) if e.kind() == ErrorKind::Unsupported => Err(e),
        Err(e) if e.kind() == ErrorKind::Corrupt => unknown(vec![Loss::new(LossKind::Log, e.message())]),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let root = storage.get(names::ROOT).is_ok();
            let missing = || Loss::new(LossKind::Log, format!("'{}' or '{}' is missing", names::FORMAT, names::ROOT));
            unknown(if root { Vec::new() } else { vec![missing()] })
        }
        Err(e) => Err(e),
        Ok(origin) => Ok((origin, Vec::new())),
    }
}

fn best_start(
    storage: &dyn Storage,
    remains: &Remains,
    objects: &BTreeSet<Seq>,
    last: Seq,
    losses: &mut Vec<Loss>,
) -> Result<Start> {
    let mut best: Option<Start> = None;
    let mut better = |start: Start| -> bool {
        let whole = start.complete && start.reach >= last;
        if best.as_ref().is_none_or(|best| best.worth() < start.worth()) {
            best = Some(start);
        }
        whole
    };
    let mut read = BTreeSet::new();
    let mut unusable = Vec::new();
    for base in remains.bases() {
        match recover::read_index(storage, &base) {
            Ok(index) => {
                read.insert(base.seq);
                if let Some(start) = start_at(storage, remains, &index, true)?
                    && better(start)
                {
                    return Ok(best.expect("just seen"));
                }
            }
            Err(e) if e.kind() == ErrorKind::Unsupported => return Err(e),
            Err(e) if storage.is_remote() && e.kind() == ErrorKind::Unavailable => return Err(e),
            Err(e) => unusable.push(Loss::new(LossKind::Catalog, e.to_string()).of_commits(base.seq, base.seq)),
        }
    }
    let from_the_first = remains.entries.contains_key(&Seq(1)) || (remains.found && last == Seq(0));
    if from_the_first {
        let reach = reach(remains, Seq(0));
        let empty = Start { state: State::default(), complete: true, reach, losses: Vec::new() };
        if better(empty) {
            return Ok(best.expect("just seen"));
        }
    }
    for seq in objects.iter().rev().filter(|seq| !read.contains(seq)) {
        if let Some(index) = recover::find_index(storage, *seq)?
            && let Some(start) = start_at(storage, remains, &index, false)?
        {
            better(start);
        }
    }
    losses.extend(unusable);
    match (best, remains.entries.keys().next()) {
        (Some(start), _) => Ok(start),
        (None, Some(first)) => {
            let why = format!("no catalog snapshot can be read; what is left begins with commit {first}");
            let state = State::before(*first);
            let losses = vec![Loss::new(LossKind::Catalog, why).of_commits(Seq(1), state.seq)];
            Ok(Start { reach: reach(remains, state.seq), state, complete: false, losses })
        }
        (None, None) if !remains.found && objects.is_empty() => Err(Error::not_found("there is no store")),
        (None, None) => {
            let why = losses.iter().map(|loss| loss.why.clone()).collect::<Vec<_>>().join("; ");
            Err(Error::corrupt(format!("neither a catalog snapshot nor a commit can be read: {why}")))
        }
    }
}

/// The last commit up to which there are entries after `seq` without a gap.
fn reach(remains: &Remains, seq: Seq) -> Seq {
    let behind = remains.entries.range(seq.next()..).map(|(seq, _)| *seq);
    behind.zip(seq.next().0..).take_while(|(seq, expected)| seq.0 == *expected).last().map_or(seq, |(seq, _)| seq)
}

/// The state at a catalog snapshot, as far as it can be read; `None` if nothing of it can.
fn start_at(storage: &dyn Storage, remains: &Remains, index: &Index, named: bool) -> Result<Option<Start>> {
    let chunks = recover::read_some_chunks(storage, index)?;
    let mut losses = Vec::new();
    if !named {
        let why = format!("the log does not name {}, so its index was not checked", names::catalog(index.seq()));
        losses.push(Loss::new(LossKind::Catalog, why).of_commits(index.seq(), index.seq()));
    }
    let reach = reach(remains, index.seq());
    if let Some(chunks) = chunks.iter().cloned().collect::<Option<Vec<_>>>() {
        let whole =
            index.read(&chunks).and_then(|mut state| state.restore().and_then(|()| state.check()).map(|_| state));
        if let Ok(state) = whole {
            return Ok(Some(Start { state, complete: named, reach, losses }));
        }
    }
    if !chunks.is_empty() && chunks.iter().all(Option::is_none) {
        return Ok(None);
    }
    let (mut state, lost) = index.read_partly(&chunks);
    losses.extend(lost.into_iter().map(of_chunk));
    losses.extend(state.mend()?.into_iter().map(of_mended));
    Ok(Some(Start { state, complete: false, reach, losses }))
}

fn of_chunk(lost: LostChunk) -> Loss {
    let LostChunk { what, from, until, why } = lost;
    match what {
        "nodes" => Loss { until, ..Loss::new(LossKind::Nodes, why).at(from) },
        _ => {
            let end = |end: Option<String>, or: &str| end.unwrap_or_else(|| or.to_owned());
            let (from, until) = (end(from, "the first"), end(until, "the end"));
            Loss::new(LossKind::Catalog, format!("{what} from {from} up to {until}: {why}"))
        }
    }
}

fn of_mended(mended: Mended) -> Loss {
    match mended {
        Mended::TableGone(id, path) => {
            Loss::new(LossKind::Table, format!("the record of table {id} is lost, and so is the table")).at(path)
        }
        Mended::TablePlaced(id, path) => {
            let why = format!("where table {id} was, or that it was dropped, is lost; the whole table is here now");
            Loss::new(LossKind::Table, why).at(Some(path))
        }
        Mended::SnapshotPart(name, path) => {
            Loss::new(LossKind::Snapshot, format!("the version of '{path}' that it held is lost")).at(Some(name))
        }
        Mended::SnapshotMade(name) => {
            let why = "its own name is lost; it has the versions that a snapshot had";
            Loss::new(LossKind::Snapshot, why).at(Some(name))
        }
    }
}

/// Brings the rows written by key into memory; a snapshot holds only that they exist.
fn replay_rows(state: &mut State, remains: &Remains, losses: &mut Vec<Loss>) -> Result<()> {
    let Some(from) = state.rows_from() else { return Ok(()) };
    let mut missing: Vec<Seq> = Vec::new();
    for seq in (from.0..=state.seq.0).map(Seq) {
        let Some(entry) = remains.entries.get(&seq) else {
            missing.push(seq);
            continue;
        };
        let replayed = recover::transactions(entry).and_then(|transactions| {
            transactions.iter().try_for_each(|transaction| state.replay_rows(transaction, seq, entry.time))
        });
        match replayed {
            Err(e) if e.kind() == ErrorKind::Unsupported => return Err(e),
            Err(_) => missing.push(seq),
            Ok(()) => {}
        }
    }
    let (Some(first), Some(last)) = (missing.first(), missing.last()) else { return Ok(()) };
    let why = format!("{} of the commits that may have written them cannot be read", missing.len());
    for table in state.open_tables() {
        if let Some(part) = table.parts.first()
            && part.from <= *last
        {
            let loss = Loss::new(LossKind::RowsInMemory, why.clone()).at(state.path_of(table.id));
            losses.push(loss.of_commits(part.from.max(*first), *last));
        }
    }
    Ok(())
}

/// Applies the entries after the state, up to the first that is missing.
fn replay(state: &mut State, remains: &Remains, losses: &mut Vec<Loss>) -> Result<()> {
    while let Some(entry) = remains.entries.get(&state.seq.next()) {
        if state.entry.0 != 0 && entry.prev.is_some_and(|prev| prev != state.entry) {
            let why = "it does not continue the commit before it, so it belongs to another history";
            losses.push(Loss::new(LossKind::Commits, why).of_commits(entry.seq, entry.seq));
            return Ok(());
        }
        let transactions = match recover::transactions(entry) {
            Err(e) if e.kind() == ErrorKind::Unsupported => return Err(e),
            Err(_) => return Ok(()),
            Ok(transactions) => transactions,
        };
        let mut next = state.clone();
        if recover::apply_entry(&mut next, entry).is_ok() {
            *state = next;
        } else {
            for (table, why) in state.apply_what_applies(&transactions, entry.seq, entry.time) {
                let path = table.and_then(|table| state.path_of(table));
                losses.push(Loss::new(LossKind::Change, why).at(path).of_commits(entry.seq, entry.seq));
            }
            state.finish(entry.seq, entry.time, entry.id, entry.session);
        }
        state.settle()?;
    }
    Ok(())
}

/// The same, without rows in memory: they become row groups, in `storage`.
fn flushed(mut state: State, storage: &Arc<InlineStorage>, env: &Env, options: &Options, task: &Task) -> Result<State> {
    state.number_rows()?;
    if state.rows_from().is_none() {
        return Ok(state);
    }
    // A store that commits to a log in memory; only its final state is kept.
    let (mode, sync) = (Mode::Create, SyncMode::Commit);
    let options =
        Options { mode, sync, checkpoint_log_bytes: 0, memtable_bytes: 0, inline_bytes: 0, ..options.clone() };
    let log = FileLog::create_behind(Arc::new(SimDisk::in_memory()), options.log, state.seq, None::<Base>)?;
    let contents =
        Contents { storage: storage.clone(), log: Box::new(log), state, catalog: None, lock: None, lent: true };
    let store = Store::start(env.clone(), "the salvaged store", options, contents, HOOKS)?;
    let mut report = CheckpointReport::default();
    store.flush(task, &mut report)?;
    let mut state = State::clone(&*store.current()?);
    if let Some(failure) = report.failures.first() {
        return Err(Error::corrupt(format!("rows in memory could not be turned into row groups: {failure}")));
    }
    store.close()?;
    state.sessions.open = Default::default();
    Ok(state)
}
