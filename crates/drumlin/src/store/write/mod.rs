//! Bringing rows into tables: whole frames, rows by key (few in the log, many as row groups; with all columns or some), rows that take
//! the place of others.

pub(super) mod amounts;
pub(super) mod by_key;
pub(super) mod encoder;
pub(super) mod few_rows;
pub(super) mod frame;
pub(super) mod frames;
pub(super) mod many_rows;
pub(super) mod numbers;
pub(super) mod on_item_error;
pub(super) mod partial;
pub(super) mod read_and_write;
pub(super) mod replace;
pub(super) mod sorting;
