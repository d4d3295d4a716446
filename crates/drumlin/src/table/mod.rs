//! Tables: row groups that are visible over intervals of versions; reading, writing and rewriting them. Never commits.
//!
//! [`Table`] is a value: a commit makes a new one from the old by a [`TableChange`], a [`Rewrite`] or the removal of versions,
//! without I/O. Operations with I/O (scan, encode, rewrite) read a `Table` and return what a commit needs.

mod as_of;
mod carry;
mod change;
mod check;
mod codec;
mod columns;
mod conform;
mod encode;
mod extension;
mod flush;
mod foreign;
mod group_keys;
mod group_reader;
mod history;
mod instants;
mod key;
mod key_bounds;
mod key_filter;
mod lookup;
mod matching;
mod moved;
mod order;
mod overlay;
mod part;
mod pieces;
mod plan;
mod range;
mod rewrite;
mod row_bytes;
mod row_group;
mod rows;
mod rows_change;
mod scan;
mod schema;
mod state;
mod view;

pub use change::{Kill, NewGroup, Rewrite, RewrittenGroup, TableChange, VersionKind, VersionRecord};
pub use check::check_group;
pub use codec::TableCodec;
pub use conform::{Conform, conform};
pub use encode::{RowGroups, Schemes, batch_bytes, encode_group};
pub use flush::{count_rows, hidden_rows, part_rows};
pub use foreign::{checked_array, checked_parts, checked_rows};
pub use history::{history_rows, history_schema, read_history};
pub use instants::{History, Instants, Since, Written};
pub use key::{KeyCodec, check_key};
pub use key_bounds::KeyBounds;
pub use key_filter::{key_filter, may_have};
pub use lookup::{Lookup, RowPlace, Searcher};
pub use matching::{Found, Matches, matching_rows};
pub use order::{check_sort, sorted_schema};
pub use overlay::ReadPoint;
pub use part::{Flush, MemRows, MemtablePart};
pub use plan::{LeftAlone, Plan, PlanOptions, Reason, Window, plan};
pub use range::KeyRange;
pub use rewrite::{Remapped, kept_rows, remap, rewrite};
pub use row_bytes::RowCodec;
pub use row_group::{ALIVE, Deletion, GroupId, Positions, ROWS_MAX, RowGroup, Rows, Run};

pub use rows_change::{PreparedRows, RowsChange};
pub use scan::{Scan, ScanOptions, ScanPart};
pub use schema::StoredSchema;
pub use state::{PinnedVersion, Retained, Table, TableSpec};
pub use view::{Renew, View};
