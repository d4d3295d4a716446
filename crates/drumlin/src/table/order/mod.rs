//! Tables with a sort order: sorting rows, merging what is sorted, and bringing row groups into order.

pub(super) mod clusters;
pub(super) mod kway;
pub(super) mod latest;
pub(super) mod merge_order;
pub(super) mod merging;
pub(super) mod plan;
pub(super) mod reorder;
pub(super) mod runs;
pub(super) mod sort;
pub(super) mod sort_columns;
