//! What is proposed for a commit, and how it is admitted in its turn: its footprint is checked against what was committed
//! since it was prepared, and its effects are made for the state at that time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::proof::UniqueProof;
use super::view_proof::{ViewProof, refuse_changes_of_views};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, TableId, Timestamp, Version};
use crate::catalog::{Draft, Effect, Footprint, State, TransactionRecord, carry_over, check_written};
use crate::table::Note;

/// Makes the effects of a transaction from the state that they will be applied to. Quick, and without I/O; called again where
/// another process has committed in between.
pub(in crate::store) type Build = Box<dyn FnMut(&State) -> Result<Vec<Effect>> + Send>;

/// Applies a transaction to the newest state. Quick, and without I/O; called again where another process has committed
/// in between.
pub(in crate::store) type InTurn = Box<dyn FnMut(&mut Draft) -> Result<()> + Send>;

/// What a transaction does.
pub(in crate::store) enum Work {
    /// Makes its effects in its turn.
    Build(Build),
    /// Is applied to the newest state, in its turn.
    InTurn(InTurn),
    /// Has been applied to the state that it was prepared on.
    Done(Box<Draft>),
}

impl Work {
    /// Effects made on `base`; deletions by position are carried over to where the rows are in its turn.
    pub fn carried(base: Arc<State>, effects: Vec<Effect>) -> Self {
        Work::Build(Box::new(move |now| {
            let mut effects = effects.clone();
            carry_over(&mut effects, &base, now)?;
            Ok(effects)
        }))
    }
}

/// A transaction that waits for its turn.
pub(in crate::store) struct Proposal {
    /// What it was prepared on.
    pub base: Arc<State>,
    /// What it has read of that.
    pub footprint: Footprint,
    /// What it does. If it has no effect, nothing is committed.
    pub work: Work,
    /// When the call began that prepares it, if that takes time.
    began: Option<Timestamp>,
    /// What its writer says of it.
    note: Note,
    /// That the rows which it adds keep unique indexes.
    pub proof: UniqueProof,
    /// See [`Proposal::adding_rows`].
    adds_rows: bool,
    /// What it changes in views.
    pub views: ViewProof,
    /// See [`Proposal::else_behind`].
    else_behind: bool,
    /// See [`Proposal::of_views`].
    of_views: bool,
}

impl Proposal {
    pub fn new(base: Arc<State>, footprint: Footprint, work: Work) -> Self {
        Self {
            base,
            footprint,
            work,
            began: None,
            note: Note::default(),
            proof: UniqueProof::default(),
            adds_rows: false,
            views: ViewProof::default(),
            else_behind: false,
            of_views: false,
        }
    }

    /// One of effects made on `base`; deletions by position are carried over.
    pub fn carried(base: Arc<State>, footprint: Footprint, effects: Vec<Effect>) -> Self {
        Self::new(base.clone(), footprint, Work::carried(base, effects))
    }

    /// The same, which may add rows in its turn, if `adds`, though that is not known from its kind: else it is not compared with unique
    /// indexes, and refused if it does.
    pub fn adding_rows(self, adds: bool) -> Self {
        Self { adds_rows: adds, ..self }
    }

    /// The same, which nobody prepares again: where the sources of views have changed, these are behind afterwards.
    pub fn else_behind(self) -> Self {
        Self { else_behind: true, ..self }
    }

    /// Whether it may change the rows of views.
    pub fn is_of_views(&self) -> bool {
        self.of_views
    }

    /// The same, which may change the rows of views.
    pub fn of_views(self) -> Self {
        Self { of_views: true, ..self }
    }

    /// Whether rows that it adds on the state `now` are to be compared with unique indexes before its turn.
    pub fn seeks_proof(&mut self, now: &State) -> bool {
        let own = matches!(&self.work, Work::Done(draft) if draft.state().has_unique_indexes());
        if !own && !now.has_unique_indexes() && !self.adds_rows {
            return false;
        }
        match &mut self.work {
            Work::Done(draft) => draft.effects().iter().any(|effect| concerns_unique(effect, draft.state())),
            Work::Build(build) => {
                build(now).is_ok_and(|effects| effects.iter().any(|effect| concerns_unique(effect, now)))
            }
            Work::InTurn(_) => self.adds_rows,
        }
    }

    /// The same, of a call that began at `began`.
    pub fn since(self, began: Timestamp) -> Self {
        Self { began: Some(began), ..self }
    }

    /// The same, by someone who says so.
    pub fn with_note(mut self, message: Option<&str>, writer: Option<&str>) -> Self {
        self.note.message = message.map(str::to_owned);
        self.note.writer = writer.map(str::to_owned);
        self
    }

    /// What the transaction that led from `before` to `after` tells, if anything.
    fn story(
        &self,
        transaction: &TransactionRecord,
        before: &State,
        after: &State,
        time: Timestamp,
    ) -> Result<Option<Effect>> {
        let made = transaction.effects.iter().filter(|effect| !is_upkeep(effect));
        let tables: BTreeSet<TableId> = made.filter_map(version_of).collect();
        let mut versions: Vec<(TableId, Version)> = Vec::new();
        for id in tables {
            let earlier = before.table(id)?.filter(|_| !planted(Bug::TellAll));
            // Rows that were in memory may have got a version first, of which nothing is said.
            let frozen = |effect: &&Effect| matches!(effect, Effect::FreezeRows { table } if *table == id);
            let frozen = transaction.effects.iter().filter(frozen).count() as u64;
            let next = earlier.map_or(Version(0), |table| Version(table.next_version().0 + frozen));
            let Some(after) = after.table(id)? else { continue };
            let made = after.versions.iter().rev().map(|record| record.version);
            versions.extend(made.take_while(|version| *version >= next).map(|version| (id, version)));
        }
        let duration = |began: Timestamp| u64::try_from(time.0 - began.0).unwrap_or(0);
        let duration_micros = self.began.filter(|_| !versions.is_empty()).map(duration);
        let note = Note { duration_micros, ..self.note.clone() };
        let asked = !transaction.effects.iter().all(is_upkeep);
        let says = asked && note.message.is_some() || !versions.is_empty() && !note.is_empty();
        Ok(says.then_some(Effect::Tell { note, versions }))
    }
}

/// Checks a proposal and applies it to `working`; on an error, leaves that as it is. `newest` says that `working` is what
/// the proposal was prepared on, `again` that the proposal may have to be admitted again. Returns the transaction, and the
/// state after what was proposed, before retention.
pub(in crate::store) fn admit(
    working: &mut State,
    proposal: &mut Proposal,
    newest: bool,
    again: bool,
    (seq, time, ages): (Seq, Timestamp, Timestamp),
) -> Result<(TransactionRecord, State)> {
    let Proposal { base, footprint, work, proof, views, else_behind, of_views, .. } = proposal;
    if !newest && !planted(Bug::SkipFootprint) {
        footprint.check(base, working)?;
    }
    footprint.check_expiry(base, time)?;
    let fresh = || Draft::new(working.clone(), seq, time);
    let draft = match work {
        // What is done already need not be redone, except on tables, which note the time of their commit.
        Work::Done(draft) if newest && draft.seq() == seq && draft.is_of_nodes() => match again {
            true => Draft::clone(draft),
            false => std::mem::replace(&mut **draft, Draft::new(State::default(), seq, time)),
        },
        Work::Done(draft) => {
            check_written(draft.effects(), base, working)?;
            let mut again = fresh();
            let redone = again.redo(draft.effects().to_vec(), base);
            redone
                .map_err(|e| Error::conflict(format!("the state that it is based on has changed: {}", e.message())))?;
            // What its effects entail may depend on nodes that it did not read.
            if !again.did_the_same(draft.effects())? {
                return Err(Error::conflict("its effects have changed since it was made"));
            }
            again
        }
        Work::Build(build) => {
            let mut draft = fresh();
            draft.apply(build(working)?)?;
            draft
        }
        Work::InTurn(work) => {
            let mut draft = fresh();
            work(&mut draft)?;
            draft
        }
    };
    let (mut next, mut transaction) = draft.into_parts();
    proof.check(working, &next, &transaction)?;
    if !*of_views {
        refuse_changes_of_views(working, &transaction)?;
    }
    transaction.effects.extend(views.admit(working, &mut next, &transaction, *else_behind, (seq, time))?);
    if !transaction.effects.is_empty()
        && let Some(story) = proposal.story(&transaction, working, &next, time)?
    {
        let told = TransactionRecord { effects: vec![story] };
        next.apply(&told, seq, time)?;
        transaction.effects.extend(told.effects);
    }
    let after = next.clone();
    let expired = expiry(&next, transaction.effects.iter().filter_map(version_of), ages)?;
    let expired = TransactionRecord { effects: expired };
    next.apply(&expired, seq, time)?;
    next.check_room()?;
    transaction.effects.extend(expired.effects);
    *working = next;
    Ok((transaction, after))
}

/// Whether an effect may add rows to a table that has unique indexes in `state`, or makes them.
fn concerns_unique(effect: &Effect, state: &State) -> bool {
    let has_unique = |id: TableId| state.table(id).ok().flatten().is_some_and(|table| table.has_unique_indexes());
    let makes = matches!(effect, Effect::PutIndex { .. } | Effect::CopyTable { .. });
    effect.may_add_rows() && (makes || effect.table().is_some_and(has_unique))
}

/// The table that an effect makes a version of.
fn version_of(effect: &Effect) -> Option<TableId> {
    match effect {
        // What was kept for it may no longer be needed.
        Effect::PutFollower { table, .. } => Some(*table),
        effect => effect.version().map(|(table, _)| table),
    }
}

/// Whether an effect is the store's own, even in a commit that a caller asked for: nothing is said of it.
fn is_upkeep(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::AddBlocks { .. }
            | Effect::AddInline { .. }
            | Effect::Reclaimed { .. }
            | Effect::PutFollower { .. }
            | Effect::MarkView { .. }
            | Effect::OpenSession { .. }
            | Effect::FenceSessions { .. }
            | Effect::ForgetSessions { .. }
            | Effect::OpenHold { .. }
            | Effect::Beat { .. }
            | Effect::EndHolds { .. }
            | Effect::Presences(_)
            | Effect::ForgetJobs { .. }
            | Effect::FreezeRows { .. }
            | Effect::FlushRows { .. }
            | Effect::FlushWithHistory { .. }
            | Effect::RewriteTable { .. }
            | Effect::ReorderTable { .. }
            | Effect::MoveGroups { .. }
            | Effect::MoveShared { .. }
            | Effect::ShrinkGroups { .. }
            | Effect::TriggerDone { .. }
    )
}

/// Refuses a transaction that the log cannot take.
pub(in crate::store) fn too_large(transaction: &TransactionRecord, after: &State, bytes: u64, limit: u64) -> Error {
    let largest = transaction.largest();
    let path = largest.and_then(Effect::table).and_then(|table| after.path_of(table));
    let most = match (path, largest) {
        (Some(path), _) => format!("most of it for '{path}'"),
        (None, Some(effect)) => format!("most of it because it {}", effect.name()),
        (None, None) => "without any change".to_owned(),
    };
    Error::invalid(format!(
        "the commit would take {bytes} bytes in the log, {most}; expected at most {limit}, so do it in parts"
    ))
}

/// The versions that retention removes from `tables` at `now`.
pub(in crate::store) fn expiry(
    state: &State,
    tables: impl Iterator<Item = TableId>,
    now: Timestamp,
) -> Result<Vec<Effect>> {
    let tables: BTreeSet<TableId> = tables.collect();
    let mut effects = Vec::new();
    for id in tables {
        let Some(table) = state.table(id)? else { continue };
        let versions = state.expired_of(&table, now);
        effects.extend((!versions.is_empty()).then_some(Effect::DeleteVersions { table: id, versions }));
    }
    Ok(effects)
}
