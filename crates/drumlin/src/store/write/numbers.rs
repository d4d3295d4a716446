//! Where the values of generated columns come from: the clock and the randomness of the store, and numbers of sequences.
//!
//! Rows are encoded before their commit's turn, so numbers are taken in a commit of their own, some more than are needed, which the process
//! keeps for later calls. A crash, or a call that is refused, loses them. A transaction may take numbers of a table that it has made itself:
//! nothing else can, and what it took is part of its commit.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, TableId, Timestamp};
use crate::catalog::{Draft, Effect, Sequences, State};
use crate::store::Store;
use crate::table::{Generators, SequenceNumbers, StoredSchema, TableState};

/// How many numbers are taken at once at least.
const TAKEN: i64 = 64;

/// Numbers taken of tables that a transaction has made.
#[derive(Default)]
pub(in crate::store) struct OwnNumbers(Mutex<BTreeMap<(TableId, String), i64>>);

/// Where one call takes numbers from, and its time.
#[derive(Clone)]
pub(in crate::store) struct Numbering {
    store: Store,
    /// Once it is needed: also parts of the call that come later have it.
    now: Arc<OnceLock<Timestamp>>,
    /// In a transaction, the first table that it has made, if it made one, and their numbers.
    own: Option<(TableId, Arc<OwnNumbers>)>,
}

/// The numbers of one table.
struct TableNumbers {
    of: Numbering,
    table: TableId,
    /// What is known where the call begins.
    known: Sequences,
}

impl Store {
    /// Where calls take numbers from that are no part of a transaction.
    pub(in crate::store) fn numbering(&self) -> Numbering {
        Numbering::new(self, None)
    }
}

impl Numbering {
    pub fn new(store: &Store, own: Option<(TableId, Arc<OwnNumbers>)>) -> Self {
        Self { store: store.own(), now: Arc::default(), own }
    }

    /// What makes values for rows of a call on `table`, a table of `state`, that begins now.
    pub fn generators(&self, state: &State, table: &TableState) -> Generators {
        let env = self.store.env();
        let now = match table.schema().is_some_and(StoredSchema::generates) {
            true => *self.now.get_or_init(|| state.time.max(self.store.commits().times().now(state.time))),
            false => state.time,
        };
        let numbers = TableNumbers { of: self.clone(), table: table.id, known: state.sequences.clone() };
        Generators { now, entropy: env.entropy.clone(), numbers: Arc::new(numbers) }
    }
}

impl SequenceNumbers for TableNumbers {
    fn take(&self, sequence: &str, start: i64, count: u64) -> Result<i64> {
        let used_up = || Error::invalid(format!("sequence '{sequence}' has no {count} numbers left"));
        let count = i64::try_from(count).map_err(|_| used_up())?;
        let beyond = |first: i64| first.checked_add(count).ok_or_else(used_up);
        let (store, table) = (&self.of.store, self.table);
        if let Some((from, own)) = &self.of.own
            && table >= *from
        {
            let mut taken = own.0.lock();
            let known = || self.known.next(table, sequence).unwrap_or(start);
            let next = taken.entry((table, sequence.to_owned())).or_insert_with(known);
            let first = (*next).max(start);
            *next = beyond(first)?;
            return Ok(first);
        }
        if let Some(first) = store.reserved().take(table, sequence, count).filter(|first| *first >= start) {
            return Ok(first);
        }
        let wanted = count.max(TAKEN);
        let name = sequence.to_owned();
        let build = move |state: &State| {
            if state.path_of(table).is_none() {
                return Err(Error::conflict("a table was dropped while rows were written to it"));
            }
            let first = state.sequences.next(table, &name).unwrap_or(start).max(start);
            // Fewer than wanted, where no more are left.
            let until = first.saturating_add(wanted);
            if until - first < count {
                return Err(Error::invalid(format!("sequence '{name}' has no {count} numbers left")));
            }
            let effect = Effect::AdvanceSequences { table, next: BTreeMap::from([(name.clone(), until)]) };
            let effects = if planted(Bug::ReserveInMemory) { Vec::new() } else { vec![effect] };
            Ok((effects, first..until))
        };
        let (_, numbers) = store.commit_built(store.current()?, build)?;
        let first = numbers.start;
        store.reserved().keep(table, sequence, beyond(first)?..numbers.end);
        Ok(first)
    }
}

impl OwnNumbers {
    /// Notes what was taken in the draft of the transaction.
    pub fn note(&self, draft: &mut Draft) -> Result<()> {
        let mut by_table: BTreeMap<TableId, BTreeMap<String, i64>> = BTreeMap::new();
        for ((table, sequence), next) in std::mem::take(&mut *self.0.lock()) {
            by_table.entry(table).or_default().insert(sequence, next);
        }
        by_table.retain(|table, _| draft.state().path_of(*table).is_some());
        match by_table.is_empty() {
            true => Ok(()),
            false => {
                let effects = by_table.into_iter().map(|(table, next)| Effect::AdvanceSequences { table, next });
                draft.apply(effects.collect())
            }
        }
    }
}
