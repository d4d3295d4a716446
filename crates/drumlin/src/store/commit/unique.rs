//! Compares the rows that a commit adds to tables with unique indexes with all others, before its turn: see *parts/commits/proof.rs*.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Error, Result, TableId};
use crate::catalog::State;
use crate::store::Store;
use crate::store::parts::{Proposal, TableProof, UniqueProof, adding, admit};
use crate::store::read::resolve::{newest, of_table};
use crate::table::{Judge, Judged, TableIndex, TableState};

impl Store {
    /// The same proposal, with what was found of the rows that it adds to tables with unique indexes.
    ///
    /// # Errors
    /// `AlreadyExists` if two rows would have the same values; as reads.
    pub(in crate::store) fn proven(&self, mut proposal: Proposal) -> Result<Proposal> {
        let (base, _pin) = self.commits().newest().pinned();
        if !proposal.seeks_proof(&base) {
            return Ok(proposal);
        }
        let mut after = State::clone(&base);
        proposal.proof = UniqueProof::sought();
        let time = base.time.max(self.commits().times().now(base.time));
        let at = (base.seq.next(), time, self.commits().times().age(time));
        let is_newest = Arc::ptr_eq(&proposal.base, &base);
        // What is refused is refused in its turn, where the state may be newer.
        let Ok((transaction, next)) = admit(&mut after, &mut proposal, is_newest, true, at) else {
            proposal.proof = UniqueProof::default();
            return Ok(proposal);
        };
        let mut found = BTreeMap::new();
        for id in adding(&transaction) {
            if let Some(table) = next.table(id)? {
                found.extend(self.compared(&base, &next, &table)?.map(|proof| (id, proof)));
            }
        }
        proposal.proof = UniqueProof::found(found);
        Ok(proposal)
    }

    /// What is found of a table whose rows in `base` are known to be sound; `None` if it has no unique index.
    fn compared(&self, base: &State, next: &State, table: &Arc<TableState>) -> Result<Option<TableProof>> {
        if table.unique_indexes().next().is_none() {
            return Ok(None);
        }
        let then = base.table(table.id)?;
        let mut values = Vec::new();
        for index in table.unique_indexes() {
            // An index that comes with the commit holds of all rows.
            let known = then.as_deref().filter(|then| then.unique_indexes().any(|known| known.id == index.id));
            values.push(match self.judged(base, next, table, known, index)? {
                Judged::Sound(values) => values,
                Judged::Twice(values) => return Err(twice(next, table.id, index, &values)),
            });
        }
        let groups = table.new_layers(then.as_deref());
        let indexes = table.unique_indexes().map(|index| (index.id, index.definition.clone())).collect();
        Ok(Some(TableProof { since: base.seq, then, indexes, values, groups }))
    }

    fn judged(
        &self,
        base: &State,
        next: &State,
        table: &Arc<TableState>,
        then: Option<&TableState>,
        index: &TableIndex,
    ) -> Result<Judged> {
        // Rows of later commits may be in the same memtable.
        let read_point = crate::table::ReadPoint { seq: base.seq, ..newest(next, table) };
        let judge = Judge { reader: self.reader(), pool: &self.env().pool, table, read_point, then };
        let named = |e: Error| e.context(format!("unique index '{}'", index.definition.name));
        judge.judge(index).map_err(named).map_err(|e| match next.path_of(table.id) {
            Some(path) => of_table(path, e),
            None => e,
        })
    }

    /// Compares all rows of a table's newest version, in one of its indexes.
    ///
    /// # Errors
    /// `AlreadyExists` if two rows have the same values; as reads.
    pub(in crate::store) fn compare_all(&self, table: TableId, index: u64) -> Result<()> {
        self.while_reclaimed(|| {
            let (state, _pin) = self.pinned_state()?;
            let Some(table) = state.table(table)? else { return Ok(()) };
            let Some(index) = table.unique_indexes().find(|own| own.id == index) else { return Ok(()) };
            match self.judged(&state, &state, &table, None, index)? {
                Judged::Sound(_) => Ok(()),
                Judged::Twice(values) => Err(twice(&state, table.id, index, &values)),
            }
        })
    }
}

fn twice(state: &State, table: TableId, index: &TableIndex, values: &str) -> Error {
    let path = state.path_of(table).map_or_else(|| format!("table {table}"), |path| format!("'{path}'"));
    let shown = state.table(table).ok().flatten().and_then(|table| {
        let columns = index.definition.shown(table.schema()?).ok()??;
        Some(columns.0.join(", "))
    });
    let (name, columns) = (&index.definition.name, shown.unwrap_or_default());
    Error::already_exists(format!(
        "{path}: two rows would have {columns} = {values}, which are different in each row because of the unique index '{name}'; nothing \
         was written"
    ))
}
