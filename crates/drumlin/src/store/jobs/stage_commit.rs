//! Staged writes, the driver's side: one commit for all tables and tokens of a job, done once however often it is
//! repeated; or an end that leaves nothing.
//!
//! In its turn the commit checks that the holds are open, that no job of this name was committed, and that the tables
//! are as the ticket says. Its one entry registers the blocks of the tokens, changes all tables, notes the job and ends
//! the holds. So a commit that is repeated finds either an open hold or the job. Keys are read back from the staged row
//! groups; no two parts may have one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::stage::{Ticket, Token};
use super::target::{StageMode, Target};
use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Digest, Error, ErrorKind, Result, Seq, SessionId, Task, Version};
use crate::catalog::{Effect, Footprint, Job, Path, Read, State, carry_over, ended};
use crate::memtable::Keys;
use crate::storage::{Storage, names};
use crate::store::Store;
use crate::store::commit::table_changes::TableChanges;
use crate::store::parts::{Proposal, Work};
use crate::store::read::resolve::table_at;
use crate::store::write::by_key::{ByKey, refuse};
use crate::store::write::many_rows::{BulkChange, Encoded};
use crate::table::{
    Kill, NewGroup, StoredSchema, TableChange, TableCodec, TableSpec, TableState, VersionKind, check_key, check_sort,
    keys_of_groups,
};

/// How staged rows are committed.
#[derive(Clone, Default)]
pub struct StagedCommit {
    /// The name under which the commit is remembered: a repeated one of the same tokens gets the same answer, one of others is
    /// refused. Default: the job of the ticket, or of the tokens if they have one.
    pub job: Option<String>,
    /// Of some tables, the version that must be the newest, with no rows written by key since. Default: any.
    pub expected: BTreeMap<String, Version>,
    /// A note kept with the versions, as JSON text. Default: none.
    pub metadata: Option<String>,
    /// Cancellation.
    pub task: Task,
}

/// What a commit of staged rows did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedReport {
    /// The commit.
    pub seq: Seq,
    /// The job's name.
    pub job: String,
    /// The version that each table got, by path.
    pub versions: Vec<(String, Version)>,
}

/// What became of a job that was to be aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aborted {
    /// It has ended, and has changed nothing. What it staged is deleted by the next reclaim.
    Aborted,
    /// It was committed before.
    Committed,
}

/// The tokens of one table, in order.
struct Staged {
    target: Target,
    tokens: Vec<Token>,
    /// The keys of its rows, if it has a key: one list for each row group.
    keys: Vec<Arc<Keys>>,
}

/// All that is to be committed.
struct Whole {
    store: u128,
    job: String,
    digest: u128,
    holds: BTreeSet<SessionId>,
    tables: Vec<Staged>,
    /// Those for which nothing is staged, and of which a version is expected.
    unchanged: Vec<Staged>,
    options: StagedCommit,
}

impl Ticket {
    /// Commits what was staged for the job: all tables and tokens in one commit, the rows in the order of their parts. A table to be
    /// overwritten for which nothing was staged becomes empty. Once committed, the same commit may be repeated, for instance after
    /// `InDoubt`, and gets the same answer.
    ///
    /// # Errors
    /// `SnapshotExpired` if the job has ended; `AlreadyExists` if a job of this name was committed with other tokens, or a key that
    /// must be new exists or is staged twice; `Conflict` if a table was changed in a way that the job did not expect;
    /// `InvalidArgument` for tokens that do not belong together; `Corrupt` if a staged block is missing. Nothing is done then.
    pub fn commit(&self, store: &Store, tokens: Vec<Token>, options: &StagedCommit) -> Result<StagedReport> {
        commit_staged(store, Some(self), tokens, options)
    }

    /// Ends the job without a commit, by an effect in the log; what was staged is deleted by the next reclaim. May be repeated.
    ///
    /// # Errors
    /// `Unavailable` if the log cannot be written.
    pub fn abort(&self, store: &Store) -> Result<Aborted> {
        abort(store, BTreeSet::from([self.hold]))
    }
}

impl Token {
    /// Commits tokens as [`Ticket::commit`] does, of one job or of several that are committed as one.
    ///
    /// # Errors
    /// As [`Ticket::commit`].
    pub fn commit(store: &Store, tokens: Vec<Token>, options: &StagedCommit) -> Result<StagedReport> {
        commit_staged(store, None, tokens, options)
    }

    /// Ends the jobs of tokens as [`Ticket::abort`] does.
    ///
    /// # Errors
    /// As [`Ticket::abort`].
    pub fn abort(store: &Store, tokens: &[Token]) -> Result<Aborted> {
        abort(store, tokens.iter().map(|token| token.hold).collect())
    }
}

fn abort(store: &Store, holds: BTreeSet<SessionId>) -> Result<Aborted> {
    store.end_holds(holds.iter().copied().collect())?;
    let state = store.current()?;
    Ok(match holds.iter().any(|hold| state.holds.was_committed(*hold)) {
        true => Aborted::Committed,
        false => Aborted::Aborted,
    })
}

fn commit_staged(
    store: &Store,
    ticket: Option<&Ticket>,
    tokens: Vec<Token>,
    options: &StagedCommit,
) -> Result<StagedReport> {
    let call = store.call()?;
    let mut whole = Whole::new(ticket, tokens, options)?;
    if let Some(report) = whole.known(&*store.current()?)? {
        return Ok(report);
    }
    whole.check(&*store.current()?)?;
    whole.check_blocks(store)?;
    for staged in &mut whole.tables {
        staged.read_keys(store, &options.task)?;
    }
    let whole = Arc::new(whole);
    let committed = call.commit(|base| {
        let (changes, footprint) = whole.changes(store, &base)?;
        let (then, whole) = (base.clone(), whole.clone());
        let build = move |now: &State| {
            whole.check(now)?;
            let mut effects = whole.effects(&changes, now);
            carry_over(&mut effects, &then, now)?;
            Ok(effects)
        };
        Ok((Proposal::new(base, footprint, Work::Build(Box::new(build))), ()))
    });
    match committed {
        Ok((after, ())) => whole.known(&after)?.ok_or_else(|| Error::closed("the commit ended without an answer")),
        // A repeated call may have been first.
        Err(e) if e.kind() != ErrorKind::InDoubt => match whole.known(&*store.current()?) {
            Ok(Some(report)) => Ok(report),
            Err(known) if known.kind() == ErrorKind::AlreadyExists => Err(known),
            _ => Err(e),
        },
        Err(e) => Err(e),
    }
}

impl Whole {
    fn new(ticket: Option<&Ticket>, mut tokens: Vec<Token>, options: &StagedCommit) -> Result<Self> {
        let of_ticket = ticket.map(|ticket| (ticket.store, ticket.hold, ticket.job.clone()));
        let Some((store, first, own)) =
            of_ticket.or_else(|| tokens.first().map(|token| (token.store, token.hold, token.job.clone())))
        else {
            return Err(Error::invalid("no tokens were given; to empty tables, give the ticket"));
        };
        let mut holds = BTreeSet::from([first]);
        let mut tables: BTreeMap<Path, Staged> = BTreeMap::new();
        // Tables that are changed, or made, even if nothing was staged for them.
        let changed = |target: &&Target| target.mode == StageMode::Overwrite || target.table.is_none();
        for target in ticket.iter().flat_map(|ticket| &ticket.targets).filter(changed) {
            let staged = Staged { target: target.clone(), tokens: Vec::new(), keys: Vec::new() };
            tables.insert(target.path.clone(), staged);
        }
        if tokens.iter().any(|token| token.part.is_some() != tokens[0].part.is_some()) {
            return Err(Error::invalid(
                "some tokens have a part and others have none, so their order is not known; give a part for all or for \
                 none",
            ));
        }
        tokens.sort_by(|a, b| {
            (&a.target.path, a.part).cmp(&(&b.target.path, b.part)).then_with(|| match a.part {
                Some(_) => a.hold.cmp(&b.hold),
                None => std::cmp::Ordering::Equal,
            })
        });
        let mut digest = Digest::new();
        for token in tokens {
            let Token { target, hold, part, attempt, .. } = &token;
            if token.store != store {
                return Err(Error::invalid("the tokens belong to different stores"));
            }
            if ticket.is_some_and(|ticket| ticket.hold != *hold) {
                return Err(Error::invalid(format!(
                    "a token belongs to the job '{}', but the ticket belongs to '{own}'",
                    token.job
                )));
            }
            holds.insert(*hold);
            digest.add(hold.0);
            digest.add(*attempt);
            let new = || Staged { target: target.clone(), tokens: Vec::new(), keys: Vec::new() };
            let staged = tables.entry(target.path.clone()).or_insert_with(new);
            let of_job = ticket.is_none_or(|ticket| ticket.targets.contains(target));
            if staged.target != *target || !of_job {
                return Err(Error::invalid(format!(
                    "the tokens of '{}' were staged in different modes or schemas; stage them with one ticket",
                    target.path
                )));
            }
            let same_part = |other: &Token| part.is_some() && other.part == *part;
            let twice = |other: &Token| other.hold == *hold && (other.attempt == *attempt || same_part(other));
            if staged.tokens.iter().rev().take_while(|other| part.is_none() || same_part(other)).any(twice) {
                let which =
                    part.map_or_else(|| "a token".to_owned(), |(task, part)| format!("task {task}, part {part}"));
                return Err(Error::invalid(format!(
                    "{which} of '{}' is given twice; give the token of only one attempt",
                    target.path
                )));
            }
            staged.tokens.push(token);
        }
        holds.iter().for_each(|hold| digest.add(hold.0));
        for path in tables.keys() {
            digest.add(path.as_str().len() as u64);
            path.as_str().bytes().for_each(|byte| digest.add(u64::from(byte)));
        }
        let mut unchanged = Vec::new();
        for path in options.expected.keys() {
            let of_job = ticket.iter().flat_map(|ticket| &ticket.targets).find(|target| target.path.as_str() == path);
            let staged = tables.contains_key(&Path::new(path)?);
            if let Some(target) = of_job.filter(|_| !staged) {
                unchanged.push(Staged { target: target.clone(), tokens: Vec::new(), keys: Vec::new() });
            } else if !staged {
                return Err(Error::invalid(format!("a version of '{path}' is expected, but nothing is staged for it")));
            }
        }
        let digest = digest.0;
        let job = match (&options.job, holds.len()) {
            (Some(job), _) => job.clone(),
            (None, 1) => own,
            (None, _) => format!("{digest:032x}"),
        };
        let tables = tables.into_values().collect();
        Ok(Self { store, job, digest, holds, tables, unchanged, options: options.clone() })
    }

    /// The answer, if it is committed already.
    fn known(&self, state: &State) -> Result<Option<StagedReport>> {
        // A repeated call may not know the name that the first one gave it.
        let same = |(_, job): &(&String, &Job)| {
            job.digest == self.digest && job.holds.iter().copied().eq(self.holds.iter().copied())
        };
        let by_name = state.holds.jobs.get_key_value(&self.job);
        match by_name.or_else(|| state.holds.jobs.iter().find(same)).map(|(_, job)| job) {
            None => match self.holds.iter().find(|hold| state.holds.was_committed(**hold)) {
                Some(hold) if !planted(Bug::ForgetJobs) => Err(Error::already_exists(format!(
                    "what was staged under hold {hold} was already committed, with other tokens; nothing was done"
                ))),
                _ => Ok(None),
            },
            Some(_) if planted(Bug::ForgetJobs) => Ok(None),
            Some(Job { digest, seq, versions, .. }) if *digest == self.digest => {
                let versions = versions.iter().map(|(path, _, version)| (path.to_string(), *version)).collect();
                Ok(Some(StagedReport { seq: *seq, job: self.job.clone(), versions }))
            }
            Some(Job { seq, .. }) => Err(Error::already_exists(format!(
                "the job '{}' was already committed, by commit {seq}, with other tokens; nothing was done",
                self.job
            ))),
        }
    }

    /// Fails if it cannot be committed to `now`.
    fn check(&self, now: &State) -> Result<()> {
        if self.store != now.holds.store {
            return Err(Error::invalid("the rows were staged for another store"));
        }
        if now.holds.jobs.contains_key(&self.job) && !planted(Bug::ForgetJobs) {
            return Err(Error::already_exists(format!("the job '{}' was already committed", self.job)));
        }
        if let Some(hold) = self.holds.iter().find(|hold| !now.holds.is_open(**hold))
            && !planted(Bug::TrustEndedHolds)
        {
            return Err(ended(*hold));
        }
        let mut all = self.tables.iter().chain(&self.unchanged);
        all.try_for_each(|staged| staged.check(now, &self.options.expected))
    }

    /// `Corrupt` if a block is not on storage in its whole size: listed by folder.
    fn check_blocks(&self, store: &Store) -> Result<()> {
        for hold in &self.holds {
            let listed = store.storage().list(&names::session_folder(*hold))?;
            let there: BTreeMap<String, u64> = listed.into_iter().map(|object| (object.name, object.bytes)).collect();
            for (block, bytes) in self.tokens().flat_map(|token| &token.blocks).filter(|(b, _)| b.session == *hold) {
                let name = names::block(*block);
                match there.get(&name) {
                    Some(found) if found == bytes => {}
                    found => {
                        return Err(Error::corrupt(format!(
                            "{name}: it was staged with {bytes} bytes, but now has {}; nothing was done",
                            found.map_or("none".to_owned(), ToString::to_string)
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.tables.iter().flat_map(|staged| &staged.tokens)
    }

    /// What the commit does to each table as it is in `base`, and what that depends on.
    fn changes(&self, store: &Store, base: &State) -> Result<(Vec<BulkChange>, Footprint)> {
        self.check(base)?;
        let mut footprint = Footprint::default();
        let changes = self.tables.iter().map(|staged| {
            let mut bulk = staged.change(store, base, &self.options.task)?;
            footprint.reads.append(&mut bulk.footprint.reads);
            bulk.change.metadata.clone_from(&self.options.metadata);
            Ok(bulk)
        });
        Ok((changes.collect::<Result<_>>()?, footprint))
    }

    /// The effects of the commit on the state `now`, with the end of the job.
    fn effects(&self, changes: &[BulkChange], now: &State) -> Vec<Effect> {
        let mut before: Vec<Effect> = changes.iter().flat_map(|bulk| bulk.before.iter().cloned()).collect();
        let blocks: Vec<(BlockId, u64)> = self.tokens().flat_map(|token| token.blocks.iter().copied()).collect();
        before.extend((!blocks.is_empty()).then_some(Effect::AddBlocks { blocks }));
        let mut made = TableChanges::on(now, before);
        let change = |(staged, bulk): (&Staged, &BulkChange)| {
            let Target { path, table, sort, .. } = &staged.target;
            let spec = TableSpec { sort: sort.clone(), keyed: false };
            (path.clone(), made.push(*table, path, spec, bulk.change.clone()))
        };
        let tables = self.tables.iter().zip(changes).map(change).collect();
        let mut effects = made.into_effects();
        let holds: Vec<SessionId> = self.holds.iter().copied().collect();
        effects.push(Effect::PutJob { name: self.job.clone(), digest: self.digest, tables, holds: holds.clone() });
        effects.push(Effect::EndHolds { holds });
        effects
    }
}

impl Staged {
    /// Fails if the table is not as the ticket says, or not as the caller expects.
    fn check(&self, now: &State, expected: &BTreeMap<String, Version>) -> Result<()> {
        let Target { path, mode, table, schema, sort, keyed } = &self.target;
        let found = now.table_at(path)?;
        let found = found.as_ref();
        if found.map(|found| found.id) != *table {
            let what = if table.is_none() { "was created" } else { "was dropped, and perhaps created again," };
            return Err(Error::conflict(format!("'{path}' {what} since the job began")));
        }
        let as_made = found.map_or(!*keyed, |found| (found.order(), found.spec.keyed) == (sort.as_slice(), *keyed));
        if !as_made || check_sort(sort, &schema.0).is_err() || (*keyed && check_key(sort, &schema.0).is_err()) {
            return Err(Error::invalid(format!(
                "the rows staged for '{path}' have another sort order or key than the table"
            )));
        }
        let same = |own: &StoredSchema| own.0 == schema.0 && own.same_checks(schema);
        let fits = |found: &Arc<TableState>| match mode {
            StageMode::Overwrite => found.takes_in_place(schema),
            _ => found.schema().is_none_or(same),
        };
        if !found.is_none_or(fits) {
            return Err(Error::conflict(format!(
                "the schema or the constraints of '{path}' have changed since the job began"
            )));
        }
        let Some(expected) = expected.get(path.as_str()) else { return Ok(()) };
        let newest = found.and_then(|found| found.newest()).map(|newest| newest.version);
        let is_newest = newest == Some(*expected) && found.is_some_and(|found| found.active().is_none());
        match (is_newest, newest) {
            (true, _) => Ok(()),
            (false, Some(newest)) if newest == *expected => {
                Err(Error::conflict(format!("rows of '{path}' were written by key since version {expected}")))
            }
            (false, Some(newest)) => {
                Err(Error::conflict(format!("'{path}' is at version {newest}, but version {expected} is expected")))
            }
            (false, None) => {
                Err(Error::conflict(format!("'{path}' does not exist, but version {expected} is expected")))
            }
        }
    }

    fn groups(&self) -> Vec<NewGroup> {
        self.tokens.iter().flat_map(|token| token.groups.iter().cloned()).collect()
    }

    /// Reads the keys of a table with a key. `AlreadyExists` if two parts have one key.
    fn read_keys(&mut self, store: &Store, task: &Task) -> Result<()> {
        let Target { path, schema, sort, keyed, .. } = &self.target;
        if !keyed {
            return Ok(());
        }
        let codec = TableCodec::new(&schema.0, sort)?;
        self.keys = keys_of_groups(store.reader(), &store.env().pool, &codec, &self.groups(), &task.cancel)
            .map_err(|e| e.context(format!("'{path}'")))?
            .into_iter()
            .map(Arc::new)
            .collect();
        let mut all = Keys::default();
        self.keys.iter().flat_map(|keys| keys.iter()).for_each(|key| all.push_key(key));
        let sorted = all.take(all.sorted_places().into_iter().map(|at| at as usize));
        let twice: Vec<usize> = (1..sorted.len()).filter(|at| sorted.get(at - 1) == sorted.get(*at)).collect();
        match planted(Bug::SkipStagedKeys) {
            true => Ok(()),
            false => refuse(&codec, &sorted, &twice, &format!("the parts of '{path}' have more than one row with")),
        }
    }

    /// What the commit does to the table as it is in `base`.
    fn change(&self, store: &Store, base: &State, task: &Task) -> Result<BulkChange> {
        let Target { path, mode, schema, sort, keyed, .. } = &self.target;
        if *keyed && *mode != StageMode::Overwrite {
            let what = if *mode == StageMode::Upsert { ByKey::Upsert } else { ByKey::Insert };
            let checks = Some(schema.bound_checks()?);
            let encoded = Encoded { keys: self.keys.clone(), groups: self.groups(), checks, ..Encoded::default() };
            let codec = TableCodec::new(&schema.0, sort)?;
            let table = table_at(base, path)?;
            return store.bulk_change(what, base, &table, &codec, path, &encoded, task);
        }
        let mut footprint = Footprint::default().with(Read::Binding(path.clone()));
        let existing = base.table_at(path)?;
        let existing = existing.as_ref();
        let kind = if *mode == StageMode::Overwrite { VersionKind::Write } else { VersionKind::Append };
        let mut change = TableChange { groups: self.groups(), ..TableChange::new(kind) };
        if let Some(table) = existing {
            footprint = footprint.with(Read::Schema(table.id));
        }
        if existing.is_none() || *mode == StageMode::Overwrite {
            change.kill = Kill::All;
            let differs = existing.and_then(|table| table.schema()).is_none_or(|known| known != schema);
            change.schema = differs.then(|| schema.clone());
        }
        Ok(BulkChange { footprint, before: Vec::new(), change })
    }
}
