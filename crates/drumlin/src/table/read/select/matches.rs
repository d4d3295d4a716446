//! Rows of a row group.

use roaring::RoaringBitmap;

use crate::table::GroupId;

/// Rows of one row group.
pub struct Matches {
    /// The row group.
    pub group: GroupId,
    /// The positions of the rows; not empty.
    pub rows: RoaringBitmap,
}
