//! Purge: erases rows from every version, from storage, the catalog and the log, and proves it.

pub(super) mod family;
pub(super) mod holds;
pub(super) mod matching;
mod of_views;
pub(super) mod proof;
pub(super) mod report;
pub(super) mod run;
