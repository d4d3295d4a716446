//! Compares the rows that a commit adds to tables with unique indexes with all others, before its turn: see *parts/commits/proof.rs*.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Error, Result, TableId};
use crate::catalog::State;
use crate::store::Store;
use crate::store::parts::{Proposal, TableProof, UniqueProof, adding, admit};
use crate::store::read::resolve::{newest, of_table};
use crate::table::{Judge, Judged, ReadPoint, SoundValues, TableIndex, TableState};

impl Store {
    /// The same proposal, with what was found of the rows that it adds to tables with unique indexes.
    ///
    /// # Errors
    /// `AlreadyExists` if two rows would have the same values; as reads.
    pub(in crate::store) fn proven(&self, mut proposal: Proposal) -> Result<Proposal> {
        if !proposal.seeks_proof(&self.commits().newest().state()) {
            return Ok(proposal);
        }
        let (base, _pin) = self.commits().newest().pinned();
        let mut after = State::clone(&base);
        proposal.proof = UniqueProof::Sought;
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
            if let Some(table) = next.table(id)?.filter(|table| table.has_unique_indexes()) {
                found.insert(id, self.compared(&base, &next, &table)?);
            }
        }
        proposal.proof = UniqueProof::Found(found);
        Ok(proposal)
    }

    /// What is found of a table with unique indexes whose rows in `base` are known to be sound.
    fn compared(&self, base: &State, next: &State, table: &TableState) -> Result<TableProof> {
        let then = base.table(table.id)?;
        let mut values = Vec::new();
        for index in table.unique_indexes() {
            // An index that comes with the commit holds of all rows.
            let known = then.as_deref().filter(|then| then.unique_indexes().any(|known| known.id == index.id));
            values.push(self.judged(base, next, table, known, index)?);
        }
        let groups = table.new_layers(then.as_deref());
        let indexes = table.unique_indexes().map(|index| (index.id, index.definition.clone())).collect();
        Ok(TableProof { since: base.seq, then, indexes, values, groups })
    }

    /// The values that an index of `table`, as it is in `next`, has got since it was `then`; `AlreadyExists` if two rows have one of them.
    fn judged(
        &self,
        base: &State,
        next: &State,
        table: &TableState,
        then: Option<&TableState>,
        index: &TableIndex,
    ) -> Result<SoundValues> {
        // Rows of later commits may be in the same memtable.
        let read_point = ReadPoint { seq: base.seq, ..newest(self, next, table) };
        let judge = Judge { reader: self.reader(), pool: &self.env().pool, table, read_point, then };
        let named = |e: Error| e.context(format!("unique index '{}'", index.definition.name));
        let judged = judge.judge(index).map_err(named).map_err(|e| match next.path_of(table.id) {
            Some(path) => of_table(path, e),
            None => e,
        });
        match judged? {
            Judged::Sound(values) => Ok(values),
            Judged::Twice(values) => Err(twice(next, table, index, &values)),
        }
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
            self.judged(&state, &state, &table, None, index).map(drop)
        })
    }
}

fn twice(state: &State, table: &TableState, index: &TableIndex, values: &str) -> Error {
    let path = state.path_of(table.id).map_or_else(|| format!("table {}", table.id), |path| format!("'{path}'"));
    let shown = table.schema().and_then(|schema| index.definition.shown(schema).ok()?);
    let (name, columns) = (&index.definition.name, shown.map(|(columns, _)| columns.join(", ")).unwrap_or_default());
    Error::already_exists(format!(
        "{path}: two rows would have {columns} = {values}, which are different in each row because of the unique index '{name}'; nothing \
         was written"
    ))
}
