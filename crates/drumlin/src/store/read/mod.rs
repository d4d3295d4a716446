//! Reading: which table and version is meant, scans, look-ups, data sets, aggregates, differences, figures. Nothing here commits.

pub(super) mod activity;
pub(super) mod aggregate;
pub(super) mod dataset;
pub(super) mod dataset_scan;
pub(super) mod diff;
pub(super) mod history;
pub(super) mod join;
pub(super) mod lookup;
pub(super) mod lookup_by;
pub(super) mod resolve;
pub(super) mod same_rows;
pub(super) mod stat;
pub(super) mod views;
