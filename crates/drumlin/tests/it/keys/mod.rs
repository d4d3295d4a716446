//! Rows by key: which types keys have, numbers that are added, rows that are returned, defaults that are made.

pub mod counting;
pub mod generated;
pub mod key_types;
