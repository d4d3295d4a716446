//! Where a feed of rows begins.

use super::place::FeedPlace;
use crate::base::{Error, Result};
use crate::catalog::{Path, State};
use crate::store::AsOf;
use crate::store::read::resolve::resolve;
use crate::table::TableState;

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

/// Where a feed of the table at `path` begins.
pub(super) fn begin(state: &State, table: &TableState, path: &Path, since: &FollowFrom) -> Result<FeedPlace> {
    let place = FeedPlace { table: table.id, version: None, since: None, rows: 0 };
    let newest = FeedPlace { version: table.newest().map(|newest| newest.version), since: Some(state.time), ..place };
    match since {
        FollowFrom::Beginning => Ok(place),
        FollowFrom::Now => Ok(newest),
        FollowFrom::After(as_of) => match &*as_of.settled(state) {
            AsOf::Newest => Ok(newest),
            AsOf::Time(time) => {
                let version = table.at(*time).map_err(|e| e.context(format!("'{path}'")))?.0;
                Ok(FeedPlace { version: Some(version), since: Some(*time), ..place })
            }
            as_of => {
                let (seen_table, seen) = resolve(state, path, as_of)?;
                if seen_table.id != table.id {
                    return Err(Error::invalid(format!("the table at '{path}' is not the one that the snapshot has")));
                }
                Ok(FeedPlace { version: Some(seen.version), ..place })
            }
        },
        FollowFrom::Place(asked) if asked.table != table.id => Err(Error::snapshot_expired(format!(
            "'{asked}' is the place of a feed of another table than the one at '{path}' now; begin again"
        ))),
        FollowFrom::Place(asked) => Ok(*asked),
    }
}
