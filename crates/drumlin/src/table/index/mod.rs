//! Secondary indexes: which rows of row groups have a value, found without reading the row groups.
//!
//! An index is layout: it never says what a table holds. Its *runs* are sorted lists of entries, each a value and the place of a row, in
//! blocks like any others; each covers all rows of some row groups. A row group never changes, so neither does a run, and it serves every
//! version: which rows a version sees is decided by the row group's record, as in any scan. What no run covers is scanned.
//!
//! - What indexes a table has, and what of it they cover, is part of its state: *definition.rs*, *run.rs*; *edits.rs* has its edits.
//! - A filter is answered with a *mask*, for each row group that is covered a superset of its rows for which the filter is true (*mask.rs*).
//!   The scan does the rest: what is visible, rows in memory, casts, order, the filter once more. Which index pays, if any does, is decided
//!   by the bytes that would be read (*choice.rs*). So an index may say too much, but never too little.
//! - Rows in memory are found by their values, too, which are sorted when a filter asks for them (*memory/by_index.rs*).
//! - Runs are made from row groups (*build.rs*), of as many at once as *grouping.rs* says, and checked against them (*check.rs*).
//!
//! - Of a *unique* index no two rows of the newest version have the same values: what a commit would leave is judged (*unique.rs*).
//!
//! A run covers a row group by the address of its *deciding layer*, the newest that has a column of the index: that one determines those
//! below, and what lies above has other columns. So a patch of other columns keeps the cover, copies share it, and what is rewritten is
//! covered no more, without anybody looking for it. A row group that lacks a column of the index is never covered: statistics decide it.

pub(super) mod build;
pub(super) mod check;
pub(super) mod choice;
pub(super) mod compared;
pub(super) mod definition;
pub(super) mod edits;
pub(super) mod fences;
pub(super) mod grouping;
pub(super) mod mask;
pub(super) mod merging;
pub(super) mod pages;
pub(super) mod run;
pub(super) mod sorting;
pub(super) mod unique;
