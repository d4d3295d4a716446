//! Rows written by key, as a state knows them: those of commits not yet published, and those in memory.

use std::sync::Arc;

use crate::base::{Error, Result, Seq, Timestamp};
use crate::catalog::{Effect, State, TransactionRecord};

impl State {
    /// Puts the rows that its last commits wrote by key where readers find them. Called by the thread that publishes the
    /// state, once these commits are durable. Returns the number of bytes.
    pub fn settle(&mut self) -> Result<u64> {
        let mut bytes = 0;
        for id in std::mem::take(&mut self.unsettled) {
            if let Some(table) = self.tables.get_open_mut(id) {
                bytes += Arc::make_mut(table).settle(self.seq, self.time)?;
            }
        }
        Ok(bytes)
    }

    /// Bytes of the rows that must still be settled.
    pub fn unsettled_bytes(&self) -> u64 {
        let tables = self.unsettled.iter().filter_map(|id| self.tables.get_open(*id));
        tables.map(|table| table.unsettled_bytes().0).sum()
    }

    /// Releases the rows that its last commits wrote by key, which are then in no memtable that this state knows: for
    /// callers that only ask what happened.
    pub fn forget_rows(&mut self) {
        for id in std::mem::take(&mut self.unsettled) {
            if let Some(table) = self.tables.get_open_mut(id) {
                Arc::make_mut(table).forget_rows();
            }
        }
    }

    /// `Unavailable` if there is no room in memory for the rows that must be settled.
    pub fn check_room(&self) -> Result<()> {
        /// A memtable takes 4 GiB, of which the ends of its chunks may stay empty.
        const ROOM: u64 = 3 << 30;
        for id in &self.unsettled {
            let (new, there) = self.tables.get_open(*id).map_or((0, 0), |table| table.unsettled_bytes());
            if there + new > ROOM {
                let path = self.paths.get(id).map_or_else(|| format!("table {id}"), |path| format!("'{path}'"));
                return Err(Error::unavailable(format!(
                    "the rows of {path} that wait for a checkpoint would take {} bytes of memory; expected at most \
                     {ROOM}, so checkpoint the store first",
                    there + new
                )));
            }
        }
        Ok(())
    }

    /// The first commit whose rows are only in memtables: the log must be kept from there on.
    pub fn rows_from(&self) -> Option<Seq> {
        self.tables.open().filter_map(|table| table.parts.first()).map(|part| part.from).min()
    }

    /// Puts the rows that a commit wrote where readers find them; this state already holds the rest of the commit.
    pub fn replay_rows(&self, transaction: &TransactionRecord, seq: Seq, time: Timestamp) -> Result<()> {
        transaction.effects.iter().try_for_each(|effect| match effect {
            Effect::WriteRows { table, version, rows } => {
                self.tables.get_open(*table).map_or(Ok(()), |table| table.replay_rows(*version, rows, seq, time))
            }
            _ => Ok(()),
        })
    }

    /// Bytes of all memtables.
    pub fn memtable_bytes(&self) -> u64 {
        let parts = self.tables.open().flat_map(|table| &table.parts);
        parts.map(|part| part.rows().memory_bytes()).sum()
    }

    /// Notes that another state takes the place of this one, whose memtables get no rows of later commits.
    pub fn leave_parts(&self) {
        let parts = self.tables.open().flat_map(|table| &table.parts);
        parts.for_each(|part| part.rows().leave());
    }
}
