//! Brings views up to date that are behind with sources: all groups of such a source are made of its rows, in a transaction with what says that the
//! view is behind no more. Where others change the source in between, it is done again.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;

use super::shape::Shape;
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Error, ErrorKind, Result, TableId};
use crate::catalog::{Effect, Footprint, Path, Pattern, Read};
use crate::store::nouns::transaction::OpenTransaction;
use crate::store::read::resolve::of_table;
use crate::store::write::by_key::ByKey;
use crate::store::{Store, Table, WriteOptions};
use crate::table::rows_at_most;

/// How many sources, and rows of them, one commit catches up with, at most.
const SOURCES_MAX: usize = 1000;
const ROWS_MAX: u64 = 1 << 22;
/// How often a change that others overtake is tried.
const ATTEMPTS_MAX: usize = 1000;

/// What was done to catch up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatchUpReport {
    /// Sources whose groups were made again.
    pub sources: u64,
    /// Rows of the view that were written.
    pub rows: u64,
    /// Rows of the view that were deleted.
    pub deleted: u64,
}

impl Table {
    /// Brings the view at this path up to date, source by source. O(rows of the sources with which it is behind).
    ///
    /// # Errors
    /// `NotFound` if there is no table; `InvalidArgument` if it is no view, or if a result of a group does not fit its type; as reads.
    pub fn catch_up(&self, cancel: &Cancel) -> Result<CatchUpReport> {
        let store = self.place.in_store("catching up")?;
        let path = Path::new(self.path())?;
        let state = store.call()?.store.current()?;
        let table = crate::store::read::resolve::table_at(&state, &path)?.id;
        if state.row_views.get(table).is_none() {
            return Err(Error::invalid(format!("'{path}' is no view; views are made by create_view")));
        }
        store.catch_up_with(table, None, cancel)
    }
}

impl Store {
    /// Catches up with some sources of a view, or with all with which it is behind.
    pub(in crate::store) fn catch_up_with(
        &self,
        view: TableId,
        some: Option<&BTreeSet<Path>>,
        cancel: &Cancel,
    ) -> Result<CatchUpReport> {
        let mut report = CatchUpReport::default();
        let (mut most, mut attempts) = (SOURCES_MAX, 0);
        loop {
            cancel.check()?;
            let transaction = self.transaction()?;
            let done = transaction.change_tables(|store, open| store.catch_up_in(open, view, some, most, cancel))?;
            if done.sources == 0 {
                transaction.abort();
                return Ok(report);
            }
            match transaction.commit() {
                Ok(_) => {
                    report.sources += done.sources;
                    report.rows += done.rows;
                    report.deleted += done.deleted;
                    attempts = 0;
                }
                // Fewer are less likely to be changed in between.
                Err(e) if e.kind() == ErrorKind::Conflict && attempts < ATTEMPTS_MAX => {
                    (attempts, most) = (attempts + 1, (most / 2).max(1));
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn catch_up_in(
        &self,
        open: &mut OpenTransaction,
        view: TableId,
        some: Option<&BTreeSet<Path>>,
        most: usize,
        cancel: &Cancel,
    ) -> Result<CatchUpReport> {
        open.of_views = true;
        let state = Arc::new(open.draft.state().clone());
        let Some(known) = state.row_views.get(view) else { return Ok(CatchUpReport::default()) };
        let wanted = known.behind.keys().filter(|path| some.is_none_or(|some| some.contains(*path)));
        let pattern = Pattern::new(&known.definition.over)?;
        let kept = state.get(view)?;
        let (Some(schema), Some(at)) = (kept.schema(), state.path_of(view)) else {
            return Ok(CatchUpReport::default());
        };
        let schema = schema.0.clone();
        let (mut reads, mut sources, mut rows) = (vec![Read::Schema(view)], Vec::new(), 0);
        let mut todo = Vec::new();
        for path in wanted {
            let table = state.table_at(path)?.filter(|table| table.newest().is_some());
            let own = table
                .as_ref()
                .map_or(0, |table| rows_at_most(table, self.seen_in(&state, table, state.seq).read_point));
            if sources.len() >= most || (!sources.is_empty() && rows + own > ROWS_MAX) {
                break;
            }
            rows += own;
            reads.push(Read::Binding(path.clone()));
            if let Some(table) = &table {
                reads.extend([Read::Rows(table.id), Read::Schema(table.id)]);
            }
            sources.push(path.clone());
            todo.push((path.clone(), table));
        }
        if sources.is_empty() {
            return Ok(CatchUpReport::default());
        }
        let made = |(path, table): (Path, Option<Arc<crate::table::TableState>>)| {
            cancel.check()?;
            let names = known.names(&pattern, &path).unwrap_or_default();
            let of_source = table.as_ref().and_then(|table| table.schema()).map(|schema| schema.0.clone());
            let named = |e: Error| of_table(&path, e);
            match &of_source {
                Some(of_source) => {
                    let shape = Shape::new(&known.definition, names, of_source).map_err(named)?;
                    let changed = self.made_again(&state, state.seq, &kept, &shape, table.as_ref()).map_err(named)?;
                    let rows = shape.rows_of(&changed.there, &schema).map_err(named)?;
                    Ok((rows, changed.gone))
                }
                None => {
                    let none = RecordBatch::new_empty(schema.clone());
                    Ok((none, self.keys_of_source(&state, state.seq, &kept, &known.definition, &names)?))
                }
            }
        };
        // One after the other: what a task of the pool waits for must not wait for the pool.
        let made: Vec<(RecordBatch, RecordBatch)> = todo.into_iter().map(made).collect::<Result<_>>()?;
        let (rows, gone): (Vec<RecordBatch>, Vec<RecordBatch>) = made.into_iter().unzip();
        let codec = kept.codec()?;
        let rows = arrow::compute::concat_batches(&schema, &rows)?;
        let gone = arrow::compute::concat_batches(codec.key_schema(), &gone)?;
        let report = CatchUpReport {
            sources: sources.len() as u64,
            rows: rows.num_rows() as u64,
            deleted: gone.num_rows() as u64,
        };
        open.note(reads);
        let path = at.clone();
        if !planted(Bug::CatchUpWithoutRows) {
            for (what, batch) in [(ByKey::Delete, gone), (ByKey::Upsert, rows)] {
                if batch.num_rows() > 0 {
                    let numbering = open.numbering(self);
                    let options = WriteOptions::default();
                    self.write_by_key_in(open, what, &path, batch.into(), (&options, &numbering), false)?;
                }
            }
        }
        open.apply(Footprint::default(), vec![Effect::MarkView { table: view, sources, behind: false }], None)?;
        Ok(report)
    }
}
