//! Tables: row groups that are visible over intervals of versions; reading, writing and rewriting them. Never commits.
//!
//! [`TableState`] is a value: a commit makes a new one from the old by a [`TableChange`], a [`Rewrite`] or the removal
//! of versions, without I/O. Operations with I/O (scan, encode, rewrite) read a `TableState` and return what a commit
//! needs.
//!
//! What explains which subject: versions as intervals *row_group.rs*; what a reader sees *view.rs* and, with rows in
//! memory, *part.rs*; reading *scan.rs*; vacuum *plan.rs* and *rewrite.rs*; sort order *order.rs*; updates *patch.rs*;
//! columns that change *evolve.rs*; times between versions *instants.rs*; rows erased everywhere *erase.rs*;
//! indexes *index/mod.rs*.

mod group;
mod index;
mod keys;
mod layout;
mod memory;
mod order;
mod read;
mod schema;
mod state;
mod vacuum;
mod write;
pub use group::ends::Ends;
pub use group::key_bounds::KeyBounds;
pub use group::patch::{Below, Layer, NewPatch, Patched};
pub use group::row_group::{ALIVE, Deletion, GroupId, Positions, ROWS_MAX, RowGroup, Rows, Run};
pub use group::standing::{PLACES, Standing, Tract};
pub use index::build::{BuiltRun, build_run};
pub use index::check::check_run;
pub use index::definition::{IndexDefinition, Unique};
pub use index::edits::RunParts;
pub use index::fences::pages_of;
pub use index::grouping::{RunOptions, RunPlan, plan_runs};
pub use index::mask::IndexCost;
pub use index::merging::{MergedRun, merge_runs};
pub use index::run::{IndexRun, Indexes, NewRun, TableIndex};
pub use index::unique::{Judge, Judged, SoundValues};
pub use keys::codec::TableCodec;
pub use keys::group_keys::keys_of_groups;
pub use keys::key::{KeyCodec, check_key};
pub use keys::key_filter::{key_filter, may_have};
pub use keys::lookup::{Lookup, RowPlace, Searcher};
pub use layout::definition::{RowLayout, StoredLayout};
pub use layout::laying::Laying;
pub use layout::overlap::{RowLayoutStat, row_layout_stat};
pub use layout::plan::plan_layout;
pub use layout::shown::in_shown_order;

pub use memory::flush::{count_rows, hidden_rows, part_rows, rows_at_most};
pub use memory::history::{history_rows, history_schema, read_history};
pub use memory::overlay::ReadPoint;
pub use memory::part::{Flush, MemRows, MemtablePart};
pub use memory::row_bytes::RowCodec;
pub use order::latest::comes_last;
pub use order::merge_order::MergeOrder;
pub use order::merging::merge_groups;
pub use order::plan::{OrderPlan, PlannedSlot, overlaps, plan_order};
pub use order::reorder::{Classes, MergedGroups, Reorder, Slot, remap_merged};
pub use order::sort_columns::{TableSpec, check_sort, sorted_schema};
pub use read::diff::{difference, difference_of_groups};
pub use read::groups_ahead::GroupsAhead;
pub use read::prefetch::Ahead;
pub use read::select::expiry::next_expiry;
pub use read::select::matches::Matches;
pub use read::select::matching::{FoundRows, matching_rows};
pub use read::select::range::KeyRange;
pub use schema::arrays::{HIDDEN, find as find_column, find_requested, into_type, is_hidden, shown, without_hidden};
pub use schema::claims::forgotten;
pub use schema::column::repeated;
pub use schema::compression::{compressed_as, compression_of};
pub use schema::conform::{Conform, conform};
pub use schema::constraints::{Checks, ConstraintNames, Constraints, ConstraintsInfo};
pub use schema::evolution::alter::{Alter, Altered, Fill, NewColumn, SchemaMode};
pub use schema::evolution::evolve::check_widening;
pub use schema::foreign::{checked_array, checked_parts, checked_rows};
pub use schema::read_as::{Apart, Constants, ReadAs, constant_stats, text_dictionary, union};
pub use state::adopt::Adopted;
pub use state::change::{
    Kill, NewGroup, Rewrite, RewrittenGroup, TableChange, VersionKind, VersionRecord, check_new_group,
};
pub use state::erase::{DictionaryRest, DictionaryValues, FilterOfVersions, ShrunkGroup, TextsOfColumns};
pub use state::instants::{History, Instants, Since, WriteTimes};
pub use state::lineage::{CopyOrigin, Lineage};
pub use state::stories::Past;
pub use vacuum::plan::{LeftAlone, Plan, PlanOptions, Reason, Window, plan};
pub use vacuum::rewrite::{Remapped, remap, rewrite};
pub use vacuum::verify_group::check_group;
pub use write::computed::{
    Assignment, Assignments, NewValues, changed_columns, changed_rows, check_new_values, refuse_matching, replace_group,
};
pub use write::encode::{RowGroups, Schemes, batch_bytes, encode_group, in_pieces};
pub use write::generated::{Generators, SequenceNumbers};
pub use write::generator::Generator;
pub use write::merge::{BoundMerge, Merge, Outcome, WhenMatched, WhenNotMatched};
pub use write::merge_keys::KeyRows;
pub use write::rows_schema::RowsSchema;

pub use memory::batch::{PreparedRows, RowsChange};
pub use memory::reread::reread;
pub use memory::written::{KeyChanges, written_after, written_keys};
pub use order::runs::{PART_BYTES_MAX, RunGroup, SortedRuns, merged_runs};
pub use order::sort::sorted_batches;
pub use read::scan::Scan;
pub use read::scan_options::ScanOptions;
pub use read::scan_part::ScanPart;
pub use read::scan_plan::ScanPlan;
pub use read::split::TableSplit;
pub use read::view::{Renew, View, ViewPoint};
pub use schema::stored::StoredSchema;
pub use schema::ttl::TimeToLive;
pub use state::story::{Note, Story, Turnover};
pub use state::table::{PinnedVersion, Retained, TableState};
pub use state::update::TableUpdate;
