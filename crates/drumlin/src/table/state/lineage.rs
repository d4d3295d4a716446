//! Where rows of a table came from, and when some of them were erased. Stored beside the table, if there is anything to say.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::base::planted::{Bug, planted};
use crate::base::{Seq, TableId};

/// What is known of a table's past beyond its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// The last commit that erased rows of all of its versions; 0 if none did.
    pub purged: Seq,
    /// Tables of which it has, or had, rows: it was copied, or a version restored, from them, or from copies of them. They may
    /// be gone.
    pub ancestors: BTreeSet<TableId>,
    /// The table of another store that it was made as, and in which commit.
    pub origin: Option<CopyOrigin>,
}

/// What a table was in another store when it was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyOrigin {
    /// Of all that it was there: see *adopt.rs*.
    pub digest: u128,
    /// The commit here.
    pub seq: Seq,
}

impl Lineage {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same of a table that got rows of `from`.
    pub(in crate::table) fn with(&self, from: TableId, of_from: &Lineage) -> Self {
        let mut lineage = self.clone();
        if !planted(Bug::ForgetAncestors) {
            lineage.ancestors.extend(&of_from.ancestors);
            lineage.ancestors.insert(from);
        }
        lineage
    }
}
