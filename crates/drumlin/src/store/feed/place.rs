//! The place of a feed of rows: up to where it has handed out what happened to its table.

use std::fmt;

use crate::base::{Error, Result, TableId, Timestamp, Version};

/// What the text of a place begins with.
const PLACE: &str = "place:";

/// Up to where a feed has handed out the rows that commits changed. It is found again after checkpoints, by any process: it names versions
/// and times, and no row groups. Its text begins with `place:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedPlace {
    pub(super) table: TableId,
    /// The last version of which all was handed out; `None` if there is none.
    pub(super) version: Option<Version>,
    /// The time of the last commit since then that wrote rows by key and of which all was handed out.
    pub(super) since: Option<Timestamp>,
    /// How many rows of the next commit were handed out.
    pub(super) rows: u64,
}

impl FeedPlace {
    /// Reads the text of a place.
    ///
    /// # Errors
    /// `InvalidArgument` if it is none.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = || Error::invalid(format!("'{text}' is not the place of a feed, such as `place:7.12.-.0`"));
        let mut parts = text.strip_prefix(PLACE).ok_or_else(bad)?.split('.');
        let mut next = || parts.next().ok_or_else(bad);
        let (table, version, since, rows) = (next()?, next()?, next()?, next()?);
        let given = |text: &str| (text != "-").then(|| text.to_owned());
        let place = Self {
            table: TableId(table.parse().map_err(|_| bad())?),
            version: given(version).map(|version| version.parse().map(Version)).transpose().map_err(|_| bad())?,
            since: given(since).map(|since| since.parse().map(Timestamp)).transpose().map_err(|_| bad())?,
            rows: rows.parse().map_err(|_| bad())?,
        };
        if parts.next().is_some() { Err(bad()) } else { Ok(place) }
    }

    /// The last version of which all was handed out; `None` if there is none.
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// The time of the last commit since then of which all was handed out, if there was one.
    pub fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// Whether a text is meant as a place.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(PLACE)
    }
}

impl fmt::Display for FeedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.map_or_else(|| "-".to_owned(), |version| version.0.to_string());
        let since = self.since.map_or_else(|| "-".to_owned(), |since| since.0.to_string());
        write!(f, "{PLACE}{}.{version}.{since}.{}", self.table.0, self.rows)
    }
}
