//! The feed of the rows of a table: what each commit inserted, updated and deleted, in the order of the commits.
//!
//! It reads neither the log nor what commits kept in memory: the versions of a table, the rows that are in memory, and the histories of
//! those that are no longer, tell all that its commits did as long as the versions are listed. So a feed goes on after checkpoints,
//! however far behind it is, and costs nothing while nobody follows.
//!
//! What was written by key comes commit by commit, each found by its time: no two commits have the same. Then comes what the
//! version changed that numbers these rows, if it did more than that. Changes of columns alone, of layout, and rows that were erased are
//! not told; rows that expire are, when a checkpoint deletes them or others take their places.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

use super::changes::SHARED_POLL;
use super::place::FeedPlace;
use super::row_versions::{OpenVersion, Source, WrittenKeys, decoded, last_seq, rows_of, selected, while_written};
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Error, Result, Seq, Timestamp, Version, waiting};
use crate::catalog::{Path, State};
use crate::filter::Filter;
use crate::memtable::Keys;
use crate::store::Store;
use crate::store::parts::{OpenFeed, Pin};
use crate::store::read::diff::Diff;
use crate::store::read::resolve::of_table;
use crate::table::{
    MemRows, MemtablePart, ReadPoint, StoredSchema, TableState, VersionKind, View, is_hidden, read_history,
    written_after, written_keys,
};

/// How long a feed waits at most before it looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Rows that one commit changed in a table.
#[derive(Clone, Debug)]
pub struct RowChanges {
    /// The version that they belong to; if rows were written by key, the one that will number them.
    pub version: Version,
    /// What made it.
    pub kind: VersionKind,
    /// The time of the commit.
    pub time: Timestamp,
    /// The rows, in the columns that the table had before or after.
    pub rows: RecordBatch,
    /// What happened to each: `delete`, `insert`, or `update_before` and `update_after`, one after the other.
    pub changes: StringArray,
    /// Where to go on after them.
    pub place: FeedPlace,
}

impl RowChanges {
    /// The rows with three more columns: `_change`, `_version` and `_time`, which take the place of columns of these names.
    ///
    /// # Errors
    /// `Internal`, which does not happen.
    pub fn to_batch(&self) -> Result<RecordBatch> {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let added = [("_change", DataType::Utf8), ("_version", DataType::UInt64), ("_time", utc)];
        let schema = self.rows.schema();
        let own: Vec<usize> = (0..schema.fields().len())
            .filter(|at| {
                added.iter().all(|(name, _)| name != schema.field(*at).name()) && !is_hidden(schema.field(*at))
            })
            .collect();
        let rows = self.rows.project(&own)?;
        let fields = rows.schema().fields().iter().cloned().collect::<Vec<_>>().into_iter();
        let fields = fields.chain(added.map(|(name, data_type)| Arc::new(Field::new(name, data_type, false))));
        let n = rows.num_rows();
        let mut columns = rows.columns().to_vec();
        columns.push(Arc::new(self.changes.clone()));
        columns.push(Arc::new(UInt64Array::from_value(self.version.0, n)));
        columns.push(Arc::new(TimestampMicrosecondArray::from_value(self.time.0, n).with_timezone("UTC")));
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns)?)
    }
}

/// The rows that commits change in a table, in their order, as they are made. See [`crate::Table::follow`].
pub struct RowFeed {
    pub(super) store: Store,
    pub(super) path: Path,
    /// In the ids of columns.
    filter: Option<Filter>,
    cancel: Cancel,
    pub(super) place: FeedPlace,
    /// The name of the follower whose consumer it is, and the epoch of that.
    pub(super) follower: Option<(String, u64)>,
    /// Commits that wrote rows by key, still to be handed out.
    written: VecDeque<RowChanges>,
    open: Option<OpenVersion>,
}

/// A feed without a store.
pub(super) struct PausedFeed {
    path: Path,
    filter: Option<Filter>,
    cancel: Cancel,
    place: FeedPlace,
    follower: Option<(String, u64)>,
}

impl PausedFeed {
    /// The feed, where it was.
    pub fn resume(self, store: Store) -> RowFeed {
        RowFeed::new(store, self.path, self.filter, self.cancel, self.place, self.follower)
    }
}

impl RowFeed {
    /// The feed from `place` on; the filter is in the ids of columns.
    pub(super) fn new(
        store: Store,
        path: Path,
        filter: Option<Filter>,
        cancel: Cancel,
        place: FeedPlace,
        follower: Option<(String, u64)>,
    ) -> Self {
        Self { store, path, filter, cancel, place, follower, written: VecDeque::new(), open: None }
    }

    /// What is left of it while nobody reads it, without the store.
    pub(super) fn pause(self) -> PausedFeed {
        let Self { path, filter, cancel, place, follower, .. } = self;
        PausedFeed { path, filter, cancel, place, follower }
    }

    /// Where it is: a feed that begins there goes on with what this one would hand out next.
    pub fn place(&self) -> FeedPlace {
        self.place
    }

    /// The next rows: of one commit, some thousands at most at a time unless they were written by key in one call. `None` if there are none
    /// within `wait`; with `wait` `None` it waits until there are some or the store is closed. After an error, the next call goes on where
    /// this one was.
    ///
    /// # Errors
    /// `SnapshotExpired` if a version that it needs is no longer listed; `NotFound` if the table was dropped; `InvalidArgument` if a column
    /// of the filter was dropped, or, in a store that is only read, if rows in memory must become row groups first; `Closed`.
    pub fn next(&mut self, wait: Option<Duration>) -> Result<Option<RowChanges>> {
        let feeds = self.store.commits().feeds().clone();
        let follows = self.store.setting().is_read_only() || self.store.setting().is_shared();
        let poll = if self.store.setting().is_shared() { SHARED_POLL } else { LOOK };
        let mut waited = Duration::ZERO;
        let mut joined: Option<OpenFeed> = None;
        loop {
            self.store.setting().check()?;
            self.cancel.check()?;
            waiting::check()?;
            let wakes = feeds.wakes();
            if follows && self.is_idle() {
                self.store.refresh()?;
            }
            let (seq, found) = self.look()?;
            if found.is_some() || wait.is_some_and(|wait| waited >= wait) {
                return Ok(found);
            }
            // From here on commits wake it; the one that came in between is looked at first.
            let Some(feed) = &joined else {
                joined = Some(OpenFeed::join(&feeds));
                continue;
            };
            feed.passed(seq);
            let step = wait.map_or(poll, |wait| (wait - waited).min(poll));
            feed.wait(seq, wakes, Some(step));
            waited += step;
        }
    }

    fn is_idle(&self) -> bool {
        self.written.is_empty() && self.open.is_none()
    }

    /// The next rows that there are now, and up to which commit it has looked.
    fn look(&mut self) -> Result<(Seq, Option<RowChanges>)> {
        let begun = self.place;
        let found = self.search();
        if found.is_err() {
            // What was under way is begun again, where it was.
            (self.open, self.written) = (None, VecDeque::new());
            self.place = begun;
        }
        found.map_err(|e| of_table(&self.path, e))
    }

    fn search(&mut self) -> Result<(Seq, Option<RowChanges>)> {
        loop {
            self.cancel.check()?;
            if let Some(next) = self.written.pop_front() {
                self.place = next.place;
                if next.rows.num_rows() > 0 {
                    return Ok((Seq(0), Some(next)));
                }
                continue;
            }
            if let Some(open) = &mut self.open {
                match open.next(&self.store, &self.cancel)? {
                    Some((rows, changes)) => {
                        let (version, kind, time) = (open.version, open.kind, open.time);
                        if let Some((rows, changes)) = self.left(rows, changes)? {
                            return Ok((
                                Seq(0),
                                Some(RowChanges { version, kind, time, rows, changes, place: self.place }),
                            ));
                        }
                    }
                    None => self.close_version(),
                }
                continue;
            }
            let (state, pin) = self.store.pinned_state()?;
            if !self.advance(&state, &pin)? {
                return Ok((state.seq, None));
            }
        }
    }

    /// Moves the place past the version that is under way, if all of it was handed out.
    pub(super) fn settle_place(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        match open.is_done(&self.store, &self.cancel) {
            Ok(true) => self.close_version(),
            Ok(false) => {}
            Err(e) => {
                self.open = None;
                return Err(e);
            }
        }
        Ok(())
    }

    /// Goes on at `place`.
    pub(super) fn move_to(&mut self, place: FeedPlace) {
        (self.place, self.open, self.written) = (place, None, VecDeque::new());
    }

    fn close_version(&mut self) {
        if let Some(open) = self.open.take() {
            self.place = FeedPlace { version: Some(open.version), since: None, rows: 0, ..self.place };
        }
    }

    /// Those rows of the next commit that were not handed out before; the place moves on.
    fn left(&mut self, rows: RecordBatch, changes: StringArray) -> Result<Option<(RecordBatch, StringArray)>> {
        let open = self.open.as_mut().expect("rows come of it");
        let n = rows.num_rows() as u64;
        let first = open.done as u64;
        open.done += n as usize;
        let skipped = self.place.rows.saturating_sub(first).min(n);
        self.place.rows = self.place.rows.max(first + n);
        let left = (n - skipped) as usize;
        Ok((left > 0).then(|| (rows.slice(skipped as usize, left), changes.slice(skipped as usize, left))))
    }

    /// Finds the next commit that changed rows. `false` if there is none yet.
    fn advance(&mut self, state: &State, pin: &Arc<Pin>) -> Result<bool> {
        let path = self.path.clone();
        let gone = || Error::not_found(format!("the table that was followed at '{path}' was dropped"));
        let table = state.table(self.place.table)?.ok_or_else(gone)?;
        if state.path_of(table.id).is_none() {
            return Err(gone());
        }
        let Some(base) = self.place.version else {
            let oldest = table.versions.front().ok_or_else(gone)?;
            return self.open_first(&table, oldest.version, state, pin);
        };
        let listed = |version: Version| table.versions.binary_search_by_key(&version, |record| record.version);
        let lost = |what: String| {
            Error::snapshot_expired(format!(
                "'{path}': {what} was deleted, so what commits did since is not known any more; begin again, or set a \
                 retention that keeps versions for as long as a feed may be behind"
            ))
        };
        let at = listed(base).map_err(|_| lost(format!("version {base}")))?;
        let next = table.versions.get(at + 1).cloned();
        let number = next.as_ref().map_or(table.next_version(), |next| next.version);
        if number.0 != base.0 + 1 {
            return Err(lost(format!("version {}", base.0 + 1)));
        }
        let source = self.source(&table, base, number);
        let kind = next.as_ref().map_or(VersionKind::Rows, |next| next.kind);
        let rows = match &source {
            None => None,
            Some(Source::Memory(part)) => Some(part.rows().clone()),
            Some(Source::History(history)) => {
                Some(read_history(self.store.reader(), &self.store.env().pool, &table, history)?)
            }
        };
        if let (Some(source), Some(rows)) = (&source, &rows) {
            let seq = last_seq(source, state);
            if self.write_commits(&table, rows, source, seq, base, number)? {
                return Ok(true);
            }
            let Some(next) = &next else { return Ok(false) };
            if kind == VersionKind::Rows {
                self.place = FeedPlace { version: Some(next.version), since: None, rows: 0, ..self.place };
                return Ok(true);
            }
        }
        let Some(next) = next else { return Ok(false) };
        let all_told = kind == VersionKind::Rows && self.place.since.is_some_and(|since| since >= next.time);
        if matches!(kind, VersionKind::Alter | VersionKind::Create) || all_told {
            self.place = FeedPlace { version: Some(next.version), since: None, rows: 0, ..self.place };
            return Ok(true);
        }
        if table.instants.gaps.contains_key(&base) && self.place.since.is_some() {
            return Err(lost(format!("what was written by key after version {base}")));
        }
        if table.depends_on_parts(base) || table.depends_on_parts(next.version) {
            self.store.settle_rows(&BTreeSet::from([table.id]), false)?;
            return Ok(true);
        }
        let view = |table: &Arc<TableState>, read_point| View {
            table: table.clone(),
            read_point,
            time: None,
            pin: Some(pin.clone() as Arc<dyn std::any::Any + Send + Sync>),
        };
        let plain = |version| ReadPoint { version, since: false, seq: state.seq, instant: None };
        let by_key = match (&source, rows) {
            (Some(source), Some(rows)) if !planted(Bug::FeedForgetsMemory) => {
                let seq = last_seq(source, state);
                let (keys, codec) = (written_keys(&rows, seq), rows.codec.clone());
                let seen = ReadPoint { version: base, since: true, seq, instant: None };
                let then = Arc::new(while_written(&table, source, rows));
                let after = view(&table, plain(next.version));
                Some(WrittenKeys { keys, done: 0, codec, before: view(&then, seen), after })
            }
            _ => None,
        };
        let diff = Diff::of_commit(&self.store, view(&table, plain(next.version)), plain(base), &self.cancel)?;
        self.open = Some(OpenVersion {
            version: next.version,
            kind,
            time: next.time,
            before: table.schema_of(base)?.clone(),
            filter: self.chosen(table.schema_of(next.version)?)?,
            keys: by_key,
            ahead: None,
            done: 0,
            diff,
        });
        Ok(true)
    }

    /// Begins with all rows of a version.
    fn open_first(&mut self, table: &Arc<TableState>, version: Version, state: &State, pin: &Arc<Pin>) -> Result<bool> {
        if table.depends_on_parts(version) {
            self.store.settle_rows(&BTreeSet::from([table.id]), false)?;
            return Ok(true);
        }
        let record = table.record(version)?.clone();
        let read_point = ReadPoint { version, since: false, seq: state.seq, instant: None };
        let pin = Some(pin.clone() as Arc<dyn std::any::Any + Send + Sync>);
        let view = View { table: table.clone(), read_point, time: None, pin };
        self.open = Some(OpenVersion {
            version,
            kind: record.kind,
            time: record.time,
            before: table.schema_of(version)?.clone(),
            filter: self.chosen(table.schema_of(version)?)?,
            keys: None,
            ahead: None,
            done: 0,
            diff: Diff::of_first(&self.store, view, &self.cancel)?,
        });
        Ok(true)
    }

    /// The filter in the names of a schema.
    fn chosen(&self, schema: &StoredSchema) -> Result<Option<Filter>> {
        let lost = || {
            Error::invalid(format!(
                "'{}': a column that the feed's filter refers to was dropped; follow the table with another filter from \
                 `{}` on",
                self.path, self.place
            ))
        };
        self.filter.as_ref().map(|filter| schema.filter_by_names(filter).ok_or_else(lost)).transpose()
    }

    /// Where the rows are that were written between a version and the next.
    fn source<'t>(&self, table: &'t TableState, base: Version, number: Version) -> Option<Source<'t>> {
        let began = |part: &&MemtablePart| {
            part.version == number && table.instants.parts.get(&number).is_some_and(|written| written.base == base)
        };
        if let Some(part) = table.parts.iter().find(began) {
            return Some(Source::Memory(part));
        }
        let mut histories = table.instants.histories.iter();
        histories.find(|history| history.version == number && history.base == base).map(Source::History)
    }

    /// Has commits that wrote rows by key handed out next. `false` if there are none after the place.
    fn write_commits(
        &mut self,
        table: &Arc<TableState>,
        rows: &Arc<MemRows>,
        source: &Source<'_>,
        seq: Seq,
        base: Version,
        number: Version,
    ) -> Result<bool> {
        let since = self.place.since;
        let codec = rows.codec.clone();
        let before = |keys: &Keys| -> Result<Vec<Option<Vec<u8>>>> {
            // As it was after the last commit that was handed out.
            let last = since.map_or(Seq(0), |since| rows.last_at(since, seq));
            let then = while_written(table, source, rows.clone());
            let since = last > Seq(0);
            let read_point = ReadPoint { version: base, since, seq: if since { last } else { seq }, instant: None };
            rows_of(&self.store, &then, read_point, &codec, keys, &self.cancel)
        };
        let commits = written_after(rows, since, seq, before)?;
        let schema = table.schema_of(base)?;
        let filter = self.chosen(schema)?;
        let found = !commits.is_empty();
        for (time, changes) in commits {
            let (batch, changes) = decoded(&codec, changes)?;
            let (rows, changes) = selected(schema, filter.as_ref(), time, batch, changes)?;
            let place = FeedPlace { since: Some(time), rows: 0, ..self.place };
            self.written.push_back(RowChanges { version: number, kind: VersionKind::Rows, time, rows, changes, place });
        }
        Ok(found)
    }
}
