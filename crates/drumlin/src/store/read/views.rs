//! Reads versions of tables.

use std::sync::Arc;

use super::resolve::{AsOf, resolve, table_at};
use crate::base::{Cancel, Error, ErrorKind, Result, Seq, Timestamp};
use crate::block::MissingBlock;
use crate::catalog::{Path, Read, StalePolicy, State};
use crate::filter::Filter;
use crate::store::Store;
use crate::store::parts::Pin;
use crate::table::{ReadAs, Renew, Scan, ScanOptions, TableState, View, ViewPoint, read_history};

/// How often a read is started again because another process has reclaimed blocks.
pub(in crate::store) const ATTEMPTS: usize = 5;

/// What to read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Which version. Default: the newest.
    pub as_of: AsOf,
    /// The columns, in the order wanted. Default: all.
    pub columns: Option<Vec<String>>,
    /// Only rows for which this is true. Default: all.
    pub filter: Option<Filter>,
    /// Without this many rows at the beginning, of those that the filter keeps. Default: 0.
    pub offset: u64,
    /// Only this many rows from the beginning, after the offset. Default: all.
    pub limit: Option<u64>,
    /// Only this many rows from the end. Default: all.
    pub tail: Option<u64>,
    /// Whether to return the cheapest Arrow types instead of the table's, such as dictionaries for strings. Default: the table's.
    pub native: bool,
    /// Stops the scan. Default: nothing does.
    pub cancel: Cancel,
}

impl ReadOptions {
    /// What to read of a version.
    pub fn of(as_of: AsOf, scan: ScanOptions) -> Self {
        let ScanOptions { columns, filter, offset, limit, tail, native, cancel, name: _ } = scan;
        Self { as_of, columns, filter, offset, limit, tail, native, cancel }
    }

    /// Which columns and rows.
    pub fn scan(&self) -> ScanOptions {
        let Self { as_of: _, columns, filter, offset, limit, tail, native, cancel } = self.clone();
        ScanOptions { columns, filter, offset, limit, tail, native, cancel, name: None }
    }
}

/// Of the newest version.
impl From<ScanOptions> for ReadOptions {
    fn from(scan: ScanOptions) -> Self {
        Self::of(AsOf::Newest, scan)
    }
}

impl Store {
    /// Reads what `view` shows, in the columns of `read_as` if they are not the table's own; if blocks are gone, `renew` finds
    /// it again.
    pub(in crate::store) fn scan_view(
        &self,
        view: View,
        read_as: Option<&ReadAs>,
        options: &ScanOptions,
        renew: Option<Renew>,
    ) -> Result<Scan> {
        Scan::new(self.reader().clone(), self.env().pool.clone(), view, read_as, options, renew)
    }

    /// How reads continue if another process reclaims their blocks.
    pub(in crate::store) fn renewal(&self) -> Option<Renew> {
        if self.reader().missing() != MissingBlock::Reclaimed {
            return None;
        }
        // This must not keep the store open.
        let store = self.own();
        Some(Arc::new(move |view: &View| {
            store.refresh()?;
            let found = store.find_again(view)?;
            match Arc::ptr_eq(&found.table, &view.table) || found.table == view.table {
                true => Err(Error::corrupt("a block that is still needed is missing")),
                false => Ok(found),
            }
        }))
    }

    /// What a view shows, in the newest state known; `SnapshotExpired` if it is gone.
    pub(in crate::store) fn find_again(&self, view: &View) -> Result<View> {
        let (state, pin) = self.pinned_state()?;
        let table = state.table(view.table.id)?.ok_or_else(|| view.gone())?;
        self.view_at_point(&table, &view.point(), &state, &pin)
    }

    /// What a view of `table` showed that was described by `point`; `SnapshotExpired` if it is gone.
    pub(in crate::store) fn view_at_point(
        &self,
        table: &Arc<TableState>,
        point: &ViewPoint,
        state: &State,
        pin: &Arc<Pin>,
    ) -> Result<View> {
        let pin = Some(pin.clone() as Arc<dyn std::any::Any + Send + Sync>);
        if let Some(time) = point.time {
            let found = self.view_at(table, time, state.seq).map_err(|e| match e.kind() {
                ErrorKind::NotFound => Error::snapshot_expired(e.message()),
                _ => e,
            })?;
            return Ok(View { pin, ..found });
        }
        Ok(View { read_point: point.read_point_in(table, state.seq)?, table: table.clone(), time: None, pin })
    }

    /// What `as_of` shows in `state` of the table at `path`.
    pub(in crate::store) fn view_of(&self, state: &State, pin: &Arc<Pin>, path: &str, as_of: &AsOf) -> Result<View> {
        let path = Path::new(path)?;
        let pin = Some(pin.clone() as Arc<dyn std::any::Any + Send + Sync>);
        let as_of = &*as_of.settled(state);
        match as_of {
            // Else no commit is later.
            AsOf::Time(time) if *time < state.time => {
                let found = self.view_at(&table_at(state, &path)?, *time, state.seq);
                Ok(View { pin, ..found.map_err(|e| e.context(format!("'{path}'")))? })
            }
            _ => {
                let (table, seen) = resolve(state, &path, as_of)?;
                Ok(View { read_point: seen.read_point(self, state, &table), table, time: None, pin })
            }
        }
    }

    /// What a table showed at a time.
    fn view_at(&self, table: &Arc<TableState>, time: Timestamp, seq: Seq) -> Result<View> {
        View::at(table, time, seq, |history| read_history(self.reader(), &self.env().pool, table, history))
    }

    /// Runs a read that has returned nothing yet; again, on what others have committed, if blocks are gone.
    pub(in crate::store) fn while_reclaimed<T>(&self, mut read: impl FnMut() -> Result<T>) -> Result<T> {
        for _ in 0..ATTEMPTS {
            match read() {
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => drop(self.refresh()?),
                done => return done,
            }
        }
        read()
    }

    /// The newest state, for a read of what `reads` says: views that it reads are up to date, or are read as they are by their own choice.
    pub(in crate::store) fn pinned_with_views(
        &self,
        reads: impl Fn(&State) -> Result<Vec<Read>>,
    ) -> Result<(Arc<State>, Arc<Pin>)> {
        let (state, pin) = self.pinned_state()?;
        if !state.row_views.any_behind() {
            return Ok((state, pin));
        }
        let reads = reads(&state)?;
        // Of versions and snapshots nothing changes any more.
        if reads.iter().any(|read| matches!(read, Read::Versions(_) | Read::Snapshot(_))) {
            return Ok((state, pin));
        }
        for read in reads {
            let Read::Rows(table) = read else { continue };
            let Some(view) = state.row_views.get(table).filter(|view| !view.behind.is_empty()) else { continue };
            let behind = |why: &str| {
                let path = state.path_of(table).map_or_else(String::new, ToString::to_string);
                let sources = view.behind.len();
                Error::condition_failed(format!(
                    "the view '{path}' is behind with {sources} of its sources{why}; call catch_up on it, or make it with \
                     stale='read' to read it as it is"
                ))
            };
            match view.definition.stale {
                StalePolicy::Read => {}
                StalePolicy::Error => return Err(behind("")),
                StalePolicy::Wait if self.setting().is_read_only() => {
                    return Err(behind(", and the store is open for reading only"));
                }
                StalePolicy::Wait => {
                    self.catch_view_up(table, None).map_err(|e| behind(&format!(": {e}")).with_source(e))?;
                }
            }
        }
        self.pinned_state()
    }
}
