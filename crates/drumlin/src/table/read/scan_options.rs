//! What a scan is asked for.

use crate::base::Cancel;
use crate::filter::Filter;

/// What to read of a version.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
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
    /// What messages about damage call the table. Default: nothing.
    pub name: Option<String>,
}
