//! When rows were written by key, so that a read at a time shows what was there then, commit by commit, as long as the
//! versions around it are kept.
//!
//! A version numbers all rows written by key since the previous one. While they are in memory, each has the commit that
//! wrote it. A flush keeps only the newest row of each key; what the commits in between had written goes to a *history*
//! next to the row groups, unless there was only one commit.
//!
//! Invariants: the rows of a part were written between `first` and `last`, on top of the version `base`; a history is
//! kept as long as its base and its version are listed; times of a table at which the newest version was one that has
//! been deleted are in a gap.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::{Timestamp, Version};
use crate::block::Address;
use crate::table::MemtablePart;

/// When the rows of a part were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteTimes {
    /// The newest version at the time.
    pub base: Version,
    /// The first commit's time.
    pub first: Timestamp,
    /// The last commit's time.
    pub last: Timestamp,
}

/// Row writes, commit by commit, which a flush has turned into row groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The version that they belong to.
    pub version: Version,
    /// The version that they were written on top of.
    pub base: Version,
    /// The first commit's time.
    pub first: Timestamp,
    /// Which of the table's schemas the rows have.
    pub schema: u32,
    /// Where they are stored, and the number of rows in each.
    pub groups: Vec<(Address, u32)>,
}

/// What a table knows about times between its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instants {
    /// For each part, by its version.
    pub parts: BTreeMap<Version, WriteTimes>,
    /// For flushed parts, by version.
    pub histories: Vec<History>,
    /// For a listed version: from when until when it was not the newest, although no later listed version was.
    pub gaps: BTreeMap<Version, (Timestamp, Timestamp)>,
}

/// Where the rows are that existed at a time in addition to those of a version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Since<'a> {
    /// There are none.
    Nothing,
    /// In a memtable.
    Memory(&'a MemtablePart),
    /// In a history.
    History(&'a History),
}

impl Instants {
    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
