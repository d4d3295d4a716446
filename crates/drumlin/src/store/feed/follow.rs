//! Where a feed of rows begins.

use super::place::FeedPlace;
use super::rows::RowFeed;
use crate::base::{Cancel, Error, Result};
use crate::catalog::Path;
use crate::filter::Filter;
use crate::store::read::resolve::{resolve, table_at};
use crate::store::{AsOf, Table};

/// Where a feed of rows begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FollowFrom {
    /// After the newest commit.
    #[default]
    Now,
    /// With all rows of the oldest version that is listed, as inserted ones.
    Beginning,
    /// After what this shows.
    After(AsOf),
    /// Where another feed of the same table was.
    Place(FeedPlace),
}

impl FollowFrom {
    /// What a text stands for: `beginning`, the text of a [`FeedPlace`], or what [`AsOf::parse`] says.
    ///
    /// # Errors
    /// `InvalidArgument` if it begins like a place and is none.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "beginning" => FollowFrom::Beginning,
            place if FeedPlace::is_meant(place) => FollowFrom::Place(FeedPlace::parse(place)?),
            other => FollowFrom::After(AsOf::parse(other)),
        })
    }
}

/// How a table is followed.
#[derive(Clone, Debug, Default)]
pub struct FollowOptions {
    /// Only rows for which this is true, before or after they were changed. Columns are meant that have these names at first, whatever they
    /// are called later. Default: all.
    pub filter: Option<Filter>,
    /// Stops it. Default: nothing does.
    pub cancel: Cancel,
}

impl Table {
    /// The rows that commits change in this table from some point on: what each inserted, updated and deleted, in order. As long as the
    /// versions since then are listed, a feed goes on where it was, also after checkpoints and in other processes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{FollowFrom, Tables};
    /// # let store = drumlin::Store::memory()?;
    /// # let rows = |n: Vec<i64>| RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(n)) as ArrayRef)]).unwrap();
    /// store.write("t", rows(vec![1, 2, 3]), &Default::default())?;
    /// let mut feed = store.table("t").follow(&FollowFrom::Now, &Default::default())?;
    /// store.table("t").delete("n = 2", &Default::default())?;
    /// let changes = feed.next(None)?.unwrap();
    /// assert_eq!((changes.rows.num_rows(), changes.changes.value(0)), (1, "delete"));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such table or version; `InvalidArgument` in a transaction, or if the filter means nothing.
    pub fn follow(&self, since: &FollowFrom, options: &FollowOptions) -> Result<RowFeed> {
        let store = self.place.in_store("following a table")?.clone();
        let path = Path::new(self.path())?;
        let state = store.state()?;
        let table = table_at(&state, &path)?;
        let schema = table.schema().ok_or_else(|| Error::not_found(format!("'{path}' has no version")))?;
        let filter = options.filter.as_ref().map(|filter| schema.filter_by_ids(filter)).transpose();
        let filter = filter.map_err(|e| e.context(format!("'{path}'")))?;
        let place = FeedPlace { table: table.id, version: None, since: None, rows: 0 };
        let newest = table.newest().map(|newest| newest.version);
        let place = match since {
            FollowFrom::Beginning => place,
            FollowFrom::Now => FeedPlace { version: newest, since: Some(state.time), ..place },
            FollowFrom::After(as_of) => match &*as_of.settled(&state) {
                AsOf::Newest => FeedPlace { version: newest, since: Some(state.time), ..place },
                AsOf::Time(time) => {
                    let version = table.at(*time).map_err(|e| e.context(format!("'{path}'")))?.0;
                    FeedPlace { version: Some(version), since: Some(*time), ..place }
                }
                as_of => {
                    let (seen_table, seen) = resolve(&state, &path, as_of)?;
                    if seen_table.id != table.id {
                        return Err(Error::invalid(format!(
                            "the table at '{path}' is not the one that the snapshot has"
                        )));
                    }
                    FeedPlace { version: Some(seen.version), ..place }
                }
            },
            FollowFrom::Place(asked) if asked.table != table.id => {
                return Err(Error::snapshot_expired(format!(
                    "'{asked}' is the place of a feed of another table than the one at '{path}' now; begin again"
                )));
            }
            FollowFrom::Place(asked) => *asked,
        };
        let cancel = options.cancel.clone();
        Ok(RowFeed::new(store, path, filter, cancel, place))
    }
}
