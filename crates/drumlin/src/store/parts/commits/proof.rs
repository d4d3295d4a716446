//! Proofs that a commit keeps the unique indexes of tables: what is made before its turn, by reading, and what is checked in the turn,
//! without.
//!
//! Whether a commit needs a proof is decided in its turn, from what it does to tables: no call can forget one. A proof says of a state that
//! the values which the commit adds are nowhere else in it. In the turn rows may have come since: if any have in row groups, or one with
//! such a value in memory, the commit is a conflict, and is prepared again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, TableId};
use crate::block::Address;
use crate::catalog::{Effect, State, TransactionRecord};
use crate::table::{IndexDefinition, SoundValues, TableState};

/// What was found of the tables that a commit adds rows to.
#[derive(Clone, Debug, Default)]
pub(in crate::store) enum UniqueProof {
    /// Nothing was compared.
    #[default]
    None,
    /// It is being looked for: whatever is done is admitted, to see what that is.
    Sought,
    /// By table.
    Found(BTreeMap<TableId, TableProof>),
}

/// What was found of a table.
#[derive(Clone, Debug)]
pub(in crate::store) struct TableProof {
    /// The state that its rows were compared with, and the table there; `None` if it did not exist.
    pub since: Seq,
    pub then: Option<Arc<TableState>>,
    /// The unique indexes.
    pub indexes: Vec<(u64, IndexDefinition)>,
    /// What is added to each.
    pub values: Vec<SoundValues>,
    /// Where the row groups are that come.
    pub groups: BTreeSet<Address>,
}

impl UniqueProof {
    /// `Conflict` if the rows that a transaction adds, which leads from `before` to `after`, were not compared with all others.
    pub fn check(&self, before: &State, after: &State, transaction: &TransactionRecord) -> Result<()> {
        if matches!(self, Self::Sought) || !after.has_unique_indexes() {
            return Ok(());
        }
        for id in adding(transaction) {
            let Some(next) = after.table(id)?.filter(|table| table.has_unique_indexes()) else { continue };
            let now = before.table(id)?;
            let found = match self {
                Self::Found(tables) => tables.get(&id),
                _ => None,
            };
            if !found.is_some_and(|found| found.holds(now.as_deref(), &next)) {
                return Err(Error::conflict("rows with values of a unique index were written in between"));
            }
        }
        Ok(())
    }
}

impl TableProof {
    /// Whether it also holds for what leads from `now` to `next`.
    fn holds(&self, now: Option<&TableState>, next: &TableState) -> bool {
        if !self.is_of(next) || !self.groups.is_superset(&next.new_layers(now)) {
            return false;
        }
        let (then, now) = match (self.then.as_deref(), now) {
            (Some(then), Some(now)) => (then, now),
            (None, None) => return true,
            _ => return false,
        };
        (then.bulk_seq == now.bulk_seq || planted(Bug::SkipValues))
            && self
                .values
                .iter()
                .all(|values| !now.wrote_values(values, then, self.since) && now.has_no_others(values, next))
    }

    /// Whether the table has the same unique indexes.
    fn is_of(&self, table: &TableState) -> bool {
        let now = table.unique_indexes().map(|index| (index.id, &index.definition));
        now.eq(self.indexes.iter().map(|(id, definition)| (*id, definition)))
    }
}

/// The tables that get rows in a transaction, or in which rows are seen again that were not.
pub(in crate::store) fn adding(transaction: &TransactionRecord) -> BTreeSet<TableId> {
    transaction.effects.iter().filter(|effect| effect.may_add_rows()).filter_map(Effect::table).collect()
}
