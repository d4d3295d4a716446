//! What a reader sees of a table, and how to find the same in a newer state of the table.
//!
//! Pins keep blocks from reclaims of their own process only. A reader in another process that finds a block gone looks
//! at the log again, finds its view in the newest state by its [`ViewPoint`], and goes on after the rows that it has
//! handed out: the order of a version's rows is the same in every state. It fails with `SnapshotExpired` only if the
//! version is gone, or if the rows written by key that it showed have become part of a version together with later
//! ones.

use std::any::Any;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use crate::base::{Error, Result, Seq, Timestamp, Version};
use crate::table::{History, MemRows, ReadPoint, Since, StoredSchema, TableState, VersionKind};

/// What is visible of a table as it was at some commit.
#[derive(Clone)]
pub struct View {
    /// The table.
    pub table: Arc<TableState>,
    /// Which of its rows are visible.
    pub read_point: ReadPoint,
    /// The requested time, if it is between two versions: then `table` is what it was at that time.
    pub time: Option<Timestamp>,
    /// Prevents this process from reclaiming its blocks.
    pub pin: Option<Arc<dyn Any + Send + Sync>>,
}

/// Finds what a view shows in the newest state, since blocks of older states may be gone; `SnapshotExpired` if it is no
/// longer there.
pub type Renew = Arc<dyn Fn(&View) -> Result<View> + Send + Sync>;

/// What a view shows, in a few bytes: enough to find it again in a later state, by any process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewPoint {
    version: Version,
    /// When that version was made.
    made: Timestamp,
    /// The last commit whose rows are visible, if rows that belong to no version yet are.
    since: Option<Seq>,
    /// The requested time, if it is between two versions.
    pub time: Option<Timestamp>,
    /// The version that those rows will belong to.
    next_version: Version,
    /// The last commit that changed which rows there are.
    rows_seq: Seq,
    /// Rows that have expired then are not visible, if rows expire. It is encoded beside it.
    #[serde(skip)]
    pub instant: Option<Timestamp>,
}

impl ViewPoint {
    /// The read point that shows the same in `newer`, the table at the later commit `seq`. `SnapshotExpired` if there is
    /// none: the version was deleted, or rows that belonged to no version now belong to one, together with later rows.
    pub fn read_point_in(&self, newer: &TableState, seq: Seq) -> Result<ReadPoint> {
        let (version, instant) = (self.version, self.instant);
        if newer.version(version).is_none_or(|record| record.time != self.made) {
            return Err(Error::snapshot_expired(format!("version {version} no longer exists; read another one")));
        }
        let Some(since) = self.since else { return Ok(ReadPoint { version, since: false, seq, instant }) };
        let still = newer.active().is_some_and(|part| part.version == self.next_version);
        if still && newer.newest().is_some_and(|newest| newest.version == version) {
            // Rows keep the number of the commit that wrote them.
            return Ok(ReadPoint { version, since: true, seq: since, instant });
        }
        let own = newer.version(self.next_version).filter(|own| own.kind == VersionKind::Rows);
        match own.filter(|_| newer.rows_seq == self.rows_seq) {
            Some(own) => Ok(ReadPoint { version: own.version, since: false, seq, instant }),
            None => Err(Error::snapshot_expired(format!(
                "the rows written by key after version {version} have become part of a later version, together with \
                 others; read again"
            ))),
        }
    }
}

impl View {
    /// What it shows.
    pub fn point(&self) -> ViewPoint {
        let ReadPoint { version, seq, instant, .. } = self.read_point;
        ViewPoint {
            version,
            made: self.table.version(version).map_or(Timestamp(0), |record| record.time),
            since: self.shows_unnumbered_rows().then_some(seq),
            time: self.time,
            next_version: self.table.next_version(),
            rows_seq: self.table.rows_seq,
            instant: instant.filter(|_| self.table.schema_of(version).is_ok_and(StoredSchema::expires)),
        }
    }

    /// Whether it shows rows written by key that belong to no version yet.
    pub fn shows_unnumbered_rows(&self) -> bool {
        self.read_point.since && self.table.active().is_some()
    }

    /// What was visible of `table` at `time`, in the state of the commit `seq`; `history` reads a history.
    pub(crate) fn at(
        table: &Arc<TableState>,
        time: Timestamp,
        seq: Seq,
        history: impl FnOnce(&History) -> Result<Arc<MemRows>>,
    ) -> Result<Self> {
        let (version, since) = table.at(time)?;
        // The same for ever: what has expired by then.
        let instant = Some(time);
        let plain = ReadPoint { version, since: false, seq, instant };
        let shown = match since {
            Since::Nothing => None,
            Since::Memory(part) => {
                let last = part.rows().last_at(time, seq);
                (last > Seq(0)).then(|| (table.up_to(part), last))
            }
            Since::History(history_of) => {
                let rows = history(history_of)?;
                let last = rows.last_at(time, Seq(u64::MAX >> 1));
                (last > Seq(0)).then(|| (table.with_history(history_of, rows), last))
            }
        };
        Ok(match shown {
            None => Self { table: table.clone(), read_point: plain, time: None, pin: None },
            Some((table, seq)) => {
                let read_point = ReadPoint { version, since: true, seq, instant };
                Self { table: Arc::new(table), read_point, time: Some(time), pin: None }
            }
        })
    }

    /// The columns of its version.
    ///
    /// # Errors
    /// `NotFound` if the version is gone.
    pub fn schema(&self) -> Result<SchemaRef> {
        Ok(self.table.schema_of(self.read_point.version)?.0.clone())
    }

    /// The columns that its rows are ordered by.
    ///
    /// # Errors
    /// `NotFound` if the version is gone.
    pub fn order(&self) -> Result<&[String]> {
        self.table.order_of(self.read_point.version)
    }

    /// The error if its version is gone.
    pub fn gone(&self) -> Error {
        Error::snapshot_expired(format!("version {} no longer exists; read another one", self.read_point.version))
    }
}
